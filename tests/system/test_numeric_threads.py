"""The libraries under numpy have as many threads as the profile says, and a state has them, too."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import closing

import pytest

from daemon import Daemon
from lair import Client
from test_survivors import USER, WithoutNamespaces

Start = Callable[..., Daemon]

# Its result is exact, however it is divided.
PRODUCT = "import numpy, os\nones = numpy.ones((700, 700))\nbool((ones @ ones == 700).all())"
THREADS = "len(os.listdir('/proc/self/task'))"
VARIABLES = [f"{name}_NUM_THREADS" for name in ("OPENBLAS", "OMP", "MKL", "NUMEXPR")]
SEEN = f"import os; [os.environ[name] for name in {VARIABLES}]"

# A library that is imported takes no more threads than the machine has processors.
PROCESSORS = len(os.sched_getaffinity(0))

NUMBERS = {
    "one processor": ({"cpu": "1"}, 1),
    "two processors": ({"cpu": "2"}, 2),
    "one and a half": ({"cpu": "1.5"}, 2),
    "no limit": ({}, 1),
    "few processes": ({"cpu": "4", "processes": "2"}, 2),
    "explicit": ({"cpu": "1", "threads": "2"}, 2),
    "explicitly one": ({"cpu": "2", "threads": "1"}, 1),
}


def profile(settings: dict[str, str], preload: str) -> dict[str, dict[str, str]]:
    return {
        "profile default": {"preload": preload, "level": "", "subprocess": "on", "checkpoint": "cell", **settings}
    }


@pytest.mark.parametrize("preload", ["numpy", ""], ids=["in the template", "imported"])
@pytest.mark.parametrize("name", NUMBERS)
def test_number(start_daemon: Start, name: str, preload: str) -> None:
    settings, expected = NUMBERS[name]
    client = start_daemon(profile(settings, preload)).client()
    assert client.exec(SEEN, "s").text == repr([str(expected)] * 4)
    assert client.exec(THREADS, "s").text == "1"
    assert client.exec(PRODUCT, "s").text == "True"
    assert client.exec(THREADS, "s").text == str(expected if preload else min(expected, PROCESSORS))
    program = "import os; print(os.environ['OPENBLAS_NUM_THREADS'], os.environ['OMP_NUM_THREADS'])"
    done = client.exec(f"import subprocess, sys; subprocess.check_output([sys.executable, '-c', {program!r}])", "s")
    assert done.text == repr(f"{expected} {expected}\n".encode()), done


def goes_back(client: Client) -> None:
    first = client.exec("x = 1\n" + PRODUCT, "s")
    assert (first.text, first.unfaithful) == ("True", None)
    assert client.exec(THREADS, "s").text == "2"
    second = client.exec("x = 2\n" + PRODUCT, "s")
    assert (second.text, second.unfaithful) == ("True", None)
    client.undo("s")
    assert client.exec("x", "s").text == "1"
    assert client.exec(PRODUCT, "s").text == "True"
    assert client.exec("import os; os.kill(os.getpid(), 9)", "s").state == "rolled_back"
    assert client.exec(f"x, {THREADS}", "s").text == "(1, 2)"
    assert client.exec(PRODUCT, "s").text == "True"


@pytest.mark.parametrize(
    "preload", ["numpy", pytest.param("", marks=pytest.mark.skipif(PROCESSORS < 2, reason="one"))]
)
def test_going_back(start_daemon: Start, preload: str) -> None:
    goes_back(start_daemon(profile({"threads": "2"}, preload)).client())


def test_branch(start_daemon: Start) -> None:
    client = start_daemon(profile({"threads": "2"}, "numpy")).client()
    client.exec(PRODUCT, "s")
    client.branch("s", "t")
    assert client.exec(f"{PRODUCT}, {THREADS}", "t").text == "(True, 2)"
    assert client.exec(f"{PRODUCT}, {THREADS}", "s").text == "(True, 2)"


def test_variable_of_the_profile(start_daemon: Start) -> None:
    """The profile names one library more exactly."""
    settings = {"threads": "2", "env": "OPENBLAS_NUM_THREADS=1"}
    client = start_daemon(profile(settings, "numpy")).client()
    assert client.exec(SEEN, "s").text == "['1', '2', '2', '2']"
    assert client.exec(f"{PRODUCT}, {THREADS}", "s").text == "(True, 1)"


@pytest.mark.parametrize(
    ("settings", "seen"), [({"cpu": "2"}, "1"), ({"threads": "2"}, "2")], ids=["derived", "explicit"]
)
def test_where_threads_cannot_be_copied(settings: dict[str, str], seen: str) -> None:
    """There a number that only follows from cpu would cost the checkpoints."""
    weak = {"level": "landlock", "checkpoint": "cell", "preload": "numpy", **settings}
    daemon = WithoutNamespaces({"profile default": weak}, uid=USER)
    with closing(daemon):
        client = daemon.client()
        assert client.exec(SEEN, "s").text == repr([seen] * 4)
        assert client.exec(PRODUCT, "s").text == "True"
        assert bool(client.exec("x = 1", "s").unfaithful) == (seen == "2")

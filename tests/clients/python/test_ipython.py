"""Magics with the IPython of the package index. tests/system/test_magics.py is about the one of the distribution."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from daemon import Daemon
from environments import pinned
from lair import Client


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    it = Daemon({"profile default": {"python": str(pinned("ipython")), "subprocess": "on", "checkpoint": "cell"}})
    yield it
    assert it.terminate() == 0
    it.close()


@pytest.fixture(scope="module")
def client(daemon: Daemon) -> Client:
    client = daemon.client()
    client.exec(
        "x = 41\ndef share(n):\n    'Says so.'\n    return 1 / n\nopen('s.py', 'w').write('made = 3')", "magics"
    )
    return client


SAID = {
    "%time x + 1": "Wall time",
    "%timeit -n 5 -r 1 x": "per loop",
    "%whos": "share",
    "share?": "Says so.",
    "!echo {x}": "41\n",
    "%%bash\necho two": "two\n",
    "%env LAIR_WORD=5": "LAIR_WORD=5",
    "%run s.py\nprint(made)": "3\n",
    "said = !echo a; echo b\nprint(list(said))": "['a', 'b']",
    "%cd .": "/",
    "%history": "x = 41",
    "%matplotlib inline": "",
    "%load_ext autoreload\n%autoreload 2": "",
    "%lsmagic": "%autoreload",
    "open('s.py', 'w').write('made = 4444')": "",
    "%%capture told\nprint(5)": "",
    "print(get_ipython().user_ns['x'])": "41",
}


@pytest.mark.parametrize("code", SAID)
def test_magic(client: Client, code: str) -> None:
    reply = client.exec(code, "magics")
    assert reply.returncode == 0 and reply.stderr == b"", reply.stderr.decode()
    assert SAID[code] in reply.stdout.decode()
    assert reply.unfaithful is None


def test_traceback(client: Client) -> None:
    error = client.exec("%time share(0)", "magics").error
    assert error and error["name"] == "ZeroDivisionError"
    assert "IPython" not in error["traceback"] and "    %time share(0)\n" in error["traceback"]
    assert b"return 1 / n" in client.exec("%debug", "magics").stdout


def test_undo(client: Client) -> None:
    client.exec("x = 7\n%time x", "magics")
    client.undo("magics")
    assert client.exec("%time x", "magics").text == "41"


def test_nothing_is_written(client: Client) -> None:
    code = "import os; sorted(name for _, inner, names in os.walk(os.environ['HOME']) for name in inner + names)"
    assert client.exec(code, "magics").text == "['s.py']"

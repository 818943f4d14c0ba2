"""Detached cells on the command line: exec --detach, attach, results."""

from __future__ import annotations

import time

import pytest

from daemon import TROUBLE, USAGE, Daemon

pytestmark = pytest.mark.usefixtures("no_sessions_left")


def test_detach_and_attach(daemon: Daemon) -> None:
    detached = daemon.lair("exec", "-s", "a", "--detach", "import time; time.sleep(0.5); print('out'); 6 * 7")
    key = detached.stdout.strip()
    assert (detached.returncode, detached.stderr) == (0, "") and key
    attached = daemon.lair("attach", "a", "--key", key)
    assert (attached.returncode, attached.stdout) == (0, "out\n42\n")
    assert daemon.lair("attach", "a", "1").stdout == "out\n42\n"


def test_the_exit_status_is_that_of_the_cell(daemon: Daemon) -> None:
    daemon.lair("exec", "-s", "b", "--detach", "--key", "k", "raise SystemExit(7)")
    assert daemon.lair("attach", "b", "--key", "k").returncode == 7


def test_a_key_of_ones_own(daemon: Daemon) -> None:
    daemon.lair("open", "c")
    assert daemon.lair_json("exec", "-s", "c", "--key", "mine", "--detach", "5") == {
        "session": "c",
        "cell": 1,
        "key": "mine",
    }
    assert daemon.lair_json("attach", "c", "--key", "mine")["text"] == "5"
    assert daemon.lair_json("exec", "-s", "c", "--key", "mine", "5")["cell"] == 1
    other = daemon.lair_json("exec", "-s", "c", "--key", "mine", "6")
    assert other["error"]["code"] == "bad_request"


def test_without_a_session(daemon: Daemon) -> None:
    key = daemon.lair("exec", "--detach", "'alone'").stdout.strip()
    assert daemon.lair("attach", "--key", key).stdout == "'alone'\n"
    assert key in daemon.lair("results").stdout


def test_results(daemon: Daemon) -> None:
    daemon.lair("exec", "-s", "d", "--key", "first", "1/0")
    daemon.lair("exec", "-s", "d", "--key", "second", "--detach", "import time; time.sleep(5)")
    daemon.lair("exec", "-s", "d", "--key", "third", "--detach", "3")
    lines = [line.split() for line in daemon.lair("results", "d").stdout.splitlines()]
    assert lines[0] == ["CELL", "STATE", "RETURNCODE", "AGE", "SIZE", "KEY"]
    assert [line[:3] for line in lines[1:]] == [["1", "finished", "1"], ["2", "running", "-"], ["-", "queued", "-"]]
    first, second, third = daemon.lair_json("results", "d")["results"]
    assert (first["key"], first["state"], first["returncode"]) == ("first", "finished", 1)
    assert first["bytes"] > 0 and first["age"] >= 0
    assert (second["state"], second["returncode"], third["cell"]) == ("running", None, None)


def test_output_comes_while_it_is_attached(daemon: Daemon) -> None:
    code = "import time\nfor i in range(5): print(i, flush=True); time.sleep(0.1)"
    daemon.lair("exec", "-s", "e", "--key", "k", "--detach", code)
    time.sleep(0.2)
    events = daemon.lair("attach", "e", "--key", "k", "--json", "--stream").stdout.splitlines()
    assert len(events) > 2
    assert daemon.lair("attach", "e", "--key", "k").stdout == "0\n1\n2\n3\n4\n"


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["attach"], USAGE),
        (["attach", "x"], TROUBLE),
        (["attach", "x", "first"], USAGE),
        (["attach", "x", "0"], USAGE),
        (["attach", "x", "1", "--key", "k"], USAGE),
        (["attach", "x", "1"], TROUBLE),
        (["attach", "--key", "none"], TROUBLE),
    ],
)
def test_misuse(daemon: Daemon, arguments: list[str], status: int) -> None:
    done = daemon.lair(*arguments)
    assert (done.returncode, done.stdout) == (status, "") and done.stderr.startswith("lair: ")


def test_attach_takes_what_detach_prints(daemon: Daemon) -> None:
    """A key is enough, of a cell of a session and of none."""
    for where in ([], ["-s", "a"]):
        key = daemon.lair("exec", *where, "--detach", "6 * 7").stdout.strip()
        assert daemon.lair("attach", key).stdout == "42\n", where
    assert "no " in daemon.lair("attach", "unknown").stderr

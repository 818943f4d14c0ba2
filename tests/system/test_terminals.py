"""Terminals of a session, between its cells, its states and its branches. tests/cage has what they may do."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from daemon import Daemon
from lair import Client

ON = {"terminals": "on", "subprocess": "on", "checkpoint": "cell"}

BEGIN = """
import os, pty, select

def until(end):
    seen = b""
    while end not in seen:
        if not select.select([master], [], [], 20)[0]:
            return seen + b" and no more"
        try:
            seen += os.read(master, 4096)
        except OSError as error:
            return error.errno
    return True

pid, master = pty.fork()
if not pid:
    os.execv("/bin/sh", ["sh", "-c", "echo ready; while read line; do echo got $line; done"])
until(b"ready")
"""


@pytest.fixture
def client() -> Iterator[Client]:
    daemon = Daemon({"profile default": ON, "profile none": {"subprocess": "on"}})
    with Client(str(daemon.socket)) as it:
        it.exec("1", session="probe")
        if it.info("probe").level in ("landlock", "uid", "readonly"):
            pytest.skip("this host gives sessions no file system of their own")
        yield it
    daemon.end()


def value(client: Client, code: str, session: str = "a") -> object:
    result = client.exec(code, session=session)
    assert result.returncode == 0, result
    return eval(result.text) if result.text else None


def test_from_cell_to_cell(client: Client) -> None:
    assert value(client, BEGIN) is True
    assert value(client, "os.write(master, b'one\\n'), until(b'got one')") == (4, True)
    assert value(client, "os.write(master, b'two\\n'), until(b'got two')") == (4, True)


def test_after_going_back(client: Client) -> None:
    """What ran on it belonged to the state that is gone, so it has ended. A new one can be opened."""
    value(client, BEGIN)
    value(client, "os.write(master, b'one\\n'), until(b'got one')")
    client.undo("a")
    assert value(client, "until(b'nothing')") == 5
    assert value(client, "os.close(master)") is None
    assert value(client, BEGIN) is True
    assert value(client, "os.write(master, b'more\\n'), until(b'got more')") == (5, True)


def test_after_a_cell_that_dies(client: Client) -> None:
    value(client, "open('f', 'w').close()")
    assert client.exec(BEGIN + "os.kill(os.getpid(), 9)", session="a").returncode != 0
    assert value(client, "import os; os.listdir('/dev/pts')") == ["ptmx"]
    assert value(client, BEGIN) is True


def test_branches(client: Client) -> None:
    """A branch is in the same cage, and sees its parent's terminals as its parent's files."""
    value(client, BEGIN)
    client.branch("a", "b")
    value(client, BEGIN, "b")
    assert value(client, "os.write(master, b'one\\n'), until(b'got one')", "b") == (4, True)
    assert value(client, "os.write(master, b'two\\n'), until(b'got two')") == (4, True)


def test_its_end_frees_them(client: Client) -> None:
    for i in range(3):
        session = f"s{i}"
        assert value(client, "import os; len([os.openpty() for _ in range(16)])", session) == 16
        client.shutdown(session)


def test_not_granted(client: Client) -> None:
    client.open("plain", profile="none")
    result = client.exec("import os; os.openpty()", session="plain")
    assert b"PermissionError: /dev/ptmx: no terminals here (terminals-not-granted)" in result.stderr

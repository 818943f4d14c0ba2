"""lair top: the busiest sessions, live and for scripts."""

from __future__ import annotations

import fcntl
import json
import re
import signal
import struct
import termios
from collections.abc import Callable

import pytest

from daemon import USAGE, Daemon
from lair import Client
from terminal import Terminal

pytestmark = pytest.mark.usefixtures("no_sessions_left")


def names(shown: str) -> list[str]:
    """Of the sessions, in their order, in the last screen that is whole."""
    screen = shown.split("\x1b[H")[-1]
    return re.findall(r"^(s-\w+)", screen.replace("\r", ""), re.MULTILINE)


def resize(terminal: Terminal, rows: int, columns: int) -> None:
    fcntl.ioctl(terminal.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


@pytest.fixture
def busy(client: Client) -> str:
    """One that calculates, and one that is larger."""
    client.exec("x = bytearray(40 << 20)", "s-large")
    client.start("while True: pass", "s-busy")
    return "s-busy"


def test_once(daemon: Daemon, busy: str) -> None:
    lines = daemon.lair("top", "--once").stdout.splitlines()
    assert re.fullmatch(r"2 sessions, 1 busy; cpu \d+ %, memory .*", lines[0])
    assert lines[1].split()[:2] == ["SESSION", "OWNER"]
    assert [line.split()[0] for line in lines[2:]] == ["s-busy", "s-large"]
    assert float(re.split(r" +", lines[2])[3]) > 5
    by_memory = daemon.lair("top", "--once", "--sort", "memory").stdout.splitlines()
    assert [line.split()[0] for line in by_memory[2:]] == ["s-large", "s-busy"]


def test_for_scripts(daemon: Daemon, busy: str) -> None:
    sessions = {it["session"]: it for it in daemon.lair_json("top")["sessions"]}
    assert sessions["s-busy"]["cpu_percent"] > 5 and sessions["s-large"]["cpu_percent"] == 0
    assert set(daemon.lair_json("info", "s-busy")) < set(sessions["s-busy"])
    assert json.loads(daemon.lair("top", "-j", "--once").stdout)["sessions"]


def test_what_it_does_not_take(daemon: Daemon) -> None:
    refused = daemon.lair("top", "--sort", "size")
    assert refused.returncode == USAGE and "expected cpu, memory, disk, age, idle, owner or name" in refused.stderr


def test_live(terminal: Callable[..., Terminal], client: Client, busy: str) -> None:
    top = terminal("top")
    top.expect("\x1b[H")
    assert names(top.expect("\x1b[J")) == ["s-busy", "s-large"]
    client.exec("1", "s-new")
    top.expect("s-new")
    top.type("\x03")
    assert top.wait() == -signal.SIGINT


def test_it_fits_the_terminal(terminal: Callable[..., Terminal], client: Client) -> None:
    for i in range(12):
        client.open(f"s-{i:02}")
    top = terminal("top", "--sort", "name")
    resize(top, 10, 40)
    top.expect("and 6 more")
    top.expect("\x1b[H")
    for line in top.expect("\x1b[J").split("\r\n"):
        assert len(line.replace("\x1b[K", "").rstrip("\r")) <= 40
    resize(top, 30, 200)
    top.expect("s-11")

"""Where sessions have no pid namespace: whatever they leave behind is ended all the same, as far as that can be."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from daemon import BIN, WORKER, Daemon, Settings, children, command_of, descendants, wait_until

USER = 61950 + WORKER if os.geteuid() == 0 else None
DENY = BIN.parent / "tests" / "deny"
NO_NAMESPACES = "clone:7e020000=EPERM"
SETTINGS: Settings = {"profile default": {"level": "landlock", "spares": "0", "checkpoint": "off"}}


class WithoutNamespaces(Daemon):
    """On a host that gives an ordinary user none."""

    def _as_user(self, command: list[str]) -> list[str]:
        return super()._as_user([str(DENY), NO_NAMESPACES, "--", *command])


@pytest.fixture
def daemon() -> Iterator[Daemon]:
    it = WithoutNamespaces(SETTINGS, uid=USER)
    yield it
    it.close()


# Each is a way out of sight: out of the interpreter's group and session, deaf to signals, forked twice.
HIDE = """
import os, signal, time
def hide(go):
    for _ in range(20):
        if os.fork() == 0:
            os.setsid()
            if os.fork(): os._exit(0)
            for number in range(1, 32):
                if number not in (9, 19): signal.signal(number, signal.SIG_IGN)
            go()
            os._exit(0)
    time.sleep(0.5)
"""
WAIT = "hide(lambda: time.sleep(600))"
# Nobody in this line lives for longer than it takes to make the next.
CHAIN = """
def chain():
    while True:
        if os.fork(): os._exit(0)
hide(chain)
"""
FILL = """
def fill():
    for i in range(10**9):
        try:
            os.makedirs(HOME, exist_ok=True)
            with open(f"{HOME}/{os.getpid()}-{i}", "w"): pass
        except OSError: pass
HOME = os.getcwd()
hide(fill)
"""


def is_template(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/comm").read_text() == "lair-template\n"
    except OSError:
        return False


def kin(daemon: Daemon) -> set[int]:
    """But for templates: one for the next user may come at any time."""
    return {pid for pid in descendants(daemon.process.pid) if not is_template(pid)}


@pytest.mark.parametrize("what", [WAIT, CHAIN, FILL], ids=["wait", "chain", "fill"])
def test_close(daemon: Daemon, what: str) -> None:
    client = daemon.client()
    client.exec("1", "other")
    before = kin(daemon)
    assert client.exec(HIDE + what, "s").returncode == 0
    assert client.info("s").level == "landlock"
    workspace = Path(client.info("s").workspace)
    assert len(kin(daemon) - before) > 10
    client.shutdown("s")
    wait_until(lambda: not kin(daemon) - before, "nobody is left", 20)
    wait_until(lambda: not workspace.exists(), "the workspace is gone", 20)
    assert client.exec("6 * 7", "other").text == "42"
    assert daemon.terminate() == 0, daemon.log()
    assert daemon.left_behind() == []


@pytest.mark.parametrize("what", [WAIT, FILL], ids=["wait", "fill"])
def test_the_warden_is_killed(daemon: Daemon, what: str) -> None:
    """What it had falls to the keeper, among other sessions' wardens."""
    client = daemon.client()
    client.exec("1", "other")
    before = kin(daemon)
    client.exec(HIDE + what, "s")
    wardens = kin(daemon) & set(children(daemon.process.pid)) - before
    (warden,) = [pid for pid in wardens if "lair-kernel" in command_of(pid)]
    os.kill(warden, signal.SIGKILL)
    wait_until(lambda: not kin(daemon) - before, "nobody is left", 20)
    assert client.exec("6 * 7", "other").text == "42"
    assert "something has outlived its session and is killed" in daemon.log()


def test_the_keeper_is_killed(daemon: Daemon) -> None:
    client = daemon.client()
    for i in range(3):
        client.exec(HIDE + WAIT, f"s{i}")
    everything = daemon.processes()
    daemon.process.kill()
    daemon.process.wait()

    def gone() -> bool:
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            pass
        return not [pid for pid in everything if Path(f"/proc/{pid}").exists()]

    wait_until(gone, "all of them are dead", 20)
    assert daemon.left_behind_processes() == []


def test_closed_workspaces_go_while_others_are_filled(daemon: Daemon) -> None:
    client = daemon.client()
    places = []
    for i in range(5):
        client.exec(HIDE.replace("range(20)", "range(3)") + FILL, f"filled{i}")
        places.append(Path(client.info(f"filled{i}").workspace))
    for i in range(5):
        client.shutdown(f"filled{i}")
    client.exec("open('file', 'w').close()", "plain")
    place = Path(client.info("plain").workspace)
    client.shutdown("plain")
    wait_until(lambda: not place.exists(), "the plain one is gone", 20)
    wait_until(lambda: not any(it.exists() for it in places), "the others, too", 20)


def test_what_marks_a_session_cannot_be_put_on(daemon: Daemon) -> None:
    """Nor a filter of one's own."""
    client = daemon.client()
    reply = client.exec(
        "import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\n"
        "(libc.prctl(22, 2, bytes(16), 0, 0), ctypes.get_errno(), libc.prctl(22, 1, 0, 0, 0), ctypes.get_errno())",
        "s",
    )
    assert reply.text == "(-1, 1, -1, 1)"

"""What a service manager sees of laird: sd_notify(3), its watchdog, and a router that stands still."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from daemon import Daemon, children, command_of, wait_until
from lair.messages import ExecReply

StartDaemon = Callable[..., Daemon]


class Manager:
    """The other end of $NOTIFY_SOCKET."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(str(path))

    def hear(self, timeout: float) -> str:
        self._socket.settimeout(timeout)
        try:
            return self._socket.recv(4096).decode()
        except TimeoutError:
            return ""

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[Manager]:
    it = Manager(tmp_path / "notify")
    yield it
    it.close()


def router_of(daemon: Daemon) -> int:
    (pid,) = [pid for pid in children(daemon.process.pid) if "--router" in command_of(pid)]
    return pid


def test_ready_watched_and_stopping(start_daemon: StartDaemon, manager: Manager) -> None:
    daemon = start_daemon(env={"NOTIFY_SOCKET": str(manager.path), "WATCHDOG_USEC": "30000000"}, wait=False)
    assert manager.hear(30) == "READY=1"
    assert daemon.client().hello().version == 1, "ready means that it answers"
    assert [manager.hear(10) for _ in range(2)] == ["WATCHDOG=1"] * 2
    daemon.process.send_signal(signal.SIGTERM)
    wait_until(lambda: manager.hear(10) == "STOPPING=1", "the manager is told")
    assert daemon.process.wait(20) == 0


def test_no_watchdog_unasked(start_daemon: StartDaemon, manager: Manager) -> None:
    start_daemon(env={"NOTIFY_SOCKET": str(manager.path)})
    assert manager.hear(30) == "READY=1"
    assert manager.hear(4) == ""


def test_a_router_that_stands_still_is_replaced(start_daemon: StartDaemon) -> None:
    daemon = start_daemon()
    first = router_of(daemon)
    os.kill(first, signal.SIGSTOP)
    wait_until(lambda: "has not stirred" in daemon.log(), "the keeper notices", 40)
    assert daemon.client().hello().pid == router_of(daemon) != first


def test_a_router_that_goes_on_in_time_stays(start_daemon: StartDaemon) -> None:
    daemon = start_daemon()
    daemon.client().exec("x = 1", "s")
    router = router_of(daemon)
    os.kill(router, signal.SIGSTOP)
    waiting = daemon.client()
    cell = waiting.start("x + 1", "s")
    with pytest.raises(TimeoutError):
        waiting._next(cell, 4)
    os.kill(router, signal.SIGCONT)
    assert waiting.finish(cell, ExecReply).text == "2"
    assert router_of(daemon) == router

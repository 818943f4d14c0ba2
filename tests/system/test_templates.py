"""Templates that die: whoever waits for one gets what the next one makes."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

from daemon import Daemon, children, command_of, wait_until
from lair import LairError
from lair.messages import ExecReply

PROFILE = {"profile default": {"spares": "0", "preload": "numpy"}}


def templates(daemon: Daemon) -> list[int]:
    return [pid for pid in children(daemon.process.pid) if command_of(pid).startswith("lair-kernel")]


def kill_the_next(daemon: Daemon, known: int = 0) -> int:
    (pid,) = wait_until(lambda: [pid for pid in templates(daemon) if pid != known], "a template starts")
    os.kill(pid, signal.SIGKILL)
    return int(pid)


def test_a_template_killed_while_a_session_waits_is_replaced(start_daemon: Callable[..., Daemon]) -> None:
    daemon = start_daemon(PROFILE, wait=False)
    killed = kill_the_next(daemon)
    daemon.wait_ready()
    client = daemon.client()
    waiting = client.start("6 * 7", "s")
    kill_the_next(daemon, killed)
    assert client.finish(waiting, ExecReply).text == "42"


def test_sessions_outlive_the_template_they_were_grown_from(start_daemon: Callable[..., Daemon]) -> None:
    daemon = start_daemon({"profile default": {"spares": "1", "preload": ""}})
    client = daemon.client()
    client.exec("x = 1", "s")
    wait_until(lambda: client.stats().spares, "a spare waits")
    (template,) = [pid for pid in templates(daemon) if pid != client.info("s").pid and not children(pid)]
    os.kill(template, signal.SIGKILL)
    assert client.exec("x + 1", "s").text == "2"
    assert client.exec("1", "another").text == "1"


def test_one_that_dies_each_time_is_told(start_daemon: Callable[..., Daemon]) -> None:
    daemon = start_daemon(PROFILE, wait=False)
    pid = 0
    for _ in range(6):
        pid = kill_the_next(daemon, pid)
    daemon.wait_ready()
    try:
        daemon.client().open("s")
        raise AssertionError("no template ever lived")
    except LairError as error:
        assert "it died" in str(error)

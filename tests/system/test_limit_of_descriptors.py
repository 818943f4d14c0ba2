"""However many sessions there are, and whatever limit of descriptors laird was started with: what dies is replaced."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from daemon import Daemon, children, command_of, wait_until
from lair import Client, LairError

StartDaemon = Callable[..., Daemon]

# A session has about eleven descriptors with two checkpoints: 1,100 of 100, and 3,300 of 300.
MANY = {
    "daemon": {"sessions": "1000"},
    "profile default": {
        "preload": "",
        "spares": "0",
        "checkpoint": "cell",
        "memory": "0",
        "cpu": "0",
        "processes": "0",
    },
}


def fill(client: Client, n: int) -> list[str]:
    """Sessions of two cells each, as many as there may be; the refusal names the limit, and what to change."""
    opened: list[str] = []
    for i in range(n):
        try:
            client.exec(f"x = {i}", f"s{i}")
        except LairError as error:
            assert error.code == "limit" and "Too many open files" in str(error), error
            assert re.search(r"LimitNOFILE|ulimit -n", str(error)), error
            break
        client.exec("y = x + 1", f"s{i}")
        opened.append(f"s{i}")
    return opened


def all_there(client: Client, sessions: list[str]) -> None:
    for session in sessions[:: max(len(sessions) // 20, 1)] + sessions[-1:]:
        assert client.exec("y - x", session, timeout=60).text == "1"


def router_of(daemon: Daemon) -> int:
    (pid,) = [pid for pid in children(daemon.process.pid) if "--router" in command_of(pid)]
    return pid


def kill_router(daemon: Daemon) -> None:
    router = router_of(daemon)
    os.kill(router, signal.SIGKILL)
    wait_until(lambda: router not in children(daemon.process.pid), "it is dead")


def upgrade(daemon: Daemon) -> None:
    router = router_of(daemon)
    os.kill(daemon.process.pid, signal.SIGUSR2)
    wait_until(lambda: router not in children(daemon.process.pid), "it is replaced")


def kill_templates(daemon: Daemon) -> None:
    """Wardens have the command of their template, and interpreters below them."""
    pids = children(daemon.process.pid)
    templates = [pid for pid in pids if command_of(pid).startswith("lair-kernel") and not children(pid)]
    assert templates, [command_of(pid) for pid in pids]
    for pid in templates:
        os.kill(pid, signal.SIGKILL)


def survive(daemon: Daemon, client: Client, sessions: list[str], audit: Path) -> None:
    """The router is killed and upgraded; afterwards the templates are killed."""
    kill_router(daemon)
    all_there(client, sessions)
    upgrade(daemon)
    all_there(client, sessions)
    kill_templates(daemon)
    all_there(client, sessions)
    assert audit.read_text().count('"exec"') >= 2 * len(sessions)
    # What is given back can be had again.
    for session in sessions[:-1]:
        client.shutdown(session)
    assert client.exec("6 * 7", "new", timeout=60).text == "42"
    assert "cannot start" not in daemon.log(), daemon.log()


def start(start_daemon: StartDaemon, tmp_path: Path, soft: int, hard: int) -> Daemon:
    settings = {**MANY, "daemon": {**MANY["daemon"], "audit_log": str(tmp_path / "audit")}}
    return start_daemon(settings, limits={"nofile": f"{soft}:{hard}"})


@pytest.mark.parametrize("soft, n", [(64, 40), (1024, 300)])
def test_a_low_soft_limit(start_daemon: StartDaemon, tmp_path: Path, soft: int, n: int) -> None:
    daemon = start(start_daemon, tmp_path, soft, 20000)
    client = daemon.client(timeout=60)
    sessions = fill(client, n)
    assert len(sessions) == n
    survive(daemon, client, sessions, tmp_path / "audit")


@pytest.mark.parametrize("hard", [128, 256, 512])
def test_a_low_hard_limit(start_daemon: StartDaemon, tmp_path: Path, hard: int) -> None:
    """Sessions are refused while there is room for all else."""
    daemon = start(start_daemon, tmp_path, 64, hard)
    client = daemon.client(timeout=60)
    sessions = fill(client, hard // 8)
    assert 2 <= len(sessions) < hard // 8
    survive(daemon, client, sessions, tmp_path / "audit")

"""Opening what cannot be opened is an error of that request alone, whatever there is too little of: descriptors, memory,
processes, control groups, room on the disk. Every other session goes on."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from daemon import Daemon, wait_until
from lair import Client, LairError

StartDaemon = Callable[..., Daemon]

BARE = {"preload": "", "spares": "0", "checkpoint": "off"}


def open_many(client: Client, n: int) -> tuple[list[int], dict[int, str]]:
    """Those that were opened, and why the others were not. Each of the former has said so, and holds its number."""
    opened, refused = [], {}
    for i in range(n):
        try:
            reply = client.exec(f"x = {i}", f"s{i}")
            assert (reply.returncode, reply.state) == (0, "kept"), reply
            opened.append(i)
        except LairError as error:
            refused[i] = str(error)
    return opened, refused


def check(daemon: Daemon, client: Client, opened: list[int]) -> None:
    """Nothing is lost, by no router."""
    router = client.stats().pid
    for i in opened:
        assert client.exec("x", f"s{i}").text == str(i)
    assert sorted(info.session for info in client.list()) == sorted(f"s{i}" for i in opened)
    assert client.stats().pid == router
    assert "has not stirred" not in daemon.log(), daemon.log()


def test_forty_sessions_and_112_descriptors(start_daemon: StartDaemon) -> None:
    daemon = start_daemon({"profile default": BARE}, limits={"nofile": 112})
    client = daemon.client(timeout=20)
    opened, refused = open_many(client, 40)
    assert opened and refused
    time.sleep(1)
    check(daemon, client, opened)
    # What is given back can be had again.
    for i in opened[:2]:
        client.shutdown(f"s{i}")
    wait_until(lambda: len(client.list()) == len(opened) - 2, "they are gone")
    assert client.exec("6 * 7", "another").text == "42"


@pytest.mark.parametrize("checkpoint, spares", [("off", 0), ("cell", 2)])
@pytest.mark.parametrize("part", range(3))
def test_any_limit_of_descriptors(start_daemon: StartDaemon, part: int, checkpoint: str, spares: int) -> None:
    for limit in range(60 + 13 * part, 301, 39):
        settings = {"profile default": {**BARE, "checkpoint": checkpoint, "spares": str(spares)}}
        daemon = start_daemon(settings, limits={"nofile": limit})
        client = daemon.client(timeout=20)
        opened, refused = open_many(client, 40)
        assert opened and refused, limit
        assert all("Too many open files" in why for why in refused.values()), refused
        check(daemon, client, opened)
        daemon.close()


@pytest.mark.parametrize("limit", [8, 10])
def test_too_few_descriptors_to_start(start_daemon: StartDaemon, limit: int) -> None:
    """Then it says so, and does not start."""
    daemon = start_daemon({"profile default": BARE}, limits={"nofile": limit}, wait=False)
    assert daemon.process.wait(20) != 0
    assert "Too many open files" in daemon.log(), daemon.log()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start a laird of another user")
@pytest.mark.parametrize("limit", [7, 9, 16, 23])
def test_any_limit_of_processes(start_daemon: StartDaemon, limit: int) -> None:
    daemon = start_daemon({"profile default": BARE}, uid=4242, limits={"nproc": limit})
    client = daemon.client(timeout=20)
    opened, refused = open_many(client, 20)
    assert refused
    check(daemon, client, opened)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a small disk")
def test_no_room_for_workspaces(start_daemon: StartDaemon, tmp_path: Path) -> None:
    subprocess.run(["mount", "-t", "tmpfs", "-o", "nr_inodes=24,mode=755", "tmpfs", str(tmp_path)], check=True)
    try:
        daemon = start_daemon({"daemon": {"workspaces": str(tmp_path)}, "profile default": BARE})
        client = daemon.client(timeout=20)
        opened, refused = open_many(client, 40)
        assert opened and refused
        assert all("No space left" in why for why in refused.values()), refused
        check(daemon, client, opened)
        daemon.close()
    finally:
        subprocess.run(["umount", "-l", str(tmp_path)], check=True)


def test_no_control_group(start_daemon: StartDaemon) -> None:
    """A profile that needs none is not concerned."""
    limited, free = {**BARE, "memory": "1G"}, {**BARE, "memory": "0", "processes": "0", "cpu": "0"}
    daemon = start_daemon({"profile default": limited, "profile free": free})
    if not daemon.groups():
        pytest.skip("no control groups here")
    client = daemon.client(timeout=20)
    for group in daemon.groups():
        for path in [*filter(Path.is_dir, group.iterdir()), group]:
            path.rmdir()
    opened, refused = open_many(client, 5)
    assert opened == [] and len(refused) == 5
    assert client.exec("6 * 7", "other", profile="free").text == "42"
    assert len(client.list()) == 1

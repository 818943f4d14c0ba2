"""Disks that are full or cannot be written, descriptors that are used up, and processes that stand still: what is
defined for each of them."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from daemon import BIN, Daemon, children, command_of, wait_until
from lair import LairError
from lair.messages import ExecReply, Reply, Reset

StartDaemon = Callable[..., Daemon]

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a small disk")


class Disk:
    """A small one, that can be filled and emptied."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k,mode=755", "tmpfs", str(path)], check=True)
        (path / "ballast").touch()  # which takes room, too

    def fill(self) -> None:
        ballast = os.open(self.path / "ballast", os.O_WRONLY | os.O_CREAT)
        for size in (4096, 1):
            try:
                while os.write(ballast, b"x" * size):
                    pass
            except OSError:
                pass
        os.close(ballast)

    def empty(self) -> None:
        os.truncate(self.path / "ballast", 0)

    def read_only(self) -> None:
        subprocess.run(["mount", "-o", "remount,ro", str(self.path)], check=True)

    def remove(self) -> None:
        subprocess.run(["umount", "-l", str(self.path)], check=True)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    it = Disk(tmp_path / "disk")
    yield it
    it.remove()


def test_full_disk_under_the_log(start_daemon: StartDaemon, disk: Disk) -> None:
    """A log that cannot be written is no reason to stop."""
    daemon = start_daemon({"daemon": {"log": str(disk.path / "log")}})
    disk.fill()
    client = daemon.client()
    for i in range(5):
        assert client.exec("6 * 7", f"s{i}").text == "42"
    assert daemon.terminate() == 0


REFUSED = "try: open('/etc/passwd', 'w')\nexcept OSError: pass"
UNWRITTEN = "^internal: the audit log cannot be written, and audit_required is on: the cell has not run"


def audited(path: Path) -> list[Any]:
    """The numbers of cells and of missed lines; None: a line that the full disk cut."""
    found: list[Any] = []
    for line in path.read_text().splitlines():
        try:
            entry = json.loads(line)
            found.append((entry["event"], entry.get("cell", entry.get("lines"))))
        except ValueError:
            found.append(None)
    return found


def test_full_disk_under_the_audit_log(start_daemon: StartDaemon, disk: Disk) -> None:
    """No cell runs, which is told; when there is room, cells run and the log has one line cut at most."""
    path = disk.path / "audit"
    daemon = start_daemon({"daemon": {"log": "stderr", "audit_log": str(path)}})
    client = daemon.client()
    client.exec("x = 1", "s")
    disk.fill()
    n = 0
    with pytest.raises(LairError, match=UNWRITTEN):
        while n < 200:  # the last page has room for some
            client.exec("x += 1", "s")
            n += 1
    for session in ("s", "new", None):
        with pytest.raises(LairError, match=UNWRITTEN):
            client.exec("x = 0", session)
    assert daemon.log().count("the audit log cannot be written: No space left") == 1
    disk.empty()
    assert client.exec("x", "s").text == str(n + 1)
    assert "the audit log is written again" in daemon.log()
    execs = [it for it in audited(path) if it and it[0] == "exec"]
    assert execs == [("exec", cell) for cell in range(1, n + 3)]
    assert audited(path).count(None) <= 1
    client.exec("1", "new")


def test_full_disk_and_no_duty(start_daemon: StartDaemon, disk: Disk) -> None:
    """Cells run all the same; what is missing is counted: in the log, in both logs' place, and by lair status."""
    path = disk.path / "audit"
    daemon = start_daemon({"daemon": {"log": "stderr", "audit_log": str(path), "audit_required": "off"}})
    client = daemon.client()
    client.exec("1", "s")
    disk.fill()
    for _ in range(100):
        assert client.exec(REFUSED, "s").returncode == 0
    missed = client.stats().audit_missed
    assert missed and missed > 50
    assert f"audit    the audit log misses {missed} line" in daemon.lair("status").stdout
    os.kill(client.stats().pid, signal.SIGKILL)
    client = daemon.client()
    disk.empty()
    client.exec("2", "s")
    assert client.stats().audit_missed == missed
    gaps = [it[1] for it in audited(path) if it and it[0] == "missed"]
    assert gaps == [missed]
    whole = [it for it in audited(path) if it and it[0] != "missed"]
    assert len(whole) + missed == 1 + 2 * 100 + 2
    assert audited(path)[-1] == ("exec", 102)
    disk.fill()
    for _ in range(60):
        client.exec("2", "s")
    more = client.stats().audit_missed
    assert daemon.terminate() == 0
    assert more and f"the audit log misses its last {more - missed + 1} lines" in daemon.log()


@pytest.fixture
def frozen(tmp_path: Path) -> Iterator[Path]:
    """A disk that keeps whoever writes to it waiting, until it is thawed."""
    image, path = tmp_path / "image", tmp_path / "frozen"
    path.mkdir()
    with image.open("wb") as file:
        file.truncate(16 << 20)
    made = subprocess.run(["mkfs.ext4", "-q", str(image)]).returncode == 0
    if not made or subprocess.run(["mount", "-o", "loop", str(image), str(path)]).returncode != 0:
        pytest.skip("no disk can be made of a file here")
    yield path
    subprocess.run(["fsfreeze", "-u", str(path)], stderr=subprocess.DEVNULL)
    subprocess.run(["umount", "-l", str(path)], check=True)


def test_frozen_disk_under_the_audit_log(start_daemon: StartDaemon, frozen: Path) -> None:
    """Whoever runs a cell is refused, the first after a second and the others at once; nobody else waits longer."""
    path = frozen / "audit"
    daemon = start_daemon({"daemon": {"log": "stderr", "audit_log": str(path)}})
    client = daemon.client()
    client.exec("x = 1", "s")
    subprocess.run(["fsfreeze", "-f", str(frozen)], check=True)
    try:
        took = []
        for _ in range(20):
            began = time.monotonic()
            with pytest.raises(LairError, match=UNWRITTEN):
                client.exec("x = 2", "s")
            took.append(time.monotonic() - began)
        assert took[0] < 3 and sum(took[1:]) < 2
        assert client.info("s").cells == 1
    finally:
        subprocess.run(["fsfreeze", "-u", str(frozen)], check=True)

    def again() -> bool:
        with contextlib.suppress(LairError):
            return client.exec("x", "s").text == "1"
        return False

    wait_until(again, "cells run again")
    assert audited(path)[-1] == ("exec", 2)
    assert "the audit log is written again" in daemon.log() and "has not stirred" not in daemon.log()


@pytest.mark.parametrize("place", ["workspaces", "socket"])
def test_read_only_at_the_start(disk: Disk, tmp_path: Path, place: str) -> None:
    """It says what it cannot write, and does not start."""
    disk.read_only()
    config = tmp_path / "sessions.conf"
    workspaces = disk.path / "work" if place == "workspaces" else tmp_path / "work"
    config.write_text(f"[daemon]\nworkspaces = {workspaces}\n[profile default]\npreload =\n")
    socket = (disk.path if place == "socket" else tmp_path) / "run" / "socket"
    command = [str(BIN / "laird"), "--config", str(config), "--socket", str(socket)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30)
    assert done.returncode != 0
    assert "Read-only file system" in done.stderr and str(disk.path) in done.stderr


def test_workspaces_become_read_only(start_daemon: StartDaemon, disk: Disk) -> None:
    """As disks with errors do. Sessions there are go on in memory; new ones are refused by name."""
    daemon = start_daemon({"daemon": {"workspaces": str(disk.path)}, "profile default": {"spares": "0"}})
    client = daemon.client()
    client.exec("x = 1", "old")
    disk.read_only()
    assert client.exec("x + 1", "old").text == "2"
    assert "OSError" in str(client.exec("open('f', 'w')", "old").error)
    with pytest.raises(Exception, match="Read-only file system"):
        client.exec("1", "new")
    assert client.exec("x + 2", "old").text == "3"


@contextmanager
def no_descriptors(daemon: Daemon) -> Iterator[None]:
    """The router can have no other than those it has."""
    with daemon.client() as client:  # which stays: a connection that ends leaves a number to others
        router = client.stats().pid
        limits = resource.prlimit(router, resource.RLIMIT_NOFILE)
        used = {int(name) for name in os.listdir(f"/proc/{router}/fd")}
        resource.prlimit(router, resource.RLIMIT_NOFILE, (min(set(range(len(used) + 1)) - used), limits[1]))
        yield
        resource.prlimit(router, resource.RLIMIT_NOFILE, limits)


def test_no_descriptor_for_much_code(start_daemon: StartDaemon) -> None:
    """It is sent when there is one."""
    daemon = start_daemon({"profile default": {"checkpoint": "off", "spares": "0"}})
    client = daemon.client()
    client.exec("x = 41", "s")
    with no_descriptors(daemon):
        cell = client.start("x += 1; x #" + "x" * 100000, "s", timeout=20)
        wait_until(lambda: client.info("s").state == "busy", "it is to be sent")
    assert client.finish(cell, ExecReply).text == "42"


@pytest.mark.parametrize("checkpoint", ["cell", "off"])
def test_no_descriptor_for_another_interpreter(start_daemon: StartDaemon, checkpoint: str) -> None:
    """One takes the place of the dead one when there are some."""
    daemon = start_daemon({"profile default": {"checkpoint": checkpoint, "spares": "0"}})
    client = daemon.client()
    client.exec("x = 41", "s")
    wait_until(lambda: client.info("s").checkpoints == (checkpoint == "cell"), "it is kept")
    with no_descriptors(daemon):
        cell = client.start("import os; os._exit(1)", "s")
        wait_until(lambda: client.info("s").state == "starting", "it has died")
        for _ in range(20):
            assert client.info("s").state == "starting"
    reply = client.finish(cell, ExecReply)
    assert (reply.returncode, reply.state) == (1, "rolled_back" if checkpoint == "cell" else "reset")
    assert client.exec("'x' in globals()", "s").text == str(checkpoint == "cell")


def stopped(daemon: Daemon, what: Callable[[int], bool]) -> int:
    (pid,) = [pid for pid in children(daemon.process.pid) if what(pid)]
    os.kill(pid, signal.SIGSTOP)
    return pid


def test_a_warden_that_stands_still(start_daemon: StartDaemon) -> None:
    """What only it can do waits for it; its interpreter does not need it to run cells."""
    daemon = start_daemon({"profile default": {"spares": "0"}})
    client = daemon.client()
    client.exec("x = 1", "s")
    warden = stopped(daemon, lambda pid: pid == client.info("s").pid)
    assert client.exec("x + 1", "s").text == "2"
    reset = client.send(Reset(id=client.new_id(), session="s"))
    time.sleep(0.5)
    assert client.exec("6 * 7", "other").text == "42"
    os.kill(warden, signal.SIGCONT)
    client.finish(reset, Reply)
    assert client.exec("'x' in globals()", "s").text == "False"


def test_a_template_that_stands_still(start_daemon: StartDaemon) -> None:
    """Sessions that want it wait; those that live do not."""
    daemon = start_daemon({"profile default": {"spares": "0"}})
    client = daemon.client()
    client.exec("x = 1", "s")
    warden = client.info("s").pid
    template = stopped(daemon, lambda pid: command_of(pid).startswith("lair-kernel") and pid != warden)
    waiting = client.start("6 * 7", "new")
    assert client.exec("x + 1", "s").text == "2"
    os.kill(template, signal.SIGCONT)
    assert client.finish(waiting, ExecReply).text == "42"


def test_all_of_laird_stands_still(start_daemon: StartDaemon) -> None:
    """As when a machine is suspended: no router is blamed for it, and time limits go by the clock that stood too."""
    daemon = start_daemon()
    client = daemon.client()
    client.exec("x = 1", "s")
    everything = [daemon.process.pid, *daemon.processes()]
    for pid in everything:
        os.kill(pid, signal.SIGSTOP)
    time.sleep(15)
    for pid in everything:
        os.kill(pid, signal.SIGCONT)
    assert client.exec("x + 1", "s").text == "2"
    time.sleep(4)
    assert "has not stirred" not in daemon.log()

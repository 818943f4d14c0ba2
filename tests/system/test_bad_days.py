"""Disks that are full or cannot be written, descriptors that are used up, and processes that stand still: what is
defined for each of them."""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from daemon import BIN, Daemon, children, command_of, wait_until
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


def test_full_disk_under_the_audit_log(start_daemon: StartDaemon, disk: Disk) -> None:
    """Sessions go on, the other log says so, and when that is over all lines are there. None is torn but one at most."""
    path = disk.path / "audit"
    daemon = start_daemon({"daemon": {"log": "stderr", "audit_log": str(path)}})
    client = daemon.client()
    client.exec("1", "s")
    disk.fill()
    for _ in range(200):
        assert client.exec("2", "s").text == "2"
    wait_until(lambda: "the audit log cannot be written: No space left" in daemon.log(), "it is told")
    disk.empty()
    wait_until(lambda: "the audit log is written again" in daemon.log(), "it is told again")
    client.exec("3", "s")
    wait_until(lambda: path.read_text().count('"exec"') >= 202, "all is written")
    broken, cells = [], []
    for line in path.read_text().splitlines():
        try:
            cells.append(json.loads(line).get("cell"))
        except ValueError:
            broken.append(line)
    assert len(broken) <= 1, "what the full disk cut, on a line of its own"
    assert cells == [None, *range(1, 203)]
    assert daemon.log().count("the audit log cannot be written") == 1
    assert "misses" not in daemon.log()


def test_a_disk_that_stays_full(start_daemon: StartDaemon, disk: Disk) -> None:
    """What could not be written is counted when laird ends."""
    daemon = start_daemon({"daemon": {"log": "stderr", "audit_log": str(disk.path / "audit")}})
    client = daemon.client()
    disk.fill()
    for _ in range(200):
        assert client.exec("2", "s").text == "2"
    assert daemon.terminate() == 0
    lines = (disk.path / "audit").read_text().count("\n")
    (missed,) = re.findall(r"the audit log misses its last (\d+) lines", daemon.log())
    assert 0 <= lines + int(missed) - 202 <= 1
    assert daemon.left_behind() == []


def said(daemon: Daemon, what: str, n: int) -> Callable[[], bool]:
    return lambda: daemon.log().count(what) == n


def test_a_line_that_scribes_die_of(start_daemon: StartDaemon, disk: Disk) -> None:
    """The fourth leaves it out, says so in its place, and goes on with the next."""
    path = disk.path / "audit"
    daemon = start_daemon({"daemon": {"log": "stderr", "audit_log": str(path)}})
    client = daemon.client()
    client.exec("1", "s")
    wait_until(lambda: path.read_text().count('"exec"') == 1, "the first is written")
    disk.fill()
    # Until one finds no room.
    while "the audit log cannot be written" not in daemon.log():
        client.exec("2", "s")
    for i in range(1, 4):
        wait_until(said(daemon, "the audit log cannot be written", i), "it is tried")
        stuck = [pid for pid in children(daemon.process.pid) if command_of(pid).endswith("--scribe")]
        os.kill(stuck[0], signal.SIGKILL)
    wait_until(lambda: "a line of the audit log is left out" in daemon.log(), "it is given up")
    disk.empty()
    client.exec("3", "s")
    last = client.info("s").cells
    wait_until(lambda: f'"cell":{last},' in path.read_text(), "it goes on")
    whole = []
    for line in path.read_text().splitlines():
        try:
            whole.append(json.loads(line))
        except ValueError:
            continue  # what the full disk cut
    cells = [line.get("cell") for line in whole if line["event"] in ("exec", "missed")]
    lost = cells.index(None) + 1
    assert cells == [None if cell == lost else cell for cell in range(1, last + 1)]
    assert [line["lines"] for line in whole if line["event"] == "missed"] == [1]


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
    """Nobody waits for it, nor does a router that takes over meanwhile; then all lines are there."""
    path = frozen / "audit"
    daemon = start_daemon({"daemon": {"log": "stderr", "audit_log": str(path)}})
    client = daemon.client()
    client.exec("1", "s")
    subprocess.run(["fsfreeze", "-f", str(frozen)], check=True)
    try:
        for _ in range(2):
            for _ in range(100):
                began = time.monotonic()
                assert client.exec("2", "s").text == "2"
                assert time.monotonic() - began < 2
            os.kill(client.stats().pid, signal.SIGKILL)
            client = daemon.client()
        assert client.exec("3", "s").text == "3"
    finally:
        subprocess.run(["fsfreeze", "-u", str(frozen)], check=True)
    wait_until(lambda: path.read_text().count('"exec"') == 202, "all is written")
    assert "misses" not in daemon.log() and "has not stirred" not in daemon.log()


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

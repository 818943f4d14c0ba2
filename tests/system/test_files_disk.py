"""Files that go back on disks that are full, and on disks whose file systems can share what files have."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from daemon import Daemon
from lair import Client
from lair import messages as m
from test_files_back import changes, tree

StartDaemon = Callable[..., Daemon]

PROFILE = {"spares": "0", "checkpoint": "cell", "level": "", "grace": "100ms"}
MB = 1 << 20
# Their size, and whether files can share blocks. `quota`: a limit of 60 MB, on a larger disk with btrfs.
KINDS = {
    "tmpfs": (40, False),
    "ext4": (60, False),
    "btrfs": (200, True),
    "xfs": (320, True),
    "quota": (400, True),
}
QUOTA = 60

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a disk")


class Disk:
    def __init__(self, path: Path, kind: str) -> None:
        self.path, self.kind = path, kind
        self.mount = path
        self.error = "Disk quota exceeded" if kind == "quota" else "No space left on device"
        size, self.shares = KINDS[kind]
        system = "btrfs" if kind == "quota" else kind
        path.mkdir()
        image = path.with_suffix(".image")
        if kind == "tmpfs":
            self.mounted = self.run("mount", "-t", "tmpfs", "-o", f"size={size}M,mode=755", "tmpfs", str(path))
            return
        with image.open("wb") as file:
            file.truncate(size * MB)
        made = shutil.which(f"mkfs.{system}") is not None and self.run(f"mkfs.{system}", "-q", str(image))
        self.mounted = made and self.run("mount", "-o", "loop", str(image), str(path))
        if kind == "quota" and self.mounted:
            self.limit()

    def limit(self) -> None:
        self.path = self.mount / "limited"
        for command in (
            ("btrfs", "quota", "enable", str(self.mount)),
            ("btrfs", "subvolume", "create", str(self.path)),
            ("btrfs", "qgroup", "limit", f"{QUOTA}M", str(self.path)),
        ):
            assert self.run(*command), command
        self.path.chmod(0o755)

    def run(self, *command: str) -> bool:
        return subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0

    def used(self) -> int:
        self.run("sync", "-f", str(self.path))
        it = os.statvfs(self.path)
        return (it.f_blocks - it.f_bfree) * it.f_frsize

    def fill(self) -> None:
        """But for less than a file of 64 KB."""
        ballast = os.open(self.path / "ballast", os.O_WRONLY | os.O_CREAT)
        for size in (MB, 32768, 4096):
            try:
                while os.write(ballast, os.urandom(size)):
                    pass
            except OSError:
                pass
            try:
                os.fsync(ballast)
            except OSError:
                pass
        os.close(ballast)

    def empty(self) -> None:
        if self.kind == "quota":
            assert self.run("btrfs", "qgroup", "limit", "none", str(self.path))
            return
        os.truncate(self.path / "ballast", 0)
        self.run("sync", "-f", str(self.path))


@pytest.fixture(params=KINDS)
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Disk]:
    it = Disk(tmp_path / "disk", request.param)
    if not it.mounted:
        pytest.skip(f"no disk with {request.param} can be made here")
    yield it
    subprocess.run(["umount", "-l", str(it.mount)], check=True)


@pytest.fixture
def client(start_daemon: StartDaemon, disk: Disk) -> Iterator[Client]:
    daemon = start_daemon({"daemon": {"workspaces": str(disk.path)}, "profile default": PROFILE})
    with daemon.client() as it:
        yield it
    daemon.close()


def settled(client: Client) -> Path:
    """The files of the present state are kept; where they are."""
    client.call(m.Vars(id=client.new_id(), session="s"), m.VarsReply)
    return Path(client.info("s").workspace)


def disk_of(place: Path) -> dict[str, int]:
    return {it.name: it.lstat().st_blocks for it in place.iterdir()}


def test_no_room_to_go_back(client: Client, disk: Disk) -> None:
    """Nothing is touched then. Nothing is lost either: with more room it comes back."""
    client.exec("import os; open('a', 'wb').write(os.urandom(4_000_000)); open('b', 'w').write('1')", "s")
    before = tree(settled(client))
    client.exec("os.remove('a'); open('b', 'w').write('2'); open('c', 'w')", "s")
    after = tree(settled(client))
    disk.fill()
    reply = client.undo("s")
    assert reply.cell == 1 and changes(reply) == {}
    assert (reply.files_stay or "").startswith(f"none was brought back: a: {disk.error}"), reply.files_stay
    assert tree(settled(client)) == after
    disk.empty()
    reply = client.restore("s", "1")
    assert (reply.files_stay, changes(reply)) == (None, {"a": "made", "b": "restored", "c": "removed"})
    assert tree(settled(client)) == before
    assert client.exec("len(open('a', 'rb').read())", "s").text == "4000000"


HOLES = {
    "all": "os.truncate('a', 0); os.truncate('a', 4_000_000)",
    "some": "os.truncate('a', 100_000); os.truncate('a', 5_000_000)",
    "renamed": "os.truncate('a', 0); os.truncate('a', 4_000_000); os.rename('a', 'c')",
    "linked": "os.truncate('a', 0); os.truncate('a', 4_000_000); os.rename('a', 'c'); os.remove('d')",
}


@pytest.mark.parametrize("holes", HOLES)
def test_no_room_in_a_hole(client: Client, disk: Disk, holes: str) -> None:
    """A file that has its size, but no data, is not touched either, nor is it left with a part of them."""
    client.exec("import os; open('a', 'wb').write(os.urandom(4_000_000)); open('b', 'w').write('1')", "s")
    client.exec("os.link('a', 'd')" if holes == "linked" else "1", "s")
    before = tree(settled(client))
    client.exec(f"{HOLES[holes]}; open('b', 'w').write('2')", "s")
    after, used = tree(settled(client)), disk_of(settled(client))
    disk.fill()
    reply = client.undo("s")
    assert reply.cell == 2 and changes(reply) == {}
    assert (reply.files_stay or "").startswith(f"none was brought back: a: {disk.error}"), reply.files_stay
    assert tree(settled(client)) == after
    assert all(size <= used[name] for name, size in disk_of(settled(client)).items())
    disk.empty()
    assert client.restore("s", "2").files_stay is None
    assert tree(settled(client)) == before


def test_no_room_for_a_roll_back(client: Client, disk: Disk) -> None:
    """The cell has filled the disk itself, and what it wrote is in the way of nothing."""
    client.exec("import os; open('a', 'wb').write(os.urandom(1_000_000))", "s")
    before = tree(settled(client))
    code = """
os.truncate('a', 0)
with open('full', 'wb', buffering=0) as file:
    try:
        while True: file.write(os.urandom(1 << 20))
    except OSError: pass
os._exit(1)
"""
    reply = client.exec(code, "s")
    assert reply.state == "rolled_back"
    if reply.files_stay is None:
        assert tree(settled(client)) == before
        return
    assert reply.files_stay.startswith("none was brought back"), reply.files_stay
    client.exec("os.remove('full')", "s")
    assert client.restore("s", "1").files_stay is None
    assert tree(settled(client)) == before


def test_no_room_to_keep(client: Client, disk: Disk) -> None:
    """It is told, and what was kept before is still there."""
    client.exec("import os; open('a', 'w').write('1')", "s")
    before = tree(settled(client))
    disk.fill()
    client.exec("try: open('b', 'wb').write(os.urandom(60_000))\nexcept OSError: pass", "s")
    client.exec("os.truncate('a', 0); x = 1", "s")
    settled(client)
    disk.empty()
    reply = client.restore("s", "1")
    assert reply.files_stay is None
    assert tree(settled(client)) == before


def test_what_is_kept_is_shared(client: Client, disk: Disk) -> None:
    """On a disk that can: large files take no room twice, be it for a state, a way back or a branch."""
    if not disk.shares:
        pytest.skip("files cannot share blocks here")
    size = 40_000_000
    client.exec(
        f"import os; f = open('a', 'wb'); f.write(os.urandom({size})); f.flush(); os.fsync(f.fileno())", "s"
    )
    before = tree(settled(client))
    used = disk.used()
    client.exec(
        "f = open('a', 'r+b'); f.seek(20_000_000); f.write(b'changed'); f.flush(); os.fsync(f.fileno()); f.close()",
        "s",
    )
    settled(client)
    client.branch("s", "b", checkpoint="1")
    assert tree(Path(client.info("b").workspace))["a"] == before["a"]
    client.exec("os.remove('a')", "s")
    settled(client)
    client.undo("s", 2)
    assert tree(settled(client))["a"] == before["a"]
    assert disk.used() - used < size // 4


HOLDER = """
import mmap, os, threading
open('a', 'wb').write(bytes(9000))
def hold():
    held = open('a', 'r+b'); view = mmap.mmap(held.fileno(), 0); view[:]
    while True: os.write(answer[1], b'.'); os.read(ask[0], 1); view[0] += 1
def write(): os.write(ask[1], b'.'); os.read(answer[0], 1)
ask, answer = os.pipe(), os.pipe()
"""


@pytest.mark.parametrize("holder", ["process", "thread"])
def test_somebody_else_writes_through_a_map(client: Client, holder: str) -> None:
    """A page that was read there is written to: tmpfs then tells no time."""
    client.exec(HOLDER, "s")
    start = {"process": "if os.fork() == 0: hold()", "thread": "threading.Thread(target=hold, daemon=True).start()"}
    client.exec(f"{start[holder]}\nos.read(answer[0], 1)", "s")
    client.exec("write()", "s")
    before = tree(settled(client))
    client.exec("write()", "s")
    assert tree(settled(client))["a"][2][0] == 2
    reply = client.exec("write(); os._exit(1)", "s")
    assert changes(reply) == {"a": "restored"} and tree(settled(client))["a"][2][0] == 2
    client.undo("s")
    assert tree(settled(client)) == before and before["a"][2][0] == 1

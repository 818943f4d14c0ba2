"""laird as an ordinary user, whom its sessions are too: what else is that user's is not theirs."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from daemon import BIN, WORKER, Daemon, Settings, wait_until
from lair import Client
from lair import messages as m

USER = 61900 + WORKER if os.geteuid() == 0 else None
SETTINGS: Settings = {"profile default": {"level": "strong-nomem"}}


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Lair's, in the possession of that user."""
    directory = tmp_path_factory.mktemp("programs")
    reachable = directory
    while reachable != Path(tempfile.gettempdir()):
        reachable.chmod(0o755)
        reachable = reachable.parent
    for name in ("laird", "lair", "lair-kernel"):
        shutil.copy(BIN / name, directory)
        if USER is not None:
            os.chown(directory / name, USER, USER)
    return directory


@pytest.fixture(scope="module")
def daemon(programs: Path) -> Iterator[Daemon]:
    it = Daemon(SETTINGS, uid=USER, binaries=programs)
    yield it
    it.end()


def fingerprint(path: Path) -> tuple[int, int, list[str]]:
    status = path.stat()
    return status.st_mode, status.st_mtime_ns, os.listxattr(path)


def test_the_program_it_was_executed_from(programs: Path, client: Client, session: str) -> None:
    """/proc/self/exe leads to a file past all mounts."""
    before = [fingerprint(path) for path in sorted(programs.iterdir())]
    client.exec(
        "import os\n"
        "for act in (lambda p: os.chmod(p, 0), lambda p: os.utime(p, (1, 1)), lambda p: os.setxattr(p, 'user.x', b'1'),\n"
        "            lambda p: os.truncate(p, 0), lambda p: os.open(p, os.O_RDWR), os.unlink):\n"
        "    try: act('/proc/self/exe')\n"
        "    except OSError: pass",
        session,
    )
    assert [fingerprint(path) for path in sorted(programs.iterdir())] == before
    client.shutdown(session)
    assert client.exec("6 * 7", session).text == "42"


def test_no_copy_of_it_stays(daemon: Daemon, client: Client) -> None:
    client.exec("1")
    assert sorted(path.name for path in daemon.socket.parent.iterdir()) == ["socket", "socket.lock"]


class NothingExecuted(Daemon):
    """Where its socket is, no file may be executed."""

    def start(self, wait: bool = True) -> None:
        run = self.socket.parent
        run.mkdir()
        subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"noexec,mode=0700,uid={USER},gid={USER}", "none", str(run)], check=True
        )
        super().start(wait)

    def close(self) -> None:
        if self.process.poll() is None:
            self.terminate()
        subprocess.run(["umount", str(self.socket.parent)], check=False)
        super().close()


def test_where_nothing_may_be_executed(programs: Path) -> None:
    """There is no copy, and the log says what that means."""
    if USER is None:
        pytest.skip("only root can mount")
    daemon = NothingExecuted(SETTINGS, uid=USER, binaries=programs)
    try:
        assert daemon.client().exec("6 * 7").text == "42"
        assert f"so sessions can change the mode of {programs}/lair-kernel" in daemon.log()
        assert list(daemon.socket.parent.glob("program*")) == []
    finally:
        daemon.close()


def test_what_it_leaves_goes(daemon: Daemon, client: Client, session: str) -> None:
    """However deep it lies, whatever its names and modes."""
    client.exec(
        "import os\n"
        "for name in ('d', '.lair-deep-0', '.lair-deep-1'):\n"
        "    path, all = name, [name]\n"
        "    for _ in range(100):\n"
        "        path += '/d'\n"
        "        all.append(path)\n"
        "    os.makedirs(path)\n"
        "    for path in reversed(all):\n"
        "        os.chmod(path, 0o500 if name == 'd' else 0)\n",
        session,
    )
    workspace = Path(client.info(session).workspace)
    assert workspace.exists()
    client.shutdown(session)
    wait_until(lambda: not workspace.exists(), "the workspace is gone")
    assert "cannot remove" not in daemon.log()


TOUCH = """
class Touched:
    def __reduce__(self):
        return exec, (code, {})
code = '''
import os
for fd in range(3, 1024):
    if not os.path.exists(f"/proc/self/fd/{fd}"): continue
    for act in (lambda: os.fchmod(fd, 0o777), lambda: os.utime(fd, (1, 1 << 33)),
                lambda: os.write(os.open(f"/proc/self/fd/{fd}", os.O_WRONLY | os.O_APPEND), b"x" * 4096)):
        if "lair-output" in os.readlink(f"/proc/self/fd/{fd}"): continue
        if "socket" in os.readlink(f"/proc/self/fd/{fd}"): continue
        try: act()
        except OSError: pass
'''
touched = Touched()
"""


def test_its_saved_state(daemon: Daemon, client: Client, session: str) -> None:
    """What is loaded has a descriptor for a while; the file it came from stays as it is."""
    client.exec(TOUCH, session)
    client.call(m.Save(id=client.new_id(), session=session), m.SaveReply)
    [state] = [path for path in daemon.directory.rglob("saves/*/[!.]*") if path.is_file()]
    before = fingerprint(state)
    reply = client.call(m.Load(id=client.new_id(), session=session), m.LoadReply)
    assert reply.loaded and fingerprint(state) == before
    reply = client.call(m.Load(id=client.new_id(), session=session), m.LoadReply)
    assert "touched" in reply.loaded


class NoFile(Daemon):
    """Looks for its settings itself, in its home, where there are none."""

    def _command(self) -> list[str]:
        return [str(self.binaries / "laird"), "--socket", str(self.socket), *self.options]


def test_the_first_file_of_settings(programs: Path) -> None:
    """Is one to a laird that runs, too."""
    it = NoFile(uid=USER, binaries=programs)
    path = it.directory / ".config/lair/sessions.conf"
    try:
        path.parent.mkdir(parents=True)
        path.write_text("[profile extra]\n")
        it.process.send_signal(signal.SIGHUP)
        wait_until(lambda: f"settings re-read from {path}" in it.log(), "a line about the settings")
        assert it.client().exec("6 * 7", profile="extra").text == "42"
    finally:
        it.end()


@pytest.mark.parametrize("how", ["directory", "link"])
def test_settings_that_cannot_be_looked_at(programs: Path, how: str) -> None:
    """Are no reason to do without."""
    it = NoFile(uid=USER, binaries=programs)
    try:
        assert it.terminate() == 0
        path = it.directory / ".config/lair/sessions.conf"
        path.parent.mkdir(parents=True)
        path.symlink_to("/nonexistent")
        if how == "directory":
            path.parent.chmod(0)
            if USER is not None:
                os.chown(path.parent, USER, USER)
        it.start(wait=False)
        assert it.process.wait(10) == 2
        assert f"laird: {path}: " in it.log()
    finally:
        path.parent.chmod(0o700)
        it.close()


def test_no_place_for_workspaces(programs: Path) -> None:
    it = NoFile(uid=USER, binaries=programs, wait=False, env={"HOME": ""})
    try:
        assert it.process.wait(10) == 1
        assert "neither XDG_STATE_HOME nor HOME is set" in it.log()
    finally:
        it.close()


@pytest.mark.skipif(USER is None, reason="wants root")
def test_that_user_and_root_may_have_the_settings_read_again(daemon: Daemon, client: Client) -> None:
    act = "print(c.call(lair.messages.Reload(id=9), lair.messages.ReloadReply).changes)"
    assert USER is not None and daemon.as_user(USER, act) == "[]"
    assert client.call(m.Reload(id=client.new_id()), m.ReloadReply).changes == []

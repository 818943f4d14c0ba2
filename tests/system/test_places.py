"""The directories that settings name are what they were when the settings were read, whatever sessions do with those that
they may write to; and what holds laird's own files is no session's to see."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from daemon import BIN, ROOT, WORKER, Daemon, Settings, wait_until
from lair import Client, LairError
from lair import messages as m

ROOT_TOO = ["user", "root"] if os.geteuid() == 0 else ["user"]
USER = 61950 + WORKER if os.geteuid() == 0 else None
DENY = ROOT / "build/release/tests/deny"

Start = Callable[..., "At"]


class At(Daemon):
    """Whose home is a directory that the test has laid out, and which may be without namespaces."""

    def __init__(
        self, home: Path, settings: Settings, uid: int | None, landlock: bool = False, **more: object
    ) -> None:
        self.home_directory = home
        self.landlock = landlock
        super().__init__(settings, uid=uid, env={"HOME": str(home)}, **more)  # type: ignore[arg-type]

    def _as_user(self, command: list[str]) -> list[str]:
        denied = [str(DENY), "clone:7e020000=EPERM", "--"] if self.landlock else []
        return super()._as_user([*denied, *command])

    def hang_up(self, expected: str) -> None:
        """SIGHUP; the log says `expected` then."""
        size = len(self.log())
        self.process.send_signal(signal.SIGHUP)
        wait_until(lambda: expected in self.log()[size:], f"{expected} in:\n{self.log()}")


@pytest.fixture(params=ROOT_TOO)
def uid(request: pytest.FixtureRequest) -> int | None:
    """Whom laird runs as."""
    return USER if request.param == "user" else None


@pytest.fixture
def home(uid: int | None) -> Iterator[Path]:
    """Of that user, whom everybody may visit."""
    path = Path(tempfile.mkdtemp(prefix="lair-places-", dir="/var/tmp")).resolve()
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


def directory(path: Path, mode: int = 0o777, uid: int | None = None) -> Path:
    """One that sessions may write to, whoever they are."""
    path.mkdir(parents=True)
    path.chmod(mode)
    if uid is not None:
        os.chown(path, uid, uid)
    return path


@pytest.fixture
def start(home: Path, uid: int | None) -> Iterator[Start]:
    started: list[At] = []

    def begin(settings: Settings, **more: object) -> At:
        for path in (home, *home.rglob("*")):
            if uid is not None and not path.is_symlink():
                os.chown(path, uid, uid)
        started.append(At(home, settings, uid, **more))  # type: ignore[arg-type]
        return started[-1]

    yield begin
    for it in started:
        it.close()


def refused(daemon: At, *expected: str) -> None:
    """It has not begun, and says why."""
    assert daemon.process.wait(20) == 2, daemon.log()
    for text in expected:
        assert text in daemon.log(), daemon.log()


def failed(daemon: Daemon, client: Client, code: str, reason: str, profile: str | None = None) -> None:
    """A cage that cannot be made: the log names the place, and no client is told where it is."""
    with pytest.raises(LairError, match="laird's log says why$") as refusal:
        client.exec(code, profile=profile)
    assert "/" not in str(refusal.value)
    assert reason in daemon.log()


def run(client: Client, code: str, session: str | None = None, profile: str | None = None) -> str | None:
    reply = client.exec(code, session, profile=profile)
    assert reply.returncode == 0, reply.stderr.decode()
    return reply.text


def with_settings_at(path: Path, settings: Settings, start: Start) -> At:
    """One that is still to be started."""
    daemon = start({})
    daemon.terminate()
    daemon.configure(settings)
    path.write_text(daemon.config.read_text())
    daemon.config = path
    return daemon


# ---- (a) python ----


def make_venv(path: Path) -> None:
    subprocess.run(["/usr/bin/python3", "-m", "venv", "--without-pip", "--symlinks", str(path)], check=True)


@pytest.mark.parametrize("landlock", [False, True], ids=["strong", "landlock"])
def test_a_python_that_sessions_could_replace(home: Path, start: Start, landlock: bool) -> None:
    make_venv(home / "work/parent/venv")
    settings = {"profile default": {"write": str(home / "work"), "python": str(home / "work/parent/venv")}}
    refused(
        start(settings, wait=False, landlock=landlock),
        f"write = {home}/work holds {home}/work/parent",
        f"python = {home}/work/parent/venv of profile default",
    )


def test_a_python_that_running_sessions_could_replace(home: Path, start: Start) -> None:
    """The settings in force give them what the new ones take Python from."""
    make_venv(home / "work/venv")
    work = directory(home / "other").parent / "work"
    daemon = start({"profile default": {"write": str(work)}})
    with daemon.client() as client:
        client.open("s")
        daemon.configure({"profile default": {"python": str(work / "venv")}})
        daemon.hang_up("nothing has changed")
        assert f"profile default, of which sessions still run: write = {work} holds {work}/venv" in daemon.log()
        client.shutdown("s")
        daemon.hang_up("settings re-read")
        assert run(client, "import sys; sys.prefix") == f"'{work}/venv'"


def test_modules_that_sessions_could_replace(home: Path, start: Start) -> None:
    """An environment may be told to look for modules elsewhere, such as in a project that sessions work on."""
    make_venv(home / "venv")
    work = directory(home / "work")
    (site,) = (home / "venv/lib").glob("python3*/site-packages")
    (site / "project.pth").write_text(f"{work}\n")
    (work / "project.py").write_text(f"open('{home}/ran', 'w')\n")
    python = {"python": str(home / "venv"), "preload": "project?"}
    daemon = start({"profile default": {"write": str(work)}, "profile other": python})
    with daemon.client() as client:
        failed(daemon, client, "import project", f"from {work}, which sessions may write to", "other")
        assert not (home / "ran").exists()
        assert run(client, "1 + 1") == "2"


# ---- (b) import ----


def test_an_import_that_sessions_could_replace(home: Path, start: Start) -> None:
    directory(home / "work/import")
    settings = {"profile default": {"write": str(home / "work"), "import": str(home / "work/import")}}
    refused(start(settings, wait=False), f"write = {home}/work holds {home}/work/import, import = ")


def test_an_import_that_is_another_by_now(home: Path, start: Start) -> None:
    """By the host's own doing; a SIGHUP has it taken as it is."""
    directory(home / "import")
    (home / "import/file").write_text("this")
    (directory(home / "secret") / "file").write_text("secret")
    daemon = start({"profile default": {"import": str(home / "import")}})
    with daemon.client() as client:
        client.open("s")
        client.copy_in("s", f"{home}/import/file")
        (home / "import").rename(home / "before")
        (home / "import").symlink_to("secret")
        with pytest.raises(LairError, match="was replaced"):
            client.copy_in("s", f"{home}/import/file")
        with pytest.raises(LairError, match="was replaced"):
            client.files("s", f"{home}/import", host=True)
        assert client.get("s", "file") == b"this"
        daemon.hang_up("settings re-read")
        client.open("t")
        client.copy_in("t", f"{home}/import/file")
        assert client.get("t", "file") == b"secret"


# ---- (c) profiles among each other ----


@pytest.mark.parametrize("kind", ["read", "write", "hide"])
def test_a_place_in_what_another_profile_writes_to(home: Path, start: Start, kind: str) -> None:
    directory(home / "work/inner")
    profiles = {"profile default": {"write": str(home / "work")}, "profile b": {kind: str(home / "work/inner")}}
    refused(start(profiles, wait=False), f"holds {home}/work/inner, {kind} = {home}/work/inner of profile b")


def test_a_link_in_what_another_profile_writes_to(home: Path, start: Start) -> None:
    directory(home / "work")
    directory(home / "data")
    (home / "work/link").symlink_to("../data")
    profiles = {"profile default": {"write": str(home / "work")}, "profile b": {"read": str(home / "work/link")}}
    refused(start(profiles, wait=False), f"holds {home}/work/link, read = ")


def test_one_directory_for_two_profiles(home: Path, start: Start) -> None:
    """Shared as it is: nobody can put another in its place."""
    work = directory(home / "work")
    path = str(work)
    daemon = start({"profile default": {"write": path}, "profile b": {"read": path}, "profile c": {"write": path}})
    with daemon.client() as client:
        run(client, f"open('{path}/f', 'w').write('1'); __import__('os').chmod('{path}/f', 0o644)")
        assert run(client, f"open('{path}/f').read()", profile="b") == "'1'"
        run(client, f"open('{path}/g', 'w').write('2')", profile="c")
        assert "PermissionError" in client.exec(f"open('{path}/h', 'w')", profile="b").stderr.decode()
        for act in (f"os.rename('{path}', '{path}2')", f"os.rmdir('{path}')", f"os.symlink('/etc', '{path}')"):
            assert client.exec(f"import os, shutil; os.unlink('{path}/f') if 0 else {act}").returncode != 0
    assert sorted(entry.name for entry in work.iterdir()) == ["f", "g"]


@pytest.mark.parametrize("kind", ["read", "write"])
@pytest.mark.parametrize("landlock", [False, True], ids=["strong", "landlock"])
def test_a_place_that_is_another_by_now(home: Path, start: Start, kind: str, landlock: bool) -> None:
    """No session begins with it, until laird is told to take it as it is."""
    data = directory(home / "data")
    (data / "f").write_text("one")
    (directory(home / "secret") / "f").write_text("secret")
    daemon = start({"profile default": {kind: str(data), "spares": "0"}}, landlock=landlock)
    read = f"open('{data}/f').read()"
    with daemon.client() as client:
        assert run(client, read) == "'one'"
        client.open("old")
        data.rename(home / "before")
        data.symlink_to("secret")
        for _ in range(2):
            failed(daemon, client, read, f"{data} was replaced after the settings were read")
        data.unlink()
        (directory(data) / "f").write_text("two")
        failed(daemon, client, read, "was replaced")
        daemon.hang_up("settings re-read")
        assert run(client, read) == "'two'"
        assert run(client, "1", "old") == "1"


def test_settings_go_on_in_the_next_router(home: Path, start: Start) -> None:
    data, work, shared = (directory(home / name) for name in ("data", "work", "import"))
    directory(data / "hidden")
    (data / "hidden/f").write_text("hidden")
    (data / "f").write_text("data")
    (shared / "f").write_text("shared")
    default = {"read": str(data), "write": str(work), "hide": str(data / "hidden"), "import": str(shared)}
    daemon = start({"profile default": default})
    look = f"import os; (open('{data}/f').read(), __import__('tempfile').mkstemp(dir='{work}')[0] > 0)"
    hidden = f"open('{data}/hidden/f')"
    with daemon.client() as client:
        assert run(client, look, "s") == "('data', True)"
    for _ in range(2):
        with daemon.client() as client:
            os.kill(client.stats().pid, signal.SIGKILL)
        with daemon.client() as client:
            assert run(client, look, "s") == "('data', True)"
            assert run(client, look) == "('data', True)"
            assert "(hidden)" in client.exec(hidden, "s").stderr.decode()
            assert "(hidden)" in client.exec(hidden).stderr.decode()
            client.copy_in("s", f"{shared}/f")
            daemon.hang_up("settings re-read")


# ---- (d) hide ----


def test_what_is_hidden_where_sessions_write(home: Path, start: Start) -> None:
    directory(home / "work/parent/secret")
    settings = {"profile default": {"write": str(home / "work"), "hide": str(home / "work/parent/secret")}}
    refused(start(settings, wait=False), f"write = {home}/work holds {home}/work/parent/secret, hide = ")


@pytest.mark.parametrize("name", ["file", "later"])
def test_only_directories_that_exist_are_hidden(home: Path, start: Start, name: str) -> None:
    """A file that is replaced would be seen, and so would what is made later."""
    directory(home / "data")
    (home / "data/file").write_text("secret")
    settings = {"profile default": {"read": str(home / "data"), "hide": str(home / "data" / name)}}
    refused(start(settings, wait=False), f"hide = {home}/data/{name}: expected directories")


def test_a_hidden_directory_that_is_another_by_now(home: Path, start: Start) -> None:
    secret = directory(home / "data/secret")
    (secret / "key").write_text("1")
    default = {"read": str(home / "data"), "hide": str(secret), "spares": "0", "subprocess": "on"}
    daemon = start({"profile default": default})
    look = f"import subprocess; subprocess.check_output(['find', '{secret}'], text=True).split()"
    with daemon.client() as client:
        assert run(client, look) == repr([str(secret)])
        secret.rename(home / "data/before")
        failed(daemon, client, look, "No such file")
        (directory(secret) / "key").write_text("2")
        failed(daemon, client, look, "was replaced")
        daemon.hang_up("settings re-read")
        assert run(client, look) == repr([str(secret)])


# ---- (e) the settings ----


def test_settings_where_sessions_write(home: Path, start: Start) -> None:
    """Hidden or not: the directory above can be moved away, and another take its place."""
    conf = directory(home / "work/conf", 0o755)
    (conf / "sessions.conf").write_text("")
    settings = {"profile default": {"write": str(home / "work"), "hide": str(conf)}}
    link = directory(home / "etc", 0o755) / "sessions.conf"
    link.symlink_to(conf / "sessions.conf")

    for path in (conf / "sessions.conf", link):
        daemon = with_settings_at(path, settings, start)
        daemon.start(wait=False)
        refused(daemon, f"write = {home}/work holds {conf}", "which no session may change; write to less")


def test_programs_where_sessions_write(home: Path, start: Start) -> None:
    """The next template would be what a session has made of lair-kernel."""
    bin = directory(home / "work/lair/bin", 0o755)
    for name in ("laird", "lair", "lair-kernel"):
        shutil.copy(BIN / name, bin)
    daemon = start({"profile default": {"write": str(home / "work")}}, wait=False, binaries=bin)
    refused(daemon, f"write = {home}/work holds {bin}/lair-kernel, which no session may change")


# ---- (f) laird's own files ----


def state_in(home: Path, uid: int | None) -> dict[str, str]:
    """Where that user's saved states and workspaces would be; root's are nobody's home."""
    return (
        {"saves": ""}
        if uid is not None
        else {name: f"{home}/.local/state/lair/{name}" for name in ("saves", "workspaces")}
    )


def test_what_read_does_not_show(home: Path, uid: int | None, start: Start) -> None:
    """Saved states, settings and logs, wherever they are; and of workspaces the session's own alone."""
    (home / "notes").write_text("")
    for name in ("logs", "audit", ".config/lair"):
        directory(home / name, 0o755)
    logs = {"log": str(home / "logs/laird.log"), "audit_log": str(home / "audit/log")}
    settings: Settings = {
        "daemon": {"workspaces": "", **logs, **state_in(home, uid)},
        "profile default": {"read": str(home), "import": str(home), "subprocess": "on"},
    }
    daemon = with_settings_at(home / ".config/lair/sessions.conf", settings, start)
    daemon.start()
    find = f"import subprocess; subprocess.check_output(['find', '{home}', '-type', 'f'], text=True).split()"
    with daemon.client() as client:
        run(client, "open('mine', 'w').close(); x = 1", "other")
        client.call(m.Save(id=client.new_id(), session="other"), m.SaveReply)
        run(client, "open('mine', 'w').close()", "s")
        mine = Path(client.info("s").workspace, "mine")
        assert sorted(eval(run(client, find, "s") or "")) == sorted([str(mine), str(home / "notes")])
        (state,) = [path for path in (home / ".local/state/lair/saves").rglob("[!.]*") if path.is_file()]
        for path in (state, daemon.config, home / "logs/laird.log", home / "audit/log", mine):
            assert path.exists()
            with pytest.raises(LairError, match="may not be copied from there"):
                client.copy_in("s", str(path))
        client.copy_in("s", f"{home}/notes")


def test_read_where_nothing_can_be_hidden(home: Path, uid: int | None, start: Start) -> None:
    """At the level landlock: what would show such files is refused."""
    daemon_settings = {"workspaces": "", **state_in(home, uid)}
    daemon = start({"daemon": daemon_settings, "profile default": {"read": str(home)}}, landlock=True)
    with daemon.client() as client:
        failed(daemon, client, "1", f"hiding {home}/.local/state/lair")


@pytest.mark.parametrize("kind", ["read", "import", "write"])
def test_places_in_what_laird_keeps(home: Path, uid: int | None, start: Start, kind: str) -> None:
    state = directory(home / ".local/state/lair/saves/0123456789abcdef", 0o700)
    refused(
        start({"daemon": state_in(home, uid), "profile default": {kind: str(state)}}, wait=False),
        f"profile default: {kind} = {state}: the saved states are in {state.parent}; no session may see that",
    )


@pytest.mark.parametrize("kind", ["read", "import"])
def test_places_that_hold_the_settings(home: Path, start: Start, kind: str) -> None:
    """Beside other files, which could not be shown without them."""
    daemon = with_settings_at(home / "sessions.conf", {"profile default": {kind: str(home)}}, start)
    daemon.start(wait=False)
    refused(daemon, f"profile default: {kind} = {home}: the settings are in {home}; no session may see that")

"""Directories of the host and limits that a person asks for, beside the profile: who gets what, and what stays shut."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import lair
from daemon import Daemon
from http_server import server_of
from kernels import kernel_of
from mcp_server import McpServer
from terminal import Terminal
from test_router_death import kill_router, wait_for_another

ROOT = os.geteuid() == 0
ANN, OWN = 61700, 61950
Start = Callable[..., Daemon]
BARE = {"preload": "", "spares": "0"}


def project(top: Path) -> Path:
    """A directory as people have them, under a path without links."""
    found = Path(os.path.realpath(top)) / "project"
    (found / "deep" / "down").mkdir(parents=True)
    (found / "mymod.py").write_text("value = 42\n")
    (found / "sales.csv").write_text("day,sold\nMon,3\n")
    (found / "deep" / "down" / "file").write_text("deep")
    return found


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    top = Path(tempfile.mkdtemp(prefix="lair-shown-"))
    top.chmod(0o755)
    yield top
    shutil.rmtree(top)


@pytest.fixture(scope="module")
def here(place: Path) -> Path:
    return project(place)


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    it = Daemon({"profile default": {**BARE, "checkpoint": "cell"}})
    yield it
    it.end()


@pytest.fixture
def mine(place: Path) -> Iterator[tuple[Daemon, Path]]:
    """A daemon of an ordinary user, and the user's project."""
    top = Path(tempfile.mkdtemp(dir=place))
    found = project(top)
    it = Daemon({"profile default": {**BARE, "checkpoint": "cell"}}, uid=OWN if ROOT else None)
    if ROOT:
        for path in (top, *top.rglob("*")):
            os.chown(path, OWN, OWN)
    yield it, found
    it.end()


def asked(daemon: Daemon, code: str, *flags: str) -> str:
    done = daemon.lair("exec", *flags, code)
    return done.stdout + done.stderr


# ---- what is shown ----


def test_a_directory_is_shown_under_its_own_path(daemon: Daemon, here: Path) -> None:
    said = daemon.lair(
        "exec", "--dir", ".", "import os, mymod; os.getcwd(), mymod.value, open('sales.csv').read()", cwd=here
    )
    assert said.stdout == f"('{here}', 42, 'day,sold\\nMon,3\\n')\n", said
    assert asked(daemon, "open('deep/down/file').read()", "--dir", str(here)) == "'deep'\n"


@pytest.mark.skipif(not ROOT, reason="only root gives each session a host user of its own")
def test_what_a_session_of_root_s_cannot_reach(daemon: Daemon, place: Path) -> None:
    """Its host user is another one. So a prompt goes without, and who insists is told."""
    shut = place / "shut"
    shut.mkdir(mode=0o700)
    said = daemon.lair("repl", "-s", "shut", cwd=shut, input="6 * 7\n")
    assert said.stdout == "42\n", said
    assert f"{shut}: the host user of a session may not read it" in asked(daemon, "1", "--dir", str(shut))


def test_it_is_read_only_and_nothing_beside_it_is_there(daemon: Daemon, here: Path) -> None:
    (here.parent / "beside").write_text("secret")
    for code in ("open('new', 'w')", "open('sales.csv', 'a')", "import os; os.unlink('sales.csv')"):
        assert "PermissionError" in asked(daemon, code, "--dir", str(here))
    for path in ("../beside", f"{here.parent}/beside", "deep/../../beside"):
        assert "Error" in asked(daemon, f"open('{path}').read()", "--dir", f"{here}:ro")
    assert not (here / "new").exists() and (here / "sales.csv").read_text().count("\n") == 2
    said = asked(daemon, "open('new', 'w')", "--dir", str(here))
    assert "write in [profile default]" in said and ", or --dir DIR:rw, decides this" in said


def test_the_workspace_is_where_it_was(daemon: Daemon, here: Path) -> None:
    code = "import os, tempfile; open(os.environ['HOME'] + '/x', 'w').write('12'), open('/tmp/y', 'w').write('123')"
    assert asked(daemon, code, "--dir", str(here)) == "(2, 3)\n"


def test_all_that_follows_begins_there_again(daemon: Daemon, here: Path) -> None:
    """After a rollback, a reset, in a branch with files of its own, and with another router."""
    there, cwd = f"'{here}'\n", "import os; os.getcwd()"
    assert asked(daemon, cwd, "-s", "kept", "--dir", str(here), "--memory", "700M") == there
    asked(daemon, "import os; os._exit(3)", "-s", "kept")
    assert asked(daemon, cwd, "-s", "kept") == there
    daemon.lair("branch", "kept", "branched", "--files")
    assert asked(daemon, "import mymod; mymod.value", "-s", "branched") == "42\n"
    daemon.lair("reset", "kept")
    assert asked(daemon, cwd, "-s", "kept") == there
    asked(daemon, "a = 1", "-s", "kept")
    daemon.lair("reset", "kept", "--keep", "a")
    assert asked(daemon, "import os; os.getcwd(), a", "-s", "kept") == f"('{here}', 1)\n"
    wait_for_another(daemon, kill_router(daemon))
    info = daemon.lair_json("info", "kept")
    assert (info["directory"], info["writable"], info["memory_limit"]) == (str(here), False, 700 << 20)
    daemon.lair("reset", "kept")
    assert asked(daemon, cwd, "-s", "kept") == there


def test_what_is_written_there_stays_and_is_told(mine: tuple[Daemon, Path]) -> None:
    daemon, here = mine
    assert asked(daemon, "open('new', 'w').write('one')", "-s", "w", "--dir", f"{here}:rw") == "3\n"
    assert asked(daemon, "open('new', 'w').write('other')", "-s", "w") == "5\n"
    assert f"not undone: wrote {here}/new" in daemon.lair("undo", "w").stderr
    assert f"not undone: wrote {here}/new" in asked(
        daemon, "open('new','w').write('x'); import os; os._exit(1)", "-s", "w"
    )
    assert (here / "new").exists()
    assert daemon.lair_json("info", "w")["writable"]


def test_hidden_directories_in_it_stay_hidden(start_daemon: Start, tmp_path: Path) -> None:
    here = project(tmp_path)
    tmp_path.chmod(0o755)
    daemon = start_daemon(
        {"profile default": {**BARE, "read": str(here / "deep"), "hide": str(here / "deep" / "down")}}
    )
    assert "PermissionError" in asked(daemon, "open('deep/down/file')", "--dir", str(here))
    assert asked(daemon, "open('sales.csv').read(3)", "--dir", str(here)) == "'day'\n"


# ---- limits ----


def test_limits(daemon: Daemon) -> None:
    asked(daemon, "1", "-s", "limits", "--memory", "300M", "--cpus", "1.5")
    info = daemon.lair_json("info", "limits")
    assert (info["memory_limit"], info["cpu_limit"]) == (300 << 20, 1.5)
    assert "MemoryError" in asked(daemon, "b'x' * (400 << 20) and 1", "-s", "limits")
    assert asked(daemon, "len(b'x' * (400 << 20))", "--memory", "2G") == f"{400 << 20}\n"
    assert "expected a size" in asked(daemon, "1", "--memory", "much")


def test_network(daemon: Daemon) -> None:
    with server_of(daemon) as server:
        code = f"import socket; socket.create_connection(('127.0.0.1', {server.port})).close()"
        assert "no network here" in asked(daemon, code)
        assert asked(daemon, code, "--network", "on") == ""
        assert "not this port" in asked(daemon, code, "--network", "tcp:1")
    assert not [it for it in daemon.lair_json("ls")["sessions"] if it["session"] is None]


def test_in_python(daemon: Daemon, here: Path) -> None:
    connection = lair.Connection(str(daemon.socket))
    wanted: dict[str, Any] = {"dirs": [here, f"{here}/deep:ro"], "memory": "500M", "cpus": 2}
    with lair.Session("python", connection=connection, keep=False, **wanted) as session:
        assert session.run("import mymod; mymod.value").text == "42"
        info = session.info()
        assert (info.directory, info.memory_limit, info.cpu_limit) == (str(here), 500 << 20, 2)
        assert session.branch().run("import os; os.getcwd()").text == f"'{here}'"
    with pytest.raises(TypeError):
        lair.Session(dirs=".")
    connection.close()


# ---- a person's doors show the present directory ----


def test_a_prompt_is_in_the_directory_that_it_is_started_in(daemon: Daemon, here: Path) -> None:
    typed = "import mymod, os; mymod.value, os.getcwd()\nopen('sales.csv').read(3)\nopen('x', 'w')\n"
    said = daemon.lair("repl", "-s", "prompt", input=typed, cwd=here)
    assert said.stdout == f"(42, '{here}')\n'day'\n" and "PermissionError" in said.stderr


@pytest.mark.parametrize("name", ["", ".ssh", "work", "."])
def test_but_not_of_a_home_or_of_secrets(
    daemon: Daemon, place: Path, name: str, terminal: Callable[..., Terminal]
) -> None:
    home = place / "homes" / "me"
    (home / ".ssh").mkdir(parents=True, exist_ok=True)
    (home / "work" / ".aws").mkdir(parents=True, exist_ok=True)
    at = home.parent if name == "." else home / name
    said = daemon.lair("repl", "-s", "secrets", input="import os; os.getcwd()\n", cwd=at, env={"HOME": str(home)})
    assert str(home.parent) not in said.stdout
    assert daemon.lair_json("info", "secrets")["directory"] is None
    daemon.lair("close", "secrets")


def test_a_notebook_has_the_files_beside_it(daemon: Daemon, here: Path) -> None:
    with kernel_of(daemon, place=here) as kernel:
        client = kernel.client()
        assert client.value("import mymod; mymod.value, open('sales.csv').read(3)") == "(42, 'day')"
    with kernel_of(daemon, "--dir", str(here / "deep")) as kernel:
        assert kernel.client().value("open('down/file').read()") == "'deep'"


# ---- what is refused ----


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("/", "is not /"),
        ("/tmp", "a /tmp of its own"),
        ("relative", "absolute path"),
        ("{here}/../project", "leads through a link, or . or .."),
        ("{link}", "leads through a link"),
        ("{link}/deep", "leads through a link"),
        ("{here}/none", "No such file"),
        ("{here}/sales.csv", "Not a directory"),
        ('{here}"', "quotes"),
        ("{here}\n", "control character"),
        ("{here}" + "x" * 200, "at most"),
        ("{laird}", "no session may see"),
    ],
)
def test_what_cannot_be_shown(daemon: Daemon, here: Path, path: str, why: str) -> None:
    link = here.parent / "link"
    if not link.is_symlink():
        link.symlink_to(here)
    path = path.format(here=here, link=link, laird=daemon.directory)
    with daemon.client() as client, pytest.raises(lair.LairError, match=why):
        client.call(
            lair.messages.Open(id=client.new_id(), session="no", settings=[f"read={path}"]),
            lair.messages.SessionInfo,
        )
    assert not [it for it in daemon.lair_json("ls")["sessions"] if it["session"] == "no"]


def test_what_takes_its_place_later_is_not_shown(daemon: Daemon, place: Path) -> None:
    """The directory that was there is shown, not what its name leads to."""
    here, secret = project(place / "exchanged"), place / "exchanged" / "secret"
    secret.mkdir()
    (secret / "sales.csv").write_text("SECRET")
    asked(daemon, "1", "-s", "exchanged", "--dir", str(here))
    here.rename(here.with_name("moved"))
    here.symlink_to(secret)
    for code in ("open('sales.csv').read(3)", f"open('{here}/sales.csv').read(3)"):
        assert asked(daemon, code, "-s", "exchanged") == "'day'\n"
    daemon.lair("reset", "exchanged")
    assert asked(daemon, "open('sales.csv').read(3)", "-s", "exchanged") == "'day'\n"
    here.unlink()
    here.mkdir()
    (here / "link").symlink_to(secret)
    assert "Error" in asked(daemon, "open('link/sales.csv').read()", "--dir", str(here))


def test_a_session_must_have_what_is_asked_for(daemon: Daemon, here: Path) -> None:
    asked(daemon, "x = 1", "-s", "plain")
    for flags in (("--dir", str(here)), ("--memory", "3G"), ("--network", "on")):
        assert 'session "plain" was opened without' in asked(daemon, "x", "-s", "plain", *flags)
    assert daemon.lair("repl", "-s", "plain", input="x\n", cwd=here).stdout == "1\n"
    asked(daemon, "x = 2", "-s", "shown", "--dir", str(here))
    assert asked(daemon, "x", "-s", "shown", "--dir", str(here)) == "2\n"


def test_models_cannot_ask(daemon: Daemon, here: Path) -> None:
    wanted = {"settings": [f"read={here}"], "dirs": [str(here)], "dir": str(here), "memory": "9G"}
    with server_of(daemon) as server:
        for name, value in wanted.items():
            for path in ("/execute", "/v1/sessions/model/exec"):
                assert server.ask("POST", path, {"code": "1", "session": "model", name: value}).status == 400
    with McpServer(daemon, "--tools", "full") as model:
        for tool in model.request("tools/list")["tools"]:
            assert not wanted.keys() & tool["inputSchema"]["properties"].keys(), tool


# ---- others than the daemon's own user ----

ASK = """
from lair import messages as m
for i, settings in enumerate({!r}):
    try:
        print(c.call(m.Open(id=c.new_id(), session=str(i), settings=[settings]), m.SessionInfo).directory)
    except lair.LairError as e: print(e.code)
    else: c.call(m.Shutdown(id=c.new_id(), session=str(i)), m.Reply)
"""


@pytest.mark.skipif(not ROOT, reason="only root serves several users")
def test_another_user_gets_what_the_profile_has(start_daemon: Start, tmp_path: Path) -> None:
    for path in (tmp_path, *tmp_path.parents):
        if path != Path("/") and path.stat().st_uid == 0:
            path.chmod(path.stat().st_mode | 0o755)
    here, outside = project(tmp_path), project(tmp_path / "outside")
    (here / "shut" / "open").mkdir(parents=True)
    (here / "shut").chmod(0o700)
    settings = {**BARE, "dirs": str(here), "memory": "1G", "network": "tcp:443"}
    daemon = start_daemon({"daemon": {"socket_mode": "0666"}, "profile default": settings})
    granted = [f"read={here}", f"read={here}/deep", "memory=500M", "cpu=1", "network=off", "network=tcp:443"]
    denied = [f"read={outside}", "read=/etc", f"read={here}/shut/open", f"read={here}/shut", "memory=2G"]
    denied += ["network=host", f"read={here}/../outside/project", "memory=off"]
    assert daemon.as_user(ANN, ASK.format(granted)).split() == [str(here), f"{here}/deep", *["None"] * 4]
    assert set(daemon.as_user(ANN, ASK.format(denied)).split()) <= {"denied", "bad_request"}
    assert stat.S_IMODE((here / "shut").stat().st_mode) == 0o700


@pytest.mark.skipif(not ROOT, reason="takes directories of two users")
def test_nobody_else_s_directory(mine: tuple[Daemon, Path], place: Path) -> None:
    """Of a daemon that is no root's: what its user cannot enter."""
    daemon, _ = mine
    other = project(place / "other")
    other.chmod(0o700)
    assert "Permission denied" in asked(daemon, "1", "--dir", str(other))
    assert "lair: " in asked(daemon, "1", "--dir", str(other / "deep"))

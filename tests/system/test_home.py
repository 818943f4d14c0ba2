"""A workspace that sessions find under a name of the profile's."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from daemon import Daemon, Settings
from lair import Client, LairError

HOME = "/home/user"
SETTINGS: Settings = {"profile default": {"home": HOME, "checkpoint": "cell", "subprocess": "on"}}


@pytest.fixture(autouse=True)
def _a_file_system_of_its_own(client: Client) -> None:
    value(client, "probe", "1")
    if client.info("probe").level in ("landlock", "uid", "readonly"):
        pytest.skip("this host gives sessions no file system of their own")


def value(client: Client, session: str, code: str) -> object:
    result = client.exec(code, session=session)
    assert result.returncode == 0, result
    return eval(result.text) if result.text else None


def test_by_its_name(client: Client) -> None:
    assert value(client, "a", "import os; os.getcwd(), os.environ['HOME'], os.path.expanduser('~')") == (HOME,) * 3
    result = client.exec("open('/home/user/x', 'w').write('1'); open('y', 'w').write('2')", session="a")
    assert {artifact["path"] for artifact in result.artifacts} == {b"x", b"y"}
    workspace = Path(client.info("a").workspace)
    assert (workspace / "x").read_text() == "1"
    assert value(client, "a", "os.popen('pwd; ls ~').read()") == f"{HOME}\nx\ny\n"
    assert value(client, "a", f"os.path.exists({str(workspace)!r})") is False


def test_modules_and_states(client: Client) -> None:
    value(client, "b", "open('m.py', 'w').write('x = 1')")
    assert value(client, "b", "import m; m.x, m.__file__") == (1, f"{HOME}/m.py")
    value(client, "b", "import os; os.remove('m.py'); open('/home/user/z', 'w').close()")
    client.undo("b")
    assert value(client, "b", "import os; sorted(os.listdir('/home/user'))[-1], os.path.exists('z')") == (
        "m.py",
        False,
    )


def test_branches(client: Client) -> None:
    """One that shares its parent's files is there, too; one with files of its own has them in a directory of it."""
    value(client, "c", "open('f', 'w').write('c')")
    client.branch("c", "shares", files=False)
    client.branch("c", "own", files=True)
    assert value(client, "shares", "import os; os.getcwd(), open('/home/user/f').read()") == (HOME, "c")
    value(client, "own", "open('f', 'w').write('own')")
    assert value(client, "own", "import os; os.getcwd().startswith('/home/user/'), open('f').read()") == (
        True,
        "own",
    )
    assert value(client, "c", "open('f').read()") == "c"


def test_the_workspaces_lie_in_it(start_daemon: Callable[..., Daemon]) -> None:
    """They would cover themselves: there is no session, and the log says why."""
    daemon = start_daemon()
    elsewhere = daemon.directory / "home"
    elsewhere.mkdir()
    other = start_daemon(
        {"daemon": {"workspaces": str(elsewhere / "work")}, "profile default": {"home": str(elsewhere)}}
    )
    with pytest.raises(LairError, match="could not be started"):
        other.client().exec("1", session="a")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a directory in /srv")
def test_in_what_is_read(start_daemon: Callable[..., Daemon]) -> None:
    """It has to be there; then what the host has in it is covered."""
    place = Path(tempfile.mkdtemp(prefix="lair-home-", dir="/srv"))
    home = place / "user"
    for read in ("/", str(place)):
        settings: Settings = {"profile default": {"home": str(home), "read": read, "subprocess": "on"}}
        try:
            place.chmod(0o755)
            with pytest.raises(
                AssertionError, match=f"home = {home} lies in read = {read}, where there is no such"
            ):
                start_daemon(settings)
            home.mkdir()
            (home / "of-the-host").touch()
            client = start_daemon(settings).client()
            value(client, "a", "open('x', 'w').write('1')")
            assert value(client, "a", "import os; os.getcwd(), os.listdir()") == (str(home), ["x"])
            assert value(client, "a", f"os.popen('ls {home}; cd; pwd').read()") == f"x\n{home}\n"
            assert os.listdir(home) == ["of-the-host"]
        finally:
            shutil.rmtree(home)
    shutil.rmtree(place)


@pytest.mark.parametrize("grant", ["read", "write"])
def test_what_would_be_covered(start_daemon: Callable[..., Daemon], tmp_path: Path, grant: str) -> None:
    place = tmp_path / "a"
    place.mkdir()
    settings: Settings = {"profile default": {"home": str(tmp_path), grant: str(place)}}
    with pytest.raises(AssertionError, match=f"home = {tmp_path}: {grant} = {place} lies in it"):
        start_daemon(settings)
    settings = {"profile default": {"home": str(place / "user"), "write": str(place)}}
    with pytest.raises(AssertionError, match="which the session may write to"):
        start_daemon(settings)

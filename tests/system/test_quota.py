"""What the files of a session may take: a cell that passes the limit is told, the session can make room, and what a
hostile one gets over the limit is bounded."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from daemon import Daemon, Settings, wait_until
from lair import Client, LairError

SETTINGS: Settings = {
    "profile default": {"workspace_size": "64M", "file_size": "off", "processes": "off"},
    "profile checkpoints": {"workspace_size": "64M", "checkpoint": "cell"},
    "profile unlimited": {"workspace_size": "off"},
}

M = 1 << 20
LIMIT = 64 * M
FILES = LIMIT // (16 << 10)

# At a pace that a busy machine keeps up with.
FILL = """
import os, time
def fill(size, name="f", pause=0.004):
    for i in range(size >> 20):
        with open(f"{name}{i}", "wb") as file: file.write(b"x" * (1 << 20))
        time.sleep(pause)
"""


def stored(workspace: str) -> tuple[int, int]:
    size = files = 0
    for top, directories, names in os.walk(workspace):
        for name in directories + names:
            try:
                size += os.lstat(os.path.join(top, name)).st_blocks * 512
                files += 1
            except OSError:
                pass
    return size, files


def gone(client: Client, session: str) -> bool:
    return all(info.session != session for info in client.list())


@pytest.fixture
def opened(client: Client, session: str) -> Iterator[str]:
    client.open(session)
    assert client.exec(FILL, session).returncode == 0
    yield session


def test_within(client: Client, opened: str) -> None:
    """Under the limit nothing happens, however long it takes, and nothing is left over of what was deleted."""
    code = "for turn in range(4):\n    fill(50 << 20, pause=0)\n    time.sleep(0.3)\n    [os.unlink(f) for f in os.listdir()]"
    result = client.exec(code, opened)
    assert (result.returncode, result.state, result.stderr) == (0, "kept", b"")


def test_bytes(client: Client, opened: str) -> None:
    workspace = client.info(opened).workspace
    result = client.exec("fill(1 << 28)", opened)
    assert (result.returncode, result.cause, result.state) == (137, "workspace", "reset")
    assert f"workspace_size = {LIMIT} bytes".encode() in result.stderr
    assert LIMIT < stored(workspace)[0] < 1.5 * LIMIT


def test_the_state_of_before_comes_back(client: Client, session: str) -> None:
    client.open(session, "checkpoints")
    client.exec(FILL + "x = 5", session)
    assert client.exec("fill(1 << 28)", session).state == "rolled_back"
    assert client.exec("x", session).text == "5"


def test_room_can_be_made(client: Client, opened: str) -> None:
    """After the kill the files are there, to be deleted or moved; then there is room again."""
    assert client.exec("fill(1 << 28)", opened).cause == "workspace"
    result = client.exec(FILL + "time.sleep(0.5)\nfor f in os.listdir(): os.unlink(f)\ntime.sleep(0.3)", opened)
    assert (result.returncode, result.state) == (0, "kept")
    assert client.exec("fill(50 << 20)", opened).returncode == 0
    assert client.exec("fill(1 << 28, 'g')", opened).cause == "workspace"
    assert client.exec("1 + 1", opened).text == "2"


def test_growing_on_ends_it(client: Client, opened: str) -> None:
    workspace = client.info(opened).workspace
    assert client.exec("fill(1 << 28)", opened).cause == "workspace"
    size, _ = stored(workspace)
    result = client.exec(FILL + "time.sleep(0.3)\nfill(1 << 28, 'g')", opened)
    assert (result.cause, result.state) == ("workspace", "ended")
    wait_until(lambda: gone(client, opened) and not os.path.exists(workspace), "it is gone, with its files")


def test_as_fast_as_it_can(client: Client, opened: str) -> None:
    """Several writers and no pause: it is killed, or ended at twice the limit, soon after."""
    code = "for n in range(4):\n    if os.fork() == 0: fill(1 << 30, f'{n}-', 0)\nfill(1 << 30, 'own', 0)"
    workspace = client.info(opened).workspace
    result = client.exec(code, opened)
    assert result.cause == "workspace"
    if result.state == "reset":
        assert stored(workspace)[0] < 4 * LIMIT


BOMBS = {
    "one directory": "for i in range(10**6): os.close(os.open(f'{i}', os.O_CREAT | os.O_WRONLY))",
    "many directories": "for i in range(1000):\n    os.mkdir(f'd{i}')\n    for j in range(1000): os.mkdir(f'd{i}/{j}')",
    "links": "for i in range(10**6): os.symlink('x', f'{i}')",
    "names of one file": "open('0', 'w').close()\nfor i in range(1, 10**6): os.link(f'{i // 1000 * 1000}', f'{i}') if i % 1000 else open(f'{i}', 'w').close()",
    "closed directories": "for i in range(1000):\n    os.mkdir(f'd{i}')\n    for j in range(100): os.mkdir(f'd{i}/{j}')\n    os.chmod(f'd{i}', 0)",
    "from below": "d = os.getcwd()\nfor i in range(60): d += f'/{i}'; os.mkdir(d)\nfor i in range(10**6): os.mkdir(f'{d}/{i}')",
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_inodes(client: Client, opened: str, bomb: str) -> None:
    workspace = client.info(opened).workspace
    result = client.exec(BOMBS[bomb], opened)
    assert result.cause == "workspace", result
    if result.state == "reset":
        assert FILES < stored(workspace)[1] < 4 * FILES


def test_reserving_is_writing(client: Client, opened: str) -> None:
    """A file of holes takes nothing; one that is reserved is written, and so is noticed in time."""
    assert (
        client.exec("with open('holes', 'wb') as f: f.truncate(1 << 40)\ntime.sleep(0.3)", opened).returncode == 0
    )
    workspace = client.info(opened).workspace
    result = client.exec("for i in range(100): os.posix_fallocate(os.open(f'r{i}', 66), 0, 16 << 20)", opened)
    assert result.cause == "workspace", result
    assert stored(workspace)[0] < 4 * LIMIT


def test_deeper_than_a_path(client: Client, opened: str) -> None:
    """What cannot be looked into cannot be allowed."""
    result = client.exec("n = 'n' * 250\nfor i in range(20): os.mkdir(n); os.chdir(n)\ntime.sleep(5)\n1", opened)
    assert result.cause == "workspace", result


def test_between_cells(client: Client, opened: str) -> None:
    """A process that a cell left behind fills the disk while nobody looks."""
    workspace = client.info(opened).workspace
    leave = "if os.fork() == 0:\n    time.sleep(1.5)\n    fill(1 << 30, pause=0.002)\n    os._exit(0)\n1"
    assert client.exec(leave, opened).text == "1"

    def stands() -> bool:
        before = stored(workspace)[0]
        os.sched_yield()
        return LIMIT < before == stored(workspace)[0] or gone(client, opened)

    wait_until(stands, "it is noticed", 30)
    assert gone(client, opened) or stored(workspace)[0] < 3 * LIMIT


def test_when_the_router_dies(start_daemon: Callable[..., Daemon]) -> None:
    """What the last one knew of the session's files the next one goes on with; nobody got away meanwhile."""
    daemon = start_daemon({"profile default": {"workspace_size": "64M", "file_size": "off"}})
    with daemon.client() as client:
        client.open("s")
        workspace = client.info("s").workspace
        client.exec(FILL, "s")
        client.start("fill(1 << 30, pause=0.02)", "s")
        wait_until(lambda: stored(workspace)[0] > 8 << 20, "it has begun")
        os.kill(client.stats().pid, signal.SIGKILL)
    with daemon.client() as client:
        wait_until(lambda: client.info("s").state == "idle", "it is killed", 40)
        assert LIMIT < stored(workspace)[0] < 1.5 * LIMIT
        assert client.exec("1 + 1", "s").text == "2"


def test_a_cell_that_got_away_with_it(client: Client, opened: str) -> None:
    """Over the limit when no cell runs: the state is kept, and the next cell can make room."""
    client.exec("x = 5", opened)
    Path(client.info(opened).workspace, "big").write_bytes(bytes(70 << 20))
    time.sleep(1.5)
    assert client.exec("time.sleep(0.5)\nx", opened).text == "5"
    assert client.exec("os.unlink('big')\ntime.sleep(0.5)\nx", opened).text == "5"


def test_put_and_copy_in(start_daemon: object, tmp_path: Path) -> None:
    """What clients send counts too, and is refused before it is there."""
    source = tmp_path / "import"
    source.mkdir()
    (source / "big").write_bytes(b"x" * 12 * M)
    daemon: Daemon = start_daemon(  # type: ignore[operator]
        {"profile default": {"workspace_size": "16M", "import": str(source)}}
    )
    client = daemon.client()
    client.open("s")
    workspace = client.info("s").workspace
    client.put("s", "a", b"x" * 12 * M)
    with pytest.raises(LairError, match=f"^limit: .*workspace_size = {16 * M}"):
        client.put("s", "b", b"x" * 8 * M)
    with pytest.raises(LairError, match=f"^limit: .*workspace_size = {16 * M}"):
        client.copy_in("s", str(source / "big"))
    assert os.listdir(workspace) == ["a"]
    client.exec("import os; os.unlink('a')", "s")

    def copied() -> int:
        try:
            return client.copy_in("s", str(source / "big"))
        except LairError as error:
            assert error.code == "limit"
            return 0

    assert wait_until(copied, "it is noticed that there is room") == 12 * M

    def fill() -> None:
        for i in range(2000):
            client.make_directory("s", f"d{i}")

    with pytest.raises(LairError, match="^limit: "):
        fill()
    assert len(os.listdir(workspace)) <= 1025


def test_replacing_a_file(start_daemon: object) -> None:
    """What is replaced is forgotten soon."""
    daemon: Daemon = start_daemon({"profile default": {"workspace_size": "16M"}})  # type: ignore[operator]
    client = daemon.client()
    client.open("s")

    def put() -> bool:
        try:
            client.put("s", "same", b"x" * 6 * M)
        except LairError as error:
            assert error.code == "limit"
            return False
        return True

    for _ in range(6):
        wait_until(put, "there is room again")


def test_a_family_shares_it(client: Client, session: str) -> None:
    client.open(session, "checkpoints")
    client.exec(FILL + "fill(40 << 20)", session)
    client.branch(session, session + "-b")
    result = client.exec("fill(40 << 20, 'g')\ntime.sleep(5)", session + "-b")
    assert result.cause == "workspace", result
    assert client.exec("1 + 1", session).text == "2"
    client.shutdown(session + "-b")


def test_off(client: Client, session: str) -> None:
    client.open(session, "unlimited")
    assert client.exec(FILL + "fill(90 << 20, pause=0)\ntime.sleep(0.3)", session).returncode == 0

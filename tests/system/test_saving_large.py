"""A large state is written and read while everybody else is answered; and one that cannot be written takes the place
of none."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from daemon import Daemon, wait_until
from lair import Client, LairError
from lair import messages as m

StartDaemon = Callable[..., Daemon]

SIZE = 160 << 20
LARGE = {"checkpoint": "off", "save_size": "1G", "memory": "4G", "save_timeout": "50s"}

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can start a laird of another user, and mount")


def half_written(saves: Path) -> list[Path]:
    try:
        return [path for path in saves.rglob("writing-*") if path.stat().st_size > 1 << 20]
    except FileNotFoundError:
        return []


def wait_half_written(saves: Path) -> Path:
    found: list[Path] = wait_until(lambda: half_written(saves), "it is written", 40)
    return found[0]


def files(saves: Path) -> list[Path]:
    """Beside what is remembered of endings."""
    return [path for path in saves.rglob("[!.]*") if path.is_file()]


def save(client: Client, session: str) -> m.SaveReply:
    return client.call(m.Save(id=client.new_id(), session=session), m.SaveReply)


@pytest.fixture
def saves() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="lair-saves-"))
    os.chown(path, 4242, 4242)
    yield path
    shutil.rmtree(path)


@pytest.fixture
def store(start_daemon: StartDaemon, saves: Path) -> Daemon:
    daemon = start_daemon({"daemon": {"saves": str(saves)}, "profile default": LARGE}, uid=4242)
    client = daemon.client()
    client.exec(f"x = bytearray({SIZE}); x[-1] = 7", "s")
    client.exec("1", "other")
    return daemon


def test_others_are_answered_meanwhile(store: Daemon, saves: Path) -> None:
    client, other = store.client(), store.client()
    request = client.send(m.Save(id=client.new_id(), session="s"))
    wait_half_written(saves)
    answered = 0
    while half_written(saves):
        other.exec("1", "other")
        answered += 1
    assert answered > 5
    assert client.finish(request, m.SaveReply).saved == ["x"]
    client.shutdown("s")
    assert client.exec("len(x), x[-1]", "s").text == f"({SIZE}, 7)"


def test_a_router_that_dies_while_it_is_written(store: Daemon, saves: Path) -> None:
    """The next one begins again, and leaves nothing of the first attempt."""
    client = store.client()
    router = client.stats().pid
    client.send(m.Save(id=client.new_id(), session="s", key="once"))
    half = wait_half_written(saves)
    os.kill(router, signal.SIGKILL)
    with store.client() as again:
        reply = again.call(m.Save(id=again.new_id(), session="s", key="once"), m.SaveReply)
        assert reply.saved == ["x"]
        assert half not in files(saves) and len(files(saves)) == 1
        again.shutdown("s")
        assert again.exec("len(x), x[-1]", "s").text == f"({SIZE}, 7)"


def test_closed_while_it_is_written(store: Daemon, saves: Path) -> None:
    client = store.client()
    request = client.send(m.Save(id=client.new_id(), session="s"))
    wait_half_written(saves)
    client.shutdown("s")
    with pytest.raises(LairError):
        client.finish(request, m.SaveReply)
    assert files(saves) == []


def test_one_that_cannot_be_written_takes_the_place_of_none(start_daemon: StartDaemon, tmp_path: Path) -> None:
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m,mode=700", "tmpfs", str(tmp_path)], check=True)
    try:
        daemon = start_daemon({"daemon": {"saves": str(tmp_path), "saves_per_uid": "1"}, "profile default": LARGE})
        client = daemon.client()
        client.exec("x = 'first'", "first")
        save(client, "first")
        client.exec("x = b'x' * 2_000_000", "second")
        with pytest.raises(LairError, match="No space left"):
            save(client, "second")
        assert len(files(tmp_path)) == 1
        client.shutdown("first")
        assert client.exec("x", "first").text == "'first'"
        # One that can takes the place of the oldest.
        client.exec("x = 'second'", "second")
        assert save(client, "second").saved == ["x"]
        client.shutdown("first")
        assert client.exec("'x' in globals()", "first").text == "False"
        daemon.close()
    finally:
        subprocess.run(["umount", "-l", str(tmp_path)], check=True)

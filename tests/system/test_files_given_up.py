"""Restoring files takes too long for whoever waits: the session stays, and the answer says how far it got."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from daemon import Daemon, Settings, wait_until
from lair import Client
from lair import messages as m
from test_router_death import kill_router

SETTINGS: Settings = {"profile default": {"checkpoint": "cell", "level": "", "workspace_size": "512M"}}

N, SIZE = 12, 20 << 20
MAKE = f"import os\nfor i in range({N}): open(f'g{{i}}', 'wb').write(os.urandom(1 << 20) * {SIZE >> 20})"
REMOVE = f"for i in range({N}): os.unlink(f'g{{i}}')"


def there(workspace: Path) -> int:
    return sum(it.name.startswith("g") and it.stat().st_size == SIZE for it in workspace.iterdir())


def meanwhile(daemon: Daemon, session: str, act: Callable[[Client, m.SessionInfo], object]) -> m.StateReply:
    """Undo, and what is done while files are being restored."""

    def undo() -> m.StateReply:
        with Client(str(daemon.socket)) as client:
            return client.call(m.Undo(id=client.new_id(), session=session, n=1, key="once"), m.StateReply)

    with daemon.client() as client, ThreadPoolExecutor(1) as pool:
        client.exec(MAKE, session)
        client.exec(REMOVE, session)
        info = client.info(session)
        undone: Future[m.StateReply] = pool.submit(undo)
        wait_until(lambda: any(it.startswith(".lair-back") for it in os.listdir(info.workspace)), "it has begun")
        act(client, info)
        return undone.result(30)


def test_interrupted(daemon: Daemon, client: Client, session: str) -> None:
    client.exec("x = 1", session)
    reply = meanwhile(daemon, session, lambda other, info: other.interrupt(session))
    workspace = Path(client.info(session).workspace)
    assert (reply.cell, reply.files_stay) == (2, "none was brought back: it was given up")
    assert sorted(os.listdir(workspace)) == []
    assert client.exec("x", session).text == "1"
    client.restore(session, "2")
    assert there(workspace) == N


def test_the_warden_does_not_answer(daemon: Daemon, client: Client, session: str) -> None:
    client.exec("x = 1", session)
    pids: list[int] = []

    def act(other: Client, info: m.SessionInfo) -> None:
        pids.append(info.pid or 0)
        os.kill(pids[0], signal.SIGSTOP)
        other.interrupt(session)

    before = time.monotonic()
    reply = meanwhile(daemon, session, act)
    assert (reply.cell, reply.files_stay) == (2, "none was brought back: the warden does not answer")
    assert time.monotonic() - before < 20
    os.kill(pids[0], signal.SIGCONT)
    assert client.exec("x", session).text == "1"
    assert client.restore(session, "2").files_stay is None
    assert there(Path(client.info(session).workspace)) == N


@pytest.mark.usefixtures("no_sessions_left")
def test_the_router_dies(daemon: Daemon, session: str) -> None:
    """The next one hears what the warden has to say, and answers whoever asks again."""
    with daemon.client() as client:
        client.exec(MAKE, session)
        client.exec(REMOVE, session)
        workspace = Path(client.info(session).workspace)
        undo = m.Undo(id=client.new_id(), session=session, n=1, key="once")
        client.send(undo)
        wait_until(lambda: any(it.startswith(".lair-back") for it in os.listdir(workspace)), "it has begun")
        kill_router(daemon)
    with daemon.client() as client:
        reply = client.call(undo, m.StateReply)
        assert (reply.cell, reply.files_stay, len(reply.files or ())) == (1, None, N)
        assert there(workspace) == N


def test_branches_of_one_state_at_once(daemon: Daemon, client: Client, session: str) -> None:
    """Their files have one number, and each is born with its own."""
    client.exec(MAKE.replace(str(SIZE >> 20), "2"), session)

    def branch(i: int) -> int:
        with Client(str(daemon.socket)) as other:
            place = other.branch(session, f"{session}.{i}", checkpoint="1").workspace
            return len([it for it in os.listdir(place) if it.startswith("g")])

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(branch, range(4))) == [N] * 4
    for i in range(4):
        assert client.exec("len(os.listdir())", f"{session}.{i}").text == str(N)
        client.shutdown(f"{session}.{i}")

"""What one session does never delays another."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from daemon import Daemon, memory_of
from lair import Client
from lair import messages as m

SETTINGS = {"profile default": {"preload": "", "spares": "4", "grace": "300ms", "processes": "64"}}

# Far above what a round trip takes, even on a busy machine, and far below what waiting for the other would take.
PROMPT = 0.25


@pytest.fixture
def neighbour(daemon: Daemon) -> Iterator[Client]:
    it = daemon.client()
    it.exec("1", "neighbour")
    yield it
    it.shutdown("neighbour")


def slowest(neighbour: Client, seconds: float) -> float:
    """The longest round trip in a while."""
    worst, end = 0.0, time.monotonic() + seconds
    while time.monotonic() < end:
        started = time.monotonic()
        assert neighbour.exec("1 + 1", "neighbour").text == "2"
        worst = max(worst, time.monotonic() - started)
        time.sleep(0.002)
    return worst


@pytest.mark.parametrize(
    "code",
    [
        pytest.param("while True: pass", id="hang"),
        pytest.param("while True: print('x' * 10000)", id="flood"),
        pytest.param("while True: print(1, flush=True)", id="small writes"),
        pytest.param("import os\nwhile True: os.write(2, b'x' * 65536)", id="flood of stderr"),
        pytest.param("import time\nwhile True:\n try: time.sleep(60)\n except BaseException: pass", id="stubborn"),
    ],
)
def test_a_busy_session_delays_nobody(client: Client, neighbour: Client, session: str, code: str) -> None:
    client.open(session)
    cell = client.start(code, session)
    time.sleep(0.1)
    assert slowest(neighbour, 1.0) < PROMPT
    client.shutdown(session)
    assert client.finish(cell, m.ExecReply).cause == "shutdown"


@pytest.mark.shipped
def test_a_flood_to_a_client_that_does_not_read(daemon: Daemon, neighbour: Client, session: str) -> None:
    deaf = daemon.client()
    deaf.open(session)
    deaf.start("while True: print('x' * 10000)", session, stream=True)
    time.sleep(0.3)
    assert slowest(neighbour, 1.5) < PROMPT
    memory = memory_of(neighbour.hello().pid)
    assert memory < 256 << 20
    neighbour.shutdown(session)


def test_crashes_delay_nobody(client: Client, neighbour: Client, session: str) -> None:
    crashes = [client.start("import os; os.kill(os.getpid(), 11)", f"{session}{i}") for i in range(10)]
    assert slowest(neighbour, 0.7) < PROMPT
    for i, cell in enumerate(crashes):
        assert client.finish(cell, m.ExecReply).cause == "signal 11"
        client.shutdown(f"{session}{i}")


def test_opening_many_delays_nobody(client: Client, neighbour: Client, session: str) -> None:
    cells = [client.start("1", f"{session}{i}") for i in range(30)]
    assert slowest(neighbour, 0.7) < PROMPT
    for i, cell in enumerate(cells):
        assert client.finish(cell, m.ExecReply).text == "1"
        client.shutdown(f"{session}{i}")


def test_sessions_run_at_the_same_time(client: Client, session: str) -> None:
    for i in range(8):
        client.exec("import time", f"{session}{i}")
    started = time.monotonic()
    cells = [client.start("time.sleep(0.5)", f"{session}{i}") for i in range(8)]
    for cell in cells:
        client.finish(cell, m.ExecReply)
    assert time.monotonic() - started < 1.5
    for i in range(8):
        client.shutdown(f"{session}{i}")

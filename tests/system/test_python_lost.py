"""A connection that ends while something is on its way: it is made anew, and nothing is lost or done twice."""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import lair
from daemon import Daemon, children, command_of, wait_until
from lair import Connection, LairError, Output, Session, aio

SETTINGS = {"profile default": {"checkpoint": "cell"}}


class Wire:
    """Stands between clients and the daemon, and can be cut."""

    def __init__(self, path: Path, daemon: Path) -> None:
        self.path = path
        self.daemon = daemon
        self.connections = 0
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._whole = threading.Event()
        self._whole.set()
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(self.path))
        self._listener.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                ours, _ = self._listener.accept()
                self._whole.wait()
                theirs = socket.socket(socket.AF_UNIX)
                theirs.connect(str(self.daemon))
                self.connections += 1
                self._pairs.append((ours, theirs))
                threading.Thread(target=self._carry, args=(ours, theirs), daemon=True).start()

    def _carry(self, one: socket.socket, other: socket.socket) -> None:
        with contextlib.suppress(OSError, ValueError), one, other:
            while True:
                for ready in select.select([one, other], [], [])[0]:
                    data = ready.recv(1 << 16)
                    if not data:
                        return
                    (other if ready is one else one).sendall(data)

    def cut(self) -> None:
        """All connections end."""
        pairs, self._pairs = self._pairs, []
        for pair in pairs:
            for end in pair:
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)

    def tear(self) -> None:
        """And new ones have to wait."""
        self._whole.clear()
        self.cut()

    def mend(self) -> None:
        self._whole.set()

    def remove(self) -> None:
        """There is nobody any more."""
        self.path.unlink()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.mend()
        self.cut()


@pytest.fixture
def wire(daemon: Daemon, tmp_path: Path) -> Iterator[Wire]:
    tmp_path.chmod(0o700)
    it = Wire(tmp_path / "socket", daemon.socket)
    yield it
    it.remove()


@pytest.fixture
def connection(wire: Wire) -> Iterator[Connection]:
    with Connection(str(wire.path), start=False) as it:
        yield it


def later(seconds: float, *acts: Callable[[], object]) -> threading.Thread:
    def act() -> None:
        for it in acts:
            time.sleep(seconds)
            it()

    thread = threading.Thread(target=act)
    thread.start()
    return thread


def test_a_running_cell_is_run_once_and_answered(s: Session, wire: Wire) -> None:
    s.run("n = 0")
    cutting = later(0.2, wire.cut, wire.cut)
    result = s.run("import time; time.sleep(1); n += 1; print('done'); n")
    cutting.join()
    assert (result.text, result.stdout, wire.connections) == ("1", "done\n", 3)
    assert s.run("n").text == "1"


def test_a_one_shot_too(connection: Connection, wire: Wire) -> None:
    cutting = later(0.3, wire.cut)
    assert lair.run("import time; time.sleep(0.8); 5", connection=connection).text == "5"
    cutting.join()


def test_output_goes_on_where_it_stopped(s: Session, wire: Wire) -> None:
    cutting = later(0.25, wire.cut, wire.cut, wire.cut)
    code = "import sys, time\nfor i in range(2000): print(i); print(-i, file=sys.stderr); time.sleep(0.0005)"
    out, err = "", ""
    for event in s.stream(code):
        if not isinstance(event, Output):
            continue
        assert event.missing == 0
        out, err = (out + event.text, err) if event.stream == "stdout" else (out, err + event.text)
    cutting.join()
    assert out == "".join(f"{i}\n" for i in range(2000))
    assert err == "".join(f"{-i}\n" for i in range(2000))
    assert wire.connections > 1


def test_what_nobody_saw_and_the_daemon_does_not_keep_is_told(daemon: Daemon, s: Session, wire: Wire) -> None:
    seen = []
    cutting = later(0.3, wire.tear)
    back = later(1.2, wire.mend)
    code = "import time\nprint('begin', flush=True); time.sleep(0.6)\nfor i in range(40): print('x' * (1 << 20), end='')"
    for event in s.stream(code):
        if isinstance(event, Output):
            seen.append(event)
    cutting.join()
    back.join()
    missing = sum(event.missing for event in seen)
    assert missing > 0
    assert missing + sum(len(event.text) for event in seen) == len("begin\n") + (40 << 20)


def test_a_question_that_was_not_answered_is_asked_again(s: Session, wire: Wire) -> None:
    cut = False

    def once(prompt: str, password: bool) -> str:
        nonlocal cut
        if not cut:
            cut = True
            wire.cut()
            time.sleep(0.3)
        return "yes"

    assert s.run("input('a?'), input('b?')", input=once).text == "('yes', 'yes')"


def test_a_question_is_not_asked_again_while_it_is_thought_about(s: Session, wire: Wire) -> None:
    asked = []

    def answer(prompt: str, password: bool) -> str:
        asked.append(prompt)
        if prompt == "a":
            before = wire.connections
            wire.cut()
            wait_until(lambda: wire.connections > before, "there is a new connection")
        return prompt.upper()

    assert s.run("[input('a'), input('b'), input('c')]", input=answer).text == "['A', 'B', 'C']"
    assert asked == ["a", "b", "c"]


def test_nothing_is_undone_twice(s: Session, wire: Wire) -> None:
    for i in range(7):
        s.run(f"x = {i}")
    for expected in range(6, 0, -1):
        cutting = later(0.001, wire.cut)
        assert s.undo().cell == expected
        cutting.join()
        assert s.run("x").text == str(expected - 1)
        s.undo()


def test_a_moment_without_anybody(s: Session, wire: Wire) -> None:
    absence = later(0.3, wire.tear, wire.mend)
    assert s.run("import time; time.sleep(0.5); 1").text == "1"
    absence.join()


def test_files_in_pieces(s: Session, wire: Wire) -> None:
    s.open()
    for n in range(12):
        content = os.urandom(4 << 20)
        cutting = later(n / 1000, wire.cut)
        s.put("big", content)
        cutting.join()
        cutting = later(n / 1000, wire.cut)
        assert s.get("big") == content
        cutting.join()


def test_a_request_made_while_the_connection_ends(s: Session, wire: Wire) -> None:
    """Whichever the connection hears of first, the request is sent."""
    for _ in range(100):
        wire.cut()
        assert s.run("1").text == "1"


def test_the_router_is_killed(start_daemon: Callable[..., Daemon]) -> None:
    """It is the same daemon afterwards: the cell has gone on, and so does its output."""
    it = start_daemon()
    with Connection(str(it.socket), start=False) as connection, Session(connection=connection) as s:
        s.run("n = 0")
        with it.client() as client:
            killing = later(0.5, lambda: os.kill(client.stats().pid, signal.SIGKILL))
            result = s.run("import time\nfor i in range(150): print(i); time.sleep(0.01); n += 1", on_output=print)
            killing.join()
        assert result.stdout == "".join(f"{i}\n" for i in range(150))
        assert s.run("n").text == "150"


def kill_before_it_hears(router: int) -> threading.Thread:
    """What is sent from now on is lost with it."""
    os.kill(router, signal.SIGSTOP)
    return later(0.5, lambda: os.kill(router, signal.SIGKILL))


def test_an_answer_is_lost_with_the_router(start_daemon: Callable[..., Daemon]) -> None:
    it = start_daemon()
    asked = []
    with Connection(str(it.socket), start=False) as connection, it.client() as client:
        router = client.stats().pid

        def answer(prompt: str, password: bool) -> str:
            asked.append(prompt)
            if len(asked) == 1:
                kill_before_it_hears(router)
            return prompt.upper()

        code = "[input('a'), input('b')]"
        assert lair.run(code, input=answer, connection=connection).text == "['A', 'B']"
        assert asked == ["a", "b"]


def test_an_interrupt_is_lost_with_the_router(start_daemon: Callable[..., Daemon]) -> None:
    it = start_daemon()
    with Connection(str(it.socket), start=False) as connection, Session(connection=connection) as s:
        with it.client() as client:
            router = client.stats().pid
        events = s.stream("import time; print('begun', flush=True); time.sleep(50)")
        next(events)
        killing = kill_before_it_hears(router)
        del events
        killing.join()
        wait_until(lambda: s.info().state == "idle", "the cell was interrupted all the same")


def test_the_router_is_killed_while_cells_wait(start_daemon: Callable[..., Daemon]) -> None:
    it = start_daemon({"profile default": {"checkpoint": "cell"}})
    with Connection(str(it.socket), start=False) as connection, Session(connection=connection) as s:
        s.run("n = 1")
        keys = [s.detach("import time; display('shown'); time.sleep(1); n += 1; n"), s.detach("n *= 10; n")]
        with it.client() as client:
            wait_until(lambda: s.results()[1].state == "running", "the first runs")
            os.kill(client.stats().pid, signal.SIGKILL)
        first, second = (s.attach(key) for key in keys)
        assert (first.text, len(first.displays), second.text) == ("2", 1, "20")
        assert next(cell.code for cell in s.history()) == "n = 1"


def test_the_router_is_killed_before_sessions_have_begun(start_daemon: Callable[..., Daemon]) -> None:
    """No spare, and a template that stands still: they wait to be made, and are made by the next one's."""
    it = start_daemon({"profile default": {"spares": "0"}})
    with Connection(str(it.socket), start=False) as connection, it.client() as client:
        assert lair.run("1", connection=connection).text == "1"
        for pid in children(it.process.pid):
            if "lair-kernel" in command_of(pid):
                os.kill(pid, signal.SIGSTOP)
        results: list[str | None] = []
        waiting = [
            threading.Thread(target=lambda: results.append(lair.run("6 * 7", connection=connection).text))
            for _ in range(3)
        ]
        for thread in waiting:
            thread.start()
        time.sleep(0.3)
        os.kill(client.stats().pid, signal.SIGKILL)
        for thread in waiting:
            thread.join()
        assert results == ["42"] * 3


def test_coroutines(wire: Wire, connection: Connection) -> None:
    async def scenario() -> None:
        async with aio.Session(connection=connection) as s:
            running = asyncio.ensure_future(s.run("import time; time.sleep(0.6); print('out')", on_output=print))
            await asyncio.sleep(0.3)
            wire.cut()
            assert (await running).stdout == "out\n"

    asyncio.run(scenario())


def test_cancelling_while_there_is_nobody(s: Session, wire: Wire) -> None:
    absence = later(0.2, wire.tear)
    with pytest.raises(lair.DeadlineError):
        s.run("import time; time.sleep(50)", deadline=0.6)
    absence.join()
    wire.mend()
    wait_until(lambda: s.info().state == "idle", "the cell was interrupted all the same")


def test_another_daemon_is_not_sent_what_the_first_was(start_daemon: Callable[..., Daemon], tmp_path: Path) -> None:
    """It has no session of that id, so the cell would run in one that knows nothing."""
    tmp_path.chmod(0o700)
    first, second = start_daemon(), start_daemon()
    wire = Wire(tmp_path / "socket", first.socket)
    with Connection(str(wire.path), start=False) as connection:
        s = Session("a", connection=connection)

        def change() -> None:
            wire.daemon = second.socket
            wire.cut()

        changing = later(0.3, change)
        with pytest.raises(LairError) as lost:
            s.run("import time; time.sleep(5)")
        changing.join()
        assert lost.value.code == "lost"
        assert lair.sessions(connection) == []
    wire.remove()


# ---- results one comes back for ----


def test_a_cell_that_nobody_waits_for(s: Session) -> None:
    key = s.detach("import time; time.sleep(0.3); print('out'); 7")
    assert [record.state for record in s.results()] == ["running"]
    seen: list[str] = []
    result = s.attach(key, on_output=lambda text, stream: seen.append(text))
    assert (result.text, result.stdout, "".join(seen)) == ("7", "out\n", "out\n")
    assert s.attach(cell=result.cell).text == "7"
    assert [record.key for record in s.results()] == [key]
    with pytest.raises(LairError) as gone:
        s.attach("another")
    assert gone.value.code == "gone"


def test_the_same_key_runs_once(s: Session) -> None:
    assert s.run("n = 1", key="first").ok
    assert [s.run("n += 1; n", key="second").text for _ in range(3)] == ["2"] * 3

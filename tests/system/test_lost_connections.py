"""A connection that is cut is made again by liblair: at whatever byte that happens, what was asked is done once, and
answered as if nothing had been.

Between `lair` and laird stands a proxy that cuts after a given number of bytes.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from daemon import Daemon, wait_until
from lair import Client, Connection, Session

SETTINGS = {"profile default": {"checkpoint": "cell", "output_size": "4M"}}


class Proxy:
    """Passes bytes on; cuts the connection that carries the byte it was told."""

    def __init__(self, path: Path, target: Path) -> None:
        self.path, self.target = path, target
        self.cuts: list[int] = []
        self.carried = 0
        self.ends: list[int] = []  # where something that was written at once ends
        self.connections = 0
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen(16)
        self._closing = False
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._closing = True
        self._thread.join()
        self._listener.close()
        self.path.unlink()

    def cut_after(self, *carried: int) -> None:
        self.cuts, self.carried, self.ends, self.connections = list(carried), 0, [], 0

    def _pass(self, source: socket.socket, sink: socket.socket) -> bool:
        data = source.recv(65536)
        if self.cuts and self.carried + len(data) >= self.cuts[0]:
            sink.sendall(data[: self.cuts.pop(0) - self.carried])
            self.carried = 0
            return False
        self.carried += len(data)
        self.ends.append(self.carried)
        if data:
            sink.sendall(data)
        return bool(data)

    def _run(self) -> None:
        other: dict[socket.socket, socket.socket] = {}
        while not self._closing:
            for ready in select.select([self._listener, *other], [], [], 0.05)[0]:
                if ready is self._listener:
                    near, far = self._listener.accept()[0], socket.socket(socket.AF_UNIX)
                    far.connect(str(self.target))
                    other[near], other[far] = far, near
                    self.connections += 1
                elif ready in other:
                    try:
                        alive = self._pass(ready, other[ready])
                    except OSError:
                        alive = False
                    if not alive:
                        peer = other.pop(ready)
                        other.pop(peer)
                        ready.close()
                        peer.close()
        for left in other:
            left.close()


@pytest.fixture
def proxy(daemon: Daemon) -> Iterator[Proxy]:
    directory = daemon.directory / "proxy"
    directory.mkdir(0o700, exist_ok=True)
    it = Proxy(directory / "socket", daemon.socket)
    yield it
    it.close()


Lair = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def lair(daemon: Daemon, proxy: Proxy) -> Lair:
    def run(*arguments: str, **how: object) -> subprocess.CompletedProcess[str]:
        return daemon.lair(*arguments, env={"LAIR_SOCKET": str(proxy.path)}, **how)  # type: ignore[arg-type]

    return run


def cuts_in_each(proxy: Proxy) -> list[int]:
    """One in each message that was carried, and one right after it. No message is shorter than 12 bytes."""
    return sorted({*range(1, proxy.carried + 2, 12), *proxy.ends})


def cuts(whole: int, n: int) -> list[int]:
    return [max(1, whole * i // n) for i in range(n + 1)]


def test_it_ends_right_after_a_message(proxy: Proxy, lair: Lair) -> None:
    """The client may read both at once, the message and the end; the first message is the greeting."""
    proxy.cut_after()
    assert lair("ls").returncode == 0 and proxy.ends
    for at in proxy.ends * 10:
        proxy.cut_after(at)
        done = lair("ls")
        assert (done.returncode, done.stderr) == (0, ""), at


def test_a_cell_runs_once(client: Client, proxy: Proxy, lair: Lair, session: str) -> None:
    client.exec("n = 0", session)
    code = "n += 1; print('out'); n"
    proxy.cut_after()
    assert lair("exec", "-s", session, code).stdout == "out\n1\n"
    for i, at in enumerate(cuts(proxy.carried, 60)):
        proxy.cut_after(at)
        done = lair("exec", "-s", session, code)
        assert (done.returncode, done.stdout, done.stderr) == (0, f"out\n{i + 2}\n", ""), at
        assert client.exec("n", session).text == str(i + 2)


def test_a_stream_is_whole(proxy: Proxy, lair: Lair, session: str) -> None:
    code = "import sys\nfor i in range(20000): print(i)\nfor i in range(2000): print(-i, file=sys.stderr)"
    out = "".join(f"{i}\n" for i in range(20000))
    err = "".join(f"{-i}\n" for i in range(2000))
    proxy.cut_after()
    lair("exec", "-s", session, code)
    for at in cuts(proxy.carried, 12):
        proxy.cut_after(at, 5000, 50000)
        done = lair("exec", "-s", session, code)
        assert (done.returncode, done.stdout, done.stderr) == (0, out, err), at
        assert proxy.connections > 1 or at > 100_000


def test_a_cell_that_runs_meanwhile(client: Client, proxy: Proxy, lair: Lair, session: str) -> None:
    code = "import time\nfor i in range(10): print(i, flush=True); time.sleep(0.05)"
    proxy.cut_after(700, 400, 300)
    done = lair("exec", "-s", session, code)
    assert (done.returncode, done.stdout) == (0, "".join(f"{i}\n" for i in range(10)))
    assert client.info(session).cells == 1


def test_input_is_given_once(client: Client, proxy: Proxy, lair: Lair, session: str) -> None:
    code = "a = input(); b = input(); print([a, b])"
    proxy.cut_after()
    lair("exec", "-s", session, code, input="1\n2\n3\n")
    for at in cuts_in_each(proxy):
        proxy.cut_after(at)
        done = lair("exec", "-s", session, code, input="1\n2\n3\n", timeout=10)
        assert (done.returncode, done.stdout, done.stderr) == (0, "['1', '2']\n", ""), at


def test_python_is_asked_once(proxy: Proxy, session: str) -> None:
    def run(at: int) -> None:
        asked = []

        def answer(prompt: str, password: bool) -> str:
            asked.append(prompt)
            return prompt.upper()

        with Connection(str(proxy.path), start=False) as connection:
            s = Session(session, connection=connection)
            result = s.run("[input('a'), input('b')]", input=answer, timeout=10)
        assert (result.text, asked) == ("['A', 'B']", ["a", "b"]), at

    proxy.cut_after()
    run(0)
    for at in cuts_in_each(proxy):
        proxy.cut_after(at)
        run(at)


def sleeper(daemon: Daemon, socket: Path, session: str = "s") -> subprocess.Popen[str]:
    """The command line, with a cell that runs."""
    process = subprocess.Popen(
        [str(daemon.binaries / "lair"), "exec", "-s", session, "import time; time.sleep(30)"],
        env={**daemon.env, "LAIR_SOCKET": str(socket), "LAIR_NO_START": "1"},
        stderr=subprocess.PIPE,
        text=True,
    )
    client = daemon.client()
    wait_until(
        lambda: [info.state for info in client.list() if info.session == session] == ["busy"], "the cell runs"
    )
    return process


def test_an_interrupt_arrives(daemon: Daemon, client: Client, proxy: Proxy, session: str) -> None:
    client.open(session)
    for at in (1100, 1200, 1300, 1400):
        proxy.cut_after(at)
        process = sleeper(daemon, proxy.path, session)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=20)
        assert process.returncode == 130


def test_undo_goes_one_back(client: Client, proxy: Proxy, lair: Lair, session: str) -> None:
    for at in [0, *cuts(900, 30)]:
        client.exec("x = 1", session)
        client.exec("x = 2", session)
        client.exec("x = 3", session)
        proxy.cut_after(*([at] if at else []))
        assert lair("undo", session).returncode == 0
        assert client.exec("x", session).text == "2", at


def test_files_end_with_the_connection(
    daemon: Daemon, client: Client, proxy: Proxy, lair: Lair, session: str
) -> None:
    """The pieces before are not known to whoever listens next."""
    client.open(session)
    source = daemon.directory / "large"
    source.write_bytes(os.urandom(5_000_000))
    proxy.cut_after(3_000_000)
    done = lair("put", session, str(source))
    assert done.returncode == 125 and "in the middle of a file" in done.stderr
    assert lair("put", session, str(source)).returncode == 0
    assert client.get(session, "large") == source.read_bytes()


def test_what_is_read_is_read_again(daemon: Daemon, client: Client, proxy: Proxy, lair: Lair, session: str) -> None:
    client.open(session)
    client.put(session, "large", os.urandom(5_000_000))
    for at in (1000, 1_500_000, 4_999_999):
        proxy.cut_after(at)
        target = daemon.directory / f"copy-{at}"
        assert lair("get", session, "large", str(target)).returncode == 0
        assert target.read_bytes() == client.get(session, "large")


def test_another_daemon_is_not_asked_again(start_daemon: Callable[..., Daemon]) -> None:
    """It knows nothing of what was asked, and might do it twice."""
    first, second = start_daemon(), start_daemon()
    directory = first.directory / "proxy"
    directory.mkdir(0o700)
    proxy = Proxy(directory / "socket", first.socket)
    process = sleeper(first, proxy.path)
    proxy.target = second.socket
    proxy.cut_after(1)
    os.kill(process.pid, signal.SIGINT)
    stderr = process.communicate(timeout=20)[1]
    proxy.close()
    assert process.returncode == 125 and "another one" in stderr
    assert second.client().list() == []


def test_a_daemon_that_ends_is_not_waited_for(start_daemon: Callable[..., Daemon]) -> None:
    daemon = start_daemon()
    process = sleeper(daemon, daemon.socket)
    began = time.monotonic()
    daemon.process.kill()
    assert "is gone" in process.communicate(timeout=20)[1]
    assert process.returncode == 125 and time.monotonic() - began < 5

"""Many clients of `lair serve` at once, and those who are slow: the others notice nothing, and memory stays flat."""

from __future__ import annotations

import hashlib
import json
import random
import select
import signal
import socket
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from daemon import Daemon, memory_of, wait_until
from http_server import PATIENCE, Server, server_of
from lair import Client

SETTINGS = {
    "profile default": {
        "preload": "",
        "output_size": "1M",
        "cell_timeout": "600",
        "file_size": "2G",
        "workspace_size": "2G",
    }
}
WAIT = "import os, time\nwhile not os.path.exists('go'): time.sleep(0.05)\n"
MANY = 1000
SECONDS = 180  # of a test, on a machine that has much else to do
M = 1 << 20


@pytest.fixture(scope="module")
def server(daemon: Daemon) -> Iterator[Server]:
    with server_of(daemon) as it:
        yield it


class Stream:
    """The events of a request, read as they come."""

    def __init__(self, server: Server, path: str, body: Any = None, last: str = "") -> None:
        data = b"" if body is None else json.dumps(body).encode()
        head = [
            f"{'GET' if body is None else 'POST'} {path} HTTP/1.1",
            "Host: localhost",
            "Accept: text/event-stream",
            *([f"Last-Event-ID: {last}"] if last else []),
            *([f"Content-Type: application/json\r\nContent-Length: {len(data)}"] if data else []),
        ]
        self.socket = server.bare("\r\n".join(head).encode() + b"\r\n\r\n" + data)
        self.file = self.socket.makefile("rb")
        self.last = last

    def status(self) -> int:
        status = int(self.file.readline().split(b" ")[1])
        while self.file.readline() != b"\r\n":
            pass
        return status

    def events(self) -> Iterator[tuple[str, Any]]:
        """Each with its name; the headers have been read."""
        text = b""
        while size := int(self.file.readline(), 16):
            text += self.file.read(size)
            self.file.readline()
            while b"\n\n" in text:
                event, _, text = text.partition(b"\n\n")
                fields = dict(line.split(b": ", 1) for line in event.split(b"\n") if not line.startswith(b":"))
                self.last = fields.get(b"id", self.last.encode()).decode()
                if fields:
                    yield fields[b"event"].decode(), json.loads(fields[b"data"])

    def text(self) -> str:
        assert self.status() == 200
        return self.text_after()

    def text_after(self) -> str:
        """All of stdout, to the end; the headers have been read."""
        text, last = "", ""
        for name, told in self.events():
            assert name != "left_out", told
            text += told["text"] if name == "stdout" else ""
            last = name
        assert last == "result"
        return text

    def close(self) -> None:
        self.file.close()
        self.socket.close()


def started(server: Server, session: str, code: str) -> str:
    """A cell that runs, by its key."""
    told = server.exec(session, code, detach=True)
    return str(told["key"])


def release(server: Server, session: str) -> None:
    """A cell that waits."""
    assert server.ask("PUT", f"/v1/sessions/{session}/file?path=go", b"").status == 201


def metric(server: Server, name: str) -> float:
    text = server.ask("GET", "/metrics").body.decode()
    return float(dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))[name])


def beside(server: Server, session: str, n: int = 50) -> float:
    """How long somebody else's cell takes, by the way: the median."""
    connection, took = server.connect(), []
    for i in range(n):
        began = time.monotonic()
        body = {"code": f"{i}"}
        told = server.ask("POST", f"/v1/sessions/{session}/exec", body, connection=connection).json()
        took.append(time.monotonic() - began)
        assert told["text"] == str(i)
    connection.close()
    return statistics.median(took)


def in_threads(jobs: list[Callable[[], None]]) -> None:
    failed: list[BaseException] = []

    def run(job: Callable[[], None]) -> None:
        try:
            job()
        except BaseException as error:  # told below, in the thread of the test
            failed.append(error)

    threads = [threading.Thread(target=run, args=(job,)) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise failed[0]


# ---- one cell that many watch ----


def test_each_gets_all_of_it(server: Server, session: str) -> None:
    """Whenever it comes, and from wherever it goes on: more of them than laird tells itself."""
    code = (
        f"print('a' * 200_000, flush=True)\n{WAIT}print('b' * 200_000)\nfor i in range(2000): print(i, flush=True)"
    )
    key = started(server, session, code)
    expected = "a" * 200_000 + "\n" + "b" * 200_000 + "\n" + "".join(f"{i}\n" for i in range(2000))
    path = f"/v1/sessions/{session}/results/{key}"
    points = [0, 0, 100_000, 200_001, 5, 100_000, 0]
    streams = [Stream(server, path, last=f"{at}.0.0" if at else "") for at in points]
    told: dict[int, str] = {}

    def watch(i: int) -> None:
        told[i] = streams[i].text()

    first = Stream(server, path)
    assert first.status() == 200
    for name, _ in first.events():
        if name == "stdout":
            break
    first.close()
    streams += [Stream(server, path, last=f"{at}.0.0" if at else "") for at in points * 5]
    release(server, session)
    streams += [Stream(server, path, last=f"{at}.0.0" if at else "") for at in points * 5]
    in_threads([lambda i=i: watch(i) for i in range(len(streams))])  # type: ignore[misc]
    for i, stream in enumerate(streams):
        assert told[i] == expected[points[i % len(points)] :], i
        stream.close()


def test_who_comes_again_and_again(server: Server, session: str) -> None:
    """A client that loses its connection goes on where it was, more often than laird remembers."""
    key = started(server, session, f"print('x', flush=True)\n{WAIT}print('y')")
    path, last = f"/v1/sessions/{session}/results/{key}", ""
    first = Stream(server, path)
    for _ in range(40):
        stream = Stream(server, path, last=last)
        assert stream.status() == 200
        events = stream.events()
        assert next(events)[0] == "begun"
        if not last:
            assert next(events) == ("stdout", {"text": "x\n"})
        last = stream.last
        stream.close()
    release(server, session)
    again = Stream(server, path, last=last)
    assert again.text() == "y\n"
    assert first.text() == "x\ny\n"
    again.close()
    first.close()


def test_a_point_that_is_none(server: Server, session: str) -> None:
    """It harms nobody else."""
    key = started(server, session, f"print('x', flush=True)\n{WAIT}print('y')")
    path = f"/v1/sessions/{session}/results/{key}"
    wrong = [Stream(server, path, last=f"{10**18}.{10**18}.{10**18}") for _ in range(20)]
    right = [Stream(server, path) for _ in range(20)]
    release(server, session)
    assert [it.text() for it in right] == ["x\ny\n"] * 20
    for it in wrong + right:
        it.close()


def test_a_cell_that_is_not_there(server: Server, opened: str) -> None:
    for _ in range(20):
        stream = Stream(server, f"/v1/sessions/{opened}/results/none")
        assert stream.status() == 410
        stream.close()


# ---- many ----


@pytest.mark.shipped
def test_a_thousand_idle_streams(server: Server, client: Client) -> None:
    """One session that hundreds watch, and many sessions that several do."""
    signal.alarm(SECONDS)
    daemon = client.stats().pid
    sessions = {f"idle{i}": 400 if i == 0 else 20 for i in range(31)}
    keys = {it: started(server, it, f"{WAIT}print('there')") for it in sessions}
    alone = beside(server, "other")
    before = memory_of(server.process.pid), memory_of(daemon)
    streams = [
        Stream(server, f"/v1/sessions/{it}/results/{keys[it]}") for it, n in sessions.items() for _ in range(n)
    ]
    assert len(streams) == MANY
    for stream in streams:
        assert stream.status() == 200
    crowded = beside(server, "other")
    grown = memory_of(server.process.pid) - before[0], memory_of(daemon) - before[1]
    print(
        f"\n1000 streams: {grown[0] / MANY / 1024:.1f} KiB each in lair serve, {grown[1] / 1024:.0f} KiB in laird;"
    )
    print(f"a cell beside them: {alone * 1e6:.0f} µs before, {crowded * 1e6:.0f} µs then")
    assert grown[0] < 64 * M
    assert grown[1] < 16 * M
    assert crowded < alone + 0.1
    for it in sessions:
        release(server, it)
    for stream in streams:
        assert stream.text_after() == "there\n"
        stream.close()
    for it in sessions:
        client.shutdown(it)


@pytest.mark.shipped
def test_two_hundred_clients(server: Server, client: Client) -> None:
    """Each keeps its connection, and gets its own answers."""
    signal.alarm(SECONDS)
    sessions = [f"kept{i}" for i in range(8)]
    for it in sessions:
        server.exec(it, "1")
    before = memory_of(server.process.pid)
    gate = threading.Barrier(200)

    def ask(i: int) -> None:
        connection = server.connect()
        server.ask("GET", "/health", connection=connection)
        gate.wait(PATIENCE)
        for j in range(20):
            body = {"code": f"'{i}.{j}'"}
            path = f"/v1/sessions/{sessions[i % 8]}/exec"
            assert server.ask("POST", path, body, connection=connection).json()["text"] == f"'{i}.{j}'"
        connection.close()

    began = time.monotonic()
    in_threads([lambda i=i: ask(i) for i in range(200)])  # type: ignore[misc]
    took = time.monotonic() - began
    grown = memory_of(server.process.pid) - before
    print(f"\n200 clients: {200 * 20 / took:.0f} cells a second; lair serve has grown by {grown / M:.1f} MiB")
    assert grown < 64 * M
    for it in sessions:
        client.shutdown(it)


@pytest.mark.shipped
def test_slowloris(server: Server) -> None:
    """A byte now and then keeps no connection: the headers have a time limit as a whole."""
    signal.alarm(SECONDS)
    alone, before = beside(server, "other"), memory_of(server.process.pid)
    slow = [server.bare(b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: ") for _ in range(500)]
    crowded = beside(server, "other")
    print(f"\na cell beside 500 slow clients: {alone * 1e6:.0f} µs before, {crowded * 1e6:.0f} µs then")
    grown = memory_of(server.process.pid) - before
    print(f"lair serve has grown by {grown / M:.1f} MiB")
    assert crowded < alone + 0.1
    assert grown < 64 * M

    def all_gone() -> bool:
        for it in list(slow):
            try:
                it.sendall(b"y")
                time.sleep(0.001)
            except OSError:
                slow.remove(it)
        return not slow

    wait_until(all_gone, "they are sent away", 60)
    assert metric(server, "lair_http_connections") == 1


def flood(server: Server, session: str) -> socket.socket:
    """A client that asks for much and reads nothing."""
    it = socket.socket()
    it.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    it.settimeout(PATIENCE)
    it.connect((server.host, server.port))
    code = "for i in range(12): print('x' * 999_999)"
    body = json.dumps({"code": code}).encode()
    it.sendall(
        f"POST /v1/sessions/{session}/exec HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode()
        + body
    )
    return it


@pytest.mark.shipped
def test_clients_that_stop_reading(server: Server, client: Client) -> None:
    """Sixty of them, with twelve megabytes each: the cells end, and what has no room is said to be left out."""
    signal.alarm(SECONDS)
    alone, before = beside(server, "other"), memory_of(server.process.pid)
    sessions = [f"unread{i}" for i in range(6)]
    gone = [flood(server, sessions[i % 6]) for i in range(60)]
    crowded = beside(server, "other", 20)

    def ended() -> bool:
        told = {it.session: it for it in client.list()}
        return all(it in told and told[it].state == "idle" and told[it].cells == 10 for it in sessions)

    wait_until(ended, "the cells end, though nobody reads", 120)
    grown = memory_of(server.process.pid) - before
    print(
        f"\na cell beside 60 clients that read nothing: {alone * 1e6:.0f} µs before, {crowded * 1e6:.0f} µs then;"
    )
    print(f"lair serve has grown by {grown / M:.0f} MiB")
    assert grown < 512 * M
    assert crowded < alone + 0.1
    gone[0].setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, M)
    left_out, end = False, b""
    while b"event: result" not in end:
        piece = gone[0].recv(M)
        assert piece
        end = end[-100:] + piece
        left_out |= b"event: left_out" in end
    assert left_out
    for it in gone:
        it.close()
    wait_until(lambda: metric(server, "lair_http_exchanges") == 1, "they are forgotten", 30)
    for name in sessions:
        client.shutdown(name)


PRINTER = "while True: print('x' * 100)"


def printing(server: Server, token: str, n: int) -> list[socket.socket]:
    """Streams of cells that print all the time."""
    body = json.dumps({"code": PRINTER}).encode()
    return [
        server.bare(
            f"POST /v1/sessions/printer{i}/exec HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n"
            f"Accept: text/event-stream\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode()
            + body
        )
        for i in range(n)
    ]


def test_streams_of_another_tenant(daemon: Daemon, client: Client, tmp_path: Path) -> None:
    """Eight cells that print all the time, and whose streams are read: another tenant's requests come first."""
    path = str(tmp_path / "tokens")
    printer, other = (
        daemon.lair("token", "add", it, "--tokens", path).stdout.strip() for it in ("printer", "other")
    )
    with server_of(daemon, "--tokens", path) as server:
        headers = {"Authorization": f"Bearer {other}"}

        def took() -> float:
            connection, times = server.connect(), []
            for _ in range(40):
                began = time.monotonic()
                body = {"code": "1+1"}
                assert server.ask("POST", "/v1/sessions/mine/exec", body, headers, connection).json()["text"] == "2"
                times.append(time.monotonic() - began)
                time.sleep(0.005)
            connection.close()
            return statistics.median(times)

        took()
        quiet = took()
        streams = printing(server, printer, 8)
        ended = threading.Event()

        def read() -> None:
            buffer, total = bytearray(M), 0
            while not ended.is_set():
                for it in select.select(streams, [], [], 0.1)[0]:
                    total += it.recv_into(buffer)
            read_bytes.append(total)

        read_bytes: list[int] = []
        reader = threading.Thread(target=read)
        reader.start()
        try:
            wait_until(
                lambda: sum("printer" in it.session and it.state == "busy" for it in client.list()) == 8,
                "they run",
            )
            loaded = took()
        finally:
            ended.set()
            reader.join()
        for it in streams:
            it.close()
        for name in client.list():
            client.shutdown(name.session)
        print(f"\na cell beside 8 streams: {quiet * 1e6:.0f} µs before, {loaded * 1e6:.0f} µs then")
        assert read_bytes[0] > M
        assert loaded < 3 * max(quiet, 0.004)


# ---- much at once ----


def pieces(n: int) -> Iterator[bytes]:
    """The same ones each time."""
    numbers = random.Random(1)
    return (numbers.randbytes(1 << 10) * 1024 for _ in range(n))


@pytest.mark.shipped
def test_a_gigabyte(server: Server, client: Client, session: str) -> None:
    """Up and down: nobody in between has it in memory."""
    signal.alarm(SECONDS)
    server.exec(session, "1")
    pids = server.process.pid, client.stats().pid
    before = [memory_of(pid) for pid in pids]
    most = [0, 0]

    def look() -> None:
        for i, pid in enumerate(pids):
            most[i] = max(most[i], memory_of(pid) - before[i])

    def sent(n: int) -> Iterator[bytes]:
        for i, piece in enumerate(pieces(n)):
            if i % 64 == 0:
                look()
            yield piece

    path = f"/v1/sessions/{session}/file?path=large"
    began = time.monotonic()
    answer = server.ask("PUT", path, sent(1024), {"Content-Length": str(1024 * M)})
    assert answer.json()["size"] == 1024 * M
    up = time.monotonic() - began
    connection = server.connect()
    connection.request("GET", path)
    response, digest, wanted = connection.getresponse(), hashlib.blake2b(), hashlib.blake2b()
    for piece in pieces(1024):
        wanted.update(piece)
    began, n = time.monotonic(), 0
    while piece := response.read(M):
        digest.update(piece)
        if (n := n + 1) % 64 == 0:
            look()
    down = time.monotonic() - began
    connection.close()
    assert digest.digest() == wanted.digest()
    print(f"\n1 GiB: up at {1024 / up:.0f} MiB/s, down at {1024 / down:.0f} MiB/s;", end=" ")
    print(f"lair serve has {most[0] / M:.1f} MiB more meanwhile, laird {most[1] / M:.1f} MiB")
    assert most[0] < 16 * M
    assert most[1] < 32 * M

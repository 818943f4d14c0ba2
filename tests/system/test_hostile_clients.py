"""What strangers may send: the daemon answers, or counts and drops, and everybody else goes on."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator

import msgpack
import pytest
import zmq

from daemon import Daemon, memory_of
from lair import Client, LairError, codec
from lair import messages as m


@pytest.fixture
def raw(daemon: Daemon) -> Iterator[zmq.Socket[bytes]]:
    context = zmq.Context()
    it = context.socket(zmq.DEALER)
    it.setsockopt(zmq.LINGER, 0)
    it.connect(f"ipc://{daemon.socket}")
    yield it
    it.close()
    context.term()


def answer(raw: zmq.Socket[bytes], timeout: float = 5.0) -> tuple[str, dict[str, object]] | None:
    return codec.unpack(raw.recv()) if raw.poll(timeout * 1000) else None


DROPPED = {
    "nothing": b"",
    "noise": b"\xc1\xc1\xc1",
    "half a frame": codec.encode(m.Hello(id=1))[:-1],
    "two frames": codec.encode(m.Hello(id=1)) * 2,
    "a map": msgpack.packb({"id": 1}),
    "no id": msgpack.packb([1, "hello", {}]),
    "an id that is text": msgpack.packb([1, "hello", {"id": "1"}]),
    "a negative id": msgpack.packb([1, "hello", {"id": -1}]),
    "too deep": b"\x93\x01\xa5hello" + b"\x91" * 5000,
    "a length of four billion": b"\x93\x01\xa5hello\xdf\xff\xff\xff\xff",
    "very many values": msgpack.packb([1, "hello", {"id": 1, "client": [0] * 70000}]),
}


@pytest.mark.parametrize("data", DROPPED.values(), ids=DROPPED.keys())
def test_what_cannot_be_answered_is_counted(client: Client, raw: zmq.Socket[bytes], data: bytes) -> None:
    before = client.stats().refused
    raw.send(data)
    assert answer(raw, 0.1) is None
    assert client.stats().refused == before + 1
    raw.send(codec.encode(m.Hello(id=7)))
    assert answer(raw) is not None


REFUSED = {
    "another version": (msgpack.packb([2, "hello", {"id": 1}]), "unsupported"),
    "an unknown type": (msgpack.packb([1, "dance", {"id": 1}]), "unsupported"),
    "a reply": (msgpack.packb([1, "reply", {"id": 1}]), "unsupported"),
    "an unknown field": (msgpack.packb([1, "hello", {"id": 1, "extra": 1}]), "bad_request"),
    "a missing field": (msgpack.packb([1, "exec", {"id": 1}]), "bad_request"),
    "code that is a number": (msgpack.packb([1, "exec", {"id": 1, "code": 5}]), "bad_request"),
    "code that is bytes": (msgpack.packb([1, "exec", {"id": 1, "code": b"1"}]), "bad_request"),
    "code that is no UTF-8": (b"\x93\x01\xa4exec\x82\xa2id\x01\xa4code\xa1\xff", "bad_request"),
    "a timeout that is text": (msgpack.packb([1, "exec", {"id": 1, "code": "", "timeout": "1"}]), "bad_request"),
    "a timeout that is no number": (
        msgpack.packb([1, "exec", {"id": 1, "code": "", "timeout": float("nan")}]),
        "bad_request",
    ),
    "an empty name": (msgpack.packb([1, "open", {"id": 1, "session": ""}]), "bad_request"),
    "a profile that is a path": (
        msgpack.packb([1, "open", {"id": 1, "session": "x", "profile": "../../etc"}]),
        "bad_request",
    ),
}


@pytest.mark.parametrize(("data", "code"), REFUSED.values(), ids=REFUSED.keys())
def test_what_can_be_answered_is_refused(raw: zmq.Socket[bytes], data: bytes, code: str) -> None:
    raw.send(data)
    reply = answer(raw)
    assert reply is not None
    assert (reply[0], reply[1]["code"]) == ("error", code)
    assert reply[1]["id"] in (0, 1)
    assert answer(raw, 0.05) is None


def test_an_ill_typed_field_is_named(raw: zmq.Socket[bytes]) -> None:
    raw.send(msgpack.packb([1, "exec", {"id": 1, "code": 5}]))
    reply = answer(raw)
    assert reply is not None and '"code"' in str(reply[1]["message"])


def test_multipart_messages_are_dropped(client: Client, raw: zmq.Socket[bytes]) -> None:
    before = client.stats().refused
    raw.send_multipart([codec.encode(m.Hello(id=1)), b"and more"])
    assert answer(raw, 0.1) is None
    assert client.stats().refused == before + 1


def test_a_client_that_vanishes(daemon: Daemon, client: Client, session: str) -> None:
    """What it asked for is done; its session and its queue live on, and nobody is told twice."""
    other = Client(str(daemon.socket))
    other.open(session)
    other.start("import time; time.sleep(0.3); x = 5", session)
    time.sleep(0.1)
    other.close()
    time.sleep(0.5)
    assert client.exec("x", session).text == "5"


def test_a_client_that_vanishes_while_its_cell_streams(daemon: Daemon, client: Client, session: str) -> None:
    other = Client(str(daemon.socket))
    other.start("for i in range(300_000): print('x' * 100)\nx = 'finished'", session, stream=True)
    time.sleep(0.2)
    other.close()
    assert client.exec("x", session, timeout=30).text == "'finished'"


def test_a_client_that_vanishes_while_asked(daemon: Daemon, client: Client, session: str) -> None:
    other = Client(str(daemon.socket))
    cell = other.start("try: input()\nexcept BaseException as e: x = type(e).__name__", session, input=True)
    assert isinstance(other.receive(cell, m.ExecReply), m.AskEvent)
    other.close()
    time.sleep(0.3)
    client.interrupt(session)
    assert client.exec("x", session).text in ("'EOFError'", "'KeyboardInterrupt'")


def test_many_connections(daemon: Daemon, client: Client) -> None:
    sockets = []
    for _ in range(300):
        it = socket.socket(socket.AF_UNIX)
        it.connect(str(daemon.socket))
        sockets.append(it)
    assert client.hello().version == 1
    for it in sockets:
        it.send(b"\x00garbage" * 10)
        it.close()
    assert client.hello().version == 1


def test_connections_that_say_nothing_are_dropped(daemon: Daemon, client: Client) -> None:
    it = socket.socket(socket.AF_UNIX)
    it.connect(str(daemon.socket))
    it.settimeout(20)
    while it.recv(100):
        pass
    it.close()
    assert client.hello().version == 1


def test_a_thousand_requests_at_once(client: Client, session: str) -> None:
    ids = [client.send(m.Hello(id=client.new_id())) for _ in range(1000)]
    for id_ in ids:
        client.finish(id_, m.HelloReply)


def test_hello_is_not_needed(client: Client) -> None:
    assert client.exec("1").text == "1"


def test_log_lines_cannot_be_forged(daemon: Daemon, client: Client) -> None:
    with pytest.raises(LairError):
        client.open("x\n2026-01-01T00:00:00.000Z info  [root] opened")
    assert "[root] opened" not in daemon.log().replace("\\n", "")
    client.exec("import os; os.write(2, b'\\n2026 forged\\n')")
    assert "forged" not in daemon.log()


@pytest.mark.shipped
def test_memory_of_the_daemon_does_not_grow(client: Client) -> None:
    for _ in range(20):
        client.exec("print('x' * 1_000_000)")
    router = client.hello().pid
    before = memory_of(router)
    for _ in range(60):
        client.exec("print('x' * 1_000_000)")
    assert memory_of(router) - before < 8 << 20


def test_descriptors_of_the_daemon_do_not_grow(client: Client) -> None:
    def count() -> int:
        return len(os.listdir(f"/proc/{client.hello().pid}/fd"))

    client.exec("1")
    time.sleep(0.3)
    before = count()
    for _ in range(30):
        client.exec("1")
    time.sleep(0.5)
    assert count() <= before + 2

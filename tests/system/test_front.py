"""The socket of the clients, byte by byte: who may speak on it, in which of ZeroMQ's ways, and whose answers are whose."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator

import pytest
import zmq

import zmtp
from daemon import Daemon, wait_until
from lair import Client, codec
from lair import messages as m


@pytest.fixture
def peer(daemon: Daemon) -> Iterator[zmtp.Peer]:
    it = zmtp.Peer(daemon.socket)
    yield it
    it.close()


def hello(number: int) -> bytes:
    return codec.encode(m.Hello(id=number))


def number_of(body: bytes) -> object:
    return codec.unpack(body)[1]["id"]


# ---- ways to speak ----


@pytest.mark.parametrize("size", [1, 7, 64, 10_000])
def test_however_the_bytes_are_cut(peer: zmtp.Peer, size: int) -> None:
    data = zmtp.GREETING + zmtp.ready() + b"".join(zmtp.frame(hello(i)) for i in range(1, 4))
    for at in range(0, len(data), size):
        peer.send(data[at : at + size])
    assert zmtp.is_greeting(peer.take(64))
    assert peer.read()[1].startswith(b"\x05READY")
    assert [number_of(peer.read()[1]) for _ in range(3)] == [1, 2, 3]


def test_a_long_header_for_a_short_message(peer: zmtp.Peer) -> None:
    body = hello(1)
    peer.greet().send(b"\x02" + len(body).to_bytes(8, "big") + body)
    assert number_of(peer.read()[1]) == 1


def test_a_request_socket(daemon: Daemon) -> None:
    """An empty part goes before each message, both ways."""
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    it = context.socket(zmq.REQ)
    it.setsockopt(zmq.LINGER, 0)
    it.connect(f"ipc://{daemon.socket}")
    for number in (1, 2):
        it.send(codec.encode(m.Exec(id=number, code="'x' * 300")))
        assert it.poll(10_000)
        kind, fields = codec.unpack(it.recv())
        assert (kind, fields["id"], fields["text"]) == ("reply", number, repr("x" * 300))
    it.close()
    context.term()


def test_a_request_socket_without_its_empty_part(daemon: Daemon, client: Client, peer: zmtp.Peer) -> None:
    before = client.stats().refused
    peer.greet(b"REQ").send(zmtp.frame(hello(1)))
    peer.send(zmtp.frame(b"x", zmtp.MORE) + zmtp.frame(hello(2)))
    peer.send(zmtp.frame(b"", zmtp.MORE) + zmtp.frame(hello(3)))
    assert peer.read() == (zmtp.MORE, b"")
    assert number_of(peer.read()[1]) == 3
    assert client.stats().refused == before + 2


def test_heartbeats(peer: zmtp.Peer) -> None:
    peer.greet().send(zmtp.command(b"PING", b"\x00\x00context"))
    assert peer.read() == (zmtp.COMMAND, b"\x04PONGcontext")
    peer.send(zmtp.command(b"PING", b"\x00\x00") + zmtp.command(b"PONG", b"x") + zmtp.command(b"UNKNOWN"))
    assert peer.read() == (zmtp.COMMAND, b"\x04PONG")
    peer.send(zmtp.frame(hello(1)))
    assert number_of(peer.read()[1]) == 1


def test_heartbeats_of_libzmq(daemon: Daemon) -> None:
    """A client whose heart is heard stays connected, whatever its limits."""
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    it = context.socket(zmq.DEALER)
    for option, value in ((zmq.HEARTBEAT_IVL, 100), (zmq.HEARTBEAT_TIMEOUT, 2000), (zmq.HEARTBEAT_TTL, 2000)):
        it.setsockopt(option, value)
    monitor = it.get_monitor_socket(zmq.EVENT_DISCONNECTED)
    it.connect(f"ipc://{daemon.socket}")
    it.send(hello(1))
    assert it.poll(10_000) and number_of(it.recv()) == 1
    assert not monitor.poll(3000)
    it.disable_monitor()
    monitor.close(linger=0)
    it.close(linger=0)
    context.term()


def test_a_peer_that_wants_to_be_forgotten(peer: zmtp.Peer) -> None:
    """A PING says after how long a silence."""
    peer.greet().send(zmtp.command(b"PING", b"\x00\x05"))
    begun = time.monotonic()
    assert peer.ended()
    assert 0.4 < time.monotonic() - begun < 5


# ---- who is not understood ----

CLOSED = {
    "another protocol": b"GET / HTTP/1.1\r\n\r\n",
    "version 2": b"\xff" + bytes(8) + b"\x7f\x01\x00",
    "another mechanism": b"\xff" + bytes(8) + b"\x7f\x03\x01PLAIN" + bytes(47),
    "a message before READY": zmtp.GREETING + zmtp.frame(hello(1)),
    "another command than READY": zmtp.GREETING + zmtp.command(b"PING", b"\0\0"),
    "a property that is cut": zmtp.GREETING + zmtp.command(b"READY", b"\x0bSocket-Type\xff\xff\xff\xffDEALER"),
    "another socket": zmtp.GREETING + zmtp.ready(b"SUB"),
    "no socket": zmtp.GREETING + zmtp.command(b"READY"),
    "READY twice": zmtp.GREETING + zmtp.ready() + zmtp.ready(),
    "an error": zmtp.GREETING + zmtp.ready() + zmtp.command(b"ERROR", b"\x03why"),
    "flags nobody knows": zmtp.GREETING + zmtp.ready() + b"\x08\x00",
    "a command of parts": zmtp.GREETING + zmtp.ready() + b"\x05\x05\x04PONG",
    "a command without a name": zmtp.GREETING + zmtp.ready() + zmtp.frame(b"", zmtp.COMMAND),
    "a command that is too large": zmtp.GREETING + zmtp.ready() + zmtp.command(b"X", bytes(5000)),
    "a PING that is too long": zmtp.GREETING + zmtp.ready() + zmtp.command(b"PING", bytes(30)),
    "a message that is too large": zmtp.GREETING + zmtp.ready() + b"\x02" + b"\xff" * 8,
}


@pytest.mark.parametrize("data", CLOSED.values(), ids=CLOSED.keys())
def test_what_ends_a_connection(daemon: Daemon, client: Client, peer: zmtp.Peer, data: bytes) -> None:
    before = client.stats().refused
    peer.send(data)
    assert peer.ended()
    assert client.stats().refused == before + 1
    assert daemon.log().count("a connection was closed: ") == 1


def test_another_socket_is_told_why(peer: zmtp.Peer) -> None:
    peer.send(zmtp.GREETING + zmtp.ready(b"SUB"))
    peer.take(64)
    assert peer.read()[1].startswith(b"\x05READY")
    assert peer.read()[1].startswith(b"\x05ERROR") and peer.ended()


# ---- whose answers are whose ----


def as_user(uid: int, act: Callable[[], None]) -> int:
    """The exit status of @act, done by somebody else."""
    pid = os.fork()
    if pid == 0:
        try:
            os.setgroups([])
            os.setresuid(uid, uid, uid)
            act()
            os._exit(0)
        except BaseException as error:
            print(repr(error), flush=True)
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@pytest.mark.skipif(os.getuid() != 0, reason="only root can act as two users")
def test_nobody_gets_the_answers_of_another(daemon: Daemon, client: Client, session: str) -> None:
    """A client goes while its cell runs. Whoever comes next, with whatever name, hears nothing of it."""
    victim = zmtp.Peer(daemon.socket).greet(identity=b"victim")
    code = "import time\nprint('secret', flush=True)\ntime.sleep(1)\nprint(input('password? '))"
    victim.send(zmtp.frame(codec.encode(m.Exec(id=1, session=session, code=code, stream=True, input=True))))
    assert b"secret" in victim.read()[1]
    victim.close()
    daemon.socket.parent.chmod(0o711)
    daemon.socket.chmod(0o666)

    def attack() -> None:
        context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        names = [b"victim", *(b"\0" + (0x6B8B4567 + n).to_bytes(4, "big") for n in range(200))]
        sockets = []
        for name in names:
            it = context.socket(zmq.DEALER)
            if name[0]:
                it.setsockopt(zmq.IDENTITY, name)
            it.connect(f"ipc://{daemon.socket}")
            it.send(codec.encode(m.Input(id=9, exec=1, text="mine")))
            sockets.append(it)
        raw = [zmtp.Peer(daemon.socket).greet(identity=name) for name in names]
        for it in sockets:
            assert it.poll(10_000) and codec.unpack(it.recv())[0] == "error"
        time.sleep(2)
        assert not any(it.poll(0) for it in sockets)
        for peer in raw:
            peer.socket.setblocking(False)
            with pytest.raises(BlockingIOError):
                peer.socket.recv(1)

    assert as_user(65534, attack) == 0
    wait_until(lambda: client.info(session).state == "idle", "the cell has ended", 20)
    assert client.stats().pid == client.hello().pid


def test_what_was_sent_before_a_client_went_is_done(daemon: Daemon, client: Client, session: str) -> None:
    client.open(session)
    peer = zmtp.Peer(daemon.socket)
    body = codec.encode(m.Exec(id=1, session=session, code="x = 'done'"))
    peer.send(zmtp.GREETING + zmtp.ready() + zmtp.frame(body))
    peer.close()
    wait_until(lambda: client.exec("globals().get('x')", session).text == "'done'", "the cell has run")

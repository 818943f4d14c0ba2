"""Clients that send or connect without end, or read nothing: the others go on, and so do all sessions."""

from __future__ import annotations

import os
import resource
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import zmq

import zmtp
from daemon import Daemon, memory_of, wait_until
from lair import Client, codec
from lair import messages as m

SETTINGS = {"daemon": {"connections_per_uid": "100", "router_memory": "512M"}}


@pytest.fixture(autouse=True)
def many_descriptors() -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (before[1], before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def connect(daemon: Daemon) -> socket.socket:
    it = socket.socket(socket.AF_UNIX)
    it.connect(str(daemon.socket))
    return it


# ---- connections ----


def test_connections_are_counted(daemon: Daemon, client: Client, session: str) -> None:
    """Those above the limit are refused, and said of once; who is connected stays so."""
    client.exec("x = 1", session)
    before = client.stats().refused
    sockets = [connect(daemon) for _ in range(300)]
    wait_until(lambda: client.stats().refused >= before + 195, "some are refused")
    assert client.exec("x", session).text == "1"
    for it in sockets:
        it.close()
    wait_until(lambda: answers(daemon), "there is room again")
    assert daemon.log().count("a connection was refused") == 1


def answers(daemon: Daemon) -> bool:
    with Client(str(daemon.socket), timeout=2) as client:
        try:
            return client.hello().version == 1
        except TimeoutError:
            return False


def test_connections_that_come_and_go(daemon: Daemon, client: Client) -> None:
    for _ in range(3000):
        connect(daemon).close()
    assert client.hello().version == 1
    wait_until(lambda: answers(daemon), "who comes now is served")


@pytest.mark.skipif(
    resource.getrlimit(resource.RLIMIT_NOFILE)[1] < 11_000, reason="we may not have so many descriptors ourselves"
)
def test_ten_thousand_at_once(start_daemon: Callable[..., Daemon]) -> None:
    """All held, far more than there may be: who is connected works on, and the router is the one that it was."""
    daemon = start_daemon()
    client = daemon.client()
    client.exec("x = 1", "s")
    router, before = client.stats().pid, memory_of(client.stats().pid)
    sockets = []
    for i in range(10_000):
        sockets.append(connect(daemon))
        if i % 1000 == 0:
            assert client.exec("x", "s").text == "1"
    assert client.exec("x", "s").text == "1"
    assert client.stats().pid == router
    assert memory_of(router) - before < 100 << 20
    for it in sockets:
        it.close()
    wait_until(lambda: answers(daemon), "there is room again")


def test_descriptors_run_out(start_daemon: Callable[..., Daemon]) -> None:
    """The router goes on, and the listening socket is not left ready for ever."""
    daemon = start_daemon({"daemon": {"connections_per_uid": "1000000"}})
    client = daemon.client()
    client.exec("x = 1", "s")
    router = client.stats().pid
    resource.prlimit(router, resource.RLIMIT_NOFILE, (len(os.listdir(f"/proc/{router}/fd")) + 20, 20000))
    sockets = [connect(daemon) for _ in range(200)]
    time.sleep(0.5)
    assert client.exec("x", "s").text == "1"
    assert client.stats().pid == router
    ticks = [int(value) for value in Path(f"/proc/{router}/stat").read_text().rsplit(")", 1)[1].split()[11:13]]
    time.sleep(1)
    later = [int(value) for value in Path(f"/proc/{router}/stat").read_text().rsplit(")", 1)[1].split()[11:13]]
    assert sum(later) - sum(ticks) < 50
    for it in sockets:
        it.close()
    resource.prlimit(router, resource.RLIMIT_NOFILE, (20000, 20000))
    wait_until(lambda: answers(daemon), "there is room again")


def test_half_greetings(daemon: Daemon, client: Client) -> None:
    sockets = []
    for i in range(60):
        it = connect(daemon)
        it.send((b"\xff" + bytes(8) + b"\x7f\x03\x00NULL" + bytes(60))[: 1 + i])
        sockets.append(it)
    assert client.hello().version == 1
    for it in sockets:
        it.settimeout(20)
        try:
            while it.recv(4096):
                pass
        except ConnectionError:
            pass
        it.close()


def test_one_name_for_two(daemon: Daemon, client: Client) -> None:
    """A name that a client chooses means nothing: each connection gets its own answers."""
    context = zmq.Context()
    pair = []
    for number in (1, 2):
        it = context.socket(zmq.DEALER)
        it.setsockopt(zmq.LINGER, 0)
        it.setsockopt(zmq.IDENTITY, b"same")
        it.connect(f"ipc://{daemon.socket}")
        it.send(codec.encode(m.Hello(id=number)))
        pair.append(it)
    for number, it in enumerate(pair, 1):
        assert it.poll(5000) and codec.unpack(it.recv())[1]["id"] == number
    pair[0].send(codec.encode(m.Hello(id=3)))
    assert pair[0].poll(5000) and not pair[1].poll(300)
    for it in pair:
        it.close()
    context.term()
    assert client.hello().version == 1


# ---- messages ----


@pytest.mark.shipped
def test_parts_without_end(daemon: Daemon, client: Client) -> None:
    """They are passed over as they come: a gigabyte of them costs no memory and disturbs nobody."""
    pid = client.hello().pid
    before = memory_of(pid)
    peer = zmtp.Peer(daemon.socket).greet()
    part = zmtp.frame(bytes(1 << 20), zmtp.MORE)
    most = 0
    for _ in range(1024):
        peer.send(part)
        most = max(most, memory_of(pid))
    assert most - before < 8 << 20
    assert client.hello().pid == pid
    peer.send(zmtp.frame(b"the end") + zmtp.frame(codec.encode(m.Hello(id=1))))
    assert codec.unpack(peer.read()[1])[1]["id"] == 1
    assert daemon.log().count("a client's message was dropped: it has several parts") == 1


@pytest.mark.shipped
def test_messages_that_are_announced_and_not_sent(daemon: Daemon, client: Client) -> None:
    """Memory is taken as bytes come, and one user's announcements are bounded: another's messages have room."""
    pid = client.hello().pid
    before = memory_of(pid)
    peers = [zmtp.Peer(daemon.socket).greet() for _ in range(65)]
    for peer in peers:
        peer.send(b"\x02" + (32 << 20).to_bytes(8, "big") + bytes(1000))
    time.sleep(0.5)
    assert memory_of(pid) - before < 16 << 20
    assert client.hello().pid == pid
    other = zmtp.Peer(daemon.socket).greet()
    other.send(zmtp.frame(codec.encode(m.Hello(id=1))))
    assert codec.unpack(other.read()[1])[1]["id"] == 1
    for peer in peers:
        peer.close()
    assert client.exec("len('" + "x" * 1_000_000 + "')").text == "1000000"


def raw(daemon: Daemon, context: zmq.Context[zmq.Socket[bytes]]) -> zmq.Socket[bytes]:
    it = context.socket(zmq.DEALER)
    it.setsockopt(zmq.LINGER, 0)
    it.setsockopt(zmq.RCVHWM, 1)
    it.connect(f"ipc://{daemon.socket}")
    return it


@pytest.mark.shipped
def test_who_asks_and_does_not_read(daemon: Daemon, client: Client, session: str) -> None:
    """A gigabyte of answers to a client that takes none: its further requests wait until it reads, and none is lost."""
    request = m.Exec(id=client.new_id(), session=session, code="print('x' * 4_000_000)", key="k")
    client.finish(client.send(request), m.ExecReply)
    pid = client.stats().pid
    before = memory_of(pid)
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    slow = raw(daemon, context)
    for i in range(250):
        slow.send(codec.encode(m.Attach(id=i + 1, session=session, key="k")))
    most = 0
    for _ in range(60):
        most = max(most, memory_of(pid))
        time.sleep(0.05)
    assert client.exec("1 + 1", session).text == "2"
    assert most - before < 100 << 20
    for i in range(250):
        assert slow.poll(10_000)
        kind, fields = codec.unpack(slow.recv())
        assert (kind, fields["id"], len(fields["stdout"])) == ("reply", i + 1, 4_000_001)
    slow.close()
    context.term()
    assert client.stats().pid == pid
    wait_until(lambda: memory_of(pid) - before < 64 << 20, "what waited is gone", 30)


@pytest.mark.shipped
def test_who_watches_and_does_not_read(daemon: Daemon, client: Client, session: str) -> None:
    pid = client.stats().pid
    before = memory_of(pid)
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    slow = raw(daemon, context)
    code = "for i in range(300): print('x' * 1_000_000)"
    slow.send(codec.encode(m.Exec(id=1, session=session, code=code, stream=True)))
    most = 0
    for _ in range(40):
        most = max(most, memory_of(pid))
        time.sleep(0.05)
    assert most - before < 64 << 20
    assert client.exec("2").text == "2"
    slow.close()
    context.term()
    assert client.exec("i", session, timeout=30).text == "299"


def test_a_client_killed_in_the_middle_of_its_stream(daemon: Daemon, client: Client, session: str) -> None:
    client.open(session)
    process = subprocess.Popen(
        [str(daemon.binaries / "lair"), "exec", "-s", session, "for i in range(200_000): print('x' * 100)\ny = 1"],
        env={**daemon.env, "LAIR_SOCKET": str(daemon.socket), "LAIR_NO_START": "1"},
        stdout=subprocess.DEVNULL,
    )
    wait_until(lambda: client.info(session).state == "busy", "the cell runs")
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert client.exec("y", session, timeout=30).text == "1"

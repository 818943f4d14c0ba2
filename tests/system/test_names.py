"""Names of hosts, with `network = tcp:`: looked up where port 53 is granted, and refused in a sentence where not."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from lair import Client


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


PORT = free_port()

SETTINGS = {
    "profile default": {"network": "tcp:443", "level": ""},
    "profile named": {"network": f"tcp:53,{PORT}", "level": "", "spares": "0"},
    "profile off": {"level": "", "spares": "0"},
}

REFUSED = {
    "getaddrinfo": ("socket.getaddrinfo('a.example', 443)", "a.example"),
    "bytes": ("socket.getaddrinfo(b'a.example', 443)", "a.example"),
    "gethostbyname": ("socket.gethostbyname('a.example')", "a.example"),
    "connect": ("socket.socket().connect(('a.example', 443))", "a name"),
    "create_connection": ("socket.create_connection(('a.example', 443))", "a.example"),
    "asyncio": ("import asyncio\nawait asyncio.open_connection('a.example', 443)", "a.example"),
}

SENTENCE = "no names of hosts here: connect to an address (names-not-granted)"


@pytest.mark.parametrize("what", REFUSED)
def test_a_name_is_refused_in_a_sentence(client: Client, session: str, what: str) -> None:
    code, target = REFUSED[what]
    reply = client.exec("import socket\n" + code, session)
    assert reply.error and reply.error["name"] == "gaierror" and reply.blocked
    assert reply.error["traceback"].endswith(f"] {target}: {SENTENCE}\n")
    assert [frame.get("file") for frame in reply.error["frames"]] == [None]
    assert {"reason": "names-not-granted", "target": target}.items() <= reply.blocked[0].items()


def test_a_library_tells_it(client: Client, session: str) -> None:
    code = "import urllib.request\nurllib.request.urlopen('https://a.example/')"
    error = client.exec(code, session).error
    assert error and error["name"] == "URLError" and SENTENCE in error["value"]
    assert error["traceback"].count("Traceback") == 1 and "urllib/request.py" not in error["traceback"]


def test_what_needs_no_server_is_looked_up(client: Client, session: str) -> None:
    code = "import socket\n[socket.getaddrinfo(host, 443)[0][4][0] for host in ('localhost', '192.0.2.9', None)]"
    text = client.exec(code, session).text or ""
    assert "192.0.2.9" in text and text.count("1") >= 2, text
    assert client.exec("socket.gethostbyname('localhost')", session).text == "'127.0.0.1'"


def test_no_network_is_another_refusal(client: Client, session: str) -> None:
    client.open(session, profile="off")
    error = client.exec("import socket\nsocket.getaddrinfo('a.example', 443)", session).error
    assert error and "(network-not-granted)" in error["value"]


def answer(query: bytes) -> bytes:
    """192.0.2.7 for every question about an IPv4 address, and nothing for others."""
    end = query.index(b"\0", 12) + 5
    found = query[end - 4 : end - 2] == b"\0\x01"
    record = b"\xc0\x0c" + struct.pack("!HHIH", 1, 1, 60, 4) + socket.inet_aton("192.0.2.7")
    return query[:2] + struct.pack("!HHHHH", 0x8180, 1, found, 0, 0) + query[12:end] + (record if found else b"")


def serve(server: socket.socket) -> None:
    while True:
        try:
            peer = server.accept()[0]
        except OSError:
            return
        with peer, peer.makefile("rb") as stream:
            while size := stream.read(2):
                told = answer(stream.read(struct.unpack("!H", size)[0]))
                peer.sendall(struct.pack("!H", len(told)) + told)


@contextmanager
def name_server() -> Iterator[None]:
    with socket.create_server(("127.0.0.1", PORT)) as server:
        thread = threading.Thread(target=serve, args=[server], daemon=True)
        thread.start()
        yield
        server.shutdown(socket.SHUT_RDWR)
        thread.join()


# struct __res_state of glibc: the first of its servers is at 20, their number at 16.
USE_SERVER = f"""
import ctypes, os, socket
libc = ctypes.CDLL(None)
libc.__res_init()
libc.__res_state.restype = ctypes.c_void_p
state = libc.__res_state()
ctypes.c_int.from_address(state + 16).value = 1
ctypes.memmove(state + 20, (2).to_bytes(2, "little") + ({PORT}).to_bytes(2, "big") + bytes([127, 0, 0, 1]) + bytes(8), 16)
"""


def test_a_name_is_looked_up_over_tcp(client: Client, session: str) -> None:
    """Where port 53 is granted. The server of this host is exchanged for one that the test has."""
    client.open(session, profile="named")
    with name_server():
        client.exec(USE_SERVER, session)
        reply = client.exec("socket.gethostbyname('a.example.org.')", session, timeout=30)
    assert reply.text == "'192.0.2.7'", reply.stderr.decode()


def test_datagrams_stay_refused(client: Client, session: str) -> None:
    client.open(session, profile="named")
    error = client.exec("import socket\nsocket.socket(socket.AF_INET, socket.SOCK_DGRAM)", session).error
    assert error and error["name"] == "PermissionError"
    error = client.exec("socket.create_connection(('127.0.0.1', 443), 1)", session).error
    assert error and "(port-not-granted)" in error["value"]

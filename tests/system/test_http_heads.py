"""Heads of requests that can be read in two ways: a proxy in front must not see another end of a request than we do."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from daemon import Daemon
from http_server import Server, server_of

HOST = b"Host: localhost\r\n"
# A request that a stranger would have us find in another one, or behind it.
HIDDEN = b"GET /health HTTP/1.1\r\n" + HOST + b"\r\n"
FOUND = b'"status":"ok"'
BODY = b'{"code": "1"}'
LENGTH = b"Content-Length: 13\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n"
CHUNKS = b"d\r\n" + BODY + b"\r\n0\r\n\r\n"


@pytest.fixture(scope="module")
def server(daemon: Daemon) -> Iterator[Server]:
    with server_of(daemon) as it:
        yield it


def check(headers: bytes, body: bytes) -> bytes:
    head = b"POST /v1/check HTTP/1.1\r\n" + HOST + b"Content-Type: application/json\r\n" + headers + b"\r\n"
    return head + body + HIDDEN


def get(headers: bytes, line: bytes = b"GET /health HTTP/1.1\r\n") -> bytes:
    return line + headers + b"\r\n" + HIDDEN


def answers(server: Server, data: bytes) -> bytes:
    """All that comes until the server hangs up, which it does when the last request says so."""
    it = server.bare(data + b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    told = b""
    while got := it.recv(65536):
        told += got
    it.close()
    return told


WRONG = {
    "length and coding": check(b"Content-Length: %d\r\n" % (len(CHUNKS) + len(HIDDEN)) + CHUNKED, CHUNKS),
    "coding and length": check(CHUNKED + LENGTH, CHUNKS),
    "two lengths": check(LENGTH + b"Content-Length: %d\r\n" % (13 + len(HIDDEN)), BODY),
    "two lengths, the longer first": check(b"Content-Length: %d\r\n" % (13 + len(HIDDEN)) + LENGTH, BODY),
    "two equal lengths": check(LENGTH + LENGTH, BODY),
    "a list of lengths": check(b"Content-Length: 13, 13\r\n", BODY),
    "a plus": check(b"Content-Length: +13\r\n", BODY),
    "a minus": check(b"Content-Length: -13\r\n", BODY),
    "hexadecimal": check(b"Content-Length: 0xd\r\n", BODY),
    "a space in it": check(b"Content-Length: 1 3\r\n", BODY),
    "a space behind it": check(b"Content-Length: 13 \r\n", BODY),
    "no length": check(b"Content-Length: \r\n", BODY),
    "a length of 65 bits": check(b"Content-Length: 18446744073709551629\r\n", BODY),
    "a NUL in a length": check(b"Content-Length: 13\x000\r\n", BODY),
    "a space before the colon": check(b"Content-Length : 13\r\n", BODY),
    "a tab before the colon": check(b"Content-Length\t: 13\r\n", BODY),
    "a space before the colon of a coding": check(LENGTH + b"Transfer-Encoding : chunked\r\n", BODY),
    "a space before the colon of any header": check(b"X : 1\r\n" + LENGTH, BODY),
    "a folded header": check(b"X: a\r\n b\r\n" + LENGTH, BODY),
    "a length that is folded": check(b"X: a\r\n Content-Length: 13\r\n", BODY),
    "a coding that is folded": check(b"Transfer-Encoding:\r\n chunked\r\n", CHUNKS),
    "a name that is folded": check(b"Content-Leng: 0\r\n th\r\n" + LENGTH, BODY),
    "a first line that is folded": get(b" X: y\r\n" + HOST),
    "a bare LF": check(b"X: a\n" + LENGTH, BODY),
    "a bare CR": check(b"X: a\rContent-Length: 0\r\n" + LENGTH, BODY),
    "a NUL in a value": check(b"X: a\0b\r\n" + LENGTH, BODY),
    "a NUL in a name": check(b"X\0: a\r\n" + LENGTH, BODY),
    "a line without a colon": check(b"Content-Length\r\n" + LENGTH, BODY),
    "another coding": check(b"Transfer-Encoding: xchunked\r\n", CHUNKS),
    "identity": check(b"Transfer-Encoding: identity\r\n" + LENGTH, BODY),
    "two codings": check(b"Transfer-Encoding: gzip, chunked\r\n", CHUNKS),
    "chunked, and then not": check(b"Transfer-Encoding: chunked, identity\r\n", CHUNKS),
    "chunked twice": check(CHUNKED + CHUNKED, CHUNKS),
    "chunked behind a control character": check(b"Transfer-Encoding: \x0bchunked\r\n", CHUNKS),
    "chunked in quotes": check(b'Transfer-Encoding: "chunked"\r\n', CHUNKS),
    "chunked with a parameter": check(b"Transfer-Encoding: chunked;q=1\r\n", CHUNKS),
    "no coding": check(b"Transfer-Encoding: \r\n" + LENGTH, BODY),
    "chunked in HTTP/1.0": get(HOST + CHUNKED, b"GET /health HTTP/1.0\r\n"),
    "a chunk's size with a plus": check(CHUNKED, CHUNKS.replace(b"d\r\n", b"+d\r\n", 1)),
    "a chunk's size with 0x": check(CHUNKED, CHUNKS.replace(b"d\r\n", b"0xd\r\n", 1)),
    "a chunk's size with a space": check(CHUNKED, CHUNKS.replace(b"d\r\n", b"d \r\n", 1)),
    "a chunk without its end": check(CHUNKED, CHUNKS.replace(b"}\r\n", b"}XX")),
    "two hosts": get(HOST + b"Host: evil.example\r\n"),
    "two origins": get(HOST + b"Origin: http://localhost\r\nOrigin: http://evil.example\r\n"),
    "no version": get(HOST, b"GET /health\r\n"),
    "another protocol": get(HOST, b"GET /health FOO/1.1\r\n"),
    "a space in the path": get(HOST, b"GET /health x HTTP/1.1\r\n"),
    "tabs in the first line": get(HOST, b"GET\t/health\tHTTP/1.1\r\n"),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_head_that_can_be_read_in_two_ways(server: Server, what: str) -> None:
    """Nothing behind it is taken for a request: the connection is closed, and the answer is an error, if there is one."""
    told = answers(server, WRONG[what])
    assert FOUND not in told and b"valid" not in told
    # Older versions of libmicrohttpd send the head of their own answer twice.
    assert told.split(b" ", 2)[1] in (b"400", b"413") if told else "first line" in what or "in the path" in what


RIGHT = {
    "a length": check(LENGTH, BODY),
    "a tab before a length": check(b"Content-Length:\t13\r\n", BODY),
    "chunked": check(CHUNKED, CHUNKS),
    "chunked in capitals": check(b"Transfer-Encoding: CHUNKED\r\n", CHUNKS),
    "a chunk with an extension": check(CHUNKED, CHUNKS.replace(b"d\r\n", b"d;x=y\r\n", 1)),
    "a length behind the chunks": check(CHUNKED, CHUNKS.replace(b"0\r\n\r\n", b"0\r\nContent-Length: 5\r\n\r\n")),
    "a wish to be told to go on": check(b"Expect: 100-continue\r\n" + LENGTH, BODY),
    "an empty header": check(b"X:\r\n" + LENGTH, BODY),
    "a header in UTF-8": check("X: \u00e9\r\n".encode() + LENGTH, BODY),
}


@pytest.mark.parametrize("what", RIGHT)
def test_a_head_that_has_one_meaning(server: Server, what: str) -> None:
    told = answers(server, RIGHT[what])
    assert told.count(b'"valid":true') == 1 and told.count(FOUND) == 2

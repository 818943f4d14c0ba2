"""MCP servers over streamable HTTP, good ones and bad ones."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from daemon import BIN, wait_until
from lair.mcp import MCPError, Servers

LAIR = str(BIN / "lair")
TOOL = {"name": "écho", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}
Json = dict[str, Any]


class Upstream(ThreadingHTTPServer):
    """What it does is what a test puts into `mode`; what it got is in `got`."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.mode = ""
        self.got: list[tuple[str, dict[str, str], Json]] = []
        self.sessions = 0
        self.pending = 0
        self.answering, self.most = 0, 0
        self.valid = ""
        self.ended = threading.Event()
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/mcp"

    def handle_error(self, request: Any, client_address: Any) -> None:
        self.ended.set()

    def calls(self, method: str) -> list[tuple[dict[str, str], Json]]:
        return [(headers, body) for _, headers, body in self.got if body.get("method") == method]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Upstream

    def log_message(self, *_: object) -> None:
        pass

    def say(self, status: int, body: bytes = b"", kind: str = "application/json", **headers: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def stream(self, *pieces: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream; charset=utf-8")
        self.send_header("Connection", "close")
        self.end_headers()
        for piece in pieces:
            self.wfile.write(piece)
            self.wfile.flush()
            time.sleep(0.01)
        self.close_connection = True

    def do_GET(self) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.got.append(("GET", headers, {}))
        if headers.get("last-event-id") == "e2":
            content = [{"type": "text", "text": '{"late": 1}'}]
            answer = {"jsonrpc": "2.0", "id": self.server.pending, "result": {"content": content}}
            self.stream(b"data: " + json.dumps(answer).encode() + b"\n\n")
        elif headers.get("last-event-id") == "e1" and self.server.mode.isdecimal():
            self.say(int(self.server.mode), b"no")
        elif headers.get("last-event-id") == "e1":
            self.stream(b"retry:\nretry: 1e9\nretry: 100\nid: e2\ndata:\n\n")
        else:
            self.say(405)

    def do_DELETE(self) -> None:
        self.server.got.append(("DELETE", dict(self.headers), {}))
        self.say(200)

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.got.append(("POST", headers, body))
        if "method" not in body:
            self.server.answering += 1
            self.server.most = max(self.server.most, self.server.answering)
            self.server.ended.wait(10)
            self.server.answering -= 1
        self.answer(headers, body, body.get("method"), self.server.mode)

    def answer(self, headers: dict[str, str], body: Json, method: str, mode: str) -> None:
        def result(value: Json, **more: str) -> None:
            text = json.dumps({"jsonrpc": "2.0", "id": body["id"], "result": value})
            if mode == "events":
                halves = text.encode()
                self.stream(
                    b": hello\r\nevent: message\r\nid: 1\r\n", b"data: " + halves[:9], halves[9:] + b"\r", b"\n\r\n"
                )
            else:
                self.say(200, text.encode(), **more)

        if mode == "private":
            self.say(401, b"{}")
        elif mode == "moved":
            self.say(307, Location="http://127.0.0.1:1/")
        elif mode == "broken":
            self.say(500, b"<h1>oops</h1>", "text/html")
        elif "id" not in body:
            self.say(202)
        elif mode == "modern" and "mcp-method" not in headers:
            error = {
                "code": -32022,
                "message": "Unsupported protocol version",
                "data": {"supported": ["2026-07-28"]},
            }
            self.say(400, json.dumps({"jsonrpc": "2.0", "id": None, "error": error}).encode())
        elif method == "initialize":
            self.server.sessions += 1
            self.server.valid = f"s{self.server.sessions}"
            version = body["params"]["protocolVersion"]
            result({"protocolVersion": version, "capabilities": {"tools": {}}}, Mcp_Session_Id=self.server.valid)
        elif method == "server/discover":
            result({"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}})
        elif mode != "modern" and mode != "events" and headers.get("mcp-session-id") != self.server.valid:
            self.say(404)
        elif method == "tools/list":
            result({"tools": [TOOL, {"name": "slow"}]})
        elif method == "subscriptions/listen":
            self.stream(b": open\n\n")
        elif body["params"]["name"] == "slow":
            self.stream(*[b": wait\n\n"] * 2000)
        elif mode == "polled" or mode.isdecimal():
            self.server.pending = body["id"]
            self.stream(b"id: e1\nretry: 100\ndata: \n\n")
        elif mode == "asks":
            self.server.ended.clear()
            ping = b'data: {"jsonrpc": "2.0", "id": "p", "method": "ping"}\n\n'
            self.stream(*[ping * 100] * 20)
            self.server.ended.set()
        elif mode == "silent":
            self.stream(b": nothing\n\n")
        elif mode == "long":
            self.say(200, b'"' + b"x" * (40 << 20) + b'"')
        elif mode == "garbage":
            self.say(200, b"\xff\xfe{")
        else:
            result({"content": [{"type": "text", "text": json.dumps(body["params"]["arguments"])}]})


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    it = Upstream()
    yield it
    it.shutdown()
    it.server_close()


@pytest.fixture
def opened(tmp_path: Path, upstream: Upstream) -> Iterator[Callable[..., Servers]]:
    every: list[Servers] = []

    def open_servers(mode: str = "", **more: Any) -> Servers:
        upstream.mode = mode
        path = tmp_path / "servers.json"
        path.write_text(json.dumps({"mcpServers": {"u": {"url": upstream.url, **more}}}))
        every.append(Servers(path, program=LAIR))
        return every[-1]

    yield open_servers
    for it in every:
        it.close()


def call(servers: Servers, **arguments: Any) -> Any:
    return json.loads(servers.call("u._cho", arguments)["content"][0]["text"])


@pytest.mark.parametrize("mode", ["", "events", "modern"])
def test_a_call(opened: Callable[..., Servers], mode: str) -> None:
    assert call(opened(mode), text="\u2028 ü") == {"text": "\u2028 ü"}


def test_headers(opened: Callable[..., Servers], upstream: Upstream, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", "secret")
    call(opened(headers={"Authorization": "Bearer ${TOKEN}"}))
    assert all(
        headers["authorization"] == "Bearer secret" for method, headers, _ in upstream.got if method == "POST"
    )
    ((first, _),) = upstream.calls("initialize")
    ((later, _),) = upstream.calls("tools/call")
    assert "mcp-protocol-version" not in first and "mcp-session-id" not in first
    assert later["mcp-protocol-version"] == "2025-11-25" and later["mcp-session-id"] == "s1"
    assert later["accept"] == "application/json, text/event-stream"
    assert len(upstream.calls("notifications/initialized")) == 1


def test_headers_of_the_stateless_era(opened: Callable[..., Servers], upstream: Upstream) -> None:
    call(opened("modern"))
    ((headers, body),) = upstream.calls("tools/call")
    assert headers["mcp-protocol-version"] == body["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"]
    assert headers["mcp-method"] == "tools/call" and headers["mcp-name"] == "=?base64?w6ljaG8=?="
    assert "mcp-session-id" not in headers


def test_a_session_that_was_forgotten_begins_again(opened: Callable[..., Servers], upstream: Upstream) -> None:
    servers = opened()
    assert call(servers, n=1) == {"n": 1}
    upstream.valid = "other"
    assert call(servers, n=2) == {"n": 2}
    assert upstream.sessions == 2


def test_a_stream_that_ends_early_is_asked_for_the_rest(opened: Callable[..., Servers], upstream: Upstream) -> None:
    servers = opened()
    assert servers.functions
    upstream.mode = "polled"
    assert call(servers) == {"late": 1}
    assert len(upstream.calls("tools/call")) == 1


@pytest.mark.parametrize("status", ["404", "405", "500"])
def test_a_stream_that_does_not_go_on(opened: Callable[..., Servers], upstream: Upstream, status: str) -> None:
    """The server has had the call: it is not sent once more, and nobody says that it was not done."""
    servers = opened()
    assert servers.functions
    upstream.mode = status
    with pytest.raises(Exception, match="this may have been done"):
        call(servers)
    assert len(upstream.calls("tools/call")) == 1


def test_a_server_that_asks_without_end(opened: Callable[..., Servers], upstream: Upstream) -> None:
    servers = opened()
    assert servers.functions
    upstream.mode = "asks"
    with pytest.raises(Exception, match="ended the stream without an answer"):
        call(servers)
    assert 0 < upstream.most <= 32
    upstream.mode = ""
    assert call(servers, n=1) == {"n": 1}


def test_a_session_is_ended(opened: Callable[..., Servers], upstream: Upstream) -> None:
    servers = opened()
    assert call(servers, n=1) == {"n": 1}
    servers.close()
    ((_, headers, _),) = [it for it in upstream.got if it[0] == "DELETE"]
    assert headers["MCP-Session-Id"] == "s1"


@pytest.mark.parametrize("mode", ["", "modern"])
def test_a_call_is_cancelled(opened: Callable[..., Servers], upstream: Upstream, mode: str) -> None:
    servers = opened(mode)
    assert servers.functions
    servers._send({"id": 7, "function": "u.slow", "arguments": {}})
    wait_until(lambda: upstream.calls("tools/call"), "the call")
    servers._send({"cancel": 7})
    assert upstream.ended.wait(10)
    if mode == "":
        wait_until(lambda: upstream.calls("notifications/cancelled"), "the cancel")
        ((_, told),) = upstream.calls("notifications/cancelled")
        assert told["params"]["requestId"] == upstream.calls("tools/call")[0][1]["id"]
    else:
        assert not upstream.calls("notifications/cancelled")


@pytest.mark.parametrize(
    "mode, why",
    [
        ("private", "it refuses with HTTP status 401: the headers of its entry must have credentials"),
        ("moved", "it is elsewhere (HTTP status 307): redirections are not followed"),
        ("broken", "HTTP status 500: <h1>oops</h1>"),
    ],
)
def test_a_server_that_refuses(opened: Callable[..., Servers], mode: str, why: str) -> None:
    assert opened(mode).failed == {"u": f"Server 'u' is not available: {why}"}


def test_nobody_is_there(opened: Callable[..., Servers]) -> None:
    assert "Couldn't connect" in opened(url="http://127.0.0.1:1/mcp").failed["u"]


def test_a_header_is_one_line(opened: Callable[..., Servers], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", "a\r\nHost: other")
    assert opened(headers={"X": "${TOKEN}"}).failed == {"u": "Server 'u' is not available: the header X is none"}
    monkeypatch.setenv("PLACE", "file:///etc/passwd")
    assert "not http:// or https://" in opened(url="${PLACE}").failed["u"]


@pytest.mark.parametrize(
    "mode, why",
    [
        ("silent", "it has ended the stream without an answer. It may have had the call"),
        ("garbage", "it has ended the stream without an answer"),
        ("long", "its answer is too long"),
        ("broken", "HTTP status 500"),
    ],
)
def test_an_answer_that_is_none(opened: Callable[..., Servers], upstream: Upstream, mode: str, why: str) -> None:
    servers = opened()
    assert servers.functions
    upstream.mode = mode
    with pytest.raises(ConnectionError, match=why):
        call(servers)
    upstream.mode = ""
    assert call(servers, n=3) == {"n": 3}


def test_calls_run_side_by_side(opened: Callable[..., Servers]) -> None:
    servers = opened()
    seen: list[int] = []
    threads = [threading.Thread(target=lambda n=n: seen.append(call(servers, n=n)["n"])) for n in range(20)]
    for it in threads:
        it.start()
    for it in threads:
        it.join()
    assert sorted(seen) == list(range(20))
    with pytest.raises((MCPError, LookupError)):
        servers.call("u.none")

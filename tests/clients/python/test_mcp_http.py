"""`/mcp` of `lair serve`: with the Python SDK of the Model Context Protocol, and by hand."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from daemon import Daemon
from environments import HERE, pinned
from http_server import Answer, Server, server_of

META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
MODERN = {"MCP-Protocol-Version": "2026-07-28"}


@pytest.fixture(scope="module")
def python() -> str:
    return str(pinned("mcp"))


@pytest.fixture
def server(daemon: Daemon) -> Iterator[Server]:
    with server_of(daemon) as it:
        yield it


@pytest.mark.parametrize("mode", ["legacy", "auto", "2026-07-28"])
def test_the_sdk(mode: str, python: str, server: Server, drive: Callable[..., None]) -> None:
    pytest.importorskip("matplotlib")
    drive(python, HERE / "drive_mcp.py", mode, server.url + "/mcp")


def said(
    server: Server, method: str, params: Any = None, headers: dict[str, str] | None = None, **more: Any
) -> Answer:
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params or {}, **more}
    accept = {"Accept": "application/json, text/event-stream"}
    return server.ask("POST", "/mcp", message, {**accept, **(headers or {})})


def begun(server: Server) -> dict[str, str]:
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    answer = said(server, "initialize", params)
    assert answer.status == 200
    return {"Mcp-Session-Id": str(answer.headers["Mcp-Session-Id"])}


def code_of(answer: Answer) -> tuple[int, int]:
    return answer.status, answer.json()["error"]["code"]


def test_the_handshake(server: Server) -> None:
    own = begun(server)
    assert said(server, "ping", headers=own).json()["result"] == {}
    note = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    assert server.ask("POST", "/mcp", note, own).status == 202
    assert said(server, "ping").status == 400
    assert said(server, "ping", headers={"Mcp-Session-Id": "x"}).status == 404
    assert said(server, "ping", headers={**own, "MCP-Protocol-Version": "1999-01-01"}).status == 400
    assert server.ask("GET", "/mcp").status == 405
    assert server.ask("DELETE", "/mcp", headers=own).status == 204
    assert said(server, "ping", headers=own).status == 404


def test_two_conversations_have_two_sessions(server: Server) -> None:
    found = []
    for _ in range(2):
        call = {"name": "python_session_execute", "arguments": {"code": "'x' in globals(), globals().update(x=1)"}}
        found.append(said(server, "tools/call", call, begun(server)).json()["result"]["structuredContent"])
    assert [each["text"] for each in found] == ["(False, None)"] * 2
    assert found[0]["session_id"] != found[1]["session_id"]


def test_the_stateless_era(server: Server) -> None:
    call = {"name": "python_session_execute", "arguments": {"code": "6 * 7", "session_id": "a"}, "_meta": META}
    named = {**MODERN, "Mcp-Method": "tools/call", "Mcp-Name": "python_session_execute"}
    assert said(server, "tools/call", call, named).json()["result"]["structuredContent"]["text"] == "42"
    packed = {**named, "Mcp-Name": "=?base64?cHl0aG9uX3Nlc3Npb25fZXhlY3V0ZQ==?="}
    assert said(server, "tools/call", call, packed).status == 200
    assert code_of(said(server, "tools/call", call, {**named, "Mcp-Name": "other"})) == (400, -32020)
    assert code_of(said(server, "tools/call", call, {**named, "Mcp-Method": "tools/list"})) == (400, -32020)
    assert code_of(said(server, "tools/call", call, MODERN)) == (400, -32020)
    listed = {**MODERN, "Mcp-Method": "tools/list"}
    assert said(server, "tools/list", {"_meta": META}, listed).json()["result"]["tools"]
    assert code_of(said(server, "tools/list", {}, listed)) == (400, -32602)
    nothing = {**MODERN, "Mcp-Method": "nothing"}
    assert code_of(said(server, "nothing", {"_meta": META}, nothing)) == (404, -32601)
    later = {
        "io.modelcontextprotocol/protocolVersion": "2999-01-01",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    asked = {"MCP-Protocol-Version": "2999-01-01", "Mcp-Method": "tools/list"}
    assert code_of(said(server, "tools/list", {"_meta": later}, asked)) == (400, -32022)


def test_what_is_no_message(server: Server) -> None:
    assert code_of(server.ask("POST", "/mcp", b"{")) == (400, -32700)
    assert code_of(server.ask("POST", "/mcp", json.dumps([]).encode())) == (400, -32600)
    assert server.ask("POST", "/mcp", {}, {"Origin": "http://evil.example"}).status == 403
    assert server.ask("POST", "/mcp", {}, {"Host": "evil.example"}).status == 403

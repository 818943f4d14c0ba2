"""`/mcp` of `lair serve`, by hand: both eras, and what a token may."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from daemon import Daemon, wait_until
from http_server import Answer, Server, server_of
from lair import Client

META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
MODERN = {"MCP-Protocol-Version": "2026-07-28"}
CALL = {**MODERN, "Mcp-Method": "tools/call"}


@pytest.fixture(scope="module")
def server(daemon: Daemon) -> Iterator[Server]:
    with server_of(daemon) as it:
        yield it


def said(
    server: Server, method: str, params: Any = None, headers: dict[str, str] | None = None, **more: Any
) -> Answer:
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params or {}, **more}
    accept = {"Accept": "application/json, text/event-stream"}
    return server.ask("POST", "/mcp", message, {**accept, **(headers or {})})


def begun(server: Server, headers: dict[str, str] | None = None) -> dict[str, str]:
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    answer = said(server, "initialize", params, headers)
    assert answer.status == 200
    return {"Mcp-Session-Id": str(answer.headers["Mcp-Session-Id"])}


def code_of(answer: Answer) -> tuple[int, int]:
    return answer.status, answer.json()["error"]["code"]


def test_the_handshake(server: Server) -> None:
    own = begun(server)
    assert said(server, "ping", headers=own).json()["result"] == {}
    note = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    assert server.ask("POST", "/mcp", note, own).status == 202
    assert (
        said(server, "ping", headers={**own, "MCP-Protocol-Version": "2025-11-25", "Mcp-Method": "ping"}).status
        == 200
    )
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
    assert said(server, "tools/call", call, {**named, "Mcp-Name": "  python_session_execute \t"}).status == 200
    half = {"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}}
    assert code_of(said(server, "tools/list", half, listed)) == (400, -32602)
    later = {
        "io.modelcontextprotocol/protocolVersion": "2999-01-01",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    asked = {"MCP-Protocol-Version": "2999-01-01", "Mcp-Method": "tools/list"}
    assert code_of(said(server, "tools/list", {"_meta": later}, asked)) == (400, -32022)


def test_what_is_no_message(server: Server) -> None:
    own = begun(server)
    for headers in ({}, own, MODERN, {"Content-Type": "application/json"}, {"Content-Type": "text/plain"}):
        for body in (b"", b"{", b"no JSON", b"\xff", b'{"a": 1} {}', b"<html>", b"{'a': 1}"):
            told = server.ask("POST", "/mcp", body, headers)
            assert (told.type, code_of(told), told.json()["id"]) == ("application/json", (400, -32700), None)
        for body in (b"[]", b"1", b'"x"', b"null", b'{"id": 1, "id": 2}', b'{"id": ' + b"9" * 30 + b"}"):
            assert code_of(server.ask("POST", "/mcp", body, headers)) == (400, -32600)
    # The end of a string is not where a NUL is.
    assert "result" in server.ask("POST", "/mcp", b'{"jsonrpc":"2.0","id":"\\u0000","method":"ping"}', own).json()
    assert server.ask("POST", "/mcp", {}, {"Origin": "http://evil.example"}).status == 403
    assert server.ask("POST", "/mcp", {}, {"Host": "evil.example"}).status == 403


def test_an_id_that_is_none(server: Server) -> None:
    """It is answered all the same, in both eras."""
    own = begun(server)
    ids: list[Any] = [1.5, "x" * 2000, True, {}]
    for id in ids:
        assert said(server, "ping", headers=own, id=id).json()["error"]["code"] == -32600
        listed = {**MODERN, "Mcp-Method": "tools/list"}
        assert said(server, "tools/list", {"_meta": META}, listed, id=id).json()["error"]["code"] == -32600


def test_a_notification_that_is_none(server: Server) -> None:
    own = begun(server)
    for headers in (own, {**MODERN, "Mcp-Method": "x"}):
        assert server.ask("POST", "/mcp", {"method": "x"}, headers).json()["error"]["code"] == -32600
        assert server.ask("POST", "/mcp", {"jsonrpc": "2.0", "method": "x"}, headers).status == 202
    assert server.ask("POST", "/mcp", {"jsonrpc": "2.0", "id": 1, "result": 7}, own).status == 202
    assert server.ask("POST", "/mcp", {"id": 1, "result": 7}, own).status == 400


def test_what_there_is(server: Server) -> None:
    """What each conversation begins with, in both eras."""
    own = begun(server)
    listed = said(server, "tools/list", headers=own).json()["result"]["tools"]
    told = said(server, "server/discover", {"_meta": META}, {**MODERN, "Mcp-Method": "server/discover"}).json()
    assert told["result"]["supportedVersions"] == ["2026-07-28"]
    modern = said(server, "tools/list", {"_meta": META}, {**MODERN, "Mcp-Method": "tools/list"}).json()
    assert [it["name"] for it in modern["result"]["tools"]] == [it["name"] for it in listed]
    said(server, "resources/list", headers=own)
    assert said(server, "prompts/list", headers=own).json()["result"] == {"prompts": []}
    told = said(server, "prompts/list", {"_meta": META}, {**MODERN, "Mcp-Method": "prompts/list"}).json()["result"]
    assert (told["prompts"], told["ttlMs"], told["cacheScope"]) == ([], 3600000, "public")
    asked = {"name": "x", "_meta": META}
    got = said(server, "prompts/get", asked, {**MODERN, "Mcp-Method": "prompts/get", "Mcp-Name": "x"})
    assert got.json()["error"]["code"] == -32602


# ---- tokens ----


class Tenant:
    def __init__(self, server: Server, secret: str) -> None:
        self.server = server
        self.headers = {"Authorization": f"Bearer {secret}"}

    def call(self, tool: str, arguments: Any, own: dict[str, str] | None = None) -> Answer:
        """Of the stateless era, or of the conversation @own."""
        headers = own if own is not None else {**CALL, "Mcp-Name": tool}
        params = {"name": tool, "arguments": arguments, **({} if own is not None else {"_meta": META})}
        return said(self.server, "tools/call", params, {**self.headers, **headers})

    def run(self, code: str, own: dict[str, str] | None = None, **arguments: Any) -> Any:
        answer = self.call("python_session_execute", {"code": code, **arguments}, own)
        assert answer.status == 200, answer.body
        return answer.json()["result"]["structuredContent"]

    def once(self, code: str, own: dict[str, str] | None = None) -> Any:
        return self.call("python_execute_once", {"code": code}, own).json()["result"]["structuredContent"]

    def metric(self, name: str) -> float:
        text = self.server.ask("GET", "/metrics", headers=self.headers).body.decode()
        return float(dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))[name])


def test_one_shots_of_a_token_have_its_name(start_daemon: Callable[..., Daemon], tmp_path: Path) -> None:
    """In the audit log; nothing else is told of them, and they end with their code."""
    log, path = tmp_path / "audit", tmp_path / "tokens"
    daemon = start_daemon({"daemon": {"audit_log": str(log)}, "profile default": {"output_size": "1M"}})
    secret = daemon.lair("token", "add", "alice", "--tokens", str(path)).stdout.strip()
    with server_of(daemon, "--tokens", str(path)) as server, server_of(daemon) as plain:
        for own in (None, begun(server, {"Authorization": f"Bearer {secret}"})):
            alice, nobody = Tenant(server, secret), Tenant(plain, "")
            nobody.headers = {}
            for code in ("6 * 7", "1/0", "import os; os._exit(3)", "open('f', 'w').write('x')"):
                told = alice.once(code, own)
                assert "session_id" not in told and told == nobody.once(code)
            told = alice.once("for i in range(20_000): print(i)", own)
            assert "session_id" not in told and "@alice:once-" in told["handle"]
            arguments = {"handle": told["handle"], "from_byte": 50_000}
            piece = alice.call("python_result", arguments, own).json()["result"]["structuredContent"]
            assert piece["from_byte"] == 50_000 and piece["stdout"]
        client = daemon.client()
        wait_until(lambda: not client.list(), "they have ended")
        lines = [json.loads(line) for line in log.read_text().splitlines()]
        ran = [line.get("session") for line in lines if line["event"] == "exec"]
        named = [it for it in ran if it]
        assert len(ran) == 18 and len(named) == len(set(named)) == 10
        assert all(it.startswith("alice:once-") for it in named)
        call = {"name": "python_execute_once", "arguments": {"code": "while True: pass"}, "_meta": META}
        message = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}).encode()
        headers = {
            **CALL,
            "Mcp-Name": "python_execute_once",
            "Authorization": f"Bearer {secret}",
            "Host": "localhost",
        }
        head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        lost = server.bare(f"POST /mcp HTTP/1.1\r\n{head}Content-Length: {len(message)}\r\n\r\n".encode() + message)
        wait_until(lambda: len(client.list()) == 1, "it runs")
        lost.close()
        wait_until(lambda: not client.list(), "it has ended with its client")


@pytest.fixture(scope="module")
def secrets(daemon: Daemon, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    path = tmp_path_factory.mktemp("tokens") / "tokens"
    told = []
    for name, more in (("alice", ["--sessions", "2"]), ("bob", [])):
        done = daemon.lair("token", "add", name, "--tokens", str(path), *more)
        assert done.returncode == 0, done.stderr
        told.append(done.stdout.strip())
    return path, told


@pytest.fixture(scope="module")
def tenants(daemon: Daemon, secrets: tuple[Path, list[str]]) -> Iterator[list[Tenant]]:
    with server_of(daemon, "--tokens", str(secrets[0])) as it:
        yield [Tenant(it, secret) for secret in secrets[1]]


def test_without_a_token(tenants: list[Tenant]) -> None:
    answer = said(
        tenants[0].server, "server/discover", {"_meta": META}, {**MODERN, "Mcp-Method": "server/discover"}
    )
    assert answer.status == 401


def test_each_has_its_own(tenants: list[Tenant], client: Client) -> None:
    alice, bob = tenants
    assert alice.run("x = 'alice'", session_id="main")["session_id"] == "alice:main"
    assert bob.run("x", session_id="main")["error"]["name"] == "NameError"
    assert alice.run("x", session_id="alice:main")["text"] == "'alice'"
    # Another's name is one of one's own.
    assert bob.run("1", session_id="alice:main")["session_id"] == "bob:alice:main"
    assert bob.metric('lair_own_sessions{state="idle"}') == 2
    assert alice.metric('lair_own_sessions{state="idle"}') == 1
    # Nor by a conversation of another, nor by a handle.
    own = begun(alice.server, alice.headers)
    assert said(bob.server, "ping", headers={**bob.headers, **own}).status == 404
    assert bob.call("python_result", {"handle": "1@alice:main"}).status == 403
    assert (
        said(bob.server, "resources/list", headers={**bob.headers, **begun(bob.server, bob.headers)}).status == 403
    )
    for it in client.list():
        client.shutdown(it.session)


def test_conversations_of_one_tenant(tenants: list[Tenant]) -> None:
    """For one more than 256, its own oldest idle one goes; another tenant's stays."""
    alice, bob = tenants
    other = begun(bob.server, bob.headers)
    first, second = begun(alice.server, alice.headers), begun(alice.server, alice.headers)
    assert said(alice.server, "ping", headers={**alice.headers, **first}).status == 200
    for _ in range(255):
        begun(alice.server, alice.headers)
    assert said(alice.server, "ping", headers={**alice.headers, **first}).status == 200
    assert said(alice.server, "ping", headers={**alice.headers, **second}).status == 404
    assert said(bob.server, "ping", headers={**bob.headers, **other}).status == 200

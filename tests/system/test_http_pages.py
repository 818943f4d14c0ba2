"""Pages in browsers of this machine: what they may ask of a server that asks for no token."""

from __future__ import annotations

import json
import urllib.parse
from collections.abc import Iterator
from typing import Any

import pytest

from daemon import Daemon, Settings
from http_server import Answer, Server, server_of
from lair import Client

SETTINGS: Settings = {"profile default": {"functions": "on"}}
NAMED = "https://named.example"
JSON = "application/json"
BROWSER = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/156.0.0.0 Safari/537.36"
CODE = json.dumps({"code": "1"}).encode()


@pytest.fixture(scope="module")
def server(daemon: Daemon) -> Iterator[Server]:
    with server_of(daemon, "--origins", f"http://other.example:81,{NAMED}") as it:
        yield it


def own(server: Server) -> str:
    return f"http://{server.host}:{server.port}"


def sessions(client: Client) -> set[str]:
    return {it.session for it in client.list()}


# ---- the name of this machine ----


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost:1", 200),
        ("127.0.0.1", 200),
        ("[::1]:80", 200),
        ("evil.example", 403),
        ("localhost.evil.example", 403),
        ("127.0.0.1.evil.example", 403),
        ("localhost:80@evil.example", 403),
    ],
)
def test_a_name_that_dns_makes_this_machine(server: Server, host: str, status: int) -> None:
    """Its page is of our origin, for its browser."""
    headers = {"Host": host, "Origin": f"http://{host}", "Sec-Fetch-Site": "same-origin"}
    assert server.ask("GET", "/health", headers=headers).status == status
    assert server.ask("POST", "/v1/check", {"code": "1"}, headers).status == status


# ---- pages ----

FOREIGN = [
    "http://evil.example",
    "null",
    "",
    "http://localhost",
    "http://localhost:3000",
    "http://127.0.0.1:3000",
    "https://localhost:3000",
    "https://named.example.evil",
    "https://named.exampl",
    "http://named.example",
    "file://",
]


@pytest.mark.parametrize("origin", FOREIGN)
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/v1/sessions"),
        ("POST", "/execute"),
        ("POST", "/v1/sessions/foreign/exec"),
        ("POST", "/v1/sessions/a/calls/1"),
        ("POST", "/v1/sessions/a/input"),
        ("PUT", "/v1/sessions/foreign"),
        ("DELETE", "/v1/sessions/a"),
        ("POST", "/sandboxes"),
        ("POST", "/contexts"),
        ("GET", "/files?path=x"),
        ("POST", "/mcp"),
        ("OPTIONS", "/v1/sessions/a"),
        ("GET", "/nothing"),
    ],
)
def test_a_page_of_another_origin(server: Server, client: Client, method: str, path: str, origin: str) -> None:
    """Also of another port of this machine. Whatever its types and headers are."""
    before = sessions(client)
    for more in ({}, {"Content-Type": "text/plain"}, {"X-API-KEY": "any"}, {"Sec-Fetch-Site": "same-site"}):
        body = CODE if method in ("POST", "PUT") else None
        answer = server.ask(method, path, body, {"Content-Type": JSON, "Origin": origin, **more})
        assert answer.status == 403
        assert answer.headers["Access-Control-Allow-Origin"] is None
    assert sessions(client) == before


@pytest.mark.parametrize("site", ["cross-site", "same-site", "anything"])
@pytest.mark.parametrize(
    "path", ["/v1/sessions", "/v1/sessions/a/cells/1?input=true", "/metrics", "/contexts", "/envs"]
)
def test_what_a_page_asks_without_its_origin(server: Server, path: str, site: str) -> None:
    """An image, a script, a frame, a link: only the browser says that it is not for a page of ours."""
    for mode in ("no-cors", "navigate", "websocket"):
        headers = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": mode}
        assert server.ask("GET", path, headers=headers).status == 403


def test_a_link_to_the_dashboard(server: Server) -> None:
    for path in ("/", "/dashboard/app.js", "/openapi.json"):
        assert server.ask("GET", path, headers={"Sec-Fetch-Site": "cross-site"}).status == 200
    # A person types the address of a file.
    assert server.ask("GET", "/v1/sessions", headers={"Sec-Fetch-Site": "none"}).status == 200


@pytest.mark.parametrize(
    "kind", ["text/plain", "text/plain;charset=UTF-8", "multipart/form-data; boundary=x", None]
)
@pytest.mark.parametrize(
    "path", ["/execute", "/v1/sessions/simple/exec", "/v1/sessions/a/undo", "/contexts", "/mcp"]
)
def test_what_a_browser_sends_without_asking_first(
    server: Server, client: Client, path: str, kind: str | None
) -> None:
    """Should one keep its origin to itself, it still says that it is a browser."""
    before = sessions(client)
    for said in ({"User-Agent": BROWSER}, {"Sec-Fetch-Site": "same-origin"}, {"Origin": own(server)}):
        headers = {**said, **({"Content-Type": kind} if kind else {})}
        assert server.ask("POST", path, CODE, headers).status == 415
    form = {"User-Agent": BROWSER, "Content-Type": "application/x-www-form-urlencoded"}
    assert server.ask("POST", path, CODE, form).status == 415
    assert sessions(client) == before


def test_programs(server: Server, session: str) -> None:
    """curl says of any body that it is a form; others say nothing."""
    for kind in ("application/x-www-form-urlencoded", JSON, "application/json; charset=utf-8"):
        headers = {"User-Agent": "curl/8.0", "Content-Type": kind}
        assert server.ask("POST", f"/v1/sessions/{session}/exec", CODE, headers).status == 200
    assert server.ask("POST", f"/v1/sessions/{session}/interrupt").status == 200


def test_the_dashboard(server: Server, session: str) -> None:
    page = {"Origin": own(server), "Sec-Fetch-Site": "same-origin", "User-Agent": BROWSER}
    path = f"/v1/sessions/{session}"
    assert server.ask("POST", f"{path}/exec", {"code": "1"}, page).status == 200
    assert server.ask("PUT", f"{path}/file?path=a", b"1", page).status == 201
    assert server.ask("GET", "/v1/sessions", headers={"Sec-Fetch-Site": "same-origin"}).status == 200
    assert server.ask("DELETE", path, headers=page).status == 204
    # A page of another name of this machine is another page.
    assert server.ask("GET", "/v1/sessions", headers={"Origin": f"http://localhost:{server.port}"}).status == 403
    # Nor is one of our address that another site's page has sent on.
    assert server.ask("GET", "/v1/sessions", headers={**page, "Sec-Fetch-Site": "cross-site"}).status == 403


# ---- origins that were named ----


def preflight(server: Server, path: str, method: str, origin: str = NAMED) -> Answer:
    asked = {"Access-Control-Request-Method": method, "Access-Control-Request-Headers": "content-type"}
    return server.ask("OPTIONS", path, headers={"Origin": origin, "Sec-Fetch-Site": "cross-site", **asked})


def test_a_page_that_was_named(server: Server, session: str) -> None:
    page = {"Origin": NAMED, "Sec-Fetch-Site": "cross-site", "User-Agent": BROWSER}
    path = f"/v1/sessions/{session}/exec"
    asked = preflight(server, path, "POST")
    assert asked.status == 204
    assert asked.headers["Access-Control-Allow-Origin"] == NAMED
    assert asked.headers["Access-Control-Allow-Methods"] == "POST"
    assert asked.headers["Access-Control-Allow-Headers"] == "content-type"
    assert asked.headers["Vary"] == "Origin"
    for told in (
        server.ask("POST", path, {"code": "1"}, page),
        server.ask("POST", path, {"code": 1}, page),
        server.ask("GET", "/nothing", headers=page),
    ):
        assert told.headers["Access-Control-Allow-Origin"] == NAMED
    assert told.status == 404
    # It has to ask first.
    assert server.ask("POST", path, CODE, {**page, "Content-Type": "text/plain"}).status == 415
    assert server.ask("GET", "/v1/sessions", headers={"Origin": "http://other.example:81"}).status == 200


@pytest.mark.parametrize(
    "given",
    ["*", "null", "localhost:3000", "https://a.example/", "https://a.example,b", "https://*.a.example", "://a"],
)
def test_origins_that_are_none(daemon: Daemon, given: str) -> None:
    told = daemon.lair("serve", "--listen", "127.0.0.1:0", "--origins", given)
    assert told.returncode == 125
    assert "--origins: expected SCHEME://HOST" in told.stderr


def test_the_environment_names_them(daemon: Daemon, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAIR_ORIGINS", NAMED)
    with server_of(daemon) as it:
        assert it.ask("GET", "/v1/sessions", headers={"Origin": NAMED}).status == 200


# ---- who approves ----


def waiting(server: Server, session: str) -> tuple[str, Any]:
    """The path of a call that somebody has to approve, and the call."""
    functions = [{"name": "deed", "ask": True, "effect": True}]
    body = {"code": "tools.deed()", "functions": functions, "detach": True}
    assert server.ask("POST", f"/v1/sessions/{session}/exec", body).status == 200
    (call,) = server.ask("GET", f"/v1/sessions/{session}/calls?wait=30").json()["calls"]
    return f"/v1/sessions/{session}/calls/{call['number']}", call


@pytest.mark.parametrize("origin", [NAMED, "http://localhost:3000", "null"])
def test_a_page_approves_no_call(server: Server, session: str, origin: str) -> None:
    at, call = waiting(server, session)
    for decision in ({"approve": True}, {"value": 1}, {"error": "ValueError", "text": "no"}):
        assert server.ask("POST", at, decision, {"Origin": origin}).status == 403
    assert [it["state"] for it in server.ask("GET", f"/v1/sessions/{session}/calls").json()["calls"]] == [
        call["state"]
    ]


@pytest.mark.parametrize("dashboard", [True, False])
def test_the_dashboard_and_programs_approve_calls(server: Server, session: str, dashboard: bool) -> None:
    at, call = waiting(server, session)
    assert server.ask("POST", at, {"approve": True}, {"Origin": own(server)} if dashboard else {}).status == 204
    (again,) = server.ask("GET", f"/v1/sessions/{session}/calls").json()["calls"]
    assert again["state"] != call["state"]


def test_a_named_page_decides_nothing_by_mcp(server: Server) -> None:
    page = {"Origin": NAMED, "Accept": JSON}
    version = {"protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}}}
    begin: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": version}
    told = server.ask("POST", "/mcp", begin, page)
    assert told.status == 200
    page["Mcp-Session-Id"] = told.headers["Mcp-Session-Id"]
    answer = {"jsonrpc": "2.0", "id": 7, "result": {"action": "accept"}}
    assert server.ask("POST", "/mcp", answer, page).status == 403
    assert server.ask("POST", "/mcp", answer, {**page, "Origin": own(server)}).status == 202


# ---- the sandbox without a name ----


def test_a_page_opens_no_sandbox_of_e2b(server: Server, client: Client) -> None:
    form = urllib.parse.urlencode({"a": "b"}).encode()
    for path in ("/contexts", "/files?path=a", "/files?path=a&signature=v1_x"):
        for headers in ({}, {"User-Agent": BROWSER}, {"Sec-Fetch-Site": "none"}):
            assert server.ask("GET", path, headers=headers).status in (401, 502)
    server.ask("POST", "/contexts", form, {"Content-Type": "text/plain"})
    assert "debug_sandbox_id" not in sessions(client)
    assert server.ask("GET", "/contexts", headers={"X-API-KEY": "any"}).status == 200
    assert "debug_sandbox_id" in sessions(client)
    # Whoever asks without a key finds it.
    assert server.ask("GET", "/contexts").status == 200

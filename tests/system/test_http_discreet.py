"""What a tenant of `lair serve` learns of the machine: nothing, but what code in a session sees anyway."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from daemon import Daemon, Settings, wait_until
from http_server import Answer, Server, server_of

SETTINGS: Settings = {
    "profile default": {"subprocess": "on", "checkpoint": "cell", "functions": "on"},
    # It cannot start.
    "profile broken": {"preload": "nothing_of_that_name"},
}
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


class Tenant:
    def __init__(self, server: Server, secret: str) -> None:
        self.server = server
        self.secret = secret
        self.told: dict[str, Answer] = {}

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        answer = self.server.ask(method, path, body, {"Authorization": f"Bearer {self.secret}", **headers})
        self.told[f"{method} {path} {len(self.told)}"] = answer
        return answer

    def tool(self, name: str, **arguments: Any) -> Answer:
        params = {"name": name, "arguments": arguments, "_meta": META}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        headers = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": name}
        return self.ask("POST", "/mcp", message, Accept="application/json", **headers)


@pytest.fixture(scope="module")
def tenant(daemon: Daemon, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tenant]:
    path = tmp_path_factory.mktemp("tokens") / "tokens"
    secret = daemon.lair("token", "add", "ann", "--tokens", str(path)).stdout.strip()
    with server_of(daemon, "--tokens", str(path)) as it:
        yield Tenant(it, secret)


def secrets(daemon: Daemon) -> list[str]:
    """Where laird's things are, the sessions' included, and the files of the program."""
    return [str(daemon.directory), str(daemon.socket), str(Path(__file__).parents[2]), "sessions.conf"]


def keys(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from keys(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from keys(inner)


def look(daemon: Daemon, tenant: Tenant) -> None:
    told, tenant.told = tenant.told, {}
    for what, answer in told.items():
        text = answer.body.decode(errors="replace") + str(answer.headers)
        for secret in secrets(daemon):
            assert secret not in text, (what, text)
        if answer.type.startswith("application/") and answer.body and what.split()[1] != "/openapi.json":
            found = set(keys(json.loads(answer.body)))
            assert not found & {"uid", "workspace", "pid"}, (what, text)


def test_the_requests_of_v1(daemon: Daemon, tenant: Tenant) -> None:
    at = "/v1/sessions/a"
    tenant.ask("PUT", at, {})
    tenant.ask("POST", f"{at}/exec", {"code": "x = 1"})
    tenant.ask("POST", f"{at}/exec", {"code": "import nothing_of_that_name"})
    tenant.ask("POST", f"{at}/exec", {"code": "open('/etc/shadow')"})
    tenant.ask("POST", f"{at}/exec", {"code": "import os; os._exit(1)"})
    tenant.ask("POST", f"{at}/exec", {"code": "x = 2"}, Accept="text/event-stream")
    tenant.ask("POST", f"{at}/exec", {"code": "tools.f()", "functions": [{"name": "f"}], "detach": True})
    call = tenant.ask("GET", "/v1/calls?wait=30").json()["calls"][0]
    tenant.ask("GET", f"{at}/calls")
    tenant.ask("POST", f"{at}/calls/{call['number']}", {"value": 1})
    for path in (f"/results/{call['key']}", "", "/cells", "/results", "/checkpoints", "/vars", "/files", "/diff"):
        assert tenant.ask("GET", at + path).status == 200
    for path, body in (
        ("/checkpoints", {"name": "c"}), ("/branch", {"branch": "b"}), ("/undo", {}), ("/restore", {"name": "c"}),
        ("/reset", {}), ("/interrupt", {}), ("/complete", {"code": "o"}), ("/inspect", {"code": "open"}), ("/save", {}),
        ("/load", {}), ("/stray", {}), ("/input", {"text": "x"}),
    ):  # fmt: skip
        tenant.ask("POST", at + path, body)
    for path in (
        "/v1/sessions",
        "/v1/saves",
        "/v1/saves/a",
        "/metrics",
        "/openapi.json",
        "/health",
        "/",
        "/nothing",
    ):
        tenant.ask("GET", path)
    tenant.ask("GET", f"{at}/file?path=../../x")
    tenant.ask("GET", f"{at}/file?path=/etc/passwd")
    tenant.ask("PUT", f"{at}/file?path=f", b"x")
    tenant.ask("POST", "/execute", {"code": "1", "profile": "broken"})
    tenant.ask("PUT", "/v1/sessions/broken", {"profile": "broken"})
    tenant.ask("POST", "/execute", {"code": "1/0"})
    tenant.ask("DELETE", "/v1/sessions/b")
    tenant.ask("DELETE", at)
    tenant.ask("PUT", at, {})
    tenant.ask("DELETE", at)
    look(daemon, tenant)


def test_the_tools_of_mcp(daemon: Daemon, tenant: Tenant) -> None:
    tenant.tool("python_session_start", session_id="m")
    tenant.tool("python_session_execute", session_id="m", code="import nothing_of_that_name")
    tenant.tool("python_session_execute", session_id="m", code="open('f', 'w').write('x')")
    tenant.tool("python_session_execute", session_id="m", code="import os; os._exit(1)")
    tenant.tool("python_execute_once", code="1/0")
    tenant.tool("copy_to_sandbox", session_id="m", source="/etc/passwd")
    tenant.tool("copy_to_sandbox", session_id="m", source="nothing")
    tenant.tool("python_session_files", session_id="m")
    tenant.tool("check_syntax", code="(")
    tenant.tool("python_session_reset", session_id="m")
    tenant.tool("python_session_shutdown", session_id="m")
    tenant.tool("python_session_undo", session_id="none")
    look(daemon, tenant)


def test_the_sandboxes_of_e2b(daemon: Daemon, tenant: Tenant) -> None:
    key = {"X-API-KEY": tenant.secret}
    id_ = tenant.ask("POST", "/sandboxes", {"templateID": "base"}, **key).json()["sandboxID"]
    at = {"E2b-Sandbox-Id": id_, **key}
    for path in ("/sandboxes", f"/sandboxes/{id_}", f"/sandboxes/{id_}/metrics", "/v2/sandboxes"):
        tenant.ask("GET", path, **key)
    for path in ("/contexts", "/envs", "/files?path=nothing", "/files?path=/etc/shadow"):
        tenant.ask("GET", path, **at)
    tenant.ask("POST", "/contexts", {}, **at)
    for call in ("Stat", "ListDir", "MakeDir", "Remove"):
        for path in ("nothing", "/etc/shadow", "/home/user/nothing", "/root/x"):
            tenant.ask("POST", f"/filesystem.Filesystem/{call}", {"path": path}, **at)
    tenant.ask("POST", "/sandboxes", {"templateID": "broken"}, **key)
    tenant.ask("DELETE", f"/sandboxes/{id_}", **key)
    look(daemon, tenant)


def test_the_operator_still_sees_them(daemon: Daemon) -> None:
    with server_of(daemon) as server:
        told = server.ask("PUT", "/v1/sessions/own", {}).json()
        assert told["uid"] == os.geteuid() and told["workspace"].startswith("/") and told["pid"] > 0
        server.ask("DELETE", "/v1/sessions/own")


def test_a_laird_that_is_away(tmp_path: Path) -> None:
    away = Daemon({})
    path = tmp_path / "tokens"
    secret = away.lair("token", "add", "ann", "--tokens", str(path)).stdout.strip()
    with server_of(away, "--tokens", str(path)) as server:
        tenant = Tenant(server, secret)
        body = json.dumps({"code": "while True: pass"})
        head = f"Authorization: Bearer {secret}\r\nContent-Type: application/json\r\nAccept: text/event-stream\r\n"
        running = server.bare(
            f"POST /v1/sessions/a/exec HTTP/1.1\r\nHost: localhost\r\n{head}"
            f"Content-Length: {len(body)}\r\n\r\n{body}".encode()
        )
        wait_until(lambda: any(it.state == "busy" for it in away.client().list()), "it runs")
        assert away.terminate() == 0
        tenant.ask("POST", "/execute", {"code": "1"})
        tenant.ask("GET", "/v1/sessions")
        tenant.ask("GET", "/sandboxes", **{"X-API-KEY": secret})
        tenant.tool("python_execute_once", code="1")
        assert all(it.status >= 429 for it in tenant.told.values())
        running.shutdown(1)
        rest = b""
        while got := running.recv(65536):
            rest += got
        running.close()
        assert str(away.directory).encode() not in rest
        look(away, tenant)
    away.close()

"""lair mcp --servers: its cells call the tools of other MCP servers, and the client's person is asked."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from daemon import Daemon, wait_until
from lair import Client
from mcp_server import SCHEMAS, Json, McpServer, checked, conform, meta
from test_router_death import kill_router

UPSTREAM = Path(__file__).parent / "upstream.py"
SETTINGS = {"profile default": {"checkpoint": "cell"}}
WRITE = "tools.u.write(text='x')"
Serve = Callable[..., McpServer]


@pytest.fixture
def serve(daemon: Daemon, tmp_path: Path) -> Iterator[Serve]:
    path = tmp_path / "servers.json"
    entry = {
        "command": sys.executable,
        "args": [str(UPSTREAM)],
        "description": "what tests need",
        "env": {"LOG": str(tmp_path / "log")},
    }
    path.write_text(json.dumps({"mcpServers": {"u": entry}}))
    every: list[McpServer] = []

    def started(*arguments: str, modern: bool = True) -> McpServer:
        every.append(McpServer(daemon, "--servers", str(path), *arguments, modern=modern))
        return every[-1]

    yield started
    for it in every:
        if it.process.poll() is None:
            it.end()


def answered(server: McpServer, **params: Any) -> Json:
    """The answer to a modern request of a client that can ask."""
    fields = meta()
    fields["io.modelcontextprotocol/clientCapabilities"] = {"elicitation": {}}
    server.send(
        {"jsonrpc": "2.0", "id": 900 + len(params), "method": "tools/call", "params": {"_meta": fields, **params}}
    )
    answer: Json = server.wait(900 + len(params))
    return answer


def elicits(server: McpServer, **params: Any) -> Json:
    answer: Json = answered(server, **params)["result"]
    return answer


def test_cells_call_tools(serve: Serve) -> None:
    server = serve()
    assert server.run("tools.u.echo(text='x')", "a")["text"] == "'echo: x'"
    assert server.run("(await mcp_u.sum())['structuredContent']", "a")["text"] == "{'result': 3}"
    assert (
        server.call("python_execute_once", code="len([tools.u.echo(text=str(n)) for n in range(40)])")["text"]
        == "40"
    )
    assert server.run("tools.u.fail()", "a")["error"] == {"name": "MCPError", "value": "no such city"}


def test_a_model_is_told_of_them(serve: Serve) -> None:
    assert "u (what tests need)" in serve().request("server/discover")["instructions"]


def test_servers_that_are_not_there_are_told(daemon: Daemon, tmp_path: Path) -> None:
    path = tmp_path / "servers.json"
    path.write_text(json.dumps({"mcpServers": {"u": {"command": "/nonexistent/x"}}}))
    with McpServer(daemon, "--servers", str(path)) as server:
        assert server.run("1 + 1", "b")["text"] == "2"
        assert server.end() == 0
        assert server.process.stderr and b"Server 'u' is not available" in server.process.stderr.read()
    with McpServer(daemon, "--servers", "/nonexistent/x.json") as server:
        assert server.process.wait(10) == 2


def test_it_asks_nobody_if_that_is_allowed(serve: Serve) -> None:
    assert serve("--allow", "u.w*").run(WRITE, "c")["text"] == "'write: x'"


def test_a_client_that_cannot_ask_is_told_how_to_go_on(serve: Serve, daemon: Daemon) -> None:
    server = serve()
    waits = server.run(f"x = {WRITE}; x", "d")
    assert waits["running"] and waits["asking"] == [
        {"number": 1, "function": "u.write", "arguments": '{"text": "x"}'}
    ]
    assert "lair answer" in waits["note"] and "A call of u.write waits for approval" in waits["note"]
    again = server.call("python_result", handle=waits["handle"])
    assert again["running"] and again["asking"] == waits["asking"]
    rest = server.begin_call("python_result", handle=again["handle"])
    approve(daemon, waits)
    result = checked(server.wait(rest)["result"])
    if result.get("running"):
        result = server.call("python_result", handle=result["handle"])
    assert result["text"] == "'write: x'"


def approve(daemon: Daemon, waits: Json) -> None:
    key = waits["handle"].split("-")[0]
    with Client(str(daemon.socket)) as client:
        client.answer_call(of=key, number=waits["asking"][0]["number"], approve=True)


# ---- a client that can ask ----


@pytest.mark.parametrize(
    "answer, text",
    [
        ({"action": "accept", "content": {"approve": True}}, "'write: x'"),
        ({"action": "accept", "content": {"approve": False}}, "PermissionError"),
        ({"action": "decline"}, "PermissionError"),
    ],
)
def test_elicitation_of_the_handshake_era(serve: Serve, answer: Json, text: str) -> None:
    server = serve(modern=False)
    server.greet(elicitation={})
    call = server.begin_call("python_session_execute", code=WRITE, session_id="e")
    asked = server.wait("elicitation/create")
    assert asked["params"]["message"] == 'Code wants to call u.write with {"text": "x"}. Allow it?'
    assert asked["params"]["requestedSchema"]["properties"]["approve"]["type"] == "boolean"
    server.send({"jsonrpc": "2.0", "id": asked["id"], "result": answer})
    result = checked(server.wait(call)["result"])
    assert result.get("text", result.get("error", {}).get("name")) == text
    conform(result, SCHEMAS["python_session_execute"])


def test_no_argument_hides_another(serve: Serve) -> None:
    server = serve(modern=False)
    server.greet(elicitation={})
    server.begin_call(
        "python_session_execute", code="await mcp_u.write(a='\u202e' + 'x' * 5000, b='rm')", session_id="h"
    )
    said = server.wait("elicitation/create")["params"]["message"]
    assert said.startswith('Code wants to call u.write with {"a": "?xxx')
    assert said.endswith('xxx... (5005 bytes), "b": "rm"}. Allow it?')


def test_a_question_that_is_dismissed_stays(serve: Serve, daemon: Daemon) -> None:
    server = serve(modern=False)
    server.greet(elicitation={})
    call = server.begin_call("python_session_execute", code=WRITE, session_id="f")
    asked = server.wait("elicitation/create")
    server.send({"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "cancel"}})
    waits = checked(server.wait(call)["result"])
    assert waits["running"] and waits["asking"]
    rest = server.begin_call("python_result", handle=waits["handle"])
    approve(daemon, waits)
    result = checked(server.wait(rest)["result"])
    assert result.get("running") or result["text"] == "'write: x'"


def test_a_question_that_somebody_else_answers_is_taken_back(serve: Serve, daemon: Daemon) -> None:
    server = serve(modern=False)
    server.greet(elicitation={})
    call = server.begin_call("python_session_execute", code=WRITE, session_id="g")
    asked = server.wait("elicitation/create")
    with Client(str(daemon.socket)) as client:
        client.answer_call(session="g", number=1, approve=True)
    assert checked(server.wait(call)["result"])["text"] == "'write: x'"
    cancelled = [it["params"] for it in server.notifications if it["method"] == "notifications/cancelled"]
    assert [it["requestId"] for it in cancelled] == [asked["id"]]


@pytest.mark.parametrize("approved, text", [(True, "'write: x'"), (False, "PermissionError")])
def test_elicitation_of_the_stateless_era(serve: Serve, approved: bool, text: str) -> None:
    server = serve()
    call = {
        "name": "python_session_execute",
        "arguments": {"code": f"n = globals().get('n', 0) + 1\n{WRITE}", "session_id": "h"},
    }
    asked = elicits(server, **call)
    assert asked["resultType"] == "input_required"
    ((number, request),) = asked["inputRequests"].items()
    assert request["method"] == "elicitation/create" and "u.write" in request["params"]["message"]
    answer = {number: {"action": "accept", "content": {"approve": approved}}}
    result = elicits(server, **call, inputResponses=answer, requestState=asked["requestState"])
    structured = checked(result)
    assert structured.get("text", structured.get("error", {}).get("name")) == text
    assert server.run("n", "h")["text"] in ("1", "2")


def test_a_state_that_was_made_up(serve: Serve) -> None:
    call = {"name": "python_execute_once", "arguments": {"code": "1"}}
    server = serve()
    server.run("1", "i")
    made_up = "", "x", 7, "0123456789abcdef-0-0-0", "0123456789abcdef-0-0-0@i", "0123456789abcdef-0-0-0@0/other"
    for state in made_up:
        assert answered(server, **call, requestState=state)["error"]["code"] == -32602, state


# ---- ends ----


def test_an_answered_cell_goes_on_calling(serve: Serve) -> None:
    server = serve("--patience", "200ms")
    code = "import time\nfor n in range(8):\n    time.sleep(0.1); tools.u.echo(text=str(n))\nn"
    result = server.run(code, "i")
    for _ in range(20):
        if not result.get("running"):
            break
        result = server.call("python_result", handle=result["handle"])
    assert result["text"] == "7"


def test_a_call_outlives_a_router(serve: Serve, daemon: Daemon, tmp_path: Path) -> None:
    """And the server gets it once."""
    server = serve()
    call = server.begin_call("python_session_execute", code="tools.u.slow(text='x')", session_id="k")
    wait_until(lambda: daemon.lair_json("calls")["calls"], "the call")
    kill_router(daemon)
    assert checked(server.wait(call)["result"])["text"] == "'slow: x'"
    sent = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    assert len([it for it in sent if it.get("method") == "tools/call"]) == 1


def test_servers_end_with_it(serve: Serve) -> None:
    server = serve()
    pid = int(json.loads(eval(str(server.run("tools.u.environment()", "j")["text"])))["pid"])
    assert server.end() == 0
    wait_until(lambda: not Path(f"/proc/{pid}").exists(), "the end of the server")

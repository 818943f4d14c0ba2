"""lair mcp: how it begins, speaks and ends, in both eras of the Model Context Protocol."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from daemon import BIN, Daemon, wait_until
from lair import Client
from mcp_server import LEGACY, MODERN, Json, McpServer, checked, meta

SETTINGS = {"profile default": {"checkpoint": "cell"}}


# ---- beginnings ----


def test_discover(server: McpServer) -> None:
    it = server.request("server/discover")
    assert it["supportedVersions"] == [MODERN]
    assert set(it["capabilities"]) == {"tools", "resources", "prompts"}
    assert it["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "lair"
    assert it["ttlMs"] > 0 and it["cacheScope"] == "public" and it["instructions"]


@pytest.mark.parametrize("version", ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"])
def test_initialize_settles_on_the_version_of_the_client(daemon: Daemon, version: str) -> None:
    with McpServer(daemon, modern=False) as server:
        it = server.greet(version)
        assert it["protocolVersion"] == version
        assert it["serverInfo"]["name"] == "lair" and set(it["capabilities"]) == {"tools", "resources", "prompts"}
        assert server.request("ping") == {}


@pytest.mark.parametrize("version", [MODERN, "1999-01-01", ""])
def test_initialize_with_an_unknown_version_gets_the_newest(daemon: Daemon, version: str) -> None:
    with McpServer(daemon, modern=False) as server:
        assert server.greet(version)["protocolVersion"] == LEGACY


def test_an_unsupported_version(server: McpServer) -> None:
    server.send({"jsonrpc": "2.0", "id": 0, "method": "tools/list", "params": {"_meta": meta("2025-11-25")}})
    error = server.wait(0)["error"]
    assert error["code"] == -32022
    assert error["data"] == {"supported": [MODERN], "requested": "2025-11-25"}


@pytest.mark.parametrize(
    "fields",
    [
        {"io.modelcontextprotocol/protocolVersion": MODERN},
        {
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientCapabilities": [],
        },
        {"io.modelcontextprotocol/protocolVersion": 1, "io.modelcontextprotocol/clientCapabilities": {}},
        {},
    ],
)
def test_what_the_stateless_era_requires(server: McpServer, fields: Json) -> None:
    server.send({"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {"_meta": fields}})
    assert server.wait(1)["error"]["code"] == -32602


def test_both_eras_in_one_process(daemon: Daemon) -> None:
    with McpServer(daemon) as server:
        server.request("server/discover")
        server.modern = False
        server.greet()
        assert "ttlMs" not in server.request("tools/list")
        server.modern = True
        assert server.request("tools/list")["cacheScope"] == "public"


def test_what_left_with_the_old_era(server: McpServer) -> None:
    for method in ("ping", "logging/setLevel", "initialize"):
        assert server.refused(method)["code"] == -32601


def test_levels_of_logging(legacy: McpServer) -> None:
    assert legacy.request("logging/setLevel", {"level": "warning"}) == {}
    assert legacy.refused("logging/setLevel", {"level": "loud"})["code"] == -32602


def test_a_subscription_stays_open_and_is_closed_at_the_end(daemon: Daemon) -> None:
    with McpServer(daemon) as server:
        for id in (7, "seven"):
            server.begin("subscriptions/listen", {"notifications": {"toolsListChanged": True}}, id=id)
            it = server.receive()
            assert it and it["method"] == "notifications/subscriptions/acknowledged"
            assert it["params"] == {
                "_meta": {"io.modelcontextprotocol/subscriptionId": id},
                "notifications": {},
            }
        server.cancel("seven")
        assert server.silent()
        assert server.end() == 0
        closed = server.wait(7)["result"]
        assert closed["_meta"]["io.modelcontextprotocol/subscriptionId"] == 7
        assert closed["resultType"] == "complete" and server.receive() is None


def test_it_starts_at_once_and_no_daemon_before_one_is_needed(tmp_path: Path) -> None:
    socket = tmp_path / "run" / "socket"
    times = []
    for _ in range(5):
        with McpServer(None, socket=str(socket)) as server:
            start = time.monotonic()
            server.request("server/discover")
            server.request("tools/list")
            assert server.request("resources/list")["resources"] == []
            times.append(time.monotonic() - start)
            assert server.end() == 0
    assert min(times) < 0.1
    assert not socket.exists()


# ---- JSON-RPC ----


@pytest.mark.parametrize(
    ("line", "code", "id"),
    [
        (b"garbage", -32700, None),
        (b"{", -32700, None),
        (b'{"jsonrpc":"2.0","id":1,"method":"\xff"}', -32700, None),
        (b'{"jsonrpc":"2.0","id":1,"method":"\\ud800"}', -32700, None),
        (b"[" * 100_000, -32700, None),
        (b"[]", -32600, None),
        (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32600, None),
        (b"1", -32600, None),
        (b"null", -32600, None),
        (b"{}", -32600, None),
        (b'{"id":1,"method":"ping"}', -32600, 1),
        (b'{"jsonrpc":"1.0","id":1,"method":"ping"}', -32600, 1),
        (b'{"jsonrpc":"2.0","id":1}', -32600, 1),
        (b'{"jsonrpc":"2.0","id":1,"method":2}', -32600, 1),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":{},"method":"ping"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":' + b"9" * 400 + b',"method":"ping"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":123456789012345678901234567890,"method":"ping"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":"' + b"x" * 5000 + b'","method":"ping"}', -32600, None),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}', -32602, 1),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping\\u0000"}', -32600, 1),
        (b'{"jsonrpc":"2.0","id":1,"method":"nothing/such"}', -32601, 1),
        (b'{"jsonrpc":"2.0","id":0,"method":"completion/complete"}', -32601, 0),
        (b'{"jsonrpc":"2.0","id":1,"method":"prompts/list","params":{"cursor":"x"}}', -32602, 1),
        (b'{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"x"}}', -32602, 1),
        (b'{"jsonrpc":"2.0","id":1,"method":"tools/call"}', -32602, 1),
        (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":1}}', -32602, 1),
        (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"no_such_tool"}}', -32602, 1),
        (
            b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"check_syntax","arguments":[]}}',
            -32602,
            1,
        ),
        (b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"2"}}', -32602, 1),
        (b'{"jsonrpc":"2.0","id":1,"method":"resources/list","params":{"cursor":"x"}}', -32602, 1),
        (b'{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{}}', -32602, 1),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":{"progressToken":1.5}}}', -32602, 1),
        (b'{"jsonrpc":"2.0","id":1,"method":"server/discover"}', -32602, 1),
    ],
)
def test_what_is_wrong_gets_the_error_it_has(daemon: Daemon, line: bytes, code: int, id: Any) -> None:
    with McpServer(daemon, modern=False) as server:
        message = server.raw(line)
        assert (message["error"]["code"], message["id"]) == (code, id)
        assert isinstance(message["error"]["message"], str)
        assert server.raw(b'{"jsonrpc":"2.0","id":"still","method":"ping"}')["id"] == "still"


@pytest.mark.parametrize("id", [0, -1, 2**63 - 1, -(2**63), "", "a", "ümläut\n", "x" * 1024])
def test_any_id_comes_back_as_it_was(legacy: McpServer, id: Any) -> None:
    assert legacy.raw(json.dumps({"jsonrpc": "2.0", "id": id, "method": "ping"}).encode()) == {
        "jsonrpc": "2.0",
        "id": id,
        "result": {},
    }


def test_what_wants_no_answer_gets_none(legacy: McpServer) -> None:
    for line in (
        b"",
        b" \t\r",
        b'{"jsonrpc":"2.0","method":"nothing/such"}',
        b'{"jsonrpc":"2.0","method":"notifications/cancelled"}',
        b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"nobody"}}',
        b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":[1]}',
        b'{"jsonrpc":"2.0","id":1,"result":{}}',
        b'{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"no"}}',
    ):
        legacy.write(line + b"\n")
    assert legacy.request("ping") == {}


def test_lines_in_pieces_and_several_at_once(legacy: McpServer) -> None:
    line = b'{"jsonrpc":"2.0","id":1,"method":"ping"}\r\n'
    for byte in line:
        legacy.write(bytes([byte]))
    assert legacy.wait(1)["result"] == {}
    legacy.write(line.replace(b"1,", b"2,") + line.replace(b"1,", b"3,") + line[:10])
    assert legacy.wait(2) and legacy.wait(3)
    legacy.write(line[10:])
    assert legacy.wait(1)


def test_a_line_that_is_too_long_is_refused_and_dropped(legacy: McpServer) -> None:
    for _ in range(40):
        legacy.write(b"x" * (1 << 20))
    message = legacy.receive()
    assert message and (message["error"]["code"], message["id"]) == (-32600, None)
    legacy.write(b"the end of it\n")
    assert legacy.request("ping") == {}


def test_an_id_may_be_used_again_but_not_twice_at_once(server: McpServer, session: str) -> None:
    first = server.begin_call("python_session_execute", code="import time; time.sleep(0.5)", session_id=session)
    server.begin("tools/list", id=first)
    refused = server.receive()
    assert refused and refused["error"]["code"] == -32600
    assert server.wait(first)["result"]["structuredContent"]["ok"]
    assert server.wait(server.begin("tools/list", id=first))["result"]


def test_the_last_line_need_not_end(daemon: Daemon) -> None:
    line = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call"}).encode()
    requests = line[:-1] + b', "params": {"name": "python_execute_once", "arguments": {"code": "6 * 7"}}}'
    it = subprocess.run(
        [str(BIN / "lair"), "mcp", "--socket", str(daemon.socket)],
        input=requests,
        capture_output=True,
        timeout=20,
        check=True,
    )
    assert json.loads(it.stdout)["result"]["structuredContent"]["text"] == "42"


# ---- progress, cancellation, several at once ----


def test_progress_carries_output_as_it_comes(server: McpServer, session: str) -> None:
    code = "import time\nfor i in range(4):\n    print('line', i)\n    time.sleep(0.3)"
    for token in (0, "token"):
        server.notifications.clear()
        it = server.call("python_session_execute", token, code=code, session_id=session)
        said = [note["params"] for note in server.notifications]
        assert all(note["progressToken"] == token for note in said) and len(said) >= 3
        assert "".join(note["message"] for note in said) == it["stdout"] == "line 0\nline 1\nline 2\nline 3\n"
        values = [note["progress"] for note in said]
        assert all(a < b for a, b in zip(values, values[1:]))


def test_a_flood_of_output_is_no_flood_of_progress(server: McpServer, session: str) -> None:
    code = "for i in range(100_000):\n    print(i, flush=True)"
    it = server.call("python_session_execute", "t", code=code, session_id=session)
    assert it["stdout"].endswith("99999\n")
    assert len(server.notifications) < 200
    assert sum(len(note["params"]["message"]) for note in server.notifications) < 500_000


def test_silence_is_broken(server: McpServer, session: str) -> None:
    server.call("python_session_execute", "t", code="import time; time.sleep(2.5)", session_id=session)
    assert [note["params"]["message"] for note in server.notifications] == ["running for 2 s"]


def test_without_a_token_there_is_no_progress(server: McpServer, session: str) -> None:
    server.run("print(1)", session)
    assert server.notifications == []


@pytest.mark.parametrize("token", [None, "t"])
def test_cancelling_interrupts_the_cell_and_leaves_the_session(server: McpServer, session: str, token: Any) -> None:
    server.run("x = 1", session)
    running = server.begin_call(
        "python_session_execute",
        token,
        code="x = 2\nprint('on')\nimport time\ntime.sleep(50)",
        session_id=session,
    )
    waiting = server.begin_call("python_session_execute", code="x = 3", session_id=session)
    time.sleep(0.5)
    server.cancel(waiting)
    server.cancel(running)
    assert server.run("x", session)["text"] == "2"
    assert not server.answered(running) and not server.answered(waiting)
    assert server.silent()


def test_cancelling_what_only_asks(server: McpServer, session: str) -> None:
    server.run("pass", session)
    asked = server.begin_call("python_session_files", session_id=session)
    server.cancel(asked)
    server.request("tools/list")  # the answer was there already, or never comes
    assert server.silent(0.1)


def test_calls_run_side_by_side(server: McpServer, session: str) -> None:
    names = [f"{session}-{i}" for i in range(6)]
    for name in names:
        server.call("python_session_start", session_id=name)
    start = time.monotonic()
    slow = [
        server.begin_call("python_session_execute", code=f"import time; time.sleep(1); {i}", session_id=name)
        for i, name in enumerate(names)
    ]
    assert server.request("tools/list") and time.monotonic() - start < 0.9
    results = [checked(server.wait(id)["result"]) for id in reversed(slow)]
    assert [it["text"] for it in results] == [str(i) for i in reversed(range(6))]
    assert time.monotonic() - start < 5
    for name in names:
        server.call("python_session_shutdown", session_id=name)


# ---- ends ----


def test_the_end_of_input_ends_the_server_and_no_session(daemon: Daemon, client: Client, session: str) -> None:
    with McpServer(daemon) as server:
        server.run("x = 1", session)
        server.begin_call("python_session_execute", code="import time; time.sleep(50)", session_id=session)
        time.sleep(0.3)
        start = time.monotonic()
        assert server.end() == 0
        assert time.monotonic() - start < 3
    assert client.exec("x", session).text == "1"


def test_a_client_that_is_gone(daemon: Daemon, client: Client, session: str) -> None:
    """Nobody reads any more: the cell is interrupted, and that is all."""
    it = subprocess.Popen(
        [str(BIN / "lair"), "mcp", "--socket", str(daemon.socket)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert it.stdin and it.stdout
    client.exec("x = 1", session)
    arguments = {"code": "import time; time.sleep(50)", "session_id": session}
    call = {"name": "python_session_execute", "arguments": arguments}
    it.stdin.write(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}).encode() + b"\n")
    it.stdin.flush()
    wait_until(lambda: [i for i in client.list() if i.session == session and i.state == "busy"], "it runs")
    it.stdout.close()
    it.stdin.write(b'{"jsonrpc":"2.0","id":2,"method":"ping"}\n')
    it.stdin.flush()
    assert it.wait(10) == 0
    assert client.exec("x", session).text == "1"
    it.stdin.close()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_it_and_what_runs(daemon: Daemon, client: Client, session: str, number: int) -> None:
    client.exec("x = 1", session)
    with McpServer(daemon) as server:
        server.begin_call("python_session_execute", code="import time; time.sleep(50)", session_id=session)
        wait_until(lambda: [i for i in client.list() if i.session == session and i.state == "busy"], "it runs")
        server.process.send_signal(number)
        assert server.process.wait(5) == 0
    assert client.exec("x", session).text == "1"


def test_a_client_that_does_not_read_blocks_nobody_else(daemon: Daemon, client: Client, session: str) -> None:
    """Its answers wait; and it takes no request more, but the cells it asked for go on."""
    client.open(session)
    it = subprocess.Popen(
        [str(BIN / "lair"), "mcp", "--socket", str(daemon.socket)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert it.stdin and it.stdout
    for i in range(100):
        request = {"jsonrpc": "2.0", "id": i, "method": "tools/list", "params": {"_meta": meta()}}
        it.stdin.write(json.dumps(request).encode() + b"\n")
    it.stdin.flush()
    call = {"name": "python_session_execute", "arguments": {"code": "open('ran', 'w').close()"}}
    call["arguments"]["session_id"] = session  # type: ignore[index]
    it.stdin.write(
        json.dumps({"jsonrpc": "2.0", "id": "c", "method": "tools/call", "params": call}).encode() + b"\n"
    )
    it.stdin.flush()
    wait_until(lambda: [f for f in client.files(session) if f.name == b"ran"], "the cell ran", 20)
    it.stdin.close()
    lines = it.stdout.read().splitlines()
    assert it.wait(10) == 0 and len(lines) == 101


def test_a_router_that_dies_is_not_noticed(daemon: Daemon, session: str) -> None:
    with McpServer(daemon) as server:
        server.run("x = 41", session)
        slow = server.begin_call(
            "python_session_execute",
            "t",
            code="import time\nprint('before')\ntime.sleep(1)\nprint('after')\nx + 1",
            session_id=session,
        )
        time.sleep(0.4)
        os.kill(daemon.lair_json("status")["pid"], signal.SIGKILL)
        it = checked(server.wait(slow)["result"])
        assert (it["text"], it["stdout"]) == ("42", "before\nafter\n")
        assert server.run("x", session)["text"] == "41"


def test_a_daemon_that_ends_is_told_and_the_next_one_used(start_daemon: Any) -> None:
    daemon = start_daemon()
    with McpServer(daemon) as server:
        server.run("x = 1", "a")
        slow = server.begin_call("python_session_execute", code="import time; time.sleep(50)", session_id="a")
        time.sleep(0.3)
        daemon.terminate()
        it = checked(server.wait(slow)["result"])
        assert not it["ok"] and (it.get("state") == "ended" or it["error"]["name"] == "lost")
        daemon.start()
        it = server.run("'x' in globals()", "a")
        if not it["ok"]:  # it was sent before it was known that this is another one
            assert it["error"]["name"] == "lost", it
            it = server.run("'x' in globals()", "a")
        assert it.get("text") == "False", it


def test_no_daemon_to_be_had(tmp_path: Path) -> None:
    arguments = {"code": "1", "source": "/x", "new_session_id": "b", "steps": 2, "session_id": "a"}
    arguments["handle"] = "0123456789abcdef-0-0-0"
    arguments["packages"] = "idna"
    with McpServer(None, "--no-start", "--tools", "full", socket=str(tmp_path / "none")) as server:
        for tool in server.request("tools/list")["tools"]:
            taken = {name: arguments[name] for name in tool["inputSchema"]["properties"] if name in arguments}
            assert server.call(tool["name"], **taken)["error"]["name"] == "no_daemon"
        assert server.refused("resources/read", {"uri": "lair://sessions/a/b"})["code"] == -32602

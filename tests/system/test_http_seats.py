"""How many sessions a token may have, however many are asked for at once, and in whatever way."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from daemon import Daemon, Settings, wait_until
from http_server import Answer, Server, server_of
from lair import Client

SETTINGS: Settings = {"profile default": {"subprocess": "on", "checkpoint": "cell"}}
AT_ONCE = 40
LIMIT = 2
# Long enough that all have asked before the first has ended.
CODE = "import time; time.sleep(2)"


@pytest.fixture
def tokens(daemon: Daemon, tmp_path: Path) -> tuple[Path, str]:
    path = tmp_path / "tokens"
    told = daemon.lair("token", "add", "few", "--sessions", str(LIMIT), "--tokens", str(path))
    return path, told.stdout.strip()


class Few:
    """Somebody with a token for two sessions."""

    def __init__(self, server: Server, secret: str) -> None:
        self.server = server
        self.secret = secret

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        return self.server.ask(method, path, body, {"Authorization": f"Bearer {self.secret}", **headers})

    def put(self, i: int) -> Answer:
        return self.ask("PUT", f"/v1/sessions/s{i}", {})

    def exec(self, i: int) -> Answer:
        return self.ask("POST", f"/v1/sessions/s{i}/exec", {"code": CODE})

    def events(self, i: int) -> Answer:
        return self.ask("POST", f"/v1/sessions/s{i}/exec", {"code": CODE}, Accept="text/event-stream")

    def detached(self, i: int) -> Answer:
        return self.ask("POST", f"/v1/sessions/s{i}/exec", {"code": CODE, "detach": True})

    def execute(self, _: int) -> Answer:
        return self.ask("POST", "/execute", {"code": CODE})

    def keyed(self, i: int) -> Answer:
        return self.ask("POST", "/execute", {"code": CODE}, **{"Idempotency-Key": f"key {i}"})

    def sandbox(self, _: int) -> Answer:
        return self.ask("POST", "/sandboxes", {"templateID": "base"}, **{"X-API-KEY": self.secret})

    def tool(self, name: str, arguments: dict[str, Any]) -> Answer:
        meta = {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        }
        params = {"name": name, "arguments": arguments, "_meta": meta}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        headers = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": name}
        return self.ask("POST", "/mcp", message, Accept="application/json", **headers)

    def tool_start(self, i: int) -> Answer:
        return self.tool("python_session_start", {"session_id": f"s{i}"})

    def tool_execute(self, i: int) -> Answer:
        return self.tool("python_session_execute", {"session_id": f"s{i}", "code": CODE})

    def tool_once(self, _: int) -> Answer:
        return self.tool("python_execute_once", {"code": CODE})

    def mixed(self, i: int) -> Answer:
        ways = (self.put, self.exec, self.events, self.execute, self.sandbox, self.tool_execute, self.tool_once)
        return ways[i % len(ways)](i)


@pytest.fixture
def few(daemon: Daemon, tokens: tuple[Path, str]) -> Iterator[Few]:
    with server_of(daemon, "--tokens", str(tokens[0])) as it:
        yield Few(it, tokens[1])


class Watch:
    """The most sessions that there are at a time; branches of a sandbox are in its cage."""

    def __init__(self, daemon: Daemon) -> None:
        self.client = daemon.client()
        self.most = 0
        self.ends = threading.Event()
        self.thread = threading.Thread(target=self.run)

    def run(self) -> None:
        while not self.ends.is_set():
            self.most = max(self.most, len([it for it in self.client.list() if "~" not in it.session]))
            time.sleep(0.005)

    def __enter__(self) -> Watch:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ends.set()
        self.thread.join()


def at_once(way: Callable[[int], Answer]) -> list[Answer]:
    ready = threading.Barrier(AT_ONCE)

    def one(i: int) -> Answer:
        ready.wait()
        return way(i)

    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(one, range(AT_ONCE)))


def end_all(client: Client) -> None:
    for it in client.list():
        client.shutdown(it.session)
    wait_until(lambda: not client.list(), "all have ended")


WAYS = [
    "put", "exec", "events", "detached", "execute", "keyed", "sandbox", "tool_start", "tool_execute", "tool_once", "mixed"
]  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
def test_many_at_once(daemon: Daemon, client: Client, few: Few, way: str) -> None:
    end_all(client)
    with Watch(daemon) as watch:
        told = at_once(getattr(few, way))
    good = [it for it in told if it.status in (200, 201)]
    assert len(good) == LIMIT, [it.status for it in told]
    refused = [it for it in told if it.status == 429]
    assert len(refused) == AT_ONCE - LIMIT
    assert all(it.headers["Retry-After"] for it in refused)
    assert 1 <= watch.most <= LIMIT
    end_all(client)
    # There is room again.
    assert [few.put(i).status for i in range(LIMIT + 1)] == [200] * LIMIT + [429]
    end_all(client)


@pytest.mark.parametrize("way", ["exec", "execute", "tool_once"])
def test_whoever_goes_away_at_once_has_no_more(daemon: Daemon, client: Client, few: Few, way: str) -> None:
    """The requests are on their way to laird when their clients have gone."""
    end_all(client)
    path = {"exec": "/v1/sessions/{}/exec", "execute": "/execute", "tool_once": "/mcp"}[way]
    body = {"code": CODE}
    headers = {"Authorization": f"Bearer {few.secret}", "Content-Type": "application/json", "Host": "localhost"}
    if way == "tool_once":
        version = {"protocolVersion": "2025-11-25", "capabilities": {}}
        begin = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": version}
        headers["Mcp-Session-Id"] = few.ask("POST", "/mcp", begin).headers["Mcp-Session-Id"]
    with Watch(daemon) as watch:
        for i in range(AT_ONCE):
            if way == "tool_once":
                params = {"name": "python_execute_once", "arguments": body}
                text = json.dumps({"jsonrpc": "2.0", "id": i + 2, "method": "tools/call", "params": params})
            else:
                text = json.dumps(body)
            given = {**headers, "Content-Length": str(len(text))}
            head = "".join(f"{name}: {value}\r\n" for name, value in given.items())
            few.server.bare(f"POST {path.format(f's{i}')} HTTP/1.1\r\n{head}\r\n{text}".encode()).close()
        time.sleep(0.5)
    assert watch.most <= LIMIT
    wait_until(lambda: not client.list() or way == "exec", "they have ended", 60)
    end_all(client)


def test_one_after_another(client: Client, few: Few) -> None:
    """One that has ended is no hindrance to the next, however soon that comes."""
    end_all(client)
    assert few.put(0).status == 200
    for i in range(10):
        assert few.ask("POST", "/execute", {"code": "1"}).status == 200
        assert few.tool("python_execute_once", {"code": "1"}).status == 200
        assert few.ask("PUT", f"/v1/sessions/t{i}", {}).status == 200
        assert few.ask("DELETE", f"/v1/sessions/t{i}").status == 204
    assert few.put(1).status == 200
    assert few.ask("POST", "/execute", {"code": "1"}).status == 429
    # Those that exist are used as before, by any number of requests.
    assert few.put(0).status == few.put(1).status == 200
    end_all(client)


def test_a_server_that_was_started_anew_counts_what_there_is(
    daemon: Daemon, client: Client, tokens: tuple[Path, str]
) -> None:
    end_all(client)
    for _ in range(2):
        with server_of(daemon, "--tokens", str(tokens[0])) as server:
            few = Few(server, tokens[1])
            assert [few.put(i).status for i in range(LIMIT)] == [200] * LIMIT
            assert few.put(7).status == few.execute(0).status == few.tool_once(0).status == 429
    end_all(client)


def test_a_sandbox_that_is_opened_again_counts(client: Client, few: Few) -> None:
    end_all(client)
    made = few.sandbox(0)
    assert made.status == 201
    id_ = made.json()["sandboxID"]
    assert few.ask("POST", f"/sandboxes/{id_}/pause", **{"X-API-KEY": few.secret}).status == 204
    end_all(client)
    assert [few.put(i).status for i in range(LIMIT)] == [200] * LIMIT
    assert few.ask("POST", f"/sandboxes/{id_}/connect", {}, **{"X-API-KEY": few.secret}).status == 429
    assert few.ask("DELETE", "/v1/sessions/s0").status == 204
    assert few.ask("POST", f"/sandboxes/{id_}/connect", {}, **{"X-API-KEY": few.secret}).status == 201
    end_all(client)


def test_the_sandbox_without_a_name_counts(client: Client, few: Few) -> None:
    end_all(client)
    assert [few.put(i).status for i in range(LIMIT)] == [200] * LIMIT
    assert few.ask("GET", "/contexts", **{"X-API-KEY": few.secret}).status == 429
    assert few.ask("DELETE", "/v1/sessions/s0").status == 204
    assert few.ask("GET", "/contexts", **{"X-API-KEY": few.secret}).status == 200
    end_all(client)

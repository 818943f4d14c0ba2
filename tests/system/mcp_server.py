"""lair mcp as a child, spoken to in raw JSON-RPC: what it says is read by a thread, so that no test can hang on it."""

from __future__ import annotations

import itertools
import json
import queue
import subprocess
import threading
import time
from pathlib import Path
from typing import Any, Optional

from daemon import BIN, Daemon

Json = dict[str, Any]

MODERN = "2026-07-28"
LEGACY = "2025-11-25"
_META = "io.modelcontextprotocol/"


SCHEMAS: dict[str, Json] = {
    tool["name"]: tool["outputSchema"]
    for tool in json.loads((Path(__file__).parent / "golden/tools_mcp.json").read_text())
}
_TYPES: dict[str, Any] = {"object": dict, "array": list, "string": str, "boolean": bool, "integer": int}


def conform(value: Any, schema: Json) -> None:
    """As much of JSON Schema as our schemas have."""
    assert isinstance(value, _TYPES[schema["type"]]), (value, schema)
    assert value in schema.get("enum", [value])
    if isinstance(value, list):
        for item in value:
            conform(item, schema["items"])
    if isinstance(value, dict):
        assert set(schema.get("required", [])) <= set(value)
        for name, member in value.items():
            assert name in schema["properties"], (name, schema)
            conform(member, schema["properties"][name])


def meta(version: str = MODERN) -> Json:
    return {f"{_META}protocolVersion": version, f"{_META}clientCapabilities": {}}


class McpServer:
    def __init__(self, daemon: Optional[Daemon], *arguments: str, modern: bool = True, socket: str = "") -> None:
        self.modern = modern
        self._ids = itertools.count(1)
        self._said: queue.Queue[Optional[bytes]] = queue.Queue()
        self.notifications: list[Json] = []
        self.requests: list[Json] = []
        self._answers: dict[Any, Json] = {}
        env = {"PATH": "/usr/bin:/bin", "LAIR_SOCKET": str(daemon.socket) if daemon else socket}
        self.process = subprocess.Popen(
            [str(BIN / "lair"), "mcp", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=env,
        )
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            self._said.put(line)
        self._said.put(None)

    # ---- lines ----

    def write(self, data: bytes) -> None:
        assert self.process.stdin
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def send(self, message: Any) -> None:
        self.write(json.dumps(message).encode() + b"\n")

    def receive(self, timeout: float = 20) -> Optional[Json]:
        """The next message; None at the end."""
        line = self._said.get(timeout=timeout)
        if line is None:
            return None
        assert line.endswith(b"\n")
        message = json.loads(line)
        assert message["jsonrpc"] == "2.0"
        return message  # type: ignore[no-any-return]

    def silent(self, seconds: float = 0.3) -> bool:
        time.sleep(seconds)
        return self._said.empty()

    def raw(self, line: bytes) -> Json:
        """What comes back for a line."""
        self.write(line + b"\n")
        message = self.receive()
        assert message is not None
        return message

    # ---- requests ----

    def begin(self, method: str, params: Optional[Json] = None, token: Any = None, id: Any = None) -> Any:
        id = f"r{next(self._ids)}" if id is None else id
        fields = dict(meta()) if self.modern else {}
        if token is not None:
            fields["progressToken"] = token
        params = {**(params or {}), **({"_meta": fields} if fields else {})}
        self.send({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
        return id

    def wait(self, id: Any, timeout: float = 30) -> Json:
        """The answer to that request, or the next request of that method; what else comes meanwhile is kept."""
        while id not in self._answers:
            message = self.receive(timeout)
            assert message is not None, self.errors()
            if "method" in message and "id" in message:
                self.requests.append(message)
                return message if id == message["method"] else self.wait(id, timeout)
            if "method" in message:
                self.notifications.append(message)
            else:
                assert message["id"] not in self._answers
                self._answers[message["id"]] = message
        return self._answers.pop(id)

    def answered(self, id: Any) -> bool:
        return id in self._answers

    def request(self, method: str, params: Optional[Json] = None, token: Any = None) -> Json:
        answer = self.wait(self.begin(method, params, token))
        assert "error" not in answer, answer
        result: Json = answer["result"]
        assert (result.get("resultType") == "complete") == self.modern
        return result

    def greet(self, version: str = LEGACY, **capabilities: Json) -> Json:
        """As clients do that are not modern."""
        it = self.request(
            "initialize",
            {
                "protocolVersion": version,
                "capabilities": capabilities,
                "clientInfo": {"name": "test", "version": "0"},
            },
        )
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return it

    def refused(self, method: str, params: Optional[Json] = None) -> Json:
        error: Json = self.wait(self.begin(method, params))["error"]
        return error

    def notify(self, method: str, params: Json) -> None:
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    def cancel(self, id: Any) -> None:
        self.notify("notifications/cancelled", {"requestId": id, "reason": "no more"})

    # ---- tools ----

    def begin_call(self, name: str, token: Any = None, **arguments: Any) -> Any:
        return self.begin("tools/call", {"name": name, "arguments": arguments}, token)

    def call_result(self, name: str, token: Any = None, **arguments: Any) -> Json:
        return self.request("tools/call", {"name": name, "arguments": arguments}, token)

    def call(self, name: str, token: Any = None, **arguments: Any) -> Json:
        """What a tool says, which it has to say the same in each form, and as its schema has it."""
        it = checked(self.call_result(name, token, **arguments))
        conform(it, SCHEMAS[name])
        return it

    def run(self, code: str, session: str, **arguments: Any) -> Json:
        return self.call("python_session_execute", code=code, session_id=session, **arguments)

    # ---- the end ----

    def end(self, timeout: float = 10) -> int:
        """End its input."""
        assert self.process.stdin
        self.process.stdin.close()
        return self.process.wait(timeout)

    def errors(self) -> str:
        self.close()
        assert self.process.stderr
        return self.process.stderr.read().decode(errors="replace")

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def __enter__(self) -> McpServer:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def checked(result: Json) -> Json:
    structured: Json = result["structuredContent"]
    assert json.loads(result["content"][0]["text"]) == structured
    assert result["content"][0]["type"] == "text"
    assert result["isError"] == (not structured["ok"])
    return structured

"""An MCP server that does what its arguments say, right or wrong: the counterpart of `lair servers`.

usage: upstream.py [MODE]... It writes what it gets, a line each, to the file that $LOG names.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

MODES = set(sys.argv[1:])
PICTURE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def tool(name: str, reads: bool = True, **more: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": {"text": {"type": "string"}, "n": {"type": "integer"}}}
    return {
        "name": name,
        "description": f"What {name} does.",
        "inputSchema": schema,
        "annotations": {"readOnlyHint": reads},
        **more,
    }


TOOLS = [
    tool("echo"),
    tool("Echo"),
    tool("class"),
    tool("2 words!"),
    tool("write", reads=False),
    tool(
        "sum",
        outputSchema={"type": "object", "properties": {"result": {"type": "integer"}}, "required": ["result"]},
    ),
    tool("record", outputSchema={"type": "object", "properties": {"a": {"type": "integer"}}}),
    tool("deep"),
    tool("picture"),
    tool("mixed"),
    tool("fail"),
    tool("refuse"),
    tool("sleep"),
    tool("slow"),
    tool("die"),
    tool("grow"),
    tool("long"),
    tool("environment"),
]
if "fat" in MODES:
    TOOLS += [tool(f"fat{n}", inputSchema={"type": "object", "title": "x" * 20_000}) for n in range(200)]


def say(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def text(value: str, **more: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": value}], **more}


def result(name: str, arguments: dict[str, Any], params: dict[str, Any]) -> dict[str, Any] | None:
    picture = {"type": "image", "data": PICTURE, "mimeType": "image/png"}
    if name == "sum":
        return text("3", structuredContent={"result": 3})
    if name == "record":
        return text('{"a": 1}', structuredContent={"a": 1})
    if name == "deep":
        value: Any = 1
        for _ in range(40):
            value = [value]
        return text("deep", structuredContent={"a": value})
    if name == "picture":
        return {"content": [picture]}
    if name == "mixed":
        return {
            "content": [
                {"type": "text", "text": "see"},
                picture,
                {"type": "resource_link", "uri": "x://y", "name": "y"},
            ]
        }
    if name == "fail":
        return text("no such city", isError=True)
    if name == "sleep":
        say(
            {
                "method": "notifications/progress",
                "params": {"progressToken": params["_meta"]["progressToken"], "progress": 1},
            }
        )
        return None
    if name == "slow":
        time.sleep(1)
    if name == "die":
        print("the end is near", file=sys.stderr, flush=True)
        os._exit(7)
    if name == "grow":
        TOOLS.append(tool("grown"))
        say({"method": "notifications/tools/list_changed"})
    if name == "long":
        return text("x" * arguments.get("n", 0))
    if name == "environment":
        return text(
            json.dumps({**os.environ, "cwd": os.getcwd(), "argv": " ".join(sys.argv[1:]), "pid": os.getpid()})
        )
    return text(f"{name}: {arguments.get('text', '')}")


def listed(params: dict[str, Any]) -> dict[str, Any]:
    if "endless" in MODES:
        return {"tools": [tool(f"t{time.monotonic_ns()}")], "nextCursor": f"{time.monotonic_ns()}"}
    if "circle" in MODES:
        return {"tools": [], "nextCursor": "again"}
    if "many" in MODES:
        return {"tools": [tool(f"t{n}") for n in range(5000)]}
    if "odd" in MODES:
        return {
            "tools": [
                1,
                {},
                {"name": 3},
                {"name": ""},
                tool("good", inputSchema=[], description=7),
                tool("good"),
                None,
            ]
        }
    at = int(params.get("cursor", 0))
    more = {"nextCursor": str(at + 10)} if at + 10 < len(TOOLS) else {}
    return {"tools": TOOLS[at : at + 10], **more}


def answer(message: dict[str, Any]) -> None:
    method, params, id = message.get("method"), message.get("params", {}), message.get("id")
    if id is None:
        return
    modern = "io.modelcontextprotocol/protocolVersion" in params.get("_meta", {})
    if "modern" in MODES and not modern:
        say({"id": id, "error": {"code": -32601, "message": "Method not found"}})
    elif method == "initialize":
        version = "1999-01-01" if "ancient" in MODES else params["protocolVersion"]
        say({"id": "s", "method": "roots/list"})
        say({"id": 0, "method": "ping"})
        say(
            {
                "id": id,
                "result": {
                    "protocolVersion": version,
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": "u", "version": "1"},
                },
            }
        )
    elif method == "server/discover":
        say(
            {
                "id": id,
                "result": {
                    "resultType": "complete",
                    "supportedVersions": ["2026-07-28"],
                    "capabilities": {"tools": {}},
                },
            }
        )
    elif method == "tools/list":
        say({"id": id, "result": listed(params)})
    elif method == "tools/call" and "dies" in MODES:
        os._exit(1)
    elif method == "tools/call" and params["name"] == "refuse":
        say({"id": id, "error": {"code": -32602, "message": "no, not that"}})
    elif method == "tools/call":
        it = result(params["name"], params["arguments"], params)
        if it is not None:
            say({"id": id, "result": it})


def main() -> None:
    log = Path(os.environ.get("LOG", os.devnull)).open("a")  # noqa: SIM115
    if "silent" in MODES:
        time.sleep(1000)
    if "stubborn" in MODES:
        import signal

        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if "litter" in MODES:
        print("a line of a log")
        print('{"jsonrpc": "2.0", "id": 99, "result": {}}')
        print('{"jsonrpc": "2.0", "id": 1e400}')
        print("[" * 5000)
    if "flood" in MODES:
        while True:
            sys.stdout.write("x" * 65536)
    for line in sys.stdin:
        log.write(line)
        log.flush()
        answer(json.loads(line))
    if "stubborn" in MODES:
        time.sleep(1000)


main()

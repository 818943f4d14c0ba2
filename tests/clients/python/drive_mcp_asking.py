"""`lair mcp --servers` with the Python SDK of the Model Context Protocol, in the era that the argument names: code calls a tool
that asks, and the person at the client answers."""

import asyncio
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from mcp import Client, StdioServerParameters
from mcp_types import ElicitResult

LAIR = os.environ["LAIR_BIN"] + "/lair"
UPSTREAM = Path(__file__).parents[2] / "system/upstream.py"


async def main(mode: str, directory: str) -> None:
    path = Path(directory) / "servers.json"
    path.write_text(json.dumps({"mcpServers": {"u": {"command": "/usr/bin/python3", "args": [str(UPSTREAM)]}}}))
    environment = {name: os.environ[name] for name in ("LAIR_SOCKET", "PATH")}
    server = StdioServerParameters(command=LAIR, args=["mcp", "--servers", str(path)], env=environment)
    asked: list[str] = []
    answers = [
        ElicitResult(action="accept", content={"approve": True}),
        ElicitResult(action="decline"),
    ]

    async def person(_: Any, params: Any) -> ElicitResult:
        asked.append(params.message)
        return answers[len(asked) - 1]

    async with Client(server, mode=mode, elicitation_callback=person) as client:

        async def run(code: str) -> Any:
            return await client.call_tool("python_session_execute", {"code": code, "session_id": f"asks-{mode}"})

        result = await run("n = 1\ntools.u.write(text='x')")
        assert result.structured_content["text"] == "'write: x'", result
        assert asked == ['Code wants to call u.write with {"text": "x"}. Allow it?'], asked
        result = await run("n += 1\ntools.u.write(text='y')")
        assert result.structured_content["error"]["name"] == "PermissionError", result
        assert (await run("n")).structured_content["text"] == "2"


with tempfile.TemporaryDirectory() as made:
    asyncio.run(main(sys.argv[1], made))

"""`lair mcp` with the Python SDK of the Model Context Protocol, in the era that the argument names. With a second argument the
`lair serve` of that address instead."""

import asyncio
import base64
import json
import os
import signal
import subprocess
import sys
import time
from typing import Any

from mcp import Client, StdioServerParameters

LAIR = os.environ["LAIR_BIN"] + "/lair"
PICTURE = "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()"


def status() -> dict[str, Any]:
    done = subprocess.run([LAIR, "status", "--json"], capture_output=True, check=True)
    return json.loads(done.stdout)  # type: ignore[no-any-return]


async def main(mode: str) -> None:
    environment = {name: os.environ[name] for name in ("LAIR_SOCKET", "PATH")}
    program = StdioServerParameters(command=LAIR, args=["mcp"], env=environment)
    server = sys.argv[2] if len(sys.argv) > 2 else program
    session = f"of-{mode}"
    async with Client(server, mode=mode) as client:

        async def run(code: str, **more: Any) -> Any:
            return await client.call_tool("python_session_execute", {"code": code, "session_id": session}, **more)

        names = {tool.name for tool in (await client.list_tools()).tools}
        assert {"python_execute_once", "python_session_execute", "check_syntax"} <= names, names

        assert not (await run("x = 41")).is_error
        result = await run("x + 1")
        assert result.structured_content["text"] == "42", result

        failed = await run("1 / 0")
        assert failed.is_error
        assert failed.structured_content["error"]["name"] == "ZeroDivisionError"

        (picture,) = [item for item in (await run(PICTURE)).content if item.type == "image"]
        assert base64.b64decode(picture.data).startswith(b"\x89PNG")

        seen: list[str] = []

        async def progress(done: float, total: float | None, message: str | None) -> None:
            seen.append(message or "")

        code = "import time\nfor i in range(3): print(f'step {i}', flush=True); time.sleep(0.3)"
        await run(code, progress_callback=progress)
        assert "step 0" in "".join(seen), seen

        running = asyncio.ensure_future(run("import time; time.sleep(50)"))
        await asyncio.sleep(0.5)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        began = time.monotonic()
        assert (await run("x")).structured_content["text"] == "41"
        assert time.monotonic() - began < 20

        running = asyncio.ensure_future(run("import time; time.sleep(1); x"))
        await asyncio.sleep(0.3)
        os.kill(status()["pid"], signal.SIGKILL)
        assert (await running).structured_content["text"] == "41"


asyncio.run(main(sys.argv[1]))

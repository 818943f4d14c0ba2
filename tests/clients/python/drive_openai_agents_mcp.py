"""`lair mcp` behind the OpenAI Agents SDK: MCPServerStdio, and an agent with a model that reads from a script."""

import asyncio
import json
import os
import signal
import subprocess
from typing import Any

from agents import Agent, Model, ModelResponse, RunConfig, Runner, Usage
from agents.mcp import MCPServerStdio
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

LAIR = os.environ["LAIR_BIN"] + "/lair"
PICTURE = "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()"


class Scripted(Model):
    """Runs one cell after the other, and repeats what the last has answered."""

    def __init__(self, *cells: str) -> None:
        self.cells = list(cells)

    async def get_response(self, system_instructions, input, *rest, **more) -> ModelResponse:  # type: ignore[no-untyped-def]
        if self.cells:
            arguments = json.dumps({"code": self.cells.pop(0), "session_id": "of-agents"})
            name, id = "python_session_execute", f"call-{len(self.cells)}"
            output: Any = ResponseFunctionToolCall(type="function_call", call_id=id, name=name, arguments=arguments)
        else:
            said = [item["output"] for item in input if item.get("type") == "function_call_output"][-1]
            content = [ResponseOutputText(type="output_text", text=json.dumps(said), annotations=[])]
            output = ResponseOutputMessage(
                type="message", id="1", role="assistant", status="completed", content=content
            )
        return ModelResponse(output=[output], usage=Usage(), response_id=None)

    def stream_response(self, *arguments: Any, **more: Any) -> Any:
        raise NotImplementedError


async def main() -> None:
    environment = {name: os.environ[name] for name in ("LAIR_SOCKET", "PATH")}
    params: Any = {"command": LAIR, "args": ["mcp"], "env": environment}
    # Its own limit for an answer is five seconds, which is soon over for cells.
    async with MCPServerStdio(params, client_session_timeout_seconds=60, name="lair") as server:

        async def run(code: str) -> Any:
            return await server.call_tool("python_session_execute", {"code": code, "session_id": "of-agents"})

        assert "python_session_execute" in {tool.name for tool in await server.list_tools()}
        agent = Agent(name="analyst", model=Scripted("x = 41", "1 / 0", "x + 1"), mcp_servers=[server])
        result = await Runner.run(agent, "go", run_config=RunConfig(tracing_disabled=True))
        assert "42" in result.final_output, result.final_output

        (picture,) = [item for item in (await run(PICTURE)).content if item.type == "image"]
        assert len(picture.data) > 1000

        running = asyncio.ensure_future(run("import time; time.sleep(50)"))
        await asyncio.sleep(0.5)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        assert '"41"' in (await run("x")).model_dump_json()

        done = subprocess.run([LAIR, "status", "--json"], capture_output=True, check=True)
        os.kill(json.loads(done.stdout)["pid"], signal.SIGKILL)
        assert '"42"' in (await run("x + 1")).model_dump_json()


asyncio.run(main())

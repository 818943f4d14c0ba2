"""The OpenAI Agents SDK, with a model that reads from a script."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

from agents import Agent, Model, ModelResponse, RunConfig, Runner, Usage
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

import lair
from lair.adapters.openai_agents import function_tools
from lair.tools import Tools


def call(name: str, **arguments: Any) -> ResponseFunctionToolCall:
    text = json.dumps(arguments)
    return ResponseFunctionToolCall(type="function_call", call_id=f"call-{id(text)}", name=name, arguments=text)


def say(text: str) -> ResponseOutputMessage:
    content = [ResponseOutputText(type="output_text", text=text, annotations=[])]
    return ResponseOutputMessage(type="message", id="1", role="assistant", status="completed", content=content)


class Scripted(Model):
    """Each step is given the answer of the tool before."""

    def __init__(self, *steps: Callable[[dict[str, Any]], Any]) -> None:
        self.steps = list(steps)
        self.offered: list[str] = []

    async def get_response(self, system_instructions, input, model_settings, tools, *rest, **more) -> ModelResponse:  # type: ignore[no-untyped-def]
        self.offered = [tool.name for tool in tools]
        items = input if isinstance(input, list) else []
        outputs = [item["output"] for item in items if item.get("type") == "function_call_output"]
        said = outputs[-1] if outputs else "{}"
        if not isinstance(said, str):
            text, picture = said
            assert picture["image_url"].startswith("data:image/png;base64,iVBOR")
            said = text["text"]
        answer = json.loads(said)
        return ModelResponse(output=[self.steps.pop(0)(answer)], usage=Usage(), response_id=None)

    def stream_response(self, *arguments: Any, **more: Any) -> Any:
        raise NotImplementedError


def run(code: str, **more: Any) -> ResponseFunctionToolCall:
    return call(
        "python_session_execute", **{"code": code, "session_id": None, "timeout_sec": None, "cwd_rel": None, **more}
    )


async def main() -> None:
    model = Scripted(
        lambda _: run("x = 41"),
        lambda answer: run("x + 1") if answer["ok"] else say("no"),
        lambda answer: run("while True: pass", timeout_sec=0.3) if answer["text"] == "42" else say("no"),
        lambda answer: run("x") if (answer["cause"], answer["state"]) == ("timeout", "kept") else say(str(answer)),
        lambda answer: run("import matplotlib.pyplot as p; p.plot([1]); p.show(); x"),
        lambda answer: say(f"it is {answer['text']}"),
    )
    with Tools(images=True) as tools:
        agent = Agent(name="analyst", model=model, tools=function_tools(tools))
        result = await Runner.run(agent, "go", run_config=RunConfig(tracing_disabled=True))
        assert result.final_output == "it is 41", result.final_output
        assert "python_execute_once" in model.offered
        assert len(lair.sessions()) == 1


asyncio.run(main())

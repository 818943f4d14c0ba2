"""Pydantic AI, with its FunctionModel and its TestModel."""

import json

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.test import TestModel

from lair.adapters.pydantic_ai import toolset
from lair.tools import TOOLS, Tools


def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    assert {tool.name for tool in info.function_tools} == set(TOOLS)
    returned = [part.content for message in messages for part in message.parts if isinstance(part, ToolReturnPart)]
    arguments = {"session_id": None, "timeout_sec": None, "cwd_rel": None}
    if not returned:
        return ModelResponse(parts=[ToolCallPart("python_session_execute", {"code": "x = 41", **arguments})])
    if len(returned) == 1:
        assert returned[0]["ok"]
        code = "import matplotlib.pyplot as p; p.plot([1]); p.show(); x + 1"
        return ModelResponse(parts=[ToolCallPart("python_session_execute", {"code": code, **arguments})])
    assert "image/png" in repr(messages)
    return ModelResponse(parts=[TextPart(f"it is {returned[-1]['text']}")])


agent = Agent(FunctionModel(model), toolsets=[toolset(Tools(images=True))])
assert agent.run_sync("go").output == "it is 42"

# Its own model makes up arguments from the schemas; whatever they are, there is an answer.
answers = json.loads(Agent(TestModel(), toolsets=[toolset()]).run_sync("go").output)
assert set(answers) == set(TOOLS), answers
assert all(answer["ok"] in (True, False) for answer in answers.values()), answers

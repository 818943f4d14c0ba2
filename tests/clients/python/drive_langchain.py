"""LangChain, with a chat model that reads from a list."""

import asyncio
import json

from langchain_core.language_models.fake_chat_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.utils.function_calling import convert_to_openai_tool

from lair import tools
from lair.adapters.langchain import structured_tools


def asks(code: str, id: str) -> AIMessage:
    arguments = {"code": code, "session_id": None, "timeout_sec": None, "cwd_rel": None}
    return AIMessage("", tool_calls=[{"name": "python_session_execute", "args": arguments, "id": id}])


model = FakeMessagesListChatModel(responses=[asks("x = 41", "1"), asks("x + 1", "2"), AIMessage("done")])
available = {tool.name: tool for tool in structured_tools()}
messages: list[BaseMessage] = [HumanMessage("go")]
while True:
    answer = model.invoke(messages)
    messages.append(answer)
    if not answer.tool_calls:
        break
    messages += [available[call["name"]].invoke(call) for call in answer.tool_calls]

said = [json.loads(message.content) for message in messages if isinstance(message, ToolMessage)]
assert [it.get("text") for it in said] == [None, "42"], said

execute = available["python_session_execute"]
assert json.loads(asyncio.run(execute.ainvoke({"code": "x"})))["text"] == "41"

offered = convert_to_openai_tool(execute)["function"]
(ours,) = [it["function"] for it in tools.schemas() if it["function"]["name"] == execute.name]
assert (offered["name"], offered["description"]) == (ours["name"], ours["description"])
assert offered["parameters"]["properties"].keys() == ours["parameters"]["properties"].keys()

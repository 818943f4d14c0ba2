"""Google's ADK: an LlmAgent whose model reads from a list and whose code runs in Lair."""

import asyncio
from collections.abc import AsyncGenerator

from google.adk.agents import LlmAgent
from google.adk.agents.invocation_context import InvocationContext
from google.adk.code_executors.code_execution_utils import CodeExecutionInput, File
from google.adk.models import BaseLlm, LlmRequest, LlmResponse
from google.adk.runners import InMemoryRunner
from google.genai import types

import lair
from lair.adapters.google_adk import LairCodeExecutor


class Scripted(BaseLlm):
    model: str = "scripted"
    texts: list[str]

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        yield LlmResponse(content=types.Content(role="model", parts=[types.Part(text=self.texts.pop(0))]))


def code(text: str) -> str:
    return f"```python\n{text}\n```"


async def main() -> None:
    executor = LairCodeExecutor()
    model = Scripted(texts=[code("x = 41"), code("x + 1"), code("print('before'); 1 / 0"), code("x"), "done"])
    agent = LlmAgent(name="analyst", model=model, code_executor=executor)
    runner = InMemoryRunner(agent=agent, app_name="test")
    session = await runner.session_service.create_session(app_name="test", user_id="somebody")
    results = []
    message = types.Content(role="user", parts=[types.Part(text="go")])
    async for event in runner.run_async(user_id="somebody", session_id=session.id, new_message=message):
        for part in event.content.parts if event.content else []:
            if part.code_execution_result:
                results.append(part.code_execution_result)
    assert "42" in results[1].output, results
    assert results[2].outcome == types.Outcome.OUTCOME_FAILED
    assert "ZeroDivisionError" in results[2].output
    assert "41" in results[3].output, results

    given = CodeExecutionInput("open('table').read()", input_files=[File("table", b"42")], execution_id="another")
    for _ in range(2):
        assert "42" in executor.execute_code(InvocationContext.model_construct(), given).stdout
        for info in lair.sessions():
            lair.Session(info.session).shutdown()  # as if it had been idle for too long


asyncio.run(main())

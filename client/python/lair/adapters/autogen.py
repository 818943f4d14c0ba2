"""AutoGen: `PythonCodeExecutionTool(LairCodeExecutor())`, `CodeExecutorAgent("runner", LairCodeExecutor())`."""

from __future__ import annotations

import asyncio

from autogen_core import CancellationToken
from autogen_core.code_executor import CodeBlock, CodeExecutor, CodeResult
from pydantic import BaseModel

from ..aio import Session

_PYTHON = ("python", "python3", "py", "")


class LairCodeExecutor(CodeExecutor):
    """Runs Python blocks in one session, from start to stop."""

    component_config_schema = BaseModel

    def __init__(self, session: Session | None = None, *, timeout: float | None = None) -> None:
        self.session = session or Session(renew=True)
        self.timeout = timeout

    async def execute_code_blocks(
        self, code_blocks: list[CodeBlock], cancellation_token: CancellationToken
    ) -> CodeResult:
        output = ""
        for block in code_blocks:
            if block.language.lower() not in _PYTHON:
                return CodeResult(1, f"{output}no {block.language} here, only Python\n")
            running = asyncio.ensure_future(self.session.run(block.code, timeout=self.timeout))
            cancellation_token.link_future(running)
            result = await running
            output += result.transcript()
            if not result.ok:
                return CodeResult(result.returncode, output)
        return CodeResult(0, output)

    async def start(self) -> None:
        await self.session.open()

    async def stop(self) -> None:
        await self.session.close()

    async def restart(self) -> None:
        await self.session.open()  # it may not have been opened, or may have ended
        await self.session.reset()

"""AutoGen: what its agents ask of a code executor."""

import asyncio

from autogen_core import CancellationToken
from autogen_core.code_executor import CodeBlock, CodeExecutor

import lair
from lair.adapters.autogen import LairCodeExecutor


async def main() -> None:
    token = CancellationToken()
    await LairCodeExecutor().restart()
    async with LairCodeExecutor() as executor:
        assert isinstance(executor, CodeExecutor)

        async def run(*blocks: str) -> tuple[int, str]:
            result = await executor.execute_code_blocks([CodeBlock(code, "python") for code in blocks], token)
            return result.exit_code, result.output

        assert await run("x = 41; print('set')", "x + 1") == (0, "set\n42\n")
        code, output = await run("1 / 0", "print('never')")
        assert (code, output.endswith("ZeroDivisionError: division by zero\n")) == (1, True), output
        code, output = await run("import os; os._exit(9)")
        assert (code, "after cell" in output) == (9, True), output
        result = await executor.execute_code_blocks([CodeBlock("ls", "sh")], token)
        assert result.exit_code == 1

        stop = CancellationToken()
        running = asyncio.ensure_future(
            executor.execute_code_blocks([CodeBlock("while True: pass", "python")], stop)
        )
        await asyncio.sleep(0.5)
        stop.cancel()
        try:
            await running
        except asyncio.CancelledError:
            pass
        else:
            raise AssertionError("was not cancelled")
        assert await run("x") == (0, "41\n")
        await executor.restart()
        assert (await run("x"))[0] == 1
    assert lair.sessions() == []


asyncio.run(main())

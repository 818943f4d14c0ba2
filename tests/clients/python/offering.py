"""Tools of a framework as functions of cells, from a program that waits and from one that does not."""

import asyncio
from collections.abc import Iterable
from typing import Any

import lair
import lair.aio


def try_out(tools: Iterable[Any], *steps: tuple[str, str], **options: Any) -> None:
    """Each step is code, and what its last expression prints as, or the error that it ends with. The first step sees the
    functions' signatures and documentation in `said`."""
    given = list(tools)
    before = "said = '\\n'.join(f'{tools.__getattr__(n)!r} {tools.__getattr__(n).__doc__}' for n in dir(tools) if n != 'find')"
    with lair.Session(functions=given) as session:
        for code, expected in (("import asyncio", ""), (before, ""), *steps):
            check(code, session.run(code, **options), expected)

    async def in_a_loop() -> None:
        async with lair.aio.Session(functions=given) as session:
            for code, expected in (("import asyncio", ""), (before, ""), *steps):
                check(code, await session.run(code, **options), expected)

    asyncio.run(in_a_loop())


def check(code: str, result: lair.Result, expected: str) -> None:
    said = f"{result.error.name}: {result.error.value}" if result.error else result.text or ""
    fits = expected in said if result.error else said == expected
    assert fits, f"{code}\nis {said}\nnot {expected}\n{result.stderr}"

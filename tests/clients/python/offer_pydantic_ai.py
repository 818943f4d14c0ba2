"""Tools of Pydantic AI as functions of cells."""

import asyncio
from typing import Any

from pydantic import BaseModel
from pydantic_ai import ModelRetry, RunContext, Tool

import lair
from offering import try_out


class Line(BaseModel):
    text: str
    inner: "Line | None" = None


def depth(line: Line) -> int:
    """How deep it is.

    Args:
        line: the outermost
    """
    return 1 + (depth(line.inner) if line.inner else 0)


def wrap(text: str, times: int = 1) -> Line:
    return Line(text=text, inner=wrap(text, times - 1) if times else None)


async def later(n: int) -> int:
    await asyncio.sleep(0.01)
    if n < 0:
        raise ModelRetry("not below 0")
    return n + 1


def who(ctx: RunContext[str], greeting: str = "Hello") -> str:
    return f"{greeting}, {ctx.deps}"


def known(ctx: RunContext[Any], n: int) -> None:
    if n > 100:
        raise ModelRetry("too much")


asks = lair.Function(Tool(later, requires_approval=True, timeout=4))
assert (asks.ask, asks.timeout) == (True, 4.0)
try_out(
    [
        Tool(depth),
        Tool(wrap),
        Tool(later, args_validator=known),
        lair.Function(Tool(who), context="Bob"),
    ],
    ("tools.depth('a', {'text': 'b'}), tools.depth(text='a')", "(2, 1)"),
    ("tools.wrap('x')", "{'text': 'x', 'inner': {'text': 'x', 'inner': None}}"),
    ("await asyncio.gather(*[tools.later.aio(n) for n in range(5)])", "[1, 2, 3, 4, 5]"),
    ("tools.later(-1)", "ModelRetry: not below 0"),
    ("tools.later(101)", "ModelRetry: too much"),
    ("tools.who()", "'Hello, Bob'"),
    ("tools.depth(1)", "TypeError: depth(): text is str, not int"),
    ("'How deep' in said, 'inner' in said", "(True, True)"),
    ("str(tools.wrap.__signature__)", "'(text: str, times: int = 1) -> Line'"),
)

"""Function tools of the OpenAI Agents SDK as functions of cells."""

import asyncio
from typing import Any

from agents import FunctionTool, RunContextWrapper, function_tool
from agents.tool_context import ToolContext
from typing_extensions import TypedDict

import lair
from offering import try_out


class Point(TypedDict):
    x: float
    y: float


@function_tool
def distance(a: Point, b: Point | None = None) -> float:
    """How far a point is from another.

    Args:
        a: where it is
        b: the other; without it, the middle
    """
    b = b or {"x": 0, "y": 0}
    return ((a["x"] - b["x"]) ** 2 + (a["y"] - b["y"]) ** 2) ** 0.5


@function_tool
async def later(n: int, times: int = 2) -> int:
    await asyncio.sleep(0.01)
    return n * times


@function_tool
def fails(kind: str) -> str:
    raise KeyError(f"no {kind}")


@function_tool
async def who(context: RunContextWrapper[Any]) -> Any:
    return context.context


@function_tool(needs_approval=True, timeout=3)
async def pay(amount: int) -> str:
    return f"paid {amount}"


async def invoke(context: ToolContext[Any], arguments: str) -> Any:
    return arguments


schema = {"type": "object", "properties": {"q": {"type": "string"}, "n": {"type": ["integer", "null"]}}}
raw = FunctionTool("raw", "As it comes.", schema, invoke)

asks = lair.Function(pay)
assert (asks.ask, asks.timeout) == (True, 3.0)
assert lair.Function(pay, ask=False).ask is False
try_out(
    [distance, later, fails, raw, lair.Function(who, context={"user": "bob"})],
    ("tools.distance({'x': 3, 'y': 4}), tools.distance({'x': 3, 'y': 4}, {'x': 3, 'y': 3})", "(5.0, 1.0)"),
    ("await asyncio.gather(*[tools.later.aio(n) for n in range(5)], tools.later.aio(2, 9))", "[0, 2, 4, 6, 8, 18]"),
    ("tools.fails('x')", "KeyError: 'no x'"),
    ("tools.raw('x')", '\'{"n": null, "q": "x"}\''),
    ("tools.who()", "{'user': 'bob'}"),
    ("tools.distance({'x': 'a', 'y': 1})", "TypeError: distance(): a['x'] is float, not str"),
    ("'where it is' in said, 'How far a point' in said", "(True, True)"),
    ("str(tools.later.__signature__)", "'(n: int, times: int = 2) -> int'"),
)

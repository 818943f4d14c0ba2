"""Tools of LangChain as functions of cells."""

import asyncio
from typing import Any, Literal

from langchain_core.tools import BaseTool, StructuredTool, Tool, ToolException, tool
from pydantic import BaseModel, Field

import lair
from offering import try_out


class Where(BaseModel):
    lat: float = Field(description="degrees to the north")
    lon: float


class Asked(BaseModel):
    where: Where
    unit: Literal["C", "F"] = "C"


class Weather(BaseTool):
    name: str = "get-weather"
    description: str = "The weather at a place."
    args_schema: Any = Asked

    def _run(self, where: Where, unit: Literal["C", "F"] = "C") -> dict[str, Any]:
        if where.lat > 90:
            raise ToolException("there is no such place")
        return {"temperature": where.lat, "unit": unit}


class Sleeper(BaseTool):
    name: str = "sleeper"
    description: str = "It sleeps."

    def _run(self, n: int) -> str:
        raise NotImplementedError("only asynchronously")

    async def _arun(self, n: int) -> str:
        await asyncio.sleep(0.01)
        return "z" * n


@tool
async def double(n: int) -> int:
    """Twice a number."""
    await asyncio.sleep(0)
    return 2 * n


@tool(parse_docstring=True)
def add(a: int, b: int = 1) -> int:
    """Add.

    Args:
        a: the first
        b: the second
    """
    return a + b


upper = Tool("upper", lambda text: text.upper(), "In capitals.")
free = StructuredTool.from_function(
    lambda **given: sorted(given),
    name="free",
    description="x",
    args_schema={"type": "object", "properties": {"q": {}}},
)

try_out(
    [Weather(), double, add, Sleeper(), upper, lair.Function(free, name="of.free", doc="Sorts.")],
    (
        "[tools.get_weather({'lat': 3.0, 'lon': 4}), tools.add(2), tools.add(2, b=3), tools.double(4), tools.sleeper(3)]",
        "[{'temperature': 3.0, 'unit': 'C'}, 3, 5, 8, 'zzz']",
    ),
    ("await asyncio.gather(*[tools.double.aio(n) for n in range(9)])", "[0, 2, 4, 6, 8, 10, 12, 14, 16]"),
    ("tools.upper('abc'), tools.of.free(q=[1]), tools.of.free.__doc__", "('ABC', ['q'], 'Sorts.')"),
    ("tools.get_weather({'lat': 91, 'lon': 0})", "ToolException: there is no such place"),
    ("tools.get_weather({'lat': 'x'})", "TypeError: get_weather(): where has no 'lon'"),
    ("tools.add('x')", "TypeError: add(): a is int, not str"),
    (
        "'degrees to the north' in said, 'the second' in said, 'The weather at a place.' in said",
        "(True, True, True)",
    ),
    (
        "str(tools.get_weather.__signature__)",
        "\"(where: Where, unit: Literal['C', 'F'] = 'C') -> dict\"",
    ),
)

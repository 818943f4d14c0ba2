"""Tools of an MCP server as functions of cells."""

import asyncio
from typing import Any

from mcp import Client
from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations

import lair
import lair.aio
from lair.adapters import mcp

server = MCPServer("things")


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def add(a: int, b: int = 1) -> int:
    """Add."""
    return a + b


@server.tool(name="get-thing", annotations=ToolAnnotations(read_only_hint=True))
def get_thing(name: str) -> dict[str, Any]:
    if name == "no":
        raise ToolError("there is no such thing")
    return {"name": name, "parts": [1, 2]}


@server.tool()
def change(name: str) -> str:
    return name


CODE = """
import asyncio
r = [tools.of.add(2), tools.of.add(a=2, b=3), tools.of.get_thing('x')]
r += await asyncio.gather(*[tools.of.add.aio(n) for n in range(3)])
for name in ('no', 3):
    try:
        tools.of.get_thing(name)
    except Exception as error:
        r.append((type(error).__name__, 'no such thing' in str(error)))
r, str(tools.of.add.__signature__)
"""
ANSWER = (
    "([3, 5, {'name': 'x', 'parts': [1, 2]}, 1, 2, 3, ('ToolError', True), ('TypeError', False)],"
    " '(a: int, b: int = 1) -> int')"
)


async def main() -> None:
    async with Client(server) as client:
        functions = await mcp.functions(client, "of")
        assert [(it.name, it.caution) for it in functions] == [
            ("of.add", False),
            ("of.get_thing", False),
            ("of.change", True),
        ]
        safe = [it for it in functions if not it.caution]
        async with lair.aio.Session(functions=safe) as session:
            result = await session.run(CODE)
            assert result.text == ANSWER, result

        def in_a_thread() -> None:  # the client stays where it is
            with lair.Session(functions=safe) as session:
                result = session.run(CODE)
                assert result.text == ANSWER, result

        await asyncio.to_thread(in_a_thread)


asyncio.run(main())

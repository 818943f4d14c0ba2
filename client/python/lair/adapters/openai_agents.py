"""The OpenAI Agents SDK: `Agent(tools=function_tools())`."""

from __future__ import annotations

import json
from typing import Any

from agents import FunctionTool

from ..tools import TOOLS, Tool, Tools


def function_tools(tools: Tools | None = None) -> list[FunctionTool]:
    """The tools of lair.tools. Their sessions end with the program, unless `tools` has a namespace."""
    mine = tools or Tools()
    return [_function_tool(mine, tool) for tool in TOOLS.values()]


def _function_tool(tools: Tools, tool: Tool) -> FunctionTool:
    async def invoke(context: Any, arguments: str) -> str:
        return json.dumps(await tools.acall(tool.name, arguments))

    return FunctionTool(
        name=tool.name,
        description=tool.description,
        params_json_schema=tool.schema(),
        on_invoke_tool=invoke,
        strict_json_schema=True,
    )

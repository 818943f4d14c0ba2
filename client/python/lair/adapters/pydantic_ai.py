"""Pydantic AI: `Agent(toolsets=[toolset()])`."""

from __future__ import annotations

from typing import Any

from pydantic_ai import Tool as AiTool
from pydantic_ai.toolsets import FunctionToolset

from ..tools import TOOLS, Tool, Tools


def toolset(tools: Tools | None = None) -> FunctionToolset[Any]:
    """The tools of lair.tools. Their sessions end with the program, unless `tools` has a namespace."""
    mine = tools or Tools()
    return FunctionToolset([_tool(mine, tool) for tool in TOOLS.values()])


def _tool(tools: Tools, tool: Tool) -> AiTool[Any]:
    async def call(**arguments: Any) -> dict[str, Any]:
        return await tools.acall(tool.name, arguments)

    return AiTool.from_schema(call, name=tool.name, description=tool.description, json_schema=tool.schema())

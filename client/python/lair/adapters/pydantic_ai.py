"""Pydantic AI: `Agent(toolsets=[toolset()])`. With `Tools(images=True)` models see figures, too."""

from __future__ import annotations

from base64 import b64decode
from typing import Any

from pydantic_ai import BinaryContent, ToolReturn
from pydantic_ai import Tool as AiTool
from pydantic_ai.toolsets import FunctionToolset

from ..tools import TOOLS, Tool, Tools


def toolset(tools: Tools | None = None) -> FunctionToolset[Any]:
    """The tools of lair.tools. Their sessions end with the program, unless `tools` has a namespace."""
    mine = tools or Tools()
    return FunctionToolset([_tool(mine, tool) for tool in TOOLS.values()])


def _tool(tools: Tools, tool: Tool) -> AiTool[Any]:
    async def call(**arguments: Any) -> Any:
        answer = await tools.acall(tool.name, arguments)
        images = answer.pop("images", [])
        if not images:
            return answer
        content = [BinaryContent(b64decode(image["base64"]), media_type=image["type"]) for image in images]
        return ToolReturn(return_value=answer, content=content)

    return AiTool.from_schema(call, name=tool.name, description=tool.description, json_schema=tool.schema())

"""The OpenAI Agents SDK: `Agent(tools=function_tools())`. With `Tools(images=True)` models see figures, too."""

from __future__ import annotations

import json
from typing import Any

from agents import FunctionTool, ToolOutputImage, ToolOutputText

from ..tools import TOOLS, Tool, Tools


def function_tools(tools: Tools | None = None) -> list[FunctionTool]:
    """The tools of lair.tools. Their sessions end with the program, unless `tools` has a namespace."""
    mine = tools or Tools()
    return [_function_tool(mine, tool) for tool in TOOLS.values()]


def _function_tool(tools: Tools, tool: Tool) -> FunctionTool:
    async def invoke(context: Any, arguments: str) -> Any:
        answer = await tools.acall(tool.name, arguments)
        images = answer.pop("images", [])
        text = json.dumps(answer)
        if not images:
            return text
        urls = [f"data:{image['type']};base64,{image['base64']}" for image in images]
        return [ToolOutputText(text=text), *(ToolOutputImage(image_url=url) for url in urls)]

    return FunctionTool(
        name=tool.name,
        description=tool.description,
        params_json_schema=tool.schema(),
        on_invoke_tool=invoke,
        strict_json_schema=True,
    )

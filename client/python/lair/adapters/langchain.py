"""LangChain and LangGraph: `model.bind_tools(structured_tools())`, `create_agent(model, structured_tools())`."""

from __future__ import annotations

import json
from typing import Any

from langchain_core.tools import StructuredTool

from ..tools import TOOLS, Tool, Tools


def structured_tools(tools: Tools | None = None) -> list[StructuredTool]:
    """The tools of lair.tools. Their sessions end with the program, unless `tools` has a namespace."""
    mine = tools or Tools()
    return [_structured_tool(mine, tool) for tool in TOOLS.values()]


def _structured_tool(tools: Tools, tool: Tool) -> StructuredTool:
    def call(**arguments: Any) -> str:
        return json.dumps(tools.call(tool.name, arguments))

    async def acall(**arguments: Any) -> str:
        return json.dumps(await tools.acall(tool.name, arguments))

    return StructuredTool.from_function(
        call, acall, name=tool.name, description=tool.description, args_schema=tool.schema()
    )

"""LangChain and LangGraph: `model.bind_tools(structured_tools())`, `create_agent(model, structured_tools())`; and its own tools
as functions of cells."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from langchain_core.tools import BaseTool, StructuredTool
from langchain_core.tools import Tool as OneInputTool

from .. import schema as schemas
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


_SYNC = {kind._arun for kind in (BaseTool, StructuredTool, OneInputTool)}  # these call the other in a thread


def told(tool: Any, context: Any) -> Mapping[str, Any]:
    """How a tool of LangChain is a function of cells; see lair.Function."""
    made = tool.tool_call_schema
    if isinstance(tool, OneInputTool) and tool.args_schema is None:
        made = {"type": "object", "properties": tool.args, "required": list(tool.args)}
    if not isinstance(made, dict):
        made = made.model_json_schema() if hasattr(made, "model_json_schema") else made.schema()

    def run(**arguments: Any) -> Any:
        return tool.invoke(arguments, context)

    async def run_async(**arguments: Any) -> Any:
        return await tool.ainvoke(arguments, context)

    own = getattr(tool, "coroutine", None) or getattr(tool, "func", None)
    is_async = bool(getattr(tool, "coroutine", None)) or type(tool)._arun not in _SYNC
    return {
        "run": run_async if is_async else run,
        "name": schemas.name_of(tool.name),
        "doc": tool.description or "",
        "schema": {key: it for key, it in made.items() if key not in ("title", "description")},
        "returns": schemas.of_type(schemas.hints_of(own or type(tool)._run).get("return", Any)),
    }

"""Pydantic AI: `Agent(toolsets=[toolset()])`. With `Tools(images=True)` models see figures, too. And its own
tools as functions of cells."""

from __future__ import annotations

import inspect
from base64 import b64decode
from collections.abc import Mapping
from typing import Any

from pydantic_ai import BinaryContent, RunContext, ToolReturn
from pydantic_ai import Tool as AiTool
from pydantic_ai.toolsets import FunctionToolset
from pydantic_ai.usage import RunUsage

from .. import schema as schemas
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


def told(tool: Any, context: Any) -> Mapping[str, Any]:
    """How a tool of Pydantic AI is a function of cells; see lair.Function. `context` is its deps."""
    function = tool.function_schema

    async def run(**given: Any) -> Any:
        arguments = function.validator.validate_python(given)
        of = RunContext(deps=context, model=None, usage=RunUsage(), tool_name=tool.name)
        if getattr(tool, "args_validator", None):
            checked = tool.args_validator(of, **arguments)
            if inspect.isawaitable(checked):
                await checked
        value = await function.call(arguments, of)
        return value.return_value if isinstance(value, ToolReturn) else value

    return {
        "run": run,
        "name": schemas.name_of(tool.name),
        "doc": tool.description or "",
        "schema": function.json_schema,
        "returns": getattr(function, "return_schema", None),
        "ask": bool(getattr(tool, "requires_approval", False)),
        "timeout": getattr(tool, "timeout", None),
    }

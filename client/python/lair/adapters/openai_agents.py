"""The OpenAI Agents SDK: `Agent(tools=function_tools())`. With `Tools(images=True)` models see figures, too. And its own
tools as functions of cells."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from typing import Any

from agents import FunctionTool, ToolOutputImage, ToolOutputText
from agents.tool_context import ToolContext

from .. import schema as schemas
from ..calling import current
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


def told(tool: Any, context: Any) -> Mapping[str, Any]:
    """How a function tool of the SDK is a function of cells; see lair.Function."""
    if getattr(tool, "tool_input_guardrails", None) or getattr(tool, "tool_output_guardrails", None):
        raise ValueError(f"{tool.name} has guardrails, which only an agent runs: offer the function itself")
    raising = copy.copy(tool)  # what it would tell a model is an exception in a cell
    raising._use_default_failure_error_function, raising._failure_error_function = False, None
    properties = tool.params_json_schema.get("properties", {})

    async def run(**given: Any) -> Any:
        # A strict tool gets all of its arguments.
        filled = {name: it.get("default") for name, it in properties.items() if _is_optional(it)}
        text = json.dumps({**filled, **given})
        of = ToolContext(context, tool_name=tool.name, tool_call_id=current().key, tool_arguments=text)
        return await raising.on_invoke_tool(of, text)

    required = tool.params_json_schema.get("required", [])
    hints = schemas.hints_of(getattr(tool, "__wrapped__", None))
    return {
        "run": run,
        "name": schemas.name_of(tool.name),
        "doc": tool.description or "",
        "schema": {
            **{key: it for key, it in tool.params_json_schema.items() if key not in ("title", "description")},
            "required": [name for name in required if not _is_optional(properties.get(name, {}))],
        },
        "returns": getattr(tool, "output_json_schema", None) or schemas.of_type(hints.get("return", Any)),
        "ask": bool(getattr(tool, "needs_approval", False)),  # a function of the arguments decides for models alone
        "timeout": getattr(tool, "timeout_seconds", None),
    }


def _is_optional(schema: Mapping[str, Any]) -> bool:
    """A strict schema requires everything; what has a default, or may be null, need not be given."""
    options = [schema, *schema.get("anyOf", [])]
    return "default" in schema or any("null" in (it.get("type") or ()) for it in options)

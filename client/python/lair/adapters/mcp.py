"""Tools of an MCP server as functions of cells: `functions=await functions(client)`, for a client or session of the `mcp`
package. Nothing of it is imported here."""

from __future__ import annotations

import asyncio
from typing import Any

from .. import schema as schemas
from ..functions import Function


async def functions(client: Any, namespace: str = "", *, caution: bool = True) -> list[Function]:
    """One for each tool of the server, as tools.NAME, or tools.NAMESPACE.NAME. Cells get the structured content of a result,
    or its text, or else its content; an error is an exception. With `caution`, calls of tools that are not marked as
    read-only ask first. The event loop of the client must go on running; the sessions may be in any thread."""
    home = asyncio.get_running_loop()
    made, cursor = [], None
    while True:
        page = await (client.list_tools(cursor=cursor) if cursor else client.list_tools())
        made += [_function(client, home, namespace, it, caution) for it in page.tools]
        cursor = _either(page, "next_cursor", "nextCursor")
        if not cursor:
            return made


def _either(it: Any, *names: str) -> Any:
    """The field, as the package's second or first edition calls it."""
    return next((getattr(it, name) for name in names if getattr(it, name, None) is not None), None)


def _function(client: Any, home: Any, namespace: str, tool: Any, caution: bool) -> Function:
    returns = _either(tool, "output_schema", "outputSchema") or {}
    wrapped = list(returns.get("properties", {})) == ["result"]  # as the package does with what is no object

    async def run(**arguments: Any) -> Any:
        call = client.call_tool(tool.name, arguments)
        if asyncio.get_running_loop() is home:
            return _value(await call, wrapped)
        return _value(await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(call, home)), wrapped)

    if wrapped:
        returns = {**returns["properties"]["result"], "$defs": returns.get("$defs", {})}
    name = schemas.name_of(tool.name)
    return Function(
        run,
        name=f"{namespace}.{name}" if namespace else name,
        doc=tool.description or _either(tool, "title") or "",
        schema=_either(tool, "input_schema", "inputSchema") or {},
        returns=returns,
        caution=caution and not _either(tool.annotations, "read_only_hint", "readOnlyHint"),
    )


class ToolError(Exception):
    """A server says that its tool has failed."""


def _value(result: Any, wrapped: bool) -> Any:
    texts = [it.text for it in result.content if getattr(it, "type", "") == "text"]
    if _either(result, "is_error", "isError"):
        raise ToolError("\n".join(texts) or "the tool has failed")
    structured = _either(result, "structured_content", "structuredContent")
    if structured is not None:
        return structured["result"] if wrapped and "result" in structured else structured
    if len(texts) == len(result.content):
        return "\n".join(texts)
    return [it.model_dump(mode="json", by_alias=True, exclude_none=True) for it in result.content]

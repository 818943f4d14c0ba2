"""Functions that are tools of MCP servers. As tools.SERVER.TOOL(...) they give what a function would: a value, or an
exception. And under the names of a bridge that agents know, they give the result of MCP as it is: mcp_SERVER,
mcp_servers, mcp.runtime and mcp.servers.SERVER. These names are builtins, so that a session's own variables come first,
and modules that are made when they are imported."""

import asyncio
import base64
import builtins
import importlib
import importlib.machinery
import json
import sys
import types
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

if TYPE_CHECKING:
    from functions import Answer, Function, FunctionError, _await, _Future, _give_up, _result, _schema, tools

_running_loop = asyncio.get_running_loop
_Spec = importlib.machinery.ModuleSpec
_DETAILS = ("summary", "full")
_LIMIT_MAX = 20
_WRAP = "result"


class MCPError(FunctionError):
    """A server has refused a call, or its tool has failed."""

    __module__ = "tools"


# ---- what a result of MCP is as a value ----


class Media(bytes):
    """A picture, a sound, or a file. As the last expression of a cell, a picture is shown."""

    __module__ = "tools"
    mime: str

    def __new__(cls, data: bytes, mime: str) -> "Media":
        it = super().__new__(cls, data)
        it.mime = mime
        return it

    def __repr__(self) -> str:
        return f"<{self.mime}, {len(self)} bytes>"

    def __reduce__(self) -> Tuple[Any, ...]:
        return bytes, (bytes(self),)

    def _repr_mimebundle_(self, **_: object) -> Dict[str, Any]:
        return {self.mime: bytes(self)} if self.mime.startswith("image/") else {"text/plain": repr(self)}


def _media(data: object, mime: object) -> Any:
    try:
        return Media(base64.b64decode(str(data)), str(mime))
    except ValueError:
        return data


def _item(item: Any) -> Any:
    """One item of a result's content; of what it is not clear what it is, all."""
    kind = item.get("type") if isinstance(item, dict) else None
    if kind == "text":
        return item.get("text")
    if kind in ("image", "audio"):
        return _media(item.get("data"), item.get("mimeType"))
    resource = item.get("resource") if kind == "resource" else None
    if isinstance(resource, dict) and "text" in resource:
        return resource["text"]
    if isinstance(resource, dict) and "blob" in resource:
        return _media(resource["blob"], resource.get("mimeType"))
    return item


def _items(result: Dict[str, Any]) -> List[Any]:
    content = result.get("content")
    return [_item(it) for it in content] if isinstance(content, list) else []


def _is_wrapped(returns: Dict[str, Any]) -> bool:
    """Values that are no objects come as {"result": value}."""
    properties = returns.get("properties")
    return isinstance(properties, dict) and list(properties) == [_WRAP]


def _raw(result: Any) -> Dict[str, Any]:
    """What is nested deeper than a message may be has come as text."""
    raw: Dict[str, Any] = result if isinstance(result, dict) else {"content": []}
    if "structuredJson" in raw:
        raw["structuredContent"] = json.loads(raw.pop("structuredJson"))
    return raw


def _value(result: Dict[str, Any], returns: Dict[str, Any], name: str) -> Any:
    items = _items(result)
    texts = [it for it in items if isinstance(it, str)]
    if result.get("isError"):
        raise MCPError("\n".join(texts) or f"{name} has failed")
    if result.get("structuredContent") is not None:
        value = result["structuredContent"]
        return value[_WRAP] if _is_wrapped(returns) and isinstance(value, dict) and _WRAP in value else value
    if len(texts) == len(items):
        return "\n".join(texts) if items else None
    return items[0] if len(items) == 1 else items


class Tool(Function):
    """A function that is a tool of a server."""

    def __init__(self, offer: Dict[str, Any]) -> None:
        self._server, self._tool = offer["server"], offer["tool"]
        self._returns = _schema(offer.get("returns"))
        super().__init__(offer)

    def _signature(self, returns: Dict[str, Any]) -> Any:
        return super()._signature(returns["properties"][_WRAP] if _is_wrapped(returns) else returns)

    def _result(self, answer: "Answer") -> Any:
        return _value(_raw(_result(self._path, answer)), self._returns, self.__name__)

    def _doc(self, detail: str = "full") -> Dict[str, Any]:
        alias, _, tool = self._path.partition(".")
        doc: Dict[str, Any] = {"server": self._server, "serverAlias": alias, "tool": self._tool, "toolAlias": tool}
        if self._offer.get("doc"):
            doc["description"] = self._offer["doc"]
        if detail == "full":
            doc["inputSchema"] = self._schema
        return doc

    def _listed(self) -> Dict[str, Any]:
        listed: Dict[str, Any] = {"name": self._tool, "inputSchema": self._schema}
        if self._offer.get("doc"):
            listed["description"] = self._offer["doc"]
        if self._returns:
            listed["outputSchema"] = self._returns
        return listed

    async def _forward(self, arguments: Mapping[str, Any]) -> Dict[str, Any]:
        """The server looks at the arguments, and its result is given as it is."""
        waiter = _Future(_running_loop())
        try:
            self._call_with(dict(arguments), waiter)
            return _raw(_result(self._path, await _await(waiter)))
        finally:
            _give_up(waiter)


# ---- the bridge ----


def _all() -> Dict[str, Dict[str, Tool]]:
    """The servers of this cell, and their tools, both by the names that they have for themselves."""
    every: Dict[str, Dict[str, Tool]] = {}
    for it in tools._offered.values():
        if isinstance(it, Tool):
            every.setdefault(it._server, {})[it._tool] = it
    return every


def _alias(server: Dict[str, Tool]) -> str:
    alias: str = next(iter(server.values()))._path.partition(".")[0]
    return alias


def _of(name: str, error: str) -> Tuple[str, Dict[str, Tool]]:
    """A server, by its name or its alias."""
    every = _all()
    for it in every:
        if name in (it, _alias(every[it])):
            return it, every[it]
    raise MCPError(error.format(name))


_AVAILABLE = "Server '{}' is not available"
_LOADED = "Server '{}' is not loaded"
_KNOWN = "Unknown MCP server: {}"


def _tool_of(server: str, name: str) -> Tool:
    server, its = _of(server, _AVAILABLE)
    for it in its.values():
        if name in (it._tool, it._path.partition(".")[2]):
            return it
    raise MCPError(f"Server '{server}' has no tool '{name}'")


class Proxy:
    """A server: `await mcp_x.tool(name=value)` gives the result of MCP, a dict."""

    __module__ = "tools"

    def __init__(self, server: str) -> None:
        self._server = server

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)

        async def tool(**arguments: Any) -> Dict[str, Any]:
            return await _tool_of(self._server, name)._forward(arguments)

        tool.__name__ = name
        its = _all().get(self._server, {})
        tool.__doc__ = next((it.__doc__ for it in its.values() if it._path.endswith(f".{name}")), None)
        return tool

    def __dir__(self) -> List[str]:
        its = _all().get(self._server, {})
        return sorted({*(it._path.partition(".")[2] for it in its.values()), "list_tools"})

    async def list_tools(self) -> List[Dict[str, Any]]:
        return [it._listed() for it in _of(self._server, _AVAILABLE)[1].values()]

    def __repr__(self) -> str:
        return f"<MCP server {self._server}: {', '.join(dir(self))}>"


def _detail(detail: str) -> str:
    if detail not in _DETAILS:
        raise ValueError(f"detail is one of {', '.join(map(repr, _DETAILS))}, not {detail!r}")
    return detail


def _metadata(name: str) -> Dict[str, Any]:
    _, its = _of(name, _KNOWN)
    described = [it._doc("summary") for it in its.values()]
    server, alias = described[0]["server"], described[0]["serverAlias"]
    return {"name": server, "alias": alias, "tools": [{**it, "alias": it["toolAlias"]} for it in described]}


class _Runtime:
    """What mcp.runtime has."""

    MCPError = MCPError

    @staticmethod
    async def call_tool(server: str, tool: str, arguments: Optional[Mapping[str, Any]] = None) -> Dict[str, Any]:
        """The result of a tool: content, structuredContent, isError."""
        return await _tool_of(server, tool)._forward(arguments or {})

    @staticmethod
    async def list_tools(server: str) -> List[Dict[str, Any]]:
        """The tools of a server: name, description, inputSchema."""
        return [it._listed() for it in _of(server, _AVAILABLE)[1].values()]

    @staticmethod
    def list_tools_sync(server: str) -> List[Dict[str, Any]]:
        return [it._listed() for it in _of(server, _AVAILABLE)[1].values()]

    @staticmethod
    async def list_servers() -> List[str]:
        """The servers that there are."""
        return list(_all())

    @staticmethod
    def list_servers_sync() -> List[str]:
        return list(_all())

    @staticmethod
    def query_tool_docs_sync(
        server: str, tool: Optional[str] = None, detail: str = "summary"
    ) -> List[Dict[str, Any]]:
        """What there is to know of a tool, or of all tools of a server. detail: summary, or full: with the schema."""
        found, its = _of(server, _LOADED)
        asked = list(its.values()) if tool is None else [_tool_of(found, tool)]
        return [it._doc(_detail(detail)) for it in asked]

    @staticmethod
    async def query_tool_docs(
        server: str, tool: Optional[str] = None, detail: str = "summary"
    ) -> List[Dict[str, Any]]:
        return _Runtime.query_tool_docs_sync(server, tool, detail)

    @staticmethod
    def search_tool_docs_sync(query: str, *, limit: int = 5, detail: str = "summary") -> List[Dict[str, Any]]:
        """The tools that have all words of the query in their names or descriptions."""
        words, found = query.lower().split(), []
        for its in _all().values():
            for it in its.values():
                doc = it._doc(_detail(detail))
                names = ("server", "serverAlias", "tool", "toolAlias", "description")
                text = " ".join(str(doc.get(name, "")) for name in names).lower()
                if words and all(word in text for word in words):
                    found.append(doc)
        return found[: max(1, min(limit, _LIMIT_MAX))]

    @staticmethod
    async def search_tool_docs(query: str, *, limit: int = 5, detail: str = "summary") -> List[Dict[str, Any]]:
        return _Runtime.search_tool_docs_sync(query, limit=limit, detail=detail)

    @staticmethod
    def discovered_servers(detailed: bool = False) -> Tuple[Any, ...]:
        """The names of the servers; detailed: what describe_server says of each."""
        return tuple(_metadata(it) if detailed else it for it in _all())

    @staticmethod
    def describe_server(name: str) -> Dict[str, Any]:
        """The name, the alias and the tools of a server."""
        return _metadata(name)

    @staticmethod
    def list_loaded_server_metadata() -> Tuple[Dict[str, Any], ...]:
        return tuple(_metadata(it) for it in _all())

    @staticmethod
    def capability_summary() -> str:
        """How to use the servers, in a few lines."""
        servers = ", ".join(f"{name} as mcp_{_alias(its)}" for name, its in _all().items())
        return (
            f"MCP servers: {servers or 'none'}. await mcp_SERVER.TOOL(name=value) calls a tool; its result is a dict with "
            "content, structuredContent and isError. mcp.runtime.search_tool_docs_sync('words') finds tools, and "
            "mcp.runtime.query_tool_docs_sync(server, tool, detail='full') has their schemas. tools.SERVER.TOOL(name=value) "
            "calls a tool without await, and gives its value."
        )


# ---- the modules ----


def _fill(module: types.ModuleType) -> None:
    name = module.__name__
    if name == "mcp.runtime":
        public = {it: getattr(_Runtime, it) for it in vars(_Runtime) if not it.startswith("_")}
        module.__dict__.update(public, __all__=sorted(public), __doc__=_Runtime.capability_summary())
    elif name.startswith("mcp.servers."):
        proxy = Proxy(_of(name.rpartition(".")[2], _AVAILABLE)[0])
        module.__dict__.update(__getattr__=proxy.__getattr__, __dir__=proxy.__dir__, list_tools=proxy.list_tools)


class _Finder:
    """Makes mcp.runtime and mcp.servers, and mcp itself, unless there is a real package of that name: then these are in
    that one."""

    @staticmethod
    def find_spec(name: str, path: Optional[Sequence[str]] = None, target: Any = None) -> Any:
        if name in ("mcp.runtime", "mcp.servers"):
            return _Spec(name, _Finder, is_package=name == "mcp.servers")  # type: ignore[arg-type]
        if name.startswith("mcp.servers.") and name.rpartition(".")[2] in map(_alias, _all().values()):
            return _Spec(name, _Finder)  # type: ignore[arg-type]
        return None

    @staticmethod
    def create_module(spec: Any) -> None:
        return None

    @staticmethod
    def exec_module(module: types.ModuleType) -> None:
        _fill(module)


class _Last(_Finder):
    """Asked when nobody else knows mcp."""

    @staticmethod
    def find_spec(name: str, path: Optional[Sequence[str]] = None, target: Any = None) -> Any:
        return _Spec(name, _Last, is_package=True) if name == "mcp" else None  # type: ignore[arg-type]

    @staticmethod
    def exec_module(module: types.ModuleType) -> None:
        def attribute(name: str) -> Any:
            if name in ("runtime", "servers"):
                return importlib.import_module(f"mcp.{name}")
            raise AttributeError(
                f"module 'mcp' has no attribute {name!r}: there is no such package in this session"
            )

        module.__dict__["__getattr__"] = attribute


class _Servers(Mapping[str, Any]):
    """mcp_servers: by name or alias."""

    def __getitem__(self, name: str) -> Proxy:
        try:
            return _proxies[_of(name, _AVAILABLE)[0]]
        except MCPError as error:
            raise KeyError(str(error)) from None

    def __iter__(self) -> Iterator[str]:
        return iter(_all())

    def __len__(self) -> int:
        return len(_all())

    def __repr__(self) -> str:
        return f"<MCP servers: {', '.join(self) or 'none'}>"


_proxies: Dict[str, Proxy] = {}
_servers = _Servers()


def servers_offered() -> None:
    """A cell begins: its servers get their names."""
    every = _all()
    if not every and not _proxies:
        return
    for name, its in every.items():
        if name not in _proxies:
            _proxies[name] = Proxy(name)
        setattr(builtins, f"mcp_{_alias(its)}", _proxies[name])
    vars(builtins).update(mcp_servers=_servers, LOADED_MCP_SERVERS=tuple(every))
    if _Finder not in sys.meta_path:
        sys.meta_path.insert(0, _Finder)
        sys.meta_path.append(_Last)

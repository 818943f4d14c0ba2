"""MCP servers, whose tools are functions of cells. They are started and spoken to by `lair servers`; here its lines become
Functions:

    with lair.mcp.Servers("servers.json") as servers, lair.Session(functions=servers) as s:
        s.run("tools.time.get_current_time(timezone='Europe/Paris')")
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import subprocess
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future
from typing import Any

from .calling import current
from .errors import LairError
from .functions import Function
from .start import PLACES, find_program

_LOOK_SECONDS = 0.2
_END_SECONDS = 5


class MCPError(RuntimeError):
    """A server has refused a call."""


class _Tool(Function):
    """A tool of a server. Its value is the result of MCP; the cell makes of it what it says."""

    def __init__(self, run: Callable[..., Any], offer: Mapping[str, Any]) -> None:
        super().__init__(
            run,
            name=offer["name"],
            doc=offer.get("doc", ""),
            schema=offer.get("schema", {}),
            returns=offer.get("returns", {}),
        )
        self.server, self.tool = str(offer["server"]), str(offer["tool"])
        self.caution = bool(offer.get("caution"))

    @property
    def _names(self) -> None:
        """The server looks at them."""
        return None

    def wire(self, bare: bool = False) -> dict[str, Any]:
        return {**super().wire(bare), "server": self.server, "tool": self.tool}


def _error(name: str, text: str) -> Exception:
    kinds: dict[str, type[Exception]] = {"ConnectionError": ConnectionError, "LookupError": LookupError}
    return kinds.get(name, MCPError)(text)


class Servers:
    """The servers that a file names as {"mcpServers": {...}}. `functions=servers` offers their tools to cells. They are
    started at once, side by side, and end with close(), or with this process. Tools that may change something are called
    when a person has approved it, but for those whose names, SERVER.TOOL, a pattern of `allow` has."""

    def __init__(self, path: str | os.PathLike[str], *, allow: Iterable[str] = (), program: str = "lair") -> None:
        found = find_program(program)
        if found is None:
            raise LairError(
                "start", f"there is no `{program}`, which runs the servers, in PATH or {', '.join(PLACES)}"
            )
        command = [found, "servers", "--serve", *(f"--allow={it}" for it in allow), "--", os.fspath(path)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        self._ids = itertools.count(1)
        self._waiting: dict[int, Future[dict[str, Any]]] = {}
        self._lock = threading.Lock()
        self._first: Future[None] = Future()
        self._offers: list[dict[str, Any]] = []
        self._tools: dict[str, _Tool] = {}
        self._failed: dict[str, str] = {}
        threading.Thread(target=self._read, name="lair-servers", daemon=True).start()

    # ---- what there is ----

    @property
    def functions(self) -> list[Function]:
        """What they offer now; at first, this waits until each has said it, or has failed."""
        self._first.result()
        with self._lock:
            return list(self._tools.values())

    def __iter__(self) -> Iterator[Function]:
        return iter(self.functions)

    @property
    def failed(self) -> dict[str, str]:
        """The servers that are not there, or not with all of their functions, and why."""
        self._first.result()
        return dict(self._failed)

    def call(self, function: str, arguments: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Call SERVER.TOOL, as a cell would. Returns the result of MCP: content, structuredContent, isError."""
        self._first.result()
        result = self._call(function, dict(arguments or {}))
        if "structuredJson" in result:  # it is nested too deep for the messages of cells
            result["structuredContent"] = json.loads(result.pop("structuredJson"))
        return result

    # ---- lines ----

    def _send(self, line: Mapping[str, Any]) -> None:
        data = json.dumps(line).encode() + b"\n"
        assert self._process.stdin
        try:
            with self._lock:
                self._process.stdin.write(data)
                self._process.stdin.flush()
        except (OSError, ValueError):
            raise ConnectionError("the servers have been closed") from None

    def _call(self, function: str, arguments: dict[str, Any]) -> dict[str, Any]:
        answer: Future[dict[str, Any]] = Future()
        number = next(self._ids)
        self._waiting[number] = answer
        try:
            self._send({"id": number, "function": function, "arguments": arguments})
            return self._wait(number, answer)
        finally:
            self._waiting.pop(number, None)

    def _wait(self, number: int, answer: Future[dict[str, Any]]) -> dict[str, Any]:
        """Until the answer comes, or the cell that asks for it waits no longer."""
        try:
            cancelled = current().cancelled
        except LookupError:
            return answer.result()
        while True:
            with contextlib.suppress(TimeoutError):
                return answer.result(_LOOK_SECONDS)
            if cancelled.is_set():
                self._send({"cancel": number})
                raise InterruptedError("the cell waits no longer")

    def _made(self, offer: dict[str, Any]) -> _Tool:
        name = offer["name"]
        return _Tool(lambda **arguments: self._call(name, arguments), offer)

    def _take(self, line: dict[str, Any]) -> None:
        if "functions" in line:
            with self._lock:
                self._tools = {it["name"]: self._made(it) for it in line["functions"]}
                self._failed = line["failed"]
            if not self._first.done():
                self._first.set_result(None)
            return
        answer = self._waiting.get(line["id"])
        if answer is None or answer.done():
            return
        if "result" in line:
            answer.set_result(line["result"])
        elif "error" in line:
            answer.set_exception(_error(line["error"], line["text"]))

    def _read(self) -> None:
        assert self._process.stdout and self._process.stderr
        for line in self._process.stdout:
            self._take(json.loads(line))
        said = self._process.stderr.read().decode(errors="replace").strip().removeprefix("lair: ")
        if not self._first.done():
            self._first.set_exception(LairError("start", said or "lair servers has ended"))
        for answer in list(self._waiting.values()):
            if not answer.done():
                answer.set_exception(ConnectionError(said or "the servers have been closed"))

    # ---- the end ----

    def close(self) -> None:
        """End the servers. Calls that are out fail."""
        if self._process.stdin and not self._process.stdin.closed:
            with contextlib.suppress(OSError):
                self._process.stdin.close()
        try:
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def __enter__(self) -> Servers:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


__all__ = ["MCPError", "Servers"]

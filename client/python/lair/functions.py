"""Functions of this program that a cell may call: what the cell is told of them, and how its calls are answered."""

from __future__ import annotations

import asyncio
import contextvars
import copy
import dataclasses
import importlib
import inspect
import json
import keyword
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Union

from . import messages as m
from . import schema as schemas
from .errors import LairError, seconds

_THREADS = 32
# As deep as a value may be nested in a message, which is a map itself.
_DEPTH_MAX = 15
# The tools of frameworks: package and class, and the module of lair.adapters that makes functions of them.
_TOOLS = {
    ("agents", "FunctionTool"): "openai_agents",
    ("langchain_core", "BaseTool"): "langchain",
    ("pydantic_ai", "Tool"): "pydantic_ai",
}

# ---- what the cell is told ----


def _adapted(it: Any, context: Any) -> Mapping[str, Any] | None:
    """What a tool of a framework says of itself; None if it is none. The framework is loaded already."""
    for kind in type(it).__mro__:
        module = _TOOLS.get((kind.__module__.partition(".")[0], kind.__name__))
        if module is not None:
            adapter = importlib.import_module(f".adapters.{module}", __package__)
            told: Mapping[str, Any] = adapter.told(it, context)
            return told
    return None


def _is_name(name: str) -> bool:
    return all(part.isidentifier() and not keyword.iskeyword(part) for part in name.split("."))


class Function:
    """A function that a cell may call as tools.NAME, made of a function, or of a tool of the OpenAI Agents SDK, LangChain
    or Pydantic AI. `schema`, JSON Schema of its arguments, `returns`, of its value, and `doc` are taken from
    its signature and docstring, if they are not given. A name with dots is in a namespace of that name. It may be a
    coroutine function.

    `effect`: it does something that must not be done twice by mistake: after going back, the same call is an error unless
    the code or the client says again. `ask`: somebody approves each call before it is made; `caution`: the same, unless the
    profile allows the function by its name. `timeout`: how many seconds a call may take. `context`: what functions of these
    frameworks get as their context, or deps.
    """

    def __init__(
        self,
        run: Callable[..., Any],
        *,
        name: str | None = None,
        doc: str | None = None,
        schema: Mapping[str, Any] | None = None,
        returns: Mapping[str, Any] | None = None,
        effect: bool = False,
        ask: bool | None = None,
        caution: bool = False,
        timeout: float | None = None,
        context: Any = None,
    ) -> None:
        told = _adapted(run, context) or {}
        self.run: Callable[..., Any] = told.get("run", run)
        self.name: str = name or str(told.get("name") or getattr(run, "__name__", ""))
        if not _is_name(self.name):
            raise ValueError(f"{self.name!r} is no name for a function; give one by lair.Function(f, name=...)")
        self.doc: str = doc if doc is not None else told["doc"] if told else inspect.getdoc(run) or ""
        self._hints = {} if told else schemas.hints_of(run)
        given = schema if schema is not None else told.get("schema")
        self.schema = dict(given) if given is not None else schemas.of_parameters(run, self._hints)
        given = returns if returns is not None else told.get("returns")
        self.returns = dict(given) if given is not None else schemas.of_type(self._hints.get("return", Any))
        self.effect, self.caution = effect, caution
        self.ask: bool = bool(told.get("ask") if ask is None else ask)
        self.timeout: float | None = seconds("timeout", told.get("timeout") if timeout is None else timeout)

    def named(self, name: str) -> Function:
        """The same under another name."""
        new = copy.copy(self)
        new.name = name
        if not _is_name(name):
            raise ValueError(f"{name!r} is no name for a function")
        return new

    def wire(self) -> dict[str, Any]:
        offer: dict[str, Any] = {"name": self.name, "schema": json.dumps(self.schema)}
        if self.returns:
            offer["returns"] = json.dumps(self.returns)
        if self.doc:
            offer["doc"] = self.doc
        if self.timeout is not None:
            offer["timeout"] = self.timeout
        return offer | {flag: True for flag in ("effect", "ask", "caution") if getattr(self, flag)}

    def arguments(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Models, dataclasses, enums, dates and the like are made of what the cell sends."""
        return {name: self._argument(name, value) for name, value in given.items()}

    def _argument(self, name: str, value: Any) -> Any:
        try:
            return schemas.made_of(self._hints.get(name, Any), value)
        except (TypeError, ValueError) as error:
            kind = TypeError if isinstance(error, TypeError) else ValueError
            raise kind(f"{name}: {_words(error)}") from None


# Functions, Functions and tools of frameworks, or a dict with their names.
Functions = Union[Iterable[Any], Mapping[str, Any]]


def _named(name: str, it: Any) -> Function:
    return it.named(name) if isinstance(it, Function) else Function(it, name=name)


def _words(error: BaseException) -> str:
    """What it says, in a line if it is a list of mistakes as pydantic makes them."""
    try:
        mistakes = error.errors(include_url=False)  # type: ignore[attr-defined]
        return "; ".join(": ".join([*map(str, it["loc"]), str(it["msg"])]) for it in mistakes)
    except (AttributeError, TypeError, KeyError):
        pass
    words = error.args[0] if len(error.args) == 1 and isinstance(error.args[0], str) else str(error)
    return words or type(error).__name__


def collected(functions: Functions | None) -> dict[str, Function]:
    """By their names."""
    if functions is None:
        return {}
    if isinstance(functions, Mapping):
        made = [_named(name, it) for name, it in functions.items()]
    else:
        made = [it if isinstance(it, Function) else Function(it) for it in functions]
    every: dict[str, Function] = {}
    for function in made:
        if function.name in every:
            raise ValueError(f"two functions are called {function.name}")
        every[function.name] = function
    return every


# ---- calls ----


class Calling:
    """The call that a function answers, see current()."""

    def __init__(self, function: str, number: int, key: str) -> None:
        self.function, self.number = function, number
        self.key = key  # of this call alone, also if it is put again: a key of idempotency
        self.cancelled = threading.Event()  # the cell waits no longer


_current: contextvars.ContextVar[Calling] = contextvars.ContextVar("lair_calling")


def current() -> Calling:
    """In a function that a cell has called: the call. Else LookupError."""
    return _current.get()


def plain(value: Any, depth: int = _DEPTH_MAX) -> Any:
    """As it can be sent: None, bool, int, float, str, bytes, list and dict. Models and dataclasses become dicts, dates and
    paths text."""
    value = schemas.written(value)
    if value is None or isinstance(value, (bool, int, float, str, bytes)):
        if isinstance(value, int) and not isinstance(value, bool) and not -(1 << 63) <= value < 1 << 64:
            raise TypeError("an int of more than 64 bits cannot be sent")
        return value
    if not depth:
        raise ValueError(f"a value that is nested deeper than {_DEPTH_MAX} cannot be sent")
    if isinstance(value, (list, tuple)):
        return [plain(it, depth - 1) for it in value]
    if isinstance(value, Mapping):
        return {plain(key, 0): plain(it, depth - 1) for key, it in value.items()}
    if hasattr(value, "model_dump"):
        return plain(value.model_dump(), depth)
    if hasattr(value, "dtype") and hasattr(value, "tolist"):  # numpy's and pandas'
        return plain(value.tolist(), depth)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {it.name: plain(getattr(value, it.name), depth - 1) for it in dataclasses.fields(value)}
    raise TypeError(
        f"a {type(value).__name__} cannot be sent: return None, bool, int, float, str, bytes, list or dict"
    )


Give = Callable[[m.Return], None]


def _failed(number: int, error: BaseException) -> m.Return:
    """Its traceback stays here."""
    return m.Return(id=0, exec=0, number=number, error=type(error).__name__, text=_words(error))


def unsendable(answer: m.Return, refusal: LairError) -> m.Return | None:
    """The error that takes the place of a value which the daemon does not take."""
    if answer.error is not None or refusal.code not in ("bad_request", "too_large", "limit"):
        return None
    return _failed(answer.number, ValueError(f"the value cannot be sent: {refusal.message}"))


class Offer:
    """The functions of one cell, and the calls that it has made of them. A call is done once, however often it is put."""

    def __init__(self, functions: Functions | None) -> None:
        self.functions = collected(functions)
        self._answers: dict[int, m.Return | None] = {}  # None: it is being worked on
        self._calling: dict[int, Calling] = {}
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._lock = threading.Lock()
        self._threads: ThreadPoolExecutor | None = None
        self._busy_since, self._spent = 0.0, 0.0

    def wire(self) -> list[dict[str, Any]] | None:
        return [it.wire() for it in self.functions.values()] or None

    def spent(self) -> float:
        """Seconds for which calls were worked on: the cell's time stands still meanwhile."""
        with self._lock:
            return self._spent + (time.monotonic() - self._busy_since if self._calling else 0.0)

    def _begin(self, event: m.CallEvent, key: str, give: Give) -> tuple[Function, Calling] | None:
        """Whether it is to be done now, and not done or being done already."""
        with self._lock:
            if event.number in self._answers:
                known = self._answers[event.number]
                if known is not None:
                    give(known)
                return None
            self._answers[event.number] = None
            if not self._calling:
                self._busy_since = time.monotonic()
            calling = self._calling[event.number] = Calling(event.function, event.number, f"{key}/{event.number}")
        function = self.functions.get(event.function)
        if function is None:
            self._end(
                event.number, _failed(event.number, LookupError(f"there is no function {event.function}")), give
            )
            return None
        return function, calling

    def _end(self, number: int, answer: m.Return, give: Give) -> None:
        with self._lock:
            self._answers[number] = answer
            self._calling.pop(number, None)
            if not self._calling:
                self._spent += time.monotonic() - self._busy_since
        give(answer)

    def take(self, event: m.CallEvent, key: str, give: Give) -> None:
        """Do it in a thread."""
        begun = self._begin(event, key, give)
        if begun is None:
            return
        function, calling = begun

        def work() -> None:
            _current.set(calling)
            try:
                value = function.run(**function.arguments(event.arguments))
                if inspect.isawaitable(value):
                    value = asyncio.run(_awaited(value))
                answer = m.Return(id=0, exec=0, number=event.number, value=plain(value))
            except BaseException as error:
                answer = _failed(event.number, error)
            self._end(event.number, answer, give)

        if self._threads is None:
            self._threads = ThreadPoolExecutor(_THREADS, "lair-function")
        self._threads.submit(contextvars.copy_context().run, work)

    def take_in_loop(self, event: m.CallEvent, key: str, give: Give) -> None:
        """Do it in a task of the running event loop; what is no coroutine function, in a thread."""
        begun = self._begin(event, key, give)
        if begun is None:
            return
        function, calling = begun

        async def work() -> None:
            _current.set(calling)
            try:
                arguments = function.arguments(event.arguments)
                if inspect.iscoroutinefunction(function.run):
                    value = await function.run(**arguments)
                else:
                    value = await asyncio.to_thread(function.run, **arguments)
                    value = await value if inspect.isawaitable(value) else value
                answer = m.Return(id=0, exec=0, number=event.number, value=plain(value))
            except BaseException as error:
                answer = _failed(event.number, error)
            self._tasks.pop(event.number, None)
            self._end(event.number, answer, give)

        self._tasks[event.number] = asyncio.get_running_loop().create_task(work())

    def cancel(self, number: int) -> None:
        """The cell waits for it no longer."""
        with self._lock:
            calling = self._calling.get(number)
        if calling is not None:
            calling.cancelled.set()
        if number in self._tasks:
            self._tasks[number].cancel()

    def close(self) -> None:
        """The cell has ended."""
        for number in list(self._calling):
            self.cancel(number)
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)


async def _awaited(value: Any) -> Any:
    return await value


def refused(outcome: Any) -> bool:
    """Whether an answer did not get where it belongs. `gone`: the cell waits no longer, or has the answer."""
    return isinstance(outcome, LairError) and outcome.code != "gone"


__all__ = ["Calling", "Function", "Functions", "Offer", "current"]

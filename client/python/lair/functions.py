"""Functions of this program that a cell may call: what the cell is told of them, and how its calls are answered."""

from __future__ import annotations

import asyncio
import collections.abc
import contextvars
import dataclasses
import inspect
import json
import threading
import time
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal, Union

from . import messages as m
from .errors import LairError

_THREADS = 32
_PLAIN: dict[Any, dict[str, Any]] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    bytes: {"type": "string", "format": "binary"},
    list: {"type": "array"},
    tuple: {"type": "array"},
    dict: {"type": "object"},
    type(None): {"type": "null"},
    None: {"type": "null"},
}

# ---- what the cell is told ----


def _union(options: tuple[Any, ...]) -> dict[str, Any]:
    schemas = [_schema(option) for option in options]
    if all(set(it) == {"type"} for it in schemas):
        return {"type": [it["type"] for it in schemas]}
    return {"anyOf": schemas} if all(schemas) else {}


def _fields(names: Mapping[str, Any], required: Iterable[str]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {name: _schema(hint) for name, hint in names.items()},
        "required": sorted(required),
    }


def _schema(hint: Any) -> dict[str, Any]:
    """JSON Schema for a type; {}, which is anything, for one that JSON does not have."""
    if hint in _PLAIN:
        return dict(_PLAIN[hint])
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        return _schema(arguments[0])
    if origin in (Union, types.UnionType):
        return _union(arguments)
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin in (list, tuple, set, frozenset, collections.abc.Sequence, collections.abc.Iterable):
        items = [it for it in arguments if it is not Ellipsis]
        return {"type": "array", "items": _schema(items[0])} if len(items) == 1 else {"type": "array"}
    if origin in (dict, collections.abc.Mapping):
        return {"type": "object"}
    if typing.is_typeddict(hint):
        return _fields(typing.get_type_hints(hint), hint.__required_keys__)
    if isinstance(hint, type) and hasattr(hint, "model_json_schema"):
        schema: dict[str, Any] = hint.model_json_schema()
        return schema
    if dataclasses.is_dataclass(hint):
        given = {
            it.name for it in dataclasses.fields(hint) if it.default is it.default_factory is dataclasses.MISSING
        }
        return _fields(typing.get_type_hints(hint), given)
    return {}


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    try:
        return typing.get_type_hints(function)
    except Exception:  # a name that is not there at run time
        return {}


def _parameters(function: Callable[..., Any], hints: dict[str, Any]) -> dict[str, Any]:
    properties, required, more = {}, [], False
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD:
            more = True
        if parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
            continue
        if parameter.kind is parameter.POSITIONAL_ONLY:
            raise TypeError(f"{name}: calls give arguments by name, so none may be positional only")
        properties[name] = _schema(hints.get(name, Any))
        if parameter.default is parameter.empty:
            required.append(name)
        else:
            try:
                json.dumps(parameter.default)
                properties[name]["default"] = parameter.default
            except (TypeError, ValueError):
                pass
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": more}


class Function:
    """A function that a cell may call as tools.NAME. `schema`, JSON Schema of its arguments, `returns`, of its value, and
    `doc` are taken from its signature and docstring, if they are not given. A name with dots is in a namespace of that
    name. It may be a coroutine function, where an event loop runs."""

    def __init__(
        self,
        run: Callable[..., Any],
        *,
        name: str | None = None,
        doc: str | None = None,
        schema: Mapping[str, Any] | None = None,
        returns: Mapping[str, Any] | None = None,
    ) -> None:
        self.run = run
        self.name: str = name or str(getattr(run, "__name__", ""))
        if not all(part.isidentifier() for part in self.name.split(".")):
            raise ValueError(f"{self.name!r} is no name for a function; give one by lair.Function(f, name=...)")
        self.doc = doc if doc is not None else inspect.getdoc(run) or ""
        self._hints = _hints(run)
        self.schema = dict(schema) if schema is not None else _parameters(run, self._hints)
        self.returns = dict(returns) if returns is not None else _schema(self._hints.get("return", Any))

    def wire(self) -> dict[str, Any]:
        offer = {"name": self.name, "schema": json.dumps(self.schema)}
        if self.returns:
            offer["returns"] = json.dumps(self.returns)
        if self.doc:
            offer["doc"] = self.doc
        return offer

    def arguments(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Models of pydantic are made of what the cell sends."""
        return {
            name: self._hints[name].model_validate(value)
            if hasattr(self._hints.get(name), "model_validate")
            else value
            for name, value in given.items()
        }


Functions = Union[Iterable[Union[Callable[..., Any], Function]], Mapping[str, Any]]


def _named(name: str, it: Callable[..., Any] | Function) -> Function:
    if isinstance(it, Function):
        return Function(it.run, name=name, doc=it.doc, schema=it.schema, returns=it.returns)
    return Function(it, name=name)


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


def plain(value: Any) -> Any:
    """As it can be sent: None, bool, int, float, str, bytes, list and dict; models and dataclasses become dicts."""
    if value is None or isinstance(value, (bool, int, float, str, bytes)):
        if isinstance(value, int) and not isinstance(value, bool) and not -(1 << 63) <= value < 1 << 64:
            raise TypeError("an int of more than 64 bits cannot be sent")
        return value
    if isinstance(value, (list, tuple)):
        return [plain(it) for it in value]
    if isinstance(value, Mapping):
        return {plain(key): plain(it) for key, it in value.items()}
    if hasattr(value, "model_dump"):
        return plain(value.model_dump())
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return plain(dataclasses.asdict(value))
    raise TypeError(
        f"a {type(value).__name__} cannot be sent: return None, bool, int, float, str, bytes, list or dict"
    )


Give = Callable[[m.Return], None]


def _failed(number: int, error: BaseException) -> m.Return:
    """Its traceback stays here."""
    words = error.args[0] if len(error.args) == 1 and isinstance(error.args[0], str) else str(error)
    return m.Return(id=0, exec=0, number=number, error=type(error).__name__, text=words or type(error).__name__)


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

"""Functions of this program that a cell may call, and what the cell is told of them."""

from __future__ import annotations

import copy
import importlib
import inspect
import json
import keyword
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Union

from .errors import seconds

# The tools of frameworks: package and class, and the module of lair.adapters that makes functions of them.
_TOOLS = {
    ("agents", "FunctionTool"): "openai_agents",
    ("langchain_core", "BaseTool"): "langchain",
    ("pydantic_ai", "Tool"): "pydantic_ai",
    ("smolagents", "Tool"): "smolagents",
    ("smolagents", "MultiStepAgent"): "smolagents",
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
    """A function that a cell may call as tools.NAME, made of a function, or of a tool of the OpenAI Agents SDK, LangChain,
    Pydantic AI or smolagents. `schema`, JSON Schema of its arguments, `returns`, of its value, and `doc` are taken from
    its signature and docstring, if they are not given. A name with dots is in a namespace of that name. It may be a
    coroutine function.

    `effect`: it does something that must not be done twice by mistake: after going back, the same call is an error unless
    the code or the client says again. `ask`: somebody approves each call before it is made; `caution`: the same, unless the
    profile allows the function by its name. `timeout`: how many seconds a call may take. `context`: what functions of these
    frameworks get as their context, or deps.
    """

    def __init__(
        self,
        run: Any,
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
        from . import schema as schemas

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
        self._texts = json.dumps(self.schema), json.dumps(self.returns) if self.returns else None
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

    def wire(self, bare: bool = False) -> dict[str, Any]:
        schema, returns = self._texts
        offer: dict[str, Any] = {"name": self.name, "schema": schema}
        if returns:
            offer["returns"] = returns
        if self.doc:
            offer["doc"] = self.doc
        if self.timeout is not None:
            offer["timeout"] = self.timeout
        flags = {"effect": self.effect, "ask": self.ask, "caution": self.caution, "bare": bare}
        return offer | {flag: True for flag, it in flags.items() if it}

    def arguments(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Models, dataclasses, enums, dates and the like are made of what the cell sends. That is looked at in the cell, too,
        but code can go around it."""
        for name in given:
            if self._names is not None and name not in self._names:
                raise TypeError(f"{self.name} has no argument {name!r}")
        return {name: self._argument(name, value) for name, value in given.items()}

    @property
    def _names(self) -> Mapping[str, Any] | None:
        """Of its arguments; None: it takes others, too."""
        known = self.schema.get("properties")
        return None if self.schema.get("additionalProperties") or not isinstance(known, dict) else known

    def _argument(self, name: str, value: Any) -> Any:
        from . import schema as schemas

        try:
            return schemas.made_of(self._hints.get(name, Any), value)
        except (TypeError, ValueError) as error:
            kind = TypeError if isinstance(error, TypeError) else ValueError
            raise kind(f"{name}: {words(error)}") from None


# Functions, Functions and tools of frameworks, or a dict with their names.
Functions = Union[Iterable[Any], Mapping[str, Any]]


def _named(name: str, it: Any) -> Function:
    return it.named(name) if isinstance(it, Function) else Function(it, name=name)


def words(error: BaseException) -> str:
    """What it says, in a line if it is a list of mistakes as pydantic makes them."""
    try:
        mistakes = error.errors(include_url=False)  # type: ignore[attr-defined]
        return "; ".join(": ".join([*map(str, it["loc"]), str(it["msg"])]) for it in mistakes)
    except (AttributeError, TypeError, KeyError):
        pass
    words = error.args[0] if len(error.args) == 1 and isinstance(error.args[0], str) else str(error)
    return words or type(error).__name__


def ready(functions: Functions | None) -> Functions | None:
    """The same, for many cells: signatures are looked at once. What is no list or dict may change between cells."""
    return list(collected(functions).values()) if isinstance(functions, (list, tuple, dict)) else functions


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


__all__ = ["Function", "Functions", "collected", "ready", "words"]

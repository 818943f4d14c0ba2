"""What a model is told of functions: a line each, in Python's words, as much as a number of tokens allows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .functions import Function, Functions, collected

# A token of code has more than three bytes, whichever model reads it.
_TOKEN = 3
_LITERALS = 6  # values of an enumeration that are shown
_DEPTH = 8
_HINTS = {
    "string": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "array": "list",
    "object": "dict",
    "null": "None",
}

Schema = Mapping[str, Any]


def tokens(text: str) -> int:
    """How many tokens a text costs, at most."""
    return -(-len(text.encode()) // _TOKEN)


class _Hints:
    """Type hints for JSON Schema. The types that it names are in `types`, if there is room for them."""

    def __init__(self, root: Schema, types: dict[str, str] | None) -> None:
        self.root, self.types = root, types
        self._open: set[str] = set()

    def resolved(self, schema: Any) -> tuple[Schema, str]:
        name = ""
        for _ in range(_DEPTH):
            if not isinstance(schema, Mapping):
                break
            reference, whole = schema.get("$ref"), schema.get("allOf")
            if isinstance(reference, str):
                name, schema = reference.rpartition("/")[2], self.root
                for part in reference.split("/")[1:]:
                    schema = schema.get(part) if isinstance(schema, Mapping) else None
            elif isinstance(whole, list) and len(whole) == 1:
                schema = whole[0]
            else:
                return schema, name or str(schema.get("title", ""))
        return {}, name

    def hint(self, schema: Any, depth: int = _DEPTH) -> str:
        found, name = self.resolved(schema)
        values = [found["const"]] if "const" in found else found.get("enum")
        options, kind = found.get("anyOf", found.get("oneOf")), found.get("type")
        if not depth:
            return "Any"
        if isinstance(values, list):
            more = ", ..." if len(values) > _LITERALS else ""
            return f"Literal[{', '.join(map(repr, values[:_LITERALS]))}{more}]"
        if isinstance(kind, list):
            options = [{**found, "type": it} for it in kind]
        if isinstance(options, list) and options:
            each = dict.fromkeys(self.hint(it, depth - 1) for it in options)
            return "Any" if "Any" in each else " | ".join(each)
        if isinstance(found.get("properties"), Mapping):
            return self._named(name, found["properties"], depth)
        if kind == "array" and found.get("items"):
            return f"list[{self.hint(found['items'], depth - 1)}]"
        if kind == "object" and isinstance(found.get("additionalProperties"), Mapping):
            return f"dict[str, {self.hint(found['additionalProperties'], depth - 1)}]"
        if kind == "string" and found.get("format") == "binary":
            return "bytes"
        return _HINTS.get(kind, "Any") if isinstance(kind, str) else "Any"

    def _named(self, name: str, fields: Schema, depth: int) -> str:
        if self.types is None or not name.isidentifier():
            return "dict"
        if name not in self._open and name not in self.types:
            self._open.add(name)
            self.types[name] = ""  # in the order in which they are met
            each = ", ".join(f"{field}: {self.hint(it, depth - 1)}" for field, it in fields.items())
            self.types[name] = f"{name} = {{{each}}}"
        return name


def _parameters(function: Function, hints: _Hints | None) -> str:
    """As in a signature; without hints, the names alone."""
    whole, _ = (hints or _Hints(function.schema, None)).resolved(function.schema)
    given, required = whole.get("properties"), whole.get("required")
    properties = given if isinstance(given, Mapping) else {}
    first = required if isinstance(required, list) else []
    parts = []
    for name in sorted(properties, key=lambda name: name not in first):
        it = properties[name]
        default = repr(it.get("default") if isinstance(it, Mapping) else None)
        optional = name not in first
        if hints is None:
            part = f"{name}={default}" if optional else name
        else:
            hint = hints.hint(it)
            hint = hint.removesuffix(" | None") if optional and default == "None" else hint
            part = f"{name}: {hint}" + (f" = {default}" if optional else "")
        parts.append(part)
    if whole.get("additionalProperties"):
        parts.append("**more")
    return ", ".join(parts)


def _first_line(function: Function) -> str:
    return next((line.strip() for line in function.doc.splitlines() if line.strip()), "")


def _line(function: Function, level: int, types: dict[str, str]) -> str:
    """At level 0 with its documentation, at 1 without, at 2 without the fields of its types, at 3 without types, at 4 its name
    alone."""
    if level >= 4:
        return function.name
    if level == 3:
        return f"{function.name}({_parameters(function, None)})"
    known = types if level < 2 else None
    line = f"{function.name}({_parameters(function, _Hints(function.schema, known))})"
    returns = _Hints(function.returns, known).hint(function.returns) if function.returns else "Any"
    first = "" if level else _first_line(function)
    return line + (f" -> {returns}" if returns != "Any" else "") + (f"  # {first}" if first else "")


# What is not told from each level on.
_MISSING = ["", "what some of them do", "the fields of types", "types", "parameters"]


def _text(given: list[Function], head: str, level: int, better: int) -> str:
    """All at this level, and the first of them at the one before."""
    types: dict[str, str] = {}
    lines = [_line(it, level - (n < better), types) for n, it in enumerate(given)]
    worst = level if better < len(given) else level - 1
    missing = [it for it in _MISSING[1 : worst + 1] if it != "the fields of types" or _has_types(given)]
    left_out = [f"# Left out here: {', '.join(missing)}."] if missing else []
    return "\n".join([head, *types.values(), *lines, *left_out])


def _has_types(given: list[Function]) -> bool:
    types: dict[str, str] = {}
    for it in given:
        _line(it, 1, types)
    return bool(types)


def stubs(functions: Functions | None, budget: int = 1000, *, globals: bool = False) -> str:
    """Functions as text for a prompt: how each is called and of what types, the fields of these types, and the first line of its
    documentation. If that costs more than `budget` tokens, those that are given last lose their documentation, then all lose
    the fields of types, types, and parameters. The text says what is left out, and how code finds it. `globals`: as for
    Session."""
    given = list(collected(functions).values())
    if not given:
        return "# There are no functions."
    head = _head(given[0].name, globals)
    for level in range(len(_MISSING)):
        text = _text(given, head, level, 0)
        if tokens(text) <= budget:
            # Types are there or not: one cannot be better than all others.
            return text if level in (0, 2) else _better(given, head, level, budget)
    return _names_alone(given, head, budget)


def _better(given: list[Function], head: str, level: int, budget: int) -> str:
    """As many as possible at the level before."""
    fits, too_many = 0, len(given) + 1
    while too_many - fits > 1:
        middle = (fits + too_many) // 2
        if tokens(_text(given, head, level, middle)) <= budget:
            fits = middle
        else:
            too_many = middle
    return _text(given, head, level, fits)


def _head(example: str, globals: bool) -> str:
    name = example if globals else f"tools.{example}"
    return (
        f"# Call these functions as {name}(...), or await tools.{example}.aio(...) to do many at once.\n"
        f'# tools.find("words") looks for functions, help(tools.{example}) says all of one.'
    )


def _names_alone(given: list[Function], head: str, budget: int) -> str:
    """Not even the names fit a line each."""
    names = [it.name for it in given]
    for shown in range(len(names), -1, -1):
        more = f" and {len(names) - shown} more" if shown < len(names) else ""
        text = f"{head}\n# There are {', '.join(names[:shown])}{more}."
        if tokens(text) <= budget:
            break
    return text


__all__ = ["stubs", "tokens"]

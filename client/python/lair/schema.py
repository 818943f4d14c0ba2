"""JSON Schema of a function's parameters and value, from its type hints and docstring; and values of those types, from JSON."""

from __future__ import annotations

import collections.abc
import dataclasses
import datetime
import decimal
import enum
import inspect
import json
import keyword
import pathlib
import re
import types
import typing
import uuid
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, Union

Schema = dict[str, Any]

_PLAIN: dict[Any, Schema] = {
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
# Types that are sent as text: their format, and what makes one of text.
_TEXTS: dict[Any, tuple[str, Callable[[str], Any]]] = {
    datetime.datetime: ("date-time", datetime.datetime.fromisoformat),
    datetime.date: ("date", datetime.date.fromisoformat),
    datetime.time: ("time", datetime.time.fromisoformat),
    decimal.Decimal: ("decimal", decimal.Decimal),
    pathlib.Path: ("path", pathlib.Path),
    uuid.UUID: ("uuid", uuid.UUID),
}
# Values of which types are taken for a plain type, as in a cell.
_TAKEN: dict[Any, tuple[type, ...]] = {
    str: (str, bytes),
    bytes: (str, bytes),
    int: (int,),
    float: (int, float),
    bool: (bool,),
    list: (list,),
    dict: (dict,),
    type(None): (type(None),),
}
_WRITTEN = (datetime.date, datetime.time, decimal.Decimal, pathlib.PurePath, uuid.UUID)
_LISTS = (list, tuple, set, frozenset, collections.abc.Sequence, collections.abc.Iterable, collections.abc.Set)
_MAPS = (dict, collections.abc.Mapping, collections.abc.MutableMapping)
_WRAPPERS = ("Required", "NotRequired", "ReadOnly")  # of a TypedDict's fields; typing_extensions has them, too


def _is_model(hint: Any) -> bool:
    """A model of pydantic."""
    return isinstance(hint, type) and hasattr(hint, "model_json_schema") and hasattr(hint, "model_validate")


def _is_typed_dict(hint: Any) -> bool:
    return isinstance(hint, type) and hasattr(hint, "__required_keys__") and hasattr(hint, "__total__")


def _bare(hint: Any) -> tuple[Any, str]:
    """Without what is around it, and the description that was."""
    description = ""
    while True:
        origin = typing.get_origin(hint)
        if origin is typing.Annotated:
            description = description or _description(hint.__metadata__)
            hint = hint.__origin__
        elif getattr(origin, "_name", "") in _WRAPPERS or getattr(origin, "__name__", "") in _WRAPPERS:
            hint = typing.get_args(hint)[0]
        elif hasattr(hint, "__value__"):  # type X = ...
            hint = hint.__value__
        elif hasattr(hint, "__supertype__"):  # NewType
            hint = hint.__supertype__
        else:
            return hint, description


def _description(metadata: Iterable[Any]) -> str:
    """Of Annotated[type, "text"], Annotated[type, Field(description="text")], Annotated[type, Doc("text")]."""
    for it in metadata:
        text = it if isinstance(it, str) else getattr(it, "description", getattr(it, "documentation", None))
        if isinstance(text, str) and text:
            return text
    return ""


class _Maker:
    """Schemas of types. A type that contains itself, or a model that has definitions, gets one in `defs`."""

    def __init__(self) -> None:
        self.defs: dict[str, Schema] = {}
        self._open: list[Any] = []
        self._again: set[Any] = set()

    def schema(self, hint: Any) -> Schema:
        """{}, which is anything, for a type that JSON does not have."""
        hint, description = _bare(hint)
        made = self._of(hint)
        return {**made, "description": description} if description else made

    def _of(self, hint: Any) -> Schema:
        origin, arguments = typing.get_origin(hint), typing.get_args(hint)
        if origin in (Union, types.UnionType):
            return self._union(arguments)
        if origin is Literal:
            return {"enum": list(arguments)}
        if origin in _LISTS:
            items = [it for it in arguments if it is not Ellipsis]
            inner = self.schema(items[0]) if len(items) == 1 else {}
            return {"type": "array", "items": inner} if inner else {"type": "array"}
        if origin in _MAPS:
            inner = self.schema(arguments[1]) if len(arguments) == 2 else {}
            return {"type": "object", "additionalProperties": inner} if inner else {"type": "object"}
        if isinstance(hint, collections.abc.Hashable):
            if hint in _PLAIN:
                return dict(_PLAIN[hint])
            if hint in _TEXTS:
                return {"type": "string", "format": _TEXTS[hint][0]}
        if isinstance(hint, type) and issubclass(hint, enum.Enum):
            values = [it.value for it in hint]
            return {"enum": values} if is_json(values) else {}
        return self._named(hint) if isinstance(hint, type) else {}

    def _union(self, options: tuple[Any, ...]) -> Schema:
        schemas = [self.schema(option) for option in options]
        if all(set(it) == {"type"} for it in schemas):
            return {"type": [it["type"] for it in schemas]}
        return {"anyOf": schemas} if all(schemas) else {}

    def _named(self, hint: type) -> Schema:
        if _is_model(hint):
            return self._model(hint)
        if not _is_typed_dict(hint) and not dataclasses.is_dataclass(hint):
            return {}
        if hint in self._open:
            self._again.add(hint)
            return {"$ref": f"#/$defs/{hint.__name__}"}
        self._open.append(hint)
        try:
            made = self._fields(hint)
        finally:
            self._open.remove(hint)
        if hint not in self._again:
            return made
        self.defs[hint.__name__] = made
        return {"$ref": f"#/$defs/{hint.__name__}"}

    def _model(self, hint: Any) -> Schema:
        made: Schema = hint.model_json_schema()
        self.defs.update(made.pop("$defs", {}))
        return made

    def _fields(self, hint: Any) -> Schema:
        hints = hints_of(hint)
        if dataclasses.is_dataclass(hint):
            missing = dataclasses.MISSING
            fields = [it for it in dataclasses.fields(hint) if it.init]
            required = [it.name for it in fields if it.default is missing and it.default_factory is missing]
            hints = {it.name: hints.get(it.name, Any) for it in fields}
        else:
            required = [name for name in hints if name in hint.__required_keys__]
        properties = {name: self.schema(it) for name, it in hints.items()}
        return {"type": "object", "title": hint.__name__, "properties": properties, "required": required}


def is_json(value: Any) -> bool:
    try:
        json.dumps(value)
    except (TypeError, ValueError, RecursionError):
        return False
    return True


def _whole(maker: _Maker, made: Schema) -> Schema:
    return {**made, "$defs": maker.defs} if maker.defs else made


def of_type(hint: Any) -> Schema:
    maker = _Maker()
    return _whole(maker, maker.schema(hint))


def hints_of(it: Any) -> dict[str, Any]:
    try:
        return typing.get_type_hints(it, include_extras=True)
    except Exception:  # a name that is not there at run time
        return {}


def of_parameters(function: Callable[..., Any], hints: Mapping[str, Any]) -> Schema:
    """Of its arguments, as an object."""
    maker = _Maker()
    properties: dict[str, Schema] = {}
    required, more = [], False
    told = parameters_in(inspect.getdoc(function) or "")
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD:
            more = True
        if parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
            continue
        if parameter.kind is parameter.POSITIONAL_ONLY:
            raise TypeError(f"{name}: calls give arguments by name, so none may be positional only")
        made = properties[name] = maker.schema(hints.get(name, Any))
        if name in told:
            made.setdefault("description", told[name])
        if parameter.default is parameter.empty:
            required.append(name)
        elif is_json(default := written(parameter.default)):
            made["default"] = default
    whole = {"type": "object", "properties": properties, "required": required, "additionalProperties": more}
    return _whole(maker, whole)


def name_of(title: str) -> str:
    """A name for Python's code of one that may have any characters."""
    name = re.sub(r"\W", "_", title)
    name = f"_{name}" if name[:1].isdigit() else name
    return f"{name}_" if keyword.iskeyword(name) else name


# ---- docstrings ----

_SECTION = re.compile(r"^(args|arguments|parameters|params|keyword args|keyword arguments):?\s*$", re.I)
_GOOGLE = re.compile(r"^\s+\*{0,2}(\w+)(?:\s*\([^)]*\))?\s*:\s*(.*)$")
_SPHINX = re.compile(r"^\s*:param\s+(?:[^:]*\s)?\*{0,2}(\w+)\s*:\s*(.*)$")
_NUMPY = re.compile(r"^(\w+)\s*(?::.*)?$")


def parameters_in(doc: str) -> dict[str, str]:
    """What a docstring says of each parameter, in the style of Google, NumPy or Sphinx."""
    lines = doc.expandtabs().splitlines()
    found: dict[str, list[str]] = {}
    for n, line in enumerate(lines):
        if sphinx := _SPHINX.match(line):
            rest = _until(lines[n + 1 :], lambda it: not it.strip() or it.lstrip().startswith(":"))
            found[sphinx[1]] = [sphinx[2], *rest]
        elif _SECTION.match(line):
            under = lines[n + 1] if n + 1 < len(lines) else ""
            if under.strip() and not under.strip("- "):
                _numpy(lines[n + 2 :], found)
            else:
                _google(lines[n + 1 :], found)
    return {name: " ".join(" ".join(text).split()) for name, text in found.items() if any(map(str.strip, text))}


def _until(lines: list[str], end: Callable[[str], bool]) -> list[str]:
    taken: list[str] = []
    for line in lines:
        if end(line):
            break
        taken.append(line)
    return taken


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _google(lines: list[str], found: dict[str, list[str]]) -> None:
    """An indented block: `name (type): text`, and lines that are indented more belong to it."""
    depth, name = 0, ""
    for line in _until(lines, lambda it: bool(it.strip()) and not _indent(it)):
        depth = depth or _indent(line)
        begun = _GOOGLE.match(line) if _indent(line) == depth else None
        if begun:
            name = begun[1]
            found[name] = [begun[2]]
        elif name and _indent(line) > depth:
            found[name].append(line)


def _numpy(lines: list[str], found: dict[str, list[str]]) -> None:
    """`name : type`, and the text indented below. A line of dashes is below the title of the next section."""
    titles = {n - 1 for n, line in enumerate(lines) if line.strip() and not line.strip("- ")}
    name = ""
    for line in lines[: min(titles, default=len(lines))]:
        begun = _NUMPY.match(line)
        if begun:
            name = begun[1]
            found[name] = []
        elif name and _indent(line):
            found[name].append(line)


# ---- values ----


def made_of(hint: Any, value: Any) -> Any:
    """A value of that type, of what JSON has for it: models, dataclasses, enums, dates and the like. A plain value is of its
    plain type, or a TypeError; anything else stays as it is."""
    hint, _ = _bare(hint)
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if isinstance(hint, type) and not _is_of(value, hint):
        raise TypeError(f"it is {hint.__name__}, not {type(value).__name__}")
    if origin in (Union, types.UnionType):
        return _one_of(arguments, value)
    if origin in _LISTS and isinstance(value, list):
        return _list_of(origin, arguments, value)
    if origin in _MAPS and len(arguments) == 2 and isinstance(value, dict):
        return {key: made_of(arguments[1], it) for key, it in value.items()}
    if not isinstance(hint, type):
        return value
    if _is_model(hint):
        return hint.model_validate(value)  # type: ignore[attr-defined]
    if issubclass(hint, enum.Enum):
        return hint(value)
    if hint in _TEXTS and isinstance(value, str):
        return _TEXTS[hint][1](value)
    if isinstance(value, dict) and (_is_typed_dict(hint) or dataclasses.is_dataclass(hint)):
        hints = hints_of(hint)
        fields = {key: made_of(hints.get(key, Any), it) for key, it in value.items()}
        return fields if _is_typed_dict(hint) else hint(**fields)
    return value


def _is_of(value: Any, hint: Any) -> bool:
    kinds = _TAKEN.get(hint, (object,))
    return isinstance(value, kinds) and (not isinstance(value, bool) or bool in kinds or object in kinds)


def _list_of(origin: Any, arguments: tuple[Any, ...], value: list[Any]) -> Any:
    if origin is tuple and arguments and Ellipsis not in arguments:
        return tuple(made_of(hint, it) for hint, it in zip(arguments, value)) + tuple(value[len(arguments) :])
    items = [made_of(arguments[0], it) for it in value] if arguments else value
    return origin(items) if origin in (tuple, set, frozenset) else items


def _one_of(options: tuple[Any, ...], value: Any) -> Any:
    """The first option that the value fits, or that can be made of it."""
    error: Exception | None = None
    for option in options:
        try:
            return made_of(option, value)
        except (TypeError, ValueError) as failed:
            if error is None or option not in _TAKEN:
                error = failed
    raise error or TypeError("it is of no type")


def written(value: Any) -> Any:
    """An enum, a date, a path and the like, as they are sent; anything else as it is."""
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    return str(value) if isinstance(value, _WRITTEN) else value

"""Frames: one msgpack array [version, type, body], body a map, as proto/PROTOCOL.md has it.

A message is a dataclass, made so by its base when the first one is made. Its annotations are the wire types below, in the order of the protocol's
tables. A field that is None, or an optional zero, false or nothing, is not encoded. An absent optional field decodes to None, a
flag to False. Both this codec and the one in C must reproduce the vectors in proto/vectors byte for byte.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import MISSING, fields
from typing import Annotated, Any, ClassVar, TypeVar, get_type_hints

import msgpack

from .late import dataclass_transform, late, made

VERSION = 1
DEPTH_MAX = 16

Flag = Annotated[bool, "flag"]
Uint = Annotated[int, "uint"]
Int = Annotated[int, "int"]
Real = Annotated[float, "real"]
Str = Annotated[str, "str"]
Bin = Annotated[bytes, "bin"]
Raw = Annotated[Any, "raw"]


class CodecError(ValueError):
    """The bytes are no frame, or a field is unknown, missing or of another type."""


@dataclass_transform(kw_only_default=True)
class Message:
    """The base of every message. TYPE is the name of the message on the wire."""

    TYPE: ClassVar[str]

    def __init_subclass__(cls) -> None:
        late(cls, kw_only=True)


M = TypeVar("M", bound=Message)


class _Field:
    __slots__ = ("kind", "name", "required")

    def __init__(self, name: str, kind: str, required: bool) -> None:
        self.name = name
        self.kind = kind
        self.required = required


_tables: dict[type[Message], dict[str, _Field]] = {}


def _kind(hint: Any) -> str:
    """The wire type of an annotation: Uint, or Uint | None."""
    for part in (hint, *getattr(hint, "__args__", ())):
        for name in getattr(part, "__metadata__", ()):
            return str(name)
    raise TypeError(f"not a wire type: {hint}")


def _table(cls: type[Message]) -> dict[str, _Field]:
    table = _tables.get(cls)
    if table is None:
        hints = get_type_hints(cls, include_extras=True)
        table = {
            f.name: _Field(f.name, _kind(hints[f.name]), f.default is MISSING)
            for f in fields(made(cls))  # type: ignore[arg-type]
        }
        _tables[cls] = table
    return table


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


_CHECKS: dict[str, Callable[[Any], bool]] = {
    "flag": lambda v: isinstance(v, bool),
    "uint": lambda v: _is_number(v) and 0 <= v < 1 << 64,
    "int": lambda v: _is_number(v) and -(1 << 63) <= v < 1 << 63,
    "real": lambda v: (isinstance(v, float) or _is_number(v)) and math.isfinite(v),
    "str": lambda v: isinstance(v, str),
    "bin": lambda v: isinstance(v, (bytes, str)),
    "raw": lambda v: True,
}


def body(message: Message) -> dict[str, Any]:
    """The map in which a message travels."""
    out = {}
    for field in _table(type(message)).values():
        value = getattr(message, field.name)
        if value is None and field.kind != "raw" and field.required:
            raise CodecError(f"{field.name} is missing")
        if not field.required and (value is None or (field.kind not in ("str", "bin", "raw") and not value)):
            continue
        if not _CHECKS[field.kind](value):
            raise CodecError(f"{field.name} cannot be {value!r}")
        out[field.name] = float(value) if field.kind == "real" else value
    return out


def encode(message: Message) -> bytes:
    """The whole frame of a message."""
    packed: bytes = msgpack.packb([VERSION, message.TYPE, body(message)], use_bin_type=True)
    return packed


def _check_depth(value: Any, depth: int) -> None:
    if depth == 0:
        raise CodecError(f"nested deeper than {DEPTH_MAX}")
    if isinstance(value, dict):
        for key, item in value.items():
            _check_depth(key, depth - 1)
            _check_depth(item, depth - 1)
    elif isinstance(value, list):
        for item in value:
            _check_depth(item, depth - 1)


def _pairs(pairs: list[tuple[Any, Any]]) -> dict[Any, Any]:
    out = dict(pairs)
    if len(out) != len(pairs):
        raise CodecError("a key occurs twice")
    return out


def unpack(frame: bytes) -> tuple[str, dict[str, Any]]:
    """Takes a frame apart, into its type and its body."""
    try:
        value = msgpack.unpackb(frame, raw=False, object_pairs_hook=_pairs, strict_map_key=False)
    except CodecError:
        raise
    except (ValueError, msgpack.exceptions.UnpackException, TypeError, RecursionError) as error:
        raise CodecError(f"not a frame: {error}") from error
    if not isinstance(value, list) or len(value) != 3:
        raise CodecError("not an array of three")
    version, kind, content = value
    if version != VERSION or isinstance(version, bool):
        raise CodecError(f"version {version!r}, not {VERSION}")
    if not isinstance(kind, str) or not isinstance(content, dict):
        raise CodecError("not [version, type, body]")
    _check_depth(value, DEPTH_MAX)
    return kind, content


def read(cls: type[M], content: dict[str, Any]) -> M:
    """Makes a message of a body, or of a map inside one. A daemon of a later build may send more fields, which are
    ignored."""
    table = _table(cls)
    values: dict[str, Any] = {}
    for field in table.values():
        if field.name not in content:
            if field.required:
                raise CodecError(f"{field.name} is missing")
            continue
        value = content[field.name]
        if not _CHECKS[field.kind](value):
            raise CodecError(f"{field.name} cannot be {value!r}")
        if field.kind == "bin" and isinstance(value, str):
            value = value.encode()
        values[field.name] = float(value) if field.kind == "real" else value
    return cls(**values)


def decode(cls: type[M], frame: bytes) -> M:
    """The message in a whole frame."""
    kind, content = unpack(frame)
    if kind != cls.TYPE:
        raise CodecError(f"a {kind!r}, not a {cls.TYPE!r}")
    for name in content:
        if name not in _table(cls):
            raise CodecError(f"{name!r} is no field of {cls.TYPE}")
    return read(cls, content)

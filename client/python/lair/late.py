"""Dataclasses that become such when the first object of them is made. To make all of Lair's would take longer than everything
else that `import lair` does."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform
else:

    def dataclass_transform(**_: object) -> Callable[[type], type]:
        """typing has this only since Python 3.11. It tells type checkers what the decorator below does."""
        return lambda it: it


T = TypeVar("T")

_unmade: dict[type, dict[str, Any]] = {}  # with the options of each
_lock = threading.Lock()


def made(cls: type[T]) -> type[T]:
    """The class, and those it comes of, as dataclasses."""
    with _lock:
        for base in reversed(cls.__mro__):
            if base in _unmade:
                dataclass(**_unmade[base])(base)
                del _unmade[base]
    return cls


def _new(cls: type[T], *_: Any, **__: Any) -> T:
    if cls in _unmade:
        made(cls)
    return object.__new__(cls)


def late(cls: type[T], **options: Any) -> type[T]:
    """The class becomes a dataclass with these options."""
    _unmade[cls] = options
    cls.__new__ = _new  # type: ignore[method-assign]
    return cls


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: type[T]) -> type[T]:
    """@dataclass(frozen=True)"""
    return late(cls, frozen=True)


__all__ = ["dataclass_transform", "frozen", "late", "made"]

"""The variables of a state in short, each with a digest of all that can be seen of its value. So two states of a
session can be compared: what is equal in both has the same digest there. No code of the session runs."""

import time
from _blake2 import blake2b  # type: ignore[import-not-found]
from functools import partial
from types import (
    BuiltinFunctionType,
    CodeType,
    FunctionType,
    GetSetDescriptorType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
)
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Tuple

if TYPE_CHECKING:
    import objects
    import variables

_MOST = 1000
_TEXT = 80
_NAME = 100
# What is looked at of one variable, and how long it may take for all of them.
_PARTS = 100_000
_BYTES = 256 << 20
_SECONDS = 1.5
_clock = time.monotonic
_memoryview = memoryview

# Their text shows what they hold.
_SHOWING = (str, bytes, bytearray, list, tuple, set, frozenset, dict)

_REPRS = (int, float, complex, bool, type(None), type(...), type(NotImplemented), range, slice)
_CELL = type((lambda it: lambda: it)(0).__closure__[0])  # type: ignore[index]
_BY_REPR = {
    "datetime": ("date", "time", "datetime", "timedelta", "timezone"),
    "decimal": ("Decimal",),
    "fractions": ("Fraction",),
    "uuid": ("UUID",),
    "re": ("Pattern",),
    "pathlib": ("Path", "PosixPath", "PurePath", "PurePosixPath"),
}


class _Look:
    """At one value. `parts` has what is still to be looked at, the next one last."""

    def __init__(self, until: float) -> None:
        self.hash = blake2b(digest_size=16)
        self.until = until
        self.seen: Dict[int, int] = {}
        self.alive: List[Any] = []  # what was made here, so that its number is not another's
        self.parts: List[Any] = []
        self.left = _BYTES
        self.partial = False
        self.late = False

    def note(self, text: str) -> None:
        self.hash.update(text.encode("utf-8", "surrogatepass"))
        self.hash.update(b"\0")

    def data(self, data: Any) -> None:
        size = data.nbytes if type(data) is _memoryview else len(data)
        self.note(str(size))
        if size > self.left:
            self.partial = True
            data = data[: self.left]
        self.left -= min(size, self.left)
        self.hash.update(data)

    def add(self, parts: Any) -> None:
        """`parts` is a list or tuple that was made here, or that cannot change meanwhile."""
        self.note(str(len(parts)))
        self.alive.append(parts)
        self.parts.extend(reversed(parts))

    def opaque(self, value: object) -> None:
        """All that is known is which object it is."""
        self.partial = True
        self.note(f"at {id(value)}")


def _set(look: _Look, value: Any) -> None:
    items = list(value)
    if all(type(it) in (str, int, bytes, float, bool) for it in items):
        items.sort(key=lambda it: (type(it).__name__, repr(it)))
    look.add(items)


def _code(look: _Look, value: Any) -> None:
    look.data(value.co_code)
    look.add([value.co_consts, value.co_names, value.co_varnames, value.co_freevars])


def _function(look: _Look, value: Any) -> None:
    look.add([value.__code__, value.__defaults__, value.__kwdefaults__, value.__closure__, dict(value.__dict__)])


def _cell(look: _Look, value: Any) -> None:
    try:
        look.add([value.cell_contents])
    except ValueError:
        look.note("empty")


_LOOKS: Dict[Any, Callable[[_Look, Any], None]] = {
    bytes: lambda look, value: look.data(value),
    bytearray: lambda look, value: look.data(bytes(value)),
    list: lambda look, value: look.add(list(value)),
    tuple: lambda look, value: look.add(value),
    dict: lambda look, value: look.add([*value, *value.values()]),
    set: _set,
    frozenset: _set,
    CodeType: _code,
    FunctionType: _function,
    MethodType: lambda look, value: look.add([value.__func__, value.__self__]),
    MemberDescriptorType: lambda look, value: look.note(value.__name__),
    GetSetDescriptorType: lambda look, value: look.note(value.__name__),
    BuiltinFunctionType: lambda look, value: look.note(value.__name__),
    _CELL: _cell,
}


def _array(look: _Look, value: Any) -> None:
    look.note(f"{value.dtype} {value.shape}")
    if value.dtype.hasobject:
        look.add(value.reshape(-1).tolist())
        return
    if not value.flags.c_contiguous:
        if value.nbytes > look.left:
            look.partial = True
            return
        value = value.copy()
    look.data(_memoryview(value.reshape(-1).view("u1") if value.size else b""))


def _frame(look: _Look, value: Any) -> None:
    manager = value._mgr
    look.add([list(manager.axes), list(manager.arrays), dict(value.attrs)])


def _index(look: _Look, value: Any) -> None:
    look.add([value.dtype.name, list(value.names), value._data if hasattr(value, "_data") else list(value)])


def _class(look: _Look, value: Any) -> None:
    look.note(objects.full_title(value))
    names = objects.names_of_type(value)
    if not objects.native(value) and names.get("__module__") == "__main__":
        kept = {k: v for k, v in names.items() if k not in ("__dict__", "__weakref__", "__doc__", "__module__")}
        look.add([kept, list(objects.lineage(value)[1:])])


def _slots(kind: type, value: Any) -> Dict[str, Any]:
    found = {}
    for base in objects.lineage(kind):
        for name, member in objects.names_of_type(base).items():
            if type(member) is MemberDescriptorType and type(name) is str:
                try:
                    found[name] = member.__get__(value, kind)
                except AttributeError:
                    pass
    return found


_CONTAINERS: Dict[type, Callable[[Any], Any]] = {
    dict: lambda value: dict(dict.items(value)),
    list: lambda value: list.__getitem__(value, slice(None)),
    tuple: lambda value: tuple.__getitem__(value, slice(None)),
    str: lambda value: str.__str__(value),
    bytes: lambda value: bytes.__getitem__(value, slice(None)),
    int: lambda value: int.__int__(value),
    float: lambda value: float.__float__(value),
    set: lambda value: set.copy(value),
}


def _instance(look: _Look, kind: type, value: Any) -> None:
    lineage = objects.lineage(kind)
    held = [_CONTAINERS[base](value) for base in lineage if base in _CONTAINERS]
    native = next(base for base in lineage if objects.native(base))
    seen = native in (property, staticmethod, classmethod, partial)
    own = objects.own_names(value)
    slots = _slots(kind, value)
    look.add(
        [kind if objects.names_of_type(kind).get("__module__") == "__main__" else None, dict(own), slots, *held]
    )
    if native is not object and not held and not seen and BaseException not in objects.lineage(native):
        look.opaque(value)


def _is_scalar(value: Any) -> bool:
    kind = type(value)
    return objects.native(kind) and any(objects.full_title(it) == "numpy.generic" for it in objects.lineage(kind))


def _library(look: _Look, value: Any) -> bool:
    """Of a package that is trusted: whether it was one of its types."""
    if objects.known(value, "numpy", "ndarray"):
        _array(look, value)
    elif objects.known(value, "pandas", "DataFrame", "Series"):
        _frame(look, value)
    elif objects.known(value, "pandas", "Index", "DatetimeIndex", "CategoricalIndex", "TimedeltaIndex"):
        _index(look, value)
    elif objects.known(value, "pandas", "RangeIndex"):
        look.add([value.start, value.stop, value.step, list(value.names)])
    elif objects.known(value, "collections", "deque"):
        look.add(list(value))
    elif objects.known(value, "array", "array"):
        look.data(value.tobytes())
    elif _is_scalar(value) or any(objects.known(value, module, *kinds) for module, kinds in _BY_REPR.items()):
        look.note(repr(value))
    else:
        return False
    return True


def _part(look: _Look, value: Any) -> None:
    kind = type(value)
    if kind in _REPRS:
        look.note(f"{kind.__name__} {hex(value) if kind is int else repr(value)}")
        return
    if kind is str:
        look.note("str")
        look.note(value)
        return
    if id(value) in look.seen:
        look.note(f"again {look.seen[id(value)]}")
        return
    look.seen[id(value)] = len(look.seen)
    look.alive.append(value)
    look.note(objects.title(kind))
    if kind in _LOOKS:
        _LOOKS[kind](look, value)
    elif ModuleType in objects.lineage(kind):
        look.note(objects.text(value))
    elif objects.is_type(value):
        _class(look, value)
    elif not _library(look, value):
        _instance(look, kind, value)


def _all(look: _Look, value: object) -> None:
    look.parts.append(value)
    for _ in range(_PARTS):
        if not look.parts:
            return
        if _clock() > look.until:
            look.late = True
            return
        part = look.parts.pop()
        try:
            _part(look, part)
        except KeyboardInterrupt:
            raise
        except BaseException:
            look.opaque(part)
    look.partial = True


def _with_shape(value: object, text: str) -> str:
    """The text of a table or an array does not tell how large it is."""
    if type(value) in _SHOWING or not (shape := objects.shape(value)):
        return text
    return f"{' x '.join(map(str, shape))}, {text}"[:_TEXT]


def _described(name: str, value: object, until: float) -> Dict[str, Any]:
    described: Dict[str, Any] = {
        "name": name,
        "type": objects.title(type(value))[:_NAME],
        "size": 0,
        "text": objects.text(value, _TEXT),
    }
    try:
        described["text"] = _with_shape(value, described["text"])
        described["size"] = max(objects.size(value), 0)
    except BaseException:
        pass
    look = _Look(until)
    _all(look, value)
    if not look.late:
        described["digest"] = look.hash.digest()
    if look.partial:
        described["partial"] = True
    return described


def describe(names: Dict[Any, Any]) -> Tuple[List[Dict[str, Any]], int]:
    """The first of them, and how many more there are."""
    until = _clock() + _SECONDS
    found = [(name, value) for name, value in variables.own(names) if len(name) <= _NAME]
    return [_described(name, value, until) for name, value in found[:_MOST]], max(len(found) - _MOST, 0)

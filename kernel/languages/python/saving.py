"""The state of a session as bytes that outlive it: its variables, each by itself, by cloudpickle.

One pickler writes them one after the other, so an object that two of them share is shared again. Each is tried alone
first, so one that cannot be pickled spoils no other. Protocol 3 numbers shared objects explicitly: one that cannot be
loaded leaves a gap, and does not shift everything after it.

Functions and classes that cells made come back as code, in the namespace of the session, not in a copy of it. The lines
of those cells come with them, under names that no cell of another session has.
"""

import io
import linecache
import mmap
import os
import pickle
import struct
import sys
import time
import types
import zlib
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Tuple

if TYPE_CHECKING:
    import magics
    import packages

_PROTOCOL = 3
_NAMES_MAX = 5000
_NAME_MAX = 255
_REASON_MAX = 200

Refused = List[Dict[str, str]]
Report = Dict[str, Any]
Index = List[Tuple[str, int]]
Lines = Dict[str, List[str]]

_main = sys.modules["__main__"]
_cache: Dict[str, Any] = linecache.cache
_import_module = __import__("importlib").import_module


class _Full(Exception):
    """There is no room for the variable."""


class _Counter(io.RawIOBase):
    """Counts bytes up to a limit, and keeps none."""

    def __init__(self, limit: int) -> None:
        self.size = 0
        self.limit = limit

    def write(self, data: Any) -> int:
        n = memoryview(data).nbytes
        self.size += n
        if self.size > self.limit:
            raise _Full
        return n


class _Main:
    """Stands for the module of the cells."""

    def __reduce__(self) -> Tuple[Callable[..., Any], Tuple[Any, ...]]:
        return _import_module, ("__main__",)


class _Namespace:
    """Stands for the namespace of that module."""

    def __reduce__(self) -> Tuple[Callable[..., Any], Tuple[Any, ...]]:
        return vars, (_Main(),)


def _lines_of(filename: str) -> List[str]:
    entry: Any = _cache.get(filename)
    return list(entry[2]) if type(entry) is tuple and len(entry) == 4 else []


def _of_any_session(code: types.CodeType, sources: Lines) -> types.CodeType:
    """The code under a name that no cell of the loading session can have. The lines of its cell go to @sources."""
    name = code.co_filename
    lines = _lines_of(name)
    if name[6:-1].isdigit():
        name = f"{name[:-1]} saved {zlib.crc32(''.join(lines).encode('utf-8', 'replace')):08x}>"
    sources[name] = lines
    return code.replace(co_filename=name)


def _pickler_class(namespace: Dict[str, Any], sources: Lines) -> Any:
    from cloudpickle import CloudPickler

    reduce_code = CloudPickler.dispatch_table[types.CodeType]

    class Pickler(CloudPickler):  # type: ignore[misc]
        def reducer_override(self, obj: Any) -> Any:
            if type(obj) is types.CodeType and obj.co_filename.startswith("<cell "):
                return reduce_code(_of_any_session(obj, sources))
            reduced = super().reducer_override(obj)
            if not isinstance(obj, types.FunctionType) or obj.__globals__ is not namespace:
                return reduced
            # (make, (code, globals, ...), (attributes, {"__globals__": ..., ...}), ...)
            if isinstance(reduced, tuple) and len(reduced) > 2 and "__globals__" in reduced[2][1]:
                reduced[2][1]["__globals__"] = {}
                code, _, *rest = reduced[1]
                return (reduced[0], (code, _Namespace(), *rest), *reduced[2:])
            return reduced

    return Pickler


def _reason(error: BaseException) -> str:
    if isinstance(error, _Full):
        return "it is larger than save_size"
    try:
        text = f"{type(error).__name__}: {error}"
    except BaseException:
        text = type(error).__name__
    return text if len(text) <= _REASON_MAX else text[: _REASON_MAX - 3] + "..."


def _refuse(name: str, reason: str) -> Dict[str, str]:
    return {"name": name, "reason": reason}


def _try(make: Any, names: List[str], namespace: Dict[str, Any], limit: int, until: float) -> Tuple[Any, Refused]:
    """The size of each variable when it is pickled alone; and why others cannot be pickled."""
    sizes: Dict[str, int] = {}
    refused: Refused = []
    for name in names:
        if time.monotonic() > until:
            refused.append(_refuse(name, "there was no time left for it"))
            continue
        counter = _Counter(limit)
        try:
            make(counter, protocol=_PROTOCOL).dump(namespace[name])
            sizes[name] = counter.size
        except KeyboardInterrupt:
            until = 0.0
            refused.append(_refuse(name, "it took longer than save_timeout"))
        except BaseException as error:
            refused.append(_refuse(name, _reason(error)))
    return sizes, refused


def _write(make: Any, file: Any, names: List[str], namespace: Dict[str, Any]) -> Tuple[Index, Refused]:
    """Writes the variables. One that was pickled once may fail now. Then everything is written again without it,
    because the pickler would refer to objects that are no longer in the file."""
    begin = file.tell()
    left = list(names)
    refused: Refused = []
    while True:
        pickler = make(file, protocol=_PROTOCOL)
        index = []
        try:
            for name in left:
                index.append((name, file.tell()))
                pickler.dump(namespace[name])
            return index, refused
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            refused.append(_refuse(name, _reason(error)))
        left.remove(name)
        file.seek(begin)


def _fit(sizes: Dict[str, int], limit: int) -> Tuple[List[str], Refused]:
    """Chooses the small variables first. The chosen ones keep their old order, so that a shared object is written
    with the first that has it."""
    room = limit
    fits = set()
    for name in sorted(sizes, key=lambda name: sizes[name]):
        room -= sizes[name] + len(name) + 64
        if room >= 0:
            fits.add(name)
    kept = [name for name in sizes if name in fits]
    return kept, [_refuse(name, "there was no room left within save_size") for name in sizes if name not in fits]


def _contents(index: Index, sources: Lines, room: int) -> bytes:
    """The index with the lines of the cells and the packages; without the lines if there is no room."""
    told = pickle.dumps((index, sources, packages.state()), _PROTOCOL)
    return told if len(told) <= room else pickle.dumps((index, {}, packages.state()), _PROTOCOL)


def save(fd: int, limit: int, budget: float) -> Report:
    """Saves into a file of at most that size."""
    namespace = vars(_main)
    sources: Lines = {}
    make = _pickler_class(namespace, sources)
    found = [name for name in namespace if type(name) is str and not (name[:2] == "__" == name[-2:])]
    found = [name for name in found if magics.hidden.get(name, _Main) is not namespace[name]]
    names = [name for name in found if len(name) <= _NAME_MAX]
    long = [f"{name[:_NAME_MAX]}..." for name in found if len(name) > _NAME_MAX]
    refused = [_refuse(name, "there are too many names") for name in names[_NAMES_MAX : 2 * _NAMES_MAX]]
    refused += [_refuse(name, "its name is too long") for name in long[:_NAMES_MAX]]
    sizes, bad = _try(make, names[:_NAMES_MAX], namespace, limit - 4096, time.monotonic() + budget / 2)
    kept, large = _fit(sizes, limit - 4096)
    refused += bad + large
    with open(fd, "r+b", buffering=1 << 20, closefd=False) as file:
        file.write(struct.pack("<Q", 0))
        sources.clear()
        index, bad = _write(make, file, kept, namespace)
        at = file.tell()
        file.write(_contents(index, sources, limit - at))
        size = file.tell()
        file.seek(0)
        file.write(struct.pack("<Q", at))
    return {"size": size, "names": [name for name, _ in index], "refused": refused + bad}


def _undo(namespace: Dict[str, Any], before: Dict[str, Any]) -> None:
    """Undoes everything, however often it is interrupted."""
    while True:
        try:
            for name in [name for name in namespace if name not in before]:
                namespace.pop(name, None)
            namespace.update(before)
            return
        except KeyboardInterrupt:
            pass


def _load(file: Any, offset: int, namespace: Dict[str, Any]) -> Report:
    loaded: List[str] = []
    refused: Refused = []
    (at,) = struct.unpack_from("<Q", file, offset)
    file.seek(offset + at)
    index = pickle.load(file)
    sources: Lines = {}
    if type(index) is tuple:  # files of earlier builds have no lines, or no packages
        index, sources, *more = index
        lost = packages.come_back(more[0]) if more else None
        refused += [_refuse("its packages", lost)] if lost else []
    _cache.update((name, (0, None, lines, name)) for name, lines in sources.items())
    unpickler = pickle.Unpickler(file)
    for name, where in index:
        try:
            file.seek(offset + where)
            value = unpickler.load()
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            refused.append(_refuse(name, _reason(error)))
            continue
        namespace[name] = value
        loaded.append(name)
    return {"size": 0, "names": loaded, "refused": refused}


def load(fd: int, offset: int) -> Report:
    """Loads into the namespace all variables that can be loaded. If that is broken off, loads none."""
    namespace = vars(_main)
    before = dict(namespace)
    try:
        with mmap.mmap(fd, os.fstat(fd).st_size, access=mmap.ACCESS_READ) as file:
            report = _load(file, offset, namespace)
        namespace["__builtins__"] = before.get("__builtins__")
        return report
    except BaseException:
        _undo(namespace, before)
        raise

"""Tells the user of an exception: Python's own traceback, from the first line of the cell on, and the same as data."""

import ast
import difflib
import os
import re
import socket
import sys
import threading
import tokenize
import traceback
import unicodedata
from itertools import islice
from types import FrameType, ModuleType, TracebackType
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, NamedTuple, Optional, Set, Tuple

if TYPE_CHECKING:
    import packages

_TracebackException = traceback.TracebackException
_MAIN_FILES = "<cell "
_LIBRARIES = re.compile(rf"{re.escape(os.path.dirname(os.__file__))}/|<frozen |.*/(?:site|dist)-packages/")
_IPYTHON = re.compile(r".*/IPython/|<decorator-gen-|<lair>/")
_VALUE_MAX = 16384
_TEXT_MAX = 262144
_SOURCE_MAX = 1000
_PATH_MAX = 1000
_SHORT_MAX = 80
_VALUES_MAX = 20
_NAMES_MAX = 2000
_CHAIN_MAX = 20
_ENDS = 20  # frames that are kept at either end of a long traceback

_ATOMS = (int, float, complex, bool, str, bytes, type(None))
_BRACKETS: Dict[type, str] = {list: "[]", tuple: "()", set: "{}", dict: "{}"}
_walk_tb = traceback.walk_tb
_gaierror = socket.gaierror
# What Python's traceback and linecache import when they are asked, wherever they do.
_imported_late = {module.__name__: module for module in (ast, os, sys, tokenize, unicodedata)}
_close_matches = difflib.get_close_matches
_islice = islice
_match, _search = re.match, re.search
_modules = sys.modules
_type_mro = vars(type)["__mro__"].__get__
_type_dict = vars(type)["__dict__"].__get__
_type_name = vars(type)["__qualname__"].__get__
_plain_name = vars(type)["__name__"].__get__
_module_dict = vars(ModuleType)["__dict__"].__get__
_object_getattribute = object.__getattribute__

show_values = False
rewritten: Set[str] = set()  # cells whose source was rewritten before it was compiled (magics.py)


def _from_cell(trace: Optional[TracebackType]) -> Optional[TracebackType]:
    """Leaves out the frames that led to the cell: ours, and those of an event loop."""
    while trace is not None and not trace.tb_frame.f_code.co_filename.startswith(_MAIN_FILES):
        trace = trace.tb_next
    return trace


def _bounded(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]}\n... {len(text) - 2 * half} characters left out ...\n{text[-half:]}"


def _value_of(error: BaseException) -> str:
    try:
        return _bounded(str(error), _VALUE_MAX)
    except BaseException:
        return "<its str() failed>"


# ---- which frames are shown ----


class _Ends(traceback.StackSummary):
    """Prints both ends of a long stack."""

    def format(self, **options: Any) -> List[str]:
        lines = super().format(**options)
        if len(lines) <= 2 * _ENDS:
            return lines
        return [*lines[:_ENDS], f"  ... {len(lines) - 2 * _ENDS} frames left out ...\n", *lines[-_ENDS:]]


class _Refusal(NamedTuple):
    error: BaseException
    line: str


def _refusal_in(error: BaseException) -> Optional[_Refusal]:
    """The refusal of the cage that the error tells, in the refusal's own words or in a library's."""
    value, inner = _value_of(error), error
    for _ in range(_CHAIN_MAX):
        line = _refusal_line(inner)
        if line is not None and line in value:
            return _Refusal(inner, line)
        inner = _object_getattribute(inner, "__cause__") or _object_getattribute(inner, "__context__")
        if inner is None:
            break
    return None


def _refusal_line(error: BaseException) -> Optional[str]:
    """The line of the error, if the error is a refusal (refusal.c) or says that a name could not be
    looked up."""
    kind, line = type(error), getattr(error, "strerror", None)
    if type(line) is not str or kind is PermissionError:
        return None
    if kind is _gaierror:
        return line if line.endswith("(names-not-granted)") else None
    return line if _plain_name(kind) == "PermissionError" and PermissionError in _type_mro(kind) else None


def _in_library(summary: traceback.FrameSummary) -> bool:
    return _LIBRARIES.match(summary.filename) is not None


def _pick(told: Any, refused: bool) -> List[int]:
    """Keeps only the frames that are to be shown, and returns their positions. Frames of IPython are left out. For
    a refusal the last frames are left out, up to the session's own code, because they are a library's."""
    shown = [i for i, summary in enumerate(told.stack) if not _IPYTHON.match(summary.filename)]
    while refused and shown and _in_library(told.stack[shown[-1]]):
        shown.pop()
    shown = shown or list(range(len(told.stack)))
    told.stack = _Ends([told.stack[i] for i in shown])
    for summary in told.stack:
        if summary.filename in rewritten and hasattr(summary, "colno"):
            summary.colno = None
    return shown


def _arrange(told: Any, error: BaseException) -> List[int]:
    """Does this for all errors that a traceback shows. Returns the positions of the frames of the error itself."""
    refusal = _refusal_in(error)
    if refusal and refusal.error is not error and told.stack and _in_library(told.stack[-1]):
        told.__cause__ = told.__context__ = None  # how a library came from one error to the other
    picked = _pick(told, refusal is not None)
    waiting, seen = _inside(told, error), {id(told)}
    while waiting:
        inner, cause = waiting.pop()
        if inner is not None and cause is not None and id(inner) not in seen:
            seen.add(id(inner))
            _pick(inner, _refusal_line(cause) is not None)
            waiting += _inside(inner, cause)
    return picked


def _inside(told: Any, error: BaseException) -> List[Tuple[Any, Any]]:
    """The errors that are shown with it, each as its summary and itself."""
    group = zip(getattr(told, "exceptions", None) or (), getattr(error, "exceptions", None) or ())
    return [(told.__cause__, error.__cause__), (told.__context__, error.__context__), *group]


# ---- suggestions; attributes are looked up without running code of the session ----


def _names_of(value: object) -> Iterator[Any]:
    if type(value) is ModuleType:
        yield from _module_dict(value)
        return
    own = None
    if type(value) is not type:
        try:
            own = _object_getattribute(value, "__dict__")
        except Exception:
            pass
    if type(own) is dict:
        yield from own
    for base in _type_mro(value if type(value) is type else type(value)):
        yield from _type_dict(base)


_Locals = type((lambda: sys._getframe().f_locals)())  # of a function: no dict from Python 3.13 on


def _locals(frame: FrameType) -> Any:
    """None of them where they are a mapping of the session's own, as a metaclass may have."""
    names = frame.f_locals
    return names if type(names) is dict or type(names) is _Locals else {}


def _names_in(trace: Optional[TracebackType]) -> Iterator[Any]:
    frame = None
    while trace is not None:
        frame, trace = trace.tb_frame, trace.tb_next
    if frame is not None:
        yield from _locals(frame)
        for names in (frame.f_globals, frame.f_builtins):
            if type(names) is dict:
                yield from names


def _candidates(error: BaseException, trace: Optional[TracebackType]) -> Tuple[Any, Iterator[Any]]:
    """The name that was not found, and the names that there are."""
    if isinstance(error, NameError):
        named = _match(r"(?:free variable|name|cannot access \w+ variable) '(\w+)'", _value_of(error))
        return named and named[1], _names_in(trace)
    if isinstance(error, AttributeError):
        thing = getattr(error, "obj", None)
        named = _search(r"has no attribute '(\w+)'", _value_of(error))
        return named and named[1], _names_of(thing) if thing is not None else iter(())
    if isinstance(error, ImportError) and type(error.name) is str:
        named = _match(r"cannot import name '(\w+)'", _value_of(error))
        module = _modules.get(error.name)
        return named and named[1], _names_of(module) if module is not None else iter(())
    return None, iter(())


def _suggestion(error: BaseException, trace: Optional[TracebackType]) -> Optional[str]:
    name, names = _candidates(error, trace)
    if not name:
        return None
    known = {
        other
        for other in _islice(names, _NAMES_MAX)
        if type(other) is str and other != name and (name.startswith("_") or not other.startswith("_"))
    }
    near = _close_matches(name, sorted(known), 1, 0.75)
    return near[0] if near else None


def _with_suggestion(text: str, suggestion: str, message: str, *notes: str) -> str:
    """Puts the suggestion where Python's own prompt has it, unless it is there already. The text ends with the
    message and its notes."""
    after = "".join(notes)
    if f"'{suggestion}'" in message or not text.endswith(after):
        return text
    return f"{text[: len(text) - len(after) - 1]}. Did you mean: '{suggestion}'?\n{after}"


# ---- as data ----


def _short(value: Any, room: int = 3) -> str:
    """What can be said of a value without running its code."""
    kind = type(value)
    if kind in _ATOMS:
        text = repr(value) if kind not in (str, bytes, int) or _size(value) < 200 else f"{_start(value)}..."
        return text if len(text) <= _SHORT_MAX else text[:_SHORT_MAX] + "..."
    if kind in _BRACKETS and room > 0:
        items = [
            f"{_short(item, room - 1)}: {_short(value[item], room - 1)}" if kind is dict else _short(item, room - 1)
            for item in _islice(value, room)
        ]
        items += ["..."] if len(value) > room else []
        return f"{_BRACKETS[kind][0]}{', '.join(items)}{_BRACKETS[kind][1]}"
    return f"<{_type_name(kind)[:_SHORT_MAX]}>"


def _size(value: Any) -> int:
    return value.bit_length() // 3 if type(value) is int else len(value)


def _start(value: Any) -> str:
    return "<a large int>" if type(value) is int else repr(value[:_SHORT_MAX])


def _values(frame: FrameType) -> Dict[str, str]:
    names = _locals(frame) if frame.f_code.co_name != "<module>" else {}
    own = [name for name in names if type(name) is str and not name.startswith("__")]
    return {name: _short(names[name]) for name in own[:_VALUES_MAX]}


def _frame(frame: FrameType, line: Optional[int], summary: traceback.FrameSummary) -> Dict[str, object]:
    filename = frame.f_code.co_filename
    told: Dict[str, object] = {"line": line or 0, "function": frame.f_code.co_name[:_SHORT_MAX]}
    if filename.startswith(_MAIN_FILES) and filename[6:-1].isdigit():
        told["cell"] = int(filename[6:-1])
    else:
        told["file"] = filename[:_PATH_MAX]
    if getattr(summary, "colno", None) is not None:
        told["column"] = summary.colno
    if summary.line:
        told["source"] = summary.line[:_SOURCE_MAX]
    if show_values:
        told["values"] = _values(frame)
    return told


def _frames(
    trace: Optional[TracebackType], stack: traceback.StackSummary, picked: List[int]
) -> List[Dict[str, object]]:
    walked = list(_walk_tb(trace))
    told = [(*walked[i], summary) for i, summary in zip(picked, stack)]
    if len(told) > 2 * _ENDS:
        told = told[:_ENDS] + told[-_ENDS:]
    return [_frame(frame, line, summary) for frame, line, summary in told]


def _place(error: BaseException) -> Dict[str, object]:
    """Where the syntax is wrong. A SyntaxError may have been raised by anybody, with anything in it."""
    told: Dict[str, object] = {}
    if not isinstance(error, SyntaxError):
        return told
    for name, value in (("line", error.lineno), ("offset", error.offset)):
        if type(value) is int and 0 < value < 1 << 31:
            told[name] = value
    if type(error.text) is str:
        told["context"] = error.text[:_SOURCE_MAX].rstrip("\n")
    return told


def set_values(wanted: bool) -> None:
    global show_values
    show_values = wanted


def _name_project(error: ModuleNotFoundError, answer: Dict[str, Any]) -> None:
    """Adds how to get the module, which may be of a project of another name."""
    hint = packages.hint(error.name) if type(error.name) is str else None
    if hint is not None and answer["traceback"].endswith(f"{answer['value']}\n"):
        answer["traceback"] = f"{answer['traceback'].rstrip()}; {hint}\n"
        answer["value"] = f"{answer['value']}; {hint}"


def _told_more(
    error: BaseException, trace: Optional[TracebackType], told: Dict[str, Any], shown: Any, picked: List[int]
) -> None:
    suggestion = _suggestion(error, trace)
    if suggestion is not None:
        told["suggestion"] = suggestion
        told["traceback"] = _with_suggestion(told["traceback"], suggestion, *shown.format_exception_only())
    told.update(_place(error))
    told["frames"] = _frames(trace, shown.stack, picked)


def _name_limit(answer: Dict[str, Any], memory: int) -> None:
    """Adds the memory limit: Python does not tell it, and libraries tell only how much they wanted."""
    limit = f"a process of this session has {memory / (1 << 20):.0f} MiB of memory"
    joint = "; " if answer["value"] else ": "
    answer["traceback"] = f"{answer['traceback'].rstrip()}{joint}{limit}\n"
    answer["value"] = f"{answer['value']}; {limit}" if answer["value"] else limit


# ---- for pdb.pm() and %debug ----

_LAST = ("last_exc", "last_type", "last_value", "last_traceback")


def _keep(error: BaseException, trace: Optional[TracebackType]) -> None:
    """Keeps the frames of the last error, with all that they hold, as a prompt does. Of a MemoryError nothing is
    kept, because the next cell needs the room."""
    for name in _LAST:
        vars(sys).pop(name, None)
    if isinstance(error, MemoryError):
        return
    if trace is not None and trace is not error.__traceback__:
        error.__traceback__ = trace
    sys.last_type, sys.last_value, sys.last_traceback = type(error), error, trace
    if sys.version_info >= (3, 12):
        sys.last_exc = error


def explain(error: BaseException, memory: int, keep: bool) -> Dict[str, Any]:
    """Name, value and traceback of what ended a cell, and what a program can use of it. `memory`: the limit, or 0.
    `keep`: whether it is the session's last error from now on. A cell may have emptied sys.modules."""
    missing = {name: module for name, module in _imported_late.items() if name not in _modules}
    _modules.update(missing)
    try:
        return _explained(error, memory, keep)
    finally:
        for name in missing:
            _modules.pop(name, None)


def _explained(error: BaseException, memory: int, keep: bool) -> Dict[str, Any]:
    kind = type(error)
    trace = _from_cell(error.__traceback__)
    if keep:
        _keep(error, trace)
    told = _TracebackException(kind, error, trace, compact=True)
    picked = _arrange(told, error)
    answer = {
        "name": _plain_name(kind),
        "value": _value_of(error),
        "traceback": _bounded("".join(told.format()), _TEXT_MAX),
    }
    try:
        _told_more(error, trace, answer, told, picked)
    except Exception:
        pass  # the answer has a traceback by then
    if type(error) is ModuleNotFoundError:
        _name_project(error, answer)
    if memory and isinstance(error, MemoryError):
        _name_limit(answer, memory)
    return answer


# Python's own hooks, written in C, cannot show the lines of a cell: they look for a file of its name.


def _report(heading: str, kind: type, value: Optional[BaseException], trace: Optional[TracebackType]) -> None:
    if sys.stderr is not None:
        lines = traceback.format_exception(kind, value, trace)
        sys.stderr.write(heading + "".join(lines))


def _uncaught(kind: type, value: BaseException, trace: Optional[TracebackType]) -> None:
    _report("", kind, value, trace)


def _uncaught_in_thread(args: threading.ExceptHookArgs) -> None:
    if args.exc_type is SystemExit:
        return
    name = args.thread.name if args.thread is not None else threading.get_ident()
    _report(f"Exception in thread {name}:\n", args.exc_type, args.exc_value, args.exc_traceback)


def _unraisable(args: "sys.UnraisableHookArgs") -> None:
    about = args.err_msg or "Exception ignored in"
    heading = f"{about}: {args.object!r}\n" if args.object is not None else f"{about}:\n"
    _report(heading, args.exc_type, args.exc_value, args.exc_traceback)


sys.excepthook = sys.__excepthook__ = _uncaught
threading.excepthook = threading.__excepthook__ = _uncaught_in_thread  # type: ignore[attr-defined]
sys.unraisablehook = sys.__unraisablehook__ = _unraisable

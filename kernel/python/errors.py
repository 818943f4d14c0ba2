"""What the user is told of an exception: Python's own traceback, from the first line of the cell on."""

import sys
import threading
import traceback
from types import TracebackType
from typing import Dict, Optional

_TracebackException = traceback.TracebackException
_MAIN_FILES = "<cell "
_VALUE_MAX = 16384
_TEXT_MAX = 262144


def _from_cell(trace: Optional[TracebackType]) -> Optional[TracebackType]:
    """Leave out the frames that led to the cell: ours, and those of an event loop."""
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


def explain(error: BaseException) -> Dict[str, object]:
    """Name, value and traceback of what ended a cell."""
    kind = type(error)
    trace = _from_cell(error.__traceback__)
    text = "".join(_TracebackException(kind, error, trace, compact=True).format())
    return {"name": kind.__name__, "value": _value_of(error), "traceback": _bounded(text, _TEXT_MAX)}


# Python's own hooks, written in C, cannot show the lines of a cell: they look for a file of that name.


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
threading.excepthook = threading.__excepthook__ = _uncaught_in_thread
sys.unraisablehook = sys.__unraisablehook__ = _unraisable

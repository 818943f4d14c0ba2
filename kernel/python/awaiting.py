"""Top-level await: one event loop an interpreter, made when a cell first awaits."""

import asyncio
from typing import Any, Coroutine, Optional

_new_event_loop = asyncio.new_event_loop
_set_event_loop = asyncio.set_event_loop
_CancelledError = asyncio.CancelledError

_loop: Optional[asyncio.AbstractEventLoop] = None


def run(coroutine: Coroutine[Any, Any, object]) -> object:
    global _loop
    if _loop is None or _loop.is_closed():
        _loop = _new_event_loop()
    _set_event_loop(_loop)
    task = _loop.create_task(coroutine)
    try:
        return _loop.run_until_complete(task)
    except KeyboardInterrupt:
        if task.done():
            raise
    # Interrupted while everything waited: the traceback of a cancellation shows where the cell did.
    task.cancel()
    where = None
    try:
        _loop.run_until_complete(task)
    except _CancelledError as cancelled:
        where = cancelled.__traceback__
    raise KeyboardInterrupt().with_traceback(where) from None

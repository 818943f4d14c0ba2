"""Top-level await: one event loop an interpreter, made when a cell first awaits."""

import asyncio
import inspect
import os
import signal
import time
from types import CodeType, FrameType
from typing import Any, Coroutine, Dict, Optional, Tuple

_new_event_loop = asyncio.new_event_loop
_set_event_loop = asyncio.set_event_loop
_current_task = asyncio.current_task
_CancelledError = asyncio.CancelledError
_all_tasks = asyncio.all_tasks
_SelectorLoop = asyncio.SelectorEventLoop
_signal = signal.signal
_getsignal = signal.getsignal
_set_wakeup_fd = signal.set_wakeup_fd
_SIGINT = signal.SIGINT
_raise_interrupt = signal.default_int_handler
_monotonic = time.monotonic
_eval = eval
_COROUTINE = inspect.CO_COROUTINE

_ASYNCIO = os.path.dirname(asyncio.__file__)
_REST_SECONDS = 0.1

_loop: Optional[asyncio.AbstractEventLoop] = None


class _Interrupts:
    """An exception out of nowhere in the loop's own code would lose what it was about to run. So an interrupt
    raises only where the code of a task runs, and anywhere else cancels the cell."""

    def __init__(self, loop: asyncio.AbstractEventLoop, task: "asyncio.Task[object]") -> None:
        self._loop, self._task = loop, task
        self.cancelled = False

    def __enter__(self) -> "_Interrupts":
        self._ours = _getsignal(_SIGINT) is _raise_interrupt
        if self._ours:
            _signal(_SIGINT, self._handle)
        return self

    def __exit__(self, *unused: object) -> None:
        if self._ours and _getsignal(_SIGINT) == self._handle:
            _signal(_SIGINT, _raise_interrupt)

    def _handle(self, number: int, frame: Optional[FrameType]) -> None:
        in_asyncio = frame is not None and frame.f_code.co_filename.startswith(_ASYNCIO)
        if self._task.done() or (_current_task(self._loop) is not None and not in_asyncio):
            raise KeyboardInterrupt
        self.cancelled = True
        self._task.cancel()
        self._loop.call_soon_threadsafe(int)  # wakes it


def _finish(loop: asyncio.AbstractEventLoop, task: "asyncio.Task[object]") -> object:
    with _Interrupts(loop, task) as interrupts:
        try:
            return loop.run_until_complete(task)
        except _CancelledError as cancelled:
            if not interrupts.cancelled:
                raise
            where = cancelled.__traceback__  # what the cell was waiting for
    raise KeyboardInterrupt().with_traceback(where) from None


def _rest(loop: Any, patience: float) -> None:
    """As asyncio.run() does: the idle threads of to_thread() and of look-ups of names would be in the way of
    checkpoints. What is at work ends when it is done."""
    executor: Any = getattr(loop, "_default_executor", None)
    if getattr(executor, "_thread_name_prefix", None) != "asyncio":  # none, or one that a cell has set
        return
    loop._default_executor = None
    executor.shutdown(wait=False)
    until = _monotonic() + patience
    for thread in list(executor._threads):
        thread.join(max(0, until - _monotonic()))


def run(coroutine: Coroutine[Any, Any, object]) -> object:
    global _loop
    if _loop is None or _loop.is_closed():
        _loop = _new_event_loop()
    _set_event_loop(_loop)
    task = _loop.create_task(coroutine)
    patience = _REST_SECONDS
    try:
        return _finish(_loop, task)
    except KeyboardInterrupt:
        patience = 0
        if not task.done():  # another task was interrupted
            task.cancel()
            try:
                _finish(_loop, task)
            except _CancelledError:
                pass
        raise
    finally:
        _rest(_loop, patience)


async def together(parts: Tuple[Optional[CodeType], Optional[CodeType]], names: Dict[str, Any]) -> object:
    """Both parts of a cell in one run of the loop: the first may make the tasks that the last awaits."""
    value = None
    for code in parts:
        if code is not None:
            value = _eval(code, names)
            if code.co_flags & _COROUTINE:
                value = await value
    return value


def renew() -> None:
    """In a fork: what the loop waits by, and what wakes it, belongs to what it was forked from, too."""
    loop: Any = _loop
    if loop is None or loop.is_closed() or not isinstance(loop, _SelectorLoop):
        return
    before, loop._selector = loop._selector, type(loop._selector)()
    for key in list(before.get_map().values()):
        try:
            loop._selector.register(key.fileobj, key.events, key.data)
        except (OSError, ValueError):
            pass  # a cell has closed it
    before.close()  # without a word to the kernel of what was registered
    loop._close_self_pipe()
    loop._make_self_pipe()
    if loop._signal_handlers:
        _set_wakeup_fd(loop._csock.fileno())


def pending() -> int:
    """How many tasks wait in the loop for the next cell that awaits."""
    return 0 if _loop is None or _loop.is_closed() else len(_all_tasks(_loop))

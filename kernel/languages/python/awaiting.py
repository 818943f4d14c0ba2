"""Top-level await and tasks: one event loop an interpreter, made when it is first needed. It runs while a cell awaits,
and between two cells as long as anything waits in it."""

import asyncio
import functools
import inspect
import os
import select
import signal
import threading
import time
from types import CodeType, FrameType
from typing import Any, Coroutine, Dict, Optional, Tuple

_new_event_loop = asyncio.new_event_loop
_set_event_loop = asyncio.set_event_loop
_running_loop = asyncio._get_running_loop
_set_running_loop = asyncio._set_running_loop
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
_getpid = os.getpid
_thread = threading.get_ident
_poll = select.poll
_events: Any = asyncio.events
_plain_create_task = asyncio.create_task
_COROUTINE = inspect.CO_COROUTINE

_ASYNCIO = os.path.dirname(asyncio.__file__)
_REST_SECONDS = 0.1
_BRIEF_REST_SECONDS = 0.01

_loop: Optional[asyncio.AbstractEventLoop] = None
_home: Optional[Tuple[int, int]] = None  # the process and the thread that run cells
_halted: Any = None  # the loop that runs in the cell, which is being copied


def _found() -> Any:
    """The loop if there is one: ours, or one that get_event_loop() has given to a cell. To ask asyncio for its policy
    would make one in each interpreter, which costs as much as some cells do."""
    global _loop
    if _loop is None or _loop.is_closed():
        policy = getattr(_events, "_event_loop_policy", None)
        loop = getattr(getattr(policy, "_local", None), "_loop", None)
        _loop = loop if loop is not None and not loop.is_closed() else None
    return _loop


def _own_loop() -> asyncio.AbstractEventLoop:
    global _loop
    loop: asyncio.AbstractEventLoop = _found() or _new_event_loop()
    _loop = loop
    _set_event_loop(loop)
    return loop


def create_task(coro: Any, **options: Any) -> "asyncio.Task[Any]":
    """asyncio.create_task. In a cell no loop runs, so the task belongs to the loop that runs between cells."""
    if _running_loop() is None and (_getpid(), _thread()) == _home:
        return _own_loop().create_task(coro, **options)
    return _plain_create_task(coro, **options)


class _Interrupts:
    """If an exception came up in the loop's own code, the loop would lose what it was about to run. So an interrupt
    raises only in the code of a task. Anywhere else it cancels the cell."""

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
        self._loop.call_soon_threadsafe(int)  # wakes the loop


def _finish(loop: asyncio.AbstractEventLoop, task: "asyncio.Task[object]") -> object:
    with _Interrupts(loop, task) as interrupts:
        try:
            return loop.run_until_complete(task)
        except _CancelledError as cancelled:
            if not interrupts.cancelled:
                raise
            where = cancelled.__traceback__  # the place where the cell waited
    raise KeyboardInterrupt().with_traceback(where) from None


def _rest(loop: Any, patience: float) -> None:
    """Ends idle threads, as asyncio.run() does: threads of to_thread() and of look-ups of names would be
    copied with each checkpoint. A busy thread ends when its work is done."""
    executor: Any = getattr(loop, "_default_executor", None)
    if getattr(executor, "_thread_name_prefix", None) != "asyncio":  # there is none, or a cell has set one
        return
    loop._default_executor = None
    executor.shutdown(wait=False)
    until = _monotonic() + patience
    for thread in list(executor._threads):
        thread.join(max(0, until - _monotonic()))


def run(coroutine: Coroutine[Any, Any, object]) -> object:
    loop = _own_loop()
    task = loop.create_task(coroutine)
    patience = _REST_SECONDS
    try:
        return _finish(loop, task)
    except KeyboardInterrupt:
        patience = 0
        if not task.done():  # another task was interrupted
            task.cancel()
            try:
                _finish(loop, task)
            except _CancelledError:
                pass
        raise
    finally:
        _rest(loop, patience)


async def together(parts: Tuple[Optional[CodeType], Optional[CodeType]], names: Dict[str, Any]) -> object:
    """Both parts of a cell in one run of the loop, because the first may make tasks that the last awaits."""
    value = None
    for code in parts:
        if code is not None:
            value = _eval(code, names)
            if code.co_flags & _COROUTINE:
                value = await value
    return value


def renew() -> None:
    """In a fork: a loop shares its selector and its wake-up pair with the process that was forked, so it gets its own."""
    _renew(_loop)
    if _halted is not _loop:
        _renew(_halted)


def _renew(loop: Any) -> None:
    if loop is None or loop.is_closed() or not issubclass(type(loop), _SelectorLoop):
        return
    before, loop._selector = loop._selector, type(loop._selector)()
    for key in list(before.get_map().values()):
        try:
            loop._selector.register(key.fileobj, key.events, key.data)
        except (OSError, ValueError):
            pass  # a cell has closed the file
    before.close()  # without unregistering anything, which would hold for the other process, too
    loop._close_self_pipe()
    loop._make_self_pipe()
    if loop._signal_handlers:
        _set_wakeup_fd(loop._csock.fileno())


# ---- a copy of a cell that waits ----


def halt() -> None:
    """It is made now. asyncio knows the loop that runs by its process, too, so it would not find it in the copy."""
    global _halted
    _halted = _running_loop()


def resume(forked: bool) -> None:
    """It is made; in a fork of the copy, after renew()."""
    global _halted, _home
    if forked:
        _home = (_getpid(), _thread())
        _set_running_loop(_halted)
    _halted = None


# ---- between two cells ----


class _Idle:
    """One run of the loop, until there is a message. An interrupt stops the task that keeps the loop busy."""

    def __init__(self, loop: Any, channel: int) -> None:
        self._loop, self._channel = loop, channel
        self._message = _poll()
        self._message.register(channel, select.POLLIN)
        self.heard = self.interrupted = False

    def _hear(self) -> None:
        self.heard = True
        self._loop.stop()

    def _handle(self, number: int, frame: Optional[FrameType]) -> None:
        if not self._message.poll(0):
            return  # the interrupt came too late for the last cell
        self.interrupted = True
        if frame is not None and not frame.f_code.co_filename.startswith(_ASYNCIO):
            raise KeyboardInterrupt

    def run(self) -> None:
        ours = _getsignal(_SIGINT) is _raise_interrupt
        self._loop.add_reader(self._channel, self._hear)
        if ours:
            _signal(_SIGINT, self._handle)
        try:
            self._loop.run_forever()
        except (KeyboardInterrupt, SystemExit):
            pass  # the exception stays with the task that raised it; the others go on
        finally:
            if ours and _getsignal(_SIGINT) == self._handle:
                _signal(_SIGINT, _raise_interrupt)
            self._loop.remove_reader(self._channel)


def waits() -> bool:
    """Whether the loop has anything to do or to wait for, besides its own wake-up pair."""
    global _home
    here = (_getpid(), _thread())
    if _home != here:
        _home = here
    loop = _found()
    if loop is None or loop.is_running():
        return False
    selector = getattr(loop, "_selector", None)
    watched = selector.get_map() if selector is not None else None
    due = any(getattr(loop, name, None) for name in ("_ready", "_scheduled"))
    return due or bool(_all_tasks(loop)) or len(watched or ()) > 1


def idle(channel: int) -> bool:
    """Runs the loop until there is a message. Returns whether it was interrupted."""
    while waits():
        turn = _Idle(_loop, channel)
        turn.run()
        if turn.heard or turn.interrupted:
            return turn.interrupted
    return False


def unforkable() -> int:
    """How many tasks wait in a loop that a fork cannot renew. First the loop's idle threads end, so that they need not
    be copied."""
    loops = {loop for loop in (_found(), _running_loop()) if loop is not None}
    for loop in loops:
        _rest(loop, _BRIEF_REST_SECONDS)
    return sum(len(_all_tasks(loop)) for loop in loops if not issubclass(type(loop), _SelectorLoop))


asyncio.create_task = asyncio.tasks.create_task = functools.wraps(asyncio.create_task)(create_task)

"""Calls that a cell has made of this program's functions: each is done once, in a thread or a task, and answered."""

from __future__ import annotations

import contextvars
import dataclasses
import inspect
import threading
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from . import messages as m
from .errors import LairError
from .functions import Functions, collected, words

# Half of the time that `import lair` takes would be theirs, and few programs need them.
if TYPE_CHECKING:
    import asyncio
    from concurrent.futures import ThreadPoolExecutor

_THREADS = 32
# As deep as a value may be nested in a message, which is a map in a list itself.
_DEPTH_MAX = 13
# Of a message, less some for what is around the value.
_PARTS_MAX = 65536 - 36
_AS_THEY_ARE = frozenset({type(None), bool, int, float, str, bytes, list, dict})


class Hold(Exception):
    """Raised in a function, it puts the call aside: the cell waits, until somebody answers by Session.answer_call, or as
    `lair answer`. The text says why."""


class Calling:
    """A call of a cell: what current() is in a function, and what `approve` is asked about. `key` is this call's alone, also if
    it is put again: a key of idempotency. `text`: who wants it approved. `cancelled` is set when the cell waits no longer."""

    def __init__(self, event: m.CallEvent | m.HeldEvent, cell: str) -> None:
        self.function, self.number, self.arguments = event.function, event.number, event.arguments
        self.key = f"{cell}/{event.number}"
        self.text = getattr(event, "text", None) or ""
        self.cancelled = threading.Event()

    def __repr__(self) -> str:
        names = (name if name.isidentifier() else repr(name) for name in self.arguments)  # anything may be a name
        given = ", ".join(f"{name}={value!r}" for name, value in zip(names, self.arguments.values()))
        return f"{self.function}({given})"


_current: contextvars.ContextVar[Calling] = contextvars.ContextVar("lair_calling")


def current() -> Calling:
    """In a function that a cell has called: the call. Else LookupError."""
    return _current.get()


def plain(value: Any, depth: int = _DEPTH_MAX) -> Any:
    """As it can be sent: None, bool, int, float, str, bytes, list and dict. Models and dataclasses become dicts, dates and
    paths text."""
    if type(value) not in _AS_THEY_ARE:
        from .schema import written

        value = written(value)
    if value is None or isinstance(value, (bool, int, float, str, bytes)):
        if isinstance(value, int) and not isinstance(value, bool) and not -(1 << 63) <= value < 1 << 64:
            raise TypeError("an int of more than 64 bits cannot be sent")
        return value
    if not depth:
        raise ValueError(f"a value that is nested deeper than {_DEPTH_MAX} cannot be sent")
    if isinstance(value, (list, tuple)):
        return [plain(it, depth - 1) for it in value]
    if isinstance(value, Mapping):
        return {plain(key, 0): plain(it, depth - 1) for key, it in value.items()}
    if hasattr(value, "model_dump"):
        return plain(value.model_dump(), depth)
    if hasattr(value, "dtype") and hasattr(value, "tolist"):  # numpy's and pandas'
        return plain(value.tolist(), depth)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {it.name: plain(getattr(value, it.name), depth - 1) for it in dataclasses.fields(value)}
    raise TypeError(
        f"a {type(value).__name__} cannot be sent: return None, bool, int, float, str, bytes, list or dict"
    )


def _parts(value: Any) -> int:
    if isinstance(value, list):
        return 1 + sum(map(_parts, value))
    return 1 + sum(_parts(it) + 1 for it in value.values()) if isinstance(value, dict) else 1


def sendable(value: Any) -> Any:
    """The same, or why it cannot be sent: the daemon does not read a message that is too deep or has too many parts."""
    made = plain(value)
    parts = _parts(made)
    if parts > _PARTS_MAX:
        raise ValueError(
            f"a value of {parts:,} parts cannot be sent, {_PARTS_MAX:,} are the limit: text and bytes are one each"
        )
    return made


# Asked about a call: True approves it; False, or a text that says why, refuses it; None leaves it to somebody else.
Approve = Callable[[Calling], Any]


class Hear:
    """Where the calls of one cell come from: `name` is the cell's key, `give` answers a call, `decide` approves or refuses
    one, and `fail` ends the wait for the cell."""

    def __init__(
        self,
        name: str,
        give: Callable[[m.Return], None],
        decide: Callable[[int, str | None], None],
        fail: Callable[[BaseException], None],
    ) -> None:
        self.name, self.give, self.decide, self.fail = name, give, decide, fail


def _failed(number: int, error: BaseException) -> m.Return:
    """Its traceback stays here."""
    if isinstance(error, Hold):
        return m.Return(id=0, exec=0, number=number, hold=True, text=str(error))
    return m.Return(id=0, exec=0, number=number, error=type(error).__name__, text=words(error))


def unsendable(answer: m.Return, refusal: LairError) -> m.Return | None:
    """The error that takes the place of a value which the daemon does not take."""
    if answer.error is not None or answer.hold or refusal.code not in ("bad_request", "too_large", "limit"):
        return None
    return _failed(answer.number, ValueError(f"the value cannot be sent: {refusal.message}"))


def refused(outcome: Any) -> bool:
    """Whether an answer did not get where it belongs. `gone`: the cell waits no longer, or has the answer."""
    return isinstance(outcome, LairError) and outcome.code != "gone"


def _verdict(calling: Calling, said: Any) -> str | None:
    """None: it is approved. Else why not."""
    if said is True:
        return None
    if said is False or isinstance(said, str):
        return f"{calling.function} was refused" + (f": {said}" if said else "")
    raise TypeError(f"approve: expected True, False, a text or None; got {said!r}")


class Offer:
    """The functions of one cell, and the calls that it has made of them. A call is done once, however often it is put."""

    def __init__(self, functions: Functions | None, approve: Approve | None = None, bare: bool = False) -> None:
        self.functions = collected(functions)
        self._bare = bare
        self._approve = approve
        self._answers: dict[int, m.Return | None] = {}  # None: it is being worked on
        self._calling: dict[int, Calling] = {}  # those that are worked on
        self._asked: dict[int, Calling] = {}
        self._waiting: set[int] = set()  # the cell waits for these
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._lock = threading.Lock()
        self._threads: ThreadPoolExecutor | None = None
        self._asker: ThreadPoolExecutor | None = None
        self._turn: asyncio.Lock | None = None
        self._since, self._spent = 0.0, 0.0

    def wire(self) -> list[dict[str, Any]] | None:
        """With nothing in it, calls of what the daemon does for a cell ask here."""
        return [it.wire(self._bare) for it in self.functions.values()] if self.answers else None

    @property
    def answers(self) -> bool:
        """Whether calls of a cell that somebody else has begun are for it."""
        return bool(self.functions) or self._approve is not None

    # ---- how long calls have taken ----

    def spent(self) -> float:
        """Seconds for which calls were out: the cell's time stands still meanwhile."""
        with self._lock:
            return self._spent + (time.monotonic() - self._since if self._waiting else 0.0)

    def _wait(self, number: int) -> None:
        if not self._waiting:
            self._since = time.monotonic()
        self._waiting.add(number)

    def _wait_no_more(self, number: int) -> None:
        if number in self._waiting:
            self._waiting.remove(number)
            if not self._waiting:
                self._spent += time.monotonic() - self._since

    # ---- calls ----

    def _begin(self, event: m.CallEvent, hear: Hear) -> Calling | None:
        """Whether it is to be done now, and not done or being done already."""
        with self._lock:
            if event.number in self._answers:
                known = self._answers[event.number]
                if known is not None:
                    hear.give(known)
                return None
            self._answers[event.number] = None
            self._wait(event.number)
            calling = self._calling[event.number] = Calling(event, hear.name)
        if event.function not in self.functions:
            missing = LookupError(f"there is no function {event.function}")
            self._end(event.number, _failed(event.number, missing), hear)
            return None
        return calling

    def _end(self, number: int, answer: m.Return, hear: Hear) -> None:
        with self._lock:
            self._answers[number] = answer
            self._calling.pop(number, None)
            if not answer.hold:
                self._wait_no_more(number)
        hear.give(answer)

    def _begin_asking(self, event: m.HeldEvent, hear: Hear) -> Calling | None:
        with self._lock:
            self._wait(event.number)
            if self._approve is None or event.number in self._asked:
                return None
            calling = self._asked[event.number] = Calling(event, hear.name)
            return calling

    def _decide(self, calling: Calling, said: Any, hear: Hear) -> None:
        if said is None or calling.cancelled.is_set():
            return
        verdict = _verdict(calling, said)
        if verdict is not None:
            with self._lock:
                self._wait_no_more(calling.number)
        hear.decide(calling.number, verdict)

    def take(self, event: m.CallEvent | m.HeldEvent | m.CancelEvent, hear: Hear) -> None:
        """For a program that waits: a call is done in a thread. It is asked about one after the other, in another."""
        if isinstance(event, m.CancelEvent):
            self.cancel(event.number)
        elif isinstance(event, m.HeldEvent):
            asking = self._begin_asking(event, hear)
            if asking is not None:
                self._asker = self._asker or _threads(1, "lair-approve")
                self._asker.submit(contextvars.copy_context().run, self._ask, asking, hear)
        else:
            calling = self._begin(event, hear)
            if calling is not None:
                self._threads = self._threads or _threads(_THREADS, "lair-function")
                self._threads.submit(contextvars.copy_context().run, self._work, calling, hear)

    def _work(self, calling: Calling, hear: Hear) -> None:
        _current.set(calling)
        function = self.functions[calling.function]
        try:
            value = function.run(**function.arguments(calling.arguments))
            if inspect.isawaitable(value):
                value = _waited_for(value)
            answer = m.Return(id=0, exec=0, number=calling.number, value=sendable(value))
        except BaseException as error:
            answer = _failed(calling.number, error)
        self._end(calling.number, answer, hear)

    def _ask(self, calling: Calling, hear: Hear) -> None:
        if calling.cancelled.is_set():
            return
        try:
            assert self._approve is not None
            said = self._approve(calling)
            if inspect.isawaitable(said):
                said = _waited_for(said)
            self._decide(calling, said, hear)
        except BaseException as error:
            hear.fail(error)

    def take_in_loop(self, event: m.CallEvent | m.HeldEvent | m.CancelEvent, hear: Hear) -> None:
        """The same in tasks of the running event loop; what is no coroutine function, in a thread."""
        if isinstance(event, m.CancelEvent):
            self.cancel(event.number)
        elif isinstance(event, m.HeldEvent):
            asking = self._begin_asking(event, hear)
            if asking is not None:
                self._begin_task(asking, self._ask_in_loop(asking, hear))
        else:
            calling = self._begin(event, hear)
            if calling is not None:
                self._begin_task(calling, self._work_in_loop(calling, hear))

    def _begin_task(self, calling: Calling, what: Any) -> None:
        import asyncio

        task = self._tasks[calling.number] = asyncio.get_running_loop().create_task(what)

        def ended(it: asyncio.Task[None]) -> None:
            if self._tasks.get(calling.number) is it:
                del self._tasks[calling.number]

        task.add_done_callback(ended)

    async def _work_in_loop(self, calling: Calling, hear: Hear) -> None:
        _current.set(calling)
        function = self.functions[calling.function]
        try:
            value = await _in_loop(function.run, **function.arguments(calling.arguments))
            answer = m.Return(id=0, exec=0, number=calling.number, value=sendable(value))
        except BaseException as error:
            answer = _failed(calling.number, error)
        self._end(calling.number, answer, hear)

    async def _ask_in_loop(self, calling: Calling, hear: Hear) -> None:
        import asyncio

        self._turn = self._turn or asyncio.Lock()
        try:
            async with self._turn:
                self._decide(calling, await _in_loop(self._approve, calling), hear)
        except asyncio.CancelledError:
            pass
        except BaseException as error:
            hear.fail(error)

    def cancel(self, number: int) -> None:
        """The cell waits for it no longer."""
        with self._lock:
            known = [them[number] for them in (self._calling, self._asked) if number in them]
            self._wait_no_more(number)
        for calling in known:
            calling.cancelled.set()
        if number in self._tasks:
            self._tasks[number].cancel()

    def close(self) -> None:
        """The cell has ended."""
        for number in {*self._calling, *self._asked}:
            self.cancel(number)
        for threads in (self._threads, self._asker):
            if threads is not None:
                threads.shutdown(wait=False, cancel_futures=True)


async def _in_loop(function: Any, /, *positional: Any, **named: Any) -> Any:
    if inspect.iscoroutinefunction(function):
        return await function(*positional, **named)
    import asyncio

    value = await asyncio.to_thread(function, *positional, **named)
    return await value if inspect.isawaitable(value) else value


def _threads(most: int, name: str) -> ThreadPoolExecutor:
    from concurrent.futures import ThreadPoolExecutor

    return ThreadPoolExecutor(most, name)


def _waited_for(value: Any) -> Any:
    """What an awaitable of this thread's comes to."""
    import asyncio

    async def awaited() -> Any:
        return await value

    return asyncio.run(awaited())


__all__ = ["Approve", "Calling", "Hear", "Hold", "Offer", "current", "refused", "sendable", "unsendable"]

"""Sessions for asyncio: the names of lair.session, to be awaited.

A cancelled call drops its answer; a cancelled `run` or `stream` interrupts its cell. Several event loops, and threads
that block, can share a connection.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from contextlib import aclosing
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, TypeVar

from . import messages as m
from . import steps
from .calling import Approve, Offer
from .connection import Call, Connection, shared
from .errors import DeadlineError, LairError
from .functions import Functions
from .result import (
    Alive,
    Collector,
    Diff,
    Display,
    Effects,
    Event,
    Handlers,
    PackageSet,
    Result,
    Saved,
    SavedState,
    State,
    Stray,
    Waiting,
    effects,
    handlers,
)
from .steps import Completion, File, Path

if TYPE_CHECKING:
    from typing import Unpack

T = TypeVar("T")
Events = AsyncGenerator["Event | Result", None]
# These may be coroutine functions or ordinary ones.
Input = Callable[[str, bool], "Awaitable[str | None] | str | None"]
OnOutput = Callable[[str, str], object]


class _Inbox:
    """A sink that wakes the event loop in which it was made."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._items: asyncio.Queue[Any] = asyncio.Queue()

    def put(self, item: Any, /) -> None:
        try:
            self._loop.call_soon_threadsafe(self._items.put_nowait, item)
        except RuntimeError:  # the loop was closed, so nobody waits
            pass

    async def next(self, call: Call[Any], until: float, offer: Offer | None = None) -> Any:
        """The time that calls of functions take does not count."""
        while True:
            spent = 0.0 if offer is None else offer.spent()
            patience = call.patience(until + spent)
            try:
                item = await asyncio.wait_for(self._items.get(), patience)
                break
            except asyncio.TimeoutError:
                if offer is None or offer.spent() == spent:
                    raise DeadlineError("no answer came in time") from None
        if isinstance(item, BaseException):
            raise item
        return item


async def perform(connection: Connection, what: steps.Steps[T]) -> T:
    """Does what the steps say, and awaits each answer."""
    outcome: Any = None
    while True:
        try:
            step = what.throw(outcome) if isinstance(outcome, LairError) else what.send(outcome)
        except StopIteration as end:
            result: T = end.value
            return result
        outcome = await _ask(connection, *step)


async def _ask(connection: Connection, request: m.Request, reply: type[Any]) -> Any:
    inbox = _Inbox()
    call: Call[Any] = connection.submit(request, reply, inbox)
    try:
        return await inbox.next(call, time.monotonic() + steps.patience(request))
    except BaseException as error:
        connection.forget(call)
        if isinstance(error, LairError):
            return error
        raise


async def _settled(value: Awaitable[T] | T) -> T:
    return await value if isawaitable(value) else value


async def follow(
    connection: Connection,
    request: m.Exec | m.Attach,
    patience: float,
    input: Input | None,
    owner: steps.Handle | None = None,
    *,
    collector: Collector | None = None,
    spared: steps.Spared = (),
    offer: Offer | None = None,
) -> Events:
    """As lair.session.follow."""
    inbox = _Inbox()
    collector = collector or Collector()
    offer = offer or Offer(None)
    until = time.monotonic() + patience
    call = connection.submit(request, m.ExecReply, inbox)
    hear = connection.hear(call)
    try:
        while not isinstance(item := await inbox.next(call, until, offer), m.ExecReply):
            if isinstance(item, m.AskEvent):
                line = await _settled(input(item.prompt, item.password)) if input else None
                connection.answer(call, line, item.number)
            elif isinstance(item, m.CallEvent | m.HeldEvent | m.CancelEvent):
                offer.take_in_loop(item, hear)
            else:
                yield collector.event(item)
                connection.taken(call, item)
    except spared:
        connection.forget(call)
        raise
    except BaseException:
        connection.cancel(call)
        raise
    finally:
        offer.close()
    for output in collector.rest():
        yield output
    result = collector.result(item)
    yield result if owner is None else owner.told(request, result)


async def finish(events: Events, watch: Handlers) -> Result:
    async with aclosing(events):
        async for event in events:
            if isinstance(event, Result):
                return event
            if type(event) in watch:
                await _settled(watch[type(event)](event))
    raise AssertionError("a cell without a result")


async def run(
    code: str,
    *,
    profile: str | None = None,
    on_output: OnOutput | None = None,
    on_display: Callable[[Display], object] | None = None,
    on_alive: Callable[[Alive], object] | None = None,
    input: Input | None = None,
    connection: Connection | None = None,
    **options: Unpack[steps.CellOptions],
) -> Result:
    """Run one cell in a session of its own, which ends with the cell. See Session.run."""
    watch = handlers(on_output, on_display, on_alive)
    offer = steps.offer(options)
    request = steps.cell(code, None, profile, options, stream=bool(watch), input=input is not None, offer=offer)
    events = follow(connection or shared(), request, steps.deadline(options), input, offer=offer)
    return await finish(events, watch)


async def sessions(connection: Connection | None = None) -> list[m.SessionInfo]:
    """Your own sessions, oldest first; root gets those of all users."""
    return await perform(connection or shared(), steps.sessions())


async def saves(connection: Connection | None = None) -> list[SavedState]:
    return await perform(connection or shared(), steps.saves(None))


async def packages(*, prune: bool = False, connection: Connection | None = None) -> list[PackageSet]:
    return await perform(connection or shared(), steps.packages(prune))


async def calls(session: str | None = None, *, connection: Connection | None = None) -> Waiting:
    return await perform(connection or shared(), steps.calls(session))


async def answer_call(
    call: m.CallRecord,
    value: Any = None,
    *,
    error: str | None = None,
    text: str | None = None,
    connection: Connection | None = None,
) -> None:
    await perform(connection or shared(), steps.answer_call(call, value, error, text))


async def approve_call(call: m.CallRecord, *, connection: Connection | None = None) -> None:
    await perform(connection or shared(), steps.approve_call(call))


async def refuse_call(call: m.CallRecord, why: str = "", *, connection: Connection | None = None) -> None:
    await perform(connection or shared(), steps.refuse_call(call, why))


async def check(code: str, *, profile: str | None = None, connection: Connection | None = None) -> m.CheckReply:
    """Whether code compiles, and keeps the rules of the profile. The code is not run."""
    return await perform(connection or shared(), steps.check(None, profile, code))


class Session(steps.Handle):
    """As lair.Session, with methods that are awaited. Their documentation is there."""

    async def __aenter__(self) -> Session:
        await self.open()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    async def _do(self, what: steps.Steps[T]) -> T:
        return await perform(self.connection, self.guarded(what))

    # ---- life ----

    async def open(self) -> m.SessionInfo:
        return await self._do(steps.open(self.id, self.profile))

    async def info(self) -> m.SessionInfo:
        return await self._do(steps.info(self.id))

    async def close(self) -> None:
        if self.connection.disown(self.id):
            await self._do(steps.shutdown(self.id, missing_ok=True))

    async def shutdown(self) -> None:
        await self._do(steps.shutdown(self.id))

    # ---- cells ----

    async def run(
        self,
        code: str,
        *,
        on_output: OnOutput | None = None,
        on_display: Callable[[Display], object] | None = None,
        on_alive: Callable[[Alive], object] | None = None,
        input: Input | None = None,
        **options: Unpack[steps.CellOptions],
    ) -> Result:
        """As lair.Session.run; `on_output` and `input` may be coroutine functions. If it is cancelled, it
        interrupts the cell."""
        watch = handlers(on_output, on_display, on_alive)
        return await finish(self._follow(code, bool(watch), input, options), watch)

    async def install(
        self,
        packages: Iterable[str],
        *,
        progress: Callable[[str], object] | None = None,
        deadline: float | None = None,
    ) -> Result:
        """See Session.install."""
        on_alive = steps.progress(progress)
        return (await self.run("", packages=packages, on_alive=on_alive, deadline=deadline)).raise_for_error()

    def stream(self, code: str, *, input: Input | None = None, **options: Unpack[steps.CellOptions]) -> Events:
        """As lair.Session.stream. To leave the loop early, close the iterator: contextlib.aclosing."""
        return self._follow(code, True, input, options)

    def _follow(self, code: str, stream: bool, input: Input | None, options: steps.CellOptions) -> Events:
        offer = self.offer(options)
        request = steps.cell(
            code, self.id, self.profile, options, stream=stream, input=input is not None, offer=offer
        )
        self.mark(request)
        return follow(self.connection, request, steps.deadline(options), input, self, offer=offer)

    async def detach(self, code: str, **options: Unpack[steps.CellOptions]) -> str:
        offer = self.offer(options)
        request = steps.cell(code, self.id, self.profile, options, stream=False, input=False, offer=offer)
        return await self._do(steps.detached(request))

    async def attach(
        self,
        key: str | None = None,
        *,
        cell: int | None = None,
        deadline: float | None = None,
        on_output: OnOutput | None = None,
        on_display: Callable[[Display], object] | None = None,
        on_alive: Callable[[Alive], object] | None = None,
        input: Input | None = None,
        functions: Functions | None = None,
        approve: Approve | None = None,
    ) -> Result:
        watch = handlers(on_output, on_display, on_alive)
        offer = self.offer({"functions": functions, "approve": approve})
        request = steps.attachment(
            self.id, key, cell, stream=bool(watch), input=input is not None, calls=offer.answers
        )
        patience = steps.deadline({"deadline": deadline})
        return await finish(follow(self.connection, request, patience, input, offer=offer), watch)

    async def results(self) -> list[m.ResultRecord]:
        return await self._do(steps.results(self.id))

    async def calls(self) -> Waiting:
        return await self._do(steps.calls(self.id))

    async def answer_call(
        self, number: int, value: Any = None, *, error: str | None = None, text: str | None = None
    ) -> None:
        await self._do(steps.answer_call(steps.of(self.id, number), value, error, text))

    async def approve_call(self, number: int) -> None:
        await self._do(steps.approve_call(steps.of(self.id, number)))

    async def refuse_call(self, number: int, why: str = "") -> None:
        await self._do(steps.refuse_call(steps.of(self.id, number), why))

    async def interrupt(self, *, kill: bool = False) -> bool:
        return await self._do(steps.interrupt(self.id, kill))

    async def reset(self, keep: Sequence[str] = ()) -> Effects:
        return await self._do(steps.reset(self.id, keep))

    # ---- questions, between two cells ----

    async def vars(self, forget: Sequence[str] = ()) -> list[m.Variable]:
        return await self._do(steps.variables(self.id, forget))

    async def complete(self, code: str, cursor: int | None = None) -> Completion:
        return await self._do(steps.complete(self.id, code, cursor))

    async def inspect(self, code: str, cursor: int | None = None, *, source: bool = False) -> m.InspectReply:
        return await self._do(steps.inspect(self.id, code, cursor, source))

    async def check(self, code: str) -> m.CheckReply:
        return await self._do(steps.check(self.id, None, code))

    async def is_complete(self, code: str) -> m.IsCompleteReply:
        return await self._do(steps.is_complete(self.id, code))

    async def history(self, n: int | None = None) -> list[m.HistoryRecord]:
        return await self._do(steps.history(self.id, n))

    async def stray(self) -> Stray:
        return await self._do(steps.stray(self))

    # ---- going back ----

    async def checkpoint(self, name: str | None = None) -> State:
        return await self._do(steps.checkpoint(self.id, name))

    async def checkpoints(self) -> list[m.CheckpointRecord]:
        return await self._do(steps.checkpoints(self.id))

    async def diff(self, since: str | int | None = None, until: str | int | None = None) -> Diff:
        return await self._do(steps.diff(self.id, since, until))

    async def restore(self, name: str | int, *, keep_files: bool = False) -> State:
        return await self._do(steps.restore(self.id, name, keep_files))

    async def drop(self, name: str | int) -> None:
        await self._do(steps.drop(self.id, name))

    async def undo(self, n: int = 1, *, keep_files: bool = False) -> State:
        return await self._do(steps.undo(self.id, n, keep_files))

    async def branch(
        self,
        id: str | None = None,
        *,
        checkpoint: str | int | None = None,
        files: bool | None = None,
        at_call: bool = False,
    ) -> Session:
        new = Session(
            steps.new_id(self.id) if id is None else id,
            profile=self.profile,
            keep=id is not None,
            connection=self.connection,
        )
        new.settings = self.settings
        info = await self._do(steps.branch(self.id, new.id, checkpoint, files, at_call))
        new.effects, new.key = effects(info), info.key or ""
        return new

    async def save(self) -> Saved:
        return await self._do(steps.save(self.id))

    async def load(self) -> Saved:
        return await self._do(steps.load(self.id))

    async def saved(self) -> SavedState:
        return await self._do(steps.saved(self.id))

    async def unsave(self) -> None:
        await self._do(steps.unsave(self.id))

    # ---- files, by their path in the workspace ----

    async def put(self, path: Path, data: bytes | str, *, mode: int = 0o644) -> None:
        await self._do(steps.opening(self.id, self.profile, lambda: steps.put(self.id, path, data, mode)))

    async def get(self, path: Path) -> bytes:
        return await self._do(steps.get(self.id, path))

    async def files(self, path: Path = "") -> list[File]:
        return await self._do(steps.files(self.id, path))

    async def make_directory(self, path: Path) -> None:
        await self._do(steps.opening(self.id, self.profile, lambda: steps.make_directory(self.id, path)))

    async def copy_in(self, source: Path, path: Path | None = None) -> int:
        return await self._do(steps.opening(self.id, self.profile, lambda: steps.copy_in(self.id, source, path)))

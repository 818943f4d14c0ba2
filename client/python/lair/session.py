"""Sessions for programs that wait: every call blocks its thread until it is answered."""

from __future__ import annotations

import queue
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any, TypeVar

from . import messages as m
from . import steps
from .connection import Call, Connection, shared
from .errors import DeadlineError, LairError
from .result import (
    Alive,
    Collector,
    Display,
    Effects,
    Event,
    Handlers,
    Result,
    Saved,
    SavedState,
    State,
    Stray,
    effects,
    handlers,
)
from .steps import Completion, File, Path

if TYPE_CHECKING:
    from typing import Unpack

T = TypeVar("T")
Events = Generator["Event | Result", None, None]
Input = Callable[[str, bool], "str | None"]


def _next(call: Call[Any], sink: queue.SimpleQueue[Any], until: float) -> Any:
    try:
        item = sink.get(timeout=call.patience(until))
    except queue.Empty:
        raise DeadlineError("no answer came in time") from None
    if isinstance(item, BaseException):
        raise item
    return item


def perform(connection: Connection, what: steps.Steps[T]) -> T:
    """Do what the steps say, waiting for each answer."""
    outcome: Any = None
    while True:
        try:
            step = what.throw(outcome) if isinstance(outcome, LairError) else what.send(outcome)
        except StopIteration as end:
            result: T = end.value
            return result
        outcome = _ask(connection, *step)


def _ask(connection: Connection, request: m.Request, reply: type[Any]) -> Any:
    sink: queue.SimpleQueue[Any] = queue.SimpleQueue()
    call: Call[Any] = connection.submit(request, reply, sink)
    try:
        return _next(call, sink, time.monotonic() + steps.patience(request))
    except BaseException as error:
        connection.forget(call)
        if isinstance(error, LairError):
            return error
        raise


def follow(
    connection: Connection,
    request: m.Exec | m.Attach,
    patience: float,
    input: Input | None,
    owner: steps.Handle | None = None,
    *,
    collector: Collector | None = None,
    spared: steps.Spared = (),
) -> Events:
    """Run a cell, and yield what comes of it. Whoever does not wait for its end interrupts it, unless the exception that
    ends the wait is `spared`. The session ends with its `owner`, which is held here until the cell has ended."""
    sink: queue.SimpleQueue[Any] = queue.SimpleQueue()
    collector = collector or Collector()
    until = time.monotonic() + patience
    call = connection.submit(request, m.ExecReply, sink)
    try:
        while not isinstance(item := _next(call, sink, until), m.ExecReply):
            if isinstance(item, m.AskEvent):
                connection.answer(call, input(item.prompt, item.password) if input else None, item.number)
            else:
                yield collector.event(item)
                connection.taken(call, item)
    except spared:
        connection.forget(call)
        raise
    except BaseException:
        connection.cancel(call)
        raise
    yield from collector.rest()
    result = collector.result(item)
    yield result if owner is None else owner.told(request, result)


def finish(events: Events, watch: Handlers) -> Result:
    with closing(events):
        for event in events:
            if isinstance(event, Result):
                return event
            if type(event) in watch:
                watch[type(event)](event)
    raise AssertionError("a cell without a result")


def run(
    code: str,
    *,
    profile: str | None = None,
    on_output: Callable[[str, str], object] | None = None,
    on_display: Callable[[Display], object] | None = None,
    on_alive: Callable[[Alive], object] | None = None,
    input: Input | None = None,
    connection: Connection | None = None,
    **options: Unpack[steps.CellOptions],
) -> Result:
    """Run one cell in a session of its own, which ends with it. See Session.run."""
    watch = handlers(on_output, on_display, on_alive)
    request = steps.cell(code, None, profile, options, stream=bool(watch), input=input is not None)
    return finish(follow(connection or shared(), request, steps.deadline(options), input), watch)


def sessions(connection: Connection | None = None) -> list[m.SessionInfo]:
    """One's own sessions, oldest first; for root, everybody's."""
    return perform(connection or shared(), steps.sessions())


def saves(connection: Connection | None = None) -> list[SavedState]:
    """What is saved of one's own sessions; for root, of everybody's."""
    return perform(connection or shared(), steps.saves(None))


def check(code: str, *, profile: str | None = None, connection: Connection | None = None) -> m.CheckReply:
    """Whether code compiles, and keeps the rules of the profile. Nothing is run."""
    return perform(connection or shared(), steps.check(None, profile, code))


class Session(steps.Handle):
    """A session, by its id; it is opened when it is first used. Any thread may use it at any time.

    One that was given no id ends with its block, with this object or with the program. One that has been named stays,
    for whoever names it next, until it expires or is shut down; `keep` says otherwise.
    """

    def __enter__(self) -> Session:
        self.open()
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _do(self, what: steps.Steps[T]) -> T:
        return perform(self.connection, self.guarded(what))

    # ---- life ----

    def open(self) -> m.SessionInfo:
        """Make the session if it does not exist; the first cell does so, too."""
        return self._do(steps.open(self.id, self.profile))

    def info(self) -> m.SessionInfo:
        return self._do(steps.info(self.id))

    def close(self) -> None:
        """Be done with it: end it, unless it is to stay."""
        if self.connection.disown(self.id):
            self._do(steps.shutdown(self.id, missing_ok=True))

    def shutdown(self) -> None:
        """End it, and with it the running cell."""
        self._do(steps.shutdown(self.id))

    # ---- cells ----

    def run(
        self,
        code: str,
        *,
        on_output: Callable[[str, str], object] | None = None,
        on_display: Callable[[Display], object] | None = None,
        on_alive: Callable[[Alive], object] | None = None,
        input: Input | None = None,
        **options: Unpack[steps.CellOptions],
    ) -> Result:
        """Run a cell. That it raised an exception or was stopped is in the result, see Result.raise_for_error.

        `on_output(text, stream)` is called, in this thread, with what the cell writes as it writes it, `on_display` with
        what it shows, and `on_alive` about every second, if it runs so long. `input(prompt,
        password)` answers when the cell reads from stdin, with a line or, for the end of the input, None; without it,
        reading is an EOFError. A line that cannot be sent is a `bad_request`. That, whatever these raise, and Ctrl-C
        interrupt the cell. See CellOptions for the rest.
        """
        watch = handlers(on_output, on_display, on_alive)
        return finish(self._follow(code, bool(watch), input, options), watch)

    def stream(
        self, code: str, *, input: Input | None = None, **options: Unpack[steps.CellOptions]
    ) -> Iterator[Event | Result]:
        """Run a cell and yield what it writes as it writes it; the Result comes last. Who leaves the loop before it has
        come interrupts the cell."""
        return self._follow(code, True, input, options)

    def _follow(self, code: str, stream: bool, input: Input | None, options: steps.CellOptions) -> Events:
        request = steps.cell(code, self.id, self.profile, options, stream=stream, input=input is not None)
        self.mark(request)
        return follow(self.connection, request, steps.deadline(options), input, self)

    def detach(self, code: str, **options: Unpack[steps.CellOptions]) -> str:
        """Have a cell run without waiting for it, even if this program ends. Returns its key, for attach."""
        request = steps.cell(code, self.id, self.profile, options, stream=False, input=False)
        return self._do(steps.detached(request))

    def attach(
        self,
        key: str | None = None,
        *,
        cell: int | None = None,
        deadline: float | None = None,
        on_output: Callable[[str, str], object] | None = None,
        on_display: Callable[[Display], object] | None = None,
        on_alive: Callable[[Alive], object] | None = None,
        input: Input | None = None,
    ) -> Result:
        """The result of a cell that was detached, or whose answer was lost: by its key or its number. Waits for it if
        it runs; whoever stops waiting interrupts it. Raises LairError `gone` if it is not kept any more."""
        watch = handlers(on_output, on_display, on_alive)
        request = steps.attachment(self.id, key, cell, stream=bool(watch), input=input is not None)
        patience = steps.deadline({"deadline": deadline})
        return finish(follow(self.connection, request, patience, input), watch)

    def results(self) -> list[m.ResultRecord]:
        """Which results are kept, and which are awaited."""
        return self._do(steps.results(self.id))

    def interrupt(self, *, kill: bool = False) -> bool:
        """Send the running cell a KeyboardInterrupt. False: none was running. `kill`: it is killed, which also ends code in
        C that does not react, and the session goes back to the state before it."""
        return self._do(steps.interrupt(self.id, kill))

    def reset(self, keep: Sequence[str] = ()) -> Effects:
        """Begin anew with a fresh interpreter; the files stay, and so does what is returned. `keep`: in the same one,
        without all variables but these."""
        return self._do(steps.reset(self.id, keep))

    # ---- questions, between two cells ----

    def vars(self, forget: Sequence[str] = ()) -> list[m.Variable]:
        """Its variables, the first thousand by name; those to forget are deleted first."""
        return self._do(steps.variables(self.id, forget))

    def complete(self, code: str, cursor: int | None = None) -> Completion:
        """Completions of the name that ends at the cursor, or at the end."""
        return self._do(steps.complete(self.id, code, cursor))

    def inspect(self, code: str, cursor: int | None = None, *, source: bool = False) -> m.InspectReply:
        """What the name at the cursor is: its type, signature and documentation."""
        return self._do(steps.inspect(self.id, code, cursor, source))

    def check(self, code: str) -> m.CheckReply:
        """Whether code compiles, and keeps the rules of the profile. Nothing is run."""
        return self._do(steps.check(self.id, None, code))

    def is_complete(self, code: str) -> m.IsCompleteReply:
        """Whether a prompt should run this or ask for another line."""
        return self._do(steps.is_complete(self.id, code))

    def history(self, n: int | None = None) -> list[m.HistoryRecord]:
        """The cells that have ended, or the last n, oldest first."""
        return self._do(steps.history(self.id, n))

    def stray(self) -> Stray:
        """What threads and tasks have written since the last cell, now; else the next Result has it."""
        return self._do(steps.stray(self))

    # ---- going back ----

    def checkpoint(self, name: str | None = None) -> State:
        """Keep the state of now, under a name if there is one."""
        return self._do(steps.checkpoint(self.id, name))

    def checkpoints(self) -> list[m.CheckpointRecord]:
        return self._do(steps.checkpoints(self.id))

    def restore(self, name: str | int) -> State:
        """Go back to a checkpoint: its name, or the number of a cell for the state after it."""
        return self._do(steps.restore(self.id, name))

    def drop(self, name: str | int) -> None:
        """Forget a checkpoint."""
        self._do(steps.drop(self.id, name))

    def undo(self, n: int = 1) -> State:
        """Go n states back. Files stay as they are, and what was done outside is in `effects` of what is returned."""
        return self._do(steps.undo(self.id, n))

    def branch(self, id: str | None = None, *, checkpoint: str | int | None = None, files: bool = False) -> Session:
        """A second session that begins as this one is now, or was at a checkpoint; with `files`, on copies of the
        files. As with Session, one that is not named ends with its block. Its `effects`: what this one has done since."""
        new = Session(
            steps.new_id(self.id) if id is None else id,
            profile=self.profile,
            keep=id is not None,
            connection=self.connection,
        )
        new.effects = effects(self._do(steps.branch(self.id, new.id, checkpoint, files)))
        return new

    def save(self) -> Saved:
        """Save its variables in a file of the daemon, for the next session of this id."""
        return self._do(steps.save(self.id))

    def load(self) -> Saved:
        """Load the saved variables, over those of the same name. When an id is opened, its saved state is loaded by itself."""
        return self._do(steps.load(self.id))

    def saved(self) -> SavedState:
        """What is saved of it; LairError `gone` if nothing is."""
        return self._do(steps.saved(self.id))

    def unsave(self) -> None:
        """Delete what is saved of it."""
        self._do(steps.unsave(self.id))

    # ---- files, by their path in the workspace ----

    def put(self, path: Path, data: bytes | str, *, mode: int = 0o644) -> None:
        """Make a file, and the directories above it; it appears when it is complete."""
        self._do(steps.put(self.id, path, data, mode))

    def get(self, path: Path) -> bytes:
        return self._do(steps.get(self.id, path))

    def files(self, path: Path = "") -> list[File]:
        """What is in a directory."""
        return self._do(steps.files(self.id, path))

    def make_directory(self, path: Path) -> None:
        self._do(steps.make_directory(self.id, path))

    def copy_in(self, source: Path, path: Path | None = None) -> int:
        """Have the daemon copy a file of the host, from where the profile allows it. Returns its size."""
        return self._do(steps.copy_in(self.id, source, path))

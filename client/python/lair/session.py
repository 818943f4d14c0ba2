"""Sessions for programs that wait: every call blocks its thread until it is answered."""

from __future__ import annotations

import queue
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
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
Events = Generator["Event | Result", None, None]
Input = Callable[[str, bool], "str | None"]


def _next(call: Call[Any], sink: queue.SimpleQueue[Any], until: float, offer: Offer | None = None) -> Any:
    """The time that calls of functions take does not count."""
    while True:
        spent = 0.0 if offer is None else offer.spent()
        try:
            item = sink.get(timeout=call.patience(until + spent))
            break
        except queue.Empty:
            if offer is None or offer.spent() == spent:
                raise DeadlineError("no answer came in time") from None
    if isinstance(item, BaseException):
        raise item
    return item


def perform(connection: Connection, what: steps.Steps[T]) -> T:
    """Does what the steps say, and waits for each answer."""
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
    offer: Offer | None = None,
) -> Events:
    """Runs a cell, and yields its events and then its Result. If the caller does not wait for the end, the cell is
    interrupted, unless the exception that ends the wait is `spared`. The session may end with its `owner`, so that is
    held here until the cell has ended."""
    sink: queue.SimpleQueue[Any] = queue.SimpleQueue()
    collector = collector or Collector()
    offer = offer or Offer(None)
    until = time.monotonic() + patience
    call = connection.submit(request, m.ExecReply, sink)
    hear = connection.hear(call)
    try:
        while not isinstance(item := _next(call, sink, until, offer), m.ExecReply):
            if isinstance(item, m.AskEvent):
                connection.answer(call, input(item.prompt, item.password) if input else None, item.number)
            elif isinstance(item, m.CallEvent | m.HeldEvent | m.CancelEvent):
                offer.take(item, hear)
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
    """Run one cell in a session of its own, which ends with the cell. See Session.run."""
    watch = handlers(on_output, on_display, on_alive)
    offer = steps.offer(options)
    request = steps.cell(code, None, profile, options, stream=bool(watch), input=input is not None, offer=offer)
    events = follow(connection or shared(), request, steps.deadline(options), input, offer=offer)
    return finish(events, watch)


def sessions(connection: Connection | None = None) -> list[m.SessionInfo]:
    """Your own sessions, oldest first; root gets those of all users."""
    return perform(connection or shared(), steps.sessions())


def saves(connection: Connection | None = None) -> list[SavedState]:
    """The saved states of your own sessions; root gets those of all users."""
    return perform(connection or shared(), steps.saves(None))


def packages(*, prune: bool = False, connection: Connection | None = None) -> list[PackageSet]:
    """The sets of packages that the daemon has; from another user's daemon, those that your own sessions have. With `prune`,
    which is for the daemon's user and root, those that nobody has are removed, and returned."""
    return perform(connection or shared(), steps.packages(prune))


def calls(session: str | None = None, *, connection: Connection | None = None) -> Waiting:
    """The calls of functions that wait for an answer, in that session or in all of your own; root gets those of all
    users."""
    return perform(connection or shared(), steps.calls(session))


def answer_call(
    call: m.CallRecord,
    value: Any = None,
    *,
    error: str | None = None,
    text: str | None = None,
    connection: Connection | None = None,
) -> None:
    """Answer a call that waits, with a value, or with the name of an error and its text. Raises LairError `gone` if it does
    not wait any more."""
    perform(connection or shared(), steps.answer_call(call, value, error, text))


def approve_call(call: m.CallRecord, *, connection: Connection | None = None) -> None:
    """A call that asks may be done."""
    perform(connection or shared(), steps.approve_call(call))


def refuse_call(call: m.CallRecord, why: str = "", *, connection: Connection | None = None) -> None:
    """A call that waits is a PermissionError in its cell."""
    perform(connection or shared(), steps.refuse_call(call, why))


def check(code: str, *, profile: str | None = None, connection: Connection | None = None) -> m.CheckReply:
    """Whether code compiles, and keeps the rules of the profile. The code is not run."""
    return perform(connection or shared(), steps.check(None, profile, code))


class Session(steps.Handle):
    """A session, by its id; it is opened when it is first used. Any thread may use it at any time.

    Without an id, the session ends with its block, with this object or with the program. With an id it stays, for
    whoever names it next, until it expires or is shut down. `keep` changes that.
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
        """Make the session if it does not exist. The first cell does that, too."""
        return self._do(steps.open(self.id, self.profile))

    def info(self) -> m.SessionInfo:
        return self._do(steps.info(self.id))

    def close(self) -> None:
        """Be done with the session: end it, unless it is to stay."""
        if self.connection.disown(self.id):
            self._do(steps.shutdown(self.id, missing_ok=True))

    def shutdown(self) -> None:
        """End the session, and with it the running cell."""
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
        """Run a cell. If it raised an exception or was stopped, the result says so; see Result.raise_for_error.

        `on_output(text, stream)` is called, in this thread, with output as the cell writes it, `on_display` with
        everything that the cell shows, and `on_alive` about every second of a long cell. `input(prompt, password)`
        answers when the cell reads from stdin, with a line, or with None for the end of the input. Without `input`,
        reading raises EOFError in the cell. A line that cannot be sent is a `bad_request`. That error, an exception
        of these functions, and Ctrl-C interrupt the cell. See CellOptions for the rest.
        """
        watch = handlers(on_output, on_display, on_alive)
        return finish(self._follow(code, bool(watch), input, options), watch)

    def install(
        self,
        packages: Iterable[str],
        *,
        progress: Callable[[str], object] | None = None,
        deadline: float | None = None,
    ) -> Result:
        """Install projects, as "polars" or "duckdb==1.*", in the session as it is: its variables stay, and undo takes them
        back. What is there already is not installed again. If that fails, this raises the cell's error. `progress(text)` is
        called, in this thread, with what is being done. If the caller stops waiting, what is being installed goes on, and
        is there sooner for whoever asks for it next."""
        on_alive = steps.progress(progress)
        return self.run("", packages=packages, on_alive=on_alive, deadline=deadline).raise_for_error()

    def stream(
        self, code: str, *, input: Input | None = None, **options: Unpack[steps.CellOptions]
    ) -> Iterator[Event | Result]:
        """Run a cell and yield its output as the cell writes it; the Result comes last. If the caller leaves the
        loop before that, the cell is interrupted."""
        return self._follow(code, True, input, options)

    def _follow(self, code: str, stream: bool, input: Input | None, options: steps.CellOptions) -> Events:
        offer = self.offer(options)
        request = steps.cell(
            code, self.id, self.profile, options, stream=stream, input=input is not None, offer=offer
        )
        self.mark(request)
        return follow(self.connection, request, steps.deadline(options), input, self, offer=offer)

    def detach(self, code: str, **options: Unpack[steps.CellOptions]) -> str:
        """Start a cell without waiting for it. It runs even if this program ends. Returns its key, for attach."""
        offer = self.offer(options)
        request = steps.cell(code, self.id, self.profile, options, stream=False, input=False, offer=offer)
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
        functions: Functions | None = None,
        approve: Approve | None = None,
    ) -> Result:
        """The result of a cell that was detached, or whose answer was lost: by its key or its number. If the cell
        still runs, this waits for it; if the caller stops waiting, the cell is interrupted. Raises LairError `gone`
        if the result is not kept any more."""
        watch = handlers(on_output, on_display, on_alive)
        offer = self.offer({"functions": functions, "approve": approve})
        request = steps.attachment(
            self.id, key, cell, stream=bool(watch), input=input is not None, calls=offer.answers
        )
        patience = steps.deadline({"deadline": deadline})
        return finish(follow(self.connection, request, patience, input, offer=offer), watch)

    def results(self) -> list[m.ResultRecord]:
        """The results that are kept, and the cells that will have one."""
        return self._do(steps.results(self.id))

    def calls(self) -> Waiting:
        """The calls of functions that wait for an answer: `state` is out, asks (for approval) or held."""
        return self._do(steps.calls(self.id))

    def answer_call(
        self, number: int, value: Any = None, *, error: str | None = None, text: str | None = None
    ) -> None:
        """Answer a call of the running cell, with a value, or with the name of an error and its text. Raises LairError
        `gone` if it does not wait."""
        self._do(steps.answer_call(steps.of(self.id, number), value, error, text))

    def approve_call(self, number: int) -> None:
        """A call of the running cell that asks may be done."""
        self._do(steps.approve_call(steps.of(self.id, number)))

    def refuse_call(self, number: int, why: str = "") -> None:
        """A call of the running cell is a PermissionError."""
        self._do(steps.refuse_call(steps.of(self.id, number), why))

    def interrupt(self, *, kill: bool = False) -> bool:
        """Send the running cell a KeyboardInterrupt. False: no cell was running. With `kill` the cell is killed,
        even if it is C code that does not react, and the session goes back to the state before it."""
        return self._do(steps.interrupt(self.id, kill))

    def reset(self, keep: Sequence[str] = ()) -> Effects:
        """Begin anew with a fresh interpreter. Files stay, and so do the effects that are returned. With `keep` the
        interpreter stays, too, and all variables but these are deleted."""
        return self._do(steps.reset(self.id, keep))

    # ---- questions, between two cells ----

    def vars(self, forget: Sequence[str] = ()) -> list[m.Variable]:
        """The variables, the first thousand by name. Those in `forget` are deleted first."""
        return self._do(steps.variables(self.id, forget))

    def complete(self, code: str, cursor: int | None = None) -> Completion:
        """Completions of the name that ends at the cursor; without a cursor, at the end of the code."""
        return self._do(steps.complete(self.id, code, cursor))

    def inspect(self, code: str, cursor: int | None = None, *, source: bool = False) -> m.InspectReply:
        """The meaning of the name at the cursor: its type, signature and documentation."""
        return self._do(steps.inspect(self.id, code, cursor, source))

    def check(self, code: str) -> m.CheckReply:
        """Whether code compiles, and keeps the rules of the profile. The code is not run."""
        return self._do(steps.check(self.id, None, code))

    def is_complete(self, code: str) -> m.IsCompleteReply:
        """Whether a prompt should run this code, or ask for another line."""
        return self._do(steps.is_complete(self.id, code))

    def history(self, n: int | None = None) -> list[m.HistoryRecord]:
        """The cells that have ended, or the last n, oldest first."""
        return self._do(steps.history(self.id, n))

    def stray(self) -> Stray:
        """What threads and tasks have written since the last cell, now; else the next Result has it."""
        return self._do(steps.stray(self))

    # ---- going back ----

    def checkpoint(self, name: str | None = None) -> State:
        """Keep the present state, under a name if there is one."""
        return self._do(steps.checkpoint(self.id, name))

    def checkpoints(self) -> list[m.CheckpointRecord]:
        return self._do(steps.checkpoints(self.id))

    def diff(self, since: str | int | None = None, until: str | int | None = None) -> Diff:
        """What changed between two states, in files and in variables. A state is named as for `restore`. `since`: the
        state before the last cell, if it is not given; `until`: the present one."""
        return self._do(steps.diff(self.id, since, until))

    def restore(self, name: str | int, *, keep_files: bool = False) -> State:
        """Go back to a checkpoint: its name, or the number of a cell for the state after it. `back` of the returned
        State has the files that came back; with `keep_files` they stay as they are."""
        return self._do(steps.restore(self.id, name, keep_files))

    def drop(self, name: str | int) -> None:
        """Forget a checkpoint."""
        self._do(steps.drop(self.id, name))

    def undo(self, n: int = 1, *, keep_files: bool = False) -> State:
        """Go n states back. `back` of the returned State has the files that came back, `effects` what was done
        outside. With `keep_files` the files stay as they are."""
        return self._do(steps.undo(self.id, n, keep_files))

    def branch(
        self,
        id: str | None = None,
        *,
        checkpoint: str | int | None = None,
        files: bool | None = None,
        at_call: bool = False,
    ) -> Session:
        """A second session that begins as this one is now, or as it was at a checkpoint. Its files are
        those of its state, and its own, where the profile has `files = restore` or with `files=True`; with
        `files=False` both work on the same. As with Session, it ends with its block if it has no id. Its `effects`: what this
        session has done since that state. With `at_call` it begins in the middle of the cell that runs and waits
        for calls: both go on with it, and `attach(branch.key)` of the branch has the result of its own."""
        new = Session(
            steps.new_id(self.id) if id is None else id,
            profile=self.profile,
            keep=id is not None,
            connection=self.connection,
        )
        new.settings = self.settings
        info = self._do(steps.branch(self.id, new.id, checkpoint, files, at_call))
        new.effects, new.key = effects(info), info.key or ""
        return new

    def save(self) -> Saved:
        """Save the variables in a file of the daemon, for the next session of this id."""
        return self._do(steps.save(self.id))

    def load(self) -> Saved:
        """Load the saved variables, over those of the same name. When a session is opened, this is done without
        being asked for."""
        return self._do(steps.load(self.id))

    def saved(self) -> SavedState:
        """The saved state of this id. Raises LairError `gone` if there is none."""
        return self._do(steps.saved(self.id))

    def unsave(self) -> None:
        """Delete the saved state of this id."""
        self._do(steps.unsave(self.id))

    # ---- files, by their path in the workspace ----

    def put(self, path: Path, data: bytes | str, *, mode: int = 0o644) -> None:
        """Make a file, and the directories above it. The file appears when it is complete."""
        self._do(steps.opening(self.id, self.profile, lambda: steps.put(self.id, path, data, mode)))

    def get(self, path: Path) -> bytes:
        return self._do(steps.get(self.id, path))

    def files(self, path: Path = "") -> list[File]:
        """The entries of a directory."""
        return self._do(steps.files(self.id, path))

    def make_directory(self, path: Path) -> None:
        self._do(steps.opening(self.id, self.profile, lambda: steps.make_directory(self.id, path)))

    def copy_in(self, source: Path, path: Path | None = None) -> int:
        """Have the daemon copy a file of the host, if the profile allows it. Returns its size."""
        return self._do(steps.opening(self.id, self.profile, lambda: steps.copy_in(self.id, source, path)))

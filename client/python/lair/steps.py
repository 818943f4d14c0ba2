"""The requests of each method of a session, and what it makes of the answers, for blocking and asyncio callers alike; also
those methods of the plain client that need several requests.

A generator yields a request and the type of its reply, is sent the reply, and returns the result. Its caller does the
waiting. The connection chooses the ids of the requests.
"""

from __future__ import annotations

import os
import re
import weakref
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict, TypeVar, cast

from . import codec
from . import messages as m
from .calling import Approve, Offer, sendable
from .connection import Connection, shared
from .errors import BEGIN_AGAIN, LairError, seconds
from .functions import Functions, ready
from .late import frozen
from .outline import stubs
from .result import (
    UNKNOWN,
    Alive,
    Diff,
    Effects,
    Ended,
    PackageSet,
    Result,
    Saved,
    SavedState,
    State,
    Stray,
    Waiting,
    back,
    effects,
    ended,
    refused,
    renewed,
)
from .result import diff as to_diff

T = TypeVar("T")
Steps = Generator[tuple[m.Request, type[Any]], Any, T]
Path = str | bytes | os.PathLike[str]
# The exceptions that end a wait for a cell, and not the cell.
Spared = tuple[type[BaseException], ...]

# The largest piece of a file in one request.
CHUNK = 1 << 20
# How long to wait for the answer to anything but a cell, in seconds: to warm up a template, or to copy the files of a
# branch, the daemon takes up to two minutes.
PATIENCE = 150.0
# How much longer than the cell itself its answer may take.
MARGIN = 60.0
# How many files and directories may wait to be copied.
TREE_MAX = 10_000
# How often the copy of a file is begun.
ATTEMPTS = 10
# How long a cell may take if nobody has said so. If the profile has a limit, that is less.
CELL_TIME = 3600.0
# The longest time that a lock can wait.
FOREVER = 1e8


@frozen
class File:
    """An entry of a directory; `kind` is file, directory, link or other, `modified` in seconds since the epoch."""

    name: str
    kind: str
    size: int
    mode: int
    modified: float


@frozen
class Completion:
    """Each of `matches` may replace the characters from `start` to `end`."""

    matches: list[str]
    start: int
    end: int


class CellOptions(TypedDict, total=False):
    """How to run a cell. `timeout`: how many seconds it may run; without it, the profile decides. `deadline`: how
    many seconds to wait for the answer, including its time in the queue; without it, the timeout and a minute, or
    an hour and a minute. After that the cell is interrupted, or taken from the queue. `key`: a name for the result,
    see Session.attach; a second cell of the same key is not run, but answered as the first. `directory`: where the
    cell works, in the workspace; `env`: is added to its environment. Both are for this cell alone. `figure`: "png"
    or "svg", the format of figures. `values`: an error tells the values of small local variables. `reload`: before
    the cell, modules that were edited in the workspace are imported again. `functions`: what it may call, as
    tools.NAME; see lair.Function. `approve`: is called with each call that asks, a Calling; True approves it, False or a text
    that says why refuses it, None leaves it to somebody else. `globals`: NAME alone means tools.NAME, for names that
    the session has not given to anything else. `again`: calls of functions with an effect may be done once
    more after going back. `packages`: projects to install in the session first, as "polars" or "duckdb==1.*"; see
    Session.install."""

    timeout: float | None
    deadline: float | None
    key: str | None
    directory: str | None
    env: dict[str, str] | None
    figure: str | None
    values: bool
    reload: bool
    functions: Functions | None
    approve: Approve | None
    globals: bool | None
    again: bool
    packages: Iterable[str] | None


# Options that are for the client itself; all others are fields of the request.
HERE = {"deadline", "functions", "approve", "globals"}


def new_id(beside: str = "") -> str:
    """A new id for the user of the session `beside`: root's name for a session of another user begins with that
    user's number."""
    owner = re.match(r"\d+/", beside)
    return f"{owner.group() if owner else ''}py-{os.urandom(8).hex()}"


def deadline(options: CellOptions) -> float:
    given, timeout = options.get("deadline"), seconds("timeout", options.get("timeout"))
    return min(given if given is not None else (timeout or CELL_TIME) + MARGIN, FOREVER)


def patience(request: m.Request) -> float:
    """Saving and loading are cells: they wait in the queue, and the profile says how long they take."""
    return deadline({}) if isinstance(request, m.Save | m.Load) else PATIENCE


def cell(
    code: str,
    session: str | None,
    profile: str | None,
    options: CellOptions,
    *,
    stream: bool,
    input: bool,
    offer: Offer | None = None,
) -> m.Exec:
    if unknown := options.keys() - CellOptions.__annotations__.keys():
        raise TypeError(f"no option of a cell: {', '.join(sorted(unknown))}")
    fields: dict[str, Any] = {
        name: value for name, value in options.items() if name not in HERE and value is not None
    }
    fields |= {
        "timeout": seconds("timeout", options.get("timeout")),
        "env": [f"{name}={value}" for name, value in (options.get("env") or {}).items()] or None,
        "functions": None if offer is None else offer.wire(),
        "packages": list(options.get("packages") or ()) or None,
    }
    return m.Exec(id=0, session=session, profile=profile, code=code, stream=stream, input=input, **fields)


def offer(options: CellOptions) -> Offer:
    return Offer(options.get("functions"), options.get("approve"), bool(options.get("globals")))


def progress(call: Callable[[str], object] | None) -> Callable[[Alive], object] | None:
    """Calls it with what is done for a cell, whenever that changes."""
    last = ""

    def hear(alive: Alive) -> None:
        nonlocal last
        if call is not None and alive.doing and alive.doing != last:
            last = alive.doing
            call(last)

    return None if call is None else hear


def detached(request: m.Exec) -> Steps[str]:
    request.detach = True
    reply: m.DetachedReply = yield request, m.DetachedReply
    return reply.key


def attachment(
    session: str | None, key: str | None, cell: int | None, *, stream: bool, input: bool, calls: bool = False
) -> m.Attach:
    return m.Attach(id=0, session=session, key=key, cell=cell or 0, stream=stream, input=input, calls=calls)


def results(session: str) -> Steps[list[m.ResultRecord]]:
    reply: m.ResultsReply = yield m.Results(id=0, session=session), m.ResultsReply
    return [codec.read(m.ResultRecord, item) for item in reply.results]


def adopt(owner: object, connection: Connection, session: str) -> None:
    """The session ends when its owner is collected as garbage, if it has not ended before."""
    connection.adopt(session)
    weakref.finalize(owner, connection.abandon, session).atexit = False  # closing the connection does it then


# ---- sessions ----


def asked(
    dirs: Iterable[str | os.PathLike[str]],
    memory: str | int | None,
    cpus: str | float | None,
    network: bool | str | None,
) -> list[str]:
    """What a session is to have beside its profile, as settings of the protocol."""
    if isinstance(dirs, str | bytes):
        raise TypeError('dirs: expected a list, ["."]')
    found = []
    for directory in dirs:
        each = os.fspath(directory)
        path, _, access = each.rpartition(":")
        name = {"ro": "read", "rw": "write"}.get(access if path else "", "")
        found.append(f"{name or 'read'}={os.path.realpath(path if name else each)}")
    if isinstance(network, bool):
        network = "host" if network else "off"
    limits = {"memory": memory, "cpu": cpus, "network": "host" if network == "on" else network}
    return found + [f"{name}={value}" for name, value in limits.items() if value is not None]


class Handle:
    """What all callers have of a session, whichever way they wait: an id, and a connection.

    Once it was used, it means that very session, and no other that may have its id by then. If that session has ended,
    requests raise SessionLost, until open() accepts a new one. With `renew` a new one takes its place by itself, and the
    next Result says so by its `state` and `ended`.

    `dirs`: directories of this machine that the session sees, each read-only unless ":rw" follows; it starts in the first.
    `memory` ("4G"), `cpus` (1.5), `network` (True, False, "tcp:443"): other limits than those of the profile. The daemon's
    own user may ask for anything, others for what the profile allows.
    """

    def __init__(
        self,
        id: str | None = None,
        *,
        profile: str | None = None,
        keep: bool | None = None,
        renew: bool = False,
        connection: Connection | None = None,
        functions: Functions | None = None,
        approve: Approve | None = None,
        globals: bool = False,
        dirs: Iterable[str | os.PathLike[str]] = (),
        memory: str | int | None = None,
        cpus: str | float | None = None,
        network: bool | str | None = None,
    ) -> None:
        # What its cells may call, who is asked about calls, and how they are named, if they are not given their own.
        self.functions, self.approve, self.globals = ready(functions), approve, globals
        self.id = new_id() if id is None else id
        self.profile = profile
        self.settings = asked(dirs, memory, cpus, network)
        self.connection = connection or shared()
        self.renew = renew
        self._birth = 0  # of the session that was used; 0: none was
        self._stray = 0  # how many bytes of the output between cells the daemon has given to anybody
        self._lost: Ended | None = None  # how the one before has ended, which the next result tells
        self.effects = Effects()  # of a branch: what its parent has done since the state in which it began
        self.key = ""  # of a branch at a call: of the cell that it began in
        if not (id is not None if keep is None else keep):
            adopt(self, self.connection, self.id)

    def __repr__(self) -> str:
        return f"Session({self.id!r})"

    def offer(self, options: CellOptions) -> Offer:
        own = CellOptions(functions=self.functions, approve=self.approve, globals=self.globals)
        given = {name: it for name, it in options.items() if name in own and it is not None}
        return offer(cast(CellOptions, {**own, **given}))

    def stubs(self, budget: int = 1000) -> str:
        """The session's functions as text for a prompt, in no more than so many tokens; see lair.stubs."""
        return stubs(self.functions, budget, globals=self.globals)

    def mark(self, request: m.Request) -> None:
        """Makes a request for the session that was used, and no other. To open one, or with `renew`, any session
        will do."""
        if self._birth and not self.renew and hasattr(request, "birth") and not isinstance(request, m.Unsave):
            request.birth = self._birth
        if self.settings and isinstance(request, m.Exec | m.Open):
            request.settings = self.settings

    def learn(self, request: m.Request, reply: Any) -> None:
        """Learns which session has the id now, from answers to requests that go by the id alone. Other answers may
        be about a session that has ended."""
        if isinstance(request, m.Shutdown):
            self._birth = 0
        if not isinstance(request, m.Exec | m.Open | m.Info | m.Load) or not getattr(reply, "birth", 0):
            return
        if self._birth not in (0, reply.birth):
            self._lost = UNKNOWN if reply.ended is None else ended(reply.ended)
        self._birth = reply.birth

    def missed(self, reply: m.StrayReply) -> Stray:
        """What is written between cells is given once; more than this has had of it is gone."""
        before, self._stray = self._stray, reply.at + len(reply.stdout) + len(reply.stderr)
        return Stray(
            reply.stdout.decode(errors="replace"), reply.stderr.decode(errors="replace"), max(0, reply.at - before)
        )

    def told(self, request: m.Request, result: Result) -> Result:
        """The result of a cell, with what the daemon may not know any more."""
        self.learn(request, result.reply)
        lost, self._lost = self._lost, None
        return result if lost is None or result.ended is not None else renewed(result, lost)

    def guarded(self, what: Steps[T]) -> Steps[T]:
        """The same steps, for the session that was used."""
        outcome: Any = None
        while True:
            try:
                request, reply = what.throw(outcome) if isinstance(outcome, LairError) else what.send(outcome)
            except StopIteration as end:
                result: T = end.value
                return result
            self.mark(request)
            try:
                outcome = yield request, reply
            except LairError as error:
                outcome = error
            else:
                self.learn(request, outcome)


def opening(session: str, profile: str | None, what: Callable[[], Steps[T]]) -> Steps[T]:
    """The same steps. If there is no such session yet, it is opened, as by a first cell. One that was used and has ended is
    "gone" instead."""
    try:
        return (yield from what())
    except LairError as error:
        if error.code != "no_session":
            raise
    yield from open(session, profile)
    return (yield from what())


def open(session: str, profile: str | None) -> Steps[m.SessionInfo]:
    reply: m.SessionInfo = yield m.Open(id=0, session=session, profile=profile), m.SessionInfo
    return reply


def info(session: str) -> Steps[m.SessionInfo]:
    reply: m.SessionInfo = yield m.Info(id=0, session=session), m.SessionInfo
    return reply


def sessions() -> Steps[list[m.SessionInfo]]:
    reply: m.ListReply = yield m.ListSessions(id=0), m.ListReply
    return [codec.read(m.SessionInfo, item) for item in reply.sessions]


def interrupt(session: str, kill: bool) -> Steps[bool]:
    reply: m.InterruptReply = yield m.Interrupt(id=0, session=session, kill=kill), m.InterruptReply
    return reply.interrupted


# ---- calls of functions ----


def calls(session: str | None) -> Steps[Waiting]:
    reply: m.CallsReply = yield m.Calls(id=0, session=session), m.CallsReply
    return Waiting(tuple(codec.read(m.CallRecord, item) for item in reply.calls), reply.more)


def of(session: str, number: int) -> m.AnswerCall:
    return m.AnswerCall(id=0, session=session, number=number)


def _answer(call: m.CallRecord | m.AnswerCall) -> m.AnswerCall:
    if isinstance(call, m.AnswerCall):
        return call
    return m.AnswerCall(id=0, session=call.session, of=call.key, cell=call.cell, number=call.number)


def answer_call(call: m.CallRecord | m.AnswerCall, value: Any, error: str | None, text: str | None) -> Steps[None]:
    request = _answer(call)
    if error is None:
        request.value = sendable(value)
    else:
        request.error, request.text = error, text or error
    yield request, m.Reply


def approve_call(call: m.CallRecord | m.AnswerCall) -> Steps[None]:
    request = _answer(call)
    request.approve = True
    yield request, m.Reply


def refuse_call(call: m.CallRecord | m.AnswerCall, why: str) -> Steps[None]:
    what = f"{call.function} was refused" if isinstance(call, m.CallRecord) else "the call was refused"
    yield from answer_call(call, None, "PermissionError", f"{what}: {why}" if why else what)


def reset(session: str, keep: Sequence[str]) -> Steps[Effects]:
    reply: m.ResetReply = yield m.Reset(id=0, session=session, keep=list(keep) or None), m.ResetReply
    return effects(reply)


def shutdown(session: str, *, missing_ok: bool = False) -> Steps[None]:
    try:
        yield m.Shutdown(id=0, session=session), m.Reply
    except LairError as error:
        if not missing_ok or error.code not in ("no_session", "gone", "no_daemon"):
            raise


# ---- checkpoints ----


def _state(reply: m.StateReply) -> State:
    return State(reply.cell, reply.name, effects(reply), back(reply))


def checkpoint(session: str, name: str | None) -> Steps[State]:
    return _state((yield m.Checkpoint(id=0, session=session, name=name), m.StateReply))


def checkpoints(session: str) -> Steps[list[m.CheckpointRecord]]:
    reply: m.CheckpointsReply = yield m.Checkpoints(id=0, session=session), m.CheckpointsReply
    return [codec.read(m.CheckpointRecord, item) for item in reply.checkpoints]


def diff(session: str, since: str | int | None, until: str | int | None) -> Steps[Diff]:
    names = [None if it is None else str(it) for it in (since, until)]
    return to_diff((yield m.Diff(id=0, session=session, since=names[0], until=names[1]), m.DiffReply))


def restore(session: str, name: str | int, keep_files: bool = False) -> Steps[State]:
    return _state((yield m.Restore(id=0, session=session, name=str(name), keep_files=keep_files), m.StateReply))


def drop(session: str, name: str | int) -> Steps[None]:
    yield m.Drop(id=0, session=session, name=str(name)), m.Reply


def undo(session: str, n: int, keep_files: bool = False) -> Steps[State]:
    if n < 1:
        raise ValueError("how many states to go back: 1 or more")
    return _state((yield m.Undo(id=0, session=session, n=n, keep_files=keep_files), m.StateReply))


def branch(
    session: str, new: str, checkpoint: str | int | None, files: bool | None, at_call: bool
) -> Steps[m.SessionInfo]:
    origin = None if checkpoint is None else str(checkpoint)
    reply: m.SessionInfo = yield (
        m.Branch(
            id=0,
            session=session,
            branch=new,
            origin=origin,
            files=files is True,
            share=files is False,
            at_call=at_call,
        ),
        m.SessionInfo,
    )
    return reply


# ---- saved states ----


def save(session: str) -> Steps[Saved]:
    reply: m.SaveReply = yield m.Save(id=0, session=session), m.SaveReply
    return Saved(list(reply.saved), refused(reply.not_saved))


def saves(session: str | None) -> Steps[list[SavedState]]:
    reply: m.SavesReply = yield m.Saves(id=0, session=session), m.SavesReply
    records = [codec.read(m.SaveRecord, item) for item in reply.saves]
    return [
        SavedState(
            it.session,
            it.created,
            it.expires,
            it.size,
            it.count,
            list(it.names or ()),
            refused(it.not_saved),
            it.before,
            it.damaged or 0,
        )
        for it in records
    ]


def saved(session: str) -> Steps[SavedState]:
    (state,) = yield from saves(session)
    return state


def unsave(session: str) -> Steps[None]:
    yield m.Unsave(id=0, session=session), m.Reply


def load(session: str) -> Steps[Saved]:
    reply: m.LoadReply = yield m.Load(id=0, session=session), m.LoadReply
    how = None if reply.ended is None else ended(reply.ended)
    return Saved(list(reply.loaded), refused(reply.not_loaded), reply.saved_age, how)


# ---- packages ----


def packages(prune: bool) -> Steps[list[PackageSet]]:
    reply: m.PackagesReply = yield m.Packages(id=0, prune=prune), m.PackagesReply
    records = [codec.read(m.PackageSet, item) for item in reply.sets]
    return [
        PackageSet(it.set, it.size, it.made, it.used, list(it.projects), it.template, list(it.sessions or ()))
        for it in records
    ]


# ---- questions ----


def variables(session: str, forget: Sequence[str]) -> Steps[list[m.Variable]]:
    reply: m.VarsReply = yield m.Vars(id=0, session=session, forget=list(forget) or None), m.VarsReply
    return [codec.read(m.Variable, item) for item in reply.variables]


def complete(session: str, code: str, cursor: int | None) -> Steps[Completion]:
    at = len(code) if cursor is None else cursor
    reply: m.CompleteReply = yield m.Complete(id=0, session=session, code=code, cursor=at), m.CompleteReply
    matches = [codec.read(m.Match, item) for item in reply.matches]
    return Completion([match.text for match in matches], reply.start, reply.end)


def inspect(session: str, code: str, cursor: int | None, source: bool) -> Steps[m.InspectReply]:
    at = len(code) if cursor is None else cursor
    request = m.Inspect(id=0, session=session, code=code, cursor=at, source=source)
    reply: m.InspectReply = yield request, m.InspectReply
    return reply


def check(session: str | None, profile: str | None, code: str) -> Steps[m.CheckReply]:
    reply: m.CheckReply = yield m.Check(id=0, session=session, profile=profile, code=code), m.CheckReply
    return reply


def is_complete(session: str, code: str) -> Steps[m.IsCompleteReply]:
    reply: m.IsCompleteReply = yield m.IsComplete(id=0, session=session, code=code), m.IsCompleteReply
    return reply


def stray(handle: Handle) -> Steps[Stray]:
    reply: m.StrayReply = yield m.Stray(id=0, session=handle.id), m.StrayReply
    return handle.missed(reply)


def history(session: str, n: int | None) -> Steps[list[m.HistoryRecord]]:
    reply: m.HistoryReply = yield m.History(id=0, session=session, n=n or 0), m.HistoryReply
    return [codec.read(m.HistoryRecord, item) for item in reply.cells]


# ---- files ----


def persistently(transfer: Callable[[], Steps[T]]) -> Steps[T]:
    """Moves a file. It begins again whenever the connection is lost, or the router that knew how far the file was."""
    for _ in range(ATTEMPTS):
        try:
            return (yield from transfer())
        except LairError as error:
            if error.code not in (BEGIN_AGAIN, "gone"):
                raise
            failed = error
    raise LairError("gone" if failed.code == "gone" else "lost", failed.message)


def put(session: str, path: Path, data: bytes | str, mode: int) -> Steps[None]:
    content = data.encode() if isinstance(data, str) else data
    yield from persistently(lambda: _put(session, path, content, mode))


def _put(session: str, path: Path, content: bytes, mode: int) -> Steps[None]:
    transfer = offset = 0
    while True:
        piece, more = content[offset : offset + CHUNK], offset + CHUNK < len(content)
        request = m.Put(id=0, session=session, offset=offset, data=piece, more=more)
        if transfer:
            request.transfer = transfer
        else:
            request.path, request.mode = os.fsencode(path), mode
        reply: m.TransferReply = yield request, m.TransferReply
        if not more:
            return
        transfer, offset = reply.transfer, reply.offset


def make_directory(session: str, path: Path) -> Steps[None]:
    yield from persistently(lambda: _make_directory(session, path))


def _make_directory(session: str, path: Path) -> Steps[None]:
    yield m.Put(id=0, session=session, path=os.fsencode(path), directory=True), m.TransferReply


def get(session: str, path: Path) -> Steps[bytes]:
    """The content of a file. It may change meanwhile, but all of it is from one file, and not more than the file
    had at first."""
    pieces: list[bytes] = []
    file = size = offset = 0
    while not pieces or offset < size:
        request = m.Get(id=0, session=session, path=os.fsencode(path), offset=offset, file=file)
        reply: m.GetReply = yield request, m.GetReply
        if not pieces:
            file, size = reply.file, reply.size
        pieces.append(reply.data[: size - offset])
        offset += len(pieces[-1])
        if not reply.data:
            break
    return b"".join(pieces)


def records(session: str, path: Path, host: bool) -> Steps[list[m.FileRecord]]:
    found: list[m.FileRecord] = []
    after = 0
    while True:
        request = m.Files(id=0, session=session, path=os.fsencode(path), host=host, after=after)
        reply: m.FilesReply = yield request, m.FilesReply
        found += [codec.read(m.FileRecord, item) for item in reply.files]
        after = reply.next
        if not after:
            return found


def files(session: str, path: Path) -> Steps[list[File]]:
    found = yield from records(session, path, host=False)
    return [File(os.fsdecode(it.name), it.kind, it.size, it.mode, it.modified) for it in found]


def copy_in(session: str, source: Path, path: Path | None) -> Steps[int]:
    return (yield from persistently(lambda: _copy_in(session, source, path)))


@dataclass
class Copied:
    """How many files and bytes were copied, and how many entries were neither files nor directories."""

    files: int = 0
    size: int = 0
    skipped: int = 0


def copy_tree(session: str, source: Path, path: Path) -> Steps[Copied]:
    """Copies a file, or a directory with all that is in it."""
    copied = Copied()
    left = [(os.fsencode(source), os.fsencode(path), "")]
    while left:
        origin, target, kind = left.pop()
        if len(left) > TREE_MAX:
            raise LairError(
                "limit", f"there is more than {TREE_MAX} files and directories in {os.fsdecode(source)}"
            )
        entries = None if kind == "file" else (yield from _host_directory(session, origin))
        if entries is None:
            copied.size += yield from copy_in(session, origin, target)
            copied.files += 1
            continue
        yield from make_directory(session, target)
        for entry in entries:
            if entry.kind in ("file", "directory"):
                left.append((os.path.join(origin, entry.name), os.path.join(target, entry.name), entry.kind))
            else:
                copied.skipped += 1
    return copied


def _host_directory(session: str, path: bytes) -> Steps[list[m.FileRecord] | None]:
    """The entries of a directory of the host; None if it is no directory."""
    try:
        return (yield from records(session, path, host=True))
    except LairError as error:
        if error.code != "no_file":
            raise
    return None


def _copy_in(session: str, source: Path, path: Path | None) -> Steps[int]:
    transfer = 0
    while True:
        request = m.CopyIn(id=0, session=session, source=os.fsencode(source), transfer=transfer)
        request.path = None if path is None else os.fsencode(path)
        reply: m.TransferReply = yield request, m.TransferReply
        transfer = reply.transfer
        if not transfer:
            return reply.offset

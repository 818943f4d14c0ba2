"""The outcome of a cell: events while it runs, and a Result when it has ended."""

from __future__ import annotations

import codecs
import json
import os
import time
from base64 import b64encode
from collections.abc import Callable, Sequence
from dataclasses import field, replace
from typing import Any, Literal, overload

from . import causes, codec, notes
from . import messages as m
from .errors import CellFailed, LairError, SessionLost
from .late import frozen

# How many characters of each stream a Result keeps, if the output was streamed.
KEPT = 16 << 20

# How many bytes of the output before a cell are kept: more than the daemon keeps.
STRAY = 1 << 17

# If a thing has several forms, the first of these is its picture.
IMAGES = ("image/png", "image/jpeg", "image/webp", "image/gif", "image/svg+xml")

Stream = Literal["stdout", "stderr"]
# MIME type -> text; bytes for images and the like.
Bundle = dict[str, "str | bytes"]


@frozen
class Output:
    """A piece of the cell's output, as the cell writes it. `missing`: how many bytes are lost before it. Bytes are
    lost if the connection was lost and the daemon does not keep everything, or if they were not read while other
    calls had to be answered."""

    stream: Stream
    text: str
    missing: int = 0


@frozen
class Display:
    """Something that the cell shows, in one or more forms. `update`: it replaces the display with that
    `display_id`. `clear`: it replaces all displays before it."""

    data: Bundle
    metadata: dict[str, Any] = field(default_factory=dict)
    display_id: str | None = None
    update: bool = False
    clear: bool = False

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        return _for_notebook(self.data)


@frozen
class Stray:
    """Output of threads and tasks while no cell ran. Of much output only the beginning and the end are kept. `missed`:
    how many bytes before it went to somebody else, or were lost with a connection."""

    stdout: str = ""
    stderr: str = ""
    missed: int = 0

    def __bool__(self) -> bool:
        return bool(self.stdout or self.stderr or self.missed)


@frozen
class Alive:
    """Comes about every second while a cell runs: how many seconds it has run, its memory and its CPU time; and `doing`,
    what is being done for it meanwhile, such as "downloading polars, 12.0 of 51.4 MB". It comes also when that changes."""

    elapsed: float
    memory: int
    cpu: float
    doing: str = ""


@frozen
class Artifact:
    """A file in the workspace that was created or modified while the cell ran; `type` is a MIME type."""

    path: str
    size: int
    type: str
    change: str


@frozen
class Effect:
    """Something that was done and that going back has not undone. `act` is connected, sent, wrote, made, renamed
    (`to`), removed or ran; called, or maybe_called if the cell ended before the answer. `target` is an address, a
    path, a program or a call. `cell` did it, or it happened after that cell."""

    act: str
    target: str
    cell: int
    to: str | None = None

    def __str__(self) -> str:
        if self.act in ("called", "maybe_called"):
            return f"{'called' if self.act == 'called' else 'may have called'} {self.target} in cell {self.cell}"
        where = f"to {self.target}" if self.act in ("connected", "sent") else self.target
        return f"{self.act} {where}" if self.to is None else f"{self.act} {where} to {self.to}"


@frozen
class Effects(Sequence[Effect]):
    """The effects since the state that the session went back to, as far as Lair saw them. `more`: how many more
    there are."""

    items: tuple[Effect, ...] = ()
    more: int = 0

    @overload
    def __getitem__(self, index: int) -> Effect: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Effect, ...]: ...

    def __getitem__(self, index: int | slice) -> Effect | tuple[Effect, ...]:
        return self.items[index]

    def __len__(self) -> int:
        return len(self.items)

    def __bool__(self) -> bool:
        return bool(self.items or self.more)

    def __str__(self) -> str:
        """The first effects, in words."""
        return notes.listed(self.items, self.more)


@frozen
class FileBack:
    """A file of the workspace when the state went back. `change` is restored, made (it had been removed or renamed),
    removed (it was not there) or failed."""

    path: str
    change: str

    def __str__(self) -> str:
        return f"{self.change} {self.path}"


@frozen
class Back(Sequence[FileBack]):
    """The files that were brought back with the state. `more`: how many more there are. `stay`: why they, or the first
    that failed, are not those of that state."""

    items: tuple[FileBack, ...] = ()
    more: int = 0
    stay: str | None = None

    @overload
    def __getitem__(self, index: int) -> FileBack: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[FileBack, ...]: ...

    def __getitem__(self, index: int | slice) -> FileBack | tuple[FileBack, ...]:
        return self.items[index]

    def __len__(self) -> int:
        return len(self.items)

    def __bool__(self) -> bool:
        return bool(self.items or self.more or self.stay)

    def __str__(self) -> str:
        """The first files, in words."""
        files = notes.listed(self.items, self.more)
        return "; ".join(filter(None, (files, self.stay and f"files stay as they are: {self.stay}")))


def back(reply: m.ExecReply | m.StateReply) -> Back:
    items = (codec.read(m.FileBack, item) for item in reply.files or ())
    files = tuple(FileBack(os.fsdecode(it.path), it.change) for it in items)
    return Back(files, reply.files_more, reply.files_stay)


@frozen
class Waiting(Sequence[m.CallRecord]):
    """Calls of functions that wait for an answer. `more`: how many more there are."""

    items: tuple[m.CallRecord, ...] = ()
    more: int = 0

    @overload
    def __getitem__(self, index: int) -> m.CallRecord: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[m.CallRecord, ...]: ...

    def __getitem__(self, index: int | slice) -> m.CallRecord | tuple[m.CallRecord, ...]:
        return self.items[index]

    def __len__(self) -> int:
        return len(self.items)


def effects(reply: m.ExecReply | m.StateReply | m.ResetReply | m.SessionInfo) -> Effects:
    items = (codec.read(m.Effect, item) for item in reply.effects or ())
    return Effects(
        tuple(
            Effect(it.act, os.fsdecode(it.target), it.cell, None if it.to is None else os.fsdecode(it.to))
            for it in items
        ),
        reply.effects_more,
    )


@frozen
class State:
    """A state of a session: the state after `cell`, 0 for before the first. `name`: of its checkpoint. `effects`:
    if the session went back to it, the effects that this has not undone. `back`: the files that came back."""

    cell: int
    name: str | None = None
    effects: Effects = field(default_factory=Effects)
    back: Back = field(default_factory=Back)


@frozen
class FileDifference:
    """`change`: created, changed, deleted, renamed (`was`: its path before) or mode; `kind`: file, directory, link or
    other. Sizes in bytes. Modes are None if they are the same."""

    path: str
    change: str
    kind: str
    size: int = 0
    size_before: int = 0
    was: str | None = None
    mode: int | None = None
    mode_before: int | None = None


@frozen
class VariableDifference:
    """`change`: new, changed or gone. `text` is a short repr; of one that is gone, what it was."""

    name: str
    change: str
    type: str
    text: str
    size: int = 0
    type_before: str | None = None
    text_before: str | None = None
    size_before: int = 0


@frozen
class Diff:
    """How two states of a session differ, those after the cells `since` and `until`. Of much only the beginning is
    listed; `files_more` and `variables_more` say how many more there are. `files_lack`, `variables_lack`: why they are
    not known. `unsure`: variables that may have changed where nobody can see it."""

    since: int
    until: int
    files: tuple[FileDifference, ...] = ()
    variables: tuple[VariableDifference, ...] = ()
    files_more: int = 0
    variables_more: int = 0
    files_lack: str | None = None
    variables_lack: str | None = None
    unsure: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.files or self.variables or self.files_more or self.variables_more)


def _file_difference(it: m.FileDifference) -> FileDifference:
    modes = (it.mode, it.mode_before) if it.mode != it.mode_before else (None, None)
    was = None if it.was is None else os.fsdecode(it.was)
    return FileDifference(os.fsdecode(it.path), it.change, it.kind, it.size, it.size_before, was, *modes)


def _variable_difference(it: m.VariableDifference) -> VariableDifference:
    before = (it.type_before, it.text_before, it.size_before)
    return VariableDifference(it.name, it.change, it.type, it.text, it.size, *before)


def diff(reply: m.DiffReply) -> Diff:
    return Diff(
        reply.since,
        reply.until,
        tuple(_file_difference(codec.read(m.FileDifference, it)) for it in reply.files),
        tuple(_variable_difference(codec.read(m.VariableDifference, it)) for it in reply.variables),
        reply.files_more,
        reply.variables_more,
        reply.files_lack,
        reply.variables_lack,
        tuple(reply.unsure or ()),
    )


@frozen
class Saved:
    """Which variables were saved or came back, and for each that was not, or did not, why; `age` in seconds. `ended`: to
    load them has made the session anew, and so the one before has ended."""

    names: list[str]
    missing: dict[str, str]
    age: float = 0.0
    ended: Ended | None = None

    @property
    def told_age(self) -> str:
        return _age(self.age)


@frozen
class Ended:
    """How a session has ended. `why` is a cause; or stopped or lost, if laird was; or unknown. `when` is in seconds
    since the epoch, if it is known. `saved`: its variables were saved, and come back. `not_saved`: why they were
    not, though they should have been. `by_root`: root has shut it down, not its user."""

    why: str
    when: float | None = None
    cells: int = 0
    saved: bool = False
    not_saved: str | None = None
    by_root: bool = False

    def __str__(self) -> str:
        words = notes.how_ended(self.why) + (" by root" if self.by_root else "")
        return words if self.when is None else f"{words}, {_age(time.time() - self.when)} ago"


def _age(seconds: float) -> str:
    s = max(int(seconds), 0)
    if s < 3600:
        return f"{s}s" if s < 60 else f"{s // 60}m"
    return f"{s // 3600}h {s // 60 % 60}m" if s < 86400 else f"{s // 86400}d {s // 3600 % 24}h"


def ended(raw: Any) -> Ended:
    record = codec.read(m.Ended, raw)
    return Ended(record.why, record.when, record.cells, record.saved, record.not_saved, record.by_root)


UNKNOWN = Ended(causes.UNKNOWN)


def refusal(error: m.ErrorReply) -> LairError:
    if error.code == "gone" and error.ended is not None:
        return SessionLost(error.message, ended(error.ended), error.setting)
    return LairError(error.code, error.message, error.setting)


@frozen
class SavedState:
    """The saved state of a session: `count` names in `size` bytes, until `expires`, if it expires. Both times are
    seconds since the epoch. `names` and `missing` (with the reasons) are known only if the state of one session was
    asked for."""

    session: str
    created: float
    expires: float | None
    size: int
    count: int
    names: list[str] = field(default_factory=list)
    missing: dict[str, str] = field(default_factory=dict)
    before: float | None = None  # when the one before it was saved
    damaged: int = 0  # how many are, and are kept aside; if session is empty, it is this one


@frozen
class PackageSet:
    """Packages that laird has, which sessions get together. It takes `size` bytes of disk, and its templates `template` bytes
    of memory; `projects` are as `polars==2.1.0`. `sessions` are yours that have it now, or in a state to which they can go
    back; `used` says whether anybody has it. `made` is in seconds since the epoch."""

    set: str
    size: int
    made: float
    used: bool
    projects: list[str]
    template: int = 0
    sessions: list[str] = field(default_factory=list)


def refused(items: Any) -> dict[str, str]:
    return {it.name: it.reason for it in (codec.read(m.RefusedName, item) for item in items or ())}


Event = Output | Display | Alive


@frozen
class Result:
    """How a cell ended: `ok`, or else `cause` and `error`. `state` says what became of the session."""

    session: str | None  # None: it was a one-shot
    cell: int  # its number in the session, from 1
    returncode: int
    state: (
        str  # kept, new (made for this cell: `ended`), rolled_back (to after the cell `restored`), reset or ended
    )
    cause: str | None  # None: it simply ended; else error, exit, interrupt, timeout, oom, ...
    stdout: str
    stderr: str
    text: str | None  # the last expression, as a prompt would print it
    error: m.CellError | None  # the exception that ended it
    blocked: list[m.Blocked]  # what the cage refused
    duration: float  # seconds, without the time in the queue
    reply: m.ExecReply = field(repr=False)  # the message itself
    data: Bundle = field(default_factory=dict)  # the last expression in richer forms
    displays: list[Display] = field(default_factory=list)  # everything else that it has shown, such as figures
    artifacts: list[Artifact] = field(default_factory=list)
    stdout_dropped: int = 0  # how many bytes are missing from it,
    stderr_dropped: int = 0  # and from this
    loaded: Saved | None = None  # the session was opened for this cell, and got this saved state
    ended: Ended | None = None  # the session is new, and this is how the last one of its id ended, if there was one
    stray: Stray = field(default_factory=Stray)  # output from before the cell, with which stdout and stderr begin

    @property
    def ok(self) -> bool:
        return self.returncode == 0

    @property
    def restored(self) -> int:
        return self.reply.restored

    @property
    def caught(self) -> list[m.Blocked]:
        """The refusals that have not ended the cell. If one has ended it, the error says so."""
        told = "" if self.error is None else self.error.value
        return [it for it in self.blocked if (it.target or "") not in told or it.reason not in told]

    @property
    def limit(self) -> float | None:
        """If the cell was stopped because of its time limit: how many seconds it had."""
        return self.reply.limit

    @property
    def setting(self) -> str | None:
        """If settings of the daemon decided how the cell ended, or what is missing of it: which, in which file. It is
        for the operator, and may have a path of the host."""
        return self.reply.setting

    @property
    def effects(self) -> Effects:
        """If the session was rolled back or reset: the effects that this has not undone."""
        return effects(self.reply)

    @property
    def back(self) -> Back:
        """If the session was rolled back: the files that are again what they were."""
        return back(self.reply)

    @property
    def files_unkept(self) -> str | None:
        """Which file cannot be brought back later, and why: the first. None: all can."""
        return self.reply.files_unkept

    @property
    def unfaithful(self) -> str | None:
        """Why no checkpoint can be made of the state after the cell. None: one can be made, or the profile keeps
        none."""
        return self.reply.unfaithful

    @property
    def images(self) -> list[tuple[str, bytes]]:
        """Every picture in the result: its MIME type and its content."""
        return list(filter(None, map(picture, (self.data, *(shown.data for shown in self.displays)))))

    @property
    def notice(self) -> str:
        """A sentence that must not be missed even if the cell ended well: that the session is a new one. Else
        empty."""
        return "; ".join(note for name, note in self.notes.items() if name in ("ended", "damaged"))

    @property
    def damaged(self) -> str | None:
        """Why no variables came back: the saved state is damaged; and what has become of it."""
        return self.reply.saved_damaged

    def raise_for_error(self) -> Result:
        """The result itself; raises CellFailed if the cell did not end well."""
        if not self.ok:
            raise CellFailed(self)
        return self

    @property
    def notes(self) -> dict[str, str]:
        """All that must be told beside the output, in words: what became of the session, what was blocked, and so on. The
        names are those of NOTES in proto/causes.h."""
        return notes.told(self)

    def summary(self) -> str:
        """How the cell ended, in one sentence or two."""
        told = self.notes
        if self.error is not None and self.cause not in (causes.TIMEOUT, causes.INTERRUPT):
            how = f"{self.error.name}: {self.error.value}" if self.error.value else self.error.name
        else:
            how = notes.happened(self) or f"the code exited with status {self.returncode}"
        return "; ".join((how, *(told[name] for name in ("fate", "back", "stay", "effects") if name in told)))

    def transcript(self) -> str:
        """Everything as a prompt would show it: the output, the last expression, and what else is told."""
        told = self.notes
        if not self.ok and self.error is None:  # else the traceback has told
            told.setdefault("cause", notes.happened(self))
        first = [told.pop(name, "") for name in ("ended", "damaged", "loaded")]
        parts = [*first, self.stdout, self.stderr, self.text, *told.values()]
        return "".join(part if part in (self.stdout, self.stderr) else f"{part}\n" for part in parts if part)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        shown = self.text if self.text is not None else self.stdout
        return {"text/plain": shown, **_for_notebook(self.data)}


def picture(bundle: Bundle) -> tuple[str, bytes] | None:
    """The best picture of one thing: its MIME type and its content."""
    kind = next((kind for kind in IMAGES if kind in bundle), None)
    if kind is None:
        return None
    value = bundle[kind]
    return kind, value.encode() if isinstance(value, str) else value


def as_text(value: str | bytes) -> str:
    """JSON and notebooks want bytes in base64."""
    return value if isinstance(value, str) else b64encode(value).decode()


def _for_notebook(bundle: Bundle) -> dict[str, Any]:
    """Notebooks want JSON as the values that it stands for. Data that only claims to be JSON is of no use to
    them."""
    shown: dict[str, Any] = {}
    for kind, value in bundle.items():
        if not kind.endswith(("/json", "+json", ".json")):
            shown[kind] = as_text(value)
            continue
        try:
            shown[kind] = json.loads(value)
        except ValueError:
            pass
    return shown


def renewed(result: Result, how: Ended) -> Result:
    """The result of a session that took the place of another. The daemon does not know that its caller had used
    that one."""
    return replace(result, state=causes.NEW if result.state == causes.KEPT else result.state, ended=how)


Handlers = dict[type[Event], Callable[[Any], object]]


def handlers(
    on_output: Callable[[str, str], object] | None,
    on_display: Callable[[Display], object] | None,
    on_alive: Callable[[Alive], object] | None,
) -> Handlers:
    """Which function is called with which event; empty if there is nothing to stream for."""
    output = None if on_output is None else lambda event: on_output(event.text, event.stream)
    every: list[tuple[type[Event], Any]] = [(Output, output), (Display, on_display), (Alive, on_alive)]
    return {event: call for event, call in every if call is not None}


def _display(shown: m.Shown | m.DisplayEvent) -> Display:
    return Display(shown.data, _metadata(shown.metadata), shown.display_id, shown.update, shown.clear)


def _metadata(text: str | None) -> dict[str, Any]:
    """The JSON that a cell has sent, which may be anything."""
    try:
        value = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _loaded(reply: m.ExecReply) -> Saved:
    return Saved(list(reply.loaded or ()), refused(reply.not_loaded), reply.saved_age or 0.0)


class Collector:
    """Makes events and a Result of a cell's messages, for blocking and for asyncio callers alike."""

    def __init__(self) -> None:
        self._decoders = {
            "stdout": codecs.getincrementaldecoder("utf-8")("replace"),
            "stderr": codecs.getincrementaldecoder("utf-8")("replace"),
        }
        self._kept: dict[str, list[str]] = {"stdout": [], "stderr": []}
        self._left = {"stdout": KEPT, "stderr": KEPT}
        self._at = {"stdout": 0, "stderr": 0}
        self._dropped = {"stdout": 0, "stderr": 0}
        self._begun = {"stdout": b"", "stderr": b""}  # as much as may have been written before the cell began
        self._shown: list[Display] = []

    def event(self, message: m.StdoutEvent | m.StderrEvent | m.DisplayEvent | m.AliveEvent) -> Event:
        if isinstance(message, m.AliveEvent):
            return Alive(message.elapsed, message.memory, message.cpu, message.doing or "")
        if isinstance(message, m.DisplayEvent):
            return self._show(_display(message))
        stream: Stream = "stdout" if isinstance(message, m.StdoutEvent) else "stderr"
        self._begun[stream] += message.data[: STRAY - len(self._begun[stream])]
        missing, self._at[stream] = message.at - self._at[stream], message.at + len(message.data)
        self._dropped[stream] += missing
        return Output(stream, self._keep(stream, self._decoders[stream].decode(message.data)), missing)

    def _keep(self, stream: str, text: str) -> str:
        if kept := text[: self._left[stream]]:
            self._kept[stream].append(kept)
            self._left[stream] -= len(kept)
        self._dropped[stream] += len(text[len(kept) :].encode())
        return text

    def _show(self, shown: Display) -> Display:
        """Keeps the last state of each display, as the daemon does for callers who do not stream."""
        if shown.clear:
            self._shown.clear()
        same = [n for n, it in enumerate(self._shown) if shown.update and it.display_id == shown.display_id]
        for n in same:
            self._shown[n] = shown
        if shown.data and not same:
            self._shown.append(shown)
        return shown

    def rest(self) -> list[Output]:
        """The rest of characters that were cut off at the end."""
        streams: list[Stream] = ["stdout", "stderr"]
        tails = [(s, self._keep(s, self._decoders[s].decode(b"", final=True))) for s in streams]
        return [Output(stream, tail) for stream, tail in tails if tail]

    def _stray(self, reply: m.ExecReply) -> Stray:
        stdout, stderr = self._begun["stdout"] + reply.stdout, self._begun["stderr"] + reply.stderr
        return Stray(
            stdout[: reply.stdout_stray].decode(errors="replace"),
            stderr[: reply.stderr_stray].decode(errors="replace"),
        )

    def result(self, reply: m.ExecReply) -> Result:
        """The Result. Output that was streamed is in it as well, up to a limit."""
        artifacts = [codec.read(m.Artifact, item) for item in reply.artifacts or ()]
        return Result(
            session=reply.session,
            cell=reply.cell,
            returncode=reply.returncode,
            state=reply.state,
            cause=reply.cause,
            stdout="".join(self._kept["stdout"]) + reply.stdout.decode(errors="replace"),
            stderr="".join(self._kept["stderr"]) + reply.stderr.decode(errors="replace"),
            text=reply.text,
            data=reply.data or {},
            displays=self._shown + [_display(codec.read(m.Shown, item)) for item in reply.displays or ()],
            error=None if reply.error is None else codec.read(m.CellError, reply.error),
            blocked=[codec.read(m.Blocked, item) for item in reply.blocked or ()],
            artifacts=[Artifact(os.fsdecode(it.path), it.size, it.type, it.change) for it in artifacts],
            stdout_dropped=self._dropped["stdout"] + reply.stdout_dropped,
            stderr_dropped=self._dropped["stderr"] + reply.stderr_dropped,
            loaded=None if reply.saved_age is None else _loaded(reply),
            ended=None if reply.ended is None else ended(reply.ended),
            stray=self._stray(reply),
            duration=reply.duration_ms / 1000,
            reply=reply,
        )

"""The messages behind the router, as proto/message.h has them: router and template, warden and interpreter."""

from __future__ import annotations

import struct

from lair.codec import Bin, Flag, Int, Message, Raw, Real, Str, Uint
from lair.messages import Shown


def datagram(frame: bytes, number: int) -> bytes:
    """A message of a link, as proto/link.h has it."""
    return struct.pack("<QII", number, 0, 0) + frame


def letter(size: int, offset: int, number: int) -> bytes:
    """One that says where its frame lies."""
    return struct.pack("<QII", number, size, offset)


class Place(Message):
    TYPE = "place"
    kind: Str
    path: Bin
    real: Bin
    device: Uint
    inode: Uint


class Configure(Message):
    TYPE = "configure"
    profile: Str
    python: Str | None = None
    preload: Raw = None
    env: Raw = None
    places: Raw = None
    changeable: Raw = None
    network: Str | None = None
    subprocess: Flag = False
    memory: Uint = 0
    processes: Uint = 0
    open_files: Uint = 0
    file_size: Uint = 0
    workspace_size: Uint = 0
    scratch_size: Uint = 0
    text_max: Uint
    level: Str | None = None
    forbid: Raw = None
    forbid_exec: Flag = False
    memory_group: Flag = False
    processes_group: Flag = False
    cpu_group: Flag = False


class MakeWarden(Message):
    TYPE = "warden"
    serial: Uint
    workspace: Str
    uid: Uint = 0


class TemplateReady(Message):
    TYPE = "ready"
    python: Str
    missing: Raw = None


class Failed(Message):
    TYPE = "failed"
    serial: Uint = 0
    reason: Str


class Made(Message):
    TYPE = "made"
    serial: Uint
    pid: Uint


class Spawn(Message):
    TYPE = "spawn"
    serial: Uint
    reseed: Flag = False
    directory: Str | None = None


class Adopt(Message):
    TYPE = "adopt"
    serial: Uint
    pid: Uint


class Sweep(Message):
    TYPE = "sweep"
    serial: Uint = 0


class Swept(Message):
    TYPE = "swept"
    serial: Uint = 0


class Freeze(Message):
    TYPE = "freeze"
    serial: Uint


class Frozen(Message):
    TYPE = "frozen"
    serial: Uint
    pid: Uint = 0
    reason: Str | None = None


class Measure(Message):
    TYPE = "measure"
    serial: Uint = 0


class Measured(Message):
    TYPE = "measured"
    memory: Uint


class Signal(Message):
    TYPE = "signal"
    serial: Uint
    signal: Uint


class WardenReady(Message):
    TYPE = "ready"
    level: Str
    guards: Raw


class Discard(Message):
    TYPE = "discard"
    serial: Uint


class Spawned(Message):
    TYPE = "spawned"
    serial: Uint
    pid: Uint


class Signalled(Message):
    TYPE = "signalled"
    serial: Uint


class Exited(Message):
    TYPE = "exited"
    serial: Uint
    status: Uint


class Survey(Message):
    TYPE = "survey"
    size: Uint
    files: Uint


class Surveyed(Message):
    TYPE = "surveyed"
    size: Uint
    files: Uint
    blind: Flag = False
    worked: Uint = 0


class Run(Message):
    TYPE = "run"
    cell: Uint
    code: Str
    stream: Flag = False
    input: Flag = False
    figure: Str | None = None
    values: Flag = False
    env: Raw = None
    directory: Str | None = None
    reload: Flag = False


class Question(Message):
    TYPE = "question"
    serial: Uint
    kind: Str
    code: Str | None = None
    cursor: Uint = 0
    source: Flag = False
    names: Raw = None


class Told(Message):
    TYPE = "told"
    serial: Uint
    answer: Raw = None
    refused: Str | None = None


class Answer(Message):
    TYPE = "answer"
    text: Str | None = None
    eof: Flag = False


class Done(Message):
    TYPE = "done"
    cell: Uint
    returncode: Int
    cause: Str | None = None
    text: Str | None = None
    data: Raw = None
    error: Raw = None
    blocked: Raw = None
    artifacts: Raw = None
    artifacts_more: Flag = False
    unfaithful: Str | None = None
    report: Raw = None


class Ask(Message):
    TYPE = "ask"
    prompt: Str
    password: Flag = False


class Display(Shown):
    TYPE = "display"


class Task(Message):
    TYPE = "task"
    cell: Uint
    task: Str
    size: Uint = 0
    offset: Uint = 0
    budget: Real | None = None


class Report(Message):
    """What came of a task: the report inside Done."""

    TYPE = "report"
    size: Uint
    names: Raw
    refused: Raw


class Saved(Message):
    """The beginning of a file that holds a saved state."""

    TYPE = "saved"
    owner: Uint
    session: Str
    created: Real
    size: Uint
    names: Raw
    refused: Raw

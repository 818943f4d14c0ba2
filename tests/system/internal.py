"""The messages behind the router.

Made by client/python/generate.py from proto/message.h. PROTOCOL.md says what the fields mean.
"""

from __future__ import annotations

from lair.codec import Bin, Flag, Int, Message, Raw, Real, Str, Uint


class Place(Message):
    """A directory of the host, as it was when the settings were read. kind: read, write, hide, own (it holds
    laird's own files), or python, which may be a file. path: as in the settings. real: the same without links;
    empty if it did not exist."""

    TYPE = "place"
    kind: Str
    path: Bin
    real: Bin
    device: Uint
    inode: Uint


class Configure(Message):
    """Sent once, first. Sizes are bytes, 0 = no limit. preload: array of str, a trailing '?' marks a module that
    may be missing. env: array of "NAME=value". places: array of place records. changeable: array of the real paths
    that some session may write to. home: where a session finds its workspace, if it has a file system of its own.
    forbid: array of rules as in sessions.conf. packages_allow, packages_deny: arrays of patterns. ..._group: a
    control group of each warden holds this limit. threads: how many the libraries of a session may start, 0 = 1;
    threads_given: even if checkpoints then fail."""

    TYPE = "configure"
    profile: Str
    python: Str | None = None
    preload: Raw = None
    env: Raw = None
    places: Raw = None
    changeable: Raw = None
    network: Str | None = None
    subprocess: Flag = False
    terminals: Flag = False
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
    packages: Str | None = None
    requirements: Raw = None
    packages_allow: Raw = None
    packages_deny: Raw = None
    home: Str | None = None
    threads: Uint = 0
    threads_given: Flag = False


class MakeWarden(Message):
    """Make a warden. Descriptors travel with it: the warden's end of its control pair, then one for each control
    group that it enters. uid: the host uid and gid of the session, 0 = the template's own."""

    TYPE = "warden"
    serial: Uint
    workspace: Str
    uid: Uint = 0


class Hurry(Message):
    TYPE = "hurry"
    serial: Uint = 0


class TemplateReady(Message):
    """rough: it makes wardens for who waits, but has not warmed up yet; it says ready again when it has."""

    TYPE = "ready"
    language: Str
    version: Str
    missing: Raw = None
    rough: Flag = False


class Failed(Message):
    TYPE = "failed"
    serial: Uint = 0
    reason: Str


class Made(Message):
    """The warden exists; its pidfd travels along (no descriptor on kernels without pidfds). pid: as the host sees
    it."""

    TYPE = "made"
    serial: Uint
    pid: Uint


class Build(Message):
    """Make a set of packages. packages: the directory of all sets; work: an empty directory for this one. python,
    uv: as in the settings. base: the set that it grows from. newer: what was published from that time on is not
    there. deny: array of patterns. size: that it may have; scarce: because there is no room for more. uid: who does
    it, 0 = the builder's own user."""

    TYPE = "build"
    packages: Bin
    work: Bin
    requirements: Raw
    base: Str | None = None
    python: Str | None = None
    uv: Str | None = None
    newer: Str | None = None
    deny: Raw = None
    size: Uint
    scarce: Flag = False
    uid: Uint = 0


class Building(Message):
    """text: what is being done."""

    TYPE = "building"
    text: Str


class Built(Message):
    """One of both: the name of the set, or why there is none."""

    TYPE = "built"
    set: Str | None = None
    reason: Str | None = None


class Spawn(Message):
    """To a warden: fork the pristine image; to a frozen interpreter: fork yourself. Four descriptors travel along:
    the interpreter's exec channel, its stdout, its stderr, and the memory file of outbuffer.h. hold: nothing of it
    runs until it gets `settle`. directory: it works in that branch's directory, which is filled, or else to be
    made."""

    TYPE = "spawn"
    serial: Uint
    reseed: Flag = False
    hold: Flag = False
    filled: Flag = False
    directory: Str | None = None


class Adopt(Message):
    TYPE = "adopt"
    serial: Uint
    pid: Uint


class Sweep(Message):
    TYPE = "sweep"
    serial: Uint = 0


class Signal(Message):
    TYPE = "signal"
    serial: Uint
    signal: Uint


class Discard(Message):
    TYPE = "discard"
    serial: Uint


class Survey(Message):
    """Add up the size of the workspace; stop once it is more than this."""

    TYPE = "survey"
    size: Uint
    files: Uint


class KeepFiles(Message):
    """Keep the files of the state as serial; at most max bytes of contents are kept. directory: of a branch that
    has its own. mapped: array of uint, inodes that are mapped for writing."""

    TYPE = "keep_files"
    serial: Uint
    directory: Str | None = None
    max: Uint
    mapped: Raw = None


class BringFiles(Message):
    """Bring the files of that state back. The directory of a branch is made if it is not there. still: array of
    uint, interpreters that must not run meanwhile."""

    TYPE = "bring_files"
    serial: Uint
    directory: Str | None = None
    still: Raw = None


class LeaveFiles(Message):
    """Stop that."""

    TYPE = "leave_files"
    serial: Uint
    directory: Str | None = None


class CompareFiles(Message):
    """How the files of the state since differ from those of the state until."""

    TYPE = "compare_files"
    serial: Uint
    since: Uint
    until: Uint


class DropFiles(Message):
    TYPE = "drop_files"
    serial: Uint


class WardenReady(Message):
    """The cage is complete. guards: array of str, the mechanisms that really hold; level: their level."""

    TYPE = "ready"
    level: Str
    language: Str
    version: Str | None = None
    guards: Raw


class Swept(Message):
    TYPE = "swept"
    serial: Uint = 0


class Spawned(Message):
    TYPE = "spawned"
    serial: Uint
    pid: Uint


class Signalled(Message):
    TYPE = "signalled"
    serial: Uint


class Exited(Message):
    """An interpreter has died; a sweep kills the processes that it started. status: as from waitpid."""

    TYPE = "exited"
    serial: Uint
    status: Uint


class Surveyed(Message):
    """blind: some directories could not be looked into. worked: µs of a processor."""

    TYPE = "surveyed"
    size: Uint
    files: Uint
    blind: Flag = False
    worked: Uint = 0


class FilesKept(Message):
    """files: how many; size: bytes that were kept for it; held: bytes that all states together have; lost: states
    up to this one may not be kept any more. why: the first that was not kept, or, if it failed, why nothing was."""

    TYPE = "files_kept"
    serial: Uint
    files: Uint = 0
    size: Uint = 0
    held: Uint = 0
    lost: Uint = 0
    failed: Flag = False
    why: Str | None = None


class FilesBack(Message):
    """files: array of file_back; more: how many more. refused: nothing was done; why: of that, or of the first that
    failed."""

    TYPE = "files_back"
    serial: Uint
    directory: Str | None = None
    files: Raw = None
    more: Uint = 0
    refused: Flag = False
    why: Str | None = None


class FilesGoing(Message):
    """Said now and then while files are being kept or brought back, when some more of that is done. size, files: at
    most so much is written for it."""

    TYPE = "files_going"
    size: Uint
    files: Uint


class FilesCompared(Message):
    """files: array of file_difference; more: how many more. why: they are not known."""

    TYPE = "files_compared"
    serial: Uint
    files: Raw = None
    more: Uint = 0
    why: Str | None = None


class Run(Message):
    """options: a map."""

    TYPE = "run"
    cell: Uint
    options: Bin


class CellOptions(Message):
    """A cell: its code and its options, which the daemon keeps in this form, writes down and hands to the
    interpreter. figure: png or svg. values: show small locals in errors. env: array of "NAME=value". directory:
    where to run. again: calls may repeat what was done before. notebook: JSON, how a notebook wants the cell to be
    run."""

    TYPE = "options"
    code: Str
    stream: Flag = False
    input: Flag = False
    figure: Str | None = None
    values: Flag = False
    env: Raw = None
    directory: Str | None = None
    reload: Flag = False
    functions: Raw = None
    again: Flag = False
    notebook: Str | None = None
    packages: Raw = None


class Question(Message):
    """kind: complete, inspect, vars, keep, is_complete or check. names: array of str."""

    TYPE = "question"
    serial: Uint
    kind: Str
    code: Str | None = None
    cursor: Uint = 0
    source: Flag = False
    names: Raw = None


class Task(Message):
    """Like run. "save": save into the descriptor that travels along, at most size bytes; variables that cannot be
    saved within half of budget seconds are left out. "load": load what begins in it at offset."""

    TYPE = "task"
    cell: Uint
    task: Str
    size: Uint = 0
    offset: Uint = 0
    budget: Real | None = None


class Answer(Message):
    TYPE = "answer"
    text: Str | None = None
    eof: Flag = False


class Settle(Message):
    """All that it goes on from is as it was. files: some have just been put there, by nobody in the session."""

    TYPE = "settle"
    files: Flag = False


class Prepare(Message):
    """A spare imports what these ask for of the set at that path. requirements: array of str."""

    TYPE = "prepare"
    path: Str
    requirements: Raw


class Returned(Message):
    """As in `return`."""

    TYPE = "returned"
    number: Uint
    value: Raw = None
    error: Str | None = None
    text: Str | None = None


class Freeze(Message):
    """cell: in the middle of that cell, which waits for calls; 0: between two cells."""

    TYPE = "freeze"
    serial: Uint
    cell: Uint = 0


class Measure(Message):
    TYPE = "measure"
    serial: Uint = 0


class Describe(Message):
    TYPE = "describe"
    serial: Uint


class Done(Message):
    """cause: absent, "error", "exit" or "interrupt". data: as in shown. error, blocked, artifacts: the maps below.
    changed: something in the workspace has. restless: others may go on changing it. mapped: array of uint, the
    inodes of files there that are mapped for writing. rewritten: bytes that were copied because a frozen copy had
    them, too; rewriting: µs that this took."""

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
    changed: Flag = False
    restless: Flag = False
    mapped: Raw = None
    rewritten: Uint = 0
    rewriting: Uint = 0


class InstallArguments(Message):
    """The arguments of a call of "pip install", and its value. base: the set that there is already. path: of the
    set."""

    TYPE = "install"
    requirements: Raw
    base: Str | None = None


class Installed(Message):
    TYPE = "installed"
    set: Str
    path: Str


class Told(Message):
    """answer: the fields of that reply. refused: what is wrong with the question. Without both: it could not be
    answered."""

    TYPE = "told"
    serial: Uint
    answer: Raw = None
    refused: Str | None = None


class Ask(Message):
    TYPE = "ask"
    prompt: Str
    password: Flag = False


class Display(Message):
    """Elements of displays, and what a display event carries. data: a map of MIME type to str (text and JSON) or
    bin. metadata: JSON. at: how many there were before it."""

    TYPE = "display"
    at: Uint = 0
    data: Raw
    metadata: Str | None = None
    display_id: Str | None = None
    update: Flag = False
    clear: Flag = False


class Call(Message):
    """again: what was done before, and undone, is to be done once more."""

    TYPE = "call"
    number: Uint
    function: Str
    arguments: Raw
    again: Flag = False


class Abandon(Message):
    TYPE = "abandon"
    number: Uint


class Frozen(Message):
    """pid as its warden sees it; 0 and a reason if there is no frozen copy."""

    TYPE = "frozen"
    serial: Uint
    pid: Uint = 0
    reason: Str | None = None
    homeless: Flag = False


class Measured(Message):
    TYPE = "measured"
    memory: Uint


class Described(Message):
    """A piece of a frame with descriptions; more: others follow. why: there is none."""

    TYPE = "described"
    serial: Uint
    data: Bin | None = None
    more: Flag = False
    why: Str | None = None


class DescriptionsRecord(Message):
    """variables: array of descriptions, in the order of their names; more: how many more there are."""

    TYPE = "descriptions"
    variables: Raw
    more: Uint = 0


class DescriptionRecord(Message):
    """type, size, text: as in vars. digest: of all that can be seen of the value; absent: that took too long.
    partial: there is something that cannot be seen."""

    TYPE = "description"
    name: Str
    type: Str
    size: Uint
    text: Str
    digest: Bin | None = None
    partial: Flag = False


class Report(Message):
    """The result of a task: the report inside done, whose refused has maps of name and reason."""

    TYPE = "report"
    size: Uint
    names: Raw
    refused: Raw


class Saved(Message):
    TYPE = "saved"
    owner: Uint
    session: Str
    created: Real
    size: Uint
    names: Raw
    refused: Raw

"""What clients and laird say to each other.

Made by client/python/generate.py from proto/message.h. PROTOCOL.md says what the fields mean.
"""

from __future__ import annotations

from typing import get_args

from .codec import Bin, Flag, Int, Message, Raw, Real, Str, Uint


class Request(Message):
    id: Uint


class Reply(Message):
    TYPE = "reply"
    id: Uint


class Function(Message):
    """A function that a cell may call. schema: of the arguments, returns: of the value, both JSON Schema as text.
    effect: not to be repeated in silence. ask: a person approves each call; caution: the same, unless the profile
    allows the function by name. timeout: seconds for one call. server, tool: an MCP server's name for itself and
    for its tool. bare: its name alone is enough in the cell, without `tools`."""

    TYPE = "function"
    name: Str
    schema: Str | None = None
    returns: Str | None = None
    doc: Str | None = None
    effect: Flag = False
    ask: Flag = False
    caution: Flag = False
    timeout: Real | None = None
    server: Str | None = None
    tool: Str | None = None
    bare: Flag = False


class Packages(Request):
    """The sets of packages that there are; prune: remove those that no session has, and tell these."""

    TYPE = "packages"
    prune: Flag = False


class Hello(Request):
    TYPE = "hello"
    client: Str | None = None


class Open(Request):
    TYPE = "open"
    session: Str
    profile: Str | None = None
    settings: Raw = None
    key: Str | None = None


class Exec(Request):
    TYPE = "exec"
    session: Str | None = None
    profile: Str | None = None
    settings: Raw = None
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
    argv: Raw = None
    timeout: Real | None = None
    key: Str | None = None
    detach: Flag = False
    stdout: Uint = 0
    stderr: Uint = 0
    displays: Uint = 0
    unlimited: Flag = False
    birth: Uint = 0


class Attach(Request):
    """One of the two: the number of the cell, or the key of its exec."""

    TYPE = "attach"
    session: Str | None = None
    cell: Uint = 0
    key: Str | None = None
    stream: Flag = False
    input: Flag = False
    stdout: Uint = 0
    stderr: Uint = 0
    displays: Uint = 0
    calls: Flag = False


class Results(Request):
    """Without a session: the caller's one-shots."""

    TYPE = "results"
    session: Str | None = None


class Input(Request):
    """number: of the `ask` that it answers; absent: of the open one."""

    TYPE = "input"
    exec: Uint
    text: Str | None = None
    eof: Flag = False
    number: Uint = 0
    key: Str | None = None


class Return(Request):
    """The answer to a call: a value, or an error's name and text. exec: the id of an own unanswered exec or attach.
    hold: no answer yet, the call is put aside, and text says why."""

    TYPE = "return"
    exec: Uint
    number: Uint
    value: Raw = None
    error: Str | None = None
    text: Str | None = None
    hold: Flag = False


class Calls(Request):
    """The calls that wait for an answer: of that session, or all."""

    TYPE = "calls"
    session: Str | None = None


class WatchCalls(Request):
    """Answered when the turn of calls is not seen any more, or after so many seconds; at once without these."""

    TYPE = "watch_calls"
    seen: Uint = 0
    wait: Real | None = None


class AnswerCall(Request):
    """The answer to a call by another program than its provider; at least one of session and of: the key of the
    cell's exec. cell: it must be that cell. approve: a call that asks is to be done."""

    TYPE = "answer_call"
    session: Str | None = None
    of: Str | None = None
    cell: Uint = 0
    number: Uint
    approve: Flag = False
    value: Raw = None
    error: Str | None = None
    text: Str | None = None
    key: Str | None = None
    birth: Uint = 0


class Interrupt(Request):
    """One of the two: the session, or the id of an own unanswered exec."""

    TYPE = "interrupt"
    session: Str | None = None
    exec: Uint = 0
    key: Str | None = None
    kill: Flag = False


class Reset(Request):
    """keep: array of str, the names to keep; absent: a fresh interpreter."""

    TYPE = "reset"
    session: Str
    keep: Raw = None
    key: Str | None = None
    birth: Uint = 0


class Shutdown(Request):
    TYPE = "shutdown"
    session: Str
    key: Str | None = None
    birth: Uint = 0


class Info(Request):
    """stay: to be asked counts as use, so idle_ttl begins anew."""

    TYPE = "info"
    session: Str
    birth: Uint = 0
    stay: Flag = False


class Checkpoint(Request):
    TYPE = "checkpoint"
    session: Str
    name: Str | None = None
    key: Str | None = None
    birth: Uint = 0


class Checkpoints(Request):
    TYPE = "checkpoints"
    session: Str
    birth: Uint = 0


class Restore(Request):
    """keep_files: the files stay as they are."""

    TYPE = "restore"
    session: Str
    name: Str
    key: Str | None = None
    birth: Uint = 0
    keep_files: Flag = False


class Drop(Request):
    TYPE = "drop"
    session: Str
    name: Str
    key: Str | None = None
    birth: Uint = 0


class Undo(Request):
    TYPE = "undo"
    session: Str
    n: Uint = 0
    keep_files: Flag = False
    key: Str | None = None
    birth: Uint = 0


class Branch(Request):
    """files: it has its own; share: those of the other session. Without both: its own, where files go back."""

    TYPE = "branch"
    session: Str
    branch: Str
    origin: Str | None = None
    files: Flag = False
    share: Flag = False
    at_call: Flag = False
    key: Str | None = None
    birth: Uint = 0


class Diff(Request):
    """How two states differ. since, until: checkpoints, as in restore; absent: the state before the last cell, and
    now."""

    TYPE = "diff"
    session: Str
    since: Str | None = None
    until: Str | None = None
    birth: Uint = 0


class Files(Request):
    """Files of a session. Paths are bytes, in its workspace."""

    TYPE = "files"
    session: Str
    path: Bin | None = None
    host: Flag = False
    after: Uint = 0
    birth: Uint = 0


class Get(Request):
    TYPE = "get"
    session: Str
    path: Bin
    offset: Uint = 0
    size: Uint = 0
    file: Uint = 0
    birth: Uint = 0


class Put(Request):
    TYPE = "put"
    session: Str
    path: Bin | None = None
    transfer: Uint = 0
    offset: Uint = 0
    data: Bin | None = None
    mode: Uint = 0
    more: Flag = False
    directory: Flag = False
    birth: Uint = 0


class CopyIn(Request):
    TYPE = "copy_in"
    session: Str
    source: Bin | None = None
    path: Bin | None = None
    transfer: Uint = 0
    birth: Uint = 0


class Complete(Request):
    """Questions about the state. cursor: how many characters come before it; absent: all. forget: array of str."""

    TYPE = "complete"
    session: Str
    code: Str
    cursor: Uint = 0
    birth: Uint = 0


class Inspect(Request):
    TYPE = "inspect"
    session: Str
    code: Str
    cursor: Uint = 0
    source: Flag = False
    birth: Uint = 0


class Vars(Request):
    TYPE = "vars"
    session: Str
    forget: Raw = None
    birth: Uint = 0


class History(Request):
    TYPE = "history"
    session: Str
    n: Uint = 0
    birth: Uint = 0


class Stray(Request):
    TYPE = "stray"
    session: Str
    birth: Uint = 0


class Check(Request):
    """check and is_complete: about code alone. Without a session, by an interpreter of the profile made for it."""

    TYPE = "check"
    session: Str | None = None
    profile: Str | None = None
    code: Str


class IsComplete(Request):
    """check and is_complete: about code alone. Without a session, by an interpreter of the profile made for it."""

    TYPE = "is_complete"
    session: Str | None = None
    profile: Str | None = None
    code: Str


class Save(Request):
    TYPE = "save"
    session: Str
    key: Str | None = None
    birth: Uint = 0


class Load(Request):
    TYPE = "load"
    session: Str
    key: Str | None = None
    birth: Uint = 0


class Saves(Request):
    """Without a session: the caller's one-shots."""

    TYPE = "saves"
    session: Str | None = None


class Unsave(Request):
    TYPE = "unsave"
    session: Str
    key: Str | None = None
    birth: Uint = 0


class Stop(Request):
    TYPE = "stop"


class Reload(Request):
    TYPE = "reload"


class ListSessions(Request):
    TYPE = "list"


class Stats(Request):
    TYPE = "stats"


class ErrorReply(Message):
    TYPE = "error"
    id: Uint
    code: Str
    message: Str
    ended: Raw = None
    setting: Str | None = None


class HelloReply(Reply):
    version: Uint
    server: Str
    pid: Uint
    frame_max: Uint
    instance: Str | None = None


class ExecReply(Reply):
    session: Str | None = None
    cell: Uint
    returncode: Int
    state: Str
    cause: Str | None = None
    stdout: Bin
    stderr: Bin
    text: Str | None = None
    data: Raw = None
    displays: Raw = None
    displays_dropped: Uint = 0
    error: Raw = None
    blocked: Raw = None
    artifacts: Raw = None
    artifacts_more: Flag = False
    stdout_dropped: Uint = 0
    stderr_dropped: Uint = 0
    stdout_stray: Uint = 0
    stderr_stray: Uint = 0
    restored: Uint = 0
    effects: Raw = None
    effects_more: Uint = 0
    files: Raw = None
    files_more: Uint = 0
    files_stay: Str | None = None
    files_unkept: Str | None = None
    unfaithful: Str | None = None
    forgotten: Uint = 0
    duration_ms: Real
    saved_damaged: Str | None = None
    saved_age: Real | None = None
    loaded: Raw = None
    not_loaded: Raw = None
    limit: Real | None = None
    language: Str | None = None
    birth: Uint = 0
    ended: Raw = None
    setting: Str | None = None


class Ended(Message):
    """ended, of a reply or an error: how the session that had the id before came to its end. why: a cause, or
    stopped, lost or unknown. when: seconds since the epoch. cells: how many it had run. not_saved: why its
    variables were not."""

    TYPE = "ended"
    why: Str
    when: Real | None = None
    birth: Uint = 0
    cells: Uint = 0
    saved: Flag = False
    not_saved: Str | None = None
    by_root: Flag = False


class Shown(Message):
    """Elements of displays, and what a display event carries. data: a map of MIME type to str (text and JSON) or
    bin. metadata: JSON. at: how many there were before it."""

    TYPE = "shown"
    at: Uint = 0
    data: Raw
    metadata: Str | None = None
    display_id: Str | None = None
    update: Flag = False
    clear: Flag = False


class Artifact(Message):
    """An element of artifacts. change: created or modified."""

    TYPE = "artifact"
    path: Bin
    size: Uint
    type: Str
    change: Str


class FileBack(Message):
    """change: restored, made (it had been removed or renamed), removed (it was not there), or failed."""

    TYPE = "file_back"
    path: Bin
    change: Str


class Effect(Message):
    """An element of effects. act: connected, sent, wrote, made, renamed, removed, ran, called or maybe_called.
    cell: the cell that did it, or the cell before it."""

    TYPE = "effect"
    act: Str
    target: Bin
    to: Bin | None = None
    cell: Uint


class ErrorFrame(Message):
    """An element of the frames of an error: a line of that cell, or of that file. values: a map of str to str."""

    TYPE = "error_frame"
    cell: Uint = 0
    file: Str | None = None
    line: Uint = 0
    column: Uint = 0
    function: Str
    source: Str | None = None
    values: Raw = None


class CellError(Message):
    """The error a cell ended with, and one thing the cage refused: the elements inside error and blocked."""

    TYPE = "cell_error"
    name: Str
    value: Str
    traceback: Str
    suggestion: Str | None = None
    line: Uint = 0
    offset: Uint = 0
    context: Str | None = None
    frames: Raw = None


class Blocked(Message):
    TYPE = "blocked"
    event: Str
    target: Str | None = None
    reason: Str


class RefusedName(Message):
    TYPE = "refused"
    name: Str
    reason: Str


class DetachedReply(Reply):
    """exec with detach. cell: absent while it waits."""

    key: Str
    session: Str | None = None
    cell: Uint = 0


class ResultRecord(Message):
    """state: queued, running or finished. age: seconds since it began to wait, began to run, or ended. bytes: the
    size of its answer."""

    TYPE = "result"
    key: Str | None = None
    cell: Uint = 0
    state: Str
    returncode: Int = 0
    age: Real
    bytes: Uint = 0


class ResultsReply(Reply):
    results: Raw


class CallRecord(Message):
    """A call that waits. key: of the exec. arguments: absent if they are large; bytes: their size. state: out (its
    provider has it), asks (it needs approval) or held (its provider has put it aside). text: why. age: seconds
    since the cell called."""

    TYPE = "call_record"
    session: Str | None = None
    key: Str | None = None
    cell: Uint
    number: Uint
    function: Str
    arguments: Raw = None
    bytes: Uint
    state: Str
    text: Str | None = None
    age: Real
    uid: Uint


class CallsReply(Reply):
    """more: how many there are beside these."""

    calls: Raw
    more: Uint = 0


class WatchCallsReply(Reply):
    """turn: another number whenever the calls that the client may see are others."""

    turn: Uint


class ResetReply(Reply):
    effects: Raw = None
    effects_more: Uint = 0


class InterruptReply(Reply):
    interrupted: Flag


class SessionInfo(Message):
    """One session, in the replies to open, info and branch and in the list of list. Times are seconds; created is
    since the epoch; idle is 0 while busy. key: of the cell in which a branch at a call has begun. own_files: the
    branch that was made has files of its own."""

    TYPE = "reply"
    id: Uint = 0
    session: Str
    profile: Str
    state: Str
    uid: Uint
    workspace: Str
    created: Real
    idle: Real
    cells: Uint
    queued: Uint
    pid: Uint = 0
    memory: Uint = 0
    idle_left: Real | None = None
    hard_left: Real | None = None
    level: Str | None = None
    language: Str | None = None
    version: Str | None = None
    python: Str | None = None
    guards: Raw = None
    checkpoints: Uint = 0
    checkpoint_memory: Uint = 0
    checkpoint_age: Real | None = None
    cpu: Real | None = None
    disk: Uint = 0
    files: Uint = 0
    tasks: Uint = 0
    memory_limit: Uint = 0
    tasks_limit: Uint = 0
    disk_limit: Uint = 0
    cpu_limit: Real | None = None
    cell_timeout: Real | None = None
    idle_ttl: Real | None = None
    hard_ttl: Real | None = None
    directory: Str | None = None
    writable: Flag = False
    opened: Flag = False
    effects: Raw = None
    effects_more: Uint = 0
    saved_damaged: Str | None = None
    saved_age: Real | None = None
    loaded: Raw = None
    not_loaded: Raw = None
    birth: Uint = 0
    ended: Raw = None
    key: Str | None = None
    own_files: Flag = False


class StateReply(Reply):
    """checkpoint, restore, undo: the present state is the one after this cell, 0 = before the first."""

    cell: Uint
    name: Str | None = None
    effects: Raw = None
    effects_more: Uint = 0
    files: Raw = None
    files_more: Uint = 0
    files_stay: Str | None = None


class SaveReply(Reply):
    """saved, loaded: arrays of str; not_saved, not_loaded: arrays of maps of name and reason. size: bytes."""

    saved: Raw
    not_saved: Raw
    size: Uint


class LoadReply(Reply):
    saved_age: Real
    loaded: Raw
    not_loaded: Raw
    birth: Uint = 0
    ended: Raw = None


class CheckpointRecord(Message):
    """files: how many the state has. files_size: bytes that are kept of them and the state before does not have.
    files_lack: some of these are not kept. parent: which record of the list it grew from, from 1 on; absent: the
    beginning. gap: a state between the two is forgotten. base: the present state is this one, or grew from it."""

    TYPE = "checkpoint"
    name: Str | None = None
    cell: Uint
    age: Real
    memory: Uint
    files: Uint = 0
    files_size: Uint = 0
    files_lack: Flag = False
    parent: Uint = 0
    gap: Flag = False
    base: Flag = False


class CheckpointsReply(Reply):
    checkpoints: Raw


class DiffReply(Reply):
    """diff. since, until: the cells after which the states are. ..._more: how many more have changed. ..._lack: why
    they are not known, or not all of them. unsure: array of str, variables that may have changed where nobody can
    see it."""

    since: Uint
    until: Uint
    files: Raw
    files_more: Uint = 0
    files_lack: Str | None = None
    variables: Raw
    variables_more: Uint = 0
    variables_lack: Str | None = None
    unsure: Raw = None


class FileDifference(Message):
    """An element of files. change: created, changed (its content), deleted, renamed or mode. was: the path before.
    kind: as in the record of a file. before: that of the first state, where it differs."""

    TYPE = "file_difference"
    path: Bin
    change: Str
    kind: Str
    was: Bin | None = None
    size: Uint = 0
    size_before: Uint = 0
    mode: Uint = 0
    mode_before: Uint = 0


class VariableDifference(Message):
    """An element of variables. change: new, changed or gone. type, text, size: as in vars; of one that is gone,
    what it was. ..._before: of one that has changed."""

    TYPE = "variable_difference"
    name: Str
    change: Str
    type: Str
    text: Str
    size: Uint = 0
    type_before: Str | None = None
    text_before: Str | None = None
    size_before: Uint = 0


class SaveRecord(Message):
    """saves. Names and not_saved are only there of one that was asked for; count: how many names there are."""

    TYPE = "save_record"
    session: Str
    uid: Uint
    created: Real
    expires: Real | None = None
    size: Uint
    count: Uint
    names: Raw = None
    not_saved: Raw = None
    before: Real | None = None
    damaged: Uint = 0


class SavesReply(Reply):
    saves: Raw
    more: Uint = 0


class PackageSet(Message):
    """An element of sets. size: bytes; absent: not known. made: seconds since the epoch. used: a session has it
    now. projects: array of str, NAME==VERSION. template: bytes of memory that its templates take; absent: there is
    none. sessions: array of str, those of the asker that have it, now or in a state to which they can go back."""

    TYPE = "package_set"
    set: Str
    size: Uint = 0
    made: Real
    used: Flag = False
    projects: Raw
    template: Uint = 0
    sessions: Raw = None


class PackagesReply(Reply):
    """path: of the store. taken: bytes that it has of packages, and cache: beside them, what uv keeps; total: how
    many it may have, absent: any. These are for root and laird's own user. more: how many there are beside
    these."""

    path: Str
    sets: Raw
    taken: Uint = 0
    cache: Uint = 0
    total: Uint = 0
    more: Uint = 0


class StopReply(Reply):
    """stop. saved: how many sessions. not_saved: an array of maps of name, of a session, and reason."""

    saved: Uint
    not_saved: Raw = None


class ReloadReply(Reply):
    """reload. path: of the file; absent: the settings inside laird. changes: an array of change records."""

    path: Bin | None = None
    changes: Raw


class CellTimes(Message):
    """An element of times: how many cells took so long, and longer than the element before it says. most: seconds;
    absent: all that took longer. ran: from the beginning to the answer. waited: from the request to the
    beginning."""

    TYPE = "cell_times"
    most: Real | None = None
    ran: Uint
    waited: Uint


class SettingChange(Message):
    """An element of changes. change: changed (a setting), added or removed (a profile). profile: absent: [daemon].
    before, after: as sessions.conf has the value. restart: it counts when laird is started anew."""

    TYPE = "setting_change"
    change: Str
    profile: Str | None = None
    setting: Str | None = None
    before: Bin | None = None
    after: Bin | None = None
    restart: Flag = False


class TransferReply(Reply):
    """A transfer continues under its number; 0: the file is complete. offset: the bytes so far."""

    transfer: Uint
    offset: Uint
    size: Uint = 0


class GetReply(Reply):
    data: Bin
    size: Uint
    file: Uint
    mode: Uint


class FileRecord(Message):
    """kind: file, directory, link or other. modified: seconds since the epoch."""

    TYPE = "file"
    name: Bin
    kind: Str
    size: Uint
    stored: Uint
    mode: Uint
    modified: Real


class FilesReply(Reply):
    files: Raw
    next: Uint = 0


class ListReply(Reply):
    sessions: Raw


class StatsReply(Reply):
    """timed_out, out_of_memory, crashed: cells. rolled_back: how often an interpreter was lost, and its session
    went back. audit_missed: lines. loading: profiles. times: an array of cell_times, shortest first. ran, waited:
    the sums of these times in seconds. languages: of the profiles, in their order."""

    uptime: Real
    pid: Uint
    keeper_pid: Uint
    sessions: Uint
    spares: Uint
    templates: Uint = 0
    opened: Uint
    ended: Uint
    cells: Uint
    requests: Uint
    refused: Uint
    memory: Uint
    profiles: Raw
    saving: Uint = 0
    timed_out: Uint = 0
    out_of_memory: Uint = 0
    crashed: Uint = 0
    rolled_back: Uint = 0
    audit_missed: Uint = 0
    loading: Raw = None
    times: Raw = None
    ran: Real | None = None
    waited: Real | None = None
    languages: Raw = None


class CompleteReply(Message):
    """The answers to questions come from the interpreter, in these tables, without id. start, end: the characters
    of the code that a match replaces."""

    TYPE = "reply"
    id: Uint = 0
    matches: Raw
    start: Uint
    end: Uint


class Match(Message):
    TYPE = "match"
    text: Str
    type: Str | None = None


class InspectReply(Message):
    TYPE = "reply"
    id: Uint = 0
    found: Flag
    name: Str | None = None
    type: Str | None = None
    signature: Str | None = None
    docstring: Str | None = None
    text: Str | None = None
    file: Str | None = None
    line: Uint = 0
    source: Str | None = None


class VarsReply(Message):
    """total: how many there are; variables has the first of them, by name. directory: where the session is."""

    TYPE = "reply"
    id: Uint = 0
    variables: Raw
    total: Uint
    directory: Bin | None = None


class Variable(Message):
    """shape: array of uint, the length of each dimension. size: bytes."""

    TYPE = "variable"
    name: Str
    type: Str
    shape: Raw = None
    size: Uint
    text: Str


class IsCompleteReply(Message):
    """status: complete, incomplete, invalid or unknown. indent: how the next line begins."""

    TYPE = "reply"
    id: Uint = 0
    status: Str
    indent: Str | None = None


class CheckReply(Message):
    """line, offset: from 1. context: that line. rule: the broken rule of the profile."""

    TYPE = "reply"
    id: Uint = 0
    valid: Flag
    error: Str | None = None
    line: Uint = 0
    offset: Uint = 0
    context: Str | None = None
    rule: Str | None = None


class HistoryReply(Reply):
    cells: Raw


class StrayReply(Reply):
    """at: how many bytes of both the answers before this one have given."""

    stdout: Bin
    stderr: Bin
    at: Uint = 0


class HistoryRecord(Message):
    """size: of the whole code in bytes; code may be only its beginning. undone: the present state does not come
    from it."""

    TYPE = "cell"
    cell: Uint
    code: Str
    size: Uint
    returncode: Int
    cause: Str | None = None
    duration_ms: Real
    undone: Flag = False


class StdoutEvent(Message):
    """at: how much the cell had written to this stream before."""

    TYPE = "stdout"
    id: Uint
    data: Bin
    at: Uint = 0


class StderrEvent(Message):
    """at: how much the cell had written to this stream before."""

    TYPE = "stderr"
    id: Uint
    data: Bin
    at: Uint = 0


class AskEvent(Message):
    """number: which question of the cell it is, from 1 on. After a lost connection a question comes again with its
    number."""

    TYPE = "ask"
    id: Uint
    prompt: Str
    password: Flag = False
    number: Uint = 0


class DisplayEvent(Message):
    TYPE = "display"
    at: Uint = 0
    data: Raw
    metadata: Str | None = None
    display_id: Str | None = None
    update: Flag = False
    clear: Flag = False
    id: Uint


class AliveEvent(Message):
    """A long cell still runs: for so many seconds, with this memory of its session and this CPU time of its
    processes. doing: the work that is done for it meanwhile."""

    TYPE = "alive"
    id: Uint
    elapsed: Real
    memory: Uint = 0
    cpu: Real = 0.0
    doing: Str | None = None


class CallEvent(Message):
    """number: of the call in its cell, from 1 on. arguments: map of str to anything."""

    TYPE = "call"
    id: Uint
    number: Uint
    function: Str
    arguments: Raw


class HeldEvent(Message):
    """The call asks to be approved, and is not to be done yet. text: who wants that."""

    TYPE = "held"
    id: Uint
    number: Uint
    function: Str
    arguments: Raw
    text: Str | None = None


class CancelEvent(Message):
    TYPE = "cancel"
    id: Uint
    number: Uint


# What may come before the final message of an exec, by its type.
Event = StdoutEvent | StderrEvent | AskEvent | DisplayEvent | AliveEvent | CallEvent | HeldEvent | CancelEvent
EVENTS: dict[str, type[Event]] = {event.TYPE: event for event in get_args(Event)}

"""How a cell has ended, and all that is told of it beside its output.

Made by client/python/generate.py from proto/causes.h.
"""

from __future__ import annotations

from typing import NamedTuple

ERROR = "error"
EXIT = "exit"
INTERRUPT = "interrupt"
TIMEOUT = "timeout"
OOM = "oom"
WORKSPACE = "workspace"
FORBIDDEN = "forbidden"
RESET = "reset"
SHUTDOWN = "shutdown"
IDLE_TTL = "idle_ttl"
HARD_TTL = "hard_ttl"
STOPPED = "stopped"
LOST = "lost"
UNKNOWN = "unknown"
KEPT = "kept"
NEW = "new"
ROLLED_BACK = "rolled_back"
ENDED = "ended"


class Cause(NamedTuple):
    news: bool
    cell: str | None
    measure: str | None
    session: str | None


class Fate(NamedTuple):
    goes_on: bool
    text: str


CAUSES: dict[str, Cause] = {
    "error": Cause(
        False,
        None,
        None,
        None,
    ),
    "exit": Cause(
        False,
        "the code exited",
        "the code exited with status %s",
        None,
    ),
    "interrupt": Cause(
        False,
        "the code was interrupted",
        None,
        None,
    ),
    "timeout": Cause(
        True,
        "the code was stopped at its time limit",
        "the code was stopped after its %s s",
        None,
    ),
    "oom": Cause(
        True,
        "the code was killed: it used more memory than its session may have",
        None,
        None,
    ),
    "workspace": Cause(
        True,
        "the code was killed: its files outgrew the limit of its session",
        None,
        None,
    ),
    "forbidden": Cause(
        False,
        "the code breaks a rule, which stderr names, and was not run",
        None,
        None,
    ),
    "reset": Cause(
        True,
        "the session was reset while the code ran",
        None,
        None,
    ),
    "shutdown": Cause(
        True,
        "the session was ended while the code ran",
        None,
        "it was shut down",
    ),
    "idle_ttl": Cause(
        True,
        "the session was idle for too long",
        None,
        "it was idle for too long",
    ),
    "hard_ttl": Cause(
        True,
        "the session reached the end of its time",
        None,
        "its time was over",
    ),
    "stopped": Cause(
        True,
        None,
        None,
        "laird was stopped",
    ),
    "lost": Cause(
        True,
        None,
        None,
        "laird was killed, or the host went down",
    ),
    "unknown": Cause(
        True,
        None,
        None,
        "nobody knows why",
    ),
}

FATES: dict[str, Fate] = {
    "kept": Fate(
        True,
        "the session goes on; what the code had done until then stays",
    ),
    "new": Fate(
        True,
        "the session goes on; what the code had done until then stays",
    ),
    "rolled_back": Fate(
        False,
        "the session was rolled back to %s: its %s are as they were then",
    ),
    "reset": Fate(
        False,
        "the session was reset: all its variables and imports are lost, its files stay",
    ),
    "ended": Fate(
        False,
        "the session has ended, and its files are gone; to use its id makes a new one",
    ),
}

DEATH_EXCEPTION = "SessionLost"
DEATH_CELL = "the interpreter crashed or was killed: %s"
DEATH_SESSION = "it was ended: %s"
FATE_BEFORE = "; that was before this code, which ran on what came back"
FATE_UNCHANGED = "the session is as it was"

NOTES = {
    "ended": "the session is new: the one before has ended (%s), and its %s are gone%s",
    "damaged": "the variables do not come back: %s",
    "loaded": "the session goes on from the state that was saved %s ago: %s",
    "blocked": "blocked: %s",
    "cause": "%s%s",
    "fate": "%s%s",
    "back": "files brought back: %s",
    "stay": "files stay as they are: %s",
    "effects": "not undone: %s",
    "unkept": "going back will not bring back %s",
    "unfaithful": "the state after cell %s is not kept: %s",
    "stray": "the first %s bytes of %s are of earlier code: a thread or task wrote them before this code began",
    "dropped": "%s bytes of %s were not kept",
    "displays": "%s more things were shown than are kept",
    "artifacts": "more files were created or modified than are listed",
}

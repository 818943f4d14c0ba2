"""Live, caged Python sessions: the client of laird.

    import lair

    lair.run("1 + 1").text                   # one cell, in a session of its own

    with lair.Session("analysis") as s:      # a session that stays
        s.run("x = 41")
        s.run("x + 1").text

lair.aio has the same for asyncio, lair.tools for models that call functions.
"""

from .calling import Calling, Hold, current
from .client import Client
from .connection import Connection
from .errors import CellFailed, DeadlineError, LairError, SessionLost
from .functions import Function
from .messages import Blocked, CallRecord, CellError, CheckpointRecord, Event, ExecReply, SessionInfo, StateReply
from .outline import stubs, tokens
from .result import (
    Alive,
    Artifact,
    Back,
    Diff,
    Display,
    Effect,
    Effects,
    Ended,
    FileBack,
    FileDifference,
    Output,
    PackageSet,
    Result,
    Saved,
    SavedState,
    State,
    Stray,
    VariableDifference,
    Waiting,
)
from .session import Session, answer_call, approve_call, calls, check, packages, refuse_call, run, saves, sessions
from .start import default_socket
from .steps import Completion, File

__all__ = [
    "Alive",
    "Artifact",
    "Back",
    "Blocked",
    "CallRecord",
    "Calling",
    "CellError",
    "CellFailed",
    "CheckpointRecord",
    "Client",
    "Completion",
    "Connection",
    "DeadlineError",
    "Diff",
    "Display",
    "Effect",
    "Effects",
    "Ended",
    "Event",
    "ExecReply",
    "File",
    "FileBack",
    "FileDifference",
    "Function",
    "Hold",
    "LairError",
    "Output",
    "PackageSet",
    "Result",
    "Saved",
    "SavedState",
    "Session",
    "SessionInfo",
    "SessionLost",
    "State",
    "StateReply",
    "Waiting",
    "Stray",
    "VariableDifference",
    "answer_call",
    "approve_call",
    "calls",
    "check",
    "current",
    "default_socket",
    "packages",
    "refuse_call",
    "run",
    "saves",
    "sessions",
    "stubs",
    "tokens",
]
__version__ = "0.1.0"

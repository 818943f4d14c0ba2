"""Live, caged Python sessions: the client of laird."""

from .client import Client, Event, LairError, default_socket
from .messages import ExecReply, SessionInfo

__all__ = ["Client", "Event", "ExecReply", "LairError", "SessionInfo", "default_socket"]
__version__ = "0.1.0"

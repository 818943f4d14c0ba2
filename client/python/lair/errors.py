"""The errors: a request was refused, was not answered, or a cell did not end well."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .result import Ended, Result

# These codes mean that no daemon has done the request, or that nobody knows.
UNREACHABLE = frozenset({"no_daemon", "start", "lost", "protocol", "closed"})
# Nobody knows which pieces of a file have arrived, and it does no harm to send all of them again. Users never see
# this code.
BEGIN_AGAIN = "begin_again"


class LairError(Exception):
    """A request was refused, or could not be carried out: `code` is for programs, `message` for people.

    The codes are those of the protocol, and of the client's own: `no_daemon` (nothing answers on the socket),
    `start` (a daemon could not be started), `lost` (the connection ended; nobody knows whether the request was
    carried out), `protocol` (the process that answers does not speak the protocol), `deadline`, and `closed` (the
    user has closed the connection).

    `setting`: if a setting of the daemon decided it: which, in which file. It is for the operator and may have a path
    of the host: a traceback shows it as a note, `str()` does not.
    """

    def __init__(self, code: str, message: str, setting: str | None = None) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.setting = setting
        _note(self, setting)


def _note(error: BaseException, setting: str | None) -> None:
    if setting and hasattr(error, "add_note"):  # Python 3.11
        error.add_note(f"{setting} decides this")


def seconds(name: str, value: object) -> float | None:
    """An option that is a time or None."""
    if value is None:
        return None
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < float("inf"):
        return float(value)
    raise LairError("bad_request", f"{name}: expected seconds, more than 0; got {value!r}")


class DeadlineError(LairError, TimeoutError):
    """No answer came in time. If a cell was waited for, it is interrupted."""

    def __init__(self, message: str) -> None:
        super().__init__("deadline", message)


class SessionLost(LairError):
    """A Session that was used has ended, and with it its variables and files; `ended` says why. Nothing has been
    done. Its open() begins a new session. With Session(renew=True) a new session takes its place, and the next
    Result says so."""

    def __init__(self, message: str, ended: Ended, setting: str | None = None) -> None:
        super().__init__("gone", f"{message}; open() begins a new session", setting)
        self.ended = ended


class CellFailed(Exception):
    """What Result.raise_for_error() raises: the cell raised an exception, was stopped, or left with a status."""

    def __init__(self, result: Result) -> None:
        super().__init__(result.summary())
        self.result = result
        _note(self, result.setting)

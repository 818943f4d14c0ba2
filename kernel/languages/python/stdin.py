"""sys.stdin, input() and getpass(): questions to the client. `ask` is the interpreter's, in C."""

import builtins
import getpass
import io
import sys
from typing import Callable, Optional, Tuple

ask: Callable[[str, bool], Optional[str]]
_NOBODY = "nobody answers: this cell was run without input"  # as ask says it
_input = builtins.input


def _no_word(what: str) -> None:
    pass


refuse: Callable[[str], None] = _no_word  # by a notebook: what is raised if nobody answers


class _Buffer(io.BufferedIOBase):
    """sys.stdin.buffer: the same lines as bytes."""

    name = "<stdin>"
    mode = "rb"

    def __init__(self, text: "_Stdin") -> None:
        self._text = text

    def readable(self) -> bool:
        return True

    def fileno(self) -> int:
        return 0

    def close(self) -> None:
        pass

    def read(self, size: Optional[int] = -1) -> bytes:
        return self._text.read(size).encode("utf-8", "surrogateescape")

    def readline(self, size: Optional[int] = -1) -> bytes:
        return self._text.readline(size).encode("utf-8", "surrogateescape")


class _Stdin(io.TextIOBase):
    name = "<stdin>"
    mode = "r"
    encoding = "utf-8"
    errors = "surrogateescape"

    def __init__(self) -> None:
        self.buffer = _Buffer(self)
        self._pending = ""

    def readable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return False

    def fileno(self) -> int:
        return 0

    def close(self) -> None:
        pass

    def _line(self) -> str:
        """The next line with its end; "" at the end of input."""
        if not self._pending:
            try:
                answer = ask("", False)
            except EOFError:
                answer = None
            if answer is None:
                return ""
            self._pending = answer if answer.endswith("\n") else answer + "\n"
        end = self._pending.index("\n") + 1
        line, self._pending = self._pending[:end], self._pending[end:]
        return line

    def readline(self, size: Optional[int] = -1) -> str:  # type: ignore[override]
        line = self._line()
        if size is not None and 0 <= size < len(line):
            line, self._pending = line[:size], line[size:] + self._pending
        return line

    def read(self, size: Optional[int] = -1) -> str:
        text = ""
        while size is None or size < 0 or len(text) < size:
            line = self._line()
            if not line:
                break
            text += line
        if size is not None and 0 <= size < len(text):
            text, self._pending = text[:size], text[size:] + self._pending
        return text


def _first_line(answer: Optional[str]) -> Tuple[str, str]:
    """The first line of an answer, and the rest."""
    if answer is None:
        raise EOFError("EOF when reading a line")
    first, _, rest = answer.partition("\n")
    return first, rest


def _asked(prompt: str, password: bool, what: str) -> Optional[str]:
    try:
        return ask(prompt, password)
    except EOFError as error:
        if str(error) == _NOBODY:
            refuse(what)
        raise


def _input_of_client(prompt: object = "", /) -> str:
    """Read a string from the client, without its end of line. The client gets the prompt."""
    if sys.stdin is not _stdin:
        return _input(prompt)
    line, rest = _first_line(_stdin.readline() if _stdin._pending else _asked(str(prompt), False, "raw_input"))
    if rest:
        _stdin._pending = rest if rest.endswith("\n") else rest + "\n"
    return line


def _getpass(prompt: str = "Password: ", stream: object = None) -> str:
    """Ask the client for a password. The rest of another answer is never taken for it."""
    return _first_line(_asked(str(prompt), True, "getpass"))[0]


def forget() -> None:
    """If a cell leaves a part of its answers unread, the next cell does not get it."""
    _stdin._pending = ""


_stdin = _Stdin()
_input_of_client.__name__ = _input_of_client.__qualname__ = "input"
_getpass.__name__ = _getpass.__qualname__ = "getpass"
builtins.input = _input_of_client
getpass.getpass = getpass.unix_getpass = _getpass  # type: ignore[attr-defined]
sys.stdin = sys.__stdin__ = _stdin  # type: ignore[misc, assignment]

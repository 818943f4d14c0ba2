"""A program under a terminal of its own, and what a person does at it."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import termios
import time

from daemon import wait_until

# A terminal is asked to mark what is pasted, and not to, whether it shows pictures, and for its modes: no person sees that.
_ASKED = re.compile("\x1b\\[\\?(2004|25|12|1)[hl]|\x1b_Gi=31[^\x1b]*\x1b\\\\")
# What the prompt draws at once, without wrapping lines; there a movement stands for blanks, and colours for nothing.
_DRAWN = re.compile("(?:\x1b\\[0m)?\x1b\\[\\?7l(.*?)\x1b\\[\\?7h(?:\x1b\\[0m)?", re.DOTALL)
_BLANKS = re.compile("\x1b\\[([0-9]+)D\x1b\\[([0-9]+)C|\x1b\\[()()C")
_LOOKS = re.compile("\x1b\\[[0-9;]*m|\x1b\\[J")


# At the end all of a cell is drawn again.
_AGAIN = re.compile("(\x1b\\[[0-9]+[AD])+(?!\x1b).*\r\r\n", re.DOTALL)


def _plain(drawn: re.Match[str]) -> str:
    if _AGAIN.fullmatch(_LOOKS.sub("", drawn[1])):
        return "\r\n"
    return _BLANKS.sub(lambda m: " " * (int(m[2] or 1) - int(m[1] or 0)), _LOOKS.sub("", drawn[1]))


class Terminal:
    """A program under a terminal of its own."""

    def __init__(self, command: list[str], env: dict[str, str]) -> None:
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir("/")  # a prompt shows its session any other
            os.execve(command[0], command, {**env, "TERM": "xterm", "PROMPT_TOOLKIT_NO_CPR": "1"})
        self.seen = self.raw = ""
        self.marks = False  # whether it was asked to mark pastes,
        self.asked = False  # and for pictures

    def _read(self) -> None:
        said = os.read(self.fd, 65536).decode(errors="replace")
        self.raw += said
        said = self.seen + said
        self.marks = self.marks or "\x1b[?2004h" in said
        self.asked = self.asked or "\x1b_Gi=31" in said
        self.seen = _ASKED.sub("", _DRAWN.sub(_plain, said))

    def expect(self, text: str, timeout: float = 10.0) -> str:
        """Read until the text has come; what came before it."""
        deadline = time.monotonic() + timeout
        while text not in self.seen:
            ready, _, _ = select.select([self.fd], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, f"no {text!r} in {self.seen!r}"
            try:
                self._read()
            except OSError:
                raise AssertionError(f"no {text!r} in {self.seen!r}") from None
        before, _, self.seen = self.seen.partition(text)
        return before

    def prompt(self, text: str = ">>> ") -> str:
        """Wait for a prompt that takes keys: the line editor sets its mode after having shown it."""
        before = self.expect(text)
        wait_until(lambda: not termios.tcgetattr(self.fd)[3] & termios.ICANON, "the terminal takes keys")
        return before

    def commanded(self) -> None:
        """Wait until the terminal has its own mode again, in which Ctrl-C is a signal."""
        wait_until(lambda: termios.tcgetattr(self.fd)[3] & termios.ISIG, "Ctrl-C is a signal")

    def question(self) -> None:
        """Wait until it has asked for pictures, as the line editor does before its first key."""
        deadline = time.monotonic() + 10
        while not self.asked:
            ready, _, _ = select.select([self.fd], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, f"no question in {self.seen!r}"
            self._read()

    def type(self, text: str) -> None:
        os.write(self.fd, text.encode())

    def say(self, line: str, expected: str = "", timeout: float = 10.0) -> None:
        """Type a line at the next prompt, and read until the text has come, if one is given."""
        self.prompt()
        self.type(line + "\r")
        if expected:
            self.expect(expected, timeout)

    def paste(self, text: str) -> None:
        """As a terminal does that was asked to mark it."""
        assert self.marks
        self.type("\x1b[200~" + text.replace("\n", "\r") + "\x1b[201~")

    def wait(self, timeout: float = 10.0) -> int:
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            ready, _, _ = select.select([self.fd], [], [], 0.05)
            if ready:
                try:
                    self._read()
                except OSError:
                    break
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def close(self) -> None:
        try:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        except (ProcessLookupError, ChildProcessError):
            pass
        os.close(self.fd)

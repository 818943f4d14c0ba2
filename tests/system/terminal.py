"""A program under a terminal of its own, and what a person does at it."""

from __future__ import annotations

import os
import pty
import select
import signal
import termios
import time

from daemon import wait_until


class Terminal:
    """A program under a terminal of its own."""

    def __init__(self, command: list[str], env: dict[str, str]) -> None:
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execve(command[0], command, {**env, "TERM": "xterm"})
        self.seen = ""

    def expect(self, text: str, timeout: float = 10.0) -> str:
        """Read until the text has come; what came before it."""
        deadline = time.monotonic() + timeout
        while text not in self.seen:
            ready, _, _ = select.select([self.fd], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, f"no {text!r} in {self.seen!r}"
            try:
                self.seen += os.read(self.fd, 65536).decode(errors="replace")
            except OSError:
                raise AssertionError(f"no {text!r} in {self.seen!r}") from None
        before, _, self.seen = self.seen.partition(text)
        return before

    def prompt(self, text: str = ">>> ") -> str:
        """Wait for a prompt that takes keys: the line editor sets its mode after having shown it."""
        before = self.expect(text)
        wait_until(lambda: not termios.tcgetattr(self.fd)[3] & termios.ICANON, "the terminal takes keys")
        return before

    def type(self, text: str) -> None:
        os.write(self.fd, text.encode())

    def wait(self, timeout: float = 10.0) -> int:
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            ready, _, _ = select.select([self.fd], [], [], 0.05)
            if ready:
                try:
                    self.seen += os.read(self.fd, 65536).decode(errors="replace")
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

"""A command, run in the cage of its session for a client of E2B: a cell of a branch that has nothing else to do.

Its output is the cell's output. The cell asks for lines of input: each is an order in JSON, and the first question tells
the number of the process. What has become of it is shown when it has ended."""

from __future__ import annotations

import base64
import errno
import fcntl
import json
import os
import queue
import signal
import struct
import subprocess
import termios
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:

    def display(shown: dict[str, str], *, raw: bool) -> None: ...


class _NoTerminal(Exception):
    pass


def _show(told: dict[str, Any]) -> None:
    display({"application/vnd.lair.e2b+json": json.dumps(told)}, raw=True)


def _home(path: str) -> str:
    """A path as the client has it: its home is the workspace."""
    if path == "/home/user" or path.startswith("/home/user/"):
        return os.path.join(os.getcwd(), path[len("/home/user/") :])
    if path == "~" or path.startswith("~/"):
        return os.path.join(os.getcwd(), path[2:])
    return path


def _pump(master: int) -> None:
    while True:
        try:
            data = os.read(master, 65536)
        except OSError:
            return
        if not data:
            return
        while data:
            data = data[os.write(1, data) :]


def _resize(master: int, size: dict[str, int]) -> None:
    fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", size["rows"], size["cols"], 0, 0))


def _start(given: dict[str, Any]) -> tuple[subprocess.Popen[bytes], int | None]:
    env = {**os.environ, **given["envs"]}
    cwd = _home(given["cwd"]) if given["cwd"] else None
    if cwd is not None and not os.path.isdir(cwd):
        raise NotADirectoryError(errno.ENOTDIR, f"cwd '{given['cwd']}' does not exist")
    command = [given["cmd"], *given["args"]]
    if not given["pty"]:
        stdin = subprocess.PIPE if given["stdin"] else subprocess.DEVNULL
        return subprocess.Popen(command, stdin=stdin, env=env, cwd=cwd, start_new_session=True), None
    try:
        master, slave = os.openpty()
    except PermissionError as error:
        raise _NoTerminal(str(error)) from None
    _resize(master, given["pty"])

    def controlling() -> None:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    process = subprocess.Popen(
        command,
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env=env,
        cwd=cwd,
        start_new_session=True,
        preexec_fn=controlling,
    )
    os.close(slave)
    return process, master


def _write(process: subprocess.Popen[bytes], master: int | None, orders: queue.Queue[bytes | None]) -> None:
    """Writes what is to go into the process, so that a full pipe holds up nothing else."""
    fd = master if master is not None else process.stdin.fileno() if process.stdin else None
    while True:
        data = orders.get()
        try:
            if data is None:
                if process.stdin:
                    process.stdin.close()
                elif master is not None:
                    os.write(master, b"\x04")
                fd = None
            while data and fd is not None:
                data = data[os.write(fd, data) :]
        except OSError:
            fd = None


def _wait(process: subprocess.Popen[bytes], pump: threading.Thread | None) -> None:
    status = process.wait()
    if pump is not None:
        pump.join(1)
    name = ""
    if status < 0:
        try:
            name = f"signal: {(signal.strsignal(-status) or str(-status)).lower()}"
        except ValueError:
            name = f"signal: {-status}"
    _show({"exit": status, "status": name or f"exit status {status}", "exited": status >= 0})


def _main(packed: str) -> None:
    given = json.loads(base64.b64decode(packed))
    try:
        process, master = _start(given)
    except _NoTerminal as error:
        _show({"failed": "unimplemented", "why": str(error)})
        return
    except OSError as error:
        missing = isinstance(error, (FileNotFoundError, NotADirectoryError))
        code = "invalid_argument" if missing else "permission_denied" if error.errno in (1, 13) else "internal"
        _show({"failed": code, "why": str(error)})
        return
    pump = None
    if master is not None:
        pump = threading.Thread(target=_pump, args=(master,), daemon=True)
        pump.start()
    orders: queue.Queue[bytes | None] = queue.Queue()
    threading.Thread(target=_write, args=(process, master, orders), daemon=True).start()
    threading.Thread(target=_wait, args=(process, pump), daemon=True).start()
    told = json.dumps({"pid": process.pid})
    while True:
        try:
            order = json.loads(input(told))
        except EOFError:
            break
        told = ""
        if "in" in order:
            orders.put(base64.b64decode(order["in"]))
        elif "close" in order:
            orders.put(None)
        elif "signal" in order:
            try:
                os.killpg(process.pid, order["signal"])
            except ProcessLookupError:
                pass
        elif "size" in order and master is not None:
            _resize(master, order["size"])

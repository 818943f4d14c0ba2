"""Terminals: what a session may do with its own where the profile grants them, and that it has no other."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cage import SHAPES, Host, Shape
from drive import Interpreter

PRELUDE = (Path(__file__).resolve().parent / "prelude.py").read_text()
SOME_NAMES = ("root", "user", "user-old-kernel", "root-without-userns", "user-in-a-container")
SOME = [shape for shape in SHAPES if shape.name in SOME_NAMES]
# What mounts them has these flags alone: no set-uid, no programs.
FORBIDDING = [
    Shape("root-forbidding-them", True, "strong-nomem", ("mount#3:a=EPERM",)),
    Shape("user-forbidding-them", False, "strong-nomem", ("mount#3:a=EACCES",)),
]
WITHOUT_TREE = [shape for shape in SHAPES if not shape.tree]

HELPERS = """
import errno, fcntl, os, pty, select, signal, struct, termios, time, tty

def told(fd, end=None):
    "What comes out of a terminal until it ends, or until it has said this."
    seen = b""
    while end is None or end not in seen:
        if not select.select([fd], [], [], 20)[0]:
            return seen + b" and nothing more"
        try:
            data = os.read(fd, 4096)
        except OSError:
            data = b""
        if not data:
            break
        seen += data
    return seen

def on_a_terminal(*command):
    pid, master = pty.fork()
    if not pid:
        os.execv("/bin/sh", ["sh", *command])
    return pid, master

def size_set(fd, rows, columns):
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("4H", rows, columns, 0, 0))

def errno_of(go):
    try: go()
    except OSError as error: return errno.errorcode[error.errno]
"""

PERMITTED = {
    "a pair": """
master, slave = os.openpty()
os.write(master, b"typed\\n")
[os.isatty(slave), os.ttyname(slave)[:9], os.read(slave, 99), os.read(master, 99)] == [True, "/dev/pts/", b"typed\\n", b"typed\\r\\n"]""",
    "its modes": """
master, slave = os.openpty()
before = termios.tcgetattr(slave)
tty.setraw(slave), tty.setcbreak(slave), termios.tcsetattr(slave, termios.TCSADRAIN, before)
termios.tcflush(slave, termios.TCIOFLUSH), termios.tcdrain(slave), termios.tcflow(slave, termios.TCOON)
termios.tcgetattr(slave) == before""",
    "its size": """
master, slave = os.openpty()
size_set(master, 30, 90)
os.get_terminal_size(slave) == (90, 30)""",
    "a shell": """
pid, master = on_a_terminal("-c", "tty; stty size; test -t 0 && echo three of them > /dev/tty")
size_set(master, 11, 22)
said = told(master)
os.waitpid(pid, 0)[1] == 0 and b"/dev/pts/" in said and b"three of them" in said""",
    "jobs": """
pid, master = on_a_terminal("-i", "+m")
os.write(master, b"PS1=; cat\\n")
os.write(master, b"\\x04echo $((40 + 2)) and $$; exit 3\\n")
said = told(master)
b"42 and " in said and os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 3""",
    "an interrupt": """
pid, master = on_a_terminal("-c", "echo ready; exec sleep 100")
told(master, b"ready")
os.write(master, b"\\x03")
os.WTERMSIG(os.waitpid(pid, 0)[1]) == signal.SIGINT""",
    "a hangup": """
pid, master = on_a_terminal("-c", "echo ready; exec sleep 100")
told(master, b"ready")
os.close(master)
os.WTERMSIG(os.waitpid(pid, 0)[1]) == signal.SIGHUP""",
    "a change of its size": """
pid, master = on_a_terminal("-c", "trap 'stty size; exit' WINCH; echo ready; while :; do sleep 0.05; done")
told(master, b"ready")
size_set(master, 7, 77)
b"7 77" in told(master) and os.waitpid(pid, 0)[1] == 0""",
    "pty.spawn": """
said = []
def seen(fd):
    said.append(data := os.read(fd, 999))
    return data
status = pty.spawn(["/bin/sh", "-c", "test -t 1 && echo it is"], seen)
status == 0 and b"it is" in b"".join(said)""",
    "sixteen": "[os.openpty() for _ in range(16)] and errno_of(os.openpty) == 'ENOSPC'",
}

# Each is refused with this error; they run without the hook.
FORBIDDEN = {
    "to type into its own": ("os.openpty()[1]", "fcntl.ioctl(fd, 0x5412, b'x')"),
    "to type by the other end": ("os.openpty()[0]", "fcntl.ioctl(fd, 0x5412, b'x')"),
    "another line discipline": ("os.openpty()[1]", "fcntl.ioctl(fd, 0x5423, struct.pack('i', 21))"),
    "the console's selection": ("os.openpty()[1]", "fcntl.ioctl(fd, 0x541C, b'\\x03')"),
    "what the console prints": ("os.openpty()[1]", "fcntl.ioctl(fd, 0x541D, 0)"),
    "the lock of its modes": ("os.openpty()[1]", "fcntl.ioctl(fd, 0x5457, bytes(64))"),
    "a signal by its number": ("os.openpty()[0]", "fcntl.ioctl(fd, 0x40045436, 9)"),
    "upper bits": (
        "os.openpty()[1]",
        "call('ioctl', fd, 0x7fff00005412, b'x')",
    ),
    "a terminal for a process that leads no session": ("os.openpty()[1]", "fcntl.ioctl(fd, termios.TIOCSCTTY, 1)"),
    "a session for a live interpreter": ("0", "os.setsid()"),
    "a terminal that nobody has": ("0", "os.open('/dev/tty', os.O_RDWR)"),
    "a device of its own": ("0", "os.mknod('tty', 0o20600, os.makedev(5, 0))"),
    "other files there": ("0", "os.mknod('/dev/pts/x', 0o20600, os.makedev(136, 0))"),
    "another name for it": ("0", "os.unlink('/dev/ptmx')"),
    "the console": ("0", "os.open('/dev/console', os.O_RDWR)"),
    "the terminals of the machine": ("0", "os.open('/dev/tty1', os.O_RDWR)"),
    "a file system of terminals": (
        "0",
        "call('mount', b'devpts', b'/tmp', b'devpts', 0, b'')",
    ),
}


@pytest.fixture(scope="module", params=SOME, ids=lambda shape: shape.name)
def granted(request: pytest.FixtureRequest) -> Iterator[Host]:
    yield from opened(request.param, terminals=True, subprocess=True)


def opened(shape: Shape, **configure: Any) -> Iterator[Host]:
    if shape.made_by_root and os.geteuid() != 0:
        pytest.skip(f"the shape {shape.name} takes root to make")
    host = Host(shape, **configure)
    yield host
    host.close()


@pytest.fixture
def python(granted: Host) -> Iterator[Interpreter]:
    warden, interpreter = granted.session()
    assert interpreter.run(HELPERS).returncode == 0
    yield interpreter
    warden.close()


def value(python: Interpreter, code: str) -> Any:
    result = python.run(code, timeout=60)
    assert result.returncode == 0 and result.text, result
    return eval(result.text)


def without_hook(host: Host, python: Interpreter) -> None:
    names = "\n".join(f"{name} = {value!r}" for name, value in host.world.parameters.items())
    assert value(python, f"{names}\n{PRELUDE}\nremove_hook()\n1") == 1


@pytest.mark.parametrize("name", PERMITTED)
def test_permitted(python: Interpreter, name: str) -> None:
    result = python.run(PERMITTED[name], timeout=60)
    assert result.text == "True", result


@pytest.mark.parametrize("name", FORBIDDEN)
def test_forbidden(granted: Host, python: Interpreter, name: str) -> None:
    without_hook(granted, python)
    made, code = FORBIDDEN[name]
    error = value(python, f"fd = {made}\nerrno_of(lambda: {code})")
    assert error in ("EPERM", "ENOSYS", "ENXIO", "EACCES", "ENOENT", "EROFS"), error


def test_others(granted: Host, python: Interpreter) -> None:
    """Those of the host and of other sessions have other numbers in no session: what it opens is its own."""
    theirs, ours = os.openpty()
    os.set_blocking(theirs, False)
    other, neighbour = granted.session()
    try:
        assert neighbour.run(HELPERS).returncode == 0
        assert (
            value(neighbour, "mine = os.openpty()\nos.set_blocking(mine[0], False)\nos.ttyname(mine[1])")
            == "/dev/pts/0"
        )
        without_hook(granted, python)
        assert value(python, "os.listdir('/dev/pts')") == ["ptmx"]
        number = os.ttyname(ours).rsplit("/", 1)[1]
        wanted = [f"/dev/pts/{number}", "/dev/pts/0", f"/proc/{os.getpid()}/fd/{ours}", "/proc/1/root/dev/pts/0"]
        assert (
            value(python, f"[errno_of(lambda: os.open(it, os.O_RDWR)) is None for it in {wanted!r}]") == [False] * 4
        )
        said = "[errno_of(lambda: os.write(os.open(it, os.O_WRONLY | os.O_NOCTTY), b'here')) for it in {!r}]"
        value(python, f"own = [os.openpty() for _ in range(16)]\n{said.format(wanted)}")
        assert value(neighbour, "errno_of(lambda: os.read(mine[0], 99))") == "EAGAIN"
        with pytest.raises(BlockingIOError):
            os.read(theirs, 99)
    finally:
        other.close()
        os.close(theirs)
        os.close(ours)


def test_programs_find_it_by_its_name(python: Interpreter) -> None:
    assert value(
        python, "m, s = os.openpty()\nstatus = os.stat(os.ttyname(s))\nstatus.st_uid == os.getuid(), status.st_mode"
    ) == (
        True,
        0o20600,
    )


@pytest.mark.parametrize("shape", SOME, ids=lambda shape: shape.name)
def test_not_granted(shape: Shape) -> None:
    for host in opened(shape, subprocess=True):
        warden, interpreter = host.session()
        refused(interpreter, "no terminals here (terminals-not-granted)")
        without_hook(host, interpreter)
        assert value(interpreter, "os.path.exists('/dev/pts'), os.path.exists('/dev/tty')") == (False, False)
        assert value(interpreter, "bool(first(os.openpty, lambda: os.open('/dev/ptmx', os.O_RDWR)))") is False
        warden.close()


@pytest.mark.parametrize("shape", [*WITHOUT_TREE, *FORBIDDING], ids=lambda shape: shape.name)
def test_not_possible(shape: Shape) -> None:
    """Without mounts the terminals would be the host's. A host that forbids these mounts gives the rest of the cage."""
    for host in opened(shape, subprocess=True, terminals=True):
        warden, interpreter = host.session()
        assert warden.ready["level"] == shape.level
        refused(
            interpreter,
            "no terminals here: this host gives sessions no file system for them (terminals-not-possible)",
        )
        without_hook(host, interpreter)
        assert value(interpreter, "bool(first(os.openpty))") is False
        warden.close()


def refused(python: Interpreter, sentence: str) -> None:
    for code, event in (
        ("import os; os.openpty()", "os.openpty"),
        ("import pty; pty.spawn('true')", "pty.spawn"),
        ("import os; os.forkpty()", "os.forkpty"),
    ):
        result = python.run(code)
        assert result.err.decode().splitlines()[-1] == f"PermissionError: /dev/ptmx: {sentence}", result
        reason = sentence[sentence.rindex("(") + 1 : -1]
        assert result.blocked == [{"event": event, "target": "/dev/ptmx", "reason": reason}]

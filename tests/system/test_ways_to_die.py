"""Whatever a cell uses up before it is killed, the session goes back to the state before it, with its files, and soon: as root,
and as an ordinary user, for whom no control group counts."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from daemon import TRACES, Daemon, descendants, is_traced, wait_until
from lair import Client, LairError

ROOT = os.geteuid() == 0
TIME = 1.5  # of each cell
GRACE = 0.5  # between interrupt and kill, as shipped
# What may come on top: a loaded machine tears a thousand processes down slowly.
SOON, LATER = 1.0, 10.0

FORK = "import os, signal, sys, time\n"
DEAF = "for number in (1, 2, 3, 10, 12, 15): signal.signal(number, signal.SIG_IGN)\n"
BOMBS = {
    "that heeds interrupts": "while True:\n    try: os.fork()\n    except OSError: pass",
    "deaf": DEAF + "while True:\n    try: os.fork()\n    except OSError: pass",
    "that stops itself": DEAF + "while True:\n"
    "    try:\n        if os.fork() == 0: os.kill(os.getpid(), signal.SIGSTOP)\n"
    "    except OSError: pass",
    "that leaves its family": DEAF + "while True:\n"
    "    try:\n        if os.fork() == 0: os.setsid()\n"
    "    except OSError: pass",
    # Each process lives no longer than it takes to fork the next one.
    "that is gone before it is killed": DEAF + "signal.signal(signal.SIGCHLD, signal.SIG_IGN)\n"
    "def run():\n"
    "    while True:\n"
    "        try:\n            if os.fork(): os._exit(0)\n"
    "        except OSError: pass\n"
    "for _ in range(8):\n    if os.fork() == 0: run()\n"
    "while True: pass",
    "that wakes the others": DEAF + "first = os.getpid()\nwhile True:\n"
    "    try: os.fork()\n    except OSError: pass\n"
    "    for pid in range(2, 60):\n"
    "        if pid != first:\n"
    "            try: os.kill(pid, signal.SIGCONT)\n            except OSError: pass",
}
USES = {
    "descriptors": "import os\n"
    + "kept = []\nwhile True:\n    try: kept.append(os.dup(0))\n    except OSError: pass",
    "pipes that nobody reads": "import os\nkept = []\nwhile True:\n"
    "    try:\n        kept.append(os.pipe()); os.set_blocking(kept[-1][1], False); os.write(kept[-1][1], bytes(1 << 16))\n"
    "    except OSError: pass",
    "threads": "import threading, time\nwhile True:\n"
    "    try: threading.Thread(target=time.sleep, args=(60,)).start()\n    except (RuntimeError, MemoryError): pass",
    "memory": "kept = []\nwhile True:\n    try: kept.append(bytearray(1 << 20))\n    except MemoryError: pass",
    "memory in files": "import os\nkept = []\nwhile True:\n"
    "    try:\n        fd = os.memfd_create('x'); os.write(fd, bytes(1 << 20)); kept.append(fd)\n    except (OSError, MemoryError): pass",
    "shared memory": "import os\nn = 0\nwhile True:\n"
    "    try:\n        n += 1; open(f'/dev/shm/{n}', 'wb').write(bytes(1 << 20))\n    except OSError: pass",
    "inodes of the scratch directory": "import os, tempfile\nn = 0\nwhile True:\n"
    "    try:\n        n += 1; open(os.path.join(tempfile.gettempdir(), str(n)), 'w').close()\n    except OSError: pass",
    "files of the workspace": "n = 0\nwhile True:\n"
    "    try:\n        n += 1; open(f'n{n % 2000}', 'w').write('x')\n    except OSError: pass",
    "timers": "import ctypes, ctypes.util\nlibc = ctypes.CDLL(None)\nwhile True: libc.timer_create(1, None, ctypes.byref(ctypes.c_long()))",
    "locks of files": "import fcntl, os\nfd = os.open('locked', os.O_RDWR | os.O_CREAT)\nn = 0\nwhile True:\n"
    "    try:\n        n += 2; fcntl.lockf(fd, fcntl.LOCK_EX, 1, n)\n    except OSError: pass",
    "output": "import os\nwhile True: os.write(1, bytes(1 << 16))",
    "signals": "import os, signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, range(34, 64))\nwhile True:\n"
    "    try: os.kill(os.getpid(), 40)\n    except OSError: pass",
    "its limit of processes": "import resource\nresource.setrlimit(resource.RLIMIT_NPROC, (0, 0))\nwhile True: pass",
    "its limit of descriptors": "import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (8, 8))\nwhile True: pass",
}
KINDS = ["root", "user"] if ROOT else ["user"]


@pytest.fixture(scope="module", params=KINDS)
def daemon(request: pytest.FixtureRequest) -> Iterator[Daemon]:
    profile = {"preload": "", "spares": "0", "checkpoint": "cell", "memory": "512M"}
    settings = {
        "profile default": {**profile, "processes": "48"},
        "profile large": {**profile, "processes": "1024", "memory": "0"},
    }
    uid = 4242 if ROOT and request.param == "user" else None
    daemon = Daemon(settings, uid=uid)
    yield daemon
    daemon.close()


def check(daemon: Daemon, session: str, code: str, within: float, profile: str | None = None) -> None:
    client: Client = daemon.client(timeout=60)
    client.exec("x = 41; print(x, file=open('file', 'w'))", session, profile=profile)
    client.exec("y = x + 1", session)
    begun = time.monotonic()
    reply = client.exec(f"x = 'changed'; open('file', 'w').write(x)\n{code}", session, timeout=TIME)
    took = time.monotonic() - begun
    assert (reply.state, reply.cause) in (("rolled_back", "timeout"), ("rolled_back", "oom")), reply
    assert took < TIME + GRACE + within, took
    assert len(reply.stderr) < 64 << 10
    assert client.exec("x, y, open('file').read()", session).text == "(41, 42, '41\\n')"
    assert client.exec("import os; os.wait() if os.fork() else os._exit(0)", session).returncode == 0


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_fork_bomb(daemon: Daemon, session: str, bomb: str) -> None:
    check(daemon, session, FORK + BOMBS[bomb], SOON)


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_fork_bomb_of_a_thousand(daemon: Daemon, session: str, bomb: str) -> None:
    check(daemon, session, FORK + BOMBS[bomb], LATER, "large")


@pytest.mark.parametrize("what", USES)
def test_something_used_up(daemon: Daemon, session: str, what: str) -> None:
    code = f"import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n{USES[what]}"
    check(daemon, session, code, SOON)


def copies(daemon: Daemon) -> list[int]:
    """Oldest first."""
    comms = {it: Path(f"/proc/{it}/comm") for it in descendants(daemon.process.pid)}
    frozen = [it for it, comm in comms.items() if comm.exists() and comm.read_text() == "lair-frozen\n"]
    return sorted(frozen, key=lambda it: int(Path(f"/proc/{it}/stat").read_text().rpartition(")")[2].split()[19]))


@contextmanager
def forks_fail(pids: list[int], error: str, when: str = "1+") -> Iterator[None]:
    inject = f"inject=clone:error={error}:when={when}"
    command = ["strace", "-qq", "-o", os.devnull, "-e", "trace=clone", "-e", inject]
    with subprocess.Popen([*command, *(f"-p{it}" for it in pids)]) as strace:
        try:
            wait_until(lambda: all(map(is_traced, pids)), "they are traced")
            yield
        finally:
            strace.terminate()


def two_states(daemon: Daemon, session: str) -> Client:
    """Its copies are the daemon's last two."""
    client: Client = daemon.client(timeout=60)
    client.exec("x = 41; print(x, file=open('file', 'w'))", session)
    client.exec("y = x + 1; print(y, file=open('file', 'a'))", session)
    wait_until(lambda: {1, 2} <= {it.cell for it in client.checkpoints(session)}, "both are saved")
    return client


CRASH = "import os; x = 'changed'; open('file', 'w').write(x); os._exit(9)"
traces = pytest.mark.skipif(not TRACES, reason="the daemon's processes cannot be traced")


@traces
@pytest.mark.parametrize("error", ["EAGAIN", "ENOMEM"])
def test_forks_of_the_recovery_fail(daemon: Daemon, session: str, error: str) -> None:
    """For more than a second: it is waited, and no checkpoint is given up for that."""
    client = two_states(daemon, session)
    with forks_fail(copies(daemon), error, "1..120"):
        reply = client.exec(CRASH, session)
    assert (reply.state, reply.cause, reply.restored) == ("rolled_back", "exit", 2), reply
    assert [it["path"] for it in reply.files or ()] == [b"file"] and reply.files_stay is None
    assert client.exec("x, y, open('file').read()", session).text == "(41, 42, '41\\n42\\n')"
    assert "broken" not in daemon.log()


@traces
def test_forks_of_the_recovery_fail_for_long(daemon: Daemon, session: str) -> None:
    """After ten seconds an older state is taken, with its files; the other one is kept for later."""
    client = two_states(daemon, session)
    with forks_fail(copies(daemon)[-1:], "EAGAIN"):
        reply = client.exec(CRASH, session)
    assert (reply.state, reply.cause, reply.restored) == ("rolled_back", "exit", 1), reply
    assert [it["path"] for it in reply.files or ()] == [b"file"] and reply.files_stay is None
    assert client.exec("x, 'y' in dir(), open('file').read()", session).text == "(41, False, '41\\n')"
    client.restore(session, "2")
    assert client.exec("x, y, open('file').read()", session).text == "(41, 42, '41\\n42\\n')"
    assert "broken" not in daemon.log()


@traces
@pytest.mark.parametrize("share", [False, True])
def test_forks_of_a_birth_fail(daemon: Daemon, session: str, share: bool) -> None:
    """A branch waits for a moment; then it is refused with the reason, and its parent goes on."""
    client = two_states(daemon, session)
    branch, files, state = f"{session}.b", not share, "(41, 42, '41\\n42\\n')"
    scarce = pytest.raises(LairError, match="processes or memory are scarce")
    with forks_fail(copies(daemon)[-1:], "EAGAIN"), scarce:
        client.branch(session, branch, files=files)
    assert client.exec("x, y, open('file').read()", session).text == state
    with forks_fail(copies(daemon)[-1:], "EAGAIN", "1..20"):
        client.branch(session, branch, files=files)
    assert client.exec("x, y, open('file').read()", branch).text == state

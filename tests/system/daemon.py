"""A laird of one's own: started on a private socket, ended with proof that it left nothing behind."""

from __future__ import annotations

import ctypes
import errno
import json
import os
import random
import shutil
import signal
import subprocess
import tempfile
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lair import Client

ROOT = Path(__file__).parents[2]
BIN = Path(os.environ.get("LAIR_BIN", ROOT / "build/release/bin")).absolute()
SANITIZED = (BIN / "laird").exists() and b"__asan_init" in (BIN / "laird").read_bytes()

# Whether a test can trace a daemon: its processes are not dumpable.
TRACES = bool(shutil.which("strace")) and os.geteuid() == 0

_PR_SET_CHILD_SUBREAPER = 36

# Users that tests are run as: each worker has its own.
WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:])
UIDS_EACH = 4096


def own_uids() -> int:
    """The first of UIDS_EACH numbers for the sessions of one laird of root: the kernel counts processes by user, and two
    lairds must not share any. Others may run on this host, so it is one of many."""
    return 1901000000 + UIDS_EACH * random.SystemRandom().randrange(20000)


def uids(first: int, n: int = UIDS_EACH) -> str:
    return f"{first}-{first + n - 1}"


# Bare and quick, for most tests. A [daemon] or [profile default] of a test's own replaces the settings it names.
DEFAULTS: dict[str, dict[str, str]] = {
    "daemon": {"log": "stderr", "uids": uids(own_uids()), "template_images": "off"},
    "profile default": {"preload": "", "spares": "1", "grace": "500ms", "checkpoint": "off"},
}

# Exit statuses of lair that are not a cell's.
TROUBLE = 125
USAGE = 2

Settings = dict[str, dict[str, str]]

_started: set[int] = set()


def become_subreaper() -> None:
    """Whatever outlives its parent below this process becomes its child, where it can be seen."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "PR_SET_CHILD_SUBREAPER")


def children(pid: int) -> list[int]:
    found: list[int] = []
    try:
        for task in Path(f"/proc/{pid}/task").iterdir():
            found += map(int, (task / "children").read_text().split())
    except OSError:
        pass
    return found


def descendants(pid: int) -> list[int]:
    found = []
    for child in children(pid):
        found += [child, *descendants(child)]
    return found


def command_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        return ""


def is_traced(pid: int) -> bool:
    return "TracerPid:\t0\n" not in Path(f"/proc/{pid}/status").read_text()


def wait_until(condition: Callable[[], Any], what: str, timeout: float = 10.0) -> Any:
    """Poll until it holds, and return what it said."""
    deadline = time.monotonic() + timeout
    while not (result := condition()):
        assert time.monotonic() < deadline, f"not within {timeout} s: {what}"
        time.sleep(0.01)
    return result


def own_groups() -> list[Path]:
    """Where this process is, in every hierarchy of control groups."""
    found = []
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, group = line.split(":", 2)
        for mount in (controllers, "unified") if controllers else ("unified", ""):
            path = Path("/sys/fs/cgroup", mount, group.lstrip("/"))
            if (path / "cgroup.procs").exists():
                found.append(path)
    return found


def group_of(pid: int, controller: str) -> Path:
    """Where a process is counted."""
    for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines():
        _, controllers, group = line.split(":", 2)
        if controller in controllers.split(","):
            return Path("/sys/fs/cgroup", controllers, group.lstrip("/"))
    unified = Path("/sys/fs/cgroup/unified")
    return (unified if unified.exists() else Path("/sys/fs/cgroup")) / group.lstrip("/")


def group_name(socket: Path) -> str:
    """What a laird calls its directory of control groups: FNV-1a of its socket's path."""
    value = 14695981039346656037
    for byte in str(socket).encode():
        value = (value ^ byte) * 1099511628211 % (1 << 64)
    return f"lair-{value:016x}"


def config_text(settings: Settings) -> str:
    lines = []
    for section in dict.fromkeys([*DEFAULTS, *settings]):
        lines.append(f"[{section}]")
        base = DEFAULTS["profile default"] if section.startswith("profile ") else DEFAULTS.get(section, {})
        lines += [f"{key} = {value}" for key, value in {**base, **settings.get(section, {})}.items()]
    return "\n".join(lines) + "\n"


def memory_of(pid: int, kind: str = "VmRSS") -> int:
    """Bytes, as the kernel counts them."""
    status = Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith(kind)) << 10


class Daemon:
    """One laird, the directory it lives in, and its clients."""

    def __init__(
        self,
        settings: Settings | None = None,
        uid: int | None = None,
        binaries: Path = BIN,
        wait: bool = True,
        groups: list[Path] | None = None,
        env: dict[str, str] | None = None,
        options: tuple[str, ...] = (),
        limits: dict[str, int | str] | None = None,
    ) -> None:
        self.options = options
        self.limits = limits or {}  # as prlimit names them; "soft:hard" where these differ
        self.binaries = binaries
        self.uid = uid
        self.home = groups
        self.directory = Path(tempfile.mkdtemp(prefix="lair-test-"))
        self.directory.chmod(0o755)
        self.socket = self.directory / "run" / "socket"
        self.workspaces = self.directory / "work"
        self.config = self.directory / "sessions.conf"
        self.log_path = self.directory / "log"
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.directory),
            "SECRET_OF_LAIRD": "hunter2",
            **(env or {}),
        }
        self.passed: dict[str, int] = {}  # descriptors by name, as a service manager passes them on
        self.uids = uids(own_uids())
        self._clients: list[Client] = []
        self.configure(settings or {})
        if uid is not None:
            os.chown(self.directory, uid, uid)
        self._others = set(children(os.getpid()))
        self.start(wait)

    def start(self, wait: bool = True) -> None:
        """Also where one has ended, with the same files."""
        log = self.log_path.open("ab")
        self.process = subprocess.Popen(
            self._in_groups(self._as_user(self._limited(self._with_passed(self._command())))),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=self.env,
            pass_fds=tuple(self.passed.values()),
        )
        log.close()
        _started.add(self.process.pid)
        if wait:
            self.wait_ready()

    def _command(self) -> list[str]:
        laird = str(self.binaries / "laird")
        return [laird, "--config", str(self.config), "--socket", str(self.socket), *self.options]

    def _with_passed(self, command: list[str]) -> list[str]:
        if not self.passed:
            return command
        places = " ".join(f"{3 + i}<&{fd}" for i, fd in enumerate(self.passed.values()))
        count, names = len(self.passed), ":".join(self.passed)
        script = f'exec {places}; LISTEN_PID=$$ LISTEN_FDS={count} LISTEN_FDNAMES={names} exec "$@"'
        return ["bash", "-c", script, "bash", *command]

    def _limited(self, command: list[str]) -> list[str]:
        limits = [f"--{name}={n if isinstance(n, str) else f'{n}:{n}'}" for name, n in self.limits.items()]
        return ["prlimit", *limits, *command] if limits else command

    def _in_groups(self, command: list[str]) -> list[str]:
        """Started in these control groups, where nobody else is."""
        if self.home is None:
            return command
        doors = " ".join(f"{group}/cgroup.procs" for group in self.home)
        return ["sh", "-c", f'for door in {doors}; do echo $$ > $door; done; exec "$@"', "sh", *command]

    def _as_user(self, command: list[str]) -> list[str]:
        if self.uid is None:
            return command
        return ["setpriv", f"--reuid={self.uid}", f"--regid={self.uid}", "--clear-groups", *command]

    def configure(self, settings: Settings) -> None:
        """Write sessions.conf; a running daemon wants a SIGHUP to see it."""
        places = {"workspaces": str(self.workspaces), "saves": str(self.directory / "saves")}
        base = {"daemon": {"uids": self.uids, **places}}
        merged = {**settings, "daemon": {**base["daemon"], **settings.get("daemon", {})}}
        self.config.write_text(config_text(merged))

    def wait_ready(self) -> None:
        def answers() -> bool:
            assert self.process.poll() is None, f"laird ended with {self.process.returncode}:\n{self.log()}"
            return self.socket.exists() and self._hello()

        wait_until(answers, "laird answers", 30)

    def _hello(self) -> bool:
        with Client(str(self.socket), timeout=5) as client:
            return client.hello().version == 1

    def log(self) -> str:
        return self.log_path.read_text(errors="replace")

    def client(self, timeout: float = 60.0) -> Client:
        client = Client(str(self.socket), timeout=timeout)
        self._clients.append(client)
        return client

    def lair(
        self,
        *arguments: str,
        input: str = "",
        env: dict[str, str] | None = None,
        timeout: float = 60,
        cwd: Path = Path("/"),  # a prompt shows its session any other
    ) -> subprocess.CompletedProcess[str]:
        """Run the command line against this daemon."""
        return subprocess.run(
            self._as_user([str(self.binaries / "lair"), *arguments]),
            input=input,
            capture_output=True,
            text=True,
            errors="surrogateescape",
            timeout=timeout,
            cwd=cwd,
            env={**self.env, "LAIR_SOCKET": str(self.socket), "LAIR_NO_START": "1", **(env or {})},
        )

    def lair_json(self, *arguments: str) -> Any:
        return json.loads(self.lair(*arguments, "--json").stdout)

    def processes(self) -> list[int]:
        """Everything below the keeper."""
        return descendants(self.process.pid)

    def terminate(self, timeout: float = 50.0) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout)

    def end(self) -> None:
        """SIGTERM, and look around."""
        try:
            status = self.process.poll()
            assert status is None, f"laird has ended by itself with {status}:\n{self.log()}"
            assert self.terminate() == 0, self.log()
            assert self.left_behind() == []
        finally:
            self.close()

    def share(self) -> None:
        """Let every user of the host in."""
        self.socket.parent.chmod(0o711)
        self.socket.chmod(0o666)

    def as_user(self, uid: int, act: str, groups: tuple[int, ...] = ()) -> str:
        """What a client of another user prints, or the code it is refused with. `c` is the client."""
        script = (
            "import sys, lair\n"
            f"c = lair.Client({str(self.socket)!r}, timeout=20)\n"
            f"try:\n{textwrap.indent(act, '    ')}\nexcept lair.LairError as e: print(e.code)\nc.close()"
        )
        joined = f"--groups={','.join(map(str, groups))}" if groups else "--clear-groups"
        return subprocess.run(
            ["setpriv", f"--reuid={uid}", f"--regid={uid}", joined, "/usr/bin/python3", "-c", script],
            env={"PYTHONPATH": str(ROOT / "client/python"), "PYTHONDONTWRITEBYTECODE": "1"},
            stdout=subprocess.PIPE,
            text=True,
            check=True,
            timeout=60,
        ).stdout.strip()

    def left_behind_processes(self) -> list[str]:
        """What of Lair's has become our child since, without having been started by us."""
        others = self._others | _started
        orphans = [pid for pid in children(os.getpid()) if pid not in others and "lair" in command_of(pid)]
        return [f"process {pid}: {command_of(pid)}" for pid in orphans]

    def groups(self) -> list[Path]:
        """Its directories of control groups, beneath the group that it was started in."""
        found = [group / group_name(self.socket) for group in self.home or own_groups()]
        return [path for path in found if path.exists()]

    def left_behind(self) -> list[str]:
        """What there should not be any more once laird has ended."""
        files = [path for path in (self.socket, Path(f"{self.socket}.lock")) if path.exists()]
        spaces = list(self.workspaces.iterdir()) if self.workspaces.exists() else []
        return self.left_behind_processes() + [str(path) for path in files + spaces + self.groups()]

    def _remove_groups(self) -> bool:
        """Nobody else does if the keeper was killed, and what it had takes a moment to die."""
        try:
            for path in self.groups():
                for directory, _, _ in os.walk(path, topdown=False):
                    os.rmdir(directory)
        except OSError as error:
            assert error.errno == errno.EBUSY, error
            return False
        return True

    def close(self) -> None:
        """End it, and remove every trace. Idempotent."""
        for client in self._clients:
            client.close()
        self._clients.clear()
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        wait_until(self._remove_groups, "its control groups are empty")
        shutil.rmtree(self.directory, ignore_errors=True)

"""The hosts a cage is tried on, and what lies around it for an attack to find."""

from __future__ import annotations

import itertools
import os
import shutil
import socket
import stat
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Dict, List, Tuple

from drive import KERNEL, Interpreter, Template, Warden, place

DENY = KERNEL.parent.parent / "tests" / "deny"
# The kernel counts processes by user: other workers' tests have others.
FIRST_UID = 61000 + 10 * int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:])
ROOT = os.geteuid() == 0

NEW_USER = "10000000"
NEW_ANY = "7e020000"
# What the filters of containers refuse, with the namespaces allowed.
NO_NAME = ("sethostname=EPERM", "setdomainname=EPERM")
OLD_KERNEL = tuple(
    f"{call}=ENOSYS"
    for call in ("landlock_create_ruleset", "clone3", "close_range", "mount_setattr", "pidfd_open", "openat2")
)


@dataclass(frozen=True)
class Shape:
    """A host, as it looks to laird: who laird is, and what the kernel lacks."""

    name: str
    root: bool
    level: str
    deny: Tuple[str, ...] = ()
    proc: bool = (
        True  # whether a fresh /proc may be mounted; one that is partly covered, as in a container, may not
    )
    groups: bool = False  # whether laird makes control groups
    # whether the profile grants what the shipped `workbench` does, and sessions have directories and limits of their own
    workbench: bool = False

    @property
    def made_by_root(self) -> bool:
        return self.root or not self.proc

    @property
    def uid(self) -> int:
        """Whom sessions run as."""
        return FIRST_UID if self.root else FIRST_UID + 1 if ROOT else os.geteuid()

    @property
    def tree(self) -> bool:
        """Whether sessions have a file system of their own."""
        return self.level.startswith("strong")

    @property
    def named(self) -> bool:
        """Whether sessions have a host name of their own."""
        return self.tree and self.deny != NO_NAME

    @property
    def wrapper(self) -> Tuple[str, ...]:
        user = ("/usr/bin/setpriv", f"--reuid={self.uid}", f"--regid={self.uid}", "--clear-groups")
        deny = (str(DENY), *self.deny, "--") if self.deny else ()
        cover = ("/usr/bin/unshare", "--mount", "/bin/sh", "-c", 'mount -t tmpfs none /proc/sys && exec "$@"', "--")
        return (*(() if self.proc else cover), *(user if ROOT and not self.root else ()), *deny)


SHAPES = [
    Shape("root", True, "strong-nomem"),
    Shape("root-with-groups", True, "strong", groups=True),
    Shape("user", False, "strong-nomem"),
    Shape("user-workbench", False, "strong-nomem", workbench=True),
    Shape("root-workbench", True, "strong", groups=True, workbench=True),
    Shape("root-without-userns", True, "strong-nomem", (f"clone:{NEW_USER}=EPERM",)),
    Shape("user-old-kernel", False, "strong-nomem", OLD_KERNEL),
    Shape("root-old-kernel", True, "strong-nomem", OLD_KERNEL),
    Shape("user-in-a-container", False, "strong-nomem", NO_NAME, proc=False),
    Shape("user-without-namespaces", False, "landlock", (f"clone:{NEW_ANY}=EPERM",)),
    Shape("user-without-mounts", False, "landlock", ("mount=EACCES",)),
    Shape("root-without-namespaces", True, "landlock", (f"clone:{NEW_ANY}=EPERM",)),
    Shape("root-with-nothing", True, "uid", (f"clone:{NEW_ANY}=EPERM", *OLD_KERNEL)),
    Shape("user-with-nothing", False, "readonly", (f"clone:{NEW_ANY}=EPERM", *OLD_KERNEL)),
]

LIMITS: Dict[str, Any] = {
    "subprocess": False,
    "memory": 512 << 20,
    "processes": 64,
    "open_files": 256,
    "file_size": 64 << 20,
    "scratch_size": 64 << 20,
}


WORKBENCH: Dict[str, Any] = {
    "subprocess": True,
    "terminals": True,
    "packages": "on",
    "home": "/home/user",
    "threads": 2,
}


@dataclass
class World:
    """Everything a session must not reach, owned by its own user, so that file modes protect nothing; but at
    the level `uid`, where they are the guard, by somebody else."""

    shape: Shape
    root: Path = field(init=False)
    sockets: List[socket.socket] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.root = Path(tempfile.mkdtemp(prefix="lair-cage-", dir="/var/tmp"))
        for name in ("out", "ro", "rw", "other"):
            (self.root / name).mkdir()
        (self.root / "out" / "secret").write_text("OUTSIDE")
        (self.root / "ro" / "file").write_text("READABLE")
        (self.root / "other" / "secret").write_text("OTHERS")
        self.tmp_secret = Path(tempfile.mkstemp(prefix="lair-cage-", dir="/tmp")[1])
        self.tmp_secret.write_text("TMP")
        self._listen()
        if ROOT:
            for path in (self.root, *self.root.rglob("*"), self.tmp_secret):
                if self.shape.level != "uid" or path.name == "rw":
                    os.chown(path, self.shape.uid, self.shape.uid)
        self.root.chmod(0o711)
        self.tmp_secret.chmod(0o600)

    def _listen(self) -> None:
        self.stream = socket.socket(socket.AF_UNIX)
        self.stream.bind(str(self.root / "out" / "stream"))
        self.datagram = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.datagram.bind(str(self.root / "out" / "datagram"))
        self.abstract = socket.socket(socket.AF_UNIX)
        self.abstract.bind(f"\0{self.root.name}")
        self.tcp = socket.socket()
        self.tcp.bind(("127.0.0.1", 0))
        self.udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.udp.bind(("127.0.0.1", 0))
        self.sockets = [self.stream, self.datagram, self.abstract, self.tcp, self.udp]
        for listener in self.sockets:
            listener.setblocking(False)
            if listener.type == socket.SOCK_STREAM:
                listener.listen()

    def visited(self) -> List[str]:
        """Which of the listeners somebody reached."""
        found = []
        for listener in self.sockets:
            try:
                if listener.type == socket.SOCK_STREAM:
                    listener.accept()[0].close()
                else:
                    listener.recv(1)
                found.append(str(listener.getsockname()))
            except BlockingIOError:
                pass
        return found

    def fingerprint(self) -> Dict[str, Tuple[Any, ...]]:
        """All that could be changed outside."""
        found: Dict[str, Tuple[Any, ...]] = {}
        for top in (self.root / "out", self.root / "ro", self.root / "other"):
            for path in (top, *top.rglob("*")):
                meta = path.lstat()
                content = path.read_bytes() if stat.S_ISREG(meta.st_mode) else b""
                found[str(path)] = (meta.st_mode, meta.st_uid, meta.st_nlink, meta.st_mtime_ns, content)
        return found

    @property
    def parameters(self) -> Dict[str, Any]:
        return {
            "OUT": str(self.root / "out"),
            "RO": str(self.root / "ro"),
            "RW": str(self.root / "rw"),
            "OTHER": str(self.root / "other"),
            "TMP": str(self.tmp_secret),
            "PID": os.getpid(),
            "ABSTRACT": self.root.name,
            "TCP": self.tcp.getsockname(),
            "UDP": self.udp.getsockname(),
        }

    def close(self) -> None:
        for listener in self.sockets:
            listener.close()
        self.tmp_secret.unlink()
        shutil.rmtree(self.root)


class Groups:
    """Control groups of version 1 with the limits below, as laird makes them for a warden."""

    numbers = itertools.count()
    LIMITS = (("memory", "memory.limit_in_bytes", LIMITS["memory"]), ("pids", "pids.max", LIMITS["processes"] + 1))

    def __init__(self) -> None:
        own = dict(line.split(":", 2)[1:] for line in Path("/proc/self/cgroup").read_text().splitlines())
        self.made: List[Path] = []
        self.homes = [Path("/sys/fs/cgroup", name, own.get(name, "").lstrip("/")) for name, _, _ in self.LIMITS]

    @property
    def there(self) -> bool:
        return ROOT and all((home / "tasks").exists() for home in self.homes)

    def make(self) -> Tuple[int, ...]:
        doors, number = [], next(self.numbers)
        for home, (_, file, limit) in zip(self.homes, self.LIMITS):
            group = home / f"lair-cage-{os.getpid()}-{number}"
            group.mkdir()
            self.made.append(group)
            (group / file).write_text(str(limit))
            doors.append(os.open(group / "tasks", os.O_WRONLY))
        return tuple(doors)

    def remove(self) -> None:
        for group in self.made:
            group.rmdir()


class Host:
    """A template on a host of some shape, in a world with things to attack."""

    def __init__(self, shape: Shape, **configure: Any) -> None:
        self.shape = shape
        self.world = World(shape)
        self.groups = Groups()
        if shape.groups:
            configure = {"memory_group": True, "processes_group": True, **configure}
        self.differing: Dict[str, Any] = {}
        granted = {"read": [str(self.world.root / "ro")], "write": [str(self.world.root / "rw")]}
        if shape.workbench:
            configure = {**WORKBENCH, **configure}
            places = [place(kind, path) for kind, paths in granted.items() for path in paths]
            limits = {"memory": LIMITS["memory"], "home": WORKBENCH["home"]}
            self.differing = {"places": places, **limits}
            granted = {}
        self.template = Template(
            uid=shape.uid if shape.root else 0,
            owner=shape.uid if ROOT else None,
            wrapper=shape.wrapper,
            **{**LIMITS, **granted, **configure},
        )
        self._serial = 0

    def session(self) -> Tuple[Warden, Interpreter]:
        self._serial += 1
        doors = self.groups.make() if self.shape.groups else ()
        warden = Warden(self.template, self._serial, doors, **self.differing)
        for door in doors:
            os.close(door)
        return warden, warden.spawn()

    def close(self) -> None:
        self.template.close()
        self.groups.remove()
        self.world.close()

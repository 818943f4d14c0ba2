"""A suite is run on two sides: in a session, and beside it in the same Python without Lair."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from abc import ABC, abstractmethod
from pathlib import Path

from daemon import Daemon
from lair import LairError
from places import Place
from table import Suite

DRIVER = (Path(__file__).parent / "driver.py").read_text()
HOURS = 6
DEATHS = 40

# Not one of sessions': a user of no rights, as theirs are.
PLAIN_UID = 1899999999

ROOM = {
    "memory": "4G",
    "processes": "256",
    "scratch_size": "2G",
    "file_size": "4G",
    "workspace_size": "4G",
    "cell_timeout_max": f"{HOURS}h",
    "spares": "0",
}

Outcomes = dict[str, tuple[str, str]]


def read_journal(text: str) -> Outcomes:
    """By id, what came of each test and its last words. One that began and did not end has died."""
    found: Outcomes = {}
    for line in map(json.loads, text.splitlines()):
        if line[0] == "over":
            continue
        found[line[1]] = ("died", "") if line[0] == "begin" else (line[2], line[3])
    return found


def is_over(text: str) -> bool:
    return any(json.loads(line)[0] == "over" for line in text.splitlines())


class Side(ABC):
    def __init__(self, suite: Suite, place: Place) -> None:
        self.suite, self.place = suite, place

    def program(self, only: list[str]) -> str:
        tree = str(self.place.tree) if self.place.tree else None
        return f"{DRIVER}\ndrive({tree!r}, {self.suite.arguments!r}, {only!r})\n"

    def run(self, only: list[str]) -> Outcomes:
        """All tests, or only those of these ids, whatever dies on the way."""
        text, last = "", None
        with self:
            for _ in range(DEATHS):
                told = self.step(self.program(only))
                text = self.journal()
                if is_over(text) or text == last:
                    break
                last = text
        if not is_over(text):
            raise RuntimeError(f"{self.suite.name} does not run to its end: {told[-2000:]}")
        return read_journal(text)

    def __enter__(self) -> Side:
        self.open()
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    @abstractmethod
    def open(self) -> None: ...

    @abstractmethod
    def step(self, program: str) -> str:
        """Run it until it ends, or dies. Returns what it said."""

    @abstractmethod
    def journal(self) -> str: ...

    @abstractmethod
    def close(self) -> None: ...


class Inside(Side):
    def open(self) -> None:
        reads = [str(path) for path in (self.place.tree,) if path]
        profile = {**ROOM, "read": " ".join(reads), "python": str(self.place.venv or ""), **self.suite.profile}
        profile["env"] = " ".join(f'"{name}={value}"' for name, value in self.suite.env.items())
        self.daemon = Daemon({"profile default": profile})
        self.client = self.daemon.client(timeout=300)
        self.client.open("suite")

    def step(self, program: str) -> str:
        reply = self.client.exec(program, "suite", timeout=HOURS * 3600)
        return f"{reply.cause}\n{reply.stdout.decode(errors='replace')}\n{reply.stderr.decode(errors='replace')}"

    def journal(self) -> str:
        try:
            return self.client.get("suite", "journal").decode()
        except LairError as error:
            return str(error) and ""

    def close(self) -> None:
        self.daemon.close()


class Beside(Side):
    def open(self) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="lair-suite-"))
        (self.directory / "tmp").mkdir()
        self.user: list[str] = []
        if os.geteuid() == 0:
            for path in (self.directory, self.directory / "tmp"):
                os.chown(path, PLAIN_UID, PLAIN_UID)
            self.user = ["setpriv", f"--reuid={PLAIN_UID}", f"--regid={PLAIN_UID}", "--clear-groups"]

    def _environment(self) -> dict[str, str]:
        """What a session has."""
        threads = ("OPENBLAS", "OMP", "MKL", "NUMEXPR")
        path = "/usr/local/bin:/usr/bin:/bin"
        return {
            "HOME": str(self.directory),
            "PATH": f"{self.place.venv}/bin:{path}" if self.place.venv else path,
            "TMPDIR": str(self.directory / "tmp"),
            "USER": "session",
            "LOGNAME": "session",
            "LANG": "C.UTF-8",
            "MPLBACKEND": "Agg",
            **{f"{name}_NUM_THREADS": "1" for name in threads},
            **self.suite.env,
        }

    def step(self, program: str) -> str:
        done = subprocess.run(
            [*self.user, str(self.place.python), "-B", "-s", "-X", "utf8", "-c", program],
            cwd=self.directory,
            env=self._environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=HOURS * 3600,
        )
        return f"{done.returncode}\n{done.stdout.decode(errors='replace')}"

    def journal(self) -> str:
        path = self.directory / "journal"
        return path.read_text() if path.exists() else ""

    def close(self) -> None:
        shutil.rmtree(self.directory, ignore_errors=True)

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


# What came of the first of two runs in one process.
FIRST = "journal.first"


class Side(ABC):
    def __init__(self, suite: Suite, place: Place, undo: bool = False) -> None:
        self.suite, self.place, self.undo = suite, place, undo

    def program(self, only: list[str]) -> str:
        tree = str(self.place.tree) if self.place.tree else None
        return f"{DRIVER}\ndrive({tree!r}, {self.suite.arguments!r}, {only!r})\n"

    def run(self, only: list[str]) -> Outcomes:
        """All tests, or only those of these ids, whatever dies on the way. With @undo, what comes of them when they
        run a second time: beside in the same process, in a session in its copy."""
        with self:
            return self.all_that_came(only)

    def all_that_came(self, only: list[str]) -> Outcomes:
        return self.to_the_end(only)

    def to_the_end(self, only: list[str]) -> Outcomes:
        text, last = "", None
        for _ in range(DEATHS):
            told = self.step(self.program(only))
            text = self.journal()
            if is_over(text):
                return read_journal(text)
            if text == last:
                break
            last = text
        raise RuntimeError(f"{self.suite.name} does not run to its end: {told[-2000:]}")

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
        self.daemon = Daemon({"profile default": {**profile, "checkpoint": "cell"} if self.undo else profile})
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

    def all_that_came(self, only: list[str]) -> Outcomes:
        found = self.to_the_end(only)
        if self.undo:
            self.go_back()
            found = self.to_the_end(only)
        return found

    def go_back(self) -> None:
        """To a copy, with all threads that the tests have left: the process that ran them is gone."""
        before = self.client.exec(f"import os; os.rename('journal', {FIRST!r}); os.getpid()", "suite")
        if before.unfaithful or before.state != "kept":
            raise RuntimeError(f"{self.suite.name} cannot go back: {before.unfaithful or before.state}")
        self.client.exec("raise SystemExit", "suite")
        if self.client.undo("suite").cell != before.cell:
            raise RuntimeError(f"{self.suite.name}: an undo goes back too far")

    def close(self) -> None:
        self.daemon.close()


class Beside(Side):
    def program(self, only: list[str]) -> str:
        drive = super().program(only)
        if not self.undo:
            return drive
        first = "".join(f"    {line}\n" for line in drive.removeprefix(DRIVER).strip().splitlines())
        return f"{DRIVER}\nif not os.path.exists({FIRST!r}):\n{first}    os.rename('journal', {FIRST!r})\n{drive}"

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

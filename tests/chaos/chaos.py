"""Chaos: many clients with work whose outcome they know, against a laird whose processes are killed, stopped and flooded.

    ./dev chaos [MINUTES] [--seed N] [--clients N] [--only ACT,...]

At the end every client has seen what it must have seen: nothing wrong, nothing lost, nothing done twice; there is no
process, socket or directory left; the log tells of no death but those that were dealt; and what the keeper holds is what it
held before. What happens is decided by the seed; when exactly, by the machine. Nothing is wrong for being slow.

In the first half only what no session may notice is done to laird: its router is killed, stopped, replaced and flooded, its
templates and clients are killed. In the second, everything: interpreters, frozen copies and wardens too.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import astuple, dataclass
from pathlib import Path

from daemon import Daemon, become_subreaper, children, command_of, wait_until
from lair import Client
from wire import DEADLINE
from worker import GAVE_UP

HERE = Path(__file__).parent
SPARES = 2
SETTINGS = {
    "daemon": {"log": "stderr", "results_per_uid": "16M"},
    "profile default": {
        "preload": "",
        "spares": str(SPARES),
        "grace": "200ms",
        "checkpoint": "cell",
        "checkpoints": "8",
        "cell_timeout": "30s",
        "idle_ttl": "10m",
    },
}
FLOOD_CONNECTIONS = 150
REPORT_EVERY = 10.0
MEASURE_EVERY = 2.0
PATIENCE = 120.0  # with what takes a moment on a machine that has nothing else to do

# Of the errors in laird's log, those that are our doing. Any other is a fault, though the clients were spared it.
DEALT = (
    "the router was killed by signal 9 ",
    "the router has not stirred for ",
    "template of profile default: it died",
    "a spare could not be made: ",
)
DEALT_WILDLY = ("it died before it had a state of its own",)


class Processes:
    """Who is who below the keeper."""

    def __init__(self, daemon: Daemon) -> None:
        self.keeper = daemon.process.pid

    def routers(self) -> list[int]:
        return [pid for pid in children(self.keeper) if "--router" in command_of(pid)]

    def _kernels(self) -> list[int]:
        return [pid for pid in children(self.keeper) if command_of(pid).startswith("lair-kernel")]

    def wardens(self) -> list[int]:
        """The first processes of their pid namespaces."""
        return [pid for pid in self._kernels() if _depth(pid) > 1]

    def templates(self) -> list[int]:
        return [pid for pid in self._kernels() if _depth(pid) == 1]

    def can_be_told_apart(self) -> bool:
        """Not on a host that gives sessions no pid namespace."""
        return any(self.wardens())

    def interpreters(self) -> list[int]:
        return [pid for warden in self.wardens() for pid in children(warden)]


def _depth(pid: int) -> int:
    """How many pid namespaces see it."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    return len(next((line for line in status.splitlines() if line.startswith("NSpid:")), "").split()) - 1


def send(pids: list[int], number: int, rng: random.Random) -> str:
    if not pids:
        return "nobody"
    pid = rng.choice(pids)
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return "nobody"
    return str(pid)


class Crew:
    """The clients: processes that are started again whenever they have been killed."""

    def __init__(self, daemon: Daemon, n: int, seed: int, until: float, mild: bool) -> None:
        self._command = [sys.executable, str(HERE / "worker.py"), str(daemon.directory)]
        self._rest = [str(seed), str(daemon.socket), str(until)] + (["--mild"] if mild else [])
        prefix = "mild" if mild else "wild"
        self.names = [f"{prefix}{i}" for i in range(n)]
        self.processes = {name: self._start(name) for name in self.names}

    def _start(self, name: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen([*self._command, name, *self._rest])

    def kill_one(self, rng: random.Random) -> str:
        name = rng.choice(self.names)
        process = self.processes[name]
        if process.poll() is None:
            process.kill()
            process.wait()
            self.processes[name] = self._start(name)
        return name

    def running(self) -> list[str]:
        return [name for name, process in self.processes.items() if process.poll() is None]

    def wait(self) -> list[str]:
        """Until all have come to their end; after a failure of one, nobody needs the others. Returns what is wrong with
        them, beyond what they say themselves."""
        deadline = time.monotonic() + 2 * DEADLINE
        while self.running() and not self.failed() and time.monotonic() < deadline:
            time.sleep(0.1)
        ends = {name: process.poll() for name, process in self.processes.items()}
        wrong = [f"{name} ended with {end}" for name, end in ends.items() if end not in (None, 0, GAVE_UP)]
        if not self.failed():
            wrong += [f"lost: {name} waits for ever" for name in self.running()]
        for process in self.processes.values():
            process.kill()
            process.wait()
        return wrong

    def failed(self) -> bool:
        return any(process.poll() not in (None, 0) for process in self.processes.values())


@dataclass
class Held:
    """By the keeper, which outlives every router: its own memory, that of the files it keeps, and how many."""

    resident: int
    kept: int
    descriptors: int

    # What it may grow by, apart from half as much again: the answers that are kept need a while to become as many as they may.
    SLACK = (1 << 20, 32 << 20, 64)

    @classmethod
    def of(cls, pid: int) -> Held:
        resident = int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        kept = n = 0
        for descriptor in Path(f"/proc/{pid}/fd").iterdir():
            try:
                if os.readlink(descriptor).startswith("/memfd:"):
                    kept += descriptor.stat().st_blocks * 512
            except OSError:
                continue
            n += 1
        return cls(resident, kept, n)

    @classmethod
    def median(cls, samples: list[Held]) -> Held:
        return cls(*(int(statistics.median(column)) for column in zip(*map(astuple, samples))))

    def grown(self, before: Held) -> bool:
        return any(
            late > 1.5 * early + slack for late, early, slack in zip(astuple(self), astuple(before), self.SLACK)
        )

    def __str__(self) -> str:
        return f"{self.resident >> 10} KiB, {self.kept >> 10} KiB in files, {self.descriptors} descriptors"


class Chaos:
    def __init__(self, seed: int, clients: int, only: set[str]) -> None:
        self.rng = random.Random(seed)
        self.seed, self.clients, self.only = seed, clients, only
        self.audit = tempfile.NamedTemporaryFile(prefix="lair-chaos-audit-")
        self.daemon = Daemon({**SETTINGS, "daemon": {**SETTINGS["daemon"], "audit_log": self.audit.name}})
        self.processes = Processes(self.daemon)
        self.crew: Crew | None = None
        self.went_wild = False
        self.failures: list[str] = []
        self.done: Counter[str] = Counter()
        self.held: list[Held] = []
        self.mild: dict[str, tuple[int, Callable[[], str]]] = {
            "kill router": (8, lambda: send(self.processes.routers(), signal.SIGKILL, self.rng)),
            "kill template": (2, lambda: send(self.processes.templates(), signal.SIGKILL, self.rng)),
            "kill client": (6, lambda: self.crew.kill_one(self.rng) if self.crew else ""),
            "stop router": (3, lambda: self.pause(self.processes.routers())),
            "stop keeper": (2, lambda: self.pause([self.processes.keeper])),
            "upgrade": (2, lambda: send([self.processes.keeper], signal.SIGUSR2, self.rng)),
            "reload": (2, lambda: send([self.processes.keeper], signal.SIGHUP, self.rng)),
            "flood": (3, self.flood),
        }
        self.wild: dict[str, tuple[int, Callable[[], str]]] = {
            "kill interpreter": (10, lambda: send(self.processes.interpreters(), signal.SIGKILL, self.rng)),
            "kill warden": (3, lambda: send(self.processes.wardens(), signal.SIGKILL, self.rng)),
            "stop interpreter": (3, lambda: self.pause(self.processes.interpreters())),
            "stop warden": (2, lambda: self.pause(self.processes.wardens())),
        }
        self.leave_out_what_cannot_be_told_apart()

    def leave_out_what_cannot_be_told_apart(self) -> None:
        with Client(str(self.daemon.socket), timeout=PATIENCE) as client:
            wait_until(lambda: client.stats().spares > 0, "there is a spare", PATIENCE)
        if not self.processes.can_be_told_apart():
            print("no pid namespaces: templates, wardens and interpreters are not told apart, and left alone")
            del self.mild["kill template"]
            self.wild.clear()

    def pause(self, pids: list[int]) -> str:
        """Stop it for a while: a scheduler may do as much."""
        if not pids:
            return "nobody"
        pid = self.rng.choice(pids)
        try:
            os.kill(pid, signal.SIGSTOP)
            time.sleep(self.rng.random() * 1.5)
            os.kill(pid, signal.SIGCONT)
        except ProcessLookupError:
            return "nobody"
        return str(pid)

    def flood(self) -> str:
        """Connections that say nothing, or nonsense."""
        opened = []
        for i in range(FLOOD_CONNECTIONS):
            it = socket.socket(socket.AF_UNIX)
            it.settimeout(1)
            try:
                it.connect(str(self.daemon.socket))
                it.send(self.rng.randbytes(self.rng.randrange(1, 200)))
            except OSError:
                pass
            opened.append(it)
            if i % 3 == 0:
                opened.pop(0).close()
        for it in opened:
            it.close()
        return str(FLOOD_CONNECTIONS)

    def phase(self, seconds: float, mild: bool) -> None:
        until = time.time() + seconds
        self.went_wild = not mild
        self.crew = Crew(self.daemon, self.clients, self.seed, until, mild)
        acts = self.mild if mild else {**self.mild, **self.wild}
        acts = {name: act for name, act in acts.items() if not self.only or name in self.only}
        reported = measured = time.time()
        while time.time() < until and not self.crew.failed() and self.daemon.process.poll() is None:
            if acts:
                name = self.rng.choices(list(acts), [weight for weight, _ in acts.values()])[0]
                acts[name][1]()
                self.done[name] += 1
            time.sleep(self.rng.random() ** 2 * 1.2)
            if time.time() - measured > MEASURE_EVERY:
                measured = time.time()
                try:
                    self.held.append(Held.of(self.processes.keeper))
                except OSError:
                    break  # it has ended
            if time.time() - reported > REPORT_EVERY:
                reported = time.time()
                print(f"  {until - reported:4.0f} s left: {sum(self.done.values())} blows", flush=True)
        self.failures += self.crew.wait()

    def wrong(self) -> list[str]:
        path = self.daemon.directory / "wrong"
        found = self.failures + (path.read_text().splitlines() if path.exists() else [])
        if self.daemon.process.poll() is not None:
            return [*found, f"laird ended by itself with {self.daemon.process.returncode}"]
        return found

    def what_is_left(self) -> list[str]:
        """Sessions that nobody owns any more, then everything that outlives laird."""
        with Client(str(self.daemon.socket), timeout=PATIENCE) as client:
            sessions = [f"session {info.session} ({info.state})" for info in client.list()]
        try:
            wait_until(lambda: len(self.processes.wardens()) <= SPARES, "only spares are left", PATIENCE)
        except AssertionError:
            sessions.append(f"{len(self.processes.wardens())} wardens, of which {SPARES} are spares")
        self.daemon.terminate(PATIENCE)
        return [f"orphan: {it}" for it in sessions + self.daemon.left_behind()]

    def undealt(self) -> list[str]:
        """Errors in the log that are not of our making."""
        dealt = DEALT + (DEALT_WILDLY if self.went_wild else ())
        errors = [line for line in self.daemon.log().splitlines() if " error " in line[:32]]
        return [f"logged: {line}" for line in errors if not any(what in line for what in dealt)]

    def unaudited(self) -> tuple[list[str], int]:
        """Sessions with cells that the audit log does not know; and how many of its lines are there twice, which a router's
        death may do."""
        lives: dict[str, set[tuple[str, str]]] = {}
        missed, twice = [], 0
        for line in map(json.loads, Path(self.audit.name).read_text().splitlines()):
            name, event = line.get("session", ""), line["event"]
            if name.count(":") != 1:
                continue  # a one-shot has no name, and a branch goes on with its parent's numbers
            what = (event, line.get("workspace") or line.get("cell"))
            if what in lives.get(name, ()):
                twice += 1
            elif event == "open":
                lives[name] = {what}
            elif event == "exec":
                lives[name].add(what)
            elif event == "end" and len(lives[name]) < 1 + line["cells"]:
                missed.append(f"lost: of {line['cells']} cells of {name} the audit log has {len(lives[name]) - 1}")
        return missed, twice

    def growth(self) -> tuple[str, bool]:
        """What the keeper holds, late against early but not at once; and whether that is too much."""
        parts = len(self.held) // 5
        if parts == 0:
            return "too short a time to tell", False
        early, late = Held.median(self.held[parts : 2 * parts]), Held.median(self.held[-parts:])
        return f"{early}; at the end {late}", late.grown(early)

    def counts(self) -> Counter[str]:
        total: Counter[str] = Counter()
        for path in self.daemon.directory.glob("*.model"):
            total.update(json.loads(path.read_text())["counts"])
        return total


# What is wrong, by the word its line has before a colon.
KINDS = {
    "wrong": "wrong",
    "lost": "lost",
    "duplicated": "duplicated",
    "orphan": "orphans",
    "logged": "other errors logged",
}


def kind_of(line: str) -> str:
    """Of something wrong."""
    return next((kind for kind in KINDS if f"{kind}: " in line), "wrong")


def show(title: str, counts: Counter[str]) -> None:
    print(f"{title}: " + ", ".join(f"{name} {n}" for name, n in sorted(counts.items())))


def main() -> int:
    parser = argparse.ArgumentParser(prog="./dev chaos")
    parser.add_argument("minutes", nargs="?", type=float, default=2.0)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--clients", type=int, default=6)
    parser.add_argument("--only", default="")
    parser.add_argument(
        "--keep", action="store_true", help="keep laird's log and the clients' files after a failure"
    )
    a = parser.parse_args()
    seed = a.seed if a.seed is not None else random.randrange(1 << 32)
    become_subreaper()
    print(f"chaos for {a.minutes:g} minutes, seed {seed}, {a.clients} clients", flush=True)
    chaos = Chaos(seed, a.clients, {name.strip() for name in a.only.split(",") if name.strip()})
    try:
        for mild in (True, False):
            print("what no session may notice" if mild else "everything", flush=True)
            if not chaos.wrong():
                chaos.phase(a.minutes * 30, mild)
        wrong = chaos.wrong()
        if not wrong:
            wrong += chaos.what_is_left()
        wrong += chaos.undealt()
        missed, twice = chaos.unaudited()
        wrong += missed
        held, grown = chaos.growth()
        if grown:
            wrong.append("the keeper holds more and more")
        show("blows", chaos.done)
        show("acts", chaos.counts())
        print(f"the keeper holds: {held}")
        print(f"lines of the audit log that are there twice: {twice}")
        for line in wrong:
            print(f"WRONG {line}")
        if wrong and a.keep:
            print(f"kept: {chaos.daemon.directory}")
            shutil.copy(chaos.audit.name, chaos.daemon.directory / "audit")
            chaos.daemon.directory = Path("/nonexistent")
        kinds = Counter(kind_of(line) for line in wrong)
        print(
            f"chaos: {'FAILED' if wrong else 'passed'}, seed {seed}, {a.minutes:g} minutes, {sum(chaos.done.values())} blows:"
            f" {', '.join(f'{kinds[kind]} {title}' for kind, title in KINDS.items())}"
        )
    finally:
        chaos.daemon.close()
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

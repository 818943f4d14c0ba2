"""Chaos: many clients with work whose outcome they know, against a laird whose processes are killed, stopped and flooded.

    ./dev chaos [MINUTES] [--seed N] [--clients N] [--only ACT,...]

At the end every client has seen what it must have seen: nothing wrong, nothing lost, nothing done twice; and there is no
process, socket or directory left. What happens is decided by the seed; when exactly, by the machine.

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
from pathlib import Path

from daemon import Daemon, become_subreaper, children, command_of, wait_until
from lair import Client

HERE = Path(__file__).parent
SETTINGS = {
    "profile default": {
        "preload": "",
        "spares": "2",
        "grace": "200ms",
        "checkpoint": "cell",
        "checkpoints": "8",
        "cell_timeout": "30s",
        "idle_ttl": "10m",
    },
}
FLOOD_CONNECTIONS = 150
REPORT_EVERY = 10.0


class Processes:
    """Who is who below the keeper."""

    def __init__(self, daemon: Daemon) -> None:
        self.keeper = daemon.process.pid
        self._client = daemon.socket

    def routers(self) -> list[int]:
        return [pid for pid in children(self.keeper) if "--router" in command_of(pid)]

    def _kernels(self) -> list[int]:
        return [pid for pid in children(self.keeper) if command_of(pid).startswith("lair-kernel")]

    def wardens(self) -> list[int]:
        """The first processes of their pid namespaces."""
        return [pid for pid in self._kernels() if _depth(pid) > 1]

    def templates(self) -> list[int]:
        return [pid for pid in self._kernels() if _depth(pid) == 1]

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
        self._until = until
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

    def wait(self) -> None:
        """Until all have come to their end; after a failure of one, nobody needs the others."""
        for process in self.processes.values():
            if self.failed():
                process.kill()
            process.wait(300)

    def failed(self) -> bool:
        return any(process.poll() not in (None, 0) for process in self.processes.values())


class Chaos:
    def __init__(self, seed: int, clients: int, only: set[str]) -> None:
        self.rng = random.Random(seed)
        self.seed, self.clients, self.only = seed, clients, only
        self.audit = tempfile.NamedTemporaryFile(prefix="lair-chaos-audit-")
        self.daemon = Daemon({**SETTINGS, "daemon": {"log": "stderr", "audit_log": self.audit.name}})
        self.processes = Processes(self.daemon)
        self.crew: Crew | None = None
        self.done: Counter[str] = Counter()
        self.sizes: list[tuple[float, int]] = []
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
        self.wild = {
            "kill interpreter": (10, lambda: send(self.processes.interpreters(), signal.SIGKILL, self.rng)),
            "kill warden": (3, lambda: send(self.processes.wardens(), signal.SIGKILL, self.rng)),
            "stop interpreter": (3, lambda: self.pause(self.processes.interpreters())),
            "stop warden": (2, lambda: self.pause(self.processes.wardens())),
        }

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
        self.crew = Crew(self.daemon, self.clients, self.seed, until, mild)
        acts = self.mild if mild else {**self.mild, **self.wild}
        acts = {name: act for name, act in acts.items() if not self.only or name in self.only}
        reported = time.time()
        while time.time() < until and not self.crew.failed():
            if acts:
                name = self.rng.choices(list(acts), [weight for weight, _ in acts.values()])[0]
                acts[name][1]()
                self.done[name] += 1
            time.sleep(self.rng.random() ** 2 * 1.2)
            self.sizes.append((time.time(), resident(self.processes.keeper)))
            if time.time() - reported > REPORT_EVERY:
                reported = time.time()
                print(f"  {until - reported:4.0f} s left: {sum(self.done.values())} blows", flush=True)
        self.crew.wait()

    def wrong(self) -> list[str]:
        path = self.daemon.directory / "wrong"
        found = path.read_text().splitlines() if path.exists() else []
        if self.daemon.process.poll() is not None:
            return [*found, f"laird ended by itself with {self.daemon.process.returncode}"]
        return found

    def what_is_left(self) -> list[str]:
        """Sessions that nobody owns any more, then everything that outlives laird."""
        with Client(str(self.daemon.socket), timeout=30) as client:
            sessions = [f"session {info.session} ({info.state})" for info in client.list()]
            limit = len(self.processes.templates()) + 4

            def settled() -> bool:
                return len(self.processes.wardens()) <= limit

            wait_until(settled, "only spares are left", 20)
        self.daemon.terminate(30)
        return sessions + self.daemon.left_behind()

    def growth(self) -> str:
        """The keeper's memory, late against early: it outlives every router."""
        early, late = self.sizes[: len(self.sizes) // 4], self.sizes[-len(self.sizes) // 4 :]
        if not early:
            return "0"
        sizes = [statistics.median(size for _, size in part) for part in (early, late)]
        return f"{sizes[0] / 1024:.0f} -> {sizes[1] / 1024:.0f} KiB"

    def counts(self) -> Counter[str]:
        total: Counter[str] = Counter()
        for path in self.daemon.directory.glob("*.model"):
            total.update(json.loads(path.read_text())["counts"])
        return total


def resident(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


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
        show("blows", chaos.done)
        show("acts", chaos.counts())
        print(f"keeper's memory: {chaos.growth()}")
        for line in wrong:
            print(f"WRONG {line}")
        if wrong and a.keep:
            print(f"kept: {chaos.daemon.directory}")
            shutil.copy(chaos.audit.name, chaos.daemon.directory / "audit")
            chaos.daemon.directory = Path("/nonexistent")
        print(f"chaos: {'FAILED' if wrong else 'passed'}, seed {seed}")
    finally:
        chaos.daemon.close()
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

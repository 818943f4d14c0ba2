"""What others can do to a user: round trips of a cell, with and without checkpoints, quiet and beside another user's processes
that are not Lair's, busy sessions, or streams; and how long a fork bomb outlives its time, beside a Python that kills as
many forks of its own. Medians of REPEATS, with the least and the most.

usage: neighbours.py [NAME...]    with names, only the rows whose name contains one of them

As root, because there are two users.
"""

from __future__ import annotations

import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "system"))

from daemon import ROOT, Daemon, Settings
from lair import Client

OTHER = 61000
REPEATS = 5
CELLS = 200
SESSIONS = PROCESSES = 8
TIME, GRACE = 1.0, 0.5  # of a cell with a bomb; the grace as shipped
PROFILES = {"saved": "cell", "unsaved": "off"}
SETTINGS: Settings = {
    "daemon": {"log": "stderr"},
    **{f"profile {name}": {"preload": "numpy", "checkpoint": how} for name, how in PROFILES.items()},
    "profile busy": {"preload": "", "checkpoint": "cell", "spares": "0", "processes": "256"},
    **{
        f"profile bomb{n}": {"preload": "", "checkpoint": "cell", "memory": "0", "processes": str(n)}
        for n in (48, 1024)
    },
}
BOMB = """import os, signal
for number in (1, 2, 3, 10, 12, 15): signal.signal(number, signal.SIG_IGN)
while True:
    try: os.fork()
    except OSError: pass"""
BUSY = "import os\nfor _ in range({}):\n    if os.fork() == 0: break\nwhile True: pass"
FLOOD = """
import sys, lair
client = lair.Client({socket!r}, timeout=600)
for i in range({sessions}):
    client.start({code!r}, f"busy{{i}}", profile="busy", timeout=600)
print(flush=True)
sys.stdin.read()
"""
STREAMS = """
import subprocess, sys
command = [{lair!r}, "--socket", {socket!r}, "exec", "-t", "600", "while True: print('x' * 60)", "-s"]
streams = [subprocess.Popen([*command, f"s{{i}}"], stdout=subprocess.DEVNULL) for i in range({sessions})]
print(flush=True)
sys.stdin.read()
for it in streams: it.kill()
"""
SPIN = "print(flush=True)\nwhile True: pass"


@contextmanager
def as_other(*codes: str) -> Iterator[None]:
    """Programs of the other user, each of which says when it has begun."""
    as_user = ["setpriv", f"--reuid={OTHER}", f"--regid={OTHER}", "--clear-groups", sys.executable, "-c"]
    env = {"PYTHONPATH": str(ROOT / "client/python"), "PYTHONDONTWRITEBYTECODE": "1"}
    pipe = subprocess.PIPE
    programs = [subprocess.Popen([*as_user, code], env=env, stdin=pipe, stdout=pipe) for code in codes]
    try:
        for program in programs:
            assert program.stdout
            program.stdout.readline()
        time.sleep(3)
        yield
    finally:
        for program in programs:
            assert program.stdin
            program.stdin.close()
        time.sleep(0.2)
        for program in programs:
            program.kill()
            program.wait()


def round_trip(client: Client, session: str) -> float:
    """The median of many, in ms."""
    samples = []
    for _ in range(CELLS):
        began = time.perf_counter()
        client.exec("1 + 1", session)
        samples.append((time.perf_counter() - began) * 1e3)
    return statistics.median(samples)


def row(name: str, without: list[float], beside: list[float]) -> None:
    columns = [f"{statistics.median(it):8.2f} ({min(it):.2f}-{max(it):.2f})" for it in (without, beside)]
    ratio = statistics.median(beside) / statistics.median(without)
    print(f"{name:32}{columns[0]:>26}{columns[1]:>26}{ratio:8.1f}", flush=True)


def neighbour(client: Client, name: str, *programs: str) -> None:
    quiet: dict[str, list[float]] = {it: [] for it in PROFILES}
    noisy: dict[str, list[float]] = {it: [] for it in PROFILES}
    for _ in range(REPEATS):
        for profile in PROFILES:
            quiet[profile].append(round_trip(client, profile))
        with as_other(*programs):
            for profile in PROFILES:
                noisy[profile].append(round_trip(client, profile))
        time.sleep(1)
    for profile in PROFILES:
        row(f"{name}, {profile}", quiet[profile], noisy[profile])


def killing(n: int) -> float:
    """How long a plain Python takes to kill so many busy forks, in ms."""
    os.nice(-15)
    pids = []
    for _ in range(n):
        pid = os.fork()
        if pid == 0:
            os.nice(15)
            while True:
                pass
        pids.append(pid)
    time.sleep(0.3)
    began = time.perf_counter()
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    for pid in pids:
        os.waitpid(pid, 0)
    took = (time.perf_counter() - began) * 1e3
    os.nice(15)
    return took


def bomb(client: Client, n: int) -> None:
    """From its time, and the grace that it gets, to the answer."""
    ours, theirs = [], []
    for i in range(REPEATS):
        theirs.append(killing(n))
        session = f"bomb{n}.{i}"
        client.exec("x = 41", session, profile=f"bomb{n}")
        began = time.perf_counter()
        reply = client.exec(BOMB, session, timeout=TIME)
        ours.append((time.perf_counter() - began - TIME - GRACE) * 1e3)
        assert (reply.state, client.exec("x", session).text) == ("rolled_back", "41"), reply
        client.shutdown(session)
    row(f"bomb of {n}, beside bare kills", theirs, ours)


def main() -> int:
    daemon = Daemon(SETTINGS)
    address = {"socket": str(daemon.socket), "sessions": SESSIONS}
    flood = FLOOD.format(**address, code=BUSY.format(PROCESSES - 1))
    streams = STREAMS.format(**address, lair=str(ROOT / "build/release/bin/lair"))
    try:
        daemon.share()
        with daemon.client(timeout=120) as client:
            others = f"{SESSIONS * PROCESSES} others"
            rows: dict[str, Callable[[], None]] = {
                others: lambda: neighbour(client, others, *[SPIN] * SESSIONS * PROCESSES),
                "sessions": lambda: neighbour(client, f"{SESSIONS} sessions of {PROCESSES}", flood),
                "streams": lambda: neighbour(client, f"{SESSIONS} streams", streams),
                "bomb48": lambda: bomb(client, 48),
                "bomb1024": lambda: bomb(client, 1024),
            }
            for profile in PROFILES:
                client.exec("1", profile, profile=profile)
            time.sleep(2)
            print(os.uname().release, f"{os.cpu_count()} cpus", f"load {os.getloadavg()[0]:.0f}", sep=", ")
            print(f"\n{'ms, p50':32}{'without':>26}{'beside':>26}   ratio")
            for name, measure in rows.items():
                if len(sys.argv) == 1 or any(it in name for it in sys.argv[1:]):
                    measure()
        return 0
    finally:
        daemon.close()


if __name__ == "__main__":
    sys.exit(main())

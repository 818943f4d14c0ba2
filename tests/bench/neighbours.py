"""What one user waits for a cell while another user's sessions compute, with and without checkpoints: the ratio to the
same user's quiet round trip, and to that beside as many processes which are not Lair's.

usage: neighbours.py [SESSIONS [PROCESSES]]

As root, because there are two users.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "system"))

from daemon import ROOT, Daemon, Settings
from lair import Client

OTHER = 61000
CELLS = 200
TARGET = 4  # times the quiet round trip
PROFILES = {"saved": "cell", "unsaved": "off"}
SETTINGS: Settings = {
    "daemon": {"log": "stderr"},
    **{f"profile {name}": {"preload": "numpy", "checkpoint": how} for name, how in PROFILES.items()},
    "profile busy": {"preload": "", "checkpoint": "cell", "spares": "0", "processes": "256"},
}
BUSY = "import os\nfor _ in range({}):\n    if os.fork() == 0: break\nwhile True: pass"
FLOOD = """
import sys, lair
client = lair.Client({socket!r}, timeout=600)
for i in range({sessions}):
    client.start({code!r}, f"busy{{i}}", profile="busy", timeout=600)
print(flush=True)
sys.stdin.read()
"""


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
            program.kill()
            program.wait()


def round_trips(client: Client, session: str) -> list[float]:
    samples = []
    for _ in range(CELLS):
        began = time.perf_counter()
        client.exec("1 + 1", session)
        samples.append((time.perf_counter() - began) * 1e3)
    return sorted(samples)


def measure(client: Client, what: str, quiet: dict[str, float]) -> None:
    for profile in PROFILES:
        samples = round_trips(client, profile)
        p50 = statistics.median(samples)
        ratio = p50 / quiet.setdefault(profile, p50)
        print(
            f"{what:20}{PROFILES[profile]:>12}{p50:9.2f}{samples[len(samples) * 9 // 10]:9.2f}{ratio:8.1f}",
            flush=True,
        )


def main() -> int:
    given = [int(it) for it in sys.argv[1:]]
    sessions, processes = given + [8, 8][len(given) :]
    daemon = Daemon(SETTINGS)
    quiet: dict[str, float] = {}
    try:
        daemon.share()
        with daemon.client() as client:
            for profile in PROFILES:
                client.exec("1", profile, profile=profile)
            time.sleep(2)
            print(os.uname().release, f"{os.cpu_count()} cpus", f"load {os.getloadavg()[0]:.0f}", sep=", ")
            print(f"\n{'':20}  checkpoint      p50      p90   ratio (p50: at most {TARGET})")
            measure(client, "quiet", quiet)
            spin = "print(flush=True)\nwhile True: pass"
            with as_other(*[spin] * sessions * processes):
                measure(client, f"{sessions * processes} others", quiet)
            flood = FLOOD.format(socket=str(daemon.socket), sessions=sessions, code=BUSY.format(processes - 1))
            with as_other(flood):
                measure(client, f"{sessions} sessions of {processes}", quiet)
        return 0
    finally:
        daemon.close()


if __name__ == "__main__":
    sys.exit(main())

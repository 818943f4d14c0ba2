"""What a router's death costs its clients: from the kill to the next answer, by how many sessions there are.

usage: router_death.py [SESSIONS...]

Each session has run ANSWERS cells with a key, so that there are as many answers for the next router to read.
"""

from __future__ import annotations

import os
import signal
import statistics
import sys
import time
import uuid
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "system"))

from daemon import Daemon, Settings
from lair import Client
from lair import messages as m

SESSIONS = (1, 100, 300, 1000)
ANSWERS = 5
ROUNDS = 5

SETTINGS: Settings = {
    "daemon": {"log": "stderr"},
    "profile default": {"preload": "", "spares": "0", "checkpoint": "off", "idle_ttl": "off"},
}


def run(client: Client, session: str, code: str) -> m.ExecReply:
    exec = m.Exec(id=client.new_id(), session=session, key=uuid.uuid4().hex, code=code)
    return client.call(exec, m.ExecReply)


def busy(pid: int) -> float:
    """Seconds that its main thread has run."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9


def until_answered(daemon: Daemon, pid: int, sessions: int) -> tuple[float, float, float]:
    """Seconds until laird answers, until a cell of a session that was there has run, and what the next router took of a
    processor until then."""
    began = time.perf_counter()
    os.kill(pid, signal.SIGKILL)
    with Client(str(daemon.socket), timeout=120) as client:
        client.hello()
        hello = time.perf_counter() - began
        assert run(client, f"s{sessions // 2}", "x").text == str(sessions // 2)
        cell = time.perf_counter() - began
        return hello, cell, busy(client.stats().pid)


def measure(daemon: Daemon, sessions: int) -> str:
    samples = []
    for _ in range(ROUNDS):
        with Client(str(daemon.socket), timeout=60) as client:
            pid = client.stats().pid
        samples.append(until_answered(daemon, pid, sessions))
        time.sleep(2)  # or the keeper makes the next one wait
    return "".join(f"{statistics.median(column) * 1e3:10.0f}" for column in zip(*samples))


def main() -> int:
    daemon = Daemon(SETTINGS)
    made = 0
    try:
        print(os.uname().release, f"{os.cpu_count()} cpus", sep=", ")
        print(
            f"\nfrom a kill of the router, in ms, each session with {ANSWERS} answers\nsessions    answer    a cell  CPU time"
        )
        for sessions in map(int, sys.argv[1:] or map(str, SESSIONS)):
            with Client(str(daemon.socket), timeout=60) as client:
                for n in range(made, sessions):
                    for _ in range(ANSWERS):
                        run(client, f"s{n}", f"x = {n}")
                made = sessions
            print(f"{sessions:8}{measure(daemon, sessions)}", flush=True)
        return 0
    finally:
        daemon.close()


if __name__ == "__main__":
    sys.exit(main())

"""What checkpoints cost: by the size and the threads of a session, to the cells that follow them, and in memory.

usage: checkpoints.py [threads|files|large]: only those rows
"""

from __future__ import annotations

import os
import signal
import statistics
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Callable

sys.path.insert(0, str(Path(__file__).parents[1] / "system"))

from daemon import BIN, Daemon, Settings, wait_until
from lair import Client
from lair import messages as m

MB = 1 << 20
SIZES = (5, 60, 100, 500, 1000)
ROUNDS = 9
COMMON = {"spares": "1", "memory": "6G", "checkpoint_memory": "off"}

SETTINGS: Settings = {
    "daemon": {"log": "stderr"},
    "profile default": {**COMMON, "checkpoint": "manual"},
    "profile threads": {**COMMON, "checkpoint": "cell"},
    "profile off": {**COMMON, "preload": "pandas", "checkpoint": "off"},
    "profile cell": {**COMMON, "preload": "pandas", "checkpoint": "cell"},
    "profile eight": {**COMMON, "checkpoint": "cell", "checkpoints": "8"},
}


def timed(act: Callable[[], object]) -> float:
    began = time.perf_counter()
    act()
    return time.perf_counter() - began


def median_of(act: Callable[[], float], rounds: int = ROUNDS) -> str:
    return f"{statistics.median(act() for _ in range(rounds)) * 1e3:8.2f}"


def resident(pid: int) -> int:
    """What a warden and all below it hold, each page once."""
    with open(f"/proc/{pid}/task/{pid}/children") as children:
        below = sum(resident(int(child)) for child in children.read().split())
    with open(f"/proc/{pid}/smaps_rollup") as rollup:
        return below + next(int(line.split()[1]) << 10 for line in rollup if line.startswith("Pss:"))


# What a session holds, of so many megabytes, and a change to one page of it.
KINDS = {
    "one block": ("x = bytearray(b'1') * {size}", "x[0] ^= 1"),
    "small objects": ("x = [[str(i)] for i in range({size} // 150)]", "x[0][0] = '1'"),
}


# A pool of so many threads that have worked and wait.
POOL = (
    "import concurrent.futures, time\n"
    "pool = concurrent.futures.ThreadPoolExecutor({n} or 1)\nlist(pool.map(time.sleep, [0.05] * {n})); x = [1]"
)


def costs(client: Client, name: str, write: str) -> str:
    """Checkpoint, undo and branch, each after a cell that wrote to a single page, and a moment's rest."""

    def change() -> None:
        client.exec(write, name)
        time.sleep(0.02)

    def checkpoint() -> float:
        change()
        took = timed(lambda: client.checkpoint(name))
        time.sleep(0.02)
        return took

    def undo() -> float:
        change()
        return timed(lambda: client.undo(name))

    def branch() -> float:
        took = timed(lambda: client.branch(name, f"{name}.b"))
        client.shutdown(f"{name}.b")
        return took

    return f"{median_of(checkpoint)}  {median_of(undo)}  {median_of(branch)}"


def by_size(client: Client, kind: str, size: int) -> None:
    name = f"size{size}"
    make, write = KINDS[kind]
    client.exec(make.format(size=size * MB), name)
    print(f"{size:5} MB  {costs(client, name, write)}", flush=True)
    client.shutdown(name)


def by_threads(client: Client, n: int) -> None:
    name = f"threads{n}"
    client.exec(POOL.format(n=n), name)
    manual = costs(client, name, "x[0] = 2")
    client.exec(POOL.format(n=n), name + ".cell", profile="threads")

    def trip(gap: float) -> float:
        time.sleep(gap)
        return timed(lambda: client.exec("x[0] = 2", name + ".cell"))

    trips = f"{median_of(lambda: trip(0.005), 100)}  {median_of(lambda: trip(0), 200)}"
    assert not client.exec("1", name + ".cell").unfaithful
    print(f"{n:5}     {manual}  {trips}", flush=True)
    client.shutdown(name)
    client.shutdown(name + ".cell")


def pools(client: Client) -> None:
    print("\npooled threads, round trips in ms; checkpoint = cell: of a cell after 5 ms, and back to back")
    print("           checkpoint      undo    branch   after 5 ms   at once")
    for n in (0, 8, 64):
        by_threads(client, n)


def by_files(client: Client, n: int) -> None:
    """In a workspace of so many: an undo when none or one of them has changed, and a cell that changes none."""
    name = f"files{n}"
    made = (
        "for i in range({n}):\n    os.makedirs(f'd{i % 99}', exist_ok=True); open(f'd{i % 99}/{i}', 'w').write('x')"
    )
    client.exec("import os\n" + made.replace("{n}", str(n)), name, profile="threads")

    def undo(code: str) -> float:
        client.exec(code, name)
        client.call(m.Vars(id=client.new_id(), session=name), m.VarsReply)  # answered when the files are kept
        time.sleep(0.01)
        return timed(lambda: client.undo(name))

    undos = [median_of(partial(undo, code), 3 * ROUNDS) for code in ("x = 1", "open('d0/0', 'w').write('yy')")]
    client.exec("x = 1", name)
    trip = median_of(lambda: timed(lambda: client.exec("1+1", name)), 300)
    print(f"{n:6}     {undos[0]}      {undos[1]}     {trip}", flush=True)
    client.shutdown(name)


def floor_of_an_undo() -> None:
    """What no undo can do without: a process dies, and a copy of another one begins."""
    living = os.fork()
    if living == 0:
        time.sleep(60)
        os._exit(0)
    copy = os.fork()
    if copy == 0:
        time.sleep(60)
        os._exit(0)
    os.kill(living, signal.SIGKILL)
    os.waitpid(living, 0)
    os.kill(copy, signal.SIGKILL)
    os.waitpid(copy, 0)


def files(client: Client) -> None:
    print(
        "\nfiles in the workspace, in ms: undo when no file, or one, has changed; a cell that changes none, at once"
    )
    print("             undo: none          one        a cell")
    for n in (10, 10_000):
        by_files(client, n)
    print(f"two forks, killed: {median_of(lambda: timed(floor_of_an_undo) / 2, 100)} for one")


def round_trips(socket: Path, profile: str, count: int, gap_us: int) -> float:
    """By the C client, in µs."""
    command = [BIN.parent / "tests/lair_bench", socket, "exec", profile, count, gap_us, "1+1"]
    output = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, check=True, text=True).stdout
    return statistics.median(map(float, output.split()))


def memory_of_eight(client: Client) -> None:
    """100 MB, of which each cell changes another one."""
    client.exec(f"x = bytearray(b'1') * {100 * MB}", "eight", profile="eight")
    wait_until(lambda: client.info("eight").checkpoints == 1, "there is one")
    time.sleep(1)
    pid = client.info("eight").pid
    before = resident(pid)
    for i in range(16):
        client.exec(f"x[{i * MB} : {i * MB + MB}] = b'2' * {MB}", "eight")
    wait_until(lambda: client.info("eight").checkpoints == 8, "there are eight")
    time.sleep(1)
    info = client.info("eight")
    print(f"8 checkpoints of 100 MB, 1 MB changed by each cell: {(resident(pid) - before) / MB:.1f} MB more than")
    print(f"with one; {info.checkpoint_memory / MB:.1f} MB in pages that one of them alone holds")


def in_place(client: Client, size: int, profile: str) -> None:
    """Passes over a large array, one after the other, of ten seconds."""
    client.exec(f"import numpy as np\nx = np.ones({size} << 17)", "large", profile=profile)
    time.sleep(1)
    took: list[float] = []
    while sum(took) < 10_000:
        took.append(timed(lambda: client.exec("x += 1", "large")) * 1e3)
    print(
        f"{size:5} MB  {profile:5}  {took[0]:8.0f}  {statistics.median(took):8.0f}  {max(took):8.0f}  "
        f"{statistics.mean(took):8.0f}",
        flush=True,
    )
    client.shutdown("large")


def main() -> int:
    print(os.uname().release, f"{os.cpu_count()} cpus", sep=", ")
    daemon = Daemon(SETTINGS)
    try:
        with Client(str(daemon.socket), timeout=120) as client:
            if sys.argv[1:] != ["threads"] and sys.argv[1:] != ["large"]:
                files(client)
            if sys.argv[1:] == ["files"]:
                return 0
            if sys.argv[1:] != ["large"]:
                pools(client)
            if sys.argv[1:] == ["threads"]:
                return 0
            print(
                "\nan array changed in place, back to back, in ms\n                      first    median      most      mean"
            )
            for size in (1000, 2000):
                for profile in ("off", "cell"):
                    in_place(client, size, profile)
            if sys.argv[1:] == ["large"]:
                return 0
            for kind in KINDS:
                print(f"\n{kind}, round trips in ms\n           checkpoint      undo    branch")
                for size in SIZES:
                    by_size(client, kind, size)
            for profile in ("off", "cell"):
                client.exec("1", profile=profile)
            time.sleep(1)
            print("\nround trip of 1+1 with pandas loaded, in µs\ncheckpoint =         off      cell")
            for title, count, gap_us in (("after 5 ms", 300, 5000), ("back to back", 500, 0)):
                runs = [[round_trips(daemon.socket, p, count, gap_us) for p in ("off", "cell")] for _ in range(3)]
                print(f"{title:14}  {min(r[0] for r in runs):8.0f}  {min(r[1] for r in runs):8.0f}", flush=True)
            print()
            memory_of_eight(client)
        return 0
    finally:
        daemon.close()


if __name__ == "__main__":
    sys.exit(main())

"""Which files and functions of daemon/ the router passes for one request.

Each build is compiled with -finstrument-functions and without optimisation, so that no function is inlined. A session
has run some cells; then one `exec` of 1+1 is noted, and one `undo`, each with a key, as the clients of Lair send them,
with checkpoint = cell and nothing else to do. Noted is all that the router's process enters from when it wakes up over
the request until the answer has been handed to the kernel.

A file is a .c with its .h, or a .h that has no .c. Two numbers are told of each:

request   what the loop's handlers enter: without settling rounds, and without timers
all       with these
"""

from __future__ import annotations

import argparse
import mmap
import os
import secrets
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "system"))

from against import output
from bench import print_table
from daemon import ROOT, Daemon
from lair import Client
from lair import messages as m

WORK = ROOT / "build/traffic"
ENTERED, LEFT, WAITS, SENT = range(4)
ADDRESS = (1 << 60) - 1
# What belongs to a round, with all that it calls.
OF_THE_ROUND = {"router_settle", "timer_run", "timer_wait", "event_wait"}

Function = tuple[str, str]  # its file, "" if that is not the daemon's; its name


def make(commit: str) -> tuple[str, Path]:
    """The name of a build, and where it is."""
    name, source = "this tree", ROOT
    if commit:
        name = output("git", "log", "-1", "--format=%h", commit).strip()
        source = WORK / name / "source"
        source.mkdir(parents=True, exist_ok=True)
        subprocess.run(f"git archive {commit} | tar -x -C {source}", shell=True, check=True, cwd=ROOT)
    build = WORK / (name if commit else "tree") / "build"
    flags = ("-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_C_FLAGS=-finstrument-functions", "-DLAIR_WERROR=OFF")
    output("cmake", "-G", "Ninja", *flags, "-S", str(source), "-B", str(build))
    output("cmake", "--build", str(build), "-j", str(os.cpu_count()), "--target", "laird", "lair-kernel")
    return name, build


class Notes:
    """What traffic.c writes in the router's process."""

    def __init__(self, path: Path) -> None:
        with path.open("r+b") as file:
            self.map = mmap.mmap(file.fileno(), 0)

    def of(self, act: Callable[[], object]) -> list[tuple[int, int]]:
        time.sleep(1)  # what came before is over, its checkpoint too
        struct.pack_into("II", self.map, 0, 1, 0)
        act()
        time.sleep(0.2)
        struct.pack_into("I", self.map, 0, 0)
        (n,) = struct.unpack_from("I", self.map, 4)
        return [(note >> 60, note & ADDRESS) for note in struct.unpack_from(f"{n}Q", self.map, 8)]


def record(build: Path) -> dict[str, list[tuple[int, int]]]:
    library = WORK / "traffic.so"
    flags = ("-shared", "-fPIC", "-O2", "-D_GNU_SOURCE", "-Wall", "-Werror")
    output("cc", *flags, "-o", str(library), str(ROOT / "tests/bench/traffic.c"))
    with tempfile.TemporaryDirectory() as directory:
        env = {"LD_PRELOAD": str(library), "LAIR_TRAFFIC": directory, "LAIR_TRAFFIC_CLIENT": str(os.getpid())}
        daemon = Daemon({"profile default": {"checkpoint": "cell"}}, binaries=build / "bin", env=env)
        try:
            with Client(str(daemon.socket), timeout=60) as client:
                return record_requests(client, Notes(Path(directory, str(client.stats().pid))))
        finally:
            daemon.close()


def record_requests(client: Client, notes: Notes) -> dict[str, list[tuple[int, int]]]:
    def run() -> None:
        request = m.Exec(id=client.new_id(), session="s", key=secrets.token_hex(12), code="1+1")
        assert client.call(request, m.ExecReply).text == "2"

    def undo() -> None:
        client.call(m.Undo(id=client.new_id(), session="s", key=secrets.token_hex(12), n=1), m.StateReply)

    for _ in range(4):
        run()
        time.sleep(0.3)
    undo()
    return {"exec": notes.of(run), "undo": notes.of(undo)}


def until_answered(notes: list[tuple[int, int]]) -> list[tuple[int, int]]:
    kinds = [kind for kind, _ in notes]
    begin = next(i for i, kind in enumerate(kinds) if kind != WAITS)
    return notes[begin : kinds.index(SENT)]


def names_of(build: Path, notes: list[tuple[int, int]]) -> dict[int, Function]:
    """What there is at each address."""
    addresses = sorted({address for kind, address in notes if kind == ENTERED})
    told = subprocess.run(
        ["addr2line", "-f", "-e", str(build / "bin/laird")],
        input="\n".join(map(hex, addresses)),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout.splitlines()
    names = {}
    for address, function, place in zip(addresses, told[::2], told[1::2]):
        _, daemon, file = os.path.normpath(place.rpartition(":")[0]).rpartition("/daemon/")
        names[address] = (file.rpartition(".")[0] if daemon else "", function)
    return names


def entered(notes: list[tuple[int, int]]) -> Iterator[tuple[int, list[int]]]:
    """Each call, and what called it, outermost first."""
    stack: list[int] = []
    for kind, address in notes:
        if kind == ENTERED:
            stack.append(address)
            yield address, stack
        elif kind == LEFT and address in stack:
            while stack.pop() != address:
                pass


def passed(notes: list[tuple[int, int]], names: dict[int, Function], skip: set[str]) -> dict[Function, int]:
    calls: dict[Function, int] = {}
    for address, stack in entered(notes):
        function = names[address]
        if function[0] and not any(names[caller][1] in skip for caller in stack):
            calls[function] = calls.get(function, 0) + 1
    return calls


def show(calls: dict[Function, int]) -> None:
    for file in sorted({file for file, _ in calls}):
        print(f"  {file}:", *[f"{name}*{n}" if n > 1 else name for (at, name), n in calls.items() if at == file])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commits", metavar="COMMIT", nargs="*", help="others to count, beside this tree")
    parser.add_argument("--list", action="store_true", help="also print each file and the calls of its functions")
    arguments = parser.parse_args()
    rows = [["", "request", "files", "functions", "calls", "all: files", "functions", "calls"]]
    for commit in [*arguments.commits, ""]:
        name, build = make(commit)
        for request, notes in record(build).items():
            notes = until_answered(notes)
            names = names_of(build, notes)
            row = [name, request]
            for skip in (OF_THE_ROUND, set()):
                calls = passed(notes, names, skip)
                row += [str(n) for n in (len({file for file, _ in calls}), len(calls), sum(calls.values()))]
                if arguments.list:
                    print(f"{name}, {request}, {'request' if skip else 'all'}:")
                    show(calls)
            rows.append(row)
    print_table(rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())

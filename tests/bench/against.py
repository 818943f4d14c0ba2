"""Two builds of Lair, in turn, in one run: what came between two commits costs, or saves.

Each build has its own daemon and client. A round starts both daemons anew, since where a process comes to lie in memory
makes a difference, too; then both are measured in short turns. Who comes first changes with each round and turn. The
difference of a round is the median of those of its turns; the report has the median of all rounds, and the interval
that holds it with 95 %.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import os
import statistics
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench import PRINTS, human, print_table
from daemon import ROOT, Daemon, Settings, wait_until

ROUNDS = 32
TURNS = 1  # of each build, each round
CODE = "1+1"


@dataclass
class Measure:
    name: str
    measure: str  # of lair_bench
    count: int  # samples a turn
    gap: float = 0
    code: str = CODE
    profile: str = "default"
    turns: int = TURNS
    most: float = 0  # that it may cost; 0: as you like
    rounds: list[tuple[float, float, float]] = field(default_factory=list)  # one, the other, the difference


MEASURES = [
    Measure("round trip of 1+1, back to back", "exec", 100, turns=6, most=5e-6),
    Measure("round trip of 1+1, after 5 ms", "exec", 20, 5e-3),
    Measure("open to first result, spare", "open", 10, 10e-3),
    Measure("one-shot", "oneshot", 10, 10e-3),
    Measure("reset, to the next result", "reset", 10),
    Measure("pandas: open to first result, spare", "open", 10, 30e-3, profile="pandas"),
    Measure("pandas: open to first result, no spare", "open", 10, profile="cold"),
    Measure("pandas: reset, to the next result", "reset", 10, profile="pandas"),
    Measure("pandas: round trip, checkpoints, after 5 ms", "exec", 40, 5e-3, profile="saved"),
    Measure("pandas: round trip, checkpoints, back to back", "exec", 40, profile="saved"),
    Measure("pandas: undo of a cell, after 10 ms", "undo", 10, 10e-3, profile="saved", code="x = 1"),
    Measure("interrupt of a loop", "interrupt", 10),
    Measure("10 MB in 100,000 prints", "exec", 2, code=PRINTS),
]


class Build:
    """What is compiled of a commit; once, since it stays the same."""

    def __init__(self, commit: str) -> None:
        self.name = "this tree"
        self.build = ROOT / "build/release"
        if commit:
            sha = output("git", "rev-parse", "--verify", f"{commit}^{{commit}}").strip()
            self.name, at = output("git", "log", "-1", "--format=%h", sha).strip(), ROOT / "build/against" / sha
            self.build = at / "build"
            if not (at / "made").exists():
                print(f"building {self.name}", flush=True)
                self._make(sha, at / "source")
                (at / "made").touch()

    def _make(self, sha: str, source: Path) -> None:
        source.mkdir(parents=True, exist_ok=True)
        subprocess.run(f"git archive {sha} | tar -x -C {source}", shell=True, check=True, cwd=ROOT)
        kind = "-DCMAKE_BUILD_TYPE=RelWithDebInfo"
        output("cmake", "-G", "Ninja", kind, "-DLAIR_WERROR=OFF", "-S", str(source), "-B", str(self.build))
        programs = ("laird", "lair", "lair-kernel", "lair_bench")
        output("cmake", "--build", str(self.build), "-j", str(os.cpu_count()), "--target", *programs)

    def start(self, uids: str) -> None:
        """With settings that any commit knows, and users of its own: two lairds run."""
        settings: Settings = {
            "daemon": {"uids": uids},
            "profile default": {"preload": "", "spares": "2", "checkpoint": "off"},
            "profile pandas": {"preload": "pandas", "spares": "2", "checkpoint": "off"},
            "profile cold": {"preload": "pandas", "spares": "0", "checkpoint": "off"},
            "profile saved": {"preload": "pandas", "spares": "0", "checkpoint": "cell"},
        }
        self.daemon = Daemon(settings, binaries=self.build / "bin", wait=False)
        wait_until(lambda: self.daemon.socket.exists(), f"{self.name} listens: {self.daemon.log()}")
        for profile in settings:
            if profile != "daemon":
                self.samples(Measure("", "open", 1, profile=profile.split()[1]))

    def knows(self, measure: Measure) -> bool:
        bench: list[str | Path] = [
            self.build / "tests/lair_bench",
            self.daemon.socket,
            measure.measure,
            measure.profile,
            "0",
            "0",
        ]
        return subprocess.run(bench, stdout=subprocess.DEVNULL).returncode == 0

    def samples(self, measure: Measure) -> list[float]:
        command = [self.build / "tests/lair_bench", self.daemon.socket, measure.measure, measure.profile]
        command += [measure.count, int(measure.gap * 1e6), measure.code]
        return [float(line) / 1e6 for line in output(*map(str, command)).split()]


def output(*command: str) -> str:
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: {done.stdout[-2000:]}")
    return done.stdout


def measure_round(builds: tuple[Build, Build], measures: list[Measure], first: int) -> None:
    try:
        for which, uids in ((first, "1900000000-1900004095"), (1 - first, "1900004096-1900008191")):
            builds[which].start(uids)
        for measure in measures[:]:
            if not all(build.knows(measure) for build in builds):
                print(f"not known to both: {measure.name}", flush=True)
                measures.remove(measure)
                continue
            turns: tuple[list[float], list[float]] = ([], [])
            for turn in range(measure.turns):
                for which in (0, 1) if (turn + first) % 2 else (1, 0):
                    turns[which].append(statistics.median(builds[which].samples(measure)))
            change = statistics.median(after - before for before, after in zip(*turns))
            measure.rounds.append((statistics.median(turns[0]), statistics.median(turns[1]), change))
    finally:
        for build in builds:
            build.daemon.close()


def interval(values: Sequence[float]) -> tuple[float, float]:
    """That holds their median with 95 %, whatever they are like: by rank."""
    ordered, half = sorted(values), len(values) / 2
    reach = 0.98 * math.sqrt(len(values))
    return ordered[max(0, math.floor(half - reach))], ordered[min(len(ordered) - 1, math.ceil(half + reach) - 1)]


def signed(value: float) -> str:
    return f"{'-' if value < 0 else '+'}{human(abs(value), 'time')}"


def row_of(measure: Measure) -> list[str]:
    before, after, changes = zip(*measure.rounds)
    low, high = interval(changes)
    verdict = ""
    if measure.most:
        met = "ok" if high <= measure.most else "MISSED" if low > measure.most else "cannot be told"
        verdict = f"<= {signed(measure.most)} {met}"
    times = [human(statistics.median(medians), "time") for medians in (before, after)]
    change = signed(statistics.median(changes))
    return [measure.name, *times, change, f"{signed(low)} to {signed(high)}", verdict]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commits", metavar="COMMIT[..OTHER]", help="OTHER is this tree if it is not named")
    parser.add_argument("names", metavar="NAME", nargs="*", help="only the measures whose name contains one")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"more tell more; {ROUNDS} by default")
    arguments = parser.parse_intermixed_args()
    first, _, second = arguments.commits.partition("..")
    names = arguments.names
    measures = [m for m in MEASURES if not names or any(name in m.name for name in names)]
    if not measures:
        print("no such measure; there are:", *[m.name for m in MEASURES], sep="\n  ")
        return 2
    builds = (Build(first), Build(second))
    with contextlib.suppress(PermissionError):  # what else the machine does is in the way less
        os.setpriority(os.PRIO_PROCESS, 0, -20)
    for number in range(arguments.rounds):
        print(f"round {number + 1} of {arguments.rounds}", flush=True)
        measure_round(builds, measures, number % 2)
    print()
    heads = ["measure", builds[0].name, builds[1].name, "change", "surely", "target"]
    print_table([heads, *map(row_of, measures)])
    return 0


if __name__ == "__main__":
    sys.exit(main())

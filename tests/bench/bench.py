"""Lair and its rivals, in turn, in one run: a machine's clock drifts, so only ratios within a run count.

usage: bench.py [NAME...]      with names, only the measures whose name contains one of them
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Callable, Optional

sys.path.insert(0, str(Path(__file__).parents[1] / "system"))

from daemon import BIN, ROOT, Daemon, Settings
from http_server import server_of
from lair import Client
from package_sets import Packages
from rivals import Forks, Jupyter, Queues, jupyter_open, timed

ROUNDS = 3
DATA = "numpy pandas matplotlib.pyplot"
IMPORTS = "import numpy, pandas, matplotlib.pyplot; 1+1"
PRINTS = "for i in range(100_000): print('x' * 99)"
STRING = "print('x' * 10_000_000)"
KEPT = 8  # checkpoints
LOOP = """
from time import perf_counter
def sample(f):
    began = perf_counter()
    f(1)
    return perf_counter() - began
print(*[sample(tools.echo) * 1e6 for _ in range(1000)], sep="\\n")
"""
GATHER = """
import asyncio
from time import perf_counter
async def sample(f):
    began = perf_counter()
    await asyncio.gather(*[f.aio(i) for i in range(100)])
    return (perf_counter() - began) / 100
print(*[await sample(tools.echo) * 1e6 for _ in range(20)], sep="\\n")
"""
CELL = b'{"code": "1+1"}'
FLUSHES = "for i in range(100_000): print(i, flush=True)"

SETTINGS: Settings = {
    "daemon": {"log": "stderr"},
    "profile default": {"preload": "", "spares": "4"},
    "profile cold": {"preload": "", "spares": "0"},
    "profile ungrouped": {"preload": "", "spares": "0", "memory": "off", "processes": "off"},
    "profile data": {"preload": DATA, "spares": "4"},
    "profile cold-data": {"preload": DATA, "spares": "0"},
    "profile many": {"preload": DATA, "spares": "0"},
    "profile workbench": {"preload": DATA + " IPython", "spares": "0", "checkpoint": "cell"},
    "profile unsaved": {"preload": "pandas", "spares": "1", "checkpoint": "off"},
    "profile saved": {"preload": "pandas", "spares": "1", "checkpoint": "cell", "checkpoints": str(KEPT)},
    "profile shipped": {"preload": DATA, "checkpoint": "cell"},
    "profile off": {"preload": DATA, "checkpoint": "off"},
}


@dataclass
class Measure:
    """One thing, by Lair and by a rival; samples are in seconds (memory: bytes).

    Targets are of Lair, and were set on a machine where the rival took `then`. Where it takes longer they are met by
    what is longer by the same factor, and the report says so.
    """

    name: str
    ours: Callable[[], list[float]]
    rival: str = ""
    theirs: Optional[Callable[[], list[float]]] = None
    then: float = 0
    p50: float = 0  # at most; 0: no target
    p99: float = 0
    times: float = 0  # the p50 of the rival, at most
    rounds: int = ROUNDS
    unit: str = "time"
    our_samples: list[float] = field(default_factory=list)
    their_samples: list[float] = field(default_factory=list)


class Bench:
    def __init__(self, names: list[str]) -> None:
        self.packages = Packages() if not names or any("packages" in name for name in names) else None
        self.daemon = Daemon(SETTINGS)
        self.client = Client(str(self.daemon.socket), timeout=120)
        self.driver = ROOT / "build/release/tests/lair_bench"
        self.broker = ROOT / "build/release/tests/bare_broker"
        self.jupyter = Jupyter()
        self.lair_jupyter = self.notebook_kernel()
        self.queues = Queues()
        self.forks = Forks(["pandas"], KEPT)
        for profile in (
            "default",
            "data",
            "cold",
            "ungrouped",
            "cold-data",
            "saved",
            "unsaved",
            "workbench",
        ):  # templates and spares are made once
            self.client.exec("1", profile=profile)
        time.sleep(1)

    def close(self) -> None:
        self.jupyter.close()
        self.lair_jupyter.close()
        self.queues.close()
        self.forks.close()
        self.client.close()
        self.daemon.close()
        if self.packages:
            self.packages.close()

    def notebook_kernel(self) -> Jupyter:
        """`lair jupyter`, which Jupyter's own client finds from now on."""
        os.environ["JUPYTER_PATH"] = str(self.daemon.directory / "share/jupyter")
        told = self.daemon.lair(
            "jupyter", "install", "--prefix", str(self.daemon.directory), "--socket", str(self.daemon.socket)
        )
        assert told.returncode == 0, told.stderr
        return Jupyter("lair")

    def lair(self, measure: str, profile: str, count: int, gap: float = 0, code: str = "1+1") -> list[float]:
        """Samples of the C client."""
        command = [self.driver, self.daemon.socket, measure, profile, count, int(gap * 1e6), code]
        return samples(command)

    def in_turn(self, profile: str, sessions: int = 6, count: int = 200) -> list[float]:
        """Cells of some sessions, each as soon as the one before is answered."""
        ids = [f"{profile}{i}" for i in range(sessions)]
        for id in ids:
            self.client.exec("import numpy, pandas", id, profile=profile)
        return [timed(partial(self.client.exec, "1+1", id)) for _ in range(count) for id in ids]

    def http(self, count: int, head: bytes = b"POST /v1/sessions/http/exec", body: bytes = CELL) -> list[float]:
        """Samples of a client that does nothing but send and receive."""
        request = b"%s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s" % (head, len(body), body)
        with server_of(self.daemon) as server, server.bare(b"") as connection:

            def ask() -> None:
                connection.sendall(request)
                answer = connection.recv(65536)
                while not answer.endswith(b"}"):
                    answer += connection.recv(65536)

            ask()
            return [timed(ask) for _ in range(count)]

    def bare(self, count: int, gap: float = 0) -> list[float]:
        """Samples of a worker behind a router that do nothing."""
        return samples([self.broker, count, int(gap * 1e6)])

    def whole(self, code: str, size: int) -> list[float]:
        """The time of a cell whose output arrives to the last byte, which is checked apart."""
        received = len(self.client.exec(code).stdout)
        assert received == size, f"{received} of {size} bytes"
        return self.lair("exec", "default", 3, code=code)

    def jupyter_output(self, code: str, size: int, kernel: Jupyter | None = None) -> list[float]:
        received = 0

        def run() -> None:
            nonlocal received
            received = (kernel or self.jupyter).run(code)

        took = timed(run)
        if received != size:
            print(f"  ({'lair jupyter' if kernel else 'ipykernel'} lost {size - received} of {size} bytes)")
        return [took]

    def memory_of_sessions(self, count: int = 50) -> list[float]:
        self.client.exec("1", profile="many")
        time.sleep(0.5)
        before = available()
        for i in range(count):
            self.client.exec("1+1", f"many{i}", profile="many")
        time.sleep(1)
        each = (before - available()) / count
        for i in range(count):
            self.client.shutdown(f"many{i}")
        return [each]

    def memory_of_kernels(self, count: int = 4, name: str = "python3", code: str = IMPORTS) -> list[float]:
        before = available()
        kernels = [Jupyter(name) for _ in range(count)]
        for kernel in kernels:
            kernel.run(code)
        time.sleep(1)
        each = (before - available()) / count
        for kernel in kernels:
            kernel.close()
        return [each]

    def mcp_start(self, count: int = 20) -> list[float]:
        """From starting `lair mcp` to its list of tools."""
        command = [str(BIN / "lair"), "mcp", "--socket", str(self.daemon.socket)]
        request = b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}\n'

        def start() -> None:
            done = subprocess.run(command, input=request, stdout=subprocess.PIPE, check=True)
            assert b"python_session_execute" in done.stdout

        return [timed(start) for _ in range(count)]

    def of_packages(self) -> list[Measure]:
        packages = self.packages
        if not packages or not packages.there:
            return []
        return [
            Measure(
                "packages: open with polars and scikit-learn",
                lambda: packages.ahead(10),
                "an ordinary spare",
                lambda: packages.ordinary(10),
                times=1.5,
            ),
            Measure("packages: a set that is there, in a live session", lambda: packages.live(10), p50=50e-3),
        ]

    def measures(self) -> list[Measure]:
        jupyter, queues, forks, notebook = self.jupyter, self.queues, self.forks, self.lair_jupyter
        flushed = sum(len(str(i)) + 1 for i in range(100_000))
        return [
            Measure(
                "open to first result, spare",
                lambda: self.lair("open", "default", 40, 0.03),
                "ipykernel",
                lambda: [jupyter_open("1+1")],
                then=574e-3,
                p50=0.5e-3,
            ),
            Measure(
                "open to first result, no spare",
                lambda: self.lair("open", "cold", 40, 0.01),
                "ipykernel",
                lambda: [jupyter_open("1+1")],
                then=574e-3,
                p99=3e-3,
            ),
            Measure(
                "open to first result, no spare",
                lambda: self.lair("open", "cold", 40, 0.01),
                "in no control group",
                lambda: self.lair("open", "ungrouped", 40, 0.01),
            ),
            Measure(
                "open, numpy pandas matplotlib, spare",
                lambda: self.lair("open", "data", 40, 0.05),
                "ipykernel",
                lambda: [jupyter_open(IMPORTS)],
                then=890e-3,
                p50=0.5e-3,
            ),
            Measure(
                "open, numpy pandas matplotlib, no spare",
                lambda: self.lair("open", "cold-data", 40, 0.01),
                "ipykernel",
                lambda: [jupyter_open(IMPORTS)],
                then=890e-3,
                p99=6e-3,
            ),
            Measure(
                "round trip, back to back",
                lambda: self.lair("exec", "default", 3000),
                "ipykernel",
                lambda: [timed(lambda: jupyter.run("1+1")) for _ in range(100)],
                then=2.2e-3,
                p50=50e-6,
                p99=150e-6,
            ),
            Measure(
                "round trip, back to back",
                lambda: self.lair("exec", "default", 3000),
                "two queues",
                lambda: [timed(lambda: queues.run("1+1")) for _ in range(3000)],
                then=22e-6,
                p50=50e-6,
                p99=150e-6,
            ),
            Measure(
                "round trip, back to back",
                lambda: self.lair("exec", "default", 3000),
                "a bare broker",
                lambda: self.bare(3000),
            ),
            Measure(
                "six sessions in turn, shipped settings",
                lambda: self.in_turn("shipped"),
                "checkpoint = off",
                lambda: self.in_turn("off"),
                times=3,
            ),
            Measure(
                "HTTP: round trip, back to back",
                lambda: self.http(1000),
                "the socket",
                lambda: self.lair("exec", "default", 3000),
                p50=200e-6,  # of the socket, and 150 µs
            ),
            Measure(
                "HTTP: round trip, back to back",
                lambda: self.http(1000),
                "GET /health",  # all of HTTP, without laird
                lambda: self.http(1000, b"GET /health", b""),
            ),
            Measure(
                "round trip, after 5 ms",
                lambda: self.lair("exec", "data", 200, 0.005),
                "ipykernel",
                lambda: [after(0.005, lambda: jupyter.run("1+1")) for _ in range(50)],
                then=3.6e-3,
                p50=120e-6,
            ),
            Measure(
                "round trip, pandas, checkpoints, after 5 ms",
                lambda: self.lair("exec", "saved", 200, 0.005),
                "two queues",
                lambda: [timed(lambda: queues.run("1+1")) for _ in range(3000)],
                then=22e-6,
                p50=120e-6,
            ),
            Measure(
                "round trip, pandas, checkpoints, after 5 ms",
                lambda: self.lair("exec", "saved", 200, 0.005),
                "checkpoint = off",
                lambda: self.lair("exec", "unsaved", 200, 0.005),
            ),
            Measure(
                "round trip, pandas, checkpoints, after 5 ms",
                lambda: self.lair("exec", "saved", 200, 0.005),
                "queues, after 5 ms",
                lambda: [after(0.005, lambda: queues.run("1+1")) for _ in range(200)],
            ),
            Measure(
                "round trip, pandas, checkpoints, after 5 ms",
                lambda: self.lair("exec", "saved", 200, 0.005),
                "a bare broker",
                lambda: self.bare(200, 0.005),
            ),
            Measure(
                "round trip, pandas, checkpoints, after 5 ms",
                lambda: self.lair("exec", "saved", 200, 0.005),
                "a bare fork each",
                lambda: [after(0.005, lambda: forks.run("1+1")) for _ in range(200)],
            ),
            Measure(
                "round trip, pandas, checkpoints, back to back",
                lambda: self.lair("exec", "saved", 500),
                "two queues",
                lambda: [timed(lambda: queues.run("1+1")) for _ in range(3000)],
                then=22e-6,
                p50=1e-3,
            ),
            Measure(
                "round trip, pandas, checkpoints, back to back",
                lambda: self.lair("exec", "saved", 500),
                "a bare fork each",
                lambda: [timed(lambda: forks.run("1+1")) for _ in range(500)],
            ),
            Measure(
                "one-shot, numpy pandas matplotlib",
                lambda: self.lair("oneshot", "data", 40, 0.05),
                "python3 -c",
                lambda: [timed(lambda: plain_python(IMPORTS)) for _ in range(2)],
                then=207e-3,
                p50=1.5e-3,
            ),
            Measure(
                "lair exec without a daemon, numpy pandas matplotlib",
                first_use,
                "python3 -c",
                lambda: [timed(lambda: plain_python(IMPORTS)) for _ in range(3)],
            ),
            Measure(
                "lair exec -s without a daemon, numpy pandas matplotlib",
                lambda: first_use(IMPORTS, "-s", "stays"),
                "python3 -c",
                lambda: [timed(lambda: plain_python(IMPORTS)) for _ in range(3)],
            ),
            Measure(
                "lair exec without a daemon, 1",
                lambda: first_use("1"),
                "python3 -c",
                lambda: [timed(lambda: plain_python("1")) for _ in range(3)],
            ),
            Measure(
                "reset, to the next result",
                lambda: self.lair("reset", "data", 40, 0.01),
                "ipykernel",
                lambda: [timed(jupyter.restart)],
                then=697e-3,
                p50=2e-3,
            ),
            Measure(
                "a call of a function, in a loop",
                lambda: self.lair("calls", "default", 3, code=LOOP),
                "a cell's round trip",
                lambda: self.lair("exec", "default", 3000),
            ),
            Measure(
                "a call of a function, 100 at once",
                lambda: self.lair("calls", "default", 3, code=GATHER),
                "two queues",
                lambda: [timed(lambda: queues.run("1+1")) for _ in range(3000)],
                then=85e-6,
                p50=60e-6,
            ),
            Measure(
                "round trip, a function offered",
                lambda: self.lair("offer", "default", 3000),
                "none offered",
                lambda: self.lair("exec", "default", 3000),
            ),
            Measure(
                "interrupt of a loop",
                lambda: self.lair("interrupt", "default", 40),
                "ipykernel",
                lambda: [jupyter.interrupt() for _ in range(5)],
                then=5.7e-3,
                p50=1e-3,
            ),
            Measure(
                "10 MB in 100,000 prints",
                lambda: self.whole(PRINTS, 10_000_000),
                "ipykernel",
                lambda: self.jupyter_output(PRINTS, 10_000_000),
                then=126e-3,
                p50=33e-3,
            ),
            Measure(
                "10 MB in one print",
                lambda: self.whole(STRING, 10_000_001),
                "two queues",
                lambda: [timed(lambda: queues.run(STRING))],
                then=11.5e-3,
                p50=15e-3,
            ),
            Measure(
                "100,000 prints, each flushed",
                lambda: self.whole(FLUSHES, flushed),
                "ipykernel",
                lambda: self.jupyter_output(FLUSHES, flushed),
                then=11.0,
                p50=0.5,
                rounds=1,
            ),
            Measure(
                "notebook: start to first result",
                lambda: [jupyter_open("1+1", "lair") for _ in range(3)],
                "ipykernel",
                lambda: [jupyter_open("1+1") for _ in range(3)],
            ),
            Measure(
                "notebook: restart to the next result",
                lambda: [timed(lambda: notebook.restart(now=False))],
                "ipykernel",
                lambda: [timed(lambda: jupyter.restart(now=False))],
            ),
            Measure(
                "notebook: round trip",
                lambda: [timed(lambda: notebook.run("1+1")) for _ in range(100)],
                "ipykernel",
                lambda: [timed(lambda: jupyter.run("1+1")) for _ in range(100)],
            ),
            Measure(
                "notebook: 10 MB in 100,000 prints",
                lambda: self.jupyter_output(PRINTS, 10_000_000, notebook),
                "ipykernel",
                lambda: self.jupyter_output(PRINTS, 10_000_000),
            ),
            Measure(
                "notebook: memory of one of ten, with pandas",
                lambda: self.memory_of_kernels(10, "lair", "import pandas"),
                "ipykernel",
                lambda: self.memory_of_kernels(10, "python3", "import pandas"),
                rounds=1,
                unit="memory",
            ),
            *self.of_packages(),
            Measure("lair mcp, from its start to its tools", self.mcp_start, p50=10e-3),
            Measure(
                "memory of an idle session, all loaded",
                self.memory_of_sessions,
                "ipykernel",
                self.memory_of_kernels,
                p50=2.5 * (1 << 20),
                rounds=1,
                unit="memory",
            ),
        ]


def samples(command: list[object]) -> list[float]:
    """Of a program that prints microseconds."""
    output = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, check=True, text=True).stdout
    return [float(line) / 1e6 for line in output.split()]


def after(pause: float, act: Callable[[], object]) -> float:
    time.sleep(pause)
    return timed(act)


def first_use(code: str = IMPORTS, *flags: str) -> list[float]:
    """With the default settings; each time a daemon of its own is started."""
    taken = []
    for _ in range(3):
        with tempfile.TemporaryDirectory() as directory:
            env = {**os.environ, "LAIR_SOCKET": f"{directory}/socket", "LAIR_CONFIG": f"{directory}/conf"}
            defaults = subprocess.run([BIN / "laird", "-d"], stdout=subprocess.PIPE, check=True).stdout
            Path(directory, "conf").write_bytes(defaults)
            taken.append(timed(partial(quietly, env, "exec", *flags, code)))
            quietly(env, "stop")
    return taken


def quietly(env: dict[str, str], *arguments: str) -> None:
    subprocess.run([BIN / "lair", *arguments], env=env, stdout=subprocess.DEVNULL, check=True)


def plain_python(code: str) -> None:
    subprocess.run(["/usr/bin/python3", "-c", code], check=True)


def available() -> int:
    with open("/proc/meminfo") as meminfo:
        return next(int(line.split()[1]) << 10 for line in meminfo if line.startswith("MemAvailable"))


def percentile(samples: list[float], percent: int) -> float:
    return sorted(samples)[min(len(samples) - 1, len(samples) * percent // 100)]


def human(value: float, unit: str) -> str:
    if unit == "memory":
        return f"{value / (1 << 20):.1f} MB"
    for scale, name in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if value >= scale:
            return f"{value / scale:.{2 if value / scale < 10 else 0}f} {name}"
    return f"{value * 1e9:.0f} ns"


def verdict(measure: Measure, p50: float, p99: float) -> str:
    """The targets, and whether they are met: as they are, or on a machine that is slower by as much as the rival is."""
    slower = max(1.0, statistics.median(measure.their_samples) / measure.then) if measure.then else 1.0
    parts = []
    for name, target, value in (("p50", measure.p50, p50), ("p99", measure.p99, p99)):
        if not target:
            continue
        said = "ok" if value <= target else "MISSED"
        if value > target and slower > 1:
            scaled = "ok" if value <= target * slower else "MISSED"
            said += f", {scaled} for a rival {slower:.1f}x slower"
        parts.append(f"{name} <= {human(target, measure.unit)} {said}")
    if measure.times:
        most = measure.times * statistics.median(measure.their_samples)
        parts.append(f"p50 <= {measure.times} x the rival's {'ok' if p50 <= most else 'MISSED'}")
    return "; ".join(parts)


def report(measures: list[Measure]) -> None:
    heads = ("measure", "Lair p50", "p99", "rival", "p50", "p99", "ratio", "target")
    rows = []
    for measure in measures:
        p50, p99 = statistics.median(measure.our_samples), percentile(measure.our_samples, 99)
        row = [measure.name, human(p50, measure.unit), human(p99, measure.unit), "", "", "", ""]
        if measure.their_samples:
            their50 = statistics.median(measure.their_samples)
            row[3:] = [
                measure.rival,
                human(their50, measure.unit),
                human(percentile(measure.their_samples, 99), measure.unit),
                f"{their50 / p50:.1f}x" if p50 > 0 else "",
            ]
        rows.append([*row, verdict(measure, p50, p99)])
    print_table([list(heads), *rows])


def print_table(rows: list[list[str]]) -> None:
    widths = [max(map(len, column)) for column in zip(*rows)]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())


def main() -> int:
    names = sys.argv[1:]
    bench = Bench(names)
    try:
        chosen = [m for m in bench.measures() if not names or any(name in m.name for name in names)]
        if not chosen:
            print("no such measure; there are:", *[m.name for m in bench.measures()], sep="\n  ")
            return 2
        for number in range(ROUNDS):
            for measure in chosen:
                if number >= measure.rounds:
                    continue
                print(f"round {number + 1}: {measure.name}", flush=True)
                measure.our_samples += measure.ours()
                if measure.theirs:
                    measure.their_samples += measure.theirs()
        print()
        print(os.uname().release, f"{os.cpu_count()} cpus", sep=", ")
        report(chosen)
        return 0
    finally:
        bench.close()


if __name__ == "__main__":
    sys.exit(main())

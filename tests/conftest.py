"""No test may hang: after a minute it fails where it stands. And whoever starts the tests, Ctrl-C is Ctrl-C in them. What
`./dev test` leaves out has a mark, from a list. At the end a run names each slow test that is not on it."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any, List, Optional

import pytest

SECONDS = 60
SLOW = 5
HERE = Path(__file__).parent
LISTED = [line for line in (HERE / "long.txt").read_text().splitlines() if line and not line.startswith("#")]
LONG = [line for line in LISTED if not line.startswith("+")]
ESSENTIAL = [line[1:] for line in LISTED if line.startswith("+")]

# A shell without job control starts what it puts into the background with SIGINT ignored, and that is inherited by all
# that a test starts.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _too_long(number: int, frame: Optional[FrameType]) -> None:
    pytest.fail(f"the test took longer than {SECONDS} s", pytrace=True)


@pytest.fixture(autouse=True)
def time_limit() -> Iterator[None]:
    previous = signal.signal(signal.SIGALRM, _too_long)
    signal.alarm(SECONDS)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, previous)


# A file's tests stay with one worker: those that take longest begin first, so that nobody waits for the last one.
FIRST = (
    "test_ways_to_die.py",
    "test_scenarios.py",
    "test_first_use.py",
    "test_jupyter.py",
    "test_hostile_packages.py",
    "test_magics.py",
    "test_user_templates.py",
)


def _name(nodeid: str) -> str:
    return nodeid.removeprefix("tests/")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: List[pytest.Item]) -> None:
    names = [_name(item.nodeid) for item in items]
    for item, name in zip(items, names):
        if name.startswith(tuple(LONG)):
            item.add_marker("long")
        if not name.startswith("system/"):
            item.add_marker("shipped")
    items.sort(key=lambda item: Path(str(item.fspath)).name not in FIRST)
    whole = any(Path(argument).absolute() == HERE for argument in config.args)
    if whole and not config.getoption("lf", False):
        for entry in (*LONG, *ESSENTIAL):
            if not any(name.startswith(entry) for name in names):
                raise pytest.UsageError(f"tests/long.txt: no test is called {entry}...")


# Side by side with others, each worker chooses for itself, and the summary would not tell what was left out.


def pytest_deselected(items: List[pytest.Item]) -> None:
    if items and hasattr(items[0].config, "workeroutput"):
        items[0].config.workeroutput["deselected"] = len(items)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    reporter = node.config.pluginmanager.get_plugin("terminalreporter")
    if reporter and "deselected" in getattr(node, "workeroutput", {}):
        reporter.stats["deselected"] = [None] * node.workeroutput["deselected"]


def pytest_terminal_summary(terminalreporter: Any) -> None:
    allowed = (*LONG, *ESSENTIAL)
    calls = [report for report in terminalreporter.getreports("passed") if report.when == "call"]
    slow = [it for it in calls if it.duration > SLOW and not _name(it.nodeid).startswith(allowed)]
    if slow:
        terminalreporter.section(f"longer than {SLOW} s, and not in tests/long.txt")
    for report in sorted(slow, key=lambda it: -it.duration):
        terminalreporter.line(f"{report.duration:6.1f} s  {_name(report.nodeid)}")

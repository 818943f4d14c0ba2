"""Runs tests with pytest and writes down what came of each: the same text in a session and beside it.

A line is written when a test begins and another when it has ended. So if the process dies, the next one goes on with
the tests that have not begun.
"""

import json
import os
import re
import shutil
import signal
import sysconfig
from typing import Any, Generator, List, Optional, Sequence, Set

# What a test may take; then it has failed, on either side.
SECONDS = 120


class Journal:
    def __init__(self, path: str) -> None:
        self.home = os.getcwd()
        self.begun = set()
        if os.path.exists(path):
            with open(path) as lines:
                self.begun = {line[1] for line in map(json.loads, lines) if line[0] == "begin"}
        self.file = open(path, "a", buffering=1)  # noqa: SIM115

    def name(self, nodeid: str) -> str:
        """An id without what differs from run to run."""
        return re.sub(r"0x[0-9a-f]+", "0x", nodeid.replace(self.home, "~"))

    def write(self, *line: object) -> None:
        self.file.write(json.dumps(line) + "\n")


def last_words(report: Any) -> str:
    crash = getattr(report.longrepr, "reprcrash", None)
    text: str = crash.message if crash is not None else str(report.longrepr)
    return text.strip()[-300:]


def recorder(journal: Journal, only: Set[str]) -> object:
    """A plugin of pytest."""
    import pytest

    def too_long(number: int, frame: object) -> None:
        pytest.fail(f"took longer than {SECONDS} s")

    class Recorder:
        def pytest_collection_modifyitems(self, items: List[Any]) -> None:
            names = [(item, journal.name(item.nodeid)) for item in items]
            items[:] = [it for it, name in names if name not in journal.begun and (not only or name in only)]

        def pytest_collectreport(self, report: Any) -> None:
            if report.failed:
                journal.write("end", journal.name(report.nodeid), "error", last_words(report))

        @pytest.hookimpl(hookwrapper=True, tryfirst=True)  # type: ignore[misc]
        def pytest_runtest_protocol(self) -> Generator[None, None, None]:
            before = signal.signal(signal.SIGALRM, too_long)
            signal.alarm(SECONDS)
            yield
            signal.alarm(0)
            signal.signal(signal.SIGALRM, before)

        def pytest_runtest_logstart(self, nodeid: str) -> None:
            self.outcome, self.text = "passed", ""
            journal.write("begin", journal.name(nodeid))

        def pytest_runtest_logreport(self, report: Any) -> None:
            if report.failed and self.outcome != "failed":
                self.outcome, self.text = "failed" if report.when == "call" else "error", last_words(report)
            elif hasattr(report, "wasxfail"):
                self.outcome = "xfailed" if report.skipped else "xpassed"
            elif report.skipped:
                self.outcome, self.text = "skipped", last_words(report)

        def pytest_runtest_logfinish(self, nodeid: str) -> None:
            journal.write("end", journal.name(nodeid), self.outcome, self.text)

    return Recorder()


def drive(tree: Optional[str], arguments: Sequence[str], only: Sequence[str]) -> None:
    """In the present directory, with a copy of `tree` in it if there is one. `only`: the ids to run; none: all."""
    import pytest

    journal = Journal("journal")
    if tree:
        shutil.rmtree("tree", ignore_errors=True)
        shutil.copytree(tree, "tree")
        os.chdir("tree")
    else:  # ids are paths beneath that
        arguments = ["--rootdir", sysconfig.get_paths()["purelib"], *arguments]
    status = pytest.main(["-q", "-p", "no:cacheprovider", *arguments], plugins=[recorder(journal, set(only))])
    os.chdir(journal.home)
    journal.write("over", int(status))

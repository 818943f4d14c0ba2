"""An undo opens as many directories as there are, however deep they lie."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from daemon import TRACES, Daemon, descendants, is_traced, wait_until
from lair import Client

pytestmark = pytest.mark.usefixtures("no_sessions_left")

# Nobody looks at the files besides.
SETTINGS = {"profile default": {"spares": "0", "checkpoint": "cell", "level": "", "workspace_size": "0"}}

MAKE = """
import os
for i in range(DEPTH):
    os.mkdir('d')
    os.chdir('d')
    open('f', 'w').write('x')
os.chdir('../' * DEPTH)
"""
CHANGE = "for i in range(DEPTH): open('d/' * (i + 1) + 'f', 'a').write('y')"


def wardens(daemon: Daemon) -> list[int]:
    return [it for it in descendants(daemon.process.pid) if Path(f"/proc/{it}/comm").read_text() == "lair-warden\n"]


def opens_of_undo(daemon: Daemon, client: Client, depth: int, log: Path) -> int:
    session = f"deep{depth}"
    client.exec(MAKE.replace("DEPTH", str(depth)), session)
    client.exec(CHANGE.replace("DEPTH", str(depth)), session)
    (warden,) = wardens(daemon)
    with subprocess.Popen(["strace", "-qq", "-e", "trace=openat", "-o", log, "-p", str(warden)]) as strace:
        wait_until(lambda: is_traced(warden), "it is traced")
        assert client.undo(session).files_stay is None
        strace.terminate()
    client.shutdown(session)
    return len(log.read_text().splitlines())


@pytest.mark.skipif(not TRACES, reason="the daemon's processes cannot be traced")
def test_three_times_as_deep(daemon: Daemon, client: Client, tmp_path: Path) -> None:
    """A way from the root to each file would be nine times as many."""
    less, more = (opens_of_undo(daemon, client, depth, tmp_path / str(depth)) for depth in (100, 300))
    assert 100 < less < more < 4 * less

"""With little memory an answer says what is missing in it, or is an error. It never looks like success, and never stays
away."""

from __future__ import annotations

import re
import resource
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from daemon import Daemon, memory_of
from lair import LairError
from lair import messages as m

StartDaemon = Callable[..., Daemon]

SIZE = 6_000_000
PRINT = f"import os; os.write(1, b'x' * {SIZE}); 'the end'"
MARGINS = [0.2, 0.6, 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 26, 40, 60]
BARE = {"preload": "", "spares": "0", "checkpoint": "off", "output_size": "16M"}


@contextmanager
def little_memory(router: int, margin: float) -> Iterator[None]:
    """The router may have so many megabytes more than it has."""
    before = resource.prlimit(router, resource.RLIMIT_DATA)
    resource.prlimit(router, resource.RLIMIT_DATA, (memory_of(router, "VmData") + int(margin * 1e6), before[1]))
    try:
        yield
    finally:
        resource.prlimit(router, resource.RLIMIT_DATA, before)


def whole(kept: bytes, dropped: int) -> int:
    """How much was written, as an answer tells it."""
    kept, n = re.subn(rb"\n\[\.\.\. \d+ bytes left out \.\.\.\]\n", b"", kept)
    assert set(kept) <= set(b"x") and (n == 1 or dropped == 0 or kept == b"")
    return len(kept) + dropped


@pytest.mark.shipped
def test_much_output(start_daemon: StartDaemon) -> None:
    daemon = start_daemon({"profile default": BARE})
    client = daemon.client(timeout=20)
    router = client.stats().pid
    client.exec("x = 0", "s")
    seen = set()
    for margin in MARGINS:
        with little_memory(router, margin):
            try:
                reply = client.exec(PRINT, "s")
            except (LairError, ConnectionError) as error:
                seen.add(str(error))
                continue
        assert (reply.returncode, reply.state, reply.text) == (0, "kept", "'the end'"), margin
        assert whole(reply.stdout, reply.stdout_dropped) == SIZE, margin
        seen.add("some" if reply.stdout_dropped else "all")
    assert {"some", "all"} <= seen, seen
    assert client.stats().pid == router
    assert client.exec("x", "s").text == "0"


@pytest.mark.shipped
def test_much_output_that_is_watched(start_daemon: StartDaemon) -> None:
    """What does not reach who watches is counted in the answer."""
    daemon = start_daemon({"profile default": BARE})
    client = daemon.client(timeout=20)
    router = client.stats().pid
    client.exec("x = 0", "s")
    for margin in MARGINS[::3]:
        got = 0
        with little_memory(router, margin):
            request = client.send(m.Exec(id=client.new_id(), session="s", code=PRINT, stream=True))
            try:
                while not isinstance(event := client.receive(request, m.ExecReply), m.ExecReply):
                    got += len(event.data) if isinstance(event, m.StdoutEvent) else 0
            except (LairError, ConnectionError):
                continue
        assert (event.returncode, event.state) == (0, "kept"), margin
        assert got + event.stdout_dropped == SIZE, margin
    assert client.stats().pid == router
    assert client.exec("x", "s").text == "0"


@pytest.mark.shipped
@pytest.mark.parametrize("shows", ["much", "display(much)"])
def test_much_that_is_shown(start_daemon: StartDaemon, shows: str) -> None:
    """As the value of a cell, or on the way. What there is no memory to read waits for some, and nobody is killed for it."""
    daemon = start_daemon({"profile default": BARE})
    client = daemon.client(timeout=20)
    router = client.stats().pid
    client.exec(f"class Much:\n    def _repr_html_(self): return 'x' * {SIZE}\nmuch, x = Much(), 0", "s")
    for margin in MARGINS[::3]:
        with little_memory(router, margin):
            cell = client.start(shows, "s")
            time.sleep(0.3)
            assert client.info("s").state in ("busy", "idle")
        try:
            reply = client.finish(cell, m.ExecReply)
        except LairError:
            continue
        assert (reply.returncode, reply.state) == (0, "kept"), margin
        if shows == "much":
            assert reply.data and len(reply.data["text/html"]) == SIZE
        else:
            assert len(reply.displays or []) + reply.displays_dropped >= 1
    assert client.stats().pid == router
    assert client.exec("x", "s").text == "0"

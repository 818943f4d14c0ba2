"""What laird holds outside the memory limits of sessions: its own heap, and memory files that the kernel counts as
laird's. What was answered, read or left out is given back."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from daemon import Daemon, memory_of, wait_until
from lair import Client
from lair import messages as m

Start = Callable[..., Daemon]

MIB = 1 << 20


def held(pid: int, name: str) -> int:
    """Bytes that its memory files of that name have."""
    found = {}
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        try:
            if os.readlink(entry).startswith(f"/memfd:{name}"):
                status = entry.stat()
                found[status.st_ino] = status.st_blocks * 512
        except FileNotFoundError:
            continue
    return sum(found.values())


def test_what_is_written_between_cells_is_bounded(client: Client, session: str) -> None:
    """A thread goes on when its cell is over."""
    forever = "def write():\n    while True: os.write(1, b'x' * 65536)"
    client.exec(f"import os, threading\n{forever}\nthreading.Thread(target=write, daemon=True).start()", session)
    router = client.stats().pid
    end = time.monotonic() + 2
    while time.monotonic() < end:
        assert held(router, "lair-transcript") < MIB
    client.shutdown(session)


@pytest.mark.parametrize("killed", [False, True])
def test_and_is_the_same_for_the_next_router(start_daemon: Start, killed: bool) -> None:
    daemon = start_daemon()
    client = daemon.client()
    lines = b"".join(b"%07d\n" % i for i in range(50_000))
    late = "def write():\n    sleep(0.3)\n    for i in range(50_000): print(f'{i:07}')\n    print(end='', flush=True)\n    open('written', 'w')"
    client.exec(
        f"import os, threading\nfrom time import sleep\n{late}\nthreading.Thread(target=write).start()", "s"
    )
    wait_until(lambda: "written" in str(client.files("s")), "it has written")
    router = client.stats().pid
    code = "print('begin', flush=True)\nopen('begun', 'w')\nwhile not os.path.exists('go'): sleep(0.01)"
    request = client.send(m.Exec(id=client.new_id(), session="s", code=code, key="k"))
    wait_until(lambda: "begun" in str(client.files("s")), "it runs")
    if killed:
        os.kill(router, signal.SIGKILL)
        client = daemon.client()
    client.put("s", "go", b"")
    if killed:
        request = client.send(m.Attach(id=client.new_id(), session="s", key="k"))
    reply = client.finish(request, m.ExecReply)
    head, _, rest = reply.stdout.partition(b"\n[... ")
    count, _, tail = rest.partition(b" bytes left out ...]\n")
    assert lines.startswith(head) and len(head) == 32768
    assert (lines + b"begin\n").endswith(tail) and len(tail) == 32768 + len(b"begin\n")
    assert int(count) == len(lines) - 65536
    client.shutdown("s")


def test_a_letter_is_gone_when_it_is_read(client: Client, session: str) -> None:
    for i in range(4):
        client.exec(f"display({{'text/plain': '{i}' * 8_000_000}}, raw=True)", session)
    assert held(client.stats().pid, "lair-output") < MIB


@pytest.mark.shipped
def test_large_answers_are_given_back(daemon: Daemon, client: Client) -> None:
    router = client.stats().pid
    before = memory_of(router, "RssAnon")
    shows = "display({'text/plain': 'x' * 7_000_000}, raw=True)\n" * 2 + "import time; time.sleep(1)"
    clients = [daemon.client() for _ in range(6)]
    requests = [it.start(shows, f"s{i}") for i, it in enumerate(clients)]
    for it, request in zip(clients, requests, strict=True):
        assert it.finish(request, m.ExecReply).displays_dropped == 0
    assert memory_of(router, "RssAnon") < before + 4 * MIB
    for i in range(6):
        client.shutdown(f"s{i}")

"""What takes long takes it from whoever it is about: no round of the router is as long as all of them together."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

import internal
from daemon import Daemon
from lair import Client, codec
from lair import messages as m

N = 10
MARK = "\x01" * 65536

FORGED = codec.encode(internal.Done(cell=2, returncode=0, blocked=[{"event": MARK, "target": "t", "reason": "r"}]))

# The largest letter there is, all of control characters, which takes six bytes for each in the audit log.
CODE = """
import mmap, os, stat, struct, time
open_ones = [fd for fd in range(3, 1024) if os.path.exists(f"/proc/self/fd/{fd}")]
(channel,) = [fd for fd in open_ones if stat.S_ISSOCK(os.fstat(fd).st_mode)]
(room,) = [fd for fd in open_ones if "lair-output" in os.readlink(f"/proc/self/fd/{fd}")]
size = 16 << 20
n = size - len(head) - len(tail) - 4
letter = head + struct.pack(">I", n) + b"\\1" * n + tail
mmap.mmap(room, (256 << 10) + 2 * size)[256 << 10 : (256 << 10) + size] = letter
def forge():
    os.write(channel, struct.pack("<QII", 2, size, 0))
    time.sleep(30)
"""


def test_ten_forged_results(start_daemon: Callable[..., Daemon], tmp_path: Path) -> None:
    daemon = start_daemon({"daemon": {"audit_log": str(tmp_path / "audit")}})
    at = FORGED.index(MARK.encode())
    head, tail = FORGED[: at - 4], FORGED[at + len(MARK) :]
    over, slowest = threading.Event(), [0.0]

    def go_on() -> None:
        with Client(str(daemon.socket)) as other:
            while not over.is_set():
                before = time.monotonic()
                other.exec("1", "other")
                slowest[0] = max(slowest[0], time.monotonic() - before)

    with daemon.client() as client:
        pid = client.stats().pid
        for i in range(N):
            assert client.exec(f"head, tail = {head!r}, {tail!r}\n{CODE}", f"s{i}").returncode == 0
        client.exec("1", "other")
        bystander = threading.Thread(target=go_on)
        bystander.start()
        began = time.monotonic()
        clients = [daemon.client() for _ in range(N)]  # an answer is as large as what was forged
        cells = [it.start("forge()", f"s{i}") for i, it in enumerate(clients)]
        for it, cell in zip(clients, cells):
            reply = it.finish(cell, m.ExecReply)
            assert reply.cause == "violation" and not reply.blocked
        took = time.monotonic() - began
        over.set()
        bystander.join()
        assert client.stats().pid == pid
    assert took < 15, "each alone had taken two seconds and a half"
    assert slowest[0] < 3
    for line in (tmp_path / "audit").read_text().splitlines():
        assert len(line) < 30_000

"""A session that works against going back: it lies about its files, and its threads and copies write all the time."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import internal
import links
from daemon import Daemon, Settings
from lair import Client, codec
from test_hostile_interpreters import PRELUDE
from test_ordinary_user import USER, programs  # noqa: F401
from test_quota import stored

M = 1 << 20
LIMIT = 64 * M
SETTINGS: Settings = {
    "profile default": {
        "checkpoint": "cell",
        "grace": "100ms",
        "workspace_size": "64M",
        "file_size": "off",
        "level": "strong-nomem",
    }
}


@pytest.fixture(scope="module", params=["user", "root"] if os.geteuid() == 0 else ["user"])
def daemon(request: pytest.FixtureRequest, programs: Path) -> Iterator[Daemon]:  # noqa: F811
    it = Daemon(SETTINGS, uid=USER if request.param == "user" else None, binaries=programs)
    yield it
    it.end()


def lie(client: Client, session: str, code: str, cell: int) -> None:
    """Runs the code. Its `done` says that nothing has changed and nothing goes on: the true one seems to repeat it."""
    said = links.datagram(codec.encode(internal.Done(cell=cell, returncode=0)), 2 * cell - 1)
    reply = client.exec(f"{code}\nsay([{said!r}])", session)
    assert (reply.cell, reply.returncode) == (cell, 0), reply.stderr


# Threads that hold the GIL only now and then, and one that exchanges what the warden is writing for a FIFO.
THREADS = """
import threading
seen, go = [], True
def look():
    while go:
        for name in ("later", "f0", "f63"):
            if os.path.exists(name): seen.append(name)
def exchange():
    while go:
        for name in os.listdir():
            if name.startswith(".lair-back"):
                try: os.unlink(name); os.mkfifo(name); seen.append(name)
                except OSError: pass
for work in (look, exchange):
    threading.Thread(target=work, daemon=True).start()
"""


def test_threads_run_only_when_the_files_are_back(client: Client, session: str) -> None:
    client.exec(PRELUDE + "for i in range(32): open(f'g{i}', 'wb').write(bytes([i]) * 10**6)", session)
    lie(client, session, THREADS, 2)
    for _ in range(5):
        client.exec("go = False", session)
        client.exec(
            "open('later', 'w')\nfor i in range(64): open(f'f{i}', 'wb').write(b'x' * 10**5); open(f'g{i % 32}', 'w')",
            session,
        )
        reply = client.undo(session, 2)
        assert (reply.cell, reply.files_stay) == (2, None)
        assert client.exec("seen, os.path.getsize('g31')", session).text == "([], 1000000)"
        client.undo(session)


# A checkpoint that user code has made by itself, and answered for: it runs what it likes.
COPY = """
import ctypes, socket, struct, array
def freeze(work):
    it = socket.socket(fileno=os.dup(channel))
    data, ancillary, *_ = it.recvmsg(65536, 64)
    serial = data[data.index(b"serial") + 6]
    clone = ctypes.CDLL("libseccomp.so.2").seccomp_syscall_resolve_name(b"clone")
    pid = ctypes.CDLL(None).syscall(clone, 0x8000 | 17, 0, 0, 0, 0)  # a sibling, as a copy would be
    if pid == 0:
        try: work()
        finally: os._exit(0)
    return serial, pid
"""


def hostile_copy(client: Client, session: str, work: str) -> None:
    """After this, the state of cell 3 is a process that does @work all the time."""
    client.exec(PRELUDE + COPY, session)
    done = links.datagram(codec.encode(internal.Done(cell=3, returncode=0, changed=True)), 5)
    frozen = codec.encode(internal.Frozen(serial=120, pid=121))
    client.exec(
        f"{work}\nsay([{done!r}])\nserial, pid = freeze(work)\nsaid = bytearray({frozen!r})\n"
        "said[said.index(120)], said[said.index(121)] = serial, pid\n"
        "say([struct.pack('<QII', 6, 0, 0) + bytes(said)])\ntime.sleep(60)",
        session,
    )


# Each takes the files of the first state away, so that they must be made again.
WORK = {
    "writes": """
def work():
    while True:
        for i in range(20):
            with open(f"g{i}", "wb") as file: file.write(b"x" * (1 << 20))
""",
    "exchanges": """
def work():
    while True:
        for name in os.listdir():
            if name.startswith(".lair-back"):
                try: os.unlink(name); os.mkfifo(name)
                except OSError: pass
""",
    "has children": """
def work():
    for _ in range(4):
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                while True:
                    with open("g0", "ab") as file: file.write(b"x")
            while True: time.sleep(1)
    while True: time.sleep(1)
""",
    "leaves children": """
def work():
    for _ in range(4):
        if os.fork() == 0:
            while True:
                with open("g0", "ab") as file: file.write(b"x")
""",
}


@pytest.mark.parametrize("what", WORK)
def test_a_copy_that_runs_by_itself(client: Client, session: str, what: str) -> None:
    """It stands still while files are restored: what is answered is so, though it runs on afterwards."""
    client.exec("for i in range(20): open(f'g{i}', 'wb').write(bytes([i]) * (1 << 20))", session)
    hostile_copy(client, session, WORK[what])
    workspace = Path(client.info(session).workspace)
    for _ in range(3):
        reply = client.undo(session)
        assert (reply.cell, reply.files_stay) == (2, None)
        assert stored(str(workspace))[0] < 1.5 * LIMIT
        assert client.exec("for i in range(20): os.unlink(f'g{i}')", session).returncode == 0

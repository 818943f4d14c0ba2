"""Holes stay holes: in what is kept, in what is compared, and in what goes back. What is kept is counted as the disk
counts it."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from lair import Client
from lair import messages as m
from test_files_back import changes, place, tree

pytestmark = pytest.mark.usefixtures("no_sessions_left")

SETTINGS = {
    "profile default": {
        "grace": "100ms",
        "level": "",
        "checkpoint": "cell",
        "checkpoint_files": "1M",
        "workspace_size": "64M",
    },
}


def stored(path: Path) -> int:
    return path.stat().st_blocks * 512


def test_truncated(client: Client, opened: str) -> None:
    """900 MB each, of which a quota of 64 MB has next to nothing."""
    code = """
import os
for n in 'abc':
    with open(n, 'wb') as f: f.truncate(900_000_000); f.seek(450_000_000); f.write(n.encode())
"""
    client.exec(code, opened)
    client.exec("for n in 'abc': os.truncate(n, 0)", opened)
    reply = client.undo(opened)
    assert reply.files_stay is None and changes(reply) == dict.fromkeys("abc", "restored")
    for n in "abc":
        path = place(client, opened) / n
        assert path.stat().st_size == 900_000_000 and stored(path) <= 65536
        with path.open("rb") as file:
            file.seek(449_999_999)
            assert file.read(3) == b"\0" + n.encode() + b"\0"
    assert client.exec("len(os.listdir())", opened).text == "3"


def test_written_and_removed(client: Client, opened: str) -> None:
    client.exec("import os\nwith open('a', 'wb') as f: f.write(b'1' * 8192); f.truncate(20_000_000)", opened)
    before = tree(place(client, opened))
    client.exec("f = open('a', 'r+b'); f.seek(4096); f.write(os.urandom(15_000_000)); f.close()", opened)
    assert client.undo(opened).files_stay is None
    assert tree(place(client, opened)) == before and stored(place(client, opened) / "a") <= 65536
    client.exec("os.remove('a')", opened)
    assert client.undo(opened).files_stay is None
    assert tree(place(client, opened)) == before and stored(place(client, opened) / "a") <= 65536


def test_holes_are_not_read(client: Client, opened: str) -> None:
    """A time that has changed makes a comparison, which does not go through gigabytes of nothing."""
    client.exec(
        "import os\nfor n in 'abcdef':\n    with open(n, 'wb') as f: f.write(b'x'); f.truncate(1 << 40)", opened
    )
    client.exec("for n in 'abcdef': os.utime(n, (1, 1))", opened)
    begun = time.monotonic()
    assert client.exec("1", opened).text == "1"
    assert time.monotonic() - begun < 5  # it would be an hour
    assert {it.cell: it.files_size for it in client.checkpoints(opened)}[2] == 0


def test_blocks_are_counted(client: Client, opened: str) -> None:
    """400 files of one byte are 1.6 MB, for a limit of 1 MB."""
    reply = client.exec("for n in range(400): open(str(n), 'w').write('x')", opened)
    reply = client.exec("1", opened)
    assert reply.files_unkept is not None and reply.files_unkept.endswith("it is too large to be kept")


def test_blocks_are_told(client: Client, opened: str) -> None:
    client.exec("for n in range(100): open(str(n), 'w').write('x')", opened)
    client.call(m.Vars(id=client.new_id(), session=opened), m.VarsReply)
    assert [it.files_size for it in client.checkpoints(opened)] == [100 * 4096]


def test_old_ones_make_room(client: Client, opened: str) -> None:
    """What they held is there again, however often."""
    for n in range(12):
        reply = client.exec(f"for n in range(100): open(str(n), 'w').write('{n}')", opened)
        assert reply.files_unkept is None
    assert client.undo(opened).files_stay is None
    assert os.path.getsize(place(client, opened) / "99") == 2

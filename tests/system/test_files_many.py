"""In a workspace of many files a cell that touches none does not look at them; one that does tells each, whoever wrote."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Iterator

import pytest

from lair import Client

pytestmark = pytest.mark.usefixtures("no_sessions_left")

SETTINGS = {
    "profile default": {"spares": "0", "checkpoint": "cell", "subprocess": "on", "level": "", "grace": "100ms"}
}

MANY = """
import ctypes, mmap, os, sqlite3, subprocess, threading
libc = ctypes.CDLL(None)
for i in range(3000):
    os.makedirs(f'd{i % 30}', exist_ok=True)
    open(f'd{i % 30}/{i}', 'w').write('x' * 10)
base = sqlite3.connect('base')
base.execute('create table t (x)')
base.commit()
held = open('d0/30', 'r+b')
view = mmap.mmap(held.fileno(), 0)
"""
# Long enough that Python's word alone is not taken for it.
BUSY = "for _ in range(100_000): pass\n"


@pytest.fixture
def many(client: Client) -> Iterator[str]:
    client.exec(MANY, "many")
    settle(client)
    yield "many"
    client.shutdown("many")


def settle(client: Client) -> None:
    """The first of them begins the watch."""
    for _ in range(3):
        client.exec(BUSY, "many")
        time.sleep(0.05)


def told(client: Client, code: str) -> dict[str, str]:
    reply = client.exec(BUSY + code, "many")
    assert reply.returncode == 0, reply.stderr
    return {it["path"].decode(): it["change"] for it in reply.artifacts or ()}


WAYS = {
    "Python": ("open('d1/1', 'w').write('y')", {"d1/1": "modified"}),
    "a library": ("base.execute('insert into t values (1)'); base.commit()", {"base": "modified"}),
    "C": ("libc.truncate(b'd1/31', 3)", {"d1/31": "modified"}),
    "C, a new one": ("libc.creat(b'd1/new', 0o600)", {"d1/new": "created"}),
    "a child": ("subprocess.run(['sh', '-c', 'echo y > d2/2'], check=True)", {"d2/2": "modified"}),
    "a thread": (
        "it = threading.Thread(target=lambda: libc.truncate(b'd3/3', 1)); it.start(); it.join()",
        {"d3/3": "modified"},
    ),
    "a map": ("view[0:1] = b'z'; view.flush()", {"d0/30": "modified"}),
    "a new directory": (
        "os.makedirs('fresh/er'); libc.creat(b'fresh/er/f', 0o600)",
        {"fresh/er/f": "created"},
    ),
    "another name": ("os.link('d4/4', 'd5/four')", {"d4/4": "modified", "d5/four": "modified"}),
}


@pytest.mark.parametrize("way", WAYS)
def test_each_change_is_told(client: Client, many: str, way: str) -> None:
    code, expected = WAYS[way]
    assert told(client, "") == {}
    assert told(client, code) == expected
    assert told(client, "") == {}
    settle(client)
    assert told(client, "") == {}


@pytest.mark.parametrize("way", ["C", "a child", "a map", "a new directory"])
def test_each_change_goes_back(client: Client, many: str, way: str) -> None:
    top = Path(next(it.workspace for it in client.list() if it.session == many))

    def content() -> dict[str, bytes]:
        return {str(it): it.read_bytes() for it in top.rglob("*") if it.is_file()}

    before = content()
    told(client, WAYS[way][0])
    assert content() != before
    client.undo(many)
    assert content() == before
    # What was changed by going back is not the work of the next cell, which sees its own changes as ever.
    assert told(client, "") == {}
    assert told(client, WAYS["Python"][0]) == WAYS["Python"][1]


def test_deletion_goes_back(client: Client, many: str) -> None:
    client.exec(BUSY + "libc.unlink(b'd6/6')", many)
    client.undo(many)
    assert client.exec("open('d6/6').read()", many).text == "'xxxxxxxxxx'"


def test_a_branch_tells_its_own(client: Client, many: str) -> None:
    client.branch(many, "other")
    reply = client.exec(BUSY + "libc.truncate(b'd1/31', 3)", "other")
    assert [it["path"] for it in reply.artifacts or ()] == [b"d1/31"]
    assert told(client, "") == {}
    client.shutdown("other")


def test_two_in_the_same_files(client: Client, many: str) -> None:
    """Neither takes the other's news away."""
    client.branch(many, "other", files=False)
    settle(client)
    client.exec(BUSY, "other")
    client.exec(BUSY + "libc.truncate(b'd1/31', 3)", "other")
    assert told(client, "libc.truncate(b'd2/32', 3)") == {"d2/32": "modified"}
    reply = client.exec(BUSY + "libc.truncate(b'd3/33', 3)", "other")
    assert [it["path"] for it in reply.artifacts or ()] == [b"d3/33"]
    client.shutdown("other")


def test_descriptors_that_are_closed(client: Client, many: str) -> None:
    """Without its warden's bell an interpreter looks for itself."""
    client.exec("import fcntl\nfor it in os.listdir('/proc/self/fd'):\n"
                "    if os.readlink('/proc/self/fd/' + it) == 'anon_inode:[eventfd]': os.close(int(it))", many)  # fmt: skip
    assert told(client, "") == {}
    assert told(client, WAYS["C"][0]) == WAYS["C"][1]


def test_what_touches_none_costs_no_look(client: Client, many: str) -> None:
    def took(code: str) -> float:
        began = time.perf_counter()
        client.exec(code, many)
        return time.perf_counter() - began

    # The file that is opened may have been mapped, so that cell does look.
    pairs = [(took(BUSY), took(BUSY + "open('d1/1').close()"), took(BUSY)) for _ in range(15)]
    assert min(quiet for _, _, quiet in pairs) < min(looks for _, looks, _ in pairs)

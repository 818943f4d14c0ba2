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
import ctypes, mmap, os, sqlite3, subprocess, threading, time
libc = ctypes.CDLL(None)
for i in range(3000):
    os.makedirs(f'd{i % 30}', exist_ok=True)
    open(f'd{i % 30}/{i}', 'w').write('x' * 10)
base = sqlite3.connect('base')
base.execute('create table t (x)')
base.commit()
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
    "a new directory": (
        "os.makedirs('fresh/er'); libc.creat(b'fresh/er/f', 0o600)",
        {"fresh/er/f": "created"},
    ),
    "another name": ("os.link('d4/4', 'd5/four')", {"d4/4": "modified", "d5/four": "modified"}),
}

HELD = "held = os.open('d0/30', os.O_RDWR); os.write(held, b'one')\n"
MAP = "view = mmap.mmap(held, 0)\n"
ORPHAN = """
if os.fork() == 0:
    if os.fork() == 0:
        view = mmap.mmap(held, 0)
        while not os.path.exists('/tmp/go'):
            time.sleep(0.01)
        view[0:1] = b'z'
        open('/tmp/done', 'w')
        time.sleep(1000)
    os._exit(0)
os.wait()
"""
# What cells before have left, with which a later one writes where no directory sees it.
UNSEEN = {
    "a map": (HELD + MAP, "view[0:1] = b'z'; view.flush()", {"d0/30": "modified"}),
    "a map that comes late": (HELD, MAP + "view[0:1] = b'z'", {"d0/30": "modified"}),
    "a map that comes and goes": (HELD, MAP + "view[0:1] = b'z'; view.close()", {"d0/30": "modified"}),
    "a map, of a descriptor that goes": (HELD, MAP + "os.close(held); view[0:1] = b'z'", {"d0/30": "modified"}),
    "a name that is gone": (HELD + "os.rename('d0/30', 'd1/it')", "os.write(held, b'two')", {"d1/it": "modified"}),
    "a link that is gone": (
        HELD + "os.link('d0/30', 'd1/it'); os.remove('d0/30')",
        "os.write(held, b'two')",
        {"d1/it": "modified"},
    ),
    "a link that is gone, closed": (
        HELD + "os.link('d0/30', 'd1/it'); os.remove('d0/30')",
        "os.write(held, b'two'); os.close(held)",
        {"d1/it": "modified"},
    ),
    "a name that another file has": (
        HELD + "os.link('d0/30', 'd1/it'); os.rename('d0/60', 'd0/30')",
        "os.write(held, b'two')",
        {"d1/it": "modified"},
    ),
    "a directory that is gone": (
        "os.mkdir('p'); held = os.open('p/it', os.O_RDWR | os.O_CREAT); os.write(held, b'one')\n"
        "os.link('p/it', 'd1/it'); os.remove('p/it'); os.rmdir('p')",
        "os.write(held, b'two')",
        {"d1/it": "modified"},
    ),
    "a file that was made without a name": (
        "held = os.open('.', os.O_TMPFILE | os.O_RDWR, 0o600); os.write(held, b'one')\n"
        "assert libc.linkat(-100, b'/proc/self/fd/%d' % held, -100, b'd1/it', 0x400) == 0",
        "os.write(held, b'two')",
        {"d1/it": "modified"},
    ),
    "a child of a child": (
        HELD + ORPHAN,
        "open('/tmp/go', 'w')\nwhile not os.path.exists('/tmp/done'): time.sleep(0.01)",
        {"d0/30": "modified"},
    ),
}


@pytest.mark.parametrize("way", UNSEEN)
def test_what_no_directory_sees(client: Client, many: str, way: str) -> None:
    prepare, code, expected = UNSEEN[way]
    told(client, prepare)
    top = Path(next(it.workspace for it in client.list() if it.session == many))
    before = {it: (top / it).read_bytes() for it in expected}
    settle(client)
    assert told(client, "") == {}
    assert told(client, code) == expected
    assert before != {it: (top / it).read_bytes() for it in expected}
    client.undo(many)
    assert before == {it: (top / it).read_bytes() for it in expected}


def test_while_files_of_a_branch_are_kept(client: Client, many: str) -> None:
    """What the warden does for one session hides nothing that another one does meanwhile."""
    client.branch(many, "other")
    settle(client)
    client.exec("open('large', 'wb').write(os.urandom(1 << 20) * 100)", "other")
    assert told(client, "libc.truncate(b'd1/31', 3)") == {"d1/31": "modified"}
    client.undo(many)
    assert client.exec("open('d1/31').read()", many).text == "'xxxxxxxxxx'"
    client.shutdown("other")


@pytest.mark.parametrize("way", WAYS)
def test_each_change_is_told(client: Client, many: str, way: str) -> None:
    code, expected = WAYS[way]
    assert told(client, "") == {}
    assert told(client, code) == expected
    assert told(client, "") == {}
    settle(client)
    assert told(client, "") == {}


@pytest.mark.parametrize("way", ["C", "a child", "a new directory"])
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

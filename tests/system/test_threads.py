"""A state has its threads: after going back, and in a branch, each goes on from where it was."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from daemon import Daemon, wait_until
from lair import Client
from lair import messages as m
from test_router_death import kill_router

pytestmark = pytest.mark.usefixtures("no_sessions_left")

SETTINGS = {"profile default": {"checkpoint": "cell", "grace": "100ms", "level": "", "processes": "400"}}

KILL = "import os; os.kill(os.getpid(), 9)"

# What a cell begins, what shows that it works, and that result, each time another one of the same kind.
WORK = {
    "an executor": (
        "from concurrent.futures import ThreadPoolExecutor\nimport time\n"
        "pool = ThreadPoolExecutor(4)\nlist(pool.map(time.sleep, [0.01] * 8))",
        "sum(pool.map(abs, range(10)))",
        "45",
    ),
    "an executor at work": (
        "from concurrent.futures import ThreadPoolExecutor\nimport time\npool = ThreadPoolExecutor(4)\n"
        "def spin(n):\n    while not over: n += 1\n    return n > 0\n"
        "over = []\nwork = [pool.submit(spin, i) for i in range(4)]",
        "over.append(1); all(w.result(10) for w in work)",
        "True",
    ),
    "a queue": (
        "import queue, threading\nq, r = queue.Queue(), queue.Queue()\n"
        "def twice():\n    while True: r.put(q.get() * 2)\n"
        "threading.Thread(target=twice, daemon=True).start()",
        "q.put(21); r.get(timeout=10)",
        "42",
    ),
    "a timer": (
        "import threading\nrang = threading.Event()\ntimer = threading.Timer(0.3, rang.set)\ntimer.start()",
        "rang.wait(10)",
        "True",
    ),
    "a lock held elsewhere": (
        "import threading\nlock, free, held = threading.Lock(), threading.Event(), threading.Event()\n"
        "def hold():\n    with lock:\n        held.set()\n        free.wait()\n"
        "thread = threading.Thread(target=hold)\nthread.start(); held.wait(); None",
        "before = lock.acquire(timeout=0.01); free.set(); thread.join(10)\nbefore, thread.is_alive(), lock.acquire(timeout=10)",
        "(False, False, True)",
    ),
    "a condition": (
        "import threading\ncondition, ready = threading.Condition(), []\nseen = threading.Event()\n"
        "def wait():\n    with condition:\n        condition.wait_for(lambda: ready)\n        seen.set()\n"
        "thread = threading.Thread(target=wait)\nthread.start()",
        "with condition:\n    ready.append(1)\n    condition.notify_all()\nseen.wait(10), thread.join()",
        "(True, None)",
    ),
    "asyncio": (
        "import asyncio, threading\nstop = threading.Event()\n"
        "task = asyncio.create_task(asyncio.to_thread(stop.wait))\nawait asyncio.sleep(0.01)",
        "stop.set()\nawait task",
        "True",
    ),
    "a thread in sleep": (
        "import threading, time\nticks = []\n"
        "def tick():\n    while True: time.sleep(0.005); ticks.append(1)\n"
        "threading.Thread(target=tick, daemon=True).start()",
        "n, until = len(ticks), time.time() + 10\nwhile len(ticks) < n + 3 and time.time() < until: time.sleep(0.005)\nlen(ticks) > n",
        "True",
    ),
    "a thread in a pipe": (
        "import os, threading, queue\nr, w = os.pipe()\ngot = queue.Queue()\n"
        "def read():\n    while True: got.put(os.read(r, 9))\n"
        "threading.Thread(target=read, daemon=True).start()",
        "os.write(w, b'x'); got.get(timeout=10)",
        "b'x'",
    ),
    "a thread in a socket": (
        "import socket, threading, queue\na, b = socket.socketpair()\ngot = queue.Queue()\n"
        "def read():\n    while True: got.put(b.recv(9))\n"
        "threading.Thread(target=read, daemon=True).start()",
        "a.send(b'y'); got.get(timeout=10)",
        "b'y'",
    ),
    "a thread of its own loop": (
        "import asyncio, threading\nloop = asyncio.new_event_loop()\n"
        "threading.Thread(target=loop.run_forever, daemon=True).start()",
        "asyncio.run_coroutine_threadsafe(asyncio.sleep(0.01, 'slept'), loop).result(10)",
        "'slept'",
    ),
    "locals of threads": (
        "import threading, queue\nlocal, q, r = threading.local(), queue.Queue(), queue.Queue()\n"
        "def say(name):\n    local.name = name\n    while q.get(): r.put((local.name, threading.current_thread().name,"
        " threading.get_ident() == threading.current_thread().ident))\n"
        "threading.Thread(target=say, args=('x',), name='y', daemon=True).start()",
        "q.put(1); r.get(timeout=10)",
        "('x', 'y', True)",
    ),
    "threads in C": (
        "import threading, hashlib, queue\nr = queue.Queue()\nblock = bytes(1 << 20)\n"
        "good = hashlib.sha256(block * 4).hexdigest()\n"
        "def work():\n    while True:\n        h = hashlib.sha256()\n        for _ in range(4): h.update(block)\n"
        "        if r.empty(): r.put(h.hexdigest() == good)\n"
        "for _ in range(3): threading.Thread(target=work, daemon=True).start()",
        "all(r.get(timeout=10) for _ in range(4))",
        "True",
    ),
    "a monitor": (
        "import threading\nclass Monitor(threading.Thread):\n    def __init__(self):\n"
        "        super().__init__(daemon=True); self.over = threading.Event(); self.looks = 0\n"
        "    def run(self):\n        while not self.over.wait(0.01): self.looks += 1\n"
        "monitor = Monitor(); monitor.start()",
        "import time\nn, until = monitor.looks, time.time() + 10\n"
        "while monitor.looks < n + 2 and time.time() < until: time.sleep(0.01)\n"
        "monitor.over.set(); monitor.join(10); monitor.looks > n, monitor.is_alive()",
        "(True, False)",
    ),
}


@pytest.fixture(params=WORK)
def work(request: Any, client: Client, session: str) -> tuple[str, str]:
    """A session that has begun something after a first cell; what shows that it works, and its result."""
    begin, show, result = WORK[request.param]
    client.exec("x = 1", session)
    reply = client.exec(begin + "\nx = 2", session)
    assert (reply.returncode, reply.unfaithful) == (0, None), reply.stderr
    return show, result


def test_undo(client: Client, session: str, work: tuple[str, str]) -> None:
    show, result = work
    for _ in range(3):
        reply = client.exec(show, session)
        assert (reply.text, reply.unfaithful) == (result, None), reply.stderr
        assert client.undo(session).cell == 2
    assert client.undo(session).cell == 1
    assert client.exec("x, __import__('threading').active_count()", session).text == "(1, 1)"


def test_rolled_back(client: Client, session: str, work: tuple[str, str]) -> None:
    show, result = work
    for _ in range(2):
        reply = client.exec(KILL, session)
        assert (reply.state, reply.restored) == ("rolled_back", 2)
    reply = client.exec(show, session)
    assert (reply.text, reply.unfaithful) == (result, None), reply.stderr


def test_branch(client: Client, session: str, work: tuple[str, str]) -> None:
    """Both go on, the branch first."""
    show, result = work
    with_loop = "run_coroutine_threadsafe" in show  # its selector and its socket pair are shared with the parent
    shared = "os.write" in show or "a.send" in show or with_loop
    client.branch(session, session + ".b")
    try:
        if not shared:
            assert client.exec(show, session + ".b").text == result
            client.undo(session + ".b")
        assert client.exec("x", session + ".b").text == "2"
        reply = client.exec("x = 3\n" + show, session) if not shared else client.exec("x", session)
        assert shared or reply.text == result, reply.stderr
        client.shutdown(session)
        assert client.exec(show, session + ".b").text == result
    finally:
        client.shutdown(session + ".b")


def test_router_killed(daemon: Daemon, session: str, work: tuple[str, str]) -> None:
    show, result = work
    kill_router(daemon)
    with daemon.client() as client:
        reply = client.exec(show, session)
        assert (reply.text, reply.unfaithful) == (result, None), reply.stderr
        assert client.undo(session).cell == 2
        assert client.exec(show, session).text == result


def test_deep(client: Client, session: str) -> None:
    """From copy to copy, with more threads each time."""
    client.exec("import threading, queue\nq, r = queue.Queue(), queue.Queue()", session)
    code = "threading.Thread(target=lambda: [r.put(q.get()) for _ in iter(int, 1)], daemon=True).start()"
    for n in range(1, 21):
        assert client.exec(code, session).unfaithful is None
        client.exec("x = 1", session)
        client.undo(session)
        assert client.exec("threading.active_count()", session).text == str(n + 1)
    ask = "for i in range(40): q.put(i)\nsorted(r.get(timeout=10) for _ in range(40)) == list(range(40))"
    assert client.exec(ask, session).text == "True"


def test_output_of_a_thread(client: Client, session: str) -> None:
    """It prints all the time, and is copied nevertheless."""
    client.exec(
        "import threading, time, sys\ngo = True\n"
        "def say():\n    while go: print('word ' * 20); time.sleep(0)\n"
        "thread = threading.Thread(target=say); thread.start()",
        session,
    )
    for _ in range(10):
        reply = client.exec("time.sleep(0.01); x = 1", session)
        assert (reply.returncode, reply.unfaithful) == (0, None)
        # Before the cell there is what the one that is gone now had written until it was killed.
        lines = reply.stdout[reply.stdout_stray or 0 :].split(b"\n")[1:-1]
        assert set(lines) - {b"word " * 20} == set()
        client.undo(session)
    assert client.exec("go = False; thread.join(10); thread.is_alive()", session).text == "False"


# What the router does between the cell that begins a thread and the first line that this writes.
MEANWHILE: dict[str, Callable[[Client, str], object]] = {
    "nothing": lambda client, session: None,
    "a checkpoint": lambda client, session: client.checkpoint(session),
    "saving": lambda client, session: client.call(m.Save(id=client.new_id(), session=session), m.SaveReply),
    "undo": lambda client, session: client.exec("x = 2", session) and client.undo(session),
    "a branch": lambda client, session: client.branch(session, session + ".b"),
}


@pytest.mark.parametrize("act", MEANWHILE)
def test_lines_come_at_once(client: Client, session: str, act: str) -> None:
    """After a cell whose output was watched they are not kept until the next one, whatever is done meanwhile."""
    client.exec("import os, sys, threading", session)
    say = (
        "def say():\n    while not os.path.exists('go'): threading.Event().wait(0.01)\n"
        "    print('later'); print('so', file=sys.stderr); threading.Event().wait()\n"
        "threading.Thread(target=say, daemon=True).start()"
    )
    *_, reply = client.stream(say, session)
    assert isinstance(reply, m.ExecReply) and reply.unfaithful is None
    MEANWHILE[act](client, session)
    client.put(session, "go", b"")
    stdout, stderr = b"", b""

    def came() -> bool:
        nonlocal stdout, stderr
        taken = client.call(m.Stray(id=client.new_id(), session=session), m.StrayReply)
        stdout, stderr = stdout + taken.stdout, stderr + taken.stderr
        return (stdout, stderr) == (b"later\n", b"so\n")

    wait_until(came, "both lines have come")
    if act == "a branch":
        client.shutdown(session + ".b")

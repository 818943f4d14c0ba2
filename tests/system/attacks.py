"""What one user does to slow down all others, executed by test_one_user.py as that user: `attacks.py SOCKET NAME`.

It says "ready" when the attack has begun, goes on until its stdin ends, waits for every answer that it still has to
get, and prints how many requests there were, how many were answered, and with which errors.
"""

from __future__ import annotations

import json
import select
import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from typing import Any

import zmq

from lair import codec
from lair import messages as m

MIB = 1 << 20
PATIENCE = 60.0


class Connection:
    """Any number of requests, and a count of what became of them."""

    def __init__(self, path: str) -> None:
        self.socket = zmq.Context.instance().socket(zmq.DEALER)
        self.socket.setsockopt(zmq.LINGER, 0)
        self.socket.setsockopt(zmq.SNDHWM, 0)
        self.socket.connect(f"ipc://{path}")
        self.last = 0
        self.open: set[int] = set()
        self.asked = self.answered = 0
        self.errors: Counter[str] = Counter()
        self.wrong: list[str] = []
        self.final: deque[dict[str, Any]] = deque(maxlen=4)

    def send(self, request: m.Request) -> None:
        self.last += 1
        request.id = self.last
        self.socket.send(codec.encode(request))
        self.open.add(self.last)
        self.asked += 1

    def exec(self, code: str, session: str, **options: Any) -> None:
        self.send(m.Exec(id=0, code=code, session=session, **options))

    def take(self) -> None:
        kind, content = codec.unpack(self.socket.recv())
        if kind not in ("reply", "error"):
            return
        if content["id"] not in self.open:
            self.wrong.append(f"a second answer to {content['id']}")
        self.open.discard(content["id"])
        self.answered += 1
        if kind == "error":
            self.errors[f"{content['code']}: {content['message'][:160]}"] += 1
        else:
            self.final.append(content)

    def until(self, few: int) -> None:
        """At most so many are unanswered."""
        deadline = time.monotonic() + PATIENCE
        while len(self.open) > few:
            if not self.socket.poll(max(deadline - time.monotonic(), 0) * 1000):
                self.wrong.append(f"{len(self.open)} requests are not answered after {PATIENCE} s")
                self.open.clear()
                return
            self.take()

    def poll(self) -> None:
        while self.socket.poll(0):
            self.take()


Connections = list[Connection]
Attack = Callable[[Connections], Iterator[None]]


def sessions(all_of_them: Connections, code: str = "1", n: int = 1) -> list[tuple[Connection, str]]:
    pairs = [(it, f"attack-{i}-{k}") for i, it in enumerate(all_of_them) for k in range(n)]
    for it, name in pairs:
        it.exec(code, name)
    for it in all_of_them:
        it.until(0)
    return pairs


def padded(code: str, size: int) -> str:
    return code + "\n#" + "x" * (size - len(code) - 2)


SHOWS = "from time import sleep\nwhile True:\n    display(1)\n    sleep(0.0005)"


def wait(all_of_them: Connections) -> None:
    for it in all_of_them:
        it.poll()
    time.sleep(0.005)


def queued_code(all_of_them: Connections) -> Iterator[None]:
    """Code that waits behind a cell that shows something."""
    (it,) = all_of_them
    it.exec(SHOWS, "queue", timeout=60)
    for _ in range(64):
        it.exec(padded("1", MIB), "queue")
    yield from waiting(all_of_them, ["queue"])


def queued_environments(all_of_them: Connections) -> Iterator[None]:
    """The same, and what belongs to the cells besides code."""
    (it,) = all_of_them
    it.exec(SHOWS, "queue", timeout=60)
    for i in range(64):
        it.exec("1", "queue", env=[f"A{i}=" + "x" * 60_000])
    yield from waiting(all_of_them, ["queue"])


def running_code(all_of_them: Connections) -> Iterator[None]:
    """Large cells that show something."""
    for i, it in enumerate(all_of_them):
        it.exec(padded(SHOWS, MIB - 100), f"large-{i}", timeout=60)
    yield from waiting(all_of_them, [f"large-{i}" for i in range(len(all_of_them))])


def waiting(all_of_them: Connections, running: list[str]) -> Iterator[None]:
    try:
        while True:
            wait(all_of_them)
            yield
    finally:
        for it, name in zip(all_of_them, running, strict=True):
            it.send(m.Interrupt(id=0, session=name))


def sent_code(all_of_them: Connections) -> Iterator[None]:
    """Large cells, one after the other, as fast as they are answered."""
    while True:
        for i, it in enumerate(all_of_them):
            it.until(2)
            it.exec(padded("1", MIB), f"sent-{i}")
            yield


def hashed_code(all_of_them: Connections) -> Iterator[None]:
    """Code of which digests are made, as fast as it is run."""
    sessions(all_of_them)
    while True:
        for i, it in enumerate(all_of_them):
            it.until(1)
            it.exec(padded("1", MIB), f"attack-{i}-0")
            yield


def refused_acts(all_of_them: Connections) -> Iterator[None]:
    """Each cell is refused as many things as are told of it, with names as long as they may be, in letters that take
    six times their room where they are written down."""
    act = "try: open('/etc/' + '\\x01' * 4000, 'w')\n    except OSError: pass"
    sessions(all_of_them)
    while True:
        for i, it in enumerate(all_of_them):
            it.until(2)
            it.exec(f"for i in range(64):\n    {act}", f"attack-{i}-0")
        yield


def questions(all_of_them: Connections) -> Iterator[None]:
    """About large code, and as many as may wait."""
    sessions(all_of_them)
    while True:
        for i, it in enumerate(all_of_them):
            it.until(40)
            it.send(m.Complete(id=0, session=f"attack-{i}-0", code=padded("a = 1", MIB), cursor=1))
            yield


def fresh_keys(all_of_them: Connections) -> Iterator[None]:
    (it,) = all_of_them
    it.send(m.Open(id=0, session="keys"))
    it.until(0)
    for i in range(20_000):
        it.send(m.Open(id=0, session="keys", key=f"before-{i}"))
        it.until(200)
    n = 0
    while True:
        it.send(m.Open(id=0, session="keys", key=f"key-{n}"))
        it.until(20)
        n += 1
        yield


def lists(all_of_them: Connections) -> Iterator[None]:
    sessions(all_of_them, n=6)
    while True:
        for it in all_of_them:
            it.send(m.ListSessions(id=0))
        for it in all_of_them:
            it.until(4)
        yield


def attaches(all_of_them: Connections) -> Iterator[None]:
    (it,) = all_of_them
    it.exec("print('x' * 15_000_000)", "attached", detach=True, key="large")
    it.until(0)
    while True:
        it.send(m.Attach(id=0, session="attached", key="large", stream=True))
        it.until(1)
        yield


# Until what computes for a while has begun to wait for the router.
BEGUN = 2.0


def letters(all_of_them: Connections) -> Iterator[None]:
    """Displays of nearly the largest size, one after the other, from many sessions."""
    shows = "for i in range(1000):\n    display({'text/plain': 'x' * 8_000_000}, raw=True, clear=True)"
    pairs = sessions(all_of_them, n=4)
    for it, name in pairs:
        it.exec(shows, name, timeout=60)
    time.sleep(BEGUN)
    try:
        while True:
            wait(all_of_them)
            yield
    finally:
        for it, name in pairs:
            it.send(m.Interrupt(id=0, session=name))


def outputs(all_of_them: Connections) -> Iterator[None]:
    """More than is kept, from many sessions, to both streams, twice."""
    prints = (
        "import sys\nfor i in range(20):\n    print('x' * 1_000_000)\n    print('x' * 1_000_000, file=sys.stderr)"
    )
    pairs = sessions(all_of_them, n=4)
    for it, name in pairs:
        it.exec(prints, name, timeout=60)
        it.exec(prints + "\nimport time; time.sleep(60)", name, timeout=60)
    try:
        while True:
            wait(all_of_them)
            yield
    finally:
        for it in all_of_them:
            it.until(4)
        for it, name in pairs:
            it.send(m.Interrupt(id=0, session=name))


def twice(all_of_them: Connections, n: int, act: str) -> Iterator[None]:
    """In so many sessions: once with a key, and then in a cell that goes on."""
    pairs = [(all_of_them[i % len(all_of_them)], f"attack-{i}") for i in range(n)]
    second = []
    for it, name in pairs:
        it.exec(act, name, timeout=60, key="first")
        it.exec(act + "\nimport time; time.sleep(60)", name, timeout=60)
        second.append((it, it.last))
    try:
        while True:
            wait(all_of_them)
            yield
    finally:
        # By its number: if the first cell still runs, an interrupt of the session would leave the second its 60 s.
        for it, number in second:
            it.send(m.Interrupt(id=0, exec=number))
        deadline = time.monotonic() + PATIENCE / 4
        while any(it.open for it in all_of_them) and time.monotonic() < deadline:
            wait(all_of_them)


def kept_outputs(all_of_them: Connections) -> Iterator[None]:
    """To both streams, from 80 sessions."""
    prints = (
        "import sys\nfor i in range(8):\n    for file in sys.stdout, sys.stderr: print('x' * 250_000, file=file)"
    )
    yield from twice(all_of_them, 80, prints)


def kept_letters(all_of_them: Connections) -> Iterator[None]:
    """Displays that are kept, from 60 sessions."""
    yield from twice(all_of_them, 60, "for i in range(2): display({'text/plain': 'x' * 600_000}, raw=True)")


def small_cells(all_of_them: Connections) -> Iterator[None]:
    """In many sessions, all of which change at once."""
    pairs = sessions(all_of_them, n=8)
    while True:
        for it, name in pairs:
            it.exec("1", name)
        for it in all_of_them:
            it.until(0)
        yield


ATTACKS: dict[str, tuple[Attack, int]] = {
    "queued code": (queued_code, 1),
    "queued environments": (queued_environments, 1),
    "a large cell": (running_code, 1),
    "large cells": (running_code, 8),
    "code without end": (sent_code, 4),
    "hashed code": (hashed_code, 1),
    "refused acts": (refused_acts, 4),
    "questions": (questions, 2),
    "fresh keys": (fresh_keys, 1),
    "lists": (lists, 10),
    "attaches": (attaches, 1),
    "small cells": (small_cells, 5),
    "letters": (letters, 6),
    "outputs": (outputs, 5),
    "kept outputs": (kept_outputs, 10),
    "kept letters": (kept_letters, 10),
}


def ended() -> bool:
    return bool(select.select([sys.stdin], [], [], 0)[0])


def main(path: str, name: str) -> None:
    attack, n = ATTACKS[name]
    connections = [Connection(path) for _ in range(n)]
    steps = attack(connections)
    next(steps)
    print("ready", flush=True)
    while not ended():
        next(steps)
    steps.close()  # type: ignore[attr-defined]
    for it in connections:
        it.until(0)
    print(
        json.dumps(
            {
                "asked": sum(it.asked for it in connections),
                "answered": sum(it.answered for it in connections),
                "errors": sum((it.errors for it in connections), Counter()),
                "wrong": [text for it in connections for text in it.wrong],
            }
        )
    )


if __name__ == "__main__":
    main(*sys.argv[1:])

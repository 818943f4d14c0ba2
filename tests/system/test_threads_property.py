"""Threads whose state lies on their stacks, through random work, kills and undo, against a model. It takes
LAIR_PROPERTY_SECONDS; a failure tells the seed, which LAIR_PROPERTY_SEED sets."""

from __future__ import annotations

import os
import random
import signal
import time

import pytest

from lair import Client

pytestmark = pytest.mark.usefixtures("no_sessions_left")

SETTINGS = {"profile default": {"checkpoint": "cell", "grace": "100ms", "level": "", "checkpoints": "16"}}

# Each worker adds up what it is told. One kind waits for it in Python, one in a pipe, one is always computing.
BEGIN = """
import hashlib, os, queue, threading, time
lock, workers, block = threading.RLock(), [], bytes(100000)

def told(n, total):
    with lock:
        time.sleep(0)
        return total + n

def waits(tell, say):
    total = 0
    while True:
        n = tell.get()
        if n is None: return
        total = told(n, total)
        say.put(total)

def reads(ends, say):
    total = 0
    while True:
        n = int(os.read(ends, 9))
        if n < 0: return
        total = told(n, total)
        say.put(total)

def computes(tell, say):
    total, digest = 0, hashlib.sha256()
    while True:
        digest.update(block)
        for _ in range(100): hash(digest)
        if tell.empty():
            time.sleep(0.0005)
            continue
        n = tell.get()
        if n is None: return
        total = told(n, total)
        say.put(total)

def begin(kind):
    say = queue.Queue()
    if kind == "reads":
        r, w = os.pipe()
        tell = lambda n: os.write(w, b"%9d" % (-1 if n is None else n))
        thread = threading.Thread(target=reads, args=(r, say), daemon=True)
    else:
        q = queue.Queue()
        tell = q.put
        thread = threading.Thread(target=globals()[kind], args=(q, say), daemon=True)
    thread.start()
    workers.append((thread, tell, say))

def ask(work):
    for i, n in work: workers[i][1](n)
    return [workers[i][2].get(timeout=20) for i, _ in work]

def end(i):
    thread, tell, _ = workers.pop(i)
    tell(None)
    thread.join(20)
    return thread.is_alive()
"""
KILL = "\nos.kill(os.getpid(), 9)"


class Run:
    def __init__(self, client: Client, session: str, seed: int) -> None:
        self.client, self.session, self.random = client, session, random.Random(seed)
        assert client.exec(BEGIN, session).returncode == 0
        # The latest states that can be undone, each with the totals of the workers. One that was not saved, since a thread did
        # not stand still in time on a busy machine, is passed over.
        self.past: list[tuple[int, tuple[int, ...]]] = [(0, ()), (1, ())]
        self.missed = 0

    @property
    def totals(self) -> tuple[int, ...]:
        return self.past[-1][1]

    def back_to(self, cell: int, expected: int) -> None:
        self.missed += cell != expected
        while self.past[-1][0] > cell:
            self.past.pop()
        assert self.past[-1][0] == cell

    def run(self, code: str, expected: object, now: tuple[int, ...]) -> None:
        dies = self.random.random() < 0.15
        reply = self.client.exec(code + KILL if dies else code, self.session)
        if dies:
            assert (reply.state, reply.cause) == ("rolled_back", "signal 9"), reply
            self.back_to(reply.restored or 0, self.past[-1][0])
            return
        assert (reply.text, reply.unfaithful) == (repr(expected), None), reply.stderr.decode()
        self.past = [*self.past[-12:], (reply.cell, now)]  # the session has 16

    def begin(self) -> None:
        kind = self.random.choice(["waits", "reads", "computes"])
        self.run(f"begin({kind!r}); len(workers)", len(self.totals) + 1, (*self.totals, 0))

    def end(self) -> None:
        i = self.random.randrange(len(self.totals))
        self.run(f"end({i})", False, self.totals[:i] + self.totals[i + 1 :])

    def work(self) -> None:
        chosen = self.random.sample(range(len(self.totals)), self.random.randint(1, len(self.totals)))
        work = [(i, self.random.randint(1, 99)) for i in chosen]
        totals = list(self.totals)
        for i, n in work:
            totals[i] += n
        self.run(f"ask({work})", [totals[i] for i in chosen], tuple(totals))

    def undo(self) -> None:
        n = self.random.randint(1, min(3, len(self.past) - 2))
        self.back_to(self.client.undo(self.session, n).cell, self.past[-1 - n][0])

    def pause(self) -> None:
        time.sleep(self.random.random() / 100)

    def step(self) -> None:
        there, deep = len(self.totals), len(self.past) > 2
        acts = [self.begin] * (there < 12) + [self.end, *[self.work] * 6] * (there > 0) + [self.undo] * 2 * deep
        self.random.choice([*acts, self.pause])()


def test_random_work(client: Client, session: str) -> None:
    seed = int(os.environ.get("LAIR_PROPERTY_SEED", time.time_ns() % 1_000_000_000))
    end = time.monotonic() + float(os.environ.get("LAIR_PROPERTY_SECONDS", "6"))
    print(f"LAIR_PROPERTY_SEED={seed}")
    run, steps = Run(client, session, seed), 0
    while time.monotonic() < end:
        signal.alarm(60)  # no step may hang; any number of them may take as long as they like
        run.step()
        steps += 1
    print(steps, "steps,", len(run.past), "states deep,", run.missed, "not saved")
    assert run.missed <= steps // 100

"""One client of the chaos: runs cells whose outcome it can predict, and compares.

It may be killed at any moment: what it is about to ask and what it knows are in two files, so that the next one of its
name asks the same again, with the same key, and goes on. Every act depends on nothing but the seed, the worker's name
and the act's number.

What is wrong is written to `wrong`, one line each, and the worker stops.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from lair import codec
from lair import messages as m
from wire import Connection, Lost, Refused

GAVE_UP = 3  # the exit status of one that found something wrong, and has said so

REMEMBERED = 24  # states a model keeps; more than the profile's checkpoints
ACTS_A_LIFE = 60  # then the session is ended, and another begun

# It does something that must not be done twice: the caller says which.
FUNCTIONS = [
    {"name": "note", "schema": '{"properties": {"n": {"type": "integer"}}, "required": ["n"]}', "effect": True}
]
GATE = [{"name": "gate", "schema": "{}", "ask": True}]
SPLITS = 50  # how often a branch at a call is tried

# What ends an interpreter from within, and the cause that is told then.
DEATHS = {
    "import os; os._exit(9)": "exit",
    "import os; os.abort()": "signal 6",
    "import ctypes; ctypes.string_at(0)": "signal 11",
    "import os; os.kill(os.getpid(), 9)": "signal 9",
}

# act: how often
WEIGHTS = {
    "step": 30,
    "calls": 14,
    "repay": 4,
    "slow": 8,
    "chatty": 6,
    "die": 6,
    "undo": 6,
    "mark": 4,
    "back": 4,
    "branch": 4,
    "apart": 5,
    "once": 4,
    "carry": 4,
    "audit": 3,
    "reset": 1,
}


class Wrong(Exception):
    """Lair did not do what it promises."""


@dataclass
class Model:
    """What the session must be, for all that this worker knows."""

    act: int = 0
    life: int = 0
    acts: int = 0  # in this life
    alive: bool = False  # the session has been begun
    at: int = 0  # its state is the one after this cell
    states: dict[str, list[int]] = field(default_factory=dict)  # by cell; JSON keys are text
    parents: dict[str, int] = field(default_factory=dict)
    marked: int = -1
    ending: bool = False
    tried: list[int] = field(default_factory=list)  # perhaps in its ledger, which goes back with its states
    shared: bool = False  # the ledger may tell of more than the state: a branch had it, too, or a reset has left it
    # What its cells have called: under which key and number, and whether laird has the answer.
    noted: dict[str, list[Any]] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)

    @property
    def log(self) -> list[int]:
        return self.states[str(self.at)]

    def reached(self, cell: int, log: list[int]) -> None:
        self.parents[str(cell)] = self.at
        self.at = cell
        self.states[str(cell)] = log
        while len(self.states) > REMEMBERED:
            del self.states[min(self.states, key=int)]

    def born(self) -> None:
        self.life += 1
        self.acts = self.at = 0
        self.alive = False
        self.marked = -1
        self.ending = self.shared = False
        self.states, self.parents = {}, {}
        self.tried, self.noted = [], {}

    def count(self, what: str) -> None:
        self.counts[what] = self.counts.get(what, 0) + 1


class Notes:
    """The function that the cell of one act calls. Each call is done once, under one key, and it is known for ever."""

    def __init__(self, worker: Worker) -> None:
        self._worker, self._key = worker, worker.key

    def called(self, number: int, arguments: dict[str, Any]) -> Any:
        n, noted = str(arguments["n"]), self._worker.model.noted
        key, known, heard = noted.setdefault(n, [self._key, number, False])
        if (key, known) != (self._key, number):
            raise Wrong(f"duplicated: call {n} is put as {self._key}/{number}, and was put as {key}/{known}")
        if heard:
            raise Wrong(f"duplicated: call {n} was answered, and is put again")
        self._worker.save()  # before anybody knows that it was done
        return arguments["n"] * 2

    def heard(self, number: int) -> None:
        for noted in self._worker.model.noted.values():
            if noted[:2] == [self._key, number]:
                noted[2] = True
        self._worker.save()


class Worker:
    """The acts. Each may be asked a second time by the next worker of this name, under the same key."""

    def __init__(self, directory: Path, name: str, seed: str, socket: str, mild: bool) -> None:
        self.name, self.seed = name, seed
        self.mild = mild  # nothing of a session's is killed from outside: nothing but its own cells ends anything
        self._path = directory / f"{name}.model"
        self.model = Model(**json.loads(self._path.read_text())) if self._path.exists() else Model()
        self.connection = Connection(socket)

    def save(self) -> None:
        draft = self._path.with_suffix(".draft")
        draft.write_text(json.dumps(asdict(self.model)))
        draft.rename(self._path)

    @property
    def session(self) -> str:
        return f"{self.name}:{self.model.life}"

    @property
    def key(self) -> str:
        return f"{self.name}.{self.model.act}"

    # ---- asking ----

    def exec(self, code: str, suffix: str = "", session: str | None = "") -> m.ExecReply:
        where = self.session if session == "" else session
        return self.connection.call(
            lambda id: m.Exec(id=id, session=where, code=code, key=self.key + suffix, timeout=20), m.ExecReply
        )

    def exec_calling(self, code: str) -> m.ExecReply:
        reply = self.connection.call(
            lambda id: m.Exec(
                id=id, session=self.session, code=code, key=self.key, timeout=20, functions=FUNCTIONS
            ),
            m.ExecReply,
            Notes(self),
        )
        if reply.state in ("rolled_back", "reset") and reply.returncode != 0:
            self.told(reply, {n for n, (key, *_) in self.model.noted.items() if key == self.key})
        return reply

    def told(self, reply: m.ExecReply | m.StateReply, calls: set[str]) -> None:
        """It went back, and tells that these were done, or may have been."""
        effects = [codec.read(m.Effect, it) for it in reply.effects or ()]
        told = {it.target for it in effects if it.act in ("called", "maybe_called")}
        missing = [n for n in calls if f"note(n={n})".encode() not in told]
        if missing and not reply.effects_more:
            raise Wrong(
                f"lost: it does not tell of the calls {missing[:5]}: {reply.state if isinstance(reply, m.ExecReply) else reply}"
            )

    def run(
        self,
        code: str,
        then: list[int],
        stdout: str,
        text: str | None,
        exec: Callable[[str], m.ExecReply] | None = None,
    ) -> bool:
        """A cell after which the log must be `then`. False if it did not come to its end."""
        reply = (exec or self.exec)(code)
        if reply.state == "kept" and reply.cause is None:
            self.equal("stdout", reply.stdout.decode(), stdout)
            self.equal("text", reply.text, text)
            self.model.reached(reply.cell, then)
            return True
        if reply.state == "rolled_back" and reply.returncode == 0 and not self.mild:
            return self.ran_after_a_fall(reply, then[len(self.model.log) :])
        if self.opened_another(reply):
            self.ended()
        else:
            self.fell(reply)
        return False

    def opened_another(self, reply: m.ExecReply) -> bool:
        """Its session had been ended from outside, and the cell made a new one of the same id, in which nothing is."""
        return not self.mild and reply.cause == "error" and reply.cell == 1 and b"NameError" in reply.stderr

    def ran_after_a_fall(self, reply: m.ExecReply, added: list[int]) -> bool:
        """Its interpreter had died before it, between two cells: the cell began in an earlier state, and ran."""
        self.model.count("fell: before")
        self.went_to(reply.restored or 0)
        if self.model.alive:
            self.model.reached(reply.cell, [*self.model.log, *added])
        return self.model.alive

    def fell(self, reply: m.ExecReply) -> None:
        """A cell that ended badly: the state must be one that was."""
        what = f"{reply.state} {reply.cause}: {reply.stderr.decode(errors='replace')[-300:]}"
        if self.mild:
            raise Wrong(f"nobody touched it, and yet it was {what}")
        self.model.count(f"fell: {reply.state}")
        if reply.state == "rolled_back":
            self.went_to(reply.restored or 0)
        elif reply.state in ("reset", "ended"):
            self.ended()
        else:
            raise Wrong(f"a cell that cannot fail was {what}")

    def went_back(self, reply: m.StateReply) -> None:
        """Each step with calls that it has no more is told. Forward again, what came before is not."""
        before, back = set(self.model.log), reply.cell < self.model.at
        self.went_to(reply.cell)
        if back and self.model.alive:
            lost = before - set(self.model.log)
            self.told(reply, {str(n) for n in lost if str(n) in self.model.noted})

    def went_to(self, cell: int) -> None:
        if cell == 0 or str(cell) not in self.model.states:
            if self.mild:
                raise Wrong(f"it went back to a state that was not there: after cell {cell}")
            self.ended()  # so far back that there is nothing to compare with
        else:
            self.model.at = cell

    def ended(self) -> None:
        """The session is gone, or empty, through a death outside of it: end what is left and begin another."""
        self.model.count("ended")
        try:
            self.connection.call(lambda id: m.Shutdown(id=id, session=self.session), m.Reply)
        except Refused as error:
            if error.code not in ("no_session", "gone"):
                raise
        self.model.born()

    def equal(self, what: str, got: object, expected: object) -> None:
        if got != expected:
            raise Wrong(f"{what}: {str(got)[:300]!r}, expected {str(expected)[:300]!r}")

    # ---- the acts ----

    def begin(self) -> None:
        reply = self.exec("log = []; total = 0")
        if reply.state == "kept" and reply.cause is None:
            self.model.alive = True
            self.model.reached(reply.cell, [])
        else:
            self.fell(reply)

    def _ledger(self, number: int) -> str:
        self.model.tried.append(number)
        self.save()  # before it is asked for
        return f"with open('ledger', 'a') as f: _ = f.write('{number}\\n')\n"

    def calls(self, rng: random.Random) -> None:
        """Some calls one after the other or at the same time, of which the first has the number of the step."""
        numbers = [self.model.act * 100 + i for i in range(rng.randrange(1, 9))]
        each = f"[tools.note{rng.choice(['', '.aio'])}(n) for n in {numbers}]"
        if ".aio" in each:
            each = f"await __import__('asyncio').gather(*{each})"
        self._step(rng, "", f"print(sum({each}))\n", f"{sum(numbers) * 2}\n", numbers[0])

    def repay(self, rng: random.Random) -> None:
        """What was done, and is not in the past, is not done again. The first call of a step has its number."""
        log = set(map(str, self.model.log))
        undone = [n for n in self.model.noted if n not in log and int(n) in self.model.tried]
        if not undone:
            return
        n = rng.choice(sorted(undone))
        code = f"try:\n    print(tools.note({n}))\nexcept tools.RepeatError: print('refused')\ntotal"
        log_now = list(self.model.log)
        self.run(code, log_now, "refused\n", repr(sum(log_now)), self.exec_calling)

    def _step(self, rng: random.Random, before: str, between: str, stdout: str, calls: int | None = None) -> None:
        number = self.model.act * 100 + rng.randrange(100) if calls is None else calls
        then = [*self.model.log, number]
        code = f"{before}log.append({number}); total += {number}\n{self._ledger(number)}{between}len(log), total, log[-3:]"
        text = repr((len(then), sum(then), then[-3:]))
        self.run(code, then, stdout, text, None if calls is None else self.exec_calling)

    def step(self, rng: random.Random) -> None:
        self._step(rng, "", f"print('step', {self.model.act})\n", f"step {self.model.act}\n")

    def slow(self, rng: random.Random) -> None:
        n, pause = rng.randrange(3, 30), rng.random() * 0.05
        loop = f"import time\nfor i in range({n}):\n    print(i, flush=True)\n    time.sleep({pause:.4f})\n"
        self._step(rng, "", loop, "".join(f"{i}\n" for i in range(n)))

    def chatty(self, rng: random.Random) -> None:
        n = rng.randrange(1000, 20000)
        self._step(rng, f"for i in range({n}): print(i)\n", "", "".join(f"{i}\n" for i in range(n)))

    def die(self, rng: random.Random) -> None:
        code, cause = rng.choice(sorted(DEATHS.items()))
        number = self.model.act * 100
        before = self.model.at
        reply = self.exec(f"log.append({number}); total = None\n{self._ledger(number)}{code}")
        if self.opened_another(reply):
            self.ended()
            return
        if reply.state == "kept":
            raise Wrong(f"a cell that dies of {cause} was kept: {reply}")
        if self.mild:
            self.equal("cause", reply.cause, cause)
            self.equal("restored", (reply.state, reply.restored or 0), ("rolled_back", before))
        if reply.state == "rolled_back":
            self.went_to(reply.restored or 0)
        else:
            self.ended()

    def undo(self, rng: random.Random) -> None:
        if str(self.model.parents.get(str(self.model.at), 0)) not in self.model.states:
            return
        try:
            reply = self.connection.call(lambda id: m.Undo(id=id, session=self.session, key=self.key), m.StateReply)
        except Refused as error:
            if error.code == "gone" and not self._is_gone():
                self.model.count("undo: not remembered")
                return
            raise
        if self.mild:
            self.equal("undone to cell", reply.cell, self.model.parents[str(self.model.at)])
        self.went_back(reply)

    def mark(self, rng: random.Random) -> None:
        reply = self.connection.call(
            lambda id: m.Checkpoint(id=id, session=self.session, name="mark", key=self.key), m.StateReply
        ) if self.model.marked < 0 else None  # fmt: skip
        if not reply:
            return
        if self.mild:
            self.equal("marked cell", reply.cell, self.model.at)
        elif reply.cell != self.model.at:
            # Its interpreter had died between two cells, and what is marked is the state it went back to.
            self.model.count("fell: before")
            self.went_to(reply.cell)
        if self.model.alive:
            self.model.marked = reply.cell

    def back(self, rng: random.Random) -> None:
        if str(self.model.marked) not in self.model.states:
            return
        try:
            reply = self.connection.call(
                lambda id: m.Restore(id=id, session=self.session, name="mark", key=self.key), m.StateReply
            )
        except Refused as error:
            if error.code != "bad_request" or self.mild:
                raise
            self.model.marked = -1  # the frozen copy was killed, and is forgotten
            return
        if self.mild:
            self.equal("restored cell", reply.cell, self.model.marked)
        self.went_back(reply)

    def branch(self, rng: random.Random) -> None:
        """Grow one, look into it, end it; the session must not notice."""
        self.model.shared = True
        new = f"{self.session}:{self.model.act}"
        try:
            self.connection.call(
                lambda id: m.Branch(id=id, session=self.session, branch=new, key=self.key), m.SessionInfo
            )
            reply = self.exec("log.append(-1); total, len(log)", ".b", new)
            if reply.state == "kept" and reply.cause is None:
                # The parent's interpreter may have died between two cells, and its state be an earlier one.
                logs = [self.model.log] if self.mild else list(self.model.states.values())
                expected = [repr((sum(log), len(log) + 1)) for log in logs]
                if reply.text not in expected:
                    raise Wrong(f"text of a branch: {reply.text}, expected one of {expected}")
            elif self.mild:
                raise Wrong(f"a branch was {reply.state} {reply.cause}")
        except Refused as error:
            if self.mild or error.code not in ("gone", "no_session"):
                raise
        try:
            self.connection.call(lambda id: m.Shutdown(id=id, session=new), m.Reply)
        except Refused as error:
            if error.code not in ("no_session", "gone"):
                raise

    def apart(self, rng: random.Random) -> None:
        """A cell that waits goes on in two sessions, with another answer in each."""
        self.model.shared = True
        new, log, code = (
            f"{self.session}:{self.model.act}",
            list(self.model.log),
            "print('asks'); tools.gate(), len(log)",
        )
        self.connection.call(
            lambda id: m.Exec(
                id=id, session=self.session, code=code, key=self.key, timeout=20, functions=GATE, detach=True
            ),
            m.DetachedReply,
        )
        info = self._split(new)
        if info:
            self._open(new, "b", ".b")
            reply = self._result(new, info.key)
            logs = [log] if self.mild else list(self.model.states.values())
            if reply and reply.state == "kept" and reply.cause is None:
                expected = [(b"asks\n", repr(("b", len(log)))) for log in logs]
                if (reply.stdout, reply.text) not in expected:
                    raise Wrong(f"a branch at a call: {reply.stdout!r} {reply.text}, expected one of {expected}")
            elif self.mild:
                raise Wrong(f"a branch at a call was {reply}")
        self._open(self.session, "a", ".a")
        self.run(code, log, "asks\n", repr(("a", len(log))), lambda code: self._attached(self.session, self.key))
        try:
            self.connection.call(lambda id: m.Shutdown(id=id, session=new), m.Reply)
        except Refused as error:
            if error.code not in ("no_session", "gone"):
                raise

    def _split(self, new: str) -> m.SessionInfo | None:
        """None if there is no such branch, or it is not known what its cell is called."""
        for n in range(SPLITS):
            try:
                return self.connection.call(
                    lambda id, n=n: m.Branch(  # type: ignore[misc]
                        id=id, session=self.session, branch=new, at_call=True, key=f"{self.key}.{n}"
                    ),
                    m.SessionInfo,
                )
            except Refused as error:
                if error.code not in ("gone", "busy"):
                    self.model.count(f"apart: {error.code}")
                    return None
            time.sleep(0.02)  # the cell has not begun, or has ended
        self.model.count("apart: never")
        if self.mild:
            raise Wrong("a cell that waits for a call could not be branched")
        return None

    def _open(self, session: str, value: str, suffix: str) -> None:
        try:
            self.connection.call(
                lambda id: m.AnswerCall(id=id, session=session, number=1, value=value, key=self.key + suffix),
                m.Reply,
            )
        except Refused as error:
            if self.mild or error.code not in ("gone", "no_session"):
                raise

    def _attached(self, session: str, key: str | None) -> m.ExecReply:
        return self.connection.call(lambda id: m.Attach(id=id, session=session, key=key), m.ExecReply)

    def _result(self, session: str, key: str | None) -> m.ExecReply | None:
        try:
            return self._attached(session, key)
        except Refused as error:
            if self.mild or error.code not in ("gone", "no_session"):
                raise
        return None

    def once(self, rng: random.Random) -> None:
        n = rng.randrange(1000)
        reply = self.exec(f"print('once'); {n} * 2", session=None)
        if reply.cause is None:
            self.equal("one-shot", (reply.stdout, reply.text), (b"once\n", str(n * 2)))
        elif self.mild:
            raise Wrong(f"a one-shot was ended: {reply.cause}")

    def carry(self, rng: random.Random) -> None:
        """A file in, read there, and out again."""
        data = rng.randbytes(rng.randrange(1, 200_000))
        path = b"carried"
        self.connection.call(lambda id: m.Put(id=id, session=self.session, path=path, data=data), m.TransferReply)
        reply = self.connection.call(lambda id: m.Get(id=id, session=self.session, path=path), m.GetReply)
        self.equal("size of a file", reply.size, len(data))
        self.equal("content of a file", reply.data == data, True)

    def audit(self, rng: random.Random) -> None:
        """What is in memory, and on the disk: everything once, and nothing that was undone."""
        log = list(self.model.log)
        if self.run("log, total", log, "", repr((log, sum(log)))):
            self.ledger()

    def ledger(self) -> None:
        try:
            reply = self.connection.call(lambda id: m.Get(id=id, session=self.session, path=b"ledger"), m.GetReply)
        except Refused as error:
            if error.code == "no_file" and not self.model.log:
                return
            raise
        found = Counter(map(int, reply.data.split()))
        if twice := [number for number, n in found.items() if n > 1]:
            raise Wrong(f"duplicated: {twice[:5]} ran more than once")
        if lost := [number for number in self.model.log if number not in found]:
            raise Wrong(f"lost: {lost[:5]} were told to have run")
        if self.mild and not self.model.shared:
            self.model.count("audit: exact")
            self.equal("ledger", sorted(found), sorted(self.model.log))
        if strange := [number for number in found if number not in self.model.tried]:
            raise Wrong(f"strange: {strange[:5]} were never asked for")

    def reset(self, rng: random.Random) -> None:
        self.model.shared = True
        self.connection.call(lambda id: m.Reset(id=id, session=self.session, key=self.key), m.Reply)
        # What has a name stays.
        marked = str(self.model.marked)
        self.model.states = {cell: log for cell, log in self.model.states.items() if cell == marked}
        self.model.parents, self.model.at = {}, 0
        self.model.alive = False

    def end(self) -> None:
        if self.model.alive and not self.model.ending:
            self.ledger()
        self.model.ending = True
        self.save()
        try:
            self.connection.call(lambda id: m.Shutdown(id=id, session=self.session), m.Reply)
        except Refused as error:
            # Asked again after an answer that was lost.
            if error.code not in ("no_session", "gone"):
                raise
        self.model.born()

    # ---- a life ----

    def _is_gone(self) -> bool:
        try:
            self.connection.call(lambda id: m.Info(id=id, session=self.session), m.SessionInfo)
        except Refused as error:
            return error.code in ("no_session", "gone")
        return False

    def act(self) -> None:
        rng = random.Random(f"{self.seed}/{self.name}/{self.model.act}")
        name = rng.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
        if self.model.acts >= ACTS_A_LIFE:
            name = "end"
        self.model.count(name if self.model.alive else "begin")
        try:
            if name == "end":
                self.end()
            elif not self.model.alive:
                self.begin()
            else:
                getattr(self, name)(rng)
        except Refused as error:
            if self.mild or error.code not in ("gone", "no_session", "internal"):
                raise Wrong(f"{name} was refused: {error}") from error
            self.model.count(f"refused: {error.code}")
            self.ended()
        self.model.act += 1
        self.model.acts += 1
        self.model.counts["resent"] = self.model.counts.get("resent", 0) + self.connection.resent
        self.connection.resent = 0
        self.save()

    def live(self, until: float) -> None:
        while time.time() < until:
            self.act()
        if self.model.alive or self.model.acts > 0:  # one that was reset last has nothing in it, and is there
            self.model.acts = ACTS_A_LIFE
            self.act()
        self.connection.close()


def main() -> int:
    parser = argparse.ArgumentParser()
    for name in ("directory", "name", "seed", "socket"):
        parser.add_argument(name)
    parser.add_argument("until", type=float)
    parser.add_argument("--mild", action="store_true")
    a: Any = parser.parse_args()
    worker = Worker(Path(a.directory), a.name, a.seed, a.socket, a.mild)
    try:
        worker.live(a.until)
    except (Wrong, Lost, Refused) as error:
        with (Path(a.directory) / "wrong").open("a") as file:
            file.write(f"{a.name} act {worker.model.act} in {worker.session}, cell {worker.model.at}: {error}\n")
        return GAVE_UP
    return 0


if __name__ == "__main__":
    os.nice(1)
    sys.exit(main())

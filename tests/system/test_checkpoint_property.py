"""Random cells, deaths, undos, checkpoints and branches, against a model that runs the same cells in plain Python.

The model keeps, for every state a session may go back to, the cells that led there, and runs them again; after each
step the whole namespace of the session must be that of the model. What checkpoints there are, which are forgotten,
how far undo reaches and what each reply says is predicted too.

LAIR_PROPERTY_SEED=N runs the round of that seed first, LAIR_PROPERTY_SECONDS=N goes on for so long. A failure tells
the seed of its round and what was done in it.
"""

from __future__ import annotations

import os
import random
import signal
import time
from dataclasses import dataclass, field
from typing import Any, Callable, Optional

import numpy
import pytest

from lair import Client, LairError
from lair.messages import ExecReply, SessionInfo, StateReply

KEPT = 5
STEPS = 60
SESSIONS = 4

SETTINGS = {
    "profile default": {"checkpoint": "cell", "checkpoints": str(KEPT), "checkpoint_memory": "off", "level": "",
                        "preload": "numpy", "grace": "20ms"},
    "profile manual": {"checkpoint": "manual", "checkpoints": str(KEPT), "checkpoint_memory": "off", "level": "",
                       "preload": "numpy", "grace": "20ms", "spares": "0"},
}  # fmt: skip

# Writes down everything that `target`, a namespace, holds. What is reached twice is told as such, so that two names
# for one list are not taken for two lists.
DESCRIBE = """
import sys, types
seen = {}
def describe(x):
    if x is None or isinstance(x, (bool, int, float, complex, str, bytes)):
        return repr(x)
    if isinstance(x, types.ModuleType):
        return 'module ' + x.__name__
    if isinstance(x, types.BuiltinFunctionType):
        return 'builtin ' + x.__name__
    if id(x) in seen:
        return 'again %d' % seen[id(x)][0]
    seen[id(x)] = len(seen), x
    kind = type(x).__name__
    if kind in ('Thread', 'Event'):
        return kind
    if isinstance(x, (list, tuple)) or kind == 'deque':
        return kind + ' [' + ', '.join(map(describe, x)) + ']'
    if isinstance(x, (set, frozenset)):
        return kind + ' {' + ', '.join(sorted(map(describe, x))) + '}'
    if isinstance(x, dict):
        return kind + ' {' + ', '.join(describe(k) + ': ' + describe(v) for k, v in x.items()) + '}'
    if kind == 'ndarray':
        return 'ndarray %s %s' % (x.dtype, x.tolist())
    if kind in ('bytearray', 'array', 'count', 'list_iterator'):
        return kind + ' ' + repr(x.__reduce__()[1:] if kind == 'list_iterator' else x)
    if kind == 'StringIO':
        return 'StringIO %r at %d' % (x.getvalue(), x.tell())
    if isinstance(x, types.GeneratorType):
        frame = x.gi_frame
        return 'generator ' + (frame and '%d %r' % (frame.f_lasti, frame.f_locals.get('i')) or 'done')
    if isinstance(x, types.FunctionType):
        inner = [describe(c.cell_contents) for c in x.__closure__ or ()]
        constants = [c for c in x.__code__.co_consts if not isinstance(c, types.CodeType)]
        return 'function %s %r %r %s' % (x.__name__, constants, x.__defaults__, inner)
    if isinstance(x, type):
        own = {k: v for k, v in vars(x).items() if k[:2] != '__'}
        return 'class ' + x.__name__ + ' ' + describe(own)
    return 'a ' + kind + ' ' + describe(vars(x))
for name in sorted(target):
    if name[:2] != '__' and name != 'Ellipsis':
        print(name, '=', describe(target[name]))
if seeded:
    import zlib
    print(zlib.crc32(repr(sys.modules['random'].getstate()).encode()), sys.modules['numpy'].random.get_state()[1].tolist()[:9])
"""

# Each may follow any of the others, and none fails: what they change need not be there. K is a random number.
CELLS = [
    "numbers = [K, K + 1]\nalias = numbers",
    "numbers = globals().get('numbers', []); numbers.append(K)",
    "alias = globals().get('alias', []); alias.insert(0, [K])",
    "table = globals().get('table', {}); table[K] = {'of': [K]}",
    "table = globals().get('table', {0: 0}); table.pop(min(table, default=0), None)",
    "shared = {'a': (x := [K]), 'b': x}; shared['b'].append(shared['a'])",
    "some = {K, str(K), (K,)}; some.discard(1)",
    "text = globals().get('text', '') + 'é%d' % K",
    "raw = bytearray(b'K' * 2000); raw[K] = K % 256",
    "def f(a, b=K):\n    return a * K + b\nresult = f(2)",
    "def maker():\n    total = [K]\n    def bump():\n        total[0] += 1\n        return total[0]\n"
    "    return bump\nbump = maker()",
    "last = bump() if 'bump' in globals() else K",
    "squares = (i * i for i in range(K))\nnext(squares, None)",
    "last = next(squares, None) if 'squares' in globals() else K",
    "class Thing:\n    made = K\n    def __init__(self, at): self.at = at\nthing = Thing([K])",
    "if 'thing' in globals(): thing.at.append(K); type(thing).made += 1; thing.extra = numbers = [thing]",
    "import itertools, collections\nticks = itertools.count(K); ring = collections.deque([1, 2, K], 3)",
    "if 'ticks' in globals(): last = next(ticks); ring.append(last)",
    "import io\npaper = globals().get('paper') or io.StringIO(); paper.write('K ')",
    "import numpy\ngrid = numpy.arange(12.0).reshape(3, 4) * K",
    "if 'grid' in globals(): grid[1] += K; view = grid[:, 1]; view[0] = -K",
    "for name in ('numbers', 'table', 'thing', 'squares', 'grid', 'paper')[K % 3 :: 3]: globals().pop(name, None)",
    "walk = iter([1, 2, 3, K]); next(walk)",
    "if 'walk' in globals(): next(walk, None)",
]
SEED = "import random, numpy\nrandom.seed(K); numpy.random.seed(K)"
DRAW = "drawn = [random.random(), random.choice('abc'), float(numpy.random.rand())]"
# It blocks all signals, so it cannot be copied.
THREAD = """
import threading, ctypes
gate, deaf = threading.Event(), threading.Event()
def wait():
    ctypes.CDLL(None).syscall(14, 2, ctypes.byref(ctypes.c_uint64(2**64 - 1)), None, 8)
    deaf.set()
    gate.wait()
worker = threading.Thread(target=wait, daemon=True)
"""
JOIN = "del gate, deaf, wait, worker"

ERRORS = ["{}['x']", "1 / 0", "undefined", "def g(n): return g(n) if n else n.x\ng(0)", "raise SystemExit(4)"]

# What ends the interpreter; what is told then: cause, returncode.
DEATHS = {
    "__import__('os')._exit(3)": ("exit", 3),
    "__import__('ctypes').string_at(0)": ("signal 11", 139),
    "__import__('os').kill(__import__('os').getpid(), 9)": ("signal 9", 137),
    "__import__('os').abort()": ("signal 6", 134),
    "while True:\n    try: __import__('time').sleep(9)\n    except BaseException: pass": ("timeout", 124),
}


# ---- the model ----


@dataclass(frozen=True)
class Did:
    """A cell of the past: what is run again to be where it led. None: there the random numbers became others'."""

    code: Optional[str]


class World:
    """A namespace, and the random numbers that belong to it."""

    def __init__(self, past: tuple[Did, ...] = ()) -> None:
        self.names: dict[str, Any] = {"__name__": "__main__"}
        self.past: tuple[Did, ...] = ()
        self.seeded = False
        self.draws = (random.getstate(), numpy.random.get_state())
        for did in past:
            self.run(did)

    def run(self, did: Did) -> str:
        """What the cell said, an exception's name last."""
        self.past += (did,)
        if did.code is None:
            self.seeded = False
            return ""
        self.seeded |= "seed(" in did.code
        return self._aside(did.code, self.names)

    def describe(self) -> str:
        return self._aside(DESCRIBE, {"target": self.names, "seeded": self.seeded})

    def _aside(self, code: str, names: dict[str, Any]) -> str:
        printed: list[str] = []
        names["print"] = lambda *items: printed.append(" ".join(map(str, items)))
        outside = (random.getstate(), numpy.random.get_state())
        random.setstate(self.draws[0])
        numpy.random.set_state(self.draws[1])
        try:
            exec(code, names)
        except BaseException as error:
            printed.append(type(error).__name__)
        finally:
            self.draws = (random.getstate(), numpy.random.get_state())
            random.setstate(outside[0])
            numpy.random.set_state(outside[1])
            names.pop("print", None)
        return "\n".join(printed)


@dataclass(eq=False)
class Saved:
    """A checkpoint; `before` is the state it grew from, also after that has been forgotten."""

    cell: int
    past: tuple[Did, ...]
    before: Optional[Saved]
    name: Optional[str] = None
    forgotten: bool = False


@dataclass(eq=False)
class Model:
    """One session: what it holds and what it can go back to."""

    id: str
    manual: bool
    world: World = field(default_factory=World)
    base: Optional[Saved] = None
    origin: Optional[Saved] = None  # undo ends there: a branch does not know what was before it
    unsaved: bool = False
    between: bool = False  # a state between that of `base` and this one has been forgotten
    kept: list[Saved] = field(default_factory=list)
    cells: int = 0
    forgotten: int = 0
    last: int = 0  # cell after which the state is the present one

    def threads(self) -> bool:
        return "worker" in self.world.names

    def save(self, name: Optional[str] = None) -> Saved:
        saved = Saved(self.last, self.world.past, self.base, name)
        if self.between:
            saved.before = Saved(-1, (), self.base, forgotten=True)
        self.base, self.unsaved, self.between = saved, False, False
        self.kept.append(saved)
        while len([s for s in self.kept if not s.name]) > KEPT:
            self.drop(self.excess())
            self.forgotten += 1
        return saved

    def path(self) -> list[Saved]:
        """Those that undo would pass, forgotten ones included."""
        path, at = [], self.base
        while at:
            path.append(at)
            at = at.before
        return path

    def excess(self) -> Saved:
        may = [s for s in self.kept if not s.name and s is not self.base]
        path = self.path()
        return next((s for s in may if s not in path), may[0])

    def drop(self, saved: Saved) -> None:
        saved.forgotten = True
        self.kept.remove(saved)
        if saved is self.base:
            # The state itself lives on, unsaved; one that came after it has the dropped one in between.
            gap = self.unsaved or self.between or saved is self.origin
            self.base, self.unsaved = saved.before, True
            self.between |= gap
            while self.base and self.base.forgotten:
                self.base, self.between = self.base.before, True

    def find(self, name: str) -> Optional[Saved]:
        named = [s for s in self.kept if s.name == name]
        numbered = [s for s in self.kept if name.isdigit() and s.cell == int(name)]
        return next(iter(named + numbered[::-1]), None)

    def back(self, n: int) -> tuple[bool, Optional[Saved]]:
        """Whether the state @n back is remembered, and which it is; None is the pristine one."""
        at = self.base
        if self.unsaved:
            if self.between:
                return False, None
            n -= 1
        for _ in range(n):
            if not at or at is self.origin or (at.before and at.before.forgotten):
                return False, None
            at = at.before
        return True, at

    def go(self, to: Optional[Saved]) -> None:
        self.world = World(to.past if to else ())
        self.base, self.unsaved, self.between = to, False, False
        self.last = to.cell if to else 0


# ---- a round ----


class Round:
    def __init__(self, client: Client, seed: int) -> None:
        self.client = client
        self.seed = seed
        self.random = random.Random(seed)
        self.models: list[Model] = []
        self.opened = 0
        self.story: list[str] = []

    def tell(self, model: Model, what: str) -> None:
        self.story.append(f"{model.id}: {what}")

    def new_id(self) -> str:
        self.opened += 1
        return f"r{self.seed}.{self.opened}"

    def open(self) -> None:
        manual = self.random.random() < 0.25
        model = Model(self.new_id(), manual)
        self.tell(model, "open manual" if manual else "open")
        self.client.open(model.id, "manual" if manual else "default")
        self.models.append(model)

    def observe(self, model: Model, code: str, ending: str = "", timeout: Optional[float] = None) -> ExecReply:
        """Run a cell that tells its whole namespace before it ends in whatever way, and compare."""
        self.tell(model, code + (" ... " + ending if ending else ""))
        did = Did(code)
        names = World(model.world.past) if ending in DEATHS else model.world
        assert not names.run(did), f"{code} must not fail"
        tell = f"exec({DESCRIBE!r}, {{'target': globals(), 'seeded': {names.seeded}}})"
        started = "\nworker.start(); deaf.wait()" if code == THREAD else ""
        stopped = "gate.set(); worker.join(); import time as t; t.sleep(0.01); del t\n" if code == JOIN else ""
        reply = self.client.exec(f"{stopped}{code}{started}\n{tell}\n{ending}", model.id, timeout=timeout)
        model.cells += 1
        assert reply.stdout.decode().rstrip("\n") == names.describe()
        assert (reply.cell, reply.forgotten) == (model.cells, model.forgotten)
        model.forgotten = 0
        return reply

    def after(self, model: Model, reply: ExecReply) -> None:
        """The cell has ended and the session stands."""
        model.last, model.unsaved = model.cells, True
        assert (reply.state, reply.restored) == ("kept", 0)
        assert bool(reply.unfaithful) == model.threads(), reply.unfaithful
        if not model.manual and not model.threads():
            model.save()

    def cell(self, model: Model, choice: Optional[str] = None) -> None:
        if not choice:
            choice = self.random.choice([*CELLS, SEED, DRAW, DRAW] + [JOIN] * 12 * model.threads())
        if choice == DRAW and not model.world.seeded:
            choice = SEED
        reply = self.observe(model, choice.replace("K", str(self.random.randrange(1, 1000))))
        assert reply.returncode == 0, reply.stderr
        self.after(model, reply)

    def raises(self, model: Model) -> None:
        ending = self.random.choice(ERRORS).replace("K", str(self.random.randrange(100)))
        reply = self.observe(model, self.random.choice(CELLS).replace("K", "7"), ending)
        said = World._aside(model.world, ending, model.world.names)
        model.world.past += (Did(ending),)
        assert said == (reply.error or {"name": "SystemExit"})["name"]
        assert reply.returncode == (4 if said == "SystemExit" else 1)
        self.after(model, reply)

    def thread(self, model: Model) -> None:
        if not model.threads():
            self.cell(model, THREAD)

    def dies(self, model: Model) -> None:
        ending = self.random.choice(list(DEATHS))
        cause, returncode = DEATHS[ending]
        timeout = 0.2 if cause == "timeout" else None
        exact = not model.unsaved
        reply = self.observe(model, self.random.choice(CELLS).replace("K", "9"), ending, timeout)
        model.go(model.base)
        state = "rolled_back" if exact or model.base else "reset"
        assert (reply.state, reply.cause, reply.returncode) == (state, cause, returncode)
        assert reply.restored == model.last

    def undo(self, model: Model) -> None:
        n = self.random.choice([1, 1, 1, 2, 2, 3, 4])
        self.tell(model, f"undo {n}")
        known, to = model.back(n)
        if known:
            assert self.client.undo(model.id, n).cell == (to.cell if to else 0)
            model.go(to)
        else:
            self.refused("gone", lambda: self.client.undo(model.id, n))

    def refused(self, code: str, act: Callable[[], object]) -> None:
        with pytest.raises(LairError) as refusal:
            act()
        assert refusal.value.code == code

    def checkpoint(self, model: Model) -> None:
        name = self.random.choice([None, "a", "b", "c"])
        self.tell(model, f"checkpoint {name}")
        there = model.find(name) if name else None
        saved = not model.unsaved and model.base

        def act() -> StateReply:
            return self.client.checkpoint(model.id, name)

        if there and not (saved and there is model.base):
            self.refused("bad_request", act)
        elif saved and (not name or there):
            assert (act().cell, model.base and model.base.name) == (model.last, saved.name)
        elif saved and not saved.name:
            assert act().name == name
            saved.name = name
        elif model.threads():
            self.refused("unsupported", act)
        else:
            reply = act()
            model.save(name)
            assert (reply.cell, reply.name) == (model.last, name)

    def some_name(self, model: Model) -> str:
        known = [s.name or str(s.cell) for s in model.kept]
        return self.random.choice([*known, "a", "9999"])

    def restore(self, model: Model) -> None:
        name = self.some_name(model)
        self.tell(model, f"restore {name}")
        to = model.find(name)
        if to:
            assert self.client.restore(model.id, name).cell == to.cell
            model.go(to)
        else:
            self.refused("bad_request", lambda: self.client.restore(model.id, name))

    def drop(self, model: Model) -> None:
        name = self.some_name(model)
        self.tell(model, f"drop {name}")
        there = model.find(name)
        if there:
            self.client.drop(model.id, name)
            model.drop(there)
        else:
            self.refused("bad_request", lambda: self.client.drop(model.id, name))

    def branch(self, model: Model) -> None:
        if len(self.models) == SESSIONS:
            return
        name = self.random.choice([None, None, self.some_name(model)])
        branch = Model(self.new_id(), model.manual)
        self.tell(model, f"branch {branch.id} from {name}")

        def act() -> SessionInfo:
            return self.client.branch(model.id, branch.id, checkpoint=name)

        source = model.find(name) if name else model.base if not model.unsaved else None
        if name and not source:
            self.refused("bad_request", act)
            return
        if not source and model.threads():
            self.refused("unsupported", act)
            return
        act()
        source = source or model.save()
        branch.world = World((*source.past, Did(None)))
        branch.last = branch.cells = source.cell
        branch.origin = branch.save()
        self.models.append(branch)

    def reset(self, model: Model) -> None:
        self.tell(model, "reset")
        self.client.reset(model.id)
        model.go(None)

    def shutdown(self, model: Model) -> None:
        if len(self.models) > 1:
            self.tell(model, "shutdown")
            self.client.shutdown(model.id)
            self.models.remove(model)

    def look(self, model: Model) -> None:
        """Nothing but a look at it."""
        self.after(model, self.observe(model, "pass"))

    def listed(self, model: Model) -> None:
        """The last one is made when its cell has been answered, so it may be on its way."""
        expected, deadline = [(s.name, s.cell) for s in model.kept], time.monotonic() + 5
        while (listed := [(c.name, c.cell) for c in self.client.checkpoints(model.id)]) != expected:
            assert time.monotonic() < deadline, f"{listed}, not {expected}"
            time.sleep(0.0005)

    def step(self) -> None:
        kinds: dict[Callable[[Model], None], int] = {
            self.cell: 50, self.raises: 8, self.thread: 3, self.dies: 8, self.undo: 12, self.checkpoint: 8,
            self.restore: 7, self.drop: 4, self.branch: 6, self.reset: 1, self.shutdown: 2,
        }  # fmt: skip
        kind = self.random.choices(list(kinds), list(kinds.values()))[0]
        model = self.random.choice(self.models)
        kind(model)
        if model in self.models:
            self.listed(model)
            if kind in (self.dies, self.undo, self.restore, self.reset):
                self.look(model)

    def run(self) -> None:
        self.open()
        try:
            for _ in range(STEPS):
                self.step()
            for model in self.models:
                self.look(model)
        except BaseException:
            print(f"LAIR_PROPERTY_SEED={self.seed}", *self.story, sep="\n")
            raise
        for model in self.models:
            self.client.shutdown(model.id)


def test_random_histories(client: Client) -> None:
    seed = int(os.environ.get("LAIR_PROPERTY_SEED", time.time_ns() % 1_000_000_000))
    end = time.monotonic() + float(os.environ.get("LAIR_PROPERTY_SECONDS", "12"))
    rounds = 0
    while rounds == 0 or time.monotonic() < end:
        signal.alarm(60)  # no round may hang; any number of them may take as long as they like
        Round(client, seed + rounds).run()
        rounds += 1

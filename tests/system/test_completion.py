"""complete and inspect: what the session knows, found without running any of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lair import Client, codec
from lair import messages as m

SETTINGS = {"profile default": {"checkpoint": "cell", "preload": "numpy? pandas?"}}

PREPARED = '''
import os, math, types
import numpy as np, pandas as pd
array = np.zeros((2, 3))
frame = pd.DataFrame({"value": [1], "other": [2]})
table = {"alpha": 1, "beta": 2, 3: 4}
größe = 1
def add(x: int, y=[1, 2], *rest: str, z="q", **more) -> "Thing":
    """Add things."""
    return x
class Thing:
    """A thing."""
    def __init__(self, size, weight=2): self.inside = 1
    def method(self, a, /, b): "Does it."
    @staticmethod
    def static(q): "No self."
    @property
    def computed(self):
        "Never run."
        ran.append(1)
        return self
    __slots__ = ("inside", "slot")
thing = Thing(1)
ran = []
'''

HOSTILE = """
class Meta(type):
    def __getattribute__(cls, name): ran.append(name); raise SystemExit
    __dir__ = __call__ = __instancecheck__ = lambda *a: ran.append(a)
class Hostile(metaclass=Meta):
    def __getattribute__(self, name): ran.append(name); raise SystemExit
    def __dir__(self): ran.append('dir'); raise SystemExit
    __class__ = __doc__ = __signature__ = __wrapped__ = property(lambda self: ran.append('property'))
    def __repr__(self): ran.append('repr'); return '\\udfff' * 10**6
    def __len__(self): ran.append('len'); return -1
hostile = Hostile()
def defaults(a=hostile, *, b: hostile = 1): pass
defaults.__signature__ = defaults.__wrapped__ = hostile
class Descriptor:
    def __get__(self, *unused): ran.append('get'); raise SystemExit
class Holder:
    field = Descriptor()
holder = Holder()
holder.cycle = holder
module = types.ModuleType('module')
module.__getattr__ = module.__dir__ = lambda *a: ran.append('module')
vars(holder)['\\ud800'] = 1
setattr(Holder, 'x' * 100000, 1)
deep = []
for _ in range(100000): deep = [deep]
ran.clear()
"""


@pytest.fixture
def prepared(client: Client, session: str) -> Iterator[str]:
    reply = client.exec(PREPARED, session)
    assert reply.returncode == 0, reply.stderr
    yield session
    assert client.exec("ran", session).text == "[]"


def complete(client: Client, session: str, code: str, cursor: int = 0) -> tuple[list[str], int, int]:
    request = m.Complete(id=client.new_id(), session=session, code=code, cursor=cursor)
    reply = client.call(request, m.CompleteReply)
    return [codec.read(m.Match, item).text for item in reply.matches], reply.start, reply.end


def inspect(client: Client, session: str, code: str, cursor: int = 0, source: bool = False) -> m.InspectReply:
    request = m.Inspect(id=client.new_id(), session=session, code=code, cursor=cursor, source=source)
    return client.call(request, m.InspectReply)


@pytest.mark.parametrize(
    ("code", "expected", "start"),
    [
        ("thi", ["thing"], 0),
        ("x = größ", ["größe"], 4),
        ("prin", ["print"], 0),
        ("whil", ["while"], 0),
        ("os.path.joi", ["join"], 8),
        ("if (math.fact", ["factorial"], 9),
        ("thing.me", ["method"], 6),
        ("thing . in", ["inside"], 8),
        ("Thing.sta", ["static"], 6),
        ("thing.computed.me", [], 15),
        ("array.T.shap", ["shape"], 8),
        ("frame.valu", ["value", "values"], 6),
        ("frame['o", ["other"], 7),
        ('table["al', ["alpha"], 7),
        ("import nump", ["numpy"], 7),
        ("import os, mat", ["math", "matplotlib"], 11),
        ("from os import getcw", ["getcwd", "getcwdb"], 15),
        ("import json.deco", ["decoder"], 12),
        ("x = 'thi", [], 8),
        ("# thi", [], 5),
        ("f().thi", [], 7),
        ("1.5", [], 3),
        ("", [], 0),
        ("a\nb\nthi", ["thing"], 4),
    ],
)
def test_complete(client: Client, prepared: str, code: str, expected: list[str], start: int) -> None:
    matches, begin, end = complete(client, prepared, code)
    assert [match for match in matches if match in expected] == expected
    assert len(matches) <= len(expected) + 2
    assert (begin if matches else start, end) == (start, len(code))


def test_complete_in_the_middle(client: Client, prepared: str) -> None:
    assert complete(client, prepared, "print(thi) + 1", 9) == (["thing"], 6, 9)
    assert complete(client, prepared, "thi", 99) == (["thing"], 0, 3)


def test_complete_finds_modules_of_the_workspace(client: Client, prepared: str) -> None:
    client.put(prepared, "ownmodule.py", b"ran.append('imported')")
    assert complete(client, prepared, "import ownm")[0] == ["ownmodule"]


def test_types_of_matches(client: Client, prepared: str) -> None:
    request = m.Complete(id=client.new_id(), session=prepared, code="thing.")
    matches = client.call(request, m.CompleteReply).matches
    assert {match["text"]: match["type"] for match in matches} == {
        "computed": "property",
        "inside": "instance",
        "method": "function",
        "slot": "instance",
        "static": "function",
    }


def test_inspect_function(client: Client, prepared: str) -> None:
    reply = inspect(client, prepared, "add", source=True)
    assert (reply.found, reply.name, reply.type, reply.text) == (True, "add", "function", "<function add>")
    assert reply.signature == "(x: int, y=[1, 2], *rest: str, z='q', **more) -> Thing"
    assert (reply.docstring, reply.file, reply.line) == ("Add things.", "<cell 1>", 8)
    assert (reply.source or "").startswith("def add(x: int")
    assert inspect(client, prepared, "add").source is None
    assert inspect(client, prepared, "add(1, ").name == "add"


@pytest.mark.parametrize(
    ("code", "signature", "docstring"),
    [
        ("Thing", "(size, weight=2)", "A thing."),
        ("thing", None, "A thing."),
        ("thing.method", "(a, /, b)", "Does it."),
        ("Thing.method", "(self, a, /, b)", "Does it."),
        ("thing.static", "(q)", "No self."),
        ("thing.computed", None, "Never run."),
        ("len", "(obj, /)", "Return the number of items in a container."),
        ("os.path.join", "(a, *p)", None),
    ],
)
def test_inspect(client: Client, prepared: str, code: str, signature: str | None, docstring: str | None) -> None:
    reply = inspect(client, prepared, code)
    assert (reply.found, reply.name, reply.signature) == (True, code, signature)
    assert docstring is None or reply.docstring == docstring


def test_inspect_at_the_cursor(client: Client, prepared: str) -> None:
    assert inspect(client, prepared, "x = thing.method(1)", 7).name == "thing"
    assert inspect(client, prepared, "x = thing.method(1)", 12).name == "thing.method"
    assert inspect(client, prepared, "Thing", source=True).source is not None
    assert not inspect(client, prepared, "nothing").found
    assert not inspect(client, prepared, "").found
    assert not inspect(client, prepared, "1 + 1").found


@pytest.mark.parametrize(
    "name", ["hostile", "Hostile", "defaults", "holder", "Holder", "module", "deep", "Descriptor"]
)
def test_hostile_objects(client: Client, prepared: str, name: str) -> None:
    assert client.exec(HOSTILE, prepared).returncode == 0
    for code in (
        name,
        f"{name}.",
        f"{name}.field",
        f"{name}.field.",
        f"{name}.cycle.cycle.",
        f"{name}['",
        f"{name}(1, ",
    ):
        complete(client, prepared, code)
        inspect(client, prepared, code, source=True)
    assert inspect(client, prepared, name).found
    assert client.call(m.Vars(id=client.new_id(), session=prepared), m.VarsReply).total > 20


# A class with traps in place of some of its special methods, of some base, with some metaclass: whatever springs says so.
TRAPS = """
import random, types
ran = []
SPECIAL = ('getattr getattribute dir repr str len iter bool hash eq lt contains getitem call class dict doc name qualname '
           'module signature wrapped annotations get set_name instancecheck subclasscheck sizeof format index int float '
           'bytes complex length_hint reduce_ex fspath array wrapped text_signature defaults kwdefaults code mro bases').split()
SAFE = {'hash'}  # of a base that is hashable, so that a dict can be made
BASES = (object, int, str, bytes, float, list, tuple, dict, set, frozenset, complex, Exception, types.ModuleType, type)
def trap(name):
    def spring(*args, **names):
        ran.append(name)
        raise SystemExit(name)
    return random.choice((spring, property(spring), classmethod(spring), staticmethod(spring)))
def names(chance):
    return {f'__{name}__': trap(name) for name in SPECIAL if name not in SAFE and random.random() < chance}
def make(seed):
    random.seed(seed)
    base = random.choice(BASES)
    chance = random.choice((0.1, 0.5, 1.0))
    space = {'field': 1, 'method': lambda self: None, 'computed': property(lambda self: ran.append('computed'))}
    try:
        kind = type(base)(f'Kind{seed}', (base,), {**space, **names(chance)})
        value = base.__new__(kind, *(('name', (), {}) if base is type else ()))
    except BaseException:  # with such traps there can be none
        return None
    return value
made = {f'value{seed}': value for seed in range(START, START + 40) if (value := make(seed)) is not None}
globals().update(made)
holder = types.SimpleNamespace(**made)
items = list(made.values())
nested = [items, {name: [value] for name, value in made.items()}, (items,)]
ran.clear()
"""


@pytest.mark.parametrize("start", range(0, 200, 40))
def test_no_trap_springs(client: Client, session: str, start: int) -> None:
    reply = client.exec(TRAPS.replace("START", str(start)), session)
    assert reply.returncode == 0, reply.stderr
    made = client.exec("print(*made)", session).stdout.decode().split()
    assert len(made) > 10
    client.exec("ran.clear()", session)
    assert client.call(m.Vars(id=client.new_id(), session=session), m.VarsReply).total > len(made)
    for name in (*made, "items", "nested", "holder"):
        for code in (
            name,
            f"{name}.",
            f"{name}.field.",
            f"{name}.computed.",
            f"holder.{name}.",
            f"{name}['",
            f"{name}(",
        ):
            complete(client, session, code)
        for code in (name, f"holder.{name}", f"{name}.method", f"{name}.computed", f"{name}.__class__", f"{name}("):
            inspect(client, session, code, source=True)
    assert client.exec("print(ran)", session).stdout == b"[]\n"
    used = "for value in items:\n    try: repr(value)\n    except SystemExit: pass\nlen(ran) > 0"
    assert client.exec(used, session).text == "True", "the traps are none"


def test_a_session_that_has_broken_everything(client: Client, session: str) -> None:
    """What answers does not look its own tools up where a cell can reach them."""
    client.exec("value = 1", session)
    client.exec(
        "import sys, builtins, inspect, ast, re, os\n"
        "for tool in (inspect, ast, re, os): vars(tool).clear()\n"
        "for name in ('type', 'sorted', 'print', 'repr'): delattr(builtins, name)\n"
        "sys.modules.clear(); sys.path = None",
        session,
    )
    assert complete(client, session, "valu")[0] == ["value"]
    assert inspect(client, session, "value").text == "1"
    assert client.call(m.Vars(id=client.new_id(), session=session), m.VarsReply).total >= 1
    assert client.call(m.Check(id=client.new_id(), session=session, code="1 +"), m.CheckReply).valid is False
    assert client.call(m.Check(id=client.new_id(), session=session, code="a.b(c=1)"), m.CheckReply).valid

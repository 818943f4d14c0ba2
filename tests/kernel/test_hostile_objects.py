"""Objects that lie, raise, hang, recurse and flood, against everything that shows or explains them. Whatever they do,
the cell ends, its answer is well-formed, and the next one runs."""

from __future__ import annotations

import random
import time

import pytest

from drive import Interpreter, Result

HOSTILE = r'''
import enum, types

class Loud:
    def __init__(self, what): self.what = what
    def __repr__(self): return "Loud()"

def raising(*a, **k): raise ValueError("hostile")
def raising_base(*a, **k): raise type("Base", (BaseException,), {})("hostile")
def exiting(*a, **k): raise SystemExit(3)
def interrupting(*a, **k): raise KeyboardInterrupt
# Python 3.13 counts only those calls of such a function that hand arguments on.
def recursing(*a, **k): return recursing(*a, **k)
def self_giving(self, *a, **k): return self
class StrSub(str):
    def encode(self, *a): raise ValueError("encode")
    def __str__(self): return self
    def __len__(self): return 10**18
    def __format__(self, spec): raise ValueError
class DictSub(dict):
    def items(self): raise ValueError("items")
    def keys(self): return [[]]
    def __iter__(self): raise ValueError("iter")
class Meta(type):
    def __getattribute__(cls, name): raise ValueError("meta")
    def __instancecheck__(cls, other): raise ValueError("instance")
    def __repr__(cls): raise ValueError("meta repr")
    def mro(cls): return type.mro(cls)
class Descriptor:
    def __get__(self, thing, kind): raise ValueError("descriptor")
class NonCallable:
    def __get__(self, thing, kind): return 5

GIFTS = {
    "raises": raising, "base": raising_base, "exits": exiting, "interrupts": interrupting, "recurses": recursing,
    "itself": self_giving, "none": lambda *a, **k: None, "number": lambda *a, **k: 7,
    "surrogate": lambda *a, **k: "\udc80\ud800 x", "nul": lambda *a, **k: "\0\x1b[2J", "huge": lambda *a, **k: "h" * 20_000_000,
    "bytes": lambda *a, **k: b"\xff\xfe", "hugebytes": lambda *a, **k: b"\0" * 20_000_000,
    "strsub": lambda *a, **k: StrSub("sub"), "dictsub": lambda *a, **k: DictSub(a=1), "pair": lambda *a, **k: (1, 2),
    "triple": lambda *a, **k: (1, 2, 3), "class": lambda *a, **k: Loud, "lambda": lambda *a, **k: (lambda: 0),
    "bundle": lambda *a, **k: {"text/plain": b"x", 5: 6, "image/png": 3, "\udc80": "x", "text/html": StrSub("h")},
    "manytypes": lambda *a, **k: {f"text/x{i}": "y" for i in range(100000)},
    "self-containing": lambda *a, **k: (lambda d: d.update(json=d) or d)({"application/json": {}}),
    "nan": lambda *a, **k: {"application/json": float("nan"), "a/b+json": {1j: 2}},
    "deep": lambda *a, **k: __import__("functools").reduce(lambda x, _: [x], range(100000), []),
    "notbase64": lambda *a, **k: "not base 64 \u00fc",
}
PLACES = ["__repr__", "__str__", "_repr_html_", "_repr_png_", "_repr_json_", "_repr_svg_", "_repr_latex_",
          "_repr_mimebundle_", "_ipython_display_", "__class__", "__getattr__", "__getattribute__", "__len__",
          "__iter__", "__eq__", "__hash__", "__dict__", "__dir__", "__format__", "__bool__"]
# Classes for which we have a format of our own, and what it asks of them.
CLAIMS = {
    ("pandas.core.frame", "DataFrame"): ["iloc", "shape", "dtypes", "columns", "__getitem__"],
    ("pandas.core.series", "Series"): ["name", "to_frame"],
    ("matplotlib.figure", "Figure"): ["canvas", "dpi", "get_facecolor", "stale"],
}

def make(rng):
    """A class with a handful of hostile members, as methods, properties or descriptors."""
    body = {}
    claim = rng.choice(sorted(CLAIMS)) if rng.random() < 0.3 else None
    if claim: body["__module__"], body["__qualname__"] = claim
    for place in rng.sample(PLACES, rng.randint(1, 5)) + (rng.sample(CLAIMS[claim], 2) if claim else []):
        gift = GIFTS[rng.choice(sorted(GIFTS))]
        how = rng.randint(0, 5)
        body[place] = (property(gift) if how == 0 else Descriptor() if how == 1 else NonCallable() if how == 2
                       else staticmethod(gift) if how == 3 else gift)
    for name in ("__dict__",):
        if not isinstance(body.get(name), property): body.pop(name, None)
    bases = (rng.choice([object, object, Exception, list, dict, str, int, StrSub]),)
    meta = Meta if rng.random() < 0.2 else type
    try:
        return meta("H\u00fc\udc80" if rng.random() < 0.1 else "H", bases, body)
    except Exception:
        return type("H", bases, {})

def thing(seed):
    rng = __import__("random").Random(seed)
    kind = make(rng)
    try:
        value = object.__new__(kind) if kind.__mro__[-2] is kind else kind()
    except BaseException:
        value = kind
    return rng.choice([value, value, [value], {"k": value}, (value, value), kind])
'''

USES = [
    "thing({seed})",
    "display(thing({seed}))",
    "display(thing({seed}), display_id=thing({seed}), metadata=thing({seed}))",
    "display(thing({seed}), raw=True)",
    "update_display(thing({seed}), display_id='x')",
    "def f(x):\n    y = [x]\n    return x.nonesuch + nonesuch\nf(thing({seed}))",
    "raise thing({seed})",
    "e = ValueError(thing({seed})); e.name = e.obj = thing({seed}); raise e",
    "raise AttributeError(thing({seed}), name=thing({seed}), obj=thing({seed}))",
    "raise NameError(thing({seed}), name=thing({seed}))",
    "raise SyntaxError(thing({seed}), ('f', 1, 2, 'text'))",
    "e = SyntaxError('x'); e.lineno = e.offset = e.text = e.filename = thing({seed}); raise e",
    "e = ImportError('cannot import name \\'x\\''); e.name = thing({seed}); raise e",
]


def check(python: Interpreter, result: Result) -> None:
    """Everything has its type and its bounds; the router holds an interpreter to the same."""
    assert result.text is None or len(result.text.encode()) <= 65536
    for data in [result.data or {}, *(d["data"] for d in result.displays)]:
        assert len(data) <= 64 and sum(len(v) for v in data.values()) <= 16 << 20
        assert all(type(k) is str and type(v) in (str, bytes) for k, v in data.items())
    if result.cause == "error":
        assert result.error is not None, "an error without a word"
        assert all(type(result.error[name]) is str for name in ("name", "value", "traceback"))
        assert len(result.error["traceback"]) <= 600_000
        assert result.error["traceback"]
        for frame in result.error.get("frames", ()):
            assert all(type(v) is str and len(v) < 200 for v in frame.get("values", {}).values())


@pytest.mark.parametrize("first", range(0, 400, 40))
def test_hostile_objects(python: Interpreter, first: int) -> None:
    assert python.run(HOSTILE).returncode == 0
    for seed in range(first, first + 40):
        for use in random.Random(seed).sample(USES, 4):
            code = use.format(seed=seed)
            result = python.run(code, timeout=60, values=seed % 2 == 0)
            try:
                check(python, result)
            except Exception as error:
                raise AssertionError(f"{code}: {result}"[:2000]) from error
        assert python.run("6 * 7").text == "42", seed


def test_a_repr_that_hangs_is_interrupted(python: Interpreter) -> None:
    for name in ("__repr__", "_repr_html_", "_repr_mimebundle_"):
        python.run(
            f"class H:\n    def {name}(self, **k):\n        print('in', flush=True)\n        while True: pass"
        )
        for code in ("H()", "display(H())"):
            python.start(code)
            deadline = time.monotonic() + 10
            while b"in\n" not in python.taken[python.out]:
                assert time.monotonic() < deadline
                python.drain()
            python.interrupt()
            result = python.finish()
            assert (result.cause, result.returncode, result.displays) == ("interrupt", 130, [])
    assert python.run("1").text == "1"


def test_what_fails_is_told_and_left_out(python: Interpreter) -> None:
    python.run(
        "class H:\n"
        "    def __repr__(self): return 'H'\n"
        "    def _repr_html_(self): raise ValueError('no html')\n"
        "    def _repr_png_(self): return 5\n"
        "    def _repr_svg_(self): return '<svg/>'"
    )
    result = python.run("H()")
    assert (result.text, result.data) == ("H", {"image/svg+xml": "<svg/>"})
    assert result.err == (
        b"H._repr_html_: ValueError: no html\nH as image/png: TypeError: bytes expected, not int\n"
    )


def test_values_of_locals_run_nobodys_code(python: Interpreter) -> None:
    python.run(
        "ran = []\n"
        "class H:\n"
        "    def __repr__(self): ran.append('repr')\n"
        "    def __getattribute__(self, name): ran.append(name)\n"
        "    __class__ = property(lambda self: ran.append('class'))\n"
        "class L(list):\n"
        "    def __iter__(self): ran.append('iter')\n"
        "    def __len__(self): ran.append('len')"
    )
    code = (
        "def f(h, l, n, s, d):\n    return 1 / 0\nf(H(), L(), 10**10000, 's' * 10**6, {'a': [1, H(), {2: {3: 4}}]})"
    )
    result = python.run(code, values=True)
    assert result.error is not None
    values = result.error["frames"][1]["values"]
    assert values == {
        "h": "<H>",
        "l": "<L>",
        "n": "<a large int>...",
        "s": "'" + "s" * 79 + "...",
        "d": "{'a': [1, <H>, ...]}",
    }
    assert python.run("ran").text == "[]"

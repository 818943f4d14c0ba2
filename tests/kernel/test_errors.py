"""What an error says that a program, or a model, can use."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from drive import Interpreter


def error_of(python: Interpreter, code: str, **how: Any) -> dict[str, Any]:
    result = python.run(code, **how)
    assert result.cause == "error" and result.error is not None
    assert result.err.decode() == result.error["traceback"]
    return result.error


@pytest.mark.parametrize(
    ("code", "suggestion", "last"),
    [
        ("total = 1\ntotl", "total", "NameError: name 'totl' is not defined. Did you mean: 'total'?"),
        ("def f():\n    local = 1\n    return locl\nf()", "local", "NameError: name 'locl' is not defined"),
        ("prnt", "print", "NameError: name 'prnt' is not defined. Did you mean: 'print'?"),
        ("[].apend(1)", "append", "AttributeError: 'list' object has no attribute 'apend'"),
        ("import math\nmath.sqroot(2)", "sqrt", "AttributeError: module 'math' has no attribute 'sqroot'"),
        ("class A:\n    def __init__(s): s.width = 1\nA().widht", "width", "AttributeError: 'A' object"),
        ("from collections import OrderdDict", "OrderedDict", "ImportError: cannot import name 'OrderdDict'"),
        ("zzzzqqq", None, "NameError: name 'zzzzqqq' is not defined"),
        ("(1).nonesuchatall", None, "AttributeError: 'int' object has no attribute 'nonesuchatall'"),
        ("import nonesuch_module", None, "ModuleNotFoundError: No module named 'nonesuch_module'"),
        ("{'a': 1}['b']", None, "KeyError: 'b'"),
    ],
)
def test_suggestion(python: Interpreter, code: str, suggestion: str | None, last: str) -> None:
    error = error_of(python, code)
    assert error.get("suggestion") == suggestion
    line = error["traceback"].splitlines()[-1]
    assert line.startswith(last) and line.endswith(f". Did you mean: '{suggestion}'?") == bool(suggestion)


def test_a_suggestion_comes_before_notes(python: Interpreter) -> None:
    error = error_of(python, "try: prnt\nexcept NameError as e:\n    e.add_note('one\\ntwo')\n    raise")
    said = "NameError: name 'prnt' is not defined. Did you mean: 'print'?"
    assert error["traceback"].splitlines()[-3:] == [said, "one", "two"]


@pytest.mark.parametrize(
    ("code", "line", "offset", "context"),
    [
        ("x = = 1", 1, 5, "x = = 1"),
        ("y = 1\nif True\n    pass", 2, 8, "if True"),
        ("def f(:\n    pass", 1, 7, "def f(:"),
        ("x = (1,\n\n", 1, 5, "x = (1,"),
        ("s = 'abc", 1, 5, "s = 'abc"),
    ],
)
def test_syntax(python: Interpreter, code: str, line: int, offset: int, context: str) -> None:
    error = error_of(python, code)
    assert (error["line"], error["offset"], error["context"]) == (line, offset, context)
    assert error["name"] == "SyntaxError" and error["frames"] == []


def test_frames(python: Interpreter) -> None:
    python.run("def inner(x):\n    return int(x)")
    error = error_of(python, "import json\nvalues = ['1', 'b']\n[inner(v) for v in values]\njson.loads('{')")
    where = [(f.get("cell"), f.get("file"), f["line"], f["function"], f["source"]) for f in error["frames"]]
    inner = [(2, None, 3, "<listcomp>", "[inner(v) for v in values]")]
    assert where == [
        (2, None, 3, "<module>", "[inner(v) for v in values]"),
        *(inner if sys.version_info < (3, 12) else []),  # from then on it is no function
        (1, None, 2, "inner", "return int(x)"),
    ]
    error = error_of(python, "json.loads('{')")
    assert error["frames"][1]["file"].endswith("json/__init__.py") and "values" not in error["frames"][1]


def test_values_only_if_asked_for(python: Interpreter) -> None:
    code = "def f(n, name):\n    ratio = n / 2\n    return ratio / 0\nf(3, 'x')"
    assert all("values" not in frame for frame in error_of(python, code)["frames"])
    frames = error_of(python, code, values=True)["frames"]
    assert [frame["values"] for frame in frames] == [{}, {"n": "3", "name": "'x'", "ratio": "1.5"}]
    assert all("values" not in frame for frame in error_of(python, code)["frames"])


def test_long_tracebacks_keep_both_ends(python: Interpreter) -> None:
    error = error_of(
        python, "def a(n): return b(n)\ndef b(n): return a(n - 1) if n else end()\ndef end(): 1 / 0\na(300)"
    )
    lines = error["traceback"].splitlines()
    assert lines[1] == '  File "<cell 1>", line 4, in <module>' and lines[-1].startswith("ZeroDivisionError")
    assert "  ... 564 frames left out ..." in lines and len(lines) < 200
    assert len(error["frames"]) == 40
    assert (error["frames"][0]["function"], error["frames"][-1]["function"]) == ("<module>", "end")


def test_recursion_is_told_as_python_does(python: Interpreter) -> None:
    error = error_of(python, "def f(): f()\nf()")
    assert "[Previous line repeated" in error["traceback"] and len(error["traceback"]) < 2000


def test_causes_are_shortened_too(python: Interpreter) -> None:
    error = error_of(
        python,
        "def a(n): return b(n)\ndef b(n): return a(n - 1) if n else 1 / 0\n"
        "try: a(100)\nexcept Exception as e: raise ExceptionGroup('g', [e]) from e",
    )
    assert error["traceback"].count("frames left out") == 2


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="Python's own traceback asks there, for a suggestion")
def test_values_are_not_asked_for(python: Interpreter) -> None:
    """A class may keep its names in a mapping of the session's own."""
    code = (
        "class Names(dict):\n    def __iter__(self):\n        print('asked')\n        return iter(())\n"
        "class Kind(type):\n    __prepare__ = classmethod(lambda *_: Names())\n"
        "class A(metaclass=Kind):\n    missing"
    )
    result = python.run(code, values=True)
    assert result.error is not None and result.error["name"] == "NameError" and result.out == b""


def test_without_what_a_cell_has_broken(python: Interpreter) -> None:
    python.run(
        "import difflib, re, sys\ndifflib.get_close_matches = re.match = re.search = None\nsys.modules.clear()"
    )
    error = error_of(python, "value = 1\nvalu")
    assert error["suggestion"] == "value" and error["frames"][0]["line"] == 2

"""Whole sessions as people have them: the examples of Python's tutorial, of the standard library's modules, of pandas
and of matplotlib, each cell after the other in one session."""

from __future__ import annotations

import ast
import doctest
import importlib
import json
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from lair import Client
from lair import messages as m

SETTINGS = {"profile default": {"preload": "numpy? pandas? matplotlib.pyplot?", "cell_timeout": "30s"}}

MODULES = [
    "bisect",
    "calendar",
    "collections",
    "contextlib",
    "copy",
    "difflib",
    "fractions",
    "heapq",
    "ipaddress",
    "pickletools",
    "random",
    "statistics",
    "string",
    "textwrap",
    "unittest.mock",
]


def examples_of(module: str) -> list[tuple[str, list[doctest.Example]]]:
    tests = doctest.DocTestFinder().find(importlib.import_module(module))
    return [(test.name, test.examples) for test in tests if test.examples]


def check(client: Client, session: str, example: doctest.Example) -> str:
    """What is wrong with the answer, or nothing."""
    reply = client.exec(example.source, session)
    if reply.error is not None:
        said = f"{reply.error['name']}: {reply.error['value']}".strip()
        return "" if example.exc_msg else said
    got = reply.stdout.decode() + (f"{reply.text}\n" if reply.text is not None else "")
    flags = sum(flag for flag, on in example.options.items() if on) | doctest.ELLIPSIS
    return (
        "" if doctest.OutputChecker().check_output(example.want, got, flags) else f"{got!r} is not {example.want!r}"
    )


@pytest.mark.parametrize("module", MODULES)
def test_the_examples_of_a_module(client: Client, session: str, module: str) -> None:
    """As doctest runs them, in the namespace of their module; what prints its value here gives it."""
    count, wrong = 0, []
    for name, examples in examples_of(module):
        client.exec(f"import {module}\nglobals().update(vars({module}), __name__='__main__')", session)
        for example in examples:
            if doctest.SKIP not in example.options:
                count += 1
                problem = check(client, session, example)
                wrong += [f"{name}: {example.source.strip()}: {problem}"] if problem else []
    assert wrong == []
    assert count > 0 or not examples_of(module)


def test_there_are_many_examples() -> None:
    assert sum(len(examples) for module in MODULES for _, examples in examples_of(module)) > 300


# ---- the tutorial of Python's documentation, which python3-doc brings along ----

CHAPTERS = sorted(Path("/usr/share/doc").glob(f"python3.{sys.version_info.minor}/html/_sources/tutorial/*.rst.txt"))

# What reaches out of the session, waits for somebody, or is another thing each time.
NOT_RUN = re.compile(
    r"os\.(chdir|system|getcwd)|shutil\.|urlopen|smtplib|server\.|while True|input\(|help\(|random\.|Timer\("
    r"|^dir\(|sys\.(path|ps|argv)|getusersite"
)
PROMPT = """
import ast, contextlib, io, json, sys
names, answers = {"__name__": "__main__"}, []
for source in json.load(sys.stdin):
    out, error = io.StringIO(), None
    try:
        tree = ast.Interactive(ast.parse(source, "<cell>").body)
        with contextlib.redirect_stdout(out): exec(compile(tree, "<cell>", "single"), names)
    except BaseException as e: error = f"{type(e).__name__}: {e}"
    answers.append((out.getvalue(), error))
json.dump(answers, sys.__stdout__)
"""


def at_pythons_prompt(sources: list[str], directory: Path) -> list[tuple[str, str | None]]:
    done = subprocess.run(
        [sys.executable, "-c", PROMPT],
        input=json.dumps(sources),
        cwd=directory,
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert done.returncode == 0, done.stderr
    return list(map(tuple, json.loads(done.stdout)))


def likened(said: str | None) -> list[str]:
    """Addresses are of a process, sets have no order, and a cell has a number."""
    return sorted(re.sub(r"0x[0-9a-f]+|(?<=<cell) \d+", "", said or ""))


@pytest.mark.parametrize("chapter", CHAPTERS, ids=[path.name.partition(".")[0] for path in CHAPTERS])
def test_the_tutorial(client: Client, session: str, chapter: Path, tmp_path: Path) -> None:
    """A session answers as Python's own prompt does, whether or not that is what the book says."""
    examples = doctest.DocTestParser().get_examples(chapter.read_text())
    sources = [example.source for example in examples if not NOT_RUN.search(example.source)]
    wrong = []
    for source, (said, error) in zip(sources, at_pythons_prompt(sources, tmp_path)):
        reply = client.exec(source, session)
        told = f"{reply.error['name']}: {reply.error['value']}" if reply.error is not None else None
        got = reply.stdout.decode() + (f"{reply.text}\n" if reply.text is not None else "")
        if (likened(got), likened(told)) != (likened(said), likened(error)):
            wrong.append(f"{source}: {got!r}, {told}, and not {said!r}, {error}")
    assert wrong == []


def test_it_is_the_whole_tutorial() -> None:
    if not CHAPTERS:
        pytest.skip("python3-doc is not installed")
    found = [doctest.DocTestParser().get_examples(chapter.read_text()) for chapter in CHAPTERS]
    assert sum(map(len, found)) > 500


SHORT_TUTORIAL = [
    (
        "the_world_is_flat = True\nif the_world_is_flat:\n    print('Be careful not to fall off!')",
        "Be careful not",
        None,
    ),
    ("spam = 1  # a comment\ntext = '# not a comment'\ntext", "", "'# not a comment'"),
    ("(50 - 5*6) / 4, 17 // 3, 17 % 3, 5 ** 2", "", "(5.0, 5, 2, 25)"),
    ("tax = 12.5 / 100\nprice = 100.50\nprice * tax", "", "12.5625"),
    ("round(price + _, 2)", "", "113.06"),
    ("n", "NameError", None),
    ("'Py' 'thon' + 3 * '!'", "", "'Python!!!'"),
    ("a, b = 0, 1\nwhile a < 10:\n    print(a, end=',')\n    a, b = b, a+b", "0,1,1,2,3,5,8,", None),
    ("words = ['cat', 'window', 'defenestrate']\nfor w in words:\n    print(w, len(w))", "defenestrate 12", None),
    (
        "def fib(n):\n    '''Print a series.'''\n    a, b = 0, 1\n    while a < n:\n        yield a\n        a, b = b, a+b",
        "",
        None,
    ),
    ("[*fib(30)]", "", "[0, 1, 1, 2, 3, 5, 8, 13, 21]"),
    ("fib.__doc__", "", "'Print a series.'"),
    ("match [1, 2, 3]:\n    case [first, *rest]:\n        print(first, rest)", "1 [2, 3]", None),
    (
        "from collections import deque\nq = deque(['Eric'])\nq.append('Terry')\nq.popleft(), q",
        "",
        "('Eric', deque(['Terry']))",
    ),
    ("{k: v for k, v in zip('ab', range(2))}", "", "{'a': 0, 'b': 1}"),
    ("with open('workfile', 'w') as f:\n    f.write('This is a test')", "", None),
    ("with open('workfile') as f: print(f.read())", "This is a test", None),
    ("try:\n    raise KeyboardInterrupt\nfinally:\n    print('Goodbye')", "Goodbye", None),
    ("class Dog:\n    kind = 'canine'\n    def __init__(self, name): self.name = name", "", None),
    ("Dog('Fido').kind, Dog('Buddy').name", "", "('canine', 'Buddy')"),
    ("sum(i*i for i in range(10))", "", "285"),
    (
        "import glob, json, zlib\nglob.glob('*'), json.dumps([1, {'a': None}]), len(zlib.compress(b'w' * 1000)) < 50",
        "",
        "(['workfile'], '[1, {\"a\": null}]', True)",
    ),
    ("import asyncio\nasync def nested(): return 42\nawait nested()", "", "42"),
]


def test_a_short_tutorial(client: Client, session: str) -> None:
    for number, (code, said, text) in enumerate(SHORT_TUTORIAL, 1):
        reply = client.exec(code, session)
        assert reply.cell == number
        assert said in reply.stdout.decode() + reply.stderr.decode(), code
        assert reply.text == text, code
        assert (reply.error is None) == ("Error" not in said and "raise" not in code), code


PANDAS = """
df = pd.DataFrame(np.arange(24.0).reshape(6, 4), index=pd.date_range("20130101", periods=6), columns=list("ABCD"))
df.head()
df.dtypes
df.describe()
df.T
df.sort_values(by="B")
df.loc["20130102":"20130104", ["A", "B"]]
df[df["A"] > 4]
df.apply(lambda x: x.max() - x.min())
pd.merge(pd.DataFrame({"k": ["x", "y"], "l": [1, 2]}), pd.DataFrame({"k": ["x", "y"], "r": [4, 5]}), on="k")
pd.DataFrame({"A": ["f", "b", "f"], "C": [1, 2, 3]}).groupby("A").sum()
df.stack().unstack()
pd.pivot_table(df.assign(half=df.A > 10), values="D", index="half")
df.resample("2D").mean()
pd.Series(["a", "b", "a"], dtype="category").value_counts()
df.to_csv("foo.csv")
pd.read_csv("foo.csv", index_col=0)
df.plot()
"""


def test_pandas_in_ten_minutes(client: Client, session: str) -> None:
    client.exec("import numpy as np, pandas as pd", session)
    seen: dict[str, Any] = {}
    for line in PANDAS.strip().splitlines():
        seen[line] = reply = client.exec(line, session)
        assert reply.returncode == 0, f"{line}: {reply.stderr.decode()}"
        shows_table = isinstance(ast.parse(line).body[0], ast.Expr) and not line.startswith(
            ("df.to_csv", "df.plot")
        )
        assert ("application/json" in (reply.data or {})) == shows_table, line
    assert seen['df.to_csv("foo.csv")'].artifacts[0]["path"] == b"foo.csv"
    assert "image/png" in seen["df.plot()"].displays[0]["data"]


PLOTS = {
    "lines": "x = np.linspace(0, 6)\nplt.plot(x, np.sin(x), label='sin'); plt.legend(); plt.title('a'); plt.show()",
    "scatter": "plt.scatter(np.arange(9), np.arange(9) ** 2, c=np.arange(9)); plt.colorbar()",
    "bars": "plt.bar(['a', 'b'], [3, 5]); plt.xticks(rotation=45); plt.ylabel('n')",
    "histogram": "plt.hist(np.random.default_rng(0).normal(size=1000), bins=30)",
    "grid": "fig, axes = plt.subplots(2, 3, figsize=(9, 4), constrained_layout=True)\nfor a in axes.flat: a.plot([1, 2])",
    "image": "plt.imshow(np.eye(9)); plt.axis('off')",
    "contour": "X, Y = np.meshgrid(np.arange(9), np.arange(9)); plt.contourf(X, Y, X * Y)",
    "polar": "plt.subplot(projection='polar').plot(np.arange(9), np.arange(9))",
    "3d": "plt.figure().add_subplot(projection='3d').scatter([1], [2], [3])",
    "pie": "plt.pie([1, 2], labels=['a', 'b'], autopct='%d%%')",
    "text": "plt.text(.5, .5, r'$\\frac{a}{b}$ ü')",
    "log": "plt.semilogy([1, 10, 100]); plt.grid(True); plt.tight_layout()",
    "style": "with plt.style.context('ggplot'): plt.plot([1]); plt.show()",
    "twin": "a = plt.gca(); b = a.twinx(); b.plot([1])",
    "animation": "import matplotlib.animation as m\nf = plt.figure(); _ = m.FuncAnimation(f, lambda i: [], 2)",
    "objects": "from matplotlib.figure import Figure\nf = Figure(); f.subplots().plot([1]); display(f)",
}


@pytest.mark.parametrize("how", ["png", "svg"])
def test_a_gallery(client: Client, session: str, how: str) -> None:
    client.exec("import numpy as np, matplotlib.pyplot as plt", session)
    for name, code in PLOTS.items():
        request = m.Exec(id=client.new_id(), session=session, code=textwrap.dedent(code), figure=how)
        reply = client.call(request, m.ExecReply)
        assert reply.returncode == 0, f"{name}: {reply.stderr.decode()}"
        assert len(reply.displays or []) == 1, name
        picture = reply.displays[0]["data"]["image/png" if how == "png" else "image/svg+xml"]
        assert len(picture) > 500, name
    assert client.exec("plt.get_fignums()", session).text == "[]"

"""What values are shown as, and what cells show themselves."""

from __future__ import annotations

import json
import select
import struct
from pathlib import Path
from typing import Any

import pytest

from drive import Interpreter, Result


def shown(result: Result) -> list[dict[str, Any]]:
    assert (result.returncode, result.err) == (0, b""), result.err.decode()
    return [display["data"] for display in result.displays]


def size_of(png: bytes) -> tuple[int, int]:
    assert png.startswith(b"\x89PNG\r\n")
    width, height = struct.unpack(">II", png[16:24])
    return width, height


# ---- the conventions ----

RICH = """
class Rich:
    def __repr__(self): return "plain"
    def _repr_html_(self): return "<b>html</b>"
    def _repr_markdown_(self): return "**markdown**"
    def _repr_latex_(self): return "$x$", {"inline": True}
    def _repr_svg_(self): return "<svg/>"
    def _repr_png_(self): return b"\\x89PNG"
    def _repr_jpeg_(self): return "/9j/"
    def _repr_pdf_(self): return bytearray(b"%PDF")
    def _repr_json_(self): return {"a": [1, None]}
    def _repr_javascript_(self): return "alert(1)"
"""
BUNDLE = {
    "text/html": "<b>html</b>",
    "text/markdown": "**markdown**",
    "text/latex": "$x$",
    "image/svg+xml": "<svg/>",
    "image/png": b"\x89PNG",
    "image/jpeg": b"\xff\xd8\xff",
    "application/pdf": b"%PDF",
    "application/json": '{"a": [1, null]}',
    "application/javascript": "alert(1)",
}


def test_every_kind(python: Interpreter) -> None:
    result = python.run(RICH + "Rich()")
    assert (result.text, result.data, result.err) == ("plain", BUNDLE, b"")
    (display,) = python.run("display(Rich())").displays
    assert display["data"] == {**BUNDLE, "text/plain": "plain"}
    assert json.loads(display["metadata"]) == {"text/latex": {"inline": True}}


def test_mimebundle(python: Interpreter) -> None:
    python.run(
        "class Whole:\n"
        "    def __repr__(self): return 'repr'\n"
        "    def _repr_html_(self): return 'own html'\n"
        "    def _repr_mimebundle_(self, include=None, exclude=None):\n"
        "        return {'text/plain': 'text', 'application/vnd.x+json': {'y': 1}, 'image/png': 'iVBO'}, {'m': 1}"
    )
    result = python.run("Whole()")
    assert result.text == "text"
    assert result.data == {
        "application/vnd.x+json": '{"y": 1}',
        "image/png": b"\x89PN",
        "text/html": "own html",
    }
    (data,) = shown(python.run("display(Whole(), include=['text/plain', 'image/png'])"))
    assert set(data) == {"text/plain", "image/png"}
    (data,) = shown(python.run("display(Whole(), exclude=['image/png', 'text/html'])"))
    assert set(data) == {"text/plain", "application/vnd.x+json"}


def test_an_object_that_shows_itself(python: Interpreter) -> None:
    python.run("class Self:\n    def _ipython_display_(self): print('here I am')")
    result = python.run("Self()")
    assert (result.text, result.data, result.out) == (None, None, b"here I am\n")
    assert python.run("display(Self(), 1)").out == b"here I am\n"


def test_an_object_that_could_but_need_not(python: Interpreter) -> None:
    python.run(
        "class Both:\n    def _ipython_display_(self): print('never')\n"
        "    def _repr_mimebundle_(self, **k): return {'text/plain': 'both', 'text/html': '<b>'}"
    )
    result = python.run("Both()")
    assert (result.text, result.data, result.out) == ("both", {"text/html": "<b>"}, b"")


def test_classes_and_what_answers_to_everything(python: Interpreter) -> None:
    """The methods of a class are not its own; and __getattr__ is not asked."""
    assert python.run(RICH + "Rich").data is None
    result = python.run("from unittest.mock import MagicMock\nMagicMock()")
    assert result.data is None and result.text is not None and result.text.startswith("<MagicMock")


def test_display_update_and_clear(python: Interpreter) -> None:
    result = python.run(
        "h = display(1, 'two', display_id='d')\nh.update(3)\nupdate_display(4, display_id='d')\n"
        "clear_output()\ndisplay(5)\nclear_output(wait=True)\ndisplay(6)\nclear_output(wait=True)"
    )
    assert (result.returncode, result.err) == (0, b"")
    assert [{**d, "data": d["data"].get("text/plain")} for d in result.displays] == [
        {"data": "1", "display_id": "d"},
        {"data": "'two'", "display_id": "d"},
        {"data": "3", "display_id": "d", "update": True},
        {"data": "4", "display_id": "d", "update": True},
        {"data": None, "clear": True},
        {"data": "5"},
        {"data": "6", "clear": True},
    ]
    result = python.run("repr(display(1, display_id=True)), display(2)")
    assert result.text is not None and "DisplayHandle display_id=" in result.text and result.text.endswith("None)")


def test_raw(python: Interpreter) -> None:
    (data,) = shown(
        python.run("display({'text/plain': 'x', 'application/json': [1], 'image/gif': b'G'}, raw=True)")
    )
    assert data == {"text/plain": "x", "application/json": "[1]", "image/gif": b"G"}


def test_what_is_printed_before_comes_before(python: Interpreter) -> None:
    python.start("import time\nprint('before')\ndisplay(1)\ntime.sleep(0.3)\nprint('after')")
    kind, _ = python.next()
    assert kind == "display"
    assert python.take()[0] == b"before\n"
    assert python.finish().out == b"after\n"


def test_only_a_running_cell_of_this_process_shows(python: Interpreter) -> None:
    python.run("import os, threading, time")
    result = python.run(
        "if os.fork() == 0:\n"
        "    try: display(1)\n"
        "    except RuntimeError as e: print(e, flush=True)\n"
        "    os._exit(0)\n"
        "_ = os.wait()"
    )
    assert result.out == b"only a cell that runs can reach its client\n" and result.displays == []
    python.run(
        "def late():\n"
        "    time.sleep(0.2)\n"
        "    try: display(1)\n"
        "    except RuntimeError as e: told.append(str(e))\n"
        "told = []\nthread = threading.Thread(target=late)\nthread.start()"
    )
    assert python.next_is_quiet(0.5)
    assert python.run("thread.join(); told").text == "['only a cell that runs can reach its client']"
    result = python.run("thread = threading.Thread(target=display, args=(7,)); thread.start(); thread.join()")
    assert [d["data"]["text/plain"] for d in result.displays] == ["7"]


def test_a_cell_ends_before_a_thread_could_show(python: Interpreter) -> None:
    """What is large waits until the router has read what was sent before."""
    python.start(
        "import threading, time\ntold = []\n"
        "def show():\n"
        "    display({'text/plain': 'y' * 100000}, raw=True)\n"
        "    told.append(None)\n"
        "    try: display({'text/plain': 'z' * 100000}, raw=True)\n"
        "    except RuntimeError as error: told.append(str(error))\n"
        "thread = threading.Thread(target=show)\nthread.start()\n"
        "while not told: time.sleep(0.001)\ntime.sleep(0.1)\nprint('ends')"
    )
    assert select.select([python.out], [], [], 10)[0]
    assert len(python.finish().displays) == 1
    assert python.next_is_quiet(0.2)
    assert python.run("thread.join(); told").text == "[None, 'only a cell that runs can reach its client']"


def test_many_large_ones_from_many_threads(python: Interpreter) -> None:
    result = python.run(
        "import threading\n"
        "def show(n):\n"
        "    for i in range(5): display({'text/plain': f'{n} {i}', 'image/png': bytes([n]) * 300_000}, raw=True)\n"
        "threads = [threading.Thread(target=show, args=(n,)) for n in range(4)]\n"
        "for t in threads: t.start()\n"
        "for t in threads: t.join()"
    )
    seen = {d["data"]["text/plain"]: d["data"]["image/png"] for d in result.displays}
    assert seen == {f"{n} {i}": bytes([n]) * 300_000 for n in range(4) for i in range(5)}


# ---- how much ----


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("list(range(150))", repr(list(range(150)))),
        ("{i: [i] * 30 for i in range(60)}", repr({i: [i] * 30 for i in range(60)})),
        ("set()", "set()"),
        ("frozenset([1])", "frozenset({1})"),
        ("(1,)", "(1,)"),
        ("[set(), (), [], {}, ((1,),)]", "[set(), (), [], {}, ((1,),)]"),
        ("list(range(10**6))", f"[{', '.join(map(str, range(100)))}, ... (999900 more)]"),
        ("dict.fromkeys(range(10**6))", f"{{{', '.join(f'{i}: None' for i in range(100))}, ... (999900 more)}}"),
        ("x = []; x.append(x); x", "[[...]]"),
    ],
)
def test_containers(python: Interpreter, code: str, text: str) -> None:
    assert python.run(code).text == text
    (data,) = shown(python.run(f"{code.rpartition(';')[0]}\ndisplay({code.rpartition(';')[2].strip()})"))
    assert data == {"text/plain": text}


@pytest.mark.parametrize(
    "code",
    [
        "[[[0] * 1000] * 1000] * 1000",
        "['x' * 10**7] * 100",
        "'x' * 10**8",
        "b'x' * 10**8",
        "(((0,) * 10**5,) * 10**5,)",
        "{i: 'v' * 1000 for i in range(10**5)}",
    ],
)
def test_never_megabytes(python: Interpreter, code: str) -> None:
    result = python.run(code + " if True else 0", timeout=60)
    assert result.returncode == 0 and result.text is not None
    assert len(result.text) <= 65536
    assert len(python.run(f"display({code})").displays[0]["data"]["text/plain"]) <= 66000


def test_a_bundle_has_a_limit(python: Interpreter) -> None:
    result = python.run("display({'text/plain': 'x', 'image/png': b'x' * 9_000_000}, raw=True)")
    assert result.displays[0]["data"] == {"text/plain": "x"}
    assert result.err == b"display as image/png: ValueError: 9000000 bytes are too many to show\n"


def test_what_does_not_fit_into_a_message(python: Interpreter) -> None:
    result = python.run("display(1, metadata={'a': 'x' * 20_000_000})")
    assert result.error is not None and result.displays == []
    assert (result.error["name"], result.error["value"]) == ("ValueError", "it is too large to be sent")
    assert len(python.run("display(1)").displays) == 1


def test_what_was_large_once_is_let_go(python: Interpreter) -> None:
    """Messages are made in memory that every checkpoint would share."""
    resident = "int(next(line.split()[1] for line in open('/proc/self/status') if line.startswith('RssAnon')))"
    python.run(resident)
    before = int(python.run(resident).text or "")
    assert len(python.run("display({'image/png': b'p' * 8_000_000}, raw=True)").displays) == 1
    python.run("class Page:\n    def _repr_html_(self): return 'x' * 8_000_000\nPage()")
    assert int(python.run(resident).text or "") - before < 4000


# ---- libraries ----


def test_dataframe(scientist: Interpreter) -> None:
    result = scientist.run(
        "import pandas as pd\n"
        "pd.DataFrame({'n': [1, None], 's': ['a', 'ü'], 't': pd.to_datetime(['2020-01-01', None])})"
    )
    assert result.text == "     n  s          t\n0  1.0  a 2020-01-01\n1  NaN  ü        NaT"
    assert result.data is not None and "<table" in result.data["text/html"]
    assert json.loads(result.data["application/json"]) == {
        "shape": [2, 3],
        "dtypes": ["float64", "object", "datetime64[ns]"],
        "truncated": False,
        "columns": ["n", "s", "t"],
        "index": [0, 1],
        "data": [[1.0, "a", "2020-01-01T00:00:00.000"], [None, "ü", None]],
    }


@pytest.mark.parametrize("labels", ["[150.5, 20.0]", "[20.0, float('nan')]", "[7, 3]", "['b', 'a']"])
def test_columns_of_any_label(scientist: Interpreter, labels: str) -> None:
    result = scientist.run(f"import pandas as pd\npd.DataFrame([[1, 'x']], columns={labels})")
    assert (result.data is not None, result.err) == (True, b"")
    assert json.loads((result.data or {})["application/json"])["dtypes"] == ["int64", "object"]


def test_a_large_dataframe(scientist: Interpreter) -> None:
    code = "import numpy as np, pandas as pd\npd.DataFrame(np.zeros((10**6, 120)))"
    result = scientist.run(code)
    assert result.data is not None and sum(map(len, result.data.values())) < 200_000
    table = json.loads(result.data["application/json"])
    assert (table["shape"], len(table["data"]), len(table["data"][0])) == ([10**6, 120], 100, 100)
    assert table["truncated"] is True


def test_a_table_of_large_things(scientist: Interpreter) -> None:
    result = scientist.run(
        "import numpy as np, pandas as pd\n"
        "large = ['x' * 10**6, np.zeros(1500), list(range(10**5)), {'k': 'x' * 10**5}, b'x' * 10**5]\n"
        "frame = pd.DataFrame({i: [thing] * 50 for i, thing in enumerate(large)}).assign(small=[['a', 1, None]] * 50)\n"
        "frame['category'] = pd.Series(large[:1] * 50, dtype='category')\nframe",
    )
    assert (result.returncode, result.err) == (0, b"") and result.data is not None
    assert sum(map(len, result.data.values())) < 400_000
    table = json.loads(result.data["application/json"])
    text, array, numbers, mapped, data, small, category = table["data"][49]
    assert text == category == f"{'x' * 1000}... (999000 characters more)"
    assert array.startswith("[0. 0. 0. ") and numbers.startswith("[0, 1, 2, ") and mapped.startswith("{'k': 'xxx")
    assert len(data) < 1100 and small == ["a", 1, None]
    assert table["dtypes"] == ["object"] * 6 + ["category"]


@pytest.mark.parametrize(
    "frame",
    [
        "pd.DataFrame()",
        "pd.DataFrame([[1, 2]], columns=['a', 'a'])",
        "pd.DataFrame({'c': [1j, object()]})",
        "pd.DataFrame([[1]], index=pd.MultiIndex.from_tuples([(1, 'x')]))",
        "pd.DataFrame([[1]], columns=pd.MultiIndex.from_tuples([(1, 'x')]))",
        "pd.DataFrame({'s': pd.Series(['a'], dtype='category'), 'i': pd.interval_range(0, 1)})",
        "pd.Series([1, 2], name='n')",
        "pd.Series({'a': [1, {2: 3}]})",
        "pd.DataFrame({'d': [float('inf'), float('nan')]})",
        "pd.DataFrame([[None, {1, 2}, pd.NaT, 1]], columns=['a', 'a', 'b', 'b'], dtype=object)",
        "pd.DataFrame({'s': pd.array(['a', None], dtype='string'), 'p': pd.period_range('2020', periods=2)})",
    ],
)
def test_odd_tables(scientist: Interpreter, frame: str) -> None:
    result = scientist.run(f"import pandas as pd\n{frame}")
    assert (result.returncode, result.err) == (0, b"")
    assert result.data is not None and "shape" in json.loads(result.data["application/json"])


def test_arrays_are_summarised(scientist: Interpreter) -> None:
    result = scientist.run("import numpy as np\nnp.zeros((10**4, 10**3))")
    assert result.text is not None and len(result.text) < 1000 and "..." in result.text


def test_pictures_by_their_own_repr(scientist: Interpreter) -> None:
    result = scientist.run("from PIL import Image\npicture = Image.new('RGB', (30, 20))\npicture")
    assert result.data is not None and size_of(result.data["image/png"]) == (30, 20)
    for mode in ("RGB", "CMYK", "1"):
        (data,) = shown(scientist.run(f"picture.convert('{mode}').show()"))
        assert size_of(data["image/png"]) == (30, 20)


def test_ipython(scientist: Interpreter) -> None:
    """Its classes, and its display(), which is ours."""
    result = scientist.run(
        "from IPython.display import HTML, JSON, Image, Latex, Markdown, SVG, clear_output, display as show\n"
        "from IPython.display import update_display\n"
        "show(HTML('<i>'), Markdown('#'), Latex('$x$'), JSON({'a': 1}), SVG('<svg></svg>'))\n"
        "show(Image(data=b'\\x89PNG\\r\\n'), display_id='i')\nupdate_display(HTML('<u>'), display_id='i')\n"
        "clear_output(wait=True)\nshow({'text/plain': 'raw'}, raw=True)",
        timeout=60,
    )
    data = shown(result)
    assert [set(bundle) - {"text/plain"} for bundle in data] == [
        {"text/html"},
        {"text/markdown"},
        {"text/latex"},
        {"application/json"},
        {"image/svg+xml"},
        {"image/png"},
        {"text/html"},
        set(),
    ]
    assert [d.get("update", False) for d in result.displays] == [False] * 6 + [True, False]
    assert result.displays[-1]["clear"] is True


def test_progress_bars_are_no_obstacle_to_checkpoints(python: Interpreter) -> None:
    result = python.run("from tqdm import tqdm\nfor i in tqdm(range(3), mininterval=0): pass")
    assert b"\r" in result.err and b"100%" in result.err and result.unfaithful is None


# ---- figures ----

PLT = "import matplotlib.pyplot as plt\n"


def test_a_figure_left_open_is_shown_and_gone(scientist: Interpreter) -> None:
    result = scientist.run(PLT + "plt.plot([1, 2, 3])\n0")
    (data,) = shown(result)
    assert data["text/plain"] == "<Figure size 640x480 with 1 Axes>"
    width, height = size_of(data["image/png"])
    assert 400 < width <= 660 and 300 < height <= 500
    result = scientist.run("plt.get_fignums()")
    assert (result.text, result.displays) == ("[]", [])


def test_show_shows_at_once_and_begins_anew(scientist: Interpreter) -> None:
    result = scientist.run(PLT + "plt.plot([1])\nplt.show()\nprint(plt.get_fignums())\nplt.figure()\nplt.show()")
    assert [d["text/plain"] for d in shown(result)] == [
        "<Figure size 640x480 with 1 Axes>",
        "<Figure size 640x480 with 0 Axes>",
    ]
    assert result.out == b"[]\n"


def test_a_figure_is_shown_once(scientist: Interpreter) -> None:
    result = scientist.run(PLT + "figure, axes = plt.subplots()\nfigure")
    assert shown(result) == [] and result.data is not None and "image/png" in result.data
    assert len(shown(scientist.run("figure, axes = plt.subplots()\ndisplay(figure)"))) == 1
    again = "figure, axes = plt.subplots()\ndisplay(figure)\naxes.plot([1])"
    assert len(shown(scientist.run(again))) == 2
    assert len(shown(scientist.run("a, b = plt.figure(), plt.figure()\na.show()"))) == 2


def test_a_figure_of_nobodys_is_not_kept(scientist: Interpreter) -> None:
    code = "import gc, weakref\nfrom matplotlib.figure import Figure\nf = Figure(); w = weakref.ref(f); display(f); del f"
    assert len(scientist.run(code).displays) == 1
    assert scientist.run("_ = gc.collect(); w() is None").text == "True"


def test_figures_are_shown_after_an_error(scientist: Interpreter) -> None:
    result = scientist.run(PLT + "plt.plot([1])\n1/0")
    assert result.cause == "error" and "image/png" in result.displays[0]["data"]


def test_figures_of_an_interrupted_cell_are_thrown_away(scientist: Interpreter) -> None:
    scientist.start(PLT + "plt.plot([1])\nprint('go', flush=True)\nwhile True: pass")
    while scientist.taken[scientist.out] != b"go\n":
        scientist.drain()
    scientist.interrupt()
    assert scientist.finish().displays == []
    assert scientist.run("plt.get_fignums()").text == "[]"


def test_svg(scientist: Interpreter) -> None:
    (data,) = shown(scientist.run(PLT + "plt.plot([1])", figure="svg"))
    assert set(data) == {"text/plain", "image/svg+xml"} and "<svg" in data["image/svg+xml"]
    (data,) = shown(scientist.run("plt.plot([1])"))
    assert "image/png" in data


def test_savefig_is_matplotlibs(scientist: Interpreter) -> None:
    result = scientist.run(PLT + "plt.figure(figsize=(2, 1), dpi=50)\nplt.savefig('f.png')\nplt.close()")
    assert shown(result) == []
    assert [(a["path"], a["type"], a["change"]) for a in result.artifacts] == [(b"f.png", "image/png", "created")]
    assert size_of(Path(scientist.warden.workspace, "f.png").read_bytes()) == (100, 50)


def test_other_backends_still_are(scientist: Interpreter) -> None:
    code = "import matplotlib\nmatplotlib.use('svg')\nimport matplotlib.pyplot as plt\nplt.plot([1])"
    (data,) = shown(scientist.run(code))
    assert "image/png" in data
    code = "matplotlib.use('Agg')\nplt.switch_backend('agg')\nplt.plot([1])"
    (data,) = shown(scientist.run(code))
    assert "image/png" in data
    assert scientist.run("plt.get_fignums()").text == "[]"


def test_a_figure_that_cannot_be_drawn(scientist: Interpreter) -> None:
    result = scientist.run(PLT + "plt.plot([1])\nplt.title('$\\\\nonsense$')\nplt.figure()\n0")
    assert (result.returncode, result.text) == (0, "0")
    assert result.err.startswith(b"figure: ValueError") and len(result.displays) == 1
    assert scientist.run("plt.get_fignums()").text == "[]"


def test_programs_of_a_cell_know_nothing_of_our_backend(scientist: Interpreter) -> None:
    result = scientist.run(
        "import subprocess, sys\n"
        "code = 'import matplotlib.pyplot as p; p.plot([1]); p.savefig(\"c.png\"); print(p.get_backend())'\n"
        "print(subprocess.run([sys.executable, '-c', code], capture_output=True, text=True))",
        timeout=60,
    )
    assert b"stdout='agg\\n'" in result.out.lower(), result.out


def test_a_session_without_the_libraries_preloaded(python: Interpreter) -> None:
    result = python.run(PLT + "plt.plot([1])", timeout=60)
    assert "image/png" in shown(result)[0]


def test_whatever_a_cell_breaks(scientist: Interpreter) -> None:
    scientist.run(
        "import sys, json, io, base64, builtins\n"
        "sys.meta_path.clear(); json.dumps = io.BytesIO = base64.b64decode = None\n"
        "del builtins.display, sys.modules['json'], sys.modules['base64']"
    )
    result = scientist.run(RICH + "Rich()")
    assert (result.text, result.data, result.err) == ("plain", BUNDLE, b"")

"""What cells show, at the command line: text, pictures as files, JSON, and a sign of life on a terminal."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from daemon import Daemon
from terminal import Terminal

SETTINGS = {"profile default": {"preload": "matplotlib.pyplot"}}

FIGURE = "import matplotlib.pyplot as plt; plt.plot([1]); "


def test_displays_are_text_in_their_place(daemon: Daemon) -> None:
    result = daemon.lair("exec", "print('a')\ndisplay('b', {'c': 1})\nprint('d')\n'e'")
    assert (result.stdout, result.stderr) == ("a\n'b'\n{'c': 1}\nd\n'e'\n", "")
    result = daemon.lair("exec", FIGURE + "plt.show(); print('after')")
    assert (result.stdout, result.stderr) == ("<Figure size 640x480 with 1 Axes>\nafter\n", "")


def test_figures_are_saved(daemon: Daemon, tmp_path: Path) -> None:
    directory = tmp_path / "figures"
    code = FIGURE + "plt.show(); plt.figure(); plt.show(); fig = plt.figure(); fig"
    for first in (1, 4):
        result = daemon.lair("exec", "--figures", str(directory), code)
        assert result.stderr == "".join(f"lair: {directory}/figure-{n}.png\n" for n in range(first, first + 3))
    assert len(list(directory.iterdir())) == 6
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in directory.iterdir())
    result = daemon.lair("exec", "--svg", "-i", str(directory), FIGURE)
    assert "<svg" in (directory / "figure-1.svg").read_text() and result.returncode == 0


def test_charts_are_saved_as_pages(daemon: Daemon, tmp_path: Path) -> None:
    """Those that a browser draws, and no tables."""
    chart, table = "<div>ü</div><script>draw()</script>", "<table></table>"
    code = f"for html in {chart!r}, {table!r}:\n    display({{'text/plain': 'x', 'text/html': html}}, raw=True)"
    result = daemon.lair("exec", "--figures", str(tmp_path), code)
    assert (result.stdout, result.stderr) == ("x\nx\n", f"lair: {tmp_path}/figure-1.html\n")
    assert (tmp_path / "figure-1.html").read_text() == f'<!DOCTYPE html><meta charset="utf-8">\n{chart}'


def test_figures_that_cannot_be_saved(daemon: Daemon, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    result = daemon.lair("exec", "--figures", str(tmp_path / "file"), FIGURE + "plt.show()\n5")
    assert result.returncode == 0 and result.stdout.endswith("5\n")
    assert "could not be saved: Not a directory" in result.stderr


def test_json(daemon: Daemon) -> None:
    code = (
        "display({'text/plain': 'p', 'application/json': '[1, 0.1, 0.30000000000000004]', 'image/png': b'\\x89PNG', 'a/b+json': '{',"
        " 'a/b.json': {'c': 3}}, raw=True, metadata={'m': 1}, display_id='d')\n"
        "open('f.csv', 'w').close()\nclass R:\n    def _repr_html_(self): return '<b>'\n"
        "    def __repr__(self): return 'r'\nR()"
    )
    document = daemon.lair_json("exec", code)
    assert (document["text"], document["data"]) == ("r", {"text/html": "<b>"})
    (display,) = document["displays"]
    assert display["data"] == {
        "text/plain": "p",
        "application/json": [1, 0.1, 0.1 + 0.2],
        "image/png": base64.b64encode(b"\x89PNG").decode(),
        "a/b+json": "{",
        "a/b.json": {"c": 3},
    }
    assert (display["metadata"], display["display_id"], display["update"]) == ({"m": 1}, "d", False)
    assert document["artifacts"] == [{"path": "f.csv", "size": 0, "type": "text/csv", "change": "created"}]
    assert (document["displays_dropped"], document["artifacts_more"]) == (0, False)


def test_json_of_an_error(daemon: Daemon) -> None:
    error = daemon.lair_json("exec", "--values", "def f(n):\n    return n + totl\ntotal = 1\nf(2)")["error"]
    assert error["suggestion"] == "total" and error["line"] is None
    assert error["frames"][1] == {
        "cell": 1,
        "file": None,
        "line": 2,
        "column": 15,
        "function": "f",
        "source": "return n + totl",
        "values": {"n": "2"},
    }
    error = daemon.lair_json("exec", "x = = 1")["error"]
    assert (error["line"], error["offset"], error["context"]) == (1, 5, "x = = 1")


def test_json_stream(daemon: Daemon) -> None:
    code = "import time\nprint(1)\ndisplay(2)\nclear_output(wait=True)\ndisplay(3)\ntime.sleep(1.2)"
    lines = [json.loads(line) for line in daemon.lair("exec", "--json", "--stream", code).stdout.splitlines()]
    assert [line.get("event", "result") for line in lines] == ["stdout", "display", "display", "alive", "result"]
    assert [(line["data"]["text/plain"], line["clear"]) for line in lines[1:3]] == [("2", False), ("3", True)]
    assert round(lines[3]["elapsed"]) == 1 and lines[-1]["displays"] == []


def test_environment_and_directory(daemon: Daemon) -> None:
    daemon.lair("exec", "-s", "env", "import os; os.mkdir('sub')")
    code = "os.environ['A'], os.environ['B'], os.path.basename(os.getcwd())"
    result = daemon.lair("exec", "-s", "env", "-e", "A=1=1", "--env", "B=", "-C", "sub", code)
    assert result.stdout == "('1=1', '', 'sub')\n"
    assert daemon.lair("exec", "-s", "env", "'A' in os.environ").stdout == "False\n"
    for wrong in (["-e", "A"], ["-e", "=x"], ["-e", "A=1"] * 65):
        assert daemon.lair("exec", *wrong, "1").returncode == 2
    assert "directory" in daemon.lair("exec", "-C", "/etc", "1").stderr
    daemon.lair("close", "env")


# ---- on a terminal ----


@pytest.fixture
def at_prompt(terminal: Callable[..., Terminal]) -> Terminal:
    it = terminal("repl")
    it.prompt()
    return it


def test_a_sign_of_life(terminal: Callable[..., Terminal]) -> None:
    it = terminal("exec", "import time; time.sleep(2.4); print('done')")
    it.expect("\r\x1b[K[1s, ")
    it.expect("\r\x1b[K[2s, ")
    assert it.expect("done").endswith("]\r\x1b[K")
    assert it.wait() == 0


def test_none_over_a_line_that_is_not_finished(terminal: Callable[..., Terminal]) -> None:
    it = terminal("exec", "import time; print('half', end='', flush=True); time.sleep(1.5); print('whole')")
    assert it.wait() == 0
    assert it.seen == "halfwhole\r\n"


def test_progress_bars(terminal: Callable[..., Terminal]) -> None:
    """Carriage returns come as they are written, and when."""
    code = "import sys, time\nfor i in range(5):\n    sys.stderr.write(f'\\r{i * 25}%|{\"#\" * i}')\n    time.sleep(0.2)"
    it = terminal("exec", code)
    started = time.monotonic()
    it.expect("\r0%|")
    it.expect("\r25%|#")
    assert time.monotonic() - started < 1
    it.expect("\r100%|####")
    assert it.wait() == 0


def test_files_and_figures_at_the_prompt(at_prompt: Terminal) -> None:
    at_prompt.type("open('t.csv', 'w').write('x')\n")
    at_prompt.expect("created t.csv, 1 B")
    at_prompt.prompt()
    at_prompt.type(FIGURE.rstrip("; ") + "\n")
    at_prompt.expect("<Figure size 640x480 with 1 Axes>")


def test_getpass_is_not_echoed(at_prompt: Terminal) -> None:
    at_prompt.type("import getpass; print(getpass.getpass('word: ')[::-1])\n")
    at_prompt.expect("\nword: ")
    at_prompt.type("secret\n")
    assert "secret" not in at_prompt.expect("terces")


def test_input(at_prompt: Terminal) -> None:
    at_prompt.type("name = input('who? ')\n")
    at_prompt.expect("\nwho? ")  # not the echo of it
    at_prompt.type("Ada\n")
    at_prompt.prompt()
    at_prompt.type("'dear ' + name\n")
    at_prompt.expect("'dear Ada'")


def test_pdb(at_prompt: Terminal) -> None:
    at_prompt.type("def f(n):\n    half = n / 2\n    breakpoint()\n    return half\n\n")
    at_prompt.prompt()
    at_prompt.type("f(10)\n")
    for command, answer in (("w", "f(10)"), ("p half", "5.0"), ("half = 7", "half = 7"), ("n", "f()->7")):
        at_prompt.expect("(Pdb) ")
        at_prompt.type(command + "\n")
        at_prompt.expect(answer)
    at_prompt.expect("(Pdb) ")
    at_prompt.type("c\n")
    at_prompt.expect("7")
    at_prompt.prompt()


def test_pdb_after_an_error(at_prompt: Terminal) -> None:
    at_prompt.type("g = lambda n: 1 / n\n")
    at_prompt.prompt()
    at_prompt.type("g(0)\n")
    at_prompt.expect("ZeroDivisionError")
    at_prompt.prompt()
    at_prompt.type("import pdb; pdb.run('g(4)')\n")
    at_prompt.expect("(Pdb) ")
    at_prompt.type("q\n")
    at_prompt.prompt()

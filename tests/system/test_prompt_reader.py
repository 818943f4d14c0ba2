"""The reader of lair repl: where cells end, the history, what a person does at it, and what happens without
prompt_toolkit."""

from __future__ import annotations

import importlib.util
import os
import re
import signal
import sys
import termios
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from daemon import ROOT, TROUBLE, Daemon
from terminal import Terminal

SETTINGS = {"profile default": {"checkpoint": "cell", "preload": "", "spares": "0"}}


def load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("prompt", ROOT / "client/cli/prompt.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["prompt"] = module
    spec.loader.exec_module(module)
    return module


prompt = load()

COMPLETE = [
    "x = 1\n", "x = 1", "\n", "", "print('a:')\n", "# for x in y:\n", "x = (1 +\n 2)\n", "x = [\n\n1]\n",
    "'unterminated\n", 's = """a\nb"""\n', "s = '''it's\n\n'''\n", "s = 'a\\\nb'\n", "x = 1 + \\\n2\n",
    "if x:\n\tprint(1)\n\n", "if x:\n\tprint(1)\n   \n", "for i in x: print(i)\n", "def f():\n    return '''\n\n'''\n\n",
    "@d\ndef f():\n  pass\n\n", "d = {'a': 1}\n", "x[1:]\n", "f(lambda:\n0)\n", ")\n", "s = r'\\'\n'", "s = '\\''\n",
    '""""""\n', "!echo (\n", "%timeit f(\n", "x.y??\n", "?x\n",
]  # fmt: skip
UNFINISHED = [
    "x = (1 +\n", "x = [\n\n", "x = {'a': (\n", 's = """a\n', 's = """a\n\n', "s = '''it's\n", 's = """a\\"""\n',
    "x = 1 + \\\n", "x = 1 + \\", "if x:\n", "if x:", "if x: # why\n", "if x:\n\tprint(1)\n",
    "if x:\n\tprint(1)\nelse:\n", "def f(\n\na):\n", "def f(a: int) -> str:\n", "@d\n", "@d(\n1)\n",
    "@d\ndef f():\n  pass\n", "class A:\n  # empty\n", "if x:\n  s = '''\n\n", "%%bash\n", "%%bash\necho 'it\n",
]  # fmt: skip
# Written elsewhere, so no empty line has to say that it is all.
WHOLE = {
    "if x:\n\tprint(1)\n": True,
    "class A:\n\tx = 1\n\n\ty = 2\n": True,
    "@d\ndef f(): pass # why\n": True,
    "x = 1\nif x:\n": False,
    "%%bash\n": False,
    "%%bash\necho 'it\n": True,
    "if x:\n\n\tif y: # why\n# so\n": False,
    "if x:\n\tprint(\n": False,
    "x = 1\n@d\n": False,
}
INDENTS = {
    "": 0, "x = 1\n": 0, "if x:\n": 4, "if x: # why\n": 4, "if x: y\n": 0, "@d\n": 0, "@d\ndef f():\n": 4,
    "if x:\n    y\n": 4, "if x:\n    if y:\n": 8, "if x:\n    if y:\n        return\n": 4,
    "if x:\n    if y:\n        return (1, 2)\n": 4, "if x:\n    returned = 1\n": 4, "if x:\n  pass\n": 0, "x = {\n": 4,
    "x = f(\n    1,\n": 4, "x = f(\n    break\n": 4, "s = '''a:\n": 0, "if x:\n    y\n\n": 4,
}  # fmt: skip


def test_where_a_cell_ends() -> None:
    assert [it for it in COMPLETE if not prompt.is_complete(it, False)] == []
    assert [it for it in UNFINISHED if prompt.is_complete(it, False)] == []
    assert {it: prompt.is_complete(it, True) for it in WHOLE} == WHOLE
    assert {it: prompt.indent_after(it) for it in INDENTS} == INDENTS


def test_no_text_takes_long() -> None:
    started = time.monotonic()
    for text in ("(" * 200_000, "'" * 200_001, '"""' + "\\" * 200_000, "a" * 500_000 + "?" * 3, "x\n" * 100_000):
        prompt.is_complete(text, False)
        prompt.indent_after(text)
    assert time.monotonic() - started < 10


def test_the_history_of_before_is_taken_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    place = tmp_path / "lair/history"
    place.parent.mkdir()
    place.write_text("_HiStOrY_V2_\nx\\040=\\0401\nif\\040x:\\012\\040\\040\\040\\040'gr\\303\\274\\303\\237'\n")
    assert prompt.history_path() == str(place)
    assert [line for line in place.read_text().split("\n") if line[:1] == "+"] == [
        "+x = 1", "+if x:", "+    'grüß'"
    ]  # fmt: skip
    place.write_text("".join(f"\n# {n}\n+{'x' * 1000}\n" for n in range(2000)))
    prompt.history_path()
    kept = place.read_text()
    assert kept.startswith("\n# ") and kept.endswith("\n+" + "x" * 1000 + "\n") and len(kept) < 1_100_000


def test_the_history_is_the_user_s_alone(terminal: Callable[..., Terminal], daemon: Daemon) -> None:
    it = terminal("repl", "-s", "private")
    it.say("1 + 1", "\n2\r\n")
    it.prompt()
    it.type("exit\r")
    assert it.wait() == 0
    place = daemon.directory / "state/lair/history"
    assert place.stat().st_mode & 0o777 == 0o600 and place.parent.stat().st_mode & 0o777 == 0o700


def test_exit_leaves(terminal: Callable[..., Terminal], daemon: Daemon) -> None:
    for word in ("exit", "quit", "exit()", "\x04"):
        it = terminal("repl", "-s", "left")
        it.prompt()
        it.type(word if word == "\x04" else word + "\r")
        it.expect('Session "left" keeps running')
        assert it.wait() == 0
    daemon.lair("close", "left")


def test_search_in_the_history(terminal: Callable[..., Terminal]) -> None:
    it = terminal("repl", "-s", "search")
    it.say("wanted = 6 * 7", "")
    it.say("'other'", "\n'other'")
    it.prompt()
    it.type("\x12want")
    it.expect("wanted = 6 * 7")
    it.type("\r")
    time.sleep(0.3)
    it.type("\x05; wanted\r")
    it.expect("\n42\r\n")


def test_suggestions_are_from_the_history(terminal: Callable[..., Terminal]) -> None:
    it = terminal("repl", "-s", "suggest", colour=True)
    it.say("remembered = 'a' * 3; remembered", "aaa")
    it.prompt()
    it.type("remem")
    it.expect("bered")
    it.type("\x1b[C\r")  # taken
    it.expect("aaa")


def test_colours_while_one_types(terminal: Callable[..., Terminal]) -> None:
    pytest.importorskip("pygments")
    it = terminal("repl", "-s", "typed", colour=True)
    it.prompt()
    it.type("for")
    it.expect("for")
    assert re.search(r"\x1b\[[0-9;]+mfor\x1b", it.raw)


def test_magics_are_completed(terminal: Callable[..., Terminal]) -> None:
    it = terminal("repl", "-s", "magics")
    it.prompt()
    it.type("%und")
    it.expect("%und")
    time.sleep(0.3)
    it.type("\t")
    it.expect("o")
    it.type("\r")
    it.expect("\nlair: ")


def test_blocks_are_edited(terminal: Callable[..., Terminal]) -> None:
    """Up goes into the block, and Enter in it makes a line."""
    it = terminal("repl", "-s", "edited")
    it.prompt()
    it.type("for i in range(2):\r")
    it.prompt("... ")
    it.type("pass\r")
    it.prompt("... ")
    time.sleep(0.3)
    it.type("\x1b[A\x1b[A\x05\x7f\x7f\x7f3):")  # range(3)
    it.type("\x1b[B\x05\x7f\x7f\x7f\x7fprint('n', i)")
    it.type("\x1b[B\r")
    assert "n 2" in it.expect("\nn 2") + "n 2"


def test_a_cell_that_comes_while_lair_writes(terminal: Callable[..., Terminal]) -> None:
    """Above the prompt lair writes what threads print. The reader may have said before that a cell is there."""
    it = terminal("repl", "-s", "amid")
    it.say("import threading, time; go = threading.Event()")
    it.say("ticks = lambda: [go.wait(0.02) or print('tick') for _ in range(10**6)]")
    it.say("threading.Thread(target=ticks, daemon=True).start()")
    it.expect("tick")
    reader = reader_of(it)
    for n in range(5):
        os.kill(reader, signal.SIGSTOP)
        it.type(f"{n} + 1000\r")
        time.sleep(0.5)  # by now it has been asked for silence, and has a whole cell to read
        os.kill(reader, signal.SIGCONT)
        it.expect(f"\n{n + 1000}\r\n")


def test_help_is_shown_whole_where_there_is_room(terminal: Callable[..., Terminal]) -> None:
    it = terminal("repl", "-s", "help", env={"PAGER": "sed s/^/PAGED:/"})
    it.prompt()
    it.type("%help\r")
    it.expect("PAGED:%vars")
    it.prompt()
    it.type("?len\r")
    it.expect("PAGED:len(obj")


def test_the_reader_may_die(terminal: Callable[..., Terminal]) -> None:
    it = terminal("repl", "-s", "dies")
    it.prompt()
    reader = reader_of(it)
    modes = termios.tcgetattr(it.fd)
    assert not modes[3] & termios.ICANON
    os.kill(reader, signal.SIGKILL)
    it.expect("lair: cannot read")
    assert it.wait() == TROUBLE
    assert termios.tcgetattr(it.fd)[3] & termios.ICANON


def parent_of(path: Path) -> int:
    try:
        return int((path / "stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def reader_of(it: Terminal) -> int:
    (found,) = (
        int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit() and it.pid == parent_of(path)
    )
    return found


@pytest.fixture
def plain(tmp_path: Path, terminal: Callable[..., Terminal]) -> Terminal:
    (tmp_path / "prompt_toolkit.py").write_text("raise ImportError")
    return terminal("repl", "-s", "plain", env={"PYTHONPATH": str(tmp_path), "LAIR_PROMPT": "1"})


def test_without_prompt_toolkit(plain: Terminal) -> None:
    plain.expect("lair: a plain prompt: with python3-prompt-toolkit (apt install python3-prompt-toolkit)")
    plain.say("for i in range(2):")
    plain.expect("... ")
    plain.type("    print('n', i)\n")
    plain.expect("... ")
    plain.type("\n")
    plain.expect("\nn 1")
    plain.say("valuable = 5")
    plain.prompt()
    plain.type("valua\t + 1\n")
    plain.expect("\n6\r\n")
    plain.prompt()
    plain.type("give up\x03")
    plain.prompt()
    plain.type("input('how? ')\n")
    plain.expect("\nhow? ")
    plain.type("so\n")
    plain.expect("'so'\r\n")
    plain.prompt()
    plain.type("exit\n")
    plain.expect('Session "plain" keeps running')
    assert plain.wait() == 0


def test_modules_beside_the_user_are_not_run(tmp_path: Path, daemon: Daemon) -> None:
    """Where the prompt is started, there may be anybody's files."""
    for name in ("json", "asyncio", "prompt_toolkit", "re", "types"):
        (tmp_path / f"{name}.py").write_text("open('ran', 'w')")
    said = daemon.lair("repl", "-s", "beside", cwd=tmp_path, input="6 * 7\n")
    assert said.stdout == "42\n" and not (tmp_path / "ran").exists()


def test_no_colour_where_none_is_wanted(terminal: Callable[..., Terminal]) -> None:
    it = terminal("repl", "-s", "grey")
    it.prompt()
    it.type("def")
    it.expect("def")
    assert not re.search(r"\x1b\[[0-9;]*3[0-9]m", it.raw)

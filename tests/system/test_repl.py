"""lair repl: Tab, questions and shorthands at a prompt."""

from __future__ import annotations

import json
import time
from collections.abc import Callable

import pytest

from daemon import Daemon
from terminal import Terminal

SETTINGS = {
    "profile default": {"checkpoint": "cell"},
    "profile shell": {"subprocess": "on"},
    "profile ipython": {"preload": "IPython"},
    "profile brief": {"cell_timeout": "300ms"},
}


def repl(daemon: Daemon, text: str, *arguments: str) -> str:
    done = daemon.lair("repl", "-s", "piped", *arguments, input=text)
    daemon.lair("close", "piped")
    return done.stdout + done.stderr


def test_tab(terminal: Callable[..., Terminal]) -> None:
    it = terminal("repl", "-s", "tab")
    it.prompt()
    it.type("valuable = valid = 5; größe = 7\n")
    it.prompt()
    it.type("valua\t")
    it.expect("ble")
    it.type(" + 1\n")
    it.expect("6")
    it.prompt()
    it.type("val\t")
    it.expect("valid")  # a menu
    it.expect("valuable")
    it.type("\t\r")
    it.type(" * 2\r")
    it.expect("\n10\r\n")
    it.prompt()
    it.type("grö\t")
    it.expect("ße")
    it.type("\n")
    it.expect("7")
    it.prompt()
    it.type("nothinglikeit\t")
    it.type("\x15")  # the whole line away
    it.type("import os\n")
    it.prompt()
    it.type("os.getpi\t")
    it.expect("d")
    it.type("() > 0\n")
    it.expect("True")


def test_tab_indents(terminal: Callable[..., Terminal]) -> None:
    it = terminal("repl", "-s", "indents")
    it.prompt()
    it.type("for i in range(2):\n")
    it.prompt("...     ")  # it is indented by itself
    it.type("\x7f")  # all of that
    time.sleep(0.2)
    it.type("\t")
    time.sleep(0.2)
    it.type("print('n', i)\n")
    it.prompt("... ")
    it.type("\n")
    it.expect("\nn 1")
    it.prompt()
    it.type("for i in range(2):\n\tprint('p', i)\n\n")  # as when it is pasted
    it.expect("p 1")


def test_tab_inside_a_line(terminal: Callable[..., Terminal]) -> None:
    it = terminal("repl", "-s", "inside")
    it.prompt()
    it.type("valuable = 5\r")
    it.prompt()
    it.type("(valua) + 1\x01" + 6 * "\x1b[C")  # to the beginning, and six to the right
    it.expect("(valua) + 1")
    time.sleep(0.2)  # a Tab that comes with other keys is one of a paste
    it.type("\t")
    it.expect("ble")
    it.type("\r")
    it.expect("\n6\r\n")
    it.prompt()
    it.type("(valuable, 2)\x01" + 4 * "\x1b[C")
    it.expect("(valuable, 2)")
    time.sleep(0.2)
    it.type("\t")
    time.sleep(0.2)
    it.type(" or 0\r")  # what is there already is not put in twice
    it.expect("\n(5, 2)\r\n")
    it.prompt()
    it.type("(1, ")
    it.expect("(1, ")
    it.type("\t")  # no indentation between words
    it.expect("\x07")
    it.type("7)\r")
    it.expect("\n(1, 7)\r\n")


def test_questions(daemon: Daemon) -> None:
    said = repl(daemon, 'def f(a):\n    "Fine."\n    return a\n\n?f\nf?\nf??\n%inspect f\n')
    assert said.count("f(a)\ntype: function") == 4
    assert said.count("\nFine.\n") == 4
    assert said.count("    return a\n") == 1


def test_variables(daemon: Daemon) -> None:
    said = repl(daemon, "x = 1; y = [2]\n%who\n%vars\n%vars --forget x\n%who\n%history\n%reset --keep y\n%who\ny\n")
    assert "x  y  \n" in said
    assert "y     list  1" in said
    assert said.count("\ny  \n") == 2
    assert "# 1\nx = 1; y = [2]\n" in said
    assert said.endswith("[2]\n")


def test_shorthands(daemon: Daemon) -> None:
    said = repl(
        daemon,
        "import os\nos.mkdir('d')\n%cd d\nos.path.basename(os.getcwd())\n%cd\n%cd nowhere\n"
        "%env GREETING=gr\u00fc\u00df \U0001f40d\n%env GREETING\n%env\n%time n = sum(range(10))\nn\n%timeit n + 1\n%who\n",
    )
    assert "'d'\n" in said
    assert "FileNotFoundError" in said
    assert "\ngr\u00fc\u00df \U0001f40d\n" in said
    assert "\nUSER=session\n" in said
    assert "\n45\n" in said
    assert " ms\n" in said
    assert "the best of 5 times" in said
    assert "\nn  os  \n" in said


def test_reload(daemon: Daemon) -> None:
    """A module that was edited is the new one for the next cell, if that was asked for."""
    typed = "".join(
        f"open('edited.py', 'w').write('{code}')\nimport edited; edited.n\n" for code in ("n=1", "n = 22")
    )
    assert [line for line in repl(daemon, typed).splitlines() if line.isdigit()] == ["3", "1", "6", "1"]
    assert [line for line in repl(daemon, typed, "--reload").splitlines() if line.isdigit()] == [
        "3",
        "1",
        "6",
        "22",
    ]


def test_shorthands_in_the_history(daemon: Daemon) -> None:
    assert "# 1\n# %timeit 1 + 1\nexec(" in repl(daemon, "%timeit 1 + 1\n%history\n")


def test_programs(daemon: Daemon) -> None:
    said = repl(daemon, "!echo \"it's\" 'quoted' | tr a-z A-Z; exit 3\n", "-p", "shell")
    assert said == "IT'S QUOTED\nexit status 3\n"
    refused = repl(daemon, "!echo hello\n").splitlines()
    assert refused == [
        "PermissionError: echo hello: no programs here: do it in Python (subprocess-not-granted)",
        f"lair: subprocess in [profile default] of {daemon.config} decides this",
    ]


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("%cd nowhere", "FileNotFoundError: [Errno 2] No such file or directory: 'nowhere'\n"),
        ("%timeit nothing", "NameError: name 'nothing' is not defined\n"),
        ("%timeit 1 +", '  File "<timeit-src>", line 2\n    1 +\n       ^\nSyntaxError: invalid syntax\n'),
    ],
)
def test_what_goes_wrong_is_told_in_short(daemon: Daemon, typed: str, said: str) -> None:
    assert repl(daemon, f"{typed}\n") == said


@pytest.mark.parametrize("code", ["    x = 5\n    print(x)\n", "  for i in [5]:\n    print(i)\n\n", "\tprint(5)\n"])
def test_indented_code_is_forgiven(daemon: Daemon, code: str) -> None:
    assert repl(daemon, code) == "5\n"
    assert daemon.lair("exec", code).stdout == "5\n"


def test_magics_are_the_session_s(daemon: Daemon) -> None:
    """What is no command of the prompt; of a whole cell they end with an empty line."""
    said = repl(daemon, '%nothing\n%%bash\necho "it\n(\n\n1 + 1\n%%timeit -n1 -r1\nx = 5\nx + 1\n\n%pwd\n')
    assert "`%nothing` not found" in said and "bash: no programs here" in said
    assert said.startswith("2\n") and "1 loop each" in said and "/work/" in said


def test_what_is_no_command(daemon: Daemon) -> None:
    assert repl(daemon, "x = 7 # really?\nx % 4\n'a?'\n") == "3\n'a?'\n"
    assert "expected a command" in repl(daemon, "%\n")
    helped = repl(daemon, "%help\n")
    for name in (
        "%vars",
        "%who",
        "%inspect",
        "%history",
        "%reset",
        "%cd",
        "%env",
        "%time ",
        "%timeit",
        "! COMMAND",
    ):
        assert name in helped


CLASS = """class A:
    def one(self):
        return 'grün'\t# a tab

    def two(self):
        return 2
"""


def test_a_paste_is_one_cell(daemon: Daemon, terminal: Callable[..., Terminal]) -> None:
    it = terminal("repl", "-s", "pasted")
    it.prompt()
    it.paste(CLASS + "\n")
    it.type("\r")
    it.prompt()
    it.type("A().one(), A().two()\r")
    it.expect("\n('grün', 2)")
    it.prompt()
    (first, _) = daemon.lair_json("history", "pasted")["cells"]
    assert first["code"] == CLASS


def test_a_paste_waits_for_enter(terminal: Callable[..., Terminal]) -> None:
    """What is pasted can be looked at, added to and given up before anything of it runs."""
    it = terminal("repl")
    it.prompt()
    it.paste("print('ne' + 'ver')\nprint('again')\n")
    it.type("\x03")
    assert "\nnever" not in it.prompt()
    it.type("print(")
    it.paste("'in '\n'line'")
    it.type(")\r")
    assert "\nnever" not in it.expect("\nin line")
    it.prompt()
    it.paste("for i in range(2):\n    for j in range(2):\n")
    it.type("\r")
    it.prompt("... ")
    it.type("        print('at', i, j)\r")
    it.type("\r")
    it.expect("\nat 1 1")
    it.prompt()
    it.paste("x = '\x01\x7f'\nlen(x)")
    it.type("\r")
    it.expect("\n2")


def test_a_large_paste(terminal: Callable[..., Terminal]) -> None:
    it = terminal("repl")
    it.prompt()
    it.paste("n = [\n" + "".join(f"    {i},\n\n" for i in range(2000)) + "]\nif n:\n\n    print('sum', sum(n))\n")
    it.type("\r")
    it.expect("\nsum 1999000")


def test_the_history_has_blocks(terminal: Callable[..., Terminal]) -> None:
    first = terminal("repl", "-s", "blocks")
    first.prompt()
    first.type("for i in range(2):\r")
    first.prompt("... ")
    first.type("    print('typed', i)\r")
    first.prompt("... ")
    first.type("\r")
    first.expect("\ntyped 1")
    first.prompt()
    first.paste(CLASS)
    first.type("\r")
    first.prompt()
    first.type("'last'\r")
    first.expect("\n'last'")
    first.prompt()
    first.type("\x1b[A" + 7 * "\x1b[A")  # to the last line of the class, through its lines, and over it
    first.type("\r")
    first.expect("\ntyped 1")
    first.prompt()
    first.type("\x04")
    first.wait()
    second = terminal("repl", "-s", "blocks")
    second.prompt()
    second.type("del A\r")
    second.prompt()
    second.type("\x1b[A" * 5 + "\r")
    second.prompt()
    second.type("A().two()\r")
    second.expect("\n2")


def test_the_rest_of_a_block_is_not_other_code(daemon: Daemon) -> None:
    """Where nothing marks a paste its empty lines end blocks, and what follows is none of its own."""
    said = daemon.lair(
        "repl", "-s", "piped", input=CLASS + "\n[n for n in dir(A) if n[0] != '_']\n'two' in globals()\n"
    )
    daemon.lair("close", "piped")
    assert said.stdout == "['one']\nFalse\n"
    assert said.stderr.count("lair: not run: it is indented") == 1 and "exec -f" in said.stderr
    it = daemon.lair("repl", "--json", "-s", "piped", input="if 1:\n    x = 1\n\n    x = 2\nx\n")
    daemon.lair("close", "piped")
    assert [
        "error" in json.loads(line) and "returncode" not in json.loads(line) for line in it.stdout.splitlines()
    ] == [
        False,
        True,
        False,
    ]
    assert json.loads(it.stdout.splitlines()[2])["text"] == "1"


def test_a_person_has_all_the_time(daemon: Daemon, terminal: Callable[..., Terminal]) -> None:
    """Who waits at a prompt sees that it runs, and can interrupt it; a program at a pipe has the limit of its profile."""
    slow = "import time; time.sleep(0.9); print('do' + 'ne')\n"
    it = terminal("repl", "-p", "brief", "-s", "slow")
    it.prompt()
    it.type(slow)
    it.expect("\ndone")
    it = terminal("repl", "-s", "slow", "-t", "200ms")
    it.prompt()
    it.type(slow)
    it.expect("the code was stopped after its 0.2 s; -t TIME sets another")
    assert "the code was stopped after its 0.3 s; -t TIME sets another" in repl(daemon, slow, "-p", "brief")


def test_ctrl_c_where_nothing_reacts(terminal: Callable[..., Terminal]) -> None:
    it = terminal("repl", "-s", "deaf")
    it.prompt()
    it.type("x = 5\r")
    it.prompt()
    it.type("x = 6; print('on'); sum(range(10**12))\r")
    it.expect("\non")
    time.sleep(1)  # on a busy machine Python may not be in C code yet
    it.type("\x03")
    it.expect("lair: interrupted; the cell has not reacted yet")
    it.type("\x03")
    it.expect("Ctrl-C once more kills it")
    it.type("\x03")
    it.expect("lair: the session was rolled back to the state after cell 1")
    it.prompt()
    it.type("x\r")
    it.expect("\n5")


# ---- with IPython loaded ----


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("6\n7\n_, __\n", "(7, 6)"),
        ("6\nIn[1], Out[1], _1, _i1\n", "('6', 6, 6, '6')"),
        ("%timeit -n1 -r1 1\n", "per loop (mean"),
        ("%time 6 * 7\n", "Wall time"),
        ("%time 6 * 7\n", "42"),
        ("%%capture out\nprint('caught')\n\nout.stdout\n", "'caught\\n'"),
        ("%env NAME=5\n%env NAME\n", "'5'"),
        ("x = 1\n%who\n", "x  \n"),
        ("x = 1\n%whos\n", "int"),
        ("import math\nmath.pi?\n", "float"),
        ("%who_ls\n", "[]"),
        ("!ls\n", "subprocess-not-granted"),
        ("%%bash\nls\n\n", "subprocess-not-granted"),
        ("1 / 0\n", "ZeroDivisionError: division by zero"),
        ("for i in range(1200): exec('')\n\nlen(Out) == 0\n", "True"),
    ],
)
def test_with_ipython(daemon: Daemon, typed: str, said: str) -> None:
    assert said in repl(daemon, typed, "--profile", "ipython")


def test_without_ipython_nothing_but_the_last_value_is_kept(daemon: Daemon) -> None:
    assert "NameError: name 'Out' is not defined" in repl(daemon, "6\nOut\n")
    assert "a loop, the best of" in repl(daemon, "%timeit 1\n")


def test_a_magic_brings_ipython(daemon: Daemon) -> None:
    assert "per loop (mean" in repl(daemon, "%whos\n%timeit -n1 -r1 1\n")

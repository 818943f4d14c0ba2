"""What is IPython's in a cell: where it is installed its own magics do it, and where not a sentence says what to write
instead."""

from __future__ import annotations

import subprocess
from functools import partial
from pathlib import Path

import pytest

from daemon import wait_until
from lair import Client
from lair.messages import Check, CheckReply, ExecReply, IsComplete, IsCompleteReply, Vars, VarsReply

ENVIRONMENT = Path(__file__).parents[2] / "build" / "bare-environment"


def bare() -> str:
    """An environment of the system's Python without its packages, so without IPython."""
    if not (ENVIRONMENT / "bin/python").exists():
        subprocess.run(["/usr/bin/python3", "-m", "venv", "--without-pip", ENVIRONMENT], check=True)
    return str(ENVIRONMENT)


SETTINGS = {
    # As a magic would load it, but once; a few tests are of sessions that load it themselves.
    "profile default": {"checkpoint": "cell", "level": "", "preload": "IPython"},
    "profile lazy": {"checkpoint": "cell", "level": ""},
    "profile programs": {"subprocess": "on", "level": "", "spares": "0"},
    "profile ruled": {
        "forbid": "call os.remove: keep files\n\tattribute system: no commands",
        "forbid_in": "exec",
        "level": "",
        "spares": "0",
    },
    "profile without": {"python": bare(), "level": "", "spares": "0"},
    "profile without-programs": {"python": bare(), "subprocess": "on", "level": "", "spares": "0"},
}

DEFINE = "import os\nx = 41\ndef share(n):\n    return 1 / n"


def out(client: Client, session: str, code: str) -> str:
    reply = client.exec(code, session)
    assert reply.returncode == 0, reply.stderr.decode()
    return reply.stdout.decode()


def last_line(reply: ExecReply) -> str:
    assert reply.error
    return str(reply.error["traceback"]).rstrip("\n").split("\n")[-1]


# ---- with IPython ----


def test_time(client: Client, session: str) -> None:
    client.exec(DEFINE, session)
    reply = client.exec("%time x + 1", session)
    assert reply.text == "42" and b"Wall time" in reply.stdout
    reply = client.exec("%%time\ny = 5\nz = y + 1", session)
    assert b"Wall time" in reply.stdout and reply.text is None
    assert client.exec("z", session).text == "6"
    assert "loop" in out(client, session, "%timeit -n 10 -r 2 x + 1")


def test_namespace(client: Client, session: str) -> None:
    client.exec(DEFINE, session)
    table = out(client, session, "%whos")
    assert "x" in table and "share" in table and "_dh" not in table and "get_ipython" not in table
    assert out(client, session, "%env LAIR_WORD=5") == "env: LAIR_WORD=5\n"
    assert client.exec("os.environ['LAIR_WORD']", session).text == "'5'"
    client.exec("os.mkdir('inner')", session)
    out(client, session, "%cd inner")
    assert client.exec("os.path.basename(os.getcwd())", session).text == "'inner'"
    assert client.exec("place = %pwd\nos.path.basename(place)", session).text == "'inner'"


def test_run(client: Client, session: str) -> None:
    client.exec("open('script.py', 'w').write('made = 3\\nprint(__name__)\\n')", session)
    assert out(client, session, "%run script.py") == "__main__\n"
    assert client.exec("made", session).text == "3"


def test_questions_about_things(client: Client, session: str) -> None:
    client.exec("def f(n):\n    'Says so.'\n    return n", session)
    assert "Says so." in out(client, session, "f?")
    assert "return n" in out(client, session, "f??")
    assert "Says so." in out(client, session, "?f")


def test_matplotlib(client: Client, session: str) -> None:
    reply = client.exec("%matplotlib inline\n1 + 1", session)
    assert reply.text == "2" and reply.stderr == b""
    reply = client.exec("%matplotlib qt", session)
    assert reply.returncode == 0 and b"no windows here" in reply.stderr


def test_figures_are_shown_as_without(client: Client, session: str) -> None:
    code = "%matplotlib inline\nimport matplotlib.pyplot as plt\nplt.plot([1, 2]);"
    reply = client.exec(code, session)
    assert reply.returncode == 0 and reply.displays and "image/png" in reply.displays[0]["data"]


def test_programs(client: Client, session: str) -> None:
    client.open(session, profile="programs")
    assert out(client, session, "print('first')\n!echo hello") == "first\nhello\n"
    assert (
        client.exec("word = 'there'\nsaid = !echo {word}; echo again\nlist(said)", session).text
        == "['there', 'again']"
    )
    assert out(client, session, "%%bash\necho one\necho two") == "one\ntwo\n"
    assert out(client, session, "%%script cat\nthree") == "three\n"
    assert client.exec("%%!\necho four", session).text == "['four']"
    client.exec("%alias greet echo hi", session)
    assert out(client, session, "%greet there") == "hi there\n"
    assert client.exec("%%bash --out told\necho kept", session).stdout == b""
    assert client.exec("told", session).text == "'kept\\n'"
    reply = client.exec("%%sh\nexit 3", session)
    assert last_line(reply).startswith("subprocess.CalledProcessError:")
    assert client.exec("!exit 3\n_exit_code", session).text == "3"
    assert client.exec("import threading; threading.active_count()", session).unfaithful is None


def test_no_programs(client: Client, session: str) -> None:
    """A sentence, the session's own line, and the refusal among what was blocked."""
    for code in ("!ls", "files = !ls"):
        reply = client.exec(code, session)
        sentence = "PermissionError: ls: no programs here: do it in Python (subprocess-not-granted); import os; os.listdir()"
        assert last_line(reply) == sentence
        assert reply.error and [frame["source"] for frame in reply.error["frames"]] == [code]
        assert reply.blocked and reply.blocked[0]["reason"] == "subprocess-not-granted"
        assert reply.blocked[0]["target"] == "ls"  # the error has it, so no client tells it a second time
    assert "subprocess-not-granted" in last_line(client.exec("%%bash\nls", session))


@pytest.mark.parametrize(
    "code", ["%pip install nothing", "!pip install nothing", "!python3 -m pip install nothing"]
)
def test_no_packages(client: Client, session: str, code: str) -> None:
    line = last_line(client.exec(code, session))
    assert "no programs here: packages are for the operator" in line and "/bin/sh" not in line


def test_no_network_for_packages(client: Client, session: str) -> None:
    client.open(session, profile="programs")
    reply = client.exec("%pip install nothing-of-this-name", session, timeout=30)
    assert b"no network here: packages are for the operator" in reply.stderr


def test_autoreload(client: Client, session: str) -> None:
    """A module that was edited is the new one, for names and for objects made before; going back goes with it."""

    def write(number: int) -> None:
        text = f"def f(): return {number}\nclass C:\n    def m(self): return {number}\n"
        client.exec(f"open('edited.py', 'w').write({text!r})", session)

    write(1)
    client.exec("from edited import f, C; import edited; c = C()", session)
    write(22)
    assert client.exec("f(), c.m(), edited.f()", session).text == "(1, 1, 1)"
    assert out(client, session, "%load_ext autoreload\n%autoreload 2") == ""
    write(333)
    assert client.exec("f(), c.m(), edited.f()", session).text == "(333, 333, 333)"
    client.exec("open('edited.py', 'w').write('def f(: broken')", session)
    reply = client.exec("f()", session)
    assert reply.text == "333" and b"autoreload of edited failed" in reply.stdout + reply.stderr
    client.undo(session, 2)
    assert client.exec("f(), c.m()", session).text == "(333, 333)"
    out(client, session, "%autoreload 0")
    write(4444)
    assert client.exec("f()", session).text == "333"


def test_extensions_hear_of_cells(client: Client, session: str) -> None:
    def is_kept(cell: int) -> bool:
        return client.checkpoints(session)[-1].cell == cell

    client.exec("shell = get_ipython(); heard = []", session)
    client.exec("shell.events.register('pre_run_cell', lambda info: heard.append(info.raw_cell))", session)
    client.exec("shell.events.register('post_run_cell', lambda result: heard.append(result.success))", session)
    client.exec("1 / 0", session)
    assert client.exec("heard[1:]", session).text == "[True, '1 / 0', False, 'heard[1:]']"
    for n in range(9):  # after a checkpoint the interpreter runs a cell that is nobody's
        cell = client.exec(f"heard[:] = [{n}]", session).cell
        wait_until(partial(is_kept, cell), "the checkpoint")
    assert client.exec("heard", session).text == "[8, True, 'heard']"
    client.exec("shell.events.register('pre_execute', lambda: {}['missing'])", session)
    reply = client.exec("5", session)
    assert reply.text == "5" and reply.stderr == b"pre_execute: KeyError: 'missing'\n"


SAID = {
    "%lsmagic": "%autoawait",
    "%%timeit -n1 -r1 y = 3\ny + 1": "per loop",
    "%%writefile a.txt\nhello": "Writing a.txt",
    "%%writefile -a a.txt\nmore": "Appending to a.txt",
    "%pycat a.txt": "hello\nmore",
    "%prun -s cumulative share(1)": "Ordered by: cumulative time",
    "%%prun\nshare(1)": "function calls",
    "%pinfo share": "Signature: share(n)",
    "%pinfo2 share": "return 1 / n",
    "%psource share": "return 1 / n",
    "%pdef share": "share(n)",
    "%history -n 1": "import os",
    "%who": "share",
    "%who int": "x",
    "%load s.py": "made = 3",
    "%recall 1": "import os",
    "%rerun 1": "Executing",
    "%save t.py 1": "def share(n):",
    "%dhist": "0: /",
    "%psearch shar*": "share",
    "%macro again 1": "Macro `again` created",
}


def test_magics_people_use(client: Client, session: str) -> None:
    client.exec(DEFINE + "\nopen('s.py', 'w').write('made = 3')", session)
    for code, said in SAID.items():
        assert said in out(client, session, code), code
    client.exec("%xdel x", session)
    assert client.exec("'x' in globals()", session).text == "False"
    client.exec("%set_env LAIR_WORD 6", session)
    assert client.exec("os.environ['LAIR_WORD']", session).text == "'6'"
    client.exec("%alias_magic t timeit", session)
    assert "per loop" in out(client, session, "%t -n1 -r1 1")
    client.exec("%reset -f", session)
    assert client.exec("'share' in globals()", session).text == "False"


@pytest.mark.parametrize(
    ("magic", "kind"),
    [
        ("html", "text/html"),
        ("HTML", "text/html"),
        ("javascript", "application/javascript"),
        ("js", "application/javascript"),
        ("latex", "text/latex"),
        ("markdown", "text/markdown"),
        ("svg", "image/svg+xml"),
    ],
)
def test_what_a_cell_shows_by_a_magic(client: Client, session: str, magic: str, kind: str) -> None:
    reply = client.exec(f"%%{magic}\n<svg></svg>", session)
    assert reply.returncode == 0 and reply.displays and "svg" in reply.displays[0]["data"][kind]


# A cell goes on after these, and a line says why they change nothing.
NOTHING = {
    "%xmode Verbose": "%xmode does nothing here: tracebacks are Python's own",
    "%precision 3": "%precision does nothing here: round(value, 3)",
    "%pprint": "%pprint does nothing here: values are always laid out",
    "%pdb on": "%pdb does nothing here: %debug looks at the error afterwards",
    "%logstart": "%logstart does nothing here: %history",
    "%automagic": "%automagic does nothing here: a magic begins with %",
    "%colors linux": "%colors does nothing here",
    "%config InlineBackend.figure_format = 'svg'": "figures are PNG, or SVG if the cell is sent so",
    "%load s.py": "nothing was run: this is text for a prompt",
}


@pytest.mark.parametrize("code", NOTHING)
def test_what_does_nothing_says_so(client: Client, session: str, code: str) -> None:
    client.exec("open('s.py', 'w').write('made = 3')", session)
    reply = client.exec(f"{code}\n1 + 1", session)
    assert reply.text == "2" and reply.stderr.count(b"\n") == 1 and NOTHING[code] in reply.stderr.decode()
    assert client.exec("1 + 1", session).stderr == b""


def test_what_is_not_to_be_had(client: Client, session: str) -> None:
    assert "`lair save` keeps them" in last_line(client.exec("x = 5\n%store x", session))
    assert "there is no editor here: %%writefile" in last_line(client.exec("%edit x", session))
    assert "no module named" in last_line(client.exec("%load_ext nothing_like_it", session)).lower()


def test_the_last_traceback(client: Client, session: str) -> None:
    assert "no error has ended a cell" in last_line(client.exec("%tb", session))
    client.exec(DEFINE + "\nshare(0)", session)
    assert "    share(0)\n" in out(client, session, "%tb")
    assert out(client, session, "%rehashx") == ""


def test_tracebacks_have_the_sessions_lines(client: Client, session: str) -> None:
    client.exec(DEFINE, session)
    error = client.exec("%time share(0)", session).error
    assert error and error["name"] == "ZeroDivisionError"
    assert "IPython" not in error["traceback"] and "<lair>" not in error["traceback"]
    assert 'File "<cell 2>", line 1' in error["traceback"] and "    %time share(0)\n" in error["traceback"]
    assert error["frames"][-1]["cell"] == 1
    error = client.exec("%%time\ny = 5\nshare(0)", session).error
    assert error and "IPython" not in error["traceback"] and "    share(0)\n" in error["traceback"]
    client.exec("open('bad.py', 'w').write('share(0)\\n')", session)
    client.exec("open('worse.py', 'w').write('1 / 0\\n')", session)
    error = client.exec("%run worse.py", session).error
    assert error and error["name"] == "ZeroDivisionError" and "worse.py" in error["traceback"]
    assert "IPython" not in error["traceback"]


def test_errors_of_syntax_keep_their_place(client: Client, session: str) -> None:
    error = client.exec("x = 1\n%time x\ny = = 3", session).error
    assert error and (error["name"], error["line"]) == ("SyntaxError", 3)
    error = client.exec("x = = 1", session).error
    assert error and (error["name"], error["line"]) == ("SyntaxError", 1)
    assert client.exec("import sys; 'IPython' in sys.modules", session).text == "True"


def test_an_unknown_magic(client: Client, session: str) -> None:
    error = client.exec("%nosuchmagic 3", session).error
    assert error and error["name"] == "UsageError" and "`%nosuchmagic` not found" in error["value"]


def test_ordinary_cells_do_not_import_it(client: Client, session: str) -> None:
    client.open(session, "lazy")
    client.exec("x = 7 % 3\ntext = '''\n%time\n!ls\n'''", session)
    assert client.exec("y = = 3", session).error
    assert client.exec("import sys; 'IPython' in sys.modules", session).text == "False"
    assert client.exec("'get_' + 'ipython' in dir(__builtins__)", session).text == "False"


def test_get_ipython(client: Client, session: str) -> None:
    reply = client.exec("get_ipython().run_line_magic('time', '3')", session)
    assert reply.text == "3"
    assert client.exec("import IPython; IPython.get_ipython() is get_ipython()", session).text == "True"


def test_history_and_the_last_value(client: Client, session: str) -> None:
    client.exec("x = 41", session)
    assert out(client, session, "%history").startswith("x = 41\n")
    client.exec("x + 1", session)
    assert client.exec("_", session).text == "42"


def test_debug(client: Client, session: str) -> None:
    assert "nothing to look at" in last_line(client.exec("%debug", session))
    client.exec(DEFINE + "\nshare(0)", session)
    reply = client.exec("%debug", session)
    assert b"return 1 / n" in reply.stdout and b"no more answers for the debugger" in reply.stderr
    cell, answers = client.start("%debug", session, input=True), iter(["p n + 70", "q"])
    message = client.receive(cell, ExecReply)
    while not isinstance(message, ExecReply):
        client.input(cell, next(answers))
        message = client.receive(cell, ExecReply)
    assert b"70" in message.stdout and message.returncode == 0
    client.exec("{}['other']", session)
    assert b"other" in client.exec("%debug", session).stdout


def test_no_files_and_no_names_of_its_own(client: Client, session: str) -> None:
    client.exec("%time 1", session)
    everything = (
        "import os; sorted(name for _, inner, names in os.walk(os.environ['HOME']) for name in inner + names)"
    )
    assert client.exec(everything, session).text == "[]"
    told = client.call(Vars(id=client.new_id(), session=session), VarsReply)
    assert [variable["name"] for variable in told.variables] == ["os"]


def test_undo_branch_and_roll_back(client: Client, session: str) -> None:
    client.open(session, "lazy")
    reply = client.exec("x = 1\n%time x", session)
    assert reply.unfaithful is None
    client.exec("import os; os.mkdir('inner')\n%cd inner\nx = 2", session)
    client.undo(session)
    assert client.exec("%time x", session).text == "1"
    assert client.exec("len(_dh)", session).text == "1"
    client.exec("os = None; import os; os._exit(1)", session)
    assert client.exec("%time x", session).text == "1"
    branch = session + ".b"
    client.branch(session, branch)
    assert client.exec("x = 9\n%time x", branch).text == "9"
    assert client.exec("%time x", session).text == "1"
    client.shutdown(branch)
    client.undo(session, 5)
    assert client.exec("import sys; 'IPython' in sys.modules", session).text == "False"
    assert client.exec("%time 5", session).text == "5"


def test_rules_see_what_is_run(client: Client, session: str) -> None:
    client.open(session, profile="ruled")
    reply = client.exec("!rm x", session)
    assert reply.returncode == 2 and b"no commands" in reply.stderr


def test_it_is_checked_as_it_is_run(client: Client, session: str) -> None:
    def check(code: str) -> CheckReply:
        return client.call(Check(id=client.new_id(), session=session, code=code), CheckReply)

    def complete(code: str) -> str:
        request = IsComplete(id=client.new_id(), session=session, code=code)
        return client.call(request, IsCompleteReply).status

    client.open(session)
    assert check("%time x\n!ls").valid
    assert not check("%time x\ny = = 3").valid
    assert [complete(code) for code in ("!ls", "%%bash", "%%bash\nls", "%%bash\nls\n", "y = = 3")] == [
        "complete",
        "incomplete",
        "incomplete",
        "complete",
        "invalid",
    ]


# ---- without it ----

INSTEAD = {
    "%timeit f(1)": "%timeit is IPython's, which is not installed here: import timeit; timeit.timeit('f(1)',",
    "%time f(1)": "import time; start = time.perf_counter(); f(1); print(",
    "%%time\nf(1)": "%%time is IPython's",
    "%matplotlib inline": "leave it out, figures are shown when the cell ends",
    "%run a.py": "runpy.run_path('a.py', run_name='__main__')",
    "%whos": "globals().items()",
    "%cd inner": "import os; os.chdir('inner')",
    "x = %env HOME": "%env is IPython's, which is not installed here: import os; os.environ",
    "%debug": "import pdb; pdb.pm()",
    "%nosuch": "write it in plain Python",
    "%load_ext autoreload": "sent with reload (lair exec --reload)",
    "%autoreload 2": "sent with reload (lair exec --reload)",
    "%load_ext sql": "import the library itself",
    "%%timeit -n1 -r1\nf(1)": "timeit.timeit(code, globals=globals(), number=1000) / 1000, where code is the cell",
    "%timeit -n 10 -r 3 f(1)": "timeit.timeit('f(1)',",
    "%%writefile -a a.txt\nhello": "with open('a.txt', 'w') as file",
    "%prun -s cumulative f(1)": "cProfile.run('f(1)')",
    "%%prun\nf(1)": "cProfile.run(code), where code is the cell as a string",
    "%lsmagic": "here are no magics",
    "%pinfo f": "help(f)",
    "%pinfo2 f": "import inspect; print(inspect.getsource(f))",
    "%history": "`lair history` has the cells of a session",
    "%reset -f": "have the session reset, or del the names",
    "%store x": "variables stay as long as the session, and `lair save` keeps them",
    "%xmode Plain": "leave it out, it is about IPython's own prompt",
    "%precision 3": "leave it out, it is about IPython's own prompt",
    "%who": "[name for name in dir() if name[0] != '_']",
    "%%html\n<b>": "display({'text/html': text}, raw=True)",
    "%%javascript\nalert(1)": "display({'application/javascript': text}, raw=True)",
    "%%latex\n$x$": "display({'text/latex': text}, raw=True)",
    "%%script cat\nx": "no programs here: do it in Python (subprocess-not-granted); print(open(name).read())",
    "%%bash\nls": "no programs here: do it in Python (subprocess-not-granted)",
    "%%!\nls": "no programs here: do it in Python (subprocess-not-granted)",
    "%cat a.txt": "no programs here: do it in Python (subprocess-not-granted); print(open(name).read())",
    "%tb": "import sys, traceback; traceback.print_exception(",
    "%load a.py": "exec(open('a.py').read())",
    "%edit a.py": "there is no editor here, open('a.py', 'w').write(text)",
    "!ls -l": "!ls -l is a command of IPython's, which is not installed here: no programs here: do it in Python (subprocess-not-granted); "
    "import os; os.listdir()",
    "x = !ls": "no programs here: do it in Python (subprocess-not-granted)",
    "f?": "f? is IPython's, which is not installed here: help(f)",
    "%pip install x": "no programs here: packages are for the operator",
    "!pip install x": "no programs here: packages are for the operator",
}


@pytest.mark.parametrize("code", INSTEAD)
def test_what_to_write_instead(client: Client, session: str, code: str) -> None:
    client.open(session, profile="without")
    reply = client.exec("y = 1\n\n" + code, session)
    assert reply.error and reply.error["name"] == "SyntaxError"
    assert INSTEAD[code] in reply.error["value"] and "\n" not in reply.error["value"]
    assert (reply.error["line"], reply.error["context"]) == (3, code.split("\n")[0])
    assert client.exec("'y' in globals()", session).text == "False"


def test_what_to_write_instead_runs(client: Client, session: str) -> None:
    client.open(session, profile="without")
    client.exec(DEFINE + "\nopen('a.py', 'w').write('made = 3')", session)
    lines = "%timeit share(1)|%time share(1)|%run a.py|%whos|%cd .|%pwd|%ls|%env|%who|%prun share(1)|%pinfo share|%load a.py"
    for code in lines.split("|"):
        reply = client.exec(code, session)
        assert reply.error
        plain = reply.error["traceback"].rstrip("\n").partition("installed here: ")[2]
        assert plain and client.exec(plain, session).returncode == 0, plain
    assert client.exec("made", session).text == "3"


def test_commands_instead(client: Client, session: str) -> None:
    client.open(session, profile="without-programs")
    error = client.exec("!echo hi", session).error
    assert error and "import subprocess; print(subprocess.getoutput('echo hi'))" in error["value"]
    error = client.exec("%pip install x", session).error
    assert error and "no network here: packages are for the operator" in error["value"]


def test_plain_errors_stay(client: Client, session: str) -> None:
    client.open(session, profile="without")
    for code in ("y = = 3", "x = (1,\n%time", "def f(:\n    pass", "5 %% 3"):
        error = client.exec(code, session).error
        assert error and "IPython" not in error["value"], code
    assert client.exec("get_ipython()", session).error

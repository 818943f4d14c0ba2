"""What is IPython's in a cell: where it is installed its own magics do it, and where not a sentence says what to write
instead."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from lair import Client
from lair.messages import Check, CheckReply, ExecReply, IsComplete, IsCompleteReply, Vars, VarsReply

ENVIRONMENT = Path(__file__).parents[2] / "build" / "bare-environment"


def bare() -> str:
    """An environment of the system's Python without its packages, so without IPython."""
    if not (ENVIRONMENT / "bin/python").exists():
        subprocess.run(["/usr/bin/python3", "-m", "venv", "--without-pip", ENVIRONMENT], check=True)
    return str(ENVIRONMENT)


SETTINGS = {
    "profile default": {"checkpoint": "cell", "level": ""},
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
        sentence = "PermissionError: ls: no programs here (subprocess-not-granted); import os; os.listdir()"
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
    assert "(subprocess-not-granted); packages are for the operator" in line and "/bin/sh" not in line


def test_no_network_for_packages(client: Client, session: str) -> None:
    client.open(session, profile="programs")
    reply = client.exec("%pip install nothing-of-this-name", session, timeout=30)
    assert b"no network here (network-not-granted); packages are for the operator" in reply.stderr


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
    "!ls -l": "!ls -l is a command of IPython's, which is not installed here: no programs here (subprocess-not-granted); "
    "import os; os.listdir()",
    "x = !ls": "no programs here (subprocess-not-granted)",
    "f?": "f? is IPython's, which is not installed here: help(f)",
    "%pip install x": "no programs here (subprocess-not-granted); packages are for the operator",
    "!pip install x": "no programs here (subprocess-not-granted); packages are for the operator",
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
    for code in ("%timeit share(1)", "%time share(1)", "%run a.py", "%whos", "%cd .", "%pwd", "%ls", "%env"):
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
    assert error and "no network here (network-not-granted); packages are for the operator" in error["value"]


def test_plain_errors_stay(client: Client, session: str) -> None:
    client.open(session, profile="without")
    for code in ("y = = 3", "x = (1,\n%time", "def f(:\n    pass", "5 %% 3"):
        error = client.exec(code, session).error
        assert error and "IPython" not in error["value"], code
    assert client.exec("get_ipython()", session).error

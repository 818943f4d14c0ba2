"""Checkpoints from the command line and at the prompt."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable

import pytest

from daemon import BIN, TROUBLE, USAGE, Daemon, wait_until
from lair import Client
from terminal import Terminal

SETTINGS = {
    "daemon": {"sessions_per_uid": "20"},
    "profile default": {"grace": "100ms", "checkpoint": "cell", "checkpoints": "4", "level": ""},
    "profile off": {"spares": "0", "checkpoint": "off", "level": ""},
}

pytestmark = pytest.mark.usefixtures("no_sessions_left")

DEAF = "import time\nwhile True:\n    try: time.sleep(60)\n    except BaseException: pass"
# It blocks all signals, so it cannot be copied.
THREAD = (
    "from threading import *; import ctypes; e = Event(); deaf = Event(); mask = ctypes.c_uint64(2**64 - 1); "
    "t = Thread(target=lambda: (ctypes.CDLL(None).syscall(14, 2, ctypes.byref(mask), None, 8), deaf.set(), e.wait()), "
    "daemon=True); t.start(); deaf.wait(); None"
)
UNREACHED = "thread lair-python blocks all signals"

BACK_TO = "the session was rolled back to the state {}: its variables and files are as they were then"


def cells(daemon: Daemon, *codes: str) -> None:
    """Run some in session a."""
    with Client(str(daemon.socket)) as client:
        for code in codes:
            client.exec(code, "a")


def value(daemon: Daemon, code: str, session: str = "a") -> str:
    return daemon.lair("exec", "-s", session, code).stdout.rstrip("\n")


# ---- what is said after a roll-back ----


# It dies when its cell has been answered, and the next one has not come.
DIES_LATER = """
import os, time
x = 2
if os.fork() == 0:
    time.sleep(0.05)
    os.kill(os.getppid(), 9)
"""


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("x", "; that was before this code, which ran on what came back (signal 9)"),
        ("1/0", "; that was before this code, which ran on what came back"),
    ],
)
def test_a_roll_back_between_two_cells_is_said(daemon: Daemon, code: str, said: str) -> None:
    cells(daemon, "x = 1")
    cells(daemon, DIES_LATER)
    time.sleep(0.3)
    result = daemon.lair("exec", "-s", "a", code)
    assert result.stderr.splitlines()[-1] == f"lair: {BACK_TO.format('after cell 2')}{said}"
    assert value(daemon, "x") == "2"


def test_the_end_of_a_one_shot_is_said(daemon: Daemon) -> None:
    result = daemon.lair("exec", "import os; os.abort()")
    assert result.stderr.splitlines()[-1] == "lair: the interpreter crashed or was killed: signal 6"
    assert (
        daemon.lair("exec", "-t", "300ms", DEAF).stderr
        == "lair: the code was stopped after its 0.3 s; -t TIME sets another\n"
    )
    assert daemon.lair("exec", "import sys; sys.exit(3)").stderr == ""


def test_unfaithful_in_json(daemon: Daemon) -> None:
    document = daemon.lair_json("exec", "-s", "a", THREAD)
    assert document["unfaithful"].startswith(f"a crash now would go back to the beginning: {UNREACHED}")
    result = daemon.lair("checkpoint", "a")
    assert result.returncode == TROUBLE
    assert f"cannot be saved now: {UNREACHED}" in result.stderr


def test_forgotten_in_json(daemon: Daemon, client: Client) -> None:
    cells(daemon, *["pass"] * 4)
    assert daemon.lair_json("exec", "-s", "a", "pass")["forgotten"] == 0
    wait_until(lambda: len(client.checkpoints("a")) == 4, "the oldest is forgotten")
    assert daemon.lair_json("exec", "-s", "a", "pass")["forgotten"] == 1


# ---- the verbs ----


def test_a_checkpoint_without_a_name(daemon: Daemon) -> None:
    cells(daemon, "x = 1")
    assert daemon.lair("checkpoint", "a").stdout == 'session "a" keeps the state after cell 1\n'
    assert daemon.lair_json("checkpoint", "a", "b") == {"session": "a", "cell": 1, "name": "b"}


def test_drop(daemon: Daemon) -> None:
    cells(daemon, "x = 1")
    daemon.lair("checkpoint", "a", "one")
    cells(daemon, "x = 2")
    assert (daemon.lair("drop", "a", "one").returncode, value(daemon, "x")) == (0, "2")
    result = daemon.lair("drop", "a", "one", "--json")
    assert result.returncode == TROUBLE
    assert 'no checkpoint "one"' in json.loads(result.stdout)["error"]["message"]
    assert daemon.lair_json("drop", "a", "2") == {"session": "a", "dropped": "2"}


def test_checkpoints(daemon: Daemon, client: Client) -> None:
    cells(daemon, "x = bytearray(8 << 20)", "x[:] = b'1' * len(x)", "y = 1")
    daemon.lair("checkpoint", "a", "named")
    cells(daemon, "x[:] = b'2' * len(x)", "z = 2")
    wait_until(lambda: client.info("a").checkpoint_memory > 8 << 20, "they are measured")
    lines = [line.split() for line in daemon.lair("checkpoints", "a").stdout.splitlines()]
    assert lines[0] == ["CELL", "NAME", "AGE", "MEMORY", "FILES"]
    assert [line[:2] for line in lines[1:]] == [["1", "-"], ["2", "-"], ["3", "named"], ["4", "-"], ["5", "-"]]
    document = daemon.lair_json("checkpoints", "a")
    assert document["session"] == "a"
    assert [(c["cell"], c["name"]) for c in document["checkpoints"]] == [
        (1, None),
        (2, None),
        (3, "named"),
        (4, None),
        (5, None),
    ]
    assert all(0 <= c["age"] < 60 for c in document["checkpoints"])
    assert max(c["memory"] for c in document["checkpoints"]) > 8 << 20


def test_no_checkpoints(daemon: Daemon) -> None:
    daemon.lair("open", "a")
    assert daemon.lair("checkpoints", "a").stdout.split() == ["CELL", "NAME", "AGE", "MEMORY", "FILES"]
    assert daemon.lair_json("checkpoints", "a") == {"session": "a", "checkpoints": []}


def test_info_and_ls_count_them(daemon: Daemon, client: Client) -> None:
    cells(daemon, "x = bytearray(8 << 20)", "x[:] = b'1' * len(x)", "x[:] = b'2' * len(x)")
    wait_until(lambda: client.info("a").checkpoint_memory > 8 << 20, "they are measured")
    assert re.search(
        r"^checkpoints 3, \d+\.\d MiB, the oldest of \d", daemon.lair("info", "a").stdout, re.MULTILINE
    )
    document = daemon.lair_json("info", "a")
    assert (document["checkpoints"], document["checkpoint_memory"] > 8 << 20) == (3, True)
    assert 0 < document["checkpoint_age"] < 30
    assert max(record.age for record in client.checkpoints("a")) >= document["checkpoint_age"]
    heads, line = daemon.lair("ls").stdout.splitlines()
    assert heads.split() == ["SESSION", "PROFILE", "STATE", "IDLE", "CELLS", "CHECKPOINTS", "MEMORY"]
    assert line[heads.index("CHECKPOINTS") :].startswith("3, ")
    assert daemon.lair_json("ls")["sessions"][0]["checkpoints"] == 3


def test_branch(daemon: Daemon) -> None:
    cells(daemon, "x = 1; open('f', 'w').write('old')")
    daemon.lair("checkpoint", "a", "start")
    cells(daemon, "x = 2")
    told = daemon.lair("branch", "a", "b", "--share").stdout
    assert told == 'session "b" opened, a branch of "a" on the same files\n'
    result = daemon.lair("branch", "a", "c", "--from", "start")
    assert result.stdout == 'session "c" opened, a branch of "a" on files of its own\n'
    assert (value(daemon, "x", "b"), value(daemon, "x", "c")) == ("2", "1")
    cells(daemon, "x = 3; open('f', 'w').write('new')")
    assert value(daemon, "x, open('f').read()", "b") == "(2, 'new')"
    assert value(daemon, "x, open('f').read()", "c") == "(1, 'old')"
    document = daemon.lair_json("branch", "-b", "start", "-F", "a", "d")
    assert (document["session"], document["cells"], document["own_files"]) == ("d", 1, True)
    assert document["workspace"] != daemon.lair_json("info", "a")["workspace"]


def test_branch_to_a_taken_id(daemon: Daemon) -> None:
    cells(daemon, "x = 1")
    result = daemon.lair("branch", "a", "a")
    assert result.returncode == TROUBLE
    assert 'the id "a" is taken' in result.stderr


VERBS = {
    "undo": [],
    "checkpoint": [],
    "checkpoints": [],
    "diff": [],
    "restore": ["one"],
    "drop": ["one"],
    "branch": ["b"],
}


@pytest.mark.parametrize("verb", VERBS)
def test_a_session_that_is_not_there(daemon: Daemon, verb: str) -> None:
    result = daemon.lair(verb, "nobody", *VERBS[verb])
    assert (result.returncode, result.stdout) == (TROUBLE, "")
    assert result.stderr.startswith('lair: there is no session "nobody"')
    assert json.loads(daemon.lair(verb, "nobody", *VERBS[verb], "--json").stdout)["error"]["code"] == "no_session"


@pytest.mark.parametrize("verb", VERBS)
def test_they_are_explained(daemon: Daemon, verb: str) -> None:
    assert f"\n  {verb} " in daemon.lair("help").stdout
    result = daemon.lair(verb, "--help")
    assert (result.returncode, f"usage: lair {verb} ID" in result.stdout) == (0, True)
    assert ("--from NAME" in result.stdout) == (verb == "branch")


@pytest.mark.parametrize(
    "arguments",
    [
        ["undo"],
        ["undo", "a", "0"],
        ["undo", "a", "two"],
        ["undo", "a", "1x"],
        ["undo", "a", "99999999999999999999"],
        ["undo", "a", "-1"],
        ["undo", "a", "1", "1"],
        ["undo", "a", "--files"],
        ["checkpoint", "a", "b", "c"],
        ["checkpoints"],
        ["restore", "a"],
        ["drop", "a"],
        ["branch", "a"],
        ["branch", "a", "b", "--from"],
    ],
)
def test_a_wrong_command_line(daemon: Daemon, arguments: list[str]) -> None:
    result = daemon.lair(*arguments)
    assert (result.returncode, result.stdout) == (USAGE, "")
    assert result.stderr.startswith("lair: ")


@pytest.mark.parametrize("name", ["with space", "x" * 65, "é", "\x1b[2J"])
def test_a_bad_name(daemon: Daemon, name: str) -> None:
    cells(daemon, "x = 1")
    result = daemon.lair("checkpoint", "a", name)
    assert result.returncode == TROUBLE
    assert "name of a checkpoint" in result.stderr
    assert "\x1b" not in result.stderr


# ---- the prompt ----


def piped(daemon: Daemon, *lines: str, json: bool = False) -> tuple[list[str], list[str]]:
    """What a prompt that reads from a pipe says on stdout and on stderr."""
    result = daemon.lair("repl", "-s", "a", *["--json"][: int(json)], input="\n".join(lines) + "\n")
    assert result.returncode == 0
    return result.stdout.splitlines(), result.stderr.splitlines()


def test_commands(daemon: Daemon) -> None:
    out, err = piped(
        daemon, "x = 1", "%checkpoint one", "x = 2", "%undo", "x", "x = 5", "%restore one", "x", "%drop one"
    )
    assert err == []
    assert out == [
        'session "a" keeps the state after cell 1 ("one")',
        'session "a" is back in the state after cell 1 ("one")',
        "1",
        'session "a" is back in the state after cell 1 ("one")',
        "1",
    ]


def test_branch_at_the_prompt(daemon: Daemon) -> None:
    out, err = piped(daemon, "x = 1", "x = 2", "%branch b --from 1", "x", "x = 'b'", "%branch c", "x")
    assert err == []
    assert out == [
        'session "b" opened, a branch of "a" on files of its own',
        'From here on in session "b"; "a" keeps running.',
        "1",
        'session "c" opened, a branch of "b" on files of its own',
        'From here on in session "c"; "b" keeps running.',
        "'b'",
    ]
    assert (value(daemon, "x"), value(daemon, "x", "b")) == ("2", "'b'")


def test_a_branch_that_fails_leaves_the_prompt_where_it_was(daemon: Daemon) -> None:
    out, err = piped(daemon, "x = 1", "%branch a", "x")
    assert (out, err) == (["1"], ['lair: the id "a" is taken; choose another'])


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("%", "expected a command; %help lists them"),
        ("%undo x", 'undo: expected how many states to go back, 1 or more; got "x"'),
        ("%undo 1 2", 'undo: "2" is one argument too many; expected [N]'),
        ("%restore", "restore: expected NAME"),
        ("%undo --socket /x", "there is no flag --socket here"),
        ("%undo --json", "there is no flag --json here"),
        ("%branch b --from", "--from needs an argument"),
        ("%checkpoint " + "x " * 1000, 'checkpoint: "x" is one argument too many; expected [NAME]'),
    ],
)
def test_a_wrong_command(daemon: Daemon, line: str, said: str) -> None:
    out, err = piped(daemon, line, "1 + 1")
    assert out == ["2"]
    assert err == [f"lair: {said}", "Try: %help"]


def test_a_percent_sign_in_python_stays_python(daemon: Daemon) -> None:
    out, err = piped(daemon, "(7", "% 4)", "'''", "%undo'''", "'%s' % 3")
    assert (out, err) == (["3", r"'\n%undo'", "'3'"], [])


def test_help(daemon: Daemon) -> None:
    out, err = piped(daemon, "%help")
    commands = [line.split()[0] for line in out]
    first = commands.index("%undo")
    assert commands[first : commands.index("%help") + 1] == [f"%{name}" for name in (*VERBS, "help")]
    assert (max(map(len, out)) < 120, err) == (True, [])


def test_commands_in_json(daemon: Daemon) -> None:
    out, err = piped(
        daemon,
        "x = 1",
        "%checkpoint one",
        "%checkpoints",
        "%diff",
        "%undo 9",
        "%",
        "%help",
        "%branch b",
        "x",
        json=True,
    )
    documents = [json.loads(line) for line in out]
    assert (err, len(documents)) == ([], 9)
    assert documents[1] == {"session": "a", "cell": 1, "name": "one"}
    assert [c["name"] for c in documents[2]["checkpoints"]] == ["one"]
    assert [(it["name"], it["change"]) for it in documents[3]["variables"]] == [("x", "new")]
    assert [d["error"]["code"] for d in documents[4:6]] == ["gone", "usage"]
    assert {"vars", "undo", "%cd"} <= {command["name"] for command in documents[6]["commands"]}
    assert documents[7]["session"] == "b"
    assert (documents[8]["session"], documents[8]["text"]) == ("b", "1")


def test_a_terminal_undoes_and_branches(daemon: Daemon, terminal: Callable[..., Terminal]) -> None:
    it = terminal("repl", "-s", "a")
    it.prompt()
    for line in ("x = 1\r", "x = 2\r"):
        it.type(line)
        it.prompt()
    it.type("%undo\r")
    it.expect('session "a" is back in the state after cell 1')
    it.say("%branch other", 'From here on in session "other"')
    it.say("x + 10", "\n11")
    it.say("%nothing", "`%nothing` not found")
    it.prompt()
    it.type("\x04")
    assert it.wait() == 0
    assert '"other" keeps running' in it.seen
    assert "lair repl -s other" in it.seen


def test_it_says_each_time_that_a_state_is_not_kept(daemon: Daemon, terminal: Callable[..., Terminal]) -> None:
    it = terminal("repl", "-s", "a")
    it.say(THREAD, "lair: the state after cell 1 is not kept: a crash now would go back to the beginning: ")
    it.say("1 + 1", "lair: the state after cell 2 is not kept: a crash now would go back to the beginning: ")
    it.prompt()
    for line in ("e.set(); t.join()\r", "import time; time.sleep(0.1)\r"):
        it.type(line)
        assert "is not kept" not in it.prompt()
    it.type(THREAD + "\r")
    it.expect("lair: the state after cell 5 is not kept: a crash now would go back to ")


def test_ctrl_c_ends_waiting_for_a_command(
    start_daemon: Callable[..., Daemon], terminal: Callable[..., Terminal]
) -> None:
    """A daemon that does not answer holds nobody."""
    stopped = start_daemon({"profile default": {"checkpoint": "cell", "level": ""}})
    pid = stopped.client().hello().pid
    it = terminal("repl", "-s", "a", "--socket", str(stopped.socket))
    it.say("x = 1")
    it.prompt()
    os.kill(pid, signal.SIGSTOP)
    try:
        it.type("%undo\r")
        it.commanded()
        it.type("\x03")
        it.expect("not waiting any longer; laird carries the request out nevertheless")
        it.prompt()
    finally:
        os.kill(pid, signal.SIGCONT)
    it.type("'x' in globals()\r")
    it.expect("\nFalse")


def test_a_daemon_that_ends_ends_the_prompt(
    start_daemon: Callable[..., Daemon], terminal: Callable[..., Terminal]
) -> None:
    ended = start_daemon({"profile default": {"checkpoint": "cell", "level": ""}})
    it = terminal("repl", "-s", "a", "--socket", str(ended.socket))
    it.say("x = 1")
    it.prompt()
    assert ended.terminate() == 0
    it.type("%undo\r")
    assert it.wait() == TROUBLE


# One long call into C, which looks at no signal until it returns. It says itself that it has begun.
IN_C = """
import collections, functools, itertools
on = map(functools.partial(print, flush=True), ["on"])
collections.deque(itertools.chain(on, itertools.repeat(0)), maxlen=0)
"""


def test_ctrl_c_says_what_it_does_to_code_that_does_not_react(daemon: Daemon) -> None:
    daemon.lair("exec", "-s", "a", "x = 5")
    process = subprocess.Popen(
        [str(BIN / "lair"), "exec", "-s", "a", f"x = 6; {IN_C}"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**daemon.env, "LAIR_SOCKET": str(daemon.socket)},
        text=True,
    )
    assert process.stdout is not None and process.stderr is not None
    process.stdout.readline()
    process.send_signal(signal.SIGINT)
    assert "has not reacted yet" in process.stderr.readline()
    process.send_signal(signal.SIGINT)
    assert "Ctrl-C once more kills it" in process.stderr.readline()
    process.send_signal(signal.SIGINT)
    assert "killing" in process.stderr.readline()
    _, err = process.communicate(timeout=10)
    assert err == f"lair: the code was interrupted\nlair: {BACK_TO.format('after cell 1')}\n"
    assert process.returncode == 137
    assert daemon.lair("exec", "-s", "a", "x").stdout == "5\n"


def test_interrupt_kill(daemon: Daemon) -> None:
    daemon.lair("exec", "-s", "a", "x = 5")
    key = daemon.lair("exec", "-s", "a", "--detach", IN_C).stdout.strip()
    wait_until(lambda: daemon.client().info("a").state == "busy", "it runs")
    assert daemon.lair_json("interrupt", "a") == {"session": "a", "interrupted": True}
    assert daemon.lair_json("interrupt", "--kill", "a") == {"session": "a", "interrupted": True}
    result = daemon.lair_json("attach", "a", "--key", key)
    assert (result["state"], result["restored"], result["cause"], result["returncode"]) == (
        "rolled_back",
        1,
        "interrupt",
        137,
    )
    assert daemon.lair_json("interrupt", "--kill", "a")["interrupted"] is False
    assert daemon.lair("exec", "-s", "a", "x").stdout == "5\n"


def test_diff(daemon: Daemon) -> None:
    cells(daemon, "x = 1; open('f', 'w').write('1')", "x = 2; y = 'a'; open('f', 'w').write('22'); open('g', 'w')")
    shown = daemon.lair("diff", "a").stdout
    assert shown.splitlines() == [
        "from the state after cell 1 to the state after cell 2",
        "files",
        "  ~ f  1 B -> 2 B",
        "  + g  0 B",
        "variables",
        "  ~ x  int 1 -> int 2",
        "  + y  str 'a'",
    ]
    it = json.loads(daemon.lair("diff", "a", "2", "1", "--json").stdout)
    assert (it["session"], it["since"], it["until"], it["files_lack"]) == ("a", 2, 1, None)
    assert [(f["path"], f["change"], f["size"]) for f in it["files"]] == [("f", "changed", 1), ("g", "deleted", 0)]
    assert [(v["name"], v["change"], v["text_before"]) for v in it["variables"]] == [
        ("x", "changed", "2"),
        ("y", "gone", None),
    ]
    refused = daemon.lair("diff", "a", "none")
    assert refused.returncode == TROUBLE and 'no checkpoint "none"' in refused.stderr

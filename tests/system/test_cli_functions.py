"""The command line: functions that are commands, calls that wait, and who answers them."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from daemon import BIN, TROUBLE, USAGE, Daemon, children, command_of, wait_until
from terminal import Terminal

pytestmark = pytest.mark.usefixtures("no_sessions_left")
SETTINGS = {
    "profile default": {"checkpoint": "cell"},
    "profile asking": {"functions": "ask", "level": "", "spares": "0"},
}
Begin = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def begin(daemon: Daemon) -> Iterator[Begin]:
    """The command line, in the background."""
    begun = []

    def it(*arguments: str, on: Path = daemon.socket) -> subprocess.Popen[str]:
        begun.append(
            subprocess.Popen(
                [str(BIN / "lair"), *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                env={**daemon.env, "LAIR_SOCKET": str(on), "LAIR_NO_START": "1"},
            )
        )
        return begun[-1]

    yield it
    for process in begun:
        process.kill()
        process.communicate()


def waiting(daemon: Daemon, session: str | None = None, n: int = 1) -> list[Any]:
    """The calls that wait, as soon as there are so many."""

    def found() -> Any:
        calls = daemon.lair_json("calls", *([session] if session else [])).get(
            "calls", []
        )  # or there is no session yet
        return calls if len(calls) == n else None

    result: list[Any] = wait_until(found, f"{n} calls wait")
    return result


def python(code: str) -> str:
    return f"{shlex.quote(sys.executable)} -c {shlex.quote(code)}"


ADD = "add(a: int, b: int = 5)=" + python("import json,sys; a = json.load(sys.stdin); print(a['a'] + a['b'])")


# ---- commands ----


@pytest.mark.parametrize(
    "function, code, said",
    [
        (ADD, "tools.add(2, b=3)", "5"),
        (ADD, "tools.add(2)", "7"),
        (ADD, "import inspect; str(inspect.signature(tools.add))", "'(a: int, b: int = 5)'"),
        ("echo=cat", "tools.echo(x=1, y=['a', None, 1.5])", "{'x': 1, 'y': ['a', None, 1.5]}"),
        ("echo=cat", "tools.echo(x='Gr\\xfc\\xdfe', y=b'\\xff')", "{'x': 'Grüße', 'y': '/w=='}"),
        ('echo(x, more: dict = {"a": [1, 2]})=cat', "tools.echo('y')", "{'x': 'y', 'more': {'a': [1, 2]}}"),
        ("a.b=cat", "tools.a.b(x=1)", "{'x': 1}"),
        ("nothing=:", "print(tools.nothing())", "None"),
        ("blank=echo ' '", "print(tools.blank())", "None"),
        ("text=echo '\"x\"'", "tools.text()", "'x'"),
        ("unread=echo 1", "tools.unread(x='y' * 1_000_000)", "1"),
        ("large=cat", "len(tools.large(x='y' * 1_000_000)['x'])", "1000000"),
        ('name=echo \\"$LAIR_FUNCTION\\"', "tools.name()", "'name'"),
        ("left=sleep 1000 >/dev/null 2>&1 & echo 1", "tools.left()", "1"),
    ],
)
def test_a_command_answers(daemon: Daemon, function: str, code: str, said: str) -> None:
    result = daemon.lair("exec", "--function", function, code)
    assert (result.returncode, result.stdout, result.stderr) == (0, said + "\n", "")


@pytest.mark.parametrize(
    "command, error",
    [
        ("echo hello", "ValueError: f wrote what is no JSON: hello"),
        ("echo 1 2", "ValueError: f wrote what is no JSON: 1 2"),
        ("printf '\\033[31m\\377'", "ValueError: f wrote what is no JSON: ?[31m?"),
        ("echo 1; echo oh no >&2; exit 3", "tools.FunctionError: oh no"),
        ("exit 3", "tools.FunctionError: f exited with status 3"),
        ("kill -9 $$", "tools.FunctionError: f was killed by signal 9"),
        ("no-such-command", "no-such-command: not found"),
        ("yes x | head -c 10000 >&2; echo end >&2; exit 1", "x\nx\nend"),
        (
            python("print('[' * 100 + ']' * 100)"),
            "ValueError: f could not be answered: the value is nested too deeply",
        ),
        (
            python("print([1] * 100_000)"),
            "ValueError: f could not be answered: the value is nested too deeply, or has",
        ),
        (python("print('\"' + 'x' * (32 << 20) + '\"')"), "is the limit"),
        ("yes", "tools.FunctionError: f wrote more than 64 MiB"),
    ],
)
def test_a_command_fails(daemon: Daemon, command: str, error: str) -> None:
    result = daemon.lair("exec", "--function", f"f={command}", "tools.f()")
    assert result.returncode == 1 and error in result.stderr
    assert len(result.stderr) < 6000


def test_what_a_command_says_although_it_went_well(daemon: Daemon) -> None:
    result = daemon.lair("exec", "--function", "f=echo careful >&2; echo 1", "tools.f()")
    assert (result.stdout, result.stderr) == ("1\n", "careful\n")


@pytest.mark.parametrize(
    "text, why",
    [
        ("f", "expected NAME=COMMAND or NAME(PARAMETERS)=COMMAND"),
        ("=x", "expected NAME=COMMAND"),
        ("f=", "expected NAME=COMMAND"),
        ("1f=x", "expected NAME=COMMAND"),
        ("f.=x", "expected NAME=COMMAND"),
        ("f(a", "expected , or ) between parameters"),
        ("f(a b)=x", 'expected , or ) between parameters; got "b)=x"'),
        ("f(,)=x", "a parameter has a name"),
        ("f(a: text)=x", 'a type is str, int, float, bool, list, dict or any; got "text"'),
        ("f(a = x)=x", "a default is JSON"),
    ],
)
def test_a_function_that_is_none(daemon: Daemon, text: str, why: str) -> None:
    result = daemon.lair("exec", "--function", text, "1")
    assert result.returncode == USAGE and why in result.stderr


def test_two_functions_of_one_name(daemon: Daemon) -> None:
    result = daemon.lair("exec", "--function", "f=x", "--function", "f=y", "1")
    assert result.returncode == USAGE and "two functions are called f" in result.stderr


def test_arguments_by_name(daemon: Daemon) -> None:
    result = daemon.lair("exec", "--function", "f=cat", "tools.f(1, 2)")
    assert "TypeError: f(): its arguments are given by name, as f(name=value)" in result.stderr


@pytest.mark.parametrize("flag", ["--ask", "--effect"])
def test_a_pattern_without_a_function(daemon: Daemon, flag: str) -> None:
    """A slip would let the call pass without a question."""
    result = daemon.lair("exec", "--function", "pay=x", flag, "p*", flag, "apy", "1")
    assert result.returncode == USAGE and f'{flag}: there is no function "apy"' in result.stderr


def test_a_wrong_function_starts_no_daemon(daemon: Daemon) -> None:
    result = daemon.lair("exec", "--function", "f", "1", env={"LAIR_SOCKET": "/nonexistent/socket"})
    assert result.returncode == USAGE


def test_commands_run_side_by_side(daemon: Daemon, tmp_path: Path) -> None:
    """Each waits for the others, and there are more than run at once."""
    together = f"f(n: int)=read -r line; touch {tmp_path}/$$; while [ $(ls {tmp_path} | wc -l) -lt 32 ]; do sleep 0.05; done; echo 1"
    code = "import asyncio\nsum(await asyncio.gather(*[tools.f.aio(i) for i in range(48)]))"
    result = daemon.lair("exec", "--function", together, code)
    assert (result.stdout, result.stderr) == ("48\n", "")


def commands(process: subprocess.Popen[str]) -> list[int]:
    """Those that have become what they are to be."""
    return [pid for pid in children(process.pid) if command_of(pid).startswith(("sh ", "sleep "))]


SLEEP = "f=sleep 1000 & sleep 1001"


def gone(pids: list[int]) -> bool:
    return not any(
        Path(f"/proc/{pid}").exists() and "Z" not in Path(f"/proc/{pid}/stat").read_text().split()[2]
        for pid in pids
    )


def family(process: subprocess.Popen[str]) -> list[int]:
    """The command and what it has started."""

    def both() -> list[int]:
        found = commands(process)
        return [*found, *children(found[0])] if found and len(children(found[0])) == 2 else []

    result: list[int] = wait_until(both, "the command runs")
    return result


def test_ctrl_c_ends_the_command(begin: Begin) -> None:
    process = begin("exec", "-s", "a", "--function", SLEEP, "tools.f()")
    pids = family(process)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=20)
    assert process.returncode == 130 and "KeyboardInterrupt" in err
    wait_until(lambda: gone(pids), "the command has ended")


def test_an_interrupt_from_elsewhere_ends_the_command(begin: Begin, daemon: Daemon) -> None:
    stubborn = "f=trap '' TERM; sleep 1000 & sleep 1001; sleep 1002"
    code = "try: tools.f()\nexcept KeyboardInterrupt: print('on', flush=True); input()"
    process = begin("exec", "-s", "a", "--function", stubborn, code)
    pids = family(process)
    daemon.lair("interrupt", "a")
    assert process.stdout and process.stdout.readline() == "on\n"
    wait_until(lambda: gone(pids), "the command has ended")
    assert process.communicate("\n", timeout=20)[1] == ""
    assert process.returncode == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_the_end_of_lair_ends_the_command(begin: Begin, number: int) -> None:
    process = begin("exec", "-s", "a", "--function", "f=exec sleep 1000", "tools.f()")
    pids = wait_until(lambda: commands(process), "the command runs")
    process.send_signal(number)
    process.wait(20)
    wait_until(lambda: gone(pids), "the command has ended")


def test_what_was_done_is_not_repeated_in_silence(daemon: Daemon, tmp_path: Path) -> None:
    pay = f"pay(to)=echo x >>{tmp_path}/paid; echo 1"
    arguments = ["exec", "-s", "a", "--function", pay, "--effect", "p*", "tools.pay('bob')"]
    daemon.lair("exec", "-s", "a", "1")
    assert daemon.lair(*arguments).stdout == "1\n"
    assert 'not undone: called pay(to="bob") in cell 2' in daemon.lair("undo", "a").stderr
    assert "RepeatError" in daemon.lair(*arguments).stderr
    assert (tmp_path / "paid").read_text() == "x\n"
    assert daemon.lair(*arguments, "--again").stdout == "1\n"
    assert (tmp_path / "paid").read_text() == "x\nx\n"


def test_a_detached_cell_is_answered_by_who_attaches(daemon: Daemon) -> None:
    key = daemon.lair("exec", "-d", "-s", "a", "--function", ADD, "tools.add(1) + tools.add(2)").stdout.strip()
    waiting(daemon, "a")
    result = daemon.lair("attach", "--key", key, "a", "--function", ADD)
    assert (result.stdout, result.stderr) == ("13\n", "")
    key = daemon.lair("exec", "-d", "-s", "a", "--function", ADD, "tools.add(1)").stdout.strip()
    waiting(daemon, "a")
    result = daemon.lair("attach", "--key", key, "a", "--function", "other=x")
    assert "FunctionError: who answers now does not have that function" in result.stderr


def test_a_prompt_has_functions(terminal: Callable[..., Terminal]) -> None:
    it = terminal("repl", "--function", ADD)
    it.say("tools.add(2, 3)", "\r\n5\r\n")
    it.say("tools.add(4, 3)", "\r\n7\r\n")
    it.prompt()
    it.type("\x04")
    it.expect("keeps running")


# ---- calls that wait ----

PAY = "pay(to, amount: int)=echo '\"paid\"'"
CALL = "tools.pay('bob', 5)"
LONG = "tools.pay('bob' + ' ' * 3000 + 'rm -rf /', 5)"


def test_calls_are_listed(begin: Begin, daemon: Daemon) -> None:
    assert daemon.lair("calls").stdout == "CALL  STATE  AGE  FUNCTION  WHY\n"
    process = begin("exec", "-s", "a", "--function", PAY, "--ask", "p*", CALL)
    (call,) = waiting(daemon, "a")
    assert {**call, "age": 0, "key": ""} == {
        "session": "a",
        "key": "",
        "cell": 1,
        "number": 1,
        "function": "pay",
        "arguments": {"to": "bob", "amount": 5},
        "bytes": call["bytes"],
        "state": "asks",
        "why": "who offers it wants each call of it approved",
        "age": 0,
        "uid": os.getuid(),
    }
    heads, row = daemon.lair("calls", "a").stdout.splitlines()
    assert row.startswith("a 1/1 ") and ' pay(to="bob", amount=5) ' in row and " asks " in row
    assert daemon.lair("calls", "b").returncode == TROUBLE
    assert daemon.lair("answer", "a", "1", "--approve").stdout == "call 1 was approved\n"
    assert process.communicate(timeout=20)[0] == "'paid'\n"


def test_a_hostile_call_is_listed_tamely(begin: Begin, daemon: Daemon) -> None:
    code = "tools.pay('\\x1b[2J\\u202e' + 'x' * 5000, 5)"
    begin("exec", "-s", "a", "--function", PAY, "--ask", "p*", code)
    waiting(daemon, "a")
    listed = daemon.lair("calls").stdout
    assert "\x1b" not in listed and "\u202e" not in listed and "amount=5)" in listed and len(listed) < 500


def test_who_is_not_at_a_terminal_is_told_how_to_answer(begin: Begin, daemon: Daemon) -> None:
    for session in (["-s", "a"], []):
        process = begin("exec", *session, "--function", PAY, "--ask", "*", CALL)
        assert process.stderr
        told = process.stderr.readline()
        assert told.startswith('lair: pay(to="bob", amount=5) waits for approval: lair answer ')
        words = shlex.split(told.partition("lair answer ")[2].partition(" --approve")[0])
        assert words[0] == "--key" and words[2] == "1"  # no other cell's
        assert daemon.lair("answer", *words, "--approve").returncode == 0
        assert process.communicate(timeout=20) == ("'paid'\n", "")


def test_a_program_is_told(begin: Begin, daemon: Daemon) -> None:
    process = begin("exec", "--json", "--stream", "-s", "a", "--function", PAY, "--ask", "*", CALL)
    assert process.stdout
    event = json.loads(process.stdout.readline())
    assert event["event"] == "held" and event["call"]["arguments"] == {"to": "bob", "amount": 5}
    result = daemon.lair_json(
        "answer", "--refuse", "too much", event["call"]["session"], str(event["call"]["number"])
    )
    assert result == {"session": "a", "key": None, "number": 1, "outcome": "refused"}
    out, err = process.communicate(timeout=20)
    assert json.loads(out.splitlines()[-1])["error"]["value"] == "pay was refused: too much" and err == ""


@pytest.mark.parametrize(
    "arguments, said",
    [
        (["7"], "7"),
        (['{"a": [1, null]}'], "{'a': [1, None]}"),
        (["--", "-5"], "-5"),
        (["--refuse", "no"], "PermissionError: pay was refused: no"),
        (["--approve"], "'paid'"),
    ],
)
def test_answers(begin: Begin, daemon: Daemon, arguments: list[str], said: str) -> None:
    process = begin("exec", "-s", "a", "--function", PAY, "--ask", "*", CALL)
    waiting(daemon, "a")
    result = daemon.lair("answer", "a", "1", *arguments)
    assert result.returncode == 0 and result.stderr == ""
    assert said in "".join(process.communicate(timeout=20))
    again = daemon.lair("answer", "a", "1", *arguments)
    assert again.returncode == TROUBLE and "no such call waits" in again.stderr


@pytest.mark.parametrize("arguments", [["--approve"], ["--refuse", "no"], ["5"]])
def test_an_answer_is_for_one_cell(begin: Begin, daemon: Daemon, arguments: list[str]) -> None:
    """The next one has calls of the same numbers, and nobody has seen them."""
    daemon.lair("exec", "-s", "a", "1")
    begin("exec", "-s", "a", "--function", PAY, "--ask", "*", CALL)
    waiting(daemon, "a")
    gone = daemon.lair("answer", "a", "1/1", *arguments)
    assert gone.returncode == TROUBLE and "no such call waits" in gone.stderr
    assert daemon.lair("answer", "a", "2/1", *arguments).returncode == 0


def test_an_answer_from_stdin(begin: Begin, daemon: Daemon) -> None:
    process = begin("exec", "-s", "a", "--function", PAY, "--ask", "*", f"len({CALL})")
    waiting(daemon, "a")
    assert daemon.lair("answer", "a", "1", "-", input=json.dumps("x" * 300_000)).returncode == 0
    assert process.communicate(timeout=20)[0] == "300000\n"


@pytest.mark.parametrize("value", ["[" * 20 + "]" * 20, json.dumps([0] * 70_000)])
def test_an_answer_that_the_daemon_would_not_read(begin: Begin, daemon: Daemon, value: str) -> None:
    begin("exec", "-s", "a", "--function", PAY, "--ask", "*", CALL)
    waiting(daemon, "a")
    answered = daemon.lair("answer", "a", "1", "-", input=value, timeout=10)
    assert answered.returncode == 125
    assert "the answer is nested too deeply, or has too many parts" in answered.stderr
    assert waiting(daemon, "a")


@pytest.mark.parametrize(
    "arguments, why",
    [
        (["a", "1", "nonsense"], 'the value is no JSON, in which text is "in quotes"'),
        (["a", "1", "[1"], "the value is no JSON"),
        (["a", "1", "-5"], "there is no flag -5 here; a number below zero comes after --"),
        (["a", "1"], "expected a VALUE in JSON, --approve, or --refuse WHY"),
        (["a", "1", "1", "--approve"], "one of VALUE, --approve and --refuse WHY"),
        (["a", "1", "--approve", "--refuse", "x"], "one of VALUE, --approve and --refuse WHY"),
        (["a"], "expected the number of a call, which lair calls shows"),
        (["a", "1/x", "1"], 'expected the number of a call, which lair calls shows; got "1/x"'),
        (["a", "0/1", "1"], 'expected the number of a call, which lair calls shows; got "0/1"'),
        (["a", "1/1/1", "1"], 'expected the number of a call, which lair calls shows; got "1/1/1"'),
        (["a", "x", "1"], 'expected the number of a call, which lair calls shows; got "x"'),
        (["a", "1", "2", "3"], "one argument too many"),
        (["--key", "k", "1", "2", "3"], "one argument too many"),
    ],
)
def test_a_wrong_answer_loses_nothing(begin: Begin, daemon: Daemon, arguments: list[str], why: str) -> None:
    process = begin("exec", "-s", "a", "--function", PAY, "--ask", "*", CALL)
    waiting(daemon, "a")
    result = daemon.lair("answer", *arguments)
    assert result.returncode == USAGE and why in result.stderr
    assert daemon.lair("answer", "a", "1", "--approve").returncode == 0
    assert process.communicate(timeout=20)[0] == "'paid'\n"


def test_only_what_asks_is_approved(begin: Begin, daemon: Daemon) -> None:
    process = begin("exec", "-s", "a", "--function", "f=sleep 1000", "tools.f()")
    waiting(daemon, "a")
    result = daemon.lair("answer", "a", "1", "--approve")
    assert result.returncode == TROUBLE and "this call does not ask" in result.stderr
    assert daemon.lair("answer", "a", "1", "3").returncode == 0
    assert process.communicate(timeout=20)[0] == "3\n"


def test_a_command_puts_a_call_aside(begin: Begin, daemon: Daemon) -> None:
    process = begin("exec", "-s", "a", "--function", "f=echo Anna decides >&2; exit 75", "tools.f()")
    assert process.stderr and "f is put aside: Anna decides. lair calls shows it" in process.stderr.readline()
    (call,) = waiting(daemon, "a")
    assert (call["state"], call["why"]) == ("held", "Anna decides")
    assert daemon.lair("answer", "a", "1", "3").returncode == 0
    assert process.communicate(timeout=20)[0] == "3\n"


@pytest.mark.parametrize("session", [["-s", "a"], []])
def test_who_attaches_is_told_what_waits(begin: Begin, daemon: Daemon, session: list[str]) -> None:
    code = f"{CALL}, tools.later()"
    later = "later=echo Anna decides >&2; exit 75"
    functions = ["--function", PAY, "--function", later, "--ask", "pay"]
    key = daemon.lair("exec", "-d", *session, *functions, code).stdout.strip()
    process = begin("attach", *session[1:], "--key", key)
    assert process.stderr
    assert process.stderr.readline().startswith('lair: pay(to="bob", amount=5) waits for approval: lair answer ')
    daemon.lair("answer", "--key", key, "1", "7")
    other = begin("attach", *session[1:], "--key", key, *functions)
    assert process.stderr.readline().startswith("lair: later() is put aside: Anna decides. lair answer ")
    daemon.lair("answer", "--key", key, "2", "8")
    assert process.communicate(timeout=20) == other.communicate(timeout=20)[:1] + ("",)


# ---- at a terminal ----


def test_the_person_is_asked(terminal: Callable[..., Terminal]) -> None:
    it = terminal("exec", "--function", PAY, "--ask", "*", f"[{CALL}, {CALL}]")
    it.expect('pay(to="bob", amount=5): allow? [y/N] ')
    it.type("y\r")
    it.expect('pay(to="bob", amount=5): allow? [y/N] ')
    it.type("Yes\r")
    it.expect("['paid', 'paid']")
    assert it.wait() == 0


@pytest.mark.parametrize("answer", ["n", "", "no", "yep", "x" * 50])
def test_everything_else_is_a_no(terminal: Callable[..., Terminal], answer: str) -> None:
    it = terminal("exec", "--function", PAY, "--ask", "*", CALL)
    it.expect("allow? [y/N] ")
    it.type(answer + "\r")
    it.expect("PermissionError: pay was refused: the person at the terminal said no")
    assert it.wait() == 1


def test_all_of_it_can_be_seen(terminal: Callable[..., Terminal]) -> None:
    it = terminal("exec", "--function", PAY, "--ask", "*", LONG)
    it.expect("... (3013 bytes), amount=5): allow? [y/N, all shows all of it] ")
    it.type("all\r")
    it.expect('rm -rf /", amount=5)\r\n')
    it.expect("allow? [y/N, all shows all of it] ")
    it.type("n\r")
    it.expect("PermissionError")
    assert it.wait() == 1


def test_a_name_is_not_many_arguments(terminal: Callable[..., Terminal]) -> None:
    it = terminal(
        "exec", "--function", "any=echo 1", "--ask", "*", "tools.any(**{'a=1, b': 2, 'c\\x1b\\0': 3, 'd': 4})"
    )
    it.expect('any("a=1, b"=2, "c\\u001B\\u0000"=3, d=4): allow? [y/N] ')
    it.type("y\r")
    assert it.wait() == 0


def test_what_was_typed_before_the_question_is_no_answer(terminal: Callable[..., Terminal], tmp_path: Path) -> None:
    wait = f"wait=until [ -e {tmp_path}/go ]; do sleep 0.05; done"
    it = terminal(
        "exec",
        "--function",
        PAY,
        "--function",
        wait,
        "--ask",
        "pay",
        f"print('on', flush=True); tools.wait(); {CALL}",
    )
    it.expect("on\r\n")
    it.type("y\ry\r")
    it.expect("y\r\ny\r\n")
    (tmp_path / "go").touch()
    it.expect("allow? [y/N] ")
    it.type("n\r")
    it.expect("said no")
    assert it.wait() == 1


def test_a_cell_cannot_pass_off_one_question_for_another(terminal: Callable[..., Terminal], tmp_path: Path) -> None:
    wait = f"wait=until [ -e {tmp_path}/go ]; do sleep 0.05; done"
    code = """
import threading
thread = threading.Thread(target=tools.pay, args=('mallory', 5000))
thread.start()
tools.wait()
print('\\x1b[2K\\rpay(to="bob", amount=5): allow? [y/N] ', end='', flush=True)
thread.join()"""
    it = terminal("exec", "--function", PAY, "--function", wait, "--ask", "pay", code)
    it.expect('pay(to="mallory", amount=5000): allow? [y/N] ')
    (tmp_path / "go").touch()
    it.expect('pay(to="bob", amount=5): allow? [y/N] \r\n')
    it.expect('pay(to="mallory", amount=5000): allow? [y/N] ')
    it.type("n\r")
    it.expect("PermissionError")
    assert it.wait() == 0


def test_several_ask_at_once(terminal: Callable[..., Terminal]) -> None:
    code = "import asyncio\nawait asyncio.gather(*[tools.pay.aio('bob', i) for i in range(3)])"
    it = terminal("exec", "--function", PAY, "--ask", "*", code)
    for i in range(3):
        it.expect(f'pay(to="bob", amount={i}): allow? [y/N] ')
        it.type("y\r")
    it.expect("['paid', 'paid', 'paid']")
    assert it.wait() == 0


def test_somebody_else_is_faster(daemon: Daemon, terminal: Callable[..., Terminal]) -> None:
    it = terminal("exec", "-s", "a", "--function", PAY, "--ask", "*", CALL)
    it.expect("allow? [y/N] ")
    assert daemon.lair("answer", "a", "1", "5").returncode == 0
    it.expect("the call does not ask any more: somebody else has answered")
    it.expect("\r\n5\r\n")
    assert it.wait() == 0


def test_the_end_of_input_leaves_it_open(daemon: Daemon, terminal: Callable[..., Terminal]) -> None:
    it = terminal("exec", "-s", "a", "--function", PAY, "--ask", "*", CALL)
    it.expect("allow? [y/N] ")
    it.type("\x04")
    it.expect('pay(to="bob", amount=5) still waits: lair answer answers it')
    assert daemon.lair("answer", "a", "1", "--approve").returncode == 0
    it.expect("'paid'")
    assert it.wait() == 0


def test_who_attaches_is_asked(daemon: Daemon, terminal: Callable[..., Terminal]) -> None:
    daemon.lair("exec", "-d", "-s", "a", "--function", PAY, "--ask", "pay", CALL)
    waiting(daemon, "a")
    it = terminal("attach", "a", "1")
    it.expect('pay(to="bob", amount=5): allow? [y/N] ')
    it.type("n\r")
    it.expect("PermissionError: pay was refused: the person at the terminal said no")
    assert it.wait() == 1


def test_ctrl_c_at_the_question(terminal: Callable[..., Terminal]) -> None:
    it = terminal("exec", "-s", "a", "--function", PAY, "--ask", "*", CALL)
    it.expect("allow? [y/N] ")
    it.type("\x03")
    it.expect("KeyboardInterrupt")
    assert it.wait() == 130


def test_the_prompt_asks(terminal: Callable[..., Terminal]) -> None:
    it = terminal("repl", "--function", PAY, "--ask", "*")
    it.say(CALL, "allow? [y/N] ")
    it.type("y\r")
    it.expect("'paid'")
    it.say(f"{CALL}; input('name? ')", "allow? [y/N] ")
    it.type("y\r")
    it.expect("name? ")
    it.type("Ada\r")
    it.expect("'Ada'")
    it.prompt()


def test_a_question_of_the_cell_goes_first(terminal: Callable[..., Terminal]) -> None:
    code = "import threading\nthread = threading.Thread(target=tools.pay, args=('bob', 5))\nthread.start()\nprint(input('name? ')); thread.join()"
    it = terminal("exec", "--function", PAY, "--ask", "*", code)
    it.expect("name? ")
    it.type("Ada\r")
    it.expect("allow? [y/N] ")
    it.type("y\r")
    assert it.wait() == 0

"""The command line, as a person and as a program use it."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from daemon import BIN, TROUBLE, USAGE, Daemon, wait_until
from terminal import Terminal

pytestmark = pytest.mark.usefixtures("no_sessions_left")


# ---- exec ----


def test_exec(daemon: Daemon) -> None:
    result = daemon.lair("exec", "print('hello'); 6 * 7")
    assert (result.returncode, result.stdout, result.stderr) == (0, "hello\n42\n", "")


def test_exec_from_stdin_and_file(daemon: Daemon, tmp_path: Path) -> None:
    assert daemon.lair("exec", "-", input="x = 1\nx + 1\n").stdout == "2\n"
    path = tmp_path / "code.py"
    path.write_text("if True:\n    print('from a file')\n")
    assert daemon.lair("exec", "-f", str(path)).stdout == "from a file\n"
    assert daemon.lair("exec", "-f", "-", input="3").stdout == "3\n"


def test_a_line_that_is_not_utf8_answers_the_cell(daemon: Daemon) -> None:
    assert daemon.lair("exec", "input() == 'caf\\ufffd'", input="caf\udce9\n").stdout == "True\n"


def test_streams_pass_through(daemon: Daemon) -> None:
    result = daemon.lair("exec", "import os, sys; os.write(1, b'\\xff'); print('e', file=sys.stderr)")
    assert (result.stdout, result.stderr) == ("\udcff", "e\n") or result.stdout.startswith("\udcff")


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("1", 0),
        ("1/0", 1),
        ("import sys; sys.exit(7)", 7),
        ("import os; os._exit(9)", 9),
        ("import os; os.kill(os.getpid(), 9)", 137),
        ("import os; os.kill(os.getpid(), 11)", 139),
        ("x = = 1", 1),
    ],
)
def test_exec_exits_with_the_returncode(daemon: Daemon, code: str, status: int) -> None:
    assert daemon.lair("exec", code).returncode == status


def test_a_traceback_goes_to_stderr(daemon: Daemon) -> None:
    result = daemon.lair("exec", "1/0")
    assert result.stdout == ""
    assert result.stderr.startswith("Traceback (most recent call last):\n")
    assert result.stderr.endswith("ZeroDivisionError: division by zero\n")


def test_too_few_descriptors_are_said(daemon: Daemon) -> None:
    for n in range(8, 24):
        result = subprocess.run(
            ["bash", "-c", f"ulimit -n {n}; exec {BIN}/lair exec 1"],
            capture_output=True,
            text=True,
            timeout=20,
            env={**daemon.env, "LAIR_SOCKET": str(daemon.socket), "LAIR_NO_START": "1"},
        )
        assert result.returncode == 0 or "Too many open files" in result.stderr
        assert result.returncode in (0, TROUBLE), f"with {n} descriptors"


def test_output_comes_as_it_is_written(daemon: Daemon) -> None:
    code = "import time\nfor i in range(3): print(i); time.sleep(0.4)"
    process = subprocess.Popen(
        [str(BIN / "lair"), "exec", code],
        stdout=subprocess.PIPE,
        env={**daemon.env, "LAIR_SOCKET": str(daemon.socket)},
    )
    assert process.stdout is not None
    started = time.monotonic()
    assert process.stdout.readline() == b"0\n"
    assert time.monotonic() - started < 0.9
    assert process.stdout.read() == b"1\n2\n"
    assert process.wait() == 0


def test_a_closed_pipe_ends_it(daemon: Daemon) -> None:
    command = f"{BIN}/lair exec -s a 'while True: print(1)' | head -1"
    result = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command}"],
        capture_output=True,
        timeout=20,
        env={**daemon.env, "LAIR_SOCKET": str(daemon.socket)},
    )
    assert result.stdout == b"1\n"
    wait_until(lambda: daemon.client().info("a").state == "idle", "the cell is interrupted")


@pytest.fixture
def unread(daemon: Daemon) -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Start lair exec, until it waits for somebody to read what it writes."""
    started = []
    out, into = os.pipe()

    def start(*arguments: str) -> subprocess.Popen[bytes]:
        env = {**daemon.env, "LAIR_SOCKET": str(daemon.socket)}
        started.append(subprocess.Popen([str(BIN / "lair"), "exec", *arguments], stdout=into, env=env))
        wait_until(lambda: not select.select([], [into], [], 0)[1], "the pipe is full")
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait()
    os.close(out)
    os.close(into)


@pytest.mark.parametrize("flags", [[], ["--json", "--stream"]])
def test_sigterm_ends_it_while_nobody_reads(
    daemon: Daemon, unread: Callable[..., subprocess.Popen[bytes]], flags: list[str]
) -> None:
    process = unread("-s", "a", *flags, "while True: print('x' * 100)")
    process.terminate()
    assert process.wait(10) == 128 + signal.SIGTERM
    wait_until(lambda: daemon.client().info("a").state == "idle", "the cell is interrupted")


def test_sigterm_ends_it_while_nobody_reads_what_is_shown(
    daemon: Daemon, unread: Callable[..., subprocess.Popen[bytes]]
) -> None:
    process = unread("-s", "a", "while True: display('x' * 1000)")
    process.terminate()
    assert process.wait(10) == 128 + signal.SIGTERM


def test_sigterm_ends_it_while_nobody_reads_the_result(unread: Callable[..., subprocess.Popen[bytes]]) -> None:
    process = unread("--json", "print('x' * 200000)")
    process.terminate()
    assert process.wait(10) == -signal.SIGTERM


def test_ctrl_c_twice_ends_it_while_nobody_reads(
    daemon: Daemon, unread: Callable[..., subprocess.Popen[bytes]]
) -> None:
    process = unread("-s", "a", "while True: print('x' * 100)")
    process.send_signal(signal.SIGINT)
    wait_until(lambda: daemon.client().info("a").state == "idle", "the cell is interrupted")
    process.send_signal(signal.SIGINT)
    assert process.wait(10) == 128 + signal.SIGINT


def interrupt_exec(daemon: Daemon, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    process = subprocess.Popen(
        [str(BIN / "lair"), "exec", *arguments, "print('on', flush=True)\nwhile True: pass"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**daemon.env, "LAIR_SOCKET": str(daemon.socket)},
    )
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=10)
    return subprocess.CompletedProcess(arguments, process.returncode, out, err)


def test_ctrl_c_interrupts_the_cell(daemon: Daemon) -> None:
    daemon.lair("exec", "-s", "a", "x = 5")
    result = interrupt_exec(daemon, "-s", "a")
    assert result.returncode == 130
    assert b"KeyboardInterrupt" in result.stderr
    assert daemon.lair("exec", "-s", "a", "x").stdout == "5\n"


def test_ctrl_c_interrupts_a_one_shot(daemon: Daemon) -> None:
    assert interrupt_exec(daemon).returncode == 130


def test_what_was_blocked_is_said_once(daemon: Daemon) -> None:
    result = daemon.lair("exec", "open('/etc/hosts', 'w')")
    assert result.stderr.count("/etc/hosts") == 2  # the line of the traceback, and its end
    decides = f"lair: write in [profile default] of {daemon.config} decides this"
    assert result.stderr.endswith(
        "\nPermissionError: /etc/hosts: write only below the session's directory (write-outside-workspace)\n"
        f"{decides}\n"
    )
    caught = "for i in range(10):\n    try: open(f'/etc/no{i}', 'w')\n    except OSError: pass"
    result = daemon.lair("exec", caught)
    assert result.returncode == 0
    told = ", ".join(f"/etc/no{i} (write-outside-workspace)" for i in range(8))
    assert result.stderr == f"lair: blocked: {told} and 2 more\n{decides}\n"


# ---- --json ----

KEYS = {
    "session",
    "cell",
    "returncode",
    "state",
    "cause",
    "stdout",
    "stderr",
    "text",
    "error",
    "truncated",
    "duration_ms",
    "limit",
}


def test_exec_json(daemon: Daemon) -> None:
    document = daemon.lair_json("exec", "-s", "json", "print('out'); 5")
    assert set(document) >= KEYS
    expected = {"session": "json", "cell": 1, "returncode": 0, "state": "kept", "cause": None, "stdout": "out\n"}
    assert {key: document[key] for key in expected} == expected
    assert (document["stderr"], document["text"], document["error"], document["truncated"]) == (
        "",
        "5",
        None,
        False,
    )
    assert document["duration_ms"] >= 0


def test_exec_json_is_one_document_whatever_is_printed(daemon: Daemon) -> None:
    result = daemon.lair("exec", "--json", "print('{}\\n[]'); import os; os.write(1, b'\\xff\\n')")
    document = json.loads(result.stdout)
    assert document["stdout"].startswith("{}\n[]\n\ufffd")
    assert document["stdout_base64"]


def test_exec_json_stream_leaves_characters_whole(daemon: Daemon) -> None:
    result = daemon.lair("exec", "--json", "--stream", "print('\u20ac' * 100000, end='')")
    *events, _ = map(json.loads, result.stdout.splitlines())
    assert "".join(event["data"] for event in events) == "\u20ac" * 100000
    assert not any("data_base64" in event for event in events)


def test_exec_json_stream_tells_of_half_a_character(daemon: Daemon) -> None:
    result = daemon.lair("exec", "--json", "--stream", "import os; os.write(1, b'a\\xe2\\x82'); None")
    *events, _ = map(json.loads, result.stdout.splitlines())
    assert [(event["data"], event.get("data_base64")) for event in events] == [("a", None), ("\ufffd" * 2, "4oI=")]


def test_exec_json_stream(daemon: Daemon) -> None:
    result = daemon.lair("exec", "--json", "--stream", "print('a'); print('b'); 3")
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    assert "".join(line["data"] for line in lines[:-1]) == "a\nb\n"
    assert all(line["event"] == "stdout" for line in lines[:-1])
    assert lines[-1]["text"] == "3"


def test_errors_in_json(daemon: Daemon) -> None:
    result = daemon.lair("info", "nobody", "--json")
    assert result.returncode == TROUBLE
    assert json.loads(result.stdout)["error"]["code"] == "no_session"


# ---- the verbs about sessions ----


def test_open_ls_info_close(daemon: Daemon) -> None:
    assert daemon.lair("open", "a").returncode == 0
    assert daemon.lair("exec", "-s", "a", "1").returncode == 0
    listing = daemon.lair("ls").stdout
    assert listing.splitlines()[0].split()[:3] == ["SESSION", "PROFILE", "STATE"]
    assert listing.splitlines()[1].split()[:3] == ["a", "default", "idle"]
    info = daemon.lair_json("info", "a")
    assert set(info) >= {"session", "profile", "state", "workspace", "created", "idle", "cells"}
    assert (info["session"], info["cells"]) == ("a", 1)
    assert daemon.lair("close", "a").returncode == 0
    assert daemon.lair("info", "a").returncode == TROUBLE


def test_ls_json(daemon: Daemon) -> None:
    for name in ("b", "a"):
        daemon.lair("open", name)
    document = daemon.lair_json("ls")
    sessions = document["sessions"] if isinstance(document, dict) else document
    assert [session["session"] for session in sessions] == ["b", "a"]


@pytest.mark.parametrize("verb", ["info", "reset", "close", "interrupt"])
def test_a_session_that_is_not_there(daemon: Daemon, verb: str) -> None:
    result = daemon.lair(verb, "nobody")
    assert result.returncode == TROUBLE
    assert result.stderr.startswith("lair: ")
    assert "nobody" in result.stderr


@pytest.mark.parametrize("verb", ["open", "info", "interrupt", "reset", "close"])
def test_every_verb_about_a_session_speaks_json(daemon: Daemon, verb: str) -> None:
    daemon.lair("open", "a")
    result = daemon.lair(verb, "a", "--json")
    assert result.returncode == 0, result.stderr
    assert isinstance(json.loads(result.stdout), dict)


def test_status(daemon: Daemon) -> None:
    result = daemon.lair("status")
    assert result.returncode == 0
    document = daemon.lair_json("status")
    assert (document["running"], document["keeper_pid"]) == (True, daemon.process.pid)
    pids = f"pid {daemon.process.pid}; its router, pid {document['pid']}, for "
    assert result.stdout.startswith(f"running on {daemon.socket}, {pids}")


# ---- usage ----


def test_help(daemon: Daemon) -> None:
    for arguments in ((), ("help",), ("--help",)):
        result = daemon.lair(*arguments)
        assert result.returncode == 0
        for verb in "exec open ls info interrupt reset close repl start stop status".split():
            assert f"  {verb} " in result.stdout
    assert "--svg" in daemon.lair("repl", "--help").stdout
    assert "--svg" not in daemon.lair("attach", "--help").stdout
    for verb in ("exec", "repl", "ls"):
        assert f"usage: lair {verb}" in daemon.lair(verb, "--help").stdout


@pytest.mark.parametrize(
    "arguments",
    [
        ["dance"],
        ["exec", "--nonesuch", "1"],
        ["exec"],
        ["exec", "1", "2"],
        ["info"],
        ["info", "a", "b"],
        ["exec", "--timeout", "soon", "1"],
        ["exec", "-s"],
        ["exec", "-f", "/nonexistent/file"],
        ["ls", "extra"],
    ],
)
def test_a_wrong_command_line(daemon: Daemon, arguments: list[str]) -> None:
    result = daemon.lair(*arguments)
    assert result.returncode == USAGE
    assert result.stdout == ""
    assert result.stderr.startswith("lair: ")


def test_the_session_as_an_argument(daemon: Daemon) -> None:
    """Which it is of every other verb."""
    result = daemon.lair("exec", "work", "1 + 1")
    assert result.returncode == 2
    assert '"1 + 1" is one argument too many; expected [-s ID] CODE' in result.stderr


def test_code_as_a_flag(daemon: Daemon) -> None:
    """It is python's that takes code with -c; here that is a file, which is looked for also where none is needed."""
    result = daemon.lair("exec", "-c", "print(1)", "2")
    assert result.returncode == 2
    assert "--config print(1): No such file or directory" in result.stderr


def test_a_close_verb_is_suggested(daemon: Daemon) -> None:
    assert "exec" in daemon.lair("exce", "1").stderr


# ---- starting the daemon ----


@pytest.fixture
def private(tmp_path: Path) -> Iterator[dict[str, str]]:
    """An environment in which no daemon runs; one that gets started is stopped."""
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "LAIR_SOCKET": f"/tmp/lair-cli-{os.getpid()}/socket"}
    yield env
    lair(env, "stop")


def lair(env: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(BIN / "lair"), *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        env=env,
        stdin=subprocess.DEVNULL,
    )


def test_no_set_up_at_all(private: dict[str, str]) -> None:
    """With the settings that are shipped: `lair exec` starts laird, which stays."""
    assert lair(private, "exec", "-s", "a", "x = 41").returncode == 0
    assert lair(private, "exec", "-s", "a", "x + 1").stdout == "42\n"
    assert lair(private, "status").returncode == 0
    assert lair(private, "stop").returncode == 0
    assert lair(private, "status").returncode == 1
    assert not Path(private["LAIR_SOCKET"]).exists()


def test_no_start(private: dict[str, str]) -> None:
    result = lair(private, "exec", "--no-start", "1")
    assert result.returncode == TROUBLE
    assert private["LAIR_SOCKET"] in result.stderr
    assert lair(private, "status").returncode == 1
    assert json.loads(lair(private, "status", "--json").stdout)["running"] is False


def test_start_and_stop(private: dict[str, str]) -> None:
    assert lair(private, "start").returncode == 0
    assert json.loads(lair(private, "start", "--json").stdout)["started"] is False
    assert lair(private, "stop").returncode == 0
    assert lair(private, "stop").returncode in (0, 1)


def test_two_at_once_start_one(private: dict[str, str]) -> None:
    processes = [
        subprocess.Popen(
            [str(BIN / "lair"), "exec", "-s", f"s{i}", "1 + 1"],
            env=private,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for i in range(4)
    ]
    outputs = [process.communicate(timeout=60) for process in processes]
    assert [out for out, _ in outputs] == ["2\n"] * 4, outputs
    assert json.loads(lair(private, "status", "--json").stdout)["sessions"] == 4


def test_a_daemon_that_cannot_start_says_why(private: dict[str, str], tmp_path: Path) -> None:
    config = tmp_path / "bad.conf"
    config.write_text("[daemon]\nnonsense = 1\n")
    result = lair(private, "exec", "--config", str(config), "1")
    assert result.returncode == TROUBLE
    assert f"{config}:2" in result.stderr
    private["LAIR_CONFIG"] = str(config)
    assert f"{config}:2" in lair(private, "exec", "1").stderr
    private["LAIR_CONFIG"] = "/none/such"
    missing = "laird has no settings: /none/such: No such file or directory\n"
    assert lair(private, "exec", "1").stderr == missing


def test_flags_and_environment_name_the_socket(daemon: Daemon, private: dict[str, str]) -> None:
    assert lair(private, "--socket", str(daemon.socket), "exec", "1").stdout == "1\n"
    assert lair({**private, "LAIR_SOCKET": str(daemon.socket)}, "exec", "--no-start", "1").stdout == "1\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_for_somebody_who_is_not_root(tmp_path: Path) -> None:
    runtime = Path(f"/tmp/lair-xdg-{os.getpid()}")
    runtime.mkdir(mode=0o700)
    os.chown(runtime, 54321, 54321)
    env = {"PATH": os.environ["PATH"], "HOME": str(runtime), "XDG_RUNTIME_DIR": str(runtime)}
    command = ["setpriv", "--reuid=54321", "--regid=54321", "--clear-groups", str(BIN / "lair")]

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*command, *arguments], capture_output=True, text=True, env=env, timeout=60)

    try:
        result = run("exec", "-s", "a", "x = 1")
        assert result.returncode == 0, result.stderr
        assert run("exec", "-s", "a", "import os; (x, os.path.exists('/etc/shadow'))").returncode == 0
        assert (runtime / "lair" / "socket").exists()
    finally:
        assert run("stop").returncode == 0
        subprocess.run(["rm", "-rf", str(runtime)], check=True)


# ---- a terminal ----


def test_repl_remembers(terminal: Callable[..., Terminal]) -> None:
    first = terminal("repl", "-s", "a")
    first.say("x = 6 * 7")
    first.say("x", "42")
    first.prompt()
    first.type("\x04")
    assert first.wait() == 0
    assert '"a" keeps running' in first.seen
    assert "lair repl -s a" in first.seen
    second = terminal("repl", "-s", "a")
    second.expect("back after")
    second.say("x + 1", "43")


def test_repl_takes_several_lines(terminal: Callable[..., Terminal]) -> None:
    it = terminal("repl")
    it.say("def f(x):")
    it.prompt("... ")
    it.type("    return x * 2\r")
    it.prompt("... ")
    it.type("\r")
    it.say("f(4")
    it.prompt("... ")
    it.type(")\r")
    it.expect("\n8")


def test_repl_ctrl_c(terminal: Callable[..., Terminal]) -> None:
    it = terminal("repl")
    it.say("y = 5")
    it.say("print('on'); [0 for _ in iter(int, 1)]", "\non")
    it.type("\x03")
    it.expect("KeyboardInterrupt")
    it.prompt()
    it.type("half a li\x03")
    it.say("y", "\n5")


def test_repl_input(terminal: Callable[..., Terminal]) -> None:
    it = terminal("repl")
    it.say("name = input('Who? ')", "\nWho? ")
    it.type("Ada\r")
    it.say("name", "'Ada'")


def test_repl_streams(terminal: Callable[..., Terminal]) -> None:
    it = terminal("repl")
    it.say("import time; print('first'); time.sleep(1.5); print('second')", "\nfirst", 1.2)
    it.expect("second\r\n")  # after a sign of life, if the first second was a long one


def test_repl_keeps_a_history(daemon: Daemon, terminal: Callable[..., Terminal]) -> None:
    first = terminal("repl")
    first.say("'remember me'", "\n'remember me'")
    first.prompt()
    first.type("\x04")
    first.wait()
    second = terminal("repl")
    second.say("\x1b[A", "\n'remember me'")
    history = daemon.directory / "state" / "lair" / "history"
    assert history.stat().st_mode & 0o077 == 0


def test_repl_from_a_pipe(daemon: Daemon) -> None:
    result = daemon.lair("repl", "-s", "a", input="x = 5\nfor i in range(2):\n    print(i)\n\nx\n")
    assert result.returncode == 0
    assert result.stdout == "0\n1\n5\n"
    assert daemon.lair("exec", "-s", "a", "x").stdout == "5\n"

"""How a cell can end, and what becomes of the session."""

from __future__ import annotations

import os
import time

import pytest

from daemon import Daemon, wait_until
from lair import Client


@pytest.mark.parametrize(
    ("code", "returncode"),
    [
        ("import sys; sys.exit()", 0),
        ("import sys; sys.exit(0)", 0),
        ("import sys; sys.exit(3)", 3),
        ("exit(4)", 4),
        ("quit()", 0),
        ("raise SystemExit(5)", 5),
        ("import sys; sys.exit(None)", 0),
        ("import sys; sys.exit(True)", 1),
    ],
)
def test_sys_exit_ends_the_cell_only(client: Client, session: str, code: str, returncode: int) -> None:
    client.exec("x = 1", session)
    reply = client.exec(code + "\nx = 2", session)
    assert (reply.returncode, reply.state, reply.cause, reply.error) == (returncode, "kept", "exit", None)
    assert client.exec("x", session).text == "1"


def test_sys_exit_with_text(client: Client, session: str) -> None:
    reply = client.exec("import sys; sys.exit('something went wrong')", session)
    assert (reply.returncode, reply.state, reply.cause) == (1, "kept", "exit")
    assert reply.stderr == b"something went wrong\n"


@pytest.mark.parametrize(("status", "returncode"), [(0, 0), (7, 7), (255, 255)])
def test_os_exit_takes_the_interpreter(client: Client, session: str, status: int, returncode: int) -> None:
    client.exec("x = 1", session)
    reply = client.exec(f"import os; print('last', flush=True); os._exit({status})", session)
    assert (reply.returncode, reply.state, reply.cause) == (returncode, "reset", "exit")
    assert reply.stdout == b"last\n"
    assert client.exec("'x' in globals()", session).text == "False"


SEGFAULT = "import ctypes; ctypes.string_at(0)"


@pytest.mark.parametrize(
    ("code", "signal"),
    [
        (SEGFAULT, 11),
        ("import os; os.abort()", 6),
        ("import os; os.kill(os.getpid(), 9)", 9),
        ("import os; os.kill(os.getpid(), 15)", 15),
        ("import faulthandler; faulthandler._sigfpe()", 8),
    ],
)
def test_a_crash(client: Client, session: str, code: str, signal: int) -> None:
    client.exec("x = 1; _ = open('f', 'w').write('kept')", session)
    reply = client.exec(f"print('before', flush=True)\n{code}", session)
    assert (reply.returncode, reply.state) == (137 if signal == 9 else 128 + signal, "reset")
    assert reply.cause == f"signal {signal}"
    assert reply.stdout == b"before\n"
    assert client.exec("('x' in globals(), open('f').read())", session).text == "(False, 'kept')"


@pytest.mark.parametrize(
    ("code", "name"),
    [
        (SEGFAULT, "Segmentation fault"),
        ("import os; os.abort()", "Aborted"),
        ("import faulthandler; faulthandler._stack_overflow()", "Segmentation fault"),
    ],
)
def test_a_crash_says_its_signal_and_its_lines(client: Client, session: str, code: str, name: str) -> None:
    """And no list of extension modules, of which there are many by then."""
    client.exec("import sqlite3, ctypes, decimal, lzma", session)
    said = client.exec(f"def f():\n    {code}\nf()", session).stderr.decode()
    assert said.startswith(f"Fatal Python error: {name}\n\n") and len(said) < 500, said
    assert 'File "<cell 2>", line 2 in f\n  File "<cell 2>", line 3 in <module>\n' in said, said
    assert "Extension modules" not in said


def test_a_crash_in_a_queue(client: Client, session: str) -> None:
    """What waits runs in the fresh interpreter, and is told nothing false: the crash's reply said it was reset."""
    from lair import messages as m

    cells = [client.start(code, session) for code in ("x = 1", SEGFAULT, "'x' in globals()")]
    replies = [client.finish(cell, m.ExecReply) for cell in cells]
    assert [reply.state for reply in replies] == ["kept", "reset", "kept"]
    assert replies[2].text == "False"


def test_a_one_shot_that_crashes(client: Client) -> None:
    reply = client.exec(SEGFAULT)
    assert (reply.state, reply.cause) == ("ended", "signal 11")
    assert client.exec("1").text == "1"


def test_dying_between_two_cells(client: Client, session: str) -> None:
    client.exec("x = 1\nimport threading, os, time", session)
    client.exec("threading.Thread(target=lambda: (time.sleep(0.2), os._exit(9))).start()", session)
    time.sleep(0.5)
    reply = client.exec("'x' in globals()", session)
    assert reply.text == "False"
    assert reply.state == "reset"


def test_what_a_cell_left_running_dies_with_the_session(daemon: Daemon, client: Client, session: str) -> None:
    before = len(daemon.processes())
    client.exec("import os, time\nif os.fork() == 0:\n os.setsid()\n time.sleep(300)", session)
    client.shutdown(session)
    wait_until(lambda: len(daemon.processes()) <= before, "nothing but a new spare is there")


def test_a_forked_child_may_go_on(client: Client, session: str) -> None:
    """It runs beside later cells and never answers in their place."""
    code = "import os, time\nif os.fork() == 0:\n time.sleep(0.3)\n open('child', 'w').write('done')\n os._exit(0)"
    assert client.exec(code, session).state == "kept"
    assert client.exec("os.path.exists('child')", session).text == "False"
    time.sleep(0.6)
    assert client.exec("open('child').read()", session).text == "'done'"


def test_a_forked_child_that_falls_out_of_the_cell(client: Client, session: str) -> None:
    reply = client.exec("import os\nx = os.fork()\nprint('here')", session)
    assert reply.returncode == 0
    reply = client.exec("import time; time.sleep(0.2); x > 0", session)
    assert (reply.text, reply.state) == ("True", "kept")


def test_closing_the_descriptors(client: Client, session: str) -> None:
    client.exec("import os; os.close(1); os.close(2); os.close(0)", session)
    assert client.exec("print('still'); 1", session).stdout == b"still\n"


def test_closing_everything(client: Client, session: str) -> None:
    """The channel itself can be closed: that is self-harm, and told as it is."""
    client.exec("x = 1", session)
    reply = client.exec("import os; os.closerange(3, 65536)", session, timeout=5)
    assert reply.state in ("reset", "kept")
    assert client.exec("1 + 1", session, timeout=5).text == "2"


@pytest.mark.parametrize(
    "code",
    [
        "import sys; sys.modules.clear()",
        "import builtins; builtins.__dict__.clear()",
        "import sys; sys.stdout = sys.stderr = sys.stdin = None",
        "import sys; del sys.stdout, sys.stderr, sys.path[:], sys.displayhook",
        "globals().clear()",
        "import builtins; builtins.repr = builtins.compile = builtins.print = None",
        "import gc; gc.disable(); import sys; sys.setrecursionlimit(50)",
        "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)",
        "import traceback, linecache, ast; traceback.__dict__.clear(); linecache.__dict__.clear()",
        "import sys; sys.excepthook = sys.unraisablehook = 1/1",
        "import threading; threading.current_thread = None",
    ],
)
def test_vandalism(client: Client, session: str, code: str) -> None:
    """Whatever a cell does to its own Python, the next one is answered."""
    client.exec(code, session)
    reply = client.exec("6 * 7", session, timeout=10)
    assert reply.text == "42"
    assert client.exec("1/0", session, timeout=10).returncode == 1


def test_forged_frames_end_the_session_alone(client: Client, session: str) -> None:
    """The channel is some descriptor of the interpreter's: whoever finds it can lie, and loses the session."""
    code = (
        "import os, stat\n"
        "for fd in map(int, os.listdir('/proc/self/fd')):\n"
        "    try:\n"
        "        if fd > 2 and stat.S_ISSOCK(os.fstat(fd).st_mode):\n"
        "            os.write(fd, b'\\xff\\xff\\xff\\xff' * 8)\n"
        "    except OSError: pass\n"
        "import time; time.sleep(5)"
    )
    reply = client.exec(code, session, timeout=10)
    assert (reply.state, reply.cause) in (("reset", "violation"), ("ended", "violation"))
    assert client.exec("1", session + "-other").text == "1"
    client.shutdown(session + "-other")


def test_ten_crashes_in_a_row(client: Client, session: str) -> None:
    for _ in range(10):
        assert client.exec(SEGFAULT, session).state == "reset"
    assert client.exec("1", session).text == "1"


def test_pids_are_those_of_the_cage(client: Client, session: str) -> None:
    """Where there is a pid namespace, a session cannot even name a process outside."""
    reply = client.exec("import os; os.getpid()", session)
    info = client.info(session)
    if "pidns" in (info.guards or []):
        assert int(reply.text or 0) < 100
    assert info.pid != os.getpid()

"""The last error of a session: what pdb.pm() looks at, and what is shown of one that the cage is the reason for."""

from __future__ import annotations

import pytest

from lair import Client
from lair.messages import ExecReply

SETTINGS = {
    "profile default": {"checkpoint": "cell", "level": "", "memory": "256M"},
    "profile granted": {"subprocess": "on", "level": ""},
}

FAILS = "def share(n):\n    part = [1]\n    return 1 / n\nshare(0)"


def conversation(client: Client, session: str, code: str, answers: list[str]) -> ExecReply:
    cell, said = client.start(code, session, input=True), iter(answers)
    while True:
        message = client.receive(cell, ExecReply)
        if isinstance(message, ExecReply):
            return message
        client.input(cell, next(said, None))


def test_post_mortem(client: Client, session: str) -> None:
    client.exec(FAILS, session)
    reply = conversation(client, session, "import pdb; pdb.pm()", ["p part, n", "up", "p __name__", "q"])
    assert reply.returncode == 0, reply.stderr
    assert b"-> return 1 / n" in reply.stdout and b"([1], 0)" in reply.stdout and b"-> share(0)" in reply.stdout
    assert b"'__main__'" in reply.stdout


def test_the_last_error(client: Client, session: str) -> None:
    """As at a prompt: the names are not there before one, and stay until the next."""
    client.exec("import sys", session)
    assert client.exec("hasattr(sys, 'last_traceback') or hasattr(sys, 'last_exc')", session).text == "False"
    error = client.exec(FAILS, session).error
    assert error and error["name"] == "ZeroDivisionError"
    client.exec("1 + 1", session)
    code = "frame = sys.last_traceback.tb_frame\nsys.last_type, str(sys.last_value), frame.f_code.co_filename"
    assert client.exec(code, session).text == "(<class 'ZeroDivisionError'>, 'division by zero', '<cell 3>')"
    client.exec("import asyncio\nawait asyncio.sleep(0)\nNone.x", session)
    assert (
        client.exec("frame = sys.last_traceback.tb_frame; frame.f_code.co_filename", session).text == "'<cell 6>'"
    )
    client.exec("1 +", session)
    assert client.exec("sys.last_type, sys.last_traceback", session).text == "(<class 'SyntaxError'>, None)"


def test_a_cell_that_ends_by_exit_is_no_error(client: Client, session: str) -> None:
    assert client.exec("import sys; sys.exit(3)", session).returncode == 3
    assert client.exec("hasattr(sys, 'last_value')", session).text == "False"


def test_undo_brings_the_last_error_back(client: Client, session: str) -> None:
    client.exec("import sys\nraise KeyError('first')", session)
    client.exec("raise KeyError('second')", session)
    assert client.exec("sys.last_value", session).text == "KeyError('second')"
    client.undo(session, 2)
    assert client.exec("sys.last_value, sys.last_traceback.tb_lineno", session).text == "(KeyError('first'), 2)"
    client.undo(session, 2)
    assert client.exec("import sys\nhasattr(sys, 'last_value')", session).text == "False"


def test_a_lack_of_memory_does_not_last(client: Client, session: str) -> None:
    client.exec("import sys\nraise KeyError('before')", session)
    reply = client.exec(
        "def fill():\n    all = []\n    while True: all.append(bytearray(1 << 20))\nfill()", session
    )
    assert reply.error and reply.error["name"] == "MemoryError"
    assert client.exec("len(bytearray(100 << 20))", session).text == str(100 << 20)
    assert client.exec("hasattr(sys, 'last_value')", session).text == "False"


REFUSED = {
    "subprocess": (
        "import subprocess\nsubprocess.run(['ls'])",
        2,
        "ls: no programs here: do it in Python (subprocess-not-granted)",
    ),
    "urllib": (
        "from urllib.request import urlopen\nurlopen('http://a.example/')",
        2,
        "http://a.example/: no network here: do without, or ask the user for the data (network-not-granted)",
    ),
    "function": (
        "import socket\ndef reach():\n    return socket.create_connection(('192.0.2.1', 80))\nreach()",
        3,
        "192.0.2.1:80: no network here: do without, or ask the user for the data (network-not-granted)",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_refusal_is_shown_where_the_session_met_it(client: Client, session: str, what: str) -> None:
    code, line, sentence = REFUSED[what]
    error = client.exec(code, session).error
    assert error
    assert [frame.get("file") for frame in error["frames"]] == [None] * len(error["frames"])
    assert error["frames"][-1]["line"] == line
    assert error["traceback"].endswith(f"\nPermissionError: {sentence}\n")
    assert "/usr/" not in error["traceback"] and "subprocess.py" not in error["traceback"]


def test_a_librarys_error_about_a_refusal(client: Client, session: str) -> None:
    """One sentence, without how the library came from one error to the other."""
    code = (
        "import os, sys\nos.makedirs('site-packages', exist_ok=True)\n"
        "open('site-packages/other.py', 'w').write('''\nimport subprocess\ndef start():\n"
        "    try: subprocess.run(['ls'])\n    except OSError as error: raise RuntimeError(f'cannot: {error}')\n''')\n"
        "sys.path.insert(0, os.path.abspath('site-packages'))\nimport other"
    )
    assert client.exec(code, session).returncode == 0
    error = client.exec("other.start()", session).error
    assert error and error["traceback"].count("Traceback") == 1
    assert error["traceback"].endswith(
        "RuntimeError: cannot: ls: no programs here: do it in Python (subprocess-not-granted)\n"
    )
    assert "other.py" not in error["traceback"]


def test_ones_own_error_about_a_refusal(client: Client, session: str) -> None:
    code = "import subprocess\ntry: subprocess.run(['ls'])\nexcept OSError as error: raise ValueError('mine') from error"
    error = client.exec(code, session).error
    assert error and error["traceback"].count("Traceback") == 2 and "direct cause" in error["traceback"]
    assert "subprocess.py" not in error["traceback"]


def test_other_errors_keep_their_frames(client: Client, session: str) -> None:
    client.open(session, profile="granted")
    error = client.exec("import subprocess\nsubprocess.run(['/no/such'])", session).error
    assert error and error["name"] == "FileNotFoundError" and "subprocess.py" in error["traceback"]
    error = client.exec("import json\njson.loads('{')", session).error
    assert error and "decoder.py" in error["traceback"]

"""What a model reads of the usual outcomes: the same of lair mcp and lair.tools, each thing once, and what to do next."""

from __future__ import annotations

from typing import Any

import pytest

from daemon import Daemon
from lair import Connection
from lair.tools import Tools
from mcp_server import McpServer

SETTINGS = {"profile default": {"checkpoint": "cell"}}

GOES_ON = "The session goes on; what the code had done until then stays."
BACK = "The session was rolled back to the state after cell 1: its variables and files are as they were then."
DEAF = "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass"

# Code, its time, and of what is answered: the value of the error, the note.
TEXTS: dict[str, tuple[str, float | None, str | None, str | None]] = {
    "value": ("6 * 7", None, None, None),
    "exception": ("1 / 0", None, "division by zero", GOES_ON),
    "timeout": (
        "while True: pass",
        0.5,
        None,
        f"The code was stopped after its 0.5 s; timeout_sec gives it more. {GOES_ON}",
    ),
    "roll-back after a timeout": (
        DEAF,
        0.5,
        None,
        f"The code was stopped after its 0.5 s; timeout_sec gives it more. {BACK}",
    ),
    "roll-back after a crash": (
        "import os; os.kill(os.getpid(), 9)",
        None,
        None,
        f"The interpreter crashed or was killed: signal 9. {BACK}",
    ),
    "exit": ("import sys; sys.exit(3)", None, None, f"The code exited with status 3. {GOES_ON}"),
    "a blocked file": (
        "open('/etc/hosts', 'w')",
        None,
        "/etc/hosts: write only below the session's directory (write-outside-workspace)",
        GOES_ON,
    ),
    "network": (
        "import urllib.request; urllib.request.urlopen('http://example.com')",
        None,
        "http://example.com: no network here: do without, or ask the user for the data (network-not-granted)",
        GOES_ON,
    ),
    "a program": (
        "import subprocess; subprocess.run(['ls'])",
        None,
        "ls: no programs here: do it in Python (subprocess-not-granted)",
        GOES_ON,
    ),
    "!ls": (
        "!ls",
        None,
        "ls: no programs here: do it in Python (subprocess-not-granted); import os; os.listdir()",
        GOES_ON,
    ),
    "a missing package": (
        "import cartopy",
        None,
        "No module named 'cartopy'; packages are for the operator of this session to install: "
        "do without cartopy, or tell the user",
        GOES_ON,
    ),
    "a missing module": ("import nonesuch", None, "No module named 'nonesuch'", GOES_ON),
    "much output": (
        "print('x' * 1_000_000)",
        None,
        None,
        "stdout was 1000001 bytes; python_result with from_byte gives any of them.",
    ),
}
# What one of them has besides.
OWN = {"returncode", "restored", "handle"}


@pytest.mark.parametrize(("code", "time", "value", "note"), TEXTS.values(), ids=TEXTS.keys())
def test_texts(
    daemon: Daemon, session: str, code: str, time: float | None, value: str | None, note: str | None
) -> None:
    answers: list[dict[str, Any]] = []
    with (
        McpServer(daemon) as server,
        Connection(str(daemon.socket), start=False) as connection,
        Tools(connection=connection) as tools,
    ):
        server.run("x = 1", session)
        tools.call("python_session_execute", {"code": "x = 1", "session_id": session})
        answers.append(server.run(code, session, **({"timeout_sec": time} if time else {})))
        answers.append(
            tools.call("python_session_execute", {"code": code, "session_id": session, "timeout_sec": time})
        )
    for it in answers:
        assert (it.get("error", {}).get("value"), it.get("note")) == (value, note)
        assert not [key for key, told in it.items() if told in ("", [], {}, None)]
        assert "blocked" not in it  # the error has said it
    theirs, ours = ({key: told for key, told in it.items() if key not in OWN} for it in answers)
    assert ours == theirs

"""check and is_complete: code looked at without being run, and the rules of a profile."""

from __future__ import annotations

import subprocess
from typing import Any

import pytest

from daemon import Daemon
from lair import Client, LairError
from lair import messages as m

RULES = """
    module seaborn: Do not use seaborn
    module os.path: No paths; use pathlib
    call matplotlib.pyplot.figure max 1: One figure a cell
    call print max 2: Print less
    attribute set_color: Leave the colours to the style
    keyword color: No explicit colours"""

SETTINGS = {
    "profile default": {"checkpoint": "cell", "forbid": RULES},
    "profile strict": {"checkpoint": "cell", "forbid": RULES, "forbid_in": "exec"},
}


def check(client: Client, code: str, session: str | None = None, profile: str | None = None) -> m.CheckReply:
    request = m.Check(id=client.new_id(), session=session, profile=profile, code=code)
    return client.call(request, m.CheckReply)


@pytest.mark.parametrize("code", ["", "x = 1", "await f()\n", "# nothing", "  x = 1\n  if x:\n    x", "1; 2"])
def test_valid(client: Client, code: str) -> None:
    assert check(client, code) == m.CheckReply(id=client._last_id, valid=True)


@pytest.mark.parametrize(
    ("code", "error", "line", "offset", "context"),
    [
        ("x = 1\nprint(x", "'(' was never closed", 2, 6, "print(x"),
        ("if x:\ny", "expected an indented block", 2, 1, "y"),
        ("return 1", "'return' outside function", 1, 1, "return 1"),
        ("x = = 1", "invalid syntax", 1, 5, "x = = 1"),
        ("  x = = 1", "invalid syntax", 1, 7, "  x = = 1"),
    ],
)
def test_invalid(client: Client, code: str, error: str, line: int, offset: int, context: str) -> None:
    reply = check(client, code)
    assert not reply.valid
    assert error in (reply.error or "")
    assert (reply.line, reply.offset, reply.context, reply.rule) == (line, offset, context, None)


HOSTILE = {
    "brackets": "(" * 100_000,
    "signs": "-" * 100_000 + "1",
    "a NUL": "x\0",
    "no name": "\N{SNOWMAN}",
    "dots": "a." * 50_000 + "b",
}


@pytest.mark.parametrize("what", HOSTILE)
def test_hostile_code_is_only_invalid(client: Client, session: str, what: str) -> None:
    client.exec("x = 1", session)
    assert not check(client, HOSTILE[what]).valid
    assert not check(client, HOSTILE[what], session).valid
    assert client.exec("x", session).text == "1"


BROKEN = [
    ("import seaborn", "module seaborn", 1, 1),
    ("x = 1\nfrom seaborn import heatmap as h", "module seaborn", 2, 1),
    ("import seaborn.matrix as s", "module seaborn", 1, 1),
    ("__import__('seaborn')", "module seaborn", 1, 1),
    ("import importlib as i\ns = i.import_module('seaborn.matrix')", "module seaborn", 2, 5),
    ("import os\nos.path.join('a')", "module os.path", 2, 1),
    ("import os as o\np = o\np.path.join('a')", "module os.path", 3, 1),
    ("from matplotlib import pyplot as p\np.figure()\np.figure()", "call matplotlib.pyplot.figure max 1", 3, 1),
    ("from matplotlib.pyplot import *\nfigure(); f = figure\nf()", "call matplotlib.pyplot.figure max 1", 3, 1),
    ("for i in x:\n    print(1), print(2), print(3)", "call print max 2", 2, 25),
    ("a.b.set_color('r')", "attribute set_color", 1, 1),
    ("getattr(a, 'set_color')('r')", "attribute set_color", 1, 1),
    ("plot(1,\n     color='r')", "keyword color", 2, 6),
    ("größe = plot(**{'color': 1})", "keyword color", 1, 14),
]


@pytest.mark.parametrize(("code", "rule", "line", "offset"), BROKEN)
def test_rules(client: Client, code: str, rule: str, line: int, offset: int) -> None:
    reply = check(client, code)
    assert (reply.valid, reply.rule, reply.line, reply.offset) == (False, rule, line, offset)
    assert reply.context == code.split("\n")[line - 1]


@pytest.mark.parametrize(
    "code", ["seaborn = 1; seaborn.x", "import seaborns", "figure()", "color = 1", "print(1), print(2)"]
)
def test_what_no_rule_is_about(client: Client, code: str) -> None:
    assert check(client, code).valid


def test_names_of_the_session_are_followed(client: Client, session: str) -> None:
    client.exec("import os as o, sys; from os.path import join as j", session)
    assert check(client, "o.path.sep").valid
    assert check(client, "o.path.sep", session).rule == "module os.path"
    assert check(client, "j('a')", session).valid  # its module calls itself posixpath
    assert check(client, "print(1)\nprint(2)\nprint(3)", session).line == 3


def test_a_rule_about_what_was_imported_before(client: Client, session: str) -> None:
    client.exec("import types, sys\nsys.modules['seaborn'] = sns = types.ModuleType('seaborn')", session)
    assert check(client, "sns.heatmap(1)", session).rule == "module seaborn"
    assert check(client, "sns.heatmap(1)").valid


def test_names_that_are_bound_without_end(client: Client) -> None:
    assert check(client, "import os as x\n" + "x = x.y\n" * 3000 + "x = z = x\n" * 500).valid
    assert check(client, "import os as x\n" + "x = x.y\n" * 2000 + "import seaborn").line == 2002


def test_checking_runs_nothing(client: Client, session: str) -> None:
    client.exec("x = 1", session)
    assert check(client, "x = 2\nimport os; os._exit(1)", session).valid
    assert client.exec("x", session).text == "1"


def test_a_cell_that_breaks_a_rule_is_not_run(client: Client, session: str) -> None:
    client.exec("x = 1", session, profile="strict")
    client.checkpoint(session)
    before = client.checkpoints(session)
    reply = client.exec("x = 2\nimport seaborn", session)
    assert (reply.returncode, reply.cause, reply.state) == (2, "forbidden", "kept")
    assert reply.stderr == b"line 2: Do not use seaborn\n"
    assert [record.cell for record in client.checkpoints(session)] == [record.cell for record in before]
    assert client.exec("x", session).text == "1"
    assert client.undo(session).cell == 1
    assert client.exec("x = = 1", session).cause == "error"


def test_only_check_tells_unless_the_profile_says_more(client: Client, session: str) -> None:
    assert client.exec("import os.path as p; p.sep", session).text == "'/'"


@pytest.mark.parametrize(
    ("code", "status", "indent"),
    [
        ("x = 1", "complete", None),
        ("", "complete", None),
        ("for i in x:", "incomplete", "    "),
        ("for i in x:\n    if i:", "incomplete", "        "),
        ("for i in x:\n    print(i)", "incomplete", "    "),
        ("def f():\n    return 1", "incomplete", None),
        ("for i in x:\n    print(i)\n", "complete", None),
        ("(1,", "incomplete", None),
        ("x = '''a", "incomplete", None),
        ("x = = 1", "invalid", None),
        ("await x", "complete", None),
        ("  x = 1", "complete", None),
        ("(" * 300, "invalid", None),
    ],
)
def test_is_complete(client: Client, session: str, code: str, status: str, indent: str | None) -> None:
    for where in (None, session):
        if where:
            client.open(session)
        reply = client.call(m.IsComplete(id=client.new_id(), session=where, code=code), m.IsCompleteReply)
        assert (reply.status, reply.indent or None) == (status, indent)


def test_a_wrong_rule_is_refused(daemon: Daemon, tmp_path: Any) -> None:
    for rule in (
        "seaborn: no",
        "module: no",
        "module a b: no",
        "call x max: y",
        "module x:",
        "keyword x max -1: y",
    ):
        path = tmp_path / "sessions.conf"
        path.write_text(f"[profile default]\nforbid = {rule}\n")
        done = subprocess.run([daemon.binaries / "laird", "-n", "-c", path], capture_output=True, text=True)
        assert "expected KIND NAME: MESSAGE" in done.stderr, rule


def test_refusals(client: Client, session: str) -> None:
    client.open(session)
    for request in (
        m.Check(id=client.new_id(), profile="nothing", code="1"),
        m.Check(id=client.new_id(), session=session, profile="strict", code="1"),
    ):
        with pytest.raises(LairError, match="profile"):
            client.call(request, m.CheckReply)
    with pytest.raises(LairError, match="code_size"):
        check(client, "#" * 2_000_000)

"""lair vars, inspect, complete, history, check, reset --keep, exec --reload."""

from __future__ import annotations

from pathlib import Path

from daemon import Daemon
from lair import Client

SETTINGS = {"profile default": {"forbid": "module seaborn: Do not use seaborn"}}


def test_vars(daemon: Daemon, client: Client, session: str) -> None:
    client.exec("items = [1, 2]\nx = 'a\\x1b[2J'", session)
    document = daemon.lair_json("vars", session)
    items, x = document["variables"]
    assert document["total"] == 2
    assert items == {"name": "items", "type": "list", "shape": [2], "size": items["size"], "text": "[1, 2]"}
    assert daemon.lair("vars", session).stdout.splitlines()[1:] == [
        f"items  list  2      {items['size']} B  [1, 2]",
        f"x      str   5      {x['size']} B  'a\\x1b[2J'",
    ]
    assert daemon.lair_json("vars", session, "--forget", "items")["total"] == 1
    gone = daemon.lair("vars", session, "--forget", "x,items")
    assert gone.returncode == 125
    assert 'there is no variable "items"' in gone.stderr
    assert daemon.lair_json("vars", session)["total"] == 1
    assert daemon.lair("vars", session, "--forget", ",").returncode == 2


def test_inspect(daemon: Daemon, client: Client, session: str) -> None:
    client.exec('def f(a, b=2):\n    """Adds."""\n    return a + b', session)
    assert (
        daemon.lair("inspect", session, "f").stdout
        == "f(a, b=2)\ntype: function\nfrom: <cell 1>, line 1\n\nAdds.\n"
    )
    assert "return a + b" in daemon.lair("inspect", session, "f", "--source").stdout
    assert daemon.lair_json("inspect", session, "f(1, ", "--cursor", "3")["signature"] == "(a, b=2)"
    missing = daemon.lair("inspect", session, "nothing")
    assert (missing.returncode, missing.stdout) == (1, "")
    assert daemon.lair("inspect", session, "f", "--cursor", "x").returncode == 2


def test_complete(daemon: Daemon, client: Client, session: str) -> None:
    client.exec("value = valid = 1", session)
    assert daemon.lair("complete", session, "x = val").stdout == "valid\nvalue\n"
    assert daemon.lair_json("complete", session, "valu + 1", "--cursor", "4") == {
        "matches": [{"text": "value", "type": "instance"}],
        "start": 0,
        "end": 4,
    }


def test_history(daemon: Daemon, client: Client, session: str) -> None:
    client.exec("x = 1", session)
    client.exec("1 / 0", session)
    assert daemon.lair("history", session).stdout == "# 1\nx = 1\n# 2, error\n1 / 0\n"
    (last,) = daemon.lair_json("history", session, "1")["cells"]
    assert (last["cell"], last["code"], last["returncode"], last["undone"]) == (2, "1 / 0", 1, False)
    assert daemon.lair("history", session, "0").returncode == 2


def test_history_has_lines_whole_and_tabs(daemon: Daemon, client: Client, session: str) -> None:
    code = "if True:\n\tx = '" + 5000 * "\u20ac" + "'\n"
    client.exec(code + "# \x1b[2J\x00\u202e", session)
    assert daemon.lair("history", session).stdout.partition("\n")[2] == code + "# ?[2J??\n"


def test_check(daemon: Daemon, tmp_path: Path) -> None:
    assert daemon.lair("check", "x = 1").returncode == 0
    wrong = daemon.lair("check", "x = 1\nx = = 2")
    assert (wrong.returncode, wrong.stdout) == (1, "line 2: SyntaxError: invalid syntax\n    x = = 2\n        ^\n")
    path = tmp_path / "code.py"
    path.write_text("import seaborn as s\n")
    assert daemon.lair_json("check", "-f", str(path)) == {
        "valid": False,
        "error": "Do not use seaborn",
        "line": 1,
        "offset": 1,
        "context": "import seaborn as s",
        "rule": "module seaborn",
    }
    assert daemon.lair("check", "-", input="(").returncode == 1
    assert daemon.lair("check").returncode == 2
    assert daemon.lair("check", "-p", "nothing", "1").returncode == 125


def test_reset_keep(daemon: Daemon, client: Client, session: str) -> None:
    client.exec("a, b, c = 1, 2, 3", session)
    assert daemon.lair("reset", session, "--keep", "a,c").returncode == 0
    assert sorted(v["name"] for v in daemon.lair_json("vars", session)["variables"]) == ["a", "c"]
    assert daemon.lair("reset", session, "--keep", "b").returncode == 125


def test_exec_reload(daemon: Daemon, client: Client, session: str) -> None:
    client.open(session)
    client.put(session, "tool.py", b"n = 1\n")
    assert daemon.lair("exec", "-s", session, "import tool; tool.n").stdout == "1\n"
    client.put(session, "tool.py", b"n = 22\n")
    assert daemon.lair("exec", "-s", session, "tool.n").stdout == "1\n"
    assert daemon.lair("exec", "--reload", "-s", session, "tool.n").stdout == "22\n"

"""What going back does not undo, as each kind of client is told of it."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import lair
from daemon import Daemon
from lair import Client, Connection, Effect, Session, State, aio
from lair.tools import Tools
from mcp_server import McpServer
from terminal import Terminal

pytestmark = pytest.mark.usefixtures("no_sessions_left")

DIES = "import os; os._exit(1)"


@pytest.fixture(scope="module")
def granted() -> Iterator[Path]:
    directory = Path(tempfile.mkdtemp(prefix="lair-outside-"))
    yield directory
    shutil.rmtree(directory)


@pytest.fixture(scope="module")
def daemon(granted: Path) -> Iterator[Daemon]:
    it = Daemon({"profile default": {"level": "", "write": str(granted), "checkpoint": "cell"}})
    yield it
    it.end()


@pytest.fixture
def outside(granted: Path) -> Path:
    """Sessions are users of their own, who cannot write to each other's files."""
    path = Path(tempfile.mkdtemp(dir=granted))
    for directory in (granted, path):
        directory.chmod(0o777)
    return path


def writes(path: Path | str) -> str:
    return f"open({str(path)!r}, 'w').close()"


# ---- the command line ----


def test_a_cell(daemon: Daemon, outside: Path) -> None:
    daemon.lair("exec", "-s", "a", "x = 1")
    said = daemon.lair("exec", "-s", "a", f"{writes(outside / 'out')}; {DIES}").stderr
    assert said.splitlines()[-1] == f"lair: not undone: wrote {outside}/out"
    assert "rolled back to the state after cell 1" in said
    (record,) = daemon.lair_json("exec", "-s", "a", f"{writes(outside / 'b')}; {DIES}")["effects"][1:]
    assert record == {"act": "wrote", "target": f"{outside}/b", "cell": 3}


def test_undo_restore_and_branch(daemon: Daemon, outside: Path) -> None:
    daemon.lair("exec", "-s", "a", "x = 1")
    moves = f"import os; {writes(outside / 'm')}; os.rename('{outside}/m', '{outside}/n')"
    daemon.lair("exec", "-s", "a", moves)
    line = f"lair: not undone: wrote {outside}/m, renamed {outside}/m to {outside}/n"
    branch = daemon.lair("branch", "a", "b", "--from", "1")
    assert (branch.returncode, branch.stderr.splitlines()[-1]) == (0, line)
    daemon.lair("close", "b")
    undo = daemon.lair("undo", "a")
    assert undo.stdout == 'session "a" is back in the state after cell 1\n'
    assert undo.stderr == f"{line}\n"
    found = daemon.lair_json("restore", "a", "1")
    assert found["effects"][1] == {"act": "renamed", "target": f"{outside}/m", "to": f"{outside}/n", "cell": 2}
    assert found["effects_more"] == 0
    nothing = daemon.lair("restore", "a", "2")
    assert (nothing.returncode, nothing.stderr) == (0, "")
    assert "effects" not in daemon.lair_json("restore", "a", "2")


def test_reset(daemon: Daemon, outside: Path) -> None:
    daemon.lair("exec", "-s", "a", f"for n in range(100): open('{outside}/' + str(n), 'w')")
    first = ", ".join(f"wrote {outside}/{n}" for n in range(8))
    assert daemon.lair("reset", "a").stderr == f"lair: not undone: {first} and 92 more\n"
    told = daemon.lair_json("reset", "a")
    assert (told["reset"], len(told["effects"]), told["effects_more"]) == (True, 64, 36)


def test_names_of_any_bytes(daemon: Daemon, outside: Path) -> None:
    """They do nothing to a terminal."""
    daemon.lair("exec", "-s", "a", "x = 1")
    daemon.lair("exec", "-s", "a", f"open({os.fsencode(outside)!r} + b'/\\xff\\x1b[31m', 'w')")
    assert daemon.lair("undo", "a").stderr == f"lair: not undone: wrote {outside}/??[31m\n"
    daemon.lair("restore", "a", "2")
    (record,) = daemon.lair_json("undo", "a")["effects"]
    assert record["target_base64"]


def test_a_prompt(daemon: Daemon, terminal: Callable[..., Terminal], outside: Path) -> None:
    it = terminal("repl", "-s", "a")
    it.prompt()
    for line in ("x = 1", writes(outside / "p")):
        it.type(line + "\r")
        it.prompt()
    it.type("%undo\r")
    it.expect(f"lair: not undone: wrote {outside}/p")
    it.say(f"{writes(outside / 'q')}; {DIES}", f"wrote {outside}/q")


# ---- Python ----


def test_python(connection: Connection, outside: Path) -> None:
    with Session(connection=connection) as s:
        s.run("x = 1")
        s.run(writes(outside / "a"))
        (effect,) = s.undo().effects
        assert effect == Effect("wrote", f"{outside}/a", 2)
        assert s.restore(2) == State(2)
        assert not s.restore(2).effects
        result = s.run(f"{writes(outside / 'b')}; {DIES}")
        assert [str(it) for it in result.effects] == [f"wrote {outside}/b"]
        assert result.summary().endswith(f"; not undone: wrote {outside}/b")
        with s.branch(checkpoint=1) as other:
            assert str(other.effects) == f"wrote {outside}/a, wrote {outside}/b"
        assert len(s.reset()) == 2
        many = s.run(f"for n in range(100): open('{outside}/' + str(n), 'w')\n{DIES}")
        assert (len(many.effects), many.effects.more, bool(many.effects)) == (64, 38, True)
        assert str(many.effects).endswith(f"wrote {outside}/5 and 94 more")
        assert not s.run("1").effects


def test_asyncio(connection: Connection, outside: Path) -> None:
    async def scenario() -> None:
        async with aio.Session(connection=connection) as s:
            await s.run("x = 1")
            await s.run(writes(outside / "a"))
            assert [str(it) for it in (await s.undo()).effects] == [f"wrote {outside}/a"]
            assert [str(it) for it in (await s.restore(1)).effects] == [f"wrote {outside}/a"]
            assert (await s.run(f"{writes(outside / 'b')}; {DIES}")).effects[1].target == f"{outside}/b"
            async with await s.branch(checkpoint=1) as other:
                assert len(other.effects) == 2
            assert len(await s.reset()) == 2

    asyncio.run(scenario())


def test_tools(connection: Connection, outside: Path) -> None:
    with Tools(connection=connection) as tools:
        kept = tools.call("python_session_execute", {"code": "x = 1"})
        assert not any("effects" in name for name in kept)
        died = tools.call("python_session_execute", {"code": f"{writes(outside / 'a')}; {DIES}"})
        assert died["effects"] == [f"wrote {outside}/a"]
        assert f"Not undone: wrote {outside}/a." in died["note"]
        answer = tools.call("python_session_reset", {})
        assert answer["note"] == f"Not undone: wrote {outside}/a."
        assert json.loads(json.dumps(answer)) == answer


# ---- calls, by all ----


def test_calls(
    daemon: Daemon, connection: Connection, server: McpServer, terminal: Callable[..., Terminal]
) -> None:
    def pay(to: str) -> str:
        return to

    called, maybe = 'called pay(to="bob") in cell 2', 'may have called hang(to="eve") in cell 4'
    with Session("a", connection=connection, functions=[pay]) as s:
        s.run("x = 1")
        s.run("tools.pay('bob')")
        undo = daemon.lair("undo", "a")
        assert undo.stderr == f"lair: not undone: {called}\n"
        s.restore(2)
        (record,) = daemon.lair_json("undo", "a")["effects"]
        assert record == {"act": "called", "target": 'pay(to="bob")', "cell": 2}
        s.restore(2)
        undone = server.call("python_session_undo", session_id="a")
        assert undone["effects"] == [{"act": "called", "target": 'pay(to="bob")'}]
        assert undone["note"] == f"Not undone: {called}."
        s.restore(2)
        it = terminal("repl", "-s", "a")
        it.prompt()
        it.type("%undo\r")
        it.expect(f"lair: not undone: {called}")
        it.type("\x04")
        s.restore(2)
        assert str(s.undo().effects) == called
        assert [str(it) for it in s.reset()] == [called]
        s.run("x = 3")
        result = s.run(
            "import os, threading\nthreading.Timer(0.2, os._exit, (1,)).start()\ntools.hang('eve')",
            functions={"pay": pay, "hang": lambda to: lair.current().cancelled.wait(20) and None},
        )
        assert str(result.effects) == maybe
        assert daemon.lair("undo", "a").stderr == f"lair: not undone: {called}, {maybe}\n"


# ---- models ----


def test_mcp(server: McpServer, client: Client, outside: Path) -> None:
    server.run("x = 1", "a")
    died = server.run(f"{writes(outside / 'a')}; {DIES}", "a")
    assert died["effects"] == [{"act": "wrote", "target": f"{outside}/a"}]
    assert "to the state after cell 1: its variables and files are as they were then." in died["note"]
    sentence = f"Not undone: wrote {outside}/a."
    assert died["note"].endswith(" " + sentence)
    server.run(f"import os; os.rename('{outside}/a', '{outside}/b')", "a")
    undone = server.call("python_session_undo", session_id="a")
    assert undone["effects"][-1] == {"act": "renamed", "target": f"{outside}/a", "to": f"{outside}/b"}
    assert undone["note"] == sentence[:-1] + f", renamed {outside}/a to {outside}/b."
    server.run(f"for n in range(100): open('{outside}/' + str(n), 'w')", "a")
    reset = server.call("python_session_reset", session_id="a")
    assert (reset["effects_left_out"], len(reset["effects"])) == (38, 64)
    assert reset["note"].endswith(" and 94 more.")
    nothing = server.run("1", "a")
    assert "note" not in nothing and "effects" not in nothing

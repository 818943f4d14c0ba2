"""What is written while no cell runs, by threads and tasks: who is told, and that none of it is lost in silence."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from daemon import Daemon
from lair import Client, Connection, Session, Stray, aio
from lair import messages as m
from lair.tools import Tools
from mcp_server import McpServer
from terminal import Terminal
from test_router_death import kill_router

SETTINGS = {"profile default": {"checkpoint": "off"}}

LATE = """
import threading, sys
def late():
    print('later \\u00e4', flush=True)
    print('so', file=sys.stderr, flush=True)
timer = threading.Timer(0.3, late)
timer.start()
"""
HAD = Stray("later \u00e4\n", "so\n")


def late(s: Session, code: str = LATE) -> None:
    """It has been written, and no cell runs."""
    assert not s.run(code).stray
    time.sleep(1)


def test_a_result_says_what_of_its_output_is_older(s: Session) -> None:
    late(s)
    it = s.run("print('now')")
    assert (it.stdout, it.stderr, it.stray) == ("later \u00e4\nnow\n", "so\n", HAD)
    assert not s.run("print('now')").stray


def test_so_does_one_that_is_streamed(s: Session) -> None:
    late(s)
    said: list[str] = []
    it = s.run("print('now')", on_output=lambda text, stream: said.append(text))
    assert it.stray == HAD and "".join(said).count("later") == 1


def test_it_can_be_asked_for(s: Session) -> None:
    late(s)
    assert s.stray() == HAD
    assert not s.stray()
    it = s.run("print('now')")
    assert (it.stdout, it.stray) == ("now\n", Stray())
    late(s)
    assert s.stray() == HAD


def test_it_can_be_asked_for_with_asyncio(connection: Connection) -> None:
    async def scenario() -> None:
        async with aio.Session(connection=connection) as s:
            await s.run(LATE)
            await asyncio.sleep(1)
            assert await s.stray() == HAD
            await s.run(LATE)
            await asyncio.sleep(1)
            assert (await s.run("1")).stray == HAD

    asyncio.run(scenario())


def test_how_much_others_have_had_or_was_lost_is_told(s: Session, client: Client) -> None:
    late(s)
    client.call(m.Stray(id=client.new_id(), session=s.id), m.StrayReply)  # nobody reads this
    late(s)
    assert s.stray() == Stray(HAD.stdout, HAD.stderr, missed=12)
    assert not s.stray()


def test_an_answer_is_lost_with_the_router(daemon: Daemon, s: Session, client: Client) -> None:
    """What was given stays counted, and what nobody has had is kept."""
    late(s)
    client.call(m.Stray(id=client.new_id(), session=s.id), m.StrayReply)
    kill_router(daemon)
    late(s)
    kill_router(daemon)
    assert s.stray() == Stray(HAD.stdout, HAD.stderr, missed=12)


def test_the_router_dies_under_the_cell_that_gets_it(daemon: Daemon, s: Session) -> None:
    late(s)
    killer = threading.Timer(1, lambda: kill_router(daemon))
    killer.start()
    it = s.run("import time; time.sleep(2); print('now')")
    killer.join()
    assert (it.stdout, it.stray) == ("later \u00e4\nnow\n", HAD)


def test_saving_does_not_lose_it(s: Session) -> None:
    pytest.importorskip("cloudpickle")
    late(s)
    s.save()
    it = s.run("print('now')")
    assert (it.stdout, it.stray) == ("later \u00e4\nnow\n", HAD)
    late(s, "class Loud:\n    def __reduce__(self): print('saved'); return (int, ())\nloud = Loud()")
    s.save()
    assert set(s.run("1").stray.stdout.splitlines()) == {"saved"}
    s.unsave()


def test_much_of_it_is_cut_and_says_so(s: Session) -> None:
    late(s, LATE.replace("'later \\u00e4'", "'x' * 1_000_000"))
    it = s.run("print('now')")
    assert it.stdout.endswith("now\n") and it.stdout[:-4] == it.stray.stdout
    assert len(it.stray.stdout) < 70_000 and "bytes" in it.stray.stdout


NOTE = (
    "The first 9 bytes of stdout are of earlier code: a thread or task wrote them before this code began;"
    " the first 3 bytes of stderr are of earlier code: a thread or task wrote them before this code began."
)


def test_models_are_told_once(daemon: Daemon, connection: Connection, session: str) -> None:
    with McpServer(daemon) as server, Tools(connection=connection) as tools:
        calls: list[Callable[[str], dict[str, Any]]] = [
            lambda code: tools.call("python_session_execute", {"code": code}),
            lambda code: server.run(code, session),
        ]
        for call in calls:
            call(LATE)
            time.sleep(1)
            it = call("print('now')")
            assert (it["stdout"], it["stderr"], it["note"]) == ("later \u00e4\nnow\n", "so\n", NOTE)
            assert "note" not in call("print('now')")


def test_the_command_line_tells_it(daemon: Daemon, session: str) -> None:
    daemon.lair("exec", "-s", session, LATE)
    time.sleep(1)
    done = daemon.lair("exec", "-s", session, "1")
    assert done.stdout == "later \u00e4\n1\n"
    assert "lair: the first 9 bytes of stdout are of earlier code: a thread or task" in done.stderr
    assert daemon.lair_json("exec", "-s", session, "1")["stray"] is False
    daemon.lair("exec", "-s", session, LATE)
    time.sleep(1)
    assert daemon.lair_json("exec", "-s", session, "1")["stray"] == {"stdout": 9, "stderr": 3}


def test_a_prompt_says_what_it_has_missed(terminal: Callable[..., Terminal], client: Client, session: str) -> None:
    client.exec(
        "import threading, time\ndef often():\n    for n in range(10_000): time.sleep(0.01); print(n)", session
    )
    it = terminal("repl", "-s", session)
    it.prompt()
    it.type("threading.Thread(target=often, daemon=True).start()\r")
    it.prompt()
    until = time.monotonic() + 3
    while time.monotonic() < until:
        client.call(m.Stray(id=client.new_id(), session=session), m.StrayReply)
    it.expect("bytes that threads wrote were shown elsewhere, or lost with a connection")

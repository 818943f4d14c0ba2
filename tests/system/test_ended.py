"""A session that is no more: each who had used it is told so, and why, wherever it may be seen."""

from __future__ import annotations

import asyncio
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import lair
import lair.aio
from daemon import BIN, Daemon, wait_until
from lair import Client, Connection, LairError, Session, SessionLost, codec
from lair import messages as m
from lair.tools import Tools
from mcp_server import McpServer
from terminal import Terminal
from test_router_death import kill_router

IMPORTED = Path(__file__).parent
SETTINGS = {
    "profile default": {"preload": "", "spares": "1"},
    "profile brief": {"preload": "", "spares": "1", "idle_ttl": "400ms"},
    "profile kept": {"preload": "", "spares": "1", "idle_ttl": "400ms", "on_expire": "save"},
    "profile importing": {"preload": "", "spares": "1", "import": str(IMPORTED)},
    "profile mortal": {"preload": "", "spares": "1", "idle_ttl": "off", "hard_ttl": "3s", "grace": "200ms"},
}


def gone(client: Client, session: str) -> None:
    wait_until(lambda: session not in [info.session for info in client.list()], "the session has ended", 15)


def expired(client: Client, session: str, profile: str = "brief") -> None:
    """One that had a variable."""
    client.open(session, profile)
    assert client.exec("x = 41", session).state == "kept"
    gone(client, session)


def ended(raw: Any) -> m.Ended:
    return codec.read(m.Ended, raw)


# ---- the reply ----


def test_the_first_cell_of_the_next_session_says_so(client: Client, session: str) -> None:
    expired(client, session)
    reply = client.exec("'x' in globals()", session)
    assert (reply.state, reply.text) == ("new", "False")
    how = ended(reply.ended)
    assert (how.why, how.cells, how.saved, how.by_root) == ("idle_ttl", 1, False, False)
    assert how.when is not None and 0 <= time.time() - how.when < 20
    assert how.birth not in (0, reply.birth)
    after = client.exec("1", session)
    assert (after.state, after.ended, after.birth) == ("kept", None, reply.birth)


def test_a_session_that_nobody_had_before_is_not_new(client: Client, session: str) -> None:
    reply = client.exec("1", session)
    assert (reply.state, reply.ended) == ("kept", None) and reply.birth
    assert client.exec("1").birth  # a one-shot, of which there is never another


def test_open_says_so_and_so_does_the_cell_after_it(client: Client, session: str) -> None:
    expired(client, session)
    info = client.open(session)
    assert info.opened and ended(info.ended).why == "idle_ttl"
    assert client.exec("1", session).state == "new"
    assert client.open(session).ended is None


@pytest.mark.parametrize(("how", "why"), [("hard", "hard_ttl"), ("shut", "shutdown")])
def test_why(client: Client, session: str, how: str, why: str) -> None:
    if how == "hard":
        expired(client, session, "mortal")
    else:
        client.exec("x = 41", session)
        client.shutdown(session)
    assert ended(client.exec("1", session).ended).why == why


def test_what_came_back_is_told_beside_it(client: Client, session: str) -> None:
    expired(client, session, "kept")
    reply = client.exec("x", session)
    assert (reply.state, reply.text, reply.loaded) == ("new", "41", ["x"])
    assert ended(reply.ended).saved


def test_what_could_not_be_saved_is_told(client: Client, session: str) -> None:
    client.open(session, "kept")
    client.exec("class Bomb:\n    def __reduce__(self): import os; os._exit(1)\nbomb = Bomb()", session)
    gone(client, session)
    how = ended(client.exec("1", session).ended)
    assert not how.saved and how.not_saved


def test_a_saved_state_that_is_gone_is_told(client: Client, session: str) -> None:
    expired(client, session, "kept")
    client.call(m.Unsave(id=client.new_id(), session=session), m.Reply)
    reply = client.exec("'x' in globals()", session)
    how = ended(reply.ended)
    assert (reply.text, reply.loaded, how.saved) == ("False", None, False)
    assert how.not_saved is not None and "the saved state was deleted" in how.not_saved


def test_a_request_may_be_for_one_session_alone(client: Client, session: str) -> None:
    birth = client.exec("x = 41", session).birth
    exec = m.Exec(id=client.new_id(), session=session, code="x", birth=birth)
    assert client.call(exec, m.ExecReply).text == "41"
    client.shutdown(session)
    for request, reply in (
        (m.Exec(id=client.new_id(), session=session, code="x", birth=birth), m.ExecReply),
        (m.Exec(id=client.new_id(), session=session, code="x", birth=birth, key="k"), m.ExecReply),
        (m.Vars(id=client.new_id(), session=session, birth=birth), m.VarsReply),
        (m.Undo(id=client.new_id(), session=session, birth=birth), m.StateReply),
    ):
        with pytest.raises(SessionLost, match="it was shut down, 0s ago; nothing has been done") as error:
            client.call(request, reply)
        assert error.value.ended.why == "shutdown"
    assert session not in [info.session for info in client.list()]
    client.exec("x = 1", session)
    with pytest.raises(SessionLost):
        client.call(m.Exec(id=client.new_id(), session=session, code="x = 2", birth=birth), m.ExecReply)
    assert client.exec("x", session).text == "1"


def test_what_was_done_before_is_answered_after(client: Client, session: str) -> None:
    birth = client.exec("x = 41", session).birth
    first = m.Exec(id=client.new_id(), session=session, code="x", key="once", birth=birth)
    client.call(first, m.ExecReply)
    client.shutdown(session)
    again = m.Exec(id=client.new_id(), session=session, code="x", key="once", birth=birth)
    assert client.call(again, m.ExecReply).text == "41"


def test_a_question_about_a_session_that_has_ended(client: Client, session: str) -> None:
    expired(client, session)
    with pytest.raises(
        LairError, match='there is no session ".*" any more: it was idle for too long, .s ago'
    ) as error:
        client.info(session)
    assert error.value.code == "no_session"


def test_who_stays_is_not_idle(client: Client, session: str) -> None:
    client.open(session, "brief")
    client.exec("x = 41", session)
    for _ in range(10):
        time.sleep(0.15)
        info = client.call(m.Info(id=client.new_id(), session=session, stay=True), m.SessionInfo)
        assert info.idle_left is not None and info.idle_left > 0.3
    assert client.exec("x", session).text == "41"


# ---- over the deaths of laird's processes ----


def test_another_router_knows(start_daemon: Callable[..., Daemon]) -> None:
    daemon = start_daemon(SETTINGS)
    client = daemon.client()
    expired(client, "a")
    client.exec("y = 1", "b")
    birth = client.exec("y", "b").birth
    kill_router(daemon)
    client = daemon.client()
    assert ended(client.exec("1", "a").ended).why == "idle_ttl"
    reply = client.exec("y", "b")
    assert (reply.state, reply.text, reply.birth) == ("kept", "1", birth)


@pytest.mark.parametrize(("end", "why"), [("terminate", "stopped"), ("kill", "lost")])
def test_another_laird_knows(start_daemon: Callable[..., Daemon], end: str, why: str) -> None:
    daemon = start_daemon(SETTINGS)
    client = daemon.client()
    expired(client, "a")
    client.exec("y = 1", "b")
    if end == "terminate":
        daemon.terminate()
    else:
        daemon.process.kill()
        daemon.process.wait()
    daemon.start()
    client = daemon.client()
    assert ended(client.exec("1", "a").ended).why == "idle_ttl"
    how = ended(client.exec("1", "b").ended)
    assert (how.why, how.cells) == (why, 1 if why == "stopped" else 0)


def test_without_a_disk_another_router_knows(start_daemon: Callable[..., Daemon]) -> None:
    daemon = start_daemon({**SETTINGS, "daemon": {"saves": "/proc/nowhere"}})
    client = daemon.client()
    expired(client, "a")
    kill_router(daemon)
    assert ended(daemon.client().exec("1", "a").ended).why == "idle_ttl"


# ---- Python ----


def test_a_python_session_raises_before_anything_runs(client: Client, connection: Connection, session: str) -> None:
    s = Session(session, profile="brief", connection=connection)
    s.run("x = 41")
    gone(client, session)
    for act in (
        lambda: s.run("x = 1"),
        lambda: list(s.stream("x")),
        s.vars,
        lambda: s.detach("x"),
        lambda: s.files(),
    ):
        with pytest.raises(SessionLost, match="idle for too long") as error:
            act()
        assert error.value.code == "gone" and error.value.ended.why == "idle_ttl"
    assert session not in [info.session for info in client.list()]
    s.open()
    result = s.run("'x' in globals()")
    assert (result.state, result.text) == ("new", "False")
    assert result.ended is not None and result.ended.why == "idle_ttl"
    assert "the session is new: the one before has ended (it was idle for too long, " in result.notice
    assert result.notice in result.transcript()
    assert s.run("1").state == "kept"


def test_a_python_session_that_renews_says_so(client: Client, connection: Connection, session: str) -> None:
    s = Session(session, profile="brief", renew=True, connection=connection)
    s.run("x = 41")
    gone(client, session)
    client.exec("1", session, profile="brief")  # who tells somebody else
    result = s.run("1")
    assert result.state == "new" and result.ended is not None and result.ended.why == "unknown"


def test_a_python_session_that_was_shut_down_by_itself(connection: Connection, session: str) -> None:
    s = Session(session, connection=connection)
    s.run("x = 41")
    s.shutdown()
    assert s.run("1").state == "new"


def test_a_python_session_whose_daemon_has_forgotten(start_daemon: Callable[..., Daemon]) -> None:
    daemon = start_daemon({**SETTINGS, "daemon": {"saves": "/proc/nowhere"}})
    with Connection(str(daemon.socket), start=False) as connection:
        s, renews = Session("a", connection=connection), Session("b", renew=True, connection=connection)
        s.run("x = 41")
        renews.run("x = 41")
        daemon.process.kill()
        daemon.process.wait()
        daemon.start()
        with pytest.raises(SessionLost, match="nobody knows why"):
            s.run("x")
        assert (renews.run("1").state, renews.run("1").state) == ("new", "kept")


def test_asyncio(daemon: Daemon, client: Client, connection: Connection, session: str) -> None:
    async def main() -> None:
        s = lair.aio.Session(session, profile="brief", connection=connection)
        await s.run("x = 41")
        await asyncio.to_thread(gone, client, session)
        for act in (lambda: s.run("x"), s.vars):
            with pytest.raises(SessionLost):
                await act()
        await s.open()
        assert (await s.run("1")).state == "new"

    asyncio.run(main())


# ---- models ----


def test_mcp(client: Client, server: McpServer, session: str) -> None:
    expired(client, session)
    answer = server.call("python_session_execute", code="1", session_id=session)
    assert (answer["state"], answer["ended"]) == ("new", "idle_ttl")
    assert answer["note"].startswith("The session is new: the one before has ended (it was idle for too long, ")
    assert "gone: run again what you need of it." in answer["note"]
    client.shutdown(session)
    client.exec("1", session)  # who tells somebody else
    answer = server.call("python_session_execute", code="1", session_id=session)
    assert (answer["state"], answer["ended"]) == ("new", "unknown")
    client.shutdown(session)
    answer = server.call("python_session_start", session_id=session)
    assert answer["new"] and "it was shut down" in answer["note"]


# ---- the command line ----


def test_open(daemon: Daemon, client: Client, session: str) -> None:
    expired(client, session)
    told = daemon.lair_json("open", session)
    assert told["ended"]["why"] == "idle_ttl"
    client.shutdown(session)
    assert daemon.lair("open", session).stderr == ""  # whoever has shut it down knows
    assert daemon.lair_json("exec", "-s", session, "1")["state"] == "new"


def test_a_command_about_a_session_that_has_ended(daemon: Daemon, client: Client, session: str) -> None:
    expired(client, session)
    for verb in ("vars", "undo", "history"):
        assert "any more: it was idle for too long" in daemon.lair(verb, session).stderr


# ---- a prompt ----


def test_a_prompt_keeps_its_session(terminal: Callable[..., Terminal], session: str) -> None:
    it = terminal("repl", "-s", session, "-p", "brief")
    it.prompt()
    it.type("x = 41\n")
    it.prompt()
    time.sleep(1.5)  # longer than it may be idle
    it.type("x + 1\n")
    it.expect("42")
    it.prompt()
    time.sleep(1)
    it.type("x + 2\n")
    it.expect("43")


def test_a_prompt_from_a_pipe_keeps_its_session(daemon: Daemon, session: str) -> None:
    command = f"(echo 'x = 41'; sleep 1.5; echo 'x + 1') | {BIN / 'lair'} repl -s {session} -p brief"
    env = {**daemon.env, "LAIR_SOCKET": str(daemon.socket), "LAIR_NO_START": "1"}
    done = subprocess.run(["sh", "-c", command], env=env, capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("42\n", "")


def test_a_prompt_says_ahead_that_its_session_will_end(terminal: Callable[..., Terminal], session: str) -> None:
    it = terminal("repl", "-s", session, "-p", "mortal")
    it.prompt()
    it.expect(f'lair: session "{session}" ends in ')
    it.type("x = 41\n")
    it.expect("is no more: its time was over, 0s ago")
    it.type("x\n")
    it.expect("lair: the session is new: the one before has ended (its time was over, ")
    it.expect("and its variables and files are gone")


def test_a_prompt_in_a_session_that_is_new_says_so_once(
    terminal: Callable[..., Terminal], client: Client, session: str
) -> None:
    expired(client, session)
    it = terminal("repl", "-s", session)
    assert "the one before has ended (it was idle for too long, " in it.prompt()
    it.type("1\n")
    assert "the one before" not in it.prompt()
    client.shutdown(session)
    client.exec("1", session)  # who tells somebody else
    it.type("2\n")
    it.expect("is new: the one before has ended (nobody knows why)")


# ---- other requests that may make a session anew ----


def copiers(daemon: Daemon) -> Iterator[Callable[..., dict[str, Any]]]:
    with (
        McpServer(daemon, "--profile", "importing") as server,
        Connection(str(daemon.socket), start=False) as connection,
        Tools(connection=connection, namespace="copies", profile="importing") as tools,
    ):
        yield server.call
        yield lambda name, **arguments: tools.call(name, arguments)


def test_a_copy_into_a_session_that_is_new_says_so(daemon: Daemon, client: Client, session: str) -> None:
    for n, call in enumerate(copiers(daemon)):
        name, here = f"{session}-{n}", str(Path(__file__))
        it = call("copy_to_sandbox", source=here, session_id=name)
        assert (it["new"], "note" in it) == (True, False)
        assert "new" not in call("copy_to_sandbox", source=here, session_id=name)
        call("python_session_execute", code="x = 1", session_id=name)
        (id,) = (it.session for it in client.list() if it.session.endswith(name))
        for source in (here, f"{here}.not"):  # also if nothing could be copied
            client.shutdown(id)
            it = call("copy_to_sandbox", source=source, session_id=name)
            assert (it["ok"], it["new"], it["ended"]) == (source == here, True, "shutdown")
            assert it["note"] == (
                "The session is new: the one before has ended (it was shut down, 0s ago),"
                " and its variables and files are gone: run again what you need of it."
            )
        client.shutdown(id)


def test_a_load_that_opens_a_session_says_what_has_ended(
    daemon: Daemon, client: Client, connection: Connection, session: str
) -> None:
    one, other, third = (f"{session}-{n}" for n in range(3))
    for id in (one, other, third):
        expired(client, id, "kept")
    it = Session(one, connection=connection).load()
    assert it.names == ["x"] and it.ended is not None and it.ended.why == "idle_ttl"
    done = daemon.lair("load", other)
    assert "the session is new: the one before has ended (it was idle" in done.stderr
    assert daemon.lair_json("load", third)["ended"]["why"] == "idle_ttl"
    for id in (one, other, third):
        client.shutdown(id)

"""Every request, its reply and its errors; each gets exactly one final message."""

from __future__ import annotations

import os
import time
from contextlib import AbstractContextManager

import pytest

from daemon import Daemon
from lair import Client, LairError
from lair import messages as m


def refused(code: str) -> AbstractContextManager[pytest.ExceptionInfo[LairError]]:
    return pytest.raises(LairError, match=f"^{code}: ")


def test_hello(daemon: Daemon, client: Client) -> None:
    hello = client.hello()
    assert hello.version == 1
    assert hello.server.startswith("laird ")
    assert hello.frame_max == 32 << 20
    assert hello.pid in daemon.processes()


def test_open_says_what_there_is(daemon: Daemon, client: Client, session: str) -> None:
    before = time.time()
    info = client.open(session)
    assert info.opened
    assert (info.session, info.profile, info.uid) == (session, "default", os.geteuid())
    assert info.workspace.startswith(str(daemon.workspaces))
    assert before - 1 < info.created < time.time() + 1
    assert (info.cells, info.queued) == (0, 0)
    assert info.state in ("starting", "idle")


def test_opening_again_is_no_error(client: Client, session: str) -> None:
    assert client.open(session).opened
    assert not client.open(session).opened
    assert not client.open(session, "default").opened


def test_open_with_an_unknown_profile(client: Client, session: str) -> None:
    with refused("bad_request") as error:
        client.open(session, "nonesuch")
    assert "nonesuch" in error.value.message


def test_exec_opens_a_session_and_remembers(client: Client, session: str) -> None:
    assert client.exec("x = 41", session).text is None
    reply = client.exec("x + 1", session)
    assert (reply.text, reply.returncode, reply.state, reply.cause) == ("42", 0, "kept", None)
    assert (reply.session, reply.cell) == (session, 2)
    assert reply.duration_ms >= 0


def test_one_shot_leaves_nothing(client: Client) -> None:
    before = client.list()
    reply = client.exec("x = 1; x")
    assert (reply.text, reply.session, reply.cell, reply.state) == ("1", None, 1, "ended")
    assert client.exec("'x' in globals()").text == "False"
    assert client.list() == before


def test_sessions_share_nothing(client: Client, session: str) -> None:
    client.exec("x = 1; open('f', 'w').write('1')", session)
    reply = client.exec("import os; ('x' in globals(), os.path.exists('f'))", session + "2")
    assert reply.text == "(False, False)"
    client.shutdown(session + "2")


def test_list_is_oldest_first(client: Client) -> None:
    for name in ("list-b", "list-a", "list-c"):
        client.open(name)
    names = [info.session for info in client.list() if info.session.startswith("list-")]
    assert names == ["list-b", "list-a", "list-c"]
    for name in names:
        client.shutdown(name)


def test_info_follows_the_session(client: Client, session: str) -> None:
    client.exec("pass", session)
    time.sleep(0.15)
    info = client.info(session)
    assert (info.state, info.cells, info.queued) == ("idle", 1, 0)
    assert 0.1 < info.idle < 10
    assert info.pid > 0
    assert info.level
    assert info.guards
    assert info.idle_left is not None and 1700 < info.idle_left <= 1800
    assert info.hard_left is not None and 86000 < info.hard_left <= 86400


def test_info_while_busy(client: Client, session: str) -> None:
    client.exec("import time", session)
    running = client.start("time.sleep(0.5)", session)
    waiting = client.start("1", session)
    info = client.info(session)
    assert (info.state, info.queued, info.idle) == ("busy", 1, 0)
    client.finish(running, m.ExecReply)
    client.finish(waiting, m.ExecReply)


def test_memory_grows_with_the_session(client: Client, session: str) -> None:
    client.exec("pass", session)
    before = client.info(session).memory
    client.exec("data = b'x' * (50 << 20)", session)
    assert client.info(session).memory - before > 40 << 20


def test_stats_count(daemon: Daemon, client: Client, session: str) -> None:
    before = client.stats()
    client.exec("1", session)
    after = client.stats()
    assert after.keeper_pid == daemon.process.pid
    assert after.pid == client.hello().pid
    assert after.sessions == before.sessions + 1
    assert after.opened >= before.opened + 1
    assert after.cells == before.cells + 1
    assert after.requests >= before.requests + 2
    assert after.uptime > 0


def test_stats_count_refusals(client: Client, session: str) -> None:
    before = client.stats().refused
    for _ in range(3):
        with pytest.raises(LairError):
            client.info(session)
    assert client.stats().refused == before + 3


def test_reset_forgets_memory_and_keeps_files(client: Client, session: str) -> None:
    workspace = client.open(session).workspace
    client.exec("x = 1; _ = open('kept', 'w').write('1')", session)
    client.reset(session)
    reply = client.exec("import os; ('x' in globals(), os.path.exists('kept'))", session)
    assert reply.text == "(False, True)"
    assert client.info(session).workspace == workspace


def test_reset_of_a_busy_session(client: Client, session: str) -> None:
    client.exec("import time", session)
    running = client.start("time.sleep(60)", session)
    waiting = client.start("1", session)
    client.reset(session)
    reply = client.finish(running, m.ExecReply)
    assert (reply.returncode, reply.state, reply.cause) == (137, "reset", "reset")
    with refused("gone"):
        client.finish(waiting, m.ExecReply)
    assert client.exec("'time' in globals()", session).text == "False"


def test_shutdown_leaves_no_session_and_no_workspace(client: Client, session: str) -> None:
    workspace = client.open(session).workspace
    client.exec("_ = open('f', 'w').write('1')", session)
    assert os.path.exists(f"{workspace}/f")
    client.shutdown(session)
    with refused("no_session"):
        client.info(session)
    for _ in range(100):
        if not os.path.exists(workspace):
            break
        time.sleep(0.02)
    assert not os.path.exists(workspace)


def test_shutdown_of_a_busy_session(client: Client, session: str) -> None:
    running = client.start("while True: pass", session)
    waiting = client.start("1", session)
    time.sleep(0.2)
    client.shutdown(session)
    reply = client.finish(running, m.ExecReply)
    assert (reply.returncode, reply.state, reply.cause) == (137, "ended", "shutdown")
    with refused("gone"):
        client.finish(waiting, m.ExecReply)


def test_a_name_can_be_used_again(client: Client, session: str) -> None:
    client.exec("x = 1", session)
    client.shutdown(session)
    reply = client.exec("'x' in globals()", session)
    assert (reply.text, reply.cell) == ("False", 1)


@pytest.mark.parametrize("request_type", [m.Info, m.Reset, m.Shutdown, m.Interrupt])
def test_no_session(client: Client, request_type: type[m.Info]) -> None:
    with refused("no_session") as error:
        client.call(request_type(id=client.new_id(), session="nobody"), m.Reply)
    assert "nobody" in error.value.message


@pytest.mark.parametrize("name", ["", "a b", "tab\t", "ü" * 65, "x" * 129, "new\nline", "nul\0"])
def test_ids_that_are_none(client: Client, name: str) -> None:
    with refused("bad_request") as error:
        client.open(name)
    assert "session" in error.value.message


@pytest.mark.parametrize("name", ["..", "../../etc", "/etc/passwd", "a/b", "x" * 128, "~", "%s%n", "-rf", "*"])
def test_ids_never_become_paths(daemon: Daemon, client: Client, name: str) -> None:
    info = client.open(name)
    assert os.path.realpath(info.workspace).startswith(str(daemon.workspaces))
    assert name not in info.workspace.removeprefix(str(daemon.workspaces)) or name in "-"
    assert client.exec("1", name).text == "1"
    client.shutdown(name)


def test_exec_with_another_profile_than_the_session_has(client: Client, session: str) -> None:
    client.open(session)
    with refused("bad_request"):
        client.exec("1", session, profile="nonesuch")


@pytest.mark.parametrize("timeout", [-1.0, -0.001])
def test_timeouts_that_are_none(client: Client, timeout: float) -> None:
    with refused("bad_request") as error:
        client.exec("1", timeout=timeout)
    assert "timeout" in error.value.message


def test_interrupt_of_an_idle_session(client: Client, session: str) -> None:
    client.exec("1", session)
    assert client.interrupt(session) is False


def test_interrupt_wants_one_of_two(client: Client) -> None:
    with refused("bad_request"):
        client.call(m.Interrupt(id=client.new_id()), m.InterruptReply)
    assert client.cancel(12345) is False


def test_input_without_a_cell(client: Client) -> None:
    with pytest.raises(LairError) as error:
        client.input(12345, "x")
    assert error.value.code in ("gone", "bad_request")


def test_cells_of_a_session_run_in_order(client: Client, session: str) -> None:
    client.exec("seen = []", session)
    cells = [client.start(f"seen.append({i})", session) for i in range(50)]
    replies = [client.finish(cell, m.ExecReply) for cell in cells]
    assert [reply.cell for reply in replies] == list(range(2, 52))
    assert client.exec("seen == list(range(50))", session).text == "True"


def test_order_holds_across_clients(daemon: Daemon, client: Client, session: str) -> None:
    """One client's cells keep their order whatever another one sends in between."""
    other = daemon.client()
    client.exec("seen = []", session)
    mine, theirs = [], []
    for i in range(20):
        mine.append(client.start(f"seen.append({i})", session))
        theirs.append(other.start(f"seen.append({100 + i})", session))
    for cell in mine:
        client.finish(cell, m.ExecReply)
    for cell in theirs:
        other.finish(cell, m.ExecReply)
    seen = eval(client.exec("seen", session).text or "")
    assert [n for n in seen if n < 100] == list(range(20))
    assert [n for n in seen if n >= 100] == list(range(100, 120))


def test_a_reply_comes_once(client: Client, session: str) -> None:
    """The client raises on any message for a request that has had its final one."""
    for code in ("1", "1/0", "import sys; sys.exit(3)", "print('x' * 100000)"):
        client.exec(code, session)
    with refused("no_session"):
        client.info("nobody")
    client.hello()
    time.sleep(0.1)
    client.hello()

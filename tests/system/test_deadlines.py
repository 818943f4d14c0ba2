"""The ladder of a late cell, interrupts, and the ends of sessions by time."""

from __future__ import annotations

import os
import time
from typing import Any

import pytest

from daemon import Daemon, descendants, wait_until
from lair import Client, LairError
from lair import messages as m

SETTINGS = {
    "profile default": {"preload": "", "spares": "1", "grace": "400ms", "cell_timeout": "1500ms"},
    "profile fleeting": {"preload": "", "spares": "1", "idle_ttl": "600ms", "hard_ttl": "1h"},
    "profile mortal": {"preload": "", "spares": "1", "idle_ttl": "off", "hard_ttl": "1s", "grace": "200ms"},
    "profile bounded": {"preload": "", "spares": "0", "cell_timeout": "100ms", "cell_timeout_max": "500ms"},
    "profile patient": {"preload": "", "spares": "0", "cell_timeout": "off", "cell_timeout_max": "off"},
}

STUBBORN = (
    "import time\nwhile True:\n try: time.sleep(60)\n except KeyboardInterrupt: print('caught', flush=True)\n"
)


def test_a_late_cell_is_interrupted_and_the_session_kept(client: Client, session: str) -> None:
    client.exec("x = 1", session)
    started = time.monotonic()
    reply = client.exec("while True: pass", session, timeout=0.3)
    assert 0.25 < time.monotonic() - started < 0.7
    assert (reply.returncode, reply.state, reply.cause, reply.limit) == (124, "kept", "timeout", 0.3)
    assert reply.error["name"] == "KeyboardInterrupt"
    reply = client.exec("x", session)
    assert (reply.text, reply.limit) == ("1", None)
    assert client.exec("while True: pass", session).limit == 1.5  # the profile's


def unlimited(client: Client, code: str, profile: str) -> m.ExecReply:
    request = m.Exec(id=client.new_id(), code=code, profile=profile, unlimited=True)
    return client.call(request, m.ExecReply)


def test_who_waits_in_person_has_all_the_time_that_may_be_asked_for(client: Client) -> None:
    assert unlimited(client, "import time; time.sleep(2)", "default").returncode == 0
    reply = unlimited(client, "import time; time.sleep(20)", "bounded")
    assert (reply.cause, reply.limit) == ("timeout", 0.5)


@pytest.mark.parametrize("code", ["time.sleep(60)", "threading.Event().wait(60)", "sum(range(10**12))"])
def test_whatever_it_waits_for(client: Client, session: str, code: str) -> None:
    client.exec("import time, threading; x = 1", session)
    cell = client.start(code, session, timeout=0.3, input=True)
    reply = client.finish(cell, m.ExecReply)
    assert reply.returncode == 124
    if reply.state == "kept":
        assert client.exec("x", session).text == "1"
    else:
        assert "sum" in code  # one long call into C is not interruptible


def kill(client: Client, **what: Any) -> bool:
    return client.call(m.Interrupt(id=client.new_id(), kill=True, **what), m.InterruptReply).interrupted


def test_who_asks_for_it_kills_what_does_not_react(client: Client, session: str) -> None:
    client.exec("x = 1", session)
    cell = client.start(STUBBORN, session, timeout=60)
    behind = client.start("x = 3; x", session)
    wait_until(lambda: client.info(session).state == "busy", "it runs")
    assert kill(client, session=session)
    reply = client.finish(cell, m.ExecReply)
    assert (reply.returncode, reply.state, reply.cause, reply.limit) == (137, "reset", "interrupt", None)
    assert client.finish(behind, m.ExecReply).text == "3"  # what waits behind it is not concerned
    assert not kill(client, session=session)


def test_a_kill_takes_what_waits_from_the_queue(client: Client, session: str) -> None:
    client.exec("x = 1", session)
    cell = client.start("import time; time.sleep(0.5)", session)
    behind = client.start("x = 3", session)
    assert kill(client, exec=behind)
    reply = client.finish(behind, m.ExecReply)
    assert (reply.returncode, reply.state, reply.cause) == (130, "kept", "interrupt")
    assert client.finish(cell, m.ExecReply).returncode == 0
    assert client.exec("x", session).text == "1"
    one_shot = client.start("while True: pass")
    wait_until(lambda: any(it.state == "busy" for it in client.list()) or client.stats().cells > 3, "it runs")
    time.sleep(0.3)
    assert kill(client, exec=one_shot)
    reply = client.finish(one_shot, m.ExecReply)
    assert (reply.returncode, reply.state, reply.cause) == (137, "ended", "interrupt")


def test_the_interrupt_can_be_caught_once(client: Client, session: str) -> None:
    code = "import time\ntry: time.sleep(60)\nexcept KeyboardInterrupt: result = 'saved'"
    reply = client.exec(code, session, timeout=0.3)
    assert (reply.returncode, reply.state, reply.cause) == (124, "kept", "timeout")
    assert client.exec("result", session).text == "'saved'"


def test_after_the_grace_the_interpreter_is_replaced(client: Client, session: str) -> None:
    workspace = client.open(session).workspace
    client.exec("x = 1", session)
    started = time.monotonic()
    reply = client.exec(STUBBORN, session, timeout=0.3)
    assert 0.6 < time.monotonic() - started < 1.5
    assert (reply.returncode, reply.state, reply.cause) == (124, "reset", "timeout")
    assert reply.stdout == b"caught\n"
    assert client.exec("'x' in globals()", session).text == "False"
    assert client.info(session).workspace == workspace


def test_the_default_timeout(client: Client, session: str) -> None:
    client.open(session)
    started = time.monotonic()
    assert client.exec("while True: pass", session).returncode == 124
    assert 1.4 < time.monotonic() - started < 2.5


def test_no_timeout_at_all(client: Client) -> None:
    assert client.exec("import time; time.sleep(2); 1", profile="patient").text == "1"
    assert client.exec("while True: pass", profile="patient", timeout=0.2).returncode == 124


def test_a_fraction_of_a_second_is_enough(client: Client, session: str) -> None:
    client.exec("1", session)
    assert client.exec("while True: pass", session, timeout=0.05).returncode == 124
    assert client.exec("1", session, timeout=1e-9).returncode in (0, 124)
    assert client.exec("1", session).text == "1"


def test_waiting_in_the_queue_is_not_running(client: Client, session: str) -> None:
    client.exec("import time", session)
    first = client.start("time.sleep(0.8)", session)
    second = client.start("time.sleep(0.1); 'ran'", session, timeout=0.5)
    client.finish(first, m.ExecReply)
    reply = client.finish(second, m.ExecReply)
    assert (reply.text, reply.returncode) == ("'ran'", 0)
    assert reply.duration_ms < 500


def test_interrupt(client: Client, session: str) -> None:
    client.exec("x = 1", session)
    cell = client.start("print('begun')\nwhile True: pass", session)
    time.sleep(0.2)
    assert client.interrupt(session)
    reply = client.finish(cell, m.ExecReply)
    assert (reply.returncode, reply.state, reply.cause) == (130, "kept", "interrupt")
    assert reply.stdout == b"begun\n"
    assert reply.error["name"] == "KeyboardInterrupt"
    assert client.exec("x", session).text == "1"


def test_an_interrupt_reaches_only_the_cell_it_was_meant_for(client: Client, session: str) -> None:
    client.exec("n = 0", session)
    for _ in range(30):
        cell = client.start("n += 1", session)
        client.interrupt(session)
        after = client.start("'safe'", session)
        assert client.finish(cell, m.ExecReply).returncode in (0, 130)
        assert client.finish(after, m.ExecReply).text == "'safe'"


def test_interrupt_by_number(client: Client, session: str) -> None:
    client.exec("import time", session)
    running = client.start("time.sleep(60)", session)
    waiting = client.start("'never'", session)
    last = client.start("'last'", session)
    time.sleep(0.1)
    assert client.cancel(waiting)
    reply = client.finish(waiting, m.ExecReply)
    assert (reply.returncode, reply.text) == (130, None)
    assert client.cancel(running)
    assert client.finish(running, m.ExecReply).returncode == 130
    assert client.finish(last, m.ExecReply).text == "'last'"


def test_interrupt_of_a_one_shot(client: Client) -> None:
    cell = client.start("while True: pass")
    time.sleep(0.3)
    assert client.cancel(cell)
    reply = client.finish(cell, m.ExecReply)
    assert (reply.returncode, reply.state) == (130, "ended")


def test_another_client_can_interrupt(daemon: Daemon, client: Client, session: str) -> None:
    client.open(session)
    cell = client.start("while True: pass", session)
    time.sleep(0.2)
    other = daemon.client()
    assert other.cancel(cell) is False
    assert other.interrupt(session)
    assert client.finish(cell, m.ExecReply).returncode == 130


def test_a_stubborn_cell_survives_an_interrupt(client: Client, session: str) -> None:
    """An interrupt only asks; it is the deadline that insists."""
    client.open(session)
    cell = client.start(STUBBORN, session, timeout=1.2)
    time.sleep(0.4)
    assert client.interrupt(session)
    reply = client.finish(cell, m.ExecReply)
    assert (reply.returncode, reply.state) == (124, "reset")
    assert reply.stdout.count(b"caught") == 2


def ended(client: Client, session: str) -> bool:
    return all(info.session != session for info in client.list())


def test_idle_sessions_end(client: Client, session: str) -> None:
    workspace = client.open(session, "fleeting").workspace
    assert os.path.isdir(workspace)
    started = time.monotonic()
    wait_until(lambda: ended(client, session), "the idle session ends", 3)
    assert 0.5 < time.monotonic() - started < 1.5
    wait_until(lambda: not os.path.exists(workspace), "its workspace is deleted")


def test_idle_runs_from_the_end_of_the_last_cell(client: Client, session: str) -> None:
    client.open(session, "fleeting")
    for _ in range(4):
        assert client.exec("x = 1", session).returncode == 0
        time.sleep(0.3)
    assert client.exec("import time; time.sleep(1); x", session).text == "1"
    time.sleep(0.3)
    assert client.exec("x", session).text == "1"


def test_looking_at_a_session_does_not_keep_it(client: Client, session: str) -> None:
    client.open(session, "fleeting")
    started = time.monotonic()
    while not ended(client, session):
        assert time.monotonic() - started < 3
        time.sleep(0.05)


def test_hard_ttl_ends_even_a_busy_session(client: Client, session: str) -> None:
    client.open(session, "mortal")
    started = time.monotonic()
    cell = client.start("while True: pass", session, timeout=60)
    waiting = client.start("1", session)
    reply = client.finish(cell, m.ExecReply)
    assert 0.7 < time.monotonic() - started < 2.0
    assert (reply.returncode, reply.state, reply.cause) == (137, "ended", "hard_ttl")
    with pytest.raises(LairError, match="^gone: "):
        client.finish(waiting, m.ExecReply)
    assert ended(client, session)


def test_hard_ttl_whatever_it_does(client: Client, session: str) -> None:
    """It may end between two cells: then the id is used anew, by a session that does not know the variable."""
    client.open(session, "mortal")
    started = time.monotonic()
    client.exec("x = 1", session)
    text = "1"
    while text == "1":
        assert time.monotonic() - started < 3
        time.sleep(0.02)
        try:
            text = client.exec("globals().get('x')", session).text or ""
        except LairError as error:
            assert error.code == "gone"
            break
    assert time.monotonic() - started > 0.7


def test_a_killed_session_leaves_no_process(client: Client, session: str) -> None:
    client.exec("1", session)
    warden = client.info(session).pid
    count = len(descendants(warden))
    code = "import os, time\nfor _ in range(5):\n if os.fork() == 0: time.sleep(60)\nwhile True: time.sleep(1)"
    cell = client.start("import signal; signal.signal(2, signal.SIG_IGN)\n" + code, session, timeout=1)
    wait_until(lambda: len(descendants(warden)) == count + 5, "its children are there")
    reply = client.finish(cell, m.ExecReply)
    assert (reply.returncode, reply.state) == (124, "reset")
    assert client.info(session).pid == warden
    wait_until(lambda: len(descendants(warden)) <= count, "its children are gone")

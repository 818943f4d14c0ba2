"""What laird saves when it stops, and what is done with saved states from outside of sessions."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from daemon import Daemon, wait_until
from lair import Client, LairError, codec
from lair import messages as m

SETTINGS = {
    "profile default": {"preload": "", "spares": "1", "on_expire": "save"},
    "profile ends": {"preload": "", "spares": "1"},
}


def saves(client: Client, session: str | None = None) -> list[m.SaveRecord]:
    reply = client.call(m.Saves(id=client.new_id(), session=session), m.SavesReply)
    return [codec.read(m.SaveRecord, item) for item in reply.saves]


def after_a_stop(daemon: Daemon, stop: Callable[[], object]) -> Client:
    stop()
    daemon.process.wait(60)
    daemon.start()
    return daemon.client()


def terminate(daemon: Daemon) -> Callable[[], object]:
    return lambda: daemon.process.terminate()


def test_sigterm_saves(start_daemon: Callable[..., Daemon]) -> None:
    daemon = start_daemon(SETTINGS)
    client = daemon.client()
    for n in range(9):
        client.exec(f"x = {n}", f"s{n}")
    client.exec("x = 1", "unsaved", profile="ends")
    client.open("unused")
    client = after_a_stop(daemon, terminate(daemon))
    assert "9 sessions saved, and 0 not" in daemon.log()
    for n in range(9):
        reply = client.exec("x", f"s{n}")
        assert (reply.text, reply.state, reply.loaded) == (str(n), "new", ["x"])
        how = codec.read(m.Ended, reply.ended)
        assert (how.why, how.saved, how.not_saved) == ("stopped", True, None)
    assert not codec.read(m.Ended, client.exec("1", "unsaved").ended).saved


def test_a_cell_that_runs_is_stopped_and_the_state_saved(start_daemon: Callable[..., Daemon]) -> None:
    daemon = start_daemon(SETTINGS)
    client = daemon.client()
    client.exec("x = 'before'", "s")
    cell = client.start("import time\nx = 'during'\nwhile True: time.sleep(0.05)", "s")
    wait_until(lambda: client.info("s").state == "busy", "it runs")
    time.sleep(0.2)
    daemon.process.terminate()
    reply = client.finish(cell, m.ExecReply)
    assert (reply.state, reply.cause) == ("ended", "shutdown")
    client = after_a_stop(daemon, lambda: None)
    assert client.exec("x", "s").text == "'during'"


def test_nothing_is_saved_where_that_is_off(start_daemon: Callable[..., Daemon]) -> None:
    daemon = start_daemon({**SETTINGS, "daemon": {"stop_save": "off"}})
    client = daemon.client()
    client.exec("x = 1", "s")
    client = after_a_stop(daemon, terminate(daemon))
    reply = client.exec("'x' in globals()", "s")
    assert (reply.text, reply.loaded) == ("False", None)


def test_saves(daemon: Daemon, client: Client) -> None:
    client.exec("x = 1; f = (i for i in [])", "listed")
    client.call(m.Save(id=client.new_id(), session="listed"), m.SaveReply)
    (record,) = saves(client)
    assert (record.session, record.uid, record.count, record.names) == ("listed", 0, 1, None)
    assert abs(record.created - time.time()) < 60
    assert record.expires is not None and record.expires > time.time()
    (record,) = saves(client, "listed")
    assert record.names == ["x"] and codec.read(m.RefusedName, record.not_saved[0]).name == "f"
    with pytest.raises(LairError, match="^gone: "):
        saves(client, "another")
    client.call(m.Unsave(id=client.new_id(), session="listed"), m.Reply)
    assert saves(client) == []
    with pytest.raises(LairError, match="^gone: "):
        client.call(m.Unsave(id=client.new_id(), session="listed"), m.Reply)

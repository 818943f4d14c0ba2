"""What laird saves when it stops, and what is done with saved states from outside of sessions."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable

import pytest

import lair
import lair.aio
from daemon import Daemon, wait_until
from lair import Client, Connection, LairError, Session, codec
from lair import messages as m

SETTINGS = {
    "profile default": {"preload": "", "spares": "1", "on_expire": "save"},
    "profile ends": {"preload": "", "spares": "1"},
}
SLOW = (
    "class Slow:\n    def __reduce__(self):\n        import time; time.sleep(60); return (int, ())\nslow = Slow()"
)


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


def test_what_takes_too_long_is_not_saved_and_told(start_daemon: Callable[..., Daemon]) -> None:
    daemon = start_daemon({**SETTINGS, "daemon": {"stop_save": "1s"}})
    client = daemon.client()
    client.exec(SLOW, "slow")
    client.exec("x = 1", "quick")
    started = time.monotonic()
    done = daemon.lair("stop")
    assert time.monotonic() - started < 20
    assert done.returncode == 0
    assert 'session "slow" was not saved: laird had to stop before it was saved' in done.stderr
    assert "1 session saved" in done.stdout
    client = after_a_stop(daemon, lambda: None)
    how = codec.read(m.Ended, client.exec("1", "slow").ended)
    assert how.why == "stopped" and how.not_saved is not None and "stop_save" in how.not_saved
    assert client.exec("x", "quick").text == "1"


def test_a_stop_says_how_far_it_is(start_daemon: Callable[..., Daemon]) -> None:
    daemon = start_daemon({**SETTINGS, "daemon": {"stop_save": "3s"}})
    client = daemon.client()
    client.exec(SLOW, "slow")
    done = daemon.lair("stop")
    assert "lair: laird saves its sessions: 1 left" in done.stderr
    daemon.start()
    client = daemon.client()
    client.exec(SLOW, "slow")
    told = json.loads(daemon.lair("stop", "--json").stdout)
    assert told["stopped"] and told["saved"] == 0
    assert [it["name"] for it in told["not_saved"]] == ["slow"]
    daemon.start()


def stop_slowly(daemon: Daemon) -> subprocess.Popen[str]:
    """One session is saved, and one takes a minute for it."""
    client = daemon.client()
    client.exec(SLOW, "slow")
    client.exec("x = 1", "quick")
    command = [str(daemon.binaries / "lair"), "stop"]
    env = {**daemon.env, "LAIR_SOCKET": str(daemon.socket)}
    stopping = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_until(lambda: client.stats().saving == 1, "one is left")
    return stopping


@pytest.mark.parametrize("how", ["SIGTERM", "SIGINT", "lair stop"])
def test_told_a_second_time_it_saves_no_more(start_daemon: Callable[..., Daemon], how: str) -> None:
    daemon = start_daemon({**SETTINGS, "daemon": {"stop_save": "50s"}})
    first, began = stop_slowly(daemon), time.monotonic()
    told = 'session "slow" was not saved: laird was told to stop a second time before it was saved'
    assert daemon.lair("start").stderr == "lair: laird is stopping\n"
    assert "stopping, 1 session still to be saved" in daemon.lair("status").stdout
    assert daemon.lair("ls").stderr == "lair: laird is stopping\n"
    if how == "lair stop":
        second = daemon.lair("stop")
        assert second.returncode == 0 and told in second.stderr
    else:
        daemon.process.send_signal(getattr(signal, how))
    out, err = first.communicate(timeout=30)
    assert first.returncode == 0 and told in err and "1 session saved" in out
    # It would take 50 s.
    assert time.monotonic() - began < 25
    client = after_a_stop(daemon, lambda: None)
    assert "told to stop a second time: nothing more is saved" in daemon.log()
    ended = codec.read(m.Ended, client.exec("1", "slow").ended)
    assert ended.why == "stopped" and ended.not_saved is not None and "a second time" in ended.not_saved
    assert client.exec("x", "quick").text == "1"


def test_who_signals_all_processes_means_one_stop(start_daemon: Callable[..., Daemon]) -> None:
    daemon = start_daemon({**SETTINGS, "daemon": {"stop_save": "50s"}})
    client = daemon.client()
    client.exec(SLOW.replace("60", "3"), "slow")
    router = client.stats().pid
    daemon.process.terminate()
    wait_until(lambda: client.stats().saving == 1, "it is being saved")
    os.kill(router, signal.SIGTERM)
    client = after_a_stop(daemon, lambda: None)
    assert "1 sessions saved, and 0 not" in daemon.log()


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


def test_saves_on_the_command_line(daemon: Daemon, client: Client) -> None:
    client.exec("x = 1; f = (i for i in [])", "listed")
    client.call(m.Save(id=client.new_id(), session="listed"), m.SaveReply)
    said = daemon.lair("saves").stdout
    assert "listed" in said and "SESSION" in said
    assert daemon.lair("saves", "list").stdout.split()[:4] == said.split()[:4]
    (told,) = daemon.lair_json("saves")["saves"]
    assert (told["session"], told["count"]) == ("listed", 1)
    shown = daemon.lair("saves", "show", "listed").stdout
    assert "x" in shown and "f" in shown and "cannot pickle" in shown
    assert daemon.lair_json("saves", "show", "listed")["names"] == ["x"]
    assert daemon.lair("saves", "rm", "listed").returncode == 0
    assert daemon.lair("saves", "rm", "listed").stderr == 'lair: no state of session "listed" is saved\n'
    assert daemon.lair_json("saves")["saves"] == []
    assert daemon.lair("saves", "dance").returncode == 2


def test_saves_from_python(daemon: Daemon) -> None:
    with Connection(str(daemon.socket), start=False) as connection:
        s = Session("listed", connection=connection)
        s.run("x = 1")
        s.save()
        (record,) = lair.saves(connection)
        assert (record.session, record.count) == ("listed", 1)
        assert s.saved().names == ["x"]
        s.unsave()
        assert lair.saves(connection) == []
        with pytest.raises(LairError, match="^gone: "):
            s.saved()


@pytest.mark.skipif(os.geteuid() != 0, reason="wants root")
def test_saves_of_others(start_daemon: Callable[..., Daemon]) -> None:
    daemon = start_daemon(SETTINGS)
    daemon.share()
    client = daemon.client()
    client.exec("x = 1", "of-root")
    client.call(m.Save(id=client.new_id(), session="of-root"), m.SaveReply)
    listed = "c.call(m.Saves(id=c.new_id()), m.SavesReply).saves"
    said = daemon.as_user(
        1234,
        "m = lair.messages; c.exec('x = 1', 'mine'); c.call(m.Save(id=c.new_id(), session='mine'), m.SaveReply)\n"
        f"print([it['session'] for it in {listed}])",
    )
    assert said == "['mine']"
    assert (
        daemon.as_user(1234, "c.call(lair.messages.Saves(id=9, session='of-root'), lair.messages.SavesReply)")
        == "gone"
    )
    assert (
        daemon.as_user(1234, "c.call(lair.messages.Unsave(id=9, session='of-root'), lair.messages.Reply)") == "gone"
    )
    assert daemon.as_user(1234, "c.call(lair.messages.Stop(id=9), lair.messages.StopReply)") == "denied"
    assert sorted(it.session for it in saves(client)) == ["1234/mine", "of-root"]
    assert saves(client, "1234/mine")[0].uid == 1234
    client.call(m.Unsave(id=client.new_id(), session="1234/mine"), m.Reply)
    assert daemon.as_user(1234, f"m = lair.messages; print({listed})") == "[]"


def test_saves_from_asyncio(daemon: Daemon) -> None:
    async def main(connection: Connection) -> None:
        s = lair.aio.Session("asynchronous", connection=connection)
        await s.run("x = 1")
        await s.save()
        assert "asynchronous" in [it.session for it in await lair.aio.saves(connection)]
        assert (await s.saved()).names == ["x"]
        await s.unsave()
        with pytest.raises(LairError, match="^gone: "):
            await s.saved()

    with Connection(str(daemon.socket), start=False) as connection:
        asyncio.run(main(connection))

"""Requests that are done once: sent again they get the answer they had, from whatever connection."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator

import pytest

from daemon import Daemon, memory_of, wait_until
from lair import Client, LairError, codec
from lair import messages as m

NOBODY = 65534
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root has other users' sessions")

SETTINGS = {
    "profile default": {"checkpoint": "cell", "cell_timeout_max": "1h"},
    "profile brief": {"result_ttl": "1s"},
    "profile few": {"results": "3"},
    "profile narrow": {"results_size": "1M"},
    "profile short": {"output_size": "1K"},
    "profile hasty": {"cell_timeout": "500ms"},
    "profile many": {"results": "100000", "checkpoint": "off"},
}


@pytest.fixture
def other(daemon: Daemon) -> Iterator[Client]:
    with Client(str(daemon.socket)) as it:
        yield it


def start(client: Client, code: str, session: str | None, key: str | None = None, **how: object) -> int:
    request = m.Exec(id=client.new_id(), session=session, code=code, key=key, **how)  # type: ignore[arg-type]
    return client.send(request)


def run(client: Client, code: str, session: str | None, key: str | None = None, **how: object) -> m.ExecReply:
    return client.finish(start(client, code, session, key, **how), m.ExecReply)


def detach(
    client: Client, code: str, session: str | None, key: str | None = None, **how: object
) -> m.DetachedReply:
    return client.finish(start(client, code, session, key, detach=True, **how), m.DetachedReply)


def attach(client: Client, session: str | None, **which: object) -> int:
    return client.send(m.Attach(id=client.new_id(), session=session, **which))  # type: ignore[arg-type]


def attached(client: Client, session: str | None, **which: object) -> m.ExecReply:
    return client.finish(attach(client, session, **which), m.ExecReply)


def results(client: Client, session: str | None) -> list[m.ResultRecord]:
    reply = client.call(m.Results(id=client.new_id(), session=session), m.ResultsReply)
    return [codec.read(m.ResultRecord, item) for item in reply.results]


def watch(client: Client, request: int) -> tuple[dict[str, list[tuple[int, bytes]]], m.ExecReply]:
    """The output events of a request, and its reply."""
    seen: dict[str, list[tuple[int, bytes]]] = {"stdout": [], "stderr": []}
    while True:
        message = client.receive(request, m.ExecReply)
        if isinstance(message, m.ExecReply):
            return seen, message
        if isinstance(message, m.StdoutEvent | m.StderrEvent):
            seen[message.TYPE].append((message.at, message.data))


def joined(pieces: list[tuple[int, bytes]], at: int = 0) -> bytes:
    """Without a gap, from there on."""
    for where, data in pieces:
        assert where == at
        at += len(data)
    return b"".join(data for _, data in pieces)


# ---- exec ----


def test_a_finished_cell_is_not_run_again(client: Client, other: Client, session: str) -> None:
    code = "n = globals().get('n', 0) + 1; print('out'); n"
    first = run(client, code, session, "k")
    again, elsewhere = run(client, code, session, "k"), run(other, code, session, "k")
    assert (first.text, first.stdout) == ("1", b"out\n")
    for reply in (again, elsewhere):
        reply.id = first.id
        assert reply == first
    assert client.exec("n", session).text == "1"


def test_a_running_cell_answers_everybody(client: Client, other: Client, session: str) -> None:
    code = "import time; time.sleep(0.5); n = globals().get('n', 0) + 1; n"
    first = start(client, code, session, "k")
    second = start(other, code, session, "k")
    third = start(other, code, session, "k")
    replies = [
        client.finish(first, m.ExecReply),
        other.finish(second, m.ExecReply),
        other.finish(third, m.ExecReply),
    ]
    assert [reply.text for reply in replies] == ["1", "1", "1"]
    assert [reply.id for reply in replies] == [first, second, third]


def test_a_waiting_cell_too(client: Client, other: Client, session: str) -> None:
    slow = start(client, "import time; time.sleep(0.3)", session)
    first, second = start(client, "n = globals().get('n', 0) + 1; n", session, "k"), 0
    second = start(other, "n = globals().get('n', 0) + 1; n", session, "k")
    client.finish(slow, m.ExecReply)
    assert client.finish(first, m.ExecReply).text == other.finish(second, m.ExecReply).text == "1"


def test_a_result_outlives_the_connection_that_asked(daemon: Daemon, client: Client, session: str) -> None:
    gone = Client(str(daemon.socket))
    start(gone, "import time; time.sleep(0.3); 'still ' + 'here'", session, "k")
    gone.hello()  # so it has arrived
    gone.close()
    assert attached(client, session, key="k").text == "'still here'"
    assert run(client, "import time; time.sleep(0.3); 'still ' + 'here'", session, "k").text == "'still here'"


def test_a_result_outlives_its_session(client: Client, session: str) -> None:
    run(client, "'first'", session, "k")
    client.shutdown(session)
    assert attached(client, session, key="k").text == "'first'"
    assert run(client, "'first'", session, "k").text == "'first'"
    assert session not in [info.session for info in client.list()]


def test_the_newest_cell_of_a_number(client: Client, session: str) -> None:
    run(client, "'first'", session, "k1")
    client.shutdown(session)
    run(client, "'second'", session, "k2")
    assert attached(client, session, cell=1).text == "'second'"


def test_the_way_a_result_is_asked_for_may_change(client: Client, session: str) -> None:
    assert run(client, "print('x')", session, "k").stdout == b"x\n"
    seen, reply = watch(client, start(client, "print('x')", session, "k", stream=True))
    assert (joined(seen["stdout"]), reply.stdout) == (b"x\n", b"")


@pytest.mark.parametrize(
    "other_request",
    [
        lambda id, session: m.Exec(id=id, session=session, code="2", key="k"),
        lambda id, session: m.Exec(id=id, session=session, code="1", timeout=5, key="k"),
        lambda id, session: m.Reset(id=id, session=session, key="k"),
        lambda id, session: m.Undo(id=id, session=session, key="k"),
    ],
    ids=["code", "timeout", "reset", "undo"],
)
def test_a_key_is_for_one_request(
    client: Client, session: str, other_request: Callable[[int, str], m.Request]
) -> None:
    run(client, "1", session, "k")
    with pytest.raises(LairError, match="bad_request") as caught:
        client.call(other_request(client.new_id(), session), m.Reply)
    assert '"k"' in caught.value.message


@pytest.mark.parametrize("key", ["", "a b", "é", "k" * 65, "a\0"])
def test_a_key_is_printable(client: Client, session: str, key: str) -> None:
    with pytest.raises(LairError, match="bad_request: a key is"):
        run(client, "1", session, key)


def test_a_refusal_is_not_remembered(client: Client, session: str) -> None:
    with pytest.raises(LairError, match="limit"):
        run(client, "1", session, "k", timeout=1e6)
    with pytest.raises(LairError, match="no_session"):
        client.call(m.Reset(id=client.new_id(), session=session, key="r"), m.Reply)
    client.open(session)
    client.call(m.Reset(id=client.new_id(), session=session, key="r"), m.Reply)
    assert run(client, "1", session, "k").text == "1"


def test_what_could_not_run_does_not_run_later(client: Client, session: str) -> None:
    """Its answer was that it is gone; who has missed that is told again."""
    start(client, "import time; time.sleep(30)", session)
    waiting = start(client, "x = 1", session, "k")
    client.reset(session)
    with pytest.raises(LairError, match="gone"):
        client.finish(waiting, m.ExecReply)
    with pytest.raises(LairError, match="gone"):
        run(client, "x = 1", session, "k")
    assert client.exec("'x' in globals()", session).text == "False"


def test_a_key_belongs_to_its_session(client: Client, session: str) -> None:
    assert run(client, "1", session, "k").text == "1"
    assert run(client, "2", session + "2", "k").text == "2"
    assert run(client, "3", None, "k").text == "3"
    assert run(client, "3", None, "k").text == "3"
    client.shutdown(session + "2")


def test_many_may_ask_for_one_answer(client: Client, session: str) -> None:
    """The first of too many is told to go."""
    code = "import time; time.sleep(1); 1"
    requests = [start(client, code, session, "k") for _ in range(17)]
    with pytest.raises(LairError, match="gone: 16 others"):
        client.finish(requests[0], m.ExecReply)
    assert [client.finish(request, m.ExecReply).text for request in requests[1:]] == ["1"] * 16


# ---- detach, attach, results ----


def test_detached(client: Client, other: Client, session: str) -> None:
    client.open(session)
    wait_until(lambda: client.info(session).state == "idle", "the cell need not wait")
    reply = detach(client, "import time; time.sleep(0.3); 6 * 7", session, "k")
    assert (reply.key, reply.session, reply.cell) == ("k", session, 1)
    assert [(it.key, it.cell, it.state) for it in results(other, session)] == [("k", 1, "running")]
    assert attached(other, session, cell=1).text == "42"
    record = results(client, session)[0]
    assert (record.key, record.cell, record.state, record.returncode) == ("k", 1, "finished", 0)
    assert record.bytes > 0


def test_detached_without_a_key(client: Client, session: str) -> None:
    first, second = detach(client, "1", session), detach(client, "2", session)
    assert first.key and second.key and first.key != second.key
    assert attached(client, session, key=second.key).text == "2"
    assert attached(client, session, key=first.key).text == "1"


def test_detached_again(client: Client, session: str) -> None:
    assert detach(client, "x = 1", session, "k").key == "k"
    assert detach(client, "x = 1", session, "k").key == "k"
    assert attached(client, session, key="k").cell == 1
    assert client.info(session).cells == 1


def test_detached_one_shot(client: Client, other: Client) -> None:
    key = detach(client, "'alone'", None).key
    assert attached(other, None, key=key).text == "'alone'"
    assert key in [record.key for record in results(other, None)]


def test_a_detached_cell_that_is_refused(client: Client) -> None:
    with pytest.raises(LairError, match="bad_request"):
        run(client, "1", "x", profile="nonsense", detach=True)


def test_waiting_cells_are_listed(client: Client, session: str) -> None:
    client.open(session)
    start(client, "import time; time.sleep(0.5)", session, "a")
    detach(client, "2", session, "b")
    wait_until(lambda: results(client, session)[0].state == "running", "the first runs")
    assert [(it.key, it.cell, it.state) for it in results(client, session)] == [
        ("a", 1, "running"),
        ("b", 0, "queued"),
    ]
    assert attached(client, session, key="b").cell == 2


def test_a_result_without_key_is_not_kept(client: Client, session: str) -> None:
    client.exec("1", session)
    assert results(client, session) == []
    with pytest.raises(LairError, match="gone"):
        attached(client, session, cell=1)


@pytest.mark.parametrize(
    ("which", "code"),
    [({}, "bad_request"), ({"cell": 1, "key": "k"}, "bad_request"), ({"cell": 9}, "gone"), ({"key": "no"}, "gone")],
)
def test_attach_refused(client: Client, session: str, which: dict[str, object], code: str) -> None:
    with pytest.raises(LairError, match=code):
        attached(client, session, **which)


def test_what_is_no_cell_cannot_be_attached_to(client: Client, session: str) -> None:
    client.open(session)
    client.call(m.Reset(id=client.new_id(), session=session, key="r"), m.Reply)
    with pytest.raises(LairError, match="gone"):
        attached(client, session, key="r")


def test_an_attached_cell_can_be_interrupted(client: Client, other: Client, session: str) -> None:
    detach(client, "import time; time.sleep(30)", session, "k")
    request = attach(other, session, key="k")
    assert other.cancel(request)
    assert other.finish(request, m.ExecReply).returncode == 130


# ---- what is kept, and for how long ----


def test_results_expire(client: Client, session: str) -> None:
    run(client, "1", session, "k", profile="brief")
    assert attached(client, session, key="k").text == "1"
    wait_until(lambda: results(client, session) == [], "the result is forgotten", 5)
    with pytest.raises(LairError, match="gone"):
        attached(client, session, key="k")


def test_the_oldest_goes_first(client: Client, session: str) -> None:
    client.open(session, "few")
    for i in range(5):
        run(client, str(i), session, f"k{i}")
    assert [record.key for record in results(client, session)] == ["k2", "k3", "k4"]


def test_other_answers_push_out_no_results(client: Client, session: str) -> None:
    client.open(session, "few")
    run(client, "1", session, "k")
    for i in range(10):
        client.call(m.Interrupt(id=client.new_id(), session=session, key=f"i{i}"), m.InterruptReply)
    assert [record.key for record in results(client, session)] == ["k"]


def test_results_are_bounded_in_bytes(client: Client, session: str) -> None:
    client.open(session, "narrow")
    for i in range(4):
        run(client, "print('x' * 400_000)", session, f"k{i}")
    assert [record.key for record in results(client, session)] == ["k2", "k3"]
    assert len(run(client, "print('x' * 3_000_000)", session, "large").stdout) == 3_000_001
    assert [record.key for record in results(client, session)] == ["large"]


def test_and_for_each_user(start_daemon: Callable[..., Daemon]) -> None:
    daemon = start_daemon({"daemon": {"results_per_uid": "1M"}})
    client = daemon.client()
    for i in range(4):
        run(client, "print('x' * 400_000)", f"s{i}", "k")
    assert [len(results(client, f"s{i}")) for i in range(4)] == [0, 0, 1, 1]
    with pytest.raises(LairError, match="gone: .*have made room for newer ones"):
        attached(client, "s0", key="k")


def test_what_runs_comes_before_what_is_kept(start_daemon: Callable[..., Daemon]) -> None:
    """One share has both."""
    client = start_daemon({"daemon": {"work_per_uid": "32M"}}).client()
    for i in range(3):
        run(client, "print('x' * 1_000_000)", f"s{i}", "k")
    assert [len(results(client, f"s{i}")) for i in range(3)] == [1, 1, 1]
    assert len(run(client, "print('x' * 6_000_000)", "s3", "k").stdout) == 6_000_001
    assert [len(results(client, f"s{i}")) for i in range(4)] == [0, 0, 0, 1]


# ---- streams ----


def test_a_stream_says_where_it_is(client: Client, session: str) -> None:
    code = "import sys\nfor i in range(3000): print(i); print(-i, file=sys.stderr)"
    seen, reply = watch(client, start(client, code, session, stream=True))
    assert joined(seen["stdout"]) == b"".join(b"%d\n" % i for i in range(3000))
    assert joined(seen["stderr"]) == b"".join(b"%d\n" % -i for i in range(3000))
    assert (reply.stdout, reply.stderr) == (b"", b"")


def test_a_stream_is_taken_up_where_it_broke_off(daemon: Daemon, client: Client, session: str) -> None:
    code = "import time\nfor i in range(20): print(i, flush=True); time.sleep(0.02)"
    expected = b"".join(b"%d\n" % i for i in range(20))
    gone = Client(str(daemon.socket))
    request = start(gone, code, session, "k", stream=True)
    got = b""
    while len(got) < 10:
        event = gone.receive(request, m.ExecReply)
        assert isinstance(event, m.StdoutEvent) and event.at == len(got)
        got += event.data
    gone.close()
    seen, _ = watch(client, start(client, code, session, "k", stream=True, stdout=len(got)))
    assert got + joined(seen["stdout"], len(got)) == expected


@pytest.mark.parametrize("cursor", [0, 1, 5, 10, 11, 2**64 - 1])
def test_a_finished_stream_from_anywhere(client: Client, session: str, cursor: int) -> None:
    run(client, "print('0123456789', end='')", session, "k")
    seen, reply = watch(client, attach(client, session, key="k", stream=True, stdout=cursor))
    assert b"".join(data for _, data in seen["stdout"]) == b"0123456789"[min(cursor, 10) :]
    assert all(at == cursor for at, _ in seen["stdout"])
    assert reply.returncode == 0


@pytest.mark.parametrize("finished", [True, False])
def test_a_stream_tells_of_its_gap(client: Client, session: str, finished: bool) -> None:
    """What is kept is the head and the tail, and each says where it lies."""
    text = b"".join(b"%04d\n" % i for i in range(1000))
    tail = "" if finished else "; import sys, time; sys.stdout.flush(); time.sleep(1)"
    code = "for i in range(1000): print(f'{i:04}')\nprint(end='')" + tail
    client.open(session, "short")
    detach(client, code, session, "k")
    if finished:
        assert attached(client, session, key="k").stdout_dropped == 5000 - 1024
    else:
        time.sleep(0.5)
    seen, _ = watch(client, attach(client, session, key="k", stream=True))
    at = 0
    gaps = []
    for where, data in seen["stdout"]:
        if where != at:
            gaps.append(where - at)
        assert text[where : where + len(data)] == data
        at = where + len(data)
    assert (at, gaps) == (5000, [5000 - 1024])


def test_whoever_watches_first_misses_nothing(client: Client, session: str) -> None:
    """However little is kept."""
    client.open(session, "short")
    seen, _ = watch(client, start(client, "print('x' * 1_000_000)", session, "k", stream=True))
    assert joined(seen["stdout"]) == b"x" * 1_000_000 + b"\n"


# ---- input ----


def test_who_attaches_is_asked(daemon: Daemon, client: Client, session: str) -> None:
    gone = Client(str(daemon.socket))
    request = start(gone, "input('name? ')", session, "k", input=True)
    assert isinstance(gone.receive(request, m.ExecReply), m.AskEvent)
    gone.close()
    request = attach(client, session, key="k", input=True)
    ask = client.receive(request, m.ExecReply)
    assert isinstance(ask, m.AskEvent) and ask.prompt == "name? "
    client.input(request, "lair")
    assert client.finish(request, m.ExecReply).text == "'lair'"


def test_a_detached_cell_waits_for_input(client: Client, session: str) -> None:
    detach(client, "input()", session, "k", input=True)
    time.sleep(0.2)
    request = attach(client, session, key="k", input=True)
    assert isinstance(client.receive(request, m.ExecReply), m.AskEvent)
    client.input(request, "here")
    assert client.finish(request, m.ExecReply).text == "'here'"


def test_but_only_as_long_as_its_time_lasts(client: Client, session: str) -> None:
    client.open(session, "hasty")
    detach(client, "input()", session, "k", input=True)
    assert attached(client, session, key="k").cause == "timeout"


def test_a_person_may_think(client: Client, session: str) -> None:
    client.open(session, "hasty")
    detach(client, "input()", session, "k", input=True)
    request = attach(client, session, key="k", input=True)
    assert isinstance(client.receive(request, m.ExecReply), m.AskEvent)
    time.sleep(1.2)
    client.input(request, "slow")
    assert client.finish(request, m.ExecReply).text == "'slow'"


# ---- other requests ----


@pytest.mark.shipped
def test_a_small_answer_takes_little(client: Client, session: str) -> None:
    """What is kept is the answer, and not the buffer that it was made in."""
    client.open(session, "many")
    router = client.stats().pid
    for i in range(100):
        run(client, "1", session, f"cell-{i}")
    before = memory_of(router, "RssAnon")
    for i in range(100, 2100):
        run(client, "1", session, f"cell-{i}")
    assert len(results(client, session)) == 2100
    assert (memory_of(router, "RssAnon") - before) / 2000 < 4096


def test_undo_is_done_once(client: Client, other: Client, session: str) -> None:
    for i in range(3):
        client.exec(f"x = {i}", session)
    first = client.call(m.Undo(id=client.new_id(), session=session, key="u"), m.StateReply)
    again = other.call(m.Undo(id=other.new_id(), session=session, key="u"), m.StateReply)
    assert (first.cell, again.cell) == (2, 2)
    assert client.exec("x", session).text == "1"


def test_reset_is_done_once(client: Client, session: str) -> None:
    client.exec("x = 1", session)
    client.call(m.Reset(id=client.new_id(), session=session, key="r"), m.Reply)
    client.exec("x = 2", session)
    client.call(m.Reset(id=client.new_id(), session=session, key="r"), m.Reply)
    assert client.exec("x", session).text == "2"


def test_a_branch_is_grown_once(client: Client, session: str) -> None:
    client.exec("x = 1", session)
    request = [m.Branch(id=client.new_id(), session=session, branch=session + "2", key="b") for _ in range(2)]
    first, again = (client.call(it, m.SessionInfo) for it in request)
    assert first.session == again.session == session + "2"
    assert first.opened and again.opened
    client.shutdown(session + "2")


def test_a_shutdown_does_not_end_the_next_session(client: Client, session: str) -> None:
    client.open(session)
    client.call(m.Shutdown(id=client.new_id(), session=session, key="s"), m.Reply)
    client.open(session)
    client.call(m.Shutdown(id=client.new_id(), session=session, key="s"), m.Reply)
    assert client.info(session).session == session


def test_what_is_under_way_answers_both(client: Client, other: Client, session: str) -> None:
    client.open(session)
    ids = client.send(m.Reset(id=client.new_id(), session=session, key="r"))
    again = other.send(m.Reset(id=other.new_id(), session=session, key="r"))
    client.finish(ids, m.Reply)
    other.finish(again, m.Reply)


@pytest.mark.parametrize("bad", ["", "a b", "a\0b", "x" * 129])
def test_a_key_does_not_make_a_session_id_of_anything(client: Client, bad: str) -> None:
    for request in (m.Exec(id=0, session=bad, code="1", key="k"), m.Open(id=0, session=bad, key="k")):
        request.id = client.new_id()
        with pytest.raises(LairError) as refused:
            client.finish(client.send(request), m.Reply)
        assert refused.value.code == "bad_request"
    assert client.list() == []


# ---- users ----


@needs_root
def test_results_are_ones_own(daemon: Daemon, client: Client, session: str) -> None:
    daemon.share()
    run(client, "'secret'", session, "k")
    client.shutdown(session)
    attach = f"c.send(m.Attach(id=c.new_id(), session={session!r}, key='k'))"
    assert daemon.as_user(NOBODY, f"import lair.messages as m; print(c.finish({attach}, m.ExecReply))") == "gone"
    again = f"m.Exec(id=c.new_id(), session={session!r}, code=\"'secret'; 'mine'\", key='k')"
    act = f"import lair.messages as m; print(c.finish(c.send({again}), m.ExecReply).text); c.shutdown({session!r})"
    assert daemon.as_user(NOBODY, act) == "'mine'"


@needs_root
def test_root_asks_again_when_the_session_has_ended(daemon: Daemon, client: Client, session: str) -> None:
    """It was somebody else's: what root asked of it is not done in one of root's own."""
    daemon.share()
    daemon.as_user(NOBODY, f"c.exec('whose = 1', {session!r})")
    name = f"{NOBODY}/{session}"
    run(client, "whose", name, "k")
    client.shutdown(name)
    with daemon.client() as other:
        os.kill(other.stats().pid, signal.SIGKILL)
    with daemon.client() as other:
        assert run(other, "whose", name, "k").text == "1"
        attach = m.Attach(id=other.new_id(), session=name, key="k")
        assert other.call(attach, m.ExecReply).text == "1"
        assert other.list() == []


@needs_root
def test_root_sees_the_results_of_a_session(daemon: Daemon, client: Client, session: str) -> None:
    daemon.share()
    act = f"import lair.messages as m; r = m.Exec(id=1, session={session!r}, code='7', key='k'); c.finish(c.send(r), m.ExecReply)"
    daemon.as_user(NOBODY, act)
    name = f"{NOBODY}/{session}"
    assert attached(client, name, key="k").text == attached(client, name, cell=1).text == "7"
    client.shutdown(name)

"""A branch at a call: a cell that waits for calls goes on in two sessions, with answers of its own in each."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import pytest

import lair.aio
from daemon import Daemon, wait_until
from lair import Client, LairError
from lair import messages as m
from test_held_calls import Begin, Provider, answer, begin, calls
from test_router_death import kill_router

__all__ = ["begin"]

QUICK = {"spares": "0", "preload": ""}
SETTINGS = {
    "profile default": {"checkpoint": "cell"},
    "profile none": {**QUICK, "checkpoint": "off"},
    "profile asked": {**QUICK, "checkpoint": "manual"},
    "profile few": {**QUICK, "checkpoint": "cell", "checkpoints": "2"},
    "profile short": {**QUICK, "checkpoint": "cell", "cell_timeout": "1s", "hold_timeout": "1s"},
}

ANY = '{"additionalProperties": true}'
FUNCTIONS = [
    {"name": "look", "schema": ANY},
    {"name": "pay", "schema": ANY, "effect": True},
    {"name": "ask", "schema": ANY, "ask": True},
]
# Two calls out, 64 MB, a generator in the middle of its work.
GATHER = """
import asyncio
print("begun")
blob = bytearray(64 << 20)
squares = (n * n for n in range(100))
next(squares)
async def both():
    pair = await asyncio.gather(tools.look.aio(n=1), tools.look.aio(n=2))
    await asyncio.sleep(0)
    return [*pair, next(squares), len(blob)]
(await both(), await asyncio.create_task(both()))[0]
"""


def branch(client: Client, session: str, new: str, **fields: Any) -> m.SessionInfo:
    request = m.Branch(id=client.new_id(), session=session, branch=new, at_call=True, **fields)
    return client.call(request, m.SessionInfo)


def run(client: Client, code: str, session: str, **fields: Any) -> m.ExecReply:
    request = m.Exec(id=client.new_id(), session=session, code=code, **fields)
    return client.finish(client.send(request), m.ExecReply)


def result_of(client: Client, session: str, key: str | None, timeout: float = 10) -> m.ExecReply:
    exec_id = client.send(m.Attach(id=client.new_id(), session=session, key=key))
    return client.finish(exec_id, m.ExecReply, timeout)


def given(client: Client, session: str, **values: Any) -> None:
    for name, value in values.items():
        answer(client, session, int(name[1:]), value=value)


def waits(client: Client, session: str, n: int) -> None:
    wait_until(lambda: len(calls(client, session)) == n, f"{n} calls wait in {session}")


def test_two_calls_out(daemon: Daemon, client: Client, begin: Begin) -> None:
    provider = begin(GATHER, session="a", functions=FUNCTIONS)
    first = [provider.called() for _ in range(2)]
    began = time.perf_counter()
    info = branch(client, "a", "b")
    took = time.perf_counter() - began
    print(f"branched in {took * 1e3:.1f} ms")
    assert info.session == "b" and info.key and info.key != provider.key and info.opened and info.state == "busy"
    assert took < 0.5
    for call in first:
        provider.give(call, value=f"a{call.number}")
    given(client, "b", _1="b1", _2="b2")
    for number in (3, 4):
        call = provider.called()
        assert call.number == number
        provider.give(call, value=0)
    waits(client, "b", 2)
    given(client, "b", _3=0, _4=0)
    mine, other = provider.result(), result_of(client, "b", info.key)
    assert mine.error is None and other.error is None, (mine.error, other.error)
    assert mine.text == f"['a1', 'a2', 1, {64 << 20}]"
    assert other.text == f"['b1', 'b2', 1, {64 << 20}]"
    assert mine.cell == other.cell == 1 and other.session == "b"
    assert mine.stdout == other.stdout == b"begun\n"
    for session in "ab":
        assert run(client, "next(squares)", session).text == "9", session
    client.undo("b", 2)
    assert "NameError" in str(run(client, "squares", "b").error)
    assert run(client, "next(squares)", "a").text == "16"


PLAIN = """
import random, threading
random.seed(1)
x = [tools.look(word="tide")]
x.append(random.random())
x
"""


def test_a_plain_call(daemon: Daemon, client: Client, begin: Begin) -> None:
    """tools.f() blocks the thread: no loop runs. The generators of the branch start anew."""
    provider = begin(PLAIN, session="c", functions=FUNCTIONS)
    call = provider.called()
    info = branch(client, "c", "d")
    [record] = calls(client, "d")
    assert (record.state, record.function, record.arguments, record.key) == (
        "out",
        "look",
        {"word": "tide"},
        info.key,
    )
    given(client, "d", _1="other")
    other = result_of(client, "d", info.key)
    provider.give(call, value="mine")
    mine = provider.result()
    assert (
        mine.text and other.text and mine.text.startswith("['mine', 0.134") and other.text.startswith("['other', ")
    )
    assert "0.134" not in other.text


def test_random_numbers_after_going_back(daemon: Daemon, client: Client, begin: Begin) -> None:
    """The state before the cell is that of both, and they do not draw the same from it."""
    run(client, "import random; random.seed(1)", "c2")
    provider = begin("tools.ask()", session="c2", functions=FUNCTIONS)
    provider.held()
    keys = {name: branch(client, "c2", name).key for name in ("d1", "d2")}
    drawn = set()
    for name, key in keys.items():
        client.call(m.Interrupt(id=client.new_id(), session=name, kill=True), m.InterruptReply)
        assert result_of(client, name, key).restored == 1
        drawn.add(run(client, "random.random()", name).text)
    client.call(m.Interrupt(id=client.new_id(), session="c2", kill=True), m.InterruptReply)
    provider.result()
    drawn.add(run(client, "random.random()", "c2").text)
    assert len(drawn) == 3 and "0.13436424411240122" in drawn


def test_a_loop_of_its_own(daemon: Daemon, client: Client, begin: Begin) -> None:
    code = """
import asyncio
async def main():
    async def one(n):
        value = await tools.look.aio(n=n)
        await asyncio.sleep(0.01)
        return value
    return await asyncio.gather(one(1), one(2), asyncio.to_thread(lambda: 3))
asyncio.run(main())
"""
    provider = begin(code, session="e", functions=FUNCTIONS)
    first = [provider.called() for _ in range(2)]
    info = branch(client, "e", "f")
    again = branch(client, "f", "g")
    given(client, "g", _1=10, _2=20)
    given(client, "f", _2=2, _1=1)
    for call in first:
        provider.give(call, value=call.number)
    assert provider.result().text == "[1, 2, 3]"
    assert result_of(client, "f", info.key).text == "[1, 2, 3]"
    assert result_of(client, "g", again.key).text == "[10, 20, 3]"
    assert run(client, "tools", "g").error is None


def test_threads_are_in_both(daemon: Daemon, client: Client, begin: Begin) -> None:
    """Those of a pool, one that counts, one that sleeps, and those of a library; none of them waits for a call."""
    code = """
import concurrent.futures, queue, threading, time
pool = concurrent.futures.ThreadPoolExecutor(3)
list(pool.map(time.sleep, [0.01] * 3))
counted, orders, results, stop = [0], queue.Queue(), queue.Queue(), False
def count():
    while not stop:
        counted[0] += 1
        time.sleep(0.001)
def serve():
    while True:
        results.put(orders.get() * 2)
threads = [threading.Thread(target=it, daemon=True) for it in (count, serve)]
[it.start() for it in threads]
answer = tools.look(n=1)
before = counted[0]
while counted[0] == before:
    time.sleep(0.001)
orders.put(answer)
result = results.get(), list(pool.map(abs, [-1, 2])), threading.active_count()
stop = True
threads[0].join()
result
"""
    provider = begin(code, session="pool1", functions=FUNCTIONS)
    call = provider.called()
    info = branch(client, "pool1", "pool2")
    again = branch(client, "pool2", "pool3")
    given(client, "pool3", _1="c")
    given(client, "pool2", _1="b")
    provider.give(call, value="a")
    assert provider.result().text == "('aa', [1, 2], 6)"
    assert result_of(client, "pool2", info.key).text == "('bb', [1, 2], 6)"
    assert result_of(client, "pool3", again.key).text == "('cc', [1, 2], 6)"
    for session in ("pool1", "pool2", "pool3"):
        reply = run(client, "orders.put(4); results.get()", session)
        assert (reply.text, reply.unfaithful) == ("8", None), session
    client.undo("pool3", 1)


def test_a_thread_that_waits_for_a_call_is_in_the_way(client: Client, begin: Begin) -> None:
    code = """
import threading
answers, asked = [], threading.Event()
thread = threading.Thread(target=lambda: (asked.wait(), answers.append(tools.look(n=2))))
thread.start()
answers.append(tools.look(n=1))
asked.set()
answers.append(tools.look(n=3))
thread.join()
len(answers)
"""
    provider = begin(code, session="waits1", functions=FUNCTIONS)
    first = provider.called()
    info = branch(client, "waits1", "waits2")
    provider.give(first, value=0)
    both = [provider.called() for _ in range(2)]
    assert "another thread than the main one waits for a call" in refused(client, "waits1", "unsupported")
    for call in both:
        provider.give(call, value=0)
    assert provider.result().text == "3"
    given(client, "waits2", _1=0)
    waits(client, "waits2", 2)
    given(client, "waits2", _2=0, _3=0)
    assert result_of(client, "waits2", info.key).text == "3"


def test_who_attaches_to_the_branch(daemon: Daemon, client: Client, begin: Begin) -> None:
    """It is offered the plain call under the key of the branch's cell; what has an effect, asks or is held asks."""
    code = """
import asyncio
await asyncio.gather(*(it.aio(n=1) for it in (tools.look, tools.pay, tools.ask, tools.look)))
"""
    provider = begin(code, session="h", functions=FUNCTIONS)
    events = {event.number: event for event in (provider.event() for _ in range(4))}
    assert isinstance(events[3], m.HeldEvent) and isinstance(events[2], m.CallEvent)
    provider.give(events[4], hold=True, text="Anna reads it")
    info = branch(client, "h", "i")
    states = {it.number: (it.state, it.text) for it in calls(client, "i")}
    assert states[1] == ("out", None)
    assert states[2][0] == states[3][0] == states[4][0] == "asks"
    assert "has an effect" in str(states[2][1]) and "approved" in str(states[3][1])
    assert "Anna reads it" in str(states[4][1])
    before = {it.number: it.state for it in calls(client, "h")}
    assert before == {1: "out", 2: "out", 3: "asks", 4: "held"}

    other = object.__new__(Provider)
    other.client, other.session, other.key = Client(str(daemon.socket)), "i", info.key or ""
    request = m.Attach(id=other.client.new_id(), session="i", key=info.key, calls=True)
    other.exec = other.client.send(request)
    with other.client:
        offered = [other.event() for _ in range(4)]
        assert [(it.number, type(it)) for it in offered] == [
            (1, m.CallEvent),
            (2, m.HeldEvent),
            (3, m.HeldEvent),
            (4, m.HeldEvent),
        ]
        other.give(offered[0], value="i1")
        answer(client, "i", 2, approve=True)
        call = other.called()
        assert call.number == 2 and call.function == "pay"
        other.give(call, value="i2")
        answer(client, "i", 3, value="i3")
        answer(client, "i", 4, value="i4")
        assert other.result().text == "['i1', 'i2', 'i3', 'i4']"
    for number in (1, 2):
        provider.give(events[number], value=f"h{number}")
    answer(client, "h", 3, approve=True)
    provider.give(provider.called(), value="h3")
    answer(client, "h", 4, value="h4")
    assert provider.result().text == "['h1', 'h2', 'h3', 'h4']"


def test_a_call_with_an_effect_is_not_repeated(daemon: Daemon, client: Client, begin: Begin) -> None:
    """What one of the two has done, the other does not do again by mistake."""
    code = "tools.look(); tools.pay(to='bob')"
    provider = begin(code, session="j", functions=FUNCTIONS)
    call = provider.called()
    info = branch(client, "j", "k")
    provider.give(call, value=None)
    provider.give(provider.called(), value="paid")
    assert provider.result().error is None
    given(client, "k", _1=None)
    error = result_of(client, "k", info.key).error
    assert error and error["name"] == "RepeatError" and 'cell 1 of session "j"' in error["value"]


def test_each_ends_by_itself(daemon: Daemon, client: Client, begin: Begin) -> None:
    run(client, "x = 1", "l")
    run(client, "x = 2", "l")
    provider = begin("x = 3; tools.look(); x", session="l", functions=FUNCTIONS)
    call = provider.called()
    keys = {name: branch(client, "l", name).key for name in ("killed", "stopped", "goes", "ended")}
    assert client.call(m.Interrupt(id=client.new_id(), session="killed", kill=True), m.InterruptReply).interrupted
    killed = result_of(client, "killed", keys["killed"])
    assert (killed.state, killed.restored, killed.cause) == ("rolled_back", 2, "interrupt")
    assert run(client, "x", "killed").text == "2"
    client.call(m.Interrupt(id=client.new_id(), session="stopped"), m.InterruptReply)
    stopped = result_of(client, "stopped", keys["stopped"])
    assert (stopped.state, stopped.cause) == ("kept", "interrupt")
    assert run(client, "x", "stopped").text == "3"
    client.undo("stopped", 2)
    assert run(client, "x", "stopped").text == "2"
    client.shutdown("ended")
    assert result_of(client, "ended", keys["ended"]).state == "ended"
    # The parent is killed: the state before its cell is still there for the last branch.
    client.call(m.Interrupt(id=client.new_id(), session="l", kill=True), m.InterruptReply)
    lost = provider.result()
    assert (lost.state, lost.restored) == ("rolled_back", 2)
    client.shutdown("l")
    client.call(m.Interrupt(id=client.new_id(), session="goes", kill=True), m.InterruptReply)
    last = result_of(client, "goes", keys["goes"])
    assert (last.state, last.restored) == ("rolled_back", 2)
    assert run(client, "x", "goes").text == "2"
    assert call.number == 1


def refused(client: Client, session: str, code: str, **fields: Any) -> str:
    with pytest.raises(LairError) as raised:
        branch(client, session, "never", **fields)
    assert raised.value.code == code, raised.value
    return str(raised.value)


def test_what_cannot_be_branched(daemon: Daemon, client: Client, begin: Begin) -> None:
    run(client, "1", "m")
    assert "runs no cell that may call" in refused(client, "m", "gone")
    assert "without origin" in refused(client, "m", "bad_request", files=True)
    threads = """
import asyncio
import threading
answers = []
thread = threading.Thread(target=lambda: answers.append(tools.look(n=2)))
thread.start()
answers.append(tools.look(n=1))
thread.join()
len(answers)
"""
    provider = begin(threads, session="m", functions=FUNCTIONS)
    both = [provider.called() for _ in range(2)]
    assert "thread" in refused(client, "m", "unsupported")
    for call in both:
        provider.give(call, value=0)
    assert provider.result().text == "2"
    working = """
import asyncio, time
async def work():
    await asyncio.sleep(0.01)
    time.sleep(3)
await asyncio.gather(tools.look.aio(), work())
"""
    provider = begin(working, session="m", functions=FUNCTIONS)
    call = provider.called()
    time.sleep(0.1)
    assert "at work" in refused(client, "m", "busy")
    assert "another branch" in refused(client, "m", "busy")
    wait_until(lambda: "another branch" not in trial(client, "m", "late"), "the copy has come, too late")
    provider.give(call, value=0)
    provider.result()
    plain = begin("tools.look()", session="n", functions=FUNCTIONS, profile="none")
    call = plain.called()
    assert "checkpoint = off" in refused(client, "n", "unsupported")
    plain.give(call, value=0)
    with pytest.raises(LairError) as raised:
        client.call(m.Branch(id=client.new_id(), session="nobody", branch="x", at_call=True), m.SessionInfo)
    assert raised.value.code == "no_session"


def trial(client: Client, session: str, new: str) -> str:
    try:
        branch(client, session, new)
    except LairError as error:
        return str(error)
    return ""


def test_without_the_flag_it_is_busy(daemon: Daemon, client: Client, begin: Begin) -> None:
    provider = begin("tools.look()", session="o", functions=FUNCTIONS)
    call = provider.called()
    with pytest.raises(LairError) as raised:
        client.branch("o", "p")
    assert raised.value.code == "busy"
    provider.give(call, value=0)


def test_the_clock(daemon: Daemon, client: Client, begin: Begin) -> None:
    """The time of a cell goes on if nobody answers its plain calls; it stands still while one asks."""
    code = "import asyncio\nawait asyncio.gather(tools.look.aio(), tools.ask.aio())"
    provider = begin(code, session="q", functions=FUNCTIONS, profile="short")
    for _ in range(2):
        provider.event()
    info = branch(client, "q", "r")
    answer(client, "r", 2, value=0)
    began = time.monotonic()
    late = result_of(client, "r", info.key)
    assert (late.cause, late.returncode) == ("timeout", 124)
    assert time.monotonic() - began > 0.5
    provider = begin("tools.ask()", session="q2", functions=FUNCTIONS, profile="short")
    provider.held()
    info = branch(client, "q2", "r2")
    unheard = result_of(client, "r2", info.key).error
    assert unheard and unheard["name"] == "TimeoutError" and "hold_timeout" in unheard["value"]


def test_the_client_is_gone(daemon: Daemon, client: Client, begin: Begin) -> None:
    provider = begin("tools.ask()", session="s", functions=FUNCTIONS)
    provider.held()
    provider.client.close()
    info = branch(client, "s", "t")
    answer(client, "t", value="yes")
    assert result_of(client, "t", info.key).text == "'yes'"
    answer(client, "s", value="no")
    assert result_of(client, "s", provider.key).text == "'no'"


def test_what_was_printed_and_shown(daemon: Daemon, client: Client, begin: Begin) -> None:
    code = """
import sys
from IPython.display import display, HTML
display(HTML("<b>one</b>"))
print("o" * 300_000, end="")
print("e", file=sys.stderr, end="")
tools.look()
print("after", end="")
"""
    provider = begin(code, session="u", functions=FUNCTIONS)
    provider.called()
    info = branch(client, "u", "v")
    kill_router(daemon)
    with Client(str(daemon.socket)) as another:
        given(another, "v", _1=0)
        other = result_of(another, "v", info.key)
        assert len(other.stdout) == 300_005 and other.stdout.endswith(b"oafter") and other.stderr == b"e"
        assert other.displays and len(other.displays) == 1
        given(another, "u", _1=0)
        mine = result_of(another, "u", provider.key)
        assert mine.stdout == other.stdout and mine.displays == other.displays


def test_a_cell_that_makes_endless_calls(daemon: Daemon, client: Client, begin: Begin) -> None:
    """Each branch has each answer once, whether it came before the copy or while that was made."""
    provider = begin(
        "seen = []\nwhile True: seen.append(tools.look(n=len(seen)))", session="w", functions=FUNCTIONS
    )
    provider.give(provider.called(), value=0)
    ends = threading.Event()

    def answer_all() -> None:
        while not ends.is_set():
            call = provider.event()
            if isinstance(call, m.ExecReply):
                break
            if isinstance(call, m.CallEvent):
                value = call.arguments["n"]
                provider.client.send(
                    m.Return(id=provider.client.new_id(), exec=provider.exec, number=call.number, value=value)
                )

    thread = threading.Thread(target=answer_all)
    thread.start()
    try:
        for n in range(30):
            name = f"w{n}"
            info = branch(client, "w", name)
            waits(client, name, 1)
            [record] = calls(client, name)
            assert record.arguments == {"n": record.number - 1}
            given(client, name, **{f"_{record.number}": record.number - 1})
            waits(client, name, 1)
            assert client.interrupt(name)
            assert result_of(client, name, info.key).cause == "interrupt"
            seen = run(client, "seen == list(range(len(seen))), len(seen)", name).text
            assert seen == f"(True, {record.number})", (seen, record)
            client.shutdown(name)
    except LairError:
        print(daemon.log()[-3000:])
        raise
    finally:
        client.interrupt("w")
        ends.set()
        thread.join()


def test_the_number_of_sessions() -> None:
    small = Daemon({"daemon": {"sessions_per_uid": "2"}, "profile default": SETTINGS["profile default"]})
    try:
        provider = Provider(small, "tools.ask()", session="a", functions=FUNCTIONS)
        with provider.client, Client(str(small.socket)) as other:
            provider.held()
            branch(other, "a", "b")
            assert "sessions_per_uid" in refused(other, "a", "limit")
            with pytest.raises(LairError) as raised:
                branch(other, "a", "b")
            assert raised.value.code == "denied"
    finally:
        small.end()


def test_the_state_before_is_shared(daemon: Daemon, client: Client, begin: Begin) -> None:
    """It stays until the last of those who have it lets it go, however its parent fares."""
    run(client, "x = 1", "x", profile="few")
    client.checkpoint("x", "before")
    provider = begin("x = 2; tools.look(); x", session="x", functions=FUNCTIONS)
    call = provider.called()
    keys = {name: branch(client, "x", name).key for name in ("x1", "x2", "x3")}
    assert [it.cell for it in client.checkpoints("x1")] == [1]
    provider.give(call, value=0)
    provider.result()
    client.drop("x", "before")
    for n in range(4):
        run(client, f"x = {n}", "x")
    assert 1 not in [it.cell for it in client.checkpoints("x")]
    kill_router(daemon)
    with Client(str(daemon.socket)) as other:
        other.call(m.Interrupt(id=other.new_id(), session="x1", kill=True), m.InterruptReply)
        lost = result_of(other, "x1", keys["x1"])
        assert (lost.state, lost.restored) == ("rolled_back", 1)
        other.shutdown("x")
        other.shutdown("x1")
        other.call(m.Interrupt(id=other.new_id(), session="x2", kill=True), m.InterruptReply)
        assert result_of(other, "x2", keys["x2"]).restored == 1
        assert run(other, "x", "x2").text == "1"
        other.call(m.Interrupt(id=other.new_id(), session="x3", kill=True), m.InterruptReply)
        assert result_of(other, "x3", keys["x3"]).restored == 1
        other.drop("x3", "1")
        assert run(other, "x", "x3").text == "1"


def test_the_python_client(daemon: Daemon, client: Client) -> None:
    """One answer for the one, another for the other: how a tree of approvals grows."""
    code = "plan = ['a', 'b']; verdict = tools.ask(plan=plan); (plan, verdict)"
    with (
        lair.Connection(str(daemon.socket), start=False) as connection,
        lair.Session("y", connection=connection) as session,
    ):
        request = m.Exec(id=client.new_id(), session="y", code=code, functions=FUNCTIONS, key="first", detach=True)
        client.call(request, m.DetachedReply)
        wait_until(session.calls, "it waits")
        with pytest.raises(LairError):
            session.branch("z")
        with session.branch(at_call=True) as other:
            assert other.key and other.key != "first"
            assert [it.state for it in other.calls()] == ["asks"]
            other.answer_call(1, "only a")
            session.answer_call(1, "all")
            assert other.attach(other.key).text == "(['a', 'b'], 'only a')"
            assert session.attach("first").text == "(['a', 'b'], 'all')"
        assert session.branch().key == ""


async def both_ways(connection: lair.Connection) -> tuple[str | None, str | None]:
    def hold() -> None:
        raise lair.Hold("later")

    async with lair.aio.Session(connection=connection) as session:
        cell = asyncio.create_task(session.run("tools.hold()", functions=[hold]))
        while not [it for it in await session.calls() if it.state == "held"]:
            await asyncio.sleep(0.01)
        async with await session.branch(at_call=True) as other:
            await other.answer_call(1, "b")
            await session.answer_call(1, "a")
            return (await cell).text, (await other.attach(other.key)).text


def test_async_python(daemon: Daemon) -> None:
    with lair.Connection(str(daemon.socket), start=False) as connection:
        assert asyncio.run(both_ways(connection)) == ("'a'", "'b'")


def test_the_shell(daemon: Daemon, client: Client, begin: Begin) -> None:
    provider = begin("tools.ask()", session="A", functions=FUNCTIONS)
    provider.held()
    busy = daemon.lair("branch", "A", "B")
    assert busy.returncode and "a cell runs" in busy.stderr
    told = daemon.lair("branch", "--at-call", "A", "B").stdout
    assert "lair attach B 1" in told, told
    daemon.lair("answer", "B", "1", '"no"')
    assert daemon.lair("attach", "B", "1").stdout == "'no'\n"
    document = daemon.lair_json("branch", "--at-call", "A", "C")
    assert document["key"] and document["state"] == "busy"
    daemon.lair("answer", "C", "1", '"perhaps"')
    assert daemon.lair("attach", "C", "--key", document["key"]).stdout == "'perhaps'\n"
    both = daemon.lair("branch", "--at-call", "--files", "A", "D")
    assert both.returncode and "without files" in both.stderr

"""Calls that a function puts aside, and calls that somebody approves, from Python."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

import lair
from daemon import Daemon, wait_until
from lair import Connection, LairError, Result, Session, aio
from test_router_death import kill_router

SETTINGS = {"profile default": {"checkpoint": "cell"}}

done: list[Any] = []


def pay(to: str, amount: int = 1) -> str:
    done.append((to, amount))
    return f"paid {amount} to {to}"


def wait_for_the_boss(what: str) -> str:
    done.append(lair.current().number)
    raise lair.Hold(f"the boss has to say about {what}")


@pytest.fixture
def connection(daemon: Daemon) -> Iterator[Connection]:
    done.clear()
    with Connection(str(daemon.socket), start=False) as it:
        yield it


Run = Callable[..., "Future[Result]"]


@pytest.fixture
def run() -> Iterator[Run]:
    """A cell that runs meanwhile."""
    with ThreadPoolExecutor() as pool:

        def begin(session: Session, code: str, **options: Any) -> Future[Result]:
            return pool.submit(lambda: session.run(code, **options))

        yield begin


def waiting(session: Session, state: str, n: int = 1) -> lair.Waiting:
    wait_until(lambda: [it.state for it in session.calls()] == [state] * n, f"{n} calls are {state}")
    return session.calls()


# ---- put aside ----


def test_a_call_that_is_put_aside(connection: Connection, run: Run) -> None:
    with Session(connection=connection, functions=[wait_for_the_boss]) as s:
        cell = run(s, "x = 5\n(x, tools.wait_for_the_boss('lunch'))")
        (held,) = waiting(s, "held")
        assert (held.function, held.arguments, held.text) == (
            "wait_for_the_boss",
            {"what": "lunch"},
            "the boss has to say about lunch",
        )
        assert [it.number for it in lair.calls(connection=connection) if it.session == s.id] == [held.number]
        s.answer_call(held.number, {"yes": True})
        assert cell.result().text == "(5, {'yes': True})"
        assert not s.calls()
        with pytest.raises(LairError, match="gone"):
            s.answer_call(held.number, 1)


def test_what_a_person_is_asked_is_tame(connection: Connection) -> None:
    """As the documentation has it: input(f"{call}? [y/n] ")."""
    asked = []

    def approve(call: lair.Calling) -> bool:
        asked.append(str(call))
        return True

    def anything(**more: Any) -> None:
        pass

    functions = [lair.Function(anything, ask=True)]
    with Session(connection=connection, functions=functions, approve=approve) as s:
        assert s.run("tools.anything(**{'a=1, b': '\x1b[2J', '\x1b\u202e': 2, 'c': ['\u202e']})").ok
    assert asked == [r"anything('a=1, b'='\x1b[2J', '\x1b\u202e'=2, c=['\u202e'])"]


def test_each_kind_of_answer(connection: Connection, run: Run) -> None:
    code = """
import asyncio
def said(n):
    return tools.wait_for_the_boss.aio(str(n))
await asyncio.gather(*map(said, range(3)), return_exceptions=True)"""
    with Session(connection=connection, functions=[wait_for_the_boss]) as s:
        cell = run(s, code)
        first, second, third = sorted(waiting(s, "held", 3), key=lambda it: str(it.arguments))
        lair.answer_call(first, (1, b"2"), connection=connection)
        lair.answer_call(second, error="KeyError", text="none", connection=connection)
        lair.refuse_call(third, "too dear", connection=connection)
        assert cell.result().text == (
            "[[1, b'2'], KeyError('none'), PermissionError('wait_for_the_boss was refused: too dear')]"
        )
        with pytest.raises(TypeError, match="a set cannot be sent"):
            s.answer_call(1, {1})


def test_the_time_of_a_program_stands_still(connection: Connection, run: Run) -> None:
    with Session(connection=connection, functions=[wait_for_the_boss]) as s:
        cell = run(s, "tools.wait_for_the_boss('a')", deadline=0.5, timeout=0.5)
        (held,) = waiting(s, "held")
        with pytest.raises(TimeoutError):
            cell.exception(1.5)
        s.answer_call(held.number, "yes")
        assert cell.result().text == "'yes'"


def test_a_router_that_dies_meanwhile(daemon: Daemon, connection: Connection, run: Run) -> None:
    with Session(connection=connection, functions=[wait_for_the_boss]) as s:
        cell = run(s, "tools.wait_for_the_boss('a')")
        (held,) = waiting(s, "held")
        kill_router(daemon)
        (again,) = waiting(s, "held")
        assert (again.number, again.text) == (held.number, held.text)
        s.answer_call(again.number, "yes")
        assert cell.result().text == "'yes'"
        assert done == [1]


def test_an_interrupt_of_a_cell_whose_call_is_held(connection: Connection, run: Run) -> None:
    with Session(connection=connection, functions=[wait_for_the_boss]) as s:
        cell = run(s, "tools.wait_for_the_boss('a')")
        waiting(s, "held")
        s.interrupt()
        assert cell.result().cause == "interrupt"
        assert not s.calls()


def test_the_same_for_asyncio(daemon: Daemon) -> None:
    async def held(s: aio.Session) -> lair.CallRecord:
        while not (calls := await s.calls()) or calls[0].state != "held":
            await asyncio.sleep(0.01)
        return calls[0]

    async def run() -> None:
        with Connection(str(daemon.socket), start=False) as connection:
            async with aio.Session(connection=connection, functions=[wait_for_the_boss]) as s:
                cell = asyncio.create_task(s.run("tools.wait_for_the_boss('a')"))
                await s.answer_call((await held(s)).number, 3)
                assert (await cell).text == "3"
                cell = asyncio.create_task(s.run("tools.wait_for_the_boss('b')"))
                await held(s)
                (call,) = [it for it in await aio.calls(connection=connection) if it.session == s.id]
                await aio.refuse_call(call, "no", connection=connection)
                error = (await cell).error
                assert error and error.name == "PermissionError"

    asyncio.run(run())


# ---- approved ----

ASKS = lair.Function(pay, ask=True)


def test_a_call_is_approved_or_refused(connection: Connection) -> None:
    asked: list[lair.Calling] = []

    def approve(call: lair.Calling) -> bool | str:
        asked.append(call)
        if call.arguments["amount"] > 100:
            return "that is a lot"
        return bool(call.arguments["to"] == "bob")

    with Session(connection=connection, functions=[ASKS], approve=approve) as s:
        assert s.run("tools.pay('bob', 5)").text == "'paid 5 to bob'"
        assert repr(asked[0]) == "pay(to='bob', amount=5)" and asked[0].number == 1
        assert asked[0].key.endswith("/1")
        error = s.run("tools.pay('bob', 500)").error
        assert error and (error.name, error.value) == ("PermissionError", "pay was refused: that is a lot")
        error = s.run("tools.pay('eve', 1)").error
        assert error and (error.name, error.value) == ("PermissionError", "pay was refused")
    assert done == [("bob", 5)]


def test_it_is_asked_about_one_after_the_other(connection: Connection) -> None:
    at_once, most = 0, 0
    lock = threading.Lock()

    def approve(call: lair.Calling) -> bool:
        nonlocal at_once, most
        with lock:
            at_once += 1
            most = max(most, at_once)
        threading.Event().wait(0.01)
        with lock:
            at_once -= 1
        return bool(call.arguments["amount"] % 2 == 0)

    code = """
import asyncio
calls = [tools.pay.aio('bob', n) for n in range(10)]
[type(it).__name__ for it in await asyncio.gather(*calls, return_exceptions=True)]"""
    with Session(connection=connection, functions=[ASKS], approve=approve) as s:
        assert s.run(code).text == str(["str", "PermissionError"] * 5)
    assert most == 1


def test_somebody_else_approves(connection: Connection, run: Run) -> None:
    """Without `approve`, and if that says None."""
    code = """
r = []
for n in range(2):
    try:
        r.append(tools.pay('bob', n))
    except PermissionError as error:
        r.append(str(error))
r"""
    for options in ({}, {"approve": lambda call: None}):
        with Session(connection=connection, functions=[ASKS]) as s:
            cell = run(s, code, **options)
            (asks,) = waiting(s, "asks")
            assert asks.arguments == {"to": "bob", "amount": 0}
            s.approve_call(asks.number)
            wait_until(lambda: [it.number for it in s.calls()] == [2], "the second asks")
            lair.refuse_call(s.calls()[0], "no", connection=connection)
            assert cell.result().text == "['paid 0 to bob', 'pay was refused: no']"


def test_an_approval_that_fails_ends_the_cell(connection: Connection) -> None:
    def fails(call: lair.Calling) -> bool:
        raise RuntimeError("no idea")

    with Session(connection=connection, functions=[ASKS]) as s:
        with pytest.raises(RuntimeError, match="no idea"):
            s.run("tools.pay('bob')", approve=fails)
        with pytest.raises(TypeError, match="approve: expected True, False, a text or None"):
            s.run("tools.pay('bob')", approve=lambda call: 1)
        assert s.run("1 + 1").text == "2"
    assert not done


def test_an_interrupt_while_a_person_thinks(connection: Connection) -> None:
    def approve(call: lair.Calling) -> bool:
        s.interrupt()
        return call.cancelled.wait(20)

    with Session(connection=connection, functions=[ASKS]) as s:
        assert s.run("tools.pay('bob')", approve=approve).cause == "interrupt"
        assert s.run("tools.pay('bob')", approve=lambda call: True).ok
    assert done == [("bob", 1)]


def test_a_router_that_dies_while_a_person_thinks(daemon: Daemon, connection: Connection) -> None:
    asked = 0

    def approve(call: lair.Calling) -> bool:
        nonlocal asked
        asked += 1
        kill_router(daemon)
        return True

    with Session(connection=connection, functions=[ASKS], approve=approve) as s:
        assert s.run("tools.pay('bob')").text == "'paid 1 to bob'"
    assert asked == 1 and done == [("bob", 1)]


def test_approval_in_asyncio(daemon: Daemon) -> None:
    async def approve(call: lair.Calling) -> bool:
        await asyncio.sleep(0.01)
        return bool(call.arguments["to"] == "bob")

    async def run() -> None:
        connection = Connection(str(daemon.socket), start=False)
        for it in (approve, lambda call: call.arguments["to"] == "bob"):
            async with aio.Session(connection=connection, functions=[ASKS], approve=it) as s:
                assert (await s.run("tools.pay('bob')")).text == "'paid 1 to bob'"
                error = (await s.run("tools.pay('eve')")).error
                assert error and error.name == "PermissionError"

    asyncio.run(run())

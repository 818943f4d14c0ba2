"""lair.aio: the same for asyncio."""

from __future__ import annotations

import asyncio
import gc
import inspect
import time
from collections.abc import Callable, Coroutine
from contextlib import aclosing

import pytest

import lair
from daemon import Daemon
from lair import Connection, LairError, Output, Result, aio

SETTINGS = {"profile default": {"checkpoint": "cell"}}

Scenario = Callable[[Connection], Coroutine[None, None, None]]


def go(daemon: Daemon, scenario: Scenario) -> None:
    with Connection(str(daemon.socket), start=False) as connection:
        asyncio.run(scenario(connection), debug=True)


def test_the_names_are_the_same() -> None:
    """Whatever lair.Session can do, lair.aio.Session can, with the same arguments."""

    def methods(cls: type) -> dict[str, list[str]]:
        found = inspect.getmembers(cls, inspect.isfunction)
        return {name: list(inspect.signature(it).parameters) for name, it in found if not name.startswith("_")}

    assert methods(aio.Session) == methods(lair.Session)
    for name in ("run", "sessions"):
        ours, theirs = getattr(aio, name), getattr(lair, name)
        assert list(inspect.signature(ours).parameters) == list(inspect.signature(theirs).parameters)


def test_a_session(daemon: Daemon) -> None:
    async def scenario(connection: Connection) -> None:
        assert (await aio.run("1 + 1", connection=connection)).text == "2"
        async with aio.Session(connection=connection) as s:
            await s.run("x = 41")
            assert (await s.run("x + 1")).text == "42"
            assert not await s.diff()
            assert (await s.undo()).cell == 1
            assert (await s.checkpoint("here")).name == "here"
            async with await s.branch(checkpoint="here") as other:
                assert (await other.run("x")).text == "41"
            await s.put("a/b", b"text")
            assert await s.get("a/b") == b"text"
            assert [file.name for file in await s.files()] == [".branches", "a"]
            await s.reset()
            with pytest.raises(lair.CellFailed, match="NameError"):
                (await s.run("x")).raise_for_error()
            with pytest.raises(LairError) as missing:
                await s.get("nothing")
            assert missing.value.code == "no_file"
        assert await aio.sessions(connection) == []

    go(daemon, scenario)


def test_output_and_input(daemon: Daemon) -> None:
    async def scenario(connection: Connection) -> None:
        seen: list[str] = []

        async def output(text: str, stream: str) -> None:
            await asyncio.sleep(0)
            seen.append(text)

        async def answer(prompt: str, password: bool) -> str:
            await asyncio.sleep(0.01)
            return prompt.upper()

        async with aio.Session(connection=connection) as s:
            result = await s.run("print(input('name'))", on_output=output, input=answer)
            assert result.stdout == "".join(seen)
            assert result.stdout.endswith("NAME\n")
            assert (await s.run("input('a')", input=lambda prompt, password: "plain")).text == "'plain'"
            events = [event async for event in s.stream("print(1); 2")]
            assert isinstance(events[0], Output)
            assert isinstance(events[-1], Result)
            assert (events[0].text, events[-1].text) == ("1\n", "2")

    go(daemon, scenario)


def test_many_at_once(daemon: Daemon) -> None:
    async def scenario(connection: Connection) -> None:
        async def one(n: int) -> str | None:
            async with aio.Session(connection=connection) as s:
                await s.run(f"import time; time.sleep(0.3); x = {n}")
                return (await s.run("x")).text

        started = time.monotonic()
        assert await asyncio.gather(*map(one, range(8))) == [str(n) for n in range(8)]
        assert time.monotonic() - started < 8 * 0.3 + 5

    go(daemon, scenario)


async def becomes_idle(s: aio.Session) -> None:
    async with asyncio.timeout(10):
        while (await s.info()).state != "idle":
            await asyncio.sleep(0.01)


def test_cancelling_interrupts_the_cell_and_nothing_else(daemon: Daemon) -> None:
    async def scenario(connection: Connection) -> None:
        async with aio.Session(connection=connection) as s:
            await s.run("x = 1")
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(s.run("while True: pass"), 0.3)
            await becomes_idle(s)
            assert (await s.run("x")).text == "1"

    go(daemon, scenario)


def test_leaving_a_stream_interrupts_the_cell(daemon: Daemon) -> None:
    async def scenario(connection: Connection) -> None:
        async with aio.Session(connection=connection) as s:
            async with aclosing(s.stream("while True: print('x')")) as events:
                async for _ in events:
                    break
            await becomes_idle(s)

    go(daemon, scenario)


def test_a_session_that_nobody_holds_lives_as_long_as_its_stream(daemon: Daemon) -> None:
    async def scenario(connection: Connection) -> None:
        async with aio.Session(connection=connection) as s:
            await s.run("x = 41")
            events = (await s.branch()).stream("x + 1")
            gc.collect()
            *_, result = [event async for event in events]
            assert isinstance(result, Result)
            assert result.text == "42"

    go(daemon, scenario)


def test_a_deadline(daemon: Daemon) -> None:
    async def scenario(connection: Connection) -> None:
        async with aio.Session(connection=connection) as s:
            with pytest.raises(lair.DeadlineError):
                await s.run("while True: pass", deadline=0.3)
            await becomes_idle(s)

    go(daemon, scenario)


def test_an_answer_in_time_may_be_read_late(daemon: Daemon) -> None:
    async def scenario(connection: Connection) -> None:
        async with aio.Session(connection=connection) as s:
            result = await s.run("print(1); 2", deadline=2, on_output=lambda text, stream: time.sleep(2.5))
            assert (result.stdout, result.text) == ("1\n", "2")

    go(daemon, scenario)


def test_a_loop_that_ends_first(daemon: Daemon) -> None:
    """An answer that comes when its event loop is closed is nobody's, and no trouble."""
    with Connection(str(daemon.socket), start=False) as connection:
        s = aio.Session(connection=connection)

        async def start() -> None:
            asyncio.ensure_future(s.run("import time; time.sleep(0.3)"))  # noqa: RUF006
            await asyncio.sleep(0.1)

        loop = asyncio.new_event_loop()
        loop.run_until_complete(start())
        for task in asyncio.all_tasks(loop):
            task.cancel()
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()
        assert lair.run("1", connection=connection).text == "1"

        async def again() -> None:
            assert (await s.run("2")).text == "2"
            await s.close()

        asyncio.run(again())

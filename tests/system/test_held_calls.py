"""Calls that wait: put aside by their provider, or for somebody's approval; and who may answer them."""

from __future__ import annotations

import itertools
import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from daemon import Daemon, wait_until
from lair import Client, LairError, codec
from lair import messages as m
from test_router_death import kill_router

QUICK = {"spares": "0", "preload": ""}
SETTINGS = {
    "profile default": {"checkpoint": "cell"},
    "profile short": {**QUICK, "hold_timeout": "300ms", "call_timeout": "400ms"},
    "profile ask": {**QUICK, "functions": "ask", "functions_deny": "drop *.drop", "functions_allow": "look wiki.*"},
    "profile picky": {**QUICK, "functions_ask": "pay", "functions_deny": "x*"},
    "profile only": {**QUICK, "functions": "off", "functions_allow": "look"},
    "profile none": {**QUICK, "functions": "off", "functions_deny": "look"},
    "profile small": {**QUICK, "calls": "4", "calls_at_once": "2", "call_size": "1K"},
    "profile fleeting": {**QUICK, "idle_ttl": "300ms"},
}

FUNCTION = {"name": "pay", "schema": '{"type": "object", "properties": {"amount": {"type": "integer"}}}'}
numbers = itertools.count(1)


class Provider:
    """A client that offers a function, and answers its calls as a test says."""

    def __init__(self, daemon: Daemon, code: str, session: str = "", one_shot: bool = False, **fields: Any) -> None:
        self.client = Client(str(daemon.socket))
        self.session = session or f"s{next(numbers)}"
        self.key = f"key-{next(numbers)}"
        fields.setdefault("functions", [FUNCTION])
        self.exec = self.client.send(
            m.Exec(
                id=self.client.new_id(),
                session=None if one_shot else self.session,
                code=code,
                key=self.key,
                **fields,
            )
        )

    def again(self, daemon: Daemon, calls: bool = True) -> Provider:
        """Another client asks for the same cell."""
        other = object.__new__(Provider)
        other.client, other.session, other.key = Client(str(daemon.socket)), self.session, self.key
        request = m.Attach(id=other.client.new_id(), session=self.session, key=self.key, calls=calls)
        other.exec = other.client.send(request)
        return other

    def event(self, timeout: float | None = None) -> Any:
        return self.client.receive(self.exec, m.ExecReply, timeout)

    def called(self) -> m.CallEvent:
        event = self.event()
        assert isinstance(event, m.CallEvent), event
        return event

    def held(self) -> m.HeldEvent:
        event = self.event()
        assert isinstance(event, m.HeldEvent), event
        return event

    def cancelled(self) -> int:
        event = self.event()
        assert isinstance(event, m.CancelEvent), event
        return event.number

    def error(self) -> str:
        """Of the cell."""
        error = self.result().error
        return f"{error['name']}: {error['value']}" if error else "none"

    def give(self, call: m.CallEvent | m.HeldEvent, **answer: Any) -> None:
        request = m.Return(id=self.client.new_id(), exec=self.exec, number=call.number, **answer)
        self.client.call(request, m.Reply)

    def result(self, timeout: float | None = None) -> m.ExecReply:
        return self.client.finish(self.exec, m.ExecReply, timeout)


Begin = Callable[..., Provider]
Start = Callable[..., Daemon]


@pytest.fixture
def begin(daemon: Daemon) -> Iterator[Begin]:
    with ExitStack() as stack:

        def it(code: str, **fields: Any) -> Provider:
            provider = Provider(daemon, code, **fields)
            stack.callback(provider.client.close)
            return provider

        yield it


def calls(client: Client, session: str | None = None) -> list[m.CallRecord]:
    reply = client.call(m.Calls(id=client.new_id(), session=session), m.CallsReply)
    assert not reply.more
    return [codec.read(m.CallRecord, it) for it in reply.calls]


def answer(client: Client, session: str | None, number: int = 1, **fields: Any) -> None:
    client.call(m.AnswerCall(id=client.new_id(), session=session, number=number, **fields), m.Reply)


def refused(client: Client, *args: Any, **fields: Any) -> tuple[str, str]:
    with pytest.raises(LairError) as it:
        answer(client, *args, **fields)
    return it.value.code, str(it.value)


# ---- what waits, and who answers ----


def test_what_waits_is_listed(begin: Begin, client: Client) -> None:
    provider = begin("tools.pay(amount=5)")
    provider.called()
    (call,) = calls(client, provider.session)
    assert (call.session, call.cell, call.number, call.function) == (provider.session, 1, 1, "pay")
    assert call.arguments == {"amount": 5} and call.bytes == 9
    assert call.state == "out" and call.text is None and 0 <= call.age < 60
    assert [it.number for it in calls(client) if it.session == provider.session] == [1]
    provider.give(provider_call(call), value=7)
    assert provider.result().text == "7"
    assert calls(client, provider.session) == []


def provider_call(call: m.CallRecord) -> m.CallEvent:
    return m.CallEvent(id=0, number=call.number, function=call.function, arguments={})


def test_large_arguments_are_not_listed(begin: Begin, client: Client) -> None:
    schema = '{"type": "object", "properties": {"what": {}}}'
    provider = begin("tools.f(what='x' * 100_000)", functions=[{"name": "f", "schema": schema}])
    provider.called()
    (call,) = calls(client, provider.session)
    assert call.arguments is None and call.bytes > 100_000
    answer(client, provider.session, value=1)


def test_somebody_else_answers(begin: Begin, client: Client) -> None:
    for fields, said in (
        ({"value": [1, "x"]}, "[1, 'x']"),
        ({}, None),
        ({"value": None, "error": "ValueError", "text": "not enough"}, "ValueError: not enough"),
        ({"error": "PermissionError", "text": "pay was refused: no"}, "PermissionError: pay was refused: no"),
    ):
        provider = begin("tools.pay(amount=5)")
        call = provider.called()
        answer(client, provider.session, **fields)
        result = provider.result()
        assert said == (f"{result.error['name']}: {result.error['value']}" if result.error else result.text)
        with pytest.raises(LairError, match="does not wait for an answer"):
            provider.give(call, value=1)
        assert refused(client, provider.session, value=1)[0] == "gone"


def test_a_call_is_named_by_the_key_of_its_exec(begin: Begin, client: Client) -> None:
    provider = begin("tools.pay(amount=5)")
    provider.called()
    (call,) = calls(client, provider.session)
    assert refused(client, None, of="another", value=1)[0] == "gone"
    assert refused(client, provider.session, of="another", value=1)[0] == "gone"
    assert refused(client, provider.session, cell=2, value=1)[0] == "gone"
    assert refused(client, provider.session, number=2, value=1)[0] == "gone"
    answer(client, None, of=call.key, value=1)
    assert provider.result().text == "1"


def test_calls_of_a_one_shot(daemon: Daemon, client: Client) -> None:
    provider = Provider(daemon, "tools.pay(amount=5)", one_shot=True)
    provider.called()
    (call,) = [it for it in calls(client) if it.key == provider.key]
    assert (call.session, call.cell, call.number) == (None, 1, 1)
    answer(client, None, of=provider.key, value=1)
    assert provider.result().text == "1"
    provider.client.close()


def test_an_answer_is_one_thing(begin: Begin, client: Client) -> None:
    provider = begin("tools.pay(amount=5)")
    provider.called()
    for session, fields, said in (
        (None, {"value": 1}, "answer_call: the session, or of: the key"),
        (provider.session, {"of": "", "value": 1}, "answer_call: the session, or of: the key"),
        (provider.session, {"value": 1, "error": "ValueError"}, "one of approve, value and error"),
        (provider.session, {"value": 1, "approve": True}, "one of approve, value and error"),
    ):
        code, text = refused(client, session, **fields)
        assert code == "bad_request" and said in text
    answer(client, provider.session, value=1)
    assert provider.result().text == "1"


def test_an_answer_with_a_key_is_given_once(begin: Begin, client: Client) -> None:
    provider = begin("[tools.pay(amount=1), tools.pay(amount=2)]")
    provider.called()
    answer(client, provider.session, value=1, key="k")
    assert provider.cancelled() == 1
    provider.called()
    answer(client, provider.session, value=1, key="k")
    assert [it.number for it in calls(client, provider.session)] == [2]
    answer(client, provider.session, number=2, value=2, key="k2")
    assert provider.result().text == "[1, 2]"
    answer(client, provider.session, number=2, value=2, key="k2")


def test_who_else_works_on_it_can_stop(daemon: Daemon, begin: Begin) -> None:
    provider = begin("[tools.pay(amount=5), tools.pay(amount=6)]")
    call = provider.called()
    other = provider.again(daemon)
    assert other.called() == m.CallEvent(id=other.exec, number=1, function="pay", arguments={"amount": 5})
    provider.give(call, value=1)
    assert other.cancelled() == 1
    other.give(other.called(), hold=True)
    call = provider.called()
    assert provider.cancelled() == 2
    provider.give(call, value=2)
    assert other.cancelled() == 2
    assert provider.result().text == other.result().text == "[1, 2]"
    other.client.close()


# ---- put aside ----


def test_a_call_is_put_aside(begin: Begin, client: Client) -> None:
    provider = begin("tools.pay(amount=5)")
    call = provider.called()
    provider.give(call, text="the boss has to say", hold=True)
    (held,) = calls(client, provider.session)
    assert (held.state, held.text) == ("held", "the boss has to say")
    answer(client, provider.session, value=8)
    assert provider.result().text == "8"


def test_who_has_put_it_aside_may_answer(begin: Begin, client: Client) -> None:
    provider = begin("tools.pay(amount=5)")
    call = provider.called()
    provider.give(call, hold=True)
    assert calls(client, provider.session)[0].state == "held"
    provider.give(call, value=8)
    assert provider.result().text == "8"


def test_a_call_that_is_held_needs_nobody(daemon: Daemon, begin: Begin, client: Client) -> None:
    """Its cell has a second, and is not over when that is over."""
    provider = begin("x = tools.pay(amount=5); x", timeout=1)
    provider.give(provider.called(), text="later", hold=True)
    provider.client.close()
    time.sleep(1.5)
    (held,) = calls(client, provider.session)
    assert held.state == "held" and held.age >= 1.5
    answer(client, provider.session, value=8)
    assert provider.again(daemon, calls=False).result().text == "8"
    assert client.exec("x", provider.session).text == "8"


def test_what_is_put_aside_is_not_put_again(daemon: Daemon, begin: Begin, client: Client) -> None:
    provider = begin("import asyncio\nawait asyncio.gather(tools.pay.aio(amount=1), tools.pay.aio(amount=2))")
    first, second = provider.called(), provider.called()
    provider.give(first, hold=True)
    other = provider.again(daemon)
    assert other.called().number == second.number
    other.give(second, value="b")
    answer(client, provider.session, value="a")
    assert other.cancelled() == 1
    assert other.result().text == "['a', 'b']"


def test_the_router_dies_while_a_call_is_held(daemon: Daemon, begin: Begin, client: Client) -> None:
    provider = begin("tools.pay(amount=5)", timeout=1)
    provider.give(provider.called(), text="later", hold=True)
    (before,) = calls(client, provider.session)
    time.sleep(0.2)
    kill_router(daemon)
    with daemon.client() as client:
        (held,) = calls(client, provider.session)
        assert (held.state, held.text, held.arguments) == ("held", "later", {"amount": 5})
        assert held.age >= before.age + 0.2
        time.sleep(1.2)
        kill_router(daemon)
    with daemon.client() as client:
        answer(client, provider.session, value=8, key="k")
        kill_router(daemon)
    with daemon.client() as client:
        answer(client, provider.session, value=8, key="k")
        assert provider.again(daemon).result().text == "8"


def test_a_reload_and_an_upgrade_meanwhile(daemon: Daemon, begin: Begin) -> None:
    provider = begin("tools.pay(amount=5)")
    provider.give(provider.called(), text="later", hold=True)
    assert daemon.lair("reload").returncode == 0
    assert daemon.lair("upgrade").returncode == 0
    with daemon.client() as client:
        assert calls(client, provider.session)[0].text == "later"
        answer(client, provider.session, value=8)
    assert provider.again(daemon).result().text == "8"


def test_a_call_is_held_longer_than_a_session_may_be_idle(begin: Begin, client: Client) -> None:
    provider = begin("tools.pay(amount=5)", profile="fleeting")
    provider.give(provider.called(), hold=True)
    time.sleep(1)
    answer(client, provider.session, value=8)
    assert provider.result().text == "8"


def test_going_back_after_a_call_that_was_held(begin: Begin, client: Client) -> None:
    session = f"s{next(numbers)}"
    client.exec("x = 1", session)
    provider = begin("x = tools.pay(amount=5)", session=session)
    provider.give(provider.called(), hold=True)
    answer(client, session, value=8)
    assert provider.result().returncode == 0
    assert client.exec("x", session).text == "8"
    assert client.undo(session, 2).cell == 1
    assert client.exec("x", session).text == "1"


def test_an_interrupt_ends_a_call_that_is_held(begin: Begin, client: Client) -> None:
    provider = begin("tools.pay(amount=5)")
    provider.give(provider.called(), hold=True)
    assert client.interrupt(provider.session)
    assert provider.error().startswith("KeyboardInterrupt")
    assert calls(client, provider.session) == []
    assert refused(client, provider.session, value=1)[0] == "gone"


# ---- somebody has to approve it ----

ASKING = {**FUNCTION, "ask": True}


def test_a_call_that_asks_is_done_when_it_is_approved(begin: Begin, client: Client) -> None:
    provider = begin("tools.pay(amount=5)", functions=[ASKING])
    asked = provider.held()
    assert (asked.number, asked.function, asked.arguments) == (1, "pay", {"amount": 5})
    assert asked.text == "who offers it wants each call of it approved"
    (call,) = calls(client, provider.session)
    assert (call.state, call.text) == ("asks", asked.text)
    answer(client, provider.session, approve=True)
    assert calls(client, provider.session)[0].state == "out"
    assert calls(client, provider.session)[0].text is None
    code, text = refused(client, provider.session, approve=True)
    assert code == "gone" and "does not ask" in text
    provider.give(provider.called(), value=6)
    assert provider.result().text == "6"


def test_a_call_that_asks_is_refused(begin: Begin, client: Client) -> None:
    provider = begin("tools.pay(amount=5)", functions=[ASKING])
    provider.held()
    answer(client, provider.session, error="PermissionError", text="pay was refused: too much")
    assert provider.cancelled() == 1
    assert provider.error() == "PermissionError: pay was refused: too much"
    assert refused(client, provider.session, approve=True)[0] == "gone"


def test_a_call_that_asks_is_answered_instead(begin: Begin, client: Client) -> None:
    provider = begin("tools.pay(amount=5)", functions=[ASKING])
    provider.held()
    answer(client, provider.session, value=3)
    assert provider.result().text == "3"
    provider = begin("tools.pay(amount=5)", functions=[ASKING])
    asked = provider.held()
    with pytest.raises(LairError, match="waits already"):
        provider.give(asked, hold=True)
    provider.give(asked, value=4)
    assert provider.result().text == "4"


def test_who_comes_while_it_asks_is_asked(daemon: Daemon, begin: Begin, client: Client) -> None:
    """And who comes after it is approved is to do it. Its cell has a second, and nobody is there."""
    provider = begin("tools.pay(amount=5)", functions=[ASKING], timeout=1)
    provider.held()
    provider.client.close()
    other = provider.again(daemon)
    assert other.held().arguments == {"amount": 5}
    other.client.close()
    time.sleep(1.5)
    answer(client, provider.session, approve=True)
    other = provider.again(daemon)
    other.give(other.called(), value=2)
    assert other.result().text == "2"


def test_the_router_dies_while_a_call_asks(daemon: Daemon, begin: Begin) -> None:
    provider = begin("tools.pay(amount=5)", functions=[ASKING])
    provider.held()
    kill_router(daemon)
    with daemon.client() as client:
        assert calls(client, provider.session)[0].state == "asks"
        other = provider.again(daemon)
        other.held()
        answer(client, provider.session, approve=True)
        assert other.called().arguments == {"amount": 5}
        kill_router(daemon)
    with daemon.client() as client:
        assert calls(client, provider.session)[0].state == "out"
        other = provider.again(daemon)
        other.give(other.called(), value=2)
        assert other.result().text == "2"


# ---- what the profile says ----


@pytest.mark.parametrize(
    "profile, name, flags, ruling",
    [
        ("default", "pay", {}, "out"),
        ("default", "pay", {"ask": True}, "asks"),
        ("default", "pay", {"caution": True}, "asks"),
        ("ask", "pay", {}, "asks"),
        ("ask", "look", {}, "out"),
        ("ask", "look", {"caution": True}, "out"),
        ("ask", "look", {"ask": True}, "asks"),
        ("ask", "wiki.page", {}, "out"),
        ("ask", "wiki.drop", {}, "denied"),
        ("ask", "drop", {"ask": True}, "denied"),
        ("ask", "drops", {}, "asks"),
        ("picky", "pay", {}, "asks"),
        ("picky", "play", {}, "out"),
        ("picky", "x", {}, "denied"),
        ("picky", "xpay", {}, "denied"),
        ("only", "look", {}, "out"),
        ("only", "lookup", {}, "denied"),
    ],
)
def test_rulings(
    begin: Begin, client: Client, profile: str, name: str, flags: dict[str, bool], ruling: str
) -> None:
    provider = begin(f"tools.{name}()", profile=profile, functions=[{"name": name, **flags}])
    if ruling == "denied":
        assert provider.error() == f"PermissionError: {name}: the operator does not allow it"
        return
    assert isinstance(provider.event(), m.CallEvent if ruling == "out" else m.HeldEvent)
    assert [it.state for it in calls(client, provider.session)] == [ruling]
    answer(client, provider.session, value=1)


def test_a_profile_that_lets_nothing_through(begin: Begin) -> None:
    with pytest.raises(LairError, match="functions = off"):
        begin("tools.look()", profile="none").result()


# ---- limits ----


def test_nobody_answers(begin: Begin, client: Client) -> None:
    provider = begin("tools.pay(amount=5)", functions=[ASKING], profile="short")
    provider.held()
    assert provider.cancelled() == 1
    assert provider.error() == "TimeoutError: pay: nobody has approved it within hold_timeout = 0.3 s"
    provider = begin("tools.pay(amount=5)", profile="short")
    provider.give(provider.called(), hold=True)
    provider.client.close()
    wait_until(lambda: calls(client, provider.session) == [], "its time is over")
    assert refused(client, provider.session, value=1)[0] == "gone"


def test_hold_timeout_goes_on_while_there_is_no_router(daemon: Daemon, begin: Begin) -> None:
    provider = begin("tools.pay(amount=5)", functions=[ASKING], profile="short")
    provider.held()
    kill_router(daemon)
    assert provider.again(daemon).error().startswith("TimeoutError: pay: nobody has approved it")


def test_a_function_takes_long(begin: Begin) -> None:
    for fields, limit in (
        ({"profile": "short"}, "call_timeout = 0.4 s"),
        ({"functions": [{**FUNCTION, "timeout": 0.2}]}, "its own limit of 0.2 s"),
    ):
        provider = begin("tools.pay(amount=5)", **fields)
        call = provider.called()
        assert provider.cancelled() == 1
        assert provider.error() == f"TimeoutError: pay: no answer within {limit}"
        with pytest.raises(LairError, match="does not wait for an answer"):
            provider.give(call, value=1)


def test_a_function_that_waits_for_its_provider_takes_no_time(daemon: Daemon, begin: Begin) -> None:
    provider = begin("tools.pay(amount=5)", functions=[{**FUNCTION, "timeout": 0.2}], detach=True)
    time.sleep(0.5)
    other = provider.again(daemon)
    other.give(other.called(), value=1)
    assert other.result().text == "1"


def test_limits_of_calls(begin: Begin) -> None:
    code = """import asyncio
tasks = [asyncio.ensure_future(tools.pay.aio(amount=n)) for n in range(3)]
await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
print(tasks[2].exception(), flush=True)
await asyncio.gather(*tasks, return_exceptions=True)
for _ in range(2):
    try: tools.pay(amount=4)
    except tools.FunctionError as error: print(error)"""
    provider = begin(code, profile="small", stream=True)
    first, second = provider.called(), provider.called()
    said = provider.event()
    assert said.data == b"2 calls are out, and calls_at_once = 2 is the limit: wait for some\n"
    provider.give(first, value=0)
    provider.give(second, value=0)
    provider.give(provider.called(), value=0)
    said = provider.event()
    assert said.data == b"calls = 4 is the limit of one cell, and it has made so many: go on in another\n"
    assert provider.result().returncode == 0
    provider = begin("tools.pay(amount=5)", session=provider.session)
    provider.give(provider.called(), value=0)
    assert provider.result().text == "0"


def test_sizes_of_calls(begin: Begin, client: Client) -> None:
    f = {"name": "f", "schema": '{"type": "object", "properties": {"x": {}}}'}
    provider = begin("tools.f(x='x' * 1100)", profile="small", functions=[f])
    assert provider.error() == (
        "FunctionError: the arguments have 1106 bytes, and call_size = 1024 is the limit: pass less"
    )
    provider = begin("tools.f(x=1)", profile="small", functions=[f])
    call = provider.called()
    code, text = refused(client, provider.session, value="x" * 1100)
    assert code == "too_large" and "call_size = 1024" in text
    with pytest.raises(LairError, match="call_size = 1024"):
        provider.give(call, value="x" * 1100)
    assert provider.error().startswith(
        "FunctionError: the answer has 1103 bytes, and call_size = 1024 is the limit"
    )
    provider = begin("len(tools.f(x='x' * 1000))", profile="small", functions=[f])
    provider.give(provider.called(), value="x" * 1000)
    assert provider.result().text == "1000"


# ---- time ----


def test_the_time_of_a_cell_goes_on_when_its_provider_is_gone(daemon: Daemon, begin: Begin) -> None:
    provider = begin("tools.pay(amount=5)", timeout=1)
    provider.called()
    provider.client.close()
    result = provider.again(daemon, calls=False).result(timeout=10)
    assert result.cause == "timeout"


def test_an_answered_question_does_not_start_the_time_of_a_cell(begin: Begin) -> None:
    code = """import asyncio
call = asyncio.ensure_future(tools.pay.aio(amount=5))
await asyncio.sleep(0)
name = input()
name, await call"""
    provider = begin(code, timeout=1, input=True)
    call = provider.called()
    asked = provider.event()
    assert isinstance(asked, m.AskEvent)
    client = provider.client
    client.call(m.Input(id=client.new_id(), exec=provider.exec, text="Ada"), m.Reply)
    time.sleep(1.5)
    provider.give(call, value=7)
    assert provider.result().text == "('Ada', 7)"


def test_an_answer_to_a_cell_whose_interpreter_dies(daemon: Daemon, begin: Begin) -> None:
    """Whenever it comes, the router lives."""
    code = """import asyncio, os, threading
tasks = [asyncio.ensure_future(tools.pay.aio(amount=n)) for n in range(1000)]
await asyncio.sleep(0)
threading.Timer(0.1, os._exit, [3]).start()
await asyncio.gather(*tasks)"""
    for _ in range(3):
        provider = begin(code)
        client = provider.client
        while provider.called().number < 1000:
            pass
        for number in range(1000, 0, -1):
            time.sleep(0.0003)
            client.send(m.Return(id=client.new_id(), exec=provider.exec, number=number, value=1))
        assert provider.result().returncode == 3
    assert "the router was killed by signal 11" not in daemon.log()


# ---- to be told ----


def turn(client: Client, seen: int = 0, wait: float = 0.0) -> int:
    return client.call(m.WatchCalls(id=client.new_id(), seen=seen, wait=wait), m.WatchCallsReply).turn


class Watch:
    """It waits from now on, on a connection of its own."""

    def __init__(self, daemon: Daemon) -> None:
        self.client = Client(str(daemon.socket))
        self.seen = turn(self.client)
        self.id = self.client.send(m.WatchCalls(id=self.client.new_id(), seen=self.seen, wait=60))
        self.client.list()  # what was asked before has been taken

    def told(self) -> None:
        assert self.client.finish(self.id, m.WatchCallsReply).turn != self.seen
        self.client.close()


def test_who_waits_for_calls_is_told(daemon: Daemon, begin: Begin, client: Client) -> None:
    watch = Watch(daemon)
    provider = begin("tools.pay(amount=1); tools.pay(amount=2); tools.pay(amount=3)", profile="ask")
    held = provider.held()
    watch.told()
    watch = Watch(daemon)
    answer(client, provider.session, approve=True)
    watch.told()
    provider.called()
    watch = Watch(daemon)
    provider.give(held, hold=True, text="later")
    watch.told()
    watch = Watch(daemon)
    answer(client, provider.session, value=1)
    watch.told()
    wait_until(lambda: [it.number for it in calls(client, provider.session)] == [2], "the next one asks")
    watch = Watch(daemon)
    client.shutdown(provider.session)
    watch.told()
    now = turn(client)
    assert turn(client, now) == turn(client, now, 0.2) == turn(client, now + 1, 60) == now


def has_room(client: Client, seen: int) -> bool:
    """For one more who waits."""
    try:
        return turn(client, seen, 0.01) == seen
    except LairError as error:
        assert error.code == "limit" and "1000 requests wait for calls already" in str(error)
        return False


def test_many_changes_and_who_has_gone(daemon: Daemon, begin: Begin, client: Client) -> None:
    now = turn(client)
    gone = Client(str(daemon.socket))
    for _ in range(1000):
        gone.send(m.WatchCalls(id=gone.new_id(), seen=now, wait=300))
    gone.list()
    assert not has_room(client, now)
    gone.close()
    wait_until(lambda: has_room(client, now), "who has gone is forgotten")
    watches = [client.send(m.WatchCalls(id=client.new_id(), seen=now, wait=60)) for _ in range(900)]
    provider = begin("[tools.pay(amount=n) for n in range(20)]")
    for _ in range(20):
        provider.give(provider.called(), value=1)
    assert provider.result().returncode == 0
    told = {client.finish(it, m.WatchCallsReply).turn for it in watches}
    assert now not in told
    now = turn(client)
    assert has_room(client, now)


def test_who_waits_is_not_told_twice_by_the_next_router(start_daemon: Start) -> None:
    daemon = start_daemon()
    with daemon.client() as client:
        seen = turn(client)
    kill_router(daemon)
    with daemon.client() as client:
        assert turn(client, seen, 60) != seen


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_nobody_is_told_of_the_calls_of_others(daemon: Daemon, begin: Begin) -> None:
    daemon.share()
    ask = "c.call(m.WatchCalls(id=c.new_id()), m.WatchCallsReply).turn"
    before = daemon.as_user(54321, f"import lair.messages as m\nprint({ask})")
    provider = begin("tools.pay(amount=5)")
    provider.give(provider.called(), value=1)
    assert provider.result().returncode == 0
    assert daemon.as_user(54321, f"import lair.messages as m\nprint({ask})") == before


# ---- who may ----


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_calls_are_their_users(daemon: Daemon, begin: Begin, client: Client) -> None:
    daemon.share()
    provider = begin("tools.pay(amount=5)")
    provider.called()
    other = f"""import json, lair.messages as m
try: c.call(m.AnswerCall(id=c.new_id(), session={provider.session!r}, number=1, value=1), m.Reply)
except lair.LairError as error: one = error.code
try: c.call(m.AnswerCall(id=c.new_id(), of={provider.key!r}, number=1, value=1), m.Reply)
except lair.LairError as error: two = error.code
print(json.dumps([one, two, c.call(m.Calls(id=c.new_id()), m.CallsReply).calls]))"""
    assert json.loads(daemon.as_user(54321, other)) == ["gone", "gone", []]
    theirs = f"""import time, lair.messages as m
exec = c.send(m.Exec(id=c.new_id(), session='theirs', code='tools.pay(amount=5)', functions=[{FUNCTION!r}]))
c.receive(exec, m.ExecReply)
print(c.finish(exec, m.ExecReply).text)"""
    said: list[str] = []
    thread = threading.Thread(target=lambda: said.append(daemon.as_user(54321, theirs)))
    thread.start()
    name = "54321/theirs"
    wait_until(lambda: name in [it.session for it in calls(client)], "root sees their call")
    assert [it.uid for it in calls(client, name)] == [54321]
    answer(client, name, value="of root")
    thread.join()
    assert said == ["'of root'"]
    answer(client, provider.session, value=1)


# ---- what the operator sees ----


def test_the_audit_log_has_who_answered_and_what_was_asked(start_daemon: Start, tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    daemon = start_daemon({"daemon": {"audit_log": str(log)}, "profile default": {"call_log": "arguments"}})
    code = """values = [None, True, -5, 2**62, 1.5, "Grüße", b"xy", {"a": []}]
try: tools.pay(amount=5, how=values)
except PermissionError: pass
tools.pay(amount=6)
tools.pay(amount=7, how=2**64 - 1)"""
    schema = '{"type": "object", "properties": {"amount": {}, "how": {}}}'
    provider = Provider(daemon, code, functions=[{"name": "pay", "schema": schema, "ask": True}])
    with daemon.client() as client:
        provider.held()
        answer(client, provider.session, error="PermissionError", text="no")
        assert provider.cancelled() == 1
        provider.held()
        answer(client, provider.session, number=2, approve=True)
        provider.called()
        time.sleep(0.2)
        kill_router(daemon)
    with daemon.client() as client:
        again = provider.again(daemon)
        again.give(again.called(), value=6)
        again.held()
        client.interrupt(provider.session)
        assert again.error().startswith("KeyboardInterrupt")
    provider.client.close()
    again.client.close()
    wait_until(lambda: log.read_text().count('"event":"call"') == 4, "there are all lines")
    lines = [json.loads(line) for line in log.read_text().splitlines() if '"event":"call"' in line]
    me = os.getuid()
    assert [(it["outcome"], it.get("by")) for it in lines] == [
        ("error PermissionError", me),
        ("approved", me),
        ("answered", None),
        (lines[3]["outcome"], None),
    ]
    how: list[Any] = [None, True, -5, 2**62, 1.5, "Grüße", "eHk=", {"a": []}]
    assert lines[0]["arguments"] == {"amount": 5, "how": how}
    assert lines[1]["arguments"] == lines[2]["arguments"] == {"amount": 6}
    assert lines[3]["arguments"] == f'{{"amount": 7, "how": {2**64 - 1}}}'
    assert lines[2]["seconds"] > 0.2
    assert lines[3]["outcome"] in ("abandoned", "its cell has ended")

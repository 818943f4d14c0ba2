"""Calls that wait: put aside by their provider, or for somebody's approval; and who may answer them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from daemon import Daemon
from lair import Client, LairError, codec
from lair import messages as m

SETTINGS = {"profile default": {"checkpoint": "cell"}}

FUNCTION = {"name": "pay", "schema": '{"type": "object", "properties": {"amount": {"type": "integer"}}}'}
numbers = itertools.count(1)


class Provider:
    """A client that offers a function, and answers its calls as a test says."""

    def __init__(self, daemon: Daemon, code: str, session: str = "", **fields: Any) -> None:
        self.client = Client(str(daemon.socket))
        self.session = session or f"s{next(numbers)}"
        fields.setdefault("functions", [FUNCTION])
        self.exec = self.client.send(
            m.Exec(id=self.client.new_id(), session=self.session, code=code, key=f"key-{next(numbers)}", **fields)
        )

    def event(self, timeout: float | None = None) -> Any:
        return self.client.receive(self.exec, m.ExecReply, timeout)

    def called(self) -> m.CallEvent:
        event = self.event()
        assert isinstance(event, m.CallEvent), event
        return event

    def give(self, call: m.CallEvent | m.HeldEvent, **answer: Any) -> None:
        request = m.Return(id=self.client.new_id(), exec=self.exec, number=call.number, **answer)
        self.client.call(request, m.Reply)

    def result(self, timeout: float | None = None) -> m.ExecReply:
        return self.client.finish(self.exec, m.ExecReply, timeout)


Begin = Callable[..., Provider]


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


def test_an_answer_is_one_thing(begin: Begin, client: Client) -> None:
    provider = begin("tools.pay(amount=5)")
    provider.called()
    for session, fields, said in (
        (None, {"value": 1}, "answer_call: the session, or of: the key"),
        (provider.session, {}, "one of approve, value and error"),
        (provider.session, {"value": 1, "error": "ValueError"}, "one of approve, value and error"),
        (provider.session, {"value": 1, "approve": True}, "one of approve, value and error"),
        (provider.session, {"approve": True}, "this call does not ask"),
    ):
        code, text = refused(client, session, **fields)
        assert code == "bad_request" and said in text
    answer(client, provider.session, value=1)
    assert provider.result().text == "1"


def test_an_answer_with_a_key_is_given_once(begin: Begin, client: Client) -> None:
    provider = begin("[tools.pay(amount=1), tools.pay(amount=2)]")
    provider.called()
    answer(client, provider.session, value=1, key="k")
    assert provider.event() == m.CancelEvent(id=provider.exec, number=1)
    provider.called()
    answer(client, provider.session, value=1, key="k")
    assert [it.number for it in calls(client, provider.session)] == [2]
    answer(client, provider.session, number=2, value=2, key="k2")
    assert provider.result().text == "[1, 2]"
    answer(client, provider.session, number=2, value=2, key="k2")


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

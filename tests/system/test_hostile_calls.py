"""What code can do with calls that a person is asked about, on its interpreter's channel: whoever approves of a call approves of
what was shown."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import internal
import links
from daemon import Daemon, wait_until
from lair import Client, LairError, codec
from lair import messages as m
from test_hostile_interpreters import IN_CELL, prepare

SETTINGS = {"profile default": {"checkpoint": "cell"}}
PAY = {"name": "pay", "ask": True, "schema": '{"type": "object", "additionalProperties": true}'}
SAID = codec.encode(internal.Call(number=9, function="pay", arguments={"said": "all"}))


@pytest.fixture
def another(daemon: Daemon) -> Iterator[Client]:
    with Client(str(daemon.socket), timeout=10) as it:
        yield it


def calls(client: Client, session: str) -> dict[int, Any]:
    reply = client.call(m.Calls(id=client.new_id(), session=session), m.CallsReply)
    return {it.number: it.arguments for it in (codec.read(m.CallRecord, it) for it in reply.calls)}


def say(client: Client, another: Client, session: str, *frames: bytes) -> dict[int, Any]:
    """The calls that wait when a cell has said this, all of it."""
    prepare(client, session)
    datagrams = [links.datagram(frame, IN_CELL + n) for n, frame in enumerate([*frames, SAID])]
    client.send(
        m.Exec(id=client.new_id(), session=session, code=f"say({datagrams!r})\ntime.sleep(99)", functions=[PAY])
    )
    wait_until(lambda: 9 in calls(another, session), "all is said")
    return {number: it for number, it in calls(another, session).items() if number != 9}


def call(number: int, **arguments: Any) -> bytes:
    return codec.encode(internal.Call(number=number, function="pay", arguments=arguments))


def test_a_number_is_one_calls_alone(client: Client, another: Client, session: str) -> None:
    """Else the call could be another one between the question and the answer."""
    gone = codec.encode(internal.Abandon(number=1))
    assert say(client, another, session, call(1, amount=5), gone, call(1, amount=5000)) == {}
    with pytest.raises(LairError) as refused:
        another.call(m.AnswerCall(id=another.new_id(), session=session, number=1, approve=True), m.Reply)
    assert refused.value.code == "gone"


def test_the_first_call_of_a_number_counts(client: Client, another: Client, session: str) -> None:
    assert say(client, another, session, call(3, amount=5), call(3, amount=5000), call(2, amount=50)) == {
        3: {"amount": 5}
    }


@pytest.mark.parametrize(
    "arguments",
    [
        b"\x82\xa1a\x01\x05\x02",
        b"\x82\xa1a\x01\xa1a\x02",
        b"\x81\xa1\xff\x01",
        b"\x91\x01",
        b"\x05",
        b"\xc0",
        b"\x81\xa1a\x91\x82\xa1k\x01\xa1k\x02",
        b"\x81\xa1a\x81\x90\x01",
        b"\x81\xa1a\x91\xa1\xff",
    ],
    ids=[
        "a number as a name",
        "a name twice",
        "no UTF-8",
        "a list",
        "a number",
        "nothing",
        "a key twice",
        "a list as a key",
        "no UTF-8 inside",
    ],
)
def test_arguments_without_names_are_refused(
    client: Client, another: Client, session: str, arguments: bytes
) -> None:
    """Those who show them and those who do the call could each see others."""
    frame = b"\x93\x01\xa4call\x83\xa6number\x01\xa8function\xa3pay\xa9arguments" + arguments
    assert say(client, another, session, frame) == {}


def test_as_deep_as_it_may_be(client: Client, another: Client, session: str) -> None:
    """Everybody can list the calls, whatever is in them."""
    frames = [call(n, deep=eval("[" * n + "]" * n)) for n in range(1, 8)]
    deep = b"\x93\x01\xa4call\x83\xa6number\x08\xa8function\xa3pay\xa9arguments\x81\xa1d" + b"\x91" * 11 + b"\xc0"
    assert set(say(client, another, session, *frames, deep)) == {*range(1, 9)}

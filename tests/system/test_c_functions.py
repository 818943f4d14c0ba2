"""liblair: functions of a program in C that cells call. tests/system/provider.c is that program."""

from __future__ import annotations

import itertools
import os
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from daemon import BIN, Daemon, wait_until
from lair import Client, codec
from lair import messages as m
from test_lost_connections import Proxy
from test_router_death import kill_router

SETTINGS = {"profile default": {"checkpoint": "cell"}}
TESTS = BIN.parent / "tests"
numbers = itertools.count(1)


class Provider:
    """What it says, line by line."""

    def __init__(self, socket: Path, *arguments: str, **env: str) -> None:
        self.session = env.setdefault("SESSION", f"c{next(numbers)}")
        self.process = subprocess.Popen(
            [str(TESTS / "client-provider"), *arguments],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "LAIR_SOCKET": str(socket), **env},
        )

    def line(self) -> str:
        assert self.process.stdout
        return self.process.stdout.readline().rstrip("\n")

    def rest(self) -> list[str]:
        assert self.process.stdout
        said = self.process.stdout.read()
        assert self.process.wait(10) == 0, said
        return said.splitlines()


Begin = Callable[..., Provider]


@pytest.fixture
def begin(daemon: Daemon) -> Iterator[Begin]:
    begun = []

    def it(*arguments: str, socket: Path = daemon.socket, **env: str) -> Provider:
        begun.append(Provider(socket, *arguments, **env))
        return begun[-1]

    yield it
    for provider in begun:
        provider.process.kill()
        provider.process.communicate()


def calls(client: Client, session: str) -> list[m.CallRecord]:
    reply = client.call(m.Calls(id=client.new_id(), session=session), m.CallsReply)
    return [codec.read(m.CallRecord, it) for it in reply.calls]


def answer(client: Client, session: str, value: Any, number: int = 1) -> None:
    client.call(m.AnswerCall(id=client.new_id(), session=session, number=number, value=value), m.Reply)


# ---- answers ----


@pytest.mark.parametrize(
    "code, said",
    [
        ("tools.add(2, b=3)", ['call 1 add {"a": 2, "b": 3}', "result: 5"]),
        ("tools.add('x', 3)", ['call 1 add {"a": "x", "b": 3}', 'error: ValueError: {"a": "x", "b": 3}']),
        ("tools.later()", ["call 1 later {}", "result: 1"]),
        ("tools.bad()", ["call 1 bad {}", "bad: 1 1", "error: KeyError: 'in the end'"]),
        ("tools.own()", ["call 1 own {}", "error: FunctionError: in a class of its own"]),
        (
            "tools.json()",
            ["call 1 json {}", "result: [None, True, -5, 1.5, 'Grüße', {'k': ['']}, 9007199254740993]"],
        ),
        ("tools.keys()", ["call 1 keys {}", "error: FunctionError: the answer is no value of Python"]),
        ("tools.key()", ["call 1 key {}", "result: 'the-key/1'"]),
    ],
)
def test_answers(begin: Begin, code: str, said: list[str]) -> None:
    assert begin(code, KEY="the-key", SESSION=f"c{next(numbers)}").rest() == said


def test_arguments(begin: Begin) -> None:
    values = (
        "{'none': None, 'flag': True, 'big': 2**64 - 1, 'small': -2**63, 'half': 0.5, 'tenth': 0.1, 'one': 1.0,"
        " 'huge': 1e300, 'text': 'Gr\\xfc\\xdfe \\0 \\\" \\\\ \\n', 'bytes': b'\\xff\\0', 'nan': float('nan'),"
        " 'list': [1, [2, {}]], 'map': {1: 2}}"
    )
    called, result = begin(
        f"values = {values}\nback = tools.packed(**values)\nback['nan'] = values['nan']\nback == values"
    ).rest()
    assert called == (
        'call 1 packed {"none": null, "flag": true, "big": 18446744073709551615, "small": -9223372036854775808,'
        ' "half": 0.5, "tenth": 0.1, "one": 1.0, "huge": 1e+300, "text": "Grüße \\u0000 \\" \\\\ \\n",'
        ' "bytes": "/wA=", "nan": null, "list": [1, [2, {}]], "map": {"1": 2}}'
    )
    assert result == "result: True"


@pytest.mark.parametrize(
    "name, why", [("deep", "nested too deeply"), ("parts", "too many parts"), ("huge", "is the limit")]
)
def test_what_cannot_be_sent_is_an_error_in_the_cell(begin: Begin, name: str, why: str) -> None:
    *_, error = begin(f"tools.{name}()").rest()
    assert error.startswith(f"error: ValueError: {name} could not be answered: ") and why in error


def test_many_at_once(begin: Begin) -> None:
    code = "import asyncio\nnumbers = await asyncio.gather(*[tools.later.aio() for i in range(200)])\nsorted(numbers) == list(range(1, 201))"
    *called, result = begin(code).rest()
    assert result == "result: True"
    assert sorted(called) == sorted(f"call {n} later {{}}" for n in range(1, 201))


# ---- nobody waits any longer ----


def test_an_interrupt_cancels(begin: Begin, client: Client) -> None:
    provider = begin("tools.keep()")
    assert provider.line() == "call 1 keep {}"
    client.interrupt(provider.session)
    assert provider.rest() == ["cancel 1", "error: KeyboardInterrupt: "]


def test_an_answer_that_comes_too_late(begin: Begin, client: Client) -> None:
    provider = begin("try: tools.too_late()\nexcept KeyboardInterrupt: pass\ntools.add(1, 2)")
    assert provider.line() == "call 1 too_late {}"
    client.interrupt(provider.session)
    said = {provider.line() for _ in range(4)}
    assert said == {"cancel 1", "too late: 0", 'call 2 add {"a": 1, "b": 2}', "result: 3"}


# ---- put aside ----


def test_a_call_is_put_aside(begin: Begin, client: Client) -> None:
    provider = begin("tools.hold()")
    assert provider.line() == "call 1 hold {}"
    wait_until(lambda: [it.text for it in calls(client, provider.session)] == ["the boss has to say"], "it is held")
    answer(client, provider.session, value=[7])
    assert provider.rest() == ["result: [7]"]


def test_who_has_put_it_aside_may_answer(begin: Begin) -> None:
    assert begin("tools.hold_and_answer()").rest() == ["call 1 hold_and_answer {}", "result: 1"]


def test_somebody_else_answers(begin: Begin, client: Client) -> None:
    provider = begin("tools.keep()")
    assert provider.line() == "call 1 keep {}"
    answer(client, provider.session, value=5)
    assert provider.rest() == ["cancel 1", "result: 5"]


def test_another_program_answers_what_is_out(begin: Begin, daemon: Daemon) -> None:
    first = begin("tools.later() + tools.add(tools.leave(), 0)", KEY="handed-on")
    assert [first.line() for _ in range(2)] == ["call 1 later {}", "call 2 leave {}"]
    first.process.kill()
    first.process.wait()
    second = begin("--attach", "handed-on", SESSION=first.session)
    assert second.line() == "call 2 leave {}"
    with daemon.client() as client:
        answer(client, first.session, number=2, value=5)
    assert second.rest() == ['call 3 add {"a": 5, "b": 0}', "result: 6"]


# ---- approved, or not ----


def test_a_call_that_asks(begin: Begin, client: Client) -> None:
    held = 'held 1 pay {"a": 2, "b": 3}'
    assert begin("tools.pay(2, 3)", APPROVE="yes").rest() in (
        [held, "decided: yes", 'call 1 pay {"a": 2, "b": 3}', "result: 5"],
        [held, 'call 1 pay {"a": 2, "b": 3}', "decided: yes", "result: 5"],
    )
    said = begin("tools.pay(2, 3)", APPROVE="no").rest()
    assert said[0] == held and "decided: yes" in said
    assert said[-1] == "error: PermissionError: pay was refused: too much"
    provider = begin("tools.pay(2, 3)")
    assert provider.line() == held
    answer(client, provider.session, value=7)
    assert provider.rest() == ["cancel 1", "result: 7"]


def test_the_router_dies_while_a_call_asks(begin: Begin, start_daemon: Callable[..., Daemon]) -> None:
    daemon = start_daemon(SETTINGS)
    provider = begin("tools.pay(2, 3)", socket=daemon.socket)
    assert provider.line() == 'held 1 pay {"a": 2, "b": 3}'
    for _ in range(3):
        kill_router(daemon)
    with daemon.client() as client:
        client.call(
            m.AnswerCall(id=client.new_id(), session=provider.session, number=1, approve=True, key="k"), m.Reply
        )
    assert provider.rest() == ['call 1 pay {"a": 2, "b": 3}', "result: 5"]


# ---- nothing is lost, and nothing done twice ----


def once(lines: list[str]) -> list[str]:
    found = [re.sub(r"^call (\d+) .*", r"\1", it) for it in lines if it.startswith("call ")]
    assert len(set(found)) == len(found), "a call has come twice"
    return found


LONG = """
import asyncio
total = 0
for i in range(6):
    total += sum(await asyncio.gather(*[tools.later.aio() for i in range(20)]))
total"""


def test_the_router_dies_during_calls(begin: Begin, start_daemon: Callable[..., Daemon]) -> None:
    daemon = start_daemon(SETTINGS)
    provider = begin(LONG, socket=daemon.socket)
    said = [provider.line() for _ in range(10)]
    for _ in range(3):
        kill_router(daemon)
        said += [provider.line() for _ in range(25)]
    said += provider.rest()
    assert said[-1] == f"result: {sum(range(1, 121))}"
    assert len(once(said)) == 120


def test_the_connection_is_cut_during_calls(begin: Begin, daemon: Daemon, tmp_path: Path) -> None:
    code = "sum([tools.later() for i in range(5)]) + tools.add(1, 2)"
    proxy = Proxy(tmp_path / "proxy", daemon.socket)
    try:
        proxy.cut_after()
        begin(code, socket=proxy.path).rest()
        ends = proxy.ends
        for at in sorted({*ends, *(end - 3 for end in ends[4:])}):
            proxy.cut_after(at)
            said = begin(code, socket=proxy.path).rest()
            assert said[-1] == "result: 18" and len(once(said)) == 6, f"cut after {at} bytes"
    finally:
        proxy.close()


# ---- the example ----


def test_the_example(daemon: Daemon) -> None:
    done = subprocess.run(
        [str(TESTS / "client-functions")],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "LAIR_SOCKET": str(daemon.socket)},
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        'stock {"article": "tea"}',
        'order {"article": "tea", "count": 12}',
        "there are 7",
        "{'ordered': True, 'days': 3}",
    ]

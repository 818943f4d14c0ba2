"""Functions that a cell calls, and its client answers."""

from __future__ import annotations

import asyncio
import itertools
import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pytest

import lair
from daemon import Daemon, wait_until
from lair import Client, Connection, LairError, Session, aio
from lair import messages as m
from test_python_lost import Wire
from test_router_death import kill_router

SETTINGS = {
    "profile default": {"checkpoint": "cell"},
    "profile none": {"functions": "off", "level": "", "spares": "0"},
}


def search(query: str, limit: int = 5) -> list[dict[str, Any]]:
    """Search the wiki."""
    return [{"title": query, "n": n} for n in range(limit)]


def nap(seconds: float) -> float:
    time.sleep(seconds)
    return seconds


def fail(kind: str) -> None:
    if kind == "key":
        raise KeyError("no such thing")
    if kind == "own":
        raise Own("no such thing")
    raise UnicodeDecodeError("utf-8", b"\xff", 0, 1, "no such thing")


class Own(Exception):
    pass


def pick(colour: Literal["red", "blue"], weights: list[float], more: dict[str, int] | None = None) -> str:
    return f"{colour} {weights} {more}"


def keep(value: Any) -> None:
    pass


@pytest.fixture
def s(connection: Connection) -> Iterator[Session]:
    with Session(connection=connection, functions=[search, nap, fail, pick, keep]) as it:
        yield it


# ---- from the cell ----


def test_a_call(s: Session) -> None:
    assert s.run("hits = tools.search('tides', limit=2); hits").text == (
        "[{'title': 'tides', 'n': 0}, {'title': 'tides', 'n': 1}]"
    )
    assert s.run("len(tools.search(query='x'))").text == "5"
    assert s.run("from tools import search\nlen(search('x', 3))").text == "3"


def test_what_there_is(s: Session) -> None:
    assert s.run("dir(tools)").text == "['fail', 'find', 'keep', 'nap', 'pick', 'search']"
    assert s.run("tools.find('wiki')").text == (
        "['search(query: str, limit: int = 5) -> list[dict]: Search the wiki.']"
    )
    said = s.run("help(tools.search)").stdout
    assert "tools.search(query: str, limit: int = 5) -> list[dict]" in said and "Search the wiki." in said
    said = s.run("help(tools.nap)").stdout
    assert "tools.nap(seconds: float) -> float" in said and "__init__" not in said
    assert s.run("tools.find('nap')").text == "['nap(seconds: float) -> float']"
    assert "Literal['red', 'blue']" in str(s.run("import inspect; inspect.signature(tools.pick)").text)


@pytest.mark.parametrize(
    "code, error",
    [
        ("tools.search(3)", "search(): query is str, not int"),
        ("tools.search()", "search(): missing a required argument: 'query'"),
        ("tools.search('a', page=2)", "search(): got an unexpected keyword argument 'page'"),
        ("tools.search('a', True)", "search(): limit is int, not bool"),
        ("tools.pick('green', [])", "pick(): colour is one of 'red', 'blue', not 'green'"),
        ("tools.pick('red', {1})", "pick(): weights is list[float], not set"),
        ("tools.pick('red', [{1}])", "pick(): weights[0] is float, not set"),
        ("tools.pick('red', [], {'a': 'b'})", "more['a'] is int, not str"),
        ("tools.keep([object()])", "arguments are None, bool, int, float, str, bytes, list and dict"),
    ],
)
def test_a_wrong_argument_is_told_before_anything_is_sent(s: Session, code: str, error: str) -> None:
    result = s.run(code)
    assert result.error and result.error.name == "TypeError" and error in result.error.value


def test_unknown_functions(s: Session) -> None:
    error = s.run("tools.serch('x')").error
    assert error and error.name == "AttributeError" and "there is fail, keep, nap, pick, search" in error.value
    error = s.run("tools.search('x')", functions=[]).error
    assert error and "the client of this cell offers none" in error.value
    error = s.run("from tools import search\n").error
    assert error is None
    error = s.run("search('x')", functions=[nap]).error
    assert error and error.name == "FunctionError" and "does not offer it" in error.value


def test_errors_of_the_provider(s: Session) -> None:
    for kind, name in (("key", "KeyError"), ("own", "Own"), ("unicode", "UnicodeDecodeError")):
        error = s.run(f"tools.fail({kind!r})").error
        assert error and error.name == name and "no such thing" in error.value
        assert not any(frame.get("file", "").endswith("test_functions.py") for frame in error.frames)
    caught = s.run("try: tools.fail('key')\nexcept KeyError as e: print('caught', e.args)")
    assert caught.stdout == "caught ('no such thing',)\n"


def test_values(connection: Connection) -> None:
    values: list[Any] = [None, True, -5, 2**63, 1.5, "Grüße \0", b"\xff\0", [1, [2, {"a": None}]], {"k": [b"x"]}]

    def echo(value: Any) -> Any:
        return value

    with Session(connection=connection, functions=[echo]) as s:
        for value in values:
            assert s.run(f"tools.echo({value!r}) == {value!r}").text == "True"
        assert s.run("len(tools.echo('x' * 5_000_000))").text == "5000000"
        for value, why in (
            ("2 ** 64", "too big"),
            ("-2 ** 64", "64 bits"),
            ("'x' * (20 << 20)", "too large"),
            (f"{'[' * 50}{']' * 50}", "nested too deeply"),
        ):
            error = s.run(f"tools.echo({value})").error
            assert error and error.name == "ValueError" and why in error.value


def test_a_value_that_cannot_be_sent(connection: Connection) -> None:
    def odd() -> Any:
        return {1, 2}

    with Session(connection=connection, functions=[odd]) as s:
        error = s.run("tools.odd()").error
        assert error and error.name == "TypeError" and "a set cannot be sent" in error.value
        assert s.run("1 + 1").text == "2"


def test_many_at_once(s: Session) -> None:
    code = "import asyncio\nawait asyncio.gather(*[tools.nap.aio(0.5) for i in range(16)])"
    started = time.monotonic()
    assert s.run(code).text == repr([0.5] * 16)
    assert time.monotonic() - started < 16 * 0.5
    code = """
from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor(8) as pool:
    got = list(pool.map(tools.nap, [0.3, 0.2, 0.1, 0.0] * 4))
got"""
    assert s.run(code).text == repr([0.3, 0.2, 0.1, 0.0] * 4)


def test_tasks_go_on_meanwhile(s: Session) -> None:
    code = """
import asyncio
ticks = 0
async def tick():
    global ticks
    while True:
        await asyncio.sleep(0.01)
        ticks += 1
task = asyncio.create_task(tick())
await tools.nap.aio(0.5)
task.cancel()
ticks > 10"""
    assert s.run(code).text == "True"


def test_questions_and_calls_at_once(s: Session) -> None:
    """Both answers come on one channel, and each gets where it belongs, whoever reads."""
    code = """
import threading
got = []
threads = [threading.Thread(target=lambda n=n: got.append(tools.nap(n / 100))) for n in range(10)]
for thread in threads: thread.start()
words = [input() for _ in range(5)]
for thread in threads: thread.join()
words, len(got)"""

    def answer(prompt: str, password: bool) -> str:
        time.sleep(0.05)
        return "yes"

    assert s.run(code, input=answer).text == "(['yes', 'yes', 'yes', 'yes', 'yes'], 10)"
    code = """
import asyncio
calls = [asyncio.ensure_future(tools.nap.aio(0.1)) for _ in range(3)]
await asyncio.sleep(0)
word = input()
word, await asyncio.gather(*calls)"""
    assert s.run(code, input=answer).text == "('yes', [0.1, 0.1, 0.1])"


def test_interrupts_at_any_moment(s: Session) -> None:
    """Whatever they hit, the session goes on, and so do calls."""
    code = "while True:\n    tools.nap(0)"
    for n in range(25):
        threading.Timer(0.02 + n / 1000, s.interrupt).start()
        assert s.run(code, timeout=20).cause == "interrupt"
        assert s.run("tools.nap(0)").text == "0"
    code = "import asyncio\nwhile True:\n    await asyncio.gather(tools.nap.aio(0), tools.nap.aio(0))"
    for n in range(25):
        threading.Timer(0.02 + n / 1000, s.interrupt).start()
        assert s.run(code, timeout=20).cause == "interrupt"
        assert s.run("await tools.nap.aio(0)").text == "0"


def test_odd_parameters(connection: Connection) -> None:
    """A parameter may have any name, and a schema that makes no sense costs no other function."""

    def odd(more: dict[str, int], **rest: int) -> Any:
        return more, rest

    broken = lair.Function(nap, name="broken", schema={"properties": {"seconds": {"anyOf": 3}}})
    with Session(connection=connection, functions=[odd, broken, nap]) as s:
        assert s.run("tools.odd({'a': 1}, b=2), tools.odd(more={})").text == "([{'a': 1}, {'b': 2}], [{}, {}])"
        assert s.run("tools.nap(0), tools.broken(seconds=0)").text == "(0, 0)"
        s.run("from tools import nap")
        caught = s.run("try: nap(0)\nexcept tools.FunctionError as error: print(error)", functions=[odd])
        assert "does not offer it" in caught.stdout


def test_names_with_dots(connection: Connection) -> None:
    with Session(connection=connection, functions={"wiki.search": search, "wiki.page.nap": nap}) as s:
        assert s.run("len(tools.wiki.search('x', 2)), tools.wiki.page.nap(0), dir(tools.wiki)").text == (
            "(2, 0, ['find', 'page', 'search'])"
        )


def test_names_without_tools(connection: Connection) -> None:
    """They are for names that are free; whoever has one keeps it, and one that is not offered any more says so."""
    given: Any = {"search": search, "wiki.search": search, "print": nap, "nap": nap}
    with Session(connection=connection, functions=given, globals=True) as s:
        assert s.run("len(search('x', 2)), len(wiki.search('x', 3)), print(0)").text == "(2, 3, 0)"
        assert [it.name for it in s.vars() if it.name in ("search", "wiki", "nap")] == []
        assert s.run("search = 'mine'\nsearch, len(tools.search('x', 1))").text == "('mine', 1)"
        assert s.run("search").text == "'mine'"
        assert s.run("del search\nlen(search('x', 1))").text == "1"
        for functions in ([], [fail]):
            error = s.run("nap(0)", functions=functions).error
            assert error and error.name == "FunctionError" and "does not offer it" in error.value
        assert s.run("nap(0)", globals=False).text == "0"
    with Session(connection=connection, functions=given) as s:
        error = s.run("nap(0)").error
        assert error and error.name == "NameError"
        assert s.run("nap(0)", globals=True).text == "0"
        s.undo()
        assert not s.run("nap(0)").ok


def test_a_name_of_the_cell_s_own_stays(s: Session) -> None:
    s.run("tools = 'mine'", functions=[])
    assert s.run("tools").text == "'mine'"
    assert s.run("from tools import search\nlen(search('x', 1))").text == "1"


def test_no_thread_and_no_call_is_left_over(s: Session) -> None:
    result = s.run("import threading\nthreading.Thread(target=tools.nap, args=(0.2,)).start()")
    assert result.ok
    assert s.run("1 + 1").text == "2"
    wait_until(lambda: s.run("import threading\nthreading.active_count()").text == "1", "the thread has ended")


# ---- time, interrupts, ends ----


def test_time_stands_still_during_a_call(s: Session) -> None:
    assert s.run("tools.nap(2.5), tools.nap(0.1)", timeout=1).text == "(2.5, 0.1)"
    result = s.run("tools.nap(0.5)\nwhile True: pass", timeout=1)
    assert result.cause == "timeout" and result.reply.duration_ms < 10_000


WORK = """
import threading, time
def call():
    while True: tools.nap({nap})
threading.Thread(target=call, daemon=True).start()
until = time.monotonic() + {seconds}
while time.monotonic() < until: {what}
"""


@pytest.mark.parametrize("pause", [8, 0.05])
def test_who_computes_while_a_call_is_out_does_so_in_the_cell_s_time(connection: Connection, pause: float) -> None:
    with Session(connection=connection, functions=[nap]) as s:
        began = time.monotonic()
        result = s.run(WORK.format(nap=pause, seconds=60, what="pass"), timeout=2)
        assert result.cause == "timeout"
        assert time.monotonic() - began < 20


def test_who_sleeps_meanwhile_does_not(connection: Connection) -> None:
    with Session(connection=connection, functions=[nap]) as s:
        result = s.run(WORK.format(nap=8, seconds=5, what="time.sleep(0.05)") + "'done'", timeout=2)
        assert result.text == "'done'"


def test_an_interrupt_tells_the_provider(connection: Connection) -> None:
    cancelled = threading.Event()

    def wait() -> bool:
        threading.Timer(0.3, session.interrupt).start()
        if lair.current().cancelled.wait(20):
            cancelled.set()
        return True

    with Session(connection=connection, functions=[wait]) as session:
        result = session.run("tools.wait()")
        assert result.error and result.error.name == "KeyboardInterrupt"
        assert cancelled.wait(20)
        assert session.run("1 + 1").text == "2"


def test_a_late_answer_is_dropped(s: Session) -> None:
    threading.Timer(0.2, s.interrupt).start()
    assert s.run("tools.nap(1)").cause == "interrupt"
    assert s.run("tools.nap(0)").text == "0"


def test_a_killed_cell_goes_back(s: Session) -> None:
    s.run("x = 1")
    result = s.run("import os\ntools.nap(0)\nx = 2\nos.kill(os.getpid(), 9)")
    assert result.state == "rolled_back"
    assert s.run("x, tools.nap(0)").text == "(1, 0)"


def test_a_killed_cell_cancels_its_calls(connection: Connection) -> None:
    begun, cancelled = threading.Event(), threading.Event()

    def wait() -> None:
        begun.set()
        if lair.current().cancelled.wait(20):
            cancelled.set()

    def kill() -> None:
        assert begun.wait(20)

    with Session(connection=connection, functions=[wait, kill]) as s:
        code = "import os, threading\nthreading.Thread(target=tools.wait).start()\ntools.kill()\nos.kill(os.getpid(), 9)"
        assert s.run(code).state == "rolled_back"
        assert cancelled.wait(20)


def test_undo_and_branch_call_again(s: Session) -> None:
    s.run("a = tools.nap(0)")
    s.run("a = tools.nap(0.1)")
    s.undo()
    assert s.run("a, tools.nap(0.2)").text == "(0, 0.2)"
    with s.branch() as twin:
        assert twin.run("a, tools.nap(0.3)", functions=[nap]).text == "(0, 0.3)"


# ---- what dies in between ----


def test_the_router_dies_during_a_call(daemon: Daemon, connection: Connection) -> None:
    numbers: list[int] = []

    def put(n: int) -> int:
        numbers.append(n)
        if n == 2:
            kill_router(daemon)
        return n * 10

    with Session(connection=connection, functions=[put]) as s:
        assert s.run("[tools.put(n) for n in range(5)]").text == "[0, 10, 20, 30, 40]"
    assert numbers == [0, 1, 2, 3, 4]


def test_the_router_dies_with_many_calls_out(daemon: Daemon, connection: Connection) -> None:
    all_out = threading.Barrier(9)
    numbers: list[int] = []

    def put(n: int) -> int:
        numbers.append(n)
        all_out.wait(30)
        return n

    def kill_when_out() -> None:
        wait_until(lambda: len(numbers) == 8, "all calls are out")
        kill_router(daemon)
        all_out.wait(30)

    with Session(connection=connection, functions=[put]) as s:
        threading.Thread(target=kill_when_out).start()
        result = s.run("import asyncio\nawait asyncio.gather(*[tools.put.aio(n) for n in range(8)])")
        assert result.text == "[0, 1, 2, 3, 4, 5, 6, 7]"
    assert sorted(numbers) == list(range(8))


def test_the_connection_is_cut_during_calls(daemon: Daemon, tmp_path: Path) -> None:
    """No call is done twice, and each has its answer."""
    tmp_path.chmod(0o700)
    wire = Wire(tmp_path / "socket", daemon.socket)
    keys: list[str] = []

    def put(n: int) -> int:
        keys.append(lair.current().key)
        if n % 3 == 0:
            wire.cut()
        return n

    with (
        Connection(str(wire.path), start=False) as connection,
        Session(connection=connection, functions=[put]) as s,
    ):
        assert s.run("[tools.put(n) for n in range(10)]").text == repr(list(range(10)))
    wire.remove()
    assert len(keys) == len(set(keys)) == 10


def test_another_client_answers(connection: Connection) -> None:
    """A cell that was left by its client waits, and whoever attaches has its calls."""
    with Session(connection=connection) as s:
        key = s.detach("tools.nap(0) + 1", functions=[nap])
        time.sleep(0.3)
        assert s.attach(key, functions=[nap]).text == "1"


# ---- over the wire, by hand ----

ADD = {"name": "add", "schema": json.dumps({"properties": {"a": {"type": "integer"}}, "required": ["a"]})}


def begin(client: Client, session: str, code: str, **options: Any) -> tuple[int, m.CallEvent]:
    exec = client.send(m.Exec(id=client.new_id(), session=session, code=code, functions=[ADD], **options))
    call = client.receive(exec, m.ExecReply)
    assert isinstance(call, m.CallEvent)
    return exec, call


def give(client: Client, exec: int, number: int, **answer: Any) -> None:
    client.call(m.Return(id=client.new_id(), exec=exec, number=number, **answer), m.Reply)


def test_a_second_answer_is_refused(client: Client, session: str) -> None:
    exec, call = begin(client, session, "tools.add(1), tools.add(2)")
    assert (call.number, call.function, call.arguments) == (1, "add", {"a": 1})
    give(client, exec, 1, value="one")
    with pytest.raises(LairError, match="gone: call 1 of request .* does not wait for an answer"):
        give(client, exec, 1, value="another")
    with pytest.raises(LairError, match="gone"):
        give(client, exec, 77, value="of no call")
    second = client.receive(exec, m.ExecReply)
    assert isinstance(second, m.CallEvent)
    give(client, exec, second.number, error="ValueError", text="no")
    reply = client.finish(exec, m.ExecReply)
    assert reply.error and reply.error["value"] == "no"


def test_an_answer_to_another_s_call(daemon: Daemon, client: Client, session: str) -> None:
    exec, call = begin(client, session, "tools.add(1)")
    with Client(str(daemon.socket)) as other, pytest.raises(LairError, match="gone"):
        give(other, exec, call.number, value="forged")
    give(client, exec, call.number, value=3)
    assert client.finish(exec, m.ExecReply).text == "3"


@pytest.mark.parametrize("value", [{"deep": [[[[[[[[[[1]]]]]]]]]]}, {1: 2}, {"a": float("nan")}])
def test_odd_answers(client: Client, session: str, value: Any) -> None:
    exec, call = begin(client, session, "x = tools.add(1)\ntype(x)")
    give(client, exec, call.number, value=value)
    assert client.finish(exec, m.ExecReply).text == "<class 'dict'>"


def test_no_answer_at_all(client: Client, session: str) -> None:
    """It waits; what it is told of is an interrupt, or the client's end."""
    exec, call = begin(client, session, "tools.add(1)")
    client.interrupt(session)
    event = client.receive(exec, m.ExecReply)
    assert isinstance(event, m.CancelEvent) and event.number == call.number
    assert client.finish(exec, m.ExecReply).cause == "interrupt"


@pytest.mark.parametrize(
    "functions",
    [
        [{"name": ""}],
        [{"name": "a b"}],
        [{"name": "x" * 129}],
        [{"schema": "{}"}],
        ["add"],
        [{"name": f"f{n}"} for n in range(513)],
        [{"name": "big", "doc": "x" * (1 << 20)}],
    ],
)
def test_what_is_no_function(client: Client, session: str, functions: Any) -> None:
    with pytest.raises(LairError, match="bad_request: functions: an array of maps"):
        client.call(m.Exec(id=client.new_id(), session=session, code="1", functions=functions), m.ExecReply)
    assert client.exec("1 + 1", session).text == "2"


def test_a_schema_that_is_none(client: Client, session: str) -> None:
    for schema in ("", "{", "[1]", '{"properties": 3}', '{"type": "object", "required": 5}'):
        request = m.Exec(
            id=client.new_id(), session=session, code="tools", functions=[{"name": "add", "schema": schema}]
        )
        assert client.call(request, m.ExecReply).text == "<tools: add>"


def test_calls_out_are_bounded(client: Client, session: str) -> None:
    """Those beyond are refused, and nobody answers before that is so: else there would be room for them."""
    code = """
import asyncio
tasks = [asyncio.ensure_future(tools.add.aio(n)) for n in range(1100)]
while sum(task.done() for task in tasks) < 76:
    await asyncio.sleep(0.01)
print("refused", flush=True)
got = await asyncio.gather(*tasks, return_exceptions=True)
[(type(it).__name__, str(it)) for it in got[1023:1025]], sum(isinstance(it, Exception) for it in got)"""
    request = m.Exec(id=client.new_id(), session=session, code=code, functions=[ADD], stream=True)
    exec, calls = client.send(request), 0
    while not isinstance(event := client.receive(exec, m.ExecReply), m.StdoutEvent):
        assert isinstance(event, m.CallEvent)
        calls += 1
    assert calls == 1024
    for number in range(1, 1025):
        client.send(m.Return(id=client.new_id(), exec=exec, number=number, value=1))
    assert client.finish(exec, m.ExecReply).text == (
        "([('int', '1'), ('FunctionError', '1024 calls are out, and calls_at_once = 1024 is the limit: wait for some')], 76)"
    )


def test_a_profile_may_forbid_them(connection: Connection) -> None:
    with Session(connection=connection, profile="none", functions=[nap]) as s:
        with pytest.raises(LairError, match='bad_request: functions: the profile "none" lets cells call none'):
            s.run("tools.nap(0)")
        assert s.run("1 + 1", functions=[]).text == "2"


# ---- asyncio ----


def test_coroutine_functions(daemon: Daemon) -> None:
    order = itertools.count()

    async def upper(text: str) -> str:
        await asyncio.sleep(0.05)
        return f"{text.upper()}{next(order)}"

    async def run() -> None:
        with Connection(str(daemon.socket), start=False) as connection:
            async with aio.Session(connection=connection, functions=[upper, nap]) as s:
                result = await s.run("import asyncio\nawait asyncio.gather(*map(tools.upper.aio, 'ab'))")
                assert sorted(it[0] for it in eval(result.text or "")) == ["A", "B"]
                assert (await s.run("tools.nap(0.1), tools.upper('x')[0]")).text == "(0.1, 'X')"

    asyncio.run(run())


# ---- what the operator sees ----


def test_an_audit_line_a_call(tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    daemon = Daemon({"daemon": {"audit_log": str(log)}})
    try:
        with (
            Connection(str(daemon.socket), start=False) as connection,
            Session(connection=connection, functions=[nap, fail]) as s,
        ):
            s.run("tools.nap(0)\ntry: tools.fail('key')\nexcept KeyError: pass")
        wait_until(lambda: log.read_text().count('"event":"call"') == 2, "there are two lines")
    finally:
        daemon.end()
    lines = [json.loads(line) for line in log.read_text().splitlines() if '"call"' in line]
    assert [(it["function"], it["outcome"]) for it in lines] == [("nap", "answered"), ("fail", "error KeyError")]
    assert [it["answer_size"] for it in lines] == [1, 21]
    assert all(it["seconds"] >= 0 and it["arguments_size"] > 5 and it["cell"] == 1 for it in lines)
    assert not any("arguments" in it or "by" in it for it in lines)


# ---- an interrupt between any two steps ----

STEPS = """
import sys
left, where, begun = {n}, "nothing", False

def step(frame, event, argument):
    global left, where, begun
    if frame.f_code.co_filename != "<lair>/functions.py":
        return None
    begun = begun or frame.f_code.co_name == "_call_with"
    left -= begun
    if left == 0:
        where = f"{{frame.f_code.co_name}}, line {{frame.f_lineno}}, {{event}}"
        raise KeyboardInterrupt
    return step

sys.settrace(step)
try: {call}
except KeyboardInterrupt: pass
finally: sys.settrace(None)
f"{{tools.out()}} after {{where}}"
"""


@pytest.mark.parametrize("call", ["tools.wait(1)", "await tools.wait.aio(1)"])
def test_an_interrupt_at_any_step_leaves_no_call_behind(connection: Connection, call: str) -> None:
    """As long as one is out, the cell's time stands still: nothing must be out that nobody waits for."""

    def wait(n: int) -> None:
        time.sleep(0.1)

    def out() -> int:
        return len(it.calls()) - 1

    with Session(connection=connection, functions=[wait, out]) as it:
        said = [it.run(STEPS.format(n=n, call=call)) for n in range(1, 40)]
    ended = [one for one in said if one.error and one.error.name == "KeyboardInterrupt"]  # in the event loop
    wrong = [one for one in said if one not in ended and not str(one.text).startswith("'0 after ")]
    assert [one.text or one.error for one in wrong] == []
    assert "0 after _send, line" in "".join(one.text or "" for one in said)

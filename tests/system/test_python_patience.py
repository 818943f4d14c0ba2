"""lair.tools: calls that take longer than their caller waits, and output that is longer than a model is given."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from daemon import Daemon, wait_until
from lair import Connection, Session
from lair.tools import Tools
from mcp_server import McpServer
from test_python_lost import Wire

SETTINGS = {
    "profile default": {"checkpoint": "cell", "cell_timeout_max": "1h", "output_size": "64K"},
    "profile narrow": {"spares": "0", "output_size": "8K"},
    "profile roomy": {"spares": "0", "output_size": "4M"},
}

Answer = dict[str, Any]
# A tool's name and its arguments.
Call = Callable[..., Answer]

MUCH_LATER = "import time; print('begun', flush=True); time.sleep(2); print('x' * 1_000_000)"
SLOW = "import time; print('begun', flush=True); n = globals().get('n', 0) + 1; time.sleep(2); print('done'); n"


@pytest.fixture
def tools(connection: Connection) -> Iterator[Tools]:
    with Tools(connection=connection, patience=1) as it:
        it.call("python_session_start", {})  # however long that takes
        yield it


@pytest.fixture(params=["waiting", "asyncio", "mcp", "mcp-with-progress"])
def call(daemon: Daemon, tools: Tools, request: pytest.FixtureRequest) -> Iterator[Call]:
    if request.param == "waiting":
        yield lambda name, **arguments: tools.call(name, arguments)
    elif request.param == "asyncio":
        yield lambda name, **arguments: asyncio.run(tools.acall(name, arguments))
    else:
        token = "t" if request.param == "mcp-with-progress" else None
        with McpServer(daemon, "--patience", "1s", "--session", f"{request.param}-default") as server:
            server.call("python_session_start")
            yield lambda name, **arguments: server.call(name, token, **arguments)
            server.call("python_session_shutdown")


def rest_of(tools: Tools, it: Answer) -> tuple[str, Answer]:
    return rest(lambda name, **arguments: tools.call(name, arguments), it)


def rest(call: Call, it: Answer) -> tuple[str, Answer]:
    """All that comes after an answer, until the code has ended."""
    out = ""
    while it.get("running"):
        it = call("python_result", handle=it["handle"])
        out += it.get("stdout", "")
    return out, it


def test_a_long_call_is_answered_before_its_caller_gives_up(call: Call) -> None:
    first = call("python_session_execute", code=SLOW)
    assert first == {
        "ok": True,
        "running": True,
        "handle": first["handle"],
        "session_id": first["session_id"],
        "stdout": "begun\n",
        "note": "The code still runs after 1 s. python_result with this handle waits for the rest."
        " python_session_reset ends it.",
    }
    assert first["session_id"].endswith("default")
    for _ in range(2):  # whoever lost an answer asks again
        out, it = rest(call, first)
        assert (out, it) == (
            "done\n",
            {
                "ok": True,
                "state": "kept",
                "session_id": first["session_id"],
                "cell": 1,
                "stdout": "done\n",
                "text": "1",
            },
        )
    quick = call("python_session_execute", code="n")
    assert (quick["text"], quick["cell"]) == ("1", 2)  # nothing has run twice


def test_without_patience_a_call_waits(connection: Connection) -> None:
    with Tools(connection=connection) as tools:
        it = tools.call("python_session_execute", {"code": SLOW})
        assert (it["stdout"], it["text"], "running" in it) == ("begun\ndone\n", "1", False)
    with pytest.raises(Exception, match="patience"):
        Tools(connection=connection, patience=0)


def test_one_executions_have_a_rest_too(call: Call) -> None:
    once = call("python_execute_once", code=SLOW)
    assert once["running"] and "session_id" not in once and "reset" not in once["note"]
    out, it = rest(call, once)
    assert (once.get("stdout", "") + out, it["text"], it["state"]) == ("begun\ndone\n", "1", "ended")


def test_the_rest_is_got_by_another(connection: Connection, daemon: Daemon) -> None:
    """Nothing is remembered but by the daemon: another program of that namespace gets it, and no other."""
    with Tools(connection=connection, namespace="long", patience=1) as tools:
        tools.call("python_session_start", {})
        first = tools.call("python_session_execute", {"code": SLOW})
    with (
        Connection(str(daemon.socket), start=False) as theirs,
        Tools(connection=theirs, namespace="long") as tools,
        Tools(connection=theirs) as stranger,
    ):
        assert tools.call("python_result", {"handle": first["handle"]})["text"] == "1"
        assert stranger.call("python_result", {"handle": first["handle"]})["error"]["name"] == "gone"
        tools.call("python_session_shutdown", {})


def test_what_waits_is_answered_too_and_what_fails_later(tools: Tools) -> None:
    async def both() -> list[Answer]:
        first = asyncio.ensure_future(tools.acall("python_session_execute", {"code": SLOW}))
        await asyncio.sleep(0.2)
        second = tools.acall("python_session_execute", {"code": "1 / 0"})
        return list(await asyncio.gather(first, second))

    answers = asyncio.run(both())
    assert [it["running"] for it in answers] == [True, True] and "stdout" not in answers[1]
    out, it = rest_of(tools, answers[1])
    assert (it["ok"], it["error"]["name"], it["cell"]) == (False, "ZeroDivisionError", 2)
    assert it["note"] == "The session goes on; what the code had done until then stays."


def test_many_wait_at_once(tools: Tools) -> None:
    """Each for its own cell, and all for one; from threads."""
    code = "import time; time.sleep(1.5); {n}"
    answers: dict[int, Answer] = {}

    def one(n: int) -> None:
        first = tools.call("python_session_execute", {"code": code.format(n=n), "session_id": f"s{n}"})
        assert first["running"], first
        for _ in range(2):
            _, answers[n] = rest_of(tools, first)

    threads = [threading.Thread(target=one, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {n: it["text"] for n, it in answers.items()} == {n: str(n) for n in range(6)}
    first = tools.call("python_session_execute", {"code": SLOW})

    async def same() -> list[Answer]:
        handle = {"handle": first["handle"]}
        return await asyncio.gather(*(tools.acall("python_result", handle) for _ in range(5)))

    for it in asyncio.run(same()):
        assert rest_of(tools, it)[1]["text"] == "1"


def test_who_waits_for_the_rest_no_longer_interrupts_nothing(tools: Tools) -> None:
    async def scenario() -> Answer:
        first = await tools.acall("python_session_execute", {"code": SLOW})
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(tools.acall("python_result", {"handle": first["handle"]}), 0.2)
        return first

    first = asyncio.run(scenario())
    assert rest_of(tools, first)[1]["text"] == "1"


def test_a_call_that_is_cancelled_interrupts_its_code(tools: Tools) -> None:
    async def scenario() -> Answer:
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(tools.acall("python_session_execute", {"code": "while True: pass"}), 0.5)
        return await tools.acall("python_session_execute", {"code": "'alive'"})

    assert asyncio.run(scenario())["text"] == "'alive'"


ENDS: dict[str, tuple[Callable[[Tools], object], str, str]] = {
    "interrupt": (
        lambda tools: interrupt(tools),
        "interrupt",
        "The code was interrupted. The session goes on; what the code had done until then stays.",
    ),
    "reset": (
        lambda tools: tools.call("python_session_reset", {}),
        "reset",
        "The session was reset while the code ran. The session was reset: all its variables and"
        " imports are lost, its files stay.",
    ),
    "shutdown": (
        lambda tools: tools.call("python_session_shutdown", {}),
        "shutdown",
        "The session was ended while the code ran. The session has ended, and its files are gone;"
        " to use its id makes a new one.",
    ),
}


def interrupt(tools: Tools) -> None:
    assert Session(f"{tools.namespace}:default", connection=tools.connection).interrupt()


@pytest.mark.parametrize(("end", "cause", "note"), ENDS.values(), ids=ENDS.keys())
def test_what_ended_it_meanwhile_is_told(
    tools: Tools, end: Callable[[Tools], object], cause: str, note: str
) -> None:
    code = "print('x', flush=True)\nwhile True: pass"
    running = tools.call("python_session_execute", {"code": code})
    assert running["stdout"] == "x\n"
    end(tools)
    for _ in range(2):  # also of a session that is no more
        it = tools.call("python_result", {"handle": running["handle"]})
        assert (it["ok"], it["cause"], it["note"]) == (False, cause, note)
        assert "stdout" not in it


def test_the_code_runs_on_until_its_time(tools: Tools) -> None:
    running = tools.call("python_session_execute", {"code": "while True: pass", "timeout_sec": 2})
    assert running["running"]
    _, it = rest_of(tools, running)
    assert (it["cause"], it["state"]) == ("timeout", "kept")


def test_patience_is_not_asked_of_what_ends_first(connection: Connection) -> None:
    began = time.monotonic()
    with Tools(connection=connection, patience=30) as tools:
        it = tools.call("python_session_execute", {"code": "2"})
    assert (it["text"], "handle" in it) == ("2", False)
    assert time.monotonic() - began < 30


def test_figures_come_once(connection: Connection) -> None:
    pytest.importorskip("matplotlib")
    with Tools(connection=connection, patience=2, images=True) as tools:
        tools.call(
            "python_session_execute", {"code": "import time, matplotlib.pyplot as plt; plt.plot([0]); plt.show()"}
        )
        code = "plt.plot([1]); plt.show(); time.sleep(4); plt.plot([2]); plt.show()"
        answers = [tools.call("python_session_execute", {"code": code})]
        while answers[-1].get("running"):
            answers.append(tools.call("python_result", {"handle": answers[-1]["handle"]}))
        assert len(answers) > 1 and answers[-1]["ok"]
        assert sum(len(it.get("images", [])) for it in answers) == 2
        assert sum(len(it.get("displays", [])) for it in answers) == 2


def test_many_displays_are_counted(connection: Connection) -> None:
    with Tools(connection=connection) as tools:
        it = tools.call("python_session_execute", {"code": "for n in range(40): display(n)"})
        assert (len(it["displays"]), it["displays_left_out"]) == (32, 8)


def test_a_character_is_not_cut_by_the_end_of_patience(tools: Tools) -> None:
    code = """
import os, time
os.write(1, b'a\\xe2\\x82')
time.sleep(1.5)
os.write(1, b'\\xac')
"""
    first = tools.call("python_session_execute", {"code": code})
    assert first["stdout"] == "a"
    out, _ = rest_of(tools, first)
    assert out == "\u20ac"


def test_what_was_printed_meanwhile_and_not_kept_is_told(tools: Tools) -> None:
    """The daemon keeps 64 KiB of each stream, half of the beginning and half of the end."""
    first = tools.call("python_session_execute", {"code": MUCH_LATER})
    wait_until(lambda: finished(tools, first), "the cell has ended")
    it = tools.call("python_result", {"handle": first["handle"]})
    assert it["note"] == "stdout was 1000007 bytes; python_result with from_byte gives any of them."
    assert "[... 980001 bytes left out ...]" in it["stdout"]
    page = tools.call("python_result", {"handle": it["handle"], "from_byte": 0})
    assert (page["from_byte"], page["next_byte"], page["stdout"][:7]) == (0, 20_000, "begun\nx")
    while page.get("next_byte", 10**9) < 32_768:
        page = tools.call("python_result", {"handle": it["handle"], "from_byte": page["next_byte"]})
    page = tools.call("python_result", {"handle": it["handle"], "from_byte": page["next_byte"]})
    assert page["from_byte"] == 1_000_007 - 32_768  # where what is kept of it goes on


def test_what_was_not_kept_is_told_by_mcp_too(daemon: Daemon, tools: Tools) -> None:
    """Less than an excerpt has room for: the two pieces that are kept must not look like one."""
    code = MUCH_LATER.replace("1_000_000", "20_000")
    with McpServer(daemon, "--profile", "narrow", "--patience", "1s") as server, narrow(tools) as ours:
        running = server.call("python_execute_once", code=code)
        mine = ours.call("python_execute_once", {"code": code})
        time.sleep(3)
        it = server.call("python_result", handle=running["handle"])
        assert "[... 11815 bytes left out ...]" in it["stdout"] and "stdout was 20007 bytes" in it["note"]
        assert of_handle(it) == of_handle(ours.call("python_result", {"handle": mine["handle"]}))


def narrow(tools: Tools) -> Tools:
    return Tools(connection=tools.connection, profile="narrow", patience=1)


def test_the_rest_goes_on_where_it_was_when_the_connection_is_cut(daemon: Daemon, tmp_path: Path) -> None:
    """Cut before anything of the rest has come."""
    tmp_path.chmod(0o700)
    wire = Wire(tmp_path / "wire", daemon.socket)
    with Connection(str(wire.path), start=False) as cut, Tools(connection=cut, patience=1) as tools:
        assert tools.call("python_session_start", {})["ok"]
        first = tools.call("python_session_execute", {"code": SLOW.replace("sleep(2)", "sleep(4)")})
        threading.Timer(0.3, wire.cut).start()
        out, it = rest_of(tools, first)
        assert (first["stdout"], out, it["text"]) == ("begun\n", "done\n", "1")
    assert wire.connections == 2


def finished(tools: Tools, running: Answer) -> bool:
    (record,) = (
        it
        for it in Session(f"{tools.namespace}:default", connection=tools.connection).results()
        if it.key == running["handle"][:16]
    )
    return record.state == "finished"


# ---- pages, the same as of lair mcp ----

LINES = "print(''.join(f'{i:9d}\\n' for i in range(100_000)), end='')"
ERRORS = (
    "import sys; print('x' * 30_000); print(''.join(f'{i:9d}\\n' for i in range(10_000)), end='', file=sys.stderr)"
)
ASKED: list[Answer] = [
    {"from_byte": 0},
    {"from_byte": 20_000},
    {"from_byte": 20_000, "of_stderr": False},
    {"from_byte": 999_990},
    {"from_byte": 5_000_000},
    {"from_byte": 0, "of_stderr": True},
    {"from_byte": 90_000, "of_stderr": True},
    {"from_byte": -1},
    {},
]


def of_handle(it: Answer) -> Answer:
    """But for the key, which is another each time."""
    known = {key: value for key, value in it.items() if key != "returncode"}
    return known | ({"handle": it["handle"][16:]} if "handle" in it else {})


@pytest.mark.parametrize("code", [LINES, ERRORS, "print('\\u00fc' * 40_000)"], ids=["stdout", "stderr", "umlauts"])
def test_long_output_is_paged_as_in_mcp(daemon: Daemon, connection: Connection, session: str, code: str) -> None:
    with (
        McpServer(daemon, "--profile", "roomy") as server,
        Tools(connection=connection, namespace="paged", profile="roomy") as tools,
    ):
        ours = tools.call("python_session_execute", {"code": code, "session_id": session})
        theirs = server.call("python_session_execute", code=code, session_id=session)
        assert of_handle(ours) == of_handle(theirs)
        assert "python_result with from_byte" in ours["note"]
        for asked in ASKED:
            page = tools.call("python_result", {"handle": ours["handle"], **asked})
            assert of_handle(page) == of_handle(
                server.call("python_result", handle=theirs["handle"], **asked)
            ), asked
        tools.call("python_session_shutdown", {"session_id": session})


def test_pages_make_up_the_whole(tools: Tools) -> None:
    it = tools.call("python_session_execute", {"code": "print('\\u20ac' * 20_000, end='')"})
    text = ""
    begin: int | None = 0
    while begin is not None:
        page = tools.call("python_result", {"handle": it["handle"], "from_byte": begin})
        text += page.get("stdout", "")
        begin = page.get("next_byte")
    assert text == "\u20ac" * 20_000


def test_the_pages_of_who_is_shown_little_are_small(connection: Connection) -> None:
    with Tools(connection=connection, shown=100) as tools:
        it = tools.call("python_session_execute", {"code": "print('x' * 1000)"})
        page = tools.call("python_result", {"handle": it["handle"], "from_byte": 0})
        assert (len(page["stdout"]), page["next_byte"]) == (100, 100)


def test_a_page_of_what_still_runs_says_that_more_may_come(daemon: Daemon, tools: Tools) -> None:
    code = "import time; print('x' * 10, flush=True); time.sleep(4); print('y')"
    first = tools.call("python_session_execute", {"code": code})
    page = tools.call("python_result", {"handle": first["handle"], "from_byte": 0})
    assert page == {"ok": True, "from_byte": 0, "stdout": "x" * 10 + "\n", "next_byte": 11}
    page = tools.call("python_result", {"handle": first["handle"], "from_byte": 11})
    assert page == {"ok": True, "from_byte": 11, "next_byte": 11}
    with McpServer(daemon, "--patience", "1s") as server:
        running = server.call("python_execute_once", code=code)
        page = server.call("python_result", handle=running["handle"], from_byte=0)
        assert page == {"ok": True, "from_byte": 0, "stdout": "x" * 10 + "\n", "next_byte": 11}
    json.dumps(page)

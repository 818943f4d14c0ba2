"""asyncio's tasks outlive the cell that made them: their loop lives between cells."""

from __future__ import annotations

import socket
import time

import pytest

from lair import Client
from lair.messages import ExecReply, StdoutEvent, Vars, VarsReply

SETTINGS = {
    "profile default": {"checkpoint": "cell", "level": "", "grace": "500ms"},
    "profile off": {"checkpoint": "off", "level": "", "grace": "500ms"},
    "profile granted": {"subprocess": "on", "network": "host", "level": ""},
}

COUNT = """
import asyncio, time
n = 0
async def count():
    global n
    while True:
        n += 1
        await asyncio.sleep(0.01)
"""


def number(client: Client, session: str) -> int:
    return int(client.exec("n", session).text or "")


def grows(client: Client, session: str) -> bool:
    """Whether the task goes on while no cell runs."""
    before = number(client, session)
    time.sleep(0.3)
    return number(client, session) > before + 2


def test_a_task_without_await(client: Client, session: str) -> None:
    code = "import asyncio\nasync def f(): return 5\nt = asyncio.create_task(f(), name='mine')\nt.get_name()"
    assert client.exec(code, session).text == "'mine'"
    assert client.exec("t.done(), t.result()", session).text == "(True, 5)"
    assert client.exec("await t", session).text == "5"


def test_a_task_goes_on_between_cells(client: Client, session: str) -> None:
    client.exec(COUNT + "task = asyncio.create_task(count())", session)
    assert grows(client, session)
    code = "before = n\ntime.sleep(0.1)\nn - before"
    assert client.exec(code, session).text == "0", "while a cell runs that does not await, the loop does not"
    assert int(client.exec("before = n\nawait asyncio.sleep(0.2)\nn - before", session).text or "") > 2
    client.exec("task.cancel()", session)
    assert not grows(client, session)
    assert client.exec("task.cancelled()", session).text == "True"


def test_timers_and_the_loop_that_a_cell_gets(client: Client, session: str) -> None:
    code = "import asyncio\nseen = []\nasyncio.get_event_loop().call_later(0.05, seen.append, 1)"
    client.exec("import warnings\nwarnings.simplefilter('ignore')\n" + code, session)
    time.sleep(0.3)
    assert client.exec("seen", session).text == "[1]"
    assert client.exec("asyncio.get_event_loop() is asyncio.get_running_loop()\nawait asyncio.sleep(0)", session)
    code = "loop = asyncio.get_event_loop()\nawait asyncio.sleep(0)\nasyncio.get_running_loop() is loop"
    assert client.exec(code, session).text == "True"


def test_asyncio_run_works_besides(client: Client, session: str) -> None:
    client.exec(COUNT + "task = asyncio.create_task(count())", session)
    code = "async def inner():\n    task = asyncio.create_task(asyncio.sleep(0, 7))\n    return await task\n"
    assert client.exec(code + "asyncio.run(inner())", session).text == "7"
    assert grows(client, session)


def test_only_the_session_itself_has_the_loop(client: Client, session: str) -> None:
    code = """
import asyncio, os, threading
seen = []
async def f(): pass
def attempt():
    coroutine = f()
    try: asyncio.create_task(coroutine)
    except RuntimeError as error: seen.append(str(error))
    coroutine.close()
thread = threading.Thread(target=attempt)
thread.start(); thread.join()
r, w = os.pipe()
if os.fork() == 0:
    attempt()
    os.write(w, seen[-1].encode())
    os._exit(0)
seen.append(os.read(r, 99).decode())
seen
"""
    assert client.exec(code, session).text == "['no running event loop', 'no running event loop']"


def test_no_checkpoint_is_lost(client: Client, session: str) -> None:
    """Neither while a task waits nor after it."""
    assert client.exec(COUNT + "task = asyncio.create_task(count())", session).unfaithful is None
    time.sleep(0.1)
    assert client.exec("m = 5", session).unfaithful is None
    assert client.exec("task.cancel()", session).unfaithful is None
    assert client.exec("await asyncio.sleep(0)", session).unfaithful is None
    assert {1, 2, 3} <= {c.cell for c in client.checkpoints(session)}


def test_undo_and_the_task_goes_on(client: Client, session: str) -> None:
    client.exec(COUNT + "task = asyncio.create_task(count())\nn = 1000", session)
    client.exec("task.cancel(); n = 5", session)
    assert not grows(client, session)
    client.undo(session, 3)
    assert number(client, session) >= 1000
    assert grows(client, session)
    assert (
        client.exec("task.done(), len(asyncio.all_tasks(asyncio.get_event_loop()))", session).text == "(False, 1)"
    )


@pytest.mark.parametrize("death", ["import os; os._exit(3)", "import ctypes; ctypes.string_at(0)"])
def test_rolled_back_and_the_task_goes_on(client: Client, session: str, death: str) -> None:
    client.exec(COUNT + "task = asyncio.create_task(count())", session)
    assert client.exec(death, session).state == "rolled_back"
    assert grows(client, session)


def test_a_branch_has_tasks_of_its_own(client: Client, session: str) -> None:
    client.exec(COUNT + "task = asyncio.create_task(count())", session)
    branch = session + ".b"
    client.branch(session, branch)
    assert grows(client, session) and grows(client, branch)
    client.exec("task.cancel()", branch)
    assert grows(client, session) and not grows(client, branch)
    client.shutdown(branch)


def test_a_future_that_a_cell_fulfils_after_undo(client: Client, session: str) -> None:
    client.exec(
        "import asyncio\ngate = asyncio.Event()\nasync def wait():\n    await gate.wait()\n    return 'through'\n"
        "task = asyncio.create_task(wait())",
        session,
    )
    client.exec("gate = None", session)
    client.undo(session)
    assert client.exec("gate.set()\nawait task", session).text == "'through'"


def test_output_between_cells_comes_with_the_next(client: Client, session: str) -> None:
    code = "import asyncio\nasync def say():\n    await asyncio.sleep(0.05)\n    print('said')\nt = asyncio.create_task(say())"
    assert client.exec(code, session).stdout == b""
    time.sleep(0.3)
    assert client.exec("print('next')", session).stdout == b"said\nnext\n"


def test_an_error_between_cells_is_told(client: Client, session: str) -> None:
    code = "import asyncio\nasync def fail():\n    await asyncio.sleep(0.05)\n    1 / 0\n"
    client.exec(code + "asyncio.create_task(fail())\nNone", session)
    time.sleep(0.3)
    reply = client.exec("import gc; gc.collect(); None", session)
    assert b"ZeroDivisionError" in reply.stderr and reply.error is None


@pytest.mark.parametrize("raised", ["SystemExit(3)", "KeyboardInterrupt", "asyncio.CancelledError"])
def test_what_a_task_raises_between_cells_ends_it_alone(client: Client, session: str, raised: str) -> None:
    client.exec(COUNT + f"async def end():\n    await asyncio.sleep(0.05)\n    raise {raised}\n", session)
    client.exec("others = [asyncio.create_task(count()), asyncio.create_task(end())]", session)
    time.sleep(0.2)
    assert grows(client, session)
    reply = client.exec("others[1].done()", session)
    assert (reply.text, reply.state) == ("True", "kept")


def test_a_task_that_stops_the_loop(client: Client, session: str) -> None:
    client.exec(COUNT + "async def stop(): asyncio.get_running_loop().stop()", session)
    client.exec("ts = [asyncio.create_task(count()), asyncio.create_task(stop())]", session)
    assert grows(client, session)


SPIN = "import asyncio\nasync def spin():\n    while True: pass\ntask = asyncio.create_task(spin())"


def test_a_task_that_does_not_give_way(client: Client, session: str) -> None:
    """Somebody waits for the session, if only for its checkpoint: the task is interrupted, and nothing else is lost."""
    client.exec("x = 1", session)
    client.exec(SPIN, session)
    reply = client.exec("x, task.done(), type(task.exception())", session)
    assert (reply.text, reply.state) == ("(1, True, <class 'KeyboardInterrupt'>)", "kept")


def test_a_cell_whose_time_a_task_has_taken(client: Client, session: str) -> None:
    client.open(session, profile="off")
    client.exec(SPIN, session)
    reply = client.exec("x = 1", session, timeout=0.5)
    assert (reply.cause, reply.state) == ("timeout", "kept")
    assert client.exec("task.done(), 'x' in globals()", session).text == "(True, False)"


def test_questions_are_answered_while_a_task_waits(client: Client, session: str) -> None:
    client.exec(COUNT + "task = asyncio.create_task(count())", session)
    told = client.call(Vars(id=client.new_id(), session=session), VarsReply)
    assert "task" in [variable["name"] for variable in told.variables]
    assert grows(client, session)


def test_threads_of_a_task_between_cells_end(client: Client, session: str) -> None:
    client.exec("import asyncio\nt = asyncio.create_task(asyncio.to_thread(int, '5'))", session)
    time.sleep(0.2)
    assert client.exec("t.result()", session).unfaithful is None


def test_a_server_serves_between_cells(client: Client, session: str) -> None:
    client.open(session, profile="granted")
    code = """
import asyncio
async def handle(reader, writer):
    writer.write((await reader.readline()).upper())
    writer.close()
server = await asyncio.start_server(handle, '127.0.0.1', 0)
port = server.sockets[0].getsockname()[1]
port
"""
    port = int(client.exec(code, session).text or "")
    with socket.create_connection(("127.0.0.1", port), timeout=10) as peer:
        peer.sendall(b"hello\n")
        assert peer.recv(99) == b"HELLO\n"


def test_a_program_that_a_task_waits_for(client: Client, session: str) -> None:
    client.open(session, profile="granted")
    code = """
import asyncio
async def start():
    p = await asyncio.create_subprocess_exec('echo', 'hi', stdout=asyncio.subprocess.PIPE)
    return (await p.communicate())[0]
task = asyncio.create_task(start())
"""
    client.exec(code, session)
    time.sleep(0.5)
    assert client.exec("task.result()", session).text == "b'hi\\n'"


def test_many_cells_beside_a_task(client: Client, session: str) -> None:
    client.exec(COUNT + "task = asyncio.create_task(count())", session)
    for i in range(50):
        assert client.exec(f"{i}", session).text == str(i)
    running = client.start("for i in range(3):\n    print(n, flush=True)\n    await asyncio.sleep(0.05)", session)
    reply = client.finish(running, ExecReply)
    seen = [int(line) for line in reply.stdout.split()]
    assert seen == sorted(seen) and seen[0] < seen[-1]


def test_a_loop_of_another_kind_costs_checkpoints_while_tasks_wait(client: Client, session: str) -> None:
    """A copy cannot be given one of its own."""
    code = """
import asyncio, selectors
class Other(asyncio.AbstractEventLoop):
    def __init__(self): self._inner = asyncio.new_event_loop()
    def __getattribute__(self, name):
        return object.__getattribute__(self, name) if name == '_inner' else getattr(self._inner, name)
"""
    client.exec(code, session)
    reply = client.exec(
        "loop = Other()\nasyncio.set_event_loop(loop)\ntask = asyncio.tasks.Task(asyncio.sleep(60), loop=loop)",
        session,
    )
    assert reply.unfaithful and "1 asyncio task" in reply.unfaithful


def test_the_output_of_a_watched_cell_is_its_own(client: Client, session: str) -> None:
    client.exec(COUNT + "task = asyncio.create_task(count())", session)
    events = list(client.stream("print('a')\nawait asyncio.sleep(0.05)\nprint('b')", session))
    assert b"".join(e.data for e in events if isinstance(e, StdoutEvent)) == b"a\nb\n"

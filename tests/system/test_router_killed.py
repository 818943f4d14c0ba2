"""The router dies before each of its system calls in turn, while something is done that can be done wrongly twice or
not at all. What is asked with a key is done once and answered, and nothing that was there is missing."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest

from daemon import Daemon, wait_until
from lair import Client, LairError, codec
from lair import messages as m

R = TypeVar("R", bound=codec.Message)

SETTINGS = {
    "profile default": {"checkpoint": "cell", "spares": "1", "checkpoints": "100"},
    "profile plain": {"checkpoint": "off"},
}

# Between two of these nothing becomes visible to anybody else.
CALLS = ["sendmsg", "recvfrom", "splice", "write", "epoll_wait", "epoll_ctl", "close", "pread64"]


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    it = Daemon(SETTINGS, options=("--restart-at-once",))
    yield it
    try:
        # There was no moment at which the next router found half of something.
        assert "cannot be used" not in it.log()
    finally:
        it.end()


def insist(daemon: Daemon, make: Callable[[int, str], m.Request], reply: type[R], patience: float = 0.25) -> R:
    """Send it until it is answered, always with the same key."""
    key = uuid.uuid4().hex
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        with Client(str(daemon.socket), timeout=patience) as client:
            try:
                return client.call(make(client.new_id(), key), reply)
            except TimeoutError:
                continue
    pytest.fail(f"no answer to {make(0, key)}:\n{daemon.log()[-3000:]}")


def run(daemon: Daemon, code: str, session: str | None, **options: Any) -> m.ExecReply:
    return insist(
        daemon, lambda id, key: m.Exec(id=id, key=key, session=session, code=code, **options), m.ExecReply
    )


def router_of(daemon: Daemon) -> int:
    with Client(str(daemon.socket), timeout=30) as client:
        return client.stats().pid


def is_traced(pid: int) -> bool:
    try:
        return "TracerPid:\t0\n" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return True  # so soon


@contextmanager
def dies_at(pid: int, call: str, n: int) -> Iterator[None]:
    """Kill it before the call of that name that is its nth from now."""
    tracer = subprocess.Popen(
        f"strace -qq -o /dev/null -e trace={call} -e inject={call}:signal=KILL:when={n} -p {pid}".split(),
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        wait_until(lambda: is_traced(pid) or tracer.poll() is not None, "it is traced")
        yield
    finally:
        tracer.terminate()
        tracer.communicate()


def at_every_call(daemon: Daemon, calls: list[str], act: Callable[[], None], most: int = 60) -> int:
    """Do it again and again, until nothing is left of it at which the router could die. Returns how often it did."""
    deaths = 0
    for call in calls:
        for n in range(1, most):
            pid = router_of(daemon)
            with dies_at(pid, call, n):
                act()
            if os.path.exists(f"/proc/{pid}") and router_of(daemon) == pid:
                break
            deaths += 1
    return deaths


def is_saved(daemon: Daemon, session: str, cell: int) -> bool:
    reply = insist(daemon, lambda id, key: m.Checkpoints(id=id, session=session), m.CheckpointsReply)
    return cell in [codec.read(m.CheckpointRecord, item).cell for item in reply.checkpoints]


@pytest.mark.parametrize("call", CALLS)
def test_a_cell(daemon: Daemon, call: str) -> None:
    session = f"cell-{call}"
    run(daemon, "import sys\nn = 0", session)
    count = 0

    def act() -> None:
        nonlocal count
        count += 1
        reply = run(daemon, "n += 1\nprint('out', n)\nprint('err', n, file=sys.stderr)\nn", session)
        assert (reply.text, reply.returncode, reply.state) == (str(count), 0, "kept")
        assert (reply.stdout, reply.stderr) == (b"out %d\n" % count, b"err %d\n" % count)
        assert reply.cell == count + 1
        wait_until(lambda: is_saved(daemon, session, count + 1), "its checkpoint, made after the answer, is there")

    deaths = at_every_call(daemon, [call], act)
    assert deaths > 0 or call in ("pread64", "splice", "epoll_ctl")
    with Client(str(daemon.socket)) as client:
        assert client.info(session).cells == count + 1
        # What the journal of the session says happened, happened.
        assert client.undo(session, 1).cell == count
        assert client.exec("n", session).text == str(count - 1)
        client.shutdown(session)


@pytest.mark.parametrize("call", ["sendmsg", "recvfrom", "write"])
def test_a_cell_that_breaks(daemon: Daemon, call: str) -> None:
    session = f"broken-{call}"
    run(daemon, "import os\nn = 7", session)

    def act() -> None:
        reply = run(daemon, "n = 8\nprint('last words', flush=True)\nos._exit(3)", session)
        assert (reply.returncode, reply.cause, reply.state) == (3, "exit", "rolled_back"), reply
        assert reply.stdout == b"last words\n"

    assert at_every_call(daemon, [call], act) > 0
    assert run(daemon, "n", session).text == "7"
    with Client(str(daemon.socket)) as client:
        client.shutdown(session)


@pytest.mark.parametrize("call", ["sendmsg", "recvfrom", "write"])
def test_undo(daemon: Daemon, call: str) -> None:
    """Not twice."""
    session = f"undo-{call}"
    n = 70  # each round takes one away
    for i in range(n + 1):
        run(daemon, f"n = {i}", session)

    def act() -> None:
        nonlocal n
        n += 1
        assert run(daemon, f"n = {n}", session).state == "kept"
        insist(daemon, lambda id, key: m.Undo(id=id, key=key, session=session), m.StateReply)
        n -= 1
        assert run(daemon, "n", session).text == str(n)
        insist(daemon, lambda id, key: m.Undo(id=id, key=key, session=session, n=2), m.StateReply)
        n -= 1

    assert at_every_call(daemon, [call], act) > 0
    with Client(str(daemon.socket)) as client:
        client.shutdown(session)


@pytest.mark.parametrize("call", ["sendmsg", "recvfrom", "write"])
def test_one_shots(daemon: Daemon, call: str) -> None:
    def act() -> None:
        reply = run(daemon, "print('once')\n6 * 7", None)
        assert (reply.text, reply.stdout, reply.state) == ("42", b"once\n", "ended")

    assert at_every_call(daemon, [call], act) > 0


@pytest.mark.parametrize("call", ["sendmsg", "recvfrom", "write"])
def test_branches(daemon: Daemon, call: str) -> None:
    parent = f"parent-{call}"
    run(daemon, "n = 1", parent)
    count = 0

    def act() -> None:
        nonlocal count
        count += 1
        name = f"branch-{call}-{count}"
        insist(daemon, lambda id, key: m.Branch(id=id, key=key, session=parent, branch=name), m.SessionInfo)
        assert run(daemon, f"n += {count}\nn", name).text == str(1 + count)
        insist(daemon, lambda id, key: m.Reset(id=id, key=key, session=name), m.Reply)
        assert run(daemon, "'n' in globals()", name).text == "False"
        insist(daemon, lambda id, key: m.Shutdown(id=id, key=key, session=name), m.Reply)
        assert run(daemon, "n", parent).text == "1"

    assert at_every_call(daemon, [call], act, most=25) > 0
    with Client(str(daemon.socket)) as client:
        client.shutdown(parent)


@pytest.mark.parametrize("call", ["sendmsg", "recvfrom", "write", "epoll_ctl"])
def test_branches_at_a_call(daemon: Daemon, call: str) -> None:
    """Each goes on with the cell once, with the answers that it was given."""
    parent = f"caller-{call}"
    function = {"name": "f", "schema": '{"additionalProperties": true}', "ask": True}
    code = "import asyncio\nprint('begun')\nsum(await asyncio.gather(tools.f.aio(n=1), tools.f.aio(n=2)))"
    insist(
        daemon,
        lambda id, key: m.Exec(id=id, key=key, session=parent, code=code, functions=[function], detach=True),
        m.DetachedReply,
    )

    def waiting(session: str) -> list[int]:
        reply = insist(daemon, lambda id, key: m.Calls(id=id, session=session), m.CallsReply)
        return [codec.read(m.CallRecord, it).number for it in reply.calls]

    def answer(session: str, number: int, value: int) -> None:
        insist(
            daemon,
            lambda id, key: m.AnswerCall(id=id, key=key, session=session, number=number, value=value),
            m.Reply,
        )

    wait_until(lambda: waiting(parent) == [1, 2], "it waits for two calls")
    count = 0

    def act() -> None:
        nonlocal count
        count += 1
        name = f"called-{call}-{count}"
        info = insist(
            daemon,
            lambda id, key: m.Branch(id=id, key=key, session=parent, branch=name, at_call=True),
            m.SessionInfo,
        )
        assert waiting(name) == waiting(parent) == [1, 2]
        answer(name, 1, count)
        answer(name, 2, 2 * count)
        reply = insist(daemon, lambda id, key: m.Attach(id=id, session=name, key=info.key), m.ExecReply)
        assert (reply.text, reply.stdout, reply.state) == (str(3 * count), b"begun\n", "kept")
        insist(daemon, lambda id, key: m.Shutdown(id=id, key=key, session=name), m.Reply)

    assert at_every_call(daemon, [call], act) > 0
    with Client(str(daemon.socket)) as client:
        client.shutdown(parent)


def kill_soon(daemon: Daemon, after: float) -> threading.Thread:
    pid = router_of(daemon)

    def kill() -> None:
        time.sleep(after)
        os.kill(pid, signal.SIGKILL)

    thread = threading.Thread(target=kill)
    thread.start()
    return thread


@pytest.mark.parametrize("size", [1000, 10 << 20])
def test_output(daemon: Daemon, size: int) -> None:
    """Each byte once and in order, as far as it is kept."""
    session = f"output-{size}"
    run(daemon, "import time", session, profile="plain")
    code = (
        f"for i in range({size} // 1000):\n"
        "    print(f'{i:08}' + '.' * 991)\n"
        f"    time.sleep({0.5 if size == 1000 else 0.00005})\n"
    )
    expected = b"".join(b"%08d%s\n" % (i, b"." * 991) for i in range(size // 1000))
    for after in (0.05, 0.2, 0.4):
        thread = kill_soon(daemon, after)
        reply = run(daemon, code, session)
        thread.join()
        head, _, tail = reply.stdout.partition(b"\n[... ")
        assert expected.startswith(head)
        if tail:
            assert expected.endswith(tail.partition(b" bytes left out ...]\n")[2])
        assert len(head) + reply.stdout_dropped + len(tail.partition(b"...]\n")[2]) == len(expected)
    with Client(str(daemon.socket)) as client:
        client.shutdown(session)


def test_a_long_computation(daemon: Daemon) -> None:
    """It goes on, and its time with it."""
    run(daemon, "import time", "long")
    thread = kill_soon(daemon, 0.3)
    reply = run(daemon, "t = time.monotonic()\nwhile time.monotonic() < t + 1: pass\n'done'", "long")
    thread.join()
    assert reply.text == "'done'" and 1000 <= reply.duration_ms < 5000
    thread = kill_soon(daemon, 0.2)
    reply = run(daemon, "time.sleep(60)", "long", timeout=1.0)
    thread.join()
    assert (reply.returncode, reply.cause, reply.state) == (124, "timeout", "kept")
    with Client(str(daemon.socket)) as client:
        client.shutdown("long")


def test_it_asks(daemon: Daemon) -> None:
    """What it asks is asked again, of whoever comes."""
    key = uuid.uuid4().hex
    code = "input('name? '), input('age? ')"
    with Client(str(daemon.socket), timeout=20) as client:
        exec = m.Exec(id=client.new_id(), key=key, session="asks", code=code, input=True)
        client.send(exec)
        event = client.receive(exec.id, m.ExecReply)
        assert isinstance(event, m.AskEvent) and event.prompt == "name? "
    os.kill(router_of(daemon), signal.SIGKILL)
    with Client(str(daemon.socket), timeout=20) as client:
        exec = m.Exec(id=client.new_id(), key=key, session="asks", code=code, input=True)
        client.send(exec)
        event = client.receive(exec.id, m.ExecReply)
        assert isinstance(event, m.AskEvent) and (event.prompt, event.number) == ("name? ", 1)
        client.input(exec.id, "Ada\n")
        event = client.receive(exec.id, m.ExecReply)
        assert isinstance(event, m.AskEvent) and (event.prompt, event.number) == ("age? ", 2)
        client.input(exec.id, "36\n")
        assert client.finish(exec.id, m.ExecReply).text == "('Ada', '36')"
        client.shutdown("asks")


@pytest.mark.parametrize("call", ["sendmsg", "recvfrom", "write"])
def test_a_call_that_is_answered(daemon: Daemon, call: str) -> None:
    """Who answers with a key is told so when the cell has the answer, and not before."""
    session, count = f"call-{call}", 0
    asking = [{"name": "pay", "ask": True}]
    run(daemon, "n = 0", session)

    def waiting() -> list[Any]:
        return list(insist(daemon, lambda id, key: m.Calls(id=id, session=session), m.CallsReply).calls)

    def act() -> None:
        nonlocal count
        count += 1
        exec = insist(
            daemon,
            lambda id, key: m.Exec(
                id=id, key=key, session=session, code="n += tools.pay()\nn", functions=asking, detach=True
            ),
            m.DetachedReply,
        )
        wait_until(lambda: waiting() != [], "it asks")
        insist(daemon, lambda id, key: m.AnswerCall(id=id, key=key, session=session, number=1, value=1), m.Reply)
        reply = insist(daemon, lambda id, key: m.Attach(id=id, session=session, key=exec.key), m.ExecReply)
        assert reply.text == str(count)
        assert waiting() == []

    deaths = at_every_call(daemon, [call], act)
    assert deaths > 0
    with Client(str(daemon.socket)) as client:
        client.shutdown(session)


def test_what_waits(daemon: Daemon) -> None:
    """Cells in a queue run, in their order."""
    keys = [uuid.uuid4().hex for _ in range(10)]
    codes = ["import time\nseen = []\ntime.sleep(1)"] + [f"seen.append({i})\nlist(seen)" for i in range(9)]

    def send_all(client: Client) -> list[int]:
        return [
            client.send(m.Exec(id=client.new_id(), key=key, session="queue", code=code))
            for key, code in zip(keys, codes)
        ]

    with Client(str(daemon.socket)) as client:
        send_all(client)
        wait_until(lambda: client.info("queue").queued == 9, "they wait")
    os.kill(router_of(daemon), signal.SIGKILL)
    with Client(str(daemon.socket)) as client:
        replies = [client.finish(cell, m.ExecReply) for cell in send_all(client)]
        assert [reply.text for reply in replies[1:]] == [str(list(range(i + 1))) for i in range(9)]
        client.shutdown("queue")


def test_what_a_session_knows_of_itself(daemon: Daemon) -> None:
    """Names of checkpoints, its journal, what a running cell has shown, how a cell is to be run."""
    run(daemon, "x = 1", "itself")
    run(daemon, "x = 2", "itself")
    insist(daemon, lambda id, key: m.Checkpoint(id=id, key=key, session="itself", name="here"), m.StateReply)
    shown = "import time, os\ndisplay('first')\ntime.sleep(1)\ndisplay('second')\nos.environ['WHO']"
    thread = kill_soon(daemon, 0.4)
    reply = run(daemon, shown, "itself", env=["WHO=me"])
    thread.join()
    assert reply.text == "'me'" and len(reply.displays) == 2, reply
    with Client(str(daemon.socket)) as client:
        assert [record.name for record in client.checkpoints("itself") if record.name] == ["here"]
        history = client.call(m.History(id=client.new_id(), session="itself"), m.HistoryReply)
        assert [record["code"] for record in history.cells] == ["x = 1", "x = 2", shown]
        assert client.call(m.Restore(id=client.new_id(), session="itself", name="here"), m.StateReply).cell == 2
        assert client.exec("x", "itself").text == "2"
        client.shutdown("itself")


def test_many_sessions(daemon: Daemon) -> None:
    """Random instants, everybody at work, and every answer as it must be."""
    stop = threading.Event()
    failures: list[str] = []
    done = 0

    def work(name: str) -> None:
        nonlocal done
        n = 0
        try:
            while not stop.is_set():
                n += 1
                reply = run(daemon, "n += 1\nprint(n)\nn", name)
                if (reply.text, reply.stdout) != (str(n), b"%d\n" % n):
                    failures.append(f"{name}: {n}: {reply}")
                    return
                done += 1
        except (LairError, AssertionError) as error:
            failures.append(f"{name}: {n}: {error}")

    for i in range(6):
        run(daemon, "n = 0", f"many-{i}")
    threads = [threading.Thread(target=work, args=(f"many-{i}",)) for i in range(6)]
    for thread in threads:
        thread.start()
    for i in range(50):
        time.sleep(0.02 + (i * 37 % 100) / 500)
        os.kill(router_of(daemon), signal.SIGKILL)
    stop.set()
    for thread in threads:
        thread.join()
    assert failures == [] and done > 50
    with Client(str(daemon.socket)) as client:
        for i in range(6):
            client.shutdown(f"many-{i}")

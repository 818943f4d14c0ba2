"""Each limit, and a refusal that names it."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest

from daemon import Daemon, own_uids, uids, wait_until
from lair import Client, LairError
from lair import messages as m

SETTINGS = {
    "daemon": {"sessions": "6", "sessions_per_uid": "4", "frame_size": "16M"},
    "profile default": {
        "preload": "",
        "spares": "0",
        "queue": "3",
        "code_size": "10K",
        "output_size": "64K",
        "text_size": "4K",
        "cell_timeout_max": "30s",
        "cell_timeout": "20s",
    },
    "profile checkpoints": {"preload": "", "spares": "0", "queue": "3", "checkpoint": "manual"},
    "profile small": {"preload": "", "spares": "0", "memory": "200M", "processes": "8", "file_size": "1M"},
}


# What libraries of today start on many processors; the bound of sessions.conf for everything.
AS_MANY_AS_LIBRARIES_START = """
import threading, time
from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor(100) as pool:
    together = threading.Barrier(100, timeout=15)
    list(pool.map(lambda _: together.wait(), range(100)))
"""
START_WITHOUT_END = """
import threading
threading.stack_size(1 << 16)
over, started = threading.Event(), 0
try:
    while started < 3000:
        threading.Thread(target=over.wait).start()
        started += 1
except RuntimeError:
    pass
over.set()
started
"""


def test_how_many_processes_the_default_is(client: Client, session: str) -> None:
    reply = client.exec(AS_MANY_AS_LIBRARIES_START, session)
    assert reply.returncode == 0, reply
    assert 900 < int(client.exec(START_WITHOUT_END, session).text or 0) < 1024


def limit(name: str, value: str, code: str = "limit") -> AbstractContextManager[pytest.ExceptionInfo[LairError]]:
    """The refusal says what limit it was and how much it is."""
    return pytest.raises(LairError, match=f"^{code}: .*{name} = {value}")


def test_sessions_of_one_user(client: Client) -> None:
    for i in range(4):
        client.open(f"s{i}")
    with limit("sessions_per_uid", "4"):
        client.open("one-more")
    with limit("sessions_per_uid", "4"):
        client.exec("1")
    assert client.open("s0").opened is False
    client.shutdown("s0")
    client.open("one-more")
    for info in client.list():
        client.shutdown(info.session)


def test_branches_asked_for_at_once_are_as_many_as_there_is_room_for(
    start_daemon: Callable[..., Daemon],
) -> None:
    settings = {"daemon": {"sessions_per_uid": "3"}, "profile default": {"checkpoint": "manual", "preload": ""}}
    client = start_daemon(settings).client()
    client.exec("x = 1", "s")
    asked = [client.send(m.Branch(id=client.new_id(), session="s", branch=f"b{i}")) for i in range(6)]
    for request in asked[:2]:
        assert client.finish(request, m.SessionInfo).opened
    for request in asked[2:]:
        with limit("sessions_per_uid", "3"):
            client.finish(request, m.SessionInfo)
    assert len(client.list()) == 3


def test_sessions_in_all(start_daemon: Callable[..., Daemon]) -> None:
    client = start_daemon({"daemon": {"sessions": "2"}}).client()
    client.open("a")
    client.open("b")
    with limit("sessions", "2"):
        client.open("c")


def of_somebody(daemon: Daemon, uid: int, n: int) -> list[str]:
    """What comes of the sessions s0 to s(n-1) that this user opens."""
    act = f"import json; r = []\nfor i in range({n}):\n    try: c.open(f's{{i}}'); r.append('opened')\n"
    act += "    except lair.LairError as e: r.append(str(e))\nprint(json.dumps(r))"
    answers: list[str] = json.loads(daemon.as_user(uid, act))
    return answers


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_nobody_takes_all_sessions(start_daemon: Callable[..., Daemon]) -> None:
    """But for laird's own user: the shipped settings leave every other one a quarter."""
    daemon = start_daemon({"daemon": {"sessions": "8"}})
    daemon.share()
    theirs = of_somebody(daemon, 54321, 3)
    assert theirs[:2] == ["opened"] * 2
    assert re.match(
        "limit: you have 2 sessions already, .*sessions_per_uid = off, a quarter of sessions = 8", theirs[2]
    )
    assert of_somebody(daemon, 54322, 2) == ["opened"] * 2
    client = daemon.client()
    for i in range(4):
        client.open(f"own{i}")
    with limit("sessions", "8"):
        client.open("one-more")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_a_branch_counts_for_its_owner(start_daemon: Callable[..., Daemon]) -> None:
    daemon = start_daemon({"daemon": {"sessions": "8"}, "profile default": {"checkpoint": "manual"}})
    daemon.share()
    act = "c.open('a'); c.branch('a', 'b')\ntry: c.branch('a', 'c')\nexcept lair.LairError as e: print(e.code)\n"
    act += "try: c.exec('1')\nexcept lair.LairError as e: print(e.code)"
    assert daemon.as_user(54321, act).split() == ["limit", "limit"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives sessions users of their own")
def test_host_users(start_daemon: Callable[..., Daemon]) -> None:
    first = own_uids()
    settings = {
        "daemon": {"uids": uids(first, 2)},
        "profile default": {"spares": "0", "preload": ""},
    }
    client = start_daemon(settings).client()
    owners = [os.stat(client.open(name).workspace).st_uid for name in "ab"]
    assert sorted(owners) == [first, first + 1]
    with limit("uids", uids(first, 2)):
        client.open("c")
    client.shutdown("a")
    wait_until(lambda: opens(client, "c"), "its user is free")


def opens(client: Client, session: str) -> bool:
    try:
        return client.open(session).opened is True
    except LairError as error:
        assert error.code == "limit"
        return False


def test_queue(client: Client, session: str) -> None:
    client.open(session)
    cells = [client.start("import time; time.sleep(1)", session)]
    wait_until(lambda: client.info(session).state == "busy", "it runs")
    cells += [client.start("1", session) for _ in range(3)]
    with limit("queue", "3"):
        client.exec("1", session)
    assert [client.finish(cell, m.ExecReply).returncode for cell in cells] == [0] * 4


def test_queue_of_operations(client: Client, session: str) -> None:
    client.exec("x = 1", session, profile="checkpoints")
    client.checkpoint(session, "a")
    router = client.stats().pid
    os.kill(router, signal.SIGSTOP)
    asked = [client.send(m.Restore(id=client.new_id(), session=session, name="a")) for _ in range(20)]
    os.kill(router, signal.SIGCONT)
    refused = 0
    for request in asked:
        try:
            client.finish(request, m.StateReply)
        except LairError as error:
            assert "queue = 3" in error.message
            refused += 1
    assert 0 < refused <= 16
    assert client.exec("x", session).text == "1"


def test_a_one_shot_that_is_cancelled_before_it_runs_counts_no_more(client: Client) -> None:
    for _ in range(6):
        running = client.start("import time; time.sleep(60)")
        client.call(m.Interrupt(id=client.new_id(), exec=running), m.InterruptReply)
        reply = client.finish(running, m.ExecReply)
        assert (reply.returncode, reply.state, reply.cause) == (130, "ended", "interrupt")
    wait_until(lambda: client.stats().sessions == 0, "they have ended")


def test_code(client: Client, session: str) -> None:
    assert client.exec("#" * 10240, session).returncode == 0
    with limit("code_size", "10240", "too_large"):
        client.exec("#" * 10241, session)


def test_code_too_large_makes_no_session(client: Client) -> None:
    with limit("code_size", "10240", "too_large"):
        client.exec("#" * 10241, "never-made")
    assert client.list() == []


def test_timeout(client: Client, session: str) -> None:
    assert client.exec("1", session, timeout=30).text == "1"
    with limit("cell_timeout_max", "30 s"):
        client.exec("1", session, timeout=30.001)


def test_output_keeps_head_and_tail(client: Client, session: str) -> None:
    reply = client.exec("for i in range(100_000): print(i)", session)
    whole = b"".join(b"%d\n" % i for i in range(100_000))
    assert reply.stdout_dropped > 0
    assert len(reply.stdout) <= 64 << 10 or len(reply.stdout) < (64 << 10) + 200
    head, tail = reply.stdout[:1000], reply.stdout[-1000:]
    assert whole.startswith(head)
    assert whole.endswith(tail)
    assert str(reply.stdout_dropped).encode() in reply.stdout
    kept = len(whole) - reply.stdout_dropped
    assert (64 << 10) - 200 <= kept <= 64 << 10


@pytest.mark.shipped
def test_output_is_counted_not_kept(daemon: Daemon, client: Client, session: str) -> None:
    reply = client.exec("for _ in range(200): print('x' * (1 << 20))", session)
    assert reply.stdout_dropped + (64 << 10) >= 200 * ((1 << 20) + 1) - 200
    with open(f"/proc/{client.hello().pid}/status") as status:
        peak = next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
    assert peak < 100 << 10


def test_stderr_has_a_limit_of_its_own(client: Client, session: str) -> None:
    reply = client.exec("import sys; print('x' * 100_000, file=sys.stderr); print('out')", session)
    assert reply.stderr_dropped > 0
    assert (reply.stdout, reply.stdout_dropped) == (b"out\n", 0)


def test_exactly_the_limit_is_whole(client: Client, session: str) -> None:
    reply = client.exec(f"print('x' * {(64 << 10) - 1})", session)
    assert (reply.stdout_dropped, len(reply.stdout)) == (0, 64 << 10)


def test_text_is_cut_with_a_note(client: Client, session: str) -> None:
    reply = client.exec("'x' * 100_000", session)
    assert reply.text is not None
    assert reply.text.startswith("'xxxx")
    assert len(reply.text) < (4 << 10) + 200
    assert client.exec("1", session).text == "1"


def test_a_deep_or_wide_value_is_cut_too(client: Client, session: str) -> None:
    reply = client.exec("list(range(1_000_000))", session)
    assert reply.text is not None and len(reply.text) < (4 << 10) + 200


def test_memory(client: Client) -> None:
    reply = client.exec("x = b'x' * (400 << 20)", profile="small")
    assert reply.returncode in (1, 137)
    if reply.returncode == 1:
        assert reply.error["name"] == "MemoryError"
    else:
        assert reply.cause == "oom"


def test_processes(client: Client) -> None:
    code = (
        "import os, time\n"
        "n = 0\n"
        "try:\n"
        "    while n < 50:\n"
        "        if os.fork() == 0:\n"
        "            time.sleep(60)\n"
        "            os._exit(0)\n"
        "        n += 1\n"
        "except OSError as error:\n"
        "    print(error.errno)\n"
        "n"
    )
    reply = client.exec(code, profile="small")
    assert reply.stdout == b"11\n"
    assert int(reply.text or "99") < 8


def test_file_size(client: Client) -> None:
    reply = client.exec("open('f', 'wb').write(b'x' * (2 << 20))", profile="small")
    assert reply.returncode == 1
    assert reply.error["name"] == "OSError"


def test_a_frame_over_the_limit(daemon: Daemon) -> None:
    """ZeroMQ drops it, and the connection it came on; nobody else notices."""
    other = daemon.client()
    big = daemon.client()
    cell = big.start("#" * (17 << 20), "big")
    with pytest.raises(TimeoutError):
        big.finish(cell, m.ExecReply, timeout=1)
    assert other.list() == []
    assert other.hello().frame_max == 16 << 20


def test_many_arguments_are_not_believed(daemon: Daemon, client: Client) -> None:
    client._socket.send(bytes.fromhex("93 01 a4") + b"exec" + bytes.fromhex("df ff ff ff ff"))
    assert client.hello().version == 1

"""Whatever a cell does to its interpreter, the next one finds the state from before it."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import internal
import links
from daemon import Daemon, children, wait_until
from lair import Client, LairError, codec
from lair.codec import Message

pytestmark = pytest.mark.usefixtures("no_sessions_left")

SETTINGS = {
    "profile default": {"grace": "100ms", "level": "", "checkpoint": "cell"},
    "profile four": {"spares": "0", "checkpoints": "4", "level": "", "checkpoint": "cell"},
    "profile manual": {"spares": "0", "checkpoint": "manual", "level": "", "grace": "100ms"},
    "profile few": {"spares": "0", "checkpoint": "manual", "checkpoints": "2", "level": ""},
    "profile off": {"spares": "0", "checkpoint": "off", "level": "", "grace": "100ms"},
}

STACK = """import threading
threading.stack_size(64 << 10)
def f(_): list(map(f, [0]))
thread = threading.Thread(target=f, args=(0,))
thread.start()
thread.join()
"""

# How a cell may end its interpreter: what it runs, the cause that is told, the returncode.
DEATHS = {
    "python loop": ("while True:\n    pass", "timeout", 124),
    "swallowed interrupt": (
        "import time\nwhile True:\n    try:\n        time.sleep(60)\n    except BaseException: pass",
        "timeout",
        124,
    ),
    "blocked interrupt": (
        "import signal, time\nsignal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])\ntime.sleep(60)",
        "timeout",
        124,
    ),
    "ignored interrupt": ("import signal, time\nsignal.signal(2, signal.SIG_IGN)\ntime.sleep(60)", "timeout", 124),
    "deaf C": ("import collections, itertools\ncollections.deque(itertools.repeat(1), maxlen=0)", "timeout", 124),
    "blocking call": (
        "import ctypes, signal\nsignal.signal(2, lambda *_: None)\nlibc = ctypes.CDLL(None)\n"
        "while True: libc.pause()",
        "timeout",
        124,
    ),
    "segfault": ("import ctypes\nctypes.string_at(0)", "signal 11", 139),
    "abort": ("import os\nos.abort()", "signal 6", 134),
    "exit": ("import os\nos._exit(3)", "exit", 3),
    "kill": ("import os\nos.kill(os.getpid(), 9)", "signal 9", 137),
    "descriptors": ("import os\nos.closerange(0, 65536)", "signal 9", 137),
    # Not the main one: it has a limit of its own since Python 3.12.
    "stack": (STACK, "signal 11", 139),
}

# A thread that no signal reaches: glibc itself would not block all of them.
DEAF = """
import ctypes, threading
_deaf, stop = threading.Event(), threading.Event()
def wait():
    libc = ctypes.CDLL(None)
    libc.prctl(15, b'deaf')
    libc.syscall(14, 2, ctypes.byref(ctypes.c_uint64(2**64 - 1)), None, 8)  # rt_sigprocmask
    _deaf.set()
    stop.wait()
    libc.syscall(14, 2, ctypes.byref(ctypes.c_uint64(0)), None, 8)
thread = threading.Thread(target=wait, daemon=True)
thread.start()
_deaf.wait()
"""


@pytest.mark.parametrize("death", DEATHS)
def test_rolled_back(client: Client, session: str, death: str) -> None:
    code, cause, returncode = DEATHS[death]
    client.exec("x = {'kept': [1, 2]}\ndef f(): return 'still here'", session)
    reply = client.exec("x['kept'].append(3)\nprint('said before')\n" + code, session, timeout=0.3)
    if death == "python loop":
        # It ends when it is interrupted, so nothing has to be undone.
        assert (reply.state, reply.cause, reply.returncode) == ("kept", "timeout", 124)
        return
    assert (reply.state, reply.cause, reply.returncode) == ("rolled_back", cause, returncode)
    assert reply.stdout == b"said before\n"
    assert reply.restored == 1
    assert client.exec("x, f()", session).text == "({'kept': [1, 2]}, 'still here')"


@pytest.mark.parametrize("forged", [internal.Frozen(serial=1, pid=1), internal.Done(cell=1, returncode=0)])
def test_forgery(client: Client, session: str, forged: Message) -> None:
    """It speaks on the channel for its interpreter, out of turn."""
    client.exec("x = 1", session)
    data = links.datagram(codec.encode(forged), 3)
    reply = client.exec(
        "import os, stat, time\n"
        "x = 2\n"
        "for fd in range(3, 1024):\n"
        "    if os.path.exists(f'/proc/self/fd/{fd}') and stat.S_ISSOCK(os.fstat(fd).st_mode):\n"
        f"        os.write(fd, {data!r})\n"
        "time.sleep(30)",
        session,
    )
    assert (reply.state, reply.cause, reply.restored) == ("rolled_back", "violation", 1)
    assert client.exec("x", session).text == "1"


def test_the_first_cell_of_all(client: Client, session: str) -> None:
    reply = client.exec("import os; os._exit(1)", session)
    assert (reply.state, reply.restored) == ("rolled_back", 0)
    assert client.exec("'x' in globals()", session).text == "False"


def test_dies_between_cells(client: Client, session: str) -> None:
    client.exec("x = 1", session)
    code = "import os, time\nx = 2\nif os.fork() == 0:\n    time.sleep(0.05)\n    os.kill(os.getppid(), 9)"
    client.exec(code, session)
    threading.Event().wait(0.2)
    reply = client.exec("x", session)
    assert (reply.text, reply.state, reply.cause) == ("2", "rolled_back", "signal 9")


def test_off_means_off(client: Client, session: str) -> None:
    client.exec("x = 1", session, profile="off")
    assert client.checkpoints(session) == []
    for refused in (
        lambda: client.checkpoint(session, "now"),
        lambda: client.undo(session),
        lambda: client.branch(session, session + ".b"),
    ):
        with pytest.raises(
            LairError, match="unsupported: .* keeps no checkpoints: its profile has checkpoint = off"
        ):
            refused()
    reply = client.exec("import os; os._exit(1)", session)
    assert (reply.state, reply.cause) == ("reset", "exit")
    assert "NameError" in client.exec("x", session).stderr.decode()


def test_manual(client: Client, session: str) -> None:
    client.exec("x = 1", session, profile="manual")
    assert client.checkpoint(session, "one").cell == 1
    client.exec("x = 2", session)
    reply = client.exec("import os; os._exit(1)", session)
    assert (reply.state, reply.restored) == ("rolled_back", 1)
    assert client.exec("x", session).text == "1"


def test_undo(client: Client, session: str) -> None:
    for i in range(1, 6):
        client.exec(f"x = {i}", session)
    assert client.undo(session).cell == 4
    assert client.exec("x", session).text == "4"
    assert client.undo(session, 2).cell == 3
    assert client.exec("x", session).text == "3"
    assert client.undo(session, 4).cell == 0
    assert client.exec("'x' in globals()", session).text == "False"


def test_undo_too_far(client: Client, session: str) -> None:
    client.exec("x = 1", session)
    with pytest.raises(LairError, match="gone: .* does not remember the state 2 back") as refusal:
        client.undo(session, 2)
    assert refusal.value.code == "gone"
    assert client.exec("x", session).text == "1"


def test_only_so_many(client: Client, session: str) -> None:
    for i in range(1, 8):
        client.exec(f"x = {i}", session, profile="four" if i == 1 else None)
    reply = client.exec("x", session)
    wait_until(lambda: [c.cell for c in client.checkpoints(session)] == [5, 6, 7, 8], "the last four are kept")
    assert reply.forgotten == 1
    with pytest.raises(LairError, match="does not remember"):
        client.undo(session, 4)
    assert client.undo(session, 3).cell == 5


def test_named(client: Client, session: str) -> None:
    client.exec("x = 1", session, profile="four")
    assert client.checkpoint(session, "good").name == "good"
    for i in range(10):
        client.exec(f"x = {i}", session)
    assert client.restore(session, "good").cell == 1
    assert client.exec("x", session).text == "1"
    client.exec("x = 'elsewhere'", session)
    assert client.restore(session, "good").cell == 1, "a restored checkpoint can be restored again"
    assert client.exec("x", session).text == "1"
    client.drop(session, "good")
    with pytest.raises(LairError, match='has no checkpoint "good"'):
        client.restore(session, "good")
    assert client.exec("x", session).text == "1"


def test_redo_by_number(client: Client, session: str) -> None:
    for i in range(1, 4):
        client.exec(f"x = {i}", session)
    client.undo(session, 2)
    assert client.restore(session, "3").cell == 3
    assert client.exec("x", session).text == "3"


def test_the_tree(client: Client, session: str) -> None:
    def tree() -> list[tuple[int, int, bool, bool]]:
        return [(one.cell, one.parent, one.gap, one.base) for one in client.checkpoints(session)]

    for i in range(1, 4):
        client.exec(f"x = {i}", session)
    client.checkpoint(session)
    assert tree() == [(1, 0, False, False), (2, 1, False, False), (3, 2, False, True)]
    client.restore(session, "1")
    assert [one[3] for one in tree()] == [True, False, False]
    client.exec("x = 4", session)
    client.checkpoint(session)
    assert tree()[2:] == [(3, 2, False, False), (4, 1, False, True)]
    client.drop(session, "2")
    assert tree() == [(1, 0, False, False), (3, 1, True, False), (4, 1, False, True)]
    client.undo(session, 2)
    assert not any(one[3] for one in tree())


def test_names(client: Client, session: str) -> None:
    client.exec("x = 1", session)
    client.checkpoint(session, "a")
    client.exec("x = 2", session)
    with pytest.raises(LairError, match='has a checkpoint "a" already'):
        client.checkpoint(session, "a")
    for name in ("", "with space", "x" * 65, "ä"):
        with pytest.raises(LairError, match="bad_request"):
            client.checkpoint(session, name)


def test_the_same_name_again(client: Client, session: str) -> None:
    client.exec("x = 1", session, profile="manual")
    assert client.checkpoint(session, "a").cell == client.checkpoint(session, "a").cell == 1
    assert len(client.checkpoints(session)) == 1, "the state has it already"
    client.exec("x = 2", session)
    with pytest.raises(LairError, match='has a checkpoint "a" already'):
        client.checkpoint(session, "a")


def test_a_named_one_takes_nobody_s_place(client: Client, session: str) -> None:
    client.exec("x = 1", session, profile="few")
    client.checkpoint(session)
    client.exec("x = 2", session)
    client.checkpoint(session)
    client.exec("x = 3", session)
    client.checkpoint(session, "third")
    assert [(c.name, c.cell) for c in client.checkpoints(session)] == [(None, 1), (None, 2), ("third", 3)]


def test_undo_does_not_pass_over_a_dropped_one(client: Client, session: str) -> None:
    for i in (1, 2):
        client.exec(f"x = {i}", session, profile="manual" if i == 1 else None)
        client.checkpoint(session)
    client.exec("x = 3", session)
    client.drop(session, "2")
    with pytest.raises(LairError, match="does not remember the state 1 back"):
        client.undo(session)
    client.restore(session, "1")
    assert client.exec("x", session).text == "1"


def test_busy(client: Client, session: str) -> None:
    client.exec("x = 1", session)
    cell = client.start("import time; time.sleep(30)", session)
    with pytest.raises(LairError, match="busy"):
        client.undo(session)
    client.cancel(cell)


def test_reset_keeps_checkpoints(client: Client, session: str) -> None:
    client.exec("x = 1", session)
    client.reset(session)
    assert client.exec("'x' in globals()", session).text == "False"
    assert client.restore(session, "1").cell == 1
    assert client.exec("x", session).text == "1"


def test_what_a_loop_watches_it_watches_in_a_copy(client: Client, session: str) -> None:
    client.exec("import asyncio, os, signal\nr, w = os.pipe()\nseen = []", session)
    client.exec(
        "loop = asyncio.get_running_loop()\n"
        "loop.add_reader(r, lambda: seen.append(os.read(r, 9)))\n"
        "loop.add_signal_handler(signal.SIGUSR1, seen.append, 'signal')\n"
        "await asyncio.sleep(0)",
        session,
    )
    client.exec("w = None", session)
    client.undo(session)
    watch = "os.write(w, b'x'); os.kill(os.getpid(), signal.SIGUSR1)\nwhile len(seen) < 2: await asyncio.sleep(0)"
    assert client.exec(watch, session, timeout=20).cause is None
    assert client.exec("sorted(map(str, seen))", session).text == """["b'x'", 'signal']"""


def test_unfaithful_threads(client: Client, session: str) -> None:
    client.exec("x = 1", session)
    why = "thread deaf blocks all signals, so it cannot be copied"
    for code in (DEAF, "1", "2"):
        assert client.exec(code, session).unfaithful == f"a crash now would go back to cell 1: {why}"
    with pytest.raises(LairError, match=f"unsupported: .* {why}"):
        client.checkpoint(session, "now")
    reply = client.exec("import os; os._exit(1)", session)
    assert (reply.state, reply.restored) == ("rolled_back", 1)
    assert client.exec("x, 'stop' in globals()", session).text == "(1, False)"


FORKS_FAIL = (
    "import os, resource\n"
    "limits = resource.getrlimit(resource.RLIMIT_NPROC)\n"
    "resource.setrlimit(resource.RLIMIT_NPROC, (0, limits[1]))"
)


def test_a_copy_that_cannot_be_made(start_daemon: Callable[..., Daemon], session: str) -> None:
    """It fails after the answer, so the next answers tell, until one can be made."""
    daemon = start_daemon(SETTINGS)
    client = daemon.client()
    client.exec("x = 1", session)
    assert client.exec(FORKS_FAIL, session).unfaithful is None
    told = "a crash now would go back to cell 1: the last state could not be kept: Resource temporarily unavailable"
    for i in (3, 4):
        assert client.exec("x += 1", session).unfaithful == told, i
    assert (
        daemon.log().count(f"[{session}] the state after cell 2 cannot be kept: Resource temporarily unavailable")
        == 1
    )
    router = client.stats().pid
    daemon.process.send_signal(signal.SIGUSR2)
    wait_until(lambda: router not in children(daemon.process.pid), "another router")
    assert client.exec("x += 1", session).unfaithful == told
    assert client.exec("resource.setrlimit(resource.RLIMIT_NPROC, limits)", session).unfaithful == told
    assert client.exec("x", session).unfaithful is None
    reply = client.exec("os._exit(1)", session)
    assert (reply.state, reply.restored) == ("rolled_back", 7)
    assert client.exec("x", session).text == "4"


def test_after_a_copy_that_could_not_be_made(client: Client, session: str) -> None:
    """Going back leaves a state that is kept."""
    client.exec("x = 1", session)
    client.exec(FORKS_FAIL, session)
    assert client.exec("x = 2", session).unfaithful
    reply = client.exec("os._exit(1)", session)
    assert (reply.state, reply.restored) == ("rolled_back", 1)
    assert client.exec("x", session).unfaithful is None


def test_joined_threads_are_no_threads(client: Client, session: str) -> None:
    """The kernel may be a moment behind."""
    client.exec("import threading", session)
    join = "ts = [threading.Thread(target=int) for _ in range(8)]\n[t.start() for t in ts]\n[t.join() for t in ts] and None"
    told = [client.exec(join, session).unfaithful for _ in range(100)]
    assert told == [None] * 100


def test_idle_threads_of_asyncio_are_no_threads(client: Client, session: str) -> None:
    """They have a moment to end, which may be short where many wait for a processor."""
    client.exec("import asyncio, time", session)
    code = "await asyncio.gather(*[asyncio.to_thread(time.sleep, 0.01) for _ in range(4)]); None"
    wait_until(lambda: not client.exec(code, session).unfaithful, "none is left at the end of a cell")
    assert client.exec("await asyncio.to_thread(int, '5')", session).text == "5"
    client.undo(session)
    assert client.exec("await asyncio.to_thread(int, '6')", session).text == "6"


def test_faithful_again(client: Client, session: str) -> None:
    reply = client.exec(DEAF, session)
    assert reply.unfaithful and reply.unfaithful.startswith("a crash now would go back to the beginning: ")
    assert client.exec("stop.set(); thread.join(); x = 2", session).unfaithful is None
    reply = client.exec("import os; os._exit(1)", session)
    assert (reply.state, reply.restored) == ("rolled_back", 2)


def test_a_thread_of_asyncio_at_work_is_a_thread(client: Client, session: str) -> None:
    client.exec("import asyncio, threading\nstop = threading.Event()", session)
    begin = "stopped = asyncio.get_running_loop().run_in_executor(None, stop.wait)\nawait asyncio.sleep(0)"
    reply = client.exec(begin, session)
    assert reply.unfaithful is None
    assert client.exec("stop.set()\nawait stopped", session).text == "True"
    client.undo(session)
    assert client.exec("stop.is_set(), stopped.done()", session).text == "(False, False)"
    assert client.exec("stop.set()\nawait stopped", session).text == "True"


def test_threads_of_asyncio_at_work_do_not_hold_an_interrupt_up(client: Client, session: str) -> None:
    client.exec("import asyncio, threading\nstop = threading.Event()", session)
    code = "await asyncio.gather(*[asyncio.to_thread(stop.wait) for _ in range(5)])"
    reply = client.exec(code, session, timeout=0.3)
    assert (reply.cause, reply.state) == ("timeout", "kept")


def test_an_executor_of_a_cell_s_own_is_left_alone(client: Client, session: str) -> None:
    client.exec("import asyncio, concurrent.futures\nmine = concurrent.futures.ThreadPoolExecutor(1)", session)
    client.exec("asyncio.get_running_loop().set_default_executor(mine)\nawait asyncio.to_thread(int)", session)
    assert client.exec("mine.submit(int, '7').result()", session).text == "7"


def test_children_of_an_undone_cell_are_gone(client: Client, session: str) -> None:
    client.exec("import os, time", session)
    client.exec("pid = os.fork()\nif pid == 0:\n    os.setsid()\n    time.sleep(60)", session)
    assert client.exec("os.kill(pid, 0)", session).returncode == 0
    client.checkpoint(session, "with-child")
    child = int(client.exec("pid", session).text or 0)
    client.undo(session, 3)
    reply = client.exec(f"os.kill({child}, 0)", session)
    assert reply.error and reply.error["name"] == "ProcessLookupError"


def test_a_frozen_one_killed_by_force(client: Client, session: str) -> None:
    """Deliberate self-harm: it hurts that session alone, and is told."""
    client.exec("x = 1", session)
    client.exec("x = 2", session)
    client.exec(
        "import os\nfor pid in range(2, 200):\n    try:\n        if pid != os.getpid(): os.kill(pid, 9)\n    except OSError: pass",
        session,
    )
    reply = client.exec("x", session)
    assert reply.text == "2"


def test_info_counts_them(client: Client, session: str) -> None:
    client.exec("x = bytearray(8 << 20)", session)
    client.exec("x[:] = b'1' * len(x)", session)
    client.exec("x[:] = b'2' * len(x)", session)
    client.exec("pass", session)
    wait_until(lambda: client.info(session).checkpoints == 4, "all four are kept")
    wait_until(lambda: client.info(session).checkpoint_memory >= 8 << 20, "they are measured")


def test_memory_is_counted_once(client: Client, session: str) -> None:
    client.exec("x = bytearray(b'1') * (32 << 20)", session)
    for i in range(6):
        client.exec(f"y = {i}", session)
    wait_until(lambda: client.info(session).checkpoints == 7, "there are seven")
    # A copy counts as one only when it has got to give itself its name.
    wait_until(lambda: 32 << 20 <= client.info(session).memory < 64 << 20, "what they share is counted once")


def test_memory_cap(start_daemon: Callable[..., Daemon]) -> None:
    it = start_daemon(
        {"profile default": {"checkpoint": "cell", "checkpoint_memory": "40M", "checkpoints": "100", "level": ""}}
    )
    with Client(str(it.socket)) as client:
        client.exec("x = bytearray(8 << 20)", "a")
        for i in range(1, 12):
            client.exec(f"x[:] = bytes([{i}]) * len(x)", "a")
        wait_until(lambda: len(client.checkpoints("a")) < 10, "the oldest are forgotten")
        assert client.info("a").checkpoint_memory <= 40 << 20
        assert client.undo("a").cell == 11
        assert client.exec("x[0]", "a").text == "10"


def test_they_do_not_count_as_the_session_s_processes(start_daemon: Callable[..., Daemon]) -> None:
    it = start_daemon(
        {"profile default": {"checkpoint": "cell", "checkpoints": "10", "processes": "8", "level": ""}}
    )
    with Client(str(it.socket)) as client:
        for i in range(12):
            client.exec(f"x = {i}", "a")
        code = "import os, time\nfor _ in range(6):\n    if os.fork() == 0:\n        time.sleep(5)\n        os._exit(0)"
        assert client.exec(code, "a").returncode == 0
        assert client.undo("a", 3).cell == 10


@pytest.mark.parametrize("back", ["undo", "reset"])
def test_going_back_where_there_is_no_room_for_a_process(start_daemon: Callable[..., Daemon], back: str) -> None:
    """Not before those of the state that is given up are gone."""
    it = start_daemon(
        {"profile default": {"checkpoint": "cell", "checkpoints": "3", "processes": "8", "level": ""}}
    )
    with Client(str(it.socket)) as client:
        client.exec("import os, time\nx = 1", "a")
        code = (
            "x = 2\nfor n in range(40):\n    try: pid = os.fork()\n    except OSError: break\n"
            "    if pid == 0:\n        time.sleep(60)\n        os._exit(0)\nn"
        )
        assert int(client.exec(code, "a").text or 99) < 20
        if back == "undo":
            assert client.undo("a").cell == 1
            assert client.exec("x", "a").text == "1"
        else:
            client.reset("a")
            assert client.exec("'x' in globals()", "a").text == "False"
        assert client.exec("import os; os.fork() and 'room'", "a").text == "'room'"


def started(pid: int) -> int:
    """When, in ticks. Numbers of processes begin anew at times."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])


@contextlib.contextmanager
def held(pid: int) -> Iterator[None]:
    """By a debugger: a process that is only stopped is woken when the cage goes on."""
    attach, detach = 16, 17
    ptrace = ctypes.CDLL(None).ptrace
    if ptrace(attach, pid, None, None) < 0:
        pytest.skip("nothing may be traced here")
    os.waitpid(pid, 0)
    yield
    if ptrace(detach, pid, None, None) < 0:
        os.waitpid(pid, 0)  # it is dead, and its tracer is the first to be told


def test_undo_to_one_that_does_not_answer(daemon: Daemon, client: Client, session: str) -> None:
    for i in range(1, 5):
        client.exec(f"x = {i}", session)
    wait_until(lambda: client.info(session).checkpoints == 4, "there are four")
    frozen = [
        pid
        for pid in children(client.info(session).pid or 0)
        if Path(f"/proc/{pid}/comm").read_text().strip() == "lair-frozen"
    ]
    frozen.sort(key=lambda pid: (started(pid), pid))
    with held(frozen[2]):
        assert client.undo(session).cell == 2
        assert client.exec("x", session).text == "2"
        assert "the checkpoint after cell 3 is broken" in daemon.log()


def test_what_was_lost_before_an_undo_is_not_told_after_it(client: Client, session: str) -> None:
    client.exec("x = 1", session)
    code = "import os, time\nx = 2\nif os.fork() == 0:\n    time.sleep(0.05)\n    os.kill(os.getppid(), 9)"
    client.exec(code, session)
    threading.Event().wait(0.2)
    client.undo(session)
    reply = client.exec("x", session)
    assert (reply.text, reply.state, reply.cause) == ("1", "kept", None)


def test_undo_of_what_was_lost_already(daemon: Daemon, client: Client, session: str) -> None:
    """A state that was not kept, and was lost before anybody was told: undo goes no further than it was meant to."""
    client.exec("import ctypes, os, resource; x = 1", session)
    limits = "resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))"
    client.exec(f"x = 2; {limits}; ctypes.CDLL(None).ualarm(300_000, 0)", session)
    wait_until(lambda: f"[{session}] its interpreter ended" in daemon.log(), "it is lost")
    assert client.undo(session).cell == 1
    assert client.exec("x", session).text == "1"
    assert client.undo(session, 2).cell == 0


def test_a_state_that_dies_at_once(daemon: Daemon, client: Client, session: str) -> None:
    """It is not brought to life for ever, and neither is the log filled with that."""
    client.exec("x = 1", session)
    client.exec(
        "import os, sys\nbirth = os.getpid()\n"
        "sys.addaudithook(lambda *_: os._exit(7) if os.getpid() != birth else None)",
        session,
    )
    assert client.exec("os._exit(0)", session).state == "rolled_back"
    wait_until(lambda: "dies: going further back" in daemon.log(), "it is given up")
    said = wait_until(lambda: client.info(session).state == "idle" and daemon.log(), "what came before lives")
    reply = client.exec("(x, 'birth' in dir())", session)
    assert (reply.text, reply.state, reply.cause) == ("(1, False)", "rolled_back", "exit")
    assert (
        daemon.log().count(f"[{session}] its interpreter ended")
        == said.count(f"[{session}] its interpreter ended")
        < 8
    )


def test_one_that_cannot_live_is_not_brought_to_life_for_ever(daemon: Daemon, client: Client, session: str) -> None:
    client.open(session)

    def killed_to_the_end() -> bool:
        try:
            info = client.info(session)
        except LairError as error:
            return error.code == "no_session"
        if info.state == "idle":
            for pid in children(info.pid or 0):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        return False

    wait_until(killed_to_the_end, "the session is ended")
    assert daemon.log().count(f"[{session}] its interpreters die at once (signal 9)") == 1
    assert daemon.log().count(f"[{session}] its interpreter ended") == 2

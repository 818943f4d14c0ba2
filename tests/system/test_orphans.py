"""Nobody is left behind: any process of laird's is killed at any step of a session's life, and then nothing is left.

Every step is reached for real and held where it can be; the kill comes then. What is left is what has become a child of
this process, which is a subreaper, and what lies in the directories.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from daemon import Daemon, children, command_of, descendants, wait_until
from lair import Client, LairError
from lair.messages import AskEvent, Branch, ExecReply, Reset, Shutdown

StartDaemon = Callable[..., Daemon]

SETTINGS = {
    "profile default": {"checkpoint": "cell", "spares": "1", "grace": "5s", "subprocess": "on"},
    "profile slow": {"preload": "numpy pandas", "spares": "0"},
}

BUSY = "import time\nx = 1\ntime.sleep(60)"
DEAF = "import time\nwhile True:\n    try: time.sleep(60)\n    except BaseException: pass"
CHILDREN = """
import os, subprocess, time, multiprocessing
subprocess.Popen(['/bin/sleep', '600'], start_new_session=True)
p = multiprocessing.get_context('fork').Process(target=time.sleep, args=(600,)); p.start()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        time.sleep(600)
    os._exit(0)
print('started', flush=True)
time.sleep(600)
"""


def running(client: Client, code: str, timeout: float | None = None) -> None:
    """Until the cell has begun."""
    client.start(code, "s", timeout=timeout)
    wait_until(lambda: client.info("s").state == "busy", "the cell runs")


def starting(client: Client) -> None:
    client.start("1", "s", profile="slow")


def idle(client: Client) -> None:
    client.exec("x = 1", "s")


def busy(client: Client) -> None:
    running(client, BUSY)


def queueing(client: Client) -> None:
    running(client, BUSY)
    for _ in range(3):
        client.start("1", "s")


def printing(client: Client) -> None:
    cell = client.start("while True: print('x' * 1000)", "s", stream=True)
    client.receive(cell, ExecReply)


def asking(client: Client) -> None:
    cell = client.start("input()", "s", input=True)
    assert isinstance(client.receive(cell, ExecReply), AskEvent)


def overdue(client: Client) -> None:
    running(client, DEAF, timeout=0.1)


def with_children(client: Client) -> None:
    cell = client.start(CHILDREN, "s", stream=True)
    client.receive(cell, ExecReply)


def frozen(client: Client) -> None:
    for i in range(4):
        client.exec(f"x = {i}", "s")
    wait_until(lambda: len(client.checkpoints("s")) > 1, "checkpoints are made")


def dying(client: Client) -> None:
    idle(client)
    client.start("import os; os._exit(1)", "s")


def branching(client: Client) -> None:
    idle(client)
    client.branch("s", "b")
    client.start(BUSY, "b")
    client.send(Branch(id=client.new_id(), session="s", branch="c", files=True))


def resetting(client: Client) -> None:
    idle(client)
    client.send(Reset(id=client.new_id(), session="s"))


def closing(client: Client) -> None:
    idle(client)
    client.send(Shutdown(id=client.new_id(), session="s"))


def one_shot(client: Client) -> None:
    client.start(BUSY)
    wait_until(lambda: any(info.state == "busy" for info in client.list()) or client.stats().sessions, "it runs")


STEPS = [
    starting, idle, busy, queueing, printing, asking, overdue, with_children, frozen, dying, branching, resetting,
    closing, one_shot,
]  # fmt: skip


def kernels(daemon: Daemon) -> list[int]:
    return [pid for pid in children(daemon.process.pid) if command_of(pid).startswith("lair-kernel")]


def wardens_and_templates(daemon: Daemon) -> list[int]:
    return kernels(daemon)


def interpreters(daemon: Daemon) -> list[int]:
    return [pid for kernel in kernels(daemon) for pid in descendants(kernel)]


def router(daemon: Daemon) -> list[int]:
    return [pid for pid in children(daemon.process.pid) if "--router" in command_of(pid)]


VICTIMS = [router, wardens_and_templates, interpreters]


def kill(pids: list[int]) -> None:
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


def reap() -> None:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def answers(client: Client) -> bool:
    """A spare that was among the dead may be claimed before anybody knows."""
    try:
        return client.exec("6 * 7", "another").text == "42"
    except LairError as error:
        assert error.code == "gone", error
        return False


@pytest.mark.parametrize("step", STEPS)
def test_the_keeper_dies(start_daemon: StartDaemon, step: Callable[[Client], None]) -> None:
    """Everything dies with it, and what lies on the disk goes at the next start."""
    daemon = start_daemon(SETTINGS)
    client = daemon.client()
    step(client)
    everything = daemon.processes()
    assert everything
    daemon.process.kill()
    daemon.process.wait()
    client.close()  # or what had not gone out yet reaches the next laird

    def gone() -> bool:
        reap()
        return not [pid for pid in everything if Path(f"/proc/{pid}").exists()]

    wait_until(gone, "all of them are dead")
    assert daemon.left_behind_processes() == []
    daemon.start()
    assert daemon.client().exec("6 * 7", "s").text == "42", "the next one is as good as new"
    assert daemon.terminate() == 0, daemon.log()
    assert daemon.left_behind() == []


@pytest.mark.parametrize("victims", VICTIMS)
@pytest.mark.parametrize("step", STEPS)
def test_something_dies(
    start_daemon: StartDaemon, step: Callable[[Client], None], victims: Callable[[Daemon], list[int]]
) -> None:
    """All of a kind at once; laird goes on, and when it is told to end, ends everything."""
    daemon = start_daemon(SETTINGS)
    step(daemon.client())
    kill(victims(daemon))
    wait_until(lambda: answers(daemon.client()), "others are served")
    assert daemon.terminate() == 0, daemon.log()
    assert daemon.left_behind() == []

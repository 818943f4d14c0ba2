"""What a service manager sees of laird: sd_notify(3), its watchdog, and a router that stands still."""

from __future__ import annotations

import os
import select
import signal
import socket
import struct
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from daemon import TROUBLE, Daemon, children, command_of, wait_until
from lair import LairError
from lair import messages as m
from lair.messages import ExecReply

StartDaemon = Callable[..., Daemon]


class Manager:
    """The other end of $NOTIFY_SOCKET."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(str(path))
        self.kept: dict[str, int] = {}

    def hear(self, timeout: float) -> str:
        """The next message; a descriptor that comes with it is kept, or not any more."""
        self._socket.settimeout(timeout)
        try:
            data, fds, _, _ = socket.recv_fds(self._socket, 4096, 4)
        except TimeoutError:
            return ""
        said = dict(line.split("=", 1) for line in data.decode().splitlines())
        if "FDSTORE" in said:
            (self.kept[said["FDNAME"]],) = fds
        if "FDSTOREREMOVE" in said:
            fd = self.kept.pop(said["FDNAME"], None)
            if fd is not None:
                os.close(fd)
        return data.decode()

    def catch_up(self) -> None:
        while self.hear(0.2):
            pass

    def kept_as(self, what: str) -> list[str]:
        return [name for name in self.kept if name.startswith(f"lair-{what}-")]

    def drop(self) -> None:
        for fd in self.kept.values():
            os.close(fd)
        self.kept.clear()

    def close(self) -> None:
        self._socket.close()
        self.drop()


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[Manager]:
    it = Manager(tmp_path / "notify")
    yield it
    it.close()


def router_of(daemon: Daemon) -> int:
    (pid,) = [pid for pid in children(daemon.process.pid) if "--router" in command_of(pid)]
    return pid


def test_ready_watched_and_stopping(start_daemon: StartDaemon, manager: Manager) -> None:
    daemon = start_daemon(env={"NOTIFY_SOCKET": str(manager.path), "WATCHDOG_USEC": "30000000"}, wait=False)
    assert manager.hear(30) == "READY=1"
    assert daemon.client().hello().version == 1, "ready means that it answers"
    assert [manager.hear(10) for _ in range(2)] == ["WATCHDOG=1"] * 2
    daemon.process.send_signal(signal.SIGTERM)
    wait_until(lambda: manager.hear(10) == "STOPPING=1", "the manager is told")
    assert daemon.process.wait(20) == 0


def test_no_watchdog_unasked(start_daemon: StartDaemon, manager: Manager) -> None:
    start_daemon(env={"NOTIFY_SOCKET": str(manager.path)})
    assert manager.hear(30) == "READY=1"
    assert manager.hear(4) == ""


def test_a_router_that_stands_still_is_replaced(start_daemon: StartDaemon) -> None:
    daemon = start_daemon()
    first = router_of(daemon)
    os.kill(first, signal.SIGSTOP)
    wait_until(lambda: "has not stirred" in daemon.log(), "the keeper notices", 40)
    assert daemon.client().hello().pid == router_of(daemon) != first


def test_a_router_that_goes_on_in_time_stays(start_daemon: StartDaemon) -> None:
    daemon = start_daemon()
    daemon.client().exec("x = 1", "s")
    router = router_of(daemon)
    os.kill(router, signal.SIGSTOP)
    waiting = daemon.client()
    cell = waiting.start("x + 1", "s")
    with pytest.raises(TimeoutError):
        waiting._next(cell, 4)
    os.kill(router, signal.SIGCONT)
    assert waiting.finish(cell, ExecReply).text == "2"
    assert router_of(daemon) == router


# ---- what it keeps for the next keeper ----


@pytest.fixture
def outside() -> Iterator[Path]:
    """A directory of the host that cells can write to."""
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o777)
        yield Path(name)


@pytest.fixture
def kept(start_daemon: StartDaemon, manager: Manager, outside: Path) -> Daemon:
    """A daemon whose manager keeps descriptors."""
    settings = {"profile default": {"write": str(outside), "results": "3"}}
    return start_daemon(settings, env={"NOTIFY_SOCKET": str(manager.path), "FDSTORE": "16"})


def start_again(daemon: Daemon, manager: Manager) -> None:
    """As a manager does with Restart=on-failure."""
    manager.catch_up()
    daemon.process.kill()
    daemon.process.wait()
    daemon.passed = manager.kept
    daemon.start()


def lair_exec(daemon: Daemon, code: str) -> subprocess.Popen[str]:
    command = [str(daemon.binaries / "lair"), "exec", "-s", "s", code]
    env = {**daemon.env, "LAIR_SOCKET": str(daemon.socket), "LAIR_NO_START": "1"}
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)


def append(outside: Path, then: str) -> str:
    return f"with open({str(outside / 'runs')!r}, 'a') as f: _ = f.write('x')\n{then}"


def test_nothing_is_left_unless_it_is_offered(start_daemon: StartDaemon, manager: Manager) -> None:
    daemon = start_daemon(env={"NOTIFY_SOCKET": str(manager.path)})
    daemon.client().exec("1", "s")
    manager.catch_up()
    assert manager.kept == {}
    daemon.end()


def test_clients_wait_for_the_next_keeper(kept: Daemon, manager: Manager) -> None:
    manager.catch_up()
    assert len(manager.kept_as("listener")) == 1
    kept.process.kill()
    kept.process.wait()
    with socket.socket(socket.AF_UNIX) as waiting:
        waiting.connect(str(kept.socket))  # nobody is there to accept it
        early = lair_exec(kept, "6 * 7")
        kept.passed = manager.kept
        kept.start()
        assert early.communicate(timeout=30)[0] == "42\n"


def test_what_was_answered_is_answered_again(kept: Daemon, manager: Manager, outside: Path) -> None:
    request = m.Exec(id=0, session="s", code=append(outside, "'first'"), key="k")
    before = kept.client()
    instance = before.hello().instance
    assert before.finish(before.send(replace(request, id=before.new_id())), ExecReply).text == "'first'"
    for _ in range(2):
        start_again(kept, manager)
        after = kept.client()
        assert after.hello().instance == instance
        assert after.finish(after.send(replace(request, id=after.new_id())), ExecReply).text == "'first'"
        assert (outside / "runs").read_text() == "x"


def test_what_was_not_answered_is_not_done_again(kept: Daemon, manager: Manager, outside: Path) -> None:
    runs = outside / "runs"
    cell = lair_exec(kept, append(outside, "import time; time.sleep(60)"))
    wait_until(runs.exists, "the cell runs")
    start_again(kept, manager)
    _, said = cell.communicate(timeout=30)
    assert cell.returncode == TROUBLE
    assert "whether it was done is not known" in said
    assert runs.read_text() == "x"
    assert kept.client().exec("1 + 1", "s").text == "2"
    start_again(kept, manager)
    assert kept.client().exec("2 + 2", "s").text == "4"


def test_a_router_that_dies_meanwhile_changes_nothing(kept: Daemon, manager: Manager) -> None:
    client = kept.client()
    request = m.Exec(id=0, session="s", code="x = 1", key="k")
    client.finish(client.send(replace(request, id=client.new_id())), ExecReply)
    start_again(kept, manager)
    os.kill(router_of(kept), signal.SIGKILL)
    again = kept.client()
    again.finish(again.send(replace(request, id=again.new_id())), ExecReply)
    with pytest.raises(LairError, match="no_session"):
        again.info("s")


def test_what_the_manager_keeps_is_always_up_to_date(kept: Daemon, manager: Manager) -> None:
    """The ledger is renewed every few answers, and stays the file that the manager was given at the start."""
    manager.catch_up()
    (name,) = manager.kept_as("ledger")
    ledger = manager.kept[name]
    client = kept.client()
    begin, moves = 0, 0
    for i in range(60):
        request = m.Exec(id=client.new_id(), session="s", code=f"print('{i % 10}' * 100_000)", key=f"k{i}")
        client.finish(client.send(request), ExecReply)
        (at,) = struct.unpack("=Q", os.pread(ledger, 8, 0))
        begin, moves = at, moves + (at != begin)
        assert os.fstat(ledger).st_blocks * 512 < 8 << 20
    assert moves > 3
    kept.process.kill()
    kept.process.wait()
    assert not manager.hear(0.2)
    kept.passed = manager.kept
    kept.start()
    again = kept.client()
    reply = again.finish(again.send(replace(request, id=again.new_id())), ExecReply)
    assert reply.stdout == b"9" * 100_000 + b"\n"
    with pytest.raises(LairError, match="no_session"):
        again.info("s")
    manager.catch_up()
    assert manager.kept[name] == ledger
    assert kept.terminate() == 0


def test_a_clean_end_leaves_them_too(kept: Daemon, manager: Manager) -> None:
    client = kept.client()
    client.finish(client.send(m.Exec(id=client.new_id(), session="s", code="1", key="k")), ExecReply)
    assert kept.terminate() == 0
    early = lair_exec(kept, "6 * 7")
    manager.catch_up()
    kept.passed = manager.kept
    kept.start()
    assert early.communicate(timeout=30)[0] == "42\n"


def test_what_is_of_no_use_is_given_back(kept: Daemon, manager: Manager) -> None:
    manager.catch_up()
    kept.process.kill()
    kept.process.wait()
    (ledger,) = manager.kept_as("ledger")
    (listener,) = manager.kept_as("listener")
    strangers = {
        f"{listener}0": os.memfd_create("x"),
        f"{ledger}0": os.memfd_create("x"),
        "what": os.memfd_create("x"),
    }
    manager.kept.update(strangers)
    kept.passed = {name: manager.kept[name] for name in [*strangers, ledger, listener]}
    kept.start()
    manager.catch_up()
    assert set(manager.kept) == {ledger, listener}
    assert kept.client().exec("1 + 1", "s").text == "2"


def test_a_socket_that_is_not_where_it_was_is_made_anew(kept: Daemon, manager: Manager) -> None:
    manager.catch_up()
    kept.process.kill()
    kept.process.wait()
    before = manager.kept_as("listener")
    kept.socket.unlink()
    (kept.socket.parent / "x").touch()  # whose number the socket's might be given again
    kept.passed = manager.kept
    kept.start()
    assert kept.client().exec("1 + 1", "s").text == "2"
    manager.catch_up()
    assert len(manager.kept_as("listener")) == 1
    assert manager.kept_as("listener") != before


def test_descriptors_for_somebody_else_are_not_touched(start_daemon: StartDaemon) -> None:
    daemon = start_daemon(env={"LISTEN_PID": "1", "LISTEN_FDS": "3", "LISTEN_FDNAMES": "a:b:c", "FDSTORE": "16"})
    assert daemon.client().exec("1 + 1").text == "2"
    daemon.end()


# ---- who listens before laird is there ----


@pytest.fixture(params=["lair.socket", ""], ids=["named", "without-a-name"])
def activated(start_daemon: StartDaemon, request: pytest.FixtureRequest) -> Iterator[tuple[Daemon, socket.socket]]:
    """A daemon that has ended, and its socket as a manager makes it that starts it for the first client."""
    daemon = start_daemon()
    daemon.process.terminate()
    assert daemon.process.wait(20) == 0
    daemon.socket.parent.mkdir(mode=0o700, exist_ok=True)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(daemon.socket))
        listener.listen()
        daemon.passed = {request.param: listener.fileno()}
        yield daemon, listener


def test_the_first_client_waits_for_laird(activated: tuple[Daemon, socket.socket]) -> None:
    daemon, listener = activated
    first = lair_exec(daemon, "6 * 7")
    wait_until(lambda: select.select([listener], [], [], 0)[0], "the first client")
    daemon.start()
    assert first.communicate(timeout=60)[0] == "42\n"
    assert daemon.client().exec("1", "s").text == "1"


def test_the_manager_s_socket_outlives_laird(activated: tuple[Daemon, socket.socket]) -> None:
    daemon, listener = activated
    there = daemon.socket.stat().st_ino
    for _ in range(2):
        daemon.start()
        assert daemon.lair("exec", "6 * 7").stdout == "42\n"
        assert daemon.lair("stop").returncode == 0
        assert daemon.process.wait(20) == 0
        assert daemon.socket.stat().st_ino == there
    late = lair_exec(daemon, "6 * 7")
    wait_until(lambda: select.select([listener], [], [], 0)[0], "a client while there is none")
    daemon.start()
    assert late.communicate(timeout=60)[0] == "42\n"


def test_another_socket_is_not_taken(activated: tuple[Daemon, socket.socket], tmp_path: Path) -> None:
    """laird listens where its settings say."""
    daemon, listener = activated
    there = daemon.socket.stat().st_ino
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(tmp_path / "other"))
        other.listen()
        daemon.passed = {"lair.socket": other.fileno()}
        daemon.start(wait=False)
        wait_until(lambda: daemon.socket.exists() and daemon.socket.stat().st_ino != there, "a socket of its own")
    assert daemon.lair("exec", "6 * 7").stdout == "42\n"

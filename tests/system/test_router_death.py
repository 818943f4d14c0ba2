"""The router is killed, at any instant: another one takes its place, and nobody loses anything."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from daemon import BIN, Daemon, children, command_of, wait_until
from lair import Client, LairError
from lair import messages as m


def router_pid(client: Client) -> int:
    return client.stats().pid


def kill_router(daemon: Daemon) -> int:
    """Returns the number of the dead one."""
    with daemon.client() as client:
        pid = router_pid(client)
    os.kill(pid, signal.SIGKILL)
    return pid


def wait_for_another(daemon: Daemon, dead: int) -> int:
    with daemon.client() as client:
        pid = router_pid(client)
    assert pid != dead
    return pid


def test_another_router(daemon: Daemon) -> None:
    dead = kill_router(daemon)
    wait_for_another(daemon, dead)
    assert daemon.process.poll() is None
    with daemon.client() as client:
        assert client.exec("6 * 7").text == "42"
    assert "the router was killed by signal 9 (Killed): another one starts" in daemon.log()


@pytest.mark.parametrize("directory", ["", "new/deep/"])
def test_nothing_stays_of_a_file_on_its_way_in(daemon: Daemon, directory: str) -> None:
    with daemon.client() as client:
        client.exec("pass", "s")
        put = m.Put(id=client.new_id(), session="s", path=f"{directory}f".encode(), data=b"1", more=True)
        client.call(put, m.TransferReply)
        assert [bytes(it.name)[:10] for it in client.files("s", directory)] == [b".lair-put-"]
    kill_router(daemon)
    with daemon.client(timeout=20) as client:
        assert client.files("s", directory) == []
        client.shutdown("s")


def test_clients_wait_meanwhile(daemon: Daemon) -> None:
    """Nobody is refused: a client that connects while there is no router is answered by the next."""
    with daemon.client() as client:
        pid = router_pid(client)
    os.kill(pid, signal.SIGSTOP)
    with daemon.client(timeout=20) as client:
        request = client.start("6 * 7")
        time.sleep(0.2)
        os.kill(pid, signal.SIGKILL)
        del request
    with daemon.client(timeout=20) as client:
        assert client.exec("6 * 7").text == "42"


def test_throttle(start_daemon: Callable[..., Daemon]) -> None:
    """More than five deaths in ten seconds: the next one waits."""
    daemon = start_daemon()
    for _ in range(5):
        wait_for_another(daemon, kill_router(daemon))
    began = time.monotonic()
    dead = kill_router(daemon)
    with daemon.client(timeout=30) as client:
        assert router_pid(client) != dead
    assert time.monotonic() - began > 2
    assert "another one starts in " in daemon.log()
    assert daemon.terminate() == 0
    assert daemon.left_behind() == []


def test_a_router_that_cannot_start(start_daemon: Callable[..., Daemon]) -> None:
    """It says why, and is tried again until it can."""
    daemon = start_daemon()
    (root,) = daemon.workspaces.iterdir()
    (root / "left").touch()
    root.chmod(0o777)
    kill_router(daemon)
    wait_until(lambda: daemon.log().count("the router ended with status 1") > 1, "two tries")
    assert f"cannot use {root} for workspaces" in daemon.log()
    root.chmod(0o711)
    with daemon.client(timeout=30) as client:
        assert client.exec("6 * 7").text == "42"


def test_stopped_while_there_is_no_router(start_daemon: Callable[..., Daemon]) -> None:
    daemon = start_daemon()
    (root,) = daemon.workspaces.iterdir()
    (root / "left").touch()
    root.chmod(0o777)
    kill_router(daemon)
    wait_until(lambda: "the router ended with status 1" in daemon.log(), "a try")
    assert daemon.terminate() == 0
    assert daemon.left_behind_processes() == []
    assert not daemon.socket.exists()


def test_settings_are_those_in_force(start_daemon: Callable[..., Daemon], tmp_path: Path) -> None:
    """Whatever the file says by now, and whatever the host has lost of what they name: nobody has said SIGHUP."""
    directory = tmp_path / "read"
    directory.mkdir()
    daemon = start_daemon({"profile default": {"read": str(directory), "cell_timeout_max": "100s"}})
    daemon.client().exec("x = 41", "a")
    daemon.configure({"profile default": {"cell_timeout_max": "200s"}})
    directory.rmdir()
    for text in (daemon.config.read_text(), "[daemon]\nnonsense = 1\n"):
        daemon.config.write_text(text)
        kill_router(daemon)
        with daemon.client(timeout=30) as client:
            assert client.exec("x + 1", "a").text == "42"
            with pytest.raises(LairError, match="cell_timeout_max = 100 s"):
                client.exec("x", timeout=150)


def test_settings_are_those_read_last(start_daemon: Callable[..., Daemon]) -> None:
    """By a SIGHUP that found nothing wrong with them."""
    daemon = start_daemon({"profile default": {"cell_timeout_max": "100s"}})
    daemon.configure({"profile default": {"cell_timeout_max": "200s"}})
    daemon.process.send_signal(signal.SIGHUP)
    wait_for_line(daemon, "settings re-read")
    daemon.configure({"daemon": {"audit_log": "/none/such"}})
    daemon.process.send_signal(signal.SIGHUP)
    wait_for_line(daemon, "nothing has changed")
    kill_router(daemon)
    with daemon.client(timeout=30) as client, pytest.raises(LairError, match="cell_timeout_max = 200 s"):
        client.exec("x", timeout=250)


def test_a_profile_that_is_no_more(start_daemon: Callable[..., Daemon], tmp_path: Path) -> None:
    """Its sessions go on, though the host has lost what it names."""
    directory = tmp_path / "read"
    directory.mkdir()
    daemon = start_daemon({"profile default": {}, "profile old": {"read": str(directory)}})
    daemon.client().exec("x = 41", "a", profile="old")
    daemon.configure({"profile default": {}})
    daemon.process.send_signal(signal.SIGHUP)
    wait_for_line(daemon, "settings re-read")
    directory.rmdir()
    kill_router(daemon)
    with daemon.client(timeout=30) as client:
        assert client.exec("x + 1", "a").text == "42"


def test_replaced(daemon: Daemon) -> None:
    """SIGUSR2: another router, of whatever build the executable's name stands for now."""
    with daemon.client() as client:
        pid = router_pid(client)
        daemon.process.send_signal(signal.SIGUSR2)
    wait_until(lambda: not os.path.exists(f"/proc/{pid}"), "the old one is gone")
    with daemon.client() as client:
        assert router_pid(client) != pid
        assert client.exec("6 * 7").text == "42"


def routers(daemon: Daemon) -> list[int]:
    return [pid for pid in children(daemon.process.pid) if "--router" in command_of(pid)]


def wait_for_line(daemon: Daemon, part: str) -> None:
    wait_until(lambda: part in daemon.log(), f"the log says: {part}")


def test_told_while_it_starts(start_daemon: Callable[..., Daemon]) -> None:
    """To make room, or to read its settings: it does so when it can, and dies of neither."""
    daemon = start_daemon(options=("--restart-at-once",))
    for number, heeded in ((signal.SIGUSR2, "making room"), (signal.SIGHUP, "settings re-read")):
        dead = kill_router(daemon)
        while routers(daemon) in ([], [dead]):
            pass
        (router,) = routers(daemon)
        os.kill(router, signal.SIGSTOP)
        daemon.process.send_signal(number)
        time.sleep(0.2)
        os.kill(router, signal.SIGCONT)
        wait_for_line(daemon, heeded)
    assert daemon.log().count("killed by signal") == daemon.log().count("killed by signal 9") == 2


def undo_behind(daemon: Daemon) -> tuple[int, m.Undo]:
    """Ask for it while the warden stands still, so that its interpreter waits to be killed."""
    with daemon.client() as client:
        client.exec("x = 1", "s")
        client.exec("x = 2", "s")
        warden = client.info("s").pid
        os.kill(warden, signal.SIGSTOP)
        undo = m.Undo(id=client.new_id(), session="s", key="undo")
        client.send(undo)
        wait_until(lambda: client.info("s").state == "starting", "it waits for the warden")
    return warden, undo


def test_time_without_a_router(start_daemon: Callable[..., Daemon]) -> None:
    """A warden is not late because nobody was there to listen to it."""
    daemon = start_daemon({"profile default": {"checkpoint": "cell"}})
    warden, undo = undo_behind(daemon)
    (router,) = routers(daemon)
    daemon.process.send_signal(signal.SIGSTOP)
    os.kill(router, signal.SIGKILL)
    time.sleep(6)
    daemon.process.send_signal(signal.SIGCONT)
    with daemon.client() as client:
        client.hello()
        time.sleep(0.5)
        os.kill(warden, signal.SIGCONT)
        assert client.call(undo, m.StateReply).cell == 1
        assert client.exec("x", "s").text == "1"


def test_a_router_that_listens_late(start_daemon: Callable[..., Daemon]) -> None:
    """Nor because the router stood still."""
    daemon = start_daemon({"profile default": {"checkpoint": "cell"}})
    warden, undo = undo_behind(daemon)
    (router,) = routers(daemon)
    os.kill(router, signal.SIGSTOP)
    os.kill(warden, signal.SIGCONT)
    time.sleep(6)
    os.kill(router, signal.SIGCONT)
    with daemon.client() as client:
        assert client.call(undo, m.StateReply).cell == 1
        assert client.exec("x", "s").text == "1"


def install(laird: Path, directory: Path) -> None:
    """In the place of the one that runs."""
    shutil.copy2(laird, directory / "new")
    (directory / "new").rename(directory / "laird")


def test_upgrade(start_daemon: Callable[..., Daemon], tmp_path: Path) -> None:
    """The file has another build in it meanwhile; what runs goes on."""
    for name in ("laird", "lair", "lair-kernel"):
        shutil.copy2(BIN / name, tmp_path / name)
    daemon = start_daemon(binaries=tmp_path)
    with daemon.client() as client:
        client.exec("import time\nx = 1", "s")
        pid = router_pid(client)
        slow = subprocess.Popen(
            [str(BIN / "lair"), "exec", "-s", "s", "time.sleep(1); x += 1; x"],
            env={**daemon.env, "LAIR_SOCKET": str(daemon.socket), "LAIR_NO_START": "1"},
            stdout=subprocess.PIPE,
            text=True,
        )
        wait_until(lambda: client.info("s").state == "busy", "it runs")
    install(BIN / "laird", tmp_path)
    result = daemon.lair("upgrade")
    assert result.returncode == 0 and "1 session with it" in result.stdout, result
    with daemon.client() as client:
        other = router_pid(client)
        assert other != pid and os.readlink(f"/proc/{other}/exe") == str(tmp_path / "laird")
        assert slow.communicate(timeout=20)[0] == "2\n"
        assert client.exec("x", "s").text == "2"
    assert daemon.terminate() == 0
    assert daemon.left_behind() == []


def test_a_build_that_cannot_go_on(start_daemon: Callable[..., Daemon], tmp_path: Path) -> None:
    """It has another layout for what a router leaves: the sessions stay with the build that they have, however a router
    ends, until one is installed that can."""
    for name in ("laird", "lair", "lair-kernel"):
        shutil.copy2(BIN / name, tmp_path / name)
    daemon = start_daemon(binaries=tmp_path)
    with daemon.client() as client:
        client.exec("x = 1", "s")
    install(BIN.parent / "tests/laird-other", tmp_path)
    result = daemon.lair("upgrade")
    assert result.returncode != 0 and "cannot go on with its sessions" in result.stderr, result
    wait_for_another(daemon, kill_router(daemon))
    with daemon.client() as client:
        assert client.exec("x", "s").text == "1"
    install(BIN / "laird", tmp_path)
    result = daemon.lair("upgrade")
    assert result.returncode == 0, result
    with daemon.client() as client:
        assert os.readlink(f"/proc/{router_pid(client)}/exe") == str(tmp_path / "laird")
        assert client.exec("x", "s").text == "1"
    assert "cannot be used" not in daemon.log()
    assert daemon.terminate() == 0
    assert daemon.left_behind() == []


def test_very_many_wait(start_daemon: Callable[..., Daemon]) -> None:
    """The next router looks at each thing that is left once: it is there long before the keeper takes it for stuck."""
    daemon = start_daemon({"profile default": {"queue": "10000", "cell_timeout": "10m"}})
    with daemon.client() as client:
        for i in range(9001):
            code = f"seen = {i}" if i else "import time\ntime.sleep(600)"
            client.send(m.Exec(id=client.new_id(), key=f"{i}", session="s", code=code, detach=True))
        wait_until(lambda: client.info("s").queued == 9000, "they wait", timeout=30)
    kill_router(daemon)
    with daemon.client() as client:
        assert client.info("s").queued == 9000
    assert daemon.log().count("another one starts") == 1


def test_much_waits(start_daemon: Callable[..., Daemon]) -> None:
    """Each request is within its bounds, and all of them together are far beyond."""
    daemon = start_daemon({"profile default": {"cell_timeout": "10m"}})
    env = [f"A{i}=" for i in range(8500)]
    with daemon.client() as client:
        client.exec("x = 41", "s")
        client.send(m.Exec(id=client.new_id(), session="s", code="import time\ntime.sleep(600)"))
        for _ in range(9):
            client.send(m.Exec(id=client.new_id(), session="s", code="x", env=env))
        wait_until(lambda: client.info("s").queued == 9, "they wait")
    kill_router(daemon)
    with daemon.client() as client:
        assert client.info("s").queued == 9
    assert "cannot be used" not in daemon.log()


def test_the_keeper_dies(start_daemon: Callable[..., Daemon]) -> None:
    """With it everything goes at once."""
    daemon = start_daemon()
    with daemon.client() as client:
        client.exec("import os\nif os.fork() == 0:\n    import time\n    time.sleep(60)", "s")
    processes = daemon.processes()
    assert len(processes) > 3
    daemon.process.kill()
    daemon.process.wait()
    wait_until(lambda: not any("lair" in command_of(pid) for pid in processes), "nothing is left")
    assert daemon.left_behind_processes() == []

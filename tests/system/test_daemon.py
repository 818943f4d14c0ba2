"""laird as a program: settings, signals, a life from start to stop."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from daemon import BIN, Daemon, wait_until
from lair import LairError
from lair import messages as m

Start = Callable[..., Daemon]

NOBODY = 54321
GROUP = 54322
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")


def laird(*arguments: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(BIN / "laird"), *arguments],
        capture_output=True,
        text=True,
        timeout=20,
        stdin=subprocess.DEVNULL,
        env=env or {"PATH": os.environ["PATH"]},
    )


# ---- settings ----


@pytest.mark.parametrize(
    ("text", "line", "expected"),
    [
        ("[daemon]\nsesions = 3\n", 2, "sessions"),
        ("[profile default]\n\ncell_timeout = soon\n", 3, "cell_timeout"),
        ("[profile default]\nmemory = 1Q\n", 2, "memory"),
        ("[profile default]\nnetwork = perhaps\n", 2, "network"),
        ("[profile default]\nsubprocess = maybe\n", 2, "subprocess"),
        ("[profile default]\ncell_timeout = 2h\ncell_timeout_max = 1h\n", None, "cell_timeout_max"),
        ("[profile default]\nread = /nonexistent/directory\n", 2, "/nonexistent/directory"),
        ("[proflie x]\n", 1, "proflie"),
        ("[profile a b]\n", 1, "profile"),
        ("sessions = 3\n", 1, "section"),
        ("[daemon]\nwhat is this\n", 2, ""),
        ("[daemon]\nsessions = -1\n", 2, "sessions"),
        ("[daemon]\nsessions = 99999999999999999999999\n", 2, "sessions"),
    ],
)
def test_bad_settings(tmp_path: Path, text: str, line: int | None, expected: str) -> None:
    """FILE:LINE: what was wrong; exit 2; nothing is started."""
    path = tmp_path / "sessions.conf"
    path.write_text(text)
    for arguments in (("-n",), ()):
        result = laird("--config", str(path), "--socket", str(tmp_path / "s"), *arguments)
        assert result.returncode == 2
        assert result.stderr.startswith(f"laird: {path}:{line or ''}")
        assert expected in result.stderr
        assert len(result.stderr.splitlines()) == 1
    assert not (tmp_path / "s").exists()


def test_a_missing_file(tmp_path: Path) -> None:
    result = laird("-n", "--config", str(tmp_path / "nonesuch"))
    assert result.returncode == 2
    assert "nonesuch" in result.stderr


def test_check_prints_what_is_in_force(tmp_path: Path) -> None:
    path = tmp_path / "sessions.conf"
    path.write_text("[daemon]\nsessions = 7\n[profile data]\nmemory = 2G\ncell_timeout = 1.5s\n")
    result = laird("-n", "--config", str(path))
    assert result.returncode == 0
    for expected in ("sessions = 7", "[profile default]", "[profile data]", "memory = 2G", "cell_timeout = 1500ms"):
        assert expected in result.stdout
    again = tmp_path / "again.conf"
    again.write_text(result.stdout)
    assert laird("-n", "--config", str(again)).stdout.splitlines()[1:] == result.stdout.splitlines()[1:]


def test_the_shipped_settings_are_the_defaults(tmp_path: Path) -> None:
    shipped = Path(__file__).parents[2] / "sessions.conf"
    empty = tmp_path / "empty.conf"
    empty.write_text("")
    outputs = [laird("-n", "--config", str(path)).stdout.splitlines()[1:] for path in (shipped, empty)]
    second = outputs[0].index("[profile workbench]")
    assert [line for line in outputs[0][:second] if line] == [line for line in outputs[1] if line]
    assert laird("--defaults").stdout == shipped.read_text()


@pytest.mark.parametrize("arguments", [["--nonesuch"], ["word"], ["--config"], ["--ready-fd", "x"], ["-r", "77"]])
def test_a_wrong_command_line(arguments: list[str], tmp_path: Path) -> None:
    result = laird("--socket", str(tmp_path / "s"), *arguments)
    assert result.returncode == 2
    assert result.stderr.startswith("laird: ") or "laird" in result.stderr


def test_help_and_version() -> None:
    assert "--config" in laird("--help").stdout
    assert laird("--version").stdout.startswith("laird 0.")


def test_sessions_cannot_be_given_what_laird_lives_on(tmp_path: Path) -> None:
    """Its socket and the saved states, also where no setting names them."""
    path = tmp_path / "sessions.conf"
    run = tmp_path / "run"
    run.mkdir()
    path.write_text(f"[profile a]\nwrite = {run}\n[profile b]\nmemory = 1G\n")
    environment = {"PATH": os.environ["PATH"], "LAIR_SOCKET": str(run / "socket")}
    for result in (
        laird("-n", "--config", str(path), "--socket", str(run / "socket")),
        laird("--config", str(path), env=environment),
    ):
        assert result.returncode == 2
        assert f"{path}:2: profile a: write = {run} holds {run}/socket" in result.stderr
    assert laird("-n", "--config", str(path), "--socket", str(tmp_path / "s")).returncode == 0
    path.write_text(f"[daemon]\nsaves = {run}/lair/saves\n[profile a]\nwrite = {run}\n")
    result = laird("-n", "--config", str(path), "--socket", str(tmp_path / "s"))
    assert f"{path}:4: profile a: write = {run} holds {run}/lair/saves/" in result.stderr


# ---- one daemon to a socket ----


def test_a_second_daemon_is_refused(start_daemon: Start) -> None:
    daemon = start_daemon()
    client = daemon.client()
    client.exec("x = 1", "a")
    second = laird("--config", str(daemon.config), "--socket", str(daemon.socket))
    assert second.returncode == 3
    assert "already" in second.stderr
    assert client.exec("x", "a").text == "1"
    assert daemon.client().exec("x", "a").text == "1"


def test_what_a_killed_daemon_left_is_taken_over(start_daemon: Start) -> None:
    daemon = start_daemon()
    daemon.client().exec("x = 1", "a")
    daemon.process.kill()
    daemon.process.wait()
    assert daemon.socket.exists()
    wait_until(lambda: not daemon.left_behind_processes(), "its children die")
    again = subprocess.Popen(
        [str(BIN / "laird"), "--config", str(daemon.config), "--socket", str(daemon.socket)], env=daemon.env
    )
    try:
        daemon.process = again
        daemon.wait_ready()
        client = daemon.client()
        assert client.list() == []
        assert client.exec("1").text == "1"
    finally:
        again.send_signal(signal.SIGTERM)
        assert again.wait(20) == 0


def test_a_socket_directory_of_others_is_refused(tmp_path: Path) -> None:
    directory = tmp_path / "open"
    directory.mkdir()
    directory.chmod(0o777)
    result = laird("--socket", str(directory / "socket"))
    assert result.returncode not in (0, 3)
    assert str(directory) in result.stderr


def test_the_socket_is_private(start_daemon: Start) -> None:
    daemon = start_daemon()
    assert daemon.socket.parent.stat().st_mode & 0o777 == 0o700
    assert daemon.socket.stat().st_mode & 0o077 == 0


# ---- SIGHUP ----


def reload(daemon: Daemon) -> None:
    size = len(daemon.log())
    daemon.process.send_signal(signal.SIGHUP)
    wait_until(lambda: len(daemon.log()) > size, "a line about the settings")
    time.sleep(0.1)


def test_the_largest_frame_is_what_the_socket_takes(start_daemon: Start) -> None:
    daemon = start_daemon({"daemon": {"frame_size": "16M"}})
    client = daemon.client()
    daemon.configure({"daemon": {"frame_size": "20M"}})
    reload(daemon)
    assert client.hello().frame_max == 16 << 20


def test_the_log_names_the_file(start_daemon: Start) -> None:
    daemon = start_daemon()
    wait_until(lambda: f"settings read from {daemon.config}" in daemon.log(), "where they are from")


def test_new_settings_are_for_new_sessions(start_daemon: Start) -> None:
    daemon = start_daemon({"profile default": {"cell_timeout_max": "100s"}})
    client = daemon.client()
    client.exec("x = 1", "old")
    daemon.configure({"profile default": {"cell_timeout_max": "200s"}, "profile extra": {}})
    reload(daemon)
    with pytest.raises(LairError, match="cell_timeout_max = 100 s"):
        client.exec("x", "old", timeout=150)
    assert client.exec("1", "new", timeout=150).text == "1"
    assert client.exec("1", "extra", profile="extra").text == "1"
    assert client.exec("x", "old").text == "1"


def test_what_only_a_start_reads_is_named(start_daemon: Start) -> None:
    daemon = start_daemon()
    daemon.configure({"daemon": {"frame_size": "64M", "log": str(daemon.log_path), "sessions": "7"}})
    reload(daemon)
    wait_until(lambda: "settings re-read" in daemon.log(), "a line about the settings")
    wait_until(
        lambda: "frame_size has changed, which counts when laird is started anew" in daemon.log(), "its name"
    )
    assert "log has changed" in daemon.log()
    assert "socket has changed" not in daemon.log() and "sessions has changed" not in daemon.log()


def test_bad_new_settings_change_nothing_and_say_so(start_daemon: Start) -> None:
    daemon = start_daemon()
    client = daemon.client()
    client.exec("x = 1", "a")
    daemon.config.write_text("[daemon]\nnonsense = 1\n")
    reload(daemon)
    assert f"{daemon.config}:2" in daemon.log()
    assert client.exec("x", "a").text == "1"
    assert client.exec("1", "b").text == "1"


def test_new_settings_cannot_give_away_the_socket(start_daemon: Start) -> None:
    daemon = start_daemon()
    daemon.configure({"profile default": {"write": str(daemon.socket.parent)}})
    reload(daemon)
    assert f"holds {daemon.socket}, which no session may change; write to less" in daemon.log()
    assert "settings re-read" not in daemon.log()
    assert daemon.client().exec("1").text == "1"


# ---- SIGTERM ----


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_stopping_leaves_nothing(start_daemon: Start, how: signal.Signals) -> None:
    daemon = start_daemon()
    client = daemon.client()
    client.exec("_ = open('f', 'w').write('x')", "idle")
    for i in range(3):
        client.start("while True: pass", f"busy{i}")
    client.start("import signal, time; signal.signal(2, signal.SIG_IGN)\nwhile True: time.sleep(1)", "stubborn")
    client.start("import os, time\nfor _ in range(3):\n if os.fork() == 0: os.setsid(); time.sleep(300)", "parent")
    time.sleep(0.5)
    daemon.process.send_signal(how)
    assert daemon.process.wait(15) == 0
    assert daemon.left_behind() == []


def test_stopping_answers_who_waits(start_daemon: Start) -> None:
    daemon = start_daemon()
    client = daemon.client(timeout=10)
    client.open("a")
    cell = client.start("print(1, flush=True)\nwhile True: pass", "a", stream=True)
    client.receive(cell, m.ExecReply)
    daemon.process.send_signal(signal.SIGTERM)
    reply = client.finish(cell, m.ExecReply)
    assert (reply.state, reply.cause) == ("ended", "shutdown")
    assert daemon.process.wait(15) == 0


def test_stopping_while_starting(start_daemon: Start) -> None:
    daemon = start_daemon({"profile default": {"preload": "numpy?", "spares": "4"}})
    daemon.client().start("1", "a")
    assert daemon.terminate() == 0
    assert daemon.left_behind() == []


def test_stopping_is_quick(start_daemon: Start) -> None:
    daemon = start_daemon()
    daemon.client().exec("x = 1", "a")
    started = time.monotonic()
    assert daemon.terminate() == 0
    assert time.monotonic() - started < 2


def test_workspaces_are_kept_if_asked(start_daemon: Start) -> None:
    daemon = start_daemon({"profile default": {"workspace": "keep"}})
    client = daemon.client()
    workspace = Path(client.open("a").workspace)
    client.exec("_ = open('result', 'w').write('42')", "a")
    client.shutdown("a")
    assert (workspace / "result").read_text() == "42"
    client.exec("_ = open('result', 'w').write('43')", "b")
    other = Path(client.info("b").workspace)
    assert daemon.terminate() == 0
    assert (workspace / "result").read_text() == "42"
    assert (other / "result").read_text() == "43"


def test_kept_workspaces_outlive_routers_and_daemons(start_daemon: Start) -> None:
    daemon = start_daemon({"profile default": {"workspace": "keep"}})
    client = daemon.client()
    workspace = Path(client.open("a").workspace)
    client.exec("_ = open('result', 'w').write('42')", "a")
    client.shutdown("a")
    before = daemon.client().stats().pid
    daemon.process.send_signal(signal.SIGUSR2)
    wait_until(lambda: daemon.client().stats().pid != before, "another router answers")
    assert (workspace / "result").read_text() == "42"
    assert daemon.terminate() == 0
    daemon.start()
    assert daemon.client().exec("1").text == "1"
    assert (workspace / "result").read_text() == "42"


def test_the_death_of_the_keeper_ends_everything(start_daemon: Start) -> None:
    daemon = start_daemon()
    client = daemon.client()
    client.exec("import os, time\nif os.fork() == 0:\n os.setsid()\n time.sleep(300)", "a")
    client.start("while True: pass", "b")
    time.sleep(0.3)
    daemon.process.kill()
    daemon.process.wait()
    wait_until(lambda: daemon.left_behind_processes() == [], "every process dies", 5)


# ---- logs ----


def test_the_log_is_one_line_an_event_with_the_session(start_daemon: Start) -> None:
    daemon = start_daemon()
    client = daemon.client()
    client.exec("1", "some-session")
    client.shutdown("some-session")
    lines = daemon.log().splitlines()
    about = [line for line in lines if "[some-session]" in line]
    assert any("opened" in line for line in about)
    assert any("ended" in line for line in about)
    assert all(line[:4].isdigit() for line in lines), lines


def test_the_log_can_be_a_file(start_daemon: Start, tmp_path: Path) -> None:
    log = tmp_path / "laird.log"
    daemon = start_daemon({"daemon": {"log": str(log)}})
    daemon.client().exec("1", "a")
    assert "[a]" in log.read_text()
    assert log.stat().st_mode & 0o777 == 0o600


# ---- users ----


@needs_root
def test_without_root(start_daemon: Start) -> None:
    daemon = start_daemon(uid=NOBODY, wait=False)
    wait_until(daemon.socket.exists, "the socket is there", 20)
    client = daemon.client()
    info = client.open("a")
    assert info.uid == 0
    assert client.exec("import os; _ = open('f', 'w').write('x'); os.listdir('.')", "a").text == "['f']"
    assert client.exec("open('/etc/shadow')", "a").returncode == 1
    assert daemon.terminate() == 0
    assert daemon.left_behind() == []


@needs_root
def test_sessions_of_root_do_not_run_as_root(start_daemon: Start) -> None:
    client = start_daemon().client()
    pids = [client.open(name).pid for name in ("a", "b")]
    for name in ("a", "b"):
        client.exec("1", name)
    uids = []
    for pid in (client.info(name).pid for name in ("a", "b")):
        status = Path(f"/proc/{pid}/status").read_text()
        uids.append(next(line.split()[1] for line in status.splitlines() if line.startswith("Uid:")))
    assert "0" not in uids
    assert uids[0] != uids[1], pids


@needs_root
def test_sessions_of_root_have_no_groups(start_daemon: Start) -> None:
    """laird may have been started with supplementary groups. The files of these are not for its sessions."""
    before = os.getgroups()
    os.setgroups([GROUP])
    try:
        daemon = start_daemon()
    finally:
        os.setgroups(before)
    assert daemon.client().exec("import os; os.getgroups()", "a").text == "[]"


@needs_root
def test_a_user_sees_only_what_is_theirs(start_daemon: Start) -> None:
    """The socket's directory keeps others out; whoever is let in by it still owns only what they opened."""
    daemon = start_daemon()
    root = daemon.client()
    root.exec("x = 1", "roots")
    daemon.share()
    mine = daemon.as_user(NOBODY, "c.exec('1', 'theirs'); print([i.session for i in c.list()])")
    assert mine == "['theirs']"
    for act in ("c.info('roots')", "c.shutdown('roots')", "c.interrupt('roots')", "c.reset('roots')"):
        assert daemon.as_user(NOBODY, act) == "no_session"
    assert daemon.as_user(NOBODY, "print(c.exec('x', 'roots').returncode); c.shutdown('roots')") == "1"
    assert sorted(info.session for info in root.list()) == [f"{NOBODY}/theirs", "roots"]
    assert root.exec("x", "roots").text == "1"


def test_run_from_elsewhere_they_find_each_other(start_daemon: Start, tmp_path: Path) -> None:
    for name in ("laird", "lair", "lair-kernel"):
        shutil.copy(BIN / name, tmp_path / name)
    tmp_path.chmod(0o755)
    daemon = start_daemon(binaries=tmp_path)
    assert daemon.client().exec("1").text == "1"


def test_a_profile_that_cannot_start(start_daemon: Start) -> None:
    daemon = start_daemon({"profile broken": {"preload": "no_such_module_at_all"}})
    client = daemon.client()
    with pytest.raises(LairError) as error:
        client.exec("1", profile="broken")
    assert "no_such_module_at_all" in error.value.message
    assert client.exec("1").text == "1"


def test_a_virtual_environment(start_daemon: Start, tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    for parent in list(tmp_path.parents)[:2]:
        parent.chmod(0o755)
    venv = tmp_path / "venv"
    subprocess.run(["/usr/bin/python3", "-m", "venv", "--without-pip", str(venv)], check=True)
    (package,) = (venv / "lib").glob("python3.*/site-packages")
    (package / "only_here.py").write_text("value = 'from the venv'\n")
    daemon = start_daemon({"profile venv": {"python": str(venv)}})
    client = daemon.client()
    assert client.exec("import only_here; only_here.value", profile="venv").text == "'from the venv'"
    assert client.exec("import sys; sys.prefix", profile="venv").text == repr(str(venv))
    assert client.exec("import only_here").error["name"] == "ModuleNotFoundError"


def test_preloads(start_daemon: Start) -> None:
    daemon = start_daemon({"profile default": {"preload": "json decimal? nonesuch?"}})
    client = daemon.client()
    assert client.exec("import sys; ('decimal' in sys.modules, 'nonesuch' in sys.modules)").text == "(True, False)"
    wait_until(lambda: "nonesuch" in daemon.log(), "the log tells what is missing")

"""The audit log: who ran what, and what was refused, as JSON lines an attacker cannot break out of. A cell runs only after
its line is in the file, and no line is lost without a word."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import hashlib
import json
import os
import signal
import stat
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from daemon import Daemon, wait_until
from lair import Client, LairError
from lair import messages as m

Start = Callable[..., Daemon]


def entries(path: Path) -> list[dict[str, Any]]:
    """Whole lines: the last may be being written."""
    return [json.loads(line) for line in path.read_text().split("\n")[:-1]]


def cells(path: Path, session: str) -> list[int]:
    """Those that the log has, as it has them."""
    return [line["cell"] for line in entries(path) if line["event"] == "exec" and line.get("session") == session]


def has(path: Path, text: str) -> Callable[[], bool]:
    return lambda: path.exists() and text in path.read_text()


LARGE = {"code_size": "15M"}


def reload(daemon: Daemon, path: Path | str) -> None:
    before = daemon.log().count("settings re-read")
    daemon.configure({"daemon": {"audit_log": str(path)}})
    daemon.process.send_signal(signal.SIGHUP)
    wait_until(lambda: daemon.log().count("settings re-read") > before, "the settings are re-read")


def run(client: Client, n: int, session: str = "s") -> float:
    """So many cells. The median of their times, in milliseconds."""
    times = []
    for _ in range(n):
        began = time.perf_counter()
        assert client.exec("1 + 1", session).text == "2"
        times.append(1e3 * (time.perf_counter() - began))
    return statistics.median(times)


def test_audit_log(start_daemon: Start, tmp_path: Path) -> None:
    log = tmp_path / "audit"
    daemon = start_daemon({"daemon": {"audit_log": str(log)}})
    client = daemon.client()
    client.open("a")
    code = 'open("/etc/no\\n{\\"event\\":\\"end\\"}\\x1b", "w")'
    assert client.exec(code, "a").returncode == 1
    client.exec("1")
    client.shutdown("a")
    wait_until(lambda: log.read_text().count('"end"') == 2, "both sessions have ended")
    assert stat.S_IMODE(log.stat().st_mode) == 0o600
    assert "\x1b" not in log.read_text()
    said = [(entry["event"], entry.get("session")) for entry in entries(log)]
    assert said[:3] == [("open", "a"), ("exec", "a"), ("blocked", "a")]
    assert said.count(("exec", None)) == said.count(("end", None)) == said.count(("end", "a")) == 1
    opened, executed, blocked = entries(log)[:3]
    assert (opened["uid"], opened["profile"]) == (os.getuid(), "default")
    assert executed["cell"] == 1 and executed["sha256"] == hashlib.sha256(code.encode()).hexdigest()
    assert blocked["cell"] == 1 and blocked["act"] == "open" and blocked["reason"]
    assert blocked["target"].startswith("/etc/no")


def test_code(start_daemon: Start, tmp_path: Path) -> None:
    log = tmp_path / "audit"
    settings = {"daemon": {"audit_log": str(log), "audit_code": "on"}, "profile default": LARGE}
    daemon = start_daemon(settings)
    client = daemon.client()
    short, long = 'print("é\\n\x7f")', "7\n#" + "é" * 40_000
    for code in (short, long):
        client.exec(code, "s")
    wait_until(lambda: cells(log, "s") == [1, 2], "both are there")
    first, second = (line for line in entries(log) if line["event"] == "exec")
    assert first["code"] == short and "code_cut" not in first
    assert long.startswith(second["code"]) and len(second["code"].encode()) in (65535, 65536)
    assert len(second["code"].encode()) + second["code_cut"] == len(long.encode())
    for line, code in ((first, short), (second, long)):
        assert line["sha256"] == hashlib.sha256(code.encode()).hexdigest()
    daemon.configure({"daemon": {**settings["daemon"], "audit_code": "off"}, "profile default": LARGE})
    daemon.process.send_signal(signal.SIGHUP)
    wait_until(lambda: "settings re-read" in daemon.log(), "they are read again")
    client.exec("3", "s")
    wait_until(lambda: cells(log, "s") == [1, 2, 3], "it is there")
    assert "code" not in entries(log)[-1]


def test_a_log_that_cannot_be(start_daemon: Start, tmp_path: Path) -> None:
    daemon = start_daemon({"daemon": {"audit_log": str(tmp_path)}}, wait=False)
    assert daemon.process.wait(20) != 0
    assert "audit_log" in daemon.log()


def test_large_code(start_daemon: Start, tmp_path: Path) -> None:
    log = tmp_path / "audit"
    client = start_daemon({"daemon": {"audit_log": str(log)}, "profile default": LARGE}).client()
    code = "7\n#" + "x" * 15_000_000
    assert client.exec(code, "s").text == "7"
    wait_until(has(log, hashlib.sha256(code.encode()).hexdigest()), "its digest is there")
    assert cells(log, "s") == [1]


def test_a_file_that_ends_in_half_a_line(start_daemon: Start, tmp_path: Path) -> None:
    log = tmp_path / "audit"
    log.write_text('{"time":1')
    start_daemon({"daemon": {"audit_log": str(log)}}).client().exec("1", "s")
    wait_until(has(log, '"exec"'), "the cell is there")
    half, *whole = log.read_text().splitlines()
    assert half == '{"time":1'
    assert [json.loads(line)["event"] for line in whole] == ["open", "exec"]


def test_router_killed(start_daemon: Start, tmp_path: Path) -> None:
    """All lines are there; the last one of a router may be there twice."""
    log = tmp_path / "audit"
    daemon = start_daemon({"daemon": {"audit_log": str(log)}})
    client = daemon.client()
    for _ in range(3):
        run(client, 50)
        os.kill(client.stats().pid, signal.SIGKILL)
        client = daemon.client()
    run(client, 50)
    assert sorted(set(cells(log, "s"))) == list(range(1, 201)) and len(cells(log, "s")) <= 203


def test_router_killed_and_no_log(start_daemon: Start, tmp_path: Path) -> None:
    """The sessions live on. Cells are refused until the file can be opened, and nothing else is."""
    directory = tmp_path / "logs"
    directory.mkdir()
    log = directory / "audit"
    daemon = start_daemon({"daemon": {"audit_log": str(log)}})
    client = daemon.client()
    client.exec("x = 7", "s")
    directory.rename(tmp_path / "away")
    os.kill(client.stats().pid, signal.SIGKILL)
    client = daemon.client()
    with pytest.raises(LairError, match="^internal: the audit log cannot be written, and audit_required is on"):
        client.exec("x = 8", "s")
    assert f"cannot append to audit_log = {log}: No such file" in daemon.log()
    assert client.info("s").cells == 1
    directory.mkdir()
    assert client.exec("x", "s").text == "7"
    assert cells(log, "s") == [2]


# ---- another file ----


def test_another_file(start_daemon: Start, tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    daemon = start_daemon({"daemon": {"audit_log": str(first)}})
    client = daemon.client()
    run(client, 50)
    reload(daemon, second)
    run(client, 50)
    reload(daemon, "")
    run(client, 50)
    reload(daemon, second)
    run(client, 50)
    assert cells(first, "s") == list(range(1, 51))
    assert cells(second, "s") == [*range(51, 101), *range(151, 201)]
    assert "misses" not in daemon.log()


def test_rotated(start_daemon: Start, tmp_path: Path) -> None:
    """Renamed, it is written to until laird is told."""
    log, old = tmp_path / "audit", tmp_path / "audit.1"
    daemon = start_daemon({"daemon": {"audit_log": str(log)}})
    client = daemon.client()
    run(client, 50)
    log.rename(old)
    run(client, 50)
    reload(daemon, log)
    run(client, 50)
    assert cells(old, "s") == list(range(1, 101))
    assert cells(log, "s") == list(range(101, 151))


def test_a_reload_that_fails(start_daemon: Start, tmp_path: Path) -> None:
    """The log stays what it was."""
    log = tmp_path / "audit"
    daemon = start_daemon({"daemon": {"audit_log": str(log)}})
    client = daemon.client()
    run(client, 10)
    daemon.configure({"daemon": {"audit_log": "/none/such"}})
    daemon.process.send_signal(signal.SIGHUP)
    wait_until(lambda: "nothing has changed" in daemon.log(), "it is refused")
    assert "cannot append to audit_log = /none/such" in daemon.log()
    run(client, 10)
    assert cells(log, "s") == list(range(1, 21))


# ---- a file that does not open ----


@contextlib.contextmanager
def leased(path: Path) -> Iterator[None]:
    """Whoever opens it for writing waits until the lease is given up."""
    before = signal.signal(signal.SIGIO, signal.SIG_IGN)
    fd = os.open(path, os.O_RDONLY | os.O_CREAT, 0o600)
    try:
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        yield
    finally:
        os.close(fd)
        signal.signal(signal.SIGIO, before)


@contextlib.contextmanager
def watched(path: Path) -> Iterator[None]:
    """Whoever opens it waits for a word that does not come, as for a server that is dead."""
    libc = ctypes.CDLL(None, use_errno=True)
    path.touch(0o600)
    fd = libc.fanotify_init(0x04, 0)
    if fd < 0 and ctypes.get_errno() in (errno.EPERM, errno.ENOSYS):
        pytest.skip("nobody may hold up those who open a file here (fanotify)")
    assert fd >= 0, os.strerror(ctypes.get_errno())
    try:
        if libc.fanotify_mark(fd, 1, ctypes.c_uint64(0x10000), -100, os.fsencode(path)) < 0:
            assert ctypes.get_errno() == errno.EINVAL, os.strerror(ctypes.get_errno())
            pytest.skip("this kernel holds up nobody who opens a file (fanotify)")
        yield
    finally:
        os.close(fd)


@pytest.mark.parametrize("held", [leased, watched])
def test_a_file_that_does_not_open(start_daemon: Start, tmp_path: Path, held: Any) -> None:
    """The reload is refused after a second, in which nobody is answered; the log stays what it was."""
    log, other = tmp_path / "audit", tmp_path / "other"
    daemon = start_daemon({"daemon": {"audit_log": str(log)}})
    client, operator = daemon.client(), daemon.client()
    run(client, 10)
    daemon.configure({"daemon": {"audit_log": str(other)}, "profile late": {}})
    with held(other):
        began = time.monotonic()
        with pytest.raises(LairError, match=f"^settings: cannot append to audit_log = {other}: .*did not open"):
            operator.call(m.Reload(id=operator.new_id()), m.ReloadReply)
        assert time.monotonic() - began < 3
        assert "nothing has changed" in daemon.log()
        with pytest.raises(LairError, match="^bad_request: "):
            client.exec("1", "t", profile="late")
        run(client, 10)
    assert cells(log, "s") == list(range(1, 21))
    operator.call(m.Reload(id=operator.new_id()), m.ReloadReply)
    run(client, 10)
    assert cells(other, "s") == list(range(21, 31))


def test_a_fifo_is_no_audit_log(start_daemon: Start, tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    daemon = start_daemon({})
    daemon.configure({"daemon": {"audit_log": str(fifo)}})
    done = daemon.lair("reload")
    assert done.returncode == 125 and f"cannot append to audit_log = {fifo}: " in done.stderr


def test_a_start_says_that_it_does_not_open(tmp_path: Path, start_daemon: Start) -> None:
    log = tmp_path / "audit"
    with leased(log):
        daemon = start_daemon({"daemon": {"audit_log": str(log)}}, wait=False)
        assert daemon.process.wait(30) == 1
    assert f"cannot append to audit_log = {log}: it did not open within " in daemon.log()

"""The audit log: who ran what, and what was refused, as JSON lines an attacker cannot break out of. It is written by the
scribe, a process of its own: whatever that or a disk does, sessions go on, and no line is lost without a word."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import hashlib
import json
import os
import re
import signal
import stat
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from daemon import Daemon, children, command_of, wait_until
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


def scribes(daemon: Daemon) -> list[int]:
    return [pid for pid in children(daemon.process.pid) if command_of(pid).endswith("--scribe")]


def scribe(daemon: Daemon) -> int:
    wait_until(lambda: len(scribes(daemon)) == 1, "there is a scribe")
    return scribes(daemon)[0]


def stop(daemon: Daemon) -> int:
    """Its scribe stands still."""
    pid = scribe(daemon)
    os.kill(pid, signal.SIGSTOP)
    return pid


def go_on(pid: int) -> None:
    os.kill(pid, signal.SIGCONT)


LARGE = {"code_size": "15M"}


def reload(daemon: Daemon, path: Path | str) -> None:
    before = daemon.log().count("settings re-read")
    daemon.configure({"daemon": {"audit_log": str(path)}})
    daemon.process.send_signal(signal.SIGHUP)
    wait_until(lambda: daemon.log().count("settings re-read") > before, "the settings are re-read")


def cells_of(client: Client, session: str) -> int:
    return client.info(session).cells


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


# ---- the scribe ----


def test_a_scribe_that_stands_still(start_daemon: Start, tmp_path: Path) -> None:
    """Nobody waits for it, and all lines are there when it goes on."""
    log = tmp_path / "audit"
    daemon = start_daemon({"daemon": {"audit_log": str(log)}})
    client = daemon.client()
    quiet = run(client, 200)
    wait_until(lambda: len(cells(log, "s")) == 200, "all is written")
    pid = stop(daemon)
    assert run(client, 500) < max(2.0, 3 * quiet)
    assert len(cells(log, "s")) == 200
    go_on(pid)
    wait_until(lambda: cells(log, "s") == list(range(1, 701)), "no line is missed")
    assert "misses" not in daemon.log() and has(log, '"missed"')() is False


REFUSED = "for i in range(64):\n    try: open('/etc/' + 'x' * 4000, 'w')\n    except OSError: pass"


def missing(daemon: Daemon) -> bool:
    return "the audit log misses lines from now on: they come faster" in daemon.log()


def test_more_than_there_is_room_for(start_daemon: Start, tmp_path: Path) -> None:
    """Sessions go on, what is missed is counted, and both logs say how much. Code goes first: then its digest lacks."""
    log = tmp_path / "audit"
    daemon = start_daemon({"daemon": {"audit_log": str(log)}, "profile default": LARGE})
    client = daemon.client()
    client.exec("1", "s")
    pid = stop(daemon)
    sizes = [15_000_000] * 4 + [9_000_000, 6_000_000, 3_000_000, 2_000_000, 1_000_000, 500_000]
    codes = [f"7\n#{i}" + "x" * size for i, size in enumerate(sizes)]
    for code in codes:
        assert client.exec(code, "large").text == "7"
    n = 0
    while not missing(daemon):
        assert client.exec(REFUSED, "s").returncode == 0
        n += 1
        assert n < 200
    quiet = run(client, 100)
    go_on(pid)
    wait_until(lambda: run(client, 1, "last") and "has all lines again" in daemon.log(), "it has room again")
    last = cells_of(client, "last")
    wait_until(lambda: last in cells(log, "last"), "it is written")
    (told,) = re.findall(r"the audit log has all lines again; it misses (\d+)", daemon.log())
    assert daemon.log().count("misses lines from now on") == 1
    lines = entries(log)
    gaps = [line["lines"] for line in lines if line["event"] == "missed"]
    assert sum(gaps) == int(told) > 0
    assert client.stats().audit_missed == int(told)
    assert f"audit    the audit log misses {told} line" in daemon.lair("status").stdout
    os.kill(client.stats().pid, signal.SIGKILL)
    wait_until(lambda: daemon.client().stats().audit_missed == int(told), "the next router knows")
    # Two sessions are opened before, and one after; each cell has a line, and each act that was refused.
    said = 3 + 1 + len(codes) + n + 100 + last + 64 * n
    assert len(lines) - len(gaps) + sum(gaps) == said
    digests = [line["sha256"] for line in lines if line["event"] == "exec" and line.get("session") == "large"]
    codes[3] = ""
    assert digests == [hashlib.sha256(code.encode()).hexdigest() if code else None for code in codes]
    assert quiet < 50


def test_router_killed(start_daemon: Start, tmp_path: Path) -> None:
    """What it has said is written, by the same scribe, which the next router goes on with."""
    log = tmp_path / "audit"
    daemon = start_daemon({"daemon": {"audit_log": str(log)}})
    client = daemon.client()
    client.exec("1", "s")
    pid = stop(daemon)
    for _ in range(3):
        run(client, 50)
        os.kill(client.stats().pid, signal.SIGKILL)
        client = daemon.client()
    run(client, 50)
    go_on(pid)
    wait_until(lambda: len(set(cells(log, "s"))) == 201, "all cells are there")
    assert cells(log, "s") == list(range(1, 202))
    assert scribe(daemon) == pid


def all_of(path: Path, n: int) -> Callable[[], bool]:
    return lambda: set(cells(path, "s")) == set(range(1, n + 1))


def test_scribe_killed(start_daemon: Start, tmp_path: Path) -> None:
    """Another one goes on where it was. It may write the last line again."""
    log = tmp_path / "audit"
    daemon = start_daemon({"daemon": {"audit_log": str(log)}})
    client = daemon.client()
    run(client, 100)
    pid = stop(daemon)
    run(client, 100)
    os.kill(pid, signal.SIGKILL)
    wait_until(all_of(log, 200), "no cell is missed")
    assert len(cells(log, "s")) <= 201 and scribe(daemon) != pid
    assert "the scribe of the audit log was killed by signal 9" in daemon.log()
    for i in range(1, 4):
        os.kill(scribe(daemon), signal.SIGKILL)
        run(client, 100)
        wait_until(all_of(log, 200 + 100 * i), "no cell is missed")


# ---- the end, and another file ----


def test_the_end_waits_for_it(start_daemon: Start, tmp_path: Path) -> None:
    log = tmp_path / "audit"
    daemon = start_daemon({"daemon": {"audit_log": str(log)}})
    client = daemon.client()
    run(client, 100)
    pid = stop(daemon)
    run(client, 100)
    daemon.process.send_signal(signal.SIGTERM)
    time.sleep(1)
    assert daemon.process.poll() is None
    go_on(pid)
    assert daemon.process.wait(20) == 0
    assert cells(log, "s") == list(range(1, 201))
    assert entries(log)[-1]["event"] == "end" and "misses" not in daemon.log()
    assert daemon.left_behind() == []


def test_the_end_does_not_wait_for_ever(start_daemon: Start, tmp_path: Path) -> None:
    log = tmp_path / "audit"
    daemon = start_daemon({"daemon": {"audit_log": str(log)}})
    client = daemon.client()
    run(client, 1)
    wait_until(lambda: cells(log, "s") == [1], "one is written")
    stop(daemon)
    run(client, 99)
    began = time.monotonic()
    assert daemon.terminate() == 0
    assert time.monotonic() - began < 15
    assert "the audit log misses its last 100 lines" in daemon.log(), "99 cells and an end"
    assert daemon.left_behind() == []


def test_keeper_killed(start_daemon: Start, tmp_path: Path) -> None:
    """What was said is written all the same."""
    log = tmp_path / "audit"
    daemon = start_daemon({"daemon": {"audit_log": str(log)}})
    client = daemon.client()
    pid = stop(daemon)
    run(client, 100)
    daemon.process.kill()
    daemon.process.wait()
    go_on(pid)
    wait_until(lambda: cells(log, "s") == list(range(1, 101)), "all cells are there")
    wait_until(lambda: not os.path.exists(f"/proc/{pid}/fd/0"), "it has ended")


@pytest.mark.parametrize("slow", [False, True])
def test_another_file(start_daemon: Start, tmp_path: Path, slow: bool) -> None:
    """What was said before goes where it belongs, also by a scribe that is slow; the next file does not wait for it."""
    first, second = tmp_path / "first", tmp_path / "second"
    daemon = start_daemon({"daemon": {"audit_log": str(first)}})
    client = daemon.client()
    run(client, 50)
    pid = stop(daemon) if slow else scribe(daemon)
    run(client, 50)
    reload(daemon, second)
    run(client, 50)
    wait_until(lambda: cells(second, "s") == list(range(101, 151)), "the rest is in the second")
    if slow:
        assert len(scribes(daemon)) == 2
        go_on(pid)
    wait_until(lambda: cells(first, "s") == list(range(1, 101)), "all are in the first")
    wait_until(lambda: pid not in scribes(daemon), "the first one has ended")
    reload(daemon, "")
    wait_until(lambda: not scribes(daemon), "there is none without a log")
    run(client, 50)
    assert len(cells(second, "s")) == 50
    reload(daemon, second)
    run(client, 50)
    wait_until(lambda: cells(second, "s")[50:] == list(range(201, 251)), "it is written again")
    assert "misses" not in daemon.log()


def test_rotated(start_daemon: Start, tmp_path: Path) -> None:
    """Renamed, it is written to until laird is told; the same file keeps its scribe, as in a reload of other settings."""
    log, old = tmp_path / "audit", tmp_path / "audit.1"
    daemon = start_daemon({"daemon": {"audit_log": str(log)}})
    client = daemon.client()
    run(client, 50)
    pid = scribe(daemon)
    reload(daemon, log)
    assert scribe(daemon) == pid
    log.rename(old)
    run(client, 50)
    reload(daemon, log)
    run(client, 50)
    wait_until(lambda: cells(old, "s") == list(range(1, 101)), "the old one has what was before")
    wait_until(lambda: cells(log, "s") == list(range(101, 151)), "the new one the rest")
    wait_until(lambda: pid not in scribes(daemon), "its scribe has ended")


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
    wait_until(lambda: cells(log, "s") == list(range(1, 21)), "all is written")
    assert len(scribes(daemon)) == 1


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


def ask_reload(client: Client) -> int:
    request = m.Reload(id=client.new_id())
    client.send(request)
    return request.id


@pytest.mark.parametrize("held", [leased, watched])
def test_a_file_that_does_not_open(start_daemon: Start, tmp_path: Path, held: Any) -> None:
    """Everybody else is answered; the reload is refused, and the log stays what it was."""
    log, other = tmp_path / "audit", tmp_path / "other"
    daemon = start_daemon({"daemon": {"audit_log": str(log)}})
    client, operator = daemon.client(), daemon.client()
    run(client, 10)
    daemon.configure({"daemon": {"audit_log": str(other)}, "profile late": {}})
    with held(other):
        asked = ask_reload(operator)
        wait_until(lambda: len(scribes(daemon)) == 2, "another scribe opens the file")
        began = time.monotonic()
        run(client, 10)
        # A cell takes a millisecond, and the file would not open for many seconds.
        assert time.monotonic() - began < 2
        with pytest.raises(LairError, match=f"^settings: cannot append to audit_log = {other}: .*did not open"):
            operator.finish(asked, m.ReloadReply)
        assert "nothing has changed" in daemon.log()
        with pytest.raises(LairError, match="^bad_request: "):
            client.exec("1", "t", profile="late")
        wait_until(lambda: len(scribes(daemon)) == 1, "whoever could not open it has given up", 20)
    run(client, 10)
    wait_until(lambda: cells(log, "s") == list(range(1, 31)), "all is written")
    operator.call(m.Reload(id=operator.new_id()), m.ReloadReply)
    run(client, 10)
    wait_until(lambda: cells(other, "s") == list(range(31, 41)), "the rest is in the other")


def test_a_file_that_opens_late(start_daemon: Start, tmp_path: Path) -> None:
    """What is asked meanwhile is done afterwards, and not with the settings that were read before."""
    log, other = tmp_path / "audit", tmp_path / "other"
    daemon = start_daemon({"daemon": {"audit_log": str(log)}})
    client, operators = daemon.client(), [daemon.client() for _ in range(3)]
    daemon.configure({"daemon": {"audit_log": str(other)}, "profile first": {}})
    with leased(other):
        asked = [ask_reload(operators[0])]
        wait_until(lambda: len(scribes(daemon)) == 2, "another scribe opens the file")
        daemon.configure({"daemon": {"audit_log": str(other)}, "profile second": {}})
        asked += [ask_reload(it) for it in operators[1:]]
        run(client, 10)
    told = [it.finish(id, m.ReloadReply).changes for it, id in zip(operators, asked, strict=True)]
    assert [it["setting"] for it in told[0] if "setting" in it] == ["audit_log"]
    assert [it["profile"] for it in told[0] if "setting" not in it] == ["first"]
    assert told[1] == told[2]
    assert sorted((it["profile"], it["change"]) for it in told[1]) == [("first", "removed"), ("second", "added")]
    assert client.exec("1", "t", profile="second").text == "1"


def test_a_stop_does_not_wait_for_it(start_daemon: Start, tmp_path: Path) -> None:
    other = tmp_path / "other"
    daemon = start_daemon({})
    operator = daemon.client()
    daemon.configure({"daemon": {"audit_log": str(other)}})
    with leased(other):
        asked = ask_reload(operator)
        wait_until(lambda: scribes(daemon), "a scribe opens the file")
        daemon.process.terminate()
        with pytest.raises(LairError, match="^gone: laird is stopping"):
            operator.finish(asked, m.ReloadReply)
        assert daemon.process.wait(20) == 0


def test_a_fifo_is_no_audit_log(start_daemon: Start, tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    daemon = start_daemon({})
    daemon.configure({"daemon": {"audit_log": str(fifo)}})
    done = daemon.lair("reload")
    assert done.returncode == 125 and f"cannot append to audit_log = {fifo}: " in done.stderr
    wait_until(lambda: not scribes(daemon), "no scribe stays for it")


def test_a_start_says_that_it_does_not_open(tmp_path: Path, start_daemon: Start) -> None:
    log = tmp_path / "audit"
    with leased(log):
        daemon = start_daemon({"daemon": {"audit_log": str(log)}}, wait=False)
        assert daemon.process.wait(30) == 1
    assert f"cannot append to audit_log = {log}: it did not open within " in daemon.log()


def test_whoever_follows_opens_it_again(start_daemon: Start, tmp_path: Path) -> None:
    """Renamed, its lines go to the file of its name when a scribe dies, and laird's log says so."""
    log, old = tmp_path / "audit", tmp_path / "audit.1"
    daemon = start_daemon({"daemon": {"audit_log": str(log)}})
    client = daemon.client()
    run(client, 10)
    wait_until(lambda: cells(log, "s") == list(range(1, 11)), "they are written")
    log.rename(old)
    pid = scribe(daemon)
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: scribes(daemon) not in ([], [pid]), "another one follows")
    run(client, 10)
    wait_until(lambda: log.exists() and cells(log, "s") == list(range(11, 21)), "the rest")
    assert "the audit log is another file than before" in daemon.log()

"""Templates that die: whoever waits for one gets what the next one makes."""

from __future__ import annotations

import ctypes
import mmap
import os
import re
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from daemon import Daemon, children, command_of, wait_until
from lair import Client, LairError
from lair.messages import Exec, ExecReply, Open, Shutdown

PROFILE = {"profile default": {"spares": "0", "preload": "numpy"}}


def is_warden(pid: int) -> bool:
    """It is the first process of a pid namespace."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return True
    return any(line.startswith("NSpid:") and len(line.split()) > 2 for line in status.splitlines())


def templates(daemon: Daemon) -> list[int]:
    kernels = [pid for pid in children(daemon.process.pid) if command_of(pid).startswith("lair-kernel")]
    return [pid for pid in kernels if not is_warden(pid)]


def kill_the_next(daemon: Daemon, known: int = 0) -> int:
    (pid,) = wait_until(lambda: [pid for pid in templates(daemon) if pid != known], "a template starts")
    os.kill(pid, signal.SIGKILL)
    return int(pid)


def test_a_template_killed_while_a_session_waits_is_replaced(start_daemon: Callable[..., Daemon]) -> None:
    daemon = start_daemon(PROFILE, wait=False)
    killed = kill_the_next(daemon)
    daemon.wait_ready()
    client = daemon.client()
    waiting = client.start("6 * 7", "s")
    kill_the_next(daemon, killed)
    assert client.finish(waiting, ExecReply).text == "42"


def test_a_template_of_old_settings_killed_while_a_session_waits(start_daemon: Callable[..., Daemon]) -> None:
    """Other settings are in force meanwhile. The session gets those that it was opened with."""
    daemon = start_daemon({"profile default": {"spares": "0", "preload": "", "env": "WHICH=old"}})
    client = daemon.client()
    client.exec("1")
    (template,) = templates(daemon)
    os.kill(template, signal.SIGSTOP)
    waiting = client.start("import os; os.environ['WHICH']", "s")
    wait_until(lambda: client.list(), "it waits for the template")
    daemon.configure({"profile default": {"spares": "0", "preload": "", "env": "WHICH=new"}})
    daemon.process.send_signal(signal.SIGHUP)
    wait_until(lambda: "settings re-read" in daemon.log(), "it has other settings")
    os.kill(template, signal.SIGKILL)
    assert client.finish(waiting, ExecReply).text == "'old'"
    assert client.exec("import os; os.environ['WHICH']").text == "'new'"
    client.shutdown("s")


def test_a_router_killed_while_a_session_waits_for_old_settings(start_daemon: Callable[..., Daemon]) -> None:
    """The next router has a template with those started, too."""
    daemon = start_daemon({"profile default": {"spares": "0", "preload": "", "env": "WHICH=old"}})
    with daemon.client() as client:
        client.exec("1")
        router = client.stats().pid
        (template,) = templates(daemon)
        os.kill(template, signal.SIGSTOP)
        waiting = Exec(id=client.new_id(), session="s", key="waits", code="import os; os.environ['WHICH']")
        client.send(waiting)
        wait_until(lambda: client.list(), "it waits for the template")
    daemon.configure({"profile default": {"spares": "0", "preload": "", "env": "WHICH=new"}})
    os.kill(router, signal.SIGKILL)
    os.kill(template, signal.SIGCONT)
    with daemon.client() as client:
        assert client.call(waiting, ExecReply).text == "'old'"
        client.shutdown("s")


def test_more_wait_than_it_has_room_for(start_daemon: Callable[..., Daemon]) -> None:
    """Who comes behind those who fill its channel gets one, too; the others end before theirs is made."""
    daemon = start_daemon({"profile default": {"spares": "0", "preload": ""}})
    with daemon.client() as client:
        client.exec("1")
        (template,) = templates(daemon)
        os.kill(template, signal.SIGSTOP)
        for i in range(600):
            client.send(Open(id=client.new_id(), session=f"s{i}"))
        last = client.start("6 * 7", "last")
        for i in range(600):
            client.send(Shutdown(id=client.new_id(), session=f"s{i}"))
        wait_until(lambda: len(client.list()) == 1, "the others end", timeout=30)
        os.kill(template, signal.SIGCONT)
        assert client.finish(last, ExecReply).text == "42"
        client.shutdown("last")


def wait_for_templates(daemon: Daemon, n: int) -> None:
    wait_until(lambda: daemon.log().count("is ready: python") >= n, f"{n} templates were ready")


def test_settings_read_again_while_spares_are_made(start_daemon: Callable[..., Daemon]) -> None:
    """One that is not needed any more goes without a word, however far it has come."""
    daemon = start_daemon({"profile default": {"spares": "6", "preload": ""}})
    client = daemon.client()
    for i in range(40):
        wait_for_templates(daemon, i + 1)
        time.sleep(i % 10 / 500)
        daemon.process.send_signal(signal.SIGHUP)
    assert client.exec("6 * 7").text == "42"
    assert " error " not in daemon.log()


def test_sessions_outlive_the_template_they_were_grown_from(start_daemon: Callable[..., Daemon]) -> None:
    daemon = start_daemon({"profile default": {"spares": "1", "preload": ""}})
    client = daemon.client()
    client.exec("x = 1", "s")
    wait_until(lambda: client.stats().spares, "a spare waits")
    (template,) = templates(daemon)
    os.kill(template, signal.SIGKILL)
    assert client.exec("x + 1", "s").text == "2"
    assert client.exec("1", "another").text == "1"


def test_one_that_dies_each_time_is_told(start_daemon: Callable[..., Daemon], tmp_path: Path) -> None:
    subprocess.run(["/usr/bin/python3", "-m", "venv", "--without-pip", str(tmp_path)], check=True)
    (packages,) = tmp_path.glob("lib/python3.*/site-packages")
    (packages / "deadly.py").write_text("import os\nos.kill(os.getpid(), 9)\n")
    daemon = start_daemon({"profile default": {"spares": "0", "python": str(tmp_path), "preload": "deadly"}})
    with pytest.raises(LairError, match="it died"):
        daemon.client().exec("1", "s")
    assert daemon.log().count("died: starting another") == 5


def can_gather() -> bool:
    """Whether this kernel makes a large page when it is asked to: 6.1 and later, if they are not off."""
    page, large = 4096, 2 << 20
    memory = mmap.mmap(-1, 2 * large, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory.write(b"x" * len(memory))
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    offset = -start % large // page * page
    libc = ctypes.CDLL(None)
    return bool(libc.madvise(ctypes.c_void_p(start + offset), ctypes.c_size_t(large), 25) == 0)


needs_large_pages = pytest.mark.skipif(
    not can_gather(), reason="this kernel makes no large page when it is asked to"
)


def rollup(pid: int) -> dict[str, int]:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
    return {line.split(":")[0]: int(line.split()[1]) << 10 for line in lines}


def interpreter(client: Client, session: str) -> int:
    """The one that runs, not a frozen copy of it."""
    client.exec("1", session)
    (pid,) = [
        pid
        for pid in children(client.info(session).pid)
        if Path(f"/proc/{pid}/comm").read_text().strip() == "lair-python"
    ]
    return pid


@needs_large_pages
def test_its_memory_lies_in_large_pages(start_daemon: Callable[..., Daemon]) -> None:
    daemon = start_daemon({"profile default": {"spares": "0", "preload": "numpy"}})
    daemon.client().exec("1", "s")  # which waited, and so came before the rest was warmed up
    wait_until(lambda: "profile default is ready" in daemon.log(), "the template is ready", 60)
    (template,) = templates(daemon)
    size = rollup(template)
    assert size["AnonHugePages"] > size["Anonymous"] / 2


@needs_large_pages
def test_a_session_writes_to_few_of_them(start_daemon: Callable[..., Daemon]) -> None:
    """What a library has made lies where no cell has anything to do: a large page in which one byte is written is none."""
    client = start_daemon({"profile default": {"spares": "0", "preload": "pandas"}}).client()
    client.exec("import os; os.environ['X'] = str([i for i in range(1000)])", "s")
    size = rollup(interpreter(client, "s"))
    assert size["AnonHugePages"] > size["Anonymous"] / 7, size


@needs_large_pages
@pytest.mark.parametrize("code", ["x = b'1' * (64 << 20)", "x = [[i] for i in range(700_000)]"])
def test_what_a_session_adds_too(client: Client, session: str, code: str) -> None:
    """Of what is much, at least two thirds: a fork of it takes a millisecond, not ten."""
    pid = interpreter(client, session)
    before = rollup(pid)
    assert client.exec(code, session).returncode == 0
    after = rollup(pid)
    grown = {name: after[name] - before[name] for name in after}
    assert grown["Anonymous"] > 60 << 20, grown
    assert grown["AnonHugePages"] > grown["Anonymous"] * 2 / 3, grown


def test_a_library_is_two_mappings(start_daemon: Callable[..., Daemon]) -> None:
    daemon = start_daemon({"profile default": {"spares": "0", "preload": "numpy"}})
    daemon.client().exec("1", "s")
    (template,) = templates(daemon)
    lines = Path(f"/proc/{template}/maps").read_text().splitlines()
    code = Counter(line.split()[5] for line in lines if "numpy" in line)
    assert code and max(code.values()) == 1, code
    data = [line for line in lines if "lair-libraries" in line]
    assert len(code) <= len(data) < len(lines) / 2


def test_a_fork_has_data_of_few_libraries(client: Client, session: str) -> None:
    """Of the others the kernel keeps nothing for it."""
    name, data, own = "", set(), set()
    pid = interpreter(client, session)
    for line in Path(f"/proc/{pid}/smaps").read_text().splitlines():
        if re.match("[0-9a-f]+-", line):
            name = line.split()[0] if "lair-libraries" in line else ""
            data |= {name} - {""}
        elif name and line.startswith("Anonymous:") and not line.endswith(" 0 kB"):
            own.add(name)
    assert 0 < len(own) < len(data) / 3, (own, data)


def test_what_a_template_did_not_free_is_not_in_the_way(start_daemon: Callable[..., Daemon]) -> None:
    """Python's memory of sessions grows and shrinks, also by what is larger than an arena."""
    client = start_daemon({"profile default": {"preload": "numpy"}}).client()
    code = "x = [str(i) * 9 for i in range(300_000)]; n = sum(map(len, x)); del x\nn"
    assert {client.exec(code, "s").text for _ in range(3)} == {"15200010"}
    deep = "def f(n): return n and 1 + f(n - 1)\nimport sys; sys.setrecursionlimit(9000)\nf(5000)"
    assert {client.exec(deep, "s").text for _ in range(3)} == {"5000"}

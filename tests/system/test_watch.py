"""What there is to see of sessions: who owns them, what they use, and what they may use."""

from __future__ import annotations

import os
import pwd
import signal

import pytest

import lair
from daemon import Daemon, wait_until
from lair import Client, LairError
from lair import messages as m

pytestmark = pytest.mark.usefixtures("no_sessions_left")

SETTINGS = {
    "profile default": {
        "memory": "512M",
        "processes": "100",
        "workspace_size": "64M",
        "cell_timeout": "20s",
        "idle_ttl": "1h",
        "hard_ttl": "2h",
        "cpu": "1.5",
    },
    "profile kept": {"checkpoint": "cell"},
    "profile free": {
        "memory": "off",
        "processes": "off",
        "workspace_size": "off",
        "cell_timeout": "off",
        "idle_ttl": "off",
        "hard_ttl": "off",
    },
}

DEAF = "import time\nwhile True:\n    try: time.sleep(60)\n    except BaseException: pass"

LIMITS = {
    "memory_limit": 512 << 20,
    "tasks_limit": 100,
    "disk_limit": 64 << 20,
    "cpu_limit": 1.5,
    "cell_timeout": 20.0,
    "idle_ttl": 3600.0,
    "hard_ttl": 7200.0,
}
FILL = "open('f', 'wb').write(b'x' * (20 << 20)); import time; time.sleep(0.6)"
THREADS = (
    "import threading\nover = threading.Event()\nfor _ in range(5): threading.Thread(target=over.wait).start()"
)
CALCULATE = "import time\nend = time.process_time() + 0.3\nwhile time.process_time() < end: pass"


def test_limits(daemon: Daemon, client: Client) -> None:
    client.open("a")
    client.open("b", "free")
    info = client.info("a")
    assert {name: getattr(info, name) for name in LIMITS} == LIMITS
    document = daemon.lair_json("info", "a")
    assert {name: document[name] for name in LIMITS} == LIMITS
    free = client.info("b")
    assert not any(getattr(free, name) for name in LIMITS)
    assert all(daemon.lair_json("info", "b")[name] is None for name in LIMITS)
    with lair.Connection(str(daemon.socket)) as connection:
        assert lair.Session("a", connection=connection).info().memory_limit == 512 << 20
        assert {it.session: it.tasks_limit for it in lair.sessions(connection)} == {"a": 100, "b": 0}


def test_use(daemon: Daemon, client: Client) -> None:
    for code in (FILL, THREADS, CALCULATE):
        assert client.exec(code, "a").returncode == 0
    info = wait_until(lambda: (it := client.info("a")).tasks >= 6 and it, "it is measured")
    assert 20 << 20 <= info.disk < 22 << 20 and info.files == 1
    assert info.cpu and 0.25 <= info.cpu < 10  # in ticks, cut twice
    client.exec("over.set()", "a")
    wait_until(lambda: client.info("a").tasks < 6, "its threads have ended")


def test_what_has_ended_has_used_it_too(client: Client) -> None:
    client.exec(CALCULATE, "a")
    client.reset("a")
    client.exec("1", "a")
    assert wait_until(lambda: (client.info("a").cpu or 0) >= 0.25, "it is measured")


def test_for_people(daemon: Daemon, client: Client) -> None:
    client.exec(FILL, "a")
    client.open("b", "free")
    me = pwd.getpwuid(os.geteuid()).pw_name
    shown = dict(line.split(None, 1) for line in daemon.lair("info", "a").stdout.splitlines())
    assert shown["owner"] == me
    assert shown["memory"].endswith(" of 512.0 MiB")
    assert shown["disk"] == "20.0 MiB of 64.0 MiB, 1 files"
    assert shown["processes"] == "1 of 100, with threads"
    assert shown["cpu"].endswith("s, of 1.5 processors")
    assert shown["time"] == "limits cell 20s, idle 1h 0m, in all 2h 0m"
    heads, first, second = daemon.lair("ls", "-l").stdout.splitlines()
    assert heads.split()[-4:] == ["OWNER", "CPU", "DISK", "PROCESSES"]
    assert me in first and "20.0 MiB of 64.0 MiB" in first and first.endswith(" 1 of 100")
    assert " of " not in second
    assert len(daemon.lair("ls").stdout.splitlines()[0].split()) == 7


def test_none_of_many_is_left_out(daemon: Daemon, client: Client) -> None:
    """Of many sessions only a few are measured for one list: each has its turn."""
    names = [f"s{i:02}" for i in range(20)]
    for name in names:
        assert client.exec(THREADS, name).returncode == 0
    busy = [client.start("while True: pass", name) for name in names]
    wait_until(lambda: all(it.tasks >= 6 for it in client.list()), "each was measured", 20)
    for name in names:
        client.interrupt(name)
    for cell in busy:
        assert client.finish(cell, m.ExecReply).cause == "interrupt"


def test_counters_go_on_over_routers(daemon: Daemon, client: Client) -> None:
    for _ in range(5):
        client.exec("1")
    with pytest.raises(LairError):
        client.info("none")
    before = client.stats()
    assert before.cells >= 5 and before.opened >= 5 and before.refused >= 1
    os.kill(before.pid, signal.SIGKILL)
    after = wait_until(lambda: (it := daemon.client().stats()).pid != before.pid and it, "another router answers")
    for name in ("opened", "ended", "cells", "requests", "refused"):
        assert getattr(after, name) >= getattr(before, name), name
    assert after.cells == before.cells and after.uptime < before.uptime
    assert daemon.lair_json("status")["cells"] == before.cells
    daemon.lair("upgrade")
    assert daemon.client().stats().cells == before.cells


BAD_ENDS = ("timed_out", "out_of_memory", "crashed", "rolled_back")


def bad_ends(client: Client) -> dict[str, int]:
    stats = client.stats()
    return {name: getattr(stats, name) for name in BAD_ENDS}


def test_how_cells_end_is_counted(daemon: Daemon, client: Client) -> None:
    def since(before: dict[str, int]) -> tuple[int, ...]:
        return tuple(now - before[name] for name, now in bad_ends(client).items())

    client.exec("x = 1", "s", profile="kept")
    for code, timeout, state, expected in (
        ("x", None, "kept", (0, 0, 0, 0)),
        ("raise SystemExit(3)", None, "kept", (0, 0, 0, 0)),
        ("1 / 0", None, "kept", (0, 0, 0, 0)),
        ("while True: pass", 0.3, "kept", (1, 0, 0, 0)),
        (DEAF, 0.3, "rolled_back", (1, 0, 0, 1)),
        ("import os; os._exit(3)", None, "rolled_back", (0, 0, 1, 1)),
        ("import os; os.kill(os.getpid(), 11)", None, "rolled_back", (0, 0, 1, 1)),
    ):
        before = bad_ends(client)
        assert client.exec(code, "s", timeout=timeout).state == state, code
        assert since(before) == expected, code
    before = bad_ends(client)
    assert client.exec("import os; os._exit(3)").state == "ended"
    assert since(before) == (0, 0, 1, 0), "a one-shot goes back to nothing"
    client.exec("x = 2", "s")
    client.call(m.Undo(id=client.new_id(), session="s"), m.StateReply)
    client.call(m.Reset(id=client.new_id(), session="s"), m.Reply)
    assert since(before) == (0, 0, 1, 0), "who goes back on purpose has lost nothing"


def test_how_cells_ended_is_known_to_the_next_router(daemon: Daemon, client: Client) -> None:
    client.exec("import os; os._exit(3)", "s")
    before = client.stats()
    assert before.crashed > 0 and before.rolled_back > 0
    os.kill(before.pid, signal.SIGKILL)
    wait_until(lambda: (it := daemon.client().stats()).pid != before.pid and it, "another router answers")
    now = daemon.client()
    assert bad_ends(now) == {name: getattr(before, name) for name in BAD_ENDS}
    told = daemon.lair_json("status")
    assert {name: told[name] for name in BAD_ENDS} == bad_ends(now)
    assert f"{before.crashed} crashed; {before.rolled_back} roll-back" in daemon.lair("status").stdout
    now.shutdown("s")

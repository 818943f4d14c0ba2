"""The first cells after a start, while the template still loads what the profile preloads."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from daemon import BIN, Daemon, wait_until
from test_router_death import kill_router

Start = Callable[..., Daemon]
# So many modules take a while.
HEAVY = {"preload": "numpy? pandas? scipy.stats?", "checkpoint": "cell"}
READY = "profile default is ready: python"
WITHOUT = "profile default is ready, without what it preloads: python"


def begin(start_daemon: Start, **settings: str) -> Daemon:
    return start_daemon({"profile default": {**HEAVY, **settings}})


def environment(daemon: Daemon) -> dict[str, str]:
    return {**daemon.env, "LAIR_SOCKET": str(daemon.socket), "LAIR_NO_START": "1"}


def templates(daemon: Daemon) -> list[int]:
    found = []
    for pid in daemon.processes():
        with suppress(FileNotFoundError, ProcessLookupError):
            _, name, rest = re.split(r"[()]", Path(f"/proc/{pid}/stat").read_text())
            if (
                name == "lair-template" and int(rest.split()[1]) == daemon.process.pid
            ):  # not a child that looks round
                found.append(pid)
    return found


def test_a_cell_that_names_nothing_of_it_does_not_wait(start_daemon: Start) -> None:
    daemon = begin(start_daemon)
    assert (
        daemon.client().exec("import sys; 6 * 7, 'pandas' in sys.modules".replace("'pandas'", "'pan' 'das'")).text
        == "(42, False)"
    )
    assert READY not in daemon.log()
    wait_until(lambda: WITHOUT in daemon.log(), "the template without", 60)
    wait_until(lambda: READY in daemon.log(), "the template with everything", 60)
    assert daemon.client().exec("import sys; 'pan' 'das' in sys.modules").text == "True"


def test_one_that_names_something_gets_it_loaded(start_daemon: Start) -> None:
    daemon = begin(start_daemon)
    code = "import sys; there = 'scipy' in sys.modules; import numpy; there"
    assert daemon.client().exec(code, timeout=60).text == "True"
    assert WITHOUT not in daemon.log()


def test_who_waits_is_served_before_all_is_warmed_up(start_daemon: Start) -> None:
    """Spares come afterwards."""
    daemon = begin(start_daemon, spares="2")
    client = daemon.client()
    command = [str(BIN / "lair"), "exec", "-s", "a", "import numpy; x = numpy.arange(3)"]
    stays = subprocess.Popen(command, env=environment(daemon))
    assert client.exec("import scipy.stats; 6 * 7", timeout=60).text == "42"
    assert stays.wait(60) == 0
    wait_until(lambda: client.stats().spares == 2, "the spares", 60)
    assert client.exec("x += 1; int(x.sum())", "a").text == "6"
    client.undo("a")
    assert client.exec("import scipy.stats; int(x.sum())", "a", timeout=60).text == "3"
    assert client.exec("import sys; 'scipy.stats' in sys.modules", "b").text == "True"
    assert len(templates(daemon)) == 1


def test_a_one_shot_that_gives_up(start_daemon: Start) -> None:
    """Its template is as good as any other."""
    daemon = begin(start_daemon)
    one_shot = subprocess.Popen([BIN / "lair", "exec", "import numpy"], env=environment(daemon))
    wait_until(lambda: "one-shot for" in daemon.log(), "the one-shot")
    one_shot.kill()
    one_shot.wait()
    wait_until(lambda: READY in daemon.log(), "the template with everything", 60)
    assert daemon.client().exec("import numpy; 6 * 7", "a", timeout=60).text == "42"


def test_a_session_that_stays_has_all_that_others_have(start_daemon: Start) -> None:
    daemon = begin(start_daemon)
    client = daemon.client()
    assert client.exec("x = 41", "a").returncode == 0
    assert READY not in daemon.log()
    wait_until(lambda: READY in daemon.log(), "the template with everything", 60)
    assert client.exec("import numpy; int(numpy.arange(3).sum()) + x", "a", timeout=60).text == "44"
    assert client.exec("import os; os._exit(9)", "a").state == "rolled_back"
    assert client.exec("x", "a").text == "41"
    client.branch("a", "b")
    kill_router(daemon)
    assert daemon.client().exec("x + 1", "b").text == "42"
    daemon.client().reset("a")
    assert daemon.client().exec("'x' in globals()", "a").text == "False"


def test_its_template_ends_when_the_other_is_there(start_daemon: Start) -> None:
    daemon = begin(start_daemon)
    daemon.client().exec("1", "a")
    wait_until(lambda: READY in daemon.log(), "the template with everything", 60)

    wait_until(lambda: len(templates(daemon)) == 1, "one template")
    assert daemon.client().exec("1", "a").text == "1"


def test_several_at_once_share_one(start_daemon: Start) -> None:
    daemon = begin(start_daemon)
    keys = [daemon.lair("exec", "--detach", f"{i} * 10").stdout.strip() for i in range(4)]
    assert [daemon.lair("attach", "--key", key).stdout for key in keys] == [f"{i * 10}\n" for i in range(4)]
    wait_until(lambda: READY in daemon.log(), "the template with everything", 60)
    assert daemon.log().count(WITHOUT) == 1


def test_a_profile_that_cannot_be_loaded_says_so(start_daemon: Start) -> None:
    daemon = begin(start_daemon, preload="numpy? nonesuch")
    client = daemon.client()
    wait_until(lambda: "nonesuch" in daemon.log(), "the template fails", 60)
    with pytest.raises(Exception, match="nonesuch"):
        client.exec("1")


def test_what_must_be_there_is_waited_for(start_daemon: Start) -> None:
    daemon = begin(start_daemon, preload="numpy? pandas")
    assert daemon.client().exec("import sys; 'pan' 'das' in sys.modules", timeout=60).text == "True"
    assert WITHOUT not in daemon.log()


def test_a_reload_while_it_loads(start_daemon: Start) -> None:
    daemon = begin(start_daemon)
    client = daemon.client()
    assert client.exec("x = 1", "a").returncode == 0
    daemon.configure({"profile default": {"preload": ""}})
    assert daemon.lair("reload").returncode == 0
    assert client.exec("x", "a").text == "1"
    assert client.exec("2", "b").text == "2"


def test_templates_load_in_turn(start_daemon: Start) -> None:
    """One processor is left to whoever asks for something."""
    profiles = ["default", "second", "third"]
    daemon = start_daemon({f"profile {name}": {"preload": "numpy? pandas?", "spares": "0"} for name in profiles})
    most = max(len(os.sched_getaffinity(0)), os.cpu_count() or 1) - 1

    def ready() -> int:
        return sum(f"profile {name} is ready: python" in daemon.log() for name in profiles)

    def all_ready() -> bool:
        assert len(templates(daemon)) - ready() <= max(most, 1)
        return ready() == len(profiles)

    wait_until(all_ready, "all templates", 120)


def test_a_template_that_is_asked_for_has_its_turn_at_once(start_daemon: Start) -> None:
    daemon = start_daemon({f"profile {name}": HEAVY for name in ("default", "second", "third")})
    result = daemon.client().exec("import scipy.stats; 6 * 7", "a", profile="third", timeout=60)
    assert result.text == "42"
    if (os.cpu_count() or 1) <= 2:
        assert "profile second is ready: python" not in daemon.log()
    wait_until(lambda: "profile third is ready: python" in daemon.log(), "the one that was asked for", 60)


def test_what_is_still_loading_is_told(start_daemon: Start) -> None:
    daemon = begin(start_daemon)
    told = daemon.lair("start").stdout
    assert told.endswith("; what profiles preload is still loading: default\n"), told
    assert daemon.lair_json("start")["loading"] == ["default"]
    wait_until(lambda: READY in daemon.log(), "the template with everything", 60)
    assert daemon.lair_json("status")["loading"] == []
    assert "loading" not in daemon.lair("start").stdout + daemon.lair("status").stdout

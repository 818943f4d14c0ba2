"""The profile for a person's own work: which doors open sessions with it, and what the shipped one grants."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from daemon import Daemon, Settings
from http_server import Tenant, server_of
from kernels import kernel_of

SHIPPED = (Path(__file__).parents[2] / "sessions.conf").read_text()
ANN = 61700
Start = Callable[..., Daemon]


def shipped(profile: str) -> dict[str, str]:
    """The section of the shipped settings, without what takes a while to load."""
    section = SHIPPED.split(f"\n[profile {profile}]\n")[1].split("\n[")[0]
    found = dict(line.split(" = ", 1) for line in section.splitlines() if " = " in line and line[0].isalpha())
    return {**found, "preload": ""}


SETTINGS: Settings = {
    "daemon": {"socket_mode": "0666"},
    "profile default": {"preload": "", "spares": "0"},
    "profile workbench": shipped("workbench"),
}


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    it = Daemon(SETTINGS)
    yield it
    it.end()


def profile_of(daemon: Daemon, session: str) -> str:
    return str(daemon.lair_json("info", session)["profile"])


def test_a_person_s_doors_take_it_and_a_program_s_do_not(daemon: Daemon) -> None:
    daemon.lair("repl", "-s", "prompt", input="1\n")
    daemon.lair("exec", "-s", "program", "1")
    daemon.lair("open", "opened")
    assert [profile_of(daemon, it) for it in ("prompt", "program", "opened")] == ["workbench", "default", "default"]
    daemon.lair("repl", "-s", "told", "-p", "default", input="1\n")
    assert profile_of(daemon, "told") == "default"
    with kernel_of(daemon, "--session", "notebook") as kernel:
        assert kernel.client().value("6 * 7") == "42"
    assert profile_of(daemon, "notebook") == "workbench"
    with server_of(daemon) as server:
        sandbox = Tenant(server, "any").create()
        assert profile_of(daemon, sandbox.id) == "workbench"
        assert server.ask("POST", "/v1/sessions/model/exec", {"code": "1"}).status == 200
    assert profile_of(daemon, "model") == "default"


def test_what_it_grants(daemon: Daemon) -> None:
    typed = """import os, subprocess, _posixsubprocess
print(os.getcwd(), subprocess.run(["echo", "a program"], capture_output=True, text=True).stdout)
print("terminal", os.ttyname(os.openpty()[1]))
print("threads", os.environ["OPENBLAS_NUM_THREADS"] == str(len(os.sched_getaffinity(0))))
open("/etc/hosts", "w")
"""
    said = daemon.lair("repl", "-s", "granted", input=typed)
    for expected in ("/home/user a program", "terminal /dev/pts/", "threads True"):
        assert expected in said.stdout, said
    assert "PermissionError: /etc/hosts" in said.stderr
    assert shipped("workbench")["on_expire"] == "save"


def test_a_session_that_is_there_is_taken_as_it_is(daemon: Daemon) -> None:
    daemon.lair("exec", "-s", "there", "x = 42")
    assert daemon.lair("repl", "-s", "there", input="x\n").stdout == "42\n"
    assert profile_of(daemon, "there") == "default"
    refused = daemon.lair("repl", "-s", "there", "-p", "workbench", input="x\n")
    assert refused.returncode and 'has the profile "default", not "workbench"' in refused.stderr


def test_without_such_a_profile_there_is_the_default_one(start_daemon: Start) -> None:
    daemon = start_daemon({"profile default": {"preload": ""}})
    assert daemon.lair("repl", "-s", "s", input="6 * 7\n").stdout == "42\n"
    assert profile_of(daemon, "s") == "default"
    refused = daemon.lair("repl", "-s", "t", "-p", "workbench", input="1\n")
    assert refused.returncode and 'there is no profile "workbench"' in refused.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root serves several users")
def test_another_user_gets_it_of_root_only_by_name(daemon: Daemon) -> None:
    """The wish of a prompt is granted by the default profile; who insists is refused."""
    ask = "from lair import messages as m; print(c.call(m.Open(id=c.new_id(), session={!r}, profile={!r}), m.SessionInfo).profile)"
    assert daemon.as_user(ANN, ask.format("a", "workbench?")) == "default"
    assert daemon.as_user(ANN, ask.format("b", "workbench")) == "denied"

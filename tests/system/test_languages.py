"""A second language, through every door: toy.c is a calculator that knows nothing of Lair but the seam."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest

from daemon import BIN, USAGE, Daemon, config_text
from http_server import server_of
from kernels import kernel_of
from lair import Connection, Session
from mcp_server import McpServer
from test_http_e2b import Tenant, text_of

TOY = {"language": "toy", "checkpoint": "cell", "grace": "300ms"}


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    it = Daemon({"profile default": TOY, "profile science": {"language": "python"}})
    yield it
    it.end()


def test_cells_on_the_command_line(daemon: Daemon, session: str) -> None:
    assert daemon.lair("exec", "-s", session, "x = 41").stdout == ""
    assert daemon.lair("exec", "-s", session, "print x\nx + 1").stdout == "41\n42\n"
    failed = daemon.lair("exec", "-s", session, "y")
    assert (failed.returncode, failed.stderr) == (1, "ToyError: no such variable: y\n")
    table = daemon.lair("vars", session).stdout
    assert "x " in table and "number" in table and "41" in table


def test_undo_and_branch(daemon: Daemon, session: str) -> None:
    lair = daemon.lair_json
    for code in ("x = 1", "x = 2"):
        lair("exec", "-s", session, code)
    lair("undo", session)
    assert lair("exec", "-s", session, "x")["text"] == "1"
    lair("branch", session, f"{session}.b")
    lair("exec", "-s", f"{session}.b", "x = 5")
    assert lair("exec", "-s", f"{session}.b", "x")["text"] == "5"
    assert lair("exec", "-s", session, "x")["text"] == "1"


def test_a_late_cell_is_interrupted_or_rolled_back(daemon: Daemon, session: str) -> None:
    lair = daemon.lair_json
    lair("exec", "-s", session, "x = 41")
    soft = lair("exec", "-s", session, "-t", "0.3", "x = 1\nspin")
    assert (soft["state"], soft["cause"], soft["error"]["name"]) == ("kept", "timeout", "Interrupted")
    hard = lair("exec", "-s", session, "-t", "0.3", "x = 2\nhang")
    assert (hard["state"], hard["cause"]) == ("rolled_back", "timeout")
    assert lair("exec", "-s", session, "x")["text"] == "1"


def test_variables_are_saved_and_compared(daemon: Daemon, session: str) -> None:
    lair = daemon.lair_json
    lair("exec", "-s", session, "x = 41")
    lair("exec", "-s", session, "y = 1")
    changed = lair("diff", session)["variables"]
    assert [(it["name"], it["change"]) for it in changed] == [("y", "new")]
    assert sorted(lair("save", session)["names"]) == ["x", "y"]
    lair("close", session)
    again = lair("exec", "-s", session, "x + y")
    assert again["text"] == "42" and sorted(again["loaded"]["names"]) == ["x", "y"]


def test_every_answer_names_the_language(daemon: Daemon, session: str) -> None:
    lair = daemon.lair_json
    assert lair("exec", "-s", session, "1")["language"] == "toy"
    assert "language" not in lair("exec", "-s", f"{session}.p", "-p", "science", "1")
    told = {it["session"]: it for it in lair("ls")["sessions"]}
    toy, python = told[session], told[f"{session}.p"]
    assert (toy["language"], toy["version"], toy["python"]) == ("toy", "1.0", None)
    assert python["language"] == "python" and python["python"] == python["version"]
    assert "default (toy)" in daemon.lair("ls").stdout
    assert "language    toy 1.0\n" in daemon.lair("info", session).stdout
    assert "audit" in python["guards"] and "audit" not in toy["guards"]
    assert "languages: python, toy" in daemon.lair("doctor").stdout


def test_the_client_of_python(daemon: Daemon, session: str) -> None:
    with Connection(str(daemon.socket)) as connection, Session(session, connection=connection) as s:
        s.run("x = 41")
        assert s.run("x + 1").text == "42"
        failed = s.run("nothing")
        assert failed.error and failed.error.name == "ToyError"


def test_http_and_e2b(daemon: Daemon, session: str) -> None:
    with server_of(daemon) as server:
        server.exec(session, "x = 41")
        assert server.exec(session, "x + 1")["text"] == "42"
        assert server.ask("GET", f"/v1/sessions/{session}").json()["language"] == "toy"
        box = Tenant(server, "any").create()
        box.run("x = 41")
        assert text_of(box.run("x + 1")) == "42"


def test_mcp(daemon: Daemon, session: str) -> None:
    with McpServer(daemon, "--instructions", "--tools", "full") as server:
        said = server.request("server/discover")["instructions"]
        assert said.startswith("Runs toy in sessions") and "The code is toy, not Python" in said
        server.run("x = 41", session)
        assert server.run("x + 1", session)["text"] == "42"
        assert server.call("python_session_undo", session_id=session)["ok"]


@pytest.mark.parametrize(
    ("flags", "begins"),
    [
        ((), "Runs toy in sessions"),
        (("-p", "science"), "Runs Python in"),
        (("-S", "/nowhere/s"), "Runs code in sessions"),
    ],
)
def test_mcp_names_the_language_of_its_profile(daemon: Daemon, flags: tuple[str, ...], begins: str) -> None:
    with McpServer(daemon, *flags) as server:
        assert server.request("server/discover")["instructions"].startswith(begins)


def test_jupyter(daemon: Daemon) -> None:
    with kernel_of(daemon) as kernel:
        client = kernel.client()
        assert client.run("x = 41")[0]["status"] == "ok"
        assert client.value("x + 1") == "42"
        told = client.request("kernel_info_request", {})["language_info"]
        assert (told["name"], told["version"]) == ("toy", "1.0")


def test_an_unknown_language_is_refused_with_those_there_are(daemon: Daemon) -> None:
    conf = daemon.directory / "other.conf"
    for word in ("cobol", "../lair", "Python"):
        conf.write_text(config_text({"profile other": {"language": word}}))
        done = subprocess.run([BIN / "laird", "-n", "-c", conf], capture_output=True, text=True)
        assert done.returncode == USAGE and f"language = {word}" in done.stderr
        assert done.stderr.rstrip().endswith("one that is installed: python, toy")

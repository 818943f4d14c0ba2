"""An id may be of any script: on every surface it is what it was given as."""

from __future__ import annotations

import unicodedata

import pytest

import lair
from daemon import Daemon
from lair import Client, LairError
from lair import messages as m
from mcp_server import McpServer

pytestmark = pytest.mark.usefixtures("no_sessions_left")

SETTINGS = {"profile default": {"checkpoint": "cell"}}

IDS = ["日本語", "é", "e\u0301", "Straße/🦊", "שלום", "नमस्ते", "x" * 128]
NO_IDS = ["", "a b", "a\u00a0b", "\u3000", "a\u200bb", "a\u202eb", "\x85", "\ue000", "\u3164", "é" * 65]


@pytest.mark.parametrize("name", IDS)
def test_to_a_client(client: Client, name: str) -> None:
    assert client.exec("x = 41", name).session == name
    assert client.info(name).session == name
    assert [info.session for info in client.list()] == [name]
    assert client.exec("x + 1", name).text == "42"


def test_what_looks_alike_is_two(client: Client) -> None:
    composed, decomposed = unicodedata.normalize("NFC", "é"), unicodedata.normalize("NFD", "é")
    client.exec("x = 1", composed)
    assert client.exec("x", decomposed).returncode == 1


@pytest.mark.parametrize("name", NO_IDS)
def test_no_id(client: Client, name: str) -> None:
    with pytest.raises(LairError) as error:
        client.open(name)
    assert error.value.code == "bad_request"
    assert "printable characters without space" in error.value.message


def test_in_the_command_line(daemon: Daemon) -> None:
    assert daemon.lair("exec", "-s", "日本", "x = 1").returncode == 0
    assert daemon.lair("open", "a").returncode == 0
    assert daemon.lair("branch", "日本", "木🦊").returncode == 0
    lines = daemon.lair("ls").stdout.splitlines()
    columns = {line[: line.index("default")]: line for line in lines[1:]}
    assert set(columns) == {"日本     ", "a        ", "木🦊     "}  # as wide: four columns, one, four
    assert daemon.lair("info", "日本").stdout.splitlines()[0].split() == ["session", "日本"]
    assert {it["session"] for it in daemon.lair_json("ls")["sessions"]} == {"日本", "a", "木🦊"}
    assert daemon.lair("info", "a b").returncode != 0


def test_from_python(daemon: Daemon) -> None:
    with lair.Connection(str(daemon.socket)) as connection:
        session = lair.Session("日本", connection=connection)
        session.run("x = 1")
        branch = session.branch("枝")
        assert (session.info().session, branch.id, branch.run("x").text) == ("日本", "枝", "1")
        branch.shutdown()


def test_by_a_model(daemon: Daemon) -> None:
    with McpServer(daemon) as server:
        server.run("x = 1", "日本")
        assert server.run("x", "日本")["text"] == "1"


def test_for_the_next_router(daemon: Daemon, client: Client) -> None:
    client.exec("x = 1", "日本")
    client.call(m.Save(id=client.new_id(), session="日本"), m.SaveReply)
    assert daemon.lair("upgrade").returncode == 0
    assert daemon.lair("exec", "-s", "日本", "x").stdout == "1\n"
    daemon.lair("exec", "-s", "日本", "del x")
    daemon.lair("load", "日本")
    assert daemon.lair("exec", "-s", "日本", "x").stdout == "1\n"

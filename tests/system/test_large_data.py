"""A cell that writes to much of what the last checkpoint shares copies it first. That is bounded, and told."""

from __future__ import annotations

import re

import pytest

from daemon import Daemon, wait_until
from lair import Client
from test_router_death import kill_router

pytestmark = pytest.mark.usefixtures("no_sessions_left")

COMMON = {"spares": "0", "level": "", "checkpoint": "cell"}
SETTINGS = {
    "profile default": {**COMMON, "memory": "2G", "checkpoint_memory": "2G"},
    "profile narrow": {**COMMON, "memory": "400M", "checkpoint_memory": "400M"},
    "profile manual": {**COMMON, "memory": "2G", "checkpoint_memory": "2G", "checkpoint": "manual"},
}

MAKE = "x = bytearray(b'1') * ({} << 20)\ndef write(): x[::4096] = bytes([x[0] ^ 1]) * (len(x) // 4096)"


def make(client: Client, session: str, size: int, profile: str = "default") -> None:
    assert client.exec(MAKE.format(size), session, profile=profile).unfaithful is None
    wait_until(lambda: profile == "manual" or client.info(session).checkpoints == 1, "there is a checkpoint")


def test_it_is_told_and_put_off(client: Client, session: str) -> None:
    make(client, session, 512)
    for _ in range(3):
        reply = client.exec("write()", session)
        told = r"a crash now would go back to cell 1: 0.5 GiB were copied .*; the next one is made in \d+ s"
        assert reply.unfaithful and re.fullmatch(told, reply.unfaithful), reply.unfaithful
    assert client.info(session).checkpoints == 1
    reply = client.exec("import os; os._exit(1)", session)
    assert (reply.state, reply.restored) == ("rolled_back", 1)
    assert client.exec("x[0]", session).text == "49"
    for _ in range(2):
        client.exec("write()", session)
    assert client.undo(session).cell == 1
    assert client.exec("x[0]", session).text == "49"


def test_it_comes_by_itself(client: Client, session: str) -> None:
    make(client, session, 512)
    assert client.exec("write()", session).unfaithful
    wait_until(lambda: client.info(session).checkpoints == 2, "the time has come", timeout=100)
    reply = client.exec("import os; os._exit(1)", session)
    assert (reply.state, reply.restored) == ("rolled_back", 2)


def test_who_asks_gets_one(client: Client, session: str) -> None:
    make(client, session, 512)
    assert client.exec("write()", session).unfaithful
    assert client.checkpoint(session, "now").cell == 2
    reply = client.exec("import os; os._exit(1)", session)
    assert (reply.state, reply.restored) == ("rolled_back", 2)
    assert client.exec("x[0]", session).text == "48"


def test_who_asks_is_told_nothing(client: Client, session: str) -> None:
    make(client, session, 512, "manual")
    client.checkpoint(session, "a")
    assert client.exec("write()", session).unfaithful is None
    assert client.exec("x[0]", session).text == "48"


def test_little_is_not_told(client: Client, session: str) -> None:
    make(client, session, 64)
    for _ in range(5):
        assert client.exec("x[: 1 << 20] = bytes(1 << 20)", session).unfaithful is None
    wait_until(lambda: client.info(session).checkpoints == 6, "there is one of each")


def test_new_memory_is_not_copied(client: Client, session: str) -> None:
    make(client, session, 64)
    for i in range(3):
        assert client.exec(f"y{i} = [bytes(4000) for _ in range(40000)]", session).unfaithful is None
    wait_until(lambda: client.info(session).checkpoints == 4, "there is one of each")


def test_copies_do_not_take_the_room_of_a_cell(client: Client, session: str) -> None:
    """Three of them and the session itself would not fit."""
    make(client, session, 300, "narrow")
    for i in range(4):
        reply = client.exec("write()", session)
        assert (reply.state, reply.cause) == ("kept", None), i
        client.checkpoint(session)
    reply = client.exec("import os; os._exit(1)", session)
    assert (reply.state, reply.restored) == ("rolled_back", 5)


def test_the_router_may_die_meanwhile(daemon: Daemon, client: Client, session: str) -> None:
    make(client, session, 512)
    assert client.exec("write()", session).unfaithful
    kill_router(daemon)
    with daemon.client() as another:
        assert another.exec("x[0]", session).text == "48"
        wait_until(lambda: another.info(session).checkpoints >= 2, "there is one", timeout=100)

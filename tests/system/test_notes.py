"""Every note of proto/causes.h is told at every door, in the same words: nothing in silence. The daemon is a real one; a
proxy before it puts into the result of one cell all that a result can tell."""

from __future__ import annotations

import copy
import json
import threading
from collections.abc import Iterator
from typing import Any

import msgpack
import pytest
import zmq

from daemon import Daemon
from doors import DOORS
from http_server import server_of
from lair import causes, codec, notes
from lair import messages as m
from lair.result import Collector

SETTINGS = {"profile default": {"checkpoint": "cell"}}

# The value of the cell whose result is rewritten.
MARK = "'tell all'"


def all_of(reply: dict[str, Any]) -> dict[str, Any]:
    """The result as if the cell had been killed, and all else had happened that can."""
    more = {
        "returncode": 137,
        "cause": causes.OOM,
        "text": None,
        "data": None,
        "blocked": [codec.body(m.Blocked(event="open", target="/etc/shadow", reason="denied"))],
        "artifacts": [codec.body(m.Artifact(path=b"a.csv", size=1, type="text/csv", change="created"))],
        "artifacts_more": True,
        "stdout_dropped": 7,
        "stderr_stray": 3,
        "displays_dropped": 2,
        "files_unkept": "big.bin: it is too large",
        "saved_damaged": "it was cut short",
        "saved_age": 61.0,
        "loaded": ["x"],
        "not_loaded": [codec.body(m.RefusedName(name="g", reason="it is open"))],
        "ended": codec.body(m.Ended(why=causes.IDLE_TTL)),
        "unfaithful": "a thread runs",
        "effects": [codec.body(m.Effect(act="wrote", target=b"/data/out", cell=3))],
        "effects_more": 2,
        "files": [codec.body(m.FileBack(path=b"a.csv", change="restored"))],
        "files_more": 1,
        "files_stay": "there was no room",
        "state": causes.ROLLED_BACK if reply.get("session") else causes.ENDED,
        "restored": 4,
    }
    return {name: value for name, value in {**reply, **more}.items() if value is not None}


class Proxy(threading.Thread):
    """Passes all frames on, but rewrites that one."""

    def __init__(self, daemon: Daemon) -> None:
        super().__init__(daemon=True)
        self.path = f"{daemon.socket}-rewritten"
        self.behind = f"ipc://{daemon.socket}"
        self.reply: dict[str, Any] = {}
        self.stopped = False

    def run(self) -> None:
        context = zmq.Context()
        front, poller = context.socket(zmq.ROUTER), zmq.Poller()
        front.linger = 0
        front.bind(f"ipc://{self.path}")
        poller.register(front, zmq.POLLIN)
        backs: dict[bytes, zmq.Socket[bytes]] = {}
        while not self.stopped:
            for it, _ in poller.poll(50):
                frames = it.recv_multipart()
                if it is front:
                    identity = frames.pop(0)
                    if identity not in backs:
                        backs[identity] = context.socket(zmq.DEALER)
                        backs[identity].linger = 0
                        backs[identity].connect(self.behind)
                        poller.register(backs[identity], zmq.POLLIN)
                    backs[identity].send_multipart(frames)
                else:
                    (identity,) = (name for name, back in backs.items() if back is it)
                    front.send_multipart([identity, *map(self.rewritten, frames)])
        context.destroy(linger=0)

    def rewritten(self, frame: bytes) -> bytes:
        version, kind, reply = msgpack.unpackb(
            frame, raw=False, strict_map_key=False, unicode_errors="surrogateescape"
        )
        if reply.get("text") != MARK:
            return frame
        self.reply = all_of(reply)
        whole: bytes = msgpack.packb([version, kind, self.reply], use_bin_type=True)
        return whole


@pytest.fixture(scope="module")
def proxy(daemon: Daemon) -> Iterator[Proxy]:
    it = Proxy(daemon)
    it.start()
    yield it
    it.stopped = True
    it.join()


@pytest.fixture(scope="module")
def rewriting(daemon: Daemon, proxy: Proxy) -> Daemon:
    it = copy.copy(daemon)
    it.socket = type(daemon.socket)(proxy.path)
    return it


# What a door shows in a way of its own: its list of what was blocked; all output, as it comes; no list of files at all.
OWN: dict[str, set[str]] = {
    "words": {"artifacts"},
    "prompt": {"stray"},
    "mcp": {"blocked"},
    "mcp-http": {"blocked"},
    "tools": {"blocked"},
    "jupyter": {"stray", "artifacts"},
}


def missing(reply: m.ExecReply, said: str, own: set[str]) -> set[str]:
    told = notes.told(Collector().result(reply), notes.Style())
    if reply.session is not None:
        assert list(told) == list(causes.NOTES), "the result above lacks a note of proto/causes.h"
    return {name for name in told.keys() - own if told[name][1:] not in said}


@pytest.mark.parametrize("name", DOORS)
def test_every_note_is_told(rewriting: Daemon, proxy: Proxy, name: str, session: str) -> None:
    door = DOORS[name](rewriting, session)
    try:
        said = door.run(MARK).all
    finally:
        door.close()
    assert "/etc/shadow" in said
    assert not missing(codec.read(m.ExecReply, proxy.reply), said, OWN.get(name, set()))


def test_one_shots(rewriting: Daemon, proxy: Proxy) -> None:
    """Which tell nothing of a session."""
    said = rewriting.lair("exec", MARK).stderr
    assert not missing(codec.read(m.ExecReply, proxy.reply), said, {"artifacts"})
    with server_of(rewriting) as server:
        said = json.dumps(server.ask("POST", "/execute", {"code": MARK}).json()["notes"])
    assert not missing(codec.read(m.ExecReply, proxy.reply), said, set())

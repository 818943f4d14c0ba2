"""Every note of proto/causes.h is told at every door, in the same words: nothing in silence. The daemon is a real one; a
proxy before it puts into the result of one cell all that a result can tell."""

from __future__ import annotations

import copy
import json
import subprocess
import threading
from collections.abc import Callable, Iterator
from typing import Any

import msgpack
import pytest
import zmq

import kernels
from daemon import Daemon
from http_server import server_of
from lair import Connection, Session, causes, codec, notes
from lair import messages as m
from lair.result import Collector
from lair.tools import Tools
from mcp_server import McpServer

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


# ---- the doors: each runs the cell, and gives what it has said ----


def of_exec(daemon: Daemon, session: str) -> str:
    return daemon.lair("exec", "-s", session, MARK).stderr


def of_one_shot(daemon: Daemon, session: str) -> str:
    return daemon.lair("exec", MARK).stderr


def of_json(daemon: Daemon, session: str) -> str:
    return json.dumps(daemon.lair_json("exec", "-s", session, MARK)["notes"])


def of_prompt(daemon: Daemon, session: str) -> str:
    env = {"PATH": "/usr/bin:/bin", "LAIR_SOCKET": str(daemon.socket)}
    command = [str(daemon.binaries / "lair"), "repl", "-s", session]
    return subprocess.run(command, input=MARK + "\n", capture_output=True, text=True, env=env, timeout=60).stderr


def of_mcp(daemon: Daemon, session: str) -> str:
    with McpServer(daemon) as server:
        it = server.run(MARK, session)
    assert it["blocked"] == [{"event": "open", "target": "/etc/shadow", "reason": "denied"}]
    return str(it["note"])


def of_v1(daemon: Daemon, session: str) -> str:
    with server_of(daemon) as server:
        return json.dumps(server.ask("POST", f"/v1/sessions/{session}/exec", {"code": MARK}).json()["notes"])


def of_events(daemon: Daemon, session: str) -> str:
    with server_of(daemon) as server:
        headers = {"Accept": "text/event-stream"}
        body = server.ask("POST", f"/v1/sessions/{session}/exec", {"code": MARK}, headers).body.decode()
    return body[body.index("event: result") :]


def of_execute(daemon: Daemon, session: str) -> str:
    with server_of(daemon) as server:
        return json.dumps(server.ask("POST", "/execute", {"code": MARK}).json()["notes"])


def of_e2b(daemon: Daemon, session: str) -> str:
    with server_of(daemon) as server:
        made = server.ask("POST", "/v2/sandboxes", {"templateID": "base"}, {"X-API-KEY": "any"}).json()
        headers = {"E2b-Sandbox-Id": made["sandboxID"], "X-Access-Token": made["envdAccessToken"]}
        lines = server.ask("POST", "/execute", {"code": MARK}, headers).body.splitlines()
    return "".join(it["text"] for it in map(json.loads, lines) if it["type"] == "stderr")


def of_jupyter(daemon: Daemon, session: str) -> str:
    with kernels.kernel_of(daemon) as kernel:
        client = kernel.client()
        reply, shown = client.run(MARK)
    printed = "".join(it["content"]["text"] for it in shown if it["type"] == "stream")
    return printed + "\n".join(reply["traceback"])


def of_python(daemon: Daemon, session: str) -> str:
    with Connection(str(daemon.socket), start=False) as connection, Session(session, connection=connection) as it:
        return it.run(MARK).transcript()


def of_tools(daemon: Daemon, session: str) -> str:
    with Connection(str(daemon.socket), start=False) as connection, Tools(connection=connection) as tools:
        it = tools.call("python_session_execute", {"code": MARK})
    assert it["blocked"]
    return str(it["note"])


# What a door shows in a way of its own: its list of what was blocked; all output, as it comes; no list of files at all.
DOORS: dict[Callable[[Daemon, str], str], set[str]] = {
    of_exec: {"artifacts"},
    of_one_shot: {"artifacts"},
    of_json: set(),
    of_prompt: {"stray"},
    of_mcp: {"blocked"},
    of_v1: set(),
    of_events: set(),
    of_execute: set(),
    of_e2b: set(),
    of_jupyter: {"stray", "artifacts"},
    of_python: set(),
    of_tools: {"blocked"},
}


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.__name__[3:])
def test_every_note_is_told(
    rewriting: Daemon, proxy: Proxy, door: Callable[[Daemon, str], str], session: str
) -> None:
    said = door(rewriting, session)
    reply = codec.read(m.ExecReply, proxy.reply)
    told = notes.told(Collector().result(reply), notes.Style())
    if reply.session is not None:
        assert list(told) == list(causes.NOTES), "the result above lacks a note of proto/causes.h"
    for name in told.keys() - DOORS[door]:
        assert told[name][1:] in said, f"{name} is not told"

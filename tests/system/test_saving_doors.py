"""A saved state that is damaged is told at every door where the session opens, in the same words."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

import kernels
from daemon import Daemon
from http_server import server_of
from lair import messages as m
from mcp_server import McpServer

StartDaemon = Callable[..., Daemon]
WHY = "the saved state is damaged, and is kept aside; there is none before it"


def of_exec(daemon: Daemon) -> str:
    return daemon.lair("exec", "-s", "s", "1").stderr


def of_open(daemon: Daemon) -> str:
    return json.dumps(daemon.lair_json("open", "s"))


def of_mcp(daemon: Daemon) -> str:
    with McpServer(daemon) as server:
        return str(server.run("1", "s")["note"])


def of_mcp_open(daemon: Daemon) -> str:
    with McpServer(daemon, "--tools", "full") as server:
        return json.dumps(server.call("python_session_start", session_id="s"))


def of_http(daemon: Daemon) -> str:
    with server_of(daemon) as server:
        return json.dumps(server.ask("POST", "/v1/sessions/s/exec", {"code": "1"}).json()["notes"])


def of_http_open(daemon: Daemon) -> str:
    with server_of(daemon) as server:
        return server.ask("PUT", "/v1/sessions/s", {}).body.decode()


def of_jupyter(daemon: Daemon) -> str:
    with kernels.kernel_of(daemon, "--session", "s") as kernel:
        reply, shown = kernel.client().run("1")
    return "".join(it["content"]["text"] for it in shown if it["type"] == "stream")


DOORS = [of_exec, of_open, of_mcp, of_mcp_open, of_http, of_http_open, of_jupyter]


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.__name__[3:])
def test_damage_is_told(start_daemon: StartDaemon, tmp_path: Path, door: Callable[[Daemon], str]) -> None:
    daemon = start_daemon({"daemon": {"saves": str(tmp_path / "saves")}, "profile default": {"checkpoint": "off"}})
    with daemon.client() as client:
        client.exec("x = 1", "s")
        client.call(m.Save(id=client.new_id(), session="s"), m.SaveReply)
        client.shutdown("s")
    (state,) = (it for it in (tmp_path / "saves").rglob("[!.]*") if it.is_file())
    content, expires = state.read_bytes(), state.stat().st_mtime
    state.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    os.utime(state, (expires, expires))
    assert WHY in door(daemon)

"""Who may have how many connections to `lair serve`: nobody can take all of them."""

from __future__ import annotations

import http.client
import os
import resource
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from daemon import Daemon, Settings, wait_until
from http_server import PATIENCE, Server, server_of

SETTINGS: Settings = {"profile default": {"output_size": "1M"}}
MANY = 9000

# Connections that say nothing, or a piece of a request; it tells how many it got, and keeps them until stdin ends.
HOLDER = """
import resource, socket, sys
port, n, said = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3].encode().decode("unicode_escape").encode()
held = []
for _ in range(n):
    try:
        it = socket.create_connection(("127.0.0.1", port), timeout=10)
        if said:
            it.sendall(said)
    except OSError:
        continue
    held.append(it)
print(len(held), flush=True)
sys.stdin.read()
"""


@contextmanager
def held(server: Server, n: int, said: str = "", user: int | None = None) -> Iterator[int]:
    """Another program that holds connections; as another user, if one is named."""
    who: dict[str, Any] = {} if user is None else {"user": user, "group": user, "extra_groups": []}
    command = ["prlimit", f"--nofile={MANY + 200}:{MANY + 200}", sys.executable, "-c", HOLDER]
    it = subprocess.Popen(
        [*command, str(server.port), str(n), said], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **who
    )
    assert it.stdin and it.stdout
    try:
        yield int(it.stdout.readline())
    finally:
        it.stdin.close()
        it.wait(PATIENCE)
        it.stdout.close()


def answers(server: Server, token: str = "", connection: http.client.HTTPConnection | None = None) -> None:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    answer = server.ask("POST", "/v1/sessions/owner/exec", {"code": "1+1"}, headers, connection)
    assert answer.status == 200, answer.body
    assert answer.json()["text"] == "2"


def metric(server: Server, name: str, token: str) -> float:
    text = server.ask("GET", "/metrics", headers={"Authorization": f"Bearer {token}"}).body.decode()
    return float(dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))[name])


@pytest.fixture
def tokens(daemon: Daemon, tmp_path: Path) -> tuple[str, dict[str, str]]:
    path = str(tmp_path / "tokens")
    return path, {it: daemon.lair("token", "add", it, "--tokens", path).stdout.strip() for it in ("a", "b")}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_a_stranger_of_this_machine(daemon: Daemon) -> None:
    """Without tokens another user's connection is closed as soon as it is accepted."""
    with server_of(daemon) as server, held(server, MANY, user=65534):
        began = time.monotonic()
        answers(server)
        assert time.monotonic() - began < 5
        assert server.ask("GET", "/health").status == 200
        text = server.ask("GET", "/metrics").body.decode()
        assert "\nlair_http_connections 1\n" in text


@pytest.mark.parametrize("said", ["", "GET /health HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n"])
def test_idle_connections_of_a_program_of_ours(daemon: Daemon, said: str) -> None:
    with server_of(daemon) as server, held(server, MANY, said) as n:
        assert n > MANY / 2
        for _ in range(3):
            answers(server)


def test_idle_connections_without_a_token(daemon: Daemon, tokens: tuple[str, dict[str, str]]) -> None:
    """One address has an eighth of all; whoever has a token, and has shown it, keeps its connection."""
    path, by_name = tokens
    with server_of(daemon, "--tokens", path) as server:
        kept = server.connect()
        answers(server, by_name["a"], kept)
        with held(server, 2000, "GET /health HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n"):
            assert metric(server, "lair_http_connections", by_name["a"]) <= 1024 + 3
            answers(server, by_name["b"])
            mine = kept.sock
            answers(server, by_name["a"], kept)
            assert kept.sock is mine


def test_connections_of_one_tenant(daemon: Daemon, tokens: tuple[str, dict[str, str]]) -> None:
    """A tenant has a quarter of all. For one more, its own oldest idle one is closed."""
    path, by_name = tokens
    with server_of(daemon, "--tokens", path) as server:
        kept = server.connect()
        answers(server, by_name["b"], kept)
        request = (
            f"GET /v1/sessions HTTP/1.1\\r\\nHost: localhost\\r\\nAuthorization: Bearer {by_name['a']}\\r\\n\\r\\n"
        )
        with held(server, 2500, request):
            wait_until(
                lambda: metric(server, "lair_http_connections", by_name["b"]) <= 2048 + 3, "its own are closed"
            )
            mine = kept.sock
            answers(server, by_name["b"], kept)
            assert kept.sock is mine
            answers(server, by_name["a"])


def test_few_descriptors(daemon: Daemon, tokens: tuple[str, dict[str, str]]) -> None:
    """What the server needs itself is not given to connections."""
    path, by_name = tokens
    with server_of(daemon, "--tokens", path) as server:
        resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, (1000, 1000))
        with held(server, 1500):
            answers(server, by_name["a"])
            answers(server, by_name["b"])
            assert len(os.listdir(f"/proc/{server.process.pid}/fd")) < 1000 - 64


def test_a_tenant_whose_connections_are_all_at_work(daemon: Daemon, tokens: tuple[str, dict[str, str]]) -> None:
    path, by_name = tokens
    with server_of(daemon, "--tokens", path) as server:
        resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, (1000, 1000))
        head = f"Host: localhost\r\nAuthorization: Bearer {by_name['a']}\r\nContent-Length: 9\r\n\r\n"
        share = (1000 - 256 - 2 * 96) // 4
        busy = [server.bare(f"PUT /v1/sessions/x HTTP/1.1\r\n{head}".encode()) for _ in range(share)]
        wait_until(lambda: metric(server, "lair_http_exchanges", by_name["b"]) == share + 1, "they are there")
        answer = server.ask("GET", "/v1/sessions", headers={"Authorization": f"Bearer {by_name['a']}"})
        assert answer.problem() == (429, "limit")
        answers(server, by_name["b"])
        for it in busy:
            it.shutdown(socket.SHUT_RDWR)
            it.close()

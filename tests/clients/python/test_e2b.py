"""`lair serve` in the place of E2B, for E2B's own SDK."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator

import pytest

from daemon import BIN, Daemon
from environments import HERE, pinned
from http_server import Server, server_of

TRIED = (
    "sandboxes",
    "cells",
    "drawn",
    "killed",
    "contexts",
    "files",
    "packed",
    "home",
    "watching",
    "commands",
    "terminal",
    "pausing",
    "asynchronous",
    "restarted",
)


@pytest.fixture(scope="module")
def python() -> str:
    return str(pinned("e2b"))


@pytest.fixture
def daemon() -> Iterator[Daemon]:
    usual = {"subprocess": "on", "terminals": "on", "checkpoint": "cell"}
    plain = {**usual, "terminals": "off", "spares": "0"}
    home = {**usual, "spares": "0", "home": "/home/user"}
    it = Daemon({"profile default": usual, "profile user": home, "profile plain": plain})
    yield it
    it.end()


@pytest.fixture
def server(daemon: Daemon) -> Iterator[Server]:
    with server_of(daemon) as it:
        yield it


@pytest.mark.parametrize("what", TRIED)
def test_the_sdk(what: str, python: str, daemon: Daemon, server: Server, drive: Callable[..., None]) -> None:
    if what == "drawn":
        for library in ("pandas", "matplotlib", "PIL"):
            pytest.importorskip(library)
    address = {"E2B_API_URL": server.url, "E2B_SANDBOX_URL": server.url, "E2B_API_KEY": "any"}
    drive(python, HERE / "drive_e2b.py", what, BIN / "lair", daemon.socket, **address)


def test_older(daemon: Daemon, drive: Callable[..., None]) -> None:
    """Those that can be pointed elsewhere in their debug mode alone."""
    python = pinned("e2b-older")
    for port in (49999, 49983):
        with socket.socket() as taken:
            taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                taken.bind(("127.0.0.1", port))
            except OSError:
                pytest.skip(f"port {port} of this machine is taken")
    with server_of(daemon, listen="127.0.0.1:49999"), server_of(daemon, listen="127.0.0.1:49983") as envd:
        address = {"E2B_DEBUG": "true", "E2B_API_URL": envd.url, "E2B_API_KEY": "e2b_" + "0" * 40}
        drive(python, HERE / "drive_e2b.py", "older", **address)


def test_tokens(python: str, daemon: Daemon, drive: Callable[..., None]) -> None:
    path = daemon.directory / "tokens"

    def token(name: str, *limits: str) -> str:
        return daemon.lair("token", "add", name, *limits, "--tokens", str(path)).stdout.strip()

    keys = [token("alice"), token("bob"), token("few", "--sessions", "1")]
    with server_of(daemon, "--tokens", str(path)) as server:
        address = {"E2B_API_URL": server.url, "E2B_SANDBOX_URL": server.url, "E2B_CONNECTION_RETRIES": "1"}
        drive(python, HERE / "drive_e2b.py", "tenants", *keys, **address)

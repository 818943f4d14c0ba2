"""`lair serve` in the place of E2B, for E2B's own SDK for JavaScript."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from daemon import Daemon
from http_server import Server, server_of
from installing import npm_installed

HERE = Path(__file__).parent / "e2b"


@pytest.fixture
def daemon() -> Iterator[Daemon]:
    it = Daemon({"profile default": {"subprocess": "on", "terminals": "on", "checkpoint": "cell"}})
    yield it
    it.end()


@pytest.fixture
def server(daemon: Daemon) -> Iterator[Server]:
    with server_of(daemon) as it:
        yield it


@pytest.mark.parametrize("what", ["sandboxes", "cells", "files", "commands", "terminal", "killed"])
def test_the_sdk(what: str, server: Server, drive: Callable[..., None]) -> None:
    made = npm_installed("@e2b/code-interpreter", HERE)
    shutil.copy(HERE / "client.mjs", made)
    address = {"E2B_API_URL": server.url, "E2B_SANDBOX_URL": server.url, "E2B_API_KEY": "any"}
    drive("node", made / "client.mjs", what, **address)

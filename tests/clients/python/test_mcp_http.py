"""`/mcp` of `lair serve` with the Python SDK of the Model Context Protocol."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from daemon import Daemon
from environments import HERE, pinned
from http_server import Server, server_of


@pytest.fixture(scope="module")
def python() -> str:
    return str(pinned("mcp"))


@pytest.fixture
def server(daemon: Daemon) -> Iterator[Server]:
    with server_of(daemon) as it:
        yield it


@pytest.mark.parametrize("mode", ["legacy", "auto", "2026-07-28"])
def test_the_sdk(mode: str, python: str, server: Server, drive: Callable[..., None]) -> None:
    pytest.importorskip("matplotlib")
    drive(python, HERE / "drive_mcp.py", mode, server.url + "/mcp")

"""`lair mcp` with clients from the package index: tools, state, images, progress, cancelling, and another router."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator

import pytest

from daemon import BIN, Daemon
from environments import HERE, pinned

# Which environment, which program, in which way.
CLIENTS = {
    "mcp, legacy": ("mcp", "drive_mcp.py", "legacy"),
    "mcp, auto": ("mcp", "drive_mcp.py", "auto"),
    "mcp, 2026-07-28": ("mcp", "drive_mcp.py", "2026-07-28"),
    "openai-agents": ("openai-agents", "drive_openai_agents_mcp.py", ""),
}


@pytest.fixture
def daemon() -> Iterator[Daemon]:
    it = Daemon({"profile default": {"checkpoint": "cell", "preload": "matplotlib.pyplot?"}})
    yield it
    assert it.terminate() == 0
    it.close()


@pytest.fixture(scope="module", params=CLIENTS.values(), ids=list(CLIENTS))
def command(request: pytest.FixtureRequest) -> list[str]:
    name, driver, argument = request.param
    return [str(pinned(name)), str(HERE / driver), argument]


def test_a_client(command: list[str], daemon: Daemon) -> None:
    pytest.importorskip("matplotlib")
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(daemon.directory),
        "LAIR_BIN": str(BIN),
        "LAIR_SOCKET": str(daemon.socket),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=55)
    assert done.returncode == 0, done.stdout + done.stderr

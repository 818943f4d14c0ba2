"""`lair mcp` with clients from npm: tools, state, images, progress, cancelling, and another router.

Each client has a directory here, whose lock pins it and what it needs; it is installed below build/ once for each content of that.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from installing import npm_installed

HERE = Path(__file__).parent

# Which directory, and the argument of its driver.
CLIENTS = {
    "@modelcontextprotocol/sdk": ("sdk", ""),
    "@modelcontextprotocol/client, legacy": ("client", "legacy"),
    "@modelcontextprotocol/client, auto": ("client", "auto"),
    "@modelcontextprotocol/inspector": ("inspector", ""),
    "@openai/agents": ("agents", ""),
    "@ai-sdk/mcp": ("ai-sdk", ""),
}


def driver(name: str, directory: str) -> Path:
    """The driver of that client, beside what it needs."""
    made = npm_installed(name, HERE / directory)
    for file in (HERE / "scenario.mjs", HERE / directory / "client.mjs"):
        shutil.copy(file, made)
    return made / "client.mjs"


@pytest.fixture(scope="module", params=list(CLIENTS.items()), ids=list(CLIENTS))
def command(request: pytest.FixtureRequest) -> list[str]:
    name, (directory, argument) = request.param
    return ["node", str(driver(name, directory)), argument]


def test_a_client(command: list[str], drive: Callable[..., None]) -> None:
    pytest.importorskip("matplotlib")
    drive(*command)

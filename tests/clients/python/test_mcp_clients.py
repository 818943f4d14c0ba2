"""`lair mcp` with clients from the package index: tools, state, images, progress, cancelling, and another router."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from environments import HERE, pinned

# Which environment, which program, in which way.
CLIENTS = {
    "mcp, legacy": ("mcp", "drive_mcp.py", "legacy"),
    "mcp, auto": ("mcp", "drive_mcp.py", "auto"),
    "mcp, 2026-07-28": ("mcp", "drive_mcp.py", "2026-07-28"),
    "mcp asks, legacy": ("mcp", "drive_mcp_asking.py", "legacy"),
    "mcp asks, auto": ("mcp", "drive_mcp_asking.py", "auto"),
    "openai-agents": ("openai-agents", "drive_openai_agents_mcp.py", ""),
}


@pytest.fixture(scope="module", params=CLIENTS.values(), ids=list(CLIENTS))
def command(request: pytest.FixtureRequest) -> list[str]:
    name, driver, argument = request.param
    return [str(pinned(name)), str(HERE / driver), argument]


def test_a_client(command: list[str], drive: Callable[..., None]) -> None:
    pytest.importorskip("matplotlib")
    drive(*command)

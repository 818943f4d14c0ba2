"""`lair mcp` with clients from npm: tools, state, images, progress, cancelling, and another router.

Each client has a directory here, whose lock pins it and what it needs; it is installed below build/ once for each content of that.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from daemon import ROOT

HERE = Path(__file__).parent
MADE = ROOT / "build/clients/npm"
INSTALL_SECONDS = 180

# Which directory, and the argument of its driver.
CLIENTS = {
    "@modelcontextprotocol/sdk": ("sdk", ""),
    "@modelcontextprotocol/client, legacy": ("client", "legacy"),
    "@modelcontextprotocol/client, auto": ("client", "auto"),
    "@modelcontextprotocol/inspector": ("inspector", ""),
    "@openai/agents": ("agents", ""),
    "@ai-sdk/mcp": ("ai-sdk", ""),
}


def installed(name: str, directory: str) -> Path:
    """Where the driver of that client is, beside what it needs. Skips the test, by name, if that cannot be had."""
    if not shutil.which("node") or not shutil.which("npm"):
        pytest.skip(f"{name} cannot be installed: there is no node, or no npm")
    files = sorted((HERE / directory).glob("package*.json"))
    made = MADE / directory
    stamp = made / hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:32]
    if not stamp.exists():
        shutil.rmtree(made, ignore_errors=True)
        made.mkdir(parents=True)
        for file in files:
            shutil.copy(file, made)
        command = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline"]
        try:
            done = subprocess.run(command, cwd=made, capture_output=True, text=True, timeout=INSTALL_SECONDS)
        except subprocess.TimeoutExpired:
            pytest.skip(f"{name} cannot be installed within {INSTALL_SECONDS} s")
        if done.returncode != 0:
            pytest.skip(f"{name} cannot be installed: {done.stderr.strip()[-500:]}")
        stamp.touch()
    for file in (HERE / "scenario.mjs", HERE / directory / "client.mjs"):
        shutil.copy(file, made)
    return made / "client.mjs"


@pytest.fixture(scope="module", params=list(CLIENTS.items()), ids=list(CLIENTS))
def command(request: pytest.FixtureRequest) -> list[str]:
    name, (directory, argument) = request.param
    return ["node", str(installed(name, directory)), argument]


def test_a_client(command: list[str], drive: Callable[..., None]) -> None:
    pytest.importorskip("matplotlib")
    drive(*command)

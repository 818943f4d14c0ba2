"""lair.adapters with the packages they are for, from the package index, each in an environment of its own."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from daemon import ROOT, Daemon
from environments import HERE, pinned

# Which package, pinned with all it needs in NAME.txt, and what drives it.
DRIVERS = {
    "openai-agents": "drive_openai_agents.py",
    "pydantic-ai": "drive_pydantic_ai.py",
    "langchain-core": "drive_langchain.py",
    "smolagents": "drive_smolagents.py",
    "autogen-core": "drive_autogen.py",
    "google-adk": "drive_google_adk.py",
}


@pytest.fixture(scope="module", params=DRIVERS)
def package(request: pytest.FixtureRequest) -> tuple[str, Path]:
    return request.param, pinned(request.param)


@pytest.fixture
def daemon() -> Iterator[Daemon]:
    it = Daemon({"profile default": {"checkpoint": "cell", "preload": "matplotlib.pyplot?"}})
    yield it
    assert it.terminate() == 0
    it.close()


def test_an_adapter(package: tuple[str, Path], daemon: Daemon) -> None:
    name, python = package
    done = subprocess.run(
        [str(python), str(HERE / DRIVERS[name])],
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(daemon.directory),
            "LAIR_SOCKET": str(daemon.socket),
            "PYTHONPATH": str(ROOT / "client/python"),
            "PYTHONDONTWRITEBYTECODE": "1",
        },
        capture_output=True,
        text=True,
        timeout=50,
    )
    assert done.returncode == 0, done.stdout + done.stderr

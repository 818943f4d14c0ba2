"""lair.adapters with the packages they are for, from the package index, each in an environment of its own."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from daemon import ROOT, Daemon

HERE = Path(__file__).parent
VENVS = ROOT / "build/clients/python"
INSTALL_SECONDS = 240

# Which package, pinned with all it needs in NAME.txt, and what drives it.
DRIVERS = {
    "openai-agents": "drive_openai_agents.py",
    "pydantic-ai": "drive_pydantic_ai.py",
    "langchain-core": "drive_langchain.py",
    "smolagents": "drive_smolagents.py",
    "autogen-core": "drive_autogen.py",
    "google-adk": "drive_google_adk.py",
}


def install(name: str) -> Path:
    """The Python of an environment with what NAME.txt says; made once for each content of that file."""
    lock = HERE / f"{name}.txt"
    venv = VENVS / name
    stamp = venv / hashlib.sha256(lock.read_bytes()).hexdigest()[:32]
    if not stamp.exists():
        for command in (
            [sys.executable, "-m", "venv", "--clear", str(venv)],
            [
                str(venv / "bin/pip"),
                "install",
                "--quiet",
                "--disable-pip-version-check",
                "--no-deps",
                "-r",
                str(lock),
            ],
        ):
            done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_SECONDS)
            if done.returncode != 0:
                pytest.skip(f"{name} cannot be installed: {done.stderr.strip()[-500:]}")
        stamp.touch()
    return venv / "bin/python"


@pytest.fixture(scope="module", params=DRIVERS)
def package(request: pytest.FixtureRequest) -> tuple[str, Path]:
    return request.param, install(request.param)


@pytest.fixture
def daemon() -> Iterator[Daemon]:
    it = Daemon({"profile default": {"checkpoint": "cell"}})
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

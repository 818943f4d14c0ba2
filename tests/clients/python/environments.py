"""Environments of their own for what comes from the package index, made once for each content of what they are made of."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

import pytest

from daemon import ROOT
from installing import untimed

HERE = Path(__file__).parent
MADE = ROOT / "build/clients/python"
INSTALL_SECONDS = 240


def environment(name: str, content: bytes, *requirements: str) -> Path:
    """The Python of an environment with these requirements. Skips the test, by name, if there can be none."""
    venv = MADE / name
    stamp = venv / hashlib.sha256(content).hexdigest()[:32]
    if not stamp.exists():
        pip = [str(venv / "bin/pip"), "install", "--quiet", "--disable-pip-version-check"]
        for command in ([sys.executable, "-m", "venv", "--clear", str(venv)], [*pip, *requirements]):
            with untimed():
                done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_SECONDS)
            if done.returncode != 0:
                pytest.skip(f"{name} cannot be installed: {done.stderr.strip()[-500:]}")
        stamp.touch()
    return venv / "bin/python"


def pinned(name: str) -> Path:
    """With what NAME.txt says, and nothing else."""
    lock = HERE / f"{name}.txt"
    return environment(name, lock.read_bytes(), "--no-deps", "-r", str(lock))

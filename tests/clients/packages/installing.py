"""Somebody else's packages, installed below build/ by the ordinary client of their registry, once for each content of what asks for them.

A test whose packages cannot be had is skipped, by name."""

from __future__ import annotations

import hashlib
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from daemon import ROOT

MADE = ROOT / "build/clients"
SECONDS = 180


@contextmanager
def untimed() -> Iterator[None]:
    """What is installed for a test does not take of its minute."""
    left = signal.alarm(0)
    try:
        yield
    finally:
        signal.alarm(left)


def _install(name: str, made: Path, files: list[Path], command: list[str]) -> Path:
    stamp = made / hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:32]
    if stamp.exists():
        return made
    shutil.rmtree(made, ignore_errors=True)
    made.mkdir(parents=True)
    for file in files:
        shutil.copy(file, made)
    try:
        with untimed():
            done = subprocess.run(command, cwd=made, capture_output=True, text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        pytest.skip(f"{name} cannot be installed within {SECONDS} s")
    if done.returncode != 0:
        pytest.skip(f"{name} cannot be installed: {(done.stderr or done.stdout).strip()[-500:]}")
    stamp.touch()
    return made


def npm_installed(name: str, directory: Path) -> Path:
    """Where the packages are that the lock in @directory names."""
    if not shutil.which("node") or not shutil.which("npm"):
        pytest.skip(f"{name} cannot be installed: there is no node, or no npm")
    command = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline"]
    return _install(name, MADE / "npm" / directory.name, sorted(directory.glob("package*.json")), command)


def maven_installed(name: str, directory: Path) -> Path:
    """The same for the pom there: the jars are in lib/."""
    if not shutil.which("java") or not shutil.which("mvn"):
        pytest.skip(f"{name} cannot be installed: there is no java, or no mvn")
    command = ["mvn", "--quiet", "--batch-mode", "dependency:copy-dependencies", "-DoutputDirectory=lib"]
    return _install(name, MADE / "maven" / directory.name, [directory / "pom.xml"], command)

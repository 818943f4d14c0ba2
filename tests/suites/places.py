"""Where a suite's Python and its tests are: made once for each content of what they are made of, in build/suites."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from daemon import ROOT
from table import Suite

HERE = Path(__file__).parent
MADE = ROOT / "build/suites"


@dataclass(frozen=True)
class Place:
    python: Path
    venv: Path | None  # absent: the distribution's Python
    tree: Path | None  # what is copied to where the tests run; absent: they are installed


def _once(directory: Path, content: bytes) -> bool:
    """Whether it has to be made; `_made` says that it is."""
    if (directory / hashlib.sha256(content).hexdigest()[:32]).exists():
        return False
    shutil.rmtree(directory, ignore_errors=True)
    return True


def _made(directory: Path, content: bytes) -> None:
    (directory / hashlib.sha256(content).hexdigest()[:32]).touch()


def _pip(venv: Path, *arguments: str) -> None:
    subprocess.run([str(venv / "bin/pip"), "--quiet", "--disable-pip-version-check", *arguments], check=True)


def _environment(name: str) -> Path:
    lock, venv = HERE / f"{name}.txt", MADE / f"venv-{name}"
    if _once(venv, lock.read_bytes()):
        subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
        _pip(venv, "install", "--no-deps", "-r", str(lock))
        _made(venv, lock.read_bytes())
    return venv


def _pin(suite: Suite) -> str:
    lines = (HERE / f"{suite.requirements}.txt").read_text().splitlines()
    return next(line for line in lines if line.lower().startswith(f"{suite.source}=="))


def _source(suite: Suite, venv: Path) -> Path:
    pin, directory = _pin(suite), MADE / f"source-{suite.source}"
    if _once(directory, pin.encode()):
        directory.mkdir(parents=True)
        _pip(venv, "download", "--no-binary", suite.source, "--no-deps", "--dest", str(directory), pin)
        (archive,) = directory.glob("*.tar.gz")
        shutil.unpack_archive(archive, directory / "unpacked")
        subprocess.run(["chmod", "-R", "a+rX", str(directory)], check=True)  # for the users of both sides
        _made(directory, pin.encode())
    (tree,) = (directory / "unpacked").iterdir()
    return tree


def place_of(suite: Suite) -> Place:
    MADE.mkdir(parents=True, exist_ok=True)
    if not suite.requirements:
        return Place(Path(sys.executable), None, HERE / "sample")
    venv = _environment(suite.requirements)
    return Place(venv / "bin/python", venv, _source(suite, venv) if suite.source else None)

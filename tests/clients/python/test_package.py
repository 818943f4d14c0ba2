"""The package as users get it: `pip install` of the directory, away from this tree."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from daemon import ROOT, Daemon
from environments import MADE, environment

SOURCE = ROOT / "client/python"


@pytest.fixture(scope="module")
def python() -> Path:
    """Of a copy: what pip leaves in the directory is not to be left in the tree."""
    files = sorted(path for path in SOURCE.rglob("*") if path.suffix in (".py", ".toml", ".typed"))
    copy = MADE / "source"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(SOURCE, copy, ignore=shutil.ignore_patterns("__pycache__", "build", "*.egg-info"))
    return environment("lair", b"".join(path.read_bytes() for path in files), str(copy))


def run(python: Path, code: str, **env: str) -> str:
    done = subprocess.run([str(python), "-c", code], cwd="/", env=env, capture_output=True, text=True, timeout=50)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_it_runs(python: Path, daemon: Daemon) -> None:
    code = "import lair, lair.aio, lair.tools; print(lair.run('1 + 1').text, lair.__file__)"
    text, file = run(python, code, LAIR_SOCKET=str(daemon.socket)).split()
    assert text == "2"
    assert Path(file).is_relative_to(MADE)


def test_all_of_it_is_there(python: Path) -> None:
    code = "import lair, pathlib; at = pathlib.Path(lair.__file__).parent; print(*(it.relative_to(at) for it in at.rglob('*')))"
    installed = {name for name in run(python, code).split() if "__pycache__" not in name}
    ours = {str(path.relative_to(SOURCE / "lair")) for path in (SOURCE / "lair").rglob("*")}
    assert installed == {name for name in ours if "__pycache__" not in name}
    assert "py.typed" in installed


def test_what_it_needs_and_what_it_is(python: Path) -> None:
    code = "from importlib.metadata import requires, version; print(version('lair'), *requires('lair'))"
    version, *needs = run(python, code).split()
    assert sorted(re.split("[<>=]", need)[0] for need in needs) == ["msgpack", "pyzmq"]
    (ours,) = re.findall(r'LAIR_VERSION "(.*)"', (ROOT / "proto/base.h").read_text())
    assert version == ours == run(python, "import lair; print(lair.__version__)")

"""The package as users get it: `pip install` of the directory, away from this tree."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from daemon import ROOT, Daemon
from environments import MADE, environment

SOURCE = ROOT / "client/python"


# How each is installed: from the directory, and from what is uploaded to an index.
WAYS = ("directory", "sdist", "wheel")
BUILD = "from flit_core import buildapi; print(buildapi.build_{}({!r}))"


def files_of_tree() -> dict[str, bytes]:
    return {str(it): it.read_bytes() for it in SOURCE.rglob("*") if it.is_file() and it.suffix != ".pyc"}


def built(what: str) -> Path:
    """An sdist or a wheel of the tree."""
    builder = environment("flit", b"3", "flit_core>=3.4,<4")
    out = MADE / "dist"
    out.mkdir(exist_ok=True)
    code = BUILD.format(what, str(out))
    done = subprocess.run([str(builder), "-c", code], cwd=SOURCE, capture_output=True, text=True, timeout=50)
    assert done.returncode == 0, done.stderr
    return out / done.stdout.strip()


@pytest.fixture(scope="module", params=WAYS)
def python(request: pytest.FixtureRequest) -> Path:
    before = files_of_tree()
    source = SOURCE if request.param == "directory" else built(request.param)
    content = b"".join(data for _, data in sorted(before.items()))
    installed = environment(f"lair-{request.param}", content, str(source))
    assert files_of_tree() == before  # nothing is left behind
    return installed


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
    code = (
        "from importlib.metadata import requires, version; print(version('lair-client'), *requires('lair-client'))"
    )
    version, *needs = run(python, code).split()
    assert sorted(re.split("[<>=]", need)[0] for need in needs) == ["msgpack", "pyzmq"]
    (ours,) = re.findall(r'LAIR_VERSION "(.*)"', (ROOT / "proto/base.h").read_text())
    assert version == ours == run(python, "import lair; print(lair.__version__)")

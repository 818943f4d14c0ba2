"""Profiles with another Python than the one that Lair is built for: each has a lair-kernel of its own, and what has none
is refused before anybody opens a session."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from daemon import BIN, ROOT, config_text

OWN = f"{sys.version_info[0]}.{sys.version_info[1]}"
VERSION = "import sys; print('%d.%d' % sys.version_info[:2])"


def check(directory: Path, python: Path) -> subprocess.CompletedProcess[str]:
    """What `laird -n` says of a profile with this Python."""
    conf = directory / "sessions.conf"
    conf.write_text(config_text({"profile other": {"python": str(python)}}))
    command = [str(BIN / "laird"), "-n", "-c", str(conf)]
    return subprocess.run(command, capture_output=True, text=True, timeout=30)


def environment(directory: Path, line: str) -> Path:
    """As much of an environment as says of which version it is."""
    (directory / "venv/bin").mkdir(parents=True)
    (directory / "venv/pyvenv.cfg").write_text(f"home = /usr/bin\n{line}\n")
    (directory / "venv/bin/python").symlink_to(sys.executable)
    return directory / "venv"


@pytest.mark.parametrize("line", ["version = 3.99.1", "version_info = 3.99.1.final.0"])
@pytest.mark.parametrize("inner", ["", "bin/python"])
def test_what_no_program_has_is_refused_with_what_mends_it(tmp_path: Path, line: str, inner: str) -> None:
    python = environment(tmp_path, line) / inner
    done = check(tmp_path, python)
    assert done.returncode == 2
    said = f"python = {python} is Python 3.99, and Lair is built without it: build it with that one, too, by LAIR_PYTHONS="
    assert said in done.stderr
    assert f"or make an environment with /usr/bin/python{OWN} -m venv" in done.stderr


@pytest.mark.parametrize(
    "line", [f"version = {OWN}.7", "version = ", "version = none", f"version = {OWN.split('.')[0]}"]
)
def test_its_own_and_what_cannot_be_told_are_not(tmp_path: Path, line: str) -> None:
    assert check(tmp_path, environment(tmp_path, line)).returncode == 0


def test_a_program_is_known_by_its_name(tmp_path: Path) -> None:
    program = tmp_path / "python3.98"
    program.symlink_to("/usr/bin/true")
    assert check(tmp_path, program).returncode == 0  # it leads to a program of another name
    program.unlink()
    shutil.copy("/usr/bin/true", program)
    done = check(tmp_path, program)
    assert done.returncode == 2
    assert f"LAIR_PYTHONS={program} ./dev install" in done.stderr


# What an interpreter must have so that Lair can be built with it.
SHARED = """
import os, sys, sysconfig
of = sysconfig.get_config_var
library = os.path.join(of("LIBDIR"), of("INSTSONAME") or "")
print(of("py_version_short") if ".so" in library and os.path.exists(library) and sys.version_info >= (3, 11) else "")
"""


def others() -> Iterator[tuple[str, Path]]:
    """Interpreters of this machine that a lair-kernel can be built with, beside its own: its name, where it is."""
    places = [Path(it) for it in os.environ.get("PATH", "").split(":")]
    places += sorted(Path.home().glob(".pyenv/versions/*/bin"), reverse=True)
    for place in places:
        for program in sorted(place.glob("python3.[0-9][0-9]")):
            done = subprocess.run([str(program), "-I", "-c", SHARED], capture_output=True, text=True, timeout=30)
            if done.returncode == 0 and done.stdout.strip() not in ("", OWN):
                yield done.stdout.strip(), program


@pytest.fixture(scope="module")
def built() -> tuple[str, Path, Path]:
    """The version, the interpreter, and a directory of programs with the lair-kernel of that version."""
    version, python = next(others(), ("", Path()))
    if not version:
        pytest.skip("no other Python with a shared library is here")
    build = ROOT / "build/pythons"
    configure = ["cmake", "-G", "Ninja", "-S", str(ROOT), "-B", str(build), f"-DLAIR_PYTHONS={python}"]
    for command in (configure, ["cmake", "--build", str(build), "--target", f"lair-kernel-{version}"]):
        done = subprocess.run(command, capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, done.stdout + done.stderr
    for name in ("laird", "lair", "lair-kernel"):
        shutil.copy(BIN / name, build / "bin" / name)
    return version, python, build / "bin"


def test_each_profile_has_its_own(built: tuple[str, Path, Path], tmp_path: Path) -> None:
    version, python, programs = built
    subprocess.run([str(python), "-m", "venv", "--without-pip", str(tmp_path / "venv")], check=True, timeout=60)
    (tmp_path / "conf").write_text(
        config_text({"profile other": {"python": str(tmp_path / "venv"), "preload": "", "checkpoint": "cell"}})
    )
    env = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "LAIR_CONFIG": str(tmp_path / "conf")}
    env["LAIR_SOCKET"] = str(tmp_path / "run/socket")

    def lair(*arguments: str) -> str:
        command = [str(programs / "lair"), *arguments]
        done = subprocess.run(
            command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=50
        )
        return done.stdout

    try:
        assert lair("exec", "-s", "other", "-p", "other", VERSION) == f"{version}\n"
        assert lair("exec", "-s", "own", VERSION) == f"{OWN}\n"
        assert lair("exec", "-s", "other", "import sys; x = sys.prefix; x") == f"'{tmp_path}/venv'\n"
        assert "rolled back" in lair("exec", "-s", "other", "import os; os._exit(1)")
        assert lair("exec", "-s", "other", "x") == f"'{tmp_path}/venv'\n"
    finally:
        lair("stop")

"""`./dev install` and `./dev uninstall`: what is put somewhere is known, and goes again."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from daemon import ROOT

pytestmark = pytest.mark.skipif(
    (ROOT / "build/release/CMakeCache.txt").exists() is False, reason="this is no tree that ./dev has built"
)


def dev(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(ROOT / "dev"), *arguments], capture_output=True, text=True, timeout=120)


def files(prefix: Path) -> set[str]:
    return {str(it.relative_to(prefix)) for it in prefix.rglob("*") if not it.is_dir()}


def test_all_that_is_installed_goes_again(tmp_path: Path) -> None:
    done = dev("install", str(tmp_path))
    assert done.returncode == 0, done.stderr
    there = files(tmp_path)
    assert {"bin/lair", "bin/laird", "bin/lair-kernel", "include/lair.h", "share/man/man1/lair.1"} <= there
    assert {f"lib/systemd/{it}/lair.{kind}" for it in ("system", "user") for kind in ("service", "socket")} <= there
    own = tmp_path / "bin/mine"
    own.write_text("")
    assert dev("uninstall", str(tmp_path)).returncode == 0
    assert files(tmp_path) == {"bin/mine"}


def test_the_installed_program_runs(tmp_path: Path) -> None:
    assert dev("install", str(tmp_path)).returncode == 0
    env = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "LAIR_SOCKET": str(tmp_path / "s/socket")}
    lair = str(tmp_path / "bin/lair")
    try:
        done = subprocess.run([lair, "exec", "6 * 7"], env=env, capture_output=True, text=True, timeout=60)
        assert (done.stdout, done.returncode) == ("42\n", 0), done.stderr
    finally:
        subprocess.run([lair, "stop"], env=env, capture_output=True, timeout=60)
    assert dev("uninstall", str(tmp_path)).returncode == 0


def test_nothing_is_removed_that_was_not_installed(tmp_path: Path) -> None:
    done = dev("uninstall", str(tmp_path))
    assert done.returncode == 1
    assert done.stderr == f"dev: nothing was installed to {tmp_path} from here\n"
    assert os.listdir(tmp_path) == []

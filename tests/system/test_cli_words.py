"""Completion of the command line, by the shells that people have."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from daemon import BIN, ROOT, Daemon

SETTINGS = {"profile default": {"checkpoint": "cell"}}
SCRIPTS = ROOT / "client/cli/completion"


def words(daemon: Daemon, *line: str) -> list[str]:
    done = daemon.lair("words", "--", *line)
    assert (done.returncode, done.stderr) == (0, "")
    return [it.partition("\t")[0] for it in done.stdout.splitlines()]


@pytest.fixture
def opened(daemon: Daemon) -> Daemon:
    for name in ("alpha", "beta"):
        daemon.lair("exec", "-s", name, "1")
    daemon.lair("checkpoint", "alpha", "early")
    return daemon


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (["ex"], ["exec"]),
        (["check"], ["check", "checkpoint", "checkpoints"]),
        (["info", "al"], ["alpha"]),
        (["info", ""], ["alpha", "beta"]),
        (["info", "alpha", ""], []),
        (["exec", "-s", ""], ["alpha", "beta"]),
        (["exec", "--session", "b"], ["beta"]),
        (["exec", "--str"], ["--stream"]),
        (["exec", "--color", ""], ["always", "never", "auto"]),
        (["-j", "info", "b"], ["beta"]),
        (["put", "alpha", ""], [":files"]),
        (["get", "alpha", "x", ""], [":files"]),
        (["exec", "-f", ""], [":files"]),
        (["--no"], ["--no-start"]),
        (["restore", "alpha", "e"], ["early"]),
        (["help", "interr"], ["interrupt"]),
        (["nonsense", ""], []),
        (["info", "--nonsense", ""], ["alpha", "beta"]),
        ([], []),
    ],
)
def test_what_may_come_next(opened: Daemon, line: list[str], expected: list[str]) -> None:
    assert words(opened, *line) == expected


def test_without_a_daemon_nothing_is_said_or_started(tmp_path: Path) -> None:
    env = {"LAIR_SOCKET": str(tmp_path / "run/socket"), "PATH": "/usr/bin:/bin"}
    done = subprocess.run([str(BIN / "lair"), "words", "--", "info", ""], env=env, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert not (tmp_path / "run").exists()


def test_help_says_nothing_of_it(daemon: Daemon) -> None:
    assert "\n  words" not in daemon.lair("help").stdout


def shell(daemon: Daemon, *command: str) -> list[str]:
    env = {**os.environ, "PATH": f"{BIN}:/usr/bin:/bin", "LAIR_SOCKET": str(daemon.socket), "TERM": "dumb"}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return [it.partition("\t")[0] for it in done.stdout.split("\n") if it]


def test_bash(opened: Daemon) -> None:
    script = f". {SCRIPTS}/lair.bash; COMP_WORDS=(lair info al); COMP_CWORD=2; _lair; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    assert shell(opened, "bash", "-c", script) == ["alpha"]


def test_fish(opened: Daemon) -> None:
    if not shutil.which("fish"):
        pytest.skip("fish is not installed")
    script = f"source {SCRIPTS}/lair.fish; complete -C 'lair info '"
    assert shell(opened, "fish", "--no-config", "-c", script) == ["alpha", "beta"]
    assert "README.md" in shell(
        opened, "fish", "--no-config", "-c", f"source {SCRIPTS}/lair.fish; complete -C 'lair put alpha READ'"
    )


def test_zsh(opened: Daemon) -> None:
    """Its completion needs a terminal of its own, so what it would offer is printed."""
    if not shutil.which("zsh"):
        pytest.skip("zsh is not installed")
    script = f"""
        _call_program() {{ shift; eval "$@" }}
        _describe() {{ print -l -- $described }}
        _files() {{ print files }}
        words=(lair {{}}); CURRENT=$#words; . {SCRIPTS}/_lair
    """
    assert shell(opened, "zsh", "-fc", script.replace("{}", "info ''"))[0].startswith("alpha:session")
    assert shell(opened, "zsh", "-fc", script.replace("{}", "put alpha ''")) == ["files"]

"""The words that people type first, with the habits of shells, docker, git and ipython."""

from __future__ import annotations

import re
import signal
import subprocess
from pathlib import Path

import pytest

from daemon import BIN, USAGE, Daemon

SETTINGS = {"profile default": {"checkpoint": "cell"}, "profile other": {}}

# What is typed, and the verb that is meant.
MEANT = {
    "list": "ls",
    "create": "open",
    "new": "open",
    "delete": "close",
    "remove": "close",
    "destroy": "close",
    "shell": "repl",
    "bash": "repl",
    "python": "repl",
    "ipython": "repl",
    "describe": "info",
    "restart": "reset",
    "rollback": "undo",
    "revert": "undo",
    "checkout": "restore",
    "commit": "checkpoint",
    "clone": "branch",
    "cp": "put",
    "cat": "get",
    "pip": "install",
    "log": "logs",
    "notebook": "jupyter",
    "stop demo": "lair close demo",
    "start demo": "lair open demo",
    "status demo": "lair info demo",
    "logs demo": "lair history demo",
    "script.py": "exec -f",
    "print(1)": "exec",
    "exce": "exec",
    "pyton": "repl",
    "delet": "close",
    "sotp": "stop",
    "rnu": "run",
}


@pytest.mark.parametrize("typed", MEANT)
def test_what_is_meant(daemon: Daemon, typed: str) -> None:
    done = daemon.lair(*typed.split())
    assert done.returncode == USAGE and done.stdout == ""
    assert f"did you mean {MEANT[typed]}?" in done.stderr


def test_nothing_is_guessed_from_afar(daemon: Daemon) -> None:
    for word in ("xyzzy", "q", "frobnicate"):
        assert "lair help lists them" in daemon.lair(word).stderr


def test_aliases(daemon: Daemon) -> None:
    assert daemon.lair("run", "-s", "tried", "x = 41; x").stdout == "41\n"
    assert daemon.lair("ps").stdout.startswith("SESSION") and "tried" in daemon.lair("ps").stdout
    with subprocess.Popen(
        [BIN / "lair", "run", "-s", "tried", "print(1, flush=True)\nimport time; time.sleep(60)"],
        env={**daemon.env, "LAIR_SOCKET": str(daemon.socket)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as running:
        assert running.stdout and running.stderr and running.stdout.readline() == b"1\n"
        assert daemon.lair("kill", "tried").returncode == 0
        assert b"rolled back" in running.stderr.read()
    assert daemon.lair("run", "-s", "tried", "x").stdout == "41\n"
    assert daemon.lair("rm", "tried").returncode == 0
    assert "tried" not in daemon.lair("ps").stdout


def test_scripts_have_arguments(daemon: Daemon, tmp_path: Path) -> None:
    script = tmp_path / "s.py"
    script.write_text("import sys\nprint(sys.argv)\nsys.argv.append('mine')\n")
    lair = daemon.lair
    before = lair("exec", "-s", "argv", "import sys; sys.argv").stdout
    said = lair("exec", "-s", "argv", "-f", str(script), "a", "b c", "--", "--json").stdout
    assert said == f"{[str(script), 'a', 'b c', '--json']}\n"
    assert lair("exec", "-s", "argv", "sys.argv").stdout == before  # as it was
    assert lair("exec", "-f", str(script)).stdout == f"{[str(script)]}\n"
    assert lair("exec", "-", "a", input="import sys; sys.argv").stdout == "['-', 'a']\n"
    failed = lair("exec", "-s", "argv", "-", "a", input="import sys; sys.argv = 5; 1 / 0")
    assert failed.returncode == 1 and lair("exec", "-s", "argv", "sys.argv").stdout == before
    wrong = lair("exec", "print", "1")
    assert wrong.returncode == USAGE and "with the code in quotes" in wrong.stderr
    daemon.lair("close", "argv")


def test_logs(tmp_path: Path) -> None:
    env = {"LAIR_SOCKET": str(tmp_path / "run/socket"), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}

    def lair(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([BIN / "lair", *words], env=env, capture_output=True, text=True, timeout=30)

    none = lair("logs")
    assert none.returncode == 125 and "journalctl -u laird\n" in none.stderr
    assert lair("start").returncode == 0
    try:
        assert "listening on" in lair("logs").stdout
        with subprocess.Popen(
            [BIN / "lair", "logs", "-f"], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as follower:
            assert follower.stdout and follower.stdout.readline()
            assert lair("exec", "-s", "seen", "1").returncode == 0
            while "[seen]" not in follower.stdout.readline():
                pass
            follower.send_signal(signal.SIGINT)
    finally:
        lair("stop")


def test_help_has_each_verb_in_one_group(daemon: Daemon) -> None:
    helped = daemon.lair("help").stdout
    found = re.findall(r"^  ([a-z][a-z-]*) +\S", helped, re.MULTILINE)
    source = (Path(__file__).parents[2] / "client/cli/main.c").read_text()
    verbs = re.findall(r'^\t\{"([a-z-]+)", "[^"]*",\s+"', source, re.MULTILINE)
    assert sorted(found) == sorted(verbs) and len(verbs) > 40
    assert helped.count(", as in: lair ") == 6
    assert "(also ps)" in helped and "also: lair rm\n" in daemon.lair("close", "--help").stdout


def test_each_verb_describes_its_own_flags(daemon: Daemon) -> None:
    """No line of a verb's help is about another verb."""
    flags = {
        verb: daemon.lair(verb, "--help").stdout
        for verb in ("exec", "attach", "jupyter", "token", "check", "ls", "logs")
    }
    assert "stop a cell after" in flags["exec"] and "wait this long" not in flags["exec"]
    assert "wait this long" in flags["ls"] and "if it was used" not in flags["attach"]
    assert "connection file" in flags["jupyter"] and "take the code" not in flags["jupyter"]
    assert "may name" in flags["token"] and "rules" in flags["check"] and "Ctrl-C" in flags["logs"]


def test_profiles_are_completed(daemon: Daemon) -> None:
    said = daemon.lair("words", "--", "exec", "-p", "").stdout
    assert sorted(line.partition("\t")[0] for line in said.splitlines()) == ["default", "other"]
    assert daemon.lair("words", "--", "ru").stdout.startswith("run\t")

"""lair doctor: what it says is what a session gets, here and on a host that lacks something."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from daemon import BIN, own_groups
from lair import Client

USER = 61008
DENY = BIN.parent / "tests" / "deny"

# What the kernel is made to refuse, and what must then be neither reached nor guarding.
HOSTS = {
    "no Landlock": (["landlock_create_ruleset=ENOSYS"], "strong-nomem", "landlock:"),
    "no host name": (["sethostname=EPERM", "setdomainname=EPERM"], "strong-nomem", "utsns"),
    "no user namespaces": (["clone:0x10000000=EPERM", "unshare:0x10000000=EPERM"], "landlock", "userns"),
}


def doctor(*prefix: str, uid: int | None = None) -> dict[str, Any]:
    user = (
        []
        if uid is None or os.geteuid() != 0
        else ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups"]
    )
    done = subprocess.run([*user, *prefix, str(BIN / "lair"), "doctor", "--json"], capture_output=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_it_says_what_a_session_gets(client: Client, session: str) -> None:
    found = doctor()
    client.exec("1", session)
    info = client.info(session)
    assert found["level"] == info.level
    assert set(found["guards"]) >= set(info.guards or []) - {"processes"}
    assert found["linux"] == os.uname().release


def test_control_groups_that_cannot_be_written() -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can make them so")
    remount = (
        'for m in /sys/fs/cgroup /sys/fs/cgroup/*; do mount -o remount,bind,ro $m 2>/dev/null; done; exec "$@"'
    )
    found = doctor("unshare", "--mount", "sh", "-c", remount, "--")
    assert found["level"] == "strong-nomem"
    assert {lack["group"] for lack in found["groups_lacking"]} == {"memory", "pids", "cpu"}
    assert all(lack["reason"].endswith("Read-only file system") for lack in found["groups_lacking"])
    assert any("control group" in remedy["because"] for remedy in found["remedies"])


def test_the_command_it_gives_raises_the_level() -> None:
    if os.geteuid() != 0 or not os.path.exists("/sys/fs/cgroup/memory/cgroup.procs"):
        pytest.skip("takes root, and control groups of version 1")
    ask = f"{BIN}/lair doctor --json; read line; {BIN}/lair doctor --json; true"
    shell = subprocess.Popen(
        ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", "bash", "-c", ask],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert shell.stdin and shell.stdout
    before = json.loads(shell.stdout.readline())
    command = next(remedy["command"] for remedy in before["remedies"] if "control group" in remedy["because"])
    subprocess.run(["sh", "-c", command], check=True)
    groups = [group / f"lair-{USER}" for group in own_groups() if (group / f"lair-{USER}").exists()]
    after = json.loads(shell.communicate(b"\n")[0])
    for group in groups:
        group.rmdir()
    assert (before["level"], after["level"], len(groups)) == ("strong-nomem", "strong", 3)
    assert after["remedies"] == []


def test_for_people() -> None:
    done = subprocess.run([str(BIN / "lair"), "doctor"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("level    ")
    assert "\nguards   " in done.stdout
    assert "  cage: level " in done.stdout and "  uv: " in done.stdout and "  disk: " in done.stdout


def test_uv_and_its_index(tmp_path: Path) -> None:
    """A stand-in for uv, that answers as it does."""
    found = {}
    for name, body in (
        ("there", 'test "$1" = --version && echo uv 1.2.3; exit 0'),
        ("lost", 'test "$1" = --version'),
    ):
        place = tmp_path / name
        place.mkdir()
        (place / "uv").write_text(f"#!/bin/sh\n{body}\n")
        (place / "uv").chmod(0o755)
        env = {**os.environ, "PATH": f"{place}:{os.environ['PATH']}", "UV_DEFAULT_INDEX": "https://me:secret@x/"}
        done = subprocess.run([str(BIN / "lair"), "doctor", "--json"], capture_output=True, check=True, env=env)
        assert b"secret" not in done.stdout
        found[name] = [it for it in json.loads(done.stdout)["host"] if it["text"].startswith(("uv", "index"))]
    assert [(it["state"], it["text"].split(",")[0]) for it in found["there"]] == [
        ("ok", "uv: uv 1.2.3"),
        ("ok", "index: that of UV_DEFAULT_INDEX is reachable"),
    ]
    assert found["lost"][-1]["state"] == "warn" and found["lost"][-1]["command"]


def test_a_profile_that_wants_uv(tmp_path: Path) -> None:
    settings = tmp_path / "sessions.conf"
    settings.write_text("[daemon]\nuv = /nowhere/uv\n[profile default]\npackages = on\n")
    command = [str(BIN / "laird"), "-n", "-c", str(settings), "-s", str(tmp_path / "socket")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "profile default allows packages, and there is no uv" in done.stderr


@pytest.mark.parametrize("host", HOSTS)
def test_a_lesser_host(host: str) -> None:
    rules, level, absent = HOSTS[host]
    found = doctor(str(DENY), *rules, "--", uid=1234)
    assert "lair doctor" not in json.dumps(found)  # which the reader has asked
    assert found["level"] == level
    assert not any(guard.startswith(absent) for guard in found["guards"])
    assert {lack["level"] for lack in found["lacking"]} >= {"strong"}
    assert all(lack["reason"] for lack in found["lacking"])


def test_who_sees_the_name_of_the_host() -> None:
    def told(*prefix: str) -> list[str]:
        return [
            it["because"] for it in doctor(*prefix, uid=1234)["remedies"] if "name of this host" in it["because"]
        ]

    assert told() == []
    assert len(told(str(DENY), "sethostname=EPERM", "--")) == 1


def test_landlock_is_recommended_where_it_is_missing() -> None:
    found = doctor(str(DENY), "landlock_create_ruleset=ENOSYS", "--", uid=1234)
    assert any("Landlock" in remedy["because"] for remedy in found["remedies"])

"""lair doctor: what it says is what a session gets, here and on a host that lacks something."""

from __future__ import annotations

import json
import os
import subprocess
from typing import Any

import pytest

from daemon import BIN
from lair import Client

DENY = BIN.parent / "tests" / "deny"

# What the kernel is made to refuse, and what must then be neither reached nor guarding.
HOSTS = {
    "no Landlock": (["landlock_create_ruleset=ENOSYS"], "strong-nomem", "landlock:"),
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


def test_for_people() -> None:
    done = subprocess.run([str(BIN / "lair"), "doctor"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("level    ")
    assert "\nguards   " in done.stdout


@pytest.mark.parametrize("host", HOSTS)
def test_a_lesser_host(host: str) -> None:
    rules, level, absent = HOSTS[host]
    found = doctor(str(DENY), *rules, "--", uid=1234)
    assert found["level"] == level
    assert not any(guard.startswith(absent) for guard in found["guards"])
    assert {lack["level"] for lack in found["lacking"]} >= {"strong"}
    assert all(lack["reason"] for lack in found["lacking"])


def test_landlock_is_recommended_where_it_is_missing() -> None:
    found = doctor(str(DENY), "landlock_create_ruleset=ENOSYS", "--", uid=1234)
    assert any("Landlock" in remedy["because"] for remedy in found["remedies"])

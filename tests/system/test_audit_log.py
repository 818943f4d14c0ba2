"""The audit log: who ran what, and what was refused, as JSON lines an attacker cannot break out of."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

from daemon import Daemon, wait_until

Start = Callable[..., Daemon]


def entries(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_audit_log(start_daemon: Start, tmp_path: Path) -> None:
    log = tmp_path / "audit"
    daemon = start_daemon({"daemon": {"audit_log": str(log)}})
    client = daemon.client()
    client.open("a")
    code = 'open("/etc/no\\n{\\"event\\":\\"end\\"}\\x1b", "w")'
    assert client.exec(code, "a").returncode == 1
    client.exec("1")
    client.shutdown("a")
    wait_until(lambda: log.read_text().count('"end"') == 2, "both sessions have ended")
    assert stat.S_IMODE(log.stat().st_mode) == 0o600
    assert "\x1b" not in log.read_text()
    said = [(entry["event"], entry.get("session")) for entry in entries(log)]
    assert said[:3] == [("open", "a"), ("exec", "a"), ("blocked", "a")]
    assert said.count(("exec", None)) == said.count(("end", None)) == said.count(("end", "a")) == 1
    opened, executed, blocked = entries(log)[:3]
    assert (opened["uid"], opened["profile"]) == (os.getuid(), "default")
    assert executed["cell"] == 1 and executed["sha256"] == hashlib.sha256(code.encode()).hexdigest()
    assert blocked["cell"] == 1 and blocked["act"] == "open" and blocked["reason"]
    assert blocked["target"].startswith("/etc/no")


def test_a_log_that_cannot_be(start_daemon: Start, tmp_path: Path) -> None:
    daemon = start_daemon({"daemon": {"audit_log": str(tmp_path)}}, wait=False)
    assert daemon.process.wait(20) != 0
    assert "audit_log" in daemon.log()

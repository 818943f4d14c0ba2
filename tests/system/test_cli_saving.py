"""Saved states on the command line."""

from __future__ import annotations

from pathlib import Path

from daemon import Daemon, wait_until


def test_save_close_exec(start_daemon: object, tmp_path: Path) -> None:
    daemon: Daemon = start_daemon({"daemon": {"saves": str(tmp_path / "saves")}})  # type: ignore[operator]
    daemon.lair("exec", "-s", "a", "x = 1; y = 2; g = (i for i in [])")
    saved = daemon.lair("save", "a")
    assert saved.returncode == 0 and saved.stdout.startswith('session "a" saved, ')
    assert "2 names; not g (TypeError: cannot pickle" in saved.stdout
    document = daemon.lair_json("save", "a")
    assert (document["session"], document["names"]) == ("a", ["x", "y"])
    assert [it["name"] for it in document["refused"]] == ["g"]
    daemon.lair("close", "a")

    done = daemon.lair("exec", "-s", "a", "x + y")
    assert done.stdout == "3\n"
    assert done.stderr.startswith("lair: the session goes on from the state that was saved ")
    assert "2 names; not g (" in done.stderr
    daemon.lair("exec", "-s", "a", "x = 5")
    assert daemon.lair("load", "a").stderr.startswith("lair: the session goes on")
    assert daemon.lair_json("exec", "-s", "a", "x")["loaded"] is None
    assert daemon.lair("exec", "-s", "a", "x").stdout == "1\n"
    assert daemon.lair_json("load", "a")["names"] == ["x", "y"]

    daemon.lair("save", "a")
    daemon.lair("close", "a")
    opened = daemon.lair_json("open", "a")
    assert opened["loaded"]["names"] == ["x", "y"] and opened["loaded"]["age"] > 0
    daemon.lair("close", "a")
    assert daemon.lair_json("open", "a")["loaded"] is None


def test_nothing_saved(daemon: Daemon) -> None:
    done = daemon.lair("load", "nobody")
    assert done.returncode == 125 and "no state of session" in done.stderr
    assert daemon.lair("save", "nobody").returncode == 125


def test_an_expired_session_comes_back(start_daemon: object, tmp_path: Path) -> None:
    settings = {
        "daemon": {"saves": str(tmp_path / "saves")},
        "profile default": {"on_expire": "save", "idle_ttl": "300ms"},
    }
    daemon: Daemon = start_daemon(settings)  # type: ignore[operator]
    daemon.lair("exec", "-s", "a", "x = 1")
    wait_until(lambda: not daemon.lair_json("ls")["sessions"], "it has expired")
    opened = daemon.lair("open", "a")
    assert "opened" in opened.stdout and "1 name" in opened.stderr

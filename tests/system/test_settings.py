"""The settings are read again: by a request of root or laird's own user, who is told what is different. What is wrong with
them is told in the same words as by `laird -n`, and changes nothing."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable

import pytest

from daemon import BIN, Daemon
from lair import Client, LairError, codec
from lair import messages as m

Start = Callable[..., Daemon]


def reload(client: Client) -> m.ReloadReply:
    return client.call(m.Reload(id=client.new_id()), m.ReloadReply)


def changes(client: Client) -> list[m.SettingChange]:
    return [codec.read(m.SettingChange, item) for item in reload(client).changes]


def checked(daemon: Daemon) -> str:
    """What `laird -n` says is wrong with the file. What is not UTF-8 is in a request's answer as a question mark."""
    command = [str(BIN / "laird"), "-n", "-c", str(daemon.config), "-s", str(daemon.socket)]
    done = subprocess.run(command, capture_output=True)
    assert done.returncode == 2
    said = done.stderr.decode(errors="replace").replace("\N{REPLACEMENT CHARACTER}", "?")
    return said.removeprefix("laird: ").strip()


def test_a_value_is_for_the_next_session(start_daemon: Start) -> None:
    daemon = start_daemon({"profile default": {"cell_timeout_max": "100s"}})
    client = daemon.client()
    client.exec("x = 1", "old")
    daemon.configure({"profile default": {"cell_timeout_max": "200s"}})
    reply = reload(client)
    assert reply.path == os.fsencode(daemon.config)
    (change,) = [codec.read(m.SettingChange, item) for item in reply.changes]
    assert (change.change, change.profile, change.setting) == ("changed", "default", "cell_timeout_max")
    assert (change.before, change.after, change.restart) == (b"100s", b"200s", False)
    with pytest.raises(LairError, match="cell_timeout_max = 100 s"):
        client.exec("x", "old", timeout=150)
    assert client.exec("1", "new", timeout=150).text == "1"
    assert client.exec("x", "old").text == "1"
    assert changes(client) == []


def test_everything_that_is_different_is_told(start_daemon: Start) -> None:
    daemon = start_daemon({"profile default": {"env": "A=1", "forbid": "call eval: no"}, "profile former": {}})
    client = daemon.client()
    daemon.configure(
        {
            "daemon": {"frame_size": "64M", "sessions": "7"},
            "profile default": {"env": '"A=1 2" B=2', "idle_ttl": "off"},
            "profile latter": {},
        }
    )
    found = {(it.profile, it.setting): it for it in changes(client)}
    assert found.keys() == {
        (None, "frame_size"),
        (None, "sessions"),
        ("default", "env"),
        ("default", "idle_ttl"),
        ("default", "forbid"),
        ("former", None),
        ("latter", None),
    }
    assert found[None, "frame_size"].restart and not found[None, "sessions"].restart
    assert (found["default", "env"].before, found["default", "env"].after) == (b"A=1", b'"A=1 2"\n\tB=2')
    assert found["default", "forbid"].after == b""
    assert (found["former", None].change, found["latter", None].change) == ("removed", "added")
    assert client.hello().frame_max == 32 << 20
    assert client.exec("1", "s", profile="latter").text == "1"
    with pytest.raises(LairError, match="^bad_request: "):
        client.exec("1", "t", profile="former")


@pytest.mark.parametrize(
    "text",
    [
        b"[daemon]\nnonsense = 1\n",
        b"[daemon]\nsessions = many\n",
        b"[daemon\n",
        b"[profile default]\nwrite = SOCKET\n",
        b"[profile default]\nread = /none/such\n",
        b"[profile default]\nnons\xff\xe2 = 1\n",
    ],
)
def test_what_is_wrong_changes_nothing(daemon: Daemon, client: Client, text: bytes) -> None:
    right = daemon.config.read_bytes()
    client.exec("x = 1", "wrong")
    daemon.config.write_bytes(text.replace(b"SOCKET", bytes(daemon.socket.parent)))
    try:
        with pytest.raises(LairError) as refused:
            reload(client)
        sentence = checked(daemon)
        assert refused.value.code == "settings"
        assert refused.value.message == f"{sentence}; nothing has changed"
        done = daemon.lair("reload")
        assert (done.returncode, done.stderr) == (125, f"lair: {sentence}; nothing has changed\n")
        assert daemon.lair_json("reload")["error"]["code"] == "settings"
    finally:
        daemon.config.write_bytes(right)
    assert client.exec("x", "wrong").text == "1"
    assert changes(client) == []


def test_a_file_that_is_gone(start_daemon: Start) -> None:
    daemon = start_daemon({})
    client = daemon.client()
    daemon.config.unlink()
    with pytest.raises(
        LairError, match=f"^settings: {daemon.config}: No such file or directory; nothing has changed"
    ):
        reload(client)


def test_an_audit_log_that_cannot_be_written(start_daemon: Start) -> None:
    daemon = start_daemon({})
    daemon.configure({"daemon": {"audit_log": "/none/such"}, "profile latter": {}})
    client = daemon.client()
    with pytest.raises(
        LairError, match="^settings: cannot append to audit_log = /none/such: No such file or directory"
    ):
        reload(client)
    with pytest.raises(LairError, match="^bad_request: "):
        client.exec("1", "t", profile="latter")


@pytest.mark.skipif(os.geteuid() != 0, reason="wants root")
def test_who_may(start_daemon: Start) -> None:
    daemon = start_daemon({})
    daemon.share()
    act = "c.call(lair.messages.Reload(id=9), lair.messages.ReloadReply)"
    assert daemon.as_user(1234, act) == "denied"
    assert (
        daemon.as_user(1234, "c.call(lair.messages.Packages(id=9, prune=True), lair.messages.PackagesReply)")
        == "denied"
    )
    assert "settings re-read" not in daemon.log()
    reload(daemon.client())
    assert "settings re-read" in daemon.log()


def test_the_command_line(start_daemon: Start) -> None:
    daemon = start_daemon({"profile default": {"env": "A=1"}})
    path = f"settings read from {daemon.config}, for sessions opened from now on\n"
    assert daemon.lair("reload").stdout == path + "no setting has changed\n"
    daemon.configure({"daemon": {"frame_size": "64M"}, "profile default": {"env": "A=1 B=2"}, "profile x": {}})
    assert daemon.lair("reload").stdout == path + (
        "frame_size: was 32M, is 64M; takes effect when laird is started anew\n"
        "profile default, env: was A=1, is A=1 B=2\n"
        "profile x: added\n"
    )
    daemon.configure({})
    told = daemon.lair_json("reload")
    assert (told["reloaded"], told["path"]) == (True, str(daemon.config))
    assert {
        "change": "removed",
        "profile": "x",
        "setting": None,
        "before": None,
        "after": None,
        "restart": False,
    } in (told["changes"])
    daemon.terminate()
    assert daemon.lair("reload").returncode == 125

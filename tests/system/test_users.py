"""One daemon of root for several users: who may connect, and who may use which profile."""

from __future__ import annotations

import os
import stat
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from daemon import BIN, Daemon, Settings, command_of, own_uids, uids, wait_until
from test_router_death import kill_router

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root serves several users")

Start = Callable[..., Daemon]
ANN, BEN, STAFF, TEAM = 61700, 61701, 61702, 61703
CHECK = "from lair import messages as m; c.call(m.Check(id=c.new_id(), code='1', profile='team'), m.CheckReply)"
ONE = "print(c.exec('6 * 7', profile={!r}).text)"


def shared(**daemon: str) -> Settings:
    bare = {"preload": "", "spares": "0"}
    return {
        "daemon": {"socket_mode": "0666", **daemon},
        "profile default": bare,
        "profile ann": {**bare, "users": f"root {ANN}"},
        "profile team": {**bare, "groups": f"{TEAM}"},
        "profile both": {**bare, "users": f"{BEN}", "groups": f"{TEAM}"},
    }


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    it = Daemon(shared())
    yield it
    it.end()


def can_connect(daemon: Daemon, uid: int, *groups: int) -> bool:
    code = f"import socket; socket.socket(socket.AF_UNIX).connect({str(daemon.socket)!r})"
    joined = f"--groups={','.join(map(str, groups))}" if groups else "--clear-groups"
    command = ["setpriv", f"--reuid={uid}", f"--regid={uid}", joined, "/usr/bin/python3", "-c", code]
    return subprocess.run(command, capture_output=True).returncode == 0


def permissions(path: Path) -> str:
    return stat.filemode(path.stat().st_mode)


def test_by_itself_the_socket_is_laird_s_alone(start_daemon: Start) -> None:
    daemon = start_daemon()
    assert permissions(daemon.socket) == "srw-------"
    assert permissions(daemon.socket.parent) == "drwx------"
    assert not can_connect(daemon, ANN)


def test_everybody(daemon: Daemon) -> None:
    assert daemon.as_user(ANN, "print(c.exec('6 * 7').text)") == "42"
    assert permissions(daemon.socket.parent) == "drwx--x--x"


def test_a_group(start_daemon: Start) -> None:
    daemon = start_daemon({"daemon": {"socket_mode": "0660", "socket_group": str(STAFF)}})
    assert daemon.socket.stat().st_gid == STAFF
    assert can_connect(daemon, ANN, STAFF)
    assert not can_connect(daemon, BEN, TEAM)


def test_it_is_so_after_each_start(start_daemon: Start) -> None:
    daemon = start_daemon(shared())
    daemon.terminate()
    daemon.start()
    assert can_connect(daemon, ANN)


@pytest.mark.parametrize(
    ("uid", "groups", "profile", "may"),
    [
        (ANN, (), "ann", True),
        (BEN, (), "ann", False),
        (ANN, (), "team", False),
        (ANN, (STAFF, TEAM), "team", True),
        (TEAM, (), "team", True),  # by its first group
        (BEN, (), "both", True),
        (ANN, (TEAM,), "both", True),
        (ANN, (STAFF,), "both", False),
        (BEN, (), "default", True),
    ],
)
def test_whose_a_profile_is(daemon: Daemon, uid: int, groups: tuple[int, ...], profile: str, may: bool) -> None:
    assert daemon.as_user(uid, ONE.format(profile), groups) == ("42" if may else "denied")


def test_the_refusal_says_what_there_is(daemon: Daemon) -> None:
    act = "try: c.open('x', profile='team')\nexcept lair.LairError as e: print(e.message)"
    said = 'the profile "team" is for other users; for you there is: {}'
    assert daemon.as_user(ANN, act) == said.format("default, ann")
    assert daemon.as_user(BEN, act) == said.format("default, both")
    assert daemon.as_user(ANN, "print(c.list())") == "[]"


def test_every_door(daemon: Daemon) -> None:
    """A profile is chosen where a session is made, also one that only checks code."""
    for act in ("c.open('x', profile='team')", "c.exec('1', profile='team')", CHECK):
        assert daemon.as_user(ANN, act) == "denied", act


def test_root_may_use_all(daemon: Daemon) -> None:
    with daemon.client() as client:
        assert [client.exec("1", profile=it).text for it in ("ann", "team", "both")] == ["1"] * 3


def test_who_is_in_no_group_any_more_keeps_the_session(start_daemon: Start) -> None:
    settings = shared()
    daemon = start_daemon(settings)
    assert daemon.as_user(ANN, "print(c.exec('x = 41', 's', profile='ann').returncode)") == "0"
    settings["profile ann"]["users"] = str(BEN)
    daemon.configure(settings)
    assert daemon.lair("reload").returncode == 0
    assert daemon.as_user(ANN, "print(c.exec('x + 1', 's').text)") == "42"
    assert daemon.as_user(ANN, "c.open('t', profile='ann')") == "denied"


@pytest.mark.parametrize(
    ("section", "line", "said"),
    [
        ("daemon", "socket_mode = 0777", "0600, or more of 0666"),
        ("daemon", "socket_mode = 666", None),
        ("daemon", "socket_mode = 0066", "0600, or more of 0666"),
        ("daemon", "socket_group = nosuchgroup", "groups that exist, but there is no nosuchgroup"),
        ("daemon", "socket_group = root", None),
        ("profile default", "users = root nosuchuser", "users that exist, but there is no nosuchuser"),
        ("profile default", "users = 4294967295", "names or numbers of users"),
        ("profile default", "groups = root 12", None),
    ],
)
def test_the_settings_are_checked(tmp_path: Path, section: str, line: str, said: str | None) -> None:
    file = tmp_path / "sessions.conf"
    file.write_text(f"[daemon]\n[profile default]\n[{section}]\n{line}\n".replace(f"[{section}]\n", "", 1))
    done = subprocess.run([str(BIN / "laird"), "-n", "-c", str(file)], capture_output=True, text=True)
    assert (said or "") in done.stderr
    assert (done.returncode == 0) == (said is None), done.stderr


def test_names_become_numbers(tmp_path: Path) -> None:
    file = tmp_path / "sessions.conf"
    file.write_text("[profile default]\nusers = root daemon\n")
    done = subprocess.run([str(BIN / "laird"), "-n", "-c", str(file)], capture_output=True, text=True)
    assert "users =\n\t0\n\t1\n" in done.stdout


# ---- two daemons ----


def test_two_daemons_give_no_user_twice(start_daemon: Start) -> None:
    first = own_uids()
    one = start_daemon({"daemon": {"uids": uids(first, 100)}})
    two = start_daemon({"daemon": {"uids": uids(first + 99, 100)}}, wait=False)
    assert two.process.wait(20) == 1
    assert f"another laird gives some of uids = {uids(first + 99, 100)}" in two.log()
    assert not two.socket.exists()
    three = start_daemon({"daemon": {"uids": uids(first + 100, 100)}})
    assert [it.client().exec("1").text for it in (one, three)] == ["1", "1"]


def test_numbers_are_free_when_a_daemon_has_died(start_daemon: Start) -> None:
    daemon = start_daemon()
    parts = daemon.processes()
    daemon.process.kill()
    daemon.process.wait()
    wait_until(lambda: not any(map(command_of, parts)), "all of it is gone")
    daemon.start()
    assert daemon.client().exec("1").text == "1"


def test_without_a_range_each_finds_its_own(start_daemon: Start) -> None:
    both = [start_daemon({"daemon": {"uids": ""}}) for _ in range(2)]
    owners = [os.stat(it.client().open("a").workspace).st_uid for it in both]
    assert owners[0] // 65536 != owners[1] // 65536
    for it in both:
        assert it.lair("reset", "a").returncode == 0


def test_a_new_router_gives_numbers_of_the_same_range(start_daemon: Start) -> None:
    daemon = start_daemon({"daemon": {"uids": ""}})
    before = os.stat(daemon.client().open("a").workspace).st_uid
    kill_router(daemon)
    after = os.stat(daemon.client().open("b").workspace).st_uid
    assert after != before
    assert abs(after - before) < 65536

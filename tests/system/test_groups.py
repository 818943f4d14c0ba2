"""Control groups: what a session uses as a whole is limited, and whom the kernel kills for it is told."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from daemon import BIN, Daemon, own_groups, wait_until
from daemon import group_of as group_of_process
from lair import Client

USER = 61007

SETTINGS = {
    "profile default": {"preload": "", "spares": "0", "memory": "200M", "processes": "8", "checkpoint": "off"},
    "profile kept": {"preload": "", "spares": "0", "memory": "200M", "processes": "8", "checkpoint": "cell"},
    "profile slow": {"preload": "", "spares": "0", "cpu": "0.25"},
    "profile strong": {"preload": "", "spares": "0", "level": "strong"},
    "profile endless": {"preload": "", "spares": "0", "memory": "off", "processes": "off"},
}


def doctor_level() -> str:
    done = subprocess.run([str(BIN / "lair"), "doctor", "--json"], capture_output=True, check=True)
    level: str = json.loads(done.stdout)["level"]
    return level


@pytest.fixture(scope="module", autouse=True)
def groups_there() -> None:
    if doctor_level() != "strong":
        pytest.skip("this host lets us make no control groups")


# Memory that malloc has no say in: it is there when it is touched.
TOUCH = """
import mmap, os, time
def touch(megabytes):
    shared = mmap.mmap(-1, megabytes << 20)
    for at in range(0, len(shared), 4096): shared[at] = 1
    return shared
def answer(child, question=b""):
    "Nothing of one that is killed, from the moment when it was."
    pid, come, ask = child
    try: os.write(ask, question)
    except BrokenPipeError: pass
    return os.read(come, 1)
def tree(n, megabytes):
    "How many children can have so much at once."
    children = []
    for i in range(n):
        come, go = os.pipe()
        asked, ask = os.pipe()
        pid = os.fork()
        if pid == 0:
            kept = touch(megabytes)
            os.write(go, b"1")
            os.read(asked, 1)
            os.write(go, b"2")
            time.sleep(30)
            os._exit(0)
        os.close(go)
        os.close(asked)
        children.append((pid, come, ask))
    had = [child for child in children if answer(child) == b"1"]
    have = [child for child in had if answer(child, b"?") == b"2"]
    for pid, come, ask in children:
        os.kill(pid, 9)
        os.waitpid(pid, 0)
        os.close(come)
        os.close(ask)
    return len(have)
"""


def group_of(client: Client, session: str, controller: str) -> Path:
    pid = client.info(session).pid
    assert pid
    return group_of_process(pid, controller)


def scores(daemon: Daemon) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for pid in daemon.processes():
        try:
            name = Path(f"/proc/{pid}/comm").read_text().strip()
            found.setdefault(name, []).append(int(Path(f"/proc/{pid}/oom_score_adj").read_text()))
        except OSError:
            pass
    return found


def test_strong(client: Client, session: str) -> None:
    client.exec("1", session, profile="strong")
    info = client.info(session)
    assert info.level == "strong"
    assert {"memory-cgroup", "pids-cgroup"} <= set(info.guards)
    assert "cpu-cgroup" not in info.guards


def test_no_limit_is_no_guard(client: Client, session: str) -> None:
    client.exec("1", session, profile="endless")
    info = client.info(session)
    assert info.level == "strong-nomem"
    assert not any(guard.endswith("cgroup") for guard in info.guards)


def test_one_process_gets_a_memory_error(client: Client, session: str) -> None:
    client.exec("x = 1", session)
    for code in (
        "y = bytearray(300 << 20)",
        "y = []\nwhile True: y.append(bytearray(b'x') * (1 << 20))",
    ):
        reply = client.exec(code, session)
        assert (reply.cause, reply.state, reply.error["name"]) == ("error", "kept", "MemoryError")
        assert client.exec("y = None; x", session).text == "1"


@pytest.mark.parametrize("profile", ["default", "kept"])
def test_oom_is_told(client: Client, session: str, profile: str) -> None:
    client.exec(TOUCH + "x = 'before'", session, profile=profile)
    before = client.stats()
    reply = client.exec("print('so far'); huge = touch(400)", session)
    assert (reply.cause, reply.returncode, reply.stdout) == ("oom", 137, b"so far\n")
    after = client.stats()
    assert (after.out_of_memory, after.rolled_back) == (before.out_of_memory + 1, before.rolled_back + 1)
    assert after.crashed == before.crashed
    if profile == "kept":
        assert (reply.state, reply.restored) == ("rolled_back", 1)
        assert client.exec("x, 'huge' in dir()", session).text == "('before', False)"
    else:
        assert reply.state == "reset"
        assert client.exec("'x' in dir()", session).text == "False"


def test_a_tree_has_no_more_than_one(client: Client, session: str) -> None:
    client.exec(TOUCH, session)
    reply = client.exec("tree(7, 70)", session)
    assert reply.returncode == 0, reply
    assert reply.blocked == [{"event": "oom", "reason": "memory-limit"}]
    assert 1 <= int(reply.text or "0") <= 3
    limit = group_of(client, session, "memory") / "memory.limit_in_bytes"
    if limit.exists():
        assert int(limit.read_text()) < 270 << 20
    reply = client.exec("tree(2, 60)", session)
    assert (reply.text, reply.blocked) == ("2", None)
    reply = client.exec("tree(7, 70)\nopen('/x', 'w')", session)
    assert [act["event"] for act in reply.blocked] == ["open", "oom"]


def test_shared_memory_counts_and_leaves_room(client: Client, session: str) -> None:
    client.exec(TOUCH + "x = 1", session)
    reply = client.exec(
        "with open('/dev/shm/a', 'wb', 0) as f:\n    for _ in range(150): f.write(bytes(1 << 20))", session
    )
    assert reply.error["name"] == "OSError"
    assert client.exec("touch(150)", session).cause == "oom"
    assert client.exec("1", session).text == "1"


def test_a_checkpoint_is_not_what_is_killed(daemon: Daemon, client: Client, session: str) -> None:
    """Not even if it is by far the largest: it and the warden are what the session is brought back from."""
    client.exec(TOUCH + "x = touch(120)", session, profile="kept")
    client.exec("x = None", session)
    pid = client.info(session).pid
    reply = client.exec("tree(7, 60)", session)
    assert reply.returncode == 0, reply
    assert int(reply.text or "7") < 7
    assert client.exec("touch(400)", session).cause == "oom"
    assert client.info(session).pid == pid
    assert [record.cell for record in client.checkpoints(session)] == [1, 2, 3]
    client.restore(session, "1")
    assert client.exec("len(x) >> 20", session).text == "120"


def test_scores(daemon: Daemon, client: Client, session: str) -> None:
    client.exec("x = 1", session, profile="kept")
    wait_until(lambda: scores(daemon).get("lair-frozen"), "a checkpoint is taken")
    client.exec("import os; os._exit(0)", session)
    client.exec("x", session)
    # A copy has what its original has until laird has heard of it.
    wait_until(lambda: scores(daemon).get("lair-frozen") == [0, 0], "another one is taken, and spared")
    found = scores(daemon)
    assert set(found["lair-python"]) == {1000}
    assert set(found["lair-warden"]) == {0}


def test_what_a_checkpoint_holds_is_not_taken_from_the_session(client: Client, session: str) -> None:
    client.exec("x = bytearray(b'1') * (150 << 20)", session, profile="kept")
    reply = client.exec("x[:] = bytes(1); y = x = None; x = bytearray(b'2') * (150 << 20); x[-1]", session)
    assert (reply.returncode, reply.text) == (0, "50"), reply
    client.undo(session)
    assert client.exec("x[-1]", session).text == "49"


def test_only_what_was_killed_for_memory_is(client: Client, session: str) -> None:
    client.exec(TOUCH, session)
    assert int(client.exec("tree(7, 60)", session).text or "7") < 7
    assert client.exec("os.kill(os.getpid(), 9)", session).cause == "signal 9"


def test_processes(client: Client, session: str) -> None:
    code = """
import os, time
children = []
try:
    while len(children) < 50:
        pid = os.fork()
        if pid == 0:
            time.sleep(60)
            os._exit(0)
        children.append(pid)
except BlockingIOError as error:
    print(error.errno)
for pid in children:
    os.kill(pid, 9)
    os.waitpid(pid, 0)
len(children)
"""
    for profile in ("default", "kept"):
        for _ in range(6):
            client.exec("x = 1", session + profile, profile=profile)
        reply = client.exec(code, session + profile)
        assert (reply.stdout, reply.text) == (b"11\n", "7")
        assert client.exec("x", session + profile).text == "1"
        client.shutdown(session + profile)


def test_threads_are_processes(client: Client, session: str) -> None:
    code = "import threading, time\nfor n in range(9): threading.Thread(target=time.sleep, args=(1,)).start()"
    reply = client.exec(code, session)
    assert reply.error["name"] == "RuntimeError"
    assert client.exec("n", session).text == "7"


def test_cpu(client: Client, session: str) -> None:
    burn = """
import os, time
def burn():
    begin, cpu = time.monotonic(), time.process_time()
    while time.monotonic() - begin < 1: pass
    return time.process_time() - cpu
burn()
"""
    # All sessions have one share of a machine, which may be busy: it has its fifth when there is one to be had.
    shares: list[float] = []
    while not shares or (max(shares) <= 0.1 and len(shares) < 10):
        shares.append(float(client.exec(burn, session, profile="slow").text or "0"))
        assert shares[-1] < 0.4
    assert max(shares) > 0.1, shares
    assert "cpu-cgroup" in client.info(session).guards


BUSY = "import os\nfor _ in range(3):\n    if os.fork() == 0: break\nwhile True: pass"


def ticks(share: Path) -> int:
    """How long the processes in the groups of a share have had a processor."""
    spent = 0
    for pid in (pid for procs in share.glob("*/cgroup.procs") for pid in procs.read_text().split()):
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        spent += int(fields[11]) + int(fields[12])
    return spent


def test_users_have_equal_shares_of_the_processors(start_daemon: Callable[..., Daemon]) -> None:
    """One who has many busy sessions, or several profiles, has no more than another."""
    if os.geteuid() != 0 or not Path("/sys/fs/cgroup/cpu/cpu.shares").exists():
        pytest.skip("there are users for root alone, and shares are read where version 1 has them")
    daemon = start_daemon({"profile default": {"preload": ""}, "profile other": {"preload": ""}})
    daemon.share()
    client = daemon.client()
    client.exec("1", "one")
    daemon.as_user(USER, "c.exec('1', 'm0')")
    client.start(BUSY, "one", timeout=600)
    daemon.as_user(USER, "\n".join(f"c.start({BUSY!r}, 'm{n}', timeout=600)" for n in range(6)) + "\nc.list()")
    shares = [
        group_of_process(int(pid or "0"), "cpu").parent
        for pid in (client.info("one").pid, daemon.as_user(USER, "print(c.info('m0').pid)"))
    ]
    weights = [int((share / "cpu.shares").read_text()) for share in shares]
    assert shares[0] != shares[1]
    assert weights[0] == weights[1]
    before = [ticks(share) for share in shares]
    time.sleep(3)
    ours, theirs = (ticks(share) - first for share, first in zip(shares, before))
    assert 0.6 < ours / theirs < 1.6, (ours, theirs)
    daemon.as_user(USER, "c.exec('1', 'more', profile='other')")
    assert int((shares[1] / "cpu.shares").read_text()) == weights[0] // 2
    client.close()
    assert daemon.terminate() == 0
    assert daemon.groups() == []


def test_a_group_goes_with_its_session(daemon: Daemon, client: Client, session: str) -> None:
    client.exec("import os\nif os.fork() == 0:\n    import time; os.setsid(); time.sleep(60)", session)
    groups = [group_of(client, session, controller) for controller in ("memory", "pids")]
    assert all(group.exists() for group in groups)
    client.shutdown(session)
    wait_until(lambda: not any(group.exists() for group in groups), "its groups are gone", 3)


def test_groups_of_an_earlier_life_are_swept(start_daemon: Callable[..., Daemon]) -> None:
    daemon = start_daemon(SETTINGS)
    client = daemon.client()
    client.exec("1", "a")
    assert daemon.groups()
    stale = [path / "1-stale" for path in daemon.groups()]
    for path in stale:
        path.mkdir()
    sleeper = subprocess.Popen(["sleep", "100"])
    (stale[0] / "cgroup.procs").write_text(str(sleeper.pid))
    client.close()
    daemon.process.kill()
    daemon.process.wait()
    wait_until(lambda: not daemon.left_behind_processes(), "all of it is dead")
    assert daemon.groups()
    again = subprocess.Popen(
        [str(BIN / "laird"), "--config", str(daemon.config), "--socket", str(daemon.socket)],
        env=daemon.env,
        stderr=subprocess.DEVNULL,
    )
    try:
        assert sleeper.wait(10) == -signal.SIGKILL
        wait_until(lambda: not any(path.exists() for path in stale), "the old groups are gone")
    finally:
        again.terminate()
        assert again.wait(20) == 0
    assert daemon.groups() == []


def test_limits_outlive_a_router(start_daemon: Callable[..., Daemon]) -> None:
    """The next one tells of what is killed, makes room for frozen copies, and removes groups, like the one before."""
    daemon = start_daemon(SETTINGS)
    client = daemon.client()
    client.exec(TOUCH + "x = 1", "a", profile="kept")
    groups = [group_of(client, "a", controller) for controller in ("memory", "pids")]
    os.kill(client.hello().pid, signal.SIGKILL)
    client = daemon.client()
    for _ in range(6):
        client.exec("x += 1", "a")
    assert client.info("a").level == "strong"
    reply = client.exec("touch(400)", "a")
    assert (reply.cause, reply.state) == ("oom", "rolled_back")
    assert client.exec("x", "a").text == "7"
    wait_until(lambda: len(client.checkpoints("a")) == 8, "the last one is taken")
    assert int((groups[1] / "pids.max").read_text()) == 9 + 8
    client.shutdown("a")
    wait_until(lambda: not any(group.exists() for group in groups), "its groups are gone", 3)
    assert daemon.terminate() == 0
    assert daemon.groups() == []


@pytest.fixture
def delegated() -> Iterator[list[Path]]:
    """Groups that belong to an ordinary user, as a service manager hands them over."""
    if os.geteuid() != 0:
        pytest.skip("only root can give control groups away")
    homes = [group for group in own_groups() if group.parts[4:5] in (("memory",), ("pids",), ("cpu",))]
    unified = Path("/sys/fs/cgroup/cgroup.subtree_control")
    if not homes and unified.exists():
        homes = [unified.parent]
        unified.write_text("+memory +pids +cpu")
    given = [home / f"lair-given-{os.getpid()}" for home in homes]
    for group in given:
        group.mkdir()
        for name in (".", "cgroup.procs", "cgroup.subtree_control"):
            if (group / name).exists():
                os.chown(group / name, USER, USER)
    yield given
    for group in given:
        assert not [path for path in group.iterdir() if path.is_dir()]
        group.rmdir()


def test_an_ordinary_user_with_groups_of_his_own(
    delegated: list[Path], start_daemon: Callable[..., Daemon]
) -> None:
    daemon = start_daemon(SETTINGS, uid=USER, groups=delegated)
    client = daemon.client()
    client.exec(TOUCH + "x = 1", "a", profile="kept")
    assert client.info("a").level == "strong"
    assert client.exec("touch(400)", "a").cause == "oom"
    assert client.exec("x", "a").text == "1"
    assert int(client.exec("tree(7, 70)", "a").text or "7") <= 3
    assert daemon.terminate() == 0
    assert daemon.left_behind() == []


def test_an_ordinary_user_without(start_daemon: Callable[..., Daemon]) -> None:
    if os.geteuid() != 0:
        pytest.skip("we are one with")
    daemon = start_daemon(SETTINGS, uid=USER)
    client = daemon.client()
    client.exec("1", "a")
    assert client.info("a").level == "strong-nomem"
    with pytest.raises(Exception, match="demands level strong .* there is no memory cgroup for it"):
        client.exec("1", profile="strong")
    assert "no control groups for memory: " in daemon.log()

"""A template is of one user: what a session can tell of itself says nothing of another user's."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from typing import Any

import pytest

from daemon import Daemon, wait_until
from test_templates import templates

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")

ALICE, BOB, CAROL = 54321, 54322, 54323
StartDaemon = Callable[..., Daemon]

# The random bytes that canary and pointer guard are made of, the seed of hashes, and where things lie.
SECRETS = """
import ctypes, re
libc = ctypes.CDLL(None)
libc.getauxval.restype = ctypes.c_ulong
[ctypes.string_at(libc.getauxval(25), 16).hex(), hash("lair"), id(len), ctypes.cast(libc.getpid, ctypes.c_void_p).value,
 ctypes.addressof(ctypes.c_int.in_dll(ctypes.pythonapi, "Py_OptimizeFlag")), libc.getauxval(9)]
"""


@pytest.fixture
def start(start_daemon: StartDaemon) -> StartDaemon:
    def start(**daemon: str) -> Daemon:
        it = start_daemon({"daemon": daemon, "profile default": {"preload": "", "spares": "1", "level": ""}})
        it.share()
        return it

    return start


def of(daemon: Daemon, uid: int, session: str, code: str = SECRETS) -> Any:
    act = f"import json; print(json.dumps(c.exec({code!r}, {session!r}).text))"
    return json.loads(daemon.as_user(uid, act))


def close(daemon: Daemon, uid: int) -> None:
    daemon.as_user(uid, "for it in c.list(): c.shutdown(it.session)")


def count(daemon: Daemon, n: int) -> None:
    """So many there come to be."""
    wait_until(lambda: len(templates(daemon)) == n, f"{n} templates", 20)


def test_users_share_nothing_of_it(start: StartDaemon) -> None:
    daemon = start()
    secrets = [of(daemon, uid, "s") for uid in (ALICE, BOB, CAROL)]
    assert secrets[0].startswith("['")
    for one, other in ((0, 1), (0, 2), (1, 2)):
        for mine, theirs in zip(eval(secrets[one]), eval(secrets[other])):
            assert mine != theirs, secrets
    assert of(daemon, ALICE, "t") == secrets[0]


def test_one_user_has_one(start: StartDaemon) -> None:
    """Whoever it is, and however many sessions: another is not even begun."""
    daemon = start(template_ttl="10ms")
    count(daemon, 1)
    before = templates(daemon)
    for session in "abc":
        of(daemon, ALICE, session, "1")
    close(daemon, ALICE)
    of(daemon, ALICE, "d", "1")
    assert templates(daemon) == before
    assert daemon.client().stats().templates == 1


def test_an_ordinary_user_s_laird_keeps_its_own(start_daemon: StartDaemon) -> None:
    """Though root comes first."""
    daemon = start_daemon({"profile default": {"preload": ""}}, uid=ALICE, wait=False)
    wait_until(daemon.socket.exists, "the socket is there", 20)
    client = daemon.client()
    client.exec("1", "root's")
    wait_until(lambda: f"for uid {ALICE}" in daemon.log(), "there is one for its own user", 20)
    (of_alice,) = [line for line in daemon.log().splitlines() if line.endswith(f"for uid {ALICE}")]
    assert of(daemon, ALICE, "s", "6 * 7") == "42"
    assert daemon.log().count("is ready: python") <= 3 and of_alice in daemon.log()


def test_there_is_one_for_whoever_comes_next(start: StartDaemon) -> None:
    daemon = start()
    of(daemon, ALICE, "s", "1")
    assert len(templates(daemon)) == 1
    of(daemon, BOB, "s", "1")
    count(daemon, 3)
    wait_until(lambda: daemon.client().stats().spares == 3, "a spare of each")
    known = set(templates(daemon))
    of(daemon, CAROL, "s", "1")
    count(daemon, 4)
    assert known < set(templates(daemon))


def test_those_of_users_without_sessions_go(start: StartDaemon) -> None:
    daemon = start(template_ttl="300ms")
    secrets = of(daemon, ALICE, "s")
    of(daemon, BOB, "s", "1")
    close(daemon, BOB)
    count(daemon, 2)
    assert of(daemon, ALICE, "t") == secrets
    close(daemon, ALICE)
    count(daemon, 1)
    assert of(daemon, BOB, "s") != secrets
    assert " error " not in daemon.log()


def test_settings_read_again(start: StartDaemon) -> None:
    daemon = start()
    for uid in (ALICE, BOB):
        of(daemon, uid, "old", "x = 1")
    count(daemon, 3)
    daemon.process.send_signal(signal.SIGHUP)
    wait_until(lambda: "settings re-read" in daemon.log(), "it has other settings")
    secrets = [of(daemon, uid, "new") for uid in (ALICE, BOB)]
    assert secrets[0] != secrets[1]
    assert [of(daemon, uid, "old", "x") for uid in (ALICE, BOB)] == ["1", "1"]
    for uid in (ALICE, BOB):
        close(daemon, uid)
    count(daemon, 3)


def test_another_router(start: StartDaemon) -> None:
    """Starts none for those whose sessions go on, and shares none either."""
    daemon = start()
    users = (ALICE, BOB, CAROL)
    for uid in users:
        of(daemon, uid, "s", f"x = {uid}")
    count(daemon, 4)
    with daemon.client() as client:
        os.kill(client.stats().pid, signal.SIGKILL)
    assert [of(daemon, uid, "s", "x") for uid in users] == [str(uid) for uid in users]
    count(daemon, 2)
    secrets = [of(daemon, uid, "t") for uid in users]
    assert len(set(secrets)) == 3


def test_who_waits_is_not_given_what_another_user_has(start: StartDaemon) -> None:
    """The first one's stands still; the second's is its own."""
    daemon = start()
    secrets = of(daemon, ALICE, "s")
    (template,) = templates(daemon)
    os.kill(template, signal.SIGSTOP)
    assert of(daemon, BOB, "s") != secrets
    os.kill(template, signal.SIGCONT)


def test_each_is_told_why_a_profile_cannot_start(start_daemon: StartDaemon) -> None:
    daemon = start_daemon({"profile broken": {"preload": "no_such_module_at_all"}})
    daemon.share()
    act = "try: c.exec('1', profile='broken')\nexcept lair.LairError as e: print(e.message)"
    for uid in (ALICE, BOB):
        assert "no_such_module_at_all" in daemon.as_user(uid, act)

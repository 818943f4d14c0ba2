"""Spawned clean: nothing of laird's environment, memory or descriptors reaches a session, nor of an earlier one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from daemon import Daemon
from lair import Client

SETTINGS = {"profile default": {"env": 'GREETING=hello "NAME=two words"', "subprocess": "on"}}


def test_environment(client: Client) -> None:
    environment = eval(client.exec("import os; dict(os.environ)").text or "")
    assert "SECRET_OF_LAIRD" not in environment
    assert environment["GREETING"] == "hello"
    assert environment["NAME"] == "two words"
    assert not [name for name in environment if name.startswith(("LAIR", "XDG_RUNTIME"))]


def test_home_is_the_workspace(client: Client, session: str) -> None:
    workspace = client.open(session).workspace
    assert client.exec("import os; (os.getcwd(), os.environ['HOME'])", session).text == repr((workspace, workspace))


@pytest.mark.parametrize("name", ["environ", "cmdline"])
def test_proc_self_tells_nothing(client: Client, name: str) -> None:
    reply = client.exec(f"open('/proc/self/{name}', 'rb').read()")
    if reply.returncode == 0:
        for secret in ("hunter2", "SECRET", "laird", "sessions.conf", "lair-test-"):
            assert secret not in (reply.text or "")


def test_the_secret_is_nowhere_in_memory(client: Client) -> None:
    """laird is exec'd away: its heap and stack are not in a session's address space."""
    code = """
import ctypes
found, needle = 0, b'_'.join([b'SECRET', b'OF', b'LAIRD'])
for line in open('/proc/self/maps'):
    span, mode, *_, name = line.split(maxsplit=5) + ['']
    low, high = (int(x, 16) for x in span.split('-'))
    if 'r' in mode and '[v' not in line and high - low < 1 << 28:
        found += ctypes.string_at(low, high - low).count(needle)
found - ctypes.string_at(id(needle), 100).count(needle)
"""
    reply = client.exec(code)
    if reply.returncode == 0:
        assert reply.text == "0"


def test_descriptors(client: Client) -> None:
    code = """
import os, stat
kinds = {}
for fd in range(1024):
    try: status = os.fstat(fd)
    except OSError: continue
    kind = 'null' if status.st_rdev == os.makedev(1, 3) else '?'
    kinds[fd] = {stat.S_IFSOCK: 'socket', stat.S_IFIFO: 'pipe', stat.S_IFCHR: kind, stat.S_IFREG: 'file', 0: 'event'}.get(stat.S_IFMT(status.st_mode), '?')
kinds
"""
    kinds = eval(client.exec(code).text or "")
    assert kinds[0] == "null"
    assert kinds[1] == kinds[2] == "pipe"
    others = {fd: kind for fd, kind in kinds.items() if fd > 2}
    assert sorted(others.values()) == [
        "event",
        "file",
        "null",
        "pipe",
        "pipe",
        "socket",
    ], "the witness's bell, its letters, a number to spare, its output, its channel"


def test_child_processes_get_three_descriptors(client: Client) -> None:
    code = "import subprocess; print(subprocess.getoutput('ls /proc/self/fd').split())"
    reply = client.exec(code)
    if reply.returncode == 0 and reply.stdout != b"[]\n":
        assert set(eval(reply.stdout)) <= {"0", "1", "2", "3"}


def test_umask_and_signals(client: Client) -> None:
    code = """
import os, signal
mask = os.umask(0o77)
ignored = [s for s in range(1, 32) if s not in (9, 19) and signal.getsignal(s) == signal.SIG_IGN]
mask, ignored, sorted(signal.pthread_sigmask(signal.SIG_BLOCK, []))
"""
    mask, ignored, blocked = eval(client.exec(code).text or "")
    assert mask == 0o77
    assert set(ignored) <= {13, 25}  # Python itself ignores SIGPIPE and SIGXFSZ
    assert blocked == []


def test_a_fresh_session_has_an_empty_workspace(daemon: Daemon, client: Client) -> None:
    assert client.exec("import os; os.listdir('.')").text == "[]"
    assert oct(Path(client.open("w").workspace).stat().st_mode & 0o777) == "0o700"
    client.shutdown("w")


def test_a_session_cannot_see_another_s_workspace(client: Client) -> None:
    other = client.open("other").workspace
    client.exec("_ = open('secret', 'w').write('hunter2')", "other")
    reply = client.exec(f"open('{other}/secret').read()")
    assert reply.returncode == 1
    reply = client.exec(f"import os; os.listdir('{os.path.dirname(other)}')")
    assert os.path.basename(other) not in (reply.text or "")
    reply = client.exec(f"open('{other}/planted', 'w')")
    assert reply.returncode == 1
    client.shutdown("other")


def test_writes_outside_are_blocked_and_explained(client: Client, session: str) -> None:
    reply = client.exec("open('/etc/hosts', 'w')", session)
    assert reply.returncode == 1
    assert reply.error["name"] == "PermissionError"
    message = "/etc/hosts: write only below the session's directory (write-outside-workspace)"
    assert message in reply.error["value"]
    assert reply.stderr.decode().count("write-outside-workspace") == 1  # told once
    assert [act["event"] for act in reply.blocked] == ["open"]
    assert client.exec("1", session).blocked is None


def test_the_socket_of_laird_is_out_of_reach(daemon: Daemon, client: Client) -> None:
    code = f"import socket; s = socket.socket(socket.AF_UNIX); s.connect({str(daemon.socket)!r})"
    assert client.exec(code).returncode == 1


def test_no_network(client: Client) -> None:
    reply = client.exec("import socket; socket.create_connection(('127.0.0.1', 22), 1)")
    assert reply.returncode == 1

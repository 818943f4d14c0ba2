"""Every attack, in every shape, with the hook gone; and what a guard says is checked from outside."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Set

import pytest

from cage import ROOT, Host
from drive import Interpreter, Link, Message

HERE = Path(__file__).resolve().parent
PRELUDE = (HERE / "prelude.py").read_text()
ATTACKS = sorted((HERE / "attacks").glob("*.py"))
EXAMPLES = sorted(Path(os.environ["LAIR_REDTEAM"]).glob("*.py")) if "LAIR_REDTEAM" in os.environ else []

# What a level without namespaces or Landlock does not promise: see docs/SECURITY.md.
PROMISES = {"uid": {"1", "3", "5"}, "readonly": {"1", "3", "5"}}
# With the user's own processes counted too, no limit can be set.
COUNTED_APART = {"root", "user", "user-in-a-container", "root-without-userns", "user-old-kernel", "root-old-kernel"}

ELSEWHERE = {"g4_12_inodes": "laird counts files, not the cage: tests/system/test_quota.py"}
WITH_PROC = {"g1_33_sibling_threads"}


def header(attack: Path, name: str) -> Set[str]:
    found = re.search(rf"^# {name} *:? *([\w, ]+)", attack.read_text(), re.M)
    return {word.strip() for word in found[1].split(",")} if found else set()


def holds(host: Host, attack: Path) -> bool:
    """Whether this host promises to withstand it."""
    needs = header(attack, "holds")
    if "tree" in needs and not host.shape.tree:
        return False
    if "ungranted" in needs and host.shape.workbench:
        return False
    if "groups" in needs and not host.shape.groups:
        return False
    if "count" in needs and host.shape.name not in COUNTED_APART and not host.shape.root:
        return False
    promised = PROMISES.get(host.shape.level)
    return promised is None or bool(header(attack, "goal") & promised)


@pytest.mark.parametrize("attack", ATTACKS, ids=[path.stem for path in ATTACKS])
def test_attack(host: Host, python: Interpreter, attack: Path) -> None:
    if not holds(host, attack):
        pytest.skip(f"level {host.shape.level} does not promise this")
    before = host.world.fingerprint()
    names = "\n".join(f"{name} = {value!r}" for name, value in host.world.parameters.items())
    ready = python.run(f"{names}\n{PRELUDE}\nremove_hook()\n'ready'")
    assert ready.text == "'ready'", ready
    result = python.run(attack.read_text() + "\n('blocked', no_error(attack))", timeout=60)
    assert result.text == "('blocked', None)", result
    assert host.world.fingerprint() == before
    assert not host.world.visited()


def in_memory(path: Path) -> bool:
    """Whether all of the file can be read without a disk."""
    fd = os.open(path, os.O_RDONLY)
    try:
        size = os.fstat(fd).st_size
        return os.preadv(fd, [bytearray(size)], 0, os.RWF_NOWAIT) == size
    except BlockingIOError:
        return False
    finally:
        os.close(fd)


def test_what_is_in_memory_stays(host: Host, python: Interpreter) -> None:
    """The session cannot look by itself, so this looks from outside, and first that looking works."""
    path = Path(os.__file__).with_name("this.py")
    attack = (HERE / "attacks/disturb_cache.py").read_text()
    fd = os.open(path, os.O_RDONLY)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(fd)
    if in_memory(path):
        pytest.skip("this file system keeps in memory what nobody needs")
    path.read_bytes()
    assert in_memory(path)
    python.run(f"{PRELUDE}\nremove_hook()")
    result = python.run(attack + "\nno_error(attack)", timeout=60)
    assert result.error is None, result
    assert in_memory(path)


def check_example(host: Host, python: Interpreter, example: Path) -> None:
    if not host.shape.tree:
        pytest.skip("the examples expect a session with a file system of its own")
    if example.stem in WITH_PROC and not host.shape.proc:
        pytest.skip(f"there is no /proc in the shape {host.shape.name}")
    if example.stem in ELSEWHERE:
        pytest.skip(ELSEWHERE[example.stem])
    world = host.world
    parameters = {key: str(value) for key, value in world.parameters.items()}
    parameters.update(
        DAEMON_PID=str(os.getpid()),
        OTHER_PID=str(os.getppid()),
        DAEMON_SOCK=str(world.root / "out" / "stream"),
        DAEMON_DGRAM=str(world.root / "out" / "datagram"),
        TCP="%s:%d" % world.tcp.getsockname(),
        TMP_CANARY=str(world.tmp_secret),
        RW=python.warden.workspace,
        SECRET_X="5a5a",
        SURVIVOR_CHECK="1",
        RACE_S="1",
        MAXPROC="64",
        MEM_MB="512",
        INODES="70000",
    )
    for top in ("out", "ro"):
        canary = world.root / top / f"c_{example.stem}"
        canary.write_text("CANARY")
        if ROOT:
            os.chown(canary, host.shape.uid, host.shape.uid)
    before = world.fingerprint()
    code = example.read_text().replace("_RT = {}  # @RT@", f"_RT = {parameters!r}")
    try:
        result = python.run(code, timeout=90)
        verdict = result.out.decode()
    except (EOFError, ConnectionError):
        verdict = "BLOCKED: it died"
    assert "ESCAPED" not in verdict, verdict
    assert "BLOCKED" in verdict, result
    assert world.fingerprint() == before
    assert not world.visited()


# There is nothing to run, and so nothing to skip, unless a directory of further attacks is named.
if EXAMPLES:
    test_example = pytest.mark.parametrize("example", EXAMPLES, ids=[path.stem for path in EXAMPLES])(check_example)


STORE = """
def attack():
    warden = os.getppid()
    for fd in range(3, 1024):
        if no_error(lambda: os.fstat(fd).st_ino) in packs:
            return f"its own descriptor {fd}"
    for fd in range(3, 64):
        path = f"/proc/{warden}/fd/{fd}"
        got = first(
            lambda: os.stat(path).st_ino,
            lambda: open(path, "rb").read(1),
            lambda: open(path, "r+b"),
            lambda: os.truncate(path, 0),
            lambda: os.link(path, f"stolen-{fd}", follow_symlinks=True),
            lambda: libc_checked(libc.linkat(-100, path.encode(), -100, b"stolen", 0x400)),
            lambda: call("pidfd_getfd", os.pidfd_open(warden), fd, 0),
        )
        if got:
            return f"descriptor {fd} of the warden: {got}"
"""


def packs_of(warden: int) -> Set[int]:
    """Inodes of files without a name that it has open."""
    found = (Path(f"/proc/{warden}/fd") / name for name in os.listdir(f"/proc/{warden}/fd"))
    return {it.stat().st_ino for it in found if "(deleted)" in os.readlink(it) and "memfd" not in os.readlink(it)}


@pytest.mark.skipif(not ROOT, reason="only root can look from outside")
def filed(control: Link, kind: str) -> Message:
    """Of that kind; before it the warden says how far it is."""
    got, body = "files_going", {}
    while got == "files_going":
        got, body, _ = control.receive(30)
    assert got == kind, (got, body)
    return body


def test_files_of_states_are_out_of_reach(host: Host, python: Interpreter) -> None:
    """Nobody in the session can open, write or name what the warden keeps. So it comes back as it was."""
    if host.shape.level == "readonly":
        pytest.skip("nobody writes files there")
    control, precious = python.warden.control, Path(python.warden.workspace) / "precious"
    assert python.run("open('precious', 'wb').write(b'kept' * 10000)").text == "40000"
    control.send("keep_files", serial=7, max=1 << 20)
    assert not filed(control, "files_kept").get("failed")
    packs = packs_of(python.warden.pid)
    assert packs
    for session in (python, python.warden.spawn(2)):
        assert session.run(f"packs = {packs}\n{PRELUDE}\nremove_hook()\n'ready'").text == "'ready'"
        result = session.run(STORE + "\n('blocked', no_error(attack))", timeout=60)
        assert result.text == "('blocked', None)", result
    assert python.run("open('precious', 'wb').write(b'spoilt')").text == "6"
    control.send("bring_files", serial=7)
    assert not filed(control, "files_back").get("refused")
    assert precious.read_bytes() == b"kept" * 10000

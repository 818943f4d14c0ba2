"""What is told as saved is on the disk; and what has changed there since is said to be damaged, and is not loaded."""

from __future__ import annotations

import contextlib
import os
import random
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from daemon import TRACES, Daemon, wait_until
from lair import Client, Connection, LairError, Session
from lair import messages as m

StartDaemon = Callable[..., Daemon]


def save(client: Client, session: str) -> m.SaveReply:
    return client.call(m.Save(id=client.new_id(), session=session), m.SaveReply)


def load(client: Client, session: str) -> m.LoadReply:
    return client.call(m.Load(id=client.new_id(), session=session), m.LoadReply)


def states(root: Path) -> dict[str, Path]:
    """The files of the only id, by the ends of their names."""
    return {path.suffix: path for path in root.rglob("[!.]*") if path.is_file()}


@pytest.fixture
def store(start_daemon: StartDaemon, tmp_path: Path) -> Daemon:
    return start_daemon({"daemon": {"saves": str(tmp_path / "saves")}, "profile default": {"checkpoint": "off"}})


CALL = re.compile(r"^\d+ +(fsync|rename\w*|sendmsg|sendto|write|writev)\((.*)")


@contextlib.contextmanager
def traced(client: Client, log: Path) -> Iterator[None]:
    pids = [str(client.stats().keeper_pid), str(client.stats().pid)]
    tracer = subprocess.Popen(
        ["strace", "-f", "-y", "-s", "400", "-o", str(log)]
        + ["-e", "trace=fsync,rename,renameat,renameat2,sendmsg,sendto,write,writev"]
        + [word for pid in pids for word in ("-p", pid)],
        stderr=subprocess.PIPE,
        text=True,
    )
    assert tracer.stderr
    while "attached" not in tracer.stderr.readline():
        pass
    try:
        yield
    finally:
        tracer.terminate()
        tracer.wait()


@pytest.mark.skipif(not TRACES, reason="the daemon's processes cannot be traced")
def test_how_a_session_has_ended_is_on_the_disk(store: Daemon, tmp_path: Path) -> None:
    client, log = store.client(), tmp_path / "calls"
    with traced(client, log):
        client.exec("x = 1", "s")
        client.shutdown("s")
        wait_until(lambda: re.search(r"fsync\(\d+<.*/\.ended>", log.read_text()), "it is brought to the disk")


@pytest.mark.skipif(not TRACES, reason="the daemon's processes cannot be traced")
def test_what_is_told_as_saved_is_on_the_disk(store: Daemon, tmp_path: Path) -> None:
    """First the content, then its name, then the directory with that name; the answer comes last."""
    client = store.client()
    client.exec("x = bytearray(3_000_000)", "s")
    log = tmp_path / "calls"
    with traced(client, log):
        assert save(client, "s").saved == ["x"]
    found = [match.groups() for match in map(CALL.match, log.read_text().splitlines()) if match]
    order = [
        name[:6]
        for name, rest in found
        if name.startswith("rename") or (name == "fsync" and "/saves" in rest) or "not_saved" in rest
    ]
    assert order[:3] == ["fsync", "rename", "fsync"] and order[-1] in ("sendms", "sendto", "write", "writev"), found


def damage(path: Path, content: bytes) -> None:
    when = path.stat().st_mtime
    path.write_bytes(content)
    os.utime(path, (when, when))


def test_no_changed_byte_is_loaded(store: Daemon, tmp_path: Path) -> None:
    client = store.client()
    client.exec("x = 'x' * 3000", "s")
    save(client, "s")
    client.shutdown("s")
    whole = states(tmp_path)[""].read_bytes()
    picked = random.Random(7)
    places = [0, 4, 7, 8, 40, 72, 75, 76, 90, 4095, 4096, len(whole) - 1, *picked.sample(range(len(whole)), 28)]
    for place in places:
        state = states(tmp_path)[""]
        damage(state, whole[:place] + bytes([whole[place] ^ 1 << picked.randrange(8)]) + whole[place + 1 :])
        opened = client.open("s")
        assert opened.loaded is None and opened.saved_age is None, place
        assert (
            opened.saved_damaged == "the saved state is damaged, and is kept aside; there is none before it"
        ), place
        assert client.exec("'x' in globals()", "s").text == "False"
        client.shutdown("s")
        # It is kept as it was found, and another one is not put in its place.
        (aside,) = states(tmp_path).values()
        assert ".damaged-1" in aside.name
        damage(aside, whole)
        aside.rename(state)
    assert client.open("s").loaded == ["x"]


def test_one_that_is_cut_off_or_longer(store: Daemon, tmp_path: Path) -> None:
    client = store.client()
    client.exec("x = 1", "s")
    for change in (
        lambda whole: whole[:-1],
        lambda whole: whole + b"x",
        lambda whole: whole[:4096],
        lambda whole: b"",
    ):
        save(client, "s")
        state = states(tmp_path)[""]
        damage(state, change(state.read_bytes()))
        with pytest.raises(LairError, match="damaged, and is kept aside") as caught:
            load(client, "s")
        assert caught.value.code == "gone"


def test_the_one_before_a_damaged_one_is_offered(store: Daemon, tmp_path: Path) -> None:
    client = store.client()
    for value in (1, 2):
        client.exec(f"x = {value}", "s")
        save(client, "s")
    client.shutdown("s")
    state = states(tmp_path)[""]
    (record,) = client.call(m.Saves(id=client.new_id()), m.SavesReply).saves
    assert record["before"] < record["created"] and not record.get("damaged")
    content = state.read_bytes()
    damage(state, content[:-1] + b"!")
    reply = client.exec("'x' in globals()", "s")
    assert reply.text == "False" and reply.loaded is None
    assert reply.saved_damaged and "the one before it, of 20" in reply.saved_damaged
    (record,) = client.call(m.Saves(id=client.new_id()), m.SavesReply).saves
    assert record["damaged"] == 1 and "before" not in record
    assert load(client, "s").loaded == ["x"]
    assert client.exec("x", "s").text == "1"
    # It was told once.
    assert client.exec("1", "s").saved_damaged is None
    assert len(states(tmp_path)) == 2


def test_a_backup_is_put_back(store: Daemon, tmp_path: Path) -> None:
    """A copy of the directory, made while laird runs, is all that there is of a state."""
    client = store.client()
    client.exec("x = 41", "kept")
    save(client, "kept")
    shutil.copytree(tmp_path / "saves", tmp_path / "backup", symlinks=True)
    client.shutdown("kept")
    store.terminate()
    shutil.rmtree(tmp_path / "saves")
    shutil.copytree(tmp_path / "backup", tmp_path / "saves", symlinks=True)
    store.start()
    assert store.client().exec("x", "kept").text == "41"


def test_nothing_of_an_id_is_left(store: Daemon, tmp_path: Path) -> None:
    client = store.client()
    client.exec("x = 1", "s")
    save(client, "s")
    save(client, "s")
    assert sorted(states(tmp_path)) == ["", ".before"]
    store.lair("saves", "rm", "s")
    assert not states(tmp_path)


def test_the_one_before_gives_way_to_others(start_daemon: StartDaemon, tmp_path: Path) -> None:
    """How much one user may have on the disk stays what saves_per_uid says."""
    daemon = start_daemon({"daemon": {"saves": str(tmp_path / "saves"), "saves_per_uid": "2"}})
    client = daemon.client()
    client.exec("x = 1", "a")
    save(client, "a")
    save(client, "a")
    client.exec("x = 2", "b")
    save(client, "b")
    assert list(states(tmp_path)) == [""] and len(list((tmp_path / "saves").rglob("[!.]*-*"))) == 2
    assert len(client.call(m.Saves(id=client.new_id()), m.SavesReply).saves) == 2


def test_one_without_digests_is_loaded(store: Daemon, tmp_path: Path) -> None:
    """An older laird wrote it: the magic, the length of the frame, and the frame."""
    client = store.client()
    client.exec("x = 'old'", "s")
    save(client, "s")
    client.shutdown("s")
    state = states(tmp_path)[""]
    content = state.read_bytes()
    size = int.from_bytes(content[72:76], "little")
    head = b"lair\0sv1" + content[72 : 76 + size]
    damage(state, head.ljust(4096, b"\0") + content[4096:])
    assert client.exec("x", "s").text == "'old'"


def in_words(store: Daemon) -> str:
    return store.lair("exec", "-s", "s", "1").stderr


def in_json(store: Daemon) -> str:
    return str(store.lair_json("exec", "-s", "s", "1")["loaded"]["damaged"])


def in_python(store: Daemon) -> str:
    with Connection(str(store.socket), start=False) as connection:
        return Session("s", connection=connection).run("1").notice


@pytest.mark.parametrize("ask", [in_words, in_json, in_python])
def test_every_surface_says_so(store: Daemon, tmp_path: Path, ask: Callable[[Daemon], str]) -> None:
    client = store.client()
    client.exec("x = 1", "s")
    save(client, "s")
    client.shutdown("s")
    state = states(tmp_path)[""]
    damage(state, state.read_bytes()[:-1] + b"!")
    assert "the saved state is damaged, and is kept aside" in ask(store)


def test_the_list_says_so(store: Daemon, tmp_path: Path) -> None:
    client = store.client()
    client.exec("x = 1", "s")
    save(client, "s")
    save(client, "s")
    assert "BEFORE" in store.lair("saves").stdout
    state = states(tmp_path)[""]
    damage(state, b"!" + state.read_bytes()[1:])
    assert "(damaged)" in store.lair("saves").stdout
    assert "the saved state is damaged" in store.lair("saves", "show", "s").stderr
    assert "1 damaged, kept aside" in store.lair("saves", "show", "s").stdout

"""The channel between the router and a builder of packages: what is malformed, out of order, too large, or from the wrong side ends
that build, with a reason, and nothing else."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import msgpack
import pytest

import internal
from daemon import BIN, Daemon, wait_until
from lair import CellFailed, Connection, Session, codec

# In the place of lair-kernel: as a builder it says what is in the files there, one datagram each, and is the true one else.
KERNEL = """#!/bin/sh
[ "$1" = --builder ] || exec {real}/lair-kernel "$@"
for file in {here}/says/*; do dd if=$file bs=200000 status=none >&3; done
exec cat <&3 >{here}/heard
"""

FRESH = "f" * 64


def frame(*parts: object) -> bytes:
    packed: bytes = msgpack.packb(list(parts))
    return packed


def building(text: str) -> bytes:
    return codec.encode(internal.Building(text=text))


BROKEN = "its builder broke the protocol"
SAID = {
    "no frame": ([b"\xc1"], BROKEN),
    "half a frame": ([building("x")[:-2]], BROKEN),
    "more than a frame": ([building("x") + b"\x00"], BROKEN),
    "another version": ([frame(99, "building", {"text": "x"})], BROKEN),
    "no text": ([frame(1, "building", {})], BROKEN),
    "a number as text": ([frame(1, "building", {"text": 5})], BROKEN),
    "no map": ([frame(1, "built", [])], BROKEN),
    "neither": ([frame(1, "built", {})], BROKEN),
    "both": ([frame(1, "built", {"set": FRESH, "reason": "x"})], BROKEN),
    "an unknown type": ([frame(1, "nothing", {})], BROKEN),
    "the router's own": (
        [codec.encode(internal.Build(packages=b"/p", work=b"/w", requirements=[], size=1))],
        BROKEN,
    ),
    "too large": ([building("x" * 65536)], BROKEN),
    "large": ([building("y" * 60000), codec.encode(internal.Built(reason="so"))], "so"),
    "a set that is not there": ([codec.encode(internal.Built(set=FRESH))], "did not put it into the store"),
    "a path": ([codec.encode(internal.Built(set="../../../etc"))], "did not put it into the store"),
    "a long name": ([codec.encode(internal.Built(set="a" * 5000))], "did not put it into the store"),
    "a reason with odd bytes": ([codec.encode(internal.Built(reason="a\x1b[31m\x00b"))], "a\x1b[31m\x00b"[:5]),
    "twice": ([codec.encode(internal.Built(reason="first"))] * 2, "first"),
    "after the end": ([codec.encode(internal.Built(reason="first")), building("later")], "first"),
    "a flood": (
        [building(f"{n}") for n in range(200)] + [codec.encode(internal.Built(reason="at last"))],
        "at last",
    ),
}


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="lair-builder-"))
    path.chmod(0o755)
    (path / "bin").mkdir()
    shutil.copy2(BIN / "laird", path / "bin/laird")
    kernel = path / "bin/lair-kernel"
    kernel.write_text(KERNEL.format(here=path, real=BIN))
    kernel.chmod(0o755)
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture(scope="module")
def daemon(place: Path) -> Iterator[Daemon]:
    settings = {
        "daemon": {"packages_store": str(place / "store")},
        "profile default": {"preload": "", "spares": "0", "packages": "on"},
    }
    daemon = Daemon(settings, binaries=place / "bin")
    yield daemon
    daemon.end()


@pytest.mark.parametrize("case", SAID)
def test_what_a_builder_says(daemon: Daemon, place: Path, case: str) -> None:
    said, reason = SAID[case]
    shutil.rmtree(place / "says", ignore_errors=True)
    (place / "says").mkdir()
    for n, it in enumerate(said):
        (place / f"says/{n:04}").write_bytes(it)
    with Connection(str(daemon.socket)) as connection, Session(connection=connection) as s:
        s.run("x = 41")
        with pytest.raises(CellFailed) as failure:
            s.install([case.replace(" ", "-").replace("'", "-")])
        assert reason in str(failure.value)
        assert s.run("x").text == "41"
    (store,) = (place / "store").iterdir()
    wait_until(lambda: not list(store.glob("work/*")), "its directory is removed")
    assert not list(store.glob("sets/*"))


ORDER = internal.Build(packages=b"/nonexistent", work=b"/nonexistent/work", requirements=["six"], size=1 << 20)
# What a builder says to it, which is all that it does.
TOLD = {
    "nothing": ([], None),
    "no frame": ([b"\xc1"], "Bad message"),
    "another type": ([frame(1, "configure", {})], "Bad message"),
    "its own": ([codec.encode(internal.Built(set=FRESH))], "Bad message"),
    "half": ([codec.encode(ORDER)[:-3]], "Bad message"),
    "what is missing": ([frame(1, "build", {"size": 1})], "Bad message"),
    "too large": ([frame(1, "build", {"work": b"x" * 100000})], "Message too long"),
    "a long path": (
        [codec.encode(internal.Build(packages=b"/p" * 4096, work=b"/w", requirements=[], size=1))],
        "File name too long",
    ),
    "a path with a zero": (
        [codec.encode(internal.Build(packages=b"/p\0q", work=b"/w", requirements=[], size=1))],
        "File name too long",
    ),
    "a place that is not there": ([codec.encode(ORDER)], ""),
}


@pytest.mark.parametrize("case", TOLD)
def test_what_a_builder_is_told(case: str, tmp_path: Path) -> None:
    said, reason = TOLD[case]
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours:
        child = subprocess.Popen(
            [BIN / "lair-kernel", "--builder"],
            pass_fds=(3,),
            preexec_fn=partial(os.dup2, theirs.fileno(), 3),
            cwd=tmp_path,
        )
        theirs.close()
        for it in said:
            ours.send(it)
        if not said:
            ours.shutdown(socket.SHUT_WR)
        ours.settimeout(20)
        answer = ours.recv(1 << 16)
        assert child.wait(20) in ((1,) if reason is None else (0,))
        if reason is None:
            assert answer == b""
        else:
            assert reason in (codec.decode(internal.Built, answer).reason or "")
    assert not os.listdir(tmp_path)

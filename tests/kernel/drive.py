"""lair-kernel driven as the router drives it: over socket pairs, with the messages of proto/PROTOCOL.md."""

from __future__ import annotations

import os
import select
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple

import msgpack

ROOT = Path(__file__).parents[2]
KERNEL = Path(os.environ.get("LAIR_BIN", ROOT / "build/release/bin")) / "lair-kernel"

# A sanitizer's options are all that a template is given of the environment.
SANITIZERS = {name: value for name, value in os.environ.items() if name in ("ASAN_OPTIONS", "UBSAN_OPTIONS")}

# Who sessions run as: root's never run as root.
UID = 61005 + 10 * int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:]) if os.geteuid() == 0 else 0

# struct outbuffers of proto/outbuffer.h
OUTBUFFER = 8 + 65536
OUTBUFFERS = 2 * OUTBUFFER + 8
LETTERS = 262144
OUTBUFFERS_FILE = LETTERS + (32 << 20)

# struct link_header of proto/link.h: number, size of a letter, its offset
LINK = struct.Struct("<QII")
INLINE_MAX = 65536 - LINK.size

Message = Dict[str, Any]


def pack(kind: str, **body: Any) -> bytes:
    return msgpack.packb([1, kind, {key: value for key, value in body.items() if value is not None}])


def unpack(data: bytes) -> Tuple[str, Message]:
    version, kind, body = msgpack.unpackb(data, strict_map_key=False)
    assert version == 1
    return kind, body


class Channel:
    """One end of a SOCK_SEQPACKET pair."""

    def __init__(self) -> None:
        self.ours, self.theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)

    def send(self, kind: str, fds: Tuple[int, ...] = (), **body: Any) -> None:
        socket.send_fds(self.ours, [pack(kind, **body)], fds)

    def receive(self, timeout: float = 30) -> Tuple[str, Message, List[int]]:
        self.ours.settimeout(timeout)
        data, fds, _, _ = socket.recv_fds(self.ours, 65536, 8)
        if not data:
            raise EOFError
        return (*unpack(data), fds)

    def expect(self, kind: str, timeout: float = 30) -> Message:
        got, body, fds = self.receive(timeout)
        for fd in fds:
            os.close(fd)
        assert got == kind, (got, body)
        return body

    def close(self) -> None:
        self.ours.close()
        self.theirs.close()


class Link(Channel):
    """One whose messages are numbered."""

    def __init__(self) -> None:
        super().__init__()
        self.sent = self.received = 0
        self.letters = -1

    def send(self, kind: str, fds: Tuple[int, ...] = (), **body: Any) -> None:
        self.sent += 1
        self.send_again(kind, fds, **body)

    def send_again(self, kind: str, fds: Tuple[int, ...] = (), **body: Any) -> None:
        """Under the number of the last one."""
        frame = pack(kind, **body)
        if len(frame) <= INLINE_MAX:
            socket.send_fds(self.ours, [LINK.pack(self.sent, 0, 0) + frame], fds)
            return
        letter = os.memfd_create("letter")
        with os.fdopen(letter, "wb", buffering=0) as file:
            file.write(frame)
            socket.send_fds(self.ours, [LINK.pack(self.sent, len(frame), 0)], (*fds, letter))

    def receive(self, timeout: float = 30) -> Tuple[str, Message, List[int]]:
        self.ours.settimeout(timeout)
        data, fds, _, _ = socket.recv_fds(self.ours, 65536, 8)
        if not data:
            raise EOFError
        number, size, offset = LINK.unpack_from(data)
        self.received += 1
        assert number == self.received
        frame = os.pread(self.letters, size, LETTERS + offset) if size else data[LINK.size :]
        return (*unpack(frame), fds)


@dataclass
class Result:
    """A `done`, and what came through the pipes until then."""

    returncode: int
    out: bytes
    err: bytes
    cause: Optional[str] = None
    text: Optional[str] = None
    data: Optional[Dict[str, Any]] = None
    error: Optional[Dict[str, Any]] = None
    blocked: List[Dict[str, str]] = field(default_factory=list)
    artifacts: List[Dict[str, Any]] = field(default_factory=list)
    artifacts_more: bool = False
    unfaithful: Optional[str] = None
    changed: bool = False
    restless: bool = False
    mapped: Optional[list[int]] = None
    rewritten: int = 0
    rewriting: int = 0
    displays: List[Message] = field(default_factory=list)


class Interpreter:
    """The router's ends of one interpreter."""

    def __init__(self, warden: "Warden", serial: int) -> None:
        self.warden, self.serial = warden, serial
        self.link = Link()
        self.out, out = os.pipe()
        self.err, err = os.pipe()
        os.set_blocking(self.out, False)
        os.set_blocking(self.err, False)
        self.cell = 0
        self.taken = {self.out: bytearray(), self.err: bytearray()}
        self.buffer = os.memfd_create("output")
        os.ftruncate(self.buffer, OUTBUFFERS_FILE)
        self.link.letters = self.buffer
        warden.control.send("spawn", (self.link.theirs.fileno(), out, err, self.buffer), serial=serial)
        self.link.theirs.close()
        os.close(out)
        os.close(err)

    def send(self, kind: str, **body: Any) -> None:
        self.link.send(kind, **body)

    def drain(self) -> None:
        for fd in (self.out, self.err):
            try:
                while data := os.read(fd, 1 << 20):
                    self.taken[fd] += data
            except BlockingIOError:
                pass

    def next(self, timeout: float = 30) -> Tuple[str, Message]:
        """The next message, with both pipes read meanwhile."""
        deadline = time.monotonic() + timeout
        message = None
        while not message:
            left = deadline - time.monotonic()
            ready, _, _ = select.select([self.link.ours, self.out, self.err], [], [], max(left, 0))
            assert ready, "no answer in time"
            if self.link.ours in ready:
                message = self.link.receive()[:2]
            self.drain()
        return message

    def next_is_quiet(self, seconds: float) -> bool:
        """Whether it says nothing for so long."""
        return not select.select([self.link.ours], [], [], seconds)[0]

    def start(self, code: str, **how: Any) -> None:
        self.cell += 1
        self.send("run", cell=self.cell, options=msgpack.packb({"code": code, **how}))

    def finish(self, timeout: float = 30) -> Result:
        displays = []
        while (message := self.next(timeout))[0] == "display":
            displays.append(message[1])
        kind, body = message
        assert kind == "done", (kind, body)
        assert body.pop("cell") == self.cell
        out, err = self.take()
        return Result(out=out, err=err, displays=displays, **body)

    def salvage(self) -> None:
        """What a dead one had not put into its pipes."""
        self.drain()
        for fd, at in ((self.out, 0), (self.err, OUTBUFFER)):
            start, end = struct.unpack("=II", os.pread(self.buffer, 8, at))
            self.taken[fd] += os.pread(self.buffer, end - start, at + 8 + start)

    def take(self) -> Tuple[bytes, bytes]:
        self.drain()
        out, err = bytes(self.taken[self.out]), bytes(self.taken[self.err])
        self.taken = {self.out: bytearray(), self.err: bytearray()}
        return out, err

    def run(self, code: str, timeout: float = 30, **how: Any) -> Result:
        self.start(code, **how)
        return self.finish(timeout)

    def signal(self, number: int) -> None:
        self.warden.control.send("signal", serial=self.serial, signal=number)
        self.warden.control.expect("signalled")

    def interrupt(self) -> None:
        os.pwrite(self.buffer, struct.pack("=Q", self.cell), 2 * OUTBUFFER)
        self.signal(signal.SIGINT)

    def close(self) -> None:
        self.link.close()
        os.close(self.out)
        os.close(self.err)
        os.close(self.buffer)


class Warden:
    def __init__(self, template: "Template", serial: int = 1, doors: Tuple[int, ...] = (), **more: Any) -> None:
        """`more`: in what its session differs from the profile."""
        self.workspace = tempfile.mkdtemp(prefix="lair-test-")
        if template.owner:
            os.chown(self.workspace, template.owner, template.owner)
        self.control = Link()
        self.interpreters: List[Interpreter] = []
        self.exited: List[Message] = []
        template.channel.send(
            "warden",
            (self.control.theirs.fileno(), *doors),
            serial=serial,
            workspace=self.workspace,
            uid=template.uid or None,
            **more,
        )
        self.control.theirs.close()
        kind, body, fds = template.channel.receive()
        assert kind == "made", body
        assert body["serial"] == serial
        self.pid, self.pidfd = body["pid"], fds[0]
        self.ready = self.control.expect("ready")

    def spawn(self, serial: int = 1) -> Interpreter:
        interpreter = Interpreter(self, serial)
        assert self.control.expect("spawned")["serial"] == serial
        self.interpreters.append(interpreter)
        return interpreter

    def sweep(self) -> None:
        self.control.send("sweep")
        self.control.expect("swept")

    def close(self) -> None:
        self.control.close()
        for interpreter in self.interpreters:
            interpreter.close()
        ended, _, _ = select.select([self.pidfd], [], [], 10)
        os.close(self.pidfd)
        # It is our child, being the template's sibling; unreaped it would count against its user's processes.
        os.waitid(os.P_PID, self.pid, os.WEXITED | (0 if ended else os.WNOHANG))
        shutil.rmtree(self.workspace, ignore_errors=True)
        assert ended, "the warden outlives its control pair"


def place(kind: str, path: str) -> Message:
    """As laird has found it."""
    if not os.path.exists(path):
        return {"kind": kind, "path": path.encode(), "real": b"", "device": 0, "inode": 0}
    status = os.stat(path)
    real = os.path.realpath(path).encode()
    return {"kind": kind, "path": path.encode(), "real": real, "device": status.st_dev, "inode": status.st_ino}


class Template:
    """read, write, hide, own: directories; wrapper: the command that runs it; owner: whose the workspaces are, if not the sessions' user's;
    hurry: a session waits."""

    def __init__(
        self,
        preload: Tuple[str, ...] = (),
        uid: int = UID,
        owner: Optional[int] = None,
        wrapper: Tuple[str, ...] = (),
        hurry: bool = False,
        **configure: Any,
    ) -> None:
        self.channel = Channel()
        self.uid = uid
        self.owner = uid if owner is None else owner
        self.process = subprocess.Popen(
            [*wrapper, str(KERNEL), "test"],
            preexec_fn=lambda: os.dup2(self.channel.theirs.fileno(), 3),
            close_fds=False,
            env=SANITIZERS,
            stdin=subprocess.DEVNULL,
        )
        self.channel.theirs.close()
        kinds = ("read", "write", "hide", "own")
        places = [place(kind, path) for kind in kinds for path in configure.pop(kind, [])]
        configure = {"text_max": 65536, "subprocess": True, "places": places, **configure}
        self.channel.send("configure", profile="test", preload=list(preload), **configure)
        if hurry:
            self.channel.send("hurry")
        kind, self.ready, _ = self.channel.receive(120)
        assert kind == "ready", self.ready

    def close(self) -> None:
        self.channel.close()
        assert self.process.wait(10) == 0

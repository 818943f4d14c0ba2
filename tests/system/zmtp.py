"""A client that speaks ZeroMQ's protocol itself, so that it can say what libzmq never would."""

from __future__ import annotations

import socket
import struct
from pathlib import Path

GREETING = b"\xff" + bytes(8) + b"\x7f\x03\x01NULL" + bytes(48)
MORE, LONG, COMMAND = 1, 2, 4


def frame(body: bytes, flags: int = 0) -> bytes:
    if len(body) < 256:
        return bytes([flags, len(body)]) + body
    return bytes([flags | LONG]) + struct.pack(">Q", len(body)) + body


def command(name: bytes, body: bytes = b"") -> bytes:
    return frame(bytes([len(name)]) + name + body, COMMAND)


def properties(**values: bytes) -> bytes:
    return b"".join(
        bytes([len(name)]) + name.replace("_", "-").encode() + struct.pack(">I", len(value)) + value
        for name, value in values.items()
    )


def ready(kind: bytes = b"DEALER", identity: bytes = b"") -> bytes:
    return command(b"READY", properties(Socket_Type=kind, Identity=identity))


def is_greeting(data: bytes) -> bool:
    """The eight bytes after the first may be anything."""
    return len(data) == 64 and data[:1] + data[9:32] == GREETING[:1] + GREETING[9:32]


class Peer:
    """One connection. What it reads is whole frames: their flags and their bodies."""

    def __init__(self, path: Path | str) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(10)
        self.socket.connect(str(path))

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def take(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            piece = self.socket.recv(size - len(data))
            if not piece:
                raise EOFError
            data += piece
        return data

    def greet(self, kind: bytes = b"DEALER", identity: bytes = b"") -> Peer:
        self.send(GREETING)
        assert is_greeting(self.take(64))
        self.send(ready(kind, identity))
        flags, body = self.read()
        assert flags == COMMAND and body.startswith(b"\x05READY"), body
        return self

    def read(self) -> tuple[int, bytes]:
        flags, size = self.take(2)
        if flags & LONG:
            size = int.from_bytes(bytes([size]) + self.take(7), "big")
        return flags & ~LONG, self.take(size)

    def ended(self) -> bool:
        """Whether the daemon has closed it; what came before is passed over."""
        try:
            while self.socket.recv(65536):
                pass
        except ConnectionError:
            pass
        except TimeoutError:
            return False
        return True

    def close(self) -> None:
        self.socket.close()

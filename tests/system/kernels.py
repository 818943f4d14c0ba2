"""A client of `lair jupyter run`, on bare sockets as VS Code has them: what it sends and hears is what the protocol says."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import os
import signal
import socket
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import zmq

from daemon import Daemon

PORTS = ("shell_port", "iopub_port", "stdin_port", "control_port", "hb_port")
DELIMITER = b"<IDS|MSG>"
# Seconds until a kernel answers first, on a machine that starts many things at once.
STARTS = 120

Message = dict[str, Any]


def free_ports(n: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(n)]
        for it in sockets:
            it.bind(("127.0.0.1", 0))
        return [it.getsockname()[1] for it in sockets]


class Client:
    """One frontend: its sockets have an identity of their own."""

    def __init__(
        self, connection: Message, key: bytes | None = None, curve: bool = True, queue: int = 1000
    ) -> None:
        self.connection = connection
        self.queue = queue
        self.public = connection.get("curve_publickey", "").encode() if curve else b""
        self.key = connection["key"].encode() if key is None else key
        self.session = uuid.uuid4().hex
        self.context = zmq.Context()
        self.shell = self._socket(zmq.DEALER, "shell_port")
        self.control = self._socket(zmq.DEALER, "control_port")
        self.stdin = self._socket(zmq.DEALER, "stdin_port")
        self.iopub = self._socket(zmq.SUB, "iopub_port")
        self.heard: list[Message] = []

    def _socket(self, kind: int, port: str) -> zmq.Socket[bytes]:
        it = self.context.socket(kind)
        it.linger = 0
        if kind == zmq.DEALER:
            it.setsockopt(zmq.IDENTITY, self.session.encode())
        else:
            it.setsockopt(zmq.SUBSCRIBE, b"")
            it.setsockopt(zmq.RCVHWM, self.queue)
        apart = "-" if self.connection["transport"] == "ipc" else ":"
        if self.public and self.connection.get("curve_publickey"):
            it.curve_publickey, it.curve_secretkey = zmq.curve_keypair()
            it.curve_serverkey = self.public
        it.connect(f"{self.connection['transport']}://{self.connection['ip']}{apart}{self.connection[port]}")
        return it

    def close(self) -> None:
        self.context.destroy(linger=0)

    # ---- bytes ----

    def sign(self, documents: list[bytes]) -> bytes:
        if not self.key:
            return b""
        return hmac.new(self.key, b"".join(documents), hashlib.sha256).hexdigest().encode()

    def frames(self, kind: str, content: Message, **more: Any) -> tuple[str, list[bytes]]:
        header = {
            "msg_id": uuid.uuid4().hex,
            "session": self.session,
            "username": "test",
            "date": "2026-01-01T00:00:00.000000Z",
            "msg_type": kind,
            "version": "5.3",
        }
        documents = [json.dumps(it).encode() for it in (header, more.get("parent", {}), {}, content)]
        return header["msg_id"], [DELIMITER, self.sign(documents), *documents, *more.get("buffers", [])]

    def send(self, kind: str, content: Message, channel: str = "shell", **more: Any) -> str:
        name, frames = self.frames(kind, content, **more)
        getattr(self, channel).send_multipart(frames)
        return name

    def receive(self, channel: str, timeout: float = 20) -> Message:
        it: zmq.Socket[bytes] = getattr(self, channel)
        assert it.poll(int(timeout * 1000)), f"nothing on {channel} within {timeout} s"
        frames = it.recv_multipart()
        at = frames.index(DELIMITER)
        assert frames[at + 1] == self.sign(frames[at + 2 : at + 6]), "signed as the key says"
        header, parent, metadata, content = map(json.loads, frames[at + 2 : at + 6])
        return {
            "type": header["msg_type"],
            "header": header,
            "parent": parent.get("msg_id"),
            "metadata": metadata,
            "content": content,
            "buffers": frames[at + 6 :],
        }

    # ---- requests ----

    def reply(self, name: str, channel: str = "shell", timeout: float = 20) -> Message:
        while True:
            message = self.receive(channel, timeout)
            if message["parent"] == name:
                return message

    def until_idle(self, name: str, timeout: float = 20) -> list[Message]:
        """What is published for a request, without its status."""
        shown = []
        while True:
            message = self.receive("iopub", timeout)
            if message["parent"] != name:
                self.heard.append(message)
            elif message["type"] != "status":
                shown.append(message)
            elif message["content"]["execution_state"] == "idle":
                return shown

    def request(self, kind: str, content: Message, channel: str = "shell") -> Message:
        name = self.send(kind, content, channel)
        reply: Message = self.reply(name, channel)["content"]
        self.until_idle(name)
        return reply

    def start(self, code: str, **more: Any) -> str:
        content = {"code": code, "silent": False, "store_history": True, "allow_stdin": False, **more}
        return self.send("execute_request", content)

    def run(self, code: str, **more: Any) -> tuple[Message, list[Message]]:
        name = self.start(code, **more)
        reply: Message = self.reply(name)["content"]
        return reply, [it for it in self.until_idle(name) if it["type"] != "execute_input"]

    def value(self, code: str) -> str:
        """The value that a cell shows, and nothing else."""
        reply, shown = self.run(code)
        assert reply["status"] == "ok", reply
        (result,) = shown
        assert result["type"] == "execute_result", result
        text: str = result["content"]["data"]["text/plain"]
        return text

    def error(self, code: str) -> Message:
        reply, shown = self.run(code)
        assert reply["status"] == "error", reply
        assert [it["type"] for it in shown].count("error") == 1, shown
        return reply

    def printed(self, code: str) -> str:
        reply, shown = self.run(code)
        assert reply["status"] == "ok", reply
        return "".join(it["content"]["text"] for it in shown if it["type"] == "stream")

    def ready(self) -> None:
        """Its subscription has come through, and the kernel answers."""
        timeout = STARTS
        for _ in range(200):
            name = self.send("kernel_info_request", {})
            self.reply(name, timeout=timeout)
            timeout = 20
            with contextlib.suppress(AssertionError):
                if self.receive("iopub", 0.2):
                    break
        while self.iopub.poll(100):
            self.iopub.recv_multipart()


class Kernel:
    """`lair jupyter run`, its connection file, and its clients."""

    def __init__(
        self,
        daemon: Daemon,
        *flags: str,
        transport: str = "tcp",
        key: str = "secret",
        curve: bool = False,
        command: list[str] | None = None,
        beside: Kernel | None = None,
        place: Path = Path("/"),  # a kernel shows its session any other
        **env: str,
    ) -> None:
        self.daemon = daemon
        self.place = place
        self.command = command or [str(daemon.binaries / "lair"), "jupyter", "run", "-f", "{connection_file}"]
        self.flags = flags
        self.env = env
        self.directory: Path = beside.directory if beside else daemon.directory / f"kernel-{uuid.uuid4().hex[:8]}"
        self.directory.mkdir(mode=0o700, exist_ok=True)
        self.file = self.directory / f"connection-{uuid.uuid4().hex[:8]}.json"
        self.connection: Message = {
            "transport": transport,
            "ip": "127.0.0.1" if transport == "tcp" else str(self.directory / "s"),
            "key": key,
            "signature_scheme": "hmac-sha256",
            **dict(zip(PORTS, free_ports(5) if transport == "tcp" else range(1, 6))),
        }
        if curve:
            pair = zip(("curve_publickey", "curve_secretkey"), zmq.curve_keypair())
            self.connection.update({name: key.decode() for name, key in pair})
        self.file.write_text(json.dumps(self.connection))
        self.clients: list[Client] = []
        self.start()

    def start(self) -> None:
        command = [it.format(connection_file=self.file) for it in self.command] + list(self.flags)
        env = {**self.daemon.env, "LAIR_SOCKET": str(self.daemon.socket), "LAIR_NO_START": "1", **self.env}
        self.process = subprocess.Popen(command, env=env, cwd=self.place)

    def client(self, **more: Any) -> Client:
        it = Client(self.connection, **more)
        self.clients.append(it)
        it.ready()
        return it

    def kill(self, number: int = signal.SIGKILL) -> int:
        self.process.send_signal(number)
        return self.process.wait(20)

    def close(self) -> None:
        for it in self.clients:
            it.close()
        if self.process.poll() is None:
            self.kill()


@contextlib.contextmanager
def kernel_of(daemon: Daemon, *flags: str, **more: Any) -> Iterator[Kernel]:
    it = Kernel(daemon, *flags, **more)
    try:
        yield it
    finally:
        it.close()


def eventually(condition: Callable[[], Any], timeout: float = 20) -> None:
    deadline = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def sockets_of(directory: Path) -> list[tuple[str, int]]:
    return sorted((path.name, os.stat(path).st_mode & 0o777) for path in directory.iterdir() if path.is_socket())

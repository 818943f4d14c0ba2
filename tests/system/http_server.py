"""`lair serve` for a test: started on a port of its own, spoken to by http.client and by bare sockets."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from daemon import BIN, Daemon

PATIENCE = 60.0


class Answer:
    def __init__(self, response: http.client.HTTPResponse) -> None:
        self.status = response.status
        self.headers = response.headers
        self.body = response.read()

    @property
    def type(self) -> str:
        return str(self.headers["Content-Type"])

    def json(self) -> Any:
        return json.loads(self.body)

    def problem(self) -> tuple[int, str]:
        """Status and code; what it says is in its form."""
        assert self.type == "application/problem+json"
        told = self.json()
        assert told["status"] == self.status
        assert told["detail"]
        return self.status, told["code"]


class Server:
    def __init__(self, daemon: Daemon, *arguments: str, listen: str = "127.0.0.1:0") -> None:
        self.process = subprocess.Popen(
            [BIN / "lair", "serve", "--socket", str(daemon.socket), "--listen", listen, *arguments],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "LAIR_SOCKET": str(daemon.socket)},
        )
        assert self.process.stdout
        self.url = self.process.stdout.readline().strip()
        assert self.url.startswith("http"), f"lair serve says {self.url!r}"
        self.host, _, port = self.url.partition("://")[2].rpartition(":")
        self.port = int(port)

    def connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection(self.host, self.port, timeout=PATIENCE)

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        headers: dict[str, str] | None = None,
        connection: http.client.HTTPConnection | None = None,
    ) -> Answer:
        """A dict goes as JSON, anything else as it is."""
        connection = connection or self.connect()
        given = dict(headers or {})
        if isinstance(body, dict):
            body = json.dumps(body).encode()
            given.setdefault("Content-Type", "application/json")
        connection.request(method, path, body, given)
        return Answer(connection.getresponse())

    def exec(self, session: str, code: str, **fields: Any) -> Any:
        answer = self.ask("POST", f"/v1/sessions/{session}/exec", {"code": code, **fields})
        assert answer.status == 200, answer.body
        return answer.json()

    def bare(self, data: bytes) -> socket.socket:
        """A socket over which @data was sent."""
        it = socket.create_connection((self.host, self.port), timeout=PATIENCE)
        it.sendall(data)
        return it

    def end(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(timeout=PATIENCE) == 0
        assert self.process.stdout
        self.process.stdout.close()


@contextmanager
def server_of(daemon: Daemon, *arguments: str, listen: str = "127.0.0.1:0") -> Iterator[Server]:
    it = Server(daemon, *arguments, listen=listen)
    try:
        yield it
        it.end()
    finally:
        if it.process.poll() is None:
            it.process.kill()
            it.process.wait()

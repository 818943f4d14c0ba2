"""`lair serve` for a test: started on a port of its own, spoken to by http.client and by bare sockets."""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import signal
import socket
import subprocess
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlencode

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


class Events:
    """A stream of them."""

    def __init__(self, response: http.client.HTTPResponse) -> None:
        self.response = response

    def __iter__(self) -> Iterator[tuple[str, Any, str]]:
        event, data, name = "", None, ""
        for raw in self.response:
            line = raw.decode("ascii").rstrip("\n")
            field, _, value = line.partition(": ")
            if field == "event":
                event = value
            elif field == "data":
                data = json.loads(value)
            elif field == "id":
                name = value
            elif not line and event:
                yield event, data, name
                event, data, name = "", None, ""


def events_of(
    server: Server, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
) -> Events:
    connection = http.client.HTTPConnection(server.host, server.port, timeout=PATIENCE)
    given = {"Accept": "text/event-stream", "Content-Type": "application/json", **(headers or {})}
    connection.request(method, path, json.dumps(body) if body is not None else None, given)
    response = connection.getresponse()
    assert response.status == 200, response.read()
    assert response.headers["Content-Type"] == "text/event-stream"
    return Events(response)


# ---- E2B ----


class Tenant:
    """Somebody with an API key."""

    def __init__(self, server: Server, key: str) -> None:
        self.server = server
        self.key = key

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        return self.server.ask(method, path, body, {"X-API-KEY": self.key, **headers})

    def create(self, **fields: Any) -> Sandbox:
        answer = self.ask("POST", "/v2/sandboxes", {"templateID": "base", **fields})
        assert answer.status == 201, answer.body
        return Sandbox(self.server, answer.json())

    def ids(self) -> set[str]:
        return {each["sandboxID"] for each in self.ask("GET", "/v2/sandboxes").json()}


class Sandbox:
    """One of its sandboxes, spoken to with the token of that alone."""

    def __init__(self, server: Server, told: dict[str, str]) -> None:
        self.server = server
        self.id = told["sandboxID"]
        self.token = told["envdAccessToken"]

    @property
    def headers(self) -> dict[str, str]:
        return {"E2b-Sandbox-Id": self.id, "X-Access-Token": self.token}

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        return self.server.ask(method, path, body, {**self.headers, **headers})

    def run(self, code: str) -> list[Any]:
        answer = self.ask("POST", "/execute", {"code": code})
        assert answer.status == 200, answer.body
        return [json.loads(line) for line in answer.body.splitlines()]

    def upload(self, path: str, data: bytes, **headers: str) -> Answer:
        asked = {"Content-Type": "application/octet-stream", **headers}
        return self.ask("POST", f"/files?{urlencode({'path': path})}", data, **asked)

    def read(self, path: str) -> bytes:
        answer = self.ask("GET", f"/files?{urlencode({'path': path})}")
        assert answer.status == 200, answer.body
        return answer.body

    def signed(self, path: str, operation: str, until: int | None = None) -> str:
        text = f"{path}:{operation}:user:{self.token}" + (f":{until}" if until else "")
        signature = "v1_" + b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip("=")
        query = {"path": path, "username": "user", "signature": signature}
        return urlencode({**query, "signature_expiration": until} if until else query)

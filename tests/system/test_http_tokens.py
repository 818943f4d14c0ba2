"""Who may use `lair serve`: tokens, what each is for, and that they come and go while it runs."""

from __future__ import annotations

import json
import os
import ssl
import subprocess
from collections.abc import Iterator
from http.client import HTTPSConnection
from pathlib import Path
from typing import Any

import pytest

from daemon import Daemon, Settings, wait_until
from http_server import PATIENCE, Answer, Server, server_of
from lair import Client

SETTINGS: Settings = {"profile default": {"functions": "on"}, "profile other": {}}


class Tokens:
    def __init__(self, daemon: Daemon, path: Path) -> None:
        self.daemon = daemon
        self.path = path

    def add(self, name: str, *arguments: str) -> str:
        told = self.daemon.lair("token", "add", name, *arguments, "--tokens", str(self.path))
        assert told.returncode == 0, told.stderr
        return told.stdout.strip()

    def revoke(self, name: str) -> None:
        assert self.daemon.lair("token", "revoke", name, "--tokens", str(self.path)).returncode == 0

    def list(self) -> Any:
        return json.loads(self.daemon.lair("token", "list", "--json", "--tokens", str(self.path)).stdout)["tokens"]


@pytest.fixture(scope="module")
def tokens(daemon: Daemon, tmp_path_factory: pytest.TempPathFactory) -> Tokens:
    it = Tokens(daemon, tmp_path_factory.mktemp("tokens") / "tokens")
    it.add("first")
    return it


@pytest.fixture(scope="module")
def server(daemon: Daemon, tokens: Tokens) -> Iterator[Server]:
    with server_of(daemon, "--tokens", str(tokens.path)) as it:
        yield it


class Asker:
    """Somebody with a token."""

    def __init__(self, server: Server, token: str) -> None:
        self.server = server
        self.token = token

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        return self.server.ask(method, path, body, {"Authorization": f"Bearer {self.token}", **headers})

    def exec(self, session: str, code: str, **fields: Any) -> Answer:
        return self.ask("POST", f"/v1/sessions/{session}/exec", {"code": code, **fields})

    def end(self, session: str) -> None:
        assert self.ask("DELETE", f"/v1/sessions/{session}").status == 204


def test_without_a_token(server: Server) -> None:
    answer = server.ask("GET", "/v1/sessions")
    assert answer.problem() == (401, "unauthorized")
    assert answer.headers["WWW-Authenticate"].startswith("Bearer")
    assert "lair token add" in answer.json()["detail"]
    for door in ({"Authorization": "Bearer x"}, {"X-API-KEY": "x"}):
        assert b"this token is not known" in server.ask("GET", "/sandboxes", headers=door).body
    assert server.ask("GET", "/health").status == 200
    for wrong in ("x", "lair_", "lair_" + "A" * 43, "\u00e9".encode().decode("latin-1")):
        assert Asker(server, wrong).ask("GET", "/v1/sessions").problem() == (401, "unauthorized")
    assert server.ask("GET", "/v1/sessions", headers={"Authorization": "Basic Zm9v"}).status == 401


def test_what_the_file_has(tokens: Tokens) -> None:
    secret = tokens.add("listed", "--profile", "default,other", "--sessions", "2", "--rate", "5", "--requests", "3")
    text = tokens.path.read_text()
    assert secret not in text
    assert tokens.path.stat().st_mode & 0o777 == 0o600
    assert tokens.list()[-1] == {
        "name": "listed",
        "profiles": ["default", "other"],
        "sessions": 2,
        "requests": 3,
        "rate": 5.0,
    }
    again = tokens.daemon.lair("token", "add", "listed", "--tokens", str(tokens.path))
    assert again.returncode != 0
    tokens.revoke("listed")
    assert "listed" not in [it["name"] for it in tokens.list()]
    assert tokens.daemon.lair("token", "revoke", "listed", "--tokens", str(tokens.path)).returncode != 0


@pytest.mark.parametrize("name", ["", "a b", "a:b", "../x", "7", "a" * 40, "\u00e9"])
def test_names_that_are_none(tokens: Tokens, name: str) -> None:
    assert tokens.daemon.lair("token", "add", name, "--tokens", str(tokens.path)).returncode != 0


@pytest.mark.parametrize("profiles", ["nope", "default,nope", "nope,other"])
def test_profiles_that_are_none(tokens: Tokens, profiles: str) -> None:
    told = tokens.daemon.lair("token", "add", "hopeful", "--profile", profiles, "--tokens", str(tokens.path))
    assert told.returncode == 125 and told.stdout == ""
    assert 'there is no profile "nope"' in told.stderr
    assert "hopeful" not in [it["name"] for it in tokens.list()]


def test_profiles_without_a_laird(tokens: Tokens, tmp_path: Path) -> None:
    """Nobody knows then."""
    path = ["--tokens", str(tmp_path / "tokens"), "--socket", str(tmp_path / "socket")]
    told = tokens.daemon.lair("token", "add", "hopeful", "--profile", "nope", *path)
    assert told.returncode == 0 and told.stdout.startswith("lair_")
    assert "no laird answers" in told.stderr


def test_each_has_sessions_of_its_own(server: Server, tokens: Tokens, client: Client) -> None:
    alice, bob = Asker(server, tokens.add("alice")), Asker(server, tokens.add("bob"))
    assert alice.exec("main", "x = 'alice'").json()["session"] == "main"
    assert bob.exec("main", "x").json()["error"]["name"] == "NameError"
    assert [it["session"] for it in alice.ask("GET", "/v1/sessions").json()["sessions"]] == ["main"]
    assert {"alice:main", "bob:main"} <= {it.session for it in client.list()}
    # Neither by another's prefix, nor by the keys of the other's cells.
    assert bob.ask("GET", "/v1/sessions/alice:main").problem() == (404, "no_session")
    body = {"code": "import random; random.random()"}
    told = [
        it.ask("POST", "/execute", body, **{"Idempotency-Key": "k"}).json()["text"] for it in (alice, alice, bob)
    ]
    assert told[0] == told[1] != told[2]
    alice.end("main")
    bob.end("main")


def test_cells_and_calls_are_ones_own(server: Server, tokens: Tokens) -> None:
    """What one waits for, nobody else sees or answers: events, results, calls, figures."""
    ann, ben = Asker(server, tokens.add("ann")), Asker(server, tokens.add("ben"))
    told = ann.exec("main", "tools.now()", functions=[{"name": "now"}], detach=True).json()
    ben.exec("main", "1")
    (call,) = ann.ask("GET", "/v1/calls?wait=30").json()["calls"]
    assert (call["session"], call["key"]) == ("main", told["key"])
    assert ben.ask("GET", "/v1/calls?wait=0.1").json()["calls"] == []
    for session in ("main", "ann:main"):
        path = f"/v1/sessions/{session}/results/{told['key']}"
        assert ben.ask("GET", path).problem()[0] in (404, 410)
        assert ben.ask("GET", path, Accept="text/event-stream").problem()[0] in (404, 410)
        answer = ben.ask("POST", f"/v1/sessions/{session}/calls/{call['number']}", {"value": 1})
        assert answer.problem()[0] in (404, 410)
    assert ben.ask("GET", f"/v1/results/{told['key']}").problem()[0] in (404, 410)
    kept = ben.ask("GET", "/v1/sessions/main/results").json()["results"]
    assert told["key"] not in [it["key"] for it in kept]
    text = ben.ask("GET", "/metrics").body.decode()
    assert 'lair_own_sessions{state="idle"} 1\n' in text
    assert 'lair_own_sessions{state="busy"}' not in text
    assert ann.ask("POST", f"/v1/sessions/main/calls/{call['number']}", {"value": 7}).status == 204
    assert ann.ask("GET", f"/v1/sessions/main/results/{told['key']}").json()["text"] == "7"
    ann.end("main")
    ben.end("main")


def test_one_shots_leave_nothing(server: Server, tokens: Tokens, client: Client) -> None:
    once = Asker(server, tokens.add("once"))
    assert once.ask("POST", "/execute", {"code": "6 * 7"}).json()["text"] == "42"
    wait_until(lambda: not [it for it in client.list() if it.session.startswith("once:")], "it has ended")


def test_profiles(server: Server, tokens: Tokens) -> None:
    it = Asker(server, tokens.add("profiled", "--profile", "other"))
    assert it.exec("a", "1").status == 200
    assert it.ask("GET", "/v1/sessions/a").json()["profile"] == "other"
    assert it.exec("b", "1", profile="default").problem() == (403, "denied")
    assert it.ask("PUT", "/v1/sessions/b", {"profile": "default"}).problem() == (403, "denied")
    assert it.ask("POST", "/execute", {"code": "1", "profile": "default"}).problem() == (403, "denied")
    it.end("a")


def test_sessions_at_once(server: Server, tokens: Tokens) -> None:
    it = Asker(server, tokens.add("few", "--sessions", "2"))
    assert [it.exec(name, "1").status for name in "ab"] == [200, 200]
    over = it.exec("c", "1")
    assert over.problem() == (429, "limit")
    assert int(over.headers["Retry-After"]) > 0
    assert it.exec("a", "1").status == 200
    it.end("a")
    assert it.exec("c", "1").status == 200
    it.end("b")
    it.end("c")


def test_rate(server: Server, tokens: Tokens) -> None:
    it = Asker(server, tokens.add("slow", "--rate", "0.2"))
    told = [it.ask("GET", "/v1/sessions") for _ in range(4)]
    assert told[0].status == 200
    assert told[-1].problem() == (429, "limit")
    assert 0 < int(told[-1].headers["Retry-After"]) <= 5


def test_requests_at_once(server: Server, tokens: Tokens, client: Client) -> None:
    token = tokens.add("narrow", "--requests", "1")
    it = Asker(server, token)
    body = json.dumps({"code": "while True: pass"})
    held = server.bare(
        f"POST /v1/sessions/a/exec HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()
    )
    wait_until(lambda: any(one.session == "narrow:a" for one in client.list()), "the cell runs")
    assert it.ask("GET", "/v1/sessions").problem() == (429, "limit")
    held.close()
    wait_until(lambda: it.ask("GET", "/v1/sessions").status == 200, "it is over", 30)
    it.end("a")


def test_revoked_while_it_works(server: Server, tokens: Tokens, client: Client) -> None:
    token = tokens.add("leaving")
    body = json.dumps({"code": "while True: pass"})
    held = server.bare(
        f"POST /v1/sessions/a/exec HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()
    )
    wait_until(lambda: any(one.session == "leaving:a" for one in client.list()), "the cell runs")
    tokens.revoke("leaving")
    assert Asker(server, token).ask("GET", "/v1/sessions").problem() == (401, "unauthorized")
    assert held.recv(100) == b""
    held.close()
    client.shutdown("leaving:a")


@pytest.mark.parametrize("content", ["x", "name hash", "a " + "0" * 63, "a " + "0" * 64 + " sessions=x", "\0"])
def test_a_file_that_is_none(daemon: Daemon, tmp_path: Path, content: str) -> None:
    path = tmp_path / "tokens"
    path.write_text(content)
    told = daemon.lair("serve", "--listen", "127.0.0.1:0", "--tokens", str(path), timeout=PATIENCE)
    assert told.returncode == 125


def test_a_file_that_others_can_write_to(daemon: Daemon, tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    Tokens(daemon, path).add("a")
    path.chmod(0o622)
    assert daemon.lair("serve", "--listen", "127.0.0.1:0", "--tokens", str(path)).returncode == 125


def test_a_file_that_breaks_lets_nobody_in(daemon: Daemon, tmp_path: Path) -> None:
    tokens = Tokens(daemon, tmp_path / "tokens")
    token = tokens.add("a")
    with server_of(daemon, "--tokens", str(tokens.path)) as server:
        assert Asker(server, token).ask("GET", "/v1/sessions").status == 200
        whole = tokens.path.read_text()
        tokens.path.write_text(whole + "nonsense\n")
        assert Asker(server, token).ask("GET", "/v1/sessions").status == 401
        tokens.path.write_text(whole)
        assert Asker(server, token).ask("GET", "/v1/sessions").status == 200


def test_any_address_and_tls(daemon: Daemon, tmp_path: Path) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "cert.pem"
    made = subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", certificate, "-days", "2",
         "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"],
        capture_output=True, env=os.environ,
    )  # fmt: skip
    if made.returncode != 0:
        pytest.skip("there is no openssl to make a certificate with")
    tokens = Tokens(daemon, tmp_path / "tokens")
    token = tokens.add("a")
    arguments = ["--tokens", str(tokens.path), "--cert", str(certificate), "--cert-key", str(key)]
    with server_of(daemon, *arguments, listen="0.0.0.0:0") as server:
        assert server.url.startswith("https://")
        context = ssl.create_default_context(cafile=str(certificate))
        connection = HTTPSConnection("127.0.0.1", server.port, timeout=PATIENCE, context=context)
        for i in range(3):
            connection.request(
                "POST",
                "/v1/sessions/tls/exec",
                json.dumps({"code": f"{i}"}),
                {"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
            )
            assert Answer(connection.getresponse()).json()["text"] == str(i)
        connection.request("DELETE", "/v1/sessions/tls", headers={"Authorization": f"Bearer {token}"})
        assert Answer(connection.getresponse()).status == 204

"""`lair serve`: requests and answers of HTTP, with real cells behind them."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest

from daemon import ROOT, Daemon, memory_of, wait_until
from http_server import Server, server_of
from lair import Client
from lair.messages import ExecReply


@pytest.fixture(scope="module")
def server(daemon: Daemon) -> Iterator[Server]:
    with server_of(daemon) as it:
        yield it


def state_of(client: Client, session: str) -> str:
    return next((it.state for it in client.list() if it.session == session), "none")


# ---- what anybody may ask ----


def test_health(server: Server) -> None:
    answer = server.ask("GET", "/health")
    assert answer.status == 200
    assert answer.json()["status"] == "ok"
    assert server.ask("HEAD", "/health").body == b""


def test_description(server: Server) -> None:
    document = server.ask("GET", "/openapi.json").json()
    assert document["openapi"] == "3.1.0"
    assert "/v1/sessions/{id}/exec" in document["paths"]


# ---- cells ----


def test_execute(server: Server) -> None:
    told = server.ask("POST", "/execute", {"code": "print(input() + input())", "stdin": "a\nb\n"}).json()
    assert (told["stdout"], told["exit_code"]) == ("ab\n", 0)
    assert told["time_ms"] > 0
    told = server.ask("POST", "/execute", {"code": "input()", "stdin": "", "language": "python"}).json()
    assert (told["exit_code"], told["error"]["name"]) == (1, "EOFError")


def test_environment_of_a_cell(server: Server, session: str) -> None:
    assert server.exec(session, "import os; os.environ['A']", env={"A": "b"})["text"] == "'b'"
    bad = server.ask("POST", f"/v1/sessions/{session}/exec", {"code": "1", "env": {"A": 1}})
    assert bad.problem() == (400, "bad_request")


def test_a_key_is_done_once(server: Server, session: str) -> None:
    body = {"code": "n = globals().get('n', 0) + 1; n"}
    told = [server.ask("POST", f"/v1/sessions/{session}/exec", body, {"Idempotency-Key": "k"}) for _ in range(2)]
    assert [it.json()["text"] for it in told] == ["1", "1"]
    assert server.exec(session, "n")["text"] == "1"


def test_whoever_goes_away_interrupts(server: Server, client: Client, session: str) -> None:
    server.exec(session, "kept = 1")
    code = json.dumps({"code": "while True: pass"})
    gone = server.bare(
        f"POST /v1/sessions/{session}/exec HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(code)}\r\n\r\n{code}".encode()
    )
    wait_until(lambda: state_of(client, session) == "busy", "the cell runs")
    gone.close()
    wait_until(lambda: state_of(client, session) == "idle", "the cell is interrupted", 30)
    assert server.exec(session, "kept")["text"] == "1"


def test_many_requests_over_one_connection(server: Server, session: str) -> None:
    connection = server.connect()
    for i in range(20):
        told = server.ask("POST", f"/v1/sessions/{session}/exec", {"code": f"{i}"}, connection=connection)
        assert told.json()["text"] == str(i)


# ---- what is refused ----


@pytest.mark.parametrize(
    ("method", "path", "body", "told"),
    [
        ("GET", "/nothing", None, (404, "not_found")),
        ("GET", "/v1/sessions/a/exec", None, (405, "bad_method")),
        ("POST", "/execute", b"{", (400, "bad_request")),
        ("POST", "/execute", b"[]", (400, "bad_request")),
        ("POST", "/execute", b"", (400, "bad_request")),
        ("POST", "/execute", b'{"code": "1", "code": "2"}', (400, "bad_request")),
        ("POST", "/execute", {"code": 1}, (400, "bad_request")),
        ("POST", "/execute", {"code": "1", "cod": "1"}, (400, "bad_request")),
        ("POST", "/execute", {"code": "1", "timeout": -1}, (400, "bad_request")),
        ("POST", "/execute", {"code": "1", "language": "cobol"}, (400, "bad_request")),
        ("POST", "/execute", {"code": "1", "profile": "none of that name"}, (400, "bad_request")),
        ("POST", "/v1/sessions/%00/exec", {"code": "1"}, (400, "bad_request")),
        ("POST", "/v1/sessions/%ff/exec", {"code": "1"}, (400, "bad_request")),
        ("POST", "/v1/sessions/%zz/exec", {"code": "1"}, (400, "bad_request")),
        ("POST", "/v1/sessions/a%20b/exec", {"code": "1"}, (400, "bad_request")),
        ("POST", f"/v1/sessions/{'a' * 200}/exec", {"code": "1"}, (400, "bad_request")),
        ("POST", "/v1/sessions/0%2Fa/exec", {"code": "1"}, (400, "bad_request")),
    ],
)
def test_what_is_wrong_is_said(server: Server, method: str, path: str, body: object, told: tuple[int, str]) -> None:
    assert server.ask(method, path, body).problem() == told


def test_a_type_that_is_no_json(server: Server) -> None:
    answer = server.ask("POST", "/execute", b'{"code": "1"}', {"Content-Type": "text/plain"})
    assert answer.problem() == (415, "bad_request")


def test_a_body_that_is_too_large(server: Server) -> None:
    answer = server.bare(b"POST /execute HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999\r\n\r\n")
    assert b" 413 " in answer.recv(4096).split(b"\r\n")[0]
    answer.close()
    chunk = b"100000\r\n" + b"x" * 0x100000 + b"\r\n"
    it = server.bare(b"POST /execute HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")
    for _ in range(33):
        it.sendall(chunk)
    it.sendall(b"0\r\n\r\n")
    assert b" 413 " in it.recv(4096).split(b"\r\n")[0]
    it.close()


# ---- who may ----


@pytest.mark.parametrize(
    "given",
    [
        "99999",
        "65536",
        "localhost:65536",
        "4294967297",
        "-1",
        "127.0.0.1:-1",
        "8888x",
        "http",
        "localhost:http",
        ":",
        "",
    ],
)
def test_ports_that_are_none(daemon: Daemon, given: str) -> None:
    told = daemon.lair("serve", f"--listen={given}")
    assert told.returncode == 125 and told.stdout == ""
    assert "--listen: expected HOST:PORT, with a port from 0 to 65535" in told.stderr


def test_without_tokens_only_loopback(daemon: Daemon) -> None:
    told = daemon.lair("serve", "--listen", "0.0.0.0:0")
    assert told.returncode == 125
    assert "tokens" in told.stderr


ASK = """
import socket, sys
it = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
it.sendall(b"PUT /v1/sessions/foreign HTTP/1.1\\r\\nHost: localhost\\r\\nContent-Length: 2\\r\\n\\r\\n{}")
if sys.argv[2] == "wait":
    print(it.recv(4096).decode())
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
@pytest.mark.parametrize("then", ["wait", "close"])
def test_without_tokens_only_the_same_user(server: Server, client: Client, then: str) -> None:
    """Nor somebody who has gone before it is asked who that was: then the kernel would say root."""
    command = [sys.executable, "-c", ASK, str(server.port), then]
    told = subprocess.run(
        command, user=65534, group=65534, extra_groups=[], capture_output=True, text=True, timeout=60
    )
    assert not told.stderr
    if then == "wait":
        assert told.stdout.startswith("HTTP/1.1 403 ")
        assert "without tokens this is for programs of the user who has started it" in told.stdout
    assert server.ask("GET", "/health").status == 200
    assert state_of(client, "foreign") == "none"


# ---- the daemon ----


def test_a_daemon_that_ends(server: Server) -> None:
    with server_of(other := Daemon({})) as there:
        assert there.exec("a", "1")["text"] == "1"
        connection = there.connect()
        assert other.terminate() == 0
        answer = there.ask("POST", "/execute", {"code": "1"}, connection=connection)
        assert answer.problem()[0] == 503
        assert answer.headers["Retry-After"]
    other.close()


def test_bytes_that_are_no_http(server: Server) -> None:
    for data in (b"\0\0\0\r\n\r\n", b"GET\r\n\r\n", b"GET /health HTTP/1.1\r\n\r\n", b"\xff" * 5000 + b"\r\n\r\n"):
        it = server.bare(data)
        it.shutdown(socket.SHUT_WR)
        while it.recv(65536):
            pass
        it.close()
    it = server.bare(b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: " + b"y" * 100_000)
    assert it.recv(4096).split(b" ")[1] in (b"413", b"431")
    it.close()
    assert server.ask("GET", "/health").status == 200


def test_metrics(server: Server, session: str) -> None:
    server.exec(session, "1")
    text = server.ask("GET", "/metrics").body.decode()
    told = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    assert float(told["lair_sessions"]) >= 1
    assert float(told["lair_http_cell_seconds_count"]) >= 1
    assert float(told['lair_http_requests_total{status="2xx"}']) >= 1
    # What the dashboard in examples/ shows is there.
    dashboard = json.loads((ROOT / "examples/grafana.json").read_text())
    shown = {
        name.removesuffix("_bucket")
        for panel in dashboard["panels"]
        for target in panel["targets"]
        for name in re.findall(r"lair_\w+", target["expr"])
    }
    assert shown <= {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")}


def test_how_long_cells_take(server: Server, client: Client, session: str) -> None:
    """By laird's own clock, whoever their clients are: how long they run, and wait."""

    def told(name: str) -> tuple[dict[float, int], float]:
        text = server.ask("GET", "/metrics").body.decode()
        found = re.findall(rf'^{name}_bucket{{le="([^"]+)"}} (\d+)$', text, re.MULTILINE)
        (total,) = re.findall(rf"^{name}_sum (\S+)$", text, re.MULTILINE)
        (count,) = re.findall(rf"^{name}_count (\d+)$", text, re.MULTILINE)
        buckets = {float(most): int(n) for most, n in found}
        assert list(buckets.values()) == sorted(buckets.values())
        assert buckets[float("inf")] == int(count)
        return buckets, float(total)

    client.exec("1", session)
    (ran, ran_sum), (waited, waited_sum) = told("lair_cell_seconds"), told("lair_cell_wait_seconds")
    first = client.start("import time; time.sleep(0.3)", session)
    second = client.start("1", session)
    for key in (first, second):
        client.finish(key, ExecReply)
    (ran_then, ran_sum_then), (waited_then, waited_sum_then) = (
        told("lair_cell_seconds"),
        told("lair_cell_wait_seconds"),
    )
    assert ran_then[float("inf")] == ran[float("inf")] + 2
    assert ran_then[0.25] <= ran[0.25] + 1  # the one that sleeps is longer
    assert ran_sum_then > ran_sum + 0.3
    assert waited_then[0.1] <= waited[0.1] + 1  # and the other waits for it
    assert waited_sum_then > waited_sum + 0.1


# ---- load ----


def test_many_idle_streams(server: Server, session: str) -> None:
    """They cost memory alone, and go when their clients go."""
    before = memory_of(server.process.pid)
    streams = []
    for i in range(32):
        body = json.dumps({"code": "import time; time.sleep(600)" if i == 0 else f"{i}"})
        streams.append(
            server.bare(
                f"POST /v1/sessions/{session}/exec HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n"
                f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()
            )
        )
    came = b""
    while b"begun" not in came:  # headers may come first
        piece = streams[0].recv(4096)
        assert piece, came
        came += piece
    for _ in range(300):
        streams.append(server.bare(b"GET /health HTTP/1.1\r\nHost: local"))
    assert server.ask("GET", "/health").status == 200
    assert memory_of(server.process.pid) - before < 64 << 20
    for stream in streams:
        stream.close()

    def left() -> float:
        text = server.ask("GET", "/metrics").body.decode()
        told = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
        return float(told["lair_http_exchanges"])

    wait_until(lambda: left() == 1, "nobody but the asker is left", 30)

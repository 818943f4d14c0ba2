"""/v1 of `lair serve`: all that the socket can do, as resources of HTTP."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from daemon import SANITIZED, Daemon, memory_of, wait_until
from http_server import Answer, Server, events_of, server_of
from lair import Client

SETTINGS = {"profile default": {"checkpoint": "cell", "checkpoints": "16", "functions": "on"}}

MIB = 1 << 20


@pytest.fixture(scope="module")
def server(daemon: Daemon) -> Iterator[Server]:
    with server_of(daemon) as it:
        yield it


class Session:
    def __init__(self, server: Server, name: str) -> None:
        self.server = server
        self.name = name

    def ask(self, method: str, path: str = "", body: Any = None, headers: dict[str, str] | None = None) -> Answer:
        return self.server.ask(method, f"/v1/sessions/{self.name}{path}", body, headers)

    def get(self, path: str = "") -> Any:
        answer = self.ask("GET", path)
        assert answer.status == 200, answer.body
        return answer.json()

    def post(self, path: str, status: int = 200, **body: Any) -> Any:
        answer = self.ask("POST", path, body)
        assert answer.status == status, answer.body
        return answer.json() if answer.body else None

    def exec(self, code: str, **fields: Any) -> Any:
        return self.server.exec(self.name, code, **fields)


@pytest.fixture
def it(server: Server, session: str) -> Session:
    return Session(server, session)


# ---- sessions ----


def test_the_life_of_a_session(server: Server, it: Session) -> None:
    told = it.ask("PUT", "", {"profile": "default"}).json()
    assert (told["session"], told["opened"], told["profile"]) == (it.name, True, "default")
    assert it.ask("PUT", "", {}).json()["opened"] is False
    wait_until(lambda: it.get()["state"] == "idle", "it is open")
    assert it.get("?stay=true")["session"] == it.name
    assert it.name in [one["session"] for one in server.ask("GET", "/v1/sessions").json()["sessions"]]
    assert it.ask("DELETE").status == 204
    assert it.ask("GET").problem() == (404, "no_session")
    assert it.ask("DELETE").problem() == (404, "no_session")


def test_an_id_with_a_slash_and_other_letters(server: Server) -> None:
    name = "a/b\u00e9\u4e2d"
    path = "a%2Fb%C3%A9%E4%B8%AD"
    assert server.exec(path, "1")["session"] == name
    assert server.ask("DELETE", f"/v1/sessions/{path}").status == 204


# ---- states ----


def test_states_and_what_a_reset_keeps(it: Session) -> None:
    it.exec("x = 1; y = 2")
    assert it.post("/checkpoints", name="one")["cell"] == 1
    assert "one" in [one["name"] for one in it.get("/checkpoints")["checkpoints"]]
    assert it.ask("DELETE", "/checkpoints/one").status == 204
    assert it.ask("POST", "/restore", {"name": "one"}).problem() == (400, "bad_request")
    assert it.post("/reset", keep=["x"])["reset"] is True
    assert [one["name"] for one in it.get("/vars")["variables"]] == ["x"]


def test_saved_states(server: Server, it: Session) -> None:
    it.exec("x = 42")
    assert it.post("/save")["names"] == ["x"]
    assert it.name in [one["session"] for one in server.ask("GET", "/v1/saves").json()["saves"]]
    assert server.ask("GET", f"/v1/saves/{it.name}").json()["names"] == ["x"]
    assert server.ask("DELETE", f"/v1/saves/{it.name}").status == 204
    assert server.ask("GET", f"/v1/saves/{it.name}").problem() == (410, "gone")


# ---- questions ----


def test_questions(server: Server, it: Session) -> None:
    it.exec("number = 42\ndef f(a): 'doc'")
    assert [one["text"] for one in it.post("/complete", code="numb")["matches"]] == ["number"]
    assert it.post("/inspect", code="f")["docstring"] == "doc"
    assert [one["code"] for one in it.get("/cells?n=1")["cells"]] == ["number = 42\ndef f(a): 'doc'"]
    assert it.post("/stray")["stdout"] == ""
    assert it.ask("POST", "/input", {"text": "x"}).problem() == (410, "gone")
    assert it.ask("DELETE", "/vars/number").status == 204
    assert it.ask("DELETE", "/vars/number").problem() == (400, "bad_request")
    assert server.ask("POST", "/v1/check", {"code": "1 +"}).json()["valid"] is False
    assert server.ask("POST", "/v1/is_complete", {"code": "if 1:"}).json()["status"] == "incomplete"


# ---- cells as events ----


def test_events(server: Server, it: Session) -> None:
    code = "import sys\nprint('\u00e9\u2028', end='')\nsys.stdout.flush()\nprint('no', file=sys.stderr)\n6 * 7"
    told = list(events_of(server, "POST", f"/v1/sessions/{it.name}/exec", {"code": code}))
    assert told[0][0] == "begun"
    assert "".join(data["text"] for event, data, _ in told if event == "stdout") == "\u00e9\u2028"
    assert "".join(data["text"] for event, data, _ in told if event == "stderr") == "no\n"
    assert told[-1][0] == "result"
    assert told[-1][1]["text"] == "42"


def test_events_go_on_where_they_were(server: Server, it: Session) -> None:
    code = "for i in range(5): print(i, flush=True)"
    path = f"/v1/sessions/{it.name}"
    told = list(events_of(server, "POST", path + "/exec", {"code": code}, {"Idempotency-Key": "e"}))
    key = told[0][1]["key"]
    again = list(events_of(server, "GET", f"{path}/results/{key}", None, {"Last-Event-ID": "4.0.0"}))
    assert "".join(data["text"] for event, data, _ in again if event == "stdout") == "2\n3\n4\n"
    assert it.get(f"/results/{key}")["stdout"] == "0\n1\n2\n3\n4\n"
    assert it.get("/cells/1")["cell"] == 1
    assert [one["state"] for one in it.get("/results")["results"]] == ["finished"]


def test_functions(server: Server, it: Session) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}}
    body = {
        "code": "tools.add(a=2, b=3), tools.fail()",
        "functions": [{"name": "add", "schema": schema}, {"name": "fail"}],
    }
    for event, data, _ in events_of(server, "POST", f"/v1/sessions/{it.name}/exec", body):
        if event == "call" and data["function"] == "add":
            assert [one["number"] for one in it.get("/calls")["calls"]] == [data["number"]]
            it.post(f"/calls/{data['number']}", 204, value=sum(data["arguments"].values()))
        elif event == "call":
            it.post(f"/calls/{data['number']}", 204, error="ValueError", text="no")
        elif event == "result":
            assert data["error"]["name"] == "ValueError"
    refused = it.ask("POST", "/calls/1", {"value": 1})
    assert refused.problem() == (410, "gone")


def test_functions_by_long_poll(server: Server, it: Session) -> None:
    """For a caller that holds no stream: it runs the cell, waits for its calls, and then for its result."""
    code = "[tools.add(a=i, b=1) for i in range(5)]"
    it.exec("1")
    empty = it.get("/calls?wait=0")
    assert empty["calls"] == []
    schema = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}}
    key = it.exec(code, functions=[{"name": "add", "schema": schema}], detach=True)["key"]
    told: list[Any] = []
    thread = threading.Thread(target=lambda: told.append(it.get(f"/results/{key}")))
    thread.start()
    seen = empty["seen"]
    for i in range(5):
        answer = it.get(f"/calls?wait=60&seen={seen}")
        if not answer["calls"]:  # the last one is answered, the next one not made
            answer = it.get(f"/calls?wait=60&seen={answer['seen']}")
        (call,), seen = answer["calls"], answer["seen"]
        assert (call["key"], call["state"], call["arguments"]) == (key, "out", {"a": i, "b": 1})
        # Who has seen it gets no answer at once, but in time; who has not, does.
        assert it.get(f"/calls?wait=0.2&seen={seen}")["seen"] == seen
        assert server.ask("GET", "/v1/calls?wait=60").json()["calls"]
        it.post(f"/calls/{call['number']}", 204, value=i + 1)
    thread.join(60)
    assert told[0]["text"] == "[1, 2, 3, 4, 5]"


def test_who_waits_for_calls_asks_nothing(server: Server, it: Session, client: Client) -> None:
    """laird says when there is something. When the time is over, it is asked once more."""
    it.exec("1")
    assert it.get("/calls?wait=0.1")["calls"] == []
    before = client.stats().requests
    assert it.get("/calls?wait=2")["calls"] == []
    assert client.stats().requests - before < 8


def test_many_wait_for_calls(server: Server, it: Session) -> None:
    it.exec("1")
    told: list[Any] = []
    threads = [threading.Thread(target=lambda: told.append(it.get("/calls?wait=60"))) for _ in range(40)]
    for thread in threads:
        thread.start()
    key = it.exec("tools.now()", functions=[{"name": "now"}], detach=True)["key"]
    for thread in threads:
        thread.join(60)
    assert [[one["function"] for one in answer["calls"]] for answer in told] == [["now"]] * 40
    it.post("/calls/1", 204, value=1)
    assert it.get(f"/results/{key}")["text"] == "1"
    for wrong in ("-1", "301", "x", ""):
        assert it.ask("GET", f"/calls?wait={wrong}").problem() == (400, "bad_request")


def test_detached(it: Session) -> None:
    key = it.exec("print(1)", detach=True)["key"]
    assert it.get(f"/results/{key}")["stdout"] == "1\n"


def test_a_detached_cell_asks_whoever_watches(server: Server, it: Session) -> None:
    key = it.exec("input('who? ') + '!'", detach=True, input=True)["key"]
    for event, data, _ in events_of(server, "GET", f"/v1/sessions/{it.name}/results/{key}?input=true"):
        if event == "ask":
            it.post("/input", 204, text="Ann")
        elif event == "result":
            assert data["text"] == "'Ann!'"


def test_a_stream_that_nobody_reads(server: Server, it: Session) -> None:
    """The cell ends, others are answered, and what has no room is left out and counted."""
    body = {"code": "for i in range(64): print('x' * (1 << 20), flush=True)"}
    stream = iter(events_of(server, "POST", f"/v1/sessions/{it.name}/exec", body))
    assert next(stream)[0] == "begun"
    wait_until(lambda: it.get()["state"] == "idle", "the cell ends", 60)
    assert server.ask("GET", "/health").status == 200
    size = left_out = 0
    for event, data, _ in stream:
        if event == "stdout":
            size += len(data["text"])
        elif event == "left_out":
            left_out += data["stdout"]
        last = event
    assert last == "result"
    assert left_out > 0
    assert size < 64 * MIB


# ---- files ----


def test_files(it: Session) -> None:
    it.ask("PUT", "", {})
    data = os.urandom(3 * MIB + 17)
    told = it.ask("PUT", "/file?path=a/b.bin&mode=600", data)
    assert (told.status, told.json()) == (201, {"path": "a/b.bin", "size": len(data)})
    assert it.ask("GET", "/file?path=a/b.bin").body == data
    listed = it.get("/files?path=a")["files"]
    assert [(one["name"], one["size"], one["mode"]) for one in listed] == [("b.bin", len(data), 0o600)]
    assert it.ask("PUT", "/file?path=empty", b"").status == 201
    assert it.ask("GET", "/file?path=empty").body == b""
    assert it.ask("PUT", "/file?path=d&directory=true", b"").status == 201
    assert it.exec("import os; sorted(os.listdir())")["text"] == "['a', 'd', 'empty']"


@pytest.mark.parametrize(
    ("range_", "status", "wanted"),
    [
        ("bytes=0-3", 206, b"0123"),
        ("bytes=8-", 206, b"89"),
        ("bytes=-2", 206, b"89"),
        ("bytes=-100", 206, b"0123456789"),
        ("bytes=5-100", 206, b"56789"),
        ("bytes=10-", 416, None),
        ("bytes=-0", 416, None),
        ("bytes=3-1", 200, b"0123456789"),
        ("bytes=0-1,3-4", 200, b"0123456789"),
        ("bytes=x", 200, b"0123456789"),
        ("bytes=18446744073709551615-", 416, None),
        ("lines=1-2", 200, b"0123456789"),
    ],
)
def test_ranges(it: Session, range_: str, status: int, wanted: bytes | None) -> None:
    it.ask("PUT", "", {})
    it.ask("PUT", "/file?path=f", b"0123456789")
    answer = it.ask("GET", "/file?path=f", headers={"Range": range_})
    assert answer.status == status
    assert wanted is None or answer.body == wanted


@pytest.mark.parametrize("path", ["../x", "/etc/passwd", "none", "a/../../x"])
def test_files_that_are_not_there(it: Session, path: str) -> None:
    it.ask("PUT", "", {})
    assert it.ask("GET", f"/file?path={path}").problem()[0] in (400, 403, 404)


@pytest.mark.twice
def test_a_large_file_takes_no_memory(server: Server, it: Session, tmp_path: Path) -> None:
    it.ask("PUT", "", {})
    before = memory_of(server.process.pid, "VmHWM")
    large = tmp_path / "large"
    with large.open("wb") as file:
        file.truncate(256 * MIB)
    with large.open("rb") as file:
        assert it.ask("PUT", "/file?path=large", file).json()["size"] == 256 * MIB
    connection = server.connect()
    connection.request("GET", f"/v1/sessions/{it.name}/file?path=large")
    response, size = connection.getresponse(), 0
    while piece := response.read(MIB):
        size += len(piece)
    assert size == 256 * MIB
    if not SANITIZED:
        assert memory_of(server.process.pid, "VmHWM") - before < 32 * MIB

"""The door of E2B without E2B's SDKs: what they do not send, and who may do what."""

from __future__ import annotations

import gzip
import http.client
import json
import socket
import struct
import time
from base64 import b64decode
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from daemon import Daemon, Settings, wait_until
from http_server import PATIENCE, Answer, Sandbox, Server, Tenant, server_of

SETTINGS: Settings = {"profile default": {"subprocess": "on", "checkpoint": "cell"}}
BOUNDARY = b"0123456789abcdef"


def text_of(lines: list[Any]) -> Any:
    return next(line["text"] for line in lines if line["type"] == "result")


@pytest.fixture(scope="module")
def server(daemon: Daemon) -> Iterator[Server]:
    with server_of(daemon) as it:
        yield it


@pytest.fixture(scope="module")
def sandbox(server: Server) -> Sandbox:
    return Tenant(server, "any").create()


@pytest.fixture
def fresh(server: Server) -> Sandbox:
    return Tenant(server, "any").create()


def slowly(sandbox: Sandbox, path: str, body: bytes, kind: str) -> bytes:
    """The whole answer, read by a client that rests before it begins, and has little room."""
    it = socket.socket()
    it.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
    it.settimeout(PATIENCE)
    it.connect((sandbox.server.host, sandbox.server.port))
    head = "".join(f"{name}: {value}\r\n" for name, value in sandbox.headers.items())
    it.sendall(
        f"POST {path} HTTP/1.1\r\nHost: localhost\r\n{head}Content-Type: {kind}\r\n"
        f"Content-Length: {len(body)}\r\n\r\n".encode()
        + body
    )
    time.sleep(1.5)
    response = http.client.HTTPResponse(it)
    response.begin()
    told = response.read()
    it.close()
    return told


LINES = 100_000


def test_much_output_of_a_cell(fresh: Sandbox) -> None:
    """Ten megabytes in short lines arrive whole: the cell waits for its client."""
    code = f"for i in range({LINES}): print(f'{{i:099}}')"
    told = slowly(fresh, "/execute", json.dumps({"code": code}).encode(), "application/json")
    lines = [json.loads(line) for line in told.splitlines()]
    text = "".join(line["text"] for line in lines if line["type"] == "stdout")
    assert text == "".join(f"{i:099}\n" for i in range(LINES))
    assert lines[-1]["type"] == "end_of_execution"


def test_much_output_of_a_command(fresh: Sandbox) -> None:
    asked = {"process": {"cmd": "/bin/bash", "args": ["-c", f"seq -f %099.0f {LINES}"]}, "stdin": False}
    data = json.dumps(asked).encode()
    body = struct.pack(">BI", 0, len(data)) + data
    told, text, ends = slowly(fresh, "/process.Process/Start", body, "application/connect+json"), b"", 0
    while told:
        _, size = struct.unpack(">BI", told[:5])
        event = json.loads(told[5 : 5 + size]).get("event", {})
        told = told[5 + size :]
        text += b64decode(event.get("data", {}).get("stdout", ""))
        ends += "end" in event
    assert text == b"".join(b"%099d\n" % (i + 1) for i in range(LINES))
    assert ends == 1


def test_a_client_that_reads_nothing(fresh: Sandbox) -> None:
    """It holds up its own cell, and other streams of the same user go on."""
    body = json.dumps({"code": "while True: print('x' * 1000)"}).encode()
    other = Sandbox(fresh.server, fresh.server.ask("POST", "/v2/sandboxes", {"templateID": "base"}).json())
    head = "".join(f"{name}: {value}\r\n" for name, value in other.headers.items())
    gone = fresh.server.bare(
        f"POST /execute HTTP/1.1\r\nHost: localhost\r\n{head}Content-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n".encode()
        + body
    )
    time.sleep(1)
    for _ in range(4):
        assert text_of(fresh.run("1 + 1")) == "2"
    gone.close()


def form(files: list[tuple[str, bytes]]) -> bytes:
    head = 'Content-Disposition: form-data; name="file"; filename="{}"'
    each = (
        b"--" + BOUNDARY + b"\r\n" + head.format(name).encode() + b"\r\n\r\n" + data + b"\r\n"
        for name, data in files
    )
    return b"".join(each) + b"--" + BOUNDARY + b"--\r\n"


def test_a_form_of_many_files(fresh: Sandbox) -> None:
    kind = {"Content-Type": "multipart/form-data; boundary=" + BOUNDARY.decode()}
    answer = fresh.ask("POST", "/files", form([(f"many/{i}", b"%d" % i * 9) for i in range(1000)]), **kind)
    assert answer.status == 200, answer.body
    assert len(answer.json()) == 1000
    assert text_of(fresh.run("import os; len(os.listdir('many'))")) == "1000"
    assert fresh.read("many/999") == b"999" * 9


def test_extended_attributes_are_refused(fresh: Sandbox) -> None:
    """Not kept in silence: E2B has the metadata of a file there."""
    lines = fresh.run("import os; open('f', 'w').close(); os.setxattr('f', 'user.e2b.k', b'v')")
    errors = [line for line in lines if line["type"] == "error"]
    assert [(each["name"], "not supported" in each["value"]) for each in errors] == [("OSError", True)]


def test_a_semicolon_hides_the_value(fresh: Sandbox) -> None:
    for code in ("5;", "5; # five", "x = 3\n(x,\n2);\n\n# end\n"):
        assert [line["type"] for line in fresh.run(code) if line["type"] == "result"] == []
    for code in ("5 # ;", "'a;'", "5;6"):
        assert [line["type"] for line in fresh.run(code) if line["type"] == "result"] == ["result"]


def test_an_exit_is_an_error(fresh: Sandbox) -> None:
    errors = [line for line in fresh.run("x = 4\nraise SystemExit(3)") if line["type"] == "error"]
    assert [(each["name"], each["value"]) for each in errors] == [("SystemExit", "3")]
    assert text_of(fresh.run("x")) == "4"


# ---- bodies ----


def parts(*headers: bytes) -> bytes:
    each = b"".join(b"--" + BOUNDARY + b"\r\n" + header + b"\r\n\r\ncontent\r\n" for header in headers)
    return each + b"--" + BOUNDARY + b"--\r\n"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ((b'Content-Disposition: form-data; name="file"; filename="a"',), 200),
        ((b'Content-Disposition: form-data; filename="a"',), 400),
        ((b'Content-Disposition: form-data; name="other"',), 400),
        ((b'Content-Disposition: form-data; name="file"',), 400),
        ((b"X-None: 1",), 400),
        ((), 400),
    ],
)
def test_forms(sandbox: Sandbox, headers: tuple[bytes, ...], status: int) -> None:
    form = {"Content-Type": f"multipart/form-data; boundary={BOUNDARY.decode()}"}
    answer = sandbox.ask("POST", "/files", parts(*headers), **form)
    assert answer.status == status, answer.body
    if status == 200:
        assert sandbox.read("a") == b"content"


@pytest.mark.parametrize("size", [0, 7, 5 << 20])
def test_packed_files(sandbox: Sandbox, size: int) -> None:
    content = (b"content" * (size // 7 + 1))[:size]
    # Another stream may follow the first.
    packed = gzip.compress(content[: size // 2]) + gzip.compress(content[size // 2 :])
    for data in (packed, iter([packed[:5], packed[5:11], packed[11:]])):
        answer = sandbox.upload("packed", data, **{"Content-Encoding": "gzip"})  # type: ignore[arg-type]
        assert answer.status == 200, answer.body
        assert sandbox.read("packed") == content


NOT_PACKED = {
    "nothing": b"",
    "plain": b"content",
    "cut": gzip.compress(b"content")[:-3],
    "more after it": gzip.compress(b"a") + b"b",
}


@pytest.mark.parametrize("data", NOT_PACKED.values(), ids=NOT_PACKED)
def test_files_that_are_not_packed(sandbox: Sandbox, data: bytes) -> None:
    answer = sandbox.upload("wrong", data, **{"Content-Encoding": "gzip"})
    assert answer.status == 400
    assert "gzip" in answer.json()["message"]
    assert sandbox.upload("wrong", b"content", **{"Content-Encoding": "br"}).status == 415


@pytest.mark.parametrize(
    "body",
    [b"", b"\0\0\0\0\5{}", b"\1\0\0\0\2{}", b"\0\xff\xff\xff\xff{}", b"\0\0\0\0\1[", b"\0\0\0\0\2[]", b"{}"],
)
def test_messages_that_are_none(sandbox: Sandbox, body: bytes) -> None:
    answer = sandbox.ask("POST", "/process.Process/Start", body, **{"Content-Type": "application/connect+json"})
    flags, size = struct.unpack(">BI", answer.body[:5])
    assert (answer.status, flags, size) == (200, 2, len(answer.body) - 5)
    assert json.loads(answer.body[5:])["error"]["code"] == "invalid_argument"


def call(sandbox: Sandbox, name: str, **asked: Any) -> Any:
    answer = sandbox.ask("POST", f"/filesystem.Filesystem/{name}", asked)
    assert answer.status == 200, answer.body
    return answer.json()


def test_where_a_sandbox_writes(sandbox: Sandbox) -> None:
    """E2B lets its user write anywhere; here the answer says where."""
    for answer in (
        sandbox.upload("/0/multi_test_file0.txt", b"x"),
        sandbox.ask("POST", "/filesystem.Filesystem/MakeDir", {"path": "/0"}),
        sandbox.ask("POST", "/filesystem.Filesystem/Move", {"source": "/usr/bin/env", "destination": "/0/f"}),
    ):
        assert answer.status == 403, answer.body
        said = answer.json()["message"]
        assert "/0: write only below" in said
        assert "; a sandbox may write below /home/user, /tmp" in said or said.endswith("below /home/user"), said
    answer = sandbox.ask("POST", "/filesystem.Filesystem/ListDir", {"path": "/root"})
    assert "a sandbox may write" not in answer.body.decode()


def test_a_watcher_tells_what_a_file_is(sandbox: Sandbox) -> None:
    call(sandbox, "MakeDir", path="watched")
    plain = call(sandbox, "CreateWatcher", path="watched")["watcherId"]
    watcher = call(sandbox, "CreateWatcher", path="watched", includeEntry=True)["watcherId"]
    assert sandbox.upload("watched/new", b"content").status == 200
    sandbox.run("open('watched/empty', 'w').close()")
    events = call(sandbox, "GetWatcherEvents", watcherId=watcher)["events"]
    assert [(each["name"], each["type"]) for each in events if each["name"] == "new"] == [
        ("new", "EVENT_TYPE_CREATE"),
        ("new", "EVENT_TYPE_CHMOD"),
        ("new", "EVENT_TYPE_WRITE"),
    ]
    assert [each["type"] for each in events if each["name"] == "empty"] == ["EVENT_TYPE_CREATE"]
    entry = next(each["entry"] for each in events if each["name"] == "new")
    assert (entry["path"], entry["size"], entry["type"]) == ("/home/user/watched/new", "7", "FILE_TYPE_FILE")
    assert not any("entry" in each for each in call(sandbox, "GetWatcherEvents", watcherId=plain)["events"])
    sandbox.run("__import__('os').remove('watched/new')")
    (gone,) = call(sandbox, "GetWatcherEvents", watcherId=watcher)["events"]
    assert gone == {"name": "new", "type": "EVENT_TYPE_REMOVE"}


def mark(sandbox: Sandbox, path: str) -> Any:
    return call(sandbox, "Stat", path=path)["entry"].get("metadata")


def test_metadata_of_files(sandbox: Sandbox) -> None:
    told = sandbox.upload("marked", b"content", **{"X-Metadata-Author": "mish", "x-metadata-for": "a: b"})
    marked = {"author": "mish", "for": "a: b"}
    assert told.json()[0]["metadata"] == mark(sandbox, "marked") == mark(sandbox, "/home/user/./marked") == marked
    listed = call(sandbox, "ListDir", path="")["entries"]
    assert [each.get("metadata") for each in listed if each["name"] == "marked"] == [marked]
    call(sandbox, "MakeDir", path="deep")
    assert call(sandbox, "Move", source="marked", destination="deep/er/it")["entry"]["metadata"] == marked
    call(sandbox, "Move", source="deep", destination="deeper")
    assert mark(sandbox, "deeper/er/it") == marked
    assert sandbox.upload("marked", b"content").json()[0].get("metadata") is mark(sandbox, "marked") is None
    assert sandbox.upload("/tmp/marked", b"content", **{"X-Metadata-a": "1"}).json()[0]["metadata"] == {"a": "1"}
    assert mark(sandbox, "/tmp/../tmp/marked") == {"a": "1"}
    sandbox.upload("plain", b"")
    call(sandbox, "Move", source="plain", destination="deeper/er/it")
    assert mark(sandbox, "deeper/er/it") is None
    sandbox.upload("marked", b"", **{"X-Metadata-a": "1"})
    call(sandbox, "Remove", path="marked")
    sandbox.run("open('marked', 'w').close()")
    assert mark(sandbox, "marked") is None


def test_metadata_that_is_too_much(sandbox: Sandbox) -> None:
    for large in ({f"X-Metadata-{n}": "x" * 1000 for n in range(9)}, {"X-Metadata-" + "k" * 300: "1"}):
        answer = sandbox.upload("large", b"content", **large)
        assert answer.status == 507 and "metadata" in answer.json()["message"]


def test_metadata_of_very_many_files(server: Server) -> None:
    """One form may have them all: what is kept of it is bounded, and the rest are files without it."""
    it = Tenant(server, "any").create()
    names = [f"many/{n}" for n in range(200)]
    form = parts(*[f'Content-Disposition: form-data; name="file"; filename="{name}"'.encode() for name in names])
    marked = {f"X-Metadata-{n}": "x" * 1900 for n in range(4)}
    answer = it.ask(
        "POST", "/files", form, **{"Content-Type": f"multipart/form-data; boundary={BOUNDARY.decode()}"}, **marked
    )
    assert answer.status == 200, answer.body
    kept = [each["name"] for each in answer.json() if "metadata" in each]
    assert 100 < len(kept) < 150
    assert it.upload("one", b"", **{"X-Metadata-a": "1"}).status == 507
    assert it.upload("one", b"").status == 200
    call(it, "Remove", path="many")
    assert it.upload("one", b"", **{"X-Metadata-a": "1"}).status == 200


@pytest.mark.parametrize(
    ("shift", "zone", "found"),
    [
        (0, "Z", True),
        (1, "Z", False),
        (-1, "Z", True),
        (3600, "+01:00", True),
        (3601, "+01:00", False),
        (-3599, "-01:00", False),
    ],
)
def test_sandboxes_after_a_time(server: Server, shift: int, zone: str, found: bool) -> None:
    who = Tenant(server, "any")
    it = who.create()
    try:
        told = who.ask("GET", f"/sandboxes/{it.id}").json()["startedAt"]
        when = datetime.fromisoformat(told.replace("Z", "+00:00")) + timedelta(seconds=shift)
        asked = urlencode({"startedAfter": when.strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + zone})
        listed = who.ask("GET", f"/v2/sandboxes?{asked}")
        assert listed.status == 200
        assert any(each["sandboxID"] == it.id for each in listed.json()) is found
    finally:
        who.ask("DELETE", f"/sandboxes/{it.id}")


def test_figures_of_a_time(server: Server) -> None:
    who = Tenant(server, "any")
    it = who.create()
    now = int(time.time())

    def figures(**asked: int) -> int:
        return len(who.ask("GET", f"/sandboxes/{it.id}/metrics?{urlencode(asked)}").json())

    assert figures() == figures(start=now - 5) == figures(start=now - 5, end=now) == figures(end=now + 100) == 1
    assert figures(end=now - 100) == figures(start=now + 1000) == figures(start=now - 200, end=now - 100) == 0
    who.ask("DELETE", f"/sandboxes/{it.id}")


def test_a_context_begins_empty(sandbox: Sandbox) -> None:
    """What has made it leaves no names there."""
    made = sandbox.ask("POST", "/contexts", {"cwd": "/home/user/sub"}).json()
    code = "sorted(name for name in globals() if not name.startswith('__')), __import__('os').getcwd()[-4:]"
    names = []
    for context in ({}, {"context_id": made["id"]}):
        answer = sandbox.ask("POST", "/execute", {"code": code, **context})
        names.append(text_of([json.loads(line) for line in answer.body.splitlines()]))
    assert names[1].endswith("'/sub')")
    assert names[0].split("]")[0] == names[1].split("]")[0]


# ---- who may ----


class Shared:
    """A server with tokens, and two who have one."""

    def __init__(self, daemon: Daemon, path: Path) -> None:
        self.daemon = daemon
        self.path = path

    def add(self, server: Server, name: str, *arguments: str) -> Tenant:
        told = self.daemon.lair("token", "add", name, *arguments, "--tokens", str(self.path))
        assert told.returncode == 0, told.stderr
        return Tenant(server, told.stdout.strip())


@pytest.fixture(scope="module")
def shared(daemon: Daemon, tmp_path_factory: pytest.TempPathFactory) -> Shared:
    it = Shared(daemon, tmp_path_factory.mktemp("tokens") / "tokens")
    assert daemon.lair("token", "add", "first", "--tokens", str(it.path)).returncode == 0
    return it


@pytest.fixture(scope="module")
def strict(daemon: Daemon, shared: Shared) -> Iterator[Server]:
    with server_of(daemon, "--tokens", str(shared.path)) as it:
        yield it


@pytest.fixture(scope="module")
def alice(strict: Server, shared: Shared) -> Tenant:
    return shared.add(strict, "alice")


@pytest.fixture(scope="module")
def bob(strict: Server, shared: Shared) -> Tenant:
    return shared.add(strict, "bob")


def test_each_has_sandboxes_of_its_own(alice: Tenant, bob: Tenant) -> None:
    hers, his = alice.create(metadata={"who": "alice"}), bob.create()
    hers.run("x = 1")
    assert hers.id in alice.ids()
    assert his.id in bob.ids()
    assert not alice.ids() & bob.ids()
    for method, path in (
        ("GET", ""),
        ("GET", "/metrics"),
        ("DELETE", ""),
        ("POST", "/pause"),
        ("POST", "/connect"),
        ("POST", "/timeout"),
    ):
        answer = bob.ask(method, f"/sandboxes/{hers.id}{path}", {} if method == "POST" else None)
        assert answer.status == 404, (method, path, answer.body)
    assert text_of(hers.run("x")) == "1"
    assert alice.ask("DELETE", f"/sandboxes/{hers.id}").status == 204
    assert hers.ask("POST", "/execute", {"code": "x"}).status == 502
    assert his.id in bob.ids()


def test_no_key_is_no_key(strict: Server, alice: Tenant, bob: Tenant) -> None:
    hers, his = alice.create(), bob.create()
    for headers in (
        {},
        {"X-API-KEY": "lair_none"},
        {"X-API-KEY": hers.token},
        {"E2b-Sandbox-Id": hers.id},
        {"E2b-Sandbox-Id": hers.id, "X-Access-Token": his.token},
        {"E2b-Sandbox-Id": his.id, "X-Access-Token": hers.token},
        {"E2b-Sandbox-Id": hers.id, "E2B-Traffic-Access-Token": "0" * 64},
    ):
        for method, path in (
            ("POST", "/execute"),
            ("GET", "/contexts"),
            ("GET", "/v2/sandboxes"),
        ):
            body = {"code": "1"} if method == "POST" else None
            assert strict.ask(method, path, body, headers).status == 401, (headers, path)
    # His key is good, and her sandbox is none of his.
    assert bob.ask("POST", "/execute", {"code": "1"}, **{"E2b-Sandbox-Id": hers.id}).status == 502


def test_the_token_of_a_sandbox_is_for_that_one(strict: Server, alice: Tenant) -> None:
    """Whoever has been given it may use the sandbox, and do nothing with it or with others."""
    one, other = alice.create(), alice.create()
    for method, path in (
        ("GET", "/v2/sandboxes"),
        ("GET", "/sandboxes"),
        ("POST", "/v2/sandboxes"),
        ("GET", f"/sandboxes/{one.id}"),
        ("DELETE", f"/sandboxes/{one.id}"),
        ("DELETE", f"/sandboxes/{other.id}"),
        ("POST", f"/v2/sandboxes/{other.id}/connect"),
    ):
        assert one.ask(method, path, {} if method == "POST" else None).status == 401, (method, path)
    assert strict.ask("GET", "/contexts", None, {**one.headers, "E2b-Sandbox-Id": other.id}).status == 401
    assert text_of(one.run("6 * 7")) == "42"
    assert text_of(other.run("6 * 7")) == "42"


def test_a_signature_is_for_its_file(strict: Server, alice: Tenant) -> None:
    it = alice.create(envVars={"SECRET": "s"})
    it.upload("f", b"content")
    reads, writes = it.signed("f", "read"), it.signed("f", "write")
    assert strict.ask("GET", f"/files?{reads}").body == b"content"
    assert (
        strict.ask("POST", f"/files?{writes}", b"new", {"Content-Type": "application/octet-stream"}).status == 200
    )
    assert strict.ask("GET", f"/files?{reads}").body == b"new"
    assert strict.ask("GET", f"/files?{writes}").status == 401
    assert strict.ask("GET", f"/files?{reads.replace('path=f', 'path=g')}").status == 401
    soon = int(time.time()) + 60
    assert strict.ask("GET", f"/files?{it.signed('f', 'read', soon)}").status == 200
    late = strict.ask("GET", f"/files?{it.signed('f', 'read', soon - 600)}")
    assert (late.status, late.json()["message"]) == (401, "signature is already expired")
    # It opens no other door.
    for method, path, query in (
        ("GET", "/v2/sandboxes", reads),
        ("GET", f"/sandboxes/{it.id}", reads),
        ("GET", "/contexts", reads),
        ("POST", "/execute", writes),
        ("POST", "/process.Process/List", writes),
        ("POST", "/filesystem.Filesystem/ListDir", writes),
        ("DELETE", f"/sandboxes/{it.id}", writes),
    ):
        body = {"code": "1"} if method == "POST" else None
        assert strict.ask(method, f"{path}?{query}", body).status == 401, path
    assert it.read("f") == b"new"


def limited(answer: Answer) -> bool:
    assert answer.status in (201, 429), answer.body
    assert answer.status == 201 or int(answer.headers["Retry-After"]) > 0
    return answer.status == 429


def test_sandboxes_at_once(strict: Server, shared: Shared) -> None:
    carol = shared.add(strict, "carol", "--sessions", "2")
    one, two = carol.create(), carol.create()
    # What belongs to a sandbox is not counted: it shares the sandbox's cage.
    assert one.ask("POST", "/contexts", {}).status == 200
    assert one.ask("POST", "/filesystem.Filesystem/ListDir", {"path": "."}).status == 200
    assert limited(carol.ask("POST", "/v2/sandboxes", {"templateID": "base"}))
    assert carol.ask("DELETE", f"/sandboxes/{two.id}").status == 204
    wait_until(
        lambda: not limited(carol.ask("POST", "/v2/sandboxes", {"templateID": "base"})), "another may be made"
    )
    assert limited(carol.ask("POST", "/v2/sandboxes", {"templateID": "base"}))
    # A session that only has such a name is one more.
    answer = strict.ask("PUT", f"/v1/sessions/{one.id}~9", None, {"Authorization": f"Bearer {carol.key}"})
    assert answer.status == 429


def test_revoked(strict: Server, shared: Shared) -> None:
    frank = shared.add(strict, "frank")
    it = frank.create()
    assert it.run("1")
    assert shared.daemon.lair("token", "revoke", "frank", "--tokens", str(shared.path)).returncode == 0
    assert frank.ask("GET", "/v2/sandboxes").status == 401
    assert it.ask("POST", "/execute", {"code": "1"}).status == 401

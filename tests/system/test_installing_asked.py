"""Packages that somebody has to approve of, or that a model asks for: at a terminal, by another command, in Python and by
MCP."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import lair
from daemon import BIN, Daemon, wait_until
from http_server import Answer, Server, server_of
from index import Index, find_uv
from lair import Connection, Session
from mcp_server import McpServer
from terminal import Terminal
from test_router_death import kill_router

UV = find_uv()

pytestmark = pytest.mark.skipif(UV is None, reason="there is no uv, and pip cannot install it")


@pytest.fixture(scope="module")
def index() -> Iterator[Index]:
    index = Index()
    yield index
    index.close()


@pytest.fixture(scope="module")
def daemon(index: Index) -> Iterator[Daemon]:
    store = Path(tempfile.mkdtemp(prefix="lair-packages-"))
    store.chmod(0o755)
    quick = {"preload": "", "spares": "0", "checkpoint": "cell"}
    settings = {
        "daemon": {"packages_store": str(store), "uv": str(UV)},
        "profile default": {**quick, "packages": "ask"},
        "profile on": {**quick, "packages": "on"},
    }
    daemon = Daemon(settings, env={"UV_INDEX_URL": index.url, "UV_DEFAULT_INDEX": index.url})
    yield daemon
    daemon.close()
    shutil.rmtree(store, ignore_errors=True)


names = iter(f"package-{n}" for n in range(1000))


@pytest.fixture
def package(index: Index) -> str:
    """One that no set has yet."""
    name = next(names)
    index.add(name, "1.0", {f"{name.replace('-', '_')}.py": b"", f"{name}.bin": os.urandom(2 << 20)})
    index.apart.add(f"{name.replace('-', '_')}-1.0-py3-none-any.whl")
    return name


@pytest.mark.parametrize("said, error", [(True, None), (False, "PermissionError"), ("too new", "PermissionError")])
def test_python_is_asked(connection: Connection, package: str, said: Any, error: str | None) -> None:
    asked = []

    def approve(call: lair.Calling) -> Any:
        asked.append((call.function, call.arguments))
        return said

    with Session(connection=connection, approve=approve) as s:
        result = s.run(f"%pip install {package}")
        assert asked == [("pip install", {"requirements": [package]})]
        assert (result.error.name if result.error else None) == error
        if isinstance(said, str):
            assert result.error is not None and said in result.error.value
        else:
            assert s.run("'tools' in globals()").text == "False"


def test_lair_calls_and_answer(daemon: Daemon, connection: Connection, package: str) -> None:
    with Session(f"s-{package}", connection=connection, approve=lambda _: None) as s:
        cell = threading.Thread(target=s.run, args=(f"%pip install {package}",))
        cell.start()
        wait_until(lambda: [it.state for it in s.calls()] == ["asks"], "it asks")
        assert package in daemon.lair("calls").stdout
        number = str(s.calls()[0].number)
        assert daemon.lair("answer", s.id, number, "--approve").returncode == 0
        cell.join(60)
        assert package in s.run("%pip list").stdout
        s.shutdown()


@pytest.mark.parametrize("key, text", [("y", "installed: "), ("n", "the person at the terminal said no")])
def test_a_person_at_a_terminal(daemon: Daemon, package: str, key: str, text: str) -> None:
    env = {"PATH": os.environ["PATH"], "LAIR_SOCKET": str(daemon.socket)}
    terminal = Terminal([str(BIN / "lair"), "exec", f"%pip install {package}"], env)
    try:
        terminal.expect("allow? [y/N]")
        terminal.type(f"{key}\r")
        terminal.expect(text, 60)
    finally:
        terminal.close()


def test_nobody_to_ask(daemon: Daemon, package: str) -> None:
    done = daemon.lair("exec", f"%pip install {package}")
    assert "PermissionError: packages are not for code to install here" in done.stderr


def test_a_model(daemon: Daemon, index: Index, package: str) -> None:
    with McpServer(daemon, "--tools", "full", "--profile", "on", modern=False) as server:
        server.greet()
        server.call("python_session_execute", code="x = 41")
        index.halting = 0.5
        token = "progress"
        params = {"name": "python_session_install", "arguments": {"packages": f"{package}==1.*"}}
        try:
            result = server.wait(server.begin("tools/call", params, token=token))["result"]
        finally:
            index.halting = 0.0
        assert result["structuredContent"]["stdout"] == f"installed: {package} 1.0\n"
        told = [it["params"]["message"] for it in server.notifications if it["method"] == "notifications/progress"]
        assert f"downloading {package}, 0.0 of 2.1 MB" in told
        code = f"import {package.replace('-', '_')}; x"
        assert server.call("python_session_execute", code=code)["text"] == "41"
        bad = server.call("python_session_install", packages="plain\nimport os")
        assert not bad["ok"] and "one line" in bad["error"]["value"]
        assert not server.call("python_session_install", packages="--target x plain")["ok"]


@pytest.mark.parametrize("approved", [True, False])
def test_a_model_whose_person_is_asked(daemon: Daemon, package: str, approved: bool) -> None:
    with McpServer(daemon, "--tools", "full", modern=False) as server:
        server.greet(elicitation={})
        params = {"name": "python_session_install", "arguments": {"packages": package}}
        call = server.begin("tools/call", params)
        asked = server.wait("elicitation/create")
        assert package in asked["params"]["message"]
        answer = {"action": "accept", "content": {"approve": approved}}
        server.send({"jsonrpc": "2.0", "id": asked["id"], "result": answer})
        result = server.wait(call)["result"]["structuredContent"]
        assert result["ok"] == approved
        assert approved or result["error"]["name"] == "PermissionError"


class Conversation:
    """Of the handshake era over HTTP, with a client that can ask its person."""

    def __init__(self, server: Server, accept: str = "application/json, text/event-stream") -> None:
        self.server = server
        self.headers = {"Accept": accept}
        params = {"protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}}, "clientInfo": {"name": "t"}}
        answer = self.say(id=0, method="initialize", params=params)
        self.headers["Mcp-Session-Id"] = answer.headers["Mcp-Session-Id"]

    def say(self, **message: Any) -> Answer:
        return self.server.ask("POST", "/mcp", {"jsonrpc": "2.0", **message}, self.headers)

    def events(self, id: int, tool: str, **arguments: Any) -> Iterator[Any]:
        """What comes of a call, as it comes: an answer, or the events of a stream."""
        connection = self.server.connect()
        params = {"name": tool, "arguments": arguments}
        message = {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}
        connection.request("POST", "/mcp", json.dumps(message), self.headers)
        response = connection.getresponse()
        if response.headers["Content-Type"] == "application/json":
            yield json.loads(response.read())
        else:
            for line in response:
                if line.startswith(b"data: "):
                    yield json.loads(line[6:])
        connection.close()


@pytest.mark.parametrize("approved", [True, False])
def test_a_person_is_asked_over_http(daemon: Daemon, package: str, approved: bool) -> None:
    with server_of(daemon) as server:
        talk = Conversation(server)
        events = talk.events(1, "python_session_execute", code=f"%pip install {package}")
        asked = next(events)
        assert asked["method"] == "elicitation/create" and package in asked["params"]["message"]
        answer = {"action": "accept", "content": {"approve": approved}}
        assert talk.say(id=asked["id"], result=answer).status == 202
        (last,) = events
        assert last["id"] == 1 and last["result"]["structuredContent"]["ok"] == approved
        assert talk.say(id=asked["id"], result=answer).status == 202  # of a question that is answered
        assert talk.say(id="ask-99", result=answer).status == 202


def test_a_question_is_dismissed_over_http(daemon: Daemon, package: str) -> None:
    with server_of(daemon) as server:
        talk = Conversation(server)
        events = talk.events(1, "python_session_execute", code=f"%pip install {package}")
        assert talk.say(id=next(events)["id"], result={"action": "cancel"}).status == 202
        (last,) = events
        waits = last["result"]["structuredContent"]
        number = str(waits["asking"][0]["number"])
        assert waits["running"] and "lair answer" in waits["note"]
        assert daemon.lair("answer", waits["session_id"], number, "--approve").returncode == 0
        (rest,) = talk.events(2, "python_result", handle=waits["handle"])
        assert rest["result"]["structuredContent"]["stdout"].startswith(f"installed: {package}")


def test_a_client_of_http_that_takes_no_stream_is_told(daemon: Daemon, package: str) -> None:
    with server_of(daemon) as server:
        talk = Conversation(server, "application/json")
        (answer,) = talk.events(1, "python_session_execute", code=f"%pip install {package}")
        assert answer["result"]["structuredContent"]["asking"]


def test_a_person_of_a_token_is_asked(daemon: Daemon, package: str, tmp_path: Path) -> None:
    """In the stateless era, where the state that the client gives back names the session."""
    path = tmp_path / "tokens"
    secrets = [daemon.lair("token", "add", name, "--tokens", str(path)).stdout.strip() for name in ("a", "b")]
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
    }
    headers = {
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": "tools/call",
        "Mcp-Name": "python_session_execute",
        "Accept": "application/json, text/event-stream",
    }

    def ask(secret: str, **more: Any) -> Answer:
        arguments = {"code": f"%pip install {package}"}
        params = {"name": "python_session_execute", "arguments": arguments, "_meta": meta, **more}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        return server.ask("POST", "/mcp", message, {**headers, "Authorization": f"Bearer {secret}"})

    with server_of(daemon, "--tokens", str(path)) as server:
        asked = ask(secrets[0]).json()["result"]
        (number,) = asked["inputRequests"]
        given = {
            "requestState": asked["requestState"],
            "inputResponses": {number: {"action": "accept", "content": {"approve": True}}},
        }
        assert ask(secrets[1], **given).status == 403
        assert ask(secrets[0], **given).json()["result"]["structuredContent"]["ok"]


def test_a_model_that_nobody_can_be_asked_for(daemon: Daemon, package: str) -> None:
    with McpServer(daemon, "--tools", "full", modern=False) as server:
        server.greet()
        waits = server.call("python_session_install", packages=package)
        assert waits["running"] and "lair answer" in waits["note"]
        number = str(waits["asking"][0]["number"])
        key = waits["handle"].partition("-")[0]
        assert daemon.lair("answer", "--key", key, number, "--approve").returncode == 0
        assert server.call("python_result", handle=waits["handle"])["ok"]


def listed(daemon: Daemon, *more: str) -> dict[str, Any]:
    """By its only project, which sets there are, or were removed."""
    sets = json.loads(daemon.lair("packages", *more, "--json").stdout)["sets"]
    return {it["projects"][0]: it for it in sets if len(it["projects"]) == 1}


def test_what_nobody_has_is_removed(daemon: Daemon, connection: Connection, index: Index) -> None:
    first, second = "kept-one", "left-one"
    for name in (first, second):
        index.add(name, "1.0")
    s = Session("has-it", connection=connection)
    s.install([first])
    with Session(connection=connection) as other:
        other.install([second])
        assert {f"{first}==1.0", f"{second}==1.0"} <= listed(daemon).keys()
        assert all(it["used"] and it["size"] > 0 for it in listed(daemon).values() if "-one" in it["projects"][0])
        other.run("x = 1")
        other.undo(2)
        assert listed(daemon)[f"{second}==1.0"]["used"]  # a state has it, and may come back
    wait_until(lambda: not listed(daemon)[f"{second}==1.0"]["used"], "nobody has it")
    table = daemon.lair("packages").stdout
    assert f"{second}==1.0" in table and "has-it" in table
    kill_router(daemon)
    removed = listed(daemon, "prune")
    assert f"{second}==1.0" in removed and f"{first}==1.0" not in removed
    assert f"{second}==1.0" not in listed(daemon)
    assert s.run(f"import {first.replace('-', '_')}").ok
    index.asked.clear()
    with Session(connection=connection) as other:
        other.install([second])
        assert index.asked
        assert other.run(f"import {second.replace('-', '_')}").ok
    s.shutdown()


def holders(connection: Connection, project: str) -> list[str] | None:
    """Which sessions have the set of that project alone."""
    found = [it.sessions for it in lair.packages(connection=connection) if it.projects == [f"{project}==1.0"]]
    return found[0] if found else None


def test_which_sessions_have_it(daemon: Daemon, connection: Connection, index: Index) -> None:
    index.add("had", "1.0")
    with Session("haver", connection=connection) as s, Session("other", connection=connection) as other:
        other.run("1")
        s.install(["had"])
        assert holders(connection, "had") == ["haver"]
        assert listed(daemon)["had==1.0"]["sessions"] == ["haver"]
        assert "haver" in daemon.lair("packages").stdout
        branch = s.branch("haver-b")
        assert holders(connection, "had") == ["haver", "haver-b"]
        s.checkpoint("then")
        s.reset()
        assert s.run("import had").error is not None
        branch.shutdown()
        assert holders(connection, "had") == ["haver"]  # a state of it has it
        kill_router(daemon)
        assert holders(connection, "had") == ["haver"]
        s.drop("then")
        wait_until(lambda: holders(connection, "had") == [], "no state has it")
        s.shutdown()


def test_a_session_that_says_it_has_another(daemon: Daemon, connection: Connection, index: Index) -> None:
    """In memory that it may write to, and that a state of it is written down with."""
    index.add("true", "1.0")
    with Session("liar", connection=connection) as s:
        s.install(["true"])
        (real,) = (it.set for it in lair.packages(connection=connection) if it.projects == ["true==1.0"])
        for n, name in enumerate(("'../' * 30", "'a' * 64", "'\\u20ac' * 40", "''")):
            s.run(f"__import__('builtins').__pip__.__globals__['have']({name})")
            s.checkpoint(f"then-{n}")
            assert holders(connection, "true") == ["liar"]  # a state has it
            kill_router(daemon)
            assert holders(connection, "true") == ["liar"]
        assert s.run(f"__import__('builtins').__pip__.__globals__['have']({real!r})").ok
        s.shutdown()


def test_what_it_costs(daemon: Daemon, connection: Connection, index: Index) -> None:
    index.add("costly", "1.0", {"costly.py": b"it = bytearray(b'x') * (32 << 20)\n"})
    for _ in range(2):
        with Session(connection=connection) as s:
            s.install(["costly"])
    wait_until(lambda: listed(daemon)["costly==1.0"].get("template", 0) > 32 << 20, "there is a template", 30)
    (it,) = (it for it in lair.packages(connection=connection) if it.projects == ["costly==1.0"])
    assert 32 << 20 < it.template < 64 << 20
    assert it.used and it.sessions == [] and it.size > 0
    assert "of memory" in daemon.lair("packages").stdout


OTHERS = 54322


def test_another_user_sees_the_own_ones(daemon: Daemon, connection: Connection, index: Index) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can be another user")
    daemon.share()
    index.add("roots-own", "1.0")
    index.add("theirs", "1.0")
    with Session("roots", connection=connection) as s:
        s.install(["roots-own"])
        act = (
            "c = lair.Connection({socket!r})\ns = lair.Session('mine', connection=c)\n"
            "print([it.projects for it in lair.packages(connection=c)])\ns.install(['theirs'])\n"
            "print([(it.projects, it.sessions) for it in lair.packages(connection=c)])\n"
            "try: lair.packages(prune=True, connection=c)\nexcept lair.LairError as e: print(e.code)\n"
        ).format(socket=str(daemon.socket))
        assert daemon.as_user(OTHERS, act).splitlines() == ["[]", "[(['theirs==1.0'], ['mine'])]", "denied"]
        s.shutdown()
    assert holders(connection, "theirs") == [f"{OTHERS}/mine"]


def test_an_argument_that_is_none(daemon: Daemon) -> None:
    assert daemon.lair("packages", "all").returncode == 2

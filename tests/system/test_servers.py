"""MCP servers: started, listed, called, and ended; good ones and bad ones."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from daemon import BIN, TROUBLE, USAGE, Daemon, wait_until
from lair import Connection, LairError, Session
from lair.mcp import MCPError, Servers

UPSTREAM = Path(__file__).parent / "upstream.py"
LAIR = str(BIN / "lair")
Open = Callable[..., Servers]


def entry(*modes: str, **more: Any) -> dict[str, Any]:
    return {"command": sys.executable, "args": [str(UPSTREAM), *modes], **more}


def file(directory: Path, entries: dict[str, Any]) -> Path:
    path = directory / "servers.json"
    path.write_text(json.dumps({"mcpServers": entries}))
    return path


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Open]:
    every: list[Servers] = []

    def open_servers(*allow: str, **entries: Any) -> Servers:
        every.append(Servers(file(tmp_path, entries), allow=allow, program=LAIR))
        return every[-1]

    yield open_servers
    for it in every:
        it.close()


def listed(path: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([LAIR, "servers", str(path), *flags], capture_output=True, text=True, timeout=60)


def processes(mark: str) -> list[int]:
    """Those whose command line has that."""
    found = []
    for it in Path("/proc").iterdir():
        if it.name.isdigit() and int(it.name) != os.getpid():
            try:
                command = (it / "cmdline").read_bytes()
                ended = (it / "stat").read_text().rpartition(")")[2].split()[0] == "Z"
            except OSError:
                continue
            if mark.encode() in command.split(b"\0") and str(UPSTREAM).encode() in command and not ended:
                found.append(int(it.name))
    return found


def said(result: dict[str, Any]) -> str:
    return str(result["content"][0]["text"])


# ---- what there is ----


def test_tools_are_functions(opened: Open) -> None:
    by_name = {it.name: it.wire() for it in opened(**{"My Server": entry(), "2nd": entry(), "my_server": entry()})}
    assert {"my_server.echo", "my_server.echo_2", "my_server.class_", "my_server._2_words_"} <= set(by_name)
    assert "_2nd.echo" in by_name and "my_server_2.echo" in by_name
    assert by_name["my_server.echo_2"]["server"] == "My Server" and by_name["my_server.echo_2"]["tool"] == "Echo"
    assert by_name["my_server.class_"]["doc"] == "What class does."
    assert json.loads(by_name["my_server.echo"]["schema"])["properties"]["n"] == {"type": "integer"}


def test_only_what_changes_something_asks(opened: Open) -> None:
    asks = {it.name for it in opened(u=entry()) if it.wire().get("caution")}
    assert asks == {"u.write"}
    assert not any("caution" in it.wire() for it in opened("u.w*", u=entry()))
    assert not any("caution" in it.wire() for it in opened(u=entry(autoApprove=["write"])))
    assert not any("caution" in it.wire() for it in opened(u=entry(alwaysAllow=["*"])))


def test_a_person_sees_a_list(tmp_path: Path) -> None:
    done = listed(file(tmp_path, {"u": entry(), "bad": {"command": "/nonexistent/x"}}))
    assert "What echo does." in done.stdout and done.returncode == TROUBLE
    assert (
        "Server 'bad' is not available: its program ended with status 127; it said: /nonexistent/x" in done.stderr
    )
    as_json = json.loads(listed(file(tmp_path, {"u": entry()}), "--json").stdout)
    assert as_json["failed"] == {} and as_json["functions"][0]["name"] == "u.echo"


def test_tools_that_change_are_listed_again(opened: Open) -> None:
    servers = opened(u=entry())
    assert "u.grown" not in {it.name for it in servers}
    servers.call("u.grow")
    wait_until(lambda: "u.grown" in {it.name for it in servers}, "the new tool")
    assert said(servers.call("u.grown", {"text": "x"})) == "grown: x"


def test_the_stateless_era(opened: Open, tmp_path: Path) -> None:
    log = tmp_path / "log"
    servers = opened(u=entry("modern", env={"LOG": str(log)}))
    assert said(servers.call("u.echo", {"text": "x"})) == "echo: x"
    methods = [json.loads(line) for line in log.read_text().splitlines()]
    assert [it.get("method") for it in methods][:2] == ["initialize", "server/discover"]
    assert methods[-1]["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] == "2026-07-28"


# ---- calls ----


def test_results_come_as_they_are(opened: Open) -> None:
    servers = opened(u=entry())
    assert servers.call("u.sum") == {"content": [{"type": "text", "text": "3"}], "structuredContent": {"result": 3}}
    assert servers.call("u.fail")["isError"] is True
    with pytest.raises(MCPError, match="no, not that"):
        servers.call("u.refuse")
    with pytest.raises(LookupError, match="no such function"):
        servers.call("u.none")
    assert len(said(servers.call("u.long", {"n": 10_000_000}))) == 10_000_000


def test_calls_run_side_by_side_and_can_be_cancelled(opened: Open, tmp_path: Path) -> None:
    log = tmp_path / "log"
    path = file(tmp_path, {"u": entry(env={"LOG": str(log)})})
    with subprocess.Popen(
        [LAIR, "servers", "--serve", str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as it:
        assert it.stdin and it.stdout
        assert "functions" in json.loads(it.stdout.readline())
        for line in (
            {"id": 1, "function": "u.sleep", "arguments": {}},
            {"id": 2, "function": "u.echo", "arguments": {"text": "x"}},
        ):
            it.stdin.write(json.dumps(line).encode() + b"\n")
        it.stdin.flush()
        assert json.loads(it.stdout.readline()) == {"id": 1, "progress": 1}
        assert json.loads(it.stdout.readline())["id"] == 2
        it.stdin.write(b'{"cancel": 1}\nnonsense\n')
        it.stdin.flush()
        assert json.loads(it.stdout.readline())["error"] == "ValueError"
        wait_until(lambda: "notifications/cancelled" in log.read_text(), "the cancel")
        it.stdin.close()
    sent = [json.loads(line) for line in log.read_text().splitlines()]
    (call,) = [m for m in sent if m.get("params", {}).get("name") == "sleep"]
    (cancel,) = [m for m in sent if m.get("method") == "notifications/cancelled"]
    assert cancel["params"]["requestId"] == call["id"]


# ---- lives ----


def test_a_server_that_dies_is_started_again(opened: Open) -> None:
    servers = opened(u=entry())
    assert said(servers.call("u.echo")) == "echo: "
    with pytest.raises(
        ConnectionError,
        match=r"has ended: its program ended with status 7; it said: the end is near.*may have been done",
    ):
        servers.call("u.die")

    assert said(servers.call("u.echo", {"text": "x"})) == "echo: x"
    assert servers.failed == {}


def test_a_server_that_fails_again_and_again_is_left_alone_for_longer_and_longer(
    opened: Open, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    servers = opened(u=entry("dies", env={"LOG": str(log)}))
    assert servers.functions
    began = time.monotonic()
    for _ in range(12):
        with pytest.raises(ConnectionError):
            servers.call("u.echo")
    assert time.monotonic() - began < 20
    assert log.read_text().count('"initialize"') == 5


@pytest.mark.parametrize("how", ["close", "kill", "stubborn"])
def test_servers_end_with_their_owner(opened: Open, how: str) -> None:
    mark = f"mark-{os.getpid()}-{how}"
    servers = opened(u=entry(mark, *(["stubborn"] if how == "stubborn" else [])))
    assert servers.functions and processes(mark)
    if how == "kill":
        os.kill(servers._process.pid, signal.SIGKILL)
    servers.close()
    wait_until(lambda: not processes(mark), "the end of the server")


def test_what_a_server_has_started_ends_with_it(opened: Open, tmp_path: Path) -> None:
    mark = f"mark-{os.getpid()}-below"
    script = f"{sys.executable} {UPSTREAM} stubborn {mark} & exec {sys.executable} {UPSTREAM} {mark}"
    servers = opened(u={"command": "sh", "args": ["-c", script]})
    assert servers.functions
    servers.close()
    wait_until(lambda: len(processes(mark)) <= 1, "the end of the server")


def test_environment_and_directory(opened: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "hidden")
    monkeypatch.setenv("TOKEN", "given")
    servers = opened(
        u=entry("${TOKEN}", "${NONE:-default}", "$x{", env={"KEY": "a-${TOKEN}"}, cwd=str(tmp_path)),
        v=entry("${NOWHERE}"),
    )
    found = json.loads(said(servers.call("u.environment")))
    assert found["KEY"] == "a-given" and "SECRET" not in found and "TOKEN" not in found and "PATH" in found
    assert found["cwd"] == str(tmp_path) and found["argv"] == "given default $x{"
    assert servers.failed == {"v": "Server 'v' is not available: the environment has no NOWHERE"}


# ---- bad ones ----


@pytest.mark.parametrize(
    "mode, why",
    [
        ("ancient", "it speaks no version of the protocol that is known here"),
        ("endless", "its list of tools has no end"),
        ("circle", "its list of tools has no end"),
        ("many", "it has too many tools"),
        ("flood", "it has sent a message that is too long"),
    ],
)
def test_a_bad_server_fails_alone(opened: Open, mode: str, why: str) -> None:
    servers = opened(bad=entry(mode), good=entry())
    assert servers.failed == {"bad": f"Server 'bad' is not available: {why}"}
    assert said(servers.call("good.echo", {"text": "x"})) == "echo: x"


def test_lines_that_are_no_messages_are_left_out(opened: Open) -> None:
    servers = opened(u=entry("litter"))
    assert said(servers.call("u.echo", {"text": "x"})) == "echo: x"


def test_tools_that_make_no_sense_are_left_out(opened: Open) -> None:
    (only,) = opened(u=entry("odd"))
    assert (
        only.name == "u.good" and only.schema == {"type": "object", "additionalProperties": True} and not only.doc
    )


def test_more_schemas_than_a_cell_is_offered(opened: Open, daemon: Daemon, tmp_path: Path) -> None:
    """Those of the longest are left out, and all tools can be called."""
    path, servers = file(tmp_path, {"u": entry("fat"), "v": entry("fat")}), opened(u=entry("fat"), v=entry("fat"))
    schemas = {it.name: it.schema for it in servers}
    assert "properties" in schemas["v.echo"] and "title" not in schemas["u.fat0"] and "v.fat199" in schemas
    code = "tools.u.fat7(any='x'), tools.v.echo(text='y'), len(dir(tools.v)) > 200"
    result = daemon.lair("exec", "--servers", str(path), code)
    assert result.stdout == "('fat7: ', 'echo: y', True)\n", result.stderr
    with Session(connection=Connection(str(daemon.socket), start=False), functions=servers) as s:
        assert s.run(code).text == "('fat7: ', 'echo: y', True)"


def test_more_functions_than_a_cell_is_offered(opened: Open, daemon: Daemon, tmp_path: Path) -> None:
    """The servers that come first in the file have theirs, and it is told how many of another's are not there."""
    three = {"u": entry("fat"), "v": entry("fat"), "w": entry("fat")}
    path, servers = file(tmp_path, three), opened(**three)
    assert len(servers.functions) == 500 and servers.failed.keys() == {"w"}
    assert " functions are left out, for a cell is offered no more than 500" in servers.failed["w"]
    told = listed(path)
    assert servers.failed["w"] in told.stderr and told.returncode
    result = daemon.lair("exec", "--servers", str(path), "len(dir(tools.v)) > 200, tools.v.echo(text='y')")
    assert result.stdout == "(True, 'echo: y')\n" and servers.failed["w"] in result.stderr, result.stderr


@pytest.mark.parametrize(
    "content, why",
    [
        ("{", "servers.json:1:"),
        ("[]", 'expected {"mcpServers": {...}}'),
        ('{"mcpServers": {"a": {}}}', "a: expected either command or url"),
        ('{"mcpServers": {"a": {"command": "x", "url": "http://x"}}}', "a: expected either command or url"),
        ('{"mcpServers": {"a": {"command": 7}}}', "a: command: expected a string"),
        ('{"mcpServers": {"a": {"command": "x", "args": [1]}}}', "a: args: expected a list of strings"),
        ('{"mcpServers": {"a": {"command": "x", "env": {"A": 1}}}}', "a: env: expected an object of strings"),
        ('{"mcpServers": {"a": {"url": "file:///x"}}}', "a: url: expected http:// or https://"),
        ('{"mcpServers": {"a": {"type": "sse", "url": "http://x"}}}', "a: type sse is the transport of 2024"),
    ],
)
def test_a_wrong_file(tmp_path: Path, content: str, why: str) -> None:
    path = tmp_path / "servers.json"
    path.write_text(content)
    done = listed(path)
    assert done.returncode == USAGE and why in done.stderr
    with Servers(path, program=LAIR) as servers, pytest.raises(LairError) as caught:
        servers.functions  # noqa: B018
    assert why in str(caught.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    done = listed(tmp_path / "none.json")
    assert done.returncode == USAGE and "none.json: No such file or directory" in done.stderr


def test_threads_may_call(opened: Open) -> None:
    servers = opened(u=entry())
    seen: list[str] = []
    threads = [
        threading.Thread(target=lambda n=n: seen.append(said(servers.call("u.echo", {"text": str(n)}))))
        for n in range(20)
    ]
    for it in threads:
        it.start()
    for it in threads:
        it.join()
    assert sorted(seen) == sorted(f"echo: {n}" for n in range(20))


# ---- the command line ----

SETTINGS = {"profile default": {"checkpoint": "cell"}}


def test_a_cell_of_the_command_line(daemon: Daemon, tmp_path: Path) -> None:
    path = file(tmp_path, {"u": entry(), "bad": {"command": "/nonexistent/x"}})
    done = daemon.lair(
        "exec", "--servers", str(path), "[tools.u.sum(), (await mcp_u.echo(text='x'))['content'][0]['text']]"
    )
    assert done.stdout == "[3, 'echo: x']\n" and "Server 'bad' is not available" in done.stderr
    code = "tools.u.add(a=1), tools.u.sum()"
    both = daemon.lair("exec", "--servers", str(path), "--function", "u.add(a: int)=cat", code)
    assert both.stdout == "({'a': 1}, 3)\n"
    clash = daemon.lair("exec", "--servers", str(path), "--function", "u.echo(a: int)=cat", code)
    assert clash.returncode == USAGE and "a server has a function u.echo, too" in clash.stderr


def test_a_call_of_the_command_line_asks(daemon: Daemon, tmp_path: Path) -> None:
    path = str(file(tmp_path, {"u": entry()}))
    command = ["exec", "-s", "asks", "--servers", path, "tools.u.write(text='x')"]
    assert daemon.lair(*command[:-1], "--allow", "u.*", command[-1]).stdout == "'write: x'\n"
    done: list[str] = []
    asks = threading.Thread(target=lambda: done.append(daemon.lair(*command).stdout))
    asks.start()
    wait_until(lambda: daemon.lair_json("calls")["calls"], "the call that asks")
    daemon.lair("answer", "asks", "1", "--approve")
    asks.join()
    assert done == ["'write: x'\n"]


def test_a_cell_that_is_interrupted_cancels_its_calls(daemon: Daemon, tmp_path: Path) -> None:
    log = tmp_path / "log"
    path = file(tmp_path, {"u": entry(env={"LOG": str(log)})})
    done = daemon.lair(
        "exec", "--servers", str(path), "import asyncio\nawait asyncio.wait_for(tools.u.sleep.aio(), 0.5)"
    )
    assert "TimeoutError" in done.stderr and "notifications/cancelled" in log.read_text()


def test_a_repl(daemon: Daemon, tmp_path: Path) -> None:
    path = file(tmp_path, {"u": entry()})
    done = daemon.lair("repl", "--servers", str(path), input="tools.u.sum()\ntools.u.die()\ntools.u.sum() + 1\n")
    assert "3\n" in done.stdout and "4\n" in done.stdout and "has ended" in done.stderr

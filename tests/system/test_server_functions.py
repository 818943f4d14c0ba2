"""Tools of MCP servers in cells: as functions, and under the names of the bridge."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from daemon import BIN, Daemon
from lair import Connection, Result, Session
from lair.mcp import Servers

UPSTREAM = Path(__file__).parent / "upstream.py"
SETTINGS = {"profile default": {"checkpoint": "cell"}}


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    path = tmp_path_factory.mktemp("servers") / "servers.json"
    entries = {it: {"command": sys.executable, "args": [str(UPSTREAM)]} for it in ("u", "My Server")}
    path.write_text(json.dumps({"mcpServers": entries}))
    with Servers(path, program=str(BIN / "lair")) as it:
        yield it


@pytest.fixture
def session(daemon: Daemon, servers: Servers) -> Iterator[Session]:
    with Connection(str(daemon.socket), start=False) as to, Session(connection=to, functions=servers) as it:
        yield it


def value(result: Result) -> Any:
    assert result.ok, result.error
    return eval(str(result.text))


def test_values(session: Session) -> None:
    assert value(session.run("tools.u.echo(text='x')")) == "echo: x"
    assert value(session.run("tools.u.sum()")) == 3
    assert value(session.run("tools.u.record()")) == {"a": 1}
    assert value(session.run("await tools.my_server.echo.aio(text='x')")) == "echo: x"
    assert value(session.run("str(tools.u.deep())")) == str({"a": eval("[" * 40 + "1" + "]" * 40)})
    assert "sum(text: str = None, n: int = None) -> int" in str(session.run("print(tools.u.sum)").stdout)


def test_pictures(session: Session) -> None:
    shown = session.run("picture = tools.u.picture(); picture")
    assert shown.ok and shown.data and shown.data["image/png"].startswith(b"\x89PNG")  # type: ignore[arg-type]
    assert value(session.run("picture[:4], picture.mime")) == (b"\x89PNG", "image/png")
    assert value(session.run("[type(it).__name__ for it in tools.u.mixed()]")) == ["str", "Media", "dict"]


def test_errors(session: Session) -> None:
    failed = session.run("tools.u.fail()")
    assert failed.error and (failed.error.name, failed.error.value) == ("MCPError", "no such city")
    assert value(
        session.run("try: tools.u.refuse()\nexcept tools.FunctionError as error: text = str(error)\ntext")
    ) == ("no, not that")
    wrong = session.run("tools.u.echo(text=1)")
    assert wrong.error and wrong.error.name == "TypeError"
    dead = session.run("tools.u.die()")
    assert dead.error and dead.error.name == "ConnectionError" and "may have been done" in dead.error.value


# ---- the bridge ----


def test_proxies(session: Session) -> None:
    raw = {"content": [{"type": "text", "text": "3"}], "structuredContent": {"result": 3}}
    assert value(session.run("await mcp_u.sum()")) == raw
    assert value(session.run("(await mcp_my_server.echo_2(text='x'))['content'][0]['text']")) == "Echo: x"
    assert value(session.run("(await mcp_my_server.Echo(text=7))['content'][0]['text']")) == "Echo: 7"
    assert value(session.run("(await mcp_u.fail())['isError']")) is True
    assert (
        value(session.run("await mcp_servers['My Server'].sum() == await mcp_servers['my_server'].sum()")) is True
    )
    assert value(session.run("LOADED_MCP_SERVERS")) == ("u", "My Server")
    assert value(session.run("[it['name'] for it in await mcp_u.list_tools()][:2]")) == ["echo", "Echo"]
    assert (
        value(session.run("import asyncio\nlen(await asyncio.gather(*[mcp_u.echo(text='x') for _ in range(9)]))"))
        == 9
    )
    unknown = session.run("await mcp_u.nothing()")
    assert unknown.error and unknown.error.value == "Server 'u' has no tool 'nothing'"


def test_runtime(session: Session) -> None:
    assert session.run("from mcp import runtime").ok
    assert value(session.run("await runtime.list_servers() == runtime.list_servers_sync()")) is True
    assert (
        value(session.run("(await runtime.call_tool('u', 'echo', {'text': 'x'}))['content'][0]['text']"))
        == "echo: x"
    )
    assert value(session.run("runtime.list_tools_sync('u')[0]['inputSchema']['type']")) == "object"
    assert value(session.run("await runtime.list_tools('u') == runtime.list_tools_sync('u')")) is True
    doc = {
        "server": "My Server",
        "serverAlias": "my_server",
        "tool": "Echo",
        "toolAlias": "echo_2",
        "description": "What Echo does.",
    }
    assert value(session.run("runtime.query_tool_docs_sync('my_server', 'Echo')")) == [doc]
    full = value(session.run("await runtime.query_tool_docs('My Server', 'echo_2', detail='full')"))
    assert full[0].pop("inputSchema")["type"] == "object" and full == [doc]
    assert value(session.run("[it['tool'] for it in await runtime.search_tool_docs('my ECHO', limit=1)]")) == [
        "echo"
    ]
    assert value(session.run("len(runtime.search_tool_docs_sync('what', limit=100))")) == 20
    assert value(session.run("runtime.discovered_servers()")) == ("u", "My Server")
    assert value(session.run("runtime.discovered_servers(detailed=True)[1]['alias']")) == "my_server"
    assert value(session.run("runtime.describe_server('u')['name']")) == "u"
    assert value(session.run("[it['name'] for it in runtime.list_loaded_server_metadata()]")) == ["u", "My Server"]
    assert "My Server as mcp_my_server" in value(session.run("runtime.capability_summary()"))


def test_names_of_arguments_are_text(session: Session) -> None:
    wrong = session.run("from mcp import runtime\nawait runtime.call_tool('u', 'echo', {5: 'x'})")
    assert wrong.error and wrong.error.name == "TypeError"
    assert wrong.error.value.startswith("u.echo: the names of arguments are text")
    assert value(session.run("tools.u.echo(text='still')")) == "echo: still"


@pytest.mark.parametrize(
    "code, text",
    [
        ("await runtime.call_tool('x', 'y')", "Server 'x' is not available"),
        ("await runtime.list_tools('x')", "Server 'x' is not available"),
        ("await runtime.query_tool_docs('x')", "Server 'x' is not loaded"),
        ("runtime.describe_server('x')", "Unknown MCP server: x"),
    ],
)
def test_errors_of_the_runtime(session: Session, code: str, text: str) -> None:
    result = session.run(
        f"import mcp.runtime as runtime\ntry: {code}\nexcept runtime.MCPError as error: said = str(error)\nsaid"
    )
    assert value(result) == text


def test_modules(session: Session) -> None:
    assert (
        value(session.run("import mcp.servers.u as u\n(await u.echo(text='x'))['content'][0]['text']")) == "echo: x"
    )
    assert value(session.run("from mcp.servers import my_server\nlen(await my_server.list_tools()) > 9")) is True
    assert value(session.run("import mcp\nmcp.runtime.list_servers_sync()")) == ["u", "My Server"]
    missing = session.run("import mcp.servers.nothing")
    assert missing.error and missing.error.name == "ModuleNotFoundError"


def test_a_real_package_of_that_name_stays(session: Session) -> None:
    assert session.run("import os\nos.makedirs('mcp/server')\nopen('mcp/__init__.py', 'w').write('real = 1')").ok
    assert session.run("open('mcp/server/__init__.py', 'w').write('deep = 2')").ok
    assert session.run("import sys\nsys.path.insert(0, '.')").ok
    code = "import mcp, mcp.server, mcp.runtime, mcp.servers.u\n"
    assert value(session.run(f"{code}mcp.real, mcp.server.deep, mcp.runtime.list_servers_sync()")) == (
        1,
        2,
        ["u", "My Server"],
    )


def test_names_are_nobodys_variables(session: Session) -> None:
    assert session.run("mcp_u = 5").ok
    assert value(session.run("mcp_u, len(mcp_servers)")) == (5, 2)
    assert [it.name for it in session.vars()] in (["mcp_u"], ["mcp_u", "tools"])


def test_a_cell_without_servers(session: Session) -> None:
    assert session.run("import mcp.runtime as runtime").ok
    gone = session.run("await mcp_u.echo(text='x')", functions=[])
    assert gone.error and gone.error.value == "Server 'u' is not available"
    assert value(session.run("runtime.list_servers_sync(), len(mcp_servers)", functions=[])) == ([], 0)

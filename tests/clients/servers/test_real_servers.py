"""MCP servers as their makers ship them, from npm and the package index: their tools as functions of cells."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from daemon import BIN, Daemon, wait_until
from environments import pinned
from installing import npm_installed
from lair import Connection, Session
from lair.mcp import Servers

HERE = Path(__file__).parent
NPM = HERE.parent / "npm/servers"
Json = dict[str, Any]
Open = Callable[..., Session]


def of_npm(name: str, *arguments: str, **env: str) -> Json:
    made = npm_installed("the servers", NPM)
    return {"command": str(made / "node_modules/.bin" / name), "args": [*arguments], "env": env}


def of_pip(name: str, *arguments: str, lock: str = "mcp-servers") -> Json:
    return {"command": str(pinned(lock).with_name(name)), "args": [*arguments]}


@pytest.fixture
def opened(daemon: Daemon, tmp_path: Path) -> Iterator[Open]:
    """A session with the tools of such servers, none of which asks."""
    ends: list[Callable[[], None]] = []

    def open_session(**entries: Json) -> Session:
        path = tmp_path / "servers.json"
        path.write_text(json.dumps({"mcpServers": entries}))
        servers = Servers(path, allow=["*"], program=str(BIN / "lair"))
        ends.append(servers.close)
        assert servers.failed == {}
        connection = Connection(str(daemon.socket), start=False)
        ends.append(connection.close)
        return Session(connection=connection, functions=servers)

    yield open_session
    for end in reversed(ends):
        end()


def value(session: Session, code: str) -> Any:
    result = session.run(code)
    assert result.ok, result.error
    return eval(str(result.text))


def port_of_nobody() -> int:
    with socket.socket() as it:
        it.bind(("127.0.0.1", 0))
        return int(it.getsockname()[1])


def listens(port: int) -> bool:
    with socket.socket() as it:
        return it.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Callable[..., str]]:
    """A server over HTTP; its address."""
    every: list[subprocess.Popen[bytes]] = []

    def start(port: int, *command: str, **env: str) -> str:
        log = (tmp_path / f"{port}.log").open("wb")
        every.append(subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, **env}))
        wait_until(lambda: listens(port), "a server over HTTP", 30)
        return f"http://127.0.0.1:{port}/mcp"

    yield start
    for it in every:
        it.terminate()
        it.wait()


# ---- stdio ----


def test_filesystem(opened: Open, tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    s = opened(fs=of_npm("mcp-server-filesystem", str(tmp_path / "files")))
    path = str(tmp_path / "files/a.txt")
    assert "Success" in value(
        s, f"r = tools.fs.write_file(path={path!r}, content='tides')\nr if isinstance(r, str) else str(r)"
    )
    assert Path(path).read_text() == "tides"
    assert "tides" in str(value(s, f"tools.fs.read_text_file(path={path!r})"))
    assert "a.txt" in str(value(s, f"tools.fs.list_directory(path={str(tmp_path / 'files')!r})"))
    outside = s.run("tools.fs.read_text_file(path='/etc/passwd')")
    assert outside.error and outside.error.name == "MCPError" and "outside" in outside.error.value.lower()


def test_memory(opened: Open, tmp_path: Path) -> None:
    s = opened(memory=of_npm("mcp-server-memory", MEMORY_FILE_PATH=str(tmp_path / "memory.json")))
    entity = {"name": "Anna", "entityType": "person", "observations": ["likes tides"]}
    assert s.run(f"tools.memory.create_entities(entities=[{entity!r}])").ok
    assert value(s, "tools.memory.search_nodes(query='tides')['entities'][0]['name']") == "Anna"


def test_everything(opened: Open) -> None:
    s = opened(everything=of_npm("mcp-server-everything", "stdio"))
    assert value(s, "tools.everything.echo(message='hi')") == "Echo: hi"
    assert "5" in value(s, "tools.everything.get_sum(a=2, b=3)")
    shown = s.run("[it for it in tools.everything.get_tiny_image() if isinstance(it, bytes)][0]")
    assert shown.ok and shown.data and bytes(shown.data["image/png"])[1:4] == b"PNG"  # type: ignore[arg-type]
    assert "temperature" in value(s, "tools.everything.get_structured_content(location='Chicago')")
    assert "PATH" in value(s, "(await mcp_everything.get_env())['content'][0]['text']")
    assert "completed" in value(s, "tools.everything.trigger_long_running_operation(duration=0.2, steps=2)")
    assert (
        value(
            s,
            "import asyncio\nlen(await asyncio.gather(*[tools.everything.echo.aio(message='x') for _ in range(40)]))",
        )
        == 40
    )


def test_git(opened: Open, tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    git = ["git", "-C", str(repository), "-c", "user.name=A", "-c", "user.email=a@example.org"]
    subprocess.run(["git", "init", "-q", str(repository)], check=True)
    (repository / "a").write_text("a")
    subprocess.run([*git, "add", "a"], check=True)
    subprocess.run([*git, "commit", "-q", "-m", "the first"], check=True)
    s = opened(git=of_pip("mcp-server-git", "--repository", str(repository)))
    assert "the first" in str(value(s, f"str(tools.git.git_log(repo_path={str(repository)!r}))"))
    assert "clean" in str(value(s, f"str(tools.git.git_status(repo_path={str(repository)!r}))"))


def test_time(opened: Open) -> None:
    s = opened(time=of_pip("mcp-server-time", "--local-timezone", "UTC"))
    assert "Asia/Tokyo" in value(s, "str(tools.time.get_current_time(timezone='Asia/Tokyo'))")
    failed = s.run("tools.time.get_current_time(timezone='Nowhere')")
    assert failed.error and failed.error.name == "MCPError"


def test_fetch(opened: Open) -> None:
    class Page(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/plain")
            self.end_headers()
            self.wfile.write(b"the tides of today")

    with ThreadingHTTPServer(("127.0.0.1", 0), Page) as page:
        threading.Thread(target=page.serve_forever, args=(0.05,), daemon=True).start()
        s = opened(fetch=of_pip("mcp-server-fetch", "--ignore-robots-txt"))
        result = s.run(f"str(tools.fetch.fetch(url='http://127.0.0.1:{page.server_port}/'))")
        page.shutdown()
    # Some versions fetch nothing from this host: then they say so.
    assert "tides" in str(result.text) or (result.error and result.error.name == "MCPError"), result


def test_sqlite(opened: Open, tmp_path: Path) -> None:
    s = opened(db=of_pip("mcp-server-sqlite", "--db-path", str(tmp_path / "x.db"), lock="mcp-server-sqlite"))
    assert s.run("tools.db.create_table(query='create table t (a integer)')").ok
    assert s.run("for n in range(3): tools.db.write_query(query=f'insert into t values ({n})')").ok
    assert "2" in str(value(s, "str(tools.db.read_query(query='select max(a) from t'))"))


# ---- HTTP ----


def test_everything_over_http(opened: Open, started: Callable[..., str]) -> None:
    port = port_of_nobody()
    made = npm_installed("the servers", NPM)
    url = started(port, str(made / "node_modules/.bin/mcp-server-everything"), "streamableHttp", PORT=str(port))
    s = opened(everything={"url": url})
    assert value(s, "tools.everything.echo(message='hi')") == "Echo: hi"
    assert "completed" in value(s, "tools.everything.trigger_long_running_operation(duration=0.2, steps=2)")
    assert (
        value(
            s,
            "import asyncio\nlen(await asyncio.gather(*[tools.everything.echo.aio(message='x') for _ in range(40)]))",
        )
        == 40
    )


def test_fastmcp_over_http(opened: Open, started: Callable[..., str]) -> None:
    python, port = pinned("mcp-servers"), port_of_nobody()
    s = opened(made={"url": started(port, str(python), str(HERE / "fastmcp_server.py"), str(port))})
    assert value(s, "tools.made.add(a=2)") == 3
    assert value(s, "tools.made.write(text='x')") == "X"
    failed = s.run("tools.made.fail(why='no tides')")
    assert failed.error and failed.error.name == "MCPError" and "no tides" in failed.error.value
    shown = s.run("tools.made.picture()")
    assert shown.ok and shown.data and bytes(shown.data["image/png"])[1:4] == b"PNG"  # type: ignore[arg-type]
    assert "add(a: int, b: int = 1) -> int" in str(s.run("print(tools.made.add)").stdout)

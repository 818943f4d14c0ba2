"""Fixtures: a daemon for each module of tests, and a client of it for each test.

A module sets SETTINGS for its own sessions.conf. When a daemon ends, it must have left nothing behind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from daemon import BIN, SANITIZED, Daemon, Settings, become_subreaper
from lair import Client, Connection, LairError, Session
from mcp_server import McpServer
from terminal import Terminal

# Start, stop and time: CI runs them in the shipped build, too.
TWICE = (
    "test_daemon.py",
    "test_deadlines.py",
    "test_first_use.py",
    "test_groups.py",
    "test_numeric_threads.py",
    "test_ordinary_user.py",
)


def pytest_configure(config: pytest.Config) -> None:
    become_subreaper()


def pytest_sessionstart() -> None:
    missing = [name for name in ("laird", "lair", "lair-kernel") if not (BIN / name).exists()]
    if missing:
        pytest.exit(f"not built: {', '.join(missing)} in {BIN}; ./dev build", returncode=2)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A sanitizer keeps freed memory, so a test of memory measures nothing; and no process under it has an image."""
    for item in items:
        if item.path.name in TWICE:
            item.add_marker("twice")
        if SANITIZED and item.get_closest_marker("shipped"):
            item.add_marker(pytest.mark.skip(reason="the sanitized build has other memory, and no images"))


@pytest.fixture(scope="module")
def daemon(request: pytest.FixtureRequest) -> Iterator[Daemon]:
    settings: Settings = getattr(request.module, "SETTINGS", {})
    it = Daemon(settings)
    yield it
    it.end()


@pytest.fixture
def client(daemon: Daemon) -> Iterator[Client]:
    with Client(str(daemon.socket)) as it:
        yield it


@pytest.fixture
def connection(daemon: Daemon) -> Iterator[Connection]:
    with Connection(str(daemon.socket), start=False) as it:
        yield it


@pytest.fixture
def s(connection: Connection) -> Iterator[Session]:
    with Session(connection=connection) as it:
        yield it


def end(client: Client, session: str) -> None:
    """It may have ended by itself, and may do so at this moment."""
    try:
        client.shutdown(session)
    except LairError as error:
        if error.code != "no_session":
            raise


@pytest.fixture
def session(request: pytest.FixtureRequest, client: Client) -> Iterator[str]:
    """The id of a session of this test's own; it need not exist yet."""
    name = "test:" + request.node.name[:100].replace(" ", "_").replace("/", "_")
    yield name
    end(client, name)


@pytest.fixture
def opened(client: Client, session: str) -> str:
    client.open(session)
    return session


@pytest.fixture
def no_sessions_left(client: Client) -> Iterator[None]:
    """For tests that name sessions as they like."""
    yield
    for info in client.list():
        end(client, info.session)


@pytest.fixture
def terminal(daemon: Daemon) -> Iterator[Callable[..., Terminal]]:
    """Run the command line under a terminal."""
    opened: list[Terminal] = []

    def open_terminal(*arguments: str, colour: bool = False, env: dict[str, str] | None = None) -> Terminal:
        env = {**daemon.env, **(env or {}), "LAIR_SOCKET": str(daemon.socket)}
        env["XDG_STATE_HOME"] = str(daemon.directory / "state")
        for name in ("TMUX", "STY", "KITTY_WINDOW_ID"):
            env.setdefault(name, "")
        env.update({} if colour else {"NO_COLOR": "1"})
        opened.append(Terminal([str(BIN / "lair"), *arguments], env))
        return opened[-1]

    yield open_terminal
    for it in opened:
        it.close()


@pytest.fixture
def server(daemon: Daemon) -> Iterator[McpServer]:
    """lair mcp with all its tools, spoken to as the newest clients do."""
    with McpServer(daemon, "--tools", "full") as it:
        yield it
        assert it.end() == 0
        assert it.errors() == ""


@pytest.fixture
def legacy(daemon: Daemon) -> Iterator[McpServer]:
    """lair mcp, spoken to as the clients before them do."""
    with McpServer(daemon, modern=False) as it:
        it.greet()
        yield it
        assert it.end() == 0


@pytest.fixture
def start_daemon() -> Iterator[Callable[..., Daemon]]:
    """Start a daemon that the test may treat badly; it is removed afterwards."""
    started: list[Daemon] = []

    def start(*arguments: object, **keywords: object) -> Daemon:
        started.append(Daemon(*arguments, **keywords))  # type: ignore[arg-type]
        return started[-1]

    yield start
    for it in started:
        it.close()

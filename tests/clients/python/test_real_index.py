"""Packages from the operator's own index, by the ordinary uv, in a session that lives on: through undo, save and load, branches and
the death of the router."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from daemon import Daemon
from index import find_uv
from lair import Connection, Session
from test_router_death import kill_router

UV = find_uv()

pytestmark = pytest.mark.skipif(UV is None, reason="there is no uv, and pip cannot install it")

# What begins with a library, and what uses it; the last says that its pool of threads lives.
LIBRARIES = {
    "polars": (
        "import polars as pl; df = pl.DataFrame({'a': range(1000)})",
        "df.group_by(pl.col('a') % 10).len().height",
        "10",
    ),
    "scikit-learn": (
        "from sklearn.linear_model import LinearRegression as L; import numpy as np; X = np.arange(20.0).reshape(10, 2)",
        "round(float(L().fit(X, X[:, 0]).score(X, X[:, 0])), 3)",
        "1.0",
    ),
    "duckdb": (
        "import duckdb; c = duckdb.connect(); _ = c.sql('create table t as select range r from range(1000)')",
        "c.sql('select sum(r)::int from t').fetchall()",
        "[(499500,)]",
    ),
    "pyarrow": (
        "import pyarrow as pa, pyarrow.compute; t = pa.table({'a': list(range(100))})",
        "pa.compute.sum(t['a']).as_py()",
        "4950",
    ),
    "requests": (
        "import requests; made = requests.Request('GET', 'http://example.org/', params={'q': 1}).prepare()",
        "made.url",
        "'http://example.org/?q=1'",
    ),
    "rich": (
        "import rich.text; shown = rich.text.Text.from_markup('[bold]it[/bold]')",
        "shown.plain",
        "'it'",
    ),
}
# What there is keeps its version if nobody says otherwise, and Python's own may be older than these work with.
WITH = {"pyarrow": ["numpy>=2", "pandas>=2"]}
TOGETHER = ("polars", "duckdb", "requests", "rich")
# These hold what no pickle can.
UNSAVED = {"duckdb"}
WHOSE = ("UV_", "SSL_", "HTTP_", "HTTPS_", "ALL_", "NO_", "NETRC")


def operators() -> dict[str, str]:
    """How this machine reaches its index."""
    return {name: value for name, value in os.environ.items() if name.upper().startswith(WHOSE)}


def need(*names: str) -> None:
    """Skips the test if the index does not have them for anybody."""
    command = [str(UV), "pip", "compile", "-", "--quiet", "--only-binary", ":all:", "--python", "/usr/bin/python3"]
    asked = subprocess.run(command, input="\n".join(names), capture_output=True, text=True, timeout=60)
    if asked.returncode != 0:
        pytest.skip(f"{' '.join(names)} cannot be had from the index: {asked.stderr.strip()[-300:]}")


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    stores = Path(tempfile.mkdtemp(prefix="lair-real-"))
    stores.chmod(0o755)
    settings = {
        "daemon": {"packages_store": str(stores), "uv": str(UV)},
        "profile default": {"packages": "on", "checkpoint": "cell", "memory": "4G"},
    }
    daemon = Daemon(settings, env=operators())
    yield daemon
    daemon.close()
    shutil.rmtree(stores, ignore_errors=True)


@pytest.fixture
def connection(daemon: Daemon) -> Iterator[Connection]:
    with Connection(str(daemon.socket)) as connection:
        yield connection


def value(session: Session, code: str) -> str | None:
    result = session.run(code)
    assert result.ok, (code, result.error, result.stderr)
    return result.text


@pytest.mark.parametrize("name", LIBRARIES)
def test_in_a_session_that_lives(daemon: Daemon, connection: Connection, name: str) -> None:
    wanted = [name, *WITH.get(name, [])]
    need(*wanted)
    begin, use, expected = LIBRARIES[name]
    s = Session(name, connection=connection)
    value(s, "x = 41")
    assert f"{name} " in s.install(wanted).stdout
    value(s, begin)
    assert (value(s, use), value(s, "x + 1")) == (expected, "42")

    s.undo(4)
    assert s.run(begin).error is not None, "it is gone"
    assert value(s, f"%pip install -q {shlex.join(wanted)}\n{begin}\n{use}") == expected

    kill_router(daemon)
    assert (value(s, use), value(s, "x")) == (expected, "41")
    branch = s.branch(f"{name}-branch")
    assert value(branch, use) == expected
    branch.shutdown()

    value(s, "y = x + 2")
    if name in UNSAVED:
        value(s, "del c")
    s.save()
    s.shutdown()
    again = Session(name, connection=connection)
    again.load()
    assert value(again, f"{begin}\n{use}") == expected
    assert value(again, "y") == "43"
    again.shutdown()


def test_several_together(connection: Connection) -> None:
    need(*TOGETHER)
    s = Session("several", connection=connection)
    s.install(TOGETHER)
    for name in TOGETHER:
        begin, use, expected = LIBRARIES[name]
        assert value(s, f"{begin}\n{use}") == expected
    other = Session("another", connection=connection)
    assert other.run(LIBRARIES["rich"][0], packages=TOGETHER).ok, "what is there is not made again"
    for session in (s, other):
        session.shutdown()

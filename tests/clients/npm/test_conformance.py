"""`/mcp` of `lair serve` with the conformance suite of the Model Context Protocol, as it is and with the suite's fixtures. What
is to come of each scenario is said in the table of CONFORMANCE.md."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from daemon import Daemon
from http_server import Server, server_of
from index import Index, find_uv
from installing import npm_installed
from lair import Client
from mcp_fixtures import fixtures_of

HERE = Path(__file__).parent
DOCUMENT = HERE / "CONFORMANCE.md"
ERAS = ["2025-11-25", "2026-07-28"]
# In scenarios of which only a part is passed: what of them fails all the same.
FAILS_OF = {
    "server-stateless": {"sep-2575-server-rejects-undeclared-capability", "sep-2575-missing-capability-http-400"},
}
# What needs a fixture, too.
FAILS_WITHOUT_FIXTURES = {
    "server-stateless": {
        "sep-2575-http-server-no-independent-requests-on-stream",
        "sep-2575-server-no-log-without-loglevel",
    }
}


def table(era: str) -> dict[str, str]:
    """What CONFORMANCE.md says: passes, with fixtures, in part or no, by scenario."""
    said: dict[str, str] = {}
    for line in DOCUMENT.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| `") and len(cells) == 4 and cells[1 + ERAS.index(era)] in HOW:
            said.update(dict.fromkeys(re.findall(r"`([^`]+)`", cells[0]), cells[1 + ERAS.index(era)]))
    return said


HOW = ("passes", "with fixtures", "in part", "no")


@pytest.fixture(scope="module")
def index() -> Iterator[Index]:
    it = Index()
    yield it
    it.close()


@pytest.fixture(scope="module")
def daemon(index: Index) -> Iterator[Daemon]:
    """Where packages have to be approved of: that is what there is to ask a person."""
    uv = find_uv()
    if uv is None:
        pytest.skip("there is no uv, and pip cannot install it")
    store = Path(tempfile.mkdtemp(prefix="lair-packages-"))
    store.chmod(0o755)
    settings = {
        "daemon": {"packages_store": str(store), "uv": uv},
        "profile default": {"preload": "", "packages": "ask"},
    }
    it = Daemon(settings, env={"UV_INDEX_URL": index.url, "UV_DEFAULT_INDEX": index.url})
    yield it
    it.close()
    shutil.rmtree(store, ignore_errors=True)


@pytest.fixture
def client(daemon: Daemon) -> Iterator[Client]:
    with Client(str(daemon.socket)) as it:
        yield it


@pytest.fixture
def server(daemon: Daemon) -> Iterator[Server]:
    with server_of(daemon) as it:
        yield it


@pytest.fixture(scope="module")
def suite() -> list[str]:
    """It wants a newer node than the distributions have."""
    made = npm_installed("@modelcontextprotocol/conformance", HERE / "conformance")
    nodes = [*made.glob("node_modules/node-linux-*/bin/node"), shutil.which("node")]
    return [str(nodes[0]), str(made / "node_modules/@modelcontextprotocol/conformance/dist/index.js")]


def run(suite: list[str], url: str, era: str, place: Path) -> dict[str, dict[str, str]]:
    """The status of each check of each scenario."""
    command = ["server", "--url", url, "--requirements", era, "-o", str(place)]
    done = subprocess.run([*suite, *command], capture_output=True, text=True, timeout=58)
    found = {}
    for path in place.glob("*/checks.json"):
        name = path.parent.name.removeprefix("server-").partition("-20")[0]
        # The name of one scenario is that of another and a year.
        name = "json-schema-2020-12" if name == "json-schema" else name
        found[name] = {it["id"]: str(it["status"]) for it in json.loads(path.read_text())}
    assert len(found) > 30, done.stdout + done.stderr
    return found


def passed(checks: dict[str, str]) -> bool:
    return "SUCCESS" in checks.values() and not {"FAILURE", "WARNING"} & set(checks.values())


@pytest.mark.parametrize("fixtures", [False, True], ids=["as it is", "with fixtures"])
@pytest.mark.parametrize("era", ERAS)
def test_conformance(
    era: str, fixtures: bool, server: Server, client: Client, index: Index, suite: list[str], tmp_path: Path
) -> None:
    with ExitStack() as stack:
        url = stack.enter_context(fixtures_of(server, client, index)) if fixtures else f"{server.url}/mcp"
        found = run(suite, url, era, tmp_path)
    said = table(era)
    assert set(found) == set(said)
    good = {"passes", "with fixtures"} if fixtures else {"passes"}
    assert {name: checks for name, checks in found.items() if passed(checks) != (said[name] in good)} == {}
    for name, how in said.items():
        if how == "in part":
            more = set() if fixtures else FAILS_WITHOUT_FIXTURES.get(name, set())
            failed = {check for check, status in found[name].items() if status == "FAILURE"}
            assert failed == FAILS_OF[name] | more

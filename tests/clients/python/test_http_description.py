"""`lair serve` with programs from the package index: its description, what schemathesis makes of that, and its metrics."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from daemon import Daemon
from environments import pinned
from http_server import Server, server_of

EXAMPLES = "2"

# For more than a thousand requests, many of which run cells.
SECONDS = 300


@pytest.fixture
def server(daemon: Daemon) -> Iterator[Server]:
    with server_of(daemon) as it:
        yield it


@pytest.fixture(scope="module")
def python() -> Path:
    return pinned("http")


def test_the_description_is_kept(server: Server, python: Path, tmp_path: Path) -> None:
    """What is refused since the session is in another state is no fault: no schema can say that."""
    signal.alarm(SECONDS)
    description = tmp_path / "openapi.json"
    description.write_bytes(server.ask("GET", "/openapi.json").body)
    command = [
        str(python.parent / "schemathesis"),
        *("run", str(description), "--url", server.url, "--max-examples", EXAMPLES, "--phases", "coverage,fuzzing"),
        *("--exclude-checks", "positive_data_acceptance", "--request-timeout", "30", "--generation-deterministic"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stdout[-20000:] + done.stderr


def test_the_description_is_one(server: Server, python: Path, tmp_path: Path) -> None:
    description = tmp_path / "openapi.json"
    description.write_bytes(server.ask("GET", "/openapi.json").body)
    done = subprocess.run(
        [str(python.parent / "openapi-spec-validator"), str(description)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


PARSE = """
import json, sys
from prometheus_client.parser import text_string_to_metric_families
print(json.dumps({sample.name + str(sorted(sample.labels.items())): sample.value
    for family in text_string_to_metric_families(sys.stdin.read()) for sample in family.samples}))
"""


def test_metrics(server: Server, python: Path) -> None:
    assert server.exec("a", "1 / 0")["returncode"] == 1
    answer = server.ask("GET", "/metrics")
    assert answer.type.startswith("text/plain; version=0.0.4")
    done = subprocess.run([str(python), "-c", PARSE], input=answer.body.decode(), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["lair_sessions[]"] == 1
    assert told["lair_cells_total[]"] == 1
    assert told["lair_http_cells_total[('cause', 'error')]"] == 1
    assert told["lair_http_cell_seconds_count[]"] == 1
    assert told["lair_http_cell_seconds_bucket[('le', '+Inf')]"] == 1
    assert told["lair_own_sessions[('state', 'idle')]"] == 1

"""`/mcp` of `lair serve` with the conformance suite of the Model Context Protocol: all scenarios that ask for nothing that this server has not."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from daemon import Daemon
from http_server import Server, server_of
from installing import npm_installed

HERE = Path(__file__).parent
# Scenarios that need what is not there, by why. The suite wants servers to have tools, prompts and resources of its own for these.
NO_TOOL = "the suite's own tool is not there"
NO_RESOURCE = "the suite's own resource is not there"
NO_PROMPT = "there are no prompts"
NO_COMPLETION = "there is no completion of arguments"
NO_TASKS = "there are no tasks: the handle of a result is what a client comes back with"
NO_SUBSCRIPTION = "resources tell of no changes"
MISSING = {
    "2026-07-28": {
        "server-stateless": NO_TOOL,
        "completion-complete": NO_COMPLETION,
        "caching": NO_PROMPT,
        "json-schema-2020-12": NO_TOOL,
        "http-custom-header-server-validation": NO_TOOL,
        **dict.fromkeys(
            (
                "tools-call-simple-text",
                "tools-call-image",
                "tools-call-audio",
                "tools-call-embedded-resource",
                "tools-call-mixed-content",
                "tools-call-error",
                "tools-call-with-progress",
                *(
                    f"input-required-result-{it}"
                    for it in (
                        "basic-elicitation",
                        "basic-sampling",
                        "basic-list-roots",
                        "request-state",
                        "multiple-input-requests",
                        "multi-round",
                        "result-type",
                        "tampered-state",
                        "capability-check",
                    )
                ),
            ),
            NO_TOOL,
        ),
        "input-required-result-non-tool-request": NO_PROMPT,
        **dict.fromkeys(("resources-read-text", "resources-read-binary", "resources-templates-read"), NO_RESOURCE),
        **dict.fromkeys(
            (
                "prompts-list",
                "prompts-get-simple",
                "prompts-get-with-args",
                "prompts-get-embedded-resource",
                "prompts-get-with-image",
            ),
            NO_PROMPT,
        ),
        **dict.fromkeys(
            (
                f"tasks-{it}"
                for it in (
                    "lifecycle",
                    "capability-negotiation",
                    "wire-fields",
                    "request-state-removal",
                    "mrtr-input",
                    "request-headers",
                    "dispatch-and-envelope",
                    "required-task-error",
                    "mrtr-composition",
                )
            ),
            NO_TASKS,
        ),
    },
    "2025-11-25": {
        "completion-complete": NO_COMPLETION,
        "json-schema-2020-12": NO_TOOL,
        **dict.fromkeys(
            (
                "tools-call-simple-text",
                "tools-call-image",
                "tools-call-audio",
                "tools-call-embedded-resource",
                "tools-call-mixed-content",
                "tools-call-with-logging",
                "tools-call-error",
                "tools-call-with-progress",
                "tools-call-sampling",
                "tools-call-elicitation",
                "elicitation-sep1034-defaults",
                "elicitation-sep1330-enums",
            ),
            NO_TOOL,
        ),
        **dict.fromkeys(("resources-read-text", "resources-read-binary", "resources-templates-read"), NO_RESOURCE),
        **dict.fromkeys(("resources-subscribe", "resources-unsubscribe"), NO_SUBSCRIPTION),
        **dict.fromkeys(
            (
                "prompts-list",
                "prompts-get-simple",
                "prompts-get-with-args",
                "prompts-get-embedded-resource",
                "prompts-get-with-image",
            ),
            NO_PROMPT,
        ),
    },
}
# In scenarios of which a part needs nothing: what of them fails all the same.
PARTS = {
    "server-stateless": {
        "sep-2575-server-rejects-undeclared-capability",
        "sep-2575-missing-capability-http-400",
        "sep-2575-http-server-no-independent-requests-on-stream",
        "sep-2575-server-no-log-without-loglevel",
    },
    "caching": {"sep-2549-prompts-list-caching-hints"},
}


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


@pytest.mark.parametrize("revision", list(MISSING))
def test_conformance(revision: str, server: Server, suite: list[str], tmp_path: Path) -> None:
    command = ["server", "--url", f"{server.url}/mcp", "--requirements", revision, "-o", str(tmp_path)]
    done = subprocess.run([*suite, *command], capture_output=True, text=True, timeout=55)
    failed: dict[str, set[str]] = {}
    ran = set()
    for path in tmp_path.glob("*/checks.json"):
        name = path.parent.name.removeprefix("server-").partition("-20")[0]
        # The name of one scenario is that of another and a year.
        name = "json-schema-2020-12" if name == "json-schema" else name
        ran.add(name)
        bad = {it["id"] for it in json.loads(path.read_text()) if it["status"] == "FAILURE"}
        if bad:
            failed[name] = bad
    assert len(ran) > 30, done.stdout + done.stderr
    assert set(failed) == set(MISSING[revision])
    for name in failed.keys() & PARTS.keys():
        assert failed[name] == PARTS[name]

"""A second language, through every door: toy.c is a calculator that knows nothing of Lair but the seam."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest

from daemon import BIN, USAGE, Daemon, config_text
from doors import DOORS
from http_server import server_of
from kernels import kernel_of
from mcp_server import McpServer
from test_scenarios import Step, cell, do, of_steps, play

TOY = {"language": "toy", "checkpoint": "cell", "grace": "300ms"}


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    it = Daemon({"profile default": TOY, "profile science": {"language": "python"}})
    yield it
    it.end()


SCENARIOS: dict[str, list[Step]] = {
    "cells": [
        cell("x = 41", text=None),
        cell("x + 1", text="42", stdout=""),
        cell("y", error="ToyError", says="no such variable: y"),
        cell("x", text="41"),
    ],
    "undo and a branch": [
        cell("x = 1"),
        cell("x = 2"),
        do("undo", gives=1),
        cell("x", text="1"),
        do("branch", "twig"),
        cell("x = 5", of="twig"),
        cell("x", of="twig", text="5"),
        cell("x", text="1"),
    ],
    "a late cell": [
        cell("x = 41"),
        cell("x = 1\nspin", timeout=0.3, state="kept", says="0.3 s"),
        cell("x = 2\nhang", timeout=0.3, state="rolled_back"),
        cell("x", text="1"),
    ],
    "variables": [
        cell("x = 41"),
        cell("y = 1"),
        do("diff", gives={"y": "new"}),
        do("variables", gives={"x": "41", "y": "1"}),
    ],
    "saved": [cell("x = 41"), do("save", gives=["x"]), do("end"), cell("x + 1", text="42")],
}


@pytest.mark.parametrize(
    ("door", "name"),
    [
        (door, name)
        for name, it in SCENARIOS.items()
        for door, kind in DOORS.items()
        if not of_steps(it) & kind.cannot.keys()
    ],
)
def test_scenario(daemon: Daemon, door: str, name: str) -> None:
    play(daemon, door, f"{door}-{name}".replace(" ", "_"), SCENARIOS[name])


def test_the_output_and_the_table_of_variables(daemon: Daemon, session: str) -> None:
    assert daemon.lair("exec", "-s", session, "x = 41\nprint x\nx + 1").stdout == "41\n42\n"
    table = daemon.lair("vars", session).stdout
    assert "x " in table and "number" in table and "41" in table


def test_every_answer_names_the_language(daemon: Daemon, session: str) -> None:
    lair = daemon.lair_json
    assert lair("exec", "-s", session, "1")["language"] == "toy"
    assert "language" not in lair("exec", "-s", f"{session}.p", "-p", "science", "1")
    told = {it["session"]: it for it in lair("ls")["sessions"]}
    toy, python = told[session], told[f"{session}.p"]
    assert (toy["language"], toy["version"], toy["python"]) == ("toy", "1.0", None)
    assert python["language"] == "python" and python["python"] == python["version"]
    assert "default (toy)" in daemon.lair("ls").stdout
    assert "language    toy 1.0\n" in daemon.lair("info", session).stdout
    assert "audit" in python["guards"] and "audit" not in toy["guards"]
    assert "languages: python, toy" in daemon.lair("doctor").stdout


@pytest.mark.parametrize(
    ("flags", "begins"),
    [
        ((), "Runs toy in sessions"),
        (("-p", "science"), "Runs Python in"),
        (("-S", "/nowhere/s"), "Runs code in sessions"),
    ],
)
def test_mcp_names_the_language_of_its_profile(daemon: Daemon, flags: tuple[str, ...], begins: str) -> None:
    with McpServer(daemon, *flags) as server:
        assert server.request("server/discover")["instructions"].startswith(begins)


def test_what_else_names_the_language(daemon: Daemon, opened: str) -> None:
    with server_of(daemon) as server:
        assert server.ask("GET", f"/v1/sessions/{opened}").json()["language"] == "toy"
    with McpServer(daemon, "--instructions") as mcp:
        said = mcp.request("server/discover")["instructions"]
        assert said.startswith("Runs toy in sessions") and "The code is toy, not Python" in said
    with kernel_of(daemon) as kernel:
        told = kernel.client().request("kernel_info_request", {})["language_info"]
        assert (told["name"], told["version"]) == ("toy", "1.0")


def test_an_unknown_language_is_refused_with_those_there_are(daemon: Daemon) -> None:
    conf = daemon.directory / "other.conf"
    for word in ("cobol", "../lair", "Python"):
        conf.write_text(config_text({"profile other": {"language": word}}))
        done = subprocess.run([BIN / "laird", "-n", "-c", conf], capture_output=True, text=True)
        assert done.returncode == USAGE and f"language = {word}" in done.stderr
        assert done.stderr.rstrip().endswith("one that is installed: python, toy")

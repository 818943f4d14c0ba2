"""The page at /: what it is made of, and what its policy lets it do."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from daemon import ROOT, Daemon
from http_server import Server, server_of

FILES = ROOT / "client/serve/dashboard"
LARGEST = 250_000


@pytest.fixture(scope="module")
def server(daemon: Daemon) -> Iterator[Server]:
    with server_of(daemon) as it:
        yield it


def policy(server: Server, path: str) -> dict[str, str]:
    told = server.ask("GET", path).headers["Content-Security-Policy"]
    return {name: value for name, _, value in (part.strip().partition(" ") for part in told.split(";"))}


def served(path: Path) -> str:
    return "/" if path.name == "index.html" else f"/dashboard/{path.name}"


def test_every_file_is_served_as_it_is(server: Server) -> None:
    sizes = 0
    for path in [path for path in FILES.rglob("*") if path.is_file()]:
        at = "/dashboard/uplot.LICENSE" if path.name == "LICENSE" else served(path)
        answer = server.ask("GET", at)
        assert (answer.status, answer.body) == (200, path.read_bytes()), at
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Content-Security-Policy"]
        sizes += len(answer.body)
    assert sizes < LARGEST


def test_the_page_runs_only_its_own_scripts(server: Server) -> None:
    it = policy(server, "/")
    assert it["default-src"] == "'none'"
    assert it["script-src"] == it["style-src"] == it["connect-src"] == it["frame-src"] == "'self'"
    assert it["img-src"] == "'self' data:"
    assert it["base-uri"] == it["form-action"] == it["frame-ancestors"] == "'none'"
    assert it["require-trusted-types-for"] == "'script'"


def test_the_frame_of_an_output_has_no_origin(server: Server) -> None:
    it = policy(server, "/dashboard/frame.html")
    assert it["sandbox"] == "allow-scripts"
    assert it["default-src"] == "'none'"
    assert it["script-src"] == "'self'"
    assert "connect-src" not in it
    assert it["img-src"] == it["font-src"] == "data:"


def test_it_loads_nothing_from_elsewhere() -> None:
    """Names of other hosts stand only in comments, licences and names of XML."""
    for path in FILES.iterdir():
        if not path.is_file():
            continue
        text = path.read_text()
        assert not re.findall(r"https?://(?!www\.w3\.org/)", text), path.name
        if path.suffix == ".html":
            assert not re.findall(r"<script>|<style|\son\w+=|style=", text), path.name
            for name in re.findall(r'(?:src|href)="(/[^"]*)"', text):
                assert (FILES / Path(name).name).exists() or Path(name).stem == "uplot", name
        if path.suffix == ".js":
            assert not re.findall(r"innerHTML|outerHTML|insertAdjacent|document\.write|\beval\b", text), path.name


@pytest.mark.parametrize(
    "path", ["/dashboard/", "/dashboard/nothing.js", "/dashboard/..%2Fapp.js", "/dashboard/uplot/uplot.js"]
)
def test_what_is_not_there(server: Server, path: str) -> None:
    assert server.ask("GET", path).problem() == (404, "not_found")


def test_a_page_needs_no_token_and_only_get(server: Server) -> None:
    assert server.ask("HEAD", "/").status == 200
    assert server.ask("POST", "/", {}).problem() == (405, "bad_method")


def test_what_is_not_seen_is_that_of_the_terminal(server: Server) -> None:
    """The page takes its set of characters from the program, which has one for both."""
    answer = server.ask("GET", "/dashboard/unseen.js")
    (found,) = re.findall(r"^export const UNSEEN = /\[(.*)\]/gu;$", answer.body.decode())
    unseen = re.compile(f"[{found}]")
    assert all(
        unseen.match(it) for it in "\0\x1b\x7f\x9f\u00ad\u061c\u200b\u200f\u202e\u2066\u2069\ufe0f\ufeff\ufffb"
    )
    assert not any(unseen.match(it) for it in " ~\u00a0\u00e9\u2009\u2010\u2027\u3163\ufffd\U0001f600")
    assert 'from "./unseen.js"' in (FILES / "dom.js").read_text()

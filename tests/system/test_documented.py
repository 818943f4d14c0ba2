"""What exists is documented, and what is documented exists: settings, verbs, flags, requests over HTTP and figures."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from daemon import BIN, ROOT, Daemon
from http_server import Server, server_of

MAN = ROOT / "docs/man"
VERB = re.compile(r"^  ([a-z][a-z-]*) +\S", re.MULTILINE)
# A flag of a verb's help: its letter, its name.
FLAG = re.compile(r"^  -(\S), --([a-z-]+)", re.MULTILINE)
# These say how lair itself works, in lair(1) below the flags of single verbs.
EVERY = {"timeout", "json", "socket", "config", "no-start", "help", "version"}


def said(program: str, *arguments: str) -> str:
    return subprocess.run([BIN / program, *arguments], capture_output=True, text=True, check=True).stdout


def page(name: str) -> str:
    """A manual page's source, without the escapes and fonts in it."""
    bare = re.sub(r"\\f.|\\c|\"", "", (MAN / name).read_text().replace("\\-", "-"))
    return re.sub(" +", " ", bare)


def settings() -> set[str]:
    return set(re.findall(r"^(\w+) =", said("laird", "-n", "-c", str(ROOT / "sessions.conf")), re.MULTILINE))


def verbs() -> list[str]:
    return VERB.findall(said("lair", "--help"))


def flags(verb: str) -> list[tuple[str, str]]:
    return FLAG.findall(said("lair", verb, "--help"))


def test_settings() -> None:
    there = settings()
    assert len(there) > 80
    assert set(re.findall(r"^\.TP\n\.B (\w+)$", page("sessions.conf.5"), re.MULTILINE)) - {"hidden"} == there
    assert set(re.findall(r"^(\w+) =", (ROOT / "sessions.conf").read_text(), re.MULTILINE)) == there


def test_settings_of_the_start() -> None:
    """Those that a reload leaves as they are."""
    row = re.compile(r'KEY\("(\w+)"(?:(?!KEY\().)*?\.at_start', re.DOTALL)
    there = set(row.findall((ROOT / "daemon/config/keys.c").read_text()))
    told = re.search(r"^\.BR (socket , .*)$\nare read only when", page("laird.8"), re.MULTILINE)
    assert told and set(re.findall(r"\w+", told[1])) - {"and"} == there
    told = re.search(
        r"keep their settings; (.*?)\n*change only when", (ROOT / "sessions.conf").read_text(), re.DOTALL
    )
    assert told and set(re.findall(r"\w+", told[1])) - {"and"} == there


def test_verbs() -> None:
    text = page("lair.1")
    described = text[text.index(".SH VERBS") : text.index(".SH FLAGS")]
    titles = " ".join(re.findall(r"^\.TP\n\.\w+ (.*)$", described, re.MULTILINE))
    assert [verb for verb in verbs() if not re.search(rf"(?<![\w-]){verb}(?![\w-])", titles)] == []


def test_a_letter_stands_for_one_flag() -> None:
    for verb in verbs():
        letters = [letter for letter, _ in flags(verb)]
        assert sorted(set(letters)) == sorted(letters), verb


def test_flags() -> None:
    """lair(1) has each flag with its letter, and names the verbs that take it."""
    text = page("lair.1")
    entries = text[text.index(".SH FLAGS") : text.index(".SH FUNCTIONS")].split(".TP\n")[1:]
    wrong = []
    for verb in verbs():
        for letter, name in flags(verb):
            title = re.compile(rf"^.*-{letter} , --{name}(?![\w-])")
            found = [entry for entry in entries if title.match(entry)]
            found = [it for it in found if name in EVERY or re.search(rf"[( ]{verb} [,)]", it.split("\n")[1])]
            wrong += [] if found else [f"{verb} -{letter} --{name}"]
    assert wrong == []


def spans(path: Path) -> Iterator[str]:
    """The commands in a document: what is between backticks, and lines of its blocks."""
    text = path.read_text()
    yield from re.findall(r"`((?:[A-Z_]+=\S+ )*lair [^`\n]*)`", text)
    for block in re.findall(r"^```\w*\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        yield from re.findall(r"^(?:\$ )?(lair .*)$", block, re.MULTILINE)


@pytest.mark.parametrize(
    "path", [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))], ids=lambda it: it.name
)
def test_commands(path: Path) -> None:
    """Each `lair VERB --flag` of a document is one."""
    there = {verb: {name for _, name in flags(verb)} for verb in verbs()}
    for span in spans(path):
        words = span.split("#")[0].split()
        verb = words[words.index("lair") + 1]
        if not re.fullmatch("[a-z][a-z-]*", verb):
            continue
        assert verb in there, span
        assert {it.partition("=")[0][2:] for it in words if re.match("--[a-z]", it)} <= there[verb], span


def heading(text: str) -> str:
    """The name by which a link finds it."""
    return re.sub(r"[^\w\- ]", "", text.strip().lower()).replace(" ", "-")


def test_links() -> None:
    """Documents and headings that a document points at are there."""
    documents = [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "proto").glob("*.md")]
    texts = {it: re.sub(r"^```.*?^```", "", it.read_text(), flags=re.DOTALL | re.MULTILINE) for it in documents}
    headings = {
        it: {heading(line) for line in re.findall(r"^#+ (.*)$", text, re.MULTILINE)} for it, text in texts.items()
    }
    lost = []
    for document, text in texts.items():
        for link in re.findall(r"\]\((?!https?:)([^)\s]+)\)", text):
            path, _, anchor = link.partition("#")
            target = (document.parent / path).resolve() if path else document
            if not target.exists() or (anchor and anchor not in headings[target]):
                lost.append(f"{document.name}: {link}")
    assert lost == []


@pytest.fixture
def server(daemon: Daemon) -> Iterator[Server]:
    with server_of(daemon) as it:
        yield it


def test_requests_and_figures(server: Server) -> None:
    text = (ROOT / "docs/HTTP.md").read_text()
    spans_of_it = {it.split("?")[0] for it in re.findall(r"`(?:[A-Z]+ )?(/[^`]*)`", text)}
    paths = set(server.ask("GET", "/openapi.json").json()["paths"])
    assert {it for it in paths if not {it, it.removeprefix("/v1/sessions/{id}")} & (spans_of_it | {""})} == set()
    shown = server.ask("GET", "/metrics").body.decode()
    figures = set(re.findall(r"^# TYPE (\w+)", shown, re.MULTILINE))
    assert set(re.findall(r"`(lair_\w+)[{`]", text)) == figures
    assert {
        it for it in re.findall(r"lair_[a-z_]+", (ROOT / "examples/grafana.json").read_text()) if it not in shown
    } == set()

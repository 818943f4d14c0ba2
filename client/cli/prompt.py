"""The reader of lair repl: it edits cells at a terminal, and lair runs them. Each message is an array of JSON on a line
of its own: lair asks for a cell, for silence while it writes, or whether lines from a pipe are a whole cell.

Where prompt_toolkit is installed, editor.py edits them; else they are read line by line, as Python's own prompt does."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

INDENT = 4
HISTORY_MAX = 1 << 20  # bytes; of a longer file the second half is kept
LEAVE = ("exit", "quit")
PACKAGE = "python3-prompt-toolkit"
GAIN = "it has colours, suggestions and editing of blocks"

# ---- where a cell ends ----

_TOKEN = re.compile(
    r"""(?P<newline>\n)|(?P<blank>[ \t\f\r]+|\\(?=[^\n]))|(?P<comment>\#[^\n]*)|(?P<joined>\\(?:\n|\Z))
    |(?P<triple>(?P<mark>\"{3}|'{3})(?:\\[\s\S]|(?!(?P=mark))[\s\S])*(?P<close>(?P=mark))?)
    |(?P<string>(?P<quote>["'])(?:\\[\s\S]|(?!(?P=quote))[^\n\\])*(?P=quote)?)|(?P<other>[\s\S])""",
    re.VERBOSE,
)
_QUESTION = re.compile(r"[\w.]+\?{1,2}\s*")


class Scan:
    """What is open at the end of a text."""

    def __init__(self, text: str) -> None:
        self.depth = 0  # of brackets
        self.in_string = self.continued = False
        self.block = self.opened = False  # a line has begun a block; the last that is not empty has
        self.last_empty = line_empty = True
        self.first = self.last = ""  # of the logical line
        for match in _TOKEN.finditer(text):
            kind, token = match.lastgroup, match.group()
            self.last_empty = line_empty
            self.continued = kind == "joined"
            if kind == "newline":
                line_empty |= self.depth == 0
                if self.depth == 0:
                    self.end_line()
            elif kind not in ("blank", "joined"):
                line_empty = False
                if kind != "comment":
                    self.see(token, match["mark"] is not None and match["close"] is None)
        if not text.endswith("\n"):
            self.last_empty = line_empty

    def see(self, token: str, open_string: bool) -> None:
        self.first = self.first or token[0]
        self.last = token[0]
        self.in_string |= open_string
        if token in "([{":
            self.depth += 1
        elif token in ")]}" and self.depth:
            self.depth -= 1

    def end_line(self) -> None:
        if self.first:
            self.opened = self.last == ":" or self.first == "@"
            self.block |= self.opened
        self.first = self.last = ""


def is_command(text: str) -> bool:
    """A line for lair or for IPython, which is none of Python."""
    text = text.lstrip(" \t")
    return text[:1] in ("%", "!", "?") and text[:2] != "%%" or _QUESTION.fullmatch(text) is not None


def is_complete(text: str, whole: bool) -> bool:
    """Whether whole lines can be run. An empty line ends a block, unless it was written elsewhere as a whole."""
    if is_command(text):
        return True
    if text.startswith("%%"):
        body = text.partition("\n")[2]
        return bool(body) and (whole or text[-2] == "\n")
    scan = Scan(text)
    scan.end_line()
    if scan.in_string or scan.continued or scan.depth:
        return False
    return not scan.block or scan.last_empty or (whole and not scan.opened)


def indent_after(text: str) -> int:
    """How many blanks the line after these whole lines should begin with."""
    scan = Scan(text)
    line = text.rstrip(" \t\r\n").rpartition("\n")[2]
    if scan.in_string or not line:
        return 0
    indent = len(line) - len(line.lstrip(" "))
    line = line[indent:]
    if (scan.opened and line[0] != "@") or line[-1] in "([{":
        return indent + INDENT
    leaves = re.match(r"(return|pass|break|continue|raise)([ (;#]|$)", line)
    return max(indent - INDENT, 0) if leaves and scan.depth == 0 else indent


class Gatherer:
    """Lines that become cells."""

    def __init__(self) -> None:
        self.text = ""

    def add(self, line: str) -> str | None:
        self.text += line + "\n"
        if not self.text.strip(" \t\r\n"):
            self.text = ""
        if not self.text or not is_complete(self.text, False):
            return None
        text, self.text = self.text, ""
        return text


# ---- the history ----


def history_path() -> str | None:
    """One file for all sessions, the user's alone."""
    state = os.environ.get("XDG_STATE_HOME", "")
    home = os.environ.get("HOME", "")
    if not state.startswith("/"):
        if not home.startswith("/"):
            return None
        state = f"{home}/.local/state"
    path = Path(state, "lair", "history")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        _history_renew(path)
    except OSError:
        return None
    return str(path)


def _history_renew(path: Path) -> None:
    """Cut a long one, and take over that of libedit, which was here before."""
    text = path.read_text(errors="replace") if path.stat().st_size else ""
    if text.startswith("_HiStOrY_V2_\n"):
        lines = [re.sub(r"\\([0-7]{3})", lambda m: chr(int(m[1], 8)), it) for it in text.split("\n")[1:] if it]
        cells = [it.encode("latin-1", "replace").decode(errors="replace") for it in lines]
        text = "".join("\n# \n" + "".join(f"+{line}\n" for line in cell.split("\n")) for cell in cells)
    elif len(text) > HISTORY_MAX:
        text = text[text.find("\n# ", len(text) // 2) :]
    else:
        return
    path.write_text(text)


# ---- at a terminal ----


def wants_vi() -> bool:
    """What readline and libedit read."""
    for name, sign in ((".inputrc", r"^\s*set\s+editing-mode\s+vi\b"), (".editrc", r"^\s*bind\s+-v\b")):
        with contextlib.suppress(OSError):
            if re.search(sign, Path("~", name).expanduser().read_text(errors="replace"), re.MULTILINE):
                return True
    return False


# ---- line by line ----


class Link:
    """The socket, for those who wait for one thing at a time."""

    def __init__(self, link: socket.socket) -> None:
        self.link = link
        self.lines = link.makefile("r", encoding="utf-8")

    def send(self, *message: object) -> None:
        self.link.sendall(json.dumps(message).encode() + b"\n")

    def hear(self, *wanted: str) -> list[Any]:
        """The next message of these kinds; empty: lair has gone."""
        for line in self.lines:
            message: list[Any] = json.loads(line)
            if message[0] in wanted:
                return message
        return []


def tell_complete(link: Link) -> None:
    """lair reads a pipe, and asks of each line whether a cell ends with it."""
    gatherer = Gatherer()
    while message := link.hear("line"):
        link.send("cell" if gatherer.add(message[1]) else "more")


def prompt_plain(link: Link) -> None:
    try:
        import readline
    except ImportError:
        pass
    else:
        found: list[str] = []

        def complete(word: str, n: int) -> str | None:
            if n == 0:
                before = readline.get_line_buffer()[: readline.get_endidx()]
                found.clear()
                link.send("complete", before)
                _, typed, texts = link.hear("matches") or ("", 0, [])
                found.extend(word[: len(word) - typed] + text for text in texts)
            return found[n] if n < len(found) else None

        readline.set_completer(complete)
        readline.parse_and_bind("tab: complete")
    while link.hear("read"):
        text = read_plain()
        link.send(*(("end",) if text is None else ("cell", text, False)))


def read_plain() -> str | None:
    gatherer = Gatherer()
    while True:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            line = input("... " if gatherer.text else ">>> ")
        except KeyboardInterrupt:
            gatherer = Gatherer()
            print()
            continue
        except EOFError:
            return None
        finally:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        if not gatherer.text and line.strip() in LEAVE:
            return None
        if text := gatherer.add(line):
            return text


def other_python() -> str | None:
    """A Python of this user's that may have what the system's has not."""
    found = shutil.which("python3")
    here = os.path.realpath(sys.executable)
    return found if found and os.path.realpath(found) != here and "LAIR_PROMPT" not in os.environ else None


def module(name: str, source: str) -> ModuleType:
    made = sys.modules[name] = ModuleType(name)
    exec(compile(source, f"{name}.py", "exec"), made.__dict__)
    return made


def main(editor: str, told: str) -> None:
    """`editor`: the source of the part that edits cells; `told`: options, in JSON."""
    options = json.loads(told)
    link = socket.socket(fileno=int(options["fd"]))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # it is lair's, but while a line is read
    if not options["terminal"]:
        tell_complete(Link(link))
        return
    try:
        import prompt_toolkit  # noqa: F401
    except ImportError:
        if (python := other_python()) and hasattr(sys, "orig_argv"):
            os.execve(python, [python, *sys.orig_argv[1:]], {**os.environ, "LAIR_PROMPT": "1"})
        print(f"lair: a plain prompt: with {PACKAGE} (apt install {PACKAGE}) {GAIN}", file=sys.stderr)
        plain = Link(link)
        plain.send("plain")
        prompt_plain(plain)
    else:
        module("editor", editor).run(link, options)

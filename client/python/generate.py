"""Writes lair/messages.py from the tables of proto/message.h, and lair/causes.py from proto/causes.h.

Run it when those have changed. tests/system/test_codec.py finds what has not been written anew.
"""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CLIENTS = ROOT / "client/python/lair/messages.py"
CAUSES = ROOT / "client/python/lair/causes.py"
# Where the messages of clients end in the header.
BORDER = "/* ---- router to template"

KINDS = {"FLAG": "Flag", "UINT": "Uint", "INT": "Int", "REAL": "Real", "STR": "Str", "BIN": "Bin", "RAW": "Raw"}
DEFAULTS = {"FLAG": "Flag = False", "UINT": "Uint = 0", "INT": "Int = 0", "RAW": "Raw = None"}
# Classes that are not called like their tables.
NAMES = {
    "list_request": "ListSessions",
    "empty_reply": "Reply",
    "completion_match": "Match",
    "variable_record": "Variable",
    "blocked_act": "Blocked",
    "ended_record": "Ended",
    "place_record": "Place",
    "warden_message": "MakeWarden",
    "task_report": "Report",
    "saved_state": "Saved",
}
REQUEST = "class Request(Message):\n    id: Uint\n"
EVENTS = """

# What may come before the final message of an exec, by its type.
Event = {}
EVENTS: dict[str, type[Event]] = {{event.TYPE: event for event in get_args(Event)}}
"""

_FIELDS = re.compile(r"(?:/\*((?:(?!\*/).)*)\*/\n)?#define (\w+)\(F, m\)(.*?[^\\])\n", re.DOTALL)
_ROW = re.compile(r"F\(m, (\w+), (\w+), (\w+)\)|(\w+)\(F, m\)")
_MESSAGE = re.compile(r'WIRE_MESSAGE\((\w+),\s+"(\w+)",\s+(\w+),\s+(\w+)\);')


def class_name(name: str) -> str:
    """The class for a table, by the name of the table."""
    plain = name.removesuffix("_request").removesuffix("_message")
    return NAMES.get(name) or "".join(part.capitalize() for part in plain.split("_"))


class Header:
    def __init__(self, text: str) -> None:
        self.rows: dict[str, list[tuple[str, str, str]]] = {"WIRE_NOTHING": []}
        self.comments: dict[str, str] = {"WIRE_NOTHING": ""}
        for comment, fields, body in _FIELDS.findall(text):
            self.comments[fields] = " ".join(comment.replace("\n *", " ").split())
            self.rows[fields] = []
            for kind, name, need, others in _ROW.findall(body):
                self.rows[fields] += self.rows[others] if others else [(kind, name, need)]

    def message(self, name: str, type: str, first: str, fields: str) -> str:
        """The class for a table."""
        base = "Message"
        if name.endswith("_request"):
            base = "Request"
        elif type == "reply" and first == "ID" and name != "empty_reply":
            base = "Reply"
        lines = [f"class {class_name(name)}({base}):"]
        if self.comments[fields]:
            lines += [*textwrap.wrap(f'"""{self.comments[fields]}"""', 112), ""]
        if base != "Reply":
            lines.append(f'TYPE = "{type}"')
        if base == "Message" and first != "NO_ID":
            lines.append("id: Uint" if first == "ID" else "id: Uint = 0")
        for kind, field, need in self.rows[fields]:
            absent = DEFAULTS.get(kind, f"{KINDS[kind]} | None = None")
            if kind == "REAL" and name.endswith("_event"):
                absent = "Real = 0.0"
            lines.append(f"{field}: {KINDS[kind] if need == 'REQUIRED' else absent}")
        return "\n    ".join(lines).replace("    \n", "\n") + "\n"


def module(says: str, codec: str, parts: list[str], tail: str = "") -> str:
    text = "\n\n\n".join([part.rstrip() for part in parts])
    kinds = [kind for kind in ("Message", *KINDS.values()) if re.search(rf"[:(] ?{kind}\b", text)]
    typing = "from typing import get_args\n\n" if tail else ""
    return f'''"""{says}

Made by client/python/generate.py from proto/message.h. PROTOCOL.md says what the fields mean.
"""

from __future__ import annotations

{typing}from {codec} import {", ".join(sorted(kinds))}


{text}
{tail}'''


_TOLD = re.compile(r"\bX\(([A-Z_]+), ([^()]*(?:\(%s\)[^()]*)*)\)")
_CELL = re.compile(r'"[^"]*"|\w+')
_WORDS = {"NULL": "None", "true": "True", "false": "False"}
_CAUSES = """class Cause(NamedTuple):
    news: bool
    cell: str | None
    measure: str | None
    session: str | None


class Fate(NamedTuple):
    goes_on: bool
    text: str


"""


def rows(header: str, table: str) -> list[list[str]]:
    """Of each row: its id, and its cells as Python has them."""
    body = header.split(f"#define {table}(X)", 1)[1].split("\n\n", 1)[0].replace("\\\n", "\n")
    found = [(name, _CELL.findall(cells)) for name, cells in _TOLD.findall(body)]
    return [[name, *(_WORDS.get(cell, cell) for cell in cells)] for name, cells in found]


def _table(name: str, kind: str, items: list[tuple[str, list[str]]]) -> str:
    """Of each item: its name, and its members, a line each."""
    made = (
        f"    {key}: {kind}(\n" + "".join(f"        {cell},\n" for cell in cells) + "    ),\n"
        for key, cells in items
    )
    return f"{name}: dict[str, {kind}] = {{\n{''.join(made)}}}\n"


def causes() -> str:
    header = (ROOT / "proto/causes.h").read_text()
    words = re.findall(r'#define ((?:DEATH|FATE)_\w+) ("[^"]*")', header)
    found, fates, notes = (rows(header, table) for table in ("CAUSES", "FATES", "NOTES"))
    names = dict(it[:2] for it in found + fates)
    parts = [
        '"""How a cell has ended, and all that is told of it beside its output.\n\n'
        'Made by client/python/generate.py from proto/causes.h.\n"""\n\n'
        "from __future__ import annotations\n\nfrom typing import NamedTuple\n\n"
        + "".join(f"{key} = {value}\n" for key, value in names.items())
        + "\n\n",
        _CAUSES,
        _table("CAUSES", "Cause", [(it[1], [it[2], *it[4:]]) for it in found]),
        "\n" + _table("FATES", "Fate", [(it[1], it[2:]) for it in fates]),
        "\n" + "".join(f"{key} = {value}\n" for key, value in words),
        "\nNOTES = {\n" + "".join(f'    "{it[1]}": {it[2]},\n' for it in notes) + "}\n",
    ]
    return "".join(parts)


def internal() -> str:
    """The module of the messages behind the router. Only tests need them."""
    text = (ROOT / "proto/message.h").read_text()
    made = [Header(text).message(*it) for it in _MESSAGE.findall(text.split(BORDER)[1])]
    return module("The messages behind the router.", "lair.codec", made)


def modules() -> dict[Path, str]:
    """The files, and what belongs in them."""
    text = (ROOT / "proto/message.h").read_text()
    header = Header(text)
    of_clients = _MESSAGE.findall(text.split(BORDER)[0])
    parts = [REQUEST, *(header.message(*it) for it in sorted(of_clients, key=lambda it: it[0] != "empty_reply"))]
    events = " | ".join(class_name(name) for name, *_ in of_clients if name.endswith("_event"))
    return {
        CLIENTS: module("What clients and laird say to each other.", ".codec", parts, EVENTS.format(events)),
        CAUSES: causes(),
    }


if __name__ == "__main__":
    for path, text in modules().items():
        path.write_text(text)

"""What a model is told of functions in a prompt, and how much of it fits."""

from __future__ import annotations

import dataclasses
from typing import Any, Literal

import pytest

import lair
from lair import Connection, Session, aio


@dataclasses.dataclass
class Tree:
    name: str
    kids: list[Tree] = dataclasses.field(default_factory=list)


def plant(tree: Tree, where: str | None = None, kind: Literal["oak", "ash"] = "oak", **more: Any) -> list[Tree]:
    """Plant a tree.

    More of it.
    """
    return [tree]


def count() -> int:
    """How many there are."""
    return 1


def bare(x: Any) -> Any:
    return x


def many(n: int) -> dict[str, Any]:
    return {f"name_{i:03}": plant if i % 2 else count for i in range(n)}


def body(text: str) -> list[str]:
    return text.splitlines()[2:]


def test_all_of_it() -> None:
    assert body(lair.stubs([plant, count, bare])) == [
        "Tree = {name: str, kids: list[Tree]}",
        "plant(tree: Tree, where: str = None, kind: Literal['oak', 'ash'] = 'oak', **more) -> list[Tree]  # Plant a tree.",
        "count() -> int  # How many there are.",
        "bare(x: Any)",
    ]
    assert lair.stubs([]) == lair.stubs(None) == "# There are no functions."


def test_it_says_how_to_call(connection: Connection) -> None:
    for kind in (Session, aio.Session):
        s = kind(connection=connection, functions={"wiki.count": count})
        assert "tools.wiki.count(...)" in s.stubs() and 'tools.find("words")' in s.stubs()
        s = kind(connection=connection, functions=[count], globals=True)
        assert "as count(...)" in s.stubs()


def test_the_less_room_the_less_is_told() -> None:
    """Nothing is left out without a word, and no name is, while there is room for names."""
    seen = []
    for budget in range(2000, 250, -10):
        text = lair.stubs(many(40), budget)
        assert lair.tokens(text) <= budget
        assert all(name in text for name in many(40))
        seen += [line for line in text.splitlines() if line.startswith("# Left out") and line not in seen]
    assert seen == [
        "# Left out here: what some of them do.",
        "# Left out here: what some of them do, the fields of types.",
        "# Left out here: what some of them do, the fields of types, types.",
        "# Left out here: what some of them do, the fields of types, types, parameters.",
    ]


def test_the_first_are_told_more_of() -> None:
    lines = body(lair.stubs(many(40), 1100))
    told = [n for n, line in enumerate(it for it in lines if it.startswith("name_")) if "  # " in line]
    assert told and told == list(range(len(told))) and len(told) < 40


def test_more_than_fit_by_name() -> None:
    text = lair.stubs(many(512), 300)
    assert lair.tokens(text) <= 300
    shown = text.count("name_") - 3
    assert f"and {512 - shown} more." in text
    assert lair.stubs(many(512), 0).endswith("and 512 more.")


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#/$defs/loop", "$defs": {"loop": {"$ref": "#/$defs/loop"}}},
        {"properties": {"x": {"$ref": "#"}}},
        {"properties": {"x": {"anyOf": [{"$ref": "#/properties/x"}, {"$ref": "#/properties/x"}]}}},
        {"properties": {"x": 3, "y": {"type": 4}, "z": {"enum": 5}, "u": {"anyOf": 6}, "v": {"const": {}}}},
        {"properties": 5, "required": 7},
        {"properties": {"x": {"enum": list(range(1000))}}},
    ],
)
def test_odd_schemas(schema: dict[str, Any]) -> None:
    text = lair.stubs([lair.Function(bare, schema=schema), count])
    assert "bare(" in text and "count() -> int" in text and len(text) < 2000

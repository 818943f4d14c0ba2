"""What a cell is told of the types of functions, and what the functions get."""

from __future__ import annotations

import asyncio
import dataclasses
import datetime
import enum
import pathlib
import uuid
from collections.abc import Iterator
from typing import Annotated, Any, TypedDict

import pytest

import lair
from daemon import Daemon
from lair import Connection, Session, aio, schema


class Place(TypedDict, total=False):
    x: Annotated[int, "to the east"]
    y: float


@dataclasses.dataclass
class Tree:
    name: str
    kids: list[Tree] = dataclasses.field(default_factory=list)


class Colour(enum.Enum):
    red = "red"
    blue = "blue"


@dataclasses.dataclass
class Event:
    when: datetime.datetime
    where: Place | None = None


got: list[Any] = []


def plant(tree: Tree, at: list[Place], colour: Colour = Colour.red, by: datetime.date | None = None) -> Tree:
    """Plant a tree.

    Args:
        tree: what to plant,
            with all its branches
        at (list): where to
        colour: of its leaves
    """
    got.extend([tree, at, colour, by])
    return tree


def meet(events: dict[str, Event], who: list[uuid.UUID] | None = None, path: pathlib.Path | None = None) -> Any:
    got.extend([events, who, path])
    return {"events": list(events.values()), "who": who, "path": path, "colour": Colour.blue}


@pytest.fixture
def s(connection: Connection) -> Iterator[Session]:
    got.clear()
    with Session(connection=connection, functions=[plant, meet]) as it:
        yield it


def test_signatures_and_help(s: Session) -> None:
    assert s.run("tools.plant").text == (
        "<function tools.plant(tree: Tree, at: list[Place], colour: Literal['red', 'blue'] = 'red',"
        " by: str | None = None) -> Tree>"
    )
    said = s.run("help(tools.plant)").stdout
    assert "Tree is {'name': str, 'kids': list[Tree]}" in said
    assert "    'x': int,  # to the east\n" in said and "    'y': float,\n" in said
    assert said.count("of its leaves") == 1  # the docstring has it, so the schema need not say it again
    assert s.run("tools.find('branches')").text != "[]"


def test_values_have_their_types(s: Session) -> None:
    code = "tools.plant({'name': 'oak', 'kids': [{'name': 'twig'}]}, [{'x': 1}, {}], 'blue', '2026-02-03')"
    assert s.run(code).text == "{'name': 'oak', 'kids': [{'name': 'twig', 'kids': []}]}"
    assert got == [Tree("oak", [Tree("twig")]), [{"x": 1}, {}], Colour.blue, datetime.date(2026, 2, 3)]
    got.clear()
    number = "12345678-1234-5678-1234-567812345678"
    code = f"tools.meet({{'a': {{'when': '2026-01-01T10:00:00', 'where': {{'y': 2}}}}}}, ['{number}'], '/tmp/x')"
    assert s.run(code).text == (
        "{'events': [{'when': '2026-01-01T10:00:00', 'where': {'y': 2}}],"
        f" 'who': ['{number}'], 'path': '/tmp/x', 'colour': 'blue'}}"
    )
    event = Event(datetime.datetime(2026, 1, 1, 10), {"y": 2})
    assert got == [{"a": event}, [uuid.UUID(number)], pathlib.Path("/tmp/x")]


@pytest.mark.parametrize(
    "call, kind, error",
    [
        ("plant({'name': 3}, [])", "TypeError", "plant(): tree['name'] is str, not int"),
        ("plant({}, [])", "TypeError", "plant(): tree has no 'name'"),
        ("plant({'name': 'a', 'kids': [{'name': 1}]}, [])", "TypeError", "tree['kids'][0]['name'] is str, not int"),
        ("plant({'name': 'a'}, [{'x': 'a'}])", "TypeError", "plant(): at[0]['x'] is int, not str"),
        ("plant({'name': 'a'}, [], 'green')", "TypeError", "colour is one of 'red', 'blue', not 'green'"),
        ("plant({'name': 'a'}, [], by=3)", "TypeError", "plant(): by is str | None, not 3"),
        ("plant({'name': 'a'}, [], by='yesterday')", "ValueError", "by: Invalid isoformat string"),
        ("meet({'a': {'when': 'x'}})", "ValueError", "events: Invalid isoformat string"),
    ],
)
def test_what_does_not_fit(s: Session, call: str, kind: str, error: str) -> None:
    result = s.run(f"tools.{call}")
    assert result.error and result.error.name == kind and error in result.error.value


def test_numpy_s_numbers_are_numbers(s: Session) -> None:
    pytest.importorskip("numpy")
    code = """
import numpy
tools.plant({'name': 'a'}, [{'x': numpy.int64(3), 'y': numpy.float32(0.5)}])
tools.meet({}, list(numpy.array(['12345678-1234-5678-1234-567812345678'])))"""
    s.run(code).raise_for_error()
    assert got[1] == [{"x": 3, "y": 0.5}]


def test_the_styles_of_docstrings() -> None:
    numpy = """Do it.

    Parameters
    ----------
    a : int
        The a.
        And more.
    b
        The b.

    Returns
    -------
    int
        Nothing.
    """
    assert schema.parameters_in(numpy.replace("\n    ", "\n")) == {"a": "The a. And more.", "b": "The b."}
    assert schema.parameters_in(
        "Do it.\n\n:param int a: The a.\n    And more.\n:param b: The b.\n:returns: No."
    ) == {
        "a": "The a. And more.",
        "b": "The b.",
    }
    google = "Do it.\n\nArgs:\n  a (int): The a: of all.\n    And more.\n  *b: The b.\n\nReturns:\n  c: no"
    assert schema.parameters_in(google) == {"a": "The a: of all. And more.", "b": "The b."}


def test_descriptions_are_in_the_schema() -> None:
    made = lair.Function(plant).schema
    assert made["properties"]["tree"]["description"] == "what to plant, with all its branches"
    assert made["properties"]["at"]["items"]["properties"]["x"]["description"] == "to the east"
    assert made["required"] == ["tree", "at"]


@pytest.mark.parametrize(
    "given",
    [
        {"$ref": "#/$defs/no"},
        {"$ref": "#/$defs/loop", "$defs": {"loop": {"$ref": "#/$defs/loop"}}},
        {"properties": {"x": {"$ref": "#"}}, "additionalProperties": True},
        {"properties": {"x": {"type": ["string", 3]}}},
        {"properties": {"x": {"anyOf": [{"$ref": "#/properties/x"}, {"$ref": "#/properties/x"}]}}},
        {"properties": {"x": {"enum": "abc", "items": 3, "properties": []}}, "required": "x"},
        {"properties": {"x": {"allOf": [{"allOf": [{"type": "string"}]}]}}},
    ],
)
def test_odd_schemas(connection: Connection, given: dict[str, Any]) -> None:
    odd = lair.Function(lambda **given: len(given), name="odd", schema=given)
    with Session(connection=connection, functions=[odd, plant]) as s:
        assert s.run("tools.odd(x='a')" if "properties" in given else "tools.odd()").ok
        assert s.run("help(tools.odd); tools.find('plant')").ok


def test_a_function_called_find(connection: Connection) -> None:
    def find(words: str) -> str:
        return f"found {words}"

    with Session(connection=connection, functions={"find": find, "wiki.find": find, "wiki.plant": plant}) as s:
        assert s.run("tools.find('x'), tools.wiki.find('y')").text == "('found x', 'found y')"
        assert s.run("[it.partition('(')[0] for it in tools.search_docs('tree')]").text == "['wiki.plant']"


def test_names_that_code_cannot_say() -> None:
    for name in ("class", "a.import", "1a", "a b"):
        with pytest.raises(ValueError, match="no name for a function"):
            lair.Function(plant, name=name)


# ---- what code sends that goes around the cell's own checks ----


@pytest.mark.parametrize(
    "given, why",
    [
        ("n='x'", "n: it is int, not str"),
        ("n=True", "n: it is int, not bool"),
        ("n=1, flag=1", "flag: it is bool, not int"),
        ("n=1, many=[1, 'x']", "many: it is int, not str"),
        ("n=1, table={'a': [1]}", "table: it is float, not list"),
        ("n=1, some='x'", "some: it is int, not str"),
        ("n=1, secret=2", "careful has no argument 'secret'"),
        ("", "missing 1 required positional argument: 'n'"),
    ],
)
def test_the_program_looks_at_arguments_again(connection: Connection, given: str, why: str) -> None:
    called = []

    def careful(
        n: int,
        flag: bool = False,
        many: list[int] | None = None,
        table: dict[str, float] | None = None,
        some: int | None = None,
    ) -> None:
        called.append(n)

    with Session(connection=connection, functions=[careful]) as s:
        assert s.run("tools.careful(1, True, [2], {'a': 3, 'b': 0.5})\ntools.careful(2, some=None)").ok
        assert s.run("type(tools.careful)._arguments = lambda self, args, kwargs: kwargs").ok
        error = s.run(f"tools.careful({given})").error
        assert error and error.name == "TypeError" and why in error.value
    assert called == [1, 2]


def test_a_parameter_that_the_schema_hides(connection: Connection) -> None:
    def pay(to: str, dry: bool = True) -> str:
        return f"{to}, {dry}"

    schema = {"type": "object", "properties": {"to": {"type": "string"}}, "required": ["to"]}
    with Session(connection=connection, functions=[lair.Function(pay, schema=schema)]) as s:
        assert s.run("tools.pay('bob')").text == "'bob, True'"
        assert s.run("type(tools.pay)._arguments = lambda self, args, kwargs: kwargs").ok
        error = s.run("tools.pay(to='bob', dry=False)").error
        assert error and error.name == "TypeError" and error.value == "pay has no argument 'dry'"


# ---- values that cannot be sent ----


def deep(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


def around() -> Any:
    value: list[Any] = []
    value.append(value)
    return value


def huge(size: int) -> bytes:
    return bytes(size)


def around_trip(value: Any) -> Any:
    return value


def many(n: int, kind: str = "list") -> Any:
    return list(range(n)) if kind == "list" else {str(it): it for it in range(n)}


def test_as_deep_as_values_may_be(connection: Connection) -> None:
    """13 and no deeper, there and back."""
    nest = "def nest(n):\n    value = 1\n    for _ in range(n): value = [value]\n    return value\n"
    with Session(connection=connection, functions=[deep, around_trip]) as s:
        assert s.run(f"{nest}tools.around_trip(nest(12)) == nest(12), tools.deep(13) == nest(13)").text == (
            "(True, True)"
        )
        for n in (13, 14, 15, 16, 17):
            error = s.run(f"tools.around_trip(nest({n}))").error
            assert error and error.name == "ValueError" and "nested too deeply" in error.value
        for n in (14, 15, 16, 17):
            error = s.run(f"tools.deep({n})").error
            assert error and error.name == "ValueError" and "nested deeper than 13" in error.value


def test_deep_and_huge_values_are_errors_in_the_cell(connection: Connection) -> None:
    with Session(connection=connection, functions=[deep, around, huge, many, around_trip]) as s:
        assert s.run("len(tools.many(65_490)), len(tools.many(30_000, 'dict'))").text == "(65490, 30000)"
        for call, words in (
            ("deep(40)", "nested deeper than"),
            ("deep(100_000)", "nested deeper than"),
            ("around()", "nested deeper than"),
            ("huge(40 << 20)", "the value cannot be sent"),
            ("many(70_000)", "a value of 70,001 parts cannot be sent, 65,500 are the limit"),
            ("many(35_000, 'dict')", "a value of 70,001 parts cannot be sent"),
        ):
            error = s.run(f"x = 5\ntools.{call}").error
            assert error and error.name == "ValueError" and words in error.value
        for argument in ("[0] * 70_000", "dict.fromkeys(map(str, range(40_000)))"):
            error = s.run(f"tools.around_trip({argument})").error
            assert error and error.name == "ValueError" and "parts cannot be sent" in error.value
        assert s.run("len(tools.around_trip([0] * 65_490))").text == "65490"
        code = "try: tools.huge(40 << 20)\nexcept ValueError: pass\nx, len(tools.huge(1 << 20))"
        assert s.run(code).text == "(5, 1048576)"


def test_the_same_for_asyncio(daemon: Daemon) -> None:
    async def run() -> None:
        async with aio.Session(connection=Connection(str(daemon.socket), start=False), functions=[huge]) as s:
            error = (await s.run("tools.huge(40 << 20)")).error
            assert error and error.name == "ValueError" and "the value cannot be sent" in error.value

    asyncio.run(run())

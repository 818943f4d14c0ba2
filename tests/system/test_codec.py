"""The Python codec against the vectors; tests/unit/proto_vectors.c holds the one in C to the same bytes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import generate
import internal
from lair import codec, messages

VECTORS = Path(__file__).parents[2] / "proto" / "vectors"


def class_of(table: str) -> type[codec.Message]:
    """By the name in proto/message.h."""
    name = generate.class_name(table)
    found: type[codec.Message] = getattr(messages, name, None) or getattr(internal, name)
    return found


def load(name: str) -> list[dict[str, Any]]:
    vectors: list[dict[str, Any]] = json.loads((VECTORS / name).read_text())
    return vectors


def message_of(vector: dict[str, Any]) -> codec.Message:
    """JSON has neither bytes nor numbers of 64 bits: the one is written as hex, the other as text."""
    cls = class_of(vector["message"])
    kinds = {name: field.kind for name, field in codec._table(cls).items()}
    values = dict(vector["fields"])
    for name, value in values.items():
        if kinds[name] == "bin":
            values[name] = bytes.fromhex(value)
        elif kinds[name] in ("uint", "int"):
            values[name] = int(value)
    return cls(**values)


@pytest.mark.parametrize("vector", load("messages.json"), ids=lambda v: f"{v['message']}-{v['case']}")
def test_vector(vector: dict[str, Any]) -> None:
    message = message_of(vector)
    frame = codec.encode(message)
    assert frame.hex() == vector["frame"]
    assert codec.decode(type(message), frame) == message


@pytest.mark.parametrize("vector", load("refused.json"), ids=lambda v: v["why"])
def test_refused(vector: dict[str, Any]) -> None:
    with pytest.raises(codec.CodecError):
        codec.decode(class_of(vector["message"]), bytes.fromhex(vector["frame"]))


def test_what_a_later_build_says_is_passed_over() -> None:
    content = {"id": 1, "interrupted": True, "later": [1, {"a": 2}]}
    assert codec.read(messages.InterruptReply, content) == messages.InterruptReply(id=1, interrupted=True)
    with pytest.raises(codec.CodecError, match="interrupted"):
        codec.read(messages.InterruptReply, {"id": 1, "later": True})


def test_the_classes_are_those_of_the_header() -> None:
    """client/python/generate.py writes them anew. That every message has a vector, tests/unit/proto_vectors.c tests."""
    for path, text in generate.modules().items():
        assert path.read_text() == text, f"{path} is not what generate.py makes of proto/message.h"


def test_an_answer_with_many_records() -> None:
    """As many as there are sessions, or results."""
    sessions = [{"session": f"s{i}", "profile": "default", "state": "idle"} for i in range(20000)]
    frame = codec.encode(messages.ListReply(id=1, sessions=sessions))
    assert codec.decode(messages.ListReply, frame).sessions == sessions

"""One host a shape, with a fresh session for each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from cage import ROOT, SHAPES, Groups, Host, Shape
from drive import Interpreter


@pytest.fixture(scope="session", params=SHAPES, ids=lambda shape: shape.name)
def shape(request: pytest.FixtureRequest) -> Shape:
    if request.param.made_by_root and not ROOT:
        pytest.skip(f"the shape {request.param.name} takes root to make")
    return request.param


@pytest.fixture(scope="session")
def host(shape: Shape) -> Iterator[Host]:
    if shape.groups and not Groups().there:
        pytest.skip(f"the shape {shape.name} takes control groups of version 1 that are ours to make")
    it = Host(shape)
    yield it
    it.close()


@pytest.fixture
def python(host: Host) -> Iterator[Interpreter]:
    warden, interpreter = host.session()
    yield interpreter
    warden.close()

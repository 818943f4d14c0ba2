"""One template for all tests, a warden and an interpreter for each."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from drive import Interpreter, Template, Warden


@pytest.fixture(scope="session")
def template() -> Iterator[Template]:
    it = Template(subprocess=True)
    yield it
    it.close()


@pytest.fixture
def warden(template: Template) -> Iterator[Warden]:
    it = Warden(template)
    yield it
    it.close()


@pytest.fixture
def python(warden: Warden) -> Interpreter:
    return warden.spawn()

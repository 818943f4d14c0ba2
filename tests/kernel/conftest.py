"""One template for all tests, and one with libraries; a warden and an interpreter for each."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from drive import Interpreter, Template, Warden


@pytest.fixture(scope="session")
def template() -> Iterator[Template]:
    it = Template()
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


@pytest.fixture(scope="session")
def science() -> Iterator[Template]:
    """One with libraries; `nowhere` it cannot have."""
    it = Template(preload=("numpy", "pandas", "matplotlib.pyplot", "nowhere?", "json"))
    yield it
    it.close()


@pytest.fixture
def scientist(science: Template) -> Iterator[Interpreter]:
    warden = Warden(science)
    yield warden.spawn()
    warden.close()

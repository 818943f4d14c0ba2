"""lair.adapters with the packages they are for, from the package index, each in an environment of its own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from daemon import ROOT
from environments import HERE, pinned

# Which package, pinned with all it needs in NAME.txt, and what drives it.
DRIVERS = {
    "openai-agents": "drive_openai_agents.py",
    "pydantic-ai": "drive_pydantic_ai.py",
    "langchain-core": "drive_langchain.py",
    "smolagents": "drive_smolagents.py",
    "autogen-core": "drive_autogen.py",
    "google-adk": "drive_google_adk.py",
}


# And what offers tools of a package to cells.
OFFERS = {
    "openai-agents": "offer_openai_agents.py",
    "pydantic-ai": "offer_pydantic_ai.py",
    "langchain-core": "offer_langchain.py",
    "smolagents": "offer_smolagents.py",
    "mcp": "offer_mcp.py",
}


@pytest.fixture(scope="module", params=DRIVERS)
def package(request: pytest.FixtureRequest) -> tuple[str, Path]:
    return request.param, pinned(request.param)


def test_an_adapter(package: tuple[str, Path], drive: Callable[..., None]) -> None:
    name, python = package
    drive(python, HERE / DRIVERS[name], PYTHONPATH=str(ROOT / "client/python"))


@pytest.mark.parametrize("name", OFFERS)
def test_tools_as_functions(name: str, drive: Callable[..., None]) -> None:
    drive(pinned(name), HERE / OFFERS[name], PYTHONPATH=str(ROOT / "client/python"))

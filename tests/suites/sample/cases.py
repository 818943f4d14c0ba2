"""What the runner is tried with: a test of each kind, and some that go another way in a session."""

from __future__ import annotations

import os
import socket

import pytest


def test_passes() -> None:
    assert os.getcwd()


def test_fails() -> None:
    raise AssertionError("on both sides")


@pytest.mark.skip(reason="on both sides")
def test_skipped() -> None:
    pass


@pytest.mark.xfail
def test_expected_to_fail() -> None:
    raise AssertionError


@pytest.mark.parametrize("name", ["a b", "c[d]"])
def test_parametrized(name: str) -> None:
    assert name


@pytest.fixture
def broken() -> None:
    raise OSError(2, "on both sides")


def test_error(broken: None) -> None:
    pass


def test_socket_is_refused() -> None:
    socket.socket(socket.AF_UNIX).close()


def test_dies() -> None:
    if os.environ.get("SAMPLE_DIES"):
        os._exit(3)


def test_only_once() -> None:
    """Whether it ran in the memory of this process before."""
    if os.environ.get("SAMPLE_ONCE"):
        assert not hasattr(os, "sample_was_here")
        os.sample_was_here = True  # type: ignore[attr-defined]


def test_after_that() -> None:
    class Failure(OSError):
        def __init__(self, *args: object, request: int | None = None) -> None:
            self.request = request
            super().__init__(*args)

    assert Failure("x", request=1).request == 1

"""No test may hang: after a minute it fails where it stands. And whoever starts the tests, Ctrl-C is Ctrl-C in them."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from types import FrameType
from typing import Optional

import pytest

SECONDS = 60

# A shell without job control starts what it puts into the background with SIGINT ignored, and that is inherited by all
# that a test starts.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _too_long(number: int, frame: Optional[FrameType]) -> None:
    pytest.fail(f"the test took longer than {SECONDS} s", pytrace=True)


@pytest.fixture(autouse=True)
def time_limit() -> Iterator[None]:
    previous = signal.signal(signal.SIGALRM, _too_long)
    signal.alarm(SECONDS)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, previous)

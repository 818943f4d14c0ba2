"""A daemon for each test of somebody else's client."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator

import pytest

from daemon import BIN, Daemon


@pytest.fixture
def daemon() -> Iterator[Daemon]:
    it = Daemon({"profile default": {"checkpoint": "cell", "preload": "matplotlib.pyplot?"}})
    yield it
    it.end()


@pytest.fixture
def drive(daemon: Daemon) -> Callable[..., None]:
    """Run a client's driver, which fails unless all is as it should be."""

    def run(*command: object, **more: str) -> None:
        env = {
            "PATH": os.environ["PATH"],
            "HOME": str(daemon.directory),
            "LAIR_BIN": str(BIN),
            "LAIR_SOCKET": str(daemon.socket),
            "PYTHONDONTWRITEBYTECODE": "1",
            **more,
        }
        done = subprocess.run([*map(str, command)], env=env, capture_output=True, text=True, timeout=55)
        assert done.returncode == 0, done.stdout + done.stderr

    return run

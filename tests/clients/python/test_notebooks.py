"""Jupyter's own clients, from the package index, with sessions that have the same packages: everything unmodified."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator

import pytest

from daemon import Daemon
from environments import HERE, pinned


@contextlib.contextmanager
def starting(name: str) -> Iterator[Callable[..., None]]:
    """Runs programs of that environment, whose packages sessions have, too. A program fails unless all is as it should
    be."""
    python = str(pinned(name))
    daemon = Daemon({"profile notebook": {"python": python, "preload": "IPython", "checkpoint": "cell"}})
    try:
        assert daemon.lair("jupyter", "install").returncode == 0

        def run(*command: object) -> None:
            env = {
                "PATH": os.environ["PATH"],
                "HOME": str(daemon.directory),
                "LAIR_SOCKET": str(daemon.socket),
                "JUPYTER_RUNTIME_DIR": str(daemon.directory / "runtime"),
                "PYTHONDONTWRITEBYTECODE": "1",
            }
            told = subprocess.run(
                [python, *map(str, command)], env=env, capture_output=True, text=True, timeout=150
            )
            assert told.returncode == 0, told.stdout + told.stderr

        yield run
        daemon.end()
    finally:
        daemon.close()


@pytest.fixture(scope="module")
def start() -> Iterator[Callable[..., None]]:
    with starting("jupyter") as run:
        yield run


def test_the_tests_for_kernels(start: Callable[..., None]) -> None:
    start("-m", "unittest", "--verbose", str(HERE / "drive_kernel_tests.py"))


@pytest.mark.parametrize("program", ["nbclient", "nbconvert", "papermill", "console", "autogen", "encryption"])
def test_programs_that_run_notebooks(start: Callable[..., None], program: str) -> None:
    start(HERE / "drive_notebooks.py", program)


def test_widgets(start: Callable[..., None]) -> None:
    start(HERE / "drive_widgets.py")


@pytest.fixture(scope="module")
def start_lab() -> Iterator[Callable[..., None]]:
    if not shutil.which("chromium-headless-shell"):
        pytest.skip("there is no chromium-headless-shell")
    with starting("jupyterlab") as run:
        yield run


def test_jupyterlab_in_a_browser(start_lab: Callable[..., None]) -> None:
    start_lab(HERE / "drive_jupyterlab.py")

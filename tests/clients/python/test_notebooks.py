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
def serving(command: list[str], env: dict[str, str]) -> Iterator[list[str]]:
    with subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin and process.stdout
        yield [process.stdout.readline().strip()]
        process.stdin.close()


@contextlib.contextmanager
def starting(name: str, *server: object) -> Iterator[Callable[..., None]]:
    """Runs programs of that environment, whose packages sessions have, too. A program fails unless all is as it should
    be. The server, a command that says with its first line where it is, is up before: what it needs for that is no part
    of a test's minute."""
    python = str(pinned(name))
    daemon = Daemon({"profile workbench": {"python": python, "preload": "IPython", "checkpoint": "cell"}})
    try:
        assert daemon.lair("jupyter", "install").returncode == 0

        env = {
            "PATH": os.environ["PATH"],
            "HOME": str(daemon.directory),
            "LAIR_SOCKET": str(daemon.socket),
            "JUPYTER_RUNTIME_DIR": str(daemon.directory / "runtime"),
            "PYTHONDONTWRITEBYTECODE": "1",
        }

        def run(*command: object) -> None:
            told = subprocess.run(
                [python, *map(str, command)], env=env, capture_output=True, text=True, timeout=150
            )
            assert told.returncode == 0, told.stdout + told.stderr

        with serving([python, *map(str, server)], env) if server else contextlib.nullcontext([]) as where:
            yield lambda *command: run(*command, *where)
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
    with starting("jupyterlab", HERE / "drive_jupyterlab.py") as run:
        yield run


def test_jupyterlab_in_a_browser(start_lab: Callable[..., None]) -> None:
    start_lab(HERE / "drive_jupyterlab.py")

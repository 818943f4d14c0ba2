"""Sessions that begin with packages, from the operator's index: those that are imported ahead, and a set that is there in a session that
lives."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from functools import partial
from pathlib import Path

from daemon import Daemon
from index import find_uv
from lair import CellFailed, Connection, Session
from rivals import timed

NAMES = ["polars", "scikit-learn"]
CODE = "import polars, sklearn; 1+1"
READY = "has a template of the set"
WHOSE = ("UV_", "SSL_", "HTTP_", "HTTPS_", "ALL_", "NO_", "NETRC")
SECONDS = 120


class Packages:
    """`there` is False where the index or uv is not: then there is nothing to measure."""

    def __init__(self) -> None:
        uv = find_uv()
        self.store = Path(tempfile.mkdtemp(prefix="lair-bench-"))
        self.store.chmod(0o755)
        profile = {"preload": "", "spares": "2", "packages": "on", "memory": "2G"}
        env = {name: value for name, value in os.environ.items() if name.upper().startswith(WHOSE)}
        settings = {"daemon": {"packages_store": str(self.store), "uv": str(uv)}, "profile default": profile}
        self.daemon = Daemon(settings, env=env)
        self.connection = Connection(str(self.daemon.socket))
        self.there = uv is not None and self._installed()

    def _installed(self) -> bool:
        session = Session("first", connection=self.connection)
        try:
            session.install(NAMES)
        except CellFailed as error:
            print(f"  (no packages: {error})")
            return False
        finally:
            session.shutdown()
        return True

    def _open(self, code: str, packages: list[str]) -> float:
        session = Session("bench", connection=self.connection)
        took = timed(lambda: session.run(code, packages=packages).raise_for_error())
        session.shutdown()
        return took

    def _wait(self) -> None:
        """Until the next session finds what it begins with."""
        until = time.monotonic() + SECONDS
        while self.daemon.log().rfind(READY) < self.daemon.log().rfind("] opened for") and time.monotonic() < until:
            time.sleep(0.02)
        time.sleep(0.1)

    def ahead(self, count: int) -> list[float]:
        taken = []
        self._open("1", NAMES)
        for _ in range(count):
            self._wait()
            taken.append(self._open(CODE, NAMES))
        return taken

    def ordinary(self, count: int) -> list[float]:
        taken = []
        for _ in range(count):
            time.sleep(0.1)
            taken.append(self._open("1+1", []))
        return taken

    def live(self, count: int) -> list[float]:
        """In a session that lives, a set that is there, until it can be imported."""
        taken = []
        for _ in range(count):
            session = Session("live", connection=self.connection)
            session.run("1")
            taken.append(timed(partial(session.install, NAMES)))
            session.shutdown()
        return taken

    def close(self) -> None:
        self.connection.close()
        self.daemon.close()
        shutil.rmtree(self.store, ignore_errors=True)

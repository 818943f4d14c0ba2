"""laird as the first process of a container: it reaps what becomes its child, and it ends when it is told to."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from daemon import BIN, children, config_text, wait_until

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0, reason="only root makes a pid namespace without a user namespace"
)


class Container:
    """As much of one as matters here: a pid namespace with a /proc of its own."""

    def __init__(self, directory: Path) -> None:
        (directory / "conf").write_text(config_text({}))
        self.env = {"PATH": "/usr/bin:/bin", "HOME": str(directory), "LAIR_CONFIG": str(directory / "conf")}
        self.env["LAIR_SOCKET"] = str(directory / "run/socket")
        self.log = directory / "log"
        with self.log.open("w") as log:
            command = ["unshare", "--pid", "--fork", "--mount-proc", str(BIN / "laird")]
            self.outer = subprocess.Popen(command, env=self.env, stderr=log)
        wait_until(lambda: children(self.outer.pid), "laird")
        (self.pid,) = children(self.outer.pid)
        wait_until(lambda: self.lair("status").returncode == 0, "an answer", 30)

    def lair(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [str(BIN / "lair"), *arguments]
        env = {**self.env, "LAIR_NO_START": "1"}
        return subprocess.run(command, env=env, capture_output=True, text=True, timeout=50)

    def run(self, script: str) -> None:
        """A process that comes from outside, as `podman exec` makes it."""
        subprocess.run(["nsenter", "--target", str(self.pid), "--pid", "sh", "-c", script], check=True, timeout=50)

    def named(self, name: str) -> list[int]:
        """Its children of that name; templates and spares come and go beside them."""
        found = []
        for pid in children(self.pid):
            with suppress(FileNotFoundError, ProcessLookupError):
                if Path(f"/proc/{pid}/comm").read_text().strip() == name:
                    found.append(pid)
        return found

    def zombies(self) -> list[int]:
        return [pid for pid in children(self.pid) if ") Z " in Path(f"/proc/{pid}/stat").read_text()]

    def close(self) -> None:
        if self.outer.poll() is None:
            for pid in children(self.outer.pid):
                os.kill(pid, signal.SIGKILL)
            self.outer.wait(20)


@pytest.fixture
def container(tmp_path: Path) -> Iterator[Container]:
    it = Container(tmp_path)
    yield it
    it.close()


def test_it_serves_and_stops_when_it_is_told(container: Container) -> None:
    assert Path(f"/proc/{container.pid}/status").read_text().split("NSpid:")[1].split("\n")[0].split()[-1] == "1"
    assert container.lair("exec", "-s", "a", "x = 41").returncode == 0
    assert container.lair("exec", "-s", "a", "x + 1").stdout == "42\n"
    os.kill(container.pid, signal.SIGTERM)
    assert container.outer.wait(40) == 0, container.log.read_text()
    assert not Path(container.env["LAIR_SOCKET"]).exists()


def test_it_reaps_what_nobody_waits_for(container: Container) -> None:
    container.run("(sleep 1 &) ; exit 0")
    wait_until(lambda: container.named("sleep"), "the process without a parent")
    wait_until(lambda: not container.named("sleep"), "its end")
    assert container.zombies() == []
    assert container.lair("exec", "6 * 7").stdout == "42\n"


def test_a_session_leaves_nothing_to_it(container: Container) -> None:
    assert container.lair("exec", "-s", "a", "x = 1").returncode == 0
    assert container.lair("exec", "-s", "a", "import os; os._exit(3)").returncode == 3
    assert container.lair("close", "a").returncode == 0
    wait_until(lambda: container.zombies() == [], "the dead to be reaped")

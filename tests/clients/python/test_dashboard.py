"""The dashboard in a real browser: real clicks and keys, and scripts in everything that a session can say."""

from __future__ import annotations

import http.server
import json
import os
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import lair
from daemon import Daemon
from environments import HERE, pinned
from http_server import Server, server_of

# A script in the forms in which it might run.
SCRIPT = "<img src=x onerror=hacked()><script>hacked()</script>"


@pytest.fixture(scope="module")
def browser() -> Path:
    if not shutil.which("chromium-headless-shell"):
        pytest.skip("there is no chromium-headless-shell")
    return pinned("browser")


@pytest.fixture
def server(daemon: Daemon) -> Iterator[Server]:
    with server_of(daemon) as it:
        yield it


@pytest.fixture
def look(browser: Path, server: Server, tmp_path: Path) -> Callable[..., str]:
    """Do what drive_dashboard.py has under that name. With LAIR_PICTURES its pictures are kept there."""

    def run(scene: str, *more: str, url: str = server.url) -> str:
        env = {
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path),
            "PICTURES": os.environ.get("LAIR_PICTURES", str(tmp_path)),
        }
        command = [str(browser), str(HERE / "drive_dashboard.py"), url, scene, *more]
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=150)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


def test_sessions(look: Callable[..., str], server: Server) -> None:
    for name in ("one", "two"):
        server.exec(name, "x = bytearray(10 << 20)")
    look("sessions")


def test_cells(look: Callable[..., str]) -> None:
    look("cells")


def test_more_cells_than_connections(look: Callable[..., str]) -> None:
    look("queue")


def test_changes(look: Callable[..., str]) -> None:
    look("changes")


def test_deleting(look: Callable[..., str]) -> None:
    look("deleting")


def test_a_flood_of_output(look: Callable[..., str]) -> None:
    look("flood")


def test_load(look: Callable[..., str], server: Server) -> None:
    server.exec("busy", "x = bytearray(10 << 20)")
    look("load")


def test_a_cell_that_somebody_else_runs(look: Callable[..., str], daemon: Daemon, server: Server) -> None:
    server.exec("theirs", "x = 1")
    told = daemon.lair(
        "exec", "-s", "theirs", "--detach", "print('slowly', flush=True); import time; time.sleep(600)"
    )
    assert told.returncode == 0
    look("theirs")


def test_checkpoints(look: Callable[..., str], server: Server) -> None:
    for i in range(1, 5):
        server.exec("tree", f"x = {i}")
    look("tree")


def test_files(look: Callable[..., str], server: Server) -> None:
    server.exec(
        "papers",
        "import os; os.mkdir('more'); open('more/deep.txt', 'w').write('deep'); open('a.txt', 'w').write('hello')",
    )
    look("files")


def offered(daemon: Daemon, name: str, code: str) -> tuple[threading.Thread, list[lair.Result]]:
    """A cell that calls a function which asks."""
    results: list[lair.Result] = []

    def pay(to: str, amount: float) -> str:
        """Pay somebody."""
        return f"paid {to}"

    def run() -> None:
        with lair.Connection(str(daemon.socket)) as connection:
            it = lair.Session(name, functions=[lair.Function(pay, ask=True)], connection=connection)
            results.append(it.run(code))

    thread = threading.Thread(target=run)
    thread.start()
    return thread, results


def test_calls_that_ask(look: Callable[..., str], daemon: Daemon) -> None:
    code = "print(tools.pay('Ann', 1))\ntry:\n    tools.pay('Bob', 2)\nexcept PermissionError as error:\n    print(error)"
    thread, results = offered(daemon, "billing", code)
    look("calls")
    thread.join(60)
    assert results[0].stdout == "paid Ann\npay was refused: not today\n"


def test_scripts_in_every_field(look: Callable[..., str], daemon: Daemon, server: Server) -> None:
    name = "<img/src=x/onerror=hacked()>"
    thread, results = offered(
        daemon,
        name,
        f"""
import sys
script = {SCRIPT!r}
vars()[script] = script
print(script)
print(script, file=sys.stderr)
class HTML:
    def _repr_html_(self):
        return ('<img src=x onerror=hacked()><svg onload="parent.hacked()"></svg><a href="javascript:parent.hacked()">click</a>'
            '<form action="/v1/sessions" method="post"><button>send</button></form>'
            '<iframe srcdoc="&lt;script&gt;parent.parent.hacked()&lt;/script&gt;"></iframe>'
            '<meta http-equiv="refresh" content="0;url=/health"><b>it is shown</b>')
class Scripted:
    def _repr_html_(self):
        return script
class Marked:
    def _repr_html_(self):
        return '<p onclick="hacked()" style="position:fixed;inset:0">all over</p><details open ontoggle="parent.hacked()">x</details>'
class SVG:
    def _repr_svg_(self):
        return '<svg xmlns="http://www.w3.org/2000/svg" width="40" height="40" onload="hacked()"><script>parent.hacked()</script><rect width="40" height="40"/></svg>'
class Markdown:
    def _repr_markdown_(self):
        return script
display(HTML(), Marked(), Scripted(), SVG(), Markdown())
import pandas as pd
display(pd.DataFrame({{script: [script]}}, index=[script]))
open(script.replace("/", "|"), "w").write(script)
try:
    open("/etc/" + script.replace("/", "|"), "w")
except PermissionError:
    pass
tools.pay(script, 1)
raise type(script, (Exception,), {{}})(script)
""",
    )
    look("hostile_call", name)
    thread.join(60)
    assert results[0].error
    with lair.Connection(str(daemon.socket)) as connection:
        lair.Session(name, connection=connection).checkpoint("<img/src=x/onerror=hacked()>")
    look("hostile", name)


def test_the_keyboard_alone(look: Callable[..., str], server: Server) -> None:
    server.exec("keys", "x = 1")
    look("keyboard")


def test_names_for_those_who_do_not_see(look: Callable[..., str], server: Server) -> None:
    server.exec("named", "import matplotlib.pyplot as plt; plt.plot([1, 2]); plt.show()")
    look("names")


def test_light_and_dark(look: Callable[..., str], server: Server) -> None:
    server.exec("paint", "1 + 1")
    look("themes")


def test_a_server_with_tokens(look: Callable[..., str], daemon: Daemon, server: Server, tmp_path: Path) -> None:
    file = str(tmp_path / "tokens")
    told = daemon.lair("token", "add", "ann", "--tokens", file)
    assert told.returncode == 0, told.stderr
    with server_of(daemon, "--tokens", file) as it:
        look("token", told.stdout.split()[-1], url=it.url)


def test_a_server_that_is_away(look: Callable[..., str], server: Server) -> None:
    server.exec("away", "1 + 1")
    look("away")


# ---- pages of others ----


class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!doctype html><title>another</title>")

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def other() -> Iterator[str]:
    """The address of a web application on another port of this machine."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page) as it:
        thread = threading.Thread(target=it.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{it.server_port}"
        it.shutdown()
        thread.join()


def sessions(daemon: Daemon) -> set[str]:
    return {it.session for it in daemon.client().list()}


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_page_of_another_port_does_nothing(
    look: Callable[..., str], daemon: Daemon, server: Server, other: str, host: str
) -> None:
    server.exec("victim", "1")
    told = json.loads(look("other_page", other.replace("127.0.0.1", host), "victim"))
    assert set(told) == {"refused", "opaque"}
    assert server.exec("victim", "import os; os.path.exists('hit')")["text"] == "False"
    assert sessions(daemon) == {"victim"}


def test_a_page_that_was_named_may_ask(look: Callable[..., str], daemon: Daemon, other: str) -> None:
    with server_of(daemon, "--origins", other) as it:
        it.exec("named", "1")
        told = json.loads(look("other_page", other, "named", url=it.url))
    assert told[:5] == [200, 403, 201, 204, 200]


def test_a_link_of_another_page(look: Callable[..., str], server: Server, other: str) -> None:
    server.exec("shown", "1")
    look("linked", other)

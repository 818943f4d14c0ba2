"""What becomes of pipes, connections and the last descriptors when a state is kept and comes back."""

from __future__ import annotations

import pytest

from daemon import wait_until
from lair import Client, LairError

pytestmark = pytest.mark.usefixtures("no_sessions_left")

SETTINGS = {
    "profile default": {"level": "", "checkpoint": "cell"},
    "profile connected": {"spares": "0", "checkpoint": "cell", "level": "", "network": "host"},
    "profile programs": {"spares": "0", "checkpoint": "cell", "level": "", "subprocess": "on"},
    "profile narrow": {"spares": "0", "checkpoint": "cell", "level": "", "open_files": "32"},
}

READER = """
import os
r, w = os.pipe()
child = os.fork()
if child == 0:
    os.close(w)
    n = 0
    while data := os.read(r, 100):
        n += len(data)
    os._exit(n)
os.close(r)
"""

CONNECTION = """
import socket
listener = socket.create_server(("127.0.0.1", 0))
address = listener.getsockname()
one = socket.create_connection(address, timeout=5)
other, _ = listener.accept()
"""

FILL = """
import os
fds = []
try:
    while True: fds.append(os.open(os.devnull, os.O_RDONLY))
except OSError: pass
x = 1
"""


def test_a_child_s_input_ends_when_it_is_closed(client: Client, session: str) -> None:
    client.exec(READER, session)
    client.checkpoint(session, "open")
    code = "os.write(w, b'abc'), os.close(w), os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])"
    reply = client.exec(code, session, timeout=10)
    assert (reply.text, reply.state) == ("(3, None, 3)", "kept")


def test_a_pipe_to_a_child_is_broken_after_going_back(client: Client, session: str) -> None:
    client.exec(READER, session)
    client.checkpoint(session, "open")
    client.restore(session, "open")
    assert "BrokenPipeError" in client.exec("os.write(w, b'abc')", session).stderr.decode()


def test_a_pipe_to_oneself_comes_back(client: Client, session: str) -> None:
    client.exec("import os\nr, w = os.pipe()\nos.write(w, b'abc')", session)
    client.checkpoint(session, "full")
    client.restore(session, "full")
    assert client.exec("os.read(r, 9), os.write(w, b'd'), os.read(r, 9)", session).text == "(b'abc', 1, b'd')"


def test_a_pipe_to_oneself_ends_when_it_is_closed(client: Client, session: str) -> None:
    client.exec("import os\nr, w = os.pipe()\nv = os.dup(w)\nos.write(w, b'abc')", session)
    client.checkpoint(session, "full")
    client.branch(session, "other")
    code = "os.close(v), os.close(w), os.read(r, 9), os.read(r, 9)"
    client.shutdown("other")
    assert client.exec(code, session, timeout=10).text == "(None, None, b'abc', b'')"
    for _ in range(2):
        client.restore(session, "full")
        code = "os.write(v, b'd'), os.write(w, b'e'), os.read(r, 9), os.get_inheritable(w), os.get_blocking(v)"
        assert client.exec(code, session, timeout=10).text == "(1, 1, b'de', False, True)"
        assert (
            client.exec("os.close(v), os.close(w), os.read(r, 9)", session, timeout=10).text == "(None, None, b'')"
        )


def test_a_thread_that_starts_programs(client: Client, session: str) -> None:
    """Wherever a copy is made, it holds up neither the end of a pipe here nor that in a child."""
    code = (
        "import subprocess, threading, time\ndone = []\n"
        "def work():\n    while True: done.append(subprocess.run(['echo', 'x'], capture_output=True).stdout)\n"
        "threading.Thread(target=work, daemon=True).start()"
    )
    show = (
        "n, until = len(done), time.time() + 10\nwhile len(done) < n + 2 and time.time() < until: time.sleep(0.001)\n"
        "len(done) >= n + 2"
    )
    client.exec(code, session, profile="programs")
    for _ in range(10):
        assert client.exec(show, session).text == "True"
    for _ in range(3):
        client.undo(session)
        assert client.exec(show, session).text == "True"


def test_a_connection_is_closed_when_it_is_closed(client: Client, session: str) -> None:
    client.exec(CONNECTION, session, profile="connected")
    client.checkpoint(session, "connected")
    assert client.exec("one.close(), other.recv(9)", session, timeout=10).text == "(None, b'')"


def test_a_port_is_free_when_it_is_closed(client: Client, session: str) -> None:
    client.exec(CONNECTION, session, profile="connected")
    client.checkpoint(session, "connected")
    client.exec("listener.close()", session)

    def again() -> bool:
        """The copy may be about to let go of it."""
        return client.exec("listener = socket.create_server(address)", session).returncode == 0

    wait_until(again, "the port is free")


def test_connections_do_not_come_back(client: Client, session: str) -> None:
    client.exec(CONNECTION, session, profile="connected")
    client.checkpoint(session, "connected")
    client.restore(session, "connected")
    assert "not connected" in client.exec("one.recv(9)", session).stderr.decode()
    assert client.exec("one.gettimeout(), one.getblocking(), one.fileno() > 2", session).text == "(5.0, True, True)"


def test_the_fewest_descriptors_there_may_be(client: Client, session: str) -> None:
    client.exec("import os\nx = 1", session, profile="narrow")
    client.exec("x = 2", session)
    assert client.undo(session).cell == 1
    assert client.exec("os._exit(1)", session).state == "rolled_back"
    client.checkpoint(session, "one")
    client.branch(session, session + ".b", checkpoint="one")
    client.checkpoint(session + ".b", "own")
    client.restore(session + ".b", "own")
    assert client.exec("x", session + ".b").text == client.exec("x", session).text == "1"
    client.shutdown(session + ".b")
    client.reset(session)
    assert client.exec("1", session).text == "1"


@pytest.mark.parametrize("profile", ["default", "narrow"])
def test_no_descriptor_is_left(client: Client, session: str, profile: str) -> None:
    """There is no checkpoint, and all else goes on, even what comes with descriptors."""
    reply = client.exec(FILL, session, profile=profile)
    assert (reply.state, reply.unfaithful) == (
        "kept",
        "a crash now would go back to the beginning: almost all descriptors are open, and a copy needs some",
    )
    with pytest.raises(LairError, match="almost all descriptors are open"):
        client.checkpoint(session, "full")
    reply = client.exec("x + 1  #" + "x" * 100000, session)
    assert (reply.text, reply.state, reply.cause) == ("2", "kept", None)
    assert client.exec("for fd in fds: os.close(fd)", session).unfaithful is None
    assert client.checkpoint(session, "room").cell == 3


def test_branches_share_no_connection(client: Client, session: str) -> None:
    """Not even one that is made with what they found."""
    client.exec(CONNECTION, session, profile="connected")
    client.checkpoint(session, "connected")
    for name in ("a", "b"):
        client.branch(session, f"{session}.{name}", checkpoint="connected")
    assert client.exec("one.connect(address)", session + ".a").returncode == 0
    assert "not connected" in client.exec("one.getpeername()", session + ".b").stderr.decode()
    client.exec("other, _ = listener.accept()", session)
    client.exec("one.close()", session + ".a")
    assert client.exec("other.recv(9)", session, timeout=10).text == "b''"
    for name in ("a", "b"):
        client.shutdown(f"{session}.{name}")

"""The protocol with somebody else's ZeroMQ: libzmq as Node has it, and JeroMQ, which is none of libzmq. pyzmq is in all other tests."""

from __future__ import annotations

import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from daemon import Daemon
from installing import maven_installed, npm_installed
from lair import codec
from lair import messages as m

HERE = Path(__file__).parent
KINDS = ["DEALER", "REQ"]


def converse(command: list[str]) -> None:
    """The client says each line it is given, and prints what comes back."""
    requests = [
        m.Hello(id=1),
        m.Exec(id=2, session="s", code="x = 'y' * 100_000"),
        m.Exec(id=3, session="s", code="x"),
        m.Exec(id=4, session="s", code="#" * 100_000 + "\nlen(x)"),
    ]
    lines = "".join(codec.encode(request).hex() + "\n" for request in requests)
    done = subprocess.run(command, input=lines, capture_output=True, text=True, timeout=50)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    replies = [codec.unpack(bytes.fromhex(line)) for line in done.stdout.split()]
    assert [(kind, fields["id"]) for kind, fields in replies] == [("reply", i) for i in (1, 2, 3, 4)]
    assert replies[2][1]["text"] == repr("y" * 100_000)
    assert replies[3][1]["text"] == "100000"


def pass_on(source: socket.socket, sink: socket.socket) -> None:
    try:
        while data := source.recv(65536):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        pass


@contextmanager
def over_tcp(path: Path) -> Iterator[int]:
    """A port behind which the socket is, for a client that knows no other."""
    listener = socket.create_server(("127.0.0.1", 0))

    def accept() -> None:
        while True:
            try:
                near, _ = listener.accept()
            except OSError:
                return
            far = socket.socket(socket.AF_UNIX)
            far.connect(str(path))
            for pair in ((near, far), (far, near)):
                threading.Thread(target=pass_on, args=pair, daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    yield listener.getsockname()[1]
    listener.close()


@pytest.fixture(scope="module")
def node() -> Path:
    made = npm_installed("zeromq", HERE / "js")
    shutil.copy(HERE / "js/client.mjs", made)
    return made


@pytest.fixture(scope="module")
def java() -> Path:
    return maven_installed("jeromq", HERE / "java")


@pytest.mark.parametrize("kind", KINDS)
def test_zeromq_js(daemon: Daemon, node: Path, kind: str) -> None:
    converse(["node", str(node / "client.mjs"), f"ipc://{daemon.socket}", kind])


@pytest.mark.parametrize("kind", KINDS)
def test_jeromq(daemon: Daemon, java: Path, kind: str) -> None:
    """Its ipc:// is TCP."""
    with over_tcp(daemon.socket) as port:
        converse(["java", "-cp", f"{java}/lib/*", str(HERE / "java/Client.java"), f"tcp://127.0.0.1:{port}", kind])

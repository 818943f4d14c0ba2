"""What another router sends again, since it cannot know that it has been sent: done once. And what is too large for a
datagram."""

from __future__ import annotations

import socket
from typing import Iterator

import pytest

from drive import Interpreter, Template, Warden


@pytest.fixture(scope="module")
def template() -> Iterator[Template]:
    it = Template()
    yield it
    it.close()


@pytest.fixture
def warden(template: Template) -> Iterator[Warden]:
    it = Warden(template)
    yield it
    it.close()


@pytest.fixture
def interpreter(warden: Warden) -> Interpreter:
    return warden.spawn()


def test_a_cell_sent_twice_runs_once(interpreter: Interpreter) -> None:
    interpreter.run("n = 0")
    interpreter.cell += 1
    interpreter.link.send("run", cell=interpreter.cell, code="n += 1\nprint(n)")
    interpreter.link.send_again("run", cell=interpreter.cell, code="n += 1\nprint(n)")
    assert interpreter.finish().out == b"1\n"
    assert interpreter.run("n").text == "1"


def test_a_copy_asked_for_twice(interpreter: Interpreter) -> None:
    channels = [socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET) for _ in range(2)]
    interpreter.link.send("freeze", (channels[0][1].fileno(),), serial=7)
    interpreter.link.send_again("freeze", (channels[1][1].fileno(),), serial=7)
    assert interpreter.next()[1]["serial"] == 7
    assert interpreter.run("6 * 7").text == "42"
    for _, theirs in channels:
        theirs.close()
    channels[1][0].settimeout(10)
    assert channels[1][0].recv(1) == b"", "nobody has taken the second one"
    channels[0][0].settimeout(0.1)
    with pytest.raises(TimeoutError):
        channels[0][0].recv(1)
    for ours, _ in channels:
        ours.close()


def test_a_warden_told_twice(warden: Warden, interpreter: Interpreter) -> None:
    interpreter.run("import signal\nhits = []\nsignal.signal(signal.SIGUSR1, lambda *_: hits.append(1))")
    warden.control.send("signal", serial=1, signal=10)
    warden.control.send_again("signal", serial=1, signal=10)
    warden.control.expect("signalled")
    warden.sweep()
    assert interpreter.run("hits").text == "[1]"


@pytest.mark.parametrize("size", [65000, 65536, 1 << 20, 5 << 20])
def test_letters(interpreter: Interpreter, size: int) -> None:
    assert interpreter.run(f"len('{'x' * size}')").text == str(size)
    assert interpreter.run(f"raise ValueError('y' * {size})").error is not None
    interpreter.start("input()", input=True)
    assert interpreter.next()[0] == "ask"
    interpreter.send("answer", text="z" * size)
    assert interpreter.finish().text is not None


def test_letters_come_and_go(interpreter: Interpreter) -> None:
    """Files sent along are closed again."""
    count = "import os\nlen(os.listdir('/proc/self/fd'))"
    before = interpreter.run(count).text
    for _ in range(20):
        interpreter.run("pass#" + "x" * 100_000)
    assert interpreter.run(count).text == before


def test_letters_need_no_room_for_files(template: Template) -> None:
    """They are written where the limit on the size of files does not count."""
    small = Template(file_size=4096)
    warden = Warden(small)
    interpreter = warden.spawn()
    try:
        assert len(interpreter.run("raise ValueError('y' * 200_000)").error["value"]) > 10_000
        interpreter.start(f"input('?' * {200_000})", input=True)
        kind, body = interpreter.next()
        assert kind == "ask" and len(body["prompt"]) == 200_000
        interpreter.send("answer", eof=True)
        assert interpreter.finish().cause == "error"
    finally:
        warden.close()
        small.close()

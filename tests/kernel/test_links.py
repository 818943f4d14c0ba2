"""What another router sends again, since it cannot know that it has been sent: done once. And what is too large for a
datagram."""

from __future__ import annotations

import socket

import msgpack
import pytest

from drive import Interpreter, Template, Warden


def test_a_cell_sent_twice_runs_once(python: Interpreter) -> None:
    python.run("n = 0")
    python.cell += 1
    cell = msgpack.packb({"code": "n += 1\nprint(n)"})
    python.link.send("run", cell=python.cell, options=cell)
    python.link.send_again("run", cell=python.cell, options=cell)
    assert python.finish().out == b"1\n"
    assert python.run("n").text == "1"


def test_a_copy_asked_for_twice(python: Interpreter) -> None:
    channels = [socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET) for _ in range(2)]
    python.link.send("freeze", (channels[0][1].fileno(),), serial=7)
    python.link.send_again("freeze", (channels[1][1].fileno(),), serial=7)
    assert python.next()[1]["serial"] == 7
    assert python.run("6 * 7").text == "42"
    for _, theirs in channels:
        theirs.close()
    channels[1][0].settimeout(10)
    assert channels[1][0].recv(1) == b"", "nobody has taken the second one"
    channels[0][0].settimeout(0.1)
    with pytest.raises(TimeoutError):
        channels[0][0].recv(1)
    for ours, _ in channels:
        ours.close()


def test_a_warden_told_twice(warden: Warden, python: Interpreter) -> None:
    python.run("import signal\nhits = []\nsignal.signal(signal.SIGUSR1, lambda *_: hits.append(1))")
    warden.control.send("signal", serial=1, signal=10)
    warden.control.send_again("signal", serial=1, signal=10)
    warden.control.expect("signalled")
    warden.sweep()
    assert python.run("hits").text == "[1]"


@pytest.mark.parametrize("size", [65000, 65536, 1 << 20, 5 << 20])
def test_letters(python: Interpreter, size: int) -> None:
    assert python.run(f"len('{'x' * size}')").text == str(size)
    assert python.run(f"raise ValueError('y' * {size})").error is not None
    python.start("input()", input=True)
    assert python.next()[0] == "ask"
    python.send("answer", text="z" * size)
    assert python.finish().text is not None


def test_letters_come_and_go(python: Interpreter) -> None:
    """Files sent along are closed again."""
    count = "import os\nlen(os.listdir('/proc/self/fd'))"
    before = python.run(count).text
    for _ in range(20):
        python.run("pass#" + "x" * 100_000)
    assert python.run(count).text == before


def test_letters_need_no_room_for_files() -> None:
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

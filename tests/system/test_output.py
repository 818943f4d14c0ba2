"""What a cell writes arrives whole, in order and on the right stream, whoever wrote it."""

from __future__ import annotations

import textwrap
import time

import pytest

from lair import Client

SETTINGS = {"profile default": {"preload": "", "spares": "1", "subprocess": "on", "output_size": "64M"}}


def output(client: Client, code: str, session: str | None = None) -> tuple[bytes, bytes]:
    reply = client.exec(textwrap.dedent(code), session)
    assert reply.returncode == 0, reply.stderr.decode(errors="replace")
    return reply.stdout, reply.stderr


@pytest.mark.parametrize(
    "data", [b"\xff\xfe\x00\x01", b"\x80" * 1000, b"caf\xe9\n", bytes(range(256)) * 10, b"\xf0\x9f\x90"]
)
def test_bytes_that_are_no_text(client: Client, data: bytes) -> None:
    assert output(client, f"import os; _ = os.write(1, {data!r})")[0] == data
    assert output(client, f"import sys; _ = sys.stderr.buffer.write({data!r})")[1] == data


def test_every_byte_of_ten_megabytes(client: Client, session: str) -> None:
    whole = b"".join(b"%099d\n" % i for i in range(100_000))
    assert output(client, "for i in range(100_000): print(f'{i:099d}')", session)[0] == whole


def test_every_byte_when_flushed(client: Client, session: str) -> None:
    expected = b"".join(b"%d\n" % i for i in range(100_000))
    started = time.monotonic()
    assert output(client, "for i in range(100_000): print(i, flush=True)", session)[0] == expected
    assert time.monotonic() - started < 5


def test_one_enormous_string(client: Client, session: str) -> None:
    assert output(client, "print('x' * (20 << 20), end='')", session)[0] == b"x" * (20 << 20)


def test_an_unfinished_line_is_flushed_at_the_end(client: Client, session: str) -> None:
    assert output(client, "print('no newline', end='')", session)[0] == b"no newline"
    assert output(client, "import ctypes; _ = ctypes.CDLL(None).printf(b'from C')", session)[0] == b"from C"


def test_output_belongs_to_its_cell(client: Client, session: str) -> None:
    for i in range(50):
        assert output(client, f"print({i})", session)[0] == b"%d\n" % i


def test_what_a_thread_writes_later_comes_with_the_next_cell(client: Client, session: str) -> None:
    output(client, "import threading; threading.Timer(0.1, print, ['later']).start()", session)
    time.sleep(0.4)
    assert output(client, "print('now')", session)[0] == b"later\nnow\n"


def test_logging(client: Client) -> None:
    assert output(client, "import logging; logging.warning('watch out')")[1] == b"WARNING:root:watch out\n"


def test_an_interrupt_reaches_a_writer(client: Client, session: str) -> None:
    reply = client.exec("while True: print('x' * 1000)", session, timeout=0.3)
    assert (reply.returncode, reply.state) == (124, "kept")


def test_a_child_that_keeps_the_pipe_delays_nothing(client: Client, session: str) -> None:
    started = time.monotonic()
    output(client, "import subprocess; p = subprocess.Popen(['sleep', '30']); print('on')", session)
    assert output(client, "print('next')", session)[0] == b"next\n"
    assert time.monotonic() - started < 5

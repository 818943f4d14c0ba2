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


def test_print_c_and_descriptors_in_order(client: Client) -> None:
    code = """
    import ctypes, os, sys
    libc = ctypes.CDLL(None)
    print('1 print')
    libc.puts(b'2 puts')
    os.write(1, b'3 write\\n')
    print('4 print')
    libc.printf(b'5 %s\\n', b'printf')
    sys.stdout.buffer.write(b'6 buffer\\n')
    sys.stdout.write('7 sys\\n')
    """
    expected = b"1 print\n2 puts\n3 write\n4 print\n5 printf\n6 buffer\n7 sys\n"
    assert output(client, code)[0] == expected


def test_child_processes_in_order(client: Client) -> None:
    code = """
    import os, subprocess
    print('1 parent')
    os.system('echo 2 system')
    print('3 parent')
    subprocess.run(['echo', '4 subprocess'])
    print('5 parent')
    if os.fork() == 0:
        print('6 child', flush=True)
        os._exit(0)
    os.wait()
    print('7 parent')
    """
    assert output(client, code)[0].decode().splitlines() == [
        "1 parent", "2 system", "3 parent", "4 subprocess", "5 parent", "6 child", "7 parent",
    ]  # fmt: skip


def test_nothing_is_written_twice_by_a_fork(client: Client) -> None:
    code = """
    import multiprocessing as mp
    print('before', end='')
    p = mp.Process(target=print, args=('child',)); p.start(); p.join()
    print('after')
    """
    assert output(client, code)[0] == b"beforechild\nafter\n"


def test_streams_stay_apart(client: Client) -> None:
    code = """
    import ctypes, os, sys
    print('out'); print('err', file=sys.stderr); os.write(2, b'err2\\n'); os.system('echo err3 >&2')
    sys.stderr.write('no newline')
    """
    assert output(client, code) == (b"out\n", b"err\nerr2\nerr3\nno newline")


def test_threads_lose_nothing(client: Client) -> None:
    code = """
    import threading
    def work(name):
        for i in range(200): print(f'{name}:{i}')
    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for t in threads: t.start()
    for t in threads: t.join()
    """
    lines = output(client, code)[0].decode().split()
    for name in range(8):
        assert [line for line in lines if line.startswith(f"{name}:")] == [f"{name}:{i}" for i in range(200)]


@pytest.mark.parametrize(
    "data", [b"\xff\xfe\x00\x01", b"\x80" * 1000, b"caf\xe9\n", bytes(range(256)) * 10, b"\xf0\x9f\x90"]
)
def test_bytes_that_are_no_text(client: Client, data: bytes) -> None:
    assert output(client, f"import os; _ = os.write(1, {data!r})")[0] == data
    assert output(client, f"import sys; _ = sys.stderr.buffer.write({data!r})")[1] == data


def test_text_of_every_plane(client: Client) -> None:
    text = "naïve Ελλάδα 日本 🐍 \u202e \x1b[31m"
    assert output(client, f"print({text!r})")[0].decode() == text + "\n"


def test_a_surrogate_from_bytes_comes_back_as_bytes(client: Client) -> None:
    assert output(client, "print(b'\\xff'.decode('utf-8', 'surrogateescape'), end='')")[0] == b"\xff"


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


def test_redirection_in_a_cell(client: Client, session: str) -> None:
    code = """
    import contextlib, io
    with contextlib.redirect_stdout(io.StringIO()) as f: print('caught')
    print(repr(f.getvalue()))
    """
    assert output(client, code, session)[0] == b"'caught\\n'\n"
    client.exec("import sys; sys.stdout = open('log', 'w'); print('to the file')", session)
    assert output(client, "print('back')", session)[0] == b"back\n"


def test_stdout_looks_like_a_file(client: Client) -> None:
    code = """
    import sys
    s = sys.stdout
    print(s.fileno(), s.isatty(), s.encoding, s.writable(), s.readable(), s.closed, s.name, s.mode)
    print('a', 'b', sep='', end='!\\n', file=s)
    s.writelines(['x', 'y', '\\n'])
    s.flush()
    """
    assert output(client, code)[0] == b"1 False utf-8 True False False <stdout> w\nab!\nxy\n"


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

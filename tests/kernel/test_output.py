"""Every byte, in order, on the right stream, whoever writes it."""

from __future__ import annotations

import time

import pytest

from drive import Interpreter

ORDER = {
    "print": "print('{}')",
    "write": "sys.stdout.write('{}\\n')",
    "buffer": "sys.stdout.buffer.write(b'{}\\n')",
    "os.write": "os.write(1, b'{}\\n')",
    "os.writev": "os.writev(1, [b'{}', b'\\n'])",
    "printf": "libc.printf(b'%s\\n', b'{}')",
    "puts": "libc.puts(b'{}')",
    "system": "os.system('echo {}')",
    "libc system": "sys.stdout.flush(); libc.system(b'echo {}')",
    "subprocess": "subprocess.run(['echo', '{}'])",
    "spawn": "os.waitpid(os.posix_spawn('/bin/echo', ['echo', '{}'], {{}}), 0)",
    "fork": "pid = os.fork()\nif pid == 0:\n    print('{}', flush=True); os._exit(0)\nos.waitpid(pid, 0)",
    "process": "p = multiprocessing.get_context('fork').Process(target=print, args=('{}',)); p.start(); p.join()",
    "thread": "t = threading.Thread(target=print, args=('{}',)); t.start(); t.join()",
    "raw file": "f = open(1, 'wb', 0, closefd=False); f.write(b'{}\\n')",
    "buffered file": "f = open(1, 'w', closefd=False); f.write('{}\\n'); f.flush()",
    "__stdout__": "print('{}', file=sys.__stdout__)",
    "writelines": "sys.stdout.writelines(['{}', '\\n'])",
}


@pytest.mark.parametrize("stream", [False, True])
def test_order(python: Interpreter, stream: bool) -> None:
    python.run("import ctypes, multiprocessing, os, subprocess, sys, threading\nlibc = ctypes.CDLL(None)")
    code, expected = [], []
    names = list(ORDER)
    for number, name in enumerate(names + names[::-1] + names[::2] + names[1::2]):
        code += [ORDER[name].format(f"{number} {name}"), f"print('after {number}')"]
        expected += [f"{number} {name}", f"after {number}"]
    result = python.run("\n".join(code), stream=stream)
    assert result.err == b"" and result.returncode == 0
    assert result.out.decode().splitlines() == expected


def test_stderr_is_apart(python: Interpreter) -> None:
    result = python.run(
        "import sys, os\nprint('o')\nprint('e', file=sys.stderr)\nos.write(2, b'w\\n')\nos.write(1, b'x\\n')"
    )
    assert (result.out, result.err) == (b"o\nx\n", b"e\nw\n")
    assert python.run("os.system('echo c >&2'); sys.stderr.write('end'); None").err == b"c\nend"


def test_bytes_survive(python: Interpreter) -> None:
    python.run("import sys, os")
    code = "sys.stdout.buffer.write(bytes(range(256)))\nprint(os.fsdecode(b'\\xff\\xfe'))\nprint('é∞😀')"
    result = python.run(code)
    assert result.out == bytes(range(256)) + b"\xff\xfe\n" + "é∞😀\n".encode()
    assert python.run("print('\\ud800', file=sys.stderr)").err == b"\\ud800\n"
    refused = python.run("print('\\ud800')")
    assert refused.error is not None and refused.error["name"] == "UnicodeEncodeError"


def test_much(python: Interpreter) -> None:
    for code, size in (("print('x' * 10_000_000)", 10_000_001), ("for n in range(100_000): print(s)", 10_000_000)):
        python.run("s = 'y' * 99")
        assert len(python.run(code).out) == size
    python.run("import ctypes; libc = ctypes.CDLL(None)")
    result = python.run("for n in range(20000): print(n); libc.printf(b'%d\\n', ctypes.c_int(n))")
    assert result.out.split() == [str(n).encode() for n in range(20000) for _ in "12"]
    result = python.run("import os\nfor n in range(3000): print(n); os.write(1, b'-' * 100 + b'\\n')")
    assert result.out.split() == [line for n in range(3000) for line in (str(n).encode(), b"-" * 100)]


def test_threads_keep_lines_whole(python: Interpreter) -> None:
    python.run("import threading, sys")
    python.run("def f(c):\n    for _ in range(2000): sys.stdout.write(c * 60 + '\\n')")
    result = python.run(
        "ts = [threading.Thread(target=f, args=(c,)) for c in 'abcd']\n"
        "for t in ts: t.start()\nfor t in ts: t.join()"
    )
    lines = result.out.decode().splitlines()
    assert len(lines) == 8000 and set(lines) == {c * 60 for c in "abcd"}


def test_streaming_is_prompt(python: Interpreter) -> None:
    python.start("import time\nprint('now')\ntime.sleep(1.5)\nprint('then')", stream=True)
    time.sleep(0.5)
    assert python.take()[0] == b"now\n"
    assert python.finish().out == b"then\n"


def test_a_forked_child_does_not_repeat(python: Interpreter) -> None:
    result = python.run("import os\nprint('once')\nif os.fork() == 0:\n    import sys; sys.exit(0)\nos.wait()[1]")
    assert (result.out, result.text) == (b"once\n", "0")
    result = python.run(
        "print('again')\npid = os.fork()\nif pid == 0: raise ValueError('child')\nos.waitpid(pid, 0)[1]"
    )
    assert result.out == b"again\n" and result.text == "256"
    assert result.err.count(b"ValueError: child") == 1
    assert (
        python.run("pid = os.fork()\nif pid: os.waitpid(pid, 0)\nelse: print('from the child')").out
        == b"from the child\n"
    )


def test_looks_like_a_text_stream(python: Interpreter) -> None:
    python.run("import io, sys")
    for code in (
        "isinstance(sys.stdout, io.TextIOBase)",
        "isinstance(sys.stdout.buffer, io.BufferedIOBase)",
        "(sys.stdout.fileno(), sys.stderr.fileno()) == (1, 2)",
        "sys.stdout.encoding == 'utf-8' and not sys.stdout.isatty() and not sys.stdout.closed",
        "sys.stdout.writable() and not sys.stdout.readable() and not sys.stdout.seekable()",
        "sys.stdout.write('') == 0 and sys.stdout.buffer.write(b'') == 0",
        "sys.stdout.reconfigure(line_buffering=True) is None and sys.stdout.close() is None",
        "sys.stdout is sys.__stdout__ and sys.stdout.name == '<stdout>' and sys.stdout.mode == 'w'",
    ):
        assert python.run(code).text == "True", code
    for code in ("sys.stdout.read()", "sys.stdout.seek(0)", "sys.stdout.detach()"):
        assert (python.run(code).error or {})["name"] == "UnsupportedOperation"
    assert (python.run("sys.stdout.write(b'x')").error or {})["name"] == "TypeError"
    assert (python.run("sys.stdout.buffer.write('x')").error or {})["name"] == "TypeError"
    assert python.run("with sys.stdout as out: print('in', file=out)").out == b"in\n"


def test_descriptors_are_mended(python: Interpreter) -> None:
    python.run("import os, sys")
    assert python.run("print('before'); os.close(1)").returncode == 0
    assert python.run("print('after')").out.endswith(b"after\n")
    python.run("f = os.open('log', os.O_CREAT | os.O_WRONLY); os.dup2(f, 1); os.dup2(f, 2); print('to the file')")
    assert python.run("print(open('log').read(), end='')").out == b"to the file\n"
    python.run("os.closerange(0, 50)")
    assert python.run("print('still')").out == b"still\n"


@pytest.mark.parametrize(
    "end",
    [
        "os._exit(3)",
        "os.kill(os.getpid(), 9)",
        "ctypes.string_at(0)",
        "os.abort()",
        "ctypes.CDLL(None).exit(4)",
        "ctypes.CDLL(None)._exit(4)",
        "os.execv('/bin/true', ['true'])",
    ],
)
def test_nothing_is_lost_with_an_interpreter(python: Interpreter, end: str) -> None:
    python.start(f"import os, sys, ctypes\nprint('last words')\nprint('errors', file=sys.stderr)\n{end}")
    python.warden.control.expect("exited")
    python.salvage()
    out, err = python.take()
    assert out == b"last words\n" and err.startswith(b"errors\n")


def test_nothing_is_lost_when_the_pipe_is_full(python: Interpreter) -> None:
    python.start("import os\nprint('x' * 130_000, end='')\nos._exit(0)")
    deadline = time.monotonic() + 10
    got = b""
    while len(got) < 130_000 and time.monotonic() < deadline:
        time.sleep(0.01)
        got += python.take()[0]
    python.warden.control.expect("exited")
    assert len(got + python.take()[0]) == 130_000


def test_interrupt_while_the_pipe_is_full(python: Interpreter) -> None:
    python.start("print('x' * 10_000_000)")
    time.sleep(0.3)
    python.interrupt()
    result = python.finish()
    assert (result.returncode, result.cause) == (130, "interrupt")
    assert 0 < len(result.out) < 10_000_000
    assert python.run("print('next')").out == b"next\n"


def test_non_blocking_pipe(python: Interpreter) -> None:
    python.run("import os; os.set_blocking(1, False)")
    assert len(python.run("print('x' * 1_000_000)").out) == 1_000_001

"""Which files a cell has created or changed, whoever did it."""

from __future__ import annotations

import os
import time

import pytest

from drive import Interpreter, Result


def told(result: Result) -> dict[str, tuple[str, int]]:
    assert result.returncode == 0, result.err.decode()
    return {os.fsdecode(a["path"]): (a["change"], a["size"]) for a in result.artifacts}


def test_created_and_modified(python: Interpreter) -> None:
    assert told(python.run("_ = open('a.csv', 'w').write('1,2')")) == {"a.csv": ("created", 3)}
    assert told(python.run("_ = open('a.csv', 'a').write('x')")) == {"a.csv": ("modified", 4)}
    assert told(python.run("_ = open('a.csv').read()")) == {}
    assert told(python.run("import os; os.makedirs('d/e'); _ = open('d/e/b.png', 'wb').write(b'12')")) == {
        "d/e/b.png": ("created", 2)
    }
    assert told(python.run("os.rename('a.csv', 'd/c.csv')")) == {"d/c.csv": ("modified", 4)}
    assert told(python.run("os.remove('d/c.csv')")) == {}


def test_type(python: Interpreter) -> None:
    result = python.run(
        "for n in ('a.CSV', 'b.tar.gz', 'c.json', 'noext', 'd.svg', '.hidden'): open(n, 'w').close()"
    )
    assert {a["path"]: a["type"] for a in result.artifacts} == {
        b"a.CSV": "text/csv",
        b"b.tar.gz": "application/gzip",
        b"c.json": "application/json",
        b"noext": "application/octet-stream",
        b"d.svg": "image/svg+xml",
        b".hidden": "application/octet-stream",
    }


@pytest.mark.parametrize(
    "code",
    [
        "import subprocess; subprocess.run('echo hi > f.txt', shell=True)",
        "import os\nif os.fork() == 0:\n    open('f.txt', 'w').write('hi\\n'); os._exit(0)\n_ = os.wait()",
        "import ctypes\nc = ctypes.CDLL(None)\nc.fopen.restype = ctypes.c_void_p\n"
        "f = ctypes.c_void_p(c.fopen(b'f.txt', b'w')); c.fputs(b'hi\\n', f); c.fclose(f)",
        "import sqlite3; d = sqlite3.connect('f.txt'); d.execute('create table t (x)'); d.commit()",
        "import mmap; f = open('f.txt', 'w+b'); f.truncate(3); m = mmap.mmap(f.fileno(), 3); m[:] = b'hi\\n'",
        "import os; os.close(os.open('f.txt', os.O_CREAT | os.O_WRONLY))",
        "import threading; t = threading.Thread(target=lambda: open('f.txt', 'w')); t.start(); t.join()",
        "import zipfile; zipfile.ZipFile('f.txt', 'w').close()",
        "from pathlib import Path; _ = Path('f.txt').write_text('x')",
    ],
)
def test_whoever_writes(python: Interpreter, code: str) -> None:
    assert [a["path"] for a in python.run(code).artifacts] == [b"f.txt"]


def test_the_shortest_cells(python: Interpreter) -> None:
    """Ones that end before a look is worth its time, unless something was opened."""
    python.run("f = open('f', 'w')\nimport os")
    for i in range(50):
        files = told(python.run(f"os.close(os.open('n{i}', 65))"))
        files.pop(f"n{i - 1}", None)  # made in the last tick of the clock before, it may be told once more
        assert files == {f"n{i}": ("created", 0)}


def test_cells_in_quick_succession_have_each_its_own(python: Interpreter) -> None:
    for i in range(30):
        assert told(python.run(f"open('f{i}', 'w').close()")) == {f"f{i}": ("created", 0)}
        assert told(python.run("import time; time.sleep(0.0005)")) == {}


def test_what_changed_before_is_not_told(python: Interpreter) -> None:
    with open(f"{python.warden.workspace}/put", "w") as file:
        file.write("x")
    time.sleep(0.02)
    assert told(python.run("import time; time.sleep(0.01)")) == {}


def test_links_and_what_is_not_a_file(python: Interpreter) -> None:
    result = python.run(
        "import os\nos.symlink('/etc', 'etc'); os.symlink('/etc/passwd', 'p'); os.mkfifo('fifo'); os.mkdir('dir')\n"
        "os.mkdir('.branches'); open('.branches/x', 'w').close()\n"
        "os.mkdir('__pycache__'); open('__pycache__/x', 'w').close()\nos.symlink('.', 'loop')"
    )
    assert told(result) == {}


def test_names_are_bytes(python: Interpreter) -> None:
    result = python.run("open(b'a\\xff\\n', 'w').close(); open('ü', 'w').close()")
    assert sorted(a["path"] for a in result.artifacts) == [b"a\xff\n", "ü".encode()]


def test_more_than_are_told(python: Interpreter) -> None:
    result = python.run("import os; os.mkdir('m')\nfor i in range(300): open(f'm/{i}', 'w').close()")
    assert len(result.artifacts) == 256 and result.artifacts_more
    assert not python.run("open('last', 'w').close()").artifacts_more


def test_deeper_than_is_looked(python: Interpreter) -> None:
    result = python.run(
        "import os\nfor i in range(100): os.mkdir('d'); os.chdir('d')\nopen('f', 'w').close()\n"
        "for i in range(100): os.chdir('..')"
    )
    assert told(result) == {"d/" * 100 + "f": ("created", 0)} and not result.artifacts_more
    result = python.run(
        "for i in range(25): os.mkdir('d' * 200); os.chdir('d' * 200)\nopen('f', 'w').close()\n"
        "for i in range(25): os.chdir('..')"
    )
    assert result.artifacts == [] and result.artifacts_more


def test_ten_thousand_files(python: Interpreter) -> None:
    python.run("for i in range(10_000): open(str(i), 'w').close()")
    assert told(python.run("_ = open('7777', 'w').write('!')")) == {"7777": ("modified", 1)}

    def may_take(seconds: float, code: str) -> bool:
        """Once at least: others may have the processor for a while."""
        deadline = time.monotonic() + 20
        took = seconds + 1
        while took > seconds and time.monotonic() < deadline:
            started = time.perf_counter()
            assert python.run(code).artifacts == []
            took = time.perf_counter() - started
        return took <= seconds

    assert may_take(0.005, "1+1"), "nobody looks after a cell that has done nothing"
    assert may_take(0.25, "x = sum(range(10_000))")


def test_in_an_error_and_after_an_interrupt(python: Interpreter) -> None:
    result = python.run("open('f', 'w').close(); 1/0")
    assert [a["path"] for a in result.artifacts] == [b"f"] and result.cause == "error"

"""The Python in a session behaves as a prompt and a script would."""

from __future__ import annotations

import textwrap

import pytest

from lair import Client


def run(client: Client, session: str, code: str) -> str:
    """A cell that must end well; what it wrote to stdout."""
    reply = client.exec(textwrap.dedent(code), session)
    assert reply.returncode == 0, reply.stderr.decode()
    return reply.stdout.decode()


# ---- the last expression ----


LONG = "class Long:\n def __repr__(self): return {} * 'x'\n"


@pytest.mark.parametrize("code", [LONG.format(1_040_000) + "Long()", "'x' * 1_039_998"])
def test_a_long_text(client: Client, code: str) -> None:
    """As long as text_size lets it be."""
    assert len(client.exec(code).text or "") == 1_040_000


def test_a_text_that_is_too_long(client: Client) -> None:
    text = client.exec(LONG.format(3_000_000) + "Long()").text
    assert text is not None and (1 << 20) - 100 < len(text) < 1 << 20
    assert text.endswith("... (1951472 bytes more)")


@pytest.mark.parametrize(
    "body", ["return 5", "import os; os._exit(3)", "import sys; sys.exit(3)", "while True: pass"]
)
def test_a_repr_that_misbehaves(client: Client, session: str, body: str) -> None:
    reply = client.exec(f"class C:\n def __repr__(self): {body}\nC()", session, timeout=0.5)
    assert reply.returncode in (1, 3, 124)
    assert client.exec("1", session).text == "1"


def test_surrogates_do_not_break_the_reply(client: Client, session: str) -> None:
    client.exec("'\\ud800'", session)
    reply = client.exec("class C:\n def __repr__(self): return '\\ud800'\nC()", session)
    assert reply.text is not None
    assert client.exec("raise ValueError('\\ud800')", session).returncode == 1
    assert client.exec("print('\\ud800')", session).returncode in (0, 1)
    assert client.exec("1", session).text == "1"


# ---- __main__ ----


# ---- await ----


def test_a_late_await(client: Client, session: str) -> None:
    reply = client.exec("import asyncio\nawait asyncio.sleep(60)", session, timeout=0.3)
    assert (reply.returncode, reply.state) == (124, "kept")
    assert client.exec("await asyncio.sleep(0, 1)", session).text == "1"


# ---- tracebacks ----


def test_a_syntax_error_runs_nothing(client: Client, session: str) -> None:
    client.exec("x = 1\nprint('ran')\n)", session)
    assert client.exec("'x' in globals()", session).text == "False"


def test_an_exception_in_a_library_shows_its_frames(client: Client) -> None:
    traceback = client.exec("import json\njson.loads('{')").error["traceback"]
    assert "json/decoder.py" in traceback
    assert "lair" not in traceback


# ---- things a script can do ----


@pytest.mark.parametrize("code", ["x = 1if True else 2", "1or 2"])
def test_a_warning_of_the_compiler_comes_once(client: Client, code: str) -> None:
    """Or never, from an old Python."""
    assert client.exec(code).stderr.count(b"invalid decimal literal") <= 1


def test_help_of_what_a_cell_defined(client: Client, session: str) -> None:
    client.exec("def f(x):\n    'Twice x.'\n    return 2 * x", session)
    assert b"Twice x." in client.exec("help(f)", session).stdout


def test_pickle(client: Client, session: str) -> None:
    client.exec("class P:\n def __init__(self): self.x = 5\ndef f(): return 6", session)
    assert client.exec("import pickle; pickle.loads(pickle.dumps(P())).x", session).text == "5"
    assert client.exec("pickle.loads(pickle.dumps(f))()", session).text == "6"


def test_dataclasses_enums_typing(client: Client, session: str) -> None:
    code = """
    from __future__ import annotations
    import dataclasses, enum, typing
    @dataclasses.dataclass(slots=True)
    class D:
        x: int
        y: list[D] = dataclasses.field(default_factory=list)
    class E(enum.Enum):
        A = 1
    """
    run(client, session, code)
    assert client.exec("D(1)", session).text == "D(x=1, y=[])"
    assert client.exec("E.A, typing.get_type_hints(D)['x']", session).text == "(<E.A: 1>, <class 'int'>)"


def test_future_imports_stay_with_their_cell(client: Client, session: str) -> None:
    client.exec("from __future__ import annotations\ndef f(x: undefined): pass", session)
    assert client.exec("f.__annotations__", session).text == "{'x': 'undefined'}"


def test_threads(client: Client, session: str) -> None:
    code = """
    import threading
    results = []
    threads = [threading.Thread(target=results.append, args=(i,)) for i in range(8)]
    for t in threads: t.start()
    for t in threads: t.join()
    print(sorted(results))
    """
    assert run(client, session, code) == "[0, 1, 2, 3, 4, 5, 6, 7]\n"


def test_threads_go_on_between_cells(client: Client, session: str) -> None:
    run(
        client,
        session,
        """
        import threading, time
        n = 0
        def count():
            global n
            while n < 1000: n += 1; time.sleep(0.001)
        threading.Thread(target=count, daemon=True).start()
        """,
    )
    import time

    time.sleep(0.2)
    assert int(client.exec("n", session).text or 0) > 20


def test_an_exception_in_a_thread(client: Client) -> None:
    reply = client.exec("import threading\nt = threading.Thread(target=lambda: 1/0); t.start(); t.join()")
    assert reply.returncode == 0
    assert b"ZeroDivisionError" in reply.stderr


def test_executors(client: Client) -> None:
    code = "from concurrent.futures import ThreadPoolExecutor as T\nlist(T(4).map(lambda x: x * x, range(5)))"
    assert client.exec(code).text == "[0, 1, 4, 9, 16]"


def test_multiprocessing(client: Client, session: str) -> None:
    run(client, session, "import multiprocessing as mp\ndef square(x): return x * x")
    assert client.exec("with mp.Pool(2) as pool: print(pool.map(square, range(4)))", session).stdout == (
        b"[0, 1, 4, 9]\n"
    )
    code = """
    queue = mp.Queue()
    process = mp.Process(target=queue.put, args=('hello',))
    process.start(); value = queue.get(timeout=10); process.join()
    value, process.exitcode
    """
    assert client.exec(textwrap.dedent(code), session).text == "('hello', 0)"


def test_process_pool_executor(client: Client, session: str) -> None:
    run(client, session, "from concurrent.futures import ProcessPoolExecutor\ndef square(x): return x * x")
    assert (
        client.exec("with ProcessPoolExecutor(2) as p: print(list(p.map(square, [3])))", session).stdout == b"[9]\n"
    )


def test_sqlite_tempfile_zip(client: Client, session: str) -> None:
    code = """
    import sqlite3, tempfile, zipfile, csv, io
    db = sqlite3.connect('my.db')
    db.execute('create table t(x)'); db.execute('insert into t values (4)'); db.commit()
    print(db.execute('select x from t').fetchall())
    with tempfile.NamedTemporaryFile('w+') as f: f.write('x'); f.seek(0); print(f.read())
    with zipfile.ZipFile('z.zip', 'w') as z: z.writestr('a', 'b')
    print(zipfile.ZipFile('z.zip').namelist())
    """
    assert run(client, session, code) == "[(4,)]\nx\n['a']\n"


def test_recursion_limit_is_python_s(client: Client) -> None:
    assert client.exec("import sys; sys.getrecursionlimit()").text == "1000"


def test_randomness_differs_between_sessions(client: Client) -> None:
    code = "import random, os, uuid; (random.random(), os.urandom(4), uuid.uuid4())"
    assert len({client.exec(code).text for _ in range(5)}) == 5


def test_multiprocessing_keys_differ_between_sessions(client: Client) -> None:
    """Who has the key may have a pickle loaded, where sessions reach each other."""
    keys = {client.exec("import multiprocessing as m\nbytes(m.current_process().authkey)").text for _ in range(4)}
    assert len(keys) == 4 and None not in keys


def test_settrace_and_profiling(client: Client, session: str) -> None:
    assert client.exec("import cProfile; cProfile.run('sum(range(10))')", session).returncode == 0
    client.exec("import sys; sys.settrace(lambda *a: None); sys.setprofile(lambda *a: None)", session)
    assert client.exec("1", session).text == "1"


def test_atexit_does_not_run_between_cells(client: Client, session: str) -> None:
    client.exec("import atexit; atexit.register(print, 'bye')", session)
    assert client.exec("1", session).stdout == b""


def test_signals_can_be_used(client: Client, session: str) -> None:
    code = """
    import signal, time
    def alarm(*_): raise TimeoutError('alarm')
    signal.signal(signal.SIGALRM, alarm)
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    try: time.sleep(5)
    except TimeoutError as e: print(e)
    """
    assert run(client, session, code) == "alarm\n"


def test_a_cell_that_awaits_runs_in_the_loop_from_its_first_line(client: Client, session: str) -> None:
    code = "import asyncio\nasync def f(): return 5\ntask = asyncio.create_task(f())\nawait task"
    assert client.exec(code, session).text == "5"
    reply = client.exec("x = 1\nawait f()\nx / 0", session)
    assert 'File "<cell 2>", line 3' in reply.stderr.decode()
    assert reply.stderr.count(b"File ") == 1

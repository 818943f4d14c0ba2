"""What a cell means: values, errors, exits, sources, and how little of a session a cell can break."""

from __future__ import annotations

import sys
import textwrap

import pytest

from drive import Interpreter


def cell(text: str) -> str:
    return textwrap.dedent(text).strip("\n")


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("1 + 1", "2"),
        ("x = 1", None),
        ("None", None),
        ("", None),
        ("# nothing", None),
        ("x = 1; x", "1"),
        ("x = 20\nx += 1\nx * 2", "42"),
        ("for n in range(3): n", None),
        ("if True:\n    5", None),
        ("'a\\n'", "'a\\n'"),
        ("*range(3), 9", "(0, 1, 2, 9)"),
        ("def f():\n    return 7\nf()  # seven", "7"),
        ("(1,\n 2)", "(1, 2)"),
        ("1;", "1"),
        ("1; 2; 3", "3"),
        ("\n\n  \n", None),
        ("\\\n1", "1"),
        ("'''a\nb'''", r"'a\nb'"),
        ("'ü🐍'", "'ü🐍'"),
        ("...", "Ellipsis"),
        ("x: int = 3\nx", "3"),
        ("(y := 7)", "7"),
        ("'\\udc80'", "'\\udc80'"),
        ("lambda: 0", None),
        ("__name__", "'__main__'"),
        ("sorted(k for k in globals() if not k.startswith('__'))", "[]"),
    ],
)
def test_value(python: Interpreter, code: str, text: str | None) -> None:
    result = python.run(code)
    assert (result.returncode, result.err) == (0, b"")
    if code != "lambda: 0":
        assert result.text == text


def test_state_stays(python: Interpreter) -> None:
    python.run("x = 41")
    assert python.run("x + 1").text == "42"
    assert python.run("_ + 1").text == "43"
    assert python.run("None").text is None
    assert python.run("_").text == "43"


def test_long_text_is_cut(python: Interpreter) -> None:
    result = python.run("'é' * 100000")
    assert result.text is not None
    assert len(result.text.encode()) <= 65536
    assert result.text.startswith("'éé") and result.text.endswith("bytes more)")


def test_repr_that_raises(python: Interpreter) -> None:
    result = python.run("class A:\n    def __repr__(self): return 1 / 0\nA()")
    assert result.cause == "error" and result.returncode == 1 and result.text is None
    assert result.error is not None and result.error["name"] == "ZeroDivisionError"


def test_future_imports_stay(python: Interpreter) -> None:
    python.run("from __future__ import annotations")
    assert python.run("def f(x: nowhere): pass\nf.__annotations__").text == "{'x': 'nowhere'}"


def test_traceback_is_pythons_own(python: Interpreter) -> None:
    python.run("def f(n):\n    return 1 / n")
    result = python.run("x = 1\nf(0)")
    expected = cell("""
        Traceback (most recent call last):
          File "<cell 2>", line 2, in <module>
            f(0)
            ~^^^
          File "<cell 1>", line 2, in f
            return 1 / n
                   ~~^~~
        ZeroDivisionError: division by zero
    """)
    if sys.version_info < (3, 13):
        expected = expected.replace("    ~^^^\n", "")
    assert result.err.decode() == expected + "\n"
    assert result.error is not None
    assert (result.error["name"], result.error["value"]) == ("ZeroDivisionError", "division by zero")
    assert result.error["traceback"] == expected + "\n"
    assert result.error["frames"] == [
        {"cell": 2, "line": 2, "column": 0, "function": "<module>", "source": "f(0)"},
        {"cell": 1, "line": 2, "column": 11, "function": "f", "source": "return 1 / n"},
    ]
    assert (result.returncode, result.cause, result.text) == (1, "error", None)


def test_syntax_error_points(python: Interpreter) -> None:
    for code, line in (("x = = 1", 1), ("y = 1\nx = = 1", 2), ("x = 1; y = = 2", 1)):
        result = python.run(code)
        assert result.error is not None and result.error["name"] == "SyntaxError"
        assert f'File "<cell {python.cell}>", line {line}'.encode() in result.err
        assert b"^" in result.err and b"Traceback" not in result.err
    assert "null bytes" in (python.run("1\0").error or {})["value"]


@pytest.mark.parametrize(
    ("code", "name", "said"),
    [
        ("def f(): f()\nf()", "RecursionError", "Previous line repeated"),
        ("raise MemoryError", "MemoryError", "MemoryError"),
        ("class E(Exception):\n    def __str__(self): raise self\nraise E", "E", "str() failed"),
        ("class E(Exception):\n    def __str__(self): return 5\nraise E", "E", "str() failed"),
        ("try: 1/0\nexcept Exception as e: raise KeyError('k') from e", "KeyError", "direct cause"),
        ("raise ExceptionGroup('many', [ValueError(1), TypeError(2)])", "ExceptionGroup", "TypeError: 2"),
        ("e = ValueError(); e.__cause__ = e; raise e", "ValueError", "ValueError"),
        ("raise type('T', (BaseException,), {})", "T", "T"),
        (
            "class M(type):\n    @property\n    def __name__(c): 1/0\n"
            "class E(Exception, metaclass=M): pass\nraise E",
            "E",
            "E",
        ),
        ("raise ValueError('x' * 10**7)", "ValueError", "characters left out"),
        ("raise ValueError('\\udc80')", "ValueError", "\\udc80"),
        ("raise GeneratorExit", "GeneratorExit", "GeneratorExit"),
        ("raise StopIteration(3)", "StopIteration", "StopIteration: 3"),
        ("class E(BaseException): pass\nraise E('base')", "E", "E: base"),
        ("x = [1] * (1 << 60)", "MemoryError", "MemoryError"),
        ("assert 1 == 2, 'not so'", "AssertionError", "AssertionError: not so"),
        ("import nonesuch", "ModuleNotFoundError", "No module named 'nonesuch'"),
        ("if True:", "IndentationError", "expected an indented block"),
        ("  x = 1\n y = 2", "IndentationError", "unexpected indent"),
        ("(", "SyntaxError", "never closed"),
        ("'abc", "SyntaxError", "unterminated string"),
        ("return 1", "SyntaxError", "outside function"),
    ],
)
def test_errors_are_contained(python: Interpreter, code: str, name: str, said: str) -> None:
    result = python.run(code)
    assert result.error is not None
    assert result.error["name"] == name and said in result.error["traceback"]
    assert len(result.err) < 1 << 20
    assert (result.returncode, result.cause) == (1, "error")
    assert python.run("1").text == "1"


@pytest.mark.parametrize(
    ("code", "status", "said"),
    [
        ("import sys; sys.exit()", 0, b""),
        ("import sys; sys.exit(3)", 3, b""),
        ("import sys; sys.exit(-1)", 255, b""),
        ("import sys; sys.exit(True)", 1, b""),
        ("import sys; sys.exit('gone wrong')", 1, b"gone wrong\n"),
        ("exit(4)", 4, b""),
        ("raise SystemExit((1, 2))", 1, b"(1, 2)\n"),
        ("import asyncio\nawait asyncio.sleep(0)\nraise SystemExit(5)", 5, b""),
    ],
)
def test_exit_ends_the_cell(python: Interpreter, code: str, status: int, said: bytes) -> None:
    result = python.run("x = 5")
    result = python.run(code)
    assert (result.returncode, result.cause, result.err, result.error) == (status, "exit", said, None)
    assert python.run("x").text == "5"


def test_await(python: Interpreter) -> None:
    assert python.run("import asyncio\nawait asyncio.sleep(0.01, 7)").text == "7"
    python.run("async def f(n):\n    await asyncio.sleep(0)\n    return 1 / n")
    assert python.run("await f(2)").text == "0.5"
    assert python.run("x = await f(4)\nx").text == "0.25"
    assert python.run("[await f(n) for n in (1, 2)]").text == "[1.0, 0.5]"
    assert python.run("async with asyncio.timeout(1):\n    y = 3\ny").text == "3"
    python.run("async def numbers():\n    for n in range(3): yield n")
    assert python.run("[n async for n in numbers()]").text == "[0, 1, 2]"
    assert python.run("asyncio.run(f(8))").text == "0.125"
    assert python.run("await f(2)").text == "0.5"
    python.run("task = asyncio.ensure_future(f(5), loop=asyncio.get_event_loop_policy().get_event_loop())")
    assert python.run("await task").text == "0.2"


def test_await_shows_no_loop(python: Interpreter) -> None:
    result = python.run("import asyncio\nasync def f():\n    await asyncio.sleep(0)\n    1 / 0\nawait f()")
    assert result.error is not None
    assert result.error["traceback"].count("File ") == 2
    assert 'File "<cell 1>", line 5, in <module>' in result.error["traceback"]


def test_sources_are_found(python: Interpreter) -> None:
    python.run("import inspect")
    python.run("def f():\n    return 'f'")
    python.run("class A:\n    x = 1\n\nclass B(A):\n    def m(self):\n        return 2")
    python.run("def f():\n    return 'second'")
    assert python.run("print(inspect.getsource(f), end='')").out == b"def f():\n    return 'second'\n"
    assert python.run("print(inspect.getsource(B), end='')").out.startswith(b"class B(A):\n    def m(self)")
    assert python.run("print(inspect.getsource(A), end='')").out == b"class A:\n    x = 1\n"
    assert python.run("print(inspect.getsource(B.m), end='')").out == b"    def m(self):\n        return 2\n"
    assert python.run("inspect.getsource(inspect.getsource)[:3]").text == "'def'"


def test_main_is_real(python: Interpreter) -> None:
    python.run("import pickle, dataclasses, sys")
    python.run("@dataclasses.dataclass\nclass P:\n    x: int")
    assert python.run("pickle.loads(pickle.dumps(P(3)))").text == "P(x=3)"
    assert python.run("sys.modules['__main__'].P is P").text == "True"
    assert python.run("sys.argv").text == "['']"


def test_warnings_once_a_line(python: Interpreter) -> None:
    code = "import warnings\nfor _ in range(3): warnings.warn('old', DeprecationWarning)"
    for number in (1, 2):
        result = python.run(code)
        assert result.err.decode() == (
            f"<cell {number}>:2: DeprecationWarning: old\n"
            "  for _ in range(3): warnings.warn('old', DeprecationWarning)\n"
        )
    assert python.run("1 is 1").err.count(b"SyntaxWarning") == 1


def test_threads_say_what_ends_them(python: Interpreter) -> None:
    code = cell("""
        import threading, sys
        def f():
            raise ValueError('in a thread')
        t = threading.Thread(target=f, name='worker'); t.start(); t.join()
        t = threading.Thread(target=sys.exit); t.start(); t.join()
        class D:
            def __del__(self): 1 / 0
        D()
        'end'
    """)
    result = python.run(code)
    assert result.text == "'end'" and result.returncode == 0
    assert b"Exception in thread worker:\nTraceback" in result.err
    assert b"raise ValueError('in a thread')\nValueError: in a thread\n" in result.err
    assert b"Exception ignored in" in result.err and b"ZeroDivisionError" in result.err
    assert b"SystemExit" not in result.err


def test_threads_run_between_cells(python: Interpreter) -> None:
    python.run("import threading, time\ndone = threading.Event()")
    python.run("threading.Thread(target=lambda: (time.sleep(0.05), done.set())).start()")
    assert python.run("done.wait(5)").text == "True"


def test_help(python: Interpreter) -> None:
    assert python.run("help(len)").out.startswith(b"Help on built-in function len")
    assert b"Welcome to Python" in python.run("help()").out


@pytest.mark.parametrize(
    "harm",
    [
        "import sys; sys.modules.clear()",
        "import builtins; builtins.__dict__.clear()",
        "import sys; sys.stdout = sys.stderr = sys.stdin = None",
        "import sys; del sys.stdout, sys.stderr",
        "import sys; sys.__dict__.clear()",
        "import os; os.close(1); os.close(2); os.close(0)",
        "import os; os.dup2(os.open('/dev/null', os.O_RDWR), 1)",
        "import sys; sys.stdout.close(); sys.stderr.close()",
        "globals().clear()",
        "import linecache; linecache.cache = None; linecache.getlines = None",
        "import linecache; linecache.clearcache()",
        "import traceback; traceback.TracebackException.format = None",
        "import ast; ast.Expr = ast.parse = None",
        "import sys; sys.setrecursionlimit(60)",
        "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)",
        "import os; os.chdir('/'); os.environ.clear()",
        "import sys; sys.path.clear(); sys.meta_path.clear()",
        "import gc; gc.disable(); gc.unfreeze(); gc.collect()",
        "import asyncio; asyncio.new_event_loop = None; asyncio.set_event_loop = None",
        "import sys; sys.excepthook = sys.displayhook = None",
        "import warnings; warnings.simplefilter('error')",
        "_ = __annotations__ = __warningregistry__ = 7",
        "import io; io.TextIOBase = io.open = None",
    ],
)
def test_machinery_is_out_of_reach(python: Interpreter, harm: str) -> None:
    python.run("x = 20")
    python.run(harm)
    assert python.run("20 + 1").text == "21"
    assert python.run("y = 4\ny").text == "4"
    failed = python.run("nowhere")
    assert failed.cause == "error" and failed.error is not None and failed.error["name"] == "NameError"
    assert b"NameError" in failed.err


def test_redirection_lasts_a_cell(python: Interpreter) -> None:
    python.run("import sys, io\nmine = sys.stdout = io.StringIO()\nprint('kept')")
    assert python.run("print('shown')").out == b"shown\n"
    assert python.run("mine.getvalue()").text == "'kept\\n'"


def test_workspace_is_home(python: Interpreter) -> None:
    workspace = python.warden.workspace
    assert python.run("import os; os.getcwd()").text == repr(workspace)
    assert python.run("os.path.expanduser('~')").text == repr(workspace)
    python.run("open('mine.py', 'w').write('x = 7')")
    assert python.run("import mine; mine.x").text == "7"
    assert python.run("oct(os.stat('mine.py').st_mode & 0o777)").text == "'0o600'"

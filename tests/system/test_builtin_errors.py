"""What an exception of the system is in a session: the same as in a plain Python, which is asked the same."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator

import pytest

from daemon import Daemon
from lair import Client

SETTINGS = {"profile connects": {"network": "tcp:443"}}

# Each is a program whose last line is an expression. Nothing in them is refused, inside or outside.
SAME = {
    "a keyword of __init__": """
class E(OSError):
    def __init__(self, *args, **kwargs):
        self.request = kwargs.pop("request", None)
        super().__init__(*args, **kwargs)
e = E("x", request=1)
about(e), e.request""",
    "a keyword of __init__, with an errno and a path": """
class E(OSError):
    def __init__(self, *args, request=None):
        self.request = request
        super().__init__(*args)
e = E(1, "mine", "/root", request=2)
about(e), e.request""",
    "a keyword of __init__ that passes nothing on": """
class E(OSError):
    def __init__(self, code=3): self.code = code
about(E()), about(E(code=4)), E(code=5).code""",
    "a keyword of __new__": """
class E(OSError):
    def __new__(cls, *args, name=None):
        self = super().__new__(cls, *args)
        self.name = name
        return self
attempt(lambda: E(2, "x", name="n")), attempt(lambda: E(2, "x").name)""",
    "__new__ and __init__ with keywords": """
class E(OSError):
    def __new__(cls, number, *, path): return super().__new__(cls, number, "text", path)
    def __init__(self, number, *, path): self.path = path
e = E(13, path="p")
about(e), e.path""",
    "no keywords without either": """
class E(OSError): pass
attempt(lambda: E("x", request=1)), attempt(lambda: OSError("x", errno=1)), attempt(lambda: PermissionError(a=1))""",
    "more than one base": """
class A(OSError):
    def __init__(self, *args, response=None): self.response = response; super().__init__(*args)
class B(A, ValueError): pass
class C(PermissionError, KeyError):
    def __init__(self, *args, key=None): self.key = key
about(B("x", response=5)), B("x", response=6).response, about(C(1, "x", key=7)), C(key=8).key""",
    "slots": """
class E(OSError):
    __slots__ = ("request",)
    def __init__(self, *args, request=None): self.request = request; super().__init__(*args)
e = E(5, "x", request=9)
about(e), e.request, E.__slots__, hasattr(e, "__dict__")""",
    "a class made by type()": """
E = type("E", (ConnectionError,), {"__init__": lambda self, *a, k=0: ConnectionError.__init__(self, *a)})
about(E("x", k=1)), about(E(104, "reset"))""",
    "errno chooses the type": """
import errno
[(n, type(OSError(n, "x")).__name__) for n in sorted(errno.errorcode)]""",
    "errno does not choose the type of others": """
class E(OSError): pass
about(E(2, "x")), about(ConnectionError(2, "x")), about(PermissionError(2, "x")), OSError(2, "x") == OSError(2, "x")""",
    "any number of arguments": """
[about(kind(*(1, "text", "one", None, "two", 6)[:n])) for n in range(7) for kind in (OSError, PermissionError, BlockingIOError)]""",
    "arguments of other kinds": """
[about(OSError(*args)) for args in ((None, None), ("1", "x"), (1, None), (True, 2, 3), (1, "x", b"p"), (13, "x", 5), ((1, 2),))]""",
    "errno of the last failure is no reason": """
import ctypes, errno, os
kinds, place = [], ctypes.CDLL(None).__errno_location
place.restype = ctypes.POINTER(ctypes.c_int)
for number in (errno.EPERM, errno.EACCES, errno.EROFS, errno.ENOSYS):
    for text in ("mine", os.strerror(number)):
        for more in ((), ("own",), ("/root/own",)):
            place()[0] = number
            kinds.append(about(eval(f"OSError({', '.join(map(repr, (number, text, *more)))})")))
kinds""",
    "attributes are set": """
e = OSError(1, "x", "f")
e.errno, e.strerror, e.filename, e.filename2 = 2, "y", "g", "h"
e.own = 1
about(e), vars(e)""",
    "pickled": """
import pickle, __main__
class E(OSError):
    def __init__(self, *args, request=None): self.request = request; super().__init__(*args)
__main__.E = E; E.__module__ = "__main__"; E.__qualname__ = "E"
made = [E("x", request=1), E(1, "x", "f", request=2), OSError(1, "x"), OSError(13, "x", "f", None, "g"), PermissionError("x")]
[(about(again), vars(again)) for e in made for n in range(6) for again in [pickle.loads(pickle.dumps(e, n))]]""",
    "copied": """
import copy
class E(OSError):
    def __init__(self, *args, request=None): self.request = request; super().__init__(*args)
[(about(f(e)), vars(f(e))) for e in (E("x", request=1), OSError(1, "x", "f"), OSError(2, "y")) for f in (copy.copy, copy.deepcopy)]""",
    "raised by C": """
import os, socket, mmap
open("here", "w").close()
[attempt(act) for act in (
    lambda: open("missing"), lambda: open(b"missing"), lambda: os.listdir("missing"), lambda: os.rename("missing", "other"),
    lambda: os.mkdir("here"), lambda: os.listdir("here"), lambda: os.close(999), lambda: os.read(999, 1),
    lambda: os.stat("here/below"), lambda: os.unlink("."), lambda: mmap.mmap(999, 10),
    lambda: socket.socketpair()[0].recv(1, socket.MSG_DONTWAIT), lambda: os.waitpid(1 << 22, 0), lambda: os.kill(1 << 22, 0),
    lambda: os.open("x" * 300, os.O_RDONLY), lambda: os.lseek(os.pipe()[0], 0, 0))]""",
    "caught by type": """
def caught(act, kind):
    try: act()
    except kind as e: return about(e)
caught(lambda: open("missing"), FileNotFoundError), caught(lambda: open("missing"), (KeyError, OSError))""",
    "the type itself": """
class E(OSError): pass
(OSError.__new__.__self__ is OSError, E.__new__ == OSError.__new__, E.__init__ is OSError.__init__, E.__str__ is OSError.__str__,
 IOError is OSError, sorted(vars(OSError)), sorted(k.__name__ for k in OSError.__subclasses__() if k.__module__ == "builtins"),
 [k.__name__ for k in PermissionError.__mro__])""",
    "errors of sqlite": """
import sqlite3
class E(sqlite3.OperationalError):
    def __init__(self, *args, code=None): self.code = code; super().__init__(*args)
about(E("x", code=1)), E("x", code=2).code, about(sqlite3.OperationalError("x", 2)), attempt(lambda: sqlite3.OperationalError(a=1))""",
    "watched functions": """
import copy, os, pickle, posix, socket, time
watched = (os.nice, os.mkfifo, os.setuid, socket.socketpair, time.clock_settime, posix.killpg)
[(f is copy.copy(f), f is pickle.loads(pickle.dumps(f)), repr(f).split(" at ")[0], f.__self__.__name__ if hasattr(f, "__self__") else None)
 for f in watched], os.nice is posix.nice, os.mkfifo in os.supports_dir_fd, [os.nice(0) for _ in range(100)] == [os.nice(0)] * 100""",
}

ABOUT = """
def about(e):
    fields = "errno", "strerror", "filename", "filename2", "characters_written"
    return type(e).__name__, e.args, str(e), repr(e), [getattr(e, name, "none") for name in fields]
def attempt(act):
    try: it = act()
    except Exception as e: it = e
    return about(it) if isinstance(it, Exception) else it
"""

PLAIN = """
import ast, os, sys, tempfile
for name, code in CASES.items():
    os.chdir(tempfile.mkdtemp(dir="."))
    body = ast.parse(ABOUT + code).body
    names = {"__name__": "__main__"}
    exec(compile(ast.Module(body[:-1], []), "plain", "exec"), names)
    told = eval(compile(ast.Expression(body[-1].value), "plain", "eval"), names)
    print(ascii((name, repr(told))))
"""


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What it is without Lair."""
    program = f"ABOUT, CASES = {ABOUT!r}, {SAME!r}\n{PLAIN}"
    where = tmp_path_factory.mktemp("plain")
    done = subprocess.run([sys.executable, "-c", program], cwd=where, capture_output=True, text=True, timeout=50)
    assert done.returncode == 0, done.stderr
    return dict(ast.literal_eval(line) for line in done.stdout.splitlines())


@pytest.fixture(scope="module")
def inside(daemon: Daemon) -> Iterator[Client]:
    with Client(str(daemon.socket)) as it:
        yield it


@pytest.mark.parametrize("case", SAME)
def test_as_in_plain_python(inside: Client, plain: dict[str, str], case: str) -> None:
    reply = inside.exec(ABOUT + SAME[case])
    assert reply.error is None, reply.error
    assert reply.text == plain[case]
    assert (reply.stderr, reply.blocked or []) == (b"", [])


# What a refusal is: an error as the kernel's are, that can be asked and passed on as any other.
REFUSED = {
    "open('/etc/hosts', 'w')": (1, "/etc/hosts"),
    "open(b'/etc/hosts', 'w')": (1, b"/etc/hosts"),
    "os.mkdir('/usr/x')": (1, "/usr/x"),
    "os.rename('/usr/bin', 'b')": (1, "/usr/bin"),
    "socket.socket()": (1, None),
    "os.mkdir('x', dir_fd=os.open('/usr', 0))": (30, "x"),
    "os.setuid(0)": (1, None),
    "open('/proc/1/environ')": (13, "/proc/1/environ"),
}


@pytest.mark.parametrize("code", REFUSED)
def test_a_refusal_is_an_error_of_the_system(inside: Client, code: str) -> None:
    number, filename = REFUSED[code]
    reply = inside.exec(
        f"""
import copy, os, pickle, socket
try: {code}
except OSError as error: e = error
told = [(x.errno, x.filename, x.strerror, x.args) for x in (e, copy.copy(e), pickle.loads(pickle.dumps(e)))]
(type(e).__name__, type(e).__module__, isinstance(e, PermissionError), str(e), repr(e), told, str(pickle.loads(pickle.dumps(e))))"""
    )
    assert reply.text is not None, reply.error
    name, module, is_one, text, shown, told, again = ast.literal_eval(reply.text)
    assert (name, module, is_one) == ("PermissionError", "builtins", True)
    assert " here" in text or "below the session's directory (" in text
    assert text in shown.replace("\\'", "'") and text in again
    assert told == [(number, filename, text, (number, text))] * 3
    assert reply.stderr == b""


def test_a_refusal_passed_on_is_told_once(inside: Client) -> None:
    """As asyncio does it, and whoever else makes an error of an error."""
    reply = inside.exec(
        """
made = []
try: open('/etc/hosts', 'w')
except OSError as e:
    for kind in (OSError, PermissionError, type(e)):
        made += [kind(*e.args), kind(e.errno, e.strerror, e.filename), kind(e.errno, "while binding: " + e.strerror.lower())]
[(type(e).__name__, str(e)) for e in made]"""
    )
    assert reply.text is not None, reply.error
    assert all(name == "PermissionError" for name, _ in ast.literal_eval(reply.text))
    assert all(
        "/etc/hosts: write only below the session's directory" in text for _, text in ast.literal_eval(reply.text)
    )
    assert len(reply.blocked or []) == 1 and reply.stderr == b""


def test_the_error_of_a_refused_server_says_so(inside: Client, session: str) -> None:
    """asyncio makes one of strerror, in small letters."""
    inside.open(session, profile="connects")
    reply = inside.exec(
        """
import asyncio
async def serve(): await asyncio.start_server(None, "127.0.0.1", 8080)
try: asyncio.run(serve())
except OSError as e: told = e
told.errno, str(told)""",
        session,
    )
    assert reply.text is not None, reply.error
    number, text = ast.literal_eval(reply.text)
    assert (
        number == 1 and "127.0.0.1:8080: not this port: the network here has only some (port-not-granted)" in text
    )

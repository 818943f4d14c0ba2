"""What the audit hook says: the text, the errno and the entry in `blocked`."""

from __future__ import annotations

import ast
import errno
import os
import re
from collections.abc import Iterator
from typing import Optional

import pytest

from cage import ROOT, SHAPES, Host
from drive import Interpreter

# What can be done instead, by the reason.
INSTEAD = {
    "write-outside-workspace": "write only below the session's directory",
    "read-outside": "read only below the session's directory",
    "subprocess-not-granted": "no programs here: do it in Python",
    "network-not-granted": "no network here: do without, or ask the user for the data",
    "socket-not-granted": "no sockets of this kind here",
    "local-sockets-not-granted": "no sockets of other programs here",
}

OUTSIDE = "reason=write-outside-workspace"
UNREAD = "reason=read-outside"
NOT_STARTED = "reason=subprocess-not-granted"
NO_NETWORK = "reason=network-not-granted"

REFUSED = {
    "open('/etc/hosts', 'w')": f"event=open path=/etc/hosts mode=w {OUTSIDE}",
    "open('/etc/hosts', 'ab')": f"event=open path=/etc/hosts mode=a {OUTSIDE}",
    "open('/etc/hosts', 'r+')": f"event=open path=/etc/hosts mode=r+ {OUTSIDE}",
    "open('/home/new', 'x')": f"event=open path=/home/new mode=x {OUTSIDE}",
    "open(b'/etc/hosts', 'w')": f"event=open path=/etc/hosts mode=w {OUTSIDE}",
    "open('/etc/shadow')": f"event=open path=/etc/shadow mode=r {UNREAD}",
    "open('../../../../../etc/shadow')": f"event=open path=../../../../../etc/shadow mode=r {UNREAD}",
    "open(RO + '/file', 'w')": f"event=open path={{RO}}/file mode=w {OUTSIDE}",
    "os.open('/etc/hosts', os.O_WRONLY | os.O_TRUNC)": f"event=open path=/etc/hosts mode=w {OUTSIDE}",
    "os.open('/etc/hosts', os.O_RDWR)": f"event=open path=/etc/hosts mode=r+ {OUTSIDE}",
    "pathlib.Path('/etc/motd').write_text('x')": f"event=open path=/etc/motd mode=w {OUTSIDE}",
    "pathlib.Path('/root/x').mkdir()": f"event=os.mkdir path=/root/x {OUTSIDE}",
    "os.remove('/etc/hosts')": f"event=os.remove path=/etc/hosts {OUTSIDE}",
    "os.rename('own', '/etc/a')": f"event=os.rename path=/etc/a {OUTSIDE}",
    "os.rmdir('/etc')": f"event=os.rmdir path=/etc {OUTSIDE}",
    "os.chmod('/etc/hosts', 0)": f"event=os.chmod path=/etc/hosts {OUTSIDE}",
    "os.chown('/etc/hosts', 0, 0)": f"event=os.chown path=/etc/hosts {OUTSIDE}",
    "os.utime('/etc/hosts')": f"event=os.utime path=/etc/hosts {OUTSIDE}",
    "os.truncate('/etc/hosts', 0)": f"event=os.truncate path=/etc/hosts {OUTSIDE}",
    "os.symlink('x', '/etc/x')": f"event=os.symlink path=/etc/x {OUTSIDE}",
    "os.link('/etc/passwd', 'x')": f"event=os.link path=/etc/passwd {OUTSIDE}",
    "os.listdir('/home')": f"event=os.listdir path=/home {UNREAD}",
    "list(os.scandir('/root'))": f"event=os.scandir path=/root {UNREAD}",
    "os.chdir('/root')": f"event=os.chdir path=/root {UNREAD}",
    "shutil.copyfile('/etc/shadow', 'x')": f"event=shutil.copyfile path=/etc/shadow {UNREAD}",
    "shutil.copy('own', '/etc/x')": f"event=shutil.copyfile path=/etc/x {OUTSIDE}",
    "shutil.rmtree('/home')": f"event=shutil.rmtree path=/home {OUTSIDE}",
    "shutil.move('own', '/root/x')": f"event=shutil.move path=/root/x {OUTSIDE}",
    "subprocess.run(['ls', '-l', '/'])": f"event=subprocess.Popen command=ls -l / {NOT_STARTED}",
    "subprocess.run('ls | wc', shell=True)": f"event=subprocess.Popen command=ls | wc {NOT_STARTED}",
    "os.system('id -u')": f"event=os.system command=id -u {NOT_STARTED}",
    "os.execv('/bin/ls', ['ls', '-a'])": f"event=os.exec command=ls -a {NOT_STARTED}",
    "os.posix_spawn('/bin/ls', ['ls'], {})": f"event=os.posix_spawn command=ls {NOT_STARTED}",
    "os.popen('date').read()": f"event=subprocess.Popen command=date {NOT_STARTED}",
    "socket.create_connection(('example.com', 80))": f"event=socket.getaddrinfo address=example.com:80 {NO_NETWORK}",
    "socket.socket(socket.AF_INET)": f"event=socket.__new__ address=family-2 {NO_NETWORK}",
    "socket.gethostbyname('example.com')": f"event=socket.gethostbyname address=example.com {NO_NETWORK}",
    "socket.socketpair()[0].connect('/run/x')": "event=socket.connect address=/run/x reason=local-sockets-not-granted",
    "urllib.request.urlopen('https://example.com/x')": f"event=urllib.Request address=https://example.com/x {NO_NETWORK}",
    "sqlite3.connect('/root/x.db')": f"event=sqlite3.connect path=/root/x.db {UNREAD}",
    "ctypes.CDLL('/root/x.so')": f"event=ctypes.dlopen path=/root/x.so {UNREAD}",
    "os.kill(-1, 9)": "event=os.kill pid=-1 reason=kill-everything",
    "sqlite3.connect('/usr/x.db')": f"event=sqlite3.connect path=/usr/x.db {OUTSIDE}",
    "sqlite3.connect('file:/root/x.db?mode=ro', uri=True)": f"event=sqlite3.connect path=/root/x.db {UNREAD}",
    "socket.socket(16, 3)": f"event=socket.__new__ address=family-16 {NO_NETWORK}",
    "open('/etc/a\\nb', 'w')": f"event=open path=/etc/a\\x0ab mode=w {OUTSIDE}",
    "open('/etc/\\udcff', 'w')": f"event=open path=/etc/\\xff mode=w {OUTSIDE}",
    "open('/etc/é', 'w')": f"event=open path=/etc/é mode=w {OUTSIDE}",
}

# Where only the kernel said no: the same words, with its errno.
REFUSED_BY_THE_KERNEL = {
    "open('/proc/1/environ')": ("EACCES", "event=open path=/proc/1/environ reason=not-permitted"),
    "open('/proc/sys/kernel/hostname', 'w')": ("EROFS", f"event=open path=/proc/sys/kernel/hostname {OUTSIDE}"),
    "os.open('x', 65, dir_fd=os.open('/usr', 0))": ("EROFS", f"event=open path=x {OUTSIDE}"),
    "os.mkdir('x', dir_fd=os.open('/usr', 0))": ("EROFS", f"event=os.mkdir path=x {OUTSIDE}"),
    "os.unlink('bin', dir_fd=os.open('/usr', 0))": ("EROFS", f"event=os.remove path=bin {OUTSIDE}"),
    "os.fchmod(os.open('/usr/bin', 0), 0)": ("EROFS", None),
    "os.mkfifo('/usr/f')": ("EROFS", f"event=os.mkfifo path=/usr/f {OUTSIDE}"),
    "os.mknod('/usr/n')": ("ENOSYS", f"event=os.mknod path=/usr/n {OUTSIDE}"),
    "os.mknod('n', 0o20666, 259)": ("ENOSYS", "event=os.mknod path=n reason=not-permitted"),
    "os.chroot('/usr')": ("EPERM", f"event=os.chroot path=/usr {OUTSIDE}"),
    "os.chmod('own', 0o4755)": ("EPERM", "event=os.chmod path=own reason=not-permitted"),
    "os.setuid(0)": ("EPERM", "event=os.setuid arguments=0 reason=not-permitted"),
    "os.setpriority(0, 0, -5)": ("EACCES", "event=os.setpriority arguments=0, 0, -5 reason=not-permitted"),
    "os.sched_setaffinity(1, {0})": ("ENOSYS", "event=os.sched_setaffinity arguments=1, {0} reason=not-permitted"),
    "getattr(os, 'splice', lambda *_: os.setuid(0))(0, 1, 1)": (
        "ENOSYS",
        "event=os.splice arguments=0, 1, 1 reason=not-permitted",
    ),
    "time.clock_settime(0, 1)": ("EPERM", "event=time.clock_settime arguments=0, 1 reason=not-permitted"),
    "socket.socket(socket.AF_UNIX)": (
        "EPERM",
        "event=socket.__new__ address=family-1 reason=local-sockets-not-granted",
    ),
    "socket.socketpair(1, 2)": ("ENOSYS", "event=socket.socketpair arguments=1, 2, 0 reason=not-permitted"),
    "socket.sethostname(b'x')": ("EPERM", "event=socket.sethostname value=b'x' reason=not-permitted"),
    "resource.prlimit(PID, 7)": ("ENOSYS", "event=resource.prlimit value={PID} reason=not-permitted"),
}

# What is no refusal of the cage must not be made one.
LET_THROUGH = {
    "open('missing')": "FileNotFoundError",
    "os.listdir('missing')": "FileNotFoundError",
    "open('/usr/missing')": "FileNotFoundError",
    "open('/proc/missing')": "FileNotFoundError",
    "os.stat('/root/x')": "FileNotFoundError",
    "os.path.exists('/root/x')": None,
    "open('own', 'w')": None,
    "open('/tmp/own', 'w')": None,
    "open('./sub/../own', 'w')": "FileNotFoundError",
    "open('/dev/null', 'w')": None,
    "open('/bin/sh', 'rb')": None,
    "open('/lib/os-release-missing')": "FileNotFoundError",
    "open(0)": None,
    "os.listdir(RO)": None,
    "os.chdir('/')": None,
    "os.chdir('/etc')": None,
    "open(RW + '/x', 'w')": None,
    "sqlite3.connect(':memory:')": None,
    "os.fork() or os._exit(0)": None,
    "urllib.request.urlopen('data:,x')": None,
    "ctypes.CDLL('libc.so.6')": None,
    "os.chmod('own', 0) or open('own')": "PermissionError",
    "os.mkdir('shut', 0) or os.listdir('shut')": "PermissionError",
    "mmap.mmap(os.open('/usr/bin/env', 0), 0, prot=mmap.PROT_WRITE)": "PermissionError",
    "[fd := os.open('/usr/bin/env', 0), socket.socketpair(), mmap.mmap(fd, 0, prot=mmap.PROT_WRITE)]": "PermissionError",
    'exec(\'raise PermissionError(13, "mine", "/etc/hosts")\')': "PermissionError",
    'exec(\'raise OSError(30, "mine", "/root")\')': "OSError",
    'exec(\'class E(OSError): pass\\nraise E(1, "mine", "/root")\')': "E",
    "socket.socketpair() and exec('raise PermissionError(1, \"mine\")')": "PermissionError",
    "os.mkfifo('fifo') or os.nice(0)": None,
    "os.kill(os.getpid(), 0)": None,
    "socket.socket(fileno=socket.socketpair()[0].detach()).close()": None,
    "sqlite3.connect('new.db').execute('attach \"other.db\" as o')": None,
}

# What is not there, in a directory that the session may read: as in a plain Python.
NOT_THERE = {
    "os.remove('/usr/missing')": ("ENOENT", "/usr/missing", None),
    "os.remove(RO + '/file/x')": ("ENOTDIR", "{RO}/file/x", None),
    "os.rmdir('/usr/missing')": ("ENOENT", "/usr/missing", None),
    "os.chmod('/usr/missing', 0)": ("ENOENT", "/usr/missing", None),
    "os.chown('/usr/missing', 0, 0)": ("ENOENT", "/usr/missing", None),
    "os.utime('/usr/missing')": ("ENOENT", "/usr/missing", None),
    "os.truncate('/usr/missing', 0)": ("ENOENT", "/usr/missing", None),
    "open('/usr/missing', 'r+')": ("ENOENT", "/usr/missing", None),
    "open('/usr/missing/x', 'w')": ("ENOENT", "/usr/missing/x", None),
    "open(RO + '/file', 'x')": ("EEXIST", "{RO}/file", None),
    "os.mkdir('/usr/missing/x')": ("ENOENT", "/usr/missing/x", None),
    "os.mkdir('/usr/bin')": ("EEXIST", "/usr/bin", None),
    "os.makedirs('/usr/bin')": ("EEXIST", "/usr/bin", None),
    "os.rename('/usr/missing', 'x')": ("ENOENT", "/usr/missing", "x"),
    "os.rename('/usr/missing', '/usr/x')": ("ENOENT", "/usr/missing", "/usr/x"),
    "os.rename('own', '/usr/missing/x')": ("ENOENT", "own", "/usr/missing/x"),
    "os.rename('missing', '/usr/x')": ("ENOENT", "missing", "/usr/x"),
    "os.link('/usr/missing', 'x')": ("ENOENT", "/usr/missing", "x"),
    "os.symlink('x', '/usr/missing/x')": ("ENOENT", "x", "/usr/missing/x"),
    "shutil.rmtree('/usr/missing')": ("ENOENT", "/usr/missing", None),
    "shutil.rmtree('/usr/missing', ignore_errors=True)": None,
    "shutil.copyfile('own', '/usr/missing/x')": ("ENOENT", "/usr/missing/x", None),
    "shutil.move('/usr/missing', 'x')": ("ENOENT", "/usr/missing", None),
    "pathlib.Path('/usr/missing').unlink(missing_ok=True)": None,
    "pathlib.Path('/usr/bin').mkdir(exist_ok=True)": None,
}

# With what is there and what is not, in a directory that it may not: alike.
ALIKE = [
    "os.remove({})",
    "os.rmdir({})",
    "os.chmod({}, 0)",
    "os.utime({})",
    "os.truncate({}, 0)",
    "open({})",
    "open({}, 'r+')",
    "open({}, 'x')",
    "open({} + '/x', 'w')",
    "os.mkdir({})",
    "os.mkdir({} + '/x')",
    "os.listdir({})",
    "os.rename({}, 'x')",
    "os.rename('own', {})",
    "os.rename('missing', {})",
    "os.rename('own', {} + '/x')",
    "os.link({}, 'x')",
    "os.symlink('x', {})",
    "shutil.rmtree({})",
    "shutil.move({}, 'x')",
]

IMPORTS = "import ctypes, mmap, os, pathlib, resource, shutil, socket, sqlite3, subprocess, time, urllib.request\n"


@pytest.fixture(scope="module")
def one_host() -> Iterator[Host]:
    it = Host(next(shape for shape in SHAPES if shape.root == ROOT))
    yield it
    it.close()


# Where others' processes have numbers.
OTHERS = {
    "os.getpgid(PID)": ("EPERM", "event=os.getpgid arguments={PID} reason=not-permitted"),
    "os.getsid(PID)": ("EPERM", "event=os.getsid arguments={PID} reason=not-permitted"),
    "os.getpriority(0, PID)": ("EPERM", "event=os.getpriority arguments=0, {PID} reason=not-permitted"),
    "os.sched_getaffinity(PID)": ("ENOSYS", "event=os.sched_getaffinity arguments={PID} reason=not-permitted"),
    "os.sched_rr_get_interval(PID)": (
        "EPERM",
        "event=os.sched_rr_get_interval arguments={PID} reason=not-permitted",
    ),
}


@pytest.fixture
def session(one_host: Host) -> Iterator[Interpreter]:
    warden, interpreter = one_host.session()
    names = "\n".join(f"{name} = {value!r}" for name, value in one_host.world.parameters.items())
    ready = interpreter.run(f"{names}\n{IMPORTS}open('own', 'w').close()")
    assert ready.returncode == 0, ready
    yield interpreter
    warden.close()


def sentence(refusal: str) -> tuple[str, str, str, str]:
    """The text of the error; and event, target and reason."""
    found = re.fullmatch(r"event=(\S+) (\w+)=(.*?)(?: mode=\S+)? reason=(\S+)", refusal)
    assert found
    event, kind, target, reason = found.groups()
    about = target if kind in ("path", "command", "address") else f"{event} {target}"
    return f"{about}: {INSTEAD.get(reason, 'not possible here')} ({reason})", event, target, reason


def attempt(code: str) -> str:
    return f"try:\n    {code}\nexcept OSError as error:\n    e = error\n(type(e).__name__, e.errno, str(e))"


@pytest.mark.parametrize("code", REFUSED)
def test_refused(one_host: Host, session: Interpreter, code: str) -> None:
    text, event, target, reason = sentence(REFUSED[code].format(**one_host.world.parameters))
    result = session.run(attempt(code))
    assert result.text == repr(("PermissionError", 1, text)), result
    assert result.err == b""  # told once
    assert result.blocked == [{"event": event, "target": target, "reason": reason}]


def check_told(host: Host, session: Interpreter, code: str, number: str, told: Optional[str]) -> None:
    result = session.run(attempt(code))
    assert result.text is not None
    kind, error, text = ast.literal_eval(result.text)
    assert (kind, error) == ("PermissionError", getattr(errno, number)), result
    if told:
        assert text == sentence(told.replace("{PID}", str(host.world.parameters["PID"])))[0]
    assert result.err == b""
    (act,) = result.blocked
    assert f"{act['target']}: " in text and text.endswith(f" ({act['reason']})")


@pytest.mark.parametrize("code", REFUSED_BY_THE_KERNEL)
def test_refused_by_the_kernel(one_host: Host, session: Interpreter, code: str) -> None:
    check_told(one_host, session, code, *REFUSED_BY_THE_KERNEL[code])


def test_refused_about_others() -> None:
    host = Host(next(shape for shape in SHAPES if shape.level == "landlock" and shape.root == ROOT))
    warden, python = host.session()
    names = "\n".join(f"{name} = {value!r}" for name, value in host.world.parameters.items())
    assert python.run(f"{names}\n{IMPORTS}").returncode == 0
    for code in OTHERS:
        check_told(host, python, code, *OTHERS[code])
    warden.close()
    host.close()


def test_sqlite_says_it_in_an_error_of_its_own(session: Interpreter) -> None:
    result = session.run("sqlite3.connect(':memory:').execute(\"attach '/usr/y.db' as y\")")
    assert result.error is not None
    assert result.error["name"] == "OperationalError"
    assert result.error["value"] == sentence(f"event=sqlite3 path=/usr/y.db {OUTSIDE}")[0]
    assert result.blocked == [{"event": "sqlite3", "target": "/usr/y.db", "reason": "write-outside-workspace"}]


def test_watched_functions_look_as_they_did(session: Interpreter) -> None:
    result = session.run(
        "import inspect\n(os.mkfifo in os.supports_dir_fd, type(os.mkfifo) is type(os.mkdir), os.mkfifo.__name__,"
        " os.mkfifo.__module__, str(inspect.signature(os.mkfifo)), bool(os.mkfifo.__doc__))"
    )
    assert result.text == "(True, True, 'mkfifo', 'posix', '(path, mode=438, *, dir_fd=None)', True)"


def test_errors_of_threads_do_not_mix(session: Interpreter) -> None:
    """What one thread has just tried explains nothing that happens to another."""
    result = session.run("""
import threading
def quiet(found):
    for _ in range(300):
        try: mmap.mmap(fd, 0, prot=mmap.PROT_WRITE)
        except OSError as error: found.append(str(error))
def loud():
    for _ in range(300):
        try: socket.socket(socket.AF_UNIX)
        except OSError: pass
fd, found = os.open('/usr/bin/env', 0), []
threads = [threading.Thread(target=quiet, args=(found,)), threading.Thread(target=loud)]
[t.start() for t in threads], [t.join() for t in threads]
set(found)""")
    assert result.text == "{'[Errno 13] Permission denied'}"


@pytest.mark.parametrize("code", LET_THROUGH)
def test_let_through(session: Interpreter, code: str) -> None:
    result = session.run(f"e = None\n{attempt(code).rsplit(chr(10), 1)[0]}\ntype(e).__name__ if e else None")
    expected = LET_THROUGH[code]
    assert result.text == (repr(expected) if expected else None), result
    assert result.blocked == []


@pytest.mark.parametrize("code", NOT_THERE)
def test_what_is_not_there(one_host: Host, session: Interpreter, code: str) -> None:
    result = session.run(
        f"e = None\n{attempt(code).rsplit(chr(10), 1)[0]}\ne and (e.errno, e.filename, e.filename2, str(e))"
    )
    expected = NOT_THERE[code]
    if expected:
        number, *names = expected
        filename, filename2 = (name and name.format(**one_host.world.parameters) for name in names)
        error = OSError(getattr(errno, number), os.strerror(getattr(errno, number)), filename, None, filename2)
        assert result.text == repr((error.errno, filename, filename2, str(error))), result
    else:
        assert result.text is None, result
    assert result.blocked == []


def test_whether_something_is_out_of_reach_is_not_told(host: Host, python: Interpreter) -> None:
    """A link does not help, be it the session's own or one of the host's."""
    out, ro = host.world.root / "out", host.world.root / "ro"
    for name, target in (("there", "../out/secret"), ("gone", "../out/absent")):
        if not (ro / name).is_symlink():
            (ro / name).symlink_to(target)
    assert python.run(f"{IMPORTS}try: open('own', 'w').close()\nexcept OSError: pass").returncode == 0
    # Without a file system of its own a session can ask the kernel whether something is there.
    pairs = [(out / "secret", out / "absent"), (ro / "there", ro / "gone"), (ro / "there" / "x", ro / "gone" / "x")]
    told = {}
    for code in ALIKE:
        for there, gone in pairs if host.shape.tree else pairs[:1]:
            for path in (there, gone):
                result = python.run(attempt(code.format(repr(str(path)))))
                told[path] = (result.text or "").replace(str(path), "PATH"), result.err
            assert told[there] == told[gone], (code, there)
            assert told[there][0], code


def test_an_uncaught_refusal(session: Interpreter) -> None:
    result = session.run("open('/etc/hosts', 'w')")
    assert result.returncode == 1
    assert result.error is not None
    assert result.error["name"] == "PermissionError"
    assert result.error["value"] == sentence(f"event=open path=/etc/hosts mode=w {OUTSIDE}")[0]
    assert result.error["traceback"].count("/etc/hosts: ") == 1 and result.err.count(b"session's directory") == 1


def test_a_flood_is_cut(session: Interpreter) -> None:
    result = session.run(
        "for i in range(1000):\n    try: open(f'/etc/{i}' + 'x' * 4000, 'w')\n    except OSError: pass"
    )
    assert len(result.blocked) == 64
    assert all(len(act["target"]) < 512 for act in result.blocked)
    assert session.run("1").blocked == []


def test_it_costs_little(session: Interpreter) -> None:
    """A path that is let through is decided by its letters; generously, for a machine that does other things too."""
    result = session.run("""
import sys, time
best = 1
for _ in range(20):
    start = time.perf_counter()
    for _ in range(1000): sys.audit("open", "/usr/lib/python3/dist-packages/x.py", "r", 0)
    best = min(best, (time.perf_counter() - start) / 1000)
best""")
    assert float(result.text or 1) < 5e-6
    print(f"an allowed open costs {float(result.text or 1) * 1e9:.0f} ns more")

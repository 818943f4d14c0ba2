"""What must go on working inside, in every shape where files can be written at all."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cage import Host, Shape
from drive import Interpreter

EVERYWHERE = {
    "numpy": "import numpy as np\nnp.linalg.svd(np.ones((50, 50)))[1].round(3)[0] == 50",
    "pandas": """
import pandas as pd
pd.DataFrame({"a": [1, 2]}).to_csv("frame.csv", index=False)
pd.read_csv("frame.csv").a.sum() == 3""",
    "matplotlib": """
import os
import matplotlib.pyplot as plt
plt.plot([1, 2], label="é")
plt.legend()
plt.savefig("figure.png")
plt.savefig("figure.pdf")
os.path.getsize("figure.png") > 1000""",
    "scipy": "import scipy.optimize\nabs(scipy.optimize.minimize(lambda x: (x - 1) ** 2, 0).x[0] - 1) < 1e-3",
    "sqlite": """
import sqlite3
with sqlite3.connect("data.db") as db:
    db.execute("pragma journal_mode = wal")
    db.execute("create table t (x)")
    db.executemany("insert into t values (?)", [(i,) for i in range(100)])
sqlite3.connect("data.db").execute("select sum(x) from t").fetchone()[0] == 4950""",
    "fork": """
import os
r, w = os.pipe()
if not (pid := os.fork()):
    os.write(w, b"child")
    os._exit(3)
os.read(r, 9) == b"child" and os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 3""",
    "threads": """
import threading
seen = []
many = [threading.Thread(target=seen.append, args=(i,)) for i in range(8)]
[t.start() for t in many], [t.join() for t in many]
len(seen) == 8""",
    "thread pool": """
from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor(4) as pool: squares = list(pool.map(lambda x: x * x, range(5)))
squares == [0, 1, 4, 9, 16]""",
    "asyncio": """
import asyncio
async def one(i):
    await asyncio.sleep(0.001)
    return i
(await asyncio.gather(*map(one, range(5)))) == [0, 1, 2, 3, 4]""",
    "socketpair": "import socket\na, b = socket.socketpair()\na.send(b'x') == 1 and b.recv(1) == b'x'",
    "temporary files": """
import tempfile
with tempfile.NamedTemporaryFile() as file, tempfile.TemporaryDirectory() as directory:
    file.write(b"x")
    open(directory + "/f", "w").close()
True""",
    "zipfile": """
import zipfile
open("in.txt", "w").write("x" * 100)
with zipfile.ZipFile("z.zip", "w") as z: z.write("in.txt")
zipfile.ZipFile("z.zip").read("in.txt") == b"x" * 100""",
    "copies": """
import os, shutil
open("one", "w").write("1")
shutil.copy("one", "two"), shutil.copy2("one", "three"), shutil.copytree(".", "tree")
shutil.move("two", "tree/two"), os.chmod("one", 0o600), os.utime("one"), shutil.rmtree("tree")
os.path.exists("three")""",
    "links and pipes": """
import os
open("file", "w").close()
os.symlink("file", "link"), os.link("file", "hard"), os.mkfifo("fifo"), os.mkdir("d"), os.rename("file", "d/file")
os.stat("hard").st_nlink == 2""",
    "mapped files": """
import mmap
with open("mapped", "wb+") as file:
    file.truncate(4096)
    m = mmap.mmap(file.fileno(), 4096)
    m[0] = 7
open("mapped", "rb").read(1) == b"\\x07" """,
    "granted directories": """
import os
text = open(f"{RO}/file").read()
os.listdir(RO)
open(f"{RW}/made", "w").write(text)
os.makedirs(f"{RW}/a/b")
os.unlink(f"{RW}/made"), os.rmdir(f"{RW}/a/b"), os.rmdir(f"{RW}/a")
text == "READABLE" """,
    "null devices": "open('/dev/null', 'w').write('x') and len(open('/dev/urandom', 'rb').read(4)) == 4",
    "who one is": "import getpass, pathlib, os\ngetpass.getuser() and str(pathlib.Path.home()) == os.getcwd()",
    "certificates": "import ssl\nssl.create_default_context() and True",
    "time zones": "import datetime, zoneinfo\ndatetime.datetime.now(zoneinfo.ZoneInfo('Europe/Paris')).year > 2000",
    "C libraries": "import ctypes, os\nctypes.CDLL(None).getpid() == os.getpid()",
    "compression": "import gzip, lzma, bz2\ngzip.open('f.gz', 'wb').write(b'x') == 1 and lzma.compress(b'') and True",
    "limits": "import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (99, 99)) is None",
    "a priority": """
import os
[os.getpgid(0) == os.getpgrp(), os.getsid(0) > 0, os.getpriority(0, 0) <= 20, os.sched_getscheduler(0) == 0]
os.sched_rr_get_interval(0), os.sched_getparam(0)
os.nice(1) >= 1 and len(os.sched_getaffinity(0)) > 0""",
    "robust mutexes": """
import ctypes, mmap, os
libc = ctypes.CDLL(None)
shared = mmap.mmap(-1, 4096)
attributes, mutex = ctypes.create_string_buffer(64), ctypes.c_char.from_buffer(shared)
libc.pthread_mutexattr_init(attributes), libc.pthread_mutexattr_setpshared(attributes, 1)
libc.pthread_mutexattr_setrobust(attributes, 1), libc.pthread_mutex_init(ctypes.byref(mutex), attributes)
if not (pid := os.fork()):
    libc.pthread_mutex_lock(ctypes.byref(mutex))
    os._exit(0)
os.waitpid(pid, 0)
found = libc.pthread_mutex_lock(ctypes.byref(mutex))
libc.pthread_mutex_consistent(ctypes.byref(mutex))
(found, libc.pthread_mutex_unlock(ctypes.byref(mutex)), libc.pthread_mutex_lock(ctypes.byref(mutex))) == (130, 0, 0)""",
    "conditions": """
import queue, threading, time
full, lock, turns = queue.Queue(2), threading.Condition(), []
def work(i):
    with lock:
        lock.wait_for(lambda: len(turns) == i, 20)
        turns.append(i)
        lock.notify_all()
    full.put(i, timeout=20)
many = [threading.Thread(target=work, args=(i,)) for i in reversed(range(6))]
[t.start() for t in many]
got = [full.get(timeout=20) for _ in many]
barrier = threading.Barrier(2)
threading.Thread(target=barrier.wait).start()
barrier.wait(20)
semaphore = threading.Semaphore(0)
turns == list(range(6)) and sorted(got) == turns and not semaphore.acquire(timeout=0.01)""",
    "what is known of a thread": """
import ctypes, threading, time
libc, room, found = ctypes.CDLL(None), ctypes.create_string_buffer(64), []
def look():
    me = ctypes.c_void_p(threading.get_ident())
    found.append(time.clock_gettime(time.pthread_getcpuclockid(threading.get_ident())) > 0)
    found.append(libc.pthread_getattr_np(me, room))
    found.append(libc.pthread_getschedparam(me, ctypes.byref(policy := ctypes.c_int(9)), room))
    found.append((policy.value, ctypes.c_int.from_buffer(room).value))
    found.append(libc.pthread_setschedparam(me, policy, room))
thread = threading.Thread(target=look)
thread.start(), thread.join()
found == [True, 0, 0, (0, 0), 0] and time.process_time() > 0 and time.thread_time() > 0""",
    "memory as allocators want it": """
import ctypes, mmap
libc = ctypes.CDLL(None, use_errno=True)
memory = mmap.mmap(-1, 8 << 20, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
advice = ("NORMAL", "RANDOM", "SEQUENTIAL", "WILLNEED", "DONTNEED", "FREE", "DONTFORK", "DOFORK", "DONTDUMP", "DODUMP")
[memory.madvise(getattr(mmap, "MADV_" + name)) for name in advice]
# Not every kernel has these; none of them may be one the filter has never heard of.
newer = {14: "HUGEPAGE", 15: "NOHUGEPAGE", 18: "WIPEONFORK", 19: "KEEPONFORK", 22: "POPULATE_READ", 23: "POPULATE_WRITE"}
refused = [name for n, name in newer.items() if libc.madvise(ctypes.c_void_p(address), 8 << 20, n) and n < 16]
memory[5] = 1
refused == [] and memory[5] == 1 and libc.malloc_trim(0) in (0, 1)""",
    "barriers between threads": """
import ctypes
libc = ctypes.CDLL("libseccomp.so.2")
number = libc.seccomp_syscall_resolve_name(b"membarrier")
libc = ctypes.CDLL(None)
[libc.syscall(ctypes.c_long(number), command, 0, 0) for command in (16, 8)] == [0, 0] and libc.syscall(ctypes.c_long(number), 0, 0, 0) > 0""",
    "reading and writing at a place": """
import os
fd = os.open("places", os.O_RDWR | os.O_CREAT)
os.pwritev(fd, [b"ab", b"cd"], 3)
buffers = [bytearray(2), bytearray(2)]
os.preadv(fd, buffers, 3) == 4 and buffers == [b"ab", b"cd"] and os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_WILLNEED) is None""",
    "copies inside the kernel": """
import os, shutil
open("whole", "wb").write(b"x" * 300000)
one, two = os.open("whole", os.O_RDONLY), os.open("half", os.O_WRONLY | os.O_CREAT)
ways = [os.sendfile(two, one, 0, 1000), os.copy_file_range(one, two, 1000) if hasattr(os, "copy_file_range") else 1000]
shutil.copyfile("whole", "copied")
ways == [1000, 1000] and os.path.getsize("copied") == 300000""",
    "what is asked of a socket": """
import socket
ours, theirs = socket.socketpair()
ours.settimeout(1)
for name in ("RCVBUF", "SNDBUF", "REUSEADDR", "KEEPALIVE", "BROADCAST", "OOBINLINE", "RCVLOWAT"):
    ours.setsockopt(socket.SOL_SOCKET, getattr(socket, "SO_" + name), 1)
    ours.getsockopt(socket.SOL_SOCKET, getattr(socket, "SO_" + name))
asked = [ours.getsockopt(socket.SOL_SOCKET, getattr(socket, "SO_" + name)) for name in ("TYPE", "DOMAIN", "PROTOCOL", "ERROR", "ACCEPTCONN")]
same = socket.socket(fileno=theirs.detach())
ours.send(b"x")
asked == [1, 1, 0, 0, 0] and same.recv(1) == b"x" and (same.family, same.type) == (ours.family, ours.type)""",
    "zmq": """
import threading, zmq
context = zmq.Context()
server = context.socket(zmq.REP)
server.bind("inproc://here")
def serve():
    for _ in range(50): server.send(server.recv() * 2)
thread = threading.Thread(target=serve)
thread.start()
client = context.socket(zmq.REQ)
client.connect("inproc://here")
answers = [client.send(b"x") or client.recv() for _ in range(50)]
thread.join(), client.close(), server.close(), context.term()
answers == [b"xx"] * 50""",
    "asyncio's threads and pipes": """
import asyncio, os
async def whole():
    reading, writing = os.pipe()
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(reading, "rb"))
    await loop.run_in_executor(None, os.write, writing, b"line\\n")
    return await asyncio.wait_for(reader.readline(), 20)
(await whole()) == b"line\\n" """,
}

# Semaphores have names in /dev/shm, which is the session's own only in a file system of its own; and a child can be
# signalled only where no stranger can.
IN_A_TREE = {
    "pool": """
import multiprocessing as mp
def square(x): return x * x
with mp.Pool(3) as pool: squares = pool.map(square, range(5))
squares == [0, 1, 4, 9, 16]""",
    "queue": """
import multiprocessing as mp
q = mp.Queue()
p = mp.Process(target=lambda: q.put(7))
p.start()
q.get() == 7 and p.join() is None""",
    "process pool": """
import concurrent.futures as f
def square(x): return x * x
with f.ProcessPoolExecutor(2) as pool: squares = list(pool.map(square, range(3)))
squares == [0, 1, 4]""",
    "terminate": """
import multiprocessing as mp, time
p = mp.Process(target=time.sleep, args=(60,))
p.start(), p.terminate(), p.join()
p.exitcode == -15""",
    "shared memory": """
from multiprocessing import Process, shared_memory
block = shared_memory.SharedMemory(create=True, size=100)
p = Process(target=lambda: block.buf.__setitem__(0, 7))
p.start(), p.join()
value = block.buf[0]
block.close(), block.unlink()
value == 7""",
    "manager": """
import multiprocessing as mp
def work(numbers, names, i):
    numbers[i] = i * i
    names.append(str(i))
with mp.Manager() as manager:
    numbers, names, lock = manager.dict(), manager.list(), manager.Lock()
    many = [mp.Process(target=work, args=(numbers, names, i)) for i in range(4)]
    [p.start() for p in many], [p.join() for p in many]
    with lock: found = dict(numbers), sorted(names), len(manager.list(range(100000))[:])
found == ({0: 0, 1: 1, 2: 4, 3: 9}, ["0", "1", "2", "3"], 100000)""",
    "listener": """
import glob, os, tempfile, threading
from multiprocessing.connection import Client, Listener
from multiprocessing import AuthenticationError
answers = []
with Listener(authkey=b"key") as listener:
    def serve():
        for _ in range(2):
            try:
                with listener.accept() as it: it.send(it.recv() * 2), it.send_bytes(bytes(1 << 20))
            except AuthenticationError: answers.append("refused")
    thread = threading.Thread(target=serve)
    thread.start()
    with Client(listener.address, authkey=b"key") as it:
        it.send([1, 2])
        answers += [it.recv(), len(it.recv_bytes()), it.poll(5)]
    try: Client(listener.address, authkey=b"other")
    except AuthenticationError: answers.append("told")
    thread.join()
    address = listener.address
try: Client(address)
except ConnectionRefusedError: answers.append("closed")
answers[3:5] = sorted(answers[3:5])  # either may be first
answers == [[1, 2, 1, 2], 1 << 20, True, "refused", "told", "closed"] and glob.glob(address + "*") == []""",
    "a listener whose clients die": """
import os, threading
from multiprocessing.connection import Client, Listener
with Listener() as listener:
    address = listener.address
    for _ in range(3):
        if not (child := os.fork()):
            write = os.write
            os.write = lambda *args: (write(*args), os._exit(0))
            try: Client(address)
            finally: os._exit(1)
        os.waitpid(child, 0)
    def serve():
        with listener.accept() as it: it.send("here")
    thread = threading.Thread(target=serve)
    thread.start()
    with Client(address) as it: told = it.recv()
    thread.join()
told == "here" and os.listdir(os.path.dirname(address)) == []""",
    "a client whose listener dies": """
import os
from multiprocessing.connection import Client, Listener
pipe = os.pipe()
if not (child := os.fork()):
    listener = Listener()
    os.write(pipe[1], listener.address.encode())
    read = os.read
    os.read = lambda *args: (read(*args), os._exit(0))
    try: listener.accept()
    finally: os._exit(1)
try: Client(os.read(pipe[0], 999).decode())
except ConnectionRefusedError as error: told = error.errno
told == 111 and os.waitpid(child, 0)[1] == 0""",
    "proc": "'lair' in open('/proc/self/comm').read() and len(open('/proc/cpuinfo').read()) > 9",
    "scratch": "open('/tmp/x', 'w').write('x') and open('/dev/shm/x', 'w').write('x') == 1",
    "modes": """
import os, shutil
open("file", "w").close()
os.chmod("file", 0o640), os.utime("file", (5, 5)), shutil.copy2("file", "copy")
os.stat("copy").st_mtime == 5 and os.listxattr("copy") == [] """,
}


def check(host: Host, python: Interpreter, code: str) -> None:
    names = "\n".join(f"{name} = {value!r}" for name, value in host.world.parameters.items())
    result = python.run(f"{names}\n{code.strip()}", timeout=90)
    assert (result.returncode, result.text) == (0, "True"), result
    # Libraries look for programs that would tell them something, and do without.
    assert [act for act in result.blocked if act["event"] != "subprocess.Popen"] == []


# Large libraries take seconds, and meet nothing in the other shapes that one of these does not have.
LARGE = ("matplotlib", "pandas", "scipy")
ENOUGH = (
    "root-with-groups",
    "user",
    "user-in-a-container",
    "root-old-kernel",
    "user-without-namespaces",
    "root-with-nothing",
)


@pytest.mark.parametrize("name", EVERYWHERE)
def test_everywhere(host: Host, python: Interpreter, name: str) -> None:
    if host.shape.level == "readonly":
        pytest.skip("nothing can be written at the level readonly")
    if name in LARGE and host.shape.name not in ENOUGH:
        pytest.skip("another shape has the same guards")
    check(host, python, EVERYWHERE[name])


def test_host_name(host: Host, python: Interpreter) -> None:
    """One of its own, or that of the host. It cannot be changed anywhere."""
    told = python.run("import socket\nsocket.gethostname()").text
    assert told == repr("lair" if host.shape.named else os.uname().nodename)
    assert (python.run("socket.sethostname('x')").error or {}).get("name") == "PermissionError"


@pytest.mark.parametrize("name", IN_A_TREE)
def test_in_a_tree(host: Host, python: Interpreter, name: str) -> None:
    if not host.shape.tree:
        pytest.skip(f"level {host.shape.level} has no file system of its own")
    if name == "proc" and not host.shape.proc:
        pytest.skip(f"there is no /proc in the shape {host.shape.name}")
    check(host, python, IN_A_TREE[name])


def test_threads_of_a_copy(host: Host, python: Interpreter) -> None:
    """They are seen everywhere, also those that Python does not know; where they cannot be copied, that is told."""

    def told(code: str) -> str | None:
        result = python.run(code, timeout=90)
        assert result.returncode == 0, result
        return result.unfaithful

    unseen = "threads are running, and without /proc none can be copied"
    why: dict[str, str | None] = {
        "landlock": "threads cannot be copied where a session may not read /proc",
        "uid": "threads cannot be copied where a session may not send signals",
        "readonly": "threads cannot be copied where a session may not send signals",
    }
    python_s = why.get(host.shape.level, None if host.shape.proc else f"other {unseen}")
    library_s = why.get(host.shape.level, None if host.shape.proc else f"a library's {unseen}")
    assert told("import ctypes, threading\nlibc = ctypes.CDLL(None)") is None
    begin = "stop = threading.Event()\nthread = threading.Thread(target=stop.wait)\nthread.start()"
    assert told(begin) == python_s
    assert told("stop.set(); thread.join()") is None
    waits = "lock = (ctypes.c_char * 40)()\nlibc.pthread_mutex_lock(lock)\nnumber = ctypes.c_ulong()\n"
    waits += "libc.pthread_create(ctypes.byref(number), None, libc.pthread_mutex_lock, lock)"
    for code in (waits, "1"):
        assert told(code) == library_s
    assert told("libc.pthread_mutex_unlock(lock), libc.pthread_join(number, None)") is None


def test_guards(shape: Shape, host: Host) -> None:
    warden, _ = host.session()
    guards = warden.ready["guards"]
    warden.close()
    assert warden.ready["level"] == shape.level
    assert {"seccomp", "nnp", "caps", "rlimits", "audit"} <= set(guards)
    assert ("mountns" in guards and "pidns" in guards and "netns" in guards) == shape.tree
    assert ("utsns" in guards) == shape.named
    assert any(guard.startswith("landlock:") for guard in guards) == (
        "landlock_create_ruleset=ENOSYS" not in shape.deny
    )


@pytest.fixture
def granting(shape: Shape) -> Iterator[Host]:
    if shape.level == "readonly":
        pytest.skip("nothing can be written at the level readonly")
    it = Host(shape, subprocess=True)
    yield it
    it.close()


def test_programs_when_granted(granting: Host) -> None:
    warden, python = granting.session()
    result = python.run("""
import os, subprocess, sys
open("in", "w").write("a\\nb\\n")
lines = subprocess.run("cat in | wc -l", shell=True, capture_output=True, text=True, check=True).stdout
outside = subprocess.run(["cat", "/etc/shadow"], capture_output=True).returncode
again = subprocess.run(["/usr/bin/python3", "-c", "import json; print(json.dumps(1))"], capture_output=True).stdout
(lines.strip(), outside != 0, again, os.system("exit 3") >> 8)
""")
    assert result.text == "('2', True, b'1\\n', 3)", result
    warden.close()


def test_pipes_to_programs(granting: Host) -> None:
    """In all the ways Python starts them, and ends them where that can be."""
    warden, python = granting.session()
    result = python.run("""
import asyncio, os, subprocess, time
one = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
two = subprocess.Popen(["wc", "-c"], stdin=one.stdout, stdout=subprocess.PIPE)
one.stdin.write(b"x" * 30000), one.stdin.close()
counted = int(two.communicate(timeout=20)[0])
async def whole():
    it = await asyncio.create_subprocess_exec("sort", stdin=-1, stdout=-1)
    sorted_, _ = await asyncio.wait_for(it.communicate(b"b\\na\\n"), 20)
    return sorted_, it.returncode
late = subprocess.Popen(["sleep", "60"], start_new_session=True)
try: late.wait(0.05)
except subprocess.TimeoutExpired: counted += 1
(counted, await whole(), one.wait(), late.poll())
""")
    assert result.text == "(30001, (b'a\\nb\\n', 0), 0, None)", result
    assert result.blocked == []
    warden.close()


SUITES = (
    "test_asyncio.test_futures",
    "test_contextlib",
    "test_csv",
    "test_dict",
    "test_fileio",
    "test_glob.GlobTests",  # not its loop of links: some kernels resolve one wrongly now and then, without a cage too
    "test_gzip",
    "test_json",
    "test_mmap",
    "test_re",
    "test_shutil",
    "test_tempfile",
    "test_zipfile",
)


def test_suites_of_the_standard_library(granting: Host) -> None:
    """What Python's own tests expect of a machine. They start programs, and change modes and times."""
    if not granting.shape.tree or not granting.shape.proc:
        pytest.skip(f"the shape {granting.shape.name} does not promise all that they want")
    if not Path(f"/usr/lib/python3.{sys.version_info[1]}/test/test_json").exists():
        pytest.skip("the distribution keeps Python's tests in a package of their own, which is not installed")
    warden, python = granting.session()
    result = python.run(
        f"""
import io, unittest
text = io.StringIO()
runner = unittest.TextTestRunner(stream=text, verbosity=0)
names = ["unittest"] + ["test." + name for name in {SUITES!r}]
found = unittest.main(module=None, argv=names, exit=False, testRunner=runner).result
print(text.getvalue()[-20000:])
(found.testsRun > 1000, len(found.failures), len(found.errors))""",
        timeout=55,
    )
    assert result.text == "(True, 0, 0)", result.out.decode()
    warden.close()


def test_scratch_is_not_shared(host: Host, shape: Shape) -> None:
    if not shape.tree:
        pytest.skip("there is no scratch without a file system of one's own")
    one, first = host.session()
    other, second = host.session()
    assert first.run("open('/tmp/mine', 'w').write('x')").returncode == 0
    assert second.run("import os; 'mine' in os.listdir('/tmp'), os.listdir('/dev/shm')").text == "(False, [])"
    one.close()
    other.close()

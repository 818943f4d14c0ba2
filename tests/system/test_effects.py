"""What going back does not undo is told by whoever goes back: connections, files outside, programs."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from daemon import Daemon, wait_until
from lair import Client, codec
from lair import messages as m

pytestmark = pytest.mark.usefixtures("no_sessions_left")


@pytest.fixture(scope="module")
def outside() -> Iterator[Path]:
    """A directory of the host's that sessions may write to."""
    directory = Path(tempfile.mkdtemp(prefix="lair-outside-"))
    directory.chmod(0o777)
    yield directory
    shutil.rmtree(directory)


@pytest.fixture(scope="module")
def daemon(outside: Path) -> Iterator[Daemon]:
    granted = {"grace": "100ms", "level": "", "write": str(outside), "network": "host", "subprocess": "on"}
    settings = {
        "profile default": {**granted, "checkpoint": "cell"},
        "profile manual": {**granted, "spares": "0", "checkpoint": "manual"},
        "profile off": {**granted, "spares": "0", "checkpoint": "off"},
        "profile bare": {"spares": "0", "checkpoint": "cell", "level": ""},
        "profile small": {**granted, "spares": "0", "checkpoint": "cell", "memory": "512M"},
    }
    it = Daemon(settings, options=("--restart-at-once",))
    yield it
    it.end()


@pytest.fixture
def place(outside: Path, request: pytest.FixtureRequest) -> Path:
    path = outside / str(abs(hash(request.node.name)))
    path.mkdir()
    path.chmod(0o777)
    return path


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as it:
        yield it


def told(reply: m.ExecReply | m.StateReply | m.ResetReply | m.SessionInfo) -> list[str]:
    words = []
    for item in reply.effects or ():
        effect = codec.read(m.Effect, item)
        to = "" if effect.to is None else f" to {os.fsdecode(effect.to)}"
        words.append(f"{effect.act} {os.fsdecode(effect.target)}{to}")
    return words


def address_of(listener: socket.socket) -> str:
    return "127.0.0.1:{}".format(listener.getsockname()[1])


def connecting(listener: socket.socket) -> str:
    return f"import socket\ns = socket.create_connection(('127.0.0.1', {listener.getsockname()[1]}))\n"


DEATHS = {
    "exit": ("import os; os._exit(3)", "exit"),
    "killed": ("import os; os.kill(os.getpid(), 9)", "signal 9"),
    "segfault": ("import ctypes; ctypes.string_at(0)", "signal 11"),
    "timeout": ("import signal\nsignal.signal(2, signal.SIG_IGN)\nwhile True: pass", "timeout"),
}


@pytest.mark.parametrize("death", DEATHS)
def test_a_rolled_back_cell(client: Client, session: str, place: Path, listener: socket.socket, death: str) -> None:
    code, cause = DEATHS[death]
    client.exec("x = 1", session)
    reply = client.exec(
        f"{connecting(listener)}open('{place}/out.csv', 'w').write('1,2')\n{code}", session, timeout=1
    )
    assert (reply.state, reply.cause, reply.restored) == ("rolled_back", cause, 1)
    assert told(reply) == [f"connected {address_of(listener)}", f"wrote {place}/out.csv"]
    assert reply.effects[0]["cell"] == 2
    # The next one goes back to the same state, since which all of it was done.
    reply = client.exec(f"open('{place}/more', 'w')\nimport os; os._exit(3)", session)
    assert told(reply) == [f"connected {address_of(listener)}", f"wrote {place}/out.csv", f"wrote {place}/more"]


def test_out_of_memory(client: Client, session: str, place: Path) -> None:
    client.exec("x = 1", session, profile="small")
    reply = client.exec(
        f"open('{place}/a', 'w')\nimport mmap\n"
        "many = [mmap.mmap(-1, 1 << 28) for _ in range(8)]\n"
        "for it in many:\n    for at in range(0, 1 << 28, 4096): it[at] = 1",
        session,
        timeout=30,
    )
    if reply.cause != "oom":
        pytest.skip("memory of a session is not limited here")
    assert (reply.state, told(reply)) == ("rolled_back", [f"wrote {place}/a"])


def test_nothing_is_told_of_nothing(client: Client, session: str, place: Path) -> None:
    client.exec(f"open('{place}/before', 'w')", session)
    client.exec(
        f"x = 1\nopen('inside', 'w')\nopen('/tmp/scratch', 'w')\nprint(open('{place}/before').read())", session
    )
    reply = client.undo(session)
    assert (reply.cell, reply.effects, reply.effects_more) == (1, None, 0)
    died = client.exec("import os; os.makedirs('a/b'); os._exit(1)", session)
    assert (died.state, died.effects, died.effects_more) == ("rolled_back", None, 0)


def test_nothing_is_told_of_a_state_that_is_kept(client: Client, session: str, place: Path) -> None:
    reply = client.exec(f"open('{place}/a', 'w')\n1/0", session)
    assert (reply.state, reply.effects) == ("kept", None)
    assert client.checkpoint(session, "here").effects is None


def test_undo_tells_more_each_time(client: Client, session: str, place: Path) -> None:
    client.exec("x = 1", session)
    client.exec(f"open('{place}/two', 'w')", session)
    client.exec(f"open('{place}/three', 'w')", session)
    assert told(client.undo(session)) == [f"wrote {place}/three"]
    assert told(client.undo(session)) == [f"wrote {place}/two", f"wrote {place}/three"]
    # Forward again: all that was done is behind that state.
    assert told(client.restore(session, "3")) == []


def test_restore_tells_what_another_way_led_to(client: Client, session: str, place: Path) -> None:
    client.exec(f"open('{place}/one', 'w')", session, profile="manual")
    client.checkpoint(session, "here")
    client.exec(f"open('{place}/two', 'w')", session)
    client.exec(f"open('{place}/three', 'a')\nopen('{place}/two', 'a')", session)
    reply = client.restore(session, "here")
    assert (reply.cell, reply.name) == (1, "here")
    assert told(reply) == [f"wrote {place}/two", f"wrote {place}/three"]
    assert [item["cell"] for item in reply.effects] == [2, 3]
    assert told(client.restore(session, "here")) == [f"wrote {place}/two", f"wrote {place}/three"]


def test_names(client: Client, session: str, place: Path) -> None:
    """However they are named, and whoever names them."""
    client.exec("x = 1", session)
    client.exec(
        f"import os, shutil\nplace = '{place}'\n"
        "os.mkdir(f'{place}/d')\n"
        "open(f'{place}/a', 'w')\n"
        "os.rename(f'{place}/a', f'{place}/d/b')\n"
        "os.symlink(place, 'way')\n"
        "open('way/linked', 'w')\n"
        "fd = os.open(place, os.O_RDONLY)\n"
        "os.close(os.open('relative', os.O_CREAT | os.O_WRONLY, dir_fd=fd))\n"
        "os.remove('relative', dir_fd=fd)\n"
        "os.truncate(f'{place}/linked', 5)\n"
        "shutil.move(f'{place}/linked', 'inside')\n"
        "try: os.remove(f'{place}/missing')\n"
        "except FileNotFoundError: pass\n"
        "try: open(f'{place}/no/such', 'w')\n"
        "except FileNotFoundError: pass\n"
        "os.chdir(place)\n"
        "os.remove('d/b')\n"
        "os.rmdir('d')",
        session,
    )
    found = told(client.undo(session))
    assert found[:7] == [
        f"made {place}/d",
        f"wrote {place}/a",
        f"renamed {place}/a to {place}/d/b",
        f"wrote {place}/linked",
        f"wrote {place}/relative",
        f"removed {place}/relative",
        found[6],
    ]
    assert found[-2:] == [f"removed {place}/d/b", f"removed {place}/d"]
    assert any(f"{place}/linked" in it for it in found[6:-2])
    assert not any("missing" in it or "such" in it or it.endswith("/way") for it in found)


def test_a_library_in_c(client: Client, session: str, place: Path) -> None:
    client.exec("import sqlite3, ctypes", session)
    client.exec(
        f"ctypes.CDLL(None).fopen(b'{place}/c', b'w')\n"
        f"db = sqlite3.connect('{place}/db'); db.execute('create table t (x)'); db.commit()",
        session,
    )
    found = told(client.undo(session))
    assert f"wrote {place}/c" in found and f"wrote {place}/db" in found


def test_a_file_that_was_open_before(client: Client, session: str, place: Path) -> None:
    client.exec(f"log = open('{place}/log', 'a')", session)
    client.exec("log.write('x'); log.flush()", session)
    assert told(client.undo(session)) == [f"wrote {place}/log"]


def test_a_connection_that_was_there_before(client: Client, session: str, listener: socket.socket) -> None:
    client.exec(connecting(listener), session)
    client.exec("s.sendall(b'DELETE /')\ns.sendall(b'again')", session)
    assert told(client.undo(session)) == [f"sent {address_of(listener)}"]


def test_a_connection_that_does_not_block(client: Client, session: str, listener: socket.socket) -> None:
    client.exec("import asyncio", session)
    port = listener.getsockname()[1]
    client.exec(f"_, writer = await asyncio.open_connection('127.0.0.1', {port})\nwriter.close()", session)
    assert told(client.undo(session)) == [f"connected {address_of(listener)}"]


def test_datagrams(client: Client, session: str) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
        receiver.bind(("127.0.0.1", 0))
        client.exec("import socket", session)
        port = receiver.getsockname()[1]
        code = f"s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\ns.sendto(b'x', ('127.0.0.1', {port}))"
        client.exec(code, session)
        assert told(client.undo(session)) == [f"sent 127.0.0.1:{port}"]


def test_programs(client: Client, session: str) -> None:
    """They are not looked into; that they were started is told."""
    client.exec("import os, subprocess", session)
    client.exec(
        "subprocess.run(['true'])\nos.system('true')\n"
        "try: subprocess.run(['no-such-program'])\nexcept FileNotFoundError: pass",
        session,
    )
    assert told(client.undo(session)) == [f"ran {shutil.which('true')}", "ran /bin/sh"]


def test_children(client: Client, session: str, place: Path) -> None:
    """What a cell has forked is seen as the cell is, to its last act."""
    client.exec("import os, time", session)
    code = f"if os.fork() == 0:\n    open('{place}/child', 'w')\n    os._exit(0)\nos.wait()\nos._exit(1)"
    assert told(client.exec(code, session)) == [f"wrote {place}/child"]


def test_threads_between_cells(client: Client, session: str, place: Path) -> None:
    client.exec("import threading, time", session)
    client.exec(
        f"def late():\n    time.sleep(0.2)\n    open('{place}/late', 'w')\n    time.sleep(60)\n"
        "threading.Thread(target=late, daemon=True).start()",
        session,
    )
    wait_until((place / "late").exists, "the thread has written")
    assert told(client.undo(session)) == [f"wrote {place}/late"]


def test_a_death_between_cells(client: Client, session: str, place: Path) -> None:
    """The next cell tells, and what it does itself is not lost."""
    client.exec("import os, time", session)
    code = (
        "if os.fork() == 0:\n    time.sleep(0.1)\n"
        f"    open('{place}/late', 'w')\n    os.kill(os.getppid(), 9)\n    os._exit(0)"
    )
    client.exec(code, session)
    wait_until((place / "late").exists, "the child has written")
    threading.Event().wait(0.2)
    reply = client.exec(f"open('{place}/own', 'w'); 1", session)
    assert (reply.state, reply.text) == ("rolled_back", "1")
    assert told(reply) == [f"wrote {place}/late"]


def test_reset(client: Client, session: str, place: Path) -> None:
    client.exec(f"open('{place}/a', 'w')", session)
    reply = client.reset(session)
    assert told(reply) == [f"wrote {place}/a"]
    died = client.exec(f"open('{place}/b', 'w')\nimport os; os._exit(1)", session, profile=None)
    assert told(died)[-1] == f"wrote {place}/b"


def test_reset_of_a_running_cell(daemon: Daemon, client: Client, session: str, place: Path) -> None:
    client.open(session)
    cell = client.start(f"open('{place}/a', 'w')\nimport time; time.sleep(60)", session)
    wait_until((place / "a").exists, "the cell has written")
    threading.Event().wait(0.2)
    assert told(daemon.client().reset(session)) == [f"wrote {place}/a"]
    reply = client.finish(cell, m.ExecReply)
    assert (reply.state, reply.cause, told(reply)) == ("reset", "reset", [f"wrote {place}/a"])


def test_without_checkpoints_all_of_it_is_told(client: Client, session: str, place: Path) -> None:
    client.exec(f"open('{place}/one', 'w')", session, profile="off")
    reply = client.exec(f"open('{place}/two', 'w')\nimport os; os._exit(1)", session)
    assert (reply.state, told(reply)) == ("reset", [f"wrote {place}/one", f"wrote {place}/two"])


@pytest.mark.parametrize("files", [False, True])
def test_branch(client: Client, session: str, place: Path, files: bool) -> None:
    """Of an older state, what its parent has done since; then each has what it did itself, and before."""
    client.exec(f"open('{place}/one', 'w')", session)
    client.exec(f"open('{place}/two', 'w')", session)
    assert told(client.branch(session, session + ".now", files=files)) == []
    old = session + ".old"
    assert told(client.branch(session, old, checkpoint="1", files=files)) == [f"wrote {place}/two"]
    client.exec("x = 1", old)
    client.exec(f"open('{place}/of the branch', 'w')", old)
    assert told(client.undo(old)) == [f"wrote {place}/of the branch"]
    assert told(client.reset(old)) == [f"wrote {place}/one", f"wrote {place}/of the branch"]
    assert told(client.undo(session)) == [f"wrote {place}/two"]


def test_many_files(client: Client, session: str, place: Path) -> None:
    client.exec("x = 1", session)
    client.exec(f"for n in range(10000): open(f'{place}/{{n}}', 'w').close()", session)
    reply = client.undo(session)
    found = told(reply)
    assert found == [f"wrote {place}/{n}" for n in range(64)]
    assert reply.effects_more == 10000 - 64


def test_many_cells(client: Client, session: str, place: Path) -> None:
    client.exec("x = 1", session, profile="manual")
    client.checkpoint(session, "here")
    for n in range(30):
        client.exec(f"for n in range(100): open(f'{place}/{n}-{{n}}-' + 'x' * 200, 'w').close()", session)
    reply = client.restore(session, "here")
    assert len(told(reply)) == 64
    assert reply.effects_more == 3000 - 64


def test_the_same_once(client: Client, session: str, place: Path, listener: socket.socket) -> None:
    client.exec("x = 1", session)
    code = f"for _ in range(300):\n    open('{place}/a', 'a').write('x')\n"
    client.exec(code, session)
    client.exec(code, session)
    reply = client.undo(session, 2)
    assert (told(reply), reply.effects_more) == ([f"wrote {place}/a"], 0)


def test_names_of_any_bytes(client: Client, session: str, place: Path) -> None:
    client.exec("x = 1", session)
    name = b"\xff\n\x1b[31m" + b"n" * 240
    client.exec(f"open({os.fsencode(place)!r} + b'/' + {name!r}, 'w')", session)
    (effect,) = client.undo(session).effects
    assert effect["target"] == os.fsencode(place) + b"/" + name
    client.exec(
        f"import os\nfor n in 'abc':\n    os.chdir('{place}' if n == 'a' else 'd' * 240)\n    os.mkdir('d' * 240)",
        session,
    )
    last = client.undo(session).effects[-1]["target"]
    assert len(last) == 496 and last.endswith(b"...")


def test_a_session_that_lies(client: Client, session: str, place: Path) -> None:
    """The book is its own memory: whatever is in it, the router lives, and tells no more than it may."""
    client.exec("x = 1", session)
    client.exec(
        f"open('{place}/a', 'w')\n"
        "import os, random\n"
        "for line in open('/proc/self/maps'):\n"
        "    if 'lair-output' not in line: continue\n"
        "    import ctypes\n"
        "    begin, end = (int(it, 16) for it in line.split()[0].split('-'))\n"
        "    noise = random.Random(1).randbytes(end - begin - 140000)\n"
        "    ctypes.memmove(begin + 135000, noise, len(noise))\n"
        "    ctypes.memset(begin + 131088 + 8, 0xff, 8)\n",
        session,
    )
    client.undo(session)
    assert client.exec("x", session).text == "1"


def test_what_is_being_sent(client: Client, session: str, listener: socket.socket) -> None:
    """Nobody reads, so it is still being sent when the cell is killed."""
    client.exec(connecting(listener) + "import signal\nsignal.signal(2, signal.SIG_IGN)", session)
    reply = client.exec("s.sendall(bytes(100 << 20))", session, timeout=0.5)
    assert (reply.cause, told(reply)) == ("timeout", [f"sent {address_of(listener)}"])


def router_dies(daemon: Daemon) -> None:
    with daemon.client(5) as it:
        pid = it.stats().pid
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: daemon._hello(), "another router")


def test_another_router_tells_the_same(daemon: Daemon, session: str, place: Path) -> None:
    with daemon.client() as client:
        client.exec("x = 1", session)
        client.exec(f"open('{place}/two', 'w')", session)
        client.exec(f"for n in range(200): open(f'{place}/{{n}}', 'w').close()", session)
    router_dies(daemon)
    with daemon.client() as client:
        reply = client.undo(session)
        assert (len(told(reply)), reply.effects_more) == (64, 136)
        reply = client.undo(session)
        assert (told(reply)[0], len(told(reply)), reply.effects_more) == (f"wrote {place}/two", 64, 137)


def test_the_router_dies_while_the_cell_runs(daemon: Daemon, session: str, place: Path) -> None:
    with daemon.client() as client:
        client.exec("x = 1", session)
        code = f"open('{place}/a', 'w')\nimport os, time; time.sleep(1)\nos._exit(1)"
        client.call(m.Exec(id=client.new_id(), session=session, code=code, detach=True), m.DetachedReply)
        wait_until((place / "a").exists, "the cell has written")
    router_dies(daemon)
    with daemon.client() as client:
        reply = client.call(m.Attach(id=client.new_id(), session=session, cell=2), m.ExecReply)
    assert (reply.state, told(reply)) == ("rolled_back", [f"wrote {place}/a"])


def test_the_router_dies_with_a_branch_on_its_way(daemon: Daemon, session: str, place: Path) -> None:
    """What is told of it then, is."""
    with daemon.client() as client:
        client.exec("x = 1", session)
        client.exec(f"open('{place}/two', 'w')\nopen('big', 'wb').write(bytes(50 << 20))", session)
        key = "k" + str(time.time())
        request = m.Branch(
            id=client.new_id(), session=session, branch=session + ".b", origin="1", files=True, key=key
        )
        client.send(request)
        router = client.stats().pid
    os.kill(router, signal.SIGKILL)
    wait_until(lambda: daemon._hello(), "another router")
    with daemon.client() as client:
        request = m.Branch(
            id=client.new_id(), session=session, branch=session + ".b", origin="1", files=True, key=key
        )
        assert told(client.call(request, m.SessionInfo)) == [f"wrote {place}/two"]


def test_nothing_is_granted(client: Client, session: str) -> None:
    client.exec("x = 1", session, profile="bare")
    client.exec(
        "open('a', 'w')\nopen('/tmp/b', 'w')\nopen('/dev/null', 'w')\nimport os; os.fork() or os._exit(0)", session
    )
    assert told(client.undo(session)) == []

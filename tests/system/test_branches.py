"""Branches: sessions that grow from another's state, with its files or with a copy of them."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from daemon import Daemon, wait_until
from lair import Client, LairError
from lair.messages import Branch, Drop, ExecReply, Reply, SessionInfo, Shutdown

pytestmark = pytest.mark.usefixtures("no_sessions_left")

SETTINGS = {
    "profile default": {"grace": "100ms", "level": "", "checkpoint": "cell"},
    "profile keep": {"grace": "100ms", "level": "", "checkpoint": "cell", "files": "keep", "spares": "0"},
}


def newest_is(client: Client, session: str, cell: int) -> bool:
    return client.checkpoints(session)[-1].cell == cell


def test_a_sibling_that_ends_takes_no_checkpoint_along(client: Client, session: str) -> None:
    """What it left behind is swept, and a copy that has just been forked is not yet known to the warden."""
    client.exec("x = 0", session)
    for i in range(1, 20):
        client.branch(session, f"{session}-{i}")
        cell = client.exec(f"x = {i}", session).cell
        client.shutdown(f"{session}-{i}")
        wait_until(partial(newest_is, client, session, cell), "the checkpoint is there", 2)


def test_branches(client: Client, session: str) -> None:
    """Eight ways on from one state, side by side; the best is kept."""
    client.exec("base = 100\nimport random", session)
    names = [f"{session}.{i}" for i in range(8)]
    for name in names:
        assert client.branch(session, name).opened
    cells = [
        client.start(f"score = base + {i}\nimport time; time.sleep(0.2)\nscore", n) for i, n in enumerate(names)
    ]
    assert [client.finish(cell, ExecReply).text for cell in cells] == [str(100 + i) for i in range(8)]
    draws = {client.exec("random.random()", name).text for name in names}
    assert len(draws) == 8, "siblings draw different numbers"
    for name in names[:-1]:
        client.shutdown(name)
    client.shutdown(session)
    assert client.exec("score", names[-1]).text == "107", "it outlives its parent"
    reply = client.exec("import os; os._exit(1)", names[-1])
    assert (reply.state, client.exec("score", names[-1]).text) == ("rolled_back", "107")
    client.shutdown(names[-1])


def test_a_branch_awaits_while_its_parent_does(client: Client, session: str) -> None:
    """What wakes one is not lost in the loop of the other."""
    client.exec("import asyncio, threading\nawait asyncio.sleep(0)", session)
    branch = session + ".b"
    client.branch(session, branch)
    parent = client.start("while True: await asyncio.sleep(0.001)", session)
    wake = """
loop = asyncio.get_running_loop()
for _ in range(100):
    event = asyncio.Event()
    thread = threading.Timer(0.002, loop.call_soon_threadsafe, [event.set])
    thread.start()
    await event.wait()
    thread.join()
"""
    assert client.exec(wake, branch, timeout=20).cause is None
    client.interrupt(session)
    assert client.finish(parent, ExecReply).cause == "interrupt"
    client.shutdown(branch)


def test_branch_from_a_checkpoint_that_is_dropped_meanwhile(client: Client, session: str) -> None:
    client.exec("x = 1", session)
    client.checkpoint(session, "then")
    client.exec("x = 2", session)
    growing = client.send(Branch(id=client.new_id(), session=session, branch=session + ".b", origin="then"))
    dropped = client.send(Drop(id=client.new_id(), session=session, name="then"))
    assert client.finish(growing, SessionInfo).opened
    client.finish(dropped, Reply)
    assert client.exec("x", session + ".b").text == "1"
    assert "then" not in [c.name for c in client.checkpoints(session)]
    client.shutdown(session + ".b")


def test_branch_of_a_session_that_ends_meanwhile(client: Client, session: str) -> None:
    client.exec("x = 1", session)
    client.checkpoint(session)
    growing = client.send(Branch(id=client.new_id(), session=session, branch=session + ".b"))
    ending = client.send(Shutdown(id=client.new_id(), session=session))
    assert client.finish(growing, SessionInfo).opened
    client.finish(ending, Reply)
    assert client.exec("x", session + ".b").text == "1"
    client.shutdown(session + ".b")


def test_branch_falls_back_to_itself(client: Client, session: str) -> None:
    client.exec("x = 1", session)
    client.branch(session, session + ".b")
    reply = client.exec("x = 2\nimport os; os._exit(1)", session + ".b")
    assert reply.state == "rolled_back"
    assert client.exec("x", session + ".b").text == "1"
    with pytest.raises(LairError, match="does not remember"):
        client.undo(session + ".b", 5)
    client.shutdown(session + ".b")


def test_reset_of_a_branch(client: Client, session: str) -> None:
    branch = session + ".b"
    client.exec("x = 1", session)
    client.branch(session, branch)
    client.reset(branch)
    assert [c.cell for c in client.checkpoints(branch)] == [1], "what it began with, and nothing of the reset"
    reply = client.exec("import os; os._exit(1)", branch)
    assert (reply.state, reply.restored) == ("rolled_back", 0)
    assert client.restore(branch, "1").cell == 1
    assert client.exec("x", branch).text == "1"


def test_a_family_ends_together(start_daemon: Callable[..., Daemon]) -> None:
    it = start_daemon({"profile default": {"checkpoint": "cell", "level": ""}})
    with Client(str(it.socket)) as client:
        client.exec("x = 1", "a")
        for i in range(3):
            client.branch("a", f"b{i}")
    began = time.monotonic()
    assert it.terminate() == 0
    assert time.monotonic() - began < 3
    assert it.left_behind() == []


def test_a_family_s_time_is_up(start_daemon: Callable[..., Daemon]) -> None:
    it = start_daemon({"profile default": {"checkpoint": "cell", "level": "", "hard_ttl": "2s", "idle_ttl": "off"}})
    with Client(str(it.socket)) as client:
        client.exec("x = 1", "a")
        assert (client.branch("a", "b").hard_left or 3) <= 2
        warden = client.info("b").pid
        wait_until(lambda: not client.list(), "both have ended")
        wait_until(lambda: not os.path.exists(f"/proc/{warden}"), "and the cage with them")


def test_a_branch_with_checkpoints_ends(client: Client, session: str) -> None:
    """Its family, and the router, go on without them."""
    router = client.stats().pid
    client.exec("x = 1", session)
    for n in range(3):
        branch = f"{session}:{n}"
        client.branch(session, branch)
        client.exec("y = 2", branch)
        client.shutdown(branch)
        assert client.exec("x += 1; x", session).text == str(n + 2)
    assert client.stats().pid == router


def test_branch_from_and_files(client: Client, session: str) -> None:
    client.exec("open('data', 'w').write('old')\nx = 1", session)
    client.checkpoint(session, "start")
    client.exec("x = 2", session)
    info = client.branch(session, session + ".b", checkpoint="start", files=True)
    assert info.workspace != client.info(session).workspace
    assert client.exec("x, open('data').read()", session + ".b").text == "(1, 'old')"
    client.exec("open('data', 'w').write('new')", session + ".b")
    assert client.exec("open('data').read()", session).text == "'old'"
    client.shutdown(session + ".b")


def test_branch_with_files_wherever_its_parent_works(client: Client, session: str) -> None:
    """It is the workspace that is copied, whatever a cell has made of the environment and the directory."""
    branch = session + ".b"
    client.exec("import os\nos.mkdir('sub')\nopen('sub/data', 'w').write('old')\nos.chdir('sub')", session)
    client.exec("os.environ['HOME'] = '/nonexistent'; del os.environ['PWD']", session)
    info = client.branch(session, branch, files=True)
    assert client.exec("os.getcwd()", branch).text == repr(f"{info.workspace}/sub")
    assert client.exec("os.environ['HOME'], 'PWD' in os.environ", branch).text == "('/nonexistent', False)"
    client.exec("open('data', 'w').write('new')", branch)
    assert client.exec("open('data').read()", session).text == "'old'"
    client.exec("os.chdir('/')", session)
    client.branch(session, branch + "2", files=True)
    assert client.exec("os.getcwd()", branch + "2").text == "'/'"
    for it in (branch, branch + "2"):
        client.shutdown(it)


@pytest.mark.parametrize("fresh", ["reset", "death"])
def test_branch_with_files_has_them_whatever_follows(client: Client, session: str, fresh: str) -> None:
    branch = session + ".b"
    client.exec("open('data', 'w').write('old')", session)
    info = client.branch(session, branch, files=True)
    if fresh == "reset":
        client.reset(branch)
    else:
        client.drop(branch, "1")
        assert client.exec("import os; os._exit(1)", branch).state == "reset"
    assert client.exec("import os\nos.getcwd(), os.environ['HOME']", branch).text == repr((info.workspace,) * 2)
    assert client.exec("open('made', 'w').write('new')", branch).artifacts, "what is told of is its own"
    assert client.get(branch, b"made") == b"new"
    client.exec("open('data', 'w').write('new')", branch)
    assert client.exec("open('data').read()", session).text == "'old'"
    client.shutdown(branch)


def test_branch_with_files_whose_directory_is_gone_is_reset(client: Client, session: str) -> None:
    info = client.branch(client.open(session).session, session + ".b", files=True)
    client.exec("import os, shutil\nshutil.rmtree(os.getcwd())", session + ".b")
    client.reset(session + ".b")
    assert client.exec("import os\nos.getcwd(), os.listdir()", session + ".b").text == repr((info.workspace, []))
    client.shutdown(session + ".b")


def test_branch_of_a_branch_with_files(client: Client, session: str) -> None:
    branch, twig = session + ".b", session + ".c"
    client.exec("open('data', 'w').write('of the family')", session)
    info = client.branch(session, branch, files=True)
    client.exec("open('data', 'w').write('of the branch')", branch)
    assert client.branch(branch, twig, files=False).workspace == info.workspace
    assert client.exec("open('data').read()", twig).text == "'of the branch'"
    assert client.get(twig, b"data") == b"of the branch"
    client.shutdown(twig)
    client.shutdown(branch)


def test_files_of_a_branch_go_with_the_last_who_works_there(client: Client, session: str) -> None:
    branch, twig = session + ".b", session + ".c"
    client.exec("import os\nos.makedirs('a/b')\nopen('a/b/data', 'w').write('old')", session)
    place = client.branch(session, branch, files=True).workspace
    client.branch(branch, twig, files=False)
    client.shutdown(branch)
    client.branch(session, branch, files=True)
    client.shutdown(branch)
    wait_until(lambda: len(client.files(session, ".branches")) == 1, "nobody is left in the other")
    assert client.exec("open('a/b/data').read()", twig).text == "'old'"
    client.shutdown(twig)
    wait_until(lambda: not client.files(session, ".branches"), "nobody is left in there")
    assert client.exec(f"os.path.exists({place!r}), open('a/b/data').read()", session).text == "(False, 'old')"


@pytest.mark.parametrize("trap", [".branches", "PLACE", "PLACE/a"])
def test_nothing_else_goes_with_the_files_of_a_branch(
    daemon: Daemon, client: Client, session: str, trap: str
) -> None:
    """Somebody has put a link in their place."""
    client.exec("import os\nos.makedirs('a/b')\nopen('a/b/data', 'w').write('old')", session)
    place = client.branch(session, session + ".b", files=True).workspace
    name = Path(place).name
    client.exec(
        f"for it in ('kept', 'kept/{name}'): os.mkdir(it)\nfor it in ('kept', 'kept/{name}'): open(it + '/data', 'w')\n"
        f"trap = {trap!r}.replace('PLACE', {place!r})\n"
        "os.rename(trap, 'moved')\nos.symlink(os.path.abspath('kept'), trap)",
        session,
    )
    client.shutdown(session + ".b")
    if trap == "PLACE":
        wait_until(lambda: f"cannot remove {place}" in daemon.log(), "it was tried")
    if trap == "PLACE/a":
        wait_until(lambda: not client.files(session, ".branches"), "they are gone")
    assert client.exec(f"sorted(os.listdir('kept')), os.listdir('kept/{name}')", session).text == repr(
        ([name, "data"], ["data"])
    )


def test_branches_draw_other_numbers_from_a_database(client: Client, session: str) -> None:
    """sqlite has a generator of its own, which it begins anew only for what is opened after."""
    client.exec(
        "import sqlite3\nd = sqlite3.connect(':memory:')\n"
        "draw = lambda: d.execute('select hex(randomblob(16))').fetchone()[0]\ndraw()",
        session,
    )
    client.branch(session, session + ".b")
    client.branch(session, session + ".c")
    drawn = {client.exec("draw()", name).text for name in (session, session + ".b", session + ".c")}
    assert len(drawn) == 3
    client.shutdown(session + ".b")
    client.shutdown(session + ".c")


def test_branch_with_files_from_a_directory_that_is_gone(client: Client, session: str) -> None:
    client.exec(
        "import os\nopen('data', 'w').write('old')\nos.mkdir('d')\nos.chdir('d')\nos.rmdir('../d')", session
    )
    info = client.branch(session, session + ".b", files=True)
    assert client.exec("os.getcwd(), open('data').read()", session + ".b").text == repr((info.workspace, "old"))
    client.shutdown(session + ".b")


@pytest.mark.parametrize(
    "code",
    [
        "import builtins; builtins.__dict__.clear()",
        "import os, shutil, posix; [it.__dict__.clear() for it in (shutil, posix, os)]",
        "import sys; sys.modules.clear(); sys.__dict__.clear()",
        "import os; os.environ.clear(); os.environ = None",
        "import os; os.umask(0o777)",
        "import sys; sys.setrecursionlimit(30)",
    ],
)
def test_branch_with_files_depends_on_nothing_a_cell_can_reach(client: Client, session: str, code: str) -> None:
    client.exec(
        "import os\nos.makedirs('a/b')\nopen('a/b/data', 'w').write('old' * 10**6)\nos.chmod('a/b/data', 0o640)\n"
        "os.utime('a/b/data', (1, 2))\nos.utime('a', (3, 4))\nos.symlink('../nowhere', 'a/link')\nos.mkfifo('fifo')\n"
        "os.mkdir('a/.branches')",
        session,
    )
    client.exec(code, session)
    place = client.branch(session, session + ".b", files=True).workspace
    client.undo(session)
    copied = client.exec(f"open({place + '/a/b/data'!r}).read() == open('a/b/data').read()", session)
    assert copied.text == "True"
    client.branch(session, session + ".c", checkpoint="1", files=True)
    seen = (
        "a = os.stat('a/b/data'); (sorted(os.listdir('.')), sorted(os.listdir('a')), os.readlink('a/link'), "
        "open('a/b/data').read() == 'old' * 10**6, oct(a.st_mode), a.st_mtime, os.stat('a').st_mtime)"
    )
    expected = client.exec(seen, session).text
    assert expected is not None
    assert client.exec(seen, session + ".c").text == expected.replace("'.branches', ", "", 1)
    assert client.exec("1 + 1", session + ".b").text == "2"
    for it in (".b", ".c"):
        client.shutdown(session + it)


def test_branch_whose_files_cannot_be_copied(client: Client, session: str) -> None:
    """The reason is told, nothing half copied is left, and the parent goes on."""
    client.open(session, "keep")
    client.exec("import os\nopen('data', 'w').write('old')\nos.close(os.open('shut', os.O_CREAT, 0))", session)
    with pytest.raises(
        LairError, match=r"unsupported: the files for session .* cannot be copied: .*Permission denied: .*shut"
    ):
        client.branch(session, session + ".b", files=True)
    assert session + ".b" not in [info.session for info in client.list()]
    assert client.exec("os.listdir('.branches')", session).text == "[]"
    client.exec("os.remove('shut')", session)
    client.branch(session, session + ".b", files=True)
    assert client.exec("open('data').read()", session + ".b").text == "'old'"
    client.shutdown(session + ".b")


def test_branch_that_dies_while_its_files_are_copied(client: Client, session: str) -> None:
    client.open(session, "keep")
    client.exec("import os, sys\nopen('data', 'w').write('old')", session)
    client.exec(
        "def hook(event, args):\n    if event == 'os.chmod' and not pid == os.getpid(): os._exit(3)\n"
        "pid = os.getpid()\nsys.addaudithook(hook)",
        session,
    )
    with pytest.raises(LairError, match="gone: the files for session .* cannot be copied: its interpreter died"):
        client.branch(session, session + ".b", files=True)
    client.undo(session)
    assert client.exec("open('data').read()", session).text == "'old'"


def test_branch_id_taken(client: Client, session: str) -> None:
    client.exec("x = 1", session)
    with pytest.raises(LairError, match="denied: .* is taken"):
        client.branch(session, session)


def test_a_branch_that_dies_at_birth(client: Client, session: str) -> None:
    """It has what it grew from until it has a checkpoint of its own."""
    code = """
import os, random
x = 1
def seed():
    try: os.mkdir("died")
    except FileExistsError: return
    os._exit(7)
random.seed = seed
"""
    assert client.exec(code, session).returncode == 0
    assert client.branch(session, f"{session}.b", files=False).opened
    reply = client.exec("x, os.path.isdir('died')", f"{session}.b")
    assert (reply.text, reply.state, reply.cell) == ("(1, True)", "kept", 2)
    client.exec("x = 5", f"{session}.b")
    assert client.exec("os._exit(1)", f"{session}.b").state == "rolled_back"
    assert client.exec("x", f"{session}.b").text == "5"

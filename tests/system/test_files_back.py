"""The files of a session go back with its state: each byte, mode, time and link, whatever was done in between."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import pytest

from daemon import Daemon, wait_until
from lair import Client, LairError, codec
from lair import messages as m

pytestmark = pytest.mark.usefixtures("no_sessions_left")

SETTINGS = {
    "profile default": {"grace": "100ms", "level": "", "checkpoint": "cell", "subprocess": "on"},
    "profile manual": {"spares": "0", "checkpoint": "manual", "level": "", "grace": "100ms"},
    "profile keep": {"spares": "0", "checkpoint": "cell", "files": "keep", "level": "", "grace": "100ms"},
    "profile little": {"spares": "0", "checkpoint": "cell", "checkpoint_files": "64K", "level": ""},
}


def tree(top: Path) -> dict[str, Any]:
    """All that can be told of the files, but for those of branches."""
    found: dict[str, Any] = {}
    names: dict[int, str] = {}
    for path, directories, files in os.walk(top):
        directories[:] = sorted(it for it in directories if it != ".branches" or path != str(top))
        for name in ["", *sorted(files), *(it for it in directories if os.path.islink(f"{path}/{it}"))]:
            it = f"{path}/{name}" if name else path
            status = os.lstat(it)
            told: list[Any] = [oct(status.st_mode), status.st_mtime_ns]
            if stat.S_ISREG(status.st_mode):
                told.append(Path(it).read_bytes())
                if status.st_nlink > 1:
                    told.append(names.setdefault(status.st_ino, os.path.relpath(it, top)))
            elif stat.S_ISLNK(status.st_mode):
                told.append(os.readlink(it))
            found[os.path.relpath(it, top)] = told
    return found


def place(client: Client, session: str) -> Path:
    return Path(next(it.workspace for it in client.list() if it.session == session))


def changes(reply: m.StateReply | m.ExecReply) -> dict[str, str]:
    items = [codec.read(m.FileBack, it) for it in reply.files or ()]
    return {it.path.decode(): it.change for it in items}


def test_undo(client: Client, opened: str) -> None:
    client.exec("open('a', 'w').write('one'); open('b', 'w').write('b'); import os; os.mkdir('d')", opened)
    before = tree(place(client, opened))
    client.exec("open('a', 'a').write(' two'); os.rename('b', 'd/c'); open('new', 'w').write('x')", opened)
    after = tree(place(client, opened))
    reply = client.undo(opened)
    assert tree(place(client, opened)) == before
    assert changes(reply) == {"a": "restored", "b": "made", "d/c": "removed", "new": "removed"}
    assert reply.files_stay is None
    client.restore(opened, "2")
    assert tree(place(client, opened)) == after
    client.restore(opened, "1")
    assert tree(place(client, opened)) == before
    assert client.exec("open('a').read(), sorted(os.listdir())", opened).text == "('one', ['a', 'b', 'd'])"
    client.undo(opened, 2)
    assert list(tree(place(client, opened))) == ["."]


@pytest.mark.parametrize(
    "death",
    [
        "os._exit(3)",
        "os.kill(os.getpid(), 9)",
        "import time\nwhile True:\n    try: time.sleep(9)\n    except BaseException: pass",
    ],
)
def test_rolled_back(client: Client, opened: str, death: str) -> None:
    client.exec("import os; open('data', 'w').write('precious')", opened)
    before = tree(place(client, opened))
    reply = client.exec(
        f"open('data', 'w').write('spoilt'); open('junk', 'w'); os.mkdir('e')\n{death}", opened, timeout=0.5
    )
    assert reply.state == "rolled_back"
    assert tree(place(client, opened)) == before
    assert changes(reply) == {"data": "restored", "junk": "removed", "e": "removed"}
    assert client.exec("open('data').read()", opened).text == "'precious'"


def test_back_to_back(client: Client, opened: str) -> None:
    """Each cell begins only when what it overwrites is kept."""
    asked = [
        client.send(m.Exec(id=client.new_id(), code=f"open('n', 'w').write('{n}' * 300000)", session=opened))
        for n in range(6)
    ]
    for it in asked:
        client.finish(it, m.ExecReply)
    for n in reversed(range(5)):
        client.undo(opened)
        assert (place(client, opened) / "n").read_text() == str(n) * 300000


def test_keep_files(client: Client, opened: str) -> None:
    client.exec("import os; open('a', 'w').write('1')", opened)
    client.exec("open('a', 'w').write('2'); x = 2", opened)
    reply = client.call(m.Undo(id=client.new_id(), session=opened, keep_files=True), m.StateReply)
    assert changes(reply) == {} and reply.files_stay is None
    assert client.exec("open('a').read(), 'x' in globals()", opened).text == "('2', False)"
    assert client.exec("open('a', 'w').write('3'); os._exit(1)", opened).state == "rolled_back"
    assert client.exec("open('a').read()", opened).text == "'2'"


def test_keep_in_profile(client: Client, session: str) -> None:
    client.open(session, "keep")
    client.exec("open('a', 'w').write('1')", session)
    client.exec("open('a', 'w').write('2')", session)
    reply = client.undo(session)
    assert reply.files is None and reply.files_stay == "going back leaves them as they are here"
    assert client.exec("open('a').read()", session).text == "'2'"


def test_nothing_is_said_of_files_that_nobody_changed(client: Client, session: str) -> None:
    client.open(session, "keep")
    client.exec("x = 1", session)
    assert client.undo(session).files_stay is None


def test_what_went_back_is_no_artifact_of_the_next_cell(client: Client, opened: str) -> None:
    for _ in range(3):
        client.exec("open('a', 'w').write('1')", opened)
        client.exec("open('a', 'w').write('2')", opened)
        client.undo(opened)
        reply = client.exec("open('new', 'w').close()", opened)
        assert [it["path"] for it in reply.artifacts] == [b"new"]
        assert client.exec("open('a', 'w').write('3'); import os; os._exit(1)", opened).state == "rolled_back"
        reply = client.exec("open('newer', 'w').close()", opened)
        assert [it["path"] for it in reply.artifacts] == [b"newer"]


def test_put_in_between(client: Client, opened: str) -> None:
    """A file that a client has put there belongs to the state in which the next cell begins."""
    client.exec("x = 1", opened)
    client.put(opened, b"in", b"from outside")
    client.exec("open('in', 'w').write('spoilt')", opened)
    client.undo(opened)
    assert (place(client, opened) / "in").read_bytes() == b"from outside"
    client.put(opened, b"in", b"newer")
    client.undo(opened)
    assert not (place(client, opened) / "in").exists()
    client.restore(opened, "1")
    assert (place(client, opened) / "in").read_bytes() == b"newer"


def test_children_write_in_between(client: Client, opened: str) -> None:
    client.exec("open('a', 'w').write('1')", opened)
    client.exec(
        "import subprocess; p = subprocess.Popen(['sh', '-c', 'read x; echo 2 > a; echo 3 > b; echo done'], stdin=-1, stdout=-1)",
        opened,
    )
    before = tree(place(client, opened))
    client.exec("p.communicate(b'go\\n')", opened)
    client.undo(opened)
    assert tree(place(client, opened)) == before


def test_a_child_writes_through_a_map(client: Client, opened: str) -> None:
    """What it writes to pages that it has written to before sets no time of the file."""
    client.exec("import os, mmap\nopen('a', 'wb').write(bytes(100))", opened)
    client.exec(
        "ask, answer = os.pipe(), os.pipe()\n"
        "if os.fork() == 0:\n"
        "    held = open('a', 'r+b'); view = mmap.mmap(held.fileno(), 0)\n"
        "    while True: view[0] += 1; os.write(answer[1], b'.'); os.read(ask[0], 1)\n"
        "os.read(answer[0], 1)",
        opened,
    )
    client.exec("1", opened)
    before = tree(place(client, opened))
    assert before["a"][2][0] == 1
    reply = client.exec("os.write(ask[1], b'.'), os.read(answer[0], 1)", opened)
    assert [it["path"] for it in reply.artifacts or ()] == [b"a"]
    client.undo(opened)
    assert tree(place(client, opened)) == before


def test_programs_in_the_background_write_in_between(client: Client, opened: str) -> None:
    """Nobody waits for them: the shell that has started them has ended."""
    client.exec("open('log', 'w').write('one'); import subprocess", opened)
    client.exec(
        "subprocess.run('(until [ -e go ]; do sleep 0.01; done; echo two >> log; rm go) &', shell=True)", opened
    )
    top = place(client, opened)
    client.exec("1", opened)
    client.call(m.Vars(id=client.new_id(), session=opened), m.VarsReply)
    (top / "go").touch(mode=0o666)
    wait_until(lambda: not (top / "go").exists(), "the program has written")
    client.exec("2", opened)
    before = tree(top)
    client.exec("open('other', 'w').write('x')", opened)
    client.undo(opened)
    assert tree(top) == before
    assert (top / "log").read_text() == "onetwo\n"


def test_open_file(client: Client, opened: str) -> None:
    """What is open at the checkpoint stays the file that it was."""
    client.exec("open('f', 'w').write('0123456789'); f = open('f', 'r+b', buffering=0)", opened)
    client.exec("import os; f.seek(0); f.write(b'abc'); f.truncate(3)", opened)
    client.undo(opened)
    assert client.exec("f.seek(2); f.read()", opened).text == "b'23456789'"


def test_open_file_stands_where_it_stood(client: Client, opened: str) -> None:
    client.exec("open('f', 'w').write('0123456789' * 1000)", opened)
    client.exec("f = open('f'); f.read(5); g = open('f', 'a+b', buffering=0); g.seek(3)", opened)
    client.exec("f.seek(9000); f.read(); g.write(b'more'); g.seek(0); import os; os.remove('f')", opened)
    client.undo(opened)
    assert client.exec("f.read(5), g.read(2), g.tell()", opened).text == "('56789', b'34', 5)"
    client.exec("g.write(b'end'); g.close()", opened)
    assert client.exec("open('f').read()[-6:]", opened).text == "'789end'"


def test_mapped(client: Client, opened: str) -> None:
    client.exec("import mmap; f = open('m', 'w+b'); f.truncate(9000); v = mmap.mmap(f.fileno(), 0)", opened)
    client.exec("v[0] = 1", opened)
    client.exec("v[1] = 1", opened)
    client.undo(opened)
    assert client.exec("v[0], v[1], f.seek(0), f.read(2)", opened).text == "(1, 0, 0, b'\\x01\\x00')"


@pytest.mark.parametrize("journal", ["delete", "wal"])
def test_sqlite(client: Client, opened: str, journal: str) -> None:
    """The connection that was open goes on."""
    client.exec(
        f"import sqlite3; c = sqlite3.connect('db'); c.execute('pragma journal_mode={journal}').fetchall()", opened
    )
    client.exec("c.execute('create table t (x)'); c.execute('insert into t values (1)'); c.commit()", opened)
    client.exec("c.execute('insert into t select x + 1 from t'); c.commit()", opened)
    client.exec("c.execute('delete from t'); c.commit(); c.execute('vacuum')", opened)
    client.undo(opened)
    assert client.exec("c.execute('select x from t').fetchall()", opened).text == "[(1,), (2,)]"
    client.undo(opened, 2)
    reply = client.exec(
        "c.execute('insert into t values (7)'); c.commit(); c.execute('select x from t').fetchall(), c.execute('pragma integrity_check').fetchall()",
        opened,
    )
    assert reply.text == "([(1,), (7,)], [('ok',)])", reply.stderr


def test_too_large(client: Client, session: str) -> None:
    client.open(session, "little")
    client.exec("open('big', 'wb').write(b'x' * 100000); open('small', 'w').write('1')", session)
    reply = client.exec("open('big', 'wb').write(b'y' * 100000); open('small', 'w').write('2')", session)
    assert reply.files_unkept == "big: it is too large to be kept"
    undone = client.undo(session)
    assert changes(undone) == {"big": "failed", "small": "restored"}
    assert undone.files_stay == "big: its content was not kept"


def test_too_large_now(client: Client, session: str) -> None:
    """What was kept of it before does not take its place."""
    client.open(session, "little")
    client.exec("open('big', 'w').write('1')", session)
    client.exec("open('big', 'a').write('2' * 100000)", session)
    lost = client.exec("import os; open('big', 'a').write('3'); os._exit(1)", session)
    assert (changes(lost), lost.files_stay) == ({"big": "failed"}, "big: its content was not kept")
    assert lost.files_unkept == "big: it is too large to be kept"
    assert client.exec("len(open('big').read())", session).text == "100002"


def test_uploads_survive_a_crash_between_cells(daemon: Daemon, client: Client, opened: str) -> None:
    client.exec("import ctypes; ctypes.CDLL(None).ualarm(300_000, 0)", opened)
    for i in range(3):
        client.put(opened, f"put{i}", b"x")
    wait_until(lambda: f"[{opened}] its interpreter ended" in daemon.log(), "it crashes")
    reply = client.exec("import os; sorted(os.listdir())", opened)
    assert (reply.state, reply.text) == ("rolled_back", "['put0', 'put1', 'put2']")


def test_what_checkpoints_hold(client: Client, opened: str) -> None:
    client.exec("open('a', 'w').write('1' * 5000); open('b', 'w').write('2' * 7000)", opened)
    client.exec("open('a', 'w').write('3' * 6000)", opened)
    client.exec("x = 1", opened)
    client.exec("import os; os.rename('a', 'c')", opened)
    client.call(m.Vars(id=client.new_id(), session=opened), m.VarsReply)
    held = {it.cell: (it.files, it.files_size) for it in client.checkpoints(opened)}
    assert held == {1: (3, 16384), 2: (3, 8192), 3: (3, 0), 4: (3, 0)}  # in blocks


def test_manual(client: Client, session: str) -> None:
    client.open(session, "manual")
    client.exec("import os; open('a', 'w').write('1')", session)
    client.checkpoint(session, "one")
    before = tree(place(client, session))
    client.exec("open('a', 'w').write('2')", session)
    client.exec("open('b', 'w').write('2')", session)
    client.restore(session, "one")
    assert tree(place(client, session)) == before
    client.exec("open('a', 'w').write('3')", session)
    assert client.exec("os._exit(1)", session).state == "rolled_back"
    assert tree(place(client, session)) == before


def test_reset_keeps_files(client: Client, opened: str) -> None:
    client.exec("import os; open('a', 'w').write('1')", opened)
    client.reset(opened)
    assert client.exec("import os; open('a').read()", opened).text == "'1'"
    client.exec("open('a', 'w').write('2'); os._exit(1)", opened)
    assert client.exec("open('a').read()", opened).text == "'1'"


def test_branch_with_files(client: Client, opened: str) -> None:
    """It begins with the files of its state, and neither sees what the other does."""
    client.exec("open('a', 'w').write('1')", opened)
    client.exec("open('a', 'w').write('2'); open('b', 'w').write('2')", opened)
    client.branch(opened, f"{opened}.b", checkpoint="1", files=True)
    assert client.exec("import os; open('a').read(), os.listdir()", f"{opened}.b").text == "('1', ['a'])"
    client.exec("open('a', 'w').write('3')", f"{opened}.b")
    client.undo(f"{opened}.b")
    assert client.exec("open('a').read()", f"{opened}.b").text == "'1'"
    client.undo(opened)
    assert client.exec("open('a').read()", opened).text == "'1'"
    assert client.exec("open('a').read()", f"{opened}.b").text == "'1'"


def test_a_branch_does_nothing_before_it_has_its_files(client: Client, opened: str) -> None:
    """Tasks of the loop go on between two cells, so they would look for files that are not there yet."""
    code = """
import asyncio
seen = set()
async def look():
    while True:
        try: seen.add(open('a').read())
        except Exception as error: seen.add(type(error).__name__)
        await asyncio.sleep(0)
open('a', 'w').write('1')
task = asyncio.get_event_loop().create_task(look())
"""
    client.exec(code, opened)
    client.branch(opened, f"{opened}.b", files=True)
    assert client.exec("await asyncio.sleep(0.01); seen", f"{opened}.b").text == "{'1'}"


def test_branch_of_files_that_nobody_may_read(client: Client, opened: str) -> None:
    client.exec(
        "import os; os.mkdir('d'); os.close(os.open('d/shut', os.O_CREAT, 0)); os.chmod('d', 0o300)", opened
    )
    client.exec("os.chdir('d')", opened)
    branch = client.branch(opened, f"{opened}.b", files=True)
    shut = [(it / "d/shut").stat() for it in (Path(branch.workspace or ""), place(client, opened))]
    assert shut[0].st_mode == shut[1].st_mode and shut[0].st_mtime_ns == shut[1].st_mtime_ns
    assert client.exec("os.path.basename(os.getcwd())", f"{opened}.b").text == "'d'"


def test_a_branch_has_its_own_files(client: Client, opened: str) -> None:
    """Those of its state, if nobody says otherwise."""
    client.exec("open('a', 'w').write('1')", opened)
    client.exec("open('a', 'w').write('2')", opened)
    branch = client.branch(opened, f"{opened}.b", checkpoint="1")
    assert branch.own_files and branch.workspace != str(place(client, opened))
    assert client.exec("open('a').read(), open('a', 'w').write('3')", f"{opened}.b").text == "('1', 1)"
    assert client.undo(opened).files_stay is None
    assert client.exec("open('a').read()", opened).text == "'1'"
    shared = client.branch(f"{opened}.b", f"{opened}.c", files=False)
    assert not shared.own_files and shared.workspace == branch.workspace
    assert client.exec("open('a').read()", f"{opened}.c").text == "'3'"
    with pytest.raises(LairError, match="not both"):
        client.call(m.Branch(id=client.new_id(), session=opened, branch="d", files=True, share=True), m.SessionInfo)


def test_a_branch_whose_files_are_too_large(client: Client, session: str) -> None:
    """It is told, and nothing is shared that nobody has asked for."""
    client.open(session, "little")
    client.exec("open('large', 'w').write('1' * 100_000)", session)
    with pytest.raises(LairError, match="not all kept") as caught:
        client.branch(session, f"{session}.b")
    assert caught.value.code == "too_large"
    assert client.branch(session, f"{session}.b", files=False).opened
    assert client.branch(session, f"{session}.c", files=True).own_files
    assert client.exec("len(open('large').read())", f"{session}.c").text == "100000"


def test_a_branch_where_files_stay(client: Client, session: str) -> None:
    client.open(session, "keep")
    assert not client.branch(session, f"{session}.b").own_files


def test_shared_with_a_branch(client: Client, opened: str) -> None:
    client.exec("open('a', 'w').write('1')", opened)
    client.exec("open('a', 'w').write('2')", opened)
    client.branch(opened, f"{opened}.b", files=False)
    reply = client.undo(opened)
    assert reply.files is None and reply.files_stay == "another session works in them, too"
    assert client.exec("open('a').read()", opened).text == "'2'"

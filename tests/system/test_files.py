"""Files in and out of a session: what arrives, what is refused, and that a cell which swaps files meanwhile gains
nothing by it, with openat2 and on kernels without."""

from __future__ import annotations

import os
import socket
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from daemon import BIN, Daemon
from lair import Client, LairError
from lair import messages as m
from lair.steps import CHUNK

CANARY = b"canary: nobody in there may have this"


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory of the host, open to everybody, that no session may see."""
    directory = Path("/tmp") / f"lair-test-host-{os.getpid()}"
    directory.mkdir(mode=0o755)
    (directory / "canary").write_bytes(CANARY)
    (directory / "import").mkdir()
    return directory


@pytest.fixture(scope="module", params=["openat2", "older"])
def daemon(
    request: pytest.FixtureRequest, host: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Daemon]:
    """With openat2, and on a kernel that lacks it."""
    binaries = BIN
    if request.param == "older":
        binaries = tmp_path_factory.mktemp("bin")
        deny = BIN.parent / "tests" / "deny"
        (binaries / "laird").write_text(f'#!/bin/sh\nexec {deny} openat2=ENOSYS -- {BIN}/laird "$@"\n')
        (binaries / "laird").chmod(0o755)
        (binaries / "lair").symlink_to(BIN / "lair")
    settings = {
        "profile default": {"file_size": "64M", "import": str(host / "import"), "checkpoint": "manual"},
        "profile closed": {},
    }
    it = Daemon(settings, binaries=binaries)
    yield it
    it.end()


@pytest.fixture(scope="module", autouse=True)
def host_is_removed(host: Path) -> Iterator[None]:
    yield
    os.system(f"rm -rf {host}")


def run(client: Client, session: str, code: str) -> str:
    reply = client.exec(code, session, timeout=60)
    assert reply.returncode == 0, reply.stderr
    return reply.stdout.decode()


def refused(act: Callable[[], object]) -> LairError:
    with pytest.raises(LairError) as caught:
        act()
    return caught.value


# ---- in and out ----


@pytest.mark.parametrize("size", [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK + 7])
def test_there_and_back(client: Client, opened: str, size: int) -> None:
    data = os.urandom(size)
    client.put(opened, "a/b/file", data)
    assert run(client, opened, "import os; print(os.stat('a/b/file').st_size)") == f"{size}\n"
    assert client.get(opened, "a/b/file") == data


def test_a_cell_owns_what_was_put(client: Client, opened: str) -> None:
    client.put(opened, "d/script", b"one", mode=0o755)
    code = "import os; s = os.stat('d/script'); d = os.stat('d'); print(oct(s.st_mode & 0o777), s.st_uid == d.st_uid == os.getuid())"
    assert run(client, opened, code) == "0o755 True\n"
    run(client, opened, "open('d/script', 'a').write(' two'); open('d/other', 'w').write('three')")
    assert client.get(opened, "d/script") == b"one two"
    assert client.get(opened, "d/other") == b"three"


def test_put_replaces(client: Client, opened: str) -> None:
    client.put(opened, "f", b"old" * 100)
    client.put(opened, "f", b"new")
    assert client.get(opened, "f") == b"new"
    assert [record.name for record in client.files(opened)] == [b"f"]


def test_while_a_cell_runs(client: Client, opened: str) -> None:
    cell = client.start("import time\nwhile not __import__('os').path.exists('go'): time.sleep(0.01)", opened)
    client.put(opened, "data", b"x" * 100)
    assert client.get(opened, "data") == b"x" * 100
    client.put(opened, "go", b"")
    assert client.finish(cell, m.ExecReply).returncode == 0


def test_absolute_paths_begin_with_the_workspace(client: Client, opened: str) -> None:
    workspace = client.info(opened).workspace
    client.put(opened, f"{workspace}//x/./y", b"1")
    assert client.get(opened, "x/y") == client.get(opened, f"{workspace}/x/y") == b"1"
    assert refused(lambda: client.get(opened, f"{workspace}x/y")).code == "bad_request"


def test_names_are_bytes(client: Client, opened: str) -> None:
    client.put(opened, b"\xff\xfe \n", b"1")
    assert [record.name for record in client.files(opened)] == [b"\xff\xfe \n"]
    assert client.get(opened, b"\xff\xfe \n") == b"1"
    assert refused(lambda: client.get(opened, b"\xff\x00")).code == "bad_request"
    assert refused(lambda: client.get(opened, b"\xff\xfd")).code == "no_file"


def test_directories(client: Client, opened: str) -> None:
    client.make_directory(opened, "empty/one")
    client.make_directory(opened, "empty/one")
    client.put(opened, "empty/file", b"123")
    kinds = {
        record.name: (record.kind, record.size if record.kind == "file" else 0)
        for record in client.files(opened, "empty")
    }
    assert kinds == {b"one": ("directory", 0), b"file": ("file", 3)}


def test_large_directories_come_in_parts(client: Client, opened: str) -> None:
    run(client, opened, "import os\nos.mkdir('many')\nfor i in range(2500): open(f'many/{i}', 'w').close()")
    names = [record.name for record in client.files(opened, "many")]
    assert sorted(map(int, names)) == list(range(2500))
    first = client.call(m.Files(id=client.new_id(), session=opened, path=b"many"), m.FilesReply)
    assert len(first.files) == 1000 and first.next
    for after in (1, 2**63, 2**64 - 1):
        client.call(m.Files(id=client.new_id(), session=opened, path=b"many", after=after), m.FilesReply)


def test_before_the_first_cell(client: Client, session: str) -> None:
    """The workspace is there before the interpreter is."""
    client.open(session, "closed")
    client.put(session, "early", b"1")
    assert run(client, session, "print(open('early').read())") == "1\n"


def test_a_branch_with_files_has_its_own(client: Client, opened: str) -> None:
    client.put(opened, "f", b"parent")
    run(client, opened, "x = 1")
    client.branch(opened, "test:branch", files=True)
    try:
        assert client.get("test:branch", "f") == b"parent"
        client.put("test:branch", "f", b"branch")
        client.put("test:branch", "g", b"branch")
        assert client.get(opened, "f") == b"parent"
        assert refused(lambda: client.get(opened, "g")).code == "no_file"
        assert run(client, "test:branch", "print(open('g').read())") == "branch\n"
    finally:
        client.shutdown("test:branch")


# ---- what is refused ----


@pytest.mark.parametrize(
    "path", ["..", "../x", "a/../../x", "/etc/passwd", "/", "a\0b", "x" * 256, "d/" * 65 + "x", "x/" * 3000]
)
def test_paths_that_are_none(client: Client, opened: str, path: str) -> None:
    assert refused(lambda: client.get(opened, path)).code == "bad_request"
    assert refused(lambda: client.put(opened, path, b"")).code == "bad_request"
    assert refused(lambda: client.files(opened, path)).code == "bad_request"


def test_no_file(client: Client, opened: str) -> None:
    client.put(opened, "f", b"")
    assert refused(lambda: client.get(opened, "g")).code == "no_file"
    assert refused(lambda: client.get(opened, "f/g")).code == "no_file"
    assert refused(lambda: client.files(opened, "f")).code == "no_file"
    assert refused(lambda: client.put(opened, "f/g", b"")).code == "no_file"
    assert refused(lambda: client.get("nobody", "f")).code == "no_session"


def test_symbolic_links(client: Client, opened: str, host: Path) -> None:
    run(
        client,
        opened,
        f"import os; os.symlink('{host}/canary', 'file'); os.symlink('{host}', 'directory'); os.symlink('/proc/self/root', 'root')",
    )
    error = refused(lambda: client.get(opened, "file"))
    assert error.code == "denied" and "symbolic link" in error.message
    for act in (
        lambda: client.get(opened, "directory/canary"),
        lambda: client.get(opened, f"root{host}/canary"),
        lambda: client.files(opened, "directory"),
        lambda: client.files(opened, "directory/import"),
        lambda: client.put(opened, "directory/new", b"1"),
        lambda: client.make_directory(opened, "directory/new"),
    ):
        error = refused(act)
        assert error.code == "denied" and "symbolic link" in error.message
    assert {record.kind for record in client.files(opened)} == {"link"}
    client.put(opened, "file", b"mine")
    client.put(opened, "directory", b"mine")
    assert (host / "canary").read_bytes() == CANARY
    assert sorted(os.listdir(host)) == ["canary", "import"]
    assert client.get(opened, "file") == b"mine"


def test_fifos_and_sockets_do_not_block(client: Client, opened: str) -> None:
    workspace = client.info(opened).workspace
    run(client, opened, "import os; os.mkfifo('fifo')")
    here = os.getcwd()
    with socket.socket(socket.AF_UNIX) as unix:
        os.chdir(workspace)
        unix.bind("socket")
        os.chdir(here)
    began = time.monotonic()
    for name, what in (("fifo", "a FIFO"), ("socket", "a socket"), (".", "a directory")):
        error = refused(lambda name=name: client.get(opened, name))  # type: ignore[misc]
        assert error.code == "denied" and what in error.message
    assert {record.kind for record in client.files(opened)} == {"other"}
    client.put(opened, "fifo", b"1")
    assert time.monotonic() - began < 5
    assert client.get(opened, "fifo") == b"1"


def test_devices(client: Client, opened: str) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can make a device")
    os.mknod(f"{client.info(opened).workspace}/zero", stat.S_IFCHR | 0o666, os.makedev(1, 5))
    error = refused(lambda: client.get(opened, "zero"))
    assert error.code == "denied" and "a device" in error.message


def test_hard_links(client: Client, opened: str) -> None:
    run(client, opened, "import os; open('a', 'w').close(); os.link('a', 'b')")
    error = refused(lambda: client.get(opened, "a"))
    assert error.code == "denied" and "hard link" in error.message


def test_sparse_and_large_files(client: Client, opened: str) -> None:
    run(client, opened, "open('sparse', 'w').truncate(60 << 20); open('small', 'w').truncate(1 << 20)")
    error = refused(lambda: client.get(opened, "sparse"))
    assert error.code == "too_large" and "holes" in error.message
    assert client.get(opened, "small") == bytes(1 << 20)
    os.truncate(f"{client.info(opened).workspace}/sparse", 1 << 40)
    error = refused(lambda: client.get(opened, "sparse"))
    assert error.code == "too_large" and "file_size = 67108864" in error.message


def test_put_is_limited(client: Client, opened: str) -> None:
    error = refused(lambda: client.put(opened, "large", bytes((64 << 20) + 1)))
    assert error.code == "too_large" and "file_size" in error.message
    assert client.files(opened) == []
    whole = m.Put(id=client.new_id(), session=opened, path=b"large", data=bytes(CHUNK + 1))
    assert refused(lambda: client.call(whole, m.TransferReply)).code == "too_large"


def test_put_onto_a_directory(client: Client, opened: str) -> None:
    client.make_directory(opened, "d")
    for path in ("d", "."):
        assert refused(lambda path=path: client.put(opened, path, b"")).code == "denied"  # type: ignore[misc]


def make_deep(path: str, depth: int) -> None:
    directory = os.open(path, os.O_PATH)
    for _ in range(depth):
        os.mkdir("d", dir_fd=directory)
        below = os.open("d", os.O_PATH | os.O_NOFOLLOW, dir_fd=directory)
        os.close(directory)
        directory = below
    os.close(directory)


def test_deep_trees(client: Client, opened: str) -> None:
    make_deep(client.info(opened).workspace, 5000)
    assert [record.kind for record in client.files(opened, "d/" * 64)] == ["directory"]
    assert refused(lambda: client.files(opened, "d/" * 65)).code == "bad_request"


def test_other_users(daemon: Daemon, client: Client, opened: str) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can be somebody else")
    daemon.share()
    client.put(opened, "f", b"1")
    for act in (
        f"c.get({opened!r}, 'f')",
        f"c.put({opened!r}, 'g', b'')",
        f"c.files({opened!r})",
        f"c.copy_in({opened!r}, '/x')",
    ):
        assert daemon.as_user(54321, act) in ("no_session", "denied")
    assert [record.name for record in client.files(opened)] == [b"f"]


# ---- transfers ----


def begin(client: Client, session: str, path: bytes) -> m.TransferReply:
    return client.call(m.Put(id=client.new_id(), session=session, path=path, data=b"1", more=True), m.TransferReply)


def test_transfers_are_counted(client: Client, opened: str) -> None:
    begun = [begin(client, opened, b"f%d" % i) for i in range(16)]
    error = refused(lambda: begin(client, opened, b"one more"))
    assert error.code == "limit" and "16" in error.message
    assert all(record.name.startswith(b".lair-put-") for record in client.files(opened))
    for reply in begun:
        client.call(m.Put(id=client.new_id(), session=opened, transfer=reply.transfer, offset=1), m.TransferReply)
    assert {record.name for record in client.files(opened)} == {b"f%d" % i for i in range(16)}


def test_transfers_know_where_they_are(client: Client, opened: str) -> None:
    transfer = begin(client, opened, b"f").transfer
    for wrong in (0, 2, 2**64 - 1):
        request = m.Put(id=client.new_id(), session=opened, transfer=transfer, offset=wrong, data=b"2")
        assert refused(lambda request=request: client.call(request, m.TransferReply)).code == "bad_request"  # type: ignore[misc]
    client.call(m.Put(id=client.new_id(), session=opened, transfer=transfer, offset=1, data=b"2"), m.TransferReply)
    assert client.get(opened, "f") == b"12"
    gone = m.Put(id=client.new_id(), session=opened, transfer=transfer, offset=2, data=b"2")
    assert refused(lambda: client.call(gone, m.TransferReply)).code == "gone"
    client.open("test:other")
    transfer = begin(client, opened, b"g").transfer
    stolen = m.Put(id=client.new_id(), session="test:other", transfer=transfer, offset=1)
    assert refused(lambda: client.call(stolen, m.TransferReply)).code == "gone"
    client.shutdown("test:other")


def test_a_cell_that_takes_the_file_away(client: Client, opened: str, host: Path) -> None:
    transfer = begin(client, opened, b"f").transfer
    code = f"import os\n[t] = os.listdir('.')\nos.unlink(t)\nos.symlink('{host}/canary', t)"
    run(client, opened, code)
    request = m.Put(id=client.new_id(), session=opened, transfer=transfer, offset=1, data=b"2")
    assert refused(lambda: client.call(request, m.TransferReply)).code == "gone"
    assert (host / "canary").read_bytes() == CANARY


def test_a_file_that_is_replaced_while_it_is_read(client: Client, opened: str) -> None:
    client.put(opened, "f", b"a" * 10)
    first = client.call(m.Get(id=client.new_id(), session=opened, path=b"f", size=5), m.GetReply)
    assert first.data == b"a" * 5 and first.size == 10
    run(client, opened, "import os; open('g', 'w').write('b' * 10); os.rename('g', 'f')")
    request = m.Get(id=client.new_id(), session=opened, path=b"f", offset=5, file=first.file)
    assert refused(lambda: client.call(request, m.GetReply)).code == "gone"


def test_a_client_that_does_not_read(daemon: Daemon, client: Client, opened: str) -> None:
    """What it has asked for does not pile up in the daemon."""
    client.put(opened, "f", os.urandom(CHUNK))
    lazy = daemon.client()
    before = client.stats().memory
    for _ in range(500):
        lazy.send(m.Get(id=lazy.new_id(), session=opened, path=b"f"))
    time.sleep(1)
    assert client.get(opened, "f")
    assert client.stats().memory - before < 300 << 20


# ---- races ----

SWAP_FILE = """
import os, time
end = time.monotonic() + 30
while not os.path.exists('stop') and time.monotonic() < end:
    open('t', 'wb').write(b'harmless'); os.rename('t', 'x')
    os.symlink('{host}/canary', 't'); os.rename('t', 'x')
    os.mkfifo('t'); os.rename('t', 'x')
"""

SWAP_DIRECTORY = """
import os, shutil, time
os.mkdir('real'); open('real/canary', 'wb').write(b'harmless')
os.symlink('{host}', 'link')
end = time.monotonic() + 30
while not os.path.exists('stop') and time.monotonic() < end:
    try:
        os.rename('real', 'd'); os.rename('d', 'real')
        os.rename('link', 'd'); os.rename('d', 'link')
    except OSError:  # somebody has put a directory there
        if os.path.islink('d'): os.rename('d', 'link')
        elif os.path.exists('real'): shutil.rmtree('d', ignore_errors=True)
        else: os.rename('d', 'real')
"""


def race(client: Client, session: str, code: str, acts: list[Callable[[], object]]) -> list[object]:
    """What the acts gave, again and again for a while, while the cell ran."""
    cell = client.start(code, session, timeout=60)
    results: list[object] = []
    end = time.monotonic() + 3
    while time.monotonic() < end:
        for act in acts:
            try:
                results.append(act())
            except LairError as error:
                assert error.code in ("no_file", "denied", "gone"), error
    client.put(session, "stop", b"")
    reply = client.finish(cell, m.ExecReply)
    assert reply.returncode == 0, reply.stderr
    return results


def test_a_file_that_is_swapped(client: Client, opened: str, host: Path) -> None:
    results = race(client, opened, SWAP_FILE.format(host=host), [lambda: client.get(opened, "x")])
    assert results and set(results) <= {b"harmless", b""}


def test_a_directory_that_is_swapped(client: Client, opened: str, host: Path) -> None:
    acts: list[Callable[[], object]] = [
        lambda: client.get(opened, "d/canary"),
        lambda: client.put(opened, "d/new/er", b"1"),
        lambda: b",".join(sorted(record.name for record in client.files(opened, "d"))),
    ]
    results = race(client, opened, SWAP_DIRECTORY.format(host=host), acts)
    assert CANARY not in results and not any(b"import" in r for r in results if isinstance(r, bytes))
    assert b"harmless" in results and None in results
    assert sorted(os.listdir(host)) == ["canary", "import"]


# ---- copied in by the daemon ----


def test_copy_in(client: Client, opened: str, host: Path) -> None:
    data = os.urandom(2 * CHUNK + 3)
    (host / "import/sub").mkdir(exist_ok=True)
    (host / "import/sub/data").write_bytes(data)
    assert client.copy_in(opened, f"{host}/import/sub/data") == len(data)
    assert client.copy_in(opened, f"{host}/import/sub/data", "other/place") == len(data)
    assert client.get(opened, "data") == client.get(opened, "other/place") == data
    (host / "import/empty").write_bytes(b"")
    assert client.copy_in(opened, f"{host}/import/empty") == 0
    assert client.get(opened, "empty") == b""
    assert [record.name for record in client.files(opened, f"{host}/import/sub", host=True)] == [b"data"]


def test_copy_in_is_only_from_there(daemon: Daemon, client: Client, opened: str, host: Path) -> None:
    (host / "import/link").unlink(missing_ok=True)
    (host / "import/link").symlink_to(host / "canary")
    for source in (
        f"{host}/canary",
        f"{host}/import/../canary",
        f"{host}/import/link",
        f"{host}/importer",
        "canary",
        "",
    ):
        error = refused(lambda source=source: client.copy_in(opened, source))  # type: ignore[misc]
        assert error.code == "denied", source
    assert refused(lambda: client.files(opened, str(host), host=True)).code == "denied"
    assert refused(lambda: client.copy_in(opened, f"{host}/import/nothing")).code == "no_file"
    client.open("test:closed", "closed")
    assert refused(lambda: client.copy_in("test:closed", f"{host}/import/sub/data")).code == "denied"
    client.shutdown("test:closed")
    assert client.files(opened) == []


def test_copy_in_leaves_other_sessions_alone(start_daemon: Callable[..., Daemon]) -> None:
    """Though they lie beneath a directory to import from."""
    daemon = start_daemon({"profile default": {"import": "/"}})
    with Client(str(daemon.socket)) as client:
        client.open("one")
        client.open("two")
        client.put("one", "secret", b"1")
        workspace = client.info("one").workspace
        assert refused(lambda: client.copy_in("two", f"{workspace}/secret")).code == "denied"
        assert refused(lambda: client.files("two", workspace, host=True)).code == "denied"
        assert client.copy_in("two", "/etc/hostname") > 0


def test_a_source_that_grows_is_copied_as_it_was(client: Client, opened: str, host: Path) -> None:
    source = host / "import/grows"
    source.write_bytes(b"a" * (CHUNK + 10))
    request = m.CopyIn(id=client.new_id(), session=opened, source=os.fsencode(source))
    first = client.call(request, m.TransferReply)
    assert (first.offset, first.size) == (CHUNK, CHUNK + 10) and first.transfer
    with source.open("ab") as file:
        file.write(b"b" * CHUNK)
    last = client.call(m.CopyIn(id=client.new_id(), session=opened, transfer=first.transfer), m.TransferReply)
    assert (last.offset, last.transfer) == (CHUNK + 10, 0)
    assert client.get(opened, "grows") == b"a" * (CHUNK + 10)

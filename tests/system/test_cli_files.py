"""lair put, get, files and copy-in: files and trees, what is left out, what a person and a program are told."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from daemon import Daemon, wait_until
from lair import Client


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    imports = tmp_path_factory.mktemp("import")
    it = Daemon({"profile default": {"import": str(imports)}})
    it.env["IMPORTS"] = str(imports)
    yield it
    it.end()


def tree(path: Path) -> dict[str, bytes | None]:
    return {
        str(item.relative_to(path)): None if item.is_dir() else item.read_bytes()
        for item in sorted(path.rglob("*"))
    }


@pytest.fixture
def source(tmp_path: Path) -> Path:
    top = tmp_path / "source"
    (top / "a/b").mkdir(parents=True)
    (top / "empty").mkdir()
    (top / "one").write_bytes(b"1")
    (top / "none").write_bytes(b"")
    (top / "a/large").write_bytes(os.urandom((2 << 20) + 5))
    (top / "a/b/script").write_bytes(b"#!/bin/sh\n")
    (top / "a/b/script").chmod(0o755)
    return top


def test_a_file_there_and_back(daemon: Daemon, opened: str, source: Path, tmp_path: Path) -> None:
    done = daemon.lair("put", opened, str(source / "a/large"))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    back = tmp_path / "back"
    assert daemon.lair("get", opened, "large", str(back)).returncode == 0
    assert back.read_bytes() == (source / "a/large").read_bytes()
    assert daemon.lair("get", opened, "large", str(tmp_path)).returncode == 0
    assert (tmp_path / "large").read_bytes() == back.read_bytes()
    daemon.lair("put", opened, str(source / "one"), "dir/")
    assert daemon.lair("get", opened, "dir/one", "-").stdout == "1"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["back", "large", "source"]


def test_a_tree_there_and_back(daemon: Daemon, opened: str, source: Path, tmp_path: Path) -> None:
    size = sum(len(data) for data in tree(source).values() if data)
    expected = {"session": opened, "files": 4, "bytes": size, "skipped": 0}
    assert daemon.lair_json("put", opened, str(source), "there") == expected
    assert daemon.lair_json("get", opened, "there", str(tmp_path / "back")) == expected
    assert tree(tmp_path / "back") == tree(source)
    assert (tmp_path / "back/a/b/script").stat().st_mode & 0o111
    assert not (tmp_path / "back/one").stat().st_mode & 0o111


def test_what_is_no_file_is_left_out(
    daemon: Daemon, client: Client, opened: str, source: Path, tmp_path: Path
) -> None:
    (source / "link").symlink_to("/etc/hostname")
    os.mkfifo(source / "fifo")
    done = daemon.lair("put", opened, str(source), "there")
    assert done.returncode == 0 and "link is left out" in done.stderr and "fifo is left out" in done.stderr
    client.exec("import os; os.symlink('/etc/hostname', 'there/link'); os.mkfifo('there/fifo')", opened)
    done = daemon.lair("get", opened, "there", str(tmp_path / "back"))
    assert done.returncode == 0 and "link is left out" in done.stderr and "fifo is left out" in done.stderr
    (source / "link").unlink()
    (source / "fifo").unlink()
    assert tree(tmp_path / "back") == tree(source)


def test_nothing_keeps_the_others_back(daemon: Daemon, client: Client, opened: str, tmp_path: Path) -> None:
    client.exec(
        "import os\n"
        "for name in ('a', 'n' * 255, 'z'): open(name, 'w').write(name)\n"
        "os.link('a', 'linked')\n"
        "open('holes', 'w').truncate(40 << 20)\n"
        "os.makedirs('d/' * 70)\n"
        "for _ in range(20): os.mkdir('l' * 255), os.chdir('l' * 255)\n"
        "os.chdir(os.environ['HOME'])\n",
        opened,
    )
    done = daemon.lair("get", opened, ".", str(tmp_path / "all"))
    assert done.returncode == 0, done.stderr
    got = {path.name: path.read_text() for path in (tmp_path / "all").iterdir() if path.is_file()}
    assert got == {name: name for name in ("n" * 255, "z")}
    for why in (
        "/a: a file with more than one name",
        "/linked: a file",
        "/holes: nearly",
        "too deep",
        "too long",
    ):
        assert why in done.stderr
    assert daemon.lair("get", opened, "linked", str(tmp_path / "one")).returncode == 125


def test_files(daemon: Daemon, client: Client, opened: str) -> None:
    client.put(opened, b"\x1b[31m\xff", b"123")
    client.make_directory(opened, "d")
    client.put(opened, "d/x", b"", mode=0o600)
    listed = daemon.lair("files", opened).stdout
    assert "\x1b" not in listed and "directory" in listed and "3 B" in listed
    [file] = [file for file in daemon.lair_json("files", opened)["files"] if file["kind"] == "file"]
    assert file["name_base64"] == "G1szMW3/" and file["size"] == 3
    client.put(opened, "wild/\u009b2J \u202ecod.exe", b"")
    assert "?2J ?cod.exe" in daemon.lair("files", opened, "wild").stdout
    [file] = daemon.lair_json("files", opened, "d")["files"]
    assert (file["name"], file["kind"], file["size"], file["mode"]) == ("x", "file", 0, 0o600)


def test_copy_in(daemon: Daemon, client: Client, opened: str, source: Path) -> None:
    imports = Path(daemon.env["IMPORTS"])
    source.rename(imports / "tree")
    assert daemon.lair_json("copy-in", opened, str(imports / "tree"))["files"] == 4
    assert client.get(opened, "tree/a/large") == (imports / "tree/a/large").read_bytes()
    assert daemon.lair("copy-in", opened, str(imports / "tree/one"), "two").returncode == 0
    assert client.get(opened, "two") == b"1"
    done = daemon.lair("copy-in", opened, "/etc/hostname")
    assert done.returncode == 125 and "files may not be copied from there" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "status", "code"),
    [
        (("get", "{}", "nothing"), 125, "no_file"),
        (("get", "{}", "../x"), 125, "bad_request"),
        (("get", "nobody", "x"), 125, "no_session"),
        (("put", "{}", "/nonexistent/file"), 125, "local"),
        (("put", "{}", "/dev/null"), 125, "local"),
        (("put", "{}"), 2, "usage"),
        (("files", "{}", "nothing"), 125, "no_file"),
        (("get", "{}", "f", "/nonexistent/directory/x"), 125, "local"),
    ],
)
def test_what_goes_wrong(
    daemon: Daemon, client: Client, opened: str, arguments: tuple[str, ...], status: int, code: str
) -> None:
    client.put(opened, "f", b"1")
    done = daemon.lair(*(word.format(opened) for word in arguments), "--json")
    assert done.returncode == status
    assert json.loads(done.stdout)["error"]["code"] == code


def test_nothing_is_left_of_a_get_that_failed(daemon: Daemon, opened: str, tmp_path: Path) -> None:
    assert daemon.lair("get", opened, "nothing", str(tmp_path / "x")).returncode == 125
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_left_of_a_get_that_was_interrupted(
    daemon: Daemon, client: Client, opened: str, tmp_path: Path
) -> None:
    client.exec("open('f', 'wb').write(bytes(200 << 20))", opened)
    command = [str(daemon.binaries / "lair"), "get", opened, "f", str(tmp_path / "f")]
    for _ in range(20):
        process = subprocess.Popen(command, env={**daemon.env, "LAIR_SOCKET": str(daemon.socket)})
        wait_until(lambda: list(tmp_path.iterdir()), "it has begun")
        process.send_signal(signal.SIGINT)
        if process.wait(20) == -signal.SIGINT:
            break
        (tmp_path / "f").unlink()  # all of it was there already
    assert process.returncode == -signal.SIGINT
    assert list(tmp_path.iterdir()) == []


def test_a_file_takes_no_place_but_a_files(daemon: Daemon, client: Client, opened: str, tmp_path: Path) -> None:
    client.put(opened, "f", b"1")
    os.mkfifo(tmp_path / "fifo")
    done = daemon.lair("get", opened, "f", str(tmp_path / "fifo"))
    assert (done.returncode, done.stderr) == (125, f"lair: {tmp_path}/fifo is there, and is no file\n")
    assert [path.is_fifo() for path in tmp_path.iterdir()] == [True]


@pytest.mark.parametrize(
    ("into", "why"), [("file", " is there, and is no directory"), ("no/x", ": No such file or directory")]
)
def test_why_a_directory_cannot_be_made_is_said(
    daemon: Daemon, client: Client, opened: str, tmp_path: Path, into: str, why: str
) -> None:
    (tmp_path / "file").write_bytes(b"")
    client.make_directory(opened, "d")
    done = daemon.lair("get", opened, "d", str(tmp_path / into))
    assert (done.returncode, done.stderr) == (125, f"lair: {tmp_path}/{into}{why}\n")


def test_progress_is_for_terminals(daemon: Daemon, opened: str, tmp_path: Path) -> None:
    (tmp_path / "large").write_bytes(bytes(200 << 20))
    ours, theirs = pty.openpty()
    command = [str(daemon.binaries / "lair"), "put", opened, str(tmp_path / "large")]
    environment = {**daemon.env, "LAIR_SOCKET": str(daemon.socket)}
    process = subprocess.Popen(command, stderr=theirs, env=environment)
    os.close(theirs)
    said = b""
    try:
        while part := os.read(ours, 4096):
            said += part
    except OSError:
        pass
    os.close(ours)
    assert process.wait() == 0
    assert b"large: " in said and b" of 200" in said
    assert said.rstrip().endswith(b"1 file, 200.0 MiB") or said.rstrip().endswith(b"1 file, 200 MiB")

"""Sets of packages that sessions begin with again and again are imported ahead, for the sessions that ask for them and no others."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from daemon import BIN, WORKER, Daemon, wait_until
from index import Index, find_uv
from lair import Connection, Result, Session
from test_router_death import kill_router

UV = find_uv()

pytestmark = pytest.mark.skipif(UV is None, reason="there is no uv, and pip cannot install it")

QUICK = {"preload": "", "spares": "1", "checkpoint": "cell", "packages": "on"}
MARK = "import os, time\nloaded = time.time()\npid = os.getpid()\nprint('imported', flush=True)\nos.write(2, b'imported')\n"
BLOCK = "# /// script\n# dependencies = [\n#   'heavy', # this\n# ]\n# ///\n"


@pytest.fixture(scope="module")
def index() -> Iterator[Index]:
    index = Index()
    index.add(
        "heavy", "1.0", {"heavy/__init__.py": MARK.encode(), "heavy/part.py": b"", "tests/__init__.py": b"1/0\n"}
    )
    index.add("deadly", "1.0", {"deadly.py": b"import os\nos._exit(3)\n"})
    index.add("endless", "1.0", {"endless.py": b"while True: pass\n"})
    index.add("wrong", "1.0", {"wrong.py": b"import sys\nsys.exit('no')\n"})
    index.add("large", "1.0", {"large.py": b"it = bytearray(b'x') * (64 << 20)\n"})
    index.add(
        "greedy",
        "1.0",
        {
            "greedy.py": b"open('big', 'wb').truncate(0)\nf = open('big', 'ab')\nf.write(bytes(24 << 20)); f.flush()\n"
        },
    )
    later = b"import threading, time\ndef fill():\n    time.sleep(1)\n    open('big', 'wb').write(bytes(24 << 20))\nthreading.Thread(target=fill).start()\n"
    index.add("patient", "1.0", {"patient.py": later})
    yield index
    index.close()


@pytest.fixture(scope="module")
def daemon(index: Index) -> Iterator[Daemon]:
    store = Path(tempfile.mkdtemp(prefix="lair-ahead-"))
    store.chmod(0o755)
    settings = {
        "daemon": {"packages_store": str(store), "uv": str(UV), "set_template_memory": "48M"},
        "profile default": QUICK,
        "profile other": QUICK,
        "profile never": {**QUICK, "templates": "off"},
        "profile tight": {**QUICK, "workspace_size": "8M"},
        "profile ready": {**QUICK, "requirements": "heavy"},
    }
    daemon = Daemon(settings, env={"UV_DEFAULT_INDEX": index.url})
    yield daemon
    daemon.end()
    shutil.rmtree(store, ignore_errors=True)


numbers = iter(range(10_000))


def session(connection: Connection, profile: str = "default") -> Session:
    return Session(f"t{next(numbers)}", profile=profile, connection=connection)


def made(daemon: Daemon, profile: str = "default") -> int:
    return daemon.log().count(f"profile {profile} has a template of the set")


def begin(connection: Connection, code: str, packages: list[str], profile: str = "default") -> Result:
    s = session(connection, profile)
    result = s.run(code, packages=packages)
    s.shutdown()
    return result


def have_one(
    daemon: Daemon, connection: Connection, profile: str = "default", packages: tuple[str, ...] = ("heavy",)
) -> None:
    """Until the next session of that kind finds a template. Each such session takes the one that there is."""
    for _ in range(2):
        begin(connection, "1", list(packages), profile)
    last = daemon.log().rfind("] opened for")
    line = f"profile {profile} has a template of the set"
    wait_until(lambda: daemon.log().rfind(line) > last, "there is a template of the set", 30)


AHEAD = "import heavy, os\n(heavy.loaded, heavy.pid == os.getpid())"


def is_ahead(result: Result, since: float) -> bool:
    assert result.ok, result.stderr
    loaded, own = eval(result.text or "")
    assert own, "it is no other process"
    return bool(loaded < since)


def test_those_who_ask_again_find_it_imported(daemon: Daemon, connection: Connection) -> None:
    have_one(daemon, connection)
    for way in ("packages", "block"):
        now = time.time()
        s = session(connection)
        result = s.run(AHEAD, packages=["heavy"]) if way == "packages" else s.run(BLOCK + AHEAD)
        assert is_ahead(result, now), way
        assert (result.stdout, result.stderr) == ("", ""), "what it says is for nobody"
        assert s.run("%pip list\nimport heavy.part").ok
        s.undo(2)
        assert s.run("import heavy").error is not None, "nobody has asked for it in this state"
        s.reset()
        assert not is_ahead(s.run(AHEAD, packages=["heavy"]), now)
        s.shutdown()
        have_one(daemon, connection)


def test_nobody_else_gets_it(daemon: Daemon, connection: Connection) -> None:
    have_one(daemon, connection)
    look = "import gc, sys\n[it for it in gc.get_objects() if 'heavy' in str(getattr(it, '__name__', ''))], 'heavy' in sys.modules"
    for profile in ("default", "other", "never"):
        for _ in range(3):
            s = session(connection, profile)
            assert s.run(look).text == "([], False)"
            assert "/sets/" not in str(s.run("open('/proc/self/maps').read(), __import__('sys').path").text)
            s.shutdown()
    now = time.time()
    assert not is_ahead(begin(connection, AHEAD, ["heavy"], "other"), now), "it is of another profile"


def test_another_user_has_another(index: Index) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can become somebody else")
    store = Path(tempfile.mkdtemp(prefix="lair-ahead-"))
    store.chmod(0o755)
    daemon = Daemon(
        {"daemon": {"packages_store": str(store), "uv": str(UV)}, "profile default": QUICK},
        env={"UV_DEFAULT_INDEX": index.url},
    )
    daemon.share()

    def of(uid: int) -> bool:
        """Whether a session of that user finds it imported before it was opened."""
        act = f"import time; now = time.time(); r = c.exec({BLOCK + AHEAD!r}, 's'); c.shutdown('s')"
        return daemon.as_user(uid, f"{act}; print(eval(r.text)[0] < now)").strip() == "True"

    try:
        for _ in range(2):
            of(54321)
        wait_until(lambda: "for uid 54321, of" in daemon.log(), "there is a template", 30)
        assert not of(54322)
        assert of(54321)
        assert "for uid 54322, of" not in daemon.log(), "that user has asked once"
    finally:
        daemon.end()
        shutil.rmtree(store, ignore_errors=True)


def test_as_an_ordinary_user(index: Index) -> None:
    if os.geteuid() != 0:
        pytest.skip("all others are as an ordinary user")
    user = 61800 + WORKER
    place = Path(tempfile.mkdtemp(prefix="lair-ahead-"))
    try:
        for name in ("laird", "lair", "lair-kernel", "uv"):
            shutil.copy(str(UV) if name == "uv" else BIN / name, place)
        (place / "store").mkdir()
        for path in (place, *place.iterdir()):
            os.chown(path, user, user)
        conf = {
            "daemon": {"packages_store": str(place / "store"), "uv": str(place / "uv")},
            "profile default": QUICK,
        }
        daemon = Daemon(conf, uid=user, binaries=place, env={"UV_DEFAULT_INDEX": index.url})
        with Connection(str(daemon.socket)) as connection:
            have_one(daemon, connection)
            now = time.time()
            assert is_ahead(begin(connection, AHEAD, ["heavy"]), now)
        daemon.end()
    finally:
        shutil.rmtree(place, ignore_errors=True)


def test_requirements_of_a_profile(daemon: Daemon, connection: Connection) -> None:
    have_one(daemon, connection, "ready", ())
    now = time.time()
    assert is_ahead(begin(connection, AHEAD, [], "ready"), now)


def test_none_where_none_is_wanted(daemon: Daemon, connection: Connection) -> None:
    for _ in range(4):
        now = time.time()
        assert not is_ahead(begin(connection, AHEAD, ["heavy"], "never"), now)
    assert made(daemon, "never") == 0


@pytest.mark.parametrize("name", ["deadly", "wrong", "endless"])
def test_what_cannot_be_imported(daemon: Daemon, connection: Connection, name: str) -> None:
    for _ in range(5):
        assert begin(connection, "6 * 7", [name]).text == "42"
        assert begin(connection, "6 * 7", []).text == "42"
    have_one(daemon, connection)


def test_what_is_too_large(daemon: Daemon, connection: Connection) -> None:
    for _ in range(3):
        assert begin(connection, "6 * 7", ["large"]).text == "42"
    wait_until(lambda: "set_template_memory" in daemon.log(), "it is let go", 30)
    assert begin(connection, "import large; len(large.it)", ["large"]).text == str(64 << 20)


@pytest.mark.parametrize("name", ["greedy", "patient"])
def test_what_fills_the_disk(daemon: Daemon, connection: Connection, name: str) -> None:
    before = daemon.log().count("filled the workspace")
    for _ in range(3):
        assert begin(connection, "6 * 7", [name], "tight").text == "42"
    wait_until(lambda: daemon.log().count("filled the workspace") > before, "it is ended", 30)


def test_it_dies_with_its_router(daemon: Daemon, connection: Connection) -> None:
    have_one(daemon, connection)
    kill_router(daemon)
    now = time.time()
    assert not is_ahead(begin(connection, AHEAD, ["heavy"]), now)
    have_one(daemon, connection)


def test_its_time_is_over(index: Index, tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    for path in (tmp_path.parent, tmp_path.parent.parent):
        path.chmod(0o755)
    store = Path(tempfile.mkdtemp(prefix="lair-ahead-"))
    store.chmod(0o755)
    daemon = Daemon(
        {
            "daemon": {"packages_store": str(store), "uv": str(UV), "set_template_ttl": "2s"},
            "profile default": {**QUICK, "spares": "0"},
        },
        env={"UV_DEFAULT_INDEX": index.url},
    )
    try:
        with Connection(str(daemon.socket)) as connection:
            have_one(daemon, connection)
            wait_until(lambda: not list(daemon.workspaces.glob("*/*-*")), "its cage is gone", 30)
    finally:
        daemon.end()
        shutil.rmtree(store, ignore_errors=True)

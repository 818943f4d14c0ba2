"""What a hostile package, a hostile index and a hostile session can do to the store of packages: nothing that another session sees."""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from daemon import BIN, WORKER, Daemon, wait_until
from index import Index, find_uv, source, wheel
from lair import CellFailed, Connection, Result, Session
from test_survivors import WithoutNamespaces

UV = find_uv()

pytestmark = pytest.mark.skipif(UV is None, reason="there is no uv, and pip cannot install it")

QUICK = {"preload": "", "spares": "0", "packages": "on", "packages_deny": "evil-*"}
# What runs in a builder can write into uv's cache.
RAN = "import os\nopen(os.environ.get('UV_CACHE_DIR', '.') + '/ran', 'w')\n"


@pytest.fixture(scope="module")
def index() -> Iterator[Index]:
    index = Index()
    index.add("plain", "1.0")
    yield index
    index.close()


@pytest.fixture(scope="module")
def stores() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="lair-hostile-"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path, ignore_errors=True)


def settings(stores: Path) -> dict[str, dict[str, str]]:
    return {
        "daemon": {"packages_store": str(stores), "uv": str(UV)},
        "profile default": {**QUICK, "subprocess": "on"},
        "profile small": {**QUICK, "packages_size": "1M"},
        "profile hurried": {**QUICK, "packages_timeout": "2s"},
    }


@pytest.fixture(scope="module")
def daemon(index: Index, stores: Path) -> Iterator[Daemon]:
    named = index.url.replace("http://", "http://operator:hunter2@")
    daemon = Daemon(settings(stores), env={"UV_DEFAULT_INDEX": named})
    yield daemon
    daemon.close()


def only(stores: Path) -> Path:
    (store,) = stores.iterdir()
    return store


@pytest.fixture
def store(daemon: Daemon, stores: Path) -> Path:
    return only(stores)


numbers = iter(range(10_000))


def session(connection: Connection, profile: str = "default") -> Session:
    return Session(f"h{next(numbers)}", profile=profile, connection=connection)


def trouble(result: Result) -> str:
    assert result.error is not None, result
    return result.error.value


def contents(store: Path) -> dict[Path, bytes]:
    """Of all sets, and of all wheels in the cache."""
    found = [*store.glob("sets/**/*"), *store.glob("cache/archive-*/**/*")]
    return {path: path.read_bytes() for path in found if path.is_file() and path.name != "RECORD"}


# ---- what is in a wheel ----

UP = "../../../../"
WHEELS: dict[str, bytes] = {
    "climbs": wheel("climbs", "1.0", {f"{up}escaped.py": b"" for up in (UP, "../", "a/../../../", "./../")}),
    "absolute": wheel("absolute", "1.0", {"/tmp/lair-escaped.py": b"", "//tmp/lair-escaped.py": b""}),
    "backslash": wheel("backslash", "1.0", {"..\\..\\escaped.py": b"", "C:\\escaped.py": b""}),
    "linking": wheel("linking", "1.0", {"ok.py": b""}, links={"linking.py": "/etc/passwd", "up": UP}),
    "through": wheel("through", "1.0", {"way/escaped.py": b""}, links={"way": f"{UP}.."}),
    "scripts": wheel("scripts", "1.0", {f"scripts-1.0.data/scripts/{UP}escaped": b"#!python\n"}),
    "data": wheel(
        "data", "1.0", {f"data-1.0.data/data/{UP}escaped": b"", "data-1.0.data/data//tmp/lair-escaped": b""}
    ),
    "entries": wheel(
        "entries",
        "1.0",
        {"entries-1.0.dist-info/entry_points.txt": f"[console_scripts]\n{UP}escaped = os:getcwd\n".encode()},
    ),
    "rooted": wheel(
        "rooted",
        "1.0",
        {"rooted-1.0.dist-info/entry_points.txt": b"[gui_scripts]\n/tmp/lair-escaped = os:getcwd\n"},
    ),
    "recorded": wheel("recorded", "1.0", {"ok.py": b""}, record=f"{UP}sets,,\n/etc/passwd,,\n../plain.py,,\n"),
    "named": wheel(
        "named", "1.0", {"ok.py": b""}, metadata="Metadata-Version: 2.1\nName: ../../escaped\nVersion: 1.0\n"
    ),
    "other": wheel("other", "1.0", {"ok.py": b""}, metadata="Metadata-Version: 2.1\nName: plain\nVersion: 1.0\n"),
    "versions": wheel(
        "versions", "1.0", {"ok.py": b""}, metadata="Metadata-Version: 2.1\nName: versions\nVersion: 9\n"
    ),
    "both": wheel(
        "both", "1.0", {"plain-9.0.dist-info/METADATA": b"Metadata-Version: 2.1\nName: plain\nVersion: 9.0\n"}
    ),
    "addressed": wheel("addressed", "1.0", {}, requires=("plain @ file:///etc/passwd",)),
    "cased": wheel("cased", "1.0", {"cased.py": b"x = 1", "CASED.py": b"x = 2", "Cased/__init__.py": b"x = 3"}),
    "depth": wheel("depth", "1.0", {"/".join(["d"] * 200) + "/x.py": b""}),
    "parsed": wheel("parsed", "1.0", {"parsed.py": b"(" * 100_000, "more.py": b"x = " + b"-" * 300_000 + b"1"}),
    "broken": b"PK\x03\x04 and no more",
}


@pytest.mark.parametrize("name", WHEELS)
def test_a_wheel_stays_in_its_set(connection: Connection, index: Index, store: Path, name: str) -> None:
    session(connection).install(["plain"])
    index.put(name, f"{name}-1.0-py3-none-any.whl", WHEELS[name])
    before = contents(store)
    names = {path.name for path in store.glob("sets/*")}
    s = session(connection)
    s.run("1", packages=[name])
    after = contents(store)
    assert {path: after.get(path) for path in before} == before
    assert not Path("/tmp/lair-escaped").exists() and not Path("/tmp/lair-escaped.py").exists()
    assert not [*store.glob("escaped*"), *store.glob("*/escaped*"), *store.glob("sets/*/escaped*")]
    assert not [*store.parent.glob("escaped*"), *Path("/").glob("escaped*")]
    fresh = {path.name for path in store.glob("sets/*")} - names
    assert len(fresh) <= 1
    for path in (store / "sets").glob("*/**/*"):
        assert not path.is_symlink() and not path.stat().st_mode & 0o7222, path
    for it in fresh:
        assert sorted(path.name for path in (store / "sets" / it).iterdir()) == ["lock", "site", "size"]
    assert session(connection).run("import plain; plain.version", packages=["plain"]).text == "'1.0'"


def test_nothing_of_a_wheel_runs_unasked(connection: Connection, index: Index, store: Path) -> None:
    """Not in the builder, where Python compiles; not in a session that has it, nor in a program that this starts."""
    shadows = ("sitecustomize", "usercustomize", "compileall", "py_compile", "codecs", "encodings/__init__", "os")
    files = {f"{name}.py": RAN.encode() for name in shadows}
    files["run.pth"] = b"import os; open(os.environ.get('UV_CACHE_DIR', '.') + '/ran', 'w')\n"
    index.add("eager", "1.0", {**files, "eager.py": b"x = 1\n"})
    for packages in (["eager"], []):
        s = session(connection)
        result = s.run("import os\nos.listdir()", packages=packages)
        assert (result.text, trouble(result) if result.error else None) == ("[]", None)
        child = "import subprocess, sys\nsubprocess.run([sys.executable, '-c', '1']).returncode, os.listdir()"
        assert s.run(child).text == "(0, [])"
        of_sets = "[m for m in sys.modules.values() if '/sets/' in str(getattr(m, '__file__', ''))]"
        assert s.run(of_sets).text == "[]"
    assert not [*store.glob("cache/ran"), *store.glob("sets/**/ran")]


def test_no_source_is_built_for_anybody(connection: Connection, index: Index, store: Path, tmp_path: Path) -> None:
    backend = b"[build-system]\nrequires = []\nbuild-backend = 'setup'\nbackend-path = ['.']\n"
    for name, info in (("raw", b"Metadata-Version: 2.2\nName: raw\nVersion: 1.0\n"), ("rough", b"")):
        ran = tmp_path / name
        code = f"open({str(ran)!r}, 'w')\n{RAN}".encode()
        files = {"setup.py": code, "pyproject.toml": backend, **({"PKG-INFO": info} if info else {})}
        index.put(name, f"{name}-1.0.tar.gz", source(name, "1.0", files))
        index.add(f"on-{name}", "1.0", requires=(name,))
        for wanted in (name, f"on-{name}"):
            with pytest.raises(CellFailed, match=name):
                session(connection).install([wanted])
        assert not ran.exists()
    assert not [*store.glob("cache/ran"), *store.glob("sets/**/ran")]


@pytest.mark.parametrize(
    "files",
    [{f"many/f{i}.py": b"" for i in range(2000)}, {f"zero/f{i}.bin": bytes(900_000) for i in range(40)}],
    ids=["count", "sum"],
)
def test_what_takes_much_room(connection: Connection, index: Index, store: Path, files: dict[str, bytes]) -> None:
    name = next(iter(files)).partition("/")[0]
    index.add(name, "1.0", files)
    before = {path.name for path in store.glob("sets/*")}
    with pytest.raises(CellFailed, match="packages_size"):
        session(connection, "small").install([name])
    assert {path.name for path in store.glob("sets/*")} == before
    wait_until(lambda: not list(store.glob("work/*")), "the builder's directory is removed")


# ---- names ----


@pytest.mark.parametrize("name", ["evil-thing", "Evil.Thing", "EVIL__thing", "evil-._thing", "evil_thing[extra]"])
def test_a_name_is_denied_however_it_is_spelled(connection: Connection, index: Index, name: str) -> None:
    index.add("evil-thing", "1.0")
    index.asked.clear()
    with pytest.raises(CellFailed, match="does not allow"):
        session(connection).install([name])
    assert not index.asked
    number = next(numbers)
    index.add(f"asks{number}", "1.0", requires=(name,))
    with pytest.raises(CellFailed, match="does not allow"):
        session(connection).install([f"asks{number}"])


def test_one_set_for_one_name(connection: Connection, index: Index, store: Path) -> None:
    index.add("two-words", "1.0")
    session(connection).install(["two-words"])
    before = {path.name for path in store.glob("sets/*")}
    index.asked.clear()
    for name in ("Two_Words", "two.words", "TWO--words"):
        session(connection).install([name])
    assert not index.asked
    assert {path.name for path in store.glob("sets/*")} == before


# ---- an index ----


def fails(connection: Connection, name: str, profile: str = "default") -> str:
    with pytest.raises(CellFailed) as failure:
        session(connection, profile).install([name])
    return str(failure.value)


def redirect(to: str, request: BaseHTTPRequestHandler) -> None:
    request.send_response(302)
    request.send_header("Location", to)
    request.send_header("Content-Length", "0")
    request.end_headers()


def test_an_index_that_leads_elsewhere(connection: Connection, index: Index) -> None:
    with closing(Index()) as elsewhere:
        elsewhere.add("moved", "1.0")
        to = elsewhere.url.replace("127.0.0.1", "localhost")
        index.special["moved"] = lambda request: redirect(f"{to}/moved/", request)
        session(connection).run("1", packages=["moved"])
        assert "authorization" in " ".join(index.headers).lower()
        assert "authorization" not in " ".join(elsewhere.headers).lower()


def test_an_index_that_leads_round_and_round(connection: Connection, index: Index) -> None:
    index.special["round"] = lambda request: redirect(request.path + "x", request)
    index.special["local"] = lambda request: redirect("file:///etc/passwd", request)
    assert "hunter2" not in fails(connection, "round")
    assert "root:" not in fails(connection, "local")


def test_an_index_that_never_ends(connection: Connection, index: Index) -> None:
    ended = threading.Event()

    def drip(request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.send_header("Content-Type", "text/html")
        request.end_headers()
        try:
            while True:
                request.wfile.write(b"<!-- nothing -->\n")
                time.sleep(0.01)
        except OSError:
            ended.set()

    index.special["drips"] = drip
    assert "packages_timeout" in fails(connection, "drips", "hurried")
    assert ended.wait(10), "nothing goes on reading"


def test_an_index_that_lists_what_is_not_its_own(connection: Connection, index: Index) -> None:
    page = b"".join(
        b'<a href="%s">listed-1.0-py3-none-any.whl</a>\n' % at
        for at in (b"file:///etc/passwd", b"../../../../etc/passwd", b"javascript:1", b"http://127.0.0.1:1/x.whl")
    )

    def answer(request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.send_header("Content-Type", "text/html")
        request.send_header("Content-Length", str(len(page)))
        request.end_headers()
        request.wfile.write(page)

    index.special["listed"] = answer
    assert "root:" not in fails(connection, "listed")


def test_where_the_index_is_is_not_told(daemon: Daemon, connection: Connection, index: Index, store: Path) -> None:
    address = index.url.partition("://")[2].partition("/")[0]
    index.special["away"] = lambda request: redirect("http://elsewhere.invalid:99/away/", request)
    index.put("broken-off", "broken_off-1.0-py3-none-any.whl", b"PK no wheel")
    for name in ("away", "nosuch-thing", "broken-off"):
        said = fails(connection, name)
        assert name in said or "index" in said
        for secret in (address, "elsewhere.invalid", str(store), "hunter2", "operator"):
            assert secret not in said, said
    assert "lair-builder: uv says: " in daemon.log()
    assert address in daemon.log()
    assert "hunter2" not in daemon.log()


# ---- a session ----

ASK = "f = __import__('builtins').__pip__.__globals__['functions']\n"


def test_a_session_names_no_files(connection: Connection, store: Path) -> None:
    """It says which set it has: nothing but a set is one."""
    secret = store / "operator"
    secret.mkdir(mode=0o700)
    (secret / "lock").write_text("top-secret==4711\n")
    (secret / "lock").chmod(0o600)
    s = session(connection)
    for base in (
        "../operator",
        "../../" + store.name + "/operator",
        str(secret),
        ".",
        "",
        "x\n",
        "a" * 64,
        "../work",
    ):
        code = f"{ASK}try: f.ask_router('pip install', {{'requirements': ['plain'], 'base': {base!r}}})\nexcept Exception as e: print(e)"
        result = s.run(code)
        assert "top-secret" not in result.stdout and "4711" not in result.stdout
        assert base == "" or "not there any more" in result.stdout, (base, result)


TRY = """
import ctypes, os, plain, socket
site = os.path.dirname(plain.__file__)
top = os.path.dirname(os.path.dirname(os.path.dirname(site)))
file, other = plain.__file__, site + '/other.py'
info = site + '/plain-1.0.dist-info'
libc = ctypes.CDLL(None, use_errno=True)
def checked(r):
    if r < 0: raise OSError(ctypes.get_errno(), '')
def again(flags):
    with open(file) as f: os.close(os.open(f'/proc/self/fd/{f.fileno()}', flags))
acts = {
    'open': lambda: os.open(file, os.O_RDWR),
    'truncate': lambda: os.truncate(file, 0),
    'cut': lambda: os.open(file, os.O_RDONLY | os.O_TRUNC),
    'append': lambda: os.open(file, os.O_WRONLY | os.O_APPEND),
    'again': lambda: again(os.O_RDWR),
    'make': lambda: os.open(other, os.O_CREAT | os.O_WRONLY),
    'temporary': lambda: os.open(site, os.O_TMPFILE | os.O_RDWR),
    'remove': lambda: os.unlink(file),
    'rename': lambda: os.rename(file, other),
    'away': lambda: os.rename(file, 'mine.py'),
    'over': lambda: (open('mine.py', 'w').close(), os.rename('mine.py', file)),
    'exchange': lambda: checked(libc.renameat2(-100, file.encode(), -100, b'mine.py', 2)),
    'link': lambda: os.link(file, 'linked.py'),
    'link in': lambda: (open('mine.py', 'w').close(), os.link('mine.py', other)),
    'symlink': lambda: os.symlink('/etc', other),
    'directory': lambda: os.mkdir(site + '/new'),
    'rmdir': lambda: os.rmdir(info),
    'move': lambda: os.rename(info, site + '/plain-2.0.dist-info'),
    'set': lambda: os.rename(os.path.dirname(site), top + '/sets/' + '0' * 64),
    'new set': lambda: os.mkdir(top + '/sets/' + '1' * 64),
    'socket': lambda: socket.socket(socket.AF_UNIX).bind(site + '/socket'),
    'node': lambda: os.mkfifo(other),
    'chmod': lambda: os.chmod(file, 0o777),
    'chmod site': lambda: os.chmod(site, 0o777),
    'chown': lambda: os.chown(file, os.getuid(), os.getgid()),
    'times': lambda: os.utime(file, (1, 1)),
    'attribute': lambda: os.setxattr(file, 'user.x', b'1'),
    'mount': lambda: checked(libc.mount(b'.', site.encode(), None, 4096, None)),
    'work': lambda: os.listdir(top + '/work'),
    'cache': lambda: os.listdir(top + '/cache'),
    'asked': lambda: os.listdir(top + '/asked'),
    'sets': lambda: os.open(top + '/sets/../asked/x', os.O_CREAT | os.O_WRONLY),
    'in work': lambda: os.open(top + '/work/x', os.O_CREAT | os.O_WRONLY),
    'builders': lambda: [open(f'{at}/{name}', 'w') for at, _, names in os.walk(top + '/work') for name in names or fail()][0],
}
done = []
for name, act in acts.items():
    try: act()
    except (OSError, IndexError): continue
    done.append(name)
done
"""


def meta(store: Path) -> dict[Path, tuple[object, ...]]:
    found: dict[Path, tuple[object, ...]] = {}
    for path in [*store.glob("sets"), *store.glob("sets/**/*"), *store.glob("asked/*")]:
        it = path.lstat()
        data = path.read_bytes() if path.is_file() else b""
        found[path] = (it.st_mode, it.st_uid, it.st_gid, it.st_nlink, it.st_mtime_ns, os.listxattr(path), data)
    return found


def check_attempts(connection: Connection, index: Index, store: Path) -> None:
    """While nothing is built, and while something is."""
    index.add("building", "1.0")
    s = session(connection)
    s.install(["plain"])
    before = meta(store)
    assert s.run(TRY).text == "[]"
    index.asked.clear()
    index.gate.clear()
    index.stuck = True
    try:
        other = session(connection)
        key = other.detach("import building; building.version", packages=["building"])
        wait_until(lambda: any("building" in path for path in index.asked), "the index is asked")
        assert s.run(TRY).text == "[]"
        assert meta(store) == before
    finally:
        index.stuck = False
        index.gate.set()
    assert other.attach(key).text == "'1.0'"
    after = meta(store)
    assert {path: after[path] for path in before if path.name != "sets"} == {
        path: it for path, it in before.items() if path.name != "sets"
    }


def test_a_session_attacks_the_store(connection: Connection, index: Index, store: Path) -> None:
    check_attempts(connection, index, store)


def check_the_rest(connection: Connection, index: Index, store: Path) -> None:
    """What works: an installation, a block of PEP 723, undo, a branch, a conflict; and who has no packages sees none."""
    index.add("fitting", "2.0", requires=("plain",))
    s = session(connection)
    assert s.run("import plain; plain.version", packages=["plain"]).text == "'1.0'"
    path = str(s.run("import os; os.path.dirname(plain.__file__)").text)
    s.install(["fitting"])
    assert s.branch(f"{s.id}-b").run("import fitting; fitting.version").text == "'2.0'"
    s.undo(1)
    assert s.run("import fitting").error is not None
    assert s.run("plain.version").text == "'1.0'"
    own = session(connection).run("# /// script\n# dependencies = ['fitting']\n# ///\nimport fitting, plain; 1")
    assert own.text == "1"
    there = f"import os\ntry: print(os.listdir({path}))\nexcept OSError as e: print(type(e).__name__)"
    assert "plain.py" in s.run(there).stdout
    assert session(connection, "without").run(there).stdout in ("PermissionError\n", "FileNotFoundError\n")
    names = f"import os\ntry: print(os.listdir(os.path.dirname(os.path.dirname({path}))))\nexcept OSError as e: print(1)"
    if os.geteuid() == 0 and store.stat().st_uid == 0:
        assert s.run(names).stdout == "1\n", "which sets others have is not told"
    else:
        assert s.run(names).ok


@pytest.mark.parametrize("kind", [Daemon, WithoutNamespaces], ids=["strong", "landlock"])
@pytest.mark.parametrize("user", ["own", "ordinary"])
def test_at_each_level(index: Index, kind: type[Daemon], user: str) -> None:
    """As an ordinary user sessions and builders are one user, and the cage is all that there is; at the level landlock, where nothing
    is mounted, the rules of Landlock alone."""
    root = os.geteuid() == 0
    if user == "ordinary" and not root:
        pytest.skip("the other test is as an ordinary user")
    uid = 61700 + WORKER if user == "ordinary" else None
    place = Path(tempfile.mkdtemp(prefix="lair-hostile-"))
    try:
        for name in ("laird", "lair", "lair-kernel", "uv"):
            shutil.copy(str(UV) if name == "uv" else BIN / name, place)
        (place / "store").mkdir()
        place.chmod(0o755)
        for path in (place, *place.iterdir()):
            os.chown(path, uid or os.geteuid(), uid or os.getegid())
        conf = settings(place / "store")
        conf["daemon"]["uv"] = str(place / "uv")
        conf["profile default"]["level"] = "landlock"
        conf["profile default"]["checkpoint"] = "cell"
        conf["profile without"] = {"preload": "", "spares": "0", "level": "landlock"}
        daemon = kind(conf, uid=uid, binaries=place, env={"UV_DEFAULT_INDEX": index.url})
        with closing(daemon), Connection(str(daemon.socket)) as connection:
            s = session(connection)
            s.run("1")
            assert (s.info().level == "landlock") == (kind is WithoutNamespaces)
            s.shutdown()
            check_attempts(connection, index, only(place / "store"))
            check_the_rest(connection, index, only(place / "store"))
    finally:
        shutil.rmtree(place, ignore_errors=True)

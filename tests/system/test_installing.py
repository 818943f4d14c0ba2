"""Packages that are installed while a session runs: by a client, by its code, and from an index that means no good."""

from __future__ import annotations

import os
import shutil
import signal
import stat
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from importlib import metadata
from pathlib import Path

import pytest

from daemon import BIN, Daemon, children, command_of, wait_until
from index import Index, find_uv, source
from lair import CellFailed, Connection, Result, Session
from lair.tools import Tools
from mcp_server import McpServer
from test_router_death import kill_router

UV = find_uv()

pytestmark = pytest.mark.skipif(UV is None, reason="there is no uv, and pip cannot install it")

QUICK = {"preload": "", "spares": "0", "checkpoint": "cell"}


@pytest.fixture(scope="module")
def index() -> Iterator[Index]:
    index = Index()
    index.add("plain", "1.0")
    index.add("plain", "2.0")
    index.add("Mixed.Case_Name", "1.0", {"mixed.py": b"x = 5\n"})
    index.files["mixed-case-name"] = index.files.pop("Mixed.Case_Name")
    index.add("needs-plain", "1.0", requires=("plain<2",))
    index.add("wants-new", "1.0", requires=("plain>=2",))
    index.add("wicked", "1.0", requires=("plain",))
    yield index
    index.close()


@pytest.fixture(scope="module")
def store() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="lair-packages-"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path, ignore_errors=True)


def settings(store: Path) -> dict[str, dict[str, str]]:
    return {
        "daemon": {"packages_store": str(store), "uv": str(UV)},
        "profile default": {**QUICK, "packages": "on", "packages_deny": "wicked evil-*"},
        "profile ask": {**QUICK, "packages": "ask"},
        "profile none": QUICK,
        "profile some": {**QUICK, "packages": "on", "packages_allow": "plain"},
        "profile few": {
            **QUICK,
            "packages": "ask",
            "packages_allow": "scikit-* opencv-python pillow",
            "packages_deny": "pillow scikit-learn",
        },
        "profile small": {**QUICK, "packages": "on", "packages_size": "1M", "packages_timeout": "60s"},
        "profile hurried": {**QUICK, "packages": "on", "packages_timeout": "3s"},
        "profile ready": {**QUICK, "packages": "on", "requirements": "plain==1.*"},
    }


@pytest.fixture(scope="module")
def daemon(index: Index, store: Path) -> Iterator[Daemon]:
    env = {"UV_INDEX_URL": index.url, "UV_DEFAULT_INDEX": index.url, "SECRET_OF_OPERATOR": "hunter2"}
    daemon = Daemon(settings(store), env=env)
    yield daemon
    daemon.close()


numbers = iter(range(10_000))


def trouble(result: Result) -> str:
    assert result.error is not None, result
    return result.error.value


def session(connection: Connection, profile: str = "default") -> Session:
    return Session(f"p{next(numbers)}", profile=profile, connection=connection)


def sets(store: Path) -> set[str]:
    return {path.name for path in store.glob("*/sets/*")}


def test_the_live_session_gets_it(connection: Connection) -> None:
    s = session(connection)
    s.run("x = 41")
    assert s.install(["plain==1.0"]).stdout == "installed: plain 1.0\n"
    assert s.run("import plain; plain.version, x").text == "('1.0', 41)"
    assert s.install(["plain==1.0"]).stdout == "already there\n"
    s.undo(3)
    assert s.run("import plain").error is not None
    assert s.run("x").text == "41"


def test_before_a_cell(connection: Connection) -> None:
    s = session(connection)
    assert s.run("import plain; plain.version", packages=["plain"]).text == "'2.0'"
    assert s.run("import mixed; mixed.x", packages=["mixed.case-NAME"]).text == "5"


def test_from_a_cell(connection: Connection) -> None:
    s = session(connection)
    result = s.run("%pip install -q plain==1.0\nimport plain\nplain.version")
    assert (result.text, result.stdout) == ("'1.0'", "installed: plain 1.0\n")
    assert s.run("!pip install plain==1.0").stdout == "already there\n"
    assert s.run("pip install mixed-case-name\nimport mixed\nmixed.x").text == "5"
    assert "plain==1.0" in s.run("%pip list").stdout
    assert "address" in trouble(s.run("%pip install git+https://example.org/x"))
    assert "--target" in trouble(s.run("%pip install --target x plain"))


def test_a_block_of_pep_723(connection: Connection) -> None:
    block = '# /// script\n# requires-python = ">=3.9"\n# dependencies = [\n#   "plain<2",\n# ]\n# ///\n'
    assert session(connection).run(block + "import plain; plain.version").text == "'1.0'"


def test_requirements_of_a_profile(connection: Connection) -> None:
    s = session(connection, "ready")
    assert s.run("import plain; plain.version").text == "'1.0'"
    s.reset()
    assert s.run("import plain; plain.version").text == "'1.0'"


def test_what_there_is_keeps_its_version(connection: Connection) -> None:
    s = session(connection)
    s.install(["needs-plain"])
    assert s.run("import plain; plain.version").text == "'1.0'"
    with pytest.raises(CellFailed, match="plain"):
        s.install(["wants-new"])
    assert s.run("import plain; plain.version").text == "'1.0'"


def test_branches_and_a_dead_router(daemon: Daemon, connection: Connection) -> None:
    s = session(connection)
    s.install(["plain==1.0"])
    kill_router(daemon)
    b = s.branch(f"{s.id}-b")
    b.install(["mixed-case-name"])
    assert b.run("import plain, mixed; plain.version, mixed.x").text == "('1.0', 5)"
    assert s.run("import mixed").error is not None


def test_saved_and_loaded(connection: Connection) -> None:
    s = session(connection)
    s.install(["plain==1.0"])
    s.run("import plain; y = plain.version")
    s.save()
    s.shutdown()
    again = Session(s.id, connection=connection)
    again.load()
    assert again.run("import plain; plain.version, y").text == "('1.0', '1.0')"


def test_who_may(connection: Connection) -> None:
    s = session(connection, "none")
    assert "allows no packages" in trouble(s.run("1", packages=["plain"]))
    assert "%pip" not in trouble(s.run("import plain"))
    s = session(connection, "ask")
    assert "lair install" in trouble(s.run("import cv2"))
    assert "opencv-python-headless" in trouble(s.run("import cv2"))
    assert "lair install" in trouble(s.run("%pip install needs-plain mixed-case-name"))
    s.install(["needs-plain"])
    assert s.run("import plain; plain.version").text == "'1.0'"
    s = session(connection, "some")
    s.install(["plain"])
    assert "does not allow" in trouble(s.run("1", packages=["mixed-case-name"]))
    s = session(connection)
    assert "pyyaml" in trouble(s.run("raise ModuleNotFoundError('nothing like it', name='yaml')"))
    with pytest.raises(CellFailed, match="wicked"):
        s.install(["wicked"])


def hint(session: Session, module: str) -> str:
    return trouble(session.run(f"raise ModuleNotFoundError('no', name={module!r})"))


def test_nobody_is_told_to_ask_for_what_is_denied(connection: Connection) -> None:
    s = session(connection, "few")
    assert "lair install SESSION scikit-image" in hint(s, "skimage")
    assert "lair install SESSION opencv-python" in hint(s, "cv2")
    assert "opencv-python-headless" not in hint(s, "cv2")
    for module, project in (("sklearn", "scikit-learn"), ("PIL", "pillow"), ("polars", "polars")):
        said = hint(s, module)
        assert f"does not allow {project} to be installed here, only scikit-*, opencv-python, pillow" in said
        assert "lair install" not in said and "%pip" not in said
    s = session(connection)
    assert "does not allow wicked to be installed here: do it with another project" in hint(s, "wicked")
    assert "does not allow EVIL_thing" in hint(s, "EVIL_thing.part")
    assert "%pip install plain" in hint(s, "plain")
    assert trouble(session(connection, "none").run("raise ModuleNotFoundError('no', name='sklearn')")).endswith(
        "do without scikit-learn, or tell the user"
    )


def test_a_version_that_never_was_frees_no_other(connection: Connection, index: Index) -> None:
    """Debian's kiwisolver says that it is 0.0.0. What is imported stays as it is all the same."""
    try:
        has = {name: metadata.version(name) for name in ("cycler", "kiwisolver")}
    except metadata.PackageNotFoundError:
        pytest.skip("matplotlib is not there")
    if has["kiwisolver"] != "0.0.0":
        pytest.skip("its version is right here")
    for version in (has["cycler"], "99.0"):
        index.add("cycler", version, {"cycler.py": f"version = {version!r}\n".encode()})
    index.add("kiwisolver", "1.4")
    index.add("seabird", "1.0", requires=("cycler", "kiwisolver>=1"))
    s = session(connection)
    s.run("import cycler")
    assert "seabird 1.0" in s.install(["seabird"]).stdout
    assert s.run("from importlib import metadata; metadata.version('cycler')").text == repr(has["cycler"])


WAYS = {
    "none": "packages are for the operator of this session to install: do without {0}, or tell the user",
    "ask": "%pip install {0} asks for it, or the user has it installed: lair install SESSION {0}",
    "default": "%pip install {0} installs it here, and the session keeps its variables",
}


@pytest.mark.parametrize("profile", WAYS)
def test_one_sentence_says_how_to_get_a_package(daemon: Daemon, connection: Connection, profile: str) -> None:
    s, way = session(connection, profile), WAYS[profile]
    general = way.format("them" if profile == "none" else "NAME")
    assert hint(s, "seaborn").endswith(f"; {way.format('seaborn')}")
    assert hint(s, "sklearn").endswith(f"; {way.format('scikit-learn')}")
    for command in (
        "['pip', 'install', 'x']",
        "[sys.executable, '-m', 'pip', 'install', 'x']",
        "'/usr/bin/uv add x'",
    ):
        said = trouble(
            s.run(f"import subprocess, sys; subprocess.run({command}, shell=isinstance({command}, str))")
        )
        assert said.endswith(f": no programs here: {general} (subprocess-not-granted)")
    with (
        McpServer(daemon, "--profile", profile, "--instructions") as server,
        Tools(connection=connection, profile=profile) as tools,
    ):
        for told in (server.request("server/discover")["instructions"], tools.instructions):
            assert f"\n{general[0].upper()}{general[1:]}.\n" in told
            assert "no pip" not in told
        ours = tools.call("python_session_execute", {"code": "import seaborn", "session_id": s.id})
        for answer in (server.run("import seaborn", s.id), ours):
            assert answer["error"]["value"].endswith(way.format("seaborn"))
            assert answer["note"] == "The session goes on; what the code had done until then stays."


def test_an_unknown_name_is_not_said_to_be_a_package(connection: Connection) -> None:
    s = session(connection)
    assert "; nonesuch is not the name of a known package; if it is one, %pip install nonesuch" in hint(
        s, "nonesuch"
    )
    assert "; %pip install plain installs it" in hint(session(connection, "some"), "plain")  # the operator named it


def test_nothing_is_there_of_what_is_not(connection: Connection, store: Path) -> None:
    s = session(connection)
    before = sets(store)
    with pytest.raises(CellFailed, match="nosuch"):
        s.install(["nosuch"])
    assert sets(store) == before
    assert s.run("1 + 1").text == "2"


def test_a_source_never_runs(connection: Connection, index: Index, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    code = f"open({str(ran)!r}, 'w')\nfrom setuptools import setup\nsetup(name='evil', version='1.0')\n"
    info = b"Metadata-Version: 1.0\nName: evil\nVersion: 1.0\n"
    index.put("evil", "evil-1.0.tar.gz", source("evil", "1.0", {"setup.py": code.encode(), "PKG-INFO": info}))
    with pytest.raises(CellFailed):
        session(connection).install(["evil"])
    assert not ran.exists()


def test_a_bomb_is_too_much(connection: Connection, index: Index, store: Path) -> None:
    index.add("bomb", "1.0", {"bomb.bin": bytes(64 << 20)})
    before = sets(store)
    with pytest.raises(CellFailed, match=r"packages_size|File too large|error"):
        session(connection, "small").install(["bomb"])
    assert sets(store) == before


def test_an_index_that_says_nothing(connection: Connection, index: Index) -> None:
    s = session(connection, "hurried")
    index.stuck = True
    try:
        with pytest.raises(CellFailed, match="packages_timeout"):
            s.install(["mute"])
    finally:
        index.stuck = False
        index.gate.set()
        index.gate = threading.Event()
    index.garbage = True
    try:
        with pytest.raises(CellFailed):
            s.install(["mumbling"])
    finally:
        index.garbage = False


def test_two_share_one_build(daemon: Daemon, connection: Connection, index: Index) -> None:
    index.add("shared", "1.0")
    index.slow = 0.5
    done: list[str] = []

    def one() -> None:
        with Connection(str(daemon.socket)) as own:
            s = session(own)
            s.install(["shared"])
            done.append(str(s.run("import shared; shared.version").text))

    threads = [threading.Thread(target=one) for _ in range(3)]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        index.slow = 0.0
    assert done == ["'1.0'"] * 3
    assert len([path for path in index.asked if path.endswith("shared-1.0-py3-none-any.whl")]) <= 2


def builders(daemon: Daemon) -> list[int]:
    return [pid for pid in children(daemon.process.pid) if "--builder" in command_of(pid)]


def gone(daemon: Daemon, pid: int) -> bool:
    return pid not in builders(daemon)


def test_a_killed_builder_and_a_killed_router(
    daemon: Daemon, connection: Connection, index: Index, store: Path
) -> None:
    index.add("late", "1.0")
    s = session(connection)
    s.run("x = 1")
    before = sets(store)
    for kill in ("builder", "router"):
        index.stuck = True
        key = s.detach("import late; late.version, x", packages=["late"])
        wait_until(lambda: any("late" in path for path in index.asked), "the index is asked")
        pid = wait_until(lambda: builders(daemon), "there is a builder")[0]
        if kill == "builder":
            os.kill(pid, signal.SIGKILL)
        else:
            kill_router(daemon)
        wait_until(partial(gone, daemon, pid), "it is dead")
        assert sets(store) == before
        index.stuck = False
        index.gate.set()
        index.gate = threading.Event()
        index.asked.clear()
        result = s.attach(key)
        if kill == "builder":
            assert "killed" in trouble(result)
        else:
            assert result.text == "('1.0', 1)"


def test_the_store_is_closed(connection: Connection, store: Path) -> None:
    s = session(connection)
    s.install(["plain==1.0"])
    code = """
import os, plain
site = os.path.dirname(plain.__file__)
tried = {}
def attempt(name, act):
    try:
        act()
        tried[name] = 'done'
    except OSError as error:
        tried[name] = type(error).__name__
attempt('write', lambda: open(plain.__file__, 'a').write('x'))
attempt('make', lambda: open(site + '/new.py', 'w'))
attempt('remove', lambda: os.remove(plain.__file__))
attempt('rename', lambda: os.rename(plain.__file__, site + '/other.py'))
attempt('link', lambda: os.link(plain.__file__, 'mine.py'))
attempt('over', lambda: os.symlink('/etc', site + '/etc'))
attempt('directory', lambda: os.mkdir(site + '/../../x'))
attempt('work', lambda: os.listdir(site + '/../../../work'))
attempt('cache', lambda: os.listdir(site + '/../../../cache'))
try:
    os.chmod(plain.__file__, 0o777)
except OSError:
    pass
tried
"""
    result = s.run(code)
    assert result.ok, result.stderr
    tried = eval(result.text or "{}")
    assert "done" not in tried.values(), tried
    for path in store.glob("*/sets/**/*"):
        mode = path.lstat().st_mode
        assert not stat.S_ISLNK(mode)
        assert not mode & 0o222 or path.parent.name == "sets", path
        assert path.lstat().st_uid == os.geteuid()


def test_no_secret_of_the_operator_is_in_a_session(connection: Connection) -> None:
    s = session(connection)
    s.install(["plain==1.0"])
    assert s.run("import os; any('hunter2' in it for it in os.environ.values())").text == "False"
    assert s.run("import sys; any('UV_' in it for it in os.environ)").text == "False"


def test_full_disk(index: Index) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can mount a small file system")
    place = Path(tempfile.mkdtemp(prefix="lair-full-"))
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", place], capture_output=True).returncode:
        pytest.skip("nothing can be mounted here")
    try:
        index.add("large", "1.0", {"large.bin": os.urandom(4 << 20)})
        env = {"UV_INDEX_URL": index.url, "UV_DEFAULT_INDEX": index.url}
        with closing(Daemon(settings(place), env=env)) as daemon, Connection(str(daemon.socket)) as connection:
            s = session(connection)
            with pytest.raises(CellFailed):
                s.install(["large"])
            assert sets(place) == set()
            assert s.run("1 + 1").text == "2"
    finally:
        subprocess.run(["umount", "-l", place], check=False)
        place.rmdir()


def large(index: Index, name: str) -> None:
    """uv tells of the download of each file of more than a mebibyte."""
    index.add(name, "1.0", {f"{name}.bin": os.urandom(2 << 20)})
    index.apart.add(f"{name}-1.0-py3-none-any.whl")


def test_progress(daemon: Daemon, connection: Connection, index: Index) -> None:
    large(index, "voluminous")
    seen: list[str] = []
    index.halting = 0.5
    try:
        session(connection).install(["voluminous"], progress=seen.append)
    finally:
        index.halting = 0.0
    assert seen[0].startswith("looking for versions")
    assert "downloading voluminous, 0.0 of 2.1 MB" in seen
    assert len(seen) == len(set(seen))


def lair_cli(daemon: Daemon, *words: str) -> subprocess.Popen[str]:
    command = [str(BIN / "lair"), "--socket", str(daemon.socket), *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_lines_of_the_command(daemon: Daemon, index: Index) -> None:
    large(index, "bulky")
    index.halting = 0.5
    try:
        out, err = lair_cli(daemon, "install", f"p{next(numbers)}", "bulky").communicate(timeout=60)
    finally:
        index.halting = 0.0
    assert out == "installed: bulky 1.0\n"
    assert "looking for versions" in err
    assert "downloading bulky, 0.0 of 2.1 MB" in err


def test_an_interrupt_ends_the_wait_alone(daemon: Daemon, connection: Connection, index: Index) -> None:
    index.add("patient", "1.0")
    name = f"p{next(numbers)}"
    index.stuck = True
    command = lair_cli(daemon, "install", name, "patient")
    wait_until(lambda: any("patient" in path for path in index.asked), "the index is asked")
    command.send_signal(signal.SIGINT)
    _, err = command.communicate(timeout=60)
    assert command.returncode == 130
    assert "not waiting for patient any longer" in err
    assert "goes on" in err
    assert builders(daemon)
    index.stuck = False
    index.gate.set()
    index.gate = threading.Event()
    wait_until(lambda: not builders(daemon), "it is built")
    index.asked.clear()
    s = Session(name, connection=connection)
    s.install(["patient"])
    assert index.asked == []
    assert s.run("import patient; patient.version").text == "'1.0'"


OTHER_VERSION = """
import os
open("plain.py", "w").write("version = '0.1'")
os.mkdir("plain-0.1.dist-info")
open("plain-0.1.dist-info/METADATA", "w").write("Metadata-Version: 2.1\\nName: plain\\nVersion: 0.1\\n")
open("plain-0.1.dist-info/RECORD", "w").write("plain.py,,\\n")
"""


def test_another_version_is_imported_already(connection: Connection) -> None:
    s = session(connection)
    s.run(OTHER_VERSION)
    s.run("x = 5")
    s.run("import plain")
    s.run("y = 6")
    error = trouble(s.run("%pip install plain==2.0"))
    assert "plain 2.0 would come with them, and plain 0.1 is imported already" in error
    assert "a branch from the state after cell 2" in error
    assert s.run("import sys; any('/sets/' in it for it in sys.path)").text == "False"
    b = s.branch(f"{s.id}-b", checkpoint=2)
    assert b.run("%pip install plain==2.0\nx").text == "5"


def test_lines_to_pip(connection: Connection) -> None:
    s = session(connection)
    code = '%pip install plain==1.0\ntext = """\npip install nosuch\n"""\nmore = "#" # pip install\ntext, more'
    assert s.run(code).text == r"('\npip install nosuch\n', '#')"
    for line in (
        "!{sys.executable} -m pip install plain",
        "!python3 -m pip install plain",
        "!uv pip install plain",
    ):
        result = s.run(line)
        assert result.ok and result.stdout.endswith("already there\n") or "plain" in result.stdout, line
    assert "%pip install" in trouble(s.run("%conda install plain"))


def test_modules_are_compiled(connection: Connection, index: Index, store: Path) -> None:
    files = {
        "built/__init__.py": b"x = 1\n",
        "built/tests/__init__.py": b"y = 2\n",
        "built/wrong.py": b"not Python\n",
    }
    index.add("built", "1.0", files)
    s = session(connection)
    s.install(["built"])
    assert s.run("import built, built.tests; built.x, built.tests.y").text == "(1, 2)"
    assert s.run("import os; os.path.exists(built.__cached__), os.path.exists(built.tests.__cached__)").text == (
        "(True, False)"
    )


def test_the_store_has_an_end(index: Index) -> None:
    for name, size in (("takes-two", 2), ("takes-three", 3), ("takes-four", 4)):
        index.add(name, "1.0", {f"{name.replace('-', '_')}.py": b"x = 1\n", f"{name}.bin": os.urandom(size << 20)})
    place = Path(tempfile.mkdtemp(prefix="lair-total-"))
    place.chmod(0o755)
    env = {"UV_INDEX_URL": index.url, "UV_DEFAULT_INDEX": index.url}
    conf = settings(place)
    conf["daemon"]["packages_total"] = "6M"
    try:
        with closing(Daemon(conf, env=env)) as daemon, Connection(str(daemon.socket)) as connection:
            two, three = session(connection), session(connection)
            two.install(["takes-two"])
            with pytest.raises(CellFailed, match=r"packages_total.*lair packages prune"):
                three.install(["takes-four"])
            three.install(["takes-three"])  # what uv keeps has made room
            with pytest.raises(CellFailed, match=r"packages_total.*lair packages prune"):
                session(connection).install(["takes-four"])
            assert len(sets(place)) == 2
            assert two.run("import takes_two; takes_two.x").text == "1"
            three.shutdown()
            wait_until(lambda: daemon.lair("packages", "prune").stdout.count("takes-three"), "it is removed")
            assert "packages_total = 6.0 MiB" in daemon.lair("packages").stdout
            conf["daemon"]["packages_total"] = "2M"
            daemon.configure(conf)
            assert daemon.lair("reload").returncode == 0
            with pytest.raises(CellFailed, match="full, as packages_total says"):
                session(connection).install(["plain"])
            assert session(connection).run("import takes_two; 1", packages=["takes-two"]).text == "1"
            conf["daemon"]["packages_total"] = "off"
            daemon.configure(conf)
            assert daemon.lair("reload").returncode == 0
            session(connection).install(["takes-four"])
    finally:
        shutil.rmtree(place, ignore_errors=True)


OTHER = 54323


def test_nobody_takes_all_places(daemon: Daemon, connection: Connection, index: Index, store: Path) -> None:
    """One user has a part of those that wait, and never all that run."""
    if os.geteuid() != 0:
        pytest.skip("only root can be another user")
    daemon.share()
    for n in range(17):
        index.add(f"place{n}", "1.0")
    index.add("of-another", "1.0")
    index.gate.clear()
    index.stuck = True
    try:
        waiting = [session(connection) for _ in range(17)]
        keys = [s.detach("1", packages=[f"place{n}"]) for n, s in enumerate(waiting)]
        wait_until(lambda: sorted(s.info().state for s in waiting) == ["busy"] * 16 + ["idle"], "one too many")
        (refused,) = (n for n, s in enumerate(waiting) if s.info().state == "idle")
        assert "for this user already" in str(waiting.pop(refused).attach(keys.pop(refused)).error)
        wait_until(lambda: len(list(store.glob("*/work/*"))) == 2, "two run")
        act = (
            f"s = lair.Session('theirs', connection=lair.Connection({str(daemon.socket)!r}))\n"
            "print(s.detach('import of_another; of_another.version', packages=['of-another']))"
        )
        key = daemon.as_user(OTHER, act)
        wait_until(lambda: any("of-another" in path for path in index.asked), "that of another runs")
        assert len(list(store.glob("*/work/*"))) == 3
    finally:
        index.stuck = False
        index.gate.set()
        index.gate = threading.Event()
    act = (
        f"s = lair.Session('theirs', connection=lair.Connection({str(daemon.socket)!r}))\n"
        f"print(s.attach({key!r}).text)"
    )
    assert daemon.as_user(OTHER, act) == "'1.0'"
    assert [s.attach(key).text for s, key in zip(waiting, keys)] == ["1"] * 16
    for s in waiting:
        s.shutdown()

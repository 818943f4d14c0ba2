"""Whatever an operator's setting refuses, cuts or ends names the setting, its section and the file that laird has loaded: beside
the sentence, which a model may read."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from daemon import ROOT, Daemon, own_uids, uids, wait_until
from http_server import server_of
from index import Index, find_uv
from lair import CellFailed, Client, Connection, LairError, Session
from lair import messages as m
from test_held_calls import Provider

Start = Callable[..., Daemon]
UV = find_uv()

HEADER = (ROOT / "daemon/config/deciding.h").read_text()
WHY = dict(re.findall(r'X\("([^"]+)", "(\w+)"\)', HEADER.partition("DECIDING_ERRORS")[0]))
ERRORS = list(re.findall(r'X\("(\w+)", "([^"]*)", "(\w+)"\)', HEADER))
STARTS = list(re.findall(r'X\("([^"]+)", "([^"]+)"\)', HEADER.partition("DECIDING_STARTS")[2]))
SOURCES = "".join(path.read_text() for path in (ROOT / "daemon").rglob("*.c"))
REFUSALS = set(re.findall(r'client_limit\((?:[^";]*?"\w+",)[^";]*?"(\w+)"', SOURCES))

GROUP = "memory-cgroup"
TOUCH = "def touch(n):\n    import mmap\n    m = mmap.mmap(-1, n << 20)\n    for i in range(0, n << 20, 4096): m[i] = 1\n    return m\n"
SOCKET = "import socket; socket.create_connection(('127.0.0.1', 9), 1)"

# The settings of a profile, the code that meets them, and what the host must have.
ENDS: dict[str, tuple[dict[str, str], str, str | None]] = {
    "oom": ({"memory": "256M", "processes": "64"}, TOUCH + "x = [touch(90) for _ in range(6)]", GROUP),
    "memory-limit": (
        {"memory": "256M"},
        f"{TOUCH}import os\nfor i in range(6):\n    if not os.fork():\n        x = touch(90); import time; time.sleep(9)\n"
        "for i in range(6): os.wait() if i < 3 else None",
        GROUP,
    ),
    "workspace": (
        {"workspace_size": "1M", "grace": "100ms"},
        "import time\nfor i in range(60): open(f'f{i}', 'wb').write(bytes(1 << 20)); time.sleep(0.1)",
        None,
    ),
    "timeout": ({"cell_timeout": "200ms", "grace": "100ms"}, "while True: pass", None),
    "forbidden": ({"forbid": "call eval: no", "forbid_in": "exec"}, "eval('1')", None),
    "write-outside-workspace": ({}, "open('/etc/passwd', 'a')", None),
    "read-outside": ({}, "open('/root/.profile')", None),
    "hidden": ({"read": "/usr/share", "hide": "/usr/share/doc"}, "import os; os.listdir('/usr/share/doc')", None),
    "subprocess-not-granted": ({}, "import os; os.system('true')", None),
    "terminals-not-granted": ({}, "import os; os.openpty()", None),
    "network-not-granted": ({}, SOCKET, None),
    "port-not-granted": ({"network": "tcp:1"}, SOCKET, None),
    "names-not-granted": ({"network": "tcp:1"}, "import socket; socket.getaddrinfo('lair.example', 1)", None),
}
EXPIRY = {"idle_ttl": {"idle_ttl": "100ms"}, "hard_ttl": {"hard_ttl": "2s", "idle_ttl": "off"}}

# Of errors that are not told by a cause.
CAUGHT: dict[str, tuple[dict[str, str], str]] = {
    "memory": ({"memory": "64M", "level": ""}, "x = bytearray(1 << 30)"),
    "open_files": ({"open_files": "64"}, "x = [open('f', 'w') for _ in range(99)]"),
    "file_size": ({"file_size": "4K"}, "open('f', 'wb', 0).write(bytes(1 << 20)) and open('f', 'ab', 0).write(b'x')"),
    "scratch_size": ({"scratch_size": "64K"}, "open('/tmp/f', 'wb', 0).write(bytes(1 << 20)) and open('/tmp/f', 'ab', 0).write(b'x')"),
    "processes": (
        {"processes": "8"},
        "import threading, time\nfor i in range(99): threading.Thread(target=time.sleep, args=(9,), daemon=True).start()",
    ),
}  # fmt: skip


# Of functions that the code calls.
AT_ONCE = "import asyncio\nawait asyncio.gather(*[tools.f.aio(x=n) for n in range(2)])"
CALLED: dict[str, tuple[dict[str, str], str]] = {
    "calls": ({"calls": "1"}, "for n in range(2): tools.f(x=n)"),
    "calls_at_once": ({"calls_at_once": "1"}, AT_ONCE),
    "call_size": ({"call_size": "1K"}, "tools.f(x='x' * 2000)"),
    "functions_deny": ({"functions_deny": "f"}, "tools.f(x=1)"),
    "packages": ({}, "%pip install nothing"),
}


def profile(name: str) -> str:
    return re.sub("[^a-z]", "", name)


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    sections = {name: settings for name, (settings, _, _) in ENDS.items()} | EXPIRY
    sections |= {f"caught {name}": settings for name, (settings, _) in CAUGHT.items()}
    sections |= {f"called {name}": settings for name, (settings, _) in CALLED.items()}
    sections["cut"] = {"output_size": "1K"}
    bare = {"preload": "", "spares": "0"}
    it = Daemon({f"profile {profile(name)}": {**bare, **settings} for name, settings in sections.items()})
    yield it
    it.close()


@pytest.fixture(scope="module")
def client(daemon: Daemon) -> Client:
    return daemon.client()


def told(daemon: Daemon, setting: str, section: str) -> str:
    return f"{setting} in [{section}] of {daemon.config}"


def test_every_row_has_its_case() -> None:
    assert set(WHY) == set(ENDS) | set(EXPIRY)
    assert {setting for _, _, setting in ERRORS} == set(CAUGHT) | set(CALLED) | set(INSTALLED)
    assert {settings for _, settings in STARTS} == {settings for _, _, settings in UNSTARTABLE.values()} | {"level"}
    assert {*REFUSED, "users"} == REFUSALS


@pytest.mark.parametrize("why", ENDS)
def test_what_ends_a_cell(daemon: Daemon, client: Client, why: str) -> None:
    _, code, needs = ENDS[why]
    if needs:
        client.exec("1", f"probe.{why}", profile=profile(why))  # its guards are known once it has a cage
        if needs not in (client.info(f"probe.{why}").guards or ()):
            pytest.skip(f"this host has no {needs}")
    reply = client.exec(code, profile=profile(why))
    assert reply.cause == why or why in [act["reason"] for act in reply.blocked or ()], reply
    assert reply.setting == told(daemon, WHY[why], f"profile {profile(why)}"), reply


@pytest.mark.parametrize("why", EXPIRY)
def test_what_ends_a_session(daemon: Daemon, client: Client, why: str) -> None:
    section = profile(why)
    client.exec("x = 1", why, profile=section)
    wait_until(lambda: why not in [info.session for info in client.list()], "it has ended")
    with pytest.raises(LairError, match="any more") as caught:
        client.info(why)
    assert caught.value.setting == f"{why} in its profile of {daemon.config}"
    reply = client.exec("1", why, profile=section)
    assert reply.state == "new" and reply.setting == told(daemon, why, f"profile {section}")


@pytest.mark.parametrize("setting", CAUGHT)
def test_what_an_error_tells(daemon: Daemon, client: Client, setting: str) -> None:
    section = profile(f"caught {setting}")
    reply = client.exec(CAUGHT[setting][1], profile=section)
    if reply.cause == "error" and reply.error["name"] == "PermissionError":
        pytest.skip("sessions have no such file system here")
    assert reply.setting == told(daemon, setting, f"profile {section}"), reply


@pytest.mark.parametrize("setting", CALLED)
def test_what_a_call_tells(daemon: Daemon, setting: str) -> None:
    section = profile(f"called {setting}")
    provider = Provider(daemon, CALLED[setting][1], profile=section, functions=[FUNCTION])
    reply = result_of(provider, answers=setting != "calls_at_once")
    provider.client.close()
    settings = "packages, subprocess" if setting == "packages" else setting
    assert reply.setting == told(daemon, settings, f"profile {section}"), reply


# Of packages that are installed: they need an index.
INSTALLED: dict[str, tuple[dict[str, str], str]] = {
    "packages_size": ({"packages_size": "1M"}, "large"),
    "packages_timeout": ({"packages_timeout": "2s"}, "mute"),
    "packages_total": ({}, "large"),
}


@pytest.mark.skipif(UV is None, reason="there is no uv, and pip cannot install it")
@pytest.mark.parametrize("setting", INSTALLED)
def test_what_an_installation_tells(start_daemon: Start, tmp_path: Path, setting: str) -> None:
    settings, name = INSTALLED[setting]
    section = "daemon" if setting == "packages_total" else "profile default"
    store = tmp_path / "store"
    store.mkdir()
    conf = {"packages_store": str(store), "uv": str(UV), "packages_total": "2M"}
    if section != "daemon":
        del conf["packages_total"]
    with closing(Index()) as index:
        index.add("large", "1.0", {"large.py": b"", "large.bin": os.urandom(4 << 20)})
        index.stuck = name == "mute"
        daemon = start_daemon(
            {"daemon": conf, "profile default": {"preload": "", "spares": "0", "packages": "on", **settings}},
            env={"UV_INDEX_URL": index.url, "UV_DEFAULT_INDEX": index.url},
        )
        reply = daemon.client().exec(f"%pip install {name}")
        index.gate.set()
    assert reply.setting == told(daemon, setting, section), reply


def result_of(provider: Provider, answers: bool) -> m.ExecReply:
    while not isinstance(event := provider.event(), m.ExecReply):
        if answers and isinstance(event, m.CallEvent):
            with suppress(LairError):  # the cell may have ended meanwhile
                provider.give(event, value=0)
    return event


def test_cut_output(daemon: Daemon, client: Client) -> None:
    code = "print('x' * 5000)"
    assert client.exec(code, profile="cut").setting == told(daemon, "output_size", "profile cut")
    assert "decides" not in daemon.lair("exec", "-p", "cut", code).stderr  # it has all of it


def test_nothing_decides_what_the_code_did_itself(client: Client) -> None:
    for code in ("1 / 0", "raise OSError(2, 'x')", "import os; os._exit(3)", "1"):
        assert client.exec(code).setting is None
    assert client.exec("while True: pass", timeout=0.2).setting is None


# ---- profiles that no session starts of ----

# The settings ({} is an empty directory, which is removed after laird has read `read`), the words and what decides.
UNSTARTABLE: dict[str, tuple[dict[str, str], str, str]] = {
    "preload": ({"preload": "nothing_of_this_name"}, "cannot preload nothing_of_this_name", "preload"),
    "home": ({"home": "/usr/here"}, "laird's log says why", "home"),
    "python": ({"python": "{}"}, "laird's log says why", "python"),
    "read": ({"read": "{}"}, "laird's log says why", "read, write"),
}


@pytest.mark.parametrize("name", UNSTARTABLE)
def test_a_profile_that_cannot_start(start_daemon: Start, tmp_path: Path, name: str) -> None:
    settings, words, decides = UNSTARTABLE[name]
    place = tmp_path / "place"
    (place / "bin").mkdir(parents=True)
    daemon = start_daemon({"profile default": {"spares": "0", **{k: v.format(place) for k, v in settings.items()}}})
    if name == "read":
        shutil.rmtree(place)
    client = daemon.client()
    for _ in range(2):  # a new one, and one whose template has failed before
        with pytest.raises(LairError, match=re.escape(words)) as caught:
            client.exec("1")
        assert caught.value.setting == told(daemon, decides, "profile default"), caught.value


# ---- refused requests ----


def too_many_sessions(client: Client) -> None:
    for name in "abc":
        client.open(name)


def a_full_queue(client: Client) -> None:
    client.open("s")
    running = client.start("import time; time.sleep(30)", "s")
    try:
        for _ in range(3):
            request = client.start("1", "s")
        client.finish(request, m.ExecReply)
    finally:
        client.cancel(running)


def too_many_checkpoints(client: Client) -> None:
    client.exec("x = 1", "s")
    client.checkpoint("s", "a")
    client.exec("x = 2", "s")
    client.checkpoint("s", "b")


def a_big_answer(daemon: Daemon) -> None:
    provider = Provider(daemon, "tools.f(x=1)", functions=[FUNCTION])
    try:
        provider.give(provider.called(), value="x" * 2000)
    finally:
        provider.client.close()


def much_work(client: Client) -> None:
    client.open("s")
    running = client.start("import time; time.sleep(30)", "s")
    try:
        requests = [client.start("#" * (8 << 20), "s") for _ in range(9)]
        for request in reversed(requests):
            client.finish(request, m.ExecReply, timeout=5)
    finally:
        client.cancel(running)


FUNCTION = {"name": "f", "schema": '{"type": "object", "properties": {"x": {}}}'}

REFUSED: dict[str, tuple[dict[str, dict[str, str]], Callable[..., object]]] = {
    "sessions": ({"daemon": {"sessions": "2"}}, too_many_sessions),
    "sessions_per_uid": ({"daemon": {"sessions_per_uid": "2"}}, too_many_sessions),
    "uids": ({"daemon": {"uids": uids(own_uids(), 2)}}, too_many_sessions),
    "work_per_uid": ({"daemon": {"work_per_uid": "32M"}, "profile default": {"code_size": "15M"}}, much_work),
    "queue": ({"profile default": {"queue": "1"}}, a_full_queue),
    "code_size": ({"profile default": {"code_size": "1K"}}, lambda client: client.exec("#" * 2000)),
    "cell_timeout_max": (
        {"profile default": {"cell_timeout_max": "10s", "cell_timeout": "5s"}},
        lambda client: client.exec("1", timeout=11),
    ),
    "functions": (
        {"profile default": {"functions": "off"}},
        lambda client: client.call(m.Exec(id=client.new_id(), code="1", functions=[{"name": "f"}]), m.ExecReply),
    ),
    "checkpoint": ({"profile default": {"checkpoint": "off"}}, lambda client: client.open("s") and client.undo("s")),
    "checkpoints": ({"profile default": {"checkpoint": "manual", "checkpoints": "1"}}, too_many_checkpoints),
    "packages": ({}, lambda client: client.call(m.Packages(id=client.new_id()), m.PackagesReply)),
    "call_size": ({"profile default": {"call_size": "1K"}}, a_big_answer),
    "workspace_size": (
        {"profile default": {"workspace_size": "64K"}},
        lambda client: client.open("s") and client.put("s", "f", bytes(1 << 17)),
    ),
    "file_size": (
        {"profile default": {"file_size": "4K"}},
        lambda client: client.open("s") and client.put("s", "f", bytes(1 << 13)),
    ),
    "import": ({}, lambda client: client.open("s") and client.copy_in("s", "/etc/passwd")),
}  # fmt: skip


@pytest.mark.parametrize("setting", REFUSED)
def test_refused_requests(start_daemon: Start, setting: str) -> None:
    settings, ask = REFUSED[setting]
    if setting == "uids" and os.geteuid() != 0:
        pytest.skip("only root gives sessions users of their own")
    daemon = start_daemon(settings)
    with pytest.raises(LairError) as caught:
        if setting == "call_size":
            a_big_answer(daemon)
        else:
            ask(daemon.client())
    section = next(iter(settings), "profile default") if setting != "packages" else None
    expected = told(daemon, setting, section) if section else f"{setting} in its profile of {daemon.config}"
    assert caught.value.setting == expected, caught.value
    assert str(daemon.config) not in str(caught.value)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_another_user_does_not_learn_the_path(start_daemon: Start) -> None:
    daemon = start_daemon({"profile default": {"cell_timeout": "1s"}, "profile root": {"users": "root"}})
    daemon.share()
    act = "try: c.exec('1', profile='root')\nexcept lair.LairError as e: print(e.setting)"
    assert daemon.as_user(54321, act) == "users in [profile root] of laird's settings"
    reply = 'print(c.exec(\'open("/etc/passwd", "a")\').setting)'
    assert daemon.as_user(54321, reply) == "write in [profile default] of laird's settings"


# ---- each surface ----

DENIED = "import subprocess; subprocess.run('ls')"


def test_the_command_line(daemon: Daemon) -> None:
    expected = told(daemon, "subprocess", "profile default")
    done = daemon.lair("exec", DENIED)
    assert done.stderr.endswith(f"(subprocess-not-granted)\nlair: {expected} decides this\n")
    document = json.loads(daemon.lair("exec", "--json", DENIED).stdout)
    assert document["setting"] == expected
    done = daemon.lair("undo", "nothing-yet")
    assert "decides" not in done.stderr


def test_the_python_client(daemon: Daemon) -> None:
    expected = told(daemon, "subprocess", "profile default")
    with Connection(str(daemon.socket)) as connection, Session("python", connection=connection) as session:
        result = session.run(DENIED)
    assert result.setting == expected and expected not in result.transcript() + result.summary()
    with pytest.raises(CellFailed) as caught:
        result.raise_for_error()
    assert caught.value.__notes__ == [f"{expected} decides this"] and expected not in str(caught.value)


def test_models_and_tenants_do_not_read_it(daemon: Daemon) -> None:
    with server_of(daemon) as server:
        answer = server.ask("POST", "/v1/sessions/s/exec", {"code": DENIED})
        assert "subprocess-not-granted" in answer.body.decode() and str(daemon.config) not in answer.body.decode()
        answer = server.ask("POST", "/v1/sessions/s/undo", {})
        assert answer.status >= 400 and str(daemon.config) not in answer.body.decode()

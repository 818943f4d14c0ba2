"""What outlives a session: its variables, saved when it expires or when somebody asks, and loaded by the next of its id."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from daemon import Daemon, wait_until
from lair import Client, LairError, codec
from lair import messages as m

SAVES = Path(f"/tmp/lair-saves-{os.getpid()}")
SETTINGS = {
    "daemon": {"saves": str(SAVES), "saves_per_uid": "40"},
    "profile default": {"checkpoint": "cell", "on_expire": "save"},
    "profile brief": {"checkpoint": "cell", "on_expire": "save", "idle_ttl": "300ms"},
    "profile hard": {"checkpoint": "cell", "on_expire": "save", "idle_ttl": "off", "hard_ttl": "1500ms"},
    "profile both": {"checkpoint": "cell", "on_expire": "save", "idle_ttl": "300ms", "hard_ttl": "2s"},
    "profile ends": {"idle_ttl": "300ms"},
    "profile small": {"save_size": "64K"},
    "profile hasty": {"checkpoint": "cell", "save_timeout": "600ms", "grace": "300ms"},
    "profile hastier": {"checkpoint": "cell", "save_timeout": "600ms", "on_expire": "save", "idle_ttl": "500ms"},
    "profile narrow": {"queue": "1", "spares": "0"},
    "profile fleeting": {"save_ttl": "1s"},
}


@pytest.fixture(autouse=True, scope="module")
def no_saves_left(daemon: Daemon) -> object:
    yield
    for path in sorted(SAVES.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    SAVES.rmdir()


def names(raw: list[str]) -> list[str]:
    return sorted(raw)


def reasons(raw: list[dict[str, object]]) -> dict[str, str]:
    refused = [codec.read(m.RefusedName, item) for item in raw]
    return {it.name: it.reason for it in refused}


def save(client: Client, session: str, key: str | None = None) -> m.SaveReply:
    return client.call(m.Save(id=client.new_id(), session=session, key=key), m.SaveReply)


def load(client: Client, session: str) -> m.LoadReply:
    return client.call(m.Load(id=client.new_id(), session=session), m.LoadReply)


def gone(client: Client, session: str) -> None:
    wait_until(lambda: session not in [info.session for info in client.list()], "the session has expired", 15)


MUCH = """
import math, collections
import json as j
number, text, data = 1, 'text', {'a': [1, 2]}
shared = data['a']
itself = []; itself.append(itself)
Point = collections.namedtuple('Point', 'x y')
point = Point(1, 2)
def double(n): return n * factor
factor = 2
class Counter:
    start = 5
    def __init__(self): self.n = self.start
    def up(self): self.n += double(1); return self.n
counter = Counter()
twin = counter
square = lambda n: n ** 2
generator = (n for n in shared)
"""


def test_an_idle_session_comes_back(client: Client, session: str) -> None:
    client.open(session, "brief")
    client.exec(MUCH, session)
    gone(client, session)
    reply = client.exec(
        "double(4), counter.up(), counter is twin, shared is data['a'], itself[0] is itself", session
    )
    assert reply.text == "(8, 7, True, True, True)"
    assert names(reply.loaded) == sorted(
        "math collections j number text data shared itself Point point double factor Counter counter twin square".split()
    )
    assert list(reasons(reply.not_loaded)) == ["generator"]
    assert "cannot pickle" in reasons(reply.not_loaded)["generator"]
    assert reply.saved_age is not None and 0 < reply.saved_age < 30
    # Functions live in the namespace, not in a copy of what it was; and what came back is told of once.
    after = client.exec("factor = 10; double(4), isinstance(point, Point), math.pi > 3, square(3)", session)
    assert after.text == "(40, True, True, 9)"
    assert after.loaded is None and after.saved_age is None


def test_it_comes_back_where_one_cell_may_wait(client: Client, session: str) -> None:
    client.exec("x = 1", session, profile="narrow")
    save(client, session)
    client.shutdown(session)
    assert client.exec("x", session, profile="narrow").text == "1"


def test_open_says_what_came_back(client: Client, session: str) -> None:
    client.open(session, "brief")
    client.exec("x = 1; f = (i for i in [])", session)
    gone(client, session)
    info = client.open(session, "brief")
    assert info.opened and names(info.loaded) == ["x"] and list(reasons(info.not_loaded)) == ["f"]
    assert client.open(session).loaded is None
    assert client.exec("x", session).text == "1"


def test_a_session_with_a_short_life(client: Client, session: str) -> None:
    client.open(session, "hard")
    client.exec("x = 'saved'", session)
    gone(client, session)
    assert client.exec("x", session).text == "'saved'"


def test_a_busy_session_whose_life_is_over(client: Client, session: str) -> None:
    """Its cell is stopped, and the state before it is saved, or what it left if it took the interrupt."""
    client.open(session, "hard")
    client.exec("x = 'before'", session)
    reply = client.exec("import time\nx = 'during'\nwhile True: time.sleep(0.05)", session)
    assert (reply.returncode, reply.cause, reply.state) == (124, "hard_ttl", "kept")
    gone(client, session)
    assert client.exec("x", session).text == "'during'"


def test_a_cell_that_does_not_stop(client: Client, session: str) -> None:
    client.open(session, "hard")
    client.exec("x = 'before'", session)
    code = "x = 'during'\nimport signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass"
    reply = client.exec(code, session)
    assert (reply.cause, reply.state, reply.restored) == ("hard_ttl", "rolled_back", 1)
    gone(client, session)
    assert client.exec("x", session).text == "'before'"


def test_without_save_it_ends(client: Client, session: str) -> None:
    client.open(session, "ends")
    client.exec("x = 1", session)
    gone(client, session)
    reply = client.exec("'x' in globals()", session)
    assert reply.text == "False" and reply.loaded is None


def test_who_comes_while_it_is_saved_keeps_it(client: Client, session: str) -> None:
    client.open(session, "brief")
    client.exec(
        "class Slow:\n    def __reduce__(self):\n        import time; time.sleep(0.4); return (int, ())", session
    )
    client.exec("s = Slow(); x = 1", session)
    time.sleep(0.45)
    reply = client.exec("x", session)
    assert (reply.text, reply.loaded) == ("1", None)


def test_the_cell_that_brings_it_back_is_done_once(client: Client, session: str) -> None:
    client.exec("x = 1", session)
    save(client, session)
    client.shutdown(session)
    for _ in range(2):
        cell = m.Exec(id=client.new_id(), session=session, key="once", code="x += 1; x")
        assert client.call(cell, m.ExecReply).text == "2"
    assert client.exec("x", session).text == "2"


LINGERS = """
class Lingers:
    def __reduce__(self):
        import time; time.sleep(2.5); return (int, ())
lingers = Lingers(); x = 'saved'
"""


def slowly_saved(client: Client, session: str, profile: str) -> None:
    client.open(session, profile)
    client.exec(LINGERS, session)
    wait_until(lambda: client.info(session).state == "busy", "it is being saved")


def test_an_idle_session_whose_life_is_over(client: Client, session: str) -> None:
    """Its life ends while it is being saved, and waits for that."""
    slowly_saved(client, session, "both")
    gone(client, session)
    assert client.exec("x", session).text == "'saved'"


def test_nobody_interrupts_the_last_save(client: Client, session: str) -> None:
    slowly_saved(client, session, "brief")
    assert not client.interrupt(session)
    gone(client, session)
    assert client.exec("x", session).text == "'saved'"


def test_save_and_load(client: Client, session: str) -> None:
    client.exec("x = 1; y = (i for i in [])", session)
    reply = save(client, session)
    assert names(reply.saved) == ["x"] and list(reasons(reply.not_saved)) == ["y"] and reply.size > 0
    client.exec("x = 2", session)
    assert names(load(client, session).loaded) == ["x"]
    assert client.exec("x", session).text == "1"
    # Loading is a cell, so it can be undone; saving changes nothing.
    client.undo(session, 2)
    assert client.exec("x", session).text == "2"


def test_saving_is_no_state_to_go_back_to(client: Client, session: str) -> None:
    client.exec("x = 1", session)
    client.exec("x = 2", session)
    save(client, session)
    client.undo(session)
    assert client.exec("x", session).text == "1"


def test_save_close_open(client: Client, session: str) -> None:
    client.exec("x = 1", session)
    save(client, session)
    client.shutdown(session)
    assert names(client.open(session).loaded) == ["x"]
    # Closed again it is done with; unless it is saved again.
    client.shutdown(session)
    assert client.open(session).loaded is None


def test_nothing_to_load(client: Client, session: str) -> None:
    with pytest.raises(LairError, match="gone: no state"):
        load(client, session)
    assert session not in [info.session for info in client.list()]


def test_load_opens(client: Client, session: str) -> None:
    client.exec("x = 1", session)
    save(client, session)
    client.shutdown(session)
    assert names(load(client, session).loaded) == ["x"]
    assert client.exec("x", session).text == "1"


def test_save_is_done_once(client: Client, session: str) -> None:
    client.exec("x = 1", session)
    first = save(client, session, "k")
    client.exec("y = 1", session)
    assert save(client, session, "k").saved == first.saved == ["x"]


def test_saving_waits_for_the_cell(client: Client, session: str) -> None:
    client.start("import time; time.sleep(0.3); x = 1", session)
    assert "x" in save(client, session).saved


def test_what_does_not_fit_is_left_out(client: Client, session: str) -> None:
    client.open(session, "small")
    client.exec("large = b'x' * 100_000; some = [b'y' * 25_000 + bytes([i]) for i in range(9)]", session)
    client.exec("a, b, c, d = some[:4]; x = 1; del some", session)
    reply = save(client, session)
    assert "x" in reply.saved and len([name for name in reply.saved if name in "abcd"]) == 2
    refused = reasons(reply.not_saved)
    assert "save_size" in refused["large"] and len(refused) == 3
    assert reply.size <= 65536


def test_long_names_are_left_out(client: Client, session: str) -> None:
    client.exec("globals()['y' * 20_000_000] = x = 1", session)
    reply = save(client, session)
    assert (reply.saved, reasons(reply.not_saved)) == (["x"], {"y" * 255 + "...": "its name is too long"})


def test_one_that_hangs_spoils_no_other(client: Client, session: str) -> None:
    client.open(session, "hasty")
    client.exec("x = 1\nclass Slow:\n    def __reduce__(self):\n        while True: pass\nslow = Slow()", session)
    client.exec("z = 3", session)
    reply = save(client, session)
    assert "x" in reply.saved
    refused = reasons(reply.not_saved)
    assert "save_timeout" in refused["slow"] and "no time" in refused["z"]
    assert client.exec("x", session).text == "1"


def test_one_that_cannot_be_stopped(client: Client, session: str) -> None:
    """Then nothing is saved, and the session goes on from its checkpoint."""
    client.open(session, "hasty")
    code = """
x = 1
class Stuck:
    def __reduce__(self):
        import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)
        while True: pass
stuck = Stuck()
"""
    client.exec(code, session)
    with pytest.raises(LairError, match="unsupported: .* timeout"):
        save(client, session)
    assert client.exec("x", session).text == "1"
    with pytest.raises(LairError, match="gone"):
        load(client, session)


def test_one_that_cannot_be_loaded_spoils_no_other(client: Client, session: str) -> None:
    code = """
import sys
shared = [1]
a = {'s': shared}
def fail(): raise ValueError('not today')
class Bad:
    def __reduce__(self): return (fail, ())
bad = Bad()
bad2 = [bad, shared]
b = {'s': shared}
"""
    client.exec(code, session)
    save(client, session)
    reply = load(client, session)
    refused = reasons(reply.not_loaded)
    assert set(refused) == {"bad", "bad2"} and "not today" in refused["bad"]
    assert client.exec("a['s'] is b['s'] is shared", session).text == "True"


@pytest.mark.parametrize("ending", ["import os; os._exit(3)", "while True: pass"], ids=["exits", "hangs"])
def test_one_that_kills_the_session_as_it_is_loaded(client: Client, session: str, ending: str) -> None:
    client.open(session, "hasty")
    code = f"def end():\n    try:\n        {ending}\n    except KeyboardInterrupt: import os; os._exit(4)\n"
    client.exec(code + "x = 1\nclass Bad:\n    def __reduce__(self): return (end, ())\nbad = Bad()", session)
    save(client, session)
    client.shutdown(session)
    info = client.open(session, "hasty")
    assert info.loaded == [] and {"x", "bad"} <= set(reasons(info.not_loaded))
    assert client.exec("1", session).text == "1"


def test_one_that_can_be_pickled_but_once_spoils_no_other(client: Client, session: str) -> None:
    code = """
class Once:
    left = 1
    def __init__(self, *things): self.things = things
    def __reduce__(self):
        if Once.left == 0: raise ValueError('not again')
        Once.left -= 1
        return (Once, self.things)
shared = [1]
a = [shared]
once = Once(shared)
b = [shared, 5]
"""
    client.exec(code, session)
    reply = save(client, session)
    assert reasons(reply.not_saved) == {"once": "ValueError: not again"}
    assert names(reply.saved) == ["Once", "a", "b", "shared"]
    client.shutdown(session)
    assert client.exec("a[0] is b[0] is shared, b[1]", session).text == "(True, 5)"


def test_functions_come_back_with_their_lines(client: Client, session: str) -> None:
    """Not with those of the cells that have their numbers now."""
    client.exec("factor = 5", session)
    client.exec("def divide(x):\n    # by it\n    return factor / x\nclass Own:\n    n = 1", session)
    other = "one = 1  # line of another cell\ntwo = 2  # line of another cell\nthree = divide(0)"
    for _ in range(2):  # what was loaded is saved and loaded, too
        save(client, session)
        client.shutdown(session)
        reply = client.exec(other, session)
        assert b"return factor / x" in reply.stderr
        assert (reply.stderr.count(b"another cell"), reply.stderr.count(b"<cell 2>")) == (0, 1)
        frames = (reply.error or {})["frames"]
        assert [frame.get("cell") for frame in frames] == [2, None]
        assert frames[1]["file"].startswith("<cell 2 saved ")
    code = "import inspect\n[inspect.getsource(thing).splitlines()[-1] for thing in (divide, Own)]"
    assert client.exec(code, session).text == "['    return factor / x', '    n = 1']"


def test_a_function_whose_lines_do_not_fit(client: Client, session: str) -> None:
    client.open(session, "small")
    client.exec("def one(): return 1\n# " + "x" * 70_000, session)
    reply = save(client, session)
    assert (reply.saved, reply.not_saved) == (["one"], []) and reply.size <= 65536
    load(client, session)
    assert client.exec("one()", session).text == "1"


def test_an_empty_session(client: Client, session: str) -> None:
    client.open(session)
    reply = save(client, session)
    assert (reply.saved, reply.not_saved) == ([], [])
    assert load(client, session).loaded == []


def test_what_it_prints_is_told_apart_from_the_next_cell(client: Client, session: str) -> None:
    client.exec("class Loud:\n    def __reduce__(self): print('loud'); return (int, ())\nloud = Loud()", session)
    save(client, session)
    told = client.exec("print('now')", session)
    assert (told.stdout, told.stdout_stray) == (b"loud\nloud\nnow\n", 10)


def test_saved_states_expire(client: Client, session: str) -> None:
    client.open(session, "fleeting")
    client.exec("x = 1", session)
    save(client, session)
    client.shutdown(session)
    time.sleep(2.1)
    assert client.open(session).loaded is None


def test_a_saved_state_outlives_the_daemon(start_daemon: Callable[..., Daemon]) -> None:
    daemon = start_daemon({"daemon": {"saves": ""}, "profile default": {"on_expire": "save", "idle_ttl": "300ms"}})
    client = daemon.client()
    client.exec("x = 'still here'", "s")
    gone(client, "s")
    root = Path("/var/lib/lair/saves") if os.geteuid() == 0 else daemon.directory / ".local/state/lair/saves"
    files = [path for path in root.rglob("*-*") if path.stat().st_mtime > time.time()]
    assert files and all(path.stat().st_mode & 0o777 == 0o600 for path in files)
    assert daemon.terminate() == 0
    daemon.start()
    assert daemon.client().exec("x", "s").text == "'still here'"
    for path in files:
        path.unlink()


def test_how_many_a_user_may_have(start_daemon: Callable[..., Daemon], tmp_path: Path) -> None:
    daemon = start_daemon({"daemon": {"saves": str(tmp_path / "saves"), "saves_per_uid": "2"}})
    client = daemon.client()
    for name in "abc":
        client.exec(f"x = {name!r}", name)
        save(client, name)
        client.shutdown(name)
        time.sleep(1.1)
    assert [client.open(name).loaded for name in "abc"] == [None, ["x"], ["x"]]


def test_a_file_that_is_broken_is_none(start_daemon: Callable[..., Daemon], tmp_path: Path) -> None:
    daemon = start_daemon({"daemon": {"saves": str(tmp_path / "saves")}})
    client = daemon.client()
    client.exec("x = 1", "s")
    save(client, "s")
    client.shutdown("s")
    (file,) = [path for path in (tmp_path / "saves").rglob("[!.]*") if path.is_file()]
    whole, when = file.read_bytes(), file.stat().st_mtime
    for broken in (
        b"",
        whole[:11],
        whole[:100],
        b"x" + whole[1:],
        whole[:-1],
        whole[:12] + b"\xc1" * 64 + whole[76:],
    ):
        file.write_bytes(broken)
        os.utime(file, (when, when))
        assert client.open("s").loaded is None
        client.shutdown("s")
    file.write_bytes(whole)
    os.utime(file, (when, when))
    assert client.open("s").loaded == ["x"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has other users' sessions")
def test_a_state_belongs_to_its_user(daemon: Daemon, client: Client, session: str) -> None:
    client.exec("x = 'mine'", session)
    save(client, session)
    client.shutdown(session)
    daemon.share()
    act = f"print(c.exec('dir()', {session!r}).loaded); c.shutdown({session!r})"
    assert daemon.as_user(65534, act) == "None"
    assert client.open(session).loaded == ["x"]


# ---- another router ----

SLOW = "class Slow:\n    def __reduce__(self): import time; time.sleep(1); return (time.sleep, (1,))\n"


def lair_while_router_dies(daemon: Daemon, *arguments: str) -> str:
    """What `lair` says when the router is killed half a second after it has been asked."""
    with daemon.client() as client:
        router = client.stats().pid
    process = subprocess.Popen(
        [str(daemon.binaries / "lair"), *arguments],
        env={**daemon.env, "LAIR_SOCKET": str(daemon.socket), "LAIR_NO_START": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    time.sleep(0.5)
    os.kill(router, signal.SIGKILL)
    said = process.communicate(timeout=30)[0]
    assert process.returncode == 0, said
    return said


def test_saved_and_loaded_while_routers_die(start_daemon: Callable[..., Daemon], tmp_path: Path) -> None:
    daemon = start_daemon({"daemon": {"saves": str(tmp_path / "saves")}})
    assert daemon.lair("exec", "-s", "s", SLOW + "x = 1; slow = Slow()").returncode == 0
    assert "3 names" in lair_while_router_dies(daemon, "save", "s")
    daemon.lair("close", "s")
    assert "3 names" in lair_while_router_dies(daemon, "open", "s")
    assert daemon.lair("exec", "-s", "s", "x").stdout == "1\n"
    assert "3 names" in lair_while_router_dies(daemon, "load", "s")


def test_expiry_while_a_router_dies(start_daemon: Callable[..., Daemon], tmp_path: Path) -> None:
    brief = {"on_expire": "save", "idle_ttl": "300ms"}
    daemon = start_daemon({"daemon": {"saves": str(tmp_path / "saves")}, "profile brief": brief})
    assert daemon.lair("exec", "-p", "brief", "-s", "s", SLOW + "x = 1; slow = Slow()").returncode == 0
    with daemon.client() as client:
        router = client.stats().pid
    time.sleep(1)
    os.kill(router, signal.SIGKILL)
    with daemon.client() as client:
        gone(client, "s")
    assert daemon.lair("exec", "-s", "s", "x").stdout == "1\n"


def test_the_end_of_its_life_while_a_router_dies(start_daemon: Callable[..., Daemon], tmp_path: Path) -> None:
    """The next one finds a time that is long over, and a session that is being saved because of that."""
    hard = {"on_expire": "save", "idle_ttl": "off", "hard_ttl": "3s"}
    daemon = start_daemon({"daemon": {"saves": str(tmp_path / "saves")}, "profile default": hard})
    with daemon.client() as client:
        client.exec("the first session waits for its template, and its life goes on")
        slowly_saved(client, "s", "default")
        os.kill(client.stats().pid, signal.SIGKILL)
    with daemon.client() as client:
        gone(client, "s")
        assert client.exec("x", "s").text == "'saved'"


HOLDS_UP = """
x = 'old'
def wait():
    import time; time.sleep(LONG)
class Bad:
    def __reduce__(self): return (wait, ())
a, bad, z = 1, Bad(), 2
"""


def held_up(client: Client, session: str, long: str) -> None:
    """What is saved of it takes so long to load, in the middle of its names."""
    client.open(session, "hasty")
    client.exec(HOLDS_UP.replace("LONG", long), session)
    save(client, session)
    client.shutdown(session)


def loads_nothing(client: Client, session: str, opened: m.SessionInfo) -> None:
    assert opened.loaded == [] and {"x", "a", "bad", "z"} <= set(reasons(opened.not_loaded))
    found = client.exec("[name for name in ('x', 'wait', 'Bad', 'a', 'bad', 'z') if name in globals()]", session)
    assert found.text == "[]"


def test_a_load_that_takes_too_long_loads_nothing_and_loses_nothing(client: Client, session: str) -> None:
    held_up(client, session, "30")
    for _ in range(2):
        loads_nothing(client, session, client.open(session, "hasty"))
        client.shutdown(session)


def test_a_load_that_is_cancelled_loads_nothing_and_loses_nothing(client: Client, session: str) -> None:
    held_up(client, session, "0.5")
    request = client.send(m.Open(id=client.new_id(), session=session, profile="hasty"))
    wait_until(lambda: client.interrupt(session), "the load runs")
    loads_nothing(client, session, client.finish(request, m.SessionInfo))
    client.shutdown(session)
    assert "z" in (client.open(session, "hasty").loaded or [])


def test_a_reset_before_the_load_loses_nothing(client: Client, session: str) -> None:
    held_up(client, session, "0.1")
    request = client.send(m.Open(id=client.new_id(), session=session, profile="hasty"))
    client.call(m.Reset(id=client.new_id(), session=session), m.Reply)
    try:
        client.finish(request, m.SessionInfo)
    except LairError:
        pass
    client.shutdown(session)
    assert "z" in (client.open(session, "hasty").loaded or [])


def test_what_could_not_be_loaded_is_not_saved_over_by_itself(client: Client, session: str) -> None:
    """But by who asks for it."""
    held_up(client, session, "30")
    client.open(session, "hastier")
    assert client.exec("x = 'new'", session).returncode == 0
    gone(client, session)
    loads_nothing(client, session, client.open(session, "hasty"))
    client.exec("x = 'new'", session)
    save(client, session)
    client.shutdown(session)
    assert client.exec("x", session, profile="hasty").text == "'new'"


def test_what_came_back_in_part_stays_when_it_is_closed(client: Client, session: str) -> None:
    client.exec("def fail(): raise ValueError\nclass B:\n    def __reduce__(self): return (fail, ())", session)
    client.exec("b = B(); x = 1", session)
    save(client, session)
    for _ in range(2):
        client.shutdown(session)
        info = client.open(session)
        assert "x" in (info.loaded or []) and list(reasons(info.not_loaded)) == ["b"]

"""How two states of a session differ: files and variables, of any two checkpoints or of now."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from daemon import Daemon
from lair import Client, LairError, codec
from lair import messages as m

pytestmark = pytest.mark.usefixtures("no_sessions_left")

SETTINGS = {
    "profile default": {"grace": "100ms", "level": "", "checkpoint": "cell", "subprocess": "on"},
    "profile manual": {"spares": "0", "checkpoint": "manual", "level": "", "grace": "100ms"},
    "profile keep": {"spares": "0", "checkpoint": "cell", "files": "keep", "level": ""},
    "profile off": {"spares": "0", "checkpoint": "off", "level": ""},
}


def diff(client: Client, session: str, since: str | None = None, until: str | None = None) -> m.DiffReply:
    return client.call(m.Diff(id=client.new_id(), session=session, since=since, until=until), m.DiffReply)


def variables(reply: m.DiffReply) -> dict[str, str]:
    assert reply.variables_lack is None
    return {it.name: it.change for it in (codec.read(m.VariableDifference, it) for it in reply.variables)}


def files(reply: m.DiffReply) -> dict[str, tuple[Any, ...]]:
    assert reply.files_lack is None
    found = {}
    for it in (codec.read(m.FileDifference, it) for it in reply.files):
        sizes: tuple[Any, ...] = (it.size_before, it.size) if it.change != "mode" else (it.mode_before, it.mode)
        found[it.path.decode()] = (it.change, *sizes, *([it.was.decode()] if it.was else []))
    return found


def test_the_last_cell(client: Client, opened: str) -> None:
    client.exec("import os; a = 1; b = [1, 2]; c = 'gone'; open('one', 'w').write('1'); open('two', 'w')", opened)
    client.exec(
        "a = 2; b.append(3); d = {}; del c\n"
        "open('one', 'a').write('23'); os.rename('two', 'three'); open('new', 'w').write('xy')",
        opened,
    )
    reply = diff(client, opened)
    assert (reply.since, reply.until) == (1, 2)
    assert variables(reply) == {"a": "changed", "b": "changed", "c": "gone", "d": "new"}
    assert files(reply) == {
        "new": ("created", 0, 2),
        "one": ("changed", 1, 3),
        "three": ("renamed", 0, 0, "two"),
    }
    it = next(codec.read(m.VariableDifference, it) for it in reply.variables)
    assert (it.text_before, it.text, it.type) == ("1", "2", "int")


def test_a_table_that_lost_its_rows(client: Client, opened: str) -> None:
    """What differs is seen, though the columns are the same."""
    client.exec("import pandas as pd, numpy as np\nt = pd.DataFrame({'a': [1, 2]}); n = np.ones((2, 3))", opened)
    client.exec("t = t[t.a > 2]; n = n[:1]", opened)
    n, t = (codec.read(m.VariableDifference, it) for it in diff(client, opened).variables)
    assert (t.text_before, t.text) == ("2 x 1, columns 'a'", "0 x 1, columns 'a'")
    assert (n.text_before or "").startswith("2 x 3, ") and n.text.startswith("1 x 3, ")


def test_any_two_states(client: Client, opened: str) -> None:
    for n in range(4):
        client.exec(f"x = {n}; y{n} = 0; open('f{n}', 'w').write('1'); import os; os.chmod('f0', 0o60{n})", opened)
    client.checkpoint(opened, "named")
    assert variables(diff(client, opened, "1", "3")) == {"x": "changed", "y1": "new", "y2": "new"}
    assert files(diff(client, opened, "1", "3")) == {
        "f0": ("mode", 0o600, 0o602),
        "f1": ("created", 0, 1),
        "f2": ("created", 0, 1),
    }
    assert variables(diff(client, opened, "3", "1")) == {"x": "changed", "y1": "gone", "y2": "gone"}
    assert variables(diff(client, opened, "named")) == {} == files(diff(client, opened, "named"))
    client.restore(opened, "2")
    reply = diff(client, opened, "named")
    assert (reply.since, reply.until) == (4, 2)
    assert variables(reply) == {"x": "changed", "y2": "gone", "y3": "gone"}
    assert files(reply)["f3"] == ("deleted", 1, 0)


def test_from_the_beginning(client: Client, opened: str) -> None:
    assert variables(diff(client, opened)) == {}
    client.exec("x = 1; open('f', 'w')", opened)
    reply = diff(client, opened)
    assert (reply.since, variables(reply), files(reply)) == (0, {"x": "new"}, {"f": ("created", 0, 0)})


CHANGES = {
    "list": ("v = [[1, [2, 3]], {'a': (1, 2)}]", "v[1]['a'] = (1, 3)"),
    "array": ("import numpy\nv = numpy.zeros((300, 300))", "v[299, 299] = 1e-300"),
    "strided array": ("import numpy\nv = numpy.zeros((30, 30))[::2].T", "v[3, 3] = 1"),
    "frame": ("import pandas\nv = pandas.DataFrame({'a': [1, 2], 'b': ['x', 'y']})", "v.loc[1, 'b'] = 'z'"),
    "attribute": ("class C:\n    def __init__(self): self.a = [1]\nv = C()", "v.a[0] = 2"),
    "slot": ("class C:\n    __slots__ = ['a']\nv = C(); v.a = 1", "v.a = 2"),
    "function": ("def v(): return 1", "def v(): return 2"),
    "default": ("def v(it=[]): return it", "v().append(1)"),
    "class": ("class v:\n    def f(self): return 1", "v.f = lambda self: 2"),
    "set": ("v = {'a', 'b'}", "v.add('c')"),
    "subclass": ("import collections\nv = collections.defaultdict(list)", "v[1].append(2)"),
    "deque": ("import collections\nv = collections.deque([1])", "v.append(2)"),
    "bytes": ("v = bytearray(10)", "v[9] = 1"),
    "long text": ("v = 'x' * 100_000", "v = v[:-1] + 'y'"),
    "itself": ("v = []; v.append(v)", "v.append(1)"),
    "type": ("v = 1", "v = True"),
    "sign": ("v = 0.0", "v = -0.0"),
    "date": ("import datetime\nv = datetime.date(2020, 1, 1)", "v = datetime.date(2020, 1, 2)"),
}


@pytest.mark.parametrize("kind", CHANGES)
def test_what_changes_is_seen(client: Client, opened: str, kind: str) -> None:
    """And nothing of it is, after a cell that changes something else."""
    made, changed = CHANGES[kind]
    if "numpy" in made or "pandas" in made:
        pytest.importorskip("pandas")
    client.exec(made, opened)
    client.exec("w = 1; [v for _ in range(3)]; None", opened)
    reply = diff(client, opened)
    assert (variables(reply), list(reply.unsure or [])) == ({"w": "new"}, [])
    client.exec(changed, opened)
    reply = diff(client, opened)
    assert variables(reply).get("v") == "changed"


def test_no_code_of_the_session_runs(client: Client, opened: str) -> None:
    code = """
import os
heard, ran = os.pipe()
os.set_blocking(heard, False)
def trap(*_, **__): os.write(ran, b'1')
names = ['repr', 'str', 'hash', 'eq', 'len', 'iter', 'getattr', 'getattribute', 'reduce', 'sizeof', 'dir', 'bool']
kind = type('Trap', (), {f'__{it}__': trap for it in names if it not in ('hash',)} | {'__dict__': property(trap)})
traps = [kind(), {1: kind()}]
class Meta(type):
    def __getattribute__(self, name):
        os.write(ran, name.encode())
        return super().__getattribute__(name)
class Class(metaclass=Meta): pass
classes = [Class, Class()]
"""
    client.exec(code, opened)
    client.exec("try: os.read(heard, 9999)\nexcept BlockingIOError: pass", opened)
    assert variables(diff(client, opened)) == {}
    diff(client, opened, "1")
    assert (
        client.exec("try: said = os.read(heard, 9999)\nexcept BlockingIOError: said = ''\nsaid", opened).text
        == "''"
    )


def test_what_nobody_can_see(client: Client, opened: str) -> None:
    client.exec("f = iter([1, 2]); g = (n for n in range(3)); x = 1", opened)
    client.exec("x = 2; next(g)", opened)
    reply = diff(client, opened)
    assert variables(reply) == {"x": "changed"}
    assert list(reply.unsure) == ["f", "g"]


def test_much_is_cut(client: Client, opened: str) -> None:
    client.exec("x = 1", opened)
    client.exec("for n in range(400): open(f'f{n}', 'w'); globals()[f'v{n}'] = n", opened)
    reply = diff(client, opened)
    assert (len(reply.files), reply.files_more) == (256, 144)
    assert (len(reply.variables), reply.variables_more) == (256, 145)


def test_a_large_value_takes_a_bounded_time(client: Client, opened: str) -> None:
    client.exec("v = [[n] for n in range(1_500_000)]; x = 1", opened)
    client.exec("x = 2", opened)
    reply = diff(client, opened)
    assert variables(reply) == {"x": "changed"} and list(reply.unsure) == ["v"]
    assert client.exec("x", opened).text == "2"


def test_nothing_is_done_by_it(client: Client, opened: str) -> None:
    """Neither is a state added, nor is a thread of the state at work."""
    client.exec("import threading, time, os\nn = 0; stop = False", opened)
    client.exec(
        "def work():\n    while not stop: time.sleep(0.001)\nt = threading.Thread(target=work); t.start()", opened
    )
    client.exec("x = os.getpid()", opened)
    client.call(m.Vars(id=client.new_id(), session=opened), m.VarsReply)
    before = [it.cell for it in client.checkpoints(opened)]
    reply = diff(client, opened)
    assert variables(reply) == {"x": "new"}
    assert [it.cell for it in client.checkpoints(opened)] == before
    assert client.exec("os.getpid() == x, t.is_alive()", opened).text == "(True, True)"
    client.exec("stop = True; t.join()", opened)


def test_without_a_checkpoint_of_now(client: Client, session: str) -> None:
    client.open(session, "manual")
    client.exec("x = 1; open('f', 'w').write('1')", session)
    client.checkpoint(session, "one")
    client.exec("x = 2; open('f', 'w').write('22')", session)
    reply = diff(client, session, "one")
    assert (variables(reply), files(reply)) == ({"x": "changed"}, {"f": ("changed", 1, 2)})
    assert [it.name for it in client.checkpoints(session)] == ["one"]
    assert client.exec("x", session).text == "2"


def test_files_that_are_not_kept(client: Client, session: str) -> None:
    client.open(session, "keep")
    client.exec("x = 1; open('f', 'w')", session)
    reply = diff(client, session)
    assert (variables(reply), list(reply.files)) == ({"x": "new"}, [])
    assert reply.files_lack == "the files of states are not kept here"


def test_refused(client: Client, opened: str, session: str) -> None:
    client.exec("x = 1", opened)
    for since, until in (("none", None), (None, "none"), ("7", "1")):
        with pytest.raises(LairError) as caught:
            diff(client, opened, since, until)
        assert caught.value.code == "bad_request"
    for since, until in ((" ", None), (None, "a b")):
        with pytest.raises(LairError, match="printable"):
            diff(client, opened, since, until)
    with pytest.raises(LairError, match="no session"):
        diff(client, "nobody")
    client.open(f"{session}.off", "off")
    with pytest.raises(LairError, match="keeps no checkpoints"):
        diff(client, f"{session}.off")
    assert client.exec("x", opened).text == "1"


def test_while_a_cell_runs(client: Client, opened: str) -> None:
    id = client.send(m.Exec(id=client.new_id(), session=opened, code="import time; time.sleep(1)"))
    with pytest.raises(LairError) as caught:
        diff(client, opened)
    assert caught.value.code == "busy"
    client.finish(id, m.ExecReply)


def test_a_cell_waits_for_it(client: Client, opened: str) -> None:
    client.exec("x = 1", opened)
    asked = client.send(m.Diff(id=client.new_id(), session=opened))
    run = client.send(m.Exec(id=client.new_id(), session=opened, code="x = 2"))
    compared = client.finish(asked, m.DiffReply)
    assert isinstance(compared, m.DiffReply) and variables(compared) == {"x": "new"}
    assert client.finish(run, m.ExecReply).state == "kept"


def test_many_at_once(daemon: Daemon, client: Client, opened: str) -> None:
    """Of a session and its branch, which have a state together."""
    client.exec("x = 1", opened)
    client.exec("x = 2", opened)
    client.branch(opened, f"{opened}.b")
    client.exec("x = 3", f"{opened}.b")
    found: list[Any] = []

    def ask(session: str) -> None:
        with Client(str(daemon.socket)) as other:
            found.extend(variables(diff(other, session)) for _ in range(5))

    asking = [threading.Thread(target=ask, args=(it,)) for it in (opened, f"{opened}.b") * 2]
    for it in asking:
        it.start()
    for it in asking:
        it.join()
    assert found == [{"x": "changed"}] * 20

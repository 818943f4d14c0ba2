"""Questions about the state of a session: answered between two cells, by the interpreter, whatever is in it."""

from __future__ import annotations

import time
from typing import Any

import pytest

from lair import Client, LairError, codec
from lair import messages as m

SETTINGS = {"profile default": {"checkpoint": "cell", "preload": "numpy? pandas?"}}


def variables(client: Client, session: str, *forget: str) -> dict[str, m.Variable]:
    request = m.Vars(id=client.new_id(), session=session, forget=list(forget) or None)
    reply = client.call(request, m.VarsReply)
    found = [codec.read(m.Variable, item) for item in reply.variables]
    assert len(found) == min(reply.total, 1000)
    return {variable.name: variable for variable in found}


def refused(act: Any, *arguments: Any) -> str:
    with pytest.raises(LairError) as error:
        act(*arguments)
    return error.value.code


def test_vars(client: Client, session: str) -> None:
    client.exec(
        "x = 41\ntext = 'a' * 1000\nitems = [1, 'two', [3, [4, [5]]]]\nimport math\ndef f(a): pass", session
    )
    client.exec("class C: pass\nc = C()\nempty = []\npairs = {'a': 1}\n1 + 1", session)
    found = variables(client, session)
    assert sorted(found) == ["C", "c", "empty", "f", "items", "math", "pairs", "text", "x"]
    assert (found["x"].type, found["x"].text, found["x"].shape) == ("int", "41", None)
    assert found["text"].shape == [1000]
    assert found["text"].size > 1000
    assert len(found["text"].text) <= 100
    assert found["items"].text == "[1, 'two', [3, [4, [...]]]]"
    assert (found["empty"].shape, found["empty"].text) == ([0], "[]")
    assert found["pairs"].text == "{'a': 1}"
    assert (found["math"].type, found["math"].text) == ("module", "<module math>")
    assert found["f"].text == "<function f>"
    assert (found["C"].text, found["c"].type, found["c"].text) == ("<class C>", "C", "<C object>")


def test_the_last_value_survives_checkpoints_and_questions(client: Client, session: str) -> None:
    client.exec("6 * 7", session)
    time.sleep(0.2)
    assert variables(client, session) == {}
    assert client.exec("_", session).text == "42"


LOOK = """
import builtins, linecache, os, sys, warnings
from xml import dom
def without(name, names): return {key: value for key, value in names.items() if key != name}
def look():
    return [without('before', globals()), without('_', vars(builtins)), dict(sys.modules), sys.path[:], os.getcwd(),
            dict(os.environ), [file for file in linecache.cache if file[0] != '<'], warnings.filters[:]]
class C: a = 1
c = C()
before = look()
6 * 7
"""


def test_no_question_changes_anything(client: Client, session: str) -> None:
    client.exec(LOOK, session)
    questions: list[tuple[m.Request, type[Any]]] = []
    for code in (
        "c.",
        "c.a",
        "import json.",
        "from html.",
        "dom.",
        "look(",
        "undefined.x",
        "_",
        "lambda: (",
        "x = 1",
    ):
        asked: dict[str, Any] = {"id": 0, "session": session, "code": code}
        questions += [
            (m.Complete(**asked), m.CompleteReply),
            (m.Inspect(**asked, source=True), m.InspectReply),
            (m.IsComplete(**asked), m.IsCompleteReply),
            (m.Check(**asked), m.CheckReply),
        ]
    questions += [(m.Vars(id=0, session=session), m.VarsReply), (m.History(id=0, session=session), m.HistoryReply)]
    for question, reply in questions:
        question.id = client.new_id()
        client.call(question, reply)
    same = client.exec("[a == b for a, b in zip(before, look())], _", session)
    assert same.text == str(([True] * 8, 42)), same.stderr


def test_vars_of_arrays_and_frames(client: Client, session: str) -> None:
    client.exec(
        "import numpy as np, pandas as pd\n"
        "a = np.zeros((300, 400))\n"
        "view = a[:3]\n"
        "zero = np.array(5)\n"
        "frame = pd.DataFrame({'k': range(5), 'v': 1.5})\n"
        "column = frame.v",
        session,
    )
    found = variables(client, session)
    assert (found["a"].type, found["a"].shape) == ("ndarray", [300, 400])
    assert found["a"].text == "f64 [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, ...]"
    assert found["a"].size >= 300 * 400 * 8
    assert (found["zero"].shape, found["zero"].text) == ([], "i64 [5]")
    assert (found["frame"].type, found["frame"].shape) == ("DataFrame", [5, 2])
    assert found["frame"].text == "columns 'k', 'v'"
    assert (found["column"].shape, found["column"].text) == ([5], "Series of float64")
    assert found["column"].size >= 40


def test_forget(client: Client, session: str) -> None:
    client.exec("a, b, c = 1, 2, 3", session)
    assert sorted(variables(client, session, "a", "c")) == ["b"]
    assert "NameError" in client.exec("a", session).stderr.decode()
    assert client.exec("b", session).text == "2"
    assert refused(variables, client, session, "b", "nothing") == "bad_request"
    assert sorted(variables(client, session)) == ["b"]


def test_what_is_forgotten_stays_so_after_a_crash(client: Client, session: str) -> None:
    client.exec("a, b = 1, 2", session)
    variables(client, session, "a")
    reply = client.exec("import os; os._exit(3)", session)
    assert reply.state == "rolled_back"
    assert sorted(variables(client, session)) == ["b"]
    assert client.undo(session).cell == 1
    assert sorted(variables(client, session)) == ["a", "b"]


def test_reset_keeps(client: Client, session: str) -> None:
    client.exec("import os\nclass C: pass\nc = C()\nx = 1\nos.mkdir('d'); os.chdir('d')\n1", session)
    client.exec("os.environ['HOME'] = '/nonexistent'", session)
    request = m.Reset(id=client.new_id(), session=session, keep=["c"])
    client.call(request, m.Reply)
    assert sorted(variables(client, session)) == ["c"]
    assert client.exec("type(c).__name__", session).text == "'C'"
    assert client.exec("import os; os.path.basename(os.getcwd())", session).text != "'d'"
    missing = m.Reset(id=client.new_id(), session=session, keep=["nothing"])
    assert refused(client.call, missing, m.Reply) == "bad_request"


def test_vars_say_where_the_session_is(client: Client, session: str) -> None:
    def where() -> bytes | None:
        return client.call(m.Vars(id=client.new_id(), session=session), m.VarsReply).directory

    client.exec("import os; os.mkdir('sub'); os.chdir('sub')", session)
    assert (where() or b"").endswith(b"/sub")
    client.exec("os.rmdir(os.getcwd())", session)
    assert where() is None


def test_info_tells_the_time_used(client: Client, session: str) -> None:
    client.exec("import time\nend = time.process_time() + 0.3\nwhile time.process_time() < end: pass", session)
    assert 0.25 < (client.info(session).cpu or 0) < 30


def test_busy(client: Client, session: str) -> None:
    cell = client.start("import time; print('up'); time.sleep(30)", session, stream=True)
    client.receive(cell, m.ExecReply)
    started = time.monotonic()
    assert refused(variables, client, session) == "busy"
    assert time.monotonic() - started < 5
    client.interrupt(session)
    client.finish(cell, m.ExecReply)
    assert "time" in variables(client, session)


def test_a_cell_waits_for_an_answer(client: Client, session: str) -> None:
    """Sent together: each is answered, in order, whatever comes in between."""
    client.open(session)
    first = client.send(m.Vars(id=client.new_id(), session=session))
    cell = client.start("x = 1", session)
    assert client.finish(first, m.VarsReply).total == 0
    assert client.finish(cell, m.ExecReply).returncode == 0


HANGS = """
class Hangs(type):
    def __getattribute__(cls, name):
        while True: pass
    def __instancecheck__(cls, other):
        while True: pass
class H(metaclass=Hangs):
    def __repr__(self):
        while True: pass
    __len__ = __repr__
    __sizeof__ = __repr__
    __class__ = property(__repr__)
    def __getattr__(self, name):
        while True: pass
    __getattribute__ = __dir__ = __getattr__
    def __hash__(self): return 1
    def __eq__(self, other):
        while True: pass
h = H()
"""


def test_nothing_hostile_runs(client: Client, session: str) -> None:
    client.exec(HANGS, session)
    client.exec(
        "class L(list):\n    def __len__(self): raise SystemExit\n    __repr__ = __iter__ = __len__", session
    )
    client.exec(
        "items = [h, {1: h}, L([1, 2])]\nitems.append(items)\nsub = L([1, 2])\nhuge = 10 ** 100000", session
    )
    client.exec(
        "globals()['\\ud800'] = '\\udfff'\nglobals()[7] = 1\nclass S(str): pass\nglobals()[S('s')] = 1", session
    )
    client.exec(
        "import types\nclass M(types.ModuleType):\n    __dict__ = property(lambda s: 1/0)\nmod = M('x')", session
    )
    found = variables(client, session)
    assert found["h"].text == "<H object>"
    assert (
        found["items"].text
        == "[<H object>, {1: <H object>}, <L object>, [<H object>, {1: <H object>}, <L object>, [<H object>, ..."
    )
    assert (found["sub"].shape, found["sub"].text) == ([2], "<L object>")
    assert found["huge"].text.startswith("<int of")
    assert found["\\ud800"].text == "'\\udfff'"
    assert client.exec("sub[0]", session).text == "1"


def test_an_answer_that_does_not_fit_into_a_message(client: Client, session: str) -> None:
    client.exec("globals()['x' * 20_000_000] = 1", session)
    assert refused(variables, client, session) == "limit"
    reply = client.exec("del globals()['x' * 20_000_000]", session)
    assert (reply.returncode, reply.state, reply.cause) == (0, "kept", None)
    assert variables(client, session) == {}


HANGING_KEY = """
class Key(str):
    def __hash__(self): return hash('wanted')
    def __eq__(self, other):
        {}
x = 1
globals()[Key('key')] = 2
"""


def test_a_question_that_hangs_is_interrupted(client: Client, session: str) -> None:
    client.exec(HANGING_KEY.format("while True: pass"), session)
    assert refused(variables, client, session, "wanted") == "limit"
    assert "x" in variables(client, session)
    reply = client.exec("x", session)
    assert (reply.text, reply.state) == ("1", "kept")


def test_a_question_that_hangs_for_good_costs_no_state(client: Client, session: str) -> None:
    stubborn = """while True:
            try:
                for i in iter(int, 1): self.strip()
            except BaseException: pass"""
    client.exec(HANGING_KEY.format(stubborn), session)
    assert refused(variables, client, session, "wanted") == "limit"
    reply = client.exec("x", session)
    assert (reply.text, reply.state, reply.restored, reply.cause) == ("1", "rolled_back", 1, "timeout")


def test_an_interpreter_that_ends_while_asked(client: Client, session: str) -> None:
    client.exec(HANGING_KEY.format("import os; os._exit(1)"), session)
    assert refused(variables, client, session, "wanted") == "gone"
    assert client.exec("x", session).text == "1"


def test_session_without_such_an_id(client: Client, session: str) -> None:
    assert refused(variables, client, session) == "no_session"


def history(client: Client, session: str, n: int = 0) -> list[m.HistoryRecord]:
    reply = client.call(m.History(id=client.new_id(), session=session, n=n), m.HistoryReply)
    return [codec.read(m.HistoryRecord, item) for item in reply.cells]


def test_history(client: Client, session: str) -> None:
    client.exec("x = 1", session)
    client.exec("x / 0", session)
    client.exec("x = 2", session)
    client.undo(session)
    client.exec("import os; os._exit(9)", session)
    client.exec("x", session)
    cells = history(client, session)
    assert [cell.code for cell in cells] == ["x = 1", "x / 0", "x = 2", "import os; os._exit(9)", "x"]
    assert [cell.cell for cell in cells] == [1, 2, 3, 4, 5]
    assert [cell.returncode for cell in cells] == [0, 1, 0, 9, 0]
    assert [cell.cause for cell in cells] == [None, "error", None, "exit", None]
    assert [cell.undone for cell in cells] == [False, False, True, True, False]
    assert all(cell.duration_ms > 0 for cell in cells)
    assert history(client, session, 2) == cells[3:]
    client.restore(session, "3")
    assert [cell.undone for cell in history(client, session)] == [False, False, False, True, True]
    client.reset(session)
    assert all(cell.undone for cell in history(client, session))


def test_history_of_a_branch(client: Client, session: str) -> None:
    client.exec("x = 1", session)
    client.exec("x = 2", session)
    branch = f"{session}:b"
    client.branch(session, branch, checkpoint="1")
    client.exec("x = 3", branch)
    assert [cell.code for cell in history(client, branch)] == ["x = 1", "x = 3"]
    assert [cell.code for cell in history(client, session)] == ["x = 1", "x = 2"]
    client.shutdown(branch)


def test_history_is_bounded(client: Client, session: str) -> None:
    long = "#" + "ü" * 40_000
    for _ in range(20):
        client.exec(long, session)
    cells = history(client, session)
    assert 10 < len(cells) < 20
    assert all(cell.size == 80_001 and cell.code == "#" + "ü" * 32_767 for cell in cells)
    assert cells[-1].cell == 20


def test_history_does_not_wait(client: Client, session: str) -> None:
    client.exec("x = 1", session)
    cell = client.start("import time; time.sleep(30)", session)
    assert [past.code for past in history(client, session)] == ["x = 1"]
    client.cancel(cell)
    client.finish(cell, m.ExecReply)

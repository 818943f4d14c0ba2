"""lair.run and lair.Session: what a program that waits for its answers sees."""

from __future__ import annotations

import asyncio
import base64
import gc
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

import lair
import lair.aio
from daemon import USAGE, Daemon, wait_until
from lair import Alive, CellFailed, Client, Connection, Display, LairError, Output, Result, Session, steps

SETTINGS = {
    "profile default": {"checkpoint": "cell"},
    "profile tight": {"cell_timeout": "5s", "cell_timeout_max": "5s"},
}


def ids(connection: Connection) -> list[str]:
    return [info.session for info in lair.sessions(connection)]


# ---- results ----


def test_one_cell_in_a_session_of_its_own(connection: Connection) -> None:
    result = lair.run("print('hi'); 1 + 1", connection=connection)
    assert (result.text, result.stdout, result.stderr, result.ok) == ("2", "hi\n", "", True)
    assert (result.session, result.state, result.cause, result.error) == (None, "ended", None, None)
    assert result.raise_for_error() is result
    assert 0 < result.duration < 10
    assert ids(connection) == []


def test_an_exception_is_in_the_result(s: Session) -> None:
    result = s.run("1 / 0")
    assert not result.ok
    assert result.error is not None
    assert (result.error.name, result.cause, result.returncode) == ("ZeroDivisionError", "error", 1)
    with pytest.raises(CellFailed, match="ZeroDivisionError: division by zero") as failed:
        result.raise_for_error()
    assert failed.value.result is result


def test_what_became_of_the_session_is_in_the_summary(s: Session) -> None:
    s.run("x = 1")
    result = s.run("import os; os._exit(7)")
    assert (result.returncode, result.state, result.restored, result.cause) == (7, "rolled_back", 1, "exit")
    assert "after cell 1" in result.summary()
    result = s.run("while True: pass", timeout=0.3)
    assert (result.limit, result.summary()) == (0.3, "the code was stopped after its 0.3 s; timeout= gives it more")


def test_what_was_blocked_is_told_once(s: Session) -> None:
    transcript = s.run("open('/etc/hosts', 'w')").transcript()
    assert transcript.count("(write-outside-workspace)") == 1
    caught = s.run("try: open('/etc/hosts', 'w')\nexcept OSError: pass")
    assert caught.stderr == "" and caught.transcript() == "blocked: /etc/hosts (write-outside-workspace)\n"
    interrupted = s.stream("while True: pass", timeout=60)
    while not s.interrupt():
        next(interrupted, None)
    result = list(interrupted)[-1]
    assert isinstance(result, Result) and result.summary() == "the code was interrupted"


def test_what_the_cage_refused(s: Session) -> None:
    (act,) = s.run("open('/etc/hosts', 'w')").blocked
    assert (act.event, act.target) == ("open", "/etc/hosts")


def test_notebooks_get_a_bundle(s: Session) -> None:
    assert s.run("6 * 7")._repr_mimebundle_()["text/plain"] == "42"
    assert s.run("print('only this')")._repr_mimebundle_()["text/plain"] == "only this\n"


def test_a_profile_of_ones_choice(connection: Connection) -> None:
    with Session(profile="tight", connection=connection) as s:
        assert s.info().profile == "tight"
    with pytest.raises(LairError) as refused:
        lair.run("1", profile="tight", timeout=60, connection=connection)
    assert refused.value.code == "limit"


def test_an_option_there_is_not(s: Session) -> None:
    with pytest.raises(TypeError, match="tiemout"):
        s.run("1", tiemout=3)  # type: ignore[call-arg]


# ---- while it runs ----


def test_output_by_callback(s: Session) -> None:
    seen: list[tuple[str, str]] = []
    result = s.run(
        "import sys; print('out', flush=True); print('err', file=sys.stderr); 5",
        on_output=lambda text, stream: seen.append((stream, text)),
    )
    assert sorted(seen) == [("stderr", "err\n"), ("stdout", "out\n")]
    assert (result.stdout, result.stderr, result.text) == ("out\n", "err\n", "5")


def test_output_by_iterator_comes_while_it_runs(s: Session) -> None:
    s.run("import time")
    times, events = [], []
    for event in s.stream("for i in range(3): print(i, flush=True); time.sleep(0.3)"):
        times.append(time.monotonic())
        events.append(event)
    assert isinstance(events[-1], Result)
    assert events[-1].stdout == "0\n1\n2\n"
    assert times[-1] - times[0] > 0.5


def test_characters_in_pieces_come_whole(s: Session) -> None:
    code = """
import os, time
for byte in 'ü🐍'.encode(): os.write(1, bytes([byte])); time.sleep(0.02)
os.write(1, '🐍'.encode()[:2])
"""
    events = list(s.stream(code))
    assert "".join(event.text for event in events if isinstance(event, Output)) == "ü🐍�"
    assert isinstance(events[-1], Result)
    assert events[-1].stdout == "ü🐍�"


def test_input_is_asked_for(s: Session) -> None:
    asked: list[tuple[str, bool]] = []

    def answer(prompt: str, password: bool) -> str | None:
        asked.append((prompt, password))
        return "secret" if password else "bob"

    result = s.run("import getpass\n(input('name? '), getpass.getpass('word? '))", input=answer)
    assert result.text == "('bob', 'secret')"
    assert asked == [("name? ", False), ("word? ", True)]


def test_input_ends(s: Session) -> None:
    error = s.run("input()", input=lambda prompt, password: None).error
    assert error is not None
    assert error.name == "EOFError"
    error = s.run("input()").error
    assert error is not None
    assert error.name == "EOFError"


@pytest.mark.parametrize("line", [42, "\ud800"])
def test_an_answer_that_cannot_be_sent_ends_the_waiting(s: Session, line: str) -> None:
    with pytest.raises(LairError) as refused:
        s.run("input()", input=lambda prompt, password: line, deadline=20)
    assert refused.value.code == "bad_request"
    assert s.run("1").text == "1"


def test_interrupt_while_looking_at_the_output(s: Session) -> None:
    for event in s.stream("while True: print('x' * 1000)"):
        if isinstance(event, Result):
            assert event.cause == "interrupt"
            break
        s.interrupt()


def idle(s: Session) -> bool:
    return s.info().state == "idle"


def test_who_leaves_the_loop_interrupts(s: Session) -> None:
    for event in s.stream("import time\nfor i in range(1000): print(i, flush=True); time.sleep(0.05)"):
        assert isinstance(event, Output)
        break
    wait_until(lambda: idle(s), "the cell was interrupted")


def test_a_callback_that_raises_interrupts(s: Session) -> None:
    def fail(text: str, stream: str) -> None:
        raise KeyError(text)

    with pytest.raises(KeyError, match="one"):
        s.run("print('one', flush=True)\nwhile True: pass", on_output=fail)
    wait_until(lambda: idle(s), "the cell was interrupted")
    with pytest.raises(ZeroDivisionError):
        s.run("input()\nwhile True: pass", input=lambda prompt, password: str(1 / 0))
    wait_until(lambda: idle(s), "the cell was interrupted")


def test_a_timeout_is_a_result_and_a_deadline_an_error(s: Session) -> None:
    assert s.run("while True: pass", timeout=0.3).cause == "timeout"
    started = time.monotonic()
    with pytest.raises(lair.DeadlineError) as late:
        s.run("while True: pass", deadline=0.3)
    assert time.monotonic() - started < 5
    assert isinstance(late.value, TimeoutError)
    wait_until(lambda: idle(s), "the cell was interrupted")


def test_a_cell_that_waits_in_the_queue_leaves_it_at_its_deadline(s: Session, connection: Connection) -> None:
    first = threading.Thread(target=lambda: s.run("import time; time.sleep(1.5)"))
    first.start()
    wait_until(lambda: s.id in ids(connection) and not idle(s), "the first runs")
    with pytest.raises(lair.DeadlineError):
        s.run("second = True", deadline=0.2)
    first.join()
    assert s.run("'second' in globals()").text == "False"


def test_saving_waits_for_the_cell_before_it(s: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "PATIENCE", 0.2)
    s.detach("import time; x = 1; time.sleep(1)")
    assert "x" in s.save().names


def test_a_deadline_passes_however_much_there_is_to_read(s: Session) -> None:
    code = "import time\nfor i in range(1000): print(i, flush=True); time.sleep(0.001)"
    with pytest.raises(lair.DeadlineError):
        s.run(code, deadline=0.3, on_output=lambda text, stream: time.sleep(0.01))
    assert s.run("1").text == "1"


# ---- what it shows and leaves ----

PICTURE = "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()\n'text'"


def test_a_table_in_several_forms(s: Session) -> None:
    pytest.importorskip("pandas")
    result = s.run("import pandas as pd\npd.DataFrame({'a': [1, 2]})")
    assert "<table" in str(result.data["text/html"])
    assert result._repr_mimebundle_()["text/html"] == result.data["text/html"]
    assert result._repr_mimebundle_()["text/plain"] == result.text
    assert result._repr_mimebundle_()["application/json"]["data"] == [[1], [2]]


def test_a_notebook_gets_json_as_what_it_says(s: Session) -> None:
    shown = s.run(
        "display({'text/plain': 'x', 'application/vnd.x.v1+json': {'a': [1]}, 'a/b.json': '2'}, raw=True)"
    )
    (display,) = shown.displays
    assert display._repr_mimebundle_() == {
        "text/plain": "x",
        "application/vnd.x.v1+json": {"a": [1]},
        "a/b.json": 2,
    }
    # What a session claims to be JSON need not be.
    assert Display({"text/plain": "x", "application/json": "{"})._repr_mimebundle_() == {"text/plain": "x"}


def test_displays_are_the_same_streamed_or_not(s: Session) -> None:
    code = """
a = display({'text/plain': 'first'}, raw=True, display_id='a')
print('between')
display({'text/plain': 'second'}, raw=True)
update_display({'text/plain': 'changed'}, raw=True, display_id='a')
"""
    seen: list[Display] = []
    quiet, streamed = s.run(code), s.run(code, on_display=seen.append)
    assert quiet.ok, quiet.stderr
    assert [it.data["text/plain"] for it in quiet.displays] == ["changed", "second"]
    assert [it.data for it in streamed.displays] == [it.data for it in quiet.displays]
    assert [(it.data["text/plain"], it.update) for it in seen] == [
        ("first", False),
        ("second", False),
        ("changed", True),
    ]
    cleared = "display('a'); clear_output(); display('b')"
    assert len(s.run(cleared).displays) == len(s.run(cleared, on_display=seen.append).displays) == 1


def test_a_figure(s: Session) -> None:
    pytest.importorskip("matplotlib")
    result = s.run(PICTURE)
    ((kind, content),) = result.images
    assert (kind, content[:4], result.text) == ("image/png", b"\x89PNG", "'text'")
    (shown,) = result.displays
    assert base64.b64decode(shown._repr_mimebundle_()["image/png"]) == content
    ((kind, content),) = s.run(PICTURE, figure="svg").images
    assert (kind, b"<svg" in content) == ("image/svg+xml", True)


def test_artifacts(s: Session) -> None:
    (artifact,) = s.run("import os; os.makedirs('d'); open('d/a.csv', 'w').write('1,2')").artifacts
    assert (artifact.path, artifact.size, artifact.type, artifact.change) == ("d/a.csv", 3, "text/csv", "created")
    (artifact,) = s.run("open('d/a.csv', 'a').write('3')").artifacts
    assert (artifact.size, artifact.change) == (4, "modified")
    assert s.get(artifact.path) == b"1,23"
    assert s.run("1").artifacts == []


def test_signs_of_life(s: Session) -> None:
    seen: list[Alive] = []
    s.run("import time; time.sleep(2.5)", on_alive=seen.append)
    assert len(seen) >= 1
    assert 0.5 < seen[0].elapsed < 2.5
    assert seen[0].memory > 0


def test_where_and_with_what_a_cell_works(s: Session) -> None:
    s.make_directory("sub")
    code = "import os; (os.path.basename(os.getcwd()), os.environ.get('NAME'))"
    assert s.run(code, directory="sub", env={"NAME": "a value"}).text == "('sub', 'a value')"
    assert "sub" not in str(s.run(code).text)
    assert "a value" not in str(s.run(code).text)


def test_an_error_says_where(s: Session) -> None:
    s.run("def half(n):\n    return n / 0")
    error = s.run("lenght = 4\nhalf(lenght)", values=True).error
    assert error is not None
    assert [frame["line"] for frame in error.frames] == [2, 2]
    error = s.run("f(").error
    assert error is not None
    assert (error.name, error.line) == ("SyntaxError", 1)


# ---- questions ----


def test_variables(s: Session) -> None:
    s.run("x, name, table = 1, 'text', [0] * 9; secret = 2")
    found = {it.name: it for it in s.vars()}
    assert set(found) == {"x", "name", "table", "secret"}
    assert (found["x"].type, found["x"].text, found["table"].shape) == ("int", "1", [9])
    assert "secret" not in [it.name for it in s.vars(forget=["secret"])]


def test_completion_and_inspection(s: Session) -> None:
    s.run("def double(number):\n  'Twice as much.'\n  return 2 * number")
    completion = s.complete("1 + doub")
    assert (completion.matches, completion.start, completion.end) == (["double"], 4, 8)
    assert s.complete("doub + 1", 4).matches == ["double"]
    told = s.inspect("double", source=True)
    assert (told.found, told.signature, told.docstring) == (True, "(number)", "Twice as much.")
    assert not s.inspect("nothing").found


def test_checks(s: Session, connection: Connection) -> None:
    assert s.check("x = 1").valid
    for wrong in (s.check("x = 1\nx = = 2"), lair.check("x = 1\nx = = 2", connection=connection)):
        assert (wrong.valid, wrong.line, wrong.context) == (False, 2, "x = = 2")
    assert [s.is_complete(code).status for code in ("1", "if x:", "1 +* 2")] == [
        "complete",
        "incomplete",
        "invalid",
    ]


def test_history(s: Session) -> None:
    for code in ("a = 1", "b = 2", "1 / 0"):
        s.run(code)
    s.undo()
    cells = s.history()
    assert [(it.cell, it.code, it.returncode) for it in cells] == [
        (1, "a = 1", 0),
        (2, "b = 2", 0),
        (3, "1 / 0", 1),
    ]
    assert [it.cell for it in s.history(1)] == [3]


def test_reset_keeps_what_it_is_told(s: Session) -> None:
    s.run("x, y = 1, 2")
    s.reset(keep=["x"])
    assert [it.name for it in s.vars()] == ["x"]


# ---- going back ----


def test_diff(s: Session) -> None:
    s.run("x = 1; y = 'a'; open('f', 'w').write('1')")
    s.run("x = 2; del y; open('f', 'a').write('2'); open('g', 'w')")
    it = s.diff()
    assert it and (it.since, it.until) == (1, 2)
    assert [(f.path, f.change, f.size_before, f.size, f.mode) for f in it.files] == [
        ("f", "changed", 1, 2, None),
        ("g", "created", 0, 0, None),
    ]
    assert [(v.name, v.change, v.text_before, v.text) for v in it.variables] == [
        ("x", "changed", "1", "2"),
        ("y", "gone", None, "'a'"),
    ]
    assert not s.diff(2)
    assert [v.change for v in s.diff(2, 1).variables] == ["changed", "new"]


def test_a_state_that_is_dropped(s: Session) -> None:
    s.run("x = 1")
    s.checkpoint("one")
    assert "one" in [it.name for it in s.checkpoints()]
    s.drop("one")
    with pytest.raises(LairError, match="bad_request"):
        s.restore("one")


@pytest.mark.parametrize("n", [0, -1])
def test_undo_of_nothing(s: Session, client: Client, n: int) -> None:
    """It must not undo anything either."""
    s.run("x = 1")
    for undo in (s.undo, lambda n: client.undo(s.id, n)):
        with pytest.raises(ValueError, match="how many states to go back: 1 or more"):
            undo(n)
    assert s.run("x").text == "1"


def test_branches_go_their_own_ways(s: Session, connection: Connection) -> None:
    s.run("x = 1")
    s.run("x = 2")
    with s.branch() as now, s.branch(checkpoint=1) as then:
        now.run("x += 10")
        then.run("x += 20")
        assert [it.run("x").text for it in (s, now, then)] == ["2", "12", "21"]
        assert len(ids(connection)) == 3
    assert ids(connection) == [s.id]


def test_a_saved_state_comes_back(connection: Connection) -> None:
    with Session("saved", connection=connection) as s:
        s.run("x, gone = [1, 2], (i for i in range(3))")
        saved = s.save()
        assert (saved.names, list(saved.missing)) == (["x"], ["gone"])
        s.run("x = 0")
        assert s.load().names == ["x"]
        assert s.run("x").text == "[1, 2]"
        s.save()
        s.shutdown()
    s = Session("saved", connection=connection, keep=False)
    result = s.run("x")
    assert (result.text, result.loaded and result.loaded.names) == ("[1, 2]", ["x"])
    assert s.run("x").loaded is None
    s.close()


# ---- files ----


def test_files_go_in_and_out(s: Session) -> None:
    s.open()
    big = bytes(range(256)) * (12 << 10)
    s.put("data/big.bin", big)
    s.put(b"data/\xff", "text", mode=0o600)
    s.make_directory("empty")
    assert s.run("len(open('data/big.bin', 'rb').read())").text == str(len(big))
    assert s.get("data/big.bin") == big
    listed = {file.name: file for file in s.files("data")}
    assert listed["big.bin"].size == len(big)
    assert listed["\udcff"].mode & 0o777 == 0o600
    assert {file.name: file.kind for file in s.files()} == {"data": "directory", "empty": "directory"}
    with pytest.raises(LairError) as missing:
        s.get("nothing")
    assert missing.value.code == "no_file"


# ---- how long sessions live ----


def test_one_without_a_name_ends_with_its_block(connection: Connection) -> None:
    with Session(connection=connection) as s:
        assert ids(connection) == [s.id]
        s.run("x = 1")
    assert ids(connection) == []


def test_one_with_a_name_stays(connection: Connection) -> None:
    with Session("stays", connection=connection) as s:
        s.run("x = 1")
    with Session("stays", connection=connection, keep=False) as s:
        assert s.run("x").text == "1"
    assert ids(connection) == []


def test_one_that_is_forgotten_ends(connection: Connection) -> None:
    s = Session(connection=connection)
    s.run("1")
    del s
    wait_until(lambda: ids(connection) == [], "it has ended")


def test_one_that_nobody_holds_lives_as_long_as_its_stream(s: Session, connection: Connection) -> None:
    s.run("x = 41")
    events = s.branch().stream("x + 1")
    gc.collect()
    *_, result = events
    assert isinstance(result, Result)
    assert result.text == "42"
    del events
    wait_until(lambda: ids(connection) == [s.id], "the branch ends")


def test_one_that_has_ended_by_itself_can_be_closed(connection: Connection) -> None:
    with Session(connection=connection) as s:
        s.shutdown()


def test_the_connection_takes_its_sessions_along(daemon: Daemon, connection: Connection) -> None:
    with Connection(str(daemon.socket), start=False) as other:
        mine, named = Session(connection=other), Session("of-many", connection=other)
        mine.run("1")
        named.run("1")
    assert ids(connection) == ["of-many"]
    with pytest.raises(LairError) as closed:
        named.run("1")
    assert closed.value.code == "closed"
    Session("of-many", connection=connection).shutdown()


# ---- threads ----


def test_many_threads_share_a_connection(connection: Connection) -> None:
    wrong: list[str] = []

    def work(n: int) -> None:
        with Session(connection=connection) as s:
            s.run(f"x = {n}")
            for i in range(10):
                if s.run(f"x + {i}").text != str(n + i):
                    wrong.append(f"{n} + {i}")

    threads = [threading.Thread(target=work, args=(100 * n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_one_session_in_many_threads_runs_one_cell_after_the_other(s: Session) -> None:
    s.run("n = 0")
    threads = [threading.Thread(target=s.run, args=("n += 1",)) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert s.run("n").text == "20"


def test_an_interrupt_that_kills(s: Session) -> None:
    s.run("x = 1")
    events = s.stream("print('on', flush=True); x = 2; sum(range(10**12))")
    next(events)
    assert s.interrupt() and s.interrupt(kill=True)
    result = list(events)[-1]
    assert isinstance(result, Result)
    assert (result.cause, result.state, result.restored, s.run("x").text) == ("interrupt", "rolled_back", 1, "1")


@pytest.mark.parametrize("wrong", [0, 0.0, -1, "5", "", True, float("nan"), float("inf"), []])
def test_a_timeout_that_is_none(connection: lair.Connection, daemon: Daemon, wrong: Any) -> None:
    """The command line refuses these before it asks anybody, and so does each way to run a cell."""
    session = lair.Session(connection=connection)
    ways: list[Callable[[], object]] = [
        lambda: session.run("1", timeout=wrong),
        lambda: session.run("1", timeout=wrong, deadline=5),
        lambda: list(session.stream("1", timeout=wrong)),
        lambda: session.detach("1", timeout=wrong),
        lambda: lair.run("1", timeout=wrong, connection=connection),
        lambda: daemon.client().exec("1", timeout=wrong),
        lambda: asyncio.run(lair.aio.run("1", connection=connection, timeout=wrong)),
    ]
    for way in ways:
        with pytest.raises(lair.LairError) as error:
            way()
        assert error.value.code == "bad_request"
        assert error.value.message == f"timeout: expected seconds, more than 0; got {wrong!r}"
    assert daemon.lair("exec", "-t", "0", "1").returncode == USAGE


def test_a_file_before_the_first_cell(connection: Connection) -> None:
    """It opens the session, as a cell does."""
    it = Session(connection=connection)
    it.put("data.txt", "1,2,3")
    assert it.run("open('data.txt').read()").text == "'1,2,3'"
    it.close()
    made = Session(connection=connection)
    made.make_directory("d")
    assert [file.name for file in made.files()] == ["d"]
    made.close()


def test_no_file_makes_a_lost_session_anew(connection: Connection) -> None:
    it = Session(connection=connection)
    it.run("x = 1")
    other = Session(it.id, connection=connection)
    other.close()
    with pytest.raises(LairError) as caught:
        it.put("data.txt", "1")
    assert caught.value.code == "gone"

"""What cells show, on its way through the router: in order, counted, kept within bounds, and never believed."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from daemon import Daemon
from lair import Client, LairError
from lair import messages as m

SETTINGS = {
    "profile default": {"grace": "200ms"},
    "profile keeping": {"checkpoint": "cell", "grace": "200ms"},
}


def texts(displays: list[dict[str, Any]] | None) -> list[str]:
    return [display["data"]["text/plain"] for display in displays or []]


def follow(client: Client, request: int) -> tuple[list[Any], m.ExecReply]:
    """All that is said of a cell, in order."""
    said: list[Any] = []
    while not isinstance(message := client.receive(request, m.ExecReply), m.ExecReply):
        said.append(message)
    return said, message


TRIES = """
import subprocess
try: subprocess.run({!r})
except PermissionError as e: print(e)
"""


def test_a_figure_of_a_session_without_matplotlib(client: Client, session: str) -> None:
    """What matplotlib and others try for themselves is no refusal of the cell."""
    reply = client.exec("import matplotlib.pyplot as plt; plt.plot([1, 2]); plt.show()", session, timeout=60)
    assert reply.displays and not reply.blocked and not reply.stderr, reply
    reply = client.exec(TRIES.format(["fc-list", "--help"]), session)
    assert b"no programs here" in reply.stdout and not reply.blocked
    reply = client.exec(TRIES.format(["fc-list"]), session)
    assert reply.blocked and reply.blocked[0]["target"] == "fc-list"


def test_in_the_reply(client: Client, session: str) -> None:
    reply = client.exec("display(1)\nprint('out')\ndisplay({'text/html': '<b>'}, raw=True)\n'last'", session)
    assert reply.displays == [{"data": {"text/plain": "1"}}, {"at": 1, "data": {"text/html": "<b>"}}]
    assert (reply.stdout, reply.text, reply.data, reply.displays_dropped) == (b"out\n", "'last'", None, 0)
    assert client.exec("1", session).displays is None


def test_streamed_in_order(client: Client, session: str) -> None:
    code = "for i in range(3):\n    print(i)\n    display(i)"
    said, reply = follow(client, client.start(code, session, stream=True))
    seen = [(e.TYPE, e.data if isinstance(e, m.StdoutEvent) else e.data["text/plain"]) for e in said]
    assert seen == [
        ("stdout", b"0\n"),
        ("display", "0"),
        ("stdout", b"1\n"),
        ("display", "1"),
        ("stdout", b"2\n"),
        ("display", "2"),
    ]
    assert [e.at for e in said if isinstance(e, m.DisplayEvent)] == [0, 1, 2]
    assert reply.displays is None


def test_they_come_while_the_cell_runs(client: Client, session: str) -> None:
    client.exec("import time", session)
    started = time.monotonic()
    cell = client.start("display(1); time.sleep(1); display(2)", session, stream=True)
    assert isinstance(client.receive(cell, m.ExecReply), m.DisplayEvent)
    assert time.monotonic() - started < 0.8
    client.finish(cell, m.ExecReply)


def test_an_update_is_where_the_first_was(client: Client, session: str) -> None:
    reply = client.exec(
        "h = display('a', display_id='h')\ndisplay('b')\nfor i in range(5000): h.update(i)\ndisplay('c')", session
    )
    assert texts(reply.displays) == ["4999", "'b'", "'c'"] and reply.displays_dropped == 0
    assert [d.get("update", False) for d in reply.displays] == [True, False, False]
    reply = client.exec("h.update('later')", session)
    assert [(d["display_id"], d["update"]) for d in reply.displays] == [("h", True)]


def test_clear(client: Client, session: str) -> None:
    reply = client.exec("display(1); display(2); clear_output(); display(3)", session)
    assert texts(reply.displays) == ["3"]
    assert client.exec("display(1); clear_output()", session).displays is None
    reply = client.exec("display(1); clear_output(wait=True); display(2)", session)
    assert texts(reply.displays) == ["2"]


@pytest.mark.parametrize("how", ["os._exit(3)", "os.kill(os.getpid(), 9)", "while True: pass"])
def test_a_cell_that_dies_has_shown_what_it_has_shown(client: Client, session: str, how: str) -> None:
    code = f"import os, signal\nsignal.signal(2, signal.SIG_IGN)\ndisplay('kept')\n{how}"
    reply = client.exec(code, session, timeout=0.5)
    assert reply.state == "reset" and texts(reply.displays) == ["'kept'"]


def test_what_is_kept_is_bounded(client: Client, session: str) -> None:
    reply = client.exec("for i in range(300): display(i)", session)
    assert texts(reply.displays) == [str(i) for i in range(256)] and reply.displays_dropped == 44
    reply = client.exec(
        "for i in range(10): display({'text/plain': str(i), 'image/png': bytes(3 << 20)}, raw=True)", session
    )
    assert texts(reply.displays) == ["0", "1", "2", "3", "4"] and reply.displays_dropped == 5
    said, reply = follow(client, client.start("for i in range(300): display(i)", session, stream=True))
    assert len(said) == 300


def test_who_comes_later(daemon: Daemon, client: Client, session: str) -> None:
    code = "import time\nfor i in range(4):\n    display(i, display_id='x' if i == 1 else None)\n"
    code += "update_display('new', display_id='x')\ntime.sleep(0.6)\ndisplay('end')"
    first = client.start(code, session, stream=True)
    while not (isinstance(e := client.receive(first, m.ExecReply), m.DisplayEvent) and e.update):
        pass
    with Client(str(daemon.socket)) as other:
        attach = m.Attach(id=other.new_id(), session=session, cell=1, stream=True, displays=2)
        said, reply = follow(other, other.send(attach))
        shown = [(e.at, e.data["text/plain"]) for e in said if isinstance(e, m.DisplayEvent)]
        assert sorted(shown) == [(2, "2"), (3, "3"), (4, "'new'"), (5, "'end'")]
        assert reply.displays is None
    follow(client, first)


def test_a_kept_result_has_them(client: Client, session: str) -> None:
    request = m.Exec(id=client.new_id(), session=session, code="display(1)\ndisplay(2)", key="k")
    assert texts(client.finish(client.send(request), m.ExecReply).displays) == ["1", "2"]
    again = m.Attach(id=client.new_id(), session=session, key="k", stream=True, displays=1)
    said, reply = follow(client, client.send(again))
    assert [e.at for e in said if isinstance(e, m.DisplayEvent)] == [1] and reply.displays is None


def test_slow_readers_hold_the_cell_up(daemon: Daemon, session: str) -> None:
    with Client(str(daemon.socket)) as client:
        code = "for i in range(40): display({'text/plain': str(i), 'image/png': bytes(2 << 20)}, raw=True)"
        cell = client.start(code, session, stream=True)
        time.sleep(1)
        said, _ = follow(client, cell)
        assert [e.data["text/plain"] for e in said if isinstance(e, m.DisplayEvent)] == [str(i) for i in range(40)]
        assert all(len(e.data["image/png"]) == 2 << 20 for e in said if isinstance(e, m.DisplayEvent))


@pytest.mark.shipped
def test_who_never_reads_costs_the_router_no_memory(daemon: Daemon, client: Client, session: str) -> None:
    before = client.stats().memory
    with Client(str(daemon.socket)) as sleeper:
        code = "while True: display({'text/plain': '', 'image/png': bytes(60_000)}, raw=True)"
        sleeper.start(code, session, stream=True, timeout=2)
        time.sleep(1.5)
        assert client.stats().memory < before + (100 << 20)
        assert client.exec("6 * 7").text == "42"


def test_another_router_has_them(start_daemon: Callable[..., Daemon]) -> None:
    """The one that had them dies while the cell runs; what is numbered goes on from there."""
    daemon = start_daemon(SETTINGS)
    code = "import time\ndisplay(1)\ndisplay(2, display_id='x')\ntime.sleep(2.5)\ndisplay(3)\nupdate_display(4, display_id='x')"
    client = daemon.client()
    request = m.Exec(id=client.new_id(), session="s", code=code, key="k", stream=True)
    client.send(request)
    while not (isinstance(event := client.receive(request.id, m.ExecReply), m.DisplayEvent) and event.at == 1):
        pass
    os.kill(client.stats().pid, signal.SIGKILL)
    other = daemon.client()
    said, _ = follow(other, other.send(m.Attach(id=other.new_id(), session="s", key="k", stream=True, displays=2)))
    shown = [(e.at, e.data["text/plain"]) for e in said if isinstance(e, m.DisplayEvent)]
    assert shown == [(2, "3"), (3, "4")]
    assert any(isinstance(e, m.AliveEvent) for e in said)
    reply = other.finish(other.send(m.Attach(id=other.new_id(), session="s", key="k")), m.ExecReply)
    assert texts(reply.displays) == ["1", "4", "3"]


# ---- rolling back ----


def test_a_checkpoint_knows_nothing_of_figures(client: Client, session: str) -> None:
    client.exec("import matplotlib.pyplot as plt; x = 1", session, profile="keeping", timeout=30)
    reply = client.exec("x = 2; plt.plot([1])", session)
    assert "image/png" in reply.displays[0]["data"] and reply.unfaithful is None
    client.undo(session)
    assert client.exec("x, plt.get_fignums()", session).text == "(1, [])"


# ---- signs of life ----


def test_alive(client: Client, session: str) -> None:
    code = "import time\nx = bytearray(60 << 20)\nend = time.monotonic() + 2.5\nwhile time.monotonic() < end: pass"
    said, _ = follow(client, client.start(code, session, stream=True))
    alive = [e for e in said if isinstance(e, m.AliveEvent)]
    assert [round(e.elapsed) for e in alive][:2] == [1, 2]
    assert all(e.memory > 50 << 20 for e in alive)
    assert 0 <= alive[0].cpu < alive[1].cpu < 5


def test_alive_only_while_it_runs_and_is_watched(client: Client, session: str) -> None:
    client.exec("import time", session)
    said, _ = follow(client, client.start("time.sleep(1.3)", session))
    assert said == []
    said, _ = follow(client, client.start("1", session, stream=True))
    assert said == []
    first, second = client.start("time.sleep(1.2)", session), client.start("1", session, stream=True)
    assert follow(client, second)[0] == []
    client.finish(first, m.ExecReply)


# ---- options ----


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"figure": "gif"}, "figure"),
        ({"env": ["novalue"]}, "env"),
        ({"env": ["=x"]}, "env"),
        ({"env": [1]}, "env"),
        ({"env": {"A": "1"}}, "env"),
        ({"env": ["A=\0"]}, "env"),
        ({"env": ["A=" + "x" * 70_000]}, "env"),
        ({"directory": "/etc"}, "directory"),
        ({"directory": ".."}, "directory"),
        ({"directory": "a/../.."}, "directory"),
        ({"directory": "a\0"}, "directory"),
    ],
)
def test_options_that_cannot_be(client: Client, session: str, options: dict[str, Any], word: str) -> None:
    with pytest.raises(LairError) as refusal:
        client.call(m.Exec(id=client.new_id(), session=session, code="1", **options), m.ExecReply)
    assert refusal.value.code == "bad_request" and refusal.value.message.startswith(word)


def test_options(client: Client, session: str) -> None:
    client.exec("import os; os.mkdir('..sub')", session)
    request = m.Exec(
        id=client.new_id(),
        session=session,
        code="def f(n): return 1 / n\nprint(os.environ['A'], os.path.basename(os.getcwd()))\nf(0)",
        env=["A=1=2"],
        directory="..sub",
        values=True,
    )
    reply = client.call(request, m.ExecReply)
    assert reply.stdout == b"1=2 ..sub\n"
    assert reply.error["frames"][1]["values"] == {"n": "0"}
    assert client.exec("os.environ.get('A')", session).text is None


def test_artifacts(client: Client, session: str) -> None:
    reply = client.exec("_ = open('a.csv', 'w').write('1')", session)
    (record,) = reply.artifacts
    assert m.Artifact(**record) == m.Artifact(path=b"a.csv", size=1, type="text/csv", change="created")
    assert client.get(session, "a.csv") == b"1"
    assert client.exec("1", session).artifacts is None


def test_artifacts_of_a_branch_with_files_of_its_own(client: Client, session: str) -> None:
    client.exec("open('old', 'w').close()", session, profile="keeping")
    client.branch(session, f"{session}:b", files=True)
    reply = client.exec("open('new', 'w').close()", f"{session}:b")
    assert [record["path"] for record in reply.artifacts] == [b"new"]
    assert client.exec("open('own', 'w').close()", session).artifacts[0]["path"] == b"own"
    client.shutdown(f"{session}:b")


def ledgers(client: Client) -> int:
    """What the router has written down for the next one takes so many bytes."""
    found = 0
    for fd in Path(f"/proc/{client.stats().pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # it is closed by now
            if "lair-ledger" in os.readlink(fd):
                found += fd.stat().st_blocks * 512
    return found


def test_what_is_shown_no_more_is_not_written_down(client: Client, session: str) -> None:
    """For another router there is what it needs to go on, however much has been shown."""
    before = ledgers(client)
    for code in (
        "for i in range(40): display({'text/plain': 'x' * 2_000_000}, raw=True)",
        "h = display(display_id=True)\nfor i in range(40): h.update({'text/plain': 'x' * 2_000_000}, raw=True)",
    ):
        reply = client.exec(code, session)
        assert reply.returncode == 0, reply.stderr.decode()
        assert ledgers(client) < before + (60 << 20)
        client.exec("1", session)
        assert ledgers(client) < before + (1 << 20)


LETTERS = """
import mmap, os, stat, struct
open_ones = [fd for fd in range(3, 1024) if os.path.exists(f"/proc/self/fd/{fd}")]
(channel,) = [fd for fd in open_ones if stat.S_ISSOCK(os.fstat(fd).st_mode)]
(room,) = [fd for fd in open_ones if "lair-output" in os.readlink(f"/proc/self/fd/{fd}")]
size = 16 << 20
head = b"\\x93\\x01\\xa7display\\x81\\xa4data\\x81\\xaatext/plain\\xdb"
letter = head + struct.pack(">I", size - len(head) - 4) + bytes(size - len(head) - 4).replace(b"\\0", b"x")
begin = 256 << 10
area = mmap.mmap(room, begin + 2 * size)
for n in range(2, 60):
    while area[begin]: pass # the one before has not been taken
    area[begin : begin + size] = letter
    os.write(channel, struct.pack("<QII", n, size, 0))
import time
time.sleep(1)
"""


def test_the_largest_there_are_one_after_the_other(client: Client, daemon: Daemon, session: str) -> None:
    """Sixteen bytes each for who sends them, and milliseconds for who takes them: others come in between."""
    client.exec("import os", session)
    before = ledgers(client)
    cell = client.start(LETTERS, session, timeout=3)
    with Client(str(daemon.socket), timeout=10) as other:
        until = time.monotonic() + 2.5
        while time.monotonic() < until:
            other.exec("1", "other")
            assert ledgers(client) < before + (40 << 20)
        other.shutdown("other")
    reply = client.finish(cell, m.ExecReply)
    assert (reply.returncode, reply.displays_dropped > 0) in ((0, True), (124, True)), reply.stderr


def processor_time(pid: int) -> float:
    """Seconds."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9


def test_who_waits_for_the_router_rests(start_daemon: Callable[..., Daemon]) -> None:
    """There may be many of them, and it is the router that wants a processor."""
    daemon = start_daemon()
    client = daemon.client()
    pid = client.stats().pid
    client.exec("1", "s")
    beneath = [it for it in daemon.processes() if it != pid]
    shows = "for i in range(4):\n    display({'text/plain': 'x' * 8_000_000}, raw=True, clear=True)"
    cell = client.start(f"import time\nprint(1)\ntime.sleep(0.5)\n{shows}", "s", stream=True)
    client.receive(cell, m.ExecReply)
    os.kill(pid, signal.SIGSTOP)
    try:
        time.sleep(1.5)
        before = sum(map(processor_time, beneath))
        time.sleep(1)
        used = sum(map(processor_time, beneath)) - before
    finally:
        os.kill(pid, signal.SIGCONT)
    assert used < 0.1
    assert client.finish(cell, m.ExecReply).returncode == 0

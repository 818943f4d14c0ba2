"""Output as it comes, and input as it is asked for."""

from __future__ import annotations

import time

import pytest
import zmq

from daemon import Daemon
from lair import Client, LairError, codec
from lair import messages as m


def streamed(client: Client, code: str, session: str | None = None) -> tuple[bytes, bytes, m.ExecReply]:
    out, err = b"", b""
    for message in client.stream(code, session):
        if isinstance(message, m.StdoutEvent):
            out += message.data
        elif isinstance(message, m.StderrEvent):
            err += message.data
        elif isinstance(message, m.ExecReply):
            return out, err, message
    raise AssertionError("no final message")


def test_streamed_output_is_not_in_the_reply(client: Client) -> None:
    out, err, reply = streamed(client, "import sys; print('out'); print('err', file=sys.stderr); 5")
    assert (out, err) == (b"out\n", b"err\n")
    assert (reply.stdout, reply.stderr, reply.text) == (b"", b"", "5")


def test_without_streaming_everything_is_in_the_reply(client: Client) -> None:
    reply = client.exec("import sys; print('out'); print('err', file=sys.stderr); 5")
    assert (reply.stdout, reply.stderr, reply.text) == (b"out\n", b"err\n", "5")


def test_lines_come_while_the_cell_runs(client: Client, session: str) -> None:
    client.exec("import time", session)
    started = time.monotonic()
    times = []
    for message in client.stream("for i in range(3): print(i); time.sleep(0.3)", session):
        if isinstance(message, m.StdoutEvent):
            times.append(time.monotonic() - started)
    assert len(times) == 3
    assert times[0] < 0.25
    assert times[2] - times[0] > 0.5


def test_a_flushed_part_of_a_line_comes_at_once(client: Client, session: str) -> None:
    client.exec("import time", session)
    started = time.monotonic()
    for message in client.stream("print('half', end='', flush=True); time.sleep(0.6); print(' whole')", session):
        if isinstance(message, m.StdoutEvent):
            assert message.data == b"half"
            assert time.monotonic() - started < 0.5
            break
    else:
        raise AssertionError("no event")


def test_both_streams_keep_their_order(client: Client) -> None:
    code = "import sys\nfor i in range(50):\n print(i)\n print(i, file=sys.stderr)"
    out, err, _ = streamed(client, code)
    assert out == err == b"".join(b"%d\n" % i for i in range(50))


def test_every_byte_of_a_flood(client: Client, session: str) -> None:
    out, _, reply = streamed(client, "for i in range(200_000): print(i)", session)
    assert out == b"".join(b"%d\n" % i for i in range(200_000))
    assert reply.returncode == 0


FLOOD = "for i in range(5_000): print(i)"
LINES = b"".join(b"%d\n" % i for i in range(5_000))


@pytest.mark.parametrize(
    "code",
    [
        f"{FLOOD}\nwhile True: pass",
        f"{FLOOD}\nimport time; time.sleep(60)",
        f"import threading\ndef flood():\n    {FLOOD}\nthreading.Thread(target=flood).start()\nwhile True: pass",
        f"import os\nif os.fork() == 0:\n    {FLOOD}\n    os._exit(0)\nos.wait()\nwhile True: pass",
        f"import signal; _ = signal.signal(signal.SIGURG, lambda *_: print('heard'))\n{FLOOD}\nwhile True: pass",
    ],
)
def test_the_end_of_a_flood_comes_while_the_cell_runs(client: Client, session: str, code: str) -> None:
    cell, out = client.start(code, session, stream=True), b""
    while len(out) < len(LINES):
        message = client.receive(cell, m.ExecReply)
        assert isinstance(message, m.StdoutEvent), message
        out += message.data
    assert out == LINES
    client.cancel(cell)
    assert client.finish(cell, m.ExecReply).cause == "interrupt"


def test_a_flood_hastens_nothing(client: Client, session: str) -> None:
    code = (
        f"import time\n{FLOOD}\nbegan = time.monotonic(); time.sleep(0.3); print(time.monotonic() - began >= 0.3)"
    )
    out, _, _ = streamed(client, code, session)
    assert out == LINES + b"True\n"


def test_a_flood_stays_before_the_error(client: Client, session: str) -> None:
    """What stdout has had is sent before what stderr gets then."""
    code = f"import sys\n{FLOOD}\nprint('oh', file=sys.stderr)\nwhile True: pass"
    cell, out = client.start(code, session, stream=True), b""
    while isinstance(message := client.receive(cell, m.ExecReply), m.StdoutEvent):
        out += message.data
    assert isinstance(message, m.StderrEvent) and out == LINES
    client.cancel(cell)
    client.finish(cell, m.ExecReply)


def test_a_flood_before_the_end_of_the_interpreter(client: Client, session: str) -> None:
    out, _, reply = streamed(client, f"import os\n{FLOOD}\nos._exit(0)", session)
    assert (out, reply.cause) == (LINES, "exit")


def test_a_slow_reader_gets_all_of_it(client: Client, session: str) -> None:
    """The output limit is about what is kept for the reply: a stream has none, but backpressure."""
    size, seen = 30 << 20, 0
    for message in client.stream(f"print('x' * {size}, end='')", session):
        if isinstance(message, m.StdoutEvent):
            seen += len(message.data)
            if seen < 1 << 20:
                time.sleep(0.05)
    assert seen == size


@pytest.mark.parametrize("chunks", [280, 300, 320])
def test_who_did_not_read_holds_up_no_cell_after(daemon: Daemon, client: Client, session: str, chunks: int) -> None:
    """A cell may end while what it wrote still waits for its reader."""
    context = zmq.Context()
    slow = context.socket(zmq.DEALER)
    slow.setsockopt(zmq.LINGER, 0)
    slow.setsockopt(zmq.RCVHWM, 1)
    slow.connect(f"ipc://{daemon.socket}")
    code = f"import sys, time\nfor i in range({chunks}): print('x' * 1000, flush=True); time.sleep(0.001)"
    slow.send(codec.encode(m.Exec(id=1, session=session, code=code, stream=True)))
    time.sleep(1.5)
    slow.close()
    context.term()
    time.sleep(0.2)
    assert client.exec("sys.stdout.write('y' * 1_000_000)", session, timeout=10).text == "1000000"


def test_input(client: Client, session: str) -> None:
    cell = client.start("name = input('Who? ')\nprint('Hello', name)", session, input=True)
    ask = client.receive(cell, m.ExecReply)
    assert isinstance(ask, m.AskEvent)
    assert (ask.prompt, ask.password) == ("Who? ", False)
    client.input(cell, "Wörld")
    reply = client.finish(cell, m.ExecReply)
    assert reply.returncode == 0
    assert "Hello Wörld\n".encode() in reply.stdout
    assert client.exec("name", session).text == "'Wörld'"


def test_output_comes_before_the_question(client: Client, session: str) -> None:
    cell = client.start("print('first', end='')\ninput('second')", session, input=True)
    cell2 = client.start("print('first', end='')\ninput('second')", session + "x", input=True, stream=True)
    assert isinstance(client.receive(cell, m.ExecReply), m.AskEvent)
    event = client.receive(cell2, m.ExecReply)
    assert isinstance(event, m.StdoutEvent) and event.data.startswith(b"first")
    assert isinstance(client.receive(cell2, m.ExecReply), m.AskEvent)
    for id_ in (cell, cell2):
        client.input(id_, "x")
        client.finish(id_, m.ExecReply)
    client.shutdown(session + "x")


@pytest.mark.parametrize("code", ["input('?')", "input()", "import sys\nnext(sys.stdin)"])
def test_without_somebody_to_answer(client: Client, code: str) -> None:
    reply = client.exec(code)
    assert reply.returncode == 1
    assert reply.error["name"] in ("EOFError", "StopIteration")
    assert reply.duration_ms < 1000


def test_interrupt_while_asking(client: Client, session: str) -> None:
    cell = client.start("input('?')", session, input=True)
    assert isinstance(client.receive(cell, m.ExecReply), m.AskEvent)
    assert client.interrupt(session)
    reply = client.finish(cell, m.ExecReply)
    assert (reply.returncode, reply.state, reply.cause) == (130, "kept", "interrupt")
    assert client.exec("1", session).text == "1"


def test_an_answer_nobody_asked_for(client: Client, session: str) -> None:
    client.exec("import time", session)
    cell = client.start("time.sleep(0.4); input()", session, input=True)
    with pytest.raises(LairError):
        client.input(cell, "too early")
    assert isinstance(client.receive(cell, m.ExecReply), m.AskEvent)
    client.input(cell, "in time")
    assert client.finish(cell, m.ExecReply).text == "'in time'"

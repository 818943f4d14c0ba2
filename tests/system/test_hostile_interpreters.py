"""What user code can put on its interpreter's channel: it harms its own session, and no other and not the router."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import internal
import links
from daemon import Daemon, children
from lair import Client, LairError, codec
from lair.messages import AskEvent, ExecReply, Vars, VarsReply

SETTINGS = {"profile default": {"checkpoint": "cell", "grace": "200ms"}, "profile connected": {"network": "host"}}

# Finds the channel: the one socket this process holds.
PRELUDE = """
import os, stat, time
(channel,) = [fd for fd in range(3, 1024) if os.path.exists(f'/proc/self/fd/{fd}') and stat.S_ISSOCK(os.fstat(fd).st_mode)]
def say(datagrams):
    for data in datagrams:
        os.write(channel, data)
"""

# Of what its interpreter has said before the second cell (done, frozen), and after it.
IN_CELL, AFTER_CELL = 3, 5


def prepare(client: Client, session: str) -> None:
    reply = client.exec(PRELUDE, session)
    assert reply.returncode == 0, reply.stderr.decode()


def framed(message: codec.Message) -> bytes:
    return codec.encode(message)


FRAMES: dict[str, list[bytes]] = {
    "empty": [b""],
    "garbage": [bytes(range(256))],
    "deep": [b"\x91" * 60_000],
    "lengths that lie": [b"\x93\x01\xa4done\xdf\xff\xff\xff\xff"],
    "another version": [b"\x93\x02\xa4done\x80"],
    "unknown message": [b"\x93\x01\xa4what\x80"],
    "message of the router": [framed(internal.Run(cell=1, options=b""))],
    "done of another cell": [framed(internal.Done(cell=77, returncode=0))],
    "done twice": [framed(internal.Done(cell=2, returncode=0))] * 2,
    "done without a cell": [b"\x93\x01\xa4done\x80"],
    "told, unasked": [framed(internal.Told(serial=1, answer={"variables": [], "total": 0}))],
    "frozen, unasked": [framed(internal.Frozen(serial=1, pid=1))],
    "spawned, unasked": [framed(internal.Spawned(serial=1, pid=1))],
    "asks without end": [framed(internal.Ask(prompt="?"))] * 2000,
    "thousands of them": [framed(internal.Done(cell=2, returncode=0))] * 5000,
    "text that is none": [b"\x93\x01\xa4done\x83\xa4cell\x02\xaareturncode\x00\xa4text\xa2\xff\xfe"],
    "displays that are none": [b"\x93\x01\xa7display\x81\xa4data\x01"],
    "a bundle of numbers": [framed(internal.Display(data={"text/plain": 1}))],
    "a bundle of too many": [framed(internal.Display(data={str(i): "x" for i in range(65)}))],
    "a bundle of bundles": [framed(internal.Display(data={"a/b": {"c": "d"}}))],
    "data that is no bundle": [framed(internal.Done(cell=2, returncode=0, data=["x"]))],
    "artifacts that are none": [framed(internal.Done(cell=2, returncode=0, artifacts=[{"path": 1}]))],
    "too many artifacts": [
        framed(
            internal.Done(
                cell=2, returncode=0, artifacts=[{"path": b"f", "size": 1, "type": "t", "change": "c"}] * 257
            )
        )
    ],
    "frames that are none": [
        framed(
            internal.Done(
                cell=2, returncode=1, error={"name": "E", "value": "", "traceback": "", "frames": [{"line": -1}]}
            )
        )
    ],
    "values that are none": [
        framed(
            internal.Done(
                cell=2,
                returncode=1,
                error={"name": "E", "value": "", "traceback": "", "frames": [{"function": "f", "values": [1]}]},
            )
        )
    ],
    "blocked that are none": [framed(internal.Done(cell=2, returncode=0, blocked="all"))],
    "thousands of displays": [framed(internal.Display(data={"text/plain": "x"}))] * 3000,
    "an error that is no map": [b"\x93\x01\xa4done\x83\xa4cell\x02\xaareturncode\x00\xa5error\x01"],
}

# What is wrong before there is a frame.
DATAGRAMS: dict[str, Callable[[int], list[bytes]]] = {
    "nothing": lambda first: [b""],
    "half a header": lambda first: [b"\x01" * 10],
    "out of turn": lambda first: [links.datagram(framed(internal.Done(cell=2, returncode=0)), first + 7)],
    "numbered zero": lambda first: [links.datagram(framed(internal.Done(cell=2, returncode=0)), 0)],
    "a letter that is none": lambda first: [links.letter(1000, 0, first)],
    "a letter too large": lambda first: [links.letter(0xFFFFFFFF, 0, first)],
    "a letter beyond the file": lambda first: [links.letter(1 << 20, (16 << 20) - 1, first)],
    "a letter nowhere": lambda first: [links.letter(100, 0xFFFFFFFF, first)],
    "a letter and a frame": lambda first: [links.letter(1, 0, first) + b"x"],
    "repeats without end": lambda first: [links.datagram(b"x", 1)] * 10_000,
}


def datagrams(what: str, first: int) -> list[bytes]:
    if what in DATAGRAMS:
        return DATAGRAMS[what](first)
    return [links.datagram(frame, first + n) for n, frame in enumerate(FRAMES[what])]


# What a router cannot tell from an honest interpreter, or only in time.
PLAUSIBLE = {
    "done twice",
    "asks without end",
    "thousands of them",
    "thousands of displays",
    "repeats without end",
}


@pytest.fixture
def bystander(daemon: Daemon) -> Iterator[Client]:
    """A session that must not notice."""
    with Client(str(daemon.socket), timeout=10) as client:
        client.exec("here = 'untouched'", "bystander")
        yield client
        assert client.exec("here", "bystander").text == "'untouched'"


def settle(client: Client, session: str) -> None:
    """The session lives on, or it is gone and its id is free: either way it answers the next cell, and rightly."""
    for _ in range(3):
        try:
            reply = client.exec("6 * 7", session)
        except LairError as refusal:
            assert refusal.code in ("gone", "internal")
        else:
            if reply.text == "42":
                return
            assert reply.state in ("rolled_back", "reset", "ended")
    pytest.fail("the session does not come back")


@pytest.mark.parametrize("what", [*FRAMES, *DATAGRAMS])
def test_frames(client: Client, bystander: Client, session: str, what: str) -> None:
    prepare(client, session)
    code = f"say({datagrams(what, IN_CELL)!r})\ntime.sleep({0.2 if what in PLAUSIBLE else 2})"
    reply = client.exec(code, session, timeout=2)
    assert reply.id and reply.session == session, "one answer, to the request that was made"
    assert reply.cause == "violation" or what in PLAUSIBLE
    settle(client, session)


@pytest.mark.parametrize("what", [*FRAMES, *DATAGRAMS])
def test_frames_between_cells(client: Client, bystander: Client, session: str, what: str) -> None:
    prepare(client, session)
    said = datagrams(what, AFTER_CELL)
    code = f"if os.fork() == 0:\n    time.sleep(0.05)\n    say({said!r})\n    os._exit(0)"
    client.exec(code, session)
    client.exec("pass", "bystander")
    settle(client, session)


# An answer that user code gives in place of its interpreter, while that looks for the name it was asked about.
ANSWERS: dict[str, bytes] = {
    "to another question": framed(internal.Told(serial=77, answer={"variables": [], "total": 0})),
    "of another kind": framed(internal.Told(serial=1, answer={"valid": True})),
    "with a field too many": framed(internal.Told(serial=1, answer={"variables": [], "total": 0, "x": 1})),
    "with no list": framed(internal.Told(serial=1, answer={"variables": 5, "total": 0})),
    "with items that are none": framed(internal.Told(serial=1, answer={"variables": [1], "total": 1})),
    "with half an item": framed(internal.Told(serial=1, answer={"variables": [{"name": "x"}], "total": 1})),
    "with a shape of text": framed(
        internal.Told(
            serial=1,
            answer={"variables": [{"name": "x", "type": "t", "size": 1, "text": "", "shape": ["1"]}], "total": 1},
        )
    ),
    "that is no map": framed(internal.Told(serial=1, answer=[1, 2])),
    "with text that is none": b"\x93\x01\xa4told\x82\xa6serial\x01\xa7refused\xa2\xff\xfe",
    "of no serial": b"\x93\x01\xa4told\x80",
    "without any": b"",
}


@pytest.mark.parametrize("what", ANSWERS)
def test_answers(client: Client, bystander: Client, session: str, what: str) -> None:
    prepare(client, session)
    client.exec(
        "class Key(str):\n"
        "    def __hash__(self): return hash('wanted')\n"
        f"    def __eq__(self, other): say([{links.datagram(ANSWERS[what], AFTER_CELL)!r}]); time.sleep(5)\n"
        "globals()[Key('key')] = 1",
        session,
    )
    with pytest.raises(LairError, match="gone"):
        client.call(Vars(id=client.new_id(), session=session, forget=["wanted"]), VarsReply)
    settle(client, session)


def test_it_never_reads(client: Client, bystander: Client, session: str) -> None:
    """Code for it piles up here; the limit on what waits holds, and nobody else is kept waiting."""
    client.exec("import time", session)
    cells = [client.start("time.sleep(0.3)", session, timeout=1)]
    cells += [client.start("#" * 900_000, session) for _ in range(20)]
    assert bystander.exec("1", "bystander").duration_ms < 1000
    for cell in cells:
        assert client.finish(cell, ExecReply).returncode == 0


def test_it_never_reads_an_answer(client: Client, bystander: Client, session: str) -> None:
    prepare(client, session)
    ask = links.datagram(framed(internal.Ask(prompt="?")), IN_CELL)
    cell = client.start(f"say([{ask!r}])\ntime.sleep(5)", session, input=True, timeout=1)
    assert isinstance(client.receive(cell, ExecReply), AskEvent)
    client.input(cell, "x" * 1_000_000)
    reply = client.finish(cell, ExecReply)
    assert reply.returncode == 124
    settle(client, session)


def test_a_forged_result_is_its_own(client: Client, bystander: Client, session: str) -> None:
    """It may lie about itself, in the session's own name, and in no other's."""
    prepare(client, session)
    lie = links.datagram(framed(internal.Done(cell=2, returncode=0, text="'all is well'")), IN_CELL)
    reply = client.exec(f"say([{lie!r}])\ntime.sleep(60)", session, timeout=5)
    assert (reply.session, reply.cell, reply.text) == (session, 2, "'all is well'")
    settle(client, session)


def test_whoever_waits_behind_a_checkpoint_that_never_comes(
    client: Client, bystander: Client, session: str
) -> None:
    """A cell is sent at once after the order to take one. It has not begun, so another interpreter runs it."""
    prepare(client, session)
    lie = links.datagram(framed(internal.Done(cell=2, returncode=0)), IN_CELL)
    assert client.exec(f"x = 2\nsay([{lie!r}])\ntime.sleep(60)", session, timeout=30).cell == 2
    waiting = client.start("'x' in globals()", session)
    time.sleep(0.1)
    (pid,) = [
        pid
        for pid in children(client.info(session).pid or 0)
        if Path(f"/proc/{pid}/comm").read_text().strip() == "lair-python"
    ]
    os.kill(pid, signal.SIGKILL)
    reply = client.finish(waiting, ExecReply)
    assert (reply.cell, reply.returncode, reply.text) == (3, 0, "False")
    assert (reply.state, reply.cause, reply.restored) == ("rolled_back", "signal 9", 1)


def test_descriptors_for_the_router(daemon: Daemon, client: Client, bystander: Client, session: str) -> None:
    """What is sent along with a message that brings none does not get through, or is closed, however much it is."""
    prepare(client, session)
    router = Path(f"/proc/{client.stats().pid}/fd")
    before = len(list(router.iterdir()))
    code = f"""
import array, socket
rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0] * 250))]
it, sent = socket.socket(fileno=os.dup(channel)), 0
for _ in range(400):
    try: sent += it.sendmsg([{links.datagram(b"x", 1)!r}], rights) > 0
    except PermissionError: sent = sent or 400
    except OSError: break
sent
"""
    reply = client.exec(code, session, timeout=10)
    assert reply.cause == "violation" or int(reply.text or 0) > 0, reply.stderr
    assert len(list(router.iterdir())) < before + 50
    settle(client, session)


def test_a_descriptor_that_is_long_in_closing(client: Client, bystander: Client, session: str) -> None:
    """Whoever closes a connection last may have to wait for its peer: nobody but the session waits for its own."""
    client.open(session, profile="connected")
    prepare(client, session)
    code = f"""
import array, socket, struct
listener, full = socket.create_server(("127.0.0.1", 0)), socket.socket()
full.connect(listener.getsockname())
full.setblocking(False)
full.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 20))
try:
    while full.send(bytes(65536)): pass
except BlockingIOError: pass
full.setblocking(True)
rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [full.fileno()]))]
try: socket.socket(fileno=os.dup(channel)).sendmsg([{links.datagram(b"x", 1)!r}], rights)
except PermissionError: pass
full.close()
time.sleep(0.5)
"""
    cell = client.start(code, session, timeout=20)
    for _ in range(20):
        assert bystander.exec("1", "bystander").duration_ms < 3000
    client.finish(cell, ExecReply)
    assert bystander.exec("1", "bystander").returncode == 0


def test_a_frozen_one_that_measures_without_end(client: Client, bystander: Client, session: str) -> None:
    """It may say what it holds at any time, and is not heard at all times."""
    prepare(client, session)
    done = links.datagram(framed(internal.Done(cell=2, returncode=0)), IN_CELL)
    frozen = framed(internal.Frozen(serial=120, pid=121))
    code = f"""
import array, ctypes, socket, struct
say([{done!r}])
it = socket.socket(fileno=os.dup(channel))
data, ancillary, *_ = it.recvmsg(65536, 64)
freezing = array.array("i", ancillary[0][2])[0]
serial = data[data.index(b"serial") + 6]
clone = ctypes.CDLL("libseccomp.so.2").seccomp_syscall_resolve_name(b"clone")
pid = ctypes.CDLL(None).syscall(clone, 0x8000 | 17, 0, 0, 0, 0)  # a sibling, as a copy would be
if pid == 0:
    said = os.open("said", os.O_WRONLY | os.O_CREAT)
    for n in range(1, 1_000_000):
        os.write(freezing, struct.pack("<QQ", n, 0) + {framed(internal.Measured(memory=1))!r})
        os.pwrite(said, b"%9d" % n, 0)
said = bytearray({frozen!r})
said[said.index(120)], said[said.index(121)] = serial, pid
say([struct.pack("<QQ", {IN_CELL + 1}, 0) + bytes(said)])
time.sleep(60)
"""
    client.exec(code, session, timeout=20)
    time.sleep(2)
    assert bystander.exec("1", "bystander").duration_ms < 1000
    said = int(client.get(session, "said"))
    assert 0 < said < 2000
    client.shutdown(session)

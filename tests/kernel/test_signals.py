"""Interrupts reach the running cell and nothing else; the dead are buried with all they left."""

from __future__ import annotations

import os
import random
import select
import signal
import socket
import time

import pytest

from drive import Interpreter, Warden


@pytest.mark.parametrize(
    "code",
    [
        "while True: pass",
        "import time; time.sleep(60)",
        "import asyncio\nawait asyncio.sleep(60)",
        "import asyncio\nasync def spin():\n    while True: await asyncio.sleep(0)\nawait spin()",
        "import threading; threading.Event().wait()",
        "import subprocess; subprocess.run(['sleep', '60'])",
        "import os; os.system('sleep 60')\nwhile True: pass",
        "class A:\n    def __repr__(self):\n        while True: pass\nA()",
        "import os; r, w = os.pipe(); os.read(r, 1)",
        "sum(x for x in iter(int, 1))",
    ],
)
def test_interrupt(python: Interpreter, code: str) -> None:
    python.run("x = 5")
    python.start(code)
    time.sleep(0.2)
    started = time.monotonic()
    python.interrupt()
    if "os.system" in code:
        time.sleep(0.2)
        python.interrupt()
    result = python.finish(5)
    assert time.monotonic() - started < 1
    assert (result.returncode, result.cause) == (130, "interrupt")
    assert result.error is not None and result.error["name"] == "KeyboardInterrupt"
    assert result.err.startswith(b"Traceback") and b"<cell 2>" in result.err and b"base_events" not in result.err
    assert python.run("x").text == "5"


def test_interrupts_between_cells_are_nobodys(python: Interpreter) -> None:
    for _ in range(20):
        python.interrupt()
        assert python.run("1").text == "1"


def test_an_interrupt_before_its_cell_has_begun(python: Interpreter) -> None:
    for _ in range(50):
        python.start("while True: pass")
        python.interrupt()
        assert python.finish(5).cause == "interrupt"


REHEARSED = """
import os, sys, time
def slowly(frame, event, arg):
    if frame.f_code.co_filename == "<cell 0>":
        os.write(1, b".")
        time.sleep(0.2)
sys.settrace(slowly)
"""


def test_an_interrupt_while_nobodys_cell_runs(python: Interpreter) -> None:
    python.run(REHEARSED)
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        python.link.send("freeze", (theirs.fileno(),), serial=9)
        assert python.next()[0] == "frozen"
        while not python.taken[python.out]:
            assert select.select([python.out], [], [], 10)[0]
            python.drain()
        python.start("while True: pass")
        python.interrupt()
        assert python.finish(5).cause == "interrupt"
        assert python.run("1").text == "1"


def test_interrupts_hit_a_cell_or_nothing(python: Interpreter) -> None:
    chance = random.Random(4)
    interrupted = 0
    for number in range(300):
        python.start(f"x = {number}\nfor _ in range(30000): pass\nx")
        time.sleep(chance.random() * 0.002)
        python.interrupt()
        result = python.finish()
        interrupted += result.cause == "interrupt"
        assert result.cause == "interrupt" or result.text == str(number), result
        assert python.run("'next'").text == "'next'"
    assert 0 < interrupted < 300


def test_a_cell_may_catch_it(python: Interpreter) -> None:
    python.start("import time\ntry:\n    time.sleep(60)\nexcept KeyboardInterrupt:\n    x = 'caught'\nx")
    time.sleep(0.2)
    python.interrupt()
    assert python.finish().text == "'caught'"


def test_handlers_of_a_cell(python: Interpreter) -> None:
    python.run(
        "import signal\n"
        "for n in (signal.SIGINT, signal.SIGALRM): signal.signal(n, lambda *a: print('handled', a[0]))"
    )
    python.start("import time\nfor _ in range(3): time.sleep(0.1)")
    time.sleep(0.15)
    python.interrupt()
    assert b"handled 2" in python.finish().out
    assert b"handled 14" in python.run("signal.setitimer(signal.ITIMER_REAL, 0.05); time.sleep(0.2)").out


def exited(warden: Warden, serial: int) -> int:
    body = warden.control.expect("exited", 5)
    assert body["serial"] == serial
    return int(body["status"])


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("import os; os._exit(7)", 7 << 8),
        ("import os; os.kill(os.getpid(), 9)", 9),
        ("import ctypes; ctypes.string_at(0)", signal.SIGSEGV),
        ("import os; os.abort()", signal.SIGABRT),
    ],
)
def test_death_is_told(python: Interpreter, code: str, status: int) -> None:
    python.start(code)
    assert exited(python.warden, 1) & 0xFF7F == status
    assert python.warden.spawn(2).run("1").text == "1"


def test_kill_and_spawn_again(warden: Warden) -> None:
    for serial in range(1, 30):
        python = warden.spawn(serial)
        assert python.run("'x' in globals()").text == "False"
        python.run("x = 1")
        python.start("while True: pass")
        python.signal(signal.SIGKILL)
        assert exited(warden, serial) == 9


def alive(pids: list[int]) -> list[int]:
    return [pid for pid in pids if os.path.exists(f"/proc/{pid}")]


def descendants(pid: int) -> list[int]:
    found = []
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/children") as children:
            for child in map(int, children.read().split()):
                found += [child, *descendants(child)]
    return found


LEFT = {
    "child": "import os\nif os.fork() == 0: time.sleep(600)",
    "program": "import subprocess; subprocess.Popen(['sleep', '600'])",
    "daemon": (
        "import os\nif os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0: time.sleep(600)\n    os._exit(0)"
    ),
    "group": "import subprocess; subprocess.Popen(['sleep', '600'], start_new_session=True)",
    "deaf": "import subprocess; subprocess.Popen(['sh', '-c', 'trap \"\" INT TERM HUP; sleep 600; sleep 600'])",
    "deep": "import os\nfor _ in range(30):\n    if os.fork(): time.sleep(600)\n    os.setsid()",
}


@pytest.mark.parametrize("kind", LEFT)
@pytest.mark.parametrize("how", ["kill", "exit"])
def test_nothing_is_left(python: Interpreter, kind: str, how: str) -> None:
    python.run("import time")
    python.start(LEFT[kind])
    time.sleep(0.4)
    left = descendants(python.warden.pid)
    assert len(left) > 1
    if how == "kill":
        python.signal(signal.SIGKILL)
    elif kind == "deep":
        os.kill(left[0], signal.SIGTERM)
    else:
        python.finish()
        python.start("import os; os._exit(0)")
    exited(python.warden, 1)
    python.warden.sweep()
    assert descendants(python.warden.pid) == []
    assert alive(left) == []
    assert python.warden.spawn(2).run("1").text == "1"


def test_orphans_of_the_living_stay(python: Interpreter) -> None:
    python.run("import subprocess, os, time")
    python.run("p = subprocess.Popen(['sh', '-c', '(setsid sleep 600 &) ; sleep 600'])")
    time.sleep(0.3)
    assert len(descendants(python.warden.pid)) == 4
    assert python.run("p.poll()").text is None


def test_two_interpreters(warden: Warden) -> None:
    first, second = warden.spawn(1), warden.spawn(2)
    first.run("x = 1; import subprocess; p = subprocess.Popen(['sleep', '600'])")
    second.run("x = 2")
    assert (first.run("x").text, second.run("x").text) == ("1", "2")
    second.signal(9)
    assert exited(warden, 2) == 9
    assert first.run("x, p.poll()").text == "(1, None)"


def test_siblings_draw_different_numbers(warden: Warden) -> None:
    first, second = warden.spawn(1), warden.spawn(2)
    code = "import random, uuid, tempfile; (random.random(), str(uuid.uuid4()))"
    assert first.run(code).text != second.run(code).text


@pytest.mark.parametrize("death, status", [("os._exit(9)", 9 << 8), ("os.kill(os.getpid(), 6)", 6)])
def test_one_that_dies_before_it_is_adopted(python: Interpreter, death: str, status: int) -> None:
    """A copy's child may run a cell and die of it before the router's word reaches the warden."""
    dying = f"os.write(w, str(os.getpid()).encode()); {death}"
    python.run(f"import os\nr, w = os.pipe()\nif not os.fork():\n    if not os.fork(): {dying}\n    os._exit(0)")
    pid = int(python.run("int(os.read(r, 9))").text or 0)
    time.sleep(0.2)
    python.warden.control.send("adopt", serial=7, pid=pid)
    assert exited(python.warden, 7) == status
    python.warden.control.send("adopt", serial=8, pid=pid)
    assert exited(python.warden, 8) == signal.SIGKILL, "told once"


def test_one_that_is_discarded(warden: Warden) -> None:
    """It is killed, and whoever asked for that is not told what he knows."""
    first, second = warden.spawn(1), warden.spawn(2)
    pid = int(first.run("import os; os.getpid()").text or 0)
    kept = descendants(warden.pid)
    warden.control.send("discard", serial=1)
    warden.control.send("discard", serial=9)
    warden.sweep()
    assert len(descendants(warden.pid)) == len(kept) - 1
    assert second.run(f"import os; os.getpid() != {pid}").text == "True"


def test_signal_to_nobody(warden: Warden) -> None:
    warden.control.send("signal", serial=9, signal=2)
    assert warden.control.expect("signalled") == {"serial": 9}


def test_second_spawn_of_a_serial(warden: Warden) -> None:
    python = warden.spawn(1)
    with pytest.raises(AssertionError, match="File exists"):
        warden.spawn(1)
    assert python.run("1").text == "1"


def test_interrupts_of_a_loop(python: Interpreter) -> None:
    """Wherever in asyncio it hits, the loop goes on working."""
    chance = random.Random(5)
    python.run("import asyncio\nasync def spin():\n    while True: await asyncio.sleep(0)")
    for _ in range(100):
        python.start("print('spinning')\nawait spin()", stream=True)
        select.select([python.out], [], [], 5)
        time.sleep(chance.random() * 0.003)
        python.interrupt()
        assert python.finish(5).cause == "interrupt"
    python.start("spinning = asyncio.ensure_future(spin())\nawait asyncio.sleep(60)")
    time.sleep(0.1)
    python.interrupt()
    assert python.finish(5).cause == "interrupt"
    assert python.run("await asyncio.sleep(0.01, 'works')").text == "'works'"
    python.start("async def busy():\n    while True: pass\nawait busy()")
    time.sleep(0.1)
    python.interrupt()
    assert python.finish(5).cause == "interrupt"

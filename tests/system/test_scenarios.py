"""What a session does, and what is told of it, at every door: one list, through the adapters of doors.py. What is particular to
a door is in that door's own tests."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from daemon import Daemon
from doors import DOORS, Door, Refused, Told

SETTINGS = {
    "profile default": {"checkpoint": "cell", "cell_timeout_max": "1m"},
    "profile bare": {"checkpoint": "off"},
    "profile quick": {"checkpoint": "cell", "cell_timeout": "300ms", "cell_timeout_max": "300ms"},
    "profile magics": {"checkpoint": "cell", "preload": "IPython"},
    "profile brief": {"idle_ttl": "400ms"},
    "profile kept": {"idle_ttl": "400ms", "on_expire": "save"},
    "profile small": {"memory": "512M"},
    "profile strict": {"forbid": "module seaborn: Do not use seaborn", "forbid_in": "exec"},
}


@dataclass
class Step:
    verb: str
    arguments: tuple[Any, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)
    expected: dict[str, Any] = field(default_factory=dict)
    of: str = ""  # the branch of that name


def cell(
    code: str, *, timeout: float | None = None, answers: dict[str, str] | None = None, of: str = "", **expected: Any
) -> Step:
    """Run it. Expected: fields of Told; `says` and `never`, among all that is told; `refused`."""
    options = {name: it for name, it in (("timeout", timeout), ("answers", answers)) if it is not None}
    return Step("run", (code,), options, expected, of)


def do(verb: str, *arguments: Any, of: str = "", **expected: Any) -> Step:
    """Any other verb of a door. Expected: `gives`, `refused`."""
    return Step(verb, arguments, {}, expected, of)


X = cell("x = 41")
STILL = cell("x", text="41")
GONE = cell("'x' in globals()", text="False")
HOLDS_ON = "import signal; x = 0; print(signal.signal(signal.SIGINT, signal.SIG_IGN)); sum(iter(int, 1))"
DIES = "import os; os.kill(os.getpid(), 9)"
GOES_ON: dict[str, Any] = {"state": "kept", "restored": None}
BACK: dict[str, Any] = {"state": "rolled_back", "restored": 1}
# A thread that no signal reaches, so that the session cannot be copied.
UNREACHED = """import ctypes, threading
deaf, stop, mask = threading.Event(), threading.Event(), ctypes.c_uint64(2**64 - 1)
def wait(): ctypes.CDLL(None).syscall(14, 2, ctypes.byref(mask), None, 8); deaf.set(); stop.wait()
threading.Thread(target=wait, daemon=True).start(); deaf.wait(); None"""
DAMAGED = "the saved state is damaged, and is kept aside; there is none before it"
RENEWED = "the one before has ended (it was idle for too long, "

SCENARIOS: dict[str, list[Step]] = {
    # ---- cells ----
    "state": [X, cell("print('hi'); x + 1", text="42", stdout="hi\n", **GOES_ON)],
    "nothing to tell": [cell("x = 1", text=None, stdout="", error=None, cause=None, never="Traceback")],
    "an exception": [
        X,
        cell("x += 0\nboom()", error="NameError", cause="error", says="line 2", **GOES_ON),
        STILL,
    ],
    "an error in a function": [
        cell("def half(n):\n    return n / 0"),
        cell("half(1)", error="ZeroDivisionError", says="<cell 1>"),
    ],
    "a syntax error": [X, cell("x = 1\nx = = 2", error="SyntaxError", says="x = = 2"), STILL],
    "an exit": [X, cell("import sys; sys.exit(3)", **GOES_ON), STILL],
    "a frozen loop": [X, cell("while True: pass", timeout=0.3, cause="timeout", says="0.3 s", **GOES_ON), STILL],
    "several statements": [cell("1; 2; 3", text="3")],
    "unicode": [cell("print('é\U0001f40d\u2028', end=''); ['ü']", text="['ü']", stdout="é\U0001f40d\u2028")],
    "bytes that are no text": [cell("import os; _ = os.write(1, b'a\\xffb\\n'); None", stdout="a\ufffdb\n")],
    "a display": [cell("display({'text/plain': 'shown'}, raw=True); 1", text="1")],
    "input": [
        cell(
            "input('name? ') + input('town? ')", answers={"name? ": "Bob", "town? ": "Ulm"}, text="'BobUlm'", error=None
        )
    ],
    "input that nobody gives": [cell("input()", error={"EOFError", "StdinNotImplementedError"})],
    "an interrupt": [X, do("interrupted", "while True: pass", told={"cause": "interrupt", **GOES_ON}), STILL],
    # ---- what becomes of the session ----
    "a time-out that has to kill": [X, cell(HOLDS_ON, timeout=0.3, cause="timeout", says="0.3 s", **BACK), STILL],
    "the profile's time": [X, cell(HOLDS_ON, cause="timeout", says="0.3 s", **BACK), STILL],
    "a crash": [X, cell("import ctypes; x = 0; ctypes.string_at(0)", cause="signal 11", **BACK), STILL],
    "a kill": [X, cell(f"x = 0; {DIES}", cause="signal 9", says="signal 9", **BACK), STILL],
    "an exit of the process": [X, cell("import os; x = 0; os._exit(9)", cause="exit", **BACK), STILL],
    "before the first cell": [cell(DIES, state="rolled_back", restored=0), cell("1", text="1")],
    "without checkpoints": [X, cell(DIES, state="reset", restored=None), GONE],
    "memory": [
        X,
        cell("bytearray(1 << 40)", error="MemoryError", says="a process of this session has 512 MiB", state="kept"),
        cell("import numpy; numpy.ones(1 << 40)", says="Unable to allocate 8.00 TiB"),
        STILL,
    ],
    "a state that is not kept": [
        X,
        cell(UNREACHED, says="a crash now would go back to cell 1: thread "),
        cell("1", says="blocks all signals"),
        cell("stop.set(); import time; time.sleep(0.2)"),
        cell("1", never="blocks all signals"),
    ],
    # ---- what the cage refuses ----
    "a blocked file": [
        cell(
            "open('/etc/hosts', 'w')",
            error="PermissionError",
            says="/etc/hosts: write only below the session's directory (write-outside-workspace)",
        )
    ],
    "a blocked file that the code passes over": [
        cell("try: open('/etc/hosts', 'w')\nexcept OSError: pass", error=None, says="write-outside-workspace")
    ],
    "the network": [
        cell(
            "import urllib.request; urllib.request.urlopen('http://example.com')",
            says="no network here: do without, or ask the user for the data (network-not-granted)",
        )
    ],
    "a program": [cell("!ls", error="PermissionError", says="subprocess-not-granted")],
    "a package": [cell("import cartopy", error="ModuleNotFoundError", says="for the operator of this session to install")],
    "a package by pip": [cell("%pip install cartopy", says="for the operator of this session to install")],
    "a rule": [X, cell("x = 1\nimport seaborn", says="Do not use seaborn", state="kept"), STILL],
    "too long a time": [cell("1", timeout=1000, refused="limit", says="60")],
    # ---- going back ----
    "undo": [
        cell("x = 1; open('f', 'w').write('one')"),
        cell("x = 2; open('f', 'w').write('two')"),
        cell("x = 3; open('g', 'w')"),
        do("undo", gives=2),
        cell("import os; x, open('f').read(), os.path.exists('g')", text="(2, 'two', False)"),
        do("undo", 2, gives=1),
        cell("x, open('f').read()", text="(1, 'one')"),
        do("undo", 9, refused="gone", says="does not remember the state 9 back"),
    ],
    "undo to the beginning": [X, do("undo", gives=0), GONE],
    "a named state": [
        X,
        do("checkpoint", "best"),
        cell("x = 0"),
        cell("x = -1"),
        do("restore", "best", gives=1),
        STILL,
        do("restore", "2", gives=2),
        cell("x", text="0"),
        do("restore", "other", refused="bad_request", says='no checkpoint "other"'),
    ],
    "a branch": [
        X,
        cell("open('f', 'w').write('of both')"),
        do("branch", "twig"),
        cell("x = 0"),
        cell("x += 1; x, open('f').read()", of="twig", text="(42, 'of both')"),
        cell("x", text="0"),
    ],
    "a diff": [
        cell("x = 1; y = 'a'; open('f', 'w').write('1')"),
        cell("x = 2; del y; z = 0; open('f', 'a').write('2'); open('g', 'w')"),
        do("diff", gives={"x": "changed", "y": "gone", "z": "new", "f": "changed", "g": "created"}),
    ],
    "a reset": [
        cell("x = 1; open('f', 'w').write('kept')"),
        do("reset"),
        cell("'x' in globals(), open('f').read()", text="(False, 'kept')"),
    ],
    # ---- its life ----
    "an end": [X, do("end"), do("end", refused="no_session")],
    "saved and loaded": [
        cell("x, lost = [1, 2], (i for i in range(3))"),
        do("save", gives=["x"]),
        cell("x = 0"),
        do("load", gives=["x"]),
        cell("x", text="[1, 2]"),
    ],
    "expired": [X, do("wait_for_the_end"), cell("'x' in globals()", text="False", says=RENEWED), cell("1", never=RENEWED)],
    "expired and saved": [
        cell("x = 41; g = (i for i in ())"),
        do("wait_for_the_end"),
        cell("x", text="41", says="that was saved"),
    ],
    "a saved state that is damaged": [X, do("damage"), cell("'x' in globals()", text="False", says=DAMAGED)],
    "a damaged state, opened": [X, do("damage"), do("open", told={"says": DAMAGED})],
    # ---- files and questions ----
    "files": [
        cell("1"),
        do("put", "in.bin", bytes(range(256)) * 9000),
        cell("import os; os.mkdir('d'); len(open('in.bin', 'rb').read())", text="2304000"),
        cell("open('d/out', 'wb').write(b'\\xff\\0')"),
        do("get", "in.bin", gives=bytes(range(256)) * 9000),
        do("get", "d/out", gives=b"\xff\0"),
        do("files", "d", gives={"out": 2}),
    ],
    "variables": [
        cell("x, name = 1, 'text'"),
        do("variables", gives={"x": "1", "name": "'text'"}),
    ],
    "code that is checked": [X, do("valid", "x = 1", gives=True), do("valid", "x = = 1", gives=False)],
}  # fmt: skip
PROFILES = {
    "the profile's time": "quick",
    "without checkpoints": "bare",
    "memory": "small",
    "a program": "magics",
    "a package by pip": "magics",
    "a rule": "strict",
    "expired": "brief",
    "expired and saved": "kept",
}


def needs(name: str) -> set[str]:
    """Of a door: verbs, options, and more that only some have."""
    return of_steps(SCENARIOS[name], name in PROFILES)


def of_steps(steps: list[Step], profile: bool = False) -> set[str]:
    code = [step.arguments[0] for step in steps if step.verb in ("run", "interrupted")]
    more = {
        "profile": profile,
        "lines": any("\n" in it for it in code),
        "asks": any("input(" in it for it in code),
        "refused": any("refused" in step.expected for step in steps if step.verb == "run"),
    }
    return {it for it in more if more[it]}.union(*({step.verb, *step.options} for step in steps))


def check(told: Told, expected: dict[str, Any]) -> None:
    for name, value in expected.items():
        if name == "says":
            assert value in told.all.replace("The ", "the ")
        elif name == "never":
            assert value not in told.all
        elif name == "stdout" and told.mixed and expected.get("text"):
            assert told.stdout == f"{value}{expected['text']}\n"
        else:
            assert getattr(told, name) in (value if isinstance(value, set) else (value,)), (name, told)


def perform(door: Door, step: Step) -> None:
    expected, act = dict(step.expected), getattr(door, step.verb)
    if "refused" not in expected:
        given = act(*step.arguments, **step.options)
        if isinstance(given, Told):
            check(given, expected.get("told", expected))
        elif "gives" in expected:
            assert given == expected["gives"]
        return
    with pytest.raises(Refused) as refused:
        act(*step.arguments, **step.options)
    assert refused.value.code in (None, expected["refused"])
    assert expected.get("says", "") in refused.value.words


def play(daemon: Daemon, door: str, session: str, steps: list[Step], profile: str | None = None) -> None:
    kind = DOORS[door]
    opened = {"": kind(daemon, session, profile)}
    try:
        for step in steps:
            if step.of and step.of not in opened:
                opened[step.of] = kind(daemon, f"{session}-{step.of}")
            arguments = (
                tuple(f"{session}-{it}" for it in step.arguments) if step.verb == "branch" else step.arguments
            )
            perform(opened[step.of], replace(step, arguments=arguments))
    finally:
        for it in opened.values():
            it.close()


@pytest.mark.usefixtures("no_sessions_left")
@pytest.mark.parametrize(
    ("door", "name"),
    [
        pytest.param(door, name, id=f"{door}-{name}".replace(" ", "-"))
        for name in SCENARIOS
        for door, kind in DOORS.items()
        if not needs(name) & kind.cannot.keys()
    ],
)
def test_scenario(daemon: Daemon, door: str, name: str) -> None:
    play(daemon, door, f"{door}-{name}".replace(" ", "_"), SCENARIOS[name], PROFILES.get(name))


def test_each_reason_is_needed() -> None:
    """A door that can do more is asked for it."""
    asked = set().union(*map(needs, SCENARIOS))
    for kind in DOORS.values():
        assert kind.cannot.keys() <= asked

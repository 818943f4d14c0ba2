"""lair repl on a terminal: what reaches it, and what it looks like."""

from __future__ import annotations

import base64
import fcntl
import re
import struct
import termios
import time
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from daemon import Daemon
from lair import Client, LairError
from lair import messages as m
from terminal import Terminal

SETTINGS = {"profile default": {"checkpoint": "cell"}}

# What each would do: set the title or the clipboard, have the terminal type an answer, move over what others wrote.
HARM = {
    "title": r"\x1b]0;harm\x07",
    "clipboard": r"\x1b]52;c;aGFybQ==\x07",
    "device": r"\x1b[c",
    "cursor": r"\x1b[6n",
    "settings": r"\x1bP$qm\x1b\\",
    "screen": r"\x1b[2J\x1b[H",
    "mouse": r"\x1b[?1003h",
    "upwards": r"\x1b[5A",
    "other-control": r"\xc2\x9b2J",
}


WAYS = {
    "stdout": "import sys; sys.stdout.buffer.write(b'<%s>'); None",
    "stderr": "import sys; sys.stderr.buffer.write(b'<%s>'); None",
    "result": "type('Harm', (), {'__repr__': lambda self: b'<%s>'.decode()})()",
    "question": "input(b'<%s>'.decode())",
    "error": "raise ValueError(b'<%s>'.decode())",
    "shown": "display(type('Harm', (), {'__repr__': lambda self: b'<%s>'.decode()})())",
}
# Each act with each way and each verb: what filters is the same.
PAIRS = [
    *(("exec", way, act) for way in WAYS for act in HARM),
    *(("repl", way, "title") for way in WAYS),
    *(("repl", "stdout", act) for act in HARM if act != "title"),
]


@pytest.mark.parametrize(("verb", "way", "act"), PAIRS)
def test_a_session_cannot_drive_the_terminal(
    terminal: Callable[..., Terminal], verb: str, way: str, act: str
) -> None:
    code = WAYS[way].replace("%s", HARM[act]).replace("b'", "b'ha' b'")
    if verb == "repl":
        it = terminal("repl", "-s", "harm")
        it.prompt()
        it.type("'be' + 'gin'\r")
        it.expect("begin")
        it.prompt()
        it.type(code + "\r")
        it.expect("ha<")
        seen = "ha<"
        if code.startswith("input"):
            it.expect(">")
            it.type("\r")
        seen += it.prompt()
    else:
        it = terminal("exec", code)
        if code.startswith("input"):
            it.expect(">")
            it.type("\r")
        it.wait()
        seen = it.seen
    if act == "other-control":
        assert "\x9b" not in seen
        return
    said = "left out of what the cell wrote: "
    assert said in seen, seen
    before, _, _ = seen.partition(said)
    assert "\x1b]" not in before and "\x1bP" not in before
    assert "\x1b[c" not in before and "\x1b[6n" not in before and "\x1b[H" not in before
    assert "\x1b[2J" not in before and "\x1b[?1003h" not in before and "\x1b[5A" not in before


def test_a_pipe_gets_every_byte(daemon: Daemon) -> None:
    for act in HARM.values():
        done = daemon.lair("exec", f"print('{act}')")
        assert done.stdout == eval(f"'{act}\\n'")
        assert done.stderr == ""


def test_what_may_move(terminal: Callable[..., Terminal]) -> None:
    """Progress bars, nested ones too; what a cell has set is as it was when it ends."""
    it = terminal("repl", "-s", "moves")
    it.prompt()
    it.type(r"print('a\nb\n\x1b[2A\x1b[31mc\r\x1b[Kd')" + "\r")
    it.expect("a\r\nb\r\n\x1b[2A\x1b[31mc\r\x1b[Kd\r\n\x1b[0m")
    it.prompt()
    it.type("from tqdm import tqdm\r")
    it.prompt()
    it.type("for i in tqdm(range(2)):\r    for j in tqdm(range(2), leave=False): pass\r\r")
    it.expect("100%")
    assert "left out" not in it.prompt()


def test_a_traceback_has_colours(daemon: Daemon, terminal: Callable[..., Terminal]) -> None:
    it = terminal("repl", "-s", "colours", colour=True)
    it.prompt()
    it.type("{'a': 1}\r")
    it.expect("\n{\x1b[32m'a'\x1b[0m: \x1b[36m1\x1b[0m}\r\n")
    it.type("1/0\r")
    it.expect('  File \x1b[35m"<cell 2>"\x1b[0m, line \x1b[35m1\x1b[0m, in \x1b[35m<module>\x1b[0m\r\n')
    it.expect("    \x1b[31m1\x1b[1;31m/\x1b[31m0\x1b[0m\r\n    \x1b[31m~\x1b[1;31m^\x1b[31m~\x1b[0m\r\n")
    it.expect("\x1b[1;35mZeroDivisionError\x1b[0m:\x1b[35m division by zero\x1b[0m\r\n")
    for arguments, coloured in ((), False), (("--color", "never"), False), (("--color=always",), True):
        said = daemon.lair("exec", *arguments, "1/0").stderr
        assert ("\x1b" in said) == coloured
    it = terminal("exec", "1/0")
    it.wait()
    assert "\x1b[" not in it.seen
    it = terminal("exec", "--color", "never", "1/0", colour=True)
    it.wait()
    assert "\x1b[" not in it.seen
    assert "--color: expected" in daemon.lair("exec", "--color", "often", "1").stderr


def resize(it: Terminal, columns: int) -> None:
    fcntl.ioctl(it.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))


def test_values_are_as_wide_as_the_terminal(daemon: Daemon, terminal: Callable[..., Terminal]) -> None:
    it = terminal("repl", "-s", "wide")
    it.prompt()
    it.type("import os, shutil, pandas as pd, numpy as np\r")
    it.prompt()
    it.type("frame = pd.DataFrame({f'column_{i}': [i * 1111111] for i in range(10)})\r")
    it.prompt()
    code = {
        "numbers": "list(range(100))",
        "array": "np.arange(100)",
        "map": "{f'key_{i}': list(range(40)) for i in range(9)}",
        "frame": "frame",
    }
    widest = {}
    for columns in (60, 150):
        resize(it, columns)
        it.type("shutil.get_terminal_size()\r")
        it.expect(f"os.terminal_size(columns={columns}, lines=40)")
        it.prompt()
        for name, expression in code.items():
            it.type(f"print('<'); {expression}\r")
            it.expect("\n<\r\n")
            shown = it.prompt().split("\r\n")
            widest[name, columns] = max(map(len, shown))
            assert widest[name, columns] <= columns, shown
    for name in code:
        assert widest[name, 150] > 100, widest
    it.type("'COLUMNS' in os.environ, {'b': 2, 'a': 'x' * 200, 'c': range(3)}\r")
    it.expect("(True,\r\n {'b': 2,\r\n  'a': 'xxx")
    # What no terminal shows is as Python's own prompt shows it.
    assert daemon.lair("exec", "-s", "wide", "list(range(100))").stdout == f"{list(range(100))}\n"
    assert daemon.lair("exec", "-s", "wide", "'COLUMNS' in os.environ").stdout == "False\n"


# ---- figures ----

PLOT = "import matplotlib.pyplot as plt; p = plt.plot([1, 2])\r"


def pictures(seen: str) -> list[bytes]:
    """What a terminal makes of kitty's sequences."""
    found, data = [], ""
    for keys, piece in re.findall("\x1b_G([^;\x1b]*);([^\x1b]*)\x1b\\\\", seen):
        told = dict(pair.split("=") for pair in keys.split(","))
        assert told["q"] == "2"  # an answer would be typed
        assert len(piece) <= 4096
        assert (told.get("a"), told.get("f")) == ((None, None) if data else ("T", "100"))
        data += piece
        if told["m"] == "0":
            found.append(base64.b64decode(data, validate=True))
            data = ""
    assert not data
    return found


def check_png(data: bytes) -> None:
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    at, kinds = 8, []
    while at < len(data):
        size, kind = struct.unpack_from(">I4s", data, at)
        (crc,) = struct.unpack_from(">I", data, at + 8 + size)
        assert zlib.crc32(data[at + 4 : at + 8 + size]) == crc
        kinds.append(kind)
        at += 12 + size
    assert kinds[0] == b"IHDR" and kinds[-1] == b"IEND" and b"IDAT" in kinds


def kitty(it: Terminal) -> None:
    it.prompt()
    it.type("1\r")
    it.prompt()
    it.question()
    it.type("\x1b_Gi=31;OK\x1b\\")


def test_figures_on_a_terminal_that_shows_them(daemon: Daemon, terminal: Callable[..., Terminal]) -> None:
    it = terminal("repl", "-s", "kitty")
    kitty(it)
    it.type(PLOT)
    it.expect("\r\n")
    seen = it.prompt()
    (picture,) = pictures(seen)
    check_png(picture)
    assert "Figure size" not in seen and "figures go into" not in seen
    it.type("2\r")
    it.expect("\n2\r\n")  # the answer was nothing that was typed
    it.prompt()
    it.type("p[0].figure\r")
    assert len(pictures(it.prompt())) == 1
    it.type("class P:\r    def _repr_png_(self): return b'\\x89PNG\\x1b]0;ha' b'rm\\x07'\r\r")
    it.prompt()
    it.type("display(P()); P()\r")
    said = it.prompt()
    assert "harm" not in said and "\x1b]" not in said  # no picture: a file


# ---- figures, elsewhere ----


def test_a_directory_for_figures_and_a_terminal(
    daemon: Daemon, terminal: Callable[..., Terminal], tmp_path: Path
) -> None:
    it = terminal("repl", "-s", "both", "--figures", str(tmp_path))
    kitty(it)
    it.type(PLOT)
    it.expect("\r\n")
    (picture,) = pictures(it.prompt())
    assert (tmp_path / "figure-1.png").read_bytes() == picture


def test_figures_on_another_terminal(terminal: Callable[..., Terminal], tmp_path: Path) -> None:
    it = terminal("repl", "-s", "files", env={"TMPDIR": str(tmp_path)})
    it.prompt()
    it.type(PLOT)
    it.expect("lair: figures go into ")
    it.expect("--figures DIR names another place\r\nlair: ")
    it.prompt()
    it.type(PLOT)
    assert "go into" not in it.prompt()
    (directory,) = tmp_path.iterdir()
    assert directory.stat().st_mode & 0o777 == 0o700
    assert sorted(path.name for path in directory.iterdir()) == ["figure-1.png", "figure-2.png"]
    check_png((directory / "figure-1.png").read_bytes())


def test_what_the_environment_says_of_figures(terminal: Callable[..., Terminal]) -> None:
    it = terminal("exec", PLOT.strip(), env={"KITTY_WINDOW_ID": "1"})
    it.wait()
    assert len(pictures(it.seen)) == 1
    it = terminal("exec", PLOT.strip(), env={"KITTY_WINDOW_ID": "1", "TMUX": "x"})
    it.wait()
    assert pictures(it.seen) == [] and "<Figure size" in it.seen
    it = terminal("exec", PLOT.strip(), env={"TERM_PROGRAM": "iTerm.app"})
    it.wait()
    ((size, picture),) = re.findall("\x1b]1337;File=inline=1;size=([0-9]+):([^\x07]*)\x07", it.seen)
    check_png(base64.b64decode(picture, validate=True))
    assert len(base64.b64decode(picture)) == int(size) and "Figure size" not in it.seen


def test_a_multiplexer_is_not_asked(terminal: Callable[..., Terminal]) -> None:
    it = terminal("repl", "-s", "tmux", env={"TMUX": "x", "KITTY_WINDOW_ID": "1"})
    it.say(PLOT.strip(), "lair: figures go into ")
    assert not it.asked


# ---- what is written while nothing runs ----


def test_threads_write_above_the_prompt(terminal: Callable[..., Terminal]) -> None:
    it = terminal("repl", "-s", "threads")
    it.prompt()
    it.type("import threading, time; go = threading.Event(); say = 'from a ' + 'thread'\r")
    it.prompt()
    it.type(
        r"threading.Thread(target=lambda: (go.wait(), time.sleep(1), print(say, '\x1b]0;harm\x07'))).start()" + "\r"
    )
    it.prompt()
    it.type("go.set()\r")
    it.prompt()
    it.type("x = 4")
    it.expect("x = 4")
    it.expect("from a thread \r\n")
    it.expect("left out of what the cell wrote: 1 sequence")
    it.expect(">>> x = 4")
    it.type("1\r")
    it.prompt()
    it.type("x\r")
    assert "from a thread" not in it.expect("\n41\r\n")


def test_what_one_has_had_of_it_the_next_cell_has_not(client: Client, session: str) -> None:
    late = "import threading, sys; threading.Timer(0.1, lambda: (print('later'), print('so', file=sys.stderr))).start()"

    def stray() -> m.StrayReply:
        return client.call(m.Stray(id=client.new_id(), session=session), m.StrayReply)

    client.exec("import time", session)
    taken = stray()
    assert (taken.stdout, taken.stderr) == (b"", b"")
    list(client.stream(late, session))
    time.sleep(0.6)
    taken = stray()
    assert (taken.stdout, taken.stderr) == (b"later\n", b"so\n")
    taken = stray()
    assert (taken.stdout, taken.stderr) == (b"", b"")
    assert client.exec("1", session).stdout == b""
    list(client.stream(late, session))
    time.sleep(0.6)
    assert client.exec("1", session).stdout == b"later\n"  # nobody has asked
    with pytest.raises(LairError, match="no_session"):
        client.call(m.Stray(id=client.new_id(), session="nowhere"), m.StrayReply)

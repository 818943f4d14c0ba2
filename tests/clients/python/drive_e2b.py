"""E2B's SDK, unmodified, with a `lair serve` instead of E2B: its address is in the environment.

The first argument is what to try: a function here."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from threading import Timer
from typing import Any

from e2b import (
    AuthenticationException,
    CommandExitException,
    NotFoundException,
    SandboxException,
    TimeoutException,
)
from e2b_code_interpreter import AsyncSandbox, Sandbox


def until(what: Callable[[], Any]) -> Any:
    """What it gives as soon as that is something."""
    for _ in range(600):
        found = what()
        if found:
            return found
        time.sleep(0.05)
    raise AssertionError("it has not come")


def refused(kind: type[BaseException], what: Callable[[], Any]) -> BaseException:
    try:
        what()
    except kind as error:
        return error
    raise AssertionError(f"no {kind.__name__}")


def sandboxes() -> None:
    with Sandbox.create(metadata={"who": "ä&b"}, envs={"NAME": "anna"}, timeout=60) as it:
        assert it.is_running()
        assert it.run_code("import os; os.environ['NAME']").text == "anna"
        other = Sandbox.create(metadata={"who": "other"})
        found = Sandbox.list(query=None).next_items()
        assert {it.sandbox_id, other.sandbox_id} <= {each.sandbox_id for each in found}
        from e2b import SandboxQuery

        named = Sandbox.list(query=SandboxQuery(metadata={"who": "ä&b"})).next_items()
        assert [each.sandbox_id for each in named] == [it.sandbox_id]
        pages = Sandbox.list(limit=1)
        assert len(pages.next_items()) == 1
        assert pages.has_next
        again = Sandbox.connect(it.sandbox_id, timeout=90)
        again.run_code("y = 5")
        assert it.run_code("y").text == "5"
        info = it.get_info()
        assert info.metadata == {"who": "ä&b"}
        assert (info.end_at - info.started_at).total_seconds() > 80
        assert other.kill()
        assert not other.is_running()
        assert not Sandbox.kill(other.sandbox_id)
        refused(NotFoundException, lambda: Sandbox.connect(other.sandbox_id))
        refused(SandboxException, lambda: Sandbox.create("no-such-template"))
        short = Sandbox.create(timeout=1)
        until(lambda: not short.is_running())
        it.set_timeout(1)
        until(lambda: not it.is_running())


def cells() -> None:
    with Sandbox.create(timeout=120) as it:
        heard: list[Any] = []
        done = it.run_code(
            "import sys\nprint('h\\u00e9\\u2028llo')\nprint('err', file=sys.stderr)\n'quoted'",
            on_stdout=heard.append,
            on_stderr=heard.append,
            on_result=heard.append,
        )
        assert [each.line for each in heard[:2]] == ["h\u00e9\u2028llo\n", "err\n"]
        assert done.text == heard[2].text == "quoted"
        assert done.execution_count == 1
        lines = it.run_code("for i in range(100_000): print(f'{i:099}')").logs.stdout
        assert "".join(lines) == "".join(f"{i:099}\n" for i in range(100_000))
        assert it.run_code("5;").results == []
        left = it.run_code("raise SystemExit(3)").error
        assert (left.name, left.value) == ("SystemExit", "3")
        failed = it.run_code("1 / 0").error
        assert failed
        assert (failed.name, failed.value) == ("ZeroDivisionError", "division by zero")
        assert "1 / 0" in failed.traceback
        assert it.run_code("import os; os.getenv('A', 'none')", envs={"A": "1"}).text == "1"
        assert it.run_code("os.getenv('A', 'none')").text == "none"
        assert it.run_code("    x = 1\n    x + 1").text == "2"
        refused(TimeoutException, lambda: it.run_code("import time; time.sleep(100)", timeout=1))
        assert it.run_code("x", timeout=20).text == "1"
        shown = it.run_code("class A:\n    def _repr_html_(self): return '<b>a</b>'\ndisplay(A()); 3").results
        assert [(each.html, each.is_main_result) for each in shown] == [("<b>a</b>", False), (None, True)]
        assert it.run_code("echo $((6 * 7))", language="bash").logs.stdout == ["42\n"]
        refused(SandboxException, lambda: it.run_code("1", language="cobol"))


def drawn() -> None:
    """What E2B's clients draw by themselves."""
    with Sandbox.create(timeout=120) as it:
        assert it.run_code("{'a': [1, 2]}").results[0].json == {"a": [1, 2]}
        assert it.run_code("[1, 'x']").results[0].json == [1, "x"]
        made = "import pandas; pandas.DataFrame({'a': [1, None], 't': pandas.to_datetime(['2020-01-02'] * 2)})"
        table = it.run_code(made).results[0]
        assert table.data == {"a": [1, None], "t": ["2020-01-02T00:00:00"] * 2}
        assert table.html
        line = it.run_code(
            "import matplotlib.pyplot as plt\nplt.plot([1, 2], [3, 4], label='up')\n"
            "plt.title('A line'); plt.xlabel('Time (s)'); None"
        ).results[0]
        assert line.png
        assert line.chart
        assert (line.chart.type.value, line.chart.title, line.chart.x_unit) == ("line", "A line", "s")
        assert (line.chart.elements[0].label, line.chart.elements[0].points) == ("up", [(1, 3), (2, 4)])
        bars = it.run_code("plt.bar(['x', 'y'], [1, 2], label='g'); None").results[0].chart
        assert bars
        assert [(bar.label, bar.group, bar.value) for bar in bars.elements] == [("x", "g", 1), ("y", "g", 2)]
        saved = it.run_code("from PIL import Image; Image.new('RGB', (2, 2)).save('i.png')").results
        assert saved[0].png


def killed() -> None:
    with Sandbox.create(timeout=120) as it:
        command = it.commands.run("sleep 100", background=True, timeout=0)
        Timer(1, it.kill).start()
        error = refused(TimeoutException, lambda: it.run_code("import time; time.sleep(100)", timeout=100))
        assert "killed" in str(error)
        refused(Exception, command.wait)
        assert not it.is_running()


def contexts() -> None:
    with Sandbox.create(timeout=120) as it:
        it.run_code("x = 1")
        made = it.create_code_context(cwd="/home/user/sub")
        assert it.run_code("x", context=made).error
        it.run_code("x = 2; open('here', 'w').close()", context=made)
        assert (it.run_code("x").text, it.run_code("x", context=made).text) == ("1", "2")
        assert it.files.exists("sub/here")
        assert [each.id for each in it.list_code_contexts()][-1] == made.id
        it.restart_code_context(made)
        assert it.run_code("x", context=made).error
        it.remove_code_context(made)
        refused(SandboxException, lambda: it.run_code("x", context=made))
        refused(SandboxException, lambda: it.remove_code_context(made))


def files() -> None:
    with Sandbox.create(timeout=120) as it:
        content = bytes(range(256)) * 20000
        assert it.files.write("a/b.bin", content).path == "/home/user/a/b.bin"
        assert it.files.read("/home/user/a/b.bin", format="bytes") == content
        assert b"".join(it.files.read("a/b.bin", format="stream")) == content
        assert it.run_code("len(open('a/b.bin', 'rb').read())").text == str(len(content))
        both = it.files.write_files([{"path": "one", "data": "1"}, {"path": "two", "data": b"22"}])
        assert [each.name for each in both] == ["one", "two"]
        it.files.write("empty", "")
        assert it.files.read("empty") == ""
        it.files.write("streamed", iter([b"x" * 70000] * 40))
        assert it.files.get_info("streamed").size == 2800000
        assert {each.name for each in it.files.list("/home/user")} == {"a", "one", "two", "empty", "streamed"}
        assert it.files.make_dir("d")
        assert it.files.get_info("d").mode == 0o755
        assert not it.files.make_dir("d")
        assert it.files.rename("one", "d/moved").path == "/home/user/d/moved"
        assert not it.files.exists("one")
        assert it.files.list("/home/user", depth=2)
        it.files.remove("d")
        assert not it.files.exists("d")
        refused(NotFoundException, lambda: it.files.read("none"))
        refused(NotFoundException, lambda: it.files.list("none"))
        it.files.write("/tmp/outside", "of the workspace")
        assert it.files.read("/tmp/outside") == "of the workspace"
        refused(SandboxException, lambda: it.files.write("/etc/passwd", "me"))
        assert not any(each.name.startswith(".e2b") for each in it.files.list("."))
        url = it.download_url("two", use_signature_expiration=60)
        assert urllib.request.urlopen(url).read() == b"22"
        boundary = b'--0123456789abcdef\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\nsigned\r\n--0123456789abcdef--\r\n'
        upload = urllib.request.Request(it.upload_url("by_url"), boundary)
        upload.add_header("Content-Type", "multipart/form-data; boundary=0123456789abcdef")
        urllib.request.urlopen(upload).read()
        assert it.files.read("by_url") == "signed"


def packed() -> None:
    with Sandbox.create(timeout=120) as it:
        content = bytes(range(256)) * 20000
        it.files.write("a", content, gzip=True)
        assert it.run_code("import os; os.path.getsize('a')").text == str(len(content))
        assert it.files.read("a", format="bytes", gzip=True) == content
        it.files.write("b", iter([b"x" * 70000] * 40), gzip=True)
        assert it.files.get_info("b").size == 2800000


def tenants() -> None:
    """The API key is a token of the server."""
    from e2b import RateLimitException  # older ones have none

    alice, bob, few = sys.argv[2:5]
    with Sandbox.create(timeout=120, api_key=alice) as hers, Sandbox.create(timeout=120, api_key=bob) as his:
        assert [each.sandbox_id for each in Sandbox.list(api_key=alice).next_items()] == [hers.sandbox_id]
        assert [each.sandbox_id for each in Sandbox.list(api_key=bob).next_items()] == [his.sandbox_id]
        hers.run_code("x = 'hers'")
        refused(NotFoundException, lambda: Sandbox.connect(hers.sandbox_id, api_key=bob))
        assert not Sandbox.kill(hers.sandbox_id, api_key=bob)
        assert Sandbox.connect(hers.sandbox_id, api_key=alice).run_code("x").text == "hers"
        assert his.run_code("'x' in globals()").text == "False"
        hers.files.write("f", "content")
        url = hers.download_url("f", use_signature_expiration=60)
        assert urllib.request.urlopen(url).read() == b"content"
        assert hers.commands.run("cat f").stdout == "content"
        made = hers.create_code_context()
        assert hers.run_code("1", context=made).text == "1"
    refused(AuthenticationException, lambda: Sandbox.create(api_key="lair_none"))
    one = Sandbox.create(timeout=120, api_key=few)
    began = time.monotonic()
    refused(RateLimitException, lambda: Sandbox.create(timeout=120, api_key=few))
    # It has asked again, as Retry-After says.
    assert time.monotonic() - began >= 1
    one.kill()
    Sandbox.create(timeout=120, api_key=few).kill()


def home() -> None:
    """A profile whose sessions find their workspace where E2B's have it."""
    with Sandbox.create("user", timeout=120) as it:
        it.files.write("/home/user/x", "content")
        assert it.run_code("open('/home/user/x').read()").text == "content"
        assert it.run_code("import os; os.getcwd()").text == "/home/user"
        it.run_code("open('/home/user/y', 'w').write('more')")
        assert it.files.read("y") == "more"
        assert it.commands.run("pwd; cat /home/user/y; echo ~").stdout == "/home/user\nmore/home/user\n"
        made = it.create_code_context(cwd="/home/user/sub")
        assert it.run_code("import os; os.getcwd()", context=made).text == "/home/user/sub"
        assert it.run_code("pwd", language="bash").logs.stdout == ["/home/user\n"]
        assert {each.path for each in it.files.list("/home/user")} == {
            "/home/user/x",
            "/home/user/y",
            "/home/user/sub",
        }


def older() -> None:
    """An SDK that goes to two fixed ports of this machine: all sandboxes are one."""
    it = Sandbox.create()
    assert it.run_code("x = 6 * 7; print('heard'); x").text == "42"
    assert it.run_code("print('heard')").logs.stdout == ["heard\n"]
    assert Sandbox.create().run_code("x").text == "42"
    assert it.run_code("1", context=it.create_code_context(cwd="/home/user/sub")).text == "1"
    it.files.write("a", "content")
    assert it.files.read("/home/user/a") == "content"
    assert {each.name for each in it.files.list(".")} == {"a", "sub"}
    assert it.commands.run("cat a").stdout == "content"
    it.files.make_dir("w")
    watcher = it.files.watch_dir("w")
    it.files.write("w/new", "1")
    assert until(watcher.get_new_events)[0].name == "new"
    assert it.is_running()
    it.kill()


def watching() -> None:
    with Sandbox.create(timeout=120) as it:
        it.files.make_dir("w")
        watcher = it.files.watch_dir("w")
        it.files.write("w/new", "1")
        # It has seen all that was done before it is asked.
        assert watcher.get_new_events()[0].name == "new"
        it.files.remove("w/new")
        assert [(each.name, each.type.value) for each in watcher.get_new_events()][-1] == ("new", "remove")
        assert watcher.get_new_events() == []
        watcher.stop()
        refused(Exception, lambda: it.files.watch_dir("none"))


def commands() -> None:
    with Sandbox.create(timeout=120, envs={"A": "1"}) as it:
        it.files.write("f", "content")
        done = it.commands.run("cat f; echo $A$B; echo err >&2", envs={"B": "2"})
        assert (done.stdout, done.stderr, done.exit_code) == ("content12\n", "err\n", 0), done
        failed = refused(CommandExitException, lambda: it.commands.run("echo x; exit 7"))
        assert isinstance(failed, CommandExitException)
        assert (failed.exit_code, failed.stdout) == (7, "x\n")
        echo = it.commands.run("cat", background=True, stdin=True)
        assert [each.pid for each in it.commands.list()] == [echo.pid]
        it.commands.send_stdin(echo.pid, "line\n")
        it.commands.stream_input(echo.pid, [b"more\n", b"and more\n"])
        it.commands.close_stdin(echo.pid)
        assert echo.wait().stdout == "line\nmore\nand more\n"
        assert it.commands.list() == []
        loop = it.commands.run("while sleep 0.05; do echo tick; done", background=True, timeout=0)
        again = it.commands.connect(loop.pid)
        assert next(iter(again))[0]
        assert it.run_code("1 + 1").text == "2"
        assert loop.kill()
        assert not it.commands.kill(loop.pid)
        refused(CommandExitException, loop.wait)
        refused(TimeoutException, lambda: it.commands.run("sleep 100", timeout=1))
        until(lambda: it.commands.list() == [])
        assert "sub" in it.commands.run("mkdir -p sub && cd sub && pwd").stdout
        assert it.commands.run("pwd", cwd="/home/user/sub").stdout.endswith("/sub\n")
        refused(SandboxException, lambda: it.commands.run("pwd", cwd="/nowhere"))
        heard: list[str] = []
        it.commands.run("echo a; sleep 0.2; echo b", on_stdout=heard.append)
        assert "".join(heard) == "a\nb\n"


def terminal() -> None:
    from e2b import PtySize

    with Sandbox.create(template="plain", timeout=120) as it:
        why = refused(SandboxException, lambda: it.pty.create(PtySize(rows=24, cols=80)))
        assert "no terminals here" in str(why)
    with Sandbox.create(timeout=120) as it:
        pty = it.pty.create(PtySize(rows=24, cols=80), envs={"SAID": "hello"}, timeout=60)
        it.pty.send_stdin(pty.pid, b"stty size; echo $SAID $TERM\n")
        shown: list[bytes] = []
        events = iter(pty)
        while b"hello xterm" not in b"".join(shown):
            shown.append(next(events)[2] or b"")
        assert b"24 80" in b"".join(shown)
        it.pty.resize(pty.pid, PtySize(rows=30, cols=100))
        # bash itself may lose an interrupt that comes while it starts a program; this program has begun.
        trap = b"trap 'stty size; tty; exit 5' INT; echo $((6 * 7)) began; while :; do sleep 0.05; done"
        it.pty.send_stdin(pty.pid, b'sh -c "' + trap.replace(b"$", b"\\$") + b'"; exit 3\n')
        while b"42 began" not in b"".join(shown):
            shown.append(next(events)[2] or b"")
        it.pty.send_stdin(pty.pid, b"\x03")
        ended = refused(CommandExitException, lambda: pty.wait(on_pty=shown.append))
        assert getattr(ended, "exit_code", None) == 3
        assert b"30 100" in b"".join(shown) and b"/dev/pts/" in b"".join(shown), shown
        again = it.pty.create(PtySize(rows=24, cols=80), timeout=0)
        again.disconnect()
        assert it.pty.connect(again.pid).pid == again.pid
        assert it.pty.kill(again.pid) and not it.pty.kill(again.pid)
        until(lambda: it.commands.list() == [])


def pausing() -> None:
    with Sandbox.create(timeout=120) as it:
        it.run_code("x = 42")
        it.pause()
        assert not it.is_running()
        assert it.get_info().state.value == "paused"
        again = Sandbox.connect(it.sandbox_id, timeout=60)
        assert again.run_code("x").text == "42"


async def _asynchronous() -> None:
    it = await AsyncSandbox.create(timeout=120)
    ran = await asyncio.gather(it.run_code("import time; time.sleep(0.2); 1"), it.commands.run("echo 2"))
    assert (ran[0].text, ran[1].stdout) == ("1", "2\n")
    try:
        await it.commands.run("sleep 100", timeout=1)
        raise AssertionError("no deadline")
    except TimeoutException:
        pass
    seen: list[Any] = []
    await it.files.make_dir("w")
    handle = await it.files.watch_dir("w", on_event=seen.append)
    await it.files.write("w/new", "1")
    for _ in range(400):
        if seen:
            break
        await asyncio.sleep(0.05)
    assert seen[0].name == "new"
    await handle.stop()
    await it.kill()


def asynchronous() -> None:
    asyncio.run(_asynchronous())


def restarted() -> None:
    """Whoever knows its id finds a sandbox again after the server was started anew, and any other session."""
    lair, socket = sys.argv[2:4]
    subprocess.run([lair, "exec", "-s", "mine", "--socket", socket, "x = 7"], check=True)
    it = Sandbox.connect("mine")
    assert it.run_code("x").text == "7"
    assert it.commands.run("echo there").stdout == "there\n"


if __name__ == "__main__":
    globals()[sys.argv[1]]()

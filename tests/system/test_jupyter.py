"""`lair jupyter`: a kernel for notebooks, spoken to on bare sockets. tests/clients/python has Jupyter's own clients."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from daemon import ROOT, SANITIZED, USAGE, Daemon, memory_of
from kernels import PORTS, Client, Kernel, eventually, free_ports, kernel_of, sockets_of
from zmtp import GREETING, MORE, Peer, frame, ready

# With IPython loaded beforehand: a magic would load it in each session.
PROFILE = {"checkpoint": "cell", "checkpoints": "16", "preload": "IPython"}


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    it = Daemon({"profile workbench": PROFILE})
    yield it
    it.end()


@pytest.fixture
def kernel(daemon: Daemon) -> Iterator[Kernel]:
    with kernel_of(daemon) as it:
        yield it


@pytest.fixture
def client(kernel: Kernel) -> Client:
    return kernel.client()


def kinds(shown: list[dict[str, Any]]) -> list[str]:
    return [it["type"] for it in shown]


def text_of(shown: list[dict[str, Any]]) -> str:
    return "".join(it["content"]["text"] for it in shown if it["type"] == "stream")


def session_of(daemon: Daemon) -> str:
    """The one that was opened last."""
    return str(daemon.lair_json("ls")["sessions"][-1]["session"])


# ---- cells ----


def test_values_and_output(client: Client) -> None:
    name = client.start("x = 41\nprint('hi')\nx + 1")
    reply = client.reply(name)["content"]
    assert (reply["status"], reply["execution_count"], reply["payload"]) == ("ok", 1, [])
    shown = client.until_idle(name)
    assert kinds(shown) == ["execute_input", "stream", "execute_result"]
    assert shown[0]["content"] == {"code": "x = 41\nprint('hi')\nx + 1", "execution_count": 1}
    assert shown[1]["content"] == {"name": "stdout", "text": "hi\n"}
    assert shown[2]["content"] == {"execution_count": 1, "data": {"text/plain": "42"}, "metadata": {}}


def test_an_error_is_shown_once_and_in_colour(client: Client) -> None:
    reply, shown = client.run("def f():\n    return 1 / 0\nf()")
    assert kinds(shown) == ["error"]
    assert (reply["ename"], reply["evalue"]) == ("ZeroDivisionError", "division by zero")
    trace = "\n".join(reply["traceback"])
    assert "return" in trace and "<cell 1>" in trace and "\033[" in trace


def test_silent_cells_leave_nothing(client: Client) -> None:
    assert client.value("6 * 7") == "42"
    name = client.start("1 + 1", silent=True)
    assert client.reply(name)["content"]["status"] == "ok"
    assert client.until_idle(name) == []
    _, shown = client.run("2 + 2", store_history=False)
    assert kinds(shown) == ["execute_result"]
    assert client.value("_") == "42"


def test_expressions_of_the_client(client: Client) -> None:
    reply, _ = client.run("x = [1]", user_expressions={"a": "x", "b": "1 / 0", "c": "nonsense ("})
    told = reply["user_expressions"]
    assert told["a"] == {"status": "ok", "data": {"text/plain": "[1]"}, "metadata": {}}
    assert (told["b"]["status"], told["b"]["ename"]) == ("error", "ZeroDivisionError")
    assert told["c"]["ename"] == "SyntaxError"


def test_cells_behind_one_that_fails_are_not_run(client: Client) -> None:
    names = [client.start(code) for code in ("import time; time.sleep(0.3); 1 / 0", "x = 1", "y = 2")]
    states = [client.reply(name)["content"]["status"] for name in names]
    assert states == ["error", "aborted", "aborted"]
    assert client.value("'x' in dir()") == "False"


def test_cells_behind_one_that_fails_are_run_if_the_client_says_so(client: Client) -> None:
    names = [client.start("1 / 0", stop_on_error=False), client.start("x = 1")]
    assert [client.reply(name)["content"]["status"] for name in names] == ["error", "ok"]


def test_displays(client: Client) -> None:
    code = "h = display({'text/html': '<b>'}, raw=True, display_id='d')\nupdate_display(2, display_id='d')"
    _, (first, second) = client.run(code)
    assert (first["type"], second["type"]) == ("display_data", "update_display_data")
    assert first["content"]["data"] == {"text/html": "<b>"}
    assert [it["content"]["transient"] for it in (first, second)] == [{"display_id": "d"}] * 2


def test_output_is_cleared_also_for_what_is_printed(client: Client) -> None:
    _, shown = client.run("print('a')\nclear_output(wait=True)\nprint('b')\nclear_output()")
    assert kinds(shown) == ["stream", "clear_output", "stream", "clear_output"]
    assert [it["content"]["wait"] for it in shown if it["type"] == "clear_output"] == [True, False]


def test_much_output_is_complete(client: Client) -> None:
    assert client.printed("for i in range(200_000): print('%07d' % i, 'é' * 10)") == "".join(
        f"{i:07d} {'é' * 10}\n" for i in range(200_000)
    )


def test_half_of_a_character(client: Client) -> None:
    """Somebody cut a text in a browser."""
    code = "[len('\ud83d'), ord('\ud83d'), ord('\U0001f600'), len('\\\\ud83d')]"
    assert client.value(code) == f"[1, {0xFFFD}, {0x1F600}, 6]"


def test_bytes_that_are_no_text(client: Client) -> None:
    printed = client.printed("import os; _ = os.write(1, b'a\\xffb\\n')")
    assert printed == "a\ufffdb\n"
    assert client.value("1") == "1"


def test_questions_of_a_cell(client: Client) -> None:
    name = client.start("from getpass import getpass\nprint(input('who? '), getpass('word? '))", allow_stdin=True)
    for prompt, hidden, answer in (("who? ", False, "Bob"), ("word? ", True, "xyz")):
        asked = client.receive("stdin")
        assert asked["content"] == {"prompt": prompt, "password": hidden}
        client.send("input_reply", {"value": answer}, "stdin", parent=asked["header"])
    assert client.reply(name)["content"]["status"] == "ok"
    assert client.until_idle(name)[-1]["content"]["text"] == "Bob xyz\n"
    assert client.error("input()")["ename"] == "StdinNotImplementedError"


def test_an_interrupt_by_signal(kernel: Kernel, client: Client) -> None:
    name = client.start("print('begun', flush=True)\nwhile True: pass")
    while client.receive("iopub")["type"] != "stream":
        pass
    kernel.process.send_signal(signal.SIGINT)
    assert client.reply(name)["content"]["ename"] == "KeyboardInterrupt"
    assert client.value("1") == "1"


def test_the_third_interrupt_kills(client: Client) -> None:
    client.run("x = 7")
    code = "while True:\n    try:\n        print('.', flush=True)\n        while True: pass\n    except KeyboardInterrupt: pass"
    name = client.start(code)
    for _ in range(3):
        while client.receive("iopub")["type"] != "stream":
            pass
        client.reply(client.send("interrupt_request", {}, "control"), "control")
    reply = client.reply(name)["content"]
    assert reply["status"] == "error" and "the state after cell 1" in "\n".join(reply["traceback"])
    client.until_idle(name)
    assert client.value("x") == "7"


# ---- what no other kernel does ----


def test_exit_does_not_end_the_session(client: Client) -> None:
    client.run("x = 41")
    error = client.error("import sys; sys.exit(3)")
    assert error["ename"] == "SystemExit" and error["evalue"].startswith(
        "the code exited with status 3; to end the session"
    )
    assert client.value("x") == "41"


def test_time_is_over(daemon: Daemon) -> None:
    with kernel_of(daemon, "--timeout", "500ms") as kernel:
        client = kernel.client()
        error = client.error("while True: pass")
        assert (error["ename"], error["traceback"][-1]) == (
            "KeyboardInterrupt",
            "The code was stopped after its 0.5 s.",
        )


def test_undo(client: Client) -> None:
    for code in ("x = 1", "x = 2", "x = 3"):
        client.run(code)
    client.run("1 + 1", store_history=False)  # is none of the notebook's cells
    assert client.printed("%undo") == "The session is in the state after cell 2.\n"
    assert client.value("x") == "2"
    assert client.printed(" %undo 2 \n") == "The session is in the state after cell 1.\n"
    assert client.value("x") == "1"
    assert client.error("%undo x")["ename"] == "UsageError"
    assert client.error("%undo 50")["ename"] == "LairError"


def test_checkpoints(client: Client, daemon: Daemon) -> None:
    client.run("x = 1")
    assert client.printed("%checkpoint one").startswith('Kept as "one": the state after cell 1.')
    client.run("x = [2]; y = 5")
    assert "one" in client.printed("%checkpoints")
    assert client.printed("%diff") == "- x = 1\n+ x = [2]\n+ y = 5\n"
    assert client.printed("%diff one") == "- x = 1\n+ x = [2]\n+ y = 5\n"
    assert client.printed("%restore one") == "The session is in the state after cell 1.\n"
    assert client.value("x") == "1"
    assert 'Session "twig"' in client.printed("%branch twig")
    assert daemon.lair("exec", "-s", "twig", "x").stdout == "1\n"
    assert daemon.lair("close", "twig").returncode == 0
    assert client.printed("%drop one") == ""
    assert client.error("%restore one")["ename"] == "LairError"
    assert "%checkpoint " in client.printed("%help")
    assert client.error("%checkpoint")["evalue"] == "expected %checkpoint NAME"


def test_the_output_of_a_cell_again(client: Client) -> None:
    client.run("print('once'); display(3); 4")
    assert "once" in client.printed("%output")
    assert "4" in client.printed("%output 1")


def test_a_killed_kernel_loses_nothing(kernel: Kernel, client: Client) -> None:
    client.run("x = 41")
    kernel.kill()
    kernel.start()
    assert kernel.client().value("x + 1") == "42"


def test_a_cell_goes_on_without_its_kernel(kernel: Kernel, client: Client) -> None:
    name = client.start("x = 1\nprint('begun', flush=True)\nimport time; time.sleep(4)\nprint('done')\nx + 1")
    while client.receive("iopub")["type"] != "stream":
        pass
    for _ in range(2):
        kernel.kill()
        kernel.start()
        while client.receive("iopub")["type"] != "clear_output":
            pass
    kernel.kill()
    kernel.start()
    shown = client.until_idle(name)
    assert kinds(shown)[0] == "clear_output" and kinds(shown)[-1] == "execute_result"
    assert "".join(it["content"]["text"] for it in shown if it["type"] == "stream") == "begun\ndone\n"
    assert kernel.client().value("x") == "1"


def test_a_cell_of_a_kernel_that_lives_is_nobody_elses(daemon: Daemon) -> None:
    """Two notebooks share a session, and their connection files lie side by side."""
    with kernel_of(daemon, "--session", "shared") as first:
        client = first.client()
        name = client.start("x = 1\nprint('begun', flush=True)\nimport time; time.sleep(3)\nprint('done')")
        while client.receive("iopub")["type"] != "stream":
            pass
        with kernel_of(daemon, "--session", "shared", beside=first) as second:
            other = second.client()
            first.kill()
            first.start()
            shown = client.until_idle(name)
            assert kinds(shown)[0] == "clear_output"
            assert text_of(shown) == "begun\ndone\n"
            assert other.value("x") == "1"
            assert "clear_output" not in kinds(other.heard)


def test_restart_and_shutdown(daemon: Daemon, kernel: Kernel, client: Client) -> None:
    client.run("x = 1; open('kept', 'w').close()")
    session = session_of(daemon)
    assert session.startswith("notebook-")
    reply = client.reply(client.send("shutdown_request", {"restart": True}, "control"), "control")["content"]
    assert reply == {"status": "ok", "restart": True}
    assert kernel.process.wait(20) == 0
    kernel.start()
    second = kernel.client()
    assert second.error("x")["ename"] == "NameError"
    assert second.value("import os; os.path.exists('kept')") == "True"
    second.send("shutdown_request", {"restart": False}, "control")
    assert kernel.process.wait(20) == 0
    assert session not in [it["session"] for it in daemon.lair_json("ls")["sessions"]]


def test_a_cell_that_runs_does_not_hinder_the_end(kernel: Kernel, client: Client) -> None:
    client.start("while True: pass")
    client.send("shutdown_request", {"restart": False}, "control")
    assert kernel.process.wait(20) == 0


def test_a_named_session_stays(daemon: Daemon) -> None:
    with kernel_of(daemon, "--session", "named") as kernel:
        client = kernel.client()
        client.run("x = 5")
        client.send("shutdown_request", {"restart": False}, "control")
        assert kernel.process.wait(20) == 0
    with kernel_of(daemon, "--by-path", JPY_SESSION_NAME="/home/a b/n o.ipynb") as kernel:
        kernel.client().run("y = 6")
        name = session_of(daemon)
        assert name.startswith("notebook:n_o.ipynb-")
    assert daemon.lair("exec", "-s", "named", "x").stdout == "5\n"
    assert daemon.lair("exec", "-s", name, "y").stdout == "6\n"


def test_a_kernel_does_not_outlive_its_launcher(daemon: Daemon) -> None:
    launcher = subprocess.Popen(["sleep", "60"])
    with kernel_of(daemon, JPY_PARENT_PID=str(launcher.pid)) as kernel:
        kernel.client()
        launcher.kill()
        launcher.wait()
        assert kernel.process.wait(20) == 0


def test_a_session_that_is_gone_is_told(daemon: Daemon, client: Client) -> None:
    client.run("x = 1")
    assert daemon.lair("close", session_of(daemon)).returncode == 0
    reply, shown = client.run("x")
    assert reply["ename"] == "NameError"


def test_the_router_dies(daemon: Daemon, client: Client) -> None:
    client.run("x = 41")
    name = client.start("import time; time.sleep(1); x + 1")
    os.kill(daemon.lair_json("status")["pid"], signal.SIGKILL)
    assert client.reply(name)["content"]["status"] == "ok"
    client.until_idle(name)
    assert client.value("x") == "41"


def test_without_a_daemon(daemon: Daemon) -> None:
    nobody = str(daemon.directory / "run/nobody")
    with kernel_of(daemon, "--socket", nobody, "--no-start") as kernel:
        client = kernel.client()
        error = client.error("1")
        assert error["ename"] == "LairError" and nobody in error["evalue"]
        assert client.request("complete_request", {"code": "pri", "cursor_pos": 3})["status"] == "error"


def told(output: dict[str, Any]) -> str:
    """A message's content, or an output in a notebook's file: what is not bound to a run."""
    text = output.get("data", {}).get("text/plain", output.get("ename", ""))
    return "".join(text)


def written(outputs: list[dict[str, Any]]) -> str:
    return "".join("".join(it["text"]) for it in outputs if it.get("name") == "stdout")


def test_the_example() -> None:
    """Each of its cells shows what the file says."""
    cells = json.loads((ROOT / "examples/survival.ipynb").read_text())["cells"]
    daemon = Daemon({"profile workbench": PROFILE})
    try:
        with kernel_of(daemon) as kernel:
            client = kernel.client()
            for cell in cells:
                if cell["cell_type"] == "code":
                    _, shown = client.run("".join(cell["source"]))
                    rich = [told(it["content"]) for it in shown if it["type"] in ("execute_result", "error")]
                    assert rich == [told(it) for it in cell["outputs"] if it["output_type"] != "stream"], shown
                    assert written([it["content"] for it in shown]) == written(cell["outputs"])
        daemon.end()
    finally:
        daemon.close()


# ---- questions ----


def test_questions(client: Client) -> None:
    assert client.request("is_complete_request", {"code": "for x in y:"}) == {
        "status": "incomplete",
        "indent": "    ",
    }
    assert client.request("is_complete_request", {"code": "1"}) == {"status": "complete"}
    found = client.request("complete_request", {"code": "é = prin", "cursor_pos": 8})
    assert (found["matches"], found["cursor_start"], found["cursor_end"]) == (["print"], 4, 8)
    assert client.request("complete_request", {"code": "prin", "cursor_pos": 0})["matches"] == []
    told = client.request("inspect_request", {"code": "print(", "cursor_pos": 5, "detail_level": 0})
    assert told["found"] and "Docstring" in told["data"]["text/plain"]
    assert not client.request("inspect_request", {"code": "nothing", "cursor_pos": 3})["found"]
    assert client.request("comm_info_request", {}) == {"status": "ok", "comms": {}}
    info = client.request("kernel_info_request", {}, "control")
    assert (info["protocol_version"], info["language_info"]["name"]) == ("5.3", "python")


def test_history(client: Client) -> None:
    for code in ("a = 1", "b = 2", "a = 1"):
        client.run(code)

    def history(**wanted: Any) -> list[Any]:
        told: list[Any] = client.request("history_request", {"output": False, "raw": True, **wanted})["history"]
        return told

    assert history(hist_access_type="tail", n=2) == [[0, 2, "b = 2"], [0, 3, "a = 1"]]
    assert history(hist_access_type="range", session=0, start=1, stop=3) == [[0, 1, "a = 1"], [0, 2, "b = 2"]]
    assert history(hist_access_type="search", pattern="a*", unique=True) == [[0, 3, "a = 1"]]
    assert history(hist_access_type="tail", n=1, output=True) == [[0, 3, ["a = 1", None]]]


def test_in_and_out(client: Client) -> None:
    client.run("7")
    client.run("8")
    assert client.value("In[1], Out[1], _1, _, __, _i2") == "('7', 7, 7, 8, 7, '8')"


def test_the_kernel_answers_while_a_cell_runs(client: Client) -> None:
    name = client.start("import time; time.sleep(1)")
    client.reply(client.send("kernel_info_request", {}))
    states: list[str] = []
    while states[-2:] != ["idle", "busy"]:
        message = client.receive("iopub")
        if message["type"] == "status":
            states.append(message["content"]["execution_state"])
    assert client.reply(name)["content"]["status"] == "ok"


# ---- IPython ----


def test_pages_and_the_text_of_the_next_cell(client: Client) -> None:
    reply, shown = client.run("zip?")
    (page,) = reply["payload"]
    assert page["source"] == "page" and "zip" in page["data"]["text/plain"] and shown == []
    client.run("%%writefile made.py\nmade = 3")
    reply, shown = client.run("%load made.py")
    (text,) = reply["payload"]
    assert (text["source"], text["replace"]) == ("set_next_input", True) and "made = 3" in text["text"]


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("%matplotlib inline", ""),
        ("%time 6 * 7", "Wall time"),
        ("%timeit -n1 -r1 1", "per loop"),
        ("with open('s.py', 'w') as file: _ = file.write('print(40 + 2)')\n%run s.py", "42"),
        ("%cd .", "/"),
        ("%env HOME", ""),
        ("%who", "shell"),
        ("%%capture out\nprint(1)", ""),
        ("shell = get_ipython(); print(shell.kernel.get_parent()['header']['msg_type'])", "execute_request"),
    ],
)
def test_what_people_type(client: Client, code: str, said: str) -> None:
    client.run("shell = get_ipython()")
    reply, shown = client.run(code)
    assert reply["status"] == "ok", reply
    assert said in "".join(it["content"].get("text", "") for it in shown)


@pytest.mark.parametrize("code", ["!ls", "%%bash\nls"])
def test_programs_are_refused_where_they_are_not_granted(client: Client, code: str) -> None:
    error = client.error(code)
    assert error["ename"] == "PermissionError" and "subprocess-not-granted" in error["evalue"]


# ---- comms, where nothing has any; tests/clients/python has widgets ----


def test_a_comm_that_nobody_knows(client: Client, kernel: Kernel) -> None:
    name = client.send("comm_open", {"comm_id": "c", "target_name": "jupyter.widget.control", "data": {}})
    (closed,) = client.until_idle(name)
    assert (closed["type"], closed["content"]) == ("comm_close", {"comm_id": "c", "data": {}})
    assert client.until_idle(client.send("comm_msg", {"comm_id": "c", "data": {}})) == []
    assert client.value("1") == "1"  # no cell was counted
    assert client.run("2")[0]["execution_count"] == 2
    kernel.kill()
    kernel.start()
    other = kernel.client()  # which does not know whether the session has comms
    name = other.send("comm_open", {"comm_id": "c", "target_name": "x", "data": {}})
    assert kinds(other.until_idle(name)) == ["comm_close"]
    assert other.request("comm_info_request", {})["comms"] == {}


@pytest.mark.parametrize(
    "notice",
    [
        '{"type": "message", "msg_type": "status", "content": {"execution_state": "dead"}}',
        '{"type": "message", "msg_type": "comm_msg", "content": 5, "metadata": [], "sizes": [99, -1]}',
        '{"type": "comms", "comms": 7}',
        '{"type": "payload"}',
        "[1]",
        "nonsense",
    ],
)
def test_a_session_says_what_it_likes(client: Client, notice: str) -> None:
    code = f"display({{'application/vnd.lair.notebook+json': {notice!r}, 'application/vnd.lair.buffers': b'x'}}, raw=True)"
    _, shown = client.run(code)
    assert kinds(shown) in ([], ["comm_msg"], ["stream"])
    assert client.value("1") == "1"


@pytest.mark.twice
def test_a_session_says_too_much_for_its_reply(client: Client, kernel: Kernel) -> None:
    code = (
        'notice = \'{"type": "payload", "payload": {"source": "page", "text": "%s"}}\' % (\'x\' * (1 << 20))\n'
        "for _ in range(120): display({'application/vnd.lair.notebook+json': notice}, raw=True)"
    )
    before = memory_of(kernel.process.pid, "VmHWM")
    reply, _ = client.run(code)
    assert len(reply["payload"]) == 15
    if not SANITIZED:
        assert memory_of(kernel.process.pid, "VmHWM") - before < 100 << 20
    reply, _ = client.run("1")
    assert reply["payload"] == []


# ---- VS Code ----


@pytest.fixture
def command(daemon: Daemon) -> list[str]:
    """What the specification says."""
    told = daemon.lair("jupyter", "install", "--prefix", str(daemon.directory), "--name", "code")
    spec = json.loads((Path(told.stdout.strip()) / "kernel.json").read_text())
    assert spec["interrupt_mode"] == "message"
    return list(spec["argv"])


def ports_answer(kernel: Kernel) -> bool:
    """It looks whether the kernel listens, by a connection that says nothing and ends."""
    try:
        for port in PORTS:
            socket.create_connection((kernel.connection["ip"], kernel.connection[port]), 1).close()
    except OSError:
        return False
    return True


def test_as_vs_code_does_it(daemon: Daemon, command: list[str]) -> None:
    """It starts the specification's command itself, over TCP; waits for the ports; runs cells in silence to set
    things up; interrupts by message; and restarts by a second kernel with other ports, before it ends the first."""
    with kernel_of(daemon, command=command) as first, kernel_of(daemon, command=command) as second:
        eventually(lambda: ports_answer(first) and ports_answer(second))
        client, other = first.client(), second.client()
        info = client.request("kernel_info_request", {})
        assert info["language_info"]["file_extension"] == ".py"
        for code in ("import os as _os; _os.chdir('.')", "%matplotlib inline", "import sys; sys.path.append('x')"):
            name = client.start(code, silent=True, store_history=False)
            assert client.reply(name)["content"]["status"] == "ok"
            assert client.until_idle(name) == []
        name = client.start(
            "x = input('? ')\nprint('got', flush=True)\nwhile True: pass", allow_stdin=True, stop_on_error=True
        )
        asked = client.receive("stdin")
        client.send("input_reply", {"value": "5", "status": "ok"}, "stdin", parent=asked["header"])
        while client.receive("iopub")["type"] != "stream":
            pass
        client.reply(client.send("interrupt_request", {}, "control"), "control")
        assert client.reply(name)["content"]["ename"] == "KeyboardInterrupt"
        assert [it["content"]["ename"] for it in client.until_idle(name) if it["type"] == "error"] == [
            "KeyboardInterrupt"
        ]
        assert client.value("x") == "'5'"
        assert other.error("x")["ename"] == "NameError"
        client.send("shutdown_request", {"restart": False}, "control")
        first.process.send_signal(signal.SIGTERM)
        assert first.process.wait(20) == 0
        assert other.value("6 * 7") == "42"


# ---- clients that are hostile, broken, or many ----

SENSELESS: list[Any] = [None, 5, -1, 1e300, "x" * 70_000, "\0\ud800", [], {}, [[]] * 50, {"a": {"b": None}}, True]
FIELDS = {
    "execute_request": ("code", "silent", "store_history", "user_expressions", "allow_stdin", "stop_on_error"),
    "complete_request": ("code", "cursor_pos"),
    "inspect_request": ("code", "cursor_pos", "detail_level"),
    "is_complete_request": ("code",),
    "history_request": ("hist_access_type", "n", "start", "stop", "session", "pattern", "unique", "output", "raw"),
    "comm_info_request": ("target_name",),
    "comm_open": ("comm_id", "target_name", "data"),
    "comm_msg": ("comm_id", "data"),
    "comm_close": ("comm_id", "data"),
    "kernel_info_request": ("x",),
    "interrupt_request": ("x",),
    "input_reply": ("value",),
}
SENSIBLE = {"code": "1", "cursor_pos": 1, "hist_access_type": "range", "comm_id": "c", "stop_on_error": False}


@pytest.mark.parametrize("kind", FIELDS)
def test_messages_that_make_no_sense(client: Client, kind: str) -> None:
    """Of somebody who has the key. Each request is answered all the same."""
    contents = [{**SENSIBLE, field: value} for field in FIELDS[kind] for value in SENSELESS]
    contents += [dict.fromkeys(FIELDS[kind], value) for value in SENSELESS]
    channel = "stdin" if kind == "input_reply" else "shell"
    names = [client.send(kind, content, channel, buffers=[b"", b"\xff"]) for content in contents]
    if kind.endswith("_request"):
        replies = [client.reply(name)["content"]["status"] for name in names]
        assert set(replies) <= {"ok", "error", "aborted", "complete", "incomplete", "invalid", "unknown"}
    assert client.value("6 * 7") == "42"


@pytest.mark.parametrize(
    "header", [{"msg_type": 5}, {"session": {}, "msg_id": []}, {"date": None, "version": "99"}]
)
def test_headers_that_make_no_sense(client: Client, header: dict[str, Any]) -> None:
    name, frames = client.frames("execute_request", {"code": "x = 1; print(x); 1 / 0", "stop_on_error": False})
    documents = [json.dumps({**json.loads(frames[2]), **header}).encode(), *frames[3:6]]
    client.shell.send_multipart([frames[0], client.sign(documents), *documents])
    assert client.value("6 * 7") == "42"
    assert name


def test_peers_that_do_not_speak_as_they_should(daemon: Daemon) -> None:
    """On the sockets themselves, with no key: what is no ZeroMQ, a greeting that does not end, other kinds of peers,
    subscriptions that say nothing, and a heartbeat of many parts."""
    with kernel_of(daemon, transport="ipc") as kernel:
        client = kernel.client()
        client.run("x = 41")
        open_ones = []
        for number in range(1, 6):
            path = kernel.directory / f"s-{number}"
            for kind in (b"DEALER", b"SUB", b"REQ", b"PUB", b"ROUTER", b"PAIR", b"nonsense"):
                it = Peer(path)
                it.send(GREETING)
                it.send(ready(kind, b"\0" * 255))
                with contextlib.suppress(OSError):
                    it.send(frame(b"\1" + b"x" * 300) + frame(b"\0") + frame(b"", MORE) * 50 + frame(b"\2"))
                open_ones.append(it)
            for data in (b"GET / HTTP/1.1\r\n\r\n", bytes(4096), GREETING[:20], b"\xff" * 4096):
                it = Peer(path)
                with contextlib.suppress(OSError):
                    it.send(data)
                open_ones.append(it)
        assert client.value("x + 1") == "42"
        assert kernel.process.poll() is None


def test_a_flood_of_requests_of_several(kernel: Kernel, client: Client) -> None:
    others = [kernel.client() for _ in range(4)]
    names = [(it, it.start(f"{number}")) for number in range(25) for it in others]
    client.value("1")
    for it, name in names:
        assert it.reply(name)["content"]["status"] == "ok"


def test_messages_that_are_not_signed(kernel: Kernel, client: Client) -> None:
    stranger = Client(kernel.connection, key=b"wrong")
    kernel.clients.append(stranger)
    stranger.start("x = 1")
    _, frames = client.frames("execute_request", {"code": "x = 2"})
    for bad in (
        [],
        [b""],
        frames[:1],
        frames[:3],
        frames[1:],
        [frames[0], b"", *frames[2:]],
        [frames[0], b"\0" * 64, *frames[2:]],
    ):
        client.shell.send_multipart(bad or [b"x"])
    broken = [b"{", b"{}", b"{}", b"{}"]
    for documents in (broken, [b"[]"] * 4, [b"{}"] * 4, [b"\xff"] * 4, [b"[" * 5000] * 4):
        client.shell.send_multipart([b"<IDS|MSG>", client.sign(documents), *documents])
    client.send("nonsense_request", {})
    client.send("execute_request", {"code": 5, "stop_on_error": False})
    assert client.value("'x' in dir()") == "False"
    assert not stranger.shell.poll(200)


def test_a_message_that_comes_twice(client: Client) -> None:
    client.run("x = 0")
    name, frames = client.frames("execute_request", {"code": "x += 1"})
    client.shell.send_multipart(frames)
    client.shell.send_multipart(frames)
    client.reply(name)
    client.until_idle(name)
    assert client.value("x") == "1"


def test_messages_that_are_huge(client: Client) -> None:
    with contextlib.suppress(Exception):
        client.shell.send_multipart([b"<IDS|MSG>", *[b"x" * (40 << 20)] * 3])
    client.shell.send_multipart([b"x"] * 5000)
    assert client.value("1") == "1"


@pytest.mark.shipped
@pytest.mark.parametrize("size", [1 << 20, 1])
def test_a_message_that_does_not_end(daemon: Daemon, size: int) -> None:
    """ZeroMQ keeps its frames, as long as there is memory for them: then the connection ends, or the kernel does. The
    session does not."""
    with kernel_of(daemon, transport="ipc") as kernel:
        kernel.client().run("x = 41")
        resource.prlimit(kernel.process.pid, resource.RLIMIT_DATA, (192 << 20, resource.RLIM_INFINITY))
        stranger = Peer(kernel.directory / "s-1").greet()
        frames = frame(bytes(size), MORE) * ((1 << 20) // size)
        with pytest.raises(OSError):
            for _ in range(400):
                stranger.send(frames)
        if size == 1:
            assert kernel.process.wait(20) == -signal.SIGABRT
            kernel.start()
        assert memory_of(kernel.process.pid, "VmHWM") < 256 << 20
        assert kernel.client().value("x") == "41"


@pytest.mark.shipped
def test_a_daemon_that_a_kernel_starts_may_take_more() -> None:
    """A limit that the daemon had would be one of its sessions."""
    daemon = Daemon({"profile workbench": PROFILE})
    try:
        daemon.terminate()
        with kernel_of(daemon, "--config", str(daemon.config), LAIR_NO_START="") as kernel:
            code = "import resource; resource.getrlimit(resource.RLIMIT_DATA)[0] != 1 << 30"
            assert kernel.client().value(code) == "True"
            assert resource.prlimit(kernel.process.pid, resource.RLIMIT_DATA)[0] == 1 << 30
    finally:
        daemon.lair("stop")
        daemon.close()


MANY = "for i in range(60_000): print('%07d' % i, 'x' * 990)"
MUCH = "".join(f"{i:07d} {'x' * 990}\n" for i in range(60_000))
LITTLE_MEMORY = (1 << 30) if SANITIZED else (48 << 20)


def test_a_client_that_does_not_read_for_a_while_misses_nothing(kernel: Kernel, client: Client) -> None:
    """The cell waits for it."""
    slow, before = kernel.client(queue=1), memory_of(kernel.process.pid)
    name = client.start(MANY)
    held: list[dict[str, Any]] = []
    while not held or client.iopub.poll(200):
        held.append(client.receive("iopub"))
    assert len(text_of(held)) < len(MUCH)
    assert memory_of(kernel.process.pid) < before + LITTLE_MEMORY
    assert text_of(slow.until_idle(name)) == MUCH
    assert text_of(held + client.until_idle(name)) == MUCH


def test_a_client_that_does_not_read_holds_up_the_others_for_seconds(kernel: Kernel, client: Client) -> None:
    slow, before = kernel.client(queue=1), memory_of(kernel.process.pid)
    name = client.start(MANY)
    assert text_of(client.until_idle(name)) == MUCH
    assert memory_of(kernel.process.pid, "VmHWM") < before + LITTLE_MEMORY
    client.reply(name)
    while slow.iopub.poll(300):
        slow.iopub.recv_multipart()
    name = client.start("1")
    client.reply(name)
    for it in (slow, client):
        assert "were dropped for it" in text_of(it.until_idle(name))
    assert client.printed("print(2)") == "2\n"


def test_two_clients(kernel: Kernel, client: Client) -> None:
    other = kernel.client()
    name = client.start("x = 'mine'; x")
    assert client.reply(name)["content"]["status"] == "ok"
    assert [it["type"] for it in other.until_idle(name)] == ["execute_input", "execute_result"]
    assert other.value("x") == "'mine'"
    assert not client.shell.poll(100)


def test_a_client_that_vanishes(kernel: Kernel, client: Client) -> None:
    other = kernel.client()
    other.start("print('x' * 1_000_000); input()", allow_stdin=True)
    other.receive("stdin")
    other.close()
    client.reply(client.send("interrupt_request", {}, "control"), "control")
    assert client.value("1") == "1"


def test_files_instead_of_ports(daemon: Daemon) -> None:
    with kernel_of(daemon, transport="ipc") as kernel:
        client = kernel.client()
        assert client.value("6 * 7") == "42"
        assert sockets_of(kernel.directory) == [(f"s-{i}", 0o700) for i in range(1, 6)]


@pytest.mark.parametrize("transport", ["tcp", "ipc"])
def test_with_keys_strangers_hear_nothing(daemon: Daemon, transport: str) -> None:
    with kernel_of(daemon, curve=True, transport=transport) as kernel:
        client = kernel.client()
        stranger = Client(kernel.connection, curve=False)
        kernel.clients.append(stranger)
        stranger.start("x = 1")
        stranger.send("shutdown_request", {"restart": False}, "control")
        assert client.printed("for i in range(100): print('the word')").startswith("the word")
        assert client.value("'x' in dir()") == "False"
        assert not stranger.iopub.poll(300)


@pytest.mark.parametrize("key", ["", "~" * 40, "0" * 39, 5])
def test_keys_that_are_none(daemon: Daemon, key: str | int) -> None:
    """Without encryption that was asked for there is no kernel."""
    path = daemon.directory / "wrong.json"
    ports = dict(zip(PORTS, free_ports(5)))
    path.write_text(json.dumps({"transport": "tcp", "ip": "127.0.0.1", "curve_secretkey": key, **ports}))
    done = daemon.lair("jupyter", "run", "-f", str(path))
    assert done.returncode == 1 and "Key was rejected" in done.stderr


def test_without_signatures(daemon: Daemon) -> None:
    with kernel_of(daemon, key="") as kernel:
        assert kernel.client().value("6 * 7") == "42"


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "{}",
        '{"transport": "carrier pigeon", "ip": "x"}',
        '{"signature_scheme": "md5", "ip": "127.0.0.1"}',
    ],
)
def test_connection_files_that_are_none(daemon: Daemon, content: str) -> None:
    path = daemon.directory / "wrong.json"
    path.write_text(content)
    done = daemon.lair("jupyter", "run", "-f", str(path))
    assert done.returncode == 1 and done.stderr.startswith("lair jupyter: ")


def test_ports_that_are_taken(daemon: Daemon, kernel: Kernel, client: Client) -> None:
    done = daemon.lair("jupyter", "run", "-f", str(kernel.file))
    assert done.returncode == 1 and "Address already in use" in done.stderr


# ---- the command line ----


def test_install(daemon: Daemon) -> None:
    done = daemon.lair(
        "jupyter", "install", "--prefix", str(daemon.directory), "--name", "n", "--session", "s", "--by-path"
    )
    directory = daemon.directory / "share/jupyter/kernels/n"
    assert done.stdout == f"{directory}\n"
    spec = json.loads((directory / "kernel.json").read_text())
    assert spec["argv"][1:] == ["jupyter", "run", "-f", "{connection_file}", "--session", "s", "--by-path"]
    assert (spec["interrupt_mode"], spec["language"], spec["display_name"]) == (
        "message",
        "python",
        "Python (Lair: s)",
    )
    assert (directory / "logo-svg.svg").read_text().startswith("<svg")
    home = daemon.lair("jupyter", "install", env={"JUPYTER_DATA_DIR": str(daemon.directory / "data")})
    assert home.stdout == f"{daemon.directory}/data/kernels/lair\n"
    venv = daemon.lair("jupyter", "install", "--sys-prefix", env={"VIRTUAL_ENV": str(daemon.directory / "venv")})
    assert venv.stdout == f"{daemon.directory}/venv/share/jupyter/kernels/lair\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ["run"],
        ["install", "--name", "a/b"],
        ["install", "--name", "a b"],
        ["install", "--user", "--prefix", "/x"],
        ["neither"],
        [],
    ],
)
def test_wrong_command_lines(daemon: Daemon, arguments: list[str]) -> None:
    assert daemon.lair("jupyter", *arguments).returncode == USAGE


def test_the_default_profile_where_there_is_none_for_notebooks() -> None:
    daemon = Daemon()
    try:
        with kernel_of(daemon) as kernel:
            assert kernel.client().value("6 * 7") == "42"
            assert daemon.lair_json("ls")["sessions"][0]["profile"] == "default"
        daemon.end()
    finally:
        daemon.close()

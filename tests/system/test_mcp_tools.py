"""lair mcp: what its tools do with sessions, what of that a model is shown, and what it says they are."""

from __future__ import annotations

import base64
import json
import os
import platform
from pathlib import Path
from typing import Any

import pytest

import lair
from daemon import BIN, Daemon, wait_until
from lair import Client, Connection
from lair.tools import Tools
from mcp_server import SCHEMAS, Json, McpServer, checked, conform

IMPORTED = Path("/usr/share/common-licenses")
SETTINGS = {
    "profile default": {"checkpoint": "cell", "import": str(IMPORTED), "cell_timeout_max": "1h"},
    "profile small": {"spares": "0", "memory": "512M"},
    "profile shell": {"spares": "0", "subprocess": "on"},
    "profile bare": {"checkpoint": "off"},
    "profile strict": {"forbid": "module seaborn: Do not use seaborn", "forbid_in": "exec"},
    "profile brief": {"on_expire": "save", "idle_ttl": "300ms"},
}

MINIMAL = [
    "python_execute_once",
    "python_session_start",
    "python_session_execute",
    "python_result",
    "python_session_reset",
    "python_session_shutdown",
    "copy_to_sandbox",
    "check_syntax",
]
FULL = [
    *MINIMAL,
    "python_session_undo",
    "python_session_branch",
    "python_session_install",
    "python_session_vars",
    "python_session_diff",
    "python_session_files",
]


# ---- tools ----


def test_tools_are_listed_in_a_set(daemon: Daemon) -> None:
    for arguments, expected in (((), MINIMAL), (("--tools", "minimal"), MINIMAL), (("--tools", "full"), FULL)):
        with McpServer(daemon, *arguments) as server:
            assert [tool["name"] for tool in server.request("tools/list")["tools"]] == expected
    with McpServer(daemon) as server:
        assert server.refused("tools/call", {"name": "python_session_undo"})["code"] == -32602
    assert daemon.lair("mcp", "--tools", "some").returncode == 2


def test_the_default_session(daemon: Daemon, client: Client) -> None:
    with McpServer(daemon, "--session", "mine") as server:
        assert server.call("python_session_start") == {"ok": True, "session_id": "mine", "new": True}
        assert server.call("python_session_execute", code="x = 1", session_id=None)["session_id"] == "mine"
        assert server.call("python_session_start", session_id="mine")["new"] is False
        assert server.call("python_session_shutdown")["state"] == "ended"


def test_two_servers_share_no_session_that_nobody_has_named(daemon: Daemon, client: Client) -> None:
    """Two conversations of one user, at the same time: neither reads or writes what is the other's."""
    with McpServer(daemon) as first, McpServer(daemon, modern=False) as second:
        here = first.call("python_session_execute", code="x = 'mine'")["session_id"]
        there = second.call("python_session_execute", code="'x' in globals()")
        assert there["text"] == "False" and there["session_id"] != here
        second.call("python_session_execute", code="x = 'theirs'; open('f', 'w').close()")
        assert first.call("python_session_execute", code="import os; x, os.listdir()")["text"] == "('mine', [])"
        assert first.call("python_session_start") == {"ok": True, "session_id": here, "new": False}
        assert {info.session for info in client.list()} == {here, there["session_id"]}
        # It outlives its server, and is found by the name that each result has told.
        assert first.end() == 0
        assert second.run("x", here)["text"] == "'mine'"
        for name in (here, there["session_id"]):
            second.call("python_session_shutdown", session_id=name)


def test_once_remembers_nothing(server: McpServer) -> None:
    assert server.call("python_execute_once", code="x = 1; x")["text"] == "1"
    it = server.call("python_execute_once", code="x")
    assert it["error"]["name"] == "NameError" and it["state"] == "ended" and "session_id" not in it
    assert it["stderr"].count("NameError") == 1


def test_the_timeout_of_calls_that_name_none(daemon: Daemon, session: str) -> None:
    with McpServer(daemon, "--timeout", "300ms") as server:
        assert server.run("while True: pass", session)["cause"] == "timeout"
        assert server.run("import time; time.sleep(0.6)", session, timeout_sec=20)["ok"]


def test_a_session_that_expired_and_came_back_says_so(daemon: Daemon, client: Client, session: str) -> None:
    with McpServer(daemon, "--profile", "brief") as server:
        for name, arguments in (("python_session_execute", {"code": "1"}), ("python_session_start", {})):
            server.run("x = 41; g = (i for i in ())", session)
            wait_until(lambda: session not in [info.session for info in client.list()], "it expires")
            it = server.call(name, session_id=session, **arguments)
            assert it["loaded"] == ["x"] and [v["name"] for v in it["not_loaded"]] == ["g"]
            assert "and its files and all that did not come back are gone" in it["note"]


def test_what_is_empty_is_left_out(server: McpServer, session: str) -> None:
    assert server.run("x = 1", session) == {"ok": True, "session_id": session, "cell": 1, "state": "kept"}
    it = server.run("while True: pass", session, timeout_sec=0.3)
    assert it["error"] == {"name": "KeyboardInterrupt"} and "stdout" not in it
    it = server.call("check_syntax", code="x = (1")
    assert it == {
        "ok": False,
        "error": {"name": "SyntaxError", "value": "'(' was never closed"},
        "line": 1,
        "offset": 5,
        "context": "x = (1",
    }


def test_a_rule_that_is_broken_is_told(daemon: Daemon, session: str) -> None:
    with McpServer(daemon, "--profile", "strict") as server:
        it = server.run("x = 1\nimport seaborn", session)
        assert (it["ok"], it["cause"], it["state"]) == (False, "forbidden", "kept")
        assert "Do not use seaborn" in it["stderr"] and "not run" in it["note"] and "as it was" in it["note"]
        it = server.call("check_syntax", code="import seaborn")
        assert it["error"] == {"name": "Rule", "value": "Do not use seaborn"}


def test_long_output_is_cut_in_the_middle(server: McpServer, session: str) -> None:
    for token in (None, "t"):
        it = server.call(
            "python_session_execute", token, code="print('ä' * 10**6); 'ö' * 10**5", session_id=session
        )
        assert it["stdout"].startswith("ä" * 4999) and it["stdout"].endswith("ä" * 4999 + "\n")
        assert "bytes left out" in it["stdout"] and len(it["stdout"]) < 10_100 and "�" not in it["stdout"]
        assert "bytes left out" in it["text"]


def test_output_that_is_no_text(server: McpServer, session: str) -> None:
    it = server.run(r"import os; os.write(1, b'a\xff\x00b'); None", session)
    assert it["stdout"] == "a\ufffd\x00b"


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"code": 1}, "code must be a string"),
        ({"code": None}, "code is missing"),
        ({}, "code is missing"),
        ({"code": "1", "session_id": 5}, "session_id must be a string"),
        ({"code": "1", "session_id": "a\0b"}, "session_id has a NUL in it"),
        ({"code": "1", "timeout_sec": "5"}, "timeout_sec must be a number above 0"),
        ({"code": "1", "timeout_sec": 0}, "timeout_sec must be a number above 0"),
        ({"code": "1", "timeout_sec": True}, "timeout_sec must be a number above 0"),
        ({"code": "1", "profile": "x"}, 'python_session_execute has no argument "profile"'),
    ],
)
def test_wrong_arguments_are_told_to_the_model(server: McpServer, arguments: Json, complaint: str) -> None:
    it = server.call("python_session_execute", **arguments)
    assert it == {"ok": False, "error": {"name": "bad_arguments", "value": complaint}}


def test_what_the_daemon_refuses_is_told_to_the_model(server: McpServer) -> None:
    it = server.call("python_session_reset", session_id="nobody")
    assert it["error"]["name"] == "no_session" and "nobody" in it["error"]["value"]
    assert server.run("1", "not an id")["error"]["name"] == "bad_request"
    assert server.call("python_execute_once", code="1", timeout_sec=1e9)["error"]["name"] == "limit"
    assert "null bytes" in server.call("python_execute_once", code="1\0")["stderr"]


def test_branch_of_an_older_state(server: McpServer, session: str) -> None:
    cells = [server.run(f"x = {n}", session)["cell"] for n in (1, 2, 3)]
    other = f"{session}-old"
    it = server.call("python_session_branch", new_session_id=other, session_id=session, at_cell=cells[1])
    assert it["session_id"] == other
    assert (server.run("x", session)["text"], server.run("x", other)["text"]) == ("3", "2")
    server.call("python_session_shutdown", session_id=other)
    it = server.call("python_session_branch", new_session_id=other, session_id=session, at_cell=99)
    assert not it["ok"] and 'no checkpoint "99"' in it["error"]["value"]


def test_vars(server: McpServer, session: str) -> None:
    server.run("class Bad:\n    def __repr__(self): 1/0\nx = 41\nrows = [[1], [2]]\nbad = Bad()", session)
    it = server.call("python_session_vars", session_id=session)
    variables = {variable["name"]: variable for variable in it["variables"]}
    assert variables["x"]["type"] == "int" and variables["x"]["text"] == "41"
    assert variables["rows"]["shape"] == [2] and variables["bad"]["type"] == "Bad"
    assert it["total"] == len(variables)
    assert server.call("python_session_vars", session_id="nobody")["error"]["name"] == "no_session"


def test_diff(server: McpServer, session: str) -> None:
    cells = [server.run(f"x = {n}; open('f', 'w').write('1' * {n})", session)["cell"] for n in (1, 2)]
    server.run("import os; os.rename('f', 'g'); y = (n for n in 'ab')", session)
    it = server.call("python_session_diff", session_id=session)
    assert (it["since_cell"], it["until_cell"]) == (cells[1], cells[1] + 1)
    assert it["file_changes"] == [{"path": "g", "change": "renamed", "kind": "file", "was": "f", "size": 2}]
    assert [(v["name"], v["change"]) for v in it["variable_changes"]] == [("os", "new"), ("y", "new")]
    it = server.call("python_session_diff", session_id=session, since_cell=cells[0], until_cell=cells[1])
    assert it["file_changes"] == [{"path": "f", "change": "changed", "kind": "file", "size": 2, "before": 1}]
    assert it["variable_changes"] == [{"name": "x", "change": "changed", "type": "int", "text": "2", "before": "1"}]
    it = server.call("python_session_diff", session_id=session, since_cell=99)
    assert not it["ok"] and 'no checkpoint "99"' in it["error"]["value"]


def test_files(server: McpServer, session: str) -> None:
    server.run("import os; os.mkdir('d'); open('d/a', 'w').write('abc'); os.symlink('d/a', 'l')", session)
    it = server.call("python_session_files", session_id=session)
    kinds = {entry["name"]: entry["kind"] for entry in it["entries"]}
    assert kinds["d"] == "directory" and kinds["l"] == "link"
    it = server.call("python_session_files", session_id=session, path_rel="d")
    assert it["entries"] == [{"name": "a", "kind": "file", "size": 3}]
    assert server.call("python_session_files", session_id=session, path_rel="../..")["ok"] is False


def test_copy_to_sandbox(server: McpServer, session: str) -> None:
    licence = (IMPORTED / "GPL-3").read_text()
    it = server.call("copy_to_sandbox", source=str(IMPORTED / "GPL-3"), session_id=session)
    assert (it["path"], it["files"], it["size"]) == ("GPL-3", 1, len(licence))
    assert server.run("len(open('GPL-3').read())", session)["text"] == str(len(licence))
    it = server.call("copy_to_sandbox", source=f"{IMPORTED}/", dest_rel="all", session_id=session)
    assert it["files"] > 3 and it["path"] == "all"
    assert server.run("import os; len(os.listdir('all'))", session)["text"] == str(it["files"])
    it = server.call("copy_to_sandbox", source=str(IMPORTED / "BSD"), dest_rel="into/", session_id=session)
    assert it["path"] == "into/BSD"
    it = server.call("copy_to_sandbox", source="/etc/passwd", session_id=session)
    assert not it["ok"]
    assert it["error"] == {"name": "denied", "value": "/etc/passwd: files may not be copied from there"}


def test_a_directory_for_one_call(server: McpServer, session: str) -> None:
    server.run("import os; os.mkdir('d')", session)
    code = "import os; os.path.basename(os.getcwd())"
    assert server.run(code, session, cwd_rel="d")["text"] == "'d'"
    assert server.run(code, session)["text"] != "'d'"
    assert server.run(code, session, cwd_rel="../..")["ok"] is False


# ---- what cells show and leave ----


@pytest.mark.parametrize("token", [None, "t"])
def test_figures_come_as_images(server: McpServer, session: str, token: Any) -> None:
    code = "import matplotlib.pyplot as plt\nfor i in (1, 2):\n    plt.figure()\n    plt.plot([1, i])\nplt.show()"
    it = server.call_result("python_session_execute", token, code=code, session_id=session)
    assert checked(it)["images"] == 2
    conform(it["structuredContent"], SCHEMAS["python_session_execute"])
    images = [content for content in it["content"] if content["type"] == "image"]
    assert len(images) == 2 and images[0]["mimeType"] == "image/png"
    assert base64.b64decode(images[0]["data"], validate=True).startswith(b"\x89PNG")


@pytest.mark.parametrize("token", [None, "t"])
def test_what_is_shown_as_text(server: McpServer, session: str, token: Any) -> None:
    def shown(code: str) -> Any:
        return server.call("python_session_execute", token, code=code, session_id=session).get("displays")

    assert shown("display(1); display('two')") == ["1", "'two'"]
    assert shown("h = display(1, display_id='a'); display(2); update_display(3, display_id='a')") == ["3", "2"]
    assert shown("display(1); clear_output(); display(2)") == ["2"]
    assert shown("1") is None


def test_an_endless_show_is_cut(server: McpServer, session: str) -> None:
    it = server.call("python_session_execute", "t", code="for i in range(100): display(i)", session_id=session)
    assert it["displays"] == [str(i) for i in range(32)] and it["displays_left_out"] == 68


def test_files_that_a_cell_left_are_linked(server: McpServer, session: str) -> None:
    code = "import os; os.mkdir('d'); open('d/ä.csv', 'w').write('a,b'); None"
    it = server.call_result("python_session_execute", code=code, session_id=session)
    assert checked(it)["artifacts"] == [{"path": "d/ä.csv", "size": 3, "type": "text/csv", "change": "created"}]
    conform(it["structuredContent"], SCHEMAS["python_session_execute"])
    link = it["content"][-1]
    assert (link["type"], link["name"], link["mimeType"]) == ("resource_link", "d/ä.csv", "text/csv")
    read = server.request("resources/read", {"uri": link["uri"]})["contents"]
    assert read == [{"uri": link["uri"], "mimeType": "text/csv", "text": "a,b"}]


@pytest.mark.parametrize(("version", "linked"), [("2025-06-18", True), ("2025-03-26", False)])
def test_links_only_for_who_knows_them(daemon: Daemon, session: str, version: str, linked: bool) -> None:
    with McpServer(daemon, modern=False) as server:
        server.greet(version)
        code = f"open('{version}', 'w').close()"
        it = server.call_result("python_session_execute", code=code, session_id=session)
        assert [c["type"] for c in it["content"]] == ["text", "resource_link"][: 1 + linked]


# ---- resources ----


def test_files_are_resources(server: McpServer, session: str) -> None:
    server.run(
        "import os; os.makedirs('sub dir'); open('sub dir/ä ?.txt', 'w').write('text');"
        "open('b.bin', 'wb').write(bytes(range(256))); open('.hidden', 'w').close(); os.symlink('b.bin', 'l')",
        session,
    )
    it = server.request("resources/list")
    assert it["cacheScope"] == "private" and it["ttlMs"] == 0
    mine = {r["name"]: r for r in it["resources"] if session.replace(":", "%3A") in r["uri"]}
    assert set(mine) == {"sub dir/ä ?.txt", "b.bin"}
    assert mine["sub dir/ä ?.txt"]["mimeType"] == "text/plain" and mine["b.bin"]["size"] == 256
    uri = mine["sub dir/ä ?.txt"]["uri"]
    assert uri == f"lair://sessions/{session.replace(':', '%3A')}/sub%20dir/%C3%A4%20%3F.txt"
    it = server.request("resources/read", {"uri": uri})
    assert it["contents"] == [{"uri": uri, "mimeType": "text/plain", "text": "text"}]
    contents = server.request("resources/read", {"uri": mine["b.bin"]["uri"]})["contents"][0]
    assert contents["mimeType"] == "application/octet-stream" and contents["blob"].startswith("AAECAwQF")
    it = server.request("resources/templates/list")["resourceTemplates"][0]
    assert it["uriTemplate"] == "lair://sessions/{session_id}/{+path}"


def test_resources_that_are_not_there(server: McpServer, legacy: McpServer, session: str) -> None:
    server.run("import os; os.mkdir('d'); os.symlink('/etc/passwd', 'l')", session)
    for uri in (
        "lair://sessions/nobody/x",
        f"lair://sessions/{session}/nothing",
        f"lair://sessions/{session}/../../x",
        f"lair://sessions/{session}/%2e%2e/x",
        f"lair://sessions/{session}/l",
        f"lair://sessions/{session}/d",
        f"lair://sessions/{session}/%00",
        f"lair://sessions/{session}/%4",
        f"lair://sessions/{session}/",
        "lair://sessions/",
        "file:///etc/passwd",
        "",
    ):
        error = server.refused("resources/read", {"uri": uri})
        assert (error["code"], error["data"]) == (-32602, {"uri": uri})
        assert legacy.refused("resources/read", {"uri": uri})["code"] == -32002


def test_many_files_come_in_pages(daemon: Daemon) -> None:
    with McpServer(daemon, "--session", "pages") as server:
        server.call("python_session_execute", code="for i in range(1100): open(f'{i}', 'w').close()")
        names: list[str] = []
        cursor: Json = {}
        for _ in range(3):
            it = server.request("resources/list", cursor)
            names += [r["name"] for r in it["resources"]]
            cursor = {"cursor": it.get("nextCursor")}
        assert len(names) == len(set(names)) == 1100 and cursor == {"cursor": None}
        server.call("python_session_shutdown")


def test_a_large_file_is_read_in_pieces_and_one_that_is_too_large_is_not(server: McpServer, session: str) -> None:
    server.run("open('5M', 'w').write('0123456789' * 500_000); open('20M', 'w').write('x' * 20_000_000)", session)
    it = server.request("resources/read", {"uri": f"lair://sessions/{session}/5M"})
    assert it["contents"][0]["text"] == "0123456789" * 500_000
    error = server.refused("resources/read", {"uri": f"lair://sessions/{session}/20M"})
    assert error["code"] == -32603 and "20000000" in error["message"]


# ---- what is printed ----


def test_configuration_to_paste(daemon: Daemon) -> None:
    flags = ["--tools", "full", "--session", "mine", "--no-start", "--config", os.path.relpath(daemon.config)]
    it = json.loads(daemon.lair("mcp", "--print-config", *flags).stdout)
    entry = it["mcpServers"]["lair"]
    expected = ["--tools", "full", "--session", "mine", "--socket", str(daemon.socket)]
    assert entry["args"] == ["mcp", *expected, "--config", str(daemon.config), "--no-start"]
    assert Path(entry["command"]).samefile(BIN / "lair")


@pytest.mark.parametrize("form", ["openai", "anthropic", "mcp"])
def test_the_schemas_are_what_they_were(daemon: Daemon, form: str) -> None:
    """What models are told changes only on purpose: lair tools --tools full --format FORM."""
    golden = Path(__file__).parent / "golden" / f"tools_{form}.json"
    if form == "anthropic":  # the Python package takes its words from there
        golden = Path(lair.__file__).with_name("tools.json")
    said = daemon.lair("tools", "--tools", "full", "--format", form).stdout
    assert json.loads(said) == json.loads(golden.read_text())


def test_the_formats_say_the_same(daemon: Daemon, server: McpServer) -> None:
    def of(form: str) -> list[Json]:
        return json.loads(daemon.lair("tools", "--tools", "full", "--format", form).stdout)  # type: ignore[no-any-return]

    assert of("mcp") == server.request("tools/list")["tools"]
    names = [tool["name"] for tool in of("mcp")]
    assert names == FULL
    assert names == [tool["name"] for tool in of("anthropic")]
    assert names == [tool["function"]["name"] for tool in of("openai")]
    for tool in of("openai"):
        schema = tool["function"]["parameters"]
        assert tool["function"]["strict"] and schema["required"] == list(schema["properties"])
        assert schema["additionalProperties"] is False
    assert daemon.lair("tools", "--format", "xml").returncode == 2


def test_no_schema_tells_of_policy(daemon: Daemon) -> None:
    said = daemon.lair("tools", "--tools", "full", "--format", "mcp").stdout.lower()
    for word in ("profile", "network", "landlock", "seccomp", "1g", "60s", "idle_ttl", "sessions.conf"):
        assert word not in said


# ---- what a model is told before it calls anything ----


def test_instructions_tell_what_there_is_in_a_session(daemon: Daemon, tmp_path: Path) -> None:
    said = daemon.lair("tools", "--instructions", "-p", "small").stdout
    assert said == daemon.lair_json("tools", "--instructions", "-p", "small")["instructions"]
    assert f"Python {platform.python_version()} with numpy " in said and "pandas " in said
    assert "There is no network.\n" in said and "No programs can be run" in said
    assert "Magics of IPython work" in said
    assert said.endswith("\nMemory: a process of this session has 512 MiB of memory.\n")
    assert "No programs can be run" not in daemon.lair("tools", "--instructions", "-p", "shell").stdout
    with Connection(str(daemon.socket), start=False) as connection:
        assert Tools(connection=connection, profile="small").instructions == said
    with McpServer(daemon, "--instructions", "--profile", "small") as server:
        assert server.request("server/discover")["instructions"] == said
    with McpServer(daemon, "--instructions", "--profile", "small", modern=False) as server:
        assert server.greet()["instructions"] == said
    general = said[: said.index("Python 3")]
    with McpServer(daemon) as server:
        assert server.request("server/discover")["instructions"] == general
    of_any = general.replace("Runs Python", "Runs code", 1)  # whose language is not known
    with McpServer(daemon, "--instructions", "--profile", "none") as server:
        assert server.request("server/discover")["instructions"] == of_any
    with McpServer(None, "--instructions", "--no-start", socket=str(tmp_path / "none")) as server:
        assert server.request("server/discover")["instructions"] == of_any


# ---- calls that take longer than their client waits ----

SLOW = "import time; print('begun'); n = globals().get('n', 0) + 1; time.sleep(1.5); print('done'); n"


def rest(server: McpServer, it: Json) -> tuple[str, Json]:
    """All that comes after a result, until the code has ended."""
    out = ""
    while it.get("running"):
        it = server.call("python_result", handle=it["handle"])
        out += it.get("stdout", "")
    return out, it


def test_the_rest_is_got_from_another_server(daemon: Daemon, session: str) -> None:
    with McpServer(daemon, "--patience", "300ms") as server:
        first = server.run(SLOW, session)
        once = server.call("python_execute_once", code=SLOW)
        assert first["running"] and once["running"] and "session_id" not in once
    with McpServer(daemon) as server:
        assert rest(server, first)[1]["text"] == "1"
        out, it = rest(server, once)
        assert (once.get("stdout", "") + out, it["text"], it["state"]) == ("begun\ndone\n", "1", "ended")
        wrong = first["handle"].replace(first["handle"][:4], "0000" if first["handle"][:4] != "0000" else "1111")
        assert server.call("python_result", handle=wrong)["error"]["name"] == "gone"
        for handle in ("", "x", "1-2-3", first["handle"].partition("@")[0] + "x"):
            assert server.call("python_result", handle=handle)["error"]["name"] == "bad_arguments"


def test_what_waits_is_answered_too_and_what_fails_later(daemon: Daemon, session: str) -> None:
    with McpServer(daemon, "--patience", "300ms") as server:
        first = server.begin_call("python_session_execute", code=SLOW, session_id=session)
        second = server.begin_call("python_session_execute", code="1 / 0", session_id=session)
        answers = [checked(server.wait(id)["result"]) for id in (first, second)]
        assert [it["running"] for it in answers] == [True, True] and "stdout" not in answers[1]
        out, it = rest(server, answers[1])
        assert (it["ok"], it["error"]["name"], it["cell"]) == (False, "ZeroDivisionError", 2)


def test_who_waits_for_the_rest_no_longer_interrupts_nothing(daemon: Daemon, session: str) -> None:
    with McpServer(daemon, "--patience", "500ms") as server:
        first = server.run(SLOW, session)
        waiting = server.begin("tools/call", {"name": "python_result", "arguments": {"handle": first["handle"]}})
        server.cancel(waiting)
        assert rest(server, first)[1]["text"] == "1"
        assert not server.answered(waiting)
        running = server.run("while True: pass", session)
        assert server.call("python_session_reset", session_id=session)["state"] == "reset"
        assert server.call("python_result", handle=running["handle"])["cause"] == "reset"


def test_figures_come_once(daemon: Daemon, session: str) -> None:
    with McpServer(daemon, "--patience", "1500ms") as server:
        server.run("import time, matplotlib.pyplot as plt; plt.plot([0]); plt.show()", session)
        code = "plt.plot([1]); plt.show(); time.sleep(2.5); plt.plot([2]); plt.show()"
        answers = [server.run(code, session)]
        while answers[-1].get("running"):
            answers.append(server.call("python_result", handle=answers[-1]["handle"]))
        assert len(answers) > 1 and answers[-1]["ok"] and sum(it.get("images", 0) for it in answers) == 2

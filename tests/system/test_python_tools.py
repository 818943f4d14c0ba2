"""lair.tools: what models are offered, and what they are answered."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import lair
from daemon import Daemon, wait_until
from lair import Connection, LairError
from lair.tools import TOOLS, Tools, schemas

IMPORTED = Path(__file__).parent

SETTINGS = {"profile default": {"checkpoint": "cell", "import": str(IMPORTED), "cell_timeout_max": "2m"}}

NAMES = {
    "python_execute_once": ["code", "timeout_sec"],
    "python_session_start": ["session_id"],
    "python_session_execute": ["code", "session_id", "timeout_sec", "cwd_rel"],
    "python_result": ["handle", "from_byte", "of_stderr"],
    "python_session_reset": ["session_id"],
    "python_session_shutdown": ["session_id"],
    "copy_to_sandbox": ["source", "dest_rel", "session_id"],
    "check_syntax": ["code"],
}


@pytest.fixture
def tools(connection: Connection) -> Iterator[Tools]:
    with Tools(connection=connection) as it:
        yield it


def execute(tools: Tools, code: str, **more: Any) -> dict[str, Any]:
    return tools.call("python_session_execute", {"code": code, **more})


# ---- schemas ----


def test_the_tools_and_their_arguments() -> None:
    assert {name: list(tool.parameters) for name, tool in TOOLS.items()} == NAMES


def test_strict_mode() -> None:
    """Every argument required, those that may be left out nullable, and no others."""
    for tool in schemas():
        function = tool["function"]
        parameters = function["parameters"]
        assert function["strict"] is True
        assert parameters["additionalProperties"] is False
        assert parameters["required"] == list(parameters["properties"])
        for name, schema in parameters["properties"].items():
            optional = name not in ("code", "source", "handle")
            assert ({"type": "null"} in schema.get("anyOf", [])) is optional, name
            assert schema["description"]
        assert len(function["description"]) < 600
    json.dumps(schemas())


def test_models_are_told_the_same_by_the_command_line(daemon: Daemon) -> None:
    """But for the pictures, which dictionaries do not show."""
    theirs = {
        it["function"]["name"]: it["function"]
        for it in json.loads(daemon.lair("tools", "--format", "openai").stdout)
    }
    ours = {it["function"]["name"]: it["function"] for it in schemas()}
    assert list(ours) == list(theirs)
    for name, function in ours.items():
        assert function["description"] == theirs[name]["description"].replace("Figures come back as images. ", "")
        ours_of, theirs_of = (it["parameters"]["properties"] for it in (function, theirs[name]))
        assert {key: it["description"] for key, it in ours_of.items()} == {
            key: it["description"] for key, it in theirs_of.items()
        }


def test_formats() -> None:
    names = list(NAMES)
    assert [it["function"]["name"] for it in schemas("openai")] == names
    assert [it["name"] for it in schemas("responses")] == names
    assert [it["name"] for it in schemas("anthropic")] == names
    with pytest.raises(ValueError, match="anthropic"):
        schemas("another")


POLICY = (
    "memory",
    "processes",
    "network",
    "profile",
    "level",
    "timeout_max",
    "cell_timeout",
    "idle_ttl",
    "workspace_size",
)


def test_no_policy_is_in_a_schema_or_an_answer(tools: Tools) -> None:
    answers = [
        execute(tools, "1"),
        execute(tools, "open('/etc/hosts', 'w')"),
        execute(tools, "import os; os._exit(1)"),
        tools.call("python_session_start", {}),
        tools.call("python_execute_once", {"code": "1"}),
    ]

    def keys(value: Any) -> list[str]:
        if isinstance(value, dict):
            return [*value, *(key for item in value.values() for key in keys(item))]
        return [key for item in value for key in keys(item)] if isinstance(value, list) else []

    for value in [*schemas(), *answers]:
        assert not set(keys(value)) & set(POLICY)


# ---- what they do ----


def test_a_session_remembers_and_a_single_execution_does_not(tools: Tools) -> None:
    assert execute(tools, "x = 41")["ok"]
    answer = execute(tools, "print('hi'); x + 1")
    assert (answer["text"], answer["stdout"], answer["cell"], answer["session_id"]) == ("42", "hi\n", 2, "default")
    once = tools.call("python_execute_once", {"code": "x"})
    assert (once["ok"], once["error"]["name"]) == (False, "NameError")
    assert "session_id" not in once


def test_arguments_as_models_send_them(tools: Tools) -> None:
    nulls = {"session_id": None, "timeout_sec": None, "cwd_rel": None}
    assert execute(tools, "1", **nulls)["ok"]
    assert tools.call("python_session_execute", json.dumps({"code": "1 + 1", **nulls}))["text"] == "2"
    assert tools.call("python_session_start", "")["ok"]
    assert tools.call("python_session_start", None)["ok"]


WRONG: dict[str, tuple[str, Any, str]] = {
    "no such tool": ("python_run", {}, "unknown_tool"),
    "no code": ("python_execute_once", {}, "bad_arguments"),
    "null code": ("python_execute_once", {"code": None}, "bad_arguments"),
    "code that is a number": ("python_execute_once", {"code": 1}, "bad_arguments"),
    "a time that is text": ("python_execute_once", {"code": "1", "timeout_sec": "5"}, "bad_arguments"),
    "a time that is true": ("python_execute_once", {"code": "1", "timeout_sec": True}, "bad_arguments"),
    "a negative time": ("python_execute_once", {"code": "1", "timeout_sec": -1}, "bad_arguments"),
    "an endless time": ("python_execute_once", {"code": "1", "timeout_sec": float("inf")}, "bad_arguments"),
    "a time beyond floats": ("python_execute_once", {"code": "1", "timeout_sec": 10**400}, "bad_arguments"),
    "too long a time": ("python_execute_once", {"code": "1", "timeout_sec": 10_000}, "limit"),
    "no handle": ("python_result", {}, "bad_arguments"),
    "a handle that is none": ("python_result", {"handle": "1-2-3"}, "bad_arguments"),
    "a handle of nothing": ("python_result", {"handle": "0123456789abcdef-0-0-0@a"}, "gone"),
    "a handle of no one-shot": ("python_result", {"handle": "0123456789abcdef-0-0-0"}, "gone"),
    "a byte before the first": ("python_result", {"handle": "x", "from_byte": -1}, "bad_arguments"),
    "a byte beyond numbers": ("python_result", {"handle": "x", "from_byte": 10**400}, "bad_arguments"),
    "a byte that is true": ("python_result", {"handle": "x", "from_byte": True}, "bad_arguments"),
    "half a byte": ("python_result", {"handle": "x", "from_byte": 0.5}, "bad_arguments"),
    "a flag that is a number": ("python_result", {"handle": "x", "of_stderr": 1}, "bad_arguments"),
    "another argument": ("python_execute_once", {"code": "1", "profile": "root"}, "bad_arguments"),
    "no JSON": ("python_execute_once", "{code: 1}", "bad_arguments"),
    "endless JSON": ("python_execute_once", "[" * 100_000, "bad_arguments"),
    "an empty list": ("python_session_start", [], "bad_arguments"),
    "a list": ("python_execute_once", "[1]", "bad_arguments"),
    "an id with a blank": ("python_session_execute", {"code": "1", "session_id": "a b"}, "bad_request"),
    "a long id": ("python_session_execute", {"code": "1", "session_id": "a" * 200}, "bad_request"),
    "half a character": ("python_execute_once", {"code": "'\udcff'"}, "bad_request"),
    "half a character in a path": ("copy_to_sandbox", {"source": "\ud800"}, "bad_request"),
    "half a character in an id": ("python_session_start", {"session_id": "\ud800"}, "bad_request"),
    "no such session": ("python_session_reset", {"session_id": "never"}, "no_session"),
    "no such file": ("copy_to_sandbox", {"source": str(IMPORTED / "nothing")}, "no_file"),
    "a file of the host": ("copy_to_sandbox", {"source": "/etc/passwd"}, "denied"),
}


@pytest.mark.parametrize(("name", "arguments", "code"), WRONG.values(), ids=WRONG.keys())
def test_a_mistake_is_an_answer(tools: Tools, name: str, arguments: Any, code: str) -> None:
    answer = tools.call(name, arguments)
    assert (answer["ok"], answer["error"]["name"]) == (False, code), answer
    assert len(answer["error"]["value"]) > 10
    answer.pop("new", None)  # the first one made the session
    assert asyncio.run(tools.acall(name, arguments)) == answer


def test_what_is_empty_is_left_out(tools: Tools) -> None:
    assert execute(tools, "x = 1") == {"ok": True, "state": "kept", "session_id": "default", "cell": 1}
    answer = tools.call("check_syntax", {"code": "x = (1"})
    assert answer["error"] == {"name": "SyntaxError", "value": "'(' was never closed"}


def test_a_model_reads_the_names_it_has_given(tools: Tools) -> None:
    answer = tools.call("python_session_reset", {"session_id": "nobody"})
    assert answer["error"]["value"].startswith('there is no session "nobody"')


def test_long_output_is_cut_in_the_middle(connection: Connection) -> None:
    with Tools(connection=connection, shown=100) as tools:
        answer = execute(tools, "print('a' * 500 + 'b' * 500); 'c' * 500")
        assert len(answer["stdout"]) < 200
        assert answer["stdout"].startswith("aaa")
        assert answer["stdout"].endswith("bbb\n")
        assert "[... 402 bytes left out ...]" in answer["text"]


def test_start_reset_shutdown(tools: Tools, connection: Connection) -> None:
    assert tools.call("python_session_start", {"session_id": "a"}) == {"ok": True, "session_id": "a", "new": True}
    assert tools.call("python_session_start", {"session_id": "a"})["new"] is False
    execute(tools, "x = 1", session_id="a")
    assert tools.call("python_session_reset", {"session_id": "a"})["state"] == "reset"
    assert execute(tools, "x", session_id="a")["error"]["name"] == "NameError"
    assert tools.call("python_session_shutdown", {"session_id": "a"})["state"] == "ended"
    assert lair.sessions(connection) == []


def test_files_of_the_host(tools: Tools) -> None:
    answer = tools.call("copy_to_sandbox", {"source": __file__, "dest_rel": "data/here.py"})
    assert (answer["ok"], answer["path"], answer["size"]) == (True, "data/here.py", Path(__file__).stat().st_size)
    assert execute(tools, "len(open('data/here.py').read())")["text"] == str(answer["size"])
    assert tools.call("copy_to_sandbox", {"source": __file__})["path"] == Path(__file__).name


def test_a_file_goes_into_a_directory_under_its_own_name(tools: Tools) -> None:
    answer = tools.call("copy_to_sandbox", {"source": __file__, "dest_rel": "data/"})
    assert (answer["ok"], answer["path"]) == (True, f"data/{Path(__file__).name}")
    assert execute(tools, "import os; os.listdir('data')")["text"] == str([Path(__file__).name])


def test_directories_of_the_host(tools: Tools) -> None:
    answer = tools.call("copy_to_sandbox", {"source": str(IMPORTED / "golden"), "dest_rel": "all"})
    names = sorted(path.name for path in (IMPORTED / "golden").iterdir())
    assert (answer["ok"], answer["files"], answer["path"]) == (True, len(names), "all")
    assert execute(tools, "import os; sorted(os.listdir('all'))")["text"] == str(names)


def test_another_directory_for_one_call(tools: Tools) -> None:
    execute(tools, "import os; os.makedirs('data')")
    code = "import os; os.path.basename(os.getcwd())"
    assert execute(tools, code, cwd_rel="data")["text"] == "'data'"
    assert execute(tools, code)["text"] != "'data'"
    for wrong in ("/etc", "..", "data/../..", "nothing"):
        assert execute(tools, code, cwd_rel=wrong)["ok"] is False


def test_files_that_code_leaves(tools: Tools) -> None:
    answer = execute(tools, "open('a.csv', 'w').write('1')")
    assert answer["artifacts"] == [{"path": "a.csv", "size": 1, "change": "created"}]


def test_a_file_whose_name_is_no_text(tools: Tools) -> None:
    answer = execute(tools, "open(b'caf\\xe9', 'w').close()")
    assert answer["artifacts"] == [{"path": "caf\N{REPLACEMENT CHARACTER}", "size": 0, "change": "created"}]


def test_pictures_if_they_are_wanted(connection: Connection) -> None:
    pytest.importorskip("matplotlib")
    code = "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()"
    with Tools(connection=connection) as words, Tools(connection=connection, images=True) as pictures:
        answer = execute(words, code)
        assert "images" not in answer
        assert len(answer["displays"]) == 1
        (picture,) = execute(pictures, code)["images"]
        assert picture["type"] == "image/png"
        assert base64.b64decode(picture["base64"]).startswith(b"\x89PNG")


def test_agents_do_not_meet(connection: Connection) -> None:
    with Tools(connection=connection) as one, Tools(connection=connection) as other:
        execute(one, "x = 1", session_id="shared name")
        execute(one, "x = 1", session_id="analysis")
        assert execute(other, "x", session_id="analysis")["error"]["name"] == "NameError"
    assert lair.sessions(connection) == []


def test_a_namespace_stays(connection: Connection) -> None:
    with Tools(connection=connection, namespace="agent") as tools:
        execute(tools, "x = 1")
    with Tools(connection=connection, namespace="agent") as tools:
        assert execute(tools, "x")["text"] == "1"
        tools.call("python_session_shutdown", {})
    assert lair.sessions(connection) == []


def test_what_is_forgotten_ends(connection: Connection) -> None:
    execute(Tools(connection=connection), "1")
    wait_until(lambda: lair.sessions(connection) == [], "the session has ended")


def test_that_there_is_no_daemon_is_not_told_to_models(tmp_path: Path) -> None:
    with Connection(str(tmp_path / "socket"), start=False) as nowhere:
        with pytest.raises(LairError) as refused:
            execute(Tools(connection=nowhere), "1")
        assert refused.value.code == "no_daemon"


def test_coroutines(tools: Tools) -> None:
    async def scenario() -> None:
        async def one(n: int) -> Any:
            return (await tools.acall("python_session_execute", {"code": f"{n}", "session_id": str(n)}))["text"]

        assert await asyncio.gather(*map(one, range(5))) == ["0", "1", "2", "3", "4"]
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(tools.acall("python_session_execute", {"code": "while True: pass"}), 0.3)
        assert (await tools.acall("python_session_execute", {"code": "'alive'"}))["ok"]

    asyncio.run(scenario())

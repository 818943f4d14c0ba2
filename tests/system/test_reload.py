"""exec with reload: modules that were edited in the workspace are imported again before the cell."""

from __future__ import annotations

from lair import Client
from lair import messages as m

SETTINGS = {"profile default": {"checkpoint": "cell"}}


def run(client: Client, session: str, code: str, reload: bool = True) -> m.ExecReply:
    return client.call(m.Exec(id=client.new_id(), session=session, code=code, reload=reload), m.ExecReply)


def test_an_edited_module_is_imported_again(client: Client, session: str) -> None:
    client.open(session)
    client.put(session, "tool.py", b"def answer(): return 1\nclass C: n = 1\n")
    assert run(client, session, "import tool\nfrom tool import answer as a, C\na()").text == "1"
    client.put(session, "tool.py", b"def answer(): return 20\nclass C: n = 2\n")
    assert run(client, session, "tool.answer(), a(), C.n", reload=False).text == "(1, 1, 1)"
    assert run(client, session, "tool.answer(), a(), C.n").text == "(20, 20, 2)"


def test_wherever_home_is(client: Client, session: str) -> None:
    """A cell may set it: the workspace is where it was."""
    client.open(session)
    client.put(session, "tool.py", b"x = 1\n")
    assert run(client, session, "import os, tool\nos.environ['HOME'] = '/nonexistent'\ntool.x").text == "1"
    client.put(session, "tool.py", b"x = 20\n")
    assert run(client, session, "tool.x").text == "20"


def test_what_imports_it_sees_the_new_one(client: Client, session: str) -> None:
    client.open(session)
    client.put(session, "package/__init__.py", b"")
    client.put(session, "package/low.py", b"def value(): return 1\n")
    client.put(session, "package/high.py", b"from .low import value\ndef twice(): return 2 * value()\n")
    assert run(client, session, "from package.high import twice\ntwice()").text == "2"
    client.put(session, "package/low.py", b"def value(): return 50\n")
    assert run(client, session, "twice()").text == "100"


def test_a_branch_with_files_imports_its_own(client: Client, session: str) -> None:
    client.open(session)
    client.put(session, "tool.py", b"x = 1\n")
    client.put(session, "same.py", b"import builtins\nbuiltins.count = getattr(builtins, 'count', 0) + 1\n")
    client.put(session, "package/__init__.py", b"")
    client.put(session, "package/part.py", b"y = 1\n")
    client.put(session, "lib/late.py", b"z = 1\n")
    run(client, session, "import os, sys, tool, same, package.part\nsys.path.append(os.path.abspath('lib'))")
    branch = session + ".b"
    client.branch(session, branch, files=True)
    for path, text in {"tool.py": b"x = 20\n", "package/part.py": b"y = 20\n", "lib/late.py": b"z = 20\n"}.items():
        client.put(branch, path, text)
    assert run(client, branch, "import late\ntool.x, package.part.y, late.z, count").text == "(20, 20, 20, 1)"
    assert run(client, branch, "os.path.samefile(tool.__file__, 'tool.py')").text == "True"
    assert run(client, session, "import late\ntool.x, package.part.y, late.z").text == "(1, 1, 1)"
    client.put(session, "tool.py", b"x = 300\n")
    assert run(client, session, "tool.x").text == "300"
    assert run(client, branch, "tool.x").text == "20"
    client.shutdown(branch)


def test_a_file_that_came_back_has_not_changed(client: Client, session: str) -> None:
    client.open(session)
    client.put(session, "tool.py", b"x = 1\n")
    run(client, session, "import os, tool\ntool.x = 5")
    run(client, session, "os.remove('tool.py')")
    client.undo(session)
    assert run(client, session, "tool.x").text == "5"
    run(client, session, "open('tool.py', 'w').write('x = 20')")
    assert run(client, session, "tool.x").text == "20"
    client.undo(session, 2)
    assert run(client, session, "tool.x").text == "5"


def test_an_error_in_it_ends_the_cell(client: Client, session: str) -> None:
    client.open(session)
    client.put(session, "broken.py", b"x = 1\n")
    assert run(client, session, "import broken\nbroken.x").text == "1"
    client.put(session, "broken.py", b"x = = 2\n")
    for _ in range(2):
        reply = run(client, session, "broken.x = 7")
        assert (reply.error or {}).get("name") == "SyntaxError"
        assert b"broken.py" in reply.stderr
    assert run(client, session, "broken.x", reload=False).text == "1"
    client.put(session, "broken.py", b"x = 2\n")
    assert run(client, session, "broken.x").text == "2"


def test_what_has_not_changed_is_left_alone(client: Client, session: str) -> None:
    client.open(session)
    client.put(session, "once.py", b"import builtins\nbuiltins.count = getattr(builtins, 'count', 0) + 1\n")
    run(client, session, "import once, json, random")
    for _ in range(3):
        assert run(client, session, "count").text == "1"

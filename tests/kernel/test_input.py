"""Questions of a cell to the client."""

from __future__ import annotations

import pytest

from drive import Interpreter, Message


def question(python: Interpreter) -> Message:
    kind, body = python.next()
    assert kind == "ask"
    return body


def test_nobody_answers(python: Interpreter) -> None:
    result = python.run("input('name? ')")
    assert result.error is not None and result.error["name"] == "EOFError"
    assert "without input" in result.error["value"]
    assert python.run("import sys; sys.stdin.readline()").text == "''"
    assert python.run("sys.stdin.read()").text == "''"
    assert python.run("list(sys.stdin)").text == "[]"
    assert python.run("import getpass; getpass.getpass()").cause == "error"


def test_input(python: Interpreter) -> None:
    python.start("print('hello')\nname = input('name? ')\nname", input=True)
    assert question(python) == {"prompt": "name? "}
    assert python.take()[0] == b"hello\n"
    python.send("answer", text="Ada")
    assert python.finish().text == "'Ada'"
    python.start("input()", input=True)
    assert question(python) == {"prompt": ""}
    python.send("answer", eof=True)
    assert (python.finish().error or {})["name"] == "EOFError"


def test_a_prompt_that_does_not_fit_into_a_message(python: Interpreter) -> None:
    result = python.run("input('x' * 20_000_000)", input=True)
    assert result.error is not None
    assert (result.error["name"], result.error["value"]) == ("ValueError", "the prompt is too long")


def test_password(python: Interpreter) -> None:
    python.start("import getpass\ngetpass.getpass('secret: ')", input=True)
    assert question(python) == {"prompt": "secret: ", "password": True}
    python.send("answer", text="s3cret")
    assert python.finish().text == "'s3cret'"


def test_lines(python: Interpreter) -> None:
    python.start("import sys\na = sys.stdin.readline()\nb = input()\nc = sys.stdin.read()\na, b, c", input=True)
    question(python)
    python.send("answer", text="one\ntwo\n")
    for answer in ("three", "four\n"):
        question(python)
        python.send("answer", text=answer)
    question(python)
    python.send("answer", eof=True)
    assert python.finish().text == "('one\\n', 'two', 'three\\nfour\\n')"


def test_what_is_left_of_an_answer_is_not_for_the_next_cell(python: Interpreter) -> None:
    python.start("input()", input=True)
    question(python)
    python.send("answer", text="one\ntwo")
    assert python.finish().text == "'one'"
    assert "without input" in (python.run("input()").error or {})["value"]
    python.start("input('again? ')", input=True)
    assert question(python) == {"prompt": "again? "}
    python.send("answer", text="three")
    assert python.finish().text == "'three'"


def test_what_is_left_of_an_answer_is_no_password(python: Interpreter) -> None:
    python.start("from getpass import getpass\n[input(), getpass('secret: '), input()]", input=True)
    question(python)
    python.send("answer", text="one\ntwo")
    assert question(python) == {"prompt": "secret: ", "password": True}
    python.send("answer", text="s3cret")
    assert python.finish().text == "['one', 's3cret', 'two']"


def test_stdin_of_its_own(python: Interpreter) -> None:
    assert python.run("import io, sys\nsys.stdin = io.StringIO('mine\\n')\ninput()").text == "'mine'"


@pytest.mark.parametrize("code", ["input('?')", "import sys; sys.stdin.readline()"])
def test_interrupt_of_a_question(python: Interpreter, code: str) -> None:
    python.start(code, input=True)
    question(python)
    python.interrupt()
    assert python.finish().cause == "interrupt"
    python.send("answer", text="too late")
    assert python.run("5").text == "5"
    python.start("input()", input=True)
    question(python)
    python.send("answer", text="in time")
    assert python.finish().text == "'in time'"


def test_only_the_cell_itself_asks(python: Interpreter) -> None:
    code = "import threading\nt = threading.Thread(target=input); t.start(); t.join()"
    assert b"only the main thread" in python.run(code, input=True).err
    code = "import os\npid = os.fork()\nif pid == 0: input()\nos.waitpid(pid, 0)"
    assert b"a child process cannot" in python.run(code, input=True).err

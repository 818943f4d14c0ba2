"""An environment and a directory for one cell."""

from __future__ import annotations

from drive import Interpreter

HERE = "import os; os.environ.get('A'), os.environ.get('B'), os.path.basename(os.getcwd())"


def test_they_do_not_leak(python: Interpreter) -> None:
    python.run("import os; os.mkdir('sub'); os.environ['B'] = 'mine'")
    home = python.run("os.path.basename(os.getcwd())").text
    assert python.run(HERE, env=["A=1", "B=", "A=2=3"], directory="sub").text == "('2=3', '', 'sub')"
    assert python.run(HERE).text == f"(None, 'mine', {home})"
    result = python.run(
        "os.environ['A'] = 'x'; del os.environ['B']; os.chdir('/'); 1/0", env=["A=1", "B=2"], directory=""
    )
    assert result.cause == "error"
    assert python.run(HERE).text == f"(None, 'mine', {home})"


def test_what_a_cell_does_without_them_stays(python: Interpreter) -> None:
    python.run("import os; os.mkdir('sub'); os.chdir('sub'); os.environ['A'] = '1'")
    assert python.run(HERE, env=["B=2"]).text == "('1', '2', 'sub')"
    assert python.run(HERE).text == "('1', None, 'sub')"


def test_programs_have_them_too(python: Interpreter) -> None:
    python.run("import os, subprocess; os.mkdir('sub')")
    result = python.run("print(subprocess.getoutput('echo $A; basename $PWD'))", env=["A=1"], directory="sub")
    assert result.out == b"1\nsub\n"


def test_a_directory_that_is_not_there(python: Interpreter) -> None:
    result = python.run("x = 1", directory="nonesuch", env=["A=1"])
    assert result.error is not None and result.error["name"] == "FileNotFoundError"
    assert python.run("'x' in globals(), __import__('os').environ.get('A')").text == "(False, None)"


def test_a_directory_that_the_cell_leaves_none_to_go_back_to(python: Interpreter) -> None:
    python.run("import os; os.mkdir('a'); os.mkdir('b'); os.chdir('a')")
    assert python.run("os.rmdir('../a')", directory="b").returncode == 0
    assert python.run("os.path.basename(os.getcwd())").text == "'b'"
    assert python.run("1").text == "1"


def test_artifacts_are_named_from_the_workspace(python: Interpreter) -> None:
    python.run("import os; os.mkdir('sub')")
    result = python.run("open('f', 'w').close()", directory="sub")
    assert [a["path"] for a in result.artifacts] == [b"sub/f"]

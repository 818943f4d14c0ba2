"""Programs that run notebooks, with the kernel `lair`: nbclient, nbconvert, papermill, jupyter console, AutoGen's executor.
And one that has keys made, so that nobody else listens."""

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import nbformat
import papermill
import pexpect
import zmq
from autogen_core import CancellationToken
from autogen_core.code_executor import CodeBlock
from autogen_ext.code_executors.jupyter import JupyterCodeExecutor
from jupyter_client.manager import start_new_kernel
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

KERNEL = {"name": "lair", "display_name": "Lair", "language": "python"}
HERE = Path.home() / "notebooks"


def notebook(*cells: str, **metadata: Any) -> Any:
    it = nbformat.v4.new_notebook(metadata={"kernelspec": KERNEL, **metadata})
    it.cells = [nbformat.v4.new_code_cell(code) for code in cells]
    return it


def texts(cell: Any) -> list[str]:
    return [
        output.get("text") or output.get("data", {}).get("text/plain") or output.get("ename")
        for output in cell.outputs
    ]


def with_nbclient() -> None:
    it = notebook(
        "x = 41\nprint('hi')",
        "x + 1",
        "import os; os._exit(9)",
        "x",
        "handle = display(1, display_id='d')",
        "update_display(2, display_id='d')",
        "%undo 2",
        "%time y = 5",
        "print('x' * 100); clear_output(); print('y')",
    )
    it.cells[2].metadata["tags"] = ["raises-exception"]
    NotebookClient(it, timeout=30).execute()
    told = [texts(cell) for cell in it.cells]
    assert told[:5] == [["hi\n"], ["42"], ["SystemExit"], ["41"], ["2"]], told
    assert told[6] == ["The session is in the state after cell 4.\n"], told
    assert "Wall time" in "".join(told[7]) and told[8] == ["y\n"], told
    assert [cell.execution_count for cell in it.cells[:4]] == [1, 2, 3, 4]
    try:
        NotebookClient(notebook("1 / 0", "2"), timeout=30).execute()
    except CellExecutionError as error:
        assert "ZeroDivisionError" in str(error)
    else:
        raise AssertionError("the error is told")


def with_nbconvert() -> None:
    path = HERE / "a.ipynb"
    nbformat.write(notebook("6 * 7"), path)
    command = [sys.executable, "-m", "nbconvert", "--to", "markdown", "--execute", "--stdout", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=50, check=True)
    assert "    42\n" in done.stdout, done.stdout


def with_papermill() -> None:
    path = HERE / "p.ipynb"
    it = notebook("n = 1", "n * 2")
    it.cells[0].metadata["tags"] = ["parameters"]
    nbformat.write(it, path)
    done = papermill.execute_notebook(str(path), None, parameters={"n": 21}, progress_bar=False)
    assert texts(done.cells[-1]) == ["42"], done


def with_console() -> None:
    command = ["-m", "jupyter_console", "--kernel", "lair", "--simple-prompt"]
    console = pexpect.spawn(sys.executable, command, timeout=40, encoding="utf-8")
    console.expect(r"In \[1\]: ")
    console.sendline("6 * 7")
    console.expect_exact("42")
    console.expect(r"In \[2\]: ")
    console.sendeof()
    if console.expect([r"exit.*\? ", pexpect.EOF]) == 0:
        console.sendline("y")
        console.expect(pexpect.EOF)
    console.close()


def with_encryption() -> None:
    """The manager makes keys. Who has none of them hears nothing."""
    manager, client = start_new_kernel(kernel_name="lair", transport_encryption="required")
    try:
        assert manager.get_connection_info()["curve_secretkey"]
        with zmq.Context() as context, context.socket(zmq.SUB) as stranger:
            stranger.subscribe(b"")
            stranger.connect(f"tcp://{manager.ip}:{manager.iopub_port}")
            client.execute_interactive("x = 41", timeout=30)
            manager.restart_kernel()
            client.wait_for_ready(timeout=30)
            reply = client.execute_interactive("print('secret'); x", timeout=30)
            assert reply["content"]["ename"] == "NameError", reply
            assert not stranger.poll(500)
    finally:
        client.stop_channels()
        manager.shutdown_kernel()


async def with_autogen() -> None:
    executor = JupyterCodeExecutor(kernel_name="lair", timeout=30, output_dir=HERE)
    await executor.start()
    run = executor.execute_code_blocks
    done = await run([CodeBlock("x = 6", "python"), CodeBlock("print(x * 7)", "python")], CancellationToken())
    assert (done.exit_code, done.output) == (0, "\n42\n"), done
    failed = await run([CodeBlock("1 / 0", "python")], CancellationToken())
    assert failed.exit_code == 1 and "ZeroDivisionError" in failed.output, failed
    await executor.stop()


if __name__ == "__main__":
    HERE.mkdir(exist_ok=True)
    if sys.argv[1] == "autogen":
        asyncio.run(with_autogen())
    else:
        globals()[f"with_{sys.argv[1]}"]()

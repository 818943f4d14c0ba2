"""The examples run, and come to what they say."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from daemon import ROOT, Daemon

SETTINGS = {
    "profile default": {
        "checkpoint": "cell",
        "preload": "pandas? matplotlib.pyplot?",
        "spares": "2",
        "memory": "1G",
    }
}


def run(daemon: Daemon, name: str, *arguments: str, typed: str = "") -> str:
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", str(ROOT / "examples" / name), *arguments],
        env={
            "PATH": "/nowhere",
            "LAIR_SOCKET": str(daemon.socket),
            "PYTHONPATH": str(ROOT / "client/python"),
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONUTF8": "1",
        },
        input=typed,
        capture_output=True,
        text=True,
        timeout=50,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    return done.stdout


def test_agent_loop(daemon: Daemon) -> None:
    output = run(daemon, "agent_loop.py")
    assert "SyntaxError" in output
    assert output.endswith("Those that end in 7 add up to 272.\n")


def test_tree_search(daemon: Daemon) -> None:
    output = run(daemon, "tree_search.py")
    assert "sine" in output
    assert "a mistake" not in output
    assert "x²" in output


def test_analysis_with_chart(daemon: Daemon, tmp_path: Path) -> None:
    pytest.importorskip("pandas")
    pytest.importorskip("matplotlib")
    target = tmp_path / "chart.png"
    output = run(daemon, "analysis_with_chart.py", str(target))
    assert "the sharpest fall: south, week 57" in output
    assert target.read_bytes().startswith(b"\x89PNG")


def test_forty_tools(daemon: Daemon) -> None:
    output = run(daemon, "forty_tools.py")
    (cost,) = [line for line in output.splitlines() if line.startswith("40 tools in")]
    assert int(cost.split()[3]) <= 1000
    assert "create_order(customer: str, lines: list[Line], ship_to: Address = None) -> int" in output
    assert "200 orders; tea came back in 29 lines" in output
    assert output.endswith("206 calls, 1 task: Why does tea come back so often?\n")


def test_approval(daemon: Daemon) -> None:
    output = run(daemon, "approval.py", typed="y\ny\nnever heard of them\n")
    assert "pay(to='the landlord', amount=900)" in output
    assert "pay was refused: never heard of them\n" in output
    assert "paid: ['40 euros to the printer', '900 euros to the landlord']\n" in output
    assert output.endswith("deployed: '2.0 is out'\n")


def test_approval_tree(daemon: Daemon) -> None:
    lines = run(daemon, "approval_tree.py").splitlines()
    assert len(lines) == 4
    stock = sum(n * n for n in range(200_000)) % 1000
    for first in (0, 10):
        for second in (0, 10):
            bill = [3 * first, 4 * second]
            assert f"[{first}, {second}] -> ({stock}, {bill}, {sum(bill)})" in lines


def test_every_example_is_run() -> None:
    tested = {name.removeprefix("test_") + ".py" for name in globals() if name.startswith("test_")}
    assert {path.name for path in (ROOT / "examples").glob("*.py")} <= tested

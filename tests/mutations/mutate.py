"""Puts small faults into a copy of the tree, one at a time, and says which of them the named tests catch."""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
TREE = ROOT / "build/mutate/tree"
BUILD = TREE / "build/release"


@dataclass
class Fault:
    name: str
    tests: list[str]
    file: str
    before: list[str]
    after: list[str]

    def into(self, text: str) -> str | None:
        """The text with the fault; None if the lines are not there just once."""
        pattern = r"\n".join(rf"([ \t]*){re.escape(line)}" for line in self.before)
        changed, n = re.subn(rf"^{pattern}$", lambda at: str(at[1]) + "\n".join(self.after), text, flags=re.M)
        return changed if n == 1 else None


def faults() -> list[Fault]:
    found = []
    text = "\n".join(line for line in (HERE / "faults.txt").read_text().splitlines() if not line.startswith("#"))
    for block in filter(None, re.split(r"\n{2,}", text.strip())):
        head, file, *lines = block.splitlines()
        name, _, tests = head.partition(":")
        sides = {sign: [line[2:] for line in lines if line[0] == sign] for sign in "-+"}
        found.append(Fault(name, tests.split(), file, sides["-"], sides["+"]))
    return found


def copy_tree() -> None:
    """Files that are as they were keep their time, so little is compiled again."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    wanted = {name for name in listed.stdout.splitlines() if (ROOT / name).is_file()}
    for name in wanted:
        source, copy = ROOT / name, TREE / name
        if not copy.exists() or copy.read_bytes() != source.read_bytes():
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(source.read_bytes())
            copy.chmod(source.stat().st_mode)
    for top, directories, files in os.walk(TREE):
        if Path(top) == TREE:
            directories[:] = [name for name in directories if name not in ("build", ".git")]
        for path in (Path(top, name) for name in files):
            if str(path.relative_to(TREE)) not in wanted:
                path.unlink()


def unit_tests(fault: Fault) -> list[str]:
    return [test.removeprefix("unit/") for test in fault.tests if test.startswith("unit/")]


def compile_with(units: list[str]) -> bool:
    targets = ["all", "deny", "laird-hasty", "laird-other", "client-provider", *(f"unit-{name}" for name in units)]
    command = ["cmake", "--build", "--preset", "release", "--target", *targets]
    return subprocess.run(command, cwd=TREE, stdout=subprocess.DEVNULL).returncode == 0


def caught_by(fault: Fault) -> str | None:
    """The first of its tests that fails."""
    env = {**os.environ, "PYTHONPYCACHEPREFIX": str(TREE / "build/pycache")}
    for name in unit_tests(fault):
        command = ["ctest", "--test-dir", str(BUILD), "-R", f"^unit/{name}$", "--no-tests=error"]
        if subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode:
            return f"unit/{name}"
    for test in (test for test in fault.tests if not test.startswith("unit/")):
        command = [sys.executable, "-m", "pytest", "-q", "-x", f"tests/{test}"]
        command += [] if "::" in test else ["-m", "not long"]
        done = subprocess.run(command, cwd=TREE, env=env, capture_output=True, text=True)
        if done.returncode == 1:
            failed = re.search(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.M)
            return failed[1] if failed else test
        if done.returncode:
            raise SystemExit(f"{fault.name}: {test} does not run:\n{done.stdout}{done.stderr}")
    return None


def attempt(fault: Fault) -> bool:
    path = TREE / fault.file
    original = path.read_text()
    changed = fault.into(original)
    assert changed is not None
    path.write_text(changed)
    try:
        compiled = compile_with(unit_tests(fault))
        caught = caught_by(fault) if compiled else None
    finally:
        path.write_text(original)
    print(f"{fault.name:40}{caught or ('NOT CAUGHT' if compiled else 'DOES NOT COMPILE')}", flush=True)
    return caught is not None


def main() -> int:
    parser = argparse.ArgumentParser(prog="./dev mutate", description=__doc__)
    parser.add_argument("what", nargs="*", help="names of faults, or directories of the faulty files; all if none")
    parser.add_argument("--check", action="store_true", help="only look whether the faulty lines are still there")
    arguments = parser.parse_args()
    every = faults()
    chosen = [it for it in every if not arguments.what or any(
        it.name == what or it.file.startswith(what.rstrip("/") + "/") for what in arguments.what)]  # fmt: skip
    stale = [
        it for it in chosen if it.into((ROOT / it.file).read_text() if (ROOT / it.file).exists() else "") is None
    ]
    for it in stale:
        print(f"{it.name}: {it.file} has other lines now; see tests/mutations/faults.txt")
    if arguments.check or not chosen:
        return bool(stale) or not chosen
    copy_tree()
    subprocess.run(["cmake", "--preset", "release"], cwd=TREE, stdout=subprocess.DEVNULL, check=True)
    results = [attempt(it) for it in chosen if it not in stale]
    return not all(results) or bool(stale)


if __name__ == "__main__":
    sys.exit(main())

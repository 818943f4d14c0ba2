"""Lair in clean root file systems of Debian's releases: the first screen of README.md is followed literally, from source, with the
package and in a container, and the package is installed, upgraded, removed and purged. `./dev roots` runs this, as root.

A root is made by debootstrap once, and kept. Each scenario is a script that runs in a layer over it (`enter`), which goes
when it has ended well.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import shutil
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
TREE = HERE.parents[1]
RELEASES = ("bookworm", "trixie")
MARK = "---- readme:"
SECONDS = 3600


@dataclass
class Step:
    """A command of the README, and what it says there that comes of it; None: nothing is said."""

    command: str
    output: str | None


def first_screen(readme: str) -> list[Step]:
    """The commands in the paragraph before the first console block, then those of the block."""
    before, block = readme.split("```console\n", 1)
    block = block.split("```", 1)[0]
    commands = re.findall(r"`([^`]+)`", before)
    steps = [Step(it, None) for it in commands if it.startswith(("./dev ", "lair "))]
    for part in block.split("$ ")[1:] if block.startswith("$ ") else []:
        command, _, output = part.partition("\n")
        steps.append(Step(command, output))
    return steps


def python_example(readme: str) -> str:
    return readme.split("```python\n", 1)[1].split("```", 1)[0]


def readme_script(steps: list[Step]) -> str:
    """What a person types, one after the other in one directory, with marks where outputs begin."""
    lines = ["cd /root/lair"]
    for step in steps:
        end = " || echo exit status $?" if step.output is None else " || true"
        lines += [f"echo {shlex.quote(MARK)}", f"bash -c {shlex.quote(step.command)} 2>&1 </dev/null{end}"]
    return "\n".join([*lines, f"echo {shlex.quote(MARK)}"]) + "\n"


def bare(text: str) -> str:
    """Newer Pythons underline in a traceback what went wrong."""
    return "".join(line for line in text.splitlines(keepends=True) if not re.fullmatch(r" +[~^]+\n", line))


def readme_faults(steps: list[Step], output: str) -> list[str]:
    parts = output.split(MARK + "\n")[1:]
    faults = []
    for step, part in zip(steps, parts):
        if step.output is not None and bare(part) != step.output:
            faults.append(f"$ {step.command}\nREADME.md has:\n{step.output}it was:\n{part}")
        elif step.output is None and "exit status" in part:
            faults.append(f"$ {step.command}\n{part}")
    if len(parts) <= len(steps):
        faults.append(f"it ended at step {len(parts)} of {len(steps)}")
    return faults


class Root:
    def __init__(self, roots: Path, release: str) -> None:
        self.release = release
        self.base = roots / release
        self.layers = roots / "layers"

    def make(self, mirror: str) -> None:
        """Made under another name: one that is there is whole."""
        if self.base.exists():
            return
        part = self.base.with_name(self.release + ".part")
        shutil.rmtree(part, ignore_errors=True)
        print(f"making a root of {self.release}", flush=True)
        subprocess.run(
            ["debootstrap", "--variant=minbase", self.release, str(part), mirror],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        part.rename(self.base)

    def run(self, name: str, script: str) -> str:
        """What the script says; it must end with 0. What it wrote stays only if it does not."""
        layer = self.layers / f"{self.release}-{name}"
        shutil.rmtree(layer, ignore_errors=True)
        layer.mkdir(parents=True)
        log = layer / "log"
        with log.open("w") as out:
            done = subprocess.run(
                [str(HERE / "enter"), str(self.base), str(layer), "bash", "-euo", "pipefail", "-s"],
                input=script,
                text=True,
                stdout=out,
                stderr=subprocess.STDOUT,
                timeout=SECONDS,
            )
        output = log.read_text(errors="replace")
        if done.returncode != 0:
            raise SystemExit(f"{self.release}, {name}: exit status {done.returncode}, see {log}:\n{output[-3000:]}")
        shutil.rmtree(layer)
        return output


SOURCE = """
mkdir /root/lair
(cd /src && tar --exclude=./build --exclude=./.git -c .) | tar -x -C /root/lair
"""

# The directory of fetched packages is the same in each layer.
BUILD = """
cd /root/lair
apt-get -qq update
./dev package 0.1.0
rm -rf /var/cache/apt/archives/lair
mkdir /var/cache/apt/archives/lair
mv build/package/*.deb /var/cache/apt/archives/lair/
"""


def from_source(root: Root, readme: str) -> None:
    steps = first_screen(readme)
    check(root, "source", steps, root.run("source", SOURCE + readme_script(steps)))


def with_package(root: Root, readme: str) -> None:
    """Installed by apt with what it recommends, and nothing else is there."""
    steps = [it for it in first_screen(readme) if not it.command.startswith("./dev ")]
    scenario = (HERE / "package.sh").read_text().replace("@README@", readme_script(steps))
    scenario = scenario.replace("@PYTHON@", shlex.quote(python_example(readme)))
    root.run("build", SOURCE + BUILD)
    check(root, "package", steps, root.run("package", SOURCE + scenario))


def check(root: Root, name: str, steps: list[Step], output: str) -> None:
    faults = readme_faults(steps, output)
    if faults:
        raise SystemExit(f"{root.release}, {name}:\n" + "\n".join(faults))


class Image:
    """That of examples/container, made by podman on this root, and a container of it."""

    # Not every machine lets podman raise its own limits.
    LIMITS = ("--ulimit", "nofile=4096:4096", "--ulimit", "nproc=4096:4096")

    def __init__(self, root: Root) -> None:
        self.root, self.base, self.name = (
            root,
            f"localhost/lair-root:{root.release}",
            f"localhost/lair:{root.release}",
        )
        # crun wants control groups of one version.
        self.podman_s = ["podman", *(("--runtime", "runc") if shutil.which("runc") else ())]
        self.log = (root.layers / f"{root.release}-container.log").open("w")

    def podman(self, *arguments: str, check: bool = True, stdin: Any = subprocess.DEVNULL) -> str:
        command = [*self.podman_s, *arguments]
        done = subprocess.run(
            command, stdin=stdin, stdout=subprocess.PIPE, stderr=self.log, text=True, timeout=SECONDS
        )
        self.log.write(done.stdout)
        self.log.flush()
        if check and done.returncode != 0:
            raise SystemExit(
                f"{self.root.release}: {' '.join(command)}: exit status {done.returncode}, see {self.log.name}"
            )
        return done.stdout

    def make(self) -> None:
        tar = subprocess.Popen(["tar", "-C", str(self.root.base), "-c", "."], stdout=subprocess.PIPE)
        self.podman("import", "-", self.base, stdin=tar.stdout)
        if tar.wait() != 0:
            raise SystemExit(f"{self.root.base} cannot be read")
        fetched = self.root.base.with_name(f"{self.root.release}.fetched")
        where = (
            "--network",
            "host",
            "--volume",
            f"{fetched}:/var/cache/apt/archives",
            "--build-arg",
            f"BASE={self.base}",
        )
        self.podman(
            "build", *where, "-t", self.name, "-f", str(TREE / "examples/container/Containerfile"), str(TREE)
        )

    def begin(self, *confinement: str) -> str:
        container = self.podman(
            "run", "--detach", "--network", "none", *self.LIMITS, *confinement, self.name
        ).strip()
        deadline = time.monotonic() + 120
        while not self.podman("exec", container, "lair", "status", check=False):
            if time.monotonic() > deadline:
                raise SystemExit(
                    f"{self.root.release}: laird does not answer in its container, see {self.log.name}"
                )
            time.sleep(0.2)
        return container

    def remove(self) -> None:
        self.podman("rmi", "--force", self.name, self.base, check=False)
        self.log.close()


# What podman is told, and which guard that decides over. docs/INSTALL.md has the levels.
CONFINEMENTS = {(): False, ("--security-opt", "seccomp=unconfined"): True}


def in_container(root: Root, readme: str) -> None:
    if not shutil.which("podman"):
        print(f"{root.release:10} container  is left out: podman is not installed", flush=True)
        return
    steps = [it for it in first_screen(readme) if not it.command.startswith("./dev ")]
    image = Image(root)
    image.make()
    for confinement, named in CONFINEMENTS.items():
        container = image.begin(*confinement)
        found = json.loads(image.podman("exec", container, "lair", "doctor", "--json"))
        if found["level"] != "strong-nomem" or ("utsns" in found["guards"]) != named:
            raise SystemExit(f"{root.release}, container {confinement}: {found}")
        script = "mkdir -p /root/lair\n" + readme_script(steps)
        check(root, "container", steps, image.podman("exec", container, "bash", "-c", script))
        image.podman("stop", "--time", "60", container)
        status = image.podman("inspect", "--format", "{{.State.ExitCode}}", container).strip()
        if status != "0":
            raise SystemExit(f"{root.release}, container: laird ended with {status}")
        image.podman("rm", container)
    image.remove()


SCENARIOS = {"source": from_source, "package": with_package, "container": in_container}


def mirror_in_use() -> str:
    """The one that this machine's own packages come from."""
    done = subprocess.run(
        ["apt-get", "indextargets", "--format", "$(REPO_URI) $(RELEASE)", "Created-By: Packages", "Origin: Debian"],
        capture_output=True,
        text=True,
        check=True,
    )
    for line in done.stdout.splitlines():
        uri, release = line.split()
        if release.isalpha():
            return uri
    raise SystemExit("this machine's packages come from no mirror of Debian")


def main() -> None:
    parser = argparse.ArgumentParser(prog="./dev roots", description=__doc__)
    parser.add_argument("releases", nargs="*", default=list(RELEASES), metavar="RELEASE", help=", ".join(RELEASES))
    parser.add_argument("--only", choices=SCENARIOS, help="one scenario")
    parser.add_argument("--roots", type=Path, default=Path(os.environ.get("LAIR_ROOTS", TREE / "build/roots")))
    options = parser.parse_args()
    if os.geteuid() != 0:
        raise SystemExit("only root can do this")
    options.roots.mkdir(parents=True, exist_ok=True)
    readme = (TREE / "README.md").read_text()
    for release in options.releases:
        root = Root(options.roots.absolute(), release)
        root.make(mirror_in_use())
        for name in [options.only] if options.only else SCENARIOS:
            began = time.monotonic()
            SCENARIOS[name](root, readme)
            print(f"{release:10} {name:10} ok, {time.monotonic() - began:.0f} s", flush=True)


if __name__ == "__main__":
    main()

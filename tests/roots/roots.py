"""Lair in clean root file systems of Debian's releases: the first screen of README.md is followed literally, from source, with the
package and in a container, and the package is installed, upgraded, removed and purged, without and under systemd. `./dev roots`
runs this, as root.

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
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

HERE = Path(__file__).parent
TREE = HERE.parents[1]
CONTAINER = TREE / "examples/container"
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
        self.fetched = roots / f"{release}.fetched"
        self.layers = roots / "layers"
        self.packaged = False

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

    def run(self, name: str, script: str, boot: str | None = None) -> str:
        """What the script says; it must end with 0. Then what it wrote is booted, for another script, whose words are
        given instead. The layer stays only if something went wrong."""
        layer = self.layers / f"{self.release}-{name}"
        shutil.rmtree(layer, ignore_errors=True)
        layer.mkdir(parents=True)
        output = self._do(
            layer, [str(HERE / "enter"), *self._where(layer), "bash", "-euo", "pipefail", "-s"], script
        )
        if boot is not None:
            output = self._do(layer, [str(HERE / "boot"), *self._where(layer)], boot)
        shutil.rmtree(layer)
        return output

    def _where(self, layer: Path) -> tuple[str, str]:
        return str(self.base), str(layer)

    def _do(self, layer: Path, command: list[str], script: str) -> str:
        log = layer / "log"
        with log.open("w") as out:
            done = subprocess.run(
                command, input=script, text=True, stdout=out, stderr=subprocess.STDOUT, timeout=SECONDS
            )
        output = log.read_text(errors="replace")
        if done.returncode != 0:
            raise SystemExit(f"{layer.name}: exit status {done.returncode}, see {log}:\n{output[-3000:]}")
        return output

    def package(self) -> None:
        """The package of this tree, beside the packages that were fetched; made once."""
        if not self.packaged:
            self.run("build", SOURCE + BUILD)
        self.packaged = True


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
    root.package()
    check(root, "package", steps, root.run("package", SOURCE + scenario))


def check(root: Root, name: str, steps: list[Step], output: str) -> None:
    faults = readme_faults(steps, output)
    if faults:
        raise SystemExit(f"{root.release}, {name}:\n" + "\n".join(faults))


# What an installed system has, and a root that debootstrap made does not.
BOOTED = """
apt-get -qq update
apt-get -qq install --yes --no-install-recommends systemd-sysv dbus dbus-user-session libpam-systemd \\
    /var/cache/apt/archives/lair/lair_0.1.0_*.deb >/dev/null
mkdir /var/cache/lair
cp /var/cache/apt/archives/lair/lair_0.1.0_*.deb /var/cache/lair/
"""


def under_systemd(root: Root, readme: str) -> None:
    """The package's units, where systemd is the first process. They have no network."""
    if not shutil.which("systemd-nspawn"):
        print(f"{root.release:10} units      is left out: systemd-container is not installed", flush=True)
        return
    root.package()
    root.run("units", BOOTED, (HERE / "units.sh").read_text())


class Engine:
    """podman or docker, and the log of what it says."""

    def __init__(self, log: TextIO, *command: str) -> None:
        self.log, self.command = log, command

    def __call__(self, *arguments: str, check: bool = True, stdin: Any = subprocess.DEVNULL, **env: str) -> str:
        command = [*self.command, *arguments]
        done = subprocess.run(
            command,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=self.log,
            text=True,
            timeout=SECONDS,
            env=os.environ | env,
        )
        self.log.write(done.stdout)
        self.log.flush()
        if check and done.returncode != 0:
            raise SystemExit(f"{' '.join(command)}: exit status {done.returncode}, see {self.log.name}")
        return done.stdout

    def begin(self, image: str, *flags: str) -> str:
        container = self("run", "--detach", "--network", "none", *flags, image).strip()
        self.wait(lambda: self("exec", container, "lair", "status", check=False), "laird in its container")
        return container

    def wait(self, until: Callable[[], object], what: str) -> None:
        deadline = time.monotonic() + 120
        while not until():
            if time.monotonic() > deadline:
                raise SystemExit(f"{what} does not answer, see {self.log.name}")
            time.sleep(0.2)

    def end(self, container: str) -> None:
        """laird ends well, and nothing stays of its container."""
        self("stop", "--time", "60", container)
        status = self("inspect", "--format", "{{.State.ExitCode}}", container).strip()
        if status != "0":
            raise SystemExit(f"laird ended with {status}, see {self.log.name}")
        self("rm", "--volumes", container)


# Not every machine lets podman raise its own limits.
LIMITS = ("--ulimit", "nofile=4096:4096", "--ulimit", "nproc=4096:4096")
# What an engine is told, and the level that comes of it, with a guard that may be missing. docs/INSTALL.md has them, too.
UNFILTERED = ("--security-opt", "seccomp=unconfined")
CONFINEMENTS: dict[str, dict[tuple[str, ...], tuple[str, bool]]] = {
    "podman": {(): ("strong-nomem", False), UNFILTERED: ("strong-nomem", True)},
    "docker": {(): ("landlock", False), UNFILTERED: ("strong-nomem", True)},
}


def make_image(root: Root, podman: Engine, base: str, image: str) -> None:
    """That of examples/container, on this root."""
    tar = subprocess.Popen(["tar", "-C", str(root.base), "-c", "."], stdout=subprocess.PIPE)
    podman("import", "-", base, stdin=tar.stdout)
    if tar.wait() != 0:
        raise SystemExit(f"{root.base} cannot be read")
    fetched = f"{root.fetched}:/var/cache/apt/archives"
    where = ("--network", "host", "--volume", fetched, "--build-arg", f"BASE={base}", "--layers=false")
    podman("build", *where, "-t", image, "-f", str(CONTAINER / "Containerfile"), str(TREE))


def confined(root: Root, engine: Engine, name: str, image: str, steps: list[Step]) -> None:
    for confinement, (level, named) in CONFINEMENTS[name].items():
        limits = LIMITS if name == "podman" else ()
        container = engine.begin(image, *limits, *confinement)
        found = json.loads(engine("exec", container, "lair", "doctor", "--json"))
        if found["level"] != level or ("utsns" in found["guards"]) != named:
            raise SystemExit(f"{root.release}, {name} {confinement}: {found}")
        script = "mkdir -p /root/lair\n" + readme_script(steps)
        check(root, name, steps, engine("exec", container, "bash", "-c", script))
        engine.end(container)


def composed(podman: Engine, image: str) -> None:
    """The compose example: a program in a container of its own uses laird in another."""
    if not shutil.which("podman-compose"):
        print("           compose    is left out: podman-compose is not installed", flush=True)
        return
    compose = Engine(
        podman.log,
        *(
            "podman-compose",
            f"--podman-args={' '.join(podman.command[1:])}",
            f"--podman-run-args={' '.join(LIMITS)}",
        ),
        *("-p", "lair-roots", "-f", str(CONTAINER / "compose.yaml")),
    )
    compose("up", "--detach", LAIR_IMAGE=image)
    podman.wait(lambda: podman("logs", "lair-roots_client_1", check=False) == "42\n", "the program in a container")
    compose("down", "--volumes", LAIR_IMAGE=image)
    podman("network", "rm", "lair-roots_default", check=False)


@contextmanager
def docker_engine(log: TextIO) -> Iterator[Engine]:
    """A dockerd of our own, which changes nothing of the host's network."""
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="lair-docker-") as place:
        socket = f"unix://{place}/socket"
        directories = ("--data-root", f"{place}/data", "--exec-root", f"{place}/run", "--pidfile", f"{place}/pid")
        network = ("--bridge", "none", "--iptables=false", "--ip6tables=false", "--ip-masq=false")
        dockerd = subprocess.Popen(
            ["dockerd", "--host", socket, *directories, *network], stdout=log, stderr=subprocess.STDOUT
        )
        docker = Engine(log, "docker", "--host", socket)
        try:
            docker.wait(
                lambda: docker("version", "--format", "{{.Server.Version}}", check=False).strip(), "dockerd"
            )
            yield docker
        finally:
            dockerd.terminate()
            dockerd.wait(60)


def in_docker(root: Root, podman: Engine, image: str, steps: list[Step]) -> None:
    if not shutil.which("dockerd"):
        print(f"{root.release:10} docker     is left out: docker.io is not installed", flush=True)
        return
    with docker_engine(podman.log) as docker:
        saved = subprocess.Popen([*podman.command, "save", image], stdout=subprocess.PIPE, stderr=podman.log)
        docker("load", stdin=saved.stdout)
        confined(root, docker, "docker", image, steps)


def in_container(root: Root, readme: str) -> None:
    if not shutil.which("podman"):
        print(f"{root.release:10} container  is left out: podman is not installed", flush=True)
        return
    steps = [it for it in first_screen(readme) if not it.command.startswith("./dev ")]
    base, image = f"localhost/lair-root:{root.release}", f"localhost/lair:{root.release}"
    with (root.layers / f"{root.release}-container.log").open("w") as log:
        # crun wants control groups of one version.
        podman = Engine(log, "podman", *(("--runtime", "runc") if shutil.which("runc") else ()))
        make_image(root, podman, base, image)
        confined(root, podman, "podman", image, steps)
        composed(podman, image)
        in_docker(root, podman, image, steps)
        podman("rmi", "--force", image, base, check=False)


SCENARIOS = {"source": from_source, "package": with_package, "units": under_systemd, "container": in_container}


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

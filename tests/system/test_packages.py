"""What a session installs for itself can be imported, in the session and by the programs that it starts."""

from __future__ import annotations

import fcntl
import io
import subprocess
import zipfile
from pathlib import Path

import pytest

from lair import Client

ENVIRONMENTS = Path(__file__).parents[2] / "build"


def environment(name: str, *options: str) -> str:
    """Made by whoever is the first of those that run side by side."""
    path = ENVIRONMENTS / name
    with (ENVIRONMENTS / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (path / "bin/pip").exists():
            subprocess.run(["/usr/bin/python3", "-m", "venv", *options, path], check=True)
    return str(path)


GRANTED = {"subprocess": "on", "network": "host", "level": "", "spares": "0"}
SETTINGS = {
    "profile default": {"level": ""},
    "profile system": GRANTED,
    "profile alone": {**GRANTED, "python": environment("environment-alone")},
    "profile over": {**GRANTED, "python": environment("environment-over", "--system-site-packages")},
}


def wheel(version: str) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("lair_thing.py", f"version = {version!r}\n")
        meta = f"lair_thing-{version}.dist-info"
        archive.writestr(f"{meta}/METADATA", f"Metadata-Version: 2.1\nName: lair-thing\nVersion: {version}\n")
        archive.writestr(f"{meta}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{meta}/RECORD", "")
    return file.getvalue()


def give(client: Client, session: str, version: str) -> str:
    name = f"lair_thing-{version}-py3-none-any.whl"
    client.exec(f"open({name!r}, 'wb').write(bytes.fromhex({wheel(version).hex()!r}))", session)
    return name


@pytest.mark.parametrize("profile", ["system", "alone", "over"])
def test_installed_and_imported(client: Client, session: str, profile: str) -> None:
    client.open(session, profile=profile)
    name = give(client, session, "1.0")
    assert client.exec("import lair_thing", session).error, "it is looked for before it is there"
    install = (
        f"import subprocess, sys\nsubprocess.run([sys.executable, '-m', 'pip', 'install', '--no-index', {name!r}])"
    )
    reply = client.exec(install + ".returncode", session, timeout=60)
    assert reply.text == "0", (reply.stdout + reply.stderr).decode()
    assert client.exec("import lair_thing; lair_thing.version", session).text == "'1.0'"
    child = "subprocess.check_output([sys.executable, '-c', 'import lair_thing; print(lair_thing.version)'])"
    assert client.exec(child, session).text == "b'1.0\\n'"
    assert client.exec("lair_thing.__file__.startswith(__import__('os').environ['HOME'])", session).text == "True"


def test_by_a_magic(client: Client, session: str) -> None:
    client.open(session, profile="system")
    name = give(client, session, "2.0")
    reply = client.exec(
        f"%pip install --no-index {name}\nimport lair_thing\nlair_thing.version", session, timeout=60
    )
    assert reply.text == "'2.0'", (reply.stdout + reply.stderr).decode()
    assert b"restart" not in reply.stdout


def test_ahead_of_the_packages_of_all(client: Client, session: str) -> None:
    client.open(session, profile="system")
    code = "import sys, site\nplace = sys.path.index(site.USER_SITE)\nnext(i for i, p in enumerate(sys.path) if 'dist-packages' in p) - place"
    assert client.exec(code, session).text == "1"


def test_without_programs_nothing_is_looked_for(client: Client, session: str) -> None:
    assert client.exec("import sys\n[path for path in sys.path if '.local' in path]", session).text == "[]"

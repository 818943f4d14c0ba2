"""Images of templates: the next laird wakes what the last one imported, or imports it itself if anything is wrong."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from daemon import WORKER, Daemon, wait_until
from test_first_use import WITHOUT

pytestmark = [
    pytest.mark.shipped,
    pytest.mark.skipif(os.uname().machine != "x86_64", reason="this processor has no images"),
]

Start = Callable[..., Daemon]
USER = 62100 + WORKER if os.geteuid() == 0 else None
WRITTEN = "profile default: its image is written"
WOKEN = "profile default is ready, from its image"
READY = "profile default is ready: python"
UNUSED = "profile default was not woken from an image: "


def begin(start_daemon: Start, profile: dict[str, str] | None = None, **how: object) -> Daemon:
    """As a user who has nothing yet."""
    settings = {
        "daemon": {"template_images": "on"},
        "profile default": {"preload": "decimal csv", "checkpoint": "cell", **(profile or {})},
    }
    return start_daemon(settings, uid=USER, **how)


def again(daemon: Daemon) -> None:
    """Its log begins anew."""
    daemon.terminate()
    daemon.log_path.write_text("")
    daemon.start()


def logged(daemon: Daemon, what: str) -> None:
    wait_until(lambda: what in daemon.log(), what, 12)


def directory(daemon: Daemon) -> Path:
    return daemon.directory / ".local/state/lair/images"


def images(daemon: Daemon) -> list[Path]:
    """Those that are whole and in use: a client of root has a template of its own, which may write the same image again."""
    return [path for path in directory(daemon).iterdir() if not path.suffix]


def written(daemon: Daemon) -> Path:
    logged(daemon, WRITTEN)
    (image,) = images(daemon)
    return image


def test_the_next_laird_wakes_it(start_daemon: Start) -> None:
    daemon = begin(start_daemon)
    assert daemon.client().exec("import sys; 'decimal' in sys.modules, 6 * 7").text == "(True, 42)"
    logged(daemon, UNUSED + "there is none")
    image = written(daemon)
    assert image.stat().st_mode & 0o777 == 0o600 and image.parent.stat().st_mode & 0o777 == 0o700
    for _ in range(2):
        again(daemon)
        client = daemon.client()
        assert client.exec("import sys; 'decimal' in sys.modules, 6 * 7").text == "(True, 42)"
        logged(daemon, WOKEN)
        assert images(daemon) == [image]
        client.exec(
            "import threading; n = []; t = threading.Thread(target=lambda: n.append(1)); t.start(); t.join()", "a"
        )
        client.exec("n.append(2)", "a")
        client.undo("a")
        assert client.exec("n", "a").text == "[1]"
        client.branch("a", "b")
        assert client.exec("import csv; n + [csv.QUOTE_ALL]", "b").text == "[1, 1]"
        assert client.exec("import os; os._exit(3)", "b").returncode == 3
        assert client.exec("n", "b").text == "[1]"


@contextmanager
def environment() -> Iterator[tuple[str, Path]]:
    """A virtual environment, and the directory of its packages."""
    venv = Path("/tmp") / f"lair-venv-{os.getpid()}"
    subprocess.run(["/usr/bin/python3", "-m", "venv", "--without-pip", str(venv)], check=True)
    try:
        (packages,) = venv.glob("lib/python*/site-packages")
        yield str(venv), packages
    finally:
        subprocess.run(["rm", "-r", str(venv)], check=True)


SLOW = {"preload": "lair_slow?", "spares": "0"}
NAMELESS = "import sys; 'lair_' 'slow' in sys.modules"


def test_the_makeshift_template_is_for_who_would_wait(start_daemon: Start) -> None:
    """A cell that names nothing of it has all of it at once from an image, and without one does not wait for it."""
    with environment() as (python, packages):
        (packages / "lair_slow.py").write_text("import time; time.sleep(2)")
        daemon = begin(start_daemon, {**SLOW, "python": python})
        assert daemon.lair("exec", NAMELESS).stdout == "False\n"
        assert READY not in daemon.log()
        logged(daemon, WITHOUT)
        image = written(daemon)
        again(daemon)
        assert daemon.lair("exec", NAMELESS).stdout == "True\n"
        logged(daemon, WOKEN)
        assert "without what it preloads" not in daemon.log()
        daemon.terminate()
        flip(image, 4096)
        daemon.log_path.write_text("")
        daemon.start()
        assert daemon.lair("exec", NAMELESS).stdout == "False\n"
        assert READY not in daemon.log()
        logged(daemon, WITHOUT)


DRAWS = """
import os, random, secrets, ssl, tempfile, uuid
[random.random(), secrets.token_hex(), uuid.uuid4(), uuid.uuid1(), os.urandom(8), ssl.RAND_bytes(8), next(tempfile._get_candidate_names())]
"""


def test_two_wakes_draw_other_random_numbers(start_daemon: Start) -> None:
    daemon = begin(start_daemon, {"preload": "random ssl uuid tempfile secrets"})
    written(daemon)
    drawn = []
    for _ in range(2):
        again(daemon)
        client = daemon.client()
        drawn += [client.exec(DRAWS, name).text or "" for name in ("a", "b")]
        logged(daemon, WOKEN)
    each = list(zip(*(text.strip("[]").split(", ") for text in drawn)))
    assert len(drawn) == 4 and all(len(set(values)) == 4 for values in each), drawn


def flip(image: Path, at: int) -> None:
    with image.open("r+b") as file:
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ 1]))


DAMAGE: dict[str, tuple[Callable[[Path], object], str]] = {
    "of content": (lambda image: flip(image, image.stat().st_size - 5000), "it is damaged"),
    "of the tables": (lambda image: flip(image, 4096), "it is damaged"),
    "cut off": (lambda image: os.truncate(image, image.stat().st_size // 2), "it is no image"),
    "empty": (lambda image: os.truncate(image, 0), "it is no image"),
    "for others": (lambda image: image.chmod(0o620), "somebody else could have changed it"),
    "another name": (lambda image: os.link(image, image.with_name("other")), "somebody else could have changed it"),
}


@pytest.mark.parametrize("what", DAMAGE)
def test_what_may_not_wake_is_made_again(what: str, start_daemon: Start) -> None:
    daemon = begin(start_daemon)
    image = written(daemon)
    daemon.terminate()
    damage, reason = DAMAGE[what]
    damage(image)
    if image.with_name("other").exists():
        image.with_name("other").rename(daemon.directory / "other")
    daemon.log_path.write_text("")
    daemon.start()
    assert daemon.client().exec("6 * 7").text == "42"
    logged(daemon, UNUSED + reason)
    written(daemon)
    again(daemon)
    logged(daemon, WOKEN)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_an_image_of_another_user(start_daemon: Start) -> None:
    daemon = begin(start_daemon)
    image = written(daemon)
    daemon.terminate()
    content = image.read_bytes()
    image.unlink()
    image.write_bytes(content)
    image.chmod(0o644)
    daemon.log_path.write_text("")
    daemon.start()
    logged(daemon, UNUSED)
    logged(daemon, READY)


def test_other_settings_and_changed_packages(start_daemon: Start) -> None:
    """A module of a virtual environment, and a directory in which one could have been found."""
    with environment() as (python, packages):
        module = packages / "lair_given.py"
        module.write_text("value = 1\n")
        daemon = begin(start_daemon, {"python": python, "preload": "lair_given lair_optional?"})
        code = "import lair_given, sys; lair_given.value, 'lair_optional' in sys.modules"
        assert daemon.client().exec(code).text == "(1, False)"
        written(daemon)
        again(daemon)
        assert daemon.client().exec(code).text == "(1, False)"
        logged(daemon, WOKEN)
        module.write_text("value = 2\n")
        again(daemon)
        assert daemon.client().exec(code).text == "(2, False)"
        logged(daemon, UNUSED + "files that it was made from have changed")
        logged(daemon, WRITTEN)
        (packages / "lair_optional.py").write_text("")
        again(daemon)
        assert daemon.client().exec(code).text == "(2, True)"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount")
def test_a_full_disk(start_daemon: Start) -> None:
    daemon = begin(start_daemon)
    logged(daemon, WRITTEN)
    daemon.terminate()
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size=4m,uid={USER},mode=0700", "none", directory(daemon)], check=True
    )
    try:
        daemon.log_path.write_text("")
        daemon.start()
        assert daemon.client().exec("6 * 7").text == "42"
        logged(daemon, "profile default: its image was not written: No space left on device")
        assert images(daemon) == []
        assert daemon.client().exec("6 * 7").text == "42"
        daemon.terminate()
    finally:
        subprocess.run(["umount", "-l", directory(daemon)], check=True)


@pytest.mark.parametrize("settings", [{"template_images": "off"}, {"template_images": "on", "socket_mode": "0666"}])
def test_none_are_made(settings: dict[str, str], start_daemon: Start) -> None:
    daemon = start_daemon({"daemon": settings}, uid=USER)
    assert daemon.client().exec("6 * 7").text == "42"
    logged(daemon, READY)
    assert UNUSED not in daemon.log()
    assert images(daemon) == []


def test_an_image_of_which_templates_die_is_tried_once(start_daemon: Start) -> None:
    """It is put aside until the template that has woken has made a warden."""
    daemon = begin(start_daemon, {"spares": "0"})
    image = written(daemon)
    again(daemon)
    logged(daemon, WOKEN)
    assert images(daemon) == [] and image.with_suffix(".tried").exists()
    again(daemon)
    logged(daemon, UNUSED + "there is none")
    assert daemon.client().exec("6 * 7").text == "42"

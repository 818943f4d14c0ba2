"""`lair jupyter` beside ipykernel: the messages of both for each rich display, bundle by bundle, and what they count."""

from __future__ import annotations

import contextlib
import json
import platform
import re
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from daemon import Daemon
from kernels import PORTS, Client, eventually, free_ports, kernel_of

pytest.importorskip("ipykernel")

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNkYAAAAAYAAjCB0C8AAAAASUVORK5CYII="
IMAGE = f"Image(data=__import__('base64').b64decode('{PNG}')"
IPYTHON = "from IPython.display import *\n"
PANDAS = "import pandas, numpy\nframe = pandas.DataFrame({'a': [1, 2], 'b': ['x', 'y']})\n"
PYPLOT = "import matplotlib.pyplot as plt\n"
TOLD = (
    "import enum, functools, json\ndef told(a, b: int = 1, *c, d=None, **e) -> str: pass\n"
    "class Told:\n    def method(self, a=1): pass\n    property = property(lambda self: 1)\n"
    "    class Colour(enum.Enum): RED = 1\n"
)

# Each is the value of a cell, and is shown by display().
VALUES = {
    "HTML": "HTML('<b>a</b>')",
    "Markdown": "Markdown('*a*')",
    "Latex": "Latex('$a$')",
    "Math": "Math('a')",
    "SVG": "SVG('<svg xmlns=\"http://www.w3.org/2000/svg\"><g/></svg>')",
    "PNG": f"{IMAGE})",
    "PNG with a size": f"{IMAGE}, width=100, height=50)",
    "JPEG": "Image(data=b'\\xff\\xd8\\xff\\xe0aaaa', format='jpeg')",
    "GIF": "Image(data=b'GIF89aaaa', format='gif')",
    "Image by URL": "Image(url='http://a.b/c.png', width=3)",
    "JSON": "JSON({'a': [1]})",
    "JSON unfolded": "JSON({'a': [1]}, expanded=True, root='r')",
    "Javascript": "Javascript('alert(1)', lib='http://a/b.js', css='http://a/b.css')",
    "GeoJSON": "GeoJSON({'type': 'Feature'}, url_template='http://t', layer_options={'z': 1})",
    "Audio": "Audio(data=b'aaaa', rate=8)",
    "Audio of samples": "Audio([0.0, 1.0, 0.0], rate=8000, autoplay=True)",
    "Audio by URL": "Audio(url='http://a/b.wav')",
    "Video": "Video('http://a/b.mp4')",
    "Video within": "Video(data=b'aaa', embed=True, mimetype='video/mp4')",
    "IFrame": "IFrame('http://a', 3, 4)",
    "VimeoVideo": "VimeoVideo('abc')",
    "YouTubeVideo": "YouTubeVideo('abc', width=400, start=3)",
    "ScribdDocument": "ScribdDocument('abc')",
    "FileLink": "FileLink('f')",
    "FileLinks": "FileLinks('.')",
    "Code": "Code('x = 1', language='python')",
    "Pretty": "Pretty('abc')",
    "ProgressBar": "ProgressBar(3)",
    "TextDisplayObject": "TextDisplayObject('abc')",
    "frame": "frame",
    "empty frame": "frame[:0]",
    "frame of figures": "frame.describe()",
    "series": "frame['a']",
    "grouped": "frame.groupby('a').size()",
    "index": "frame.index",
    "styler": "frame.style.set_uuid('u')",
    "array": "numpy.zeros((50, 50))",
    "figure": "(lambda made: (plt.close(), made[0])[1])(plt.subplots())",
    "dict": "{'a': [1, 2], 'b': {'c': 3}}",
    "long list": "list(range(200))",
    "long dict": "{i: 'x' * 30 for i in range(20)}",
    "nested list": "[[i] * 8 for i in range(12)]",
    "set": "{3, 1, 2}",
    "text": "'abc'",
    "exception": "ValueError('x')",
    "function": "told",
    "builtin function": "len",
    "method": "Told().method",
    "method of a builtin": "[].append",
    "class": "Told",
    "builtin class": "dict",
    "class of a module": "numpy.ndarray",
    "enumeration": "Told.Colour",
    "lambda": "lambda x, *y: x",
    "generator": "(x for x in 'a')",
    "module": "json",
    "partial": "functools.partial(told, 1)",
    "property": "Told.property",
}

CLASS = "class A:\n    def __repr__(self): return 'A'\n"
REPRS = "".join(
    f"    def _repr_{kind}_(self): return {value}\n"
    for kind, value in {
        "html": "'h'", "markdown": "'m'", "latex": "'l'", "svg": "'<svg/>'", "json": "{'j': 1}",
        "javascript": "'js'", "png": "b'png'", "jpeg": "b'jpg'", "pdf": "b'pdf'",
    }.items()
)  # fmt: skip
OWN = "{'application/x-acme': 'not base64!', 'application/vnd.acme.v1+json': {'a': 1}, 'x/y': [1, {'b': None}], 'x/n': 3}"

CELLS = {
    "figure at the end": f"{PYPLOT}plt.plot([1, 2]);",
    "figure by show": f"{PYPLOT}plt.plot([1, 2]); plt.show()",
    "handle": f"{IPYTHON}h = display(HTML('a'), display_id='q'); h.update(HTML('b'))",
    "handle of one's own": f"{IPYTHON}h = DisplayHandle('r'); h.display(1); h.update(2)",
    "handle as the value": f"{IPYTHON}display(HTML('a'), display_id='q')",
    "update_display": f"{IPYTHON}update_display(3, display_id='q')",
    "update with metadata": f"{IPYTHON}update_display(HTML('c'), display_id='q', metadata={{'text/html': {{'m': 1}}}})",
    "several": f"{IPYTHON}display(1, 'x', HTML('a'))",
    "clear_output": f"{IPYTHON}print('a'); clear_output(); print('b')",
    "clear_output that waits": f"{IPYTHON}print('a'); clear_output(wait=True); print('b')",
    "progress": f"{IPYTHON}for i in ProgressBar(2): pass",
    "metadata": f"{IPYTHON}display(HTML('a'), metadata={{'text/html': {{'isolated': True}}}})",
    "publish_display_data": f"{IPYTHON}publish_display_data({{'text/plain': 'a', 'x/y': {{'a': 1}}}}, metadata={{'x/y': {{'m': 1}}}})",
    "raw": f"{IPYTHON}display({{'text/plain': 'a', 'application/vnd.x+json': {{'k': [1]}}}}, raw=True)",
    "include": f"{IPYTHON}{CLASS}{REPRS}display(A(), include=['text/html', 'image/png'])",
    "exclude": f"{IPYTHON}{CLASS}{REPRS}display(A(), exclude=['text/html', 'text/plain'])",
    "all forms": f"{CLASS}{REPRS}A()",
    "all forms, shown": f"{CLASS}{REPRS}display(A())",
    "a form with metadata": f"{CLASS}    def _repr_html_(self): return 'h', {{'x': 1}}\nA()",
    "a bundle of its own": f"{CLASS}    def _repr_mimebundle_(self, include=None, exclude=None): return {OWN}\nA()",
    "a bundle of its own, shown": f"{CLASS}    def _repr_mimebundle_(self, **keys): return {OWN}\ndisplay(A())",
    "a bundle with metadata": f"{CLASS}    def _repr_mimebundle_(self, **keys): return {{'text/html': 'x'}}, {{'text/html': {{'m': 1}}}}\nA()",
    **{
        f"a raising {form}, {how}": f"{CLASS}    def {form}(self, *a, **k): raise ValueError('no')\n{code}"
        for form in ("_repr_html_", "_repr_png_", "_repr_mimebundle_", "_ipython_display_")
        for how, code in (("value", "A()"), ("shown", "display(A())"))
    },
    "forms without a method": f"{CLASS}    _repr_html_ = None\n    _repr_png_ = 3\nA()",
    "a form that is not implemented": f"{CLASS}    def _repr_html_(self): raise NotImplementedError\nA()",
    "what shows itself": "class A:\n    def _ipython_display_(self): print('me')\nA()",
    "what prints itself": "class A:\n    def _repr_pretty_(self, p, cycle): p.text('pretty!')\nA()",
    "semicolon": "5;",
    "semicolon and comment": "5; # five",
    "no semicolon": "5 # five;",
    "none": "None",
    "magic html": "%%html\n<b>x</b>",
    "magic javascript": "%%javascript\nalert(1)",
    "magic latex": "%%latex\n$a$",
    "magic svg": '%%svg\n<svg xmlns="http://www.w3.org/2000/svg"/>',
    "magic markdown": "%%markdown\n*a*",
    "input": "input('a')",
    "getpass": "import getpass; getpass.getpass('x')",
    **{f"{name}, value": f"{IPYTHON}{PANDAS}{PYPLOT}{TOLD}{code}" for name, code in VALUES.items()},
    **{f"{name}, shown": f"{IPYTHON}{PANDAS}{PYPLOT}{TOLD}display({code})" for name, code in VALUES.items()},
}

PLACES = re.compile(r"/tmp/(lair-test-[^/]*/work/[^/]*/[^/\\\"' <]*|ipykernel-[a-z0-9_]*/work)")
ADDRESS = re.compile(r"( object)? at 0x[0-9a-f]+>")
BINARY = ("image/png", "image/jpeg", "image/gif", "application/pdf")


def plain(told: Any, mime: str = "") -> Any:
    """Without what differs from run to run: addresses, places, and where base 64 breaks its lines."""
    if isinstance(told, dict):
        return {key: plain(value, key) for key, value in told.items()}
    if isinstance(told, list):
        return [plain(each) for each in told]
    if not isinstance(told, str):
        return told
    return told.replace("\n", "") if mime in BINARY else ADDRESS.sub(" at>", PLACES.sub("PLACE", told))


# What a session says besides, for a person.
ASIDE = re.compile(r"[Bb]locked: .*\n|.* decides this\.\n")
# A form that fails: ipykernel publishes an error in a cell that is fine, a session writes a line.
FAILED = re.compile(r"A\._\w+_: ValueError: no\n")


def without_asides(told: list[Any]) -> list[Any]:
    kept = []
    for kind, content in told:
        if kind == "stream" and content["name"] == "stderr":
            if FAILED.fullmatch(content["text"]):
                kind, content = "error", {"ename": "ValueError", "evalue": "no"}
            elif not ASIDE.sub("", content["text"]):
                continue
        kept.append((kind, content))
    return kept


def told_by(client: Client, code: str, **more: Any) -> Any:
    """What a cell publishes, and the part of its reply that clients use. Pieces of one stream are joined."""
    name = client.start(code, **more)
    reply = client.reply(name, timeout=60)["content"]
    told: list[Any] = []
    ids: dict[str, int] = {}
    for message in client.until_idle(name, timeout=60):
        kind, content = message["type"], plain(message["content"])
        if kind == "stream" and told and told[-1][0] == kind and told[-1][1]["name"] == content["name"]:
            told[-1][1]["text"] += content["text"]
            continue
        if kind == "error":
            content = {"ename": content["ename"], "evalue": content["evalue"]}
        shown = content.get("transient", {}).get("display_id")
        if shown:
            content["transient"]["display_id"] = ids.setdefault(shown, len(ids))
        told.append((kind, content))
    return without_asides(told), reply["status"], reply["execution_count"]


@contextlib.contextmanager
def ipykernel() -> Iterator[Client]:
    with tempfile.TemporaryDirectory(prefix="ipykernel-") as directory:
        file = Path(directory, "connection.json")
        connection = {
            "ip": "127.0.0.1",
            "transport": "tcp",
            "key": uuid.uuid4().hex,
            "signature_scheme": "hmac-sha256",
            **dict(zip(PORTS, free_ports(5))),
        }
        file.write_text(json.dumps(connection))
        work = Path(directory, "work")
        work.mkdir()
        command = [sys.executable, "-Xfrozen_modules=off", "-m", "ipykernel_launcher", "-f", str(file)]
        process = subprocess.Popen(command, cwd=work, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        client = Client(connection)
        try:
            client.ready()
            yield client
        finally:
            client.close()
            process.kill()
            process.wait()


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    it = Daemon({"profile workbench": {"checkpoint": "cell"}})
    yield it
    it.end()


@pytest.fixture(scope="module")
def both(daemon: Daemon) -> Iterator[tuple[Client, Client]]:
    with kernel_of(daemon) as kernel, ipykernel() as other:
        client = kernel.client()
        for it in (client, other):
            told_by(it, f"{IPYTHON}{PANDAS}{PYPLOT}")
        yield client, other


def test_the_language(both: tuple[Client, Client]) -> None:
    """Clients keep it with the notebook."""
    theirs = both[1].request("kernel_info_request", {})["language_info"]
    eventually(lambda: both[0].request("kernel_info_request", {})["language_info"] == theirs)


def test_the_language_at_the_first_question(daemon: Daemon) -> None:
    with kernel_of(daemon) as kernel:
        client = Client(kernel.connection)
        kernel.clients.append(client)
        version = client.reply(client.send("kernel_info_request", {}))["content"]["language_info"]["version"]
        assert version == platform.python_version()


@pytest.mark.parametrize("code", CELLS.values(), ids=CELLS)
def test_the_same_messages(both: tuple[Client, Client], code: str) -> None:
    ours, theirs = (told_by(it, code) for it in both)
    assert ours == theirs


@pytest.mark.parametrize(
    "more", [{"store_history": False}, {"silent": True}, {"silent": True, "store_history": False}], ids=str
)
def test_what_does_not_count(both: tuple[Client, Client], more: dict[str, Any]) -> None:
    for code in ("1", "x = 2", "1 / 0", "display(3)"):
        ours, theirs = (told_by(it, code, **more) for it in both)
        assert ours == theirs
        ours, theirs = (told_by(it, "len(In) - 1, _i") for it in both)
        assert ours == theirs


def test_where_a_session_says_more(both: tuple[Client, Client]) -> None:
    """ipykernel shows nothing of a value whose text fails, and calls the cell fine. A session shows the repr(), or the cell has
    failed."""
    for code, ours, theirs in (
        (f"{CLASS}    def _repr_pretty_(self, *a): raise ValueError('no')\nA()", ("ok", "A"), ("ok", None)),
        ("class A:\n    def __repr__(self): raise ValueError('no')\nA()", ("error", None), ("ok", None)),
        (f"{CLASS}    def _repr_html_(self): return 3\nA()", ("ok", "A"), ("ok", "A")),
    ):
        for it, expected in zip(both, (ours, theirs)):
            told, status, _ = told_by(it, code)
            texts = [content["data"]["text/plain"] for kind, content in told if kind == "execute_result"]
            assert (status, texts) == (expected[0], [expected[1]] if expected[1] else []), told
            assert len(told) > 1 + len(texts), "the failure is told"


def test_numbers_of_what_was_shown(both: tuple[Client, Client]) -> None:
    for code in ("'a'", "_ + 'b'", "max(Out)", "_i"):
        assert told_by(both[0], code) == told_by(both[1], code)


def test_a_cell_without_code_does_not_count(both: tuple[Client, Client]) -> None:
    for code in ("", "  \n", "1"):
        assert told_by(both[0], code)[2] == told_by(both[1], code)[2]


def test_expressions_of_a_client(both: tuple[Client, Client]) -> None:
    expressions = {"a": "__import__('IPython').display.JSON({'a': 1})", "b": "1"}
    told = []
    for it in both:
        name = it.start("3", user_expressions=expressions)
        told.append(plain(it.reply(name)["content"]["user_expressions"]))
        it.until_idle(name)
    assert told[0] == told[1]


@pytest.mark.parametrize("code", ["exit()", "quit()", "exit(3)"])
def test_exit(both: tuple[Client, Client], code: str) -> None:
    """ipykernel asks its client to leave, and ends. A session stays, and says how to end it."""
    with ipykernel() as other:
        reply = other.reply(other.start(code), timeout=60)["content"]
    assert (reply["status"], [it["source"] for it in reply["payload"]]) == ("ok", ["ask_exit"])
    client = both[0]
    client.run("kept = 41")
    error = client.error(code)
    assert error["ename"] == "SystemExit" and "to end the session" in error["evalue"] and error["payload"] == []
    assert client.value("kept + 1") == "42"
    assert client.value(code.partition("(")[0]).startswith("Use ")

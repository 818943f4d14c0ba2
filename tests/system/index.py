"""An index of packages on loopback, and wheels for it: good ones, hostile ones, and an index that behaves badly."""

from __future__ import annotations

import base64
import fcntl
import hashlib
import io
import shutil
import stat
import subprocess
import sys
import tarfile
import threading
import time
import zipfile
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

ROOT = Path(__file__).parents[2]


def find_uv() -> str | None:
    """The uv that there is, or one that is installed for the tests; None if neither."""
    found = shutil.which("uv")
    if found:
        return found
    place = ROOT / "build" / "uv"
    place.parent.mkdir(exist_ok=True)
    with (place.parent / "uv.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (place / "bin" / "uv").exists():
            shutil.rmtree(place, ignore_errors=True)
            commands = (
                [sys.executable, "-m", "venv", str(place)],
                [f"{place}/bin/pip", "install", "--quiet", "uv"],
            )
            for command in commands:
                if subprocess.run(command, capture_output=True, timeout=300).returncode != 0:
                    return None
    return str(place / "bin" / "uv")


def wheel(
    name: str,
    version: str,
    files: dict[str, bytes],
    requires: tuple[str, ...] = (),
    links: dict[str, str] | None = None,
    metadata: str = "",
    record: str = "",
) -> bytes:
    """The bytes of a wheel, whose files may have any names. `links` are symbolic; `metadata` and `record` take the place of
    true ones."""
    info = f"{name.replace('-', '_')}-{version}.dist-info"
    metadata = metadata or f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    metadata += "".join(f"Requires-Dist: {it}\n" for it in requires)
    every = {
        **files,
        f"{info}/METADATA": metadata.encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    true = ""
    for path, data in every.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        true += f"{path},sha256={digest},{len(data)}\n"
    every[f"{info}/RECORD"] = (record or true + f"{info}/RECORD,,\n").encode()
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, to in (links or {}).items():
            link = zipfile.ZipInfo(path)
            link.external_attr = (stat.S_IFLNK | 0o777) << 16
            archive.writestr(link, to)
        for path, data in every.items():
            archive.writestr(path, data)
    return out.getvalue()


def source(name: str, version: str, files: dict[str, bytes]) -> bytes:
    """The bytes of a source distribution."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for path, data in files.items():
            entry = tarfile.TarInfo(f"{name}-{version}/{path}")
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return out.getvalue()


def metadata(data: bytes) -> bytes:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return archive.read(next(it for it in archive.namelist() if it.endswith("/METADATA")))


class Index:
    """Serves the simple interface. `slow`: seconds before each answer, `halting`: in its middle; `stuck`: what is asked for
    is never answered; `special`: who answers all that is asked of a project."""

    def __init__(self) -> None:
        self.files: dict[str, dict[str, bytes]] = {}
        self.asked: list[str] = []
        self.headers: list[str] = []
        self.slow = 0.0
        self.halting = 0.0
        self.stuck = False
        self.garbage = False
        self.special: dict[str, Callable[[BaseHTTPRequestHandler], None]] = {}
        self.apart: set[str] = set()  # files whose digest and metadata can be had without them
        self.gate = threading.Event()
        index = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                index.answer(self)

            def log_message(self, *unused: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}/simple"

    def add(
        self, name: str, version: str, files: dict[str, bytes] | None = None, requires: tuple[str, ...] = ()
    ) -> None:
        module = name.replace("-", "_")
        data = wheel(name, version, files or {f"{module}.py": f"version = {version!r}\n".encode()}, requires)
        self.put(name, f"{module}-{version}-py3-none-any.whl", data)

    def put(self, name: str, filename: str, data: bytes) -> None:
        self.files.setdefault(name, {})[filename] = data

    def line(self, name: str, filename: str) -> str:
        digest = (
            f"#sha256={hashlib.sha256(self.files[name][filename]).hexdigest()}" if filename in self.apart else ""
        )
        apart = ' data-core-metadata="true"' if filename in self.apart else ""
        return f'<a href="/simple/{name}/{filename}{digest}"{apart}>{filename}</a>\n'

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        self.asked.append(request.path)
        self.headers.append(str(request.headers))
        time.sleep(self.slow)
        if self.stuck:
            self.gate.wait(120)
        parts = request.path.strip("/").split("/")
        if len(parts) > 1 and parts[1] in self.special:
            self.special[parts[1]](request)
            return
        project = self.files.get(parts[1]) if len(parts) > 1 else None
        data = project.get(parts[2]) if project and len(parts) > 2 else None
        if project and len(parts) == 2:
            data = "".join(self.line(parts[1], it) for it in project).encode()
        if data is None and request.path.endswith(".metadata") and project:
            data = metadata(project[parts[2][: -len(".metadata")]])
        if self.garbage:
            data = b"\xff\x00<a href=" * 1000
        request.send_response(404 if data is None else 200)
        request.send_header("Content-Type", "text/html" if len(parts) == 2 else "application/octet-stream")
        request.send_header("Content-Length", str(len(data or b"")))
        request.end_headers()
        half = len(data or b"") // 2 if self.halting else 0
        request.wfile.write((data or b"")[:half])
        time.sleep(self.halting)
        request.wfile.write((data or b"")[half:])

    def close(self) -> None:
        self.gate.set()
        self.server.shutdown()
        self.server.server_close()

"""Tells what changes below a directory, a line of JSON for each event. It looks four times a second, and when it is asked
to: a file that comes and goes in between is not seen."""

from __future__ import annotations

import base64
import json
import os
import threading
from typing import Dict, Iterator, Tuple

Found = Dict[str, Tuple[int, int, int, int]]

_PAUSE = 0.25
_MOST = 20000


def _look(top: str, recursive: bool) -> Found:
    found: Found = {}
    below = [""]
    while below and len(found) < _MOST:
        at = below.pop()
        try:
            entries = list(os.scandir(os.path.join(top, at)))
        except OSError:
            continue
        for entry in entries:
            name = os.path.join(at, entry.name)
            if entry.name.startswith((".lair-", ".branches")):
                continue
            try:
                seen = entry.stat(follow_symlinks=False)
            except OSError:
                continue
            found[name] = (seen.st_ino, seen.st_mtime_ns, seen.st_size, seen.st_mode)
            if recursive and entry.is_dir(follow_symlinks=False):
                below.append(name)
    return found


def _compare(old: Found, new: Found) -> Iterator[tuple[str, str]]:
    gone = {old[name][0]: name for name in old if name not in new}
    for name, now in new.items():
        before = old.get(name)
        if before is None and now[0] in gone:
            yield gone.pop(now[0]), "RENAME"
            yield name, "CREATE"
        elif before is None:
            yield name, "CREATE"
            if now[2] and not now[3] & 0o040000:
                yield name, "WRITE"
        elif before[0] != now[0] or (before[1:3] != now[1:3] and not now[3] & 0o040000):
            yield name, "WRITE"
        elif before[3] != now[3]:
            yield name, "CHMOD"
    for name in gone.values():
        yield name, "REMOVE"


def _main(packed: str) -> None:
    given = json.loads(base64.b64decode(packed))
    path, home, here = given["path"], "/home/user", os.getcwd()
    path = os.path.normpath(os.path.join(home, path))
    top = os.path.join(here, path[len(home) + 1 :]) if path == home or path.startswith(home + "/") else path
    if not os.path.isdir(top):
        code = "invalid_argument" if os.path.exists(top) else "not_found"
        print(json.dumps({"failed": code, "why": f"path {path} not found or no directory"}), flush=True)
        return
    seen = _look(top, given["recursive"])
    one = threading.Lock()

    def tell() -> None:
        nonlocal seen
        with one:
            now = _look(top, given["recursive"])
            for name, kind in _compare(seen, now):
                print(json.dumps({"name": name, "type": f"EVENT_TYPE_{kind}"}), flush=True)
            seen = now

    def again_and_again() -> None:
        until = threading.Event()
        while not until.wait(_PAUSE):
            tell()

    print(json.dumps({"watching": True}), flush=True)
    threading.Thread(target=again_and_again, daemon=True).start()
    while True:
        try:
            order = json.loads(input())
        except EOFError:
            break
        tell()
        print(json.dumps({"looked": order["look"]}), flush=True)

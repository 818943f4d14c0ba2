"""Tells what changes below a directory, a line of JSON for each event. It looks four times a second, and when it is asked
to: a file that comes and goes in between is not seen. It runs after filesystem.py, whose functions it uses."""

import base64
import json
import os
import threading
from typing import TYPE_CHECKING, Any, Dict, Iterator, Tuple

if TYPE_CHECKING:

    def _inside(path: str) -> str: ...
    def _outside(path: str) -> str: ...
    def _entry(path: str) -> Dict[str, Any]: ...


Found = Dict[str, Tuple[int, int, int, int]]

_PAUSE = 0.25
_SEEN_AT_MOST = 20000
_AS_MADE = 0o600  # a file of a session has another mode only if somebody has set it


def _look(top: str, recursive: bool) -> Found:
    found: Found = {}
    below = [""]
    while below and len(found) < _SEEN_AT_MOST:
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


def _compare(old: Found, new: Found) -> Iterator[Tuple[str, str]]:
    gone = {old[name][0]: name for name in old if name not in new}
    for name, now in new.items():
        before = old.get(name)
        if before is None and now[0] in gone:
            yield gone.pop(now[0]), "RENAME"
            yield name, "CREATE"
        elif before is None:
            yield name, "CREATE"
            if not now[3] & 0o040000:
                if now[3] & 0o777 != _AS_MADE:
                    yield name, "CHMOD"
                if now[2]:
                    yield name, "WRITE"
        elif before[0] != now[0] or (before[1:3] != now[1:3] and not now[3] & 0o040000):
            yield name, "WRITE"
        elif before[3] != now[3]:
            yield name, "CHMOD"
    for name in gone.values():
        yield name, "REMOVE"


def _event(top: str, name: str, kind: str, entry: bool) -> Dict[str, Any]:
    event: Dict[str, Any] = {"name": name, "type": f"EVENT_TYPE_{kind}"}
    if entry:
        try:
            event["entry"] = _entry(os.path.join(top, name))
        except OSError:
            pass  # it is gone
    return event


def _main(packed: str) -> None:
    given = json.loads(base64.b64decode(packed))
    top = _inside(given["path"])
    path = _outside(top)
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
                print(json.dumps(_event(top, name, kind, given["entry"])), flush=True)
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

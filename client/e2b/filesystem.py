"""What a client of E2B asks of the file system of its session, as the session sees it."""

from __future__ import annotations

import base64
import datetime
import grp
import json
import os
import pwd
import shutil
import stat
from typing import Any, Callable, Dict

Asked = Dict[str, Any]

_HOME = "/home/user"
_MOST = 10000


class _Failure(Exception):
    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def _inside(path: str) -> str:
    here = os.getcwd()
    if path == "~" or path.startswith("~/"):
        path = _HOME + path[1:]
    path = os.path.normpath(os.path.join(_HOME, path))
    if path == _HOME or path.startswith(_HOME + "/"):
        return os.path.join(here, path[len(_HOME) + 1 :]).rstrip("/")
    return path


def _outside(path: str) -> str:
    here = os.getcwd()
    return _HOME + path[len(here) :] if path == here or path.startswith(here + "/") else path


def _name(table: Callable[[int], Any], number: int) -> str:
    try:
        return str(table(number)[0])
    except KeyError:
        return str(number)


def _entry(path: str) -> Asked:
    found = os.lstat(path)
    link = stat.S_ISLNK(found.st_mode)
    kind = found
    if link:
        try:
            kind = os.stat(path)
        except OSError:
            pass
    what = "FILE_TYPE_DIRECTORY" if stat.S_ISDIR(kind.st_mode) else "FILE_TYPE_FILE"
    if link and kind is found:
        what = "FILE_TYPE_SYMLINK"
    shown = _outside(path)
    when = datetime.datetime.fromtimestamp(found.st_mtime, datetime.timezone.utc)
    entry: Asked = {
        "name": os.path.basename(shown),
        "type": what,
        "path": shown,
        "size": str(found.st_size),
        "mode": stat.S_IMODE(found.st_mode),
        "permissions": stat.filemode(found.st_mode),
        "owner": "user" if found.st_uid == os.getuid() else _name(pwd.getpwuid, found.st_uid),
        "group": "user" if found.st_gid == os.getgid() else _name(grp.getgrgid, found.st_gid),
        "modifiedTime": when.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
    }
    if link:
        entry["symlinkTarget"] = _outside(os.path.realpath(path))
    return entry


def _list(path: str, depth: int) -> list[Asked]:
    entries: list[Asked] = []
    for name in sorted(os.listdir(path)):
        if name.startswith((".lair-", ".branches")):
            continue
        at = os.path.join(path, name)
        try:
            entries.append(_entry(at))
        except OSError:
            continue
        if len(entries) > _MOST:
            raise _Failure("resource_exhausted", "the directory has too many entries")
        if depth > 1 and os.path.isdir(at) and not os.path.islink(at):
            entries += _list(at, depth - 1)
    return entries


def _list_dir(asked: Asked) -> Asked:
    path = _inside(asked.get("path", ""))
    if not os.path.lexists(path):
        raise _Failure("not_found", f"path not found: {_outside(path)}")
    if not os.path.isdir(path):
        raise _Failure("invalid_argument", f"path is not a directory: {_outside(path)}")
    return {"entries": _list(path, int(asked.get("depth") or 1))}


def _stat(asked: Asked) -> Asked:
    return {"entry": _entry(_inside(asked.get("path", "")))}


def _make_dir(asked: Asked) -> Asked:
    path = _inside(asked.get("path", ""))
    if os.path.isdir(path):
        raise _Failure("already_exists", f"directory already exists: {_outside(path)}")
    if os.path.lexists(path):
        raise _Failure("invalid_argument", f"path already exists but it is not a directory: {_outside(path)}")
    os.makedirs(path)
    return {"entry": _entry(path)}


def _move(asked: Asked) -> Asked:
    source, target = _inside(asked.get("source", "")), _inside(asked.get("destination", ""))
    if not os.path.lexists(source):
        raise _Failure("not_found", f"source file not found: {_outside(source)}")
    os.makedirs(os.path.dirname(target), exist_ok=True)
    os.rename(source, target)
    return {"entry": _entry(target)}


def _remove(asked: Asked) -> Asked:
    path = _inside(asked.get("path", ""))
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    elif os.path.lexists(path):
        os.remove(path)
    return {}


def _stage(asked: Asked) -> Asked:
    """Between the workspace and the rest of the file system, for uploads and downloads."""
    source, target = _inside(asked["source"]), _inside(asked["target"])
    if not os.path.isfile(source):
        if os.path.isdir(source):
            raise _Failure("invalid_argument", f"path '{asked['source']}' is a directory")
        raise _Failure("not_found", f"path '{asked['source']}' does not exist")
    os.makedirs(os.path.dirname(target), exist_ok=True)
    if asked.get("move"):
        shutil.move(source, target)
    else:
        shutil.copyfile(source, target)
    return {}


_CALLS: dict[str, Callable[[Asked], Asked]] = {
    "ListDir": _list_dir,
    "Stat": _stat,
    "MakeDir": _make_dir,
    "Move": _move,
    "Remove": _remove,
    "stage": _stage,
}


def _denied(call: str, asked: Asked, error: PermissionError) -> str:
    if call not in ("MakeDir", "Move", "Remove") and not asked.get("move"):
        return str(error)
    places = [_HOME, *(place for place in ("/tmp", "/dev/shm") if os.access(place, os.W_OK))]
    return f"{error}; a sandbox may write below {', '.join(places)}"


def _main(packed: str) -> None:
    given = json.loads(base64.b64decode(packed))
    os.umask(0o022)  # as envd has it
    try:
        told: Asked = {"done": _CALLS[given["call"]](given["asked"])}
    except _Failure as failure:
        told = {"code": failure.code, "message": str(failure)}
    except FileNotFoundError as error:
        told = {"code": "not_found", "message": f"path not found: {_outside(error.filename or '')}"}
    except PermissionError as error:
        told = {"code": "permission_denied", "message": _denied(given["call"], given["asked"], error)}
    except (OSError, ValueError) as error:
        told = {"code": "invalid_argument", "message": str(error)}
    print(json.dumps(told))

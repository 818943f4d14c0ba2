"""A branch may have a copy of the files."""

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import reloading

_environ = os.environ
_chdir, _getcwd = os.chdir, os.getcwd
_scandir, _mkdir, _rmdir, _unlink = os.scandir, os.mkdir, os.rmdir, os.unlink
_symlink, _readlink = os.symlink, os.readlink
_open, _close, _sendfile, _stat = os.open, os.close, os.sendfile, os.stat
_chmod, _utime = os.chmod, os.utime
_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW
_MAKE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
_BRANCHES = ".branches"


def _like(status: os.stat_result, target: Any) -> None:
    _chmod(target, status.st_mode & 0o7777)
    _utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))


def _copy_file(source: str, target: str) -> None:
    reading = _open(source, _READ)
    try:
        writing = _open(target, _MAKE, 0o600)
        try:
            while _sendfile(writing, reading, None, 1 << 30):
                pass
            _like(_stat(reading), writing)
        finally:
            _close(writing)
    except OSError as error:
        raise OSError(error.errno, error.strerror, source) from None
    finally:
        _close(reading)


def _copy_tree(source: str, target: str) -> None:
    """Links are copied as links. Everything that is no file, directory or link is left out, and so are the copies
    of other branches."""
    directories = [(source, target)]
    for here, there in directories:
        _mkdir(there, 0o700)
        with _scandir(here) as entries:
            for entry in entries:
                copy = f"{there}/{entry.name}"
                if entry.is_symlink():
                    _symlink(_readlink(entry.path), copy)
                elif entry.is_file():
                    _copy_file(entry.path, copy)
                elif entry.is_dir() and entry.path != f"{source}/{_BRANCHES}":
                    directories.append((entry.path, copy))
    for here, there in reversed(directories):  # from now on nothing is added to them
        _like(_stat(here), there)


def _remove_tree(top: str) -> None:
    """Removes what there is of the tree."""
    directories = [top]
    try:
        for directory in directories:
            with _scandir(directory) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        directories.append(entry.path)
                    else:
                        _unlink(entry.path)
        for directory in reversed(directories):
            _rmdir(directory)
    except Exception:
        pass


def _move(home: str, place: str) -> None:
    """If the process works in the workspace, it moves to the copy. If it works elsewhere, it stays there."""
    try:
        here = _getcwd()
    except OSError:  # it has been removed
        here = home
    for name in ("HOME", "PWD"):
        try:
            if _environ.get(name) == home:
                _environ[name] = place
        except Exception:
            pass  # if a cell has broken the environment, it stays broken
    try:
        reloading.moved(home, place)
    except Exception:
        pass
    if here == home or here.startswith(home + "/"):
        there = place + here[len(home) :]
        try:
            _chdir(there)
        except OSError:
            _chdir(place)


def _branches(home: str) -> str:
    """The directory of all branches of the family."""
    return f"{home.split(f'/{_BRANCHES}/')[0]}/{_BRANCHES}"


def files(home: str, name: str) -> str:
    """Copies the workspace `home` to .branches/NAME in the workspace of the family, and moves there. Returns the
    path. A cell may have changed Python's own modules, so nothing is looked up in them here."""
    branches = _branches(home)
    place = f"{branches}/{name}"
    try:
        _mkdir(branches)
    except FileExistsError:
        pass
    try:
        _copy_tree(home, place)
        _move(home, place)
    except BaseException:
        _remove_tree(place)
        raise
    return place


def filled(home: str, name: str) -> str:
    """The same, where the files are there already."""
    place = f"{_branches(home)}/{name}"
    _move(home, place)
    return place


def home(family: str, name: str) -> str:
    """Moves to the copy of that name, which is there unless a cell has removed it. Returns the path."""
    place = f"{family}/{_BRANCHES}/{name}"
    for directory in (f"{family}/{_BRANCHES}", place):
        try:
            _mkdir(directory, 0o700)
        except FileExistsError:
            pass
    _move(family, place)
    return place

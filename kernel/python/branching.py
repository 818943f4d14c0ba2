"""Makes a fork differ from its origin: new random numbers and, if asked, a copy of the files."""

import os
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import reloading

_modules = sys.modules
_environ = os.environ
_chdir, _getcwd = os.chdir, os.getcwd
_scandir, _mkdir, _rmdir, _unlink = os.scandir, os.mkdir, os.rmdir, os.unlink
_symlink, _readlink = os.symlink, os.readlink
_open, _close, _sendfile, _stat = os.open, os.close, os.sendfile, os.stat
_chmod, _utime = os.chmod, os.utime
_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW
_MAKE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
_BRANCHES = ".branches"


def reseed() -> None:
    """The global generators; those that a cell made for itself draw the same in every branch."""
    for name in ("random", "numpy.random"):
        seed = getattr(_modules.get(name), "seed", None)
        if seed is not None:
            seed()


def generator() -> int:
    """A new one for numpy, which lies where there is room now, and the address of its state: 624 words and an int,
    which is looked at to be sure. Or 0."""
    numpy: Any = _modules.get("numpy")
    if numpy is None:
        return 0
    import ctypes  # which numpy has

    replace = getattr(numpy.random, "set_bit_generator", None)  # since numpy 1.24
    if replace is not None and type(numpy.random.mtrand._rand._bit_generator) is numpy.random.MT19937:
        replace(numpy.random.MT19937())
    name, key, position, has_gauss, _ = numpy.random.get_state()
    address = int(numpy.random.mtrand._rand._bit_generator.ctypes.state_address)
    found = numpy.ctypeslib.as_array((ctypes.c_uint32 * (len(key) + 1)).from_address(address))
    known = name == "MT19937" and len(key) == 624 and not has_gauss
    return address if known and (found[:-1] == key).all() and found[-1] == position else 0


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
    """Links as links; what is neither file, directory nor link is left out, and so are other branches."""
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
    for here, there in reversed(directories):  # nothing is added to it any more
        _like(_stat(here), there)


def _remove_tree(top: str) -> None:
    """As far as it is there."""
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
    """Who works in the workspace is to work in the copy; elsewhere, it stays there."""
    try:
        here = _getcwd()
    except OSError:  # it has been removed
        here = home
    for name in ("HOME", "PWD"):
        try:
            if _environ.get(name) == home:
                _environ[name] = place
        except Exception:
            pass  # what a cell has broken stays so
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


def files(home: str, name: str) -> str:
    """Copy the workspace, which is `home`, to .branches/NAME in the family's, and be at home there from now on.
    Returns where. Whatever a cell has made of Python's own modules: so nothing here is looked up in them."""
    branches = f"{home.split(f'/{_BRANCHES}/')[0]}/{_BRANCHES}"
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


def home(family: str, name: str) -> str:
    """The copy of that name is there already, if no cell has removed it: be at home in it. Returns where."""
    place = f"{family}/{_BRANCHES}/{name}"
    for directory in (f"{family}/{_BRANCHES}", place):
        try:
            _mkdir(directory, 0o700)
        except FileExistsError:
            pass
    _move(family, place)
    return place

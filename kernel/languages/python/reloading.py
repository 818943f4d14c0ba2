"""Imports modules of the workspace again if their files have changed since."""

import importlib
import os
import sys
from importlib.machinery import SourceFileLoader
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Tuple

if TYPE_CHECKING:
    import objects

Names = Dict[Any, Any]
Mark = Tuple[int, int, int]

_reload = importlib.reload
_invalidate_caches = importlib.invalidate_caches
_stat = os.stat
_modules = sys.modules
_path_stats = SourceFileLoader.path_stats

# By path: the state of the file when it was last imported; None if the import failed.
_imported: Dict[str, Optional[Mark]] = {}
# The files went back, or were put into a new place, and have not been looked at since: what was made again, or is a
# copy, has another inode.
_went_back = False


def _mark(path: str) -> Optional[Mark]:
    try:
        status = _stat(path)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


def _same(now: Optional[Mark], then: Optional[Mark]) -> bool:
    return now == then or (_went_back and now is not None and then is not None and now[:2] == then[:2])


def files_back() -> None:
    global _went_back
    _went_back = True


def _noted(self: SourceFileLoader, path: str) -> Any:
    """Every import of a source file calls this before it reads the file."""
    _imported[path] = _mark(path)
    return _path_stats(self, path)


SourceFileLoader.path_stats = _noted  # type: ignore[method-assign, assignment]


def _file_of(module: object) -> str:
    file = objects.own_names(module).get("__file__") if type(module) is ModuleType else None
    return file if type(file) is str else ""


def _of_workspace(home: str) -> List[Any]:
    """The modules of the workspace. A module comes after those that it imports."""
    found = [module for module in list(_modules.values()) if _file_of(module).startswith(home + "/")]
    return [module for module in reversed(found) if _file_of(module) in _imported]


def moved(home: str, place: str) -> None:
    """The workspace was `home` and is the copy `place` from now on. Modules that were imported from `home` now
    belong to the files of the copy."""

    def there(path: Any) -> Any:
        if type(path) is str and (path == home or path.startswith(home + "/")):
            return place + path[len(home) :]
        return path

    for path, mark in list(_imported.items()):
        if there(path) != path:
            copy = _mark(there(path))
            if copy is None:  # it is put there later
                copy = mark
            elif not _same(_mark(path), mark):
                copy = None
            _imported[there(path)] = copy
            del _imported[path]
    for module in list(_modules.values()):
        file = _file_of(module)
        if there(file) != file:
            names = objects.own_names(module)
            names["__file__"] = there(file)
            inside = names.get("__path__")
            if type(inside) is list:
                inside[:] = map(there, inside)
    sys.path[:] = map(there, sys.path)


def _replaced(module: ModuleType, before: Names) -> Dict[int, Any]:
    """By the id of an old function or class: the one that has its name now."""
    after = objects.own_names(module)
    return {
        id(value): after[name]
        for name, value in before.items()
        if (type(value) is FunctionType or objects.is_type(value)) and after.get(name, value) is not value
    }


def _rebind(names: Names, replaced: Dict[int, Any]) -> None:
    for name, value in list(names.items()):
        if id(value) in replaced:
            names[name] = replaced[id(value)]


def edited(names: Names, home: str) -> None:
    """Imports again the modules of the workspace `home` that have changed. If a name holds a function or class of
    such a module, it gets the new one."""
    global _went_back
    modules = _of_workspace(home)
    _invalidate_caches()
    for path in map(_file_of, modules):
        now = _mark(path)
        if _same(now, _imported[path]):
            _imported[path] = now
    _went_back = False
    for module in modules:
        path = _file_of(module)
        now = _mark(path)
        if now is None or now == _imported[path]:
            continue
        before = dict(objects.own_names(module))
        try:
            _reload(module)
        except BaseException:
            _imported[path] = None
            raise
        replaced = _replaced(module, before)
        for holder in [names, *map(objects.own_names, modules)]:
            if holder is not objects.own_names(module):
                _rebind(holder, replaced)

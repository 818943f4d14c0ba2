"""The variables of a session: listed, forgotten, all but some forgotten."""

import gc
import operator
import os
from typing import TYPE_CHECKING, Any, Dict, List, Tuple

if TYPE_CHECKING:
    import magics
    import objects

_MOST = 1000
_collect = gc.collect
_chdir = os.chdir
_directory = os.getcwdb
_first = operator.itemgetter(0)

Names = Dict[Any, Any]


class Refused(Exception):
    """Something is wrong with the question. The router is told what."""


def _shown(name: object) -> bool:
    return type(name) is str and not (name.startswith("__") and name.endswith("__"))


def _described(name: str, value: object) -> Dict[str, Any]:
    described = {"name": name, "type": objects.title(type(value)), "size": 0, "text": objects.text(value)}
    try:
        described["size"] = max(objects.size(value), 0)
        shape = objects.shape(value)
    except KeyboardInterrupt:
        raise
    except BaseException:
        return described
    if shape is not None:
        described["shape"] = shape
    return described


def _missing(names: Names, wanted: List[str]) -> None:
    for name in wanted:
        if name not in names:
            raise Refused(f'there is no variable "{name}"')


def own(names: Names) -> List[Tuple[str, Any]]:
    """Those that a cell has made, by name."""
    given = magics.hidden
    return sorted(
        (
            (name, value)
            for name, value in list(names.items())
            if _shown(name) and not (name in given and given[name] is value)
        ),
        key=_first,
    )


def listed(names: Names, forget: List[str]) -> Dict[str, Any]:
    _missing(names, forget)
    for name in forget:
        names.pop(name, None)
    found = own(names)
    told = {"variables": [_described(name, value) for name, value in found[:_MOST]], "total": len(found)}
    try:
        return {**told, "directory": _directory()}
    except OSError:  # the directory has been removed
        return told


def keep(names: Names, builtins: Names, wanted: List[str], home: str) -> Dict[str, Any]:
    """The same process, with only these names in its namespace, and in the workspace `home` again."""
    _missing(names, wanted)
    for name in list(names):
        if _shown(name) and name not in wanted:
            names.pop(name, None)
    builtins.pop("_", None)
    _collect()
    _chdir(home)
    return {}

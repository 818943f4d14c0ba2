"""What sets a fork apart from what it was forked from: its random numbers and, if asked, its files."""

import os
import shutil
import sys
from typing import List

_modules = sys.modules
_BRANCHES = ".branches"


def reseed() -> None:
    """The global generators; those that a cell made for itself draw the same in every branch."""
    for name in ("random", "numpy.random"):
        seed = getattr(_modules.get(name), "seed", None)
        if seed is not None:
            seed()


def _ignore(directory: str, names: List[str]) -> List[str]:
    kinds = (os.path.isfile, os.path.isdir, os.path.islink)
    return [
        name
        for name in names
        if name == _BRANCHES or not any(kind(os.path.join(directory, name)) for kind in kinds)
    ]


def files(name: str) -> str:
    """Copy the working directory to .branches/NAME in the workspace, and work there from now on. Returns where."""
    home = os.environ.get("HOME") or os.getcwd()
    place = os.path.join(home.split(f"/{_BRANCHES}/")[0], _BRANCHES, name)
    os.makedirs(os.path.dirname(place), exist_ok=True)
    shutil.copytree(home, place, symlinks=True, ignore=_ignore)
    os.environ["HOME"] = os.environ["PWD"] = place
    os.chdir(place)
    return place

"""The surroundings of one cell: an environment, a directory and arguments, which are restored when it has ended, whatever it did."""

import os
import sys
from typing import Dict, List, Optional

_environ = os.environ
_chdir, _getcwd = os.chdir, os.getcwd
_OSError = OSError

_env: Dict[str, Optional[str]] = {}
_cwd: Optional[str] = None
_argv: Optional[List[str]] = None


def enter(env: List[str], directory: Optional[str], argv: List[str]) -> None:
    global _cwd, _argv
    if argv:
        _argv, sys.argv = sys.argv, argv
    for entry in env:
        name, _, value = entry.partition("=")
        _env.setdefault(name, _environ.get(name))
        _environ[name] = value
    if directory is not None:
        try:
            before = _getcwd()
        except _OSError:
            before = None
        _chdir(directory)
        _cwd = before


def columns() -> int:
    """The width of the terminal for which this cell is run; 0 if there is none."""
    told = _environ.get("COLUMNS", "") if "COLUMNS" in _env else ""
    return int(told) if told.isdecimal() and len(told) <= 4 else 0


def leave() -> None:
    global _cwd, _argv
    if _argv is not None:
        sys.argv, _argv = _argv, None
    for name, value in _env.items():
        if value is None:
            _environ.pop(name, None)
        else:
            _environ[name] = value
    _env.clear()
    if _cwd is not None:
        back, _cwd = _cwd, None
        try:
            _chdir(back)
        except _OSError:
            pass  # the cell has removed the directory

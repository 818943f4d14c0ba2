"""Cells as source: split one into the part that runs and the expression that is shown, and find its text again."""

import ast
import inspect
import linecache
import re
from types import CodeType
from typing import Any, Dict, Optional, Tuple

_compile = compile
_Expr = ast.Expr
_Expression = ast.Expression
_PARSE = ast.PyCF_ONLY_AST
_cache: Dict[str, Any] = linecache.cache
_getfile = inspect.getfile
# The indentation of the first line that is neither empty nor a comment.
_FIRST_LINE = re.compile(r"(?:[ \t]*(?:#[^\n]*)?\n)*([ \t]*)(?=[^\s#])")


def split(source: str, filename: str, flags: int) -> Tuple[Optional[CodeType], Optional[CodeType]]:
    """The code of all statements but a last expression, and the code of that expression. Either may be None."""
    tree = _compile(source, filename, "exec", flags | _PARSE, True)
    last = tree.body.pop() if tree.body and type(tree.body[-1]) is _Expr else None
    first = _compile(tree, filename, "exec", flags, True) if tree.body else None
    if last is None:
        return first, None
    if first is not None:
        flags |= first.co_flags & _FUTURE
    return first, _compile(_Expression(last.value), filename, "eval", flags, True)


def dedented(source: str) -> str:
    """If code begins indented, as when it was taken out of a block: the code without that indentation."""
    first = _FIRST_LINE.match(source)
    indent = first.group(1) if first else ""
    if not indent:
        return source
    return "\n".join(line[len(indent) :] if line.startswith(indent) else line for line in source.split("\n"))


def remember(source: str, filename: str) -> None:
    """Let tracebacks, warnings and inspect find the lines of a cell."""
    lines = [line + "\n" for line in source.splitlines()]
    _cache[filename] = (len(source), None, lines, filename)


def forget(filename: str) -> None:
    _cache.pop(filename, None)


def _file_of(thing: Any) -> str:
    """As inspect.getfile, which knows the file of a function, but not of a class of __main__."""
    try:
        return _getfile(thing)
    except (OSError, TypeError):
        if not isinstance(thing, type) or thing.__module__ != "__main__":
            raise
        definition = re.compile(rf"^\s*class\s+{re.escape(thing.__name__)}\b", re.MULTILINE)
        for filename in reversed(list(_cache)):
            if filename.startswith("<cell ") and definition.search("".join(_cache[filename][2])):
                return filename
        raise


_FUTURE = 0
for _name in __import__("__future__").all_feature_names:
    _FUTURE |= getattr(__import__("__future__"), _name).compiler_flag

inspect.getfile = _file_of  # type: ignore[assignment]

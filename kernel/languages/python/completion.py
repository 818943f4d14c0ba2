"""Completions at the cursor: names of the session, attributes, keys, modules. Nothing in the code is evaluated; the
way to an object is looked up, as objects.py does."""

import keyword
import os
import re
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any, Dict, Iterable, List, Optional, Set, Tuple

if TYPE_CHECKING:
    import objects

Names = Dict[Any, Any]

_MOST = 500
_LINE = 4096
_NAME = r"[^\W\d]\w*"
_CHAIN = re.compile(rf"((?:{_NAME}\s*\.\s*)*)({_NAME}|)$")
_KEY = re.compile(rf"((?:{_NAME}\s*\.\s*)*{_NAME})\s*\[\s*([\"'])((?:(?!\2).)*)$")
_IMPORT = re.compile(rf"^\s*(?:from|import)\s+(?:.*,\s*)?((?:{_NAME}\.)*)({_NAME}|)$")
_FROM = re.compile(rf"^\s*from\s+((?:{_NAME}\.)*{_NAME})\s+import\s+\(?(?:.*,\s*)?({_NAME}|)$")
_MODULE = re.compile(rf"({_NAME})(?:\.py|\.[\w-]+\.so|\.so)?$")
_KEYWORDS = tuple(keyword.kwlist)
_BUILTIN_MODULES = tuple(sys.builtin_module_names)
_modules = sys.modules
_sys_names = vars(sys)
_listdir = os.listdir
_isfile = os.path.isfile
_join = os.path.join

Match = Dict[str, str]


def walk(chain: Iterable[str], names: Names, builtins: Names) -> Any:
    """The value of a.b.c, or objects.MISSING."""
    first, *rest = chain
    value = names.get(first, builtins.get(first, objects.MISSING))
    for name in rest:
        if value is objects.MISSING:
            break
        value = objects.attribute(value, name)
    return value


def _chosen(candidates: Iterable[str], prefix: str) -> List[str]:
    """Private names are offered only if the prefix is private, too."""
    hidden: Tuple[str, ...] = () if prefix.startswith("_") else ("_",)
    return sorted({name for name in candidates if name.startswith(prefix) and not name.startswith(hidden)})


def _typed(names: List[str], kinds: Dict[str, str]) -> List[Match]:
    return [{"text": name, "type": kinds[name]} if name in kinds else {"text": name} for name in names[:_MOST]]


def _of_attributes(value: Any, prefix: str) -> List[Match]:
    found = [name for name in objects.names(value) if name.isidentifier()]
    if objects.known(value, "pandas", "DataFrame"):
        found += [name for name in value.columns.tolist() if type(name) is str and name.isidentifier()]
    chosen = _chosen(found, prefix)[:_MOST]
    return _typed(chosen, {name: objects.kind_of(objects.attribute(value, name)) for name in chosen})


def _of_names(prefix: str, names: Names, builtins: Names) -> List[Match]:
    kinds = {word: "keyword" for word in _KEYWORDS}
    for space in (builtins, names):
        for name, value in list(space.items()):
            if type(name) is str and name.startswith(prefix) and name.isidentifier():
                kinds[name] = objects.kind_of(value)
    return _typed(_chosen(kinds, prefix), kinds)


# ---- keys ----


def _of_keys(value: Any, prefix: str) -> List[str]:
    if type(value) is dict:
        keys = list(value)
    elif objects.known(value, "pandas", "DataFrame"):
        keys = value.columns.tolist()
    else:
        return []
    return sorted({key for key in keys if type(key) is str and key.startswith(prefix)})


# ---- modules ----


def _in_directory(path: str) -> Set[str]:
    try:
        entries = _listdir(path or ".")
    except OSError:
        return set()
    found = set()
    for entry in entries:
        match = _MODULE.match(entry)
        if match and (match.group(1) != entry or _isfile(_join(path, entry, "__init__.py"))):
            found.add(match.group(1))
    return found - {"__init__"}


def _paths(package: str) -> List[str]:
    """Where the modules inside a package lie. If the package is empty: where all modules lie."""
    paths = _sys_names.get("path")
    if type(paths) is not list:
        return []
    places = [path for path in paths if type(path) is str]
    for name in package.split(".") if package else ():
        places = [_join(path, name) for path in places]
    return places


def _of_modules(package: str, prefix: str) -> List[Match]:
    found: Set[str] = set() if package else set(_BUILTIN_MODULES)
    for path in _paths(package):
        found |= _in_directory(path)
    inside = f"{package}." if package else ""
    for name in list(_modules):
        if type(name) is str and name.startswith(inside):
            found.add(name[len(inside) :].split(".")[0])
    chosen = _chosen((name for name in found if name), prefix)
    return _typed(chosen, dict.fromkeys(chosen, "module"))


def _of_import_from(module: str, prefix: str) -> List[Match]:
    matches = {match["text"]: match for match in _of_modules(module, prefix)}
    loaded = _modules.get(module)
    if type(loaded) is ModuleType:
        matches.update((match["text"], match) for match in _of_attributes(loaded, prefix))
    return [matches[name] for name in sorted(matches)][:_MOST]


# ---- the cursor ----


def chain_of(text: str) -> List[str]:
    return [part.strip() for part in text.split(".") if part.strip()]


def _at(line: str, names: Names, builtins: Names) -> Tuple[List[Match], str]:
    """The names that may follow, and the part of the name that is there already."""
    found = _FROM.match(line)
    if found:
        return _of_import_from(found.group(1), found.group(2)), found.group(2)
    found = _IMPORT.match(line)
    if found:
        return _of_modules(found.group(1).rstrip("."), found.group(2)), found.group(2)
    found = _KEY.search(line)
    if found:
        value = walk(chain_of(found.group(1)), names, builtins)
        return _typed(_of_keys(value, found.group(3)), {}), found.group(3)
    if _in_string(line):
        return [], ""
    found = _CHAIN.search(line)
    if not found or _before(line, found.start()):
        return [], ""
    prefix = found.group(2)
    if not found.group(1):
        return (_of_names(prefix, names, builtins) if prefix else []), prefix
    value = walk(chain_of(found.group(1)), names, builtins)
    return ([] if value is objects.MISSING else _of_attributes(value, prefix)), prefix


def _before(line: str, start: int) -> bool:
    """Whether the text before a chain makes the chain the end of something longer: f().a, 1.5e3."""
    return start > 0 and (line[start - 1] == "." or line[start - 1].isalnum())


def _in_string(line: str) -> bool:
    """Whether a line ends inside a string or a comment."""
    quote: Optional[str] = None
    escaped = False
    for character in line:
        if escaped:
            escaped = False
        elif character == "\\":
            escaped = True
        elif quote is not None:
            quote = None if character == quote else quote
        elif character in "\"'":
            quote = character
        elif character == "#":
            return True
    return quote is not None


def complete(code: str, cursor: int, names: Names, builtins: Names) -> Dict[str, Any]:
    line = code[max(code.rfind("\n", 0, cursor) + 1, cursor - _LINE) : cursor]
    matches, prefix = _at(line, names, builtins)
    return {"matches": matches, "start": cursor - len(prefix), "end": cursor}

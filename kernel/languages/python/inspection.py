"""The meaning of a name: its type, signature, docstring and source, without running code of the object."""

import inspect
import re
from types import (
    BuiltinFunctionType,
    CodeType,
    FunctionType,
    GetSetDescriptorType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
)
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Tuple

if TYPE_CHECKING:
    import completion
    import objects

Names = Dict[Any, Any]

_CHAIN = re.compile(r"[^\W\d]\w*(?:\s*\.\s*[^\W\d]\w*)*")
_LAST_CHAIN = re.compile(_CHAIN.pattern + r"\s*$")
_DOCSTRING = 65536
_SOURCE = 262144
_DEFAULT = 60
_VARARGS = inspect.CO_VARARGS
_VARKEYWORDS = inspect.CO_VARKEYWORDS
_getsource = inspect.getsource
_builtin_signature = inspect.signature
_C_CALLABLES = (
    BuiltinFunctionType,
    type(str.join),
    type(str.__len__),
    type("".__len__),
    type(dict.__dict__["fromkeys"]),
)


def _chain_at(code: str, cursor: int) -> List[str]:
    """The dotted name under the cursor, up to the part that the cursor is in. If there is none, the name of the
    function in whose call it is."""
    line = code.rfind("\n", 0, cursor) + 1
    for found in _CHAIN.finditer(code, line):
        if found.start() > cursor:
            break
        if cursor <= found.end():
            end = cursor
            while end < found.end() and (code[end].isalnum() or code[end] == "_"):
                end += 1
            return completion.chain_of(code[found.start() : end])
    depth = 0
    for at in range(cursor - 1, max(cursor - 4096, -1), -1):
        depth += (code[at] == ")") - (code[at] == "(")
        if depth < 0:
            before = _LAST_CHAIN.search(code[max(at - 512, 0) : at])
            return completion.chain_of(before.group()) if before else []
    return []


# ---- signatures ----


def _annotation(value: object) -> str:
    if type(value) is str:
        return value
    return objects.title(value) if objects.is_type(value) else objects.text(value, _DEFAULT)


def _defaults_of(function: Any, code: CodeType) -> Dict[str, Any]:
    names = code.co_varnames[: code.co_argcount]
    values = function.__defaults__
    defaults = dict(zip(names[len(names) - len(values) :], values)) if type(values) is tuple and values else {}
    keywords = function.__kwdefaults__
    return {**defaults, **keywords} if type(keywords) is dict else defaults


def _of_function(function: Any, bound: bool) -> str:
    code, notes = function.__code__, objects.own_names(function).get("__annotations__")
    notes = function.__annotations__ if notes is None else notes
    defaults = _defaults_of(function, code)
    notes = notes if type(notes) is dict else {}
    plain, only = code.co_argcount, code.co_kwonlyargcount
    names = code.co_varnames

    def shown(name: str, stars: str = "") -> str:
        text = stars + name + (f": {_annotation(notes[name])}" if name in notes else "")
        if name not in defaults:
            return text
        return text + (" = " if name in notes else "=") + objects.text(defaults[name], _DEFAULT)

    parts = [shown(name) for name in names[:plain]]
    if code.co_posonlyargcount:
        parts.insert(code.co_posonlyargcount, "/")
    at = plain + only
    if code.co_flags & _VARARGS:
        parts.append(shown(names[at], "*"))
        at += 1
    elif only:
        parts.append("*")
    parts += [shown(name) for name in names[plain : plain + only]]
    if code.co_flags & _VARKEYWORDS:
        parts.append(shown(names[at], "**"))
    result = f" -> {_annotation(notes['return'])}" if "return" in notes else ""
    return f"({', '.join(parts[1:] if bound and plain else parts)}){result}"


def _of_builtin(value: Any) -> Optional[str]:
    try:
        return str(_builtin_signature(value))
    except Exception:  # it has none, or cells have broken what finds it
        return None


def _constructor(value: Any) -> Optional[str]:
    for name in ("__init__", "__new__"):
        found = objects.unwrapped(objects.in_type(value, name))
        if type(found) is FunctionType:
            return _of_function(found, True)
    return _of_builtin(value) if objects.native(value) else None


def _signature(value: Any, bound: bool) -> Optional[str]:
    kind = type(value)
    if kind is FunctionType:
        return _of_function(value, bound)
    if kind is MethodType:
        return _signature(value.__func__, True)
    if kind in _C_CALLABLES:
        return _of_builtin(value)
    if objects.is_type(value):
        return _constructor(value)
    call = objects.unwrapped(objects.in_type(kind, "__call__"))
    return _of_function(call, True) if type(call) is FunctionType else None


# ---- where it comes from ----


def _cleaned(text: str) -> str:
    """As inspect.cleandoc: without the indentation that all lines but the first have."""
    first, *rest = text.expandtabs().split("\n")
    margin = min((len(line) - len(line.lstrip()) for line in rest if line.strip()), default=0)
    return "\n".join([first.lstrip(), *(line[margin:] for line in rest)]).strip("\n")


def _docstring(value: Any) -> Optional[str]:
    kind = type(value)
    if objects.is_type(value):
        text = objects.names_of_type(value).get("__doc__")
        if type(text) in (GetSetDescriptorType, MemberDescriptorType) or (text is None and objects.native(value)):
            text = vars(type)["__doc__"].__get__(value)
    elif kind is property:
        text = value.__doc__
    else:
        text = objects.attribute(value, "__doc__")
    return _cleaned(text[:_DOCSTRING]) if type(text) is str else None


def _code_of(value: Any) -> Optional[CodeType]:
    value = value.__func__ if type(value) is MethodType else value
    value = value.fget if type(value) is property else value
    return value.__code__ if type(value) is FunctionType else None


def _defined_in(value: Any) -> Tuple[Any, Dict[str, Any]]:
    """The object whose source inspect can find, and the place of that source."""
    code = _code_of(value)
    if code is not None:
        return code, {"file": code.co_filename, "line": max(code.co_firstlineno, 0)}
    if type(value) is ModuleType:
        file = objects.own_names(value).get("__file__")
        return None, {"file": file} if type(file) is str else {}
    if objects.is_type(value) and not objects.native(value) and type(value) is type:
        return value, {}
    return None, {}


def _source(thing: Any) -> Optional[str]:
    try:
        return None if thing is None else _getsource(thing)[:_SOURCE]
    except Exception:  # there is none, or the cells have broken what finds it
        return None


def inspect_name(chain: List[str], source: bool, names: Names, builtins: Names) -> Dict[str, Any]:
    value = completion.walk(chain, names, builtins) if chain else objects.MISSING
    if value is objects.MISSING:
        return {"found": False}
    parent = completion.walk(chain[:-1], names, builtins) if len(chain) > 1 else None
    bound = len(chain) > 1 and objects.bound(parent, chain[-1])
    thing, place = _defined_in(value)
    told = {
        "name": ".".join(chain),
        "type": objects.full_title(type(value)),
        "signature": _signature(value, bound),
        "docstring": _docstring(value),
        "text": objects.text(value, 500),
        **place,
        "source": _source(thing) if source else None,
    }
    return {"found": True, **{name: item for name, item in told.items() if item is not None}}


def ask(code: str, cursor: int, source: bool, names: Names, builtins: Names) -> Dict[str, Any]:
    return inspect_name(_chain_at(code, cursor), source, names, builtins)

"""Facts about an object without running its code: types and attributes are looked up in the dictionaries that hold
them, and only functions in C are called."""

import sys
from itertools import islice
from types import (
    BuiltinFunctionType,
    FunctionType,
    GetSetDescriptorType,
    MappingProxyType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
)
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Optional, Tuple

if TYPE_CHECKING:
    from typing import TypeGuard

_type_flags = vars(type)["__flags__"].__get__
_type_name = vars(type)["__name__"].__get__
_type_module = vars(type)["__module__"].__get__
_type_mro: Callable[[type], Tuple[type, ...]] = vars(type)["__mro__"].__get__
_type_dict: Callable[[type], "MappingProxyType[str, Any]"] = vars(type)["__dict__"].__get__
_module_dict = vars(ModuleType)["__dict__"].__get__
_modules = sys.modules
_getsizeof = sys.getsizeof
_BUILTIN_METHOD: Any = type(str.join)
_SLOT = type(list.__len__)
_FUNCTIONS = (
    FunctionType,
    BuiltinFunctionType,
    MethodType,
    _BUILTIN_METHOD,
    _SLOT,
    type(dict.__dict__["fromkeys"]),
)
_HEAPTYPE = 1 << 9
_ATOMS = (float, bool, complex, type(None), type(...), type(NotImplemented), range)
_SHOWN = 6
_DEPTH = 3
_BITS = 512


def native(kind: type) -> bool:
    """Whether a type is made in C and cannot be changed."""
    return not _type_flags(kind) & _HEAPTYPE


def lineage(kind: type) -> Tuple[type, ...]:
    return _type_mro(kind)


def names_of_type(kind: type) -> "MappingProxyType[str, Any]":
    return _type_dict(kind)


def title(kind: type) -> str:
    name = _type_name(kind)
    return name if type(name) is str else "?"


def full_title(kind: type) -> str:
    module = _type_module(kind)
    plain = type(module) is not str or module in ("builtins", "__main__")
    return title(kind) if plain else f"{module}.{title(kind)}"


class Missing:
    """Stands for an attribute that does not exist."""


MISSING = Missing()


def in_type(kind: type, name: str) -> Any:
    for base in _type_mro(kind):
        names = _type_dict(base)
        if name in names:
            return names[name]
    return MISSING


def own_names(value: object) -> Dict[str, Any]:
    """An object's own dictionary, empty if it has none."""
    kind = type(value)
    for base in _type_mro(kind):
        names = _module_dict(value) if base is ModuleType else None
        descriptor: Any = _type_dict(base).get("__dict__")
        if names is None and base is not type and type(descriptor) in (GetSetDescriptorType, MemberDescriptorType):
            try:
                names = descriptor.__get__(value, kind)
            except (AttributeError, TypeError):
                continue
        if type(names) is dict:
            return names
    return {}


def is_type(value: object) -> "TypeGuard[type]":
    return type in _type_mro(type(value))


def attribute(value: Any, name: str) -> Any:
    """As getattr, but MISSING if that would need a property or a __getattr__. Methods are not bound."""
    kind = type(value)
    found = in_type(value, name) if is_type(value) else own_names(value).get(name, MISSING)
    if found is not MISSING:
        return unwrapped(found)
    found = in_type(kind, name)
    if type(found) in (GetSetDescriptorType, MemberDescriptorType):
        try:
            return type(found).__get__(found, value, kind)
        except KeyboardInterrupt:
            raise
        except BaseException:
            return MISSING
    return unwrapped(found)


def bound(value: object, name: str) -> bool:
    """Whether the attribute of that name gets the value, or its class, as its first argument."""
    if is_type(value):
        return type(in_type(value, name)) is classmethod
    if ModuleType in _type_mro(type(value)) or name in own_names(value):
        return False
    return type(in_type(type(value), name)) in (FunctionType, classmethod)


def unwrapped(value: Any) -> Any:
    """The function in a staticmethod or classmethod."""
    if type(value) in (staticmethod, classmethod):
        return type(value).__dict__["__func__"].__get__(value)
    return value


def names(value: object) -> List[str]:
    """As dir(), without calling __dir__."""
    found: Dict[Any, None] = {}
    if is_type(value):
        for base in _type_mro(value):
            found.update(dict.fromkeys(_type_dict(base)))
    else:
        found.update(dict.fromkeys(list(own_names(value))))
        if ModuleType not in _type_mro(type(value)):
            for base in _type_mro(type(value)):
                found.update(dict.fromkeys(_type_dict(base)))
    return [name for name in found if type(name) is str]


# ---- arrays and frames: their packages are trusted, their subclasses are not ----


def known(value: object, module: str, *kinds: str) -> bool:
    package = _modules.get(module)
    if type(package) is not ModuleType:
        return False
    return any(_module_dict(package).get(kind) is type(value) for kind in kinds)


def _frame(value: object) -> bool:
    return known(value, "pandas", "DataFrame", "Series")


def _from_c(value: object, name: str) -> Any:
    """An attribute that a type made in C keeps. @value may be an instance of a subclass."""
    for base in _type_mro(type(value)):
        if native(base) and name in _type_dict(base):
            found = _type_dict(base)[name]
            plain = type(found) in (GetSetDescriptorType, MemberDescriptorType)
            return type(found).__get__(found, value, base) if plain else MISSING
    return MISSING


def _lengths(shape: object) -> Optional[List[int]]:
    if type(shape) is tuple and len(shape) <= 32 and all(type(n) is int and 0 <= n < 2**63 for n in shape):
        return list(shape)
    return None


def shape(value: Any) -> Optional[List[int]]:
    """The length of each dimension; None if the value has none."""
    if _frame(value):
        return _lengths(value.shape)
    lengths = _lengths(_from_c(value, "shape"))
    if lengths is not None:
        return lengths
    for base in _type_mro(type(value)):
        if native(base) and base is not MappingProxyType:
            length = _type_dict(base).get("__len__")
            if type(length) is _SLOT:
                return [length(value)]
    return None


def size(value: Any) -> int:
    """The bytes of the object itself; for an array or frame, with its data."""
    if _frame(value):
        used = value.memory_usage(deep=False)
        return int(used if type(value).__name__ == "Series" else used.sum())
    total = 0
    for base in _type_mro(type(value)):
        method = _type_dict(base).get("__sizeof__") if native(base) else None
        if type(method) is _BUILTIN_METHOD:
            total = method(value)
            break
    data = _from_c(value, "nbytes")
    if type(data) is int and data > total:
        total = data
    return total if native(type(value)) else total + _getsizeof(own_names(value))


# ---- short text ----


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 3] + "..."


def _text_of_str(value: Any, most: int) -> str:
    return repr(value) if len(value) <= most else repr(value[:most]) + "..."


def _joined(items: List[str], more: bool) -> str:
    return ", ".join([*items, "..."] if more else items)


def _text_of_items(value: Any, depth: int) -> str:
    kind, more = type(value), len(value) > _SHOWN
    if not value:
        return "set()" if kind is set else repr(value)
    if depth == 0:
        return "[...]" if kind is list else "(...)" if kind is tuple else "{...}"
    if kind is dict:
        pairs = list(islice(value.items(), _SHOWN))
        return "{" + _joined([f"{_text(k, depth - 1)}: {_text(v, depth - 1)}" for k, v in pairs], more) + "}"
    items = _joined([_text(item, depth - 1) for item in islice(value, _SHOWN)], more)
    if kind is tuple:
        return f"({items},)" if len(value) == 1 else f"({items})"
    return f"[{items}]" if kind is list else f"{{{items}}}" if kind is set else f"frozenset({{{items}}})"


def _text_of_array(value: Any) -> str:
    element = _from_c(value, "dtype")
    kind = _from_c(element, "kind")
    if type(kind) is not str or kind not in "biufc":
        return f"array of {title(type(element))}"
    items = [str(item.item()) for item in islice(_from_c(value, "flat"), _SHOWN)]
    count = _from_c(value, "size")
    return f"{kind}{_from_c(element, 'itemsize') * 8} [{_joined(items, type(count) is int and count > _SHOWN)}]"


def _text_of_frame(value: Any) -> str:
    if title(type(value)) == "Series":
        return f"Series of {_cut(str(value.dtype), 40)}"
    columns = value.columns[:_SHOWN].tolist()
    return f"columns {_joined([_text(column, 1) for column in columns], len(value.columns) > _SHOWN)}"


def _name_in(names: Dict[str, Any]) -> str:
    name = names.get("__name__")
    return name if type(name) is str else "?"


def _text(value: Any, depth: int) -> str:
    kind = type(value)
    if kind is str or kind is bytes or kind is bytearray:
        return _text_of_str(value, 80)
    if kind is int:
        bits = value.bit_length()
        return repr(value) if bits <= _BITS else f"<int of {bits} bits>"
    if kind in _ATOMS:
        return repr(value)
    if kind in (list, tuple, dict, set, frozenset):
        return _text_of_items(value, depth)
    if known(value, "numpy", "ndarray"):
        return _text_of_array(value)
    if _frame(value):
        return _text_of_frame(value)
    if ModuleType in _type_mro(kind):
        return f"<module {_name_in(_module_dict(value))}>"
    if is_type(value):
        return f"<class {full_title(value)}>"
    if kind is FunctionType or kind is BuiltinFunctionType:
        return f"<function {value.__name__}>"
    if kind is MethodType:
        return f"<method of {full_title(type(value.__self__))}>"
    return f"<{full_title(kind)} object>"


def text(value: Any, most: int = 100) -> str:
    """A short repr. A value without a safe repr is named by its type."""
    try:
        return _cut(_text(value, _DEPTH), most)
    except KeyboardInterrupt:
        raise
    except BaseException:
        return f"<{full_title(type(value))} object>"


def kind_of(value: object) -> str:
    """The kind of a value, in one word."""
    kind = type(value)
    if ModuleType in _type_mro(kind):
        return "module"
    if is_type(value):
        return "class"
    if kind in _FUNCTIONS or known(value, "numpy", "ufunc"):
        return "function"
    return "property" if kind is property else "instance"

"""Representations of a value: its text, and others by MIME type, by the conventions of notebooks (`_repr_html_` and the
like). Exceptions of a value's own code end here, except those of its repr() and an interrupt. A result is taken only
if it has the right type and is not too large. `publish` is in C, in the interpreter."""

import base64
import builtins
import importlib
import inspect
import json
import sys
import uuid
from contextlib import nullcontext
from itertools import chain, islice
from pprint import PrettyPrinter
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Optional, Sequence, Tuple, Union

if TYPE_CHECKING:
    from surroundings import columns

Data = Dict[str, Union[str, bytes]]
Metadata = Dict[str, Any]

publish: Callable[[Data, Optional[str], Optional[str], bool, bool], None]

_BUNDLE_MAX = 8 << 20
_TYPES_MAX = 32
_TEXT_MAX = 65536
_ITEMS_MAX = 4000
_DEPTH_MAX = 50
_NUMPY_WIDTH = 75  # its default
_NOTEBOOK_WIDTH = 79  # of text, as IPython has it
# Beside the forms of a cell's value: what describes them, for a notebook alone.
METADATA = "application/vnd.lair.metadata+json"
# Likewise: the types whose names do not say that they are JSON.
STRUCTURED = "application/vnd.lair.structured+json"
_METHODS = (
    ("text/html", "_repr_html_"),
    ("text/markdown", "_repr_markdown_"),
    ("text/latex", "_repr_latex_"),
    ("image/svg+xml", "_repr_svg_"),
    ("image/png", "_repr_png_"),
    ("image/jpeg", "_repr_jpeg_"),
    ("application/pdf", "_repr_pdf_"),
    ("application/json", "_repr_json_"),
    ("application/javascript", "_repr_javascript_"),
)

# By module and name of a class: a function that makes the forms of its values. For classes that cannot do that
# themselves.
formats: Dict[Tuple[str, str], Callable[[Any], Data]] = {}
# The same for forms that programs read, and that a notebook would draw in the place of others.
for_programs: Dict[Tuple[str, str], Callable[[Any], Data]] = {}
# The same for further forms, which only cells have that ask for them.
further: Dict[Tuple[str, str], Callable[[Any], Data]] = {}

_type_mro = vars(type)["__mro__"].__get__
_type_dict = vars(type)["__dict__"].__get__
_type_name = vars(type)["__qualname__"].__get__
_dumps, _loads = json.dumps, json.loads
_b64decode = base64.b64decode
_signature = inspect.signature
_FUNCTIONS = (FunctionType, BuiltinFunctionType)
_import_module = importlib.import_module
_uuid4 = uuid.uuid4
_islice, _chain = islice, chain
_modules = sys.modules
_clear_next = False
in_notebook = False  # while a cell of a notebook runs
wants_further = False  # and it has asked for further forms


# ---- finding out, without running what need not run ----


def method(value: object, name: str) -> Optional[Callable[..., Any]]:
    """A special method. It is looked up in the type, so neither __getattr__ nor an object that pretends to be a
    class is asked."""
    for base in _type_mro(type(value)):
        found = _type_dict(base).get(name)
        if found is not None:
            get = getattr(type(found), "__get__", None)
            bound = get(found, value, type(value)) if get is not None else found
            return bound if callable(bound) else None
    return None


def complain(about: str, error: BaseException) -> None:
    """Tells the failure on stderr. The value is shown without the form that failed."""
    try:
        print(f"{about}: {type(error).__name__}: {str(error)[:500]}", file=sys.stderr)
    except Exception:
        pass


def contained(about: str, call: Callable[..., Any], *arguments: object, **options: object) -> Any:
    try:
        return call(*arguments, **options)
    except NotImplementedError:  # it has no such form
        pass
    except Exception as error:
        complain(about, error)
    return None


# ---- text ----


def utf8(text: str) -> str:
    return str.encode(text, "utf-8", "backslashreplace").decode("utf-8")


def cut(text: str, most: int = _TEXT_MAX) -> str:
    return text if len(text) <= most else f"{text[:most]}... ({len(text) - most} characters more)"


_BRACKETS: Dict[type, Sequence[str]] = {
    list: "[]",
    tuple: "()",
    set: "{}",
    frozenset: ("frozenset({", "})"),
    dict: "{}",
}


def summary(value: Any, room: int = 100) -> str:
    """The repr of large built-in containers: the first items of each, and how many more there are."""
    kind = type(value)
    if kind in (str, bytes, bytearray) and len(value) > _TEXT_MAX:
        return f"{value[: _TEXT_MAX // 2]!r}... ({len(value) - _TEXT_MAX // 2} more)"
    if kind not in _BRACKETS or not value:
        return repr(value)
    first, last = _BRACKETS[kind]
    if room < 2:
        return f"{first}...{last}"
    if kind is dict:
        items = [f"{summary(k, room // 8)}: {summary(v, room // 8)}" for k, v in _islice(value.items(), room)]
    else:
        items = [summary(item, room // 8) for item in _islice(value, room)]
    if len(value) > room:
        items.append(f"... ({len(value) - room} more)")
    elif kind is tuple and len(value) == 1:
        items.append("")
    return first + ", ".join(items).rstrip(" " if kind is tuple else "") + last


def left(value: Any, room: int, above: Tuple[int, ...] = ()) -> int:
    """How much of @room is left after the items in the repr of @value; negative if it is too long."""
    kind = type(value)
    if kind in (str, bytes, bytearray):
        return room - 1 - len(value) // 32
    room -= 1
    if kind not in _BRACKETS or id(value) in above:
        return room
    if len(value) > room or len(above) > _DEPTH_MAX:
        return -1
    above += (id(value),)
    for item in _chain(value, value.values()) if kind is dict else value:
        room = left(item, room, above)
        if room < 0:
            break
    return room


_dispatch: Dict[Any, Any] = vars(PrettyPrinter)["_dispatch"]


class _Printer(PrettyPrinter):
    """Breaks containers into several lines; strings stay whole."""

    _dispatch = {way: how for way, how in _dispatch.items() if way not in (str.__repr__, bytes.__repr__)}


def _wide(width: int) -> Any:
    """Makes arrays fill lines of that width, unless the session has chosen one."""
    numpy = _modules.get("numpy")
    if type(numpy) is not ModuleType:
        return nullcontext()
    options = contained("numpy", numpy.get_printoptions)
    if not options or options["linewidth"] != _NUMPY_WIDTH:
        return nullcontext()
    return numpy.printoptions(linewidth=max(width - 1, 20))


def _fitted(value: object, width: int) -> str:
    """The repr of @value. If it is a container, in lines that fit into a terminal of that width."""
    with _wide(width):
        text = repr(value)
        way = getattr(type(value), "__repr__", None)
        if not width < len(text) < _TEXT_MAX or not any(way is known for known in _Printer._dispatch):
            return text
        printer = _Printer(width=max(width - 1, 20), compact=True, sort_dicts=False)
        return contained("pprint", printer.pformat, value) or text


def _pretty(value: object) -> Optional[str]:
    """What a value says of itself to IPython's printer, if that is installed."""
    if contained("_repr_pretty_", method, value, "_repr_pretty_") is None:
        return None
    try:
        pretty = _import_module("IPython.lib.pretty").pretty
    except Exception:
        return None
    return contained(f"{_type_name(type(value))}._repr_pretty_", pretty, value)  # type: ignore[no-any-return]


def _in_lines(value: object) -> str:
    """As IPython shows containers: in one line, or each item in a line of its own."""
    text = repr(value)
    if not _NOTEBOOK_WIDTH < len(text) < _TEXT_MAX or type(value) not in _BRACKETS:
        return text
    printer = _Printer(width=_NOTEBOOK_WIDTH, sort_dicts=False)
    return contained("pprint", printer.pformat, value) or text


def _named(value: Any) -> Optional[str]:
    """Functions with their parameters, and classes, as IPython shows them."""
    kind: Any = type(value)
    is_class = type in _type_mro(kind)
    if is_class and kind.__repr__ is not type.__repr__:
        return None
    if not is_class and kind not in _FUNCTIONS:
        return None
    module, name = getattr(value, "__module__", None), str(value.__qualname__)
    name = f"{module}.{name}" if module not in (None, "builtins") else name
    if is_class:
        return name
    try:
        name += str(_signature(value))
    except ValueError:
        pass
    return f"<function {name}>"


def text_of(value: object) -> str:
    if left(value, _ITEMS_MAX) < 0:
        return summary(value)
    if in_notebook:
        return _pretty(value) or contained("repr", _named, value) or _in_lines(value)
    width = columns()
    return _fitted(value, width) if width else repr(value)


# ---- bundles ----


def _is_json(mime: str) -> bool:
    return mime.endswith(("/json", "+json", ".json"))


def _is_text(mime: str) -> bool:
    return mime.startswith("text/") or mime.endswith("+xml") or mime == "application/javascript"


def _is_binary(mime: str) -> bool:
    return mime.startswith(("image/", "audio/", "video/", "font/")) or mime in (
        "application/pdf",
        "application/octet-stream",
    )


def _as_json(value: object) -> str:
    if isinstance(value, str):
        try:
            _loads(value)
            return value
        except ValueError:
            pass
    return _dumps(value)


def _as_bytes(value: object) -> bytes:
    if isinstance(value, str):
        return _b64decode("".join(value.split()), validate=True)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    raise TypeError(f"bytes expected, not {type(value).__name__}")


def _checked(mime: str, value: object) -> Union[str, bytes]:
    if _is_json(mime):
        return utf8(_as_json(value))
    if not _is_text(mime) and (_is_binary(mime) or isinstance(value, (bytes, bytearray, memoryview))):
        return _as_bytes(value)
    if not isinstance(value, str):
        if _is_text(mime):
            raise TypeError(f"str expected, not {type(value).__name__}")
        return utf8(_dumps(value))
    return utf8(value)


def checked(about: str, raw: object) -> Data:
    """Takes the entries of a map of MIME types that hold what their type says, as far as there is room."""
    data: Data = {}
    structured: List[str] = []
    room = _BUNDLE_MAX
    for mime, value in list(dict(raw).items())[:_TYPES_MAX]:  # type: ignore[call-overload]
        if value is None or not isinstance(mime, str):
            continue
        mime = utf8(mime)[:128]
        good = contained(f"{about} as {mime}", _checked, mime, value)
        size = len(good) if type(good) is bytes else len(good.encode()) if good is not None else 0
        if size > room:
            complain(f"{about} as {mime}", ValueError(f"{size} bytes are too many to show"))
        elif good is not None:
            data[mime] = good
            room -= size
            if type(good) is str and not isinstance(value, str) and not _is_json(mime):
                structured.append(mime)
    if in_notebook and structured:
        data[STRUCTURED] = _dumps(structured)
    return data


def _pair(given: Any) -> Tuple[Any, Any]:
    """A method may give its result alone, or with metadata."""
    return given if type(given) is tuple and len(given) == 2 else (given, None)


def _merge(metadata: Metadata, more: object) -> None:
    if isinstance(more, dict):
        metadata.update(more)


def _forms(table: Dict[Tuple[str, str], Callable[[Any], Data]], value: object) -> Dict[str, Any]:
    for base in _type_mro(type(value)):
        known = table.get((str(_type_dict(base).get("__module__", "builtins")), _type_name(base)))
        if known is not None:
            return contained(f"{_type_name(base)}", known, value) or {}
    return {}


def further_forms(value: object) -> Dict[str, Any]:
    return _forms(further, value) if wants_further else {}


def shows_saved() -> bool:
    return wants_further


def _is_wanted(mime: str, include: Any, exclude: Any) -> bool:
    return (include is None or mime in include) and (exclude is None or mime not in exclude)


def bundle(value: object, include: Any = None, exclude: Any = None) -> Tuple[Data, Metadata]:
    """All forms of @value except its repr()."""
    name = cut(_type_name(type(value)), 100)
    raw: Dict[str, Any] = {}
    metadata: Metadata = {}
    whole = contained(name, method, value, "_repr_mimebundle_")
    if whole is not None:
        given, more = _pair(contained(f"{name}._repr_mimebundle_", whole, include=include, exclude=exclude))
        if isinstance(given, dict):
            raw.update(given)
            _merge(metadata, more)
    raw.update(_forms(formats, value))
    if not in_notebook:
        raw.update(_forms(for_programs, value))
    raw.update(further_forms(value))
    for mime, special in _METHODS:
        if mime not in raw and (include is None or mime in include):
            one = contained(name, method, value, special)
            if one is not None:
                raw[mime], more = _pair(contained(f"{name}.{special}", one))
                _merge(metadata, {mime: more} if more else None)
    wanted = {mime: given for mime, given in raw.items() if _is_wanted(mime, include, exclude)}
    return checked(name, wanted), metadata


def _own_way(value: object) -> Optional[Callable[..., Any]]:
    """The value's _ipython_display_, unless it has _repr_mimebundle_."""
    if contained("_repr_mimebundle_", method, value, "_repr_mimebundle_") is not None:
        return None
    return contained("_ipython_display_", method, value, "_ipython_display_")  # type: ignore[no-any-return]


def _shown_itself(value: object) -> bool:
    shows_itself = _own_way(value)
    if shows_itself is None:
        return False
    try:
        shows_itself()
    except Exception as error:
        complain(f"{cut(_type_name(type(value)), 100)}._ipython_display_", error)
        return False
    return True


def last(value: object) -> Tuple[Optional[str], Optional[Data]]:
    """The last expression of a cell: its text, which C cuts, and its other forms."""
    if _shown_itself(value):
        return None, None
    data, metadata = bundle(value)
    if in_notebook and metadata:
        described = contained("metadata", _dumps, metadata, default=str)
        if described is not None:
            data[METADATA] = utf8(described)
    text = data.pop("text/plain", None)
    if text is None:
        text = utf8(text_of(value))
    assert isinstance(text, str)
    return text, data or None


# ---- what a cell shows by itself ----


def send(data: Data, metadata: Metadata, display_id: Optional[str] = None, update: bool = False) -> None:
    global _clear_next
    described = contained("metadata", _dumps, metadata, default=str) if metadata else None
    clear, _clear_next = _clear_next, False
    publish(data, described, display_id, update, clear)


class DisplayHandle:
    """Something that was shown, and can be replaced."""

    def __init__(self, display_id: Optional[str] = None) -> None:
        self.display_id = display_id or _uuid4().hex

    def __repr__(self) -> str:
        return f"<DisplayHandle display_id={self.display_id}>"

    def display(self, obj: object, **options: Any) -> None:
        display(obj, display_id=self.display_id, **options)

    def update(self, obj: object, **options: Any) -> None:
        update_display(obj, display_id=self.display_id, **options)


def display(
    *objs: object,
    include: Any = None,
    exclude: Any = None,
    metadata: Optional[Metadata] = None,
    transient: Any = None,
    display_id: Any = None,
    raw: bool = False,
    clear: bool = False,
    update: bool = False,
    **options: Any,
) -> Optional[DisplayHandle]:
    """Show values in the richest form they have: tables, pictures, formatted text.

    With display_id, True or a name that you choose, the display can be replaced later: by the handle that is
    returned, or by update_display."""
    handle = None
    if display_id is not None:
        handle = DisplayHandle(None if display_id is True else utf8(str(display_id))[:128])
    if clear:
        clear_output(wait=True)
    for value in objs:
        if not raw and _shown_itself(value):
            continue
        data, described = (checked("display", value), {}) if raw else bundle(value, include, exclude)
        if not raw and "text/plain" not in data and _is_wanted("text/plain", include, exclude):
            data["text/plain"] = utf8(cut(text_of(value)))
        _merge(described, metadata)
        send(data, described, handle.display_id if handle is not None else None, update)
    return handle


def update_display(obj: object, *, display_id: str, **options: Any) -> None:
    """Show @obj in the place of the display with that display_id."""
    display(obj, display_id=display_id, update=True, **options)


def clear_output(wait: bool = False) -> None:
    """Remove what the cell has shown so far. With wait, it goes when there is something to show instead."""
    global _clear_next
    if in_notebook:  # which waits by itself, also for what is printed
        publish({}, _dumps({"wait": bool(wait)}), None, False, True)
        return
    _clear_next = True
    if not wait:
        send({}, {})


def publish_display_data(
    data: Any, metadata: Any = None, source: Any = None, *, transient: Any = None, **options: Any
) -> None:
    """For libraries: show a bundle that they have made."""
    display_id = (transient or {}).get("display_id")
    display(data, raw=True, metadata=metadata, display_id=display_id, **options)


PUBLIC: List[Any] = [display, update_display, clear_output]
for _function in PUBLIC:
    setattr(builtins, _function.__name__, _function)

"""`tools`: the functions that the client of a cell offers. A call goes to the client, and its answer comes back. The
functions `call`, `hear`, `drop` and `descriptor` are the interpreter's, in C."""

import asyncio
import builtins
import inspect
import json
import keyword
import sys
import threading
import types
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

call: Callable[[str, Dict[str, Any]], int]
hear: Callable[[bool], Optional[Tuple[int, Any, Optional[str], Optional[str]]]]
drop: Callable[[int], None]
descriptor: Callable[[], int]

_running_loop = asyncio.get_running_loop
_main = sys.modules["__main__"]
_Parameter = inspect.Parameter
_MISSING = inspect.Parameter.empty
_SHOWN = 20

Answer = Tuple[Any, Optional[str], Optional[str]]


class FunctionError(RuntimeError):
    """A function of the client has failed, or cannot be called."""

    __module__ = "tools"


# ---- calls that are out ----

_turn = threading.Condition()
_open = False  # a cell runs that has functions
_hearing = False  # somebody reads the channel for all who wait
_out: Dict[int, Optional[Callable[[Answer], None]]] = {}  # who is told; None: it waits for _answers
_answers: Dict[int, Answer] = {}
_reading_loop: Any = None  # the event loop that reads the channel


def _told(heard: Optional[Tuple[int, Any, Optional[str], Optional[str]]]) -> bool:
    """Pass an answer on. Whether there was one."""
    if heard is None:
        return False
    number, *answer = heard
    with _turn:
        if number in _out:
            tell = _out.pop(number)
            if tell is None:
                _answers[number] = answer[0], answer[1], answer[2]
                _turn.notify_all()
            else:
                tell((answer[0], answer[1], answer[2]))
    return True


def _hear(wait: bool) -> bool:
    """Read the channel, unless somebody does. Whether there was an answer."""
    global _hearing
    with _turn:
        if _hearing:
            if wait:
                _turn.wait()
            return False
        if not _open:  # what comes now is for the next cell
            raise FunctionError("the cell that called has ended")
        _hearing = True
    try:
        return _told(hear(wait))
    finally:
        with _turn:
            _hearing = False
            _turn.notify_all()


def _wait(number: int) -> Answer:
    try:
        while number not in _answers:
            if number not in _out:
                raise FunctionError("the cell that called has ended")
            _hear(True)
        return _answers.pop(number)
    except BaseException:
        _give_up(number)
        raise


def _give_up(number: int) -> None:
    """Nobody waits for it any more."""
    _answers.pop(number, None)
    if number in _out:
        del _out[number]
        drop(number)


def _listen(loop: Any) -> None:
    global _reading_loop
    if _reading_loop is None:
        _reading_loop = loop
        loop.add_reader(descriptor(), _on_readable)


def _listen_no_more() -> None:
    global _reading_loop
    loop, _reading_loop = _reading_loop, None
    if loop is not None and not loop.is_closed():
        loop.remove_reader(descriptor())


def _on_readable() -> None:
    while _hear(False):
        pass


async def _await(number: int) -> Answer:
    loop = _running_loop()
    future: "asyncio.Future[Answer]" = loop.create_future()

    def settle(answer: Answer) -> None:
        if not future.done():
            future.set_result(answer)

    def tell(answer: Answer) -> None:
        loop.call_soon_threadsafe(settle, answer)

    _out[number] = tell
    _listen(loop)
    try:
        return await future
    finally:
        _give_up(number)
        if not any(_out.values()):
            _listen_no_more()


def _result(function: str, answer: Answer) -> Any:
    value, error, text = answer
    if error is None:
        return value
    raise _kind(error)(text or f"{function} has failed")


def _kind(error: str) -> type:
    """The exception of that name: Python's own, if a sentence makes one."""
    kind = getattr(builtins, error, None)
    if isinstance(kind, type) and issubclass(kind, Exception) and not issubclass(kind, UnicodeError):
        return kind
    return type(error, (FunctionError,), {"__module__": "tools"}) if error.isidentifier() else FunctionError


# ---- one function ----

_KINDS: Dict[str, Tuple[type, ...]] = {
    "string": (str, bytes),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list, tuple),
    "object": (dict,),
    "null": (type(None),),
}
_HINTS = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "object": "dict", "null": "None"}


def _kinds(schema: Any) -> Optional[List[str]]:
    """The types that a schema allows; None: any."""
    if not isinstance(schema, dict):
        return None
    for choice in ("anyOf", "oneOf"):
        if choice in schema:
            each = [_kinds(it) for it in schema[choice]]
            return None if None in each else [kind for it in each for kind in it or ()]
    kinds = schema.get("type")
    return [kinds] if isinstance(kinds, str) else kinds if isinstance(kinds, list) else None


def _hint(schema: Any) -> str:
    if isinstance(schema, dict) and isinstance(schema.get("enum"), list):
        return "Literal[" + ", ".join(map(repr, schema["enum"])) + "]"
    kinds = _kinds(schema)
    if not kinds:
        return "Any"
    if kinds == ["array"]:
        inner = schema.get("items")
        return f"list[{_hint(inner)}]" if inner else "list"
    return " | ".join("list" if it == "array" else _HINTS.get(it, "Any") for it in kinds)


def _fits(value: object, kinds: List[str]) -> bool:
    if isinstance(value, bool):
        return "boolean" in kinds
    return any(isinstance(value, _KINDS.get(kind, (object,))) for kind in kinds)


def _schema(text: Optional[str]) -> Dict[str, Any]:
    """A client may write anything."""
    try:
        schema = json.loads(text or "{}")
    except ValueError:
        return {}
    return schema if isinstance(schema, dict) else {}


class _Annotation:
    """Shown in a signature as a type is."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text


class Function:
    def __init__(self, offer: Dict[str, Any]) -> None:
        path = offer["name"]
        self._offer = offer
        self._path, self._schema = path, _schema(offer.get("schema"))
        self.__name__ = path.rpartition(".")[2]
        self.__qualname__ = f"tools.{path}"
        self.__doc__ = offer.get("doc") or None
        properties = self._schema.get("properties")
        required = self._schema.get("required")
        self._properties = properties if isinstance(properties, dict) else {}
        self._required = required if isinstance(required, list) else []
        self.__signature__ = self._signature(_schema(offer.get("returns")))

    def _signature(self, returns: Dict[str, Any]) -> inspect.Signature:
        properties, required = self._properties, self._required
        parameters = []
        for name in sorted(properties, key=lambda name: name not in required):
            schema = properties[name]
            default = _MISSING if name in required else schema.get("default") if isinstance(schema, dict) else None
            if name.isidentifier() and not keyword.iskeyword(name):
                annotation = _Annotation(_hint(schema))
                parameters.append(
                    _Parameter(name, _Parameter.POSITIONAL_OR_KEYWORD, default=default, annotation=annotation)
                )
        if len(parameters) < len(properties) or self._schema.get("additionalProperties"):
            parameters.append(_Parameter("more", _Parameter.VAR_KEYWORD))
        result = _Annotation(_hint(returns)) if returns else inspect.Signature.empty
        return inspect.Signature(parameters, return_annotation=result)

    def __repr__(self) -> str:
        return f"<function tools.{self._path}{self.__signature__}>"

    def _arguments(self, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Dict[str, Any]:
        try:
            bound = self.__signature__.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{self.__name__}(): {error}") from None
        arguments = dict(bound.arguments)
        arguments.update(arguments.pop("more", {}) if "more" in self.__signature__.parameters else {})
        for name, value in arguments.items():
            schema = self._properties.get(name)
            kinds = _kinds(schema)
            if kinds is not None and not _fits(value, kinds):
                raise TypeError(f"{self.__name__}(): {name} is {_hint(schema)}, not {type(value).__name__}")
            choices = schema.get("enum") if isinstance(schema, dict) else None
            if isinstance(choices, list) and value not in choices:
                raise TypeError(
                    f"{self.__name__}(): {name} is one of {', '.join(map(repr, choices))}, not {value!r}"
                )
        return arguments

    def _call(self, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> int:
        if self._path not in tools._offered:
            raise FunctionError(f"{self._path}: the client of this cell does not offer it")
        arguments = self._arguments(args, kwargs)
        try:
            number = call(self._path, arguments)
        except (ValueError, OverflowError) as error:
            raise ValueError(f"{self.__name__}(): {error}") from None
        except TypeError as error:
            raise TypeError(
                f"{self.__name__}(): {error}; arguments are None, bool, int, float, str, bytes, list and dict"
            ) from None
        _out[number] = None
        return number

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return _result(self._path, _wait(self._call(args, kwargs)))

    async def aio(self, *args: Any, **kwargs: Any) -> Any:
        """The same, to be awaited: other tasks go on meanwhile."""
        return _result(self._path, await _await(self._call(args, kwargs)))


# ---- all of them ----


class Tools(types.ModuleType):
    """The functions that the client of this cell offers. dir(tools) lists them, help(tools.NAME) explains one, and
    tools.find("words") looks for some."""

    def __init__(self, name: str, prefix: str = "") -> None:
        super().__init__(name, Tools.__doc__)
        self.__dict__.update(_prefix=prefix, _offered={})

    def _here(self) -> Iterator[str]:
        """The next part of the names below this one."""
        for path in tools._offered:
            if path.startswith(self._prefix):
                yield path[len(self._prefix) :].partition(".")[0]

    def __getattr__(self, name: str) -> Any:
        path = self._prefix + name
        if path in tools._offered:
            return tools._offered[path]
        if any(it.startswith(path + ".") for it in tools._offered):
            return Tools(f"tools.{path}", path + ".")
        if name.startswith("__"):
            raise AttributeError(name)
        near = [it for it in tools._offered if name.lower() in it.lower()]
        there = near or sorted(set(self._here()))
        raise AttributeError(
            f"there is no function {path}; "
            + (f"there is {', '.join(there[:_SHOWN])}" if there else "the client of this cell offers none")
        )

    def __dir__(self) -> List[str]:
        return sorted({*self._here(), "find"})

    def find(self, words: str = "") -> List[str]:
        """The functions whose names or descriptions have all of the words, each with its signature."""
        found = []
        for path, function in tools._offered.items():
            text = f"{path} {function.__doc__ or ''}".lower()
            if path.startswith(self._prefix) and all(word in text for word in words.lower().split()):
                first = (function.__doc__ or "").strip().partition("\n")[0]
                found.append(f"{path}{function.__signature__}" + (f": {first}" if first else ""))
        return found

    def __repr__(self) -> str:
        return f"<{self.__name__}: {', '.join(sorted(set(self._here()))) or 'no functions'}>"


tools = Tools("tools")
_known: Dict[str, Function] = {}  # of this cell and those before it


def offer(functions: List[Dict[str, Any]]) -> None:
    """A cell begins, whose client offers these. A function that is offered again stays the same object."""
    global _open
    _open = True
    for it in functions:
        made = _known.get(it["name"])
        if made is None or made._offer != it:
            _known[it["name"]] = Function(it)
    tools.__dict__["_offered"] = {it["name"]: _known[it["name"]] for it in functions}
    vars(_main).setdefault("tools", tools)
    sys.modules.setdefault("tools", tools)


def take_back() -> None:
    """The cell has ended: whoever still waits for an answer waits in vain, and nobody reads the channel any more."""
    global _open
    with _turn:
        _open = False
        while _hearing:
            _turn.wait()
        for tell in list(_out.values()):
            if tell is not None:
                tell((None, "FunctionError", "the cell that called has ended"))
        _out.clear()
        _answers.clear()
        _turn.notify_all()
    _listen_no_more()
    tools.__dict__["_offered"] = {}

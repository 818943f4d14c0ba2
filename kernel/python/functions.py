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
_LOOK_SECONDS = 0.05
_ENDED = "the cell that called has ended"
_allocate_lock = threading.Lock

Answer = Tuple[Any, Optional[str], Optional[str]]


class FunctionError(RuntimeError):
    """A function of the client has failed, or cannot be called."""

    __module__ = "tools"


# ---- calls that are out ----

# Who holds it reads the channel for all who wait. It is re-entrant: an interrupt may come between any two steps of the
# main thread, and what that still holds then is no obstacle to itself.
_reading = threading.RLock()
_open = False  # a cell runs that has functions
_out: Dict[int, "_Waiter"] = {}
_listening: Any = None  # the event loop that waits for the channel


class _Waiter:
    """A thread that waits for the answer to a call."""

    def __init__(self) -> None:
        self.answer: Optional[Answer] = None
        self._gate = _allocate_lock()
        self._gate.acquire()

    def tell(self, answer: Answer) -> None:
        self.answer = answer
        self.wake()

    def wake(self) -> None:
        if self._gate.locked():
            self._gate.release()

    def sleep(self) -> None:
        self._gate.acquire(True, _LOOK_SECONDS)


class _Future(_Waiter):
    """A task that does."""

    def __init__(self, loop: Any) -> None:
        self._loop, self.future = loop, loop.create_future()

    def _settle(self, answer: Answer) -> None:
        if not self.future.done():
            self.future.set_result(answer)

    def tell(self, answer: Answer) -> None:
        self._loop.call_soon_threadsafe(self._settle, answer)

    def wake(self) -> None:
        pass


def pass_on(number: int, value: Any, error: Optional[str], text: Optional[str]) -> None:
    """An answer has come."""
    waiter = _out.pop(number, None)
    if waiter is not None:
        waiter.tell((value, error, text))


def _hear(wait: bool) -> bool:
    """Read the channel once, unless somebody does. Whether there was an answer."""
    heard = None
    try:
        if not _reading.acquire(False):
            return False
        if not _open:  # what comes now is for the next cell
            raise FunctionError(_ENDED)
        heard = hear(wait)
        if heard is not None:
            pass_on(*heard)
    finally:
        if _reading._is_owned():  # type: ignore[attr-defined]
            _reading.release()
    for waiter in list(_out.values()) if wait else ():
        waiter.wake()  # one of them reads from now on
        break
    return heard is not None


def _wait(number: int, waiter: _Waiter) -> Answer:
    try:
        while waiter.answer is None:
            if number not in _out:
                raise FunctionError(_ENDED)
            if not _hear(True) and waiter.answer is None:
                waiter.sleep()
        return waiter.answer
    finally:
        _give_up(number)


def _give_up(number: int) -> None:
    """Nobody waits for it any more, if it has no answer."""
    if _out.pop(number, None) is not None:
        drop(number)


def _listen(loop: Any) -> None:
    global _listening
    if _listening is None:
        _listening = loop
        loop.add_reader(descriptor(), _on_readable)


def _listen_no_more() -> None:
    global _listening
    loop, _listening = _listening, None
    if loop is not None and not loop.is_closed():
        loop.remove_reader(descriptor())


def _on_readable() -> None:
    while _hear(False):
        pass


async def _await(number: int, waiter: _Future) -> Answer:
    _listen(_running_loop())
    try:
        return await waiter.future  # type: ignore[no-any-return]
    finally:
        _give_up(number)
        if not any(isinstance(it, _Future) for it in _out.values()):
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
        self._rest = "more"  # the parameter that takes all others; its name is none of theirs
        while self._rest in self._properties:
            self._rest += "_"
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
            parameters.append(_Parameter(self._rest, _Parameter.VAR_KEYWORD))
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
        arguments.update(arguments.pop(self._rest, {}))
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

    def _call(self, args: Tuple[Any, ...], kwargs: Dict[str, Any], waiter: _Waiter) -> int:
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
        _out[number] = waiter
        return number

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        waiter = _Waiter()
        return _result(self._path, _wait(self._call(args, kwargs, waiter), waiter))

    async def aio(self, *args: Any, **kwargs: Any) -> Any:
        """The same, to be awaited: other tasks go on meanwhile."""
        waiter = _Future(_running_loop())
        return _result(self._path, await _await(self._call(args, kwargs, waiter), waiter))


# ---- all of them ----


class Tools(types.ModuleType):
    """The functions that the client of this cell offers. dir(tools) lists them, help(tools.NAME) explains one, and
    tools.find("words") looks for some."""

    def __init__(self, name: str, prefix: str = "") -> None:
        super().__init__(name, Tools.__doc__)
        self.__dict__.update(_prefix=prefix, _offered={}, FunctionError=FunctionError)

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


def _made(it: Dict[str, Any]) -> Function:
    """Without its schema, if that makes no sense: then the client alone looks at the arguments."""
    try:
        return Function(it)
    except Exception:
        made = Function({"name": it["name"], "doc": it.get("doc"), "schema": '{"additionalProperties": true}'})
        made._offer = it
        return made


def offer(functions: List[Dict[str, Any]]) -> None:
    """A cell begins, whose client offers these. A function that is offered again stays the same object."""
    global _open
    _open = True
    for it in functions:
        made = _known.get(it["name"])
        if made is None or made._offer != it:
            _known[it["name"]] = _made(it)
    tools.__dict__["_offered"] = {it["name"]: _known[it["name"]] for it in functions}
    vars(_main).setdefault("tools", tools)
    sys.modules.setdefault("tools", tools)


def take_back() -> None:
    """The cell has ended: whoever still waits for an answer waits in vain, and nobody reads the channel any more."""
    global _open
    _open = False
    tools.__dict__["_offered"] = {}
    for number in list(_out):
        pass_on(number, None, "FunctionError", _ENDED)
    _reading.acquire()
    while _reading._is_owned():  # type: ignore[attr-defined]
        _reading.release()
    _listen_no_more()

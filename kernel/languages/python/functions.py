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
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterable, Iterator, List, Optional, Tuple

if TYPE_CHECKING:
    import awaiting
    from servers import MCPError, Tool, servers_offered

call: Callable[[str, Dict[str, Any], bool, Dict[int, "_Waiter"], "_Waiter"], None]
hear: Callable[[bool], Optional[Tuple[int, Any, Optional[str], Optional[str]]]]
drop: Callable[[int], None]
descriptor: Callable[[], int]

_running_loop = asyncio.get_running_loop
_running = asyncio._get_running_loop
_main = sys.modules["__main__"]
_Parameter = inspect.Parameter
_MISSING = inspect.Parameter.empty
_BUILTINS = frozenset(vars(builtins))  # Python's own
_SHOWN = 20
_DEPTH = 16  # of a message, and of what is looked at in a schema
_LOOK_SECONDS = 0.05
_ENDED = "the cell that called has ended"
_allocate_lock = threading.Lock

Answer = Tuple[Any, Optional[str], Optional[str]]


class FunctionError(RuntimeError):
    """A function of the client has failed, or cannot be called."""

    __module__ = "tools"


class RepeatError(FunctionError):
    """It was done before, and going back has not undone it: it is not repeated in silence. tools.NAME.again(...) does it
    once more."""

    __module__ = "tools"


# ---- calls that are out ----

# Who holds it reads the channel for all who wait. It is re-entrant: an interrupt may come between any two steps of the
# main thread, and what that still holds then is no obstacle to itself.
_reading = threading.RLock()
_open = False  # a cell runs that has functions
_out: Dict[int, "_Waiter"] = {}
_listening: Any = None  # the event loop that waits for the channel
_channel = -1  # at that descriptor


class _Waiter:
    """A thread that waits for the answer to a call."""

    number = 0  # of the call; 0: none was made

    def __init__(self) -> None:
        self.answer: Optional[Answer] = None
        self.thread = threading.get_ident()
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
        self.thread = threading.get_ident()

    def _settle(self, answer: Answer) -> None:
        if not self.future.done():
            self.future.set_result(answer)

    def tell(self, answer: Answer) -> None:
        if _running() is self._loop:
            self._settle(answer)
        else:
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


def _wait(waiter: _Waiter) -> Answer:
    while waiter.answer is None:
        if waiter.number not in _out:
            raise FunctionError(_ENDED)
        if not _hear(True) and waiter.answer is None:
            waiter.sleep()
    return waiter.answer


def _give_up(waiter: _Waiter) -> None:
    """Nobody waits for its call any more, if that was made and has no answer."""
    if waiter.number in _out:
        drop(waiter.number)
        _out.pop(waiter.number, None)


def _listen(loop: Any) -> None:
    global _listening, _channel
    if _listening is None:
        _listening, _channel = loop, descriptor()
        loop.add_reader(_channel, _on_readable)


def _listen_no_more() -> None:
    global _listening
    loop, _listening = _listening, None
    if loop is not None and not loop.is_closed():
        loop.remove_reader(_channel)


def halt() -> bool:
    """A copy of the cell is to be made. Whether another thread waits for an answer, at a channel that a copy lacks."""
    awaiting.halt()
    mine = threading.get_ident()
    return any(waiter.thread != mine for waiter in _out.values())


def resume(forked: bool) -> None:
    """A copy of the cell has been made. A fork of it has another channel."""
    awaiting.resume(forked)
    loop = _listening
    if forked and loop is not None:
        _listen_no_more()
        _listen(loop)


def _on_readable() -> None:
    while _hear(False):
        pass


async def _await(waiter: _Future) -> Answer:
    _listen(_running_loop())
    try:
        return await waiter.future  # type: ignore[no-any-return]
    finally:
        _give_up(waiter)
        if not any(isinstance(it, _Future) for it in _out.values()):
            _listen_no_more()


def _result(function: str, answer: Answer) -> Any:
    value, error, text = answer
    if error is None:
        return value
    raise _kind(error)(text or f"{function} has failed")


def _kind(error: str) -> type:
    """The exception of that name: Python's own, if a sentence makes one."""
    if error == "RepeatError":
        return RepeatError
    kind = getattr(builtins, error, None)
    if isinstance(kind, type) and issubclass(kind, Exception) and not issubclass(kind, UnicodeError):
        return kind
    if error == MCPError.__name__:
        return MCPError
    return type(error, (FunctionError,), {"__module__": "tools"}) if error.isidentifier() else FunctionError


def ask_router(name: str, arguments: Dict[str, Any]) -> Any:
    """Call what is no function of a client's, and wait."""
    global _open
    waiter, before = _Waiter(), _open
    try:
        _open = True
        call(name, arguments, False, _out, waiter)
        return _result(name, _wait(waiter))
    finally:
        _give_up(waiter)
        _open = before


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
_HINTS = {
    "string": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "array": "list",
    "object": "dict",
    "null": "None",
}


class _Types:
    """JSON Schema of a client, who may write anything: what it means in Python, and whether values are so. What makes no
    sense means any value."""

    def __init__(self, schema: Dict[str, Any]) -> None:
        self._root = schema
        self._open: List[str] = []  # the references that hint() is in

    def resolved(self, schema: Any) -> Tuple[Dict[str, Any], str]:
        """Without references, and the name of the last."""
        name = ""
        for _ in range(_DEPTH):
            if not isinstance(schema, dict):
                break
            whole = schema.get("allOf")
            reference = schema.get("$ref")
            if isinstance(whole, list) and len(whole) == 1:
                schema = whole[0]
            elif isinstance(reference, str):
                name, schema = reference.rpartition("/")[2], self._root
                for part in reference.split("/")[1:] if reference.startswith("#") else [""]:
                    schema = schema.get(part) if isinstance(schema, dict) else None
            else:
                return schema, name
        return {}, name

    def _options(self, schema: Dict[str, Any]) -> Optional[List[Any]]:
        options = schema.get("anyOf", schema.get("oneOf"))
        if isinstance(options, list) and options:
            return options
        kinds = schema.get("type")
        return [{**schema, "type": kind} for kind in kinds] if isinstance(kinds, list) else None

    def _values(self, schema: Dict[str, Any]) -> Optional[List[Any]]:
        values = [schema["const"]] if "const" in schema else schema.get("enum")
        return values if isinstance(values, list) else None

    def scalar(self, schema: Any) -> str:
        """Its type, if that is all that it says of its values; or nothing."""
        schema, _ = self.resolved(schema)
        kind = schema.get("type")
        plain = kind in ("string", "integer", "number", "boolean") and self._values(schema) is None
        return str(kind) if plain and self._options(schema) is None else ""

    def hint(self, schema: Any) -> str:
        resolved, name = self.resolved(schema)
        if name in self._open or len(self._open) == _DEPTH:
            return name if name.isidentifier() else "Any"
        self._open.append(name or f"#{len(self._open)}")
        try:
            return self._hint(resolved, name)
        finally:
            self._open.pop()

    def _hint(self, schema: Dict[str, Any], name: str) -> str:
        values, options, kind = self._values(schema), self._options(schema), schema.get("type")
        if values is not None:
            return "Literal[" + ", ".join(map(repr, values)) + "]"
        if options is not None:
            hints = [self.hint(it) for it in options]
            return "Any" if "Any" in hints else " | ".join(dict.fromkeys(hints))
        if kind == "array" and schema.get("items"):
            return f"list[{self.hint(schema['items'])}]"
        if kind == "string" and schema.get("format") == "binary":
            return "bytes"
        if isinstance(schema.get("properties"), dict):
            title = name or str(schema.get("title", ""))
            return title if title.isidentifier() else "dict"
        if kind == "object" and isinstance(schema.get("additionalProperties"), dict):
            return f"dict[str, {self.hint(schema['additionalProperties'])}]"
        return _HINTS.get(kind, "Any") if isinstance(kind, str) else "Any"

    def problem(self, value: Any, schema: Any, what: str, depth: int = _DEPTH) -> Optional[str]:
        """Why it is not so."""
        schema, _ = self.resolved(schema)
        if not depth or not schema:
            return None
        values, options = self._values(schema), self._options(schema)
        if values is not None:
            known = isinstance(value, (str, int, float, type(None))) and value in values
            return None if known else f"{what} is one of {', '.join(map(repr, values))}, not {_shown(value)}"
        if options is not None:
            return self._problem_of_options(value, schema, options, what, depth)
        kind = schema.get("type")
        if isinstance(kind, str) and not _fits(value, kind):
            return f"{what} is {self.hint(schema)}, not {type(value).__name__}"
        if isinstance(value, (list, tuple)) and schema.get("items"):
            each = ((it, schema["items"], f"{what}[{n}]") for n, it in enumerate(value))
            return self._first(each, depth)
        return self._problem_of_fields(value, schema, what, depth) if isinstance(value, dict) else None

    def _first(self, each: Iterable[Tuple[Any, Any, str]], depth: int) -> Optional[str]:
        for value, schema, what in each:
            problem = self.problem(value, schema, what, depth - 1)
            if problem is not None:
                return problem
        return None

    def _problem_of_options(
        self, value: Any, schema: Any, options: List[Any], what: str, depth: int
    ) -> Optional[str]:
        problems = [self.problem(value, it, what, depth - 1) for it in options]
        if None in problems:
            return None
        # Of one type it is, but not all that it should be.
        inside = [it for it in problems if it and not it.startswith(f"{what} is ")]
        return inside[0] if len(inside) == 1 else f"{what} is {self.hint(schema)}, not {_shown(value)}"

    def _problem_of_fields(self, value: Dict[Any, Any], schema: Any, what: str, depth: int) -> Optional[str]:
        properties, more = schema.get("properties"), schema.get("additionalProperties")
        properties = properties if isinstance(properties, dict) else {}
        required = schema.get("required")
        for name in required if isinstance(required, list) else ():
            if name not in value:
                return f"{what} has no {name!r}"
        for name in value:
            if name not in properties and more is False:
                return f"{what} has {name!r}, which is none of {', '.join(map(repr, properties))}"
        each = ((it, properties.get(name, more), f"{what}[{name!r}]") for name, it in value.items())
        return self._first(each, depth)

    def described(self, properties: Dict[str, Any], doc: str) -> str:
        """What the schema says of parameters and of the types that they have, and the documentation does not."""
        said = " ".join(doc.split())
        told = ((name, _described(it)) for name, it in properties.items())
        lines = [f"    {name}: {text}" for name, text in told if text and text not in said]
        models: Dict[str, str] = {}
        for it in properties.values():
            self._models(it, models)
        return "\n\n".join(
            [*(["\n".join(["Arguments:", *lines])] if lines else []), *(f"{it} is {models[it]}" for it in models)]
        )

    def _fields(self, fields: Dict[str, Any]) -> str:
        each = [(f"{name!r}: {self.hint(it)}", _described(it)) for name, it in fields.items()]
        if not any(text for _, text in each):
            return "{" + ", ".join(field for field, _ in each) + "}"
        return "\n".join(
            ["{", *(f"    {field},  # {text}" if text else f"    {field}," for field, text in each), "}"]
        )

    def _models(self, schema: Any, found: Dict[str, str], depth: int = _DEPTH) -> None:
        """The fields of each type that has a name."""
        resolved, _ = self.resolved(schema)
        if not depth or not resolved:
            return
        fields, name = resolved.get("properties"), self.hint(schema)
        inner = [*(self._options(resolved) or ()), resolved.get("items"), resolved.get("additionalProperties")]
        if isinstance(fields, dict) and name not in ("dict", *found) and len(found) < _SHOWN:
            found[name] = self._fields(fields)
            inner += fields.values()
        for it in inner:
            self._models(it, found, depth - 1)


def _described(schema: Any) -> str:
    text = schema.get("description") if isinstance(schema, dict) else None
    return text if isinstance(text, str) else ""


def _without_numpy(value: Any) -> Any:
    """What numpy and pandas have for plain values becomes that."""
    if isinstance(value, (list, tuple)):
        return [_without_numpy(it) for it in value]
    if isinstance(value, dict):
        return {_without_numpy(key): _without_numpy(it) for key, it in value.items()}
    return value.tolist() if hasattr(value, "dtype") and hasattr(value, "tolist") else value


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else type(value).__name__


def _fits(value: object, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean" or kind not in _KINDS
    return isinstance(value, _KINDS.get(kind, (object,)))


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


# Of what has none, help() shows the class.
_NO_DOC = "It has no description."


class Function:
    _again = False

    def __init__(self, offer: Dict[str, Any]) -> None:
        path = offer["name"]
        self._offer = offer
        self._path, self._schema = path, _schema(offer.get("schema"))
        self._types = _Types(self._schema)
        self.__name__ = path.rpartition(".")[2]
        self.__qualname__ = f"tools.{path}"
        parameters, _ = self._types.resolved(self._schema)
        properties, required = parameters.get("properties"), parameters.get("required")
        self._more = bool(parameters.get("additionalProperties"))
        self._properties = properties if isinstance(properties, dict) else {}
        self._required = [it for it in required if isinstance(it, str)] if isinstance(required, list) else []
        self._rest = "more"  # the parameter that takes all others; its name is none of theirs
        while self._rest in self._properties:
            self._rest += "_"
        self.__signature__ = self._signature(_schema(offer.get("returns")))
        self._names = [name for name, it in self.__signature__.parameters.items() if it.kind is not it.VAR_KEYWORD]
        self._scalars = {name: kind for name in self._names if (kind := self._types.scalar(self._properties[name]))}
        doc = offer.get("doc") or ""
        self.__doc__ = "\n\n".join(filter(None, [doc, self._types.described(self._properties, doc)])) or _NO_DOC

    def _signature(self, returns: Dict[str, Any]) -> inspect.Signature:
        properties, required = self._properties, self._required
        parameters = []
        for name in sorted(properties, key=lambda name: name not in required):
            schema = properties[name]
            default = _MISSING if name in required else schema.get("default") if isinstance(schema, dict) else None
            if name.isidentifier() and not keyword.iskeyword(name):
                annotation = _Annotation(self._types.hint(schema))
                parameters.append(
                    _Parameter(name, _Parameter.POSITIONAL_OR_KEYWORD, default=default, annotation=annotation)
                )
        if len(parameters) < len(properties) or self._more:
            parameters.append(_Parameter(self._rest, _Parameter.VAR_KEYWORD))
        result = _Annotation(_Types(returns).hint(returns)) if returns else inspect.Signature.empty
        return inspect.Signature(parameters, return_annotation=result)

    def __repr__(self) -> str:
        return f"<function tools.{self._path}{self.__signature__}>"

    def _bound(self, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Dict[str, Any]:
        """The arguments by their names. Most calls are so simple that the signature need not be asked."""
        if len(args) <= len(self._names):
            arguments = dict(zip(self._names, args))
            if kwargs.keys() <= set(self._names[len(args) :]):
                arguments.update(kwargs)
                if all(name in arguments for name in self._required):
                    return arguments
        try:
            if args and self._more and not self._names:
                raise TypeError(f"its arguments are given by name, as {self.__name__}(name=value)")
            bound = self.__signature__.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{self.__name__}(): {error}") from None
        arguments = dict(bound.arguments)
        arguments.update(arguments.pop(self._rest, {}))
        return arguments

    def _arguments(self, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Dict[str, Any]:
        arguments = self._bound(args, kwargs)
        problem = self._problem(arguments)
        if problem is not None and "numpy" in sys.modules:
            arguments = _without_numpy(arguments)
            problem = self._problem(arguments)
        if problem is not None:
            raise TypeError(f"{self.__name__}(): {problem}")
        return arguments

    def _problem(self, arguments: Dict[str, Any]) -> Optional[str]:
        for name, value in arguments.items():
            kind = self._scalars.get(name)
            if kind is None or not _fits(value, kind):
                problem = self._types.problem(value, self._properties.get(name), name)
                if problem is not None:
                    return problem
        return None

    def _send(self, arguments: Dict[str, Any], waiter: _Waiter) -> None:
        """An interrupt may come between any two steps. So this is one: the call is made, and the waiter has it."""
        try:
            call(self._path, arguments, self._again, _out, waiter)
            return
        except TypeError:
            if "numpy" not in sys.modules:
                raise
        call(self._path, _without_numpy(arguments), self._again, _out, waiter)

    def _call(self, args: Tuple[Any, ...], kwargs: Dict[str, Any], waiter: _Waiter) -> None:
        if self._path not in tools._offered:
            raise FunctionError(f"{self._path}: the client of this cell does not offer it")
        self._call_with(self._arguments(args, kwargs), waiter)

    def _call_with(self, arguments: Dict[str, Any], waiter: _Waiter) -> None:
        try:
            self._send(arguments, waiter)
        except (ValueError, OverflowError) as error:
            raise ValueError(f"{self.__name__}(): {error}") from None
        except TypeError as error:
            raise TypeError(
                f"{self.__name__}(): {error}; arguments are None, bool, int, float, str, bytes, list and dict"
            ) from None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        waiter = _Waiter()
        try:
            self._call(args, kwargs, waiter)
            return self._result(_wait(waiter))
        finally:
            _give_up(waiter)

    async def aio(self, *args: Any, **kwargs: Any) -> Any:
        """The same, to be awaited: other tasks go on meanwhile."""
        waiter = _Future(_running_loop())
        try:
            self._call(args, kwargs, waiter)
            return self._result(await _await(waiter))
        finally:
            _give_up(waiter)

    def _result(self, answer: Answer) -> Any:
        return _result(self._path, answer)

    @property
    def again(self) -> "Function":
        """The same, also if it was done before and going back has not undone it."""
        same = object.__new__(type(self))
        same.__dict__.update(self.__dict__, _again=True)
        return same


# ---- all of them ----


class Tools(types.ModuleType):
    """The functions that the client of this cell offers. dir(tools) lists them, help(tools.NAME) explains one, and
    tools.find("words") looks for some."""

    def __init__(self, name: str, prefix: str = "") -> None:
        super().__init__(name, Tools.__doc__)
        self.__dict__.update(_prefix=prefix, _offered={}, FunctionError=FunctionError, RepeatError=RepeatError)

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

    def __getattribute__(self, name: str) -> Any:
        """A function of that name comes before a method."""
        here = super().__getattribute__
        if name in ("find", "search_docs") and here("_prefix") + name in tools._offered:
            return tools._offered[here("_prefix") + name]
        return here(name)

    def find(self, words: str = "") -> List[str]:
        """The functions whose names or descriptions have all of the words, each with its signature."""
        found = []
        for path, function in tools._offered.items():
            doc = "" if function.__doc__ == _NO_DOC else function.__doc__ or ""
            text = f"{path} {doc}".lower()
            if path.startswith(self._prefix) and all(word in text for word in words.lower().split()):
                first = doc.strip().partition("\n")[0]
                found.append(f"{path}{function.__signature__}" + (f": {first}" if first else ""))
        return found

    search_docs = find  # for when a function is called find

    def __repr__(self) -> str:
        return f"<{self.__name__}: {', '.join(sorted(set(self._here()))) or 'no functions'}>"


tools = Tools("tools")
_known: Dict[str, Function] = {}  # of this cell and those before it


def _made(it: Dict[str, Any]) -> Function:
    """Without its schema, if that makes no sense: then the client alone looks at the arguments."""
    kind = Tool if "server" in it and "tool" in it else Function
    try:
        return kind(it)
    except Exception:
        made = kind({**it, "schema": '{"additionalProperties": true}', "returns": None})
        made._offer = it
        return made


def _place(name: str) -> None:
    """Make the name alone mean tools.NAME. It is a builtin, so that the session's own variables come first; but Python's own
    builtins are for all code, so one of their names is placed in the session alone. It stays: a call of a function that is
    not offered any more says so."""
    space = vars(_main if name in _BUILTINS else builtins)
    if name not in space or isinstance(space[name], (Function, Tools)):
        space[name] = getattr(tools, name)


def offer(functions: List[Dict[str, Any]]) -> None:
    """A cell begins, whose client offers these. A function that is offered again stays the same object."""
    global _open
    _open = True
    for it in functions:
        made = _known.get(it["name"])
        if made is None or made._offer != it:
            _known[it["name"]] = _made(it)
    tools.__dict__["_offered"] = {it["name"]: _known[it["name"]] for it in functions}
    for it in functions:
        if it.get("bare"):
            _place(it["name"].partition(".")[0])
    vars(_main).setdefault("tools", tools)
    sys.modules.setdefault("tools", tools)
    servers_offered()


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

"""What a notebook has beside a prompt: In and Out, pages, comms. A cell that a notebook sends comes with a note of how it
is to be run; other cells pay nothing. What only a notebook can do something with goes out as a display of a type that
nobody else takes: NOTICE, and BUFFERS if it has any."""

import base64
import builtins
import importlib
import io
import json
import sys
import tokenize
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Optional

if TYPE_CHECKING:
    import display
    import magics
    import stdin

NOTICE = "application/vnd.lair.notebook+json"
BUFFERS = "application/vnd.lair.buffers"

_CELL, _SILENT, _MESSAGE, _PROMPT = 1, 2, 3, 4  # as cell.c has them
_QUIET = 16  # its value is not shown
_KINDS = {"cell": _CELL, "silent": _SILENT, "message": _MESSAGE}
_SIZE_MAX = 8 << 20
_OUT_MAX = 1000

_builtins: Dict[str, Any] = vars(builtins)
_import_module = importlib.import_module
_modules = sys.modules
_loads, _dumps = json.loads, json.dumps
_b64decode = base64.b64decode
_tokens, _StringIO = tokenize.generate_tokens, io.StringIO
_BLANK = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)

_header: Dict[str, Any] = {}  # of the message by which the cell was asked for
_inputs: List[str] = [""]
_outputs: Dict[int, Any] = {}
_count = 0  # of the cell, as the notebook counts


def enter(note: str, number: int, source: str) -> int:
    """A cell of a notebook begins. Returns what kind of cell it is."""
    global _header, _count
    told = _loads(note)
    _count = number
    if told.get("kind") == "prompt":
        return _enter_prompt(number, source)
    kind = _KINDS.get(told.get("kind"), _CELL)
    _header = told.get("header") or {}
    _count = told.get("count") or number
    display.in_notebook = True
    display.wants_further = told.get("forms") is True
    if "IPython" in _modules:
        magics.meet()
    for shell in magics.shells:
        _dress(shell)
    if kind == _CELL:
        _note_input(_count, source.rstrip("\n"))
    return kind | _QUIET if kind != _MESSAGE and _ends_quietly(source) else kind


def _ends_quietly(source: str) -> bool:
    """Whether the last token is a semicolon, which ends no line of a magic."""
    if not source.rstrip().endswith(";") and "#" not in source.rpartition(";")[2]:
        return False
    last = ""
    try:
        for kind, text, *_ in _tokens(_StringIO(source).readline):
            last = last if kind in _BLANK else text
    except Exception:
        return False
    return last == ";"


def _enter_prompt(number: int, source: str) -> int:
    """In and Out are what people know from IPython. Who has not loaded it does not pay with the memory for them."""
    if "IPython" not in _modules:
        return 0
    magics.meet()
    _note_input(number, source.rstrip("\n"))
    return _PROMPT


def leave() -> None:
    display.in_notebook = display.wants_further = False


# ---- questions that nobody answers ----


class StdinNotImplementedError(NotImplementedError):
    """As IPython has it."""


def _refuse_input(what: str) -> None:
    if not display.in_notebook:
        return
    kind: Any = getattr(_modules.get("IPython.core.error"), "StdinNotImplementedError", StdinNotImplementedError)
    raise kind(f"{what} was called, but this frontend does not support input requests.") from None


stdin.refuse = _refuse_input


# ---- In, Out ----


def _note_input(number: int, source: str) -> None:
    _inputs.extend("" for _ in range(number + 1 - len(_inputs)))
    _inputs[number] = source
    _builtins.update(In=_inputs, Out=_outputs, _i=_inputs[number - 1], _ii=_inputs[max(number - 2, 0)])
    _builtins[f"_i{number}"] = source


def shown(value: object, number: int) -> None:
    """The value of the cell was shown. Called before it becomes `_`."""
    number = _count
    _builtins["___"], _builtins["__"] = _builtins.get("__", ""), _builtins.get("_", "")
    if value is _outputs:
        return
    _outputs[number] = value
    _builtins[f"_{number}"] = value
    if len(_outputs) > _OUT_MAX:
        oldest = next(iter(_outputs))
        del _outputs[oldest]
        _builtins.pop(f"_{oldest}", None)


# ---- what goes out ----


def tell(what: str, told: Dict[str, Any], buffers: Optional[List[Any]] = None) -> None:
    """Only while a cell of a notebook runs: nobody would hear it otherwise."""
    if not display.in_notebook:
        return
    blobs = [bytes(memoryview(buffer).cast("B")) for buffer in buffers or ()]
    text = display.utf8(_dumps({**told, "type": what, "sizes": [*map(len, blobs)]}, default=_plain))
    size = len(text) + sum(map(len, blobs))
    if size > _SIZE_MAX:
        raise ValueError(f"a message of {size} bytes is too large for a notebook: at most {_SIZE_MAX}")
    data: Dict[str, Any] = {NOTICE: text}
    if blobs:
        data[BUFFERS] = b"".join(blobs)
    display.publish(data, None, None, False, False)


def _plain(value: Any) -> Any:
    """What JSON does not know: bytes, dates, and the scalars of numpy."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        return base64.b64encode(value).decode()
    for name in ("isoformat", "item", "tolist"):
        convert = getattr(value, name, None)
        if callable(convert):
            return convert()
    raise TypeError(f"{type(value).__name__} cannot be sent to a notebook")


def page(data: Dict[str, str]) -> None:
    tell("payload", {"payload": {"source": "page", "data": data, "start": 0}})


def next_input(text: str, replace: bool) -> None:
    tell("payload", {"payload": {"source": "set_next_input", "text": text, "replace": bool(replace)}})


# ---- comms: of the package of that name, which ipywidgets and others use ----


def _meet_getipython(module: Any) -> None:
    """A library that looks for IPython's shell finds one."""
    own = module.get_ipython

    def get_ipython() -> Any:
        if display.in_notebook:
            magics.meet()
            for shell in magics.shells:
                _dress(shell)
        return own()

    module.get_ipython = get_ipython


class _Kernel:
    """What libraries ask of the kernel that get_ipython() has."""

    def __init__(self, shell: Any) -> None:
        self.shell = shell

    @property
    def comm_manager(self) -> Any:
        return _import_module("comm").get_comm_manager()

    @property
    def _parent_header(self) -> Dict[str, Any]:
        return self.get_parent()

    def get_parent(self, channel: Optional[str] = None) -> Dict[str, Any]:
        return {"header": _header, "msg_id": _header.get("msg_id", ""), "parent_header": {}, "metadata": {}}


def _dress(shell: Any) -> None:
    if getattr(shell, "kernel", None) is None:
        object.__setattr__(shell, "kernel", _Kernel(shell))


def _meet_comm(module: Any) -> None:
    """The package `comm` has hooks for whoever carries its messages."""
    base: Any = module.BaseComm if hasattr(module, "BaseComm") else _import_module("comm.base_comm").BaseComm

    class Comm(base):  # type: ignore[misc]
        def publish_msg(
            self, msg_type: str, data: Any = None, metadata: Any = None, buffers: Any = None, **keys: Any
        ) -> None:
            content = {"comm_id": self.comm_id, "data": data or {}, **keys}
            tell("message", {"msg_type": msg_type, "content": content, "metadata": metadata or {}}, buffers)

    module.create_comm = Comm
    manager = _import_module("comm.base_comm").CommManager
    register = manager.register_target

    def register_target(self: Any, target_name: str, f: Any) -> None:
        register(self, target_name, f)
        tell("used", {})

    manager.register_target = register_target


def _unpacked(told: Dict[str, Any]) -> Dict[str, Any]:
    told["buffers"] = [memoryview(_b64decode(text)) for text in told.get("buffers") or ()]
    told["msg_id"] = _header.get("msg_id", "")
    told.setdefault("header", _header)
    return told


def _comm_info(manager: Any) -> None:
    comms = {name: {"target_name": one.target_name} for name, one in manager.comms.items()}
    tell("comms", {"comms": comms})


def _refuse(told: Dict[str, Any]) -> None:
    """Nothing in this session has comms."""
    if told["msg_type"] == "comm_info_request":
        tell("comms", {"comms": {}})
    elif told["msg_type"] == "comm_open":
        content = {"comm_id": str(told["content"].get("comm_id")), "data": {}}
        tell("message", {"msg_type": "comm_close", "content": content, "metadata": {}})


def receive(text: str) -> None:
    """A message of the notebook, as JSON, in the place of code."""
    told = _unpacked(_loads(text))
    if "comm" not in _modules:
        _refuse(told)
        return
    manager = _import_module("comm").get_comm_manager()
    handlers: Dict[str, Callable[[], None]] = {
        "comm_open": lambda: manager.comm_open(None, None, told),
        "comm_msg": lambda: manager.comm_msg(None, None, told),
        "comm_close": lambda: manager.comm_close(None, None, told),
        "comm_info_request": lambda: _comm_info(manager),
    }
    handlers[told["msg_type"]]()


magics.tell_page, magics.tell_next_input = page, next_input
_libraries: Any = display  # libraries.py shares its namespace
_libraries.meet("comm", _meet_comm)
_libraries.meet("IPython.core.getipython", _meet_getipython)

"""Functions for models to call: their schemas, and one dispatcher that runs them.

    from lair import tools

    tools.schemas()                                                   # for the request to the model
    tools.call("python_session_execute", {"code": "1 + 1"})["text"]   # for what the model answers

Whatever a model passes, and whatever its code does, the answer is a dictionary that tells the model what to do
next. Only a daemon that cannot be reached raises. The profile says what sessions may do; no schema and no answer speaks of
it.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import aclosing, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import aio, causes, notes, session, steps
from . import messages as m
from .connection import Connection, shared
from .errors import UNREACHABLE, DeadlineError, LairError, seconds
from .result import (
    UNKNOWN,
    Back,
    Bundle,
    Display,
    Effects,
    Ended,
    Result,
    Stream,
    as_text,
    ended,
    picture,
    refused,
    renewed,
)
from .seen import PAGE, STREAMS, Page, Seen, excerpt

# How many bytes a model gets at most of stdout, of stderr and of each text,
SHOWN = 20_000
# and how many displays.
DISPLAYS = 32

Answer = dict[str, Any]


@dataclass
class Wait:
    """A call that waits for a cell. What is `spared` ends the call only, and the cell runs on."""

    request: m.Exec | m.Attach
    patience: float
    spared: steps.Spared
    seen: Seen | Page
    answer: Callable[[Result | None], Answer]  # None: the cell has not ended


Plan = steps.Steps[Answer] | Wait


# Of a handle: the key of the cell, how far its output has come, and the session, if it has one.
_HANDLE = re.compile(r"([0-9a-f]{16})-(\d{1,18})-(\d{1,18})-(\d{1,18})(?:@(.+))?")
# Beyond the end of every output.
NOTHING = (1 << 63) - 1
_BEGINNING = {"stdout": 0, "stderr": 0, "displays": 0}

# The words of `lair tools --tools full --format anthropic`. Answers have pictures only if asked for, so that
# sentence is left out.
_WORDS = Path(__file__).with_name("tools.json").read_text().replace(" Figures come back as images.", "")
_TOLD: dict[str, dict[str, Any]] = {it["name"]: it for it in json.loads(_WORDS)}


@dataclass(frozen=True)
class Tool:
    name: str
    plan: Callable[[Tools, dict[str, Any]], Plan] = field(repr=False)

    @property
    def description(self) -> str:
        return str(_TOLD[self.name]["description"])

    @property
    def parameters(self) -> dict[str, dict[str, str]]:
        """The type and the description of each parameter."""
        told: dict[str, dict[str, str]] = _TOLD[self.name]["input_schema"]["properties"]
        return told

    @property
    def required(self) -> list[str]:
        told: list[str] = _TOLD[self.name]["input_schema"].get("required", [])
        return told

    def schema(self) -> dict[str, Any]:
        """In strict mode every parameter is required, and an optional one can be null."""
        properties: dict[str, Any] = {}
        for name, told in self.parameters.items():
            kind: dict[str, Any] = {"type": told["type"]}
            allowed = kind if name in self.required else {"anyOf": [kind, {"type": "null"}]}
            properties[name] = {**allowed, "description": told["description"]}
        return {
            "type": "object",
            "properties": properties,
            "required": list(properties),
            "additionalProperties": False,
        }

    def check(self, arguments: object) -> dict[str, Any]:
        """The arguments, after they were checked. Raises LairError."""
        if not isinstance(arguments, Mapping):
            raise LairError("bad_arguments", "the arguments must be a JSON object")
        for name in arguments:
            if name not in self.parameters:
                raise LairError("bad_arguments", f"{self.name} has no argument {name!r}")
        for name in self.required:
            if arguments.get(name) is None:
                raise LairError("bad_arguments", f"{name} is missing")
        return {name: _checked(name, it["type"], arguments.get(name)) for name, it in self.parameters.items()}


def _checked(name: str, kind: str, value: object) -> object:
    if value is None:
        return None
    if kind == "string":
        if not isinstance(value, str):
            raise LairError("bad_arguments", f"{name} must be a string")
        if not _is_text(value):
            raise LairError("bad_request", f"{name} has half a surrogate pair in it")
        if name == "cwd_rel" and (value.startswith("/") or ".." in value.split("/")):
            raise LairError("bad_arguments", "cwd_rel must be relative to the session's directory, and in it")
    if kind == "number" and not _positive(value):
        raise LairError("bad_arguments", f"{name} must be a positive number")
    if kind == "integer" and not (type(value) is int and 0 <= value < NOTHING):
        raise LairError("bad_arguments", f"{name} must be an integer, 0 or above")
    if kind == "boolean" and not isinstance(value, bool):
        raise LairError("bad_arguments", f"{name} must be true or false")
    return value


def _positive(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= sys.float_info.max


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _destination(source: str, given: str | None) -> str:
    """The target: `given`, or inside it under the source's own name, if it ends like a directory. `lair mcp` does
    the same."""
    if given and not given.endswith("/"):
        return given
    return (given or "") + os.path.basename(source.rstrip("/"))


class Tools:
    """The tools of one agent. Its sessions are told apart from those of others by a namespace. If none is given, it
    is a random one, and the sessions end with this object."""

    def __init__(
        self,
        *,
        namespace: str | None = None,
        profile: str | None = None,
        connection: Connection | None = None,
        shown: int = SHOWN,
        images: bool = False,
        patience: float | None = None,
    ) -> None:
        """`profile`: of its sessions. `shown`: how many bytes of each text a model gets at most. `images`: answers also
        have pictures of figures, in base64, for adapters that can show them to the model. `patience`: if a call takes more
        seconds, it is answered with `running` and a handle, by which python_result gets the rest. Without it a call waits
        until its code has ended."""
        self.namespace = steps.new_id() if namespace is None else namespace
        self._keep = namespace is not None
        self._profile = profile
        self._connection = connection
        self._shown = shown
        self._images = images
        self._patience = seconds("patience", patience)
        self._known: set[str] = set()
        self._births: dict[str, int] = {}  # by id, of the sessions that were used

    @property
    def connection(self) -> Connection:
        return self._connection or shared()

    def call(self, name: str, arguments: Mapping[str, Any] | str | None) -> Answer:
        """Do what a model asks. `arguments`: as the model passed them, a dictionary or its JSON."""
        try:
            plan = self._plan(name, arguments)
            if not isinstance(plan, Wait):
                return session.perform(self.connection, plan)
            return plan.answer(self._wait(plan))
        except LairError as error:
            return self._refusal(error)

    def _wait(self, plan: Wait) -> Result | None:
        events = session.follow(
            self.connection, plan.request, plan.patience, None, collector=plan.seen, spared=plan.spared
        )
        try:
            with closing(events):
                for event in events:
                    if plan.seen.full or isinstance(event, Result):
                        return event if isinstance(event, Result) else None
        except DeadlineError:
            if not plan.spared:
                raise
        return None

    async def acall(self, name: str, arguments: Mapping[str, Any] | str | None) -> Answer:
        """The same for asyncio. If it is cancelled, it interrupts the code."""
        try:
            plan = self._plan(name, arguments)
            if not isinstance(plan, Wait):
                return await aio.perform(self.connection, plan)
            return plan.answer(await self._await(plan))
        except LairError as error:
            return self._refusal(error)

    async def _await(self, plan: Wait) -> Result | None:
        events = aio.follow(
            self.connection, plan.request, plan.patience, None, collector=plan.seen, spared=plan.spared
        )
        try:
            async with aclosing(events):
                async for event in events:
                    if plan.seen.full or isinstance(event, Result):
                        return event if isinstance(event, Result) else None
        except DeadlineError:
            if not plan.spared:
                raise
        return None

    @property
    def instructions(self) -> str:
        """A text for a system prompt, if one is wanted: how sessions work, and what there is in a session. A cell
        finds that out."""
        return _instructions(session.run(_PROBE, profile=self._profile, connection=self.connection))

    def close(self) -> None:
        """End its sessions, unless its namespace was given."""
        known, self._known = self._known, set()
        for id in known:
            self.connection.abandon(id)

    def __enter__(self) -> Tools:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    # ---- what each tool does ----

    def _plan(self, name: str, arguments: Mapping[str, Any] | str | None) -> Plan:
        tool = TOOLS.get(name)
        if tool is None:
            raise LairError("unknown_tool", f"there is no tool {name!r}; there are {', '.join(TOOLS)}")
        if isinstance(arguments, str):
            try:
                arguments = json.loads(arguments) if arguments.strip() else {}
            except (ValueError, RecursionError) as error:
                raise LairError("bad_arguments", f"the arguments are not JSON: {error}") from None
        return tool.plan(self, tool.check({} if arguments is None else arguments))

    def _id(self, given: str | None) -> str:
        id = f"{self.namespace}:{given or 'default'}"
        if not self._keep and id not in self._known:
            self._known.add(id)
            steps.adopt(self, self.connection, id)
        return id

    def _once(self, given: dict[str, Any]) -> Plan:
        return self._run(given["code"], None, {"timeout": given["timeout_sec"]})

    def _execute(self, given: dict[str, Any]) -> Plan:
        options: steps.CellOptions = {"timeout": given["timeout_sec"], "directory": given["cwd_rel"]}
        return self._run(given["code"], self._id(given["session_id"]), options)

    def _run(self, code: str, id: str | None, options: steps.CellOptions) -> Wait:
        key, limit = secrets.token_hex(8), steps.deadline(options)
        request = steps.cell(code, id, self._profile, {**options, "key": key}, stream=True, input=False)
        seen = Seen(self._shown, _BEGINNING)

        def answer(result: Result | None) -> Answer:
            lost = None if id is None or result is None else self._lost(id, result.reply)
            ended = result if result is None or lost is None else renewed(result, lost)
            return self._answer(_Cell(key, id, began, seen), ended)

        began = time.monotonic()
        if self._patience is None:
            return Wait(request, limit, (), seen, answer)
        return Wait(request, min(self._patience, limit), (DeadlineError,), seen, answer)

    def _rest(self, given: dict[str, Any]) -> Plan:
        """To be cancelled is to wait no longer: the code is another call's."""
        parts = _HANDLE.fullmatch(given["handle"])
        if parts is None:
            raise LairError("bad_arguments", "handle must be one that a result has given")
        key, out, err, displays, told = parts.groups()
        id = None if told is None else f"{self.namespace}:{told}"
        request = steps.attachment(id, key, None, stream=True, input=False)
        patience = steps.deadline({}) if self._patience is None else self._patience
        if given["from_byte"] is not None:
            page = self._page(request, given["from_byte"], "stderr" if given["of_stderr"] else "stdout")
            return Wait(request, patience, (BaseException,), page, lambda result: _of_page(page, result))
        begin = {"stdout": int(out), "stderr": int(err), "displays": int(displays)}
        request.stdout, request.stderr, request.displays = begin.values()
        cell = _Cell(key, id, time.monotonic(), Seen(self._shown, begin))
        return Wait(request, patience, (BaseException,), cell.seen, lambda result: self._answer(cell, result))

    def _page(self, request: m.Attach, begin: int, stream: Stream) -> Page:
        """Only that stream is sent, from there on."""
        request.stdout = request.stderr = request.displays = NOTHING
        setattr(request, stream, begin)
        return Page(stream, begin, min(PAGE, self._shown))

    def _start(self, given: dict[str, Any]) -> Plan:
        id = self._id(given["session_id"])
        info = yield from steps.open(id, self._profile)
        answer: Answer = {"ok": True, "session_id": given["session_id"] or "default", "new": info.opened}
        return {**answer, **self._news(id, info)}

    def _reset(self, given: dict[str, Any]) -> Plan:
        effects = yield from steps.reset(self._id(given["session_id"]), ())
        answer: Answer = {"ok": True, "session_id": given["session_id"] or "default", "state": causes.RESET}
        return {**answer, **_not_undone(effects), **_filled({"note": _told_of(notes.not_undone(effects))})}

    def _shutdown(self, given: dict[str, Any]) -> Plan:
        id = self._id(given["session_id"])
        yield from steps.shutdown(id)
        self._known.discard(id)
        self._births.pop(id, None)
        self.connection.disown(id)
        return {"ok": True, "session_id": given["session_id"] or "default", "state": causes.ENDED}

    def _copy(self, given: dict[str, Any]) -> Plan:
        id = self._id(given["session_id"])
        path = _destination(given["source"], given["dest_rel"])
        info = yield from steps.open(id, self._profile)
        news = ({"new": True} if info.opened else {}) | self._news(id, info)
        try:
            copied = yield from steps.copy_tree(id, given["source"], path)
        except LairError as error:
            return {**self._refusal(error), **news}
        answer: Answer = {"ok": True, "session_id": given["session_id"] or "default", "path": path}
        answer |= {"files": copied.files, "size": copied.size, "skipped": copied.skipped or None}
        return {**_filled(answer), **news}

    def _check(self, given: dict[str, Any]) -> Plan:
        reply = yield from steps.check(None, self._profile, given["code"])
        answer: Answer = {"ok": reply.valid}
        if not reply.valid:
            value = (reply.error or "").removeprefix("SyntaxError: ")
            answer["error"] = {"name": "Rule" if reply.rule else "SyntaxError", "value": value}
            answer.update(_filled({"line": reply.line, "offset": reply.offset, "context": reply.context}))
        return answer

    # ---- answers ----

    def _lost(self, id: str, reply: m.ExecReply | m.SessionInfo) -> Ended | None:
        """If the session of that id is not the one that was used before: how that one has ended."""
        if not reply.birth:  # this daemon does not tell births
            return None
        before, self._births[id] = self._births.get(id, reply.birth), reply.birth
        if reply.ended is not None:
            return ended(reply.ended)
        return None if before == reply.birth else UNKNOWN

    def _news(self, id: str, info: m.SessionInfo) -> Answer:
        """What a model has to know of a session that was opened: what ended before it, and what came back of that."""
        how = self._lost(id, info)
        news: Answer = {}
        if how is not None:
            news["ended"] = how.why
        if info.loaded is not None:
            news |= {"loaded": list(info.loaded), "not_loaded": refused(info.not_loaded)}
        damage = info.saved_damaged and causes.NOTES["damaged"] % info.saved_damaged
        return _filled(
            {**news, "note": _told_of(notes.renewed(how, info.loaded is not None, notes.MODELS), damage)}
        )

    def _answer(self, cell: _Cell, result: Result | None) -> Answer:
        return self._running(cell) if result is None else self._ended(cell, result)

    def _running(self, cell: _Cell) -> Answer:
        """The call waits no longer, the code runs on."""
        known: Answer = {"ok": True, "running": True, "handle": self._handle(cell)}
        elapsed = time.monotonic() - cell.began
        note = f"The code still runs after {elapsed:.0f} s. python_result with this handle waits for the rest."
        if cell.id is not None:
            known["session_id"] = self._told(cell.id)
            note += " python_session_reset ends it."
        return known | _filled(self._printed(cell) | self._shows(cell.seen.displays, {}) | {"note": note})

    def _ended(self, cell: _Cell, result: Result) -> Answer:
        error = result.error
        answer = self._printed(cell) | {
            "text": None if result.text is None else self._cut(result.text),
            "error": None if error is None else self._error(error),
            "cause": result.cause,
            "blocked": [{"event": it.event, "target": it.target, "reason": it.reason} for it in result.caught],
            "artifacts": [
                {"path": _shown_path(it.path), "size": it.size, "change": it.change}
                for it in result.artifacts
                if cell.id is not None  # those of a one-shot went with it
            ],
        }
        answer |= self._shows(result.displays, result.data)
        told = notes.told(result, notes.MODELS)
        told.pop("blocked", None)  # the list has it
        note = _told_of(*told.values())
        undone, brought = _not_undone(result.effects), _brought(result.back)
        ended = None if result.ended is None else result.ended.why
        answer |= {**brought, **undone, "note": " ".join(filter(None, (note, *_pieces(cell)))), "ended": ended}
        if any(it.cut for it in cell.seen.excerpts.values()):
            answer["handle"] = self._handle(cell)
        if result.loaded is not None:
            answer["loaded"], answer["not_loaded"] = result.loaded.names, result.loaded.missing
        known: Answer = {"ok": result.ok, "state": result.state}
        if cell.id is not None:
            known |= {"session_id": self._told(cell.id), "cell": result.cell}
        return {**known, **_filled(answer)}

    def _error(self, error: m.CellError) -> Answer:
        told = {"name": error.name, "value": error.value, "suggestion": error.suggestion or ""}
        return _filled({name: self._cut(text) for name, text in told.items()})

    def _printed(self, cell: _Cell) -> Answer:
        return {stream: str(cell.seen.excerpts[stream]) for stream in STREAMS}

    def _shows(self, displays: list[Display], value: Bundle) -> Answer:
        given, more = displays[:DISPLAYS], len(displays[DISPLAYS:])
        answer: Answer = {"displays": [self._cut(_as_words(it)) for it in given], "displays_left_out": more or None}
        if self._images:
            found = filter(None, map(picture, (value, *(it.data for it in given))))
            answer["images"] = [{"type": kind, "base64": as_text(content)} for kind, content in found]
        return answer

    def _handle(self, cell: _Cell) -> str:
        """For the rest of it. Nothing is remembered here, so the same handle gets the same answer."""
        at = "-".join(str(n) for n in cell.seen.at.values())
        return f"{cell.key}-{at}" + ("" if cell.id is None else f"@{self._told(cell.id)}")

    def _told(self, text: str) -> str:
        """A model knows only the last part of a session's name."""
        return text.replace(f"{self.namespace}:", "")

    def _refusal(self, error: LairError) -> Answer:
        """Tells a model what was not done. If there is no daemon, that is raised, because a model cannot change
        it."""
        if error.code in UNREACHABLE:
            raise error
        return {"ok": False, "error": {"name": error.code, "value": self._told(error.message)}}

    def _cut(self, text: str) -> str:
        return excerpt(text, self._shown)


@dataclass
class _Cell:
    """A cell that a call has waited for: its key, its session, since when, and what has come of it."""

    key: str
    id: str | None
    began: float
    seen: Seen


def _pieces(cell: _Cell) -> list[str]:
    """Of a long output there are pieces to be had."""
    also = {"stdout": "", "stderr": " and of_stderr"}
    return [
        f"{stream} was {cell.seen.at[stream]} bytes; python_result with from_byte{also[stream]} gives any of them."
        for stream in STREAMS
        if cell.seen.excerpts[stream].cut
    ]


def _of_page(page: Page, result: Result | None) -> Answer:
    text, end = page.text(more=result is None)
    piece = {page.stream: text, "next_byte": end if result is None else None}
    return {"ok": True, "from_byte": page.begin, **_filled(piece)}


def _shown_path(path: str) -> str:
    """Names may be any bytes, but JSON is text."""
    return os.fsencode(path).decode(errors="replace")


def _mended(text: str) -> str:
    """The same for a text that has such names in it."""
    return text.encode(errors="surrogateescape").decode(errors="replace")


def _told_of(*words: str | None) -> str:
    return _mended(notes.sentences(filter(None, words)))


def _brought(back: Back) -> Answer:
    told = [{"path": _mended(it.path), "change": it.change} for it in back]
    return _filled({"files_back": told, "files_left_out": back.more or None})


def _not_undone(effects: Effects) -> Answer:
    told = [_mended(str(it)) for it in effects]
    return _filled({"effects": told, "effects_left_out": effects.more or None})


def _as_words(shown: Display) -> str:
    value = shown.data.get("text/plain", "")
    return value if isinstance(value, str) else value.decode(errors="replace")


# The words of `lair tools --instructions`.
_GENERAL = (
    "Runs Python in sessions that remember variables, imports and files between calls. Use python_session_execute"
    " for work in several steps and python_execute_once for a calculation that stands alone. Calls without a "
    "session_id share the session of this conversation, whose name each result tells; name others to keep tasks "
    "apart. The value of a last expression comes back by itself, figures as images; files are written to the "
    "working directory. Read `state` and `note` of a result that failed: they say what became of the session."
    "\n"
)

# Its output is sentences. The last line asks for more memory than there is, so its error says how much that is.
_PROBE = """\
import platform, socket, subprocess
from importlib import metadata, util

def version(name):
    try: return f'{name} {metadata.version(name)}'
    except metadata.PackageNotFoundError: return ''

def refused(attempt):
    try: attempt()
    except PermissionError: return True
    except Exception: pass
    return False

names = '''numpy pandas scipy matplotlib seaborn plotly altair bokeh scikit-learn statsmodels sympy networkx
polars pyarrow duckdb SQLAlchemy openpyxl XlsxWriter requests httpx beautifulsoup4 lxml Pillow opencv-python
torch tensorflow jax transformers nltk spacy xgboost lightgbm numba dask tqdm PyYAML pydantic Jinja2'''.split()
there = ', '.join(filter(None, map(version, names)))
print(f'Python {platform.python_version()} with ' + (there or 'its standard library alone') + '.')
if util.find_spec('IPython'): print('Magics of IPython work, such as %time and %whos.')
if refused(lambda: socket.socket().close()): print('There is no network.')
if refused(lambda: subprocess.run(['true'])): print('No programs can be run: no shell.')
way = __pip__.__doc__
print(way[:1].upper() + way[1:] + '.')
if refused(lambda: open('/etc/shadow')): print('Most files outside the working directory are out of reach.')
bytearray(1 << 60)
"""


def _instructions(found: Result) -> str:
    memory = f"Memory: {found.error.value}.\n" if found.error is not None and found.error.value else ""
    return _GENERAL + found.stdout + memory


def _filled(answer: Answer) -> Answer:
    """Leaves out what is absent or empty, because every field costs tokens."""
    return {name: value for name, value in answer.items() if value is not None and value != "" and value != []}


_PLANS: dict[str, Callable[[Tools, dict[str, Any]], Plan]] = {
    "python_execute_once": Tools._once,
    "python_session_start": Tools._start,
    "python_session_execute": Tools._execute,
    "python_result": Tools._rest,
    "python_session_reset": Tools._reset,
    "python_session_shutdown": Tools._shutdown,
    "copy_to_sandbox": Tools._copy,
    "check_syntax": Tools._check,
}
TOOLS = {name: Tool(name, plan) for name, plan in _PLANS.items()}


def schemas(format: str = "openai") -> list[dict[str, Any]]:
    """All tools in the form of an API: `openai` (Chat Completions), `responses` (OpenAI too) or `anthropic`."""
    form = _FORMATS.get(format)
    if form is None:
        raise ValueError(f"no format {format!r}; there are {', '.join(_FORMATS)}")
    return [form(tool) for tool in TOOLS.values()]


def _function(tool: Tool) -> dict[str, Any]:
    return {"name": tool.name, "description": tool.description, "parameters": tool.schema(), "strict": True}


_FORMATS: dict[str, Callable[[Tool], dict[str, Any]]] = {
    "openai": lambda tool: {"type": "function", "function": _function(tool)},
    "responses": lambda tool: {"type": "function", **_function(tool)},
    "anthropic": lambda tool: {
        "name": tool.name,
        "description": tool.description,
        "input_schema": tool.schema(),
    },
}

_own: list[Tools] = []


def call(name: str, arguments: Mapping[str, Any] | str | None) -> Answer:
    """Do what a model asks, for programs with one agent; see Tools.call."""
    if not _own:
        _own.append(Tools())
    return _own[0].call(name, arguments)

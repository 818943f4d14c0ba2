"""Every door to a session, with the same small surface: what test_scenarios.py says holds at each, unless the door names in
`cannot` why it has no such request, or in `silent` what its results do not tell."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import subprocess
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import lair
from daemon import TROUBLE, Daemon, wait_until
from http_server import Answer, Sandbox, Server, Tenant, events_of, server_of
from kernels import kernel_of
from lair import Connection, LairError, Result
from lair import messages as m
from lair.tools import Tools
from mcp_server import MODERN, McpServer, checked, meta

Answers = dict[str, str]


class Refused(Exception):
    """The request was; @code is None where the door says it in words alone."""

    def __init__(self, code: str | None, words: str) -> None:
        super().__init__(f"{code}: {words}")
        self.code = code
        self.words = words


@dataclass
class Told:
    """A result. What a door does not tell stays None."""

    text: str | None = None
    stdout: str = ""
    error: str | None = None  # its name
    state: str | None = None
    cause: str | None = None
    restored: int | None = None
    all: str = ""  # all that was said beside the output
    mixed: bool = False  # the value stands behind the output


def of_document(it: dict[str, Any]) -> Told:
    """The document of the command line and of HTTP."""
    error = it["error"]["name"] if it["error"] else None
    everything = json.dumps({name: it[name] for name in it if name not in ("stdout", "text")}, ensure_ascii=False)
    return Told(it["text"], it["stdout"], error, it["state"], it["cause"], it["restored"], everything)


CAUSES = {
    "timeout": "the code was stopped after its",
    "exit": "the code exited with status",
    "interrupt": "KeyboardInterrupt",
    "error": "Traceback",
}


def state_in(said: str) -> int | None:
    """The cell after which the state was that a session was rolled back to."""
    back = re.search(r"rolled back to the state (?:before the first cell|after cell (\d+))", said)
    return int(back[1] or 0) if back else None


def of_words(stdout: str, said: str) -> Told:
    """What a person reads."""
    stdout = stdout.encode(errors="surrogateescape").decode(errors="replace")
    said = said.replace("The ", "the ")
    back = state_in(said)
    state = "rolled_back" if back is not None else "reset" if "the session was reset" in said else "kept"
    killed = re.search(r"the interpreter crashed or was killed: ([\w ]+)", said)
    cause = killed[1] if killed else next((it for it, words in CAUSES.items() if words in said), None)
    names = re.findall(r"^([A-Za-z]*(?:Error|Exception|Interrupt|Exit|Lost))\b", said, re.MULTILINE)
    return Told(
        text=stdout.splitlines()[-1] if stdout else None,
        stdout=stdout,
        error=names[-1] if names else None,
        state=state,
        cause=cause,
        restored=back,
        all=said,
        mixed=True,
    )


class Door:
    """One session, behind one door."""

    cannot: ClassVar[dict[str, str]] = {}  # verbs and options

    def __init__(self, daemon: Daemon, session: str, profile: str | None = None) -> None:
        self.daemon = daemon
        self.session = session
        self.profile = profile
        self.held = contextlib.ExitStack()
        self.begin()

    def begin(self) -> None:
        pass

    def run(self, code: str, *, timeout: float | None = None, answers: Answers | None = None) -> Told:
        raise NotImplementedError

    def close(self) -> None:
        self.held.close()

    # ---- by the daemon itself, whatever the door ----

    def is_(self, state: str) -> bool:
        with self.daemon.client() as client:
            return state in [it.state for it in client.list() if it.session == self.session]

    def wait_for_the_end(self) -> None:
        with self.daemon.client() as client:
            wait_until(lambda: self.session not in [it.session for it in client.list()], "the session ends")

    def damage(self) -> None:
        """End it, with a saved state in which a bit is another."""
        saves = self.daemon.directory / "saves"
        before = set(saves.rglob("*"))
        with self.daemon.client() as client:
            client.call(m.Save(id=client.new_id(), session=self.session), m.SaveReply)
            client.shutdown(self.session)
        (state,) = (it for it in set(saves.rglob("[!.]*")) - before if it.is_file())
        content, expires = state.read_bytes(), state.stat().st_mtime
        state.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
        os.utime(state, (expires, expires))

    def while_it_runs(self, act: Callable[[], object], run: Callable[[], Told]) -> Told:
        """What comes of a cell, if that is done until it has ended."""
        told: list[Told] = []
        thread = threading.Thread(target=lambda: told.append(run()))
        thread.start()
        wait_until(lambda: self.is_("busy"), "the cell runs")
        wait_until(lambda: act() or not thread.is_alive(), "it was done")
        thread.join()
        return told[0]


# ---- Python ----


class Python(Door):
    def begin(self) -> None:
        self.connection = self.held.enter_context(Connection(str(self.daemon.socket), start=False))
        self.s: Any = lair.Session(self.session, profile=self.profile, renew=True, connection=self.connection)

    def ask(self, act: Callable[[], Any]) -> Any:
        try:
            return act()
        except LairError as error:
            raise Refused(error.code, error.message) from None

    def run(self, code: str, *, timeout: float | None = None, answers: Answers | None = None) -> Told:
        given = {"input": lambda prompt, password: answers[prompt]} if answers else {}
        it: Result = self.ask(lambda: self.s.run(code, timeout=timeout, **given))
        name = it.error.name if it.error else None
        restored = it.restored if it.state == "rolled_back" else None
        return Told(it.text, it.stdout, name, it.state, it.cause, restored, f"{it.transcript()}{it.notice}")

    def open(self) -> Told:
        return Told(all=str(self.ask(lambda: self.s.open())))

    def interrupted(self, code: str) -> Told:
        return self.while_it_runs(lambda: self.s.interrupt(), lambda: self.run(code))

    def undo(self, n: int = 1) -> int:
        return int(self.ask(lambda: self.s.undo(n)).cell)

    def checkpoint(self, name: str) -> None:
        self.ask(lambda: self.s.checkpoint(name))

    def restore(self, name: str) -> int:
        return int(self.ask(lambda: self.s.restore(name)).cell)

    def branch(self, name: str) -> None:
        self.ask(lambda: self.s.branch(name))

    def reset(self) -> None:
        self.ask(lambda: self.s.reset())

    def end(self) -> None:
        self.ask(lambda: self.s.shutdown())

    def save(self) -> list[str]:
        return list(self.ask(lambda: self.s.save()).names)

    def load(self) -> list[str]:
        return list(self.ask(lambda: self.s.load()).names)

    def put(self, path: str, data: bytes) -> None:
        self.ask(lambda: self.s.put(path, data))

    def get(self, path: str) -> bytes:
        return bytes(self.ask(lambda: self.s.get(path)))

    def files(self, path: str = "") -> dict[str, int]:
        return {it.name: it.size for it in self.ask(lambda: self.s.files(path))}

    def variables(self) -> dict[str, str]:
        return {it.name: it.text for it in self.ask(lambda: self.s.vars())}

    def diff(self) -> dict[str, str]:
        it = self.ask(lambda: self.s.diff())
        return {each.name: each.change for each in it.variables} | {each.path: each.change for each in it.files}

    def valid(self, code: str) -> bool:
        return bool(self.ask(lambda: self.s.check(code)).valid)


class Waiting:
    """A session of lair.aio for who does not."""

    def __init__(self, loop: asyncio.AbstractEventLoop, session: lair.aio.Session) -> None:
        self.loop = loop
        self.session = session

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            act = getattr(self.session, name)(*arguments, **named)
            return asyncio.run_coroutine_threadsafe(act, self.loop).result(60)

        return call


class Asyncio(Python):
    def begin(self) -> None:
        super().begin()
        loop = asyncio.new_event_loop()
        thread = threading.Thread(target=loop.run_forever)
        thread.start()

        def end() -> None:
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            loop.close()

        self.held.callback(end)
        session = lair.aio.Session(self.session, profile=self.profile, renew=True, connection=self.connection)
        self.s = Waiting(loop, session)


# ---- the command line ----


class Json(Door):
    """`lair VERB --json`."""

    def ask(self, *arguments: str, input: str = "") -> dict[str, Any]:
        it: dict[str, Any] = json.loads(self.daemon.lair(*arguments, "--json", input=input).stdout)
        if "code" in (it.get("error") or {}):
            raise Refused(it["error"]["code"], it["error"]["message"])
        return it

    def cell(self, code: str, timeout: float | None) -> list[str]:
        limit = ["-t", str(timeout)] if timeout else []
        profile = ["-p", self.profile] if self.profile else []
        return ["exec", "-s", self.session, *limit, *profile, code]

    def run(self, code: str, *, timeout: float | None = None, answers: Answers | None = None) -> Told:
        lines = "".join(f"{answer}\n" for answer in (answers or {}).values())
        return of_document(self.ask(*self.cell(code, timeout), input=lines))

    def open(self) -> Told:
        return Told(all=json.dumps(self.ask("open", self.session)))

    def interrupted(self, code: str) -> Told:
        def act() -> bool:
            return bool(self.ask("interrupt", self.session)["interrupted"])

        return self.while_it_runs(act, lambda: self.run(code))

    def undo(self, n: int = 1) -> int:
        return int(self.ask("undo", self.session, str(n))["cell"])

    def checkpoint(self, name: str) -> None:
        self.ask("checkpoint", self.session, name)

    def restore(self, name: str) -> int:
        return int(self.ask("restore", self.session, name)["cell"])

    def branch(self, name: str) -> None:
        self.ask("branch", self.session, name)

    def reset(self) -> None:
        self.ask("reset", self.session)

    def end(self) -> None:
        self.ask("close", self.session)

    def save(self) -> list[str]:
        return list(self.ask("save", self.session)["names"])

    def load(self) -> list[str]:
        return list(self.ask("load", self.session)["names"])

    def put(self, path: str, data: bytes) -> None:
        file = self.daemon.directory / "put"
        file.write_bytes(data)
        self.ask("put", self.session, str(file), path)

    def get(self, path: str) -> bytes:
        file = self.daemon.directory / "got"
        self.ask("get", self.session, path, str(file))
        return file.read_bytes()

    def files(self, path: str = "") -> dict[str, int]:
        return {it["name"]: it["size"] for it in self.ask("files", self.session, path)["files"]}

    def variables(self) -> dict[str, str]:
        return {it["name"]: it["text"] for it in self.ask("vars", self.session)["variables"]}

    def diff(self) -> dict[str, str]:
        it = self.ask("diff", self.session)
        return changes(it["variables"]) | changes(it["files"])

    def valid(self, code: str) -> bool:
        return bool(self.ask("check", code)["valid"])


def changes(listed: list[dict[str, str]]) -> dict[str, str]:
    return {it.get("name") or it["path"]: it["change"] for it in listed}


class Words(Json):
    """`lair VERB`, as a person reads it."""

    cannot: ClassVar[dict[str, str]] = dict.fromkeys(
        ("open", "interrupted", "save", "load", "files", "variables", "diff", "valid"),
        "as with --json, but in words",
    )

    def said(self, *arguments: str, input: str = "") -> subprocess.CompletedProcess[str]:
        done = self.daemon.lair(*arguments, input=input)
        if done.returncode == TROUBLE:
            raise Refused(None, done.stderr)
        return done

    def run(self, code: str, *, timeout: float | None = None, answers: Answers | None = None) -> Told:
        lines = "".join(f"{answer}\n" for answer in (answers or {}).values())
        done = self.said(*self.cell(code, timeout), input=lines)
        return of_words(done.stdout, done.stderr)

    def undo(self, n: int = 1) -> int:
        return at_cell(self.said("undo", self.session, str(n)).stdout)

    def restore(self, name: str) -> int:
        return at_cell(self.said("restore", self.session, name).stdout)


def at_cell(said: str) -> int:
    found = re.search("in the state (?:before the first cell|after cell ([0-9]+))", said)
    assert found, said
    return int(found[1] or 0)


class Prompt(Words):
    """`lair repl` at a pipe: a prompt for each cell."""

    cannot: ClassVar[dict[str, str]] = {
        **Words.cannot,
        "asks": "what comes through the pipe is code; test_repl.py has a terminal",
        "lines": "each line from the pipe is a cell; test_repl.py has blocks",
        "refused": "a prompt goes on",
        "put": "is no command of the prompt",
        "get": "is no command of the prompt",
        "reset": "is a command of a prompt that stays",
        "end": "a prompt ends, its session does not",
    }

    def typed(self, text: str, timeout: float | None = None) -> subprocess.CompletedProcess[str]:
        limit = ["-t", str(timeout)] if timeout else []
        profile = ["-p", self.profile] if self.profile else []
        done = self.daemon.lair("repl", "-s", self.session, *limit, *profile, input=f"{text}\n\n")
        if done.stderr.startswith("lair: ") and "is back in" not in done.stdout and text.startswith("%"):
            raise Refused(None, done.stderr)
        return done

    def run(self, code: str, *, timeout: float | None = None, answers: Answers | None = None) -> Told:
        done = self.typed(code, timeout)
        return of_words(done.stdout, done.stderr)

    def undo(self, n: int = 1) -> int:
        return at_cell(self.typed(f"%undo {n}").stdout)

    def checkpoint(self, name: str) -> None:
        self.typed(f"%checkpoint {name}")

    def restore(self, name: str) -> int:
        return at_cell(self.typed(f"%restore {name}").stdout)

    def branch(self, name: str) -> None:
        self.typed(f"%branch {name}")


# ---- HTTP ----


class Http(Door):
    """/v1 of `lair serve`; a cell that asks is a stream of events."""

    def begin(self) -> None:
        self.server: Server = self.held.enter_context(server_of(self.daemon))
        self.path = f"/v1/sessions/{self.session}"
        if self.profile:
            self.ask("PUT", "", {"profile": self.profile})

    def sent(self, method: str, path: str, body: Any = None) -> Answer:
        answer = self.server.ask(method, path, body)
        if answer.status >= 400:
            raise Refused(answer.problem()[1], answer.json()["detail"])
        return answer

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        answer = self.sent(method, f"{self.path}{path}", {} if method == "POST" and body is None else body)
        return answer.json() if answer.body else None

    def run(self, code: str, *, timeout: float | None = None, answers: Answers | None = None) -> Told:
        body = {"code": code, **({"timeout": timeout} if timeout else {})}
        if answers is None:
            return of_document(self.ask("POST", "/exec", body))
        return self.streamed({**body, "input": True}, answers)

    def streamed(self, body: dict[str, Any], answers: Answers) -> Told:
        written = {"stdout": "", "stderr": ""}
        for event, data, _ in events_of(self.server, "POST", f"{self.path}/exec", body):
            if event in written:
                written[event] += data["text"]
            elif event == "ask":
                self.ask("POST", "/input", {"text": answers[data["prompt"]]})
            elif event == "result":
                return of_document({**data, **written})
        raise AssertionError("a stream without a result")

    def open(self) -> Told:
        return Told(all=json.dumps(self.ask("PUT", "", {})))

    def interrupted(self, code: str) -> Told:
        return self.while_it_runs(lambda: self.ask("POST", "/interrupt")["interrupted"], lambda: self.run(code))

    def undo(self, n: int = 1) -> int:
        return int(self.ask("POST", "/undo", {"n": n})["cell"])

    def checkpoint(self, name: str) -> None:
        self.ask("POST", "/checkpoints", {"name": name})

    def restore(self, name: str) -> int:
        return int(self.ask("POST", "/restore", {"name": name})["cell"])

    def branch(self, name: str) -> None:
        self.ask("POST", "/branch", {"branch": name})

    def reset(self) -> None:
        self.ask("POST", "/reset")

    def end(self) -> None:
        self.ask("DELETE", "")

    def save(self) -> list[str]:
        return list(self.ask("POST", "/save")["names"])

    def load(self) -> list[str]:
        return list(self.ask("POST", "/load")["names"])

    def put(self, path: str, data: bytes) -> None:
        self.ask("PUT", f"/file?path={path}", data)

    def get(self, path: str) -> bytes:
        return self.sent("GET", f"{self.path}/file?path={path}").body

    def files(self, path: str = "") -> dict[str, int]:
        return {it["name"]: it["size"] for it in self.ask("GET", f"/files?path={path}")["files"]}

    def variables(self) -> dict[str, str]:
        return {it["name"]: it["text"] for it in self.ask("GET", "/vars")["variables"]}

    def diff(self) -> dict[str, str]:
        it = self.ask("GET", "/diff")
        return changes(it["variables"]) | changes(it["files"])

    def valid(self, code: str) -> bool:
        return bool(self.sent("POST", "/v1/check", {"code": code}).json()["valid"])


class Events(Http):
    """Each cell as a stream of events."""

    SAME = """open undo checkpoint restore branch reset end save load put get files variables diff valid interrupted
        answers refused"""
    cannot: ClassVar[dict[str, str]] = dict.fromkeys(SAME.split(), "the request of the door http")

    def run(self, code: str, *, timeout: float | None = None, answers: Answers | None = None) -> Told:
        return self.streamed({"code": code, **({"timeout": timeout} if timeout else {})}, {})


NO_TOOL = "a model has no tool for it"


class Mcp(Door):
    """`lair mcp`, with all tools."""

    cannot: ClassVar[dict[str, str]] = {
        **dict.fromkeys(("checkpoint", "restore", "save", "load", "put"), NO_TOOL),
        "get": "is a resource, of which test_mcp_tools.py asks",
        "answers": "a model's code asks nobody",
        "interrupted": "a call that is cancelled has no answer; test_mcp.py looks at the session",
    }

    def begin(self) -> None:
        profile = ["--profile", self.profile] if self.profile else []
        self.server = self.held.enter_context(McpServer(self.daemon, "--tools", "full", *profile))
        self.given = self.session

    def call(self, name: str, **arguments: Any) -> dict[str, Any]:
        return checked(self.server.call_result(name, **arguments))

    def ask(self, name: str, **arguments: Any) -> dict[str, Any]:
        it = self.call(f"python_session_{name}", session_id=self.given, **arguments)
        if not it["ok"] and "cell" not in it:
            raise Refused(it["error"]["name"], it["error"]["value"])
        return it

    def run(self, code: str, *, timeout: float | None = None, answers: Answers | None = None) -> Told:
        limit = {"timeout_sec": timeout} if timeout else {}
        it = self.ask("execute", code=code, **limit)
        error = it.get("error", {}).get("name")
        said = json.dumps({name: it[name] for name in it if name not in ("stdout", "text")}, ensure_ascii=False)
        restored = it.get("restored", state_in(said))
        return Told(it.get("text"), it.get("stdout", ""), error, it["state"], it.get("cause"), restored, said)

    def open(self) -> Told:
        return Told(all=json.dumps(self.ask("start")))

    def undo(self, n: int = 1) -> int:
        return int(self.ask("undo", steps=n)["at_cell"])

    def branch(self, name: str) -> None:
        self.ask("branch", new_session_id=name)

    def reset(self) -> None:
        self.ask("reset")

    def end(self) -> None:
        self.ask("shutdown")

    def files(self, path: str = "") -> dict[str, int]:
        given = {"path_rel": path} if path else {}
        return {it["name"]: it.get("size", 0) for it in self.ask("files", **given)["entries"]}

    def variables(self) -> dict[str, str]:
        return {it["name"]: it["text"] for it in self.ask("vars")["variables"]}

    def diff(self) -> dict[str, str]:
        it = self.ask("diff")
        return changes(it.get("variable_changes", [])) | changes(it.get("file_changes", []))

    def valid(self, code: str) -> bool:
        return bool(self.call("check_syntax", code=code)["ok"])


# Where there is the smaller set of tools.
FEW: dict[str, str] = {**Mcp.cannot, **dict.fromkeys(("undo", "branch", "files", "variables", "diff"), NO_TOOL)}


class McpHttp(Mcp):
    """/mcp of `lair serve`, in the era without conversations."""

    cannot: ClassVar[dict[str, str]] = {**FEW, "profile": "it is that of `lair serve`"}

    def begin(self) -> None:
        self.http: Server = self.held.enter_context(server_of(self.daemon))
        self.given = self.session

    def call(self, name: str, **arguments: Any) -> dict[str, Any]:
        params = {"name": name, "arguments": arguments, "_meta": meta()}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        headers = {"MCP-Protocol-Version": MODERN, "Mcp-Method": "tools/call", "Mcp-Name": name}
        answer = self.http.ask("POST", "/mcp", message, {"Accept": "application/json", **headers})
        assert answer.status == 200, answer.body
        return checked(answer.json()["result"])


class ModelTools(Mcp):
    """lair.tools."""

    cannot: ClassVar[dict[str, str]] = FEW

    def begin(self) -> None:
        connection = self.held.enter_context(Connection(str(self.daemon.socket), start=False))
        self.tools = Tools(connection=connection, namespace="door", profile=self.profile)
        self.given, self.session = self.session, f"door:{self.session}"

    def call(self, name: str, **arguments: Any) -> dict[str, Any]:
        return self.tools.call(name, arguments)


class E2b(Door):
    """What E2B's SDKs send."""

    cannot: ClassVar[dict[str, str]] = {
        **dict.fromkeys(
            (
                "open",
                "undo",
                "checkpoint",
                "restore",
                "branch",
                "reset",
                "save",
                "load",
                "variables",
                "diff",
                "valid",
            ),
            "E2B has no such request",
        ),
        "damage": "a sandbox that has ended is not made anew",
        "wait_for_the_end": "a sandbox that has ended is not made anew",
        "timeout": "is its client's",
        "answers": "E2B's code asks nobody",
        "interrupted": "the client goes away; test_http_e2b.py",
    }

    def begin(self) -> None:
        self.server = self.held.enter_context(server_of(self.daemon))
        tenant = Tenant(self.server, "any")
        self.box: Sandbox = tenant.create(**({"templateID": self.profile} if self.profile else {}))
        self.held.callback(lambda: tenant.ask("DELETE", f"/sandboxes/{self.box.id}"))
        self.session = self.box.id
        self.tenant = tenant

    def run(self, code: str, *, timeout: float | None = None, answers: Answers | None = None) -> Told:
        lines = self.box.run(code)
        said: dict[str, str] = {"stdout": "", "stderr": "", "error": ""}
        for it in lines:
            if it["type"] in said:
                said[it["type"]] += it["traceback"] if it["type"] == "error" else it["text"]
        told = of_words(said["stdout"], said["stderr"] + said["error"])
        values = [it["text"] for it in lines if it["type"] == "result"]
        told.text = values[-1] if values else None
        told.error = next((it["name"] for it in lines if it["type"] == "error"), None)
        told.mixed = False
        return told

    def end(self) -> None:
        answer = self.tenant.ask("DELETE", f"/sandboxes/{self.box.id}")
        if answer.status != 204:
            raise Refused(None, answer.json()["message"])

    def put(self, path: str, data: bytes) -> None:
        assert self.box.upload(path, data).status == 200

    def get(self, path: str) -> bytes:
        return self.box.read(path)

    def files(self, path: str = "") -> dict[str, int]:
        answer = self.box.ask("POST", "/filesystem.Filesystem/ListDir", {"path": path})
        return {it["name"]: int(it.get("size", 0)) for it in answer.json()["entries"]}


class Jupyter(Door):
    """`lair jupyter run`."""

    cannot: ClassVar[dict[str, str]] = {
        **dict.fromkeys(("put", "get", "files"), "Jupyter reads and writes files itself"),
        **dict.fromkeys(("open", "save", "load", "variables", "diff", "valid"), "a notebook has no such command"),
        "reset": "restarts the kernel; test_jupyter.py",
        "end": "ends the kernel; test_jupyter.py",
        "timeout": "is the kernel's",
    }

    def begin(self) -> None:
        profile = ["--profile", self.profile] if self.profile else []
        kernel = self.held.enter_context(kernel_of(self.daemon, "--session", self.session, *profile))
        self.client = kernel.client()

    def run(self, code: str, *, timeout: float | None = None, answers: Answers | None = None) -> Told:
        name = self.client.start(code, allow_stdin=bool(answers))
        for _ in answers or {}:
            asked = self.client.receive("stdin")
            value = (answers or {})[asked["content"]["prompt"]]
            self.client.send("input_reply", {"value": value}, "stdin", parent=asked["header"])
        return self.told(name)

    def told(self, name: str) -> Told:
        reply = self.client.reply(name)["content"]
        shown = self.client.until_idle(name)
        out = {"stdout": "", "stderr": ""}
        for it in shown:
            if it["type"] == "stream":
                out[it["content"]["name"]] += it["content"]["text"]
        traceback = re.sub("\x1b\\[[0-9;]*m", "", "\n".join(reply.get("traceback", [])))
        told = of_words(out["stdout"], f"{out['stderr']}\n{traceback}")
        told.text = next(
            (it["content"]["data"]["text/plain"] for it in shown if it["type"] == "execute_result"), None
        )
        told.error, told.mixed = reply.get("ename"), False
        return told

    def interrupted(self, code: str) -> Told:
        name = self.client.start(code)
        wait_until(lambda: self.is_("busy"), "the cell runs")
        self.client.send("interrupt_request", {}, "control")
        return self.told(name)

    def typed(self, command: str) -> str:
        told = self.run(command)
        if told.error:
            raise Refused(None, told.all)
        return told.stdout + told.all

    def undo(self, n: int = 1) -> int:
        return at_cell(self.typed(f"%undo {n}"))

    def checkpoint(self, name: str) -> None:
        self.typed(f"%checkpoint {name}")

    def restore(self, name: str) -> int:
        return at_cell(self.typed(f"%restore {name}"))

    def branch(self, name: str) -> None:
        self.typed(f"%branch {name}")


DOORS: dict[str, type[Door]] = {
    "python": Python,
    "asyncio": Asyncio,
    "json": Json,
    "words": Words,
    "prompt": Prompt,
    "http": Http,
    "events": Events,
    "mcp": Mcp,
    "mcp-http": McpHttp,
    "tools": ModelTools,
    "e2b": E2b,
    "jupyter": Jupyter,
}

"""smolagents: `CodeAgent(model=..., tools=..., executor=LairExecutor())`.

The agent's tools, and its managed agents, run in this program, as functions that its code calls. With `ship=True` they are
sent as source and run in the session, so they may do what the session may, and no more. Packages are those of its profile:
none are installed.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from smolagents.local_python_executor import CodeOutput
from smolagents.monitoring import AgentLogger, LogLevel
from smolagents.remote_executors import RemotePythonExecutor
from smolagents.utils import AgentError

from .. import schema as schemas
from ..functions import Function
from ..session import Session

# The text of an error is cut, and an answer may be long. So the answer comes by a file.
_ANSWER = ".final-answer"
_KEEP_ANSWER = f"""
def _keep(forward):
    import os
    path = os.path.join(os.path.expanduser("~"), {_ANSWER!r})
    def call(*args, **arguments):
        try:
            return forward(*args, **arguments)
        except BaseException as error:
            if type(error).__name__ == {RemotePythonExecutor.FINAL_ANSWER_EXCEPTION!r}:
                with open(path, "w") as file:
                    file.write(error.value)
            raise
    return call
final_answer.forward = _keep(final_answer.forward)
del _keep
"""


def _line(notice: str) -> str:
    return f"{notice}\n" if notice else ""


class LairExecutor(RemotePythonExecutor):
    def __init__(self, session: Session | None = None, *, timeout: float | None = None, ship: bool = False) -> None:
        super().__init__([], AgentLogger(level=LogLevel.OFF))
        self.session = session or Session(renew=True)
        self.timeout = timeout
        self.ship = ship
        self._functions: list[Function] = []

    def send_tools(self, tools: dict[str, Any]) -> None:
        sent = {name: it for name, it in tools.items() if self.ship or name == "final_answer"}
        self._functions = [Function(it, name=name) for name, it in tools.items() if name not in sent]
        super().send_tools(sent)
        if "final_answer" in sent:
            self.run_code_raise_errors(_KEEP_ANSWER)

    def run_code_raise_errors(self, code: str) -> CodeOutput:
        result = self.session.run(code, timeout=self.timeout, functions=self._functions, globals=True)
        logs = _line(result.notice) + result.stdout + result.stderr
        if result.error is not None and result.error.name == self.FINAL_ANSWER_EXCEPTION:
            answer = self._deserialize_final_answer(self.session.get(_ANSWER).decode())
            return CodeOutput(output=answer, logs=_line(result.notice) + result.stdout, is_final_answer=True)
        if not result.ok:
            raise AgentError(f"{logs}\n{result.summary()}", self.logger)
        return CodeOutput(output=result.text, logs=logs, is_final_answer=False)

    def install_packages(self, additional_imports: list[str]) -> list[Any]:
        return additional_imports

    def cleanup(self) -> None:
        self.session.close()


def _input(given: Mapping[str, Any]) -> dict[str, Any]:
    """In smolagents' words a type may be `any`, or one that JSON does not have."""
    kinds = given["type"] if isinstance(given["type"], list) else [given["type"]]
    made = {key: it for key, it in given.items() if key not in ("type", "nullable")}
    if set(kinds) <= {"string", "boolean", "integer", "number", "array", "object", "null"}:
        kinds = [*kinds, "null"] if given.get("nullable") and "null" not in kinds else kinds
        made["type"] = kinds[0] if len(kinds) == 1 else kinds
    return made


def told(tool: Any, context: Any) -> Mapping[str, Any]:
    """How a tool of smolagents is a function of cells; see lair.Function."""
    parameters = inspect.signature(getattr(tool, "forward", tool)).parameters
    properties = {name: _input(it) for name, it in tool.inputs.items()}
    optional = {name for name, it in tool.inputs.items() if it.get("nullable")}
    for name, parameter in parameters.items():
        if name in properties and parameter.default is not parameter.empty:
            optional.add(name)
            if schemas.is_json(parameter.default):
                properties[name]["default"] = parameter.default
    return {
        "run": tool.__call__,
        "name": tool.name,
        "doc": tool.description,
        "schema": {
            "type": "object",
            "properties": properties,
            "required": [name for name in properties if name not in optional],
        },
        "returns": getattr(tool, "output_schema", None) or _input({"type": tool.output_type}),
    }

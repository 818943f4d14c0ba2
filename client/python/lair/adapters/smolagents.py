"""smolagents: `CodeAgent(model=..., tools=..., executor=LairExecutor())`.

The agent's tools are sent as source and run in the session, so they may do what the session may. Packages are those of
its profile: none are installed.
"""

from __future__ import annotations

from typing import Any

from smolagents.local_python_executor import CodeOutput
from smolagents.monitoring import AgentLogger, LogLevel
from smolagents.remote_executors import RemotePythonExecutor
from smolagents.utils import AgentError

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
    def __init__(self, session: Session | None = None, *, timeout: float | None = None) -> None:
        super().__init__([], AgentLogger(level=LogLevel.OFF))
        self.session = session or Session(renew=True)
        self.timeout = timeout

    def send_tools(self, tools: dict[str, Any]) -> None:
        super().send_tools(tools)
        if "final_answer" in tools:
            self.run_code_raise_errors(_KEEP_ANSWER)

    def run_code_raise_errors(self, code: str) -> CodeOutput:
        result = self.session.run(code, timeout=self.timeout)
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

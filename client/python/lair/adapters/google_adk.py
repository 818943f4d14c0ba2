"""Google's Agent Development Kit: `LlmAgent(code_executor=LairCodeExecutor())`."""

from __future__ import annotations

import base64

from google.adk.agents.invocation_context import InvocationContext
from google.adk.code_executors import BaseCodeExecutor
from google.adk.code_executors.code_execution_utils import CodeExecutionInput, CodeExecutionResult
from pydantic import PrivateAttr

from ..session import Session


class LairCodeExecutor(BaseCodeExecutor):
    """Each conversation has a session, which remembers what its code has done."""

    stateful: bool = True
    profile: str | None = None
    _sessions: dict[str, Session] = PrivateAttr(default_factory=dict)

    def execute_code(
        self, invocation_context: InvocationContext, code_execution_input: CodeExecutionInput
    ) -> CodeExecutionResult:
        session = self._session(code_execution_input.execution_id or invocation_context.session.id)
        for file in code_execution_input.input_files:
            content = file.content if isinstance(file.content, bytes) else base64.b64decode(file.content)
            session.put(file.name, content)
        result = session.run(code_execution_input.code, timeout=self.timeout_seconds)
        text = "" if result.text is None else f"{result.text}\n"
        stderr = f"{result.notice}\n{result.stderr}" if result.notice else result.stderr
        stderr += "" if result.ok else result.summary()
        return CodeExecutionResult(stdout=result.stdout + text, stderr=stderr, exit_code=result.returncode)

    def _session(self, conversation: str) -> Session:
        if conversation not in self._sessions:
            self._sessions[conversation] = Session(profile=self.profile, renew=True)
        self._sessions[conversation].open()  # it may have ended, and files can go only into a session that is there
        return self._sessions[conversation]

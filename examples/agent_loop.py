"""An agent in sixty lines: a model that calls tools, and Lair that runs them.

The model here is a list, so that this runs anywhere; the loop is the same with a real one. What it passes on is what the
Chat Completions API of OpenAI, and whatever imitates it, takes and returns.
"""

from __future__ import annotations

import json
from typing import Any

from lair.tools import Tools, schemas

Message = dict[str, Any]


def calls(code: str) -> Message:
    arguments = {"code": code, "session_id": None, "timeout_sec": None, "cwd_rel": None}
    function = {"name": "python_session_execute", "arguments": json.dumps(arguments)}
    return {"role": "assistant", "tool_calls": [{"id": str(hash(code)), "type": "function", "function": function}]}


class ScriptedModel:
    """Says one thing after the other, and looks at what came of it only in the end."""

    def __init__(self) -> None:
        self.script = [
            calls("primes = [n for n in range(2, 100) if all(n % d for d in range(2, n))]\nlen(primes)"),
            calls("sum(prime for prime in primes if prime % 10 == 7"),  # a bracket is missing
            calls("sum(prime for prime in primes if prime % 10 == 7)"),  # the session still knows them
        ]

    def complete(self, messages: list[Message], tools: list[dict[str, Any]]) -> Message:
        if self.script:
            return self.script.pop(0)
        answer = json.loads(messages[-1]["content"])
        return {"role": "assistant", "content": f"Those that end in 7 add up to {answer['text']}."}


def run(model: ScriptedModel, question: str) -> str:
    messages: list[Message] = [{"role": "user", "content": question}]
    with Tools() as tools:  # its sessions end with the block
        for _ in range(20):
            message = model.complete(messages, schemas())
            messages.append(message)
            if not message.get("tool_calls"):
                return str(message["content"])
            for call in message["tool_calls"]:
                function = call["function"]
                answer = tools.call(function["name"], function["arguments"])
                print(
                    f">>> {json.loads(function['arguments'])['code']}\n{answer.get('text') or answer.get('stderr', '')}"
                )
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": json.dumps(answer)})
    return "I have given up."


if __name__ == "__main__":
    print(run(ScriptedModel(), "What do the primes below 100 that end in 7 add up to?"))

"""smolagents: its CodeAgent, with a model that reads from a list."""

from smolagents import CodeAgent, Tool
from smolagents.models import ChatMessage, MessageRole, Model
from smolagents.monitoring import LogLevel
from smolagents.utils import AgentError

import lair
from lair.adapters.smolagents import LairExecutor


class Scripted(Model):
    def __init__(self, *cells: str) -> None:
        super().__init__()
        self.cells = list(cells)
        self.heard = ""

    def generate(self, messages, **more):  # type: ignore[no-untyped-def]
        self.heard = str(messages[-1].content)
        return ChatMessage(MessageRole.ASSISTANT, f"Thought: go on.\n<code>\n{self.cells.pop(0)}\n</code>")


class Double(Tool):
    name = "double"
    description = "Twice a number."
    inputs = {"n": {"type": "integer", "description": "the number"}}
    output_type = "integer"

    def forward(self, n: int) -> int:
        return 2 * n


with lair.Session() as session:
    executor = LairExecutor(session)
    model = Scripted(
        "x = [start]\nx", "print('to stdout'); 1 / 0", "x.append(double(21))", "final_answer({'x': x})"
    )
    agent = CodeAgent(model=model, tools=[Double()], executor=executor, verbosity_level=LogLevel.OFF)
    answer = agent.run("go", additional_args={"start": 7})
    assert answer == {"x": [7, 42]}, answer
    failed = [step.error for step in agent.memory.steps if getattr(step, "error", None)]
    assert len(failed) == 1
    assert "ZeroDivisionError" in str(failed[0])
    assert session.run("x").text == "[7, 42]"
    long = CodeAgent(model=Scripted("final_answer('x' * 100_000)"), tools=[], executor=executor)
    assert long.run("go") == "x" * 100_000
    assert executor("x").output == "[7, 42]"
    try:
        executor("import os; os._exit(3)")
    except AgentError as error:
        assert "after cell" in str(error)
    else:
        raise AssertionError("no error")

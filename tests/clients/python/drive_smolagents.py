"""smolagents: its CodeAgent, with a model that reads from a list."""

import os

from smolagents import CodeAgent, Tool, tool
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


class Here(Tool):
    name = "here"
    description = "Where it runs."
    inputs = {"what": {"type": "any", "description": "anything", "nullable": True}}
    output_type = "object"

    def __init__(self, store: dict[str, int]) -> None:
        super().__init__()
        self.store = store  # so its source alone would not do

    def forward(self, what: object = None) -> dict[str, object]:
        self.store["calls"] = self.store.get("calls", 0) + 1
        return {"process": os.getpid(), "what": what}


def refuses(n: int) -> int:
    """Refuses.

    Args:
        n: a number
    """
    raise LookupError(f"no {n}")


def last_error(agent: CodeAgent) -> str:
    return str([step.error for step in agent.memory.steps if getattr(step, "error", None)][-1])


def agent_of(executor: LairExecutor, cells: Scripted, *tools: Tool, **more: object) -> CodeAgent:
    return CodeAgent(model=cells, tools=list(tools), executor=executor, verbosity_level=LogLevel.OFF, **more)


CELLS = ("x = [start]\nx", "print('to stdout'); 1 / 0", "x.append(double(21))", "final_answer({'x': x})")
for ship in (False, True):
    with lair.Session() as session:
        executor = LairExecutor(session, ship=ship)
        agent = agent_of(executor, Scripted(*CELLS), Double())
        answer = agent.run("go", additional_args={"start": 7})
        assert answer == {"x": [7, 42]}, answer
        assert "ZeroDivisionError" in last_error(agent)
        assert session.run("x").text == "[7, 42]"
        assert agent_of(executor, Scripted("final_answer('x' * 100_000)")).run("go") == "x" * 100_000
        assert executor("x").output == "[7, 42]"
        try:
            executor("import os; os._exit(3)")
        except AgentError as error:
            assert "after cell" in str(error)
        else:
            raise AssertionError("no error")

# Tools that run here, in this program, with what they have here.
with lair.Session() as session:
    executor = LairExecutor(session)
    store: dict[str, int] = {}
    cells = Scripted(
        "r = [here(n) for n in range(40)] + [here()]",
        "refuses(3)",
        "double('a')",
        "final_answer([r[1]['what'], r[0]['process'], len(r)])",
    )
    agent = agent_of(executor, cells, Here(store), tool(refuses), Double())
    answer = agent.run("go")
    assert answer == [1, os.getpid(), 41], answer
    assert store["calls"] == 41
    errors = str([step.error for step in agent.memory.steps if getattr(step, "error", None)])
    assert "LookupError: no 3" in errors and "double(): n is int, not str" in errors, errors
    again = agent_of(executor, Scripted("double(1)", "final_answer(refuses.__name__)"), Here(store))
    assert again.run("go") == "refuses"
    assert "does not offer it" in last_error(again)

    helper = agent_of(
        LairExecutor(), Scripted("final_answer('42 of them')"), name="helper", description="It counts."
    )
    boss = agent_of(executor, Scripted("a = helper(task='count')", "final_answer(a)"), managed_agents=[helper])
    assert "42 of them" in str(boss.run("go"))

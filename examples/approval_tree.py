"""A tree of approvals: a cell asks a person what to do next, and at each question a branch of it goes on with each answer.

    python3 examples/approval_tree.py

A branch at a call is a copy of the cell in the middle of its work: with its variables, loops and half-used generators. So
what came before a question is done once, however many answers are tried.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import lair

CODE = """
stock = sum(n * n for n in range(200_000)) % 1000      # what takes long, and is done once
prices = iter([3, 4, 5])                                # half used when the cell asks for the second time
bill = []
for day in ("Monday", "Tuesday"):
    price = next(prices)
    amount = tools.buy(day=day, price=price)
    bill.append(amount * price)
stock, bill, sum(bill)
"""
ANSWERS = [0, 10]


def buy(day: str, price: int) -> int:
    "How many are bought that day, as somebody decides."
    raise NotImplementedError  # it is asked for, and answered by a person: here, with each answer in turn


def question(session: lair.Session, key: str) -> Any:
    """The call that the cell waits for; None when it has ended."""
    while not (calls := session.calls()):
        if any(it.key == key and it.state == "finished" for it in session.results()):
            return None
        time.sleep(0.01)
    return calls[0]


def outcomes(
    stack: ExitStack, session: lair.Session, key: str, answers: list[int]
) -> Iterator[tuple[list[int], str]]:
    call = question(session, key)
    if call is None:
        yield answers, session.attach(key).text or "nothing"
        return
    for answer in ANSWERS[1:]:
        branch = stack.enter_context(session.branch(at_call=True))
        branch.answer_call(call.number, answer)
        yield from outcomes(stack, branch, branch.key, [*answers, answer])
    session.answer_call(call.number, ANSWERS[0])
    yield from outcomes(stack, session, key, [*answers, ANSWERS[0]])


def main() -> None:
    with ExitStack() as stack:
        session = stack.enter_context(lair.Session())
        key = session.detach(CODE, functions=[lair.Function(buy, ask=True)])
        for answers, outcome in outcomes(stack, session, key, []):
            print(answers, "->", outcome)


if __name__ == "__main__":
    main()

"""Answers to the questions of a cell: each is for one question, and no other gets it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from daemon import Daemon
from lair import Client, Connection, LairError, Session
from lair import messages as m
from terminal import Terminal

TWO = "[input('a? '), input('b? ')]"


def ask(client: Client, session: str, code: str = TWO) -> int:
    """The number of an exec whose first question has come."""
    cell = client.send(m.Exec(id=client.new_id(), session=session, code=code, input=True, key="k"))
    event = client.receive(cell, m.ExecReply)
    assert isinstance(event, m.AskEvent) and event.number == 1
    return cell


def second(client: Client, cell: int) -> None:
    event = client.receive(cell, m.ExecReply)
    assert isinstance(event, m.AskEvent) and (event.prompt, event.number) == ("b? ", 2)


def test_an_answer_is_for_the_question_that_it_names(client: Client, session: str) -> None:
    cell = ask(client, session)
    with pytest.raises(
        LairError, match="gone: this answers question 2 of the cell, which it has not asked; it waits"
    ):
        client.input(cell, "early", number=2)
    client.input(cell, "1", number=1)
    second(client, cell)
    with pytest.raises(
        LairError, match="question 1 of the cell, which has been answered; it waits for .* question 2"
    ):
        client.input(cell, "late", number=1)
    client.input(cell, "2", number=2)
    assert client.finish(cell, m.ExecReply).text == "['1', '2']"


def test_who_names_no_question_answers_the_open_one(client: Client, session: str) -> None:
    """As clients of an earlier build do."""
    cell = ask(client, session)
    client.input(cell, "1")
    second(client, cell)
    client.input(cell, "2")
    assert client.finish(cell, m.ExecReply).text == "['1', '2']"


def test_an_answer_that_is_sent_again_is_not_one_to_the_next_question(client: Client, session: str) -> None:
    cell = ask(client, session)
    for _ in range(2):
        client.call(m.Input(id=client.new_id(), exec=cell, text="1", number=1, key="answer"), m.Reply)
    second(client, cell)
    client.call(m.Input(id=client.new_id(), exec=cell, text="1", number=1, key="answer"), m.Reply)
    client.input(cell, "2", number=2)
    assert client.finish(cell, m.ExecReply).text == "['1', '2']"


def test_of_two_who_answer_one_is_asked_again(daemon: Daemon, client: Client, session: str) -> None:
    """In Python: whoever is later is asked the next question, and its first answer goes nowhere."""
    asked: list[str] = []
    key = "two"

    def answer(prompt: str, password: bool) -> str:
        asked.append(prompt)
        if prompt == "a? ":
            watcher = client.send(m.Attach(id=client.new_id(), session=session, key=key, input=True))
            event = client.receive(watcher, m.ExecReply)
            assert isinstance(event, m.AskEvent)
            client.input(watcher, "theirs", number=event.number)
        return f"mine: {prompt}"

    with Connection(str(daemon.socket), start=False) as connection:
        s = Session(session, connection=connection)
        assert s.run(TWO, input=answer, key=key).text == "['theirs', 'mine: b? ']"
    assert asked == ["a? ", "b? "]


def test_a_prompt_says_that_somebody_else_has_answered(
    terminal: Callable[..., Terminal], client: Client, session: str
) -> None:
    """What was typed for the one question is no answer to the next."""
    it = terminal("exec", "-s", session, "--key", "shared", TWO)
    it.expect("a? ")
    it.type("half a li")
    watcher = client.send(m.Attach(id=client.new_id(), session=session, key="shared", input=True))
    event = client.receive(watcher, m.ExecReply)
    assert isinstance(event, m.AskEvent)
    client.input(watcher, "theirs", number=event.number)
    it.expect("somebody else has answered the question before")
    it.expect("b? ")
    it.type("mine\r")
    it.expect("['theirs', 'mine']")
    it.wait()

"""What calls have done is told when the session goes back, and is not repeated in silence."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

import lair
from daemon import Daemon, wait_until
from lair import Client, Connection, Session
from lair import messages as m
from test_router_death import kill_router

SETTINGS = {
    "profile default": {"checkpoint": "cell", "grace": "100ms"},
    "profile off": {"checkpoint": "off", "level": "", "spares": "0"},
}

done: list[tuple[str, int]] = []
stuck = threading.Event()


def pay(to: str, amount: int) -> str:
    done.append((to, amount))
    return f"paid {to}"


def refuse(to: str) -> None:
    done.append((to, 0))
    raise ValueError("no such account")


def hang(to: str) -> None:
    done.append((to, -1))
    lair.current().cancelled.wait(20)


def look(words: str) -> int:
    return len(words)


def order(items: dict[str, Any]) -> int:
    done.append(("order", len(items)))
    return len(items)


FUNCTIONS = [
    lair.Function(pay, effect=True),
    lair.Function(refuse, effect=True),
    lair.Function(hang, effect=True),
    lair.Function(order, effect=True),
    look,
]
CAUGHT = "try:\n    {}\n    print('done')\nexcept tools.RepeatError as error:\n    print(error)"


@pytest.fixture
def s(connection: Connection) -> Iterator[Session]:
    done.clear()
    with Session(connection=connection, functions=FUNCTIONS) as it:
        yield it


def told(effects: lair.Effects) -> list[str]:
    return [str(it) for it in effects]


def tried(s: Session, call: str, **options: Any) -> str:
    result = s.run(CAUGHT.format(call), **options)
    assert result.ok, result.error
    return result.stdout.strip()


# ---- what is told ----


def test_undo_tells_what_was_called(s: Session) -> None:
    s.run("x = 1")
    s.run("tools.pay('bob', amount=5)")
    s.run("tools.look('a\\nb')")
    assert told(s.undo(2).effects) == [
        'called pay(to="bob", amount=5) in cell 2',
        'called look(words="a\\nb") in cell 3',
    ]


def test_calls_of_effect_functions_come_first_and_repetitions_are_folded(s: Session) -> None:
    s.run("for n in range(70):\n    tools.look(str(n))")
    s.run("for n in range(3):\n    tools.pay('bob', 5)")
    effects = s.undo(2).effects
    assert told(effects)[:2] == ['called pay(to="bob", amount=5) in cell 2', 'called look(words="0") in cell 1']
    assert len(effects) == 64 and effects.more == 7


def test_a_killed_cell_tells_what_it_called_and_what_was_out(s: Session) -> None:
    s.run("x = 1")
    result = s.run(
        "import threading, os\n"
        "tools.pay('bob', 1)\n"
        "threading.Thread(target=tools.hang, args=('eve',), daemon=True).start()\n"
        "try:\n    tools.refuse('al')\nexcept ValueError:\n    pass\n"
        "os.kill(os.getpid(), 9)"
    )
    assert result.state == "rolled_back"
    assert told(result.effects) == [
        'called pay(to="bob", amount=1) in cell 2',
        'called refuse(to="al"): ValueError in cell 2',
        'may have called hang(to="eve") in cell 2',
    ]


def test_an_interrupted_call_may_have_been_made(s: Session) -> None:
    s.run("x = 1")
    result = s.run(
        "import asyncio\ntry:\n    await asyncio.wait_for(tools.hang.aio('eve'), 0.2)\nexcept TimeoutError:\n    x = 2"
    )
    assert result.state == "kept" and not result.effects
    assert told(s.undo().effects) == ['may have called hang(to="eve") in cell 2']


def test_restore_reset_and_branch_tell(s: Session) -> None:
    s.run("x = 1")
    s.checkpoint("here")
    s.run("tools.pay('bob', 5)")
    wanted = ['called pay(to="bob", amount=5) in cell 2']
    with s.branch(checkpoint="here") as branch:
        assert told(branch.effects) == wanted
    assert told(s.restore("here").effects) == wanted
    assert told(s.reset()) == wanted


def test_hostile_arguments_are_shown_tamely(s: Session) -> None:
    s.run("x = 1")
    s.run("tools.pay('\\x1b[2J\\u202e\"\\udcff'.encode('utf-8', 'replace').decode() + 'z' * 500, 1)")
    s.run("tools.order({'deep': [[[[1]]]], 'n': None, 'b': b'123', 'f': 2.0, 't': True, 'i': -70000})")
    text = told(s.undo(2).effects)
    assert text[0].startswith('called pay(to="\\u001b[2J\\xe2\\x80\\xae\\"?zzz') and text[0].endswith(
        '...", amount=1) in cell 2'
    )
    assert text[1] == (
        'called order(items={"deep": [[[[1]]]], "n": null, "b": "MTIz", "f": 2.0, "t": true, "i": -70000}) in cell 3'
    )


@pytest.mark.parametrize("answer", [{"value": "paid"}, {"error": "PermissionError", "text": "no"}])
def test_what_a_person_answered_was_not_done(
    daemon: Daemon, connection: Connection, answer: dict[str, Any]
) -> None:
    """Instead of the function: nothing has happened, and nothing is repeated."""
    pays = lair.Function(pay, effect=True, ask=True)
    done.clear()

    def answer_it() -> None:
        with Client(str(daemon.socket)) as client:
            wait_until(
                lambda: client.call(m.Calls(id=client.new_id(), session="asks"), m.CallsReply).calls, "it asks"
            )
            client.call(m.AnswerCall(id=client.new_id(), session="asks", number=1, **answer), m.Reply)

    with Session("asks", connection=connection, functions=[pays]) as s:
        s.run("x = 1")
        for _ in range(2):
            thread = threading.Thread(target=answer_it)
            thread.start()
            s.run("tools.pay('bob', 5)")
            thread.join()
            assert not s.undo().effects
    assert not done


# ---- what is not repeated ----


def test_an_undone_call_is_not_repeated_in_silence(s: Session) -> None:
    s.run("x = 1")
    s.run("tools.pay('bob', amount=5)")
    s.undo()
    assert tried(s, "tools.pay(amount=5, to='bob')") == (
        'pay(to="bob", amount=5) was done in cell 2, and going back did not undo that. '
        "If it is to be repeated, tools.pay.again(...) does it once more"
    )
    assert tried(s, "tools.pay('bob', 6)") == "done"
    assert done == [("bob", 5), ("bob", 6)]
    assert tried(s, "tools.pay.again('bob', 5)") == "done"
    assert tried(s, "tools.pay('bob', 5)") == "done"  # one was accounted for, and this is another


def test_repeating_without_going_back_is_nothing_special(s: Session) -> None:
    for _ in range(3):
        assert s.run("for n in range(2):\n    tools.pay('bob', 5)").ok
    assert len(done) == 6


def test_each_again_accounts_for_one(s: Session) -> None:
    s.run("x = 1")
    s.run("tools.pay('bob', 5); tools.pay('bob', 5)")
    s.undo()
    assert tried(s, "await tools.pay.again.aio('bob', 5)") == "done"
    assert "was done in cell 2" in tried(s, "await tools.pay.aio('bob', 5)")
    assert tried(s, "tools.pay('bob', 5)", again=True) == "done"
    assert tried(s, "tools.pay('bob', 5)") == "done"


def test_forward_again_the_call_is_in_the_past(s: Session) -> None:
    s.run("x = 1")
    s.run("tools.pay('bob', 5)")
    s.restore("1")
    s.run("x = 2")
    s.restore("2")
    assert tried(s, "tools.pay('bob', 5)") == "done"


def test_a_reset_and_a_roll_back(s: Session) -> None:
    s.run("tools.pay('bob', 5)")
    s.reset()
    assert "was done in cell 1" in tried(s, "tools.pay('bob', 5)")
    s.run("import os\ntools.pay('al', 1)\nos._exit(1)")
    assert "was done in cell 3" in tried(s, "tools.pay('al', 1)")


def test_what_was_out_may_have_been_done(s: Session) -> None:
    s.run("x = 1")
    result = s.run("import os, threading\nthreading.Timer(0.3, os._exit, (1,)).start()\ntools.hang('eve')")
    assert result.state == "rolled_back"
    text = tried(s, "tools.hang('eve')")
    assert text.startswith('hang(to="eve") may have been done in cell 2') and "tools.hang.again(...)" in text


def test_a_call_that_failed_may_have_been_done(s: Session) -> None:
    s.run("x = 1")
    s.run("tools.refuse('al')")
    s.undo()
    assert "may have been done in cell 2" in tried(s, "tools.refuse('al')")


def test_branches_do_not_repeat_each_other(s: Session) -> None:
    s.run("x = 1")
    s.run("tools.pay('bob', 5)")
    with s.branch() as branch:
        branch.functions = s.functions
        assert tried(branch, "tools.pay('bob', 5)") == "done"  # it has both in its past, or none
        assert tried(branch, "tools.pay('al', 7)") == "done"
        name = branch.id
    text = tried(s, "tools.pay('al', 7)")
    assert f'was done in cell 4 of session "{name}"' in text
    with s.branch(checkpoint="1") as other:
        other.functions = s.functions
        assert "was done in cell 2 of session" in tried(other, "tools.pay('bob', 5)")


def test_other_functions_may_be_repeated(s: Session) -> None:
    s.run("x = 1")
    s.run("tools.look('a')")
    s.undo()
    assert tried(s, "tools.look('a')") == "done"


def test_the_order_of_keys_does_not_matter(s: Session) -> None:
    s.run("x = 1")
    s.run("tools.order({'a': {'x': 1, 'y': 2}, 'b': 3})")
    s.undo()
    assert "was done" in tried(s, "tools.order({'b': 3, 'a': {'y': 2, 'x': 1}})")
    assert tried(s, "tools.order({'b': 3, 'a': {'y': 2, 'x': 2}})") == "done"


def test_another_router_knows_what_was_done(daemon: Daemon, s: Session) -> None:
    s.run("x = 1")
    s.run("tools.pay('bob', 5)")
    kill_router(daemon)
    effects = s.undo().effects
    assert told(effects) == ['called pay(to="bob", amount=5) in cell 2']
    kill_router(daemon)
    assert "was done in cell 2" in tried(s, "tools.pay('bob', 5)")
    s.restore("2")
    kill_router(daemon)
    assert tried(s, "tools.pay('bob', 5)") == "done"


def test_more_than_is_kept(s: Session) -> None:
    """The oldest are in every past, so they are forgotten first, and what was undone is still known."""
    s.run("x = 1")
    s.run("tools.pay('bob', 5)")
    s.undo()
    assert s.run("for n in range(1100):\n    tools.pay('al', n)").ok
    assert "was done in cell 2" in tried(s, "tools.pay('bob', 5)")
    assert tried(s, "tools.pay('al', 5)") == "done"
    s.undo(3)
    assert "so much was done, and undone since, that nobody knows" in tried(s, "tools.pay('al', 10000)")
    assert tried(s, "tools.pay('al', 10000)", again=True) == "done"


def test_the_arguments_of_an_effect_are_bounded(s: Session) -> None:
    """The router computes a digest of them, for which others wait."""
    assert s.run("tools.pay('x' * 200_000, 1) and None").ok
    error = s.run("tools.pay('x' * 300_000, 1)").error
    assert error and "a function with an effect takes 262144: pass less" in error.value
    assert s.run("tools.look('x' * 300_000)").text == "300000"

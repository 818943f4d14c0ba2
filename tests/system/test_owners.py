"""An id belongs to a user: whoever else has it has another session, and learns nothing of this one."""

from __future__ import annotations

import json
import os
import pwd
import signal
from collections.abc import Iterator
from typing import Any

import pytest

import lair
from daemon import Daemon, wait_until
from lair import Client, LairError
from lair import messages as m
from mcp_server import McpServer

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")

ALICE, MALLORY = 54321, 54322
SETTINGS = {"profile default": {"checkpoint": "cell"}}


@pytest.fixture(autouse=True)
def shared(daemon: Daemon) -> None:
    daemon.share()


@pytest.fixture
def alice(daemon: Daemon, client: Client) -> Iterator[Daemon]:
    """Has a session "main"; when the test ends nobody has any."""
    assert say(daemon, ALICE, "c.exec('whose = \"alice\"', 'main').returncode") == 0
    yield daemon
    for info in client.list():
        client.shutdown(info.session)


def say(daemon: Daemon, uid: int, *expressions: str) -> Any:
    """What each of them is for a client `c` of that user, or the sentence it is refused with; if it is one, not in a
    list."""
    act = (
        "import json, lair.messages as m\n"
        "def value(expression):\n"
        "    try: return eval(expression)\n"
        "    except lair.LairError as error: return f'{error.code}: {error.message}'\n"
        f"print(json.dumps([value(it) for it in {list(expressions)!r}], default=str))"
    )
    answers = json.loads(daemon.as_user(uid, act))
    return answers if len(expressions) > 1 else answers[0]


def test_two_users_have_an_id_each(alice: Daemon) -> None:
    theirs = say(
        alice, MALLORY, "c.open('main').opened", "c.exec('whose', 'main').returncode", "[i.uid for i in c.list()]"
    )
    assert theirs == [True, 1, [MALLORY]]
    assert say(alice, ALICE, "c.exec('whose', 'main').text", "[i.session for i in c.list()]") == [
        "'alice'",
        ["main"],
    ]


def test_closing_ones_own_is_not_closing_the_others(alice: Daemon) -> None:
    say(alice, MALLORY, "c.exec('1', 'main').text", "c.shutdown('main')")
    assert say(alice, MALLORY, "c.info('main')").startswith("no_session: ")
    assert say(alice, ALICE, "c.exec('whose', 'main').text") == "'alice'"


# Everything that names a session.
REQUESTS = [
    "c.info({name})",
    "c.interrupt({name})",
    "c.reset({name})",
    "c.shutdown({name})",
    "c.checkpoint({name}, 'x')",
    "c.call(m.Checkpoints(id=c.new_id(), session={name}), m.CheckpointsReply)",
    "c.restore({name}, 'x')",
    "c.undo({name})",
    "c.drop({name}, 'x')",
    "c.branch({name}, 'other')",
    "c.get({name}, 'f')",
    "c.put({name}, 'f', b'')",
    "c.files({name})",
    "c.copy_in({name}, '/etc/hostname')",
    "c.call(m.Complete(id=c.new_id(), session={name}, code='w'), m.CompleteReply)",
    "c.call(m.Inspect(id=c.new_id(), session={name}, code='whose'), m.InspectReply)",
    "c.call(m.Vars(id=c.new_id(), session={name}), m.VarsReply)",
    "c.call(m.History(id=c.new_id(), session={name}), m.HistoryReply)",
    "c.call(m.Check(id=c.new_id(), session={name}, code='1'), m.CheckReply)",
    "c.call(m.Save(id=c.new_id(), session={name}), m.SaveReply)",
    "c.call(m.Load(id=c.new_id(), session={name}), m.LoadReply)",
    "c.call(m.Attach(id=c.new_id(), session={name}, cell=1), m.ExecReply)",
    "c.call(m.Attach(id=c.new_id(), session={name}, key='k'), m.ExecReply)",
    "c.call(m.Results(id=c.new_id(), session={name}), m.ResultsReply).results",
]


def test_no_request_tells_that_another_has_an_id(alice: Daemon) -> None:
    """Not even that it might: it is answered as for one that nobody has."""
    keyed = "c.call(m.Exec(id=c.new_id(), session='hers', code='2', key='k'), m.ExecReply).text"
    say(
        alice,
        ALICE,
        "c.exec('whose = \"alice\"', 'hers').cell",
        "c.checkpoint('hers', 'x').cell",
        keyed,
        "c.call(m.Save(id=c.new_id(), session='hers'), m.SaveReply)",
    )
    for name in ("hers", f"{ALICE}/hers"):
        answers = say(alice, MALLORY, *(it.format(name=repr(name)) for it in REQUESTS))
        nobodys = say(alice, MALLORY, *(it.format(name=repr("nobody's")) for it in REQUESTS))
        assert answers == [json.loads(json.dumps(it).replace("nobody's", name)) for it in nobodys]
    makes = ["c.open({name}).opened", "c.exec('whose', {name}, profile='default').returncode"]
    assert say(alice, MALLORY, *(it.format(name="'hers'") for it in makes)) == [True, 1]
    assert say(alice, ALICE, "c.exec('whose', 'hers').text") == "'alice'"


def test_a_branch_takes_no_id_from_another(alice: Daemon) -> None:
    assert say(alice, MALLORY, "c.exec('1', 'a').cell", "c.branch('a', 'main').opened") == [1, True]
    assert say(alice, ALICE, "c.exec('whose', 'main').text") == "'alice'"


def test_a_name_with_a_number_is_an_id_to_others(alice: Daemon) -> None:
    """Only root can mean another user."""
    for name in (f"{ALICE}/main", "0/main"):
        made = say(alice, MALLORY, f"c.exec('whose', {name!r}).returncode", "[i.session for i in c.list()]")
        assert made == [1, [name]]
        say(alice, MALLORY, f"c.shutdown({name!r})")


def test_roots_own_of_the_same_id(alice: Daemon, client: Client) -> None:
    info = client.open("main")
    assert (info.opened, info.uid, info.session) == (True, 0, "main")
    client.shutdown("main")
    assert say(alice, ALICE, "c.exec('whose', 'main').text") == "'alice'"


def test_root_uses_a_session_of_another_by_its_full_name(alice: Daemon, client: Client) -> None:
    name = f"{ALICE}/main"
    [info] = client.list()
    assert (info.session, info.uid) == (name, ALICE)
    reply = client.exec("whose", name)
    assert (reply.text, reply.session) == ("'alice'", name)
    assert client.info(name).session == client.open(name).session == name
    assert client.branch(name, f"{ALICE}/other").session == f"{ALICE}/other"
    assert say(alice, ALICE, "c.exec('whose', 'other').text") == "'alice'"
    client.undo(f"{ALICE}/other")
    client.shutdown(name)
    assert say(alice, ALICE, "[i.session for i in c.list()]") == ["other"]


def test_root_makes_none_in_the_name_of_another(daemon: Daemon, client: Client) -> None:
    for act in (
        lambda: client.open(f"{ALICE}/new"),
        lambda: client.exec("1", f"{ALICE}/new"),
        lambda: client.call(m.Attach(id=client.new_id(), session=f"{ALICE}/new", cell=1), m.ExecReply),
    ):
        with pytest.raises(LairError, match=f'^(no_session: there is no session "{ALICE}/new"|gone: )'):
            act()
    assert client.list() == []


@pytest.mark.parametrize("name", ["4294967295/x", f"{ALICE}/", "99999999999999999999/x", f"{ALICE}/a b"])
def test_names_that_are_none(client: Client, name: str) -> None:
    with pytest.raises(LairError, match="^bad_request: .*the number of the user, a slash and the id"):
        client.open(name)


def test_a_branch_is_of_the_owner(alice: Daemon, client: Client) -> None:
    with pytest.raises(LairError, match=f'^bad_request: .*"{ALICE}/other"'):
        client.branch(f"{ALICE}/main", "other")
    client.exec("1", "own")
    with pytest.raises(LairError, match='^bad_request: .*"0/other"'):
        client.branch("own", f"{ALICE}/other")


def test_an_id_of_roots_that_looks_like_a_name(client: Client, no_sessions_left: None) -> None:
    assert client.open("0/7/x").session == "0/7/x"
    assert client.exec("1", "0/7/x").text == "1"
    assert client.open("team/x").session == "team/x"
    assert client.open("0/team/x").opened is False


def test_what_is_saved_is_each_ones(alice: Daemon) -> None:
    save = "c.call(m.Save(id=c.new_id(), session='kept'), m.SaveReply).size > 0"
    others = set((alice.directory / "saves").glob("[!.]*/*"))
    assert say(alice, ALICE, "c.exec('whose = \"alice\"', 'kept').cell", save, "c.shutdown('kept')") == [
        1,
        True,
        None,
    ]
    (hers,) = set((alice.directory / "saves").glob("[!.]*/*")) - others
    hers.with_name(hers.name.replace(str(ALICE), str(MALLORY))).write_bytes(hers.read_bytes())
    assert say(alice, MALLORY, "c.open('kept').loaded", "c.exec('whose = \"mallory\"', 'kept').cell", save) == [
        None,
        1,
        True,
    ]
    assert say(alice, ALICE, "c.exec('whose', 'kept').text", "c.shutdown('kept')") == ["'alice'", None]
    assert say(alice, MALLORY, "c.exec('whose', 'kept').text", "c.shutdown('kept')") == ["'mallory'", None]


def test_both_go_on_when_the_router_dies(alice: Daemon, client: Client) -> None:
    say(alice, MALLORY, "c.exec('whose = \"mallory\"', 'main').cell")
    old = client.stats().pid
    os.kill(old, signal.SIGKILL)
    with alice.client() as other:
        wait_until(lambda: other.stats().pid != old, "another router")
        assert sorted(info.session for info in other.list()) == [f"{ALICE}/main", f"{MALLORY}/main"]
    assert say(alice, ALICE, "c.exec('whose', 'main').text") == "'alice'"
    assert say(alice, MALLORY, "c.exec('whose', 'main').text", "c.shutdown('main')") == ["'mallory'", None]
    assert say(alice, ALICE, "c.exec('whose', 'main').text") == "'alice'"


def test_root_is_answered_by_the_next_router_in_its_own_words(alice: Daemon, client: Client) -> None:
    name = f"{ALICE}/main"
    asked = m.Exec(id=1, session=name, code="import time; time.sleep(1); whose", key="slow")
    client.send(asked)
    wait_until(lambda: client.info(name).state == "busy", "it runs")
    os.kill(client.stats().pid, signal.SIGKILL)
    with alice.client() as other:
        reply = other.call(asked, m.ExecReply)
        assert (reply.text, reply.session) == ("'alice'", name)


def test_the_log_tells_them_apart(alice: Daemon, client: Client) -> None:
    client.open("main")
    assert f"[{ALICE}/main] opened for uid {ALICE}" in alice.log()
    assert "[main] opened for uid 0" in alice.log()


# ---- clients ----


def test_the_command_line_knows_users_by_name(alice: Daemon, client: Client) -> None:
    """NOBODY has one, as every host has it."""
    nobody = pwd.getpwnam("nobody")
    assert say(alice, nobody.pw_uid, "c.exec('whose = \"nobody\"', 'main').returncode") == 0
    for name in ("nobody/main", f"{nobody.pw_uid}/main"):
        assert alice.lair("exec", "-s", name, "whose").stdout == "'nobody'\n"
    assert [line.split()[0] for line in alice.lair("ls").stdout.splitlines()] == [
        "SESSION",
        f"{ALICE}/main",
        "nobody/main",
    ]
    assert alice.lair("info", "nobody/main").stdout.split()[:2] == ["session", "nobody/main"]
    assert alice.lair_json("ls")["sessions"][1]["session"] == f"{nobody.pw_uid}/main"
    assert alice.lair("branch", "nobody/main", "nobody/other").returncode == 0
    assert alice.lair("close", "nobody/main").returncode == 0
    assert sorted(info.session for info in client.list()) == [f"{ALICE}/main", f"{nobody.pw_uid}/other"]


def test_a_user_that_is_not_there(daemon: Daemon) -> None:
    result = daemon.lair("exec", "-s", "nobody-at-all/main", "1")
    assert result.returncode == 2
    assert (
        'there is no user "nobody-at-all"; root\'s own session of that id is "0/nobody-at-all/main"'
        in result.stderr
    )
    assert daemon.lair("exec", "-s", "0/nobody-at-all/main", "6 * 7").stdout == "42\n"
    assert daemon.lair("close", "0/nobody-at-all/main").returncode == 0


def test_a_prompt_in_a_session_of_another(alice: Daemon, client: Client) -> None:
    typed = f"whose\n%branch {ALICE}/other\nwhose + '!'\n"
    result = alice.lair("repl", "-s", f"{ALICE}/main", input=typed)
    assert (result.stdout.count("'alice'"), result.stdout.count("'alice!'")) == (1, 1), result
    assert client.info(f"{ALICE}/other").cells == 3


def test_from_python(alice: Daemon) -> None:
    with lair.Connection(str(alice.socket), start=False) as connection:
        session = lair.Session(f"{ALICE}/main", connection=connection)
        assert session.run("whose").text == "'alice'"
        assert session.branch().run("whose").text == "'alice'"


def test_a_model_has_the_sessions_of_its_user_only(alice: Daemon, client: Client) -> None:
    """Though root serves it."""
    name = f"{ALICE}/main"
    with McpServer(alice, "--tools", "full") as server:
        for tool, arguments in (
            ("python_session_execute", {"code": "whose", "session_id": name}),
            ("python_session_shutdown", {"session_id": name}),
            ("python_session_branch", {"session_id": "own", "new_session_id": name}),
        ):
            answer = server.request("tools/call", {"name": tool, "arguments": arguments})
            assert "must not begin with the number of a user and a slash" in json.dumps(answer), answer
        client.put(name, "f", b"1")
        uri = f"lair://sessions/{name.replace('/', '%2F')}/f"
        assert server.refused("resources/read", {"uri": uri})["code"] == -32602
        assert server.end() == 0
    assert say(alice, ALICE, "c.exec('whose', 'main').text") == "'alice'"
    with McpServer(alice, "--session", name) as server:
        answer = server.request("tools/call", {"name": "python_session_execute", "arguments": {"code": "whose"}})
        assert "'alice'" in json.dumps(answer)
        assert server.end() == 0

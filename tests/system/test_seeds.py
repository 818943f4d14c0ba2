"""What is drawn again after going back: a token is another one, and what code has seeded comes again."""

from __future__ import annotations

import pytest

from lair import Client

SETTINGS = {"profile default": {"checkpoint": "cell", "grace": "100ms"}}

IMPORTS = (
    "import os, random, secrets, sqlite3, ssl, tempfile, uuid, numpy\n"
    "database = sqlite3.connect(':memory:')\n"
    "def blob(): return database.execute('select hex(randomblob(16))').fetchone()[0]\n"
)

ANEW = [
    "random.random()",
    "random.choice(range(1 << 60))",
    "random.gauss(0, 1)",
    "secrets.token_hex()",
    "random.SystemRandom().random()",
    "uuid.uuid4()",
    "uuid.uuid1()",
    "os.urandom(8)",
    "ssl.RAND_bytes(16)",
    "tempfile.mktemp()",
    "next(tempfile._get_candidate_names())",
    "numpy.random.rand()",
    "numpy.random.normal()",
    "numpy.random.mtrand._rand.randint(1 << 60)",
    "numpy.random.default_rng().random()",
    "numpy.random.RandomState().rand()",
    "random.Random().random()",
    "blob()",
]

# Seeded by the code, or an object of the code's own: as all data, it is as it was.
AS_BEFORE = {
    "random.seed(42)": "random.random(), random.gauss(0, 1)",
    "random.seed(a='text')": "random.random()",
    "random.setstate(random.getstate())": "random.random()",
    "numpy.random.seed(42)": "numpy.random.rand(), numpy.random.normal()",
    "numpy.random.set_state(numpy.random.get_state())": "numpy.random.rand()",
    "mine = random.Random(7)": "mine.random()",
    "mine = random.Random()": "mine.random()",
    "mine = numpy.random.default_rng(7)": "mine.random()",
    "mine = numpy.random.default_rng()": "mine.random()",
    "mine = numpy.random.RandomState()": "mine.rand()",
    "word = 'word'": "hash(word)",
}


def drawn(client: Client, session: str, what: list[str]) -> list[str]:
    reply = client.exec("print(*map(repr, [" + ", ".join(what) + "]), sep='\\n')", session)
    assert reply.returncode == 0, reply.stderr
    return reply.stdout.decode().splitlines()


def begin(client: Client, session: str, seed: str = "") -> None:
    """Each has been drawn from once, so that half of a pair may be left."""
    warm = "".join(f"{it}\n" for it in ANEW)
    assert client.exec(IMPORTS + warm + seed, session).returncode == 0
    client.checkpoint(session, "here")


def test_tokens_are_others(client: Client, session: str) -> None:
    begin(client, session)
    first = drawn(client, session, ANEW)
    client.undo(session)
    second = drawn(client, session, ANEW)
    client.restore(session, "here")
    assert client.exec("os._exit(1)", session).state == "rolled_back"
    third = drawn(client, session, ANEW)
    client.branch(session, session + ".b", checkpoint="here")
    fourth = drawn(client, session + ".b", ANEW)
    client.exec("os._exit(1)", session + ".b")
    client.undo(session + ".b")
    fifth = drawn(client, session + ".b", ANEW)
    client.shutdown(session + ".b")
    client.drop(session, "here")
    client.reset(session)
    begin(client, session)
    sixth = drawn(client, session, ANEW)
    for what, *each in zip(ANEW, first, second, third, fourth, fifth, sixth):
        assert len(set(each)) == 6, (what, each)


@pytest.mark.parametrize("seed", AS_BEFORE)
def test_what_code_has_seeded_comes_again(client: Client, session: str, seed: str) -> None:
    begin(client, session, seed)
    draw = AS_BEFORE[seed]
    first = client.exec(draw, session).text
    client.undo(session)
    assert client.exec(draw, session).text == first
    client.restore(session, "here")
    client.exec("os._exit(1)", session)
    assert client.exec(draw, session).text == first


@pytest.mark.parametrize("name", ["random", "numpy.random"])
def test_seeded_no_more(client: Client, session: str, name: str) -> None:
    """seed() without a number is chance again; and the cell that seeded has been undone."""
    begin(client, session, f"{name}.seed(1)\n{name}.seed()")
    draw = f"{name}.random()"
    first = client.exec(draw, session).text
    client.undo(session)
    assert client.exec(draw, session).text != first
    client.restore(session, "here")
    client.exec(f"{name}.seed(1)", session)
    client.undo(session)
    second = client.exec(draw, session).text
    client.undo(session)
    assert client.exec(draw, session).text != second


def test_seed_is_as_it_was(client: Client, session: str) -> None:
    assert (
        client.exec(
            "import inspect, pickle, random, numpy\n"
            "pickle.loads(pickle.dumps(random.seed)) is random.seed, str(inspect.signature(random.seed)), "
            "random.seed(1), random.random(), numpy.random.seed.__name__, numpy.random.seed(seed=3)",
            session,
        ).text
        == "(True, '(a=None, version=2)', None, 0.13436424411240122, 'seed', None)"
    )


def test_a_cell_that_breaks_seed_breaks_no_going_back(client: Client, session: str) -> None:
    client.exec("import os, random\nx = 1\nrandom.seed = lambda *_: os._exit(7)", session)
    client.exec("x = 2", session)
    client.undo(session)
    reply = client.exec("x", session)
    assert (reply.text, reply.state) == ("1", "kept")

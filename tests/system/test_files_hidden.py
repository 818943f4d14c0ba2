"""Changes that a session makes where nobody may look, or of what is no file's content: they go back like all others."""

from __future__ import annotations

import os

import pytest

from lair import Client
from lair import messages as m
from test_files_back import SETTINGS as SETTINGS
from test_files_back import place, tree

pytestmark = pytest.mark.usefixtures("no_sessions_left")

SETUP = "import os; os.makedirs('d/e'); open('d/f', 'w').write('1'); open('d/e/g', 'w').write('1'); os.mkfifo('p')"


@pytest.mark.parametrize("directory", ["d", "d/e", "."])
@pytest.mark.parametrize("mode", [0, 0o300, 0o400])
def test_a_directory_is_shut(client: Client, opened: str, directory: str, mode: int) -> None:
    client.exec(SETUP, opened)
    before = tree(place(client, opened))
    code = f"open('d/f', 'w').write('2'); open('d/e/g', 'w').write('2'); os.chmod('{directory}', {mode})"
    reply = client.exec(code, opened)
    assert reply.state == "kept" and reply.artifacts_more
    assert client.undo(opened).files_stay is None
    assert tree(place(client, opened)) == before


@pytest.mark.parametrize("mode", [0o555, 0, 0o300])
def test_the_root_is_shut(client: Client, opened: str, mode: int) -> None:
    client.exec(SETUP, opened)
    before = tree(place(client, opened))
    client.exec(f"os.remove('d/f'); os.remove('p'); open('new', 'w'); os.chmod('.', {mode})", opened)
    client.call(m.Vars(id=client.new_id(), session=opened), m.VarsReply)
    after = tree(place(client, opened))
    assert client.undo(opened).files_stay is None
    assert tree(place(client, opened)) == before
    client.restore(opened, "2")
    assert tree(place(client, opened)) == after
    client.restore(opened, "1")
    assert tree(place(client, opened)) == before


@pytest.mark.parametrize(
    "code",
    [
        "os.utime('p', (1, 1))",
        "os.chmod('p', 0o604)",
        "os.symlink('x', 'l'); os.utime('l', (1, 1), follow_symlinks=False)",
        "os.makedirs('d/.branches'); open('d/.branches/f', 'w').write('1')",
    ],
)
def test_no_regular_file(client: Client, opened: str, code: str) -> None:
    client.exec(SETUP, opened)
    before = tree(place(client, opened))
    client.exec(code, opened)
    assert tree(place(client, opened)) != before
    client.undo(opened)
    assert tree(place(client, opened)) == before


def test_below_a_directory_of_that_name(client: Client, opened: str) -> None:
    client.exec(SETUP + "; os.makedirs('d/.branches'); open('d/.branches/f', 'w').write('1')", opened)
    before = tree(place(client, opened))
    reply = client.exec("open('d/.branches/f', 'w').write('2')", opened)
    assert [it["path"] for it in reply.artifacts] == [b"d/.branches/f"]
    client.undo(opened)
    assert tree(place(client, opened)) == before


def test_modes_of_a_death(client: Client, opened: str) -> None:
    """What a lost cell has opened is as it was."""
    client.exec(SETUP + "; os.chmod('d/f', 0o600)", opened)
    client.exec("os.chmod('d/e', 0); os.chmod('d', 0)", opened)
    client.call(m.Vars(id=client.new_id(), session=opened), m.VarsReply)  # until then it is opened up to be kept
    before = tree(place(client, opened))
    reply = client.exec("os.chmod('d', 0o700); os.chmod('d/e', 0o755); os.chmod('d/f', 0o644); os._exit(1)", opened)
    assert reply.state == "rolled_back" and reply.files_stay is None
    assert tree(place(client, opened)) == before
    assert oct(os.stat(place(client, opened) / "d").st_mode)[-3:] == "000"

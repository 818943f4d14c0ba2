"""Random cells over files, random ways back, branches, uploads and deaths, of interpreters and of routers: after each
step the whole tree of each session is what it was in that state, or the answer says what is not. Some rounds have
quotas that a few cells exhaust, some a disk that is full at times.

LAIR_PROPERTY_SEED=N runs the round of that seed first, LAIR_PROPERTY_STEPS=N as many rounds as make N steps.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Optional

import pytest

from daemon import Daemon
from lair import Client, LairError
from lair import messages as m
from test_files_back import changes
from test_files_back import tree as whole_tree

pytestmark = pytest.mark.usefixtures("no_sessions_left")

STEPS = 50
ROUNDS = max(1, int(os.environ.get("LAIR_PROPERTY_STEPS", "150")) // STEPS)
SEED = int(os.environ.get("LAIR_PROPERTY_SEED", time.time_ns() % 1_000_000_000))
PROFILE = {"grace": "20ms", "level": "", "checkpoint": "cell", "checkpoints": "200", "subprocess": "on"}
SETTINGS = {
    "profile default": PROFILE,
    "profile tight": {**PROFILE, "workspace_size": "2M", "checkpoint_files": "600K"},
}
# Of the disk of a round that fills it.
DISK = 6 << 20

# Each may fail, as files are or are not there. P and Q are paths, K is a number.
CELLS = [
    "open('P', 'w').write('K' * K)",
    "open('P', 'a').write('K')",
    "f = open('P', 'r+'); f.seek(K); f.write('over'); f.close()",
    "os.truncate('P', K)",
    "os.rename('P', 'Q')",
    "os.remove('P')",
    "os.mkdir('P')",
    "os.rmdir('P')",
    "shutil.rmtree('P')",
    "os.link('P', 'Q', follow_symlinks=False) if os.path.isfile('P') and not os.path.islink('P') else None",
    "os.symlink('Q', 'P')",
    "os.chmod('P', 0o600 + K % 64)",
    "os.utime('P', ns=(K, K * 7919))",
    "os.makedirs('P/x/y', exist_ok=True); open('P/x/y/z', 'wb').write(bytes(range(K % 256)))",
    "f = open('P', 'r+b'); v = mmap.mmap(f.fileno(), 0); v[0] = K % 256; v.flush()",
    "v[-1] = K % 256",
    "f = open('m', 'w+b'); f.truncate(5000); v = mmap.mmap(f.fileno(), 0); v[K % 5000] = 1",
    "del v, f",
    "h = open('P', 'a+', buffering=1); h.write('K\\n')",
    "h.write('more\\n'); h.seek(0)",
    "db = sqlite3.connect('db'); db.execute('create table if not exists t (x)')",
    "db.execute('insert into t values (K)'); db.commit()",
    "db.execute('delete from t where x % 2 = K % 2'); db.commit()",
    "db.close(); os.remove('db')",
    "subprocess.run(['sh', '-c', 'echo K >> P; cp P Q'], check=True, stderr=-3)",
    "open('big', 'wb').write(os.urandom(K * 3000))",
    "f = open('P', 'r+b'); f.truncate(K * 5000); f.seek(K * 2500); f.write(b'island'); f.close()",
    "os.truncate('P', 0); os.truncate('P', K * 1000)",
    "f = open('P', 'r+b'); f.truncate(K * 4000); f.seek(K * 4000 - 5000); f.write(os.urandom(4999)); f.close()",
    "os.utime('P', (K * 10**8, K * 10**8))",
    "os.utime('P', (-K * 10**7, -K * 10**7))",
    "os.utime('P', ns=(0, time.time_ns() + K * 10**12))",
    "os.utime('P')",
    "os.mkfifo('p')",
    "os.utime('p', (K, K)); os.chmod('p', 0o600 + K % 64)",
    "os.utime('P', ns=(K, K * 7919), follow_symlinks=False)",
    "os.chmod('P', K % 8 << 6)",
    "os.chmod('.', K % 8 << 6)",
    "os.chmod('.', 0o700)",
    "os.chmod('.', 0o700); [os.chmod(it, 0o700) for it in os.listdir() if os.path.isdir(it)]",
    "os.makedirs('many/x', exist_ok=True); "
    "[(os.close(os.open(f'many/{i}', 65)), os.link(f'many/{i}', f'many/x/{i}')) for i in range(K * 4)]",
    "[os.remove(f'many/x/{it}') for it in os.listdir('many/x')]",
    "[open(f'many/x/{it}', 'a').write('K') for it in os.listdir('many/x')[:K]]",
    "shutil.rmtree('many')",
    "len('nothing is changed')",
]
PATHS = ["a", "b", "c", "d", "d/a", "d/b", "d/e", "d/e/f", "g", "g/a", "g/h"]
DEATHS = ["os._exit(3)", "os.kill(os.getpid(), 9)", "import ctypes; ctypes.string_at(0)"]
BEGIN = "import os, resource, shutil, mmap, sqlite3, subprocess, time"
# Then forks fail, also those for checkpoints; and they do not any more.
FORKS_FAIL = (
    "few, most = resource.getrlimit(resource.RLIMIT_NPROC); resource.setrlimit(resource.RLIMIT_NPROC, (K, most))"
)
FORKS_WORK = "resource.setrlimit(resource.RLIMIT_NPROC, (few, most))"


def tree(place: Path) -> dict[str, Any]:
    """A branch puts its directory there, so the time of the workspace itself is not compared. What is looked at may be on
    its way back, because another one has filled the workspace."""
    found = None
    while found is None:
        with contextlib.suppress(FileNotFoundError):
            found = whole_tree(place)
    found["."][1] = 0
    return found


def has_run(reply: m.ExecReply) -> bool:
    """Also one before which the session went back, because another has filled its workspace."""
    return reply.state == "kept" or reply.returncode in (0, 1)


@dataclass(eq=False)
class State:
    cell: int
    files: dict[str, Any]
    before: Optional[State]


@dataclass(eq=False)
class Session:
    id: str
    place: Path
    at: State
    states: dict[int, State] = field(default_factory=dict)
    first: int = 0  # a branch does not know what was before it
    shut: bool = False  # there may be directories that their owner may not pass


class Round:
    def __init__(self, client: Client, seed: int, profile: str = "default", disk: Optional[Path] = None) -> None:
        self.client, self.seed, self.profile, self.disk = client, seed, profile, disk
        self.tight = profile == "tight" or disk is not None  # not everything can be kept or brought back
        self.random = random.Random(seed)
        self.sessions: list[Session] = []
        self.opened = 0
        self.story: list[str] = []

    def tell(self, session: Session, what: str) -> None:
        self.story.append(f"{session.id}: {what}")

    def id(self) -> str:
        self.opened += 1
        return f"r{self.seed}.{self.opened}"

    def open(self) -> None:
        id = self.id()
        place = Path(self.client.open(id, self.profile).workspace or "")
        session = Session(id, place, State(0, tree(place), None))
        session.states[0] = session.at
        self.sessions.append(session)
        self.run_cell(session, BEGIN)

    def code(self) -> str:
        path, other = self.random.choice(PATHS), self.random.choice(PATHS)
        chosen = self.random.choice(CELLS)
        return chosen.replace("P", path).replace("Q", other).replace("K", str(self.random.randrange(1, 400)))

    def tree_now(self, session: Session, code: str) -> dict[str, Any]:
        """While files are kept, such a directory can be passed. A question waits until they are."""
        session.shut |= "chmod" in code
        if not session.shut:
            return tree(session.place)
        self.client.call(m.Vars(id=self.client.new_id(), session=session.id), m.VarsReply)
        return self.tree_at_rest(session)

    def tree_at_rest(self, session: Session) -> dict[str, Any]:
        """Whoever adds up what is stored opens such a directory up, too, for some milliseconds."""
        while True:
            found = tree(session.place)
            time.sleep(0.1)
            if tree(session.place) == found:
                return found

    def run_cell(self, session: Session, code: str) -> None:
        self.tell(session, code)
        reply = self.client.exec(code, session.id)
        if not has_run(reply):
            assert self.tight and reply.state == "rolled_back", reply
            self.went_back(session, session.at, reply)
            return
        session.at = State(reply.cell, self.tree_now(session, code), session.at)
        session.states[reply.cell] = session.at

    def went_back(self, session: Session, to: State, reply: m.ExecReply | m.StateReply) -> None:
        """What is not as it was is told."""
        if isinstance(reply, m.ExecReply):
            self.tell(session, f"... {reply}")
        before, session.at = session.at, to
        if reply.files_stay is None:
            return
        assert self.tight, reply
        self.tell(session, f"... {reply.files_stay}")
        now = self.tree_now(session, "chmod" if session.shut else "")
        if not reply.files_stay.startswith("none was brought back"):
            failed = {path for path, change in changes(reply).items() if change == "failed"}
            assert failed or reply.files_more, reply
            if not reply.files_more and to.files:
                others = {*now, *to.files} - failed - {os.path.dirname(it) or "." for it in failed}
                assert {it: now.get(it) for it in others} == {it: to.files.get(it) for it in others}, reply
        elif isinstance(reply, m.StateReply):
            assert now == before.files, reply
        session.at = State(to.cell, now, to.before)

    def cell(self, session: Session) -> None:
        self.run_cell(session, self.code())

    def forks_fail(self, session: Session) -> None:
        """What is not saved meanwhile is left out."""
        few = FORKS_FAIL.replace("K", str(self.random.randrange(8)))
        for code in (few, self.code(), FORKS_WORK):
            self.run_cell(session, code)
            session.states.pop(session.at.cell, None)
        session.states[session.at.cell] = session.at = State(session.at.cell, session.at.files, None)

    def quick(self, session: Session) -> None:
        """One right after the other."""
        codes = [self.code() for _ in range(4)]
        self.tell(session, " ;; ".join(codes))
        for it in [self.client.send(m.Exec(id=self.client.new_id(), code=it, session=session.id)) for it in codes]:
            reply = self.client.finish(it, m.ExecReply)
            assert isinstance(reply, m.ExecReply) and (reply.state == "kept" or self.tight)
            if has_run(reply):
                session.at = State(reply.cell, {}, session.at)
        session.at = State(session.at.cell, self.tree_now(session, " ".join(codes)), session.at.before)
        session.states[session.at.cell] = session.at

    def dies(self, session: Session) -> None:
        code = f"import os\ntry:\n    {self.code()}\nexcept Exception: pass\n{self.random.choice(DEATHS)}"
        self.tell(session, code)
        reply = self.client.exec(code, session.id)
        assert reply.state == "rolled_back", reply
        self.went_back(session, session.at, reply)

    def undo(self, session: Session) -> None:
        n, to = self.random.randrange(1, 4), session.at
        for _ in range(n):
            if to.before is None or to.cell <= session.first:
                return
            to = to.before
        if to.cell not in session.states:
            return
        self.tell(session, f"undo {n}")
        reply = self.client.undo(session.id, n)
        assert reply.cell == to.cell
        self.went_back(session, to, reply)

    def restore(self, session: Session) -> None:
        cell = self.random.choice([it for it in session.states if it > session.first] or [0])
        if cell == 0:
            return
        self.tell(session, f"restore {cell}")
        self.went_back(session, session.states[cell], self.client.restore(session.id, str(cell)))

    def put(self, session: Session) -> None:
        path = self.random.choice(PATHS)
        self.tell(session, f"put {path}")
        try:
            self.client.put(session.id, path, os.urandom(self.random.randrange(100)))
        except LairError as error:
            assert error.code in ("denied", "no_file", "internal", "bad_request") or self.tight, error
        session.at.files = self.tree_now(session, "")

    def fill(self, _: Session) -> None:
        """The disk, but for a little; or there is room again."""
        if not self.disk:
            return
        ballast = self.disk / "ballast"
        ballast.unlink(missing_ok=True)
        left = os.statvfs(self.disk).f_bavail * 4096 - self.random.choice([0, 4096, 65536, DISK])
        self.story.append(f"the disk has {left} bytes less")
        with contextlib.suppress(OSError):  # somebody else was faster
            ballast.write_bytes(bytes(max(left, 0)))

    def branch(self, session: Session) -> None:
        cells = [it for it in session.states if it > session.first]
        if len(self.sessions) >= 4 or not cells:
            return
        id, cell = self.id(), self.random.choice(cells)
        self.tell(session, f"branch {id} from {cell}")
        try:
            place = Path(self.client.branch(session.id, id, checkpoint=str(cell)).workspace or "")
        except LairError as error:  # nobody may pass the root, or there is no room
            shut = error.code == "unsupported" and "Permission denied" in str(error) and session.shut
            assert shut or self.tight, error
            self.story.append(str(error))
            return
        state = State(cell, tree(place), None)
        assert state.files == session.states[cell].files
        new = Session(id, place, state, shut=session.shut)
        self.run_cell(new, "v = f = h = db = None")  # these are its parent's
        new.first = new.at.cell
        self.sessions.append(new)

    def diff(self, session: Session) -> None:
        """Which files have other contents, or are there in one state only, and which have other modes."""
        cells = [it for it in session.states if it > session.first]
        if not cells:
            return
        cell = self.random.choice(cells)
        self.tell(session, f"diff {cell}")
        reply = self.client.call(m.Diff(id=self.client.new_id(), session=session.id, since=str(cell)), m.DiffReply)
        if reply.files_lack is not None or reply.files_more:
            return
        told: set[str] = set()
        for it in reply.files:
            told |= {it["path"].decode(), *([it["was"].decode()] if "was" in it else [])}
        before, now = session.states[cell].files, session.at.files
        if not before:
            return

        def looks(files: dict[str, Any], path: str) -> Any:
            it = files.get(path)
            return None if it is None else (it[0], *it[2:3])

        wanted = {it for it in {*before, *now} if looks(before, it) != looks(now, it)}
        # One that was made anew may have the same content.
        assert wanted <= told <= wanted | {it for it in {*before} & {*now} if len(now[it]) > 2}

    def look(self, session: Session) -> None:
        """Two seconds are given: while files are counted, a directory that lacks rights has them."""
        end = time.monotonic() + 2
        while (now := tree(session.place)) != session.at.files and time.monotonic() < end:
            pass
        assert now == session.at.files, session.id

    def step(self) -> None:
        signal.alarm(60)  # for each step
        kinds = {
            self.cell: 50, self.quick: 6, self.dies: 8, self.undo: 12, self.restore: 12, self.put: 5, self.branch: 3,
            self.diff: 5, self.forks_fail: 3, self.fill: 6,
        }  # fmt: skip
        session = self.random.choice(self.sessions)
        self.random.choices(list(kinds), list(kinds.values()))[0](session)
        for it in self.sessions:
            self.look(it)

    def run(self) -> None:
        self.open()
        try:
            for _ in range(STEPS):
                self.step()
        except BaseException:
            print(f"LAIR_PROPERTY_SEED={self.seed}", *self.story, sep="\n")
            raise
        for it in self.sessions:
            self.client.shutdown(it.id)


@pytest.mark.parametrize("round", range(0, ROUNDS, 3))
def test_random_files(client: Client, round: int) -> None:
    Round(client, SEED + round).run()


@pytest.mark.parametrize("round", range(1, ROUNDS, 3))
def test_little_may_be_kept(client: Client, round: int) -> None:
    Round(client, SEED + round, "tight").run()


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    options = f"size={DISK},mode=755"
    if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", tmp_path]).returncode:
        pytest.skip("no disk can be made here")
    yield tmp_path
    subprocess.run(["umount", "-l", tmp_path], check=True)


@pytest.mark.parametrize("round", range(2, ROUNDS, 3))
def test_the_disk_is_full(start_daemon: Callable[..., Daemon], disk: Path, round: int) -> None:
    daemon = start_daemon({**SETTINGS, "daemon": {"workspaces": str(disk / "work")}})
    with daemon.client() as client:
        Round(client, SEED + round, disk=disk).run()
    daemon.close()

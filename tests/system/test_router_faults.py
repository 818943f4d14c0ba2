"""The router dies over something: once, and nobody notices; again and again, and that alone is ended or refused, by name,
while everything else goes on. At every point that laird has for it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import internal
from daemon import BIN, Daemon, Settings, children, command_of, group_of, wait_until
from lair import Client, LairError, codec
from lair import messages as m

SETTINGS = {
    "profile default": {"checkpoint": "cell", "spares": "1", "workspace_size": "64M", "checkpoints": "20"},
    "profile idle": {"spares": "0", "idle_ttl": "3s"},
    "profile hard": {"spares": "0", "hard_ttl": "8s", "idle_ttl": "8s"},
}

OF_IMAGES = {"daemon": {"template_images": "on"}, "profile other": {"spares": "1"}}
OF_TEMPLATES = {"daemon": {"template_ttl": "300ms"}, "profile other": {"spares": "1"}}

POINTS = subprocess.run([BIN / "laird", "--faults"], capture_output=True, text=True, check=True).stdout.split()

BYSTANDERS = ["bystander-1", "bystander-2"]


class Walk:
    """A laird whose routers die as they are told to."""

    def __init__(self, order: Path, settings: Settings, binaries: Path = BIN) -> None:
        self.order = order
        env = {"LAIR_FAULT": str(order)}
        self.daemon = Daemon(settings, env=env, options=("--restart-at-once",), binaries=binaries)
        for name in BYSTANDERS:
            self.run(f"x = {name!r}", name)

    def router(self) -> int:
        found = [pid for pid in children(self.daemon.process.pid) if "--router" in command_of(pid)]
        return found[0] if found else 0

    def arm(self, order: str) -> None:
        """For the next router, and those that follow. Killed by somebody else, it is nobody's fault."""
        self.order.write_text(order + "\n")
        pid = wait_until(self.router, "there is a router")
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: self.router() not in (0, pid), "there is another")

    def deaths(self) -> int:
        return self.daemon.log().count("a fault is made")

    def ask(self, request: Any, reply: type[Any] = m.Reply, patience: float = 0.4, limit: float = 30) -> Any:
        """Send it until it is answered, with the same key, where it has one."""
        if "key" in type(request).__annotations__ and request.key is None:
            request.key = uuid.uuid4().hex
        deadline = time.monotonic() + limit
        while time.monotonic() < deadline:
            with Client(str(self.daemon.socket), timeout=patience) as client:
                try:
                    request.id = client.new_id()
                    return client.call(request, reply)
                except TimeoutError:
                    continue
        pytest.fail(f"no answer to {request}:\n{self.daemon.log()[-4000:]}")

    def run(self, code: str, session: str, **options: Any) -> m.ExecReply:
        reply: m.ExecReply = self.ask(m.Exec(id=0, session=session, code=code, **options), m.ExecReply)
        return reply

    def look_around(self) -> None:
        for name in BYSTANDERS:
            reply = self.run("x", name)
            assert (reply.text, reply.state) == (repr(name), "kept")


@pytest.fixture(scope="module")
def walk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Walk]:
    it = Walk(tmp_path_factory.mktemp("faults") / "order", SETTINGS)
    yield it
    it.daemon.end()


@pytest.fixture
def of_templates(tmp_path: Path, point: str) -> Iterator[Walk]:
    """A profile that is given up stays so for a while."""
    it = Walk(tmp_path / "order", OF_IMAGES if point in IMAGES else OF_TEMPLATES)
    yield it
    it.daemon.end()


HASTE = BIN.parent / "tests/laird-hasty"

# In the place of lair-kernel: for the profile "odd" it does as a file says, and is the true one for all others. A builder finds
# nothing.
KERNEL = """#!/bin/sh
mood=
if [ "$1" = --builder ]; then
	[ "$(cat {here}/mood)" = silent ] || cat {here}/building >&3
	[ "$(cat {here}/mood)" = silent ] || cat {here}/built >&3
	exec cat <&3 >/dev/null
fi
[ "$1" != odd ] || mood=$(cat {here}/mood)
case $mood in
failing) cat {here}/failed >&3 ;;
silent) exec sleep 600 ;;
deaf) cat {here}/ready >&3; exec sleep 600 ;;
*) exec {real}/lair-kernel "$1" ;;
esac
"""


def install(directory: Path, laird: Path) -> Path:
    directory.mkdir()
    shutil.copy2(laird, directory / "laird")
    (directory / "lair-kernel").write_text(KERNEL.format(here=directory, real=BIN))
    (directory / "lair-kernel").chmod(0o755)
    (directory / "ready").write_bytes(codec.encode(internal.TemplateReady(language="python", version="3")))
    (directory / "failed").write_bytes(codec.encode(internal.Failed(reason="it is in no mood")))
    (directory / "building").write_bytes(codec.encode(internal.Building(text="looking")))
    (directory / "built").write_bytes(codec.encode(internal.Built(reason="there is no such thing")))
    (directory / "mood").write_text("")
    return directory


@pytest.fixture(scope="module")
def hasty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Walk]:
    directory = tmp_path_factory.mktemp("hasty")
    it = Walk(directory / "order", SETTINGS, install(directory / "bin", HASTE))
    yield it
    it.daemon.end()


# ---- what leads to each point ----


def request(type: type[m.Request], reply: type[Any] = m.Reply, **fields: Any) -> Callable[[Walk, str], Any]:
    def act(walk: Walk, session: str) -> Any:
        own = {"session": session} if "session" in type.__annotations__ else {}
        return walk.ask(type(id=0, **own, **fields), reply)

    return act


def cell(code: str, **options: Any) -> Callable[[Walk, str], Any]:
    return lambda walk, session: walk.run(code, session, **options)


def checkpointed(walk: Walk, session: str) -> Any:
    reply = walk.run("1", session)

    def is_there() -> bool:
        found = walk.ask(m.Checkpoints(id=0, session=session), m.CheckpointsReply)
        return reply.cell in [codec.read(m.CheckpointRecord, item).cell for item in found.checkpoints]

    wait_until(is_there, "its checkpoint is there", 20)
    return reply


def measured(walk: Walk, session: str) -> None:
    """Its checkpoints are, when it is left alone."""
    time.sleep(1.5)


def left_alone(walk: Walk, session: str) -> None:
    def is_gone() -> bool:
        try:
            walk.ask(m.Info(id=0, session=session), m.SessionInfo)
        except LairError as error:
            return error.code == "no_session"
        return False

    wait_until(is_gone, "its time is over", 30)


def asked(walk: Walk, session: str) -> Any:
    """Whoever asks again is asked again, and may answer."""
    key, deadline = uuid.uuid4().hex, time.monotonic() + 30
    while time.monotonic() < deadline:
        with Client(str(walk.daemon.socket), timeout=0.4) as client:
            exec = m.Exec(id=client.new_id(), session=session, code="input()", input=True, key=key)
            client.send(exec)
            try:
                while not isinstance(message := client.receive(exec.id, m.ExecReply), m.ExecReply):
                    client.input(exec.id, "yes")
                return message
            except TimeoutError:
                continue
    pytest.fail("no answer")


def called(code: str, **flags: Any) -> Callable[[Walk, str], Any]:
    """Whoever comes back has the calls that are out, and may answer."""

    def act(walk: Walk, session: str) -> Any:
        key, deadline = uuid.uuid4().hex, time.monotonic() + 30
        while time.monotonic() < deadline:
            with Client(str(walk.daemon.socket), timeout=0.8) as client:
                exec = m.Exec(
                    id=client.new_id(), session=session, code=code, key=key, functions=[{"name": "f", **flags}]
                )
                client.send(exec)
                try:
                    while not isinstance(message := client.receive(exec.id, m.ExecReply), m.ExecReply):
                        if isinstance(message, m.CallEvent) and "wait_for" not in code:
                            client.send(m.Return(id=client.new_id(), exec=exec.id, number=message.number, value=1))
                    return message
                except TimeoutError:
                    continue
        pytest.fail("no answer")

    return act


def file_put(walk: Walk, session: str) -> Any:
    put = m.Put(id=0, session=session, path=b"f", data=b"1")
    return walk.ask(put, m.TransferReply)


def spoilt(walk: Walk, session: str) -> Any:
    """Its files go back, with its state."""
    walk.run("open('f', 'w').write('1')", session)
    reply = walk.run("import os\nopen('f', 'w').write('2'); open('g', 'w')\nos._exit(3)", session)
    if reply.state == "rolled_back":
        assert walk.run("import os\nopen('f').read(), os.path.exists('g')", session).text == "('1', False)"
    return reply


def compared(walk: Walk, session: str) -> Any:
    """Two states, by whichever router is there at the end."""
    walk.run("open('f', 'w').write('1'); y = 1", session)
    reply = walk.ask(m.Diff(id=0, session=session, since="1"), m.DiffReply)
    assert [it["path"] for it in reply.files] == [b"f"] and [it["name"] for it in reply.variables] == ["y"]
    return reply


def no_fork_left(walk: Walk, session: str) -> Any:
    """Its successor, which its warden forks while it is being killed, is one process too many for all sessions."""
    info = walk.ask(m.Info(id=0, session=session), m.SessionInfo)
    if "pids-cgroup" not in (info.guards or []):
        pytest.skip("no control group counts processes here")
    group = group_of(info.pid, "pids").parent
    before = walk.deaths()
    # Whoever ends by itself meanwhile makes room for a fork.
    for _ in range(6):
        time.sleep(0.3)
        (group / "pids.max").write_text((group / "pids.current").read_text())
        try:
            reply = walk.ask(m.Reset(id=0, session=session))
        finally:
            (group / "pids.max").write_text("max")
        if walk.deaths() - before >= 3:
            break
    return reply


def abandoned(walk: Walk, session: str) -> Any:
    """A file on its way in does not outlive the router, so each has another to forget."""
    for _ in range(4):
        walk.ask(m.Put(id=0, session=session, path=b"f", data=b"1", more=True), m.TransferReply)
        time.sleep(1)


@dataclass
class Way:
    """How to come to a point. It is made in a session of its own, unless that is what leads there."""

    act: Callable[[Walk, str], Any]
    profile: str = "default"
    fresh: bool = False
    of: str = ""  # whose point it is, if it is not the session's
    ends: bool = False  # it does by itself


CODE = "x = 1"
PRINTS = "import time\nfor i in range(20): print(i, flush=True); time.sleep(0.1)"
KILLED = cell("import os\nos._exit(3)")
UNDONE = request(m.Undo, m.StateReply)

WAYS: dict[str, Way] = {
    "request.exec": Way(cell("1")),
    "request.input": Way(request(m.Input, exec=77, text="1"), of="-"),
    "request.return": Way(request(m.Return, exec=77, number=1), of="-"),
    "request.calls": Way(request(m.Calls, m.CallsReply)),
    "request.watch_calls": Way(request(m.WatchCalls, m.WatchCallsReply), of="-"),
    "request.answer_call": Way(request(m.AnswerCall, number=1, value=1)),
    "request.attach": Way(request(m.Attach, m.ExecReply, cell=1)),
    "request.results": Way(request(m.Results, m.ResultsReply)),
    "request.hello": Way(request(m.Hello, m.HelloReply), of="-"),
    "request.open": Way(request(m.Open, m.SessionInfo)),
    "request.interrupt": Way(request(m.Interrupt, m.InterruptReply)),
    "request.reset": Way(request(m.Reset), ends=True),
    "request.shutdown": Way(request(m.Shutdown), ends=True),
    "request.saves": Way(request(m.Saves, m.SavesReply), of="-"),
    "request.unsave": Way(request(m.Unsave)),
    "request.list": Way(request(m.ListSessions, m.ListReply), of="-"),
    "request.checkpoint": Way(request(m.Checkpoint, m.StateReply)),
    "request.checkpoints": Way(request(m.Checkpoints, m.CheckpointsReply)),
    "request.restore": Way(request(m.Restore, name="none")),
    "request.undo": Way(UNDONE, ends=True),
    "request.branch": Way(request(m.Branch, m.SessionInfo, branch="branch-of-it")),
    "request.diff": Way(request(m.Diff, m.DiffReply)),
    "request.drop": Way(request(m.Drop, name="none")),
    "request.get": Way(request(m.Get, path=b"f")),
    "request.put": Way(file_put),
    "request.files": Way(request(m.Files, m.FilesReply)),
    "request.copy_in": Way(request(m.CopyIn, source=b"/etc/hosts", path=b"f")),
    "request.save": Way(request(m.Save, m.SaveReply)),
    "request.load": Way(request(m.Load)),
    "request.info": Way(request(m.Info, m.SessionInfo)),
    "request.complete": Way(request(m.Complete, m.CompleteReply, code="x")),
    "request.inspect": Way(request(m.Inspect, m.InspectReply, code="x")),
    "request.vars": Way(request(m.Vars, m.VarsReply)),
    "request.check": Way(request(m.Check, m.CheckReply, code="1")),
    "request.is_complete": Way(request(m.IsComplete, m.IsCompleteReply, code="1")),
    "request.history": Way(request(m.History, m.HistoryReply)),
    "request.stray": Way(request(m.Stray, m.StrayReply)),
    "request.stats": Way(request(m.Stats, m.StatsReply), of="-"),
    "request.packages": Way(request(m.Packages, m.PackagesReply), of="-"),
    "request.reload": Way(request(m.Reload, m.ReloadReply), of="-"),
    "interpreter.done": Way(cell("1")),
    "interpreter.ask": Way(asked),
    "interpreter.call": Way(called("tools.f()")),
    "interpreter.abandon": Way(
        called("import asyncio\ntry: await asyncio.wait_for(tools.f.aio(), 0.1)\nexcept asyncio.TimeoutError: pass")
    ),
    "interpreter.display": Way(cell("display({'text/plain': 'x'}, raw=True)")),
    "interpreter.told": Way(request(m.Vars, m.VarsReply)),
    "interpreter.frozen": Way(checkpointed),
    "interpreter.spawned": Way(KILLED),
    "interpreter.measured": Way(measured),
    "interpreter.described": Way(compared),
    "interpreter.channel": Way(cell("1")),
    "interpreter.stdout": Way(cell(PRINTS)),
    "interpreter.stderr": Way(cell(f"import sys\nsys.stdout = sys.stderr\n{PRINTS}")),
    "warden.ready": Way(cell(CODE), profile="idle", fresh=True),
    "warden.failed": Way(no_fork_left, ends=True),
    "warden.spawned": Way(cell(CODE), profile="idle", fresh=True),
    "warden.signalled": Way(cell("import time; time.sleep(5)", timeout=0.2)),
    "warden.exited": Way(KILLED),
    "warden.swept": Way(KILLED),
    "warden.files_kept": Way(cell("open('f', 'w').write('1')")),
    "warden.files_going": Way(cell("open('f', 'w').write('1')")),
    "warden.files_back": Way(spoilt),
    "warden.files_compared": Way(compared),
    "warden.surveyed": Way(cell("import time; time.sleep(0.5)")),
    "session.deadline": Way(cell("import time; time.sleep(5)", timeout=0.2)),
    "session.idle": Way(left_alone, profile="idle", ends=True),
    "session.hard": Way(left_alone, profile="hard", ends=True),
    "session.alive": Way(cell("import time; time.sleep(4)")),
    "session.measure": Way(measured),
    "session.call": Way(called("try: tools.f()\nexcept TimeoutError: 'wait_for'", timeout=0.3)),
    "session.copy": Way(request(m.Save, m.SaveReply)),
    "family.channel": Way(KILLED),
    "family.death": Way(request(m.Shutdown), ends=True),
    "family.quota": Way(cell("import time; time.sleep(0.5)")),
    "revival.promise": Way(cell("1"), of="-"),
    "revival.read": Way(cell("1")),
    "revival.begin": Way(cell("1")),
    "revival.end": Way(cell("1")),
    "settle.begin": Way(cell("1")),
    "settle.promised": Way(cell("1")),
    "settle.family": Way(cell("1")),
    "settle.written": Way(cell("1")),
    "settle.heard": Way(cell("1")),
    "settle.said": Way(cell("1")),
}


def begin(walk: Walk, way: Way, session: str) -> None:
    if walk.order.exists() and walk.order.read_text().strip():
        walk.arm("")
    if not way.fresh:
        assert walk.run(CODE, session, profile=way.profile).returncode == 0
        checkpointed(walk, session) if way.profile == "default" else None


# In a laird that has little patience.
HASTY = {"session.transfer": Way(abandoned)}

# With a template that behaves like this, in a laird that has little patience or not.
ODD = {
    "template.failed": "failing",
    "template.patience": "silent",
    "template.retry": "deaf",
    "family.patience": "deaf",
}

BUILDS = ["builder.building", "builder.built", "builder.channel", "builder.patience"]
TEMPLATES = ["template.ready", "template.made", "template.channel", "template.refill", "template.idle"]
IMAGES = ["template.importing", "template.imaged"]


# Of each kind. Of the others, `./dev faults`.
SAMPLE = {
    "request.exec",
    "interpreter.done",
    "warden.exited",
    "warden.files_back",
    "session.deadline",
    "session.transfer",
    "family.channel",
    "revival.read",
    "settle.written",
    "template.made",
    "template.idle",
    "template.failed",
    "builder.built",
}


def walked(points: Iterable[str]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(
        "point", [pytest.param(it, marks=[] if it in SAMPLE else [pytest.mark.long]) for it in points]
    )


# laird ends of it, and takes the walk with it: see test_who_dies_of_a_stop_stops_again.
ENDINGS = {"request.stop"}


def test_all_points_are_walked() -> None:
    assert set(POINTS) == {*WAYS, *HASTY, *ODD, *TEMPLATES, *IMAGES, *BUILDS, *ENDINGS}
    assert set(POINTS) >= SAMPLE


def act(walk: Walk, way: Way, session: str) -> Any:
    if way.fresh:
        return walk.run(CODE, session, profile=way.profile)
    return way.act(walk, session)


def once(walk: Walk, point: str, way: Way) -> None:
    session = f"once-{point}"
    begin(walk, way, session)
    before = walk.deaths()
    walk.arm(f"abort {point} {way.of or session} 1")
    try:
        act(walk, way, session)
    except LairError as error:
        assert "again and again" not in str(error)
    wait_until(lambda: walk.deaths() == before + 1, f"it died at {point}")
    if not way.ends:
        assert walk.run("x", session).text == "1"
    walk.look_around()


def again_and_again(walk: Walk, point: str, way: Way) -> None:
    session = f"again-{point}"
    begin(walk, way, session)
    before = walk.deaths()
    walk.arm(f"abort {point} {way.of or session}" + (" 3" if point == "revival.promise" else ""))
    refusal = state = ""
    try:
        reply = act(walk, way, session)
        state = getattr(reply, "state", "")
    except LairError as error:
        refusal = str(error)
    if point.startswith("request."):
        assert "again and again" in refusal
    wait_until(lambda: walk.deaths() - before >= 3, "it is given up", 30)
    if not way.of:
        walk.look_around()
        died = walk.deaths() - before
        time.sleep(0.5)
        assert walk.deaths() - before == died, "nobody dies of it any more"
    # Who is ended before a request has begun is asked for again, in a new session, which is the next to be given up.
    assert walk.deaths() - before <= 12
    walk.arm("")
    walk.look_around()
    if point.startswith("request."):
        assert walk.run("x", session).text == "1", "only the request was refused"
    assert state in ("", "kept", "new", "ended", "idle", "rolled_back"), (state, refusal)


@walked(WAYS)
def test_once(walk: Walk, point: str) -> None:
    """Nothing is lost."""
    once(walk, point, WAYS[point])


@pytest.mark.parametrize("point", ["warden.files_back", "settle.written"])
def test_a_branch_has_its_files_once(walk: Walk, point: str) -> None:
    session = f"filled-{point}"
    begin(walk, Way(cell("")), session)
    walk.run("open('f', 'w').write('1')", session)
    before = walk.deaths()
    walk.arm(f"abort {point} {session} 1")
    branch = m.Branch(id=0, session=session, branch=f"{session}.b", files=True)
    walk.ask(branch, m.SessionInfo)
    wait_until(lambda: walk.deaths() == before + 1, f"it died at {point}")
    assert walk.run("open('f').read()", f"{session}.b").text == "'1'"
    assert walk.run("open('f').read()", session).text == "'1'"
    walk.look_around()


def test_who_dies_of_a_stop_stops_again(tmp_path: Path) -> None:
    it = Walk(tmp_path / "order", SETTINGS)
    try:
        before = it.deaths()
        it.arm("abort request.stop - 1")
        it.ask(m.Stop(id=0), m.StopReply, patience=10)
        assert it.daemon.process.wait(30) == 0
        assert it.deaths() == before + 1
    finally:
        it.daemon.close()


@walked(WAYS)
def test_again_and_again(walk: Walk, point: str) -> None:
    """Whoever it is about ends, or is refused. Nobody else notices."""
    again_and_again(walk, point, WAYS[point])


@walked(HASTY)
def test_impatience_once(hasty: Walk, point: str) -> None:
    once(hasty, point, HASTY[point])


@walked(HASTY)
def test_impatience_again_and_again(hasty: Walk, point: str) -> None:
    again_and_again(hasty, point, HASTY[point])


def asked_for(walk: Walk, profile: str, session: str = "") -> str:
    """The refusal, or nothing."""
    try:
        walk.run(CODE, session or f"of-{profile}", profile=profile)
    except LairError as error:
        return str(error)
    return ""


def refusal_of(walk: Walk, profile: str) -> str:
    """The last word about it. A session that is there goes on, so each time it is another that asks."""
    deadline, n = time.monotonic() + 40, 0
    while "again and again" not in (refusal := asked_for(walk, profile, f"of-{profile}-{n}")):
        if time.monotonic() > deadline:
            break
        n += 1
        time.sleep(0.5)
    return refusal


@walked([*TEMPLATES, *IMAGES])
def test_a_template_once(of_templates: Walk, point: str) -> None:
    of_templates.arm(f"abort {point} other 1")
    assert of_templates.run(CODE, "of-other", profile="other").returncode == 0
    wait_until(lambda: of_templates.deaths() == 1, "it died of it", 20)
    assert of_templates.run("x", "of-other").text == "1"
    of_templates.look_around()


@walked(TEMPLATES)
def test_a_template_again_and_again(of_templates: Walk, point: str) -> None:
    """Its profile makes no sessions any more. Those of others do."""
    of_templates.arm(f"abort {point} other")
    assert "again and again" in refusal_of(of_templates, "other")
    assert of_templates.deaths() == 3
    assert of_templates.run("6 * 7", "of-default").text == "42"
    of_templates.look_around()
    assert of_templates.deaths() == 3


@pytest.fixture
def odd(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Walk]:
    """A profile whose template is odd as soon as a file says so."""
    point = request.getfixturevalue("point")
    laird = HASTE if point.endswith(".patience") else BIN / "laird"
    spares = "500" if point == "template.retry" else "0"
    settings = {"profile odd": {"spares": spares, "preload": ""}}
    it = Walk(tmp_path / "order", settings, install(tmp_path / "bin", laird))
    yield it
    it.daemon.end()


def odd_order(walk: Walk, point: str, times: str) -> None:
    """From the next router on its template is odd."""
    (walk.daemon.binaries / "mood").write_text(ODD[point])
    walk.arm(f"abort {point} {'odd' if point.startswith('template.') else 'of-odd'} {times}")


@walked(ODD)
def test_an_odd_template_once(odd: Walk, point: str) -> None:
    odd_order(odd, point, "1")
    if point != "template.retry":
        assert "again and again" not in asked_for(odd, "odd")
    wait_until(lambda: odd.deaths() == 1, "it died of it", 30)
    odd.look_around()
    (odd.daemon.binaries / "mood").write_text("")
    odd.arm("")
    assert odd.run(CODE, "of-another", profile="odd").returncode == 0
    assert odd.deaths() == 1
    odd.look_around()


@walked(ODD)
def test_an_odd_template_again_and_again(odd: Walk, point: str) -> None:
    """What it does is done no more. Sessions of other profiles go on."""
    odd_order(odd, point, "")
    if point.startswith("family."):
        # Of a cage that is never there it is the family that is given up, not its template: the next is tried.
        assert asked_for(odd, "odd").startswith("lost")
        odd.arm("")
    else:
        assert "again and again" in refusal_of(odd, "odd")
    died = odd.deaths()
    assert 3 <= died <= 12
    assert odd.run("6 * 7", "of-default").text == "42"
    odd.look_around()
    assert odd.deaths() == died


@pytest.fixture
def of_builds(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Walk]:
    late = request.getfixturevalue("point") == "builder.patience"
    settings = {
        "daemon": {"packages_store": str(tmp_path / "store")},
        "profile of-builds": {"packages": "on", "packages_timeout": "1s" if late else "10m"},
    }
    it = Walk(tmp_path / "order", settings, install(tmp_path / "bin", BIN / "laird"))
    (it.daemon.binaries / "mood").write_text("silent" if late else "")
    it.run("x = 1", "builds", profile="of-builds")
    yield it
    it.daemon.end()


def asked_for_packages(walk: Walk, name: str) -> str:
    reply = walk.run("x = 2", "builds", packages=[name])
    assert reply.state == "kept"
    return str(reply.error["value"])


def ordinary_answer(point: str) -> str:
    return "packages_timeout" if point == "builder.patience" else "no such thing"


@walked(BUILDS)
def test_a_build_once(of_builds: Walk, point: str) -> None:
    """It is begun anew, and who waits for it is answered."""
    of_builds.arm(f"abort {point} of-builds 1")
    assert ordinary_answer(point) in asked_for_packages(of_builds, "thing")
    assert of_builds.deaths() == 1
    assert of_builds.run("x", "builds").text == "1"
    of_builds.look_around()


@walked(BUILDS)
def test_a_build_again_and_again(of_builds: Walk, point: str) -> None:
    """It alone is refused, and everything else goes on."""
    of_builds.arm(f"abort {point} of-builds")
    assert "again and again" in asked_for_packages(of_builds, "thing")
    assert of_builds.deaths() == 3
    assert "again and again" in asked_for_packages(of_builds, "thing")
    assert of_builds.run("x", "builds").text == "1"
    of_builds.look_around()
    of_builds.arm("")
    assert ordinary_answer(point) in asked_for_packages(of_builds, "another")
    assert of_builds.deaths() == 3


@pytest.mark.long
def test_it_stands_still(of_templates: Walk) -> None:
    """Twice is enough: nobody is answered meanwhile. At the first, something else may have been in the same round."""
    of_templates.run("x = 1", "still")
    of_templates.arm("stall interpreter.done still")
    reply = of_templates.ask(m.Exec(id=0, session="still", code="print(2)"), m.ExecReply, 20, 60)
    assert (reply.state, reply.cause) == ("ended", "internal")
    assert b"it is ended" in reply.stderr
    assert of_templates.deaths() in (2, 3)
    of_templates.look_around()

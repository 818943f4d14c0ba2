"""lair.Connection: finding and starting a daemon, losing it, forks, and the end of the program."""

from __future__ import annotations

import os
import resource
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import zmq

import lair
from daemon import BIN, DEFAULTS, ROOT, Daemon, children, config_text, wait_until
from lair import Connection, LairError, Output, Result, Session, codec
from lair import connection as inner
from lair import messages as m


def program(
    code: str, env: dict[str, str], *arguments: str, timeout: float = 30
) -> subprocess.CompletedProcess[str]:
    """Run a Python of its own, with every warning an error."""
    return subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", *arguments, "-c", textwrap.dedent(code)],
        env={"PYTHONPATH": str(ROOT / "client/python"), "PYTHONDONTWRITEBYTECODE": "1", **env},
        capture_output=True,
        text=True,
        timeout=timeout,
    )


@pytest.fixture
def env(daemon: Daemon) -> dict[str, str]:
    return {"PATH": "/nowhere", "LAIR_SOCKET": str(daemon.socket)}


@pytest.fixture
def private(tmp_path: Path) -> Iterator[dict[str, str]]:
    """A place without a daemon, where one may be started."""
    config = tmp_path / "sessions.conf"
    config.write_text(config_text({"daemon": {**DEFAULTS["daemon"], "workspaces": str(tmp_path / "work")}}))
    tmp_path.chmod(0o700)
    env = {
        "PATH": f"{BIN}:/usr/bin:/bin",
        "HOME": str(tmp_path),
        "LAIR_SOCKET": str(tmp_path / "socket"),
        "LAIR_CONFIG": str(config),
    }
    yield env
    subprocess.run([str(BIN / "lair"), "stop"], env=env, capture_output=True, timeout=60)


# ---- finding and starting ----


def test_a_daemon_is_started_and_stays(private: dict[str, str]) -> None:
    first = program("import lair; lair.Session('a').run('x = 41')", private)
    assert first.returncode == 0, first.stderr
    second = program("import lair; print(lair.Session('a').run('x + 1').text)", private)
    assert (second.stdout, second.stderr) == ("42\n", "")


def test_it_is_found_where_path_does_not_lead(private: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / ".local").mkdir()
    (tmp_path / ".local/bin").symlink_to(BIN)
    env = {**private, "PATH": "/nowhere", "HOME": str(tmp_path)}
    done = program("import lair; print(lair.run('6 * 7').text)", env)
    assert done.stdout == "42\n", done.stderr


def test_import_loads_what_all_programs_need() -> None:
    """Each of these takes as long as a tenth of it."""
    heavy = (
        "asyncio",
        "concurrent.futures",
        "logging",
        "subprocess",
        "ssl",
        "lair.schema",
        "lair.aio",
        "lair.tools",
    )
    code = f"import sys, lair; print([it for it in {heavy} if it in sys.modules])"
    assert program(code, {}).stdout == "[]\n"


def test_several_at_once_start_one(private: dict[str, str]) -> None:
    code = "import lair; print(lair.run('1').text)"
    threads = []
    results: list[subprocess.CompletedProcess[str]] = []
    for _ in range(3):
        threads.append(threading.Thread(target=lambda: results.append(program(code, private))))
        threads[-1].start()
    for thread in threads:
        thread.join()
    assert [result.stdout for result in results] == ["1\n"] * 3, [result.stderr for result in results]


def refusal(connection: Connection) -> LairError:
    with connection, pytest.raises(LairError) as refused:
        lair.run("1", connection=connection)
    return refused.value


def test_none_is_started_where_that_is_forbidden_or_impossible(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert refusal(Connection(str(tmp_path / "socket"), start=False)).code == "no_daemon"
    assert refusal(Connection(str(tmp_path / "missing" / "socket"), start=False)).code == "no_daemon"
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("lair.start.PLACES", ())
    monkeypatch.setattr("sys.executable", str(tmp_path / "python3"))
    error = refusal(Connection(str(tmp_path / "socket")))
    assert (error.code, "PATH" in error.message) == ("start", True)


def test_one_that_cannot_start_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = tmp_path / "bad.conf"
    config.write_text("[daemon]\nnonsense = 1\n")
    monkeypatch.setenv("PATH", str(BIN))
    error = refusal(Connection(str(tmp_path / "socket"), config=str(config)))
    assert error.code == "start"
    assert f"{config}:2" in error.message


def test_a_place_where_others_may_put_a_socket_is_not_believed(daemon: Daemon, tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    (tmp_path / "socket").symlink_to(daemon.socket)
    assert refusal(Connection(str(tmp_path / "socket"), start=False)).code == "denied"


def test_a_socket_is_found_from_a_directory_that_is_gone(env: dict[str, str], tmp_path: Path) -> None:
    code = f"""
    import os
    import lair
    os.chdir({str(tmp_path)!r})
    os.rmdir({str(tmp_path)!r})
    print(lair.run("1").text)
    """
    result = program(code, env)
    assert (result.stdout, result.stderr) == ("1\n", "")


def test_a_path_too_long_for_a_socket(tmp_path: Path) -> None:
    with pytest.raises(LairError, match="too long"):
        Connection(str(tmp_path / ("x" * 200)))


# ---- what listens is no laird ----


@pytest.fixture
def impostor(tmp_path: Path) -> Iterator[zmq.Socket[bytes]]:
    """A ROUTER in laird's place."""
    context = zmq.Context()
    it = context.socket(zmq.ROUTER)
    it.setsockopt(zmq.LINGER, 0)
    it.bind(f"ipc://{tmp_path}/socket")
    yield it
    it.close()
    context.term()


def test_one_that_is_silent(tmp_path: Path, impostor: zmq.Socket[bytes]) -> None:
    started = time.monotonic()
    assert refusal(Connection(str(tmp_path / "socket"), start=False, timeout=0.3)).code == "deadline"
    assert time.monotonic() - started < 5


@pytest.mark.parametrize("frame", [b"", b"noise", codec.encode(m.StdoutEvent(id=0, data=b"")), b"\x93\x01\x01\x80"])
def test_one_that_talks_nonsense(tmp_path: Path, impostor: zmq.Socket[bytes], frame: bytes) -> None:
    def answer() -> None:
        identity, _ = impostor.recv_multipart()
        impostor.send_multipart([identity, frame])

    thread = threading.Thread(target=answer)
    thread.start()
    assert refusal(Connection(str(tmp_path / "socket"), start=False, timeout=5)).code == "protocol"
    thread.join()


def test_one_that_is_no_zeromq(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "socket"))
        listener.listen()
        error = refusal(Connection(str(tmp_path / "socket"), start=False, timeout=0.3))
    assert error.code == "deadline"


# ---- losing it ----


def test_a_daemon_that_dies_ends_what_waits_for_it(start_daemon: Callable[..., Daemon]) -> None:
    it = start_daemon()
    with Connection(str(it.socket), start=False) as connection:
        s = Session("a", connection=connection)
        s.run("x = 1")
        threading.Timer(0.3, it.process.kill).start()
        started = time.monotonic()
        with pytest.raises(LairError) as lost:
            s.run("import time; time.sleep(60)")
        assert lost.value.code in ("lost", "no_daemon")
        assert time.monotonic() - started < 20
        with pytest.raises(LairError) as gone:
            s.run("x")
        assert gone.value.code == "no_daemon"


def test_a_daemon_that_comes_back_is_found_again(start_daemon: Callable[..., Daemon]) -> None:
    it = start_daemon()
    with Connection(str(it.socket), start=False) as connection:
        assert lair.run("1", connection=connection).text == "1"
        assert it.terminate() == 0
        command = [str(BIN / "laird"), "--config", str(it.config), "--socket", str(it.socket)]
        again = subprocess.Popen(command, stderr=subprocess.DEVNULL, env=it.env)
        try:
            wait_until(it.socket.exists, "the second listens")
            wait_until(it._hello, "the second answers")
            assert lair.run("2", connection=connection).text == "2"
        finally:
            again.terminate()
            again.wait(20)


def test_a_daemon_that_falls_silent_is_given_up(
    start_daemon: Callable[..., Daemon], monkeypatch: pytest.MonkeyPatch
) -> None:
    it = start_daemon()
    (router,) = [
        pid for pid in children(it.process.pid) if b"--router" in Path(f"/proc/{pid}/cmdline").read_bytes()
    ]
    monkeypatch.setattr(inner, "SILENCE", 1.0)
    with Connection(str(it.socket), start=False, timeout=1) as connection:
        s = Session("a", connection=connection)
        assert s.run("import time; time.sleep(2.5); 1").text == "1"  # it is the cell that is silent
        os.kill(router, signal.SIGSTOP)
        try:
            started = time.monotonic()
            with pytest.raises(LairError) as lost:
                s.run("1")
            assert lost.value.code in ("lost", "deadline")
            assert time.monotonic() - started < 10
        finally:
            os.kill(router, signal.SIGCONT)
        assert s.run("2").text == "2"


def test_a_request_too_large_costs_nothing_but_itself(daemon: Daemon) -> None:
    with Connection(str(daemon.socket), start=False) as connection, Session(connection=connection) as s:
        with pytest.raises(LairError) as refused:
            s.run("#" * (64 << 20))
        assert refused.value.code == "too_large"
        with pytest.raises(LairError) as wrong:
            s.run("'\udcff'")
        assert wrong.value.code == "bad_request"
        for nonsense in ({"code": object()}, {"code": "1", "env": {"A": 1 << 70}, "values": "yes"}, {"code": 1}):
            with pytest.raises(LairError) as wrong:
                s.run(**nonsense)
            assert wrong.value.code == "bad_request"
        assert s.run("1").text == "1"


def test_a_slow_reader_holds_up_the_cell_and_not_the_memory(daemon: Daemon) -> None:
    size, seen = 200 << 20, 0
    with Connection(str(daemon.socket), start=False) as connection, Session(connection=connection) as s:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for event in s.stream(f"for _ in range({size} >> 20): print('x' * (1 << 20), end='')"):
            if isinstance(event, Output):
                if not seen:
                    time.sleep(2)
                    assert s.info().state == "busy"  # others are answered meanwhile
                seen += len(event.text)
        assert isinstance(event, Result)
        assert seen == size
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 120 << 10
        assert len(event.stdout) == 16 << 20
        assert event.stdout_dropped == size - (16 << 20)


def test_what_is_not_read_while_others_are_answered_is_told(
    daemon: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inner, "BACKLOG", 1 << 20)
    monkeypatch.setattr(inner, "BACKLOG_MAX", 4 << 20)
    with Connection(str(daemon.socket), start=False) as connection, Session(connection=connection) as s:
        events = s.stream("for _ in range(32): print('x' * (1 << 20), end='')\ndisplay('shown')\n'result'")
        seen = [next(events)]
        wait_until(lambda: s.info().state == "idle", "everything has come")
        *rest, result = events
    seen += rest
    assert isinstance(result, Result)
    written = [event for event in seen if isinstance(event, Output)]
    there, missing = sum(len(event.text) for event in written), sum(event.missing for event in written)
    assert (there + missing, result.stdout_dropped) == (32 << 20, missing)
    assert there < 8 << 20
    assert (len(result.displays), result.text) == (1, "'result'")


@pytest.mark.parametrize("n", [6, 8, 12])
def test_one_that_is_short_of_descriptors_is_told(env: dict[str, str], n: int) -> None:
    code = f"""
    import lair, resource
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, ({n}, hard))
    try:
        lair.run("1")
    except lair.LairError as error:
        print(error)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    print(lair.run("1").text)
    """
    result = program(code, env)
    assert (result.stdout, result.stderr) == ("internal: cannot connect: Too many open files\n1\n", "")


# ---- forks ----


def test_a_fork_has_a_connection_of_its_own(env: dict[str, str]) -> None:
    code = """
    import lair, os, sys, threading
    s = lair.Session()
    s.run("x = 1")
    running = threading.Thread(target=s.run, args=("import time; time.sleep(0.5)",))
    running.start()
    child = os.fork()
    if child == 0:
        with s:
            print(s.run("x").text, lair.Session().run("2").text)
        sys.exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    running.join()
    print(s.run("x").text, len(lair.sessions()))
    """
    result = program(code, env)
    assert (result.returncode, result.stdout, result.stderr) == (0, "1 2\n1 1\n", "")


def test_worker_processes(env: dict[str, str]) -> None:
    code = """
    import lair, multiprocessing
    def work(n):
        return lair.run(f"{n} * 2").text
    lair.run("1")
    with multiprocessing.get_context("fork").Pool(3) as pool:
        print(pool.map(work, range(6)))
        pool.close()
        pool.join()
    """
    result = program(code, env)
    assert (result.stdout, result.stderr) == ("['0', '2', '4', '6', '8', '10']\n", "")


def test_a_worker_process_ends_its_sessions(env: dict[str, str]) -> None:
    code = """
    import lair, multiprocessing
    def work():
        global s
        s = lair.Session()
        print(s.run("1").text, flush=True)
    worker = multiprocessing.get_context("fork").Process(target=work)
    worker.start()
    worker.join()
    print(lair.sessions())
    """
    result = program(code, env)
    assert (result.stdout, result.stderr) == ("1\n[]\n", "")


# ---- the end of the program ----

ENDINGS = {
    "in the middle of everything": """
        s, named = lair.Session(), lair.Session("kept")
        s.run("1"), named.run("1")
        threading.Thread(target=s.run, args=("import time; time.sleep(50)",), daemon=True).start()
        time.sleep(0.3)
        """,
    "with an exception": """
        s = lair.Session("kept")
        s.run("1")
        t = lair.Session()
        t.run("1")
        sys.excepthook = lambda *a: None
        raise ValueError
        """,
    "in a stream": """
        s = lair.Session("kept")
        events = s.stream("import time\\nwhile True: print(1, flush=True); time.sleep(0.1)")
        next(events)
        """,
    "with coroutines": """
        async def main():
            s = lair.aio.Session("kept")
            await s.run("1")
            t = lair.aio.Session()
            task = asyncio.ensure_future(t.run("import time; time.sleep(50)"))
            await asyncio.sleep(0.3)
        asyncio.run(main())
        """,
    "without having connected": """
        lair.Session()
        lair.Session("kept")
        """,
}


@pytest.mark.parametrize("code", ENDINGS.values(), ids=ENDINGS.keys())
def test_a_program_ends_without_a_word(daemon: Daemon, env: dict[str, str], code: str) -> None:
    started = time.monotonic()
    begin = "import lair, lair.aio, asyncio, sys, threading, time\n"
    result = program(begin + textwrap.dedent(code), env)
    assert (result.stdout, result.stderr) == ("", "")
    assert time.monotonic() - started < 10
    with Connection(str(daemon.socket), start=False) as connection:
        left = [info.session for info in lair.sessions(connection)]
        assert left in ([], ["kept"])
        if left:
            Session("kept", connection=connection).shutdown()


@pytest.mark.parametrize("end", ["pass", "del s", "s.close()"])
def test_a_daemon_is_not_started_to_end_a_session(private: dict[str, str], end: str) -> None:
    code = f"import lair, subprocess; s = lair.Session(); s.run('1'); subprocess.run(['lair', 'stop'], check=True); {end}"
    result = program(code, private)
    assert (result.returncode, result.stderr) == (0, "")
    assert not Path(private["LAIR_SOCKET"]).exists()


def test_ctrl_c_interrupts_the_cell(daemon: Daemon, env: dict[str, str]) -> None:
    code = """
    import lair, os, signal, threading
    s = lair.Session()
    s.run("x = 1")
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        s.run("while True: pass")
    except KeyboardInterrupt:
        print(s.run("x", deadline=10).text)
    """
    result = program(code, env)
    assert (result.stdout, result.stderr) == ("1\n", "")

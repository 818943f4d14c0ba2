"""What a profile says is what a session gets, or the template refuses and says why."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any, Dict

import pytest

from cage import OLD_KERNEL, ROOT, SHAPES, Host, Shape

PRELUDE = (Path(__file__).resolve().parent / "prelude.py").read_text()
NAMED = {shape.name: shape for shape in SHAPES}


def shape_of(name: str) -> Shape:
    shape = NAMED[name]
    if shape.root and not ROOT:
        pytest.skip(f"the shape {name} takes root to make")
    return shape


class Open:
    """A host and one session on it, for a with statement."""

    def __init__(self, name: str, **configure: Any) -> None:
        self.host = Host(shape_of(name), **configure)
        self.warden, self.python = self.host.session()

    def __enter__(self) -> Open:
        return self

    def __exit__(self, *error: object) -> None:
        self.warden.close()
        self.host.close()

    def value(self, code: str) -> Any:
        names = "\n".join(f"{name} = {value!r}" for name, value in self.host.world.parameters.items())
        assert self.python.run(f"{names}\n{PRELUDE}\nremove_hook()").returncode == 0
        result = self.python.run(code, timeout=60)
        assert result.returncode == 0 and result.text, result
        return eval(result.text)


ERRNO = """
def number(go):
    try: go()
    except OSError as error: return error.errno
    return 0
"""


@pytest.mark.parametrize("name", ["root", "user", "user-old-kernel", "root-without-userns"])
def test_read_everything_but_what_is_hidden(name: str) -> None:
    with Open(name, read=["/"], hide=["/etc/ssl", "/etc/security"]) as it:
        seen = it.value(
            "{'out': open(OUT + '/secret').read(), 'ssl': os.listdir('/etc/ssl'), 'hidden': os.listdir('/etc/security'),"
            " 'run': os.listdir('/run'), 'sys': os.listdir('/sys'), 'mine': os.listdir('.'),"
            " 'siblings': os.listdir(os.path.dirname(os.getcwd())) == [os.path.basename(os.getcwd())]}"
        )
        assert seen == {
            "out": "OUTSIDE",
            "ssl": [],
            "hidden": [],
            "run": [],
            "sys": [],
            "mine": [],
            "siblings": True,
        }
        denied = it.value(
            ERRNO + "[number(lambda: open(OUT + '/secret', 'w')), number(lambda: open('/usr/x', 'w')),"
            " number(lambda: os.mkdir('/x')), number(lambda: open('own', 'w')), number(lambda: os.mkdir('/etc/ssl/x'))]"
        )
        assert [bool(error) for error in denied] == [True, True, True, False, True]
        assert not it.host.world.visited()


def test_hidden_within_granted() -> None:
    with Open("root" if ROOT else "user") as outer:
        secret = str(outer.host.world.root / "out")
        with Open("root" if ROOT else "user", read=[str(outer.host.world.root)], write=[], hide=[secret]) as it:
            assert it.value(f"os.listdir({secret!r}), sorted(os.listdir({str(outer.host.world.root)!r}))") == (
                [],
                ["other", "out", "ro", "rw"],
            )


DUMP = """
import ctypes, os
libc = ctypes.CDLL(None)
n = 0
for line in open("/proc/self/maps"):
    span, mode = line.split()[:2]
    if mode[0] != "r" or "[v" in line: continue
    start, end = (int(x, 16) for x in span.split("-"))
    for at in range(start, end, 1 << 24):
        fd = os.open(f"{RW}/dump{n}", os.O_WRONLY | os.O_CREAT)
        n += 1
        libc.write(fd, ctypes.c_void_p(at), ctypes.c_size_t(min(end - at, 1 << 24)))
        os.close(fd)
n
"""


@pytest.mark.parametrize("name", ["root", "user"])
def test_what_is_hidden_has_no_name_inside(name: str) -> None:
    """Nor have other sessions' workspaces. It is looked for in all of a session's memory, from outside."""
    with Open(name) as outer:
        hidden = outer.host.world.root / "out" / "merger-with-acme"
        hidden.mkdir()
        with Open(name, hide=[str(hidden)]) as it:
            other, _ = it.host.session()
            warden, python = it.host.session()
            names = "\n".join(f"{name} = {value!r}" for name, value in it.host.world.parameters.items())
            assert int(python.run(names + DUMP, timeout=60).text or 0) > 10
            dumps = list((it.host.world.root / "rw").iterdir())
            memory = [path.read_bytes() for path in dumps]
            assert any(warden.workspace.encode() in part for part in memory)
            for secret in (hidden.name, it.warden.workspace, other.workspace):
                assert not [path for path, part in zip(dumps, memory) if secret.encode() in part], secret
            other.close()
            warden.close()


@pytest.mark.parametrize("name", ["root", "user", "user-without-namespaces"])
def test_tcp_ports(name: str) -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    with listener, Open(name, network=f"tcp:443,{port}") as it:
        found = it.value(
            ERRNO
            + f"""
def tcp(port): socket.create_connection(("127.0.0.1", port), 2).close()
def bound():
    with socket.socket() as s: s.bind(("127.0.0.1", 0))
def listening():
    with socket.socket() as s: s.listen()
(number(lambda: tcp({port})), number(lambda: tcp(TCP[1])) != 0, number(bound) != 0, number(listening) != 0,
 libc.socket(2, 2, 0), libc.socket(1, 1, 0), libc.socket(16, 3, 0), libc.socket(2, 1, 262))"""
        )
        assert found == (0, True, True, True, -1, -1, -1, -1)
        assert "netns" not in it.warden.ready["guards"]
        assert not it.host.world.visited()


@pytest.mark.parametrize("name", ["root", "user", "user-without-namespaces"])
def test_network_as_the_host(name: str) -> None:
    with Open(name, network="host") as it:
        found = it.value(
            ERRNO
            + """
def server():
    with socket.create_server(("127.0.0.1", 0)) as s: socket.create_connection(s.getsockname()).close()
(number(lambda: socket.create_connection(tuple(TCP), 2).close()), number(server), libc.socket(2, 2, 0) > 0,
 libc.socket(1, 1, 0), libc.socket(1, 2, 0), libc.socket(17, 3, 0))"""
        )
        assert found == (0, 0, True, -1, -1, -1)
        assert len(it.host.world.visited()) == 1


OPTIONS = """
def options(family, kind):
    with socket.socket(family, kind) as s:
        both = [(socket.SOL_SOCKET, n) for n in ("SO_RCVBUF", "SO_SNDBUF", "SO_REUSEADDR", "SO_REUSEPORT", "SO_KEEPALIVE")]
        if kind == socket.SOCK_STREAM:
            names = ("NODELAY", "MAXSEG", "KEEPIDLE", "KEEPINTVL", "KEEPCNT", "CORK", "QUICKACK", "USER_TIMEOUT", "LINGER2")
            both += [(socket.IPPROTO_TCP, "TCP_" + n) for n in names]
        else:
            both.append((socket.SOL_SOCKET, "SO_BROADCAST"))
        both.append((socket.IPPROTO_IP, "IP_TOS") if family == socket.AF_INET else (socket.IPPROTO_IPV6, "IPV6_V6ONLY"))
        if family == socket.AF_INET: both += [(0, 2, 64), (0, 11, 1), (0, 24, 1)]
        else: both += [(41, 25, 1), (41, 67, 0)]
        wrong = []
        for level, name, *value in both:
            n = getattr(socket, name) if isinstance(name, str) else name
            if number(lambda: s.setsockopt(level, n, *(value or [1024 if name == "TCP_MAXSEG" else 1]))): wrong.append(name)
            if number(lambda: s.getsockopt(level, n)): wrong.append(name)
        refused = [(1, 77), (1, 26), (1, 36), (6, 31), (6, 30), (6, 19), (0, 64), (41, 1), (17, 104), (270, 1)]
        found = [libc.setsockopt(s.fileno(), *of, bytes(64), 64) and ctypes.get_errno() for of in refused]
        return wrong, found == [errno.ENOPROTOOPT] * len(refused)
"""


@pytest.mark.parametrize("network", ["host", "tcp:443"])
@pytest.mark.parametrize("name", ["root", "user-without-namespaces"])
def test_options_of_the_internet(name: str, network: str) -> None:
    """Those that libraries set, and no others: neither programs for the kernel nor other protocols."""
    kinds = ["STREAM"] if network == "tcp:443" else ["STREAM", "DGRAM"]
    with Open(name, network=network) as it:
        for family in ("INET", "INET6"):
            for kind in kinds:
                found = it.value(ERRNO + OPTIONS + f"options(socket.AF_{family}, socket.SOCK_{kind})")
                assert found == ([], True), (family, kind)


@pytest.mark.parametrize("name", ["root", "user", "user-without-namespaces"])
def test_a_pair_becomes_no_other_connection(name: str) -> None:
    """Named sockets are not granted with a network: not to a pair either, whose ends may call connect."""
    with Open(name, network="host", read=["/"] if name == "root" else []) as it:
        found = it.value(
            ERRNO
            + """
found = []
for kind in (socket.SOCK_STREAM, socket.SOCK_SEQPACKET):
    for close in (False, True):
        ours, theirs = socket.socketpair(socket.AF_UNIX, kind)
        if close: theirs.close()
        found += [number(lambda: ours.connect(to)) for to in (OUT + "/stream", "\\0" + ABSTRACT)]
        number(lambda: ours.sendmsg([b"x"], [], 0, OUT + "/datagram"))
        ours.shutdown(2)
        found += [number(lambda: ours.connect("\\0" + ABSTRACT)), number(ours.listen), number(lambda: ours.bind("s"))]
found"""
        )
        assert all(found), found
        assert not it.host.world.visited()


HOME = """
outer = os.path.realpath("/proc/self/cwd")
with open("/home/user/f", "w") as f: f.write("content")
os.rename("f", "/home/user/g")
(os.getcwd(), outer, os.environ["HOME"], os.path.expanduser("~"), open("g").read(), os.listdir("/home/user"),
 number(lambda: open("/home/other", "w")), number(lambda: os.mkdir("/home/d")))"""


@pytest.mark.parametrize("name", ["root", "user", "user-old-kernel", "root-without-userns"])
@pytest.mark.parametrize("shown", ["nothing", "everything"])
def test_home(name: str, shown: str) -> None:
    """The workspace is there, and nothing else of that path."""
    read = ["/"] if shown == "everything" else ["/usr"]
    if shown == "everything" and not Path("/home/user").is_dir():
        pytest.skip("this host has no /home/user, and all of it is shown")
    with Open(name, home="/home/user", read=read) as it:
        found = it.value(ERRNO + HOME)
        assert found[:6] == ("/home/user",) * 4 + ("content", ["g"])
        assert all(found[6:])
        workspace = Path(it.warden.workspace)
        assert (workspace / "g").read_text() == "content"
        # It has no other path.
        assert it.value(f"os.path.exists({str(workspace)!r})") is False


def test_home_without_namespaces() -> None:
    with Open("user-without-namespaces", home="/home/user") as it:
        assert it.value("os.getcwd()") == it.warden.workspace


REFUSED: Dict[str, tuple[str, Dict[str, Any], str]] = {
    "a missing directory": ("user", {"read": ["/nowhere"]}, "/nowhere: No such file"),
    "a relative directory": ("user", {"write": ["here"]}, "here: Invalid"),
    "an unknown network": ("user", {"network": "tcp:0"}, "network: Invalid"),
    "an unknown level": ("user", {"level": "perfect"}, "level: Invalid"),
    "no memory cgroup": ("user", {"level": "strong"}, "no memory cgroup for it (lair doctor says more)"),
    "no namespaces": ("user-without-namespaces", {"level": "strong-nomem"}, "cannot make the namespaces"),
    "only a uid": ("root-with-nothing", {"level": "landlock"}, "this host gives uid"),
    "nothing": ("user-with-nothing", {"level": "landlock"}, "this host gives readonly"),
    "nothing to hide with": (
        "user-without-namespaces",
        {"read": ["/"], "hide": ["/etc"]},
        "takes a mount namespace",
    ),
    "a home that is the root": ("user", {"home": "/"}, "home = /: Invalid"),
    "a home that leads elsewhere": ("user", {"home": "/home/../usr"}, "home = /home/../usr: Invalid"),
    "a home above the system": ("user", {"home": "/etc"}, "lies in it"),
    "a home in the system": ("user", {"home": "/usr/none"}, "cannot be made in /usr"),
    "a home among devices": ("user", {"home": "/dev/home"}, "cannot be made in /dev"),
    "a home that hides a place": ("user", {"home": "/srv", "read": ["/srv"]}, "lies in it"),
    "ports without Landlock": ("user-old-kernel", {"network": "tcp:443"}, "takes Landlock 4"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str) -> None:
    name, configure, reason = REFUSED[case]
    with pytest.raises(AssertionError) as refusal:
        Host(shape_of(name), **configure)
    assert reason in str(refusal.value)


@pytest.mark.parametrize("call", OLD_KERNEL)
@pytest.mark.parametrize("root", [True, False], ids=["root", "user"])
def test_without_one_call(root: bool, call: str) -> None:
    """Each alone; the shapes of old kernels are without all of them together."""
    if root and not ROOT:
        pytest.skip("takes root to make")
    host = Host(Shape("-", root, "strong-nomem", (call,)))
    warden, python = host.session()
    names = "\n".join(f"{name} = {value!r}" for name, value in host.world.parameters.items())
    assert python.run(f"{names}\n{PRELUDE}\nremove_hook()").returncode == 0
    denied = python.run(
        ERRNO + "[number(lambda: open(p, 'w')) for p in (OUT + '/secret', RO + '/file', '/usr/x', 'own')]"
    )
    assert denied.text is not None and [bool(error) for error in eval(denied.text)] == [True, True, True, False]
    assert warden.ready["level"] == "strong-nomem"
    assert (call == "landlock_create_ruleset=ENOSYS") == ("landlock" not in " ".join(warden.ready["guards"]))
    warden.close()
    host.close()


def test_root_is_never_inside() -> None:
    if not ROOT:
        pytest.skip("takes root to try")
    host = Host(NAMED["root"])
    host.template.uid = 0
    with pytest.raises(AssertionError, match="Operation not permitted"):
        host.session()
    host.close()


def test_what_is_left_behind_dies() -> None:
    """Whatever hides from its interpreter, in every way there is, ends with the session: seen from outside."""
    for name in ("root", "user", "user-without-namespaces", "root-with-nothing"):
        if NAMED[name].root and not ROOT:
            continue
        with Open(name) as it:
            it.value("""
import signal, time
for depth in range(4):
    if os.fork() == 0:
        os.setsid()
        if os.fork(): os._exit(0)
        for s in range(1, 32):
            if s not in (9, 19): signal.signal(s, signal.SIG_IGN)
        while True:
            with open(RW + "/alive", "a") as file: file.write(".")
            time.sleep(0.01)
time.sleep(0.3)
1""")
            alive = it.host.world.root / "rw" / "alive"
            assert alive.stat().st_size > 0
            it.warden.control.close()
            import select
            import time

            assert select.select([it.warden.pidfd], [], [], 5)[0]
            size = alive.stat().st_size
            time.sleep(0.2)
            assert alive.stat().st_size == size, name

"""Finds the daemon, decides whether to trust it, and starts it: as liblair does in client/lib/start.c."""

from __future__ import annotations

import os
import socket as sockets
import stat
import sys

from .errors import DeadlineError, LairError

# The path of a Unix socket that somebody listens on cannot be longer.
SOCKET_PATH_MAX = 107


def default_socket() -> str:
    """The default path of this user's daemon."""
    if named := os.environ.get("LAIR_SOCKET"):
        return named
    if os.geteuid() == 0:
        return "/run/lair/socket"
    if runtime := os.environ.get("XDG_RUNTIME_DIR"):
        return f"{runtime}/lair/socket"
    return f"/tmp/lair-{os.geteuid()}/socket"


def find_socket(given: str | None) -> str:
    """The path is made absolute, because the daemon works in another directory."""
    path = given or default_socket()
    if not os.path.isabs(path):
        path = os.path.join(os.getcwd(), path)
    if len(os.fsencode(path)) > SOCKET_PATH_MAX:
        raise LairError("no_daemon", f"{path}: too long for the path of a socket")
    return path


def trust(socket: str) -> None:
    """A socket is trusted only if nobody but this user and root can put one into its directory."""
    directory = os.path.dirname(socket)
    try:
        status = os.stat(directory)
    except (FileNotFoundError, NotADirectoryError):
        raise LairError("no_daemon", f"no laird answers on {socket}; lair start starts one") from None
    except OSError as error:
        raise LairError("denied", f"{directory}: {error.strerror}") from None
    owned = status.st_uid in (os.geteuid(), 0) or os.geteuid() == 0
    if not owned or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise LairError(
            "denied",
            f"{directory}: others may put a socket there; it must be owned by you and writable by you alone",
        )


def listening(socket: str) -> bool:
    """Whether somebody listens on the socket."""
    with sockets.socket(sockets.AF_UNIX, sockets.SOCK_STREAM | sockets.SOCK_NONBLOCK) as probe:
        try:
            probe.connect(socket)
        except BlockingIOError:  # if the backlog is full, somebody listens, too
            return True
        except (FileNotFoundError, ConnectionRefusedError):
            return False
        except OSError as error:
            raise LairError(
                "denied",
                f"cannot connect to {socket}: {error.strerror}; socket_mode and socket_group in [daemon] of its"
                " sessions.conf decide who may",
            ) from None
    return True


# Where `lair` is if it is not in PATH, as that of a service or a notebook may be short.
PLACES = ("/usr/local/bin", "/usr/bin", "~/.local/bin")


def find_program(name: str) -> str | None:
    """The path of one of Lair's programs; or None."""
    import shutil

    places = (os.path.dirname(sys.executable), *map(os.path.expanduser, PLACES))
    return shutil.which(name) or shutil.which(name, path=os.pathsep.join(places))


def start_daemon(socket: str, config: str | None, timeout: float) -> None:
    """Have the command line start a daemon, or find that one runs. The daemon is then no child of this process."""
    import subprocess

    lair = find_program("lair")
    if lair is None:
        raise LairError(
            "start",
            f"no laird answers on {socket}, and there is no `lair` to start one, in PATH or {', '.join(PLACES)}:"
            " this package is the client only; install Lair itself, or name the socket of a daemon that runs",
        )
    command = [lair, "start", "--socket", socket]
    if config is not None:
        command += ["--config", config]
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=timeout
        )
    except subprocess.TimeoutExpired:
        raise DeadlineError(f"laird was not ready within {timeout:g} s") from None
    except OSError as error:
        raise LairError("start", f"cannot run {lair}: {error.strerror}") from None
    if done.returncode != 0:
        raise LairError("start", done.stderr.strip().removeprefix("lair: ") or f"{lair} start failed")

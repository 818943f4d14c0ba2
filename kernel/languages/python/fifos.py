"""multiprocessing's listeners, and with them its managers, without the sockets that no cage has.

A listener is a FIFO with a name. A client makes two more, one each way, opens its ends of them and writes their name into the
listener's. The listener opens the other ends and says so by one byte. It waits for nobody: a client that was killed after
it had written has no end open. All FIFOs lie in the session's own directories.
"""

import errno
import multiprocessing.connection
import os
import secrets
import select
from multiprocessing import util
from typing import Any, List, Optional

# The names that are replaced here are not public.
connection: Any = multiprocessing.connection
_SocketListener = connection.SocketListener
_SocketClient = connection.SocketClient
_TOKEN = 32
_HERE = b"!"


class _Connection(multiprocessing.connection.Connection):
    """Reads from one FIFO and writes to another."""

    def __init__(self, reading: int, writing: int) -> None:
        super().__init__(reading)
        self._writing = writing

    def _close(self) -> None:
        os.close(self._handle)  # type: ignore[attr-defined]
        os.close(self._writing)

    def _send(self, data: Any, write: Any = None) -> None:
        left = memoryview(data)
        while left:
            left = left[os.write(self._writing, left) :]


def _ways(address: str, token: str) -> List[str]:
    return [f"{address}.{token}.{way}" for way in ("in", "out")]


def _close(ends: List[int]) -> None:
    for end in ends:
        os.close(end)


def _remove(paths: List[str]) -> None:
    for path in paths:
        try:
            os.unlink(path)
        except FileNotFoundError:
            pass  # the other side was first


def _answer(paths: List[str]) -> Optional[_Connection]:
    """The listener's ends; None if the client has closed its own."""
    ends: List[int] = []
    try:
        for path, way in zip(paths, (os.O_RDONLY, os.O_WRONLY)):
            ends.append(os.open(path, way | os.O_NONBLOCK | os.O_CLOEXEC))
            os.set_blocking(ends[-1], True)
        os.write(ends[1], _HERE)
    except OSError:
        _close(ends)
        return None
    finally:
        _remove(paths)
    return _Connection(*ends)


class _Listener:
    """Takes the place of a listener on AF_UNIX."""

    def __init__(self, address: str) -> None:
        os.mkfifo(address, 0o600)
        self._address = address
        self._last_accepted = None
        # It is open for both ways, so that it does not end when nobody writes.
        self._fd = os.open(address, os.O_RDWR | os.O_CLOEXEC)
        self._unlink: Optional[Any] = util.Finalize(self, os.unlink, args=(address,), exitpriority=0)

    def accept(self) -> _Connection:
        connected = None
        while connected is None:
            connected = _answer(_ways(self._address, os.read(self._fd, _TOKEN).decode("ascii")))
        return connected

    def close(self) -> None:
        unlink, self._unlink = self._unlink, None
        if unlink is not None:
            os.close(self._fd)
            unlink()


def _wait(reading: int, knocking: int) -> None:
    """Waits until the listener has answered or is gone."""
    waiting = select.poll()
    waiting.register(reading, select.POLLIN)
    waiting.register(knocking, 0)
    waiting.poll()
    if os.read(reading, len(_HERE)) != _HERE:
        raise ConnectionRefusedError(errno.ECONNREFUSED, os.strerror(errno.ECONNREFUSED))


def _knock(knocking: int, address: str) -> _Connection:
    token = secrets.token_hex(_TOKEN // 2)
    paths = _ways(address, token)
    ends: List[int] = []
    try:
        for path in paths:
            os.mkfifo(path, 0o600)
        # A FIFO can be opened for both ways at any time, and then for writing at once, because somebody reads it.
        for path, way in zip((*paths, paths[0]), (os.O_RDWR, os.O_RDONLY | os.O_NONBLOCK, os.O_WRONLY)):
            ends.append(os.open(path, way | os.O_CLOEXEC))
        os.write(knocking, token.encode("ascii"))
        _wait(ends[1], knocking)
    except BaseException:
        _close(ends)
        _remove(paths)
        raise
    os.set_blocking(ends[1], True)
    os.close(ends[0])
    return _Connection(ends[1], ends[2])


def _connect(address: str) -> _Connection:
    try:
        # If nobody listens, this fails at once.
        knocking = os.open(address, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise ConnectionRefusedError(error.errno, error.strerror, address) from None
    try:
        return _knock(knocking, address)
    finally:
        os.close(knocking)


def _listener(address: Any, family: str, backlog: int = 1) -> Any:
    if family == "AF_UNIX":
        return _Listener(address)
    return _SocketListener(address, family, backlog)


def _client(address: Any) -> Any:
    if connection.address_type(address) == "AF_UNIX":
        return _connect(address)
    return _SocketClient(address)


connection.SocketListener = _listener
connection.SocketClient = _client

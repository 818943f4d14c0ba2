"""multiprocessing's listeners, and with them its managers, without the sockets that no cage has.

A listener is a FIFO with a name. Who wants to talk to it makes two more, one each way, and writes into it what they are
called. All of them lie in the session's own directories.
"""

import multiprocessing.connection
import os
import secrets
from multiprocessing import util
from typing import Any, Optional

# What is replaced is none of its public names.
connection: Any = multiprocessing.connection
_SocketListener = connection.SocketListener
_SocketClient = connection.SocketClient
_TOKEN = 32


class _Connection(multiprocessing.connection.Connection):
    """One that reads here and writes there."""

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


class _Listener:
    """In place of one of AF_UNIX."""

    def __init__(self, address: str) -> None:
        os.mkfifo(address, 0o600)
        self._address = address
        self._last_accepted = None
        # Open both ways, so that it lasts when nobody writes.
        self._fd = os.open(address, os.O_RDWR | os.O_CLOEXEC)
        self._unlink: Optional[Any] = util.Finalize(self, os.unlink, args=(address,), exitpriority=0)

    def accept(self) -> _Connection:
        token = os.read(self._fd, _TOKEN).decode("ascii")
        paths = [f"{self._address}.{token}.{way}" for way in ("in", "out")]
        reading = os.open(paths[0], os.O_RDONLY | os.O_CLOEXEC)
        writing = os.open(paths[1], os.O_WRONLY | os.O_CLOEXEC)
        for path in paths:
            os.unlink(path)
        return _Connection(reading, writing)

    def close(self) -> None:
        unlink, self._unlink = self._unlink, None
        if unlink is not None:
            os.close(self._fd)
            unlink()


def _connect(address: str) -> _Connection:
    token = secrets.token_hex(_TOKEN // 2)
    paths = [f"{address}.{token}.{way}" for way in ("in", "out")]
    try:
        # Without a listener that is an error at once.
        knocking = os.open(address, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise ConnectionRefusedError(error.errno, error.strerror, address) from None
    try:
        for path in paths:
            os.mkfifo(path, 0o600)
        os.write(knocking, token.encode("ascii"))
    finally:
        os.close(knocking)
    writing = os.open(paths[0], os.O_WRONLY | os.O_CLOEXEC)
    reading = os.open(paths[1], os.O_RDONLY | os.O_CLOEXEC)
    return _Connection(reading, writing)


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

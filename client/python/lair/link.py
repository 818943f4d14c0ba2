"""One ZeroMQ connection to laird, from its handshake to its loss. It belongs to one thread."""

from __future__ import annotations

import os

import zmq

from . import codec
from . import messages as m
from .errors import DeadlineError, LairError

# So long that it never happens. If a connection is lost, we make a new one, since laird would not know one that
# ZeroMQ makes.
_RECONNECT_MS = 24 * 3600 * 1000
# How many descriptors a connection takes, and some more.
_DESCRIPTORS = 16


class Lost(Exception):
    """The connection has ended."""


def _require_descriptors() -> None:
    """libzmq aborts the process if there are fewer descriptors."""
    opened: list[int] = []
    try:
        while len(opened) < _DESCRIPTORS:
            opened.append(os.open(os.devnull, os.O_RDONLY))
    except OSError as error:
        raise LairError("internal", f"cannot connect: {error.strerror}") from None
    finally:
        for descriptor in opened:
            os.close(descriptor)


class Link:
    """One ZeroMQ connection, from connecting to its loss. ZeroMQ does not make it again: laird would not know
    it."""

    def __init__(self, socket: str) -> None:
        _require_descriptors()
        self._context = zmq.Context()
        self.dealer = self._context.socket(zmq.DEALER)
        self.dealer.setsockopt(zmq.LINGER, 0)
        self.dealer.setsockopt(zmq.SNDHWM, 0)
        self.dealer.setsockopt(zmq.RECONNECT_IVL, _RECONNECT_MS)
        ends = zmq.EVENT_DISCONNECTED | zmq.EVENT_CLOSED | zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL
        ends |= zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL | zmq.EVENT_HANDSHAKE_FAILED_AUTH
        self.monitor = self.dealer.get_monitor_socket(ends)
        self.dealer.connect(f"ipc://{socket}")
        self.frame_max = 0
        self.daemon: str | None = None

    def close(self) -> None:
        self.dealer.disable_monitor()
        self.monitor.close(linger=0)
        self.dealer.close()
        self._context.term()

    def greet(self, timeout: float) -> None:
        """Before any other request, the process that listens must answer as a daemon of our version."""
        self.dealer.send(codec.encode(m.Hello(id=0, client="lair for Python")))
        if not self._wait(timeout):
            raise DeadlineError("the process that listens on the socket does not answer")
        kind, content = codec.unpack(self.dealer.recv())
        if kind == "error":
            error = codec.read(m.ErrorReply, content)
            raise LairError(error.code, error.message)
        hello = codec.read(m.HelloReply, content)
        self.frame_max, self.daemon = hello.frame_max, hello.instance

    def _wait(self, timeout: float) -> bool:
        poller = zmq.Poller()
        poller.register(self.dealer, zmq.POLLIN)
        poller.register(self.monitor, zmq.POLLIN)
        ready = dict(poller.poll(max(0, int(timeout * 1000))))
        if self.dealer in ready:
            return True
        if self.monitor in ready:
            raise Lost
        return False


def open_link(socket: str, timeout: float) -> Link:
    link = Link(socket)
    try:
        link.greet(timeout)
    except BaseException:
        link.close()
        raise
    return link

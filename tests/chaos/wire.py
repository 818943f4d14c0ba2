"""A connection to laird that asks again until it is answered, the way a careful client does.

Every request that changes something carries a key, so that asking twice does nothing twice. What is counted here is
what the chaos is about: how often it took more than once.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

import zmq

from lair import codec
from lair import messages as m

R = TypeVar("R", bound=codec.Message)

PATIENCE = 2.0  # of silence, before the same is asked over a new connection
DEADLINE = 300.0  # a request that takes longer, on however slow a machine, is lost


class Refused(Exception):
    """laird's error reply."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code


class Lost(Exception):
    """No answer at all."""


class Provider(Protocol):
    """Does what a cell calls: its calls come with their numbers."""

    def called(self, number: int, arguments: dict[str, Any]) -> Any: ...

    def heard(self, number: int) -> None:
        """laird has the answer, and will not ask for it again."""


class Connection:
    """One client, one request at a time."""

    def __init__(self, socket: str) -> None:
        self._path = f"ipc://{socket}"
        self._context = zmq.Context()
        self._id = int(time.monotonic() * 1000)
        self.resent = 0
        self._connect()

    def _connect(self) -> None:
        self._socket = self._context.socket(zmq.DEALER)
        self._socket.setsockopt(zmq.LINGER, 0)
        self._socket.connect(self._path)

    def close(self) -> None:
        self._socket.close()
        self._context.term()

    def call(self, request: Callable[[int], m.Request], reply: type[R], provider: Provider | None = None) -> R:
        """Send what `request` makes of an id until something final comes back. `provider` does what its cell calls."""
        self._id += 1
        own = self._id
        frame = codec.encode(request(own))
        deadline = time.monotonic() + DEADLINE
        while time.monotonic() < deadline:
            self._socket.send(frame)
            answer = self._answer(own, provider)
            if answer is None:
                self._socket.close()
                self._connect()
                self.resent += 1
                continue
            kind, content = answer
            if kind == "error":
                raise Refused(content["code"], content["message"])
            return codec.read(reply, content)
        raise Lost(f"lost: {type(request(0)).__name__} was not answered within {DEADLINE:.0f} s")

    def _answer(self, request_id: int, provider: Provider | None) -> tuple[str, dict[str, Any]] | None:
        """The final message of a request, or None after a while of silence."""
        returned: dict[int, int] = {}  # calls by the requests that answer them
        while self._socket.poll(PATIENCE * 1000):
            kind, content = codec.unpack(self._socket.recv())
            id = content.get("id")
            if id == request_id and kind in ("reply", "error"):
                return kind, content
            if id == request_id and kind == "call" and provider:
                value = provider.called(content["number"], content["arguments"])
                self._id += 1
                returned[self._id] = content["number"]
                self._socket.send(
                    codec.encode(m.Return(id=self._id, exec=request_id, number=content["number"], value=value))
                )
            elif id in returned and kind == "reply" and provider:
                provider.heard(returned[id])
        return None

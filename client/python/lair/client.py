"""The plain client: requests, and the events and the one final message that answer each of them, step by step.

It is the protocol and nothing else, for tests and for programs that need just that. One thread at a time may use a
Client. It starts no daemon, does not connect again, and a message that nobody waits for is an error.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from typing import Any, TypeVar, cast

import zmq

from . import codec, steps
from . import messages as m
from .errors import seconds
from .messages import EVENTS, Event
from .result import refusal
from .start import default_socket

T = TypeVar("T")
R = TypeVar("R", bound=codec.Message)


class Client:
    """A connection to laird. Any number of requests may be on their way at once."""

    def __init__(self, socket: str | None = None, timeout: float = 60.0) -> None:
        """`timeout` bounds the wait for each message, in seconds."""
        self.timeout = timeout
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.DEALER)
        self._socket.setsockopt(zmq.LINGER, 0)
        self._socket.setsockopt(zmq.SNDHWM, 0)
        self._socket.setsockopt(zmq.RCVHWM, 0)
        self._socket.connect(f"ipc://{socket or default_socket()}")
        self._last_id = 0
        self._inbox: dict[int, deque[tuple[str, dict[str, Any]]]] = {}

    def close(self) -> None:
        self._socket.close()
        self._context.term()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    # ---- a request, step by step ----

    def new_id(self) -> int:
        self._last_id += 1
        return self._last_id

    def send(self, request: m.Request) -> int:
        """Send a request and return its id, to receive its answers."""
        self._inbox[request.id] = deque()
        self._socket.send(codec.encode(request))
        return request.id

    def receive(self, request_id: int, reply: type[R], timeout: float | None = None) -> Event | R:
        """The next event of a request, or its final message. Raises LairError, or TimeoutError."""
        kind, content = self._next(request_id, self.timeout if timeout is None else timeout)
        if kind in EVENTS:
            return cast(Event, codec.read(EVENTS[kind], content))
        del self._inbox[request_id]
        if kind == "error":
            error = codec.read(m.ErrorReply, content)
            raise refusal(error)
        if kind != "reply":
            raise codec.CodecError(f"a message of type {kind!r}")
        return codec.read(reply, content)

    def finish(self, request_id: int, reply: type[R], timeout: float | None = None) -> R:
        """The final message of a request. Its events are left out."""
        while True:
            message = self.receive(request_id, reply, timeout)
            if isinstance(message, reply):
                return message

    def call(self, request: m.Request, reply: type[R], timeout: float | None = None) -> R:
        return self.finish(self.send(request), reply, timeout)

    def _do(self, what: steps.Steps[T]) -> T:
        """Does what the steps say. An error goes to the caller: nothing is begun again."""
        answer: Any = None
        while True:
            try:
                request, reply = what.send(answer)
            except StopIteration as end:
                result: T = end.value
                return result
            request.id = self.new_id()
            answer = self.call(request, reply)

    def _next(self, request_id: int, timeout: float) -> tuple[str, dict[str, Any]]:
        deadline = time.monotonic() + timeout
        inbox = self._inbox[request_id]
        while not inbox:
            left = deadline - time.monotonic()
            if left < 0 or not self._socket.poll(left * 1000):
                raise TimeoutError(f"no answer to request {request_id} within {timeout} s")
            kind, content = codec.unpack(self._socket.recv())
            receiver = self._inbox.get(content.get("id", 0))
            if receiver is None:
                raise codec.CodecError(f"a message nobody waits for: {kind} {content}")
            receiver.append((kind, content))
        return inbox.popleft()

    # ---- the requests ----

    def hello(self) -> m.HelloReply:
        return self.call(m.Hello(id=self.new_id(), client="lair for Python"), m.HelloReply)

    def open(self, session: str, profile: str | None = None) -> m.SessionInfo:
        return self.call(m.Open(id=self.new_id(), session=session, profile=profile), m.SessionInfo)

    def start(
        self,
        code: str,
        session: str | None = None,
        *,
        profile: str | None = None,
        timeout: float | None = None,
        stream: bool = False,
        input: bool = False,
    ) -> int:
        """Send a cell without waiting for it. Call receive() or finish() with the returned id and ExecReply."""
        return self.send(
            m.Exec(
                id=self.new_id(),
                session=session,
                profile=profile,
                code=code,
                timeout=seconds("timeout", timeout),
                stream=stream,
                input=input,
            )
        )

    def exec(
        self, code: str, session: str | None = None, *, profile: str | None = None, timeout: float | None = None
    ) -> m.ExecReply:
        """Run a cell. Without a session it runs in one of its own, which ends with the cell."""
        cell = self.start(code, session, profile=profile, timeout=timeout)
        return self.finish(cell, m.ExecReply, None if timeout is None else self.timeout + timeout)

    def stream(
        self, code: str, session: str | None = None, *, profile: str | None = None, timeout: float | None = None
    ) -> Iterator[Event | m.ExecReply]:
        """Run a cell and yield its output as it comes; the ExecReply is the last item."""
        cell = self.start(code, session, profile=profile, timeout=timeout, stream=True)
        while True:
            message = self.receive(cell, m.ExecReply)
            yield message
            if isinstance(message, m.ExecReply):
                return

    def input(self, cell: int, text: str | None, number: int = 0) -> None:
        """Answer the question of a cell that was started with input=True; None is the end of its input. `number`: of the
        AskEvent; LairError `gone` if that is not the open question."""
        self.call(m.Input(id=self.new_id(), exec=cell, text=text, eof=text is None, number=number), m.Reply)

    def calls(self, session: str | None = None) -> list[m.CallRecord]:
        """The calls of functions that wait for an answer."""
        reply = self.call(m.Calls(id=self.new_id(), session=session), m.CallsReply)
        return [codec.read(m.CallRecord, item) for item in reply.calls]

    def answer_call(self, number: int, session: str | None = None, **answer: Any) -> None:
        """Answer a call, or approve it; `answer` has fields of AnswerCall."""
        self.call(m.AnswerCall(id=self.new_id(), session=session, number=number, **answer), m.Reply)

    def interrupt(self, session: str) -> bool:
        return self.call(m.Interrupt(id=self.new_id(), session=session), m.InterruptReply).interrupted

    def cancel(self, cell: int) -> bool:
        """Interrupt a cell that was started here, or take it out of its queue."""
        return self.call(m.Interrupt(id=self.new_id(), exec=cell), m.InterruptReply).interrupted

    def reset(self, session: str) -> m.ResetReply:
        return self.call(m.Reset(id=self.new_id(), session=session), m.ResetReply)

    def shutdown(self, session: str) -> None:
        self.call(m.Shutdown(id=self.new_id(), session=session), m.Reply)

    def checkpoint(self, session: str, name: str | None = None) -> m.StateReply:
        return self.call(m.Checkpoint(id=self.new_id(), session=session, name=name), m.StateReply)

    def checkpoints(self, session: str) -> list[m.CheckpointRecord]:
        reply = self.call(m.Checkpoints(id=self.new_id(), session=session), m.CheckpointsReply)
        return [codec.read(m.CheckpointRecord, item) for item in reply.checkpoints]

    def restore(self, session: str, name: str) -> m.StateReply:
        return self.call(m.Restore(id=self.new_id(), session=session, name=name), m.StateReply)

    def drop(self, session: str, name: str) -> None:
        self.call(m.Drop(id=self.new_id(), session=session, name=name), m.Reply)

    def undo(self, session: str, n: int = 1) -> m.StateReply:
        if n < 1:
            raise ValueError("how many states to go back: 1 or more")
        return self.call(m.Undo(id=self.new_id(), session=session, n=n), m.StateReply)

    def branch(
        self,
        session: str,
        new: str,
        *,
        checkpoint: str | None = None,
        files: bool | None = None,
        at_call: bool = False,
    ) -> m.SessionInfo:
        """Make a session that begins as a checkpoint of this one, or as this one is now; also in the middle of a
        cell that waits for calls."""
        request = m.Branch(
            id=self.new_id(),
            session=session,
            branch=new,
            origin=checkpoint,
            files=files is True,
            share=files is False,
            at_call=at_call,
        )
        return self.call(request, m.SessionInfo)

    # ---- files: paths are beneath the session's workspace; they are bytes if they are not text ----

    def put(self, session: str, path: str | bytes, data: bytes, *, mode: int = 0o644) -> None:
        """Make a file with this content, and the directories above it. The file appears when it is complete."""
        self._do(steps.put(session, path, data, mode))

    def make_directory(self, session: str, path: str | bytes) -> None:
        self._do(steps.make_directory(session, path))

    def get(self, session: str, path: str | bytes) -> bytes:
        """The content of a file. It may change meanwhile, but all of it is from one file, and not more than the
        file had at first."""
        return self._do(steps.get(session, path))

    def files(self, session: str, path: str | bytes = b"", *, host: bool = False) -> list[m.FileRecord]:
        """The content of a directory. With `host` it is one of the host, if the profile's import allows it."""
        return self._do(steps.records(session, path, host))

    def copy_in(self, session: str, source: str | bytes, path: str | bytes | None = None) -> int:
        """Have the daemon copy a file of the host, if the profile's import allows it. Returns its size."""
        return self._do(steps.copy_in(session, source, path))

    def info(self, session: str) -> m.SessionInfo:
        return self.call(m.Info(id=self.new_id(), session=session), m.SessionInfo)

    def list(self) -> list[m.SessionInfo]:
        reply = self.call(m.ListSessions(id=self.new_id()), m.ListReply)
        return [codec.read(m.SessionInfo, item) for item in reply.sessions]

    def stats(self) -> m.StatsReply:
        return self.call(m.Stats(id=self.new_id()), m.StatsReply)

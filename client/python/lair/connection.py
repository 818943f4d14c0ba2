"""A connection to laird that any number of threads and event loops share.

A socket of ZeroMQ belongs to one thread, so one thread does all input and output: it alone touches the socket and the
pending calls. Other threads post functions for it to run, and get the answers of a call through the call's sink,
which must not block. The thread connects when there is something to send, starts a daemon if none answers, and ends with
the connection. After a fork the child's connection is a new one.

Every request that changes something has a key. So when a connection ends or falls silent, pending requests are sent
again, and still done once; output goes on where it stopped. They are sent only to the same daemon: another would run
the cell in a session that has forgotten everything.

If a program reads the events of a cell too slowly, the daemon waits, and with it the cell, and the memory of this process
does not grow: nothing is received while every pending call has more than enough to read. If only some have, the
output of calls with 128 MiB to read is dropped, and the next Output says so; nothing else is dropped.
"""

from __future__ import annotations

import atexit
import os
import queue
import sys
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Generic, Protocol, TypeVar, cast

import zmq

from . import codec
from . import messages as m
from .calling import Hear, refused, unsendable
from .errors import BEGIN_AGAIN, DeadlineError, LairError
from .link import Link, Lost, open_link
from .result import refusal
from .start import find_socket, listening, start_daemon, trust

# If calls are pending and nothing has come for so many seconds, laird is asked for a sign of life, and has as many
# seconds again to answer.
SILENCE = 15.0
# When the program ends, it may wait so many seconds for the end of its sessions.
FAREWELL = 2.0
# If a call has more bytes than this to read, it can wait.
BACKLOG = 8 << 20
# If it has more than this, and other calls cannot wait, its output is dropped.
BACKLOG_MAX = 128 << 20

_Output = m.StdoutEvent | m.StderrEvent
R = TypeVar("R", bound=m.Reply | m.SessionInfo)


class Sink(Protocol):
    def put(self, item: Any, /) -> None: ...


class Call(Generic[R]):
    """A pending request. Its sink gets events, and then the reply or an exception."""

    __slots__ = ("answered", "asks", "dropped", "given", "reply", "request", "seen", "sink", "taken")

    def __init__(self, request: m.Request, reply: type[R], sink: Sink) -> None:
        self.request = request
        self.reply = reply
        self.sink = sink
        self.given = 0  # bytes of output in the sink, written by the thread of the connection alone,
        self.taken = 0  # and bytes that were read, written by the reader alone
        # How much of each has come.
        self.seen = {name: getattr(request, name, 0) for name in ("stdout", "stderr", "displays")}
        self.dropped: dict[type[_Output], int] = {}  # how far the last output reached, if it was dropped
        self.asks = 0  # the number of the last question that has come
        self.answered = False  # the sink has its last item

    @property
    def name(self) -> str:
        """Of the cell: the same over every connection."""
        request = self.request
        assert isinstance(request, m.Exec | m.Attach)
        return request.key or f"{request.session}-{getattr(request, 'cell', 0)}"

    def give(self, event: m.Event) -> None:
        """An event has come, and need not come again. If it is dropped, the event after it says so by its `at`."""
        if isinstance(event, m.StdoutEvent | m.StderrEvent):
            end = event.at + len(event.data)
            if self.given - self.taken > BACKLOG_MAX:
                self.dropped[type(event)] = end
                return
            self.dropped.pop(type(event), None)
            self.seen[event.TYPE] = end
        elif isinstance(event, m.DisplayEvent):
            self.seen["displays"] = event.at + 1
        self.given += _size(event)
        self.sink.put(event)

    def answer(self, outcome: Any) -> None:
        for stream, end in self.dropped.items():
            self.sink.put(stream(id=0, data=b"", at=end))
        self.answered = True
        self.sink.put(outcome)

    def patience(self, until: float) -> float | None:
        """How long the reader may wait for the next item. If the answer came in time, it may be read late. If it
        did not, the call is late, however much there is to read before."""
        if self.answered:
            return None
        left = until - time.monotonic()
        if left <= 0:
            raise DeadlineError("no answer came in time")
        return left

    def give_key(self) -> None:
        """Gives the request a key, so that it is done once, even if it is sent again. An attach has the key of
        another request, if any."""
        request = self.request
        if hasattr(request, "key") and request.key is None and not isinstance(request, m.Attach):
            request.key = os.urandom(12).hex()

    def prepare_again(self) -> None:
        if isinstance(self.request, m.Exec | m.Attach):
            for name, seen in self.seen.items():
                setattr(self.request, name, seen)


def about(cell: m.Request, number: int) -> m.AnswerCall:
    """To answer a call of the cell that this is the request of."""
    assert isinstance(cell, m.Exec | m.Attach)
    if cell.key is not None:
        return m.AnswerCall(id=0, of=cell.key, number=number)
    return m.AnswerCall(id=0, session=cell.session, cell=getattr(cell, "cell", 0), number=number)


def _size(event: m.Event) -> int:
    if isinstance(event, m.DisplayEvent):
        return sum(len(value) for value in event.data.values())
    return len(event.data) if isinstance(event, m.StdoutEvent | m.StderrEvent) else 0


class _Nobody:
    """The sink of callers who want no answer."""

    def put(self, item: Any, /) -> None:
        pass


class _Then:
    """A sink that is a function."""

    def __init__(self, put: Callable[[Any], None]) -> None:
        self.put = put


class Connection:
    """A connection to laird, to be shared freely. It is made when it is first used, and again when it was lost."""

    def __init__(
        self, socket: str | None = None, *, config: str | None = None, start: bool = True, timeout: float = 30.0
    ) -> None:
        """`socket`: instead of $LAIR_SOCKET or the default path. `config`: sessions.conf for a daemon that must be
        started. `start=False` forbids to start one. `timeout`: for connecting, including the start, in seconds."""
        self.socket = find_socket(socket)
        self.timeout = timeout
        self._config = config if config is not None else os.environ.get("LAIR_CONFIG")
        self._may_start = start
        self._closed = False
        self._begin()
        _connections.add(self)

    def _begin(self) -> None:
        self._lock = threading.RLock()  # the garbage collector may post, too
        self._thread: threading.Thread | None = None
        self._wake = -1
        self._posted: deque[Callable[[], None]] = deque()
        self._adopted: set[str] = set()
        # Only the thread uses the rest.
        self._link: Link | None = None
        self._calls: dict[int, Call[Any]] = {}
        self._last_id = 0
        self._heard = self._asked = 0.0
        self._idle = False  # every pending call has enough to read
        self._stopping = False

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    # ---- for all threads ----

    def submit(self, request: m.Request, reply: type[R], sink: Sink) -> Call[R]:
        """Send a request. The connection chooses its id."""
        call = Call(request, reply, sink)
        self._post(lambda: self._send(call))
        return call

    def answer(self, call: Call[Any], text: str | None, number: int) -> None:
        """Answer the question of that number; None is the end of the input. If somebody else has answered it, nothing is
        to be done: the cell's next question comes by itself."""

        def answered(outcome: Any) -> None:
            if isinstance(outcome, LairError) and outcome.code != "gone":
                call.sink.put(outcome)  # the cell still waits

        def answer() -> None:
            request = m.Input(id=0, exec=call.request.id, text=text, eof=text is None, number=number)
            self._send_about(call, Call(request, m.Reply, _Then(answered)))

        self._post(answer)

    def give_back(self, call: Call[Any], answer: m.Return) -> None:
        """Answer a call of the cell."""

        def answered(outcome: Any) -> None:
            if refused(outcome):  # the cell still waits
                instead = unsendable(answer, outcome)
                if instead is None:
                    call.sink.put(outcome)
                else:
                    self.give_back(call, instead)

        def give() -> None:
            request = replace(answer, exec=call.request.id)
            self._send_about(call, Call(request, m.Reply, _Then(answered)))

        self._post_if_open(give)

    def decide(self, call: Call[Any], number: int, refusal: str | None) -> None:
        """Approve a call that asks, or refuse it and say why. If somebody else has, nothing is to be done."""

        def answered(outcome: Any) -> None:
            if refused(outcome):
                call.sink.put(outcome)  # the cell still waits

        def decide() -> None:
            request = about(call.request, number)
            request.approve = refusal is None
            request.error, request.text = (None, None) if refusal is None else ("PermissionError", refusal)
            self._send_about(call, Call(request, m.Reply, _Then(answered)))

        self._post_if_open(decide)

    def hear(self, call: Call[Any]) -> Hear:
        """For the calls of functions that the cell of this call makes."""
        return Hear(call.name, partial(self.give_back, call), partial(self.decide, call), call.sink.put)

    def cancel(self, call: Call[Any]) -> None:
        """Interrupt the cell of a call, or take it out of its queue, and drop its answers."""

        def interrupt() -> None:
            call.sink = _Nobody()
            request = m.Interrupt(id=0, exec=call.request.id)
            # The call is forgotten only when this is answered: if the connection is lost, both are sent again.
            self._send_about(call, Call(request, m.InterruptReply, _Then(lambda outcome: self._forget(call))))

        self._post_if_open(interrupt)

    def forget(self, call: Call[Any]) -> None:
        """Drop the answers of a call. Its request is done nevertheless."""
        self._post_if_open(lambda: self._forget(call))

    def taken(self, call: Call[Any], event: m.Event) -> None:
        """The reader of a call has read an event."""
        call.taken += _size(event)
        if self._idle:
            self._post_if_open(lambda: None)

    def adopt(self, session: str) -> None:
        """Make a session end with this connection, and so with this program."""
        with self._lock:
            self._adopted.add(session)

    def disown(self, session: str) -> bool:
        """The session no longer ends with this connection. Returns False if it did not before."""
        with self._lock:
            known = session in self._adopted
            self._adopted.discard(session)
            return known

    def abandon(self, session: str) -> None:
        """End a session, if it was adopted, without waiting for it."""
        if self.disown(session):
            self._end_session(session, _Nobody())

    def close(self) -> None:
        """Disconnect. Pending calls fail. Sessions live on, except those that were adopted."""
        with self._lock:
            thread, adopted, self._closed, self._adopted = self._thread, self._adopted, True, set()
        if thread is None:
            return
        ended: queue.SimpleQueue[Any] = queue.SimpleQueue()
        for session in adopted:
            self._end_session(session, ended)
        deadline = time.monotonic() + FAREWELL
        for _ in adopted:
            try:
                ended.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                break
        self._post_if_open(self._stop)
        thread.join(FAREWELL)

    def _end_session(self, session: str, sink: Sink) -> None:
        call = Call(m.Shutdown(id=0, session=session), m.Reply, sink)
        self._post_if_open(lambda: self._send(call))

    # ---- between the threads ----

    def _post(self, function: Callable[[], None]) -> None:
        with self._lock:
            if self._closed:
                raise LairError("closed", "the connection was closed")
            if self._thread is None:
                self._wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
                thread = threading.Thread(target=self._main, name="lair", daemon=True)
                thread.start()
                self._thread = thread
                _end_with_worker()
            self._posted.append(function)
            os.eventfd_write(self._wake, 1)

    def _post_if_open(self, function: Callable[[], None]) -> None:
        with self._lock:
            if self._thread is not None and not self._stopping:
                self._posted.append(function)
                os.eventfd_write(self._wake, 1)

    def _after_fork(self) -> None:
        """In the child: the thread does not exist, and the sockets are the parent's."""
        _of_parents.append((self._link, self._calls))
        if self._wake >= 0:
            os.close(self._wake)
        self._begin()

    # ---- the thread ----

    def _main(self) -> None:
        while not self._stopping:
            try:
                try:
                    self._round()
                except Lost:
                    self._lose()
            except Exception as error:  # if the thread died, everybody would wait for ever
                self._fail(self._explained(error))
        self._fail(LairError("closed", "the connection was closed"))
        with self._lock:
            os.close(self._wake)
            self._wake, self._thread = -1, None

    def _explained(self, error: Exception) -> LairError:
        """The error that other threads get."""
        if isinstance(error, LairError):
            return error
        if isinstance(error, Lost):
            return LairError("lost", f"the daemon on {self.socket} ended the connection")
        if isinstance(error, codec.CodecError):
            return LairError(
                "protocol", f"the process that listens on {self.socket} does not speak the protocol: {error}"
            )
        return LairError("internal", f"{type(error).__name__}: {error}")

    def _stop(self) -> None:
        self._stopping = True

    def _round(self) -> None:
        ready = self._poll()
        if self._wake in ready:
            os.eventfd_read(self._wake)
        link = self._link
        if link is not None and link.dealer in ready:
            self._receive(link)
        if link is not None and link.monitor in ready and not self._receive(link):
            raise Lost
        while self._posted and not self._stopping:
            self._posted.popleft()()

    def _poll(self) -> dict[Any, int]:
        poller = zmq.Poller()
        poller.register(self._wake, zmq.POLLIN)
        patience: int | None = None
        if self._link is not None:
            poller.register(self._link.monitor, zmq.POLLIN)
            self._idle = True  # set first, so that no reader who changes this is missed
            self._idle = bool(self._calls) and all(c.given - c.taken > BACKLOG for c in self._calls.values())
            if not self._idle:
                poller.register(self._link.dealer, zmq.POLLIN)
                patience = self._patience()
        if self._posted:  # left over from a round that ended early
            patience = 0
        return dict(poller.poll(patience))

    def _patience(self) -> int | None:
        """How long to wait for a message, in milliseconds. If there was no sign of life for long, asks for one."""
        assert self._link is not None
        if not self._calls:
            return None
        now = time.monotonic()
        if self._asked > self._heard and now > self._asked + SILENCE:
            raise Lost
        if self._asked <= self._heard and now > self._heard + SILENCE:
            self._asked = now
            self._last_id += 1
            self._link.dealer.send(codec.encode(m.Hello(id=self._last_id)))
        return int((max(self._asked, self._heard) + SILENCE - now) * 1000) + 1

    def _receive(self, link: Link) -> int:
        """Handles messages that have come, but not too many at once, so that a flood leaves time for other
        things."""
        for n in range(64):
            try:
                frame = link.dealer.recv(zmq.DONTWAIT)
            except zmq.Again:
                return n
            self._heard = time.monotonic()
            self._deliver(*codec.unpack(frame))
        return 64

    def _deliver(self, kind: str, content: dict[str, Any]) -> None:
        call = self._calls.get(content.get("id", 0))
        if kind == "error":
            error = codec.read(m.ErrorReply, content)
            if error.id == 0:
                raise codec.CodecError(error.message)
            if call is not None and error.code == "limit" and isinstance(call.request, m.Get | m.Files):
                # The output of other calls was waiting for this client, which has it now.
                self._forget(call)
                self._send(call)
                return
            self._finish(call, refusal(error))
        elif kind == "reply":
            self._finish(call, call and codec.read(call.reply, content))
        elif kind not in m.EVENTS:
            raise codec.CodecError(f"a message of type {kind!r}")
        elif call is not None:
            event = cast(m.Event, codec.read(m.EVENTS[kind], content))
            if isinstance(event, m.AskEvent):
                # The question came again, over a new connection. A daemon of an earlier build does not number its
                # questions.
                if event.number and event.number <= call.asks:
                    return
                call.asks = event.number
            call.give(event)

    def _finish(self, call: Call[Any] | None, outcome: Any) -> None:
        if call is not None and self._calls.pop(call.request.id, None) is call:
            call.answer(outcome)

    def _forget(self, call: Call[Any]) -> None:
        if self._calls.get(call.request.id) is call:
            del self._calls[call.request.id]

    def _fail(self, error: LairError) -> None:
        """All calls end with this error, and with them the connection."""
        self._disconnect()
        for call in list(self._calls.values()):
            self._finish(call, LairError(error.code, error.message))  # each can raise an error of its own

    # ---- sending ----

    def _send(self, call: Call[Any]) -> None:
        try:
            if self._link is None:
                # If there is no daemon, there is no session to end.
                self._connect(self._may_start and not isinstance(call.request, m.Shutdown))
        except Exception as error:
            call.answer(self._explained(error))
            return
        self._last_id += 1
        call.request.id = self._last_id
        call.give_key()
        self._transmit(call)

    def _transmit(self, call: Call[Any]) -> None:
        assert self._link is not None
        if not self._calls:
            self._heard = time.monotonic()  # nothing was pending, so silence means nothing
        self._calls[call.request.id] = call
        try:
            frame = codec.encode(call.request)
        except Exception as error:  # callers may have put anything into it
            self._finish(call, LairError("bad_request", str(error)))
            return
        if len(frame) > self._link.frame_max:
            message = f"the request has {len(frame)} bytes, the daemon takes {self._link.frame_max}"
            self._finish(call, LairError("too_large", message))
            return
        self._link.dealer.send(frame)

    def _send_about(self, call: Call[Any], other: Call[Any]) -> None:
        """Sends another request, about a call that is still pending."""
        if self._link is not None and self._calls.get(call.request.id) is call:
            self._send(other)

    # ---- connecting ----

    def _disconnect(self) -> None:
        if self._link is not None:
            self._link.close()
            self._link = None

    def _connect(self, may_start: bool) -> None:
        """Find a daemon, or start one."""
        deadline = time.monotonic() + self.timeout
        try:
            self._attempt(deadline)
        except LairError as error:
            if error.code != "no_daemon" or not may_start:
                raise
            start_daemon(self.socket, self._config, self.timeout)
            self._attempt(deadline)

    def _attempt(self, deadline: float) -> None:
        trust(self.socket)
        try:
            self._link = open_link(self.socket, deadline - time.monotonic())
        except Lost:
            if listening(self.socket):  # the daemon is just starting, or ending
                self._link = open_link(self.socket, deadline - time.monotonic())
            else:
                raise LairError("no_daemon", f"no laird answers on {self.socket}; lair start starts one") from None
        self._heard = time.monotonic()

    def _lose(self) -> None:
        """The connection has ended, or nothing comes over it any more. Pending requests are sent once more."""
        daemon = self._link.daemon if self._link is not None else None
        self._disconnect()
        if self._calls and self._same_daemon_again(daemon):
            for call in list(self._calls.values()):
                self._send_again(call)
            return
        self._fail(LairError("lost", f"the daemon on {self.socket} is gone; whether it did the request is unknown"))

    def _send_again(self, call: Call[Any]) -> None:
        """Sends a call again, under its number, because other requests are about that number."""
        if isinstance(call.request, m.Put | m.CopyIn):
            self._finish(call, LairError(BEGIN_AGAIN, "the connection was lost in the middle of a file"))
        else:
            call.prepare_again()
            self._transmit(call)

    def _same_daemon_again(self, daemon: str | None) -> bool:
        """Whether the same daemon, or a successor that knows what it knew, answers in time. None is started."""
        until = time.monotonic() + self.timeout
        while daemon is not None and not self._closed and time.monotonic() < until:
            try:
                self._attempt(until)
            except Lost:
                time.sleep(0.02)
            except (LairError, codec.CodecError):
                break
            else:
                return self._link is not None and self._link.daemon == daemon
        return False


_connections: weakref.WeakSet[Connection] = weakref.WeakSet()
_of_parents: list[object] = []  # never freed, because to close them would disturb the parent
_shared: dict[str, Connection] = {}
_shared_lock = threading.Lock()
_worker = False  # this process is a worker of multiprocessing, and will end as one


def shared(socket: str | None = None) -> Connection:
    """The connection of everybody in this process who has made none."""
    path = find_socket(socket)
    with _shared_lock:
        if path not in _shared or _shared[path]._closed:
            _shared[path] = Connection(path)
        return _shared[path]


def _close_all() -> None:
    for connection in list(_connections):
        connection.close()


def _end_with_worker() -> None:
    """A worker of multiprocessing ends by os._exit: its own finalizers run before, those of atexit do not."""
    global _worker
    process, util = (sys.modules.get(f"multiprocessing.{name}") for name in ("process", "util"))
    if process and util and process.parent_process() is not None and not _worker:
        _worker = True
        util.Finalize(None, _close_all, exitpriority=0)


def _after_fork() -> None:
    global _shared_lock, _worker
    _shared_lock, _worker = threading.Lock(), False
    for connection in list(_connections):
        connection._after_fork()


atexit.register(_close_all)
os.register_at_fork(after_in_child=_after_fork)

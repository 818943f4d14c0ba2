"""How much a model is given of the output of a cell, and where the rest of it is."""

from __future__ import annotations

import codecs

from . import messages as m
from .result import Collector, Display, Event, Output, Stream

# The most of a long output at once, in bytes: the schema of python_result promises it.
PAGE = 20_000

STREAMS: tuple[Stream, Stream] = ("stdout", "stderr")


def _whole(data: bytes) -> tuple[str, int]:
    """As text, without a character at the end that is not complete; and how many bytes that text has."""
    return codecs.utf_8_decode(data, "replace", False)


class Excerpt:
    """The beginning and the end of a text, in bytes, each at most half of `shown`."""

    def __init__(self, shown: int) -> None:
        self._half = self._room = max(1, shown // 2)
        self._head = self._tail = b""
        self._size = 0

    def add(self, data: bytes) -> None:
        begin = data[: self._room]
        self._head += begin
        self._room -= len(begin)
        self._tail = (self._tail + data[len(begin) :])[-self._half :]
        self._size += len(data)

    def skip(self, size: int) -> None:
        """So many bytes are not to be had."""
        self._room = 0
        self._tail = b""
        self._size += size

    @property
    def cut(self) -> bool:
        return self._size > len(self._head) + len(self._tail)

    def __str__(self) -> str:
        if not self.cut:
            return (self._head + self._tail).decode(errors="replace")
        head, used = _whole(self._head)
        begun = next((n for n, byte in enumerate(self._tail[:3]) if byte & 0xC0 != 0x80), min(3, len(self._tail)))
        tail = self._tail[begun:]
        left_out = self._size - used - len(tail)
        return f"{head}\n[... {left_out} bytes left out ...]\n{tail.decode(errors='replace')}"


def excerpt(text: str, shown: int) -> str:
    whole = Excerpt(shown)
    whole.add(text.encode(errors="replace"))
    return str(whole)


class Seen(Collector):
    """What one call has seen of a cell, from where the call before has ended. `at` is how far it is now."""

    full = False

    def __init__(self, shown: int, begin: dict[str, int]) -> None:
        super().__init__()
        self.at = dict(begin)
        self.excerpts = {stream: Excerpt(shown) for stream in STREAMS}
        self._cut_short = {stream: b"" for stream in STREAMS}  # a character that is not complete

    @property
    def displays(self) -> list[Display]:
        return self._shown

    def event(self, message: m.StdoutEvent | m.StderrEvent | m.DisplayEvent | m.AliveEvent) -> Event:
        if isinstance(message, m.StdoutEvent | m.StderrEvent):
            return self._output("stdout" if isinstance(message, m.StdoutEvent) else "stderr", message)
        if isinstance(message, m.DisplayEvent):
            self.at["displays"] = message.at + 1
        return super().event(message)

    def _output(self, stream: Stream, message: m.StdoutEvent | m.StderrEvent) -> Output:
        missing = message.at - self.at[stream] - len(self._cut_short[stream])
        if missing > 0:
            self.excerpts[stream].add(self._cut_short[stream])
            self.excerpts[stream].skip(missing)
            self._cut_short[stream] = b""
        data = self._cut_short[stream] + message.data
        text, used = _whole(data)
        self.excerpts[stream].add(data[:used])
        self._cut_short[stream] = data[used:]
        self.at[stream] = message.at + len(message.data) - len(self._cut_short[stream])
        return Output(stream, text, max(0, missing))

    def rest(self) -> list[Output]:
        """What is left of characters that were cut short by the end."""
        for stream, data in self._cut_short.items():
            self.excerpts[stream].add(data)
            self.at[stream] += len(data)
        return []


class Page(Collector):
    """A piece of one stream. `begin` is where it begins, which is later than was asked for if that is not kept."""

    def __init__(self, stream: Stream, begin: int, size: int) -> None:
        super().__init__()
        self.stream = stream
        self.begin = begin
        self.full = False  # more follows
        self._size = size
        self._data = b""

    def event(self, message: m.StdoutEvent | m.StderrEvent | m.DisplayEvent | m.AliveEvent) -> Event:
        if isinstance(message, m.StdoutEvent | m.StderrEvent) and self.stream == message.TYPE and not self.full:
            self._add(message.at, message.data)
            return Output(self.stream, "")
        return super().event(message)

    def _add(self, at: int, data: bytes) -> None:
        if not self._data:
            self.begin = at
        room = self._size - len(self._data) if at == self.begin + len(self._data) else 0
        self._data += data[:room]
        self.full = len(data) > room

    def text(self, more: bool) -> tuple[str, int]:
        """It, and where the next begins; if there is `more`, it ends with a whole character."""
        text, used = _whole(self._data)
        if not more or not used:
            text, used = self._data.decode(errors="replace"), len(self._data)
        return text, self.begin + used

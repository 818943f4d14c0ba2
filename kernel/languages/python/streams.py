"""sys.stdout and sys.stderr: text streams that append to the buffers of output.c, and their binary twins (.buffer).
For code that prints they behave as an io.TextIOWrapper. They cannot be closed: a cell's close() would close the
session's. What they cannot do the base classes refuse."""

import io
from typing import Any, Callable

# A third of the cost of a print() would be to make a method object for `write`. So it is an attribute, made in C.


class _Stream:
    closed = False
    name: str
    mode: str
    _number: int
    _flush: Callable[[], None]

    def __repr__(self) -> str:
        return f"<lair.{type(self).__name__} name={self.name!r} mode={self.mode!r}>"

    def fileno(self) -> int:
        return self._number

    def flush(self) -> None:
        self._flush()

    def writable(self) -> bool:
        return True

    def close(self) -> None:
        self._flush()


class BinaryStream(_Stream, io.BufferedIOBase):
    pass


class TextStream(_Stream, io.TextIOBase):
    encoding = "utf-8"
    line_buffering = False
    write_through = False
    buffer: BinaryStream
    _errors: str

    @property
    def errors(self) -> str:  # type: ignore[override]
        return self._errors

    def reconfigure(self, **changes: Any) -> None:
        self._flush()


def stream(number: int, name: str, errors: str, write: Any, write_bytes: Any, flush: Any) -> TextStream:
    text, binary = TextStream(), BinaryStream()
    for made, mode, writes in ((text, "w", write), (binary, "wb", write_bytes)):
        vars(made).update(name=name, mode=mode, write=writes, _number=number, _flush=flush)
    vars(text).update(buffer=binary, _errors=errors)
    return text

"""How a link carries a frame of internal.py, as proto/link.h has it."""

from __future__ import annotations

import struct


def datagram(frame: bytes, number: int) -> bytes:
    """A message of a link."""
    return struct.pack("<QII", number, 0, 0) + frame


def letter(size: int, offset: int, number: int) -> bytes:
    """One that says where its frame lies."""
    return struct.pack("<QII", number, size, offset)

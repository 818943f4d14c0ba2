"""The messages behind the router, made from proto/message.h when they are imported."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import generate

exec(generate.internal(), globals())

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...

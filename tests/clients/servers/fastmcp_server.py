"""A server made with FastMCP, over streamable HTTP on the port that the argument names."""

import sys

from fastmcp import FastMCP
from fastmcp.utilities.types import Image

server = FastMCP("made")
PICTURE = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c636460f8cf500f0003860180"
    "5a347d6a0000000049454e44ae426082"
)


@server.tool(annotations={"readOnlyHint": True})
def add(a: int, b: int = 1) -> int:
    """Add two numbers."""
    return a + b


@server.tool(annotations={"readOnlyHint": True})
def fail(why: str) -> str:
    raise ValueError(why)


@server.tool(annotations={"readOnlyHint": True})
def picture() -> Image:
    return Image(data=PICTURE, format="png")


@server.tool
def write(text: str) -> str:
    return text.upper()


server.run(transport="http", host="127.0.0.1", port=int(sys.argv[1]), show_banner=False)

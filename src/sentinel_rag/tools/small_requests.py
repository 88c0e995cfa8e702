"""Reading a small request of the protocol without sessions, and putting it back for whoever answers it after all.

What is answered without the protocol's library must be told from its headers and its body; a request that turns out to
be another one goes on exactly as it came.
"""

from __future__ import annotations

from starlette.datastructures import Headers
from starlette.types import Message, Receive, Scope

PROTOCOL = "2026-07-28"
MCP_PATH = "/mcp"
MAX_QUESTION_BYTES = 65_536


def method_of(scope: Scope, headers: Headers) -> str | None:
    """The method that a small POST of this protocol names in its headers; None for any other request."""
    length = headers.get("content-length", "")
    small = length.isascii() and length.isdecimal() and len(length) < 9 and int(length) <= MAX_QUESTION_BYTES
    if scope["method"] != "POST" or scope["path"] != MCP_PATH or not small:
        return None
    return headers.get("mcp-method") if headers.get("mcp-protocol-version") == PROTOCOL else None


async def body_of(receive: Receive) -> bytes | None:
    """The whole body; None if the client has gone."""
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return None
        body += message.get("body", b"")
        if not message.get("more_body", False):
            return bytes(body)


def again(body: bytes, receive: Receive) -> Receive:
    """A `receive` that gives the body once more, then what comes after it."""
    given = False

    async def read() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return read

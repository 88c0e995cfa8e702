"""The body of an answer, read to a bound: what a service may send is documented, what a broken proxy sends is not.

Used by both wires, on azure-core's streamed responses. The count is of decompressed bytes, so that a small body which
unpacks to a large one is caught as it grows.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from azure.core.rest import AsyncHttpResponse

LARGEST_BODY = 256 * 1024 * 1024
"""Log Analytics cuts a result at 64 MB of its own count, which is at most 104 MB of JSON; nothing answers with more."""


class UnusableBodyError(Exception):
    """The body is no answer; the text says why, as the end of a sentence about the service."""


async def read_bounded(response: AsyncHttpResponse, *, most: int) -> bytes:
    """The whole body. Raises UnusableBodyError as soon as it is larger than `most` bytes, or does not unpack."""
    parts = bytearray()
    try:
        async for part in response.iter_bytes():
            parts += part
            if len(parts) > most:
                raise UnusableBodyError("answered with more than any result can have")
    except zlib.error:
        raise UnusableBodyError("answered with something that does not unpack") from None
    return bytes(parts)

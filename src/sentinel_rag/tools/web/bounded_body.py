"""The body of a response, unpacked, within a bound. A compressed body is unpacked piece by piece and given up as soon
as it passes the bound, so a bomb costs no more than the bound itself."""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator

_WINDOWS = {"gzip": 31, "x-gzip": 31, "deflate": 47}
"""`wbits` of zlib for each content coding; 47 takes both headers."""

ACCEPTED = "gzip, deflate"


class BodyTooLarge(Exception):
    """The body passes the bound."""


class Unreadable(Exception):
    """The body is packed in a way that is not known, or damaged."""


async def bounded_body(chunks: AsyncIterator[bytes], *, coding: str, limit: int) -> bytes:
    """The whole body, at most `limit` bytes both as sent and unpacked. Raises TooLarge or Unreadable."""
    coding = coding.strip().lower()
    if coding in ("", "identity"):
        return await _plain(chunks, limit)
    if coding not in _WINDOWS:
        raise Unreadable
    unpack = zlib.decompressobj(_WINDOWS[coding])
    body = bytearray()
    sent = 0
    try:
        async for chunk in chunks:
            sent += len(chunk)
            if sent > limit:
                raise BodyTooLarge
            body += unpack.decompress(chunk, limit + 1 - len(body))
            if len(body) > limit or unpack.unconsumed_tail:
                raise BodyTooLarge
        body += unpack.flush()
    except zlib.error:
        raise Unreadable from None
    if not unpack.eof:
        raise Unreadable
    if len(body) > limit:
        raise BodyTooLarge
    return bytes(body)


async def _plain(chunks: AsyncIterator[bytes], limit: int) -> bytes:
    body = bytearray()
    async for chunk in chunks:
        body += chunk
        if len(body) > limit:
            raise BodyTooLarge
    return bytes(body)

"""Lines of standard input: whole, however they come in pieces, and bounded."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from sentinel_rag.surfaces.cli.mcp import MAX_LINE, lines_of

BIG = b"x" * (MAX_LINE + 1)


async def pieces(*chunks: bytes) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("chunks", "lines"),
    [
        ([b"a\nb\n"], [b"a", b"b"]),
        ([b"a", b"b", b"\n"], [b"ab"]),
        ([b"a\r\n\n"], [b"a", b""]),
        ([b"last"], [b"last"]),
        ([], []),
        ([BIG + b"\n", b"b\n"], [None, b"b"]),
        ([BIG, b"y", b"y\nb\n"], [None, b"b"]),
        ([BIG, b"y"], [None]),
        ([BIG[1:] + b"\n"], [BIG[1:]]),
    ],
    ids=["two", "in pieces", "other line ends", "without an end", "nothing", "long", "long in pieces", "cut", "bound"],
)
async def test_lines(chunks: list[bytes], lines: list[bytes | None]) -> None:
    assert [line async for line in lines_of(pieces(*chunks))] == lines

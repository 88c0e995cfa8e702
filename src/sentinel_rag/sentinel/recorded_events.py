"""Events that an alert carries itself: a rule that raises an alert for each result packs that row into the query.

The packed text is JSON, compressed and in base64, inside a `datatable`. It is read here and nothing is run for it, so
that it is there when retention is over, and where a workspace's engine cannot unpack it. Whoever writes the alert
writes it: it is bounded and it is data.
"""

from __future__ import annotations

import base64
import binascii
import re
import zlib
from collections.abc import Mapping
from typing import Any

from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.contracts.query_results import Column
from sentinel_rag.sentinel.json_text import load_json

MOST_BYTES = 1_000_000
MOST_EVENTS = 100
_PACKED = re.compile(
    r"datatable\s*\(\s*\w+\s*:\s*string\s*\)\s*\[((?:\s*(?:'[A-Za-z0-9+/=]*'|\"[A-Za-z0-9+/=]*\")\s*,?)+)\]"
)
_ITEM = re.compile(r"['\"]([A-Za-z0-9+/=]*)['\"]")
_UNPACKS = "zlib_decompress_from_base64_string"


def recorded_events(query: str) -> list[dict[str, JsonValue]]:
    """The rows that `query` carries; none where it carries none that can be read."""
    packed = _PACKED.search(query) if _UNPACKS in query else None
    if packed is None:
        return []
    rows: list[dict[str, JsonValue]] = []
    room = MOST_BYTES
    for item in _ITEM.findall(packed[1])[:MOST_EVENTS]:
        text = _unpacked(item, room)
        room -= len(text)
        try:
            value = load_json(text)
        except ValueError:
            continue
        if isinstance(value, Mapping):
            rows.append({str(name): cell for name, cell in value.items()})
    return rows


def columns_of(rows: list[dict[str, JsonValue]]) -> tuple[Column, ...]:
    """Every key of the rows in its first order; a type where all values agree on one, else dynamic."""
    kinds: dict[str, set[str]] = {}
    for row in rows:
        for name, value in row.items():
            kinds.setdefault(name, set()).update(() if value is None else (_kind(value),))
    return tuple(Column(name, found.pop() if len(found) == 1 else "dynamic") for name, found in kinds.items())


def _unpacked(packed: str, most: int) -> bytes:
    """At most `most` bytes; empty for what is no compressed text or is longer."""
    try:
        unpacker = zlib.decompressobj()
        text = unpacker.decompress(base64.b64decode(packed, validate=True), max(most, 1))
    except (binascii.Error, zlib.error, ValueError):
        return b""
    return text if unpacker.eof else b""


def _kind(value: Any) -> str:
    match value:
        case bool():
            return "bool"
        case int():
            return "long"
        case float():
            return "real"
        case str():
            return "string"
        case _:
            return "dynamic"

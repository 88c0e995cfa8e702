"""The answer to one KQL query: columns, and rows that are already the JSON text of the wire.

`encode_rows` turns batches of cells into that text as they come from the engine, up to the limits, so that an answer of
64 MB costs 64 MB and not ten times as much in Python objects. Readers in the same process decode it with `rows`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import msgspec

from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.contracts.query_results import Column
from sentinel_rag.workspace.cells import Cell


@dataclass(frozen=True, slots=True)
class EncodedRows:
    """Rows as the text of one JSON array of arrays, their number, and why there are no more (`partial`)."""

    text: bytes
    count: int
    partial: str = ""


@dataclass(frozen=True)
class KqlAnswer:
    """Columns with KQL types, rows of wire cells, and why the answer is incomplete (`partial`, empty if it is not)."""

    columns: tuple[Column, ...]
    encoded: EncodedRows
    tables: tuple[str, ...]
    duration_s: float

    @property
    def partial(self) -> str:
        return self.encoded.partial

    @property
    def row_count(self) -> int:
        return self.encoded.count

    @cached_property
    def rows(self) -> list[tuple[Cell, ...]]:
        return msgspec.json.decode(self.encoded.text, type=list[tuple[Any, ...]])

    def to_dict(self) -> dict[str, JsonValue]:
        return {
            "columns": [{"name": column.name, "type": column.type} for column in self.columns],
            "rows": [list(row) for row in self.rows],
            "partial": self.partial,
            "duration_s": self.duration_s,
        }


def encode_rows(batches: Iterable[list[tuple[Cell, ...]]], *, max_rows: int, max_bytes: int) -> EncodedRows:
    """The rows of `batches`, cut at `max_rows` or where their text would be longer than `max_bytes`."""
    text = bytearray(b"[")
    count = 0
    for batch in batches:
        room = max_rows - count
        cut = batch[:room]
        encoded = msgspec.json.encode(cut)
        if len(text) + len(encoded) > max_bytes:
            kept = _within(cut, max_bytes - len(text))
            _append(text, msgspec.json.encode(kept))
            reason = f"Query result set has exceeded the internal data size limit {max_bytes}"
            return EncodedRows(_closed(text), count + len(kept), reason)
        _append(text, encoded)
        count += len(cut)
        if len(batch) > room:
            reason = f"Query result set has exceeded the internal record count limit {max_rows}"
            return EncodedRows(_closed(text), count, reason)
    return EncodedRows(_closed(text), count)


def _append(text: bytearray, encoded: bytes) -> None:
    """Add the rows of one encoded array, each followed by a comma."""
    if len(encoded) > 2:
        text += memoryview(encoded)[1:-1]
        text += b","


def _closed(text: bytearray) -> bytes:
    if text.endswith(b","):
        text[-1:] = b"]"
    else:
        text += b"]"
    return bytes(text)


def _within(batch: list[tuple[Cell, ...]], room: int) -> list[tuple[Cell, ...]]:
    """As many leading rows as `room` bytes hold."""
    for count, row in enumerate(batch):
        room -= len(msgspec.json.encode(row)) + 1
        if room < 0:
            return batch[:count]
    return batch

"""A row that is too long for its share of the context, shorter, with every field still there.

An incident's detail is one row with lists of alerts, entities and events in it. Cut at its end it would lose whole
fields; here its lists keep their first items and say how many there are, and its texts keep their beginning.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sentinel_rag.agent.model_analyst.result_json import compact_json
from sentinel_rag.agent.tokens import TokenCounter

_STEPS = ((40, 1_000), (20, 400), (10, 240), (6, 160), (4, 100), (2, 80), (1, 60))
"""Items of a list and characters of a text that are kept, from much to little."""
_SHARE_OF_ONE = 0.8


def fitting_rows(rows: Sequence[Mapping[str, Any]], limit: int, counter: TokenCounter) -> tuple[str, ...]:
    """The rows as JSON, one a text. Where the first alone would take more than its share of `limit` tokens, each row is
    shortened to that share, as far as shortening goes."""
    texts = tuple(compact_json(row) for row in rows)
    room = int(limit * _SHARE_OF_ONE) // max(1, min(len(rows), 3))
    if not texts or len(texts[0]) <= room or counter.count(texts[0]) <= room:
        return texts
    return tuple(
        text if counter.count(text) <= room else _shortened(row, room, counter)
        for row, text in zip(rows, texts, strict=True)
    )


def _shortened(row: Mapping[str, Any], room: int, counter: TokenCounter) -> str:
    text = ""
    for items, characters in _STEPS:
        text = compact_json(_part(row, items, characters))
        if counter.count(text) <= room:
            break
    return text


def _part(value: Any, items: int, characters: int) -> Any:
    if isinstance(value, str):
        return value if len(value) <= characters else f"{value[:characters]} ... ({len(value)} characters)"
    if isinstance(value, Mapping):
        return {name: _part(part, items, characters) for name, part in value.items()}
    if isinstance(value, Sequence):
        kept = [_part(part, items, characters) for part in value[:items]]
        return kept if len(value) <= items else [*kept, f"... showing first {items} of {len(value)}"]
    return value

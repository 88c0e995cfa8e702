"""Cutting what a tool returned to its share of a model's context, on row boundaries and never silently. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sentinel_rag.agent.tokens import TokenCounter

MARK = " ... (cut)"
_ROOM_FOR_NOTE = 24
MOST_CHARACTERS = 32
"""Of one token, as far as it matters: longer ones are runs of spaces or signs."""


@dataclass(frozen=True, slots=True)
class CutResult:
    """The text for the model, and how many of how many results it shows."""

    text: str
    shown: int
    total: int


def cut_result(
    rows: Sequence[str],
    limit: int,
    counter: TokenCounter,
    *,
    total: int | None = None,
    head: str = "",
    tail: str = "",
    what: str = "results",
) -> CutResult:
    """`head`, as many whole `rows` as fit into `limit` tokens, and `tail`, one below the other.

    `total` is how many results there are, if the tool left some out already. Where fewer are shown than there are, the
    line "... showing first N of M results" (`what`) says so. A first row that is too long alone is cut inside, with a
    mark.
    """
    total = max(len(rows), total or 0)
    room = limit - _ROOM_FOR_NOTE
    head, tail = cut_text(head, room // 2, counter), cut_text(tail, room // 4, counter)
    room -= sum(counter.count(part) + 1 for part in (head, tail) if part)
    shown: list[str] = []
    for row in rows:
        size = counter.count(row[: room * MOST_CHARACTERS + 1]) + 1
        if size > room:
            if not shown and room > _ROOM_FOR_NOTE:
                shown.append(cut_text(row, room, counter))
            break
        shown.append(row)
        room -= size
    note = f"... showing first {len(shown)} of {total} {what}" if len(shown) < total else ""
    return CutResult("\n".join(part for part in (head, *shown, note, tail) if part), len(shown), total)


def cut_lines(text: str, limit: int, counter: TokenCounter) -> str:
    """`text` in `limit` tokens, cut between its lines; the first and the last stay, since they are what marks it as
    data. A text of a few lines is cut like `cut_text`."""
    first, *lines = text.splitlines() or [""]
    if len(lines) < 3:
        return cut_text(text, limit, counter)
    return cut_result(lines[:-1], limit, counter, head=first, tail=lines[-1], what="lines").text


def cut_text(text: str, limit: int, counter: TokenCounter) -> str:
    """`text` if it takes at most `limit` tokens, else its beginning and " ... (cut)". Never more than `limit`, unless
    that is too small for the mark."""
    start = text[: max(0, limit) * MOST_CHARACTERS]
    size = counter.count(start)
    if not text or (len(start) == len(text) and size <= limit):
        return text
    room = max(0, limit - counter.count(MARK))
    while start and size > room:
        start = start[: min(len(start) - 1, len(start) * room // size)]
        size = counter.count(start)
    return start.rstrip() + MARK

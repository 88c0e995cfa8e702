"""Cutting what a tool returned to its share of a model's context, on row boundaries and never silently. Pure."""

from __future__ import annotations

from sentinel_rag.agent.tokens import TokenCounter

MARK = " ... (cut)"
_ROOM_FOR_NOTE = 24
MOST_CHARACTERS = 32
"""Of one token, as far as it matters: longer ones are runs of spaces or signs."""


def cut_lines(text: str, limit: int, counter: TokenCounter) -> str:
    """`text` in `limit` tokens, cut between its lines; the first and the last stay, since they are what marks it as
    data. The line "... showing first N of M lines" says so. A first line between them that is too long alone is cut
    inside, with a mark; a text of a few lines is cut like `cut_text`."""
    head, *lines = text.splitlines() or [""]
    if len(lines) < 3:
        return cut_text(text, limit, counter)
    room = limit - _ROOM_FOR_NOTE
    head, tail = cut_text(head, room // 2, counter), cut_text(lines.pop(), room // 4, counter)
    room -= sum(counter.count(part) + 1 for part in (head, tail) if part)
    shown: list[str] = []
    for line in lines:
        size = counter.count(line[: room * MOST_CHARACTERS + 1]) + 1
        if size > room:
            if not shown and room > _ROOM_FOR_NOTE:
                shown.append(cut_text(line, room, counter))
            break
        shown.append(line)
        room -= size
    note = f"... showing first {len(shown)} of {len(lines)} lines" if len(shown) < len(lines) else ""
    return "\n".join(part for part in (head, *shown, note, tail) if part)


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

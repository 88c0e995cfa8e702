"""Whether one line of a text says what is asked for, and how much else it says.

Words that stand in one sentence or one row of a table belong together; the same words spread over a page may not.
"""

from __future__ import annotations

from sentinel_rag.agent.grounding.hit_texts import share, stems_of


def said_in_one_line(wanted: frozenset[str], text: str) -> float:
    """How much of a line the wanted stems are, from 0 to 1, in the line that holds them all and least else; 0 if no
    line holds all of two or more."""
    if len(wanted) < 2:
        return 0.0
    lines = (stems_of(line) for line in text.splitlines())
    return max((len(wanted) / max(len(line), len(wanted)) for line in lines if share(wanted, line) == 1), default=0.0)

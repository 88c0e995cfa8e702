"""What is carried over a /clear: lines of answers that their evidence supported, each with its source and its time.

Pure, and bounded in every direction. Only what grounding left with evidence gets in, so a sentence that nothing
supported cannot become a fact by being carried; a text that reads like an instruction is shown once and not carried.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from sentinel_rag.contracts.conversations import CarriedFact
from sentinel_rag.contracts.evidence import Answer, Evidence, Table

MAX_FACTS = 40
MAX_OF_AN_ANSWER = 10
MAX_CHARACTERS = 240
MAX_SUBJECT = 100
_NOT_CARRIED = ("Note:", "Window:", "Page")
_NUMBER = re.compile(r"\[\d+\]")
_ITEM = re.compile(r"(?:\[\d+\]|\d+[.)]|[-*•])\s+")


def supported_facts(answer: Answer, at: str) -> tuple[CarriedFact, ...]:
    """The lines and rows of `answer` that hold a piece of its evidence, in its order. `at` is when it was read."""
    facts: list[CarriedFact] = []
    subject = ""
    for line in map(str.strip, answer.text.splitlines()):
        pieces = [piece for piece in answer.evidence if piece.text.strip() and piece.text in line]
        if not pieces or line.startswith(_NOT_CARRIED) or line.endswith("?"):
            continue
        item = _ITEM.match(line)
        if item is not None:
            facts.append(_fact(line[item.end() :], pieces, at))
            continue
        # Lines after the first speak of what the first one names: alone they would be true of nothing.
        facts.append(_fact(f"{subject} {line}".strip(), pieces, at))
        subject = subject or _shortened(line, MAX_SUBJECT)
    for table in answer.tables:
        for row in table.rows:
            pieces = [piece for piece in answer.evidence if piece.text in row]
            if pieces:
                facts.append(_fact(_row_text(table, row), pieces, at))
    return tuple(facts[:MAX_OF_AN_ANSWER])


def carried_on(earlier: Sequence[CarriedFact], newer: Sequence[CarriedFact]) -> tuple[CarriedFact, ...]:
    """Both, the newest last, each text once with its newest time; the oldest go where there are too many."""
    by_text = {fact.text: fact for fact in earlier}
    for fact in newer:
        by_text.pop(fact.text, None)
        by_text[fact.text] = fact
    return tuple(by_text.values())[-MAX_FACTS:]


def _fact(text: str, pieces: Sequence[Evidence], at: str) -> CarriedFact:
    # The longest piece says most about where the line came from: "38" may stand in many places, a title in one.
    source = max(pieces, key=lambda piece: len(piece.text))
    return CarriedFact(_shortened(text, MAX_CHARACTERS), at, source.tool, source.call_id, source.pointer)


def _row_text(table: Table, row: Sequence[str]) -> str:
    """The cells with their columns, without a place in a list: the list is gone."""
    return ", ".join(
        f"{name}: {cell}" if name.strip() else cell
        for name, cell in zip(table.columns, row, strict=True)
        if cell.strip("- ") and not _NUMBER.fullmatch(cell.strip())
    )


def _shortened(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"

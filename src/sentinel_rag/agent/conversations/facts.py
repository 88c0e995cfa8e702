"""What is carried over a /clear: sentences whose values were found, each with its source and its time.

Pure, and bounded in every direction. A sentence that nothing supported cannot become a fact by being carried. A value
that could steer a reader is shown once and not carried: what is lost that way can be asked for again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from sentinel_rag.agent.instruction_text import may_instruct
from sentinel_rag.contracts.conversations import CarriedFact
from sentinel_rag.contracts.evidence import Answer, Evidence, SentenceState, Table

MAX_FACTS = 40
MAX_OF_AN_ANSWER = 10
MAX_CHARACTERS = 240
MAX_SUBJECT = 100
_NOT_CARRIED = ("Note:", "Window:", "Page")
_NUMBER = re.compile(r"\[\d+\]")
_ITEM = re.compile(r"(?:\[\d+\]|\d+[.)]|[-*•])\s+")
_SUBJECT = re.compile(r"(?:Incident|Alert|Host|Account|IP|Table|Template)\s+[^\s:`“\"]{1,60}:(?=\s)")
"""The name with which an answer about one thing opens."""
_NAMING = ("Incident", "Host", "Account", "Name")
"""Columns that say what a row is about."""
_NAMELESS = "-"
"""Stands for an opening line whose subject cannot be carried, nor anything that speaks of it."""


def supported_facts(answer: Answer, at: str) -> tuple[CarriedFact, ...]:
    """The lines and rows of `answer` that hold a piece of its evidence, in its order. `at` is when it was read."""
    facts = _of_lines(answer, at)
    for table in answer.tables:
        for row in table.rows:
            pieces = [piece for piece in answer.evidence if piece.text in row]
            cells = _safe_cells(table, row, pieces)
            pieces = [piece for piece in pieces if any(piece.text == cell for _, cell in cells)]
            if pieces:
                facts.append(_fact(_row_text(cells), pieces, at))
    return tuple(facts[:MAX_OF_AN_ANSWER])


def _of_lines(answer: Answer, at: str) -> list[CarriedFact]:
    facts: list[CarriedFact] = []
    opening = ""
    follows = False
    for line, pieces in _found_in(answer):
        if not pieces or line.startswith(_NOT_CARRIED) or line.endswith("?"):
            continue
        item = _ITEM.match(line)
        safe = not may_instruct(line) and not any(_steers(piece) for piece in pieces)
        if item is not None:
            follows = False
            if safe:
                facts.append(_fact(line[item.end() :], pieces, at))
            continue
        # Lines after the first speak of what the first one names: alone they would be true of nothing.
        subject = _SUBJECT.match(opening or line)
        if not opening:
            opening = line if safe or subject is not None else _NAMELESS
            if safe:
                follows = True
                facts.append(_fact(line, pieces, at))
        elif not safe or (subject is None and opening == _NAMELESS):
            continue
        elif subject is not None:
            facts.append(_fact(f"{subject[0]} {line}", pieces, at))
        elif follows and (joined := _continued(facts[-1], line, pieces)) is not None:
            facts[-1] = joined
        else:
            facts.append(_fact(f"{_shortened(opening, MAX_SUBJECT)} {line}", pieces, at))
    return facts


def _found_in(answer: Answer) -> Iterator[tuple[str, list[Evidence]]]:
    """The sentences whose values were found, each with the places of these; the lines of an answer that has no
    sentences, with its evidence that stands in them."""
    if not answer.sentences:
        for line in answer.text.splitlines():
            yield line.strip(), [piece for piece in answer.evidence if piece.text.strip() and piece.text in line]
    for sentence in answer.sentences:
        if sentence.state is SentenceState.VALUES_FOUND:
            tools = {citation.call_id: citation.tool for citation in sentence.citations}
            yield (
                sentence.text.strip(),
                [
                    Evidence(
                        answer.text[mark.start : mark.end], mark.call_id, tools[mark.call_id], mark.pointer, mark.value
                    )
                    for mark in sentence.marks
                    if mark.found and mark.call_id in tools
                ],
            )


def _continued(fact: CarriedFact, line: str, pieces: Sequence[Evidence]) -> CarriedFact | None:
    """The last fact with a further line of the same source behind it; None where that would be too long."""
    text = f"{fact.text} {line}"
    same = all(piece.call_id == fact.call_id for piece in pieces)
    return replace(fact, text=text) if same and len(text) <= MAX_CHARACTERS else None


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


def _steers(piece: Evidence) -> bool:
    """True for a value that could steer a reader, whole even where the answer shows its beginning only."""
    return any(isinstance(said, str) and may_instruct(said, value=True) for said in (piece.value, piece.text))


def _safe_cells(table: Table, row: Sequence[str], pieces: Sequence[Evidence]) -> list[tuple[str, str]]:
    """The cells under their columns, without a place in a list, for the list is gone, and without texts that steer.
    None of them where the row lost its name with such a text: what is left would be true of nothing."""
    steering = {piece.text for piece in pieces if _steers(piece)}
    told = [
        (name, cell)
        for name, cell in zip(table.columns, row, strict=True)
        if cell.strip("- ") and not _NUMBER.fullmatch(cell.strip())
    ]
    safe = [(name, cell) for name, cell in told if cell not in steering and not may_instruct(cell, value=True)]
    named = len(safe) == len(told) or any(name in _NAMING for name, _ in safe)
    return safe if named else []


def _row_text(cells: Sequence[tuple[str, str]]) -> str:
    return ", ".join(f"{name}: {cell}" if name.strip() else cell for name, cell in cells)


def _shortened(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"

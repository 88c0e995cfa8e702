"""The evidence of answers, numbered by row of a result, and found again behind each line and table row of the text."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sentinel_rag.contracts.evidence import Sentence
from sentinel_rag.surfaces.rendering.marks import Marked, Note, field_name, marked, sources_of
from sentinel_rag.surfaces.rendering.visible import safe
from sentinel_rag.surfaces.reports.model import EvidenceRow, ReportTable, ReportTurn

MOST_SHOWN = 3
"""Numbers behind one line; a count may rest on hundreds of rows, which all stand in the list of evidence."""


@dataclass(frozen=True, slots=True)
class NumberedEvidence:
    """`rows` of all turns; `pieces` of one turn: the text of each value with the number of its row; `numbers` by turn,
    call and place."""

    rows: tuple[EvidenceRow, ...]
    pieces: Mapping[int, Sequence[tuple[str, str]]]
    numbers: Mapping[tuple[int, str, str], str]


def numbered(turns: Sequence[ReportTurn]) -> NumberedEvidence:
    """Every row that an answer rests on, `E1` on, in the order of the answers."""
    rows: list[EvidenceRow] = []
    numbers: dict[tuple[int, str, str], str] = {}
    pieces: dict[int, list[tuple[str, str]]] = {}
    audit_ids: dict[str, str] = {}
    for turn in turns:
        answer = turn.answer or {}
        # A sentence may cite what an earlier question read.
        audit_ids |= {trace["call_id"]: trace["audit_id"] for trace in answer.get("tools", ())}
        found: dict[tuple[str, str], _Row] = {}
        for source in sources_of(sentences_of(turn)):
            cited = source.citation
            found[cited.call_id, cited.pointer] = _Row(cited.tool, dict(source.cells))
        pieces[turn.number] = []
        for piece in answer.get("evidence", ()):
            place = piece["pointer"].rpartition("/")[0]
            row = found.setdefault((piece["call_id"], place), _Row(piece["tool"]))
            row.fields[field_name(piece["pointer"], place)] = piece["value"]
            row.texts.append(str(piece["text"]))
        for (call_id, place), row in found.items():
            number = f"E{len(rows) + 1}"
            audit_id = str(audit_ids.get(call_id, ""))
            fields = tuple(row.fields.items())
            rows.append(EvidenceRow(number, turn.number, row.tool, call_id, audit_id, place, fields))
            numbers[turn.number, call_id, place] = number
            pieces[turn.number] += [(text, number) for text in row.texts]
    return NumberedEvidence(tuple(rows), pieces, numbers)


def sentences_of(turn: ReportTurn) -> tuple[Sentence, ...]:
    """What the check says of the answer's sentences; nothing of an answer that was kept before they were compared."""
    return tuple(map(Sentence.from_dict, (turn.answer or {}).get("sentences", ())))


def said_in(turn: ReportTurn, evidence: NumberedEvidence) -> Marked:
    """The text of the answer with the numbers of what it rests on: behind each sentence, and where sentences were not
    compared behind each line that holds a value of the evidence."""
    text = str((turn.answer or {}).get("answer", turn.text))
    if sentences := sentences_of(turn):
        return marked(text, sentences, lambda cited: evidence.numbers[turn.number, cited.call_id, cited.pointer])
    pieces = evidence.pieces[turn.number]
    named = [(safe(piece), number) for piece, number in pieces if piece]
    words = [(re.compile(rf"(?<!\w){re.escape(piece)}(?!\w)"), piece, number) for piece, number in named]
    notes: list[Note] = []
    shown, at = safe(text), 0
    for line in shown.split("\n"):
        at += len(line) + 1
        behind = (number for word, piece, number in words if piece in line and word.search(line))
        if numbers := tuple(dict.fromkeys(behind)):
            notes.append(Note(at - 1 - len(line) + len(line.rstrip()), numbers))
    return Marked(shown, notes=tuple(notes))


def table_of(table: Mapping[str, Any], pieces: Sequence[tuple[str, str]]) -> ReportTable:
    """A table with the row of a result behind each of its rows: the one that most of its cells come from."""
    numbers: dict[str, list[str]] = {}
    for piece, number in pieces:
        numbers.setdefault(piece, []).append(number)
    behind: list[str] = []
    for row in table["rows"]:
        votes: dict[str, int] = {}
        for cell in row:
            for number in dict.fromkeys(numbers.get(cell, ())):
                votes[number] = votes.get(number, 0) + 1
        behind.append(max(votes, key=lambda number: votes[number]) if votes else "")
    rows = tuple(tuple(map(str, row)) for row in table["rows"])
    return ReportTable(str(table["title"]), tuple(map(str, table["columns"])), rows, tuple(behind))


@dataclass(slots=True)
class _Row:
    tool: str
    fields: dict[str, Any] = field(default_factory=dict)
    texts: list[str] = field(default_factory=list)

"""The evidence of answers, numbered by row of a result, and found again behind each line and table row of the text."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sentinel_rag.surfaces.reports.model import EvidenceRow, Line, ReportTable, ReportTurn

MOST_SHOWN = 8
"""Numbers behind one line; a count may rest on hundreds of rows, which all stand in the list of evidence."""


@dataclass(frozen=True, slots=True)
class NumberedEvidence:
    """`rows` of all turns; `pieces` of one turn: the text of each atom with the number of its row."""

    rows: tuple[EvidenceRow, ...]
    pieces: Mapping[int, Sequence[tuple[str, str]]]


def numbered(turns: Sequence[ReportTurn]) -> NumberedEvidence:
    """Every row that an answer rests on, `E1` on, in the order of the answers."""
    rows: list[EvidenceRow] = []
    pieces: dict[int, list[tuple[str, str]]] = {}
    for turn in turns:
        answer = turn.answer or {}
        audit_ids = {trace["call_id"]: trace["audit_id"] for trace in answer.get("tools", ())}
        found: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
        for piece in answer.get("evidence", ()):
            found.setdefault((piece["call_id"], piece["pointer"].rpartition("/")[0]), []).append(piece)
        pieces[turn.number] = []
        for (call_id, place), same in found.items():
            number = f"E{len(rows) + 1}"
            fields = {_name(piece["pointer"]): piece["value"] for piece in same}
            audit_id = str(audit_ids.get(call_id, ""))
            rows.append(
                EvidenceRow(number, turn.number, same[0]["tool"], call_id, audit_id, place, tuple(fields.items()))
            )
            pieces[turn.number] += [(str(piece["text"]), number) for piece in same]
    return NumberedEvidence(tuple(rows), pieces)


def lines_of(text: str, pieces: Sequence[tuple[str, str]]) -> tuple[Line, ...]:
    """The lines of an answer, each with the numbers of what it states."""
    words = [(re.compile(rf"(?<!\w){re.escape(piece)}(?!\w)"), piece, number) for piece, number in pieces if piece]
    return tuple(
        Line(line, tuple(dict.fromkeys(number for word, piece, number in words if piece in line and word.search(line))))
        for line in text.split("\n")
    )


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


def _name(pointer: str) -> str:
    return pointer.rpartition("/")[2].replace("~1", "/").replace("~0", "~")

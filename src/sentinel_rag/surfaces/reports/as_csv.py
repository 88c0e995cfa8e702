"""The evidence of a report as CSV: one line a value, so that rows of any tool fit into one file, and one line for each
sentence of an answer, whose field is its state."""

from __future__ import annotations

from collections.abc import Iterator

from sentinel_rag.surfaces.rendering.spreadsheet import csv_text
from sentinel_rag.surfaces.reports.model import HandOver
from sentinel_rag.surfaces.reports.recorded import plain

COLUMNS = ("evidence", "question", "tool", "call_id", "audit_id", "place", "field", "value")


def as_csv(report: HandOver) -> str:
    """The whole file; cells are guarded against formulas (`rendering.spreadsheet`)."""
    return csv_text(COLUMNS, _lines(report))


def _lines(report: HandOver) -> Iterator[tuple[object, ...]]:
    for row in report.evidence:
        for name, value in row.fields:
            yield row.number, row.turn, row.tool, row.call_id, row.audit_id, row.place, name, plain(value)
    for fact in report.facts:
        for said in fact.sentences:
            reason = f" ({said.reason})" if said.reason else ""
            yield " ".join(said.evidence), fact.turn, "", "", "", "sentence", said.state, said.text + reason

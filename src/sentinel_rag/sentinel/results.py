"""From answers of the wire to a `QueryResult`: coverage, columns and cut texts, the same for every tool."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.contracts.query_results import Column, Coverage, QueryResult, TimeWindow
from sentinel_rag.language.notes import CodedNote
from sentinel_rag.sentinel.logs.log_tables import LogsTable
from sentinel_rag.sentinel.workspace_view import TableStatistics

LONGEST_DESCRIPTION = 300
WHOLE_DESCRIPTION = 5000
"""Characters of a description that is told whole: Sentinel keeps no longer one of an incident."""
FEW_ROWS = 5
"""Rows up to which descriptions are told whole."""
_LINE_BREAKS = re.compile(r"\s*[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]\s*")


def shortened(text: str | None, longest: int = LONGEST_DESCRIPTION) -> str | None:
    """One line of at most `longest` characters, cut with an ellipsis; None for nothing."""
    if text is None:
        return None
    line = " ".join(text.split())
    if not line:
        return None
    return line if len(line) <= longest else line[: longest - 1].rstrip() + "…"


def one_line(text: str, longest: int) -> str:
    """The text as it is, with each line break as one space, cut with an ellipsis at `longest` characters."""
    line = _LINE_BREAKS.sub(" ", text).strip()
    return line if len(line) <= longest else line[: longest - 1] + "…"


def build_result(
    columns: Sequence[Column],
    rows: Sequence[Mapping[str, JsonValue]],
    *,
    tables: tuple[str, ...],
    window: TimeWindow,
    time_column: str,
    rows_total: int | None,
    answers: Sequence[LogsTable],
    statistics: TableStatistics,
    summary: Mapping[str, JsonValue],
    notes: Sequence[CodedNote],
    shown_query: str = "",
) -> QueryResult:
    """A cut in any of `answers` makes the result partial; the service adds of which workspace it is
    and how long it took. Coverage shows `shown_query`, which finds as many rows as `rows_total`
    says, or the text of `answers[0]` where it is left out."""
    reasons = list(dict.fromkeys(answer.partial_reason for answer in answers if answer.partial))
    return QueryResult(
        columns=tuple(columns),
        rows=tuple(rows),
        summary=summary,
        notes=tuple(dict.fromkeys(notes)),
        coverage=Coverage(
            workspace="",
            tables=tables,
            window=window,
            time_column=time_column,
            rows_returned=len(rows),
            rows_total=rows_total,
            query=shown_query or (answers[0].query if answers else ""),
            duration_ms=0.0,
            partial=bool(reasons),
            partial_reason=" ".join(reasons),
            table_rows=statistics.rows,
            table_oldest=statistics.oldest,
            table_newest=statistics.newest,
        ),
    )


def told_result(
    columns: Sequence[Column],
    rows: Sequence[Mapping[str, JsonValue]],
    *,
    summary: Mapping[str, JsonValue],
    rows_total: int | None = None,
    notes: Sequence[CodedNote] = (),
) -> QueryResult:
    """A result that is known without asking the service: no table, no window, no query."""
    return build_result(
        columns,
        rows,
        tables=(),
        window=TimeWindow(),
        time_column="",
        rows_total=len(rows) if rows_total is None else rows_total,
        answers=(),
        statistics=TableStatistics(),
        summary=summary,
        notes=notes,
    )


def lower_bound(counted: int, seen: int) -> dict[str, JsonValue]:
    """What a summary tells in place of counts that are not of everything: how many there are `at_least`. Each count of
    a cut answer is too low by nobody knows how much, and would contradict the others."""
    return {"at_least": max(counted, seen)}


def ordered(counts: Mapping[str, int], order: Iterable[str]) -> dict[str, int]:
    """Counts above zero, the known names in `order` first, then the others by name."""
    known = [name for name in order if counts.get(name)]
    others = sorted(name for name, count in counts.items() if count and name not in known)
    return {name: counts[name] for name in (*known, *others)}

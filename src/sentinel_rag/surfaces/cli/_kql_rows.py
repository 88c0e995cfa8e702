"""Rows of a query as a person sees them: the table, how many there are, and why there may be none."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence

from sentinel_rag.contracts.errors import SentinelError
from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.contracts.query_results import TimeWindow, format_time
from sentinel_rag.surfaces.cli._kql_access import KqlAccess
from sentinel_rag.surfaces.cli._safe_text import safe, safe_cell

MOST_TABLES_EXPLAINED = 5
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def print_rows(
    names: Sequence[str],
    rows: Sequence[dict[str, JsonValue]],
    total: int | None,
    totals: Mapping[str, JsonValue],
    notes: Sequence[str],
) -> None:
    """The rows, their number, the totals over all of them, and what else there is to know."""
    from sentinel_rag.surfaces.cli._render import console, print_table

    if rows:
        cells = [tuple(_cell(row.get(name)) for name in dict.fromkeys(names)) for row in rows]
        print_table(console(), "", tuple(dict.fromkeys(names)), cells)
        print()
    if total is None:
        print(f"First {len(rows):,} rows; more match.")
    elif len(rows) < total:
        print(f"First {len(rows):,} of {total:,} rows.")
    else:
        print("No row matches." if not rows else f"{total:,} row{'s' if total != 1 else ''}.")
    if totals and rows:
        print(
            safe_cell("Sums over the rows: " + ", ".join(f"{name} {value:,}" for name, value in totals.items()) + ".")
        )
    for note in notes:
        print(safe(note))


def why_empty(access: KqlAccess, tables: Iterable[str], window: TimeWindow, *, filtered: bool) -> list[str]:
    """For a query without rows: the window that was asked, what each table holds at all, and what to try.

    `filtered` tells that the query chooses among the rows of its window."""
    notes = [f"The window was {_said(window)}." + (" The query's own filters hold as well." if filtered else "")]
    for table in list(tables)[:MOST_TABLES_EXPLAINED]:
        notes += _held(access, table, window)
    return notes


def _held(access: KqlAccess, table: str, window: TimeWindow) -> list[str]:
    if not _PLAIN_NAME.fullmatch(table):
        return []
    kql = f"{table}\n| summarize Rows = count(), Oldest = min(TimeGenerated), Newest = max(TimeGenerated)"
    try:
        row = next(access.answer(kql, TimeWindow()).records(), None)
    except SentinelError:  # it only explains
        return []
    if row is None or not row["Rows"]:
        return [f"{table} holds no rows at all: nothing was collected or imported yet."]
    if row["Oldest"] is None:
        return [f"{table} holds {row['Rows']:,} rows, none with a TimeGenerated."]
    oldest, newest = row["Oldest"], row["Newest"]
    said = (
        f"{table} holds {row['Rows']:,} rows, the oldest of {format_time(oldest)}, the newest of {format_time(newest)}."
    )
    if (window.start is not None and newest < window.start) or (window.end is not None and oldest >= window.end):
        return [f"{said} All of them lie outside the window: try --since {format_time(oldest)}"]
    return [said]


def _said(window: TimeWindow) -> str:
    window = TimeWindow(*(each and each.replace(microsecond=0) for each in (window.start, window.end)))
    if window.start is None and window.end is None:
        return "everything that is retained"
    if window.start is None:
        assert window.end is not None
        return f"everything before {format_time(window.end)}"
    if window.end is None:
        return f"everything since {format_time(window.start)}"
    return f"from {format_time(window.start)} to before {format_time(window.end)}"


def _cell(value: JsonValue) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)

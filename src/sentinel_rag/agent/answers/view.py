"""What a model reads of a result: a slim table of numbered rows, as many as fit, each with the text to cite it by.

Columns that tell a reader nothing (addresses of portals, ids of providers) and empty cells are left out; a value that
is the same in every row is told once. What does not fit is on the next page: `read_rows` shows any rows of a result
that was read before, and any column by its name, without asking a tool again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Any

from sentinel_rag.agent.answers.results import Cell, Result, Results, Row
from sentinel_rag.agent.row_text import plain, show_age
from sentinel_rag.agent.tokens import TokenCounter
from sentinel_rag.contracts.tool_calls import ToolSchema
from sentinel_rag.language.text import toml_beside

_HIDDEN = {kind: frozenset(columns.split()) for kind, columns in toml_beside(__package__, "hidden.toml").items()}
"""Columns by kind of row that are shown only if they are asked for by name. Entities hide what a dossier does."""
_FEW = 6
"""Rows that are shown with long texts."""
_WIDTHS = (1_000, 400, 240, 160, 100)
"""Characters of a cell, from much to little: the first with which all rows fit, else the last and several pages."""
_LONG_TEXTS = frozenset({"text", "content", "message", "value", "query"})
"""Columns whose cells are texts to be read: they stand below their row, whole up to `_LONGEST_TEXT`."""
_LONGEST_TEXT = 6_000
_MOST_ITEMS = 12
_LONGEST_TOTALS = 2_400
_DATA_TAG = re.compile(r"<(?=\s*/?\s*tool_result)", re.IGNORECASE)
_FRACTION = re.compile(r"(?<=^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\.\d{1,9}(?=Z$)")
"""Of a second, which no reader tells; the cell keeps it."""
_NOT_TOTALS = frozenset({"matched_by", "reference", "detail", "ambiguous", "template", "description"})

READ_ROWS = ToolSchema(
    "read_rows",
    "Read on in a result of this conversation (next page, one part of an incident, or columns that were left out) "
    "without a new query. Runs here, needs no right; the rows are as old as the result.",
    {
        "type": "object",
        "properties": {
            "result": {"type": "string", "description": "Its id, such as c1."},
            "from": {"type": "integer", "description": "First row number; default 1."},
            "kind": {
                "type": "string",
                "description": "Only rows of this kind: alert, comment, event, account, host...",
            },
            "fields": {
                "type": "array",
                "items": {"type": "string"},
                "description": "Only these columns, also hidden ones (url, alert_id, ...).",
            },
        },
        "required": ["result"],
        "additionalProperties": False,
    },
)


@dataclass(frozen=True, slots=True)
class ModelView:
    """The text for a model, and the number of the first row that it does not show; 0 if it shows the last."""

    text: str
    next_row: int = 0


def view(
    result: Result,
    *,
    limit: int,
    counter: TokenCounter,
    first: int = 1,
    kind: str = "",
    fields: Sequence[str] = (),
    age: str = "",
) -> ModelView:
    """The rows from number `first` on that fit into `limit` tokens, at least one of them; of one `kind`, and only
    `fields` of them, if those are given."""
    head = _head(result, age)
    if result.problem:
        return ModelView("\n".join((*head, f"failed: {_safe(result.problem, 1_000)}", _END)))
    rows = [row for row in result.rows if row.number >= first and kind in ("", row.kind)]
    if not rows:
        start, _, total = _page(result)
        past = f": the list ends with row {total}" if 0 < total < start else ""
        return ModelView("\n".join((*head, f"no rows{past}", _END)))
    room = limit - counter.count("\n".join(head)) - 80
    shown: list[str] = []
    shown_rows = 0
    for width in _WIDTHS if not fields else _WIDTHS[:1]:
        shown, shown_rows = _fitting(rows, width, fields, room, counter)
        if shown_rows == len(rows) and (len(rows) <= _FEW or width <= _WIDTHS[1]):
            break
    next_row = rows[shown_rows].number if shown_rows < len(rows) else 0
    if next_row:
        of_kind = f',"kind":"{kind}"' if kind else ""
        call = f'read_rows {{"result":"{result.ref}","from":{next_row}{of_kind}}}'
        shown.append(f"... {len(rows) - shown_rows} more rows, from [{result.ref}.{next_row}] on: {call}")
    first_of_page, last_of_page, total = _page(result)
    if not next_row and total > last_of_page:
        shown.append(
            f"... these are rows {first_of_page} to {last_of_page} of {total}: go on with offset {last_of_page}"
        )
    return ModelView("\n".join((*head, *shown, _END)), next_row)


def read_rows(
    arguments: Mapping[str, Any], results: Results, *, limit: int, counter: TokenCounter, now: datetime
) -> str:
    """The answer to a call of `read_rows`; a call that cannot be carried out is answered with what is wrong."""
    name = str(arguments.get("result") or "").strip("[] ")
    name, _, row = name.partition(".")
    result = results.get(name)
    if result is None:
        known = ", ".join(each.ref for each in results) or "none"
        return f"There is no result {name!r} in this conversation. Results at hand: {known}."
    first = arguments.get("from") or (int(row) if row.isdigit() else 1)
    kind = str(arguments.get("kind") or "")
    if kind and kind not in result.kinds:
        return f"{name} has no rows of kind {kind!r}. Its kinds: {', '.join(result.kinds) or 'none'}."
    fields = [str(field) for field in arguments.get("fields") or ()]
    columns = list(dict.fromkeys(column for each in result.rows for column in each.cells))
    unknown = [field for field in fields if field not in columns]
    if unknown:
        raw = (
            " Other columns of its rows are read from their table, with run_kql_query."
            if result.tool == _SEARCH
            else ""
        )
        return f"{name} has no column {unknown[0]!r}. Its columns: {', '.join(columns)}.{raw}"
    if result.rows and first > len(result.rows):
        return f"{name} has {len(result.rows)} rows; there is no row {first}."
    age = "" if result.read_at is None else show_age(now - result.read_at)
    return view(result, limit=limit, counter=counter, first=int(first), kind=kind, fields=fields, age=age).text


def _page(result: Result) -> tuple[int, int, int]:
    """The places of the first and the last row in the whole list of the tool, and how many that has; 0 if unknown."""
    offset, returned, total = (
        value if isinstance(value, int) else 0
        for value in (result.arguments.get("offset"), *map(result.coverage.get, ("rows_returned", "rows_total")))
    )
    return offset + 1, offset + returned, total


QUERY = "run_kql_query"
"""The tool whose rows do not say by their kind which log table they are of."""
_SEARCH = "search_logs"
_END = "</tool_result>"


def _head(result: Result, age: str) -> list[str]:
    lines = [f'<tool_result call="{result.ref}">']
    if result.problem:
        return lines
    coverage = result.coverage
    state = "complete" if result.complete else "of the rows named" if coverage.get("chosen") else "NOT complete"
    facts = [f"whole [{result.ref}]: {state}"]
    if age:
        facts.append(f"read {age} ago")
    total = coverage.get("rows_total")
    if total is not None:
        start, end, all_ = _page(result)
        last = f", the last of them: rows {start} to {end}" if 1 < start <= end == all_ else ""
        facts.append(f"{coverage.get('rows_returned')} of {total} rows{last}")
    tables = coverage.get("tables")
    if isinstance(tables, list | tuple) and len(tables) == 1 and result.tool == QUERY:
        facts.append(f"table {_safe(str(tables[0]), 100)}")
    window = coverage.get("window")
    if isinstance(window, Mapping) and any(window.values()):
        facts.append(f"window {window.get('start') or 'the beginning'} to {window.get('end') or 'now'}")
    if coverage.get("partial"):
        facts.append(f"PARTIAL: {_safe(str(coverage.get('partial_reason') or 'the service cut it'), 300)}")
    if not result.rows and coverage.get("table_rows") == 0:
        facts.append("the table holds no rows at all")
    elif coverage.get("table_newest"):
        column = coverage.get("time_column")
        what = f"{column} in the table" if column and column != "TimeGenerated" else "row of the table"
        facts.append(f"newest {what} {coverage['table_newest']}")
    if coverage.get("workspace"):
        facts.append(f"workspace {_safe(str(coverage['workspace']), 100)}")
    lines.append("; ".join(facts))
    totals = _totals_text(result)
    if totals:
        lines.append(f"totals [{result.ref}]: {totals}")
    lines += [f"note: {_safe(note, 500)}" for note in result.notes]
    return lines


def _totals_text(result: Result) -> str:
    parts = []
    told = [total for total in result.totals if total.path[0] not in _NOT_TOTALS]
    for group, totals in groupby(told, key=lambda total: total.path[0]):
        if group == "entities":  # their properties stand in the alert
            values = list(dict.fromkeys(total.path[1] for total in totals if len(total.path) > 1))
        else:
            values = [" ".join((*map(str, total.path[1:]), str(total.value))) for total in totals]
        parts.append(f"{group}: {', '.join(values)}")
    return _safe("; ".join(parts), _LONGEST_TOTALS)


def _fitting(
    rows: Sequence[Row], width: int, fields: Sequence[str], room: int, counter: TokenCounter
) -> tuple[list[str], int]:
    """The lines of the first rows that take at most `room` tokens, and how many rows those are; one at least."""
    lines: list[str] = []
    count = 0
    for _, group in groupby(rows, key=lambda row: row.kind):
        block = _Block(list(group), width, fields)
        head = block.head()
        room -= sum(counter.count(line) + 1 for line in head)
        begun = False
        for text, rows_told in block.rows():
            size = counter.count(text) + 1
            if size > room and count:
                return lines, count
            if not begun:
                lines += head
                begun = True
            lines.append(text)
            room -= size
            count += rows_told
    return lines, count


class _Block:
    """Rows of one kind, one below the other."""

    def __init__(self, rows: Sequence[Row], width: int, fields: Sequence[str]) -> None:
        self._rows = rows
        self._width = width
        self._folds = "found_in" in rows[0].cells and not fields
        hidden = hidden_columns(rows[0])
        held: dict[str, int] = {}
        for row in rows:
            for column in row.cells:
                held[column] = held.get(column, 0) + 1
        columns = [column for column in held if (column in fields if fields else column not in hidden)]
        first = rows[0].cells
        self._same = [
            column
            for column in columns
            if len(rows) > 2
            and held[column] == len(rows)
            and column not in _LONG_TEXTS
            and not any(column in row.quoted for row in rows)
            and all(row.cells[column] == first[column] for row in rows)
        ]
        told = [column for column in columns if column not in self._same]
        self._below = [column for column in told if column in _LONG_TEXTS]
        self._table = [column for column in told if 2 * held[column] >= len(rows) and column not in self._below]
        self._seldom = [column for column in told if column not in self._table and column not in self._below]
        empty = frozenset.intersection(*(row.empty for row in rows)) - hidden
        self._empty = sorted(empty.intersection(fields) if fields else empty)

    def head(self) -> list[str]:
        kind = self._rows[0].kind
        same = [f"{column}={self._cell(self._rows[0], column)}" for column in self._same]
        lines = [f"{kind} rows: {' | '.join(self._table)}"] if self._table else []
        lines += [f"the same in all of them: {'; '.join(same)}"] if same else []
        more = len(self._empty) - _MOST_ITEMS
        told = ", ".join(self._empty[:_MOST_ITEMS]) + (f" and {more} other columns" if more > 0 else "")
        return [*lines, f"empty in every row: {told}"] if self._empty else lines

    def rows(self) -> Iterator[tuple[str, int]]:
        """The lines with how many rows each tells: hits of a search that differ in their time alone are told once."""
        for _, run in groupby(self._rows, key=self._without_time):
            first, *others = run
            alike = f"[{first.ref}-{others[-1].number}] are alike but for their time" if others else ""
            last = f"\n  {alike}, the last {self._cell(others[-1], 'time')}" if others else ""
            yield f"{self._text(first)}{last}", 1 + len(others)

    def _without_time(self, row: Row) -> object:
        return [cell for cell in row.cells.items() if cell[0] != "time"] if self._folds else row.ref

    def _text(self, row: Row) -> str:
        cells = [self._cell(row, column) for column in self._table]
        cells += [f"{column}={self._cell(row, column)}" for column in self._seldom if column in row.cells]
        lines = [f"[{row.ref}] {' | '.join(cells)}"]
        for column in self._below:
            if column in row.cells:
                text = "\n".join(
                    _safe(line, _LONGEST_TEXT) for line in str(row.cells[column])[:_LONGEST_TEXT].splitlines()
                )
                cut = " ... (cut)" if len(str(row.cells[column])) > _LONGEST_TEXT else ""
                text = _quote(text) if column in row.quoted else text
                lines += [f"  {line}" for line in f"{column}: {text}{cut}".splitlines()]
        return "\n".join(lines)

    def _cell(self, row: Row, column: str) -> str:
        value = row.cells.get(column, "")
        text = _safe(_words(value), self._width).replace("|", "\\|")
        return _quote(text) if column in row.quoted else text


def hidden_columns(row: Row) -> frozenset[str]:
    """The columns of such rows that are shown only if they are asked for by name."""
    own = _HIDDEN.get(row.kind, frozenset())
    return own | _HIDDEN["dossier"] if row.kind in ("incident", "alert") or _is_entity(row) else own


def _is_entity(row: Row) -> bool:
    return "/entities/" in row.pointer


def _words(value: Cell) -> str:
    if isinstance(value, tuple):
        shown = ", ".join(_words(item) for item in value[:_MOST_ITEMS])
        return shown if len(value) <= _MOST_ITEMS else f"{shown} (+{len(value) - _MOST_ITEMS} more)"
    return _FRACTION.sub("", str(value))


def _quote(text: str) -> str:
    """A text of others, between marks that it cannot close."""
    return f"«{text.replace('«', '‹').replace('»', '›')}»"


def _safe(text: str, limit: int) -> str:
    """One line that cannot end the block it stands in."""
    return _DATA_TAG.sub("‹", plain(text, limit=limit))

"""A call of `compute` as it was meant, and its result in the making."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sentinel_rag.agent.answers.conditions import RowCondition, conditions, fulfilling
from sentinel_rag.agent.answers.results import Cell, Results, Row
from sentinel_rag.agent.answers.selection import (
    ComputeError,
    SelectedRows,
    column_named,
    fold,
    hidden,
    items,
    number,
    select,
)
from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.contracts.tool_calls import ToolSchema

NAME = "compute"

OPS = (
    "count", "share", "group", "sum", "average", "median", "min", "max", "distinct", "order", "all", "none", "any",
    "ratio", "difference", "change", "duration", "minus", "intersection", "union",
)  # fmt: skip
_OF_TWO = OPS[OPS.index("ratio") :]
"""Those of two operands, `a` and `b`."""
_TEXT = {"type": "string"}
COMPUTE = ToolSchema(
    NAME,
    "Counts, compares and orders rows you already have; cite its result instead of calculating. count, share: rows "
    "that fulfil `where`. group: by a column or unit of time. sum to order: of `column`. all, none, any: does `that` "
    "hold. ratio, difference, change (a to b), duration: of `a` and `b`. minus, intersection, union: values of "
    "`column` in `a` and `b`.",
    {
        "type": "object",
        "properties": {
            "op": {
                "type": "string",
                "enum": [*OPS],
            },
            "of": {**_TEXT, "description": "result c1, its pages c1,c4, or rows c1.3-6"},
            "kind": {**_TEXT, "description": "rows of one kind: alert, comment, event, ..."},
            "where": {
                **_TEXT,
                "description": "severity = High; title contains phish; owner is empty; created_time after 2026-01-31",
            },
            "that": {**_TEXT, "description": "like where"},
            "column": _TEXT,
            "by": {**_TEXT, "description": "column; or hour, day, week of the time in column"},
            "a": {**_TEXT, "description": "cell c1.3.alert_count, total c1.by_severity.High, result c1, now"},
            "b": _TEXT,
        },
        "required": ["op"],
    },
)  # fmt: skip
"""What a model is offered. `compute` takes more than that: lists, objects, numbers as text, other words for an op."""

_OTHER_OPS = {
    "avg": "average", "mean": "average", "minimum": "min", "maximum": "max", "earliest": "min", "oldest": "min",
    "latest": "max", "newest": "max", "sort": "order", "rank": "order", "except": "minus", "set_difference": "minus",
    "intersect": "intersection", "percent": "share", "percentage": "share", "total": "sum", "subtract": "difference",
    "count_distinct": "distinct", "unique": "distinct", "group_by": "group", "groupby": "group", "every": "all",
    "exists": "any",
}  # fmt: skip
_OTHER_ARGUMENTS = {
    "operation": "op", "results": "of", "result": "of", "ref": "of", "rows": "of", "filter": "where", "field": "column",
    "group_by": "by", "from": "a", "to": "b", "start": "a", "end": "b", "condition": "that",
}  # fmt: skip


@dataclass(slots=True)
class ComputedRows:
    """Rows in the making. `quoted` holds for each row the columns whose text an outsider wrote."""

    complete: bool
    operands: Iterable[str]
    rows: list[dict[str, Cell]] = field(default_factory=list)
    quoted: list[frozenset[str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    read: int | None = None

    def add(self, cells: Mapping[str, Cell], quoted: Iterable[str] = ()) -> None:
        self.rows.append(dict(cells))
        self.quoted.append(frozenset(quoted).intersection(cells))


@dataclass(frozen=True, slots=True)
class ComputeCall:
    """The arguments as they were meant; `arguments` are those that were set."""

    op: str
    arguments: Mapping[str, JsonValue]
    results: Results
    now: datetime

    @classmethod
    def read(cls, arguments: Mapping[str, Any], results: Results, now: datetime) -> ComputeCall:
        set_: dict[str, JsonValue] = {}
        known = tuple(COMPUTE.parameter_schemas())
        for told, value in arguments.items():
            name = told if told in known else _OTHER_ARGUMENTS.get(fold(told), fold(told))
            if value in (None, "", [], {}, ()):
                continue
            if name not in known:
                raise ComputeError(f"compute has no argument {told!r}; it has {', '.join(known)}", told, known)
            set_.setdefault(name, value)
        said = fold(str(set_.get("op", ""))).replace(" ", "_").replace("-", "_")
        op = _OTHER_OPS.get(said, said)
        if op not in OPS:
            words = f"compute has no op {said!r}" if said else "op is missing"
            raise ComputeError(f"{words}; it has {', '.join(OPS)}", "op", OPS)
        set_["op"] = op
        return cls(op, set_, results, now)

    def said(self, name: str) -> str:
        value = self.arguments.get(name)
        return "" if value is None else str(number(value)) if isinstance(value, float) else str(value).strip()

    def selection(self, argument: str = "of") -> tuple[SelectedRows, tuple[Row, ...], tuple[RowCondition, ...]]:
        """The rows that an argument refers to, those of them that fulfil `where`, and the conditions."""
        of = self.arguments.get(argument)
        if argument == "of" and of is None and self.op not in _OF_TWO:
            of = self.arguments.get("a")  # where else would one result stand
        selection = select(self.results, of, self.said("kind"), name=argument)
        where = self.conditions("where", selection)
        return selection, fulfilling(selection.rows, where, self.now), where

    def conditions(self, argument: str, selection: SelectedRows) -> tuple[RowCondition, ...]:
        """Conditions over the rows; a column that all of them lack may stand in other rows of their kind."""
        kinds = {row.kind for row in selection.rows}
        others = {name: None for each in self.results for row in each.rows if row.kind in kinds for name in row.cells}
        if not selection.rows:
            return ()
        return conditions(self.arguments.get(argument), selection, tuple(others), argument=argument)

    def column(self, selection: SelectedRows, argument: str = "column") -> str:
        """The column that the argument names, among those of the rows."""
        return column_named(self.said(argument), selection.columns(), selection, argument=argument)

    def begin(
        self, selection: SelectedRows, read: int, where: Sequence[RowCondition] = (), columns: Sequence[str] = ()
    ) -> ComputedRows:
        """What comes of these rows, with what a reader must know of them. `columns` are compared for equality."""
        made = ComputedRows(selection.complete, selection.operands, notes=list(selection.notes), read=read)
        if selection.picked:
            made.notes.append(f"computed over the {len(selection.rows)} rows named, not over all of a result")
        elif not selection.complete:
            there = f"{len(selection.rows)} of {selection.matched}" if selection.matched else f"{len(selection.rows)}"
            made.notes.append(f"computed over {there} rows: not complete, get the other pages first")
        for name in (*columns, *(each.column for each in where if each.operator not in ("empty", "filled"))):
            if any(hidden(part) for row in selection.rows for part in items(row.cells.get(name))):
                made.complete = False
                made.notes.append(f"values of {name} are hidden: two handles may stand for the same value")
        return made

"""A call of `compute` as it was meant, and its result in the making."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from sentinel_rag.agent.answers.conditions import RowCondition, conditions, fulfilling
from sentinel_rag.agent.answers.results import Cell, Results, Row
from sentinel_rag.agent.answers.selection import (
    EMPTY,
    ComputeError,
    SelectedRows,
    hidden,
    items,
    number,
    rounded,
    select,
    squashed,
    text,
    time_of,
)
from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.contracts.tool_calls import ToolSchema
from sentinel_rag.language.lexicon import fold

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
            "op": {"type": "string", "enum": [*OPS]},
            "of": {**_TEXT, "description": "result c1, its pages c1,c4, or rows c1.3-6"},
            "kind": {**_TEXT, "description": "rows of one kind: alert, comment, event, ..."},
            "where": {
                **_TEXT,
                "description": "severity = High; title contains phish; owner is empty; created_time after 2026-01-31",
            },
            "that": {**_TEXT, "description": "like where"},
            "column": {**_TEXT, "description": "or closed_time - created_time: seconds"},
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
class Computation:
    """The rows that a call reads, those of them that fulfil `where`, and the rows that come of them.

    `quoted` holds for each row that was made the columns whose text an outsider wrote; `read` is how many rows were
    read, None where the call reads none.
    """

    call: ComputeCall
    complete: bool = True
    operands: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    selection: SelectedRows = field(default_factory=SelectedRows)
    where: tuple[RowCondition, ...] = ()
    rows: tuple[Row, ...] = ()
    read: int | None = None
    made: list[dict[str, Cell]] = field(default_factory=list)
    quoted: list[frozenset[str]] = field(default_factory=list)

    def add(self, cells: Mapping[str, Cell], quoted: Iterable[str] = ()) -> None:
        self.made.append(dict(cells))
        self.quoted.append(frozenset(quoted).intersection(cells))

    def column(self, argument: str = "column", name: str = "") -> str:
        """The column that an argument names: one of the rows, or `later - earlier`, the seconds between two times of
        each row, which is added to the rows. Raises ComputeError."""
        name = name or self.call.said(argument)
        later, minus, earlier = (part.strip() for part in name.partition(" - "))
        if not minus or squashed(name) in map(squashed, self.selection.columns()):
            return self.selection.column(name, argument)
        a, b = (self.selection.column(each, argument) for each in (later, earlier))
        name = f"{a} - {b}"
        self.rows = tuple(
            replace(row, cells={**row.cells, name: rounded((time_of(row, a) - time_of(row, b)).total_seconds())})
            if row.cells.keys() >= {a, b}
            else row
            for row in self.rows
        )
        return name

    def compares(self, *columns: str) -> None:
        """Note that values of the columns are compared for equality: with hidden ones nothing is complete."""
        for name in columns:
            if any(hidden(part) for row in self.selection.rows for part in items(row.cells.get(name))):
                self.complete = False
                self.notes.append(f"values of {name} are hidden: two handles may stand for the same value")

    def conditions(self, argument: str) -> tuple[RowCondition, ...]:
        """Conditions over the rows; a column that all of them lack may stand in other rows of their kind."""
        kinds = {row.kind for row in self.selection.rows}
        if not kinds:
            return ()
        results = self.call.results
        more = dict.fromkeys(name for each in results for row in each.rows if row.kind in kinds for name in row.cells)
        found = conditions(self.call.arguments.get(argument), self.selection, tuple(more), argument=argument)
        self.compares(*(each.column for each in found if each.operator not in ("empty", "filled")))
        return found

    def outside(self, *columns: str) -> frozenset[str]:
        """Those of the columns in which an outsider wrote a text of one of the rows."""
        return frozenset(columns).intersection(name for row in self.rows for name in row.quoted)

    def told(self, where: Sequence[RowCondition], rows: Sequence[Row], name: str = "where") -> dict[str, Cell]:
        """Conditions as cells: the text of all, those that deny apart in `unless`, and what was asked to be equal under
        its column. Of several values those that one of the rows has: a cell is read as what was found. Where no row is
        left, the values that there are are noted: a wrong word reads like an absence."""
        equal: dict[str, Cell] = {}
        asked = [each.as_found(rows, self.call.now) for each in where if not each.denies]
        for each in asked:
            if each.operator == "empty":
                equal[each.column] = EMPTY
            elif each.operator in ("=", "in") and each.values:
                equal[each.column] = each.values[0] if len(each.values) == 1 else each.values
                if not rows and (values := self._few_values(each.column)):
                    self.notes.append(f"no row has {each}; {each.column} is one of {values}")
        parts = {name: asked, "unless": [each.turned() for each in where if each.denies]}
        return equal | {name: "; ".join(map(str, part)) for name, part in parts.items() if part}

    def _few_values(self, column: str, most: int = 12) -> str:
        """The values of a column where they are few and nobody's from outside."""
        rows = self.selection.rows
        found = {text(each): None for row in rows for each in items(row.cells.get(column)) if not hidden(each)}
        return "" if len(found) > most or any(column in row.quoted for row in rows) else ", ".join(found)


@dataclass(frozen=True, slots=True)
class ComputeCall:
    """The arguments as they were meant; `arguments` are those that were set."""

    op: str
    arguments: Mapping[str, JsonValue]
    results: Results
    now: datetime

    @classmethod
    def of(cls, arguments: Mapping[str, Any], results: Results, now: datetime) -> ComputeCall:
        """The call of a model. Raises ComputeError for an argument or an operation that there is not."""
        set_: dict[str, JsonValue] = {}
        known = tuple(COMPUTE.parameter_schemas())
        for told, value in arguments.items():
            name = _OTHER_ARGUMENTS.get(fold(told).strip(), fold(told).strip())
            if value in (None, "", [], {}, ()):
                continue
            if name not in known:
                raise ComputeError(f"compute has no argument {told!r}; it has {', '.join(known)}", told, known)
            set_.setdefault(name, value)
        said = re.sub(r"[\s-]+", "_", fold(str(set_.get("op", ""))).strip())
        op = _OTHER_OPS.get(said, said)
        if op not in OPS:
            words = f"compute has no op {said!r}" if said else "op is missing"
            raise ComputeError(f"{words}; it has {', '.join(OPS)}", "op", OPS)
        return cls(op, set_ | {"op": op}, results, now)

    def said(self, name: str) -> str:
        """The text of an argument; empty for one that was not set."""
        value = self.arguments.get(name)
        return "" if value is None else str(number(value)) if isinstance(value, float) else str(value).strip()

    def read(self, argument: str = "of") -> Computation:
        """The rows that an argument refers to and that fulfil `where`, with what a reader must know of them."""
        of = self.arguments.get(argument)
        if argument == "of" and of is None and self.op not in _OF_TWO:
            of = self.arguments.get("a")  # where else would one result stand
        there = select(self.results, of, self.said("kind"), name=argument)
        made = Computation(self, there.complete, list(there.operands), list(there.notes), there)
        if there.picked:
            made.notes.append(f"computed over the {len(there.rows)} rows named, not over all of a result")
        elif not there.complete:
            count = f"{len(there.rows)} of {there.matched}" if there.matched else f"{len(there.rows)}"
            made.notes.append(f"computed over {count} rows: not complete, get the other pages first")
        made.where = made.conditions("where")
        made.rows = fulfilling(there.rows, made.where, self.now)
        made.read = len(made.rows)
        return made

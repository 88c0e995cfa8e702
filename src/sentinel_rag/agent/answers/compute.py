"""A call of `compute` as it was meant, and its result in the making."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from sentinel_rag.agent.answers.results import Cell, Result, Results, Row
from sentinel_rag.agent.answers.selection import (
    EMPTY,
    ComputeError,
    RowCondition,
    SelectedRows,
    cell_of,
    conditions,
    fulfilling,
    hidden,
    items,
    moment,
    number,
    order_key,
    references,
    required,
    rounded,
    select,
    squashed,
    text,
    thing,
    time_of,
)
from sentinel_rag.agent.answers.view import hidden_columns
from sentinel_rag.agent.tool_runs import ToolRun
from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.contracts.query_results import format_time
from sentinel_rag.contracts.tool_calls import DocumentResult, Failed, Succeeded, ToolCall, ToolSchema
from sentinel_rag.language.lexicon import fold
from sentinel_rag.language.literals import Kind, scan
from sentinel_rag.language.text import toml_beside

NAME = "compute"

OPS = (
    "count", "share", "group", "sum", "average", "median", "min", "max", "distinct", "order", "all", "none", "any",
    "ratio", "difference", "change", "duration", "later", "minus", "intersection", "union",
)  # fmt: skip
_OF_TWO = OPS[OPS.index("ratio") :]
"""Those of two operands, `a` and `b`."""
_NOW = "now"
_SAID = toml_beside(__package__, "compute.toml")
"""Other words for operations, arguments and units of time, as models say them, and what a model is told of both."""
_TOLD = {
    name: {"type": "string", **({"description": told} if told else {})} for name, told in _SAID["parameters"].items()
}
COMPUTE = ToolSchema(
    NAME,
    _SAID["description"],
    {
        "type": "object",
        "properties": {"op": {"type": "string", "enum": [*OPS]}, **_TOLD},
        "required": ["op"],
    },
)
"""What a model is offered. `compute` takes more than that: lists, objects, numbers as text, other words for an op."""


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
        """The column that an argument names: one of the rows; or `later - earlier`, the seconds between two times of
        each row, of which one may be `now`, or `count(list)`, how many values a cell holds, which are added to the
        rows. Raises ComputeError."""
        name = name or self.call.said(argument)
        later, minus, earlier = (part.strip() for part in name.partition(" - "))
        if not minus or squashed(name) in map(squashed, self.selection.columns()):
            name = self.selection.column(name, argument)
            if name.startswith("count("):
                self.rows = tuple(replace(row, cells={**row.cells, name: cell_of(row, name) or 0}) for row in self.rows)
            return name
        a, b = (_NOW if fold(each) == _NOW else self.selection.column(each, argument) for each in (later, earlier))
        name = f"{a} - {b}"

        def at(row: Row, column: str) -> datetime:
            return self.call.now if column == _NOW else time_of(row, column)

        self.rows = tuple(
            replace(row, cells={**row.cells, name: rounded((at(row, a) - at(row, b)).total_seconds())})
            if row.cells.keys() >= {a, b} - {_NOW}
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
        if not rows:
            self.notes += self._unmatched(asked)
        parts = {name: asked, "unless": [each.turned() for each in where if each.denies]}
        return equal | {name: "; ".join(map(str, part)) for name, part in parts.items() if part}

    def nothing(self, words: str, argument: str) -> ComputeError:
        """The refusal of a computation over no row, with what the columns of its conditions hold."""
        asked = [each for each in self.where if not each.denies]
        return ComputeError("; ".join((words, *([] if self.rows else self._unmatched(asked)))), argument)

    def _unmatched(self, where: Sequence[RowCondition]) -> list[str]:
        """Of each condition that no row fulfils, what its column holds."""
        there = self.selection.rows
        alone = [each for each in where if each.operator not in ("empty", "filled")]
        alone = [each for each in alone if not fulfilling(there, (each,), self.call.now)]
        told = ((each, self._few_values(each.column)) for each in alone)
        return [f"no row has {each}; {each.column} is {values}" for each, values in told if values]

    def _few_values(self, column: str, most: int = 12) -> str:
        """The values of a column that nobody outside wrote: all of them where they are few, the ends of numbers and of
        times, or those that stand in most rows."""
        rows = self.selection.rows
        found = [value for value, _ in _by_value(rows, column) if value != EMPTY and not hidden(value)]
        if not found or any(column in row.quoted for row in rows):
            return ""
        keys = [order_key(value) for value in found]
        if len(found) > most and len({key and key[0] for key in keys}) == 1 and keys[0] and keys[0][0] < 2:
            ordered = sorted(found, key=lambda value: order_key(value) or (0, 0))
            return f"between {text(ordered[0])} and {text(ordered[-1])}"
        more = f" ... ({len(found) - most} more)" if len(found) > most else ""
        return f"one of {', '.join(text(value)[:_LONGEST_SHOWN] for value in found[:most])}{more}"


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
            name = _SAID["arguments"].get(fold(told).strip(), fold(told).strip())
            if value in (None, "", [], {}, ()):
                continue
            if name not in known:
                raise ComputeError(f"compute has no argument {told!r}; it has {', '.join(known)}", told, known)
            set_.setdefault(name, value)
        said = re.sub(r"[\s-]+", "_", fold(str(set_.get("op", ""))).strip())
        op = _SAID["ops"].get(said, said)
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
            made.notes.append(f"computed over the {len(there.rows)} rows named")
        elif not there.complete:
            count = f"{len(there.rows)} of {there.matched}" if there.matched else f"{len(there.rows)}"
            made.notes.append(f"computed over {count} rows: not complete, get the other pages first")
        made.where = made.conditions("where")
        made.rows = fulfilling(there.rows, made.where, self.now)
        made.read = len(made.rows)
        return made


__all__ = ["COMPUTE", "NAME", "ComputeError", "compute", "computed_run"]

MOST_BUCKETS = 2_000
_LONGEST_SHOWN = 80
MOST_NAMED = 20
MOST_LISTED = 50
"""Items of one cell that lists values or rows."""
_LONGEST_STEP = 4_000 * 86_400
_MONDAY = datetime(1, 1, 1, tzinfo=UTC)
_UNITS = {"hour": timedelta(hours=1), "day": timedelta(days=1), "week": timedelta(weeks=1)}
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_RECURRING: dict[str, tuple[tuple[str, ...], Callable[[datetime], int]]] = {
    "hour_of_day": (tuple(f"{hour:02}:00" for hour in range(24)), lambda at: at.hour),
    "weekday": (_WEEKDAYS, lambda at: at.weekday()),
}
"""Parts of the day and of the week, each with all its labels."""
_TIMES = ("start_time", "created_time", "TimeGenerated", "time")
"""The time of a row where none is named, the first that it has."""
_NAMES = ("number", "alert_id", "title", "name", "kind")
"""Cells by which a person knows a row."""
_Part = tuple[dict[str, Cell], Sequence[Row]]


def _of(count: float, of: float) -> dict[str, Cell]:
    """A part of a whole, as cells."""
    return {"count": count, "of": rounded(of), **({"percent": rounded(100 * count / of, 1)} if of else {})}


def _span(seconds: float) -> dict[str, Cell]:
    """A length of time, as cells."""
    units = {"minutes": 60, "hours": 3600, "days": 86400}
    return {"seconds": rounded(seconds), **{unit: rounded(seconds / size, 1) for unit, size in units.items()}}


def _which(rows: Sequence[Row]) -> dict[str, Cell]:
    """The numbers of the incidents that were counted, where they are few: whoever tells how many names them next."""
    numbers = tuple(row.cells["number"] for row in rows if row.kind == "incident" and "number" in row.cells)
    return {"incident_numbers": numbers} if 0 < len(numbers) == len(rows) <= MOST_NAMED else {}


def _count(call: ComputeCall) -> Computation:
    if call.said("by"):
        return _group(call)
    made = call.read()
    if "that" in call.arguments and (that := made.conditions("that")):
        held = fulfilling(made.rows, that, call.now)
        made.add({**_of(len(held), len(made.rows)), **made.told((*made.where, *that), held), **_which(held)})
        return made
    there = made.selection
    if made.where:
        made.add({**_of(len(made.rows), len(there.rows)), **made.told(made.where, made.rows), **_which(made.rows)})
    elif there.matched is not None and not there.complete and not there.picked:
        made.complete, made.notes = True, list(there.notes)  # the service counted all that matched
        made.add({"count": there.matched})
    else:
        made.add({"count": len(made.rows)})
    return made


def _share(call: ComputeCall) -> Computation:
    """Of a summary's counts; of a column's sum by a label; else of rows, as `count`."""
    by = call.said("by")
    made = call.read()
    first = made.selection.sources[:1]
    totals = [each for result in first for each in result.totals if fold(by) in map(fold, each.path[-2:-1])]
    counts = {total.path[-1]: value for total in totals if (value := number(total.value)) is not None}
    if by and counts and not made.where:
        made = Computation(call, operands=made.operands)
        for name, count in counts.items():
            made.add({by: name, **_of(count, math.fsum(counts.values()))})
    elif by and call.said("column") and by not in _UNITS:
        column = made.column()
        sums = [(math.fsum(_numbers(_having(made, part, column), column)), label) for label, part in _parts(made)]
        whole = math.fsum(value for value, _ in sums)
        for value, label in sorted(sums, key=lambda pair: -pair[0]):
            _, *share = _of(value, whole).items()
            made.add({**label, column: rounded(value), **dict(share)}, made.outside(*label))
    else:
        return _count(call)
    return made


def _group(call: ComputeCall) -> Computation:
    made = call.read()
    asked = made.told(made.where, made.rows)
    for label, part in _parts(made):
        made.add({**asked, **label, **_of(len(part), len(made.rows))}, made.outside(*label))
    return made


def _parts(made: Computation) -> Iterable[_Part]:
    """Rows by the values of the column `by`, or by a unit of time, each part with its label."""
    by, column = made.call.said("by"), made.call.said("column")
    words = fold(by).replace("(", " ").replace(")", " ").split()
    unit = next((_SAID["units"][word] for word in words if word in _SAID["units"]), "")
    recurring = next((word for word in _SAID["recurring"] if squashed(by).startswith(word)), "")
    if recurring and squashed(by) not in map(squashed, made.selection.columns()):
        of = squashed(by).removeprefix(recurring).removeprefix("of") or ("" if made.call.op in _MEASURES else column)
        return _recurring(made, _SAID["recurring"][recurring], _column_or_time(made, of))
    if unit and squashed(by) not in map(squashed, made.selection.columns()):
        named = [word for word in words if word not in _SAID["units"] and word not in ("of", "by", "per")]
        other = "" if made.call.op in _MEASURES else column
        return _timeline(made, unit, _column_or_time(made, named[0] if named else other))
    if not made.selection.rows and not (by or column):
        return ()
    name = made.column("by") if by or not column else made.column()
    made.compares(name)
    return [({name: value}, part) for value, part in _by_value(made.rows, name)]


def _by_value(rows: Iterable[Row], column: str) -> list[tuple[Cell, list[Row]]]:
    """Rows by the values of a column, the largest part first. A row with a list stands at each of its items."""
    parts: dict[tuple[bool, str], tuple[Cell, list[Row]]] = {}
    for row in rows:
        values = {(isinstance(each, str), text(each)): each for each in items(row.cells.get(column))}
        for key, value in (values or {(True, EMPTY): EMPTY}).items():
            parts.setdefault(key, (value, []))[1].append(row)
    return sorted(parts.values(), key=lambda part: (-len(part[1]), text(part[0])))


def _timeline(made: Computation, unit: str, column: str) -> Iterator[_Part]:
    """Rows by a unit of time in UTC, those without a row too, to the ends of the window that the results cover."""
    size = _UNITS[unit]
    rows: dict[datetime, list[Row]] = {}
    for row in _having(made, made.rows, column):
        at = time_of(row, column)
        rows.setdefault(at - (at - _MONDAY) % size, []).append(row)
    ends = [*rows, *(at - (at - _MONDAY) % size for at in _window(made, column))]
    count = (max(ends) - min(ends)) // size + 1 if ends else 0
    if count > MOST_BUCKETS:
        larger = tuple(_UNITS)[tuple(_UNITS).index(unit) + 1 :]
        raise ComputeError(f"by {unit} these are {count} parts, the most are {MOST_BUCKETS}", "by", larger)
    made.notes.append(f"by {unit} of {column} in UTC" + (", weeks by their Monday" if unit == "week" else ""))
    for place in range(count):
        start = min(ends) + place * size
        yield {unit: format_time(start) if unit == "hour" else start.date().isoformat()}, rows.get(start, [])


def _recurring(made: Computation, unit: str, column: str) -> Iterator[_Part]:
    """Rows by the hour of the day or the day of the week in UTC, those without a row too."""
    labels, place = _RECURRING[unit]
    rows: dict[int, list[Row]] = {}
    for row in _having(made, made.rows, column):
        rows.setdefault(place(time_of(row, column).astimezone(UTC)), []).append(row)
    made.notes.append(f"by {unit} of {column} in UTC")
    for at, label in enumerate(labels):
        yield {unit: label}, rows.get(at, [])


def _window(made: Computation, column: str) -> list[datetime]:
    """First and last moment of the window that a complete list by this time covers, so that its empty ends are seen."""
    told = [result.coverage for result in made.selection.sources]
    windows = [each.get("window") for each in told]
    if not made.selection.complete or not told or any(each != windows[0] for each in windows):
        return []
    if squashed(str(told[0].get("time_column", ""))) != squashed(column) or not isinstance(windows[0], Mapping):
        return []
    start, end = (moment(windows[0].get(side)) for side in ("start", "end"))
    return [start, end - timedelta(microseconds=1)] if start and end and start < end else []


def _column_or_time(made: Computation, name: str) -> str:
    """The column that is named; without a name the time of the rows."""
    if name:
        return made.column(name=name)
    known = made.selection.columns()
    found = next((each for each in _TIMES if each in known), None)
    if found is None:
        raise ComputeError(f"say which column holds the time; there are {', '.join(known)}", "column", known)
    return found


def _having(made: Computation, rows: Sequence[Row], column: str) -> list[Row]:
    """The rows with a value in a column. That others have none is noted."""
    having = [row for row in rows if items(row.cells.get(column))]
    if len(having) < len(rows):
        made.notes.append(f"{len(rows) - len(having)} rows have no {column} and were left out")
    return having


def _numbers(rows: Iterable[Row], column: str) -> list[float | int]:
    """The numbers of a column that all of the rows have. Raises ComputeError for a value that is not a number."""
    return [
        required(each, number, "number", f"{column} of {row.ref}", argument="column", advice="; count or group it")
        for row in rows
        for each in items(row.cells[column])
    ]


def _total(values: Sequence[float | int]) -> float | int:
    return sum(values) if all(isinstance(each, int) for each in values) else rounded(math.fsum(values), 6)


_MEASURES: dict[str, Callable[[Sequence[float | int]], float | int]] = {
    "sum": _total,
    "average": lambda values: rounded(math.fsum(values) / len(values)),
    "median": lambda values: rounded(statistics.median(values)),
}


def _measure(call: ComputeCall) -> Computation:
    """Sum, average or median of a column, for each value of `by` where that is given."""
    made = call.read()
    column = made.column()
    asked = made.told(made.where, made.rows)
    parts: Iterable[_Part] = _parts(made) if call.said("by") else [({}, made.rows)]
    for label, part in parts:
        having = _having(made, part, column)
        told: dict[str, Cell] = {}
        if having or call.op == "sum":
            value = _MEASURES[call.op](_numbers(having, column))
            told = {call.op: value, **_as_time(made, column, value)}
        elif not label:
            raise made.nothing(f"no row has a number in {column}", "column")
        made.add({**label, "column": column, **told, "rows": len(having), **asked}, made.outside(*label))
    return made


def _as_time(made: Computation, column: str, value: Cell) -> dict[str, Cell]:
    """The value in units of time, if the column is the time between two others."""
    return _span(float(str(value))) if column not in made.selection.columns() else {}


def _ordered(made: Computation) -> tuple[str, list[tuple[tuple[int, Any], Row]]]:
    """The column that orders the rows, and those that have a value there, ascending, each with its key."""
    column = _column_or_time(made, made.call.said("column"))
    keyed = [
        (required(row.cells[column], order_key, "value", f"{column} of {row.ref}", argument="column"), row)
        for row in _having(made, made.rows, column)
    ]
    if len({key[0] for key, _ in keyed}) > 1:
        raise ComputeError(f"{column} holds numbers, times and texts: they have no common order", "column")
    return column, sorted(keyed, key=lambda pair: pair[0])


def _extreme(call: ComputeCall) -> Computation:
    """The row with the smallest or largest value of a column, all of them where several have it."""
    made = call.read()
    column, keyed = _ordered(made)
    if not keyed:
        raise made.nothing(f"no row has a value in {column}", "column")
    best = keyed[0 if call.op == "min" else -1][0]
    tied = [row for key, row in keyed if key == best]
    asked = made.told(made.where, made.rows)
    for row in tied:
        cells = {name: value for name, value in row.cells.items() if name == column or name not in hidden_columns(row)}
        told = {"extreme": f"{call.op} {column}", "row": row.ref, "rows": len(keyed), **asked, **cells}
        told |= _as_time(made, column, row.cells[column])
        made.add(told | ({"ties": len(tied)} if len(tied) > 1 else {}), row.quoted)
    return made


def _order(call: ComputeCall) -> Computation:
    """Rows with their place by a column, ascending; equal values have the same place."""
    made = call.read()
    column, keyed = _ordered(made)
    made.complete = made.complete or made.selection.picked  # the order of some needs no other row
    place, before = 0, None
    for at, (key, row) in enumerate(keyed, 1):
        place, before = place if key == before else at, key
        names = {name: row.cells[name] for name in _NAMES if name in row.cells}
        told = {column: row.cells[column], **_as_time(made, column, row.cells[column])}
        made.add({"place": place, "row": row.ref, **told, **names}, row.quoted)
    return made


def _holds(call: ComputeCall) -> Computation:
    """Whether `that` holds for all, none or any of the rows, and which are the exceptions."""
    made = call.read()
    that = made.conditions("that")
    if not that and made.rows:
        if call.op == "all":
            raise ComputeError("that is missing: what must hold for all rows", "that")
        that, made.where, made.rows = made.where, (), made.selection.rows
        made.read = len(made.rows)
    if not made.rows and call.op == "all":
        raise made.nothing(f"there is no row to judge in {', '.join(made.operands)}: use count", "of")
    found = fulfilling(made.rows, that, call.now)
    inside = {row.ref for row in found}
    exceptions = tuple(row.ref for row in made.rows if (row.ref in inside) is not (call.op == "all"))
    chosen, claimed = made.told(made.where, made.rows), made.told(that, found, "that")
    denied = "; ".join(str(part["unless"]) for part in (chosen, claimed) if "unless" in part)
    holds = bool(found) if call.op == "any" else not exceptions
    told = {**chosen, "holds": holds, "count": len(found), "of": len(made.rows), **claimed}
    if denied:
        told["unless"] = denied
    if call.op == "any":
        told |= {"examples": tuple(row.ref for row in found[:MOST_LISTED])} if found else {}
    elif exceptions:
        told |= {"exceptions": exceptions[:MOST_LISTED], "exceptions_count": len(exceptions)}
    made.add(told)
    return made


def _distinct(call: ComputeCall) -> Computation:
    made = call.read()
    column = made.column("by" if call.said("by") and not call.said("column") else "column")
    made.compares(column)
    values = tuple(value for value, _ in _by_value(made.rows, column) if value != EMPTY)
    told = {"column": column, "distinct": len(values), "rows": len(made.rows), **made.told(made.where, made.rows)}
    if values:
        told["values"] = values[:MOST_LISTED]
    made.add(told, {"values"} if made.outside(column) else ())
    return made


_SETS: dict[str, Callable[[bool, bool], bool]] = {
    "minus": lambda a, b: a and not b,
    "intersection": lambda a, b: a and b,
    "union": lambda a, b: a or b,
}


def _sets(call: ComputeCall) -> Computation:
    """Values of a column in a and b: those of a alone, of both, or of either, with how many rows of each have them."""
    found: list[dict[str, tuple[Cell, int]]] = []
    names = [name.strip() for name in call.said("column").split(",")]
    made = Computation(call, read=0)
    shown, quoted = "", False
    for name, argument in ((names[0], "a"), (names[-1], "b")):
        if argument not in call.arguments:
            raise ComputeError(f"{argument} is missing: the results to compare, such as c1", argument)
        without = _without_kind(call, argument, "b" if argument == "a" else "a")
        if without is not None:
            made.complete = made.complete and without.complete
            made.operands += without.operands
            found.append({})
            continue
        side = call.read(argument)
        column = side.selection.column(name, "column")
        side.compares(column)
        made.complete = made.complete and side.complete
        made.notes += side.notes
        made.operands += side.operands
        made.read = (made.read or 0) + len(side.rows)
        shown, quoted = shown or column, quoted or bool(side.outside(column))
        values: dict[str, tuple[Cell, int]] = {}
        for value, part in _by_value(side.rows, column):
            first, rows = values.get(key := text(value) if hidden(value) else thing(text(value)), (value, 0))
            values[key] = first, rows + len(part)
        values.pop(EMPTY, None)
        found.append(values)
    for key in dict.fromkeys((*found[0], *found[1])):
        if _SETS[call.op](key in found[0], key in found[1]):
            counts = {f"rows_in_{name}": side[key][1] for name, side in zip("ab", found, strict=True) if key in side}
            made.add({shown: (found[0].get(key) or found[1][key])[0], **counts}, {shown} if quoted else ())
    return made


def _without_kind(call: ComputeCall, argument: str, other: str) -> SelectedRows | None:
    """The dossiers that a or b names, if they hold no row of a kind that the other one holds: they have no addresses,
    which is no mistake of the call."""
    kind = call.said("kind")
    there = select(call.results, call.arguments[argument], name=argument)
    dossiers = kind and all("incident" in each.kinds and len(each.kinds) > 1 for each in there.sources)
    if not dossiers or other not in call.arguments:
        return None
    try:
        select(call.results, call.arguments[argument], kind, name=argument)
    except ComputeError:
        select(call.results, call.arguments[other], kind, name=other)  # or it is a word for none
        return there
    return None


def _operand(call: ComputeCall, argument: str) -> tuple[Cell, str, bool]:
    """What a or b is: a number or a time, the reference that it came from (or nothing), and completeness."""
    told = call.said(argument).strip("[]")
    if not told:
        raise ComputeError(f"{argument} is missing: a cell, a total, a result, a number or now", argument)
    if fold(told) == _NOW:
        return format_time(call.now), "", True
    if number(told) is not None or moment(told) is not None:
        # A result would else prove whatever a writer puts in
        kind = "number" if number(told) is not None else "time"
        raise ComputeError(f"{told} is a plain {kind}: name the cell, total or result that it stands in", argument)
    name, _, rest = told.partition(".")
    place, _, column = rest.partition(".")
    if not rest or len(references(told)) > 1:
        made = call.read(argument)
        if call.op == "duration":
            raise ComputeError(f"{argument} is a whole result: give a row or a cell, such as {name}.1", argument)
        if not made.where and made.selection.matched is not None:
            return made.selection.matched, name, True
        return len(made.rows), name, made.selection.complete
    if place.isdigit():
        return _cell(call, argument, f"{name}.{place}", column or call.said("column"))
    return _total_named(call, argument, name, rest)


def _cell(call: ComputeCall, argument: str, ref: str, column: str) -> tuple[Cell, str, bool]:
    made = Computation(call, selection=select(call.results, ref, name=argument))
    cells = made.selection.rows[0].cells
    numeric = [each for each in cells if number(cells[each]) is not None]
    if column:
        column = made.selection.column(column, argument)
    elif call.op == "duration":
        column = _column_or_time(made, "")
    elif "count" in numeric or len(numeric) == 1:
        column = "count" if "count" in numeric else numeric[0]
    else:
        raise ComputeError(f"say which cell of {ref}: {', '.join(numeric or cells)}", argument, tuple(cells))
    return cells[column], f"{ref}.{column}", True


def _total_named(call: ComputeCall, argument: str, ref: str, path: str) -> tuple[Cell, str, bool]:
    """A total by the end of its path; `total`, `count` and `rows` for how many rows there are."""
    result = select(call.results, ref, name=argument).sources[0]
    known = {".".join(total.path): total.value for total in result.totals}
    for name, value in known.items():
        if f".{fold(name)}".endswith(f".{fold(path)}"):
            return value, f"{ref}.{name}", True
    if fold(path) in ("total", "count", "rows", "rows_total"):
        told = number(result.coverage.get("rows_total"))
        return (len(result.rows_of()), ref, result.complete) if told is None else (told, f"{ref}.rows_total", True)
    names = tuple(known)
    raise ComputeError(f"{ref} has no total {path!r}; it has {', '.join(names[:40]) or 'none'}", argument, names)


def _compared(call: ComputeCall) -> Computation:
    """Ratio, difference or change of two numbers; of two times always the duration, from the earlier to the later."""
    sides = [(argument, *_operand(call, argument)) for argument in ("a", "b")]
    made = Computation(call, all(each[-1] for each in sides), [ref for _, _, ref, _ in sides if ref])
    times = [moment(value) for _, value, _, _ in sides if number(value) is None]
    if call.op == "duration" or (call.op == "difference" and len(times) == 2 and None not in times):
        return _duration(made, sides)
    a, b = (required(value, number, "number", ref or argument, argument=argument) for argument, value, ref, _ in sides)
    if not made.complete:
        made.notes.append("computed over results that are not complete")
    change = call.op == "change"
    told: dict[str, Cell] = {"from": a, "to": b} if change else {"a": a, "b": b}
    base, other = (a, b) if change else (b, a)
    told["difference"] = _total([other, -base])
    if call.op != "difference" and base:
        told["ratio"] = rounded(other / base)
        if call.op == "ratio":
            told["percent"] = rounded(100 * other / base, 1)
        told["change_percent"] = rounded(100 * (other - base) / abs(base), 1)
    elif call.op != "difference":
        made.notes.append(f"{'a' if change else 'b'} is 0: there is no ratio")
    made.add(told)
    return made


def _duration(made: Computation, sides: Iterable[tuple[str, Cell, str, bool]]) -> Computation:
    ends = [(required(value, moment, "time", ref or name, argument=name), ref) for name, value, ref, _ in sides]
    made.complete = True
    if ends[1][0] < ends[0][0]:
        ends.reverse()
        made.notes.append("b is before a: from and to are in the order of time")
    (start, first), (end, last) = ends
    refs = {name: ref for name, ref in (("first", first), ("last", last)) if ref}
    made.add({"from": format_time(start), "to": format_time(end), **_span((end - start).total_seconds()), **refs})
    return made


def _later(call: ComputeCall) -> Computation:
    """The time that lies a length behind another one, or with a minus before it."""
    value, ref, complete = _operand(call, "a")
    start, told = required(value, moment, "time", ref or "a", argument="a"), call.said("b")
    lengths = [each for each in scan(told).literals if each.kind is Kind.DURATION]
    step = lengths[0].number * lengths[0].unit * (-1 if told.startswith("-") else 1) if len(lengths) == 1 else None
    if step is None or abs(step) > _LONGEST_STEP:
        raise ComputeError(f"b is {told[:40]!r}: give a length of time, such as 72h", "b")
    made = Computation(call, complete, [ref] if ref else [])
    made.add(
        {"from": format_time(start), "plus": told, "to": format_time(start + timedelta(seconds=step)), "first": ref}
    )
    return made


_OPERATIONS: dict[str, Callable[[ComputeCall], Computation]] = {
    "count": _count,
    "share": _share,
    "group": _group,
    **dict.fromkeys(_MEASURES, _measure),
    **dict.fromkeys(("min", "max"), _extreme),
    "distinct": _distinct,
    "order": _order,
    **dict.fromkeys(("all", "none", "any"), _holds),
    **dict.fromkeys(("ratio", "difference", "change", "duration"), _compared),
    "later": _later,
    **dict.fromkeys(_SETS, _sets),
}


def compute(ref: str, arguments: Mapping[str, Any], results: Results, *, now: datetime) -> Result:
    """The result `ref` of a call. Raises ComputeError for one that cannot be carried out, in words for its writer."""
    call = ComputeCall.of(arguments, results, now)
    made = _OPERATIONS[call.op](call)
    rows = tuple(
        Row(f"{ref}.{place + 1}", "computed", f"/rows/{place}", cells, quoted)
        for place, (cells, quoted) in enumerate(zip(made.made, made.quoted, strict=True))
    )
    chosen = made.selection.picked  # a choice is no part that is missing, and yet no whole
    coverage: dict[str, JsonValue] = {
        "rows_total": len(rows),
        "rows_returned": len(rows),
        "partial": not (made.complete or chosen),
        "chosen": chosen and not made.complete,
    }
    return Result(
        ref=ref,
        tool=NAME,
        arguments=call.arguments,
        rows=rows,
        coverage=coverage | ({} if made.read is None else {"rows_read": made.read}),
        notes=tuple(dict.fromkeys(made.notes)),
        complete=made.complete,
        read_at=now,
        operands=tuple(dict.fromkeys(made.operands)),
    )


def computed_run(call: ToolCall, results: Results, *, now: datetime) -> tuple[ToolRun, Result | None]:
    """A call of `compute` as a run like any other: it is cited, and the footnote has it."""
    try:
        result = compute(call.call_id, call.arguments, results, now=now)
    except ComputeError as error:
        return ToolRun(call, Failed(call, error.as_query_error(), "")), None
    rows = [
        {name: list(cell) if isinstance(cell, tuple) else cell for name, cell in row.cells.items()}
        for row in result.rows
    ]
    return ToolRun(call, Succeeded(call, DocumentResult({"rows": rows}), "")), result

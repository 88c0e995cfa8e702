"""The agent's own tool `compute`: what can be counted, compared and ordered over results that are in hand.

It needs no right and asks nobody. Its result is cited like any other, so that a derived number is never a guess; it
says what it was computed from (`operands`) and is complete only if that was. The same call gives the same result.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from sentinel_rag.agent.answers.computation import COMPUTE, NAME, ComputeCall, ComputedRows
from sentinel_rag.agent.answers.conditions import RowCondition, fulfilling
from sentinel_rag.agent.answers.results import Cell, Result, Results, Row
from sentinel_rag.agent.answers.selection import (
    EMPTY,
    ComputeError,
    SelectedRows,
    column_named,
    fold,
    hidden,
    items,
    moment,
    number,
    order_key,
    references,
    select,
    text,
    thing,
)
from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.contracts.query_results import format_time

__all__ = ["COMPUTE", "NAME", "ComputeError", "compute"]

MOST_BUCKETS = 2_000
MOST_LISTED = 50
"""Items of one cell that lists values or rows."""
_MONDAY = datetime(1, 1, 1, tzinfo=UTC)
_UNITS = {"hour": timedelta(hours=1), "day": timedelta(days=1), "week": timedelta(weeks=1)}
_TIMES = ("start_time", "created_time", "TimeGenerated", "time")
"""The time of a row where none is named, the first that it has."""
_NAMES = ("number", "alert_id", "title", "name", "kind")
"""Cells by which a person knows a row."""


def _explain_none(made: ComputedRows, selection: SelectedRows, asked: Sequence[RowCondition]) -> None:
    """Note the values that there are, where none is the one that was asked for: a wrong word reads like an absence."""
    for each in asked:
        if each.operator in ("=", "in") and (values := _few_values(selection, each.column)):
            made.notes.append(f"no row has {each}; {each.column} is one of {values}")


def _told(where: Sequence[RowCondition], rows: Sequence[Row], now: datetime, name: str = "where") -> dict[str, Cell]:
    """Conditions as cells: the text of all, those that deny apart in `unless`, and what was asked to be equal under its
    column. Of several values those that one of the rows has: a cell is read as what was found."""
    equal: dict[str, Cell] = {}
    asked: list[str] = []
    for each in (each.as_found(rows, now) for each in where if not each.denies):
        asked.append(str(each))
        if each.operator == "empty":
            equal[each.column] = EMPTY
        elif each.operator in ("=", "in") and each.values:
            equal[each.column] = each.values[0] if len(each.values) == 1 else each.values
    denied = [str(each.turned()) for each in where if each.denies]
    return {
        **equal,
        **({name: "; ".join(asked)} if asked else {}),
        **({"unless": "; ".join(denied)} if denied else {}),
    }


def _few_values(selection: SelectedRows, column: str, most: int = 12) -> str:
    """The values of a column where they are few and nobody's from outside."""
    found: dict[str, None] = {}
    for row in selection.rows:
        if column in row.quoted:
            return ""
        found |= {text(each): None for each in items(row.cells.get(column)) if not hidden(each)}
        if len(found) > most:
            return ""
    return ", ".join(found)


def _percent(count: float, of: float) -> dict[str, Cell]:
    return {"percent": _rounded(100 * count / of, 1)} if of else {}


def _rounded(value: float, digits: int = 3) -> float | int:
    rounded = round(value, digits)
    return int(rounded) if rounded == int(rounded) else rounded


def _count(call: ComputeCall) -> ComputedRows:
    selection, rows, where = call.selection()
    if call.said("by"):
        return _group(call)
    if "that" in call.arguments:
        return _share(call)
    made = call.begin(selection, len(rows), where)
    if not where and selection.matched is not None and not selection.complete and not selection.picked:
        made.complete, made.notes = True, list(selection.notes)  # the service counted all that matched
        made.add({"count": selection.matched})
        return made
    if not rows:
        _explain_none(made, selection, where)
    of: dict[str, Cell] = {"of": len(selection.rows), **_percent(len(rows), len(selection.rows))} if where else {}
    made.add({"count": len(rows), **of, **_told(where, rows, call.now)})
    return made


def _share(call: ComputeCall) -> ComputedRows:
    """Of rows that fulfil `that` among those of `where`; of a column's sum by a label; of a summary's counts."""
    selection, rows, where = call.selection()
    by, that = call.said("by"), call.conditions("that", selection)
    totals: list[tuple[str, float | int]] = []
    if by and not where:
        for total in (each for result in selection.sources[:1] for each in result.totals):
            counted = number(total.value)
            if len(total.path) > 1 and fold(total.path[-2]) == fold(by) and counted is not None:
                totals.append((total.path[-1], counted))
    if totals:
        made = ComputedRows(True, selection.operands)
        whole = math.fsum(counted for _, counted in totals)
        for label, counted in totals:
            made.add({by: label, "count": counted, "of": _rounded(whole), **_percent(counted, whole)})
        return made
    if by and call.said("column") and by not in _UNITS:
        label, measured = call.column(selection, "by"), call.column(selection)
        made = call.begin(selection, len(rows), where, (label,))
        parts = _parted(rows, label)
        sums = [(value, math.fsum(_numbers(of, measured)[0])) for value, of in parts]
        whole = math.fsum(value for _, value in sums)
        for value, share in sorted(sums, key=lambda pair: -pair[1]):
            quoted = {label} if any(label in row.quoted for row in rows) else ()
            told = {label: value, measured: _rounded(share), "of": _rounded(whole), **_percent(share, whole)}
            made.add(told, quoted)
        return made
    if by:
        return _group(call)
    if not that:
        return _count(replace(call, arguments={k: v for k, v in call.arguments.items() if k not in ("that", "by")}))
    made = call.begin(selection, len(rows), (*where, *that))
    held = fulfilling(rows, that, call.now)
    if not held:
        _explain_none(made, selection, (*where, *that))
    made.add(
        {
            "count": len(held),
            "of": len(rows),
            **_percent(len(held), len(rows)),
            **_told((*where, *that), held, call.now),
        }
    )
    return made


def _group(call: ComputeCall) -> ComputedRows:
    selection, rows, where = call.selection()
    unit, column = _unit(call, selection)
    if unit:
        return _timeline(call, selection, rows, where, unit, column)
    made = call.begin(selection, len(rows), where, (column,))
    quoted = {column} if any(column in row.quoted for row in rows) else ()
    for value, part in _parted(rows, column):
        made.add({column: value, "count": len(part), "of": len(rows), **_percent(len(part), len(rows))}, quoted)
    return made


def _unit(call: ComputeCall, selection: SelectedRows) -> tuple[str, str]:
    """A unit of time with its column, or no unit and the column to group by."""
    words = fold(call.said("by")).replace("(", " ").replace(")", " ").split()
    singular = {name: name for name in _UNITS} | {"daily": "day", "hourly": "hour", "weekly": "week"}
    unit = next((singular[word] for word in words if word in singular), "")
    if unit and not any(fold(name) == fold(call.said("by")) for name in selection.columns()):
        named = next((word for word in words if word not in singular and word not in ("of", "by", "per")), "")
        asked = named or call.said("column")
        columns = selection.columns()
        return unit, column_named(asked, columns, selection, argument="column") if asked else _time_column(columns)
    if not words and call.said("column"):
        return "", call.column(selection)
    return "", call.column(selection, "by") if selection.rows or words else ""


def _parted(rows: Iterable[Row], column: str) -> list[tuple[Cell, list[Row]]]:
    """Rows by the values of a column, the largest part first. A row with a list stands at each of its items."""
    parts: dict[tuple[bool, str], tuple[Cell, list[Row]]] = {}
    for row in rows:
        values = {(isinstance(each, str), text(each)): each for each in items(row.cells.get(column))}
        for key, value in (values or {(True, EMPTY): EMPTY}).items():
            parts.setdefault(key, (value, []))[1].append(row)
    return sorted(parts.values(), key=lambda part: (-len(part[1]), text(part[0])))


def _timeline(
    call: ComputeCall,
    selection: SelectedRows,
    rows: Sequence[Row],
    where: Sequence[RowCondition],
    unit: str,
    column: str,
) -> ComputedRows:
    made = call.begin(selection, len(rows), where)
    starts = [_start_of(at, unit) for row in rows if (at := _time_of(row, column)) is not None]
    without = len(rows) - len(starts)
    if without:
        made.notes.append(f"{without} rows have no {column}")
    counts = dict.fromkeys(_buckets([*starts, *_window(selection, column, unit)], unit), 0)
    for start in starts:
        counts[start] += 1
    for start, count in counts.items():
        told = format_time(start) if unit == "hour" else start.date().isoformat()
        made.add({unit: told, "count": count, "of": len(rows), **_percent(count, len(rows))})
    made.notes.append(f"by {unit} of {column} in UTC" + (", weeks by their Monday" if unit == "week" else ""))
    return made


def _buckets(starts: Sequence[datetime], unit: str) -> list[datetime]:
    if not starts:
        return []
    first, size = min(starts), _UNITS[unit]
    count = (max(starts) - first) // size + 1
    if count > MOST_BUCKETS:
        larger = tuple(_UNITS)[tuple(_UNITS).index(unit) + 1 :]
        raise ComputeError(f"by {unit} these are {count} parts, the most are {MOST_BUCKETS}", "by", larger)
    return [first + place * size for place in range(count)]


def _start_of(at: datetime, unit: str) -> datetime:
    return at - (at - _MONDAY) % _UNITS[unit]


def _window(selection: SelectedRows, column: str, unit: str) -> list[datetime]:
    """First and last part of the window that a complete list by this time covers, so that its empty ends are seen."""
    told = [result.coverage for result in selection.sources]
    windows = {str(each.get("window")) for each in told}
    if (
        not selection.complete
        or len(windows) != 1
        or fold(str(told[0].get("time_column", ""))).replace("_", "") != fold(column).replace("_", "")
    ):
        return []
    window = told[0].get("window")
    sides = [moment(window.get(side)) for side in ("start", "end")] if isinstance(window, Mapping) else []
    if len(sides) != 2 or sides[0] is None or sides[1] is None or sides[1] <= sides[0]:
        return []
    return [_start_of(sides[0], unit), _start_of(sides[1] - timedelta(microseconds=1), unit)]


def _time_column(columns: Iterable[str]) -> str:
    known = tuple(columns)
    found = next((name for name in _TIMES if name in known), None)
    if found is None:
        raise ComputeError(f"say which column holds the time; there are {', '.join(known)}", "column", known)
    return found


def _time_of(row: Row, column: str) -> datetime | None:
    value = row.cells.get(column)
    if value is None:
        return None
    if hidden(value):
        raise ComputeError(f"values of {column} are hidden from you", "column")
    at = moment(value)
    if at is None:
        raise ComputeError(f"{column} of {row.ref} is no time: {text(value)[:40]!r}", "column")
    return at


def _numbers(rows: Iterable[Row], column: str) -> tuple[list[float | int], int]:
    """The numbers of a column, and how many rows have none. Raises ComputeError for a value that is not a number."""
    found: list[float | int] = []
    without = 0
    for row in rows:
        values = items(row.cells.get(column))
        without += not values
        for each in values:
            value = number(each)
            if value is None:
                told = "hidden from you" if hidden(each) else f"no number: {text(each)[:40]!r}"
                raise ComputeError(f"{column} of {row.ref} is {told}; count or group it", "column")
            found.append(value)
    return found, without


def _total(values: Sequence[float | int]) -> float | int:
    return sum(values) if all(isinstance(each, int) for each in values) else _rounded(math.fsum(values), 6)


_MEASURES: dict[str, Callable[[Sequence[float | int]], float | int]] = {
    "sum": _total,
    "average": lambda values: _rounded(math.fsum(values) / len(values)),
    "median": lambda values: _rounded(statistics.median(values)),
}


def _measure(call: ComputeCall) -> ComputedRows:
    """Sum, average or median of a column, for each value of `by` where that is given."""
    selection, rows, where = call.selection()
    column = call.column(selection)
    by = call.column(selection, "by") if call.said("by") else ""
    made = call.begin(selection, len(rows), where, (by,) if by else ())
    quoted = {by} if any(by in row.quoted for row in rows) else ()
    parts: Sequence[tuple[Cell, Sequence[Row]]] = _parted(rows, by) if by else [("", rows)]
    asked = _told(where, rows, call.now)
    for value, part in parts:
        numbers, without = _numbers(part, column)
        if without:
            made.notes.append(f"{without} rows have no {column} and were left out")
        label = {by: value} if by else {}
        told = {call.op: _MEASURES[call.op](numbers)} if numbers or call.op == "sum" else {}
        made.add({**label, "column": column, **told, "rows": len(part) - without, **asked}, quoted)
    if not by and not made.rows[0].keys() & _MEASURES.keys():
        raise ComputeError(f"no row has a number in {column}", "column")
    return made


def _extreme(call: ComputeCall) -> ComputedRows:
    """The row with the smallest or largest value of a column, all of them where several have it."""
    selection, rows, where = call.selection()
    column = call.column(selection) if call.said("column") else _time_column(selection.columns())
    made = call.begin(selection, len(rows), where)
    keyed = _keyed(rows, column, made)
    if not keyed:
        raise ComputeError(f"no row has a value in {column}", "column")
    best = (min if call.op == "min" else max)(key for key, _ in keyed)
    tied = [row for key, row in keyed if key == best]
    asked = _told(where, rows, call.now)
    for row in tied:
        told = {"extreme": f"{call.op} {column}", "row": row.ref, "rows": len(keyed), **asked}
        made.add({**told, **row.cells, **({"ties": len(tied)} if len(tied) > 1 else {})}, row.quoted)
    return made


def _keyed(rows: Iterable[Row], column: str, made: ComputedRows) -> list[tuple[tuple[int, Any], Row]]:
    """Rows with the key of their value in a column. Those without one are left out, which is noted."""
    keyed: list[tuple[tuple[int, Any], Row]] = []
    without = 0
    for row in rows:
        value = row.cells.get(column)
        if value is None:
            without += 1
        elif (key := order_key(value)) is None:
            told = "hidden from you" if hidden(value) else "a list"
            raise ComputeError(f"{column} of {row.ref} is {told}: it has no order", "column")
        else:
            keyed.append((key, row))
    if len({key[0] for key, _ in keyed}) > 1:
        raise ComputeError(f"{column} holds numbers, times and texts: they have no common order", "column")
    if without:
        made.notes.append(f"{without} rows have no {column} and were left out")
    return keyed


def _order(call: ComputeCall) -> ComputedRows:
    """Rows with their place by a column, ascending; equal values have the same place."""
    selection, rows, where = call.selection()
    column = call.column(selection) if call.said("column") else _time_column(selection.columns())
    made = call.begin(selection, len(rows), where)
    if selection.picked:
        made.complete = True  # their order needs no other row
    place, before = 0, None
    for at, (key, row) in enumerate(sorted(_keyed(rows, column, made), key=lambda pair: pair[0]), 1):
        place, before = place if key == before else at, key
        names = {name: row.cells[name] for name in _NAMES if name in row.cells}
        made.add({"place": place, "row": row.ref, column: row.cells[column], **names}, row.quoted)
    return made


def _holds(call: ComputeCall) -> ComputedRows:
    """Whether `that` holds for all, none or any of the rows, and which are the exceptions."""
    selection, rows, where = call.selection()
    that = call.conditions("that", selection)
    if not that and rows:
        if call.op == "all":
            raise ComputeError("that is missing: what must hold for all rows", "that")
        that, where, rows = where, (), selection.rows
    if not rows and call.op == "all":
        raise ComputeError(f"there is no row to judge in {', '.join(selection.operands)}: use count", "of")
    made = call.begin(selection, len(rows), (*where, *that))
    found = fulfilling(rows, that, call.now)
    if not found:
        _explain_none(made, selection, (*where, *that))
    inside = {row.ref for row in found}
    exceptions = [row.ref for row in rows if (row.ref in inside) is not (call.op == "all")] if call.op != "any" else []
    holds = bool(found) if call.op == "any" else not exceptions
    chosen, claimed = _told(where, rows, call.now), _told(that, found, call.now, "that")
    denied = "; ".join(str(part["unless"]) for part in (chosen, claimed) if "unless" in part)
    cells: dict[str, Cell] = {"holds": holds, "count": len(found), "of": len(rows)}
    made.add({**chosen, **cells, **claimed, **({"unless": denied} if denied else {})})
    if exceptions:
        made.rows[0]["exceptions"] = tuple(exceptions[:MOST_LISTED])
        made.rows[0]["exceptions_count"] = len(exceptions)
    elif call.op == "any" and found:
        made.rows[0]["examples"] = tuple(row.ref for row in found[:MOST_LISTED])
    return made


def _distinct(call: ComputeCall) -> ComputedRows:
    selection, rows, where = call.selection()
    column = call.column(selection) if call.said("column") or not call.said("by") else call.column(selection, "by")
    made = call.begin(selection, len(rows), where, (column,))
    values = [value for value, _ in _parted(rows, column) if value != EMPTY]
    quoted = {"values"} if any(column in row.quoted for row in rows) else ()
    told = {"column": column, "distinct": len(values), "rows": len(rows), **_told(where, rows, call.now)}
    made.add({**told, "values": tuple(values[:MOST_LISTED])} if values else told, quoted)
    return made


_SETS: dict[str, Callable[[bool, bool], bool]] = {
    "minus": lambda a, b: a and not b,
    "intersection": lambda a, b: a and b,
    "union": lambda a, b: a or b,
}


def _sets(call: ComputeCall) -> ComputedRows:
    """Values of a column in a and b: those of a alone, of both, or of either, with how many rows of each have them."""
    found: list[dict[str, tuple[Cell, int]]] = []
    names = [name.strip() for name in call.said("column").split(",")]
    operands: list[str] = []
    made = ComputedRows(True, operands)
    shown, quoted = "", False
    for name, argument in zip((names[0], names[-1]), ("a", "b"), strict=True):
        if argument not in call.arguments:
            raise ComputeError(f"{argument} is missing: the results to compare, such as c1", argument)
        selection, rows, where = call.selection(argument)
        column = column_named(name, selection.columns(), selection, argument="column")
        side = call.begin(selection, len(rows), where, (column,))
        made.complete = made.complete and side.complete
        made.notes += side.notes
        made.read = (made.read or 0) + len(rows)
        shown, quoted = shown or column, quoted or any(column in row.quoted for row in rows)
        operands.extend(selection.operands)
        values: dict[str, tuple[Cell, int]] = {}
        for value, part in _parted(rows, column):
            key = text(value) if hidden(value) else thing(text(value))
            values[key] = values.get(key, (value, 0))[0], values.get(key, (value, 0))[1] + len(part)
        values.pop(EMPTY, None)
        found.append(values)
    for key in dict.fromkeys((*found[0], *found[1])):
        if _SETS[call.op](key in found[0], key in found[1]):
            value = found[0].get(key) or found[1][key]
            counts = {f"rows_in_{name}": side[key][1] for name, side in zip("ab", found, strict=True) if key in side}
            made.add({shown: value[0], **counts}, {shown} if quoted else ())
    return made


def _operand(call: ComputeCall, argument: str) -> tuple[Cell, str, bool]:
    """What a or b is: a number or a time, the reference that it came from (or nothing), and completeness."""
    told = call.said(argument).strip("[]")
    if not told:
        raise ComputeError(f"{argument} is missing: a cell, a total, a result, a number or now", argument)
    if fold(told) == "now":
        return format_time(call.now), "", True
    if number(told) is not None or moment(told) is not None:
        # A result would else prove whatever a writer puts in
        kind = "number" if number(told) is not None else "time"
        raise ComputeError(f"{told} is a plain {kind}: name the cell, total or result that it stands in", argument)
    name, _, rest = told.partition(".")
    place, _, column = rest.partition(".")
    if not rest or len(references(told)) > 1:
        selection, rows, where = call.selection(argument)
        if call.op == "duration":
            raise ComputeError(f"{argument} is a whole result: give a row or a cell, such as {name}.1", argument)
        if not where and selection.matched is not None:
            return selection.matched, name, True
        return len(rows), name, selection.complete
    if place.isdigit():
        return _cell(call, argument, f"{name}.{place}", column)
    return _total_named(call, argument, name, rest)


def _cell(call: ComputeCall, argument: str, ref: str, column: str) -> tuple[Cell, str, bool]:
    row = select(call.results, ref, name=argument).rows[0]
    columns = tuple(row.cells)
    if not column and call.said("column"):
        column = call.said("column")
    if column:
        name = column_named(column, columns, argument=argument)
    elif call.op == "duration":
        name = _time_column(columns)
    else:
        numeric = [each for each in columns if number(row.cells[each]) is not None]
        name = "count" if "count" in numeric else numeric[0] if len(numeric) == 1 else ""
        if not name:
            raise ComputeError(f"say which cell of {ref}: {', '.join(numeric or columns)}", argument, columns)
    return row.cells[name], f"{ref}.{name}", True


def _total_named(call: ComputeCall, argument: str, ref: str, path: str) -> tuple[Cell, str, bool]:
    """A total by the end of its path; `total`, `count` and `rows` for how many rows there are."""
    result = select(call.results, ref, name=argument).sources[0]
    wanted = f".{fold(path)}"
    known = {".".join(total.path): total.value for total in result.totals}
    for name, value in known.items():
        if f".{fold(name)}".endswith(wanted):
            return value, f"{ref}.{name}", True
    if fold(path) in ("total", "count", "rows", "rows_total"):
        told = number(result.coverage.get("rows_total"))
        rows = len(result.rows_of())
        return (told, f"{ref}.rows_total", True) if told is not None else (rows, ref, result.complete)
    names = tuple(known)
    raise ComputeError(f"{ref} has no total {path!r}; it has {', '.join(names[:40]) or 'none'}", argument, names)


def _compared(call: ComputeCall) -> ComputedRows:
    """Ratio, difference or change of two numbers; of two times always the duration."""
    sides = [_operand(call, argument) for argument in ("a", "b")]
    if call.op == "difference" and all(number(value) is None and moment(value) is not None for value, _, _ in sides):
        return _duration(call)
    values: list[float | int] = []
    for argument, (value, ref, _) in zip("ab", sides, strict=True):
        told = number(value)
        if told is None:
            shown = "hidden from you" if hidden(value) else f"no number: {text(value)[:40]!r}"
            raise ComputeError(f"{ref or argument} is {shown}", argument)
        values.append(told)
    a, b = values
    made = ComputedRows(all(side[2] for side in sides), [ref for _, ref, _ in sides if ref])
    if not made.complete:
        made.notes.append("computed over results that are not complete")
    exact = _total([a, -b])
    if call.op == "difference":
        made.add({"a": a, "b": b, "difference": exact})
        return made
    base, other = (a, b) if call.op == "change" else (b, a)
    cells: dict[str, Cell] = {"from": a, "to": b, "difference": _total([b, -a])} if call.op == "change" else {
        "a": a, "b": b, "difference": exact,
    }  # fmt: skip
    if base:
        cells["ratio"] = _rounded(other / base)
        if call.op == "ratio":
            cells["percent"] = _rounded(100 * other / base, 1)
        cells["change_percent"] = _rounded(100 * (other - base) / abs(base), 1)
    else:
        made.notes.append(f"{'a' if call.op == 'change' else 'b'} is 0: there is no ratio")
    made.add(cells)
    return made


def _duration(call: ComputeCall) -> ComputedRows:
    """The time between two moments, from the earlier to the later."""
    ends: list[tuple[datetime, str]] = []
    for argument in ("a", "b"):
        value, ref, _ = _operand(call, argument)
        at = None if hidden(value) else moment(value)
        if at is None:
            shown = "hidden from you" if hidden(value) else f"no time: {text(value)[:40]!r}"
            raise ComputeError(f"{ref or argument} is {shown}", argument)
        ends.append((at, ref))
    made = ComputedRows(True, [ref for _, ref in ends if ref])
    if ends[1][0] < ends[0][0]:
        ends.reverse()
        made.notes.append("b is before a: from and to are in the order of time")
    (start, first), (end, last) = ends
    seconds = (end - start).total_seconds()
    made.add(
        {
            "from": format_time(start),
            "to": format_time(end),
            "seconds": _rounded(seconds),
            "minutes": _rounded(seconds / 60, 1),
            "hours": _rounded(seconds / 3600, 1),
            "days": _rounded(seconds / 86400, 1),
            **({"first": first} if first else {}),
            **({"last": last} if last else {}),
        }
    )
    return made


_OPERATIONS: dict[str, Callable[[ComputeCall], ComputedRows]] = {
    "count": _count,
    "share": _share,
    "group": _group,
    **dict.fromkeys(_MEASURES, _measure),
    "min": _extreme,
    "max": _extreme,
    "distinct": _distinct,
    "order": _order,
    **dict.fromkeys(("all", "none", "any"), _holds),
    **dict.fromkeys(("ratio", "difference", "change"), _compared),
    "duration": _duration,
    **dict.fromkeys(_SETS, _sets),
}


def compute(ref: str, arguments: Mapping[str, Any], results: Results, *, now: datetime) -> Result:
    """The result `ref` of a call. Raises ComputeError for one that cannot be carried out, in words for its writer."""
    call = ComputeCall.read(arguments, results, now)
    made = _OPERATIONS[call.op](call)
    rows = tuple(
        Row(f"{ref}.{place + 1}", "computed", f"/rows/{place}", cells, quoted)
        for place, (cells, quoted) in enumerate(zip(made.rows, made.quoted, strict=True))
    )
    coverage: dict[str, JsonValue] = {
        "rows_total": len(rows),
        "rows_returned": len(rows),
        "partial": not made.complete,
    }
    if made.read is not None:
        coverage["rows_read"] = made.read
    return Result(
        ref=ref,
        tool=NAME,
        arguments=call.arguments,
        rows=rows,
        coverage=coverage,
        notes=tuple(dict.fromkeys(made.notes)),
        complete=made.complete,
        read_at=now,
        operands=tuple(dict.fromkeys(made.operands)),
    )

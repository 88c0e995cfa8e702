"""Times and spans: their parts, periods, zones, Unix times and text forms.

Source: the Kusto pages named like the functions. A time has microseconds here: the seventh digit of Kusto's is 0, and
the last moment of a period ends in `.999999`. Weeks begin on Sundays.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from functools import cache

from kql_duckdb.errors import not_supported
from kql_duckdb.expressions import Typed, literal, quote_text
from kql_duckdb.functions.definitions import ARGUMENT_KINDS, ArgumentKind, BoundCall, fill, python, scalar
from kql_duckdb.types import LONG, STRING

_PERIODS = ("year", "quarter", "month", "day", "hour", "minute", "second", "millisecond", "microsecond", "week")
_FIELDS = {"week_of_year": "week", "weekofyear": "week", "dayofyear": "dayofyear"}


def _part(parts: dict[str, str]) -> ArgumentKind:
    """The name of a part of a time, as DuckDB calls it."""

    def read(call: BoundCall, place: int, argument: Typed) -> Typed:
        argument = ARGUMENT_KINDS["string"].make(call, place, argument)
        if not argument.is_constant:
            raise call.invalid(f"argument #{place + 1} must be a string literal.", "SEM0207")
        written = str(argument.constant)
        if written.lower() in ("nanosecond", "tick"):
            raise not_supported(f"{call.name}('{written}')", "a time has microseconds here")
        found = parts.get(written.lower())
        if found is None:
            raise call.invalid(f"'{written}' is none of {', '.join(parts)}.", "SEM0235")
        return literal(found, STRING)

    return ArgumentKind(None, read)


def _zone(call: BoundCall, place: int, argument: Typed) -> Typed:
    argument = ARGUMENT_KINDS["string"].make(call, place, argument)
    if not argument.is_constant:
        return fill("kql_zone({0})", STRING, argument, nullable=True)
    if argument.constant not in _zone_names():
        raise call.invalid(f"'{argument.constant}' is no time zone.", "SEM0001")
    return argument


ARGUMENT_KINDS |= {
    "period": _part({part: part for part in _PERIODS}),
    "field": _part({part: part for part in _PERIODS[:-1]} | _FIELDS),
    "zone": ArgumentKind(None, _zone),
}


_ELEMENT = re.compile(r"d{1,2}|h{1,2}|H{1,2}|m{1,2}|M{1,2}|s{1,2}|y{1,4}|t{1,2}|f{1,7}|F{1,7}|[ /\-:,._\[\]]")
_SPAN_ELEMENT = re.compile(r"d{1,8}|f{1,7}|F{1,7}|HH?|hh?|mm?|ss?|[ /\-:,._\[\]]")
_WRITTEN = {
    "d": "%-d", "dd": "%d", "h": "%-I", "hh": "%I", "H": "%-H", "HH": "%H", "m": "%-M", "mm": "%M", "M": "%-m",
    "MM": "%m", "s": "%-S", "ss": "%S", "y": "%-y", "yy": "%y", "yyyy": "%Y", "tt": "%p",
}  # fmt: skip


def _elements(call: BoundCall, pattern: str, form: re.Pattern[str]) -> Iterator[str]:
    """The elements and delimiters of a format, the longest first, as Kusto reads them."""
    place = 0
    while place < len(pattern):
        element = form.match(pattern, place)
        if element is None:
            raise call.invalid(f"'{pattern[place]}' is no element or delimiter of a format.", "SEM0255")
        yield element[0]
        place = element.end()


def _fraction(digits: str, element: str) -> str:
    """`f` are the first digits of the fraction; `F` the same, or nothing when all of them are 0."""
    shown = f"left({digits} || '0', {len(element)})"
    return shown if element[0] == "f" else f"coalesce(nullif({shown}, '{'0' * len(element)}'), '')"


@scalar("format_datetime(date: datetime, format: string)")
def _format_datetime(call: BoundCall) -> Typed:
    pattern = call.constant_text(1)
    if not pattern:
        raise call.invalid("the format must be a string literal that is not empty.", "SEM0207")
    elements = list(_elements(call, pattern, _ELEMENT))
    wrong = next((one for one in elements if one in ("t", "yyy")), None)
    if wrong is not None:
        raise call.invalid(f"'{wrong}' is no element of a format.", "SEM0255")
    pieces = []
    for fractions, group in itertools.groupby(elements, lambda one: one[0] in "fF"):
        if fractions:
            pieces += [_fraction("strftime({0}, '%f')", one) for one in group]
        else:
            pieces.append(f"strftime({{0}}, {quote_text(''.join(_WRITTEN.get(one, one) for one in group))})")
    return fill(f"coalesce({' || '.join(pieces)}, '')", STRING, call.arguments[0])


_SPAN_UNITS = {"H": (3_600_000_000, 24), "h": (3_600_000_000, 24), "m": (60_000_000, 60), "s": (1_000_000, 60)}


@scalar("format_timespan(timespan: timespan, format: string)")
def _format_timespan(call: BoundCall) -> Typed:
    pattern = call.constant_text(1)
    if pattern is None:
        raise call.invalid("the format must be a string literal.", "SEM0207")
    parts = [_span_part(one) for one in _elements(call, pattern, _SPAN_ELEMENT)]
    micros = fill("abs(epoch_us({0}))", LONG, call.arguments[0])
    return fill(f"coalesce({' || '.join(parts) or quote_text('')}, '')", STRING, micros)


def _span_part(element: str) -> str:
    kind, width = element[0], len(element)
    if kind == "d":
        days = "CAST({0} // 86400000000 AS VARCHAR)"
        return f"CASE WHEN length({days}) >= {width} THEN {days} ELSE lpad({days}, {width}, '0') END"
    if kind in "fF":
        return _fraction("lpad(CAST({0} % 1000000 AS VARCHAR), 6, '0')", element)
    if kind in _SPAN_UNITS:
        size, count = _SPAN_UNITS[kind]
        number = f"CAST({{0}} // {size} % {count} AS VARCHAR)"
        return f"lpad({number}, 2, '0')" if width == 2 else number
    return quote_text(element)


@cache
def _zone_names() -> set[str]:
    from zoneinfo import available_timezones  # here, since most queries name no zone and the list reads files

    return available_timezones()


@python("kql_zone(name: string): string")
def _known_zone(name: str) -> str | None:
    return name if name in _zone_names() else None


@python("datetime_list_timezones(): dynamic")
def _timezones() -> list[str]:
    return sorted(_zone_names())

"""Times and spans: their parts, periods, zones, Unix times and text forms.

Source: the Kusto pages named like the functions. A time has microseconds here: the seventh digit of Kusto's is 0, and
the last moment of a period ends in `.999999`. Weeks begin on Sundays.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache

from kql_duckdb.errors import not_supported
from kql_duckdb.expressions import Typed, json_text, literal, quote_text
from kql_duckdb.functions.conversion import DATETIME, INT, LONG, REAL, STRING, TIMESPAN, convert
from kql_duckdb.functions.definitions import BoundCall, Builder, ScalarFunction, fill, function
from kql_duckdb.functions.python_functions import python_function
from kql_duckdb.types import INTEGERS, NUMBERS

_SHARED_PARTS = ("year", "quarter", "month", "day", "hour", "minute", "second", "millisecond", "microsecond")
_PERIODS = {part: part for part in _SHARED_PARTS} | {"week": "week"}
_FIELDS = {part: part for part in _SHARED_PARTS} | {
    "week_of_year": "week",
    "weekofyear": "week",
    "dayofyear": "dayofyear",
}


def _part(call: BoundCall, parts: dict[str, str]) -> str:
    written = call.constant_text(0)
    if written is None:
        raise call.invalid("argument #1 must be a string literal.", "SEM0207")
    if written.lower() in ("nanosecond", "tick"):
        raise not_supported(f"{call.name}('{written}')", "a time has microseconds here")
    found = parts.get(written.lower())
    if found is None:
        raise call.invalid(f"'{written}' is none of {', '.join(parts)}.", "SEM0235")
    return found


def _add(call: BoundCall) -> Typed:
    part = _part(call, _PERIODS)
    return fill(f"TRY({{1}} + to_{part}s({{0}}))", DATETIME, *call.arguments[1:])


def _difference(call: BoundCall) -> Typed:
    """How many borders of the period lie between; DuckDB's weeks begin on Mondays, so both are moved on by a day."""
    part = _part(call, _PERIODS)
    last, first = call.arguments[1:]
    if part == "week":
        moved = "date_trunc('week', {0} + INTERVAL 1 DAY)"
        return fill(f"date_diff('week', {moved.replace('{0}', '{1}')}, {moved})", LONG, last, first)
    return fill(f"date_diff('{part}', {{1}}, {{0}})", LONG, last, first)


def _field(call: BoundCall) -> Typed:
    """Within their second, unlike DuckDB's, which count from the minute."""
    part = _part(call, _FIELDS)
    within = {"millisecond": " % 1000", "microsecond": " % 1000000"}.get(part, "")
    return fill(f"CAST(date_part('{part}', {{0}}){within} AS INTEGER)", INT, call.arguments[1])


_STEPS = {"day": "INTERVAL 1 DAY", "week": "INTERVAL 7 DAY", "month": "INTERVAL 1 MONTH", "year": "INTERVAL 1 YEAR"}


def _period(edge: str, period: str) -> Builder:
    # DuckDB's weeks begin on Mondays.
    start = f"date_trunc('{period}', {{0}})"
    if period == "week":
        start = "date_trunc('week', {0} + INTERVAL 1 DAY) - INTERVAL 1 DAY"
    step = _STEPS[period]

    def build(call: BoundCall) -> Typed:
        sql = start if len(call.arguments) < 2 else f"{start} + {{1}} * {step}"
        if edge == "end":
            sql = f"{sql} + {step} - INTERVAL 1 MICROSECOND"
        return fill(sql if len(call.arguments) < 2 else f"TRY({sql})", DATETIME, *call.arguments)

    return build


_DATETIME_ELEMENTS = {
    "d": "%-d", "dd": "%d", "h": "%-I", "hh": "%I", "H": "%-H", "HH": "%H", "m": "%-M", "mm": "%M", "M": "%-m",
    "MM": "%m", "s": "%-S", "ss": "%S", "y": "%-y", "yy": "%y", "yyyy": "%Y", "tt": "%p",
}  # fmt: skip
_RUNS = {"d": 2, "h": 2, "H": 2, "m": 2, "M": 2, "s": 2, "y": 4, "t": 2, "f": 7, "F": 7}
_DELIMITERS = " /-:,._[]"


def _elements(call: BoundCall, pattern: str) -> list[str]:
    """The format as Kusto reads it: runs of one letter, the longest first, and delimiters."""
    found: list[str] = []
    for run in re.finditer(r"(.)\1*", pattern, re.DOTALL):
        letter, length = run[1], len(run[0])
        if letter in _DELIMITERS:
            found.append(run[0])
            continue
        longest = _RUNS.get(letter)
        if longest is None:
            raise call.invalid(f"'{letter}' is no element or delimiter of a format.", "SEM0255")
        while length:
            found.append(letter * min(length, longest))
            length -= min(length, longest)
    wrong = next((element for element in found if element in ("t", "yyy")), None)
    if wrong is not None:
        raise call.invalid(f"'{wrong}' is no element of a format.", "SEM0255")
    return found


def _fraction(digits: str, element: str) -> str:
    """`f` are the first digits of the fraction; `F` the same, or nothing when all of them are 0."""
    shown = f"left({digits} || '0', {len(element)})"
    return shown if element[0] == "f" else f"coalesce(nullif({shown}, '{'0' * len(element)}'), '')"


def _format_datetime(call: BoundCall) -> Typed:
    pattern = call.constant_text(1)
    if not pattern:
        raise call.invalid("the format must be a string literal that is not empty.", "SEM0207")
    pieces, plain = [], ""
    for element in [*_elements(call, pattern), ""]:
        if element and element[0] not in "fF":
            plain += _DATETIME_ELEMENTS.get(element, element)
            continue
        if plain:
            pieces.append(f"strftime({{0}}, {quote_text(plain)})")
            plain = ""
        if element:
            pieces.append(_fraction("strftime({0}, '%f')", element))
    return fill(f"coalesce({' || '.join(pieces)}, '')", STRING, call.arguments[0])


_SPAN_ELEMENT = re.compile(r"(d{1,8}|f{1,7}|F{1,7}|HH?|hh?|mm?|ss?|[ /\-:,._\[\]])")
_SPAN_UNITS = {"H": (3_600_000_000, 24), "h": (3_600_000_000, 24), "m": (60_000_000, 60), "s": (1_000_000, 60)}


def _format_timespan(call: BoundCall) -> Typed:
    pattern = call.constant_text(1)
    if pattern is None:
        raise call.invalid("the format must be a string literal.", "SEM0207")
    parts, place = [], 0
    while place < len(pattern):
        element = _SPAN_ELEMENT.match(pattern, place)
        if element is None:
            raise call.invalid(f"'{pattern[place]}' is no element or delimiter of a format.", "SEM0255")
        parts.append(_span_part(element[0]))
        place = element.end()
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


def _make_datetime(call: BoundCall) -> Typed:
    """Null for a day or an hour that does not exist, and outside the years 1 to 9999."""
    if len(call.arguments) == 1:
        return convert(call.arguments[0], DATETIME)
    if len(call.arguments) < 3:
        raise call.invalid("expects a year, a month and a day, and a time if you like.", "SEM0219")
    *whole, second = [*call.arguments, *(literal(0, LONG) for _ in range(6 - len(call.arguments)))]
    numbers = [convert(each, LONG) for each in whole]
    made = "TRY(make_timestamp({0}, {1}, {2}, {3}, {4}, floor({5} * 1000000) / 1000000))"
    return fill(f"CASE WHEN {{0}} BETWEEN 1 AND 9999 THEN {made} END", DATETIME, *numbers, convert(second, REAL))


def _make_timespan(call: BoundCall) -> Typed:
    """`(hour, minute)`, `(hour, minute, second)` or `(day, hour, minute, second)`; null outside a clock's range."""
    if len(call.arguments) == 1:
        return convert(call.arguments[0], TIMESPAN)
    zero = literal(0, LONG)
    given = list(call.arguments)
    day, hour, minute, second = given if len(given) == 4 else [zero, *given, zero][:4]
    whole = "(({0} * 24 + {1}) * 60 + {2}) * 60000000 + CAST(floor({3} * 1000000 + 0.001) AS BIGINT)"
    inside = "{0} >= 0 AND {1} BETWEEN 0 AND 23 AND {2} BETWEEN 0 AND 59 AND {3} >= 0 AND {3} < 60"
    numbers = [convert(each, LONG) for each in (day, hour, minute)]
    return fill(f"CASE WHEN {inside} THEN to_microseconds({whole}) END", TIMESPAN, *numbers, convert(second, REAL))


_TO_LOCAL = "({0} AT TIME ZONE 'UTC') AT TIME ZONE {1}"


def _zone(call: BoundCall) -> Typed:
    zone = call.constant_text(1)
    if zone is not None and zone not in _zone_names():
        raise call.invalid(f"'{zone}' is no time zone.", "SEM0001")
    moment, name = call.arguments
    if zone is None:
        name = fill("kql_zone({0})", STRING, name, nullable=True)
    if call.name == "datetime_utc_to_local":
        return fill(f"TRY({_TO_LOCAL})", DATETIME, moment, name)
    # A local time that a change of the clock leaves out is read with the offset after the change.
    utc = fill("TRY(({0} AT TIME ZONE {1}) AT TIME ZONE 'UTC')", DATETIME, moment, name)
    return fill(f"TRY({{0}} - ({_TO_LOCAL} - {{2}}))", DATETIME, utc, name, moment)


@cache
def _zone_names() -> set[str]:
    from zoneinfo import available_timezones  # here, since most queries name no zone and the list reads files

    return available_timezones()


@python_function("kql_zone", ("VARCHAR",), "VARCHAR")
def _known_zone(name: str | None) -> str | None:
    return name if name in _zone_names() else None


@python_function("kql_timezones", (), "JSON")
def _timezones() -> str:
    return json_text(sorted(_zone_names()))


def _of_unix(call: BoundCall) -> Typed:
    value = call.arguments[0]
    if value.type not in NUMBERS:
        raise call.invalid(f"argument #1 must be a number, not {value.type}.", "SEM0201")
    unit = call.name.split("_")[1]
    factors = {"seconds": "* 1000000", "milliseconds": "* 1000", "microseconds": "", "nanoseconds": "/ 1000"}
    if value.type in INTEGERS:
        whole = factors[unit].replace("/", "//")
        return fill(f"TRY(make_timestamp({{0}} {whole}))", DATETIME, convert(value, LONG))
    return fill(f"TRY(make_timestamp(CAST({{0}} {factors[unit]} AS BIGINT)))", DATETIME, convert(value, REAL))


def _int_part(sql: str) -> str:
    return f"CAST({sql}({{0}}) AS INTEGER)"


_PARTS: dict[str, tuple[str, Callable[[str], str]]] = {
    "getyear": ("year", _int_part),
    "getmonth": ("month", _int_part),
    "monthofyear": ("month", _int_part),
    "dayofmonth": ("day", _int_part),
    "dayofyear": ("dayofyear", _int_part),
    "hourofday": ("hour", _int_part),
    "weekofyear": ("weekofyear", _int_part),
    "week_of_year": ("weekofyear", _int_part),
}
_MICROSECONDS = "the end is the last microsecond, not the last 100 ns"

FUNCTIONS: tuple[ScalarFunction, ...] = (
    *(function(f"{name}(date: datetime): int", made(sql)) for name, (sql, made) in _PARTS.items()),
    function("dayofweek(date: datetime): timespan", "to_days(CAST(dayofweek({0}) AS INTEGER))"),
    function("datetime_add(part: string, value: long, datetime: datetime)", _add),
    function("datetime_diff(part: string, datetime1: datetime, datetime2: datetime)", _difference),
    *(
        function(f"{name}(part: string, date: datetime)", _field, status="partly", note="nanosecond is refused")
        for name in ("datetime_part", "datepart")
    ),
    *(function(f"startof{period}(date: datetime, offset?: long)", _period("start", period)) for period in _STEPS),
    *(
        function(
            f"endof{period}(date: datetime, offset?: long)", _period("end", period), status="partly", note=_MICROSECONDS
        )
        for period in _STEPS
    ),
    function("format_datetime(date: datetime, format: string)", _format_datetime),
    function("format_timespan(timespan: timespan, format: string)", _format_timespan),
    function(
        "make_datetime(year: any, month?: any, day?: any, hour?: any, minute?: any, second?: any)", _make_datetime
    ),
    function("make_timespan(first: any, second?: any, third?: any, fourth?: any)", _make_timespan),
    function("datetime_utc_to_local(from: datetime, timezone: string)", _zone),
    function("datetime_local_to_utc(from: datetime, timezone: string)", _zone),
    function("datetime_list_timezones(): dynamic", "kql_timezones()"),
    *(
        function(f"unixtime_{unit}_todatetime(number: number)", _of_unix)
        for unit in ("seconds", "milliseconds", "microseconds", "nanoseconds")
    ),
)

"""Times and spans: zones, bins from a point, Unix times and the text forms, where duckdb-kql has no mapping.

Source: the Kusto pages named like the functions. A time here has microseconds: the seventh digit of Kusto's is 0.
"""

from __future__ import annotations

import dataclasses
import re

from duckdb_kql import ir, translate  # noqa: TID253 - this module writes that library's SQL
from duckdb_kql.errors import KqlUnsupportedError  # noqa: TID253
from duckdb_kql.translate import constant_string, quote_string, render_expr  # noqa: TID253

from sentinel_rag.workspace.kql.sql_forms import WrittenFunction, bound, bound_all, scalar
from sentinel_rag.workspace.kql.time_arithmetic import is_timespan

_SPAN_ELEMENT = re.compile(r"(d{1,8}|f{1,7}|F{1,7}|HH?|hh?|mm?|ss?|[ /\-:,._\[\]])")
_SPAN_UNITS = {"H": (3_600_000_000, 24), "h": (3_600_000_000, 24), "m": (60_000_000, 60), "s": (1_000_000, 60)}


def format_timespan(call: ir.FunctionCall) -> str | None:
    """`format_timespan(span, 'd.hh:mm:ss')`; the format must be a constant."""
    if len(call.args) != 2:
        return None
    pattern = constant_string(call.args[1])
    if pattern is None:
        raise KqlUnsupportedError("function:format_timespan", hint="the format must be a constant")
    parts: list[str] = []
    place = 0
    while place < len(pattern):
        element = _SPAN_ELEMENT.match(pattern, place)
        if element is None:
            raise KqlUnsupportedError("function:format_timespan", hint=f"'{pattern[place]}' is no format element")
        parts.append(_span_part(element[0]))
        place = element.end()
    text = " || ".join(parts) or "''"
    return bound("_us", f"abs(epoch_us({render_expr(call.args[0])}))", text)


def _span_part(element: str) -> str:
    kind, width = element[0], len(element)
    if kind == "d":
        days = "CAST(_us // 86400000000 AS VARCHAR)"
        return f"CASE WHEN length({days}) >= {width} THEN {days} ELSE lpad({days}, {width}, '0') END"
    if kind in "fF":
        digits = f"left(lpad(CAST(_us % 1000000 AS VARCHAR), 6, '0') || '0', {width})"
        return digits if kind == "f" else f"coalesce(nullif({digits}, {quote_string('0' * width)}), '')"
    if kind in _SPAN_UNITS:
        size, count = _SPAN_UNITS[kind]
        number = f"CAST(_us // {size} % {count} AS VARCHAR)"
        return f"lpad({number}, 2, '0')" if width == 2 else number
    return quote_string(element)


def datetime_part(call: ir.FunctionCall) -> str:
    """`datetime_part('day', time)`, which Kusto types as an int."""
    return f"CAST({translate._render_datetime_part(call)} AS INTEGER)"


def datetime_diff(call: ir.FunctionCall) -> str:
    """`datetime_diff('week', last, first)` counts the Sundays that begin between.

    The engine's weeks begin on Mondays, so both times are moved on by a day.
    """
    if len(call.args) == 3 and (constant_string(call.args[0]) or "").lower() == "week":
        last, first = (f"date_trunc('week', {render_expr(time)} + INTERVAL 1 DAY)" for time in call.args[1:])
        return f"date_diff('week', {first}, {last})"
    return translate._render_datetime_diff(call)


_TICKS = re.compile(r"(f{7}|F{7})")


def format_datetime(call: ir.FunctionCall) -> str:
    """`format_datetime(time, 'yyyy-MM-dd')`; the seventh digit of a second is 0 here."""
    pattern = constant_string(call.args[1]) if len(call.args) == 2 else None
    if pattern is None or not _TICKS.search(pattern):
        return translate._render_format_datetime(call)
    value = render_expr(call.args[0])
    texts = []
    for part in _TICKS.split(pattern):
        if part in ("f" * 7, "F" * 7):
            digits = f"(strftime({value}, '%f') || '0')"
            texts.append(digits if part[0] == "f" else f"coalesce(nullif({digits}, '0000000'), '')")
        elif part:
            formatted = dataclasses.replace(call, args=(call.args[0], ir.Literal(part, "string")))
            texts.append(translate._render_format_datetime(formatted))
    return f"({' || '.join(texts)})"


def absolute(call: ir.FunctionCall) -> str | None:
    """`abs` of a span; of a number it is the library's."""
    if len(call.args) == 1 and is_timespan(call.args[0]):
        return f"to_microseconds(abs(epoch_us({render_expr(call.args[0])})))"
    return None


def bin_at(call: ir.FunctionCall) -> str | None:
    """Of times, spans or numbers; the fixed point is the border of a bin."""
    if len(call.args) != 3:
        return None
    value, size, fixed = call.args
    if not is_timespan(size):
        number = _floored(*(f"CAST({render_expr(each)} AS DOUBLE)" for each in call.args))
        whole = all(isinstance(each, ir.Literal) and each.kind in ("int", "long") for each in (size, fixed))
        return f"CAST({number} AS BIGINT)" if whole and _is_whole(value) else number
    kind = "INTERVAL" if is_timespan(fixed) else "TIMESTAMP"
    bin_start = _floored(_micros(value, kind), _micros(size, "INTERVAL"), _micros(fixed, kind))
    return f"{'to_microseconds' if kind == 'INTERVAL' else 'make_timestamp'}(CAST({bin_start} AS BIGINT))"


def _is_whole(value: ir.Expr) -> bool:
    return isinstance(value, ir.Literal) and value.kind in ("int", "long")


def _micros(value: ir.Expr, kind: str) -> str:
    return f"epoch_us(CAST({render_expr(value)} AS {kind}))"


def _floored(value: str, width: str, start: str) -> str:
    return bound_all(
        "_b",
        "CASE WHEN _b.w > 0 THEN _b.f + floor((_b.v - _b.f) / _b.w) * _b.w END",
        v=value,
        w=width,
        f=start,
    )


def _around(value: str, center: str, delta: str) -> str:
    return f"({value} BETWEEN ({center} - {delta}) AND ({center} + {delta}))"


def _utc_to_local(moment: str, zone: str) -> str:
    return f"(({moment} AT TIME ZONE 'UTC') AT TIME ZONE {zone})"


def _local_to_utc(moment: str, zone: str) -> str:
    """A local time that a change of the clock leaves out is read with the offset after the change."""
    utc = f"(({moment} AT TIME ZONE {zone}) AT TIME ZONE 'UTC')"
    return bound_all("_z", f"_z.u - ({_utc_to_local('_z.u', '_z.z')} - _z.l)", u=utc, z=zone, l=moment)


def _unix_seconds(value: str) -> str:
    return f"make_timestamp(CAST({value} * 1000000 AS BIGINT))"


def _unix_milliseconds(value: str) -> str:
    return f"make_timestamp(CAST({value} * 1000 AS BIGINT))"


def _unix_microseconds(value: str) -> str:
    return f"make_timestamp(CAST({value} AS BIGINT))"


def _unix_nanoseconds(value: str) -> str:
    return f"make_timestamp(CAST({value} AS BIGINT) // 1000)"


def _make_datetime(year: str, month: str, day: str, hour: str = "0", minute: str = "0", second: str = "0") -> str:
    """Null for a day or an hour that does not exist, and outside the years 1 to 9999."""
    parts = ", ".join(f"CAST({part} AS BIGINT)" for part in (year, month, day, hour, minute))
    made = f"TRY(make_timestamp({parts}, floor(CAST({second} AS DOUBLE) * 1000000) / 1000000))"
    return f"CASE WHEN {year} BETWEEN 1 AND 9999 THEN {made} END"


def _make_timespan(*parts: str) -> str:
    """`(hour, minute)`, `(hour, minute, second)` or `(day, hour, minute, second)`; null outside a clock's range."""
    day, hour, minute, second = parts if len(parts) == 4 else ("0", *parts, "0")[:4]
    whole = "((_t.d * 24 + _t.h) * 60 + _t.m) * 60000000"
    return bound_all(
        "_t",
        "CASE WHEN _t.d >= 0 AND _t.h BETWEEN 0 AND 23 AND _t.m BETWEEN 0 AND 59 AND _t.s >= 0 AND _t.s < 60 "
        f"THEN to_microseconds({whole} + CAST(floor(_t.s * 1000000 + 0.001) AS BIGINT)) END",
        d=f"CAST({day} AS BIGINT)",
        h=f"CAST({hour} AS BIGINT)",
        m=f"CAST({minute} AS BIGINT)",
        s=f"CAST({second} AS DOUBLE)",
    )


FUNCTIONS: tuple[WrittenFunction, ...] = (
    scalar("around", _around, 3),
    scalar("datetime_utc_to_local", _utc_to_local, 2),
    scalar("datetime_local_to_utc", _local_to_utc, 2),
    scalar("unixtime_seconds_todatetime", _unix_seconds, 1),
    scalar("unixtime_milliseconds_todatetime", _unix_milliseconds, 1),
    scalar("unixtime_microseconds_todatetime", _unix_microseconds, 1),
    scalar("unixtime_nanoseconds_todatetime", _unix_nanoseconds, 1),
    scalar("make_datetime", _make_datetime, 3, 5, 6),
    scalar("make_timespan", _make_timespan, 2, 3, 4),
)

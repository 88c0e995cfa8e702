"""Cells of a query answer exactly as the Log Analytics API writes them.

Most of the work is done by SQL that the KQL execution puts around a query (`encoding_sql`); what SQL cannot say is
finished here per column (`finishers`). A cell is text, a number, a boolean or None; only a string is never None.
Recorded from the service: datetimes with 0 to 7 fraction digits and Z, decimals and dynamics as text.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from sentinel_rag.workspace.kql_types import kql_type

_FIRST_MOMENT, _LAST_MOMENT = "TIMESTAMP '0001-01-01'", "TIMESTAMP '9999-12-31 23:59:59.999999'"
"""The times that Kusto has. Arithmetic may leave them in the engine, and no client could read such a cell."""

Cell = bool | int | float | str | None
Finisher = Callable[[Any], Cell]


def encoding_sql(column: str, duckdb_type: str) -> str:
    """The SQL expression that turns the quoted `column` into its cell, as far as SQL can."""
    kind = kql_type(duckdb_type)
    if kind == "string":
        text = column if duckdb_type == "VARCHAR" else f"CAST({column} AS VARCHAR)"
        return f"coalesce({text}, '')"
    if kind == "datetime":
        moment = f"CAST({column} AS TIMESTAMP)" if duckdb_type != "TIMESTAMP" else column
        if duckdb_type == "TIMESTAMP WITH TIME ZONE":
            moment = f"({column} AT TIME ZONE 'UTC')"
        text = f"rtrim(rtrim(strftime({moment}, '%Y-%m-%dT%H:%M:%S.%f'), '0'), '.') || 'Z'"
        return f"CASE WHEN {moment} BETWEEN {_FIRST_MOMENT} AND {_LAST_MOMENT} THEN {text} END"
    if kind == "guid":
        return f"CAST({column} AS VARCHAR)"
    if kind == "decimal":
        text = f"CAST({column} AS VARCHAR)"
        return f"CASE WHEN contains({text}, '.') THEN rtrim(rtrim({text}, '0'), '.') ELSE {text} END"
    if kind == "dynamic":
        # As the service: no white space between tokens, a JSON null is null, a bare string has no quotes.
        value = column if duckdb_type == "JSON" else f"to_json({column})"
        text = f"CAST(json({value}) AS VARCHAR)"
        bare = f"json_extract_string({value}, '$')"
        return f"CASE WHEN starts_with({text}, '\"') THEN {bare} ELSE nullif({text}, 'null') END"
    if kind == "timespan" and duckdb_type != "INTERVAL":
        return f"CAST({column} AS INTERVAL)"
    if duckdb_type in ("HUGEINT", "UHUGEINT", "UBIGINT"):
        return f"CAST({column} AS BIGINT)"
    return column


def finisher(kind: str) -> Finisher | None:
    """What is left to do in Python for a column of KQL type `kind`, or None if SQL did all."""
    return _FINISHERS.get(kind)


def format_timespan(value: timedelta | None) -> str | None:
    """`[-][d.]hh:mm:ss[.fffffff]`, Kusto's own form."""
    if value is None:
        return None
    sign, value = ("-", -value) if value < timedelta() else ("", value)
    hours, rest = divmod(value.seconds, 3600)
    minutes, seconds = divmod(rest, 60)
    days = f"{value.days}." if value.days else ""
    fraction = f".{value.microseconds * 10:07d}" if value.microseconds else ""
    return f"{sign}{days}{hours:02d}:{minutes:02d}:{seconds:02d}{fraction}"


def _real(value: float | None) -> float | str | None:
    if value is None or math.isfinite(value):
        return value
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


_FINISHERS: dict[str, Finisher] = {"real": _real, "timespan": format_timespan}

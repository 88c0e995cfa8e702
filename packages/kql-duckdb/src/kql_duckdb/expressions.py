"""Typed SQL expressions: what the binder and the functions hand each other.

A `Typed` is SQL text with the KQL type of its value and what is known about it. Literals are made here, from Python
values. No function is known here; those are in `functions`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from kql_duckdb.types import KustoType


@dataclass(frozen=True, slots=True)
class Typed:
    """One expression in SQL. Its text stands in brackets or needs none wherever it is put."""

    sql: str
    type: KustoType
    constant: Any = None
    """The Python value of a literal, if `is_constant`: bool, int, float, Decimal, naive UTC datetime, timedelta, str,
    UUID, or for a dynamic what `json.loads` gives. None is the null of the type."""
    is_constant: bool = False
    nullable: bool = True
    """Whether SQL NULL may come. For a string it stands for the empty text, since Kusto has no null text."""
    simple: bool = False
    """Whether the SQL is a column or a literal, which a template may repeat."""
    name: str = ""
    """The name that the expression gives a column, if it gives one: set by the binder on arguments."""
    relation: bool = False
    """Whether the SQL is a SELECT of one column, as the right side of `in`, `has_any` and `has_all` may be."""
    windowed: bool = False
    """Whether the SQL holds a window function, so that no other may hold it in the same SELECT."""
    aggregated: bool = False
    """Whether the SQL holds an aggregate."""
    json_path: tuple[Typed, str] | None = None
    """For a member of a dynamic: the dynamic and the JSON path to it, so that the member of a member is one look into
    the text."""
    text: Typed | None = None
    """For a dynamic that is surely a text or null: that text, so that nobody makes JSON of it to read it back."""
    texts: Typed | None = None
    """For a dynamic that is surely an array of texts: them as a list of DuckDB."""
    type_name: bool = False
    """Whether this is `typeof(...)`: `type` is the type that it names."""

    def named(self, name: str) -> Typed:
        """Return the same expression with the name that it gives a column."""
        return replace(self, name=name)


def quote_name(name: str) -> str:
    """Return `name` as a quoted SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def quote_text(text: str) -> str:
    """Return `text` as a SQL string literal. DuckDB's text cannot hold NUL, which is left out."""
    return "'" + text.replace("\0", "").replace("'", "''") + "'"


def column(sql: str, kind: KustoType, *, nullable: bool = True, name: str = "") -> Typed:
    """Return a reference to a column of a relation; `sql` is its quoted, perhaps qualified name."""
    return Typed(sql, kind, nullable=nullable, simple=True, name=name)


def type_literal(kind: KustoType) -> Typed:
    """Return the argument `typeof(kind)`."""
    return Typed("NULL", kind, is_constant=True, simple=True, type_name=True)


def literal(value: Any, kind: KustoType) -> Typed:
    """Return the literal of type `kind` with the Python `value`; None is its null (the empty text for a string)."""
    if value is None and kind is KustoType.STRING:
        value = ""
    if value is None:
        return Typed(f"CAST(NULL AS {kind.held})", kind, None, True, True, True)
    return Typed(_WRITERS[kind](value), kind, value, True, False, True)


def json_text(value: Any) -> str:
    """Return a Python value as Kusto writes a dynamic: no white space, letters as they are."""
    return json.dumps(_without_nan(value), separators=(",", ":"), ensure_ascii=False, default=str)


def microseconds(span: timedelta) -> int:
    """Return the whole microseconds of a span."""
    return (span.days * 86_400 + span.seconds) * 1_000_000 + span.microseconds


def _without_nan(value: Any) -> Any:
    """JSON has no number for these; Kusto writes them as texts."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, Mapping):
        return {key: _without_nan(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_nan(item) for item in value]
    return value


def _real(value: float) -> str:
    if math.isfinite(value):
        return f"CAST({float(value)!r} AS DOUBLE)"
    return f"CAST('{_without_nan(value)}' AS DOUBLE)"


_WRITERS: dict[KustoType, Callable[[Any], str]] = {
    KustoType.BOOL: lambda value: "TRUE" if value else "FALSE",
    KustoType.INT: lambda value: f"CAST({int(value)} AS INTEGER)",
    KustoType.LONG: lambda value: f"CAST({value} AS BIGINT)",
    KustoType.REAL: _real,
    KustoType.DECIMAL: lambda value: f"CAST('{Decimal(value):f}' AS DECIMAL(38,10))",
    KustoType.DATETIME: lambda value: f"TIMESTAMP '{value.year:04d}-{value:%m-%d %H:%M:%S.%f}'",
    KustoType.TIMESPAN: lambda value: f"to_microseconds({microseconds(value)})",
    KustoType.STRING: lambda value: quote_text(str(value)),
    KustoType.GUID: lambda value: f"CAST('{UUID(str(value))}' AS UUID)",
    KustoType.DYNAMIC: lambda value: f"CAST({quote_text(json_text(value))} AS JSON)",
}

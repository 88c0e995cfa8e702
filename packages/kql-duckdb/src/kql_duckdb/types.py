"""The scalar types of KQL, their names, and how each is held in DuckDB.

Below everything else; knows no SQL but the names of types and the casts that bring a foreign column to its holding.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum


class KustoType(StrEnum):
    """A scalar type; the value is its one name in KQL."""

    BOOL = "bool"
    INT = "int"
    LONG = "long"
    REAL = "real"
    DECIMAL = "decimal"
    DATETIME = "datetime"
    TIMESPAN = "timespan"
    STRING = "string"
    GUID = "guid"
    DYNAMIC = "dynamic"

    @property
    def held(self) -> str:
        """The DuckDB type that holds it."""
        return _HELD[self]


_HELD = {
    KustoType.BOOL: "BOOLEAN",
    KustoType.INT: "INTEGER",
    KustoType.LONG: "BIGINT",
    KustoType.REAL: "DOUBLE",
    KustoType.DECIMAL: "DECIMAL(38,10)",
    # UTC without a zone, in microseconds: the seventh digit of Kusto's 100 ns is 0.
    KustoType.DATETIME: "TIMESTAMP",
    KustoType.TIMESPAN: "INTERVAL",
    KustoType.STRING: "VARCHAR",
    KustoType.GUID: "UUID",
    # JSON text; SQL NULL is dynamic(null), and so is a JSON null at the top.
    KustoType.DYNAMIC: "JSON",
}

INTEGERS = frozenset((KustoType.INT, KustoType.LONG))
NUMBERS = frozenset((KustoType.INT, KustoType.LONG, KustoType.REAL, KustoType.DECIMAL))
ORDERED = NUMBERS | {KustoType.DATETIME, KustoType.TIMESPAN, KustoType.STRING, KustoType.GUID, KustoType.BOOL}
"""The types whose values have an order; a dynamic has none."""

_ALIASES = {
    "boolean": "bool",
    "int32": "int",
    "int64": "long",
    "double": "real",
    "float": "real",
    "date": "datetime",
    "time": "timespan",
    "uuid": "guid",
    "uniqueid": "guid",
    "object": "dynamic",
}

_WIDTH = (KustoType.INT, KustoType.LONG, KustoType.REAL, KustoType.DECIMAL)


def type_named(name: str) -> KustoType | None:
    """Return the type that goes by `name` in KQL, old names included; None for any other word."""
    lowered = name.lower()
    try:
        return KustoType(_ALIASES.get(lowered, lowered))
    except ValueError:
        return None


def common_type(types: Iterable[KustoType]) -> KustoType | None:
    """Return the type that values of all `types` can have together; None if there is none.

    Numbers widen (int, long, real, decimal); a dynamic beside another type becomes that type.
    """
    found = set(types)
    if len(found) > 1:
        found.discard(KustoType.DYNAMIC)
    if len(found) == 1:
        return next(iter(found))
    if found and found <= NUMBERS:
        return max(found, key=_WIDTH.index)
    return None


_FOREIGN = {
    "VARCHAR": KustoType.STRING,
    "BLOB": KustoType.STRING,
    "BOOLEAN": KustoType.BOOL,
    "TINYINT": KustoType.INT,
    "UTINYINT": KustoType.INT,
    "SMALLINT": KustoType.INT,
    "USMALLINT": KustoType.INT,
    "INTEGER": KustoType.INT,
    "UINTEGER": KustoType.LONG,
    "BIGINT": KustoType.LONG,
    "UBIGINT": KustoType.DECIMAL,
    "HUGEINT": KustoType.DECIMAL,
    "UHUGEINT": KustoType.DECIMAL,
    "FLOAT": KustoType.REAL,
    "DOUBLE": KustoType.REAL,
    "DATE": KustoType.DATETIME,
    "TIMESTAMP": KustoType.DATETIME,
    "TIMESTAMP_S": KustoType.DATETIME,
    "TIMESTAMP_MS": KustoType.DATETIME,
    "TIMESTAMP_NS": KustoType.DATETIME,
    "TIMESTAMP WITH TIME ZONE": KustoType.DATETIME,
    "TIME": KustoType.TIMESPAN,
    "INTERVAL": KustoType.TIMESPAN,
    "UUID": KustoType.GUID,
    "JSON": KustoType.DYNAMIC,
}


def type_of_column(duckdb_type: str) -> KustoType:
    """Return the KQL type of a column of DuckDB type `duckdb_type`, as DESCRIBE writes it."""
    known = _FOREIGN.get(duckdb_type)
    if known is not None:
        return known
    if duckdb_type.startswith("DECIMAL"):
        return KustoType.DECIMAL
    if duckdb_type.endswith("]") or duckdb_type.startswith(("STRUCT", "MAP", "UNION", "VARIANT")):
        return KustoType.DYNAMIC
    return KustoType.STRING


def as_held(column: str, duckdb_type: str) -> str:
    """Return SQL that brings a column of DuckDB type `duckdb_type` to the holding of its KQL type."""
    kind = type_of_column(duckdb_type)
    if duckdb_type == kind.held:
        return column
    if duckdb_type == "TIMESTAMP WITH TIME ZONE":
        return f"({column} AT TIME ZONE 'UTC')"
    if kind is KustoType.DYNAMIC:
        return f"to_json({column})"
    if kind is KustoType.DECIMAL:
        return f"TRY_CAST({column} AS {kind.held})"
    return f"CAST({column} AS {kind.held})"

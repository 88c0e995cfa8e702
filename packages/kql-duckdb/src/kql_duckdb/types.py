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


BOOL, INT, LONG, REAL, DECIMAL, DATETIME, TIMESPAN, STRING, GUID, DYNAMIC = KustoType
_HELD = {
    BOOL: "BOOLEAN", INT: "INTEGER", LONG: "BIGINT", REAL: "DOUBLE", DECIMAL: "DECIMAL(38,10)", STRING: "VARCHAR",
    GUID: "UUID", TIMESPAN: "INTERVAL",
    DATETIME: "TIMESTAMP",  # UTC without a zone, in microseconds: the seventh digit of Kusto's 100 ns is 0
    DYNAMIC: "JSON",  # JSON text; SQL NULL is dynamic(null), and so is a JSON null at the top
}  # fmt: skip
INTEGERS = frozenset((INT, LONG))
NUMBERS = frozenset((INT, LONG, REAL, DECIMAL))
_WIDTH = (INT, LONG, REAL, DECIMAL)
_ALIASES = {"boolean": "bool", "int32": "int", "int64": "long", "double": "real", "float": "real", "date": "datetime",
            "time": "timespan", "uuid": "guid", "uniqueid": "guid", "object": "dynamic"}  # fmt: skip


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
    **dict.fromkeys(("VARCHAR", "BLOB"), STRING), "BOOLEAN": BOOL, "UUID": GUID, "JSON": DYNAMIC,
    **dict.fromkeys(("TINYINT", "UTINYINT", "SMALLINT", "USMALLINT", "INTEGER"), INT),
    **dict.fromkeys(("UINTEGER", "BIGINT"), LONG), **dict.fromkeys(("FLOAT", "DOUBLE"), REAL),
    **dict.fromkeys(("UBIGINT", "HUGEINT", "UHUGEINT"), DECIMAL), **dict.fromkeys(("TIME", "INTERVAL"), TIMESPAN),
    **dict.fromkeys(("DATE", "TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS", "TIMESTAMP WITH TIME ZONE"),
                    DATETIME),
}  # fmt: skip


def type_of_column(duckdb_type: str) -> KustoType:
    """Return the KQL type of a column of DuckDB type `duckdb_type`, as DESCRIBE writes it."""
    if duckdb_type in _FOREIGN:
        return _FOREIGN[duckdb_type]
    if duckdb_type.startswith("DECIMAL"):
        return DECIMAL
    if duckdb_type.endswith("]") or duckdb_type.startswith(("STRUCT", "MAP", "UNION", "VARIANT")):
        return DYNAMIC
    return STRING


def as_held(column: str, duckdb_type: str) -> str:
    """Return SQL that brings a column of DuckDB type `duckdb_type` to the holding of its KQL type."""
    kind = type_of_column(duckdb_type)
    if duckdb_type == kind.held:
        return column
    if duckdb_type == "TIMESTAMP WITH TIME ZONE":
        return f"({column} AT TIME ZONE 'UTC')"
    if kind is DYNAMIC:
        return f"to_json({column})"
    if kind is DECIMAL:
        return f"TRY_CAST({column} AS {kind.held})"
    return f"CAST({column} AS {kind.held})"

"""The scalar types of KQL and how the store keeps them.

Imported by everything in `workspace` that reads or makes a column; knows no database. The type names are those of the
Kusto documentation and of the `type` field of a Log Analytics answer.
"""

from __future__ import annotations

from typing import Final

DUCKDB_TYPES: Final[dict[str, str]] = {
    "string": "VARCHAR",
    "bool": "BOOLEAN",
    "int": "INTEGER",
    "long": "BIGINT",
    "real": "DOUBLE",
    "decimal": "DECIMAL(38,10)",
    "datetime": "TIMESTAMP",
    "timespan": "INTERVAL",
    "guid": "UUID",
    "dynamic": "JSON",
}
"""KQL type -> the DuckDB type of a stored column. A datetime is UTC without zone, in microseconds."""

_KQL_TYPES: Final[dict[str, str]] = {
    "VARCHAR": "string",
    "BOOLEAN": "bool",
    "TINYINT": "int",
    "UTINYINT": "int",
    "SMALLINT": "int",
    "USMALLINT": "int",
    "INTEGER": "int",
    "UINTEGER": "long",
    "BIGINT": "long",
    "UBIGINT": "long",
    "HUGEINT": "long",
    "UHUGEINT": "long",
    "FLOAT": "real",
    "DOUBLE": "real",
    "DATE": "datetime",
    "TIMESTAMP": "datetime",
    "TIMESTAMP_S": "datetime",
    "TIMESTAMP_MS": "datetime",
    "TIMESTAMP_NS": "datetime",
    "TIMESTAMP WITH TIME ZONE": "datetime",
    "TIME": "timespan",
    "INTERVAL": "timespan",
    "UUID": "guid",
    "JSON": "dynamic",
}


def kql_type(duckdb_type: str) -> str:
    """The KQL type of a DuckDB column type, such as `long` for `BIGINT`. Lists, structs and maps are `dynamic`."""
    known = _KQL_TYPES.get(duckdb_type)
    if known is not None:
        return known
    if duckdb_type.startswith("DECIMAL"):
        return "decimal"
    if duckdb_type.endswith("]") or duckdb_type.startswith(("STRUCT", "MAP", "UNION")):
        return "dynamic"
    return "string"


def quote_name(name: str) -> str:
    """`name` as a quoted SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def quote_text(text: str) -> str:
    """`text` as a SQL string literal."""
    return "'" + text.replace("'", "''") + "'"

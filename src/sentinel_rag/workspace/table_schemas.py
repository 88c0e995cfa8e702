"""KQL's types as the workspace keeps them, and the tables of Microsoft's reference."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import Final

# The type names are those of the Kusto documentation and of the `type` field of a Log Analytics answer.
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


# Read from text files beside this module; `table_schemas.txt` explains their notation. What a workspace really holds is
# asked of its store, because imports add tables and columns.
SUFFIXES = {
    "": "string",
    "b": "bool",
    "i": "int",
    "l": "long",
    "r": "real",
    "m": "decimal",
    "t": "datetime",
    "s": "timespan",
    "g": "guid",
    "d": "dynamic",
}

TableSchema = Mapping[str, str]
"""Column name -> KQL type, in the order of the table."""


@cache
def known_tables() -> Mapping[str, TableSchema]:
    """The tables that a new workspace has."""
    return _read("table_schemas.txt")


@cache
def hunting_tables() -> Mapping[str, TableSchema]:
    """The tables of Defender XDR's advanced hunting, as they are there: their time is `Timestamp`."""
    return _read("hunting_tables.txt")


@cache
def reference_tables() -> Mapping[str, TableSchema]:
    """Every table of Microsoft's reference that a query may name, also where no row of it was ever kept."""
    return MappingProxyType({**hunting_tables(), **_read("log_tables.txt"), **known_tables()})


def _read(file: str) -> Mapping[str, TableSchema]:
    text = resources.files(__package__).joinpath(file).read_text(encoding="utf-8")
    tables: dict[str, TableSchema] = {}
    columns: dict[str, str] = {}
    for line in text.splitlines():
        if line.startswith("#") or not line.strip():
            continue
        if line.endswith(" ="):
            columns = {}
            tables[line.removesuffix(" =")] = MappingProxyType(columns)
            continue
        for word in line.split():
            name, _, suffix = word.partition(":")
            columns[name] = SUFFIXES[suffix]
    return MappingProxyType(tables)

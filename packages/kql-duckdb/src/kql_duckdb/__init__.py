"""The Kusto Query Language on DuckDB."""

from kql_duckdb.catalog import KnownTables, Table
from kql_duckdb.engine import Engine, Result, check, kql
from kql_duckdb.errors import KqlError
from kql_duckdb.types import KustoType

__all__ = ["Engine", "KnownTables", "KqlError", "KustoType", "Result", "Table", "check", "kql"]

"""How the layout of a workspace file has grown: numbered functions, run in order inside one transaction.

A migration is never edited after a release; a new one is appended. Below is only SQL; the store decides when to run
what, and refuses a file that a newer version has written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from sentinel_rag.workspace.kql_types import DUCKDB_TYPES, quote_name
from sentinel_rag.workspace.table_schemas import known_tables

if TYPE_CHECKING:
    import duckdb

Migration = Callable[["duckdb.DuckDBPyConnection"], None]


def create_table_sql(table: str, columns: Mapping[str, str]) -> str:
    """`CREATE TABLE` for KQL columns. A string is never null in KQL, so its column says so."""
    parts = [f"{quote_name(name)} {column_definition(type_)}" for name, type_ in columns.items()]
    return f"CREATE TABLE {quote_name(table)} ({', '.join(parts)})"


def column_definition(type_: str) -> str:
    """The SQL type of a stored column, with the default that stands for "no value"."""
    return DUCKDB_TYPES[type_] + (" DEFAULT ''" if type_ == "string" else "")


def _001_tables_and_import_records(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute("CREATE SEQUENCE sentinel.import_ids")
    connection.execute(
        "CREATE TABLE sentinel.imports (id BIGINT PRIMARY KEY, file VARCHAR NOT NULL, sha256 VARCHAR NOT NULL, "
        "imported_at TIMESTAMP NOT NULL, report JSON NOT NULL)"
    )
    connection.execute(
        "CREATE TABLE sentinel.rejects (import_id BIGINT NOT NULL, line BIGINT, reason VARCHAR NOT NULL, "
        "content VARCHAR NOT NULL)"
    )
    for table, columns in known_tables().items():
        connection.execute(create_table_sql(table, columns))


def _002_comment_names(connection: duckdb.DuckDBPyConnection) -> None:
    """GUIDs of comments that came through REST: the Comments column, as Sentinel logs it, has no place for them."""
    connection.execute(
        "CREATE TABLE sentinel.incident_comments (incident VARCHAR NOT NULL, name VARCHAR NOT NULL, "
        "created VARCHAR NOT NULL)"
    )


def _003_relation_names(connection: duckdb.DuckDBPyConnection) -> None:
    """Names of an incident's relations to bookmarks, which BookmarkIds has no place for."""
    connection.execute(
        "CREATE TABLE sentinel.incident_relations (incident VARCHAR NOT NULL, name VARCHAR NOT NULL, "
        "bookmark VARCHAR NOT NULL)"
    )


MIGRATIONS: tuple[Migration, ...] = (_001_tables_and_import_records, _002_comment_names, _003_relation_names)

"""The second look at a translation, by DuckDB's own parser: it is one SELECT and reads only the tables it says.

Independent of kql-duckdb, which looks names up before there is SQL: a fault in one is caught by the other.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Any

from sentinel_rag.workspace.kql.errors import KqlError, unresolved

if TYPE_CHECKING:
    import duckdb

_TABLE_FUNCTIONS = frozenset({"unnest", "generate_series", "range"})


def check_sql(cursor: duckdb.DuckDBPyConnection, sql: str, tables: Collection[str]) -> None:
    """Raise KqlError if the SQL is anything but a SELECT over `tables`."""
    row = cursor.execute("SELECT json_serialize_sql(?)", [sql]).fetchone()
    tree: dict[str, Any] = json.loads(row[0]) if row else {"error": True}
    if tree.get("error") or len(tree.get("statements", ())) != 1:
        raise KqlError("The query cannot be computed: its SQL is not a single SELECT.", kql_code="SEN0002")
    nodes = list(_nodes(tree))
    bound = {entry["key"] for node in nodes if "cte_map" in node for entry in node["cte_map"]["map"]}
    for node in nodes:
        if node.get("type") == "BASE_TABLE":
            name = node["table_name"]
            plain = not node.get("catalog_name") and not node.get("schema_name")
            if not plain or (name not in tables and name not in bound):
                raise unresolved("table or column", name, tables)
        elif node.get("type") == "TABLE_FUNCTION" and node["function"]["function_name"] not in _TABLE_FUNCTIONS:
            raise unresolved("table or column", node["function"]["function_name"], tables)


def _nodes(value: Any) -> Iterator[dict[str, Any]]:
    stack = [value]
    while stack:
        current = stack.pop()
        if isinstance(current, dict):
            yield current
            stack.extend(current.values())
        elif isinstance(current, list):
            stack.extend(current)

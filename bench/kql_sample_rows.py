"""A few rows for every table of a schema, made by rule, so that a query meets values and not only types.

Used by `bench_kql_collections`. The rows answer no question: they let faults show that come only with data, such as
a cast of a text, a list index or a division.
"""

from __future__ import annotations

from collections.abc import Mapping

from sentinel_rag.workspace.table_schemas import DUCKDB_TYPES, quote_name

ROWS = 12

_JSON_TEXTS = (
    '{"name": "x", "city": "Oslo", "countryOrRegion": "NO", "geoCoordinates": {"latitude": 59.9, "longitude": 10.7}}',
    '[{"displayName": "a", "newValue": "[\\"b\\"]", "result": "success"}, {"displayName": "c"}]',
    '{"id": 7, "user": {"userPrincipalName": "ann@contoso.example", "ipAddress": "192.0.2.7"}, "tags": ["t1", "t2"]}',
    "[]",
    "{}",
)
_TEXTS = (
    "powershell.exe -enc SQBFAFgA",
    "192.0.2.10",
    "ann@contoso.example",
    "https://login.contoso.example/a?b=c&d=e",
    "C:\\\\Windows\\\\System32\\\\cmd.exe",
    "Success",
    "0",
    "",
    _JSON_TEXTS[0],
    _JSON_TEXTS[1],
    "/subscriptions/1/resourceGroups/rg/providers/Microsoft.Compute/virtualMachines/vm",
    "4624",
)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _list(values: tuple[str, ...], type_: str) -> str:
    return "[" + ", ".join(_quoted(value) for value in values) + f"]::{type_}[]"


def fill_sql(table: str, columns: Mapping[str, str]) -> str:
    """An INSERT of ROWS rows into an empty `table`; the same names give the same rows."""
    chosen = [_value(position, type_) for position, type_ in enumerate(columns.values())]
    names = ", ".join(quote_name(name) for name in columns)
    return f"INSERT INTO {quote_name(table)} ({names}) SELECT {', '.join(chosen)} FROM range({ROWS}) AS rows(i)"


def _value(position: int, type_: str) -> str:
    pick = f"(i * 7 + {position})"
    if type_ == "string":
        return f"({_list(_TEXTS, 'VARCHAR')})[1 + {pick} % {len(_TEXTS)}]"
    if type_ == "dynamic":
        return f"({_list(_JSON_TEXTS, 'VARCHAR')})[1 + {pick} % {len(_JSON_TEXTS)}]::JSON"
    if type_ == "datetime":
        return f"CAST(now() AT TIME ZONE 'UTC' AS TIMESTAMP) - INTERVAL 1 HOUR * ({pick} % 60)"
    if type_ == "timespan":
        return f"INTERVAL 1 SECOND * {pick}"
    if type_ == "bool":
        return f"{pick} % 2 = 0"
    if type_ == "guid":
        return f"CAST(md5(CAST({pick} AS VARCHAR)) AS UUID)"
    nullable = f"CASE WHEN {pick} % 5 = 4 THEN NULL ELSE {pick} % 11 END"
    return f"CAST({nullable} AS {DUCKDB_TYPES[type_]})"

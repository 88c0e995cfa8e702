"""A handful of functions, so that the binder has something to call while the families are written."""

from __future__ import annotations

from kql_duckdb.functions.definitions import aggregate, function, ARGUMENT_KINDS
from kql_duckdb.types import KustoType
from kql_duckdb.functions.definitions import ScalarFunction, fill

for _kind in ("any", "string", "long", "real", "datetime", "bool", "dynamic"):
    ARGUMENT_KINDS[_kind] = lambda call, place, argument: argument


def _plain(operator: str, result: KustoType | None):
    def build(call):
        kind = result or call.arguments[0].type
        return fill(f"{{0}} {operator} {{1}}", kind, *call.arguments)

    return build


FUNCTIONS = (
    function("strlen(source: string): long", "CAST(length({0}) AS BIGINT)"),
    function("tolower(source: string): string", "lower({0})"),
    function("toupper(source: string): string", "upper({0})"),
    function("now(): datetime", lambda call: call.context.now),
    function("tostring(value: any): string", "coalesce(CAST({0} AS VARCHAR), '')"),
    *(
        ScalarFunction(f"operator:{name}", _plain(sql, kind), 2, 2)
        for name, sql, kind in (
            ("+", "+", None),
            ("-", "-", None),
            ("*", "*", None),
            ("==", "=", KustoType.BOOL),
            ("!=", "<>", KustoType.BOOL),
            ("<", "<", KustoType.BOOL),
            (">", ">", KustoType.BOOL),
            ("<=", "<=", KustoType.BOOL),
            (">=", ">=", KustoType.BOOL),
            ("and", "AND", KustoType.BOOL),
            ("or", "OR", KustoType.BOOL),
        )
    ),
)
AGGREGATES = (
    aggregate("count(): long", "count(*)"),
    aggregate("sum(value: any): long", "coalesce(sum({0}), 0)"),
)

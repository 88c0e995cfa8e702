"""Choices and questions about emptiness: `iff`, `case`, `coalesce`, `isnull`, `isempty` and their kind.

Source: the Kusto pages named like the functions. A string is never null, so `isnull` of one is false and `coalesce`
goes past the empty text.
"""

from __future__ import annotations

from collections.abc import Sequence

from kql_duckdb.errors import KqlError, not_supported
from kql_duckdb.expressions import Typed, literal
from kql_duckdb.functions.conversion import BOOL, DATETIME, DYNAMIC, REAL, STRING, convert, nullable_text, to_string
from kql_duckdb.functions.definitions import BoundCall, ScalarFunction, fill, function
from kql_duckdb.functions.operators import condition
from kql_duckdb.types import KustoType, common_type


def one_type(call: BoundCall, values: Sequence[Typed]) -> tuple[KustoType, list[Typed]]:
    """Return values of several types as values of the one that they have together. Raises KqlError if there is none."""
    kind = common_type(value.type for value in values)
    if kind is None:
        shown = ", ".join(dict.fromkeys(value.type.value for value in values))
        raise call.invalid(f"all values must have the same type, not {shown}.", "SEM0525")
    return kind, [to_string(value) if kind is STRING else convert(value, kind) for value in values]


def _choice(call: BoundCall) -> Typed:
    *pairs, last = call.arguments
    if len(pairs) % 2:
        raise call.invalid("expects pairs of a condition and a value, and a value for the rest.", "SEM0219")
    conditions = [condition(call, each) for each in pairs[::2]]
    kind, values = one_type(call, [*pairs[1::2], last])
    count = len(conditions)
    branches = " ".join(f"WHEN {{{place}}} THEN {{{count + place}}}" for place in range(count))
    nullable = any(value.nullable for value in values)
    return fill(f"CASE {branches} ELSE {{{2 * count}}} END", kind, *conditions, *values, nullable=nullable)


def _first_present(call: BoundCall) -> Typed:
    kind, values = one_type(call, call.arguments)
    places = range(len(values))
    if kind is STRING:
        listed = ", ".join(f"nullif({{{place}}}, '')" for place in places)
        return fill(f"coalesce({listed}, '')", STRING, *values)
    if kind is DYNAMIC:
        listed = ", ".join(f"nullif({{{place}}}, CAST('null' AS JSON))" for place in places)
        return fill(f"coalesce({listed})", DYNAMIC, *values)
    listed = ", ".join(f"{{{place}}}" for place in places)
    return fill(f"coalesce({listed})", kind, *values, nullable=all(value.nullable for value in values))


def _is_null(call: BoundCall) -> Typed:
    value = call.arguments[0]
    positive = call.name == "isnull"
    if value.type is STRING:
        return literal(not positive, BOOL)
    held = nullable_text(value) if value.type is DYNAMIC else value
    return fill("{0} IS NULL" if positive else "{0} IS NOT NULL", BOOL, held, nullable=False)


def _is_empty(call: BoundCall) -> Typed:
    value = call.arguments[0]
    positive = call.name == "isempty"
    if value.type in (STRING, DYNAMIC):
        return fill("{0} = ''" if positive else "{0} <> ''", BOOL, to_string(value), nullable=False)
    return fill("{0} IS NULL" if positive else "{0} IS NOT NULL", BOOL, value, nullable=False)


def _extreme(call: BoundCall) -> Typed:
    """Nulls are left out."""
    kind, values = one_type(call, call.arguments)
    if kind is DYNAMIC:
        raise not_supported(call.name, "a dynamic has no order; convert it with tolong(), todatetime() or tostring()")
    listed = ", ".join(f"{{{place}}}" for place in range(len(values)))
    word = "greatest" if call.name == "max_of" else "least"
    return fill(f"{word}({listed})", kind, *values)


def _of_real(test: str, call: BoundCall) -> Typed:
    return fill(test, BOOL, convert(call.arguments[0], REAL))


def _column_if_exists(call: BoundCall) -> Typed:
    name = call.constant_text(0)
    if name is None:
        raise call.invalid("argument #1 must be a string literal.", "SEM0207")
    return call.context.columns.get(name, call.arguments[1])


def _column_exists(call: BoundCall) -> Typed:
    name = call.constant_text(0)
    if name is None:
        raise call.invalid("argument #1 must be a string literal.", "SEM0207")
    return literal(name in call.context.columns, BOOL)


def _assert(call: BoundCall) -> Typed:
    """A condition that is a constant; one that holds is true, any other ends the query with the message."""
    message = call.constant_text(1) or ""
    value = call.arguments[0]
    if not value.is_constant:
        return fill("CASE WHEN {0} THEN TRUE ELSE error({1}) END", BOOL, value, literal(f"kql: {message}", STRING))
    if not value.constant:
        raise KqlError(f"assert() has failed with message: '{message}'", "SEM0001")
    return literal(True, BOOL)


def _now(call: BoundCall) -> Typed:
    now = call.context.now
    if not call.arguments:
        return now
    span = call.arguments[0]
    if span.is_constant and now.is_constant and span.constant is not None:
        return literal(now.constant + span.constant, DATETIME)
    return fill("{0} + {1}", DATETIME, now, span)


def _ago(call: BoundCall) -> Typed:
    now, span = call.context.now, call.arguments[0]
    if span.is_constant and now.is_constant and span.constant is not None:
        return literal(now.constant - span.constant, DATETIME)
    return fill("{0} - {1}", DATETIME, now, span)


def _ingestion_time(call: BoundCall) -> Typed:
    return call.context.ingestion_time or literal(None, DATETIME)


def _told_name(call: BoundCall) -> Typed:
    found = call.context.names.get(call.name)
    if found is None:
        raise not_supported(call.name, "there is no cluster here to ask")
    return literal(found, STRING)


FUNCTIONS: tuple[ScalarFunction, ...] = (
    *(function(f"{name}(if: any, then: any, else: any)", _choice) for name in ("iff", "iif")),
    function("case(predicate: any, then: any, else: any...)", _choice),
    function("coalesce(first: any, second: any...)", _first_present),
    *(function(f"{name}(value: any)", _is_null) for name in ("isnull", "isnotnull", "notnull")),
    *(function(f"{name}(value: any)", _is_empty) for name in ("isempty", "isnotempty", "notempty")),
    *(function(f"{name}(value: any...)", _extreme) for name in ("max_of", "min_of")),
    *(
        function(f"{name}(number: number)", lambda call, name=name: _of_real(f"{name}({{0}})", call))
        for name in ("isnan", "isinf", "isfinite")
    ),
    *(
        function(f"{name}(column_name: any, default_value: any)", _column_if_exists)
        for name in ("column_ifexists", "columnifexists")
    ),
    function("iscolumnexists(column_name: any)", _column_exists),
    function("assert(condition: bool, message: string)", _assert),
    function("now(offset?: timespan)", _now),
    function("ago(timespan: timespan)", _ago),
    function(
        "ingestion_time()",
        _ingestion_time,
        status="partly",
        note="the column that the table names for it; null where there is none",
    ),
    *(
        function(
            f"{name}()", _told_name, status="partly", note="what the engine is told; refused where it is told nothing"
        )
        for name in ("current_database", "current_cluster_endpoint", "current_principal")
    ),
)

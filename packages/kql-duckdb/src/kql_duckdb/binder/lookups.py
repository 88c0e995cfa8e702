"""Plugins that are joins and counts over relations: `ipv4_lookup`, `ipv6_lookup` and `activity_counts_metrics`.

Source: the Kusto pages of the plugins. A network is a range of addresses, computed once for each row of its side, so
that DuckDB joins by comparison and not by a call for each pair.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from kql_duckdb.algebra import Column, Filter, Relation, Template, identifiers
from kql_duckdb.binder.environment import Environment
from kql_duckdb.binder.expressions import bind_constant, bind_expression
from kql_duckdb.binder.joins import Keys, joined, key_of
from kql_duckdb.binder.messages import unresolved
from kql_duckdb.binder.scope import Scope
from kql_duckdb.errors import KqlError
from kql_duckdb.expressions import Typed
from kql_duckdb.functions import registry
from kql_duckdb.functions.conversion import to_string
from kql_duckdb.functions.definitions import BoundCall, fill
from kql_duckdb.syntax import ast
from kql_duckdb.types import KustoType

if TYPE_CHECKING:
    from kql_duckdb.binder.binder import Binder

# For each family: the address, and the first and the last one of a network. What is no address is null.
_RANGES = {
    "ipv4_lookup": (
        KustoType.LONG,
        "kql_parse_ipv4({0}, 32)",
        "kql_parse_ipv4({0}, 32)",
        "kql_ipv4_last({0})",
    ),
    "ipv6_lookup": (
        KustoType.STRING,
        "nullif(kql_parse_ipv6({0}, 128), '')",
        "nullif(kql_parse_ipv6({0}, 128), '')",
        "kql_ipv6_last({0})",
    ),
}


def address_lookup(binder: Binder, left: Relation, node: ast.Evaluate, environment: Environment) -> Relation:
    """Rows of both sides where the address of the left one is in the network of the right one."""
    name = node.call.name.lower()
    options = [one for one in node.call.arguments if one.name == "return_unmatched"]
    given = [one.value for one in node.call.arguments if one.name is None]
    if given and isinstance(given[-1], ast.Literal) and given[-1].kind == "bool":
        options.append(ast.Argument(given.pop()))
    if len(given) < 3:
        raise KqlError(f"{name} takes a table, a column of addresses and a column of networks.", "SEM0219")
    unmatched = bool(options) and bind_constant(binder.empty_scope(environment), options[0].value, "return_unmatched")
    sides = Scope(binder, left, environment), Scope(binder, binder.table(given[0], environment), environment)
    address, network = to_string(_column(sides[0], given[1])), to_string(_column(sides[1], given[2]))
    extra: list[Keys] = [(_column(sides[0], one), _column(sides[1], one)) for one in given[3:]]
    kind, *templates = _RANGES[name]
    place = sides[0].hoist(fill(templates[0], kind, address, nullable=True))
    first, last = (sides[1].hoist(fill(template, kind, network, nullable=True)) for template in templates[1:])
    dropped = {two.name for _, two in extra}
    right = sides[1].relation
    found = joined(
        sides[0].relation,
        right,
        "leftouter" if unmatched else "inner",
        extra,
        [column for column in right.columns if column.name not in dropped],
    )
    inside = f"l.{place.sql} BETWEEN r.{first.sql} AND r.{last.sql}"
    return replace(found, condition=f"{inside} AND {found.condition}" if extra else inside)


def _column(scope: Scope, node: ast.Expression) -> Typed:
    found = scope.find(node.name) if isinstance(node, ast.Name) else None
    if found is None:
        error = (
            unresolved("column or scalar", node.name, scope.names())
            if isinstance(node, ast.Name)
            else KqlError("A plugin takes columns here.", "SEM0001")
        )
        raise scope.binder.placed(error, node)
    return found


def activity_counts(binder: Binder, relation: Relation, node: ast.Evaluate, environment: Environment) -> Relation:
    """For each window of time: rows, different ids, ids that are new in it, and all ids so far."""
    given = [one.value for one in node.call.arguments]
    if len(given) < 5:
        raise KqlError("activity_counts_metrics takes an id, a time, a start, an end and a step.", "SEM0219")
    scope = Scope(binder, relation, environment)
    identity, moment = _column(scope, given[0]), _column(scope, given[1])
    start, end, step = (bind_expression(scope, one) for one in given[2:5])
    dimensions = [_column(scope, one) for one in given[5:]]
    function = registry.scalar("bin_at")
    assert function is not None
    window = scope.hoist(function.build(BoundCall("bin_at", (moment, step, start), (), scope.context(""))))
    between = registry.scalar("operator:between")
    assert between is not None
    test = between.build(BoundCall("operator:between", (moment, start, end), (), scope.context("")))
    rows = Filter(scope.relation.columns, scope.relation, test.sql)
    names = [moment.name, *(one.name for one in dimensions), "count", "dcount", "new_dcount", "aggregated_dcount"]
    kinds = [moment.type, *(one.type for one in dimensions), *[KustoType.LONG] * 4]
    columns = tuple(
        Column(name, kind, identifier) for name, kind, identifier in zip(names, kinds, identifiers(names), strict=True)
    )
    keys = [key_of(one) for one in dimensions]
    grouped = "".join(f", {key} AS {column.sql}" for key, column in zip(keys, columns[1:], strict=False))
    part = "".join(f"{column.sql}, " for column in columns[1 : len(keys) + 1])
    count, different, new, total = (column.sql for column in columns[len(keys) + 1 :])
    window_of = f"PARTITION BY {part.rstrip(', ')} " if part else ""
    return Template(
        columns,
        (rows,),
        (
            f"SELECT *, CAST(sum({new}) OVER ({window_of}ORDER BY {columns[0].sql}) AS BIGINT) AS {total} FROM ("
            f"SELECT {columns[0].sql}, {part}count(*) AS {count}, count(DISTINCT id) AS {different}, "
            f"count(DISTINCT id) FILTER (WHERE since = {columns[0].sql}) AS {new} FROM ("
            f"SELECT *, min({columns[0].sql}) OVER (PARTITION BY {part}id) AS since FROM ("
            f"SELECT {window.sql} AS {columns[0].sql}{grouped}, {identity.sql} AS id FROM ",
            0,
            f")) GROUP BY {part}{columns[0].sql}) ORDER BY {columns[0].sql}",
        ),
    )

"""Operators over groups of rows: `partition`, `top-nested`, `top-hitters`, `sample` and `sample-distinct`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kql_duckdb.algebra import Column, Limit, Relation, Sort, Template, identifiers
from kql_duckdb.binder.columns import limited
from kql_duckdb.binder.environment import Environment
from kql_duckdb.binder.expressions import bind_constant, bind_expression
from kql_duckdb.binder.messages import unresolved
from kql_duckdb.binder.naming import Namer, expression_name
from kql_duckdb.binder.scope import Scope
from kql_duckdb.binder.sources import shared
from kql_duckdb.binder.summarize import AggregateScope, aggregated_columns, grouped
from kql_duckdb.errors import KqlError, not_supported
from kql_duckdb.expressions import Typed, quote_name
from kql_duckdb.syntax import ast

if TYPE_CHECKING:
    from kql_duckdb.binder.binder import Binder


def partition(binder: Binder, relation: Relation, node: ast.Partition, environment: Environment) -> Relation:
    """The query over the rows of each value of the key, and all answers together."""
    if not isinstance(node.key, ast.Name):
        raise not_supported("partition", "by something else than a column")
    if node.query is not None:
        raise not_supported("partition", "with a query of its own source; write partition by Column (operators)")
    key = relation.column(node.key.name)
    if key is None:
        raise binder.placed(unresolved("column", node.key.name, (one.name for one in relation.columns)), node.key)
    rows = shared(binder, relation)
    group = f"$group{binder.number()}"
    text = _in_group(rows, key, group)
    inner = binder.lateral(text, node.body, environment)
    result = f"$part{binder.number()}"
    names = ", ".join(one.sql for one in inner.columns) or "1"
    listed = ", ".join(f"{quote_name(result)}.{one.sql}" for one in inner.columns) or "1"
    lateral = Template(inner.columns, (inner,), (f"SELECT {names} FROM ", 0, " AS i"))
    pieces = (
        f"SELECT {listed} FROM (SELECT DISTINCT {key.sql} AS k FROM ",
        0,
        f" AS d) AS {quote_name(group)}, LATERAL ",
        1,
        f" AS {quote_name(result)}",
    )
    return Template(inner.columns, (rows, lateral), pieces)


def _in_group(rows: Relation, key: Column, group: str) -> Relation:
    """The rows of one group, inside a lateral subquery of the group."""
    test = f" AS p WHERE p.{key.sql} IS NOT DISTINCT FROM {quote_name(group)}.k"
    return Template(rows.columns, (rows,), ("SELECT * FROM ", 0, test), serialized=rows.serialized)


def sample(binder: Binder, relation: Relation, node: ast.Sample, environment: Environment) -> Relation:
    """Some rows, or some different values: which ones is not promised, so they are the first."""
    count = bind_constant(binder.empty_scope(environment), node.count, "The number of rows")
    if not isinstance(count, int) or count < 0:
        raise binder.placed(
            KqlError("The number of rows must be a whole number that is not negative.", "SEM0001"), node
        )
    if node.key is None:
        return limited(relation, str(count))
    scope = Scope(binder, relation, environment)
    value = bind_expression(scope, node.key.expression)
    name = (node.key.names and node.key.names[0]) or expression_name(node.key.expression) or "Column1"
    return limited(grouped(scope.relation, [name], [value], [], []), str(count))


def top_hitters(binder: Binder, relation: Relation, node: ast.TopHitters, environment: Environment) -> Relation:
    """The values that come oftenest, or with the largest sum of a weight; here exactly so."""
    scope = Scope(binder, relation, environment)
    name = (node.key.names and node.key.names[0]) or expression_name(node.key.expression) or "Column1"
    key = bind_expression(scope, node.key.expression)
    call = ast.Call("count") if node.weight is None else ast.Call("sum", (ast.Argument(node.weight),))
    result = AggregateScope(scope)
    value = bind_expression(result, call)
    total = f"approximate_{'count' if node.weight is None else 'sum'}_{name}"
    counted = grouped(scope.relation, [name], [key], [total], [value], result)
    count = bind_constant(binder.empty_scope(environment), node.count, "The number of values")
    ordered = Sort(counted.columns, counted, (f"{counted.columns[1].sql} DESC NULLS LAST",), serialized=True)
    return Limit(counted.columns, ordered, str(int(count)), serialized=True)


# --------------------------------------------------------------------------------------------- top-nested


def top_nested(binder: Binder, relation: Relation, node: ast.TopNested, environment: Environment) -> Relation:
    """The first values of one expression, then within each of them the first of the next, each with its aggregate."""
    rows = shared(binder, relation)
    names: list[str] = []
    parts: list[Relation] = []
    namer = Namer()
    keys: list[tuple[str, ast.Named]] = []
    for level in node.levels:
        if level.others is not None:
            raise binder.placed(not_supported("top-nested with others"), level)
        name = namer.take(
            (level.key.names and level.key.names[0]) or expression_name(level.key.expression) or namer.positional()
        )
        keys.append((name, level.key))
        order = level.order.expression
        aggregate = namer.take(order.names[0] if order.names else f"aggregated_{name}")
        parts.append(_level(binder, rows, keys, level, aggregate, environment))
        names += [name, aggregate]
    columns: list[Column] = []
    texts: list[str] = []
    pieces: list[str | int] = []
    every = list(identifiers(names))
    for depth, part in enumerate(parts):
        above = part.columns[:depth]
        value, total = part.columns[depth], part.columns[depth + 1]
        for one, name, identifier in zip((value, total), names[2 * depth :], every[2 * depth :], strict=False):
            columns.append(Column(name, one.type, identifier, one.nullable))
            texts.append(f"t{depth}.{one.sql} AS {quote_name(identifier)}")
        if depth:
            pieces.append(" JOIN ")
        pieces += [depth, f" AS t{depth}"]
        if depth:
            matches = [
                f"t{depth}.{one.sql} IS NOT DISTINCT FROM t{depth - 1}.{parts[depth - 1].columns[place].sql}"
                for place, one in enumerate(above)
            ]
            pieces.append(f" ON {' AND '.join(matches)}")
    return Template(tuple(columns), tuple(parts), (f"SELECT {', '.join(texts)} FROM ", *pieces))


def _level(
    binder: Binder,
    rows: Relation,
    keys: list[tuple[str, ast.Named]],
    level: ast.NestedLevel,
    aggregate: str,
    environment: Environment,
) -> Relation:
    """The keys down to a level and its aggregate, of the first values within each combination of those above."""
    scope = Scope(binder, rows, environment)
    values: list[Typed] = [bind_expression(scope, one.expression) for _, one in keys]
    result = AggregateScope(scope)
    ((_, total),) = aggregated_columns(result, ast.Named(level.order.expression.expression, ("total",)))
    made = grouped(scope.relation, [name for name, _ in keys], values, [f"{aggregate} "], [total], result)
    if level.count is None:
        return made
    count = bind_constant(binder.empty_scope(environment), level.count, "The number of values")
    above = ", ".join(one.sql for one in made.columns[: len(keys) - 1])
    within = f"PARTITION BY {above} " if above else ""
    order = "ASC NULLS FIRST" if level.order.direction == "asc" else "DESC NULLS LAST"
    rank = f"row_number() OVER ({within}ORDER BY {made.columns[-1].sql} {order})"
    listed = ", ".join(one.sql for one in made.columns)
    return Template(made.columns, (made,), (f"SELECT {listed} FROM ", 0, f" AS g QUALIFY {rank} <= {int(count)}"))

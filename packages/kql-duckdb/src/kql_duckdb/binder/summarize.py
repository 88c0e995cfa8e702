"""`summarize`: keys, aggregates and expressions over aggregates.

An expression of `summarize` is bound twice as it were: what stands inside an aggregate over the rows, the rest over
the result, in which each aggregate is a column. Where all aggregates are bare there is no second step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from kql_duckdb.algebra import Aggregate, Column, Extend, Item, Project, Relation, identifiers
from kql_duckdb.binder.environment import Environment
from kql_duckdb.binder.expressions import bind_expression, bound_call
from kql_duckdb.binder.naming import Namer, declared_names, expression_name
from kql_duckdb.binder.scope import Rows, Scope
from kql_duckdb.errors import KqlError
from kql_duckdb.expressions import Typed, column
from kql_duckdb.functions import registry
from kql_duckdb.functions.definitions import AggregateFunction, BoundCall
from kql_duckdb.syntax import ast
from kql_duckdb.types import KustoType

if TYPE_CHECKING:
    from kql_duckdb.binder.binder import Binder

_OF_ROWS = frozenset(("arg_max", "arg_min", "argmax", "argmin", "take_any", "any", "anyif", "take_anyif"))
"""Aggregates that give columns of a row, and so take `*`."""
_ORDERED = ("make_list", "makelist", "make_set", "makeset", "make_bag", "make_dictionary", "take_any")


class AggregateScope(Scope):
    """The result of the aggregates, which are added to it as they are met."""

    def __init__(self, inner: Scope, keys: Mapping[str, Typed] | None = None) -> None:
        super().__init__(inner.binder, Rows(inner.binder, _RESULT), inner.environment, keys or {})
        self.inner = _Inside(inner)
        self.aggregates: dict[str, str] = {}
        """SQL of an aggregate -> its hidden column."""

    def aggregate(self, node: ast.Call) -> Typed | None:
        function = registry.aggregate(node.name)
        if function is None:
            return None
        return self.added(function.build(aggregate_call(self.inner, function, node)))

    def added(self, value: Typed) -> Typed:
        """An aggregate as a column of the result."""
        name = self.aggregates.setdefault(value.sql, f"$agg{len(self.aggregates)}")
        return column(f'"{name}"', value.type, nullable=value.nullable, name=value.name)

    def inside(self, environment: Environment) -> Scope:
        made = AggregateScope(self.inner.inside(environment))
        made.rows, made.aggregates = self.rows, self.aggregates
        return made

    def over(self, computed: Relation) -> Relation:
        """`computed`, which holds the aggregates, with what was hoisted over them."""
        return _rebased(self.rows.relation, computed)


_RESULT = Relation(())
"""Stands for the result of the aggregates until it is made."""


def _rebased(relation: Relation, onto: Relation) -> Relation:
    if relation is _RESULT:
        return onto
    assert isinstance(relation, Extend)
    return Extend(onto.columns, _rebased(relation.input, onto), relation.items)


class _Inside(Scope):
    """The rows that an aggregate reads, in which no other may stand."""

    def __init__(self, inner: Scope) -> None:
        super().__init__(inner.binder, inner.rows, inner.environment, dict(inner.columns()))

    def aggregate(self, node: ast.Call) -> Typed | None:
        if registry.aggregate(node.name) is not None and registry.scalar(node.name) is None:
            raise KqlError(f"Aggregate '{node.name}' cannot stand inside another one.", "SEM0009")
        return None


def aggregate_call(scope: Scope, function: AggregateFunction, node: ast.Call) -> BoundCall:
    """The call over the rows; a star is left out for `count(*)` and is all columns for the aggregates of rows."""
    arguments = tuple(one for one in node.arguments if not isinstance(one.value, ast.Pattern))
    call = bound_call(scope, function, replace(node, arguments=arguments))
    if node.name.lower().startswith(_ORDERED) and scope.relation.serialized:
        call = replace(call, context=scope.ordered_context())
    return call


def summarize(binder: Binder, relation: Relation, node: ast.Summarize, environment: Environment) -> Relation:
    """The relation of one `summarize`."""
    scope = Scope(binder, relation, environment)
    columns = tuple(one.name for one in relation.columns)
    spelled = declared_names([*node.keys, *(one for one in node.aggregates if one.names)], "summarize")
    namer = Namer(spelled, skip=columns)
    key_names: list[str] = []
    keys: list[Typed] = []
    for one in node.keys:
        value = bind_expression(scope, one.expression)
        key_names.append(
            namer.take((one.names and one.names[0]) or expression_name(one.expression) or namer.positional())
        )
        keys.append(_key(binder, scope, value, node))
    result = AggregateScope(scope)
    names: list[str] = []
    values: list[Typed] = []
    for one in node.aggregates:
        for name, value in aggregated_columns(result, one, _bare_keys(node)):
            names.append(namer.take(name or expression_name(one.expression) or namer.positional()))
            values.append(value)
    return grouped(scope.relation, key_names, keys, names, values, result)


def _key(binder: Binder, scope: Scope, value: Typed, node: ast.Summarize) -> Typed:
    if value.windowed:
        return scope.hoist(value)
    if node.bin is not None and value.type in (KustoType.DATETIME, KustoType.TIMESPAN):
        size = bind_expression(scope, node.bin)
        function = registry.scalar("bin")
        assert function is not None
        return function.build(BoundCall("bin", (value, size), (), scope.context("")))
    return value


def _bare_keys(node: ast.Summarize) -> frozenset[str]:
    """The columns that a star leaves out: those that are keys as they are."""
    return frozenset(one.expression.name for one in node.keys if isinstance(one.expression, ast.Name))


def aggregated_columns(
    result: AggregateScope, one: ast.Named, keys: frozenset[str] = frozenset()
) -> list[tuple[str, Typed]]:
    """The columns of one expression, each with the name that the query or the aggregate gives it."""
    node = one.expression
    function = registry.aggregate(node.name) if isinstance(node, ast.Call) else None
    if function is None or not isinstance(node, ast.Call):
        if len(one.names) > 1:
            raise result.binder.placed(
                KqlError(f"({', '.join(one.names)}) =: the expression has one value.", "SEM0001"), one
            )
        return [(one.names[0] if one.names else "", bind_expression(result, node))]
    try:
        made = _of_aggregate(result, function, node, keys)
    except KqlError as error:
        result.binder.placed(error, node)
        raise
    if len(one.names) > len(made):
        raise result.binder.placed(
            KqlError(f"({', '.join(one.names)}) =: the aggregate has fewer values.", "SEM0001"), one
        )
    return [
        (one.names[place] if place < len(one.names) else name, result.added(value))
        for place, (name, value) in enumerate(made)
    ]


def _of_aggregate(
    result: AggregateScope, function: AggregateFunction, node: ast.Call, keys: frozenset[str]
) -> list[tuple[str, Typed]]:
    scope = result.inner
    call = aggregate_call(scope, function, node)
    if node.name.lower() in _OF_ROWS and any(isinstance(one.value, ast.Pattern) for one in node.arguments):
        given = {one.name for one in call.arguments}
        others = (value for name, value in scope.columns() if name not in keys and name not in given)
        call = replace(call, arguments=(*call.arguments, *others))
    made = function.build_columns(call)
    default = function.default_column_name(call)
    if len(made) == 1:
        return [(made[0][0] or default, made[0][1])]
    return [(name or default, value) for name, value in made]


def grouped(
    relation: Relation,
    key_names: Sequence[str],
    keys: Sequence[Typed],
    names: Sequence[str],
    values: Sequence[Typed],
    result: AggregateScope | None = None,
) -> Relation:
    """One row for each combination of `keys`, with `values` over the aggregates of `result`."""
    every = list(identifiers([*key_names, *names]))
    key_columns = tuple(
        Column(name, value.type, identifier, value.nullable and value.type is not KustoType.STRING)
        for name, value, identifier in zip(key_names, keys, every, strict=False)
    )
    key_items: tuple[Item, ...] = tuple(
        (one.identifier, _group_key(value)) for one, value in zip(key_columns, keys, strict=True)
    )
    columns = tuple(
        Column(name, value.type, identifier, value.nullable)
        for name, value, identifier in zip(names, values, every[len(keys) :], strict=True)
    )
    aggregates = dict(result.aggregates) if result is not None else {}
    hidden = {f'"{name}"': sql for sql, name in aggregates.items()}
    if all(value.sql in hidden for value in values):
        items = tuple((one.identifier, hidden[value.sql]) for one, value in zip(columns, values, strict=True))
        return Aggregate((*key_columns, *columns), relation, key_items, items)
    inner = tuple((name, sql) for sql, name in aggregates.items())
    computed = Aggregate(key_columns, relation, key_items, inner)
    assert result is not None
    shown = [(one.identifier, one.sql) for one in key_columns]
    shown += [(one.identifier, value.sql) for one, value in zip(columns, values, strict=True)]
    return Project((*key_columns, *columns), result.over(computed), tuple(shown))


def _group_key(value: Typed) -> str:
    """A key as rows are told apart by it: no text is null, and dynamics are told apart by their text."""
    if value.type is KustoType.STRING and value.nullable:
        return f"coalesce({value.sql}, '')"
    return value.sql

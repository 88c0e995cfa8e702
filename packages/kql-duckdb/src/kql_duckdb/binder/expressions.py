"""Scalar expressions to typed SQL.

Columns come before lets. A let function is bound at its call with its arguments in place, a let or `toscalar` that is
no constant is a relation of one row, computed once. Every fault gets the place of the innermost construct.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from kql_duckdb.algebra import Column, Relation
from kql_duckdb.binder.naming import argument_name, sorted_names
from kql_duckdb.binder.scope import Environment, FunctionOf, Scope, Unbound, nearest, unresolved
from kql_duckdb.errors import KqlError, not_supported
from kql_duckdb.expressions import Typed, literal, type_literal
from kql_duckdb.functions import registry
from kql_duckdb.functions.definitions import REFUSED, BoundCall, Function
from kql_duckdb.sql import subquery
from kql_duckdb.syntax import ast
from kql_duckdb.syntax.parser import LIST_OPERATORS
from kql_duckdb.types import KustoType

_SHORT = 400
"""A let whose SQL is no longer is put in wherever it is read, so that DuckDB sees constants as such."""


def bind_expression(scope: Scope, node: ast.Expression) -> Typed:
    """The value of an expression in the row of `scope`. Raises KqlError with the place."""
    handler = _HANDLERS.get(type(node))
    try:
        if handler is None:
            raise KqlError("A table stands where a value is needed; put it into toscalar().", "SEM0010")
        return handler(scope, node)
    except KqlError as error:
        scope.binder.placed(error, node)
        raise


def bind_condition(scope: Scope, node: ast.Expression) -> Typed:
    value = bind_expression(scope, node)
    if value.type is KustoType.BOOL:
        return value
    return scope.built("operator:and", value, literal(True, KustoType.BOOL))


def bind_constant(scope: Scope, node: ast.Expression, what: str) -> Any:
    """The Python value of an expression that must be known now. Raises KqlError."""
    value = bind_expression(scope, node)
    if not value.is_constant:
        raise scope.binder.fault(node, f"{what} must be a constant.", "SEM0040")
    return value.constant


def _literal(scope: Scope, node: ast.Literal) -> Typed:
    if node.kind != "timespan" or node.value is None:
        return literal(node.value, KustoType(node.kind))
    microseconds, rest = divmod(node.value, 10)
    if rest:
        raise not_supported(f"{node.value} ticks", "a timespan holds whole microseconds here")
    return literal(timedelta(microseconds=microseconds), KustoType.TIMESPAN)


def _name(scope: Scope, node: ast.Name) -> Typed:
    found = scope.find(node.name)
    if found is not None:
        return found
    binding = scope.environment.get(node.name)
    if isinstance(binding, Typed):
        return _read(scope, binding)
    if isinstance(binding, Unbound) and not binding.tabular:
        if binding.value is None:
            with scope.binder.entering(node.name):
                binding.value = value_outside(scope.outside(binding.environment), binding.expression)
        return _read(scope, binding.value)
    if isinstance(binding, FunctionOf) and not scope.is_tabular_function(binding):
        return _call_let(scope, ast.Call(node.name, at=node.at), binding)
    if binding is not None or scope.binder.catalog.table(node.name):
        raise KqlError(f"'{node.name}' is a table where a value is needed; put it into toscalar().", "SEM0010")
    known = [*scope.columns, *scope.environment, *scope.binder.around]
    raise unresolved("column or scalar", node.name, known)


def _read(scope: Scope, value: Typed) -> Typed:
    """A value of one row somewhere else, as a column where the row reads it."""
    return value if value.simple or value.is_constant or not value.relation else scope.hoist(value)


def _call(scope: Scope, node: ast.Call) -> Typed:
    binding = scope.environment.get(node.name)
    if isinstance(binding, FunctionOf):
        if scope.is_tabular_function(binding):
            raise KqlError(f"'{node.name}' gives a table where a value is needed; put it into toscalar().", "SEM0010")
        return _call_let(scope, node, binding)
    if node.name.lower() in _SPECIAL:
        return _SPECIAL[node.name.lower()](scope, node)
    aggregated = scope.aggregate(node)
    if aggregated is not None:
        return aggregated
    function = registry.scalar(node.name)
    if function is None:
        raise _unknown(scope, node)
    return function.build(bound_call(scope, function, node))


def _unknown(scope: Scope, node: ast.Call) -> KqlError:
    if registry.aggregate(node.name) is not None:
        message = f"Function '{node.name}' is an aggregate and stands only in summarize, make-series and the like."
        return KqlError(message, "SEM0242")
    error = registry.unknown(node.name)
    known = (name for name, kind, status, _ in registry.table() if kind != "operator" and status != REFUSED)
    error.token, error.suggestions = node.name, nearest(node.name, [*known, *scope.environment])
    return error


def bound_call(scope: Scope, function: Function, node: ast.Call) -> BoundCall:
    """The call with its arguments bound in the row of `scope`, each with the name that it gives a column.

    A name before an argument that is none of the function's parameters names the value: `bin(Hour = t, 1h)`.
    """
    known = {one.name for one in function.parameters}
    names = [one.name if one.name in known else None for one in node.arguments]
    given = tuple(names) if any(names) else ()
    arguments = [
        type_literal(KustoType(one.value.types[0]))
        if isinstance(one.value, ast.TypeOf)
        else bind_expression(scope, one.value).named(argument_name(one))
        for one in node.arguments
    ]
    windowed, name = registry.is_window(node.name), node.name.lower()
    if windowed and not scope.relation.serialized:
        raise KqlError(
            f"Function '{name}' cannot be invoked in current context. Details: the row set must be serialized. "
            "Put sort by ... or serialize before it."
        )
    return BoundCall(node.name, tuple(arguments), given, scope.context(ordered=windowed))


def bind_named(scope: Scope, column: ast.Named) -> list[Typed]:
    """The columns that one expression of `extend` or `project` makes, each with the name that the query or the function
    gives it; an empty name is left to the operator.

    A function of several columns makes them all where it has no name or several names, of which there may be fewer.
    """
    node, given = column.expression, column.names
    function = registry.scalar(node.name) if isinstance(node, ast.Call) else None
    if function is None or function.columns is None or (given and not column.several):
        return with_names(scope, column, [bind_expression(scope, node).named("")])
    assert isinstance(node, ast.Call)
    with scope.binder.at(node):
        made = [value.named(name) for name, value in function.build_columns(bound_call(scope, function, node))]
    if given:
        return with_names(scope, column, made)[: len(given)]
    names = [""] if len(made) == 1 else sorted_names(node) or [one.name for one in made]
    return [value.named(name) for name, value in zip(names, made, strict=True)]


def with_names(scope: Scope, column: ast.Named, made: Sequence[Typed]) -> list[Typed]:
    """Values under the names that the query gives, as far as it does."""
    names = column.names
    if len(names) > len(made):
        raise scope.binder.fault(column, f"({', '.join(names)}) =: there are not so many values, but {len(made)}.")
    return [*(value.named(name) for name, value in zip(names, made, strict=False)), *made[len(names) :]]


def _binary(scope: Scope, node: ast.Binary) -> Typed:
    if isinstance(node.left, ast.Pattern):
        raise not_supported(f"* {node.operator}", "it stands only in where and search")
    chain: list[ast.Binary] = []
    left: ast.Expression = node
    while isinstance(left, ast.Binary) and not isinstance(left.left, ast.Pattern):
        chain.append(left)
        left = left.left
    value = bind_expression(scope, left)
    for one in reversed(chain):
        value = scope.built(f"operator:{one.operator}", value, bind_expression(scope, one.right))
    return value


def _operation(scope: Scope, node: ast.Operation) -> Typed:
    if node.operator not in LIST_OPERATORS:
        return _built(scope, node.operator, *node.operands)
    left, *listed = node.operands
    values = (bind_expression(scope, left), *(_item(scope, one) for one in listed))
    if node.operator in ("!has_any", "!has_all"):
        return scope.built("operator:not", scope.built(f"operator:{node.operator[1:]}", *values))
    return scope.built(f"operator:{node.operator}", *values)


def _item(scope: Scope, node: ast.Expression) -> Typed:
    """An item of a list: a value, or a table that stands for the values of its first column."""
    is_column = isinstance(node, ast.Name) and scope.find(node.name) is not None
    if not is_column and scope.is_tabular(node):
        relation = scope.table(node)
        if not relation.columns:
            raise scope.binder.fault(node, "A list needs a table with a column.", "SEM0010")
        first = relation.columns[0]
        return Typed(subquery(relation.computed((first,), (first.sql,))), first.type, relation=True)
    return bind_expression(scope, node)


def _index(scope: Scope, node: ast.Index) -> Typed:
    if isinstance(node.value, ast.Call) and isinstance(node.index, ast.Literal) and sorted_names(node.value)[1:]:
        # The arrays of a function of several are told apart by their place.
        columns = bind_named(scope, ast.Named(node.value))
        place = node.index.value
        if isinstance(place, int) and 0 <= place < len(columns):
            return columns[place]
    return _built(scope, "index", node.value, node.index)


def _qualified(scope: Scope, node: ast.Qualified) -> Typed:
    owner = node.owner
    while isinstance(owner, ast.Qualified):
        owner = owner.owner
    if isinstance(owner, ast.Call):
        raise not_supported(owner.name, "another place of tables")
    called = node.member.name if isinstance(node.member, ast.Call) else "?"
    raise KqlError(f"A value has no function '{called}'.", "SEM0260")


def _call_let(scope: Scope, node: ast.Call, binding: FunctionOf) -> Typed:
    binder = scope.binder
    function = binding.function
    if function.body is None:
        raise KqlError(f"The function '{node.name}' has no value.", "SEM0010")
    with binder.entering(node.name):
        inner: Environment = dict(binding.environment)
        for parameter, argument in matched(node, function):
            value = bind_expression(scope, argument)
            if parameter.type not in ("", value.type):
                value = scope.built(f"to{parameter.type}", value)
            inner[parameter.name] = _held(scope, value)
        for statement in function.statements:
            if statement.word != "let":
                raise not_supported(statement.word, "inside a function")
            let = scope.outside(inner).let(statement)
            if isinstance(let, Unbound) and not let.tabular:
                # It may read the row of the call through the parameters.
                value = bind_expression(scope.inside(inner), let.expression)
                inner = inner | {statement.name: _held(scope, value)}
            else:
                inner = inner | {statement.name: let}
        return bind_expression(scope.inside(inner), function.body)


def matched(node: ast.Call, function: ast.Function) -> list[tuple[ast.FunctionParameter, ast.Expression]]:
    """Each parameter of a let function with its argument, or its default where none is given."""
    parameters = {one.name: one for one in function.parameters}
    given: dict[str, ast.Expression] = {}
    for name, one in itertools.zip_longest(parameters, node.arguments):
        if one is None:
            break
        if one.name is None and name is None:
            message = f"Function '{node.name}' expects {len(parameters)} argument(s), got {len(node.arguments)}."
            raise KqlError(message, "SEM0219")
        if one.name is not None and one.name not in parameters:
            raise KqlError(f"Function '{node.name}' has no parameter '{one.name}'.", "SEM0219")
        given[one.name or name] = one.value
    found = []
    for name, parameter in parameters.items():
        value = given.get(name, parameter.default)
        if value is None:
            raise KqlError(f"Function '{node.name}' expects an argument for its parameter '{name}'.", "SEM0219")
        found.append((parameter, value))
    return found


def _held(scope: Scope, value: Typed) -> Typed:
    """A value that a function reads by name, computed once if it is long."""
    long = not value.simple and not value.is_constant and len(value.sql) > _SHORT
    return scope.hoist(value) if long else value


def _toscalar(scope: Scope, node: ast.Call) -> Typed:
    if len(node.arguments) != 1:
        raise KqlError("toscalar() takes one table or value.", "SEM0219")
    inner = node.arguments[0].value
    if not scope.is_tabular(inner):
        return bind_expression(scope, inner)
    relation = scope.table(inner)
    if not relation.columns:
        raise KqlError("toscalar() needs a table with a column.", "SEM0010")
    first = relation.columns[0]
    column = (Column("value", first.type, "value", nullable=True),)
    return _read(scope, _once(scope, relation.computed(column, (first.sql,)).limited("1")))


def _materialized_value(scope: Scope, node: ast.Call) -> Typed:
    if len(node.arguments) == 1 and not scope.is_tabular(node.arguments[0].value):
        return bind_expression(scope, node.arguments[0].value)
    raise KqlError("materialize() gives a table where a value is needed.", "SEM0010")


def _not_a_literal(scope: Scope, node: ast.Call) -> Typed:
    raise KqlError(f"{node.name}() takes a literal; use to{node.name}() for a value.", "SEM0260")


_SPECIAL: dict[str, Callable[[Scope, ast.Call], Typed]] = {
    "toscalar": _toscalar,
    "materialize": _materialized_value,
    **dict.fromkeys(("int", "long", "real", "double", "decimal", "bool", "guid", "date"), _not_a_literal),
}


def _built(scope: Scope, name: str, *values: ast.Expression) -> Typed:
    return scope.built(f"operator:{name}", *(bind_expression(scope, one) for one in values))


_HANDLERS: dict[type, Callable[[Scope, Any], Typed]] = {
    ast.Literal: _literal, ast.Name: _name, ast.Call: _call, ast.Binary: _binary, ast.Operation: _operation,
    ast.Member: lambda scope, node: _built(scope, "member", node.value, ast.Literal("string", node.name)),
    ast.Index: _index, ast.Qualified: _qualified,
}  # fmt: skip


def value_outside(scope: Scope, node: ast.Expression) -> Typed:
    """The value of an expression that reads no row."""
    scope = scope.outside()
    return shared_scalar(scope, bind_expression(scope, node))


def shared_scalar(scope: Scope, value: Typed) -> Typed:
    """A value over the one row of `scope`: itself if it is short, else as a subquery of its own."""
    relation = scope.relation
    plain = not relation.columns and not relation.inputs()
    if value.is_constant or (plain and (value.relation or len(value.sql) <= _SHORT)):
        return value
    column = Column("value", value.type, "value", value.nullable)
    return _once(scope, relation.computed((column,), (value.sql,)))


def _once(scope: Scope, relation: Relation) -> Typed:
    """The one value of a relation, as a subquery that is computed once."""
    made = scope.binder.shared(relation, materialized=True)
    (column,) = relation.columns
    return Typed(f"({subquery(made)})", column.type, nullable=column.nullable, relation=True)

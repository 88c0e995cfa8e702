"""Scalar expressions to typed SQL.

Columns come before lets. A let function is bound at its call with its arguments in place, a let or `toscalar` that is
no constant is a relation of one row, computed once. Every fault gets the place of the innermost construct.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from uuid import UUID

from kql_duckdb.algebra import Column, Limit, Project, Relation, Shared
from kql_duckdb.binder.environment import Environment, FunctionOf, TableOf, Unbound, ValueOf
from kql_duckdb.binder.messages import nearest, unresolved
from kql_duckdb.binder.naming import argument_name, sorted_names
from kql_duckdb.binder.scope import Scope
from kql_duckdb.errors import KqlError, not_supported
from kql_duckdb.expressions import Typed, literal, quote_name, type_literal
from kql_duckdb.functions import registry
from kql_duckdb.functions.definitions import REFUSED, BoundCall, Function
from kql_duckdb.sql import subquery
from kql_duckdb.syntax import ast
from kql_duckdb.syntax.literals import datetime_value
from kql_duckdb.types import KustoType

if TYPE_CHECKING:
    from kql_duckdb.binder.binder import Binder

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
    """An expression as a bool."""
    value = bind_expression(scope, node)
    if value.type is KustoType.BOOL:
        return value
    return _operator(scope, node, "and", (value, literal(True, KustoType.BOOL)))


def bind_constant(scope: Scope, node: ast.Expression, what: str) -> Any:
    """The Python value of an expression that must be known now. Raises KqlError."""
    value = bind_expression(scope, node)
    if not value.is_constant:
        raise scope.binder.placed(KqlError(f"{what} must be a constant.", "SEM0040"), node)
    return value.constant


def literal_value(node: ast.Literal) -> Any:
    """What `literal` takes for the value of a tree's literal."""
    value = node.value
    if value is None or isinstance(value, bool):
        return value
    if node.kind == "timespan":
        if int(value) % 10:
            raise not_supported(f"{int(value)} ticks", "a timespan holds whole microseconds here")
        return timedelta(microseconds=int(value) // 10)
    if node.kind == "datetime":
        return datetime_value(str(value))
    if node.kind == "decimal":
        return Decimal(str(value))
    if node.kind == "guid":
        return UUID(str(value))
    if node.kind == "dynamic":
        return json.loads(str(value))
    return value


def _literal(scope: Scope, node: ast.Literal) -> Typed:
    return literal(literal_value(node), KustoType(node.kind))


def _name(scope: Scope, node: ast.Name) -> Typed:
    found = scope.find(node.name)
    if found is not None:
        return found
    binding = scope.environment.find(node.name)
    if isinstance(binding, ValueOf):
        return _read(scope, binding.value)
    if isinstance(binding, Unbound) and not binding.tabular:
        return _read(scope, _let_value(scope.binder, node.name, binding, scope.environment))
    if isinstance(binding, FunctionOf) and not scope.binder.is_tabular_function(binding):
        return _call_let(scope, ast.Call(node.name, at=node.at), binding)
    if binding is not None or scope.binder.is_table(node.name):
        raise KqlError(f"'{node.name}' is a table where a value is needed; put it into toscalar().", "SEM0010")
    known = [*scope.names(), *scope.environment.names(), *scope.binder.around]
    raise unresolved("column or scalar", node.name, known)


def _let_value(binder: Binder, name: str, binding: Unbound, environment: Environment) -> Typed:
    """A let's value, bound once in a scope without a row."""
    with binder.entering(name):
        value = binder.constant_value(binding.expression, binding.environment)
    environment.rebind(name, ValueOf(value))
    return value


def _read(scope: Scope, value: Typed) -> Typed:
    """A value of one row somewhere else, as a column where the row reads it."""
    return value if value.simple or value.is_constant or not value.relation else scope.hoist(value)


def scalar_of(binder: Binder, relation: Relation) -> Typed:
    """The first column of the first row of `relation`, as a subquery that is computed once."""
    if not relation.columns:
        raise KqlError("toscalar() needs a table with a column.", "SEM0010")
    first = relation.columns[0]
    column = Column("value", first.type, "value", first.nullable)
    one = Limit((column,), Project((column,), relation, (("value", first.sql),)), "1")
    shared = binder.share(one, materialized=True)
    shared.in_text = True
    return Typed(f"(SELECT value FROM {quote_name(shared.name)})", first.type, nullable=True, relation=True)


def _call(scope: Scope, node: ast.Call) -> Typed:
    binder = scope.binder
    binding = scope.environment.find(node.name)
    if isinstance(binding, FunctionOf):
        if binder.is_tabular_function(binding):
            raise KqlError(f"'{node.name}' gives a table where a value is needed; put it into toscalar().", "SEM0010")
        return _call_let(scope, node, binding)
    name = node.name.lower()
    special = _SPECIAL.get(name)
    if special is not None:
        return special(scope, node)
    aggregated = scope.aggregate(node)
    if aggregated is not None:
        return aggregated
    function = registry.scalar(node.name)
    if function is None:
        raise _unknown(scope, node)
    return build(scope, function, node)


def _unknown(scope: Scope, node: ast.Call) -> KqlError:
    if registry.aggregate(node.name) is not None:
        return KqlError(
            f"Function '{node.name}' is an aggregate and stands only in summarize, make-series and the like.", "SEM0242"
        )
    error = registry.unknown(node.name)
    known = (name for name, kind, status, _ in registry.table() if kind != "operator" and status != REFUSED)
    error.token, error.suggestions = node.name, nearest(node.name, [*known, *scope.environment.names()])
    return error


def bound_call(scope: Scope, function: Function, node: ast.Call) -> BoundCall:
    """The call with its arguments bound in the row of `scope`, each with the name that it gives a column.

    A name before an argument that is none of the function's parameters names the value: `bin(Hour = t, 1h)`.
    """
    arguments: list[Typed] = []
    names: list[str | None] = []
    for one in node.arguments:
        names.append(one.name if one.name in function.parameters else None)
        if isinstance(one.value, ast.TypeOf):
            arguments.append(type_literal(KustoType(one.value.types[0])))
        else:
            value = bind_expression(scope, one.value)
            arguments.append(value.named(argument_name(one)))
    given = tuple(names) if any(names) else ()
    return BoundCall(node.name, tuple(arguments), given, scope.context(node.name.lower()))


def build(scope: Scope, function: Function, node: ast.Call) -> Typed:
    return function.build(bound_call(scope, function, node))


def bind_named(scope: Scope, column: ast.Named) -> list[tuple[str, Typed]]:
    """The columns that one expression of `extend` or `project` makes, each with the name that the query or the function
    gives it; an empty name is left to the operator.

    A function of several columns makes them all where it has no name or several names, of which there may be fewer.
    """
    node, given = column.expression, column.names
    function = registry.scalar(node.name) if isinstance(node, ast.Call) else None
    if function is None or function.make_columns is None or (given and not column.several):
        value = bind_expression(scope, node)
        if len(given) > 1:
            raise scope.binder.placed(
                KqlError(f"({', '.join(given)}) =: the expression has one value.", "SEM0001"), column
            )
        return [(given[0] if given else "", value)]
    assert isinstance(node, ast.Call)
    try:
        made = function.build_columns(bound_call(scope, function, node))
    except KqlError as error:
        scope.binder.placed(error, node)
        raise
    if len(given) > len(made):
        raise scope.binder.placed(
            KqlError(f"({', '.join(given)}) =: the expression has fewer values.", "SEM0001"), column
        )
    if given:
        return [(name, value) for name, (_, value) in zip(given, made, strict=False)]
    if len(made) == 1:
        return [("", made[0][1])]
    names = sorted_names(node) or [name for name, _ in made]
    return [(name, value) for name, (_, value) in zip(names, made, strict=True)]


def _operator(scope: Scope, node: ast.Node, name: str, arguments: tuple[Typed, ...]) -> Typed:
    function = registry.scalar(f"operator:{name}")
    if function is None:
        raise not_supported(name)
    return function.build(BoundCall(f"operator:{name}", arguments, (), scope.context("")))


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
        value = _operator(scope, one, one.operator, (value, bind_expression(scope, one.right)))
    return value


def _logical(scope: Scope, node: ast.Logical) -> Typed:
    return _operator(scope, node, node.operator, tuple(bind_expression(scope, one) for one in node.operands))


def _in_list(scope: Scope, node: ast.InList) -> Typed:
    left = bind_expression(scope, node.left)
    items = tuple(_item(scope, one) for one in node.items)
    if node.operator in ("!has_any", "!has_all"):
        return _operator(scope, node, "not", (_operator(scope, node, node.operator[1:], (left, *items)),))
    return _operator(scope, node, node.operator, (left, *items))


def _item(scope: Scope, node: ast.Expression) -> Typed:
    """An item of a list: a value, or a table that stands for the values of its first column."""
    if not (isinstance(node, ast.Name) and scope.find(node.name) is not None) and scope.binder.is_tabular(
        node, scope.environment
    ):
        relation = scope.binder.table(node, scope.environment)
        if not relation.columns:
            raise scope.binder.placed(KqlError("A list needs a table with a column.", "SEM0010"), node)
        first = relation.columns[0]
        alone = Project((first,), relation, ((first.identifier, first.sql),))
        return Typed(subquery(alone), first.type, relation=True)
    return bind_expression(scope, node)


def _between(scope: Scope, node: ast.Between) -> Typed:
    sides = tuple(bind_expression(scope, one) for one in (node.value, node.low, node.high))
    return _operator(scope, node, node.operator, sides)


def _unary(scope: Scope, node: ast.Unary) -> Typed:
    return _operator(scope, node, f"unary{node.operator}", (bind_expression(scope, node.value),))


def _member(scope: Scope, node: ast.Member) -> Typed:
    side = scope.side(node)
    if side is not None:
        return side
    return _operator(scope, node, "member", (bind_expression(scope, node.value), literal(node.name, KustoType.STRING)))


def _index(scope: Scope, node: ast.Index) -> Typed:
    if isinstance(node.value, ast.Call) and isinstance(node.index, ast.Literal) and sorted_names(node.value)[1:]:
        # The arrays of a function of several are told apart by their place.
        columns = bind_named(scope, ast.Named(node.value))
        place = node.index.value
        if isinstance(place, int) and 0 <= place < len(columns):
            return columns[place][1]
    return _operator(scope, node, "index", (bind_expression(scope, node.value), bind_expression(scope, node.index)))


def _qualified(scope: Scope, node: ast.Qualified) -> Typed:
    owner = node.owner
    while isinstance(owner, ast.Qualified):
        owner = owner.owner
    if isinstance(owner, ast.Call):
        raise not_supported(owner.name, "another place of tables")
    called = node.member.name if isinstance(node.member, ast.Call) else "?"
    raise KqlError(f"A value has no function '{called}'.", "SEM0260")


# --------------------------------------------------------------------------------------------- let functions


def _call_let(scope: Scope, node: ast.Call, binding: FunctionOf) -> Typed:
    binder = scope.binder
    function = binding.function
    if function.body is None:
        raise KqlError(f"The function '{node.name}' has no value.", "SEM0010")
    with binder.entering(node.name):
        values = {name: _argument(scope, one) for name, one in binder.arguments(node, function, binding).items()}
        inner = Environment(binding.environment, dict(values))
        for statement in function.statements:
            if not isinstance(statement, ast.Let):
                raise not_supported(type(statement).__name__.lower(), "inside a function")
            inner = inner.bound(statement.name, _inner_let(scope, statement, inner))
        return bind_expression(scope.inside(inner), function.body)


def _argument(scope: Scope, argument: tuple[ast.Expression, KustoType | None]) -> ValueOf:
    node, kind = argument
    value = bind_expression(scope, node)
    if kind is not None and value.type is not kind:
        value = convert_argument(scope, value, kind)
    if not value.simple and not value.is_constant and len(value.sql) > _SHORT:
        value = scope.hoist(value)
    return ValueOf(value)


def convert_argument(scope: Scope, value: Typed, kind: KustoType) -> Typed:
    """The value as the type of the parameter that it is given to."""
    function = registry.scalar(f"to{kind.value}")
    if function is None:
        return value
    return function.build(BoundCall(function.name, (value,), (), scope.context("")))


def _inner_let(scope: Scope, statement: ast.Let, environment: Environment) -> ValueOf | FunctionOf | TableOf | Unbound:
    """A let of a scalar function's body, which may read the row of the call through the parameters."""
    binder = scope.binder
    if isinstance(statement.value, ast.Function):
        return FunctionOf(statement.value, environment)
    if binder.is_tabular(statement.value, environment):
        return Unbound(statement.value, environment, tabular=True)
    value = bind_expression(scope.inside(environment), statement.value)
    if not value.simple and not value.is_constant and len(value.sql) > _SHORT:
        value = scope.hoist(value)
    return ValueOf(value)


# --------------------------------------------------------------------------------------------- functions of the binder


def _toscalar(scope: Scope, node: ast.Call) -> Typed:
    if len(node.arguments) != 1:
        raise KqlError("toscalar() takes one table or value.", "SEM0219")
    inner = node.arguments[0].value
    if not scope.binder.is_tabular(inner, scope.environment):
        return bind_expression(scope, inner)
    return _read(scope, scalar_of(scope.binder, scope.binder.table(inner, scope.environment)))


def _materialized_value(scope: Scope, node: ast.Call) -> Typed:
    if len(node.arguments) == 1 and not scope.binder.is_tabular(node.arguments[0].value, scope.environment):
        return bind_expression(scope, node.arguments[0].value)
    raise KqlError("materialize() gives a table where a value is needed.", "SEM0010")


def _conversion_of_typed(scope: Scope, node: ast.Call) -> Typed:
    """`datetime(x)` with something else than a literal in the brackets."""
    raise KqlError(f"{node.name}() takes a literal; use to{node.name}() for a value.", "SEM0260")


_SPECIAL: dict[str, Callable[[Scope, ast.Call], Typed]] = {
    "toscalar": _toscalar,
    "materialize": _materialized_value,
    **dict.fromkeys(("int", "long", "real", "double", "decimal", "bool", "guid", "date"), _conversion_of_typed),
}

_HANDLERS: dict[type, Callable[[Scope, Any], Typed]] = {
    ast.Literal: _literal,
    ast.Name: _name,
    ast.Call: _call,
    ast.Binary: _binary,
    ast.Logical: _logical,
    ast.InList: _in_list,
    ast.Between: _between,
    ast.Unary: _unary,
    ast.Member: _member,
    ast.Index: _index,
    ast.Qualified: _qualified,
}


def shared_scalar(binder: Binder, value: Typed, relation: Relation) -> Typed:
    """A value computed over `relation` of one row: itself if it is short, else as a subquery of its own."""
    plain = not relation.columns and not _has_hidden(relation)
    if value.is_constant or (plain and len(value.sql) <= _SHORT and not value.relation):
        return value
    if value.relation and plain:
        return value
    column = Column("value", value.type, "value", value.nullable)
    made: Shared = binder.share(Project((column,), relation, (("value", value.sql),)), materialized=True)
    made.in_text = True
    return Typed(f"(SELECT value FROM {quote_name(made.name)})", value.type, nullable=value.nullable, relation=True)


def _has_hidden(relation: Relation) -> bool:
    return bool(relation.inputs())

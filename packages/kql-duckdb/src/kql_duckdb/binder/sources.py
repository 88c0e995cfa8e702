"""What a pipeline begins with: tables, lets, calls with a table as value, `datatable`, `range` and `print`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from kql_duckdb.algebra import (
    Column,
    Extend,
    Filter,
    Project,
    Reference,
    Relation,
    Source,
    identifiers,
)
from kql_duckdb.binder import expressions
from kql_duckdb.binder.environment import Environment, FunctionOf, TableOf, Unbound
from kql_duckdb.binder.messages import unresolved
from kql_duckdb.binder.scope import Scope
from kql_duckdb.catalog import Table
from kql_duckdb.errors import KqlError, not_supported
from kql_duckdb.expressions import Typed, literal, quote_name
from kql_duckdb.functions import registry
from kql_duckdb.functions.definitions import BoundCall
from kql_duckdb.syntax import ast
from kql_duckdb.types import NUMBERS, KustoType, as_held, common_type

if TYPE_CHECKING:
    from kql_duckdb.binder.binder import Binder


def source(
    binder: Binder, node: ast.Expression, environment: Environment, following: Sequence[ast.Operator] = ()
) -> Relation:
    """The relation of an expression that begins a pipeline."""
    if isinstance(node, ast.Name):
        return named(binder, node.name, environment)
    if isinstance(node, ast.Call):
        return _call(binder, node, environment)
    if isinstance(node, ast.DataTable):
        return _datatable(binder, node, environment)
    if isinstance(node, ast.Range):
        return _range(binder, node, environment)
    if isinstance(node, ast.Print):
        return printed(binder, node.columns, environment)
    if isinstance(node, ast.ExternalData):
        raise not_supported("externaldata", "it reads data from outside")
    if isinstance(node, ast.Qualified):
        raise not_supported(place_of(node), "another place of tables")
    if isinstance(node, ast.Pattern):
        return binder.leading(ast.Union((node,)), environment, following)
    if isinstance(node, ast.Operator):
        return binder.leading(node, environment, following)
    raise KqlError("A table is needed here, and this is a value.", "SEM0010")


def place_of(node: ast.Expression) -> str:
    """The word of the place in `cluster("x").database("y").T`."""
    while isinstance(node, ast.Qualified):
        node = node.owner
    return node.name if isinstance(node, (ast.Call, ast.Name)) else "cluster"


def shared(binder: Binder, relation: Relation, *, materialized: bool = False) -> Relation:
    """`relation` under a name of the statement, so that it may be read several times."""
    if isinstance(relation, (Source, Reference)) and not materialized:
        return relation
    made = binder.share(relation, materialized=materialized)
    return Reference(relation.columns, made, serialized=relation.serialized, order=relation.order, label=relation.label)


def named(binder: Binder, name: str, environment: Environment) -> Relation:
    """A let, or a table of the catalog."""
    binding = environment.find(name)
    if isinstance(binding, TableOf):
        return binding.relation
    if isinstance(binding, Unbound) and binding.tabular:
        with binder.entering(name):
            relation = shared(binder, binder.table(binding.expression, binding.environment))
        environment.rebind(name, TableOf(relation))
        return relation
    if isinstance(binding, FunctionOf) and binder.is_tabular_function(binding):
        return call_function(binder, ast.Call(name), binding, environment)
    if binding is not None:
        raise KqlError(f"'{name}' is a value where a table is needed.", "SEM0010")
    table = binder.catalog.table(name)
    if table is None:
        known = [*binder.catalog.names(), *environment.names()]
        raise unresolved("table or column", name, known)
    return scan(binder, table)


def scan(binder: Binder, table: Table) -> Relation:
    """A table of the catalog, inside the time range that the query was given."""
    binder.tables.add(table.name)
    columns = tuple(
        Column(name, kind, name, not (table.texts_are_never_null and kind is KustoType.STRING))
        for name, kind in table.columns.items()
    )
    relation: Relation = Source(columns, table.source, label=table.name)
    if table.held:
        items = tuple((name, as_held(quote_name(name), kind)) for name, kind in table.held.items())
        relation = Extend(columns, relation, items, label=table.name)
    predicate = binder.window(relation) if binder.window is not None else ""
    return Filter(columns, relation, predicate, label=table.name) if predicate else relation


def call_function(
    binder: Binder, node: ast.Call, binding: FunctionOf, environment: Environment, first: Relation | None = None
) -> Relation:
    """The table of a let function's body; `first` is what `invoke` puts before the arguments."""
    function = binding.function
    if function.body is None:
        raise KqlError(f"The function '{node.name}' has no value.", "SEM0010")
    with binder.entering(node.name):
        inner = binder.function_scope(node, binding, environment, first)
        return binder.table(function.body, inner)


def check_schema(relation: Relation, schema: ast.Schema, name: str) -> None:
    """Refuse a table that lacks a column which the parameter's declaration names."""
    for one in schema.columns:
        found = relation.column(one.name)
        if found is None:
            raise KqlError(f"The table given to parameter '{name}' has no column '{one.name}'.", "SEM0101")
        if common_type((found.type, KustoType(one.type))) is None:
            raise KqlError(
                f"Column '{one.name}' of the table given to parameter '{name}' is {found.type}, not {one.type}.",
                "SEM0101",
            )


def _call(binder: Binder, node: ast.Call, environment: Environment) -> Relation:
    binding = environment.find(node.name)
    if isinstance(binding, FunctionOf):
        if not binder.is_tabular_function(binding):
            raise KqlError(f"'{node.name}' gives a value where a table is needed.", "SEM0010")
        return call_function(binder, node, binding, environment)
    special = _SPECIAL.get(node.name.lower())
    if special is not None:
        return special(binder, node, environment)
    if node.name.lower() == "_getwatchlist":
        return binder.watchlist(node, environment)
    if node.arguments or not (binder.is_table(node.name) or environment.find(node.name)):
        raise KqlError(f"Unknown function: '{node.name}'.", "SEM0260")
    return named(binder, node.name, environment)


def _materialize(binder: Binder, node: ast.Call, environment: Environment) -> Relation:
    if len(node.arguments) != 1:
        raise KqlError("materialize() takes one table.", "SEM0219")
    return shared(binder, binder.table(node.arguments[0].value, environment), materialized=True)


def _table(binder: Binder, node: ast.Call, environment: Environment) -> Relation:
    if not node.arguments:
        raise KqlError("table() takes the name of a table.", "SEM0219")
    scope = binder.empty_scope(environment)
    name = expressions.bind_constant(scope, node.arguments[0].value, "The name in table()")
    return named(binder, str(name), environment)


_SPECIAL: dict[str, Callable[[Binder, ast.Call, Environment], Relation]] = {
    "materialize": _materialize,
    "table": _table,
}


# --------------------------------------------------------------------------------------------- rows in the text


def converted(scope: Scope, value: Typed, kind: KustoType) -> Typed:
    """The value as `kind`."""
    if value.type is kind:
        return value
    if value.is_constant and value.constant is None:
        return literal(None, kind)
    function = registry.scalar(f"to{kind.value}")
    if function is None:
        return Typed(f"CAST({value.sql} AS {kind.held})", kind)
    return function.build(BoundCall(function.name, (value,), (), scope.context("")))


def _datatable(binder: Binder, node: ast.DataTable, environment: Environment) -> Relation:
    width = len(node.columns)
    if width == 0:
        raise KqlError("datatable needs at least one column.", "SEM0001")
    if len(node.values) % width:
        raise KqlError(
            f"datatable has {width} column(s) and {len(node.values)} values, which fill no whole number of rows.",
            "SEM0001",
        )
    kinds = [KustoType(one.type) for one in node.columns]
    names = [one.name for one in node.columns]
    scope = binder.empty_scope(environment)
    cells = []
    for place, one in enumerate(node.values):
        value = expressions.bind_expression(scope, one)
        if not value.is_constant and scope.relation.inputs():
            raise binder.placed(KqlError("A cell of datatable must be a constant.", "SEM0040"), one)
        cells.append(converted(scope, value, kinds[place % width]))
    columns = tuple(
        Column(name, kind, identifier, nullable=kind is not KustoType.STRING)
        for name, kind, identifier in zip(names, kinds, identifiers(names), strict=True)
    )
    if not cells:
        nothing = tuple((column.identifier, literal(None, column.type).sql) for column in columns)
        return Filter(columns, Project(columns, Source(()), nothing), "FALSE")
    rows = (cells[start : start + width] for start in range(0, len(cells), width))
    listed = ", ".join(f"({', '.join(cell.sql for cell in row)})" for row in rows)
    return Source(columns, f"(VALUES {listed}) AS v({', '.join(column.sql for column in columns)})")


def printed(binder: Binder, named_columns: Iterable[ast.Named], environment: Environment) -> Relation:
    """`print`: one row."""
    scope = binder.empty_scope(environment)
    names: list[str] = []
    values: list[Typed] = []
    for place, one in enumerate(named_columns):
        for name, value in expressions.bind_named(scope, one):
            names.append(name or (one.expression.name if isinstance(one.expression, ast.Name) else f"print_{place}"))
            values.append(value)
    repeated = next((name for name in names if names.count(name) > 1), None)
    if repeated is not None:
        raise KqlError(f"'print' names two columns '{repeated}'.", "SEM0034")
    columns = tuple(
        Column(name, value.type, identifier, value.nullable)
        for name, value, identifier in zip(names, values, identifiers(names), strict=True)
    )
    items = tuple((column.identifier, value.sql) for column, value in zip(columns, values, strict=True))
    return Project(columns, scope.relation, items)


def _range(binder: Binder, node: ast.Range, environment: Environment) -> Relation:
    scope = binder.empty_scope(environment)
    first, last, step = (expressions.bind_expression(scope, one) for one in (node.first, node.last, node.step))
    if step.is_constant and not step.constant:
        raise binder.placed(KqlError("The step of range is 0.", "SEM0001"), node.step)
    if scope.relation.inputs():
        # A table function takes no column of another table; what one row holds is read by a subquery.
        first, last, step = (_read_once(binder, scope, one) for one in (first, last, step))
    kind, text = _series(first, last, step)
    column = Column(node.name, kind, "value")
    return Source((column,), text, serialized=True)


def _read_once(binder: Binder, scope: Scope, value: Typed) -> Typed:
    return value if value.is_constant else expressions.shared_scalar(binder, value, scope.relation)


def _series(first: Typed, last: Typed, step: Typed) -> tuple[KustoType, str]:
    """The type and the FROM of a range; reals are made from the start, so that errors do not add up."""
    kinds = {first.type, last.type, step.type}
    if first.type is KustoType.DATETIME and last.type is KustoType.DATETIME and step.type is KustoType.TIMESPAN:
        return KustoType.DATETIME, f"generate_series({first.sql}, {last.sql}, {step.sql}) AS v(value)"
    if kinds == {KustoType.TIMESPAN}:
        bounds = ", ".join(f"epoch_us({one.sql})" for one in (first, last, step))
        return KustoType.TIMESPAN, f"(SELECT to_microseconds(u) AS value FROM generate_series({bounds}) AS v(u)) AS v"
    if not kinds <= NUMBERS:
        raise KqlError(f"range cannot run from {first.type} to {last.type} by {step.type}.", "SEM0001")
    if kinds <= {KustoType.INT, KustoType.LONG}:
        bounds = ", ".join(f"CAST({one.sql} AS BIGINT)" for one in (first, last, step))
        return KustoType.LONG, f"generate_series({bounds}) AS v(value)"
    start, stop, by = (f"CAST({one.sql} AS DOUBLE)" for one in (first, last, step))
    value = f"({start} + i * {by})"
    count = f"CAST(floor(({stop} - {start}) / nullif({by}, 0)) AS BIGINT)"
    whole = {first.type, step.type} <= {KustoType.INT, KustoType.LONG}
    made = f"CAST({value} AS BIGINT)" if whole else value
    within = f"({stop} - {value}) * sign({by}) >= 0"
    rows = f"SELECT {made} AS value FROM generate_series(0, {count} + 1) AS s(i) WHERE {within}"
    return (KustoType.LONG if whole else KustoType.REAL), f"({rows}) AS v"


def literal_rows(names: Sequence[str], kinds: Sequence[KustoType], rows: Sequence[Sequence[object]]) -> Relation:
    """A relation of constants."""
    columns = tuple(
        Column(name, kind, identifier, nullable=kind is not KustoType.STRING)
        for name, kind, identifier in zip(names, kinds, identifiers(names), strict=True)
    )
    if not rows:
        nothing = tuple((column.identifier, literal(None, column.type).sql) for column in columns)
        return Filter(columns, Project(columns, Source(()), nothing), "FALSE")
    listed = ", ".join(
        f"({', '.join(literal(cell, kind).sql for cell, kind in zip(row, kinds, strict=True))})" for row in rows
    )
    return Source(columns, f"(VALUES {listed}) AS v({', '.join(column.sql for column in columns)})")

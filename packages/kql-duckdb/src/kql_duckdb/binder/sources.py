"""What a pipeline begins with: tables, lets, calls with a table as value, `datatable`, `range` and `print`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from kql_duckdb.algebra import Column, Relation, Source, made_columns, projected
from kql_duckdb.binder import expressions
from kql_duckdb.binder.scope import Environment, FunctionOf, Scope, Unbound, unresolved
from kql_duckdb.catalog import Table
from kql_duckdb.errors import KqlError
from kql_duckdb.expressions import Typed, literal, quote_name
from kql_duckdb.functions import registry
from kql_duckdb.syntax import ast
from kql_duckdb.types import INTEGERS, NUMBERS, KustoType, as_held, common_type


def named(scope: Scope, name: str) -> Relation:
    """The table that goes by a name: of a let, or of the catalog."""
    binder, environment = scope.binder, scope.environment
    binding = environment.get(name)
    if isinstance(binding, Relation):
        return binding
    if isinstance(binding, Unbound) and binding.tabular:
        if binding.table is None:
            with binder.entering(name):
                binding.table = binder.shared(scope.outside(binding.environment).table(binding.expression))
        return binding.table
    if isinstance(binding, FunctionOf) and scope.is_tabular_function(binding):
        return call_function(scope, ast.Call(name), binding)
    if binding is not None:
        raise KqlError(f"'{name}' is a value where a table is needed.", "SEM0010")
    table = binder.catalog.table(name)
    if table is None:
        raise unresolved("table or column", name, [*binder.catalog.names(), *environment])
    return scan(scope, table)


def scan(scope: Scope, table: Table) -> Relation:
    """A table of the catalog, inside the time range that the query was given."""
    binder = scope.binder
    binder.tables.add(table.name)
    columns = tuple(
        Column(name, kind, name, not (table.texts_are_never_null and kind is KustoType.STRING))
        for name, kind in table.columns.items()
    )
    relation: Relation = Source(columns, (table.source,), label=table.name)
    if table.held:
        items = tuple((name, as_held(quote_name(name), kind)) for name, kind in table.held.items())
        relation = relation.extended(items)
    moments = relation.column("TimeGenerated")
    if moments is None or moments.type is not KustoType.DATETIME:
        return relation
    bounds = zip((">=", "<"), binder.timespan, strict=True)
    tests = [f"{moments.sql} {operator} {moment.sql}" for operator, moment in bounds if moment is not None]
    return replace(relation.filtered(" AND ".join(tests)), label=table.name) if tests else relation


def called(scope: Scope, node: ast.Call) -> Relation:
    """The table of a call: of a let function, or of a table with brackets behind its name."""
    binding = scope.environment.get(node.name)
    if isinstance(binding, FunctionOf):
        if not scope.is_tabular_function(binding):
            raise KqlError(f"'{node.name}' gives a value where a table is needed.", "SEM0010")
        return call_function(scope, node, binding)
    if node.arguments or not (scope.binder.catalog.table(node.name) or binding):
        raise registry.unknown(node.name)
    return named(scope, node.name)


_FIRST = "$first"


def call_function(scope: Scope, node: ast.Call, binding: FunctionOf, first: Relation | None = None) -> Relation:
    """The table of a let function's body; `first` is what `invoke` puts before the arguments."""
    function = binding.function
    if function.body is None:
        raise KqlError(f"The function '{node.name}' has no value.", "SEM0010")
    with scope.binder.entering(node.name):
        if first is not None:
            node = ast.Call(node.name, (ast.Argument(ast.Name(_FIRST)), *node.arguments), at=node.at)
            scope = scope.outside(scope.environment | {_FIRST: first})
        inner = scope.outside(binding.environment | _arguments(scope, node, function))
        for statement in function.statements:
            inner = scope.binder.declared(statement, inner)
        return inner.table(function.body)


def _arguments(scope: Scope, node: ast.Call, function: ast.Function) -> Environment:
    """The arguments of a tabular function, bound where the call stands."""
    found: Environment = {}
    for parameter, value in expressions.matched(node, function):
        if parameter.schema is not None:
            relation = scope.table(value)
            for one in parameter.schema.columns:
                column = relation.column(one.name)
                if column is None:
                    message = f"The table given to parameter '{parameter.name}' has no column '{one.name}'."
                    raise KqlError(message, "SEM0101")
                if common_type((column.type, KustoType(one.type))) is None:
                    place = f"Column '{one.name}' of the table given to parameter '{parameter.name}'"
                    raise KqlError(f"{place} is {column.type}, not {one.type}.", "SEM0101")
            found[parameter.name] = scope.binder.shared(relation)
            continue
        bound = expressions.value_outside(scope, value)
        kind = KustoType(parameter.type) if parameter.type else bound.type
        if bound.type is not kind and common_type((bound.type, kind)) is not None:
            bound = scope.outside().built(f"to{kind}", bound)
        found[parameter.name] = bound
    return found


def materialized(scope: Scope, node: ast.Call) -> Relation:
    if len(node.arguments) != 1:
        raise KqlError("materialize() takes one table.", "SEM0219")
    return scope.binder.shared(scope.table(node.arguments[0].value), materialized=True)


def table_named(scope: Scope, node: ast.Call) -> Relation:
    if not node.arguments:
        raise KqlError("table() takes the name of a table.", "SEM0219")
    return named(scope, str(expressions.bind_constant(scope, node.arguments[0].value, "The name in table()")))


def datatable(scope: Scope, node: ast.Construct) -> Relation:
    width = len(node.columns)
    if width == 0:
        raise KqlError("datatable needs at least one column.")
    if len(node.values) % width:
        counts = f"{width} column(s) and {len(node.values)} values"
        raise KqlError(f"datatable has {counts}, which fill no whole number of rows.")
    kinds = [KustoType(one.type) for one in node.columns]
    names = [one.name for one in node.columns]
    cells = []
    for place, one in enumerate(node.values):
        value = expressions.bind_expression(scope, one)
        if not value.is_constant and scope.relation.inputs():
            raise scope.binder.fault(one, "A cell of datatable must be a constant.", "SEM0040")
        cells.append(scope.converted(value, kinds[place % width]))
    return rows_of(names, kinds, [cells[start : start + width] for start in range(0, len(cells), width)])


def rows_of(names: Sequence[str], kinds: Sequence[KustoType], rows: Sequence[Sequence[Typed]]) -> Relation:
    named = zip(names, kinds, strict=True)
    columns = made_columns(Typed("", kind, nullable=kind is not KustoType.STRING, name=name) for name, kind in named)
    if not rows:
        nothing = (literal(None, column.type).sql for column in columns)
        return Source(()).computed(columns, nothing).filtered("FALSE")
    listed = ", ".join(f"({', '.join(cell.sql for cell in row)})" for row in rows)
    return Source(columns, (f"(VALUES {listed}) AS v({', '.join(column.sql for column in columns)})",))


def printed(scope: Scope, columns: Iterable[ast.Named]) -> Relation:
    values = [
        value.named(value.name or f"print_{place}")
        for place, one in enumerate(columns)
        for value in expressions.bind_named(scope, one)
    ]
    names = [value.name for value in values]
    repeated = next((name for name in names if names.count(name) > 1), None)
    if repeated is not None:
        raise KqlError(f"'print' names two columns '{repeated}'.", "SEM0034")
    return projected(scope.relation, values)


def number_range(scope: Scope, node: ast.Construct) -> Relation:
    first, last, step = (expressions.bind_expression(scope, one) for one in (node.first, node.last, node.step))
    if step.is_constant and not step.constant:
        raise scope.binder.fault(node.step, "The step of range is 0.")
    if scope.relation.inputs():
        # A table function takes no column of another table; what one row holds is read by a subquery.
        first, last, step = (expressions.shared_scalar(scope, one) for one in (first, last, step))
    kind, text = _series(first, last, step)
    column = Column(node.name, kind, "value")
    return Source((column,), (text,), serialized=True)


def _series(first: Typed, last: Typed, step: Typed) -> tuple[KustoType, str]:
    """The type and the FROM of a range; reals are made from the start, so that errors do not add up."""
    kinds = {first.type, last.type, step.type}
    if first.type is KustoType.DATETIME and last.type is KustoType.DATETIME and step.type is KustoType.TIMESPAN:
        return KustoType.DATETIME, f"generate_series({first.sql}, {last.sql}, {step.sql}) AS v(value)"
    if kinds == {KustoType.TIMESPAN}:
        bounds = ", ".join(f"epoch_us({one.sql})" for one in (first, last, step))
        return KustoType.TIMESPAN, f"(SELECT to_microseconds(u) AS value FROM generate_series({bounds}) AS v(u)) AS v"
    if not kinds <= NUMBERS:
        raise KqlError(f"range cannot run from {first.type} to {last.type} by {step.type}.")
    if kinds <= INTEGERS:
        bounds = ", ".join(f"CAST({one.sql} AS BIGINT)" for one in (first, last, step))
        return KustoType.LONG, f"generate_series({bounds}) AS v(value)"
    start, stop, by = (f"CAST({one.sql} AS DOUBLE)" for one in (first, last, step))
    value = f"({start} + i * {by})"
    count = f"CAST(floor(({stop} - {start}) / nullif({by}, 0)) AS BIGINT)"
    whole = {first.type, step.type} <= INTEGERS
    made = f"CAST({value} AS BIGINT)" if whole else value
    within = f"({stop} - {value}) * sign({by}) >= 0"
    rows = f"SELECT {made} AS value FROM generate_series(0, {count} + 1) AS s(i) WHERE {within}"
    return (KustoType.LONG if whole else KustoType.REAL), f"({rows}) AS v"

"""`evaluate`: plugins whose columns come from the rows, and `_GetWatchlist`, which unpacks as they do.

Columns that only the data can name are asked for before the rest of the query is bound; a schema behind the call
(`: (*, name: type)`) tells them instead.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from kql_duckdb.algebra import Aggregate, Column, Extend, Filter, Project, Relation, identifiers, narrowed
from kql_duckdb.binder import lookups
from kql_duckdb.binder.columns import projected
from kql_duckdb.binder.environment import Environment
from kql_duckdb.binder.expressions import bind_constant, bind_expression
from kql_duckdb.binder.scope import Scope
from kql_duckdb.binder.sources import converted, scan, shared
from kql_duckdb.binder.summarize import aggregate_call
from kql_duckdb.errors import KqlError, not_supported
from kql_duckdb.expressions import Typed, column, literal, quote_text
from kql_duckdb.functions import refused, registry
from kql_duckdb.syntax import ast
from kql_duckdb.types import KustoType

if TYPE_CHECKING:
    from kql_duckdb.binder.binder import Binder

MAX_COLUMNS = 1_000
"""How many columns a plugin may make; Kusto refuses far fewer."""

Options = dict[str, ast.Expression]


def evaluate(binder: Binder, relation: Relation | None, node: ast.Evaluate, environment: Environment) -> Relation:
    """The relation of a plugin. Raises KqlError for one that is not run."""
    name = node.call.name
    plugin = _PLUGINS.get(name.lower())
    if plugin is None or relation is None:
        raise not_supported(f"evaluate {name}", refused.PLUGINS.get(name.lower(), ""))
    try:
        return plugin(binder, relation, node, environment)
    except KqlError as error:
        binder.placed(error, node.call)
        raise


def _arguments(node: ast.Evaluate, names: Sequence[str]) -> Options:
    """The arguments by the names of the plugin's parameters."""
    found: Options = {}
    for place, one in enumerate(node.call.arguments):
        name = one.name if one.name is not None else names[place] if place < len(names) else None
        if name is None or name not in names:
            raise KqlError(f"Plugin '{node.call.name}' takes no argument '{one.name or place + 1}'.", "SEM0219")
        found[name] = one.value
    return found


# --------------------------------------------------------------------------------------------- bag_unpack

_KINDS = {
    "VARCHAR": KustoType.STRING,
    "BIGINT": KustoType.LONG,
    "UBIGINT": KustoType.LONG,
    "DOUBLE": KustoType.REAL,
    "BOOLEAN": KustoType.BOOL,
}


def _bag_unpack(binder: Binder, relation: Relation, node: ast.Evaluate, environment: Environment) -> Relation:
    given = _arguments(node, ("column", "OutputColumnPrefix", "columnsConflict", "ignoredProperties"))
    bag = given.get("column")
    if not isinstance(bag, ast.Name):
        raise KqlError("bag_unpack takes a column that holds bags.", "SEM0001")
    empty = binder.empty_scope(environment)

    def option(name: str, default: Any) -> Any:
        return bind_constant(empty, given[name], f"'{name}'") if name in given else default

    return unpacked(
        binder,
        relation,
        bag.name,
        prefix=str(option("OutputColumnPrefix", "")),
        conflict=str(option("columnsConflict", "error")),
        ignored=frozenset(option("ignoredProperties", ())),
        schema=node.schema,
    )


def unpacked(
    binder: Binder,
    relation: Relation,
    name: str,
    *,
    prefix: str = "",
    conflict: str = "error",
    ignored: frozenset[str] = frozenset(),
    schema: ast.Schema | None = None,
) -> Relation:
    """`relation` with the members of a column of bags as columns in the place of the bags."""
    if conflict not in ("error", "keep_source", "replace_source"):
        raise KqlError(f"'{conflict}' is no way to settle a conflict of columns.", "SEM0001")
    bag = relation.column(name)
    if bag is None:
        raise KqlError(f"Failed to resolve column named '{name}'.", "SEM0100")
    if bag.type is not KustoType.DYNAMIC:
        raise KqlError(f"bag_unpack needs a dynamic column, and '{name}' is {bag.type}.", "SEM0001")
    kept = [one for one in relation.columns if one.name != name]
    if schema is not None:
        return _declared(binder, relation, bag, kept, prefix, schema)
    rows = shared(binder, relation)
    found = _members(binder, rows, bag, ignored)
    if len(found) > MAX_COLUMNS:
        raise not_supported("bag_unpack", f"it would make {len(found):,} columns")
    scope = Scope(binder, rows, Environment())
    taken = {one.name for one in kept}
    values: dict[str, Typed] = {}
    for key, kind in sorted(found.items()):
        made = f"{prefix}{key}"
        if made in taken:
            if conflict == "error":
                raise KqlError(f"bag_unpack would give the name '{made}' to two columns.", "SEM0034")
            if conflict == "keep_source":
                continue
        values[made] = _member(scope, bag, key, kind)
    kept = [one for one in kept if one.name not in values]
    names = [*(one.name for one in kept), *values]
    return projected(scope.relation, names, [*(one.typed() for one in kept), *values.values()])


def _members(binder: Binder, rows: Relation, bag: Column, ignored: frozenset[str]) -> dict[str, KustoType]:
    """The keys of all bags and the type of each, dynamic where its values are of several."""
    listed = (
        f"CASE WHEN json_type({bag.sql}) = 'OBJECT' THEN list_transform(json_keys({bag.sql}), "
        f"lambda k: [k, json_type({bag.sql}, '/' || replace(replace(k, '~', '~0'), '/', '~1'))]) ELSE [] END"
    )
    pair = Column("pair", KustoType.DYNAMIC, "pair")
    pairs = Project((pair,), rows, (("pair", f"unnest({listed})"),))
    columns = (Column("key", KustoType.STRING, "key"), Column("kind", KustoType.STRING, "kind"))
    distinct = Aggregate(columns, pairs, (("key", '"pair"[1]'), ("kind", '"pair"[2]')), ())
    kinds: dict[str, set[KustoType | None]] = {}
    for key, kind in binder.discover(distinct, "bag_unpack"):
        if key and key not in ignored:
            kinds.setdefault(key, set()).add(None if kind == "NULL" else _KINDS.get(kind, KustoType.DYNAMIC))
    found = {}
    for key, several in kinds.items():
        known = {kind for kind in several if kind is not None}
        found[key] = next(iter(known)) if len(known) == 1 else KustoType.DYNAMIC
    return found


def _member(scope: Scope, bag: Column, key: str, kind: KustoType) -> Typed:
    pointer = quote_text("/" + key.replace("~", "~0").replace("/", "~1"))
    value = column(f"json_extract({bag.sql}, {pointer})", KustoType.DYNAMIC)
    if kind is KustoType.DYNAMIC:
        return Typed(f"nullif({value.sql}, CAST('null' AS JSON))", kind)
    return converted(scope, value, kind)


def _declared(
    binder: Binder, relation: Relation, bag: Column, kept: Sequence[Column], prefix: str, schema: ast.Schema
) -> Relation:
    scope = Scope(binder, relation, Environment())
    names: list[str] = []
    values: list[Typed] = []
    by_name = {one.name: one for one in kept}
    if schema.open:
        names = [one.name for one in kept if one.name not in {declared.name for declared in schema.columns}]
        values = [by_name[name].typed() for name in names]
    for one in schema.columns:
        names.append(one.name)
        kind = KustoType(one.type)
        if one.name in by_name:
            values.append(converted(scope, by_name[one.name].typed(), kind))
        else:
            values.append(_member(scope, bag, one.name.removeprefix(prefix), kind))
    return projected(scope.relation, names, values)


# --------------------------------------------------------------------------------------------- pivot, narrow


def _pivot(binder: Binder, relation: Relation, node: ast.Evaluate, environment: Environment) -> Relation:
    """A column for each value of one column, with an aggregate of the rows that have it."""
    arguments = [one.value for one in node.call.arguments]
    if not arguments or not isinstance(arguments[0], ast.Name):
        raise KqlError("pivot takes a column first.", "SEM0219")
    aggregate = arguments[1] if len(arguments) > 1 else ast.Call("count")
    if not isinstance(aggregate, ast.Call) or registry.aggregate(aggregate.name) is None:
        raise KqlError("The second argument of pivot is an aggregate.", "SEM0001")
    rows = shared(binder, relation)
    scope = Scope(binder, rows, environment)
    key = bind_expression(scope, arguments[0])
    read = {name.value.name for name in aggregate.arguments if isinstance(name.value, ast.Name)}
    if len(arguments) > 2:
        names = [one.name for one in arguments[2:] if isinstance(one, ast.Name)]
        if len(names) < len(arguments) - 2:
            raise KqlError("pivot keeps columns that are named as they are.", "SEM0001")
        kept = [one for name in names if (one := rows.column(name)) is not None]
    else:
        kept = [one for one in rows.columns if one.name not in read and one.name != arguments[0].name]
    values = _pivot_values(binder, scope, key, kept, node.schema)
    text = converted(scope, key, KustoType.STRING)
    held = text if text.simple else scope.hoist(text)
    return _pivoted(binder, scope, kept, held, aggregate, values)


def _pivot_values(
    binder: Binder, scope: Scope, key: Typed, kept: Sequence[Column], schema: ast.Schema | None
) -> list[str]:
    if schema is not None:
        known = {one.name for one in kept}
        return [one.name for one in schema.columns if one.name not in known]
    text = converted(scope, key, KustoType.STRING)
    one = Column("value", KustoType.STRING, "value")
    distinct = Aggregate((one,), scope.relation, (("value", text.sql),), ())
    values = sorted(str(row[0] or "") for row in binder.discover(distinct, "pivot"))
    if "" in values:
        raise not_supported("pivot", "a value without text could name no column")
    if len(values) > MAX_COLUMNS:
        raise not_supported("pivot", f"it would make {len(values):,} columns")
    return values


def _pivoted(
    binder: Binder, scope: Scope, kept: Sequence[Column], key: Typed, aggregate: ast.Call, values: Sequence[str]
) -> Relation:
    """The aggregate for each combination of the kept columns and the key, then that of each value picked out."""
    function = registry.aggregate(aggregate.name)
    assert function is not None
    value = function.build(aggregate_call(scope, function, aggregate))
    names = [*(one.name for one in kept), *values]
    repeated = next((name for name in names if names.count(name) > 1), None)
    if repeated is not None:
        raise KqlError(f"pivot would give the name '{repeated}' to two columns.", "SEM0034")
    every = list(identifiers(names))
    keys = tuple((identifier, one.sql) for one, identifier in zip(kept, every, strict=False))
    columns = [
        Column(one.name, one.type, identifier, one.nullable) for one, identifier in zip(kept, every, strict=False)
    ]
    cells = Aggregate(
        tuple(columns), scope.relation, (*keys, ("$key", f"coalesce({key.sql}, '')")), (("$cell", value.sql),)
    )
    items = []
    absent = "0" if aggregate.name.lower() in _COUNTING else literal(None, value.type).sql
    for text, identifier in zip(values, every[len(kept) :], strict=True):
        test = f'"$key" = {literal(text, KustoType.STRING).sql}'
        items.append((identifier, f'coalesce(any_value("$cell") FILTER (WHERE {test}), {absent})'))
        columns.append(Column(text, value.type, identifier, value.nullable))
    grouped_by = tuple((one.identifier, one.sql) for one in columns[: len(kept)])
    return Aggregate(tuple(columns), cells, grouped_by, tuple(items))


_COUNTING = frozenset(("count", "countif", "dcount", "dcountif", "sum", "sumif", "count_distinct"))
"""Aggregates whose value over no row is 0."""


def _narrow(binder: Binder, relation: Relation, node: ast.Evaluate, environment: Environment) -> Relation:
    """A row for each cell: its row's number, the name of its column and its text."""
    scope = Scope(binder, relation, environment)
    number = scope.rows.row_number()
    pairs = ", ".join(
        f"struct_pack(c := {quote_text(one.name)}, v := {converted(scope, one.typed(), KustoType.STRING).sql})"
        for one in scope.relation.columns
    )
    rows = Extend((), scope.relation, (("$cell", f"unnest([{pairs}])"),))
    columns = (
        Column("Row", KustoType.LONG, "Row", nullable=False),
        Column("Column", KustoType.STRING, "Column", nullable=False),
        Column("Value", KustoType.STRING, "Value", nullable=False),
    )
    items = (("Row", f"{number} - 1"), ("Column", '"$cell".c'), ("Value", '"$cell".v'))
    return Project(columns, rows, items)


_PLUGINS: dict[str, Callable[[Binder, Relation, ast.Evaluate, Environment], Relation]] = {
    "bag_unpack": _bag_unpack,
    "pivot": _pivot,
    "narrow": _narrow,
    "ipv4_lookup": lookups.address_lookup,
    "ipv6_lookup": lookups.address_lookup,
    "activity_counts_metrics": lookups.activity_counts,
}


# --------------------------------------------------------------------------------------------- watchlists


def watchlist(binder: Binder, node: ast.Call, environment: Environment) -> Relation:
    """The items of one watchlist, as rows of the table `Watchlist` hold them."""
    if not node.arguments:
        raise KqlError("_GetWatchlist() takes the alias of a watchlist.", "SEM0219")
    alias = bind_constant(binder.empty_scope(environment), node.arguments[0].value, "The alias in _GetWatchlist()")
    table = binder.catalog.table("Watchlist")
    if table is None or not {"WatchlistAlias", "WatchlistItem"} <= set(table.columns):
        raise not_supported("_GetWatchlist", "there is no table Watchlist with a column WatchlistItem here")
    rows = scan(binder, table)
    test = f'"WatchlistAlias" = {literal(str(alias), KustoType.STRING).sql}'
    found = Filter(rows.columns, rows, test)
    kept = ("_DTItemId", "LastUpdatedTimeUTC", "SearchKey", "WatchlistItem")
    columns = [one for one in found.columns if one.name in kept]
    return unpacked(binder, narrowed(found, columns), "WatchlistItem", conflict="keep_source")

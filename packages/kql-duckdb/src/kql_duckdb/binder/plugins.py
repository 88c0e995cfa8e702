"""`evaluate`: its plugins, and `_GetWatchlist`, which unpacks as one of them does.

Columns that only the data can name are asked for before the rest of the query is bound; a schema behind the call
(`: (*, name: type)`) tells them instead. Source: the Kusto pages named like the plugins. A network is a range of
addresses, computed once for each row of its side, so that DuckDB joins by comparison and not by a call for each pair.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kql_duckdb.algebra import Column, Relation, Select, Source, key_of, made_columns, projected
from kql_duckdb.binder.expressions import bind_constant, bind_expression
from kql_duckdb.binder.scope import Scope
from kql_duckdb.binder.sources import scan
from kql_duckdb.binder.summarize import aggregate_call
from kql_duckdb.binder.tables import Keys, joined
from kql_duckdb.errors import KqlError, not_supported
from kql_duckdb.expressions import Typed, literal, quote_text
from kql_duckdb.functions import registry
from kql_duckdb.functions.conversion import to_string
from kql_duckdb.functions.definitions import fill
from kql_duckdb.syntax import ast
from kql_duckdb.types import BOOL, DYNAMIC, LONG, REAL, STRING, KustoType

MAX_COLUMNS = 1_000
"""How many columns a plugin may make; Kusto refuses far fewer."""


def evaluate(scope: Scope, node: ast.Construct) -> Relation:
    plugin = _PLUGINS.get(node.call.name.lower())
    if plugin is None:
        raise refusal(node)
    with scope.binder.at(node.call):
        return plugin(scope, node)


def refusal(node: ast.Construct) -> KqlError:
    return not_supported(f"evaluate {node.call.name}", registry.PLUGINS.get(node.call.name.lower(), ""))


_KINDS = {"VARCHAR": STRING, "BIGINT": LONG, "UBIGINT": LONG, "DOUBLE": REAL, "BOOLEAN": BOOL}
_OPTIONS = ("column", "OutputColumnPrefix", "columnsConflict", "ignoredProperties")


def _bag_unpack(scope: Scope, node: ast.Construct) -> Relation:
    given: dict[str, ast.Expression] = {}
    for place, one in enumerate(node.call.arguments):
        name = one.name if one.name is not None else _OPTIONS[place] if place < len(_OPTIONS) else ""
        if name not in _OPTIONS:
            raise KqlError(f"Plugin '{node.call.name}' takes no argument '{one.name or place + 1}'.", "SEM0219")
        given[name] = one.value
    bag = given.pop("column", None)
    if not isinstance(bag, ast.Name):
        raise KqlError("bag_unpack takes a column that holds bags.")
    options = {name: bind_constant(scope.outside(), value, f"'{name}'") for name, value in given.items()}
    return _unpacked(scope, bag.name, options, node.schema)


def _unpacked(scope: Scope, name: str, options: Mapping[str, Any], schema: ast.Schema | None = None) -> Relation:
    """The relation with the members of a column of bags as columns in the place of the bags."""
    prefix, conflict = str(options.get("OutputColumnPrefix", "")), str(options.get("columnsConflict", "error"))
    ignored = frozenset(options.get("ignoredProperties", ()))
    if conflict not in ("error", "keep_source", "replace_source"):
        raise KqlError(f"'{conflict}' is no way to settle a conflict of columns.")
    relation = scope.relation
    bag = relation.column(name)
    if bag is None:
        raise KqlError(f"Failed to resolve column named '{name}'.", "SEM0100")
    if bag.type is not DYNAMIC:
        raise KqlError(f"bag_unpack needs a dynamic column, and '{name}' is {bag.type}.")
    kept = [one for one in relation.columns if one.name != name]
    if schema is not None:
        return _declared(scope, bag, kept, prefix, schema)
    scope = scope.over(scope.binder.shared(relation))
    found = _members(scope, bag, ignored)
    if len(found) > MAX_COLUMNS:
        raise not_supported("bag_unpack", f"it would make {len(found):,} columns")
    taken = {one.name for one in kept}
    values: dict[str, Typed] = {}
    for key, kind in sorted(found.items()):
        made = f"{prefix}{key}"
        if made in taken:
            if conflict == "error":
                raise KqlError(f"bag_unpack would give the name '{made}' to two columns.", "SEM0034")
            if conflict == "keep_source":
                continue
        values[made] = _member(scope, bag, key, kind).named(made)
    kept = [one for one in kept if one.name not in values]
    return projected(scope.relation, [*(one.typed for one in kept), *values.values()])


def _members(scope: Scope, bag: Column, ignored: frozenset[str]) -> dict[str, KustoType]:
    """The keys of all bags and the type of each, dynamic where its values are of several."""
    listed = (
        f"CASE WHEN json_type({bag.sql}) = 'OBJECT' THEN list_transform(json_keys({bag.sql}), "
        f"lambda k: [k, json_type({bag.sql}, '/' || replace(replace(k, '~', '~0'), '/', '~1'))]) ELSE [] END"
    )
    pair = Column("pair", DYNAMIC, "pair")
    pairs = scope.relation.computed((pair,), (f"unnest({listed})",))
    columns = (Column("key", STRING, "key"), Column("kind", STRING, "kind"))
    distinct = pairs.aggregated(columns, (("key", '"pair"[1]'), ("kind", '"pair"[2]')), ())
    kinds: dict[str, set[KustoType]] = {}
    for key, kind in scope.binder.discover(distinct, "bag_unpack"):
        if key and key not in ignored:
            kinds.setdefault(key, set()).update(() if kind == "NULL" else (_KINDS.get(kind, DYNAMIC),))
    return {key: next(iter(several)) if len(several) == 1 else DYNAMIC for key, several in kinds.items()}


def _member(scope: Scope, bag: Column, key: str, kind: KustoType) -> Typed:
    pointer = quote_text("/" + key.replace("~", "~0").replace("/", "~1"))
    value = Typed(f"json_extract({bag.sql}, {pointer})", DYNAMIC, simple=True)
    if kind is DYNAMIC:
        return Typed(f"nullif({value.sql}, CAST('null' AS JSON))", kind)
    return scope.converted(value, kind)


def _declared(scope: Scope, bag: Column, kept: Sequence[Column], prefix: str, schema: ast.Schema) -> Relation:
    values: list[Typed] = []
    by_name = {one.name: one.typed for one in kept}
    if schema.open:
        declared = {one.name for one in schema.columns}
        values = [value for name, value in by_name.items() if name not in declared]
    for one in schema.columns:
        kind, known = KustoType(one.type), by_name.get(one.name)
        value = scope.converted(known, kind) if known else _member(scope, bag, one.name.removeprefix(prefix), kind)
        values.append(value.named(one.name))
    return projected(scope.relation, values)


def _pivot(scope: Scope, node: ast.Construct) -> Relation:
    """A column for each value of one column, with an aggregate of the rows that have it.

    First the aggregate for each combination of the kept columns and the key, then that of each value picked out.
    """
    arguments = [one.value for one in node.call.arguments]
    if not arguments or not isinstance(arguments[0], ast.Name):
        raise KqlError("pivot takes a column first.", "SEM0219")
    aggregate = arguments[1] if len(arguments) > 1 else ast.Call("count")
    function = registry.aggregate(aggregate.name) if isinstance(aggregate, ast.Call) else None
    if not isinstance(aggregate, ast.Call) or function is None:
        raise KqlError("The second argument of pivot is an aggregate.")
    scope = scope.over(scope.binder.shared(scope.relation))
    key = bind_expression(scope, arguments[0])
    columns = scope.relation.columns
    if len(arguments) > 2:
        if not all(isinstance(one, ast.Name) for one in arguments[2:]):
            raise KqlError("pivot keeps columns that are named as they are.")
        named = [scope.relation.column(one.name) for one in arguments[2:] if isinstance(one, ast.Name)]
        kept = [one for one in named if one is not None]
    else:
        read = {one.value.name for one in aggregate.arguments if isinstance(one.value, ast.Name)} | {arguments[0].name}
        kept = [one for one in columns if one.name not in read]
    names = _pivot_values(scope, key, kept, node.schema)
    key = scope.simple(scope.converted(key, STRING))
    value = function.build(aggregate_call(scope, function, aggregate))
    every = [*(one.name for one in kept), *names]
    repeated = next((name for name in every if every.count(name) > 1), None)
    if repeated is not None:
        raise KqlError(f"pivot would give the name '{repeated}' to two columns.", "SEM0034")
    columns = made_columns([*(one.typed for one in kept), *(value.named(name) for name in names)])
    keys, cells = columns[: len(kept)], columns[len(kept) :]
    by = (*((one.identifier, old.sql) for one, old in zip(keys, kept, strict=True)), ("$key", key_of(key).sql))
    counted = scope.relation.aggregated(keys, by, (("$cell", value.sql),))
    absent = "0" if aggregate.name.lower() in _COUNTING else literal(None, value.type).sql
    tests = ((one, f'"$key" = {literal(one.name, STRING).sql}') for one in cells)
    items = ((one, f'coalesce(any_value("$cell") FILTER (WHERE {test}), {absent})') for one, test in tests)
    picked = tuple((one.identifier, sql) for one, sql in items)
    return counted.aggregated(columns, tuple((one.identifier, one.sql) for one in keys), picked)


def _pivot_values(scope: Scope, key: Typed, kept: Sequence[Column], schema: ast.Schema | None) -> list[str]:
    if schema is not None:
        known = {one.name for one in kept}
        return [one.name for one in schema.columns if one.name not in known]
    text = scope.converted(key, STRING)
    distinct = scope.relation.aggregated((Column("value", STRING, "value"),), (("value", text.sql),), ())
    values = sorted(str(row[0] or "") for row in scope.binder.discover(distinct, "pivot"))
    if "" in values:
        raise not_supported("pivot", "a value without text could name no column")
    if len(values) > MAX_COLUMNS:
        raise not_supported("pivot", f"it would make {len(values):,} columns")
    return values


_COUNTING = frozenset(("count", "countif", "dcount", "dcountif", "sum", "sumif", "count_distinct"))
"""Aggregates whose value over no row is 0."""


def _narrow(scope: Scope, node: ast.Construct) -> Relation:
    """A row for each cell: its row's number, the name of its column and its text."""
    number = scope.rows.row_number()
    pairs = ", ".join(
        f"struct_pack(c := {quote_text(one.name)}, v := {scope.converted(one.typed, STRING).sql})"
        for one in scope.relation.columns
    )
    rows = Select((), scope.relation, (("$cell", f"unnest([{pairs}])"),))
    values = [Typed(f"{number} - 1", LONG, nullable=False, name="Row")]
    texts = (('"$cell".c', "Column"), ('"$cell".v', "Value"))
    return projected(rows, [*values, *(Typed(sql, STRING, nullable=False, name=name) for sql, name in texts)])


# For each family: the address, and the first and the last one of a network. What is no address is null.
_IPV4, _IPV6 = "kql_parse_ipv4_mask({0}, 32)", "nullif(kql_parse_ipv6_mask({0}, 128), '')"
_RANGES = {
    "ipv4_lookup": (LONG, (_IPV4, _IPV4, "kql_ipv4_last({0})")),
    "ipv6_lookup": (STRING, (_IPV6, _IPV6, "kql_ipv6_last({0})")),
}


def _address_lookup(scope: Scope, node: ast.Construct) -> Relation:
    """Rows of both sides where the address of the left one is in the network of the right one."""
    name = node.call.name.lower()
    options = [one for one in node.call.arguments if one.name == "return_unmatched"]
    given = [one.value for one in node.call.arguments if one.name is None]
    if given and isinstance(given[-1], ast.Literal) and given[-1].kind == "bool":
        options.append(ast.Argument(given.pop()))
    if len(given) < 3:
        raise KqlError(f"{name} takes a table, a column of addresses and a column of networks.", "SEM0219")
    unmatched = bool(options) and bind_constant(scope.outside(), options[0].value, "return_unmatched")
    other = scope.over(scope.table(given[0]))
    address, network = to_string(_column(scope, given[1])), to_string(_column(other, given[2]))
    extra: list[Keys] = [(_column(scope, one), _column(other, one)) for one in given[3:]]
    kind, templates = _RANGES[name]
    place = scope.hoist(fill(templates[0], kind, address, nullable=True))
    first, last = (other.hoist(fill(template, kind, network, nullable=True)) for template in templates[1:])
    inside = f"l.{place.sql} BETWEEN r.{first.sql} AND r.{last.sql}"
    how = "leftouter" if unmatched else "inner"
    return joined(scope.relation, other.relation, how, extra, keep_keys=False, condition=inside)


def _column(scope: Scope, node: ast.Expression) -> Typed:
    return scope.needed(node, "A plugin takes columns here.")


def _activity_counts(scope: Scope, node: ast.Construct) -> Relation:
    """For each window of time: rows, different ids, ids that are new in it, and all ids so far."""
    given = [one.value for one in node.call.arguments]
    if len(given) < 5:
        raise KqlError("activity_counts_metrics takes an id, a time, a start, an end and a step.", "SEM0219")
    identity, moment = _column(scope, given[0]), _column(scope, given[1])
    start, end, step = (bind_expression(scope, one) for one in given[2:5])
    dimensions = [_column(scope, one) for one in given[5:]]
    window = scope.hoist(scope.built("bin_at", moment, step, start))
    test = scope.built("operator:between", moment, start, end)
    rows = scope.relation.filtered(test.sql)
    counts = (Typed("", LONG, name=name) for name in ("count", "dcount", "new_dcount", "aggregated_dcount"))
    columns = made_columns([moment, *dimensions, *counts])
    keys = [key_of(one).sql for one in dimensions]
    time, *parts = (column.sql for column in columns[: len(keys) + 1])
    count, different, new, total = (column.sql for column in columns[len(keys) + 1 :])
    grouped = "".join(f", {key} AS {part}" for key, part in zip(keys, parts, strict=True))
    part = "".join(f"{one}, " for one in parts)
    window_of = f"PARTITION BY {', '.join(parts)} " if parts else ""
    head = (
        f"SELECT *, CAST(sum({new}) OVER ({window_of}ORDER BY {time}) AS BIGINT) AS {total} FROM ("
        f"SELECT {time}, {part}count(*) AS {count}, count(DISTINCT id) AS {different}, "
        f"count(DISTINCT id) FILTER (WHERE since = {time}) AS {new} FROM ("
        f"SELECT *, min({time}) OVER (PARTITION BY {part}id) AS since FROM ("
        f"SELECT {window.sql} AS {time}{grouped}, {identity.sql} AS id FROM "
    )
    return Source(columns, (head, rows, f")) GROUP BY {part}{time}) ORDER BY {time}"), whole=True)


_PLUGINS: dict[str, Callable[[Scope, ast.Construct], Relation]] = {
    "bag_unpack": _bag_unpack, "pivot": _pivot, "narrow": _narrow, "ipv4_lookup": _address_lookup,
    "ipv6_lookup": _address_lookup, "activity_counts_metrics": _activity_counts,
}  # fmt: skip


def watchlist(scope: Scope, node: ast.Call) -> Relation:
    """The items of one watchlist, as rows of the table `Watchlist` hold them."""
    if not node.arguments:
        raise KqlError("_GetWatchlist() takes the alias of a watchlist.", "SEM0219")
    alias = bind_constant(scope, node.arguments[0].value, "The alias in _GetWatchlist()")
    table = scope.binder.catalog.table("Watchlist")
    if table is None or not {"WatchlistAlias", "WatchlistItem"} <= set(table.columns):
        raise not_supported("_GetWatchlist", "there is no table Watchlist with a column WatchlistItem here")
    found = scan(scope, table).filtered(f'"WatchlistAlias" = {literal(str(alias), STRING).sql}')
    kept = ("_DTItemId", "LastUpdatedTimeUTC", "SearchKey", "WatchlistItem")
    columns = [one for name in kept if (one := found.column(name)) is not None]
    return _unpacked(scope.over(found.narrowed(columns)), "WatchlistItem", {"columnsConflict": "keep_source"})

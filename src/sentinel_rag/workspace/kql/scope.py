"""Which tables and columns a lowered query reads, and the query again with what may be read.

Works on duckdb-kql's intermediate form, between its parser and its SQL. Here the allow-list is applied, the API's time
range is put in front of every read of a table, and nodes of `dialect` are resolved. No SQL is written here.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

from duckdb_kql import ir  # noqa: TID253 - this module is about that library's query form
from duckdb_kql.errors import KqlError as LibraryError  # noqa: TID253
from duckdb_kql.schema import output_columns  # noqa: TID253
from duckdb_kql.translate.naming import expression_name  # noqa: TID253

from sentinel_rag.workspace.kql.dialect import ColumnChoice
from sentinel_rag.workspace.kql.errors import not_supported, unresolved
from sentinel_rag.workspace.store import TIME_COLUMN

Schema = Mapping[str, Mapping[str, str]]
"""Table -> column -> KQL type."""

WINDOW_START = ir.Parameter("window start", "datetime", "window_start")
WINDOW_END = ir.Parameter("window end", "datetime", "window_end")


@dataclasses.dataclass(frozen=True)
class Window:
    """Which sides of the API's time range are closed; the moments are bound when the query runs."""

    start: bool = False
    end: bool = False


class Scope:
    """One pass over one query. `tables` are the tables that it reads, `text_columns` those that are surely text."""

    def __init__(self, schema: Schema, window: Window) -> None:
        self._schema = schema
        self._columns = {table: list(columns) for table, columns in schema.items()}
        self._window = window
        self.tables: set[str] = set()

    def restrict(self, query: ir.Query) -> ir.Query:
        """`query` over allowed tables only, each read inside the window. Raises KqlError for any other source."""
        restricted: ir.Query = self._query(query, {})
        return restricted

    def text_columns(self, query: ir.Query) -> frozenset[str]:
        """Columns that are no dynamic in every table read, and that nothing in the query makes anew."""
        nodes = list(_nodes(query))
        if any(isinstance(node, ir.GraphSource) for node in nodes):
            return frozenset()
        made = set().union(*(_names_made(node) for node in nodes)) if nodes else set()
        joins = any(isinstance(node, (ir.Join, ir.Lookup)) for node in nodes)
        types: dict[str, set[str]] = {}
        for table in self.tables:
            for column, type_ in self._schema[table].items():
                types.setdefault(column, set()).add(type_)
        return frozenset(
            column
            for column, kinds in types.items()
            if "dynamic" not in kinds and column not in made and not (joins and column[-1:].isdigit())
        )

    def check_spelling(self, query: ir.Query) -> None:
        """Refuse a column whose name is right but for its case: DuckDB would fold it, KQL does not."""
        nodes = list(_nodes(query))
        known = {column for table in self.tables for column in self._schema[table]}
        for node in nodes:
            known |= _names_made(node)
        lowered = {name.lower() for name in known}
        for node in nodes:
            if isinstance(node, ir.ColumnRef) and node.name not in known and node.name.lower() in lowered:
                raise unresolved("column or scalar", node.name, known)

    def _query(self, query: ir.Query, bound: dict[str, ir.Query]) -> ir.Query:
        bound = dict(bound)
        lets: list[tuple[str, Any]] = []
        for name, value in query.lets:
            value = self._rewritten(value, bound)
            lets.append((name, value))
            if isinstance(value, ir.Query):
                bound[name] = value
        query = self._without_missing_first_branch(query, bound)
        source, front = self._source(query.source, bound)
        operators: list[ir.Operator] = list(front)
        for operator in query.operators:
            if isinstance(operator, ColumnChoice):
                operators.append(self._choose(operator, ir.Query(source, list(operators), list(lets)), bound))
            else:
                operators.append(self._rewritten(operator, bound))
        return ir.Query(source, operators, lets, list(query.parameters))

    def _source(self, source: ir.Source, bound: dict[str, ir.Query]) -> tuple[ir.Source, list[ir.Operator]]:
        if isinstance(source, ir.TableRef):
            if source.database is not None or source.cluster is not None:
                raise not_supported(source.qualified, hint="a table of another database or cluster")
            if source.name in bound:
                return source, []
            if source.name not in self._schema:
                raise unresolved("table or column", source.name, self._schema)
            self.tables.add(source.name)
            return source, self._time_filter(source.name)
        if isinstance(source, ir.WildcardTableRef):
            raise not_supported(f"union {source.pattern}", hint="name the tables")
        if isinstance(source, ir.CommandSource):
            raise not_supported(source.command, hint="control commands")
        return self._rewritten(source, bound), []

    def _time_filter(self, table: str) -> list[ir.Operator]:
        if TIME_COLUMN not in self._schema[table]:
            return []
        column = ir.ColumnRef(TIME_COLUMN)
        tests: list[ir.Operator] = []
        if self._window.start:
            tests.append(ir.Where(ir.BinaryOp(">=", column, WINDOW_START)))
        if self._window.end:
            tests.append(ir.Where(ir.BinaryOp("<", column, WINDOW_END)))
        return tests

    def _rewritten(self, node: Any, bound: dict[str, ir.Query]) -> Any:
        if isinstance(node, ir.Query):
            return self._query(node, bound)
        if isinstance(node, ir.Union) and node.isfuzzy:
            known = tuple(branch for branch in node.branches if self._exists(branch, bound))
            node = dataclasses.replace(node, branches=known)
        if isinstance(node, ir.FunctionCall) and node.name.lower() in ("column_ifexists", "columnifexists"):
            return self._column_if_exists(node, bound)
        if isinstance(node, (list, tuple)):
            items = [self._rewritten(item, bound) for item in node]
            return tuple(items) if isinstance(node, tuple) else items
        if dataclasses.is_dataclass(node) and not isinstance(node, type):
            changes = {}
            for field in dataclasses.fields(node):
                value = getattr(node, field.name)
                changed = self._rewritten(value, bound)
                if changed is not value and changed != value:
                    changes[field.name] = changed
            return dataclasses.replace(node, **changes) if changes else node
        return node

    def _without_missing_first_branch(self, query: ir.Query, bound: dict[str, ir.Query]) -> ir.Query:
        """The first table of a leading `union isfuzzy=true` is the source; if it does not exist the next one is."""
        first = query.operators[0] if query.operators else None
        if not isinstance(first, ir.Union) or not first.isfuzzy or self._exists(ir.Query(query.source), bound):
            return query
        known = [branch for branch in first.branches if self._exists(branch, bound)]
        if not known:
            return query
        union = dataclasses.replace(first, branches=tuple(known[1:]))
        operators = [*known[0].operators, union, *query.operators[1:]]
        return ir.Query(known[0].source, operators, query.lets, query.parameters)

    def _exists(self, branch: ir.Query, bound: dict[str, ir.Query]) -> bool:
        source = branch.source
        return not isinstance(source, ir.TableRef) or source.name in bound or source.name in self._schema

    def _column_if_exists(self, call: ir.FunctionCall, bound: dict[str, ir.Query]) -> ir.Expr:
        """As a name that a column of the input may shadow: the library's rule for `let` is the same rule."""
        if len(call.args) != 2 or not isinstance(call.args[0], ir.Literal) or call.args[0].kind != "string":
            raise not_supported(call.name, hint="the column must be a string literal")
        return ir.LetRef(str(call.args[0].value), self._rewritten(call.args[1], bound))

    def _search(self, term: str, source: ir.Source) -> ir.Operator:
        """A row is found by its texts: string and dynamic columns that have the term."""
        if not isinstance(source, ir.TableRef) or source.name not in self._schema:
            raise not_supported("search", hint="it searches tables only")
        literal = ir.Literal(term, "string")
        found: ir.Expr = ir.Literal(False, "bool")
        for column, type_ in self._schema[source.name].items():
            if type_ in ("string", "dynamic"):
                text: ir.Expr = ir.ColumnRef(column)
                if type_ == "dynamic":
                    text = ir.FunctionCall("tostring", (text,))
                found = ir.BinaryOp("or", found, ir.BinaryOp("has", text, literal))
        return ir.Where(found)

    def _choose(self, choice: ColumnChoice, before: ir.Query, bound: dict[str, ir.Query]) -> ir.Operator:
        if choice.kind == "search":
            return self._search(choice.choices[0][0], before.source)
        schema = dict(self._columns)
        for name, query in bound.items():
            try:
                schema[name] = output_columns(query, schema)
            except LibraryError:
                schema.pop(name, None)
        try:
            columns = output_columns(before, schema)
        except LibraryError as error:
            raise not_supported(choice.kind, hint=f"its input columns are not known ({error})") from error
        if choice.kind == "distinct *":
            return ir.Distinct(tuple(ir.NamedExpr(ir.ColumnRef(column)) for column in columns))
        chosen = chosen_columns(choice, columns)
        return ir.Project(tuple(ir.NamedExpr(ir.ColumnRef(column)) for column in chosen))


def chosen_columns(choice: ColumnChoice, columns: list[str]) -> list[str]:
    """The columns that `project-reorder` or `project-keep` leaves, in order. Raises KqlError for an unknown name."""
    chosen: list[str] = []
    for pattern, order in choice.choices:
        matches = [column for column in columns if matches_wildcard(pattern, column) and column not in chosen]
        if not matches and "*" not in pattern and pattern not in columns:
            raise unresolved("column or scalar", pattern, columns)
        if order:
            matches.sort(reverse=order == "desc")
        chosen.extend(matches)
    if choice.kind == "project-keep":
        return [column for column in columns if column in chosen]
    return chosen + [column for column in columns if column not in chosen]


def matches_wildcard(pattern: str, name: str) -> bool:
    """`a*b` matches what starts with a and ends with b; without a star only the same name matches."""
    parts = pattern.split("*")
    if len(parts) == 1:
        return pattern == name
    if not name.startswith(parts[0]) or not name.endswith(parts[-1]):
        return False
    rest = name[len(parts[0]) : len(name) - len(parts[-1])] if len(name) >= len(parts[0]) + len(parts[-1]) else None
    if rest is None:
        return False
    for part in parts[1:-1]:
        found = rest.find(part)
        if found < 0:
            return False
        rest = rest[found + len(part) :]
    return True


def _nodes(node: Any) -> Iterator[Any]:
    """Every node of the query, itself included. A shared node is visited once."""
    seen: set[int] = set()
    stack = [node]
    while stack:
        current = stack.pop()
        if isinstance(current, (list, tuple)):
            stack.extend(current)
        elif dataclasses.is_dataclass(current) and not isinstance(current, type) and id(current) not in seen:
            seen.add(id(current))
            yield current
            stack.extend(getattr(current, field.name) for field in dataclasses.fields(current))


def _names_made(node: Any) -> set[str]:
    """Column names that this node may give to something other than a table's own column."""
    if isinstance(node, ir.NamedExpr):
        if node.name is not None:
            # `arg_max(a, *)` and `x = x` keep their column, so a plain reference under its own name is no new column.
            return set() if isinstance(node.expr, ir.ColumnRef) and node.expr.name == node.name else {node.name}
        if isinstance(node.expr, ir.ColumnRef):
            return set()
        try:
            name = expression_name(node.expr)
        except LibraryError:
            return set()
        return {name} if name else set()
    if isinstance(node, ir.MvExpandTarget):
        return {node.column} | ({node.name} if node.name else set())
    if isinstance(node, ir.ParseSegment):
        return {node.name} if node.name else set()
    if isinstance(node, ir.DataTable):
        return {name for name, _ in node.columns}
    if isinstance(node, ir.ProjectRename):
        return {new for _, new in node.renames}
    if isinstance(node, ir.RangeSource):
        return {node.name}
    if isinstance(node, ir.MvExpand):
        return {node.item_index} if node.item_index else set()
    if isinstance(node, ir.Union):
        return {node.with_source} if node.with_source else set()
    if isinstance(node, ir.Count):
        return {node.name}
    return set()

"""Which tables and columns a lowered query reads, and the query again with what may be read.

Works on duckdb-kql's intermediate form, between its parser and its SQL. Here the allow-list is applied, the API's time
range is put in front of every read of a table, and nodes of `dialect` are resolved. No SQL is written here.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from duckdb_kql import ir  # noqa: TID253 - this module is about that library's query form
from duckdb_kql.schema import resolve_let_refs  # noqa: TID253

from sentinel_rag.workspace.kql.column_choices import matches_wildcard
from sentinel_rag.workspace.kql.column_types import operator_frame, source_frame
from sentinel_rag.workspace.kql.empty_texts import MAKING_NULLS, filled_after
from sentinel_rag.workspace.kql.errors import not_supported, unresolved
from sentinel_rag.workspace.kql.expressions import Expressions
from sentinel_rag.workspace.kql.extension import AddedSource, Frame, Place, PlacedOperator
from sentinel_rag.workspace.kql.needed_columns import needed_columns
from sentinel_rag.workspace.kql.spelling import Spelling, names_made, nodes
from sentinel_rag.workspace.kql.tabular_names import AsName
from sentinel_rag.workspace.kql.unions import Branch, UnionSource, united
from sentinel_rag.workspace.kql.window_functions import serialized_after
from sentinel_rag.workspace.store import TIME_COLUMN

Bound = dict[str, Frame | None]
"""The tabular bindings in scope: name -> columns, None if they cannot be known."""

Schema = Mapping[str, Mapping[str, str]]
"""Table -> column -> KQL type."""

_WIDE_UNION = 8
"""Inputs of a union beyond which columns that nobody reads are left out of it."""

WINDOW_START = ir.Parameter("window start", "datetime", "window_start")
WINDOW_END = ir.Parameter("window end", "datetime", "window_end")


@dataclasses.dataclass(frozen=True)
class Window:
    """Which sides of the API's time range are closed; the moments are bound when the query runs."""

    start: bool = False
    end: bool = False


Discovered = tuple[tuple[tuple[str, ...], ...], ...]
"""What was found out about the data before: the rows of each question that the query's operators ask, in order."""


@dataclasses.dataclass(frozen=True)
class Standing:
    """What is before an operator: its label for `withsource`, the query so far, whether the order of rows counts."""

    label: str
    before: ir.Query
    serialized: bool


class UndiscoveredError(Exception):
    """An operator needs the rows of `question` before the query can be translated."""

    def __init__(self, question: ir.Query) -> None:
        super().__init__("a question about the data")
        self.question = question


class Scope:
    """One pass over one query. `tables` are the tables that it reads."""

    def __init__(self, schema: Schema, window: Window, spelling: Spelling, discovered: Discovered = ()) -> None:
        self._schema = schema
        self._window = window
        self._spelling = spelling
        self._discovered = discovered
        self._asked = 0
        self._outer_lets: list[list[tuple[str, Any]]] = []
        self._aliases: dict[str, str] = {}
        self._blind = False
        self.tables: set[str] = set()

    def restrict(self, query: ir.Query) -> ir.Query:
        """`query` over allowed tables only, each read inside the window. Raises KqlError for any other source."""
        restricted, _ = self._query(query, {})
        return restricted

    def check_spelling(self, query: ir.Query) -> None:
        """Refuse a column whose name is right but for its case: DuckDB would fold it, KQL does not.

        Where the columns of each place are known this is decided there; it is left for the rest, such as graphs.
        """
        if not self._blind:
            return
        found = list(nodes(query))
        known = {column for table in self.tables for column in self._schema[table]}
        for node in found:
            known |= names_made(node)
        lowered = {name.lower() for name in known}
        for node in found:
            if isinstance(node, ir.ColumnRef) and node.name not in known and node.name.lower() in lowered:
                raise unresolved("column or scalar", node.name, known)

    def _query(self, query: ir.Query, bound: Bound) -> tuple[ir.Query, Frame | None]:
        """The restricted query and the columns after it, None if they cannot be known."""
        bound = dict(bound)
        lets: list[tuple[str, Any]] = []
        self._outer_lets.append(lets)
        try:
            return self._restricted(query, bound, lets)
        finally:
            self._outer_lets.pop()

    def _restricted(self, query: ir.Query, bound: Bound, lets: list[tuple[str, Any]]) -> tuple[ir.Query, Frame | None]:
        # What `as` names stands in the pipeline itself, which sees every `let` before it.
        for name, value in sorted(query.lets, key=lambda binding: isinstance(binding[0], AsName)):
            if isinstance(value, ir.Query):
                self._note_alias(name, value, bound)
                value, bound[name] = self._query(value, bound)
            else:
                value = self._expressions({}, bound).rewritten(value)
            lets.append((name, value))
        label = self._label(ir.Query(query.source), bound, 0)
        if isinstance(query.source, UnionSource):
            source, operators, frame = self._leading_union(query.source, lets, bound, query.operators)
        else:
            source, operators = self._source(query.source, bound)
            frame = self._source_frame(source, bound)
            for operator in operators:
                frame = self._after(operator, frame, bound)
        serialized = isinstance(query.source, ir.RangeSource)
        for index, operator in enumerate(query.operators):
            if isinstance(operator, ir.Union):
                serialized = False
                before = ir.Query(source, operators, lets)
                following = query.operators[index + 1 :]
                operators, frame = self._union(operator, before, frame, label, bound, following)
                label = "union_arg0"
                continue
            before = ir.Query(source, operators, lets)
            for resolved in self._resolved(operator, frame, bound, Standing(label, before, serialized)):
                operators = [*operators, resolved]
                frame = self._after(resolved, frame, bound)
            serialized = serialized_after(operator, serialized)
            if not getattr(operator, "keeps_label", False):
                label = "union_arg0"
        self._blind = self._blind or frame is None
        return ir.Query(source, operators, lets, list(query.parameters)), frame

    def _note_alias(self, name: str, value: ir.Query, bound: Bound) -> None:
        self._aliases.pop(name, None)
        if isinstance(value.source, ir.TableRef) and not value.operators and not value.lets:
            target = value.source.name
            if target in self._aliases or target not in bound:
                self._aliases[name] = self._aliases.get(target, target)

    def _resolved(
        self, operator: ir.Operator, frame: Frame | None, bound: Bound, standing: Standing
    ) -> list[ir.Operator]:
        if isinstance(operator, PlacedOperator):
            if frame is None:
                raise not_supported(getattr(operator, "kind", "an operator"), hint="its input columns are not known")
            table = "" if standing.label.startswith("union_arg") else standing.label

            def discover(steps: list[ir.Operator]) -> list[tuple[str, ...]]:
                return self._discover(standing.before, steps, frame, bound)

            place = Place(frame, self._tables(bound), table, discover, standing.serialized)
            return self._steps(operator.resolve(place), frame, bound, standing)[0]
        if frame is not None:
            operator = resolve_let_refs(operator, list(frame))
        rewritten = self._expressions(frame, bound).rewritten(operator)
        if frame is None or not isinstance(rewritten, MAKING_NULLS):
            return [rewritten]
        return [rewritten, *filled_after(rewritten, frame, self._after(rewritten, frame, bound))]

    def _discover(
        self, before: ir.Query, steps: list[ir.Operator], frame: Frame | None, bound: Bound
    ) -> list[tuple[str, ...]]:
        """The rows of `before` with `steps` after it. Raises UndiscoveredError if they were not asked for yet."""
        position, self._asked = self._asked, self._asked + 1
        if position < len(self._discovered):
            return list(self._discovered[position])
        if isinstance(before.source, AddedSource):
            raise not_supported("a plugin", hint="inside mv-apply or partition")
        asked, _ = self._steps(steps, frame, bound, Standing("union_arg0", before, False))
        operators = [*before.operators, *asked]
        lets = [binding for bindings in self._outer_lets for binding in bindings]
        raise UndiscoveredError(ir.Query(before.source, operators, lets))

    def _steps(
        self, steps: list[ir.Operator], frame: Frame | None, bound: Bound, standing: Standing
    ) -> tuple[list[ir.Operator], Frame | None]:
        """What an operator resolved to, each step at its own place, and the columns after the last."""
        done: list[ir.Operator] = []
        for step in steps:
            for resolved in self._resolved(step, frame, bound, standing):
                done.append(resolved)
                frame = self._after(resolved, frame, bound)
        return done, frame

    def _expressions(self, frame: Frame | None, bound: Bound) -> Expressions:
        return Expressions(frame, lambda: self._tables(bound), lambda query: self._query(query, bound)[0])

    def _after(self, operator: ir.Operator, frame: Frame | None, bound: Bound) -> Frame | None:
        return None if frame is None else operator_frame(operator, frame, self._tables(bound))

    def _tables(self, bound: Bound) -> dict[str, Frame]:
        """Tables and tabular bindings whose columns are known; a binding hides a table of its name."""
        known: dict[str, Frame] = dict(self._schema)  # type: ignore[arg-type]  # a table's columns are only read
        for name, frame in bound.items():
            known.pop(name, None)
            if frame is not None:
                known[name] = frame
        return known

    def _source_frame(self, source: ir.Source, bound: Bound) -> Frame | None:
        return source_frame(source, self._tables(bound))

    def _source(self, source: ir.Source, bound: Bound) -> tuple[ir.Source, list[ir.Operator]]:
        if isinstance(source, ir.TableRef):
            if source.database is not None or source.cluster is not None:
                raise not_supported(source.qualified, hint="a table of another database or cluster")
            if source.name in bound:
                return source, []
            if source.name not in self._schema:
                raise unresolved("table or column", source.name, [*self._schema, *bound])
            self.tables.add(source.name)
            return source, [*self._time_filter(source.name), *self._respelling(source.name)]
        if isinstance(source, ir.WildcardTableRef):
            raise not_supported(f"union {source.pattern}", hint="no table has such a name")
        if isinstance(source, ir.CommandSource):
            raise not_supported(source.command, hint="control commands")
        return self._expressions({}, bound).rewritten(source), []

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

    def _leading_union(
        self, union: UnionSource, lets: list[tuple[str, Any]], bound: Bound, following: list[ir.Operator]
    ) -> tuple[ir.Source, list[ir.Operator], Frame | None]:
        """The first input is the source, the others are united to it."""
        inputs = [one for branch in union.branches for one in self._expanded(branch)]
        existing = [one for one in inputs if not union.isfuzzy or self._exists(one, bound)]
        first, *others = existing or inputs
        query, frame = self._query(first, bound)
        before = ir.Query(query.source, list(query.operators), [*lets, *query.lets])
        plain = ir.Union(tuple(others), union.kind, union.with_source)
        operators, frame = self._union(plain, before, frame, self._label(first, bound, 0), bound, following)
        return query.source, operators, frame

    def _respelling(self, table: str) -> list[ir.Operator]:
        renames = tuple((name, self._spelling[name]) for name in self._schema[table] if name in self._spelling)
        return [ir.ProjectRename(renames)] if renames else []

    def _expanded(self, branch: ir.Query) -> list[ir.Query]:
        """A pattern of tables (`union Device*`) as a query for each; another branch as it is."""
        source = branch.source
        if not isinstance(source, ir.WildcardTableRef) or source.database is not None:
            return [branch]
        names = [name for name in self._schema if matches_wildcard(source.pattern, name)]
        if not names:
            raise not_supported(f"union {source.pattern}", hint="no table has such a name")
        return [ir.Query(ir.TableRef(name), list(branch.operators)) for name in names]

    def _exists(self, branch: ir.Query, bound: Bound) -> bool:
        source = branch.source
        return not isinstance(source, ir.TableRef) or source.name in bound or source.name in self._schema

    def _label(self, branch: ir.Query, bound: Bound, position: int) -> str:
        """What `withsource` calls an input: the table, also through a name bound to it alone, else its number."""
        labelled = all(getattr(operator, "keeps_label", False) for operator in branch.operators)
        if isinstance(branch.source, ir.TableRef) and labelled:
            name = branch.source.name
            if name in self._aliases:
                return self._aliases[name]
            if name not in bound:
                return name
        return f"union_arg{position}"

    def _union(
        self,
        union: ir.Union,
        before: ir.Query,
        frame: Frame | None,
        label: str,
        bound: Bound,
        following: list[ir.Operator],
    ) -> tuple[list[ir.Operator], Frame | None]:
        """The operators up to and with one `union`, and the columns after it."""
        written = [one for branch in union.branches for one in self._expanded(branch)]
        existing = [one for one in written if not union.isfuzzy or self._exists(one, bound)]
        pairs = [self._query(one, bound) for one in existing]
        if frame is None or any(columns is None for _, columns in pairs):
            branches = tuple(query for query, _ in pairs)
            return [*before.operators, dataclasses.replace(union, branches=branches)], None
        inputs = [Branch(before, frame, label)]
        for position, (one, (query, columns)) in enumerate(zip(existing, pairs, strict=True), start=1):
            inputs.append(Branch(query, columns or {}, self._label(one, bound, position)))
        needed = needed_columns(following) if len(inputs) > _WIDE_UNION else None
        (left, *rest), after = united(inputs, kind=union.kind, with_source=union.with_source, needed=needed)
        plain = ir.Union(tuple(rest))
        operators = [*left.operators, plain, *after]
        tables = self._tables(bound)
        for operator in [*left.operators[len(before.operators) :], plain, *after]:
            frame = operator_frame(operator, frame, tables) if frame is not None else None
        return operators, frame

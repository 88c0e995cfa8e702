"""The rules of freeform KQL over an analysis: what is not allowed, and why, with its place.

Each rule is a pure function that yields problems; `freeform_problems` is all of them. They hold for both parsers, and
whatever a rule does not know it refuses by name.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

import msgspec

from sentinel_rag.sentinel.kql_guard.allowed_names import (
    AGGREGATES,
    FUNCTIONS,
    OPERATORS,
    PLUGINS,
    REFUSED_WORDS,
    STATEMENTS,
    SYNTAX,
)
from sentinel_rag.sentinel.kql_guard.analysis import (
    Analysis,
    Call,
    Let,
    Node,
    Operator,
    Other,
    Pipe,
    Place,
    Reference,
    Statement,
    Value,
)
from sentinel_rag.sentinel.kql_guard.names import nearest_names, said_nearest, words
from sentinel_rag.sentinel.kql_guard.places import TextPlaces
from sentinel_rag.sentinel.kql_guard.report import COMPUTED_TIME, KqlProblem, Severity
from sentinel_rag.sentinel.kql_guard.table_reach import Bound, TableUse, TooComplexError, bound_of, table_uses

TIME, XDR_TIME = "TimeGenerated", "Timestamp"
_ROW_SOURCES = words(
    "DataTableExpression RangeOperator WildcardedName PartitionSubquery PartitionQuery MvApplySubqueryExpression"
)
_REACHES_TABLES = frozenset({"UnionOperator", "FindOperator", "SearchOperator", "MacroExpandOperator"})


@dataclass(frozen=True, slots=True)
class Demands:
    """What the caller vouches for, and which tables it lets be read (None: all of the schema)."""

    schema: Mapping[str, Mapping[str, str]]
    time_bounded: bool
    row_cap: int | None
    allowed_tables: frozenset[str] | None
    now: datetime


def freeform_problems(analysis: Analysis, places: TextPlaces, demands: Demands) -> Iterator[KqlProblem]:
    """Every reason why the query may not run as freeform KQL, in the order of the rules."""
    told = _Teller(places)
    unread = not analysis.statements and any(each.severity == "Error" for each in analysis.diagnostics)
    if analysis.kind != "Query":
        yield told("command", "Only a query is allowed, no management command.", (0, 0), "Start with a table.")
        return
    if not unread:
        yield from _statements(analysis.statements, told)
    yield from _syntax(analysis, told)
    yield from _functions(analysis, told)
    yield from _patterns(analysis, told)
    yield from _sources(analysis, told)
    yield from _tables(analysis, demands, told)
    yield from _time(analysis, demands, told)
    yield from _rows(analysis, demands, told)


class _Teller:
    def __init__(self, places: TextPlaces) -> None:
        self._places = places

    def __call__(
        self,
        code: str,
        message: str,
        at: Place,
        next_step: str = "",
        nearest: tuple[str, ...] = (),
        *,
        severity: Severity = "error",
    ) -> KqlProblem:
        line, column, length = self._places.locate(*at)
        return KqlProblem(code, severity, message, line, column, length, next_step, nearest)


def _statements(statements: tuple[Statement, ...], told: _Teller) -> Iterator[KqlProblem]:
    for statement in statements:
        if statement.kind not in STATEMENTS:
            word = REFUSED_WORDS.get(statement.kind, statement.kind)
            step = "Use let statements and one query."
            yield told("statement_not_allowed", f"The statement `{word}` is not allowed.", statement.at, step)
    queries = [statement for statement in statements if statement.kind == "ExpressionStatement"]
    if not queries:
        yield told("no_query", "There is no query after the statements.", (0, 0), "End with a query on a table.")
    for extra in queries[1:]:
        yield told("several_queries", "Only one query is allowed.", extra.at, "Ask them one after the other.")
    if queries and queries[0].value is not None and queries[0].value.node is None:
        yield told("not_tabular", "The query yields no rows.", queries[0].at, "Start with a table, or use print.")


def _syntax(analysis: Analysis, told: _Teller) -> Iterator[KqlProblem]:
    for kind, at in sorted(analysis.kinds.items(), key=lambda item: item[1]):
        if kind in SYNTAX or (kind in REFUSED_WORDS and kind.endswith("Statement")):
            continue
        word = REFUSED_WORDS.get(kind)
        if word is None and kind.endswith("Operator"):
            word = kind.removesuffix("Operator").lower()
        said = f"`{word}` is not allowed" if word else f"The syntax {kind} is not allowed"
        nearest = nearest_names(word, OPERATORS.values()) if word else ()
        yield told("syntax_not_allowed", f"{said} in freeform KQL.", at, "Leave it out.", nearest)


def _functions(analysis: Analysis, told: _Teller) -> Iterator[KqlProblem]:
    named = {reference.start for reference in analysis.references}
    allowed = {"function": FUNCTIONS, "aggregate": AGGREGATES | FUNCTIONS, "plugin": PLUGINS}
    own = _own_functions(analysis.statements)
    for use in analysis.functions:
        at = (use.start, use.length)
        if use.origin == "let" and not analysis.statements:
            continue  # the query could not be read, which is told already
        known = own if use.origin == "let" else allowed.get(use.origin, frozenset())
        if use.name not in known:
            what = "plugin" if use.origin == "plugin" else "function"
            nearest = nearest_names(use.name, FUNCTIONS | AGGREGATES) if use.origin == "unknown" else ()
            said = f"The {what} `{use.name}` is not allowed.{said_nearest(nearest)}"
            yield told(f"{what}_not_allowed", said, at, "Use what reads only the workspace's own tables.", nearest)
        elif use.name == "table" and use.origin == "function" and use.start not in named:
            said = "`table(...)` is allowed with the name of a table in quotes only."
            yield told("table_not_literal", said, at, "Name the table itself.")


def _own_functions(statements: Iterable[Statement]) -> frozenset[str]:
    """Names that let statements give, those inside functions too: nothing else is the query's own."""
    found: set[str] = set()
    waiting = [statement.let for statement in statements if statement.let is not None]
    while waiting:
        let = waiting.pop()
        found.add(let.name)
        found.update(let.params or ())
        body = let.value.node
        waiting += getattr(body, "lets", ())
    return frozenset(found)


def _patterns(analysis: Analysis, told: _Teller) -> Iterator[KqlProblem]:
    for use in analysis.wildcards:
        if use.within in _REACHES_TABLES:
            at = (use.start, use.length)
            said = f"`{use.name}` stands for every table whose name fits, known or not."
            yield told("wildcard_tables", said, at, "Name each table.")
    for node in _nodes(analysis):
        if not isinstance(node, Pipe):
            continue
        first = node.ops[0]
        if node.source is None and first.kind in ("SearchOperator", "FindOperator") and not first.inputs:
            word = OPERATORS[first.kind]
            said = f"`{word}` without tables reads every table of the workspace."
            yield told("all_tables", said, first.at, f"Name them: {word} in (SigninLogs, SecurityEvent) ...")


def _sources(analysis: Analysis, told: _Teller) -> Iterator[KqlProblem]:
    for node in _nodes(analysis):
        if isinstance(node, Other) and node.kind not in _ROW_SOURCES:
            said = f"Rows cannot come from a {node.kind.removesuffix('Expression')} here."
            yield told("not_tabular", said, node.at, "Start with a table.")


def _nodes(analysis: Analysis) -> Iterator[Node]:
    """Every tabular expression, however deep."""
    waiting: list[object] = list(analysis.statements)
    while waiting:
        each = waiting.pop()
        if isinstance(each, Node):
            yield each
        if isinstance(each, msgspec.Struct):
            waiting += (getattr(each, name) for name in each.__struct_fields__)
        elif isinstance(each, tuple):
            waiting += each


def _tables(analysis: Analysis, demands: Demands, told: _Teller) -> Iterator[KqlProblem]:
    for use in analysis.references:
        at = (use.start, use.length)
        if use.name not in demands.schema:
            nearest = nearest_names(use.name, demands.schema)
            said = f"There is no table {use.name!r} in the workspace.{said_nearest(nearest)}"
            yield told("unknown_table", said, at, "Use a table that the workspace has.", nearest)
        elif demands.allowed_tables is not None and use.name not in demands.allowed_tables:
            nearest = nearest_names(use.name, demands.allowed_tables)
            shown = ", ".join(sorted(demands.allowed_tables)[:30]) or "none"
            said = f"The table {use.name!r} may not be read here."
            yield told("table_not_allowed", said, at, f"Allowed tables: {shown}.", nearest)


def _time(analysis: Analysis, demands: Demands, told: _Teller) -> Iterator[KqlProblem]:
    try:
        uses = table_uses(analysis.statements)
    except TooComplexError:
        yield told("too_complex", "The query's names use each other too often to follow.", (0, 0), "Write it flatter.")
        return
    if demands.time_bounded:
        return
    told_already: set[tuple[str, Place]] = set()
    for use in uses:
        columns = demands.schema.get(use.name)
        if columns is None or (use.name, use.at) in told_already:
            continue
        problem = _unbounded(use, columns, demands.now, told)
        if problem is not None:
            told_already.add((use.name, use.at))
            yield problem


def _unbounded(use: TableUse, columns: Mapping[str, str], now: datetime, told: _Teller) -> KqlProblem | None:
    column = TIME if TIME in columns else XDR_TIME if XDR_TIME in columns else None
    if column is None:
        said = f"{use.name} has no {TIME}, so no filter can bound its time."
        return told("not_time_bounded", said, use.at, "Give a time window with the query.")
    bounds = {bound_of(moment, now) for name, moment in use.bounded if name == column}
    if Bound.REAL in bounds:
        return None
    if Bound.COMPUTED in bounds:
        said = f"How far back the filter on {column} reads {use.name} is computed, so it is only known when it runs."
        step = "Write the moment as ago(7d) or datetime(2026-01-31), or give a time window with the query."
        return told(COMPUTED_TIME, said, use.at, step, severity="warning")
    step = f"Put `| where {column} > ago(1d)` right after {use.name}, or give a time window with the query."
    if bounds:
        said = f"The filter on {column} reaches back more than ten years, so it bounds {use.name} in name only."
    elif column == TIME and any(name == XDR_TIME for name, _ in use.bounded):
        said = f"{use.name} is filtered by {XDR_TIME}, the time of Defender XDR; the workspace finds rows by {TIME}."
        step = f"Filter by {TIME} as well: `| where {TIME} > ago(1d)`."
    else:
        said = f"No filter on {column} that holds for every row reaches {use.name}."
    return told("not_time_bounded", said, use.at, step)


def _rows(analysis: Analysis, demands: Demands, told: _Teller) -> Iterator[KqlProblem]:
    if demands.row_cap is not None or not any(each.kind == "ExpressionStatement" for each in analysis.statements):
        return
    most = row_limit(analysis.statements)
    if most is None or most <= MOST_ROWS:
        return
    at = next(each.at for each in reversed(analysis.statements) if each.kind == "ExpressionStatement")
    if math.isinf(most):
        said = "Nothing at the end of the query limits its rows by a number."
    else:
        said = f"The query may return {most:,.0f} rows; at most {MOST_ROWS:,} are allowed."
    yield told("not_row_limited", said, (at[0] + at[1], 0), "End it with `| take 100`, top, count or summarize.")


# How many rows a query leaves at most, as far as its last operators say.


MOST_ROWS = 30_000
"""What a result may hold without a cap of the caller: as many as the portal shows."""

# These leave as many rows as they get, or fewer.
_NOT_MORE = words("""
    AsOperator ExtendOperator FilterOperator ParseKvOperator ParseOperator ParseWhereOperator ProjectAwayOperator
    ProjectKeepOperator ProjectOperator ProjectRenameOperator ProjectReorderOperator RenderOperator SearchOperator
    SerializeOperator SortOperator
    """)
_ONE_EACH_GROUP = frozenset(
    {"SummarizeOperator", "DistinctOperator", "MakeSeriesOperator", "ReduceByOperator", "TopNestedOperator"}
)
_COUNTED = frozenset({"TakeOperator", "TopOperator", "SampleOperator", "SampleDistinctOperator", "TopHittersOperator"})
_FIXED = frozenset({"CountOperator", "GetSchemaOperator", "PrintOperator"})


def row_limit(statements: tuple[Statement, ...]) -> float | None:
    """The rows that the last statement leaves at most: a number, infinity for none told, None for one a group."""
    lets: dict[str, Let] = {}
    last: Value | None = None
    for statement in statements:
        if statement.let is not None:
            lets[statement.let.name] = statement.let
        if statement.value is not None:
            last = statement.value
    return math.inf if last is None or last.node is None else _of_node(last.node, lets, frozenset())


def _of_node(node: Node | None, lets: dict[str, Let], seen: frozenset[str]) -> float | None:
    if isinstance(node, Pipe):
        for operator in reversed(node.ops):
            if operator.kind not in _NOT_MORE:
                return _of_operator(operator)
        return _of_node(node.source, lets, seen)
    if isinstance(node, Reference) and node.name in lets and node.name not in seen:
        let = lets[node.name]
        return math.inf if let.params is not None else _of_node(let.value.node, lets, seen | {node.name})
    if isinstance(node, Call):
        return math.inf
    return math.inf


def _of_operator(operator: Operator) -> float | None:
    if operator.kind in _ONE_EACH_GROUP:
        return None
    if operator.kind in _FIXED:
        return 1
    if operator.kind in _COUNTED and operator.rows is not None:
        return operator.rows
    return math.inf

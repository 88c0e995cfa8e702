"""The rules of freeform KQL over an analysis: what is not allowed, and why, with its place.

Each rule is a pure function that yields problems; `freeform_problems` is all of them. They hold for both parsers, and
whatever a rule does not know it refuses by name.

`KqlGuard`: one question, whether a query may run, answered by whichever parser is there.

It puts the parts in order: the text's own rules, the parser, its findings, the rules of freeform KQL. It is the only
module here that waits for anything.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import Enum

import msgspec

from sentinel_rag.contracts.errors import UnavailableError
from sentinel_rag.sentinel.kql_guard.analysis import (
    AGGREGATES,
    COMPUTED_TIME,
    FUNCTIONS,
    OPERATORS,
    PLUGINS,
    REFUSED_WORDS,
    STATEMENTS,
    SYNTAX_NODES,
    Analysis,
    Block,
    GuardReport,
    KqlCall,
    KqlProblem,
    KqlReference,
    KqlTable,
    KqlValue,
    Let,
    Node,
    Operator,
    Other,
    ParserName,
    Pipe,
    Place,
    Schema,
    Severity,
    Statement,
    TextLimits,
    TextPlaces,
    diagnostic_problems,
    nearest_names,
    said_nearest,
    text_problems,
    words,
)
from sentinel_rag.sentinel.kql_guard.fallback_process import FALLBACK_LIMITS, FallbackParser
from sentinel_rag.sentinel.kql_guard.official_parser import OfficialParser
from sentinel_rag.sentinel.kql_guard.parser_process import ParserStuckError

# Walks the tree of an analysis from each source outward, through the query's own names and functions. A table is
# bounded if, before anything merges or removes rows, a filter holds its time column above a moment; pure functions, no
# parser.
# A filter after one of these is as good as one before: each row still stands for one row of the table. `as` is none of
# them, since the rest of the query may read the rows again by the name it gives, without the filter.
_PASSING = words("""
    ExtendOperator FilterOperator LookupOperator MvExpandOperator ParseKvOperator ParseOperator ParseWhereOperator
    ProjectAwayOperator ProjectKeepOperator ProjectOperator ProjectRenameOperator ProjectReorderOperator SearchOperator
    SerializeOperator SortOperator UnionOperator
    """)
_PASSING_JOINS = frozenset({"inner", "innerunique", "leftouter", "leftsemi", "leftanti", "anti", "leftantisemi"})
_MOST_STEPS = 20_000
_OLDEST = timedelta(days=3653)
_AGO = re.compile(
    r"(?:ago\(|now\(\s*-|now\(\)\s*-)\s*(\d+(?:\.\d+)?)\s*(d|day|days|h|hr|hrs|hour|hours|m|min|minutes?|s)\s*\)?"
)
_DATE = re.compile(r"(?:datetime|todatetime)\([\d\s/:.tz\"'-]*?\b(\d{4})\b[\d\s/:.tz\"'-]*\)")
_TIME_FUNCTIONS = words("ago datetime now startofday todatetime")
"""Functions whose moments are judged by their text."""
_CALLED = re.compile(r"(\w+)\s*\(")
_SECONDS = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}


class TooComplexError(Exception):
    """Names that use names that use names: the query has more readings of its tables than are followed."""


@dataclass(frozen=True, slots=True)
class TableUse:
    """One reading of a table. `bounded` are its columns that filters hold above a moment, with the moments' texts."""

    name: str
    at: Place
    bounded: frozenset[tuple[str, str]]


Bounds = frozenset[tuple[str, str]]
_NONE: Bounds = frozenset()


@dataclass(frozen=True, slots=True)
class _Named:
    value: KqlValue
    params: tuple[str, ...] | None
    scope: _Scope


_Scope = Mapping[str, _Named]


def table_uses(statements: tuple[Statement, ...]) -> tuple[TableUse, ...]:
    """Every reading of a table, in order of the query. Raises TooComplexError."""
    walk = _Walk()
    scope: _Scope = {}
    for statement in statements:
        for sub in statement.subs:
            walk.node(sub, _NONE, scope)
        if statement.let is not None:
            scope = walk.declared(statement.let, scope)
        if statement.value is not None:
            walk.value(statement.value, _NONE, scope)
    return tuple(dict.fromkeys(walk.uses))


class _Walk:
    def __init__(self) -> None:
        self.uses: list[TableUse] = []
        self._steps = 0

    def declared(self, let: Let, scope: _Scope) -> _Scope:
        # A scalar is computed where it is declared; rows are read where the name is used.
        if let.params is None and let.value.node is None:
            self.value(let.value, _NONE, scope)
        return {**scope, let.name: _Named(let.value, let.params, scope)}

    def value(self, value: KqlValue, bounds: Bounds, scope: _Scope) -> None:
        if value.node is not None:
            self.node(value.node, bounds, scope)
        for sub in value.subs:
            self.node(sub, _NONE, scope)

    def node(self, node: Node, bounds: Bounds, scope: _Scope) -> None:
        self._steps += 1
        if self._steps > _MOST_STEPS:
            raise TooComplexError
        match node:
            case KqlTable():
                self.uses.append(TableUse(node.name, node.at, bounds))
            case KqlReference():
                named = scope.get(node.name)
                if named is not None:
                    self.value(named.value, bounds, named.scope)
            case KqlCall():
                self._call(node, bounds, scope)
            case Block():
                for let in node.lets:
                    scope = self.declared(let, scope)
                self.value(node.body, bounds, scope)
            case Pipe():
                self._pipe(node, bounds, scope)
            case Other():
                for sub in node.subs:
                    self.node(sub, _NONE, scope)

    def _call(self, call: KqlCall, bounds: Bounds, scope: _Scope) -> None:
        named = scope.get(call.name)
        if named is None or named.params is None:
            for argument in call.args:
                self.value(argument, _NONE, scope)
            return
        inner = dict(named.scope)
        taken = set()
        for index, argument in enumerate(call.args):
            name = argument.name or (named.params[index] if index < len(named.params) else None)
            if name is not None and argument.node is not None:
                inner[name] = _Named(argument, None, scope)
                taken.add(name)
            else:
                self.value(argument, _NONE, scope)
        for name in named.params:
            if name not in taken:
                inner.pop(name, None)  # a parameter hides what the query calls so outside
        self.value(named.value, bounds, inner)

    def _pipe(self, pipe: Pipe, bounds: Bounds, scope: _Scope) -> None:
        after = bounds  # what the operators behind hold of rows that come in front of them
        sources: list[tuple[Node, Bounds]] = []
        for operator in reversed(pipe.ops):
            own = frozenset(operator.bounds)
            held = own if operator.kind == "FindOperator" else _in_front_of(operator, after) | own
            sources += ((each, held) for each in reversed(operator.inputs))
            sources += ((each, _NONE) for each in reversed(operator.subs))
            after = _in_front_of(operator, after) | own
        if pipe.source is not None:
            sources.append((pipe.source, after))
        for node, held in reversed(sources):
            self.node(node, held, scope)


def _in_front_of(operator: Operator, after: Bounds) -> Bounds:
    passing = operator.kind in _PASSING or (operator.kind == "JoinOperator" and operator.join in _PASSING_JOINS)
    if not passing:
        return _NONE
    changed = {*operator.defines, *operator.lacks}
    return frozenset((column, moment) for column, moment in after if column not in changed)


class Bound(Enum):
    """What a moment holds: `REAL` ends the reading somewhere, `NOMINAL` nowhere, of `COMPUTED` nobody knows before."""

    REAL = "real"
    NOMINAL = "nominal"
    COMPUTED = "computed"


def bound_of(moment: str, now: datetime) -> Bound:
    """What the text of a moment holds: literals are judged, and one that reaches back over ten years is nominal."""
    text = moment.strip().lower()
    if text in ("now()", "startofday(now())"):
        return Bound.REAL
    ago = _AGO.fullmatch(text)
    if ago is not None:
        reaches = float(ago.group(1)) * _SECONDS[ago.group(2)[0]]
        return Bound.REAL if reaches <= _OLDEST.total_seconds() else Bound.NOMINAL
    date = _DATE.fullmatch(text)
    if date is not None:
        return Bound.REAL if int(date.group(1)) > (now.astimezone(UTC) - _OLDEST).year else Bound.NOMINAL
    if text.startswith(("datetime(null", "datetime(min", "datetime(0", "datetime(1)")):
        return Bound.NOMINAL
    return Bound.COMPUTED


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
        if kind in SYNTAX_NODES or (kind in REFUSED_WORDS and kind.endswith("Statement")):
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
    # Microsoft's parser binds such a name to KQL's own function; which one the service takes, nobody here knows.
    shadowed = _own_functions(analysis.statements) & _TIME_FUNCTIONS
    told_already: set[tuple[str, Place]] = set()
    for use in uses:
        columns = demands.schema.get(use.name)
        if columns is None or (use.name, use.at) in told_already:
            continue
        kept = frozenset(each for each in use.bounded if shadowed.isdisjoint(_CALLED.findall(each[1])))
        problem = _unbounded(replace(use, bounded=kept), columns, demands.now, told)
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
    last: KqlValue | None = None
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
    if isinstance(node, KqlReference) and node.name in lets and node.name not in seen:
        let = lets[node.name]
        return math.inf if let.params is not None else _of_node(let.value.node, lets, seen | {node.name})
    if isinstance(node, KqlCall):
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


class KqlGuard:
    """Judges freeform KQL with `parser`, which it owns; without one, with the stricter fallback."""

    def __init__(self, parser: OfficialParser | None) -> None:
        self._parser = parser
        self._fallback: FallbackParser | None = None

    async def check(
        self,
        kql: str,
        schema: Schema,
        *,
        time_bounded: bool = False,
        row_cap: int | None = None,
        allowed_tables: frozenset[str] | None = None,
    ) -> GuardReport:
        """The verdict on `kql` for a workspace with the tables of `schema`. Never raises for what a query says.

        `time_bounded` says that the caller sends a timespan with the query, `row_cap` that it cuts the rows;
        `allowed_tables` are those that may be read, None for all of the schema.
        """
        name: ParserName = "microsoft" if self._parser is not None else "fallback"
        problems = text_problems(kql, TextLimits() if self._parser is not None else FALLBACK_LIMITS)
        if problems:
            return GuardReport(name, problems, frozenset(), None)
        try:
            analysis = await self._analysis(kql, schema)
        except ParserStuckError as stuck:
            told = KqlProblem("too_complex", "error", str(stuck), 1, 1, 0, stuck.next_step)
            return GuardReport(name, (told,), frozenset(), None)
        demands = Demands(schema, time_bounded, row_cap, allowed_tables, datetime.now(UTC))
        return report_of(kql, analysis, demands)

    async def close(self) -> None:
        """End the parsers' processes."""
        for parser in (self._parser, self._fallback):
            if parser is not None:
                await parser.close()

    async def _analysis(self, kql: str, schema: Schema) -> Analysis:
        if self._parser is not None:
            try:
                return await self._parser.analyze(kql, schema)
            except ParserStuckError:
                raise
            except UnavailableError:
                problems = text_problems(kql, FALLBACK_LIMITS)
                if problems:
                    raise ParserStuckError(problems[0].message, next_step=problems[0].next_step) from None
        if self._fallback is None:
            self._fallback = FallbackParser()
        return await self._fallback.analyze(kql, schema)


def report_of(kql: str, analysis: Analysis, demands: Demands) -> GuardReport:
    """The verdict on a query that has been read: the parser's own findings, then the rules of freeform KQL."""
    places = TextPlaces(kql)
    found = (*diagnostic_problems(analysis, places, demands.schema), *freeform_problems(analysis, places, demands))
    tables = frozenset(use.name for use in analysis.references)
    return GuardReport(analysis.parser, _once_each(found), tables, analysis.result)


def _once_each(problems: tuple[KqlProblem, ...]) -> tuple[KqlProblem, ...]:
    """One problem a place and kind of fault, errors first where they stand: several rules see the same wrong name."""
    kept: dict[tuple[int, int, str], KqlProblem] = {}
    for problem in problems:
        fault = "function" if "function" in problem.code or "plugin" in problem.code else problem.code
        kept.setdefault((problem.line, problem.column, fault), problem)
    places = [(each.line, each.column) for each in kept.values()]
    told = [each for each in kept.values() if each.code != "not_tabular" or places.count((each.line, each.column)) == 1]
    return tuple(sorted(_read(told), key=lambda each: (each.severity != "error", each.line, each.column)))


def _read(problems: list[KqlProblem]) -> list[KqlProblem]:
    """Those of what could be read: at the first place that breaks the syntax the reading ends, and what a parser finds
    behind it, or of the query as a whole, is of its own guess how the query goes on."""
    broken = [(each.line, each.column) for each in problems if each.code == "syntax" and each.severity == "error"]
    if not broken:
        return problems
    first = min(broken)
    return [
        each
        for each in problems
        if (each.code == "syntax" and (each.line, each.column) == first)
        or (each.code != "not_tabular" and (each.line, each.column) < first)
    ]

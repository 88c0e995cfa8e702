"""Which tables a query reads, and whether a filter on their time reaches each.

Walks the tree of an analysis from each source outward, through the query's own names and functions. A table is bounded
if, before anything merges or removes rows, a filter holds its time column above a moment; pure functions, no parser.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum

from sentinel_rag.sentinel.kql_guard.analysis import (
    Block,
    Call,
    Let,
    Node,
    Operator,
    Other,
    Pipe,
    Place,
    Reference,
    Statement,
    Table,
    Value,
)
from sentinel_rag.sentinel.kql_guard.names import words

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
    value: Value
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

    def value(self, value: Value, bounds: Bounds, scope: _Scope) -> None:
        if value.node is not None:
            self.node(value.node, bounds, scope)
        for sub in value.subs:
            self.node(sub, _NONE, scope)

    def node(self, node: Node, bounds: Bounds, scope: _Scope) -> None:
        self._steps += 1
        if self._steps > _MOST_STEPS:
            raise TooComplexError
        match node:
            case Table():
                self.uses.append(TableUse(node.name, node.at, bounds))
            case Reference():
                named = scope.get(node.name)
                if named is not None:
                    self.value(named.value, bounds, named.scope)
            case Call():
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

    def _call(self, call: Call, bounds: Bounds, scope: _Scope) -> None:
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
            held = own if operator.kind == "FindOperator" else after | own
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

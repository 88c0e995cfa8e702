"""What stands in a query, as kql_duckdb's tree has it: one walk records what the rules judge, wherever it stands.

A node that the walk does not know is an error. It knows the names of tables and of the query's own, not the columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from kql_duckdb.binder import naming
from kql_duckdb.functions import registry
from kql_duckdb.syntax import ast
from kql_duckdb.syntax.grammar import UNREAD
from kql_duckdb.syntax.parser import LIST_OPERATORS
from sentinel_rag.sentinel.kql_guard.analysis import (
    AGGREGATES,
    FUNCTIONS,
    OPERATORS,
    REFUSED_WORDS,
    TIME_COLUMNS,
    UNCHECKED,
    UNKNOWN_FUNCTION,
    UNKNOWN_TABLE,
    Block,
    Diagnostic,
    FunctionUse,
    KqlCall,
    KqlReference,
    KqlTable,
    KqlValue,
    Let,
    NameUse,
    Node,
    Operator,
    Other,
    Pipe,
    Place,
    Schema,
    Statement,
    words,
)

_KINDS = {word: kind for kind, word in OPERATORS.items()} | {
    "filter": "FilterOperator",
    "limit": "TakeOperator",
    "mvapply": "MvApplyOperator",
    "mvexpand": "MvExpandOperator",
    "order": "SortOperator",
}
_REFUSED = {word: kind for kind, word in REFUSED_WORDS.items() if kind.endswith("Operator")}
_STATEMENTS = {"set": "SetOptionStatement", "declare": "QueryParametersStatement"} | {
    "declare pattern": "PatternStatement",
    "alias database": "AliasStatement",
    "restrict access": "RestrictStatement",
}
_ROW_FUNCTIONS = words("column_ifexists columnifexists ingestion_time next prev rand row_number")
"""Functions whose value differs from row to row though no column stands in the call."""
_ELSEWHERE = words("cluster database external_table graph materialized_view stored_query_result")
"""Functions of KQL that kql_duckdb does not list, for which the rules have a reason of their own."""
_REACHES_TABLES = frozenset({"UnionOperator", "FindOperator", "SearchOperator"})
_TABLE_FUNCTIONS = frozenset({"toscalar", "materialize"})
_MOST_INLINED = 200
_MOST_NODES = 20_000
_MOST_ERRORS = 20


def error(code: str, message: str, at: Place, columns: tuple[str, ...] = ()) -> Diagnostic:
    """An error at a place, on one line."""
    return Diagnostic(code, "Error", " ".join(message.split()), at, columns)


def unchecked(what: str, at: Place) -> Diagnostic:
    """The error for what is not known for certain."""
    return error(UNCHECKED, f"{what} cannot be checked without Microsoft's parser.", at)


def _names_made(part: ast.Node) -> Iterator[str]:
    """The column names that a part of an operator makes, those that Kusto derives too."""
    match part:
        case ast.Column():
            yield part.name
        case ast.Named() if part.names:
            yield from part.names
        case ast.Named() if not isinstance(part.expression, ast.Name):
            yield naming.expression_name(part.expression) or "Column"
        case ast.Construct(word="expansion") if isinstance(part.column.expression, ast.Name):
            yield part.column.expression.name


@dataclass(frozen=True, slots=True)
class _Given:
    """What a let statement or a parameter gives a name to.

    `moment` is the text of a value that is the same for every row; None where it is not.
    """

    tabular: bool
    function: ast.Function | None = None
    value: ast.Expression | None = None
    moment: str | None = None
    scope: _Scope = field(default_factory=dict)
    size: int = 0
    """The nodes of the value with the query's own names written out."""


_Scope = Mapping[str, _Given]


class FallbackReader:
    """Records what stands in a text, and tells each tabular expression as a tree."""

    def __init__(self, kql: str, schema: Schema, script: ast.Script) -> None:
        self._kql = kql
        self._schema = schema
        self._columns = self._all_columns(script)
        self._within = ""
        self._rows_named: set[str] = set()
        self._inlined = 0
        self.refused = False
        self.lets: set[str] = set()
        self.diagnostics: list[Diagnostic] = []
        self.kinds: dict[str, Place] = {}
        self.functions: list[FunctionUse] = []
        self.references: list[NameUse] = []
        self.wildcards: list[NameUse] = []

    def statements(self, script: ast.Script) -> Iterator[Statement]:
        """Every statement in order."""
        scope: _Scope = {}
        for each in script.statements:
            if isinstance(each, ast.Query):
                at = (each.at, len(self._kql.rstrip()) - each.at)
                yield Statement("ExpressionStatement", at, value=self._defined(each.expression, scope))
            elif each.word == "let":
                let, scope = self._let(each, scope)
                yield Statement("LetStatement", (each.at, len("let")), let=let)
            else:
                # A word that is not known here is no statement that the rules allow.
                yield Statement(_STATEMENTS.get(each.word, each.word), (each.at, len(each.word)))

    def _let(self, node: ast.Construct, scope: _Scope) -> tuple[Let, _Scope]:
        name, value, at = node.name, node.value, (node.at, len("let"))
        self.lets.add(name)
        used = (scope.get(each.name) for each in ast.nodes(value) if isinstance(each, ast.Name | ast.Call))
        size = sum(1 + (0 if each is None else each.size) for each in used)
        if size > _MOST_NODES:
            self.diagnostics.append(unchecked(f"`{name}`, which is too large with its names written out,", at))
        if not isinstance(value, ast.Function):
            told = Let(name, at, self._defined(value, scope))
            moment = None if told.value.node is not None else self._moment(value, scope)
            given = _Given(told.value.node is not None, None, value, moment, scope, size)
            return told, {**scope, name: given}
        if name in FUNCTIONS | AGGREGATES | _TABLE_FUNCTIONS:
            # Which of the two a call means decides how far back a filter reads.
            self.diagnostics.append(unchecked(f"A function named `{name}`, as one of KQL is,", at))
        given_names = {each.name: _Given(each.schema is not None, moment=each.name) for each in value.parameters}
        inner: _Scope = {**scope, **given_names}
        self.lets.update(given_names)
        for parameter in value.parameters:
            if parameter.default is not None and self._subs(parameter.default, scope):
                self.diagnostics.append(unchecked("A default that reads rows", (parameter.at, len(parameter.name))))
        lets: list[Let] = []
        for statement in value.statements:
            if statement.word != "let":
                place = (statement.at, len(statement.word))
                self.diagnostics.append(unchecked(f"`{statement.word}` inside a function", place))
                continue
            let, inner = self._let(statement, inner)
            lets.append(let)
        body = KqlValue() if value.body is None else self._defined(value.body, inner)
        params = tuple(parameter.name for parameter in value.parameters)
        told = Let(name, at, KqlValue(node=Block(tuple(lets), body)), params)
        return told, {**scope, name: _Given(body.node is not None, value, scope=scope, size=size)}

    # tabular expressions

    def _defined(self, node: ast.Expression, scope: _Scope) -> KqlValue:
        """The value of a statement, where a name that nobody knows is meant to be a table."""
        if isinstance(node, ast.Name) and node.name not in scope:
            return KqlValue(node=self._tabular(node, scope))
        return self._value(node, scope)

    def _value(self, node: ast.Expression, scope: _Scope, name: str | None = None) -> KqlValue:
        if self._is_tabular(node, scope):
            return KqlValue(name, self._tabular(node, scope))
        return KqlValue(name, None, self._subs(node, scope))

    def _is_tabular(self, node: ast.Expression, scope: _Scope) -> bool:
        if isinstance(node, ast.Name):
            given = scope.get(node.name)
            return node.name in self._schema or node.name in self._rows_named if given is None else given.tabular
        if isinstance(node, ast.Call):
            given = scope.get(node.name)
            if given is not None and given.function is not None:
                return given.tabular
            materialized = node.name == "materialize" and len(node.arguments) == 1
            return node.name == "table" or (materialized and self._is_tabular(node.arguments[0].value, scope))
        return isinstance(node, (ast.Pipeline, ast.Construct, ast.Qualified))

    def _tabular(self, node: ast.Expression, scope: _Scope) -> Node:
        at = self._at(node)
        match node:
            case ast.Pipeline():
                source = self._tabular(node.source, scope)
                steps = tuple(self._operator(each, scope) for each in node.operators)
                if isinstance(source, Pipe) and source.bare:
                    return Pipe(None, (*source.ops, *steps), bare=True)
                return Pipe(source, steps)
            case ast.Construct():
                return self._source(node, scope)
            case ast.Name():
                return self._named(node, scope)
            case ast.Call() if node.name == "materialize" and self._is_tabular(node, scope):
                return self._tabular(node.arguments[0].value, scope)
            case ast.Call():
                found = self._called(node, scope)
                return found[0] if len(found) == 1 else Other("FunctionCallExpression", found, at)
            case ast.Pattern() if self._within in _REACHES_TABLES:
                return Other("WildcardedName", self._subs(node, scope), at)
            case ast.Member():
                return Other("PathExpression", self._subs(node.value, scope), at)
        return Other(type(node).__name__, self._subs(node, scope, qualified=True), at)

    def _source(self, node: ast.Construct, scope: _Scope) -> Node:
        at = self._at(node)
        if node.word in ("externaldata", "external_data"):
            self.kinds.setdefault("ExternalDataExpression", at)
            return Other("ExternalDataExpression", (), at)
        if node.word == "datatable":
            return Other("DataTableExpression", self._subs(node.values, scope), at)
        step = self._operator(node, scope)
        self.refused = self.refused or (node.word in ("find", "search") and not step.inputs)
        return Pipe(None, (step,), bare=True)

    def _named(self, node: ast.Name, scope: _Scope) -> Node:
        at = self._at(node)
        if node.name in scope or node.name in self._rows_named:
            return KqlReference(node.name, at)
        return self._table(node.name, at)

    def _table(self, name: str, at: Place) -> Node:
        if name in self._schema:
            self.references.append(NameUse(name, *at))
        else:
            self.diagnostics.append(error(UNKNOWN_TABLE, f"The name '{name}' is no known table.", at))
        return KqlTable(name, at)

    def _operator(self, node: ast.Construct, scope: _Scope) -> Operator:
        at = (node.at, len(node.word))
        kind = _KINDS.get(node.word, "")
        if not kind or node.word in UNREAD:
            refused = _REFUSED.get(node.word)
            if refused is None:
                self.diagnostics.append(unchecked(f"The operator `{node.word}`", at))
            else:
                self.kinds.setdefault(refused, at)
            return Operator(refused or node.word, at)
        self.kinds.setdefault(kind, at)
        outer, self._within = self._within, kind
        given = dict(node.fields)
        inputs = [*(given.pop("inputs", None) or ()), *(given.pop("tables", None) or ())]
        told = Operator(
            kind=kind,
            at=at,
            bounds=tuple(self._bounds(node, scope)),
            defines=() if kind in ("FindOperator", "SearchOperator") else tuple(self._defines(node)),
            lacks=tuple(self._lacks(node)),
            inputs=tuple(self._tabular(each, scope) for each in inputs),
            subs=tuple(self._parts(node, given, scope)),
            rows=self._number(given.get("count"), scope),
            join=node.parameter("kind") or "innerunique" if node.word in ("join", "lookup") else "",
        )
        self._within = outer
        if node.word == "as":
            if node.name in self._schema or node.name in scope:
                self.diagnostics.append(unchecked(f"A second meaning of `{node.name}`", at))
            self._rows_named.add(node.name)
        return told

    def _parts(self, node: ast.Construct, given: dict[str, Any], scope: _Scope) -> Iterator[Node]:
        """The tabular expressions in the fields of an operator."""
        for name, value in given.items():
            if value is None:
                continue
            if name in ("right", "query"):
                yield self._tabular(value, scope)
            elif name == "body":
                kind = "PartitionSubquery" if node.word == "partition" else "MvApplySubqueryExpression"
                if value:
                    steps = tuple(self._operator(each, scope) for each in value)
                    yield Pipe(Other(kind, (), (node.at, len(node.word))), steps)
            elif name == "call" and node.word == "evaluate":
                self.functions.append(FunctionUse(value.name, "plugin", value.at, len(value.name)))
                yield from self._arguments(value, scope)
            elif name == "call":
                # The rows before `invoke` are the first argument, and have been read already.
                yield from self._called(value, scope, (KqlValue(),))
            else:
                yield from self._subs(value, scope)

    # expressions

    def _subs(self, part: Any, scope: _Scope, *, qualified: bool = False) -> tuple[Node, ...]:
        """The tabular expressions in a part that is none itself, however deep."""
        match part:
            case tuple():
                return tuple(node for each in part for node in self._subs(each, scope))
            case None | str() | bool() | ast.Literal() | ast.Name() | ast.TypeOf() | ast.Column() | ast.Schema():
                return ()
            case ast.Construct(word="expansion" | "series" | "level"):
                return self._subs(tuple(part.fields.values()), scope)
            case ast.Pipeline() | ast.Construct():
                return (self._tabular(part, scope),)
            case ast.Qualified() if not qualified:
                return (self._tabular(part, scope),)
            case ast.Qualified():
                return (*self._subs(part.owner, scope), *self._subs(part.member, scope))
            case ast.Call():
                return self._called(part, scope)
            case ast.Pattern():
                self.refused = self.refused or self._within in _REACHES_TABLES
                self.wildcards.append(NameUse(part.pattern, part.at, len(part.pattern), self._within))
                return ()
            case ast.Operation() if part.operator in LIST_OPERATORS:
                left, *listed = part.operands
                items = (self._held(self._value(each, scope)) for each in listed)
                return (*self._subs(left, scope), *(node for held in items for node in held))
            case ast.Operation():
                return self._subs(part.operands, scope)
            case ast.Binary():
                return (*self._subs(part.left, scope), *self._subs(part.right, scope))
            case ast.Member() | ast.Argument():
                return self._subs(part.value, scope)
            case ast.Index():
                return (*self._subs(part.value, scope), *self._subs(part.index, scope))
            case ast.Named():
                return self._subs(part.expression, scope)
        self.diagnostics.append(unchecked("This part", self._at(part) if isinstance(part, ast.Node) else (0, 0)))
        return ()

    @staticmethod
    def _held(value: KqlValue) -> tuple[Node, ...]:
        return value.subs if value.node is None else (value.node,)

    def _arguments(self, node: ast.Call, scope: _Scope) -> Iterator[Node]:
        for each in node.arguments:
            yield from self._held(self._value(each.value, scope))

    def _called(self, node: ast.Call, scope: _Scope, first: tuple[KqlValue, ...] = ()) -> tuple[Node, ...]:
        """What a call reads: as a call of the query's own function, as a table, or what its arguments hold."""
        at, name = (node.at, len(node.name)), node.name
        given = scope.get(name)
        outer, self._within = self._within, "FunctionCallExpression"
        try:
            if given is not None and given.function is not None:
                self.functions.append(FunctionUse(name, "let", *at))
                values = (self._value(each.value, scope, each.name) for each in node.arguments)
                return (KqlCall(name, (*first, *values), at),)
            if name in _TABLE_FUNCTIONS and not first:
                return tuple(self._arguments(node, scope))
            self.functions.append(FunctionUse(name, self._origin(name), *at))
            if self.functions[-1].origin == "unknown":
                self.diagnostics.append(error(UNKNOWN_FUNCTION, f"The name '{name}' is no known function.", at))
            if name == "table" and len(node.arguments) == 1 and isinstance(node.arguments[0].value, ast.Literal):
                return (self._table(str(node.arguments[0].value.value), at),)
            self.refused = self.refused or name == "table"
            return self._subs(node.arguments, scope)
        finally:
            self._within = outer

    def _origin(self, name: str) -> Literal["function", "aggregate", "unknown"]:
        if name in AGGREGATES:
            return "aggregate"
        # What KQL has and the allow list has not is refused by its rule, not told to be missing.
        known = name in FUNCTIONS or name in _ELSEWHERE or name in registry.names()
        return "function" if known or registry.unknown(name).code == "KDB0001" else "unknown"

    # what holds for all rows of an operator

    def _bounds(self, node: ast.Construct, scope: _Scope) -> Iterator[tuple[str, str]]:
        if node.word == "make-series" and node.first is not None and not node.in_range:
            yield from self._bound(node.axis.expression, node.first, scope)
        elif "predicate" in node.fields:
            yield from self._lower_bounds(node.predicate, scope)

    def _lower_bounds(self, node: ast.Expression, scope: _Scope) -> Iterator[tuple[str, str]]:
        """Columns that a condition bounds from below by something that is the same for every row."""
        match node:
            case ast.Operation(operator="and"):
                for each in node.operands:
                    yield from self._lower_bounds(each, scope)
            case ast.Operation(operator="between"):
                yield from self._bound(node.operands[0], node.operands[1], scope)
            case ast.Binary(operator=">" | ">="):
                yield from self._bound(node.left, node.right, scope)
            case ast.Binary(operator="<" | "<="):
                yield from self._bound(node.right, node.left, scope)
            case ast.Binary(operator="=="):
                yield from self._bound(node.left, node.right, scope)
                yield from self._bound(node.right, node.left, scope)

    def _bound(self, column: ast.Expression, low: ast.Expression, scope: _Scope) -> Iterator[tuple[str, str]]:
        if isinstance(column, ast.Name) and column.name not in scope:
            moment = self._moment(low, scope)
            if moment is not None:
                yield column.name, moment

    def _moment(self, node: ast.Expression, scope: _Scope) -> str | None:
        """The text of what is the same for every row, with the query's own names written out; else None."""
        match node:
            case ast.Literal(kind="timespan") if node.value is not None:
                return f"{node.value / 10_000_000:.7f}s"
            case ast.Literal(kind="datetime"):
                return f"datetime({'null' if node.value is None else node.value.isoformat()})"
            case ast.Literal():
                return str(node.value)[:120]
            case ast.Name():
                given = scope.get(node.name)
                hidden = node.name.rstrip("0123456789") in self._columns
                return None if given is None or hidden else given.moment
            case ast.Binary():
                return self._joined((node.left, node.right), f" {node.operator} ", scope)
            case ast.Operation(operator="unary-"):
                return self._joined(node.operands, "", scope, "-({})")
            case ast.Operation():
                return self._joined(node.operands, f" {node.operator} ", scope)
            case ast.Call(name="toscalar") if "toscalar" not in scope:
                return "toscalar()"
            case ast.Call():
                return self._call_moment(node, scope)
        return None

    def _joined(self, parts: tuple[ast.Expression, ...], between: str, scope: _Scope, form: str = "{}") -> str | None:
        moments = [self._moment(each, scope) for each in parts]
        return None if None in moments else form.format(between.join(map(str, moments)))[:120]

    def _call_moment(self, node: ast.Call, scope: _Scope) -> str | None:
        given = scope.get(node.name)
        if given is None or given.function is None:
            parts = tuple(each.value for each in node.arguments)
            return None if node.name in _ROW_FUNCTIONS else self._joined(parts, ", ", scope, f"{node.name}({{}})")
        self._inlined += 1
        function = given.function
        if self._inlined > _MOST_INLINED or function.statements or function.body is None or given.tabular:
            return None
        values = {parameter.name: parameter.default for parameter in function.parameters}
        values.update(zip(values, (each.value for each in node.arguments), strict=False))
        values.update((each.name, each.value) for each in node.arguments if each.name is not None)
        moments = {name: None if each is None else self._moment(each, scope) for name, each in values.items()}
        inner = {name: _Given(tabular=False, moment=moment) for name, moment in moments.items()}
        return self._moment(function.body, {**given.scope, **inner})

    def _defines(self, node: ast.Construct) -> Iterator[str]:
        """The column names that an operator makes."""
        for name, value in node.fields.items():
            if name not in ("inputs", "keys", "query", "right"):
                for part in ast.nodes(value, ast.Pipeline):
                    yield from _names_made(part)
        for each in node.parameters:
            if each.name in ("with_itemindex", "withsource", "with_source"):
                yield node.parameter(each.name)

    def _lacks(self, node: ast.Construct) -> Iterator[str]:
        """The time columns that the result has not, as far as the operator says which it keeps."""
        if node.word not in ("project", "project-away", "project-keep", "project-rename"):
            return
        named = [*node.columns]
        plain = [str(getattr(each.expression, "pattern", getattr(each.expression, "name", ""))) for each in named]
        for time in TIME_COLUMNS:
            if node.word == "project":
                kept = any(
                    time in each.names
                    or (not each.names and isinstance(each.expression, ast.Name) and each.expression.name == time)
                    for each in named
                )
            else:
                kept = any(naming.matches(each, time) for each in plain) == (node.word == "project-keep")
            if not kept:
                yield time

    def _number(self, node: Any, scope: _Scope) -> float | None:
        while isinstance(node, ast.Name) and node.name in scope:
            node, scope = scope[node.name].value, scope[node.name].scope
        return float(node.value) if isinstance(node, ast.Literal) and isinstance(node.value, int) else None

    def _all_columns(self, script: ast.Script) -> set[str]:
        """Names that a column may have somewhere: there it comes before what the query itself calls so."""
        found: set[str] = set()
        for node in ast.nodes(script):
            found.update(_names_made(node))
            if isinstance(node, ast.Argument) and node.name and isinstance(node.value, ast.Name):
                found.add(node.value.name)  # such as that of withsource
            name = node.name if isinstance(node, ast.Name) else getattr(node, "value", None)
            if isinstance(name, str) and name in self._schema:
                found.update(self._schema[name])
        return {each.rstrip("0123456789") for each in found}

    def _at(self, node: ast.Node) -> Place:
        """The place of a node: of a name as it is written, else of its first word."""
        name = getattr(node, "name", None) or getattr(node, "pattern", None) or getattr(node, "word", None)
        if isinstance(name, str) and not self._kql.startswith(name, node.at):
            return node.at, max(self._kql.find("]", node.at) + 1 - node.at, 1)
        return node.at, len(name) if isinstance(name, str) else 1

"""The tree of a KQL text. Every node is a frozen value; `at` is the offset where it begins, and no part of equality.

A docstring shows the form that a node stands for, in capitals what its fields hold. A query in brackets, an argument
or the value of a `let` may be a `Pipeline`, so pipelines and sources are expressions.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Any


@dataclass(frozen=True, slots=True)
class Node:
    """Anything with a place."""

    at: int = field(default=-1, compare=False, kw_only=True, repr=False)


def unplaced(value: Any) -> Any:
    """A tree, or a part of one, that belongs to no text that a person sees: every place is -1."""
    if isinstance(value, tuple):
        return tuple(unplaced(one) for one in value)
    if not isinstance(value, Node):
        return value
    return replace(
        value,
        at=-1,
        **{one.name: unplaced(getattr(value, one.name)) for one in fields(value) if one.init and one.name != "at"},
    )


# --------------------------------------------------------------------------------------------- expressions


@dataclass(frozen=True, slots=True)
class Expression(Node):
    """A value, a table, or what a name turns out to be."""


@dataclass(frozen=True, slots=True)
class Literal(Expression):
    """A constant. `kind` is a KQL type; `value` is None for null, a bool, int, float or str.

    A datetime, decimal or guid is kept as its text, a timespan as its ticks of 100 ns, a dynamic as JSON text.
    """

    kind: str
    value: bool | int | float | str | None


@dataclass(frozen=True, slots=True)
class Name(Expression):
    """A column, a let or a table."""

    name: str


@dataclass(frozen=True, slots=True)
class Pattern(Expression):
    """A name with stars, such as `Device*` or `*`."""

    pattern: str


@dataclass(frozen=True, slots=True)
class TypeOf(Expression):
    """`typeof(TYPES)`."""

    types: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Argument(Node):
    """An argument of a call, `VALUE` or `NAME = VALUE`."""

    value: Expression
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Call(Expression):
    """`NAME(ARGUMENTS)`."""

    name: str
    arguments: tuple[Argument, ...] = ()


@dataclass(frozen=True, slots=True)
class Qualified(Expression):
    """`OWNER.MEMBER` where the member is a call or the owner one: `cluster("x").database("y").T`."""

    owner: Expression
    member: Expression


@dataclass(frozen=True, slots=True)
class Member(Expression):
    """`VALUE.NAME`."""

    value: Expression
    name: str


@dataclass(frozen=True, slots=True)
class Index(Expression):
    """`VALUE[INDEX]`."""

    value: Expression
    index: Expression


@dataclass(frozen=True, slots=True)
class Unary(Expression):
    """`-VALUE` or `+VALUE`."""

    operator: str
    value: Expression


@dataclass(frozen=True, slots=True)
class Binary(Expression):
    """`LEFT OPERATOR RIGHT`. The operator is spelled as in KQL, `:` is that of `search`."""

    operator: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Logical(Expression):
    """`OPERAND and OPERAND ...`, or with `or`; as flat as it is written."""

    operator: str
    operands: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class InList(Expression):
    """`LEFT OPERATOR (ITEMS)` for `in`, `in~`, `has_any`, `has_all` and their negations."""

    operator: str
    left: Expression
    items: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Between(Expression):
    """`VALUE OPERATOR (LOW .. HIGH)` for `between` and `!between`."""

    operator: str
    value: Expression
    low: Expression
    high: Expression


@dataclass(frozen=True, slots=True)
class Parameter(Node):
    """`hint.strategy = shuffle`, `kind = inner`: words beside an operator. `value` is a name, a text or a number."""

    name: str
    value: Expression


@dataclass(frozen=True, slots=True)
class Named(Node):
    """`EXPRESSION`, `NAME = EXPRESSION` or `(NAMES) = EXPRESSION` (`several` then is true)."""

    expression: Expression
    names: tuple[str, ...] = ()
    several: bool = False


@dataclass(frozen=True, slots=True)
class ColumnType(Node):
    """`NAME : TYPE`."""

    name: str
    type: str


@dataclass(frozen=True, slots=True)
class Schema(Node):
    """`(COLUMNS)`, or `(*)` and `(*, COLUMNS)` with `open`."""

    columns: tuple[ColumnType, ...]
    open: bool = False


# --------------------------------------------------------------------------------------------- sources


@dataclass(frozen=True, slots=True)
class Pipeline(Expression):
    """`SOURCE | OPERATOR | ...`. Without operators it is brackets around a source, which are not kept."""

    source: Expression
    operators: tuple[Operator, ...]


@dataclass(frozen=True, slots=True)
class DataTable(Expression):
    """`datatable(COLUMNS)[VALUES]`."""

    columns: tuple[ColumnType, ...]
    values: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class ExternalData(Expression):
    """`externaldata(COLUMNS)[PLACES] with (OPTIONS)`."""

    columns: tuple[ColumnType, ...]
    places: tuple[Expression, ...]
    options: tuple[Argument, ...] = ()


@dataclass(frozen=True, slots=True)
class Range(Expression):
    """`range NAME from FIRST to LAST step STEP`."""

    name: str
    first: Expression
    last: Expression
    step: Expression


@dataclass(frozen=True, slots=True)
class Print(Expression):
    """`print COLUMNS`."""

    columns: tuple[Named, ...]


# --------------------------------------------------------------------------------------------- operators


@dataclass(frozen=True, slots=True)
class Operator(Expression):
    """What stands after a bar. Some may begin a query too: `union`, `search`, `find`, `evaluate`."""


@dataclass(frozen=True, slots=True)
class Where(Operator):
    """`where PREDICATE`."""

    predicate: Expression


@dataclass(frozen=True, slots=True)
class Extend(Operator):
    """`extend COLUMNS`."""

    columns: tuple[Named, ...]


@dataclass(frozen=True, slots=True)
class Project(Operator):
    """`project COLUMNS`, or `project-rename` as `keyword` says."""

    columns: tuple[Named, ...]
    keyword: str = "project"


@dataclass(frozen=True, slots=True)
class Choose(Operator):
    """`project-away`, `project-keep` or `project-reorder` (`keyword`) with columns and patterns."""

    keyword: str
    columns: tuple[OrderedBy, ...]


@dataclass(frozen=True, slots=True)
class OrderedBy(Node):
    """`EXPRESSION asc nulls first`; what is not written is empty."""

    expression: Named
    direction: str = ""
    nulls: str = ""


@dataclass(frozen=True, slots=True)
class Sort(Operator):
    """`sort by KEYS`."""

    keys: tuple[OrderedBy, ...]


@dataclass(frozen=True, slots=True)
class Top(Operator):
    """`top COUNT by KEYS`."""

    count: Expression
    keys: tuple[OrderedBy, ...]


@dataclass(frozen=True, slots=True)
class Take(Operator):
    """`take COUNT`."""

    count: Expression


@dataclass(frozen=True, slots=True)
class Count(Operator):
    """`count`, or `count as NAME`."""

    name: str = ""


@dataclass(frozen=True, slots=True)
class Distinct(Operator):
    """`distinct COLUMNS`; a star is a `Pattern`."""

    columns: tuple[Named, ...]


@dataclass(frozen=True, slots=True)
class Summarize(Operator):
    """`summarize AGGREGATES by KEYS`."""

    aggregates: tuple[Named, ...]
    keys: tuple[Named, ...] = ()
    parameters: tuple[Parameter, ...] = ()
    bin: Expression | None = None


@dataclass(frozen=True, slots=True)
class Join(Operator):
    """`join` or `lookup` (`keyword`) with `(RIGHT) on CONDITIONS`."""

    keyword: str
    right: Expression
    conditions: tuple[Expression, ...]
    parameters: tuple[Parameter, ...] = ()


@dataclass(frozen=True, slots=True)
class Union(Operator):
    """`union INPUTS`."""

    inputs: tuple[Expression, ...]
    parameters: tuple[Parameter, ...] = ()


@dataclass(frozen=True, slots=True)
class Search(Operator):
    """`search in (TABLES) PREDICATE`."""

    predicate: Expression
    tables: tuple[Expression, ...] = ()
    parameters: tuple[Parameter, ...] = ()


@dataclass(frozen=True, slots=True)
class Find(Operator):
    """`find in (TABLES) where PREDICATE project COLUMNS`; `smart` stands for `project-smart`."""

    predicate: Expression
    tables: tuple[Expression, ...] = ()
    columns: tuple[FindColumn, ...] = ()
    smart: bool = False
    away: tuple[Expression, ...] = ()
    parameters: tuple[Parameter, ...] = ()


@dataclass(frozen=True, slots=True)
class FindColumn(Node):
    """`NAME`, `NAME : TYPE` or `pack(*)` (then the name is a star)."""

    name: str
    type: str = ""


@dataclass(frozen=True, slots=True)
class Expansion(Node):
    """`COLUMN to typeof(TYPE)` of `mv-expand` and `mv-apply`."""

    column: Named
    type: str = ""


@dataclass(frozen=True, slots=True)
class MvExpand(Operator):
    """`mv-expand COLUMNS limit LIMIT`."""

    columns: tuple[Expansion, ...]
    limit: Expression | None = None
    parameters: tuple[Parameter, ...] = ()


@dataclass(frozen=True, slots=True)
class MvApply(Operator):
    """`mv-apply COLUMNS limit LIMIT id ID on (BODY)`."""

    columns: tuple[Expansion, ...]
    body: tuple[Operator, ...]
    limit: Expression | None = None
    id: Expression | None = None
    parameters: tuple[Parameter, ...] = ()


@dataclass(frozen=True, slots=True)
class ParseColumn(Node):
    """`NAME : TYPE` in the pattern of `parse`; a star is the name `*`."""

    name: str
    type: str = ""


@dataclass(frozen=True, slots=True)
class Parse(Operator):
    """`parse` or `parse-where` (`keyword`) with `EXPRESSION with PATTERN`: texts and columns."""

    keyword: str
    expression: Expression
    pattern: tuple[Literal | ParseColumn, ...]
    parameters: tuple[Parameter, ...] = ()


@dataclass(frozen=True, slots=True)
class ParseKv(Operator):
    """`parse-kv EXPRESSION as (COLUMNS) with (OPTIONS)`."""

    expression: Expression
    columns: tuple[ColumnType, ...]
    options: tuple[Argument, ...] = ()


@dataclass(frozen=True, slots=True)
class SeriesAggregate(Node):
    """`COLUMN default = DEFAULT` of `make-series`."""

    column: Named
    default: Expression | None = None


@dataclass(frozen=True, slots=True)
class MakeSeries(Operator):
    """`make-series AGGREGATES on AXIS from FIRST to LAST step STEP by KEYS`, or `in range(FIRST, LAST, STEP)`."""

    aggregates: tuple[SeriesAggregate, ...]
    axis: Named
    first: Expression | None
    last: Expression | None
    step: Expression
    keys: tuple[Named, ...] = ()
    parameters: tuple[Parameter, ...] = ()
    in_range: bool = False


@dataclass(frozen=True, slots=True)
class Evaluate(Operator):
    """`evaluate CALL : SCHEMA`."""

    call: Call
    schema: Schema | None = None
    parameters: tuple[Parameter, ...] = ()


@dataclass(frozen=True, slots=True)
class Invoke(Operator):
    """`invoke CALL`."""

    call: Call


@dataclass(frozen=True, slots=True)
class Partition(Operator):
    """`partition by KEY (BODY)`, or with `{BODY}` a whole query."""

    key: Expression
    body: tuple[Operator, ...] = ()
    query: Expression | None = None
    parameters: tuple[Parameter, ...] = ()


@dataclass(frozen=True, slots=True)
class Branch(Node):
    """`NAME = (OPERATORS)` of `fork`."""

    operators: tuple[Operator, ...]
    name: str = ""


@dataclass(frozen=True, slots=True)
class Fork(Operator):
    """`fork BRANCHES`."""

    branches: tuple[Branch, ...]


@dataclass(frozen=True, slots=True)
class Facet(Operator):
    """`facet by COLUMNS with (OPERATORS)`."""

    columns: tuple[Expression, ...]
    operators: tuple[Operator, ...] = ()


@dataclass(frozen=True, slots=True)
class NestedLevel(Node):
    """`COUNT of KEY with others = OTHERS by ORDER` of `top-nested`."""

    count: Expression | None
    key: Named
    order: OrderedBy
    others: Expression | None = None


@dataclass(frozen=True, slots=True)
class TopNested(Operator):
    """`top-nested LEVEL, top-nested LEVEL ...`."""

    levels: tuple[NestedLevel, ...]


@dataclass(frozen=True, slots=True)
class TopHitters(Operator):
    """`top-hitters COUNT of KEY by WEIGHT`."""

    count: Expression
    key: Named
    weight: Expression | None = None


@dataclass(frozen=True, slots=True)
class Sample(Operator):
    """`sample COUNT`, or `sample-distinct COUNT of KEY`."""

    count: Expression
    key: Named | None = None


@dataclass(frozen=True, slots=True)
class Serialize(Operator):
    """`serialize COLUMNS`."""

    columns: tuple[Named, ...] = ()


@dataclass(frozen=True, slots=True)
class As(Operator):
    """`as NAME`."""

    name: str
    parameters: tuple[Parameter, ...] = ()


@dataclass(frozen=True, slots=True)
class GetSchema(Operator):
    """`getschema`."""


@dataclass(frozen=True, slots=True)
class Consume(Operator):
    """`consume`."""

    parameters: tuple[Parameter, ...] = ()


@dataclass(frozen=True, slots=True)
class Reduce(Operator):
    """`reduce by EXPRESSION with OPTIONS`."""

    expression: Expression
    options: tuple[Argument, ...] = ()


@dataclass(frozen=True, slots=True)
class Render(Operator):
    """`render KIND with (OPTIONS)`."""

    kind: str
    options: tuple[Argument, ...] = ()


@dataclass(frozen=True, slots=True)
class ScanStep(Node):
    """`step NAME OUTPUT: CONDITION => ASSIGNMENTS;` of `scan`."""

    name: str
    condition: Expression
    assignments: tuple[Named, ...] = ()
    output: str = ""
    optional: bool = False


@dataclass(frozen=True, slots=True)
class ScanColumn(Node):
    """`NAME : TYPE = DEFAULT` of `scan declare`."""

    name: str
    type: str
    default: Expression | None = None


@dataclass(frozen=True, slots=True)
class Scan(Operator):
    """`scan PARAMETERS order by ... partition by ... declare (COLUMNS) with (STEPS)`."""

    steps: tuple[ScanStep, ...]
    columns: tuple[ScanColumn, ...] = ()
    order: tuple[OrderedBy, ...] = ()
    partition: tuple[Named, ...] = ()
    parameters: tuple[Parameter, ...] = ()


@dataclass(frozen=True, slots=True)
class Unread(Operator):
    """An operator that is known by name and not read further: graphs, `assert-schema`. `text` is as written."""

    keyword: str
    text: str


# --------------------------------------------------------------------------------------------- statements


@dataclass(frozen=True, slots=True)
class FunctionParameter(Node):
    """`NAME : TYPE = DEFAULT`, or `NAME : (COLUMNS)` with `schema`."""

    name: str
    type: str = ""
    schema: Schema | None = None
    default: Expression | None = None


@dataclass(frozen=True, slots=True)
class Function(Expression):
    """`(PARAMETERS) { STATEMENTS; BODY }`, the value of a `let`; `view` stands before it."""

    parameters: tuple[FunctionParameter, ...]
    statements: tuple[Statement, ...]
    body: Expression | None
    view: bool = False


@dataclass(frozen=True, slots=True)
class Statement(Node):
    """What ends with a semicolon."""


@dataclass(frozen=True, slots=True)
class Let(Statement):
    """`let NAME = VALUE`."""

    name: str
    value: Expression


@dataclass(frozen=True, slots=True)
class Set(Statement):
    """`set NAME = VALUE`."""

    name: str
    value: Expression | None = None


@dataclass(frozen=True, slots=True)
class Declare(Statement):
    """`declare query_parameters(PARAMETERS)`."""

    parameters: tuple[FunctionParameter, ...]


@dataclass(frozen=True, slots=True)
class UnreadStatement(Statement):
    """`alias`, `restrict` and `declare pattern`, known by name and not read further. `text` is as written."""

    keyword: str
    text: str


@dataclass(frozen=True, slots=True)
class Query(Statement):
    """A statement that is an expression: a table or a value."""

    expression: Expression


@dataclass(frozen=True, slots=True)
class Script(Node):
    """Everything in one text."""

    statements: tuple[Statement, ...]

"""The tree of a KQL text: frozen nodes. `at` is the offset where a node begins, and no part of equality.

A query in brackets, an argument or the value of a `let` may be a `Pipeline`, so pipelines and sources are expressions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, replace
from typing import Any, dataclass_transform

from kql_duckdb.syntax.grammar import OPERATORS, OTHERS


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
@dataclass(frozen=True)
class Node:
    at: int = field(default=-1, compare=False, kw_only=True, repr=False)

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        dataclass(frozen=True)(cls)


class Expression(Node):
    """A value, a table, or what a name turns out to be."""


class Literal(Expression):
    """A constant. `kind` is a KQL type; `value` is None for null, else a bool, int, float, Decimal, naive UTC datetime,
    str, UUID, the ticks of 100 ns of a timespan, or for a dynamic what `json.loads` gives."""

    kind: str
    value: Any


class Name(Expression):
    name: str


class Pattern(Expression):
    """A name with stars, such as `Device*` or `*`."""

    pattern: str


class TypeOf(Expression):
    types: tuple[str, ...]


class Argument(Node):
    """`VALUE` or `NAME = VALUE`: of a call, of options, or a parameter beside an operator, such as `kind = inner`."""

    value: Expression
    name: str | None = None


class Call(Expression):
    name: str
    arguments: tuple[Argument, ...] = ()


class Qualified(Expression):
    """`OWNER.MEMBER` where the member is a call or the owner one: `cluster("x").database("y").T`."""

    owner: Expression
    member: Expression


class Member(Expression):
    value: Expression
    name: str


class Index(Expression):
    value: Expression
    index: Expression


class Binary(Expression):
    """The operator is spelled as in KQL, `:` is that of `search`."""

    operator: str
    left: Expression
    right: Expression


class Operation(Expression):
    """Any other operator: `and` and `or` as flat as they are written, `unary-`, `between` and its negation of three
    operands, and `in`, `has_any` and their kind of a value and the items of a list."""

    operator: str
    operands: tuple[Expression, ...]


class Named(Node):
    """`EXPRESSION`, `NAME = EXPRESSION` or `(NAMES) = EXPRESSION` (`several` then is true), as a key of an order with
    `asc nulls first` or the like behind it."""

    expression: Expression
    names: tuple[str, ...] = ()
    several: bool = False
    direction: str = ""
    nulls: str = ""


class Column(Node):
    """`NAME : TYPE`; the type may be missing in `find` and in the pattern of `parse`, where a star is a name too."""

    name: str
    type: str = ""


class Schema(Node):
    """`(COLUMNS)`, or `(*)` and `(*, COLUMNS)` with `open`."""

    columns: tuple[Column, ...]
    open: bool = False


class Construct(Expression):
    """What the row of the grammar for `word` describes; its fields are attributes."""

    word: str
    fields: dict[str, Any]

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__["fields"][name]
        except KeyError:
            raise AttributeError(name) from None

    def parameter(self, *names: str) -> str:
        """The value of a parameter by any of its names, as text; empty if it is not given."""
        value = next((one.value for one in self.parameters if one.name in names), None)
        return value.name if isinstance(value, Name) else str(value.value) if isinstance(value, Literal) else ""


def construct(word: str, at: int = -1, **written: Any) -> Construct:
    """Make a node of a row of the grammar from those of its fields that are written."""
    rule = OPERATORS.get(word) or OTHERS[word]
    return Construct(word, {**rule.fields, **written}, at=at)


class Pipeline(Expression):
    """`SOURCE | OPERATOR | ...`. Without operators it is brackets around a source, which are not kept."""

    source: Expression
    operators: tuple[Construct, ...]


class FunctionParameter(Node):
    """`NAME : TYPE = DEFAULT`, or `NAME : (COLUMNS)` with `schema`."""

    name: str
    type: str = ""
    schema: Schema | None = None
    default: Expression | None = None


class Function(Expression):
    """`(PARAMETERS) { STATEMENTS; BODY }`, the value of a `let`; `view` stands before it."""

    parameters: tuple[FunctionParameter, ...]
    statements: tuple[Construct, ...]
    body: Expression | None
    view: bool = False


class Query(Node):
    """A statement that is an expression: a table or a value."""

    expression: Expression


class Script(Node):
    """Statements: `let`, `set`, `declare`, and what is known by name and not read further."""

    statements: tuple[Query | Construct, ...]


def nodes(value: Any, *skipped: type[Node]) -> Iterator[Node]:
    """Every node of a tree, the outermost first, without those of some kinds and what they hold."""
    if isinstance(value, Node):
        if not isinstance(value, skipped):
            yield value
            for one in fields(value):
                yield from nodes(getattr(value, one.name), *skipped)
    elif isinstance(value, (tuple, dict)):
        for one in value.values() if isinstance(value, dict) else value:
            yield from nodes(one, *skipped)


def rebuilt(node: Node, change: Callable[[Node], Node]) -> Any:
    """`node` with what `change` makes of each node directly inside it."""

    def changed(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: changed(one) for name, one in value.items()}
        if isinstance(value, tuple):
            return tuple(map(changed, value))
        return change(value) if isinstance(value, Node) else value

    return replace(node, **{one.name: changed(getattr(node, one.name)) for one in fields(node)})


def unplaced(node: Node) -> Any:
    """A tree that belongs to no text which a person sees: every place is -1."""
    return replace(rebuilt(node, unplaced), at=-1)

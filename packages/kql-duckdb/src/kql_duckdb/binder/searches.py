"""`search`, `find`, and `where * has "term"`: rows found by what any of their columns hold.

A bare term is looked for, as `has` does, in the texts of a row: string, dynamic and guid columns. A term without a
letter could also stand in a number or a time, whose text form is not pinned down, so it is refused unless it is dotted
as an address is. `Column:"term"` is `has`; a star makes it a prefix, a suffix or a part.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any

from kql_duckdb.algebra import Column, Extend, Filter, Project, Relation
from kql_duckdb.binder.environment import Environment
from kql_duckdb.binder.expressions import bind_condition
from kql_duckdb.binder.needed import needed_columns
from kql_duckdb.binder.scope import Scope
from kql_duckdb.binder.unions import input_relations, united
from kql_duckdb.errors import KqlError, not_supported
from kql_duckdb.expressions import literal
from kql_duckdb.syntax import ast
from kql_duckdb.types import KustoType

if TYPE_CHECKING:
    from kql_duckdb.binder.binder import Binder

_LABEL = "$table"
_ROW_TEXT = "$row text"
_TEXTS = (KustoType.STRING, KustoType.DYNAMIC, KustoType.GUID)
_WITHIN = frozenset(
    ("has", "has_cs", "contains", "contains_cs", "hasprefix", "hassuffix", "hasprefix_cs", "hassuffix_cs")
)
_SEPARATOR = "\x01"
"""Between the texts of a row: no letter or digit, so no term reaches from one column into the next."""


def search(
    binder: Binder,
    before: Relation | None,
    node: ast.Search,
    environment: Environment,
    following: Sequence[ast.Operator] = (),
) -> Relation:
    """The rows that a predicate finds, in `before` or in tables, with the name of the table as first column."""
    sensitive = any(isinstance(one.value, ast.Name) and one.value.name == "case_sensitive" for one in node.parameters)
    if before is not None:
        if node.tables:
            raise not_supported("search in", "after a table")
        found = _found(binder, before, node.predicate, environment, sensitive)
        return united([replace(found, label=before.label or "union_arg0")], source=_LABEL)
    relations = _searched(binder, node.tables, environment)
    matching = [
        replace(_found(binder, one, node.predicate, environment, sensitive), label=one.label)
        for one in relations
        if _may_match(one, node.predicate, environment)
    ]
    _refuse_unknown(relations, node.predicate, environment)
    return united(matching or relations[:1], source=_LABEL, needed=needed_columns(following))


def _searched(binder: Binder, tables: Sequence[ast.Expression], environment: Environment) -> list[Relation]:
    return [relation for one in tables or (ast.Pattern("*"),) for relation in input_relations(binder, one, environment)]


def _may_match(relation: Relation, predicate: ast.Expression, environment: Environment) -> bool:
    """Whether a table can hold a row that is found: a test of a column that it lacks is false."""

    def is_false(node: ast.Expression) -> bool:
        if isinstance(node, ast.Logical):
            found = [is_false(one) for one in node.operands]
            return any(found) if node.operator == "and" else all(found)
        if isinstance(node, ast.Call) and node.name == "not":
            return False
        names = _column_names(node)
        return any(relation.column(name) is None and environment.find(name) is None for name in names)

    return not is_false(predicate)


def _refuse_unknown(relations: Sequence[Relation], predicate: ast.Expression, environment: Environment) -> None:
    known = {column.name for relation in relations for column in relation.columns}
    for name in _column_names(predicate):
        if name not in known and environment.find(name) is None:
            raise KqlError(f"Failed to resolve column or scalar expression named '{name}'.", "SEM0100")


def _column_names(node: Any) -> Iterator[str]:
    """The names that an expression reads; lets are among them, since who binds it knows the difference."""
    if isinstance(node, ast.Name):
        yield node.name
    elif isinstance(node, tuple):
        for one in node:
            yield from _column_names(one)
    elif isinstance(node, ast.Node) and not isinstance(node, ast.Pipeline):
        for one in fields(node):
            yield from _column_names(getattr(node, one.name))


def mentions_any_column(node: Any) -> bool:
    """Whether `* has "x"` stands somewhere in a predicate."""
    if isinstance(node, ast.Binary) and isinstance(node.left, ast.Pattern):
        return True
    if isinstance(node, tuple):
        return any(mentions_any_column(one) for one in node)
    if not is_dataclass(node) or isinstance(node, (ast.Pipeline, ast.Literal, ast.Name)):
        return False
    return any(mentions_any_column(getattr(node, one.name)) for one in fields(node))


def where_any_column(
    binder: Binder, relation: Relation, predicate: ast.Expression, environment: Environment
) -> Relation:
    """The rows for which a predicate with `* has "x"` in it holds."""
    return _filtered(binder, relation, _any_column(predicate, relation), environment)


def _found(
    binder: Binder, relation: Relation, predicate: ast.Expression, environment: Environment, sensitive: bool
) -> Relation:
    if isinstance(predicate, ast.Pattern) and predicate.pattern == "*":
        return relation
    return _filtered(binder, relation, _as_condition(binder, relation, predicate, environment, sensitive), environment)


def _filtered(binder: Binder, relation: Relation, condition: ast.Expression, environment: Environment) -> Relation:
    columns = relation.columns
    if _ROW_TEXT in _column_names(condition):
        text = Column(_ROW_TEXT, KustoType.STRING, _ROW_TEXT, nullable=False)
        relation = Extend((*columns, text), relation, ((_ROW_TEXT, _row_text(columns)),))
    scope = Scope(binder, relation, environment)
    test = bind_condition(scope, condition)
    kept = Filter(scope.relation.columns, scope.relation, test.sql)
    return Project(columns, kept, tuple((column.identifier, column.sql) for column in columns))


def _row_text(columns: Sequence[Column]) -> str:
    texts = [column.sql for column in columns if column.type in _TEXTS and column.name != _LABEL]
    return f"concat_ws({literal(_SEPARATOR, KustoType.STRING).sql}, {', '.join(texts)})" if texts else "''"


def _as_condition(
    binder: Binder, relation: Relation, node: ast.Expression, environment: Environment, sensitive: bool
) -> ast.Expression:
    """The predicate of `search` as one of `where`: a text in place of a truth is a term for every text of the row."""

    def inner(one: ast.Expression) -> ast.Expression:
        return _as_condition(binder, relation, one, environment, sensitive)

    if isinstance(node, ast.Literal) and node.kind == "string":
        return _term(str(node.value), "has_cs" if sensitive else "has")
    if isinstance(node, ast.Pattern):
        return ast.Literal("bool", True)
    if isinstance(node, ast.Logical):
        return replace(node, operands=tuple(inner(one) for one in node.operands))
    if isinstance(node, ast.Call) and node.name == "not":
        return replace(node, arguments=tuple(replace(one, value=inner(one.value)) for one in node.arguments))
    lacking = [name for name in _column_names(node) if relation.column(name) is None and environment.find(name) is None]
    if lacking:
        return ast.Literal("bool", False)
    if isinstance(node, ast.Binary) and node.operator == ":":
        return _in_column(node, sensitive)
    condition: ast.Expression = _any_column(node, relation)
    return condition


def _in_column(node: ast.Binary, sensitive: bool) -> ast.Expression:
    right = node.right
    if not isinstance(right, ast.Literal):
        raise not_supported("search :", "its right side must be a constant")
    if right.kind != "string":
        return ast.Binary("==", node.left, right, at=node.at)
    text = str(right.value)
    if text == "*":
        return ast.Call("isnotempty", (ast.Argument(node.left),), at=node.at)
    operator = _operator_for(text) + ("_cs" if sensitive else "")
    return ast.Binary(operator, node.left, ast.Literal("string", text.strip("*")), at=node.at)


def _operator_for(term: str) -> str:
    """The operator that a term with stars stands for."""
    inner = term.strip("*")
    if "*" in inner or not inner:
        raise not_supported("search", "a star inside a term")
    if term.startswith("*") and term.endswith("*"):
        return "contains"
    if term.endswith("*"):
        return "hasprefix"
    return "hassuffix" if term.startswith("*") else "has"


def _any_column(node: Any, relation: Relation) -> Any:
    """The predicate with each `* operator "term"` as one over the text of the row, or over each column."""
    if isinstance(node, ast.Binary) and isinstance(node.left, ast.Pattern):
        if isinstance(node.right, ast.Literal) and node.right.kind == "string":
            text = str(node.right.value)
            if node.operator in ("==", "=~", "startswith", "endswith", "matches regex", "startswith_cs", "endswith_cs"):
                return _over_each(node, relation)
            return _term(text, node.operator)
        return _over_each(node, relation)
    if isinstance(node, tuple):
        return tuple(_any_column(one, relation) for one in node)
    if not is_dataclass(node) or isinstance(node, (ast.Pipeline, ast.Literal, ast.Name)):
        return node
    changes = {one.name: _any_column(getattr(node, one.name), relation) for one in fields(node) if one.name != "at"}
    return replace(node, **changes)  # type: ignore[type-var]  # every node is a dataclass


def _over_each(node: ast.Binary, relation: Relation) -> ast.Expression:
    """`* == "x"`: any text of the row."""
    tests = tuple(
        replace(node, left=ast.Name(column.name)) for column in relation.columns if column.type is KustoType.STRING
    )
    return ast.Logical("or", tests) if tests else ast.Literal("bool", False)


def _term(term: str, operator: str) -> ast.Expression:
    if "*" in term:
        base = _operator_for(term)
        operator = base + ("_cs" if operator.endswith("_cs") else "")
        term = term.strip("*")
    if not any(character.isalpha() for character in term) and not _is_dotted(term):
        raise not_supported("search", "a term needs a letter, or is an address")
    if operator.removeprefix("!") not in _WITHIN or _SEPARATOR in term:
        raise not_supported(f"* {operator}")
    return ast.Binary(operator, ast.Name(_ROW_TEXT), ast.Literal("string", term))


def _is_dotted(term: str) -> bool:
    """Whether a term looks like an address or its beginning: numbers with at least two dots."""
    parts = term.removesuffix(".").split(".")
    return len(parts) > 2 and all(part.isdigit() for part in parts)


# --------------------------------------------------------------------------------------------- find


def find(binder: Binder, node: ast.Find, environment: Environment) -> Relation:
    """`find`: the rows of each table that fulfil a predicate, with the source and the columns asked for."""
    source = "source_"
    for one in node.parameters:
        if one.name in ("withsource", "with_source") and isinstance(one.value, ast.Name):
            source = one.value.name
    if not node.columns or any(one.name == "*" for one in node.columns):
        raise not_supported("find", "without a list of columns; write project A, B")
    if node.away:
        raise not_supported("find", "with project-away")
    wanted = {one.name for one in node.columns}
    parts = []
    for relation in _searched(binder, node.tables, environment):
        if not _may_match(relation, node.predicate, environment):
            continue
        found = _found(binder, relation, node.predicate, environment, False)
        columns = tuple(column for column in found.columns if column.name in wanted)
        items = tuple((column.identifier, column.sql) for column in columns)
        parts.append(replace(Project(columns, found, items), label=relation.label))
    if not parts:
        raise KqlError("No table has the columns that find looks at.", "SEM0100")
    made = united(parts, source=source)
    order = [source, *(one.name for one in node.columns)]
    for name in order:
        if made.column(name) is None:
            raise not_supported("find", f"column '{name}' has several types or no table")
    chosen = tuple(column for name in order if (column := made.column(name)) is not None)
    return Project(chosen, made, tuple((column.identifier, column.sql) for column in chosen))

"""`join` and `lookup`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from kql_duckdb.algebra import Column, Item, Join, Relation, Template, identifiers
from kql_duckdb.binder.environment import Environment
from kql_duckdb.binder.messages import unresolved
from kql_duckdb.binder.scope import Scope
from kql_duckdb.errors import KqlError
from kql_duckdb.expressions import Typed
from kql_duckdb.syntax import ast
from kql_duckdb.types import NUMBERS, KustoType

if TYPE_CHECKING:
    from kql_duckdb.binder.binder import Binder

_KINDS = {
    "innerunique": "INNER",
    "inner": "INNER",
    "leftouter": "LEFT",
    "rightouter": "RIGHT",
    "fullouter": "FULL",
    "leftsemi": "SEMI",
    "rightsemi": "SEMI",
    "leftanti": "ANTI",
    "anti": "ANTI",
    "leftantisemi": "ANTI",
    "rightanti": "ANTI",
    "rightantisemi": "ANTI",
}
_OF_RIGHT = frozenset(("rightsemi", "rightanti", "rightantisemi"))


def join(binder: Binder, left: Relation, node: ast.Join, environment: Environment) -> Relation:
    """The relation of one `join` or `lookup`."""
    kind = "leftouter" if node.keyword == "lookup" else "innerunique"
    for one in node.parameters:
        if one.name == "kind":
            kind = one.value.name if isinstance(one.value, ast.Name) else str(getattr(one.value, "value", ""))
    if kind not in _KINDS or (node.keyword == "lookup" and kind not in ("leftouter", "inner")):
        raise KqlError(f"'{kind}' is no kind of {node.keyword}.", "SEM0001")
    if not node.conditions:
        raise KqlError(f"'{node.keyword}' needs its keys: on Column, or on $left.A == $right.B.", "SYN0002")
    right = binder.table(node.right, environment)
    pairs = [pair for condition in node.conditions for pair in _pairs(binder, left, right, condition)]
    sides = _Sides(binder, left, right, environment)
    keys = [sides.bound(pair) for pair in pairs]
    left, right = sides.left.relation, sides.right.relation
    if node.keyword == "lookup":
        dropped = {two.name for _, two in pairs}
        return joined(left, right, kind, keys, [column for column in right.columns if column.name not in dropped])
    if kind in _OF_RIGHT:
        swapped = [(two, one) for one, two in keys]
        return _semi(right, left, _KINDS[kind], swapped)
    if _KINDS[kind] in ("SEMI", "ANTI"):
        return _semi(left, right, _KINDS[kind], keys)
    if kind == "innerunique":
        left = _unique(left, [one for one, _ in keys])
    return joined(left, right, kind, keys, list(right.columns))


Pair = tuple[ast.Name, ast.Name]
Keys = tuple[Typed, Typed]


def _pairs(binder: Binder, left: Relation, right: Relation, node: ast.Expression) -> Iterator[Pair]:
    """The columns that are compared: `a`, `$left.a == $right.b`, and such with `and` between them."""
    if isinstance(node, ast.Logical) and node.operator == "and":
        for one in node.operands:
            yield from _pairs(binder, left, right, one)
        return
    if isinstance(node, ast.Name):
        yield node, node
        return
    if isinstance(node, ast.Binary) and node.operator == "==":
        first, second = _side(node.left), _side(node.right)
        if first is not None and second is not None and {first[0], second[0]} == {"$left", "$right"}:
            of_left, of_right = (first, second) if first[0] == "$left" else (second, first)
            yield ast.Name(of_left[1], at=node.left.at), ast.Name(of_right[1], at=node.right.at)
            return
        if isinstance(node.left, ast.Name) and node.left == node.right:
            yield node.left, node.left
            return
    raise binder.placed(
        KqlError("A key of a join is a column of both sides, or $left.Column == $right.Column.", "SEM0023"), node
    )


def _side(node: ast.Expression) -> tuple[str, str] | None:
    if isinstance(node, ast.Member) and isinstance(node.value, ast.Name) and node.value.name in ("$left", "$right"):
        return node.value.name, node.name
    if isinstance(node, ast.Index) and isinstance(node.value, ast.Name) and node.value.name in ("$left", "$right"):
        index = node.index
        if isinstance(index, ast.Literal) and index.kind == "string":
            return node.value.name, str(index.value)
    return None


class _Sides:
    """Both sides while their keys are bound; a key that differs in type is computed ahead on its side."""

    def __init__(self, binder: Binder, left: Relation, right: Relation, environment: Environment) -> None:
        self.binder = binder
        self.left = Scope(binder, left, environment)
        self.right = Scope(binder, right, environment)

    def bound(self, pair: Pair) -> Keys:
        left, right = (self._column(scope, name) for scope, name in zip((self.left, self.right), pair, strict=True))
        if KustoType.DYNAMIC in (left.type, right.type):
            raise self.binder.placed(
                KqlError("A dynamic cannot be the key of a join: convert it with tostring() first.", "SEM0001"), pair[0]
            )
        if left.type is not right.type and not {left.type, right.type} <= NUMBERS:
            raise self.binder.placed(
                KqlError(
                    f"The keys '{pair[0].name}' ({left.type}) and '{pair[1].name}' ({right.type}) are of two types.",
                    "SEM0025",
                ),
                pair[0],
            )
        return left, right

    def _column(self, scope: Scope, name: ast.Name) -> Typed:
        found = scope.find(name.name)
        if found is None:
            raise self.binder.placed(unresolved("column or scalar", name.name, scope.names()), name)
        return found


def key_of(value: Typed, alias: str = "") -> str:
    """A key, of the side `alias` if there is one; a missing text is the empty one."""
    text = f"{alias}.{value.sql}" if alias else value.sql
    return f"coalesce({text}, '')" if value.type is KustoType.STRING and value.nullable else text


def _condition(keys: Sequence[Keys]) -> str:
    return " AND ".join(f"{key_of(one, 'l')} = {key_of(two, 'r')}" for one, two in keys)


def _semi(kept: Relation, other: Relation, kind: str, keys: Sequence[Keys]) -> Relation:
    items = tuple((column.identifier, f"l.{column.sql}") for column in kept.columns)
    return Join(kept.columns, kept, other, kind, _condition(keys), items)


def _unique(left: Relation, keys: Sequence[Typed]) -> Relation:
    """One row of the left side for each combination of keys."""
    columns = ", ".join(column.sql for column in left.columns)
    by = ", ".join(key_of(key, "l") for key in keys)
    return Template(left.columns, (left,), (f"SELECT DISTINCT ON ({by}) {columns} FROM ", 0, " AS l"))


def joined(left: Relation, right: Relation, kind: str, keys: Sequence[Keys], of_right: Sequence[Column]) -> Join:
    """All columns of the left side, then those of the right one, renamed where a name is taken."""
    how = _KINDS[kind]
    names = [column.name for column in left.columns]
    for column in of_right:
        name, number = column.name, 0
        while name in names:
            number += 1
            name = f"{column.name}{number}"
        names.append(name)
    columns, items = [], []
    sources = [("l", one, how in ("RIGHT", "FULL")) for one in left.columns]
    sources += [("r", one, how in ("LEFT", "FULL")) for one in of_right]
    for (alias, column, may_lack), name, identifier in zip(sources, names, identifiers(names), strict=True):
        text = column.type is KustoType.STRING
        sql = f"{alias}.{column.sql}"
        filled = may_lack and text
        columns.append(
            replace(
                column,
                name=name,
                identifier=identifier,
                nullable=False if filled else column.nullable or (may_lack and not text),
            )
        )
        item: Item = (identifier, f"coalesce({sql}, '')" if filled else sql)
        items.append(item)
    return Join(tuple(columns), left, right, how, _condition(keys), tuple(items))

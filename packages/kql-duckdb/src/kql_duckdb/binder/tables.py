"""Rows of several tables: `join`, `lookup`, `union`, `search`, `find`, and `where * has "term"`.

Where inputs of a union give one name to several types, each type has a column of its own, named `Name_type`, at the
place of the first. Columns come in the order in which the inputs have them. An input that lacks a column gives nulls,
and the empty text for a string.

A bare term of a search is looked for, as `has` does, in the texts of a row: string, dynamic and guid columns. A term
without a letter could also stand in a number or a time, whose text form is not pinned down, so it is refused unless it
is dotted as an address is. `Column:"term"` is `has`; a star makes it a prefix, a suffix or a part.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from kql_duckdb.algebra import Column, Relation, Source, key_of, made_columns, projected
from kql_duckdb.binder.expressions import bind_condition
from kql_duckdb.binder.naming import Namer, matches, needed_columns
from kql_duckdb.binder.scope import Environment, Scope
from kql_duckdb.errors import KqlError, not_supported
from kql_duckdb.expressions import Typed, literal
from kql_duckdb.syntax import ast
from kql_duckdb.types import DYNAMIC, GUID, NUMBERS, STRING, KustoType

_KINDS = {
    "innerunique": "INNER", "inner": "INNER", "leftouter": "LEFT", "rightouter": "RIGHT", "fullouter": "FULL",
    **dict.fromkeys(("leftsemi", "rightsemi"), "SEMI"),
    **dict.fromkeys(("leftanti", "anti", "leftantisemi", "rightanti", "rightantisemi"), "ANTI"),
}  # fmt: skip
_OF_RIGHT = frozenset(("rightsemi", "rightanti", "rightantisemi"))


def join(scope: Scope, node: ast.Construct) -> Relation:
    kind = node.parameter("kind") or ("leftouter" if node.word == "lookup" else "innerunique")
    if kind not in _KINDS or (node.word == "lookup" and kind not in ("leftouter", "inner")):
        raise KqlError(f"'{kind}' is no kind of {node.word}.")
    if not node.conditions:
        raise KqlError(f"'{node.word}' needs its keys: on Column, or on $left.A == $right.B.", "SYN0002")
    other = scope.over(scope.table(node.right))
    pairs = [pair for condition in node.conditions for pair in _pairs(scope, condition)]
    keys = [_keys(scope, other, *pair) for pair in pairs]
    left, right = scope.relation, other.relation
    if node.word == "lookup":
        return joined(left, right, kind, keys, keep_keys=False)
    if _KINDS[kind] in ("SEMI", "ANTI"):
        if kind in _OF_RIGHT:
            left, right, keys = right, left, [(two, one) for one, two in keys]
        both = _joined_rows(left, right, _KINDS[kind], keys)
        return both.computed(left.columns, (f"l.{column.sql}" for column in left.columns))
    if kind == "innerunique":
        # One row of the left side for each combination of keys.
        by = ", ".join(key_of(one, "l").sql for one, _ in keys)
        columns = ", ".join(column.sql for column in left.columns)
        left = Source(left.columns, (f"SELECT DISTINCT ON ({by}) {columns} FROM ", left, " AS l"), whole=True)
    return joined(left, right, kind, keys)


Keys = tuple[Typed, Typed]


def _pairs(scope: Scope, node: ast.Expression) -> list[tuple[ast.Name, ast.Name]]:
    """The columns that are compared: `a`, `$left.a == $right.b`, and such with `and` between them."""
    if isinstance(node, ast.Operation) and node.operator == "and":
        return [pair for one in node.operands for pair in _pairs(scope, one)]
    if isinstance(node, ast.Name):
        return [(node, node)]
    if isinstance(node, ast.Binary) and node.operator == "==":
        sides = dict(one for one in (_side(node.left), _side(node.right)) if one is not None)
        if len(sides) == 2:
            return [(sides["$left"], sides["$right"])]
        if isinstance(node.left, ast.Name) and node.left == node.right:
            return [(node.left, node.left)]
    message = "A key of a join is a column of both sides, or $left.Column == $right.Column."
    raise scope.binder.fault(node, message, "SEM0023")


def _side(node: ast.Expression) -> tuple[str, ast.Name] | None:
    """The side and the column of `$left.a` or `$left["a"]`."""
    owner = node.value if isinstance(node, (ast.Member, ast.Index)) else None
    if not isinstance(owner, ast.Name) or owner.name not in ("$left", "$right"):
        return None
    if isinstance(node, ast.Member):
        return owner.name, ast.Name(node.name, at=node.at)
    if isinstance(node, ast.Index) and isinstance(node.index, ast.Literal) and node.index.kind == "string":
        return owner.name, ast.Name(node.index.value, at=node.at)
    return None


def _keys(left: Scope, right: Scope, of_left: ast.Name, of_right: ast.Name) -> Keys:
    one, two = left.needed(of_left), right.needed(of_right)
    if DYNAMIC in (one.type, two.type):
        raise left.binder.fault(of_left, "A dynamic cannot be the key of a join: convert it with tostring() first.")
    if one.type is not two.type and not {one.type, two.type} <= NUMBERS:
        message = f"The keys '{one.name}' ({one.type}) and '{two.name}' ({two.type}) are of two types."
        raise left.binder.fault(of_left, message, "SEM0025")
    return one, two


def _joined_rows(left: Relation, right: Relation, how: str, keys: Sequence[Keys], condition: str = "") -> Source:
    """Rows of `left` (aliased l) and `right` (aliased r) with the same keys that fulfil `condition`."""
    tests = [condition] if condition else []
    tests += [f"{key_of(one, 'l').sql} = {key_of(two, 'r').sql}" for one, two in keys]
    return Source((), (left, f" AS l {how} JOIN ", right, f" AS r ON {' AND '.join(tests)}"))


def joined(
    left: Relation, right: Relation, kind: str, keys: Sequence[Keys], *, keep_keys: bool = True, condition: str = ""
) -> Relation:
    """All columns of the left side, then those of the right one, renamed where a name is taken."""
    how, dropped = _KINDS[kind], set[str]() if keep_keys else {two.name for _, two in keys}
    of_right = [column for column in right.columns if column.name not in dropped]
    namer = Namer(column.name for column in of_right)
    values = [_of_side("l", one, lacking=how in ("RIGHT", "FULL")) for one in left.columns]
    values += [_of_side("r", one, lacking=how in ("LEFT", "FULL")) for one in of_right]
    rows = _joined_rows(left, right, how, keys, condition)
    return projected(rows, [value.named(namer.take(value.name)) for value in values])


def _of_side(alias: str, column: Column, *, lacking: bool) -> Typed:
    """A column of one side, which may lack the row."""
    value = replace(column.typed, sql=f"{alias}.{column.sql}", nullable=column.nullable or lacking)
    return key_of(value) if lacking else value


_WIDE = 8
"""Inputs beyond which only the columns that are read are written."""
_WRITTEN = 2_000
"""Cells of inputs and columns beyond which an input names only the columns that it has, which DuckDB plans faster."""


def union(
    scope: Scope, node: ast.Construct, following: Sequence[ast.Construct] = (), *, leads: bool = False
) -> Relation:
    """The relation of `union`, at the beginning or behind a relation."""
    is_fuzzy = node.parameter("isfuzzy").lower() in ("true", "1")
    inputs = [] if leads else [scope.relation]
    for one in node.inputs:
        inputs += _input_relations(scope, one, fuzzy=is_fuzzy)
    if not inputs:
        raise KqlError("union has no table: none of those that it names exists.", "SEM0100")
    return _united(
        inputs,
        inner=node.parameter("kind") == "inner",
        source=node.parameter("withsource", "with_source"),
        needed=needed_columns(following) if len(inputs) > _WIDE else None,
    )


def _input_relations(scope: Scope, node: ast.Expression, *, fuzzy: bool = False) -> list[Relation]:
    """The relations of one input, several for a pattern; with `fuzzy` none for a table that does not exist."""
    binder = scope.binder
    if isinstance(node, ast.Pattern):
        names = [name for name in binder.catalog.names() if matches(node.pattern, name)]
        if not names and not fuzzy:
            raise binder.fault(node, f"No table has a name like '{node.pattern}'.", "SEM0100")
        return [scope.outside({}).table(ast.Name(name, at=node.at)) for name in names]
    name = node.name if isinstance(node, ast.Name) else ""
    if fuzzy and name and scope.environment.get(name) is None and not binder.catalog.table(name):
        return []
    try:
        return [scope.table(node)]
    except KqlError as error:
        if fuzzy and error.code == "SEM0100" and not name and "table" in error.message:
            return []
        raise


def _united(
    inputs: Sequence[Relation], *, inner: bool = False, source: str = "", needed: frozenset[str] | None = None
) -> Relation:
    """The union of `inputs`; with `inner` only the columns that all have, with `source` a column that tells the input,
    with `needed` only columns that somebody reads."""
    kinds: dict[str, dict[KustoType, list[bool]]] = {}
    """Name of a column -> its types, each with whether it may be null in those inputs that have it."""
    for one in inputs:
        for column in one.columns:
            kinds.setdefault(column.name, {}).setdefault(column.type, []).append(column.nullable)
    values = {source: Typed("", STRING, nullable=False, name=source)} if source else {}
    originals = {source: ""} if source else {}
    """Name of a column -> the one that it has in the inputs."""
    for name, types in kinds.items():
        if inner and sum(map(len, types.values())) < len(inputs):
            continue
        for kind, nullable in types.items():
            shown = f"{name}_{kind}" if len(types) > 1 else name
            if needed is not None and shown not in needed and name not in needed:
                continue
            if shown in values:
                raise not_supported("union", f"it would give the name {shown} to two columns")
            lacking = len(nullable) < len(inputs) and kind is not STRING
            values[shown], originals[shown] = Typed("", kind, nullable=any(nullable) or lacking, name=shown), name
    made = made_columns(values.values())
    short = len(inputs) * len(made) > _WRITTEN
    parts = []
    for place, one in enumerate(inputs):
        own = {("", STRING): literal(one.label or f"union_arg{place}", STRING).sql}
        own |= {(column.name, column.type): column.sql for column in one.columns}
        cells = [(column, own.get((originals[column.name], column.type))) for column in made]
        written = {column: sql or literal(None, column.type).sql for column, sql in cells if sql or not short}
        parts.append(replace(one.computed(tuple(written), written.values()), columns=made))
    if len(parts) == 1 and not short:
        return parts[0]
    between = " UNION ALL BY NAME " if short else " UNION ALL "
    pieces = [piece for part in parts for piece in (between, part)]
    together = Source(made, tuple(pieces[1:]), whole=True)
    if not short:
        return together
    return together.computed(made, (f"coalesce({one.sql}, '')" if one.type is STRING else one.sql for one in made))


_LABEL = "$table"
_ROW_TEXT = "$row text"
_TEXTS = (STRING, DYNAMIC, GUID)
_LOGICAL = ("and", "or")
_WITHIN = frozenset(
    ("has", "has_cs", "contains", "contains_cs", "hasprefix", "hassuffix", "hasprefix_cs", "hassuffix_cs")
)
_OF_WHOLE = ("==", "=~", "startswith", "endswith", "matches regex", "startswith_cs", "endswith_cs")
"""Operators for which the texts of a row cannot be one text."""
_SEPARATOR = "\x01"
"""Between the texts of a row: no letter or digit, so no term reaches from one column into the next."""


def search(
    scope: Scope, node: ast.Construct, following: Sequence[ast.Construct] = (), *, leads: bool = False
) -> Relation:
    """The rows that a predicate finds, after a table or in tables, with the name of the table as first column."""
    sensitive = node.parameter("kind") == "case_sensitive"
    if not leads:
        if node.tables:
            raise not_supported("search in", "after a table")
        found = _found(scope, node.predicate, sensitive)
        return _united([replace(found, label=scope.relation.label or "union_arg0")], source=_LABEL)
    relations = _searched(scope, node.tables)
    searched = [
        one.filtered("FALSE")
        if _is_false(node.predicate, one, scope.environment)
        else replace(_found(scope.over(one), node.predicate, sensitive), label=one.label)
        for one in relations
    ]
    known = {column.name for relation in relations for column in relation.columns}
    for name in _column_names(node.predicate):
        if name not in known and scope.environment.get(name) is None:
            raise KqlError(f"Failed to resolve column or scalar expression named '{name}'.", "SEM0100")
    return _united(searched, source=_LABEL, needed=needed_columns(following))


def find(scope: Scope, node: ast.Construct) -> Relation:
    """`find`: the rows of each table that fulfil a predicate, with the source and the columns asked for."""
    source = node.parameter("withsource", "with_source") or "source_"
    names = [source, *(one.name for one in node.columns)]
    if not node.columns or "*" in names[1:]:
        raise not_supported("find", "without a list of columns; write project A, B")
    if node.away:
        raise not_supported("find", "with project-away")
    parts = []
    for relation in _searched(scope, node.tables):
        if not _is_false(node.predicate, relation, scope.environment):
            found = _found(scope.over(relation), node.predicate, False)
            kept = found.narrowed(column for column in found.columns if column.name in names[1:])
            parts.append(replace(kept, label=relation.label))
    if not parts:
        raise KqlError("No table has the columns that find looks at.", "SEM0100")
    made = _united(parts, source=source)
    lacking = next((name for name in names if made.column(name) is None), None)
    if lacking is not None:
        raise not_supported("find", f"column '{lacking}' has several types or no table")
    return made.narrowed(one for name in names if (one := made.column(name)) is not None)


def _searched(scope: Scope, tables: Sequence[ast.Expression]) -> list[Relation]:
    return [relation for one in tables or (ast.Pattern("*"),) for relation in _input_relations(scope, one)]


def _is_false(node: ast.Expression, relation: Relation, environment: Environment) -> bool:
    """Whether no row of a table can fulfil a predicate: a test of a column that it lacks is false."""
    if isinstance(node, ast.Operation) and node.operator in _LOGICAL:
        found = [_is_false(one, relation, environment) for one in node.operands]
        return any(found) if node.operator == "and" else all(found)
    if isinstance(node, ast.Call) and node.name == "not":
        return False
    return any(relation.column(name) is None and environment.get(name) is None for name in _column_names(node))


def _column_names(node: Any) -> Iterator[str]:
    """The names that an expression reads; lets are among them, since who binds it knows the difference."""
    return (one.name for one in ast.nodes(node, ast.Pipeline) if isinstance(one, ast.Name))


def where_any_column(scope: Scope, predicate: ast.Expression) -> Relation | None:
    """The rows for which a predicate with `* has "x"` in it holds; None for a predicate without."""
    found = ast.nodes(predicate, ast.Pipeline)
    if not any(isinstance(one, ast.Binary) and isinstance(one.left, ast.Pattern) for one in found):
        return None
    return _filtered(scope, _any_column(predicate, scope.relation))


def _found(scope: Scope, predicate: ast.Expression, sensitive: bool) -> Relation:
    if isinstance(predicate, ast.Pattern) and predicate.pattern == "*":
        return scope.relation
    return _filtered(scope, _as_condition(scope, predicate, sensitive))


def _filtered(scope: Scope, condition: ast.Expression) -> Relation:
    relation = scope.relation
    if _ROW_TEXT in _column_names(condition):
        texts = [column.sql for column in relation.columns if column.type in _TEXTS and column.name != _LABEL]
        row = f"concat_ws({literal(_SEPARATOR, STRING).sql}, {', '.join(texts)})" if texts else "''"
        text = Column(_ROW_TEXT, STRING, _ROW_TEXT, nullable=False)
        relation = relation.extended(((_ROW_TEXT, row),), (*relation.columns, text)).unordered()
    inner = scope.over(relation)
    test = bind_condition(inner, condition)
    return inner.relation.filtered(test.sql).unordered().narrowed(scope.relation.columns)


def _as_condition(scope: Scope, node: ast.Expression, sensitive: bool) -> ast.Expression:
    """The predicate of `search` as one of `where`: a text in place of a truth is a term for every text of the row."""
    if isinstance(node, ast.Literal) and node.kind == "string":
        return _term(str(node.value), "has_cs" if sensitive else "has")
    if isinstance(node, ast.Pattern):
        return ast.Literal("bool", True)
    if isinstance(node, ast.Operation) and node.operator in _LOGICAL:
        return replace(node, operands=tuple(_as_condition(scope, one, sensitive) for one in node.operands))
    if isinstance(node, ast.Call) and node.name == "not":
        inner = (replace(one, value=_as_condition(scope, one.value, sensitive)) for one in node.arguments)
        return replace(node, arguments=tuple(inner))
    if any(scope.find(name) is None and scope.environment.get(name) is None for name in _column_names(node)):
        return ast.Literal("bool", False)
    if isinstance(node, ast.Binary) and node.operator == ":":
        return _in_column(node, "_cs" if sensitive else "")
    condition: ast.Expression = _any_column(node, scope.relation)
    return condition


def _in_column(node: ast.Binary, case: str) -> ast.Expression:
    right = node.right
    if not isinstance(right, ast.Literal):
        raise not_supported("search :", "its right side must be a constant")
    if right.kind != "string":
        return replace(node, operator="==")
    text = str(right.value)
    if text == "*":
        return ast.Call("isnotempty", (ast.Argument(node.left),), at=node.at)
    return ast.Binary(_operator_for(text) + case, node.left, ast.Literal("string", text.strip("*")), at=node.at)


def _operator_for(term: str) -> str:
    """The operator that a term with stars stands for."""
    inner = term.strip("*")
    if "*" in inner or not inner:
        raise not_supported("search", "a star inside a term")
    stars = (term.startswith("*"), term.endswith("*"))
    return {(True, True): "contains", (False, True): "hasprefix", (True, False): "hassuffix"}.get(stars, "has")


def _any_column(node: ast.Node, relation: Relation) -> Any:
    """The predicate with each `* operator "term"` as one over the text of the row, or over each column."""
    if isinstance(node, ast.Binary) and isinstance(node.left, ast.Pattern):
        right = node.right
        if isinstance(right, ast.Literal) and right.kind == "string" and node.operator not in _OF_WHOLE:
            return _term(str(right.value), node.operator)
        texts = (column.name for column in relation.columns if column.type is STRING)
        tests = tuple(replace(node, left=ast.Name(name)) for name in texts)
        return ast.Operation("or", tests) if tests else ast.Literal("bool", False)
    if isinstance(node, (ast.Pipeline, ast.Literal, ast.Name)):
        return node
    return ast.rebuilt(node, lambda one: _any_column(one, relation))


def _term(term: str, operator: str) -> ast.Expression:
    if "*" in term:
        operator = _operator_for(term) + ("_cs" if operator.endswith("_cs") else "")
        term = term.strip("*")
    parts = term.removesuffix(".").split(".")
    is_dotted = len(parts) > 2 and all(part.isdigit() for part in parts)  # as an address or its beginning is
    if not is_dotted and not any(character.isalpha() for character in term):
        raise not_supported("search", "a term needs a letter, or is an address")
    if operator.removeprefix("!") not in _WITHIN or _SEPARATOR in term:
        raise not_supported(f"* {operator}")
    return ast.Binary(operator, ast.Name(_ROW_TEXT), ast.Literal("string", term))

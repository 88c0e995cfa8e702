"""Relations to one statement of DuckDB: nested SELECTs, and a WITH for what is read more than once.

Operators that follow each other share a SELECT where SQL allows it. Every node is written once, so the text is linear
in that of the query.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from kql_duckdb.algebra import (
    Aggregate,
    Extend,
    Filter,
    Item,
    Join,
    Limit,
    Project,
    Reference,
    Relation,
    Shared,
    Sort,
    Source,
    Template,
    UnionAll,
)
from kql_duckdb.errors import KqlError
from kql_duckdb.expressions import quote_name


def statement(relation: Relation, shared: Sequence[Shared]) -> str:
    """The statement with the rows of `relation`, its visible columns in order. `shared` is in order of making.

    Raises KqlError for a query of thousands of operators.
    """
    try:
        return _statement(relation, shared)
    except RecursionError as error:
        raise KqlError("The query has too many operators behind each other.", "SYN0004") from error


def _statement(relation: Relation, shared: Sequence[Shared]) -> str:
    counts: Counter[int] = Counter()
    _count(relation, counts)
    needed: list[Shared] = []
    for one in reversed(shared):
        if counts[id(one)] or one.in_text:
            needed.append(one)
            _count(one.relation, counts)
    named = [one for one in reversed(needed) if one.in_text or one.materialized or counts[id(one)] > 1]
    writer = _Writer({id(one) for one in named})
    kept = _kept(needed)
    hints = ("MATERIALIZED" if id(one) in kept else "NOT MATERIALIZED" for one in named)
    texts = (writer.select(one.relation).text() for one in named)
    parts = [f"{quote_name(one.name)} AS {hint} ({text})" for one, hint, text in zip(named, hints, texts, strict=True)]
    columns = _items((column.identifier, column.sql) for column in relation.columns)
    body = replace(writer.opened(relation), columns=columns or _NO_COLUMN)
    order = body.text()
    with_clause = f"WITH {', '.join(parts)} " if parts else ""
    return with_clause + order


def subquery(relation: Relation) -> str:
    """The SELECT of a relation that comes to stand inside an expression; what it shares must be in the WITH."""
    _mark(relation)
    return _Writer(None).select(relation).text()


_MOST_COPIES = 64


def _kept(needed: Sequence[Shared]) -> set[int]:
    """The shared relations that are computed once: those that the query asks for, and those whose plan would hold too
    many copies of others. `needed` is in reverse order of making."""
    copies: dict[int, int] = {}
    kept = {id(one) for one in needed if one.materialized}
    for one in reversed(needed):
        counts: Counter[int] = Counter()
        _count(one.relation, counts)
        copies[id(one)] = 1 + sum(count * copies.get(part, 1) for part, count in counts.items())
        if id(one) in kept or copies[id(one)] > _MOST_COPIES:
            kept.add(id(one))
            copies[id(one)] = 1
    return kept


def _count(relation: Relation, counts: Counter[int]) -> None:
    stack = [relation]
    while stack:
        one = stack.pop()
        if isinstance(one, Reference):
            counts[id(one.shared)] += 1
        stack.extend(one.inputs())


def _mark(relation: Relation) -> None:
    stack = [relation]
    while stack:
        one = stack.pop()
        if isinstance(one, Reference):
            one.shared.in_text = True
        stack.extend(one.inputs())


def _items(items: Iterable[Item]) -> str:
    return ", ".join(
        f"{sql} AS {name}" if sql != (name := quote_name(identifier)) else sql for identifier, sql in items
    )


_NO_COLUMN = '1 AS "$none"'
"""What a SELECT without columns selects, since SQL has no rows without one."""


@dataclass(frozen=True, slots=True)
class _Select:
    """A SELECT that may still grow: `columns` is `*` until something names them, `tail` what stands after WHERE."""

    source: str
    columns: str = "*"
    where: tuple[str, ...] = ()
    tail: str = ""
    whole: str = ""
    """A SELECT that is finished, instead of all that."""

    @property
    def is_table(self) -> bool:
        return self.columns == "*" and not self.where and not self.tail and not self.whole

    @property
    def is_open(self) -> bool:
        return self.columns == "*" and not self.tail and not self.whole

    def text(self) -> str:
        if self.whole:
            return self.whole
        source = f" FROM {self.source}" if self.source else ""
        where = f" WHERE {' AND '.join(self.where)}" if self.where else ""
        return f"SELECT {self.columns}{source}{where}{self.tail}"

    def as_source(self) -> str:
        """What may stand behind FROM under another name."""
        bare = self.is_table and self.source and " AS " not in self.source
        return self.source if bare else f"({self.text()})"


class _Writer:
    """Writes relations; `named` are the shared ones with a place in the WITH, None if all are."""

    def __init__(self, named: set[int] | None) -> None:
        self._named = named

    def opened(self, relation: Relation) -> _Select:
        """A SELECT whose columns and tail are still free."""
        made = self.select(relation)
        return made if made.is_open else _Select(f"({made.text()})")

    def select(self, relation: Relation) -> _Select:
        if isinstance(relation, Source):
            return _Select(relation.text, "*" if relation.text else _NO_COLUMN)
        if isinstance(relation, Filter):
            made = self.opened(relation.input)
            return replace(made, where=(*made.where, relation.predicate))
        if isinstance(relation, Extend):
            return self._extended(relation)
        if isinstance(relation, Project):
            return self._projected(relation)
        if isinstance(relation, Aggregate):
            made = self.opened(relation.input)
            by = (
                f" GROUP BY {', '.join(str(place + 1) for place in range(len(relation.keys)))}" if relation.keys else ""
            )
            return replace(made, columns=_items((*relation.keys, *relation.aggregates)) or _NO_COLUMN, tail=by)
        if isinstance(relation, Sort):
            made = self.opened(relation.input)
            return replace(made, tail=f" ORDER BY {', '.join(relation.keys)}")
        if isinstance(relation, Limit):
            made = self.select(relation.input)
            if made.whole or " LIMIT " in made.tail:
                made = _Select(f"({made.text()})")
            return replace(made, tail=f"{made.tail} LIMIT {relation.count}")
        if isinstance(relation, Reference):
            shared = relation.shared
            if self._named is None or id(shared) in self._named:
                return _Select(quote_name(shared.name))
            return self.select(shared.relation)
        return self._of_several(relation)

    def _projected(self, relation: Project) -> _Select:
        if isinstance(relation.input, Source) and not relation.input.text:
            return _Select("", _items(relation.items))
        return replace(self.opened(relation.input), columns=_items(relation.items) or _NO_COLUMN)

    def _extended(self, relation: Extend) -> _Select:
        present = {column.identifier.casefold() for column in relation.input.columns}
        replaced = [item for item in relation.items if item[0].casefold() in present]
        added = [item for item in relation.items if item[0].casefold() not in present]
        columns = "*"
        if replaced:
            columns += f" REPLACE ({', '.join(f'{sql} AS {quote_name(identifier)}' for identifier, sql in replaced)})"
        if added:
            columns += f", {_items(added)}"
        if isinstance(relation.input, Source) and not relation.input.text:
            return _Select("", _items(added))
        return replace(self.opened(relation.input), columns=columns)

    def _of_several(self, relation: Relation) -> _Select:
        if isinstance(relation, Join):
            left, right = (self.select(one).as_source() for one in (relation.left, relation.right))
            joined = f"{left} AS l {relation.kind} JOIN {right} AS r ON {relation.condition}"
            return _Select(joined, _items(relation.items))
        if isinstance(relation, UnionAll):
            parts = (self._part(one) for one in relation.parts)
            return _Select("", whole=f" UNION ALL {'BY NAME ' if relation.by_name else ''}".join(parts))
        assert isinstance(relation, Template)
        texts = [self.select(one).as_source() for one in relation.parts]
        return _Select("", whole="".join(one if isinstance(one, str) else texts[one] for one in relation.pieces))

    def _part(self, relation: Relation) -> str:
        made = self.select(relation)
        return f"({made.text()})" if made.tail or made.whole else made.text()

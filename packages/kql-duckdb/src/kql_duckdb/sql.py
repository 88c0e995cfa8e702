"""Relations to one statement of DuckDB: nested SELECTs, and a WITH for what is read more than once.

Operators that follow each other share a SELECT where SQL allows it. Every node is written once, so the text is linear
in that of the query.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from kql_duckdb.algebra import Item, Reference, Relation, Select, Shared, Source
from kql_duckdb.errors import KqlError
from kql_duckdb.expressions import quote_name


def statement(relation: Relation, shared: Sequence[Shared]) -> str:
    """The statement with the rows of `relation`, its visible columns in order. `shared` is in order of making.

    Raises KqlError for a query of thousands of operators.
    """
    counts = Counter(map(id, _shared_in(relation)))
    needed: list[Shared] = []
    for one in reversed(shared):
        if counts[id(one)] or one.in_text:
            needed.append(one)
            counts.update(map(id, _shared_in(one.relation)))
    named = [one for one in reversed(needed) if one.in_text or one.materialized or counts[id(one)] > 1]
    kept = _kept(needed)
    writer = _Writer({id(one) for one in named})
    parts: list[str] = []
    try:
        for one in named:
            hint = "MATERIALIZED" if id(one) in kept else "NOT MATERIALIZED"
            parts.append(f"{quote_name(one.name)} AS {hint} ({writer.select(one.relation).text()})")
        shown = relation.computed(relation.columns, (column.sql for column in relation.columns))
        return (f"WITH {', '.join(parts)} " if parts else "") + writer.select(shown).text()
    except RecursionError as error:
        raise KqlError("The query has too many operators behind each other.", "SYN0004") from error


def subquery(relation: Relation) -> str:
    """The SELECT of a relation that comes to stand inside an expression; what it shares must be in the WITH."""
    for one in _shared_in(relation):
        one.in_text = True
    return _Writer(None).select(relation).text()


_MOST_COPIES = 64


def _kept(needed: Sequence[Shared]) -> set[int]:
    """The shared relations that are computed once: those that the query asks for, and those whose plan would hold too
    many copies of others. `needed` is in reverse order of making."""
    copies: dict[int, int] = {}
    kept = {id(one) for one in needed if one.materialized}
    for one in reversed(needed):
        counts = Counter(map(id, _shared_in(one.relation)))
        copies[id(one)] = 1 + sum(count * copies.get(part, 1) for part, count in counts.items())
        if id(one) in kept or copies[id(one)] > _MOST_COPIES:
            kept.add(id(one))
            copies[id(one)] = 1
    return kept


def _shared_in(relation: Relation) -> Iterator[Shared]:
    """What a relation reads by name, as often as it does."""
    stack = [relation]
    while stack:
        one = stack.pop()
        if isinstance(one, Reference):
            yield one.shared
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
    bare: bool = False
    """Whether the source is a table or a SELECT in brackets."""

    @property
    def is_open(self) -> bool:
        """Whether its columns and tail are still free."""
        return self.columns == "*" and not self.tail

    @property
    def is_source(self) -> bool:
        """Whether it is no more than its source, which may take another name as it is."""
        return self.bare and self.is_open and not self.where

    def text(self) -> str:
        if self.is_source and self.source.startswith("("):
            return self.source[1:-1]
        source = f" FROM {self.source}" if self.source else ""
        where = f" WHERE {' AND '.join(self.where)}" if self.where else ""
        return f"SELECT {self.columns}{source}{where}{self.tail}"

    def as_source(self) -> str:
        """What may stand behind FROM under another name."""
        return self.source if self.is_source else f"({self.text()})"


class _Writer:
    """Writes relations; `named` are the shared ones with a place in the WITH, None if all are."""

    def __init__(self, named: set[int] | None) -> None:
        self._named = named

    def select(self, relation: Relation) -> _Select:
        if isinstance(relation, Select):
            return self._over(relation)
        if isinstance(relation, Reference):
            shared = relation.shared
            if self._named is None or id(shared) in self._named:
                return _Select(quote_name(shared.name), bare=True)
            return self.select(shared.relation)
        assert isinstance(relation, Source)
        text = "".join(one if isinstance(one, str) else self.select(one).as_source() for one in relation.pieces)
        if relation.whole:
            return _Select(f"({text})", bare=True)
        return _Select(text, "*" if text else _NO_COLUMN, bare=bool(text) and " AS " not in text)

    def _over(self, relation: Select) -> _Select:
        made, star = self.select(relation.input), relation.star
        limited = relation.tail.startswith(" LIMIT ") and " LIMIT " not in made.tail
        if relation.items and isinstance(relation.input, Source) and not relation.input.pieces:
            made, star = _Select(""), False
        elif not (made.is_open or limited):
            made = _Select(f"({made.text()})")
        columns = made.columns
        if relation.items or not star:
            columns = _beside_star(relation) if star else _items(relation.items) or _NO_COLUMN
        where = (*made.where, relation.where) if relation.where else made.where
        return replace(made, columns=columns, where=where, tail=made.tail + relation.tail)


def _beside_star(relation: Select) -> str:
    present = {column.identifier.casefold() for column in relation.input.columns}
    replaced = [item for item in relation.items if item[0].casefold() in present]
    added = _items(item for item in relation.items if item[0].casefold() not in present)
    columns = "*"
    if replaced:
        columns += f" REPLACE ({', '.join(f'{sql} AS {quote_name(identifier)}' for identifier, sql in replaced)})"
    return f"{columns}, {added}" if added else columns

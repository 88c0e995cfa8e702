"""What one row, or a result as a whole, holds, and whether a literal stands in it.

`Facts` are read by `evidence`; they judge nothing of a sentence.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, tzinfo
from functools import cache, cached_property
from typing import Any

from sentinel_rag.agent.answers.results import Cell, Result, Row
from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.language.lexicon import fold
from sentinel_rag.language.literals import ELLIPSIS, Kind, Literal, key, tokens

PRIMARY_TIMES = (
    "start_time", "created_time", "TimeGenerated", "time", "closed_time", "FirstSeen", "LastSeen", "first_seen",
    "last_seen",
)  # fmt: skip
"""Columns with the time at which the thing of a row happened, best first."""
OPEN_STATES = frozenset({"New", "Active", "InProgress"})
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])|_")


def column_words(column: str) -> list[str]:
    """`first_seen` and `MeanHours` as words."""
    return tokens(_CAMEL.sub(" ", column))


_HOUR = 3600


def near(literal: Literal, value: float, slack: float = 0.0) -> bool:
    """Whether a value is what a number with its bound and precision says."""
    want = literal.number
    duration = literal.kind is Kind.DURATION
    match literal.bound:
        case ">" | ">=":
            return (want < value or (literal.bound == ">=" and value == want)) and value <= want * 2 + 1e-9
        case "<":
            return want * (1 / 24 if duration else 0.5) <= value < want  # `within a day` may be two hours
        case "~":
            return abs(value - want) <= max(0.16 * want, slack, 0.5 if duration else 0)
    if duration and want > 2 and literal.unit < _HOUR and 0 <= value - want < 1:
        return True  # `29 minutes` of 29 and a half
    return abs(value - want) <= max(slack, 0.0 if not duration else 0.5 if want > 2 else 0.25, 0.05)


_ADDRESS = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}|[0-9a-fA-F]{0,4}(?::[0-9a-fA-F]{0,4}){2,7}")


def _values_of(cell: object) -> tuple[object, ...]:
    if isinstance(cell, Mapping):
        return tuple(cell.values())
    return tuple(cell) if isinstance(cell, tuple | list) else (cell,)


@dataclass(frozen=True, slots=True)
class Source:
    """The cell or total that a literal was found in."""

    call_id: str
    pointer: str
    value: JsonValue


@dataclass(eq=False)
class Facts:
    """One row, or with `row` None the totals of a result. `words` are its folded texts, cells kept apart by ` | `."""

    ref: str
    row: Row | None
    result: Result
    zone: tzinfo
    words: str = " "
    asked: str = " "
    """What its result was asked for."""
    texts: list[tuple[str, str]] = field(default_factory=list)
    """Column and key of each text."""
    numbers: dict[float, set[str]] = field(default_factory=lambda: defaultdict(set))
    """Numbers with their columns; `len:COLUMN` for the length of a list."""
    named_numbers: set[float] = field(default_factory=set)
    """Numbers that name a thing, such as an incident's; of a whole result the incidents that it was asked for."""
    moments: list[tuple[str, datetime]] = field(default_factory=list)
    states: dict[str, str] = field(default_factory=dict)
    durations: list[tuple[str, float]] = field(default_factory=list)
    percents: list[tuple[str, float]] = field(default_factory=list)
    theirs: set[str] = field(default_factory=set)
    """Columns with a message of an outsider."""
    entities: list[Facts] = field(default_factory=list)
    """Of an incident's row: the rows of its entities."""

    @property
    def computed(self) -> bool:
        """True for a row of a computed result."""
        return self.row is not None and self.result.computed

    @property
    def cells(self) -> Mapping[str, Cell]:
        """The cells of the row; none for a whole result."""
        return {} if self.row is None else self.row.cells

    @property
    def kind(self) -> str:
        """The kind of the row; empty for a whole result."""
        return "" if self.row is None else self.row.kind

    @property
    def is_thing(self) -> bool:
        """Whether the row is an incident or an alert, whose states are its own."""
        return self.kind in ("incident", "alert")

    @cached_property
    def amounts(self) -> Mapping[str, int | float]:
        """Its cells that say how many or how much."""
        return {
            column: value
            for column, value in self.cells.items()
            if isinstance(value, int | float) and not isinstance(value, bool) and "number" not in column
        }

    @cached_property
    def empty(self) -> frozenset[str]:
        """The columns in which the row has no value."""
        if self.row is None:
            return frozenset()
        return self.row.empty | {name for name in ("owner",) if self.kind == "incident" and name not in self.cells}

    @cached_property
    def column_names(self) -> tuple[str, ...]:
        """The words of the row's columns."""
        return tuple(word for column in self.cells for word in column_words(column))

    @cached_property
    def happened(self) -> tuple[str, datetime] | None:
        """The column and value of the row's own time."""
        return next(((name, at) for wanted in PRIMARY_TIMES for name, at in self.moments if name == wanted), None)

    def holds(self, literal: Literal) -> bool:
        """Whether the literal stands here."""
        other = literal.other_reading
        return self._holds(literal) or (other is not None and self._holds(other))

    def _holds(self, literal: Literal) -> bool:
        match literal.kind:
            case Kind.ID | Kind.NAME | Kind.TEXT:
                return _stands(literal, self.words)
            case Kind.STATE | Kind.SPOKEN:
                return self._state(literal)
        columns = self._columns(literal)
        if literal.kind is Kind.NUMBER and literal.bound == "=" and literal.unit == 1.0:
            columns = (column for column in columns if not column.startswith("len:"))  # a list of three says no `3`
        return next(columns, None) is not None

    def _columns(self, literal: Literal) -> Iterator[str]:
        """The columns whose cell holds the literal, those of the very number first."""
        match literal.kind:
            case Kind.ID | Kind.NAME | Kind.TEXT:
                yield from (column for column, text in self.texts if _stands(literal, f" {text} "))
            case Kind.NUMBER:
                if literal.bound == "=" or literal.unit != 1.0:
                    yield from sorted(self.numbers.get(literal.number * literal.unit, ()))
                for number, columns in self.numbers.items():
                    if _is_number(literal, number):
                        yield from sorted(columns)
            case Kind.MOMENT:
                yield from (column for column, at in self.moments if literal.value.fits(at, self.zone))
            case Kind.DURATION:
                yield from (column for column, seconds in self.durations if near(literal, seconds / literal.unit))
            case Kind.PERCENT:
                yield from (column for column, share in self.percents if near(literal, share, slack=0.6))
            case Kind.STATE | Kind.SPOKEN:
                yield from (column for column in self.cells if column.casefold() == literal.domain)
                name = f" {fold(str(literal.value))} "
                yield from (column for column, text in self.texts if name in f" {text} ")

    def _state(self, literal: Literal) -> bool:
        got = self.states.get(literal.domain)
        closed = any(column == "closed_time" for column, _ in self.moments)
        if literal.domain == "owner":
            return self.row is not None and self.row.kind == "incident" and "owner" not in self.row.cells
        if literal.value == "ever_closed":
            return got == "Closed" or closed or " closed " in self.own_words
        if literal.value == "open":
            return got in OPEN_STATES
        own = got is not None and self.is_thing
        return got == literal.value or f" {fold(str(literal.value))} " in (self.asked if own else self.own_words)

    @cached_property
    def addresses(self) -> frozenset[str]:
        """The network addresses among its cells, and those that its call was asked for."""
        asked = [*self.result.arguments.values(), self.result.arguments.get("parameters")]
        given = [value for each in (*asked, *self.cells.values()) for value in _values_of(each)]
        return frozenset(value for value in given if isinstance(value, str) and _ADDRESS.fullmatch(value))

    @cached_property
    def own_words(self) -> str:
        """Its words without what outsiders wrote; names of products are nobody's words."""
        if not self.theirs:
            return self.words
        return " " + " | ".join(text for column, text in self.texts if column not in self.theirs) + self.asked

    def says(self, start: str, *, quoted: bool = True) -> bool:
        """Whether a word here, or of a column, begins so; without `quoted` not one that an outsider wrote."""
        if any(word.startswith(start) for word in self.column_names):
            return True
        if f" {start}" not in self.words:
            return False
        theirs = frozenset() if quoted or self.row is None else self.row.quoted
        return not theirs or any(f" {start}" in f" {text}" for column, text in self.texts if column not in theirs)

    def labelled(self, literal: Literal) -> float | None:
        """The number in a column that is named after a state: `high_alerts` for High."""
        if self.row is not None and literal.kind in (Kind.STATE, Kind.SPOKEN) and literal.value:
            name = fold(str(literal.value))
            for column, value in self.row.cells.items():
                if isinstance(value, int | float) and not isinstance(value, bool) and name in column_words(column):
                    return float(value)
        return None

    def sorts_of(self, literal: Literal) -> Iterator[str]:
        """What sorts of thing a name is here."""
        if literal.kind is Kind.NUMBER:
            yield "number"
        for column in self._columns(literal) if literal.kind is not Kind.NUMBER else ():
            yield _sort(self.kind if column == "name" else column)
        yield from (_sort(_entity_kind(item)) for item in self._entities if _stands(literal, f" {key(str(item))} "))

    def tells_other(self, sorts: frozenset[str], said: Sequence[str], numbers: set[float]) -> bool:
        """Whether the row tells of a thing of one of these sorts, and of none that is `said`, or of another incident
        than those of these numbers."""
        own = self.row is None or "/entities/" not in self.row.pointer  # an entity is the same in each incident
        if "number" in sorts and own and not self.named_numbers <= numbers:
            return True
        parameters = self.result.arguments.get("parameters")
        mine = [(_sort(_entity_kind(item)), key(str(item))) for item in self._entities]
        mine += (
            [(_sort(name), key(str(asked))) for name, asked in (parameters or {}).items()]
            if isinstance(parameters, Mapping)
            else []
        )
        mine += [(_sort(self.kind if column == "name" else column), text) for column, text in self.texts]
        return any(
            sort in sorts and not any(f" {name} " in f" {text} " for name in said) for sort, text in mine if sort
        )

    @property
    def _entities(self) -> tuple[Cell, ...]:
        found = self.cells.get("entities", ())
        return found if isinstance(found, tuple) else ()

    def cell(self, column: str) -> Source:
        """A cell with its place; of a column that the row lacks the row."""
        assert self.row is not None
        if column not in self.row.cells:
            return Source(self.result.ref, self.row.pointer, None)
        return Source(self.result.ref, self.row.cell_pointer(column), plain_value(self.row.cells[column]))

    def source(self, literal: Literal) -> Source | None:
        """The cell that the literal was found in; None if no single one holds it."""
        column = next(self._columns(literal), None)
        if column is None:
            return None
        name = column.removeprefix("len:")
        if self.row is not None:
            return self.cell(name)
        for total in self.result.totals:
            if total_label(total.path) == name and (literal.kind is not Kind.NUMBER or total.value == literal.value):
                return Source(self.result.ref, total.pointer, total.value)
        return Source(self.result.ref, "", None)


_SORTS = (
    ("account", ("account", "user", "upn", "mailbox", "actor", "owner", "caller", "principal")),
    ("host", ("device", "computer", "host", "workstation", "machine")),
    ("address", ("address", "ip")),
    ("file", ("file", "process", "image", "command")),
    ("technique", ("technique",)),
)  # fmt: skip
"""Sorts of things, with parts of the names of columns and kinds that hold them."""


@cache
def _sort(column: str) -> str:
    """The sort of the things that a column holds; empty where that is not known."""
    low = column.casefold()
    return next(
        (
            sort
            for sort, parts in _SORTS
            if any(low.startswith(part) or low.endswith(part) or (len(part) > 2 and part in low) for part in parts)
        ),
        "",
    )


def _entity_kind(item: Cell) -> str:
    return str(item).partition(":")[0]


def _is_number(literal: Literal, number: float) -> bool:
    """Whether a number of a row is meant: in its unit, within its bound, or rounded as the sentence rounds it."""
    value = literal.number
    if literal.bound != "=":
        return near(literal, number / literal.unit)
    if literal.unit != 1.0:
        return abs(number - value * literal.unit) <= 0.06 * literal.unit or number == value
    digits = len(literal.raw.replace(",", ".").partition(".")[2]) if value % 1 else 0
    return number == value or (bool(digits) and abs(number - value) <= 0.5 * 10**-digits + 1e-9)  # 16.25 as 16.3


def _stands(literal: Literal, words: str) -> bool:
    """Whether a name or quotation stands among words; one that ends in `…` may be cut inside its last word, and one
    with `…` in it has its parts in one cell, in their order."""
    end = "" if literal.raw[-2:-1] == ELLIPSIS else " "
    first, *parts = str(literal.value).split(f" {ELLIPSIS} ")
    if not parts:
        return f" {first}{end}" in words
    for cell in words.split("|"):
        at = cell.find(f" {first} ")
        for part in parts[:-1]:
            at = cell.find(f" {part} ", at) if at >= 0 else at
        if at >= 0 and cell.find(f" {parts[-1]}{end}", at) >= 0:
            return True
    return False


def plain_value(value: Any) -> JsonValue:
    """A cell as JSON."""
    return [plain_value(item) for item in value] if isinstance(value, tuple) else value


def total_label(path: Sequence[str]) -> str:
    """What a total is of: `High` of by_severity/High; nothing for a grand total."""
    if path[0].startswith("peak"):
        return path[0]
    if any(piece.startswith("by_") or piece == "tactics" for piece in path):
        return path[-1]
    return path[-2] if len(path) > 2 and path[0].startswith("top_") else ""

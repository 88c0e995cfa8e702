"""What one row holds, or one result as a whole, ready to be compared with a literal, and the cell that holds it."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, tzinfo
from functools import cached_property
from typing import Any

from sentinel_rag.agent.answers.results import Cell, Result, Row
from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.language.lexicon import fold
from sentinel_rag.language.literals import Kind, Literal, tokens

PRIMARY_TIMES = (
    "start_time",
    "created_time",
    "TimeGenerated",
    "time",
    "closed_time",
    "FirstSeen",
    "LastSeen",
    "first_seen",
    "last_seen",
)
"""Columns with the time at which the thing of a row happened, best first."""
OPEN_STATES = frozenset({"New", "Active", "InProgress"})
ADDRESSES = frozenset({"url", "mail", "host", "ip"})
"""Forms of ids that somebody could be led to."""
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])|_")


def column_words(column: str) -> list[str]:
    """`first_seen` and `MeanHours` as words."""
    return tokens(_CAMEL.sub(" ", column))


def near(literal: Literal, value: float, slack: float = 0.0) -> bool:
    """Whether a value is what a number with its bound and precision says."""
    want = literal.number
    duration = literal.kind is Kind.DURATION
    match literal.bound:
        case ">":
            return want < value <= want * 2 + 1e-9
        case "<":
            return want * 0.5 <= value < want
        case "~":
            return abs(value - want) <= max(0.16 * want, slack, 0.5 if duration else 0)
    return abs(value - want) <= max(slack, 0.0 if not duration else 0.5 if want > 2 else 0.25, 0.05)


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
    """Numbers that name a thing, such as an incident's."""
    moments: list[tuple[str, datetime]] = field(default_factory=list)
    states: dict[str, str] = field(default_factory=dict)
    durations: list[tuple[str, float]] = field(default_factory=list)
    percents: list[tuple[str, float]] = field(default_factory=list)
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
            case Kind.NUMBER:
                return self._number(literal)
            case Kind.MOMENT:
                return any(literal.value.fits(at, self.zone) for _, at in self.moments)
            case Kind.DURATION:
                return any(near(literal, seconds / literal.unit) for _, seconds in self.durations)
            case Kind.PERCENT:
                return any(near(literal, share, slack=0.6) for _, share in self.percents)
            case Kind.STATE | Kind.SPOKEN:
                return self._state(literal)

    def _number(self, literal: Literal) -> bool:
        value = literal.number
        if literal.bound == "=" and literal.unit == 1.0:
            columns = self.numbers.get(value)
            if columns and not all(column.startswith("len:") for column in columns):
                return True
            digits = len(literal.raw.replace(",", ".").partition(".")[2]) if value % 1 else 0
            return bool(digits) and any(round(number, digits) == value for number in self.numbers)
        if literal.unit != 1.0:
            wanted = value * literal.unit
            return any(abs(number - wanted) <= 0.06 * literal.unit or number == value for number in self.numbers)
        return any(near(literal, number) for number in self.numbers)

    def _state(self, literal: Literal) -> bool:
        got = self.states.get(literal.domain)
        closed = any(column == "closed_time" for column, _ in self.moments)
        if literal.domain == "owner":
            return self.row is not None and self.row.kind == "incident" and "owner" not in self.row.cells
        if literal.value == "ever_closed":
            return got == "Closed" or closed or " closed " in self.words
        if literal.value == "open":
            return got in OPEN_STATES
        own = got is not None and self.row is not None and self.row.kind in ("incident", "alert")
        return got == literal.value or f" {fold(str(literal.value))} " in (self.asked if own else self.words)

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

    def source(self, literal: Literal) -> Source | None:
        """The cell that the literal was found in; None if no single one holds it."""
        column = self._column(literal)
        if column is None:
            return None
        name = column.removeprefix("len:")
        if self.row is not None:
            if name not in self.row.cells:
                return Source(self.result.ref, self.row.pointer, None)
            return Source(self.result.ref, self.row.cell_pointer(name), plain_value(self.row.cells[name]))
        for total in self.result.totals:
            if total_label(total.path) == name and (literal.kind is not Kind.NUMBER or total.value == literal.value):
                return Source(self.result.ref, total.pointer, total.value)
        return Source(self.result.ref, "", None)

    def _column(self, literal: Literal) -> str | None:
        found: Iterator[str]
        match literal.kind:
            case Kind.ID | Kind.NAME | Kind.TEXT:
                found = (column for column, text in self.texts if _stands(literal, f" {text} "))
            case Kind.NUMBER:
                wanted = literal.number * literal.unit
                exact = self.numbers.get(wanted) or self.numbers.get(literal.number) or set()
                close = (
                    column
                    for number, columns in self.numbers.items()
                    if self._close(literal, number)
                    for column in columns
                )
                found = iter(sorted(exact)) if exact else close
            case Kind.MOMENT:
                found = (column for column, at in self.moments if literal.value.fits(at, self.zone))
            case Kind.DURATION:
                found = (column for column, seconds in self.durations if near(literal, seconds / literal.unit))
            case Kind.PERCENT:
                found = (column for column, share in self.percents if near(literal, share, slack=0.6))
            case Kind.STATE | Kind.SPOKEN:
                own = (column for column in self.cells if column.casefold() == literal.domain)
                name = fold(str(literal.value))
                found = iter([*own, *(column for column, text in self.texts if f" {name} " in f" {text} ")])
        return next(found, None)

    @staticmethod
    def _close(literal: Literal, number: float) -> bool:
        if literal.unit != 1.0:
            return abs(number - literal.number * literal.unit) <= 0.06 * literal.unit
        return near(literal, number) or round(number, 2) == literal.number


def _stands(literal: Literal, words: str) -> bool:
    """Whether a name or quotation stands among words; one that ends in `…` may be cut inside its last word."""
    return f" {literal.value}{'' if literal.raw[-2:-1] == '…' else ' '}" in words


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

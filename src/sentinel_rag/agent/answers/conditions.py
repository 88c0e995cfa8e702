"""Conditions on the cells of rows, as models write them: `severity = High; title contains phish; owner is empty`.

A hidden value (`⟦...⟧`) is compared with its own handle and nothing else: whatever else was asked is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sentinel_rag.agent.answers.results import Cell, Row
from sentinel_rag.agent.answers.selection import (
    EMPTY,
    ComputeError,
    SelectedRows,
    column_named,
    fold,
    hidden,
    items,
    moment,
    number,
    order_key,
    squashed,
    text,
    thing,
)

_MOST_CHARACTERS = 2_000
_OPERATORS = {
    "is not empty": "filled", "not empty": "filled", "is not null": "filled", "is empty": "empty", "is null": "empty",
    "empty": "empty", "does not contain": "lacks", "not contains": "lacks", "!contains": "lacks",
    "contains": "contains", "has": "contains", "~": "contains", "not in": "not in", "in": "in", "before": "<",
    "until": "<", "after": ">", "since": ">=", "is not": "!=", "is": "=", ">=": ">=", "<=": "<=", "!=": "!=",
    "<>": "!=", "==": "=", "=": "=", ">": ">", "<": "<", ":": "=",
}  # fmt: skip
"""What a condition may have between column and value, the longer first where one begins with another."""
_TURNED = {"!=": "=", "not in": "in", "lacks": "contains"}
_SHOWN_OPERATORS = "!=, >, <, in (..), contains, before, after, is empty"
_OPERATOR = re.compile(
    "|".join(rf"(?<!\S){re.escape(word)}(?!\S)" if word[-1].isalpha() else re.escape(word) for word in _OPERATORS), re.I
)
_JOINTS = re.compile(r"\s*(?:;|\n|&&|,|\s(?:and|or)\s)\s*", re.I)


@dataclass(frozen=True, slots=True)
class RowCondition:
    """`column operator value`. Values stand for any of them where there are several."""

    column: str
    operator: str
    values: tuple[str, ...]

    def __str__(self) -> str:
        words = {"filled": "is not empty", "empty": "is empty", "lacks": "does not contain"}
        value = ", ".join(self.values)
        told = f"({value})" if self.operator in ("in", "not in") else value
        return f"{self.column} {words.get(self.operator, self.operator)} {told}".strip()

    @property
    def denies(self) -> bool:
        """True for one that rows fulfil by not having the value."""
        return self.operator in _TURNED

    def turned(self) -> RowCondition:
        """The opposite of one that denies."""
        return RowCondition(self.column, _TURNED[self.operator], self.values)

    def as_found(self, rows: Sequence[Row], now: datetime) -> RowCondition:
        """The condition with those of its values that a row has; as it is where none has any."""
        if self.operator != "in":
            return self
        tests = [(value, RowCondition(self.column, "=", (value,)).test(now)) for value in self.values]
        there = tuple(value for value, test in tests if any(test(row) for row in rows))
        return RowCondition(self.column, "in", there or self.values)

    def test(self, now: datetime) -> Callable[[Row], bool]:
        """A function that says whether a row fulfils it. Raises ComputeError, it too, where that cannot be said."""
        match self.operator:
            case "empty":
                return lambda row: not items(row.cells.get(self.column))
            case "filled":
                return lambda row: bool(items(row.cells.get(self.column)))
            case "contains" | "lacks":
                parts = [fold(value) for value in self.values]
                wanted = self.operator == "contains"
                return lambda row: (
                    wanted
                    is any(
                        part in fold(text(self._seen(each)))
                        for each in items(row.cells.get(self.column))
                        for part in parts
                    )
                )
            case "<" | ">" | "<=" | ">=":
                return self._compared(now)
            case _:
                wanted = self.operator in ("=", "in")
                same = [self._equal(value) for value in self.values]
                return lambda row: (
                    wanted is any(test(each) for each in items(row.cells.get(self.column)) for test in same)
                )

    def _seen(self, value: Cell) -> Cell:
        if hidden(value):
            raise ComputeError(
                f"values of {self.column} are hidden from you: they can be compared with their handle and nothing else",
                "where",
            )
        return value

    def _equal(self, value: str) -> Callable[[Cell], bool]:
        folded, counted = fold(value), number(value)
        day = moment(value) if len(value) == 10 else None
        at = moment(value)

        def test(cell: Cell) -> bool:
            if hidden(cell) or hidden(value):
                return cell == value if hidden(value) else bool(self._seen(cell))
            if counted is not None and (told := number(cell)) is not None:
                return told == counted
            if at is not None and (told_at := moment(cell)) is not None:
                return told_at.date() == at.date() if day else told_at == at
            shown = text(cell)
            return fold(shown) == folded or thing(shown) == folded

        return test

    def _compared(self, now: datetime) -> Callable[[Row], bool]:
        value = self.values[0] if self.values else ""
        wanted = (1, now) if fold(value) == "now" else order_key(value)
        if wanted is None or wanted[0] == 3:
            raise ComputeError(
                f"{str(self)!r}: give a number, a time such as 2026-01-31T12:00Z, or a severity", "where"
            )
        less, equal = self.operator[0] == "<", self.operator[-1] == "="

        def test(row: Row) -> bool:
            for each in items(row.cells.get(self.column)):
                key = order_key(self._seen(each))
                if key is None or key[0] != wanted[0]:
                    raise ComputeError(f"{str(self)!r}: {self.column} holds {text(each)[:40]!r}", "where")
                if (key[1] == wanted[1] and equal) or (key[1] < wanted[1] if less else key[1] > wanted[1]):
                    return True
            return False

        return test


def conditions(
    told: object, selection: SelectedRows, known: Sequence[str], *, argument: str
) -> tuple[RowCondition, ...]:
    """The conditions of `a = b; c contains d`, of a list of such, or of an object. All of them must hold."""
    columns = (*selection.columns(), *known)
    if told in (None, "", [], {}, ()):
        return ()
    if isinstance(told, Mapping):
        return tuple(
            _of_object(column_named(name, columns, selection, argument=argument), value) for name, value in told.items()
        )
    if len(str(told)) > _MOST_CHARACTERS:
        raise ComputeError(f"{argument} is longer than {_MOST_CHARACTERS} characters", argument)
    if isinstance(told, list | tuple):
        return tuple(each for part in told for each in conditions(part, selection, known, argument=argument))
    return tuple(_of_text(part, columns, selection, argument) for part in _split(str(told), columns, argument))


def _split(told: str, columns: Sequence[str], argument: str) -> Iterator[str]:
    """Parts of a text of conditions: a joint is one only where a known column follows it."""
    start = 0
    names = {squashed(each) for each in columns}
    for joint in _JOINTS.finditer(told):
        after = _OPERATOR.search(told, joint.end())
        if after is None:
            break
        if joint[0].strip() not in (";", "&&", "") and squashed(told[joint.end() : after.start()]) not in names:
            continue
        if fold(joint[0]) == "or":
            raise ComputeError(f"no 'or' in {argument}: write `column in (one, other)`, or two calls", argument)
        if told[start : joint.start()].strip():
            yield told[start : joint.start()]
        start = joint.end()
    if told[start:].strip(" ;"):
        yield told[start:].strip().rstrip(";")


def _of_text(part: str, columns: Sequence[str], selection: SelectedRows, argument: str) -> RowCondition:
    match = _OPERATOR.search(part)
    if match is None or not part[: match.start()].strip():
        raise ComputeError(
            f"{part[:80]!r} is no condition: write `column = value`, or one of {_SHOWN_OPERATORS} for `=`",
            argument,
        )
    column = column_named(part[: match.start()].strip(), columns, selection, argument=argument)
    return _condition(column, match[0], part[match.end() :])


def _of_object(column: str, value: object) -> RowCondition:
    if isinstance(value, list | tuple):
        return RowCondition(column, "in", tuple(text(each) for each in value))
    if isinstance(value, str) and (match := _OPERATOR.match(value.strip())) is not None:
        return _condition(column, match[0], value.strip()[match.end() :])
    return _condition(column, "=", "" if value is None else text(value))  # type: ignore[arg-type]


def _condition(column: str, told: str, value: str) -> RowCondition:
    operator = _OPERATORS[" ".join(told.casefold().split())]
    value = value.strip()
    if operator in ("in", "not in"):
        parts = tuple(part.strip().strip("\"'`") for part in value.strip("()[]").split(","))
        return RowCondition(column, operator, tuple(part for part in parts if part))
    if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'`":
        value = value[1:-1]
    if operator in ("=", "!=") and fold(value) in ("", EMPTY, "null", "empty"):
        return RowCondition(column, "empty" if operator == "=" else "filled", ())
    if operator in ("contains", "lacks") and not value:
        raise ComputeError(f"{column} contains what?", "where")
    return RowCondition(column, operator, (value,) if value else ())


def fulfilling(rows: Iterable[Row], where: Sequence[RowCondition], now: datetime) -> tuple[Row, ...]:
    """The rows that fulfil all of the conditions. Raises ComputeError where that cannot be said of one."""
    tests = [each.test(now) for each in where]
    return tuple(row for row in rows if all(test(row) for test in tests))

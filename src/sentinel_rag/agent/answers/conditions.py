"""Conditions on the cells of rows, as models write them: `severity = High; title contains phish; owner is empty`.

A hidden value (`⟦...⟧`) is compared with its own handle and nothing else: whatever else was asked is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sentinel_rag.agent.answers.results import Cell, Row
from sentinel_rag.agent.answers.selection import (
    EMPTY,
    ComputeError,
    SelectedRows,
    hidden,
    items,
    moment,
    number,
    order_key,
    squashed,
    text,
    thing,
)
from sentinel_rag.language.lexicon import fold

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
_SHOWN = {"filled": "is not empty", "empty": "is empty", "lacks": "does not contain"}
_OPERATOR = re.compile(
    "|".join(rf"(?<!\S){re.escape(word)}(?!\S)" if word[-1].isalpha() else re.escape(word) for word in _OPERATORS), re.I
)
_JOINTS = re.compile(r"\s*(?:;|\n|&&|,|\s(?:and|or)\s)\s*", re.I)
_Test = Callable[[Cell], bool]


@dataclass(frozen=True, slots=True)
class RowCondition:
    """`column operator value`. Values stand for any of them where there are several."""

    column: str
    operator: str
    values: tuple[str, ...]

    def __str__(self) -> str:
        value = ", ".join(self.values)
        told = f"({value})" if self.operator in ("in", "not in") else value
        return f"{self.column} {_SHOWN.get(self.operator, self.operator)} {told}".strip()

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
        if self.operator in ("empty", "filled"):
            return lambda row: bool(items(row.cells.get(self.column))) is (self.operator == "filled")
        tests = self._tests(now)
        return lambda row: (
            any(test(each) for each in items(row.cells.get(self.column)) for test in tests) is (not self.denies)
        )

    def _tests(self, now: datetime) -> list[_Test]:
        """What a value of the column is asked, before a denial is turned."""
        if self.operator in ("contains", "lacks"):
            parts = [fold(value) for value in self.values]
            return [lambda cell: any(part in fold(text(self._seen(cell))) for part in parts)]
        if self.operator[0] in "<>":
            return [self._compared(now)]
        return [self._equal(value) for value in self.values]

    def _seen(self, value: Cell) -> Cell:
        if hidden(value):
            words = "are hidden from you: they can be compared with their handle and nothing else"
            raise ComputeError(f"values of {self.column} {words}", "where")
        return value

    def _equal(self, value: str) -> _Test:
        if hidden(value):
            return lambda cell: cell == value
        folded, counted, at = fold(value).strip(), number(value), moment(value)

        def test(cell: Cell) -> bool:
            shown = text(self._seen(cell))
            if counted is not None and (told := number(cell)) is not None:
                return told == counted
            if at is not None and (told_at := moment(cell)) is not None:
                return told_at.date() == at.date() if len(value) == 10 else told_at == at
            return folded in (fold(shown).strip(), thing(shown))

        return test

    def _compared(self, now: datetime) -> _Test:
        value = self.values[0] if self.values else ""
        wanted = (1, now) if fold(value) == "now" else order_key(value)
        if wanted is None or wanted[0] == 3:
            raise ComputeError(
                f"{str(self)!r}: give a number, a time such as 2026-01-31T12:00Z, or a severity", "where"
            )

        def test(cell: Cell) -> bool:
            key = order_key(self._seen(cell))
            if key is None or key[0] != wanted[0]:
                raise ComputeError(f"{str(self)!r}: {self.column} holds {text(cell)[:40]!r}", "where")
            if key[1] == wanted[1]:
                return self.operator[-1] == "="
            return bool(key[1] < wanted[1]) is (self.operator[0] == "<")

        return test


def conditions(told: Any, selection: SelectedRows, more: Sequence[str], *, argument: str) -> tuple[RowCondition, ...]:
    """The conditions of `a = b; c contains d`, of a list of such, or of an object. All of them must hold. `more` are
    columns that the rows lack. Raises ComputeError."""
    if told in (None, "", [], {}, ()):
        return ()
    if isinstance(told, Mapping):
        named = ((selection.column(name, argument, more), value) for name, value in told.items())
        return tuple(_of_object(column, value) for column, value in named)
    if isinstance(told, list | tuple):
        return tuple(each for part in told for each in conditions(part, selection, more, argument=argument))
    if len(str(told)) > _MOST_CHARACTERS:
        raise ComputeError(f"{argument} is longer than {_MOST_CHARACTERS} characters", argument)
    found = []
    for part in _split(str(told), {squashed(each) for each in (*selection.columns(), *more)}, argument):
        match = _OPERATOR.search(part)
        if match is None or not (name := part[: match.start()].strip()):
            others = "!=, >, <, in (..), contains, before, after, is empty"
            raise ComputeError(f"{part[:80]!r} is no condition: write `column = value`, or {others} for `=`", argument)
        found.append(_condition(selection.column(name, argument, more), match[0], part[match.end() :]))
    return tuple(found)


def _split(told: str, names: set[str], argument: str) -> Iterator[str]:
    """Parts of a text of conditions: a joint is one only where a known column follows it."""
    start = 0
    for joint in _JOINTS.finditer(told):
        after = _OPERATOR.search(told, joint.end())
        if after is None:
            break
        if joint[0].strip() not in (";", "&&", "") and squashed(told[joint.end() : after.start()]) not in names:
            continue
        if joint[0].strip().lower() == "or":
            raise ComputeError(f"no 'or' in {argument}: write `column in (one, other)`, or two calls", argument)
        if told[start : joint.start()].strip():
            yield told[start : joint.start()]
        start = joint.end()
    if told[start:].strip(" ;"):
        yield told[start:].strip().rstrip(";")


def _of_object(column: str, value: object) -> RowCondition:
    if isinstance(value, list | tuple):
        return RowCondition(column, "in", tuple(text(each) for each in value))
    if isinstance(value, str) and (match := _OPERATOR.match(value.strip())) is not None:
        return _condition(column, match[0], value.strip()[match.end() :])
    return _condition(column, "=", "" if value is None else text(value))  # type: ignore[arg-type]


def _condition(column: str, told: str, value: str) -> RowCondition:
    operator, value = _OPERATORS[" ".join(told.casefold().split())], value.strip()
    if operator in ("in", "not in"):
        parts = (part.strip().strip("\"'`") for part in value.strip("()[]").split(","))
        return RowCondition(column, operator, tuple(part for part in parts if part))
    if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'`":
        value = value[1:-1]
    if operator in ("=", "!=") and fold(value).strip() in ("", EMPTY, "null", "empty"):
        return RowCondition(column, "empty" if operator == "=" else "filled", ())
    if operator in ("contains", "lacks") and not value:
        raise ComputeError(f"{column} contains what?", "where")
    return RowCondition(column, operator, (value,) if value else ())


def fulfilling(rows: Iterable[Row], where: Sequence[RowCondition], now: datetime) -> tuple[Row, ...]:
    """The rows that fulfil all of the conditions. Raises ComputeError where that cannot be said of one."""
    tests = [each.test(now) for each in where]
    return tuple(row for row in rows if all(test(row) for test in tests))

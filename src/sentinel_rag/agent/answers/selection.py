"""The rows that a computation reads: results by reference, pages of one list joined, one kind of a dossier's rows.

What a model wrote is read leniently (`"5"`, `5.0`, brackets, plurals, `CreatedTime` for `created_time`) and refused in
words that name what there is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from difflib import get_close_matches
from typing import Any, TypeVar

from sentinel_rag.agent.answers.results import Cell, Result, Results, Row
from sentinel_rag.contracts.query_results import QueryError, QueryErrorCode, parse_time
from sentinel_rag.language.lexicon import fold
from sentinel_rag.language.literals import tokens
from sentinel_rag.language.text import toml_beside

_Read = TypeVar("_Read")

EMPTY = "(none)"
"""How an empty cell is written in what is computed."""
RANKS = {"informational": 0, "low": 1, "medium": 2, "high": 3, "critical": 4}
"""Words that have an order of their own."""
_PAGING = frozenset({"offset", "limit", "cursor", "page"})
_IDENTITIES = {"incident": "number", "alert": "alert_id"}
_ENTITY = re.compile(r"[a-z][a-z-]+:(?!/|\\)(?=\S)")
_REFERENCE = re.compile(r"(?P<result>[^.\s]+)(?:\.(?P<first>\d+)(?:-(?:[^.\s]+\.)?(?P<last>\d+))?)?")


class ComputeError(ValueError):
    """The call cannot be carried out. `field` names the argument; `allowed` is what may stand there."""

    def __init__(self, message: str, field: str = "", allowed: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.field = field
        self.allowed = tuple(allowed)

    def as_query_error(self) -> QueryError:
        """The refusal as one of a call, for whoever treats `compute` as a tool like any other."""
        return QueryError(
            code=QueryErrorCode.INVALID_ARGUMENT, message=str(self), field=self.field, allowed=self.allowed
        )


def thing(value: str) -> str:
    """What a text is the same as: folded, and an entity (`account:anna@x.example Anna Smith`) by its name."""
    folded = fold(value).strip()
    if (kind := _ENTITY.match(folded)) is None:
        return folded
    name = folded[kind.end() :]
    first = name.split(" ", 1)[0]
    return first if any(mark in first for mark in "@.\\:") else name


def items(value: Cell | None) -> tuple[Cell, ...]:
    """The values of a cell: of a list each item; nothing of an empty cell."""
    if value is None:
        return ()
    return tuple(part for each in value for part in items(each)) if isinstance(value, tuple) else (value,)


_COUNTED = re.compile(r"(?:count|len|length|size|number)\s*(?:\(|of )\s*(.+?)\s*\)?", re.IGNORECASE)
"""How many values a cell holds, as models say it: `count(incident_numbers)`, `number of alerts`."""


def cell_of(row: Row, column: str) -> Cell | None:
    """The cell of a column, or how many values it holds for `count(column)`."""
    if column in row.cells or not column.startswith("count("):
        return row.cells.get(column)
    return len(items(row.cells.get(column.removeprefix("count(").removesuffix(")"))))


def hidden(value: object) -> bool:
    """True for a text with a handle in it."""
    return isinstance(value, str) and "⟦" in value


def text(value: Cell) -> str:
    """A cell as one line."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return ", ".join(map(text, value)) if isinstance(value, tuple) else str(value)


def number(value: object) -> float | int | None:
    """The number that a cell or an argument is, or None."""
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        try:
            value = float(value) if "_" not in value and len(value) < 40 else None
        except ValueError:
            return None
    if isinstance(value, float):
        if value != value or value in (float("inf"), float("-inf")):
            return None
        return int(value) if value.is_integer() and abs(value) < 1e15 else value
    return value if isinstance(value, int) else None


def moment(value: object) -> datetime | None:
    """The time that a text is; one without a zone is in UTC, a date its beginning."""
    told = value.removesuffix(" UTC") if isinstance(value, str) and len(value) >= 8 and value[:4].isdigit() else ""
    for form in (told, f"{told}Z", f"{told}T00:00Z"):
        with suppress(ValueError):
            return parse_time(form)
    return None


def order_key(value: Cell) -> tuple[int, Any] | None:
    """A key that orders numbers, times, severities and texts each among themselves; None for a list or a handle."""
    if isinstance(value, tuple) or hidden(value):
        return None
    if (counted := number(value)) is not None:
        return 0, counted
    if (at := moment(value)) is not None:
        return 1, at
    folded = fold(text(value)).strip()
    return (2, RANKS[folded]) if folded in RANKS else (3, folded)


def required(
    value: Cell, reader: Callable[[Cell], _Read | None], what: str, place: str, *, argument: str, advice: str = ""
) -> _Read:
    """The value as `reader` reads it. Raises ComputeError that says of its `place` why it is none of `what`."""
    if (found := reader(value)) is not None:
        return found
    why = "hidden from you" if hidden(value) else "a list" if isinstance(value, tuple) else ""
    raise ComputeError(f"{place} is {why or f'no {what}: {text(value)[:40]!r}'}{advice}", argument)


def time_of(row: Row, column: str) -> datetime:
    """The time in a cell that a row has. Raises ComputeError."""
    return required(row.cells[column], moment, "time", f"{column} of {row.ref}", argument="column")


def rounded(value: float, digits: int = 3) -> float | int:
    """A number as it is told: a whole one without its fraction."""
    short = round(value, digits)
    return int(short) if short == int(short) else short


@dataclass(frozen=True, slots=True)
class SelectedRows:
    """Rows in their order. `matched` is how many there are to have, None if nobody knows; `picked`: row by row."""

    rows: tuple[Row, ...] = ()
    operands: tuple[str, ...] = ()
    complete: bool = True
    matched: int | None = None
    picked: bool = False
    notes: tuple[str, ...] = ()
    sources: tuple[Result, ...] = field(default=(), repr=False)

    def columns(self) -> tuple[str, ...]:
        """The columns of the rows, in the order of their first cell."""
        return tuple(dict.fromkeys(name for row in self.rows for name in row.cells))

    def column(self, name: object, argument: str, more: Iterable[str] = ()) -> str:
        """The column that a model means. Raises ComputeError with those that are there and the nearest one.

        A result that found nothing has every column: no value of any.
        """
        if not self.rows and self.sources and self.complete and squashed(str(name)):
            return str(name)[:100]
        columns = tuple(dict.fromkeys((*self.columns(), *more)))
        asked = squashed(str(name)[:100])
        by_name = {squashed(each): each for each in reversed(columns)}
        if asked and asked in by_name:
            return by_name[asked]
        counted = _COUNTED.fullmatch(str(name).strip()[:100])
        if counted is not None and (inner := squashed(counted[1])) in by_name:
            return f"count({by_name[inner]})"
        words = f"no column {str(name)[:60]!r}" if asked else f"{argument} is missing"
        for near in get_close_matches(asked, list(by_name), n=1, cutoff=0.6):
            words += f"; the nearest is {by_name[near]}"
        here = {row.kind for row in self.rows}
        others = (row for each in self.sources for row in each.rows if row.kind not in here)
        elsewhere = {row.kind: None for row in others if asked in map(squashed, row.cells)}
        if elsewhere:
            words += f"; rows of kind {_listed(list(elsewhere))} have it: give kind"
        raise ComputeError(f"{words}; there are {_listed(columns)}", argument, columns)


def references(of: object) -> tuple[str, ...]:
    """The references in an argument: `c1`, `[c1, c4]`, `["c1.3", "c1.5-7"]`."""
    parts = of if isinstance(of, list | tuple) else [of]
    told = (word for part in parts if part is not None for word in re.split(r"[\s,;+]+", str(part).strip()))
    return tuple(dict.fromkeys(word for each in told if (word := each.strip("[]\"'(){}")) not in ("", "and")))


def select(results: Results, of: object, kind: str = "", *, name: str = "of") -> SelectedRows:
    """The rows that `of` refers to, of one kind. Pages of one list are joined. Raises ComputeError."""
    refs = references(of) or _only(results, name)
    wholes: list[Result] = []
    picked: list[Row] = []
    for ref in refs:
        match = _REFERENCE.fullmatch(ref)
        result = _result(results, ref if match is None else match["result"], name)
        if match is None or match["first"] is None:
            wholes.append(result)
            continue
        first, last = int(match["first"]), int(match["last"] or match["first"])
        if not 0 < first <= last <= len(result.rows):
            raise ComputeError(f"{ref}: {result.ref} has the rows 1 to {len(result.rows)}", name)
        picked.extend(result.rows[first - 1 : last])
    kind = _kind(kind, [each for result in wholes for each in result.kinds])
    rows: list[Row] = []
    seen: dict[object, str] = {}
    complete, twice = True, 0
    matched: int | None = 0
    for pages in _lists(wholes):
        whole, there = _coverage(pages, kind)
        complete, matched = complete and whole, None if matched is None or there is None else matched + there
        for page in pages:
            start = _offset(page)
            for place, row in enumerate(_rows(page, kind)):
                key = _identity(row) or (pages[0].ref, start + place if len(pages) > 1 and not kind else row.ref)
                if seen.setdefault(key, page.ref) == page.ref:
                    rows.append(row)
                else:
                    twice += 1
    if picked:
        known = {row.ref for row in rows}
        rows.extend(row for row in {row.ref: row for row in picked}.values() if row.ref not in known)
    return SelectedRows(
        tuple(rows),
        refs,
        complete and not picked,
        None if picked or twice else matched,
        bool(picked),
        (f"{twice} rows that stand in more than one of the results were counted once",) if twice else (),
        tuple(wholes),
    )


def _rows(result: Result, kind: str) -> tuple[Row, ...]:
    return result.rows_of(kind) if not kind or kind in result.kinds else ()


def _only(results: Results, name: str) -> tuple[str, ...]:
    found = tuple(result.ref for result in results if result.rows and not result.computed)
    if len(found) != 1:
        raise ComputeError(f"say which results: {name} is missing; {_there_are(results)}", name, found)
    return found


def _result(results: Results, ref: str, name: str) -> Result:
    result = results.get(ref)
    if result is None:
        raise ComputeError(f"there is no result {ref}; {_there_are(results)}", name)
    if result.problem:
        raise ComputeError(f"{ref} holds nothing: {result.problem}", name)
    return result


def _there_are(results: Results) -> str:
    return f"there are {_listed([result.ref for result in results if not result.problem])}"


def _listed(names: Sequence[str], most: int = 40) -> str:
    return ", ".join(names[:most]) + (", ..." if len(names) > most else "") if names else "none"


def _kind(kind: str, kinds: Sequence[str]) -> str:
    wanted, known = fold(kind), tuple(dict.fromkeys(kinds))
    singular = (wanted, wanted.removesuffix("s"), wanted.removesuffix("es"), f"{wanted[:-3]}y")
    found = next((each for each in known if fold(each) in singular), "")
    if wanted and known and not found:
        raise ComputeError(f"no rows of kind {kind!r}; there are {_listed(known)}", "kind", known)
    return found if wanted else ""


def _lists(wholes: Iterable[Result]) -> Iterable[list[Result]]:
    """Results that are pages of one list, together."""
    lists: dict[str, list[Result]] = {}
    for each in wholes:
        asked = sorted((name, value) for name, value in each.arguments.items() if name not in _PAGING)
        lists.setdefault(each.ref if each.computed else repr((each.tool, asked)), []).append(each)
    return lists.values()


def _offset(result: Result) -> int:
    start = number(result.arguments.get("offset"))
    return start if isinstance(start, int) and start > 0 else 0


def _coverage(pages: Sequence[Result], kind: str) -> tuple[bool, int | None]:
    """Whether pages of one list hold all that matched, and how many rows of this kind that is."""
    main = all(page.rows_of() == _rows(page, kind) for page in pages)
    totals = {number(page.coverage.get("rows_total")) for page in pages}
    if len(pages) == 1:
        whole = pages[0].complete
        told = totals.pop()
        return whole, len(_rows(pages[0], kind)) if whole else int(told) if told is not None and main else None
    total = max((int(each) for each in totals if each is not None), default=None)
    if not main or total is None or len(totals) > 1:
        return False, total if main else None
    cut = any(page.coverage.get("partial") or any("left_out" in each.path for each in page.totals) for page in pages)
    places = {_offset(page) + place for page in pages for place in range(len(page.rows_of()))}
    return not cut and len(places) >= total, total


def _identity(row: Row) -> object:
    column = _IDENTITIES.get(row.kind)
    if column is None or row.cells.get(column) is None or hidden(row.cells[column]):
        return None
    return row.kind, row.cells[column], row.cells.get("workspace")


def squashed(name: str) -> str:
    """A column's name without what spellings differ in."""
    return "".join(tokens(name))


_MOST_CHARACTERS = 2_000
_OPERATORS: Mapping[str, str] = toml_beside(__package__, "compute.toml")["operators"]
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
            return lambda row: bool(items(cell_of(row, self.column))) is (self.operator == "filled")
        tests = self._tests(now)
        return lambda row: (
            any(test(each) for each in items(cell_of(row, self.column)) for test in tests) is (not self.denies)
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

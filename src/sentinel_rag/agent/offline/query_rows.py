"""Rows of queries: what they say first, then their table.

A column is an operator's own, so nothing here knows one by its name: types, order and sameness of values decide.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC
from functools import cached_property
from itertools import takewhile

from sentinel_rag.agent.answers.renderer import Scene, elements, escape, total_of
from sentinel_rag.agent.answers.writer import AnswerWriter, Fact, Part, phrase
from sentinel_rag.agent.planner.decisions import Plan, View
from sentinel_rag.agent.planner.tools import called
from sentinel_rag.agent.row_text import plain
from sentinel_rag.agent.tool_runs import ToolRun
from sentinel_rag.contracts.evidence import Picture
from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.contracts.tool_schemas import MAX_LIMIT
from sentinel_rag.language.frames import Frame

MOST_COLUMNS = 8
_IN_SENTENCE, _LONGEST, _FEW = 5, 60, 4
"""Columns that a sentence tells of one row, characters of a value in it, and values of a column that are counted."""
_LEADING, _NAMING = 3, 3
"""Rows that are named as the first of a ranking, and columns that name one, at most."""
_EMPTY: tuple[JsonValue, ...] = (None, "", [], {}, ())
_ID = re.compile(r"(?i)[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{32,}")
"""A GUID or a hash, which tells a reader nothing."""


def asked_columns(frame: Frame, names: Sequence[str]) -> dict[str, int]:
    """The columns that a question calls by their names, UserAgent by "user agents", with where it does."""
    return {name: said.start() for name in names if (said := called(name).search(frame.text))}


def grouped(plan: Plan, runs: Sequence[ToolRun]) -> Plan | None:
    """What is calculated over the rows of all pages: the values of the column that a question asks for ("which
    browsers does anna use"), or the shares of rows that are sums; None where it asks for the rows as they are."""
    if plan.view is not View.KQL or len(runs) != 1 or not runs[0].rows or plan.frame.has("order", "limit"):
        return None
    rows = Rows(runs[0], AnswerWriter(UTC))
    if plan.frame.has("op:share") and not rows.time:
        label = next((name for name in rows.filled if rows.types.get(name) == "string"), "")
        column = next((name for name in rows.filled if rows.types.get(name) in ("long", "int")), "")
        share = {"op": "share", "of": "$1", "by": label, "column": column}
        return replace(plan, view=View.COMPUTED, then=(share,)) if label and column else None
    asked = asked_columns(plan.frame, [name for name in rows.filled if not rows.given(name)]) if rows.time else {}
    topics = [item.start for item in plan.frame.items if item.sense("topic") is not None]
    first = min(asked, key=asked.__getitem__, default="")
    if not first or asked[first] > min(topics, default=len(plan.frame.text)):  # "sign-ins of anna with user agents"
        return None
    calls = tuple(replace(call, arguments={**call.arguments, "limit": MAX_LIMIT}) for call in plan.calls)
    return replace(plan, view=View.COMPUTED, calls=calls, then=({"op": "group", "of": "$1", "by": first},))


@dataclass(frozen=True)
class Rows:
    """The rows of one result by their columns."""

    run: ToolRun
    writer: AnswerWriter

    @cached_property
    def types(self) -> Mapping[str, str]:
        """The type of each column, as the result tells it."""
        return {} if self.run.result is None else {each.name: each.type for each in self.run.result.columns}

    @cached_property
    def filled(self) -> list[str]:
        """The columns that hold a value in some row."""
        names = self.types or (self.run.rows[0] if self.run.rows else ())
        return [name for name in names if any(row.get(name) not in _EMPTY for row in self.run.rows)]

    @cached_property
    def same(self) -> list[str]:
        """The columns that hold one value in all of several rows."""
        first, *others = self.run.rows or [{}]
        return [name for name in self.filled if others and all(row.get(name) == first.get(name) for row in others)]

    def tells(self, name: str) -> bool:
        """Whether the column holds something else than ids."""
        values = [str(row[name]) for row in self.run.rows if row.get(name) not in _EMPTY]
        return not all(map(_ID.fullmatch, values))

    @property
    def whole(self) -> bool:
        """Whether every row that matches is here."""
        return self.run.at("/coverage/rows_total") == len(self.run.rows)

    @property
    def time(self) -> str:
        """The column by which rows are events; empty for rows that sum up."""
        column = str(self.run.at("/coverage/time_column") or "")
        return column if column in self.filled else ""

    @cached_property
    def sums(self) -> Sequence[str]:
        """The columns that the result sums up over all rows that match."""
        totals = self.run.at("/summary/totals")
        return [*totals] if isinstance(totals, Mapping) else []

    @cached_property
    def labels(self) -> Sequence[str]:
        """The columns that name a row of sums: those before the first sum that hold something else than ids. None where
        they are many, or do not tell the rows apart."""
        before = [name for name in takewhile(lambda name: name not in self.sums, self.filled) if self.tells(name)]
        told = {tuple(str(row.get(name)) for name in before) for row in self.run.rows}
        return before if len(before) <= _NAMING and len(told) == len(self.run.rows) else ()

    @cached_property
    def ranking(self) -> str:
        """The column that ranks rows of sums, the first that is summed up; empty where all rows have the same there."""
        if self.time or not self.labels or len(self.run.rows) < 2:
            return ""
        column = next((name for name in self.sums if name in self.filled), "")
        counts = [_count(row, column) for row in self.run.rows]
        return column if len({*counts}) > 1 and min(counts) >= 0 else ""

    def cell(self, place: int, name: str) -> Fact:
        """A cell of the table."""
        return (self.writer.time_cell if self._is_time(place, name) else self.writer.cell)(self.run, _at(place, name))

    def said(self, place: int, name: str) -> Fact:
        """A value as a sentence tells it."""
        value = self.run.rows[place].get(name)
        if self._is_time(place, name):
            return self.writer.time(self.run, _at(place, name))
        if isinstance(value, str):
            return self.writer.exact(self.run, _at(place, name), limit=_LONGEST)
        if isinstance(value, list | tuple):
            return phrase("{}", self.writer.joined(self.run, _at(place, name), self.writer.exact, limit=_FEW))
        return self.writer.number(self.run, _at(place, name))

    def given(self, name: str, place: int = 0) -> bool:
        """Whether the call asked for the value."""
        asked = self.run.call.arguments.get("parameters")
        values = map(str, asked.values()) if isinstance(asked, Mapping) else ()
        return str(self.run.rows[place].get(name)).casefold() in map(str.casefold, values)

    def short(self, place: int, names: Sequence[str]) -> list[str]:
        """The first columns of a row that a sentence has room for; no ids, and nothing that the call asked for."""
        texts = {name: str(value) for name in names if (value := self.run.rows[place].get(name)) not in _EMPTY}
        told = (name for name, text in texts.items() if len(text) <= _LONGEST and not _ID.fullmatch(text))
        return [name for name in told if not self.given(name, place)][:_IN_SENTENCE]

    def told(self, place: int, names: Sequence[str]) -> list[Fact]:
        """Those columns, each with its name."""
        return [
            self.said(place, name) if name == self.time else phrase("{} {}", Fact(name), self.said(place, name))
            for name in self.short(place, names)
        ]

    def counted(self, name: str) -> list[Fact]:
        """The distinct values of a column, each with how many rows hold it, the commonest first."""
        places: dict[str, list[int]] = {}
        for place, row in enumerate(self.run.rows):
            if row.get(name) not in _EMPTY:
                places.setdefault(str(row[name]), []).append(place)
        ranked = sorted(places.values(), key=lambda each: -len(each))
        tallies = [self.writer.tally([(self.run, _at(place, name)) for place in each]) for each in ranked]
        return [phrase("{} ({})", self.said(each[0], name), tally) for each, tally in zip(ranked, tallies, strict=True)]

    def _is_time(self, place: int, name: str) -> bool:
        return self.types.get(name) == "datetime" and not isinstance(self.run.rows[place].get(name), Mapping)


def _at(place: int, name: str) -> str:
    return f"/rows/{place}/{escape(name)}"


def say_found(scene: Scene, _: str) -> None:
    """How many rows there are, what the first of them says, and what all of them share."""
    writer, run, rows = scene.writer, scene.run, Rows(scene.run, scene.writer)
    told = rows.filled
    if rows.time:
        asked = asked_columns(scene.plan.frame, told)
        told = [rows.time, *asked, *(name for name in told if name not in (rows.time, *asked, *rows.same))]
    facts = rows.told(0, told) if run.rows else []  # none on a page behind the last one
    total, named = total_of(writer, run), scene.parts["for"]
    begun = len(writer.lines) + 1
    if rows.ranking:
        _say_ranking(rows, total, named)
    elif facts and len(run.rows) == 1:
        writer.say("{} row{}: {}.", total, named, facts)
    else:
        writer.say(f"{{}} {'row' if total.text == '1' else 'rows'}{{}}{_order(rows)}.", total, named)
        if len(run.rows) > 1:
            _say_sums(rows, "Sums:")
            if facts:
                writer.say("On top: {}.", facts)
            if rows.time:
                _say_shared(rows)
    _say_filters(rows)
    writer.goes_on(begun)


def _say_ranking(rows: Rows, total: Fact, named: Part) -> None:
    """Whom the rows put first and with how much, then what all of them come to."""
    writer, column = rows.writer, rows.ranking
    counts = [_count(row, column) for row in rows.run.rows]
    rising, falling = counts == sorted(counts), counts == sorted(counts, reverse=True)
    ranked = sorted(range(len(counts)), key=lambda place: counts[place] if rising else -counts[place])[:_LEADING]
    facts = []
    for place in ranked:
        told = [name for name in (*rows.labels, column) if rows.run.rows[place].get(name) not in _EMPTY]
        facts.append(phrase(" ".join("{}" for _ in told), *(rows.said(place, name) for name in told)))
    words = "Fewest" if rising else "Most" if falling or rows.whole else "Of the rows shown, most"
    writer.say(f"{words} {{}}{{}}: {{}}.", Fact(column), named, facts)
    _say_sums(rows, "In all {} rows:", total)


def _say_sums(rows: Rows, words: str, *parts: Part) -> None:
    """The sums over all rows, of those columns that can be summed up."""
    at = "/summary/totals"
    if sums := [phrase("{} {}", Fact(name), rows.writer.number(rows.run, f"{at}/{name}")) for name in rows.sums]:
        rows.writer.say(f"{words} {{}}.", *parts, sums)


def _count(row: Mapping[str, JsonValue], name: str) -> float:
    """The number in a cell; -1 where there is none."""
    value = row.get(name)
    return value if isinstance(value, int | float) and not isinstance(value, bool) else -1


def _say_filters(rows: Rows) -> None:
    """What the query always filters by, where it is short."""
    filters = [f"/summary/filters/{at}" for at in range(len(elements(rows.run, "/summary/filters")))]
    if facts := [rows.writer.exact(rows.run, at) for at in filters if len(str(rows.run.at(at))) <= _LONGEST]:
        rows.writer.say("Only rows where {}.", facts)


def _order(rows: Rows) -> str:
    """In which order events came."""
    ends = [str(rows.run.rows[place].get(rows.time) or "") for place in (0, -1)] if rows.time else []
    return "" if len({*ends}) < 2 else ", newest first" if ends[0] > ends[1] else ", oldest first"


def _say_shared(rows: Rows) -> None:
    """What all rows share, and the counts of columns that hold few values."""
    writer = rows.writer
    if facts := rows.told(0, [name for name in rows.same if name != rows.time]):
        writer.say(f"{'These rows' if rows.whole else 'The rows shown'} share {{}}.", facts, cited=[(rows.run, "")])
    for name in rows.filled if rows.whole and len(rows.run.rows) > _FEW else ():
        if name not in rows.same and name != rows.time and 1 < len(facts := rows.counted(name)) <= _FEW:
            writer.say("{}: {}.", Fact(name), facts)


def say_rows(scene: Scene, title: str) -> None:
    """The rows as a table, of the columns that hold different values; what has no room is named."""
    writer, rows = scene.writer, Rows(scene.run, scene.writer)
    asked = asked_columns(scene.plan.frame, rows.filled) if rows.time else {}
    shared = [name for name in rows.same if name != rows.time] if rows.time and "for" in scene.parts else []
    dropped = [*(rows.short(0, shared) if shared else ()), *(name for name in shared if rows.given(name))]
    told = [name for name in rows.filled if name in asked or name not in dropped] or rows.filled
    ordered = sorted(told, key=lambda name: 0 if name in (rows.time, *asked) else 1 if rows.tells(name) else 2)
    if left := ordered[MOST_COLUMNS:]:
        writer.fixed(f"Columns without room here: {', '.join(map(plain, left))}.")
    shown = ordered[:MOST_COLUMNS]
    cells = [[rows.cell(place, name) for name in shown] for place in range(len(scene.run.rows))]
    writer.table(title, shown, cells, picture=Picture.RANKING if rows.ranking in shown else Picture.NONE)


def say_alike(scene: Scene, _: str) -> None:
    """Rows of a search of all logs as a table, those that tell the same as one with their number and newest time."""
    writer, run = scene.writer, scene.run
    told = ("table", "account", "host", "address", "activity", "outcome")
    alike: dict[tuple[str, ...], list[int]] = {}
    for place, row in enumerate(run.rows):
        alike.setdefault(tuple(str(row.get(name) or "") for name in told), []).append(place)
    shown = [name for at, name in enumerate(told) if any(key[at] for key in alike)]
    rows = [
        [
            writer.tally([(run, f"/rows/{place}") for place in places]),
            writer.time_cell(run, f"/rows/{places[0]}/time"),
            *(writer.cell(run, f"/rows/{places[0]}/{name}") for name in shown),
        ]
        for places in alike.values()
    ]
    writer.table("", ("Rows", "Newest", *(name.capitalize() for name in shown)), rows)

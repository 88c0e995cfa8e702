"""Writes an answer out of facts: text of our own with values that each point into a result.

A template holds no figure and no name; those come in as `Fact` (a place in a result) or `Echo` (the person's own
words). So every checkable atom of an answer has its evidence by construction, and `grounding` checks it again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import tzinfo

from sentinel_rag.agent.row_text import code, plain, quoted
from sentinel_rag.agent.times import show_duration, show_value
from sentinel_rag.agent.tool_runs import ToolRun
from sentinel_rag.contracts.evidence import Evidence, Table
from sentinel_rag.contracts.json_values import JsonValue

ABSENT = "not recorded"
EMPTY_CELL = "-"
_BEGINNING = 40


@dataclass(frozen=True, slots=True)
class Fact:
    """A value of a result as the answer shows it. `evidence` is None only for a value that is not there."""

    text: str
    evidence: Evidence | None = None


@dataclass(frozen=True, slots=True)
class Echo:
    """Words of the person's own question, shown as a code span; a `word` of a schema's enumeration stands as it is."""

    text: str
    word: bool = False

    def shown(self) -> str:
        """The words as an answer shows them."""
        return plain(self.text) if self.word else code(self.text)


@dataclass(frozen=True, slots=True)
class Line:
    """One sentence or list item with its evidence. `fixed` lines hold no fact and need no check."""

    text: str
    evidence: tuple[Evidence, ...] = ()
    fixed: bool = False


@dataclass(frozen=True, slots=True)
class Tally:
    """A count that we made over places of one result, or of it and `more` results, which the check counts again."""

    call_id: str
    pointers: tuple[str, ...]
    more: tuple[Tally, ...] = ()


@dataclass(slots=True)
class AnswerWriter:
    """Collects lines and tables; `zone` is the session's time zone. `listed` counts the numbered rows so far, so that
    the lists of one answer share one numbering."""

    zone: tzinfo
    lines: list[Line] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    table_evidence: list[Evidence] = field(default_factory=list)
    listed: int = 0
    tallies: list[Tally] = field(default_factory=list)

    def number(self, run: ToolRun, pointer: str) -> Fact:
        """A number, or a word such as a severity, as it is."""
        return self._fact(run, pointer, lambda value: plain(str(value)))

    def name(self, run: ToolRun, pointer: str) -> Fact:
        """A title or name in quotation marks."""
        return self._fact(run, pointer, lambda value: quoted(str(value)))

    def exact(self, run: ToolRun, pointer: str, *, limit: int = 600) -> Fact:
        """An identifier (hash, command line, URL, entity) as a code span."""
        return self._fact(run, pointer, lambda value: code(str(value), limit=limit))

    def time(self, run: ToolRun, pointer: str) -> Fact:
        """A time in UTC and in the session's zone."""
        return self._fact(run, pointer, lambda value: show_value(str(value), self.zone))

    def words(self, run: ToolRun, pointer: str, *, limit: int = 600) -> Fact:
        """A longer text of a row, quoted."""
        return self._fact(run, pointer, lambda value: quoted(str(value), limit=limit))

    def joined(
        self, run: ToolRun, pointer: str, show: Callable[[ToolRun, str], Fact], *, limit: int = 12
    ) -> list[Fact]:
        """The elements of a list, each a fact of its own."""
        values = run.at(pointer)
        count = len(values) if isinstance(values, list | tuple) else 0
        return [show(run, f"{pointer}/{place}") for place in range(min(count, limit))]

    def count(self, run: ToolRun, pointer: str) -> Fact:
        """How many elements the list at `pointer` has; the list itself is the evidence."""
        values = run.at(pointer)
        text = str(len(values) if isinstance(values, list | tuple) else 0)
        return Fact(text, self._evidence(run, pointer, text, values))

    def tally(self, run: ToolRun, pointers: Sequence[str]) -> Fact:
        """How many places of the result these are; the first of them is the evidence, all are counted again."""
        assert pointers, "a tally of nothing needs no figure"
        self.tallies.append(Tally(run.call.call_id, tuple(pointers)))
        text = str(len(pointers))
        return Fact(text, self._evidence(run, pointers[0], text, run.at(pointers[0])))

    def tally_all(self, places: Sequence[tuple[ToolRun, str]]) -> Fact:
        """How many places of several results these are, as `tally` for one."""
        assert places, "a tally of nothing needs no figure"
        of_call: dict[str, list[str]] = {}
        for run, pointer in places:
            of_call.setdefault(run.call.call_id, []).append(pointer)
        first, *more = (Tally(call_id, tuple(pointers)) for call_id, pointers in of_call.items())
        self.tallies.append(Tally(first.call_id, first.pointers, tuple(more)))
        run, pointer = places[0]
        text = str(len(places))
        return Fact(text, self._evidence(run, pointer, text, run.at(pointer)))

    def duration(self, run: ToolRun, pointer: str) -> Fact:
        """A number of seconds in words."""
        return self._fact(run, pointer, lambda value: show_duration(value) if isinstance(value, int | float) else "")

    def say(self, template: str, *parts: Fact | Echo | Sequence[Fact]) -> None:
        """Add a line; each `{}` takes a part, a sequence is joined by commas."""
        assert not re.search(r"\d", template), f"a figure in a template has no evidence: {template!r}"
        texts: list[str] = []
        evidence: list[Evidence] = []
        for part in parts:
            if isinstance(part, Echo):
                texts.append(part.shown())
                continue
            facts = [part] if isinstance(part, Fact) else list(part)
            texts.append(", ".join(fact.text for fact in facts))
            evidence += [fact.evidence for fact in facts if fact.evidence is not None]
        self.lines.append(Line(template.format(*texts), tuple(evidence), fixed=not parts))

    def shows(self, text: str) -> bool:
        """True if a line or a cell holds the beginning of a row's text."""
        start = plain(text)[:_BEGINNING]
        shown = [line.text for line in self.lines]
        return any(start in each for each in shown) or any(
            start in cell for table in self.tables for row in table.rows for cell in row
        )

    def fixed(self, text: str) -> None:
        """Add a sentence of ours that states nothing about data."""
        self.lines.append(Line(text, fixed=True))

    def note(self, run: ToolRun, place: int, *, brief: bool = False) -> None:
        """A note that the tool's code wrote, with its place as evidence; `brief` leaves out what follows a colon."""

        workspaces = run.at("/summary/by_workspace")
        named = workspaces if isinstance(workspaces, Mapping) else {}

        def shown(value: JsonValue) -> str:
            text = plain(str(value), limit=600)
            if not brief:
                return text
            # A note of one workspace among several begins with its name and a colon of its own.
            name, colon, rest = text.partition(": ")
            if name not in named:
                return f"{name.rstrip('.')}."
            return f"{name}{colon}{rest.partition(': ')[0].rstrip('.')}."

        fact = self._fact(run, f"/notes/{place}", shown)
        self.lines.append(Line(f"Note: {fact.text}", () if fact.evidence is None else (fact.evidence,)))

    def table(self, title: str, columns: Sequence[str], rows: Sequence[Sequence[Fact]]) -> None:
        """A table whose cells are facts."""
        self.tables.append(Table(tuple(columns), tuple(tuple(fact.text for fact in row) for row in rows), title))
        self.table_evidence += [fact.evidence for row in rows for fact in row if fact.evidence is not None]

    def cell(self, run: ToolRun, pointer: str, *, limit: int = 120) -> Fact:
        """A cell: plain text, `-` where nothing is recorded."""
        value = run.at(pointer)
        if value in (None, "", [], {}):
            return Fact(EMPTY_CELL)
        parts = value if isinstance(value, list | tuple) else [value]
        text = ", ".join(plain(str(part)) for part in parts)
        return Fact(plain(text, limit=limit), self._evidence(run, pointer, plain(text, limit=limit), value))

    def time_cell(self, run: ToolRun, pointer: str) -> Fact:
        """A time as a cell."""
        value = run.at(pointer)
        if not value:
            return Fact(EMPTY_CELL)
        text = show_value(str(value), self.zone)
        return Fact(text, self._evidence(run, pointer, text, value))

    def _fact(self, run: ToolRun, pointer: str, show: Callable[[JsonValue], str]) -> Fact:
        value = run.at(pointer)
        if value in (None, ""):
            return Fact(ABSENT)
        text = show(value)
        return Fact(text, self._evidence(run, pointer, text, value))

    @staticmethod
    def _evidence(run: ToolRun, pointer: str, text: str, value: JsonValue) -> Evidence:
        return Evidence(text, run.call.call_id, run.call.tool_name, pointer, value)

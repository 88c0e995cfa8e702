"""Writes an answer out of facts: text of our own with values that each point into a result.

A template holds no figure and no name; those come in as `Fact` (a place in a result) or `Echo` (the person's own
words). So each line is born with its values, their places in it, and the rows that it cites: nothing has to be found
again in its text. `sentences` are what `Answer.sentences` says of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, tzinfo

from sentinel_rag.agent.answers.results import Result, numbered
from sentinel_rag.agent.row_text import code, plain, quoted, show_age, show_duration, show_value
from sentinel_rag.agent.tool_runs import ToolRun
from sentinel_rag.contracts.evidence import Citation, CitedBy, Evidence, Mark, Picture, Sentence, SentenceState, Table
from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag.contracts.query_results import parse_time
from sentinel_rag.language.notes import CodedNote
from sentinel_rag.language.notes import brief as note_in_brief

ABSENT = "not recorded"
EMPTY_CELL = "-"
_BEGINNING = 40


Place = tuple[ToolRun, str]
"""A call and a JSON pointer into its result; the empty pointer is the result as a whole."""


@dataclass(frozen=True, slots=True)
class ShownValue:
    """`text[start:end]` of a fact or a line, and the place of the result that it shows."""

    start: int
    end: int
    run: ToolRun
    evidence: Evidence
    counted: tuple[Place, ...] = ()
    """The places that a count of ours was made over; empty for a value that stands in the result itself."""

    def moved(self, by: int) -> ShownValue:
        """The same, `by` characters further on."""
        return replace(self, start=self.start + by, end=self.end + by)


@dataclass(frozen=True, slots=True)
class Fact:
    """A text with the values of results that stand in it; none for a value that is not there, or a word of ours."""

    text: str
    values: tuple[ShownValue, ...] = ()

    @property
    def evidence(self) -> Evidence | None:
        """The place of its first value."""
        return self.values[0].evidence if self.values else None

    def shown_as(self, text: str) -> Fact:
        """The same value in other words."""
        return Fact(
            text,
            tuple(
                replace(each, start=0, end=len(text), evidence=replace(each.evidence, text=text))
                for each in self.values[:1]
            ),
        )


@dataclass(frozen=True, slots=True)
class Echo:
    """Words of the person's own question, shown as a code span; a `word` of a schema's enumeration stands as it is."""

    text: str
    word: bool = False

    def shown(self) -> str:
        """The words as an answer shows them."""
        return plain(self.text) if self.word else code(self.text)


Part = Fact | Echo | Sequence[Fact]
"""What a template's `{}` takes; a sequence is joined by commas."""


@dataclass(frozen=True, slots=True)
class Line:
    """One sentence or list item. `cited` are places that it rests on without showing a value of them."""

    text: str
    values: tuple[ShownValue, ...] = ()
    cited: tuple[Place, ...] = ()
    compared: bool = False
    """Whether code compared what it says with what it cites although no value of that stands in it, as in "none"."""
    offered: bool = False
    """Whether it is a question that could be asked, which states nothing."""
    goes_on: bool = False
    """Whether it stands in the paragraph of the line before it."""

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        """The places of its values."""
        return tuple(value.evidence for value in self.values)

    def opened_with(self, words: str) -> Line:
        """The line behind `words`."""
        return replace(self, text=words + self.text, values=tuple(each.moved(len(words)) for each in self.values))


def phrase(template: str, *parts: Part) -> Fact:
    """A template as one fact; each `{}` takes a part."""
    texts = template.split("{}")
    assert len(texts) == len(parts) + 1, f"{template!r} takes {len(texts) - 1} parts, not {len(parts)}"
    text = texts[0]
    values: list[ShownValue] = []
    for part, behind in zip(parts, texts[1:], strict=True):
        if isinstance(part, Echo):
            text += part.shown()
        else:
            for place, fact in enumerate([part] if isinstance(part, Fact) else part):
                text += ", " if place else ""
                values += [value.moved(len(text)) for value in fact.values]
                text += fact.text
        text += behind
    return Fact(text, tuple(values))


@dataclass(slots=True)
class AnswerWriter:
    """Collects lines and tables; `zone` is the session's time zone. `listed` counts the numbered rows so far, so that
    the lists of one answer share one numbering."""

    zone: tzinfo
    now: datetime | None = None
    """The moment of the question, from which ages are counted."""
    lines: list[Line] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    table_values: list[tuple[tuple[ShownValue, ...], ...]] = field(default_factory=list)
    """The values of each row of each table, table by table."""
    listed: int = 0

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
        return part_of(run, pointer, str(len(values) if isinstance(values, list | tuple) else 0))

    def tally(self, places: Sequence[Place]) -> Fact:
        """How many places of results these are; the sentence cites the rows of all of them."""
        assert places, "a tally of nothing needs no figure"
        counted = tuple({(run.call.call_id, pointer): (run, pointer) for run, pointer in places}.values())
        fact = part_of(*places[0], str(len(counted)))
        return Fact(fact.text, (replace(fact.values[0], counted=counted),))

    def duration(self, run: ToolRun, pointer: str) -> Fact:
        """A number of seconds in words."""
        return self._fact(run, pointer, lambda value: show_duration(value) if isinstance(value, int | float) else "")

    def age(self, run: ToolRun, pointer: str) -> Fact:
        """How long ago a time was."""
        now = self.now
        return self._fact(run, pointer, lambda value: "" if now is None else show_age(now - parse_time(str(value))))

    def say(self, template: str, *parts: Part, cited: Iterable[Place] = ()) -> None:
        """Add a line; each `{}` takes a part, a sequence is joined by commas. `cited` are places that it rests on
        besides those of its values."""
        self.lines.append(self.line(template, *parts, cited=cited))

    def line(self, template: str, *parts: Part, cited: Iterable[Place] = ()) -> Line:
        """The line that `say` adds."""
        assert not re.search(r"\d", template), f"a figure in a template has no evidence: {template!r}"
        fact = phrase(template, *parts)
        text = fact.text
        if text.startswith("at least "):
            text = f"A{text[1:]}"
        return Line(text, fact.values, tuple(cited))

    def say_compared(self, cited: Iterable[Place], template: str, *parts: Part) -> None:
        """Add a line that shows no value of what it cites, but that code compared with it."""
        self.lines.append(replace(self.line(template, *parts, cited=cited), compared=True))

    def say_none(self, runs: Iterable[ToolRun], template: str, *parts: Part) -> None:
        """Add a line that says that there is none in these results as a whole, and how far was looked in one of which
        rows are missing."""
        runs = list(runs)
        self.say_compared([(run, "") for run in runs], template, *parts)
        returned, total = "/coverage/rows_returned", "/coverage/rows_total"
        for run in runs:
            if not result_of(run).complete and run.at(returned) != (run.at(total) or run.at(returned)):
                self.say("I looked at {} of {} rows.", self.number(run, returned), self.number(run, total))

    def shows(self, text: str) -> bool:
        """True if a line or a cell holds the beginning of a row's text."""
        start = plain(text)[:_BEGINNING]
        shown = [line.text for line in self.lines]
        return any(start in each for each in shown) or any(
            start in cell for table in self.tables for row in table.rows for cell in row
        )

    def fixed(self, text: str) -> None:
        """Add a sentence of ours that states nothing about data."""
        self.lines.append(Line(text))

    def goes_on(self, at: int) -> None:
        """Put the lines from number `at` on into the paragraph before them."""
        self.lines[at:] = [replace(line, goes_on=place > 0) for place, line in enumerate(self.lines[at:], start=at)]

    def offer(self, question: str) -> None:
        """Add a question that the person could ask next."""
        self.lines.append(Line(question, offered=True))

    def note(self, run: ToolRun, place: int, *, brief: bool = False) -> None:
        """A note that the tool's code wrote, with its place as evidence; `brief` leaves out what it explains."""

        told = "" if run.result is None else run.result.notes[place]
        if brief and isinstance(told, CodedNote):
            told = note_in_brief(told)
        self.say("Note: {}", self._fact(run, f"/notes/{place}", lambda _: plain(told, limit=600)))

    def table(
        self,
        title: str,
        columns: Sequence[str],
        rows: Sequence[Sequence[Fact]],
        *,
        folded: bool = False,
        picture: Picture = Picture.NONE,
    ) -> None:
        """A table whose cells are facts; a `folded` one is shown on demand, and `picture` may be drawn of it."""
        cells = tuple(tuple(fact.text for fact in row) for row in rows)
        self.tables.append(Table(tuple(columns), cells, title, folded, picture))
        self.table_values.append(tuple(tuple(value for fact in row for value in fact.values) for row in rows))

    def cell(self, run: ToolRun, pointer: str, *, limit: int = 120) -> Fact:
        """A cell: plain text, `-` where nothing is recorded."""
        value = run.at(pointer)
        if value in (None, "", [], {}):
            return Fact(EMPTY_CELL)
        parts = value if isinstance(value, list | tuple) else [value]
        return part_of(run, pointer, plain(", ".join(plain(str(part)) for part in parts), limit=limit))

    def time_cell(self, run: ToolRun, pointer: str) -> Fact:
        """A time as a cell."""
        value = run.at(pointer)
        return part_of(run, pointer, show_value(str(value), self.zone)) if value else Fact(EMPTY_CELL)

    @property
    def text(self) -> str:
        """The lines as they stand in the answer."""
        joints = (" " if line.goes_on and place else "\n" for place, line in enumerate(self.lines))
        return "".join(f"{joint}{line.text}" for joint, line in zip(joints, self.lines, strict=True))[1:]

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        """The places of all values, those of the lines first."""
        in_tables = (value.evidence for rows in self.table_values for row in rows for value in row)
        return (*(piece for line in self.lines for piece in line.evidence), *in_tables)

    def sentences(self) -> tuple[Sentence, ...]:
        """What each line rests on, with its place in `text`."""
        sources = _Sources()
        made: list[Sentence] = []
        start = 0
        for line in self.lines:
            if line.text.strip() and not line.offered:
                made.append(_sentence(line, start, sources))
            start += len(line.text) + 1
        return tuple(made)

    @staticmethod
    def _fact(run: ToolRun, pointer: str, show: Callable[[JsonValue], str]) -> Fact:
        value = run.at(pointer)
        return Fact(ABSENT) if value in (None, "") else part_of(run, pointer, show(value))


def part_of(run: ToolRun, pointer: str, text: str) -> Fact:
    """`text` as it shows what stands at `pointer`, or a part of it."""
    evidence = Evidence(text, run.call.call_id, run.call.tool_name, pointer, run.at(pointer))
    return Fact(text, (ShownValue(0, len(text), run, evidence),))


def result_of(run: ToolRun) -> Result:
    """The result as numbered rows; without rows, if it does not have the agreed shape."""
    try:
        return numbered(run)
    except (TypeError, ValueError, KeyError, IndexError, AttributeError):
        return Result(ref=run.call.call_id, tool=run.call.tool_name, arguments=run.call.arguments, complete=False)


class _Sources:
    """The citations of places, with the rows of each result numbered once."""

    def __init__(self) -> None:
        self._rows: dict[str, dict[str, str]] = {}

    def cited(self, run: ToolRun, pointer: str) -> list[Citation]:
        """The row that holds the place; the rows of a list of rows; else the result as a whole."""
        call_id, tool = run.call.call_id, run.call.tool_name
        rows = self._rows.get(call_id)
        if rows is None:
            rows = self._rows[call_id] = {row.pointer: row.ref for row in reversed(result_of(run).rows)}
        inside = [at for at in rows if pointer and at.startswith(f"{pointer}/")]
        if inside and pointer not in rows:
            return [Citation(rows[at], call_id, tool, at) for at in sorted(inside, key=lambda at: _number(rows[at]))]
        at = pointer
        while at and at not in rows:
            at = at.rpartition("/")[0]
        return [Citation(rows[at], call_id, tool, at)] if at in rows and pointer else [Citation(call_id, call_id, tool)]


def _number(ref: str) -> int:
    return int(ref.rpartition(".")[2])


def _sentence(line: Line, start: int, sources: _Sources) -> Sentence:
    marks: list[Mark] = []
    citations: dict[str, Citation] = {}
    for value in line.values:
        piece = value.evidence
        at, end = start + value.start, start + value.end
        if value.counted:
            marks.append(Mark(at, end, found=True))  # no one cell holds it: the cited rows are counted
        else:
            marks.append(Mark(at, end, found=True, call_id=piece.call_id, pointer=piece.pointer, value=piece.value))
        for place in value.counted or ((value.run, piece.pointer),):
            citations.update((each.ref, each) for each in sources.cited(*place))
    for place in line.cited:
        citations.update((each.ref, each) for each in sources.cited(*place))
    return Sentence(
        start,
        start + len(line.text),
        line.text,
        _state(line),
        citations=tuple(citations.values()),
        marks=tuple(marks),
        cited_by=CitedBy.WRITER if citations else CitedBy.NOBODY,
    )


def _state(line: Line) -> SentenceState:
    if line.compared or line.values:
        return SentenceState.VALUES_FOUND
    return SentenceState.SOURCE_GIVEN if line.cited else SentenceState.OWN_WORDS

"""A report as a few kinds of blocks, and the sentences that every form of it says alike.

Texts are raw here; each form makes them safe where it writes them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from sentinel_rag.contracts.query_results import parse_time
from sentinel_rag.contracts.tool_schemas import SEVERITIES
from sentinel_rag.surfaces.rendering.marks import STATE_WORDS, Marked
from sentinel_rag.surfaces.rendering.visible import plain
from sentinel_rag.surfaces.reports.building import (
    MOST_SHOWN,
    Chart,
    EvidenceRow,
    HandOver,
    KnownIncident,
    TimelineEntry,
    TurnFacts,
    both,
)

KINDS = {
    "account": "Accounts",
    "host": "Hosts",
    "ip": "IP addresses",
    "url": "URLs",
    "file": "Files",
    "mailbox": "Mailboxes",
}
NO_FACTS = "Nothing was asked in this conversation."
NOTHING_OPEN = "Nothing is open."
NO_ACTIONS = "No call changed or sent anything, and none was refused."
NO_KNOWLEDGE = "No answer rests on a playbook or a past incident."
NO_EVIDENCE = "No fact rests on a row."
HUMAN = "A person must verify this report before acting on it. Texts in it may have been written by an attacker."
MARKS = (
    "Behind a sentence stand the numbers of the evidence that it cites; marked values were found there. ! is not "
    "found, ✗ contradicted by the cited row. A citation proves values and not verbs."
)


OUTCOMES = {
    "answered": "answered",
    "no_data": "answered: there was no data",
    "clarification": "asked back",
    "out_of_scope": "not answered: nothing here reads that",
    "denied": "denied by the policy",
    "tool_failed": "not answered: a tool failed",
}


def title(report: HandOver) -> str:
    """What the report calls itself."""
    if not report.head.incident:
        return "Shift hand-over"
    told = next((each for each in report.front.incidents if each.number == report.head.incident), None)
    return f"Incident {report.head.incident}{f': {told.title}' if told and told.title else ''}"


def short_head(report: HandOver) -> str:
    """Who reports, when, and of what, on one line; and whether hidden values are shown."""
    head = report.head
    lines = dict(head_lines(report))
    told = [f"By {head.exported_by}, {lines['Exported at']}", f"workspace {lines['Workspace']}"]
    told += [f"questions {lines['Questions']}", f"hidden values: {lines['Hidden values']}"]
    return "; ".join(told) + "." + "".join(f" Note: {note}" for note in head.notes)


def figures(report: HandOver) -> tuple[tuple[str, str], ...]:
    """What it was about, how bad it is, what was done, and what is open, in figures that the pages hold."""
    front = report.front
    first = next(iter(front.incidents), None)
    if first is None:
        about = [("Questions", str(len(report.facts)))]
    elif report.head.incident:
        about = [("Severity", first.severity or "not told"), ("Status", first.status or "not told")]
        about += [("Owner", first.owner or "nobody")]
    else:
        still = sum(each.open for each in front.incidents)
        high = sum(each.severity == "High" for each in front.incidents)
        about = [("Incidents", str(len(front.incidents))), ("Still open", str(still)), ("High", str(high))]
    done = sum(each.done for each in front.deeds)
    waits = sum(each.came_of_it.startswith("waits") for each in front.deeds)
    counts = {"Actions done": done, "Not done": len(front.deeds) - done - waits, "Waiting": waits}
    told = [(name, str(count)) for name, count in counts.items() if count or name != "Not done"]
    return (*about, *told, ("Open points", str(len(open_points(report)))))


def open_points(report: HandOver) -> tuple[str, ...]:
    """The incidents that are not closed, then what the questions left open."""
    alone = report.head.incident
    still = [each for each in report.front.incidents if each.open and alone in ("", each.number)]
    numbers, free = ([each.number for each in some] for some in (still, [each for each in still if not each.owner]))
    told = [f"The incident is {each.status}; its owner is {each.owner or 'nobody yet'}." for each in still if alone]
    if not alone:
        told += [f"Open incidents: {', '.join(numbers)}."] if still else []
        told += [f"Without an owner: {', '.join(free)}."] if free else []
    return (*told, *report.open_questions)


def summary(report: HandOver) -> Iterator[str]:
    """What a reader must know first, in sentences."""
    front, alone = report.front, bool(report.head.incident)
    worst = next(iter(front.incidents), None)
    told = next((each for each in front.incidents if each.said and (alone or each.open)), None)
    if worst is None:
        yield f"No row of an incident was read; questions: {len(report.facts)}."
    elif worst.open and not alone and told is not worst:
        yield f"The most severe that is open: {worst.number}, {worst.title} ({worst.severity}, {worst.status})."
    if told is not None:
        yield " ".join(told.said)


def references(numbers: Sequence[str]) -> str:
    """`E1, E2, E3, and 16 more`"""
    more = f", and {len(numbers) - MOST_SHOWN} more" if len(numbers) > MOST_SHOWN else ""
    return f"{', '.join(numbers[:MOST_SHOWN])}{more}"


def outcome_words(outcome: str) -> str:
    """How a question ended, for people."""
    return OUTCOMES.get(outcome, outcome.replace("_", " "))


def head_lines(report: HandOver) -> tuple[tuple[str, str], ...]:
    """Label and text of each line of the head."""
    head = report.head
    asked = [fact.asked_at for fact in report.facts]
    span = f"{both(asked[0], head.timezone)} to {both(asked[-1], head.timezone)}" if asked else "-"
    answered = sum(fact.outcome == "answered" for fact in report.facts)
    lines = [
        ("Exported by", head.exported_by),
        ("Exported at", both(head.exported_at, head.timezone)),
        ("Conversation", head.conversation_id),
        ("Workspace", head.workspace or "-"),
        ("Questions", f"{len(report.facts)} ({answered} answered), {span}"),
        ("Open", f"{len(open_points(report))}"),
        ("Actions", f"{len(report.actions)}"),
        ("Hidden values", _hidden(report)),
    ]
    return (*lines, *(("Note", note) for note in head.notes))


def counted(fact: TurnFacts) -> str:
    """`12 compared, 1 not found` of one answer; empty where nothing was compared."""
    states = Counter(each.state for each in fact.sentences)
    return ", ".join(f"{states[words]} {words}" for words in STATE_WORDS.values() if states[words])


def how_to_verify(report: HandOver) -> tuple[str, ...]:
    """What a reader of the report does to check it against the gateway's record."""
    head = report.head.journal_head
    return (
        "Each audit id names one call in the gateway's record. One call: sentinel audit show AUDIT_ID. "
        "The whole record, its hash chain and signatures: sentinel audit verify.",
        f"The newest record at the time of the export: {head}." if head else "The record was not read for this export.",
    )


def _hidden(report: HandOver) -> str:
    if report.head.revealed:
        rest = f"; in {report.hidden} answers some stay hidden" if report.hidden else ""
        return f"REVEALED: values that the policy hides from the agent are shown, as this person may see them{rest}"
    if report.hidden:
        return f"in {report.hidden} answers values are hidden; each stands as ⟦its handle⟧"
    return "none"


MOST_INCIDENTS, MOST_MOMENTS, MOST_NAMES, MOST_LINES = 6, 12, 4, 5
"""What the first page shows of each; more stands in the annex, and is told."""


@dataclass(frozen=True, slots=True)
class PartHeading:
    """The head of a part; `level` 1 is a part of the report, 2 is inside one."""

    text: str
    level: int = 1
    number: int = 0
    """Of the question, where it is the head of one."""
    new_page: bool = False
    """Whether it begins a new page, where the form has pages."""

    @property
    def prefix(self) -> str:
        return f"{self.number}. " if self.number else ""


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A paragraph."""

    text: str
    quiet: bool = False


@dataclass(frozen=True, slots=True)
class Labelled:
    """Lines with a label each."""

    lines: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Items:
    """A list; `nothing` stands in its place if it is empty. With `cites` an item begins with a number of evidence and a
    colon; one that is `quiet` is small print."""

    items: tuple[str, ...]
    nothing: str = ""
    cites: bool = False
    quiet: bool = False


ROOM = 88
"""Letters of a table that fit beside each other on a page."""
Cell = str | tuple[str, ...]
"""The text of a cell, or its lines."""


@dataclass(frozen=True, slots=True)
class Grid:
    """A table; `nothing` stands in its place if it is empty. Cells of the column `cites` name evidence, and where
    `named`, those of the first column are the names that these refer to."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    nothing: str = ""
    cites: int | None = None
    named: bool = False

    def widths(self) -> list[float]:
        """The share of the width of each column: room for its longest word, and more by how much it holds."""
        rows = [self.columns, *self.plain_rows()]
        words = [max(len(word) for row in rows for word in row[at].split() or [""]) for at in range(len(self.columns))]
        least = [min(word + 2, ROOM // 4) for word in words]
        more = [max(0, min(60, max(len(row[at]) for row in rows)) - low) for at, low in enumerate(least)]
        spare = max(0, ROOM - sum(least)) / (sum(more) or 1)
        wide = [low + spare * each for low, each in zip(least, more, strict=True)]
        return [each / sum(wide) for each in wide]

    def plain_rows(self) -> list[list[str]]:
        """The rows with every cell on one line."""
        return [[each if isinstance(each, str) else "; ".join(each) for each in row] for row in self.rows]


@dataclass(frozen=True, slots=True)
class Figures:
    """A few names with their values beside each other, the first thing that is seen."""

    items: tuple[tuple[str, str], ...]

    def as_grid(self) -> Grid:
        """The names over their values."""
        return Grid(tuple(name for name, _ in self.items), (tuple(value for _, value in self.items),))


@dataclass(frozen=True, slots=True)
class StripMoment:
    """Something that happened, with its `place` between the first (0) and the last (1)."""

    place: float
    at: str
    where: str
    text: str
    severity: str


@dataclass(frozen=True, slots=True)
class Strip:
    """A picture of when things happened."""

    moments: tuple[StripMoment, ...]


@dataclass(frozen=True, slots=True)
class Bars:
    """A chart."""

    chart: Chart

    def as_grid(self) -> Grid:
        """The chart as a table, with bars of letters."""
        most = max(value for _, value in self.chart.bars) or 1
        rows = ((label, f"{value:g}", "█" * round(BAR * value / most)) for label, value in self.chart.bars)
        return Grid((self.chart.title, "count", ""), tuple(rows))


@dataclass(frozen=True, slots=True)
class AnswerText:
    """The text of an answer with its marks."""

    marked: Marked


Block = PartHeading | Paragraph | Labelled | Items | Grid | Figures | Strip | Bars | AnswerText
BAR = 20
"""Characters of the longest bar of a chart, and of a line of time."""


def line_of_time(place: float) -> str:
    """A mark at `place` of a line."""
    before = round(place * (BAR - 1))
    return "·" * before + "●" + "·" * (BAR - 1 - before)


def front_page(report: HandOver) -> Iterator[Block]:
    """Summary, what happened, scope, actions and open points: what a manager reads."""
    front, zone = report.front, report.head.timezone
    yield Paragraph(short_head(report), quiet=True)
    yield Figures(figures(report))
    yield PartHeading("Summary")
    yield from map(Paragraph, summary(report))
    if front.incidents and not report.head.incident:
        rows = tuple(map(_incident_cells, front.incidents[:MOST_INCIDENTS]))
        yield Grid(("incident", "severity", "status", "owner", "title"), rows)
        yield from _more(len(front.incidents) - MOST_INCIDENTS, "incidents")
    if front.happened:
        yield PartHeading("What happened, in UTC")
        yield strip_of(_worst(front.happened))
        yield from _more(len(front.happened) - MOST_MOMENTS, "moments")
    if front.scope:
        yield PartHeading("Scope")
        yield Items(tuple(_scope_line(kind, names) for kind, names in front.scope))
    yield PartHeading("Actions")
    deeds = tuple((both(each.at, zone), each.what, each.decided or "-", each.came_of_it) for each in front.deeds)
    yield Grid(("asked", "what", "decided", "came of it"), deeds[:MOST_LINES], NO_ACTIONS)
    yield from _more(len(deeds) - MOST_LINES, "actions")
    yield PartHeading("Open points")
    yield Items(open_points(report)[:MOST_LINES], NOTHING_OPEN)
    yield from _more(len(open_points(report)) - MOST_LINES, "open points")
    yield Paragraph(HUMAN, quiet=True)


def annex(report: HandOver) -> Iterator[Block]:
    """About the report, questions with their answers, the records, the evidence, and how to verify them."""
    zone = report.head.timezone
    yield PartHeading("Annex: about this report", new_page=True)
    yield Labelled(head_lines(report))
    if any(fact.sentences for fact in report.facts):
        yield Paragraph(MARKS, quiet=True)
    yield PartHeading("Annex: questions and answers")
    if not report.facts:
        yield Paragraph(NO_FACTS)
    for fact in report.facts:
        yield from _fact(fact, zone)
    yield PartHeading("Annex: all open points")
    yield Items(open_points(report), NOTHING_OPEN)
    yield PartHeading("Annex: actions and approvals, as recorded")
    actions = tuple((both(a.at, zone), a.tool, a.what, a.came_of_it, a.audit_id) for a in report.actions)
    yield Grid(("time", "tool", "with", "what came of it", "audit id"), actions, NO_ACTIONS)
    yield PartHeading("Annex: timeline")
    moments = tuple((both(m.at, zone), m.where, m.text, m.reference) for m in report.timeline)
    yield Grid(("time", "where", "what", "see"), moments, NO_FACTS, cites=3)
    if report.charts:
        yield PartHeading("Annex: charts")
        yield from map(Bars, report.charts)
    yield PartHeading("Annex: knowledge cited")
    yield Items(tuple(f"{number}: {source}" for number, source in report.knowledge), NO_KNOWLEDGE, cites=True)
    yield PartHeading("Annex: evidence")
    columns = ("number", "question", "tool and call", "place", "values", "audit id")
    yield Grid(columns, tuple(map(_evidence_cells, report.evidence)), NO_EVIDENCE, named=True)
    yield PartHeading("Annex: calls, and how to verify them")
    calls = tuple((str(c.turn), c.tool, c.arguments, c.status, c.rows, c.audit_id) for c in report.calls)
    yield Grid(("question", "tool", "arguments", "status", "rows", "audit id"), calls, "No tool was called.")
    yield from map(Paragraph, how_to_verify(report))


def _evidence_cells(row: EvidenceRow) -> tuple[Cell, ...]:
    values = tuple(f"{name}: {plain(value)}" for name, value in row.fields)
    return (row.number, str(row.turn), f"{row.tool} {row.call_id}", row.place, values, row.audit_id)


def _worst(moments: Sequence[TimelineEntry]) -> list[TimelineEntry]:
    """What was done and the most severe alerts, as many as the first page holds, in order of time."""
    ranked = sorted(range(len(moments)), key=lambda at: SEVERITIES[::-1].index(moments[at].severity or SEVERITIES[-1]))
    return [moments[at] for at in sorted(ranked[:MOST_MOMENTS])]


def strip_of(moments: Sequence[TimelineEntry]) -> Strip:
    """The picture of those of these moments, in order of time, whose time can be read: a row may hold any text."""
    placed = []
    for each in moments:
        with suppress(ValueError):
            placed.append((parse_time(each.at), each))
    first = min((at for at, _ in placed), default=None)
    length = (max(at for at, _ in placed) - first).total_seconds() or 1.0 if first else 1.0
    return Strip(
        tuple(
            StripMoment((at - first).total_seconds() / length, both(at, "")[:16], each.where, each.text, each.severity)
            for at, each in placed
            if first is not None
        )
    )


def _fact(fact: TurnFacts, zone: str) -> Iterator[Block]:
    yield PartHeading(fact.question, level=2, number=fact.turn)
    yield Paragraph(f"{both(fact.asked_at, zone)}, {outcome_words(fact.outcome)}", quiet=True)
    yield AnswerText(fact.said)
    if told := counted(fact):
        yield Paragraph(told, quiet=True)
    for table in fact.tables:
        if table.title:
            yield Paragraph(table.title)
        rows = tuple((*row, number) for row, number in zip(table.rows, table.evidence, strict=True))
        yield Grid((*table.columns, "evidence"), rows, cites=len(table.columns))
    if fact.footnote:
        yield Items(fact.footnote, quiet=True)


def with_sources(said: Marked) -> str:
    """The text of an answer with the numbers of its evidence and what was not found behind its sentences."""
    written, at = "", 0
    for note in said.notes:
        written += said.text[at : note.at]
        written += f" ({references(note.sources)})" if note.sources else ""
        written += f" {note.sign} {note.reason}".rstrip() if note.sign else ""
        at = note.at
    return written + said.text[at:]


def _incident_cells(incident: KnownIncident) -> tuple[str, ...]:
    return (incident.number, incident.severity, incident.status, incident.owner or "-", incident.title)


def _scope_line(kind: str, names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return f"{KINDS.get(kind, kind)} ({len(names)}): {', '.join(names[:MOST_NAMES])}{more}"


def _more(number: int, noun: str) -> Iterator[Block]:
    if number > 0:
        yield Paragraph(f"{number} more {noun} are in the annex.", quiet=True)

"""A report as a few kinds of blocks, for forms that are written piece by piece: the first page, and what follows it.

Texts are raw here; each form makes them safe where it writes them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from sentinel_rag.contracts.query_results import parse_time
from sentinel_rag.surfaces.reports import words
from sentinel_rag.surfaces.reports.model import Facts, HandOver, KnownIncident, Moment
from sentinel_rag.surfaces.reports.moments import both
from sentinel_rag.surfaces.reports.recorded import plain

MOST_INCIDENTS, MOST_MOMENTS, MOST_NAMES, MOST_LINES = 6, 10, 4, 5
"""What the first page shows of each; more stands in the annex, and is told."""


@dataclass(frozen=True, slots=True)
class PartHeading:
    """The head of a part; `level` 1 is a part of the report, 2 is inside one."""

    text: str
    level: int = 1


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A paragraph."""

    text: str
    quiet: bool = False


@dataclass(frozen=True, slots=True)
class Items:
    """A list; `nothing` stands in its place if it is empty."""

    items: tuple[str, ...]
    nothing: str = ""


@dataclass(frozen=True, slots=True)
class Grid:
    """A table; `nothing` stands in its place if it is empty."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    nothing: str = ""


@dataclass(frozen=True, slots=True)
class Strip:
    """A picture of when things happened: each moment with its place between the first (0) and the last (1)."""

    moments: tuple[tuple[float, str, str, str], ...]
    """Place, time as text, where it is from, and what happened."""


@dataclass(frozen=True, slots=True)
class NextPage:
    """What follows begins on a new page, where the form has pages."""


Block = PartHeading | Paragraph | Items | Grid | Strip | NextPage


def front_page(report: HandOver) -> Iterator[Block]:
    """Summary, what happened, scope, actions and open points: what a manager reads."""
    front, zone = report.front, report.head.timezone
    yield Paragraph(words.short_head(report), quiet=True)
    yield PartHeading("Summary")
    yield Items(tuple(words.summary(report)))
    alone = bool(report.head.incident)
    told = next((each for each in front.incidents if each.said and (alone or each.open)), None)
    if told is not None:
        yield Paragraph(" ".join(told.said))
    if front.incidents and not alone:
        rows = tuple(map(_incident_cells, front.incidents[:MOST_INCIDENTS]))
        yield Grid(("incident", "severity", "status", "owner", "title"), rows)
        yield from _more(len(front.incidents) - MOST_INCIDENTS, "incidents")
    if front.happened:
        yield PartHeading("What happened")
        yield strip_of(front.happened[:MOST_MOMENTS], zone)
        yield from _more(len(front.happened) - MOST_MOMENTS, "moments")
    if front.scope:
        yield PartHeading("Scope")
        yield Items(tuple(_scope_line(kind, names) for kind, names in front.scope))
    yield PartHeading("Actions")
    deeds = tuple((both(each.at, zone), each.what, each.decided or "-", each.came_of_it) for each in front.deeds)
    yield Grid(("asked", "what", "decided", "came of it"), deeds[:MOST_LINES], words.NO_ACTIONS)
    yield from _more(len(deeds) - MOST_LINES, "actions")
    yield PartHeading("Open points")
    yield Items(report.open_questions[:MOST_LINES], words.NOTHING_OPEN)
    yield from _more(len(report.open_questions) - MOST_LINES, "open points")
    yield Paragraph(words.HUMAN, quiet=True)


def annex(report: HandOver) -> Iterator[Block]:
    """Questions with their answers, the records, the evidence, and how to verify them."""
    zone = report.head.timezone
    yield NextPage()
    yield PartHeading("Annex: questions and answers")
    if any(fact.sentences for fact in report.facts):
        yield Paragraph(words.MARKS, quiet=True)
    if not report.facts:
        yield Paragraph(words.NO_FACTS)
    for fact in report.facts:
        yield from _fact(fact, zone)
    yield PartHeading("Annex: all open points")
    yield Items(report.open_questions, words.NOTHING_OPEN)
    yield PartHeading("Annex: actions and approvals, as recorded")
    actions = tuple((both(a.at, zone), a.tool, a.what, a.came_of_it, a.audit_id) for a in report.actions)
    yield Grid(("time", "tool", "with", "what came of it", "audit id"), actions, words.NO_ACTIONS)
    yield PartHeading("Annex: knowledge cited")
    yield Items(tuple(f"{number}: {source}" for number, source in report.knowledge), words.NO_KNOWLEDGE)
    yield PartHeading("Annex: evidence")
    evidence = tuple(
        (
            row.number,
            row.tool,
            row.place,
            "; ".join(f"{name}: {plain(value)}" for name, value in row.fields),
            row.audit_id,
        )
        for row in report.evidence
    )
    yield Grid(("number", "tool", "place", "values", "audit id"), evidence, words.NO_EVIDENCE)
    yield PartHeading("Annex: calls, and how to verify them")
    calls = tuple((str(c.turn), c.tool, c.arguments, c.status, c.rows, c.audit_id) for c in report.calls)
    yield Grid(("question", "tool", "arguments", "status", "rows", "audit id"), calls, "No tool was called.")
    yield from map(Paragraph, words.how_to_verify(report))


def strip_of(moments: Sequence[Moment], zone: str) -> Strip:
    """The picture of those of these moments, in order of time, whose time can be read: a row may hold any text."""
    placed = []
    for each in moments:
        with suppress(ValueError):
            placed.append((parse_time(each.at), each))
    first = min((at for at, _ in placed), default=None)
    length = (max(at for at, _ in placed) - first).total_seconds() or 1.0 if first else 1.0
    return Strip(
        tuple(
            ((at - first).total_seconds() / length, both(at, zone), each.where, each.text)
            for at, each in placed
            if first is not None
        )
    )


def _fact(fact: Facts, zone: str) -> Iterator[Block]:
    yield PartHeading(f"{fact.turn}. {fact.question}", level=2)
    yield Paragraph(f"{both(fact.asked_at, zone)}, {words.outcome_words(fact.outcome)}", quiet=True)
    yield Paragraph(with_sources(fact))
    for table in fact.tables:
        if table.title:
            yield Paragraph(table.title)
        rows = tuple((*row, number) for row, number in zip(table.rows, table.evidence, strict=True))
        yield Grid((*table.columns, "evidence"), rows)
    yield from (Paragraph(line, quiet=True) for line in fact.footnote)


def with_sources(fact: Facts) -> str:
    """The text of an answer with the numbers of its evidence and what was not found behind its sentences."""
    written, at = "", 0
    for note in fact.said.notes:
        written += fact.said.text[at : note.at]
        written += f" ({words.references(note.sources)})" if note.sources else ""
        written += f" {note.sign} {note.reason}".rstrip() if note.sign else ""
        at = note.at
    return written + fact.said.text[at:]


def _incident_cells(incident: KnownIncident) -> tuple[str, ...]:
    return (incident.number, incident.severity, incident.status, incident.owner or "-", incident.title)


def _scope_line(kind: str, names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return f"{words.KINDS.get(kind, kind)} ({len(names)}): {', '.join(names[:MOST_NAMES])}{more}"


def _more(number: int, noun: str) -> Iterator[Block]:
    if number > 0:
        yield Paragraph(f"{number} more {noun} are in the annex.", quiet=True)

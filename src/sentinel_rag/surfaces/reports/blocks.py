"""A report as a few kinds of blocks, and the sentences that every form of it says alike.

Texts are raw here; each form makes them safe where it writes them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime

from sentinel_rag.contracts.query_results import parse_time
from sentinel_rag.contracts.tool_schemas import SEVERITIES
from sentinel_rag.surfaces.rendering.visible import STATE_WORDS, Marked, plain
from sentinel_rag.surfaces.reports.building import (
    MOST_SHOWN,
    Chart,
    EvidenceRow,
    HandOver,
    KnownIncident,
    Queue,
    ReportedDeed,
    TimelineEntry,
    TurnFacts,
    both,
    brief,
)
from sentinel_rag.surfaces.reports.readings import rank

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
        return "Shift hand-over of the team" if report.head.team else "Shift hand-over"
    told = next((each for each in report.front.incidents if each.number == report.head.incident), None)
    return f"Incident {report.head.incident}{f': {told.title}' if told and told.title else ''}"


def short_head(report: HandOver) -> str:
    """Who reports, when, and of what, on one line; and whether hidden values are shown."""
    head = report.head
    lines = dict(head_lines(report))
    told = [f"By {head.exported_by}, {brief(head.exported_at, head.timezone)}", f"workspace {lines['Workspace']}"]
    if head.since:
        told.append(
            f"shift of {'the team' if head.team else head.exported_by} since {brief(head.since, head.timezone)}"
        )
    told += [f"questions {lines['Questions'].partition(',')[0]}"] if report.facts else []
    return "; ".join((*told, f"hidden values: {lines['Hidden values']}")) + "." + _notes(report)


def _notes(report: HandOver) -> str:
    return "".join(f" Note: {note}" for note in report.head.notes)


def figures(report: HandOver) -> tuple[tuple[str, str], ...]:
    """What it was about, how bad it is, what was done, and what is open, in figures that the pages hold."""
    front = report.front
    first = next(iter(front.incidents), None)
    if front.queue is not None:
        came, closed, _ = _in_shift(report)
        about = [("Open", _number(front.queue.total)), ("High", str(front.queue.by_severity.get("High", 0)))]
        about += [("No owner", str(len(_unowned(report)))), ("Came", str(len(came))), ("Closed", str(len(closed)))]
    elif first is None:
        about = [("Questions", str(len(report.facts)))]
    elif report.head.incident:
        about = [("Severity", first.severity or "not told"), ("Status", first.status or "not told")]
        about += [("Owner", first.owner or "nobody")]
        about += [("Alerts", first.alert_count)] if first.alert_count else []
    else:
        still = sum(each.open for each in front.incidents)
        high = sum(each.severity == "High" for each in front.incidents)
        about = [("Incidents", str(len(front.incidents))), ("Still open", str(still)), ("High", str(high))]
    done = sum(each.done for each in front.deeds)
    waits = sum(each.waits for each in front.deeds)
    if front.queue is not None:
        return (*about, ("Done", str(done)), ("Waiting", str(waits)))
    counts = {"Actions done": done, "Not done": len(front.deeds) - done - waits, "Waiting": waits}
    told = [(name, str(count)) for name, count in counts.items() if count or name != "Not done"]
    return (*about, *told, ("Open points", str(len(open_points(report)))))


def _number(count: int | None) -> str:
    return "not told" if count is None else str(count)


def _queued(report: HandOver) -> list[KnownIncident]:
    """The open incidents that were read, as they stand now."""
    numbers = report.front.queue.open if report.front.queue is not None else ()
    return [each for each in report.front.incidents if each.number in numbers and each.open]


def _unowned(report: HandOver) -> list[KnownIncident]:
    return [each for each in _queued(report) if not each.owner]


def _in_shift(report: HandOver) -> tuple[list[KnownIncident], list[KnownIncident], list[KnownIncident]]:
    """The incidents that came, were closed, or changed otherwise in the shift."""
    numbers = report.front.queue.changed if report.front.queue is not None else ()
    moved = [each for each in report.front.incidents if each.number in numbers]
    closed = [each for each in moved if not each.open]
    came = [each for each in moved if each.open and each.created_time >= report.head.since]
    return came, closed, [each for each in moved if each not in closed and each not in came]


def open_points(report: HandOver) -> list[str]:
    """What is open in the incident or the queue, then in the questions."""
    front, found = report.front, list[str]()
    told = _about(report)
    if told is not None and told.open:
        age = f", open for {age_of(told.created_time, report.head.exported_at)}" if told.created_time else ""
        found.append(f"Incident {told.number} is {told.status} ({told.severity}){age}, {_owned(told)}.")
        unsolved = sum(each.get("status") != "Resolved" for each in front.alerts)
        if unsolved:
            found.append(f"Alerts not resolved: {unsolved} of {len(front.alerts)}.")
    still = [each for each in front.incidents if each.open and not report.head.incident]
    if still and front.queue is None:
        found.append(f"Open incidents: {_listed(still)}.")
    if unowned := [each for each in still if not each.owner]:
        found.append(f"Without an owner: {_listed(unowned)}.")
    return [*found, *report.open_questions]


def _about(report: HandOver) -> KnownIncident | None:
    return next((each for each in report.front.incidents if each.number == report.head.incident), None)


def _owned(incident: KnownIncident) -> str:
    return f"owner {incident.owner}" if incident.owner else "nobody owns it"


def _listed(incidents: Sequence[KnownIncident]) -> str:
    more = f" and {len(incidents) - MOST_LISTED} more" if len(incidents) > MOST_LISTED else ""
    return ", ".join(each.number for each in incidents[:MOST_LISTED]) + more


def age_of(since: str, now: datetime) -> str:
    """`3 d 4 h`, `2 h` or `5 min`; empty where the time cannot be read."""
    with suppress(ValueError, OverflowError):
        minutes = max(0, int((now - parse_time(since)).total_seconds() // 60))
        days, hours = divmod(minutes // 60, 24)
        return f"{days} d {hours} h" if days else f"{hours} h" if hours else f"{minutes} min"
    return ""


def summary(report: HandOver) -> Iterator[Block]:
    """What a reader must know first: what happened, how bad it is, what is open and what next."""
    front, alone = report.front, bool(report.head.incident)
    about = _about(report) if alone else None
    if about is not None and front.alerts:
        yield Labelled(tuple(_of_incident(report, about)))
        return
    if front.queue is not None:
        yield Labelled(tuple(_of_queue(report, front.queue)))
        return
    worst = next(iter(front.incidents), None)
    told = next((each for each in front.incidents if each.said and (alone or each.open)), None)
    if worst is None:
        yield Paragraph(f"No row of an incident was read; questions: {len(report.facts)}.")
    elif worst.open and not alone and told is not worst:
        said = f"The most severe that is open: {worst.number}, {worst.title} ({worst.severity}, {worst.status})."
        yield Paragraph(said)
    if told is not None:
        yield Paragraph(" ".join(told.said))


def _of_incident(report: HandOver, about: KnownIncident) -> Iterator[tuple[str, str]]:
    front, zone = report.front, report.head.timezone
    timed = sorted((each for each in front.alerts if each.get("start_time")), key=lambda each: str(each["start_time"]))
    tactics = dict.fromkeys(_CAPITAL.sub(" ", str(tactic)) for each in timed for tactic in each.get("tactics") or ())
    if timed:
        first, last = timed[0], timed[-1]
        course = f"It began {brief(first['start_time'], zone)} with “{first.get('name')}”"
        if first is not last:
            course += f"; the newest alert is “{last.get('name')}”, {brief(last['start_time'], zone)}"
        yield "What happened", f"{course}. Tactics in order: {', '.join(tactics)}." if tactics else f"{course}."
    severe = sum(each.get("severity") == about.severity for each in front.alerts)
    reach = [f"{KINDS[kind]}: {len(names)}." for kind, names in front.scope if kind in ("account", "host")]
    bad = f"{about.severity}. Alerts that are {about.severity}: {severe} of {len(front.alerts)}."
    yield "How bad", " ".join((bad, *reach))
    points = open_points(report)
    yield "What is open", " ".join(points[:3]) if points else f"Nothing: it is {about.status}, {about.classification}."
    if front.comments:
        newest = front.comments[0]
        yield "Last word", f"{newest.where}, {brief(newest.at, zone)}: {newest.text[:MOST_TEXT]}"
    if front.steps:
        yield "What next", " ".join(step[:MOST_TEXT] for step, _ in front.steps[:2])


_CAPITAL = re.compile(r"(?<=[a-z])(?=[A-Z])")


def _of_queue(report: HandOver, queue: Queue) -> Iterator[tuple[str, str]]:
    front = report.front
    counts = [f"{queue.by_severity[name]} {name}" for name in reversed(SEVERITIES) if queue.by_severity.get(name)]
    many = f": {', '.join(counts)}" if counts else ""
    whose = f". Without an owner: {_listed(_unowned(report))}" if _unowned(report) else ""
    yield "Open", f"{_number(queue.total)} incidents{many}{whose}.{_part(queue.total, len(queue.open))}"
    if worst := next(iter(_queued(report)), None):
        said = f"{worst.number}, {worst.title} ({worst.severity}, {worst.status}, {_owned(worst)})"
        yield "First", f"{said}, last changed {brief(worst.updated_time, report.head.timezone)}."
    names = ("came", "closed", "changed otherwise")
    moved = [
        f"{len(each)} {name} ({_listed(each)})" for name, each in zip(names, _in_shift(report), strict=True) if each
    ]
    told = "; ".join(moved).capitalize() + "." if moved else "No incident came, was closed or changed."
    unread = queue.changed_total is None and not queue.changed
    yield "In the shift", "Not known." if unread else told + _part(queue.changed_total, len(queue.changed))
    done = [each for each in front.deeds if each.done]
    waits = [each for each in front.deeds if each.waits]
    yield "Done here", f"Changes made: {len(done)}; not done: {len(front.deeds) - len(done) - len(waits)}."
    yield "Waits", "; ".join(each.what for each in waits[:2]) + _and_more(len(waits) - 2) if waits else "Nothing."


def _part(total: int | None, read: int) -> str:
    """What is told where not all were read, so that what is counted of them is too low."""
    return "" if total == read else f" Only {read} of {_number(total)} were read."


def _and_more(number: int) -> str:
    return f" and {number} more." if number > 0 else "."


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


MOST_INCIDENTS, MOST_MOMENTS, MOST_NAMES, MOST_LINES, MOST_QUEUED = 6, 14, 4, 5, 12
"""What the first page shows of each; more stands in the annex, and is told."""
MOST_LISTED, MOST_TEXT, MOST_SHORT = 8, 240, 21


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

    def plain_rows(self) -> list[list[str]]:
        """The rows with every cell on one line."""
        return [[each if isinstance(each, str) else "; ".join(each) for each in row] for row in self.rows]


def column_widths(rows: Sequence[Sequence[str]], total: float, measure: Callable[[str], float]) -> list[float]:
    """Widths of the columns of a table that is `total` wide: each holds its longest word and its short texts whole, and
    what is left goes to those that have more to say. `measure` is the width of a text."""
    columns = [[row[at] for row in rows] for at in range(len(rows[0]))]
    words = [
        [word for text in each for word in ([text] if len(text) <= MOST_SHORT else text.split())] for each in columns
    ]
    least = [max(map(measure, each or [""])) for each in words]
    wanted = [max(measure(text) for text in each) for each in columns]
    least = [min(each, total / 3) for each in least]
    wanted = [max(each, low) for each, low in zip(wanted, least, strict=True)]
    if sum(least) >= total:
        return [each * total / sum(least) for each in least]
    more = [high - low for high, low in zip(wanted, least, strict=True)]
    share = (total - sum(least)) / sum(more) if sum(more) > total - sum(least) else 1.0
    widths = [low + share * each for low, each in zip(least, more, strict=True)]
    widths[-1] += total - sum(widths)
    return widths


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
    """What a manager reads: what happened, how bad it is, what was done, what is open and what next."""
    front, zone = report.front, report.head.timezone
    yield Paragraph(short_head(report), quiet=True)
    yield Figures(figures(report))
    yield PartHeading("Summary")
    yield from summary(report)
    if front.queue is not None:
        yield from _queue_blocks(report)
    elif front.incidents and not report.head.incident:
        rows = tuple(map(_incident_cells, front.incidents[:MOST_INCIDENTS]))
        yield Grid(("incident", "severity", "status", "owner", "title"), rows)
        yield from _more(len(front.incidents) - MOST_INCIDENTS, "incidents")
    if front.happened and front.queue is None:
        yield PartHeading("What happened, in UTC")
        yield strip_of([replace(each, text=_shorter(report, each.text)) for each in weightiest(front.happened)])
        yield from _more(len(front.happened) - MOST_MOMENTS, "moments")
    if front.scope and front.queue is None:
        yield PartHeading("Scope")
        yield Items(tuple(_scope_line(kind, names) for kind, names in front.scope))
    if front.comments:
        yield PartHeading("Comments, the newest first")
        said = tuple((brief(each.at, zone), each.where, each.text[:MOST_TEXT]) for each in front.comments)
        yield Grid(("time", "author", "comment"), said[:MOST_LINES])
        yield from _more(len(said) - MOST_LINES, "comments")
    if front.steps:
        yield PartHeading("Next steps")
        by_source: dict[str, list[str]] = {}
        for step, source in front.steps:
            by_source.setdefault(source, []).append(step[:MOST_TEXT])
        yield Items(tuple(f"{source}: {' '.join(steps)}" for source, steps in by_source.items()))
    yield PartHeading("Actions")
    yield from _deed_blocks(report, sorted(front.deeds, key=lambda each: not each.waits))
    yield PartHeading("Open points")
    points = open_points(report)
    yield Items(tuple(points[:MOST_LINES]), NOTHING_OPEN)
    yield from _more(len(points) - MOST_LINES, "open points")
    yield Paragraph(HUMAN, quiet=True)


def weightiest(moments: Sequence[TimelineEntry]) -> list[TimelineEntry]:
    """As many as the page shows, in order of time: the first, the last, what was done, then the most severe."""
    ends = {0, len(moments) - 1}

    def weight(at: int) -> tuple[bool, int, int]:
        done = moments[at].where in ("done", "asked")
        return at not in ends, -len(SEVERITIES) if done else -rank(moments[at].severity), -at

    order = sorted(range(len(moments)), key=weight)
    return [moments[at] for at in sorted(order[:MOST_MOMENTS])]


def _shorter(report: HandOver, text: str) -> str:
    """The text without the title of the one incident that the report is about, which stands on top."""
    about = _about(report)
    return text if about is None else text.replace(f" “{about.title}”", "")


def _deed_blocks(report: HandOver, deeds: Sequence[ReportedDeed]) -> Iterator[Block]:
    told = [(brief(each.at, report.head.timezone), _shorter(report, each.what), each) for each in deeds]
    rows = tuple((at, what, each.decided or "-", each.came_of_it) for at, what, each in told)
    yield Grid(("asked", "what", "decided", "came of it"), rows[:MOST_LINES], NO_ACTIONS)
    yield from _more(len(rows) - MOST_LINES, "actions")


def _queue_blocks(report: HandOver) -> Iterator[Block]:
    """What is open by priority and who has it, then what changed in the shift."""
    now, zone, queued = report.head.exported_at, report.head.timezone, _queued(report)
    yield PartHeading("Open, the most severe first")
    heads = ("incident", "title", "severity", "status", "owner", "open for")
    yield Grid(heads, tuple(_queue_cells(each, now) for each in queued[:MOST_QUEUED]), "No incident is open.")
    yield from _more(len(queued) - MOST_QUEUED, "incidents")
    yield PartHeading("Changed in the shift")
    named = zip(("came", "closed", "changed"), _in_shift(report), strict=True)
    rows = [
        (each.number, each.title[:MOST_TEXT], what, *_change_cells(each, what, zone))
        for what, moved in named
        for each in moved
    ]
    columns = ("incident", "title", "what", "when", "now")
    yield Grid(columns, tuple(rows[:MOST_QUEUED]), "No incident came, was closed or changed.")
    yield from _more(len(rows) - MOST_QUEUED, "incidents")


def _queue_cells(incident: KnownIncident, now: datetime) -> tuple[str, ...]:
    age = age_of(incident.created_time, now)
    number, severity, status, owner, title = _incident_cells(incident)
    return number, title[:MOST_TEXT], severity, status, owner, age


def _change_cells(incident: KnownIncident, what: str, zone: str) -> tuple[str, ...]:
    when = {"came": incident.created_time, "closed": incident.closed_time}.get(what, incident.updated_time)
    now = " ".join((incident.severity, incident.status, incident.classification)).strip()
    return brief(when, zone), now


def tables_of(report: HandOver) -> list[tuple[str, Grid]]:
    """The tables of a report, each with the question that it answers: the queue or the course of the incident, then
    those of the answers."""
    found = [("", each) for each in _queue_blocks(report) if isinstance(each, Grid) and each.rows][:1]
    if report.front.alerts:
        rows = tuple((each.at, each.where, each.severity, each.text) for each in report.front.happened)
        found.append(("", Grid(("time", "where", "severity", "what"), rows)))
    for fact in report.facts:
        found += [(fact.question, each) for each in _tables(fact) if each.rows]
    return found


def _tables(fact: TurnFacts) -> Iterator[Grid]:
    for table in fact.tables:
        rows = tuple((*row, number) for row, number in zip(table.rows, table.evidence, strict=True))
        yield Grid((*table.columns, "evidence"), rows, cites=len(table.columns))


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
    yield Items(tuple(open_points(report)), NOTHING_OPEN)
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
    calls = tuple((str(c.turn or "-"), c.tool, c.arguments, c.status, c.rows, c.audit_id) for c in report.calls)
    yield Grid(("question", "tool", "arguments", "status", "rows", "audit id"), calls, "No tool was called.")
    yield from map(Paragraph, how_to_verify(report))


def _evidence_cells(row: EvidenceRow) -> tuple[Cell, ...]:
    values = tuple(f"{name}: {plain(value)}" for name, value in row.fields)
    return (row.number, str(row.turn or "-"), f"{row.tool} {row.call_id}", row.place, values, row.audit_id)


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
    for table, grid in zip(fact.tables, _tables(fact), strict=True):
        if table.title:
            yield Paragraph(table.title)
        yield grid
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

"""Sentences that every form of a report says alike."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from sentinel_rag.surfaces.rendering.marks import STATE_WORDS
from sentinel_rag.surfaces.reports.evidence_rows import MOST_SHOWN
from sentinel_rag.surfaces.reports.model import Facts, HandOver
from sentinel_rag.surfaces.reports.moments import both

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


def summary(report: HandOver) -> Iterator[str]:
    """What it was about, how bad it is, what was done, and what is open, in figures that the pages hold."""
    front = report.front
    if front.incidents:
        worst = front.incidents[0]
        high = sum(each.severity == "High" for each in front.incidents)
        still = sum(each.open for each in front.incidents)
        if report.head.incident:
            owner = worst.owner or "nobody"
            yield f"Severity {worst.severity or 'not told'}, status {worst.status or 'not told'}, owner {owner}."
        else:
            yield f"Incidents spoken of: {len(front.incidents)}, of these open: {still}, High: {high}."
            if worst.open:
                yield f"The most severe that is open: {worst.number}, {worst.title} ({worst.severity}, {worst.status})."
    else:
        yield f"No row of an incident was read; questions: {len(report.facts)}."
    done = sum(each.done for each in front.deeds)
    waits = sum(each.came_of_it.startswith("waits") for each in front.deeds)
    yield f"Actions done: {done}; not done: {len(front.deeds) - done - waits}; waiting for a decision: {waits}."
    yield f"Open points: {len(report.open_questions)}."


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
        ("Open", f"{len(report.open_questions)}"),
        ("Actions", f"{len(report.actions)}"),
        ("Hidden values", _hidden(report)),
    ]
    return (*lines, *(("Note", note) for note in head.notes))


def counted(fact: Facts) -> str:
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

"""Sentences that every form of a report says alike."""

from __future__ import annotations

from collections import Counter

from sentinel_rag.surfaces.rendering.marks import STATE_WORDS
from sentinel_rag.surfaces.reports.model import Facts, HandOver
from sentinel_rag.surfaces.reports.moments import both

TITLE = "Shift hand-over"
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

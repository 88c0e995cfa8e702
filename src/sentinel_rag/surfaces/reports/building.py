"""A hand-over report from turns and records: pure, and the same for each form and each surface."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any

from sentinel_rag.contracts.evidence import Outcome, Sentence
from sentinel_rag.surfaces.rendering.marks import STATE_WORDS, WRONG, reason_of
from sentinel_rag.surfaces.reports.charts import charts_of
from sentinel_rag.surfaces.reports.deeds import deeds_of
from sentinel_rag.surfaces.reports.evidence_rows import NumberedEvidence, numbered, said_in, sentences_of, table_of
from sentinel_rag.surfaces.reports.front import about, front_of, records_of
from sentinel_rag.surfaces.reports.model import (
    Action,
    Call,
    EvidenceRow,
    Facts,
    HandOver,
    Head,
    Moment,
    ReportTurn,
    Stated,
)
from sentinel_rag.surfaces.reports.recorded import actions_of, of_approvals, plain, waiting

_ENDED = {
    Outcome.NO_DATA: "no data matched",
    Outcome.DENIED: "it was denied",
    Outcome.TOOL_FAILED: "it failed",
    "stopped": "it was stopped before its answer",
}


def open_questions(
    turns: Sequence[ReportTurn], waiting: Sequence[str], asked_a_person: Set[str] = frozenset()
) -> tuple[str, ...]:
    """Sentences, in the order of the questions. `waiting` are approvals that nobody has decided; refused calls with
    the audit ids `asked_a_person` are told with their approvals and are no open questions of their own."""
    found: list[str] = []
    for place, turn in enumerate(turns):
        named = f"Question {turn.number} ({turn.question.strip()})"
        first = next((line for line in _text(turn).splitlines() if line.strip()), "")
        following = turns[place + 1] if place + 1 < len(turns) else None
        if turn.outcome == Outcome.CLARIFICATION and (following is None or following.outcome != Outcome.ANSWERED):
            found.append(f"{named}: asked back, and not answered: {first}")
        elif turn.outcome in _ENDED and not _waits_or_is_decided(turn, asked_a_person):
            found.append(f"{named}: {_ENDED[turn.outcome]}" + (f": {first}" if first else "."))
        for sentence in sentences_of(turn):
            if sentence.state in WRONG:
                said = " ".join(sentence.text.split())
                found.append(f"{named}: {STATE_WORDS[sentence.state]}: {said} ({reason_of(sentence)})")
        for coverage in (turn.answer or {}).get("coverage", ()):
            total, seen = coverage["rows_total"], coverage["rows_returned"]
            if coverage["partial"]:
                found.append(
                    f"{named}: the data is partial: {coverage['partial_reason'] or 'the service did not say why'}"
                )
            elif total is not None and seen < total:
                found.append(f"{named}: {seen} of {total} rows were seen.")
    found += [f"Approval {each} waits for a decision: sentinel approvals show {each[:8]}" for each in waiting]
    return tuple(dict.fromkeys(found))


def _waits_or_is_decided(turn: ReportTurn, asked_a_person: Set[str]) -> bool:
    denied = [str(each["audit_id"]) for each in (turn.answer or {}).get("tools", ()) if each["status"] == "denied"]
    return turn.outcome == Outcome.DENIED and bool(denied) and set(denied) <= asked_a_person


def _text(turn: ReportTurn) -> str:
    return str((turn.answer or {}).get("answer", turn.text))


KNOWLEDGE_TOOL = "search_knowledge_base"
HIDDEN = "⟦"
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?")
_TOLD_OF = ("citation", "incident_number", "title", "alert_name", "name", "severity", "status", "host", "account", "ip")


def hand_over(head: Head, turns: Sequence[ReportTurn], records: Sequence[Mapping[str, Any]]) -> HandOver:
    """The report of `turns`; `records` are those of the session and its approvals, oldest first, in the form of
    `sentinel audit show --json` (none where the person may not read them)."""
    if head.incident:
        turns = about(head.incident, turns)
        records = records_of(turns, records)
    evidence = numbered(turns)
    facts = tuple(_facts(turn, evidence) for turn in turns)
    actions = actions_of(records, turns, head.people)
    return HandOver(
        head=head,
        front=front_of(turns, facts, evidence.rows, deeds_of(records, turns, head.people)),
        facts=facts,
        evidence=evidence.rows,
        timeline=_timeline(turns, evidence.rows, actions),
        charts=charts_of(table for fact in facts for table in fact.tables),
        open_questions=open_questions(turns, waiting(records), of_approvals(records)),
        actions=actions,
        calls=tuple(_calls(turns)),
        knowledge=tuple(_knowledge(evidence.rows)),
        hidden=sum(HIDDEN in turn.text or HIDDEN in plain(turn.answer) for turn in turns),
    )


def _facts(turn: ReportTurn, evidence: NumberedEvidence) -> Facts:
    answer = turn.answer or {}
    return Facts(
        turn.number,
        turn.asked_at,
        turn.question,
        turn.outcome,
        said_in(turn, evidence),
        tuple(_stated(each, turn.number, evidence) for each in sentences_of(turn)),
        tuple(table_of(table, evidence.pieces[turn.number]) for table in answer.get("tables", ())),
        tuple(map(str, answer.get("footnote", ()))),
    )


def _stated(sentence: Sentence, turn: int, evidence: NumberedEvidence) -> Stated:
    numbers = (evidence.numbers[turn, cited.call_id, cited.pointer] for cited in sentence.citations)
    said = " ".join(sentence.text.split())
    return Stated(said, STATE_WORDS[sentence.state], reason_of(sentence), tuple(dict.fromkeys(numbers)))


def _timeline(
    turns: Sequence[ReportTurn], rows: Sequence[EvidenceRow], actions: Sequence[Action]
) -> tuple[Moment, ...]:
    found = [Moment(turn.asked_at, "question", turn.question, f"question {turn.number}") for turn in turns]
    found += [Moment(each.at, "gateway", f"{each.tool} {each.came_of_it}".strip(), each.audit_id) for each in actions]
    said: set[tuple[str, str]] = set()
    for row in rows:
        for moment in _of_row(row):
            if (moment.at, moment.text) not in said:
                said.add((moment.at, moment.text))
                found.append(moment)
    return tuple(sorted(found, key=lambda moment: moment.at))


def _of_row(row: EvidenceRow) -> Iterator[Moment]:
    values = dict(row.fields)
    about = ", ".join(f"{name} {plain(values[name])}" for name in _TOLD_OF if name in values)
    for name, value in row.fields:
        if isinstance(value, str) and _TIME.fullmatch(value):
            yield Moment(value, "data", f"{name}: {about}" if about else f"{name} ({row.tool})", row.number)


def _calls(turns: Sequence[ReportTurn]) -> Iterator[Call]:
    for turn in turns:
        for trace in (turn.answer or {}).get("tools", ()):
            coverage = trace["coverage"] or {}
            total = coverage.get("rows_total")
            rows = f"{coverage['rows_returned']} of {'?' if total is None else total}" if coverage else ""
            yield Call(
                turn.number,
                str(trace["name"]),
                plain(trace["arguments"]),
                str(trace["status"]),
                rows,
                trace["audit_id"],
            )


def _knowledge(rows: Sequence[EvidenceRow]) -> Iterator[tuple[str, str]]:
    """Evidence number and source of each hit of the knowledge base that an answer rests on."""
    for row in rows:
        if row.tool == KNOWLEDGE_TOOL and row.place.startswith("/hits"):
            values = dict(row.fields)
            names = ("citation", "document_id", "title", "section")
            yield row.number, ", ".join(plain(values[name]) for name in names if values.get(name)) or row.place

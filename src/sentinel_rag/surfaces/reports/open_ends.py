"""What a shift leaves open: questions without an answer that stands, partial data, approvals that wait."""

from __future__ import annotations

from collections.abc import Sequence, Set

from sentinel_rag.contracts.evidence import Outcome
from sentinel_rag.surfaces.rendering.marks import STATE_WORDS, WRONG, reason_of
from sentinel_rag.surfaces.reports.evidence_rows import sentences_of
from sentinel_rag.surfaces.reports.model import ReportTurn

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

"""Yes or No before an answer, where the question asks for one and the rows decide it.

A claim that the rows do not hold in one field ("is it compromised?") gets no verdict: the answer says that it is not
recorded. Nothing is inferred.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from sentinel_rag.agent.offline import cues
from sentinel_rag.agent.offline.answer_writer import AnswerWriter, Fact, Line, phrase
from sentinel_rag.agent.offline.arguments import unused_words
from sentinel_rag.agent.offline.classified import classifications_said, negates
from sentinel_rag.agent.offline.reading import Reading
from sentinel_rag.agent.planner.plan import Plan, View
from sentinel_rag.agent.tool_runs import ToolRun
from sentinel_rag.contracts.tool_schemas import SEVERITIES

_ASKS = re.compile(
    r"\W*(?:(?:so|and|but|ok|please|hey|hi|then)\W+)*(?:is|are|was|were|did|does|do|has|have|had|any|isn't|aren't|wasn't|"
    r"am\s+i\s+right|tell\s+me\s+(?:if|whether)|check\s+(?:if|whether)|can\s+you\s+(?:check|confirm|tell\s+me)\s+"
    r"(?:if|whether|that)|confirm\s+that)\b",
    re.IGNORECASE,
)
_OPEN_ENDED = (
    r"or|and\s+(?:who|what|when|why|how|which)|what|which|who|whom|when|why|how|show|"
    r"list|more|less|fewer|than"
)
_EXISTS = (
    r"any|there|seen|involv\w*|contain\w*|have|has|had|touch\w*|appear\w*|mention\w*|named?|part\s+of|fire[ds]?|"
    r"happen\w*|occur\w*|affected|in\s+(?:the\s+|an?\s+)?(?:alerts?|incidents?)"
)
_NOT_EXISTS = r"all|every|each|most|only|both|not|no|never|without|none|nobody|still|first|last"
_JUDGED = (
    r"compromised|infected|malicious|bad|safe|clean|hacked|breached|suspicious|dangerous|legit\w*|benign|trustworthy|"
    r"attacker|harmless|guilty"
)
_STATUSES = {
    "open": ("New", "Active"),
    "new": ("New",),
    "active": ("Active",),
    "in progress": ("Active",),
    "closed": ("Closed",),
    "resolved": ("Closed",),
}


def open_with_verdict(writer: AnswerWriter, plan: Plan, runs: Sequence[ToolRun]) -> None:
    """Put Yes or No before the first line that tells data, or say that what is asked is not recorded."""
    reading = plan.reading
    if not _ASKS.match(reading.text) or len(runs) != 1 or runs[0].result is None or not writer.lines:
        return
    run, place = runs[0], min(len(plan.opening), len(writer.lines) - 1)
    if plan.view is View.INCIDENT:
        verdict = _of_incident(writer, reading, run) if len(run.rows) == 1 else None
        if verdict is not None:
            writer.lines.insert(place, verdict)
        return
    if plan.view not in (View.ALERTS, View.ALERT_COUNT, View.INCIDENTS, View.INCIDENT_COUNT):
        return
    if "entity" in run.call.arguments and reading.has(_JUDGED):
        sentence = "Whether that is so is no field of the rows, and I do not judge it; here is what the alerts hold."
        writer.lines.insert(place, Line(sentence))
        return
    if reading.has(r"all|every|each") and reading.status:
        writer.lines.insert(place, Line("These are those of which it is true; ask for the others too."))
        return
    if reading.has(cues.LOGS) and not reading.has(f"{cues.ALERT}|{cues.INCIDENT}"):
        return  # no alert does not mean that nobody signed in
    decided = reading.has(_EXISTS) and not reading.has(f"{_NOT_EXISTS}|{_OPEN_ENDED}")
    unused = () if plan.whole else unused_words(reading, str(dict(run.call.arguments)))
    if not decided or unused or run.at("/coverage/partial"):
        return
    found = bool(run.rows or run.at("/coverage/rows_total"))
    if plan.guessed and not found:
        return  # the absence of a word that nobody knew is no answer
    writer.lines[place] = writer.lines[place].opened_with("Yes. " if found else "No. ")


def _of_incident(writer: AnswerWriter, reading: Reading, run: ToolRun) -> Line | None:
    """Whether the incident has the status, classification, severity and owner that the question says it has."""
    if reading.has(rf"{_OPEN_ENDED}|ever|once|before|previously"):
        # The row holds the present state only.
        return None
    held: list[bool] = []
    told: list[tuple[str, Fact]] = []
    wanted = _STATUSES.get(reading.status or "")
    if wanted is not None:
        held.append(run.at("/rows/0/status") in wanted)
        told.append(("status", writer.number(run, "/rows/0/status")))
    classifications = classifications_said(reading)
    if classifications:
        recorded = run.at("/rows/0/classification")
        if negates(reading) or len(classifications) > 1 or not recorded:
            return None
        held.append({str(recorded)} == classifications)
        told.append(("classification", writer.name(run, "/rows/0/classification")))
    severity = str(run.at("/rows/0/severity"))
    if reading.severity.severity or reading.severity.minimum:
        least = SEVERITIES.index(reading.severity.minimum) if reading.severity.minimum else None
        reached = severity in SEVERITIES and least is not None and SEVERITIES.index(severity) >= least
        held.append(reached if least is not None else severity == reading.severity.severity)
        told.append(("severity", writer.number(run, "/rows/0/severity")))
    if reading.owner.name or reading.owner.nobody:
        owner = str(run.at("/rows/0/owner") or "")
        held.append((reading.owner.name or "").lower() in owner.lower() if reading.owner.name else not owner)
        told.append(("owner", writer.name(run, "/rows/0/owner")))
    if not held:
        return None
    facts = [phrase("{} {}", Fact(name), fact) for name, fact in told]
    return writer.line(f"{'Yes' if all(held) else 'No'}: {{}}.", facts)

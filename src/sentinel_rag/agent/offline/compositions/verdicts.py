"""Yes or No before an answer, where the question asks for one and the rows decide it.

A claim that the rows do not hold in one field ("is it compromised?") gets no verdict: the answer says that it is not
recorded. Nothing is inferred.
"""

from __future__ import annotations

from collections.abc import Sequence

from sentinel_rag.agent.offline.answer_writer import AnswerWriter, Fact, Line, phrase
from sentinel_rag.agent.planner.plan import Plan, View
from sentinel_rag.agent.tool_runs import ToolRun
from sentinel_rag.contracts.tool_schemas import SEVERITIES
from sentinel_rag.language.frames import Frame

_SAYS_WHICH = ("op:exists", "rel", "name", "title", "topic")
"""Types of words that ask whether there is one at all."""
_OPEN_ENDED = ("ask", "order", "limit", "not", "both", "all", "op:compare", "op:count", "or", "time_of")
"""Types of words that ask for more than yes or no."""
_JUDGED = "Whether that is so is no field of the rows, and I do not judge it; here is what the alerts hold."
_THOSE = "These are those of which it is true; ask for the others too."
_STATUSES = {
    "Open": ("New", "Active"),
    "New": ("New",),
    "Active": ("Active",),
    "InProgress": ("Active",),
    "Closed": ("Closed",),
}


def open_with_verdict(writer: AnswerWriter, plan: Plan, runs: Sequence[ToolRun]) -> None:
    """Put Yes or No before the first line that tells data, or say that what is asked is not recorded."""
    frame = plan.frame
    if not frame.polar or len(runs) != 1 or runs[0].result is None or not writer.lines:
        return
    run, place = runs[0], min(len(plan.opening), len(writer.lines) - 1)
    if plan.view is View.INCIDENT:
        verdict = _of_incident(writer, frame, run) if len(run.rows) == 1 else None
        if verdict is not None:
            writer.lines.insert(place, verdict)
        return
    if plan.view not in (View.ALERTS, View.ALERT_COUNT, View.INCIDENTS, View.INCIDENT_COUNT):
        return
    if "entity" in run.call.arguments and frame.has("claim"):
        writer.lines.insert(place, Line(_JUDGED))
        return
    if frame.has("all") and frame.has("status"):
        writer.lines.insert(place, Line(_THOSE))
        return
    if frame.has("topic") and not frame.has("kind:alert", "kind:incident"):
        return  # no alert does not mean that nobody signed in
    found = bool(run.rows or run.at("/coverage/rows_total"))
    sure = not frame.unread and not run.at("/coverage/partial") and (found or not frame.has("guess"))
    if sure and frame.has(*_SAYS_WHICH) and not frame.has(*_OPEN_ENDED):
        writer.lines[place] = writer.lines[place].opened_with("Yes. " if found else "No. ")


def _of_incident(writer: AnswerWriter, frame: Frame, run: ToolRun) -> Line | None:
    """Whether the incident has the status, classification, severity and owner that the question says it has."""
    if frame.has(*_OPEN_ENDED[:1], "ever"):
        return None  # the row holds the present state only
    held: list[bool] = []
    told: list[tuple[str, Fact]] = []
    wanted = _STATUSES.get(frame.one("status") or "")
    if wanted is not None:
        held.append(run.at("/rows/0/status") in wanted)
        told.append(("status", writer.number(run, "/rows/0/status")))
    if frame.has("class"):
        recorded = run.at("/rows/0/classification")
        if frame.has("not") or len(frame.all("class")) > 1 or not recorded:
            return None
        held.append(recorded == frame.one("class"))
        told = [("classification", writer.name(run, "/rows/0/classification"))]
        held = held[-1:]  # what is classified is closed
    severity, least = str(run.at("/rows/0/severity")), frame.one("min")
    if least or frame.has("severity"):
        ranked = [*SEVERITIES]
        reached = severity in ranked and least is not None and ranked.index(severity) >= ranked.index(least)
        held.append(reached if least else severity in frame.all("severity"))
        told.append(("severity", writer.number(run, "/rows/0/severity")))
    if frame.has("owner"):
        owner, said = str(run.at("/rows/0/owner") or ""), str(frame.one("owner"))
        held.append(not owner if said == "unassigned" else said.lower() in owner.lower())
        told.append(("owner", writer.name(run, "/rows/0/owner")))
    if not held:
        return None
    facts = [phrase("{} {}", Fact(name), fact) for name, fact in told]
    return writer.line(f"{'Yes' if all(held) else 'No'}: {{}}.", facts)

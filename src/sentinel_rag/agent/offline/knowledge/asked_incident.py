"""The incident that a question to the knowledge base is about: asked of the workspace, told in a line, or not found."""

from __future__ import annotations

from collections.abc import Sequence

from sentinel_rag.agent.knowledge_hits import KnowledgeHit, hits_of
from sentinel_rag.agent.offline.answer_writer import AnswerWriter
from sentinel_rag.agent.offline.execution import carry_out
from sentinel_rag.agent.offline.knowledge.fitting import by_incident
from sentinel_rag.agent.offline.knowledge.wishes import KnowledgeWish
from sentinel_rag.agent.offline.turn import Turn
from sentinel_rag.agent.planner.plan import Plan, PlannedCall, View
from sentinel_rag.agent.tool_runs import ToolRun
from sentinel_rag.contracts.evidence import Answer
from sentinel_rag.contracts.query_results import QueryErrorCode
from sentinel_rag.contracts.tool_calls import Failed
from sentinel_rag.contracts.tool_schemas import ALL_WORKSPACES
from sentinel_rag.language.frames import Frame


def detail_of(incident: str) -> PlannedCall:
    """The call for what the workspace tells of an incident."""
    return PlannedCall("get_incident_detail", {"incident": incident})


def in_knowledge(turn: Turn, incident: str) -> str:
    """The incident as the knowledge base names it, in the workspace that the conversation is at."""
    place = turn.conversation.workspace
    if place == ALL_WORKSPACES:
        place = turn.conversation.found_in.get(incident, "")
    return f"{incident}@{place}" if place else incident


def not_kept(search: ToolRun) -> bool:
    """True if the knowledge base does not hold the incident that others were to be like."""
    outcome = search.outcome
    refused = isinstance(outcome, Failed) and outcome.error.code is QueryErrorCode.INVALID_ARGUMENT
    return refused or (search.worked and not hits_of(search))


def told_apart_by(detail: ToolRun, search: ToolRun) -> str:
    """The incident as the knowledge base names it where its number alone means several: in the workspace that answered
    for it. Empty where that does not tell."""
    outcome, result = search.outcome, detail.result
    if not isinstance(outcome, Failed) or len(detail.rows) != 1 or result is None:
        return ""
    ending = f"@{result.coverage.workspace}".casefold()
    return next((each for each in outcome.error.allowed if each.casefold().endswith(ending)), "")


def others_than(incident: str, detail: ToolRun | None, search: ToolRun) -> list[Sequence[KnowledgeHit]]:
    """The past incidents of a search without the one that is asked about; one of that number in another workspace is
    another incident."""
    at = detail.result.coverage.workspace if detail is not None and detail.result is not None else ""

    def itself(hit: KnowledgeHit) -> bool:
        return hit.number == incident and (not hit.workspace or not at or hit.workspace.casefold() == at.casefold())

    return [group for group in by_incident(hits_of(search)) if not itself(group[0])]


def say_incident(writer: AnswerWriter, detail: ToolRun) -> None:
    """The incident in a line."""
    writer.say(
        "Incident {}: {}, {}, {}.",
        writer.number(detail, "/rows/0/number"),
        writer.name(detail, "/rows/0/title"),
        writer.number(detail, "/rows/0/severity"),
        writer.number(detail, "/rows/0/status"),
    )


async def no_such_incident(turn: Turn, wish: KnowledgeWish, frame: Frame, failed: ToolRun) -> Answer:
    """The incident that was named is not there, or its number means several: told as a question for it is."""
    if failed.call.tool_name == "get_incident_detail" and not failed.worked:
        return turn.failed_answer([failed])
    turn.runs.clear()
    return await carry_out(turn, Plan(view=View.INCIDENT, calls=(detail_of(wish.incident),), frame=frame))

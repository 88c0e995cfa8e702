"""Questions for past incidents carried out: like an incident or by words, with what does not quite belong told apart.

Past is what is closed, was created before the incident that it is held against, and names what the question names. An
incident that is only like it in the rest is told too, with what keeps it from being one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sentinel_rag.agent.knowledge_hits import KnowledgeHit, hits_of
from sentinel_rag.agent.offline.answer_writer import AnswerWriter, Echo
from sentinel_rag.agent.offline.execution import carry_out
from sentinel_rag.agent.offline.knowledge.answers import (
    MOST_PAST,
    OPEN,
    cited_as,
    finished,
    say_found,
    say_freshness,
    say_past,
    shares_something,
)
from sentinel_rag.agent.offline.knowledge.hits import (
    About,
    Group,
    about_incident,
    by_incident,
    document_read,
    names_it,
    only_fitting,
    past_search,
)
from sentinel_rag.agent.offline.knowledge.quoting import closing_words
from sentinel_rag.agent.offline.turn import Turn
from sentinel_rag.agent.planner.knowledge import KnowledgeWish, Sought
from sentinel_rag.agent.planner.plan import Plan, PlannedCall, View
from sentinel_rag.agent.tool_runs import ToolRun
from sentinel_rag.contracts.evidence import Answer, Outcome
from sentinel_rag.contracts.query_results import QueryErrorCode
from sentinel_rag.contracts.tool_calls import Failed
from sentinel_rag.contracts.tool_schemas import ALL_WORKSPACES
from sentinel_rag.language.frames import Frame

# --- the incident that others are held against


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


def others_than(incident: str, detail: ToolRun | None, search: ToolRun) -> list[Group]:
    """The past incidents of a search without the one that is asked about; one of that number in another workspace is
    another incident."""
    at = detail.result.coverage.workspace if detail is not None and detail.result is not None else ""

    def itself(hit: KnowledgeHit) -> bool:
        return hit.number == incident and (not hit.workspace or not at or hit.workspace.casefold() == at.casefold())

    return [group for group in by_incident(hits_of(search)) if not itself(group[0])]


def say_incident(writer: AnswerWriter, detail: ToolRun) -> None:
    """The incident in a line."""
    number, severity, status = (writer.number(detail, f"/rows/0/{name}") for name in ("number", "severity", "status"))
    writer.say("Incident {}: {}, {}, {}.", number, writer.name(detail, "/rows/0/title"), severity, status)


async def no_such_incident(turn: Turn, wish: KnowledgeWish, frame: Frame, failed: ToolRun) -> Answer:
    """The incident that was named is not there, or its number means several: told as a question for it is."""
    if failed.call.tool_name == "get_incident_detail" and not failed.worked:
        return turn.failed_answer([failed])
    turn.runs.clear()
    return await carry_out(turn, Plan(view=View.INCIDENT, calls=(detail_of(wish.incident),), frame=frame))


async def with_closings(turn: Turn, groups: Sequence[Group], most: int) -> list[Group]:
    """The groups, the first `most` of them with all parts of a closed incident whose closing was not among the hits."""
    told = list(groups)
    lacking = [n for n, group in enumerate(groups[:most]) if group[0].status == "Closed" and not closing_words(group)]
    if lacking:
        runs = await turn.run([document_read(groups[place][0].document) for place in lacking])
        for place, run in zip(lacking, runs, strict=True):
            told[place] = (*groups[place], *hits_of(run))
    return told


# --- the answer


@dataclass(frozen=True, slots=True)
class _Apart:
    """Incidents that are alike, and what keeps them from being what was asked for."""

    title: str
    sentence: str
    groups: Sequence[Group]
    said: tuple[Echo, ...] = ()
    """What stands in the places of the sentence."""


async def answer_past(turn: Turn, wish: KnowledgeWish, frame: Frame | None) -> Answer:
    """Past incidents like an incident, or about words."""
    tactics, techniques = (_filter(wish, name) for name in ("tactic", "technique"))
    about = About(wish.topic, tactics, techniques, names=wish.names)
    detail: ToolRun | None = None
    over = wish.filters.get("status") == "Closed"
    if wish.incident:
        like = in_knowledge(turn, wish.incident)
        detail, *searches = await turn.run((detail_of(wish.incident), *_searches(wish, "", like, over=over)))
        if len(detail.rows) == 1:
            found = about_incident(detail.rows[0])
            about = replace(found, words=f"{found.words} {wish.topic}".strip(), names=wish.names)
        elif not searches[0].worked and frame is not None:
            return await no_such_incident(turn, wish, frame, detail)
        exact = told_apart_by(detail, searches[0])
        if exact:
            searches = list(await turn.run(_searches(wish, "", exact, over=over)))
        if not_kept(searches[0]) and len(detail.rows) == 1:
            # An incident that the knowledge base does not hold is searched by what the workspace tells of it.
            searches = list(await turn.run(_searches(wish, about.query, "", over=over)))
    else:
        searches = list(await turn.run(_searches(wish, wish.topic, "", over=over)))
    if not searches[0].worked:
        return turn.failed_answer([searches[0]])
    return await _told(turn, wish, about, detail, searches)


async def _told(
    turn: Turn, wish: KnowledgeWish, about: About, detail: ToolRun | None, searches: Sequence[ToolRun]
) -> Answer:
    groups = others_than(wish.incident, detail, searches[0])
    more = [group for run in searches[1:] for group in others_than(wish.incident, detail, run)]
    open_ones, sure_open = only_fitting([group for group in more if group[0].status in OPEN], about)
    writer = turn.writer()
    if detail is not None and len(detail.rows) == 1:
        say_incident(writer, detail)
    if wish.still_open:
        groups = [group for group in groups if group[0].status in OPEN]
    fitting, sure = only_fitting(groups, about)
    apart: list[_Apart] = []
    if sure and not wish.still_open:
        created = str(detail.rows[0].get("created_time") or "") if detail is not None and len(detail.rows) == 1 else ""
        fitting, apart = _told_apart(fitting, about, created)
    if sure_open and (still := _told_apart(open_ones, about, "")[0]):
        apart.append(_Apart("Still open", "Still open, so no past ones yet", still))
    closings = (3 if wish.sought is Sought.CLOSED else 1) if sure else 0
    fitting = await with_closings(turn, fitting, closings)
    items = say_found(writer, searches[0], wish, about, fitting, closings=closings)
    for each in apart:
        shown = each.groups[:MOST_PAST]
        writer.say(f"{each.sentence}: {{}}.", *each.said, [cited_as(writer, group[0]) for group in shown])
        items += say_past(writer, each.title, shown, about, first=len(items))
    if items:
        say_freshness(writer, searches[0])
    outcome = Outcome.ANSWERED if items else Outcome.NO_DATA
    return finished(
        turn, writer, searches, wish.sought.value, items, outcome, incident=wish.incident, remarks=wish.remarks
    )


def _searches(wish: KnowledgeWish, query: str, like: str, *, over: bool) -> tuple[PlannedCall, ...]:
    """The search; where only closed incidents are past ones, also one without that filter, for those still open."""
    search = past_search(query, wish.filters, like=like)
    if not over:
        return (search,)
    without = {name: value for name, value in wish.filters.items() if name != "status"}
    return (search, past_search(query, without, like=like))


def _told_apart(groups: Sequence[Group], about: About, created: str) -> tuple[list[Group], list[_Apart]]:
    """The incidents that are what was asked for, and those that are not quite."""
    left = list(groups)
    apart: list[_Apart] = []
    for name in about.names:
        unnamed = [group for group in left if not any(names_it(hit, name) for hit in group)]
        left = [group for group in left if group not in unnamed]
        alike = [group for group in unnamed if shares_something(group, about)]
        if alike:
            apart.append(_Apart("Alike", "Alike in other ways, without naming {}", alike, (Echo(name),)))
    later = [group for group in left if created and group[0].time > created]
    if later:
        left = [group for group in left if group not in later]
        apart.append(_Apart("Created later", "Like it too, but created after it", later))
    return left, apart


def _filter(wish: KnowledgeWish, name: str) -> tuple[str, ...]:
    value = wish.filters.get(name)
    return (value,) if isinstance(value, str) else ()

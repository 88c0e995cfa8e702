"""Questions for past incidents carried out: like an incident or by words, with what does not quite belong told apart.

Past is what is closed, was created before the incident that it is held against, and names what the question names. An
incident that is only like it in the rest is told too, with what keeps it from being one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sentinel_rag.agent.knowledge_hits import KnowledgeHit
from sentinel_rag.agent.offline.answer_writer import EMPTY_CELL, AnswerWriter, Echo
from sentinel_rag.agent.offline.conversation import ListItem
from sentinel_rag.agent.offline.knowledge.asked_incident import (
    detail_of,
    in_knowledge,
    no_such_incident,
    not_kept,
    others_than,
    say_incident,
    told_apart_by,
)
from sentinel_rag.agent.offline.knowledge.closings import with_closings
from sentinel_rag.agent.offline.knowledge.finishing import finished
from sentinel_rag.agent.offline.knowledge.fitting import About, names_it
from sentinel_rag.agent.offline.knowledge.past_answers import (
    MOST_PAST,
    OPEN,
    cited_as,
    filters_told,
    only_fitting,
    say_apart,
    say_freshness,
    say_past,
    say_still_open,
    shares,
)
from sentinel_rag.agent.offline.knowledge.searches import about_incident, past_search, query_for
from sentinel_rag.agent.offline.knowledge.wishes import KnowledgeWish, Sought
from sentinel_rag.agent.offline.turn import Turn
from sentinel_rag.agent.planner.plan import PlannedCall
from sentinel_rag.agent.tool_runs import ToolRun
from sentinel_rag.contracts.evidence import Answer, Outcome
from sentinel_rag.language.frames import Frame

INGEST_COMMAND = "sentinel knowledge ingest"
Group = Sequence[KnowledgeHit]
"""The hits of one incident."""


@dataclass(frozen=True, slots=True)
class _Apart:
    """Incidents that are alike, and what keeps them from being what was asked for: the title of their table, and a
    sentence with places for `said`."""

    title: str
    sentence: str
    groups: Sequence[Group]
    said: tuple[Echo, ...] = ()


async def answer_past(turn: Turn, wish: KnowledgeWish, frame: Frame | None) -> Answer:
    """Past incidents like an incident, or about words."""
    about = About(wish.topic, _filter(wish, "tactic"), _filter(wish, "technique"), names=wish.names)
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
            searches = list(await turn.run(_searches(wish, query_for(about), "", over=over)))
    else:
        searches = list(await turn.run(_searches(wish, wish.topic, "", over=over)))
    search = searches[0]
    if not search.worked:
        return turn.failed_answer([search])
    groups = others_than(wish.incident, detail, search)
    open_ones = [
        group for run in searches[1:] for group in others_than(wish.incident, detail, run) if group[0].status in OPEN
    ]
    open_ones, sure_open = only_fitting(open_ones, about)
    writer = turn.writer()
    if detail is not None and len(detail.rows) == 1:
        say_incident(writer, detail)
    if wish.still_open:
        groups = [group for group in groups if group[0].status in OPEN]
    fitting, sure = only_fitting(groups, about)
    apart: list[_Apart] = []
    if sure and not wish.still_open:
        fitting, apart = _told_apart(fitting, about, _created(detail))
    if sure_open:
        open_ones, _ = _told_apart(open_ones, about, "")
        if open_ones:
            apart.append(_Apart("Still open", "Still open, so no past ones yet", open_ones))
    closings = (3 if wish.sought is Sought.CLOSED else 1) if sure else 0
    fitting = await with_closings(turn, fitting, closings)
    items = _say_found(writer, search, wish, about, fitting, closings=closings)
    for each in apart:
        shown = each.groups[:MOST_PAST]
        writer.say(f"{each.sentence}: {{}}.", *each.said, [cited_as(writer, group[0]) for group in shown])
        items += say_apart(writer, each.title, shown, about, first=len(items))
    if items:
        say_freshness(writer, search)
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


def _created(detail: ToolRun | None) -> str:
    """When the incident was created that others are held against; empty if there is none."""
    return str(detail.rows[0].get("created_time") or "") if detail is not None and len(detail.rows) == 1 else ""


def _told_apart(groups: Sequence[Group], about: About, created: str) -> tuple[list[Group], list[_Apart]]:
    """The incidents that are what was asked for, and those that are not quite."""
    left = list(groups)
    apart: list[_Apart] = []
    for name in about.names:
        unnamed = [group for group in left if not any(names_it(hit, name) for hit in group)]
        left = [group for group in left if group not in unnamed]
        alike = [group for group in unnamed if shares(group, about).text != EMPTY_CELL]
        if alike:
            apart.append(_Apart("Alike", "Alike in other ways, without naming {}", alike, (Echo(name),)))
    later = [group for group in left if created and group[0].time > created]
    if later:
        left = [group for group in left if group not in later]
        apart.append(_Apart("Created later", "Like it too, but created after it", later))
    return left, apart


def _say_found(
    writer: AnswerWriter, search: ToolRun, wish: KnowledgeWish, about: About, groups: Sequence[Group], *, closings: int
) -> tuple[ListItem, ...]:
    """The incidents that are what was asked for as a table, or that there are none."""
    if not groups:
        _say_none(writer, search, wish)
        return ()
    sure = closings > 0
    if wish.still_open and sure:
        writer.fixed("Incidents like it that are still open, the likest first:")
    elif sure and wish.incident:
        writer.fixed("Past incidents like it, the likest first:")
    elif sure:
        writer.fixed("Past incidents that fit, the best first:")
    else:
        writer.fixed(
            "No past incident clearly fits. These are the nearest by their words, and may be about other things:"
        )
    title = "Still open" if wish.still_open else "Past incidents"
    items = say_past(writer, groups[:MOST_PAST], about, title=title, closings=closings)
    if not wish.still_open:
        say_still_open(writer, groups[:MOST_PAST])
    if sure and len(groups) > MOST_PAST:
        writer.fixed("More fit than are shown; a severity, a tactic or a time narrows them.")
    return items


def _say_none(writer: AnswerWriter, search: ToolRun, wish: KnowledgeWish) -> None:
    if search.at("/freshness/incidents") == 0:
        writer.fixed(
            f"The knowledge base holds no past incident that you may find. `{INGEST_COMMAND}` reads in those of "
            "the last months."
        )
        return
    template, parts = filters_told(search, writer.zone)
    about = Echo(wish.topic or f"incident {wish.incident}" if wish.topic or wish.incident else "any")
    told = f" ({template})" if template else ""
    writer.say(
        f"No past incident was found for {{}}{told}. Leave a filter out, or say it in other words.", about, *parts
    )


def _filter(wish: KnowledgeWish, name: str) -> tuple[str, ...]:
    value = wish.filters.get(name)
    return (value,) if isinstance(value, str) else ()

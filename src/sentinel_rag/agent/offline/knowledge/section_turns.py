"""A section that was pointed at: whole, its KQL, the next one, or another phase of its playbook; and one past incident.

A section is found again by its playbook's title and its heading, so it is quoted as it is now, not as it was.
"""

from __future__ import annotations

from sentinel_rag.agent.conversation import ListItem
from sentinel_rag.agent.knowledge_hits import KnowledgeHit, hits_of
from sentinel_rag.agent.offline.knowledge.finishing import finished
from sentinel_rag.agent.offline.knowledge.fitting import About, by_incident
from sentinel_rag.agent.offline.knowledge.follow_ups import Further, SectionWish
from sentinel_rag.agent.offline.knowledge.past_answers import cited_as, say_closing, say_freshness
from sentinel_rag.agent.offline.knowledge.phases import PHASES, phase_of, phases_after
from sentinel_rag.agent.offline.knowledge.playbook_answers import NOTHING_DONE, say_others, say_playbook
from sentinel_rag.agent.offline.knowledge.quoted_section import kql_of, say_kql, say_section
from sentinel_rag.agent.offline.knowledge.searches import past_search, section_search
from sentinel_rag.agent.offline.turn import Turn
from sentinel_rag.agent.references.knowledge_things import past_item
from sentinel_rag.agent.tool_runs import ToolRun
from sentinel_rag.contracts.evidence import Answer, Outcome

_SOUGHT = "section"
_LEADS = {"next": "The section that comes next is {}", "whole": "From the playbook, {}"}
_MOST_NEXT = 3
"""Phases that are searched at once for the section that comes next."""


async def answer_section(turn: Turn, wish: SectionWish) -> Answer:
    """The answer to a wish for more of a section."""
    section = wish.section
    source, *path = section.value.split(" > ")
    if not path and wish.further is Further.WHOLE:
        return await _of_phases(turn, section, PHASES, "whole")
    heading = path[-1] if path else ""
    if wish.further is Further.NEXT:
        return await _next(turn, section, phase_of(path))
    if wish.further is Further.PHASE:
        return await _of_phases(turn, section, (wish.phase,), f"{wish.phase}")
    runs = await turn.run((section_search(section.title, section.place, heading),))
    if not runs[0].worked:
        return turn.failed_answer(runs)
    hits = [hit for hit in hits_of(runs[0]) if hit.source == source]
    own = [hit for hit in hits if hit.citation == section.value or not path]
    if wish.further is Further.KQL:
        return await _kql(turn, runs, section, own, hits)
    if not own:
        return _gone(turn, runs[0], section)
    writer = turn.writer()
    items = say_playbook(writer, own[0], hits, About(), lead="From the playbook, {}")
    writer.fixed(NOTHING_DONE)
    return finished(turn, writer, runs, _SOUGHT, items)


async def _next(turn: Turn, section: ListItem, phase: str) -> Answer:
    return await _of_phases(turn, section, phases_after(phase), "next")


async def _of_phases(turn: Turn, section: ListItem, phases: tuple[str, ...], sought: str) -> Answer:
    """The first section of the playbook that is of one of the phases, which stand in their order."""
    runs: list[ToolRun] = []
    source = section.value.split(" > ")[0]
    for start in range(0, len(phases), _MOST_NEXT):
        part = phases[start : start + _MOST_NEXT]
        found = await turn.run([section_search(section.title, section.place, phase) for phase in part])
        runs += found
        if not any(run.worked for run in found):
            return turn.failed_answer(found[:1])
        hits = [hit for run in found for hit in hits_of(run) if hit.source == source]
        for phase in part:
            own = [hit for hit in hits if phase_of(hit.path) == phase and hit.citation != section.value]
            if own:
                writer = turn.writer()
                lead = _LEADS.get(sought, "From the same playbook, {}")
                same = [hit for hit in own if hit.citation == own[0].citation]
                items = say_playbook(writer, own[0], same, About(), lead=lead)
                writer.fixed(NOTHING_DONE)
                return finished(turn, writer, runs, _SOUGHT, items)
    if not runs:
        runs = await turn.run((section_search(section.title, section.place, ""),))
        if not runs[0].worked:
            return turn.failed_answer(runs)
    writer = turn.writer()
    hits = [hit for run in runs for hit in hits_of(run) if hit.source == source]
    others = list({hit.citation: hit for hit in hits if hit.citation != section.value}.values())
    if sought == "next":
        writer.fixed("No section of that playbook comes after this one, as far as its headings tell the order.")
    else:
        writer.fixed("No section of that playbook has such a heading.")
    items = say_others(writer, others, 1)
    return finished(turn, writer, runs, _SOUGHT, items, Outcome.NO_DATA, focus=section)


async def _kql(
    turn: Turn, runs: list[ToolRun], section: ListItem, own: list[KnowledgeHit], hits: list[KnowledgeHit]
) -> Answer:
    """The KQL of the section, else of the sections of its playbook that have some, said to be of those."""
    writer = turn.writer()
    source = section.value.split(" > ")[0]
    told = [hit for hit in own if kql_of(hit)]
    if told:
        writer.say("The KQL of {}. It was not run:", cited_as(writer, told[0]))
    else:
        more = await turn.run((section_search(section.title, section.place, "kql where project summarize"),))
        runs += more
        found = [hit for run in runs for hit in hits_of(run) if hit.source == source]
        told = list({(hit.citation, hit.text): hit for hit in found if kql_of(hit)}.values())[:2]
        if not told:
            writer.fixed("That playbook has no KQL, as far as the search found its sections.")
            return finished(turn, writer, runs, _SOUGHT, (), Outcome.NO_DATA, focus=section)
        writer.fixed("That section has no KQL. These sections of the same playbook have some; it was not run:")
    for hit in told:
        if hit.citation != section.value:
            writer.say("From {}:", cited_as(writer, hit))
        say_kql(writer, hit, kql_of(hit))
    return finished(turn, writer, runs, _SOUGHT, focus=section)


def _gone(turn: Turn, run: ToolRun, section: ListItem) -> Answer:
    writer = turn.writer()
    writer.fixed("The search did not find that section again; the playbook may have changed. Ask for it in words.")
    return finished(turn, writer, [run], _SOUGHT, (), Outcome.NO_DATA)


async def answer_one_past(turn: Turn, number: str, title: str) -> Answer | None:
    """One past incident out of the knowledge base, which the workspace does not hold; None if that does not either."""
    runs = await turn.run((past_search(f"incident {number} {title}".strip(), {}),))
    group = next((each for each in by_incident(hits_of(runs[0])) if each[0].number == number), None)
    if group is None:
        return None
    writer = turn.writer()
    writer.say(
        "The workspace does not hold {} (any more). This is what the knowledge base has of it:",
        cited_as(writer, group[0]),
    )
    for hit in group:
        say_section(writer, hit)
    if not any("Closing comment" in hit.text for hit in group):
        say_closing(writer, group)
    say_freshness(writer, runs[0])
    return finished(turn, writer, runs, _SOUGHT, focus=past_item(group[0]))

"""A section that was pointed at: whole, its KQL, the next one, or another phase of its playbook; and one past incident.

The document is read again, so a section is quoted as it is now, not as it was shown.
"""

from __future__ import annotations

from collections.abc import Sequence

from sentinel_rag.agent.knowledge_hits import KnowledgeHit, hits_of
from sentinel_rag.agent.offline.conversation import ListItem
from sentinel_rag.agent.offline.knowledge.finishing import finished
from sentinel_rag.agent.offline.knowledge.fitting import About
from sentinel_rag.agent.offline.knowledge.follow_ups import Further, SectionWish
from sentinel_rag.agent.offline.knowledge.past_answers import cited_as, say_closing, say_freshness
from sentinel_rag.agent.offline.knowledge.phases import PHASES, phase_of
from sentinel_rag.agent.offline.knowledge.playbook_answers import NOTHING_DONE, say_others, say_playbook
from sentinel_rag.agent.offline.knowledge.quoted_section import kql_of, say_kql, say_section
from sentinel_rag.agent.offline.knowledge.searches import document_read
from sentinel_rag.agent.offline.turn import Turn
from sentinel_rag.agent.things import past_item
from sentinel_rag.agent.tool_runs import ToolRun
from sentinel_rag.contracts.evidence import Answer, Outcome
from sentinel_rag.contracts.query_results import QueryErrorCode
from sentinel_rag.contracts.tool_calls import Failed

_SOUGHT = "section"
_MOST_KQL = 2
"""Sections whose KQL is shown in the place of one that has none."""


async def answer_section(turn: Turn, wish: SectionWish) -> Answer:
    """The answer to a wish for more of a section."""
    document, *path = wish.section.value.split(" > ")
    goes_on = wish.further in (Further.NEXT, Further.WHOLE)
    runs = await turn.run((document_read(document, " > ".join(path) if goes_on else ""),))
    if _gone(runs[0]):
        writer = turn.writer()
        writer.fixed("That section is not there any more; the playbook may have changed. Ask for it in words.")
        return finished(turn, writer, runs, _SOUGHT, (), Outcome.NO_DATA)
    if not runs[0].worked:
        return turn.failed_answer(runs)
    hits = hits_of(runs[0])
    of_it = [hit for hit in hits if hit.citation == wish.section.value]
    match wish.further:
        case Further.KQL:
            return _kql(turn, runs, wish.section, of_it, hits)
        case Further.NEXT:
            later = [hit for hit in hits if hit.citation != wish.section.value]
            none = "That is the last section of the playbook."
            return _section(turn, runs, wish.section, later[:1], later, "The section that comes next is {}", none)
        case Further.PHASE:
            own = [hit for hit in hits if phase_of(hit.path) == wish.phase]
            none = "No section of that playbook has such a heading. It has these:"
            return _section(turn, runs, wish.section, own[:1], hits, "From the same playbook, {}", none)
        case Further.WHOLE:
            first = [hit for hit in hits if phase_of(hit.path) == PHASES[0]] if not path else of_it
            return _section(turn, runs, wish.section, (first or hits)[:1], hits, "From the playbook, {}", "")


def _section(
    turn: Turn,
    runs: Sequence[ToolRun],
    section: ListItem,
    best: Sequence[KnowledgeHit],
    hits: Sequence[KnowledgeHit],
    lead: str,
    none: str,
) -> Answer:
    """The one section of `best` quoted, and the names of the others; `none` says that there is no such one."""
    writer = turn.writer()
    if best:
        items = say_playbook(writer, best[0], hits, About(), lead=lead)
        writer.fixed(NOTHING_DONE)
        return finished(turn, writer, runs, _SOUGHT, items)
    others = list({hit.citation: hit for hit in hits}.values())
    writer.fixed(none)
    return finished(turn, writer, runs, _SOUGHT, say_others(writer, others, 1), Outcome.NO_DATA, focus=section)


def _kql(
    turn: Turn,
    runs: Sequence[ToolRun],
    section: ListItem,
    own: Sequence[KnowledgeHit],
    hits: Sequence[KnowledgeHit],
) -> Answer:
    """The KQL of the section, else of the first sections of its playbook that have some, said to be of those."""
    writer = turn.writer()
    told = [hit for hit in own if kql_of(hit)]
    if told:
        writer.say("The KQL of {}. It was not run:", cited_as(writer, told[0]))
    else:
        others = list(dict.fromkeys(hit.citation for hit in hits if kql_of(hit)))[:_MOST_KQL]
        told = [hit for hit in hits if hit.citation in others and kql_of(hit)]
        if not told:
            writer.fixed("That playbook has no KQL.")
            return finished(turn, writer, runs, _SOUGHT, (), Outcome.NO_DATA, focus=section)
        writer.fixed("That section has no KQL. These sections of the same playbook have some; it was not run:")
    said = section.value
    for hit in told:
        if hit.citation != said:
            writer.say("From {}:", cited_as(writer, hit))
            said = hit.citation
        say_kql(writer, hit, kql_of(hit))
    return finished(turn, writer, runs, _SOUGHT, focus=section)


async def answer_one_past(turn: Turn, number: str) -> Answer | None:
    """One past incident out of the knowledge base, which the workspace does not hold; None if that does not either."""
    place = turn.conversation.found_in.get(number, "")
    runs = await turn.run((document_read(f"incident-{number}@{place}" if place else f"incident-{number}"),))
    hits = hits_of(runs[0])
    if not hits:
        turn.runs.remove(runs[0])  # what the workspace said stands alone
        return None
    writer = turn.writer()
    cited = cited_as(writer, hits[0])
    writer.say("The workspace does not hold {} (any more). This is what the knowledge base has of it:", cited)
    for hit in hits:
        say_section(writer, hit)
    if not any("Closing comment" in hit.text for hit in hits):
        say_closing(writer, hits)
    say_freshness(writer, runs[0])
    return finished(turn, writer, runs, _SOUGHT, focus=past_item(hits[0]))


def _gone(run: ToolRun) -> bool:
    """True if the document, or the section of it, is not there for this caller."""
    outcome = run.outcome
    return isinstance(outcome, Failed) and outcome.error.code is QueryErrorCode.INVALID_ARGUMENT

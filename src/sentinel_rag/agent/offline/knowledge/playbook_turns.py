"""Questions for what playbooks say, and for which there are: searched, and the fitting playbook read for its phase.

Whoever asks whether there is a playbook, or how to deal with something, is told which one it is and its first steps;
whoever asks for one thing in it gets the section that tells it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sentinel_rag.agent.knowledge_hits import KnowledgeHit, hits_of
from sentinel_rag.agent.offline.answer_writer import AnswerWriter, Echo
from sentinel_rag.agent.offline.conversation import ListItem
from sentinel_rag.agent.offline.knowledge.finishing import finished
from sentinel_rag.agent.offline.knowledge.fitting import About, by_fit, fits, held, telling, when_to_use
from sentinel_rag.agent.offline.knowledge.phases import PHASES, phase_of
from sentinel_rag.agent.offline.knowledge.playbook_answers import (
    NOTHING_DONE,
    say_documents,
    say_nearest,
    say_playbook,
)
from sentinel_rag.agent.offline.knowledge.searches import document_read, listing, playbook_search
from sentinel_rag.agent.offline.knowledge.wishes import KnowledgeWish, Sought
from sentinel_rag.agent.offline.turn import Turn
from sentinel_rag.agent.tool_runs import ToolRun
from sentinel_rag.contracts.evidence import Answer, Outcome

INGEST_COMMAND = "sentinel knowledge ingest"


async def answer_playbook(turn: Turn, wish: KnowledgeWish) -> Answer:
    """What the playbooks say about something."""
    technique = wish.filters.get("technique")
    about = About(wish.topic, (), (technique,) if isinstance(technique, str) else (), wish.phase)
    query = f"{wish.topic} {wish.phase}".strip()
    (search,) = await turn.run((playbook_search(query, wish.filters),))
    if search.worked and wish.filters and not hits_of(search):
        (search,) = await turn.run((playbook_search(query, {}),))
    if not search.worked:
        return turn.failed_answer([search])
    hits = by_fit([hit for hit in hits_of(search) if hit.is_playbook], about)
    runs = [search]
    if hits and not wish.phase and (_is_title(wish.topic, hits[0]) or (wish.whole and _is_for(hits, about))):
        # The whole playbook is asked for: it is told from its beginning.
        about = replace(about, phase=PHASES[0])
    sure = bool(hits) and fits(hits[0], about)
    found = hits[0] if sure else None
    if sure and about.phase:
        hits = await with_phase(turn, hits, about, runs)
    writer = turn.writer()
    if not hits:
        return finished(turn, writer, runs, wish.sought.value, (), say_no_playbook(writer, search, wish.topic))
    items = say_best(writer, hits, about, sure=sure, found=found if about.phase and not wish.phase else None)
    return finished(turn, writer, runs, wish.sought.value, items, Outcome.ANSWERED if sure else Outcome.NO_DATA)


async def with_phase(turn: Turn, hits: list[KnowledgeHit], about: About, runs: list[ToolRun]) -> list[KnowledgeHit]:
    """The section of the best playbook for the phase in front, then its other sections in their order and what else was
    found; the hits as they are if it has no such section."""
    (read,) = await turn.run((document_read(hits[0].source),))
    runs.append(read)
    sections = hits_of(read)
    wanted = [hit for hit in sections if phase_of(hit.path) == about.phase]
    if not wanted:
        return hits
    others = [hit for hit in hits if hit.source != hits[0].source]
    return [*wanted, *(hit for hit in sections if hit not in wanted), *others]


def say_best(
    writer: AnswerWriter,
    hits: Sequence[KnowledgeHit],
    about: About,
    *,
    sure: bool,
    found: KnowledgeHit | None = None,
) -> tuple[ListItem, ...]:
    """The best section quoted; or, where it shares nothing that tells, only named as the nearest. `found` is the hit
    that a whole playbook was found by."""
    if not sure:
        return say_nearest(writer, hits[0])
    lead = "The playbook section {} fits"
    if found is not None and not about.of_incident:
        lead = "The playbook for it begins with {}"
    items = say_playbook(writer, hits[0], hits, about, lead=lead, found=found)
    writer.fixed(NOTHING_DONE)
    return items


def say_no_playbook(writer: AnswerWriter, search: ToolRun, topic: str) -> Outcome:
    """That nothing was found, and what helps."""
    if search.at("/freshness/playbooks") == 0:
        writer.fixed(
            f"The knowledge base holds no playbook that you may find. `{INGEST_COMMAND}` reads in the shipped ones, "
            f"`{INGEST_COMMAND} FOLDER` your own."
        )
    else:
        writer.say("No playbook says anything about {}. Ask which playbooks there are.", Echo(topic))
    return Outcome.NO_DATA


async def answer_catalogue(turn: Turn) -> Answer:
    """The playbooks by file and title."""
    (run,) = await turn.run((listing(),))
    if not run.worked:
        return turn.failed_answer([run])
    writer = turn.writer()
    sought = Sought.CATALOGUE.value
    documents = [hit for hit in hits_of(run) if hit.is_playbook]
    if not documents:
        return finished(turn, writer, [run], sought, (), say_no_playbook(writer, run, "playbooks"))
    writer.say("The knowledge base holds {} playbooks.", writer.number(run, "/freshness/playbooks"))
    items = say_documents(writer, documents)
    return finished(turn, writer, [run], sought, items)


def _is_title(topic: str, hit: KnowledgeHit) -> bool:
    """True if the words only name the playbook."""
    wanted = telling(topic)
    return held(wanted, f"{hit.title} {hit.source}") == wanted


def _is_for(hits: Sequence[KnowledgeHit], about: About) -> bool:
    """True if the best hit's playbook is for what was asked, and does not only mention it in one section."""
    wanted = telling(about.words)
    own = {hit.citation for hit in hits if hit.source == hits[0].source and fits(hit, about)}
    return bool(held(wanted, when_to_use(hits[0], hits))) or len(own) >= 2 or bool(about.techniques)

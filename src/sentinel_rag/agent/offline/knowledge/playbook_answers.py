"""Sections of playbooks as an answer: the one that fits, quoted under its file and headings, then the others by name.

A playbook says what could be done. The answer never says that a step was done, and says that it is the playbook's word.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sentinel_rag.agent.knowledge_hits import KnowledgeHit
from sentinel_rag.agent.offline.answer_writer import EMPTY_CELL, AnswerWriter, Fact
from sentinel_rag.agent.offline.conversation import ListItem
from sentinel_rag.agent.offline.knowledge.fitting import About, held, sections_of, telling
from sentinel_rag.agent.offline.knowledge.past_answers import cited_as, shares
from sentinel_rag.agent.offline.knowledge.quoted_section import say_section
from sentinel_rag.agent.things import section_item

MOST_SECTIONS = 9
NOTHING_DONE = "These are a playbook's words. Nothing of it was done here; whether it is done, a person decides."


def say_playbook(
    writer: AnswerWriter,
    best: KnowledgeHit,
    hits: Sequence[KnowledgeHit],
    about: About,
    *,
    lead: str,
    found: KnowledgeHit | None = None,
) -> tuple[ListItem, ...]:
    """The section of `best` quoted whole, as far as the hits have it, then what else was found, numbered from 1.

    `lead` is a sentence with a place for the citation. `found` is the hit that the playbook was found by, where that is
    another one: what it shares is told, and where.
    """
    shared = shares([found or best], about)
    number, cited = Fact("[1]"), cited_as(writer, best)
    told = found is not None and found.citation != best.citation
    if shared.text == EMPTY_CELL or (told and held(telling(about.words), best.title) == telling(about.words)):
        writer.say(f"{{}} {lead}.", number, cited)
    elif found is not None and told:
        writer.say(f"{{}} {lead}; {{}} tells of {{}}.", number, cited, cited_as(writer, found), shared)
    else:
        writer.say(f"{{}} {lead}; it shares {{}}.", number, cited, shared)
    section = next(each for each in sections_of(hits, best.source) if each[0].citation == best.citation)
    holds_code = [say_section(writer, hit) for hit in section]
    if any(holds_code):
        writer.fixed("The section holds KQL; ask: show me the KQL of that section.")
    others = other_sections(hits, best)
    return (section_item(best), *say_others(writer, others, 2))


def say_nearest(writer: AnswerWriter, hit: KnowledgeHit) -> tuple[ListItem, ...]:
    """That no playbook fits, and the name of the nearest section; nothing of it is quoted."""
    writer.say(
        "No playbook clearly fits. The nearest section, which may be about other things, is {}.", cited_as(writer, hit)
    )
    writer.fixed("Ask which playbooks there are, or say it in other words.")
    return (section_item(hit),)


def other_sections(hits: Sequence[KnowledgeHit], best: KnowledgeHit) -> list[KnowledgeHit]:
    """The other sections among the hits, those of the same playbook first, each once."""
    seen = {best.citation: best}
    for hit in sorted(hits, key=lambda each: each.source != best.source):
        if hit.is_playbook:
            seen.setdefault(hit.citation, hit)
    return list(seen.values())[1:MOST_SECTIONS]


def say_others(writer: AnswerWriter, others: Sequence[KnowledgeHit], number: int) -> tuple[ListItem, ...]:
    """The names of further sections, one a line."""
    if others:
        writer.fixed("Also found:")
    for place, hit in enumerate(others):
        writer.say("{} {}", Fact(f"[{number + place}]"), cited_as(writer, hit))
    return tuple(section_item(hit) for hit in others)


def say_documents(writer: AnswerWriter, documents: Sequence[KnowledgeHit]) -> tuple[ListItem, ...]:
    """Playbooks by file and title, as a numbered table."""
    rows = [
        [
            Fact(f"[{place}]"),
            writer.cell(hit.run, f"{hit.pointer}/document_id"),
            writer.cell(hit.run, f"{hit.pointer}/title"),
            writer.cell(hit.run, f"{hit.pointer}/tactics"),
        ]
        for place, hit in enumerate(documents, start=1)
    ]
    writer.table("Playbooks", ("", "File", "Title", "Tactics"), rows)
    return tuple(replace(section_item(hit), value=hit.source) for hit in documents)

"""Hits of the knowledge base as things that a person can point at: a section of a playbook, a past incident."""

from __future__ import annotations

from sentinel_rag.agent.references.knowledge_hits import KnowledgeHit
from sentinel_rag.agent.references.listed import INCIDENT, LONGEST_WORDS, SECTION, ListItem


def section_item(hit: KnowledgeHit) -> ListItem:
    """A section of a playbook, by its citation."""
    return ListItem(SECTION, hit.citation, title=hit.title[:LONGEST_WORDS])


def past_item(hit: KnowledgeHit) -> ListItem:
    """A past incident, by its number."""
    return ListItem(
        INCIDENT,
        hit.number,
        incident=hit.number,
        title=hit.title[:LONGEST_WORDS],
        severity=hit.severity,
        status=hit.status,
        time=hit.time,
    )


def hit_item(hit: KnowledgeHit) -> ListItem:
    """What a hit is of."""
    return section_item(hit) if hit.is_playbook else past_item(hit)

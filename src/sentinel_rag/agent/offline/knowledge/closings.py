"""How past incidents ended, read from their own documents where the hits of a search do not hold it."""

from __future__ import annotations

from collections.abc import Sequence

from sentinel_rag.agent.knowledge_hits import KnowledgeHit, hits_of
from sentinel_rag.agent.offline.knowledge.quoted_section import closing_words
from sentinel_rag.agent.offline.knowledge.searches import document_read
from sentinel_rag.agent.offline.turn import Turn


async def with_closings(
    turn: Turn, groups: Sequence[Sequence[KnowledgeHit]], most: int
) -> list[Sequence[KnowledgeHit]]:
    """The groups, the first `most` of them with all parts of a closed incident whose closing was not among the hits."""
    lacking = [
        place
        for place, group in enumerate(groups[:most])
        if group[0].status == "Closed" and closing_words(group) is None
    ]
    told: list[Sequence[KnowledgeHit]] = list(groups)
    if lacking:
        runs = await turn.run([document_read(groups[place][0].document) for place in lacking])
        for place, run in zip(lacking, runs, strict=True):
            told[place] = (*groups[place], *hits_of(run))
    return told

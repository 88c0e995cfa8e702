"""The check of a finished answer, whoever wrote it."""

from __future__ import annotations

import re

from sentinel_rag.agent.grounding.evidence_index import EvidenceIndex
from sentinel_rag.agent.grounding.line_check import KnownAtoms, unsupported
from sentinel_rag.agent.grounding.outcome import REMOVED, Grounded, Removal

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")


def ground(text: str, index: EvidenceIndex, *, question: str) -> Grounded:
    """`text` (Markdown) with every sentence left out that states what neither a result nor the person said."""
    known = KnownAtoms(index.runs, f"{question}\n{index.words}", index.zone)
    removals: list[Removal] = []
    lines = []
    for line in text.split("\n"):
        kept: list[str] = []
        for sentence in _SENTENCE_END.split(line):
            found = unsupported(sentence, known) if sentence != REMOVED else []
            if not found:
                kept.append(sentence)
                continue
            removals.append(Removal(found[0].atom, sentence, "no result holds it"))
            if not kept or kept[-1] != REMOVED:
                kept.append(REMOVED)
        lines.append(" ".join(kept))
    return Grounded("\n".join(lines), removals=tuple(removals))

"""Answers checked by code: what an answer states must stand in a result, or follow from results, or be the person's.

`ground` reads the free Markdown of whoever wrote an answer and gives back what may be shown; `GrowingCheck` does so
while it is being written.
"""

from __future__ import annotations

from sentinel_rag.agent.grounding.checking import GrowingCheck, ground
from sentinel_rag.agent.grounding.evidence_index import EvidenceIndex
from sentinel_rag.agent.grounding.line_check import broken_evidence
from sentinel_rag.agent.grounding.outcome import REMOVED, REPAIRED, UNCHECKED_CELL, Grounded, Removal, Repair

__all__ = [
    "REMOVED",
    "REPAIRED",
    "UNCHECKED_CELL",
    "EvidenceIndex",
    "Grounded",
    "GrowingCheck",
    "Removal",
    "Repair",
    "broken_evidence",
    "ground",
]

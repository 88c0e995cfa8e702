"""Answers checked by code: what an answer states must stand in a result, or follow from results, or be the person's.

`ground` reads the free Markdown of whoever wrote an answer and gives back what may be shown; `GrowingCheck` does so
while it is being written. The functions of
`line_check` do the same for the offline analyst, which writes an answer out of values and knows where each came from.
"""

from __future__ import annotations

from sentinel_rag.agent.grounding.checking import GrowingCheck, ground
from sentinel_rag.agent.grounding.evidence_index import EvidenceIndex
from sentinel_rag.agent.grounding.line_check import (
    KnownAtoms,
    Unsupported,
    broken_evidence,
    checked_lines,
    checked_table,
    unsupported,
)
from sentinel_rag.agent.grounding.outcome import REMOVED, REPAIRED, UNCHECKED_CELL, Grounded, Removal, Repair

__all__ = [
    "REMOVED",
    "REPAIRED",
    "UNCHECKED_CELL",
    "EvidenceIndex",
    "Grounded",
    "GrowingCheck",
    "KnownAtoms",
    "Removal",
    "Repair",
    "Unsupported",
    "broken_evidence",
    "checked_lines",
    "checked_table",
    "ground",
    "unsupported",
]

"""Whether pieces of evidence still say what stands at their place."""

from __future__ import annotations

from collections.abc import Iterable

from sentinel_rag.agent.tool_runs import ToolRun, resolve
from sentinel_rag.contracts.evidence import Evidence


def broken_evidence(evidence: Iterable[Evidence], runs: Iterable[ToolRun]) -> list[Evidence]:
    """Pieces whose pointer does not lead to their value in the result of their call."""
    documents = {run.call.call_id: run.document for run in runs}
    return [piece for piece in evidence if resolve(documents.get(piece.call_id), piece.pointer) != piece.value]

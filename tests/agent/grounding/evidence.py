"""Evidence of one call, for a test that needs other rows than the estate's."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC

from sentinel_rag.agent.grounding import EvidenceIndex
from sentinel_rag.agent.tool_runs import ToolRun
from sentinel_rag.contracts.json_values import JsonObject
from sentinel_rag.contracts.tool_calls import Succeeded, ToolCall
from sentinel_rag.testing.scripted_gateway import rows_result


def evidence_of(tool: str, rows: Sequence[JsonObject]) -> EvidenceIndex:
    """What an answer may say after `tool` has given these rows."""
    call = ToolCall("c1", "s", tool, {})
    index = EvidenceIndex(UTC)
    index.add(ToolRun(call, Succeeded(call, rows_result(rows))))
    return index

"""A model's text against the results of a conversation, in its plainest form."""

from __future__ import annotations

from datetime import UTC

import pytest

from sentinel_rag.agent.grounding import REMOVED, EvidenceIndex, ground
from sentinel_rag.agent.tool_runs import ToolRun
from sentinel_rag.contracts.tool_calls import Succeeded, ToolCall
from sentinel_rag.testing.scripted_gateway import rows_result


@pytest.mark.requirement("GRND-1")
def test_a_sentence_that_no_result_holds_is_left_out_and_the_answer_says_so() -> None:
    call = ToolCall("c1", "s", "query_incidents")
    index = EvidenceIndex(UTC)
    index.add(ToolRun(call, Succeeded(call, rows_result([{"number": 55, "severity": "High"}]))))
    grounded = ground("Incident 55 is High. It came from 203.0.113.9.", index, question="what is open?")
    assert grounded.text == f"Incident 55 is High. {REMOVED}"
    assert [removal.atom for removal in grounded.removals] == ["203.0.113.9"]

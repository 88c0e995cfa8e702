"""A model's text against the results of a conversation, in its plainest form."""

from __future__ import annotations

import pytest
from evidence import evidence_of

from sentinel_rag.agent.grounding import REMOVED, ground


@pytest.mark.requirement("GRND-1")
def test_a_sentence_that_no_result_holds_is_left_out_and_the_answer_says_so() -> None:
    index = evidence_of("query_incidents", [{"number": 55, "severity": "High"}])
    grounded = ground("Incident 55 is High. It came from 203.0.113.9.", index, question="what is open?")
    assert grounded.text == f"Incident 55 is High. {REMOVED}"
    assert [removal.atom for removal in grounded.removals] == ["203.0.113.9"]

"""Every decision on record can be made again from its record alone, and comes out the same."""

from __future__ import annotations

import itertools

import pytest

from sentinel_rag.contracts.labels import Label
from sentinel_rag.contracts.tool_calls import Allow, Deny
from sentinel_rag.gateway.flow import judge
from sentinel_rag.gateway.flow.judging import facts_of
from sentinel_rag.gateway.policy import Policy
from sentinel_rag.gateway.policy.model import UNKNOWN_TOOL
from sentinel_rag_testing.running_gateway import RunningGateway

TOOLS = ("query_incidents", "query_sentinel_alerts", "run_kql_query", "list_tables", "file_write", "no such tool")
ARGUMENTS = ({}, {"limit": 3}, {"template": "raw_signins"}, {"template": "x", "limit": 1}, {"owner": "é\u0000"})


@pytest.mark.requirement("AUD-4")
def test_replay(gateway: RunningGateway, shipped_policy: Policy) -> None:
    for number, (tool, arguments) in enumerate(itertools.product(TOOLS, ARGUMENTS)):
        gateway.call(tool, arguments, session_id=f"session-{number % 3}")
    decided = 0
    contexts: dict[str, Label] = {}
    for record in gateway.records():
        if record["kind"] == "session":
            contexts[record["session_id"]] = Label.from_dict(record["context"])
        if record["kind"] not in ("intent", "refusal"):
            continue
        before, after = Label.from_dict(record["context_before"]), Label.from_dict(record["context_after"])
        assert before == contexts[record["session_id"]]
        contexts[record["session_id"]] = after
        if record.get("reason") == "invalid_argument":
            continue
        decided += 1
        assert record["policy_sha256"] == shipped_policy.sha256
        tool = shipped_policy.tool(record["requested_tool"])
        judgement = None if tool is None else judge(shipped_policy, tool, record["arguments"], facts_of(record))
        decision = UNKNOWN_TOOL if judgement is None else judgement.decision
        assert decision.rule_id == record["rule_id"]
        if isinstance(decision, Deny):
            assert (record["decision"], record["reason"]) == ("deny", decision.reason.value)
            assert Label.from_dict(record["label"]) == decision.label
        else:
            assert isinstance(decision, Allow)
            assert record["decision"] == "allow"
            assert judgement is not None
            assert judgement.revealed == Label.from_dict(record["label"])
            assert Label.from_dict(record["label"]).join(before) == after
    assert decided == 18

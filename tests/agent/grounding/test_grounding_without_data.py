"""Zero data gives zero facts: where every tool came back empty or failed, no text makes a fact of an incident.

The writer controls every word; nothing of it may reach a person as a finding.
"""

from __future__ import annotations

from datetime import UTC

import pytest

from sentinel_rag.agent.grounding import REMOVED, EvidenceIndex, ground
from sentinel_rag.agent.tool_runs import ToolRun
from sentinel_rag.contracts.query_results import QueryErrorCode
from sentinel_rag.contracts.tool_calls import Failed, Succeeded, ToolCall
from sentinel_rag.testing.scripted_gateway import denial, failure, rows_result

FACTS = (
    "Incident 12 is open.",
    "#12 was created.",
    "There are 3 incidents.",
    "Three alerts were raised.",
    "There is one High incident.",
    "Several incidents are active.",
    "There are open incidents.",
    "All incidents are closed.",
    "The newest incident is High.",
    "The incident was created on 2 July 2024.",
    "It began at 09:51 UTC.",
    "The incident lasted two hours.",
    "Half of the incidents are closed.",
    "The severity is High.",
    "**Status:** Active",
    "It is a true positive.",
    "It is assigned to Ines Duarte.",
    "The source was 203.0.113.77.",
    "The network is 10.0.0.0/8.",
    "The source was 2001:db8::5.",
    "The source was 203[.]0[.]113[.]77.",
    "The id is 3f1c2b6a-0d7e-4c55-9b1f-6f0f2a9d1e06.",
    "The hash is da39a3ee5e6b4b0d3255bfef95601890afd80709.",
    "The file is dropper.exe.",
    "It lay under C:\\Users\\Public\\run.",
    "It called https://files.example/dropper.",
    "It came from mail.files.example.",
    "The account is m.keller@contoso.example.",
    "The account is CONTOSO\\mkeller.",
    "The account svc-backup was used.",
    "The host is DC-PROD.",
    "It is S-1-5-21-1-2-3-500.",
    "It maps to T1059.",
    "The tactic is Lateral Movement.",
    "The rule “Password spray” fired.",
    "The command was `whoami /all`.",
    "Lazarus Group did it.",
    "The attacker got in.",
    "Your environment is safe.",
    "The host was isolated and the account was disabled.",
    "Suspicious sign-ins were seen from abroad.",
)


def empty() -> list[ToolRun]:
    call = ToolCall("c1", "s", "query_incidents", {"time_window": "last_24h"})
    return [ToolRun(call, Succeeded(call, rows_result([], table="SecurityIncident")))]


def failing() -> list[ToolRun]:
    call = ToolCall("c1", "s", "query_incidents")
    error = failure(QueryErrorCode.TIMEOUT, "The query took longer than 30 seconds.")
    return [ToolRun(call, Failed(call, error)), ToolRun(call, denial())]


@pytest.mark.requirement("GRND-1")
@pytest.mark.parametrize("runs", [[], empty(), failing()], ids=["nothing asked", "empty", "failing"])
@pytest.mark.parametrize("fact", FACTS)
def test_a_fact_without_data_is_left_out(fact: str, runs: list[ToolRun]) -> None:
    index = EvidenceIndex(UTC)
    for run in runs:
        index.add(run)
    grounded = ground(fact, index, question="What happened?")
    assert grounded.text.strip("* ") == REMOVED
    assert grounded.evidence == ()


@pytest.mark.requirement("GRND-1")
@pytest.mark.parametrize(
    "text",
    [
        "No incidents were found in the last 24 hours.",
        "I could not find any incidents; try a wider window.",
        "Nothing came back. Would you like me to look at the last 7 days?",
    ],
)
def test_that_nothing_was_found_may_be_said(text: str) -> None:
    index = EvidenceIndex(UTC)
    for run in empty():
        index.add(run)
    assert ground(text, index, question="What happened in the last 24 hours?").text == text


@pytest.mark.requirement("GRND-1")
def test_a_failed_call_is_no_empty_result() -> None:
    index = EvidenceIndex(UTC)
    for run in failing():
        index.add(run)
    text = "There are no incidents. The query failed: it took too long."
    assert ground(text, index, question="q").text == f"{REMOVED} The query failed: it took too long."

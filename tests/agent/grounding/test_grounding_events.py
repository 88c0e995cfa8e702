"""An account, a host or an address stays only at an event that has it, also where the event is named by a word or two
of an alert's title, and where an account is said to have done something on a host.
"""

from __future__ import annotations

from datetime import UTC

import pytest

from sentinel_rag.agent.grounding import REMOVED, EvidenceIndex, ground
from sentinel_rag.agent.tool_runs import ToolRun
from sentinel_rag.contracts.tool_calls import Succeeded, ToolCall
from sentinel_rag.testing.scripted_gateway import rows_result

_ALERTS = (
    ("Sensitive credential memory read", "ana.lima@contoso.example", "srv-files.contoso.example", "192.0.2.10"),
    ("Suspicious scheduled task on one endpoint", "bo.chen@contoso.example", "ws-07.contoso.example", "192.0.2.11"),
    ("Unusual volume of data sent out", "ana.lima@contoso.example", "srv-files.contoso.example", "203.0.113.71"),
    ("Logon from an unusual device", "ana.lima@contoso.example", "dc-01.contoso.example", "203.0.113.66"),
)


def _run(tool: str, rows: list[dict[str, object]], **arguments: object) -> ToolRun:
    call = ToolCall(f"c-{tool}", "s", tool, arguments)  # type: ignore[arg-type]
    return ToolRun(call, Succeeded(call, rows_result(rows)))  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def events() -> EvidenceIndex:
    rows: list[dict[str, object]] = [
        {
            "alert_id": f"a{place}",
            "name": name,
            "severity": "High",
            "time": f"2024-07-0{place + 1}T10:00:00Z",
            "entities": [
                {"kind": "account", "name": account},
                {"kind": "host", "name": host},
                {"kind": "ip", "name": address},
            ],
        }
        for place, (name, account, host, address) in enumerate(_ALERTS)
    ]
    index = EvidenceIndex(UTC)
    index.add(_run("query_alerts", rows))
    index.add(_run("run_kql_query", [{"Account": "bo.chen@contoso.example", "Computer": "lab-01.contoso.example"}]))
    return index


@pytest.mark.requirement("GRND-1")
@pytest.mark.parametrize(
    "text",
    [
        "The credential dump happened on dc-01.contoso.example.",
        "The scheduled task was created by ana.lima@contoso.example.",
        "The data went to 203.0.113.66.",
        "The scheduled task ran on srv-files.contoso.example.",
        "The data transfer was made from ws-07.contoso.example.",
        "bo.chen@contoso.example ran PowerShell on dc-01.contoso.example.",
        "bo.chen@contoso.example signed in to the domain controller dc-01.contoso.example.",
        "ana.lima@contoso.example created a new service on ws-07.contoso.example.",
    ],
)
def test_what_no_alert_of_the_event_has_is_left_out(events: EvidenceIndex, text: str) -> None:
    assert ground(text, events, question="What happened?").text == REMOVED


@pytest.mark.requirement("GRND-1")
@pytest.mark.parametrize(
    "text",
    [
        "The credential dump happened on srv-files.contoso.example.",
        "The scheduled task was created by bo.chen@contoso.example.",
        "The data went to 203.0.113.71.",
        "The suspicious logon came from 203.0.113.66.",
        "ana.lima@contoso.example signed in to the domain controller dc-01.contoso.example.",
        # Together in a row of a log, in no alert.
        "bo.chen@contoso.example ran commands on lab-01.contoso.example.",
        "The scheduled task was seen on lab-01.contoso.example.",
    ],
)
def test_what_an_alert_or_a_row_has_stays(events: EvidenceIndex, text: str) -> None:
    assert ground(text, events, question="What happened?").text == text

"""Events of an alert through all processes: the question, the gateway's record, the guard in the tool server."""

from __future__ import annotations

from typing import Any

import pytest

ALERT = "Domain administrator logon from an unusual device"


@pytest.mark.requirement("GATE-4")
def test_the_events_behind_an_alert_of_the_sample_estate(sample: Any) -> None:
    """Field report G4: the stored query of a rule, asked for in words, run by the tool server and recorded."""
    found = sample.json("workspace", "query", f'SecurityAlert | where AlertName == "{ALERT}" | distinct SystemAlertId')
    ((alert_id,),) = found["rows"]
    answer = sample.json("ask", f"show the events behind alert {alert_id}")
    assert answer["outcome"] == "answered"
    (call,) = answer["tools"]
    assert (call["name"], call["arguments"], call["status"]) == ("get_alert_events", {"alert_id": alert_id}, "ok")
    assert call["coverage"]["tables"] == ["SecurityEvent"]
    assert call["coverage"]["rows_total"] == 1
    assert "finds 1 event." in answer["answer"]
    lines = sample.run("audit", "show", call["audit_id"], "--json").stdout.splitlines()
    assert any("get_alert_events_any" in line for line in lines), lines

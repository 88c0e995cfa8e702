"""kill -9 between the record of a call and its dispatch: the call is unknown on record, and the approval is spent."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from approval_policy import DISABLE, open_gateway
from tests.support import fork_server

from waiting import WAIT_S


@pytest.mark.requirement("APPR-2")
@pytest.mark.requirement("APPR-3")
def test_a_killed_gateway_does_not_give_the_approval_back(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    script = str(Path(__file__).with_name("dying_gateway.py"))
    done = fork_server.run([sys.executable, script, str(folder)], text=True, timeout=WAIT_S)
    assert done.returncode == -9, done.stderr
    approved, dispatched = done.stdout.splitlines()
    approval_id, key = approved.split()
    assert dispatched == "dispatch"
    with open_gateway(folder) as gateway:
        [intent] = [record for record in gateway.records() if record["kind"] == "intent"]
        [outcome] = [record for record in gateway.records() if record["kind"] == "outcome"]
        assert (intent["approval_id"], intent["audit_id"]) == (approval_id, outcome["audit_id"])
        assert outcome["status"] == "unknown"
        shown = gateway.request("GET", f"/v1/approvals/{approval_id}", key=gateway.approver).body
        assert shown["state"] == "used"
        retried = gateway.call("disable_account", DISABLE, key=key)
        assert (retried.status, retried.body["reason"]) == (403, "approval_required")
        assert retried.body["approval_id"] != approval_id
        assert gateway.executor.calls == []

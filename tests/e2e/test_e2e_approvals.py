"""A conversation that meets a rule which needs a person: it waits, is approved in another terminal, and goes on."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest
from tests.support import fork_server
from tests.support.fork_server import SENTINEL

from waiting import WAIT_S


def waiting_ids(product: Any) -> set[str]:
    listed = json.loads(product.run("approvals", "list", "--json").stdout)
    return {approval["approval_id"] for approval in listed["approvals"]}


@pytest.mark.requirement("APPR-1")
@pytest.mark.requirement("APPR-3")
def test_a_conversation_goes_on_after_another_terminal_has_approved(sample: Any) -> None:
    question = "run the template raw_signins\n"
    earlier = waiting_ids(sample)  # other tests of this home may have been denied too
    with fork_server.Process(
        [SENTINEL, "chat"],
        env=sample.environment,
        cwd=sample.home.parent,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as chat:
        assert chat.stdin is not None
        assert chat.stdout is not None
        chat.stdin.write(question)
        chat.stdin.flush()
        seen = ""
        while "\nSource: " not in seen:
            line = chat.stdout.readline()
            assert line, seen
            seen += line
        assert "Waiting for approval: run_kql_query, template `raw_signins`." in seen
        assert "waits for a yes" in seen.rpartition("\nSource: ")[2]

        (waiting_id,) = waiting_ids(sample) - earlier
        waiting = sample.json("approvals", "show", waiting_id)
        assert (waiting["tool"], waiting["arguments"], waiting["key_id"]) == (
            "run_kql_query",
            {"template": "raw_signins"},
            "agent",
        )
        done = sample.run("approvals", "approve", waiting["approval_id"][:8], "--comment", "shift lead agreed")
        assert done.returncode == 0, done.stderr
        answer, _ = chat.communicate(question, timeout=WAIT_S)
        assert "Waiting for approval" not in answer
        assert "raw_signins" in answer

    assert waiting_ids(sample) == earlier
    assert sample.json("approvals", "show", waiting["approval_id"])["state"] == "used"
    story = sample.run("audit", "show", waiting["approval_id"], "--json").stdout.splitlines()
    records = [json.loads(line)["record"] for line in story]
    assert [record["kind"] for record in records] == ["approval_asked", "approval_decided"]
    assert (records[1]["key_id"], records[1]["comment"]) == ("approver", "shift lead agreed")

"""The policy on the page about freeform KQL loads and does what the page says of it."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import pytest

from sentinel_rag.contracts.labels import Integrity, Label, Sensitivity
from sentinel_rag.contracts.tool_calls import Allow, Deny, Reason
from sentinel_rag.gateway.flow import CallFacts, judge
from sentinel_rag.gateway.policy import parse_policy
from sentinel_rag.sentinel.freeform_query import LONGEST_WINDOW, MOST_ROWS, WAIT_S
from sentinel_rag.sentinel.workspace_tables import LONGEST_EXAMPLE, ROWS_LOOKED_AT

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "freeform-kql.md").read_text()
POLICY = "tools:\n" + textwrap.indent(re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)[0], "")


@pytest.mark.requirement("TOOL-5")
def test_the_stricter_rule_asks_a_person_once_the_session_has_read_anything() -> None:
    policy = parse_policy(POLICY)
    tool = policy.tools["run_freeform_kql"]
    read = CallFacts(context=Label(Sensitivity.MEDIUM, Integrity.UNTRUSTED))
    assert isinstance(judge(policy, tool, {"kql": "SigninLogs"}, CallFacts()).decision, Allow)
    refused = judge(policy, tool, {"kql": "SigninLogs"}, read).decision
    assert isinstance(refused, Deny)
    assert refused.reason is Reason.SINK_LABEL
    assert tool.rule("freeform_by_approval").may_ask


def test_the_bounds_on_the_page_are_those_of_the_code() -> None:
    for figure in (
        f"{LONGEST_WINDOW.days} days",
        f"{MOST_ROWS:,} come back",
        f"after {WAIT_S} seconds",
        f"up to {ROWS_LOOKED_AT} of the newest rows",
        f"at most {LONGEST_EXAMPLE} characters",
    ):
        assert figure in " ".join(PAGE.split()), figure

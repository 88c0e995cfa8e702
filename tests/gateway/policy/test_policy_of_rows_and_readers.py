"""`row_labels` and `sends_readers`: read as they stand, refused for servers of other makers, told where they change."""

from __future__ import annotations

from pathlib import Path

import pytest

from sentinel_rag.contracts.errors import ConfigurationError
from sentinel_rag.gateway.policy import Policy, parse_policy
from sentinel_rag.gateway.policy_tools.replay import changed_keys

pytestmark = pytest.mark.requirement("TAINT-6")

TOOL = """tools:
  - name: find
    server: SERVER
    effect: read
    KEYS
    parameters: []
    taint_rules: [{rule_id: any, condition: "true", taint_level: LOW}]
servers: [{name: theirs, command: [run-it]}]
"""


def policy(keys: str, server: str = "knowledge") -> Policy:
    return parse_policy(TOOL.replace("SERVER", server).replace("KEYS", keys))


def test_they_are_read(shipped_policy: Policy) -> None:
    found = policy("row_labels: /a~1b/hits\n    sends_readers: true").tools["find"]
    assert (found.row_labels, found.sends_readers) == (("a/b", "hits"), True)
    assert policy('row_labels: ""').tools["find"].row_labels == ()
    plain = policy("timeout_s: 3").tools["find"]
    assert (plain.row_labels, plain.sends_readers) == (None, False)
    shipped = {name for name, tool in shipped_policy.tools.items() if tool.row_labels is not None}
    assert shipped == {name for name, tool in shipped_policy.tools.items() if tool.sends_readers}
    assert shipped == {"search_knowledge_base"}


@pytest.mark.requirement("GATE-2")
@pytest.mark.parametrize(
    ("keys", "server", "problem"),
    [
        ("row_labels: /hits", "theirs", "row_labels: no server but those of the product (sentinel, knowledge, files"),
        ("sends_readers: true", "theirs", "sends_readers: no server but those of the product"),
        ("row_labels: /hits", "undeclared", "and 'undeclared' is none"),
        ("row_labels: hits", "knowledge", "row_labels: a pointer is empty or starts with /"),
        ("row_labels: /hits/*", "knowledge", "row_labels names one list, so it holds no *"),
        ("row_labels: [/hits]", "knowledge", "row_labels must be a text, not a list"),
        ("sends_readers: 'yes'", "knowledge", "sends_readers must be true or false"),
        ("row_label: /hits", "knowledge", "unknown key 'row_label' in a tool; did you mean 'row_labels'?"),
    ],
)
def test_a_fault_is_told_with_its_line(keys: str, server: str, problem: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        policy(keys, server)
    assert len(refused.value.problems) == 1
    assert problem in refused.value.problems[0]
    assert refused.value.problems[0].startswith("policy:5: ")


def test_a_change_of_them_is_told(tmp_path: Path) -> None:
    lines = changed_keys(policy("row_labels: /hits\n    sends_readers: true"), policy("timeout_s: 3"))
    assert any(line.startswith("find.row_labels") for line in lines)
    assert any(line.startswith("find.sends_readers") for line in lines)

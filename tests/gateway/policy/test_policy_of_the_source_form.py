"""A policy that says of a file or web tool nothing but its rules, as the source template writes them."""

from __future__ import annotations

from pathlib import Path

import pytest

from sentinel_rag.contracts.errors import ConfigurationError
from sentinel_rag.contracts.tool_calls import ToolSchema
from sentinel_rag.gateway.policy import Policy, parse_policy
from sentinel_rag.gateway.policy.flow_section import OWN_TOOLS
from sentinel_rag_testing.fake_tool_server import FakeToolServer
from sentinel_rag_testing.running_gateway import running_gateway

pytestmark = pytest.mark.requirement("GATE-8")
RULES = """
tools:
  - name: file_read
    taint_rules:
      - rule_id: secret
        condition: "file_path.startswith('confidential/')"
        taint_level: HIGH
        requires_approval: true
      - {rule_id: rest, condition: "true", taint_level: LOW}
"""


def test_what_is_left_out_is_what_the_shipped_policy_says(shipped_policy: Policy) -> None:
    for name, own in OWN_TOOLS.items():
        shipped = shipped_policy.tools[name]
        assert own.server == shipped.server
        told = {each.name: (each.type, each.required, each.format) for each in own.parameters.values()}
        assert told == {each.name: (each.type, each.required, each.format) for each in shipped.parameters.values()}


def test_a_rule_is_not_walked_around_by_another_spelling(tmp_path: Path) -> None:
    """The attacker controls the path: as it was sent, `./confidential/x` begins with no forbidden text."""
    policy = parse_policy(RULES)
    served = ToolSchema(
        "file_read", "", {"type": "object", "properties": {n: {} for n in policy.tools["file_read"].parameters}}
    )
    with FakeToolServer([served]).running() as executor, running_gateway(policy, tmp_path, executor) as gateway:
        for path in ("confidential/x", "./confidential/x", "confidential//x", "public/../confidential/./x"):
            answer = gateway.call("file_read", {"file_path": path})
            assert (answer.status, answer.body["rule_id"]) == (403, "secret")
        assert gateway.call("file_read", {"file_path": "/confidential/x"}).status == 422
        assert executor.calls == []
        assert gateway.call("file_read", {"file_path": "public/x", "shell": "rm"}).status == 422
        assert gateway.call("file_read", {"file_path": "public/x"}).status == 200


@pytest.mark.parametrize("said", ["parameters: []", "server: elsewhere", "parameters: []\n    server: files"])
def test_who_says_more_says_all(said: str) -> None:
    """An empty list takes no argument, and a tool of another server is not ours to know."""
    with pytest.raises(ConfigurationError) as refused:
        parse_policy(RULES.replace("name: file_read\n", f"name: file_read\n    {said}\n"))
    assert "unknown parameter 'file_path'" in str(refused.value.problems)


def test_a_tool_of_another_name_still_has_to_name_its_parameters() -> None:
    with pytest.raises(ConfigurationError) as refused:
        parse_policy(RULES.replace("name: file_read", "name: read_file"))
    assert "file_path" in str(refused.value.problems)


def test_what_no_rule_speaks_about_has_no_default() -> None:
    tool = parse_policy(RULES).tools["file_read"]
    assert (tool.effect.value, tool.accepts, tool.approvers) == ("external", None, ())

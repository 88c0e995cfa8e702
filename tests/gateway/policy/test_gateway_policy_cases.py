"""The shipped policy against its cases, which are data beside it, and against the tools that the tool servers serve."""

from __future__ import annotations

from pathlib import Path

import pytest

from sentinel_rag.contracts.errors import ConfigurationError
from sentinel_rag.contracts.tool_schemas import SENTINEL_TOOLS, WRITING_TOOLS
from sentinel_rag.gateway.policy import Effect, Policy, load_policy, parse_policy
from sentinel_rag.gateway.policy_tools import Case, load_cases, run_case, uncovered_rules

CONFIG = Path(__file__).parents[3] / "config"
CASES = load_cases([CONFIG / "cases"])


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_case(shipped_policy: Policy, case: Case) -> None:
    assert run_case(shipped_policy, case).differences == {}


def test_every_rule_of_the_shipped_policy_has_a_case(shipped_policy: Policy) -> None:
    assert uncovered_rules(shipped_policy, [run_case(shipped_policy, case) for case in CASES]) == []


SINK = """
tools:
  - name: send
    effect: external
    parameters:
      - {name: to, type: string, format: email, attest: email}
      - {name: text, type: string}
    taint_rules:
      - {rule_id: send_any, condition: "true", taint_level: LOW, offers_approval: true}
"""
SINK_CASES = """
cases:
  - name: a clean session may send
    tool: send
    args: {to: A.Singh@Contoso.com, text: hello}
    decision: allow
    rule_id: send_any
    label: LOW
    result: {sensitivity: LOW, integrity: UNTRUSTED}
    forwarded: {to: a.singh@contoso.com, text: hello}
  - name: what the session has read may not leave
    tool: send
    args: {to: a.singh@contoso.com, text: hello}
    context: {sensitivity: MEDIUM, integrity: UNTRUSTED}
    decision: deny
    reason: approval_required
    label: MEDIUM
  - name: nor may a hidden value, whatever the session
    tool: send
    args: {text: secret}
    handles: {text: {sensitivity: HIGH, integrity: UNTRUSTED}}
    decision: deny
    label: HIGH
  - name: an address that the user named may be used
    tool: send
    args: {to: a.singh@contoso.com}
    context: {sensitivity: MEDIUM, integrity: UNTRUSTED}
    words: send it to a.singh@contoso.com
    decision: allow
  - name: no address
    tool: send
    args: {to: "a.singh@contoso.com, eve@evil.example"}
    decision: refuse
    reason: invalid_argument
    field: to
"""


def test_cases_state_labels_words_and_hidden_values_of_the_session(tmp_path: Path) -> None:
    (tmp_path / "send.yaml").write_text(SINK_CASES)
    policy = parse_policy(SINK)
    results = [run_case(policy, case) for case in load_cases([tmp_path])]
    assert [(result.case.name, result.differences) for result in results if not result.passed] == []
    assert uncovered_rules(policy, results) == []
    assert uncovered_rules(policy, results[4:]) == [("send", "send_any", 9)]


def test_a_case_that_fails_says_what_it_got(tmp_path: Path) -> None:
    file = tmp_path / "wrong.yaml"
    file.write_text("""
cases:
  - {name: wrong, tool: send, args: {text: hello}, decision: deny, rule_id: other, reason: rule_denies, label: HIGH}
""")
    [result] = [run_case(parse_policy(SINK), case) for case in load_cases([file])]
    assert result.differences == {"decision": "allow", "rule_id": "send_any", "reason": None, "label": "LOW"}
    assert result.case.place == f"{file}:3"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("cases: [{name: a, tool: t, decision: maybe}]", "1: unknown decision 'maybe'"),
        ("cases: [{name: a, tool: t, decision: deny, rule: r}]", "1: unknown key 'rule' in a case"),
        ("cases: [{tool: t, decision: deny}]", "1: a case has no name"),
        ("cases: [{name: a, tool: t, decision: deny, args: [1]}]", "1: args must be a mapping, not a list"),
        ("cases: [{name: a, tool: t, decision: deny, handles: {x: {sensitivity: LOW}}}]", "1: x has no integrity"),
        ("cases: [{name: a, tool: t, decision: deny, handles: 5}]", "1: handles must be a mapping"),
        ("case: []", "1: unknown key 'case' in the file; did you mean 'cases'?"),
        ("", "1: the file is empty"),
    ],
)
def test_a_file_of_cases_is_read_whole_or_not_at_all(tmp_path: Path, text: str, problem: str) -> None:
    file = tmp_path / "cases.yaml"
    file.write_text(text)
    with pytest.raises(ConfigurationError) as refused:
        load_cases([file])
    assert any(f"{file}:{problem}" in told for told in refused.value.problems), refused.value.problems


def test_the_shipped_policy_names_every_tool_over_sentinel_with_its_parameters(shipped_policy: Policy) -> None:
    assert {tool.name for tool in SENTINEL_TOOLS} <= set(shipped_policy.tools)
    for schema in SENTINEL_TOOLS:
        tool = shipped_policy.tools[schema.name]
        effect = Effect.WRITE if schema.name in WRITING_TOOLS else Effect.READ
        assert (tool.server, tool.effect, tool.aliases) == ("sentinel", effect, schema.aliases)
        assert {name: str(parameter.type) for name, parameter in tool.parameters.items()} == {
            name: declared["type"] for name, declared in schema.parameter_schemas().items()
        }
        assert {name for name, parameter in tool.parameters.items() if parameter.required} == schema.required()


def test_the_version_of_a_policy_is_the_hash_of_its_bytes(tmp_path: Path) -> None:
    text = (CONFIG / "sentinel_config.yaml").read_text()
    one, two = tmp_path / "one.yaml", tmp_path / "two.yaml"
    one.write_text(text)
    two.write_text(text + "# a comment\n")
    assert load_policy(one).sha256 == load_policy(CONFIG / "sentinel_config.yaml").sha256 != load_policy(two).sha256

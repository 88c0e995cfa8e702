"""Values that an endorsement derives from a record which the user named."""

from __future__ import annotations

from typing import Any

import pytest

from sentinel_rag.contracts.errors import ConfigurationError
from sentinel_rag.contracts.labels import BOTTOM, TOP
from sentinel_rag.gateway.flow.endorsement import MAX_DERIVED, endorsed_values
from sentinel_rag.gateway.flow.judging import CallFacts, judge
from sentinel_rag.gateway.flow.named_values import NamedValue
from sentinel_rag.gateway.policy import parse_policy
from sentinel_rag.gateway.policy.model import ValueKind

TEXT = """
tools:
  - name: read_incident
    effect: read
    parameters: [{name: incident, type: string, attest: incident}, {name: other, type: string, attest: incident}]
    taint_rules: [{rule_id: any, condition: "true", taint_level: LOW}]
  - name: read_alert
    effect: read
    parameters: [{name: incident, type: string, attest: incident}]
    taint_rules: [{rule_id: any2, condition: "true", taint_level: LOW}]
"""
RULES = """endorsement:
  - {name: hosts, tool: read_incident, parameter: incident, path: /entities/*/host, kind: host}
  - {name: first, tool: read_incident, parameter: incident, path: /entities/0/user, kind: account}
  - {name: alert, tool: read_alert, parameter: incident, path: /host, kind: host}
"""
POLICY = parse_policy(TEXT + RULES)
NAMED = {NamedValue(ValueKind.INCIDENT, "7"): "user", NamedValue(ValueKind.INCIDENT, "8"): "hosts"}


def hosts(*names: str) -> frozenset[NamedValue]:
    return frozenset(NamedValue(ValueKind.HOST, name) for name in names)


def derived(value: Any, tool: str = "read_incident", policy: Any = POLICY, **arguments: Any) -> dict[str, Any]:
    arguments = arguments or {"incident": "7"}
    judgement = judge(policy, policy.tools[tool], arguments, CallFacts(context=TOP, named=NAMED))
    return dict(endorsed_values(policy, policy.tools[tool], judgement, value, NAMED))


@pytest.mark.requirement("TAINT-5")
def test_each_rule_takes_its_own_part() -> None:
    value = {
        "entities": [{"host": "WS-1", "user": "jdoe"}, {"host": "ws-2", "user": "admin"}, {"x": 1}, 5],
        "host": "h",
    }
    assert derived(value) == {
        "hosts": hosts("ws-1", "ws-2"),
        "first": frozenset({NamedValue(ValueKind.ACCOUNT, "jdoe")}),
    }
    assert derived({"host": "H-1"}, "read_alert") == {"alert": hosts("h-1")}
    assert derived({"entities": {"a": {"host": "x-1"}, "b": {"host": "x-2"}}})["hosts"] == hosts("x-1", "x-2")


@pytest.mark.requirement("TAINT-5")
@pytest.mark.parametrize("arguments", [{"incident": "9"}, {"incident": "8"}, {"other": "7"}])
def test_only_a_record_that_the_users_own_words_named_counts(arguments: dict[str, str]) -> None:
    assert derived({"entities": [{"host": "ws-1"}]}, **arguments) == {}


@pytest.mark.parametrize(
    "value",
    [{}, [], "text", None, {"entities": "x"}, {"entities": []}, {"entities": [{"host": None}, {"host": ["a"]}]}],
)
def test_a_record_without_such_parts_names_nothing(value: Any) -> None:
    assert derived(value) == {}


def test_a_record_with_very_many_names_nothing() -> None:
    many = {"entities": [{"host": f"ws-{number}"} for number in range(MAX_DERIVED)]}
    assert len(derived(many)["hosts"]) == MAX_DERIVED
    many["entities"].append({"host": "one-more"})
    assert "hosts" not in derived(many)


def test_a_policy_without_endorsements_derives_nothing() -> None:
    assert derived({"host": "h"}, "read_alert", parse_policy(TEXT)) == {}
    assert BOTTOM.flows_to(TOP)


@pytest.mark.requirement("TAINT-5")
def test_with_most_a_session_has_no_more_values_by_a_rule_so_that_few_can_be_ordered() -> None:
    """Twenty-six addresses that a stranger posts would be an alphabet."""
    policy = parse_policy(
        TEXT + RULES.replace("/entities/*/host, kind: host}", "/entities/*/host, kind: host, most: 3}")
    )
    mine = {NamedValue(ValueKind.INCIDENT, "7"): "user"}
    tool = policy.tools["read_incident"]

    def named_by(value: Any, named: dict[NamedValue, str]) -> frozenset[NamedValue]:
        judgement = judge(policy, tool, {"incident": "7"}, CallFacts(context=TOP, named=named))
        return endorsed_values(policy, tool, judgement, value, named).get("hosts", frozenset())

    def record(*names: str) -> dict[str, Any]:
        return {"entities": [{"host": name} for name in names]}

    assert named_by(record("a-1", "b-1", "c-1"), mine) == hosts("a-1", "b-1", "c-1")
    assert named_by(record("a-1", "b-1", "c-1", "d-1"), mine) == frozenset()
    later = {**mine, **dict.fromkeys(hosts("a-1", "b-1"), "hosts")}
    assert named_by(record("b-1", "c-1"), later) == hosts("b-1", "c-1")
    assert named_by(record("c-1", "d-1"), later) == frozenset()
    with pytest.raises(ConfigurationError, match="not loaded"):
        parse_policy(TEXT + RULES.replace("kind: account}", "kind: account, most: 1.5}"))

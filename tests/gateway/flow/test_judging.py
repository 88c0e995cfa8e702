"""The judgement of one call, as a function of policy, arguments and facts."""

from __future__ import annotations

from typing import Any

import pytest

from sentinel_rag.contracts.labels import BOTTOM, TOP, Integrity, Label, Sensitivity
from sentinel_rag.contracts.tool_calls import Allow, Deny, Reason
from sentinel_rag.gateway.flow.judging import (
    CallFacts,
    Judgement,
    LabelledArgument,
    LabelSource,
    Violation,
    facts_of,
    flow_record,
    judge,
)
from sentinel_rag.gateway.flow.named_values import NamedValue
from sentinel_rag.gateway.flow.view import HandleReference
from sentinel_rag.gateway.policy import parse_policy
from sentinel_rag.gateway.policy.model import ValueKind

POLICY = parse_policy("""
tools:
  - name: read
    effect: read
    parameters: [{name: text, type: string}, {name: host, type: string, attest: host}]
    output_labels: [{path: /rows, sensitivity: MEDIUM, integrity: TRUSTED}]
    taint_rules:
      - {rule_id: read_secret, condition: "text == 'secret'", taint_level: HIGH}
      - {rule_id: read_any, condition: "true", taint_level: LOW}
  - name: write
    effect: write
    parameters:
      - {name: text, type: string, accepts: {sensitivity: HIGH, integrity: UNTRUSTED}}
      - {name: host, type: string, attest: host}
      - {name: address, type: string, format: url, accepts: {sensitivity: HIGH, integrity: UNTRUSTED}}
    taint_rules: [{rule_id: write_any, condition: "true", taint_level: MEDIUM}]
  - name: send
    effect: external
    parameters: [{name: text, type: string}, {name: indicator, type: string}, {name: host, type: string, attest: host}]
    taint_rules: [{rule_id: send_any, condition: "true", taint_level: LOW}]
  - name: refuse
    effect: external
    parameters: [{name: text, type: string}]
    taint_rules: [{rule_id: refuse_all, condition: "has(text)", taint_level: MEDIUM, deny: true}]
declassification:
  - {name: hashes, tool: send, parameter: indicator, form: hash, max_length: 64,
     to: {sensitivity: LOW, integrity: UNTRUSTED}}
  - {name: addresses, tool: send, parameter: indicator, form: public_ip, max_length: 12,
     to: {sensitivity: LOW, integrity: TRUSTED}}
link_hosts: [learn.microsoft.com]
""")
MEDIUM, SECRET = Label(Sensitivity.MEDIUM), Label(Sensitivity.HIGH)
UNTRUSTED = Label(integrity=Integrity.UNTRUSTED)
HOST = NamedValue(ValueKind.HOST, "ws-1")
MD5 = "d41d8cd98f00b204e9800998ecf8427e"


def judged(tool: str, arguments: dict[str, Any], **facts: Any) -> Judgement:
    return judge(POLICY, POLICY.tools[tool], arguments, CallFacts(**facts))


@pytest.mark.requirement("TAINT-1")
def test_a_literal_carries_the_context_whatever_it_says() -> None:
    found = judged("read", {"text": "x"}, context=SECRET)
    assert found == Judgement(
        decision=Allow("read_any", BOTTOM),
        arguments=(LabelledArgument("text", SECRET, LabelSource.LITERAL),),
        violations=(),
        base=SECRET,
        revealed=SECRET.join(UNTRUSTED),
    )
    assert found.lowered == ()


@pytest.mark.requirement("TAINT-1")
def test_the_rule_the_arguments_and_the_resources_share_the_result() -> None:
    assert judged("read", {"text": "secret"}).base == SECRET
    assert judged("read", {"text": "x"}, resources=UNTRUSTED).base == UNTRUSTED
    assert judged("read", {"text": "x"}, handles={"text": MEDIUM}).base == MEDIUM
    assert judged("read", {"text": "x"}).revealed == MEDIUM.join(UNTRUSTED)  # what the fields declare
    assert judged("read", {"text": "secret"}).revealed == TOP


def test_a_handle_carries_its_label_joined_with_the_context() -> None:
    [argument] = judged("read", {"text": "x"}, context=UNTRUSTED, handles={"text": SECRET}).arguments
    assert argument == LabelledArgument("text", TOP, LabelSource.HANDLE)


@pytest.mark.requirement("TAINT-5")
def test_a_named_value_carries_the_users_label_in_a_parameter_that_attests_its_kind() -> None:
    found = judged("read", {"text": "ws-1", "host": "WS-1."}, context=TOP, named={HOST: "participants"})
    assert found.arguments == (
        LabelledArgument("text", TOP, LabelSource.LITERAL),
        LabelledArgument("host", BOTTOM, LabelSource.NAMED, "participants"),
    )
    assert found.lowered == (found.arguments[1],)
    for other in ("ws-2", "", 5):
        [argument] = judged("read", {"host": other}, context=TOP, named={HOST: "user"}).arguments
        assert argument == LabelledArgument("host", TOP, LabelSource.LITERAL)
    [argument] = judged("read", {"host": "ws-1"}, context=BOTTOM, handles={"host": TOP}, named={HOST: "user"}).arguments
    assert argument == LabelledArgument("host", TOP, LabelSource.HANDLE)


@pytest.mark.requirement("TAINT-4")
def test_what_a_place_does_not_accept_is_denied_with_all_that_is_too_high() -> None:
    found = judged("send", {"text": "a", "indicator": "b"}, context=MEDIUM, handles={"indicator": TOP})
    assert found.violations == (Violation("text", MEDIUM, UNTRUSTED), Violation("indicator", TOP, UNTRUSTED))
    assert found.decision == Deny(Reason.SINK_LABEL, TOP, "send_any")
    assert judged("send", {"text": "a"}, context=UNTRUSTED).decision == Allow("send_any", BOTTOM)
    assert judged("write", {"text": "a"}, context=TOP).decision == Allow("write_any", MEDIUM)
    assert judged("write", {"host": "a"}, context=SECRET).decision == Allow("write_any", MEDIUM)
    assert judged("write", {"host": "a"}, context=UNTRUSTED).violations == (Violation("host", UNTRUSTED, SECRET),)


def test_a_call_without_arguments_says_that_it_was_made() -> None:
    found = judged("send", {}, context=SECRET)
    assert found.violations == (Violation("", SECRET, UNTRUSTED),)
    assert found.decision == Deny(Reason.SINK_LABEL, SECRET, "send_any")
    assert judged("send", {}, context=UNTRUSTED).violations == ()


def test_a_rule_that_denies_stays_the_reason() -> None:
    found = judged("refuse", {"text": "x"}, context=TOP)
    assert found.decision == Deny(Reason.RULE_DENIES, MEDIUM, "refuse_all")
    assert found.violations == (Violation("text", TOP, UNTRUSTED),)
    assert judged("refuse", {}).decision == Deny(Reason.NO_RULE_MATCHED, TOP)
    assert judged("refuse", {}).base == TOP


def test_a_declassification_lowers_what_has_its_form_and_length_where_it_must() -> None:
    found = judged("send", {"indicator": MD5}, context=TOP)
    assert found.arguments == (LabelledArgument("indicator", UNTRUSTED, LabelSource.DECLASSIFIED, "hashes"),)
    assert found.lowered == found.arguments
    assert isinstance(found.decision, Allow)
    assert judged("send", {"indicator": "8.8.8.8"}, context=TOP).arguments[0].by == "addresses"
    assert judged("send", {"indicator": "128.101.101.101"}, context=TOP).decision == Deny(
        Reason.SINK_LABEL, TOP, "send_any"
    )
    assert judged("send", {"indicator": "12.101.101.8"}, context=TOP).arguments[0].by == "addresses"
    assert judged("send", {"text": MD5}, context=TOP).arguments[0].source is LabelSource.LITERAL
    kept = judged("send", {"indicator": MD5}, context=UNTRUSTED)
    assert kept.arguments[0].source is LabelSource.LITERAL


@pytest.mark.requirement("TAINT-4")
def test_a_link_to_a_foreign_host_makes_a_place_stricter() -> None:
    link = {"text": "see https://evil.example/x"}
    assert judged("write", link, context=UNTRUSTED).violations == (Violation("text", UNTRUSTED, BOTTOM, link=True),)
    assert judged("write", link, context=SECRET).violations == (Violation("text", SECRET, BOTTOM, link=True),)
    assert judged("write", link, context=BOTTOM).violations == ()
    assert judged("read", {"text": "https://evil.example"}, context=TOP).violations == ()
    assert judged("send", link, context=UNTRUSTED).violations == ()  # it may go there anyway


def test_a_link_that_policy_or_user_knows_is_none_of_a_stranger() -> None:
    known = {"text": "https://docs.learn.microsoft.com/a"}
    assert judged("write", known, context=SECRET).violations == ()
    named = {NamedValue(ValueKind.HOST, "evil.example"): "user"}
    assert judged("write", {"text": "https://evil.example/"}, context=SECRET, named=named).violations == ()
    both = {"text": "https://learn.microsoft.com https://evil.example"}
    assert judged("write", both, context=SECRET).violations != ()


def test_an_address_by_its_format_is_judged_by_what_it_accepts() -> None:
    found = judged("write", {"address": "https://evil.example/"}, context=SECRET)
    assert found.violations == ()


FACTS = [
    ("read", {"text": "x"}, CallFacts(context=SECRET)),
    ("read", {"text": "x", "host": "ws-1"}, CallFacts(context=TOP, named={HOST: "user"}, resources=MEDIUM)),
    ("read", {"text": "x"}, CallFacts(handles={"text": MEDIUM})),
    ("send", {"text": "x", "indicator": MD5}, CallFacts(context=TOP)),
    ("write", {"text": "https://evil.example"}, CallFacts(context=UNTRUSTED, handles={"text": SECRET})),
]


@pytest.mark.requirement("AUD-4")
@pytest.mark.parametrize(("tool", "arguments", "facts"), FACTS)
def test_a_record_tells_the_facts_again(tool: str, arguments: dict[str, Any], facts: CallFacts) -> None:
    policy = POLICY.tools[tool]
    first = judge(POLICY, policy, arguments, facts)
    flow = flow_record(first, facts, {})
    record = {"context_before": facts.context.to_dict(), "flow": flow}
    assert facts_of(record) == facts
    assert judge(POLICY, policy, arguments, facts_of(record)) == first


def test_a_call_of_literals_leaves_no_flow_and_others_leave_all_of_it() -> None:
    read, send, write = (POLICY.tools[name] for name in ("read", "send", "write"))
    plain: dict[str, Any] = {"text": "x"}
    facts = CallFacts(context=SECRET)
    assert flow_record(judge(POLICY, read, plain, facts), facts, {}) is None
    assert facts_of({"context_before": SECRET.to_dict()}) == facts

    facts = CallFacts(context=TOP, handles={"text": SECRET}, named={HOST: "participants"}, resources=MEDIUM)
    arguments = {"text": "x", "host": "WS-1"}
    found = flow_record(judge(POLICY, read, arguments, facts), facts, {"text": (HandleReference(3, ("rows", "0")),)})
    assert found == {
        "handles": {"text": {"handles": ["r3#/rows/0"], "label": SECRET.to_dict()}},
        "named": [{"parameter": "host", "kind": "host", "text": "ws-1", "by": "participants"}],
        "resources": MEDIUM.to_dict(),
    }
    facts, arguments = CallFacts(context=TOP), {"indicator": MD5, "text": "y"}
    assert flow_record(judge(POLICY, send, arguments, facts), facts, {}) == {
        "declassified": [{"parameter": "indicator", "rule": "hashes", "to": UNTRUSTED.to_dict()}],
        "violations": [{"parameter": "text", "label": TOP.to_dict(), "accepts": UNTRUSTED.to_dict(), "link": False}],
    }
    facts, arguments = CallFacts(context=TOP, named={HOST: "user"}), {"indicator": MD5, "host": "ws-1"}
    assert flow_record(judge(POLICY, send, arguments, facts), facts, {}) == {
        "named": [{"parameter": "host", "kind": "host", "text": "ws-1", "by": "user"}],
        "declassified": [{"parameter": "indicator", "rule": "hashes", "to": UNTRUSTED.to_dict()}],
    }
    facts, arguments = CallFacts(context=TOP), {"text": "https://evil.example"}
    assert flow_record(judge(POLICY, write, arguments, facts), facts, {}) == {
        "violations": [{"parameter": "text", "label": TOP.to_dict(), "accepts": BOTTOM.to_dict(), "link": True}]
    }


@pytest.mark.parametrize(
    "record",
    [
        {},
        {"context_before": {"sensitivity": "LOW"}},
        {"context_before": BOTTOM.to_dict(), "flow": {"handles": {"text": {}}}},
        {"context_before": BOTTOM.to_dict(), "flow": {"named": [{"kind": "host", "by": "user"}]}},
    ],
)
def test_what_is_no_such_record_is_refused(record: dict[str, Any]) -> None:
    with pytest.raises((KeyError, ValueError)):
        facts_of(record)

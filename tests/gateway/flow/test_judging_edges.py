"""The judgement of a call where one sign of the code decides: whose ceiling, who named it, which exception is taken."""

from __future__ import annotations

from typing import Any

import pytest

from sentinel_rag.contracts.labels import BOTTOM, TOP, Integrity, Label, Sensitivity
from sentinel_rag.contracts.tool_calls import Allow
from sentinel_rag.gateway.flow.judging import (
    CallFacts,
    Judgement,
    LabelledArgument,
    LabelSource,
    facts_of,
    flow_record,
    judge,
)
from sentinel_rag.gateway.flow.named_values import NamedValue
from sentinel_rag.gateway.flow.plans import PLAN, chosen, read_plan
from sentinel_rag.gateway.flow.view import NO_ROWS, row_labels_of
from sentinel_rag.gateway.policy import parse_policy

pytestmark = pytest.mark.requirement("TAINT-4")

POLICY = parse_policy("""
tools:
  - name: list
    effect: read
    parameters: [{name: folder, type: string}]
    taint_rules: [{rule_id: list_any, condition: "true", taint_level: LOW}]
  - name: send
    effect: external
    parameters:
      - {name: indicator, type: string, accepts: {sensitivity: HIGH, integrity: UNTRUSTED}}
      - {name: host, type: string, attest: [ip, host]}
      - {name: hosts, type: array, items: string, attest: host}
      - {name: text, type: string}
    taint_rules:
      - {rule_id: to_the_world, condition: "text == 'world'", taint_level: LOW,
         accepts: {indicator: {sensitivity: LOW, integrity: UNTRUSTED}}}
      - {rule_id: to_us, condition: "true", taint_level: LOW}
  - name: post
    effect: external
    named_limit: 1
    parameters:
      - {name: host, type: string, attest: host, accepts: {sensitivity: HIGH, integrity: UNTRUSTED}}
      - {name: to, type: string, accepts: {sensitivity: HIGH, integrity: UNTRUSTED}}
    taint_rules:
      - {rule_id: post_to_the_world, condition: "to == 'world'", taint_level: LOW,
         accepts: {host: {sensitivity: LOW, integrity: TRUSTED}}}
      - {rule_id: post_to_us, condition: "true", taint_level: LOW}
declassification:
  - {name: hashes, tool: send, parameter: indicator, form: hash, to: {sensitivity: LOW, integrity: UNTRUSTED}}
""")
SECRET, UNTRUSTED = Label(Sensitivity.HIGH), Label(integrity=Integrity.UNTRUSTED)
MD5 = "d41d8cd98f00b204e9800998ecf8427e"
OWN, DERIVED = NamedValue("host", "ws-1"), NamedValue("host", "ws-2")
BOTH = {OWN: "user", DERIVED: "participants"}


def judged(tool: str, arguments: dict[str, Any], **facts: Any) -> Judgement:
    return judge(POLICY, POLICY.tools[tool], arguments, CallFacts(**facts))


def test_a_declassification_is_taken_where_the_rule_that_decides_accepts_less() -> None:
    public = judged("send", {"indicator": MD5, "text": "world"}, handles={"indicator": SECRET})
    assert public.arguments[0] == LabelledArgument("indicator", UNTRUSTED, LabelSource.DECLASSIFIED, "hashes")
    assert public.decision == Allow("to_the_world", BOTTOM)
    ours = judged("send", {"indicator": MD5, "text": "us"}, handles={"indicator": SECRET})
    assert ours.arguments[0] == LabelledArgument("indicator", SECRET, LabelSource.HANDLE)


@pytest.mark.requirement("TAINT-5")
def test_a_named_value_is_counted_where_the_rule_that_decides_accepts_less() -> None:
    ours = judged("post", {"host": "ws-1", "to": "us"}, context=TOP, named=BOTH)
    assert (isinstance(ours.decision, Allow), ours.passes) == (True, ())
    clean = judged("post", {"host": "ws-1", "to": "world"}, named=BOTH)
    assert (isinstance(clean.decision, Allow), clean.passes) == (True, ()), "what needs no name uses none up"
    first = judged("post", {"host": "ws-1", "to": "world"}, context=TOP, named=BOTH)
    assert (isinstance(first.decision, Allow), len(first.passes)) == (True, 1)
    spent = {**BOTH, **dict.fromkeys(first.passes, "passed")}
    second = judged("post", {"host": "ws-1", "to": "world"}, context=TOP, named=spent)
    assert [violation.parameter for violation in second.violations] == ["host"]
    again = judged("post", {"host": "ws-1", "to": "us"}, context=TOP, named=spent)
    assert isinstance(again.decision, Allow)


@pytest.mark.requirement("TAINT-5")
@pytest.mark.parametrize(
    ("hosts", "label", "by"),
    [
        (["ws-1"], BOTTOM, "user"),
        (["ws-1", "ws-2"], BOTTOM, "participants"),
        (["ws-2", "ws-1"], BOTTOM, "participants"),
        (["ws-1", "ws-3"], TOP, ""),
        (["ws-1", "ws-1"], SECRET, "user"),
    ],
)
def test_a_list_is_named_by_the_endorsement_that_names_one_of_it(hosts: list[str], label: Label, by: str) -> None:
    """Else an endorsement would endorse something further: what it derived would count as the user's own."""
    [argument] = judged("send", {"hosts": hosts}, context=TOP, named=BOTH).arguments
    assert (argument.label, argument.by) == (label, by)


@pytest.mark.requirement("TAINT-5")
def test_a_value_is_named_by_any_kind_that_its_parameter_attests() -> None:
    [argument] = judged("send", {"host": "ws-1"}, context=TOP, named=BOTH).arguments
    assert (argument.label, argument.source) == (BOTTOM, LabelSource.NAMED)


def test_what_stands_in_a_plan_is_the_persons_before_it_is_an_endorsements() -> None:
    plan = dict.fromkeys(read_plan([{"tool": "send", "args": {"host": "ws-2"}}], POLICY), PLAN)
    [argument] = judged("send", {"host": "ws-2"}, context=TOP, named={**BOTH, **plan}).arguments
    assert (argument.label, argument.by) == (BOTTOM, PLAN)


@pytest.mark.requirement("TAINT-5")
def test_a_step_of_a_plan_passes_once_as_a_step_and_counts_for_no_named_value() -> None:
    arguments = {"host": "ws-3", "to": "world"}
    plan = dict.fromkeys(read_plan([{"tool": "post", "args": arguments}], POLICY), PLAN)
    found = judged("post", arguments, context=TOP, named=plan)
    assert (isinstance(found.decision, Allow), found.arguments[0].by, found.passes) == (True, PLAN, ())


def test_what_a_slot_chose_is_more_open_where_an_endorsement_names_it_too() -> None:
    slot = {"$slot": {"of": 0, "rows": "", "only": True}}
    steps = [{"tool": "list", "args": {"folder": "x"}}, {"tool": "send", "args": {"host": slot}}]
    plan: dict[NamedValue, str] = dict.fromkeys(read_plan(steps, POLICY), PLAN)
    first = judged("list", {"folder": "x"}, named=plan).step
    assert first is not None
    plan |= dict.fromkeys(chosen(first, ["ws-2"], plan), PLAN)
    [alone] = judged("send", {"host": "ws-2"}, context=TOP, named=plan).arguments
    assert (alone.label, alone.by) == (SECRET, PLAN)
    [named] = judged("send", {"host": "ws-2"}, context=TOP, named={**plan, **BOTH}).arguments
    assert (named.label, named.by) == (BOTTOM, "participants")


@pytest.mark.requirement("AUD-4")
@pytest.mark.parametrize(
    ("context", "memory", "told"),
    [
        (BOTTOM, SECRET, SECRET.to_dict()),
        (UNTRUSTED, SECRET, SECRET.to_dict()),
        (TOP, SECRET, None),
        (BOTTOM, BOTTOM, None),
    ],
)
def test_a_record_tells_what_the_agent_remembers_beyond_its_session(
    context: Label, memory: Label, told: dict[str, str] | None
) -> None:
    facts = CallFacts(context=context, memory=memory)
    first = judge(POLICY, POLICY.tools["send"], {"text": "x"}, facts)
    flow = flow_record(first, facts, {})
    assert (flow or {}).get("memory") == told
    again = facts_of({"context_before": context.to_dict(), "flow": flow})
    assert again.seen == facts.seen
    assert judge(POLICY, POLICY.tools["send"], {"text": "x"}, again) == first


@pytest.mark.requirement("TAINT-6")
@pytest.mark.parametrize(
    ("path", "label"),
    [
        ((), TOP),
        (("hits",), TOP),
        (("hits", "0"), SECRET),
        (("hits", "1", "text"), UNTRUSTED),
        (("total",), BOTTOM),
        (("total", "0"), BOTTOM),
    ],
)
def test_a_place_of_a_result_carries_the_labels_of_the_rows_that_it_holds(path: tuple[str, ...], label: Label) -> None:
    rows = row_labels_of(("hits",), {"hits": [{"text": "a"}, {"text": "b"}], "total": 2}, (SECRET, UNTRUSTED))
    assert rows.label_at(path) == label
    assert NO_ROWS.label_at(path) == BOTTOM

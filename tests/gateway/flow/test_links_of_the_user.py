"""Links to what the user named: which addresses are theirs in which spelling, and what the record says of it."""

from __future__ import annotations

from typing import Any

import pytest

from sentinel_rag.contracts.labels import BOTTOM, TOP, Integrity, Label
from sentinel_rag.gateway.flow.judging import CallFacts, Judgement, facts_of, flow_record, judge
from sentinel_rag.gateway.flow.named_values import NamedValue, named_in
from sentinel_rag.gateway.policy import parse_policy

pytestmark = pytest.mark.requirement("TAINT-4")

POLICY = parse_policy("""
tools:
  - name: write
    effect: write
    parameters:
      - {name: text, type: string, accepts: {sensitivity: HIGH, integrity: UNTRUSTED}}
      - {name: address, type: string, attest: url}
      - {name: body, type: string, attest: quoted, accepts: {sensitivity: HIGH, integrity: UNTRUSTED}}
    taint_rules: [{rule_id: write_any, condition: "true", taint_level: LOW}]
  - name: read
    effect: read
    parameters: [{name: text, type: string}]
    taint_rules: [{rule_id: read_any, condition: "true", taint_level: LOW}]
link_hosts: [learn.microsoft.com]
""")
PAGE, FRONT = NamedValue("url", "https://a.example/x"), NamedValue("url", "https://a.example/")
WWW = NamedValue("url", "https://www.a.example/x")
HOST, KNOWN = NamedValue("host", "a.example"), NamedValue("url", "https://learn.microsoft.com/a")


def judged(tool: str, arguments: dict[str, Any], **facts: Any) -> Judgement:
    return judge(POLICY, POLICY.tools[tool], arguments, CallFacts(**{"context": TOP, **facts}))


@pytest.mark.parametrize(
    ("said", "by", "text", "passes"),
    [
        (PAGE, "user", "see https://a.example/x", True),
        (PAGE, "user", "see www.b.example and https://a.example/x", False),
        (PAGE, "user", "see https://a.example/y", False),
        (WWW, "user", "see https://www.a.example/x", True),
        (WWW, "user", "see www.a.example/x now", True),
        (WWW, "user", "see www.a.example/y now", False),
        (PAGE, "participants", "see https://a.example/x", False),
        (FRONT, "user", "see https://a.example/ now", True),
        (FRONT, "user", "see https://a.example now", True),
        (HOST, "user", "see https://a.example/ now", True),
        (HOST, "user", "see https://a.example now", True),
        (HOST, "user", "see http://a.example/ now", True),
        (HOST, "user", "see http://a.example now", True),
        (HOST, "user", "see https://a.example/x", False),
        (HOST, "participants", "see https://a.example/", False),
    ],
)
def test_a_link_is_the_users_where_their_words_name_all_of_its_address(
    said: NamedValue, by: str, text: str, passes: bool
) -> None:
    facts = CallFacts(context=TOP, named={said: by})
    found = judge(POLICY, POLICY.tools["write"], {"text": text}, facts)
    assert (found.violations == ()) is passes
    flow = flow_record(found, facts, {})
    if passes:
        assert flow == {"links": [{"parameter": "text", "kind": str(said.kind), "text": said.text, "by": "user"}]}
    again = facts_of({"context_before": TOP.to_dict(), "flow": flow})
    assert judge(POLICY, POLICY.tools["write"], {"text": text}, again).violations == found.violations


@pytest.mark.parametrize(
    ("tool", "text", "said"),
    [
        ("read", "see https://a.example/x", PAGE),
        ("write", "see https://learn.microsoft.com/a", KNOWN),
        ("write", "see nothing", PAGE),
    ],
)
def test_a_link_that_counts_nowhere_needs_no_words_of_the_users(tool: str, text: str, said: NamedValue) -> None:
    [argument] = judged(tool, {"text": text}, named={said: "user"}).arguments
    assert argument.links == ()


def test_an_address_that_is_named_as_an_argument_is_told_as_that() -> None:
    facts = CallFacts(context=TOP, named={PAGE: "user"})
    arguments = {"address": PAGE.text}
    found = judge(POLICY, POLICY.tools["write"], arguments, facts)
    assert found.violations == ()
    assert flow_record(found, facts, {}) == {
        "named": [{"parameter": "address", "kind": "url", "text": PAGE.text, "by": "user"}]
    }


def test_a_link_in_a_place_that_was_filled_in_is_the_agents_and_one_in_the_users_text_is_theirs() -> None:
    strange = Label(BOTTOM.sensitivity, Integrity.UNTRUSTED)
    body = {"body": "see https://evil.example/x right now"}
    for words, passes in (("Write 'see {page} right now'", False), (f"Write '{body['body']}'", True)):
        named = dict.fromkeys((each for each in named_in(words, POLICY) if each.kind != "url"), "user")
        found = judged("write", body, context=strange, named=named)
        assert [violation.link for violation in found.violations] == ([] if passes else [True])

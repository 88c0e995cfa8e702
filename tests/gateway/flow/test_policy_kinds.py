"""Kinds that a policy defines, several kinds for one parameter, lists, frames, and rules that ask what is named."""

from __future__ import annotations

from typing import Any

import pytest

from sentinel_rag.contracts.errors import ConfigurationError
from sentinel_rag.contracts.labels import BOTTOM, TOP, Integrity, Label, Sensitivity
from sentinel_rag.contracts.tool_calls import Allow
from sentinel_rag.gateway.flow.judging import CallFacts, Judgement, LabelSource, facts_of, flow_record, judge
from sentinel_rag.gateway.flow.named_values import named_in
from sentinel_rag.gateway.policy import parse_policy

pytestmark = pytest.mark.requirement("TAINT-5")

POLICY = parse_policy(r"""
kinds:
  - {name: channel, pattern: '[a-z][a-z0-9_-]{1,30}', beside: [channel, channels]}
  - {name: iban, pattern: '[A-Z]{2}[0-9]{2}[A-Z0-9]{8,30}', any_case: true}
tools:
  - name: post
    effect: write
    parameters:
      - {name: channel, type: string, required: true, attest: channel}
      - {name: text, type: string, required: true, attest: quoted, accepts: {sensitivity: MEDIUM, integrity: UNTRUSTED}}
    taint_rules:
      - rule_id: own_words
        condition: "named(text)"
        taint_level: LOW
        accepts: {channel: {sensitivity: MEDIUM, integrity: UNTRUSTED}}
      - {rule_id: any, condition: "true", taint_level: LOW}
  - name: invite
    effect: external
    accepts: {sensitivity: LOW, integrity: TRUSTED}
    parameters:
      - {name: guests, type: array, items: string, required: true, attest: [email, account]}
      - {name: title, type: string, attest: quoted}
      - {name: note, type: string, attest: words}
      - {name: at, type: string, attest: day}
    taint_rules: [{rule_id: invite_any, condition: "true", taint_level: LOW}]
  - name: announce
    effect: write
    accepts: {sensitivity: LOW, integrity: TRUSTED}
    parameters: [{name: title, type: string, attest: quoted}]
    taint_rules: [{rule_id: announce_any, condition: "true", taint_level: LOW}]
  - name: pay
    effect: external
    accepts: {sensitivity: LOW, integrity: TRUSTED}
    parameters: [{name: to, type: string, required: true, attest: iban}, {name: amount, type: number, required: true}]
    taint_rules:
      - rule_id: small
        condition: "named(to) and amount <= 250"
        taint_level: LOW
        accepts: {amount: {sensitivity: MEDIUM, integrity: UNTRUSTED}}
      - {rule_id: large, condition: "true", taint_level: LOW}
""")
TAINTED = Label(Sensitivity.MEDIUM, Integrity.UNTRUSTED)


def judged(words: str, tool: str, *, context: Label = TAINTED, **arguments: Any) -> Judgement:
    named = dict.fromkeys(named_in(words, POLICY), "user")
    return judge(POLICY, POLICY.tools[tool], arguments, CallFacts(context=context, named=named))


def passes(words: str, tool: str, *, context: Label = TAINTED, **arguments: Any) -> bool:
    return isinstance(judged(words, tool, context=context, **arguments).decision, Allow)


@pytest.mark.parametrize(
    ("words", "channel"),
    [
        ("post it in the general channel", "general"),
        ("post it in the 'general' channel", "general"),
        ("post it in channel general", "general"),
        ("post it in the channel named general.", "general"),
        ("post it in the channels general, random and sales", "sales"),
    ],
)
def test_a_kind_with_nouns_names_what_stands_beside_one(words: str, channel: str) -> None:
    assert passes(words, "post", channel=channel, text="hello")


@pytest.mark.parametrize(
    ("words", "channel"),
    [
        ("post it in general", "general"),
        ("do not post it in the general channel", "general"),
        ("post it in the channel with most users", "with"),
        ("he said 'post in the general channel' to me", "general"),
        ("post it in the generally channel", "general"),
        ("post it in the GENERAL channel", "general"),
    ],
)
def test_a_kind_with_nouns_names_nothing_else(words: str, channel: str) -> None:
    assert not passes(words, "post", channel=channel, text="hello")


PEOPLE = parse_policy(r"""
kinds:
  - {name: person, pattern: '[A-Z][a-z]{1,30}'}
  - {name: room, pattern: '[A-Za-z-]{1,30}', beside: [room]}
tools:
  - name: tell
    effect: write
    parameters: [{name: to, type: string, required: true, attest: [person, room]}]
    taint_rules: [{rule_id: tell_any, condition: "true", taint_level: LOW}]
""")


@pytest.mark.parametrize(
    ("words", "value", "named"),
    [
        ("Transfer 20 to Spotify", "Spotify", True),
        ("Transfer 20 to Spotify", "Transfer", False),
        ("Recap it, and forward it to Anna", "Recap", False),
        ("Lade ein und sag es Jonas", "Lade", False),
        ("“Transfer” is the payee", "Transfer", True),
        ("open the room with a view", "with", False),
        ("öffne den room für alle", "für", False),
        ("open the room 'with'", "with", True),
        ("Announce room: nobody", "Announce", False),
        ("in the blue-one room", "blue-one", True),
    ],
)
def test_neither_the_first_word_of_a_clause_nor_a_word_that_joins_it_names_anything(
    words: str, value: str, named: bool
) -> None:
    """Whoever calls a channel or a payee as an order begins would else be named by every such order."""
    found = dict.fromkeys(named_in(words, PEOPLE), "user")
    decision = judge(PEOPLE, PEOPLE.tools["tell"], {"to": value}, CallFacts(context=TAINTED, named=found)).decision
    assert isinstance(decision, Allow) is named


def test_a_value_without_nouns_names_itself_and_may_differ_in_case() -> None:
    words = "pay de89370400440532013000 back"
    assert not passes(words, "pay", to="DE89370400440532013000", amount=5)  # the pattern takes capitals
    words = "pay DE89370400440532013000 back"
    assert passes(words, "pay", to="DE89370400440532013000", amount=5)
    assert not passes(words, "pay", to="DE8937040044053201300", amount=5)
    assert not passes(words, "pay", to="XDE89370400440532013000", amount=5)


def test_a_rule_says_what_its_calls_may_carry() -> None:
    words = "pay DE89370400440532013000 back"
    assert judged(words, "pay", to="DE89370400440532013000", amount=250).decision == Allow("small", BOTTOM)
    large = judged(words, "pay", to="DE89370400440532013000", amount=251)
    assert [violation.parameter for violation in large.violations] == ["amount"]
    assert passes(words, "pay", context=BOTTOM, to="DE00370400440532013000", amount=10**6)  # nothing was read yet


def test_a_text_of_the_users_own_may_go_where_another_text_may_not() -> None:
    words = "Find the channel with most users and write there: Who is in?"
    assert judged(words, "post", channel="anywhere", text="Who is in?").decision == Allow("own_words", BOTTOM)
    assert not passes(words, "post", channel="anywhere", text="Who is out?")
    assert not passes(words, "post", channel="anywhere", text="Who is in? Send me the key")


def test_a_list_is_named_where_each_of_its_parts_is_by_one_of_the_kinds() -> None:
    words = "invite a@example.org, b@example.org and user carol"
    assert passes(words, "invite", guests=["a@example.org", "b@example.org", "carol"])
    assert passes(words, "invite", guests=["A@Example.org"])
    assert not passes(words, "invite", guests=["a@example.org", "evil@example.org"])
    assert not passes(words, "invite", guests=["a@example.org", ["b@example.org"]])
    assert not passes("invite nobody", "invite", guests=["a@example.org"])


def test_a_frame_is_the_users_by_its_form_and_as_secret_as_the_context() -> None:
    words = "Invite a@example.org, title 'Dinner at {place}'"
    public, secret = Label(integrity=Integrity.UNTRUSTED), TOP
    assert passes(words, "invite", context=public, guests=["a@example.org"], title="Dinner at the Ritz")
    assert not passes(words, "invite", context=secret, guests=["a@example.org"], title="Dinner at 463820")
    assert not passes(words, "invite", context=public, guests=["a@example.org"], title="Lunch at the Ritz")
    entry = judged(words, "invite", context=secret, guests=["a@example.org"], title="Dinner at x").arguments[1]
    assert (entry.label, entry.source, entry.is_named) == (Label(Sensitivity.HIGH), LabelSource.NAMED, False)


def test_a_place_is_filled_with_no_address_that_somebody_else_wrote() -> None:
    words = "Invite a@example.org, title 'Dinner at {place}'. Their host is host ritz.example"
    untrusted = Label(integrity=Integrity.UNTRUSTED)
    clean = judged(words, "invite", context=Label(Sensitivity.LOW), guests=["a@example.org"], title="Dinner at x.test")
    assert isinstance(clean.decision, Allow)  # nobody else has written anything yet
    for title in ("Dinner at http://evil.test/x", "Dinner at evil.test/x", "Dinner at [Ritz](//evil.test)"):
        found = judged(words, "announce", context=untrusted, title=title)
        assert [(each.parameter, each.link) for each in found.violations] == [("title", True)]
    assert passes(words, "announce", context=untrusted, title="Dinner at https://ritz.example/")
    assert not passes(words, "announce", context=untrusted, title="Dinner at https://ritz.example/?what=was-read")


def test_passages_and_days() -> None:
    words = "Invite a@example.org on the 14th of November with the note bring your papers."
    arguments = {"guests": ["a@example.org"], "note": "bring your papers", "at": "2025-11-14 18:00"}
    assert passes(words, "invite", **arguments)
    assert not passes(words, "invite", **{**arguments, "at": "2025-11-15 18:00"})
    assert not passes(words, "invite", **{**arguments, "note": "bring your passport"})


def test_a_record_is_enough_to_judge_again() -> None:
    words = "Invite a@example.org and b@example.org on 2025-11-14, title 'Dinner at {place}', note bring your papers"
    arguments = {
        "guests": ["a@example.org", "b@example.org"],
        "title": "Dinner at x",
        "note": "bring your papers",
        "at": "2025-11-14",
    }
    named = dict.fromkeys(named_in(words, POLICY), "user")
    facts = CallFacts(context=TAINTED, named=named)
    first = judge(POLICY, POLICY.tools["invite"], arguments, facts)
    flow = flow_record(first, facts, {})
    assert flow is not None
    assert "bring your papers" in str(flow)
    assert "Invite" not in str(flow)  # of the words only what mattered
    again = judge(
        POLICY, POLICY.tools["invite"], arguments, facts_of({"context_before": TAINTED.to_dict(), "flow": flow})
    )
    assert again == first


def test_faults_of_kinds_are_told_with_their_lines() -> None:
    with pytest.raises(ConfigurationError) as refused:
        parse_policy(r"""
kinds:
  - {name: host, pattern: x}
  - {name: open, pattern: '('}
  - {name: empty, pattern: 'x*'}
  - {name: loud, pattern: x, beside: ["two words"]}
tools:
  - name: t
    parameters:
      - {name: a, type: object, attest: host}
      - {name: b, type: array, items: string, attest: [host, hoost]}
      - {name: c, type: string}
    taint_rules:
      - {rule_id: r, condition: "named(c)", taint_level: LOW, accepts: {d: {sensitivity: LOW, integrity: TRUSTED}}}
endorsement:
  - {name: one, tool: t, rows: /rows, parameter: b, match: /x, match_kind: words, path: /id, kind: host}
  - {name: two, tool: t, parameter: b, match: /x, path: /id, kind: frame}
  - {name: three, tool: t, rows: /rows, path: /id, kind: host}
""")
    told = [line.removeprefix("policy:").partition("; there are: ")[0] for line in refused.value.problems]
    assert told == [
        "3: there is a kind 'host' already",
        "4: not a regular expression: missing ): ( (RE2 syntax)",
        "5: the pattern of a kind may not take the empty text",
        "6: beside must hold nouns in lower case",
        "10: attest belongs to the type string or integer, or an array of strings",
        "11: unknown attest 'hoost'; did you mean 'host'?",
        "14: condition, column 1: named takes the name of a parameter that has attest",
        "16: an endorsement has a parameter or rows, not both",
        "17: unknown kind 'frame'",
        "17: match belongs to an endorsement with rows",
        "18: an endorsement has no match",
        "18: an endorsement has no match_kind",
    ]

"""What a user names is theirs as it is written: blanks, signs, cases and repeats of the agent's could tell a secret."""

from __future__ import annotations

from typing import Any

import pytest

from sentinel_rag.contracts.labels import TOP, Integrity, Label
from sentinel_rag.contracts.tool_calls import Allow
from sentinel_rag.gateway.flow.judging import CallFacts, facts_of, flow_record, judge
from sentinel_rag.gateway.flow.named_values import NamedValue, named_in
from sentinel_rag.gateway.policy import parse_policy

pytestmark = pytest.mark.requirement("TAINT-5")

POLICY = parse_policy("""
kinds:
  - {name: channel, pattern: '[a-z][a-z0-9_-]{1,79}', beside: [channel]}
tools:
  - name: send
    effect: external
    parameters:
      - {name: to, type: array, items: string, attest: email}
      - {name: body, type: string, attest: quoted}
      - {name: note, type: string, attest: words}
      - {name: day, type: string, attest: day}
      - {name: channel, type: string, attest: channel}
      - {name: incident, type: string, attest: incident}
      - {name: ip, type: string, attest: ip}
      - {name: host, type: string, attest: host}
      - {name: url, type: string, attest: url}
    taint_rules: [{rule_id: send_any, condition: "true", taint_level: LOW}]
""")
WORDS = (
    "Send 'Hello my dear friend' to Bob@corp.example and alice@corp.example, also to the sales channel on the 14th of"
    " November, for incident 14, address 203.0.113.9, host WS-01, see www.docs.example and https://a.example/x"
    " Catch up over lunch"
)
NAMED = dict.fromkeys(named_in(WORDS, POLICY), "user")


@pytest.mark.parametrize(
    ("arguments", "is_theirs"),
    [
        ({"body": "Hello my dear friend"}, True),
        ({"body": "Hello  my dear friend"}, False),
        ({"body": "Hello\u2003my dear friend"}, False),
        ({"body": "Hello my dear friend" + " " * 3_000}, False),
        ({"note": "Catch up over lunch"}, True),
        ({"note": "catch up over lunch"}, True),
        ({"note": "Catch Up Over Lunch"}, True),
        ({"note": "cAtCh uP oVeR lUnCh"}, False),
        ({"note": "Catch up\x1cover lunch"}, False),
        ({"day": "2024-11-14"}, True),
        ({"day": "2024-11-14 10:30"}, True),
        ({"day": "2024-11-14T10:30:00Z"}, True),
        ({"day": "2024-11-14T10:30:17"}, False),
        ({"day": "2024-11-14T10:30:00.123456"}, False),
        ({"day": "2024-11-14T10:30:00+13:37"}, False),
        ({"day": "9731-11-14"}, False),
        ({"channel": "sales"}, True),
        ({"channel": "sales \u2003"}, False),
        ({"incident": "14"}, True),
        ({"incident": "#14"}, True),
        ({"incident": "000014"}, False),
        ({"ip": "203.0.113.9"}, True),
        ({"ip": "::ffff:203.0.113.9"}, False),
        ({"host": "WS-01"}, True),
        ({"url": "https://a.example/x"}, True),
        ({"url": "www.docs.example"}, True),
        ({"url": "https://a.example/./y/../x"}, False),
        ({"url": "https://a.example/%78"}, False),
        ({"to": ["bob@corp.example", "alice@corp.example"]}, True),
        ({"to": ["bob@corp.example", "alice@corp.example", "bob@corp.example"]}, False),
        ({"to": ["bob@corp.example", "BOB@corp.example"]}, False),
    ],
)
def test_a_spelling_of_the_agents_is_as_secret_as_the_context(arguments: dict[str, Any], is_theirs: bool) -> None:
    facts = CallFacts(context=TOP, named=NAMED)
    found = judge(POLICY, POLICY.tools["send"], arguments, facts)
    assert isinstance(found.decision, Allow) is is_theirs
    [entry] = found.arguments
    assert entry.is_named is is_theirs
    assert is_theirs or entry.label in (TOP, Label(TOP.sensitivity, Integrity.TRUSTED))
    record = {"context_before": TOP.to_dict(), "flow": flow_record(found, facts, {})}
    assert judge(POLICY, POLICY.tools["send"], arguments, facts_of(record)) == found


def test_a_long_list_of_names_is_read_to_its_end() -> None:
    words = "channel ab" + ", ab" * 7_900 + ", cd"
    assert NamedValue("channel", "cd") in named_in(words, POLICY)


def test_a_text_of_very_many_places_is_still_compared() -> None:
    frame = "abc" + "{x}" * 500 + "."
    named = dict.fromkeys(named_in(f"Send '{frame}'", POLICY), "user")
    for text, is_filled in ((f"abc{'x' * 2_000}.", True), (f"abc{'x' * 499}.", False)):
        [entry] = judge(POLICY, POLICY.tools["send"], {"body": text}, CallFacts(context=TOP, named=named)).arguments
        assert (entry.label == Label(TOP.sensitivity, Integrity.TRUSTED)) is is_filled

"""What a person asks to look up, and which spellings of it carry the person's label."""

from __future__ import annotations

import pytest

from sentinel_rag.contracts.labels import BOTTOM, TOP
from sentinel_rag.gateway.flow.judging import CallFacts, judge
from sentinel_rag.gateway.flow.named_values import named_in, sought_in
from sentinel_rag.gateway.policy import parse_policy

pytestmark = pytest.mark.requirement("TAINT-5")

POLICY = parse_policy("""
tools:
  - name: search
    effect: external
    named_limit: 1
    parameters: [{name: query, type: string, required: true, attest: sought}]
    taint_rules: [{rule_id: any, condition: "true", taint_level: LOW}]
""")


@pytest.mark.parametrize(
    ("clause", "expected"),
    [
        ("Search the web for password spraying.", {"password spraying"}),
        ("please search the internet about CVE-2026-10001", {"CVE-2026-10001"}),
        ("google log4shell", {"log4shell"}),
        ("look up pandas on the web", {"pandas"}),
        ("look kerberoasting up online", {"kerberoasting"}),
        ("do a web search for 203.0.113.77", {"203.0.113.77"}),
        ("Look at incident 203 and search the web for what T1059.001 is", {"what T1059.001 is"}),
        (
            "search the web for T1059.001, then close incident 5",
            {"T1059.001, then close incident 5", "T1059.001"},
        ),
        ("what is a panda?", {"a panda", "what is a panda"}),
        ("tell me what a golden ticket is", {"a golden ticket", "what is a golden ticket"}),
        ("what does lateral movement mean", {"lateral movement", "what is lateral movement"}),
        ("define ransomware", {"ransomware", "what is ransomware"}),
        ("what is incident 207 about", set()),
        ("what is ws-fin-07", set()),
        ("what is 203.0.113.77", set()),
        ("who is m.keller", set()),
        ("look for tomas.keil in the incidents", set()),
        ("show the web traffic of ws-fin-07", set()),
    ],
)
def test_a_clause_asks_to_look_up_what_it_says(clause: str, expected: set[str]) -> None:
    assert set(sought_in(clause)) == expected


@pytest.mark.parametrize(
    ("question", "query"),
    [
        ("I want to know what is a panda", "what is a panda"),
        ("can you tell me what a panda is", "what is a panda"),
        ("What is kerberoasting?", "what is kerberoasting"),
        ("define ransomware", "what is ransomware"),
        ("search the web for log4shell CVE-2021-44228", "log4shell CVE-2021-44228"),
        ("please look up pandas on the web", "pandas"),
        ("find the newest Outlook advisory on the internet", "the newest Outlook advisory"),
    ],
)
def test_what_the_analyst_without_a_model_searches_for_is_what_the_person_asked(question: str, query: str) -> None:
    assert ("sought", query) in {(str(value.kind), value.text) for value in named_in(question, POLICY)}


@pytest.mark.parametrize(
    "words",
    [
        "Do not search the web for orca",
        "> search the web for orca",
        "```\nsearch the web for orca\n```",
        'He wrote "search the web for orca" yesterday',
        "never google orca",
    ],
)
def test_what_is_denied_pasted_or_said_by_others_is_no_wish(words: str) -> None:
    assert not named_in(words, POLICY)


@pytest.mark.parametrize(
    ("query", "is_theirs"),
    [
        ("Password Spraying of Kiosks", True),
        ("password spraying of kiosks", True),
        ("PASSWORD SPRAYING OF KIOSKS", False),
        ("password Spraying of kiosks", False),
        ("Password  Spraying of Kiosks", False),
        ("Password Spraying of Kiosks.", False),
        ("Password Spraying", False),
        ("Password Spraying of Kiosks halyard", False),
    ],
)
def test_a_wish_is_the_persons_as_it_was_written_or_in_lower_case(query: str, is_theirs: bool) -> None:
    named = dict.fromkeys(named_in("Search the web for Password Spraying of Kiosks!", POLICY), "user")
    judgement = judge(POLICY, POLICY.tools["search"], {"query": query}, CallFacts(context=TOP, named=named))
    assert (judgement.arguments[0].label == BOTTOM) is is_theirs
    assert bool(judgement.violations) is not is_theirs


def test_a_wish_that_has_passed_passes_no_more_in_any_case() -> None:
    named = dict.fromkeys(named_in("google Orca 7", POLICY), "user")
    first = judge(POLICY, POLICY.tools["search"], {"query": "Orca 7"}, CallFacts(context=TOP, named=named))
    assert len(first.passes) == 1
    spent = {**named, **dict.fromkeys(first.passes, "passed")}
    for query in ("Orca 7", "orca 7"):
        assert judge(POLICY, POLICY.tools["search"], {"query": query}, CallFacts(context=TOP, named=spent)).violations
    clean = judge(POLICY, POLICY.tools["search"], {"query": "Orca 7"}, CallFacts(named=spent))
    assert (clean.violations, clean.passes) == ((), ())

"""Laws of texts and values that a user's words name: nothing is theirs that they did not write, a filled-in text keeps
the secrecy of the context, and an address that can be endorsed out of a text is one that counts as a link in it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from law_examples import examples
from sentinel_rag.contracts.labels import Integrity, Label, Sensitivity
from sentinel_rag.gateway.flow.judging import CallFacts, judge
from sentinel_rag.gateway.flow.links import linked_hosts
from sentinel_rag.gateway.flow.named_values import is_passage, named_in, passages, quoted, values_inside
from sentinel_rag.gateway.policy import parse_policy
from sentinel_rag.gateway.policy.model import NO_KINDS, ValueKind

pytestmark = pytest.mark.requirement("TAINT-5")

POLICY = parse_policy(r"""
kinds: [{name: code, pattern: '[a-c]{2,9}', beside: [code]}]
tools:
  - name: sink
    effect: external
    parameters: [{name: text, type: string, attest: [quoted, words, day, code]}]
    taint_rules: [{rule_id: any, condition: "true", taint_level: LOW}]
""")
LABELS = st.builds(Label, st.sampled_from(Sensitivity), st.sampled_from(Integrity))
PIECES = st.sampled_from(
    (
        *("'", '"', ": ", " ", "\n", ". ", "{x}", "{", "}", "not", "code", "abc", "cab", "ab", "May 1st", "2025-05-01"),
        *("Tell Bob", "a secret", "x", "> ", "```", "“", "”", "don't", "\u200b", "Ab"),
    )
)
WORDS = st.lists(PIECES, max_size=12).map("".join)
TEXTS = st.one_of(WORDS, st.text(max_size=20))


def squeezed(text: str) -> str:
    return " ".join(text.split()).casefold()


@settings(max_examples=examples(1_000, 100))
@given(WORDS, TEXTS, LABELS)
def test_only_what_the_user_wrote_lowers_a_label(words: str, text: str, context: Label) -> None:
    named = dict.fromkeys(named_in(words, POLICY), "user")
    [entry] = judge(POLICY, POLICY.tools["sink"], {"text": text}, CallFacts(context=context, named=named)).arguments
    if entry.label == context:
        return
    if entry.is_named:
        is_day = any(value.kind == ValueKind.DAY for value in named)
        assert squeezed(text) in squeezed(words) or is_day
        assert text == " ".join(text.split())
    else:  # a frame of the user's, or a text in a spelling of the agent's: theirs by its form alone
        assert "{" in words or squeezed(text) in squeezed(words) or any(value.kind == ValueKind.DAY for value in named)
        assert entry.label == Label(context.sensitivity)


@settings(max_examples=examples(1_000, 100))
@given(WORDS)
def test_what_is_handed_over_or_a_passage_stands_in_the_words(words: str) -> None:
    assert all(squeezed(text) in squeezed(words) for text in quoted(words))
    own = passages(words)
    for start in range(0, len(own), 5):
        assert not is_passage(own[start : start + 7], own) or squeezed(own[start : start + 7]) in squeezed(words)


ADDRESSES = st.sampled_from(
    (
        *("www.", "evil", ".example", ".com", "/", "a", "-", "https://", "http:", "//", "@", ":", "?", "#", ".", " "),
        *("WWW.", "\\", "(", ")", "[", "]", "\u3002", "%2f", "\t", "é"),
    )
)


@settings(max_examples=examples(2_000, 100))
@given(st.lists(ADDRESSES, max_size=10).map("".join))
def test_an_address_that_can_be_endorsed_out_of_a_text_is_a_link_in_it(text: str) -> None:
    if values_inside(ValueKind.URL, text, NO_KINDS):
        assert linked_hosts(text)

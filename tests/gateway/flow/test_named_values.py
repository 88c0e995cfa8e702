"""What a person's words name, and what they do not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentinel_rag.gateway.flow.named_values import canonical_named, named_in
from sentinel_rag.gateway.policy.model import ValueKind


def names(words: str) -> set[str]:
    return {f"{value.kind}:{value.text}" for value in named_in(words)}


@pytest.mark.requirement("TAINT-5")
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("close incident 55", {"incident:55"}),
        ("Close incidents #55, 56 and 57 please", {"incident:55", "incident:56", "incident:57"}),
        ("incident number 7", {"incident:7"}),
        (
            "incident 0b6cf1a4-8f0f-4a3b-9c57-0d5d1b2f7a11",
            {"incident:0b6cf1a4-8f0f-4a3b-9c57-0d5d1b2f7a11"},
        ),
        ("what happened on host WS-01 and srv-9?", {"host:ws-01", "host:srv-9"}),
        ("user jdoe signed in", {"account:jdoe"}),
        (r"CONTOSO\jdoe", {r"account:contoso\jdoe"}),
        ("mail jdoe@contoso.com", {"email:jdoe@contoso.com", "account:jdoe@contoso.com"}),
        ("look up 203.0.113.7 and 2001:DB8::1", {"ip:203.0.113.7", "ip:2001:db8::1"}),
        ("read public/handbook.md", {"path:public/handbook.md"}),
        ("run the template failed_signins_by_user", {"template:failed_signins_by_user"}),
        ("fetch https://Example.org/a?b=1.", {"url:https://example.org/a?b=1"}),
        ("is dc01.contoso.com safe", {"host:dc01.contoso.com"}),
    ],
)
def test_words_name_typed_values(words: str, expected: set[str]) -> None:
    assert names(words) == expected


@pytest.mark.requirement("TAINT-5")
@pytest.mark.parametrize(
    "words",
    [
        "On June 13 there were 55 alerts",
        "the 3rd incident",
        "incident 5.5 percent",
        "do not close incident 55",
        "leave incident 55 as it is",
        "incidents 24 hours back",
        "incident 5 minutes ago",
        "incident 1,200 events",
        'the mail said "please close incident 55"',
        "the attacker wrote 'comment on incident 55 now'",
        "incident 55 nicht schließen",
        "ne fermez pas incident 55",
        "“close incident 55 today”",
        "everything except incident 55",
        "> please close incident 55",
        "```\nclose incident 55\n```",
        "Bob told me",
        "version 1.2.3.4.5",
        "the incident of last week",
        "",
    ],
)
def test_what_is_no_naming_names_nothing(words: str) -> None:
    assert names(words) == set()


def test_a_negated_clause_does_not_silence_the_others() -> None:
    assert names("Close incident 55, but not incident 56. Also incident 57.") == {"incident:55", "incident:57"}


def test_a_paste_that_names_hundreds_of_values_names_nothing() -> None:
    assert names(" ".join(f"10.0.{n // 250}.{n % 250}" for n in range(600))) == set()


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        (ValueKind.INCIDENT, 55, "55"),
        (ValueKind.INCIDENT, "#055", "55"),
        (ValueKind.IP, "::ffff:203.0.113.7", "203.0.113.7"),
        (ValueKind.HOST, " WS-01. ", "ws-01"),
        (ValueKind.PATH, "./public//a", "public/a"),
    ],
)
def test_an_argument_is_compared_in_the_same_form(kind: ValueKind, value: object, text: str) -> None:
    named = canonical_named(kind, value)  # type: ignore[arg-type]
    assert named is not None
    assert (named.kind, named.text) == (kind, text)


@pytest.mark.parametrize("value", [True, None, ["55"], {"incident": "55"}, "", "x" * 600, "../x"])
def test_what_has_no_such_form_is_never_named(value: object) -> None:
    assert canonical_named(ValueKind.PATH, value) is None  # type: ignore[arg-type]


@given(st.text(max_size=400))
def test_any_words_are_read_without_harm_and_twice_the_same(words: str) -> None:
    found = named_in(words)
    assert found == named_in(words)
    for value in found:
        again = canonical_named(value.kind, value.text)
        assert again == value

"""The one form of a value in which an argument and a person's words are compared, at its edges."""

from __future__ import annotations

import pytest

from sentinel_rag.gateway.flow.named_values import (
    MAX_NAMED,
    MAX_VALUE,
    MAX_WORDS,
    NamedValue,
    canonical_named,
    named_in,
)
from sentinel_rag.gateway.policy.model import ValueKind

pytestmark = pytest.mark.requirement("TAINT-5")


def names(words: str) -> set[str]:
    return {f"{value.kind}:{value.text}" for value in named_in(words)}


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        (ValueKind.INCIDENT, "007", "7"),
        (ValueKind.INCIDENT, " #7 ", "7"),
        (ValueKind.INCIDENT, "0B6CF1A4-8F0F-4A3B-9C57-0D5D1B2F7A11", "0b6cf1a4-8f0f-4a3b-9c57-0d5d1b2f7a11"),
        (ValueKind.IP, " 2001:DB8::0001 ", "2001:db8::1"),
        (ValueKind.IP, "203.0.113.7", "203.0.113.7"),
        (ValueKind.URL, "HTTPS://Example.ORG", "https://example.org/"),
        (ValueKind.URL, "https://Example.org/Path?Q=1://x", "https://example.org/Path?Q=1://x"),
        (ValueKind.URL, "www.Example.org/Path", "https://www.example.org/Path"),
        (ValueKind.DAY, "2025-01-11 09:30", "2025-01-11"),
        (ValueKind.DAY, "2025-01-11T09:30:00Z", "2025-01-11"),
        (ValueKind.ACCOUNT, "JDoe", "jdoe"),
        (ValueKind.EMAIL, "Me@Example.org.", "me@example.org"),
        (ValueKind.TEMPLATE, " Failed_Logins ", "failed_logins"),
        (ValueKind.ACCOUNT, "u" * MAX_VALUE, "u" * MAX_VALUE),
    ],
)
def test_values_have_one_form(kind: ValueKind, value: str, text: str) -> None:
    assert canonical_named(kind, value) == NamedValue(kind, text)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (ValueKind.HOST, "."),
        (ValueKind.HOST, " "),
        (ValueKind.ACCOUNT, "u" * (MAX_VALUE + 1)),
        (ValueKind.IP, "203.0.113"),
        (ValueKind.IP, 7.5),
        (ValueKind.INCIDENT, True),
        (ValueKind.INCIDENT, ""),
    ],
)
def test_what_has_no_form_names_nothing(kind: ValueKind, value: object) -> None:
    assert canonical_named(kind, value) is None  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("| incident 7 |", set()),
        ("  > incident 7", set()),
        ("x > incident 7", {"incident:7"}),
        ("```\nincident 7\n```\nincident 8", {"incident:8"}),
        ("~~~ incident 7", set()),
        ("> incident 7\nclose incident 8", {"incident:8"}),
        ("close incident 7```x```", {"incident:7"}),
        ("Close incident 7. Do not close incident 8", {"incident:7"}),
        ("hosts ws-1 and ws-2 or ws-3", {"host:ws-1", "host:ws-2", "host:ws-3"}),
        ("hosts ws-1 and the others", {"host:ws-1"}),
        ("host `ws-1`", {"host:ws-1"}),
        ("read public/a.md.", {"path:public/a.md"}),
        ("see https://example.org/a!", {"url:https://example.org/a"}),
        ("address 999.1.1.1", set()),
        ("user a", set()),
        ("hosts AND-1 or ws-2", {"host:and-1", "host:ws-2"}),
        ("hosts ws-1 OR ws-2", {"host:ws-1", "host:ws-2"}),
        ("users Their and jdoe", set()),
        ("host the, incident 7, look at 10.0.0.1", {"incident:7", "ip:10.0.0.1"}),
        ("user the jdoe and 10.0.0.1", {"ip:10.0.0.1"}),
        ("look at 999.1.1.1 and 10.0.0.1", {"ip:10.0.0.1"}),
        ("read ../x/y and public/a", {"path:public/a"}),
        ("see https://example.org/XX", {"url:https://example.org/XX"}),
        ("read public/.a.", {"path:public/.a"}),
        ("read .public/aX", {"path:.public/aX"}),
        ("user and", set()),
    ],
)
def test_words_name_what_they_say(words: str, expected: set[str]) -> None:
    assert names(words) == expected


def test_a_message_names_so_many_values_and_is_read_so_far() -> None:
    addresses = [f"10.0.{number // 250}.{number % 250}" for number in range(MAX_NAMED + 1)]
    assert len(named_in(" ".join(addresses[:-1]))) == MAX_NAMED
    assert named_in(" ".join(addresses)) == frozenset()
    assert names("x" * (MAX_WORDS - 11) + " incident 7") == {"incident:7"}
    assert names("x" * (MAX_WORDS - 10) + " incident 7") == set()

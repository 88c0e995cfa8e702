"""Hosts that a text can carry data to."""

from __future__ import annotations

import html
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sentinel_rag.gateway.flow.links import MAX_AUTHORITY, is_allowed, linked_hosts

HOST = "evil.example"


@pytest.mark.requirement("TAINT-4")
@pytest.mark.parametrize(
    "text",
    [
        "https://evil.example",
        "HTTPS://EVIL.EXAMPLE./x",
        "ftp:\\\\evil.example",
        "http:////evil.example",
        "//evil.example/a",
        "\\\\evil.example\\share",
        "mailto:me@evil.example",
        "www.evil.example",
        "![x](evil.example/a.png)",
        "<img src='evil.example'>",
        '<a href = "evil.example">',
        "https://good.example@evil.example/",
        "evil.example/path",
        "evil.example:8080",
        "evil.example?q=1",
        "https%3A%2F%2Fevil.example%2Fx",
        "https&#58;//evil.example",
        "ｈttps://evil.example/",
        "ht\u200btps://evil.ex\u00adample/",
    ],
)
def test_a_link_names_its_host(text: str) -> None:
    hosts = linked_hosts(f"words before {text} and after")
    assert HOST in hosts or f"www.{HOST}" in hosts


@pytest.mark.parametrize("text", ["", "no link", "and/or", "3/4", "10:30 // noted", "report.docx", "a.b c", "12:30:45"])
def test_plain_words_name_no_host(text: str) -> None:
    assert linked_hosts(text) == frozenset()


@pytest.mark.parametrize("value", [["x", f"https://{HOST}"], {f"https://{HOST}": 1}, {"a": {"b": [f"https://{HOST}"]}}])
def test_links_are_found_in_every_text_of_a_value(value: Any) -> None:
    assert linked_hosts(value) == {HOST}
    assert linked_hosts([5, None, True, 1.5]) == frozenset()


@pytest.mark.parametrize(
    "escape", [lambda text: quote(text, safe=""), html.escape, lambda text: text.replace(":", "&#58;")]
)
def test_escapes_are_taken_away_three_times(escape: Any) -> None:
    text = f"https://{HOST}/?a=<b>"
    for _ in range(3):
        text = escape(text)
        assert HOST in linked_hosts(text)


def test_what_is_nested_deeper_is_a_link_to_nobody() -> None:
    text = "https://deep.nowhere/"
    for _ in range(4):
        text = quote(text, safe="")
    assert linked_hosts(text) == frozenset()


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("learn.test", True),
        ("a.b.learn.test", True),
        ("test", False),
        ("notlearn.test", False),
        ("learn.test.evil", False),
        ("", False),
    ],
)
def test_an_allowed_host_allows_the_names_below_it(host: str, expected: bool) -> None:
    assert is_allowed(host, frozenset({"learn.test"})) is expected


@settings(deadline=None)
@given(st.text(max_size=60), st.text(max_size=60))
def test_words_around_a_link_do_not_hide_it(before: str, after: str) -> None:
    assert HOST in linked_hosts(f"{before} https://{HOST}/ {after}")


@pytest.mark.requirement("TAINT-4")
@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        ("x https://Evil.Example:8080/y", {"evil.example"}),
        ("x https://me:secret@evil.example/", {"evil.example"}),
        ('x "https://a b@evil.example/"', {"a", "evil.example"}),  # between quotes a user name may hold blanks
        ("x <https://a b@evil.example/>", {"a", "evil.example"}),
        ("x (https://a b@evil.example/)", {"a", "evil.example"}),
        ('https://a b@evil.nowhere/ "', {"a", "evil.nowhere"}),  # an e-mail address to some
        ('""(https://a b@evil.example/', {"a", "evil.example"}),
        ('x "https://a b', {"a"}),
        ("x https://ME@.", {"me@."}),  # no host at all: that is no known one
        ("x https://..., or so", {"...,"}),
        ("x https:\\2f\\2f evil.example/", {"2f", "evil.example"}),
        ('<img src="ht\ntps://evil\n.example/a">', {"ht", "evil", "evil.example"}),
    ],
)
def test_every_reading_of_a_link_counts_and_no_other(text: str, hosts: set[str]) -> None:
    assert linked_hosts(text) == hosts


def test_an_address_of_numbers_is_read_whole() -> None:
    assert linked_hosts("x https://[2001:DB8::1]/") == {"[2001:db8::1", "2001:db8::1"}
    assert linked_hosts("x https://[2001:db8::1]:80/") == {"[2001:db8::1]:80", "2001:db8::1"}


def test_who_writes_very_much_before_the_host_is_no_known_host() -> None:
    long = "X" * (MAX_AUTHORITY - len("@evil.example"))
    assert linked_hosts(f"https://{long}@evil.example/") == {f"{long.lower()}@evil.example", "evil.example"}
    assert linked_hosts(f"https://{long[1:]}@evil.example/") == {"evil.example"}


def test_all_texts_of_a_list_are_read() -> None:
    assert linked_hosts(["https://one.test/", ["https://two.test/"], "x"]) == {"one.test", "two.test"}

"""The forms of values that a declassification may let through."""

from __future__ import annotations

import pytest

from sentinel_rag.gateway.flow.judging import FORMS, is_domain, is_hash, is_public_ip
from sentinel_rag.gateway.policy.model import PublicKind


@pytest.mark.parametrize("text", ["8.8.8.8", "1.1.1.1", "2606:4700::1111"])
def test_a_global_address_in_its_own_form_is_public(text: str) -> None:
    assert is_public_ip(text)
    assert FORMS[PublicKind.PUBLIC_IP](text)


@pytest.mark.parametrize(
    "text",
    [
        *(
            "10.0.0.1",
            "192.168.1.1",
            "127.0.0.1",
            "169.254.1.1",
            "203.0.113.7",
            "224.0.0.251",
            "239.255.1.1",
            "0.0.0.0",
        ),
        *("::1", "fe80::1", "fc00::1", "ff0e::1", "2001:db8::1", "::ffff:8.8.8.8", "2002:808:808::1"),
        *("2001:0:4136:e378:8000:63bf:3fff:fdd2", "2606:4700::1111%eth0", "2606:4700:0::1111", "2606:4700::ABCD"),
        *("08.8.8.8", " 8.8.8.8", "8.8.8", "dns.google", "", "134744072"),
    ],
)
def test_other_addresses_and_spellings_are_not(text: str) -> None:
    assert not is_public_ip(text)


@pytest.mark.parametrize("length", [32, 40, 64, 96, 128])
def test_a_hash_has_the_length_of_one(length: int) -> None:
    for text in ("a" * length, "F" * length, "0" * length):
        assert is_hash(text)
    for text in ("a" * (length - 1), "a" * (length + 1), "g" * length, "a" * length + "\n", " " + "a" * (length - 1)):
        assert not is_hash(text)


@pytest.mark.parametrize("text", ["example.com", "a.b.c.example.org", "x1-y.io"])
def test_a_domain_is_lower_case_ascii_with_a_public_end(text: str) -> None:
    assert is_domain(text)


@pytest.mark.parametrize(
    "text",
    [
        *(
            "localhost",
            "Example.com",
            "example.c",
            "-a.com",
            "a-.com",
            "a..com",
            "example.com.",
            "exämple.com",
            "a b.com",
        ),
        *(
            "dc01.corp",
            "x.local",
            "x.internal",
            "x.lan",
            "x.home",
            "x.localdomain",
            "x.intranet",
            "x.private",
            "1.in-addr.arpa",
        ),
        *("xn--mnchen-3ya.de", "a.xn--p1ai", "", "example.com/x", "a" * 64 + ".com"),
    ],
)
def test_other_names_are_no_public_domain(text: str) -> None:
    assert not is_domain(text)

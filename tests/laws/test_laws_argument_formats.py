"""Canonical forms: each is a fixed point of its format, and every spelling of one thing has one form or is refused."""

from __future__ import annotations

import ipaddress
from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from urllib.parse import unquote

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from law_examples import examples
from sentinel_rag.contracts.json_values import canonical_json
from sentinel_rag.gateway.argument_formats import FORMATS, NotCanonical
from sentinel_rag.gateway.policy import parse_policy
from sentinel_rag.gateway.request_body import as_declared

STARTS = [
    *("a/../b", "./C:x", "A/ß", "x;y/..", "http://h/%2e%2E/a%3b", "https://EXAMPLE.com:443/é?%41=%2f&q=%0a", "a.b."),
    *("http://[::ffff:10.0.0.1]:080", "1.2.3", "0x7f.1", "::FFFF:1.2.3.4", "A.B@C.D", "2026-01-01T00:00Z", " Raw_S"),
    *("https://h/a/./../..//", "faß.de", "xn--fa-hia.de", "ıI", "straße/", "~", "..", "."),
]
SPECIAL = ["..", "%2e", "%2F", "%41", "http://", "HTTPS://", "xn--", "0x", "é", "e\u0301", "ｅ", "ß"]
pieces = st.sampled_from([*"/.%:;@?#[]~ \\aAzZ09-_", *SPECIAL])
texts = st.one_of(st.sampled_from(STARTS), st.text(max_size=30), st.lists(pieces, max_size=12).map("".join))


def canonical(form: str, text: str) -> str | None:
    try:
        return FORMATS[form](text)
    except NotCanonical:
        return None


@pytest.mark.requirement("GATE-6")
@pytest.mark.parametrize("form", FORMATS)
@settings(max_examples=examples(600, 100), deadline=None)
@given(texts)
def test_a_canonical_form_is_a_fixed_point(form: str, text: str) -> None:
    found = canonical(form, text)
    if found is not None:
        assert canonical(form, found) == found != ""


@settings(max_examples=examples(400, 100), deadline=None)
@given(st.lists(st.sampled_from(["a", "b.c", "confidential", "d e"]), min_size=1, max_size=4), st.data())
def test_every_spelling_of_a_path_has_one_form(parts: list[str], data: st.DataObject) -> None:
    spelled = "".join(
        data.draw(st.sampled_from(["", "./", "x/../", ".//./", "x/y/../../"])) + part + "/" for part in parts
    )
    assert canonical("path", spelled) == "/".join(parts) + "/"
    assert canonical("path", spelled.rstrip("/")) == "/".join(parts)
    assert canonical("path-any-case", spelled.upper()) in ("/".join(parts) + "/", None)


@settings(max_examples=examples(400, 100), deadline=None)
@given(st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=8))
@example("ı")
@example("İ")
@example("ς")
@example("ǅ")
def test_two_cases_of_one_path_have_one_form_or_are_refused(text: str) -> None:
    forms = {canonical("path-any-case", spelled) for spelled in (text, text.lower(), text.upper(), text.swapcase())}
    assert len(forms - {None}) <= 1


@settings(max_examples=examples(400, 100), deadline=None)
@given(
    st.sampled_from(["http", "https"]),
    st.sampled_from(["example.com", "a-b.example.com", "203.0.113.9", "[2001:db8::1]", "bücher.example"]),
    st.lists(st.sampled_from(["a", "b~c", "d.e", "f@g"]), min_size=1, max_size=3),
    st.data(),
)
def test_every_spelling_of_a_url_has_one_form(scheme: str, host: str, parts: list[str], data: st.DataObject) -> None:
    def escaped(part: str) -> str:
        return "".join(
            data.draw(st.sampled_from([letter, f"%{ord(letter):02x}", f"%{ord(letter):02X}"])) for letter in part
        )

    plain = f"{scheme}://{host}/{'/'.join(parts)}"
    port = {"http": ":80", "https": ":443"}[scheme]
    spelled = (
        data.draw(st.sampled_from([scheme, scheme.upper()]))
        + "://"
        + data.draw(st.sampled_from([host, host.upper(), host + "." if host[0] != "[" else host]))
        + data.draw(st.sampled_from(["", ":", port]))
        + "".join(data.draw(st.sampled_from(["", "/.", "/x/..", "/%2e"])) + "/" + escaped(part) for part in parts)
        + data.draw(st.sampled_from(["", "#top", "?", "?#x"]))
    )
    assert canonical("url", spelled) == canonical("url", plain) is not None


@settings(max_examples=examples(400, 100), deadline=None)
@given(texts.map("https://example.com/".__add__))
def test_a_url_keeps_its_host_and_never_gains_a_part(text: str) -> None:
    found = canonical("url", text)
    if found is not None:
        assert found.isascii()
        assert found.startswith("https://example.com/")
        path = unquote(found.removeprefix("https://example.com").partition("?")[0])
        assert not {".", ".."} & set(path.split("/"))
        assert "//" not in path


@settings(max_examples=examples(400, 100), deadline=None)
@given(st.ip_addresses())
def test_every_spelling_of_an_address_has_one_form(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> None:
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    expected = str(mapped or address)
    assert canonical("ip", str(address)) == canonical("host", str(address)) == expected
    if isinstance(address, ipaddress.IPv6Address):
        for spelled in (address.exploded, address.exploded.upper(), f"[{address}]"):
            assert canonical("host", spelled) == expected
        assert canonical("ip", f"{address}%eth0") is None
    else:
        number = int(address)
        for spelled in (str(number), hex(number), f"0{number:o}", f"0{address}", f"{address}.1", f"{address}:80"):
            assert canonical("host", spelled) is None
        assert canonical("ip", f"::ffff:{address}") == canonical("host", f"{address}.") == expected


@settings(max_examples=examples(400, 100), deadline=None)
@given(
    st.datetimes(min_value=datetime(1900, 1, 2), max_value=datetime(2100, 1, 1)),
    st.datetimes(min_value=datetime(1900, 1, 2), max_value=datetime(2100, 1, 1)),
    st.integers(-14 * 60, 14 * 60),
)
def test_the_order_of_canonical_times_is_the_order_of_moments(one: datetime, other: datetime, minutes: int) -> None:
    zone = timezone(timedelta(minutes=minutes))
    first, second = one.replace(tzinfo=UTC), other.replace(tzinfo=UTC)
    left, right = canonical("time", first.isoformat()), canonical("time", second.astimezone(zone).isoformat())
    assert left is not None
    assert right is not None
    assert (left < right, left == right) == (first < second, first == second)


@pytest.mark.parametrize(
    ("form", "text", "expected"),
    [
        ("url", "HTTP://Example.COM:80/a/../b?x=%7e#f", "http://example.com/b?x=~"),
        ("url", "https://example.com:8443?q=a b".replace(" ", "%20"), "https://example.com:8443/?q=a%20b"),
        ("url", "https://bücher.example/ö", "https://xn--bcher-kva.example/%C3%B6"),
        ("url", "https://[::FFFF:10.0.0.1]/", "https://10.0.0.1/"),
        ("host", "Learn.Microsoft.COM.", "learn.microsoft.com"),
        ("host", "аpple.com", "xn--pple-43d.com"),
        ("host", "WS_01", "ws_01"),
        ("ip", "2001:DB8:0:0:0:0:0:1", "2001:db8::1"),
        ("email", "A.Singh@Contoso.COM", "a.singh@contoso.com"),
        ("time", "2026-11-28T10:30:00.5+01:00", "2026-11-28T09:30:00.500000Z"),
        ("kql-template", " RAW_SignIns ", "raw_signins"),
        ("path", "./", "."),
        ("path-any-case", "Confidential/Ä.TXT", "confidential/ä.txt"),
    ],
)
def test_canonical_forms(form: str, text: str, expected: str) -> None:
    assert canonical(form, text) == expected


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("piece", ["a", "é", "a.", "ü.", ":", "%41", "/..", "/a", "0", "1.", "xn--", "@", " ", "ǅ"])
def test_a_million_letters_are_refused_before_anything_slow_sees_them(form: str, piece: str) -> None:
    text = piece * (1_000_000 // len(piece))
    for start in ("", "https://example.com/", "https://", "a@", "["):
        assert canonical(form, start + text) is None


TYPED = parse_policy(
    """
tools:
  - name: typed
    parameters:
      - {name: string, type: string}
      - {name: integer, type: integer}
      - {name: number, type: number}
      - {name: boolean, type: boolean}
      - {name: array, type: array}
    taint_rules: [{rule_id: typed_any, condition: "true", taint_level: LOW}]
""",
    source="typed.yaml",
).tools["typed"]
SCALARS = (
    st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.sampled_from("0123456789-+.eE tru"), max_size=6)
)


@pytest.mark.requirement("GATE-6")
@settings(max_examples=examples(600, 200), deadline=None)
@given(st.dictionaries(st.sampled_from([*TYPED.parameters, "other"]), SCALARS | st.lists(SCALARS, max_size=2)))
@example({"integer": "-0", "number": "1.10"})
@example({"integer": 1e300, "boolean": "true"})
def test_what_is_read_in_the_declared_type_says_what_was_written(written: dict[str, Any]) -> None:
    read = as_declared(TYPED, written)
    assert as_declared(TYPED, read) == read
    assert read.keys() == written.keys()
    for name, value in read.items():
        before = written[name]
        if isinstance(before, str) or isinstance(value, str):
            assert value == before or _spelled(value) == _spelled(before)
        else:
            assert value == before


def _spelled(value: Any) -> str:
    return value if isinstance(value, str) else canonical_json(value).decode()

"""Texts of arguments with a format: refused, or brought to one form that other readers take for the same thing."""

from __future__ import annotations

import ipaddress
import posixpath
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from tests.support.fuzz.target import Check, Target, Violation, expect

from sentinel_rag.contracts.query_results import parse_time
from sentinel_rag.gateway.argument_formats import FORMATS, NotCanonical
from sentinel_rag.gateway.policy import decide, parse_policy
from sentinel_rag.gateway.request_body import ArgumentFault, CanonicalArguments, fit

_POLICY = "tools:\n" + "".join(
    f"""  - name: use_{form.replace("-", "_")}
    parameters: [{{name: it, type: string, required: true, format: {form}}}]
    taint_rules:
      - {{rule_id: {form}_a, condition: "it.startswith('private/') or it.contains('127.0.0.1')", taint_level: HIGH}}
      - {{rule_id: {form}_b, condition: "it < 'm'", taint_level: MEDIUM}}
"""
    for form in FORMATS
)
_ANY_CASE = ("host", "ip", "email", "kql-template", "workspace", "path-any-case")


@contextmanager
def _opened(_: Path) -> Iterator[Check]:
    tools = parse_policy(_POLICY).tools

    def check(content: bytes) -> None:
        text = content.decode("utf-8", "replace")
        for form in FORMATS:
            found = _canonical(form, text)
            if found is None:
                continue
            expect(found != "" and _canonical(form, found) == found, f"the {form} is no fixed point")
            tool = tools[f"use_{form.replace('-', '_')}"]
            spelled, plain = (fit(tool, {"it": each}) for each in (text, found))
            if not text.strip():
                expect(isinstance(spelled, ArgumentFault), f"a blank {form} is taken")
                continue
            if not isinstance(spelled, CanonicalArguments) or not isinstance(plain, CanonicalArguments):
                raise Violation(f"a {form} has a canonical form, and the gateway refuses it")
            expect(spelled.sha256 == plain.sha256, f"two spellings of a {form} are two calls")
            expect(decide(tool, spelled.value) == decide(tool, plain.value), f"two spellings of a {form}, two verdicts")
            if form in _ANY_CASE:
                for other in (text.lower(), text.upper()) if text.isascii() else ():
                    expect(_canonical(form, other) in (found, None), f"two cases of one {form} are two things")
            second = _OPINIONS.get(form)
            if second is not None:
                second(text, found)

    yield check


def _canonical(form: str, text: str) -> str | None:
    try:
        return FORMATS[form](text)
    except NotCanonical:
        return None


def _as_a_file_system_reads(text: str, found: str) -> None:
    read = posixpath.normpath(posixpath.join("/root", text))
    expect(read == posixpath.normpath(f"/root/{found}"), "a file system finds another place")
    expect(read == "/root" or read.startswith("/root/"), "a path leaves its root")


def _as_urllib_reads(text: str, found: str) -> None:
    read, canonical = urlsplit(text), urlsplit(found)
    expect(read.scheme == canonical.scheme, "urllib reads another scheme")
    expect(FORMATS["host"](read.hostname or "") == (canonical.hostname or ""), "urllib reads another host")
    default = {"http": 80, "https": 443}[canonical.scheme]
    expect((read.port or default) == (canonical.port or default), "urllib reads another port")
    expect(canonical.username is None and canonical.password is None, "urllib reads a user")


def _as_ipaddress_reads(text: str, found: str) -> None:
    read = ipaddress.ip_address(text)
    mapped = getattr(read, "ipv4_mapped", None)
    expect(str(mapped or read) == found, "the standard library reads another address")


def _as_our_times_read(text: str, found: str) -> None:
    expect(parse_time(text.upper()) == parse_time(found), "it is another moment")


_OPINIONS: Mapping[str, Callable[[str, str], None]] = {
    "path": _as_a_file_system_reads,
    "url": _as_urllib_reads,
    "ip": _as_ipaddress_reads,
    "time": _as_our_times_read,
}


def _seeds() -> Sequence[bytes]:
    return [
        text.encode()
        for text in (
            *("a/../b/./c", "./C:x", "public/Ärger.txt/", "x;y/..", "a.b.", "~", "confidential//a", "PROGRA~1/x"),
            *("https://EXAMPLE.com:443/a/%2e%2E/b?%41=%c3%a9#top", "http://[::FFFF:10.0.0.1]:8080/"),
            *("https://faß.de/é",),
            *("http://xn--fa-hia.de./a;b/..;c/", "https://h/a/./../..//", "http://1.2.3/", "HTTP://a@b/"),
            *("Host.Example.", "xn--bcher-kva.example", "0x7f.1", "127.1", "010.0.0.1", "::1", "[::ffff:1.2.3.4]"),
            *("fe80::1%eth0", "A.B+c@D.Example", '"a"@b', "2026-11-28T09:30:00.1234567+05:30", "2026-11-28t24:00z"),
            *("  Failed_Sign_Ins ", "Contoso-Prod_1", "ıI/ß/ǅ", "ﬁle/ｅ", "a\u200bb", "e\u0301"),
        )
    ]


CANONICAL_FORM = Target(
    name="canonical-form",
    promise="A text is refused, or has one form, which is its own form; both spellings are the same call with the same "
    "verdict, and the file system, urllib and ipaddress take both for the same thing.",
    opened=_opened,
    seeds=_seeds,
    tokens=(
        *(b"..", b"./", b"%2e", b"%2F", b"%5c", b"%25", b"%u002f", b"//", b"\\", b";", b"@", b"#", b"?", b"://"),
        *(b"[", b"]"),
        *(b"http://", b"https://", b"HTTPS://", b":443", b":080", b"xn--", b"0x", b"0b1", b"::", b"::ffff:"),
        *(b"%25eth0",),
        *(
            "é".encode(),
            "e\u0301".encode(),
            "ｅ".encode(),
            "ß".encode(),
            "ı".encode(),
            "\u200b".encode(),
            "。".encode(),
        ),
        *(b"Z", b"+00:00", b"-23:59", b"T24:00:00", b":60", b".9999999", b"0001-01-01", b"9999-12-31", b"\t"),
        *(b"\xc2\xa0",),
    ),
    largest=600,
    calls=(6_000, 1_500),
)

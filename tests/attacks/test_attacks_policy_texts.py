"""Attacker controls: the arguments of a call, against rules whose texts hold what other engines trip over.

Wanted: a star that crosses a slash, an ` or ` inside quotes that splits a rule in two, a value so long or so nested
that a deny rule gives up, a number or an unset argument that is another one when the rule sees it. The rule says what
it says; what it does not allow is refused, on record, and not sent.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.support.mcp_over_http import SESSIONS, RawMcp

from sentinel_rag.contracts.tool_calls import ToolSchema
from sentinel_rag.gateway.policy import parse_policy
from sentinel_rag_testing.fake_tool_server import FakeToolServer
from sentinel_rag_testing.running_gateway import HttpAnswer, RunningGateway, running_gateway

POLICY = r"""
tools:
  - name: one_level
    effect: read
    parameters: [{name: path, type: string, required: true, format: path}]
    taint_rules:
      - {rule_id: one_level_only, condition: "path.matches(r'^public/[^/]+$')", taint_level: LOW}
  - name: star
    effect: read
    parameters: [{name: path, type: string, required: true}]
    taint_rules:
      - {rule_id: star_is_a_letter, condition: "path == 'public/*' or path.startswith('docs/*')", taint_level: LOW}
  - name: quoted
    effect: read
    parameters: [{name: text, type: string, required: true}]
    taint_rules:
      - {rule_id: quoted_words, condition: "text == 'cats or dogs' or text == 'salt and not pepper'", taint_level: LOW}
      - {rule_id: quoted_quotes, condition: "text == 'it\\'s \" or true or \"'", taint_level: LOW}
  - name: screened
    effect: read
    parameters: [{name: text, type: string, required: true}]
    taint_rules:
      - rule_id: screened_word
        condition: "text.contains('admin') or text.matches('(a+)+[$]')"
        deny: true
        taint_level: HIGH
      - {rule_id: screened_any, condition: "true", taint_level: LOW}
  - name: numbered
    effect: read
    parameters:
      - {name: number, type: string}
      - {name: count, type: integer}
    taint_rules:
      - {rule_id: numbered_713, condition: "has(number) and number == '713'", taint_level: LOW}
      - {rule_id: counted_713, condition: "has(count) and count == 713", taint_level: LOW}
      - {rule_id: numbered_00713, condition: "has(number) and number == '00713'", taint_level: MEDIUM}
  - name: unset
    effect: read
    parameters: [{name: owner, type: string}, {name: limit, type: integer}]
    taint_rules:
      - {rule_id: unset_owner, condition: "not has(owner)", taint_level: LOW}
"""


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningGateway]:
    policy = parse_policy(POLICY, source="policy_texts.yaml")
    schemas = [
        ToolSchema(tool.name, "", {"type": "object", "properties": {name: {} for name in tool.parameters}})
        for tool in policy.tools.values()
    ]
    with (
        FakeToolServer(schemas, token="upstream-token").running() as executor,
        running_gateway(policy, tmp_path_factory.mktemp("texts") / "state", executor) as running,
    ):
        yield running


def expect_refused(gateway: RunningGateway, before: int, answer: HttpAnswer, *statuses: int) -> None:
    assert answer.status in (statuses or (403,)), answer.body
    record = gateway.last_record()
    assert (record["kind"], record["audit_id"]) == ("refusal", answer.body["audit_id"])
    assert len(gateway.executor.calls) == before


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("one_level", {"path": "public/a/b"}),
        ("one_level", {"path": "public/"}),
        ("one_level", {"path": "public/a%2fb"}),
        ("one_level", {"path": "public/a\\b"}),
        ("one_level", {"path": "public/a\n/b"}),
        ("one_level", {"path": "public/a\nb"}),
        ("star", {"path": "public/a"}),
        ("star", {"path": "public/a/b"}),
        ("star", {"path": "docs/a"}),
        ("star", {"path": "docs/"}),
        ("quoted", {"text": "cats"}),
        ("quoted", {"text": "dogs"}),
        ("quoted", {"text": "cats ' or ' dogs"}),
        ("quoted", {"text": "x' or 'a'=='a"}),
        ("quoted", {"text": "salt"}),
        ("quoted", {"text": ""}),
        ("quoted", {"text": "it"}),
        ("numbered", {"number": "0713"}),
        ("numbered", {"number": "713.0"}),
        ("numbered", {"number": "7_13"}),
        ("numbered", {"number": "\u0667\u0661\u0663"}),
        ("numbered", {"count": 712}),
        ("numbered", {}),
        ("unset", {"owner": "ana"}),
        ("unset", {"owner": ""}),
        ("unset", {"owner": "null"}),
    ],
    ids=lambda value: json.dumps(value)[:50],
)
def test_a_rule_allows_no_more_than_its_text(gateway: RunningGateway, tool: str, arguments: dict[str, Any]) -> None:
    before = len(gateway.executor.calls)
    expect_refused(gateway, before, gateway.call(tool, arguments), 403, 422)


@pytest.mark.parametrize(
    ("tool", "arguments", "rule"),
    [
        ("one_level", {"path": "public/a"}, "one_level_only"),
        ("star", {"path": "public/*"}, "star_is_a_letter"),
        ("star", {"path": "docs/*/x"}, "star_is_a_letter"),
        ("quoted", {"text": "cats or dogs"}, "quoted_words"),
        ("quoted", {"text": "salt and not pepper"}, "quoted_words"),
        ("quoted", {"text": 'it\'s " or true or "'}, "quoted_quotes"),
        ("numbered", {"number": "713"}, "numbered_713"),
        ("numbered", {"count": 713}, "counted_713"),
        ("numbered", {"number": "00713"}, "numbered_00713"),
        ("unset", {}, "unset_owner"),
        ("unset", {"limit": 0}, "unset_owner"),
    ],
    ids=lambda value: json.dumps(value)[:50],
)
def test_a_rule_allows_what_it_says_and_the_tool_gets_it_unchanged(
    gateway: RunningGateway, tool: str, arguments: dict[str, Any], rule: str
) -> None:
    answer = gateway.call(tool, arguments)
    assert answer.status == 200
    sent = gateway.executor.calls[-1].arguments
    assert json.dumps(sent, sort_keys=True) == json.dumps(arguments, sort_keys=True)
    [intent] = [
        record
        for record in gateway.records()
        if record["kind"] == "intent" and record["audit_id"] == answer.body["audit_id"]
    ]
    assert (intent["rule_id"], intent["arguments"]) == (rule, arguments)


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("unset", {"owner": None}),
        ("numbered", {"number": 713}),
        ("numbered", {"count": "713"}),
        ("numbered", {"count": 713.0}),
        ("numbered", {"count": True}),
    ],
    ids=lambda value: json.dumps(value)[:50],
)
def test_null_is_not_unset_and_no_type_becomes_another(
    gateway: RunningGateway, tool: str, arguments: dict[str, Any]
) -> None:
    before = len(gateway.executor.calls)
    answer = gateway.call(tool, arguments)
    expect_refused(gateway, before, answer, 422)
    assert answer.body["reason"] == "invalid_argument"


@pytest.mark.parametrize(
    ("tool", "written", "read", "rule"),
    [
        ("numbered", {"number": 713}, {"number": "713"}, "numbered_713"),
        ("numbered", {"count": "713"}, {"count": 713}, "counted_713"),
        ("numbered", {"count": 713.0}, {"count": 713}, "counted_713"),
        ("unset", {"owner": None, "limit": "0"}, {"limit": 0}, "unset_owner"),
    ],
    ids=lambda value: json.dumps(value)[:50],
)
def test_what_a_model_writes_over_mcp_is_read_first_and_judged_as_it_is_sent(
    gateway: RunningGateway, tool: str, written: dict[str, Any], read: dict[str, Any], rule: str
) -> None:
    assert RawMcp(gateway.url, gateway.key, SESSIONS).initialized().call(tool, written)["isError"] is False
    assert json.dumps(gateway.executor.calls[-1].arguments) == json.dumps(read)
    intent = [record for record in gateway.records() if record["kind"] == "intent"][-1]
    assert (intent["rule_id"], intent["arguments"]) == (rule, read)


@pytest.mark.parametrize(
    "written",
    [
        *({"number": value} for value in (713.0, True, 713.5, [713])),
        *(
            {"count": value}
            for value in ("0713", " 713", "713.0", "7_13", "7.13e2", "+713", "\u0667\u0661\u0663", "-0")
        ),
        *({"count": value} for value in (713.5, 1e300, True, "true", "1" * 40, ["713"], "")),
    ],
    ids=lambda value: json.dumps(value)[:50],
)
def test_nothing_that_is_not_certain_is_read_as_a_number(gateway: RunningGateway, written: dict[str, Any]) -> None:
    before = len(gateway.executor.calls)
    assert RawMcp(gateway.url, gateway.key, SESSIONS).initialized().call("numbered", written)["isError"] is True
    assert len(gateway.executor.calls) == before


@pytest.mark.parametrize(
    "text",
    [
        "x" * 900_000 + "admin",
        "admin" + "x" * 900_000,
        "\n" * 200_000 + "admin",
        "\u0000admin",
        "a" * 100_000 + "$",
        "(" * 100_000 + "admin" + ")" * 100_000,
    ],
    ids=["at the end", "at the start", "after many lines", "after a null", "for a pattern", "nested"],
)
def test_no_length_or_nesting_of_a_value_takes_it_past_a_deny_rule(gateway: RunningGateway, text: str) -> None:
    before = len(gateway.executor.calls)
    expect_refused(gateway, before, gateway.call("screened", {"text": text}), 403, 413, 422)

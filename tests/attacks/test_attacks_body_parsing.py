"""Attacker controls: every byte of the request body.

Wanted: a body that the gateway reads one way and a tool server another, or one that stops it. The bytes that a tool
server gets are the canonical form of what was judged; what has no one reading is refused, recorded and not sent.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from law_examples import examples
from sentinel_rag.contracts.json_values import canonical_json
from sentinel_rag.gateway.admission import GatewayLimits
from sentinel_rag.gateway.policy import Policy, parse_policy
from sentinel_rag.gateway.request_body import MalformedBody, parse_execute, parse_object
from sentinel_rag_testing.fake_tool_server import FakeToolServer
from sentinel_rag_testing.running_gateway import RunningGateway, running_gateway
from waiting import WAIT_S

POLICY = """
tools:
  - name: query_incidents
    effect: read
    parameters:
      - {name: owner, type: string}
      - {name: limit, type: integer}
      - {name: score, type: number}
      - {name: deep, type: object}
      - {name: tags, type: array, items: string}
    taint_rules: [{rule_id: any, condition: "true", taint_level: LOW}]
"""


@pytest.fixture(scope="module")
def small_gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningGateway]:
    limits = GatewayLimits(body_bytes=20_000)
    with (
        FakeToolServer().running() as executor,
        running_gateway(parse_policy(POLICY), tmp_path_factory.mktemp("state"), executor, limits=limits) as running,
    ):
        yield running


def args(text: str) -> bytes:
    return f'{{"session_id":"s","tool_name":"query_incidents","args":{text}}}'.encode()


AMBIGUOUS = {
    "key twice in args": args('{"owner":"a","owner":"b"}'),
    "key twice, one escaped": args('{"owner":"a","\\u006fwner":"b"}'),
    "key twice deep": args('{"deep":{"x":{"a":1,"a":2}}}'),
    "tool twice": b'{"session_id":"s","tool_name":"query_incidents","tool_name":"file_read","args":{}}',
    "session twice": b'{"session_id":"s","session_id":"t","tool_name":"query_incidents","args":{}}',
    "NaN": args('{"score":NaN}'),
    "Infinity": args('{"score":-Infinity}'),
    "too large a number": args('{"score":1e999}'),
    "integer beyond a double": args('{"limit":9007199254740993}'),
    "huge integer": args('{"limit":' + "9" * 5_000 + "}"),
    "lone surrogate": args('{"owner":"\\ud800"}'),
    "lone surrogate as a key": args('{"\\udc00":1}'),
    "surrogates the wrong way round": args('{"owner":"\\udc00\\ud800"}'),
    "raw surrogate bytes": args('{"owner":"').replace(b'"}', b"") + b'\xed\xa0\x80"}}',
    "not UTF-8": args('{"owner":"x"}').replace(b'"x"', b'"\xff"'),
    "overlong": args('{"owner":"x"}').replace(b'"x"', b'"\xc0\xaf"'),
    "byte order mark": b"\xef\xbb\xbf" + args("{}"),
    "UTF-16": args("{}").decode().encode("utf-16"),
    "deep arrays": args('{"deep":' + "[" * 65 + "]" * 65 + "}"),
    "very deep arrays": args('{"deep":' + "[" * 9_000),
    "deep objects": args('{"deep":' + '{"a":' * 70 + "1" + "}" * 70 + "}"),
    "deep behind quotes": args('{"owner":"\\"[","deep":' + "[" * 65 + "]" * 65 + "}"),
    "quotes without an end": b'{"a":"' + b'\\"' * 9_000,
    "comment": args("{/* */}"),
    "trailing comma": args('{"limit":1,}'),
    "single quotes": args("{'limit':1}"),
    "leading zero": args('{"limit":007}'),
    "control character": args('{"owner":"a\nb"}'),
    "two documents": args("{}") + args("{}"),
    "trailing bytes": args("{}") + b"x",
    "nothing": b"",
    "null": b"null",
    "list": b"[]",
    "text": b'"x"',
    "args missing": b'{"session_id":"s","tool_name":"query_incidents"}',
    "args null": args("null"),
    "args list": args("[]"),
    "args text": args('"{}"'),
    "another field": b'{"session_id":"s","tool_name":"query_incidents","args":{},"approved":true}',
    "label from the agent": b'{"session_id":"s","tool_name":"query_incidents","args":{},"label":"LOW"}',
    "tool not a text": b'{"session_id":"s","tool_name":["query_incidents"],"args":{}}',
    "tool empty": b'{"session_id":"s","tool_name":"","args":{}}',
    "tool too long": b'{"session_id":"s","tool_name":"' + b"a" * 300 + b'","args":{}}',
    "session empty": b'{"session_id":"","tool_name":"query_incidents","args":{}}',
    "session with a line end": b'{"session_id":"a\\nb","tool_name":"query_incidents","args":{}}',
    "session a number": b'{"session_id":1,"tool_name":"query_incidents","args":{}}',
    "session too long": b'{"session_id":"' + b"s" * 129 + b'","tool_name":"query_incidents","args":{}}',
}

MISTYPED = {
    "number in quotes": ('{"limit":"00713"}', "limit"),
    "fraction for an integer": ('{"limit":1.0}', "limit"),
    "true for an integer": ('{"limit":true}', "limit"),
    "number for a text": ('{"owner":713}', "owner"),
    "null for unset": ('{"owner":null}', "owner"),
    "true for a number": ('{"score":false}', "score"),
    "list for an object": ('{"deep":[]}', "deep"),
    "object for a list": ('{"tags":{}}', "tags"),
    "mixed list": ('{"tags":["a",1]}', "tags"),
    "null in a list": ('{"tags":[null]}', "tags"),
    "name in another case": ('{"Owner":"a"}', "Owner"),
    "name with a blank": ('{"owner ":"a"}', ""),
    "name in full width": ('{"ｏwner":"a"}', ""),
    "unknown name": ('{"__proto__":{}}', "__proto__"),
}


@pytest.mark.parametrize("body", AMBIGUOUS.values(), ids=AMBIGUOUS)
def test_what_has_no_one_reading_is_refused_recorded_and_not_sent(small_gateway: RunningGateway, body: bytes) -> None:
    before = len(small_gateway.executor.calls)
    answer = small_gateway.request("POST", "/v1/proxy-execute", key=small_gateway.key, body=body)
    assert (answer.status, answer.body["reason"]) == (422, "malformed_body")
    record = small_gateway.last_record()
    assert (record["audit_id"], record["reason"]) == (answer.body["audit_id"], "malformed_body")
    assert (record["tool"], record["arguments"], record["http_status"]) == (None, None, 422)
    assert len(small_gateway.executor.calls) == before


@pytest.mark.parametrize(("text", "field"), MISTYPED.values(), ids=MISTYPED)
def test_nothing_is_converted_to_fit(small_gateway: RunningGateway, text: str, field: str) -> None:
    before = len(small_gateway.executor.calls)
    answer = small_gateway.request("POST", "/v1/proxy-execute", key=small_gateway.key, body=args(text))
    assert (answer.status, answer.body["reason"]) == (422, "invalid_argument")
    assert answer.body["error"]["field"] == field
    record = small_gateway.last_record()
    assert (record["audit_id"], record["arguments"]) == (answer.body["audit_id"], json.loads(text))
    assert len(small_gateway.executor.calls) == before


@pytest.mark.parametrize(
    "text",
    [
        '{"owner":"a\\/b \\u00e9 \\ud83d\\ude00 \\u0000 [[[{{{ \\" \\\\ "}',
        '{ "score" : 1E2 , "limit" : -0 }',
        '{"deep":{"z":[1,2.50,null,true,""],"a":{"":[]}}}',
        '{"deep":' + '{"a":' * 60 + "1" + "}" * 60 + "}",
        '{"owner":"' + "[" * 500 + '"}',
        '{"limit":9007199254740991,"tags":[]}',
        "{}",
    ],
)
def test_what_was_judged_is_what_is_sent_byte_for_byte(small_gateway: RunningGateway, text: str) -> None:
    answer = small_gateway.request("POST", "/v1/proxy-execute", key=small_gateway.key, body=args(text))
    assert answer.status == 200
    judged = canonical_json(json.loads(text))
    assert b'"arguments":' + judged + b"," in small_gateway.executor.calls[-1].body
    assert small_gateway.executor.calls[-1].arguments == json.loads(text) == small_gateway.records()[-2]["arguments"]


@pytest.mark.parametrize(
    "headers",
    [
        {"Content-Type": "text/plain"},
        {"Content-Type": "application/x-www-form-urlencoded"},
        {"Content-Type": "application/json+evil"},
        {"Content-Type": ""},
        {"Content-Encoding": "gzip"},
    ],
    ids=str,
)
def test_another_media_type_is_415(small_gateway: RunningGateway, headers: dict[str, str]) -> None:
    answer = small_gateway.request("POST", "/v1/proxy-execute", key=small_gateway.key, body=args("{}"), headers=headers)
    assert (answer.status, answer.body["reason"]) == (415, "unsupported_media_type")


def test_a_body_over_the_limit_is_413_declared_or_not(small_gateway: RunningGateway) -> None:
    body = args('{"owner":"' + "a" * 20_000 + '"}')
    answer = small_gateway.request("POST", "/v1/proxy-execute", key=small_gateway.key, body=body)
    assert (answer.status, answer.body["reason"]) == (413, "too_large")
    address = urlsplit(small_gateway.url)
    head = (
        f"POST /v1/proxy-execute HTTP/1.1\r\nHost: 127.0.0.1\r\nX-API-Key: {small_gateway.key}\r\n"
        "Content-Type: application/json\r\n"
    )
    for extra, content in [
        ("Content-Length: 2000000000\r\n\r\n", b"{"),
        ("Transfer-Encoding: chunked\r\n\r\n", f"{len(body):x}\r\n".encode() + body + b"\r\n0\r\n\r\n"),
    ]:
        with socket.create_connection((address.hostname, address.port), timeout=WAIT_S) as connection:
            connection.sendall((head + extra).encode() + content)
            assert connection.makefile("rb").readline().split()[1] == b"413"


def test_a_body_that_never_ends_is_408(shipped_policy: Policy, executor: FakeToolServer, tmp_path: object) -> None:
    from pathlib import Path

    limits = GatewayLimits(body_seconds=0.2)
    with running_gateway(shipped_policy, Path(str(tmp_path)), executor, limits=limits) as gateway:
        address = urlsplit(gateway.url)
        with socket.create_connection((address.hostname, address.port), timeout=WAIT_S) as connection:
            connection.sendall(
                f"POST /v1/proxy-execute HTTP/1.1\r\nHost: 127.0.0.1\r\nX-API-Key: {gateway.key}\r\n"
                "Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{".encode()
            )
            assert connection.makefile("rb").readline().split()[1] == b"408"


def test_64_levels_are_read_and_65_are_not() -> None:
    def nested(levels: int) -> bytes:
        return b'{"a":' + b"[" * (levels - 1) + b"]" * (levels - 1) + b"}"

    assert parse_object(nested(64))
    with pytest.raises(MalformedBody, match="64"):
        parse_object(nested(65))
    siblings = b'{"a":[' + b",".join([b"[{}]"] * 200) + b"]}"
    assert len(parse_object(siblings)["a"]) == 200


json_texts = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
).map(json.dumps)


@settings(max_examples=examples(2_000, 100), deadline=None)
@given(
    st.one_of(st.binary(max_size=200), json_texts.map(str.encode), json_texts.map(lambda text: args(text))), st.data()
)
def test_any_bytes_are_read_or_refused_and_mutations_too(body: bytes, data: st.DataObject) -> None:
    if body and data.draw(st.booleans()):
        place = data.draw(st.integers(0, len(body) - 1))
        body = body[:place] + data.draw(st.binary(max_size=3)) + body[place + data.draw(st.integers(0, 3)) :]
    try:
        document = parse_object(body)
    except MalformedBody:
        return
    assert json.loads(canonical_json(document)) == document
    try:
        wish = parse_execute(body)
    except MalformedBody:
        return
    assert canonical_json(dict(wish.args)) == canonical_json(document["args"])

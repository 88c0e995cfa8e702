"""What a `tools/call` result becomes: nothing of it is lost, nothing is told twice, nothing is re-typed."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from sentinel_rag.gateway.upstream import Returned, Unanswered
from sentinel_rag.gateway.upstream.mcp_messages import OTHER_CONTENT, reply_of
from sentinel_rag.gateway.upstream.port import ServerCredentials


def text(value: str) -> dict[str, Any]:
    return {"type": "text", "text": value}


IMAGE = {"type": "image", "data": "aGk=", "mimeType": "image/png"}


def value_of(structured: Any, *content: Any, **options: Any) -> Any:
    reply = reply_of({"id": 1, "result": {"content": list(content), "structuredContent": structured}}, **options)
    assert isinstance(reply, Returned), reply
    assert msgspec.json.decode(reply.encoded) == reply.value
    return reply.value


@pytest.mark.parametrize(
    ("structured", "twin"),
    [
        ({"a": 1}, ['{"a": 1}']),
        ({"b": [1.5, None], "a": "é"}, ['{\n "a": "\\u00e9", "b": [1.5, null]}']),
        ({"result": 7}, ["7"]),
        ({"result": "7"}, ["7"]),
        ({"result": None}, ["null"]),
        ({"result": ["x", 2]}, ["x", "2"]),
        ({"result": []}, []),
        ([1, 2], ["[1,2]"]),
        (False, ["false"]),
    ],
)
def test_text_that_says_the_same_is_left_out(structured: Any, twin: list[str]) -> None:
    assert value_of(structured, *map(text, twin)) == structured
    marked = structured if isinstance(structured, dict) else {"structuredContent": structured}
    assert value_of(structured, *map(text, twin), IMAGE) == {**marked, OTHER_CONTENT: [IMAGE]}


@pytest.mark.parametrize(
    ("structured", "other"),
    [
        ({"a": 1}, ['{"a": true}']),
        ({"a": 1}, ['{"a": 1.0}']),
        ({"a": "1"}, ['{"a": 1}']),
        ({"a": 1}, ['{"a": 1, "b": 2}']),
        ({"a": 1}, ['{"a": 1}', "and more"]),
        ({"a": 1}, ["1"]),
        ({"result": "7"}, ['"7"']),
        ({"result": ["x", "y"]}, ["y", "x"]),
        ({"result": [1], "more": 2}, ["1"]),
        ({}, [""]),
        ({"a": 1}, ["[" * 100_000]),
    ],
)
def test_text_that_says_anything_else_is_kept(structured: Any, other: list[str]) -> None:
    assert value_of(structured, *map(text, other)) == {**structured, OTHER_CONTENT: [text(one) for one in other]}


def test_the_summary_line_of_our_own_servers_is_left_out_and_nothing_else_is() -> None:
    assert value_of({"rows": []}, text("0 rows."), is_ours=True) == {"rows": []}
    assert value_of({"rows": []}, text("0 rows."), IMAGE, is_ours=True) == {"rows": [], OTHER_CONTENT: [IMAGE]}
    assert value_of(None, text("0 rows."), is_ours=True) == "0 rows."


def test_a_server_cannot_write_under_the_gateways_key() -> None:
    reply = reply_of({"id": 1, "result": {"content": [], "structuredContent": {OTHER_CONTENT: [IMAGE]}}})
    assert isinstance(reply, Unanswered)
    assert OTHER_CONTENT in reply.error.message


def test_a_credential_is_taken_out_wherever_it_stands() -> None:
    secret = 'pass"word\\é-1'
    found = {"a": [f"x{secret}y"], secret: {"b": secret}, "short": "abc", "n": 5, "none": None}
    reply = ServerCredentials([secret, "abc"]).hidden_in(Returned(msgspec.json.encode(found), found))
    assert isinstance(reply, Returned)
    assert reply.value == {
        "a": ["x[credential]y"],
        "[credential]": {"b": "[credential]"},
        "short": "abc",
        "n": 5,
        "none": None,
    }
    assert msgspec.json.decode(reply.encoded) == reply.value
    untouched = Returned(b"{}", {})
    assert ServerCredentials([secret]).hidden_in(untouched) is untouched

"""Attacker controls: the MCP result of a tool server, in every part that a result can have.

Wanted: a place that the masking does not look at. Where the policy hides, the secret is in no part of the answer,
whatever the result is made of; where it quotes, each text is marked; and what cannot be shown safely is refused.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from labelled_tools import labelled_gateway

from sentinel_rag_testing.fake_tool_server import AnswersWith, Sends
from sentinel_rag_testing.running_gateway import RunningGateway

SECRET = "powershell -enc SECRET"
TEXT = {"type": "text", "text": SECRET}
ROWS = {"rows": [{"Title": "t", "CommandLine": SECRET}], "total": 1}

HIDDEN: Mapping[str, Mapping[str, Any]] = {
    "structured alone": {"structuredContent": ROWS},
    "structured with its twin": {"structuredContent": ROWS, "content": [{"type": "text", "text": json.dumps(ROWS)}]},
    "structured with another text": {"structuredContent": ROWS, "content": [TEXT]},
    "structured with many blocks": {"structuredContent": ROWS, "content": [TEXT, {"type": "text", "text": "x"}, TEXT]},
    "text": {"content": [TEXT]},
    "two texts": {"content": [{"type": "text", "text": "x"}, TEXT]},
    "array": {"structuredContent": [SECRET], "content": []},
    "array of rows": {"structuredContent": [{"CommandLine": SECRET}], "content": [TEXT]},
    "scalar": {"structuredContent": SECRET, "content": []},
    "wrapped scalar": {"structuredContent": {"rows": [{"CommandLine": [SECRET]}]}, "content": []},
    "image": {"content": [{"type": "image", "data": SECRET, "mimeType": "image/png"}]},
    "audio beside": {
        "structuredContent": ROWS,
        "content": [{"type": "audio", "data": SECRET, "mimeType": "audio/wav"}],
    },
    "embedded resource": {"content": [{"type": "resource", "resource": {"uri": "file:///x", "text": SECRET}}]},
    "link": {
        "structuredContent": {},
        "content": [{"type": "resource_link", "uri": f"https://x/{SECRET}", "name": "n"}],
    },
    "annotations": {"content": [{"type": "text", "text": "x", "annotations": {"audience": [SECRET]}}]},
    "a kind that nobody knows": {"structuredContent": ROWS, "content": [{"type": "hologram", "cells": [SECRET]}]},
    "blocks that are none": {"structuredContent": ROWS, "content": [SECRET, None, 7, [SECRET]]},
    "error": {"isError": True, "content": [TEXT]},
    "error with structure": {"isError": True, "structuredContent": ROWS, "content": []},
    "typed error": {
        "isError": True,
        "structuredContent": {"kind": "error", "code": "internal", "message": SECRET, "next_step": SECRET},
        "content": [TEXT],
    },
    "meta": {"structuredContent": {"total": 1}, "content": [], "_meta": {"note": SECRET}},
}

NESTED = b'{"a":' * 3_000 + b"1" + b"}" * 3_000


@pytest.fixture(scope="module")
def labelled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningGateway]:
    with labelled_gateway(tmp_path_factory.mktemp("parts") / "state") as gateway:
        yield gateway


@pytest.mark.requirement("TAINT-3")
@pytest.mark.parametrize("result", HIDDEN.values(), ids=HIDDEN)
def test_what_is_hidden_is_in_no_part_of_the_answer(labelled: RunningGateway, result: Mapping[str, Any]) -> None:
    labelled.executor.on("read_alert", AnswersWith(result))
    session = labelled.open_session()
    answer = labelled.call("read_alert", {}, session_id=session)
    assert "SECRET" not in answer.content.decode()
    assert answer.status == (502 if result.get("isError") else 200), answer.body
    assert labelled.context(session)[0] != "HIGH"
    outcome = labelled.last_record()
    assert (outcome["audit_id"], outcome["kind"]) == (answer.body["audit_id"], "outcome")
    assert outcome["status"] == ("error" if result.get("isError") else "success")


EMPTY: Mapping[str, tuple[Mapping[str, Any], Any]] = {
    "no content": ({"content": []}, None),
    "an empty object": ({"structuredContent": {}, "content": []}, {}),
    "an empty array": ({"structuredContent": [], "content": []}, []),
    "zero": ({"structuredContent": 0, "content": []}, 0),
    "false": ({"structuredContent": False, "content": []}, False),
    "an empty text": ({"content": [{"type": "text", "text": ""}]}, ""),
    "a number as text": ({"content": [{"type": "text", "text": "00713"}]}, "00713"),
    "a null as text": ({"content": [{"type": "text", "text": "null"}]}, "null"),
    "an array": ({"structuredContent": [1, "b", None], "content": []}, [1, "b", None]),
}


@pytest.mark.parametrize(("result", "expected"), EMPTY.values(), ids=EMPTY)
def test_small_results_stay_what_they_are(labelled: RunningGateway, result: Mapping[str, Any], expected: Any) -> None:
    labelled.executor.on("read_public", AnswersWith(result))
    answer = labelled.call("read_public", {}, session_id=labelled.open_session())
    assert answer.status == 200
    assert json.dumps(answer.body["result"]) == json.dumps(expected)
    assert labelled.last_record()["status"] == "success"


UNSHOWABLE: Mapping[str, bytes] = {
    "nested past any reader": NESTED,
    "half of a pair": b'{"rows":[{"CommandLine":"\\ud800 SECRET"}]}',
    "half of a pair as a key": b'{"rows":[{"\\udc00":"x","CommandLine":"SECRET"}]}',
    "a number without end": b'{"rows":[{"CommandLine":"SECRET"}],"total":1' + b"0" * 5_000 + b"}",
    "no number": b'{"rows":[{"CommandLine":"SECRET"}],"total":NaN}',
    "bytes that are no text": b'{"rows":[{"CommandLine":"SECRET \xff\xfe"}]}',
    "a key of many pages": b'{"rows":[{"' + b"k" * 100_000 + b'":1,"CommandLine":"SECRET"}]}',
    "one key twice": b'{"rows":[{"CommandLine":"x","CommandLine":"SECRET"}]}',
    "keys that look like patterns": b'{"*":{"*":{"CommandLine":"x"}},"rows":{"*":{"CommandLine":"SECRET"},"a/b":{}}}',
    "keys that look like handles": b'{"rows":[{"CommandLine":{"$ref":"r1#","x":"SECRET"}}],"$ref":"r1#/rows"}',
}


@pytest.mark.requirement("TAINT-3")
@pytest.mark.parametrize("structured", UNSHOWABLE.values(), ids=UNSHOWABLE)
def test_a_result_that_masking_cannot_read_is_hidden_or_refused_and_never_shown(
    labelled: RunningGateway, structured: bytes
) -> None:
    session = labelled.open_session()
    labelled.executor.on("read_public", AnswersWith({"content": []}))
    assert labelled.call("read_public", {}, session_id=session).status == 200
    following = json.loads(labelled.executor.calls[-1].body)["id"] + 1
    body = b'{"jsonrpc":"2.0","id":%d,"result":{"structuredContent":%b,"content":[]}}' % (following, structured)
    labelled.executor.on("read_alert", Sends(body))
    answer = labelled.call("read_alert", {}, session_id=session)
    assert json.loads(labelled.executor.calls[-1].body)["id"] == following
    assert "SECRET" not in answer.content.decode()
    assert answer.status in (200, 502)
    outcome = labelled.last_record()
    assert (outcome["audit_id"], outcome["kind"]) == (answer.body["audit_id"], "outcome")
    assert outcome["status"] == ("success" if answer.status == 200 else "error")
    assert labelled.call("read_public", {}, session_id=session).status == 200

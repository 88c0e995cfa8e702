"""What a model's server streams: events however they are cut, and one answer or one named failure out of them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.support.fuzz.target import Check, Target, expect

from sentinel_rag.agent.models.answer_parts import AnswerParts, EventDecoder, ServerEvent, StreamTooLargeError
from sentinel_rag.agent.models.failures import Asked, ModelError

_MOST = 30_000
_OFFERED = ("query_incidents", "get_incident_detail", "web_search")


@contextmanager
def _opened(_: Path) -> Iterator[Check]:
    yield _check


def _check(content: bytes) -> None:
    body = content[1:]
    step = content[0] % 31 + 1 if content else 1
    whole, cut = _events(body, len(body) + 1), _events(body, step)
    expect(whole == cut, "other events come out when the stream is cut in other places")
    for event in whole or ():
        expect(event.data.strip() == event.data != "", "an event without data came out")
        event.data.encode()
    for in_order in (True, False):
        _answer(whole or (), in_order=in_order)


def _events(body: bytes, step: int) -> list[ServerEvent] | None:
    """Every event of a stream that comes in pieces of `step` bytes; None for one that is too large."""
    decoder = EventDecoder(max_stream=_MOST)
    found: list[ServerEvent] = []
    try:
        for place in range(0, len(body), step):
            found += decoder.feed(body[place : place + step])
        return found + decoder.finish()
    except StreamTooLargeError:
        return None


def _answer(events: Sequence[ServerEvent], *, in_order: bool) -> None:
    parts = AnswerParts(Asked("a-model"), offered=_OFFERED, taken_ids=("call_1",))
    try:
        for event in events:
            try:
                document = json.loads(event.data)
            except (ValueError, RecursionError):
                continue
            parts.add(document)
        ended = parts.end(in_order=in_order)
    except ModelError as failed:
        expect(str(failed) != "" and str(failed).isprintable(), "a failure is no sentence for a person")
        return
    calls = ended.message.tool_calls
    ids = [call.call_id for call in calls]
    expect(len({*ids, "call_1"}) == len(ids) + 1, "two calls have one id")
    for call in calls:
        expect(call.arguments is not None or call.problem is not None, "a call without arguments has no problem")
        expect(call.problem is not None or call.name in _OFFERED, "a tool that was not offered is called")
    ended.message.text.encode()


def _seeds() -> Sequence[bytes]:
    def chunk(delta: object, **beside: object) -> bytes:
        return b"data: " + json.dumps({"choices": [{"index": 0, "delta": delta, **beside}]}).encode() + b"\n\n"

    def call(**function: object) -> dict[str, object]:
        return {"tool_calls": [{"index": 0, "id": "c1", "function": function}]}

    done = b"data: [DONE]\n\n"
    return [
        b"\x00" + chunk({"content": "Two inci"}) + chunk({"content": "dents."}, finish_reason="stop") + done,
        b"\x05" + chunk(call(name="query_incidents", arguments='{"limit"')) + chunk(call(arguments=": 3}")) + done,
        b"\x02: hello\r\n\r\n" + chunk(call(name="multi_tool_use.parallel", arguments='{"tool_uses": []}')) + done,
        b'\x09data: {"error": {"message": "too many", "code": 429}}\n\n',
        b"\x1f" + chunk({"content": "\ud83d"}) + chunk({"content": "\ude00", "refusal": "no"}, finish_reason="length"),
        b'\x03{"choices": [{"message": {"content": [{"type": "text", "text": "a"}]}}], "usage": {"prompt_tokens": 3}}',
    ]


MODEL_STREAM = Target(
    name="model-stream",
    promise="A model's stream gives the same events however it is cut, and ends as one answer whose calls have ids of "
    "their own and tools that were offered, or as a failure with a sentence for a person.",
    opened=_opened,
    seeds=_seeds,
    tokens=(
        *(b"data: ", b"data:", b"event: error\n", b": x\n", b"\n\n", b"\r\r", b"\r\n", b"\r", b"\xef\xbb\xbf"),
        *(b"[DONE]",),
        *(b'"tool_calls":[{"index":1,"function":{}}]', b'"finish_reason":"length"', b'"usage":{"total_tokens":-1}'),
        *(b'"function_call":{"name":"x","arguments":{}}', b'"refusal":"no"', b'"index":true', b'"id":""', b"\\ud83d"),
        *(b"null",),
        *(b'"content_filter_results":{"hate":{"filtered":true}}', b'"prompt_filter_results":[{}]', b"[" * 2_000),
        *(b"NaN",),
        *(b'"error":"x"', b'"error":[]', b'"code":{}', b"9" * 5_000, b"1e999", b"\xe2\x80\xa8", b"\x85", b"\xff"),
        *(b"a" * 900,),
    ),
    largest=8_000,
    calls=(3_000, 60),
)

"""Answers that never become one: silence, lost connections, other protocols, errors amid a stream."""

from __future__ import annotations

import gzip

from sentinel_rag.agent.models.failures import FailureKind
from sentinel_rag_testing.scripted_model.replies import (
    DONE,
    Cut,
    Event,
    Hang,
    Pause,
    Raw,
    Repeated,
    Reply,
    body_reply,
    chunk,
    completion,
    ending,
    event_bytes,
    json_reply,
    stream_reply,
)
from sentinel_rag_testing.scripted_model.scenarios import Answered, Failed, Scenario

_SAY = chunk({"content": "Three "})
_HTML = b"<!DOCTYPE html><html><title>Sign in</title></html>"


def _fails(
    name: str, about: str, reply: Reply, kind: FailureKind, *, delivered: bool = False, **facts: object
) -> Scenario:
    return Scenario(name, about, (reply,), Failed(kind, facts, delivered))


BROKEN_STREAMS: tuple[Scenario, ...] = (
    _fails(
        "silence_before_the_head",
        "an overloaded server",
        stream_reply(before_head=(Hang(),)),
        FailureKind.TIMED_OUT,
        waited_for="first_token",
    ),
    _fails(
        "silence_after_the_head",
        "a server that accepts and forgets",
        stream_reply(Hang()),
        FailureKind.TIMED_OUT,
        waited_for="first_token",
    ),
    _fails(
        "silence_amid_the_answer",
        "agent-zero#1882, gptme#3248",
        stream_reply(_SAY, Hang()),
        FailureKind.TIMED_OUT,
        delivered=True,
        waited_for="next_token",
    ),
    _fails(
        "comments_without_end",
        "a gateway that keeps alive what is dead",
        stream_reply(Repeated(b": still here\n\n", 100_000, 0.05)),
        FailureKind.TIMED_OUT,
        waited_for="whole_answer",
    ),
    _fails(
        "drip_without_end",
        "openai-python#2599: a time-out for each read never ends",
        stream_reply(Repeated(event_bytes({"choices": [{"index": 0, "delta": {"content": "."}}]}), 100_000, 0.05)),
        FailureKind.TIMED_OUT,
        delivered=True,
        waited_for="whole_answer",
    ),
    _fails(
        "silence_in_a_whole_body",
        "a server that ignores stream=true and stalls",
        Reply((Raw(b'{"choices": '), Hang()), content_type="application/json"),
        FailureKind.TIMED_OUT,
    ),
    _fails("reset_before_the_head", "a crashed server", stream_reply(before_head=(Cut(),)), FailureKind.UNREACHABLE),
    _fails(
        "closed_before_the_head",
        "a server that hangs up",
        Reply(status=0),
        FailureKind.UNREACHABLE,
    ),
    _fails("reset_before_the_answer", "a crashed server", stream_reply(Cut()), FailureKind.CUT_OFF),
    _fails(
        "reset_amid_the_answer",
        "openai-python#2065, #1384",
        stream_reply(_SAY, Cut()),
        FailureKind.CUT_OFF,
        delivered=True,
    ),
    _fails(
        "end_without_reason",
        "a stream that just ends",
        stream_reply(_SAY),
        FailureKind.CUT_OFF,
        delivered=True,
    ),
    _fails("end_without_anything", "an empty stream", stream_reply(), FailureKind.CUT_OFF),
    Scenario(
        "reset_after_the_reason",
        "a connection lost when all was said",
        (stream_reply(chunk({"content": "Three."}), chunk({}, "stop"), Pause(0.05), Cut()),),
        Answered("Three.", counted=False),
    ),
    _fails(
        "error_amid_the_answer",
        "an error object in the stream",
        stream_reply(_SAY, Event({"error": {"message": "overloaded sk-canary-7f", "type": "server_error"}})),
        FailureKind.PROVIDER,
        delivered=True,
    ),
    _fails(
        "event_named_error",
        "openai-python#2796: the name alone says that it is one",
        stream_reply(_SAY, Raw(b'event: error\ndata: {"message": "sk-canary-7f", "code": 429}\n\n')),
        FailureKind.RATE_LIMITED,
        delivered=True,
    ),
    _fails(
        "object_error_amid_the_answer",
        "vLLM",
        stream_reply(_SAY, Event({"object": "error", "message": "Engine died", "type": "ServerError", "code": 500})),
        FailureKind.PROVIDER,
        delivered=True,
    ),
    _fails(
        "error_event_of_openrouter",
        "OpenRouter: code and choice in one event",
        stream_reply(
            _SAY,
            Event(
                {
                    "error": {"code": 502, "message": "Provider disconnected"},
                    "choices": [{"index": 0, "delta": {"content": ""}, "finish_reason": "error"}],
                }
            ),
            DONE,
        ),
        FailureKind.PROVIDER,
        delivered=True,
    ),
    _fails(
        "rate_limit_amid_the_stream",
        "OpenRouter: the status was 200 already",
        stream_reply(Event({"error": {"code": 429, "message": "Rate limited", "metadata": {"provider_name": "X"}}})),
        FailureKind.RATE_LIMITED,
    ),
    _fails(
        "reason_error",
        "finish_reason error without an object",
        stream_reply(_SAY, *ending("error")),
        FailureKind.PROVIDER,
        delivered=True,
    ),
    _fails(
        "prompt_filtered_in_the_stream",
        "Azure, status 200 and no answer",
        stream_reply(
            Event(
                {
                    "choices": [],
                    "prompt_filter_results": [
                        {
                            "prompt_index": 0,
                            "content_filter_results": {"jailbreak": {"filtered": True, "detected": True}},
                        }
                    ],
                }
            ),
            DONE,
        ),
        FailureKind.PROMPT_FILTERED,
        categories={"jailbreak": "detected"},
    ),
    _fails(
        "error_with_status_200",
        "OpenRouter: stream=true answered with JSON",
        json_reply({"error": {"code": 503, "message": "No instances", "metadata": {"raw": "upstream busy"}}}),
        FailureKind.PROVIDER,
    ),
    _fails("web_page", "a sign-in page of a proxy", body_reply(_HTML), FailureKind.BAD_ANSWER),
    _fails("web_page_as_stream", "a page under a wrong type", Reply((Raw(_HTML),)), FailureKind.CUT_OFF),
    _fails("not_json", "a text", body_reply(b"OK", content_type="text/plain"), FailureKind.BAD_ANSWER),
    _fails(
        "empty_body", "status 200 and nothing", body_reply(b"", content_type="application/json"), FailureKind.BAD_ANSWER
    ),
    _fails("no_choices", "aider#3550", json_reply({"id": "x", "object": "chat.completion"}), FailureKind.BAD_ANSWER),
    _fails(
        "choices_empty",
        "a completion without any",
        json_reply({**completion({}), "choices": []}),
        FailureKind.BAD_ANSWER,
    ),
    _fails("json_but_a_list", "another API", json_reply([1, 2]), FailureKind.BAD_ANSWER),
    _fails(
        "garbage_amid_the_answer",
        "a proxy that writes into streams",
        stream_reply(_SAY, Raw(b"data: <b>timeout</b>\n\n"), *ending()),
        FailureKind.BAD_ANSWER,
        delivered=True,
    ),
    _fails(
        "event_without_end",
        "a line that never stops",
        stream_reply(Raw(b"data: "), Repeated(b"x" * 65_536, 2_000)),
        FailureKind.BAD_ANSWER,
    ),
    _fails(
        "body_without_end",
        "a download instead of an answer",
        Reply((Repeated(b" " * 262_144, 400),), content_type="application/json"),
        FailureKind.BAD_ANSWER,
    ),
    _fails(
        "not_http", "another protocol", Reply((Raw(b"SSH-2.0-OpenSSH_9.6\r\n\r\n"),), status=0), FailureKind.BAD_ANSWER
    ),
    _fails(
        "broken_compression",
        "a proxy that packs and cuts",
        body_reply(gzip.compress(b"{}" * 500)[:20] + b"junk", content_type="application/json", Content_Encoding="gzip"),
        FailureKind.BAD_ANSWER,
    ),
)

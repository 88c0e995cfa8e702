"""Text answers in the forms that servers send them, tidy or not: each must arrive whole."""

from __future__ import annotations

from sentinel_rag.agent.models.failures import FailureKind
from sentinel_rag.agent.models.port import FinishReason
from sentinel_rag.contracts.json_values import JsonObject
from sentinel_rag_testing.scripted_model.replies import (
    DONE,
    Event,
    Hang,
    Pause,
    Raw,
    Repeated,
    Reply,
    chunk,
    completion,
    ending,
    event_bytes,
    json_reply,
    raw_stream,
    stream_reply,
    text_reply,
    usage_chunk,
)
from sentinel_rag_testing.scripted_model.scenarios import Answered, Failed, Scenario

TEXT = "Three incidents are open."
_SAY = chunk({"content": TEXT})
_TIDY = [chunk({"role": "assistant", "content": ""}), _SAY, chunk({}, "stop"), usage_chunk(20, 5)]
_SAFE: JsonObject = {
    "hate": {"filtered": False, "severity": "safe"},
    "jailbreak": {"filtered": False, "detected": False},
}
_VIOLENT: JsonObject = {
    "violence": {"filtered": True, "severity": "medium"},
    "hate": {"filtered": False, "severity": "safe"},
}


def _whole(name: str, about: str, *replies: Reply, counted: bool = True, stated: bool = True) -> Scenario:
    return Scenario(name, about, replies, Answered(TEXT, counted=counted, stated=stated))


ANSWERS: tuple[Scenario, ...] = (
    _whole("text_in_pieces", "the documented form", text_reply(TEXT)),
    _whole(
        "whole_completion_for_a_stream", "a server that ignores stream=true", json_reply(completion({"content": TEXT}))
    ),
    _whole(
        "azure_first_chunk_without_choices",
        "Azure's prompt annotations; mentat#429, simonw/llm#294",
        stream_reply(
            Event(
                {
                    "choices": [],
                    "created": 0,
                    "id": "",
                    "model": "",
                    "object": "",
                    "prompt_filter_results": [{"prompt_index": 0, "content_filter_results": _SAFE}],
                }
            ),
            _SAY,
            *ending(),
        ),
    ),
    _whole(
        "azure_late_filter_chunk_without_delta",
        "Azure's asynchronous filter",
        stream_reply(
            _SAY,
            chunk({}, "stop"),
            Event(
                {
                    "choices": [
                        {"index": 0, "content_filter_offsets": {"check_offset": 1}, "content_filter_results": _SAFE}
                    ]
                }
            ),
            Event({"choices": [{"index": 0, "delta": None, "finish_reason": None}]}),
            usage_chunk(20, 5),
            DONE,
        ),
    ),
    _whole(
        "usage_missing", "servers without include_usage", stream_reply(_SAY, chunk({}, "stop"), DONE), counted=False
    ),
    _whole(
        "usage_grows_with_every_chunk",
        "vLLM with continuous_usage_stats",
        stream_reply(
            chunk({"content": TEXT[:5]}, usage={"prompt_tokens": 20, "completion_tokens": 1}),
            chunk({"content": TEXT[5:]}, usage={"prompt_tokens": 20, "completion_tokens": 5}),
            chunk({}, "stop"),
            DONE,
        ),
    ),
    _whole(
        "role_in_every_chunk",
        "several local servers",
        stream_reply(*(chunk({"role": "assistant", "content": part}) for part in (TEXT[:7], TEXT[7:])), *ending()),
    ),
    _whole(
        "content_null_before_text",
        "one-api#784",
        stream_reply(chunk({"role": "assistant", "content": None}), _SAY, *ending()),
    ),
    _whole(
        "content_as_list_of_parts",
        "Mistral",
        stream_reply(
            chunk({"content": [{"type": "text", "text": TEXT[:6]}, {"type": "reference", "reference_ids": [1]}]}),
            chunk({"content": [{"type": "text", "text": TEXT[6:]}]}),
            *ending(),
        ),
    ),
    _whole(
        "keep_alive_comments",
        "OpenRouter",
        stream_reply(
            Raw(b": OPENROUTER PROCESSING\n\n"), Pause(0.05), Raw(b": OPENROUTER PROCESSING\n\n"), _SAY, *ending()
        ),
    ),
    _whole("no_space_after_data", "hand-written servers", stream_reply(*raw_stream(_TIDY, prefix=b"data:"), DONE)),
    _whole("carriage_returns", "servers on Windows", stream_reply(*raw_stream(_TIDY, end=b"\r\n\r\n"), DONE)),
    _whole("no_blank_lines", "servers that forget them", stream_reply(*raw_stream(_TIDY, end=b"\n"), DONE)),
    _whole(
        "bare_data_lines", "hermes-agent#111887", stream_reply(Raw(b"data:\n\n"), _SAY, Raw(b"data: \n\n"), *ending())
    ),
    _whole(
        "events_without_data",
        "openai-python#2722, #3833: retry and id alone",
        stream_reply(Raw(b"retry: 3000\n\n"), Raw(b"id: 7\n\n"), _SAY, *ending()),
    ),
    _whole(
        "named_events",
        "gateways that name every event",
        stream_reply(*raw_stream(_TIDY, prefix=b"event: message\nid: 1\ndata: "), DONE),
    ),
    _whole("byte_order_mark", "a proxy that adds one", stream_reply(Raw(b"\xef\xbb\xbf"), _SAY, *ending())),
    _whole("json_lines", "servers that stream lines of JSON", stream_reply(*raw_stream(_TIDY, prefix=b"", end=b"\n"))),
    _whole(
        "stream_under_plain_text",
        "a wrong content type",
        Reply((*_TIDY, DONE), content_type="text/plain"),
    ),
    _whole("done_missing", "servers that close after the reason", stream_reply(*_TIDY)),
    _whole("reason_missing_but_done", "several local servers", stream_reply(_SAY, DONE), stated=False, counted=False),
    _whole(
        "reason_unknown",
        "`eos` of text-generation servers",
        stream_reply(_SAY, *ending("eos")),
    ),
    _whole(
        "garbage_after_done",
        "a proxy's own line",
        stream_reply(*_TIDY, DONE, Raw(b"<!-- cached -->\n\ndata: {oops\n\n")),
    ),
    _whole(
        "garbage_after_the_reason",
        "a proxy's own line",
        stream_reply(_SAY, chunk({}, "stop"), Raw(b"data: {oops\n\n"), DONE),
        counted=False,
    ),
    _whole(
        "silence_after_the_reason",
        "a server that never closes",
        stream_reply(_SAY, chunk({}, "stop"), Hang()),
        counted=False,
    ),
    _whole(
        "reasoning_before_text",
        "DeepSeek, vLLM, llama.cpp",
        stream_reply(chunk({"reasoning_content": "Let me look. "}), chunk({"reasoning": "Hm."}), _SAY, *ending()),
    ),
    _whole("slow_but_steady", "a large model on a small machine", stream_reply(_SAY, Pause(0.2), *ending())),
    _whole(
        "other_choices_are_ignored",
        "a proxy that asks for n=2",
        stream_reply(Event({"choices": [{"index": 1, "delta": {"content": "No."}}]}), _SAY, *ending()),
    ),
    Scenario(
        "broken_utf8",
        "a server that cuts characters in half",
        (stream_reply(Raw(b'data: {"choices":[{"index":0,"delta":{"content":"caf\xc3"}}]}\n\n'), *ending()),),
        Answered("caf\ufffd"),
    ),
    Scenario(
        "character_split_over_packets",
        "any server with text beyond ASCII",
        (
            stream_reply(
                *(
                    Raw(bytes([byte]))
                    for byte in event_bytes({"choices": [{"index": 0, "delta": {"content": "Zürich 🛡"}}]})
                ),
                *ending(),
            ),
        ),
        Answered("Zürich 🛡"),
    ),
    Scenario(
        "character_split_over_events",
        "servers that escape beyond 16 bits and cut between the escapes",
        (
            stream_reply(
                Raw(b'data: {"choices":[{"index":0,"delta":{"content":"Shield \\ud83d"}}]}\n\n'),
                Raw(b'data: {"choices":[{"index":0,"delta":{"content":"\\udee1 up"}}]}\n\n'),
                *ending(),
            ),
        ),
        Answered("Shield \U0001f6e1 up"),
    ),
    Scenario(
        "half_a_character",
        "a text cut in the middle of a character",
        (stream_reply(Raw(b'data: {"choices":[{"delta":{"content":"\\udee1 up \\ud83d"}}]}\n\n'), *ending()),),
        Answered("\ufffd up "),
    ),
    Scenario(
        "refusal",
        "OpenAI's refusal field",
        (stream_reply(chunk({"refusal": "I cannot "}), chunk({"refusal": "help."}), *ending()),),
        Answered("I cannot help.", reason=FinishReason.REFUSAL),
    ),
    Scenario(
        "length",
        "the answer reached max_tokens",
        (stream_reply(_SAY, *ending("length")),),
        Answered(TEXT, reason=FinishReason.LENGTH),
    ),
    Scenario(
        "length_without_text",
        "a reasoning model that used its budget up",
        (stream_reply(chunk({"content": ""}), *ending("length")),),
        Answered("", reason=FinishReason.LENGTH),
    ),
    Scenario(
        "answer_filtered",
        "Azure's filter on the answer",
        (
            stream_reply(
                _SAY,
                Event(
                    {
                        "choices": [
                            {
                                "index": 0,
                                "delta": {},
                                "finish_reason": "content_filter",
                                "content_filter_results": _VIOLENT,
                            }
                        ]
                    }
                ),
                DONE,
            ),
        ),
        Answered(TEXT, reason=FinishReason.CONTENT_FILTER, filtered=("violence",), counted=False),
    ),
    Scenario(
        "answer_filtered_late",
        "Azure's asynchronous filter, after text was shown",
        (
            stream_reply(
                _SAY,
                Event({"choices": [{"index": 0, "content_filter_results": _VIOLENT, "finish_reason": None}]}),
                Event({"choices": [{"index": 0, "delta": {}, "finish_reason": "content_filter"}]}),
                usage_chunk(20, 5),
                DONE,
            ),
        ),
        Answered(TEXT, reason=FinishReason.CONTENT_FILTER, filtered=("violence",)),
    ),
    Scenario(
        "empty_answer",
        "a model that says nothing",
        (stream_reply(chunk({"role": "assistant", "content": ""}), *ending()),),
        Failed(FailureKind.EMPTY_ANSWER),
    ),
    Scenario(
        "blank_answer",
        "a model that says blanks",
        (stream_reply(chunk({"content": " \n "}), *ending()),),
        Failed(FailureKind.EMPTY_ANSWER, delivered=True),
    ),
    Scenario(
        "endless_text",
        "a model in a loop",
        (stream_reply(Repeated(event_bytes({"choices": [{"index": 0, "delta": {"content": "ha " * 3000}}]}), 500)),),
        Failed(FailureKind.BAD_ANSWER, delivered=True),
    ),
)

"""Servers that refuse one field of the request by name: the request goes again without it, and the answer arrives."""

from __future__ import annotations

from sentinel_rag.contracts.json_values import JsonValue
from sentinel_rag_testing.scripted_model.catalogue.answers import TEXT
from sentinel_rag_testing.scripted_model.replies import Reply, completion, json_reply, text_reply
from sentinel_rag_testing.scripted_model.scenarios import Answered, Scenario


def _learns(name: str, about: str, *refusals: Reply, answer: Reply | None = None) -> Scenario:
    replies = (*refusals, answer or text_reply(TEXT))
    return Scenario(name, about, replies, Answered(TEXT, requests=len(replies)))


def _refuse(message: str, *, status: int = 400, code: JsonValue = None, param: str | None = None) -> Reply:
    return json_reply(
        {"error": {"message": message, "type": "invalid_request_error", "code": code, "param": param}}, status
    )


DIALECTS: tuple[Scenario, ...] = (
    _learns(
        "no_max_tokens",
        "reasoning models behind any name",
        _refuse(
            "Unsupported parameter: 'max_tokens' is not supported here. Use 'max_completion_tokens' instead.",
            code="unsupported_parameter",
            param="max_tokens",
        ),
    ),
    _learns(
        "no_temperature",
        "reasoning models behind any name",
        _refuse(
            "Unsupported value: 'temperature' does not support 0.0 with this model. Only 1 is supported.",
            code="unsupported_value",
            param="temperature",
        ),
    ),
    _learns("no_store", "Azure's older api-versions", _refuse("Unrecognized request argument supplied: store")),
    _learns(
        "no_stream_options",
        "servers from before include_usage",
        _refuse("Unknown parameter: 'stream_options'.", code="unknown_parameter", param="stream_options"),
    ),
    _learns(
        "no_stream",
        "models that do not stream",
        _refuse(
            "Unsupported value: 'stream' does not support true with this model.",
            code="unsupported_value",
            param="stream",
        ),
        answer=json_reply(completion({"content": TEXT})),
    ),
    _learns(
        "none_of_several",
        "a server of few words",
        _refuse("Unrecognized request argument supplied: store"),
        _refuse("Unrecognized request argument supplied: stream_options"),
        _refuse("Unsupported parameter: 'max_tokens'", code="unsupported_parameter", param="max_tokens"),
        _refuse(
            "Unsupported parameter: 'max_completion_tokens'",
            code="unsupported_parameter",
            param="max_completion_tokens",
        ),
    ),
)

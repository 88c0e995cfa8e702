"""Refusals with an HTTP status, in the words of each provider. `sk-canary-7f` must never be seen again."""

from __future__ import annotations

from collections.abc import Mapping

from sentinel_rag.agent.models.failures import FailureKind, Overflowing
from sentinel_rag.contracts.json_values import JsonObject, JsonValue
from sentinel_rag_testing.scripted_model.replies import Raw, Repeated, Reply, body_reply, json_reply
from sentinel_rag_testing.scripted_model.scenarios import Failed, Scenario

_FILTER: JsonObject = {
    "hate": {"filtered": False, "severity": "safe"},
    "violence": {"filtered": True, "severity": "high"},
    "jailbreak": {"filtered": True, "detected": True},
}
_TRIPPED = {"violence": "high", "jailbreak": "detected"}


def _refused(name: str, about: str, reply: Reply, kind: FailureKind, **facts: object) -> Scenario:
    return Scenario(name, about, (reply,), Failed(kind, facts))


def _error(http: int, message: str, code: JsonValue = None, **more: JsonValue) -> Reply:
    return json_reply({"error": {"message": message, "code": code, "type": None, "param": None, **more}}, http)


def _filtered(inner: str, results: str) -> Reply:
    cause: Mapping[str, JsonObject] = {inner: {"code": "ResponsibleAIPolicyViolation", results: _FILTER}}
    return _error(
        400,
        "The response was filtered due to the prompt triggering Azure OpenAI's content management policy. sk-canary-7f",
        "content_filter",
        param="prompt",
        status=400,
        **cause,
    )


REFUSALS: tuple[Scenario, ...] = (
    _refused(
        "key_wrong_azure",
        "Azure",
        _error(401, "Access denied due to invalid subscription key", "401"),
        FailureKind.ACCESS,
    ),
    _refused(
        "key_wrong_openai",
        "OpenAI quotes the key",
        _error(401, "Incorrect API key provided: sk-canary-7f.", "invalid_api_key"),
        FailureKind.ACCESS,
    ),
    _refused(
        "not_allowed",
        "a network rule or a missing role",
        _error(403, "Principal does not have access", "PermissionDenied"),
        FailureKind.ACCESS,
    ),
    _refused(
        "deployment_missing",
        "Azure",
        _error(404, "The API deployment does not exist.", "DeploymentNotFound"),
        FailureKind.NOT_FOUND,
    ),
    _refused(
        "model_missing_openai",
        "OpenAI",
        _error(404, "The model `x` does not exist", "model_not_found"),
        FailureKind.NOT_FOUND,
    ),
    _refused(
        "model_missing_ollama",
        "Ollama: the error is a text",
        json_reply({"error": 'model "x" not found, try pulling it first'}, 404),
        FailureKind.NOT_FOUND,
    ),
    _refused(
        "model_missing_openrouter",
        "OpenRouter: status 400",
        _error(400, "x is not a valid model ID", 400),
        FailureKind.NOT_FOUND,
    ),
    _refused(
        "path_missing",
        "an address without /v1",
        body_reply(b"404 page not found", 404, "text/plain"),
        FailureKind.NOT_FOUND,
    ),
    _refused(
        "redirect",
        "a moved address",
        body_reply(b"", 307, "text/plain", Location="http://127.0.0.1:9/v1"),
        FailureKind.NOT_FOUND,
    ),
    _refused(
        "rate_limit_seconds",
        "Retry-After in seconds",
        json_reply(
            {"error": {"code": "429", "message": "Requests have exceeded call rate limit"}}, 429, retry_after="7"
        ),
        FailureKind.RATE_LIMITED,
        retry_after_s=7.0,
    ),
    _refused(
        "rate_limit_milliseconds",
        "Azure's retry-after-ms",
        json_reply({"error": {"code": "429"}}, 429, retry_after_ms="1500", retry_after="2"),
        FailureKind.RATE_LIMITED,
        retry_after_s=1.5,
    ),
    _refused(
        "rate_limit_date_in_the_past",
        "Retry-After as a date",
        json_reply({"error": {}}, 429, retry_after="Wed, 21 Oct 2015 07:28:00 GMT"),
        FailureKind.RATE_LIMITED,
        retry_after_s=0.0,
    ),
    _refused(
        "rate_limit_absurd",
        "more than a day",
        json_reply({}, 429, retry_after="99999999999"),
        FailureKind.RATE_LIMITED,
        retry_after_s=86_400.0,
    ),
    _refused(
        "rate_limit_words",
        "Azure, older",
        _error(429, "Please retry after 26 seconds.", "429"),
        FailureKind.RATE_LIMITED,
        retry_after_s=26.0,
    ),
    _refused(
        "rate_limit_silent",
        "no word of when",
        _error(429, "Too many requests", "rate_limit_exceeded"),
        FailureKind.RATE_LIMITED,
        retry_after_s=None,
    ),
    _refused(
        "quota_spent",
        "OpenAI",
        _error(429, "You exceeded your current quota", "insufficient_quota"),
        FailureKind.CREDIT,
    ),
    _refused("no_credit", "OpenRouter", _error(402, "Insufficient credits", 402), FailureKind.CREDIT),
    _refused(
        "context_openai",
        "OpenAI and Azure",
        _error(
            400,
            "This model's maximum context length is 128000 tokens. However, your messages resulted in 131072 tokens.",
            "context_length_exceeded",
            param="messages",
        ),
        FailureKind.CONTEXT_OVERFLOW,
        limit_tokens=128_000,
        used_tokens=131_072,
    ),
    _refused(
        "context_vllm",
        "vLLM: no code",
        json_reply(
            {
                "object": "error",
                "message": "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens "
                "(904 in the messages, 4096 in the completion).",
                "type": "BadRequestError",
                "code": 400,
            },
            400,
        ),
        FailureKind.CONTEXT_OVERFLOW,
        limit_tokens=4_096,
        used_tokens=5_000,
    ),
    _refused(
        "context_llama_cpp",
        "llama.cpp: numbers as fields",
        json_reply(
            {
                "error": {
                    "code": 400,
                    "message": "the request exceeds the available context size, try increasing it",
                    "type": "exceed_context_size_error",
                    "n_prompt_tokens": 9_000,
                    "n_ctx": 8_192,
                }
            },
            400,
        ),
        FailureKind.CONTEXT_OVERFLOW,
        limit_tokens=8_192,
        used_tokens=9_000,
        overflowing=Overflowing.FIXED_PART,
    ),
    _refused(
        "context_too_large_body",
        "a gateway's 413",
        body_reply(b"", 413),
        FailureKind.CONTEXT_OVERFLOW,
        limit_tokens=None,
        used_tokens=None,
    ),
    _refused(
        "prompt_filtered",
        "Azure",
        _filtered("innererror", "content_filter_result"),
        FailureKind.PROMPT_FILTERED,
        categories=_TRIPPED,
    ),
    _refused(
        "prompt_filtered_other_spelling",
        "browser-use#262",
        _filtered("inner_error", "content_filter_results"),
        FailureKind.PROMPT_FILTERED,
        categories=_TRIPPED,
    ),
    _refused(
        "prompt_flagged",
        "OpenRouter's moderation",
        _error(
            403,
            "Your input was flagged",
            403,
            metadata={"reasons": ["violence"], "flagged_input": "rm -rf sk-canary-7f"},
        ),
        FailureKind.PROMPT_FILTERED,
        categories={"violence": ""},
    ),
    _refused(
        "request_invalid",
        "OpenAI",
        _error(400, "Invalid type for 'messages[0]'. sk-canary-7f", "invalid_type"),
        FailureKind.REQUEST_REFUSED,
    ),
    _refused(
        "request_unprocessable",
        "FastAPI servers",
        json_reply({"detail": [{"loc": ["body", "messages"], "msg": "field required", "type": "missing"}]}, 422),
        FailureKind.REQUEST_REFUSED,
    ),
    _refused("request_timeout", "a gateway's 408", _error(408, "Request timed out"), FailureKind.PROVIDER),
    _refused("server_error", "OpenAI", _error(500, "The server had an error", "server_error"), FailureKind.PROVIDER),
    _refused(
        "bad_gateway_page",
        "a proxy",
        body_reply(b"<html>502 Bad Gateway sk-canary-7f</html>", 502),
        FailureKind.PROVIDER,
    ),
    _refused(
        "busy_with_time",
        "503 with Retry-After",
        json_reply({"error": {"message": "Busy"}}, 503, retry_after="3"),
        FailureKind.PROVIDER,
        retry_after_s=3.0,
    ),
    _refused(
        "overloaded",
        "529 of Anthropic-like gateways",
        _error(529, "Overloaded", "overloaded_error"),
        FailureKind.PROVIDER,
    ),
    _refused(
        "real_reason_in_metadata",
        "open-webui/computer#293",
        _error(
            400,
            "Provider returned error",
            400,
            metadata={"raw": '{"error":"prompt is too long: 210000 tokens > 200000 maximum"}'},
        ),
        FailureKind.CONTEXT_OVERFLOW,
    ),
    _refused(
        "refusal_without_end",
        "an error body that never stops",
        Reply((Raw(b'{"error": "'), Repeated(b"x" * 65_536, 2_000)), 500),
        FailureKind.PROVIDER,
    ),
)

"""What a provider's refusal means: HTTP status and error object of any OpenAI-like server to one `ModelError`.

Servers put the error under `error`, `detail` or nowhere, spell fields differently and hide the cause in nested text;
`Refusal` is the one place that knows. Facts come out of it (a number, a category, the name of a field), sentences never
do: they quote keys, prompts and addresses. Messages are our own and name what a person can do next.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from sentinel_rag.agent.models.failures import (
    ContextOverflowError,
    FailureKind,
    ModelError,
    Overflowing,
    PromptFilteredError,
    RequestRefusedError,
)
from sentinel_rag.agent.models.messages import AssistantMessage, ModelMessage, ToolResultMessage, UserMessage

MAX_RETRY_AFTER_S = 86_400.0
DEFAULT_LOADING_S = 30.0
_TRIED_AGAIN = frozenset({408, 409, 425})
"""Statuses of a fault in the request that are gone on the next try."""

_SEARCHED = 20_000
"""Characters of a provider's sentences that are looked at."""

_OVERFLOW = re.compile(
    r"(?i)context.{0,10}(?:length|window|size)|maximum.{0,20}tokens|too many tokens|(?:prompt|input) is too long"
)
_LIMIT = re.compile(r"(?i)(?:maximum|max|limit|context (?:length|window|size))\D{0,40}?(\d{3,9})")
_USED = re.compile(r"(?i)(?:resulted in|requested(?: about)?|has|contains|prompt\D{0,20}?)\D{0,12}?(\d{3,9})")
_WAIT = re.compile(r"(?i)(?:try again|retry)(?: again)? (?:in|after) (\d{1,6}(?:\.\d+)?)\s?(ms|s\b|sec|second|m\b|min)")
_PARAMETER = re.compile(
    r"(?i)(?:unrecognized request argument(?: supplied)?|unknown (?:parameter|field|name)"
    r"|unsupported (?:parameter|value))\W{1,4}(\w{1,40})|[`'\"](\w{1,40})[`'\"] is not (?:supported|allowed|permitted)"
)
_LOADING = re.compile(r"(?is)loading (?:the )?model|model\b.{0,80}\b(?:is|still|currently) loading")
_NO_CREDIT = re.compile(r"(?i)insufficient.{0,3}(?:quota|credit|balance|funds)|exceeded your current quota|billing")
_NO_MODEL = re.compile(
    r"(?is)model.{0,80}(?:not found|does not exist|not a valid|not available|not exist)"
    r"|(?:not found|no such|invalid|unknown) model|not a valid model"
)
_FILTER = re.compile(r"(?i)content.{0,3}(?:filter|management policy|policy)|responsible.?ai|moderation|flagged")
_NAMES = """
    hate hate_and_discrimination harassment violence sexual self_harm jailbreak indirect_attack profanity illicit
    protected_material_text protected_material_code custom_blocklists dangerous_and_criminal_content health pii
"""
_CATEGORIES = frozenset(_NAMES.split())
_SEVERITIES = frozenset({"safe", "low", "medium", "high"})
_FIELDS = """
    model messages tools tool_choice response_format max_tokens max_completion_tokens temperature store stream
    stream_options
"""
_WORDS: tuple[tuple[str, int], ...] = (
    ("rate_limit", 429),
    ("too_many_requests", 429),
    ("insufficient_quota", 429),
    ("authentication", 401),
    ("invalid_api_key", 401),
    ("permission", 403),
    ("not_found", 404),
    ("invalid_request", 400),
    ("badrequest", 400),
)
"""What codes and types mean where no number says it."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What a failure is told by: the name of the `model`, whether its server is of this machine (`local`), what does
    not fit if the request is too long (`longest`), and how long a model that is being loaded is waited for."""

    model: str
    local: bool = False
    longest: Overflowing = Overflowing.CONVERSATION
    loading_s: float = DEFAULT_LOADING_S


def longest_part(messages: Sequence[ModelMessage]) -> Overflowing:
    """What can be left out of a conversation that is too long: earlier turns, if there are any, else rows."""
    answered = [
        place for place, each in enumerate(messages) if isinstance(each, AssistantMessage) and not each.tool_calls
    ]
    if answered and any(isinstance(each, UserMessage) for each in messages[answered[0] :]):
        return Overflowing.CONVERSATION
    rows = any(isinstance(each, ToolResultMessage) for each in messages)
    return Overflowing.ROWS if rows else Overflowing.FIXED_PART


def failure_of_response(status: int, headers: Mapping[str, str], body: bytes, *, asked: Asked) -> ModelError:
    """What an HTTP answer other than 200 means. `headers` in lower case."""
    if 300 <= status < 400:
        return ModelError(
            FailureKind.NOT_FOUND,
            f"The model endpoint answered with a redirect (HTTP {status}), which is not followed.",
            next_step="Set the model's address to the place that it moved to.",
        )
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        document = body.decode("utf-8", "replace")
    return _failure(status, Refusal(document), _retry_after(headers), asked)


def failure_of_error(document: Any, *, asked: Asked) -> ModelError:
    """What an error object inside an answer with status 200, or amid a stream, means. `document` is the whole body."""
    refusal = Refusal(document)
    return _failure(refusal.status(), refusal, None, asked)


def _failure(status: int, refusal: Refusal, retry_after: float | None, asked: Asked) -> ModelError:
    match status:
        case 400 | 403 | 422 if refusal.is_filtered():
            return PromptFilteredError(refusal.categories())
        case 413 | 400 | 422 | 500 if status == 413 or refusal.is_overflow():
            limit, used = refusal.tokens() if refusal.is_overflow() else (None, None)
            return ContextOverflowError(
                limit_tokens=limit, used_tokens=used, overflowing=asked.longest, local=asked.local
            )
        case 503 if refusal.is_loading():
            return ModelError(
                FailureKind.LOADING,
                "The model server is still loading its model.",
                next_step="Ask again in a moment; SENTINEL_MODEL_TIMEOUT_S and SENTINEL_QUESTION_TIMEOUT_S bound the "
                "wait.",
                patience_s=asked.loading_s,
            )
        case 401 | 403 | 407:
            return ModelError(
                FailureKind.ACCESS,
                f"The model endpoint refused the key or identity (HTTP {status}).",
                next_step="Check the key and that it may use this model; `sentinel doctor --model` tries it.",
            )
        case 402 | 429 if status == 402 or refusal.is_about_credit():
            return ModelError(
                FailureKind.CREDIT,
                "The account at the model's provider has no credit or quota left.",
                next_step="Add credit at the provider, or choose another model (SENTINEL_MODEL).",
            )
        case 429:
            wait = retry_after if retry_after is not None else refusal.wait_s()
            said = "" if wait is None else f" It asks to wait {wait:g} seconds."
            return ModelError(
                FailureKind.RATE_LIMITED,
                f"The model is asked too often.{said}",
                next_step="Wait a moment and ask again; a higher quota is set at the provider.",
                retry_after_s=wait,
            )
        case 404 | 400 if status == 404 or refusal.names_no_model():
            return ModelError(
                FailureKind.NOT_FOUND,
                f"The endpoint has no model or deployment named {asked.model!r}.",
                next_step="Check the name and the address (`sentinel doctor --model`); a new deployment takes some "
                "minutes.",
            )
        case _ if 400 <= status < 500 and status not in _TRIED_AGAIN:
            parameter = refusal.parameter()
            named = f": it does not take {parameter!r}" if parameter else ""
            return RequestRefusedError(
                f"The model endpoint refused the request (HTTP {status}){named}.",
                next_step="Check that the model's address and name fit SENTINEL_MODEL; see docs/models.md.",
                parameter=parameter,
            )
        case _:
            who = "model server on this machine" if asked.local else "model's provider"
            look = "what the server printed" if asked.local else "the provider's status page"
            return ModelError(
                FailureKind.PROVIDER,
                f"The {who} failed (HTTP {status}).",
                next_step=f"Ask again in a moment; if it stays, look at {look}.",
                retry_after_s=retry_after,
            )


def bad_answer(model: str, what: str, *, narrower: bool = False) -> ModelError:
    """An answer of `model` that is not in the form that was agreed; `what` goes on after its name."""
    more = "or ask a narrower question." if narrower else "docs/models.md lists tried servers."
    return ModelError(
        FailureKind.BAD_ANSWER,
        f"The answer of the model {model!r} {what}.",
        next_step=f"Check that the address is a chat completions endpoint{',' if narrower else ';'} {more}",
    )


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds of Retry-After in any of its forms (milliseconds, seconds, a date), between 0 and a day."""
    for name, divisor in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        text = headers.get(name, "").strip()
        if re.fullmatch(r"\d{1,12}(?:\.\d{1,6})?", text):
            return min(float(text) / divisor, MAX_RETRY_AFTER_S)
    try:
        moment = parsedate_to_datetime(headers.get("retry-after", ""))
    except (ValueError, TypeError):
        return None
    moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return min(max((moment - datetime.now(UTC)).total_seconds(), 0.0), MAX_RETRY_AFTER_S)


class Refusal:
    """What an error body says. `document` is the parsed body, or its text if it is no JSON."""

    def __init__(self, document: Any) -> None:
        error: Any = document
        if isinstance(document, Mapping):
            error = next((document[key] for key in ("error", "detail") if document.get(key)), document)
        self._error: Mapping[str, Any] = error if isinstance(error, Mapping) else {"message": error}
        self._inner = as_mapping(self._error.get("innererror") or self._error.get("inner_error"))
        metadata = as_mapping(self._error.get("metadata"))
        self._reasons = metadata.get("reasons")
        words = [self._error.get(key) for key in ("message", "code", "type", "param")]
        self._text = " ".join(_flat(word) for word in [*words, metadata.get("raw")] if word is not None)[:_SEARCHED]
        self._code = self._word("code")
        self._said = f"{self._code} {self._word('type')}"

    def status(self) -> int:
        """The HTTP status that the error would have had; 502 if it does not say."""
        for key in ("code", "status", "status_code"):
            word = self._word(key)
            if word.isascii() and word.isdigit() and 400 <= int(word[:6]) < 600:
                return int(word)
        return next((status for word, status in _WORDS if word in self._said), 502)

    def categories(self) -> dict[str, str]:
        """What a content filter says it found, with its severity; empty if it does not say."""
        found: dict[str, str] = {}
        for holder in (self._inner, self._error):
            for key in ("content_filter_result", "content_filter_results"):
                found |= filter_categories(holder.get(key))
        reasons = self._reasons if isinstance(self._reasons, list) else ()
        return found | dict.fromkeys(map(_category, reasons), "")

    def is_filtered(self) -> bool:
        """True if a content filter stopped the prompt."""
        named = "content_filter" in self._code or "ResponsibleAI" in str(self._inner.get("code"))
        return named or bool(self.categories()) or (not self.parameter() and _FILTER.search(self._text) is not None)

    def is_overflow(self) -> bool:
        """True if the conversation is longer than the model reads."""
        named = "context_length" in self._said or "exceed_context" in self._said
        return named or _OVERFLOW.search(self._text) is not None

    def tokens(self) -> tuple[int | None, int | None]:
        """How many tokens the model reads, and how many there were; None for what is not said."""
        limit, used = self._number("n_ctx", _LIMIT), self._number("n_prompt_tokens", _USED)
        # Two numbers of one sentence can be mistaken for each other; then only the limit is kept.
        return limit, None if limit is not None and used is not None and used < limit else used

    def names_no_model(self) -> bool:
        """True if what is missing is the model, whatever the status."""
        return self._code == "model_not_found" or _NO_MODEL.search(self._text) is not None

    def is_loading(self) -> bool:
        """True if the server says that its model is not loaded yet."""
        return _LOADING.search(self._text) is not None

    def is_about_credit(self) -> bool:
        """True if a limit is one that waiting does not lift."""
        return _NO_CREDIT.search(self._text) is not None

    def wait_s(self) -> float | None:
        """Seconds to wait, where a sentence says so."""
        match = _WAIT.search(self._text)
        if match is None:
            return None
        unit = match[2].casefold()
        return float(match[1]) * (0.001 if unit == "ms" else 60.0 if unit.startswith("m") else 1.0)

    def parameter(self) -> str:
        """The field of our requests that is not accepted, if one is named."""
        match = _PARAMETER.search(self._text)
        named = ""
        if match:
            named = str(match[1] or match[2])
        elif self._code.startswith(("unsupported", "unknown", "unrecognized")):
            named = self._word("param")
        return named if named in _FIELDS.split() else ""

    def _word(self, key: str) -> str:
        value = self._error.get(key)
        return str(value).casefold() if isinstance(value, str | int) and not isinstance(value, bool) else ""

    def _number(self, key: str, pattern: re.Pattern[str]) -> int | None:
        value = self._error.get(key)
        if isinstance(value, int) and not isinstance(value, bool):
            return value
        match = pattern.search(self._text)
        return int(match[1]) if match else None


def filter_categories(results: Any) -> dict[str, str]:
    """The categories of a `content_filter_results` object that tripped, with their severity."""
    found: dict[str, str] = {}
    for name, verdict in as_mapping(results).items():
        verdict = as_mapping(verdict)
        if verdict.get("filtered") is True or verdict.get("detected") is True:
            severity = verdict.get("severity")
            found[_category(name)] = severity if severity in _SEVERITIES else "detected"
    return found


def as_mapping(value: Any) -> Mapping[str, Any]:
    """`value` if it is a JSON object, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def _category(name: Any) -> str:
    """A category that may be shown: one that we know, else `other`. Free text never comes through."""
    word = re.sub(r"[^a-z]+", "_", str(name)[:60].casefold()).strip("_")
    return word if word in _CATEGORIES else "other"


def _flat(value: Any) -> str:
    return value if isinstance(value, str) else "\n".join(_texts(value))


def _texts(value: Any, depth: int = 0) -> Iterator[str]:
    if isinstance(value, Mapping | list) and depth < 6:
        for part in value.values() if isinstance(value, Mapping) else value:
            yield from _texts(part, depth + 1)
    else:
        yield str(value)

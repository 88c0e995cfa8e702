"""What a provider's refusal means: HTTP status and error object of any OpenAI-like server to one `ModelError`.

Servers put the error under `error`, `detail` or nowhere, spell fields differently and hide the cause in nested text;
`Refusal` is the one place that knows. Facts come out of it (a number, a category, the name of a field), sentences never
do: they quote keys, prompts and addresses. Messages are our own and name what a person can do next.
"""

from __future__ import annotations

import json
import re
from collections.abc import Container, Iterator, Mapping, Sequence
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
)
from sentinel_rag.agent.models.port import AssistantMessage, ModelMessage, ToolResultMessage, UserMessage

MAX_RETRY_AFTER_S = 86_400.0
DEFAULT_LOADING_S = 30.0
_SEARCHED = 20_000
"""Characters of a provider's sentences that are looked at."""

_OVERFLOW = re.compile(
    r"(?i)context.{0,10}(?:length|window|size)|exceed_context|maximum.{0,20}tokens|too many tokens"
    r"|(?:prompt|input) is too long"
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
    r"|(?:not found|no such|invalid|unknown) model|not a valid model|model_not_found"
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
        return ModelError(FailureKind.NOT_FOUND, "redirect", status=status)
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
    if status in (400, 403, 422) and refusal.is_filtered():
        return PromptFilteredError(refusal.categories())
    fitting = (kind for kind, statuses, sign in _KINDS if status in statuses and (sign is None or refusal.says(sign)))
    kind = next(fitting, FailureKind.PROVIDER)
    if kind is FailureKind.CONTEXT_OVERFLOW:
        limit, used = refusal.tokens() if refusal.says(_OVERFLOW) else (None, None)
        return ContextOverflowError(limit_tokens=limit, used_tokens=used, overflowing=asked.longest, local=asked.local)
    wait, parameter = retry_after, refusal.parameter()
    if wait is None and kind is FailureKind.RATE_LIMITED:
        wait = refusal.wait_s()
    failure = ModelError(
        kind,
        local=asked.local,
        status=status,
        model=asked.model,
        field=f": it does not take {parameter!r}" if parameter else "",
        wait="" if wait is None else f" It asks to wait {wait:g} seconds.",
    )
    if kind in (FailureKind.RATE_LIMITED, FailureKind.PROVIDER):
        failure.retry_after_s = wait
    elif kind is FailureKind.LOADING:
        failure.patience_s = asked.loading_s
    elif kind is FailureKind.REQUEST_REFUSED:
        failure.parameter = parameter
    return failure


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
        return named or bool(self.categories()) or (not self.parameter() and self.says(_FILTER))

    def tokens(self) -> tuple[int | None, int | None]:
        """How many tokens the model reads, and how many there were; None for what is not said."""
        limit, used = self._number("n_ctx", _LIMIT), self._number("n_prompt_tokens", _USED)
        # Two numbers of one sentence can be mistaken for each other; then only the limit is kept.
        return limit, None if limit is not None and used is not None and used < limit else used

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
        named = str(match[1] or match[2]) if match else ""
        if not match and self._code.startswith(("unsupported", "unknown", "unrecognized")):
            named = self._word("param")
        return named if named in _FIELDS.split() else ""

    def says(self, pattern: re.Pattern[str]) -> bool:
        """True if its sentences or codes hold the pattern."""
        return pattern.search(self._text) is not None

    def _word(self, key: str) -> str:
        value = self._error.get(key)
        return str(value).casefold() if isinstance(value, str | int) and not isinstance(value, bool) else ""

    def _number(self, key: str, pattern: re.Pattern[str]) -> int | None:
        value = self._error.get(key)
        if isinstance(value, int) and not isinstance(value, bool):
            return value
        match = pattern.search(self._text)
        return int(match[1]) if match else None


_KINDS: tuple[tuple[FailureKind, Container[int], re.Pattern[str] | None], ...] = (
    (FailureKind.CONTEXT_OVERFLOW, (413,), None),
    (FailureKind.CONTEXT_OVERFLOW, (400, 422, 500), _OVERFLOW),
    (FailureKind.LOADING, (503,), _LOADING),
    (FailureKind.ACCESS, (401, 403, 407), None),
    (FailureKind.CREDIT, (402,), None),
    (FailureKind.CREDIT, (429,), _NO_CREDIT),
    (FailureKind.RATE_LIMITED, (429,), None),
    (FailureKind.NOT_FOUND, (404,), None),
    (FailureKind.NOT_FOUND, (400,), _NO_MODEL),
    # 408, 409 and 425 are faults in the request that are gone on the next try.
    (FailureKind.REQUEST_REFUSED, frozenset(range(400, 500)) - {408, 409, 425}, None),
)
"""What a status means, with words that must stand in the body; the first row that fits counts, and what fits none is
the provider's fault."""


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

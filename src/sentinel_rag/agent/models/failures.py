"""Every way in which a model's answer can fail, and which of them a provider's refusal means.

No exception of a provider's library leaves the port: each becomes a `ModelError`, which says who acts next, whether
trying again can help (`retry_possible`) and after how long. Its sentences stand in `failures.toml`. Servers put an
error under `error`, `detail` or nowhere, spell fields differently and hide the cause in nested text; `Refusal` is the
one place that knows. Facts come out of it (a number, a category, the name of a field), sentences never do: a provider's
own words may quote keys, prompts and addresses.
"""

from __future__ import annotations

import json
import re
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from enum import StrEnum
from functools import cache
from typing import Any

from sentinel_rag.agent.models.port import AssistantMessage, ModelMessage, ModelUsage, ToolResultMessage, UserMessage
from sentinel_rag.contracts.errors import Actor, SentinelError
from sentinel_rag.language.text import toml_beside

MAX_RETRY_AFTER_S = 86_400.0
DEFAULT_LOADING_S = 30.0
_SEARCHED = 20_000
"""Characters of a provider's sentences that are looked at."""
_SEVERITIES = frozenset({"safe", "low", "medium", "high"})


def _data(name: str) -> Mapping[str, Any]:
    return toml_beside(__package__, f"{name}.toml")


@cache
def _sign(name: str) -> re.Pattern[str]:
    return re.compile(_data("refusals")["signs"][name])


class FailureKind(StrEnum):
    """What failed. Stable: the code of a `ModelError` is `model_` and this."""

    NOT_INSTALLED = "not_installed"
    """The library that speaks to models is an extra and is not there."""
    ACCESS = "access"
    """The key or the identity is not accepted, or not allowed to use this model."""
    NOT_FOUND = "not_found"
    """There is no such model or deployment, or the address is not a model endpoint."""
    RATE_LIMITED = "rate_limited"
    """Asked too often; `retry_after_s` is the provider's word, None if it gave none."""
    CREDIT = "credit"
    """The account's quota or credit is used up: waiting does not help."""
    CONTEXT_OVERFLOW = "context_overflow"
    PROMPT_FILTERED = "prompt_filtered"
    REQUEST_REFUSED = "request_refused"
    PROVIDER = "provider"
    """The provider failed on its side, before or amid an answer."""
    LOADING = "loading"
    """The server is up and still loads its model; `patience_s` is how long it is waited for."""
    UNREACHABLE = "unreachable"
    """No connection: nothing listens, no such host, TLS refused, or the line broke before an answer began."""
    TIMED_OUT = "timed_out"
    CUT_OFF = "cut_off"
    """The stream ended before the answer did."""
    BAD_ANSWER = "bad_answer"
    """What came back is not in the form that was agreed (a web page, no JSON, no choices, without end)."""
    EMPTY_ANSWER = "empty_answer"
    """The model ended its answer and said nothing."""


_PASSING = frozenset(["rate_limited", "provider", "loading", "unreachable", "cut_off", "bad_answer", "empty_answer"])
"""Kinds for which another try can help."""


class ModelError(SentinelError):
    """A model did not answer. `case` names the sentence that says so, mostly its kind's; `values` stand in it. `local`:
    the server is of this machine."""

    def __init__(self, kind: FailureKind, case: str = "", *, local: bool = False, **values: object) -> None:
        told = _data("failures")[case or kind.value]
        said, next_step = (
            told.get(f"{name}_local" if local else name, told[name]).format(**values) for name in ("said", "next_step")
        )
        super().__init__(said, next_step=next_step, code=f"model_{kind.value}")
        self.actor = Actor(told.get("actor", self.actor))
        self.kind = kind
        self.retry_possible = kind in _PASSING
        self.retry_after_s: float | None = None
        self.patience_s: float | None = None
        """Tries go on for so long, however many they are; None leaves that to who tries."""
        self.delivered = False
        """True if a part of the answer had been given out before: then trying again would say things twice, and only
        the caller can decide."""
        self.usage = ModelUsage()
        """What the failed tries took."""
        self.parameter = ""
        """The field that a provider does not take, if it names one."""


class Overflowing(StrEnum):
    """What does not fit into a model's context: earlier turns (they can be left out), the rows of this question (it can
    be asked more narrowly), or what every question takes: rules and tools (only a larger context helps)."""

    CONVERSATION = "conversation"
    ROWS = "rows"
    FIXED_PART = "fixed_part"


class ContextOverflowError(ModelError):
    """A request is longer than the model reads. Numbers are the provider's; None where it gave none. `overflowing` says
    what can be done: nothing that a person says helps against FIXED_PART."""

    def __init__(
        self,
        *,
        limit_tokens: int | None,
        used_tokens: int | None,
        overflowing: Overflowing = Overflowing.CONVERSATION,
        local: bool = False,
    ) -> None:
        reads = "" if limit_tokens is None else f" It reads {limit_tokens} tokens."
        sent = "" if used_tokens is None else f" The request has {used_tokens}."
        super().__init__(
            FailureKind.CONTEXT_OVERFLOW, f"overflow_{overflowing.value}", local=local, numbers=reads + sent
        )
        self.limit_tokens = limit_tokens
        self.used_tokens = used_tokens
        self.overflowing = overflowing


class PromptFilteredError(ModelError):
    """The provider's content filter refused what was sent to it, such as attack text in a row of a log.

    `categories` maps what tripped (`jailbreak`, `violence`, ...) to a severity, `detected` or an empty text.
    """

    def __init__(self, categories: Mapping[str, str]) -> None:
        named = f" ({', '.join(sorted(categories))})" if categories else ""
        super().__init__(FailureKind.PROMPT_FILTERED, named=named)
        self.categories = dict(categories)


class ModelTimedOutError(ModelError):
    """Too slow. `waited_for` is `connection`, `first_token`, `next_token` or `whole_answer`; `case` names another
    sentence than that says.

    Only a connection is tried again: a person has waited for the rest already, and would wait as long once more.
    """

    def __init__(self, waited_for: str, case: str = "", *, local: bool = False, **values: object) -> None:
        super().__init__(FailureKind.TIMED_OUT, case or waited_for, local=local, **values)
        self.waited_for = waited_for
        self.retry_possible = waited_for == "connection"


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
    return _failure(status, ErrorBody(document), _retry_after(headers), asked)


def failure_of_error(document: Any, *, asked: Asked) -> ModelError:
    """What an error object inside an answer with status 200, or amid a stream, means. `document` is the whole body."""
    refusal = ErrorBody(document)
    return _failure(refusal.status(), refusal, None, asked)


def _failure(status: int, refusal: ErrorBody, retry_after: float | None, asked: Asked) -> ModelError:
    if status in (400, 403, 422) and refusal.is_filtered():
        return PromptFilteredError(refusal.categories())
    fitting = (kind for kind, statuses, sign in _KINDS if status in statuses and (not sign or refusal.says(sign)))
    kind = next(fitting, FailureKind.PROVIDER)
    if kind is FailureKind.CONTEXT_OVERFLOW:
        limit, used = refusal.tokens() if refusal.says("overflow") else (None, None)
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


class ErrorBody:
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
        return next((status for word, status in _data("refusals")["statuses"].items() if word in self._said), 502)

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
        return named or bool(self.categories()) or (not self.parameter() and self.says("filter"))

    def tokens(self) -> tuple[int | None, int | None]:
        """How many tokens the model reads, and how many there were; None for what is not said."""
        limit, used = self._number("n_ctx", "limit"), self._number("n_prompt_tokens", "used")
        # Two numbers of one sentence can be mistaken for each other; then only the limit is kept.
        return limit, None if limit is not None and used is not None and used < limit else used

    def wait_s(self) -> float | None:
        """Seconds to wait, where a sentence says so."""
        match = _sign("wait").search(self._text)
        if match is None:
            return None
        unit = match[2].casefold()
        return float(match[1]) * (0.001 if unit == "ms" else 60.0 if unit.startswith("m") else 1.0)

    def parameter(self) -> str:
        """The field of our requests that is not accepted, if one is named."""
        match = _sign("parameter").search(self._text)
        named = str(match[1] or match[2]) if match else ""
        if not match and self._code.startswith(("unsupported", "unknown", "unrecognized")):
            named = self._word("param")
        return named if named in _data("refusals")["fields"].split() else ""

    def says(self, sign: str) -> bool:
        """True if its sentences or codes hold a sign of `refusals.toml`."""
        return _sign(sign).search(self._text) is not None

    def _word(self, key: str) -> str:
        value = self._error.get(key)
        return str(value).casefold() if isinstance(value, str | int) and not isinstance(value, bool) else ""

    def _number(self, key: str, sign: str) -> int | None:
        value = self._error.get(key)
        if isinstance(value, int) and not isinstance(value, bool):
            return value
        match = _sign(sign).search(self._text)
        return int(match[1]) if match else None


_KINDS: tuple[tuple[FailureKind, Container[int], str], ...] = (
    (FailureKind.CONTEXT_OVERFLOW, (413,), ""),
    (FailureKind.CONTEXT_OVERFLOW, (400, 422, 500), "overflow"),
    (FailureKind.LOADING, (503,), "loading"),
    (FailureKind.ACCESS, (401, 403, 407), ""),
    (FailureKind.CREDIT, (402,), ""),
    (FailureKind.CREDIT, (429,), "no_credit"),
    (FailureKind.RATE_LIMITED, (429,), ""),
    (FailureKind.NOT_FOUND, (404,), ""),
    (FailureKind.NOT_FOUND, (400,), "no_model"),
    # 408, 409 and 425 are faults in the request that are gone on the next try.
    (FailureKind.REQUEST_REFUSED, frozenset(range(400, 500)) - {408, 409, 425}, ""),
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
    return word if word in _data("refusals")["categories"].split() else "other"


def _flat(value: Any) -> str:
    return value if isinstance(value, str) else "\n".join(_texts(value))


def _texts(value: Any, depth: int = 0) -> Iterator[str]:
    if isinstance(value, Mapping | list) and depth < 6:
        for part in value.values() if isinstance(value, Mapping) else value:
            yield from _texts(part, depth + 1)
    else:
        yield str(value)

"""What a provider's refusal means: HTTP status and error object of any OpenAI-like server to one `ModelError`.

`refusals` reads the object, this decides. Messages are our own and name what a person can do next.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from sentinel_rag.agent.models.failures import (
    BadAnswerError,
    ContextOverflowError,
    ModelAccessError,
    ModelCreditError,
    ModelError,
    ModelLoadingError,
    ModelNotFoundError,
    ModelRateLimitedError,
    Overflowing,
    PromptFilteredError,
    ProviderFailedError,
    RequestRefusedError,
)
from sentinel_rag.agent.models.messages import AssistantMessage, ModelMessage, ToolResultMessage, UserMessage
from sentinel_rag.agent.models.refusals import Refusal

MAX_RETRY_AFTER_S = 86_400.0
DEFAULT_LOADING_S = 30.0
_PASSING = frozenset({408, 409, 425})
"""Statuses of a fault in the request that are gone on the next try."""


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
        return ModelNotFoundError(
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
        case 400 | 413 | 422 | 500 if refusal.is_overflow():
            limit, used = refusal.tokens()
            return ContextOverflowError(
                limit_tokens=limit, used_tokens=used, overflowing=asked.longest, local=asked.local
            )
        case 413:
            return ContextOverflowError(
                limit_tokens=None, used_tokens=None, overflowing=asked.longest, local=asked.local
            )
        case 503 if refusal.is_loading():
            return ModelLoadingError(patience_s=asked.loading_s)
        case 401 | 403 | 407:
            return ModelAccessError(
                f"The model endpoint refused the key or identity (HTTP {status}).",
                next_step="Check the key and that it may use this model; `sentinel doctor --model` tries it.",
            )
        case 402:
            return _credit()
        case 429 if refusal.is_about_credit():
            return _credit()
        case 429:
            wait = retry_after if retry_after is not None else refusal.wait_s()
            said = "" if wait is None else f" It asks to wait {wait:g} seconds."
            return ModelRateLimitedError(
                f"The model is asked too often.{said}",
                next_step="Wait a moment and ask again; a higher quota is set at the provider.",
                retry_after_s=wait,
            )
        case 404:
            return _not_found(asked.model)
        case 400 if refusal.names_no_model():
            return _not_found(asked.model)
        case _ if 400 <= status < 500 and status not in _PASSING:
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
            return ProviderFailedError(
                f"The {who} failed (HTTP {status}).",
                next_step=f"Ask again in a moment; if it stays, look at {look}.",
                retry_after_s=retry_after,
            )


def _credit() -> ModelCreditError:
    return ModelCreditError(
        "The account at the model's provider has no credit or quota left.",
        next_step="Add credit at the provider, or choose another model (SENTINEL_MODEL).",
    )


def _not_found(model: str) -> ModelNotFoundError:
    return ModelNotFoundError(
        f"The endpoint has no model or deployment named {model!r}.",
        next_step="Check the name and the address (`sentinel doctor --model`); a new deployment takes some minutes.",
    )


def web_page(model: str) -> BadAnswerError:
    """A web page came instead of an answer."""
    return BadAnswerError(
        f"The address of the model {model!r} answers with a web page.",
        next_step="Check the address: it ends in /v1 for most servers, and must not be a sign-in page or a proxy.",
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

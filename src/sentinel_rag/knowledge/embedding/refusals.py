"""What a refusal of the embedding service means: who acts next, and whether and when another try helps."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from sentinel_rag.contracts.errors import SentinelError, UnavailableError

_TRY_AGAIN = frozenset({408, 425, 429, 500, 502, 503, 504, 529})


@dataclass(frozen=True, slots=True)
class EmbeddingRefusal:
    """`error` is what is raised if no further try is made. `wait_s` is what the service asks for, None if nothing.
    `too_long`: a text is longer than the model reads. `about_dimensions`: the server does not take that parameter."""

    error: SentinelError
    try_again: bool
    wait_s: float | None = None
    too_long: bool = False
    about_dimensions: bool = False


def refusal_of(
    status: int, headers: Mapping[str, str], body: bytes, *, now: datetime | None = None
) -> EmbeddingRefusal:
    """The meaning of an answer with a status other than 200. `headers` have names in lower case."""
    said, code = _said(body)
    if status in (401, 403):
        error = UnavailableError(
            f"The embedding service lets nobody in with this key or sign-in ({status}).",
            next_step="Check the key; with Entra ID the role `Cognitive Services OpenAI User` is needed.",
            code="embedding_access",
        )
        return EmbeddingRefusal(error, False)
    if status == 404:
        error = UnavailableError(
            "The embedding service knows no such model or deployment (404).",
            next_step="Check the name of the deployment and the address.",
            code="embedding_not_found",
        )
        return EmbeddingRefusal(error, False)
    wait = _wait(headers, now or datetime.now(UTC))
    if status == 429:
        if code == "insufficient_quota":
            error = UnavailableError(
                "The credit at the embedding service is used up.",
                next_step="Raise the quota, then go on: what is done stays.",
            )
            return EmbeddingRefusal(error, False)
        error = UnavailableError(
            "The embedding service takes no more requests at present (429).",
            next_step="Go on later, what is done stays; or set a lower rate, or raise the deployment's quota.",
            code="embedding_rate_limited",
        )
        return EmbeddingRefusal(error, True, wait)
    if status in _TRY_AGAIN:
        error = UnavailableError(
            f"The embedding service failed ({status}).", next_step="Go on later: what is done stays."
        )
        return EmbeddingRefusal(error, True, wait)
    words = said.casefold() if status in (400, 422) else ""
    too_long = any(each in words for each in ("maximum context", "too many tokens", "too long"))
    about_dimensions = not too_long and any(each in words for each in ("dimensions", "matryoshka"))
    detail = f": {said}" if said else ""
    error = UnavailableError(
        f"The embedding service refused the request ({status}){detail}",
        next_step="Check that the model is an embedding model and takes these dimensions.",
    )
    return EmbeddingRefusal(error, False, too_long=too_long, about_dimensions=about_dimensions)


def _said(body: bytes) -> tuple[str, str]:
    """The message and code of an error body; empty for HTML and the like. A message may quote what was sent, so it is
    cut short."""
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return "", ""
    error = document.get("error") if isinstance(document, Mapping) else None
    if isinstance(error, Mapping):
        return " ".join(str(error.get("message") or "").split())[:200], str(error.get("code") or "")
    return (" ".join(error.split())[:200], "") if isinstance(error, str) else ("", "")


def _wait(headers: Mapping[str, str], now: datetime) -> float | None:
    """Seconds from `retry-after-ms` (Azure) or `Retry-After`, as a number or a date."""
    for name, unit in (("retry-after-ms", 1e-3), ("retry-after", 1.0)):
        value = headers.get(name, "").strip()
        try:
            seconds = float(value) * unit
        except ValueError:
            continue
        if 0 <= seconds < 86_400:
            return seconds
    try:
        moment = parsedate_to_datetime(headers.get("retry-after", ""))
    except (ValueError, TypeError):
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, (moment - now).total_seconds())

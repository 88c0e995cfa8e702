"""The REST wire of Azure AI Search, as far as it is used: address, version, limits, and what a refusal means.

Plain values and pure functions. 2024-07-01 is the oldest stable version that has all that is used (vectors filtered
before they are compared); later ones only add to it, and the service keeps stable versions.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit

from sentinel_rag.contracts.errors import ConfigurationError, SentinelError, UnavailableError
from sentinel_rag.contracts.servers import LOOPBACK_NAMES

API_VERSION = "2024-07-01"
AUDIENCE = "https://search.azure.com"
"""The resource that Entra ID tokens are asked for."""
MOST_ACTIONS = 1_000
"""Documents of one batch; the service refuses more."""
MOST_BYTES = 12_000_000
"""Of one batch; the service refuses 16 MB and more."""
MOST_ROWS = 1_000
"""Rows of one page."""
TEXT_ROWS = 200
"""Rows of one page with texts: one may have 20,000 characters, twice."""
_INDEX_NAME = re.compile(r"[a-z0-9](?:[a-z0-9]|-(?!-)){0,98}[a-z0-9]")
_TRY_AGAIN = frozenset({408, 429, 500, 502, 503, 504})
_WAITING = "Go on later: what is done stays."


@dataclass(frozen=True, slots=True)
class SearchEndpoint:
    """A service, and the name that its indexes begin with. Raises ConfigurationError for what can be none."""

    url: str
    index: str

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc:
            raise ConfigurationError(
                "The address of Azure AI Search is not an http or https URL without a user name.",
                next_step="Set it in the form https://NAME.search.windows.net.",
            )
        if parts.path.strip("/") or parts.query:
            raise ConfigurationError(
                "The address of Azure AI Search has a path or a query.",
                next_step="Set the service alone: https://NAME.search.windows.net.",
            )
        if parts.scheme == "http" and not self.is_loopback:
            raise ConfigurationError(
                "The address of Azure AI Search is plain http to another machine, which shows keys and incidents to "
                "the network.",
                next_step="Use https; plain http is for this machine only.",
            )
        if not _INDEX_NAME.fullmatch(self.index):
            raise ConfigurationError(
                f"{self.index!r} is no name of an index.",
                next_step="Use 2 to 100 lower-case letters, digits and single dashes, such as sentinel-knowledge.",
            )

    @property
    def is_loopback(self) -> bool:
        """True if the address is this machine: no proxy is asked."""
        return urlsplit(self.url).hostname in LOOPBACK_NAMES

    @property
    def host(self) -> str:
        """The service as people name it."""
        return urlsplit(self.url).netloc


@dataclass(frozen=True, slots=True)
class Refusal:
    """`error` is what is raised if no further try is made. `wait_s` is what the service asks for, None if nothing."""

    error: SentinelError
    try_again: bool
    wait_s: float | None = None


def refusal_of(status: int, headers: Mapping[str, str], body: bytes, *, now: datetime | None = None) -> Refusal:
    """The meaning of an answer that is none. `headers` have names in lower case."""
    said = _said(body)
    # Told with 400, 403 or 429, and no other try helps.
    if "quota" in said.casefold():
        error = UnavailableError(
            f"Azure AI Search is full: {said}",
            next_step="Delete what is not needed or take a larger tier; what is done stays.",
            code="azure_search_full",
        )
        return Refusal(error, False)
    if status in (401, 403):
        error = UnavailableError(
            f"Azure AI Search lets nobody in with this key or sign-in ({status}).",
            next_step="Check the key (an admin key); with Entra ID the roles `Search Service Contributor` and `Search "
            "Index Data Contributor` are needed, and role-based access must be switched on.",
            code="azure_search_access",
        )
        return Refusal(error, False)
    if status == 413:
        return Refusal(
            UnavailableError(
                "Azure AI Search takes no piece of this size (413).",
                next_step="A single chunk is too large for the service: part the document.",
                code="azure_search_too_large",
            ),
            False,
        )
    if status in (429, 503):
        error = UnavailableError(
            f"Azure AI Search takes no more requests at present ({status}).",
            next_step=f"{_WAITING} If it stays so, add replicas or take a larger tier.",
            code="azure_search_throttled",
        )
        return Refusal(error, True, wait_of(headers, now or datetime.now(UTC)))
    if status in _TRY_AGAIN:
        error = UnavailableError(f"Azure AI Search failed ({status}).", next_step=_WAITING)
        return Refusal(error, True, wait_of(headers, now or datetime.now(UTC)))
    detail = f": {said}" if said else ""
    return Refusal(
        UnavailableError(
            f"Azure AI Search refused the request ({status}){detail}",
            next_step="Check the address, and that the index is one that Sentinel RAG made.",
            code="azure_search_refused",
        ),
        False,
    )


def wait_of(headers: Mapping[str, str], now: datetime) -> float | None:
    """Seconds from `retry-after-ms` or `Retry-After` (a number or a date); None without one, or with nonsense."""
    for name, unit in (("retry-after-ms", 1e-3), ("retry-after", 1.0)):
        value = headers.get(name, "").strip()
        if re.fullmatch(r"\d{1,9}(?:\.\d+)?", value):
            return float(value) * unit
    try:
        moment = parsedate_to_datetime(headers.get("retry-after", ""))
    except (ValueError, TypeError):
        return None
    return max(0.0, ((moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - now).total_seconds())


def document_of(content: bytes) -> Mapping[str, Any]:
    """The JSON object of an answer, empty for an empty body. Raises UnavailableError for what is none."""
    if not content:
        return {}
    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, Mapping):
        raise UnavailableError(
            "The answer of Azure AI Search is not JSON.",
            next_step="Check the address: it should be https://NAME.search.windows.net.",
        )
    return document


def foreign_records() -> UnavailableError:
    """The error for answers, or records, that are not what was written there."""
    return UnavailableError(
        "Azure AI Search answers with something that Sentinel RAG did not write.",
        next_step="Check the address, and set SENTINEL_AZURE_SEARCH_INDEX to an index that nothing else writes to.",
        code="azure_search_foreign",
    )


def _said(body: bytes) -> str:
    """The message of an error body, on one line and cut: a message may quote what was sent."""
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return ""
    error = document.get("error") if isinstance(document, Mapping) else None
    message = error.get("message") if isinstance(error, Mapping) else ""
    return " ".join(str(message or "").split())[:200]

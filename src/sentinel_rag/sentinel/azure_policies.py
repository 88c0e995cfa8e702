"""Policies for azure-core's pipeline: where a token may travel in the clear, and which answers are worth a retry.

They subclass azure-core, so this module imports it; `log_analytics` and `rest.connection` import this module when a
client is made.
"""

from __future__ import annotations

import random
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from azure.core.pipeline import PipelineRequest, PipelineResponse  # noqa: TID253  # the module is about azure-core
from azure.core.pipeline.policies import (  # noqa: TID253  # the module is about azure-core
    AsyncBearerTokenCredentialPolicy,
    AsyncRetryPolicy,
)

from sentinel_rag.contracts.errors import ConfigurationError
from sentinel_rag.sentinel.response_bodies import told_wait

MOST_WAITED_S = 30.0
"""Seconds that one request waits for a throttled service, over all its tries. A gateway gives a call up after a minute,
and then nobody hears that the service was throttling: a longer wait is told at once instead."""
_RETRIED = frozenset({408, 429, 500, 502, 503})
"""Not 504: a query that took ten minutes will take them again, and the default policy would try it four times."""
_RETRIED_READS = _RETRIED | {504}
_RETRIED_WRITES = frozenset({429})
"""A throttled write was not taken. Of any other failure nobody knows whether it was, so it is settled by reading."""


def is_loopback(url: str) -> bool:
    """True if the host of `url` is this machine by its spelling: 127.0.0.0/8, ::1 or localhost."""
    host = urlsplit(url).hostname or ""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def safe_endpoint(name: str, url: str, usual: str) -> str:
    """The address of the service `name` without a slash at its end. Raises ConfigurationError unless it is https, or on
    this machine: a token must not cross a network in the clear. `usual` is what most people set."""
    url = url.rstrip("/")
    if not url.startswith("https://") and not (url.startswith("http://") and is_loopback(url)):
        raise ConfigurationError(
            f"The {name} endpoint {url!r} must be https (http is for this machine only).",
            next_step=f"Use {usual} or the address of a workspace server on 127.0.0.1.",
        )
    return url


class LoopbackBearerPolicy(AsyncBearerTokenCredentialPolicy[Any, Any]):
    """Sends the token over plain http to this machine only; any other http endpoint stays an error."""

    async def on_request(self, request: PipelineRequest[Any]) -> None:
        if is_loopback(request.http_request.url):
            request.context.options["enforce_https"] = False
        await super().on_request(request)


class QueryRetryPolicy(AsyncRetryPolicy[Any, Any]):
    """Repeats what a read may repeat, with or without Retry-After, if the wait fits; waits grow and are spread."""

    def __init__(self, *, total: int = 3, first_delay_s: float = 0.8) -> None:
        super().__init__(retry_total=total, retry_status=total, retry_connect=0, retry_read=0)
        self._first_delay_s = first_delay_s

    def is_retry(self, settings: dict[str, Any], response: PipelineResponse[Any, Any]) -> bool:
        return self._may_wait(settings, response, _RETRIED)

    def get_backoff_time(self, settings: dict[str, Any]) -> float:
        delay = self._first_delay_s * 2.0 ** (len(settings["history"]) - 1)
        return delay * random.uniform(0.5, 1.0)  # noqa: S311  # spreads retries of several clients, no secret

    def get_retry_after(self, response: PipelineResponse[Any, Any]) -> float | None:
        return told_wait(response.http_response.headers)

    def _may_wait(
        self, settings: dict[str, Any], response: PipelineResponse[Any, Any], retried: frozenset[int]
    ) -> bool:
        """Whether there is a try left and the wait before it fits; counts the wait."""
        if settings["total"] <= 0 or response.http_response.status_code not in retried:
            return False
        settings["waited_s"] = settings.get("waited_s", 0.0) + (self.get_retry_after(response) or 0.0)
        return bool(settings["waited_s"] <= MOST_WAITED_S)

    async def sleep(
        self, settings: dict[str, Any], transport: Any, response: PipelineResponse[Any, Any] | None = None
    ) -> None:
        if response is not None:  # the body was not read yet: give the connection back before waiting
            await response.http_response.close()
        await super().sleep(settings, transport, response)


class ResourceRetryPolicy(QueryRetryPolicy):
    """The same for Azure Resource Manager, where PUT and DELETE write: they are repeated only when surely not taken."""

    def is_retry(self, settings: dict[str, Any], response: PipelineResponse[Any, Any]) -> bool:
        writes = response.http_request.method in ("PUT", "PATCH", "DELETE")
        retried = _RETRIED_WRITES if writes else _RETRIED_READS
        return self._may_wait(settings, response, retried)

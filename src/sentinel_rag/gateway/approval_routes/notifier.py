"""Tells the webhook's receiver of each new question, in the background and never in the way of a call.

What is still to be told stands in the table, so a killed process loses no notice, and of several processes one sends an
attempt. A receiver may hear of a question more than once; its id is always the same.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn
from urllib.parse import urlsplit

import anyio

from sentinel_rag.contracts.errors import UnavailableError
from sentinel_rag.contracts.ports import Clock, utc_now
from sentinel_rag.gateway.approval_routes.webhook import NOTICE, SIGNATURE_HEADER, Webhook, notice_body, sign
from sentinel_rag.gateway.approvals.store import ApprovalStore
from sentinel_rag.gateway.approvals.table import Notice

if TYPE_CHECKING:
    import aiohttp

log = logging.getLogger(__name__)

WAITS_S = (15.0, 30.0, 60.0, 120.0, 240.0)
"""How long after each attempt the next one is due; longer than an attempt may take, so that no two overlap."""

ATTEMPT_S = 10.0
POLL_S = 2.0
"""How soon a due attempt is seen that this process did not ask for: a retry, or a notice of a process that died."""

AT_ONCE = 8


class Notifier:
    """Delivers the notices of `store` to `webhook` while `run` runs."""

    def __init__(
        self,
        store: ApprovalStore,
        webhook: Webhook,
        *,
        clock: Clock = utc_now,
        waits_s: Sequence[float] = WAITS_S,
        poll_s: float = POLL_S,
    ) -> None:
        self._store = store
        self._webhook = webhook
        self._clock = clock
        self._waits_s = tuple(waits_s)
        self._poll_s = poll_s

    async def run(self) -> None:
        """Deliver until cancelled. Never raises: a receiver that is away costs attempts, not the gateway."""
        import aiohttp

        asked = asyncio.Event()
        loop = asyncio.get_running_loop()
        async with aiohttp.ClientSession(
            timeout=aiohttp.ClientTimeout(total=ATTEMPT_S), cookie_jar=aiohttp.DummyCookieJar(), trust_env=False
        ) as client:
            with self._store.telling(lambda: loop.call_soon_threadsafe(asked.set)):
                await self._serve(client, asked)

    async def _serve(self, client: aiohttp.ClientSession, asked: asyncio.Event) -> NoReturn:
        while True:
            asked.clear()
            if await self._deliver_due(client):
                continue
            with anyio.move_on_after(self._poll_s):
                await asked.wait()

    async def _deliver_due(self, client: aiohttp.ClientSession) -> bool:
        """Make the attempts that are due now; True if there were as many as fit, so that there may be more."""
        try:
            notices = await self._store.claim_notices(self._waits_s, AT_ONCE)
            async with anyio.create_task_group() as group:
                for notice in notices:
                    group.start_soon(self._attempt, client, notice)
        except UnavailableError as error:
            log.warning("notices of approvals wait: %s", error)
            return False
        return len(notices) == AT_ONCE

    async def _attempt(self, client: aiohttp.ClientSession, notice: Notice) -> None:
        fault = await self._post(client, notice)
        if fault:
            host = urlsplit(self._webhook.url).hostname
            approval_id = notice.approval.approval_id
            log.warning("attempt %d to tell %s of approval %s: %s", notice.attempt, host, approval_id, fault)
        if not fault or notice.attempt >= len(self._waits_s):
            try:
                await self._store.end_notices(notice, delivered=not fault)
            except UnavailableError as error:  # told again later, under the same id
                log.warning("a notice was sent and not recorded: %s", error)

    async def _post(self, client: aiohttp.ClientSession, notice: Notice) -> str:
        """What went wrong; empty if the receiver took it."""
        import aiohttp

        body = notice_body(notice, self._webhook)
        headers = {
            "Content-Type": "application/json",
            SIGNATURE_HEADER: sign(self._webhook.secret, NOTICE, body, self._clock()),
        }
        try:
            # A redirect would send the notice to somebody whom the operator has not named.
            async with client.post(self._webhook.url, data=body, headers=headers, allow_redirects=False) as response:
                return "" if response.status // 100 == 2 else f"it answered {response.status}"
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            return type(error).__name__

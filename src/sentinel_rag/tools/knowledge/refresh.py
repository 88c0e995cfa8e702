"""What was read in is kept current by the clock: an ingest every so often, for as long as the server runs.

The first one comes after a whole interval, so that a short command never pays for it; and none comes where nobody has
ever read incidents in.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

import anyio
from starlette.types import ASGIApp, Receive, Scope, Send

from sentinel_rag.contracts.errors import SentinelError
from sentinel_rag.tools.knowledge.incident_ingest import IncidentIngest, IngestRequest

_LOG = logging.getLogger(__name__)
WHO = "the refresh that runs by itself"


class Refreshing:
    """`app`, with an ingest each `every_s` seconds between its start and its end."""

    def __init__(
        self,
        app: ASGIApp,
        ingest: IncidentIngest,
        *,
        every_s: float,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
    ) -> None:
        self._app = app
        self._ingest = ingest
        self._every_s = every_s
        self._sleep = sleep

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "lifespan":
            await self._app(scope, receive, send)
            return
        async with anyio.create_task_group() as group:
            group.start_soon(self._again_and_again)
            await self._app(scope, receive, send)
            group.cancel_scope.cancel()

    async def _again_and_again(self) -> None:
        while True:
            await self._sleep(self._every_s)
            await self.once()

    async def once(self) -> None:
        """One refresh. What goes wrong is written to the log, and to the record that `status` shows."""
        if not self._ingest.has_run:
            return
        try:
            reports = await self._ingest.run(IngestRequest(WHO, self._ingest.last_days))
        except SentinelError as error:
            _LOG.warning("Past incidents were not refreshed: %s %s", error, error.next_step)
            return
        except Exception:  # the next interval may be better; the server goes on
            _LOG.exception("Past incidents were not refreshed")
            return
        for report in reports:
            if report.fault:
                _LOG.warning("Incidents of %s were not refreshed: %s", report.workspace, report.fault)

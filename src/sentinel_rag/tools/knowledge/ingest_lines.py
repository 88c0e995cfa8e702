"""An answer that grows while an ingest works: JSON lines with its progress, and at last what became of it.

`{"progress": ...}` again and again, then what the work returned, or `{"error": ...}`. A client that goes away ends the
work with the step that it is in.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any
from uuid import uuid4

import anyio
import anyio.from_thread
from anyio.streams.memory import MemoryObjectSendStream
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from sentinel_rag.contracts.errors import SentinelError, UsageError

_LOG = logging.getLogger(__name__)
_LINES_AHEAD = 16
"""Progress lines that a slow reader may leave; more are dropped, the last line never is."""

Line = Mapping[str, Any]
Work = Callable[[Callable[[Line], None]], Awaitable[Line]]
"""Works, tells its progress from its own thread through the function it is given, and returns the last line."""


class IngestLines(Response):
    """The response that does `work`."""

    def __init__(self, work: Work) -> None:
        super().__init__(media_type="application/x-ndjson")
        del self.headers["content-length"]
        self._work = work

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        lines, told = anyio.create_memory_object_stream[Line](_LINES_AHEAD)
        async with anyio.create_task_group() as group:

            async def work() -> None:
                async with lines:
                    await lines.send(await self._outcome(lines))

            async def until_gone() -> None:
                while (await receive())["type"] != "http.disconnect":
                    pass
                group.cancel_scope.cancel()

            group.start_soon(work)
            group.start_soon(until_gone)
            async with told:
                async for line in told:
                    body = json.dumps(line).encode() + b"\n"
                    await send({"type": "http.response.body", "body": body, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})
            group.cancel_scope.cancel()

    async def _outcome(self, lines: MemoryObjectSendStream[Line]) -> Line:
        def tell(progress: Line) -> None:
            anyio.from_thread.check_cancelled()  # cancelled work ends here, in its own thread
            anyio.from_thread.run_sync(_offer, lines, {"progress": progress})

        try:
            return await self._work(tell)
        except SentinelError as error:
            return {"error": error.to_dict()}
        except Exception:  # a fault of ours must end in a line, not in a connection that breaks
            fault = uuid4().hex[:8]
            _LOG.exception("internal error %s in an ingest", fault)
            ours = UsageError(
                f"The ingest failed for a reason that is our fault (error {fault}).",
                next_step="Run it again: it goes on. Report it with that line of the log of executor-knowledge.",
            )
            return {"error": {**ours.to_dict(), "code": "internal", "actor": "developer"}}


def _offer(lines: MemoryObjectSendStream[Line], line: Line) -> None:
    with suppress(anyio.WouldBlock):
        lines.send_nowait(line)

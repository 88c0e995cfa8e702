"""The agent's HTTP face as this surface uses it: one question as events, and what becomes of a conversation's memory.

The agent gets a person's words and never a person's key. A question that nobody waits for any more is one whose
connection ends, which stops it there.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp  # noqa: TID253  # the module is this library's use, in a process that always needs it

from sentinel_rag.contracts.errors import UnavailableError
from sentinel_rag.surfaces.web._connections import Connections
from sentinel_rag.telemetry import traceparent

READ_TIMEOUT_S = 3700.0
"""Above the longest question time that can be set: the agent ends a question, not this client."""
MAX_EVENT_BYTES = 16 * 1024 * 1024


class Agent:
    """The agent at `url`; `token` is this surface's at it. Methods raise UnavailableError if it is away."""

    def __init__(self, url: str, token: str, connections: Connections) -> None:
        self._url = url.rstrip("/")
        self._headers = {"Authorization": f"Bearer {token}"}
        self._connections = connections

    async def ask(self, body: dict[str, Any]) -> AsyncIterator[tuple[str, Any]]:
        """The events of `POST /chat`: `progress`, `text`, `sentences` and `withdrawn` as they come, then `answer`."""
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=10, sock_read=READ_TIMEOUT_S)
        headers = {**self._headers, "Accept": "text/event-stream", "Content-Type": "application/json"}
        if (place := traceparent()) is not None:  # what the person's own program began
            headers["traceparent"] = place
        data = json.dumps(body, ensure_ascii=False).encode()  # escaped, the longest question would be over its bound
        answered = False
        try:
            async with self._connections.http.post(
                f"{self._url}/chat", data=data, headers=headers, timeout=timeout
            ) as response:
                if response.status != 200:
                    raise _away(f"it answered {response.status}")
                async for name, data in _events(response.content.iter_any()):
                    answered |= name == "answer"
                    yield name, data
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise _away(type(error).__name__) from None
        if not answered:
            raise _away("its answer ended in the middle")

    async def clear(self, session_id: str) -> list[dict[str, Any]]:
        """Start the conversation over; the facts that are carried on."""
        body = await self._request("POST", f"/chat/{session_id}/clear", 200)
        return list(json.loads(body)["carried"])

    async def forget(self, session_id: str) -> None:
        """Start the conversation over with nothing."""
        await self._request("DELETE", f"/chat/{session_id}", 204)

    async def delete(self, session_id: str) -> None:
        """Remove all that the agent has kept of the conversation."""
        await self._request("DELETE", f"/conversations/{session_id}", 204)

    async def _request(self, method: str, path: str, expected: int) -> bytes:
        timeout = aiohttp.ClientTimeout(total=60)
        try:
            async with self._connections.http.request(
                method, self._url + path, headers=self._headers, timeout=timeout
            ) as response:
                body = await response.read()
        except (aiohttp.ClientError, OSError) as error:
            raise _away(type(error).__name__) from None
        if response.status != expected:
            raise _away(f"it answered {response.status}")
        return body


async def _events(chunks: AsyncIterator[bytes]) -> AsyncIterator[tuple[str, Any]]:
    """The events of a stream of bytes. Raises ValueError for what is none."""
    held = b""
    async for chunk in chunks:
        held += chunk
        *whole, held = held.split(b"\n\n")
        if len(held) > MAX_EVENT_BYTES:
            raise ValueError("an event that does not end")
        for block in whole:
            lines = dict(line.split(": ", 1) for line in block.decode().split("\n"))
            yield lines["event"], json.loads(lines["data"])


def _away(why: str) -> UnavailableError:
    return UnavailableError(
        f"The agent did not answer: {why}.", next_step="Ask again; if it stays, see sentinel status."
    )

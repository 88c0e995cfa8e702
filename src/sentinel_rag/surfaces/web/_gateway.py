"""The gateway as this surface uses it: each request with the key of the person whom it is for, and no other.

What the gateway refuses is passed on in its own words; this surface adds no right and takes none away.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import quote

import aiohttp  # noqa: TID253  # the module is this library's use, in a process that always needs it

from sentinel_rag.contracts.errors import UnavailableError
from sentinel_rag.contracts.handles import fill_in, handles_in
from sentinel_rag.surfaces.web._connections import Connections
from sentinel_rag.surfaces.web._problems import Problem

MAX_ASKED = 500
LOOK_TIMEOUT_S = 660.0
"""Above the longest time that a policy can give a tool: the gateway ends a call, not this client."""
PASSED_ON = frozenset({403, 404, 409, 413, 422, 429})


class Gateway:
    """The gateway at `url`. Methods raise UnavailableError if it is away."""

    def __init__(self, url: str, connections: Connections) -> None:
        self._url = url.rstrip("/")
        self._connections = connections

    async def open_session(self, key: str) -> str:
        """The id of a new, clean session of the agent, which belongs to the person."""
        status, body = await self._call(key, "POST", "/v1/sessions")
        if status != 201:
            raise refused(status, body)
        return str(body["session_id"])

    async def is_open(self, key: str, session_id: str) -> bool:
        """Whether the gateway knows the session as this person's, and open."""
        status, body = await self._call(key, "GET", f"/v1/sessions/{_part(session_id)}")
        if status not in (200, 404):
            raise refused(status, body)
        return status == 200 and body["closed"] is False and "named" in body

    async def say(self, key: str, session_id: str, words: str) -> None:
        """Send the person's own words before the agent gets them."""
        status, body = await self._call(key, "POST", f"/v1/sessions/{_part(session_id)}/words", {"text": words})
        if status != 200:
            raise refused(status, body)

    async def close_session(self, key: str, session_id: str) -> None:
        """End a session; one that is not there is ended already."""
        status, body = await self._call(key, "DELETE", f"/v1/sessions/{_part(session_id)}")
        if status not in (204, 404, 409):
            raise refused(status, body)

    async def records(self, key: str, session_id: str) -> Any | None:
        """What became of the calls of the person's session; None where it is not known any more."""
        status, body = await self._call(key, "GET", f"/v1/sessions/{_part(session_id)}/records")
        if status == 404:
            return None
        if status != 200:
            raise refused(status, body)
        return body

    async def reveal(
        self, key: str, session_id: str, value: Any, fill: Callable[[Any, Mapping[str, Any]], Any] = fill_in
    ) -> Any:
        """A JSON value with the hidden values in it that this person may see; the others stay placeholders, and all do
        where the session is not there any more. An answer is filled by `fill_in_answer`."""
        found = await self.values(key, session_id, handles_in(value))
        return fill(value, found) if found else value

    async def values(self, key: str, session_id: str, handles: Sequence[str]) -> dict[str, Any]:
        """The hidden values that this person may see, by handle; none where the session is not there any more."""
        found: dict[str, Any] = {}
        for start in range(0, len(handles), MAX_ASKED):
            asked = handles[start : start + MAX_ASKED]
            path = f"/v1/sessions/{_part(session_id)}/resolve"
            status, body = await self._call(key, "POST", path, {"handles": list(asked)})
            if status == 404:
                return {}
            if status != 200:
                raise refused(status, body)
            found |= body["values"]
        return found

    async def look(self, key: str, session_id: str, tool: str, arguments: dict[str, Any]) -> tuple[int, Any]:
        """Status and body of a person's own call of a tool, as the gateway gives them."""
        body = {"session_id": session_id, "tool_name": tool, "args": arguments}
        return await self._call(key, "POST", "/v1/look", body, timeout_s=LOOK_TIMEOUT_S)

    async def ask(self, key: str, method: str, path: str, body: Any = None) -> Any:
        """The answer to a request of the person's. Raises Problem with the gateway's own refusal."""
        status, answer = await self._call(key, method, path, body)
        if status != 200:
            raise refused(status, answer)
        return answer

    async def _call(
        self, key: str, method: str, path: str, body: Any = None, *, timeout_s: float = 60.0
    ) -> tuple[int, Any]:
        timeout = aiohttp.ClientTimeout(total=timeout_s)
        data = None if body is None else json.dumps(body).encode()
        headers = {"X-API-Key": key, **({} if data is None else {"Content-Type": "application/json"})}
        try:
            async with self._connections.http.request(
                method, self._url + path, data=data, headers=headers, timeout=timeout, allow_redirects=False
            ) as response:
                raw = await response.read()
                return response.status, json.loads(raw) if raw else None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise UnavailableError(
                f"The gateway did not answer: {type(error).__name__}.", next_step="Run: sentinel status"
            ) from None


def _part(text: str) -> str:
    return quote(text, safe="")


def refused(status: int, body: Any) -> Problem:
    """The gateway's refusal of a person's request, as this surface passes it on."""
    told = body if isinstance(body, dict) else {}
    detail, reason = str(told.get("detail", "The gateway refused it.")), str(told.get("reason", "refused"))
    if status == 401:
        return Problem(
            403,
            "key_ended",
            "Your key at the gateway works no more.",
            "Ask whoever looks after accounts here: sentinel users change NAME --role ... makes a new one.",
        )
    if status in PASSED_ON:
        return Problem(status, reason, detail, "See the reason; asking again in the same way changes nothing.")
    return Problem(503, "unavailable", "The gateway could not do it just now.", "Try again in a moment.")

"""What this surface asks of the agent and of the gateway, and a person's own readings without the agent.

Each person reads in one session of their own key, which the gateway lets no agent's key enter: no conversation learns
of it or rises by it. The agent gets a person's words and never a person's key.
"""

from __future__ import annotations

import json
import math
import secrets
import ssl
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import aiohttp  # noqa: TID253  # the module is this library's use, in a process that always needs it
import anyio

from sentinel_rag.contracts.errors import UnavailableError
from sentinel_rag.contracts.handles import QUOTE_KEY, REF_KEY, fill_in, handles_in, placeholder
from sentinel_rag.surfaces.users import Account
from sentinel_rag.surfaces.web._problems import RequestProblem
from sentinel_rag.telemetry import traceparent


class Connections:
    """Kept-alive connections without cookies, proxies or a bound of their own: turns and rates bound them.
    `trusted` is what the other side is checked by, None the system's authorities."""

    def __init__(self, trusted: ssl.SSLContext | None = None) -> None:
        self._trusted = trusted
        self._session: aiohttp.ClientSession | None = None

    @property
    def http(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, ssl=self._trusted or True),
                cookie_jar=aiohttp.DummyCookieJar(),
                trust_env=False,
            )
        return self._session

    async def aclose(self) -> None:
        """Close them. They may be used again afterwards."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()


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

    async def about(self) -> dict[str, str]:
        """Its `version`, and the `model` that answers: empty where none does."""
        told: dict[str, str] = json.loads(await self._request("GET", "/about", 200))
        return told

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

    async def say(self, key: str, session_id: str, words: str, chosen: str = "") -> None:
        """Send the person's own words before the agent gets them, with the option on the page that they choose."""
        said = {"text": words, "chosen": chosen}
        status, body = await self._call(key, "POST", f"/v1/sessions/{_part(session_id)}/words", said)
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
        if not 200 <= status < 300:
            raise refused(status, answer)
        return answer

    async def readiness(self) -> dict[str, str]:
        """What it says of its parts, by their names: `ok`, or what is wrong."""
        _, body = await self._call("", "GET", "/readyz")
        return dict(body["checks"])

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


def refused(status: int, body: Any) -> RequestProblem:
    """The gateway's refusal of a person's request, as this surface passes it on."""
    told = body if isinstance(body, dict) else {}
    detail, reason = str(told.get("detail", "The gateway refused it.")), str(told.get("reason", "refused"))
    if status == 401:
        return RequestProblem(
            403,
            "key_ended",
            "Your key at the gateway works no more.",
            "Ask whoever looks after accounts here: sentinel users change NAME --role ... makes a new one.",
        )
    if status in PASSED_ON:
        return RequestProblem(status, reason, detail, "See the reason; asking again in the same way changes nothing.")
    return RequestProblem(503, "unavailable", "The gateway could not do it just now.", "Try again in a moment.")


LASTS_S = 12 * 3600.0
"""Then another session begins and the hidden values of the old one go. An approval that is for it goes too."""
MOST_PEOPLE = 10_000
ENDED = frozenset({404, 409})
AT_ONCE = 6
"""Readings of one person that run at once. The next ones wait, so that nobody takes the tool servers from others."""


@dataclass(frozen=True, slots=True)
class _Looking:
    session_id: str
    key_id: str
    ends: float


class Looks:
    """Who looks where, in the memory of this process; `seconds` is a clock that only goes forward."""

    def __init__(self, gateway: Gateway, seconds: Callable[[], float]) -> None:
        self._gateway = gateway
        self._seconds = seconds
        self._people: OrderedDict[str, _Looking] = OrderedDict()
        self._places: dict[str, anyio.CapacityLimiter] = {}

    async def look(
        self, account: Account, key: str, tool: str, arguments: dict[str, Any], *, reveal: bool = True
    ) -> dict[str, Any]:
        """What the tool answers, as `{"tool", "audit_id", "result"}`, with the hidden values that the person may see;
        the others, and without `reveal` all, are placeholders. Raises Problem with why there is no answer, and
        UnavailableError."""
        places = self._places.setdefault(account.user_id, anyio.CapacityLimiter(AT_ONCE))
        try:
            async with places:
                return await self._look(account, key, tool, arguments, reveal=reveal)
        finally:
            if not self.running(account.user_id):
                self._places.pop(account.user_id, None)

    def running(self, user_id: str) -> tuple[int, int] | None:
        """How many readings of the person run, and how many wait for one to end; None if there is none."""
        places = self._places.get(user_id)
        found = None if places is None else places.statistics()
        return (found.borrowed_tokens, found.tasks_waiting) if found and found.borrowed_tokens else None

    async def _look(
        self, account: Account, key: str, tool: str, arguments: dict[str, Any], *, reveal: bool
    ) -> dict[str, Any]:
        session_id = await self._session(account, key)
        status, body = await self._gateway.look(key, session_id, tool, arguments)
        if status in ENDED:  # the gateway has lost or closed it meanwhile
            if self._at(account.user_id) == session_id:
                del self._people[account.user_id]
            session_id = await self._session(account, key)
            status, body = await self._gateway.look(key, session_id, tool, arguments)
        if status != 200:
            raise _problem(tool, status, body)
        handles = tuple(_handles(body["result"])) if reveal else ()
        found = await self._gateway.values(key, session_id, handles)
        return {"tool": tool, "audit_id": body["audit_id"], "result": _plain(body["result"], found)}

    def owners(self, session_ids: Collection[str]) -> dict[str, str]:
        """The people who look in those of the sessions that are theirs, by session."""
        here = {looking.session_id: user_id for user_id, looking in self._people.items()}
        return {session_id: here[session_id] for session_id in session_ids if session_id in here}

    async def _session(self, account: Account, key: str) -> str:
        known = self._people.get(account.user_id)
        if known is not None and known.key_id == account.key_id and self._seconds() < known.ends:
            self._people.move_to_end(account.user_id)
            return known.session_id
        # Nobody can guess it; the gateway opens a session under an id when it is first used.
        begun = _Looking(secrets.token_hex(24), account.key_id, self._seconds() + LASTS_S)
        self._people[account.user_id] = begun
        if len(self._people) > MOST_PEOPLE:
            self._people.popitem(last=False)
        if known is not None:
            await self._gateway.close_session(key, known.session_id)
        return begun.session_id

    def _at(self, user_id: str) -> str | None:
        known = self._people.get(user_id)
        return None if known is None else known.session_id


def _handles(value: Any) -> dict[str, None]:
    """The handles in a result as the gateway sends it, each once."""
    if isinstance(value, dict):
        if value.keys() == {REF_KEY}:
            return {str(value[REF_KEY]): None}
        return {handle: None for part in value.values() for handle in _handles(part)}
    if isinstance(value, list):
        return {handle: None for part in value for handle in _handles(part)}
    return {}


def _plain(value: Any, found: dict[str, Any]) -> Any:
    """The result with known hidden values in their places, by place and not by text: a row may hold what only looks
    like a placeholder."""
    if isinstance(value, dict):
        if value.keys() == {REF_KEY}:
            handle = str(value[REF_KEY])
            return found[handle] if handle in found else placeholder(handle)
        if value.keys() == {QUOTE_KEY}:
            return value[QUOTE_KEY]
        return {name: _plain(part, found) for name, part in value.items()}
    if isinstance(value, list):
        return [_plain(part, found) for part in value]
    return value


def _problem(tool: str, status: int, body: Any) -> RequestProblem:
    """Why there is no answer, with what the person can do."""
    told = body if isinstance(body, dict) else {}
    detail, reason = str(told.get("detail", "")), str(told.get("reason", ""))
    error = told.get("error") or {}
    next_step = str(error.get("next_step", ""))
    if status == 403 and reason == "approval_required":
        waits = told.get("approval_id")
        step = "Nobody can be asked for it now." if waits is None else f"Somebody decides approval {waits}; ask again."
        return RequestProblem(403, reason, detail, step)
    if status == 403 and reason == "unknown_tool":
        return RequestProblem(403, reason, f"There is no tool {tool} here.", "GET /tools lists those that there are.")
    if status == 403:
        rule = told.get("rule_id")
        step = str(
            told.get("note")
            or ("Whoever looks after the policy knows why." if rule is None else f"Rule {rule} of the policy says so.")
        )
        return RequestProblem(403, reason, detail, step)
    if status == 413:
        return RequestProblem(413, reason, detail, "Ask for less: fewer rows, or a narrower window.")
    if status == 422:
        allowed = ", ".join(map(str, error.get("allowed", ())))
        return RequestProblem(422, reason, detail, f"{next_step} Allowed: {allowed}." if allowed else next_step)
    if status == 429:
        wait = max(1, math.ceil(error.get("retry_after_s") or 5))
        return RequestProblem(429, reason, detail, f"Wait {wait} s and ask again.", {"Retry-After": str(wait)})
    if status in (502, 503, 504) and reason:
        return RequestProblem(503, reason, detail, next_step or "Try again in a moment.", {"Retry-After": "5"})
    return refused(status, body)

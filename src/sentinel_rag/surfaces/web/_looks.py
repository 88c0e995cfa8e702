"""What a person reads without the agent: in which session, and how the answer is told.

Each person looks in one session of their own key, which the gateway lets no agent's key enter: no conversation
learns of it or rises by it, and nothing of a conversation reaches it. Above lie the routes; the gateway below
decides, records and runs each call, and refuses whatever does not only read.
"""

from __future__ import annotations

import math
import secrets
from collections import OrderedDict
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

import anyio

from sentinel_rag.contracts.handles import QUOTE_KEY, REF_KEY, placeholder
from sentinel_rag.surfaces.users import Account
from sentinel_rag.surfaces.web._gateway import Gateway, refused
from sentinel_rag.surfaces.web._problems import Problem

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

    async def look(self, account: Account, key: str, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """What the tool answers, as `{"tool", "audit_id", "result"}`, with the hidden values that the person may see;
        the others are placeholders. Raises Problem with why there is no answer, and UnavailableError."""
        places = self._places.setdefault(account.user_id, anyio.CapacityLimiter(AT_ONCE))
        try:
            async with places:
                return await self._look(account, key, tool, arguments)
        finally:
            if not self.running(account.user_id):
                self._places.pop(account.user_id, None)

    def running(self, user_id: str) -> tuple[int, int] | None:
        """How many readings of the person run, and how many wait for one to end; None if there is none."""
        places = self._places.get(user_id)
        found = None if places is None else places.statistics()
        return (found.borrowed_tokens, found.tasks_waiting) if found and found.borrowed_tokens else None

    async def _look(self, account: Account, key: str, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        session_id = await self._session(account, key)
        status, body = await self._gateway.look(key, session_id, tool, arguments)
        if status in ENDED:  # the gateway has lost or closed it meanwhile
            if self._at(account.user_id) == session_id:
                del self._people[account.user_id]
            session_id = await self._session(account, key)
            status, body = await self._gateway.look(key, session_id, tool, arguments)
        if status != 200:
            raise _problem(tool, status, body)
        found = await self._gateway.values(key, session_id, tuple(_handles(body["result"])))
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


def _problem(tool: str, status: int, body: Any) -> Problem:
    """Why there is no answer, with what the person can do."""
    told = body if isinstance(body, dict) else {}
    detail, reason = str(told.get("detail", "")), str(told.get("reason", ""))
    error = told.get("error") or {}
    next_step = str(error.get("next_step", ""))
    if status == 403 and reason == "approval_required":
        waits = told.get("approval_id")
        step = "Nobody can be asked for it now." if waits is None else f"Somebody decides approval {waits}; ask again."
        return Problem(403, reason, detail, step)
    if status == 403 and reason == "unknown_tool":
        return Problem(403, reason, f"There is no tool {tool} here.", "GET /tools lists those that there are.")
    if status == 403:
        rule = told.get("rule_id")
        step = str(
            told.get("note")
            or ("Whoever looks after the policy knows why." if rule is None else f"Rule {rule} of the policy says so.")
        )
        return Problem(403, reason, detail, step)
    if status == 413:
        return Problem(413, reason, detail, "Ask for less: fewer rows, or a narrower window.")
    if status == 422:
        allowed = ", ".join(map(str, error.get("allowed", ())))
        return Problem(422, reason, detail, f"{next_step} Allowed: {allowed}." if allowed else next_step)
    if status == 429:
        wait = max(1, math.ceil(error.get("retry_after_s") or 5))
        return Problem(429, reason, detail, f"Wait {wait} s and ask again.", {"Retry-After": str(wait)})
    if status in (502, 503, 504) and reason:
        return Problem(503, reason, detail, next_step or "Try again in a moment.", {"Retry-After": "5"})
    return refused(status, body)

"""What this process knows of the sessions of MCP clients: what each client can do, which calls run in it, and which
questions it has not answered.

The session itself is the gateway's own, with its labels, in the store; its id is the one that MCP names. What is here
is lost with the process, and only convenience depends on it: a client whose abilities are forgotten is asked nothing.
"""

from __future__ import annotations

import secrets
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import anyio

from sentinel_rag.contracts.client_disconnect import ClientDisconnect
from sentinel_rag.contracts.json_values import JsonObject
from sentinel_rag.gateway.downstream.messages import Answer, RequestId

MAX_REMEMBERED = 2_000
MAX_WAITS_PER_KEY = 10
"""Calls of one key that wait for a person at once; as many as may wait for approvals at all."""


@dataclass(frozen=True, slots=True)
class Abilities:
    """What a client can show a person: a page to open, a message to close."""

    urls: bool = False
    forms: bool = False

    @classmethod
    def of(cls, capabilities: object) -> Abilities:
        """Of `capabilities` as a client states them. Whoever can elicit and names no mode can show a form."""
        found = capabilities.get("elicitation") if isinstance(capabilities, dict) else None
        if not isinstance(found, dict):
            return cls()
        return cls(urls="url" in found, forms="form" in found or "url" not in found)

    @property
    def any(self) -> bool:
        return self.urls or self.forms


class SameId(Exception):
    """A call with this id runs in the session already."""


@dataclass(slots=True)
class _Question:
    """One question to a client. `answer` is what it said first."""

    answered: anyio.Event = field(default_factory=anyio.Event)
    answer: JsonObject | None = None


class ClientSessions:
    """Belongs to one event loop. Every key of a table begins with the id of the API key, so that no client reaches
    into another's."""

    def __init__(self) -> None:
        self._abilities: OrderedDict[str, Abilities] = OrderedDict()
        self._calls: dict[tuple[str, str, RequestId], ClientDisconnect] = {}
        self._questions: dict[tuple[str, str, RequestId], _Question] = {}
        self._waits: dict[str, int] = {}

    def remember(self, session_id: str, abilities: Abilities) -> None:
        """Note what the client of a session can do; of too many the oldest are forgotten."""
        self._abilities[session_id] = abilities
        if len(self._abilities) > MAX_REMEMBERED:
            self._abilities.popitem(last=False)

    def abilities(self, session_id: str) -> Abilities:
        return self._abilities.get(session_id, Abilities())

    def forget(self, session_id: str) -> None:
        """The session has ended."""
        self._abilities.pop(session_id, None)

    @contextmanager
    def call(
        self, key_id: str, session_id: str, request_id: RequestId, caller: ClientDisconnect | None
    ) -> Iterator[ClientDisconnect]:
        """What tells that nobody waits for a call any more: its client said so, or its connection ended. Raises
        SameId while another call of the session has this id."""
        place = (key_id, session_id, request_id)
        if place in self._calls:
            raise SameId
        departure = self._calls[place] = ClientDisconnect()
        try:
            if caller is None:
                yield departure
            else:
                with caller.heard_by(departure.tell):
                    yield departure
        finally:
            del self._calls[place]

    def cancel(self, key_id: str, session_id: str, request_id: RequestId) -> None:
        """The client does not wait for that call any more; nothing happens for one that is not there."""
        departure = self._calls.get((key_id, session_id, request_id))
        if departure is not None:
            departure.tell()

    @contextmanager
    def question(self, key_id: str, session_id: str) -> Iterator[tuple[str, _Question]]:
        """A question to the client under a new id, for as long as somebody waits for the answer."""
        question_id = f"sentinel-{secrets.token_hex(8)}"
        place = (key_id, session_id, question_id)
        question = self._questions[place] = _Question()
        try:
            yield question_id, question
        finally:
            del self._questions[place]

    def answer(self, key_id: str, session_id: str, said: Answer) -> None:
        """What the client said; nothing happens for a question that nobody asked it, or a second answer."""
        question = self._questions.get((key_id, session_id, said.request_id))
        if question is not None and not question.answered.is_set():
            question.answer = said.result
            question.answered.set()

    @contextmanager
    def waiting(self, key_id: str) -> Iterator[bool]:
        """Whether one more call of the key may wait for a person; it counts as one for as long as the block runs."""
        if self._waits.get(key_id, 0) >= MAX_WAITS_PER_KEY:
            yield False
            return
        self._waits[key_id] = self._waits.get(key_id, 0) + 1
        try:
            yield True
        finally:
            self._waits[key_id] -= 1
            if not self._waits[key_id]:
                del self._waits[key_id]

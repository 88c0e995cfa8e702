"""The webhook of approvals: what its receiver is told and when, how both sides sign, and a card for Microsoft Teams.

A signature is `t=<unix seconds>,v1=<hex>` in the header `Sentinel-Signature`, where v1 is the HMAC-SHA256 under the
shared secret of `<purpose>.<t>.<body>`. The purpose keeps a notice from being sent back as a decision, the time bounds
a replay, and the token of the notice lets a decision count once. A notice holds no argument: a channel has readers whom
no policy names. What is still to be told stands in the table, so a killed process loses no notice.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import quote, urlsplit

import anyio
import msgspec

from sentinel_rag.contracts.errors import UnavailableError
from sentinel_rag.contracts.ports import Clock, utc_now
from sentinel_rag.contracts.query_results import format_time
from sentinel_rag.gateway.approvals.approval import RULE_REQUIRES
from sentinel_rag.gateway.approvals.store import ApprovalStore
from sentinel_rag.gateway.approvals.table import Notice

if TYPE_CHECKING:
    import aiohttp


EFFECTS = {"read": "reads data", "write": "changes something in your systems", "external": "sends data out"}
SCHEMA = "http://adaptivecards.io/schemas/adaptive-card.json"
VERSION = "1.4"
"""What Teams shows on every client."""


def teams_card(notice: Notice, page: str | None) -> bytes:
    """The JSON of a message with one card. `page` is where people reach the web page, None where they do not: then the
    card names the command instead of a link."""
    approval = notice.approval
    binding, question = approval.binding, approval.question
    look = f"sentinel approvals show {approval.approval_id}"
    facts = {
        "Effect": EFFECTS.get(question.effect, question.effect),
        "Rule": binding.rule_id,
        "Why": question.why if question.why == RULE_REQUIRES else f"an argument carries too much ({question.why})",
        "Read before": f"{binding.context.sensitivity.name}, {binding.context.integrity.name}",
        "Asked by": f"the key {binding.key_id}",
        "Until": format_time(approval.ends_at),
        "Approval": approval.approval_id,
    }
    body: list[dict[str, Any]] = [
        {
            "type": "TextBlock",
            "text": f"A call of {binding.tool} waits for a person",
            "weight": "Bolder",
            "size": "Medium",
            "wrap": True,
        },
        {"type": "FactSet", "facts": [{"title": title, "value": value} for title, value in facts.items()]},
        {
            "type": "TextBlock",
            "text": "Nothing can be decided here. Look at the exact call and decide with your own key"
            + ("." if page else f": {look}"),
            "wrap": True,
        },
    ]
    card: dict[str, Any] = {"$schema": SCHEMA, "type": "AdaptiveCard", "version": VERSION, "body": body}
    if page is not None:
        address = f"{page.rstrip('/')}/#/approvals/{quote(approval.approval_id, safe='')}"
        card["actions"] = [{"type": "Action.OpenUrl", "title": "Look at the call", "url": address}]
    attachment = {"contentType": "application/vnd.microsoft.card.adaptive", "contentUrl": None, "content": card}
    return msgspec.json.encode({"type": "message", "attachments": [attachment]})


SIGNATURE_HEADER = "Sentinel-Signature"
NOTICE, DECISION = "notice", "decision"
JSON_FORM, TEAMS_FORM = "json", "teams"
MAX_AGE_S = 300
"""How far a signature's time may be from ours, either way."""

_FORM = re.compile(r"t=(\d{1,12}),v1=([0-9a-f]{64})")


@dataclass(frozen=True, slots=True)
class Webhook:
    """Where notices go, and what they hold. With `decides` the receiver may also answer; see `approval_routes`. The
    address of a Teams workflow is a secret by itself. `page` is where people reach the page, for the link of a card."""

    url: str = field(repr=False)
    secret: str = field(repr=False)
    arguments: bool = False
    decides: bool = False
    form: str = JSON_FORM
    page: str | None = None

    def __post_init__(self) -> None:
        if self.form == TEAMS_FORM and (self.arguments or self.decides):
            raise ValueError("a card for a channel holds no arguments, and a channel decides nothing")


def sign(secret: str, purpose: str, body: bytes, now: datetime) -> str:
    """The value of the signature header for `body`."""
    seconds = int(now.timestamp())
    return f"t={seconds},v1={_digest(secret, purpose, seconds, body)}"


def is_signed(secret: str, purpose: str, body: bytes, header: str, now: datetime) -> bool:
    """True if `header` signs exactly this body for this purpose, not longer ago than `MAX_AGE_S`."""
    match = _FORM.fullmatch(header)
    if match is None:
        return False
    seconds = int(match[1])
    genuine = hmac.compare_digest(_digest(secret, purpose, seconds, body), match[2])
    return genuine and abs(now.timestamp() - seconds) <= MAX_AGE_S


def notice_body(notice: Notice, webhook: Webhook) -> bytes:
    """The JSON of a notice. Without `arguments` it holds no value of the call: names, labels, the rule and hashes."""
    if webhook.form == TEAMS_FORM:
        return teams_card(notice, webhook.page)
    approval = notice.approval
    binding, question = approval.binding, approval.question.to_dict()
    told: dict[str, Any] = {
        "event": "approval.pending",
        "approval_id": approval.approval_id,
        "asked_at": format_time(approval.asked_at),
        "ends_at": format_time(approval.ends_at),
        "tool": binding.tool,
        "effect": approval.question.effect,
        "requested_by": binding.key_id,
        "rule_id": binding.rule_id,
        "why": approval.question.why,
        "argument_labels": {name: label.to_dict() for name, label in binding.argument_labels.items()},
        "context": binding.context.to_dict(),
        "violations": question["violations"],
        "approvers": question["approvers"],
        "arguments_sha256": binding.arguments_sha256,
        "binding_sha256": binding.sha256(),
        "attempt": notice.attempt,
    }
    if webhook.arguments:
        told["arguments"] = question["arguments"]
    if webhook.decides:
        told["token"] = notice.token
    return msgspec.json.encode(told)


def _digest(secret: str, purpose: str, seconds: int, body: bytes) -> str:
    return hmac.new(secret.encode(), f"{purpose}.{seconds}.".encode() + body, hashlib.sha256).hexdigest()


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

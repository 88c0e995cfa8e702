"""The webhook's wire: what its receiver is told, how both sides sign, and what a signed answer must be.

A signature is `t=<unix seconds>,v1=<hex>` in the header `Sentinel-Signature`, where v1 is the HMAC-SHA256 under the
shared secret of `<purpose>.<t>.<body>`. The purpose keeps a notice from being sent back as a decision, the time bounds
a replay, and the token of the notice lets a decision count once. `notifier` delivers; `callback` takes the answers.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import msgspec

from sentinel_rag.contracts.query_results import format_time
from sentinel_rag.gateway.approval_routes.teams_card import teams_card
from sentinel_rag.gateway.approvals.table import Notice

SIGNATURE_HEADER = "Sentinel-Signature"
NOTICE, DECISION = "notice", "decision"
JSON_FORM, TEAMS_FORM = "json", "teams"
MAX_AGE_S = 300
"""How far a signature's time may be from ours, either way."""

_FORM = re.compile(r"t=(\d{1,12}),v1=([0-9a-f]{64})")


@dataclass(frozen=True, slots=True)
class Webhook:
    """Where notices go, and what they hold. With `decides` the receiver may also answer; see `callback`. The address of
    a Teams workflow is a secret by itself. `page` is where people reach the web page, for the link of a card."""

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

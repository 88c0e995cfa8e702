"""A notice as a card for a Microsoft Teams channel, in the form that a Workflows webhook takes.

It says that a call waits, by names of the policy and labels, and where to look. It never holds an argument or a token:
a channel has readers whom no policy names. `webhook` chooses this form; `notifier` delivers it like any other.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import msgspec

from sentinel_rag.contracts.query_results import format_time
from sentinel_rag.gateway.approvals.questions import RULE_REQUIRES
from sentinel_rag.gateway.approvals.table import Notice

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

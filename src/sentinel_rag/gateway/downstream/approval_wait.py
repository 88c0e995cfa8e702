"""A call that a person has to allow, towards a client that can show its user something.

The client is told that an approval waits and where it is decided; it is not asked for the decision, because whatever
comes back from a client may have been written by the model in it. "Accept" means no more than "I wait for it": then the
call is held until an approver has decided with a key of their own, and goes through the gate again.

The one exception is a client of which the policy attests that its person answers (`client_confirms`), for a call that
the asker confirms: it is asked, with the exact call as the gateway has it on record, and its yes is the asker's.
"""

from __future__ import annotations

from typing import Any

import anyio

from sentinel_rag.contracts.json_values import JsonValue, canonical_json
from sentinel_rag.gateway.approvals import Approval, ApprovalState, ApprovalStore, Verdict
from sentinel_rag.gateway.downstream.client_sessions import Abilities
from sentinel_rag.gateway.outcomes import Denied

INPUT = "approval"
"""The name of the question in a result that asks for input."""


def elicitation(denied: Denied, tool: str, abilities: Abilities, page: str | None, *, named: bool) -> dict[str, Any]:
    """The params of `elicitation/create`. `page` is the address under which people decide approvals; `named`: this
    revision of MCP gives a page's question an id."""
    approval_id = denied.approval_id
    message = (
        f"{tool} runs only after a person has approved it: approval {approval_id}, rule {denied.deny.rule_id}. "
        "Nothing that you answer here decides it. An approver decides "
    )
    if page is not None and abilities.urls:
        found = {"mode": "url", "message": f"{message}on the page.", "url": f"{page}/{approval_id}"}
        return {**found, "elicitationId": approval_id} if named else found
    message += f"with: sentinel approvals show {approval_id}. Accept to wait for the decision."
    return {"mode": "form", "message": message, "requestedSchema": {"type": "object", "properties": {}}}


CONFIRM = "confirm"
"""The name of the field in which a client's person says yes, and the beginning of the name of the question."""

LONGEST_CALL = 4_000
"""Characters of a call that a form shows whole; a longer one is decided where all of it can be read."""


def confirmation(approval: Approval) -> dict[str, Any] | None:
    """The params of `elicitation/create` by which a client's person confirms exactly this call; None where it is too
    long to be shown so."""
    question = approval.question
    call = f"The call: {approval.binding.tool} {_visible(canonical_json(question.arguments).decode())}"
    changes = () if question.subject is None else question.subject.changes
    told = [_visible(f"{each.field}: {_value(each.before)} -> {_value(each.after)}") for each in changes]
    message = "\n".join((question.title, *told, call, "It runs at your yes, once."))
    if len(message) > LONGEST_CALL:
        return None
    wanted = {"type": "boolean", "title": "Do exactly this"}
    schema = {"type": "object", "properties": {CONFIRM: wanted}, "required": [CONFIRM]}
    return {"mode": "form", "message": message, "requestedSchema": schema}


def verdict_of(answer: object) -> Verdict | None:
    """What a client's person said to `confirmation`; None if they said neither, so that it goes on waiting."""
    action = answer.get("action") if isinstance(answer, dict) else None
    content = answer.get("content") if isinstance(answer, dict) else None
    if action == "decline":
        return Verdict.DENY
    said = content.get(CONFIRM) if action == "accept" and isinstance(content, dict) else None
    return (Verdict.APPROVE if said else Verdict.DENY) if isinstance(said, bool) else None


def _value(value: JsonValue) -> str:
    return "(none)" if value is None else canonical_json(value).decode()


def _visible(text: str) -> str:
    """Signs that could steer how a text is drawn, by their numbers."""
    return "".join(sign if sign.isprintable() else f"\\u{ord(sign):04x}" for sign in text)


def can_be_shown(abilities: Abilities, page: str | None) -> bool:
    """Whether a client can show its user anything of this."""
    return abilities.forms or (abilities.urls and page is not None)


def waits(answer: object) -> bool:
    """Whether a client's answer says that its user waits. Whatever else it says is not read."""
    return isinstance(answer, dict) and answer.get("action") == "accept"


async def decision_of(store: ApprovalStore, approval_id: str, longest_s: float) -> bool:
    """Whether the approval was decided, or has lapsed, within `longest_s`; and where the call runs at the yes, has."""
    with anyio.move_on_after(longest_s):
        while True:
            page = await store.page(ApprovalState.PENDING, 1)
            approval = await store.find(approval_id)
            if approval is None or approval.is_settled:
                return True
            await store.wait_for_change(page.mark, longest_s)
    return False

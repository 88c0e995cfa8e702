"""A call that a person has to allow, towards a client that can show its user something.

The client is told that an approval waits and where it is decided; it is never asked for the decision, because whatever
comes back from a client may have been written by the model in it. "Accept" means no more than "I wait for it": then the
call is held until an approver has decided with a key of their own, and goes through the gate again.
"""

from __future__ import annotations

from typing import Any

import anyio

from sentinel_rag.gateway.approvals import ApprovalState, ApprovalStore
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


def can_be_shown(abilities: Abilities, page: str | None) -> bool:
    """Whether a client can show its user anything of this."""
    return abilities.forms or (abilities.urls and page is not None)


def waits(answer: object) -> bool:
    """Whether a client's answer says that its user waits. Whatever else it says is not read."""
    return isinstance(answer, dict) and answer.get("action") == "accept"


async def decision_of(store: ApprovalStore, approval_id: str, longest_s: float) -> bool:
    """Whether the approval was decided, or has lapsed, within `longest_s`."""
    with anyio.move_on_after(longest_s):
        while True:
            page = await store.page(ApprovalState.PENDING, 1)
            approval = await store.find(approval_id)
            if approval is None or approval.state is not ApprovalState.PENDING:
                return True
            await store.wait_for_change(page.mark, longest_s)
    return False

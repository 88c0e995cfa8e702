"""What the gateway's HTTP face needs of approvals: their routes, and what runs beside them.

It joins the routes for keys with the webhook's parts, if there is a webhook; the parts do not know each other.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
from starlette.routing import Route

from sentinel_rag.contracts.ports import utc_now
from sentinel_rag.gateway.admission import Authenticator
from sentinel_rag.gateway.approval_routes.callback import Callback
from sentinel_rag.gateway.approval_routes.notifier import Notifier
from sentinel_rag.gateway.approval_routes.routes import Run, approval_routes
from sentinel_rag.gateway.approval_routes.webhook import Webhook
from sentinel_rag.gateway.approvals.store import ApprovalStore
from sentinel_rag.gateway.limits import Limits
from sentinel_rag.gateway.policy import Policies
from sentinel_rag.gateway.refusals import Refusals


def served_routes(
    store: ApprovalStore,
    webhook: Webhook | None,
    *,
    authenticator: Authenticator,
    refusals: Refusals,
    policies: Policies,
    limits: Limits,
    run: Run,
) -> list[Route]:
    """The routes of approvals; the signed one only if the webhook's receiver may decide. `run` runs what was approved,
    where it runs at the yes."""
    routes = approval_routes(store, authenticator, policies, limits, run)
    if webhook is not None and webhook.decides:
        signed = Callback(store, webhook, refusals=refusals, limits=limits, clock=utc_now, run=run)
        routes.append(signed.route())
    return routes


@asynccontextmanager
async def notifying(store: ApprovalStore, webhook: Webhook | None) -> AsyncIterator[None]:
    """Tell the webhook's receiver of questions for as long as the block runs."""
    async with anyio.create_task_group() as background:
        if webhook is not None:
            background.start_soon(Notifier(store, webhook).run)
        yield
        background.cancel_scope.cancel()

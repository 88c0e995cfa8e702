"""The desk at which people decide: the routes for keys with the scope `approve`, and the webhook.

Below it lies `approvals`, which holds what waits and knows neither HTTP nor keys.
"""

from sentinel_rag.gateway.approval_routes.serving import notifying, served_routes
from sentinel_rag.gateway.approval_routes.webhook import Webhook

__all__ = ["Webhook", "notifying", "served_routes"]

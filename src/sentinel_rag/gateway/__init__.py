"""Zone B: authenticates, labels, decides, records and forwards each tool call; it executes nothing.

`create_app` is the HTTP face; it takes ready parts: a policy (`policy.load_policy`), the state (`store.open_state`) and
one `Upstream` for each MCP server that the policy names. Whoever wants one of those alone does not load the face.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sentinel_rag.gateway.app import create_app
    from sentinel_rag.gateway.limits import GatewayLimits

__all__ = ["GatewayLimits", "create_app"]


def __getattr__(name: str) -> Any:
    if name == "create_app":
        from sentinel_rag.gateway.app import create_app

        return create_app
    if name == "GatewayLimits":
        from sentinel_rag.gateway.limits import GatewayLimits

        return GatewayLimits
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

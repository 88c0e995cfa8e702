"""Zone B: authenticates, labels, decides, records and forwards each tool call; it executes nothing.

`create_app` is the HTTP face; it takes ready parts: a policy (`policy.load_policy`), the state (`store.open_state`) and
one `Upstream` for each MCP server that the policy names.
"""

from sentinel_rag.interceptor.app import create_app
from sentinel_rag.interceptor.limits import Limits

__all__ = ["Limits", "create_app"]

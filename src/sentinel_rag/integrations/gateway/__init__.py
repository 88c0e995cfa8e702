"""The gateway as an adapter sees it: its tools, one call and how it ended, over blocking or asynchronous HTTP.

Above it lie the frameworks (`integrations.langchain`, `integrations.openai_agents`), below it contracts only.
"""

from sentinel_rag.integrations.gateway.answers import Answer, Blocked, NotRun, Ran, told_to_model
from sentinel_rag.integrations.gateway.calls import Called, GatewayCall, GatewayTool
from sentinel_rag.integrations.gateway.connection import GatewayConnection

__all__ = [
    "Answer",
    "Blocked",
    "Called",
    "GatewayCall",
    "GatewayConnection",
    "GatewayTool",
    "NotRun",
    "Ran",
    "told_to_model",
]

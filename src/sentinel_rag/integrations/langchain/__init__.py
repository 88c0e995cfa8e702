"""A gateway's tools for LangChain and LangGraph agents. `pip install 'sentinel-rag[langchain]'`; see docs/langchain.md.

tools = load_gateway_tools()              # SENTINEL_URL, SENTINEL_API_KEY
agent = create_agent(model, tools)
"""

from sentinel_rag.integrations.langchain.loading import GatewayToolkit, aload_gateway_tools, load_gateway_tools
from sentinel_rag.integrations.langchain.secure_tool import SentinelSecureTool
from sentinel_rag.integrations.langchain.security_block import SecurityBlockException

__all__ = [
    "GatewayToolkit",
    "SecurityBlockException",
    "SentinelSecureTool",
    "aload_gateway_tools",
    "load_gateway_tools",
]

"""The people's HTTP API: sign-in, `POST /chat` with its events, conversations, approvals, audit and policy.

A surface of its own process. It holds the keys of the people who are signed in and speaks to the gateway with each
person's own, and to the agent with none of them; what a person may do is decided at the gateway.
"""

from sentinel_rag.surfaces.web._agent import Agent
from sentinel_rag.surfaces.web._app import create_api, create_app
from sentinel_rag.surfaces.web._connections import Connections
from sentinel_rag.surfaces.web._gateway import Gateway
from sentinel_rag.surfaces.web._oidc import OidcClient, Provider
from sentinel_rag.surfaces.web._parts import Limits, SignInTerms, Web

__all__ = [
    "Agent",
    "Connections",
    "Gateway",
    "Limits",
    "OidcClient",
    "Provider",
    "SignInTerms",
    "Web",
    "create_api",
    "create_app",
]

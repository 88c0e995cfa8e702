"""The people's HTTP API: sign-in, `POST /chat` with its events, conversations, approvals, audit and policy.

A surface of its own process. It holds the keys of the people who are signed in and speaks to the gateway with each
person's own, and to the agent with none of them; what a person may do is decided at the gateway.
"""

from sentinel_rag.surfaces.web._app import create_api, create_app
from sentinel_rag.surfaces.web._clients import Agent, Connections, Gateway
from sentinel_rag.surfaces.web._oidc import OidcClient, Provider
from sentinel_rag.surfaces.web._parts import PersonLimits, SignInTerms, Web
from sentinel_rag.surfaces.web._stores import FilledStores, StoreZone

__all__ = [
    "Agent",
    "Connections",
    "FilledStores",
    "Gateway",
    "OidcClient",
    "PersonLimits",
    "Provider",
    "SignInTerms",
    "StoreZone",
    "Web",
    "create_api",
    "create_app",
]

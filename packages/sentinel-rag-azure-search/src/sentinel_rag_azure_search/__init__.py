"""Azure AI Search as a knowledge store: one index with the chunks, one with the vectors that are kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sentinel_rag.app.knowledge_stores import StoreKind
from sentinel_rag.contracts.errors import ConfigurationError

if TYPE_CHECKING:
    from sentinel_rag.knowledge.stores import KnowledgeStore
    from sentinel_rag.settings import Settings


def _open(settings: Settings) -> KnowledgeStore:
    from sentinel_rag.app.knowledge_stores import EntraToken, KeyHeaders
    from sentinel_rag_azure_search.connection import SearchConnection
    from sentinel_rag_azure_search.store import AzureSearchStore
    from sentinel_rag_azure_search.wire import AUDIENCE, SearchEndpoint

    wanted = settings.knowledge.azure_search
    if not wanted.url:
        raise ConfigurationError(
            "The address of Azure AI Search is not set.", next_step="Set SENTINEL_AZURE_SEARCH_ENDPOINT."
        )
    endpoint = SearchEndpoint(wanted.url, wanted.index)
    if wanted.key is not None:
        return AzureSearchStore(SearchConnection(endpoint, KeyHeaders({"api-key": wanted.key.reveal()})))
    token = EntraToken(AUDIENCE, "Azure AI Search", next_step="Sign in (`az login`) or set SENTINEL_AZURE_SEARCH_KEY.")
    return AzureSearchStore(SearchConnection(endpoint, token))


def _place(settings: Settings) -> str:
    wanted = settings.knowledge.azure_search
    return f"index {wanted.index} at {wanted.url or 'no address'}"


STORE = StoreKind(_open, _place, shared=True)
"""What the entry point `sentinel_rag.knowledge_stores` names."""

"""Azure AI Search as a knowledge store: one index with the chunks, one with the vectors that are kept."""

from sentinel_rag.knowledge.stores.azure_search.connection import Admission, SearchConnection
from sentinel_rag.knowledge.stores.azure_search.store import AzureSearchStore
from sentinel_rag.knowledge.stores.azure_search.wire import API_VERSION, AUDIENCE, SearchEndpoint

__all__ = ["API_VERSION", "AUDIENCE", "Admission", "AzureSearchStore", "SearchConnection", "SearchEndpoint"]

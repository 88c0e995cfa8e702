"""The store on Azure AI Search: for teams that share knowledge, and for what does not fit one machine.

Everything is in the service; nothing is kept here. The first write makes the indexes. A write returns when it can be
found, and then every later question of this process finds it; those of others do so as soon as their replica has it.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable

from sentinel_rag.knowledge.stores.port import StoreOfParts
from sentinel_rag_azure_search.connection import SearchConnection
from sentinel_rag_azure_search.index import SearchIndex
from sentinel_rag_azure_search.puts import LEASE_S, Puts
from sentinel_rag_azure_search.reading import Reading
from sentinel_rag_azure_search.writing import Writing


class AzureSearchStore(StoreOfParts):
    """A `KnowledgeStore` behind `connection`, which it closes. Threads may share it; close it or use `with`.

    `visible_within_s`: a write that cannot be found by then failed. `lease_s`: what a killed process left open is
    undone so long after it began. `patience_s`: how long a write waits for another process's.
    """

    def __init__(
        self,
        connection: SearchConnection,
        *,
        visible_within_s: float = 60.0,
        lease_s: float = LEASE_S,
        patience_s: float = 60.0,
        clock: Callable[[], float] | None = None,
    ) -> None:
        session = uuid.uuid4().hex
        name = connection.endpoint.index
        chunks = SearchIndex(connection, name, session, visible_within_s=visible_within_s)
        vectors = SearchIndex(connection, f"{name}-vectors", session, visible_within_s=visible_within_s)
        timed = {} if clock is None else {"clock": clock}
        reading = Reading(chunks)
        writing = Writing(chunks, vectors, Puts(chunks, lease_s=lease_s, patience_s=patience_s, **timed))

        def close() -> None:
            writing.close()
            connection.close()

        super().__init__(reading, writing, vectors=reading, kept=writing, close=close)

"""The store in PostgreSQL, on a real server: the contract of all stores, and what holds for it alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count

import pytest
from store_contract import StoreContract

from sentinel_rag.knowledge.stores import KnowledgeStore
from sentinel_rag.knowledge.stores.pgvector import PgVectorStore
from sentinel_rag.testing.postgres_server import PostgresServer

_NUMBERS = count(1)
Open = Callable[..., PgVectorStore]


@pytest.fixture
def schema() -> str:
    return f"test_{next(_NUMBERS)}"


class TestPgVectorStore(StoreContract):
    @pytest.fixture
    def store(self, postgres: PostgresServer, schema: str) -> Iterator[KnowledgeStore]:
        with PgVectorStore(postgres.url, schema) as opened:
            yield opened

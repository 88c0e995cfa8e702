"""The store on Azure AI Search: the contract of all stores, against the double of the service."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping

import pytest
from store_contract import StoreContract

from sentinel_rag.knowledge.stores import KnowledgeStore
from sentinel_rag.knowledge.stores.azure_search import AzureSearchStore, SearchConnection, SearchEndpoint
from sentinel_rag.testing.azure_search import AzureSearchDouble, running_azure_search

_NUMBERS = itertools.count()


class KeyAdmission:
    def __init__(self, key: str) -> None:
        self._key = key

    async def headers(self) -> Mapping[str, str]:
        return {"api-key": self._key}


@pytest.fixture(scope="module")
def service() -> Iterator[tuple[str, AzureSearchDouble]]:
    with running_azure_search() as running:
        yield running


def opened(url: str, index: str, **options: object) -> AzureSearchStore:
    connection = SearchConnection(SearchEndpoint(url, index), KeyAdmission("double-key"), first_wait_s=0.01)
    return AzureSearchStore(connection, **options)  # type: ignore[arg-type]


class TestAzureSearchStore(StoreContract):
    @pytest.fixture
    def store(self, service: tuple[str, AzureSearchDouble]) -> Iterator[KnowledgeStore]:
        with opened(service[0], f"kb-{next(_NUMBERS)}") as store:
            yield store

"""The knowledge stores by name: how each is opened with these settings, and where it lies. One branch a store.

What a store needs is imported when it is opened, so an installation pays for the one that it uses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sentinel_rag.contracts.errors import ConfigurationError, UnavailableError
from sentinel_rag.settings import Settings

if TYPE_CHECKING:
    from sentinel_rag.knowledge.stores import KnowledgeStore


SHARED_STORES = ("pgvector", "azure-search")
"""Stores that several homes may use, each with workspaces and playbooks of its own."""


@dataclass(frozen=True, slots=True)
class StoreKind:
    """How a store is opened, and where it lies as a person says it (no secret in it)."""

    open: Callable[[Settings], KnowledgeStore]
    place: Callable[[Settings], str]


def open_store(name: str, settings: Settings) -> KnowledgeStore:
    """The store of that name, made where there is none. Raises UnavailableError, also where its packages are not
    installed, and ConfigurationError for a name that no store has or a setting that it lacks."""
    return _kind(name).open(settings)


def place_of(name: str, settings: Settings) -> str:
    """Where the store of that name lies, for a person."""
    return _kind(name).place(settings)


def _kind(name: str) -> StoreKind:
    if name not in STORES:
        raise ConfigurationError(
            f"There is no knowledge store {name!r}.", next_step=f"Take one of these: {', '.join(STORES)}."
        )
    return STORES[name]


@contextmanager
def needs_extra(store: str, extra: str, *modules: str) -> Iterator[None]:
    """Around the import of a store: if one of its top-level `modules` is not installed, says the command that installs
    them."""
    try:
        yield
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in modules:
            raise
        raise UnavailableError(
            f"The knowledge store {store} needs the package {missing}, which is not installed.",
            next_step=f"Run: pip install 'sentinel-rag[{extra}]'",
        ) from None


def _local_file(settings: Settings) -> Path:
    return settings.home / "knowledge" / "knowledge.db"


def _open_local(settings: Settings) -> KnowledgeStore:
    from sentinel_rag.knowledge.stores import LocalStore

    return LocalStore(_local_file(settings))


def _chroma_folder(settings: Settings) -> Path:
    return settings.knowledge.chroma_folder or settings.home / "knowledge" / "chroma"


def _open_chroma(settings: Settings) -> KnowledgeStore:
    with needs_extra("chroma", "chroma", "chromadb", "numpy"):
        from sentinel_rag.knowledge.stores.chroma import ChromaStore

        return ChromaStore(_chroma_folder(settings))


def _open_pgvector(settings: Settings) -> KnowledgeStore:
    postgres = settings.knowledge.postgres
    if postgres.url is None:
        raise ConfigurationError(
            "SENTINEL_KNOWLEDGE_URL is not set; the knowledge store pgvector needs the address of its database.",
            next_step="Set it to postgresql://USER:PASSWORD@HOST/DATABASE.",
        )
    with needs_extra("pgvector", "postgres", "numpy", "psycopg"):
        from sentinel_rag.knowledge.stores.pgvector import PgVectorStore
    return PgVectorStore(postgres.url.reveal(), postgres.schema)


def _pgvector_place(settings: Settings) -> str:
    """Host and database, without what stands before them (user, password) and behind (options)."""
    postgres = settings.knowledge.postgres
    address = "" if postgres.url is None else postgres.url.reveal().partition("://")[2].partition("?")[0]
    host, _, database = address.rpartition("@")[2].partition("/")
    return f"PostgreSQL, database {database or '(default)'} at {host or 'this machine'}, schema {postgres.schema}"


def _open_azure_search(settings: Settings) -> KnowledgeStore:
    from sentinel_rag.assembly.service_admission import EntraToken, KeyHeaders
    from sentinel_rag.knowledge.stores.azure_search import AUDIENCE, AzureSearchStore, SearchConnection, SearchEndpoint

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


def _azure_search_place(settings: Settings) -> str:
    wanted = settings.knowledge.azure_search
    return f"index {wanted.index} at {wanted.url or 'no address'}"


STORES: Mapping[str, StoreKind] = {
    "local": StoreKind(_open_local, lambda settings: str(_local_file(settings))),
    "chroma": StoreKind(_open_chroma, lambda settings: str(_chroma_folder(settings))),
    "pgvector": StoreKind(_open_pgvector, _pgvector_place),
    "azure-search": StoreKind(_open_azure_search, _azure_search_place),
}

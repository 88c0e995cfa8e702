"""The knowledge stores by name: how each is opened with these settings, and where it lies.

Stores beyond the two here are plugins: packages with an entry point in the group `STORE_PLUGINS`.

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
from sentinel_rag.settings.knowledge import STORE_PLUGINS

if TYPE_CHECKING:
    from sentinel_rag.knowledge.stores import KnowledgeStore


KNOWN_PLUGINS: Mapping[str, str] = {"chroma": "sentinel-rag-chroma", "azure-search": "sentinel-rag-azure-search"}
"""Store -> the package of ours that brings it."""


@dataclass(frozen=True, slots=True)
class StoreKind:
    """How a store is opened with these settings, and where it lies as a person says it (no secret in it)."""

    open: Callable[[Settings], KnowledgeStore]
    place: Callable[[Settings], str]
    shared: bool = False
    """Whether several homes may use it, each with workspaces and playbooks of its own."""


def open_store(name: str, settings: Settings) -> KnowledgeStore:
    """The store of that name, made where there is none. Raises UnavailableError, also where its packages are not
    installed, and ConfigurationError for a name that no store has or a setting that it lacks."""
    return _kind(name).open(settings)


def place_of(name: str, settings: Settings) -> str:
    """Where the store of that name lies, for a person. Raises what `open_store` raises for its name."""
    return _kind(name).place(settings)


def is_shared(name: str) -> bool:
    """Whether several homes may use the store of that name. Raises what `open_store` raises for its name."""
    return _kind(name).shared


def _kind(name: str) -> StoreKind:
    if name in STORES:
        return STORES[name]
    from importlib.metadata import entry_points

    installed = entry_points(group=STORE_PLUGINS)
    if name in installed.names:
        kind = installed[name].load()
        if not isinstance(kind, StoreKind):
            raise ConfigurationError(
                f"The package that brings the knowledge store {name!r} is not made for this version.",
                next_step=f"Its entry point in {STORE_PLUGINS} must name a StoreKind; take another store.",
            )
        return kind
    if name in KNOWN_PLUGINS:
        raise UnavailableError(
            f"The knowledge store {name} comes with a package that is not installed.",
            next_step=f"Run: pip install {KNOWN_PLUGINS[name]}",
        )
    raise ConfigurationError(
        f"There is no knowledge store {name!r}.",
        next_step=f"Take one of these: {', '.join(sorted({*STORES, *KNOWN_PLUGINS, *installed.names}))}.",
    )


@contextmanager
def needs_packages(store: str, installable: str, *modules: str) -> Iterator[None]:
    """Around the import of a store: if one of its top-level `modules` is not installed, says what `installable` brings
    them."""
    try:
        yield
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in modules:
            raise
        raise UnavailableError(
            f"The knowledge store {store} needs the package {missing}, which is not installed.",
            next_step=f"Run: pip install {installable}",
        ) from None


def _local_file(settings: Settings) -> Path:
    return settings.home / "knowledge" / "knowledge.db"


def _open_local(settings: Settings) -> KnowledgeStore:
    from sentinel_rag.knowledge.stores import LocalStore

    return LocalStore(_local_file(settings))


def _open_pgvector(settings: Settings) -> KnowledgeStore:
    postgres = settings.knowledge.postgres
    if postgres.url is None:
        raise ConfigurationError(
            "SENTINEL_KNOWLEDGE_URL is not set; the knowledge store pgvector needs the address of its database.",
            next_step="Set it to postgresql://USER:PASSWORD@HOST/DATABASE.",
        )
    with needs_packages("pgvector", "'sentinel-rag[postgres]'", "numpy", "psycopg"):
        from sentinel_rag.knowledge.stores.pgvector import PgVectorStore
    return PgVectorStore(postgres.url.reveal(), postgres.schema)


def _pgvector_place(settings: Settings) -> str:
    """Host and database, without what stands before them (user, password) and behind (options)."""
    postgres = settings.knowledge.postgres
    address = "" if postgres.url is None else postgres.url.reveal().partition("://")[2].partition("?")[0]
    host, _, database = address.rpartition("@")[2].partition("/")
    return f"PostgreSQL, database {database or '(default)'} at {host or 'this machine'}, schema {postgres.schema}"


STORES: Mapping[str, StoreKind] = {
    "local": StoreKind(_open_local, lambda settings: str(_local_file(settings))),
    "pgvector": StoreKind(_open_pgvector, _pgvector_place, shared=True),
}
"""The stores that come with the product."""

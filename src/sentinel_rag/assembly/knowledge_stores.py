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


STORES: Mapping[str, StoreKind] = {
    "local": StoreKind(_open_local, lambda settings: str(_local_file(settings))),
}

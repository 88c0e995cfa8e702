"""What commands do with the gateway's state in PostgreSQL: make its tables, move files into it, look whether it is
ready. Nothing else needs to run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sentinel_rag.app.state_place import gateway_folder, state_place
from sentinel_rag.contracts.errors import UsageError
from sentinel_rag.settings import Settings

if TYPE_CHECKING:
    from sentinel_rag.audit import PostgresPlace
    from sentinel_rag.gateway.store.moving import Moved


@dataclass(frozen=True, slots=True)
class DatabaseState:
    """What a look at the database found. `version` is PostgreSQL's, `gateways` how many are connected now."""

    schema: str
    version: str
    encrypted: bool
    ready: bool
    gateways: int


def prepare(settings: Settings, role: str | None) -> str:
    """Make the schema with its tables, or bring them up to date, and let `role` run gateways there; the schema's name.

    Raises UsageError without SENTINEL_DATABASE_URL, UnavailableError if the database cannot be used.
    """
    from sentinel_rag.gateway.store.state import needs_postgres

    place = _place(settings)
    with needs_postgres():
        from sentinel_rag.gateway.store.moving import make_tables
        from sentinel_rag.storage.postgres.rights import grant_to
    make_tables(place)
    if role is not None:
        grant_to(place, role)
    return place.schema


def move(settings: Settings) -> Moved:
    """Move the state of this home's files. Raises as `prepare` does, and as `move_state`."""
    from sentinel_rag.gateway.store.state import needs_postgres

    place = _place(settings)
    with needs_postgres():
        from sentinel_rag.gateway.store.moving import move_state
    return move_state(gateway_folder(settings.home), place, anchor=settings.audit_anchor)


def was_moved(settings: Settings) -> bool:
    """Whether `move` has moved this home's state and put its files aside. Raises as `prepare` does."""
    from sentinel_rag.gateway.store.state import JOURNAL_FILE, needs_postgres

    _place(settings)
    with needs_postgres():
        from sentinel_rag.gateway.store.moving import ASIDE
    folder = gateway_folder(settings.home)
    return (folder / ASIDE / JOURNAL_FILE).exists() and not (folder / JOURNAL_FILE).exists()


def look(settings: Settings) -> DatabaseState:
    """What is there now; changes nothing. Raises as `prepare` does."""
    from sentinel_rag.gateway.store.state import needs_postgres

    place = _place(settings)
    with needs_postgres():
        from sentinel_rag.storage.postgres.looking import look_at
    return DatabaseState(place.schema, *look_at(place))


def _place(settings: Settings) -> PostgresPlace:
    place = state_place(settings)
    if place is None:
        raise UsageError(
            "SENTINEL_DATABASE_URL is not set, so the state is in SQLite files of the home folder.",
            next_step="Set it to postgresql://USER:PASSWORD@HOST/DATABASE; see docs/postgresql.md.",
        )
    return place

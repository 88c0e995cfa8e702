"""Where the gateway's state is with these settings: in files of the home, or in PostgreSQL.

The folder is needed for both: the signing key, the pepper and the checkpoints never lie in the database.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sentinel_rag.settings import Settings

if TYPE_CHECKING:
    from sentinel_rag.audit import JournalPlace, PostgresPlace


def gateway_folder(home: Path) -> Path:
    """Where the gateway keeps its keys, sessions and journal, or what must not lie beside them in a database."""
    return home / "gateway"


def database_configuration(settings: Settings) -> dict[str, str] | None:
    """What a zone is told of the database: its address, which is a secret, and the schema. None for SQLite."""
    url = settings.database.url
    return None if url is None else {"url": url.reveal(), "schema": settings.database.schema}


def postgres_place(database: Mapping[str, Any] | None, folder: Path) -> PostgresPlace | None:
    """The place of a `database_configuration`; None for SQLite."""
    from sentinel_rag.audit import PostgresPlace

    return None if database is None else PostgresPlace(database["url"], database["schema"], folder)


def state_place(settings: Settings) -> PostgresPlace | None:
    """The place in PostgreSQL that these settings name; None for SQLite."""
    return postgres_place(database_configuration(settings), gateway_folder(settings.home))


def journal_place(database: Mapping[str, Any] | None, folder: Path) -> JournalPlace:
    """Where the journal is, in either. Raises UnavailableError if PostgreSQL's library is missing."""
    from sentinel_rag.gateway.store.state import JOURNAL_FILE, needs_postgres

    place = postgres_place(database, folder)
    if place is None:
        return folder / JOURNAL_FILE
    with needs_postgres():
        import psycopg  # noqa: F401  # said here, and not from inside the first question
    return place

"""Where what people leave behind is kept with these settings: in files of the home, or in PostgreSQL.

The gateway's database has a schema of its own for people (`_web`). The agent never learns that database's address,
which would open the labels and the keys: what it remembers goes to the database of `SENTINEL_CHAT_DATABASE_URL`, in a
schema of its own (`_chat`) and with a role that sees nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path

from sentinel_rag.app.state_place import database_configuration
from sentinel_rag.settings import Settings
from sentinel_rag.storage import Migration, Records


def chat_database(settings: Settings) -> dict[str, str] | None:
    """What the agent's process is told of the database of its memory, a secret; None for a file."""
    url = settings.chat_database
    return (
        None
        if url is None
        else {
            "url": url.reveal(),
            "schema": f"{settings.database.schema}_chat",
            "setting": "SENTINEL_CHAT_DATABASE_URL",
        }
    )


def people_database(database: Mapping[str, str] | None) -> dict[str, str] | None:
    """The part of a `database_configuration` for accounts and conversations of people; None for files."""
    return None if database is None else {**database, "schema": f"{database['schema']}_web"}


def prepare_people(settings: Settings, stores: Mapping[str, Sequence[Migration]], role: str | None) -> None:
    """Make the tables of people's `stores`, by component, and let `role` use them. Raises UsageError for a role that
    there is not, UnavailableError if the database cannot be used."""
    database = people_database(database_configuration(settings))
    assert database is not None
    for component, steps in stores.items():
        records = record_schema(database, component, steps, what="The database of accounts and conversations")
        assert records is not None
        with closing(records), records.transaction(reads=True):
            pass
    if role is not None:
        from sentinel_rag.audit import PostgresPlace
        from sentinel_rag.storage.postgres.rights import grant_to

        grant_to(PostgresPlace(database["url"], database["schema"], Path()), role)


def record_schema(
    database: Mapping[str, str] | None, component: str, steps: Sequence[Migration], *, what: str
) -> Records | None:
    """The records of a store in a database; None for files. Raises UnavailableError if PostgreSQL's library is
    missing."""
    if database is None:
        return None
    from sentinel_rag.audit import PostgresPlace
    from sentinel_rag.gateway.store.state import needs_postgres

    with needs_postgres():
        from sentinel_rag.storage.postgres import RecordSchema
    # Its folder is for what a journal signs with, and records sign nothing.
    place = PostgresPlace(database["url"], database["schema"], Path())
    return RecordSchema(place, component, steps, what=what, setting=database.get("setting", "SENTINEL_DATABASE_URL"))

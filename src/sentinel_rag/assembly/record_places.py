"""Where what people leave behind is kept with these settings: in files of the home, or in PostgreSQL.

The gateway's database has a schema of its own for people (`_web`). The agent never learns that database's address,
which would open the labels and the keys: what it remembers goes to the database of `SENTINEL_CHAT_DATABASE_URL`, in a
schema of its own (`_chat`) and with a role that sees nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from sentinel_rag.assembly.state_place import database_configuration
from sentinel_rag.records import Migration, RecordFile, Records
from sentinel_rag.settings import Settings


def chat_database(settings: Settings) -> dict[str, str] | None:
    """What the agent's process is told of the database of its memory, a secret; None for a file."""
    url = settings.chat_database
    return None if url is None else {"url": url.reveal(), "schema": f"{settings.database.schema}_chat"}


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
        from sentinel_rag.audit.postgres.rights import grant_to

        grant_to(PostgresPlace(database["url"], database["schema"], Path()), role)


@dataclass(frozen=True, slots=True)
class KeptStore:
    """A store whose records can be moved: its tables, those that others refer to first, and the file they were in."""

    component: str
    steps: Sequence[Migration]
    tables: tuple[str, ...]
    file: Path


def move_kept(settings: Settings, stores: Sequence[KeptStore]) -> dict[str, int]:
    """Move the files of people's `stores`, and what the agent remembers if that has a database; how many rows of each
    table, named with its component. A file that was moved is put aside.

    Raises UsageError if the tables hold something already, UnavailableError if a place cannot be used.
    """
    from sentinel_rag.agent.remembering.schema import MIGRATIONS
    from sentinel_rag.assembly.conversations import CONVERSATIONS_FILE, agent_folder
    from sentinel_rag.records.moving import move_records

    remembered = agent_folder(settings.home) / CONVERSATIONS_FILE
    memory = KeptStore("conversations", MIGRATIONS, ("conversation", "turn"), remembered)
    people = people_database(database_configuration(settings))
    moved: dict[str, int] = {}
    for store, database in [*((each, people) for each in stores), (memory, chat_database(settings))]:
        target = record_schema(database, store.component, store.steps, what=f"The database of {store.component}")
        if target is None or not store.file.exists():
            continue
        source = RecordFile(store.file, store.steps, what=f"The file {store.file}")
        with closing(source), closing(target):
            counted = move_records(source, target, store.tables)
        moved |= {f"{store.component}.{table}": count for table, count in counted.items()}
        aside = store.file.parent / "moved-to-postgresql"
        aside.mkdir(mode=0o700, exist_ok=True)
        for part in store.file.parent.glob(f"{store.file.name}*"):
            part.rename(aside / part.name)
    return moved


def record_schema(
    database: Mapping[str, str] | None, component: str, steps: Sequence[Migration], *, what: str
) -> Records | None:
    """The records of a store in a database; None for files. Raises UnavailableError if PostgreSQL's library is
    missing."""
    if database is None:
        return None
    from sentinel_rag.audit import PostgresPlace
    from sentinel_rag.interceptor.store.state import needs_postgres

    with needs_postgres():
        from sentinel_rag.audit.postgres import RecordSchema
    # Its folder is for what a journal signs with, and records sign nothing.
    place = PostgresPlace(database["url"], database["schema"], Path())
    return RecordSchema(place, component, steps, what=what)

"""What commands do with state in PostgreSQL: make tables, move files into it, look whether it is ready.

Nothing else needs to run.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sentinel_rag.app.conversations import CONVERSATIONS_FILE, agent_folder
from sentinel_rag.app.places import (
    chat_database,
    database_configuration,
    gateway_folder,
    people_database,
    record_schema,
    state_place,
)
from sentinel_rag.contracts.errors import UsageError
from sentinel_rag.settings import Settings
from sentinel_rag.storage import Migration, RecordFile

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
        from sentinel_rag.storage.postgres.members import grant_to
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
        from sentinel_rag.storage.postgres.members import look_at
    return DatabaseState(place.schema, *look_at(place))


def _place(settings: Settings) -> PostgresPlace:
    place = state_place(settings)
    if place is None:
        raise UsageError(
            "SENTINEL_DATABASE_URL is not set, so the state is in SQLite files of the home folder.",
            next_step="Set it to postgresql://USER:PASSWORD@HOST/DATABASE; see docs/postgresql.md.",
        )
    return place


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
    from sentinel_rag.agent.conversations.store import MIGRATIONS
    from sentinel_rag.storage.sqlite import move_records

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
